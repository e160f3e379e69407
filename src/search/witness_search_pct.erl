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

%% queue: the possible steps by their priorities; times: those of them that are times.
-record(pct, {random :: rand:state(),
              priorities = #{} :: #{witness_search_world:actor() => number()},
              queue = witness_search_tree:new() :: witness_search_tree:tree({number(), witness_search_world:step()}),
              times = [] :: [witness_search_world:step()],
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
choose(Possible, #{actor := Actor}, #pct{times = Before, step = Step} = S0) ->
    {Added, Removed, Times} = witness_search_possible:news(Before, Possible),
    Left = lists:foldl(fun(One, S) -> drop(One, Actor(One), S) end, S0#pct{times = Times, step = Step + 1}, Removed),
    highest(Step, Actor, lists:foldl(fun(One, S) -> admit(One, Actor(One), S) end, Left, Added)).

highest(Step, Actor, #pct{queue = Queue, priorities = Priorities, changes = Changes} = S) ->
    {_, Highest} = witness_search_tree:largest(Queue),
    case Changes of
        #{Step := Number} ->
            Of = Actor(Highest),
            Dropped = drop(Highest, Of, S),
            highest(Step, Actor, admit(Highest, Of, Dropped#pct{priorities = Priorities#{Of := -Number},
                                                                changes = maps:remove(Step, Changes)}));
        #{} -> {Highest, S}
    end.

drop(Step, Actor, #pct{priorities = Priorities, queue = Queue} = S) ->
    S#pct{queue = witness_search_tree:delete({map_get(Actor, Priorities), Step}, Queue)}.

admit(Step, Actor, #pct{priorities = Priorities, queue = Queue, random = Random} = S) ->
    case Priorities of
        #{Actor := Priority} -> S#pct{queue = witness_search_tree:insert({Priority, Step}, Queue)};
        #{} ->
            {Priority, Next} = rand:uniform_s(Random),
            S#pct{priorities = Priorities#{Actor => Priority}, random = Next,
                  queue = witness_search_tree:insert({Priority, Step}, Queue)}
    end.
