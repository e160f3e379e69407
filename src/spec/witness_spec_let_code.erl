-module(witness_spec_let_code).
-moduledoc """
Generates what computes the values of `let`s (`m:witness_spec_let`).

The state of a monitor with `let`s is `{values, Known, Memory, State}`: `Known` is the number of the property with the values of the
variables that its conditions use, `Memory` what is remembered for the next event, `State` the state of the formula.
`m:witness_spec_value` handles events with it; `value/4` says of an event whether a condition holds, and of what a sum is.
""".

-export([begun/2, variables/1, steps/3, functions/2, keepers/3, unwrapped/2, described/1]).

-import(witness_spec_abstract, [any/0, atom/1, attempt/2, binary/1, call/2, 'case'/2, clause/3, exported/3, function/3, integer/1,
                                list/1, local/2, numbered/2, remote/3, tuple/1, var/1]).

-type unit() :: witness_spec_code:unit().
-type expr() :: witness_spec_abstract:expr().

-doc "The first state of a monitor, from the first state of its formula.".
-spec begun(unit(), expr()) -> expr().
begun(#{lets := []}, State) -> State;
begun(#{lets := Lets} = Unit, State) ->
    tuple([atom(values), known(Unit), first(Lets), State]).

%% They stand in the state, since conditions need them.
known(#{index := Index} = Unit) -> numbered(Index, variables(Unit)).

-doc "The variables of the signature and of `per` that the conditions of `let`s use.".
-spec variables(unit()) -> ordsets:ordset(atom()).
variables(#{lets := Lets, scope := Scope, per := Per}) ->
    ordsets:intersection(ordsets:union(Scope, ordsets:from_list(Per)), witness_spec_let:variables(Lets)).

%% The variables of `per` among them.
keys(#{per := Per} = Unit) -> ordsets:intersection(ordsets:from_list(Per), variables(Unit)).

%% `known' of a key that has had no event.
unkeyed(#{index := Index} = Unit) ->
    case keys(Unit) of
        [] -> known(Unit);
        Keys -> tuple([atom(unkeyed), numbered(Index, ordsets:subtract(variables(Unit), Keys))])
    end.

%% The actions of a condition that need no key.
without(Keys, Actions, Of) ->
    [Action || #{pattern := Pattern, guard := Guard} = Action <- Actions,
               ordsets:is_disjoint(Keys, witness_spec_pattern:variables([Pattern, Guard | [Expr || {Expr, _} <- [Of]]]))].

%% Whether some events have no key.
has_unkeyed(#{per := Per, over := Over}) -> witness_spec_let:unkeyed(Over, Per) =/= [].

kind(#{value := Value, window := Window, parameters := []}) -> {Value, Window};
kind(#{value := Value, window := Window, parameters := Parameters, each := Each}) ->
    {each, length(Parameters), {Value, Window}, Each}.

-doc "The clauses of `handle_event/2` for states with values. `Words`: the limit of what is remembered.".
-spec steps([unit()], Event :: expr(), Words :: expr()) -> [witness_spec_abstract:clause()].
steps(Units, Event, Words) ->
    Values = var('_@Values'),
    [clause([Event, {match, erl_anno:new(0), tuple([atom(values), known(Unit), any(), any()]), Values}], [],
            [remote(witness_spec_value, step,
                    [erl_parse:abstract(numbered(Lets)), local(value, 4), local(handle_event, 2), Words, Event, Values])])
     || #{lets := [_ | _] = Lets} = Unit <- Units].

%% What `witness_spec_value:step/6` has to know. The conditions of a property are numbered.
numbered(Lets) ->
    {Numbered, _} = lists:mapfoldl(fun(#{location := Location} = Let, Number) ->
        Conditions = [Number | [Number + 1 || is_map_key(since, Let)]],
        {_, Of} = maps:get('of', Let, {none, Location}),
        {{kind(Let), Conditions, Location, Of}, Number + length(Conditions)}
    end, 1, Lets),
    Numbered.

-doc "The function `value/4`, if there are values.".
-spec functions([unit()], Event :: expr()) -> [witness_spec_abstract:form()].
functions(Units, Event) ->
    case [Unit || #{lets := [_ | _]} = Unit <- Units] of
        [] -> [];
        Some -> [function(value, 4, lists:flatmap(fun(Unit) -> conditions(Unit, Event) end, Some))]
    end.

%% `value(Number, Known, Event, Earlier)'. `Earlier' are the values of the `let's in front, the last one first. For a `let' with
%% variables the valuation stands behind the number, and `{valuations, Number}' are those that its actions bind.
conditions(#{lets := Lets} = Unit, Event) ->
    Keys = keys(Unit),
    {Clauses, _} = lists:mapfoldl(fun(#{name := Name, condition := Condition} = Let, {Number, Earlier}) ->
        Of = maps:get('of', Let, none),
        Conditions = [Condition | [Since || #{since := Since} <- [Let]]],
        Parameters = witness_spec_let:parameters(Let),
        Clauses = fun(Asked, Actions, Expr) ->
            [clause([Asked, known(Unit), Event, list(Earlier)], [], [Expr(Actions)])
             | [clause([Asked, unkeyed(Unit), Event, list(Earlier)], [], [Expr(without(Keys, Actions, Of))])
                || Keys =/= [], has_unkeyed(Unit)]]
        end,
        {lists:append([Clauses(numbered(N, Parameters), Actions, fun(Some) -> condition(Some, Of, Event) end)
                       || {N, Actions} <- lists:enumerate(Number, Conditions)])
         ++ lists:append([Clauses(tuple([atom(valuations), integer(Number)]), lists:append(Conditions),
                                  fun(Some) -> list([valuations(Action, Parameters, Event)
                                                     || Action <- Some, witness_spec_let:binds(Action, Let)]) end)
                          || Parameters =/= []]),
         {Number + length(Conditions), [var(Name) | Earlier]}}
    end, {1, []}, Lets),
    lists:append(Clauses).

condition(Actions, Of, Event) ->
    'case'(Event, [clause([Pattern], Guard, [holds(Of)]) || #{pattern := Pattern, guard := Guard} <- Actions]
                  ++ [clause([any()], [], [atom(false)])]).

%% A `fun', since the names of variables are those of other actions too.
valuations(#{pattern := Pattern, guard := Guard}, Parameters, Event) ->
    Case = 'case'(Event, [clause([Pattern], Guard, [list([tuple(witness_spec_abstract:vars(Parameters))])]),
                          clause([any()], [], [list([])])]),
    {call, erl_anno:new(0), {'fun', erl_anno:new(0), {clauses, [clause([], [], [Case])]}}, []}.

holds(none) -> atom(true);
holds({Expr, _}) -> attempt(tuple([atom(value), Expr]), atom(failed)).

-doc "The clauses of `keeper/1` (`t:witness_spec_value:keeper/0`, or `none`) for these properties, which have `per`, if there are values.".
-spec keepers([unit()], Filter :: fun((unit()) -> expr()), {module(), Words :: expr()}) -> [witness_spec_abstract:clause()].
keepers(Units, Filter, Own) ->
    Keepers = [clause([Filter(Unit)], [], [keeper(Unit, Own)]) || #{lets := [_ | _]} = Unit <- Units],
    case Keepers of
        [] -> [];
        _ -> Keepers ++ [clause([any()], [], [atom(none)]) || length(Keepers) < length(Units)]
    end.

keeper(#{lets := Lets} = Unit, {Module, Words}) ->
    witness_spec_abstract:map([
        {lets, erl_parse:abstract(numbered(Lets))}, {holds, exported(Module, value, 4)}, {words, Words},
        {unkeyed, case has_unkeyed(Unit) of
            true -> tuple([atom(values), unkeyed(Unit), first(Lets), atom(none)]);
            false -> atom(none)
        end},
        {keyed, atom(is_keyed(Unit))}]).

is_keyed(#{lets := Lets, over := Over, per := Per, scope := Scope}) ->
    witness_spec_let:about_keys(Lets, {Over, Per}, ordsets:union(Scope, ordsets:from_list(Per))) =/= [].

first(Lets) -> erl_parse:abstract(witness_spec_value:new([kind(Let) || Let <- Lets])).

-doc """
A clause that calls the same function with the state of the formula, if there are values. `Arguments` stand in front of the state.
""".
-spec unwrapped([unit()], {Function :: atom(), Arguments :: [expr()]}) -> [witness_spec_abstract:clause()].
unwrapped(Units, {Function, Arguments}) ->
    State = var('_@State'),
    [clause(Arguments ++ [tuple([atom(values), any(), any(), State])], [], [call(Function, Arguments ++ [State])])
     || lists:any(fun(Unit) -> maps:get(lets, Unit, []) =/= [] end, Units)].

-doc "The clauses of `describe/1` for states with values.".
-spec described([unit()]) -> [witness_spec_abstract:clause()].
described(Units) ->
    Memory = var('_@Memory'),
    State = var('_@State'),
    [clause([tuple([atom(values), known(Unit), Memory, State])], [],
            [remote(witness_spec_value, describe,
                    [call(describe, [State]), list([shown(Let) || Let <- Lets]), Memory])])
     || #{lets := [_ | _] = Lets} = Unit <- Units].

%% No name is shown of what has many values.
shown(#{name := Name, parameters := []}) -> binary(atom_to_list(Name));
shown(_) -> binary("").
