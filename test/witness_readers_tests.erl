-module(witness_readers_tests).
-moduledoc "Monitors that report by themselves, and those that a host answers for: early, late, and after a death.".
-include_lib("eunit/include/eunit.hrl").

meta() -> #{process => self(), signature => {m, f, []}, spec => ~"a.hml:1", name => ~"p"}.

verdict(Reader) -> {verdict, Reader, #{verdict => yes}}.

host() -> spawn(fun() -> receive stop -> ok end end).

%% This process acts as a run: it is linked to a process that ends. Returns what a run makes of that.
ends(Pid, Reason, Readers) ->
    exit(Pid, Reason),
    receive {'EXIT', Pid, Seen} -> witness_run_monitors:ended(Pid, Seen, Readers) end.

as_a_run(Test) ->
    {spawn, fun() ->
        process_flag(trap_exit, true),
        Test()
    end}.

reports_before_the_announcement_are_kept_in_order_test_() ->
    as_a_run(fun() ->
        Reader = {host(), 1},
        Slice = {slice, Reader, #{verdict => no}},
        {early, R1} = witness_run_monitors:report(Slice, witness_run_monitors:new()),
        {early, R2} = witness_run_monitors:report(verdict(Reader), R1),
        {Reports, R3} = witness_run_monitors:announce(Reader, meta(), R2),
        ?assertEqual([Slice, verdict(Reader)], Reports),
        {Meta, R4} = witness_run_monitors:report(Slice, R3),
        ?assertEqual({meta(), 1}, {Meta, witness_run_monitors:count(R4)}),
        {_, R5} = witness_run_monitors:report(verdict(Reader), R4),
        ?assertEqual(0, witness_run_monitors:count(R5))
    end).

the_death_of_a_host_ends_what_it_has_not_reported_test_() ->
    as_a_run(fun() ->
        [Host, Other] = [host(), host()],
        R = lists:foldl(fun(Reader, A) -> {[], A1} = witness_run_monitors:announce(Reader, meta(), A), A1 end,
                        witness_run_monitors:new(), [{Host, 1}, {Host, 2}, {Other, 1}, {Host, 3}]),
        {_, R1} = witness_run_monitors:report(verdict({Host, 2}), R),
        {Reports, R2} = ends(Host, kill, R1),
        ?assertMatch([{verdict, {Host, 1}, #{verdict := inconclusive, reason := {gap, tracer_lost}}},
                      {verdict, {Host, 3}, #{verdict := inconclusive, reason := {gap, tracer_lost}}}],
                     lists:sort(Reports)),
        %% A monitor of it that is announced only now is known to be dead too.
        {[], R3} = witness_run_monitors:announce({Host, 4}, meta(), R2),
        {Late, _} = receive {'EXIT', Host, noproc} -> witness_run_monitors:ended(Host, noproc, R3) end,
        ?assert(lists:member({Host, 4}, [Reader || {verdict, Reader, _} <- Late])),
        ?assertNot(lists:keymember({Other, 1}, 2, Late))
    end).

a_runner_that_dies_before_it_is_announced_says_why_test_() ->
    as_a_run(fun() ->
        Runner = host(),
        {[], R} = witness_run_monitors:ended(Runner, {badmatch, 1}, witness_run_monitors:new()),
        ?assertMatch({[{verdict, Runner, #{reason := {crashed, {badmatch, 1}}}}], _},
                     witness_run_monitors:announce(Runner, meta(), R))
    end).

where_events_are_missing_a_host_has_no_later_word_test_() ->
    as_a_run(fun() ->
        [Runner, Host] = [host(), host()],
        {[], R1} = witness_run_monitors:announce(Runner, meta(), witness_run_monitors:new()),
        {[], R2} = witness_run_monitors:announce({Host, 1}, meta(), R1),
        {[{verdict, {Host, 1}, #{reason := {gap, memory}}} = Gap], R3} = witness_run_monitors:give_up(memory, R2),
        {_, R4} = witness_run_monitors:report(Gap, R3),
        ?assertEqual({early, R4}, witness_run_monitors:report(verdict({Host, 1}), R4)),
        ?assertMatch({[{verdict, {Host, 2}, #{reason := {gap, memory}}}], _},
                     witness_run_monitors:announce({Host, 2}, meta(), R4)),
        %% The runner got the gap, and reports itself how its monitor has ended.
        {messages, Messages} = process_info(Runner, messages),
        ?assertEqual([{gap, memory}], Messages),
        ?assertMatch({#{}, _}, witness_run_monitors:report(verdict(Runner), R4))
    end).

who_is_overdue_is_killed_test_() ->
    as_a_run(fun() ->
        Runner = host(),
        Ref = monitor(process, Runner),
        {[], R} = witness_run_monitors:announce(Runner, meta(), witness_run_monitors:new()),
        ?assertMatch([{verdict, Runner, #{reason := {crashed, overdue}}}], witness_run_monitors:kill(R)),
        receive {'DOWN', Ref, process, Runner, Reason} -> ?assertEqual(killed, Reason) end
    end).
