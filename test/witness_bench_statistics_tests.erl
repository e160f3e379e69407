-module(witness_bench_statistics_tests).
-moduledoc """
Statistics against closed forms and the tables that textbooks print, and fits against samples that were drawn from what
they should find.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(witness_bench_statistics, [mean/1, deviation/1, median/1, quantile/2, variation/1, fit/2, cdf/2, polynomial/2]).

-define(NEAR(Expected, Actual), near(Expected, Actual, 1.0e-9, ?LINE)).
-define(NEAR(Expected, Actual, Tolerance), near(Expected, Actual, Tolerance, ?LINE)).
-define(EULER, 0.57721566490153286).

near(Expected, Actual, Tolerance, Line) ->
    abs(Expected - Actual) =< Tolerance * max(1, abs(Expected)) orelse error({not_near, Line, Expected, Actual}).

special_functions_have_their_closed_forms_test() ->
    ?NEAR(math:log(math:sqrt(math:pi())), witness_bench_special:log_gamma(0.5)),
    ?NEAR(math:log(362880), witness_bench_special:log_gamma(10)),
    ?NEAR(math:log(3 * math:sqrt(math:pi()) / 4), witness_bench_special:log_gamma(2.5)),
    ?NEAR(math:log(math:pi() * math:sqrt(2)), witness_bench_special:log_gamma(0.25) + witness_bench_special:log_gamma(0.75)),
    ?NEAR(-?EULER, witness_bench_special:digamma(1)),
    ?NEAR(-?EULER - 2 * math:log(2), witness_bench_special:digamma(0.5)),
    ?NEAR(math:pi() * math:pi() / 6, witness_bench_special:trigamma(1)),
    ?NEAR(math:pi() * math:pi() / 2, witness_bench_special:trigamma(0.5)),
    [begin
         ?NEAR(1 - math:exp(-X), witness_bench_special:gamma_p(1, X)),
         ?NEAR(math:erf(math:sqrt(X)), witness_bench_special:gamma_p(0.5, X)),
         ?NEAR(math:exp(-X) * (1 + X + X * X / 2), witness_bench_special:gamma_q(3, X))
     end || X <- [0.01, 0.5, 1, 1.9, 2.1, 5, 20]],
    [begin
         ?NEAR(X, witness_bench_special:beta_i(1, 1, X)),
         ?NEAR(X * X * (3 - 2 * X), witness_bench_special:beta_i(2, 2, X)),
         ?NEAR(2 / math:pi() * math:asin(math:sqrt(X)), witness_bench_special:beta_i(0.5, 0.5, X))
     end || X <- [0.001, 0.2, 0.5, 0.9, 0.999]].

samples_are_summed_up_test() ->
    Values = [2, 4, 4, 4, 5, 5, 7, 9],
    ?NEAR(5, mean(Values)),
    ?NEAR(math:sqrt(32 / 7), deviation(Values)),
    ?NEAR(math:sqrt(32 / 7) / 5 * 100, variation(Values)),
    ?NEAR(4.5, median(Values)),
    ?NEAR(4, quantile(0.25, Values)),
    ?NEAR(5.5, quantile(0.75, Values)),
    ?assertEqual({2, 9}, witness_bench_statistics:spread(Values)),
    ?assertEqual([7, 0.0, 0.0, 7], [median([7]), deviation([7]), variation([0, 0]), quantile(1.0, [7])]).

correlations_have_their_values_test() ->
    Correlation = fun witness_bench_statistics:correlation/1,
    ?NEAR(1, Correlation([{1, 5}, {2, 7}, {3, 9}])),
    ?NEAR(-1, Correlation([{1, 9}, {2, 7}, {3, 5}])),
    ?NEAR(0.5, Correlation([{1, 1}, {2, 3}, {3, 2}])),
    ?assertEqual(0.0, Correlation([{1, 3}, {2, 3}])).

%% A value with its count is the value so many times, a bucket its middle.
counted_values_are_as_many_test() ->
    Values = [1, 1, 1, 3, 3, 8],
    [begin
         ?assertEqual(6, witness_bench_statistics:count(Counted)),
         [?NEAR(Function(Values), Function(Counted)) || Function <- [fun witness_bench_statistics:median/1,
                                                                     fun witness_bench_statistics:mean/1,
                                                                     fun witness_bench_statistics:deviation/1,
                                                                     fun(S) -> quantile(0.9, S) end]],
         [begin
              {Family, A, B} = fit(Family, Values),
              {Family, C, D} = fit(Family, Counted),
              ?NEAR(A, C),
              ?NEAR(B, D)
          end || Family <- [normal, log_normal, gamma]]
     end || Counted <- [[{8, 1}, {1, 3}, {3, 2}], [{0, 2, 3}, {2, 4, 2}, {7, 9, 1}]]].

distributions_have_the_values_of_the_tables_test() ->
    ?NEAR(0.975, cdf({normal, 0, 1}, 1.959963984540054)),
    ?NEAR(0.8413447460685429, cdf({normal, 10, 2}, 12)),
    ?NEAR(0.5, cdf({log_normal, 1, 0.3}, math:exp(1))),
    ?NEAR(1 - math:exp(-2.5), cdf({gamma, 1, 2}, 5)),
    ?NEAR(math:exp(-2) * (1 + 2 + 2), cdf({poisson, 2}, 2)),
    ?NEAR(math:exp(-2) * (1 + 2 + 2), cdf({poisson, 2}, 2.7)),
    ?NEAR(0.25, cdf({uniform, 1, 5}, 2)),
    ?assertEqual([0.0, 0.0, 0.0, 1.0], [cdf({log_normal, 0, 1}, -1), cdf({gamma, 2, 1}, 0), cdf({poisson, 3}, -1),
                                       cdf({uniform, 0, 1}, 2)]).

%% The 5 % and 1 % points of chi squared.
chi_square_has_the_values_of_the_tables_test() ->
    [?NEAR(P, witness_bench_special:gamma_q(Degrees / 2, Statistic / 2), 1.0e-4)
     || {Degrees, Statistic, P} <- [{1, 3.841, 0.05}, {5, 11.070, 0.05}, {10, 18.307, 0.05}, {5, 15.086, 0.01},
                                    {100, 124.342, 0.05}]],
    %% Mendel's peas: 315, 101, 108 and 32 seeds where 9 : 3 : 3 : 1 is expected.
    #{statistic := Statistic, degrees := 3, p := P} =
        witness_bench_statistics:chi_square([315, 101, 108, 32], [556 * Share / 16 || Share <- [9, 3, 3, 1]]),
    ?NEAR(0.470, Statistic, 1.0e-3),
    ?NEAR(0.9254, P, 1.0e-3).

%% Of the last four, of 4, 2, 2 and 2, no two and two make 5: they become one. Two parameters were fitted.
small_classes_are_put_together_test() ->
    #{statistic := Statistic, degrees := Degrees} =
        witness_bench_statistics:chi_square([12, 8, 10, 10, 3, 3, 4, 0], [10, 10, 10, 10, 4, 2, 2, 2], 2),
    ?assertEqual(5 - 1 - 2, Degrees),
    ?NEAR(0.4 + 0.4, Statistic).

kolmogorov_smirnov_has_the_values_of_the_tables_test() ->
    %% The critical distances of 100 values at 5 % and at 1 %.
    [begin
         Shifted = [(I - 0.5) / 100 - D + 0.005 || I <- lists:seq(1, 100)],
         #{d := Found, p := Probability} = witness_bench_statistics:kolmogorov_smirnov(Shifted, {uniform, 0, 1}),
         ?NEAR(D, Found),
         ?NEAR(P, Probability, 0.002)
     end || {D, P} <- [{0.13403, 0.05}, {0.16081, 0.01}]],
    %% The distance counts on both sides of a step.
    ?assertMatch(#{d := 0.8}, witness_bench_statistics:kolmogorov_smirnov([0.8], {uniform, 0, 1})),
    ?assertMatch(#{d := 0.8}, witness_bench_statistics:kolmogorov_smirnov([0.2], {uniform, 0, 1})),
    %% One value in the middle is half away from everything.
    ?assertMatch(#{d := 0.5}, witness_bench_statistics:kolmogorov_smirnov([0.5], {uniform, 0, 1})),
    ?assertMatch(#{d := 0.25}, witness_bench_statistics:kolmogorov_smirnov([{0.25, 2}, {0.75, 2}], {uniform, 0, 1})),
    ?assertMatch(#{d := +0.0}, witness_bench_statistics:kolmogorov_smirnov([{0, 0.25, 1}, {0.25, 1, 3}], {uniform, 0, 1})).

polynomials_are_found_again_test() ->
    ?assertMatch(#{r2 := 1.0}, polynomial([{1, 4}, {2, 4}], 0)),
    #{coefficients := [A, B], r2 := R2} = polynomial([{1, 1}, {2, 3}, {3, 2}], 1),
    [?NEAR(E, F) || {E, F} <- [{1, A}, {0.5, B}, {0.25, R2}]],
    Cubic = [3.0, -2.0, 0.5, 1.0e-3],
    #{coefficients := Found, r2 := One} =
        polynomial([{X, witness_bench_statistics:polynomial_value(Cubic, X)} || X <- lists:seq(10, 100, 10)], 3),
    [?NEAR(E, F, 1.0e-7) || {E, F} <- lists:zip(Cubic, Found)],
    ?NEAR(1, One).

the_lowest_degree_that_fits_is_taken_test() ->
    Degree = fun(Function, Most) ->
        #{coefficients := Coefficients} =
            witness_bench_statistics:lowest_polynomial([{X, Function(X)} || X <- lists:seq(-5, 5)], Most, 0.9),
        length(Coefficients) - 1
    end,
    ?assertEqual([1, 2, 3, 1], [Degree(fun(X) -> 2 * X + 1 end, 3), Degree(fun(X) -> X * X end, 3),
                                Degree(fun(X) -> X * X * X - 15 * X end, 4), Degree(fun(X) -> X * X end, 1)]),
    %% Three points lie on every parabola.
    #{coefficients := [_, _]} = witness_bench_statistics:lowest_polynomial([{1, 1}, {2, 5}, {3, 1}], 3, 0.9).

%% Student's table: 97.5 % with 1, 2, 8 and 30 degrees of freedom.
intervals_have_the_values_of_the_tables_test() ->
    [begin
         N = Degrees + 1,
         Values = lists:seq(1, N),
         {Low, High} = witness_bench_statistics:t_interval(Values, 0.95),
         ?NEAR(T, (High - Low) / 2 / (deviation(Values) / math:sqrt(N)), 1.0e-3),
         ?NEAR(mean(Values), (High + Low) / 2)
     end || {Degrees, T} <- [{1, 12.706}, {2, 4.303}, {8, 2.306}, {30, 2.042}]].

%% The bootstrap of a mean is about as wide as the interval of Student.
bootstrap_is_like_the_t_interval_test() ->
    Values = drawn({normal, 100, 15}, 200, 4),
    {Low, High} = witness_bench_statistics:bootstrap(Values, fun witness_bench_statistics:mean/1, 0.95, 1),
    {TLow, THigh} = witness_bench_statistics:t_interval(Values, 0.95),
    ?NEAR(TLow, Low, 0.01),
    ?NEAR(THigh, High, 0.01),
    ?assertEqual({Low, High}, witness_bench_statistics:bootstrap(Values, fun witness_bench_statistics:mean/1, 0.95, 1)).

%% The parameters are within five standard errors of the true ones, and no other family fits better than by chance.
fits_find_the_parameters_test_() ->
    {timeout, 60, fun() -> ?assert(proper:quickcheck(fits_find_the_parameters(), [{numtests, 40}, {to_file, user}])) end}.

fits_find_the_parameters() ->
    N = 2000,
    ?FORALL({{Family, A, B} = Distribution, Seed}, {distribution(), non_neg_integer()},
            begin
                Sample = drawn(Distribution, N, Seed),
                {Family, FoundA, FoundB} = Fitted = fit(Family, Sample),
                {ErrorA, ErrorB} = errors(Distribution, N),
                #{p := P} = witness_bench_statistics:kolmogorov_smirnov(Sample, Fitted),
                ?WHENFAIL(io:format("~p: ~p, p = ~p~n", [Distribution, Fitted, P]),
                          abs(FoundA - A) =< 5 * ErrorA andalso abs(FoundB - B) =< 5 * ErrorB andalso P > 1.0e-4)
            end).

distribution() ->
    oneof([{normal, float(-100.0, 100.0), float(0.1, 50.0)}, {log_normal, float(-3.0, 10.0), float(0.1, 2.0)},
           {gamma, float(0.5, 20.0), float(0.01, 100.0)}]).

%% Asymptotic standard errors, from Fisher's information.
errors({gamma, Shape, Scale}, N) ->
    Trigamma = witness_bench_special:trigamma(Shape),
    Determinant = Shape * Trigamma - 1,
    {math:sqrt(Shape / Determinant / N), Scale * math:sqrt(Trigamma / Determinant / N)};
errors({_, _, Deviation}, N) -> {Deviation / math:sqrt(N), Deviation / math:sqrt(2 * N)}.

a_wrong_distribution_is_told_test() ->
    Sample = drawn({gamma, 1.0, 5.0}, 2000, 7),
    Distance = fun(Family) -> maps:get(d, witness_bench_statistics:kolmogorov_smirnov(Sample, fit(Family, Sample))) end,
    ?assert(Distance(gamma) < Distance(log_normal)),
    ?assert(Distance(gamma) < Distance(normal)),
    #{p := P} = witness_bench_statistics:kolmogorov_smirnov(Sample, fit(normal, Sample)),
    ?assert(P < 1.0e-6).

drawn(Distribution, N, Seed) ->
    {Sample, _} = lists:mapfoldl(fun(_, State) -> draw(Distribution, State) end, rand:seed_s(exsss, Seed), lists:seq(1, N)),
    Sample.

draw({normal, Mean, Deviation}, State) ->
    {Z, Next} = rand:normal_s(State),
    {Mean + Deviation * Z, Next};
draw({log_normal, Mean, Deviation}, State) ->
    {X, Next} = draw({normal, Mean, Deviation}, State),
    {math:exp(X), Next};
draw({gamma, Shape, Scale}, State) when Shape < 1 ->
    {X, Next} = draw({gamma, Shape + 1, Scale}, State),
    {U, Last} = rand:uniform_real_s(Next),
    {X * math:pow(U, 1 / Shape), Last};
draw({gamma, Shape, Scale} = Distribution, State) ->
    %% Marsaglia and Tsang.
    D = Shape - 1 / 3,
    {Z, State1} = rand:normal_s(State),
    {U, State2} = rand:uniform_real_s(State1),
    case 1 + Z / math:sqrt(9 * D) of
        Root when Root > 0 ->
            V = Root * Root * Root,
            case math:log(U) < Z * Z / 2 + D - D * V + D * math:log(V) of
                true -> {D * V * Scale, State2};
                false -> draw(Distribution, State2)
            end;
        _ -> draw(Distribution, State2)
    end.
