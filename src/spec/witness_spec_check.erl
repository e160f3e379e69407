-module(witness_spec_check).
-moduledoc """
What is wrong with a specification that is well-formed, and what is suspicious about it.

Errors: variables and recursion variables that are not bound, recursion without an action in between, what does not
belong to sHML in a `monitor`, names that are used twice. Warnings: formulas that can reach one verdict only, branches
of a `monitor` that match the same event, variables that only some of the signatures bind.
""".

-export([properties/1]).

-type finding() :: witness_spec_diagnostic:finding().

-doc "All findings about these properties.".
-spec properties([witness_spec_parse:property()]) -> [finding()].
properties(Properties) ->
    names(Properties, #{}) ++ lists:append([property(Property) || Property <- Properties]).

names([#{name := Name, location := {Line, _} = Location} | Rest], Seen) when is_binary(Name) ->
    case Seen of
        #{Name := First} ->
            [witness_spec_diagnostic:error(Location, duplicate_name,
                ["a property has the name ", witness_spec_diagnostic:quote(Name), " already"],
                io_lib:format("the first one is in line ~b", [First])) | names(Rest, Seen)];
        _ ->
            names(Rest, Seen#{Name => Line})
    end;
names([_ | Rest], Seen) -> names(Rest, Seen);
names([], _) -> [].

property(#{signatures := Signatures} = Property) ->
    Bound = [witness_spec_pattern:variables(Pattern) || #{pattern := Pattern} <- Signatures],
    Scope = ordsets:intersection(Bound),
    Partly = ordsets:subtract(ordsets:union(Bound), Scope),
    lists:append([unbound(Guard, witness_spec_pattern:variables(Pattern), []) ||
                  #{pattern := Pattern, guard := Guard} <- Signatures])
        ++ case Property of
            #{formula := Formula, dialect := Dialect} ->
                Findings = formula(Formula, #{dialect => Dialect, scope => Scope, partly => Partly, loops => #{}}, []),
                %% What an error leaves out may be what would have decided.
                case lists:keymember(error, 1, Findings) of
                    true -> Findings;
                    false -> Findings ++ verdicts(Formula)
                end;
            _ ->
                []
        end.

%% `loops` maps the recursion variables in scope to whether an action lies in between.
formula({Constant, _}, _, Findings) when Constant =:= tt; Constant =:= ff ->
    Findings;
formula({var, {Location, _}, Name}, #{loops := Loops}, Findings) ->
    Quoted = witness_spec_diagnostic:quote(atom_to_list(Name)),
    case Loops of
        #{Name := guarded} ->
            Findings;
        #{Name := unguarded} ->
            [witness_spec_diagnostic:error(Location, unguarded_recursion,
                ["the recursion variable ", Quoted, " is reached without an action in between"],
                ["put a modality in front of it, as in `[P ? _] ", atom_to_list(Name), "`"]) | Findings];
        _ ->
            [witness_spec_diagnostic:error(Location, unbound_recursion_variable,
                ["the recursion variable ", Quoted, " is not bound"],
                ["it is bound by a `max ", atom_to_list(Name), ".` or `min ", atom_to_list(Name), ".` around it; ",
                 "`max X.(f)` ends at its parenthesis"]) | Findings]
    end;
formula({Modality, {Location, _}, Action, Formula}, #{scope := Scope} = Context, Findings) when
        Modality =:= box; Modality =:= dia ->
    #{pattern := Pattern, guard := Guard} = Action,
    #{partly := Partly, loops := Loops} = Context,
    Inner = ordsets:union(Scope, witness_spec_pattern:variables(Pattern)),
    Found = outside(Modality, Location, Context) ++ unbound(Guard, Inner, Partly) ++ partly(Pattern, Scope, Partly),
    formula(Formula, Context#{scope := Inner, partly := ordsets:subtract(Partly, Inner),
                              loops := #{Name => guarded || Name := _ <- Loops}}, Found ++ Findings);
formula({Fixpoint, {Location, _}, Name, Formula}, #{loops := Loops} = Context, Findings) when
        Fixpoint =:= max; Fixpoint =:= min ->
    formula(Formula, Context#{loops := Loops#{Name => unguarded}}, outside(Fixpoint, Location, Context) ++ Findings);
formula({Operator, {Location, _}, Formulas}, Context, Findings) ->
    lists:foldl(fun(Formula, Found) -> formula(Formula, Context, Found) end,
                outside(Operator, Location, Context) ++ overlaps(Operator, Formulas, Context) ++ Findings, Formulas).

outside(Construct, Location, #{dialect := monitor}) when Construct =:= dia; Construct =:= 'or'; Construct =:= min ->
    Written = case Construct of dia -> "<...>"; _ -> atom_to_list(Construct) end,
    [witness_spec_diagnostic:error(Location, not_shml,
        ["`", Written, "` is not part of sHML, which `monitor` stands for"],
        "use `check` for the whole logic")];
outside(_, _, _) ->
    [].

unbound(Guard, Bound, Partly) ->
    [case ordsets:is_element(Name, Partly) of
        true ->
            witness_spec_diagnostic:error(Location, unbound_variable,
                [Quoted, " is not bound by all of the signatures"],
                "a variable of the signatures can be used if each of them binds it");
        false ->
            witness_spec_diagnostic:error(Location, unbound_variable, ["the variable ", Quoted, " is not bound"])
     end || {Name, Location} <- witness_spec_pattern:occurrences(Guard), not ordsets:is_element(Name, Bound),
            Quoted <- [witness_spec_diagnostic:quote(atom_to_list(Name))]].

partly(Pattern, Scope, Partly) ->
    [witness_spec_diagnostic:warning(Location, partly_bound,
        [witness_spec_diagnostic:quote(atom_to_list(Name)),
         " is a new variable here: not all of the signatures bind it"], undefined) ||
     {Name, Location} <- witness_spec_pattern:occurrences(Pattern),
     not ordsets:is_element(Name, Scope), ordsets:is_element(Name, Partly)].

%% More branches than these are not compared with each other.
-define(MAX_BRANCHES, 200).

overlaps('and', Formulas, #{dialect := monitor, scope := Scope}) when length(Formulas) =< ?MAX_BRANCHES ->
    later([Action || {box, _, Action, _} <- Formulas], Scope);
overlaps(_, _, _) ->
    [].

later([#{location := {Line, Column}} = Action | Actions], Scope) ->
    [witness_spec_diagnostic:warning(Location, overlapping_branches,
        "this branch can match the same event as an earlier one",
        io_lib:format("the earlier one is in line ~b, column ~b; both will have to hold", [Line, Column])) ||
     #{location := Location} = Other <- Actions, witness_spec_overlap:overlapping(Action, Other, Scope)]
        ++ later(Actions, Scope);
later([], _) ->
    [].

%% Only `ff` and `<...>` can make a formula false, only `tt` and `[...]` can make it true.
verdicts(Formula) ->
    Core = witness_spec_node:simplify(Formula),
    {Location, _} = element(2, Formula),
    Kinds = kinds(Core, #{}),
    case {maps:size(maps:with([ff, dia], Kinds)), maps:size(maps:with([tt, box], Kinds))} of
        {0, _} ->
            [witness_spec_diagnostic:warning(Location, never_violated, "this formula can never be violated",
                "neither `ff` nor `<...>` can be reached in it")];
        {_, 0} ->
            [witness_spec_diagnostic:warning(Location, never_satisfied, "this formula can never be satisfied",
                "neither `tt` nor `[...]` can be reached in it")];
        _ ->
            []
    end.

kinds({Kind, _}, Kinds) -> Kinds#{Kind => []};
kinds({var, _, _}, Kinds) -> Kinds;
kinds({Kind, _, _, Formula}, Kinds) -> kinds(Formula, Kinds#{Kind => []});
kinds({_, _, Formulas}, Kinds) -> lists:foldl(fun kinds/2, Kinds, Formulas).
