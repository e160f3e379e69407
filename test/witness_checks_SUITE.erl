-module(witness_checks_SUITE).
-moduledoc """
Checks without a specification, on systems with one fault each and on their twins that have none (`m:witness_checks_system`): by
every instrument, over both sources, and of logs. The process at fault is named, and no check reports what is right.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(WAIT_MS, 120_000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [{group, native}, {group, evm}, {group, central}, {group, log}, {group, elixir}, the_shared_systems_are_right,
          the_savina_benchmarks_are_right, tests_have_checks, a_message_that_is_left_handles_nothing, deadlocks_are_found,
          a_deadlock_in_an_application_is_found, what_runs_on_is_no_deadlock, what_is_left_is_named, what_ends_is_not_left,
          what_is_left_says_what_it_holds, monitors_of_the_same_process_that_grow_are_found,
          monitors_in_a_system_that_runs_already_that_grow_are_found, tests_find_monitors_that_grow,
          messages_that_are_not_taken_name_the_process,
          messages_that_are_taken_are_no_violation, what_runs_already_has_some_checks, children_of_a_process_have_some_checks,
          a_killed_look_leaves_no_process_suspended, what_cannot_be_checked_is_refused].

groups() ->
    [{elixir, [], [elixir_crashes_are_named, elixir_that_is_right_has_no_alarm, elixir_that_hangs_is_named,
                   elixir_that_is_left_says_what_it_holds, elixir_monitors_that_grow_are_found,
                   what_is_said_of_elixir_is_written_as_elixir]}] ++
    [{Kind, [], [crashes_name_the_process_at_fault, what_is_handled_is_no_crash, calls_without_an_answer_name_the_caller,
                 what_is_answered_is_no_violation, late_answers_name_the_caller,
                 what_is_not_late_is_no_violation, supervisors_that_give_up_are_named, what_does_not_give_up_is_no_violation]}
     || Kind <- [native, evm, central, log]].

init_per_group(elixir, Config) ->
    case os:find_executable("elixirc") of
        false -> {skip, "there is no elixirc on the path"};
        _ ->
            Folder = filename:join(proplists:get_value(priv_dir, Config), "faults"),
            ok = filelib:ensure_path(Folder),
            ok = witness_inline_behaviour_SUITE:elixir(
                     filename:join(witness_checkout:root(proplists:get_value(data_dir, Config)), "test/applications/faults.ex"), Folder),
            [{folder, Folder} | Config]
    end;
init_per_group(Kind, Config) -> [{kind, Kind} | Config].

end_per_group(elixir, Config) -> code:del_path(proplists:get_value(folder, Config));
end_per_group(_, _) -> ok.

init_per_suite(Config) ->
    #{level := Before} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    [{level, Before} | Config].

end_per_suite(Config) -> logger:set_primary_config(level, proplists:get_value(level, Config)).

crashes() ->
    [nothing_is_linked, an_exception_is_not_caught, a_link_passes_it_on, many_links_pass_it_on, a_server_crashes_in_a_call,
     a_server_crashes_in_a_call_of_a_call, a_server_crashes_in_a_cast, a_call_is_given_up].

handled() ->
    [a_process_monitor_tells_of_it, a_process_monitor_by_name_tells_of_it, a_process_monitor_with_a_tag_tells_of_it,
     an_exception_is_caught, a_trapped_exit_tells_of_it, a_parent_s_link_tells_of_it, a_failed_call_is_caught,
     a_call_that_is_given_up_is_caught, a_supervisor_starts_it_again, exits_are_no_errors, a_called_server_is_shut_down].

calls() -> [an_answer_is_forgotten, a_call_is_given_up_and_its_end_is_handled, a_request_is_not_waited_for].

answered() -> [calls_are_answered, servers_are_called_at_once, an_answer_comes_from_elsewhere,
               servers_that_are_gone_do_not_answer, a_caller_is_shut_down].

late() -> [a_call_is_given_up_and_answered, a_call_that_ends_its_process_is_answered].

not_late() -> [calls_are_answered_when_told, a_call_is_given_up_and_never_answered, a_caller_is_shut_down_before_the_answer |
               answered()].

given_up() -> [it_crashes_again_and_again, its_supervisor_is_started_again].

not_given_up() -> [it_crashes_once, it_crashes_once_and_is_stopped, its_child_is_shut_down, it_ends_with_its_significant_child].

supervisors_that_give_up_are_named(Config) -> are_found(restarts, given_up(), Config).

what_does_not_give_up_is_no_violation(Config) -> are_right(restarts, not_given_up(), Config).

crashes_name_the_process_at_fault(Config) -> are_found(crashes, crashes(), Config).

what_is_handled_is_no_crash(Config) -> are_right(crashes, handled(), Config).

calls_without_an_answer_name_the_caller(Config) -> are_found(calls, calls(), Config).

what_is_answered_is_no_violation(Config) -> are_right(calls, answered(), Config).

late_answers_name_the_caller(Config) -> are_found(late, late(), Config).

what_is_not_late_is_no_violation(Config) -> are_right(late, not_late(), Config).

are_found(Check, Systems, Config) ->
    lists:foreach(fun(System) ->
        {Outcome, Verdicts} = checked(Check, System, Config),
        Found = [P || #{verdict := no, process := P} <- Verdicts],
        ?assertEqual({violated, [named(witness_checks_system:at_fault(), Config)]}, {Outcome, Found}, System)
    end, Systems).

are_right(Check, Systems, Config) ->
    [?assertEqual({ok, []}, {Outcome, [V || #{verdict := Verdict} = V <- Verdicts, Verdict =/= yes]}, System)
     || System <- Systems, {Outcome, Verdicts} <- [checked(Check, System, Config)]].

checked(Check, System, Config) ->
    Options = #{system => {witness_checks_system, System, []}, checks => [Check]},
    case proplists:get_value(kind, Config) of
        log ->
            File = filename:join(proplists:get_value(priv_dir, Config), System),
            _ = ended(Options#{log_file => File}),
            ended(#{system => {log, {file, File}}, checks => [Check]});
        Kind -> ended(maps:merge(Options, kind(Kind)))
    end.

kind(native) -> #{source => native};
kind(evm) -> #{source => evm};
kind(central) -> #{instrument => central}.

%% A log has processes by their names.
named(P, Config) ->
    case proplists:get_value(kind, Config) of
        log -> element(2, witness_log:proc(unicode:characters_to_binary(pid_to_list(P))));
        _ -> P
    end.

ended(Options) ->
    {ok, Run} = witness:start(Options#{log => false}),
    {ok, #{outcome := Outcome}} = witness:await(Run, ?WAIT_MS),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    {Outcome, Verdicts}.

%% Processes of theirs end in every way, by signals, links and supervisors.
the_shared_systems_are_right(_) ->
    ok = code:ensure_modules_loaded(witness_sys:modules()),
    Outcomes = [{Name, case witness_sys:outcome(System) of normal -> ok; crashed -> violated end, outcome(Called)}
                || #{name := Name, system := Called} = System <- witness_sys:all()],
    ?assert(length(Outcomes) > 50),
    ?assertEqual([], [Wrong || {_, Expected, Outcome} = Wrong <- Outcomes, Outcome =/= Expected]).

the_savina_benchmarks_are_right(_) ->
    [?assertEqual(ok, outcome({witness_savina, run, [Name, small]}), Name) || Name <- witness_savina:names()].

outcome(System) ->
    {Outcome, _} = ended(#{system => System, checks => witness_check:names()}),
    Outcome.

elixir_crashes_are_named(_) ->
    [?assertMatch({violated, _}, elixir_at_fault(System, [Check]), System)
     || {System, Check} <- [{a_task_raises, crashes}, {a_server_raises_in_a_cast, crashes}, {a_timeout_is_caught, calls}]],
    {violated, [#{note := Note}]} = violations('Elixir.Faults', a_child_raises_again_and_again, [restarts]),
    ?assertMatch({_, _}, binary:match(Note, ~"it has started Faults.init/1 again 2 times, and then given up")).

elixir_that_is_right_has_no_alarm(_) ->
    [?assertEqual({ok, []}, violations('Elixir.Faults', System, witness_check:names()), System)
     || System <- [a_task_is_awaited, a_task_that_raises_is_caught, calls_are_answered, a_dynamic_child_raises_once,
                   an_agent_is_stopped]].

%% In no text of a verdict is a process, a module, an atom or a string as Erlang writes it.
what_is_said_of_elixir_is_written_as_elixir(_) ->
    [begin
         {_, Verdicts} = violations('Elixir.Faults', System, [Check]),
         Text = unicode:characters_to_binary([witness_text_verdict:verdict(V, #{colour => false, width => 100}) || V <- Verdicts]),
         ?assertMatch({match, _}, re:run(Text, "#PID<"), System),
         ?assertEqual(nomatch, re:run(Text, "(?<!\\w)<0\\.|'Elixir\\.|<<\"|\\{'|\\{(?!:|%|#|\"|[A-Z ])[a-z_]+,"), {System, Text}),
         killed([P || #{info := #{processes := Left}} <- Verdicts, P <- Left, is_pid(P)])
     end || {System, Check} <- [{a_task_raises, crashes}, {a_server_raises_in_a_cast, crashes}, {a_timeout_is_caught, calls},
                                {a_child_raises_again_and_again, restarts}, {an_agent_is_not_stopped, leaks},
                                {a_server_with_a_table_is_not_stopped, leaks}, {a_message_of_a_task_is_left, mailboxes}]].

elixir_that_hangs_is_named(_) ->
    [begin
         {violated, P} = elixir_at_fault(System, [Check]),
         exit(P, kill)
     end || {System, Check} <- [{an_agent_is_not_stopped, leaks}, {a_message_of_a_task_is_left, mailboxes}]],
    [is_deadlock('Elixir.Faults', System, 2) || System <- [servers_call_each_other, a_server_awaits_a_task_that_calls_it]].

elixir_that_is_left_says_what_it_holds(_) ->
    {violated, [#{note := Note, info := #{processes := [P]}}]} =
        violations('Elixir.Faults', a_server_with_a_table_is_not_stopped, [leaks]),
    ?assertNotEqual(nomatch, string:find(Note, "; has the name Faults.Kitchen and table :orders (1 object)")),
    killed([P]).

elixir_monitors_that_grow_are_found(_) ->
    ?assertMatch([{violated, [_]}, {_, []}], growth('Elixir.Faults', [a_server_monitors_at_each_request,
                                                                      a_server_demonitors_after_each_request])).

elixir_at_fault(System, Checks) ->
    {Outcome, [#{process := P}]} = violations('Elixir.Faults', System, Checks),
    ?assertEqual(witness_checks_system:at_fault(), P, System),
    {Outcome, P}.

violations(Module, System, Checks) ->
    {Outcome, Verdicts} = ended(#{system => {Module, System, []}, checks => Checks}),
    {Outcome, [V || #{verdict := Verdict} = V <- Verdicts, Verdict =/= yes]}.

tests_have_checks(_) ->
    Check = fun(System) -> witness_test:check([], fun witness_checks_system:System/0, #{checks => [crashes, deadlock]}) end,
    ?assertEqual(ok, Check(a_trapped_exit_tells_of_it)),
    ?assertError({violation, ["VIOLATION of check crashes" ++ _ | _]}, Check(nothing_is_linked)),
    %% What the test itself raises is the test's.
    ?assertError(own, witness_test:check([], fun() -> error(own) end, #{checks => [crashes]})).

a_message_that_is_left_handles_nothing(_) ->
    {ok, Run} = witness:start(#{system => {witness_checks_system, the_message_is_left, []}, checks => [crashes, deadlock],
                                log => false}),
    witness_await:until(fun() -> has_waited(Run) end),
    {ok, #{outcome := violated, alive := #{processes := [#{process := Parent}]}}} = witness:stop(Run),
    exit(Parent, kill).

%% A second is what the check takes for ever.
has_waited(Run) ->
    case witness_run:remaining(Run) of
        #{processes := [#{state := waits, mailbox := 1, idle_ms := Ms}]} when Ms >= 1000 -> true;
        Other -> Other
    end.

deadlocks_are_found(_) ->
    [is_deadlock(witness_checks_system, System, Size)
     || {System, Size} <- [{servers_call_each_other, 2}, {three_servers_call_each_other, 3},
                            {a_child_calls_its_supervisor_when_it_starts, 2}, {a_child_calls_its_supervisor_when_it_ends, 2},
                            {a_server_is_stopped_and_calls_back, 2}, {state_machines_call_each_other, 2}]].

is_deadlock(Module, System, Size) ->
    {ok, Run} = witness:start(#{system => {Module, System, []}, checks => [deadlock], log => false}),
    #{circles := [Circle], processes := Left} = with_circle(Run),
    {ok, #{outcome := violated, alive := #{circles := Last}}} = witness:stop(Run),
    ?assertEqual(Size, length(Circle)),
    ?assertEqual([], Last -- [Circle]),
    [exit(P, kill) || #{process := P} <- Left].

%% The program has started the application. Its processes are not the program's own, and are named since they wait for each other.
a_deadlock_in_an_application_is_found(_) ->
    {ok, Run} = witness:start(#{system => {witness_checks_system, an_application_hangs, []}, scope => node, checks => [deadlock],
                                log => false}),
    %% The program itself may still look whether they hang.
    #{circles := [[_, _] = Circle], applications := Waited, processes := [_ | _] = Left} = with_circle(Run),
    {ok, #{outcome := violated, alive := #{circles := Last}}} = witness:stop(Run),
    ?assertEqual([], Last -- [Circle]),
    ?assertEqual(lists:sort(Circle), lists:sort([Of || #{process := Of} <- Waited])),
    ?assertEqual(lists:sort([whereis(till), whereis(stock)]), lists:sort(Circle)),
    [exit(P, kill) || #{process := P} <- Left],
    ok = witness_test_shop:close().

%% What a look has found that has seen a circle. A later one, such as the last one of the run, may not have had the time to see it.
with_circle(Run) ->
    Self = self(),
    witness_await:until(fun() ->
        case witness_run:remaining(Run) of
            #{circles := [_]} = Remaining -> Self ! {remaining, Remaining}, true;
            Other -> Other
        end
    end),
    receive {remaining, Remaining} -> Remaining end.

what_runs_on_is_no_deadlock(_) ->
    [?assertMatch({ok, [#{verdict := yes, spec := ~"check deadlock"}]},
                  ended(#{system => {witness_checks_system, System, []}, checks => [deadlock]}), System)
     || System <- [servers_call_each_other_in_turn, a_server_calls_back_before_the_answer,
                    other_servers_call_back_before_the_answer, children_that_start_and_end_call_others]],
    {ok, Run} = witness:start(#{system => {timer, sleep, [infinity]}, checks => [deadlock], log => false}),
    {ok, #{outcome := ok, verdicts := #{yes := 1, no := 0, inconclusive := 0}, alive := #{processes := [#{process := P}]}}} =
        witness:stop(Run),
    exit(P, kill).

what_is_left_is_named(_) ->
    [begin
         {violated, [#{verdict := no, process := P, info := #{processes := [P | _] = Left}}]} =
             ends_with_what_is_left(System, [leaks]),
         ?assertEqual(Count, length(Left), System),
         ?assert(lists:member(witness_checks_system:at_fault(), Left), System),
         [exit(Of, kill) || Of <- Left]
     end || {System, Count} <- [{a_process_waits_for_ever, 1}, {a_server_is_not_stopped, 1}, {workers_are_not_stopped, 5}]].

what_ends_is_not_left(_) ->
    [?assertMatch({ok, [#{verdict := yes}]}, ends_with_what_is_left(System, [leaks]), System)
     || System <- [it_ends_a_little_later, it_sleeps_and_ends, a_server_is_stopped]].

what_is_left_says_what_it_holds(_) ->
    {violated, [#{note := Note, process := P}]} = ends_with_what_is_left(a_server_with_a_table_is_not_stopped, [leaks]),
    %% What it monitored has ended.
    ?assertNotEqual(nomatch, string:find(Note, "; has the name kitchen and table orders (12 objects)")),
    ?assertEqual(nomatch, string:find(Note, "monitors")),
    killed([P]).

%% Of what the run starts, and of what it is attached to.
monitors_of_the_same_process_that_grow_are_found(_) ->
    ?assertMatch([{violated, [_]}, {_, []}, {_, []}, {_, []}], growth(witness_checks_system, monitoring())).

monitors_in_a_system_that_runs_already_that_grow_are_found(_) ->
    Found = until_it_grows(fun is_first_violated/1, fun() ->
        Roots = [spawn(witness_checks_system, System, []) || System <- monitoring()],
        [witness_await:until(fun() -> is_pid(whereis(System)) end) || System <- monitoring()],
        Runs = [{System, started(#{system => {attach, [System]}, checks => [leaks]})} || System <- monitoring()],
        Stopped = stopped_after_growth(Runs),
        killed(Roots),
        Stopped
    end),
    ?assertMatch([{violated, [_]}, {ok, []}, {ok, []}, {ok, []}], Found).

monitoring() ->
    [a_server_monitors_at_each_request, a_server_demonitors_after_each_request, a_server_monitors_many_processes,
     a_server_monitors_a_process_2000_times_at_once].

growth(Module, Systems) ->
    until_it_grows(fun is_first_violated/1, fun() ->
        Runs = [{System, started(#{system => {Module, System, []}, checks => [leaks]})} || System <- Systems],
        [witness_await:until(fun() -> is_pid(whereis(System)) end) || System <- Systems],
        stopped_after_growth(Runs)
    end).

is_first_violated([{Outcome, _} | _]) -> Outcome =:= violated.

started(Options) ->
    {ok, Run} = witness:start(Options#{log => false}),
    Run.

%% The first server has enough monitors then.
stopped_after_growth([{Grows, _} | _] = Runs) ->
    looked_at([Run || {_, Run} <- Runs], fun erlang:is_map/1),
    many_monitors(Grows),
    [begin
         Server = whereis(System),
         {ok, #{outcome := Outcome} = Summary} = witness_run:finish(Run),
         Found = [V || #{verdict := no} = V <- witness:verdicts(Run)],
         [begin
              ?assertEqual(Server, P),
              ?assertMatch({match, _}, re:run(Note, "\n  its monitors of (#PID)?<[0-9.]+> grow, without a demonitor: [0-9, ]+ and [0-9]+$"))
          end || #{process := P, note := Note} <- Found],
         {ok, _} = witness:stop(Run),
         killed([Server | [Of || #{alive := #{processes := Left}} <- [Summary], #{process := Of} <- Left]]),
         {Outcome, Found}
     end || {System, Run} <- Runs].

many_monitors(Name) ->
    witness_await:until(fun() ->
        {monitors, Monitors} = process_info(whereis(Name), monitors),
        length(Monitors) > 2000 orelse length(Monitors)
    end).

%% By itself a run looks ever more rarely, and on a busy machine not in time. These looks are as many as it needs, and so far from
%% each other that each counts, however late it comes. One that has not seen what it has to see is followed by another one.
looked_at(Runs, HasSeen) -> looked_at(5, Runs, HasSeen).

looked_at(0, _, _) -> ok;
looked_at(Looks, Runs, HasSeen) ->
    receive after 1000 -> ok end,
    %% A run of an earlier test may just end.
    case lists:all(HasSeen, [witness_run:remaining(Run) || Run <- Runs, is_process_alive(Run)]) of
        true -> looked_at(Looks - 1, Runs, HasSeen);
        false -> looked_at(Looks, Runs, HasSeen)
    end.

%% What makes something grow may stand still meanwhile. Then it does not grow, and is watched again.
until_it_grows(HasGrown, Watch) -> until_it_grows(3, HasGrown, Watch).

until_it_grows(1, _, Watch) -> Watch();
until_it_grows(Times, HasGrown, Watch) ->
    Result = Watch(),
    case HasGrown(Result) of
        true -> Result;
        false -> until_it_grows(Times - 1, HasGrown, Watch)
    end.

%% Their names are free then.
killed(Pids) -> [begin exit(P, kill), witness_await:down(P) end || P <- Pids].

%% The servers are left, in any case, and not waited for.
tests_find_monitors_that_grow(_) ->
    Check = fun(System) ->
        Test = fun() ->
            spawn(witness_checks_system, System, []),
            witness_await:until(fun() -> is_pid(whereis(System)) end),
            looked_at([P || P <- processes(), proc_lib:get_label(P) =:= witness_run], fun erlang:is_map/1),
            [ok = many_monitors(System) || System =:= a_server_monitors_at_each_request],
            ok
        end,
        try
            witness_test:check([], Test, #{checks => [leaks], wait => false})
        catch error:{violation, Lines} -> unicode:characters_to_list(lists:join($\n, Lines))
        after killed([whereis(System)])
        end
    end,
    Found = until_it_grows(fun(Result) -> Result =/= ok end, fun() -> Check(a_server_monitors_at_each_request) end),
    ?assertMatch({match, _}, re:run(Found, "^VIOLATION of check leaks.*grow, without a demonitor: ",
                                    [dotall])),
    ?assertEqual(ok, Check(a_server_demonitors_after_each_request)).

%% The run ends by itself.
ends_with_what_is_left(System, Checks) -> ended(#{system => {witness_checks_system, System, []}, checks => Checks}).

messages_that_are_not_taken_name_the_process(_) ->
    [begin
         {violated, [#{verdict := no, process := P}]} = ends_with_what_is_left(System, [mailboxes]),
         ?assertEqual(witness_checks_system:at_fault(), P, System),
         exit(P, kill)
     end || System <- [its_messages_are_for_no_process, an_old_answer_is_in_its_way]],
    [begin
         {violated, AtFault} = until_it_grows(fun({Outcome, _}) -> Outcome =:= violated end, fun() -> grows(System, Is) end),
         receive {verdict, #{verdict := no, process := P}} -> ?assertEqual(AtFault, P, System) end
     end || {System, Is} <- [{it_is_too_slow, fun(#{mailbox := Length}) -> Length > 1000 end},
                             {it_passes_over_what_it_does_not_know,
                              fun(#{mailbox := Length, state := State}) -> Length > 10 andalso State =:= waits end}]].

%% It grows until the run is stopped.
grows(System, Is) ->
    Self = self(),
    {ok, Run} = witness:start(#{system => {witness_checks_system, System, []}, checks => [mailboxes], log => false,
                                on_verdict => fun(Verdict) -> Self ! {verdict, Verdict} end}),
    looked_at([Run], fun(#{processes := Seen}) -> lists:any(Is, Seen); (none) -> false end),
    {ok, #{outcome := Outcome, alive := #{processes := Left}}} = witness:stop(Run),
    killed([Of || #{process := Of} <- Left]),
    {Outcome, witness_checks_system:at_fault()}.

messages_that_are_taken_are_no_violation(_) ->
    [?assertMatch({ok, [#{verdict := yes}]}, ends_with_what_is_left(System, [mailboxes]), System)
     || System <- [it_is_slow_but_done_in_time, it_takes_all, it_does_a_long_job_first, a_burst_is_worked_off]],
    exit(witness_checks_system:at_fault(), kill).

%% The same application as at another node (`m:witness_remote_SUITE').
what_runs_already_has_some_checks(_) ->
    Systems = [{attach, [{application, witness_test_shop}]}, {attach, [till, stock]}, node],
    Stopped = fun(System, Checks) ->
        {ok, Run} = witness:start(#{system => System, checks => Checks, log => false}),
        receive after 1200 -> ok end,
        Verdicts = verdicts_at_end(Run),
        lists:sort([{Spec, Verdict} || #{spec := Spec, verdict := Verdict} <- Verdicts])
    end,
    ok = witness_test_shop:open(),
    [?assertEqual([{~"check deadlock", yes}, {~"check mailboxes", yes}], Stopped(System, [deadlock, mailboxes]), System)
     || System <- Systems -- [node]],
    ok = witness_test_shop:hang(),
    [?assertEqual([{~"check deadlock", no}], Stopped(System, [deadlock]), System) || System <- Systems],
    ?assertEqual([{~"check calls", yes}, {~"check deadlock", inconclusive}], Stopped({attach, [till]}, [deadlock, calls])),
    ok = witness_test_shop:close().

verdicts_at_end(Run) ->
    {ok, _} = witness_run:finish(Run),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    Verdicts.

children_of_a_process_have_some_checks(_) ->
    Parent = spawn(fun() ->
        receive go -> ok end,
        {P, Ref} = spawn_monitor(fun witness_checks_system:an_answer_is_forgotten/0),
        receive {'DOWN', Ref, process, P, normal} -> ok end,
        spawn(fun witness_checks_system:servers_call_each_other/0),
        receive never -> ok end
    end),
    {ok, Run} = witness:start(#{system => {children, [Parent]}, checks => [calls, deadlock, mailboxes], log => false}),
    Parent ! go,
    #{processes := Left} = with_circle(Run),
    Verdicts = verdicts_at_end(Run),
    ?assertEqual([{~"check calls", no}, {~"check deadlock", no}],
                 lists:sort([{Spec, no} || #{spec := Spec, verdict := no} <- Verdicts])),
    [P] = [P || #{spec := ~"check calls", verdict := no, process := P} <- Verdicts],
    ?assertEqual(witness_checks_system:at_fault(), P),
    [exit(Of, kill) || Of <- [Parent | [Of || #{process := Of} <- Left]]].

%% It waits for a process that is busy outside the scheduler, and has suspended another one meanwhile.
a_killed_look_leaves_no_process_suspended(_) ->
    _ = erts_debug:set_internal_state(available_internal_state, true),
    Waits = spawn(fun() -> receive never -> ok end end),
    Busy = spawn(fun() -> erts_debug:dirty_io(wait, 20_000) end),
    witness_await:until(fun() -> process_info(Busy, current_function) =:= {current_function, {erts_debug, dirty_io, 2}} end),
    {Look, Ref} = spawn_monitor(witness_run_remaining, suspend_circle, [self(), make_ref(), [Waits, Busy], false]),
    witness_await:until(fun() -> process_info(Waits, status) =:= {status, suspended} end),
    exit(Look, kill),
    receive {'DOWN', Ref, process, Look, killed} -> ok end,
    witness_await:until(fun() -> process_info(Waits, status) =:= {status, waiting} end),
    _ = erts_debug:set_internal_state(available_internal_state, false),
    [exit(P, kill) || P <- [Waits, Busy]].

what_cannot_be_checked_is_refused(_) ->
    [?assertMatch({error, {witness_option, {bad_option, checks, _}}}, witness:start(Options)) ||
        Options <- [#{system => {log, standard_input}, checks => [deadlock]},
                    #{system => {timer, sleep, [1]}, checks => [everything]}]],
    [?assertEqual({error, {witness_options, {not_attached_checks, [Check]}}}, witness:start(#{system => System, checks => [Check]}))
     || System <- [{children, [self()]}, {attach, [self()]}, node], Check <- [crashes, restarts]],
    ?assertMatch({error, {witness_options, {not_inline, checks}}},
                 witness:start(#{system => {timer, sleep, [1]}, checks => [crashes], instrument => inline})).
