-module(witness_bench_statistics).
-moduledoc """
Statistics of repeated measurements: their middle and spread, their distribution, and their growth.

A sample is a list of numbers, or of `{Value, Count}` if a value was seen several times, or of `{Low, High, Count}`
for the bucket of a histogram; the values of a bucket are taken to be in its middle. An empty sample raises `function_clause`.

The distributions are those of the BenchCRV text (section 4.1), fitted by maximum likelihood; the statistic of
Kolmogorov and Smirnov says how well they fit.
""".

-export([count/1, mean/1, deviation/1, median/1, quantile/2, spread/1, variation/1, correlation/1]).
-export([fit/2, cdf/2, kolmogorov_smirnov/2, chi_square/2, chi_square/3]).
-export([polynomial/2, polynomial_value/2, lowest_polynomial/3]).
-export([t_interval/2, bootstrap/4]).

-export_type([sample/0, distribution/0, fitted/0, polynomial/0]).

-doc "Measured values.".
-type sample() :: [number() | {number(), Count :: number()}
                   | {Low :: number(), High :: number(), Count :: number()}, ...].

-doc """
A distribution with its parameters: mean and standard deviation; those of the logarithm; shape and scale; the mean of a
count; or the ends of an interval.
""".
-type distribution() :: fitted() | {poisson, Mean :: number()}
                      | {uniform, Low :: number(), High :: number()}.

-doc "The distributions that can be fitted.".
-type fitted() :: {normal, Mean :: number(), Deviation :: number()}
                | {log_normal, Mean :: number(), Deviation :: number()}
                | {gamma, Shape :: number(), Scale :: number()}.

-doc "Coefficients, that of the constant first, and the coefficient of determination.".
-type polynomial() :: #{coefficients := [float(), ...], r2 := float()}.

%% Samples

-doc "How many values there are.".
-spec count(sample()) -> number().
count([_ | _] = Sample) -> lists:sum([Count || {_, Count} <- weighted(Sample)]).

-doc "The arithmetic mean.".
-spec mean(sample()) -> float().
mean([_ | _] = Sample) -> mean_of(weighted(Sample)).

mean_of(Pairs) -> lists:sum([X * Count || {X, Count} <- Pairs]) / lists:sum([Count || {_, Count} <- Pairs]).

-doc "The standard deviation, with one degree of freedom less than values; 0.0 for one value.".
-spec deviation(sample()) -> float().
deviation([_ | _] = Sample) ->
    Pairs = weighted(Sample),
    case count(Sample) of
        N when N =< 1 -> 0.0;
        N -> math:sqrt(squares(Pairs) / (N - 1))
    end.

squares(Pairs) ->
    Mean = mean_of(Pairs),
    lists:sum([(X - Mean) * (X - Mean) * Count || {X, Count} <- Pairs]).

-doc "The median.".
-spec median(sample()) -> number().
median(Sample) -> quantile(0.5, Sample).

-doc "A quantile; interpolated between two values (R's type 7).".
-spec quantile(float(), sample()) -> number().
quantile(P, [_ | _] = Sample) when P >= 0, P =< 1 ->
    Sorted = lists:keysort(1, weighted(Sample)),
    Position = P * (count(Sample) - 1),
    Low = at(trunc(Position), Sorted),
    case Position - trunc(Position) of
        Fraction when Fraction > 0 -> Low + Fraction * (at(trunc(Position) + 1, Sorted) - Low);
        _ -> Low
    end.

at(Position, [{X, Count} | _]) when Position < Count -> X;
at(_, [{X, _}]) -> X;
at(Position, [{_, Count} | Rest]) -> at(Position - Count, Rest).

-doc "The least and the largest value.".
-spec spread(sample()) -> {number(), number()}.
spread([_ | _] = Sample) ->
    Values = [X || {X, _} <- weighted(Sample)],
    {lists:min(Values), lists:max(Values)}.

-doc "The coefficient of variation in per cent; 0.0 if the mean is 0 (RIARC text, C.5.1).".
-spec variation(sample()) -> float().
variation([_ | _] = Sample) ->
    case mean(Sample) of
        Mean when Mean == 0 -> 0.0;
        Mean -> deviation(Sample) / abs(Mean) * 100
    end.

-doc "The coefficient of correlation (Pearson); 0.0 if one of the two never changes.".
-spec correlation([{number(), number()}, ...]) -> float().
correlation([_ | _] = Pairs) ->
    {X, Y} = {mean([A || {A, _} <- Pairs]), mean([B || {_, B} <- Pairs])},
    Sum = fun(Function) -> lists:sum([Function(A - X, B - Y) || {A, B} <- Pairs]) end,
    case math:sqrt(Sum(fun(A, _) -> A * A end) * Sum(fun(_, B) -> B * B end)) of
        Scale when Scale == 0 -> 0.0;
        Scale -> Sum(fun(A, B) -> A * B end) / Scale
    end.

weighted(Sample) -> [pair(Value) || Value <- Sample].

pair({Low, High, Count}) -> {(Low + High) / 2, Count};
pair({X, Count}) -> {X, Count};
pair(X) when is_number(X) -> {X, 1}.

%% Distributions

-doc """
The distribution of a family that makes the sample most likely. All values must be positive except for `normal`, and they
must not all be the same.
""".
-spec fit(normal | log_normal | gamma, sample()) -> fitted().
fit(normal, [_ | _] = Sample) -> likeliest(normal, weighted(Sample));
fit(log_normal, [_ | _] = Sample) -> likeliest(log_normal, [{math:log(X), Count} || {X, Count} <- weighted(Sample)]);
fit(gamma, [_ | _] = Sample) ->
    Pairs = weighted(Sample),
    Mean = mean_of(Pairs),
    S = math:log(Mean) - mean_of([{math:log(X), Count} || {X, Count} <- Pairs]),
    true = S > 0,
    Shape = gamma_shape((3 - S + math:sqrt((S - 3) * (S - 3) + 24 * S)) / (12 * S), S, 100),
    {gamma, Shape, Mean / Shape}.

likeliest(Family, Pairs) ->
    Deviation = math:sqrt(squares(Pairs) / lists:sum([Count || {_, Count} <- Pairs])),
    true = Deviation > 0,
    {Family, mean_of(Pairs), Deviation}.

%% Newton's method on log k - digamma(k) = S, which is monotonic.
gamma_shape(K, _, 0) -> K;
gamma_shape(K, S, Left) ->
    Step = (math:log(K) - witness_bench_special:digamma(K) - S) / (1 / K - witness_bench_special:trigamma(K)),
    case K - Step of
        Next when Next =< 0 -> gamma_shape(K / 2, S, Left - 1);
        Next when abs(Step) < 1.0e-12 * K -> Next;
        Next -> gamma_shape(Next, S, Left - 1)
    end.

-doc "The probability of a value of at most `X`.".
-spec cdf(distribution(), number()) -> float().
cdf({normal, Mean, Deviation}, X) -> 0.5 * math:erfc((Mean - X) / (Deviation * math:sqrt(2)));
cdf({log_normal, _, _}, X) when X =< 0 -> 0.0;
cdf({log_normal, Mean, Deviation}, X) -> cdf({normal, Mean, Deviation}, math:log(X));
cdf({gamma, Shape, Scale}, X) -> witness_bench_special:gamma_p(Shape, X / Scale);
cdf({poisson, _}, X) when X < 0 -> 0.0;
cdf({poisson, Mean}, X) -> witness_bench_special:gamma_q(floor(X) + 1, Mean);
cdf({uniform, Low, High}, X) -> max(0.0, min(1.0, (X - Low) / (High - Low))).

-doc """
The largest distance between the sample and a distribution, `d`, and the probability of one as large if the sample
comes from it, `p`. Within the bucket of a histogram nothing is known, so only its ends count. If the
distribution was fitted to the same sample, `p` is too large: `d` then compares families, and proves none.
""".
-spec kolmogorov_smirnov(sample(), distribution() | fun((number()) -> float())) -> #{d := float(), p := float()}.
kolmogorov_smirnov([_ | _] = Sample, Distribution) when not is_function(Distribution) ->
    kolmogorov_smirnov(Sample, fun(X) -> cdf(Distribution, X) end);
kolmogorov_smirnov([_ | _] = Sample, Cdf) ->
    N = count(Sample),
    D = distance(lists:sort([ends(Value) || Value <- Sample]), Cdf, 0, N, 0.0),
    Root = math:sqrt(N),
    #{d => D, p => kolmogorov((Root + 0.12 + 0.11 / Root) * D)}.

ends({Low, High, Count}) -> {High, Low, Count};
ends({X, Count}) -> {X, X, Count};
ends(X) -> {X, X, 1}.

distance([], _, _, _, D) -> D;
distance([{High, Low, Count} | Rest], Cdf, Seen, N, D) ->
    Same = lists:takewhile(fun({H, L, _}) -> {H, L} =:= {High, Low} end, Rest),
    Now = lists:sum([Count | [C || {_, _, C} <- Same]]),
    Below = abs(Cdf(Low) - Seen / N),
    Above = abs(Cdf(High) - (Seen + Now) / N),
    distance(lists:nthtail(length(Same), Rest), Cdf, Seen + Now, N, lists:max([D, Below, Above])).

%% The complement of the limit distribution.
kolmogorov(L) when L < 0.2 -> 1.0;
kolmogorov(L) ->
    Sum = lists:sum([sign(K) * math:exp(-2 * K * K * L * L) || K <- lists:seq(1, 100), K * L < 19]),
    max(0.0, min(1.0, 2 * Sum)).

sign(K) when K rem 2 =:= 1 -> 1;
sign(_) -> -1.

-doc "`chi_square/3` for expected numbers that were not fitted to the observed ones.".
-spec chi_square([number()], [number()]) -> #{statistic := float(), degrees := pos_integer(), p := float()}.
chi_square(Observed, Expected) -> chi_square(Observed, Expected, 0).

-doc """
Pearson's test of observed numbers against expected ones; `Fitted` parameters were estimated from the observed ones.
Neighbours are merged until at least 5 are expected of each class, as the test demands. `p` is the probability
of a statistic as large as this.
""".
-spec chi_square([number()], [number()], non_neg_integer()) ->
    #{statistic := float(), degrees := pos_integer(), p := float()}.
chi_square(Observed, Expected, Fitted) ->
    Classes = classes(lists:zip(Observed, Expected), {0, 0}, []),
    Degrees = max(1, length(Classes) - 1 - Fitted),
    Statistic = lists:sum([(O - E) * (O - E) / E || {O, E} <- Classes]) / 1,
    #{statistic => Statistic, degrees => Degrees, p => witness_bench_special:gamma_q(Degrees / 2, Statistic / 2)}.

classes([{O, E} | Rest], {Os, Es}, Done) when E + Es >= 5 -> classes(Rest, {0, 0}, [{O + Os, E + Es} | Done]);
classes([{O, E} | Rest], {Os, Es}, Done) -> classes(Rest, {O + Os, E + Es}, Done);
classes([], {Os, Es}, [{O, E} | Done]) -> [{O + Os, E + Es} | Done];
classes([], {Os, Es}, []) when Es > 0 -> [{Os, Es}].

%% Growth

-doc "The polynomial of a degree with the least squares of distances. There must be more points, at different X.".
-spec polynomial([{X :: number(), Y :: number()}], non_neg_integer()) -> polynomial().
polynomial(Points, Degree) when length(Points) > Degree ->
    %% Solved for X in [-1, 1], where the powers remain comparable.
    {Low, High} = spread([X || {X, _} <- Points]),
    Middle = (Low + High) / 2,
    Half = case High > Low of true -> (High - Low) / 2; false -> 1.0 end,
    Scaled = [{(X - Middle) / Half, Y} || {X, Y} <- Points],
    Powers = lists:seq(0, Degree),
    Rows = [[lists:sum([power(X, I + J) || {X, _} <- Scaled]) || J <- Powers] ++
                [lists:sum([power(X, I) * Y || {X, Y} <- Scaled])] || I <- Powers],
    Coefficients = unscaled(solve(Rows), Middle, Half),
    Mean = mean([Y || {_, Y} <- Points]),
    Total = lists:sum([(Y - Mean) * (Y - Mean) || {_, Y} <- Points]),
    Left = lists:sum([(Y - V) * (Y - V) || {X, Y} <- Points, V <- [polynomial_value(Coefficients, X)]]),
    #{coefficients => Coefficients, r2 => case Total == 0 of true -> 1.0; false -> 1 - Left / Total end}.

power(_, 0) -> 1.0;
power(X, N) -> X * power(X, N - 1).

-doc "The value of a polynomial.".
-spec polynomial_value([float(), ...], number()) -> float().
polynomial_value(Coefficients, X) -> lists:foldr(fun(C, Value) -> C + Value * X end, 0.0, Coefficients) + 0.0.

%% Coefficients of (X - Middle) / Half as those of X, by Horner's rule on polynomials.
unscaled(Coefficients, Middle, Half) ->
    lists:foldr(fun(C, []) -> [C];
                   (C, Polynomial) ->
                        Times = [P / Half || P <- Polynomial],
                        [Constant | Rest] = add([0.0 | Times], [-Middle * P || P <- Times]),
                        [Constant + C | Rest]
                end, [], Coefficients).

add([A | As], [B | Bs]) -> [A + B | add(As, Bs)];
add(As, []) -> As.

%% Gauss, with the largest pivot.
solve([]) -> [];
solve(Rows) ->
    {_, Pivot} = lists:max([{abs(hd(Row)), Row} || Row <- Rows]),
    [P | Rest] = Pivot,
    true = abs(P) > 1.0e-12,
    Others = [begin
                  [F | Cells] = Row,
                  [C - F / P * R || {C, R} <- lists:zip(Cells, Rest)]
              end || Row <- lists:delete(Pivot, Rows)],
    Solved = solve(Others),
    {Factors, [Right]} = lists:split(length(Solved), Rest),
    [(Right - lists:sum([F * S || {F, S} <- lists:zip(Factors, Solved)])) / P | Solved].

-doc """
The polynomial of the lowest degree, at most `Most`, with a coefficient of determination of at least `R2`, otherwise that of
the degree `Most` (BenchCRV text, 4.2: 0.9). As many points as coefficients always fit exactly, so the degree stays two
below their number.
""".
-spec lowest_polynomial([{number(), number()}], non_neg_integer(), float()) -> polynomial().
lowest_polynomial(Points, Most, R2) -> lowest(Points, 1, max(1, min(Most, length(Points) - 2)), R2).

lowest(Points, Degree, Most, R2) ->
    case polynomial(Points, Degree) of
        #{r2 := Found} = Polynomial when Found >= R2; Degree >= Most -> Polynomial;
        _ -> lowest(Points, Degree + 1, Most, R2)
    end.

%% Intervals

-doc "The interval that has the mean with a confidence such as 0.95, by Student's t, for two or more values.".
-spec t_interval([number(), ...], float()) -> {Low :: float(), High :: float()}.
t_interval([_, _ | _] = Values, Confidence) when Confidence > 0, Confidence < 1 ->
    N = length(Values),
    Half = t_quantile(N - 1, (1 + Confidence) / 2) * deviation(Values) / math:sqrt(N),
    Mean = mean(Values),
    {Mean - Half, Mean + Half}.

%% The distribution function of t is monotonic: halving the interval finds its inverse.
t_quantile(Degrees, P) -> halve(0.0, widest(Degrees, P, 1.0), Degrees, P, 200).

widest(Degrees, P, T) ->
    case t_cdf(Degrees, T) < P of
        true -> widest(Degrees, P, T * 2);
        false -> T
    end.

halve(Low, High, _, _, 0) -> (Low + High) / 2;
halve(Low, High, Degrees, P, Left) ->
    Middle = (Low + High) / 2,
    case t_cdf(Degrees, Middle) < P of
        true -> halve(Middle, High, Degrees, P, Left - 1);
        false -> halve(Low, Middle, Degrees, P, Left - 1)
    end.

t_cdf(Degrees, T) -> 1 - witness_bench_special:beta_i(Degrees / 2, 0.5, Degrees / (Degrees + T * T)) / 2.

-doc """
The interval that has a statistic of a sample with a confidence such as 0.95, by 2,000 samples drawn from it
(percentile bootstrap). The same seed gives the same interval.
""".
-spec bootstrap([Value, ...], fun(([Value, ...]) -> number()), float(), Seed :: integer()) -> {number(), number()}.
bootstrap([_ | _] = Values, Statistic, Confidence, Seed) ->
    Drawn = list_to_tuple(Values),
    N = tuple_size(Drawn),
    {Results, _} = lists:mapfoldl(fun(_, State) ->
        {Sample, Next} = lists:mapfoldl(fun(_, S) ->
            {I, S1} = rand:uniform_s(N, S),
            {element(I, Drawn), S1}
        end, State, Values),
        {Statistic(Sample), Next}
    end, rand:seed_s(exsss, Seed), lists:seq(1, 2000)),
    {quantile((1 - Confidence) / 2, Results), quantile((1 + Confidence) / 2, Results)}.
