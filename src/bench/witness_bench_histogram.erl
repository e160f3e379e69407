-module(witness_bench_histogram).
-moduledoc """
Counts of times by their length, which any process adds to at any time without a message: percentiles with an error below
one per cent, from a nanosecond to two hours, in a fixed amount of memory (20 KB for each scheduler).

Times below 128 have a counter each; of what is longer, each doubling has 64 counters of the same width. What is told of
a counter is its middle, so the error is at most half of a 64th; but never less than the shortest time, nor more than the
longest, which are kept as they are.
""".

-export([new/0, add/2, count/1, counts/1, most/1, percentiles/2]).

-export_type([histogram/0]).

-opaque histogram() :: {counters:counters_ref(), Extremes :: atomics:atomics_ref()}.

%% Counters of a doubling, as a power of two, and the doublings beyond the first ones, up to 2^43 nanoseconds.
-define(BITS, 6).
-define(WIDTH, (1 bsl ?BITS)).
-define(DOUBLINGS, 36).
-define(SIZE, ((?DOUBLINGS + 2) * ?WIDTH)).
-define(MOST, ((1 bsl (?DOUBLINGS + ?BITS + 1)) - 1)).
%% The shortest time and the longest one.
-define(SHORTEST, 1).
-define(LONGEST, 2).
-define(NONE, 16#7fffffffffffffff).

-doc "An empty one. It lasts as long as some process knows it.".
-spec new() -> histogram().
new() ->
    Extremes = atomics:new(?LONGEST, []),
    ok = atomics:put(Extremes, ?SHORTEST, ?NONE),
    {counters:new(?SIZE, [write_concurrency]), Extremes}.

-doc """
One more time, in nanoseconds. What is negative counts as 0, what is longer than two hours as that; but the longest time
(`most/1`) stays what it is.
""".
-spec add(integer(), histogram()) -> ok.
add(Given, {Counters, Extremes}) ->
    Time = max(0, Given),
    %% First, so that a time that is counted is between them.
    ok = extreme(?LONGEST, Time, Extremes),
    ok = extreme(?SHORTEST, Time, Extremes),
    counters:add(Counters, 1 + index(min(?MOST, Time)), 1).

%% Another process may have changed it meanwhile.
extreme(Index, Time, Extremes) ->
    case atomics:get(Extremes, Index) of
        Before when Index =:= ?LONGEST, Before >= Time; Index =:= ?SHORTEST, Before =< Time -> ok;
        Before ->
            _ = atomics:compare_exchange(Extremes, Index, Before, Time),
            extreme(Index, Time, Extremes)
    end.

index(Time) when Time < 2 * ?WIDTH -> Time;
index(Time) ->
    %% Exact: the logarithm of 2^43 - 1 is further from 43 than a float can be wrong.
    Shift = trunc(math:log2(Time)) - ?BITS,
    Shift * ?WIDTH + (Time bsr Shift).

%% The first and the last time that a counter stands for.
bounds(Index) when Index < 2 * ?WIDTH -> {Index, Index};
bounds(Index) ->
    Shift = Index div ?WIDTH - 1,
    First = (Index - Shift * ?WIDTH) bsl Shift,
    {First, First + (1 bsl Shift) - 1}.

-doc "How many times it holds. What is added meanwhile may or may not be there.".
-spec count(histogram()) -> non_neg_integer().
count({Counters, _}) -> count(?SIZE, 0, Counters).

count(0, Sum, _) -> Sum;
count(I, Sum, Counters) -> count(I - 1, Sum + counters:get(Counters, I), Counters).

-doc "How many there are from a first to a last time, both included. Empty counters are left out.".
-spec counts(histogram()) -> [{First :: non_neg_integer(), Last :: non_neg_integer(), Count :: pos_integer()}].
counts({Counters, _}) ->
    [{First, Last, N} || I <- lists:seq(1, ?SIZE), N <- [counters:get(Counters, I)], N > 0, {First, Last} <- [bounds(I - 1)]].

-doc "The longest time, in nanoseconds; 0 if there are none.".
-spec most(histogram()) -> non_neg_integer().
most({_, Extremes}) -> atomics:get(Extremes, ?LONGEST).

-doc "The times that these parts of all times do not exceed (`[0.5]`: the median), in nanoseconds; 0 if there are none.".
-spec percentiles([float()], histogram()) -> [non_neg_integer()].
percentiles(Parts, Histogram = {_, Extremes}) ->
    Counts = counts(Histogram),
    All = lists:sum([N || {_, _, N} <- Counts]),
    Shortest = atomics:get(Extremes, ?SHORTEST),
    [min(most(Histogram), max(Shortest, at(max(1, ceil(Part * All)), Counts))) || Part <- Parts].

at(_, []) -> 0;
at(Rank, [{_, _, N} | Counts]) when Rank > N, Counts =/= [] -> at(Rank - N, Counts);
at(_, [{First, Last, _} | _]) -> (First + Last) div 2.
