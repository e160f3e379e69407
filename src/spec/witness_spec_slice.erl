-module(witness_spec_slice).
-moduledoc """
Generates the functions that choose the events of a monitor, from the `over` and `per` of the properties: `slice/2`,
`instance/2`, `keeper/1`, `slice_names/1` and `alphabet/1`.

`init/3` gives a *filter* to a property with an `over`. It is the number of the property with the values of those variables of
the signature that the choice of events, or a new instance, needs.
""".

-export([filter/1, functions/3]).

-import(witness_spec_abstract, [any/0, atom/1, binary/1, 'case'/2, clause/3, function/3, integer/1, list/1, numbered/2,
                                state/1, tuple/1, vars/1]).

-type unit() :: witness_spec_code:unit().

-doc "The filter of a property with `over`.".
-spec filter(unit()) -> witness_spec_abstract:expr().
filter(#{index := Index, scope := Scope, over := Over, per := Per, start := {node, _, Variables}} = Unit) ->
    Chosen = witness_spec_pattern:variables([[Pattern, Guard] || #{pattern := Pattern, guard := Guard} <- Over]),
    Started = case Per of
        [] -> [];
        _ ->
            ordsets:union([witness_spec_let_code:variables(Unit)
                           | [case Needed of {_, Value, _} -> witness_spec_pattern:variables(Value); _ -> [Needed] end
                              || Needed <- Variables]])
    end,
    numbered(Index, ordsets:intersection(Scope, ordsets:union(Chosen, Started))).

-doc "The callbacks that these properties need; `Event` is the variable for the event, `Own` the module and the limit of what values remember.".
-spec functions([unit()], Event :: witness_spec_abstract:expr(), Own :: {module(), Words :: witness_spec_abstract:expr()}) ->
    [witness_spec_abstract:form()].
functions(Units, Event, Own) ->
    Filtered = [Unit || #{over := [_ | _]} = Unit <- Units],
    Sliced = [Unit || #{per := [_ | _]} = Unit <- Filtered],
    [function(slice, 2, [slice(Unit, Event) || Unit <- Filtered]) || Filtered =/= []]
        ++ [function(instance, 2, [instance(Unit) || Unit <- Sliced]) || Sliced =/= []]
        ++ [function(keeper, 1, Keepers) || [_ | _] = Keepers <- [witness_spec_let_code:keepers(Sliced, fun filter/1, Own)]]
        ++ [function(slice_names, 1, [names(Unit) || Unit <- Sliced]) || Sliced =/= []]
        ++ [function(alphabet, 1, [alphabet(Unit) || Unit <- Filtered] ++ [clause([any()], [], [atom(all)])])].

%% The first action that matches says to which slice an event belongs.
slice(#{over := Over, per := Per} = Unit, Event) ->
    Marked = lists:any(fun begins/1, Over),
    Chosen = [clause([Pattern], Guard, [choose(Action, Per, not Marked orelse begins(Action))]) ||
              #{pattern := Pattern, guard := Guard} = Action <- Over],
    clause([Event, filter(Unit)], [], ['case'(Event, Chosen ++ [clause([any()], [], [atom(skip)])])]).

begins(Action) -> maps:get(begins, Action, false).

%% The checker ensures that an action binds all variables of `per` or none.
choose(#{pattern := Pattern}, [Name | _] = Per, Begins) ->
    case ordsets:is_element(Name, witness_spec_pattern:variables(Pattern)) of
        true when Begins -> tuple([atom(slice), key(Per)]);
        true -> tuple([atom(live), key(Per)]);
        false -> atom(all)
    end;
choose(_, [], _) -> atom(all).

key(Per) -> tuple(vars(Per)).

instance(#{per := Per, start := Start} = Unit) ->
    clause([key(Per), filter(Unit)], [], [witness_spec_let_code:begun(Unit, tuple([atom(fresh), state(Start)]))]).

names(#{per := Per} = Unit) ->
    clause([filter(Unit)], [], [list([binary(atom_to_list(Name)) || Name <- Per])]).

alphabet(#{index := Index, over := Over} = Unit) ->
    clause([integer(Index)], [], [erl_parse:abstract(witness_spec_filter:alphabet(Over, maps:get(requests, Unit, false)))]).
