-module(seats_tests).

-include_lib("eunit/include/eunit.hrl").

-export([evening/0]).

%% The modules were woven when they were compiled: the run loads nothing.
sells_each_seat_once_test() ->
    {ok, _} = application:ensure_all_started(witness),
    {ok, Run} = witness:start(#{system => {?MODULE, evening, []}, instrument => inline, specs => ["specs/seats.hml"]}),
    {ok, #{outcome := Outcome}} = witness:await(Run, 10_000),
    {ok, _} = witness:stop(Run),
    ?assertEqual(ok, Outcome).

%% Where there is no run, they do what they always did.
needs_no_run_test() ->
    evening().

evening() ->
    {ok, Seats} = seats:start_link([a1, a2]),
    ok = seats:hold(Seats, a1),
    [{sold, a1}, {sold, a2} | _] = [seats:sell(Seats, Seat) || Seat <- [a1, a2, a1]],
    ok = gen_server:stop(Seats).
