-module(witness_run_monitors_tests).
-moduledoc "Monitors that report by themselves, and those that a host answers for: early, late, and after a death.".
-include_lib("eunit/include/eunit.hrl").

meta() -> #{process => self(), signature => {m, f, []}, spec => ~"a.hml:1", name => ~"p"}.

verdict(Reader) -> {verdict, Reader, #{verdict => yes}}.

%% The number of a process that is never called.
process(N) -> list_to_pid("<0." ++ integer_to_list(N) ++ ".0>").

announced(Readers) ->
    lists:foldl(fun(Reader, A) -> {[], _, A1} = witness_run_monitors:announce(Reader, meta(), A), A1 end,
                witness_run_monitors:new(), Readers).

reports_before_the_announcement_are_kept_in_order_test() ->
    Reader = {process(1), 1},
    Slice = {slice, Reader, #{verdict => no}},
    {early, R1} = witness_run_monitors:take_report(Slice, witness_run_monitors:new()),
    {early, R2} = witness_run_monitors:take_report(verdict(Reader), R1),
    {Reports, _, R3} = witness_run_monitors:announce(Reader, meta(), R2),
    ?assertEqual([Slice, verdict(Reader)], Reports),
    {Meta, R4} = witness_run_monitors:take_report(Slice, R3),
    ?assertEqual({meta(), 1}, {Meta, witness_run_monitors:count(R4)}),
    {_, R5} = witness_run_monitors:take_report(verdict(Reader), R4),
    ?assertEqual(0, witness_run_monitors:count(R5)).

the_run_is_linked_to_each_runner_and_once_to_each_host_test() ->
    [Runner, Host] = [process(1), process(2)],
    {[], Links, R} = witness_run_monitors:announce(Runner, meta(), witness_run_monitors:new()),
    ?assertEqual([{link, Runner}], Links),
    {[], HostLinks, R1} = witness_run_monitors:announce({Host, 1}, meta(), R),
    ?assertEqual([{link, Host}], HostLinks),
    ?assertMatch({[], [], _}, witness_run_monitors:announce({Host, 2}, meta(), R1)),
    %% A link to a dead host says so, also for monitors that are announced later.
    {_, R2} = witness_run_monitors:handle_exit(Host, killed, R1),
    ?assertMatch({[], [{link, Host}], _}, witness_run_monitors:announce({Host, 3}, meta(), R2)).

the_death_of_a_host_ends_what_it_has_not_reported_test() ->
    [Host, Other] = [process(1), process(2)],
    {_, R1} = witness_run_monitors:take_report(verdict({Host, 2}), announced([{Host, 1}, {Host, 2}, {Other, 1}, {Host, 3}])),
    {Reports, R2} = witness_run_monitors:handle_exit(Host, kill, R1),
    ?assertMatch([{verdict, {Host, 1}, #{verdict := inconclusive, reason := {gap, tracer_lost}}},
                  {verdict, {Host, 3}, #{verdict := inconclusive, reason := {gap, tracer_lost}}}],
                 lists:sort(Reports)),
    %% A monitor of it that is announced only now is known to be dead too.
    {[], [{link, Host}], R3} = witness_run_monitors:announce({Host, 4}, meta(), R2),
    {Late, _} = witness_run_monitors:handle_exit(Host, noproc, R3),
    ?assert(lists:member({Host, 4}, [Reader || {verdict, Reader, _} <- Late])),
    ?assertNot(lists:keymember({Other, 1}, 2, Late)).

a_runner_that_dies_before_it_is_announced_says_why_test() ->
    Runner = process(1),
    {[], R} = witness_run_monitors:handle_exit(Runner, {badmatch, 1}, witness_run_monitors:new()),
    ?assertMatch({[{verdict, Runner, #{reason := {crashed, {badmatch, 1}}}}], _, _},
                 witness_run_monitors:announce(Runner, meta(), R)).

where_events_are_missing_a_host_has_no_later_word_test() ->
    [Runner, Host] = [process(1), process(2)],
    {[{verdict, {Host, 1}, #{reason := {gap, memory}}} = Gap], Effects, R3} =
        witness_run_monitors:give_up(memory, announced([Runner, {Host, 1}])),
    %% The runner gets the gap, and reports itself how its monitor has ended.
    ?assertEqual([{gap, Runner, memory}], Effects),
    {_, R4} = witness_run_monitors:take_report(Gap, R3),
    ?assertEqual({early, R4}, witness_run_monitors:take_report(verdict({Host, 1}), R4)),
    ?assertMatch({[{verdict, {Host, 2}, #{reason := {gap, memory}}}], [], _},
                 witness_run_monitors:announce({Host, 2}, meta(), R4)),
    ?assertMatch({#{}, _}, witness_run_monitors:take_report(verdict(Runner), R4)).

a_runner_that_is_announced_after_the_gap_gets_it_before_the_link_test() ->
    {[], [], R} = witness_run_monitors:give_up(memory, witness_run_monitors:new()),
    ?assertMatch({[], [{gap, _, memory}, {link, _}], _}, witness_run_monitors:announce(process(1), meta(), R)).

a_monitor_that_is_overdue_is_killed_test() ->
    [Runner, Host] = [process(1), process(2)],
    {Reports, Effects} = witness_run_monitors:kill(announced([Runner, {Host, 1}])),
    ?assertEqual([{kill, Runner}], Effects),
    ?assertMatch([{verdict, Runner, #{reason := {crashed, overdue}}}, {verdict, {Host, 1}, #{reason := {crashed, overdue}}}],
                 lists:sort(Reports)).
