-module(witness_spec_node).
-moduledoc """
Makes numbered nodes, the states of the generated monitor, of a formula.

A node is a maximal boolean combination of modalities: what must be satisfied between two events. First the constants
are folded (`simplify/1`); then every combination gets a number (`nodes/3`). A fixpoint is its body, and a
recursion variable is the node of its fixpoint: since recursion is guarded, there is an event between a node and its
recurrence.

A node is identified by its place and has the variables that are used from there on, including those of the fixpoints it may
return to. At a recurrence these have the values that they had where the fixpoint began: a binding inside
its body does not go around the loop, since it is not in scope there.
""".

-export([simplify/1, nodes/3]).
-export_type([core/0, state_node/0, leaf/0, target/0]).

-doc "A formula without constants inside; conjunctions and disjunctions are flat; every fixpoint is used.".
-type core() :: witness_spec_parse:formula().

-doc "The target of a transition: a verdict, or a node with its variables.".
-type target() :: {verdict, yes | no} | {node, Number :: pos_integer(), [Variable :: atom()]}.

-doc "A modality with the node that follows it.".
-type leaf() :: {box | dia, witness_spec_action:action(), target()}.

-doc """
A node. `operator` combines all its leaves and inner nodes; `constant` is a formula that is decided
before any event. `scope` are the variables that are bound there, `variables` those that are still needed.
""".
-type state_node() :: #{number := pos_integer(),
                  location := witness_spec_diagnostic:location(),
                  text := binary(),
                  scope := ordsets:ordset(atom()),
                  variables := [atom()],
                  operator := 'and' | 'or' | {constant, yes | no},
                  leaves := [leaf()],
                  children := [target()]}.

%% A state is a tuple of them, and a function has them as arguments.
-define(MAX_VARIABLES, 64).

-doc "Folds constants, flattens, and drops fixpoints with an unused variable.".
-spec simplify(witness_spec_parse:formula()) -> core().
simplify(Formula) ->
    {Core, _} = fold(Formula),
    Core.

%% Also returns the recursion variables that occur free.
fold({Constant, _} = Formula) when Constant =:= tt; Constant =:= ff -> {Formula, []};
fold({var, _, Name} = Formula) -> {Formula, [Name]};
fold({Modality, Meta, Action, Formula}) when Modality =:= box; Modality =:= dia ->
    {Core, Free} = fold(Formula),
    {{Modality, Meta, Action, Core}, Free};
fold({Fixpoint, Meta, Name, Formula}) ->
    {Core, Free} = fold(Formula),
    case ordsets:is_element(Name, Free) of
        true -> {{Fixpoint, Meta, Name, Core}, ordsets:del_element(Name, Free)};
        false -> {Core, Free}
    end;
fold({Operator, Meta, Formulas}) ->
    {Unit, Zero} = case Operator of 'and' -> {tt, ff}; 'or' -> {ff, tt} end,
    Folded = [fold(Formula) || Formula <- Formulas],
    case lists:keyfind(Zero, 1, [Core || {Core, _} <- Folded]) of
        false ->
            Kept = [Part || {Core, _} = Part <- Folded, element(1, Core) =/= Unit],
            Members = lists:append([case Core of {Operator, _, Inner} -> Inner; _ -> [Core] end || {Core, _} <- Kept]),
            Free = ordsets:union([Names || {_, Names} <- Kept]),
            case Members of
                [] -> {{Unit, Meta}, []};
                [Single] -> {Single, Free};
                _ -> {{Operator, Meta, Members}, Free}
            end;
        {Zero, Place} ->
            {{Zero, Place}, []}
    end.

-doc """
The nodes of a formula and its first node. `Scope` are the data variables that the signature binds, numbers count from
`First`.
""".
-spec nodes(core(), Scope :: ordsets:ordset(atom()), First :: pos_integer()) -> {target(), [state_node()]}.
nodes({Constant, {Location, Text}}, Scope, First) when Constant =:= tt; Constant =:= ff ->
    {{node, First, []},
     [#{number => First, location => Location, text => Text, scope => Scope, variables => [],
        operator => {constant, verdict(Constant)}, leaves => [], children => []}]};
nodes(Core, Scope, First) ->
    {Target, {_, Nodes}} = target(uses(Core, Scope), Scope, #{}, {First, []}),
    {Target, lists:reverse(Nodes)}.

verdict(tt) -> yes;
verdict(ff) -> no.

%% Adds to each place the data variables that are used from there on, and the recursion variables that occur free:
%% {Used, Free, Formula}. Variables that an action binds are not used before it.
uses({Constant, _} = Formula, _) when Constant =:= tt; Constant =:= ff -> {[], [], Formula};
uses({var, _, Name} = Formula, _) -> {[], [Name], Formula};
uses({Modality, Meta, Action, Formula}, Scope) when Modality =:= box; Modality =:= dia ->
    #{pattern := Pattern, guard := Guard} = Action,
    Variables = witness_spec_pattern:variables([Pattern | Guard]),
    {Used, Free, _} = Inner = uses(Formula, ordsets:union(Scope, Variables)),
    Needed = ordsets:union(ordsets:intersection(Variables, Scope),
                           ordsets:subtract(Used, ordsets:subtract(Variables, Scope))),
    {limit_variables(Needed, Meta), Free, {Modality, Meta, Action, Inner}};
uses({Fixpoint, Meta, Name, Formula}, Scope) when Fixpoint =:= max; Fixpoint =:= min ->
    {Used, Free, _} = Inner = uses(Formula, Scope),
    {Used, ordsets:del_element(Name, Free), {Fixpoint, Meta, Name, Inner}};
uses({Operator, Meta, Formulas}, Scope) ->
    Inner = [uses(Formula, Scope) || Formula <- Formulas],
    {Used, Free, _} = lists:unzip3(Inner),
    {limit_variables(ordsets:union(Used), Meta), ordsets:union(Free), {Operator, Meta, Inner}}.

limit_variables(Variables, _) when length(Variables) =< ?MAX_VARIABLES -> Variables;
limit_variables(_, Meta) -> throw(too_many(element(1, Meta))).

too_many(Location) ->
    witness_spec_diagnostic:error(Location, too_many_variables,
        io_lib:format("more than ~b variables are still needed here", [?MAX_VARIABLES])).

%% `Loops` maps the recursion variables in scope to their nodes. The last argument is the next free number with the
%% nodes made so far.
target({_, _, {tt, _}}, _, _, Made) -> {{verdict, yes}, Made};
target({_, _, {ff, _}}, _, _, Made) -> {{verdict, no}, Made};
target({_, _, {var, _, Name}}, _, Loops, Made) -> {map_get(Name, Loops), Made};
target({Used, Free, Formula}, Scope, Loops, {Number, Nodes}) ->
    Returns = [Variables || Name <- Free, {node, _, Variables} <- [map_get(Name, Loops)]],
    Meta = element(2, Formula),
    Variables = limit_variables(ordsets:union([Used | Returns]), Meta),
    Target = {node, Number, Variables},
    {Body, Within} = body(Formula, Target, Loops),
    {Node, {Next, Others}} = node(Body, Scope, Within, {Number + 1, Nodes}),
    {Location, Text} = Meta,
    {Target, {Next, [Node#{number => Number, location => Location, text => Text, scope => Scope,
                           variables => Variables} | Others]}}.

%% Fixpoints around a node have no node of their own.
body({Fixpoint, _, Name, {_, _, Formula}}, Target, Loops) when Fixpoint =:= max; Fixpoint =:= min ->
    body(Formula, Target, Loops#{Name => Target});
body(Formula, _, Loops) ->
    {Formula, Loops}.

node({box, _, _, _} = Formula, Scope, Loops, Made) -> node('and', [Formula], Scope, Loops, Made);
node({dia, _, _, _} = Formula, Scope, Loops, Made) -> node('or', [Formula], Scope, Loops, Made);
node({Operator, _, Members}, Scope, Loops, Made) ->
    {Modalities, Others} = lists:partition(fun({_, _, Member}) -> is_modality(Member) end, Members),
    {Children, After} = lists:mapfoldl(fun(Child, Acc) -> target(Child, Scope, Loops, Acc) end, Made, Others),
    {Node, End} = node(Operator, [Member || {_, _, Member} <- Modalities], Scope, Loops, After),
    {Node#{children => Children}, End}.

node(Operator, Modalities, Scope, Loops, Made) ->
    {Leaves, After} = lists:mapfoldl(fun({Modality, _, #{pattern := Pattern, guard := Guard} = Action, Behind}, Acc) ->
        Inner = ordsets:union(Scope, witness_spec_pattern:variables([Pattern | Guard])),
        {Target, Next} = target(Behind, Inner, Loops, Acc),
        {{Modality, Action, Target}, Next}
    end, Made, Modalities),
    {#{operator => Operator, leaves => Leaves, children => []}, After}.

is_modality({box, _, _, _}) -> true;
is_modality({dia, _, _, _}) -> true;
is_modality(_) -> false.
