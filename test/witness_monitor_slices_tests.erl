-module(witness_monitor_slices_tests).
-moduledoc "The bounded map of slices against a list of pairs, the oldest first.".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

slices_are_a_bounded_list_of_pairs_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_bounded_list(), [quiet, {numtests, 5000}, {to_file, user}]))}.

%% Each step is done to both, where the model allows it; what they return and what they hold is the same.
prop_bounded_list() ->
    ?FORALL({Max, Steps}, {integer(1, 6), list({oneof([add, add, update, remove, find]), key(), integer()})},
            begin
                {Slices, Model, Same} = lists:foldl(fun(Step, {Slices, Model, Same}) ->
                    {Result, Slices1} = real(Step, Slices, Model),
                    {Expected, Model1} = model(Step, Max, Model),
                    {Slices1, Model1, Same andalso Result =:= Expected
                                      andalso pairs(Slices1) =:= Model1}
                end, {witness_monitor_slices:new(Max), [], true}, Steps),
                Same andalso pairs(Slices) =:= Model
            end).

%% Keys that are equal but not the same are several.
key() -> oneof([{1}, {1.0}, {2}, {a}, {b, 1}, {b, 2}, {c}, {d}, {e}]).

pairs(Slices) -> [{Key, Value} || {_, Key, Value} <- witness_monitor_slices:to_list(Slices)].

real({find, Key, _}, Slices, _) ->
    {case witness_monitor_slices:find(Key, Slices) of {_, Value} -> {ok, Value}; none -> error end, Slices};
real({Action, Key, Value}, Slices, Model) ->
    case {Action, has(Key, Model)} of
        {add, false} -> witness_monitor_slices:add(Key, Value, Slices);
        {update, true} ->
            {Born, _} = witness_monitor_slices:find(Key, Slices),
            {done, witness_monitor_slices:update(Key, Born, Value, Slices)};
        {remove, true} -> {done, witness_monitor_slices:remove(Key, Slices)};
        _ -> {none, Slices}
    end.

model({find, Key, _}, _, Model) ->
    {case [Value || {K, Value} <- Model, K =:= Key] of [Value] -> {ok, Value}; [] -> error end, Model};
model({Action, Key, Value}, Max, Model) ->
    case {Action, has(Key, Model)} of
        {add, false} when length(Model) < Max -> {[], Model ++ [{Key, Value}]};
        {add, false} -> {[hd(Model)], tl(Model) ++ [{Key, Value}]};
        {update, true} -> {done, [{K, case K =:= Key of true -> Value; false -> V end} || {K, V} <- Model]};
        {remove, true} -> {done, [Pair || {K, _} = Pair <- Model, K =/= Key]};
        _ -> {none, Model}
    end.

has(Key, Model) -> lists:any(fun({K, _}) -> K =:= Key end, Model).

%% Twice the bound of additions would already show a structure that keeps what is gone.
what_is_gone_leaves_nothing_behind_test() ->
    Add = fun(N, Slices) -> {_, More} = witness_monitor_slices:add({N}, N, Slices), More end,
    Full = lists:foldl(Add, witness_monitor_slices:new(1000), lists:seq(1, 1000)),
    Much = lists:foldl(Add, Full, lists:seq(1001, 100_000)),
    ?assertEqual([{{N}, N} || N <- lists:seq(99_001, 100_000)], pairs(Much)),
    ?assert(erts_debug:flat_size(Much) < 3 * erts_debug:flat_size(Full)).
