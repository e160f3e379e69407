-module(witness_bench_welford_tests).
-moduledoc "Mean and variance against exact arithmetic, and merged in any way.".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

nothing_test() ->
    W = witness_bench_welford:new(),
    ?assertEqual({0, 0.0, 0.0},
                 {witness_bench_welford:count(W), witness_bench_welford:mean(W), witness_bench_welford:deviation(W)}),
    One = witness_bench_welford:add(7, W),
    ?assertEqual({1, 7.0, 0.0},
                 {witness_bench_welford:count(One), witness_bench_welford:mean(One), witness_bench_welford:variance(One)}),
    ?assertEqual(One, witness_bench_welford:merge(One, W)),
    ?assertEqual(One, witness_bench_welford:merge(W, One)).

a_sum_of_squares_would_have_lost_this_test() ->
    W = witness_bench_welford:of_list([1.0e9 + 4, 1.0e9 + 7, 1.0e9 + 13, 1.0e9 + 16]),
    ?assertEqual(30.0, witness_bench_welford:variance(W)).

mean_and_variance_are_exact_test_() ->
    {timeout, 60, fun() -> ?assertEqual(true, proper:quickcheck(exact(), [quiet, {numtests, 1000}, {to_file, user}])) end}.

parts_are_the_whole_test_() ->
    {timeout, 60, fun() -> ?assertEqual(true, proper:quickcheck(merged(), [quiet, {numtests, 1000}, {to_file, user}])) end}.

weights_are_repetitions_test_() ->
    {timeout, 60, fun() -> ?assertEqual(true, proper:quickcheck(weighted(), [quiet, {numtests, 1000}, {to_file, user}])) end}.

%% Times in nanoseconds, some of them long.
duration() -> oneof([range(0, 1000), range(0, 1_000_000_000_000)]).

exact() ->
    ?FORALL(Values, non_empty(list(duration())), agrees(Values, witness_bench_welford:of_list(Values))).

merged() ->
    ?FORALL(Parts, non_empty(list(list(duration()))),
            ?IMPLIES(lists:append(Parts) =/= [],
                     agrees(lists:append(Parts),
                            witness_bench_welford:merge([witness_bench_welford:of_list(Part) || Part <- Parts])))).

weighted() ->
    ?FORALL(Weighted, non_empty(list({duration(), range(1, 20)})),
            agrees(lists:append([lists:duplicate(N, Value) || {Value, N} <- Weighted]),
                   lists:foldl(fun({Value, N}, W) -> witness_bench_welford:add(Value, N, W) end,
                               witness_bench_welford:new(), Weighted))).

%% In integers: N * variance * (N - 1) is N times the sum of the squares less the square of the sum.
agrees(Values, W) ->
    N = length(Values),
    Sum = lists:sum(Values),
    Squares = N * lists:sum([V * V || V <- Values]) - Sum * Sum,
    witness_bench_welford:count(W) =:= N
        andalso near(Sum / N, witness_bench_welford:mean(W))
        andalso (N =:= 1 orelse near(Squares / (N * (N - 1)), witness_bench_welford:variance(W), Sum / N)).

near(A, B) -> abs(A - B) =< 1.0e-9 * max(1.0, abs(A)).

%% What is left of a difference of large numbers may be small.
near(A, B, Mean) -> abs(A - B) =< 1.0e-9 * max(1.0, abs(A)) + 1.0e-12 * Mean * Mean.
