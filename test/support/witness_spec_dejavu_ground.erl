-module(witness_spec_dejavu_ground).
-moduledoc """
Replaces the quantifiers of a property of DejaVu by the values of one log.

`exists` becomes a disjunction, `forall` a conjunction: over the values of the log, and as many others as a formula can tell apart.
What no event of the log can make true is false. A rule becomes one rule for each of its arguments.
""".

-export([property/2]).

-define(MEMBERS, 50_000).  % that are looked at

-type atoms() :: #{{Name :: binary(), Arity :: non_neg_integer()} => #{[term()] => []}}.

-doc "The property for this log, without quantifiers, and with rules without parameters. Throws `{outside, Reason}`.".
-spec property(witness_spec_dejavu_parse:property(), [witness_spec_dejavu:event()]) -> witness_spec_dejavu_parse:property().
property(#{formula := Formula, rules := Rules} = Property, Log) ->
    Bodies = [Formula | [Body || {_, Body} <- maps:values(Rules)]],
    Atoms = atoms(lists:append([events(Body) || Body <- Bodies]), Log),
    Seen = lists:usort(lists:append([Values || Occurring <- maps:values(Atoms), Values <- maps:keys(Occurring)])
                       ++ lists:append([constants(Body) || Body <- Bodies])),
    Depths = [0 | [length(Parameters) + depth(Body) || {Parameters, Body} <- maps:values(Rules)]],
    Values = Seen ++ [{unseen, N} || N <- lists:seq(1, depth(Formula) + lists:max(Depths))],
    [throw({outside, io_lib:format("~b values, and quantifiers of ~b variables", [length(Values), Depth])})
     || Depth <- [depth(Formula) | Depths], math:pow(length(Values), Depth) > ?MEMBERS],
    Context = #{atoms => Atoms, values => Values, seen => Seen},
    Whole = ground(Formula, #{}, Context),
    Instances = instances(used(Whole), Rules, Context, #{}),
    Never = never(maps:keys(Instances), Instances),
    Property#{formula := without(Never, Whole),
              rules := #{key(Rule) => {[], without(Never, Body)} || Rule := Body <- Instances, not lists:member(Rule, Never)}}.

events({event, _, _} = Event) -> [Event];
events(F) -> lists:append([events(G) || G <- operands(F)]).

constants({event, _, Arguments}) -> [Value || {value, Value} <- Arguments];
constants({rule, _, Arguments}) -> [Value || {value, Value} <- Arguments];
constants({compare, _, A, B}) -> [Value || {value, Value} <- [A, B]];
constants(F) -> lists:append([constants(G) || G <- operands(F)]).

depth({Quantifier, _, _, F}) when Quantifier =:= exists; Quantifier =:= forall -> 1 + depth(F);
depth(F) -> lists:max([0 | [depth(G) || G <- operands(F)]]).

operands({Quantifier, _, _, F}) when Quantifier =:= exists; Quantifier =:= forall -> [F];
operands({Operator, F}) when Operator =:= 'not'; Operator =:= previous -> [F];
operands({Operator, F, G}) when Operator =:= 'and'; Operator =:= 'or' -> [F, G];
operands({once, _, F}) -> [F];
operands({Operator, _, F, G}) when Operator =:= since; Operator =:= zince -> [F, G];
operands(_) -> [].

%% What the log has of each event.
-spec atoms([tuple()], [witness_spec_dejavu:event()]) -> atoms().
atoms(Events, Log) ->
    Occurring = maps:groups_from_list(fun(Event) -> {element(1, Event), tuple_size(Event) - 1} end,
                                      fun(Event) -> tl(tuple_to_list(Event)) end, [Event || {event, _, _, Event} <- Log]),
    #{{Name, length(Arguments)} => maps:from_keys(maps:get({Name, length(Arguments)}, Occurring, []), [])
      || {event, Name, Arguments} <- Events}.

ground({event, Name, Arguments}, Given, #{atoms := Atoms}) ->
    Values = [value(A, Given) || A <- Arguments],
    is_map_key(Values, map_get({Name, length(Values)}, Atoms)) andalso {event, Name, [{value, Value} || Value <- Values]};
ground({rule, Name, Arguments}, Given, _) -> {rule, Name, [{value, value(A, Given)} || A <- Arguments]};
ground({compare, Operator, A, B}, Given, _) ->
    Values = [value(A, Given), value(B, Given)],
    [throw({outside, "an order of values that no event has"}) || Operator =/= "=", {unseen, _} <- Values],
    apply(erlang, case Operator of "=" -> '=:='; "<=" -> '=<'; _ -> list_to_existing_atom(Operator) end, Values);
ground({exists, Variable, Among, F}, Given, #{values := Values, seen := Seen} = Context) ->
    any(case Among of
        all -> [ground(F, Given#{Variable => Value}, Context) || Value <- Values];
        seen ->
            [simple({'and', Was, ground(F, Given#{Variable => Value}, Context)})
             || Value <- Seen, Was <- [was_seen(Variable, Value, F, Context)], Was =/= false]
    end);
ground({forall, Variable, Among, F}, Given, Context) ->
    simple({'not', ground({exists, Variable, Among, {'not', F}}, Given, Context)});
ground(F, Given, Context) -> mapped(fun(G) -> ground(G, Given, Context) end, F).

value({var, Variable}, Given) -> map_get(Variable, Given);
value({value, Value}, _) -> Value.

%% DejaVu knows for each variable the values of the events that have it.
was_seen(Variable, Value, F, #{atoms := Atoms}) ->
    Events = [{event, Name, [{value, One} || One <- Values]}
              || {event, Name, Arguments} <- lists:usort(events(F)),
                 {I, {var, Other}} <- lists:enumerate(Arguments), Other =:= Variable,
                 Values <- maps:keys(map_get({Name, length(Arguments)}, Atoms)), lists:nth(I, Values) =:= Value],
    simple({once, always, any(Events)}).

any(Formulas) -> lists:foldl(fun(F, Others) -> simple({'or', Others, F}) end, false, Formulas).

mapped(Fun, F) -> simple(witness_spec_dejavu_text:map(Fun, F)).

simple(F) -> witness_spec_dejavu_text:simple(F).

%% Rules with their arguments.

used({rule, _, _} = Rule) -> [Rule];
used(F) -> lists:append([used(G) || G <- operands(F)]).

instances([], _, _, Done) -> Done;
instances([Rule | Others], Rules, Context, Done) when is_map_key(Rule, Done) -> instances(Others, Rules, Context, Done);
instances([{rule, Name, Arguments} = Rule | Others], Rules, Context, Done) ->
    {Parameters, Body} = map_get(Name, Rules),
    Of = ground(Body, maps:from_list(lists:zip(Parameters, [Value || {value, Value} <- Arguments])), Context),
    instances(used(Of) ++ Others, Rules, Context, Done#{Rule => Of}).

%% The greatest set of rules that are false as long as all of the set are.
never(Rules, Instances) ->
    case [Rule || Rule <- Rules, without(Rules, map_get(Rule, Instances)) =:= false] of
        Rules -> Rules;
        Fewer -> never(Fewer, Instances)
    end.

without(Never, {rule, _, _} = Rule) -> not lists:member(Rule, Never) andalso {rule, key(Rule), []};
without(Never, F) -> mapped(fun(G) -> without(Never, G) end, F).

key({rule, Name, Arguments}) -> iolist_to_binary(io_lib:format("~ts~0tp", [Name, Arguments])).
