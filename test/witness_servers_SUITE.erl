-module(witness_servers_SUITE).
-moduledoc """
What processes that run already start on behalf of a system: each run observes what was started for it, from its birth, and nothing
that was started for others.
""".

-export([all/0, suite/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2,
         init_per_testcase/2, end_per_testcase/2]).
-export([each_run_observes_what_was_started_for_it/1, every_event_of_what_was_started_is_there/1]).
-export([a_restarted_worker_is_of_the_run/1, what_is_cast_is_of_no_run/1, an_allowed_process_starts_all_for_the_run/1]).
-export([servers_are_neither_observed_nor_awaited/1, children_of_strangers_are_of_no_run/1, central_monitors_observe_the_same/1]).
-export([a_first_process_may_call_servers/1, a_parent_with_a_signature_is_observed/1, nothing_is_left/1]).
-export([refused/1]).
-export([calls/2]).

-include_lib("stdlib/include/assert.hrl").

suite() -> [{timetrap, {minutes, 5}}].

all() -> [{group, one_scheduler}, {group, all_schedulers}, refused].

groups() ->
    Cases = [each_run_observes_what_was_started_for_it, every_event_of_what_was_started_is_there, a_restarted_worker_is_of_the_run,
             what_is_cast_is_of_no_run, an_allowed_process_starts_all_for_the_run, servers_are_neither_observed_nor_awaited,
             children_of_strangers_are_of_no_run, central_monitors_observe_the_same, a_first_process_may_call_servers,
             a_parent_with_a_signature_is_observed, nothing_is_left],
    [{one_scheduler, [], Cases}, {all_schedulers, [], Cases}].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(witness),
    case witness_trace_native:available() of
        ok -> Config;
        {error, Why} -> {skip, Why}
    end.

end_per_suite(_) -> ok.

init_per_group(one_scheduler, Config) -> [{online, erlang:system_flag(schedulers_online, 1)} | Config];
init_per_group(all_schedulers, Config) -> Config.

end_per_group(one_scheduler, Config) -> erlang:system_flag(schedulers_online, proplists:get_value(online, Config));
end_per_group(all_schedulers, _) -> ok.

init_per_testcase(_, Config) -> [{servers, witness_servers_system:start()} | Config].

end_per_testcase(_, Config) -> witness_servers_system:stop(proplists:get_value(servers, Config)).

-define(WAYS, [supervisor, call, spawned, continue, process]).
-define(WORKERS, {witness_servers_system, init, 1}).

%% Runs at the same time, over the same servers, each with the workers that it has asked for, and a process without a run.
each_run_observes_what_was_started_for_it(Config) ->
    Servers = proplists:get_value(servers, Config),
    Noise = spawn_link(fun Loop() -> start_any({noise, make_ref()}, Servers), Loop() end),
    Clients = [begin
                   {Client, Monitor} = spawn_monitor(fun() -> exit({observed, ask(Id, 60, #{}, Servers)}) end),
                   {Monitor, Client, Id}
               end || Id <- lists:seq(1, 8)],
    Observed = [receive {'DOWN', Monitor, process, Client, {observed, Names}} -> {Id, Names} end
                || {Monitor, Client, Id} <- Clients],
    unlink(Noise),
    exit(Noise, kill),
    [?assertEqual([{Id, N} || N <- lists:seq(1, 60)], Names) || {Id, Names} <- Observed].

central_monitors_observe_the_same(Config) ->
    ?assertEqual([{central, N} || N <- lists:seq(1, 30)],
                 ask(central, 30, #{instrument => central}, proplists:get_value(servers, Config))).

%% The names of the workers that the run has observed.
ask(Id, Count, Options, Servers) ->
    {ok, Run} = watch(Options, [self()]),
    lists:foreach(fun(N) -> start_any({Id, N}, Servers) end, lists:seq(1, Count)),
    names(Run).

start_any(Name, Servers) ->
    {ok, Worker} = witness_servers_system:start_child(lists:nth(rand:uniform(length(?WAYS)), ?WAYS), Name, Servers),
    Worker.

watch(Options, Parents) ->
    witness:start(maps:merge(#{system => {children, Parents}, on_behalf => true, log => false,
                               monitors => [{?WORKERS, {witness_counting_monitor, counters:new(1, [])}}]}, Options)).

names(Run) ->
    {ok, #{warnings := []}} = witness_run:finish(Run),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    lists:sort([Name || #{signature := {witness_servers_system, init, [Name]}} <- Verdicts]).

%% A worker that is observed from its birth has as many events as it has been called: birth, and a call and an answer for each.
every_event_of_what_was_started_is_there(Config) ->
    Servers = proplists:get_value(servers, Config),
    Counter = counters:new(1, []),
    {ok, Run} = watch(#{monitors => [{?WORKERS, {witness_counting_monitor, Counter}}]}, [self()]),
    Workers = [start_any(N, Servers) || N <- lists:seq(1, 50)],
    [?assertEqual(N, gen_server:call(Worker, name)) || _ <- lists:seq(1, 20), {N, Worker} <- lists:enumerate(Workers)],
    {ok, _} = witness:stop(Run),
    %% Beside that each tells its starter that it has begun.
    ?assertEqual(50 * (1 + 1 + 20 * 2), counters:get(Counter, 1)).

a_restarted_worker_is_of_the_run(Config) ->
    {Supervisor, _} = Servers = proplists:get_value(servers, Config),
    {ok, Other} = witness_servers_system:start_child(call, other, Servers),
    {ok, Run} = watch(#{}, [self()]),
    {ok, Worker} = witness_servers_system:start_child(call, mine, Servers),
    %% The supervisor has handled an exit when it answers.
    [begin ok = witness_servers_system:crash(P), supervisor:count_children(Supervisor) end || P <- [Other, Worker]],
    ?assertEqual([mine, mine], names(Run)).

what_is_cast_is_of_no_run(Config) ->
    Servers = proplists:get_value(servers, Config),
    {ok, Run} = watch(#{}, [self()]),
    [{ok, _} = witness_servers_system:start_child(How, How, Servers) || How <- [call, cast, call, message]],
    ?assertEqual([call, call], names(Run)).

%% What the supervisor of the node starts, it starts on behalf of the desk.
an_allowed_process_starts_all_for_the_run(Config) ->
    {_, Desk} = Servers = proplists:get_value(servers, Config),
    {ok, Run} = watch(#{}, [self()]),
    ok = witness:allow(Run, Desk),
    [{ok, _} = witness_servers_system:start_child(How, How, Servers) || How <- [call, cast, message, process]],
    ?assertEqual(lists:sort([call, cast, message, process]), names(Run)),
    ?assertMatch({error, {witness_run, {run_died, _}}}, witness:allow(Run, Desk)).

%% The run ends with its parent, though the workers and servers live on.
servers_are_neither_observed_nor_awaited(Config) ->
    {Supervisor, Desk} = Servers = proplists:get_value(servers, Config),
    Test = self(),
    Parent = spawn_link(fun() ->
        receive go -> Test ! {started, witness_servers_system:start_child(call, mine, Servers)} end,
        receive 'end' -> ok end
    end),
    {ok, Run} = watch(#{checks => [calls]}, [Parent]),
    Parent ! go,
    {ok, Worker} = receive {started, Started} -> Started end,
    #{processes := Busy, servers := Idle} = remaining(Run),
    Alive = [P || #{process := P} <- Busy ++ Idle],
    ?assertEqual(lists:sort([Parent, Worker]), lists:sort(Alive)),
    ?assertNot(lists:member(Supervisor, Alive) orelse lists:member(Desk, Alive)),
    ?assertEqual([Parent], witness_run:awaited(Run)),
    Parent ! 'end',
    {ok, #{outcome := Outcome}} = witness:await(Run, 60_000),
    ?assertNotEqual(untrusted, Outcome),
    ?assertEqual([{witness_servers_system, init, [mine]}],
                 lists:usort([Signature || #{signature := Signature} <- witness:verdicts(Run)])),
    {ok, _} = witness:stop(Run),
    ?assertEqual(mine, gen_server:call(Worker, name)).

%% A run that has no time to look within a second says so.
remaining(Run) ->
    case witness_run:remaining(Run) of
        none -> remaining(Run);
        Remaining -> Remaining
    end.

%% A process that was started for others is a server, and so is what it starts. A worker that is of the run starts for the run.
children_of_strangers_are_of_no_run(Config) ->
    Servers = proplists:get_value(servers, Config),
    Test = self(),
    Stranger = spawn_link(fun() ->
        receive go -> ok end,
        {ok, Desk} = witness_servers_system:start_child(spawned, {desk, element(1, Servers)}, Servers),
        {ok, _} = gen_server:call(Desk, {spawned, of_stranger}),
        Test ! {desk, Desk}
    end),
    {ok, Run} = watch(#{}, [self()]),
    Stranger ! go,
    Desk = receive {desk, P} -> P end,
    {ok, _} = gen_server:call(Desk, {spawned, mine}),
    ?assertEqual([mine], names(Run)).

a_first_process_may_call_servers(Config) ->
    Servers = proplists:get_value(servers, Config),
    {ok, Run} = witness:start(#{system => {?MODULE, calls, [30, Servers]}, on_behalf => true, log => false,
                                monitors => [{?WORKERS, {witness_counting_monitor, counters:new(1, [])}}]}),
    {ok, _} = witness:await(Run, 60_000),
    ?assertEqual(lists:seq(1, 30), names(Run)).

calls(Count, Servers) -> lists:foreach(fun(N) -> start_any(N, Servers) end, lists:seq(1, Count)).

%% From the start of the run to its end.
a_parent_with_a_signature_is_observed(Config) ->
    Servers = proplists:get_value(servers, Config),
    Counter = counters:new(1, []),
    Parent = spawn_link(fun() ->
        receive go -> ok end,
        {ok, Worker} = witness_servers_system:start_child(supervisor, mine, Servers),
        [gen_server:call(Worker, name) || _ <- lists:seq(1, 10)]
    end),
    {ok, Run} = watch(#{monitors => [{{tested, begins, 1}, {witness_counting_monitor, Counter}}]},
                      [{Parent, {tested, begins, [mine]}}]),
    Parent ! go,
    {ok, #{monitored := 1}} = witness:await(Run, 60_000),
    ?assertMatch([#{signature := {tested, begins, [mine]}, process := Parent}], witness:verdicts(Run)),
    {ok, _} = witness:stop(Run),
    %% The birth, the message to go, eleven calls with their answers, the end.
    ?assertEqual(1 + 1 + 22 + 1, counters:get(Counter, 1)).

%% After the run the servers are not traced, and the native code has nothing left.
nothing_is_left(Config) ->
    {Supervisor, Desk} = Servers = proplists:get_value(servers, Config),
    %% Also those of a process of an earlier run that is ending.
    Before = witness_trace_native:resources(),
    ?assertEqual([{leaves, N} || N <- lists:seq(1, 20)], ask(leaves, 20, #{}, Servers)),
    erlang:garbage_collect(),
    ok = witness_await:until(fun() ->
        case maps:filter(fun(Kind, Number) -> Number > maps:get(Kind, Before) end, witness_trace_native:resources()) of
            More when map_size(More) =:= 0 -> true;
            More -> More
        end
    end),
    [?assertEqual([], trace:session_info(P)) || P <- [Supervisor, Desk]].

refused(_) ->
    {error, {witness_option, {bad_option, on_behalf, _}}} = watch(#{source => evm}, [self()]),
    {error, {witness_options, {not_inline, on_behalf}}} = watch(#{instrument => inline}, [self()]),
    {error, {witness_options, {not_attached, on_behalf}}} = witness:start(#{system => node, on_behalf => true}),
    {error, {witness_option, {bad_option, system, _}}} = watch(#{}, [{self(), no_signature}]),
    {ok, Run} = watch(#{on_behalf => false}, [self()]),
    {error, {witness_run, {not_allowed, off}} = Error} = witness:allow(Run, whereis(init)),
    ?assertMatch({match, _}, re:run(witness:format_error(Error), "on_behalf")),
    {ok, _} = witness_run:finish(Run),
    {ok, _} = witness:stop(Run),
    ok.
