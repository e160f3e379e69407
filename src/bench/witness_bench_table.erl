-module(witness_bench_table).
-moduledoc """
The tables of an experiment, as text for a terminal of 100 columns or more: the results of `m:witness_bench_evaluate`,
with the figures of the papers beside them.

An overhead is in per cent of the untraced system.
""".

-export([tables/4]).

-type line() :: unicode:chardata().

-doc """
The tables that an experiment asks for, after the platform. `Raw` returns the response times of a benchmark, as buckets,
and its samples.
""".
-spec tables(witness_bench_experiment:experiment(), [witness_bench_result:row()],
             Platform :: witness_bench_platform:facts(),
             Raw :: #{histogram := fun((Id :: binary()) -> [{number(), number(), number()}]),
                      samples := fun((Id :: binary()) -> [#{binary() => binary()}])}) -> unicode:chardata().
tables(#{name := Name, tables := Tables} = Experiment, All, Platform, Raw) ->
    Rows = witness_bench_schedule:latest(All),
    [Name, $\n, witness_bench_platform:line(Platform), $\n,
     [[$\n, [[Line, $\n] || Line <- table(Table, Experiment, Rows, Raw)]] || Table <- Tables],
     problems(Rows)].

-spec table(atom(), witness_bench_experiment:experiment(), [witness_bench_result:row()], map()) -> [line()].
table(overhead, #{papers := Papers}, Rows, _) ->
    lists:append(lists:join([""], [overhead(Place, Compared, Papers)
                                   || {Place, Compared} <- witness_bench_evaluate:overheads(Rows)]));
table(steps, _, Rows, _) ->
    lists:append(lists:join([""], [steps(Metric, Title, Scale, Rows)
        || {Metric, Title, Scale} <- [{response_mean_ns, ~"mean response time (ms)", 1.0e6},
                                      {system_memory_mean, ~"mean memory (MiB)", 1048576},
                                      {system_utilisation, ~"mean scheduler utilisation (%)", 1},
                                      {duration_ms, ~"duration (s)", 1000}]]));
table(elasticity, _, Rows, #{samples := Samples}) -> elasticity(Rows, Samples);
table(response_fit, _, Rows, #{histogram := Histogram}) -> response_fit(Rows, Histogram);
table(idle_time, #{sizes := Sizes, steps := Steps}, Rows, _) ->
    idle_time(witness_bench_evaluate:idle_time(Sizes, Steps, Rows));
table(variability, _, Rows, _) -> variability(witness_bench_evaluate:variability(Rows)).

%% Overheads

overhead(#{variant := Variant, shape := Shape, n := N, w := W, t := T} = Place, Compared, Papers) ->
    Repetitions = lists:max([R || #{repetitions := R} <- Compared]),
    [io_lib:format("~ts, n = ~b, w = ~b, t = ~b~ts; ~ts",
                   [named(Shape, Variant), N, W, T, [[~" (", seconds(Ms), ~" s)"] || #{load_ms := Ms} <- [Place]],
                    counted(Repetitions, ~"repetition")])
     | overheads([Of || #{mode := Mode} = Of <- Compared, Mode =/= ~"untraced"], Compared, Repetitions)]
    ++ [[~"  ", Line] || Line <- witness_bench_papers:overhead(Papers, Shape)]
    ++ [~"Medians"
        | format_rows([["mode", "analysis", "response ms", "p99 ms", "memory MiB", "utilisation %", "system s", "done s",
                        "tracers", "gaps"] | [medians(C) || C <- Compared]])].

%% The cases are: no observed mode, no untraced benchmark, and overheads.
overheads([], _, _) -> [];
overheads(Watched, Compared, Repetitions) ->
    case [R || #{mode := ~"untraced", repetitions := R} <- Compared, R > 0] of
        [] -> [~"No overheads: no untraced benchmark has a result to compare with"];
        _ ->
            [[~"Overhead over the untraced system in per cent",
              [~": the median, and the least and the largest" || Repetitions > 1]]
             | format_rows([["mode", "analysis", "response time", "memory", "utilisation", "until done"]
                            | [[Mode, Analysis | [overhead(M, Metrics) || M <- [response_mean_ns, system_memory_mean,
                                                                                system_utilisation, done_ms]]]
                               || #{mode := Mode, analysis := Analysis, metrics := Metrics} <- Watched]])]
    end.

medians(#{mode := Mode, analysis := Analysis, metrics := Metrics, gaps := Gaps}) ->
    [Mode, Analysis, median(response_mean_ns, Metrics, 1.0e6), median(response_p99_ns, Metrics, 1.0e6),
     median(system_memory_mean, Metrics, 1048576), median(system_utilisation, Metrics, 1),
     median(duration_ms, Metrics, 1000), median(done_ms, Metrics, 1000), count(tracers, Metrics),
     integer_to_list(Gaps)].

median(Metric, Metrics, Scale) ->
    case Metrics of
        #{Metric := #{median := Median}} -> number(Median / Scale);
        #{} -> "-"
    end.

count(Metric, Metrics) ->
    case Metrics of
        #{Metric := #{median := Median}} -> integer_to_list(round(Median));
        #{} -> "-"
    end.

overhead(Metric, Metrics) ->
    case Metrics of
        #{Metric := #{overhead := Median, overheads := {Low, High}}} when Low =:= High -> signed(Median);
        #{Metric := #{overhead := Median, overheads := {Low, High}}} ->
            [signed(Median), " (", signed(Low), "..", signed(High), ")"];
        #{} -> "-"
    end.

%% Steps

steps(Metric, Title, Scale, Rows) ->
    Growth = witness_bench_evaluate:growth(Metric, Rows),
    Steps = lists:usort([N || #{points := Points} <- Growth, {N, _} <- Points]),
    [[~"Medians of the ", Title, ~" by n; slope of the line through them, per 1000 members"]
     | format_rows([["shape", "mode", "analysis"] ++ [integer_to_list(N) || N <- Steps] ++ ["slope", "R2"]
                    | [[named(Shape, Variant), Mode, Analysis]
                       ++ [step(lists:keyfind(N, 1, Points), Scale) || N <- Steps]
                       ++ slope(G, Scale)
                       || #{shape := Shape, variant := Variant, mode := Mode, analysis := Analysis,
                            points := Points} = G <- Growth]])]
    ++ steeper(Metric, Growth).

step({_, Value}, Scale) -> number(Value / Scale);
step(false, _) -> "-".

%% Two points are always on a line.
slope(#{slope := Slope, points := [_, _]}, Scale) -> [number(Slope / Scale), "-"];
slope(#{slope := Slope, r2 := R2}, Scale) -> [number(Slope / Scale), fixed(R2, 3)];
slope(#{}, _) -> ["-", "-"].

%% Compares shapes like BenchCRV, untraced, if both grow along a line.
steeper(Metric, Growth) ->
    [[io_lib:format("  ~ts grows ~ts times as steeply as steady, untraced", [Shape, number(Slope / Steady)]),
      case {Shape, witness_bench_papers:growth()} of
          {~"burst", #{Metric := Theirs}} -> io_lib:format(" (BenchCRV text, appendix A: ~ts)", [number(Theirs)]);
          _ -> ""
      end]
     || #{mode := ~"untraced", shape := ~"steady", variant := Variant, slope := Steady, r2 := R2} <- Growth,
        Steady > 0, R2 > 0.5,
        #{mode := ~"untraced", shape := Shape, variant := V, slope := Slope, r2 := Of} <- Growth, V =:= Variant,
        Shape =/= ~"steady", Of > 0.5].

%% Elasticity

elasticity(Rows, Samples) ->
    [~"Tracers and memory under the load, at the largest step: at most at a time, and whether they follow the members"
     | format_rows([["shape", "mode", "analysis", "members", "tracers", "correlation", "memory MiB", "peak", "end"]
                    | [[named(Shape, Variant), Mode, Analysis, integer_to_list(Members), integer_to_list(Tracers),
                        fixed(Correlation, 2) | [number(Bytes / 1048576) || Bytes <- tuple_to_list(Memory)]]
                       || #{id := Id, shape := Shape, variant := Variant, mode := Mode, analysis := Analysis}
                              <- witness_bench_evaluate:largest_of(~"outline", Rows),
                          #{members := Members, tracers := Tracers, correlation := Correlation, memory := Memory}
                              <- [witness_bench_evaluate:elasticity(Samples(Id))]]])].

%% Response times

response_fit(Rows, Histogram) ->
    Fits = [{Row, witness_bench_evaluate:best_fit(lists:append([Histogram(Id) || #{id := Id} <- Of]))}
            || [Row | _] = Of <- witness_bench_result:groups(fun witness_bench_result:cell/1,
                                                             [Row || #{status := ok} = Row <- Rows])],
    [~"Distributions of the response time (ms), the best first; D: distance of Kolmogorov and Smirnov"
     | format_rows([["shape", "n", "mode", "fit", "D"]
                    | [[named(Shape, Variant), integer_to_list(N), Mode, distribution(Distribution), fixed(D, 4)]
                       || {#{shape := Shape, variant := Variant, n := N, mode := Mode}, Found} <- Fits,
                          #{distribution := Distribution, d := D} <- Found]])]
    ++ [~"  BenchCRV text, figure 5: log-normal or Erlang, which is a gamma distribution"].

distribution({normal, Mean, Deviation}) -> ["normal: mean ", number(Mean), ", deviation ", number(Deviation)];
distribution({log_normal, Mean, Deviation}) -> ["log-normal: mu ", number(Mean), ", sigma ", number(Deviation)];
distribution({gamma, Shape, Scale}) -> ["gamma: shape ", number(Shape), ", scale ", number(Scale)].

%% Idle times

idle_time(Found) ->
    [~"Mean response time and mean idle time (ms) as polynomials of n, of the lowest degree with R2 of 0.9 or more"
     | format_rows([["size", "shape", "mode", "metric", "at size", "degree", "R2", "polynomial, n in thousands"]
                    | [[integer_to_list(Size), Shape, Mode, metric(Metric), at(Points) | fit(Fit)]
                       || #{size := Size, shape := Shape, mode := Mode, metric := Metric, points := Points,
                            fit := Fit} <- Found]])]
    ++ [~"  BenchCRV text, figure 6: bursts cubic at 20k, quadratic at 50k, linear at 500k;",
        ~"  steady and pulse part at 30k to 35k of 50k"].

metric(response_mean_ns) -> "response";
metric(idle_mean_ns) -> "idle".

at([]) -> "-";
at(Points) -> number(element(2, lists:last(Points)) / 1.0e6).

fit(none) -> ["-", "-", ""];
fit(#{coefficients := Coefficients, r2 := R2}) ->
    [integer_to_list(length(Coefficients) - 1), fixed(R2, 3),
     lists:join(" ", [term(C * math:pow(1000, I) / 1.0e6, I) || {I, C} <- lists:enumerate(0, Coefficients)])].

term(C, 0) -> number(C);
term(C, 1) -> [sign(C), number(abs(C)), " n"];
term(C, I) -> [term(C, 1), "^", integer_to_list(I)].

sign(C) when C < 0 -> "- ";
sign(_) -> "+ ".

%% Variability

variability([]) -> [~"Coefficients of variation: there are fewer than 3 repetitions"];
variability(Found) ->
    Theirs = witness_bench_papers:variability(),
    Metrics = [{system_utilisation, "utilisation"}, {system_memory_mean, "memory"}, {response_mean_ns, "response"}],
    [~"Coefficients of variation (%) of the first repetitions"
     | format_rows([["shape", "n", "mode", "repetitions" | [Title || {_, Title} <- Metrics]]
                    | [[named(Shape, Variant), integer_to_list(N), Mode, integer_to_list(First)
                        | [case Variation of #{M := Value} -> fixed(Value, 2); #{} -> "-" end || {M, _} <- Metrics]]
                       || #{shape := Shape, variant := Variant, n := N, mode := Mode, first := First,
                            variation := Variation} <- Found]])]
    ++ [io_lib:format("  BenchCRV text, 4.1, seed fixed, 3 repetitions: ~ts",
                      [lists:join(", ", [[Title, " ", fixed(maps:get(M, Theirs), 2), " %"] || {M, Title} <- Metrics])])
      ].

%% What went wrong

problems(Rows) ->
    case [Row || #{status := Status} = Row <- Rows, Status =/= ok] of
        [] -> "";
        Bad -> ["\nWithout a result:\n" | [["  ", Id, ": ", problem(Row), $\n] || #{id := Id} = Row <- Bad]]
    end.

problem(#{status := unsound} = Row) -> ["UNSOUND: ", maps:get(reason, Row, ~"")];
problem(Row) -> maps:get(reason, Row, ~"").

%% Text

named(Shape, ~"") -> Shape;
named(Shape, Variant) -> [Shape, " ", Variant].

counted(1, Noun) -> ["1 ", Noun];
counted(Number, Noun) -> [integer_to_binary(Number), " ", Noun, "s"].

seconds(Ms) -> io_lib:format("~p", [case Ms rem 1000 of 0 -> Ms div 1000; _ -> Ms / 1000 end]).

%% Three significant digits.
number(X) when X == 0 -> "0";
number(X) when abs(X) >= 100 -> integer_to_list(round(X));
number(X) when abs(X) >= 10 -> fixed(X, 1);
number(X) when abs(X) >= 1 -> fixed(X, 2);
number(X) when abs(X) >= 0.001 -> fixed(X, 3 - floor(math:log10(abs(X))) - 1);
number(X) -> io_lib:format("~.3e", [float(X)]).

fixed(X, Digits) -> float_to_list(float(X), [{decimals, Digits}]).

signed(X) when X >= 0 -> ["+", unsigned(X)];
signed(X) -> ["-", unsigned(-X)].

unsigned(X) when X >= 10 -> integer_to_list(round(X));
unsigned(X) -> fixed(X, 1).

-doc "Rows as lines, titles first: texts to the left, fields that begin with a digit or a sign to the right.".
-spec format_rows([[unicode:chardata()], ...]) -> [line()].
format_rows([Titles | Rows]) ->
    Columns = length(Titles),
    Full = [row(Row, Columns) || Row <- [Titles | Rows]],
    Widths = [lists:max([string:length(lists:nth(I, Row)) || Row <- Full]) || I <- lists:seq(1, Columns)],
    Right = [lists:all(fun(Row) -> is_number_like(lists:nth(I, Row)) end, tl(Full)) || I <- lists:seq(1, Columns)],
    [string:trim(["  " | lists:join("  ", [pad(C, Width, Side) || {C, Width, Side} <- lists:zip3(Row, Widths, Right)])],
                 trailing)
     || Row <- Full].

row(Row, Columns) ->
    [unicode:characters_to_list(Cell) || Cell <- Row] ++ lists:duplicate(max(0, Columns - length(Row)), "").

is_number_like([C | _]) -> C >= $0 andalso C =< $9 orelse C =:= $+ orelse C =:= $-;
is_number_like([]) -> true.

pad(Cell, Width, Right) -> string:pad(Cell, Width, case Right of true -> leading; false -> trailing end).
