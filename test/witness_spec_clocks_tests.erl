%% Deadlines where the clocks of the processes differ by at most two nanoseconds.
-module(witness_spec_clocks_tests).
-include_lib("eunit/include/eunit.hrl").

-define(ERROR_NS, 2).

within_is_decided_outside_of_the_error_only_test() ->
    Formula = "[_ ? ask] within 10 ns <_ : _ ! answer> tt",
    [?assertEqual(Expected, verdict(Formula, [{100, ask}, {Time, answer}]), Time)
     || {Time, Expected} <- [{100, {yes, at}}, {108, {yes, at}}, {109, {skew, at}}, {112, {skew, at}}, {113, {no, before, 112}}]].

during_is_decided_outside_of_the_error_only_test() ->
    Formula = "[_ ? ask] during 10 ns [_ : _ ! answer] ff",
    [?assertEqual(Expected, verdict(Formula, [{100, ask}, {Time, answer}]), Time)
     || {Time, Expected} <- [{100, {no, at}}, {108, {no, at}}, {109, {skew, at}}, {112, {skew, at}}, {113, {yes, before, 112}}]].

%% The error matters only if the rest of the formula leaves it to the deadline.
what_is_decided_without_the_deadline_is_not_unknown_test() ->
    [?assertEqual(Expected, verdict(Formula, [{100, ask}, {110, bad}]), Formula)
     || {Formula, Expected} <- [{"[_ ? ask] within 10 ns <_ : _ ! answer> tt", {no, at}},
                                {"[_ ? ask] during 10 ns [_ : _ ! answer] ff", {yes, at}},
                                {"[_ ? ask] (within 10 ns <_ : _ ! bad> tt or [_ : _ ! answer] ff)", {yes, at}},
                                {"[_ ? ask] (during 10 ns [_ : _ ! bad] ff and <_ : _ ! answer> tt)", {no, at}}]].

%% An event at a time that is not sure does not end what a later one decides.
what_is_open_behind_the_error_is_decided_test() ->
    Within = "[_ ? ask] within 10 ns min X. (<_ : _ ! answer> tt or <else> X)",
    During = "[_ ? ask] during 10 ns max X. ([_ : _ ! answer] ff and [else] X)",
    [?assertEqual(Expected, verdict(Formula, [{100, ask}, {109, noise}, {111, noise}, {Time, answer}]), {Formula, Time})
     || {Formula, Time, Expected} <- [{Within, 112, {skew, at}}, {Within, 113, {no, before, 112}},
                                      {During, 112, {skew, at}}, {During, 113, {yes, before, 112}}]],
    [?assertEqual(Expected, verdict(Formula, [{100, ask}, {111, noise}]), Formula)
     || {Formula, Expected} <- [{Within, {no, 'end'}}, {During, {yes, 'end'}}]].

%% What a loop cannot know of one answer, it may know of another one.
a_violation_behind_what_is_unknown_is_found_test() ->
    Formula = "max X. ([_ ? {ask, N}] (X and within 10 ns min Y. (<_ : _ ! {answer, N}> tt or <else> Y)) and [else] X)",
    Unknown = [{100, {ask, 1}}, {110, {answer, 1}}, {200, {ask, 2}}],
    ?assertEqual({no, before, 212}, verdict(Formula, Unknown ++ [{213, {answer, 2}}])),
    ?assertEqual({skew, 'end'}, verdict(Formula, Unknown ++ [{208, {answer, 2}}])).

%% 5 of 9 ns: the inner deadline is the first one, and its error reaches up to 7 ns.
deadlines_inside_of_others_have_an_error_of_their_own_test() ->
    [?assertEqual(Expected, verdict(["[_ ? ask] ", Outer, " ", Inner, " max X. ([_ : _ ! answer] ff and <else> X)"],
                                    [{100, ask}, {101, noise}, {Time, answer}]), {Outer, Inner, Time})
     || {Outer, Inner, Time, Expected} <- [
            {"within 9 ns", "during 5 ns", 103, {no, at}}, {"within 9 ns", "during 5 ns", 104, {skew, at}},
            {"within 9 ns", "during 5 ns", 107, {skew, at}},
            {"during 10 ns", "within 5 ns", 107, {no, at}}, {"during 10 ns", "within 5 ns", 108, {no, before, 107}}]].

a_deadline_that_is_shorter_than_the_error_is_not_known_test() ->
    Formula = "[_ ? ask] within 1 ns <_ : _ ! answer> tt",
    [?assertEqual(Expected, verdict(Formula, [{100, ask}, {Time, answer}]), Time)
     || {Time, Expected} <- [{100, {skew, at}}, {103, {skew, at}}, {104, {no, before, 103}}]].

%% Also for what begins with it inside.
the_first_event_is_too_late_for_such_a_deadline_test() ->
    [?assertEqual({skew, at}, verdict(Formula, [{100, answer}]), Formula)
     || Formula <- ["within 1 ns <_ : _ ! answer> tt", "within 1 ns (during 2 ns [_ ? ask] ff or <else> tt)"]].

slices_end_one_by_one_test() ->
    Spec = "with m:f(_) per N over begin _ ? {ask, N}, _ : _ ! {answer, N} check [_ ? {ask, N}] within 10 ns <_ : _ ! {answer, N}> tt.",
    Events = [{100, {ask, 1}}, {100, {ask, 2}}, {100, {ask, 3}}, {108, {answer, 1}}, {110, {answer, 2}}, {113, {answer, 3}}],
    with(Spec, fun(Module) ->
        {ok, Machine} = machine(Module),
        {Outcomes, {ok, _}} = witness_monitor_machine:run([event(E) || E <- Events], Machine),
        ?assertEqual([{1, {yes, at}}, {2, {skew, at}}, {3, {no, before, 112}}],
                     [{N, told(Outcome)} || #{slice := [{_, N}]} = Outcome <- Outcomes])
    end).

where_watching_stops_the_clocks_are_the_reason_test() ->
    with(spec("max X. ([_ ? ask] (X and within 10 ns <_ : _ ! answer> tt) and [_ : _ ! answer] X)"), fun(Module) ->
        {ok, Machine} = machine(Module),
        {[], {ok, Next}} = witness_monitor_machine:run([event(E) || E <- [{100, ask}, {110, answer}]], Machine),
        {[], Outcome} = witness_monitor_machine:finish(stopped, Next),
        ?assertMatch(#{verdict := inconclusive, info := #{reason := skew}}, Outcome)
    end).

%% An action is one action, and what is left is shown once.
both_bounds_are_shown_as_one_formula_test() ->
    Formula = "[_ ? ask] (within 10 ns <_ : _ ! answer> tt and [else] [_ ? _] ff)",
    with(spec(Formula), fun(Module) ->
        ?assertEqual([<<"_ ? ask">>, <<"_ : _ ! answer">>, <<"else">>, <<"_ ? _">>], [Text || #{text := Text} <- Module:coverage(1)]),
        {ok, Begun, _} = Module:init({m, f, [0]}, self(), 1),
        ?assertEqual(#{formula => list_to_binary(Formula), bindings => []}, Module:describe(Begun)),
        {ok, Left} = Module:handle_event(event({100, ask}), Begun),
        ?assertEqual(#{formula => <<"within 10 ns <_ : _ ! answer> tt and [else] [_ ? _] ff">>, bindings => []}, Module:describe(Left))
    end).

%% The same monitors to the letter.
without_an_error_nothing_changes_test() ->
    File = filename:join("/tmp", lists:concat([?MODULE, os:getpid(), ".hml"])),
    Text = fun(Formula, Options) ->
        ok = file:write_file(File, spec(Formula)),
        {ok, Erlang} = witness_spec:to_erlang(File, Options),
        unicode:characters_to_binary(Erlang)
    end,
    Timed = "[_ ? ask] within 10 ns <_ : _ ! answer> tt",
    try
        ?assertEqual(Text(Timed, #{}), Text(Timed, #{clocks => 0})),
        ?assertNotEqual(Text(Timed, #{}), Text(Timed, #{clocks => 1})),
        Untimed = "[_ ? ask at _] [_ ? _ at T] ff",
        ?assertEqual(Text(Untimed, #{}), Text(Untimed, #{clocks => 1}))
    after
        file:delete(File)
    end,
    ?assertError({bad_option, clocks}, witness_spec:compile_string(~"s", ~"with m:f(_) none.", #{clocks => -1})).

spec(Formula) -> ["with m:f(_) over _ ? _, _ : _ ! _ check ", Formula, "."].

with(Spec, Test) ->
    {ok, #{module := Module} = Map, _} = witness_spec:compile_string(~"clocks", iolist_to_binary(Spec), #{clocks => ?ERROR_NS}),
    try Test(Module) after witness_spec:unload(Map) end.

machine(Module) ->
    witness_monitor_machine:new(#{monitor => {Module, 1}, process => self(), signature => {m, f, [0]}, explain => 1,
                                  stop_time => witness_monitor_stop_time:none()}).

%% The verdict, and whether it falls at an event, before one because of a deadline, or at the end.
verdict(Formula, Events) ->
    with(spec(Formula), fun(Module) ->
        {ok, Machine} = machine(Module),
        case witness_monitor_machine:run([event(E) || E <- Events], Machine) of
            {[], {decided, Outcome}} -> told(Outcome);
            {[], {ok, Next}} ->
                {[], #{verdict := Verdict, info := Info}} = witness_monitor_machine:finish(complete, Next),
                {maps:get(reason, Info, Verdict), 'end'}
        end
    end).

told(#{verdict := inconclusive, info := #{reason := Reason}, event := #{}}) -> {Reason, at};
told(#{verdict := Verdict, event := #{}}) -> {Verdict, at};
told(#{verdict := Verdict, info := #{deadline := At}}) -> {Verdict, before, At}.

event({Time, ask}) -> {recv, self(), undefined, ask, Time};
event({Time, {ask, _} = Message}) -> {recv, self(), undefined, Message, Time};
event({Time, Message}) -> {send, self(), self(), Message, Time}.
