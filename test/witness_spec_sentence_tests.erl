-module(witness_spec_sentence_tests).
-moduledoc "What sentences expand to, how they are read, and what is wrong with them. What they mean: `m:witness_spec_sentence_props_tests`.".

-include_lib("eunit/include/eunit.hrl").

%% The core of each form.
each_sentence_has_a_core_test_() ->
    [{Sentence, ?_assertEqual([iolist_to_binary(Line) || Line <- Core], core(Sentence))} || {Sentence, Core} <- [
        {"never {_ ? a}", ["with m:f()", "check max X.([_ ? a] ff and [else] X)."]},
        {"never {_ ? a} before {_ ? r}",
         ["with m:f()", "over _ ? a, _ ? r", "let Ends = count {_ ? r}",
          "check max X.([_ ? a when Ends =:= 0] ff and [_ ? r when Ends =:= 1] tt and [else] X)"
          " or max Y.([_ ? r when Ends =:= 1] ff and [else] Y)."]},
        {"never {_ ? a} after {_ ? q}",
         ["with m:f()", "over _ ? q, _ ? a", "check max X.([_ ? q] max Y.([_ ? a] ff and [else] Y) and [else] X)."]},
        {"never {_ ? a} after {_ ? q} until {_ ? r}",
         ["with m:f()", "over _ ? q, _ ? a, _ ? r",
          "check max X.([_ ? q] max Y.([_ ? a] ff and [_ ? r] X and [else] Y) and [else] X)."]},
        {"never {_ ? a} between {_ ? q} and {_ ? r}",
         ["with m:f()", "over _ ? q, _ ? a, _ ? r",
          "check max X.([_ ? q] (max Y.([_ ? a] ff and [_ ? r] X and [else] Y) or max Z.([_ ? r] ff and [else] Z)) and [else] X)."]},
        {"never {_ ? a} within 3 s after {_ ? q}",
         ["with m:f()", "over _ ? q, _ ? a", "check max X.([_ ? q] (X and during 3 s max Y.([_ ? a] ff and [else] Y)) and [else] X)."]},
        {"always {_ ? a} leads to {_ ? b}",
         ["with m:f()", "over _ ? a, _ ? b", "check max X.([_ ? a] (X and min Y.(<_ ? b> tt or <else> Y)) and [else] X)."]},
        {"always {_ ? a} then {_ ? c} leads to {_ ? b} then {_ ? d} within 5 s between {_ ? q} and {_ ? r}",
         ["with m:f()", "over _ ? q, _ ? a, _ ? c, _ ? b, _ ? d, _ ? r",
          "check max X.([_ ? q] (max Y.([_ ? a] (Y and max Z.([_ ? c] within 5 s"
          " min W.(<_ ? b> min W2.(<_ ? d> tt or <_ ? r> ff or <else> W2) or <_ ? r> ff or <else> W) and [_ ? r] tt and [else] Z))"
          " and [_ ? r] X and [else] Y) or max Z.([_ ? r] ff and [else] Z)) and [else] X)."]},
        {"{_ ? a} precedes {_ ? b}",
         ["with m:f()", "over _ ? b, _ ? a", "let Seen = once {_ ? a}", "check max X.([_ ? b when not Seen] ff and [_ ? b] X and [else] X)."]},
        {"{_ ? a} precedes {_ ? b} within 5 s",
         ["with m:f()", "over _ ? b, _ ? a", "let Seen = once within 5 s {_ ? a}",
          "check max X.([_ ? b when not Seen] ff and [_ ? b] X and [else] X)."]},
        {"{_ ? a} then {_ ? c} precedes {_ ? b} then {_ ? d}",
         ["with m:f()", "over _ ? b, _ ? a, _ ? c, _ ? d", "let Was = once {_ ? a}", "let Before = previously Was",
          "let Seen = once {_ ? c when Before}", "check max X.([_ ? b when not Seen] max Y.([_ ? d] ff and [else] Y) and [_ ? b] X and [else] X)."]},
        {"{_ ? a} precedes {_ ? b} within 3 s after {_ ? q}",
         ["with m:f()", "over _ ? q, _ ? a, _ ? b", "let Seen = once within 3 s {_ ? a}",
          "check max X.([_ ? q] max Y.([_ ? a] max Z.([_ ? b when not Seen] ff and [_ ? b] Z and [else] Z) and [_ ? b] ff and [else] Y) and [else] X)."]},
        {"{_ ? a} alternates with {_ ? b}",
         ["with m:f()", "over _ ? a, _ ? b",
          "check max X(Open = false).([_ ? b when not Open] ff and [_ ? a when Open] ff and [_ ? a when not Open] X(true)"
          " and [_ ? b when Open] X(false) and [else] X(Open))."]},
        {"at most 2 {_ ? a}",
         ["with m:f()", "over _ ? a", "let Count = count {_ ? a}", "check max X.([_ ? a when Count > 2] ff and [_ ? a] X and [else] X)."]},
        {"at most 2 {_ ? a} in any 3 s",
         ["with m:f()", "over _ ? a", "let Count = count within 3 s {_ ? a}",
          "check max X.([_ ? a when Count > 2] ff and [_ ? a] X and [else] X)."]},
        {"at least 2 {_ ? a} within 3 s",
         ["with m:f()", "let Count = count {_ ? a}",
          "check within 3 s min Y.(<{_ ? a when Count >= 2}> tt or <_ ? a> Y or <else> Y)."]},
        {"at least 2 {_ ? a} within 3 s after {_ ? q} until {_ ? r}",
         ["with m:f()", "over _ ? q, _ ? a, _ ? r",
          "check max X.([_ ? q] (max Y.([_ ? r] X and [else] Y) and within 3 s min Z(Count = 0).(<{_ ? a when Count >= 1}> tt"
          " or <{_ ? a when Count < 1}> Z(Count + 1) or <_ ? r> ff or <else> Z(Count))) and [else] X)."]},
        {"at most 2 {_ ? a} in any 3 s after {_ ? q}",
         ["with m:f()", "over _ ? q, _ ? a", "let Count = count within 3 s {_ ? a}",
          "check max X.([_ ? q] max Y(In = 0).([_ ? a when In >= 2, Count > 2] ff"
          " and [_ ? a when In < 2; Count =< 2] Y(min(In + 1, 2)) and [else] Y(In)) and [else] X)."]},
        {"unique Id in {_ ? {a, Id}} after {_ ? q}",
         ["with m:f()", "over _ ? q, _ ? {a, Id}",
          "check max X.([_ ? q] max Y(Seen = #{}).([_ ? {a, Id} when is_map_key(Id, Seen)] ff"
          " and [_ ? {a, Id} when not is_map_key(Id, Seen)] Y(Seen#{Id => true}) and [else] Y(Seen)) and [else] X)."]},
        {"exactly 2 {_ ? a}",
         ["with m:f()", "let Count = count {_ ? a}",
          "check max X.([_ ? a when Count > 2] ff and [_ ? a] X and [else] X) and min Y.(<{_ ? a when Count >= 2}> tt or <_ ? a> Y or <else> Y)."]},
        {"exactly 0 {_ ? a}", ["with m:f()", "check max X.([_ ? a] ff and [else] X)."]},
        {"unique Id, N in {_ ? {a, Id, N}}",
         ["with m:f()", "over _ ? {a, Id, N}", "let Times(Id, N) = count {_ ? {a, Id, N}}",
          "check max X.([_ ? {a, Id, N} when Times(Id, N) > 1] ff and [_ ? {a, Id, N}] X and [else] X)."]},
        {"increasing N in {_ ? {a, N}}",
         ["with m:f()", "over _ ? {a, N}",
          "check max X(Last = []).([_ ? {a, N} when Last =/= [], N < hd(Last)] ff"
          " and [_ ? {a, N} when Last =:= []; N >= hd(Last)] X([N]) and [else] X(Last))."]},
        {"at most 2 open {_ ? {a, Id}} until {_ ? {b, Id}}",
         ["with m:f()", "over _ ? {a, Id}, _ ? {b, Id}",
          "check max X(Open = #{}).([_ ? {b, Id}] X(maps:remove(Id, Open))"
          " and [_ ? {a, Id} when map_size(Open) >= 2, not is_map_key(Id, Open)] ff"
          " and [_ ? {a, Id} when map_size(Open) < 2; is_map_key(Id, Open)] X(Open#{Id => true}) and [else] X(Open))."]},
        {"at most 2 open {_ ? a} until {_ ? b}",
         ["with m:f()", "over _ ? a, _ ? b",
          "check max X(Open = 0).([_ ? b] X(max(0, Open - 1)) and [_ ? a when Open >= 2] ff"
          " and [_ ? a when Open < 2] X(Open + 1) and [else] X(Open))."]}
    ]].

%% The event that ends something comes first, if it may be another one, too.
actions_that_may_be_one_event_are_told_apart_test() ->
    ?assertEqual([~"with m:f()", ~"over _ ? q, _ ? {a, _}, _ ? {_, 1}",
                  iolist_to_binary(["check max X.([_ ? q] max Y.((<_ ? {_, 1}> tt or [_ ? {a, _}] ff)",
                                    " and [_ ? {a, _}] tt and [_ ? {_, 1}] X and [else] Y) and [else] X)."])],
                 core("never {_ ? {a, _}} after {_ ? q} until {_ ? {_, 1}}")).

what_a_guard_excludes_goes_round_the_loop_test() ->
    Sentence = "{_ ? a} precedes {_ ? {b, _}} within 10 ns after {_ ? q} until {_ ? {_, r}}",
    ?assertEqual([{no, {b, 2}}], verdicts(["with m:f() ", Sentence, "."], [], [q, {at, 5, a}, {at, 15, {b, 1}}, {at, 22, {b, 2}}])).

%% A guard of the author and one of the core; the names of the core are none of the author's.
guards_and_names_of_the_author_stay_test() ->
    ?assertEqual([~"with m:f(Count)", ~"over {_ ? {a, Count, N} when N > 1; N < 0}", ~"let Count2 = count {_ ? {a, Count, N} when N > 1; N < 0}",
                  iolist_to_binary(["check max X.([_ ? {a, Count, N} when N > 1, Count2 > 3; N < 0, Count2 > 3] ff",
                                    " and [_ ? {a, Count, N} when N > 1; N < 0] X and [else] X)."])],
                 core("with m:f(Count)", "at most 3 {_ ? {a, Count, N} when N > 1; N < 0}")),
    %% What another action binds is not known in `over`.
    ?assertEqual([~"with m:f()", ~"over _ ? {a, N}, _ ? {b, M}",
                  ~"check max X.([_ ? {a, N}] (X and min Y.(<{_ ? {b, M} when M > N}> tt or <else> Y)) and [else] X)."],
                 core("always {_ ? {a, N}} leads to {_ ? {b, M} when M > N}")).

times_are_no_part_of_over_test() ->
    ?assertEqual([~"with m:f()", ~"over {_ ? q when 1 > 0}, _ ? {a, V}",
                  ~"check max X.([_ ? q when 1 > 0] max Y.([_ ? {a, V} at T when T > 0] ff and [else] Y) and [else] X)."],
                 core("never {_ ? {a, V} at T when T > 0} after {_ ? q when 1 > 0}")).

warnings_have_the_words_of_sentences_and_machines_test_() ->
    [{Source, ?_assertEqual(Warnings, warnings(Source))} || {Source, Warnings} <- [
        {"over _ ? a never {_ ? b}", [{1, ~"this sentence can never be violated"}, {1, ~"this action can never match"}]},
        {"never {_ ? a} after {_ ** _}", [{1, ~"this sentence can never be violated"}, {1, ~"this action can never match"}]},
        {"always {_ ? a} leads to {_ ? b}", [{1, ~"only the end of the trace can violate this sentence"}]},
        {"machine state s: _ ? a -> t\nhot state t: _ ? b -> s end", [{2, ~"only the end of the trace can violate this machine"}]}]].

warnings(Source) ->
    {ok, Map, Warnings} = witness_spec:compile_string(~"s", iolist_to_binary(["with m:f() ", Source, "."])),
    witness_spec:unload(Map),
    [{Line, Text} || #{line := Line, text := Text} <- Warnings].

messages_of_otp_need_no_kind_test() ->
    ?assertEqual([~"with m:f() per From", ~"over begin _ ? call(From, _), _ : _ ! reply(From, _)",
                  ~"check max X.([_ ? call(From, _)] (X and within 5 s min Y.(<_ : _ ! reply(From, _)> tt or <else> Y)) and [else] X)."],
                 core("with m:f() per From", "always call(From, _) leads to reply(From, _) within 5 s")),
    ?assertEqual(core("{_ ? cast(a)} precedes {_ ? info(b)}"), core("cast(a) precedes info(b)")),
    ?assertEqual(core("never {_ ? cast(N) when N > 1}"), core("never {cast(N) when N > 1}")),
    ?assertEqual(core("never {_ : _ ! reply(_, N) when N > 1}"), core("never {reply(_, N) when N > 1}")),
    %% These are processes, and patterns of messages.
    ?assertMatch([_, ~"over open : _ ! a" | _], core("at most 3 open : _ ! a")),
    ?assertMatch([_, ~"over _ ? call(_, a)" | _], core("at most 3 _ ? call(_, a)")).

%% The author may say which events count, what `let`s there are, and what stands in front.
what_stands_in_front_stays_test() ->
    ?assertEqual([~"with m:f(), m:g() group per K", ~"over taken {_ ? {K, _}}, begin {_ ? {go, K}}", ~"let Was = once {_ ? {go, K}}",
                  ~"check max X.([_ ? {K, a} when Was] ff and [else] X)."],
                 core("with m:f(), m:g() group per K over taken _ ? {K, _}, begin _ ? {go, K} let Was = once {_ ? {go, K}}",
                      "never {_ ? {K, a} when Was}")),
    ?assertEqual([~"per K", ~"over {_ ? {K, _}}", ~"among m:f()", ~"check max X.([_ ? {K, a}] ff and [else] X)."],
                 core("per K over _ ? {K, _} among m:f()", "never {_ ? {K, a}}")).

%% A core is a specification.
cores_compile_test_() ->
    [{Sentence, fun() ->
         Text = iolist_to_binary(lists:join("\n", core(Sentence))),
         {ok, Map, _} = witness_spec:compile_string(~"core", Text),
         witness_spec:unload(Map)
     end} || Sentence <- ["never {_ ? {a, L} when L > 1} after {_ ? {N, a}  when N > 1} until {_ ? {r, M} when M < 0; M > 9}",
                          "at most 2 open {_ ? {a, Id, N} when N > 1} until {_ ? {b, Id, N} when N < 1; N > 3}",
                          "exactly 3 {_ ? {a, Y, X} when Y > X}"]].

what_is_wrong_is_told_with_its_place_test_() ->
    [{Sentence, ?_assertEqual({Column, iolist_to_binary(Text)}, wrong(Sentence))} || {Sentence, Column, Text} <- [
        {"{_ ? a} preceeds {_ ? b}", 9, "expected `precedes` or `alternates with`, found `preceeds`"},
        {"nevr {_ ? a}", 1, "expected the end of the signature, found `nevr`"},
        {"at moste 3 {_ ? a}", 4, "expected `at most` or `at least`, found `moste`"},
        {"exactly {_ ? a}", 9, "expected a number of events, found `{`"},
        {"unique {_ ? a}", 8, "expected a variable, found `{`"},
        {"strictly {_ ? a}", 10, "expected `increasing`, found `{`"},
        {"never", 6, "expected an action, found `.`"},
        {"never call(_, _) until {_ ? b}", 18, "`until` stands behind `after`"},
        {"never {_ ? try}", 12, "`try` is a word of Erlang"},
        {"never else", 7, "`else` has no place in a sentence"},
        {"never _ ? {a, N} when N > 1", 18, "an action with a guard stands in braces"},
        {"never {_ ? c} between {_ ? a} until {_ ? b}", 31, "expected `and` with the end of the scope, found `until`"},
        {"never {_ ? c} during {_ ? a}", 15, "expected `within`, a scope or `.`, found `during`"},
        {"always {_ ? a}", 1, "`always` alone needs an `over`"},
        {"always {_ ? a} then {_ ? b}", 28, "expected `leads to` and another action, found `.`"},
        {"always {_ ? a} lead to {_ ? b}", 16, "expected `then`, `leads to`, a scope or `.`, found `lead`"},
        {"{_ ? a} precedes {_ ? b} befor {_ ? c}", 26, "expected `then`, `within`, a scope or `.`, found `befor`"},
        {"at most 3 {_ ? b} {_ ? c}", 19, "expected `in any`, a scope or `.`, found `{`"},
        {"never {_ ? a} within 3 s", 25, "expected `after` and an action, found `.`"},
        {"never {_ ? a} within 3 s after {_ ? q} until {_ ? r}", 40, "`until` has no place here"},
        {"{_ ? a} then {_ ? b} precedes {_ ? c} within 3 s", 39, "`within` has no place behind a chain of causes"},
        {"{_ ? a} then {_ ? b}", 21, "expected `precedes` and another action, found `.`"},
        {"always {_ ? {a, N}} leads to {_ ? {b, N}} after {_ ? {q, N}}", 50,
         "both actions have `N`, and their values would not be compared"},
        {"always {_ ? a} leads {_ ? b}", 22, "expected `leads to` and another action, found `{`"},
        {"always {_ ? a} leads to {_ ? b} within 5", 40, "expected a duration, found `5`"},
        {"at most {_ ? b}", 9, "expected a number of events, found `{`"},
        {"at most 3 s {_ ? b}", 9, "expected a number of events, found `3 s`"},
        {"at most 3 {_ ? b} in 3 s", 22, "expected `in any` and a duration, found `3 s`"},
        {"at least 0 {_ ? b}", 4, "`at least 0` is always so"},
        {"at most 0 open {_ ? a} until {_ ? b}", 11, "`at most 0 open` is `never`"},
        {"at most 2 open {_ ? a}", 23, "expected `until` and the action that closes, found `.`"},
        {"unique Id {_ ? {a, Id}}", 11, "expected `in` and an action, found `{`"},
        {"unique Id in {_ ? {a, N}}", 15, "the action has no variable `Id`"},
        {"strictly increasing {_ ? {a, N}}", 21, "expected a variable, found `{`"},
        {"{_ ? {a, Id}} precedes {_ ? {b, Id}}", 25, "both actions have `Id`, and their values would not be compared"},
        {"never {_ ? {b, Id}} after {_ ? {a, Id}}", 28, "both actions have `Id`, and their values would not be compared"},
        {"at most 3 {_ ? a} within 5 s", 19, "`at most` has no `within`"},
        {"never {_ ? {a, N} when N > M} after {_ ? {q, M}}", 38, "both actions have `M`, and their values would not be compared"},
        {"never {_ ? a} after {_ ? b} until {_ ? b}", 36, "this is the same action once more"},
        {"{_ ? a} precedes {_ ? a}", 19, "this is the same action once more"},
        {"always call(F, _) leads to reply(F, _)", 28, "a reply to `F` needs a slice for each call"},
        {"never _ ? a q: with m:f() never _ ? b", 13, "expected `.` at the end of the property, found `q`"},
        {"{_ ? a} alternates {_ ? b}", 20, "expected `precedes` or `alternates with`, found `{`"}
    ]].

a_slice_is_one_value_test() ->
    ?assertMatch({error, {witness_spec, [#{line := 1, column := 23, text := ~"`Id` is the same at all events of an instance"}]}},
                 witness_spec:compile_string(~"s", ~"with m:f(_) per Id    unique Id in {_ ? {a, Id}}.")).

%% An event without the values of `per` begins no slice.
a_slice_begins_with_its_values_test_() ->
    [?_assertMatch({error, {witness_spec, [#{text := ~"this action does not bind `Id`"}]}},
                   witness_spec:compile_string(~"s", iolist_to_binary(["with m:f() per Id ", Sentence, "."])))
     || Sentence <- ["never {_ ? {use, Id}} after {_ ? shutdown}", "always {_ ? shutdown} leads to {_ ? {closed, Id}} within 5 s",
                     "at most 3 {_ ? a}"]].

what_begins_each_slice_is_no_demand_test_() ->
    [{Sentence, ?_assertMatch({error, {witness_spec, [#{column := 19, text := ~"a slice begins with its first event, so there always is one"}]}},
                              witness_spec:compile_string(~"s", iolist_to_binary(["with m:f() per Id ", Sentence, "."])))}
     || Sentence <- ["at least 1 {_ ? {a, Id}} within 5 s", "exactly 1 {_ ? {a, Id}}"]].

definitions_keep_what_a_sentence_says_of_them_test() ->
    Source = ~"action A(N) = _ ? {a, N}.\nwith m:f() never A(_) before {_ ? r}.",
    ?assertMatch([#{info := #{why := ~"`A(_)` came before it"}}], outcomes(Source, [], [{a, 1}, r])).

%% What a slice has not read counts for it, too, and so does what has no key.
slices_know_what_came_before_test_() ->
    [{Sentence, ?_assertEqual(Verdicts, verdicts(iolist_to_binary(["with m:f() per Id ", Sentence, "."]), Messages))}
     || {Sentence, Messages, Verdicts} <- [
        {"{_ ? {a, Id}} precedes {_ ? {b, Id}}", [{a, 1}, {b, 1}, {b, 2}, {b, 1}], [{no, {b, 2}}]},
        {"{_ ? start} precedes {_ ? {b, Id}}", [{b, 1}, start, {b, 1}], [{no, {b, 1}}]},
        {"never {_ ? {a, Id}} before {_ ? {r, Id}}", [{r, 1}, {a, 1}, {r, 1}, {a, 2}, {r, 2}], [{no, {r, 2}}]},
        {"at most 1 {_ ? {a, Id}}", [{a, 1}, {a, 2}, {a, 2}], [{no, {a, 2}}]}]].

a_slice_may_have_lets_without_over_test() ->
    ?assertEqual([{no, {use, 1}}], verdicts(~"with m:f() per K let Off = once {_ ? off} never {_ ? {use, K} when Off}.", [{use, 1}, off, {use, 1}])),
    ?assertMatch({error, {witness_spec, [#{column := 16, text := ~"`per` needs an `over`"}]}},
                 witness_spec:compile_string(~"s", ~"with m:f() per K let Off = once {_ ? off} check [_ ? {use, K} when Off] ff.")).

%% Actions of `let`s count without `over`, and a variable of the signature has one value.
what_is_known_in_front_counts_test() ->
    ?assertEqual([{no, use}], verdicts(~"with m:f() let Off = once {_ ? off} at most 0 {_ ? use when Off}.", [use, off, use])),
    ?assertEqual([{no, {job, 7}}], verdicts(~"with m:f(Id) at most 1 open {_ ? {job, Id}} until {_ ? {done, Id}}.", [7],
                                            [{job, 7}, {job, 7}])),
    ?assertEqual([{no, {b, 7}}], verdicts(~"with m:f(Id) {_ ? {a, Id}} precedes {_ ? {b, Id}}.", [7], [{b, 7}])).

names_of_definitions_are_none_of_the_core_test() ->
    ?assertEqual([{no, a}], verdicts(~"define X = tt.\naction Y = _ ? a.\naction Count = _ ? b.\nwith m:f() at most 1 Y.", [a, a])).

verdicts(Source, Messages) -> verdicts(Source, [], Messages).

%% The verdicts `no`, with the message of each.
verdicts(Source, Arguments, Messages) ->
    [{no, Message} || #{event := #{event := {recv, _, _, Message, _}}} <- outcomes(Source, Arguments, Messages)].

outcomes(Source, Arguments, Messages) ->
    monitored(Source, Arguments, fun(_, Machine) ->
        {Outcomes, Left} = witness_monitor_machine:run(events(Arguments, Messages), Machine),
        All = Outcomes ++ case Left of
            {ok, Next} -> {Rest, End} = witness_monitor_machine:finish(complete, Next), Rest ++ [End];
            {decided, End} -> [End]
        end,
        [Outcome || #{verdict := no} = Outcome <- All]
    end).

events(Arguments, Messages) ->
    [{init, self(), undefined, {m, f, Arguments}, 0}
     | [case Item of
            {at, Time, Message} -> {recv, self(), undefined, Message, Time};
            Message -> {recv, self(), undefined, Message, 0}
        end || Item <- Messages]].

monitored(Source, Arguments, Ask) ->
    {ok, #{module := Module} = Map, _} = witness_spec:compile_string(~"s", iolist_to_binary(Source)),
    {ok, Machine} = witness_monitor_machine:new(#{monitor => {Module, 1}, process => self(), signature => {m, f, Arguments},
                                                  explain => 2}),
    try Ask(Module, Machine) after witness_spec:unload(Map) end.

a_record_in_front_is_not_a_sentence_test() ->
    ?assertEqual([], verdicts(~"-record(r, {a}).\nwith m:f() over _ ? #r{} never {_ ? #r{a = 1}}.", [{r, 2}])),
    ?assertMatch([{no, _}], verdicts(~"-record(r, {a}).\nwith m:f() over _ ? #r{} never {_ ? #r{a = 1}}.", [{r, 1}])).

%% The words of sentences are atoms everywhere else.
words_of_sentences_are_still_atoms_test() ->
    {ok, Map, []} = witness_spec:compile_string(~"s", ~"""
        never: with m:never(always) over _ ? never, _ : unique ! exactly, _ ? {at, most}
        monitor [_ ? never] [_ ? {at, most}] ff.
        always: with m:f() let Never = previously {_ ? never} monitor max X.([_ ? always when Never] ff and [else] X).
        """),
    witness_spec:unload(Map).

%% What was awaited is told with its action; what several parts of a core wait for is told once.
explanations_have_the_words_of_the_author_test_() ->
    [{Sentence, ?_assertMatch([#{info := #{action := ~"_ ? b", column := Column}}], outcomes(["with m:f() ", Sentence, "."], [], [q, a]))}
     || {Sentence, Column} <- [{"always {_ ? a} leads to {_ ? b}", 37}, {"at least 3 {_ ? b}", 24}]].

what_is_wrong_at_an_event_is_told_test_() ->
    [{Sentence, fun() ->
         [#{info := Info} | _] = outcomes(["with m:f() ", Sentence, "."], [], [q, a, a, {n, 2}, {n, 1}, {n, 1}, b, b, r]),
         ?assertEqual(Why, maps:get(why, Info, none))
     end}
     || {Sentence, Why} <- [
        {"never {_ ? a}", none},
        {"never {_ ? a} before {_ ? r}", ~"`_ ? a` came before it"},
        {"never {_ ? a} after {_ ? q}", ~"`_ ? q` came before it"},
        {"never {_ ? a} within 3 s after {_ ? q}", ~"`_ ? q` came in the 3 s before it"},
        {"always {_ ? a} leads to {_ ? z} between {_ ? q} and {_ ? r}", ~"`_ ? z` has not come"},
        {"always {_ ? a} leads to {_ ? z} within 3 s between {_ ? q} and {_ ? r}", ~"what `_ ? a` leads to has not come in 3 s"},
        {"always {_ ? a} leads to {_ ? b} then {_ ? z} between {_ ? q} and {_ ? r}", ~"not all has come that `_ ? a` leads to"},
        {"{_ ? z} precedes {_ ? b}", ~"there is no `_ ? z` before it"},
        {"{_ ? z} precedes {_ ? b} within 3 s", ~"there is no `_ ? z` in the 3 s before it"},
        {"{_ ? z} precedes {_ ? a} then {_ ? b}", ~"there is no `_ ? z` before `_ ? a`"},
        {"at most 1 {_ ? a}", ~"it came more than once"},
        {"exactly 1 {_ ? a}", ~"it came more than once"},
        {"at most 1 {_ ? a} in any 3 s", ~"it came more than once in 3 s"},
        {"at most 1 {_ ? a} between {_ ? q} and {_ ? r}", ~"what the sentence forbids came before it"},
        {"at least 3 {_ ? a} after {_ ? q} until {_ ? r}", ~"`_ ? a` came less than 3 times before it"},
        {"exactly 3 {_ ? a} between {_ ? q} and {_ ? r}", ~"`_ ? a` did not come 3 times before it"},
        {"at most 1 open {_ ? a} until {_ ? z}", ~"1 is open"},
        {"unique N in {_ ? {n, N}}", ~"the same N came before it"},
        {"increasing N in {_ ? {n, N}}", ~"`N` is smaller than the one before"},
        {"strictly increasing N in {_ ? {n, N}}", ~"`N` is not greater than the one before"},
        {"{_ ? a} alternates with {_ ? b}", ~"there is no `_ ? b` behind the one before"},
        {"{_ ? b} alternates with {_ ? r}", ~"there is no `_ ? r` behind the one before"},
        {"{_ ? z} alternates with {_ ? r}", ~"there is no `_ ? z` for it"}]].

what_remains_is_told_once_test() ->
    Sentence = "exactly 3 {_ ? a} between {_ ? q} and {_ ? r}",
    Told = list_to_binary(Sentence),
    ?assertMatch([#{steps := [#{formula := Told}, #{formula := undefined}]}], outcomes(["with m:f() ", Sentence, "."], [], [q, a, r])).

%% Coverage is about the actions that the author wrote, each once.
coverage_has_the_actions_of_the_author_test() ->
    {ok, #{module := Module} = Map, []} =
        witness_spec:compile_string(~"s", ~"with m:f() never {_ ? {a, _}} after {_ ? {_, 1}} until {_ ? {_, 2}}."),
    ?assertEqual([~"_ ? {_, 1}", ~"_ ? {_, 2}", ~"_ ? {a, _}"], lists:usort([Text || #{text := Text} <- Module:coverage(1)])),
    witness_spec:unload(Map).

core(Sentence) -> core("with m:f()", Sentence).

core(Front, Sentence) ->
    witness_folder:with(fun(Folder) ->
        File = filename:join(Folder, "s.hml"),
        ok = file:write_file(File, [Front, " ", Sentence, "."]),
        {ok, Text} = witness_spec:to_core(File, #{}),
        binary:split(string:trim(iolist_to_binary(Text), trailing, "\n"), ~"\n", [global])
    end).

%% The column in the sentence.
wrong(Sentence) ->
    Front = "with m:f() ",
    {error, {witness_spec, [#{line := 1, column := Column, text := Message} | _]}} =
        witness_spec:compile_string(~"s", iolist_to_binary([Front, Sentence, "."])),
    {Column - length(Front), Message}.
