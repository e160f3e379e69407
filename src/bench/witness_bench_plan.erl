-module(witness_bench_plan).
-moduledoc """
What the master will do and when, as far as it does not depend on how fast anything is: the Order queue, and from it the
Ready queue of each unit of time with the sizes of batches (BenchCRV text, section 3.1). It is a function of the model
alone, so every way to watch the system is given the same workload: who is created and when, how many requests each
member gets, which workers crash and where, which messages are lost, and who is monitored.

What depends on timing cannot be the same: how late a member really is, in which order responses come, and so which
turn of whom a trial of the master decides. The series of trials is that of the seed, too, one for sending and one for
receiving; but they are drawn turn by turn, and who has a turn depends on who is alive by then.

A plan takes as much memory as the timeline has units; the Ready queue of a unit is drawn when it is needed.
""".

-export([new/1, next/1]).

-export_type([plan/0, member/0]).

-record(plan, {order, period, deviation, w, batch_deviation, times, batches}).

-doc "What is left of the plan.".
-opaque plan() :: #plan{}.

-doc "When a member is created, in nanoseconds from the beginning of its unit of time, and how many requests it gets.".
-type member() :: {At :: non_neg_integer(), Requests :: pos_integer()}.

-doc "The plan of a model (`m:witness_bench_model`) whose seed is fixed.".
-spec new(witness_bench_model:model()) -> plan().
new(#{n := N, t := T, shape := Shape, w := W, period_ms := Period, deviation := BatchDeviation,
      creation_deviation := Deviation, seed := Seed}) ->
    #plan{order = witness_bench_shape:order(Shape, N, T, witness_bench_random:stream(shape, Seed)),
          period = Period * 1_000_000, deviation = Deviation, w = W, batch_deviation = BatchDeviation,
          times = witness_bench_random:stream(times, Seed), batches = witness_bench_random:stream(batches, Seed)}.

-doc """
The Ready queue of the next unit of time: l members, each one a draw after the one before it, whose mean is 1/l of the
period and whose standard deviation is a tenth of that by default.
""".
-spec next(plan()) -> {[member()], plan()} | done.
next(#plan{order = []}) -> done;
next(Plan = #plan{order = [Count | Order], period = Period, deviation = Deviation}) ->
    Gap = Period / max(1, Count),
    members(Count, 0, Gap, Gap * Deviation, Plan#plan{order = Order}, []).

members(0, _, _, _, Plan, Members) -> {lists:reverse(Members), Plan};
members(L, Before, Gap, Deviation, Plan, Members) ->
    #plan{w = W, batch_deviation = Of, times = Times, batches = Batches} = Plan,
    {Step, NextTimes} = witness_bench_random:normal(Gap, Deviation, Times),
    {Requests, NextBatches} = witness_bench_random:normal(W, W * Of, Batches),
    At = Before + max(0, round(Step)),
    members(L - 1, At, Gap, Deviation, Plan#plan{times = NextTimes, batches = NextBatches},
            [{At, max(1, round(Requests))} | Members]).
