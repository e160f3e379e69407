-module(witness_central_tracer).
-moduledoc """
The one tracer of a run in mode `central` over the native source: all processes have one partition, and all monitors are
machines in this process (`m:witness_central_monitors`).

The source has ordered everything already: a fork comes before the events of the child, a send before the receive that it
causes. So the monitors of a process are decided when its `init` comes, from the label of its parent, if that is known.

Events wait in the bounded partition. When it is full, events of all processes are missing: every undecided monitor has the
gap `overflow`, and the process ends with `{shutdown, {given_up, overflow}}`, so that gathering is given up.
""".

-export([start_link/2]).
-export([init/2]).

-doc "`central`: properties over all processes.".
-type config() :: #{run := pid(), maps := [witness_instrument_map:instrumentation()],
                    central := [witness_instrument_map:entry()], explain := pos_integer(), _ => _}.

%% Events after which results are reported to the run, within a batch.
-define(PENDING_EVENTS, 1024).

-record(tracer, {source :: witness_trace_native:partition(),
                 run :: pid(),
                 table :: witness_event_wrapper:table(),
                 maps :: [witness_instrument_map:instrumentation()],
                 labels = #{} :: #{pid() => witness_instrument_map:label()},
                 alive = #{} :: witness_instrument_monitors:alive(),
                 monitors :: witness_central_monitors:monitors(),
                 clock :: witness_monitor_runner:clock(),
                 progress = witness_monitor_progress:new() :: witness_monitor_progress:progress()}).

-doc "Starts the tracer that reads the partition.".
-spec start_link(witness_trace_native:partition(), config()) -> pid().
start_link(Partition, Config) ->
    Pid = spawn_opt(?MODULE, init, [Partition, Config],
                    [link, {message_queue_data, off_heap}, {fullsweep_after, 20} | witness_monitor_runner:heap_limit(Config)]),
    true = is_pid(Pid),
    Pid.

-doc false.
-spec init(witness_trace_native:partition(), config()) -> ok.
init(Partition, #{run := Run, maps := Maps, central := All, clock := Clock} = Config) ->
    proc_lib:set_label(witness_tracer),
    Monitors = witness_central_monitors:new(Config#{host => self(), all => All, ordered => false}),
    take(work(0, #tracer{source = Partition, run = Run, table = witness_event_wrapper:of_config(Config), maps = Maps,
                         monitors = Monitors, clock = Clock})).

take(T = #tracer{source = Source, progress = Progress}) ->
    loop(pass(T#tracer{progress = witness_monitor_progress:took(witness_trace_native:take(Source), Progress)})).

pass(T = #tracer{progress = Progress, monitors = M}) ->
    case witness_monitor_progress:reached(Progress) of
        {Time, Progress1} -> work(0, T#tracer{progress = Progress1, monitors = witness_central_monitors:pass(Time, M)});
        no -> T
    end.

loop(T) ->
    receive
        {witness_batch, Events, Status} ->
            Read = T#tracer{progress = witness_monitor_progress:read(T#tracer.progress)},
            handle_status(Status, pass(work(0, handle_events(Events, Read))));
        witness_data -> take(T);
        %% The same message as for any tracer of a partition (`witness_outline_partition:replace/3').
        {replace, From, Tag, Maps} ->
            From ! {replaced, self(), Tag},
            loop(T#tracer{maps = Maps, monitors = witness_central_monitors:renew(T#tracer.monitors)});
        {timeout, Timer, deadline} -> loop(ask_clock(Timer, T));
        {trace_delivered, all, Ref} ->
            case witness_monitor_progress:delivered(Ref, T#tracer.progress) of
                {ok, Progress} -> take(T#tracer{progress = Progress});
                stale -> loop(T)
            end;
        {system, From, Request} -> witness_event_process:system(Request, From, fun loop/1, T)
    end.

ask_clock(Timer, T = #tracer{monitors = M, progress = Progress, clock = {session, Deliver}}) ->
    case witness_central_monitors:fired(Timer, M) of
        {wait, M1} -> T#tracer{monitors = M1};
        {ask, M1} -> T#tracer{monitors = M1, progress = witness_monitor_progress:ask(Deliver, Progress)}
    end.

handle_status(open, T) -> take(T);
handle_status(stopped, T = #tracer{monitors = M}) ->
    _ = work(0, T#tracer{monitors = witness_central_monitors:stop(M)}),
    ok;
handle_status({gap, Reason, _}, T = #tracer{monitors = M}) ->
    _ = work(0, T#tracer{monitors = witness_central_monitors:add_gap_for_all(Reason, M)}),
    exit({shutdown, {given_up, Reason}}).

work(Events, T = #tracer{monitors = M, run = Run}) ->
    case witness_central_monitors:pending(M) >= Events of
        true -> T#tracer{monitors = witness_central_monitors:work(fun(Reports) -> Run ! {reports, Reports} end, M)};
        false -> T
    end.

%% --- events ----------------------------------------------------------------------

%% The events of a process that change nothing about processes.
-define(IS_PLAIN(E), (element(1, E) =:= send orelse element(1, E) =:= recv orelse
                      element(1, E) =:= call orelse element(1, E) =:= return)).

%% Consecutive ones of a process are handed over together.
handle_events([], T) -> T;
handle_events([E | Events], T) when ?IS_PLAIN(E) -> gather_plain(element(2, E), [E], Events, T);
handle_events([E | Events], T) -> handle_events(Events, handle_event(E, T)).

gather_plain(P, Batch, [E | Events], T) when element(2, E) =:= P, ?IS_PLAIN(E) -> gather_plain(P, [E | Batch], Events, T);
gather_plain(P, Batch, Events, T = #tracer{labels = Labels}) ->
    case Labels of
        #{P := Label} -> handle_events(Events, work(?PENDING_EVENTS, give(lists:reverse(Batch), Label, T)));
        #{} -> handle_events(Events, T)
    end.

give(Events, Label, T = #tracer{monitors = M}) ->
    Stamped = [{none, E} || E <- Events],
    T#tracer{monitors = witness_central_monitors:add_events(witness_instrument_map:label(readers, Label), Stamped, M)}.

%% An unknown process has hidden itself before. An unknown parent was there before the run, or has hidden itself.
handle_event({init, P, Parent, Raw, Ts}, T = #tracer{maps = Maps, labels = Labels, alive = Alive, monitors = M}) ->
    Signature = witness_event_signature:resolve(Raw, T#tracer.table),
    Label = case Labels of
        #{Parent := Of} -> element(2, witness_instrument_map:assign(Signature, Of, Maps));
        #{} -> witness_instrument_map:new(Maps, #{held => false, signature => Signature})
    end,
    {{Label1, Alive1}, M1} = witness_central_monitors:start(P, {Signature, #{}}, {Label, Alive}, M),
    give([{init, P, Parent, Signature, Ts}], Label1,
         T#tracer{labels = Labels#{P => Label1}, alive = Alive1, monitors = M1});
handle_event(Item, T = #tracer{labels = Labels}) ->
    case Labels of
        #{element(2, Item) := Label} -> handle_known(Item, Label, T);
        #{} -> T
    end.

handle_known({fork, P, Child, Raw, Ts}, Label, T) ->
    give([{fork, P, Child, witness_event_signature:resolve(Raw, T#tracer.table), Ts}], Label, T);
handle_known({exit, P, _, _} = E, Label, T0) ->
    T = #tracer{labels = Labels, alive = Alive, monitors = M} = give([E], Label, T0),
    {Complete, Alive1} = witness_instrument_monitors:handle_end(Label, Alive),
    T#tracer{labels = maps:remove(P, Labels), alive = Alive1,
             monitors = witness_central_monitors:complete(Complete, M)};
handle_known({gap, P, Reason, _, _}, Label, T = #tracer{labels = Labels, monitors = M}) ->
    Readers = witness_instrument_map:label(readers, Label),
    Left = case Reason of
        message_size -> Labels;
        %% Its end is not reported.
        _ -> maps:remove(P, Labels)
    end,
    T#tracer{labels = Left, monitors = witness_central_monitors:add_gap(Readers, Reason, M)}.
