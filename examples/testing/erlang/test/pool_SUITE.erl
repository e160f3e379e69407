-module(pool_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, lends_again/1, lends_to_users/1]).

all() -> [lends_again, lends_to_users].

lends_again(_Config) ->
    witness_test:check("specs/pool.hml", fun() ->
        {ok, Pool} = pool:start_link([db1]),
        ?assertEqual({lent, db1}, pool:checkout(Pool)),
        ?assertEqual(empty, pool:checkout(Pool)),
        ok = pool:checkin(Pool, db1),
        ?assertEqual({lent, db1}, pool:checkout(Pool))
    end).

%% Each user gives its connection back, and gives it back once more when it is cleaned up.
lends_to_users(_Config) ->
    witness_test:check("specs/pool.hml", fun() ->
        {ok, Pool} = pool:start_link([db1, db2]),
        Test = self(),
        User = fun() ->
            {lent, Connection} = pool:checkout(Pool),
            ok = pool:checkin(Pool, Connection),
            ok = pool:checkin(Pool, Connection),
            Test ! {lent, Connection}
        end,
        [begin spawn_link(User), receive {lent, _} -> ok end end || _ <- [anna, bruno]],
        ?assertMatch({lent, _}, pool:checkout(Pool)),
        ?assertMatch({lent, _}, pool:checkout(Pool))
    end).
