-module(witness_run_history_samples).
-moduledoc """
The progress of a run, as samples over time: never more than 400. At 400 samples every second one is dropped, and from then
on samples are taken half as often. So the samples cover the whole run evenly, however long it is.

```erlang
1> C = witness_run_history_samples:add({50, #{events => 10}}, witness_run_history_samples:new()).
2> witness_run_history_samples:interval(C).
50
3> witness_run_history_samples:samples(C).
[{50,#{events => 10}}]
```
""".

-export([new/0, add/2, interval/1, samples/1]).

-export_type([series/0, sample/0]).

-record(series, {interval :: pos_integer(), count = 0 :: non_neg_integer(), samples = [] :: [sample()]}).

-doc "The samples so far.".
-opaque series() :: #series{}.

-doc "Milliseconds since the run began, and numbers by their names.".
-type sample() :: {Ms :: non_neg_integer(), #{atom() => number()}}.

-define(MAX_SAMPLES, 400).
-define(FIRST_INTERVAL_MS, 50).

-doc "Without samples.".
-spec new() -> series().
new() -> #series{interval = ?FIRST_INTERVAL_MS}.

-doc "Adds a sample, which is later than all others.".
-spec add(sample(), series()) -> series().
add(Sample, #series{count = Count, samples = Samples} = C) when Count + 1 < ?MAX_SAMPLES ->
    C#series{count = Count + 1, samples = [Sample | Samples]};
add(Sample, #series{interval = Interval, samples = Samples}) ->
    Kept = every_second([Sample | Samples]),
    #series{interval = 2 * Interval, count = length(Kept), samples = Kept}.

every_second([One, _ | Rest]) -> [One | every_second(Rest)];
every_second(Rest) -> Rest.

-doc "Milliseconds until the next sample is to be taken.".
-spec interval(series()) -> pos_integer().
interval(#series{interval = Interval}) -> Interval.

-doc "The samples, from the first to the last.".
-spec samples(series()) -> [sample()].
samples(#series{samples = Samples}) -> lists:reverse(Samples).
