-module(witness_monitor_sliced_tests).
-moduledoc """
A monitor with slices says of each slice what a monitor without them says of the events of that slice alone.

Random specifications from a small family, random traces. The test computes the events of a slice from the definition: the
first action of `over` that matches an event gives its value. A slice begins with the first event of its value. From then
on it has the events of its value and the unkeyed ones; it ends with its verdict.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(EXPLAIN, 3).
-define(TRACES, 30).

sliced_monitors_agree_with_unsliced_ones_test_() ->
    {timeout, 300, ?_assert(proper:quickcheck(prop_slices(), [quiet, long_result, {numtests, 60}, {to_file, user}]))}.

%% For each reason the oldest slices are explained, also where a saved monitor goes on.
undecided_slices_are_explained_up_to_a_bound_test_() ->
    {setup, fun() -> compile("with m:f(_) per V over _ ? {V, _} monitor max X.([_ ? {_, a}] X and [_ ? {_, b}] ff).") end,
     fun witness_spec:unload/1,
     fun(Map) -> [{"at the end", fun() -> at_the_end(Map) end}, {"by others", fun() -> displaced(Map, infinity) end},
                  {"by others, with times", fun() -> displaced(Map, 1000) end}, {"idle", fun() -> idle(Map) end}] end}.

empty(#{module := Module}, Max, Idle) ->
    {slices, Filter} = Module:init({m, f, [1]}, self(), 1),
    witness_monitor_sliced:new(Module, witness_monitor_instance:config(Module, ?EXPLAIN), {fun Module:slice/2, Filter},
                               Module:slice_names(Filter), Max, Idle).

received(From, To) -> [{recv, self(), undefined, {V, a}, V} || V <- lists:seq(From, To)].

values(Outcomes) -> [Value || #{verdict := inconclusive, slice := [{~"V", Value}]} <- Outcomes].

at_the_end(Map) ->
    {ok, [], S} = witness_monitor_sliced:run(received(1, 250), empty(Map, 1000, infinity)),
    [begin
        Outcomes = End(S),
        ?assertEqual(lists:seq(1, 100), values(Outcomes)),
        ?assertEqual([{undecided, Reason, 150}], lists:nthtail(100, Outcomes)),
        ?assertMatch([#{steps := [_], reason := Reason} | _], Outcomes)
    end || {Reason, End} <- [{stopped, fun(A) -> witness_monitor_sliced:finish(stopped, A) end},
                             {{gap, late}, fun(A) -> witness_monitor_sliced:inconclusive({gap, late}, A) end}]],
    %% Decided slices are reported, however many there are.
    Ended = witness_monitor_sliced:finish(complete, S),
    ?assertEqual(250, length([yes || #{verdict := yes} <- Ended])),
    {ok, Violated, _} = witness_monitor_sliced:run([{recv, self(), undefined, {V, b}, V} || V <- lists:seq(1, 250)], S),
    ?assertEqual(250, length([no || #{verdict := no} <- Violated])).

displaced(Map, Idle) ->
    {ok, One, S1} = witness_monitor_sliced:run(received(1, 60), empty(Map, 10, Idle)),
    {_, Saved} = witness_monitor_sliced:save(S1),
    {ok, Loaded} = witness_monitor_sliced:load(binary_to_term(term_to_binary(Saved)), empty(Map, 10, Idle)),
    {ok, Two, S2} = witness_monitor_sliced:run(received(61, 300), Loaded),
    ?assertEqual(lists:seq(1, 100), values(One ++ Two)),
    ?assertEqual([{undecided, max_slices, 190}], Two -- [O || O <- Two, is_map(O)]),
    %% A saved state without the last element loads, too: it has explained nothing.
    {ok, _} = witness_monitor_sliced:load(list_to_tuple(lists:droplast(tuple_to_list(Saved))), empty(Map, 10, Idle)),
    %% Each reason has its own examples, and a slice that is gone is not idle later.
    ?assertEqual(lists:seq(291, 300), values(witness_monitor_sliced:finish(stopped, S2))),
    ?assertEqual(300, witness_monitor_sliced:count(S2)).

idle(Map) ->
    {ok, [], S} = witness_monitor_sliced:run(received(1, 250), empty(Map, 1000, 1)),
    {ok, Outcomes, _} = witness_monitor_sliced:run([{recv, self(), undefined, other, 2_000_000}], S),
    ?assertEqual(lists:seq(1, 100), values(Outcomes)),
    ?assertEqual([{undecided, slice_idle, 150}], lists:nthtail(100, Outcomes)).

prop_slices() ->
    ?FORALL({Per, Formula}, {oneof([['V'], ['V', 'W']]), formula()},
    ?FORALL({Over, Traces}, {over(Per), vector(?TRACES, {value(), list(event()), integer(0, 20)})},
        begin
            Head = ["with m:f(S) per ", lists:join(", ", [atom_to_list(V) || V <- Per]),
                    " over ", lists:join(", ", [Text || {Text, _} <- Over])],
            Sliced = compile([Head, "\ncheck ", formula_text(Formula, Per), "."]),
            Unsliced = compile(["with m:f(", [[atom_to_list(V), ", "] || V <- Per], "S)\ncheck ",
                                formula_text(Formula, Per), "."]),
            try
                lists:all(fun({Start, Trace, Cut}) ->
                    Expected = expected(Unsliced, Start, [{E, chosen(E, Start, Over)} || E <- Trace]),
                    Found = found(Sliced, Start, lists:split(min(Cut, length(Trace)), Trace)),
                    Expected =:= Found orelse
                        begin io:format(user, "~ts~n~p~n~p~n~p~n", [Head, {Start, Trace}, Expected, Found]), false end
                end, Traces)
            after
                witness_spec:unload(Sliced),
                witness_spec:unload(Unsliced)
            end
        end)).

compile(Source) ->
    {ok, Map, _} = witness_spec:compile_string(~"random", unicode:characters_to_binary(Source)),
    Map.

%% All outcomes of each slice, in order.
found(#{module := Module}, Start, {First, Second}) ->
    {slices, Filter} = Module:init({m, f, [Start]}, self(), 1),
    S0 = witness_monitor_sliced:new(Module, witness_monitor_instance:config(Module, ?EXPLAIN),
                                    {fun Module:slice/2, Filter}, Module:slice_names(Filter), 1000, infinity),
    {ok, One, S1} = witness_monitor_sliced:run(First, S0),
    {ok, Two, S2} = witness_monitor_sliced:run(Second, S1),
    Outcomes = One ++ Two ++ witness_monitor_sliced:finish(complete, S2),
    true = length(Outcomes) =:= witness_monitor_sliced:count(S2),
    by_key([{list_to_tuple([Value || {_, Value} <- Slice]), maps:remove(slice, Outcome)} ||
            #{slice := Slice} = Outcome <- Outcomes]).

expected(Unsliced, Start, Trace) ->
    Keys = maps:keys(#{Key => [] || {_, {slice, Key}} <- Trace}),
    by_key([{Key, Outcome} || Key <- Keys, Outcome <- outcomes(Unsliced, Start, Key, Trace)]).

outcomes(#{module := Module} = Map, Start, Key, Trace) ->
    case lists:dropwhile(fun({_, For}) -> For =/= {slice, Key} end, Trace) of
        [] -> [];
        [_ | After] = Slice ->
            Own = [E || {E, For} <- Slice, is_for(For, Key)],
            {ok, State} = Module:init({m, f, tuple_to_list(Key) ++ [Start]}, self(), 1),
            Config = witness_monitor_instance:config(Module, ?EXPLAIN),
            case witness_monitor_instance:run(Own, Config, witness_monitor_instance:new(State)) of
                {ok, Open} ->
                    [witness_monitor_instance:finish(complete, Config, Open)];
                {decided, #{event := #{index := Index}} = Outcome} ->
                    %% It has seen that many events; what comes behind them is for the next one.
                    [Outcome | outcomes(Map, Start, Key, behind(Index - 1, Key, After))]
            end
    end.

behind(0, _, Trace) -> Trace;
behind(Seen, Key, [{_, For} | Trace]) ->
    case is_for(For, Key) of
        true -> behind(Seen - 1, Key, Trace);
        false -> behind(Seen, Key, Trace)
    end.

is_for(For, Key) -> lists:member(For, [all, {slice, Key}, {live, Key}]).

by_key(Pairs) ->
    lists:foldl(fun({Key, Outcome}, Map) -> maps:update_with(Key, fun(Os) -> Os ++ [Outcome] end, [Outcome], Map) end,
                #{}, Pairs).

chosen(_, _, []) -> skip;
chosen(Event, Start, [{_, Choose} | Over]) ->
    case Choose(Event, Start) of
        none -> chosen(Event, Start, Over);
        For -> For
    end.

%% Actions of `over`, and what they choose.
over(Per) ->
    Keyed = keyed(Per),
    ?LET(Over, ?SUCHTHAT(Over, list(oneof(Keyed ++ unkeyed())), lists:any(fun(A) -> lists:member(A, Keyed) end, Over)),
         ?LET(Marks, vector(length(Over), frequency([{2, false}, {1, true}])),
              marked([{Mark andalso lists:member(A, Keyed), A} || {Mark, A} <- lists:zip(Marks, Over)]))).

%% Where some actions are marked, the others do not begin a slice.
marked(Over) ->
    case lists:keymember(true, 1, Over) of
        false -> [Action || {_, Action} <- Over];
        true -> [mark(Mark, Action) || {Mark, Action} <- Over]
    end.

mark(true, {Text, Choose}) -> {"begin " ++ Text, Choose};
mark(false, {Text, Choose}) ->
    {Text, fun(Event, Start) -> case Choose(Event, Start) of {slice, Key} -> {live, Key}; For -> For end end}.

keyed(['V']) ->
    [{"_ ? {req, V, _}", fun({recv, _, _, {req, V, _}, _}, _) -> {slice, {V}}; (_, _) -> none end},
     {"_ ? {req, _, V} when V =/= S",
      fun({recv, _, _, {req, _, V}, _}, S) when V =/= S -> {slice, {V}}; (_, _) -> none end},
     {"_ : _ ! {res, V, _}", fun({send, _, _, {res, V, _}, _}, _) -> {slice, {V}}; (_, _) -> none end},
     {"_ : _ ! {_, V, V}", fun({send, _, _, {_, V, V}, _}, _) -> {slice, {V}}; (_, _) -> none end},
     {"_ : _ ! {_, S, V}", fun({send, _, _, {_, S, V}, _}, S) -> {slice, {V}}; (_, _) -> none end}];
keyed(['V', 'W']) ->
    [{"_ ? {req, V, W}", fun({recv, _, _, {req, V, W}, _}, _) -> {slice, {V, W}}; (_, _) -> none end},
     {"_ : _ ! {res, W, V}", fun({send, _, _, {res, W, V}, _}, _) -> {slice, {V, W}}; (_, _) -> none end},
     {"_ : _ ! {W, V, S}", fun({send, _, _, {W, V, S}, _}, S) -> {slice, {V, W}}; (_, _) -> none end}].

unkeyed() ->
    [{"_ ? tick", fun({recv, _, _, tick, _}, _) -> all; (_, _) -> none end},
     {"_ ? {_, S, _}", fun({recv, _, _, {_, S, _}, _}, S) -> all; (_, _) -> none end},
     {"_ : _ ! {_, N, N} when N > 1", fun({send, _, _, {_, N, N}, _}, _) when N > 1 -> all; (_, _) -> none end}].

event() ->
    ?LET({Kind, Message}, {oneof([recv, send]), frequency([{1, tick}, {6, {oneof([req, res]), value(), value()}}])},
         {Kind, p, q, Message, 0}).

value() -> frequency([{9, oneof([1, 2, a])}, {1, 1.0}]).

%% Formulas; loops are guarded, since a modality stands behind each fixpoint.
formula() -> ?SIZED(Size, formula(min(Size, 8) + 2, [])).

formula(0, Loops) -> frequency([{1, oneof([tt, ff])} | [{5, {loop, oneof(Loops)}} || Loops =/= []]]);
formula(Size, Loops) ->
    ?LAZY(frequency([{4, {modality(), action(), formula(Size - 1, Loops)}},
                     {3, {oneof(['and', 'or']), branch(Size div 2, Loops), branch(Size div 2, Loops)}},
                     {2, ?LET({Fix, X}, {oneof([max, min]), oneof(["X", "Y"])},
                              {Fix, X, branch(Size - 1, lists:usort([X | Loops]))})}])).

branch(Size, Loops) -> {modality(), action(), formula(max(0, Size - 1), Loops)}.

modality() -> oneof([box, box, dia]).

action() ->
    oneof(["_ ? {req, V, N}", "_ ? {req, N, _}", "_ : _ ! {res, V, N}", "_ : _ ! {_, _, N} when N =/= S", "_ ? tick",
           "_ ? _", "_ : _ ! {_, S, _}", "_ : _ ! {res, ~s, V}"]).

formula_text({loop, X}, _) -> X;
formula_text({Fix, X, Formula}, Per) when Fix =:= max; Fix =:= min ->
    [atom_to_list(Fix), " ", X, ".(", formula_text(Formula, Per), ")"];
formula_text({Operator, Left, Right}, Per) when Operator =:= 'and'; Operator =:= 'or' ->
    ["(", formula_text(Left, Per), " ", atom_to_list(Operator), " ", formula_text(Right, Per), ")"];
formula_text({box, Action, Formula}, Per) -> ["[", action_text(Action, Per), "] ", formula_text(Formula, Per)];
formula_text({dia, Action, Formula}, Per) -> ["<{", action_text(Action, Per), "}> ", formula_text(Formula, Per)];
formula_text(Constant, _) -> atom_to_list(Constant).

action_text(Action, Per) -> string:replace(Action, "~s", atom_to_list(lists:last(Per))).
