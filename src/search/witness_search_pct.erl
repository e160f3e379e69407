-module(witness_search_pct).
-moduledoc """
Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatti: A Randomized Scheduler with Probabilistic Guarantees of
Finding Bugs, ASPLOS 2010, section 2).

Each process gets a random priority above `depth`, and the one with the highest priority acts. At `depth - 1` steps, which are chosen
at random among the expected `length`, the process that is about to act gets the lowest priority so far. With `n` processes and `k`
steps, a fault of depth `d` is found with a probability of at least `1 / (n * k^(d - 1))`.

The signals from one process to another count as a process.
""".
-behaviour(witness_search_strategy).

-export([new/2, choose/3]).

-record(pct, {random :: rand:state(),
              priorities = #{} :: #{term() => number()},
              changes :: #{pos_integer() => pos_integer()},
              step = 0 :: non_neg_integer()}).

-doc false.
new(Seed, Options) ->
    {Changes, Random} = lists:mapfoldl(fun(Number, Random) ->
        {At, Next} = rand:uniform_s(max(1, maps:get(length, Options, 100)), Random),
        {{At, Number}, Next}
    end, rand:seed_s(exsss, Seed), lists:seq(1, maps:get(depth, Options, 3) - 1)),
    #pct{random = Random, changes = maps:from_list(Changes)}.

-doc false.
choose(Steps, #{actor := Actor} = View, #pct{step = Step, changes = Changes} = S0) ->
    S = #pct{priorities = Priorities} = lists:foldl(fun admit/2, S0#pct{step = Step + 1}, [Actor(One) || One <- Steps]),
    {_, Choice} = lists:max([{map_get(Actor(One), Priorities), -Place} || {Place, One} <- lists:enumerate(Steps)]),
    case Changes of
        #{Step := Number} ->
            Lowered = Priorities#{Actor(lists:nth(-Choice, Steps)) := -Number},
            choose(Steps, View, S#pct{priorities = Lowered, changes = maps:remove(Step, Changes), step = Step});
        #{} -> {-Choice, S}
    end.

admit(Actor, #pct{priorities = Priorities} = S) when is_map_key(Actor, Priorities) -> S;
admit(Actor, #pct{priorities = Priorities, random = Random} = S) ->
    {Priority, Next} = rand:uniform_s(Random),
    S#pct{priorities = Priorities#{Actor => Priority}, random = Next}.
