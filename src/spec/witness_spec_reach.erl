-module(witness_spec_reach).
-moduledoc """
The parts of a formula that can be reached, given the order of the events of a process.

The first event of a process is its birth, it is born once, and has no events after its exit. A monitor without `group`
reads one process only; with `over` it reads the events that match an action of `over`. So a place of a formula is analysed
in *phases*: before the `first` event, `later`, and when the process has `ended`. A branch that is closed in each phase
in which it is reached can never be taken. The possible verdicts are those of the formula without such branches.

All answers are certain: a branch that is not understood counts as open.
""".

-export([formula/2]).
-export_type([context/0]).

-type formula() :: witness_spec_parse:formula().
-type action() :: witness_spec_action:action().
-type finding() :: witness_spec_diagnostic:finding().

-doc "The context of a property. `scope` are the variables that are bound before any event. `what` the formula was written as.".
-type context() :: #{what := formula | sentence | machine,
                     group := boolean(),
                     signatures := [witness_spec_action:signature(), ...],
                     scope := ordsets:ordset(atom()),
                     per := [atom()],
                     over := all | [action()]}.

-type phase() :: first | later | ended.
-type reason() :: not_born | born | ended | signature | over | begins.

%% With more actions than these in `over`, their effect is not analysed.
-define(MAX_ACTIONS, 200).

-doc "Warnings about branches that are never taken and verdicts that are never reached.".
-spec formula(formula(), context()) -> [finding()].
formula(Formula, Context) ->
    {Numbered, _} = numbered(Formula, 1),
    Reached = reach(Numbered, first, #{}, maps:get(scope, Context), prepare(Context), #{}),
    {Open, Findings} = prune(Numbered, Reached),
    #{what := What} = Context,
    Location = element(1, element(2, Formula)),
    [in_words(What, Finding) || Finding <- Findings] ++ verdicts(What, witness_spec_node:simplify(Open), Location, Reached).

%% A sentence and a machine have no branches.
in_words(formula, Finding) -> Finding;
in_words(_, {warning, Location, never_taken, _, Hint}) ->
    witness_spec_diagnostic:warning(Location, never_taken, "this action can never match", Hint).

%% Each place of the formula has a number in place of its location: what several uses of a definition have is the same one.
numbered({Modality, {_, Text}, Action, Formula}, N) when Modality =:= box; Modality =:= dia ->
    {Inner, Next} = numbered(Formula, N + 1),
    {{Modality, {N, Text}, Action, Inner}, Next};
numbered({Fixpoint, {_, Text}, Name, Parameters, Formula}, N) ->
    {Inner, Next} = numbered(Formula, N + 1),
    {{Fixpoint, {N, Text}, Name, Parameters, Inner}, Next};
numbered({Operator, Meta, Formulas}, N) when is_list(Formulas) ->
    {Inner, Next} = lists:mapfoldl(fun numbered/2, N, Formulas),
    {{Operator, Meta, Inner}, Next};
numbered(Formula, N) -> {Formula, N}.

%% The names that signatures and actions of `over` bind differ from those of the formula. `sees` are
%% the actions of the events that are read; `begins` are those among them that can begin an instance.
prepare(#{signatures := Signatures, scope := Scope, per := Per, over := Over, group := Group}) ->
    Spawned = [witness_spec_overlap:own(#{kind => init, pattern => Pattern, guard => Guard}, Scope) ||
               #{pattern := Pattern, guard := Guard} <- Signatures],
    Context = #{group => Group, spawned => Spawned},
    case Over of
        all ->
            Context#{sees => all, begins => all, birth => true};
        _ when length(Over) > ?MAX_ACTIONS ->
            Context#{sees => all, begins => all, birth => false};
        _ ->
            Sees = [witness_spec_overlap:own(Action, Scope) || Action <- Over],
            Begins = [Seen || {Seen, #{pattern := Pattern}} <- lists:zip(Sees, Over),
                              ordsets:is_subset(ordsets:from_list(Per), witness_spec_pattern:variables(Pattern))],
            Context#{sees => Sees, begins => Begins,
                     birth => Per =:= [] andalso lists:any(fun(Action) -> is_birth(Action, Scope, Spawned) end, Over)}
    end.

%% For each reached modality, by its place: the phases in which it is reached, and whether it is open there; `true` means that
%% the first event certainly matches it. Fixpoints are noted too, so that each is entered once in a phase.
reach({Modality, {Location, _}, Action, Formula}, Phase, Loops, Scope, Context, Reached) when
        Modality =:= box; Modality =:= dia ->
    #{Location := Phases} = Known = maps:merge(#{Location => #{}}, Reached),
    case Phases of
        #{Phase := _} ->
            Reached;
        _ ->
            Answer = open(Phase, Action, Scope, Context),
            Noted = Known#{Location := Phases#{Phase => Answer}},
            case is_boolean(Answer) of
                true ->
                    Bound = ordsets:union(Scope, witness_spec_pattern:variables(maps:get(pattern, Action))),
                    reach(Formula, next(Action, Context), Loops, Bound, Context, Noted);
                false ->
                    Noted
            end
    end;
reach({_, {Location, _}, Name, Parameters, Formula}, Phase, Loops, Scope, Context, Reached) ->
    Within = ordsets:union(Scope, witness_spec_parse:names(Parameters)),
    enter({Location, Name, Formula, Loops, Within}, Phase, Context, Reached);
reach({var, _, Name, _}, Phase, Loops, _, Context, Reached) ->
    enter(map_get(Name, Loops), Phase, Context, Reached);
reach({_, _, Formulas}, Phase, Loops, Scope, Context, Reached) ->
    lists:foldl(fun(Formula, Known) -> reach(Formula, Phase, Loops, Scope, Context, Known) end, Reached, Formulas);
reach({_, _}, _, _, _, _, Reached) ->
    Reached.

enter({Location, Name, Formula, Loops, Scope} = Loop, Phase, Context, Reached) ->
    Key = {fixpoint, Location, Phase},
    case Reached of
        #{Key := _} -> Reached;
        _ -> reach(Formula, Phase, Loops#{Name => Loop}, Scope, Context, Reached#{Key => []})
    end.

-spec next(action(), map()) -> later | ended.
next(#{kind := exit}, #{group := false}) -> ended;
next(_, _) -> later.

%% Whether an event can match here; `true` if the next one certainly does.
-spec open(phase(), action(), ordsets:ordset(atom()), map()) -> boolean() | reason().
open(ended, _, _, _) -> ended;
open(_, #{kind := 'else'}, _, _) -> false;
open(later, #{kind := init}, _, #{group := false}) -> born;
open(later, Action, Scope, #{sees := Sees}) -> seen(Action, Scope, Sees, over);
open(first, #{kind := init} = Action, Scope, #{birth := Birth, group := Group, spawned := Spawned} = Context) ->
    case (Birth orelse not Group) andalso lists:all(fun(Own) -> contradicts(Action, Own, Scope) end, Spawned) of
        true -> signature;
        false when Birth -> is_birth(Action, Scope, Spawned);
        false -> begins(Action, Scope, Context)
    end;
open(first, _, _, #{birth := true}) -> not_born;
open(first, Action, Scope, Context) -> begins(Action, Scope, Context).

begins(Action, Scope, #{sees := Sees, begins := Begins}) ->
    case seen(Action, Scope, Sees, over) of
        false -> seen(Action, Scope, Begins, begins);
        Reason -> Reason
    end.

seen(_, _, all, _) -> false;
seen(Action, Scope, Actions, Reason) ->
    case lists:all(fun(Seen) -> witness_spec_overlap:disjoint(Action, Seen, Scope) end, Actions) of
        true -> Reason;
        false -> false
    end.

%% The process was not spawned with that signature. `Spawned` is a signature in place of an action.
contradicts(#{pattern := {tuple, _, [_, _, _, Signature, _]}, guard := Guard}, Spawned, Scope) ->
    witness_spec_overlap:disjoint(#{kind => init, pattern => Signature, guard => Guard}, Spawned, Scope).

%% Whether it certainly matches the birth of a process that was spawned with one of these signatures.
is_birth(#{kind := init, guard := [], pattern := {tuple, _, [_, Child, Parent, Signature, _]} = Pattern},
         Scope, Spawned) ->
    Names = [Name || {Name, _} <- witness_spec_pattern:occurrences(Pattern)],
    Repeated = ordsets:from_list(Names -- lists:usort(Names)),
    Free = ordsets:subtract(ordsets:from_list(Names), ordsets:union(Scope, Repeated)),
    witness_spec_overlap:anything(Child, Free) andalso witness_spec_overlap:anything(Parent, Free)
        andalso lists:all(fun(#{pattern := Own}) -> witness_spec_overlap:covers_pattern(Signature, Own, Free) end, Spawned);
is_birth(_, _, _) ->
    false.

%% The formula without its closed branches.
prune({Modality, {Location, _} = Meta, Action, Formula}, Reached) when Modality =:= box; Modality =:= dia ->
    Phases = maps:get(Location, Reached, #{}),
    case [Reason || Phase <- [first, later, ended], #{Phase := Reason} <- [Phases]] of
        [Reason | _] = Reasons ->
            case lists:any(fun is_boolean/1, Reasons) of
                true ->
                    {Inner, Findings} = prune(Formula, Reached),
                    {{Modality, Meta, Action, Inner}, Findings};
                false ->
                    {{case Modality of box -> tt; dia -> ff end, Meta},
                     [never_taken(Action, Reason) || not is_map_key(implied, Action)]}
            end
    end;
prune({Fixpoint, Meta, Name, Parameters, Formula}, Reached) ->
    {Inner, Findings} = prune(Formula, Reached),
    {{Fixpoint, Meta, Name, Parameters, Inner}, Findings};
prune({Operator, Meta, Formulas}, Reached) when is_list(Formulas) ->
    {Inner, Findings} = lists:unzip([prune(Formula, Reached) || Formula <- Formulas]),
    {{Operator, Meta, Inner}, lists:append(Findings)};
prune(Formula, _) ->
    {Formula, []}.

never_taken(#{location := Location}, Reason) ->
    witness_spec_diagnostic:warning(Location, never_taken, "this branch can never be taken", hint(Reason)).

hint(not_born) -> "the first event of a process is its birth: put `[_ <- _, _]` in front";
hint(born) -> "only the first event of a process is its birth, and without `group` no other process is read";
hint(ended) -> "a process has no events after its exit, and without `group` no other process is read";
hint(signature) -> "the birth that is read has one of the signatures of `with`, and none of them matches";
hint(over) -> "no action of `over` lets such an event through";
hint(begins) -> "an instance begins with an event that gives the variables of `per` their values".

%% Only `ff` and `<...>` can make a formula false, only `tt` and `[...]` can make it true.
verdicts(What, Core, Location, Reached) ->
    Kinds = kinds(Core, Reached, #{}),
    case {What, maps:size(maps:with([ff, dia], Kinds)), maps:size(maps:with([tt, box], Kinds))} of
        %% It says this itself.
        {machine, _, _} -> [];
        {formula, 0, _} ->
            [witness_spec_diagnostic:warning(Location, never_violated, "this formula can never be violated",
                "neither `ff` nor `<...>` can be reached in it")];
        {sentence, 0, _} ->
            [witness_spec_diagnostic:warning(Location, never_violated, "this sentence can never be violated",
                "no event that it reads is what it forbids or waits for: look at its actions, and at `over`")];
        {formula, _, 0} ->
            [witness_spec_diagnostic:warning(Location, never_satisfied, "this formula can never be satisfied",
                "neither `tt` nor `[...]` can be reached in it")];
        {sentence, _, 0} ->
            [witness_spec_diagnostic:warning(Location, never_satisfied, "this sentence can never be satisfied",
                "no event that it reads is what it waits for: look at its actions, and at `over`")];
        _ ->
            []
    end.

%% A modality that the birth certainly matches decides nothing.
kinds({Kind, _}, _, Kinds) -> Kinds#{Kind => []};
kinds({var, _, _, _}, _, Kinds) -> Kinds;
kinds({Modality, {Location, _}, _, Formula}, Reached, Kinds) when Modality =:= box; Modality =:= dia ->
    case maps:values(map_get(Location, Reached)) of
        [true] -> kinds(Formula, Reached, Kinds);
        _ -> kinds(Formula, Reached, Kinds#{Modality => []})
    end;
%% When a deadline passes, `within` is false and `during` is true.
kinds({within, _, _, _, Formula}, Reached, Kinds) -> kinds(Formula, Reached, Kinds#{dia => []});
kinds({during, _, _, _, Formula}, Reached, Kinds) -> kinds(Formula, Reached, Kinds#{box => []});
kinds({_, _, _, _, Formula}, Reached, Kinds) -> kinds(Formula, Reached, Kinds);
kinds({_, _, Formulas}, Reached, Kinds) ->
    lists:foldl(fun(Formula, Known) -> kinds(Formula, Reached, Known) end, Kinds, Formulas).
