-module(witness_bench_shape_tests).
-moduledoc """
The load shapes against the distributions of the papers, by goodness of fit. Seeds are fixed, so what fits once always
does.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(N, 20_000).
-define(T, 100).

%% The papers' formulas, on their timeline.
distributions() ->
    M = ?T / 2,
    P = 100,
    [{steady, {uniform, 0, ?T}},
     {{pulse, 25}, {normal, ?T / 2, 25}},
     {{burst, 100}, {log_normal, math:log(M * M / math:sqrt(P * P + M * M)), math:sqrt(math:log(1 + P * P / (M * M)))}}].

shapes_fit_their_distribution_test_() ->
    [{lists:flatten(io_lib:format("~p, seed ~w", [Shape, Seed])), ?_assert(fit(Shape, cut(Distribution), Seed) > 0.01)}
     || {Shape, Distribution} <- distributions(), Seed <- lists:seq(1, 5)].

%% Were the fit too good, arrivals would not be random; were it bad in general, some of many would show it.
fits_are_themselves_random_test_() ->
    [{lists:flatten(io_lib:format("~p", [Shape])), fun() ->
        Ps = [fit(Shape, cut(Distribution), Seed) || Seed <- lists:seq(1, 60)],
        #{p := P} = witness_bench_statistics:kolmogorov_smirnov(Ps, {uniform, 0, 1}),
        ?assert(P > 0.01)
    end} || {Shape, Distribution} <- distributions()].

shapes_do_not_fit_each_other_test() ->
    [?assert(fit(Shape, cut(Distribution), 1) < 1.0e-6)
     || {Shape, _} <- distributions(), {Other, Distribution} <- distributions(), Shape =/= Other].

%% Shares of the units of time, of what lies within [0, t].
cut(Distribution) ->
    Cdf = [witness_bench_statistics:cdf(Distribution, X) || X <- lists:seq(0, ?T)],
    Whole = lists:last(Cdf) - hd(Cdf),
    [(B - A) / Whole || {A, B} <- lists:zip(lists:droplast(Cdf), tl(Cdf))].

fit(Shape, Shares, Seed) ->
    #{p := P} = witness_bench_statistics:chi_square(order(Shape, ?N, ?T, Seed), [S * ?N || S <- Shares]),
    P.

order(Shape, N, T, Seed) -> witness_bench_shape:order(Shape, N, T, witness_bench_random:stream(shape, Seed)).

%% What falls into a unit of a steady load is Poisson distributed.
a_steady_load_is_a_poisson_process_test() ->
    T = 2000,
    Rate = 10,
    Counts = order(steady, T * Rate, T, 7),
    Classes = lists:seq(0, 30),
    Observed = [length([C || C <- Counts, C =:= Class]) || Class <- Classes],
    Below = [0.0 | [witness_bench_statistics:cdf({poisson, Rate}, Class) || Class <- Classes]],
    Expected = [T * (B - A) || {A, B} <- lists:zip(lists:droplast(Below), tl(Below))],
    #{p := P} = witness_bench_statistics:chi_square(Observed, Expected),
    ?assert(P > 0.01).

a_ramp_rises_as_it_says_test() ->
    Shares = [(2 * I - 1) / (?T * ?T) || I <- lists:seq(1, ?T)],
    ?assert(fit({ramp, 0, 1}, Shares, 1) > 0.01),
    ?assertEqual([0.125, 0.375, 0.375, 0.125], [S / 1 || S <- symmetric(witness_bench_shape:weights({ramp, 1, 3}, 2))]),
    ?assertEqual(lists:reverse(witness_bench_shape:weights({ramp, 0, 5}, 10)), witness_bench_shape:weights({ramp, 5, 0}, 10)).

%% (1 + 2) / 2 : (2 + 3) / 2, beside its mirror.
symmetric([A, B]) -> [A * 0.125 / 0.375, B * 0.375 / 0.625, B * 0.375 / 0.625, A * 0.125 / 0.375].

%% A spread of 25 on 100 units is t/4 on any timeline, a pinch of 100 is t.
a_shape_is_the_same_on_every_timeline_test() ->
    [begin
        Coarse = witness_bench_shape:weights(Shape, 10),
        Fine = witness_bench_shape:weights(Shape, 1000),
        [?assert(abs(C - F) < 1.0e-9) || {C, F} <- lists:zip(Coarse, sums(Fine, 100))]
     end || {Shape, _} <- distributions()].

sums([], _) -> [];
sums(List, N) ->
    {Some, Rest} = lists:split(N, List),
    [lists:sum(Some) | sums(Rest, N)].

a_file_is_taken_as_it_is_or_scaled_test() ->
    Counts = [3, 0, 9, 0],
    ?assertEqual(Counts, order({counts, Counts}, 12, 4, 1)),
    Scaled = order({counts, Counts}, 12_000, 4, 1),
    ?assertMatch([A, 0, B, 0] when A + B =:= 12_000, Scaled),
    #{p := P} = witness_bench_statistics:chi_square([hd(Scaled), lists:nth(3, Scaled)], [3000, 9000]),
    ?assert(P > 0.01).

every_order_has_the_members_and_the_units_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_order(), [quiet, {numtests, 500}, {to_file, user}]))}.

prop_order() ->
    ?FORALL({Shape, N, T, Seed}, {shape(), range(0, 300), range(1, 40), range(0, 1000)},
            begin
                Units = case Shape of {counts, Counts} -> length(Counts); _ -> T end,
                Order = order(Shape, N, Units, Seed),
                Weights = witness_bench_shape:weights(Shape, Units),
                length(Order) =:= Units andalso lists:sum(Order) =:= N andalso lists:all(fun(C) -> C >= 0 end, Order)
                    andalso abs(lists:sum(Weights) - 1) < 1.0e-9 andalso Order =:= order(Shape, N, Units, Seed)
            end).

shape() ->
    oneof([steady, {pulse, float(0.1, 1000.0)}, {burst, float(0.1, 1000.0)}, {ramp, range(0, 9), range(1, 9)},
           ?LET({A, B}, {list(range(0, 20)), list(range(0, 20))}, {counts, A ++ [1 | B]})]).

csv_test_() ->
    [?_assertEqual({ok, [3, 0, 9]}, witness_bench_shape:csv(~"3\n0\n9\n")),
     ?_assertEqual({ok, [3, 0, 9]}, witness_bench_shape:csv(~"second, arrivals\r\n0, 3\r\n2, 9\r\n\r\n")),
     ?_assertEqual({error, 2, ~"ARRIVALS or UNIT,ARRIVALS is expected, whole numbers of at most 11 digits"},
                   witness_bench_shape:csv(~"1\nx\n")),
     ?_assertEqual({error, 1, ~"ARRIVALS or UNIT,ARRIVALS is expected, whole numbers of at most 11 digits"},
                   witness_bench_shape:csv(~"1,2,3\n")),
     ?_assertEqual({ok, [5]}, witness_bench_shape:csv(<<16#FEFF/utf8, "\"arrivals\"\n5\n">>)),
     %% What is wrong is no header.
     [?_assertMatch({error, 1, _}, witness_bench_shape:csv(Text))
      || Text <- [~"-5\n3\n", ~"99999999999999\n3\n", ~"1.5\n3\n", ~"x,3\n5\n", <<"5\n3\n"/utf16-little>>]],
     ?_assertEqual({error, 0, ~"a text in UTF-8 is expected"}, witness_bench_shape:csv(<<16#FEFF/utf16, "5\n"/utf16>>)),
     ?_assertMatch({error, 2, _}, witness_bench_shape:csv(~"1\n-2\n")),
     ?_assertMatch({error, 2, _}, witness_bench_shape:csv(~"1\n1.5\n")),
     ?_assertEqual({error, 3, ~"a unit of time after that of the line before is expected"},
                   witness_bench_shape:csv(~"u,a\n4,1\n4,1\n")),
     ?_assertMatch({error, 1, ~"a unit of time below 1000000 is expected"}, witness_bench_shape:csv(~"99999999,1\n")),
     ?_assertEqual({error, 0, ~"at least one arrival is expected"}, witness_bench_shape:csv(~"")),
     ?_assertEqual({error, 0, ~"at least one arrival is expected"}, witness_bench_shape:csv(~"0\n0\n"))].

any_text_is_read_or_refused_test() ->
    ?assert(proper:quickcheck(?FORALL(Text, text(), case witness_bench_shape:csv(Text) of
        {ok, Counts} -> lists:all(fun(C) -> is_integer(C) andalso C >= 0 end, Counts);
        {error, Line, Why} -> is_integer(Line) andalso is_binary(Why)
    end), [quiet, {numtests, 1000}, {to_file, user}])).

text() -> ?LET(Parts, list(oneof([~"1", ~"20", ~",", ~"\n", ~"\r\n", ~" ", ~"x", ~"-", binary(2)])), iolist_to_binary(Parts)).
