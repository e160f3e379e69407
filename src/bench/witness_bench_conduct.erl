-module(witness_bench_conduct).
-moduledoc """
Conducts an experiment: one benchmark after the other, each in a fresh node, until all are done or the experiment is interrupted.

Results are in the folder (`m:witness_bench_store`) before the next benchmark begins, so an experiment that was
interrupted, or killed, continues where it was.
""".

-export([run/3]).

-export_type([options/0, news/0]).

-doc """
- `run`: runs one benchmark, with the arguments of `witness_bench_run:fresh/2`; it may be killed at any time, and then
  leaves nothing behind;
- `tell`: is called with news, in the process that conducts;
- `interrupt`: the message that aborts the current benchmark and then ends the experiment;
- `again`: measure again what could not be measured before.
""".
-type options() :: #{run := fun((map(), map()) -> {ok, map()} | {error, witness:error()}), tell := fun((news()) -> term()),
                     interrupt := term(), again := boolean()}.

-doc "The news. `tick` comes every second while a benchmark runs, with the seconds that it has run.".
-type news() :: {warmup, pos_integer(), Of :: pos_integer()}
              | {begins | ends, witness_bench_experiment:benchmark() | witness_bench_result:row(),
                 witness_bench_schedule:progress()}
              | {tick, witness_bench_experiment:benchmark(), Seconds :: non_neg_integer(),
                 witness_bench_schedule:progress()}
              | {probe, witness_bench_experiment:benchmark()} | {probed, witness_bench_capacity:probe()}
              | {fitted, T :: pos_integer()}.

-define(TICK_MS, 1000).

-doc "Runs the benchmarks that are not done yet.".
-spec run(witness_bench_experiment:experiment(), witness_bench_store:store(), options()) ->
    {done | interrupted, witness_bench_store:store()} | {error, unicode:chardata()}.
run(Experiment, Store, Options) ->
    case fit_load(Experiment, Store, Options) of
        {ok, #{warmup := Warmup} = Fitted} ->
            Rows = witness_bench_store:rows(Store),
            Again = case Options of
                #{again := true} ->
                    [Id || #{id := Id, status := Status} <- witness_bench_schedule:latest(Rows), Status =/= ok];
                #{} -> []
            end,
            All = #{R => witness_bench_experiment:benchmarks(Fitted, R) || R <- lists:seq(1, most(Fitted))},
            Next = fun(Measured, Left) ->
                witness_bench_schedule:next(Fitted, fun(R) -> maps:get(R, All) end, Measured, Left)
            end,
            loop(Fitted, Next, Next(Rows, Again), Store, Again, Warmup, Options);
        interrupted -> {interrupted, Store};
        {error, _} = Error -> Error
    end.

most(#{repetitions := {fixed, Most}}) -> Most;
most(#{repetitions := {batches, #{most := Most}}}) -> Most.

loop(_, _, {done, _}, Store, _, _, _) -> {done, Store};
loop(Experiment, Next, {Benchmark, _} = Come, Store, Again, Warmup, #{tell := Tell} = Options) when Warmup > 0 ->
    #{warmup := Of} = Experiment,
    Tell({warmup, Of - Warmup + 1, Of}),
    case measure(Benchmark, none, Experiment, fun(_) -> ok end, Options) of
        interrupted -> {interrupted, Store};
        _ -> loop(Experiment, Next, Come, Store, Again, Warmup - 1, Options)
    end;
loop(Experiment, Next, {#{id := Id, seconds := Load} = Benchmark, Progress}, Store, Again, 0, Options) ->
    #{tell := Tell} = Options,
    Tell({begins, Benchmark, Progress}),
    Attempt = 1 + length([Row || #{id := Other} = Row <- witness_bench_store:rows(Store), Other =:= Id]),
    Begun = calendar:system_time_to_rfc3339(os:system_time(second), [{offset, "Z"}]),
    Start = erlang:monotonic_time(millisecond),
    Tick = fun(Seconds) -> Tell({tick, Benchmark, Seconds, Progress}) end,
    case measure(Benchmark, witness_bench_store:samples(Store, Id), Experiment, Tick, Options) of
        interrupted -> {interrupted, Store};
        Result ->
            Row = (witness_bench_result:row(Benchmark, list_to_binary(Begun), Attempt, Result))#{
                elapsed_ms => erlang:monotonic_time(millisecond) - Start, load_ms => round(Load * 1000)},
            Added = witness_bench_store:add(Store, Row, histogram(Result)),
            Left = Again -- [Id],
            {_, After} = Come = Next(witness_bench_store:rows(Added), Left),
            Tell({ends, Row, After}),
            loop(Experiment, Next, Come, Added, Left, 0, Options)
    end.

histogram({ok, #{response := #{histogram := Buckets}}}) -> Buckets;
histogram(_) -> [].

%% In a process of its own. If it is killed, the node ends too.
measure(#{mode := Mode, analysis := Analysis, model := Model, seconds := Load}, Samples,
        #{interval_ms := Interval, sample := Sample, memory_mb := Memory, schedulers := Schedulers, limit_s := Limit},
        Tick, #{run := Run, interrupt := Interrupt}) ->
    Config = #{model => Model, mode => Mode, analysis => Analysis, samples => Samples, interval => Interval,
               sample => Sample, options => options(Mode, Memory)},
    Vm = case Schedulers of default -> #{}; _ -> #{schedulers => Schedulers} end,
    Seconds = case Limit of default -> 60 + ceil(15 * Load); _ -> Limit end,
    Conductor = self(),
    {Pid, Ref} = spawn_monitor(fun() -> Conductor ! {measured, self(), Run(Config, Vm)} end),
    await(Pid, Ref, Seconds * 1000, erlang:monotonic_time(millisecond), 0, Tick, Interrupt).

%% The memory budget is an option of Witness's modes only.
options(Mode, Memory) when Memory =:= default; Mode =:= untraced; is_tuple(Mode) -> #{};
options(_, Memory) -> #{memory => Memory * 1048576}.

await(Pid, Ref, Limit, Start, Ticks, Tick, Interrupt) ->
    Now = erlang:monotonic_time(millisecond) - Start,
    receive
        {measured, Pid, Result} ->
            receive {'DOWN', Ref, process, Pid, _} -> ok end,
            result(Result);
        {'DOWN', Ref, process, Pid, Reason} -> result({error, {witness_bench_run, {failed, Reason}}});
        Interrupt ->
            ok = kill(Pid, Ref),
            interrupted
    after max(0, min(Limit, (Ticks + 1) * ?TICK_MS) - Now) ->
        case Now >= Limit of
            true ->
                ok = kill(Pid, Ref),
                {failed, io_lib:format("not done after ~b s (limit_s)", [Limit div 1000])};
            false ->
                Tick(Ticks + 1),
                await(Pid, Ref, Limit, Start, Ticks + 1, Tick, Interrupt)
        end
    end.

kill(Pid, Ref) ->
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    receive {measured, Pid, _} -> ok after 0 -> ok end,
    %% Its VM must not disturb the next benchmark, nor outlive this one.
    witness_bench_fresh:settle().

result({ok, _} = Ok) -> Ok;
result({error, {_, {unsound, _}} = Error}) -> {unsound, witness:format_error(Error)};
result({error, Error}) -> {failed, witness:format_error(Error)}.

%% The loading time, if it must be found.
fit_load(#{model := #{~"t" := ~"fit"} = Model} = Experiment, Store, #{tell := Tell} = Options) ->
    case witness_bench_capacity:saved(Store) of
        {ok, T} -> {ok, Experiment#{model := Model#{~"t" := T}}};
        none ->
            Measure = fun(Probe) ->
                Tell({probe, Probe}),
                measure(Probe, none, Experiment, fun(_) -> ok end, Options)
            end,
            case witness_bench_capacity:find(Experiment, Measure, fun(Probe) -> Tell({probed, Probe}) end) of
                {ok, T, Probes} ->
                    ok = witness_bench_capacity:save(Store, T, Probes),
                    Tell({fitted, T}),
                    {ok, Experiment#{model := Model#{~"t" := T}}};
                interrupted -> interrupted;
                {error, _} = Error -> Error
            end
    end;
fit_load(Experiment, _, _) -> {ok, Experiment}.
