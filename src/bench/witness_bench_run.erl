-module(witness_bench_run).
-moduledoc """
Runs one benchmark: a model under a load (`m:witness_bench_model`), in a mode, with an analysis; in this VM or in a fresh
one.

```erlang
1> {ok, R} = witness_bench_run:fresh(#{model => #{~"n" => 1000, ~"t" => 2}, mode => outline_native, analysis => sequence},
                                     #{schedulers => 2}).
2> maps:get(response, R).
#{count => 20113, mean_ns => 5120.4, p50 => 4127, p99 => 21631, ...}
```

| Key | Value | Default |
|---|---|---|
| `model` | what is run, as JSON is decoded (`m:witness_bench_model`) | `#{}` |
| `mode` | a mode of `m:witness_bench_witness`, or `{adapter, Module}` of another tool (`m:witness_bench_adapter`) | `untraced` |
| `analysis` | what monitors do: `none`, read every event and count it; `sequence`, check that the trace is sound; `{microseconds, N}`, the same, with so many microseconds of computation at each event; `idle_time`, measure the mean idle time (`m:witness_bench_idle`) | `sequence` |
| `samples` | a CSV file for the samples (`m:witness_bench_collector`), or `none` | `none` |
| `interval` | milliseconds between two samples | 500 |
| `sample` | the part of the requests with a measured response time | 0.1 |
| `collector` | whether samples are taken at all; without, there are no `windows` | `true` |
| `options` | options of the mode; those of `witness:start/1` for the modes of Witness | `#{}` |
| `timeout` | limit in milliseconds, or `infinity` | `infinity` |

## Result

A map with numbers, `true` or `false`, texts, and lists and maps of these as values:

| Key | |
|---|---|
| `duration_ms` | from the system's first step to its end |
| `done_ms` | until every monitor was done |
| `cpu_ms` | processor time of all threads of the VM from the start of the system until then, without the preparation of the mode (weaving, say) |
| `response` | `mean_ns`, `deviation_ns`, `p50`, `p95`, `p99`, `p999`, `max`, in nanoseconds; `count`, of the responses that were measured; `unclosed`; `histogram`: lists of the first and last time of a class and its count (`m:witness_bench_response`) |
| `lag` | `mean_ns`, `p99`, `max`: how late members were created. If this grows, the machine is saturated |
| `members`, `messages` | created members, sent messages |
| `windows` | `system` and `monitors`, each a `t:witness_bench_collector:window/0` |
| `events` | seen by the tool; `analysed`: those that reached monitors that count them, of processes that have ended |
| `tracers` | maximum alive at the same time |
| `verdicts` | `yes`, `no`, `inconclusive`; missing if the tool reports none |
| `gaps` | monitors that miss events, or are missing, as reported by the tool |
| `sound` | whether every process with a monitored signature had a monitor that has seen its whole trace; missing if that is not known, because the tool gives no verdicts |
| `idle` | with the analysis `idle_time`: `t:witness_bench_idle:summary/1` |
| `trouble` | other messages of the tool, as text |
| `seed` | of the model, also if it was free |

## Errors

Everything else is `{error, {witness_bench_run, Reason}}`, and `format_error/1` makes text of the reason: a wrong configuration;
`{unsound, Texts}`, if a trace was wrong or incomplete and the tool has not reported it; a system that crashed, a mode that could
not be started, a file that could not be written, a VM that ended, a time limit.
""".

-export([run/1, fresh/2, check/1, format_error/1]).
-export([alone/3]).

-export_type([mode/0, analysis/0, reason/0, error/0]).

-doc "The tool that observes the system.".
-type mode() :: witness_bench_witness:mode() | {adapter, module()}.

-doc "The work of monitors.".
-type analysis() :: none | sequence | {microseconds, number()} | idle_time.

-doc "Why there is no result.".
-type reason() :: {model, Path :: [binary()], Text :: binary()}
                | {config, Key :: term(), Expected :: iodata()}
                | {mode, Text :: binary()}
                | {unsound, [unicode:chardata()]}
                | {no_second_node, term()} | {system, term()} | {samples, term()} | {timeout, pos_integer()} | {vm, term()}
                | {failed, term()}.

-type error() :: {?MODULE, reason()}.

defaults() ->
    #{model => #{}, mode => untraced, analysis => sequence, samples => none, interval => 500, sample => 0.1, collector => true,
      options => #{}, timeout => infinity}.

-doc """
Runs a benchmark in this VM. It is measured in a process of its own, which ends with the caller.

After an error, processes of the system may go on; `fresh/2` leaves nothing behind.
""".
-spec run(map()) -> {ok, witness_bench_measure:result()} | {error, error()}.
run(Given) ->
    maybe
        {ok, Config = #{model := Text, timeout := Timeout}} ?= check(Given),
        add_module(maybe
            {ok, Model} ?= parsed(Text),
            alone(fun() -> measure(Model, Config) end, Timeout)
        end)
    end.

%% Within this layer errors have no module. Those of `run/1` in another VM have one.
add_module({error, {?MODULE, _}} = Error) -> Error;
add_module({error, Reason}) -> {error, {?MODULE, Reason}};
add_module({ok, _} = Result) -> Result.

-doc """
The same in a fresh VM with so many schedulers, which always ends afterwards, also if the caller ends
meanwhile. `schedulers`: those of this VM by default; `args`: more arguments of `erl`.

A time limit (`timeout`) includes the start of the VM.
""".
-spec fresh(map(), #{schedulers => pos_integer(), args => [string()]}) ->
    {ok, witness_bench_measure:result()} | {error, error()}.
fresh(Given, Options) ->
    maybe
        {ok, #{timeout := Timeout}} ?= check(Given),
        [] ?= [{error, {?MODULE, {config, Key, "no such key"}}} || Key <- maps:keys(Options), Key =/= schedulers, Key =/= args],
        add_module(witness_bench_fresh:call(?MODULE, run, [Given#{timeout => infinity}], Options#{timeout => Timeout}))
    else
        [Wrong | _] -> Wrong;
        {error, _} = Error -> Error
    end.

-doc "Completes and checks a configuration, except its model.".
-spec check(map()) -> {ok, map()} | {error, error()}.
check(Given) when is_map(Given) ->
    Config = maps:merge(defaults(), Given),
    case [Wrong || {Key, Value} <- lists:sort(maps:to_list(Config)), Wrong <- [wrong(Key, Value)], Wrong =/= ok] of
        [] -> {ok, Config};
        [Wrong | _] -> {error, {?MODULE, Wrong}}
    end;
check(_) -> {error, {?MODULE, {config, config, "a map"}}}.

wrong(model, Model) -> expected(is_map(Model), model, "a map");
wrong(mode, {adapter, Module}) when is_atom(Module) ->
    case witness_bench_adapter:check(Module) of
        ok -> ok;
        {error, Text} -> {mode, unicode:characters_to_binary(Text)}
    end;
wrong(mode, Mode) ->
    expected(lists:member(Mode, witness_bench_witness:modes()), mode,
             ["{adapter, Module} or one of ", lists:join(", ", [atom_to_binary(M) || M <- witness_bench_witness:modes()])]);
wrong(analysis, {microseconds, N}) ->
    expected(is_number(N) andalso N >= 0 andalso N =< 1_000_000, analysis, "a number of microseconds from 0 to 1000000");
wrong(analysis, Analysis) ->
    expected(lists:member(Analysis, [none, sequence, idle_time]), analysis, "none, sequence, idle_time or {microseconds, N}");
wrong(samples, File) ->
    expected(File =:= none orelse is_list(File) orelse is_binary(File), samples, "the name of a file, or none");
wrong(interval, N) -> expected(is_integer(N) andalso N > 0, interval, "milliseconds, at least 1");
wrong(sample, Part) -> expected(is_number(Part) andalso Part > 0 andalso Part =< 1, sample, "a number above 0, at most 1");
wrong(collector, Flag) -> expected(is_boolean(Flag), collector, "true or false");
wrong(options, Options) -> expected(is_map(Options), options, "a map");
wrong(timeout, N) ->
    expected(N =:= infinity orelse is_integer(N) andalso N > 0, timeout, "milliseconds, at least 1, or infinity");
wrong(Key, _) -> {config, Key, "no such key"}.

expected(true, _, _) -> ok;
expected(false, Key, What) -> {config, Key, What}.

parsed(Text) ->
    case witness_bench_model:parse(Text) of
        {ok, Model} -> {ok, Model};
        {error, Path, Expected} -> {error, {model, Path, Expected}}
    end.

measure(Parsed, Config) ->
    maybe
        {ok, Model = #{seed := Seed}} ?= witness_bench_model:prepare(Parsed),
        {ok, Result} ?= witness_bench_measure:run(subject(Model), Config),
        {ok, Result#{seed => Seed}}
    end.

subject(Model) ->
    #{system => fun(Measures) -> witness_bench_model:system(Model, Measures) end,
      modules => witness_bench_model:modules(Model), signatures => witness_bench_model:signatures(Model),
      processes => processes(Model)}.

%% The number of processes of a share is not known.
processes(Model = #{share := Share}) when Share == 1 ->
    #{root => 1, member => witness_bench_model:processes(Model) - 1};
processes(_) -> unknown.

%% --- a process of its own --------------------------------------------------------

%% Everything that it starts is linked to it or monitors it, and so never outlives it.
alone(Work, Timeout) ->
    Tag = alias(),
    {Worker, Ref} = spawn_monitor(?MODULE, alone, [self(), Tag, Work]),
    Result = receive
        {Tag, Measured} -> Measured;
        {'DOWN', Ref, process, Worker, Reason} -> {error, {failed, Reason}}
    after Timeout ->
        exit(Worker, kill),
        {error, {timeout, Timeout}}
    end,
    %% Later results are dropped.
    unalias(Tag),
    receive {Tag, _} -> ok after 0 -> ok end,
    demonitor(Ref, [flush]),
    Result.

-doc false.
-spec alone(pid(), reference(), fun(() -> term())) -> no_return().
alone(Caller, Tag, Work) ->
    Self = self(),
    _ = spawn(fun() -> guard(Self, Caller) end),
    Tag ! {Tag, Work()},
    exit(shutdown).

guard(Worker, Caller) ->
    Working = monitor(process, Worker),
    Wanted = monitor(process, Caller),
    receive
        {'DOWN', Working, process, _, _} -> ok;
        {'DOWN', Wanted, process, _, _} -> exit(Worker, kill)
    end.

-doc "An error for people.".
-spec format_error(reason()) -> unicode:chardata().
format_error({model, [], Text}) -> ["the model: ", Text];
format_error({model, Path, Text}) -> ["the model's ", lists:join(".", Path), ": ", Text];
format_error({config, Key, "no such key"}) -> io_lib:format("there is no key ~tp of a benchmark", [Key]);
format_error({config, Key, Expected}) -> [io_lib:format("~tp of a benchmark: expected ", [Key]), Expected];
format_error({mode, Text}) -> Text;
format_error({unsound, Texts}) -> ["the trace was not sound: ", lists:join("; ", Texts)];
format_error({no_second_node, Reason}) -> ["the second node could not be started: ", witness_event:format_term(Reason, 400)];
format_error({system, Reason}) -> ["the system has crashed: ", witness_event:format_term(Reason, 400)];
format_error({samples, Reason}) when is_atom(Reason) -> ["the samples could not be written: ", file:format_error(Reason)];
format_error({samples, Reason}) -> ["the samples could not be written: ", witness_event:format_term(Reason, 400)];
format_error({timeout, Timeout}) -> io_lib:format("it was not done after ~w ms", [Timeout]);
format_error({vm, {exit_status, Status}}) when Status > 128 ->
    io_lib:format("its VM was ended by the signal ~b", [Status - 128]);
format_error({vm, {exit_status, Status}}) -> io_lib:format("its VM has ended with the exit status ~b", [Status]);
format_error({vm, Reason}) -> ["its VM has ended: ", witness_event:format_term(Reason, 400)];
format_error({failed, Reason}) -> ["it could not be measured: ", witness_event:format_term(Reason, 400)].
