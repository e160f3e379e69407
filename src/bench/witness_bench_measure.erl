-module(witness_bench_measure).
-moduledoc """
One benchmark in this VM: a system is started in a mode, and measured until it has ended and every monitor is done. The
findings of its monitors decide whether the measurement is valid.

```
measure              adapter (mode)       system           collector (high priority)
  | start -------------->| start                               |
  |                      |---------------->| first process     |
  |<-- {ok, S, First} ---|                 |                   |
  | begun ---------------------------------------------------->| first sample
  | watcher: monitors First                |                   | a sample every 500 ms
  |                                        * ended             |
  |<-- watcher: ended, at this time ------ mark system ------->| first window
  | await -------------->| analyses the rest                   |
  |<-- {ok, Facts} ------|                                     |
  | mark monitors -------------------------------------------->| second window
  | stop --------------->|                stop --------------->| rows are written
```

## Soundness

With an analysis that checks the order of messages (`sequence`, or one that takes some microseconds an event) the models
do what their monitors check, so only a wrong trace causes a `no`. The benchmark is an error then. It is also an error
if a process had no monitor, or a monitor crashed, and the tool has not reported that it misses something. If
it has, the result says how many monitors have gaps. A tool that gives no verdicts and reports no gap may or may not
have seen everything: the result does not say whether it was sound.
""".

-export([run/2]).

-export_type([subject/0, config/0, result/0]).

-doc """
What is measured: the first process, given the measures; whether a signature is that of the first process or of
others; and their number, if known.
""".
-type subject() :: #{system := fun((witness_bench_response:measures()) -> {module(), atom(), [term()]}),
                     modules := [module()],
                     signatures := [#{signature := mfa(), role := root | member}],
                     processes := #{root := non_neg_integer(), member := non_neg_integer()} | unknown}.

-doc "The configuration; see `m:witness_bench_run`.".
-type config() :: #{mode := witness_bench_run:mode(), analysis := witness_bench_run:analysis(),
                    samples := none | file:name_all(),
                    interval := pos_integer(), sample := number(), collector := boolean(), options := map(), _ => _}.

-doc "See `m:witness_bench_run`.".
-type result() :: map().

%% Violations that are reported.
-define(MAX_REPORTED, 3).

-doc "Measures a subject. The calling process must have nothing else to do, and must not trap exits.".
-spec run(subject(), config()) -> {ok, result()} | {error, witness_bench_run:reason()}.
run(Subject = #{system := System, modules := Modules}, Config = #{mode := Mode, sample := Sample}) ->
    Measures = witness_bench_response:new(#{sample => Sample}),
    Counter = counters:new(1, [write_concurrency]),
    Verdicts = spawn_link(fun() -> verdicts(witness_bench_idle:new(), []) end),
    Setting = #{system => System(Measures), modules => Modules,
                monitors => [{Signature, monitor_of(Config, Counter)}
                             || #{signature := Signature, role := Role} <- maps:get(signatures, Subject),
                                witness_bench_witness:watches(Role, Mode)],
                timestamps => maps:get(analysis, Config) =:= idle_time,
                verdict => fun(Verdict, Info) -> forward_verdict(Verdict, Info, Verdicts) end,
                options => maps:get(options, Config)},
    ok = witness_bench_model:load(Modules),
    lists:foreach(fun erlang:garbage_collect/1, processes()),
    maybe
        {ok, Collector} ?= collector(Measures, Config),
        {Adapter, Name} = adapter(Mode),
        {ok, State, First} ?= witness_bench_adapter:started(Adapter, Adapter:start(Name, Setting)),
        {ok, Times, Facts, Windows} ?= try observe(Adapter, State, First, Collector) after Adapter:stop(State) end,
        {Idle, Violations} = collect_verdicts(Verdicts),
        #{started := Started, ended := Ended, done := Done, cpu := Cpu} = Times,
        %% A system without measures of its own has started by then.
        Begun = min(Started, witness_bench_response:first_opened(Measures)),
        Result = (witness_bench_response:summary(Measures))#{
            duration_ms => milliseconds(Ended - Begun), done_ms => milliseconds(Done - Begun), cpu_ms => Cpu,
            windows => Windows, events => maps:get(events, Facts), analysed => counters:get(Counter, 1),
            tracers => maps:get(tracers, Facts, 0), trouble => maps:get(trouble, Facts, [])},
        judge(Facts, Violations, Subject, Config, idle(Idle, Config, histogram(Measures, Result)))
    end.

%% Waits for the system and the tool; returns when what happened, and what was found.
observe(Adapter, State, First, Collector) ->
    Started = erlang:monotonic_time(),
    {Cpu, _} = erlang:statistics(runtime),
    maybe
        ok = probe(Adapter, State, Collector),
        {ok, Ended} ?= wait_for_end(First, Collector),
        {ok, Facts} ?= witness_bench_adapter:found(Adapter, Adapter:await(State)),
        Done = erlang:monotonic_time(),
        {CpuDone, _} = erlang:statistics(runtime),
        ok = report_facts(Facts, Collector),
        ok = mark(monitors, Collector),
        {ok, Windows} ?= windows(Collector),
        {ok, #{started => Started, ended => Ended, done => Done, cpu => CpuDone - Cpu}, Facts, Windows}
    end.

idle(Idle, #{analysis := idle_time}, Result) -> Result#{idle => witness_bench_idle:summary(Idle)};
idle(_, _, Result) -> Result.

histogram(Measures, Result = #{response := Response}) ->
    Histogram = [tuple_to_list(Counted) || Counted <- witness_bench_response:histogram(Measures)],
    Result#{response := Response#{histogram => Histogram}}.

milliseconds(Native) -> erlang:convert_time_unit(Native, native, nanosecond) / 1.0e6.

%% --- mode and analysis -----------------------------------------------------------

adapter({adapter, Module}) -> {Module, Module};
adapter(Mode) -> {witness_bench_witness, Mode}.

monitor_of(#{analysis := none}, Counter) -> {witness_bench_count, Counter};
monitor_of(#{analysis := sequence}, Counter) -> {witness_bench_sequence, Counter};
monitor_of(#{analysis := {microseconds, N}}, Counter) -> {witness_bench_sequence, {Counter, witness_bench_work:cost(N)}};
monitor_of(#{analysis := idle_time, mode := Mode}, _) ->
    {witness_bench_idle, case lists:member(Mode, [inline, inline_members]) of true -> taken; false -> delivered end}.

%% --- the system's life -----------------------------------------------------------

collector(Measures, #{collector := true, interval := Interval, samples := File}) ->
    witness_bench_collector:start_link(#{measures => Measures, interval => Interval, file => File});
collector(_, #{collector := false}) -> {ok, none}.

probe(_, _, none) -> ok;
probe(Adapter, State, Collector) ->
    %% From here on the system exists.
    ok = witness_bench_collector:start_windows(Collector),
    case erlang:function_exported(Adapter, probe, 1) of
        true -> witness_bench_collector:probe(fun() -> Adapter:probe(State) end, Collector);
        false -> ok
    end.

report_facts(_, none) -> ok;
report_facts(Facts, Collector) -> witness_bench_collector:set_final(Facts, Collector).

mark(_, none) -> ok;
mark(Window, Collector) -> witness_bench_collector:mark(Window, Collector).

windows(none) -> {ok, #{}};
windows(Collector) -> witness_bench_collector:stop(Collector).

%% At high priority, so that the time is right on a busy node.
wait_for_end(First, Collector) ->
    Self = self(),
    Ref = make_ref(),
    _ = spawn_opt(fun() ->
        Monitor = monitor(process, First),
        receive
            {'DOWN', Monitor, process, First, Reason} ->
                Time = erlang:monotonic_time(),
                ok = mark(system, Collector),
                Self ! {Ref, Time, Reason}
        end
    end, [link, {priority, high}]),
    receive
        %% The process may have ended before it was monitored; then the mode knows the reason.
        {Ref, Time, Reason} when Reason =:= normal; Reason =:= noproc -> {ok, Time};
        {Ref, _, Reason} -> {error, {system, Reason}}
    end.

%% --- verdicts --------------------------------------------------------------------

forward_verdict(yes, {idle, _, _, _} = Found, Verdicts) -> Verdicts ! Found, ok;
forward_verdict(Verdict, Info, Verdicts) when Verdict =:= no; Verdict =:= crashed -> Verdicts ! {Verdict, Info}, ok;
forward_verdict(_, _, _) -> ok.

verdicts(Idle, Violations) ->
    receive
        {idle, _, _, _} = Found -> verdicts(witness_bench_idle:add(Found, Idle), Violations);
        {Verdict, _} = Violation when Verdict =:= no; Verdict =:= crashed -> verdicts(Idle, [Violation | Violations]);
        {found, From, Ref} -> From ! {Ref, {Idle, lists:reverse(Violations)}}
    end.

collect_verdicts(Verdicts) ->
    Ref = make_ref(),
    Verdicts ! {found, self(), Ref},
    receive {Ref, Found} -> Found end.

judge(Facts = #{gaps := Gaps}, Violations, Subject, Config, Result) ->
    Incomplete = maps:get(incomplete, Facts, false) orelse Gaps > 0,
    case {Facts, expected(Subject, Config)} of
        {_, _} when Violations =/= [] -> {error, {unsound, [violation(V) || V <- lists:sublist(Violations, ?MAX_REPORTED)]}};
        {#{verdicts := #{no := No}}, _} when No > 0 ->
            {error, {unsound, [[counted(No, "monitor has", "monitors have"), " found a fault"]]}};
        {#{verdicts := Verdicts}, Expected} when is_integer(Expected) ->
            case Expected - lists:sum(maps:values(Verdicts)) of
                Missing when Missing > 0, Incomplete ->
                    {ok, Result#{gaps => Gaps + Missing, verdicts => Verdicts, sound => false}};
                0 -> {ok, Result#{gaps => Gaps, verdicts => Verdicts, sound => not Incomplete}};
                Missing ->
                    {error, {unsound, [io_lib:format("~ts for ~ts, and no gap was told",
                                                     [counted(Expected - Missing, "monitor", "monitors"),
                                                      counted(Expected, "process", "processes")])]}}
            end;
        {#{verdicts := Verdicts}, unknown} -> {ok, Result#{gaps => Gaps, verdicts => Verdicts, sound => not Incomplete}};
        {#{}, _} when Incomplete -> {ok, Result#{gaps => Gaps, sound => false}};
        %% Without verdicts it is not known which processes had a monitor, and what the monitors have seen.
        {#{}, _} -> {ok, Result#{gaps => Gaps}}
    end.

counted(1, One, _) -> ["1 ", One];
counted(N, _, Many) -> [integer_to_list(N), $\s, Many].

violation({no, Info}) -> witness_event:format_term(Info, 400);
violation({crashed, Reason}) -> ["a monitor has crashed: ", witness_event:format_term(Reason, 400)].

expected(#{processes := unknown}, _) -> unknown;
expected(#{processes := Processes}, #{mode := Mode}) ->
    lists:sum([N || Role := N <- Processes, witness_bench_witness:watches(Role, Mode)]).
