-module(witness_monitor_expiry_tests).
-moduledoc "What has expired, against a list of pairs that is searched; nothing is kept of keys that have ended.".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

idle_slices_are_found_as_in_a_list_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_list(), [quiet, {numtests, 5000}, {to_file, user}]))}.

prop_list() ->
    ?FORALL({Limit, Steps}, {integer(0, 5), list({oneof([touch, touch, forget, due, next, saved]), key(), at()})},
            begin
                {_, _, Same} = lists:foldl(fun(Step, {Idle, List, Same}) ->
                    {Result, Idle1} = real(Step, Limit, Idle),
                    {Expected, List1} = model(Step, Limit, List),
                    {Idle1, List1, Same andalso Result =:= Expected}
                end, {witness_monitor_expiry:new(Limit), [], true}, Steps),
                Same
            end).

%% Keys that are equal but not the same are several. Times are in half milliseconds, and need not grow.
key() -> oneof([1, 1.0, {2, a}, b]).
at() -> oneof([undefined, ?LET(N, integer(0, 24), N * 500_000)]).

real({touch, Key, Time}, _, Idle) -> {done, witness_monitor_expiry:touch(Key, Time, Idle)};
real({forget, Key, _}, _, Idle) -> {done, witness_monitor_expiry:forget(Key, Idle)};
real({due, _, Time}, _, Idle) -> witness_monitor_expiry:due(Time, Idle);
real({next, _, _}, _, Idle) -> {witness_monitor_expiry:next(Idle), Idle};
real({saved, _, _}, Limit, Idle) ->
    Saved = witness_monitor_expiry:save(Idle),
    {Saved, witness_monitor_expiry:load(Saved, witness_monitor_expiry:new(Limit))}.

%% In the order in which they were given their times.
model({touch, _, undefined}, _, List) -> {done, List};
model({touch, Key, Time}, _, List) ->
    {done, case [Pair || {K, _} = Pair <- List, K =:= Key] of
               [{_, Time}] -> List;
               _ -> without(Key, List) ++ [{Key, Time}]
           end};
model({forget, Key, _}, _, List) -> {done, without(Key, List)};
model({due, _, undefined}, _, List) -> {[], List};
model({due, _, Now}, Limit, List) ->
    Idle = by_time([Pair || {_, Time} = Pair <- List, Now - Time > Limit * 1_000_000]),
    {[Key || {Key, _} <- Idle], [Pair || Pair <- List, not lists:any(fun(I) -> I =:= Pair end, Idle)]};
model({next, _, _}, _, List) -> {lists:min([Time || {_, Time} <- List] ++ [none]), List};
model({saved, _, _}, _, List) -> {by_time(List), by_time(List)}.

%% In OTP 27 `lists:keysort/2' may exchange pairs that are equal but not the same.
by_time(List) -> lists:sort(fun({_, Some}, {_, Other}) -> Some =< Other end, List).

without(Key, List) -> [Pair || {K, _} = Pair <- List, K =/= Key].

a_slice_that_has_ended_leaves_nothing_behind_test() ->
    Live = fun(N, Idle) ->
        witness_monitor_expiry:forget(N - 10, witness_monitor_expiry:touch(N, N, Idle))
    end,
    Few = lists:foldl(Live, witness_monitor_expiry:new(1000), lists:seq(1, 1000)),
    Many = lists:foldl(Live, Few, lists:seq(1001, 100_000)),
    ?assertEqual(erts_debug:flat_size(Few), erts_debug:flat_size(Many)).
