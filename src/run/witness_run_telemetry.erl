-module(witness_run_telemetry).
-moduledoc """
Events for `telemetry`, if the system has loaded that library. Witness does not depend on it.

| Event | Measurements | Metadata |
|---|---|---|
| `[witness, run, start]` | `monotonic_time`, `system_time` | `run`, `system`, `source` (`log` for a log) |
| `[witness, run, stop]` | `monotonic_time`, `duration`, `processes`, `events`, `monitored`, `slices`, `violated`, `satisfied`, `undecided`, `gaps` | `run`, `system`, `source`, `outcome`, `warnings`, `coverage` (see `t:witness:summary/0`) |
| `[witness, verdict]` | `count` (1) | `run`, and what `t:witness:verdict/0` has |
| `[witness, gap]` | `count` (1) | `run`, `spec`, `name`, `process`, `reason`: a monitor or slice misses events |

`run` is the process of the run, the same in all of its events. Times are in native units. Each verdict makes one
`verdict`, however many there are: only the logger has a limit (`log_rate`). Of undecided slices only the first ones are reported
(`undecided` in `t:witness:summary/0`). If a run is killed, or its owner
dies, there is no `stop`. `system` is `{Module, Function, Arity}`, or what the user gave.

Handlers run in the process that also calls `on_verdict`: a slow handler delays only other notifications. If a handler
raises, the library detaches it.
""".

-export([report_start/2, report_verdict/2, report_end/2]).

-export_type([run/0]).

-doc "The metadata that all events of a run have, and its start time.".
-opaque run() :: {Metadata :: map(), Begin :: integer()}.

-doc "A run begins.".
-spec report_start(pid(), witness_options:options()) -> run().
report_start(Pid, Options = #{system := System}) ->
    Begin = erlang:monotonic_time(),
    Metadata = #{run => Pid, system => system(System), source => maps:get(source, Options, log)},
    execute([witness, run, start], #{monotonic_time => Begin, system_time => erlang:system_time()}, Metadata),
    {Metadata, Begin}.

%% The arguments may be anything.
system({M, F, Args}) when is_list(Args) -> {M, F, length(Args)};
system(System) -> System.

-doc "A verdict was reached.".
-spec report_verdict(witness:verdict(), run()) -> ok.
report_verdict(V, {#{run := Pid}, _}) ->
    execute([witness, verdict], #{count => 1}, V#{run => Pid}),
    case V of
        #{reason := {gap, Reason}} ->
            Metadata = (maps:with([spec, name, process], V))#{run => Pid, reason => Reason},
            execute([witness, gap], #{count => 1}, Metadata);
        #{} -> ok
    end.

-doc "The run has ended.".
-spec report_end(witness:summary(), run()) -> ok.
report_end(S = #{verdicts := #{no := No, yes := Yes, inconclusive := Inconclusive}}, {Metadata, Begin}) ->
    Now = erlang:monotonic_time(),
    Counts = maps:with([processes, events, monitored, slices, gaps], S),
    execute([witness, run, stop],
            Counts#{monotonic_time => Now, duration => Now - Begin, violated => No, satisfied => Yes,
                    undecided => Inconclusive},
            maps:merge(Metadata, maps:with([outcome, warnings, coverage], S))).

%% The library is the user's: it is called if it is loaded. An error in it must not end the run.
execute(Name, Measurements, Metadata) ->
    Telemetry = telemetry,
    _ = erlang:function_exported(Telemetry, execute, 3) andalso
        try Telemetry:execute(Name, Measurements, Metadata) catch _:_ -> ok end,
    ok.
