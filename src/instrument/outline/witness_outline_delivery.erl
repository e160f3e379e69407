-module(witness_outline_delivery).
-moduledoc """
Gives the monitors of a tracer the events that it analyses. In outline monitoring a monitor is a process
(`m:witness_monitor_runner`); in central monitoring it is a machine in the tracer (`m:witness_central_monitors`).
""".

-export([new/1, renew/1, readers/2, start/6, deliver/3, complete/2, deliver_gap/3, deliver_clock/3, clocks/2, work/2, fired/2,
         pass/2, stop/2]).
-export_type([delivery/0, reader/0, readers/0]).

-opaque delivery() :: runners | {Run :: pid(), witness_central_monitors:monitors()}.

-type reader() :: pid() | witness_central_monitors:reader().

-doc "The monitors that read a process. The atom: none does, not even a monitor that reads all processes.".
-type readers() :: [reader()] | nobody.

%% Events after which central monitors handle what is pending.
-define(PENDING_EVENTS, 256).

-doc "A delivery without monitors. `central`: the properties over all processes, if the calling process holds the monitors.".
-spec new(#{central => [witness_instrument_map:entry()], run := pid(), _ => _}) -> delivery().
new(#{central := All, run := Run} = Config) ->
    {Run, witness_central_monitors:new(Config#{host => self(), all => All})};
new(#{}) -> runners.

-doc "Other specifications replace those before.".
-spec renew(delivery()) -> delivery().
renew(runners) -> runners;
renew({Run, M}) -> {Run, witness_central_monitors:renew(M)}.

-doc "The monitors that read a process with this label.".
-spec readers(witness_instrument_map:label(), delivery()) -> readers().
readers(Label, runners) -> witness_instrument_map:label(readers, Label);
readers(Label, {_, _}) ->
    case witness_instrument_map:label(read, Label) of
        true -> witness_instrument_map:label(readers, Label);
        false -> nobody
    end.

-doc "Starts the monitors that a label names, and reports them to the run.".
-spec start(witness_event:proc(), witness_event:signature(), witness_instrument_map:label(),
            witness_instrument_monitors:config(), witness_instrument_monitors:alive(), delivery()) ->
    {{witness_instrument_map:label(), witness_instrument_monitors:alive()}, delivery()}.
start(P, Signature, Label, Config, Alive, runners) ->
    {witness_instrument_monitors:start(P, Signature, Label, Config, Alive), runners};
start(P, Signature, Label, Config, Alive, {Run, M}) ->
    {Labelled, M1} = witness_central_monitors:start(P, {Signature, maps:with([attached], Config)}, {Label, Alive}, M),
    {Labelled, {Run, M1}}.

-doc "The next events of processes that have these readers.".
-spec deliver(readers(), [witness_trace:stamped()], delivery()) -> delivery().
deliver(nobody, _, Delivery) -> Delivery;
deliver(Readers, Events, runners) ->
    lists:foreach(fun(Runner) -> witness_monitor_runner:send_events(Runner, Events) end, Readers),
    runners;
deliver(Readers, Events, {Run, M}) -> work(?PENDING_EVENTS, {Run, witness_central_monitors:add_events(Readers, Events, M)}).

-doc "All processes that these monitors read have ended.".
-spec complete([reader()], delivery()) -> delivery().
complete(Readers, runners) ->
    lists:foreach(fun witness_monitor_runner:complete/1, Readers),
    runners;
complete(Readers, {Run, M}) -> {Run, witness_central_monitors:complete(Readers, M)}.

-doc "These monitors miss events from here on.".
-spec deliver_gap(readers(), Reason :: term(), delivery()) -> delivery().
deliver_gap(nobody, _, Delivery) -> Delivery;
deliver_gap(Readers, Reason, runners) ->
    lists:foreach(fun(Runner) -> witness_monitor_runner:report_gap(Runner, Reason) end, Readers),
    runners;
deliver_gap(Readers, Reason, {Run, M}) -> {Run, witness_central_monitors:add_gap(Readers, Reason, M)}.

-doc "No event from before this time, in nanoseconds, is on its way any more.".
-spec deliver_clock(pid() | witness_central_monitors:clock(), integer(), delivery()) -> delivery().
deliver_clock(Runner, Time, runners) ->
    ok = witness_monitor_runner:send_clock(Runner, Time),
    runners;
deliver_clock(Reader, Time, {Run, M}) -> {Run, witness_central_monitors:add_clock(Reader, Time, M)}.

-doc "The clocks of these readers: they may have to put events in order.".
-spec clocks(readers(), delivery()) -> [pid() | witness_central_monitors:clock()].
clocks(nobody, _) -> [];
clocks(Readers, runners) -> Readers;
clocks(Readers, {_, M}) -> witness_central_monitors:clocks(Readers, M).

-doc "Has the monitors handle what is pending, if that is at least so many events.".
-spec work(Events :: non_neg_integer(), delivery()) -> delivery().
work(_, runners) -> runners;
work(Events, {Run, M}) ->
    case witness_central_monitors:pending(M) >= Events of
        true -> {Run, witness_central_monitors:work(report_fun(Run), M)};
        false -> {Run, M}
    end.

report_fun(Run) -> fun(Reports) -> Run ! {reports, Reports} end.

-doc "See `witness_central_monitors:fired/2`. Monitors that are processes have timers of their own.".
-spec fired(Timer :: reference(), delivery()) -> {ask | wait, delivery()}.
fired(_, runners) -> {wait, runners};
fired(Timer, {Run, M}) ->
    {Next, M1} = witness_central_monitors:fired(Timer, M),
    {Next, {Run, M1}}.

-doc "All events up to this time, in nanoseconds, were delivered.".
-spec pass(Time :: integer(), delivery()) -> delivery().
pass(_, runners) -> runners;
pass(Time, {Run, M}) -> {Run, witness_central_monitors:pass(Time, M)}.

-doc "Watching ends: undecided monitors are notified. `Readers`: those of the processes that have not ended.".
-spec stop([reader()], delivery()) -> ok.
stop(Readers, runners) -> lists:foreach(fun witness_monitor_runner:stop/1, Readers);
stop(_, {Run, M}) ->
    _ = witness_central_monitors:work(report_fun(Run), witness_central_monitors:stop(M)),
    ok.
