-module(witness_bench_evaluate).
-moduledoc """
Evaluates the rows of an experiment: overheads, growth, distributions, idle times, and how much repetitions
differ. `m:witness_bench_table` makes text of it.

An overhead compares a benchmark with the untraced one of the same repetition, which ran close to it; the result is
the median over the repetitions, and the least and the largest.
""".

-export([overheads/1, steps/1, largest_of/2, elasticity/1, growth/2, best_fit/1, idle_time/3, variability/1]).

-export_type([compared/0, place/0]).

-doc "The subject of a table: a model under a load, by its labels and the number of members, and its loading time.".
-type place() :: #{variant := binary(), shape := binary(), n := pos_integer(), w := pos_integer(), t := pos_integer(),
                   load_ms => number()}.

-doc """
A mode with an analysis: for each metric the median and the spread of its values, and of its overhead in per cent
if there is an untraced one. `problems` are the rows without numbers; `gaps` is the largest number of gaps.
""".
-type compared() :: #{mode := binary(), analysis := binary(), repetitions := non_neg_integer(),
                      gaps := non_neg_integer(), metrics := #{atom() => #{median := number(),
                                               spread := {number(), number()},
                                               overhead => number(), overheads => {number(), number()}}},
                      problems := [witness_bench_result:row()]}.

-define(METRICS, [response_mean_ns, response_p50_ns, response_p95_ns, response_p99_ns, system_memory_mean,
                  system_memory_peak, system_utilisation, system_messages_per_second, duration_ms, done_ms, cpu_ms,
                  tracers, lag_max_ns, idle_mean_ns]).

-doc "Overheads at the largest step of each shape and variant, in the order of the rows.".
-spec overheads([witness_bench_result:row()]) -> [{place(), [compared()]}].
overheads(Rows) ->
    [{place(Group), compared(Group)} || Of <- witness_bench_result:groups(fun(#{variant := V, shape := S}) -> {V, S} end, Rows),
                                        Group <- [largest(Of)]].

-doc "The same at each step.".
-spec steps([witness_bench_result:row()]) -> [{place(), [compared()]}].
steps(Rows) ->
    [{place(Group), compared(Group)}
     || Group <- witness_bench_result:groups(fun(#{variant := V, shape := S, n := N}) -> {V, S, N} end, Rows)].

largest(Rows) ->
    Most = lists:max([N || #{n := N} <- Rows]),
    [Row || #{n := N} = Row <- Rows, N =:= Most].

place([Row | _]) -> maps:with([variant, shape, n, w, t, load_ms], Row).

compared(Rows) ->
    Untraced = #{R => Row || #{mode := ~"untraced", status := ok, repetition := R} = Row <- Rows},
    [#{mode => Mode, analysis => Analysis, repetitions => length(Good),
       problems => [Row || #{status := S} = Row <- Of, S =/= ok],
       gaps => lists:max([0 | [Gaps || #{gaps := Gaps} <- Good]]),
       metrics => #{Metric => summary(Metric, Values, Good, Untraced)
                    || Metric <- ?METRICS, [_ | _] = Values <- [witness_bench_result:numbers(Metric, Good)]}}
     || [#{mode := Mode, analysis := Analysis} | _] = Of
            <- witness_bench_result:groups(fun(#{mode := M, analysis := A}) -> {M, A} end, Rows),
        Good <- [[Row || #{status := ok} = Row <- Of]]].

summary(Metric, Values, Rows, Untraced) ->
    Summary = #{median => witness_bench_statistics:median(Values), spread => witness_bench_statistics:spread(Values)},
    Overheads = [(Value / Base - 1) * 100 || #{mode := Mode, repetition := R} = Row <- Rows, Mode =/= ~"untraced",
                                             #{R := Other} <- [Untraced],
                                             Base <- witness_bench_result:numbers(Metric, [Other]), Base > 0,
                                             Value <- witness_bench_result:numbers(Metric, [Row])],
    case Overheads of
        [] -> Summary;
        _ -> Summary#{overhead => witness_bench_statistics:median(Overheads),
                      overheads => witness_bench_statistics:spread(Overheads)}
    end.

-doc "One benchmark of each variant, shape, mode and analysis at its largest step, for modes with this prefix.".
-spec largest_of(Prefix :: binary(), [witness_bench_result:row()]) -> [witness_bench_result:row()].
largest_of(Prefix, Rows) ->
    [Last || Of <- witness_bench_result:groups(fun(#{variant := V, shape := S, mode := M, analysis := A}) -> {V, S, M, A} end,
                          [Row || #{status := ok, mode := Mode} = Row <- Rows,
                                  string:prefix(Mode, Prefix) =/= nomatch]),
             Last <- [lists:last(largest(Of))]].

-doc """
Whether the tool grows and shrinks with the load, from the samples of a benchmark: most members and tracers at a
time, the correlation of their numbers while the system is alive, and memory (bytes) first, at most, and last.
""".
-spec elasticity([#{binary() => binary()}]) ->
    #{members := number(), tracers := number(), correlation := float(),
      memory := {First :: number(), Most :: number(), Last :: number()}} | none.
elasticity(Samples) ->
    Alive = [{number(~"members", S), number(~"tracers", S)} || #{~"window" := ~"system"} = S <- Samples],
    case {Alive, [number(~"memory", S) || S <- Samples]} of
        {[_ | _], Memory} ->
            #{members => lists:max([M || {M, _} <- Alive]),
              tracers => lists:max([number(~"tracers", S) || S <- Samples]),
              correlation => witness_bench_statistics:correlation(Alive),
              memory => {hd(Memory), lists:max(Memory), lists:last(Memory)}};
        {[], _} -> none
    end.

number(Column, Sample) ->
    Text = maps:get(Column, Sample),
    try binary_to_integer(Text) catch error:badarg -> binary_to_float(Text) end.

-doc """
How a metric grows with the number of members, for each variant, shape, mode and analysis: the medians of the steps,
and the slope of the line through them, per 1,000 members.
""".
-spec growth(atom(), [witness_bench_result:row()]) ->
    [#{variant := binary(), shape := binary(), mode := binary(), analysis := binary(),
       points := [{N :: pos_integer(), number()}], slope => float(), r2 => float()}].
growth(Metric, Rows) ->
    [begin
         Points = points(Metric, Of),
         Growth = #{variant => Variant, shape => Shape, mode => Mode, analysis => Analysis, points => Points},
         case Points of
             [_, _ | _] ->
                 #{coefficients := [_, Slope], r2 := R2} = witness_bench_statistics:polynomial(Points, 1),
                 Growth#{slope => Slope * 1000, r2 => R2};
             _ -> Growth
         end
     end || [#{variant := Variant, shape := Shape, mode := Mode, analysis := Analysis} | _] = Of
                <- witness_bench_result:groups(fun(#{variant := V, shape := S, mode := M, analysis := A}) -> {V, S, M, A} end,
                          [Row || #{status := ok} = Row <- Rows])].

points(Metric, Rows) ->
    Steps = maps:groups_from_list(fun(#{n := N}) -> N end, Rows),
    [{N, witness_bench_statistics:median(Values)}
     || N <- lists:sort(maps:keys(Steps)), [_ | _] = Values <- [witness_bench_result:numbers(Metric, maps:get(N, Steps))]].

-doc """
The distributions of BenchCRV's figure 5, fitted to a histogram of response times, in milliseconds, ordered by
the distance of Kolmogorov and Smirnov, the smallest first. Empty if there are fewer than two different values.
""".
-spec best_fit([{LowNs :: number(), HighNs :: number(), Count :: pos_integer()}]) ->
    [#{distribution := witness_bench_statistics:fitted(), d := float(), p := float()}].
best_fit(Buckets) ->
    case [{max(1, Low) / 1.0e6, max(1, High) / 1.0e6, Count} || {Low, High, Count} <- Buckets] of
        [_, _ | _] = Sample ->
            Fits = [Fit#{distribution => Distribution}
                    || Family <- [normal, log_normal, gamma],
                       Distribution <- [witness_bench_statistics:fit(Family, Sample)],
                       Fit <- [witness_bench_statistics:kolmogorov_smirnov(Sample, Distribution)]],
            lists:sort(fun(#{d := A}, #{d := B}) -> A =< B end, Fits);
        _ -> []
    end.

-doc """
For each size and shape, in the mode that measured idle times, response time and mean idle time (BenchCRV, figure 6)
as polynomials of the number of members: the lowest degree, at most three, with a coefficient of determination of 0.9.
""".
-spec idle_time(#{Size => [N]}, [N], [witness_bench_result:row()]) ->
    [#{size := pos_integer(), shape := binary(), mode := binary(), metric := atom(),
       points := [{N, number()}], fit := witness_bench_statistics:polynomial() | none}]
        when Size :: pos_integer(), N :: pos_integer().
idle_time(Sizes, Steps, Rows) ->
    Series = case map_size(Sizes) of 0 -> #{lists:last(Steps) => Steps}; _ -> Sizes end,
    [#{size => Size, shape => Shape, mode => Mode, metric => Metric, points => Points,
       fit => case Points of
                  [_, _ | _] -> witness_bench_statistics:lowest_polynomial(Points, 3, 0.9);
                  _ -> none
              end}
     || Size <- lists:sort(maps:keys(Series)),
        [#{shape := Shape, mode := Mode} | _] = Of
            <- witness_bench_result:groups(fun(#{shape := S, mode := M}) -> {S, M} end,
                      [Row || #{status := ok, analysis := ~"idle_time", n := N} = Row <- Rows,
                              lists:member(N, maps:get(Size, Series))]),
        Metric <- [response_mean_ns, idle_mean_ns],
        Points <- [points(Metric, Of)]].

-doc """
The coefficients of variation of the first 3, 6 and 9 repetitions (BenchCRV, figure 7), for each variant, shape, mode
and step. `first` is the number of repetitions; missing ones are left out.
""".
-spec variability([witness_bench_result:row()]) ->
    [#{variant := binary(), shape := binary(), mode := binary(), analysis := binary(), n := pos_integer(),
       first := pos_integer(), variation := #{atom() => float()}}].
variability(Rows) ->
    [#{variant => Variant, shape => Shape, mode => Mode, analysis => Analysis, n => N, first => First,
       variation => #{Metric => witness_bench_statistics:variation(Values)
                      || Metric <- [system_utilisation, system_memory_mean, response_mean_ns],
                         [_ | _] = Values <- [witness_bench_result:numbers(Metric, Some)]}}
     || [#{variant := Variant, shape := Shape, mode := Mode, analysis := Analysis, n := N} | _] = Of
            <- witness_bench_result:groups(fun witness_bench_result:cell/1, [Row || #{status := ok} = Row <- Rows]),
        First <- [3, 6, 9], length(Of) >= First,
        Some <- [[Row || #{repetition := R} = Row <- Of, R =< First]]].
