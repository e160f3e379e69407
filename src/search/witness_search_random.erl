-module(witness_search_random).
-moduledoc "A random walk: each possible step is equally likely. It gives no bound, and is the measure for the others.".
-behaviour(witness_search_strategy).

-export([new/2, choose/3]).

-doc false.
new(Seed, _) -> rand:seed_s(exsss, Seed).

-doc false.
choose(Possible, _, State) ->
    {Place, Next} = rand:uniform_s(witness_search_possible:size(Possible), State),
    {witness_search_possible:nth(Place, Possible), Next}.
