-module(witness_search_strategy).
-moduledoc """
Which of the possible steps comes next: the behaviour of strategies, and a schedule as a strategy.

A strategy is pure. Its state starts with a seed; `choose/3` gets the steps that are possible, in an order that follows from the steps so
far, and how to compare them. It is asked also if only one step is possible.
""".

-export([new/2, choose/3, names/0, replaying/1, reversing/1]).

-export_type([strategy/0, name/0, view/0]).

-type name() :: random | pct | pos | surw.

-doc """
What strategies may know of a step: what acts, by a name that it has in all runs; whether two steps depend on each other; and whether a step is
interesting: it makes an event that a specification can match, if there are specifications.
""".
-type view() :: #{actor := fun((witness_search_world:step()) -> witness_search_world:actor()),
                  depends := fun((witness_search_world:step(), witness_search_world:step()) -> boolean()),
                  interesting := fun((witness_search_world:step()) -> boolean())}.

-callback new(Seed :: term(), Options :: map()) -> term().

-doc "The place of the chosen step in the list.".
-callback choose([witness_search_world:step(), ...], view(), State) -> {pos_integer(), State}.

-opaque strategy() :: {module(), term()}.

-doc "The strategies by name.".
-spec names() -> [name()].
names() -> [random, pct, pos, surw].

-spec new(name(), #{seed := term(), atom() => term()}) -> strategy().
new(Name, #{seed := Seed} = Options) ->
    Module = module(Name),
    {Module, Module:new(Seed, Options)}.

module(random) -> witness_search_random;
module(pct) -> witness_search_pct;
module(pos) -> witness_search_pos;
module(surw) -> witness_search_surw.

-doc "A strategy that makes these choices, and then always the first one.".
-spec replaying([pos_integer()]) -> strategy().
replaying(Choices) -> {?MODULE, Choices}.

-doc "The strategy that departs from the default order only by these pairs (`m:witness_search_reversal`).".
-spec reversing([witness_search_reversal:pair()]) -> strategy().
reversing(Pairs) -> {witness_search_reversal, witness_search_reversal:new(Pairs, #{})}.

-spec choose([witness_search_world:step(), ...], view(), strategy()) -> {pos_integer(), strategy()}.
choose([_], _, {?MODULE, _} = Strategy) -> {1, Strategy};
choose(Steps, _, {?MODULE, Choices}) ->
    case Choices of
        [Choice | Others] when Choice =< length(Steps) -> {Choice, {?MODULE, Others}};
        [_ | Others] -> {1, {?MODULE, Others}};
        [] -> {1, {?MODULE, []}}
    end;
choose(Steps, View, {Module, State}) ->
    {Choice, State1} = Module:choose(Steps, View, State),
    {Choice, {Module, State1}}.
