-module(witness_perturbation).
-moduledoc """
What measuring does to what is measured (BenchCRV text, section 3.3).

Pairs of benchmarks of the untraced master-worker model, each in a fresh VM, one with the collector and one without, in
alternating order:

- below saturation: 2,000 workers of 100 requests a second; the mean response time counts, and the processor time;
- saturated: the same number of workers, all at once; the messages a second count.

The result is the ratio (the mean of the logarithms of the ratios of the pairs) with its 95 % interval, by Student's t.
If 1 is inside, no difference is resolved.

The sampling error is measured too. All response times of a benchmark below saturation are taken, of which
`m:witness_bench_response` samples one in ten, many times; the result is how far the mean of the sample is from that of all. The
choice of requests does not depend on how long they take, so the order in which they come does not matter.

Usage: `witness_perturbation:main([Pairs, Seconds, Schedulers])`.
""".

-export([main/1]).

%% Times that all responses are sampled.
-define(SAMPLES, 20).

-spec main([string()]) -> no_return().
main([_, _, _] = Args) ->
    [Pairs, Seconds, Schedulers] = [list_to_integer(A) || A <- Args],
    io:format("OTP ~s, ~w scheduler(s), ~w pairs~n", [erlang:system_info(otp_release), Schedulers, Pairs]),
    Below = #{~"n" => 2000 * Seconds, ~"w" => 100, ~"t" => Seconds},
    Saturated = #{~"n" => 2000 * Seconds, ~"w" => 100, ~"t" => 1, ~"period_ms" => 1},
    Measure = fun(Model, Given) -> measured(Given#{model => Model}, Schedulers) end,
    _ = Measure(Below, #{}),
    First = pairs(Pairs, Below, Measure),
    told("mean response time below saturation, us", First, fun(#{response := #{mean_ns := Mean}}) -> Mean / 1000 end),
    told("processor time below saturation, ms", First, fun(#{cpu_ms := Cpu}) -> Cpu end),
    Utilisations = [U || {#{windows := #{system := #{utilisation := U}}}, _} <- First],
    io:format("  utilisation ~.1f %, lag ~.2f ms~n",
              [witness_bench_statistics:mean(Utilisations),
               witness_bench_statistics:mean([L / 1.0e6 || {#{lag := #{mean_ns := L}}, _} <- First])]),
    told("messages a second when saturated", pairs(Pairs, Saturated, Measure),
         fun(#{messages := N, duration_ms := T}) -> 1000 * N / T end),
    sampled(Measure(Below, #{sample => 1.0})),
    halt(0).

measured(Config, Schedulers) ->
    case witness_bench_run:fresh(Config, #{schedulers => Schedulers}) of
        {ok, Result} -> Result;
        {error, Reason} ->
            io:format(standard_error, "perturbation: ~ts~n", [witness:format_error(Reason)]),
            halt(1)
    end.

pairs(Pairs, Model, Measure) ->
    [begin
         io:format(standard_error, "pair ~w of ~w~n", [N, Pairs]),
         With = fun() -> Measure(Model, #{collector => true}) end,
         Without = fun() -> Measure(Model, #{collector => false}) end,
         case N rem 2 of
             0 -> A = With(), {A, Without()};
             1 -> B = Without(), {With(), B}
         end
     end || N <- lists:seq(1, Pairs)].

told(What, Pairs, Of) ->
    Values = [{Of(With), Of(Without)} || {With, Without} <- Pairs],
    Logs = [math:log(A / B) || {A, B} <- Values],
    {Low, High} = witness_bench_statistics:t_interval(Logs, 0.95),
    [Ratio, From, To] = [math:exp(X) || X <- [witness_bench_statistics:mean(Logs), Low, High]],
    io:format("~s: without ~.2f, with ~.2f; ratio ~.4f, 95 % interval ~.4f to ~.4f: ~s~n",
              [What, witness_bench_statistics:median([B || {_, B} <- Values]) * 1.0,
               witness_bench_statistics:median([A || {A, _} <- Values]) * 1.0, Ratio, From, To,
               if From =< 1, To >= 1 -> "not resolved"; true -> "resolved" end]).

%% Response times again, a million times as long, so that the time of sampling does not count.
sampled(#{response := #{histogram := Histogram}}) ->
    Times = [{(First + Last) div 2, N} || [First, Last, N] <- Histogram],
    All = witness_bench_statistics:mean(Times),
    Errors = [100 * abs(sample(Times) / All - 1) || _ <- lists:seq(1, ?SAMPLES)],
    io:format("mean of one response in ten against that of all ~w: off by ~.2f % (median of ~w samples), at most ~.2f %~n",
              [witness_bench_statistics:count(Times), witness_bench_statistics:median(Errors), ?SAMPLES, lists:max(Errors)]).

%% Each sample has streams of its own.
sample(Times) ->
    M = witness_bench_response:new(#{}),
    _ = [witness_bench_response:open(M) || _ <- lists:seq(1, rand:uniform(1000))],
    L = lists:foldl(fun({Time, N}, L0) -> responses(Time * 1_000_000, N, L0) end, witness_bench_response:open(M), Times),
    ok = witness_bench_response:close(L),
    #{response := #{mean_ns := Mean}} = witness_bench_response:summary(M),
    Mean / 1.0e6.

responses(_, 0, L) -> L;
responses(Time, N, L) ->
    case witness_bench_response:start(L) of
        {undefined, L1} -> responses(Time, N - 1, witness_bench_response:stop(undefined, L1));
        {Stamp, L1} ->
            Begun = Stamp - erlang:convert_time_unit(Time, nanosecond, native),
            responses(Time, N - 1, witness_bench_response:stop(Begun, L1))
    end.
