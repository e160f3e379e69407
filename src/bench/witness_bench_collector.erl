-module(witness_bench_collector).
-moduledoc """
Takes samples of the node while a benchmark runs (BenchCRV text, section 3.3): memory, utilisation of each scheduler, run
queue, members alive, tracers, events, messages, gaps.

It runs at high priority, so that a busy node is sampled in time, and only reads counters. It does not call, wait for, or
send to any process of the model or of the tool. A process of normal priority calls the tool for events, tracers and gaps,
and a sample has its last answer; the last sample has the final values. A third process writes the rows.

Samples are planned at the multiples of the interval since the start of the system. After a late sample on a busy node,
the next one is the first that is planned at least half an interval later: rates over a very
short time mean nothing. One more sample is taken as each window ends, whenever that is.

A sample is a row of a CSV file:

| Column | Unit |
|---|---|
| `time_ms` | since the start of the system; the first row is that moment |
| `window` | `system`: the system was alive; `monitors`: it has ended, and monitors have not |
| `memory` | bytes, of the whole node |
| `utilisation` | per cent since the previous sample, of all schedulers that are online |
| `run_queue` | processes and ports that wait for a scheduler now |
| `members` | alive now |
| `tracers`, `events`, `gaps` | tracers alive, events seen, monitors that miss events, as far as known |
| `messages`, `messages_per_s` | sent by the model so far, and since the previous sample |
| `scheduler_1` ... | per cent since the previous sample |

Utilisation is the part of the time in which a scheduler had work; the time in which it spins while it waits for work does
not count.

The two *windows* both begin with the system. One lasts to its end, the other until every monitor is done.
""".

-export([start_link/1, start_windows/1, probe/2, set_final/2, mark/2, stop/1]).

-export_type([collector/0, window/0, probed/0]).

-doc "A collector.".
-opaque collector() :: pid().

-doc """
Values of one window: memory in bytes, mean over the time and peak; utilisation in per cent, all schedulers and each; mean
length of the run queues; most members and tracers that were alive in a sample; messages a second.
""".
-type window() :: #{duration_ms := float(), memory_mean := float(), memory_peak := non_neg_integer(),
                    utilisation := float(), utilisations := [float()], run_queue := float(),
                    members_peak := non_neg_integer(), tracers_peak := non_neg_integer(), messages_per_second := float()}.

-doc "The progress of a run.".
-type probed() :: #{events := non_neg_integer(), tracers := non_neg_integer(), gaps := non_neg_integer()}.

-define(EVENTS, 1).
-define(TRACERS, 2).
-define(GAPS, 3).
-define(ASKING, 4).

-record(sample, {time, memory, schedulers, run_queue, members, messages, tracers}).
-record(c, {interval, measures, rows, told, known = none, asker, first, last, timer,
            window = system, memory, peak, run_queue, members = 0, tracers = 0, windows = #{}}).

-doc """
A collector that takes samples from the start of the system (`start_windows/1`). `interval` in milliseconds; `file`: where rows
are written, in an existing folder.
""".
-spec start_link(#{measures := witness_bench_response:measures(), interval := pos_integer(),
                   file := none | file:name_all()}) -> {ok, collector()} | {error, {samples, file:posix() | badarg}}.
start_link(Options) ->
    Self = self(),
    Ref = make_ref(),
    Pid = spawn_opt(fun() -> begin_collecting(Self, Ref, Options) end, [link, {priority, high}]),
    receive
        {Ref, ok} -> {ok, Pid};
        {Ref, {error, Reason}} -> {error, {samples, Reason}}
    end.

-doc "The system has started: the first sample is taken now, and both windows begin.".
-spec start_windows(collector()) -> ok.
start_windows(Collector) -> call(begun, Collector).

-doc "From now on this function is called for the progress of the run. It may take its time.".
-spec probe(fun(() -> probed()), collector()) -> ok.
probe(Ask, Collector) ->
    Collector ! {probe, Ask},
    ok.

-doc "The final values: the progress function is not called any more.".
-spec set_final(#{events := non_neg_integer(), gaps := non_neg_integer(), _ => _}, collector()) -> ok.
set_final(#{events := Events, gaps := Gaps}, Collector) ->
    Collector ! {told, Events, Gaps},
    ok.

-doc "The system has ended, or every monitor is done: a window ends now, with a sample.".
-spec mark(system | monitors, collector()) -> ok.
mark(What, Collector) ->
    call({mark, What}, Collector).

-doc "Ends the collector. The rows are in the file.".
-spec stop(collector()) -> {ok, #{system | monitors => window()}} | {error, {samples, term()}}.
stop(Collector) ->
    Stopped = call(stop, Collector),
    unlink(Collector),
    Stopped.

call(Request, Collector) ->
    Ref = monitor(process, Collector),
    Collector ! {Request, self(), Ref},
    receive
        {Ref, Reply} -> demonitor(Ref, [flush]), Reply;
        {'DOWN', Ref, process, _, Reason} -> error({collector, Reason})
    end.

begin_collecting(Owner, Ref, #{measures := Measures, interval := Interval, file := File}) ->
    proc_lib:set_label(?MODULE),
    %% The flag lasts as long as this process.
    _ = erlang:system_flag(scheduler_wall_time, true),
    case witness_bench_rows:start_link(File, columns(schedulers())) of
        {ok, Rows} ->
            Owner ! {Ref, ok},
            collect(#c{interval = Interval, measures = Measures, rows = Rows, told = atomics:new(?ASKING, []),
                       memory = witness_bench_welford:new(), run_queue = witness_bench_welford:new()});
        {error, Reason} ->
            unlink(Owner),
            Owner ! {Ref, {error, Reason}}
    end.

collect(C = #c{timer = Timer, asker = Asker, windows = Windows, told = Told}) ->
    receive
        {timeout, Timer, sample} ->
            C1 = take_sample(C),
            %% After the sample, because the asker and the tool compete for a scheduler then.
            ok = ask(C1),
            collect(next(C1));
        {probe, Ask} ->
            collect(C#c{asker = spawn_opt(fun() -> asker_loop(Ask, Told) end, [link, {priority, normal}])});
        {told, Events, Gaps} ->
            collect(C#c{known = {Events, Gaps}});
        {begun, From, Ref} ->
            First = sample(C),
            From ! {Ref, ok},
            C1 = C#c{first = First, last = First, peak = First#sample.memory},
            ok = witness_bench_rows:row(row(First, C1), C#c.rows),
            collect(next(C1));
        {{mark, What}, From, Ref} ->
            C1 = take_sample(C),
            From ! {Ref, ok},
            collect(C1#c{windows = Windows#{What => window(C1)}, window = monitors});
        {stop, From, Ref} ->
            _ = is_reference(Timer) andalso erlang:cancel_timer(Timer),
            _ = is_pid(Asker) andalso begin unlink(Asker), exit(Asker, kill) end,
            unlink(From),
            From ! {Ref, case witness_bench_rows:close(C#c.rows) of
                             ok -> {ok, Windows};
                             {error, Reason} -> {error, {samples, Reason}}
                         end}
    end.

%% The plan is absolute, so the time of a sample does not add up. A timer counts in whole milliseconds: it is set to the
%% one after the planned time, so it is never early, and no time is planned twice.
next(C = #c{interval = Interval, first = #sample{time = Begun}}) ->
    Step = erlang:convert_time_unit(Interval, millisecond, native),
    Planned = Begun + ((erlang:monotonic_time() - Begun + Step div 2) div Step + 1) * Step,
    At = erlang:convert_time_unit(Planned, native, millisecond) + 1,
    C#c{timer = erlang:start_timer(At, self(), sample, [{abs, true}])}.

%% --- the progress function -------------------------------------------------------

%% The asker is called again only after it has its answer.
ask(#c{asker = Asker, known = Known}) when Asker =:= undefined; Known =/= none -> ok;
ask(#c{asker = Asker, told = Told}) ->
    case atomics:exchange(Told, ?ASKING, 1) of
        0 -> Asker ! ask, ok;
        1 -> ok
    end.

asker_loop(Ask, Told) ->
    receive
        ask ->
            %% The run may have ended; its last values remain.
            try Ask() of
                #{events := Events, tracers := Tracers, gaps := Gaps} ->
                    atomics:put(Told, ?EVENTS, Events),
                    atomics:put(Told, ?TRACERS, Tracers),
                    atomics:put(Told, ?GAPS, Gaps)
            catch
                _:_ -> ok
            end,
            atomics:put(Told, ?ASKING, 0),
            asker_loop(Ask, Told)
    end.

%% --- samples ---------------------------------------------------------------------

sample(#c{measures = Measures, told = Told}) ->
    #sample{time = erlang:monotonic_time(), memory = erlang:memory(total), schedulers = schedulers(),
            run_queue = erlang:statistics(total_run_queue_lengths), members = witness_bench_response:live(Measures),
            messages = witness_bench_response:sent(Measures), tracers = atomics:get(Told, ?TRACERS)}.

%% Online schedulers of processes, by number.
schedulers() ->
    Online = erlang:system_info(schedulers_online),
    lists:sort([S || S = {Id, _, _} <- erlang:statistics(scheduler_wall_time), Id =< Online]).

take_sample(C = #c{last = #sample{time = Before}}) ->
    case sample(C) of
        #sample{time = Now} = Sample when Now > Before ->
            ok = witness_bench_rows:row(row(Sample, C), C#c.rows),
            add_sample(Sample, C);
        _ -> C
    end.

%% The value between two samples is taken as their mean, weighted by the time between them.
add_sample(S = #sample{time = Now, memory = Memory, run_queue = Queue}, C = #c{last = Last}) ->
    #sample{time = Before, memory = MemoryBefore, run_queue = QueueBefore} = Last,
    C#c{last = S,
        memory = witness_bench_welford:add((Memory + MemoryBefore) / 2, Now - Before, C#c.memory),
        run_queue = witness_bench_welford:add((Queue + QueueBefore) / 2, Now - Before, C#c.run_queue),
        peak = max(Memory, C#c.peak), members = max(S#sample.members, C#c.members),
        tracers = max(S#sample.tracers, C#c.tracers)}.

window(#c{first = First, last = Last = #sample{time = Now, messages = Messages}, memory = Memory, run_queue = Queue,
          peak = Peak, members = Members, tracers = Tracers}) ->
    Utilisations = utilisations(First, Last),
    Seconds = seconds(Now - First#sample.time),
    #{duration_ms => Seconds * 1000, memory_mean => witness_bench_welford:mean(Memory), memory_peak => Peak,
      utilisation => mean(Utilisations), utilisations => Utilisations, run_queue => witness_bench_welford:mean(Queue),
      members_peak => Members, tracers_peak => Tracers,
      messages_per_second => (Messages - First#sample.messages) / max(1.0e-9, Seconds)}.

utilisations(#sample{schedulers = Before}, #sample{schedulers = Now}) ->
    [100 * (Active1 - Active0) / max(1, Total1 - Total0)
     || {{Id, Active0, Total0}, {Id, Active1, Total1}} <- lists:zip(Before, Now)].

mean(Values) -> lists:sum(Values) / max(1, length(Values)).

seconds(Native) -> erlang:convert_time_unit(Native, native, nanosecond) / 1.0e9.

%% --- rows ------------------------------------------------------------------------

columns(Schedulers) ->
    ["time_ms", "window", "memory", "utilisation", "run_queue", "members", "tracers", "events", "gaps", "messages",
     "messages_per_s" | [["scheduler_", integer_to_list(Id)] || {Id, _, _} <- Schedulers]].

row(S = #sample{time = Now, messages = Messages}, #c{first = First, last = Last, window = Window} = C) ->
    {Events, Gaps} = progress(C),
    Utilisations = utilisations(Last, S),
    PerSecond = (Messages - Last#sample.messages) / max(1.0e-9, seconds(Now - Last#sample.time)),
    [seconds(Now - First#sample.time) * 1000, atom_to_binary(Window), S#sample.memory, mean(Utilisations),
     S#sample.run_queue, S#sample.members, S#sample.tracers, Events, Gaps, Messages, PerSecond | Utilisations].

progress(#c{known = none, told = Told}) -> {atomics:get(Told, ?EVENTS), atomics:get(Told, ?GAPS)};
progress(#c{known = Known}) -> Known.
