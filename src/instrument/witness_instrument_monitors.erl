-module(witness_instrument_monitors).
-moduledoc """
Starts the monitors of a process, and knows when the processes that they read have ended.

A monitor that is no group reads one process. The monitor of a group reads those processes of its partition that its map
leaves to it. It is notified when the last of them has ended.
""".

-export([start/4, start/5, take_fun/1, meta/3, add_started/3, handle_end/2]).

-export_type([config/0, alive/0]).

-doc """
What the monitors of a run have in common. `ordered`: whether groups have to put events in order by their stamps. The other
keys are for the runners (`t:witness_monitor_runner:spec/0`).
""".
-type config() :: #{run := pid(), explain := pos_integer(), ordered := boolean(), max_slices => pos_integer(),
                    slice_idle => pos_integer() | infinity,
                    take => witness_monitor_runner:take(), tracer => pid(), clock => witness_monitor_runner:clock(),
                    turns => witness_monitor_throttle:turns(),
                    attached => mfa(), signatures => witness_event_wrapper:table()}.

-doc "How many processes the monitor of each group still waits for.".
-type alive() :: #{witness_instrument_map:reader() => pos_integer()}.

-doc "Starts a monitor, and reports it to the run.".
-spec start(witness_event:proc(), witness_event:signature(), witness_instrument_map:entry(), config()) -> pid().
start(P, Signature, #{monitor := Monitor, group := Group} = Entry, Config) ->
    #{run := Run, ordered := Ordered} = Config,
    Runner = witness_monitor_runner:start(Config#{process => P, signature => Signature, monitor => Monitor,
                                                  ordered := Group andalso Ordered}),
    Run ! {monitor, Runner, meta(P, Signature, Entry)},
    Runner.

-doc "How a runner takes what is in a partition of the native source.".
-spec take_fun(witness_trace_native:partition()) -> witness_monitor_runner:take().
take_fun(Partition) ->
    fun(all) -> witness_trace_native:take(Partition);
       (gap) -> witness_trace_native:take_gap(Partition)
    end.

-doc "What is reported to the run about a monitor.".
-spec meta(witness_event:proc(), witness_event:signature(), witness_instrument_map:entry()) -> map().
meta(P, Signature, #{spec := Spec, name := Name} = Entry) ->
    Meta = #{process => P, signature => Signature, spec => Spec, name => Name},
    case Entry of
        #{version := Version} -> Meta#{version => Version};
        #{} -> Meta
    end.

-doc "Starts the monitors that a label names.".
-spec start(witness_event:proc(), witness_event:signature(), witness_instrument_map:label(), config(), alive()) ->
    {witness_instrument_map:label(), alive()}.
start(P, Signature, Label, Config, Alive) ->
    add_started([{Map, start(P, Signature, Entry, Config), Group}
                 || {Map, Entry = #{group := Group}} <- witness_instrument_map:starts(Label)], Label, Alive).

-doc "Monitors that were started for a process read it, besides those that its label has already.".
-spec add_started([witness_instrument_map:member()], witness_instrument_map:label(), alive()) ->
    {witness_instrument_map:label(), alive()}.
add_started(Started, Label, Alive) ->
    Label1 = witness_instrument_map:with_readers(Started, Label),
    Count = fun({_, Reader, true}, A) -> maps:update_with(Reader, fun(N) -> N + 1 end, 1, A);
               ({_, _, false}, A) -> A
            end,
    {Label1, lists:foldl(Count, Alive, witness_instrument_map:label(members, Label1))}.

-doc """
A process with this label has ended, and all its events were handed over. For the readers that are returned it was the last
process: they are to be notified that their trace is complete.
""".
-spec handle_end(witness_instrument_map:label(), alive()) -> {Complete :: [witness_instrument_map:reader()], alive()}.
handle_end(Label, Alive) -> lists:foldl(fun count_end/2, {[], Alive}, witness_instrument_map:label(members, Label)).

count_end({_, Reader, false}, {Complete, Alive}) ->
    {[Reader | Complete], Alive};
count_end({_, Reader, true}, {Complete, Alive}) ->
    case Alive of
        #{Reader := 1} -> {[Reader | Complete], maps:remove(Reader, Alive)};
        #{Reader := N} -> {Complete, Alive#{Reader := N - 1}}
    end.
