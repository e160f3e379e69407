-module(witness_bench_welford).
-moduledoc """
Mean and variance of numbers that come one at a time, by Welford's algorithm: no sum grows beyond the precision of a
float, and only three numbers are kept. The results of several processes are merged, each with its own weight (the
extension that the BenchCRV text uses for the mean idle time, section 4.2, after West and Chan).

```erlang
1> A = witness_bench_welford:of_list([2, 4]), B = witness_bench_welford:of_list([4, 4, 5, 5, 7, 9]).
2> witness_bench_welford:mean(witness_bench_welford:merge(A, B)).
5.0
```
""".

-export([new/0, of_list/1, add/2, add/3, merge/2, merge/1, count/1, mean/1, variance/1, deviation/1]).

-export_type([welford/0]).

-doc "The sum of the weights, the mean, and the weighted sum of the squared distances from it.".
-type welford() :: {Weight :: number(), Mean :: float(), Squares :: float()}.

-doc "No values.".
-spec new() -> welford().
new() -> {0, 0.0, 0.0}.

-spec of_list([number()]) -> welford().
of_list(Values) -> lists:foldl(fun add/2, new(), Values).

-doc "Adds a value.".
-spec add(number(), welford()) -> welford().
add(Value, {N, Mean, Squares}) ->
    N1 = N + 1,
    Distance = Value - Mean,
    Mean1 = Mean + Distance / N1,
    {N1, Mean1, Squares + Distance * (Value - Mean1)}.

-doc "Adds a value with a weight, as if it had been added so many times.".
-spec add(number(), Weight :: number(), welford()) -> welford().
add(_, Weight, W) when Weight == 0 -> W;
add(Value, Weight, W) -> merge({Weight, float(Value), 0.0}, W).

-doc "The result for the values of both.".
-spec merge(welford(), welford()) -> welford().
merge(A, {N, _, _}) when N == 0 -> A;
merge({N, _, _}, B) when N == 0 -> B;
merge({N, MeanN, SquaresN}, {M, MeanM, SquaresM}) ->
    All = N + M,
    Distance = MeanM - MeanN,
    {All, MeanN + Distance * M / All, SquaresN + SquaresM + Distance * Distance * N * M / All}.

-spec merge([welford()]) -> welford().
merge(Many) -> lists:foldl(fun merge/2, new(), Many).

-doc "The number of values, or the sum of their weights.".
-spec count(welford()) -> number().
count({N, _, _}) -> N.

-doc "The mean; 0.0 if there are no values.".
-spec mean(welford()) -> float().
mean({_, Mean, _}) -> Mean.

-doc "The variance of a sample (of n - 1); 0.0 for fewer than two values.".
-spec variance(welford()) -> float().
variance({N, _, Squares}) when N > 1 -> max(0.0, Squares / (N - 1));
variance(_) -> 0.0.

-doc "The standard deviation of a sample.".
-spec deviation(welford()) -> float().
deviation(W) -> math:sqrt(variance(W)).
