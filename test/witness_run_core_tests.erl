-module(witness_run_core_tests).
-moduledoc "Single steps of a run: what it does for an input, and in which order.".
-include_lib("eunit/include/eunit.hrl").

-define(OBSERVER, list_to_pid("<0.9999.1>")).
-define(RUNNER, list_to_pid("<0.9999.2>")).

the_system_is_launched_when_all_parts_run_test() ->
    {[launch], C} = step(start, core(#{})),
    {[], C1} = step({launched, ?RUNNER}, C),
    Root = ?RUNNER,
    ?assertMatch(#{phase := running, system := running, root := Root}, info(C1)).

a_node_is_observed_before_its_application_is_started_test() ->
    {Effects, C} = step(start, core(#{system => {application, a}, scope => node})),
    ?assertEqual([adopt_node, {start_applications, {application, a}}], Effects),
    ?assertMatch(#{system := starting}, info(C)).

callers_hear_of_the_start_after_the_launch_test() ->
    {_, C} = step(start, core(#{applications => [a]})),
    {[], C1} = step({call, await_started, from}, C),
    {Effects, C2} = step({applications_started, ?RUNNER}, C1),
    ?assertEqual([launch, {reply, from, ok}], Effects),
    ?assertMatch({[{reply, later, ok}], _}, step({call, await_started, later}, C2)).

a_system_that_does_not_start_ends_the_run_test() ->
    Reason = {not_started, a, boom},
    {_, C} = step(start, core(#{system => {application, a}})),
    {_, C1} = step({call, await_started, from}, C),
    {Effects, C2} = step({not_started, Reason}, C1),
    ?assertEqual([{reply, from, {error, {witness_run_application, Reason}}}, stop_instrument], Effects),
    ?assertMatch(#{system := {crashed, Reason}, outcome := untrusted}, summary(C2)).

a_run_drains_when_tree_and_system_have_ended_test() ->
    {[], C} = step({ended, all}, core(#{})),
    {Effects, C1} = step({system_ended, normal}, C),
    ?assertEqual({[stop_instrument], draining}, {Effects, witness_run_core:phase(C1)}).

a_run_without_halt_goes_on_when_the_system_has_ended_test() ->
    {[], C} = step({ended, all}, core(#{halt => false})),
    {[], C1} = step({system_ended, normal}, C),
    ?assertEqual(running, witness_run_core:phase(C1)).

a_run_that_is_stopped_replies_when_the_summary_was_delivered_test() ->
    {[note_remaining, stop_instrument], C} = step({call, stop, stopper}, awaited(core(#{}))),
    {Stopped, C1} = step({instrument_stopped, {ok, 3}}, C),
    ?assertEqual([{send_after, 50, overdue}, {enqueue, all_announced}], Stopped),
    {Closed, C2} = step(all_announced, C1),
    ?assertEqual([flush, close_log, close_history], Closed),
    {[notify_summary], C3} = step(flushed, C2),
    {Ended, C4} = step(summary_delivered, C3),
    ?assertEqual([{reply_summary, [waiter, stopper]}, stop], Ended),
    ?assertMatch({finished, #{tracers := 3}}, {witness_run_core:phase(C4), summary(C4)}).

a_finished_run_ends_before_it_replies_to_stop_test() ->
    C = finished(core(#{})),
    ?assertMatch({[{reply_summary, [from]}], _}, step({call, await, from}, C)),
    ?assertMatch({[{reply_summary, [from]}], _}, step({call, finish, from}, C)),
    ?assertMatch({[{stop_and_reply, from}], _}, step({call, stop, from}, C)).

a_run_ends_with_its_owner_in_each_phase_test() ->
    {_, Draining} = step({call, finish, from}, core(#{})),
    [?assertMatch({[stop], _}, step(owner_died, C)) || C <- [core(#{}), Draining, finished(core(#{}))]].

%% Verdicts that were reached before the death of the instrument remain: their reports are in the mailbox.
an_instrument_that_dies_while_it_stops_is_lost_after_earlier_reports_test() ->
    {_, C} = step({call, finish, from}, announced(core(#{}))),
    {Effects, C1} = step({instrument_stopped, {lost, noproc}}, C),
    ?assertEqual([freeze_counts, {send_after, 50, overdue}, {enqueue, {instrument_lost, noproc}}], Effects),
    {Verdict, C2} = step({verdict, ?RUNNER, outcome(yes)}, C1),
    ?assertMatch([{history_verdict, verdict, _, _}, {notify, #{verdict := yes}}], Verdict),
    {Lost, C3} = step({instrument_lost, noproc}, C2),
    ?assertEqual([{enqueue, all_announced}], Lost),
    ?assertMatch(#{outcome := untrusted, verdicts := #{yes := 1, inconclusive := 0}, warnings := [#{code := tracer_lost}]},
                 summary(C3)).

the_death_of_the_instrument_is_a_gap_for_each_monitor_test() ->
    {Effects, C} = step({'EXIT', ?OBSERVER, {shutdown, {given_up, memory}}}, announced(core(#{}))),
    ?assertEqual([freeze_counts, {gap, ?RUNNER, memory}, {send_after, 50, overdue}, {enqueue, all_announced}], Effects),
    ?assertMatch({draining, #{outcome := untrusted, warnings := [#{code := memory}]}}, {witness_run_core:phase(C), summary(C)}).

%% They end with the others, and would not have to.
a_rate_that_is_exceeded_names_the_checks_that_need_no_events_test() ->
    Text = fun(System, Checks) ->
        {_, C} = step({rate_exceeded, "too many"}, core(#{system => System, checks => Checks})),
        #{warnings := [#{code := rate, text := Told}]} = summary(C),
        Told
    end,
    ?assertEqual(~"too many; deadlock and mailboxes have ended, too, and without other checks would need no events",
                 Text({attach, [x]}, [calls, deadlock, mailboxes])),
    ?assertEqual(~"too many; deadlock has ended, too, and without other checks would need no events", Text(node, [deadlock, late])),
    ?assertEqual(~"too many", Text(node, [calls])),
    ?assertEqual(~"too many", Text({m, f, []}, [calls, deadlock])).

a_monitor_that_writes_the_log_and_misses_something_gets_a_gap_test() ->
    Hidden = (meta())#{spec := log, name := undefined},
    {[{link, _}], C} = step({monitor, ?RUNNER, Hidden}, core(#{})),
    {Effects, C1} = step({verdict, ?RUNNER, (outcome(inconclusive))#{reason := {gap, late}}}, C),
    ?assertMatch([{history_verdict, verdict, _, _}, {log_gap, _, {gap, late}}], Effects),
    ?assertMatch(#{monitored := 0, verdicts := #{inconclusive := 0}, warnings := [#{code := log_incomplete} | _]}, summary(C1)).

monitors_that_are_overdue_are_killed_and_end_the_run_test() ->
    {_, C} = step({call, finish, from}, announced(core(#{}))),
    {_, C1} = step({instrument_stopped, {ok, 1}}, C),
    {[], C2} = step(all_announced, C1),
    {Effects, C3} = step(overdue, C2),
    ?assertMatch([{kill, _}, {history_verdict, verdict, _, _}, {notify, #{reason := {crashed, overdue}}},
                  flush, close_log, close_history], Effects),
    ?assertMatch(#{outcome := untrusted}, summary(C3)).

%% Its monitors may be in its own process.
a_log_that_is_overdue_is_given_up_first_test() ->
    {_, C} = step({call, finish, from}, core(#{system => {log, {file, "x"}}})),
    {[{send_after, 50, overdue}], C1} = step({instrument_stopped, later}, C),
    {[give_up_instrument], C2} = step(overdue, C1),
    {Effects, _} = step(given_up, C2),
    ?assertEqual([{kill, ?OBSERVER}], Effects).

a_monitor_that_is_announced_after_the_summary_is_killed_test() ->
    {Effects, C} = step({monitor, ?RUNNER, meta()}, finished(core(#{}))),
    ?assertEqual([{kill, ?RUNNER}], Effects),
    ?assertMatch({[], C}, step({verdict, ?RUNNER, outcome(no)}, C)),
    ?assertMatch(#{monitored := 0, verdicts := #{no := 0}}, summary(C)).

what_is_found_in_a_log_is_acknowledged_after_its_verdicts_test() ->
    Checked = #{started => [{meta(), 1}], monitors => [meta()], covered => [], counted => [],
                found => [{verdict, meta(), 7, outcome(no)}]},
    {Effects, C} = step({checked, 5, Checked}, core(#{system => {log, {file, "x"}}})),
    ?assertMatch([{history_monitor, undefined, _}, {history_verdict, verdict, _, _}, {notify, #{log := ~"x:7"}},
                  {acknowledge, 5}], Effects),
    ?assertMatch(#{outcome := violated, monitored := 1}, summary(C)).

each_verdict_is_asked_for_as_long_as_some_are_kept_test() ->
    {Effects, C} = step({verdict, ?RUNNER, outcome(yes)}, announced(core(#{max_verdicts => 1}))),
    ?assertMatch([_, {notify, _}, {report_each, false}], Effects),
    ?assertMatch({[{report_each, true}], _}, step(subscribed, C)).

a_duration_ends_a_run_as_planned_test() ->
    {[note_remaining, stop_instrument], C} = step({limit, duration}, announced(core(#{duration => 70}))),
    ?assertMatch(#{outcome := ok, warnings := [#{code := duration} | _]}, summary(C)).

%% What is still there concerns only a system that the run has started, and that has not ended.
what_remains_is_noted_at_an_early_end_test_() ->
    [{lists:flatten(io_lib:format("~tp", [System])), fun() ->
         {Effects, _} = step({call, finish, from}, core(#{system => System})),
         ?assertEqual(Noted, lists:member(note_remaining, Effects))
     end} || {System, Noted} <- [{{m, f, []}, true}, {{application, a}, true}, {{attach, []}, false}, {node, false},
                                 {{children, []}, false}, {{log, {file, "f"}}, false}]].

%% While the system is still observed; and what is found is told before the summary.
a_deadlock_is_looked_for_when_observation_ends_test() ->
    {[note_remaining, stop_instrument], C} = step({call, finish, from}, core(#{checks => [deadlock]})),
    Circle = #{count => 1, circles => [[self()]], processes => [witness_run_remaining:describe(self())],
               servers => [], applications => [],
               idle => true, whole => true},
    {[], C1} = step({remaining, Circle, #{}}, C),
    {_, C2} = step({instrument_stopped, {ok, 1}}, C1),
    {[flush, close_log, close_history], C3} = step(all_announced, C2),
    {[{notify, Verdict}, notify_summary], C4} = step(flushed, C3),
    ?assertMatch(#{verdict := no, spec := ~"check deadlock"}, Verdict),
    ?assertMatch(#{outcome := violated}, summary(C4)).

checks_look_again_and_again_while_the_system_runs_test() ->
    C = core(#{checks => [crashes]}),
    {[check_remaining, {send_after, 500, check}], C1} = witness_run_core:step(check, 1500, C),
    {[check_remaining, {send_after, 1000, check}], _} = witness_run_core:step(check, 2000, C1),
    {[check_remaining, {send_after, 60_000, check}], _} = witness_run_core:step(check, 1_000_000, C1),
    {[note_remaining, stop_instrument], C2} = step({call, finish, from}, C1),
    ?assertMatch({[], _}, step(check, C2)),
    ?assertMatch({[check_remaining, stop_instrument], _}, step({call, finish, from}, core(#{system => node, checks => [crashes]}))).

%% A look costs something, and these checks need none.
checks_of_calls_look_at_no_processes_test() ->
    C = core(#{checks => [calls, restarts], system => {attach, []}}),
    ?assertMatch({[], _}, step(first_check, C)),
    ?assertMatch({[{send_after, _, check}], _}, step(check, C)),
    ?assertMatch({[stop_instrument], _}, step({call, finish, from}, C)),
    ?assertMatch({[check_remaining], _}, step(first_check, core(#{checks => [calls, deadlock], system => {attach, []}}))).

%% What is still there after the end of the system ends the run, if it does nothing.
what_is_left_is_not_waited_for_test() ->
    Process = witness_run_remaining:describe(self()),
    Left = fun(State, IdleMs) ->
        #{count => 1, circles => [], processes => [Process#{state := State, idle_ms := IdleMs}], servers => [], applications => [],
          idle => true, whole => true}
    end,
    Ended = fun(Check, Remaining) ->
        {_, C} = witness_run_core:step({system_ended, normal}, 2000, core(#{checks => [Check]})),
        {Effects, _} = witness_run_core:step({remaining, Remaining, #{}}, 3000, C),
        Effects =/= []
    end,
    ?assertMatch({[{send_after, 1000, check_rest}], _}, step({system_ended, normal}, core(#{checks => [leaks]}))),
    ?assertMatch({[], _}, step({system_ended, normal}, core(#{checks => [crashes]}))),
    ?assertEqual([true, true, false], [Ended(Check, Left(waits, 1000)) || Check <- [leaks, mailboxes, crashes]]),
    ?assertEqual([false, false, false],
                 [Ended(leaks, Left(State, Ms)) || {State, Ms} <- [{waits, 999}, {runs, 1000}, {sleeps, 1000}]]),
    %% Too early, and before the end of the system.
    {_, C} = witness_run_core:step({system_ended, normal}, 2001, core(#{checks => [leaks]})),
    ?assertMatch({[], _}, witness_run_core:step({remaining, Left(waits, 1000), #{}}, 3000, C)),
    ?assertMatch({[], _}, step({remaining, Left(waits, 1000), #{}}, core(#{checks => [leaks]}))).

the_rate_is_checked_only_while_the_run_gathers_test() ->
    Rate = {1, 2, 3},
    {[{check_rate, Rate}], C} = step({limit, Rate}, core(#{})),
    {_, C1} = step({rate_exceeded, "too many"}, C),
    ?assertMatch({[], _}, step({limit, Rate}, C1)),
    ?assertMatch(#{outcome := untrusted}, summary(C1)).

time_stops_with_observation_test() ->
    {_, C} = witness_run_core:step({call, finish, from}, 1700, core(#{})),
    ?assertMatch(#{elapsed_ms := 700}, witness_run_core:summary(counts(), fun() -> [] end, 9000, C)),
    ?assertMatch(#{elapsed_ms := 8000}, witness_run_core:summary(counts(), fun() -> [] end, 9000, core(#{}))).

replaced_specifications_settle_after_earlier_announcements_test() ->
    {Effects, _} = step({replaced, [], [#{code => specification, text => ~"w"}]}, core(#{})),
    ?assertEqual([{enqueue, {settled, 1}}], Effects).

an_unknown_message_changes_nothing_test() ->
    C = core(#{}),
    ?assertEqual({[], C}, step({hello, world}, C)).

%% --- help ------------------------------------------------------------------------

core(Options) ->
    Defaults = #{system => {m, f, []}, applications => [], scope => tree, halt => true, redact => false, drain => 50,
                 max_verdicts => 10, specs => [], checks => [], on_verdict => undefined, satisfied => told,
                 history => false},
    witness_run_core:new(maps:merge(Defaults, Options), ?OBSERVER, 1000, [], {[], []}).

step(Input, C) -> witness_run_core:step(Input, 1500, C).

awaited(C) ->
    {[], C1} = step({call, await, waiter}, C),
    C1.

announced(C) ->
    {Effects, C1} = step({monitor, ?RUNNER, meta()}, C),
    ?assertEqual([{history_monitor, ?RUNNER, meta()}, {link, ?RUNNER}], Effects),
    C1.

finished(C) ->
    lists:foldl(fun(Input, A) -> {_, A1} = step(Input, A), A1 end, C,
                [{call, finish, from}, {instrument_stopped, {ok, 1}}, all_announced, flushed, summary_delivered]).

summary(C) -> witness_run_core:summary(counts(), fun() -> [] end, 2000, C).

info(C) -> witness_run_core:info(counts(), C).

counts() -> #{processes => 1, events => 2, held => 0}.

meta() -> #{process => ?RUNNER, signature => {m, f, []}, spec => ~"a.hml:1", name => ~"p"}.

outcome(Verdict) -> (witness_monitor_machine:failure_outcome(undefined))#{verdict := Verdict}.
