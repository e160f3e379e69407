-module(witness_search_pos).
-moduledoc """
Partial order sampling (Yuan, Yang, Gu: Partial Order Aware Concurrency Sampling, CAV 2018, section 4).

Each step that is possible has a random priority, and the one with the highest is taken. Then every other one that depends on it gets a
new priority. So each partial order of dependent steps has a probability with a lower bound, which does not depend on how many steps
there are that nothing depends on.
""".
-behaviour(witness_search_strategy).

-export([new/2, choose/3]).

-record(pos, {random :: rand:state(), priorities = #{} :: #{witness_search_world:step() => float()}}).

-doc false.
new(Seed, _) -> #pos{random = rand:seed_s(exsss, Seed)}.

-doc false.
choose(Steps, #{depends := Depends}, #pos{priorities = Before} = S0) ->
    S = #pos{priorities = Priorities} = lists:foldl(fun admit/2, S0#pos{priorities = maps:with(Steps, Before)}, Steps),
    {_, Negative} = lists:max([{map_get(Step, Priorities), -Place} || {Place, Step} <- lists:enumerate(Steps)]),
    Taken = lists:nth(-Negative, Steps),
    Left = [Step || Step <- Steps, Step =/= Taken, not Depends(Taken, Step)],
    {-Negative, S#pos{priorities = maps:with(Left, Priorities)}}.

admit(Step, #pos{priorities = Priorities} = S) when is_map_key(Step, Priorities) -> S;
admit(Step, #pos{priorities = Priorities, random = Random} = S) ->
    {Priority, Next} = rand:uniform_s(Random),
    S#pos{priorities = Priorities#{Step => Priority}, random = Next}.
