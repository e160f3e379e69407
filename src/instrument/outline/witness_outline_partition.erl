-module(witness_outline_partition).
-moduledoc """
The tracer of one partition of the native source that several monitors, or groups, may read.

A group may read a process of a *grouped* partition, so its children are born into the same partition. This process decides
which monitors read which process, by the label of each process (`witness_instrument_map:assign/3`). Any other partition holds
a single process, and all its events go to all monitors.

The source has ordered everything already: a fork comes before the events of the child, a send before the receive that it
causes. What remains is that monitors must not block each other. Events wait in the bounded partition only until this process
takes them; a monitor that falls behind has them in its mailbox. So each runner acknowledges what it has read. If its unread
events take more than a partition may hold, it gets a gap (`overflow`), and the others do not.

The process ends with its partition. If that is not grouped, it also ends as soon as no reader is left.
""".

-export([start_link/4, replace/3]).
-export([init/4]).

-doc "The process with which a partition began.".
-type first() :: {pid(), witness_event:signature(), witness_instrument_map:label()}.

%% labels: of the processes that are alive, if the partition is grouped
%% alive: how many processes of a group its runner still waits for
%% asking: runners that want to know the time which their events have reached; asked: those for which the session was asked
%% unread: for each runner that still reads, the batches that it has not read, and the bytes of these except a first one
-record(partition, {source :: witness_trace_native:partition(),
                    config :: witness_instrument_monitors:config(),
                    run :: pid(),
                    maps :: [witness_instrument_map:instrumentation()],
                    memory :: pos_integer(),
                    labels :: single | #{pid() => witness_instrument_map:label()},
                    alive = #{} :: witness_instrument_monitors:alive(),
                    unread = #{} :: #{pid() => {non_neg_integer(), non_neg_integer()}},
                    clock :: witness_monitor_runner:clock(),
                    progress = witness_monitor_progress:new() :: witness_monitor_progress:progress(),
                    asking = [] :: [pid()],
                    asked = [] :: [pid()]}).

-doc "Starts the tracer of a partition that begins with this process.".
-spec start_link(witness_trace_native:partition(), Grouped :: boolean(), first(), witness_outline_dispatcher:config()) -> pid().
start_link(Partition, Grouped, First, Config) ->
    Pid = spawn_opt(?MODULE, init, [Partition, Grouped, First, Config], [link, {message_queue_data, off_heap}]),
    true = is_pid(Pid),
    Pid.

-doc "From now on new processes have these maps. The answer is `{replaced, Pid, Tag}`.".
-spec replace(pid(), [witness_instrument_map:instrumentation()], Tag :: reference()) -> ok.
replace(Pid, Maps, Tag) -> Pid ! {replace, self(), Tag, Maps}, ok.

-doc false.
-spec init(witness_trace_native:partition(), boolean(), first(), witness_outline_dispatcher:config()) -> ok.
init(Partition, Grouped, {P, Signature, Label}, Config = #{run := Run, maps := Maps, partition_memory := Memory, clock := Clock}) ->
    proc_lib:set_label(witness_tracer),
    Given = maps:with([run, explain, max_slices, slice_idle, stop_time, memory, turns, signatures], Config),
    T = #partition{source = Partition, run = Run, maps = Maps, memory = Memory, clock = Clock,
                   config = Given#{ordered => false, tracer => self(), clock => {tracer, self()}},
                   labels = case Grouped of true -> #{}; false -> single end},
    take(adopt(P, Signature, Label, T)).

adopt(P, Signature, Label, T = #partition{config = Config, labels = Labels, alive = Alive}) ->
    {Label1, Alive1} = witness_instrument_monitors:start(P, Signature, Label, Config, Alive),
    New = [Runner || {_, Runner, _} <- witness_instrument_map:label(members, Label1)]
        -- witness_instrument_map:label(readers, Label),
    lists:foreach(fun(Runner) -> monitor(process, Runner) end, New),
    T#partition{unread = maps:merge(T#partition.unread, #{Runner => {0, 0} || Runner <- New}), alive = Alive1,
                labels = case Labels of single -> single; _ -> Labels#{P => Label1} end}.

take(T = #partition{source = Source, progress = Progress}) ->
    loop(tell_time(T#partition{progress = witness_monitor_progress:took(witness_trace_native:take(Source), Progress)})).

tell_time(T = #partition{progress = Progress, asked = Runners}) ->
    case witness_monitor_progress:reached(Progress) of
        {Time, Progress1} ->
            lists:foreach(fun(Runner) -> witness_monitor_runner:send_time(Runner, Time) end, Runners),
            ask_clock(T#partition{progress = Progress1, asked = []});
        no -> T
    end.

%% Runners that ask meanwhile wait for the next time.
ask_clock(T = #partition{asking = [_ | _] = Runners, progress = Progress, clock = {session, Deliver}}) ->
    case witness_monitor_progress:is_asked(Progress) of
        true -> T;
        false -> T#partition{progress = witness_monitor_progress:ask(Deliver, Progress), asked = Runners, asking = []}
    end;
ask_clock(T) -> T.

loop(#partition{source = Source, labels = single, unread = Unread}) when map_size(Unread) =:= 0 ->
    witness_trace_native:unread(Source);
loop(T = #partition{unread = Unread}) ->
    receive
        {witness_batch, Events, Status} ->
            Read = T#partition{progress = witness_monitor_progress:read(T#partition.progress)},
            handle_status(Status, tell_time(handle_events(Events, Read)));
        witness_data -> take(T);
        {read, Runner, Size} ->
            case Unread of
                #{Runner := {N, Bytes}} -> loop(T#partition{unread = Unread#{Runner := {N - 1, Bytes - Size}}});
                #{} -> loop(T)
            end;
        {ask_time, Runner} -> loop(ask_clock(T#partition{asking = [Runner | T#partition.asking]}));
        {trace_delivered, all, Ref} ->
            case witness_monitor_progress:delivered(Ref, T#partition.progress) of
                {ok, Progress} -> take(T#partition{progress = Progress});
                stale -> loop(T)
            end;
        {'DOWN', _, process, Runner, _} -> loop(T#partition{unread = maps:remove(Runner, Unread)});
        {replace, From, Tag, Maps} ->
            From ! {replaced, self(), Tag},
            loop(T#partition{maps = Maps});
        {system, From, Request} -> witness_event_process:system(Request, From, fun loop/1, T)
    end.

handle_status(open, T) ->
    take(T);
handle_status(complete, #partition{unread = Unread}) ->
    %% Most runners know it already, from the ends of their processes.
    lists:foreach(fun witness_monitor_runner:complete/1, maps:keys(Unread));
handle_status(stopped, #partition{unread = Unread}) ->
    lists:foreach(fun witness_monitor_runner:stop/1, maps:keys(Unread));
handle_status({gap, Reason, _}, #partition{unread = Unread, labels = Labels, run = Run}) ->
    lists:foreach(fun(Runner) -> witness_monitor_runner:report_gap(Runner, Reason) end, maps:keys(Unread)),
    %% Processes that needed monitors of their own may have been born into this partition.
    _ = Labels =:= single orelse (Run ! {unwatched, Reason}),
    ok.

%% --- events ----------------------------------------------------------------------

handle_events([], T) ->
    T;
handle_events(Events, T = #partition{labels = single, unread = Unread}) ->
    lists:foldl(fun(Runner, A) -> give(Runner, Events, A) end, T, maps:keys(Unread));
handle_events(Events, T) ->
    handle_events(Events, none, [], [], T).

%% Consecutive events for the same readers are handed over together. `P' is the process of the last event.
handle_events([E | Events], P, Readers, Batch, T) when element(2, E) =:= P, element(1, E) =:= send;
                                                element(2, E) =:= P, element(1, E) =:= recv ->
    handle_events(Events, P, Readers, [E | Batch], T);
handle_events([E | Events], _, Readers, Batch, T = #partition{labels = Labels}) ->
    P = element(2, E),
    #{P := Label} = Labels,
    case witness_instrument_map:label(readers, Label) of
        Readers -> handle_event(E, Label, Events, Readers, Batch, T);
        Others -> handle_event(E, Label, Events, Others, [], give_all(Readers, Batch, T))
    end;
handle_events([], _, Readers, Batch, T) ->
    give_all(Readers, Batch, T).

handle_event({fork, P, Child, Raw, _} = E, Label, Events, Readers, Batch, T = #partition{maps = Maps}) ->
    Signature = witness_event_signature:resolve(Raw, witness_event_wrapper:of_config(T#partition.config)),
    {_, ChildLabel} = witness_instrument_map:assign(Signature, Label, Maps),
    handle_events(Events, P, Readers, [E | Batch], adopt(Child, Signature, ChildLabel, T));
handle_event({exit, P, _, _} = E, Label, Events, Readers, Batch, T) ->
    T1 = #partition{labels = Labels, alive = Alive} = give_all(Readers, [E | Batch], T),
    {Complete, Alive1} = witness_instrument_monitors:handle_end(Label, Alive),
    lists:foreach(fun witness_monitor_runner:complete/1, Complete),
    handle_events(Events, none, [], [], T1#partition{labels = maps:remove(P, Labels), alive = Alive1});
handle_event(E, _, Events, Readers, Batch, T) ->
    handle_events(Events, element(2, E), Readers, [E | Batch], T).

give_all([], _, T) -> T;
give_all(_, [], T) -> T;
give_all(Readers, Batch, T) ->
    Events = lists:reverse(Batch),
    lists:foldl(fun(Runner, A) -> give(Runner, Events, A) end, T, Readers).

%% A runner that keeps up has nothing unread, and its events need not be measured.
give(Runner, Events, T = #partition{unread = Unread, memory = Memory}) ->
    case Unread of
        #{Runner := {0, 0}} -> give(Runner, Events, 0, {1, 0}, T);
        #{Runner := {N, Bytes}} ->
            Size = witness_event:bytes(Events),
            case Bytes + Size > Memory of
                false -> give(Runner, Events, Size, {N + 1, Bytes + Size}, T);
                true ->
                    ok = witness_monitor_runner:report_gap(Runner, overflow),
                    T#partition{unread = maps:remove(Runner, Unread)}
            end;
        #{} -> T
    end.

give(Runner, Events, Size, Now, T = #partition{unread = Unread}) ->
    ok = witness_monitor_runner:send_batch(Runner, Events, Size, self()),
    T#partition{unread = Unread#{Runner := Now}}.
