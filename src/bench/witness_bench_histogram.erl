-module(witness_bench_histogram).
-moduledoc """
Counts times by their length. Any process can add to it at any time without a message. It has percentiles with an error below
one per cent, from a nanosecond to two hours, in a fixed amount of memory (20 KB for each scheduler).

Each time below 128 has a counter of its own; above, each doubling has 64 counters of the same width. The value of
a counter is its middle, so the error is at most half of a 64th. It is never less than the shortest time, nor more than the
longest, which are kept exactly.
""".

-export([new/0, add/2, count/1, counts/1, most/1, percentiles/2]).

-export_type([histogram/0]).

-opaque histogram() :: {counters:counters_ref(), Extremes :: atomics:atomics_ref()}.

%% Counters of a doubling, as a power of two, and the doublings above the first ones, up to 2^43 nanoseconds.
-define(BITS, 6).
-define(WIDTH, (1 bsl ?BITS)).
-define(DOUBLINGS, 36).
-define(SIZE, ((?DOUBLINGS + 2) * ?WIDTH)).
-define(MAX_NS, ((1 bsl (?DOUBLINGS + ?BITS + 1)) - 1)).
%% The shortest time and the longest one.
-define(SHORTEST, 1).
-define(LONGEST, 2).
-define(NONE, 16#7fffffffffffffff).

-doc "An empty one. It lasts as long as a process has a reference to it.".
-spec new() -> histogram().
new() ->
    Extremes = atomics:new(?LONGEST, []),
    ok = atomics:put(Extremes, ?SHORTEST, ?NONE),
    {counters:new(?SIZE, [write_concurrency]), Extremes}.

-doc """
Adds a time, in nanoseconds. Negative times count as 0, and times above two hours count as two hours; but the longest time
(`most/1`) is kept exactly.
""".
-spec add(integer(), histogram()) -> ok.
add(Given, {Counters, Extremes}) ->
    Time = max(0, Given),
    %% First, so that a time that is counted is between them.
    ok = extreme(?LONGEST, Time, Extremes),
    ok = extreme(?SHORTEST, Time, Extremes),
    counters:add(Counters, 1 + index(min(?MAX_NS, Time)), 1).

%% Retries if another process has changed the value meanwhile.
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

%% The first and the last time of a counter.
bounds(Index) when Index < 2 * ?WIDTH -> {Index, Index};
bounds(Index) ->
    Shift = Index div ?WIDTH - 1,
    First = (Index - Shift * ?WIDTH) bsl Shift,
    {First, First + (1 bsl Shift) - 1}.

-doc "The number of times. Times that are added meanwhile may be missing.".
-spec count(histogram()) -> non_neg_integer().
count({Counters, _}) -> count(?SIZE, 0, Counters).

count(0, Sum, _) -> Sum;
count(I, Sum, Counters) -> count(I - 1, Sum + counters:get(Counters, I), Counters).

-doc "The number of times for each counter, with its first and last time, both included. Empty counters are left out.".
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
