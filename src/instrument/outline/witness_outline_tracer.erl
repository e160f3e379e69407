-module(witness_outline_tracer).
-moduledoc """
The process of a tracer: performs what `m:witness_outline_core` decides.

A tracer owns one session of the source for its whole life and one partition after the
other: when nothing is left to analyse or to route, it gives itself back to
`m:witness_outline_pool`. It hands events to the monitors in batches, at the latest when its
mailbox is empty (`m:witness_outline_delivery`).

In mode `central` there is one tracer: every new process stays with it, and its monitors are in its own process.

If a run has no monitors and only looks at its processes (`looks`), there is one tracer, too. Its session has the processes and what they
spawn, but no births and exits. If the run waits for the processes, the tracer monitors those that are there. When all of these have
ended it monitors the others that are there by then, until none is left.

The tracer never waits for the system or for a monitor that is a process. It waits for the pool when it
needs a tracer for a new process. The pool only ever waits for the VM.
""".

-export([start_link/1, adopt_node/2, attach/3, parents/2, launch/3, replace/3, sync/2, stop/2]).
-export([init/2]).

-export_type([config/0, handle/0]).

-doc """
What all tracers of a run share. `counters`: processes, events; `held`: how many of the processes
that the run waits for are alive; `called`: what processes are called. `central`: there is one tracer, and these properties are over
all processes. `groups`: so many of the first maps may have properties for groups; 0: none has. `priority`: that of a new tracer.
""".
-type config() :: #{source := module(), source_options := map(), pool := pid(), run := pid(),
                    maps := [witness_instrument_map:instrumentation()], explain := pos_integer(),
                    max_slices := pos_integer(), slice_idle => pos_integer() | infinity,
                    central => [witness_instrument_map:entry()], groups := non_neg_integer(), hold_back := pos_integer(),
                    message_size => pos_integer() | infinity, priority => low | high, looks => boolean(),
                    signatures => witness_event_wrapper:table(),
                    budget := witness_outline_overload:budget(),
                    counters := counters:counters_ref(), held := atomics:atomics_ref(),
                    called := witness_instrument_called:called()}.

-doc """
A tracer, its session (to switch processes on in), and whether it is lent: 1 from the moment
when the pool names it to another tracer, 0 from the end of the partition.
""".
-type handle() :: {pid(), witness_trace:session(), Lent :: atomics:atomics_ref()}.

-define(PROCESSES_INDEX, 1).
-define(EVENTS_INDEX, 2).

%% The most events of a batch.
-define(BATCH_EVENTS, 256).

%% In words. Every gathered event is garbage soon, and a larger heap is collected less often.
-define(MIN_HEAP_WORDS, 2000).

%% After so many milliseconds the VM is asked again whether a handover has ended.
-define(SETTLING_MS, 2).

%% The most orphans that are listed.
-define(MAX_SHOWN, 3).

%% flag: whether the pool has lent it (`Lent' of the handle); unused by the tracer of the run's first processes
%% lent: this tracer has received its partition, which it gives back when it is done
%% batch: events for `readers', newest first
%% handled: messages since the last check of the budget
%% pressed: it has a higher priority than the system
%% moved: something was sent to another tracer since the last `sync' of the pool
%% limit: bytes beyond which a message is a gap
%% hidden: processes that the source does not report any more, which are monitored instead
%% ends: monitors of the processes that the run waits for, if it only looks at its processes
%% alive: how many processes of a group its runner still waits for
%% waiting: runners, or the monitors of this process, that want to know the time which their events have reached; or this tracer is
%% the origin of a handover that waits for it
%% delivered: those for which the VM was asked
%% asked: a message of `sys' that is to be answered before the next one is taken
-record(tracer, {config :: config(),
                 source :: module(),
                 session :: witness_trace:session(),
                 limit :: pos_integer() | infinity,
                 core :: witness_outline_core:core(),
                 flag :: atomics:atomics_ref(),
                 lent = false :: boolean(),
                 delivery :: witness_outline_delivery:delivery(),
                 readers = [] :: witness_outline_delivery:readers(),
                 batch = [] :: [witness_trace:stamped()],
                 size = 0 :: non_neg_integer(),
                 pressed = false :: boolean(),
                 moved = false :: boolean(),
                 handled = 0 :: non_neg_integer(),
                 hidden = #{} :: #{pid() => reference()},
                 ends = #{} :: #{reference() => []},
                 alive = #{} :: witness_instrument_monitors:alive(),
                 clock :: witness_outline_clock:clock(),
                 waiting = [] :: [pid() | central | origin],
                 delivered = none :: none | {reference(), Stamp :: integer(), Time :: integer(), [pid() | central | origin]},
                 asked :: undefined | {From :: {pid(), term()}, Request :: term()}}).

-doc "Starts a tracer that waits for its first partition.".
-spec start_link(config()) -> handle().
start_link(Config) ->
    %% Not through proc_lib: its crash report would hold the whole mailbox.
    Pid = spawn_opt(?MODULE, init, [self(), Config],
                    [link, {priority, maps:get(priority, Config, low)}, {message_queue_data, off_heap},
                     {min_heap_size, ?MIN_HEAP_WORDS}]),
    receive
        {started, Handle = {Pid, _, _}} -> Handle;
        {'EXIT', Pid, Reason} -> exit(Reason)
    end.

-doc """
Owns every process of the node for which `Own` is false, and all that they spawn.
""".
-spec adopt_node(handle(), fun((pid()) -> boolean())) -> ok.
adopt_node({Pid, _, _}, Own) -> call(Pid, {adopt_node, Own}).

-doc """
Owns the chosen processes, which run already, the others of their groups, and all that they spawn. When the call returns,
none of them is left out, whatever they have spawned meanwhile. Returns those that were not chosen.
""".
-spec attach(handle(), witness_instrument:chosen(), Held :: boolean()) -> {ok, [pid()]}.
attach({Pid, _, _}, Chosen, Held) -> call(Pid, {attach, Chosen, Held}).

-doc "Owns what these processes will spawn, directly or not. The run waits for these processes too, but no monitor reads them.".
-spec parents(handle(), [pid()]) -> ok.
parents({Pid, _, _}, Parents) -> call(Pid, {parents, Parents}).

-doc """
Spawns the system's first process under observation: traced from birth, so that no
event is missed (RIARC text, Algorithm 6, which pauses it instead). When it ends, the run
receives `{system_ended, Reason}`.
""".
-spec launch(handle(), {module(), atom(), [term()]}, pid()) -> {ok, pid()}.
launch({Pid, _, _}, MFA, GroupLeader) -> call(Pid, {launch, MFA, GroupLeader}).

-doc "From now on new processes have these maps. The answer is `{replaced, Pid, Tag}`.".
-spec replace(pid(), [witness_instrument_map:instrumentation()], Tag :: reference()) -> ok.
replace(Pid, Maps, Tag) -> Pid ! {replace, self(), Tag, Maps}, ok.

-doc """
The run is to end. The answer is `{synced, Tracer, Tag, State}`, when the tracer has handled all earlier messages and handed
over their events. From then on it has a higher priority than a busy system. `moved`: the tracer has sent something to other
tracers since the last time; `waiting`: processes have ended, and their end was not reported yet.
""".
-spec sync(pid(), Tag :: reference()) -> ok.
sync(Pid, Tag) -> Pid ! {sync, self(), Tag}, ok.

-doc "Ends in good order: hands over what was gathered, and notifies the monitors.".
-spec stop(pid(), Tag :: reference()) -> ok.
stop(Pid, Tag) -> Pid ! {stop, self(), Tag}, ok.

call(Pid, Request) ->
    Ref = monitor(process, Pid),
    Pid ! {call, {self(), Ref}, Request},
    receive
        {Ref, Reply} -> demonitor(Ref, [flush]), Reply;
        {'DOWN', Ref, process, Pid, Reason} -> exit(Reason)
    end.

-doc false.
-spec init(pid(), config()) -> no_return().
init(Pool, Config = #{source := Source, source_options := Options}) ->
    Session = Source:open(self(), Options),
    proc_lib:set_label(witness_tracer),
    Flag = atomics:new(1, []),
    Pool ! {started, {self(), Session, Flag}},
    loop(#tracer{config = Config, source = Source, session = Session, flag = Flag,
                 limit = maps:get(message_size, Config, infinity), core = new_core(Config, Session),
                 %% Events that wait to be ordered over all processes need the clock, as in a group that has not ended.
                 alive = #{all => 1 || #{central := [_ | _]} <- [Config]},
                 delivery = witness_outline_delivery:new(Config#{ordered => true}),
                 clock = witness_outline_clock:new(maps:get(hold_back, Config))}).

new_core(Config, Session) ->
    witness_outline_core:new(#{self => self(), sink => Session, assign => assign(Config)}).

assign(#{central := _, maps := Maps}) ->
    fun(Signature, Parent) -> {shared, element(2, witness_instrument_map:assign(Signature, Parent, Maps))} end;
assign(#{maps := Maps}) -> fun(Signature, Parent) -> witness_instrument_map:assign(Signature, Parent, Maps) end.

loop(T = #tracer{asked = {From, Request}}) ->
    witness_event_process:system(Request, From, fun loop/1, flush(T#tracer{asked = undefined}));
loop(T) ->
    receive
        Message -> loop(handle_message(Message, T))
    after 0 ->
        T1 = leave_pressure(work(flush(T))),
        receive
            Message -> loop(handle_message(Message, T1))
        end
    end.

handle_message({routed, _, _} = Message, T) -> recycle(handle(Message, T));
handle_message({take, _, _, _, _, _} = Message, T) -> recycle(handle(Message, T#tracer{lent = true}));
handle_message({switch, _, _} = Message, T) -> recycle(handle(Message, T));
handle_message({discard, _} = Message, T) -> recycle(handle(Message, T));
handle_message({tick, Time}, T) -> tick(Time, T);
handle_message({ask_time, Reader}, T = #tracer{waiting = Waiting}) -> ask_time(T#tracer{waiting = [Reader | Waiting]});
handle_message(ask_time, T) -> ask_time(T);
handle_message({timeout, Timer, deadline}, T = #tracer{delivery = Delivery, waiting = Waiting}) ->
    case witness_outline_delivery:fired(Timer, Delivery) of
        {ask, Delivery1} -> ask_time(T#tracer{delivery = Delivery1, waiting = [central | Waiting]});
        {wait, Delivery1} -> T#tracer{delivery = Delivery1}
    end;
handle_message(settle, T = #tracer{waiting = Waiting}) -> ask_time(T#tracer{waiting = [origin | Waiting]});
handle_message({reached, Ref}, T = #tracer{delivered = {Ref, Stamp, Time, Readers}}) ->
    %% This message may have overtaken others, but all of them are here.
    {message_queue_len, Count} = process_info(self(), message_queue_len),
    tell_time(Stamp, Time, Readers, handle_messages(Count, T#tracer{delivered = none}));
handle_message({call, From, Request}, T) -> handle_request(Request, From, T);
handle_message({sync, From, Tag}, T) -> reply_synced(From, Tag, flush(T));
handle_message({stop, From, Tag}, T) -> end_tracer(From, Tag, flush(T));
handle_message({replace, From, Tag, Maps}, T = #tracer{config = Config0, core = Core}) ->
    From ! {replaced, self(), Tag},
    Config = Config0#{maps := Maps},
    T#tracer{config = Config, core = witness_outline_core:reassign(assign(Config), Core),
             delivery = witness_outline_delivery:renew(T#tracer.delivery)};
handle_message({system, From, Request}, T) -> T#tracer{asked = {From, Request}};
handle_message({'DOWN', Ref, process, _, _}, T = #tracer{ends = Ends, config = #{held := Held}}) when is_map_key(Ref, Ends) ->
    atomics:sub(Held, 1, 1),
    case maps:remove(Ref, Ends) of
        Left when map_size(Left) =:= 0 -> await_ends(T#tracer{ends = Left});
        Left -> T#tracer{ends = Left}
    end;
handle_message({'DOWN', _, process, P, Reason}, T = #tracer{source = Source, hidden = Hidden}) when is_map_key(P, Hidden) ->
    %% No monitor reads this exit, but the choreography needs it, and so does what waits for the process to end.
    recycle(handle({own, {Source:now(), {exit, P, Reason, undefined}}}, demonitor_hidden(P, T)));
handle_message(Message, T = #tracer{config = #{looks := true, run := Run}}) ->
    _ = [Run ! {hidden, P} || {_, {gap, P, sensitive, _, _}} <- [decode(Message, T)]],
    T;
handle_message(Message, T = #tracer{core = Core}) ->
    ok = note_name(Message, T),
    case decode(Message, T) of
        {_, E} = S when element(1, E) =:= recv; element(1, E) =:= send ->
            P = element(2, E),
            case witness_outline_core:direct(P, Core) of
                {ok, Label} ->
                    T1 = #tracer{batch = Batch, size = Size} = analyse(S, Label, T),
                    gather(P, Batch, Size, T1);
                no -> recycle(handle({own, S}, T))
            end;
        {_, {gap, P, sensitive, _, _}} = S -> recycle(handle({own, S}, monitor_hidden(P, T)));
        {_, {exit, P, _, _}} = S -> recycle(handle({own, S}, demonitor_hidden(P, T)));
        {_, {init, P, _, Signature, _}} = S ->
            ok = witness_instrument_called:add_birth(P, Signature, called(T)),
            recycle(handle({own, S}, T));
        {_, _} = S -> recycle(handle({own, S}, T));
        ignore -> T
    end.

handle_messages(0, T) -> T;
handle_messages(Count, T) ->
    receive Message -> handle_messages(Count - 1, handle_message(Message, T)) after 0 -> T end.

%% Names are no events.
note_name({trace, P, register, Name}, T) -> witness_instrument_called:add_name(P, Name, called(T));
note_name({trace_ts, P, register, Name, _}, T) -> witness_instrument_called:add_name(P, Name, called(T));
note_name(_, _) -> ok.

called(#tracer{config = #{called := Called}}) -> Called.

decode(Message, #tracer{source = Source, limit = infinity, config = Config}) -> resolve(Source:decode(Message), Config);
decode(Message, #tracer{source = Source, limit = Limit, config = Config}) ->
    resolve(witness_trace:limit_size(Source:decode(Message), Limit), Config).

%% The source knows no rows of a project.
resolve({Stamp, {Kind, P, Q, Signature, Ts}}, #{signatures := Table}) when Kind =:= fork; Kind =:= init ->
    {Stamp, {Kind, P, Q, witness_event_signature:resolve(Signature, Table), Ts}};
resolve(Decoded, _) -> Decoded.

%% The hot path: consecutive messages of a process that has its events analysed at once (see
%% `witness_outline_core:direct/2'). Any other message ends it.
gather(P, Batch, Size, T) when Size < ?BATCH_EVENTS ->
    receive
        Message ->
            case decode(Message, T) of
                {_, E} = S when element(2, E) =:= P, element(1, E) =:= recv;
                                element(2, E) =:= P, element(1, E) =:= send ->
                    gather(P, [S | Batch], Size + 1, T);
                _ -> handle_message(Message, T#tracer{batch = Batch, size = Size})
            end
    after 0 ->
        T#tracer{batch = Batch, size = Size}
    end;
gather(_, Batch, Size, T) ->
    keep_up(flush(T#tracer{batch = Batch, size = Size})).

%% The system comes first: tracers have low priority, which costs nothing if the node is
%% not busy. When they have fallen far behind, they get a higher priority than the system,
%% which thereby slows down to what can be analysed.
keep_up(T = #tracer{pressed = Pressed, config = #{budget := Budget}}) ->
    case witness_outline_overload:is_pressed(Budget) of
        Pressed -> T;
        Now ->
            process_flag(priority, case Now of true -> high; false -> low end),
            T#tracer{pressed = Now}
    end.

work(T = #tracer{delivery = Delivery}) -> T#tracer{delivery = witness_outline_delivery:work(0, Delivery)}.

leave_pressure(T = #tracer{pressed = true}) -> keep_up(T);
leave_pressure(T) -> T.

handle(Message, T = #tracer{core = Core, handled = N}) when N < ?BATCH_EVENTS ->
    perform(witness_outline_core:handle(Message, Core), T#tracer{handled = N + 1});
handle(Message, T) ->
    handle(Message, keep_up(T#tracer{handled = 0})).

perform({Effects, Next, Core}, T0) ->
    T = lists:foldl(fun effect/2, T0#tracer{core = Core}, Effects),
    case Next of
        done -> T;
        Question ->
            {Answer, T1} = question(Question, T),
            perform(witness_outline_core:answer(Answer, T1#tracer.core), T1)
    end.

%% --- effects ---------------------------------------------------------------------

effect({send, To, Message}, T) -> To ! Message, T#tracer{moved = true};
effect({analyse, Label, {_, {gap, P, Reason, _, _}}}, T) -> handle_gap(Reason, P, Label, flush(T));
effect({analyse, Label, S}, T) -> analyse(S, Label, T);
effect({ended, P, Label}, T) -> handle_end(Label, demonitor_hidden(P, T));
effect({off, P}, T = #tracer{source = Source, session = Session}) -> ok = Source:off(Session, P), T;
effect({settle, P}, T = #tracer{source = Source, session = Session}) -> ok = Source:settle(Session, P), T.

analyse(S = {_, E}, Label, T) ->
    _ = element(1, E) =:= fork andalso count_fork(Label, T),
    case witness_outline_delivery:readers(Label, T#tracer.delivery) of
        Readers when Readers =:= T#tracer.readers, T#tracer.size < ?BATCH_EVENTS ->
            T#tracer{batch = [S | T#tracer.batch], size = T#tracer.size + 1};
        Readers ->
            T1 = flush(T),
            T1#tracer{readers = Readers, batch = [S], size = 1}
    end.

%% In a group the whole partition has the gap: later events may depend on what is missing.
handle_gap(sensitive, P, Label, T) ->
    IsWanted = witness_instrument_map:label(readers, Label) =/= [] orelse witness_instrument_map:label(held, Label),
    handle_hidden(P, IsWanted, Label, T);
handle_gap(Reason, _, Label, T) -> deliver_gap(Reason, Label, T).

handle_hidden(P, IsWanted, Label, T = #tracer{config = #{run := Run}}) ->
    _ = IsWanted andalso (Run ! {hidden, P}),
    monitor_hidden(P, deliver_gap(sensitive, Label, T)).

deliver_gap(Reason, Label, T = #tracer{delivery = Delivery}) ->
    T#tracer{delivery = witness_outline_delivery:deliver_gap(witness_outline_delivery:readers(Label, Delivery), Reason, Delivery)}.

%% The source may never report its exit. In a handover only one of two tracers may have been notified that it is hidden, so
%% the owner monitors it as well.
monitor_hidden(P, T = #tracer{hidden = Hidden}) when is_map_key(P, Hidden) -> T;
monitor_hidden(P, T = #tracer{hidden = Hidden}) -> T#tracer{hidden = Hidden#{P => monitor(process, P)}}.

%% The source reports it again, or it has ended.
demonitor_hidden(P, T = #tracer{hidden = Hidden}) ->
    case Hidden of
        #{P := Ref} ->
            demonitor(Ref, [flush]),
            T#tracer{hidden = maps:remove(P, Hidden)};
        #{} -> T
    end.

%% A child is counted where its parent is analysed, so before the parent's own end is. So the
%% count is above zero as long as one process that the run waits for is alive, or its end is
%% not analysed.
count_fork(Label, #tracer{config = #{counters := Counters, held := Held}}) ->
    counters:add(Counters, ?PROCESSES_INDEX, 1),
    witness_instrument_map:label(held, Label) andalso atomics:add(Held, 1, 1).

flush(T = #tracer{size = 0}) -> T;
flush(T = #tracer{config = #{counters := Counters}, readers = Readers, batch = Batch, size = Size}) ->
    counters:add(Counters, ?EVENTS_INDEX, Size),
    Delivery = witness_outline_delivery:deliver(Readers, lists:reverse(Batch), T#tracer.delivery),
    Clock = witness_outline_clock:note_events(witness_outline_delivery:clocks(Readers, Delivery), T#tracer.alive, T#tracer.clock),
    T#tracer{readers = [], batch = [], size = 0, delivery = Delivery, clock = Clock}.

handle_end(Label, T0 = #tracer{config = #{held := Held, run := Run}}) ->
    T1 = #tracer{alive = Before, clock = Clock, delivery = Delivery} = flush(T0),
    {Complete, Alive} = witness_instrument_monitors:handle_end(Label, Before),
    T = T1#tracer{delivery = witness_outline_delivery:complete(Complete, Delivery)},
    _ = witness_instrument_map:label(held, Label) andalso atomics:sub_get(Held, 1, 1) =:= 0
        andalso (Run ! {ended, self()}),
    case map_size(Alive) =:= map_size(Before) of
        true -> T#tracer{alive = Alive};
        false -> T#tracer{alive = Alive, clock = witness_outline_clock:keep_ticking(Alive, Clock)}
    end.

%% --- questions -------------------------------------------------------------------

question({tracer, _}, T = #tracer{config = #{pool := Pool}}) ->
    case witness_outline_pool:tracer(Pool) of
        stopping -> receive {stop, From, Tag} -> end_tracer(From, Tag, flush(T)) end;
        {Tracer, Sink, _} -> {{Tracer, Sink}, T}
    end;
question({adopt, P, {fork, _, P, Signature, _}, Label}, T) ->
    start_monitors(P, Signature, Label, T);
question(lent, T = #tracer{flag = Flag}) ->
    {atomics:get(Flag, 1) =:= 1, T};
question({traced, P}, T = #tracer{session = Session}) ->
    question({traced, P, Session}, T);
%% `born' is never the answer: with trace sessions a child is always born into those of its parent.
question({traced, P, Session}, T = #tracer{source = Source}) ->
    case Source:traced(Session, P) of
        false -> {{false, Source:now()}, T};
        Known -> {Known, T}
    end;
question({share, P, Sink}, T = #tracer{source = Source, session = Session}) ->
    {Source:share(Session, Sink, P), T}.

start_monitors(P, Signature, Label, T) -> start_monitors(P, Signature, #{}, Label, T).

start_monitors(P, Signature, More, Label, T = #tracer{config = Config, alive = Alive, delivery = Delivery}) ->
    Given = (maps:merge(maps:with([run, explain, max_slices, slice_idle, stop_time], Config), More))#{clock => {tracer, self()}},
    {{Label1, Alive1}, Delivery1} =
        witness_outline_delivery:start(P, Signature, Label, Given#{ordered => true}, Alive, Delivery),
    Started = witness_instrument_map:label(readers, Label1) -- witness_instrument_map:label(readers, Label),
    lists:foreach(fun(Runner) -> witness_outline_overload:watch(monitor, Runner, maps:get(budget, Config)) end,
                  [Runner || Runner <- Started, is_pid(Runner)]),
    {Label1, T#tracer{alive = Alive1, delivery = Delivery1}}.

%% --- requests --------------------------------------------------------------------

handle_request({adopt_node, Own}, From, T) ->
    T1 = adopt_all(fun(P) -> not Own(P) end, fun(P, A) -> adopt_unread(P, false, A) end, T),
    reply(From, ok),
    T1;
handle_request({attach, Chosen, Held}, From, T = #tracer{config = #{looks := true}}) ->
    {Others, T1} = attach_all(Chosen, Held, T),
    reply(From, {ok, Others}),
    case Held of true -> await_ends(T1); false -> T1 end;
handle_request({parents, Parents}, From, T = #tracer{source = Source, session = Session, config = #{looks := true}}) ->
    _ = [Source:on(Session, P) || P <- Parents],
    reply(From, ok),
    await_ends(T);
handle_request({attach, Chosen, Held}, From, T) ->
    {Others, T1} = hold_open(Held, fun(T0) -> attach_all(Chosen, Held, T0) end, T),
    reply(From, {ok, Others}),
    T1;
handle_request({parents, Parents}, From, T) ->
    {ok, T1} = hold_open(true, fun(T0) -> {ok, lists:foldl(fun(P, A) -> adopt_unread(P, true, A) end, T0, Parents)} end, T),
    reply(From, ok),
    T1;
handle_request({launch, MFA, GroupLeader}, From, T = #tracer{source = Source, session = Session, config = #{run := Run}}) ->
    Launcher = witness_instrument_launcher:start_link(MFA, GroupLeader, Run),
    ok = Source:on(Session, Launcher),
    ok = witness_instrument_launcher:launch(Launcher),
    T1 = await_launch(Launcher, From, T),
    ok = Source:off(Session, Launcher),
    T1.

%% A process that is there and not monitored was spawned by one that was, before that one has ended.
await_ends(T = #tracer{source = Source, session = Session, config = #{held := Held, run := Run}}) ->
    Observed = Source:observed([Session]),
    ok = atomics:put(Held, 1, length(Observed)),
    _ = Observed =:= [] andalso (Run ! {ended, self()}),
    T#tracer{ends = #{monitor(process, P) => [] || P <- Observed}}.

%% The launcher's fork is the first known event of the system; its other events are
%% ignored.
await_launch(Launcher, From, T = #tracer{source = Source, config = Config}) ->
    receive
        Message when element(2, Message) =:= Launcher ->
            case Source:decode(Message) of
                {_, {fork, Launcher, Root, Signature, _}} ->
                    #{maps := Maps, held := Held, counters := Counters} = Config,
                    atomics:add(Held, 1, 1),
                    counters:add(Counters, ?PROCESSES_INDEX, 1),
                    Label = witness_instrument_map:new(Maps, #{held => true, signature => Signature}),
                    {Label1, T1} = start_monitors(Root, Signature, Label, T),
                    reply(From, {ok, Root}),
                    T1#tracer{core = witness_outline_core:adopt_newborn(Root, Label1, T1#tracer.core)};
                _ -> await_launch(Launcher, From, T)
            end
    end.

reply({Caller, Ref}, Reply) -> Caller ! {Ref, Reply}, ok.

%% Each scan of all processes may find new ones with parents that were not on yet. When a scan
%% finds none, every process is on, and later ones inherit the session. The children of a process
%% that is on are on by birth, and stay so until their forks are read, which is after this. So they
%% are not taken twice.
adopt_all(Chosen, Adopt, T = #tracer{source = Source, session = Session}) ->
    case [P || P <- processes(), Chosen(P), Source:traced(Session, P) =:= false] of
        [] -> T;
        New -> adopt_all(Chosen, Adopt, lists:foldl(Adopt, T, New))
    end.

%% No monitor reads the process itself. If the run waits for it, as for a parent, it is analysed to its end, with all that it
%% has spawned, before the run can end.
adopt_unread(P, Held, T = #tracer{source = Source, session = Session, config = #{maps := Maps, held := Count}}) ->
    case Source:on(Session, P) of
        dead -> T;
        ok ->
            _ = Held andalso atomics:add(Count, 1, 1),
            Label = witness_instrument_map:new(Maps, #{held => Held}),
            T#tracer{core = witness_outline_core:adopt(P, Label, T#tracer.core)}
    end.

%% If a process may belong to a group or not, each such group has a gap.
attach_all(#{chosen := Chosen, own := Own}, Held, T0 = #tracer{source = Source, session = Session, config = Config}) ->
    #{groups := Maps} = Config,
    Rules = #{chosen => Chosen, own => Own, groups => Maps,
              traced => fun(P, _) -> Source:traced(Session, P) end,
              adopt => fun(P, Parent, T) -> attach_process(P, Parent, Held, T) end},
    {Labels, Incomplete, T1} = witness_outline_adoption:adopt(fun processes/0, Rules, T0),
    {[P || P := _ <- Labels, not Chosen(P)], report_orphans(Incomplete, T1)}.

report_orphans({[], _}, T) -> T;
report_orphans({Groups, Orphans}, T0 = #tracer{config = #{run := Run}}) ->
    Run ! {orphans, [{P, witness_event_signature:of_process(P)} || P <- lists:sublist(Orphans, ?MAX_SHOWN)], length(Orphans)},
    T = #tracer{delivery = Delivery} = flush(T0),
    T#tracer{delivery = witness_outline_delivery:deliver_gap(Groups, orphan, Delivery)}.

attach_process(P, _, _, T = #tracer{source = Source, session = Session, config = #{looks := true} = Config}) ->
    #{run := Run, maps := Maps, counters := Counters} = Config,
    case Source:on(Session, P) of
        dead -> {dead, T};
        ok ->
            counters:add(Counters, ?PROCESSES_INDEX, 1),
            _ = witness_trace:is_hidden(P) andalso (Run ! {hidden, P}),
            {witness_instrument_map:new(Maps, #{held => false}), T}
    end;
%% The stamp of the mark is taken before the process is on: its events come later. Messages that it has received by then are
%% not traced.
attach_process(P, Parent, Held, T = #tracer{source = Source, session = Session, config = Config}) ->
    #{maps := Maps, held := Count, counters := Counters} = Config,
    case witness_event_signature:of_process(P) of
        undefined -> {dead, T};
        Function ->
            ok = witness_instrument_called:add_running(Function, called(T)),
            Attached = {Source:now(), {attached, P, Function, erlang:monotonic_time(nanosecond)}},
            case Source:on(Session, P) of
                dead -> {dead, T};
                ok ->
                    _ = Held andalso atomics:add(Count, 1, 1),
                    counters:add(Counters, ?PROCESSES_INDEX, 1),
                    Signature = witness_event_signature:unknown(Function),
                    Label = case Parent of
                        none -> witness_instrument_map:new(Maps, #{held => Held, signature => Signature});
                        _ -> element(2, witness_instrument_map:assign(Signature, Parent, Maps))
                    end,
                    {Label1, T1} = start_monitors(P, Signature, #{attached => Function}, Label, T),
                    T2 = analyse(Attached, Label1, T1),
                    T3 = T2#tracer{core = witness_outline_core:adopt(P, Label1, T2#tracer.core)},
                    case witness_trace:is_hidden(P) of
                        %% The VM does not even report what it was spawned with, so perhaps it should have monitors.
                        true -> {Label1, handle_hidden(P, true, Label1, flush(T3))};
                        false -> {Label1, T3}
                    end
            end
    end.

%% While processes are attached, those that end meanwhile do not end the run.
hold_open(false, Fun, T) -> Fun(T);
hold_open(true, Fun, T = #tracer{config = #{held := Held, run := Run}}) ->
    atomics:add(Held, 1, 1),
    Done = Fun(T),
    _ = atomics:sub_get(Held, 1, 1) =:= 0 andalso (Run ! {ended, self()}),
    Done.

%% --- the end of a partition, and of a run ----------------------------------------

%% The core stays: duplicates of overlaps may still come, and the next partition may take a
%% process that was born into this session by an overlap. The tracer of the run's first
%% processes was never lent.
recycle(T = #tracer{lent = false}) -> T;
recycle(T = #tracer{core = Core, config = #{pool := Pool}}) ->
    case witness_outline_core:is_done(Core) of
        false -> T;
        true ->
            T1 = #tracer{clock = Clock} = flush(T),
            ok = atomics:put(T#tracer.flag, 1, 0),
            witness_outline_pool:give_back(Pool, {self(), T#tracer.session, T#tracer.flag}),
            T1#tracer{lent = false, alive = #{}, clock = witness_outline_clock:keep_ticking(#{}, Clock)}
    end.

reply_synced(From, Tag, T) ->
    process_flag(priority, high),
    From ! {synced, self(), Tag, state(T)},
    T#tracer{pressed = false, moved = false}.

state(#tracer{moved = true}) -> moved;
state(#tracer{source = Source, session = Session, core = Core}) ->
    #{own := Own, route := Route, stash := Stash} = witness_outline_core:maps(Core),
    Known = maps:keys(Own) ++ maps:keys(Route) ++ maps:keys(Stash),
    case lists:any(fun(P) -> Source:traced(Session, P) =:= dead end, Known) of
        true -> waiting;
        false -> settled
    end.

-spec end_tracer(pid(), reference(), #tracer{}) -> no_return().
end_tracer(From, Tag, #tracer{source = Source, session = Session, core = Core, delivery = Delivery}) ->
    Runners = lists:usort([Runner || {_, Label} <- witness_outline_core:owned(Core),
                                     Runner <- witness_instrument_map:label(readers, Label)]),
    ok = witness_outline_delivery:stop(Runners, Delivery),
    ok = Source:close(Session),
    From ! {stopped, self(), Tag},
    exit(normal).

%% --- the clock of partitions with several processes ------------------------------

%% What is handed over now counts for the next tick.
tick(Due, T0 = #tracer{clock = Clock0}) ->
    T = #tracer{clock = Clock, core = Core} = flush(T0#tracer{clock = witness_outline_clock:clear_timer(Clock0)}),
    {Told, Clock1} = witness_outline_clock:tick(Due, witness_outline_core:settling(Core), Clock),
    Delivery = lists:foldl(fun({Reader, Time}, A) -> witness_outline_delivery:deliver_clock(Reader, Time, A) end,
                           T#tracer.delivery, Told),
    T#tracer{clock = Clock1, delivery = Delivery}.

%% --- the time that events have reached --------------------------------------------

%% The source tells when everything has come that had happened at this time.
ask_time(T = #tracer{delivered = none, waiting = [_ | _] = Readers, source = Source, session = Session, core = Core}) ->
    Stamp = Source:now(),
    Time = erlang:monotonic_time(nanosecond),
    Processes = [P || {P, _} <- witness_outline_core:owned(Core) ++ witness_outline_core:cuts(Core)],
    T#tracer{delivered = {Source:reached([Session], Processes), Stamp, Time, lists:usort(Readers)}, waiting = []};
ask_time(T) -> T.

%% While a process of the partition is being handed over, its events may be on a detour over other tracers. A handover ends when the
%% process does something, which it may not do: its origin can end it, too.
tell_time(Stamp, Time, All, T0) ->
    T = #tracer{core = Core, waiting = Waiting} = end_handovers(Stamp, T0),
    case {witness_outline_core:settling(Core), All -- [origin]} of
        {_, []} -> ask_time(T);
        {true, Readers} ->
            lists:foreach(fun(Origin) -> Origin ! settle end, witness_outline_core:origins(Core)),
            _ = erlang:send_after(?SETTLING_MS, self(), ask_time),
            T#tracer{waiting = Readers ++ Waiting};
        {false, Readers} ->
            ask_time(lists:foldl(fun(Reader, A) -> tell_reader(Reader, Time, A) end, flush(T), Readers))
    end.

end_handovers(Stamp, T0 = #tracer{core = Core}) ->
    lists:foldl(fun({P, Cut}, T) when Cut =< Stamp -> recycle(handle({delivered, P}, T));
                   (_, T) -> T
                end, T0, witness_outline_core:cuts(Core)).

tell_reader(central, Time, T = #tracer{delivery = Delivery}) ->
    work(T#tracer{delivery = witness_outline_delivery:pass(Time, Delivery)});
tell_reader(Runner, Time, T) ->
    ok = witness_monitor_runner:send_time(Runner, Time),
    T.
