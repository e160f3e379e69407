-module(witness_outline_dispatcher).
-moduledoc """
Outline instrumentation over the native source: gives each partition to its readers.

The source gives every new process that a property may name its own partition before the process can act, and reports the
birth to this process. So no process is ever handed over, and no event is routed. (RIARC's choreography is for sources that
cannot do this, see `m:witness_outline_core`.) What is left of it is the assignment, Algorithm 2, once for each birth:

- If only bounded monitors may read the process, its partition belongs to a shard, which makes the assignment
  (`m:witness_outline_shard`). The birth is not reported here.
- If the instrumentation maps do not name the process after all, no monitor reads the partition.
- If exactly one monitor reads it, and that is no group, its runner takes the events by itself.
- Otherwise a tracer reads it and hands the events on (`m:witness_outline_partition`).

Events wait in their partition meanwhile, so nothing is missed, however late a birth is handled.

```
source                 births                 run          runner, or tracer
  |-- birth of P -------->|                     |                 |
  |                       |-- start --------------------------->  |
  |                       |-- monitor --------->|                 |
  | <----------------------------------------------------- take --|
  |-- batch ---------------------------------------------------> |
```

In mode `central` all processes have one partition, which one tracer reads with all monitors (`m:witness_central_tracer`).
Then no birth is reported here, only that the last process has ended, and which processes have hidden themselves.

## When a process dies

- If a runner dies, its verdict is inconclusive.
- If a tracer dies, its monitors have a gap. The run is notified, since unread events may have named further processes.
- If a shard dies, its monitors are inconclusive, the run is notified likewise, and the shard gets a successor.
- If this process dies, the run ends every monitor with a gap.
""".
-behaviour(gen_server).
-behaviour(witness_instrument).

-export([abilities/0]).
-export([start_link/1, launch/3, parents/2, servers/3, alive/1, awaited/1, scope/1, adopt_node/2, replace/2, stop/1, info/1]).
-export([called/1, seen/1, session/1, counts/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).

-export_type([config/0]).

-doc """
`source_options` are those of `witness_trace_native:open/1`, which also set the number of shards. `central`: there is one
tracer, and these properties are over all processes; `drain`: the milliseconds that `stop/1` waits for that tracer.
""".
-type config() :: #{source_options := map(), run := pid(), maps := [witness_instrument_map:instrumentation()],
                    explain := pos_integer(), max_slices := pos_integer(), slice_idle => pos_integer() | infinity,
                    signatures => witness_event_wrapper:table(), stop_time => witness_monitor_stop_time:stop_time(),
                    memory => pos_integer(), partition_memory := pos_integer(), turns => witness_monitor_throttle:turns(),
                    clock => witness_monitor_runner:clock(),
                    central => [witness_instrument_map:entry()], drain => timeout()}.

%% runners: how many runners read a partition by themselves
%% tracers: those of partitions that several monitors, or groups, may read
%% most: the most partitions that were read at the same time
%% shards: the process of each shard, with its shard
%% replacing: the call that waits until these tracers and shards have the new maps
%% kinds: the kinds of events that a monitor reads, for the monitors that have been started
-record(dispatcher, {config :: config(),
                     session :: witness_trace_native:session(),
                     births :: witness_trace_native:partition(),
                     runners = 0 :: non_neg_integer(),
                     tracers = #{} :: #{pid() => []},
                     shards = #{} :: #{pid() => witness_trace_native:shard()},
                     replacing :: undefined | {gen_server:from(), Tag :: reference(), #{pid() => []}},
                     kinds = #{} :: #{Monitor :: {module(), term()} => all | [witness_event:kind()]},
                     most = 0 :: non_neg_integer()}).

-doc false.
-spec abilities() -> witness_instrument:abilities().
abilities() ->
    #{attach => false, parents => true, servers => true, adopt_node => true, alive => true, awaited => true, replace => true,
      each => false, acknowledge => false, lives => false, give_up => false, inherit => false, called => true,
      seen => true}.

-doc "Starts the instrumentation of a run, which is the calling process.".
-spec start_link(config()) -> gen_server:start_ret().
start_link(Config) ->
    %% Births are garbage at once, and keep partitions of the source alive until they are collected.
    gen_server:start_link(?MODULE, Config, [{spawn_opt, [{message_queue_data, off_heap}, {fullsweep_after, 0}]}]).

-doc "Starts the system's first process under observation.".
-spec launch(pid(), {module(), atom(), [term()]}, GroupLeader :: pid()) -> {ok, pid()}.
launch(Dispatcher, MFA, GroupLeader) -> gen_server:call(Dispatcher, {launch, MFA, GroupLeader}, infinity).

-doc "See `c:witness_instrument:parents/2`.".
-spec parents(pid(), [witness_instrument:parent()]) -> ok.
parents(Dispatcher, Parents) -> gen_server:call(Dispatcher, {parents, Parents}, infinity).

-doc "See `c:witness_instrument:servers/3`. Needs `servers` among the options of the source.".
-spec servers(pid(), [pid()], Always :: boolean()) -> ok.
servers(Dispatcher, Servers, Always) -> gen_server:call(Dispatcher, {servers, Servers, Always}, infinity).

-doc "The processes that are observed and have not ended.".
-spec alive(pid()) -> [pid()].
alive(Dispatcher) -> gen_server:call(Dispatcher, alive, infinity).

-doc "Those of them that the run waits for.".
-spec awaited(pid()) -> [pid()].
awaited(Dispatcher) -> gen_server:call(Dispatcher, awaited, infinity).

-doc "A function that tells whether a process is observed.".
-spec scope(pid()) -> fun((pid()) -> boolean()).
scope(Dispatcher) ->
    Session = session(Dispatcher),
    fun(P) -> witness_trace_native:traced(Session, P) end.

-doc "Observes every process of the node for which `Own` is false, with all that they spawn.".
-spec adopt_node(pid(), fun((pid()) -> boolean())) -> ok.
adopt_node(Dispatcher, Own) -> gen_server:call(Dispatcher, {adopt_node, Own}, infinity).

-doc """
From now on new processes have these maps, each of them either all of the old ones or all of the new ones. When the call
returns, no monitor is started by the old maps any more, and each one that was has been reported to the run.
""".
-spec replace(pid(), [witness_instrument_map:instrumentation()]) -> ok.
replace(Dispatcher, Maps) -> gen_server:call(Dispatcher, {replace, Maps}, infinity).

-doc """
Ends observation in good order. When the call returns, every monitor has been reported to the run. Each partition notifies
its monitors that watching has ended.
""".
-spec stop(pid()) -> ok.
stop(Dispatcher) -> gen_server:call(Dispatcher, stop, infinity).

-doc "How many partitions are read now, and how many at most at the same time. No tracer is kept idle.".
-spec info(pid()) -> #{busy := non_neg_integer(), idle := non_neg_integer(), most := pos_integer()}.
info(Dispatcher) -> gen_server:call(Dispatcher, info, infinity).

-doc "See `c:witness_instrument:called/1`.".
-spec called(pid()) -> fun((pid()) -> [atom()]).
called(Dispatcher) -> witness_trace_native:called(session(Dispatcher)).

-doc "See `c:witness_instrument:seen/1`.".
-spec seen(pid()) -> fun(() -> [witness_instrument:sight()]).
seen(Dispatcher) -> witness_trace_native:seen(session(Dispatcher)).

-doc "The session that `counts/1` takes; it stays valid when this process has ended.".
-spec session(pid()) -> witness_trace_native:session().
session(Dispatcher) -> gen_server:call(Dispatcher, session, infinity).

-doc "How many processes and events were seen, and how many of the processes that the run waits for are alive.".
-spec counts(witness_trace_native:session()) ->
    #{processes := non_neg_integer(), events := non_neg_integer(), held := non_neg_integer()}.
counts(Session) -> maps:with([processes, events, held], witness_trace_native:counts(Session)).

-doc false.
-spec init(config()) -> {ok, #dispatcher{}, {continue, take}}.
init(Given = #{source_options := Options, run := Run}) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(witness_dispatcher),
    Session = witness_trace_native:open(Options),
    Config = Given#{turns => witness_monitor_throttle:start_link(Run),
                    clock => {session, fun() -> witness_trace_native:delivered(Session) end}},
    Shards = #{witness_outline_shard:start_link(Shard, Config) => Shard || Shard <- witness_trace_native:shards(Session)},
    {ok, #dispatcher{config = Config, session = Session, births = witness_trace_native:births(Session),
                     shards = Shards, tracers = start_central(Session, Config)}, {continue, take}}.

%% The one tracer, which runs from the start. It needs `init' and `exit', whatever kinds of events its monitors read.
start_central(Session, #{central := _, grouped := Grouped, kinds := Kinds} = Config) ->
    Partition = witness_trace_native:central(Session, Grouped),
    _ = Kinds =:= all orelse witness_trace_native:narrow(Partition, [init, exit | Kinds]),
    #{witness_central_tracer:start_link(Partition, Config) => []};
start_central(_, _) -> #{}.

-doc false.
-spec handle_continue(take, #dispatcher{}) -> {noreply, #dispatcher{}}.
handle_continue(take, D) -> {noreply, take(D)}.

-doc false.
-spec handle_call(term(), gen_server:from(), #dispatcher{}) ->
    {reply, term(), #dispatcher{}} | {noreply, #dispatcher{}} | {stop, normal, term(), #dispatcher{}}.
handle_call({launch, MFA, GroupLeader}, _, D = #dispatcher{session = Session, config = #{run := Run}}) ->
    Launcher = witness_instrument_launcher:start_link(MFA, GroupLeader, Run),
    ok = witness_trace_native:launcher(Session, Launcher),
    {reply, {ok, witness_instrument_launcher:launch_known(Launcher)}, D};
handle_call({parents, Parents}, _, D = #dispatcher{session = Session}) ->
    lists:foreach(fun({P, Signature}) -> witness_trace_native:adopt(Session, P, Signature);
                     (P) -> witness_trace_native:parent(Session, P)
                  end, Parents),
    {reply, ok, D};
handle_call({servers, Servers, Always}, _, D = #dispatcher{session = Session}) ->
    lists:foreach(fun(P) -> witness_trace_native:server(Session, P, Always) end, Servers),
    {reply, ok, D};
handle_call(alive, _, D = #dispatcher{session = Session}) ->
    {reply, [P || P <- processes(), witness_trace_native:traced(Session, P)], D};
handle_call(awaited, _, D = #dispatcher{session = Session}) ->
    {reply, [P || P <- processes(), witness_trace_native:awaited(Session, P)], D};
handle_call({adopt_node, Own}, _, D = #dispatcher{session = Session}) ->
    ok = adopt_all(Own, #{}, Session),
    {reply, ok, D};
%% Modules of specifications reuse names, so nothing that is keyed by such a name stays.
handle_call({replace, Maps}, From, D = #dispatcher{config = Config, tracers = Tracers, shards = Shards}) ->
    Tag = make_ref(),
    lists:foreach(fun(Pid) -> witness_outline_partition:replace(Pid, Maps, Tag) end, maps:keys(Tracers)),
    lists:foreach(fun(Pid) -> witness_outline_shard:replace(Pid, Maps, Tag) end, maps:keys(Shards)),
    Waiting = maps:merge(Tracers, #{Pid => [] || Pid := _ <- Shards}),
    {noreply, reply_if_replaced(D#dispatcher{config = Config#{maps := Maps}, kinds = #{}, replacing = {From, Tag, Waiting}})};
handle_call(session, _, D = #dispatcher{session = Session}) ->
    {reply, Session, D};
handle_call(info, _, D = #dispatcher{config = #{central := _}}) ->
    {reply, #{busy => 1, idle => 0, most => 1}, D};
handle_call(info, _, D = #dispatcher{most = Most, session = Session}) ->
    #{read := Read, most_read := MostRead} = witness_trace_native:counts(Session),
    {reply, #{busy => count_busy(D) + Read, idle => 0, most => max(1, Most + MostRead)}, D};
handle_call(stop, _, D = #dispatcher{session = Session, config = Config}) ->
    ok = witness_outline_drain:watch(Config),
    Time = witness_outline_drain:reach(fun() -> witness_trace_native:delivered(Session) end,
                                       fun(Ref) -> {trace_delivered, all, Ref} end, Config),
    ok = witness_outline_drain:note(Time, Config),
    ok = witness_trace_native:close(Session),
    ok = await_tracers(drain(take(D))),
    {stop, normal, ok, await_shards(D)}.

-doc false.
-spec handle_cast(term(), #dispatcher{}) -> {noreply, #dispatcher{}}.
handle_cast(_, D) -> {noreply, D}.

-doc false.
-spec handle_info(term(), #dispatcher{}) -> {noreply, #dispatcher{}} | {stop, term(), #dispatcher{}}.
handle_info({witness_batch, Items, Status}, D) ->
    D1 = handle_births(Items, Status, D),
    {noreply, take(D1)};
handle_info(witness_data, D) ->
    {noreply, take(D)};
handle_info({replaced, Pid, Tag}, D = #dispatcher{replacing = {From, Tag, Waiting}}) ->
    {noreply, reply_if_replaced(D#dispatcher{replacing = {From, Tag, maps:remove(Pid, Waiting)}})};
handle_info({'DOWN', _, process, _, _}, D = #dispatcher{runners = Runners}) ->
    {noreply, D#dispatcher{runners = Runners - 1}};
handle_info({'EXIT', Pid, Reason}, D) ->
    {noreply, handle_exit(Pid, Reason, D)};
handle_info(_, D) ->
    {noreply, D}.

-doc false.
-spec terminate(term(), #dispatcher{}) -> ok.
terminate(_, #dispatcher{tracers = Tracers}) ->
    %% After a good end no tracer is left. If the reason is `normal' (`sys:terminate/2'), links alone do not end tracers.
    %% Shards trap exits, so they end then too.
    lists:foreach(fun(Pid) -> exit(Pid, kill) end, maps:keys(Tracers)).

%% A crash report would contain the arguments of processes.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> witness_event_redact:status(Status).

take(D = #dispatcher{births = Births}) ->
    _ = witness_trace_native:take(Births),
    D.

%% After `close/1' the source delivers the rest of the births, in any number of batches.
drain(D) ->
    receive
        {witness_batch, Items, open} -> drain(take(handle_births(Items, open, D)));
        {witness_batch, Items, stopped} -> handle_births(Items, open, D);
        {witness_batch, Items, Status} -> handle_births(Items, Status, D);
        witness_data -> drain(take(D));
        {'DOWN', _, process, _, _} -> drain(D)
    end.

%% The partitions of tracers have ended too. The run has to know of every monitor that a tracer starts before it ends.
await_tracers(#dispatcher{tracers = Tracers}) when map_size(Tracers) =:= 0 -> ok;
await_tracers(D) ->
    receive
        overdue -> witness_outline_drain:give_up(maps:keys(D#dispatcher.tracers));
        {'EXIT', Pid, Reason} -> await_tracers(handle_exit(Pid, Reason, D));
        {'DOWN', _, process, _, _} -> await_tracers(D)
    end.

%% Every partition of a shard has ended. A shard that has finished may stay for monitors that have moved out of it.
await_shards(D = #dispatcher{shards = Shards}) ->
    Tag = make_ref(),
    lists:foreach(fun(Pid) -> witness_outline_shard:finish(Pid, Tag) end, maps:keys(Shards)),
    await_shards(maps:keys(Shards), Tag, D).

await_shards([], _, D) -> D#dispatcher{shards = #{}};
await_shards([Pid | Pids], Tag, D) ->
    receive
        {finished, Pid, Tag} -> await_shards(Pids, Tag, D);
        {'EXIT', Pid, Reason} ->
            %% Its successor gets the partitions that it has not been given.
            D1 = handle_exit(Pid, Reason, D),
            [Next] = maps:keys(D1#dispatcher.shards) -- maps:keys(D#dispatcher.shards),
            ok = witness_outline_shard:finish(Next, Tag),
            await_shards([Next | Pids], Tag, D1)
    end.

%% --- births ----------------------------------------------------------------------

handle_births(Items, Status, D) ->
    %% The source loses births only if it has no memory. Then the run does not know which processes are unread.
    Status =:= open orelse exit({births_lost, Status}),
    D1 = #dispatcher{most = Most} = lists:foldl(fun handle_item/2, D, Items),
    D1#dispatcher{most = max(Most, count_busy(D1))}.

count_busy(#dispatcher{runners = Runners, tracers = Tracers}) -> Runners + map_size(Tracers).

handle_item({birth, Partition, Grouped, Held, P, Raw}, D = #dispatcher{config = #{maps := Maps} = Config}) ->
    Signature = witness_event_signature:resolve(Raw, witness_event_wrapper:of_config(Config)),
    Label = witness_instrument_map:new(Maps, #{held => Held, signature => Signature}),
    case witness_instrument_map:starts(Label) of
        [] when not Grouped ->
            ok = witness_trace_native:unread(Partition),
            D;
        [{_, Entry = #{monitor := Monitor}}] when not Grouped ->
            D1 = narrow(Partition, Monitor, D),
            Given = maps:with([run, explain, max_slices, slice_idle, stop_time, memory, turns, signatures, clock], Config),
            Take = witness_instrument_monitors:take_fun(Partition),
            Runner = witness_instrument_monitors:start(P, Signature, Entry, Given#{ordered => false, take => Take}),
            monitor(process, Runner),
            D1#dispatcher{runners = D1#dispatcher.runners + 1};
        _ ->
            Tracer = witness_outline_partition:start_link(Partition, Grouped, {P, Signature, Label}, Config),
            D#dispatcher{tracers = (D#dispatcher.tracers)#{Tracer => []}}
    end;
handle_item({hidden, P}, D = #dispatcher{config = #{run := Run}}) ->
    Run ! {hidden, P},
    D;
handle_item(ended, D = #dispatcher{config = #{run := Run}}) ->
    Run ! {ended, self()},
    D.

%% The source leaves out the events that the only reader would skip.
narrow(Partition, Monitor, D = #dispatcher{kinds = Kinds}) ->
    case Kinds of
        #{Monitor := all} -> D;
        #{Monitor := Some} -> ok = witness_trace_native:narrow(Partition, Some), D;
        #{} -> narrow(Partition, Monitor, D#dispatcher{kinds = Kinds#{Monitor => witness_monitor_alphabet:kinds(Monitor)}})
    end.

%% --- processes that ran before ---------------------------------------------------

%% Each scan of all processes may find new ones with parents that were not on yet. When a scan finds none, every process is
%% on, and later ones inherit the session. To switch on a process that is on already changes nothing.
adopt_all(Own, Seen, Session) ->
    case [P || P <- processes(), not is_map_key(P, Seen), not Own(P)] of
        [] -> ok;
        New ->
            lists:foreach(fun(P) -> witness_trace_native:on(Session, P) end, New),
            adopt_all(Own, maps:merge(Seen, #{P => [] || P <- New}), Session)
    end.

reply_if_replaced(D = #dispatcher{replacing = {From, _, Waiting}}) when map_size(Waiting) =:= 0 ->
    gen_server:reply(From, ok),
    D#dispatcher{replacing = undefined};
reply_if_replaced(D) -> D.

%% --- deaths ----------------------------------------------------------------------

%% If a tracer dies, others go on: the source drops what it would have read, and its monitors notice by themselves.
handle_exit(Pid, Reason, D = #dispatcher{tracers = Tracers, config = #{run := Run}}) ->
    case Tracers of
        #{Pid := _} when is_map_key(central, D#dispatcher.config), Reason =/= normal ->
            exit(Reason);
        #{Pid := _} ->
            _ = Reason =:= normal orelse (Run ! {tracer_lost, Reason}),
            remove_awaited(Pid, D#dispatcher{tracers = maps:remove(Pid, Tracers)});
        #{} when is_map_key(Pid, D#dispatcher.shards) -> restart_shard(Pid, Reason, D);
        #{} when Reason =:= normal -> D;
        #{} -> exit({process_ended, Pid, Reason})
    end.

%% Partitions that the shard has not been given wait for its successor.
restart_shard(Pid, Reason, D = #dispatcher{shards = Shards, config = #{run := Run} = Config}) ->
    {Shard, Others} = maps:take(Pid, Shards),
    Run ! {tracer_lost, Reason},
    ok = witness_trace_native:reset(Shard),
    remove_awaited(Pid, D#dispatcher{shards = Others#{witness_outline_shard:start_link(Shard, Config) => Shard}}).

remove_awaited(Pid, D = #dispatcher{replacing = {From, Tag, Waiting}}) ->
    reply_if_replaced(D#dispatcher{replacing = {From, Tag, maps:remove(Pid, Waiting)}});
remove_awaited(_, D) -> D.
