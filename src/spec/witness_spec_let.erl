-module(witness_spec_let).
-moduledoc """
What `let`s say of the trace so far: values with names, for guards, patterns and values of a formula
(docs/internals/semantics.md, *Values*).

An action of the formula that uses a `let` binds its value at the event, as if it stood in the pattern. Each action does so anew. So
`name_values/1` gives each of them variables of its own, `_@V@1`, `_@V@2`... for `V`, which the analyses of actions do not see in
patterns. `put_values/1` puts them there, for the monitors: these read events with one more element in front of the time, the values of
all `let`s (`m:witness_spec_value`). `m:witness_spec_let_code` generates what computes them.
""".

-export([names/1, variables/1, kinds/2, unkeyed/2, about_keys/3, name_values/1, used/1, put_values/1, written/1]).
-export_type([definition/0]).

-doc """
A `let`. Of `since`, `condition` is what has to hold after `since`. `of`: the expression of a `sum`, `min`, `max` or `mean`, with its place.
A window is a duration in nanoseconds, or the last so many events.
""".
-type definition() :: #{name := atom(), location := location(), text := binary(),
                        value := previously | once | since | count | sum | min | max | mean,
                        window := all | {time, non_neg_integer()} | {events, pos_integer()},
                        condition := [action(), ...], since => [action(), ...],
                        'of' => {witness_spec_pattern:expr(), location()}}.

-type location() :: witness_spec_diagnostic:location().
-type action() :: witness_spec_action:action().
-type property() :: witness_spec_parse:property().

-doc "Their names.".
-spec names([definition()]) -> ordsets:ordset(atom()).
names(Lets) -> ordsets:from_list([Name || #{name := Name} <- Lets]).

-doc "The variables in their conditions and expressions.".
-spec variables([definition()]) -> ordsets:ordset(atom()).
variables(Lets) ->
    Conditions = witness_spec_parse:let_actions(Lets),
    witness_spec_pattern:variables([[Pattern | Guard] || #{pattern := Pattern, guard := Guard} <- Conditions]
                                   ++ [Expr || #{'of' := {Expr, _}} <- Lets]).

-doc "The actions of `over` that bind no variable of `per`.".
-spec unkeyed(Over, Per :: [atom()]) -> Over when Over :: [action()].
unkeyed(Over, Per) ->
    Keys = ordsets:from_list(Per),
    [Action || #{pattern := Pattern} = Action <- Over, ordsets:is_disjoint(Keys, witness_spec_pattern:variables(Pattern))].

-doc """
The conditions in which variables of `per` occur, with these, that may match events without a key: those that come later do not know whether
they held. `Scope` are the variables of the signature and of `per`.
""".
-spec about_keys([definition()], {Over :: all | [action()], Per :: [atom()]}, Scope :: ordsets:ordset(atom())) ->
    [{action(), ordsets:ordset(atom())}].
about_keys(_, {_, []}, _) -> [];
about_keys(Lets, {Over, Per}, Scope) ->
    Keys = ordsets:from_list(Per),
    Unkeyed = [witness_spec_overlap:own(Action, Scope) || Action <- unkeyed(Over, Per)],
    [{Condition, Used} || Let <- Lets, Of <- [[Expr || {Expr, _} <- [maps:get('of', Let, none)]]],
                          #{pattern := Pattern, guard := Guard} = Condition <- witness_spec_parse:let_actions([Let]),
                          Used <- [ordsets:intersection(Keys, witness_spec_pattern:variables([Pattern, Guard, Of]))], Used =/= [],
                          may_match(Condition, Unkeyed, Scope)].

may_match(#{kind := test}, Events, _) -> Events =/= [];
may_match(Condition, Events, Scope) ->
    not lists:all(fun(Event) -> witness_spec_overlap:disjoint(Event, Condition, Scope) end, Events).

-doc "The kinds of values that `let`s have, and the variables for them in these actions (`m:witness_spec_guard`).".
-spec kinds([definition()], [action()]) -> #{atom() => [atom | float | integer]}.
kinds(Lets, Actions) ->
    Kinds = [kinds_of(Value) || #{value := Value} <- Lets],
    Named = [lists:zip(Values, Kinds) || #{values := Values} <- Actions],
    maps:without(['_'], maps:from_list(lists:append([lists:zip([Name || #{name := Name} <- Lets], Kinds) | Named]))).

kinds_of(Value) when Value =:= previously; Value =:= once; Value =:= since -> [atom];
kinds_of(count) -> [integer];
kinds_of(sum) -> [float, integer];
kinds_of(mean) -> [atom, float];
kinds_of(_) -> [atom, float, integer].

-doc """
The properties with a variable for each use of a `let` in the formula: the actions have, as `values`, those for their event, in the order
of the `let`s, and `_` for one that is not used there.
""".
-spec name_values([property()]) -> [property()].
name_values(Properties) -> [name_values_of(Property) || Property <- Properties].

name_values_of(#{lets := [_ | _] = Lets, formula := Formula} = Property) ->
    {Named, _} = name([Name || #{name := Name} <- Lets], Formula, #{}, 1),
    Property#{formula := Named};
name_values_of(Property) -> Property.

%% `Names` are the variables for the values at the last event, `Number` that of the next action.
name(_, {Constant, _} = Formula, _, Number) when Constant =:= tt; Constant =:= ff -> {Formula, Number};
name(_, {var, Meta, Variable, Values}, Names, Number) -> {{var, Meta, Variable, rename(Values, Names)}, Number};
name(Lets, {Modality, Meta, #{pattern := Pattern, guard := Guard} = Action, Formula}, _, Number) when
        Modality =:= box; Modality =:= dia ->
    Used = ordsets:union(witness_spec_pattern:variables([Pattern | Guard]), used_before(Formula)),
    Names = #{Name => variable(Name, Number) || Name <- Lets, ordsets:is_element(Name, Used)},
    {Behind, Next} = name(Lets, Formula, Names, Number + 1),
    {{Modality, Meta, Action#{pattern := rename(Pattern, Names), guard := rename(Guard, Names),
                              values => [maps:get(Name, Names, '_') || Name <- Lets]}, Behind}, Next};
name(Lets, {Fixpoint, Meta, Variable, Parameters, Formula}, Names, Number) ->
    {Inner, Next} = name(Lets, Formula, Names, Number),
    {{Fixpoint, Meta, Variable, [{Name, Place, rename(Value, Names)} || {Name, Place, Value} <- Parameters], Inner}, Next};
name(Lets, {Operator, Meta, Formulas}, Names, Number) ->
    {Inner, Next} = lists:mapfoldl(fun(Formula, Now) -> name(Lets, Formula, Names, Now) end, Number, Formulas),
    {{Operator, Meta, Inner}, Next}.

%% The variables of the values that are computed in a formula before its next event.
used_before({var, _, _, Values}) -> witness_spec_pattern:variables(Values);
used_before({Modality, _, _, _}) when Modality =:= box; Modality =:= dia -> [];
used_before({_, _, _, Parameters, Formula}) ->
    ordsets:union(witness_spec_pattern:variables([Value || {_, _, Value} <- Parameters]), used_before(Formula));
used_before({_, _, Formulas}) -> ordsets:union([used_before(Formula) || Formula <- Formulas]);
used_before(_) -> [].

variable(Name, Number) -> list_to_atom("_@" ++ atom_to_list(Name) ++ "@" ++ integer_to_list(Number)).

rename(Expr, Names) ->
    witness_spec_abstract:rewrite(fun({var, Anno, Name}) when is_map_key(Name, Names) -> {done, {var, Anno, map_get(Name, Names)}};
                                     (_) -> inside
                                  end, Expr).

-doc "How the author wrote a variable; a variable for the value of a `let` has the name of that.".
-spec written(atom()) -> string().
written(Name) ->
    case atom_to_list(Name) of
        [$_, $@, First | _] = Added when First < $0; First > $9 ->
            case string:split(tl(tl(Added)), "@", trailing) of
                [Let, [_ | _]] when is_list(Let) -> Let;
                _ -> Added
            end;
        Written -> Written
    end.

-doc "The names of the `let`s that the actions of the formula use (`name_values/1`).".
-spec used([action()]) -> ordsets:ordset(string()).
used(Actions) ->
    ordsets:from_list([written(Variable) || #{values := Values} <- Actions, Variable <- Values, Variable =/= '_']).

-doc """
The properties with the values of `let`s in the patterns of their formulas: a tuple in front of the time. For an `else` that needs some,
it is the whole pattern.
""".
-spec put_values([property()]) -> [property()].
put_values(Properties) -> [put_values_of(Property) || Property <- Properties].

put_values_of(#{lets := [_ | _], formula := Formula} = Property) ->
    {Valued, none} = witness_spec_parse:actions(fun(Action, none, none) -> {put_in(Action), none, none} end, none, none, Formula),
    Property#{formula := Valued};
put_values_of(Property) -> Property.

put_in(#{pattern := Pattern, values := Values} = Action) ->
    Anno = element(2, Pattern),
    Known = {tuple, Anno, [{var, Anno, Name} || Name <- Values]},
    Action#{pattern := case Pattern of
        {tuple, _, Elements} ->
            {Data, [Time]} = lists:split(length(Elements) - 1, Elements),
            {tuple, Anno, Data ++ [Known, Time]};
        {var, _, '_'} ->
            case lists:all(fun(Name) -> Name =:= '_' end, Values) of
                true -> Pattern;
                false -> Known
            end
    end}.
