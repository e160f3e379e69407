-module(witness_faults_SUITE).
-moduledoc """
Harmless: whatever dies, crashes or hangs in Witness, the system does what it does without
Witness, nothing is left behind, and no verdict is wrong.

The loads number their messages and their monitor asserts a sound trace, so a verdict `no`
would be a wrong one.
""".
-include_lib("stdlib/include/assert.hrl").

%% How long a loaded run may take to end.
-define(CLEAN_MS, 240_000).

-compile(export_all).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [{group, native}, {group, evm}].

groups() ->
    Deaths = [nothing_dies, the_instrumentation_dies, a_runner_dies, every_runner_dies, the_run_dies,
              the_supervisor_dies, the_owner_dies, the_notifier_dies, the_run_is_stopped],
    [{native, [], [{group, flat}, {group, tree}, {group, partitions}, {group, monitors}, {group, scope}]},
     {evm, [], [{group, flat}, {group, tree}, {group, flat_tracers}, {group, tree_tracers}, {group, monitors}, {group, scope}]},
     {flat, [], Deaths},
     {tree, [], Deaths},
     {flat_tracers, [], [the_root_tracer_dies, a_busy_tracer_dies, an_idle_tracer_dies]},
     {tree_tracers, [], [the_root_tracer_dies, a_busy_tracer_dies, an_idle_tracer_dies]},
     {partitions, [], [the_tracer_of_a_partition_dies, the_timer_dies]},
     {monitors, [], [a_crashing_monitor, a_monitor_with_wrong_returns, a_monitor_that_never_returns, a_slow_monitor,
                     a_monitor_that_kills_its_runner, a_monitor_that_floods_its_runner, a_raising_callback]},
     {scope, [], [the_whole_node_but_witness, the_load_is_sound_while_the_node_is_observed,
                  the_instrumentation_dies_that_observes_the_node]}].

init_per_group(Source, Config) when Source =:= native; Source =:= evm -> witness_source:init(Source, Config);
init_per_group(Flat, Config) when Flat =:= flat; Flat =:= flat_tracers; Flat =:= partitions ->
    [{load, {flat, [3000 * longer(Config), 200, 10]}} | Config];
init_per_group(Tree, Config) when Tree =:= tree; Tree =:= tree_tracers ->
    [{load, {tree, [60 * longer(Config), 3, 3, 6]}} | Config];
init_per_group(scope, Config) -> [{load, {flat, [5000, 200, 10]}} | Config];
init_per_group(_, Config) -> [{load, {flat, [300, 100, 10]}} | Config].

end_per_group(_, _) -> ok.

%% The victim has to die before everything is decided.
longer(Config) -> case proplists:get_value(source, Config) of native -> 12; evm -> 3 end.

init_per_testcase(_, Config) ->
    {ok, _} = application:ensure_all_started(witness),
    Config.

end_per_testcase(_, _) -> application:stop(witness).

%% --- deaths ----------------------------------------------------------------------

nothing_dies(Config) ->
    #{summary := {ok, Summary}, verdicts := Verdicts} = run(Config, fun(_) -> [] end),
    #{verdicts := #{yes := N, no := 0, inconclusive := 0}, monitored := N, outcome := ok, gaps := 0} = Summary,
    ?assertEqual(N, length(Verdicts)).

the_instrumentation_dies(Config) -> events_are_lost(Config, {found, fun(Run) -> first(coordinator_label(Config), Run) end}).

the_timer_dies(Config) -> events_are_lost(Config, {found, fun(Run) -> first(witness_timer, Run) end}).

the_root_tracer_dies(Config) -> a_tracer_dies(root, Config).

a_busy_tracer_dies(Config) -> a_tracer_dies(busy, Config).

an_idle_tracer_dies(Config) -> a_tracer_dies(free, Config).

a_tracer_dies(Field, Config) ->
    events_are_lost(Config, fun(Run) -> lists:sublist(some(fun() -> pool(Field, Config) end, Run), 1) end).

%% Everything that is not decided by then ends with a gap, and the run says so.
events_are_lost(Config, Victims) ->
    #{summary := {ok, Summary}, verdicts := Verdicts} = in_time(fun() -> run(Config, Victims) end),
    #{verdicts := #{no := 0, inconclusive := Gaps}, gaps := Gaps, outcome := untrusted, warnings := Warnings} = Summary,
    ?assert(Gaps > 0),
    ?assertMatch([#{code := tracer_lost}], [W || W = #{code := tracer_lost} <- Warnings]),
    ?assertEqual([{gap, tracer_lost}], lists:usort([R || #{verdict := inconclusive, reason := R} <- Verdicts])).

%% The tracer of the load's first process, which lives longest. Its two monitors have a gap, and no others.
the_tracer_of_a_partition_dies(Config) ->
    Before = processes(),
    Monitors = #{monitors => [the_loads(), {{witness_load, '_', '_'}, {?MODULE, load}}]},
    #{summary := {ok, Summary}, verdicts := Verdicts} =
        in_time(fun() -> run(Config, Monitors, {at_once, fun(Run) -> first_tracer(Before, Run) end}) end),
    {load, {flat, [Workers | _]}} = lists:keyfind(load, 1, Config),
    #{verdicts := #{no := 0, inconclusive := 2, yes := Yes}, gaps := 2, outcome := untrusted, warnings := Warnings} = Summary,
    ?assertEqual(2 * Workers, Yes),
    ?assertMatch([#{code := tracer_lost}, #{code := gap}], Warnings),
    ?assertEqual([{gap, tracer_lost}], lists:usort([R || #{verdict := inconclusive, reason := R} <- Verdicts])).

a_runner_dies(Config) ->
    runners_die(Config, fun(Runners) -> lists:sublist(Runners, 1) end). % that of the load's first process

every_runner_dies(Config) ->
    runners_die(Config, fun(Runners) -> Runners end).

%% A killed runner makes its own verdict inconclusive and no other. Bounded monitors have no runner, so they are unaffected.
runners_die(Config, Victims) ->
    #{summary := {ok, Summary}, verdicts := Verdicts, victims := Killed} =
        in_time(fun() ->
            run(Config, #{monitors => [{{witness_load, '_', '_'}, {?MODULE, load}}]},
                fun(Run) -> Victims(some(fun runners/0, Run)) end)
        end),
    #{verdicts := #{no := 0, inconclusive := N}, monitored := Monitored, gaps := 0, outcome := untrusted} = Summary,
    ?assertEqual(Monitored, length(Verdicts)),
    ?assert(N >= 1),
    ?assert(N =< length(Killed)),
    ?assertEqual([{crashed, killed}], lists:usort([R || #{verdict := inconclusive, reason := R} <- Verdicts])).

the_run_dies(Config) -> the_run_is_lost(Config, fun(Run) -> [Run] end).

the_supervisor_dies(Config) -> the_run_is_lost(Config, fun(_) -> [whereis(witness_sup)] end).

the_notifier_dies(Config) -> the_run_is_lost(Config, {found, fun(Run) -> first(witness_run_notifier, Run) end}).

the_run_is_lost(Config, Victims) ->
    #{summary := Summary} = run(Config, Victims),
    ?assertMatch({error, {witness_run, {run_died, _}}}, Summary).

the_owner_dies(Config) ->
    #{summary := Summary} = run(Config, fun(_) -> [owner] end),
    ?assertMatch({error, {witness_run, {run_died, _}}}, Summary).

the_run_is_stopped(Config) ->
    #{summary := Summary} = run(Config, fun(Run) -> self() ! {stopped, witness:stop(Run)}, [] end),
    ?assertMatch({error, {witness_run, {run_died, _}}}, Summary),
    Stopped = receive {stopped, {ok, S}} -> S end,
    ?assertMatch(#{verdicts := #{no := 0}, gaps := 0, outcome := ok}, Stopped).

%% --- monitors --------------------------------------------------------------------

%% A monitor that misbehaves, beside the one of the load: the verdicts of the latter are those
%% that it gives alone.

a_crashing_monitor(Config) ->
    [?assertMatch({crashed, {error, oops, [_ | _]}}, Reason) || Reason <- beside(Config, #{}, crash)].

a_monitor_with_wrong_returns(Config) ->
    ?assertEqual([{crashed, {bad_return, handle_event, nonsense}}], lists:usort(beside(Config, #{}, nonsense))).

a_monitor_that_never_returns(Config) ->
    ?assertEqual([{crashed, overdue}], lists:usort(beside(Config, #{drain => 5_000}, forever))).

a_slow_monitor(Config) ->
    ?assertEqual([undefined], lists:usort(beside(Config, #{}, slow))).

a_monitor_that_kills_its_runner(Config) ->
    ?assertEqual([{crashed, killed}], lists:usort(beside(Config, #{}, suicide))).

a_monitor_that_floods_its_runner(Config) ->
    ?assertEqual([undefined], lists:usort(beside(Config, #{}, flood))).

beside(Config, Options, Arg) ->
    #{summary := {ok, Summary}, verdicts := Verdicts} =
        run(Config, Options#{monitors => [the_loads(), {{witness_load, '_', '_'}, {?MODULE, Arg}}]}, fun(_) -> [] end),
    {Good, Bad} = lists:partition(fun(#{spec := Spec}) -> Spec =:= ~"witness_load_monitor" end, Verdicts),
    ?assertEqual(301, length(Good)),
    ?assertEqual(301, length(Bad)),
    ?assertEqual([yes], lists:usort([V || #{verdict := V} <- Good])),
    ?assertEqual([inconclusive], lists:usort([V || #{verdict := V} <- Bad])),
    Outcome = case [R || #{reason := {crashed, _} = R} <- Bad] of [] -> ok; _ -> untrusted end,
    ?assertMatch(#{outcome := Outcome, gaps := 0, monitored := 602}, Summary),
    [R || #{reason := R} <- Bad].

%% The user's function runs in the notifier: it is taken off, and everything else goes on.
a_raising_callback(Config) ->
    Self = self(),
    #{summary := {ok, Summary}, verdicts := Verdicts} =
        run(Config, #{on_verdict => fun(V) -> Self ! {verdict, V}, error(oops) end}, fun(_) -> [] end),
    ?assertMatch(#{verdicts := #{yes := 301, no := 0, inconclusive := 0}, outcome := ok}, Summary),
    ?assertEqual(301, length(Verdicts)).

%% The monitor that misbehaves.
init(Signature, P, load) ->
    {ok, State} = witness_load_monitor:init(Signature, P, check),
    {ok, {load, State}};
init(_, _, Arg) -> {ok, Arg}.

handle_event(E, {load, State}) ->
    case witness_load_monitor:handle_event(E, State) of
        {ok, Next} -> {ok, {load, Next}};
        Verdict -> Verdict
    end;
handle_event({init, _, _, _, _}, Arg) -> {ok, Arg};
handle_event(_, quiet) -> {ok, quiet};
handle_event(_, crash) -> error(oops);
handle_event(_, nonsense) -> nonsense;
handle_event(_, forever) -> receive never -> {ok, forever} end;
handle_event(_, suicide) -> exit(self(), kill), receive never -> {ok, suicide} end;
handle_event(_, slow) -> {ok, lists:foldl(fun(_, A) -> A end, slow, lists:seq(1, 20_000))};
handle_event(_, flood) ->
    [self() ! {noise, N} || N <- lists:seq(1, 100)],
    {ok, flood}.

%% --- scope node ------------------------------------------------------------------

the_whole_node_but_witness(Config) ->
    Self = self(),
    {ok, Run} = witness:start(#{source => proplists:get_value(source, Config), system => {?MODULE, waits, [Self]}, scope => node,
                                log => false,
                                monitors => [{{?MODULE, waits, 1}, {?MODULE, quiet}}]}),
    System = receive {waits, Root} -> Root end,
    ?assert(lists:all(fun ours/1, [System, Self, whereis(init), whereis(application_controller), whereis(logger)])),
    Own = own(),
    ?assert(lists:member(Run, Own)),
    ?assertEqual([], [P || P <- [whereis(witness_sup), whereis(witness_weave_loader) | Own], ours(P)]),
    System ! go,
    ?assertMatch({ok, #{outcome := ok, monitored := 1, gaps := 0}}, witness:await(Run, infinity)),
    {ok, _} = witness:stop(Run),
    witness_await:until(fun() -> [P || P <- processes(), ours(P)] =:= [] end, ?CLEAN_MS).

waits(Test) ->
    Test ! {waits, self()},
    receive go -> ok end.

the_load_is_sound_while_the_node_is_observed(Config) ->
    #{summary := {ok, Summary}} = run(Config, #{scope => node}, fun(_) -> [] end),
    ?assertMatch(#{verdicts := #{yes := 5001, no := 0, inconclusive := 0}, outcome := ok, gaps := 0}, Summary).

the_instrumentation_dies_that_observes_the_node(Config) ->
    Coordinator = {found, fun(Run) -> first(coordinator_label(Config), Run) end},
    #{summary := {ok, Summary}} = in_time(fun() -> run(Config, #{scope => node}, Coordinator) end),
    ?assertMatch(#{verdicts := #{no := 0}, outcome := untrusted}, Summary).

%% --- a run -----------------------------------------------------------------------

run(Config, Victims) -> run(Config, #{}, Victims).

%% Observes the load, and when the first verdict is out (or at once), kills what Victims says; sees that
%% the load does what it does alone, and that nothing is left of the run.
run(Config, Options, Victims) ->
    {load, {Load, Args}} = lists:keyfind(load, 1, Config),
    Expected = alone(Load, Args),
    Self = self(),
    Before = processes(),
    Defaults = #{source => proplists:get_value(source, Config), system => {witness_load, Load, [Self | Args]}, log => false,
                 monitors => [the_loads()],
                 on_verdict => fun(V) -> Self ! {verdict, V} end, max_verdicts => 1_000_000},
    Owner = spawn(fun() -> own(Self, maps:merge(Defaults, Options)) end),
    Run = receive {run, Owner, {ok, R}} -> R end,
    %% Asked later, a busy node may take longer to find a process than to end the load.
    {When, Chosen} = case Victims of
        {How, Find} -> Found = Find(Run), {How, fun(_) -> Found end};
        _ -> {found, Victims}
    end,
    When =:= at_once orelse receive {verdict, _} -> ok end,
    Killed = [case V of owner -> Owner; _ -> V end || V <- Chosen(Run)],
    Refs = [{monitor(process, V), exit(V, kill)} || V <- Killed],
    [receive {'DOWN', Ref, process, _, _} -> ok end || {Ref, _} <- Refs],
    ?assertEqual(Expected, receive {done, _, Messages, _} -> Messages end),
    Summary = witness:await(Run, infinity),
    Verdicts = try witness:verdicts(Run) catch exit:_ -> [] end,
    Told = told(),
    ?assertEqual([], [V || #{verdict := no} = V <- Verdicts ++ Told]),
    _ = witness:stop(Run),
    exit(Owner, kill),
    clean(Before),
    #{summary => Summary, verdicts => Verdicts, victims => Killed}.

%% If the victims have ended before they were found, or are killed when everything has been decided, no verdict is lost (the run may
%% still be untrusted): then the run is tried again.
in_time(Run) ->
    case Run() of
        #{summary := {ok, #{gaps := 0, verdicts := #{no := 0, inconclusive := 0}}}} -> in_time(Run);
        Result -> Result
    end.

own(Test, Options) ->
    Test ! {run, self(), witness:start(Options)},
    receive never -> ok end.

the_loads() -> {{witness_load, '_', '_'}, {witness_load_monitor, check}}.

alone(Load, Args) ->
    spawn_link(witness_load, Load, [self() | Args]),
    receive {done, _, Messages, _} -> Messages end.

told() -> receive {verdict, V} -> [V | told()] after 0 -> [] end.

%% No process of the run and no session, on any process, once those that were told to end
%% have done so. What else the node has started meanwhile is not Witness's.
clean(Before) ->
    witness_await:until(fun() -> own() =:= [] end, ?CLEAN_MS),
    witness_await:until(fun() -> [P || P <- processes(), ours(P)] =:= [] end, ?CLEAN_MS),
    witness_await:until(fun() -> [P || P <- processes() -- Before, {M, _, _} <- [proc_lib:translate_initial_call(P)],
                              M =:= witness_load] =:= [] end, ?CLEAN_MS).

ours(P) ->
    case trace:session_info(P) of
        undefined -> false;
        Sessions -> [S || {Name, _} = S <- Sessions, Name =:= witness_trace_evm orelse Name =:= witness_trace_native] =/= []
    end.

own() -> [P || P <- processes(), is_own(proc_lib:get_label(P))].

is_own({witness_monitor, _, _}) -> true;
is_own(Label) ->
    lists:member(Label, [witness_run, witness_pool, witness_tracer, witness_dispatcher, witness_shard, witness_timer,
                         witness_run_notifier]).

%% Those that read the oldest processes first.
runners() ->
    element(2, lists:unzip(lists:sort([{Read, P} || P <- processes(), {witness_monitor, _, Read} <- [proc_lib:get_label(P)]]))).

first(Label, Run) -> some(fun() -> lists:sublist(lists:sort(labelled(Label)), 1) end, Run).

%% It is one of the first processes of the run: to ask all those of a busy node for their labels may take longer than the
%% load. When it watches its monitors, they have been started and announced.
first_tracer(Before, Run) -> some(fun() -> first_tracer(lists:sort(processes() -- Before)) end, Run).

first_tracer([]) -> [];
first_tracer([P | Others]) ->
    case proc_lib:get_label(P) =:= witness_tracer andalso process_info(P, monitors) of
        false -> first_tracer(Others);
        {monitors, [_, _]} -> [P];
        _ -> []
    end.

coordinator_label(Config) ->
    case proplists:get_value(source, Config) of native -> witness_dispatcher; evm -> witness_pool end.

labelled(Label) -> [P || P <- processes(), proc_lib:get_label(P) =:= Label].

%% The tracers of one kind that the pool has; none if the pool has ended.
pool(Field, Config) ->
    try [{Field, sys:get_state(Pool)} || Pool <- labelled(coordinator_label(Config))] of
        [{root, State}] -> [P || {P, _, _} <- [element(3, State)]];
        [{free, State}] -> [P || {P, _, _} <- element(4, State)];
        [{busy, State}] -> maps:keys(element(7, State));
        [] -> []
    catch
        exit:_ -> []
    end.

%% What is there at last; nothing if the run has finished before it was seen.
some(Fun, Run) ->
    case Fun() of
        [] ->
            case witness:info(Run) of
                #{phase := finished} -> [];
                #{} -> erlang:yield(), some(Fun, Run)
            end;
        Some -> Some
    end.
