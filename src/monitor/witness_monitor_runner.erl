-module(witness_monitor_runner).
-moduledoc """
Runs one monitor in a process of its own and reports its verdicts.

A runner reads batches of events. The tracer that owns its partition sends them; or the runner takes them from the
partition itself, as the only reader of the partition (`take`). To its run it reports

- `{slice, Runner, Outcome}` for each slice, if the monitor has slices;
- exactly one `{verdict, Runner, Outcome}`, with which it ends (see `t:outcome/0`).

A runner that ends without a verdict has crashed or was killed, which the run learns by its link. Runners are started without
a link to the tracer, so a monitor cannot end its tracer.

## Deadlines

A monitor may wait for a deadline (`c:witness_monitor:next_deadline/2`). When its time has come, events from before may still be on
their way. So the runner asks its source (`clock`) for a time up to which all events have been handed over: the *watermark*. The source
reads the clock, has the VM tell it when everything that has happened is reported, hands that over, and then answers. So no deadline
passes before the events that met it are read, however late these are, and the system is not delayed.

## Priority

Runners with events that wait in their mailbox have low priority: the system under scrutiny comes first, and batches grow when
it is busy. In a bounded partition, a monitor that falls behind misses events. So a runner of such a partition has the priority
of the system as long as its batches show that it needs little time for an event. Slow monitors fall
behind anyway: they wait for turns (`m:witness_monitor_throttle`), and so do monitors with a pace that is not known yet.
""".

-export([start/1, heap_limit/1, send_events/2, send_batch/4, send_clock/2, send_time/2, complete/1, stop/1, report_gap/2]).
-export([init/1]).

-export_type([spec/0, take/0, clock/0, outcome/0]).

-doc """
What to run: the monitor, the process that it was started for, the run to report to, how many steps of the explanation
are kept, whether several processes are put in order, how many slices may be alive (default 100,000), for how
many milliseconds one may be idle, and the function of a process that was running already (`attached`).

For a bounded partition either `take` or `tracer`. `take` asks for its next batch: `ok` when the message
`{witness_batch, Events, Status}` is in the mailbox of the runner, `empty` if the message `witness_data` will announce new
events. `tracer` is the process that sends events by `send_batch/4`: if it dies without having reported the end of the partition,
events are missing.

`clock`: what a runner asks how far the time of its events has come: a `tracer` that hands events over, or, if it takes from a partition
itself, the session by a function that asks for the message `{trace_delivered, all, Ref}` (`witness_trace_native:delivered/1`). Without
it, deadlines pass with the next event or at the end.

`turns`: of the run, if it has any. `memory`: bytes that its heap may take; above that the runner is killed. Without it
another process limits the memory.

A monitor that has run elsewhere continues as its `machine`, which has `covered` these actions, and reports as this `reader`.
""".
-type spec() :: #{monitor := {module(), Arg :: term()},
                  process := witness_event:proc(),
                  signature := witness_event:signature(),
                  run := pid(),
                  explain := pos_integer(),
                  ordered := boolean(),
                  max_slices => pos_integer(),
                  slice_idle => pos_integer() | infinity,
                  attached => mfa(),
                  signatures => witness_event_wrapper:table(),
                  take => take(),
                  tracer => pid(),
                  clock => clock(),
                  turns => witness_monitor_throttle:turns(),
                  memory => pos_integer(),
                  machine => witness_monitor_machine:machine(),
                  covered => non_neg_integer(),
                  reader => {pid(), term()}}.

-doc "What a runner asks for the time that its events have reached.".
-type clock() :: {tracer, pid()} | {session, fun(() -> reference())}.

-doc "Asks for the next batch of a partition, or for a gap if that is what comes next.".
-type take() :: fun((all | gap) -> ok | empty).

-doc """
The end of a monitor. `ignored`: it refused its process. Slices have already reported their own outcomes; the end of a monitor
with slices has their number. If there was none, the outcome is an ordinary one, and at a complete end a vacuous `yes`.

`covered` are the actions that were taken: bit 7 represents the `id` 7 (see `c:witness_monitor:coverage/1`). The
outcome of a slice has the same keys as any other, except `covered`.
""".
-type outcome() ::
    ignored
  | #{slices := pos_integer(), covered := non_neg_integer()}
  | #{slice := undefined, covered := non_neg_integer(),
      verdict := witness_monitor:verdict(), reason := witness_monitor_instance:reason(),
      info := witness_monitor:info(), vacuous := boolean(),
      event := undefined | #{index := pos_integer(), event := witness_event:event()},
      steps := [witness_monitor_instance:step()], skipped := non_neg_integer()}.

%% In words: batches arrive whole.
-define(MIN_HEAP_WORDS, 2000).
%% In bytes.
-define(MIN_MEMORY_BYTES, 1 bsl 25).
%% Reductions per event above which a monitor must not delay the system: some ten times what most need.
-define(SLOW_REDUCTIONS, 500).
%% Events of a slow monitor in a turn, and events after which the pace of a quick monitor is measured again.
-define(TURN_EVENTS, 64).
%% Events that justify a garbage collection.
-define(GARBAGE_EVENTS, 32).

-record(runner, {run :: pid(),
                 reader :: pid() | {pid(), term()},
                 covered :: non_neg_integer(),        % before the monitor ran here
                 order :: undefined | witness_monitor_reorder:order(),
                 take :: undefined | take(),
                 tracer :: undefined | reference(),
                 garbage = 0 :: non_neg_integer(),    % events that were read since the last collection
                 monitor :: {module(), Arg :: term()},
                 turns :: undefined | witness_monitor_throttle:turns(),
                 turn = none :: none | witness_monitor_throttle:turn(),
                 pace = unknown :: unknown | quick | slow,
                 unmeasured = 0 :: non_neg_integer(), % events that were read since the pace was measured
                 signatures :: witness_event_wrapper:table(),
                 clock :: undefined | clock(),        % only of a monitor with deadlines
                 watch = witness_monitor_watch:new() :: witness_monitor_watch:watch(),
                 asked = false :: boolean(),          % a time is on its way
                 progress = witness_monitor_progress:new() :: witness_monitor_progress:progress(),
                 passed = witness_monitor_expiry:before_all() :: integer(),   % the time that was told last
                 machine :: undefined | witness_monitor_machine:machine()}).

-doc "Starts a monitor.".
-spec start(spec()) -> pid().
start(Spec) ->
    Pid = spawn_opt(?MODULE, init, [Spec], [{priority, low}, {message_queue_data, off_heap} | heap_limit(Spec) ++ options(Spec)]),
    true = is_pid(Pid),
    Pid.

-doc "Options of a process with a heap that may take no more than the `memory` of a run. A batch of events always fits.".
-spec heap_limit(#{memory => pos_integer(), _ => _}) -> [proc_lib:spawn_option()].
heap_limit(#{memory := Bytes}) ->
    %% The VM's report would have contents of messages; the run learns of it by its link.
    [{max_heap_size, #{size => max(Bytes, ?MIN_MEMORY_BYTES) div erlang:system_info(wordsize), kill => true,
                       error_logger => false}}];
heap_limit(#{}) -> [].

%% There may be very many runners that take their events themselves, and each may live for a few events only.
options(#{take := _}) -> [];
options(#{}) -> [{min_heap_size, ?MIN_HEAP_WORDS}].

-doc "The next events of the partition.".
-spec send_events(pid(), [{Stamp :: integer() | none, witness_event:event()}]) -> ok.
send_events(Runner, Events) -> Runner ! {events, Events}, ok.

-doc """
The next events of a partition, for a tracer that needs to know the progress of the monitor: when the runner has read them,
it sends `{read, Runner, Size}`. Births may have the signature that the VM has given them.
""".
-spec send_batch(pid(), [witness_event:event()], Size :: non_neg_integer(), Tracer :: pid()) -> ok.
send_batch(Runner, Events, Size, Tracer) -> Runner ! {batch, Events, Size, Tracer}, ok.

-doc "No event before this time, in nanoseconds, is still on its way.".
-spec send_clock(pid(), integer()) -> ok.
send_clock(Runner, Time) -> Runner ! {clock, Time}, ok.

-doc "The answer to `{ask_time, Runner}`: all events up to this time, in nanoseconds, were given.".
-spec send_time(pid(), integer()) -> ok.
send_time(Runner, Time) -> Runner ! {passed, Time}, ok.

-doc "Every process of the partition has ended, and all events were given.".
-spec complete(pid()) -> ok.
complete(Runner) -> Runner ! {ended, complete}, ok.

-doc "Observation ends.".
-spec stop(pid()) -> ok.
stop(Runner) -> Runner ! {ended, stopped}, ok.

-doc "Events are missing from here on.".
-spec report_gap(pid(), term()) -> ok.
report_gap(Runner, Reason) -> Runner ! {gap, Reason}, ok.

-doc false.
-spec init(spec()) -> ok.
init(#{monitor := {Module, _} = Monitor, process := P, run := Run, ordered := Ordered} = Spec) ->
    link(Run),
    proc_lib:set_label({witness_monitor, Module, P}),
    R = #runner{run = Run, reader = maps:get(reader, Spec, self()), covered = maps:get(covered, Spec, 0),
                monitor = Monitor, turns = maps:get(turns, Spec, undefined), take = maps:get(take, Spec, undefined),
                tracer = monitor_tracer(Spec), signatures = witness_event_wrapper:of_config(Spec),
                order = case Ordered of true -> witness_monitor_reorder:new(); false -> undefined end},
    case start_machine(Spec) of
        {decided, Final} -> report(Final, R);
        {ok, Machine} when is_map_key(take, Spec) -> proceed(open, set_clock(Spec, R#runner{machine = Machine}));
        {ok, Machine} -> proceed(wait, set_clock(Spec, R#runner{machine = Machine}))
    end.

set_clock(#{clock := Clock}, R = #runner{machine = Machine}) ->
    case witness_monitor_machine:is_timed(Machine) of
        true -> watch(R#runner{clock = Clock});
        false -> R
    end;
set_clock(#{}, R) -> R.

start_machine(#{machine := Machine}) -> {ok, Machine};
start_machine(Spec) -> witness_monitor_machine:new(Spec).

monitor_tracer(#{tracer := Tracer}) -> monitor(process, Tracer);
monitor_tracer(#{}) -> undefined.

loop(R = #runner{order = Order}) ->
    receive
        {witness_batch, Events, Status} ->
            handle_batch(resolve_all(Events, R), Status, R#runner{progress = witness_monitor_progress:read(R#runner.progress)});
        witness_data -> proceed(open, R);
        {batch, Events, Size, Tracer} -> handle_batch(resolve_all(Events, R), {read, Size, Tracer}, R);
        {events, Events} when Order =:= undefined -> run([E || {_, E} <- Events], wait, R);
        {events, Events} -> reorder(Events, R);
        {clock, Time} ->
            {Events, Order1} = witness_monitor_reorder:release(Time, Order),
            run(Events, wait, R#runner{order = Order1});
        {ended, How} when Order =:= undefined -> finish(How, R);
        {ended, How} ->
            Rest = witness_monitor_reorder:release_all(Order),
            run(Rest, How, R#runner{order = undefined});
        {gap, Reason} -> finish_inconclusive({gap, Reason}, R);
        {timeout, Timer, deadline} -> ask(Timer, R);
        {passed, Time} -> pass(Time, wait, R);
        {trace_delivered, all, Ref} ->
            case witness_monitor_progress:delivered(Ref, R#runner.progress) of
                {ok, Progress} -> proceed(open, R#runner{progress = Progress});
                stale -> loop(R)
            end;
        {'DOWN', Ref, process, _, _} when Ref =:= R#runner.tracer -> finish_inconclusive({gap, tracer_lost}, R);
        {system, From, Request} -> witness_event_process:system(Request, From, fun loop/1, R)
    end.

%% What follows after the current events: `open', `complete', `stopped' and a gap are the status of a partition.
proceed(wait, R) -> loop(R);
%% New events stay in the partition, where they are counted, until the runner can read them.
proceed(open, R = #runner{progress = Progress}) ->
    case witness_monitor_progress:reached(Progress) of
        {Time, Progress1} -> pass(Time, open, R#runner{progress = Progress1});
        no -> turn(take, R)
    end;
proceed({read, Size, Tracer}, R) ->
    Tracer ! {read, self(), Size},
    loop(R);
proceed({gap, Reason, _}, R) -> finish_inconclusive({gap, Reason}, R);
proceed(How, R) -> finish(How, R).

%% The time has come for the first deadline. It may have been met by then, also by events that are not read yet.
ask(Timer, R = #runner{watch = Watch, machine = Machine, passed = From, asked = Asked}) ->
    case witness_monitor_watch:fired(Timer, Watch) of
        replaced -> loop(R);
        {ok, Watch1} ->
            Now = erlang:monotonic_time(nanosecond),
            case witness_monitor_machine:next_deadline(From, Machine) of
                At when is_integer(At), At < Now, not Asked -> loop(ask_clock(R#runner{watch = Watch1}));
                _ -> loop(watch(R#runner{watch = Watch1}))
            end
    end.

ask_clock(R = #runner{clock = {tracer, Tracer}}) ->
    Tracer ! {ask_time, self()},
    R#runner{asked = true};
ask_clock(R = #runner{clock = {session, Deliver}, progress = Before}) ->
    Progress = witness_monitor_progress:ask(Deliver, Before),
    R#runner{progress = Progress, asked = witness_monitor_progress:is_asked(Progress)}.

pass(Time, Next, R = #runner{order = undefined, machine = Machine}) ->
    handle_result(witness_monitor_machine:pass(Time, Machine), Next, R#runner{asked = false, passed = Time});
pass(Time, Next, R = #runner{order = Order, machine = Machine}) ->
    {Events, Order1} = witness_monitor_reorder:release(Time, Order),
    R1 = R#runner{order = Order1, asked = false, passed = Time},
    case witness_monitor_machine:run(Events, Machine) of
        {Slices, {ok, Machine1}} ->
            report_slices(Slices, R1),
            handle_result(witness_monitor_machine:pass(Time, Machine1), Next, R1);
        Decided -> handle_result(Decided, Next, R1)
    end.

%% While the clock is asked there is nothing to wait for: it tells a time after the first deadline.
watch(R = #runner{clock = Clock, asked = Asked}) when Clock =:= undefined; Asked -> R;
watch(R = #runner{watch = Watch, machine = Machine, passed = From}) ->
    R#runner{watch = witness_monitor_watch:set(witness_monitor_machine:next_deadline(From, Machine), Watch)}.

reorder([], R) -> loop(R);
reorder([S | Events], R = #runner{order = Order}) ->
    case witness_monitor_reorder:add(S, Order) of
        {ok, Order1} -> reorder(Events, R#runner{order = Order1});
        late -> finish_inconclusive({gap, late}, R)
    end.

handle_batch(Events, Next, R = #runner{pace = quick, garbage = Garbage, unmeasured = Unmeasured}) when Unmeasured < ?TURN_EVENTS ->
    Count = length(Events),
    run(Events, Next, R#runner{garbage = Garbage + Count, unmeasured = Unmeasured + Count});
handle_batch(Events, Next, R) ->
    turn({batch, Events, Next}, R).

%% Does this at once, or in a turn if the monitor is slow or not known to be quick.
turn(What, R = #runner{turn = none, pace = Pace, turns = Turns, monitor = Monitor}) when Pace =/= quick, Turns =/= undefined ->
    case Pace =:= unknown andalso witness_monitor_throttle:is_quick(Monitor, Turns) of
        true -> act_in_turn(What, R);
        false when What =:= take -> wait_unless_gap(R#runner{turn = witness_monitor_throttle:request_turn(Pace, Monitor, Turns)});
        false -> wait_for_turn(What, R#runner{turn = witness_monitor_throttle:request_turn(Pace, Monitor, Turns)})
    end;
turn(What, R) -> act_in_turn(What, R).

%% A runner that waits without events may be notified of a gap, which needs no time.
wait_for_turn(What, R = #runner{turn = Turn}) ->
    receive
        {Turn, turn} -> act_in_turn(What, R);
        %% The process that gives turns has ended.
        {'DOWN', Turn, process, _, _} -> act_in_turn(What, R);
        witness_data when What =:= take -> wait_unless_gap(R);
        {system, From, Request} -> witness_event_process:system(Request, From, fun(R1) -> wait_for_turn(What, R1) end, R)
    end.

wait_unless_gap(R = #runner{take = Take}) ->
    case Take(gap) of
        empty -> wait_for_turn(take, R);
        ok -> receive {witness_batch, [], Gap} -> proceed(Gap, R) end
    end.

act_in_turn(take, R0 = #runner{take = Take, progress = Before}) ->
    Answer = Take(all),
    Progress = witness_monitor_progress:took(Answer, Before),
    R = R0#runner{progress = Progress},
    case {Answer, witness_monitor_progress:reached(Progress)} of
        {empty, {Time, Progress1}} -> pass(Time, wait, end_turn(R#runner{progress = Progress1}));
        {empty, no} when R#runner.garbage >= ?GARBAGE_EVENTS ->
            %% The heap is almost empty now. A collection at another time would also copy the events that wait.
            erlang:garbage_collect(),
            loop(end_turn(R#runner{garbage = 0}));
        {empty, no} -> loop(end_turn(R));
        {ok, _} -> loop(R)
    end;
act_in_turn({batch, Events, Next}, R = #runner{garbage = Garbage, machine = Machine}) ->
    {Now, Later} = split(Events),
    Before = reductions(),
    {Slices, Result} = witness_monitor_machine:run(Now, Machine),
    R1 = end_turn(update_pace(reductions() - Before, Now, R#runner{garbage = Garbage + length(Now)})),
    case Result of
        {ok, Machine1} when Later =/= [] ->
            report_slices(Slices, R1),
            handle_batch(Later, Next, R1#runner{machine = Machine1});
        _ -> handle_result({Slices, Result}, Next, R1)
    end.

end_turn(R = #runner{turn = none}) -> R;
end_turn(R = #runner{turn = Turn, turns = Turns}) ->
    ok = witness_monitor_throttle:end_turn(Turn, Turns),
    R#runner{turn = none}.

split(Events) when length(Events) =< ?TURN_EVENTS -> {Events, []};
split(Events) -> lists:split(?TURN_EVENTS, Events).

%% The pace that these events have shown. A birth alone says nothing about later events.
update_pace(_, [E], R = #runner{pace = unknown}) when element(1, E) =:= init -> R;
update_pace(Reductions, Events, R = #runner{pace = Before, monitor = Monitor, turns = Turns}) ->
    Pace = case Reductions < ?SLOW_REDUCTIONS * (length(Events) + 1) of true -> quick; false -> slow end,
    _ = Pace =:= Before orelse begin
        process_flag(priority, case Pace of quick -> normal; slow -> low end),
        Turns =:= undefined orelse witness_monitor_throttle:report_pace(Pace =:= quick, Monitor, Turns)
    end,
    R#runner{pace = Pace, unmeasured = 0}.

reductions() ->
    {reductions, Reductions} = process_info(self(), reductions),
    Reductions.

%% A process's own birth is its first event. Other births are few, so the list is rebuilt only if it has one.
resolve_all([E | Events], R) when element(1, E) =:= init ->
    [resolve(E, R) | resolve_all(Events, R)];
resolve_all(Events, R) ->
    case has_birth(Events) of
        true -> [resolve(E, R) || E <- Events];
        false -> Events
    end.

resolve({Kind, P, Q, Raw, Ts}, #runner{signatures = Table}) when Kind =:= fork; Kind =:= init ->
    {Kind, P, Q, witness_event_signature:resolve(Raw, Table), Ts};
resolve(E, _) -> E.

has_birth([E | Events]) ->
    case element(1, E) of
        send -> has_birth(Events);
        recv -> has_birth(Events);
        exit -> has_birth(Events);
        _ -> true
    end;
has_birth([]) -> false.

run(Events, Next, R = #runner{machine = Machine}) -> handle_result(witness_monitor_machine:run(Events, Machine), Next, R).

handle_result({Slices, {ok, Machine}}, Next, R) ->
    report_slices(Slices, R),
    proceed(Next, watch(R#runner{machine = Machine}));
handle_result({Slices, {decided, Final}}, _, R) ->
    report_all({Slices, Final}, R).

finish(How, R = #runner{machine = Machine}) -> report_all(witness_monitor_machine:finish(How, Machine), R).

finish_inconclusive(Reason, R = #runner{machine = Machine}) -> report_all(witness_monitor_machine:inconclusive(Reason, Machine), R).

report_all({Slices, Final}, R) ->
    report_slices(Slices, R),
    report(Final, R).

report_slices(Outcomes, #runner{run = Run, reader = Reader}) ->
    lists:foreach(fun(Outcome) -> Run ! {slice, Reader, Outcome} end, Outcomes).

report(Final, R = #runner{run = Run, reader = Reader}) ->
    Run ! {verdict, Reader, outcome(Final, R)},
    ok.

outcome(ignored, _) -> ignored;
outcome(Final, #runner{covered = Covered}) -> Final#{covered => Covered bor witness_monitor_machine:read_marks()}.
