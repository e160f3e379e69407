-module(witness_savina_random).
-moduledoc """
Savina's own random numbers (`PseudoRandom.java`): a linear congruential generator of 16 bits with the full period.

The state of the generator is the number that it gave last, so the functions pass one number on:

```erlang
R1 = witness_savina_random:next(R0), Index = R1 rem K, Fraction = 1 / (R1 + 1)
```

These are Savina's `nextLong()`, `nextInt(K)` and `nextDouble()`.
""".

-export([seed/0, next/1, busy_wait/1]).
-export_type([state/0]).

-doc "A seed, which may be any integer, or the last number, from 0 to 65535.".
-type state() :: integer().

-doc "The default seed of Savina's generator.".
-spec seed() -> state().
seed() -> 74755.

-doc "The next number, from 0 to 65535.".
-spec next(state()) -> 0..65535.
next(R) -> (R * 1309 + 13849) band 65535.

-doc """
Keeps the process busy for so many steps of the generator, a nanosecond or two each: Savina's busy waits draw as
many numbers of Java's generator. The result has no use.
""".
-spec busy_wait(non_neg_integer()) -> state().
busy_wait(Steps) -> busy_wait(Steps, seed()).

busy_wait(0, R) -> R;
busy_wait(Steps, R) -> busy_wait(Steps - 1, next(R)).
