-module(witness_run_tests).
-moduledoc """
What a run makes of the reports of its monitors' runners. A process of the test sends what runners send, so that the test
chooses their order and their faults.
""".
-include_lib("eunit/include/eunit.hrl").

-behaviour(witness_monitor).
-export([init/3, handle_event/2, coverage/1, idle/0, log/2]).

-define(ME, atom_to_binary(?MODULE)).

init(_, _, _) -> ignore.
handle_event(_, State) -> {ok, State}.
coverage([]) -> [#{id => Id, line => Id, column => 1, text => ~"_ ? _", decides => undefined} || Id <- [1, 2]];
coverage(Raises) -> error(Raises).

idle() -> receive after infinity -> ok end.

each_slice_has_a_verdict_and_the_monitor_none_test() ->
    {Summary, Verdicts} = run(fun(Run) ->
        says(Run, fun(Runner) ->
            Run ! {monitor, Runner, meta(?ME)},
            Run ! {slice, Runner, slice(no, 1)},
            Run ! {slice, Runner, slice(yes, 2)},
            Run ! {verdict, Runner, #{slices => 2, covered => 2#100}}
        end)
    end),
    ?assertMatch(#{monitored := 1, slices := 2, verdicts := #{no := 1, yes := 1, inconclusive := 0},
                   outcome := violated}, Summary),
    ?assertMatch([#{verdict := no, slice := [{~"Id", 1}], spec := ~"witness_run_tests", source := undefined},
                  #{verdict := yes, slice := [{~"Id", 2}]}], Verdicts),
    ?assertMatch(#{coverage := [#{actions := [#{line := 1, taken := false}, #{line := 2, taken := true}]}]}, Summary).

a_monitor_without_slices_has_one_verdict_test() ->
    {Summary, [Verdict]} = run(fun(Run) ->
        says(Run, fun(Runner) ->
            Run ! {monitor, Runner, meta(?ME)},
            Run ! {verdict, Runner, (outcome(yes))#{covered => 2#110}}
        end)
    end),
    ?assertMatch(#{slice := undefined, verdict := yes}, Verdict),
    ?assertNot(is_map_key(covered, Verdict)),
    ?assertMatch(#{monitored := 1, slices := 0, outcome := ok}, Summary).

%% Reports of a runner may overtake the tracer that announces it.
reports_before_the_announcement_keep_their_order_test() ->
    {Summary, Verdicts} = run(fun(Run) ->
        says(Run, fun(Runner) ->
            [Run ! {slice, Runner, slice(yes, Id)} || Id <- [1, 2, 3]],
            Run ! {verdict, Runner, #{slices => 3, covered => 2#10}},
            Run ! {monitor, Runner, meta(?ME)}
        end)
    end),
    ?assertEqual([1, 2, 3], [Id || #{slice := [{_, Id}]} <- Verdicts]),
    ?assertMatch(#{monitored := 1, slices := 3, coverage := [#{actions := [#{taken := true}, #{taken := false}]}]},
                 Summary).

a_runner_that_dies_after_early_slices_is_inconclusive_test() ->
    {Summary, Verdicts} = run(fun(Run) ->
        says(Run, fun(Runner) ->
            Run ! {slice, Runner, slice(yes, 1)},
            Run ! {monitor, Runner, meta(?ME)},
            %% The run has linked itself by the time when it answers.
            _ = witness:info(Run),
            exit(Runner, kill)
        end)
    end),
    ?assertMatch([#{verdict := yes}, #{verdict := inconclusive, slice := undefined, reason := {crashed, killed}}],
                 Verdicts),
    ?assertMatch(#{outcome := untrusted}, Summary).

%% However it was killed: the link made at its announcement gives no reason for its death.
a_runner_that_dies_before_it_is_announced_is_inconclusive_test() ->
    {_, Verdicts} = run(fun(Run) ->
        says(Run, fun(Runner) ->
            Dead = spawn(fun() -> link(Run), exit(boom) end),
            Ref = monitor(process, Dead),
            receive {'DOWN', Ref, _, _, _} -> ok end,
            %% The exit is in the run's mailbox before this.
            _ = witness:info(Run),
            Run ! {monitor, Dead, meta(?ME)},
            Run ! {monitor, Runner, meta(?ME)},
            Run ! {verdict, Runner, (outcome(yes))#{covered => 0}}
        end)
    end),
    ?assertMatch([#{verdict := inconclusive, reason := {crashed, boom}}, #{verdict := yes}], Verdicts).

%% If a tracer over the native source dies, no other process dies. What would have been read of its partition is unknown.
a_part_that_was_missed_makes_the_result_doubtful_test() ->
    [begin
         {Summary, [#{verdict := yes}]} = run(fun(Run) ->
             says(Run, fun(Runner) ->
                 Run ! {monitor, Runner, meta(?ME)},
                 [Run ! Message || _ <- [1, 2]],
                 Run ! {verdict, Runner, (outcome(yes))#{covered => 0}}
             end)
         end),
         ?assertMatch(#{outcome := untrusted, gaps := 0, verdicts := #{yes := 1}}, Summary),
         %% The same warning is given once.
         ?assertMatch([#{}], [W || W = #{code := C} <- maps:get(warnings, Summary), C =:= Code])
     end || {Message, Code} <- [{{tracer_lost, killed}, tracer_lost}, {{unwatched, overflow}, unwatched}]].

a_refusal_is_no_verdict_test() ->
    {Summary, []} = run(fun(Run) ->
        says(Run, fun(Runner) ->
            Run ! {monitor, Runner, meta(?ME)},
            Run ! {verdict, Runner, ignored}
        end)
    end),
    ?assertMatch(#{monitored := 1, verdicts := #{no := 0, yes := 0, inconclusive := 0}}, Summary).

a_verdict_names_its_line_of_the_specification_test() ->
    File = filename:join([code:lib_dir(witness), "test", "cli_data", "small.hml"]),
    Spec = unicode:characters_to_binary([File, ":3"]),
    {_, [Named, Without]} = run(#{specs => [File]}, fun(Run) ->
        says(Run, fun(Runner) ->
            Run ! {monitor, Runner, meta(Spec)},
            Run ! {slice, Runner, (slice(no, 1))#{info := #{line => 7, column => 9}}},
            Run ! {slice, Runner, (slice(no, 2))#{info := #{}}},
            Run ! {verdict, Runner, #{slices => 2, covered => 0}}
        end)
    end),
    ?assertEqual(#{file => unicode:characters_to_binary(File), line => 7, column => 9,
                   text => ~"     and [_ : _ ! {answer, N} when N > 9] ff"}, maps:get(source, Named)),
    ?assertMatch(#{source := undefined}, Without).

%% Coverage is for people: a monitor that fails to name its actions runs all the same.
a_monitor_whose_coverage_raises_has_none_test() ->
    {Summary, _} = run(#{monitors => [{{m, f, 0}, {?MODULE, raises}}]}, fun(_) -> ok end),
    ?assertMatch(#{coverage := [], warnings := [#{code := nothing_monitored}]}, Summary).

a_violation_is_logged_with_its_slice_test() ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}, filter_default => stop,
                                                filters => [{own, {fun logger_filters:domain/2, {log, equal, [witness]}}}]}),
    try
        {_, _} = run(#{log => true}, fun(Run) ->
            says(Run, fun(Runner) ->
                Run ! {monitor, Runner, meta(?ME)},
                Run ! {slice, Runner, slice(yes, 1)},
                Run ! {slice, Runner, slice(no, 2)},
                Run ! {verdict, Runner, #{slices => 2, covered => 0}}
            end)
        end),
        receive {logged, Text, Verdict} ->
            ?assertMatch({match, _}, re:run(Text, "^witness_run_tests violated by <.*>, m:f\\(\\), Id = 2$")),
            ?assertMatch(#{slice := [{~"Id", 2}]}, Verdict)
        after 0 -> error(nothing_logged)
        end,
        receive {logged, _, _} = Another -> error(Another) after 0 -> ok end
    after
        ok = logger:remove_handler(?MODULE)
    end.

log(#{msg := {report, Report}, meta := #{verdict := Verdict, report_cb := Text}}, #{config := #{to := Pid}}) ->
    {Format, Args} = Text(Report),
    Pid ! {logged, unicode:characters_to_list(io_lib:format(Format, Args)), Verdict}.

%% Running

run(Check) -> run(#{monitors => [{{m, f, 0}, {?MODULE, []}}]}, Check).

run(Options, Check) ->
    {ok, Run} = witness:start(maps:merge(#{system => {?MODULE, idle, []}, halt => false, log => false}, Options)),
    Check(Run),
    Kept = monitor(process, Run),
    Verdicts = witness:verdicts(Run),
    {ok, Summary} = witness:stop(Run),
    receive {'DOWN', Kept, process, Run, shutdown} -> ok end,
    {Summary, Verdicts}.

%% A process that represents a runner ends when the run has taken all that was sent for it.
says(Run, Say) ->
    {Runner, Gone} = spawn_monitor(fun() -> receive stop -> ok end end),
    Say(Runner),
    _ = witness:info(Run),
    Runner ! stop,
    receive {'DOWN', Gone, process, Runner, _} -> ok end,
    _ = witness:info(Run),
    ok.

meta(Spec) -> #{process => self(), signature => {m, f, []}, spec => Spec, name => undefined}.

slice(Verdict, Id) -> (outcome(Verdict))#{slice := [{~"Id", Id}]}.

outcome(Verdict) ->
    #{verdict => Verdict, reason => undefined, info => undefined, vacuous => false, event => undefined,
      slice => undefined, steps => [], skipped => 0}.
