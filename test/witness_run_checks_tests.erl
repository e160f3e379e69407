-module(witness_run_checks_tests).
-moduledoc """
How reports of checks are judged at the end of a run. The systems of `m:witness_checks_SUITE` have all of it together.
""".
-include_lib("eunit/include/eunit.hrl").

-define(STACK, [{m, f, 1, [{file, "m.erl"}, {line, 1}]}]).

%% Processes are numbers here.

a_crash_that_no_process_was_told_of_is_a_violation_test() ->
    ?assertEqual([{1, no}], judged([ends(1, {oops, ?STACK}, [])])).

a_crash_that_a_process_was_told_of_is_none_test() ->
    ?assertEqual([{1, yes}], judged([ends(1, {oops, ?STACK}, []), ends(2, normal, [{1, {oops, ?STACK}}])])),
    ?assertEqual([{1, yes}], judged([ends(2, normal, [{1, {oops, ?STACK}}]), ends(1, {oops, ?STACK}, [])])).

%% The same process, but another error: a name can be given again, a process cannot.
another_error_is_another_crash_test() ->
    ?assertEqual([{1, no}], judged([ends(1, {oops, ?STACK}, []), ends(2, normal, [{1, {other, ?STACK}}])])),
    ?assertEqual([{1, no}], judged([ends(1, {oops, ?STACK}, []), ends(2, normal, [{3, {oops, ?STACK}}])])),
    ?assertEqual([{1, yes}], judged([ends(1, {oops, ?STACK}, []), ends(2, normal, [{{named, node()}, {oops, ?STACK}}])])).

%% It was told, and ends by it all the same.
what_passes_the_error_on_handles_nothing_test() ->
    ?assertEqual([{1, no}, {2, yes}],
                 judged([ends(1, {oops, ?STACK}, []), ends(2, {oops, ?STACK}, [{1, {oops, ?STACK}}])])),
    ?assertEqual([{1, no}, {2, yes}],
                 judged([ends(1, {oops, ?STACK}, []), ends(2, in_call({oops, ?STACK}), [{1, {oops, ?STACK}}])])),
    %% One that ends by another error later has handled this one.
    ?assertEqual([{1, yes}, {2, no}],
                 judged([ends(1, {oops, ?STACK}, []), ends(2, {worse, ?STACK}, [{1, {oops, ?STACK}}])])).

a_message_that_is_not_taken_handles_nothing_test() ->
    Reports = [ends(1, {oops, ?STACK}, [], 5), ends(2, {oops, ?STACK}, [], 10), ends(self(), normal, [{1, {oops, ?STACK}}])],
    ?assertEqual([{1, yes}, {2, yes}], judged(Reports)),
    Untaken = fun(IsLong, Message) ->
        Waiting = #{self() => {IsLong, [hello, Message]}},
        concluded(true, added(Reports, looked(remaining([], true), Waiting, new())))
    end,
    ?assertEqual([{1, no}, {2, yes}], Untaken(true, {'EXIT', 1, {oops, ?STACK}})),
    ?assertEqual([{1, no}, {2, yes}], Untaken(true, {'DOWN', ref, process, 1, {oops, ?STACK}})),
    ?assertEqual([{1, yes}, {2, yes}], Untaken(true, {'EXIT', 1, {other, ?STACK}})),
    %% It may take it, if it goes on.
    ?assertEqual([{1, inconclusive}, {2, yes}], Untaken(false, {'EXIT', 1, {oops, ?STACK}})),
    ?assertEqual([{1, yes}, {2, yes}], Untaken(false, {'EXIT', 1, {other, ?STACK}})).

one_that_handles_what_was_passed_on_handles_all_of_it_test() ->
    ?assertEqual([{1, yes}, {2, yes}],
                 judged([ends(1, {oops, ?STACK}, []), ends(2, in_call({oops, ?STACK}), [{1, {oops, ?STACK}}]),
                         ends(3, normal, [{2, in_call({oops, ?STACK})}])])).

the_first_to_end_is_the_one_test() ->
    ?assertEqual([{7, no}, {1, yes}, {3, yes}],
                 judged([ends(1, {oops, ?STACK}, [], 20), ends(7, {oops, ?STACK}, [], 10), ends(3, {oops, ?STACK}, [], 30)])),
    [#{note := Note, info := #{processes := [7, 1, 3, 4, 5, 6]}} | _] =
        outcomes([ends(P, {oops, ?STACK}, [], T) || {P, T} <- [{1, 20}, {7, 10}, {3, 30}, {4, 40}, {5, 50}, {6, 60}]]),
    ?assertEqual(~"no process handled it; by the same error ended 1, 3, 4 and 2 other processes", Note).

crashes_are_in_the_order_of_their_times_test() ->
    ?assertEqual([{2, no}, {1, no}], judged([ends(1, {b, ?STACK}, [], 20), ends(2, {a, ?STACK}, [], 10)])).

%% A process that handled it may be among those with a gap.
with_missing_events_nothing_is_certain_test() ->
    Gap = #{verdict => inconclusive, reason => {gap, overflow}, info => undefined, event => undefined},
    {{report, Gap}, C} = witness_run_checks:add(crashes, Gap, meta(2), new()),
    ?assertEqual([{1, inconclusive}], concluded(true, added([ends(1, {oops, ?STACK}, [])], C))),
    ?assertEqual([{1, inconclusive}], concluded(false, added([ends(1, {oops, ?STACK}, [])], new()))),
    ?assertEqual([{1, yes}], concluded(false, added([ends(1, {oops, ?STACK}, []), ends(2, normal, [{1, {oops, ?STACK}}])], new()))).

%% The process that is told of it may not have run since.
a_crash_shortly_before_observation_stops_is_not_certain_test() ->
    Verdicts = fun(Times, StoppedAtMs) ->
        C = added([ends(P, {oops, ?STACK}, [], Ms * 1_000_000) || {P, Ms} <- Times], new()),
        Judged = witness_run_checks:conclude(true, StoppedAtMs, C),
        [{P, Verdict, Reason} || {#{verdict := Verdict, reason := Reason}, #{process := P}} <- Judged]
    end,
    ?assertEqual([{1, no, undefined}], Verdicts([{1, 500}], 1501)),
    ?assertEqual([{1, inconclusive, stopped}], Verdicts([{1, 500}], 1500)),
    ?assertEqual([{1, no, undefined}], Verdicts([{1, 500}], none)),
    %% Or a process that is told of the last one that the error was passed on to.
    ?assertEqual([{1, inconclusive, stopped}, {2, yes, undefined}], Verdicts([{1, 500}, {2, 600}], 1550)).

one_that_was_told_of_too_many_is_not_certain_test() ->
    {Outcome = #{info := Info}, Meta} = ends(2, normal, [{9, {oops, ?STACK}}]),
    {{report, #{verdict := yes}}, C} = witness_run_checks:add(crashes, Outcome#{info := Info#{more := true}}, Meta, new()),
    ?assertEqual([{1, inconclusive}], concluded(true, added([ends(1, {oops, ?STACK}, [])], C))).

too_many_are_told_of_test() ->
    {ok, State, undefined} = witness_check_crashes:init({m, f, []}, 1, undefined),
    {_, #{told := Told, more := More}} = witness_check_crashes:handle_end(complete, lists:foldl(fun(N, S) ->
        {ok, Next} = witness_check_crashes:handle_event({recv, 1, N, {'EXIT', N, {oops, ?STACK}}, 0}, S),
        Next
    end, State, lists:seq(1, 10_001))),
    ?assertEqual({10_000, true}, {map_size(Told), More}).

the_option_has_all_checks_test() ->
    {ok, #{type := {list, {one_of, Named}}}} = witness_option:find(checks, witness_option_schema:run()),
    ?assertEqual(witness_check:names(), Named).

each_check_is_known_by_its_name_test() ->
    ?assertEqual([{ok, Check} || Check <- witness_check:names()],
                 [witness_check:of_spec(witness_check:spec(Check)) || Check <- witness_check:names()]),
    [?assertEqual(error, witness_check:of_spec(Spec)) || Spec <- [~"check", ~"check x.hml:1", ~"a.hml:1"]].

%% A monitor in a shared process, in the tracer, or in a process of the system.
the_monitor_harms_no_other_test() ->
    [begin
         ?assert(witness_monitor_safety:is_bounded(Monitor)),
         ?assert(witness_monitor_safety:computes_anywhere(Monitor))
     end || {_, {Monitor, _}} <- witness_check:monitors(witness_check:names())].

a_supervisor_gives_up_only_after_it_has_started_a_child_again_test() ->
    Verdict = fun(Events) ->
        {ok, State} = witness_check_restarts:init({m, f, []}, 1, undefined),
        lists:foldl(fun(Event, {ok, S}) -> witness_check_restarts:handle_event(Event, S) end, {ok, State},
                    [{init, 1, 0, {m, f, []}, undefined} | Events])
    end,
    Starts = fun(P) -> {fork, 1, P, {server, init, [x]}, undefined} end,
    Told = fun(P, Reason) -> {recv, 1, P, {'EXIT', P, Reason}, undefined} end,
    Again = [Starts(2), Told(2, crash), Starts(3), Told(3, crash)],
    ?assertEqual({verdict, no, #{child => {server, init, 1}, reason => crash, restarts => 1}},
                 Verdict(Again ++ [{exit, 1, shutdown, 0}])),
    Yes = {verdict, yes, undefined},
    ?assertEqual(Yes, Verdict(Again ++ [{exit, 1, normal, 0}])),
    ?assertEqual(Yes, Verdict(Again ++ [Told(0, shutdown), {exit, 1, shutdown, 0}])),
    Stops = {recv, 1, 9, {system, {9, tag}, {terminate, shutdown}}, undefined},
    ?assertEqual(Yes, Verdict(Again ++ [Stops, {exit, 1, shutdown, 0}])),
    ?assertEqual(Yes, Verdict([Starts(2), Told(2, crash), {exit, 1, shutdown, 0}])),
    ?assertEqual(Yes, Verdict([Starts(2), Told(2, crash), Starts(3), Told(3, normal), {exit, 1, shutdown, 0}])),
    ?assertEqual(Yes, Verdict([Starts(2), Starts(3), Told(2, crash), Told(9, crash), {exit, 1, shutdown, 0}])).

what_was_called_is_named_test() ->
    Explained = fun(Why) ->
        Outcome = #{verdict => no, info => #{unanswered => server, why => Why}},
        {{report, #{note := Note}}, _} = witness_run_checks:add(calls, Outcome, meta(1), new()),
        Note
    end,
    ?assertEqual(~"its call of server never got an answer", Explained(never)),
    ?assertEqual(~"its call of server got no answer in time", Explained(given_up)).

a_call_that_waits_when_a_run_is_stopped_is_undecided_test() ->
    {ok, State} = witness_check_calls:init({m, f, []}, 1, undefined),
    {ok, Pending} = witness_check_calls:handle_event({send, 1, 2, {'$gen_call', {1, [alias | make_ref()]}, request}, 0}, State),
    ?assertEqual({inconclusive, undefined}, witness_check_calls:handle_end(stopped, Pending)),
    ?assertMatch({no, #{unanswered := 2, why := never}}, witness_check_calls:handle_end(complete, Pending)),
    %% That of another process, which is passed on.
    ?assertEqual({ok, State},
                 witness_check_calls:handle_event({send, 1, 2, {'$gen_call', {3, [alias | make_ref()]}, request}, 0}, State)).

a_deadlock_is_the_system_s_test() ->
    C = witness_run_checks:new([deadlock], started),
    ?assertMatch([#{spec := ~"check deadlock"}], witness_run_checks:monitored(C)),
    ?assertEqual([{undefined, yes}], concluded(true, C)),
    ?assertEqual([{undefined, yes}], concluded(true, looked(remaining([], true), #{}, C))),
    %% Not all processes were looked at.
    ?assertEqual([{undefined, inconclusive}], concluded(true, looked(remaining([], false), #{}, C))),
    %% What waits may wait for ever. A process that is suspended later waits all the same.
    Waiting = looked(remaining([], true), #{self() => {true, []}}, C),
    ?assertEqual([{undefined, inconclusive}], concluded(true, Waiting)),
    ?assertEqual([{undefined, yes}],
                 concluded(true, looked(remaining([], true), #{self() => {false, [hello]}}, C))),
    ?assertEqual([{undefined, yes}], concluded(true, looked(remaining([], true), #{}, Waiting))),
    #{processes := [Process]} = Remaining = remaining([], true),
    Suspended = Remaining#{processes := [Process#{suspended := true}]},
    ?assertEqual([{undefined, inconclusive}], concluded(true, looked(Suspended, #{}, Waiting))),
    ?assertEqual([{self(), no}], concluded(true, looked(remaining([[self()]], false), #{}, C))),
    ?assertEqual([], concluded(true, looked(remaining([[self()]], true), #{}, new()))).

looked(Remaining, Waiting, C) -> witness_run_checks:add_remaining(Remaining, Waiting, {0, none}, C).

a_mailbox_that_was_longer_at_each_look_grows_test() ->
    GrowsIn = fun(State, Looks) ->
        C = lists:foldl(fun({Ms, Length, Oldest}, Acc) ->
            #{processes := [Process]} = Remaining = with_mailbox(Length, false),
            Waiting = case Oldest of unknown -> #{}; _ -> #{self() => {false, [Oldest]}} end,
            witness_run_checks:add_remaining(Remaining#{processes := [Process#{state := State}]}, Waiting, {Ms, none}, Acc)
        end, witness_run_checks:new([mailboxes], started), Looks),
        concluded(true, C) =:= [{self(), no}]
    end,
    Grows = fun(Looks) -> GrowsIn(waits, Looks) end,
    Long = [{500, 200, unknown}, {1000, 400, unknown}, {2000, 800, unknown}, {4000, 1600, unknown}],
    ?assert(Grows(Long)),
    %% It was a burst that is worked off, or not.
    ?assertNot(Grows(Long ++ [{8000, 1, unknown}])),
    ?assertNot(Grows(Long ++ [{8000, 0, unknown}])),
    ?assert(Grows(Long ++ [{8000, 1500, unknown}])),
    ?assertNot(Grows(tl(Long))),
    ?assertNot(Grows([{Ms, Length div 2, Oldest} || {Ms, Length, Oldest} <- Long])),
    ?assertNot(Grows([{Ms div 2, Length, Oldest} || {Ms, Length, Oldest} <- Long])),
    ?assertNot(Grows([{500, 200, unknown}, {1000, 400, unknown}, {2000, 300, unknown}, {4000, 1600, unknown}])),
    %% Looks that follow each other at once are one.
    ?assertNot(Grows([{Ms, Length, unknown} || {Ms, Length} <- [{0, 100}, {10, 200}, {20, 300}, {4000, 1600}]])),
    %% A short one, of which the oldest message stays.
    Short = [{500, 5, old}, {1000, 10, old}, {2000, 20, old}, {4000, 40, unknown}],
    ?assert(Grows(Short)),
    %% It does a long job, and takes them after that.
    [?assertNot(GrowsIn(State, Short)) || State <- [runs, sleeps, calls]],
    ?assert(GrowsIn(runs, Long)),
    ?assertNot(Grows(lists:keyreplace(2000, 1, Short, {2000, 20, new}))),
    ?assertNot(Grows(lists:keyreplace(2000, 1, Short, {2000, 20, unknown}))),
    ?assertNot(Grows([{500, 1, old}, {1000, 2, old}, {2000, 3, old}, {4000, 4, old}])).

messages_are_never_taken_if_nothing_happens_any_more_test() ->
    C = witness_run_checks:new([mailboxes], started),
    Verdict = fun(IsIdle, Waiting, StoppedAtMs) ->
        Looked = witness_run_checks:add_remaining(with_mailbox(2, IsIdle), Waiting, {0, none}, C),
        [{#{verdict := V}, _}] = witness_run_checks:conclude(true, StoppedAtMs, Looked),
        V
    end,
    ?assertEqual(no, Verdict(true, #{self() => {true, [a, b]}}, 1)),
    ?assertEqual(no, Verdict(true, #{self() => {true, []}}, 1)),
    %% It may take them when others go on, or when it does.
    ?assertEqual(inconclusive, Verdict(false, #{self() => {true, [a, b]}}, 1)),
    ?assertEqual(yes, Verdict(true, #{self() => {false, [a, b]}}, 1)),
    %% The system has ended.
    ?assertEqual(yes, Verdict(true, #{self() => {true, [a, b]}}, none)).

%% What is stopped is suspended: then it is not known what it has done since the last look, nor that it waits.
a_process_that_is_suspended_takes_no_messages_test() ->
    Verdict = fun(IsIdle, IsLong) ->
        #{processes := [Process]} = Remaining = with_mailbox(2, IsIdle),
        Suspended = Remaining#{processes := [Process#{suspended := true, state := unknown}], idle := false},
        Looks = [{0, Remaining, #{self() => {IsLong, [a, b]}}}, {10, Suspended, #{self() => {false, [a, b]}}}],
        attached_verdict(mailboxes, started, Looks)
    end,
    ?assertEqual([no, inconclusive, yes], [Verdict(true, true), Verdict(false, true), Verdict(true, false)]).

with_mailbox(Length, IsIdle) ->
    #{processes := [Process]} = Remaining = remaining([], true),
    Remaining#{processes := [Process#{mailbox := Length, state := waits}], idle := IsIdle}.

%% Of processes that ran already, it is not known for how long they have waited.
no_deadlock_among_some_processes_needs_time_test() ->
    Waits = (remaining([], true))#{processes := [(hd(maps:get(processes, remaining([], true))))#{state := waits}]},
    Calls = (remaining([], true))#{processes := [(hd(maps:get(processes, remaining([], true))))#{state := calls}]},
    Verdict = fun(Watched, Remaining, LooksMs) -> attached_verdict(deadlock, Watched, [{Ms, Remaining, #{}} || Ms <- LooksMs]) end,
    ?assertEqual([inconclusive, inconclusive, yes], [Verdict(attached, Waits, Looks) || Looks <- [[0], [0, 999], [0, 1000]]]),
    ?assertEqual([inconclusive, yes], [Verdict(attached, Calls, Looks) || Looks <- [[0, 999], [0, 1000]]]),
    ?assertEqual(yes, Verdict(started, Waits, [0])),
    %% It waits for no message.
    ?assertEqual(yes, Verdict(attached, remaining([], true), [0])),
    ?assertEqual(no, Verdict(attached, remaining([[self()]], true), [0])),
    ?assertEqual(inconclusive, Verdict(attached, remaining([], false), [0, 1000])).

%% A process that is not watched may still send what another one waits for.
an_untaken_message_among_some_processes_is_undecided_test() ->
    Looks = fun(Length, IsLong, LooksMs) ->
        [{Ms, with_mailbox(Length, true), #{self() => {IsLong, lists:duplicate(Length, a)}}} || Ms <- LooksMs]
    end,
    Verdict = fun(Watched, Length, IsLong, LooksMs) -> attached_verdict(mailboxes, Watched, Looks(Length, IsLong, LooksMs)) end,
    ?assertEqual(no, Verdict(started, 1, true, [0, 500, 1000, 4000])),
    ?assertEqual(inconclusive, Verdict(attached, 1, true, [0, 500, 1000, 4000])),
    %% It takes messages, and it was seen for long enough that its mailbox does not grow.
    ?assertEqual(yes, Verdict(attached, 1, false, [0, 500, 1000, 4000])),
    ?assertEqual(inconclusive, Verdict(attached, 1, false, [0, 500, 4000])),
    ?assertEqual(inconclusive, Verdict(attached, 1, false, [0, 3600, 3700, 4000])),
    ?assertEqual(inconclusive, Verdict(attached, 1, false, [0, 500, 1000, 2999])),
    ?assertEqual(yes, Verdict(started, 1, false, [0])),
    %% It has none.
    ?assertEqual(yes, Verdict(attached, 0, true, [0])).

a_mailbox_of_some_processes_that_grows_is_a_violation_test() ->
    Looks = [{Ms, with_mailbox(Length, false), #{}} || {Ms, Length} <- [{0, 100}, {500, 400}, {1000, 800}, {4000, 1600}]],
    ?assertEqual(no, attached_verdict(mailboxes, attached, Looks)).

attached_verdict(Check, Watched, Looks) ->
    C = lists:foldl(fun({Ms, Remaining, Waiting}, Acc) -> witness_run_checks:add_remaining(Remaining, Waiting, {Ms, none}, Acc) end,
                    witness_run_checks:new([Check], Watched), Looks),
    [{#{verdict := Verdict}, _}] = witness_run_checks:conclude(true, 1, C),
    Verdict.

checks_of_running_processes_are_those_without_a_reason_against_them_test() ->
    ?assertEqual([calls, late, deadlock, mailboxes, leaks], witness_check:attached_checks()),
    ?assertEqual([crashes, restarts],
                 lists:sort([Check || Check <- witness_check:names(), is_binary(witness_check:why_not_attached(Check))])).

%% Why they are refused: of a supervisor that runs already, its parent is not known, so nor is that it was told to end.
a_supervisor_that_ran_already_is_not_seen_to_be_told_to_end_test() ->
    {ok, State} = witness_check_restarts:attached({m, f, 1}, 1, undefined),
    Events = [{fork, 1, 2, {server, init, [x]}, undefined}, {recv, 1, 2, {'EXIT', 2, crash}, undefined},
              {fork, 1, 3, {server, init, [x]}, undefined}, {recv, 1, 0, {'EXIT', 0, shutdown}, undefined}],
    After = lists:foldl(fun(Event, S) -> {ok, Next} = witness_check_restarts:handle_event(Event, S), Next end, State, Events),
    ?assertMatch({verdict, no, _}, witness_check_restarts:handle_event({exit, 1, shutdown, 0}, After)).

a_call_before_the_attachment_is_not_judged_test() ->
    {ok, State} = witness_check_calls:attached({m, f, 1}, 1, undefined),
    {ok, State} = witness_check_calls:handle_event({recv, 1, 2, {[alias | make_ref()], ok}, 0}, State),
    GivesUp = {exit, 1, {timeout, {gen_server, call, [s, r]}}, 0},
    ?assertEqual({verdict, yes, undefined}, witness_check_calls:handle_event(GivesUp, State)),
    ?assertEqual({yes, undefined}, witness_check_calls:handle_end(stopped, State)).

what_is_there_a_while_after_the_end_is_a_leak_test() ->
    C = witness_run_checks:new([leaks], started),
    Verdict = fun(EndedForMs, StoppedAtMs) ->
        Looked = witness_run_checks:add_remaining(remaining([], true), #{}, {0, EndedForMs}, C),
        [{#{verdict := V} = Outcome, _}] = witness_run_checks:conclude(true, StoppedAtMs, Looked),
        {V, maps:get(note, Outcome, none)}
    end,
    {no, <<"still there after the end of the system:\n  ", _/binary>>} = Verdict(1000, 1),
    ?assertEqual({inconclusive, none}, Verdict(999, 1)),
    ?assertEqual({inconclusive, none}, Verdict(none, 1)),
    ?assertEqual({yes, none}, Verdict(1000, none)),
    None = (remaining([], true))#{count := 0, processes := []},
    ?assertEqual([{undefined, yes}], concluded(true, witness_run_checks:add_remaining(None, #{}, {0, none}, C))).

%% The rule is that of mailboxes: `a_mailbox_that_was_longer_at_each_look_grows_test'.
monitors_of_the_same_process_that_grow_are_a_leak_test() ->
    Verdict = fun(Watched, Counts) ->
        attached_verdict(leaks, Watched, [{Ms, monitoring(Repeatedly), #{}} || {Ms, Repeatedly} <- Counts])
    end,
    Of = fun(Target, Counts) -> [{Ms, [{Target, undefined, Count}]} || {Ms, Count} <- Counts] end,
    Grows = [{0, 200}, {500, 400}, {1000, 800}, {3000, 1600}],
    ?assertEqual([no, no], [Verdict(Watched, Of(target, Grows)) || Watched <- [started, attached]]),
    %% What is there when the run is stopped before the end of the system is undecided.
    ?assertEqual(inconclusive, Verdict(started, Of(target, tl(Grows)))),
    ?assertEqual(yes, Verdict(attached, Of(target, [{Ms, 2000} || {Ms, _} <- Grows]))),
    ?assertEqual(yes, Verdict(attached, Of(target, [{Ms, Count div 2} || {Ms, Count} <- Grows]))),
    %% Another process each time.
    ?assertEqual(yes, Verdict(attached, [{Ms, [{Ms, undefined, Count}]} || {Ms, Count} <- Grows])),
    %% It demonitors, or has ended.
    ?assertEqual(yes, Verdict(attached, Of(target, Grows ++ [{4000, 799}]))),
    ?assertEqual(no, Verdict(attached, Of(target, Grows ++ [{4000, 800}]))),
    ?assertEqual(yes, Verdict(attached, Of(target, Grows) ++ [{4000, []}])),
    %% At some looks its monitors were not read.
    ?assertEqual(no, Verdict(attached, Of(target, Grows) ++ [{4000, unknown}])),
    ?assertEqual(no, Verdict(attached, lists:sort([{700, unknown} | Of(target, Grows)]))),
    ?assertEqual(inconclusive, Verdict(attached, [{0, []}, {500, []}, {1000, []}, {4000, unknown}])),
    %% Too short.
    ?assertEqual([inconclusive, inconclusive],
                 [Verdict(attached, Of(target, Looks)) || Looks <- [tl(Grows), lists:droplast(Grows)]]),
    ?assertEqual(yes, Verdict(attached, [{0, []}])).

%% A process that is not watched is not to end. One that is not looked at may leak.
what_is_there_among_some_processes_is_no_leak_test() ->
    C = witness_run_checks:new([leaks], attached),
    Late = fun(Remaining) -> concluded_at(1, witness_run_checks:add_remaining(Remaining, #{}, {0, 1000}, C)) end,
    ?assertEqual([yes, inconclusive], [Late(remaining([], Whole)) || Whole <- [true, false]]).

a_leak_names_what_grows_and_what_it_holds_test() ->
    #{processes := [Process]} = Remaining = monitoring([{self(), undefined, 1600}, {{till, node()}, undefined, 2000}]),
    Looks = [{Ms, [{self(), shop, Count}, {{till, node()}, undefined, 2 * Count}]}
             || {Ms, Count} <- [{0, 200}, {500, 400}, {1000, 800}]],
    C = lists:foldl(fun({Ms, Repeatedly}, Acc) ->
        witness_run_checks:add_remaining(monitoring(Repeatedly), #{}, {Ms, none}, Acc)
    end, witness_run_checks:new([leaks], started), Looks),
    Holds = #{name => kitchen, tables => {1, [{orders, 12}]}, ports => {0, []}, monitors => 3},
    Last = Remaining#{processes := [Process#{holds => Holds, repeatedly := [{self(), shop, 1600}]}]},
    [{#{verdict := no, note := Grows}, #{process := P}}, {#{verdict := no, note := Left}, #{process := P}}] =
        witness_run_checks:conclude(true, 1, witness_run_checks:add_remaining(Last, #{}, {3000, 1000}, C)),
    Pid = pid_to_list(self()),
    ?assertEqual(self(), P),
    ?assertEqual({"\n  its monitors of " ++ Pid ++ " (shop) grow, without a demonitor: 200, 400, 800 and 1600", nomatch},
                 {string:find(unicode:characters_to_list(Grows), "\n"), string:find(Grows, "till")}),
    ?assertNotEqual(nomatch, string:find(Left, "; has the name kitchen and table orders (12 objects), monitors 3 processes")).

monitoring(Repeatedly) ->
    #{processes := [Process]} = Remaining = remaining([], true),
    Remaining#{processes := [Process#{repeatedly => Repeatedly}]}.

concluded_at(StoppedAtMs, C) ->
    [{#{verdict := Verdict}, _}] = witness_run_checks:conclude(true, StoppedAtMs, C),
    Verdict.

remaining(Circles, Whole) ->
    #{count => 1, requests => 0, servers => [], applications => [], circles => Circles, idle => true, whole => Whole,
      processes => [witness_run_remaining:describe(self())]}.

new() -> witness_run_checks:new([crashes], started).

in_call(Reason) -> {Reason, {gen_server, call, [server, request]}}.

meta(P) -> #{process => P, signature => {m, f, []}, spec => ~"check crashes", name => undefined}.

ends(P, Reason, Told) -> ends(P, Reason, Told, undefined).

%% What the monitor of a process reports.
ends(P, Reason, Told, Time) ->
    {ok, State, undefined} = witness_check_crashes:init({m, f, []}, P, undefined),
    After = lists:foldl(fun({Other, Why}, S) ->
        {ok, Next} = witness_check_crashes:handle_event({recv, P, Other, {'DOWN', ref, process, Other, Why}, undefined}, S),
        Next
    end, State, Told),
    Exit = {exit, P, Reason, Time},
    {verdict, Verdict, Info} = witness_check_crashes:handle_event(Exit, After),
    {#{verdict => Verdict, info => Info, reason => undefined, event => #{index => 1, event => Exit}}, meta(P)}.

added(Reports, C) ->
    lists:foldl(fun({Outcome, Meta}, Acc) ->
        {Reported, Next} = witness_run_checks:add(crashes, Outcome, Meta, Acc),
        case Reported of
            {report, #{verdict := yes}} -> ok;
            keep -> ok
        end,
        Next
    end, C, Reports).

judged(Reports) -> concluded(true, added(Reports, new())).

concluded(IsComplete, C) ->
    Judged = witness_run_checks:conclude(IsComplete, none, C),
    [{maps:get(process, Meta, undefined), Verdict} || {#{verdict := Verdict}, Meta} <- Judged].

outcomes(Reports) -> [Outcome || {Outcome, _} <- witness_run_checks:conclude(true, none, added(Reports, new()))].
