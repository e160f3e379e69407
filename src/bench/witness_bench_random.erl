-module(witness_bench_random).
-moduledoc """
Random streams of a benchmark, one for each purpose, all of them functions of the model's seed. A stream never shifts
another one. The master draws trials as often as timing demands, but the sizes of batches and the times of
creation depend only on the seed (RIARC text, C.5.1).

Decisions about a single message or process must not depend on the order of decisions:
`chance/3` makes them, without a state.

```erlang
1> {N, _} = witness_bench_random:normal(100, 2.0, witness_bench_random:stream(batches, 1)).
```
""".

-export([stream/2, uniform/1, normal/3, trials/2, threshold/1, trial/2, chance/3, seed/0]).

-export_type([stream/0, trials/0]).

-doc "The state of a stream.".
-opaque stream() :: rand:state().

-doc "The state of a stream of Bernoulli trials.".
-opaque trials() :: rand:mwc59_state().

-doc "The stream for the load shape, the sizes of batches, or the times of creation, from its beginning.".
-spec stream(shape | batches | times, Seed :: non_neg_integer()) -> stream().
stream(Purpose, Seed) -> rand:seed_s(exsss, {Seed, number(Purpose), 0}).

number(shape) -> 1;
number(batches) -> 2;
number(times) -> 3;
number(sending) -> 4;
number(receiving) -> 5.

-doc "From [0, 1).".
-spec uniform(stream()) -> {float(), stream()}.
uniform(Stream) -> rand:uniform_s(Stream).

-doc "Normally distributed, with this mean and standard deviation.".
-spec normal(Mean :: number(), Deviation :: number(), stream()) -> {float(), stream()}.
normal(Mean, Deviation, Stream) ->
    {Z, Next} = rand:normal_s(Stream),
    {Mean + Deviation * Z, Next}.

-doc "The trials of the master, which draws one for each message, with the fastest generator.".
-spec trials(sending | receiving, Seed :: non_neg_integer()) -> trials().
trials(Purpose, Seed) -> rand:mwc59_seed(erlang:phash2({Seed, number(Purpose)}, 1 bsl 32)).

-doc "A probability, as an argument of `trial/2`.".
-spec threshold(number()) -> 0..16#100000000.
threshold(Probability) -> round(Probability * 16#100000000).

-doc "Whether the next trial succeeds.".
-spec trial(0..16#100000000, trials()) -> {boolean(), trials()}.
trial(Threshold, Trials) ->
    Next = rand:mwc59(Trials),
    {rand:mwc59_value32(Next) < Threshold, Next}.

-doc "Whether an event with this probability happens for `Question`: always the same answer for the same question.".
-spec chance(Question :: term(), Seed :: non_neg_integer(), Probability :: number()) -> boolean().
chance(_, _, Probability) when Probability == 0 -> false;
chance(Question, Seed, Probability) -> erlang:phash2({Seed, Question}, 1 bsl 32) < threshold(Probability).

-doc "A random seed.".
-spec seed() -> non_neg_integer().
seed() -> rand:uniform(1 bsl 32) - 1.
