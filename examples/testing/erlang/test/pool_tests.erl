-module(pool_tests).

-include_lib("eunit/include/eunit.hrl").

%% All assertions hold with the bug too.
gives_and_takes_test() ->
    witness_test:check("specs/pool.hml", fun() ->
        {ok, Pool} = pool:start_link([db1, db2]),
        {lent, First} = pool:checkout(Pool),
        ok = pool:checkin(Pool, First),
        ok = pool:checkin(Pool, First),
        ?assertMatch({lent, _}, pool:checkout(Pool)),
        ?assertMatch({lent, _}, pool:checkout(Pool)),
        ok = pool:stop(Pool)
    end).

%% Any number of tests may watch at the same time.
many_pools_test_() ->
    {inparallel, [fun() -> lends_all(Size) end || Size <- lists:seq(1, 8)]}.

lends_all(Size) ->
    witness_test:check("specs/pool.hml", fun() ->
        {ok, Pool} = pool:start_link(lists:seq(1, Size)),
        [?assertEqual({lent, N}, pool:checkout(Pool)) || N <- lists:seq(1, Size)],
        ?assertEqual(empty, pool:checkout(Pool))
    end).
