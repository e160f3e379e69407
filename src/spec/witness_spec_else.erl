-module(witness_spec_else).
-moduledoc """
The events that no modality of a combination describes.

`else` is an action for them. Until `properties/1` it has the pattern `_`, which is what all analyses know of it; then it
has the list of the `others`, the actions that it depends on: those of the modalities that are members of the same conjunction or
disjunction. Nested ones with the same operator count as one, and one with a single member as this member.
`simplify/1` of `m:witness_spec_node` leaves modalities where they are, so the others always stand in the same node as their `else`.

`warnings/2` finds where such events would end a loop without a word, where `[else] ff` would violate at the birth, and what an `<else>`
leaves open up to the end.
""".

-export([properties/1, is_one_of/2, warnings/2]).

-type action() :: witness_spec_action:action().

%% More actions in `over` are not compared with those of the formula.
-define(MAX_ACTIONS, 200).

-doc "The properties with what each `else` depends on. The actions of a formula are numbered from left to right (`order`).".
-spec properties([witness_spec_parse:property()]) -> [witness_spec_parse:property()].
properties(Properties) -> [property(Property) || Property <- Properties].

property(#{formula := Formula} = Property) ->
    {Numbered, _} = witness_spec_parse:actions(fun(Action, none, N) -> {Action#{order => N}, none, N + 1} end, none, 1, Formula),
    Property#{formula := resolve(Numbered, none, [])};
property(Property) -> Property.

%% `Around` is the operator of the combination that the formula is a member of, `Others` are the actions of its modalities.
resolve({Modality, Meta, #{kind := 'else'} = Action, Formula}, _, Others) ->
    {Modality, Meta, Action#{others => Others}, resolve(Formula, none, [])};
resolve({Modality, Meta, Action, Formula}, _, _) ->
    {Modality, Meta, Action, resolve(Formula, none, [])};
resolve({Fixpoint, Meta, Name, Parameters, Formula}, _, _) ->
    {Fixpoint, Meta, Name, Parameters, resolve(Formula, none, [])};
resolve({Operator, Meta, [Single]}, Around, Others) ->
    {Operator, Meta, [resolve(Single, Around, Others)]};
resolve({Operator, Meta, Formulas}, Operator, Others) ->
    {Operator, Meta, [resolve(Formula, Operator, Others) || Formula <- Formulas]};
resolve({Operator, Meta, Formulas} = Combination, _, _) when is_list(Formulas) ->
    Others = [Action || {_, _, #{kind := Kind} = Action, _} <- members(Operator, Combination), Kind =/= 'else'],
    {Operator, Meta, [resolve(Formula, Operator, Others) || Formula <- Formulas]};
resolve(Formula, _, _) -> Formula.

members(Operator, {_, _, [Single]}) -> members(Operator, Single);
members(Operator, {Operator, _, Formulas}) -> lists:flatmap(fun(Formula) -> members(Operator, Formula) end, Formulas);
members(_, Formula) -> [Formula].

-doc "Whether the action is one of these: it matches the same events.".
-spec is_one_of(action(), [action()]) -> boolean().
is_one_of(#{pattern := Pattern, guard := Guard}, Others) ->
    lists:any(fun(#{pattern := Other, guard := Tests}) -> Other =:= Pattern andalso Tests =:= Guard end, Others).

-doc "Warnings about a property. `Scope` are the variables that the signatures and `per` bind.".
-spec warnings(witness_spec_parse:property(), Scope :: ordsets:ordset(atom())) -> [witness_spec_diagnostic:finding()].
warnings(Property, Scope) -> loop_ends(Property, Scope) ++ at_birth(Property) ++ at_end(Property).

%% Without `over` the first event is the birth.
at_birth(#{formula := Formula, over := all}) ->
    Beginning = beginning(Formula),
    [witness_spec_diagnostic:warning(Location, else_birth, "`else` matches the birth of the process, which is its first event",
        "put `[_ <- _, _]` in front, or say with `over` which events count")
     || not lists:any(fun({_, _, #{kind := Kind}, _}) -> Kind =:= init end, Beginning),
        {box, _, #{kind := 'else', location := Location}, {ff, _}} <- Beginning];
at_birth(_) -> [].

beginning({Modality, _, _, _} = Formula) when Modality =:= box; Modality =:= dia -> [Formula];
beginning({_, _, _, _, Formula}) -> beginning(Formula);
beginning({_, _, Formulas}) when is_list(Formulas) -> lists:flatmap(fun beginning/1, Formulas);
beginning(_) -> [].

%% Something has to happen, but no event and no deadline says that it has not: the process may go on for ever without it.
at_end(#{formula := Formula} = Property) ->
    What = witness_spec_parse:what(Property),
    {Places, Where} = case Property of
        #{machine := #{states := States}} ->
            {[Hot || #{hot := true, location := Hot} <- States], "behind the name of the hot state"};
        #{} when What =:= sentence -> {[element(1, element(2, Formula))], "at its end"};
        #{} -> {[element(1, element(2, Formula))], "in front of what has to come"}
    end,
    [witness_spec_diagnostic:warning(Place, only_at_end,
        ["only the end of the trace can violate this ", atom_to_list(What)],
        ["what it waits for may come as long as the process runs; `within 5 s` ", Where, " gives it a time"])
     || Place <- lists:sublist(Places, 1), demands(Formula), not fails(Formula)].

demands({dia, _, _, _}) -> true;
demands({box, _, _, Formula}) -> demands(Formula);
demands({_, _, _, _, Formula}) -> demands(Formula);
demands({_, _, Formulas}) when is_list(Formulas) -> lists:any(fun demands/1, Formulas);
demands(_) -> false.

%% Whether an event or a deadline may make it false. With an `<else>` a disjunction fails only behind one of its actions.
fails({ff, _}) -> true;
fails({tt, _}) -> false;
fails({var, _, _, _}) -> false;
fails({dia, _, _, _}) -> true;
fails({within, _, _, _, _}) -> true;
fails({box, _, _, Formula}) -> fails(Formula);
fails({_, _, _, _, Formula}) -> fails(Formula);
fails({'and', _, Formulas}) -> lists:any(fun fails/1, Formulas);
fails({'or', _, Formulas} = Combination) ->
    Members = members('or', Combination),
    case [Formula || {dia, _, #{kind := 'else'}, Formula} <- Members] of
        [] -> lists:all(fun fails/1, Formulas);
        _ ->
            lists:any(fun({Modality, _, _, Formula}) when Modality =:= box; Modality =:= dia -> fails(Formula);
                         (_) -> false
                      end, Members)
    end.

%% Actions of `over` that no modality describes, if such an event ends a loop of the formula with `yes`.
loop_ends(#{formula := Formula, over := [_ | _] = Over, group := Group}, Scope) when length(Over) =< ?MAX_ACTIONS ->
    case loops(Formula) of
        [] -> [];
        [{Line, Column} | _] ->
            Described = witness_spec_parse:formula_actions(Formula),
            [witness_spec_diagnostic:warning(Location, loop_ends,
                ["no modality of the formula describes ", witness_spec_diagnostic:quote(Text),
                 io_lib:format(", so such an event ends the loop of line ~b, column ~b, with `yes`", [Line, Column])],
                "write `[else] X` beside the other modalities if the loop X is to go on, or leave the action out of `over`")
             || #{location := Location, text := Text, kind := Kind} = Action <- Over,
                %% After its exit a process has no events that the loop could miss.
                Kind =/= exit orelse Group,
                Own <- [witness_spec_overlap:own(Action, Scope)],
                lists:all(fun(Other) -> witness_spec_overlap:disjoint(Own, Other, Scope) end, Described)]
    end;
loop_ends(_, _) -> [].

%% The places of the fixpoints that are repeated, and that an event which they do not describe makes true.
loops({Fixpoint, {Location, _}, Name, _, Formula}) when Fixpoint =:= max; Fixpoint =:= min ->
    [Location || undescribed(Formula) =:= tt, is_repeated(Name, Formula)] ++ loops(Formula);
loops({_, _, _, _, Formula}) -> loops(Formula);
loops({Modality, _, _, Formula}) when Modality =:= box; Modality =:= dia -> loops(Formula);
loops({_, _, Formulas}) when is_list(Formulas) -> lists:flatmap(fun loops/1, Formulas);
loops(_) -> [].

undescribed({box, _, _, _}) -> tt;
undescribed({dia, _, _, _}) -> ff;
undescribed({var, _, _, _}) -> unknown;
undescribed({_, _, _, _, Formula}) -> undescribed(Formula);
undescribed({Operator, _, Formulas}) ->
    Zero = case Operator of 'and' -> ff; 'or' -> tt end,
    Values = [undescribed(Formula) || Formula <- Formulas],
    case {lists:member(Zero, Values), lists:member(unknown, Values)} of
        {true, _} -> Zero;
        {false, true} -> unknown;
        {false, false} -> case Operator of 'and' -> tt; 'or' -> ff end
    end;
undescribed({Constant, _}) -> Constant.

is_repeated(Name, {var, _, Name, _}) -> true;
is_repeated(Name, {Fixpoint, _, Name, _, _}) when Fixpoint =:= max; Fixpoint =:= min -> false;
is_repeated(Name, {_, _, _, _, Formula}) -> is_repeated(Name, Formula);
is_repeated(Name, {Modality, _, _, Formula}) when Modality =:= box; Modality =:= dia -> is_repeated(Name, Formula);
is_repeated(Name, {_, _, Formulas}) when is_list(Formulas) -> lists:any(fun(Formula) -> is_repeated(Name, Formula) end, Formulas);
is_repeated(_, _) -> false.
