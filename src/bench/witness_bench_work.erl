-module(witness_bench_work).
-moduledoc """
Computation that takes a given time: the work of a request, and the cost of an analysis. The speed of this machine is
measured once. From then on the work is a number of rounds, or of bytes, which is the same in every mode.
""".

-export([rounds/1, spin/1, cost/1]).

-doc "The number of rounds of `spin/1` that take so many microseconds on this machine.".
-spec rounds(Microseconds :: number()) -> non_neg_integer().
rounds(Microseconds) when Microseconds == 0 -> 0;
rounds(Microseconds) ->
    Many = 100_000,
    max(1, round(Microseconds * Many / fastest(fun() -> spin(Many) end))).

-doc "Computes for so many rounds.".
-spec spin(non_neg_integer()) -> ok.
spin(0) -> ok;
spin(Rounds) ->
    _ = erlang:phash2(Rounds),
    spin(Rounds - 1).

-doc """
A binary on which an analysis spends so many microseconds an event (`pay/1`). That is a single call, without a
loop, so that monitors may share a process (`witness_monitor_safety`).
""".
-spec cost(Microseconds :: number()) -> binary().
cost(Microseconds) when Microseconds == 0 -> <<>>;
cost(Microseconds) ->
    Many = 1 bsl 20,
    Sample = binary:copy(<<1>>, Many),
    binary:copy(<<1>>, max(1, round(Microseconds * Many / fastest(fun() -> pay(Sample) end)))).

-doc "Takes the time of a cost.".
-spec pay(binary()) -> non_neg_integer().
pay(Cost) -> erlang:phash2(Cost).

%% The shortest of several times, in microseconds: every disturbance makes the work slower.
fastest(Work) ->
    lists:min([element(1, timer:tc(Work)) || _ <- lists:seq(1, 20)]).
