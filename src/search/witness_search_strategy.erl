-module(witness_search_strategy).
-moduledoc """
Which of the possible steps comes next: the behaviour of strategies, and a schedule as a strategy.

A strategy is pure. Its state starts with a seed; `choose/3` gets the steps that are possible (`m:witness_search_possible`), and how to compare
them. It is asked also if only one step is possible, and after each change of what is possible.
""".

-export([new/2, choose/3, names/0, replaying/1, reversing/1]).

-export_type([strategy/0, name/0, view/0]).

-type name() :: random | pct | pos | surw.

-doc """
What strategies may know of a step: what acts, by a name that it has in all runs; what it touches: two steps depend on each other if they
touch the same thing, one of them changing it; and whether a step is interesting: it makes an event that a specification can match, if there are specifications.
""".
-type view() :: #{actor := fun((witness_search_world:step()) -> witness_search_world:actor()),
                  touches := fun((witness_search_world:step()) -> [witness_search_conflict:touch()]),
                  interesting := fun((witness_search_world:step()) -> boolean())}.

-callback new(Seed :: term(), Options :: map()) -> term().

-doc "The chosen step.".
-callback choose(witness_search_possible:possible(), view(), State) -> {witness_search_world:step(), State}.

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

-doc "A strategy that makes these choices where several steps are possible, and then always takes the first one.".
-spec replaying([witness_search_world:step()]) -> strategy().
replaying(Choices) -> {?MODULE, Choices}.

-doc "The strategy that departs from the default order only by these pairs (`m:witness_search_reversal`).".
-spec reversing([witness_search_reversal:pair()]) -> strategy().
reversing(Pairs) -> {witness_search_reversal, witness_search_reversal:new(Pairs, #{})}.

-spec choose(witness_search_possible:possible(), view(), strategy()) -> {witness_search_world:step(), strategy()}.
choose(Possible, _, {?MODULE, Choices} = Strategy) ->
    case {Choices, witness_search_possible:size(Possible)} of
        {[Step | Others], Size} when Size > 1 ->
            case witness_search_possible:is_member(Step, Possible) of
                true -> {Step, {?MODULE, Others}};
                false -> {witness_search_possible:nth(1, Possible), {?MODULE, Others}}
            end;
        _ -> {witness_search_possible:nth(1, Possible), Strategy}
    end;
choose(Possible, View, {Module, State}) ->
    {Step, State1} = Module:choose(Possible, View, State),
    {Step, {Module, State1}}.
