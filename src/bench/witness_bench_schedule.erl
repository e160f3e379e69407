-module(witness_bench_schedule).
-moduledoc """
Chooses the next benchmark of an experiment, from its rows. So an experiment can continue in the same run, or
after it was interrupted.

The number of repetitions is fixed, or follows the rule of the RIARC text, C.5.1. After each batch the coefficient of
variation of each metric is compared with that without the batch, for each combination of mode, analysis, shape, variant and
step. The experiment ends when all have moved by less than a number of points, or when the maximum of repetitions is
reached.
""".

-export([next/4, latest/1, wanted/2, movement/3, seconds/2]).

-export_type([progress/0]).

-doc "`sure`: whether there will be no more than `total`; `left_s`: an estimate for the remaining ones.".
-type progress() :: #{done := non_neg_integer(), total := non_neg_integer(), sure := boolean(), left_s := number()}.

-define(METRICS, [response_mean_ns, system_memory_mean, system_utilisation]).
-define(START_S, 1).

-doc """
The next benchmark, or `done`. `Benchmarks` returns those of a repetition; `Again` are the ones to be measured
again although they have a row.
""".
-spec next(witness_bench_experiment:experiment(), Benchmarks, [witness_bench_result:row()], Again :: [binary()]) ->
    {witness_bench_experiment:benchmark(), progress()} | {done, progress()}
        when Benchmarks :: fun((pos_integer()) -> [witness_bench_experiment:benchmark()]).
next(#{repetitions := Rule}, Benchmarks, Rows, Again) ->
    {Repetitions, Sure} = wanted(Rule, Rows, Benchmarks, Again),
    All = lists:append([Benchmarks(R) || R <- lists:seq(1, Repetitions)]),
    Left = remaining(All, Rows, Again),
    Progress = #{done => length(All) - length(Left), total => length(All), sure => Sure,
                 left_s => lists:sum([seconds(B, Rows) || B <- Left])},
    case Left of
        [Benchmark | _] -> {Benchmark, Progress};
        [] -> {done, Progress}
    end.

-doc "The benchmarks that are still to be measured.".
-spec remaining([witness_bench_experiment:benchmark()], [witness_bench_result:row()], Again :: [binary()]) ->
    [witness_bench_experiment:benchmark()].
remaining(Benchmarks, Rows, Again) ->
    Done = maps:without(Again, #{Id => true || #{id := Id} <- Rows}),
    [B || #{id := Id} = B <- Benchmarks, not is_map_key(Id, Done)].

-doc "The last row of each benchmark, in the order of the first.".
-spec latest([witness_bench_result:row()]) -> [witness_bench_result:row()].
latest(Rows) -> [lists:last(Of) || Of <- witness_bench_result:groups(fun(#{id := Id}) -> Id end, Rows)].

wanted({fixed, Repetitions}, _, _, _) -> {Repetitions, true};
wanted({batches, #{batch := Batch}} = Rule, Rows, Benchmarks, Again) ->
    Complete = fun(R) ->
        remaining(lists:append([Benchmarks(I) || I <- lists:seq(max(1, R - Batch + 1), R)]), Rows, Again) =:= []
    end,
    batches(Rule, Batch, latest(Rows), Complete).

-doc "The number of repetitions, given the rows of all repetitions so far.".
-spec wanted({batches, map()} | {fixed, pos_integer()}, [witness_bench_result:row()]) -> pos_integer().
wanted({fixed, Repetitions}, _) -> Repetitions;
wanted({batches, #{batch := Batch}} = Rule, Rows) ->
    There = lists:max([0 | [R || #{repetition := R} <- Rows]]),
    {Repetitions, _} = batches(Rule, Batch, latest(Rows), fun(R) -> R =< There end),
    Repetitions.

batches({batches, #{batch := Batch, most := Most, points := Points}} = Rule, R, Rows, Complete) ->
    case Complete(R) of
        false -> {R, false};
        true when R >= Most -> {R, true};
        true when R > Batch ->
            case movement(Rows, R - Batch, R) < Points of
                true -> {R, true};
                false -> batches(Rule, min(Most, R + Batch), Rows, Complete)
            end;
        true -> batches(Rule, min(Most, R + Batch), Rows, Complete)
    end.

-doc """
The maximum number of points by which the coefficients of variation move from the first `Before` to the first
`After` repetitions, over all metrics and steps. Benchmarks that could not be measured do not count.
""".
-spec movement([witness_bench_result:row()], pos_integer(), pos_integer()) -> float().
movement(Rows, Before, After) ->
    Cells = maps:groups_from_list(fun witness_bench_result:cell/1, [Row || #{status := ok} = Row <- Rows]),
    lists:max([0.0 | [moved(Metric, Cell, Before, After) || Cell <- maps:values(Cells), Metric <- ?METRICS]]).

moved(Metric, Cell, Before, After) ->
    case {values(Metric, Cell, Before), values(Metric, Cell, After)} of
        {[_ | _] = Few, [_ | _] = Many} ->
            abs(witness_bench_statistics:variation(Many) - witness_bench_statistics:variation(Few));
        _ -> 0.0
    end.

values(Metric, Cell, Most) ->
    witness_bench_result:numbers(Metric, [Row || #{repetition := R} = Row <- Cell, R =< Most]).

-doc """
Seconds that a benchmark will probably take: as long as before, or its loading time with the additional time of other
benchmarks of its mode.
""".
-spec seconds(witness_bench_experiment:benchmark(), [witness_bench_result:row()]) -> number().
seconds(#{mode_label := Mode, analysis_label := Analysis, shape := Shape, variant := Variant, n := N, seconds := Load},
        Rows) ->
    Timed = [{Row, Ms / 1000} || #{elapsed_ms := Ms} = Row <- Rows],
    case [S || {#{mode := M, analysis := A, shape := Sh, variant := V, n := Number}, S} <- Timed,
               {M, A, Sh, V, Number} =:= {Mode, Analysis, Shape, Variant, N}] of
        [_ | _] = Same -> witness_bench_statistics:mean(Same);
        [] ->
            Beyond = [{M, max(0, S - Seconds)} || {#{mode := M, load_ms := Ms}, S} <- Timed, Seconds <- [Ms / 1000]],
            case {[S || {M, S} <- Beyond, M =:= Mode], Beyond} of
                {[_ | _] = OfMode, _} -> Load + witness_bench_statistics:mean(OfMode);
                {[], [_ | _]} -> Load + witness_bench_statistics:mean([S || {_, S} <- Beyond]);
                {[], []} -> Load + ?START_S
            end
    end.
