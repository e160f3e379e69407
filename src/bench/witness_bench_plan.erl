-module(witness_bench_plan).
-moduledoc """
The actions of the master and their times, as far as they do not depend on speed: the Order queue, and from it the
Ready queue of each unit of time with the sizes of batches (BenchCRV text, section 3.1). It is a function of the model
alone, so every mode is given the same workload: which members are created and when, how many requests each
member gets, which workers crash and where, which messages are lost, and which members are monitored.

What depends on timing cannot be the same: how late a member really is, the order of responses, and so
the member for which a trial of the master decides. The series of trials also depends on the seed, one for sending and one for
receiving; but they are drawn turn by turn, and the turns depend on which members are alive by then.

A plan takes as much memory as the timeline has units; the Ready queue of a unit is drawn when it is needed.
""".

-export([new/1, next/1]).

-export_type([plan/0, member/0]).

-record(plan, {order, period, deviation, w, batch_deviation, times, batches}).

-doc "The rest of the plan.".
-opaque plan() :: #plan{}.

-doc "When a member is created, in nanoseconds from the beginning of its unit of time, and the number of its requests.".
-type member() :: {At :: non_neg_integer(), Requests :: pos_integer()}.

-doc "The plan of a model (`m:witness_bench_model`) with a fixed seed.".
-spec new(witness_bench_model:model()) -> plan().
new(#{n := N, t := T, shape := Shape, w := W, period_ms := Period, deviation := BatchDeviation,
      creation_deviation := Deviation, seed := Seed}) ->
    #plan{order = witness_bench_shape:order(Shape, N, T, witness_bench_random:stream(shape, Seed)),
          period = Period * 1_000_000, deviation = Deviation, w = W, batch_deviation = BatchDeviation,
          times = witness_bench_random:stream(times, Seed), batches = witness_bench_random:stream(batches, Seed)}.

-doc """
The Ready queue of the next unit of time with l members. The distances between members are drawn with a mean of 1/l of the
period and, by default, a tenth of that as standard deviation.
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
