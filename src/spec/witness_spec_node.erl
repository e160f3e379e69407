-module(witness_spec_node).
-moduledoc """
Makes numbered nodes, the states of the generated monitor, of a formula.

A node is a maximal boolean combination of modalities: what must be satisfied between two events. First the constants
are folded (`simplify/1`); then every combination gets a number (`nodes/3`). A fixpoint is its body, and a
recursion variable is the node of its fixpoint: since recursion is guarded, there is an event between a node and its
recurrence.

A node is identified by its place and has the variables that are used from there on, including those of the fixpoints it may
return to. At a recurrence these have the values that they had where the fixpoint began: a binding inside
its body does not go around the loop, since it is not in scope there. Parameters of the fixpoint have the values that the recursion
variable says.

`within` and `during` are like a fixpoint with the parameter `_@Deadline`, which every node inside needs. Its value is computed from
`_@Now`, the time of the event behind which the node begins, or `start`.

The node of `unknown` (`m:witness_spec_clocks`) has the number 0 in all formulas.
""".
-include("witness_spec_time.hrl").

-export([simplify/1, nodes/3, table/1, is_timed/1]).

-export_type([core/0, state_node/0, leaf/0, target/0, given/0]).

-doc "A formula without constants inside; conjunctions and disjunctions are flat; every fixpoint is used.".
-type core() :: witness_spec_parse:formula().

-doc """
The target of a transition: a verdict, or a node with its variables. A parameter that gets a value there stands with the expression, and
the place of what gives it.
""".
-type target() :: {verdict, yes | no} | {node, Number :: non_neg_integer(), [Variable :: atom() | given()]}.
-type given() :: {Parameter :: atom(), witness_spec_pattern:expr(), witness_spec_diagnostic:location()}.

-doc "A modality with the node that follows it.".
-type leaf() :: {box | dia, witness_spec_action:action(), target()}.

-doc """
A node. `operator` combines all its leaves and inner nodes; `constant` is a formula that is decided
before any event, or by none. `scope` are the variables that are bound there, `variables` those that are still needed.
""".
-type state_node() :: #{number := non_neg_integer(),
                  location := witness_spec_diagnostic:location(),
                  text := binary(),
                  scope := ordsets:ordset(atom()),
                  variables := [atom()],
                  operator := 'and' | 'or' | {constant, yes | no | unknown},
                  leaves := [leaf()],
                  children := [target()]}.

-define(IS_TIMED(Word), (Word =:= within orelse Word =:= during)).

%% A state is a tuple of them, and a function has them as arguments.
-define(MAX_VARIABLES, 64).

-doc "Folds constants, flattens, and drops fixpoints with an unused variable.".
-spec simplify(witness_spec_parse:formula()) -> core().
simplify(Formula) ->
    {Core, _} = fold(Formula),
    Core.

%% Also returns the recursion variables that occur free.
fold({Constant, _} = Formula) when Constant =:= tt; Constant =:= ff; Constant =:= unknown -> {Formula, []};
fold({var, _, Name, _} = Formula) -> {Formula, [Name]};
fold({Modality, Meta, Action, Formula}) when Modality =:= box; Modality =:= dia ->
    {Core, Free} = fold(Formula),
    {{Modality, Meta, Action, Core}, Free};
fold({Timed, Meta, Duration, [], Formula}) when ?IS_TIMED(Timed) ->
    {Core, Free} = fold(Formula),
    {case is_constant(Core) of
         true -> Core;
         false -> {Timed, Meta, Duration, [], Core}
     end, Free};
fold({Fixpoint, Meta, Name, Parameters, Formula}) ->
    {Core, Free} = fold(Formula),
    case {ordsets:is_element(Name, Free), Core} of
        {true, _} -> {{Fixpoint, Meta, Name, Parameters, Core}, ordsets:del_element(Name, Free)};
        {false, {var, Place, Other, Values}} -> {{var, Place, Other, replace(Values, first(Parameters, #{}))}, Free};
        {false, _} ->
            case Parameters =:= [] orelse is_constant(Core) of
                true -> {Core, Free};
                false -> {{Fixpoint, Meta, Name, Parameters, Core}, Free}
            end
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

is_constant({Constant, _}) -> Constant =:= tt orelse Constant =:= ff;
is_constant(_) -> false.

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
    {begin_at({atom, erl_anno:new(0), start}, Target), lists:reverse(Nodes)}.

-doc "Nodes by their numbers.".
-spec table([state_node()]) -> #{non_neg_integer() => state_node()}.
table(Nodes) -> #{Number => Node || #{number := Number} = Node <- Nodes}.

-doc "Whether the node has a deadline.".
-spec is_timed(state_node()) -> boolean().
is_timed(#{variables := Variables}) -> lists:member(?DEADLINE, Variables).

%% A target with the time from which deadlines count that begin there.
begin_at(_, {verdict, _} = Target) -> Target;
begin_at(Time, {node, Number, Variables}) ->
    Given = #{?NOW => {Time, none}},
    {node, Number, [case Variable of
                        ?NOW -> {?NOW, Time, now};
                        {Name, Value, Place} -> {Name, replace(Value, Given), Place};
                        _ -> Variable
                    end || Variable <- Variables]}.

verdict(tt) -> yes;
verdict(ff) -> no.

%% Adds to each place the data variables that are used from there on, and the recursion variables that occur free:
%% {Used, Free, Formula}. Variables that an action binds are not used before it.
uses({Constant, _} = Formula, _) when Constant =:= tt; Constant =:= ff; Constant =:= unknown -> {[], [], Formula};
uses({var, Meta, Name, Values} = Formula, _) -> {limit_variables(witness_spec_pattern:variables(Values), Meta), [Name], Formula};
uses({Modality, Meta, Action, Formula}, Scope) when Modality =:= box; Modality =:= dia ->
    #{pattern := Pattern, guard := Guard} = Action,
    Variables = witness_spec_pattern:variables([Pattern | Guard]),
    {Used, Free, _} = Inner = uses(Formula, ordsets:union(Scope, Variables)),
    Behind = ordsets:del_element(?NOW, ordsets:subtract(Used, ordsets:subtract(Variables, Scope))),
    Needed = ordsets:union([ordsets:intersection(Variables, Scope), ordsets:intersection([?DEADLINE], Scope), Behind]),
    {limit_variables(Needed, Meta), Free, {Modality, Meta, Action, Inner}};
uses({Timed, {Location, _} = Meta, {duration, Nanoseconds} = Name, [], Formula}, Scope) when ?IS_TIMED(Timed) ->
    Outer = case ordsets:is_element(?DEADLINE, Scope) of
        true -> witness_spec_abstract:var(?DEADLINE);
        false -> witness_spec_abstract:atom(none)
    end,
    Verdict = case Timed of within -> no; during -> yes end,
    Deadline = witness_spec_abstract:remote(witness_spec_time, deadline,
        [witness_spec_abstract:var(?NOW), witness_spec_abstract:integer(Nanoseconds), witness_spec_abstract:atom(Verdict), Outer]),
    Parameters = [{?DEADLINE, Location, Deadline}],
    {Used, Free, _} = Inner = uses(Formula, ordsets:add_element(?DEADLINE, Scope)),
    {limit_variables(before(Parameters, Used), Meta), Free, {Timed, Meta, Name, Parameters, Inner}};
uses({Fixpoint, Meta, Name, Parameters, Formula}, Scope) when Fixpoint =:= max; Fixpoint =:= min ->
    Names = witness_spec_parse:names(Parameters),
    {Used, Free, _} = Inner = uses(Formula, ordsets:union(Scope, Names)),
    {limit_variables(before(Parameters, Used), Meta), ordsets:del_element(Name, Free),
     {Fixpoint, Meta, Name, Parameters, Inner}};
uses({Operator, Meta, Formulas}, Scope) ->
    Inner = [uses(Formula, Scope) || Formula <- Formulas],
    {Used, Free, _} = lists:unzip3(Inner),
    {limit_variables(ordsets:union(Used), Meta), ordsets:union(Free), {Operator, Meta, Inner}}.

limit_variables(Variables, _) when length(Variables) =< ?MAX_VARIABLES -> Variables;
limit_variables(_, Meta) -> throw(too_many(element(1, Meta))).

too_many(Location) ->
    witness_spec_diagnostic:error(Location, too_many_variables,
        io_lib:format("more than ~b variables are still needed here", [?MAX_VARIABLES])).

%% `Loops` maps the recursion variables in scope to their nodes: the number, the variables, the names of the parameters, and
%% the parameters of the fixpoints that stand between this one and the node, which begin again. The last argument is the next free
%% number with the nodes made so far.
target({_, _, {tt, _}}, _, _, Made) -> {{verdict, yes}, Made};
target({_, _, {ff, _}}, _, _, Made) -> {{verdict, no}, Made};
target({_, _, {var, {Location, _}, Name, Values}}, _, Loops, Made) ->
    #{Name := {Number, Variables, Names, Inner}} = Loops,
    Given = maps:from_list(lists:zip(Names, [{Value, Location} || Value <- Values])),
    {{node, Number, given(Variables, first(Inner, Given))}, Made};
target({_, _, {unknown, {Location, Text}}}, _, _, {Number, Nodes}) ->
    {{node, 0, []},
     {Number, [#{number => 0, location => Location, text => Text, scope => [], variables => [], operator => {constant, unknown},
                 leaves => [], children => []} | Nodes]}};
target({_, Free, Formula} = Whole, Scope, Loops, {Number, Nodes}) ->
    {Location, Text} = Meta = element(2, Formula),
    {Parameters, {Used, Back, Body}} = body(Whole),
    Variables = limit_variables(ordsets:union([Used | [kept(map_get(Name, Loops)) || Name <- Free]] ++ again(Whole, Back)), Meta),
    Within = ordsets:union(Scope, witness_spec_parse:names(Parameters)),
    {Node, {Next, Others}} = node(Body, Within, loops(Whole, Number, Variables, Loops), {Number + 1, Nodes}),
    {{node, Number, given(Variables, first(Parameters, #{}))},
     {Next, [Node#{number => Number, location => Location, text => Text, scope => Within, variables => Variables} | Others]}}.

%% Fixpoints around a node have no node of their own. Their parameters, from the outermost one on.
body({_, _, {_, _, _, Parameters, Inner}}) ->
    {More, Body} = body(Inner),
    {Parameters ++ More, Body};
body(Body) ->
    {[], Body}.

%% What is needed to begin the inner ones of these fixpoints again.
again({_, _, {_, _, Name, _, {Used, _, _} = Inner}}, Back) ->
    [Used || lists:member(Name, Back)] ++ again(Inner, Back);
again(_, _) -> [].

loops({_, _, {_, _, Name, Parameters, Formula}}, Number, Variables, Loops) ->
    {Inner, _} = body(Formula),
    loops(Formula, Number, Variables, Loops#{Name => {Number, Variables, [P || {P, _, _} <- Parameters], Inner}});
loops(_, _, _, Loops) ->
    Loops.

%% The variables that keep their values on the way back to a node.
kept({_, Variables, Names, Inner}) -> ordsets:subtract(before(Inner, Variables), ordsets:from_list(Names)).

%% The variables that are needed before these parameters have got their first values.
before(Parameters, Variables) ->
    lists:foldr(fun({Name, _, Value}, Needed) ->
        case ordsets:is_element(Name, Needed) of
            true -> ordsets:union(ordsets:del_element(Name, Needed), witness_spec_pattern:variables(Value));
            false -> Needed
        end
    end, Variables, Parameters).

%% Adds the first values of parameters, each of which may depend on those before it.
first(Parameters, Given) ->
    lists:foldl(fun({Name, Location, Value}, Known) -> Known#{Name => {replace(Value, Known), Location}} end, Given, Parameters).

given(Variables, Given) ->
    [case Given of
         #{Name := {Value, Location}} -> {Name, Value, Location};
         #{} -> Name
     end || Name <- Variables].

replace(Expr, Given) ->
    witness_spec_abstract:rewrite(fun({var, _, Name}) when is_map_key(Name, Given) -> {done, element(1, map_get(Name, Given))};
                                     (_) -> inside
                                  end, Expr).

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
        {{Modality, Action, begin_at({call, erl_anno:new(0), {atom, erl_anno:new(0), ?NOW}, []}, Target)}, Next}
    end, Made, Modalities),
    {#{operator => Operator, leaves => Leaves, children => []}, After}.

is_modality({box, _, _, _}) -> true;
is_modality({dia, _, _, _}) -> true;
is_modality(_) -> false.
