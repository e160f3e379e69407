-module(witness_bench_histogram_tests).
-moduledoc "Percentiles against those of the sorted times.".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

empty_test() ->
    H = witness_bench_histogram:new(),
    ?assertEqual({0, [0, 0]}, {witness_bench_histogram:count(H), witness_bench_histogram:percentiles([0.5, 0.99], H)}).

every_power_of_two_is_within_a_per_cent_test() ->
    Times = lists:usort([max(0, (1 bsl Shift) + Off) || Shift <- lists:seq(0, 42), Off <- [-2, -1, 0, 1, 2]]),
    lists:foreach(fun(Time) -> ?assert(within(Time, hd(of_times([1.0], [Time])))) end, Times).

what_is_out_of_range_counts_at_its_end_test() ->
    ?assertEqual([0], of_times([0.5], [-5])),
    [Low, Most] = of_times([0.25, 0.75], [0, 1 bsl 60]),
    ?assertEqual(0, Low),
    ?assert(within(1 bsl 43, Most)).

%% Where the middle of a counter is longer than all times that it has counted, or shorter.
no_percentile_is_beyond_the_extremes_test() ->
    ?assertEqual(0, witness_bench_histogram:most(witness_bench_histogram:new())),
    First = 1 bsl 24,
    Last = First + (1 bsl 18) - 1,
    ?assertEqual([First, First], of_times([0.5, 1.0], [First])),
    ?assertEqual([Last, Last], of_times([0.5, 1.0], [Last])),
    ?assertEqual([(First + Last) div 2], of_times([0.5], [First, Last])).

percentiles_are_those_of_the_sorted_times_test_() ->
    {timeout, 60, fun() -> ?assertEqual(true, proper:quickcheck(sorted(), [quiet, {numtests, 300}, {to_file, user}])) end}.

sorted() ->
    ?FORALL({Times, Part}, {non_empty(list(duration())), float(0.0, 1.0)},
            begin
                Exact = lists:nth(max(1, ceil(Part * length(Times))), lists:sort(Times)),
                Told = hd(of_times([Part], Times)),
                within(Exact, Told) andalso Told >= lists:min(Times) andalso Told =< lists:max(Times)
            end).

duration() -> ?LET(Bits, range(0, 42), range(0, 1 bsl Bits)).

of_times(Parts, Times) ->
    H = witness_bench_histogram:new(),
    lists:foreach(fun(T) -> witness_bench_histogram:add(T, H) end, Times),
    ?assertEqual(length(Times), witness_bench_histogram:count(H)),
    witness_bench_histogram:percentiles(Parts, H).

within(Exact, Told) -> abs(Exact - Told) =< Exact * 0.01.
