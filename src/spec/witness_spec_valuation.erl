-module(witness_spec_valuation).
-moduledoc """
What a `let` with variables remembers (`m:witness_spec_let`): for each valuation that differs from all those that no event has matched
what `m:witness_spec_value` remembers of it, and the same once for all others. Pure.

A step changes the valuations that an event matches or that another `let` in front knows, and all others at once. Of these, the kept ones
are looked at only if it may change them: without a window, an event at which no condition holds changes nothing. A valuation that has
become equal to the others is forgotten.
""".

-export([new/1, step/4, map/2, ones/1, size/1]).
-export_type([valuations/1, value/0]).

-doc "The memory of the others, the memories that differ from it, and the values that differ from that of the others.".
-type valuations(One) :: {Others :: One, #{tuple() => One}, shown()}.
-type shown() :: #{tuple() => {1, Value :: term()}}.

-doc "The value of a `let` with variables. `{1, _}` is greater than `{0, _}` and than `false`, for guards.".
-type value() :: {shown(), {0, Others :: term()}}.

-doc "Nothing has happened.".
-spec new(One) -> valuations(One).
new(One) -> {One, #{}, #{}}.

-doc """
A step: `Next` gives the value and the memory behind an event, of one valuation or of the `others`. `IsSame` compares memories.
`IsIdle`: the event changes nothing for those that are not `Touched`.
""".
-spec step(Touched :: [tuple()], IsIdle :: boolean(), {Next, IsSame}, valuations(One)) -> {value(), valuations(One)} when
      Next :: fun((tuple() | others, One) -> {Value :: term(), One}), IsSame :: fun((One, One) -> boolean()).
step(Touched, IsIdle, {Next, IsSame}, {Before, Kept, Shown}) ->
    {Value, Others} = Next(others, Before),
    Put = fun(Valuation, {Own, One}, {Ones, Values}) ->
        {case IsSame(One, Others) of true -> maps:remove(Valuation, Ones); false -> Ones#{Valuation => One} end,
         case Own =:= Value of true -> maps:remove(Valuation, Values); false -> Values#{Valuation => {1, Own}} end}
    end,
    Passed = case IsIdle of
        true -> {Kept, Shown};
        false ->
            maps:fold(fun(Valuation, One, Done) -> Put(Valuation, Next(others, One), Done) end, {#{}, #{}},
                      maps:without(Touched, Kept))
    end,
    {Ones, Values} = lists:foldl(fun(Valuation, Done) ->
        Put(Valuation, Next(Valuation, maps:get(Valuation, Kept, Before)), Done)
    end, Passed, Touched),
    {{Values, {0, Value}}, {Others, Ones, Values}}.

-doc "With other memories, of which those that are equal to that of the others are forgotten.".
-spec map({fun((One) -> One), IsSame :: fun((One, One) -> boolean())}, valuations(One)) -> valuations(One).
map({Change, IsSame}, {Before, Kept, _}) ->
    Others = Change(Before),
    {Others, #{Valuation => One || Valuation := Old <- Kept, One <- [Change(Old)], not IsSame(One, Others)}, #{}}.

-doc "All memories.".
-spec ones(valuations(One)) -> [One].
ones({Others, Kept, _}) -> [Others | maps:values(Kept)].

-doc "How many valuations are kept.".
-spec size(valuations(_)) -> non_neg_integer().
size({_, Kept, _}) -> map_size(Kept).
