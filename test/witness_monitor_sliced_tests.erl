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

%% Whether there are times to keep or not.
a_wrong_slice_is_a_crash_test_() ->
    Plain = witness_monitor_instance:config(?MODULE, ?EXPLAIN, fun(_, State) -> {ok, State} end),
    [{Name, ?_assertMatch({{crashed, _}, [], _},
                          witness_monitor_sliced:run([{recv, self(), undefined, a, 1}],
                              witness_monitor_sliced:new(?MODULE, Config, {Slice, none}, [~"V"], 10, Idle)))}
     || {Name, Slice} <- [{"no answer", fun(_, _) -> nonsense end}, {"no key", fun(_, _) -> {slice, nonsense} end},
                          {"a longer key", fun(_, _) -> {slice, {1, 2}} end}, {"an error", fun(_, _) -> error(oops) end}],
        Config <- [Plain, witness_monitor_instance:set_timed(witness_monitor_stop_time:none(), Plain)], Idle <- [infinity, 1000]].

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
    %% Saved states without the last elements load, too: one that remembers nothing, and one that has explained nothing.
    [{ok, _} = witness_monitor_sliced:load(list_to_tuple(lists:sublist(tuple_to_list(Saved), N)), empty(Map, 10, Idle))
     || N <- [4, 5]],
    %% Each reason has its own examples, and a slice that is gone is not idle later.
    ?assertEqual(lists:seq(291, 300), values(witness_monitor_sliced:finish(stopped, S2))),
    ?assertEqual(300, witness_monitor_sliced:count(S2)).

idle(Map) ->
    {ok, [], S} = witness_monitor_sliced:run(received(1, 250), empty(Map, 1000, 1)),
    {ok, Outcomes, _} = witness_monitor_sliced:run([{recv, self(), undefined, other, 2_000_000}], S),
    ?assertEqual(lists:seq(1, 100), values(Outcomes)),
    ?assertEqual([{undecided, slice_idle, 150}], lists:nthtail(100, Outcomes)).

%% What is remembered of keys without a slice.

remembered_test_() ->
    {setup, fun() -> maps:map(fun(_, Source) -> compile(Source) end, #{
                 plain => "with m:f(_) per V over _ ? {V, _} check max X.([_ ? {_, b}] ff and [_ ? {_, a}] X).",
                 timed => "with m:f(_) per V over _ ? {V, a}, begin _ ? {V, b} let A = once within 10 s {_ ? {_, a}} "
                          "check [{_ ? _ when not A}] ff.",
                 always => "with m:f(_) per V over _ ? {V, a}, begin _ ? {V, b} let A = once {_ ? {_, a}} "
                           "check [{_ ? _ when not A}] ff.",
                 unkeyed => "with m:f(_) per V over _ ? go, _ ? {V, a}, begin _ ? {V, b} let A = count {_ ? {_, a}} "
                            "let Go = once {_ ? go} check [{_ ? _ when not (Go andalso A =:= 1)}] ff.",
                 keyed => "with m:f(_) per V over _ ? go, _ ? {V, a}, begin _ ? {V, b} let A = once within 10 s {_ ? {V, a}} "
                          "let G = {_ ? {_, x}} since within 10 s {_ ? go} check [{_ ? _ when not A, not G}] ff."
             }) end,
     fun(Maps) -> [witness_spec:unload(Map) || _ := Map <- Maps] end,
     fun(#{plain := Plain, timed := Timed, always := Always, unkeyed := Unkeyed, keyed := Keyed}) ->
        [{"a displaced slice is the last one of its key", fun() -> displaced_keys(Plain) end},
         {"slice_idle forgets a key", fun() -> idle_keys(Plain) end},
         {"windows of time are all that is remembered", fun() -> window(Timed) end},
         {"keys are remembered up to a bound", fun() -> bounded(Always) end},
         {"what is forgotten leaves nothing", fun() -> constant(Timed) end},
         {"slice_idle forgets what was forgotten before", fun() -> idle_forgotten(Always) end},
         {"only conditions about the key itself last without one", fun() -> about_keys(Keyed) end},
         {"slice_idle forgets values", fun() -> idle_values(Always) end},
         {"a key begins with the events without a key", fun() -> without_key(Unkeyed) end},
         {"damaged data do not load", fun() -> damaged(Always) end}]
     end}.

%% Events `{Value, Letter}` at these seconds, and what comes of them.
told(Events, S0) ->
    {ok, Outcomes, S} = witness_monitor_sliced:run([{recv, self(), undefined, Message, Time * 1_000_000_000}
                                                    || {Message, Time} <- Events], S0),
    {[case Outcome of
          #{slice := [{_, V}], verdict := inconclusive, reason := Reason} -> {V, Reason};
          #{slice := [{_, V}], verdict := Verdict} -> {V, Verdict};
          _ -> Outcome
      end || Outcome <- Outcomes], S}.

%% The first key has lost its slice in the middle of its trace: `b` would violate the next one.
displaced_keys(Map) ->
    {Ended, S} = told([{{V, a}, 0} || V <- lists:seq(1, 5)], empty(Map, 3, infinity)),
    ?assertEqual([{1, max_slices}, {2, max_slices}], Ended),
    ?assertEqual([], element(1, told([{{1, b}, 0}, {{2, b}, 0}, {{1, a}, 0}], S))),
    ?assertEqual([{5, no}, {5, no}], element(1, told([{{5, b}, 0}, {{5, b}, 0}], S))),
    %% One more key than is remembered.
    {_, S1} = told([{{6, a}, 0}, {{7, a}, 0}], S),
    ?assertEqual([{1, unknown_past}, {2, unknown_past}], element(1, told([{{1, b}, 0}, {{2, b}, 0}, {{1, b}, 0}], S1))).

idle_keys(Map) ->
    {Ended, S} = told([{{1, a}, 0}, {{2, a}, 3}, {{3, a}, 3}, {{2, a}, 4}, {{4, a}, 4}], empty(Map, 2, 2_000)),
    ?assertEqual([{1, slice_idle}, {2, max_slices}], Ended),
    ?assertMatch({[{1, no}], _}, told([{{1, b}, 4}, {{2, b}, 4}], S)),
    ?assertMatch({[{3, slice_idle}, {4, slice_idle}, {2, no}], _}, told([{{2, b}, 8}], S)).

window(Map) ->
    {[], S} = told([{{V, a}, V} || V <- lists:seq(1, 5_000)], empty(Map, 1_000, infinity)),
    ?assertEqual(lists:seq(4_990, 5_000), remembered(S)),
    {Verdicts, S1} = told([{{V, b}, 5_000} || V <- [1, 4_989, 4_990, 4_990, 5_000]], S),
    ?assertEqual([{1, no}, {4_989, no}, {4_990, yes}, {4_990, yes}, {5_000, yes}], Verdicts),
    ?assertMatch({[{4_990, no}], _}, told([{{4_990, b}, 5_001}], S1)),
    %% A time that goes back is that of the trace.
    ?assertMatch({[{4_990, yes}, {4_990, no}], _}, told([{{4_990, b}, 3}, {{0, a}, 5_001}, {{4_990, b}, 3}], S1)),
    {_, S2} = told([{{0, a}, 9_000}], S1),
    ?assertEqual([0], remembered(S2)).

bounded(Map) ->
    {[], S} = told([{{V, a}, 0} || V <- lists:seq(1, 50)], empty(Map, 10, infinity)),
    ?assertEqual(lists:seq(41, 50), remembered(S)),
    ?assertEqual([{41, yes}, {40, unknown_past}, {41, yes}, {60, no}],
                 element(1, told([{{V, b}, 0} || V <- [41, 40, 41, 60]], S))).

constant(Map) ->
    %% Besides what is saved of it: the filter is there.
    Size = fun(S) ->
        {_, Saved} = witness_monitor_sliced:save(S),
        erts_debug:flat_size(S) - erts_debug:flat_size(element(6, Saved))
    end,
    [begin
        Events = fun(From, To) -> [{{V, a}, 0} || V <- lists:seq(From, To)] end,
        {[], One} = told(Events(1, 100), empty(Map, 10, Idle)),
        {[], Two} = told(Events(101, 2_000), One),
        ?assert(Size(Two) < Size(One) + 100)
     end || Idle <- [infinity, 1_000_000]].

idle_forgotten(Map) ->
    {[], S} = told([{{V, a}, V} || V <- lists:seq(1, 20)], empty(Map, 10, 30_000)),
    ?assertMatch({[{1, unknown_past}], _}, told([{{1, b}, 21}], S)),
    {[], S1} = told([{{0, a}, T} || T <- [40, 75, 110]], S),
    ?assertMatch({[{1, no}], _}, told([{{1, b}, 111}], S1)).

%% Nothing that matches `{V, a}` has no key. What `go` says is the same for all keys, after ten seconds at the latest.
about_keys(Map) ->
    {_, S} = told([{go, 0}] ++ [{{V, a}, 1} || V <- lists:seq(1, 100)] ++ [{{V, b}, 1} || V <- lists:seq(101, 200)],
                  empty(Map, 1_000, infinity)),
    ?assertEqual(200, length(remembered(S))),
    {[], S1} = told([{{0, a}, 1_000}], S),
    ?assertEqual([0], remembered(S1)).

idle_values(Map) ->
    {[], S} = told([{{1, a}, 0}, {{2, a}, 0}], empty(Map, 10, 2_000)),
    ?assertEqual([1, 2], remembered(S)),
    {[{2, yes}], S1} = told([{{2, b}, 2}], S),
    ?assertMatch({[{1, no}, {2, yes}], _}, told([{{1, b}, 3}, {{2, b}, 4}], S1)).

without_key(Map) ->
    {Verdicts, S} = told([{{1, b}, 0}, {{2, a}, 0}, {go, 0}, {{2, b}, 0}, {{3, a}, 0}, {{3, b}, 0}, {{3, a}, 0}, {{3, b}, 0}],
                         empty(Map, 10, infinity)),
    ?assertEqual([{1, no}, {2, yes}, {3, yes}, {3, no}], Verdicts),
    %% 1 is as a key that has had no event.
    ?assertEqual([2, 3], lists:sort(remembered(S))),
    ?assertMatch({[{1, yes}], _}, told([{{1, a}, 0}, {{1, b}, 0}], S)).

%% The keys that have more than others.
remembered(S) ->
    {_, Saved} = witness_monitor_sliced:save(S),
    {{Keys, _}, _, _} = element(6, Saved),
    [Key || {Key, _} <- Keys].

damaged(Map) ->
    {[], S} = told([{{1, a}, 0}], empty(Map, 10, infinity)),
    {_, Saved} = witness_monitor_sliced:save(S),
    {{[{1, {values, Known, Memory, none}}], none}, none, none} = element(6, Saved),
    [?assertEqual(error, witness_monitor_sliced:load(setelement(6, Saved, Other), empty(Map, 10, infinity)))
     || Other <- [none, {{[], none}, none}, {{[], none}, none, now}, {{[], [1]}, none, none}, {{[{1, nothing}], none}, none, none},
                  {{[{1, {values, Known, none, none}}], none}, none, none}, {{[{1, {values, Known, Memory, 1}}], none}, none, none},
                  {{[], none}, {values, Known, Memory, none}, none}]],
    {ok, Loaded} = witness_monitor_sliced:load(Saved, empty(Map, 10, infinity)),
    ?assertMatch({[{1, yes}], _}, told([{{1, b}, 0}], Loaded)).

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
