-module(witness_spec_machine_tests).
-moduledoc "How machines are read, what they expand to, and what is wrong with them. What they mean: `m:witness_spec_machine_props_tests`.".

-include_lib("eunit/include/eunit.hrl").

-define(FRONT, "with m:f() ").

a_machine_is_a_loop_over_its_state_and_data_test() ->
    ?assertEqual([~"with m:f(N)", ~"over _ ? a, _ ? b",
                  ~"check max X(State = one, Left = N).(", ~"  [_ ? a when State =:= one, Left > 0] X(one, Left - 1)",
                  ~"  and [_ ? b when State =:= one] X('on hold', Left)", ~"  and [_ ? b when State =:= 'on hold'] ff",
                  ~"  and [_ ? a when State =:= 'on hold'] tt", ~"  and [else] X(State, Left))."],
                 core("with m:f(N)", "machine (Left = N)"
                      " state one: _ ? a when Left > 0 -> stay (Left = Left - 1); _ ? b -> 'on hold'"
                      " state 'on hold': _ ? b -> violated; _ ? a -> satisfied end")).

the_first_transition_that_matches_counts_test() ->
    ?assertEqual([~"with m:f()", ~"over _ ? {_, 1}, _ ? {a, _}, _ : _ ! b", ~"check max X(State = s).(",
                  ~"  [_ : _ ! b when State =:= s] tt",
                  ~"  and (<{_ ? {_, 1} when State =:= s}> X(s) or ([_ ? {_, 1} when State =:= s] ff and [_ ? {a, _} when State =:= s] ff))",
                  ~"  and [_ ? {_, 1} when State =:= s] tt", ~"  and [_ ? {a, _} when State =:= s] tt", ~"  and [else] X(State))."],
                 core("machine state s: _ ? {_, 1} -> stay; _ ? {a, _} -> violated; _ : _ ! b -> satisfied end")).

else_is_about_the_alphabet_test_() ->
    Core = fun(Over, Actions) -> lists:nth(4, core(["with m:f()", Over], ["machine state s: ", Actions, " else -> satisfied end"])) end,
    [?_assertEqual(~"  [_ ? _ when State =:= s] tt", Core(" over _ ? a, _ ? b, {_ ? {c, N} when N > 1}", "")),
     ?_assertEqual(~"  [_ calls m:g(_, _) when State =:= s] tt", Core(" over _ calls m:g(1, _), _ returns m:h/0 -> 1", "")),
     ?_assertEqual(~"  and [_ returns m:h/0 -> _ when State =:= s] tt",
                   lists:nth(5, core("with m:f() over _ calls m:g(1, _), _ returns m:h/0 -> 1", "machine state s: else -> satisfied end"))),
     %% Nothing changes: that is what all other events do.
     ?_assertEqual([~"with m:f()", ~"over _ ? a", ~"check max X(State = s).(", ~"  [_ ? a when State =:= s] ff", ~"  and [else] X(State))."],
                   core("machine state s: _ ? a -> violated; else -> stay end"))].

%% The name of an action may be for events of any kind.
else_knows_the_names_of_actions_test_() ->
    Machine = ~"""
        action Sent(M) = _ : _ ! {sent, M}.
        action Got = _ ? {got, _}.
        action Above(N, V) = _ ? {_, V} when V > N.
        with m:f() machine state s: Sent(V) -> stay; Got -> t; _ ? b -> stay; Above(9, V) -> violated
                           state t: _ ? b -> stay; else -> violated end.
        """,
    [?_assertEqual(Violations, violations(Machine, Messages))
     || {Messages, Violations} <- [{[b, {got, 1}, b, c], []}, {[{got, 1}, {got, 2}], [{got, 2}]}, {[{got, 1}, {up, 2}], []},
                                  {[{got, 1}, {up, 10}], [{up, 10}]}]].

a_hot_state_is_an_obligation_to_leave_it_test() ->
    ?assertEqual([~"with m:f()", ~"over _ ? {a, N}, _ ? {b, N}",
                  ~"check (max X(State = on, Last = 0).(",
                  ~"  [_ ? {a, N} when State =:= on] X(off, N)",
                  iolist_to_binary(["  and [_ ? {b, N} when State =:= off, N > Last] (X(on, Last)",
                                    " and within 5 s min Y(Last2 = Last).(<_ ? {a, N2}> tt or <else> Y(Last2)))"]),
                  ~"  and [_ ? {a, N} when State =:= off] X(off, N)",
                  ~"  and [else] X(State, Last)) and within 5 s min Y(Last2 = 0).(<_ ? {a, N}> tt or <else> Y(Last2)))."],
                 core("machine (Last = 0) hot state on within 5 s: _ ? {a, N} -> off (Last = N)"
                      " state off: _ ? {b, N} when N > Last -> on; _ ? {a, N} -> stay (Last = N) end")).

%% What is known only inside of a machine is unknown in `over`.
over_has_the_actions_without_data_test_() ->
    Over = fun(Front, Machine) -> hd([Line || <<"over ", Line/binary>> <- core(Front, Machine)]) end,
    [?_assertEqual(~"_ ? {a, _}, {_ ? {b, N} when N > 1}, _ ? {c, N}, _ ? d",
                   Over("with m:f()", "machine (D = 0, T = 0) state s: _ ? {a, D} -> stay (D = T); {_ ? {b, N} when N > 1} -> stay;"
                                      " {_ ? {c, N} when N > D} -> stay; _ ? d at U when U - T > 1 s -> stay (T = U) end")),
     ?_assertEqual(~"_ ? a, {_ ? {go, L} when L > 1}",
                   Over("with m:f() let V = once {_ ? {go, L} when L > 1}", "machine state s: _ ? a when V -> violated end")),
     %% Only what the first state describes begins a slice.
     ?_assertEqual(~"begin _ ? {a, K}, _ ? {b, K}, _ ? c",
                   Over("with m:f() per K", "machine state s: _ ? {a, K} -> t; else -> stay state t: _ ? c -> s; _ ? {b, K} -> violated end")),
     ?_assertEqual(~"_ ? {a, K}", Over("with m:f() per K", "machine hot state s: _ ? {a, K} -> t state t: end"))].

arrows_of_actions_are_none_of_the_machine_test() ->
    Text = ~"""
        with m:f() machine
          state one:
            P -> C, m:g(_)                -> two;
            _ calls m:g(_)                -> two;
            _ returns m:h/1 -> {ok, _}    -> two;
            {_ returns m:h/1 -> three}    -> two;
            _ ? stop                      -> two;
            _ <- _, m:g(_)                -> two;
            P ** normal                   -> two
          state two:
            _ : _ ! no                    -> violated
        end.
        """,
    ?assertEqual([fork, call, return, return, recv, init, exit, send], [Kind || #{kind := Kind} <- over(Text)]).

words_of_machines_are_still_atoms_test() ->
    {ok, Map, []} = witness_spec:compile_string(~"s", ~"""
        machine: with m:machine(state) over _ ? machine, _ : hot ! {state, machine}
        monitor [_ ? machine] [_ : hot ! {state, machine}] ff.
        stay: with m:f() machine
          state state: _ ? state -> hot; _ : machine ! 'end' -> violated
          state hot: _ ? within -> state end.
        """),
    witness_spec:unload(Map).

what_is_wrong_is_told_with_its_place_test_() ->
    [{Machine, ?_assertEqual({Column, iolist_to_binary(Text)}, wrong(Machine))} || {Machine, Column, Text} <- [
        {"machine", 8, "expected a state, found `.`"},
        {"machine ()", 9, "there is nothing in these parentheses"},
        {"machine (N) state s: end", 10, "expected data with its value, found `N`"},
        {"machine stat s: _ ? a -> s end", 9, "expected a state, found `stat`"},
        {"machine state s _ ? a -> s end", 17, "expected `:` behind the name of the state, found `_`"},
        {"machine state stay: _ ? a -> s end", 15, "`stay` is no name of a state"},
        {"machine state s within 5 s: _ ? a -> s end", 17, "only a hot state has a deadline"},
        {"machine hot state s within 5: _ ? a -> s end", 28, "expected a duration, found `5`"},
        {"machine state s: _ ? a end", 24, "expected `->` and what comes then, found `end`"},
        {"machine state s: _ ? a -> end", 27, "expected what comes then, found `end`"},
        {"machine state s: -> s end", 18, "expected an action, found `->`"},
        {"machine state s: _ ? a -> s _ ? b -> s end", 29, "expected `;` and another transition, a state, or `end`, found `_`"},
        {"machine state s: _ ? a -> s; end", 28, "no `;` stands behind the last transition of a state"},
        {"machine state s: _ ? a -> s", 28, "expected `;` and another transition, a state, or `end`, found `.`"},
        {"machine state s: _ ? a -> s end end", 33, "expected `.` at the end of the property, found `end`"},
        {"machine state s: _ ? a -> violated (N = 1) end", 36, "no data is needed behind the end"},
        {"machine state s: _ ? a -> t end", 27, "there is no state `t`"},
        {"machine state s: _ ? a -> s state s: end", 29, "there is a state with the name `s` already"},
        {"machine (N = 0, N = 1) state s: _ ? N -> s end", 17, "there is data with the name `N` already"},
        {"machine (N = 0) state s: _ ? N -> s (M = 1) end", 38, "the machine has no data `M`"},
        {"machine (N = 0) state s: _ ? N -> s (N = 1, N = 2) end", 45, "there is a new value of `N` already"},
        {"machine (N = 0) state s: _ ? N -> s (N = M) end", 42, "the variable `M` is not bound"},
        {"machine (N = 0) state s: _ ? a when M > N -> s end", 37, "the variable `M` is not bound"},
        {"machine state s: else -> stay; _ ? a -> s end", 32, "no event comes here: `else` is in front"},
        {"machine hot state s: end", 9, "the hot state `s` can never be left"},
        {"machine hot state s: _ ? a -> s; _ ? b -> stay end", 9, "the hot state `s` can never be left"},
        {"machine state s: else -> violated end", 1, "no transition of this machine has an action"},
        {"per K machine state s: _ ? a -> violated end", 24, "this action does not bind `K`"},
        {"per K machine state s: {_ ? {a, K}} -> t; else -> violated state t: _ ? b -> s end", 43,
         "this `else` of the first state is also about events without `K`"}
    ]].

%% Beginning a hot state anew gives it more time, so it may be a watchdog.
a_hot_state_with_a_deadline_may_begin_anew_test() ->
    ?assertEqual([], warned("machine hot state s within 5 s: _ ? ping -> s end")).

hints_name_what_was_meant_test_() ->
    [{Machine, ?_assertEqual(iolist_to_binary(Hint), hint(Machine))} || {Machine, Hint} <- [
        {"machine state idle: _ ? a -> idel end", "did you mean `idle`?"},
        {"machine state s: _ ? a -> violate end", "did you mean `violated`?"},
        {"machine (Failed = 0) state s: _ ? Failed -> s (Faild = 1) end", "did you mean `Failed`?"},
        {"machine (N = 0) state s: _ ? N -> s (X = 1) end", "there is `N`"},
        {"machine state s: _ ? a -> s stat t: end", "`end` stands behind the last state; did you mean `state`?"}
    ]].

%% The time to compile a chain grows faster than its length.
a_machine_is_not_too_large_test() ->
    Transitions = lists:join("; ", lists:duplicate(201, "_ ? a -> s")),
    ?assertEqual({1, ~"a machine has at most 200 transitions"}, wrong(lists:append(["machine state s: ", lists:append(Transitions), " end"]))).

what_is_suspicious_is_told_test_() ->
    [{Machine, ?_assertEqual([{Column, iolist_to_binary(Text)} || {Column, Text} <- Warnings], warned(Machine))}
     || {Machine, Warnings} <- [
        {"machine state s: _ ? a -> violated state t: _ ? b -> t end", [{36, "the state `t` is never reached"}]},
        {"machine state s: _ ? a -> s end", [{1, "this machine can never be violated"}]},
        {"machine (N = 0, M = 0) state s: _ ? {a, N} -> violated; _ ? b -> s (M = M + 1) end", [{17, "the data `M` is never used"}]},
        {"machine (N = 0, M = 0) state s: _ ? {a, N} -> violated; _ ? b -> s (N = M) end", []},
        {"machine (N = 0, M = N + 1) state s: _ ? {a, M} -> violated end", []},
        {"machine state s: _ ? {a, _} -> violated; _ ? {a, 1} -> s end", [{42, "this transition can never be taken"}]},
        {"machine state s: {_ ? {a, N} when N > 1} -> violated; _ ? {a, 1} -> s; {_ ? {a, N} when N > 1} -> s end",
         [{73, "this transition can never be taken"}]},
        {"machine state s: _ ? {a, 1} -> violated; _ ? {a, _} -> s end", []},
        {"machine state s: _ ? {a, _} -> violated; _ ? {_, 1} -> s end", [{42, "this transition can match the same event as an earlier one"}]},
        {"machine state s: _ ? {a, _} -> violated; _ ? {_, 1} -> violated end", []},
        {"machine state s: {_ ? {a, N} when N > 1} -> violated; _ ? {_, 1} -> s end", []}
    ]].

%% The text that an author gives is a part of the explanation.
why_is_told_test() ->
    Machine = "machine state s: _ ? {_, 1} -> stay; _ ? {a, _} -> violated \"no a\"; _ ? b -> violated end",
    ?assertMatch([#{why := ~"no a", line := 1, column := 49, action := ~"_ ? {a, _}", matched := true}], infos(Machine, [{b, 1}, {a, 2}])),
    ?assertMatch([#{column := 80} = Info] when not is_map_key(why, Info), infos(Machine, [b])),
    ?assertMatch([#{why := ~"no a"}], infos("machine state s: _ ? b -> s; else -> violated \"no a\" end", " over _ ? _", [b, c])).

%% A definition may be a transition, also of a hot state that another one enters, with the text that the machine gives it.
definitions_are_transitions_test() ->
    Machine = ~"action A(V) = _ ? {a, V}. with m:f() machine state s: A(V) -> t hot state t: _ ? b -> s; A(_) -> violated \"open\" end.",
    Outcomes = outcomes(Machine, [{a, 1}, b, {a, 1}, {a, 2}]),
    ?assertEqual([{{a, 2}, ~"open"}],
                 [{Message, Why}
                  || #{verdict := no, info := #{why := Why}, event := #{event := {recv, _, _, Message, _}}} <- Outcomes]).

a_value_that_fails_is_told_with_its_place_test() ->
    ?assertMatch([#{reason := argument, line := 1, column := 51}],
                 infos("machine (N = 0) state s: _ ? {a, V} -> t (N = N + V) state t: _ ? N -> violated end", [{a, z}])).

%% What has not been left at the end.
a_hot_state_at_the_end_is_told_with_its_place_test() ->
    ?assertMatch([#{line := 1, column := 40}],
                 infos("machine state s: _ ? a -> t hot state t: _ ? b -> s; _ ? c -> stay end", [b, a, c])),
    ?assertEqual([], infos("machine state s: _ ? a -> t hot state t: _ ? b -> s; _ ? c -> stay end", [b, a, c, b])).

%% Behind `satisfied` nothing counts any more, also with `per`. Behind a violation the machine begins again.
a_slice_begins_anew_behind_a_violation_only_test() ->
    Machine = ~"with m:f() per K machine state s: _ ? {a, K} -> t; _ ? {b, K} -> violated state t: _ ? {b, K} -> satisfied; _ ? {c, K} -> violated end.",
    ?assertEqual([], violations(Machine, [{a, 1}, {b, 1}, {b, 1}, {c, 1}])),
    ?assertEqual([{c, 1}, {b, 1}, {b, 1}], violations(Machine, [{c, 1}, {a, 1}, {c, 1}, {b, 1}, {c, 1}, {b, 1}, {a, 2}])).

coverage_has_each_transition_once_test() ->
    {ok, #{module := Module} = Map, _} = compiled("machine state s: _ ? {_, 1} -> t; _ ? {a, _} -> violated hot state t: _ ? b -> s; _ ? {a, 2} -> stay end"),
    ?assertEqual([{~"_ ? b", undefined}, {~"_ ? {_, 1}", undefined}, {~"_ ? {a, 2}", undefined}, {~"_ ? {a, _}", no}],
                 lists:sort([{Text, Decides} || #{text := Text, decides := Decides} <- Module:coverage(1)])),
    witness_spec:unload(Map).

the_states_are_drawn_test() ->
    Text = drawn("machine state s: _ ? a -> t (N = 1); _ ? c -> violated hot state t within 5 s: _ ? b -> s; _ ? d -> satisfied; else -> stay end"),
    [?assertNotEqual(nomatch, binary:match(Text, Part))
     || Part <- [~"m1_1[\"state s\"]", ~"m1_2[\"hot state t within 5 s\"]", ~"m1_1 -->|\"#95; ? a\"| m1_2", ~"m1_2 -->|\"#95; ? b\"| m1_1",
                 ~"m1_1 -->|\"#95; ? c\"| violated1", ~"m1_2 -->|\"#95; ? d\"| satisfied1", ~"start1(( )) --> m1_1"]],
    ?assertEqual(nomatch, binary:match(Text, ~"else")).

drawn(Machine) -> in_file(["with m:f() ", string:replace(Machine, "machine", "machine (N = 0)"), "."], fun(File) -> witness_spec:to_drawing(File, mermaid, #{}) end).

core(Machine) -> core("with m:f()", Machine).

core(Front, Machine) ->
    Text = in_file([Front, " ", Machine, "."], fun(File) -> witness_spec:to_core(File, #{}) end),
    {ok, Map, _} = witness_spec:compile_string(~"core", Text),
    witness_spec:unload(Map),
    binary:split(string:trim(Text, trailing, "\n"), ~"\n", [global]).

in_file(Text, Use) ->
    witness_folder:with(fun(Folder) ->
        File = filename:join(Folder, "m.hml"),
        ok = file:write_file(File, Text),
        {ok, Result} = Use(File),
        iolist_to_binary(Result)
    end).

over(Text) ->
    {ok, Tokens} = witness_spec_scan:string(Text),
    {[#{over := Over}], []} = witness_spec_parse:file(Tokens, binary_to_list(Text)),
    Over.

compiled(Machine) -> witness_spec:compile_string(~"s", iolist_to_binary([?FRONT, Machine, "."])).

%% Columns are those in the machine.
wrong(Machine) ->
    {error, {witness_spec, Findings}} = compiled(Machine),
    [#{line := 1, column := Column, text := Text} | _] = [Finding || #{severity := error} = Finding <- Findings],
    {Column - length(?FRONT), Text}.

hint(Machine) ->
    {error, {witness_spec, [#{hint := Hint} | _]}} = compiled(Machine),
    Hint.

warned(Machine) ->
    {ok, Map, Warnings} = compiled(Machine),
    witness_spec:unload(Map),
    [{Column - length(?FRONT), Text} || #{column := Column, text := Text} <- Warnings].

%% What the monitor says where the verdict is not `yes`.
infos(Machine, Messages) -> infos(Machine, "", Messages).

infos(Machine, Over, Messages) ->
    [Info || #{verdict := Verdict, info := Info} <- outcomes(iolist_to_binary(["with m:f()", Over, " ", Machine, "."]), Messages), Verdict =/= yes].

%% The messages of the verdicts `no`.
violations(Source, Messages) ->
    [Message || #{verdict := no, event := #{event := {recv, _, _, Message, _}}} <- outcomes(Source, Messages)].

outcomes(Source, Messages) ->
    {ok, #{module := Module} = Map, _} = witness_spec:compile_string(~"s", Source),
    Signature = {m, f, []},
    {ok, Machine} = witness_monitor_machine:new(#{monitor => {Module, 1}, process => self(), signature => Signature, explain => 1}),
    Events = [{init, self(), undefined, Signature, 0} | [{recv, self(), undefined, Message, 0} || Message <- Messages]],
    {Outcomes, Left} = witness_monitor_machine:run(Events, Machine),
    All = Outcomes ++ case Left of
        {ok, Next} -> {Rest, End} = witness_monitor_machine:finish(complete, Next), Rest ++ [End];
        {decided, End} -> [End]
    end,
    witness_spec:unload(Map),
    All.
