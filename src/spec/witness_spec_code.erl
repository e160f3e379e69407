-module(witness_spec_code).
-moduledoc """
Generates the Erlang module of a specification, as abstract code.

Each node (`m:witness_spec_node`) becomes a function of the event and the node's variables. It matches the event against
the node's actions in one `case` as far as these exclude each other (`m:witness_spec_overlap`), and returns what
`handle_event/2` returns: the next state or the verdict. Actions that may match the same event, and nodes inside the
node, have functions of their own, with results that are combined at run time (`m:witness_spec_formula`). So a function
has one `case`, and the author's names of variables can stay as they are. If an action matches, it is
marked in the process dictionary, for coverage.

The atoms in generated code do not depend on the specification: functions are called `s1`, `s2`... (nodes),
`p1`... (their further parts) and `m1`... (signatures), marks `$witness_1`, `$witness_2`...
""".
-include("witness_spec_time.hrl").

-export([generate/4, targets/1]).
-export_type([unit/0, limits/0]).

-import(witness_spec_abstract, [any/0, atom/1, call/2, 'case'/2, clause/3, function/3, integer/1, list/1, local/2,
                                is_computed/1, name/2, remote/3, state/1, tuple/1, values/1, var/1, vars/1]).

-doc """
A property ready for generation. `scope` are the variables that the signature binds; `start` and `nodes` are missing for
`none`. On which processes it depends too much, `unsure` says (`witness_spec_attach:unsure/1`). With `requests` its monitor is given the requests of replies, with `lets` it computes values. No signature names a property over
`all` processes; those `among` it reads. The actions of the nodes have an `id`, their number in the file.
""".
-type unit() :: #{index := pos_integer(),
                  signatures := [witness_spec_action:signature(), ...],
                  all => boolean(),
                  among => all | [witness_spec_action:signature(), ...],
                  scope => [atom()],
                  over => all | [witness_spec_action:action(), ...],
                  per => [atom()],
                  requests => boolean(),
                  unsure => [{attached | unknown, witness_spec_action:name(), boolean()}],
                  lets => [witness_spec_let:definition()],
                  start => witness_spec_node:target(),
                  nodes => [witness_spec_node:state_node()]}.

-doc "How large a state may be.".
-type limits() :: #{obligations := pos_integer(), words := pos_integer()}.

-type form() :: witness_spec_abstract:form().

%% The deadline of a node as it was given: it may be relative to the event. `?DEADLINE' is that at the event.
-define(GIVEN, '_@Given').

%% A `case' may test its clauses in order, and grouping compares all pairs.
-define(MAX_GROUP, 128).

-doc """
The forms of the module, each with or without a comment. A state has at most so many obligations, and one with
parameters at most so many words. `Names` are all
variables of the specification: the generator uses other names.
""".
-spec generate(module(), [unit()], limits(), Names :: [atom()]) -> [{Comment :: binary(), form()}].
generate(Module, Known, Limits, Names) ->
    Event = var(fresh("Event", Names)),
    Units = [put_times(Unit, Event) || Unit <- Known],
    Nodes = [Node || {_, Node} <- lists:ukeysort(1, [{Number, Node} || #{nodes := Found} <- Units,
                                                                     #{number := Number} = Node <- Found])],
    {Steps, _} = lists:mapfoldl(fun(Node, Next) -> steps(Node, {Event, Limits}, Next) end, 1, Nodes),
    Slices = witness_spec_slice:functions(Units, Event, {Module, words(Limits)}),
    Explained = witness_spec_explain:functions(Units),
    Members = among(Units) ++ unsure(Units),
    Exports = [{init, 3}, {handle_event, 2}, {match, 1}] ++ exports(Members) ++ exports(Slices)
        ++ [{value, 4} || lists:member({keeper, 1}, exports(Slices))]
        ++ ordsets:subtract(exports(Explained), [{deadlines, 1}, {ending, 1}, {text, 1}]),
    Values = witness_spec_let_code:functions(Units, Event),
    Functions = without_comments([match(Units, Names) | matches(Units, Names)])
        ++ without_comments(Members ++ [init(Units) | Slices] ++ [handle_event(Units, Nodes, Event, Limits, Names)])
        ++ lists:append(Steps)
        ++ without_comments([engaged(Units, Event) | Values ++ Explained]),
    without_comments([{attribute, erl_anno:new(0), module, Module},
                      {attribute, erl_anno:new(0), behaviour, witness_monitor},
                      {attribute, erl_anno:new(0), export, Exports}]
                     ++ [{attribute, erl_anno:new(0), witness_self, true} || asks_itself(Functions)]
                     ++ [{attribute, erl_anno:new(0), witness_exits, Reading} || [_ | _] = Reading <- [exits(Units)]])
        ++ Functions.

%% At a transition, deadlines begin with the time of the event.
put_times(#{nodes := Nodes} = Unit, Event) ->
    Change = fun({call, _, {atom, _, ?NOW}, []}) -> {done, time(Event)}; (_) -> inside end,
    Unit#{nodes := witness_spec_abstract:rewrite(Change, Nodes)};
put_times(Unit, _) -> Unit.

time(Event) -> remote(witness_event, ts, [Event]).

%% The properties with actions that are exits: for all others every exit is the same, whatever its reason.
exits(Units) ->
    [Index || #{index := Index, nodes := Nodes, lets := Lets} <- Units,
              #{kind := exit} <- [Action || #{leaves := Leaves} <- Nodes, {_, Action, _} <- Leaves]
                                 ++ witness_spec_parse:let_actions(Lets)].

%% Whether a guard calls `self()': then the monitor must run in its process.
asks_itself({call, _, {atom, _, self}, []}) -> true;
asks_itself({call, _, {remote, _, {atom, _, erlang}, {atom, _, self}}, []}) -> true;
asks_itself(Form) when is_tuple(Form) -> asks_itself(tuple_to_list(Form));
asks_itself([Form | Forms]) -> asks_itself(Form) orelse asks_itself(Forms);
asks_itself(_) -> false.

without_comments(Forms) -> [{<<>>, Form} || Form <- Forms].

exports(Forms) -> ordsets:from_list([{Name, Arity} || {function, _, Name, Arity, _} <- Forms]).

%% The first of Base, Base@1, Base@2... that the specification does not use.
fresh(Base, Names) -> fresh(Base, 0, #{atom_to_list(Name) => [] || Name <- Names}).

fresh(Base, N, Names) ->
    Candidate = case N of 0 -> Base; _ -> Base ++ "@" ++ integer_to_list(N) end,
    case is_map_key(Candidate, Names) of
        true -> fresh(Base, N + 1, Names);
        false -> list_to_atom(Candidate)
    end.

%% Signatures.

match(Units, Names) ->
    Signature = var(fresh("Signature", Names)),
    function(match, 1, [clause([Signature], [], [matching(named(Units), Signature)])]).

named(Units) -> [Index || #{index := Index} = Unit <- Units, not maps:get(all, Unit, false)].

matches(Units, Names) ->
    Signature = var(fresh("Signature", Names)),
    Named = named(Units),
    [begin
         Others = matching([Next || Next <- Named, Next > Index], Signature),
         Found = {cons, erl_anno:new(0), integer(Index), Others},
         function(name("m", Index), 1, [clause([Signature], [], ['case'(Signature,
             [clause([Pattern], Guard, [Found]) || #{pattern := Pattern, guard := Guard} <- Signatures]
                 ++ [clause([any()], [], [Others])])])])
     end || #{index := Index, signatures := Signatures} <- Units, lists:member(Index, Named)].

matching([], _) -> list([]);
matching([Index | _], Signature) -> call(name("m", Index), [Signature]).

%% Of a monitor of all processes: whether it reads one with this signature. All of it, or its arguments, may be unknown.
among(Units) ->
    Clauses = lists:append(
        [[by_name(Index, Signature, true) || Signature <- Signatures, witness_spec_attach:accepts_any(Signature)]
            ++ [by_name(Index, Signature, unknown) || Signature <- Signatures, not witness_spec_attach:accepts_any(Signature)]
            ++ [clause([integer(Index), tuple([atom(unknown), any(), any(), any()])], [], [atom(false)])]
            ++ [clause([integer(Index), Pattern], Guard, [atom(true)]) || #{pattern := Pattern, guard := Guard} <- Signatures]
            ++ [clause([integer(Index), atom(undefined)], [], [atom(unknown)]), clause([integer(Index), any()], [], [atom(false)])]
         || #{index := Index, among := [_ | _] = Signatures} <- Units]),
    [function(among, 2, Clauses ++ [clause([any(), any()], [], [atom(true)])]) || Clauses =/= []].

%% Of a monitor of a process: whether it depends on what is not known of one with this name.
unsure(Units) ->
    Clauses = [named(Index, Kind, Name, IsUnsure) || #{index := Index, unsure := Rows} <- Units, {Kind, Name, IsUnsure} <- Rows],
    [function(unsure, 2, Clauses ++ [clause([any(), any()], [], [atom(false)])]) || Clauses =/= []].

by_name(Index, Signature, Result) -> named(Index, unknown, witness_spec_action:name(Signature), Result).

named(Index, Kind, {M, F, A}, Result) ->
    Known = fun('_') -> any(); (Name) when is_atom(Name) -> atom(Name); (Arity) -> integer(Arity) end,
    clause([integer(Index), tuple([atom(Kind), Known(M), Known(F), Known(A)])], [], [atom(Result)]).

init(Units) ->
    Clauses = [clause([Pattern, any(), integer(Index)], Guard, [with_requests(Unit, tuple(init_result(Unit)))]) ||
               #{index := Index, signatures := Signatures, start := _} = Unit <- Units,
               #{pattern := Pattern, guard := Guard} <- Signatures],
    function(init, 3, Clauses ++ [clause([any(), any(), any()], [], [atom(ignore)])]).

with_requests(#{requests := true}, Begun) -> tuple([atom(requests), Begun]);
with_requests(_, Begun) -> Begun.

init_result(#{over := all, start := Start} = Unit) -> [atom(ok), witness_spec_let_code:begun(Unit, fresh(Start))];
init_result(#{per := [], start := Start} = Unit) ->
    State = case is_only_forbidden(Unit) of true -> state(Start); false -> fresh(Start) end,
    [atom(ok), witness_spec_let_code:begun(Unit, State), witness_spec_slice:filter(Unit)];
init_result(Unit) -> [atom(slices), witness_spec_slice:filter(Unit)].

fresh(Start) -> tuple([atom(fresh), state(Start)]).

%% Whether the alphabet has only kinds of events that the formula forbids, and nothing else is demanded: where all is well, such a
%% monitor may have nothing to read.
is_only_forbidden(#{over := Over, start := {node, Start, _}, nodes := Nodes}) ->
    Leaves = lists:append([Leaves || #{leaves := Leaves} <- untouched([Start], witness_spec_node:table(Nodes), #{}, [])]),
    Forbidden = [Kind || {box, #{kind := Kind}, {verdict, no}} <- Leaves],
    length(Forbidden) =:= length(Leaves) andalso
        (lists:member('else', Forbidden) orelse [] =:= [Kind || #{kind := Kind} <- Over, not lists:member(Kind, Forbidden)]).

%% Events.

handle_event(Units, Nodes, Event, #{obligations := Limit} = Limits, Names) ->
    State = var(fresh("State", Names)),
    Self = local(handle_event, 2),
    Failed = {match, erl_anno:new(0), tuple([atom(failed), any(), any()]), State},
    %% `unknown` decides nothing beside other obligations, but it does alone.
    Unsure = [Start || #{start := {node, Start, _}, nodes := [_ | _] = Own} <- Units, is_map_key(0, witness_spec_node:table(Own))],
    Whole = fun(Result) -> case Unsure of [] -> Result; _ -> formula(known, [Result]) end end,
    function(handle_event, 2,
        [clause([Event, state(Target)], [],
                [case lists:member(Number, Unsure) of
                     true -> Whole(step(Target, Event, Limits));
                     false -> step(Target, Event, Limits)
                 end]) || Node <- Nodes, {node, Number, _} = Target <- [node_target(Node)]]
        ++ [clause([Event, {match, erl_anno:new(0), tuple([atom(Operator), any()]), State}], [],
                   [Whole(formula(step, [Self, integer(Limit), Event, State]))]) || Operator <- ['and', 'or']]
        ++ [clause([Event, tuple([atom(fresh), State])], [],
                   [Whole(formula(first, [Self, local(engaged, 2), integer(Limit), Event, State]))])]
        ++ [clause([any(), Failed], [], [formula(begun, [words(Limits), State])])
            || lists:any(fun(Target) -> is_computed(Target) end, targets(Units))]
        ++ witness_spec_let_code:steps(Units, Event, words(Limits))).

-doc "Where the formulas of properties begin, and where each of their nodes leads.".
-spec targets([unit()]) -> [witness_spec_node:target()].
targets(Units) ->
    lists:append([[Start | lists:append([Children ++ [Target || {_, _, Target} <- Leaves]
                                         || #{leaves := Leaves, children := Children} <- Nodes])]
                  || #{start := Start, nodes := Nodes} <- Units]).

words(#{words := Words}) -> integer(Words).

node_target(#{number := Number, variables := Variables}) -> {node, Number, Variables}.

step({node, Number, Variables} = Target, Event, Limits) ->
    case is_computed(Target) of
        false -> call(name("s", Number), [Event | values(Variables)]);
        true -> formula(enter, [local(handle_event, 2), words(Limits), Event, state(Target)])
    end.

%% The functions of a node: one for each part. `Next` is the number of the next function that is not the first of a node.
steps(#{operator := {constant, unknown}, number := Number, text := Text} = Node, {_, Limits}, Next) ->
    {[{Text, function(name("s", Number), 1, [clause([any()], [], [ok(node_target(Node), {none, Limits})])])}], Next};
steps(#{operator := {constant, Verdict}, number := Number, text := Text} = Node, _, Next) ->
    {[{Text, function(name("s", Number), 1, [clause([any()], [], [decide(Verdict, Node, undefined, [])])])}], Next};
steps(#{number := Number, operator := Operator, leaves := Leaves, children := Children, variables := Variables,
        scope := Scope, text := Text} = Node, {Event, _} = Context, Next) ->
    [_ | Others] = Parts = parts(Operator, Leaves, Scope) ++ Children,
    Names = [name("s", Number) | [name("p", N) || N <- lists:seq(Next, Next + length(Others) - 1)]],
    Heads = [Event | vars(Variables)],
    Rests = [call(Name, Heads) || Name <- tl(Names)] ++ [none],
    [First | More] = [{Name, part(Part, Node, Context, Rest)} || {Name, Part, Rest} <- lists:zip3(Names, Parts, Rests)],
    Late = case Children of [] -> none; _ -> lists:nth(length(Children), lists:reverse(Names)) end,
    Functions = [first_step(First, Late, Heads, Node, Context)
                 | [function(Name, length(Heads), [clause(Heads, [], [Body])]) || {Name, Body} <- More]],
    {lists:zip([Text | [<<>> || _ <- Others]], Functions), Next + length(Others)}.

%% With a deadline, modalities take a step only in time. Nodes inside (`Late` is the function of the first one) have deadlines of
%% their own, of which some may have passed before.
first_step({Name, Body}, Late, [Event | Values] = Heads, Node, Context) ->
    function(Name, length(Heads), [case has_timed_modalities(Node) of
        true -> clause([Event | put_given(Values)], [], [in_time(Body, Late, Values, Node, Context)]);
        false -> clause(Heads, [], [Body])
    end]).

%% The deadline as it was given, in place of the one at this event.
put_given(Code) ->
    witness_spec_abstract:rewrite(fun({var, Anno, ?DEADLINE}) -> {done, {var, Anno, ?GIVEN}}; (_) -> inside end, Code).

in_time(Body, Late, Values, #{operator := Operator} = Node, {Event, _}) ->
    Unit = unit(Operator),
    'case'(passed(Event), [clause([{match, erl_anno:new(0), tuple([any(), any()]), var(?DEADLINE)}], [], [Body])]
        ++ [clause([atom(Verdict)], [], [case Verdict of
               Unit when Late =/= none -> call(Late, [Event | put_given(Values)]);
               _ -> decide(Verdict, Node, {deadline, var(?GIVEN)}, [])
           end]) || Verdict <- [no, yes]]
        ++ [clause([atom(inconclusive)], [], [without_time(Node)])]).

passed(Event) -> remote(witness_spec_time, passed, [var(?GIVEN), time(Event)]).

%% Something that depends on its time cannot be decided at this event.
without_time(#{location := {Line, Column}}) ->
    tuple([atom(verdict), atom(inconclusive),
           witness_spec_abstract:map([{reason, atom(no_time)}, {line, integer(Line)}, {column, integer(Column)}])]).

%% If the action of a leaf does not match, some modalities have no effect on the others: boxes in a conjunction, diamonds in a
%% disjunction. Such leaves are in one part as long as their actions exclude each other.
parts(Operator, Leaves, Scope) ->
    {Neutral, Others} = lists:partition(fun({Modality, _, _}) -> Modality =:= neutral(Operator) end, Leaves),
    Groups = lists:foldl(fun(Leaf, Acc) -> place(Leaf, Acc, Scope) end, [], Neutral),
    [{group, lists:reverse(Group)} || Group <- Groups] ++ [{single, Leaf} || Leaf <- Others].

neutral('and') -> box;
neutral('or') -> dia.

place(Leaf, [Group | Groups], Scope) ->
    case length(Group) < ?MAX_GROUP andalso lists:all(fun(Other) -> excludes(Leaf, Other, Scope) end, Group) of
        true -> [[Leaf | Group] | Groups];
        false -> [Group | place(Leaf, Groups, Scope)]
    end;
place(Leaf, [], _) ->
    [[Leaf]].

%% An event without a time may match an action with `at` whatever its guard says of the time.
excludes({_, #{kind := 'else'}, _}, {_, #{kind := 'else'}, _}, _) -> false;
excludes({_, #{kind := 'else', others := Others}, _}, {_, Action, _}, _) -> witness_spec_else:is_one_of(Action, Others);
excludes(Leaf, {_, #{kind := 'else'}, _} = Else, Scope) -> excludes(Else, Leaf, Scope);
excludes({_, Action, _}, {_, Other, _}, Scope) ->
    witness_spec_overlap:disjoint(at_any_time(Action), at_any_time(Other), Scope).

at_any_time(Action) ->
    case untimed(Action) of
        [] -> Action;
        [{_, Tests}] -> Action#{guard := Tests}
    end.

part({group, Leaves}, #{operator := Operator} = Node, {Event, _} = Context, Rest) ->
    {Elses, Described} = lists:partition(fun is_else/1, Leaves),
    Otherwise = case {Rest, Leaves} of
        {none, [{_, Action, _}]} -> decide(unit(Operator), Node, {unmatched, Action}, []);
        {none, _} -> decide(unit(Operator), Node, undefined, []);
        _ -> Rest
    end,
    'case'(Event, lists:append([match_step(Leaf, Node, Context, Rest) || Leaf <- Described])
                  ++ case Elses of
                         [] -> [clause([any()], [], [Otherwise])];
                         [Else] -> else_step(Else, [Action || {_, Action, _} <- Described], Otherwise, Node, Context, Rest)
                     end);
part({single, {_, #{kind := 'else'} = Action, _} = Else}, #{operator := Operator} = Node, {Event, _} = Context, Rest) ->
    'case'(Event, else_step(Else, [], decide(zero(Operator), Node, {unmatched, Action}, []), Node, Context, Rest));
part({single, {_, Action, _} = Leaf}, #{operator := Operator} = Node, {Event, _} = Context, Rest) ->
    'case'(Event, match_step(Leaf, Node, Context, Rest)
                  ++ [clause([any()], [], [decide(zero(Operator), Node, {unmatched, Action}, [])])]);
part({node, _, _} = Child, Node, {Event, Limits}, none) ->
    step(begin_now(Child, Node, Event), Event, Limits);
part({node, _, _} = Child, Node, {Event, Limits} = Context, Rest) ->
    combine(Node, Context, step(begin_now(Child, Node, Event), Event, Limits), Rest).

%% The deadline of a node with modalities has become a time at this event: one inside that begins with the same event has to, too.
begin_now(Child, Node, Event) ->
    case has_timed_modalities(Node) of
        true ->
            Now = remote(witness_spec_time, now, [var(?NOW), time(Event)]),
            witness_spec_abstract:rewrite(fun({var, _, ?NOW}) -> {done, Now};
                                             (?NOW) -> {done, {?NOW, Now, now}};
                                             (_) -> inside
                                          end, Child);
        false -> Child
    end.

has_timed_modalities(#{leaves := Leaves} = Node) -> Leaves =/= [] andalso witness_spec_node:is_timed(Node).

is_else({_, #{kind := Kind}, _}) -> Kind =:= 'else'.

%% The last clauses of a `case`: the step of an `else` if none of its others matches. `Before` are those with clauses in front.
else_step({_, #{others := Others} = Action, _} = Else, Before, Unmatched, Node, Context, Rest) ->
    Left = [Other || Other <- Others, not witness_spec_else:is_one_of(Other, Before)],
    [clause([Pattern], in_known_time(Other), [Unmatched]) || #{pattern := Pattern} = Other <- Left]
        ++ [clause([Untimed], Tests, [unknown(Action, Node, Context, Rest)])
            || Other <- Left, {Untimed, Tests} <- untimed(Other)]
        ++ match_step(Else, Node, Context, Rest).

unknown(Action, _, _, none) -> without_time(Action);
unknown(Action, Node, Context, Rest) -> combine(Node, Context, without_time(Action), Rest).

match_step({_, #{pattern := Pattern, guard := Guard} = Action, Target}, Node, Context, Rest) ->
    #{operator := Operator, scope := Scope} = Node,
    Unit = unit(Operator),
    Result = case Target of
        {verdict, Unit} when Rest =/= none ->
            Rest;
        {verdict, Verdict} ->
            Bound = ordsets:subtract(witness_spec_pattern:variables(Pattern), Scope) -- maps:get(each, Action, []),
            decide(Verdict, Node, {matched, Action}, Bound ++ maps:get(shown, Action, []));
        {node, _, _} when Rest =:= none ->
            ok(Target, Context);
        {node, _, _} ->
            combine(Node, Context, ok(Target, Context), Rest)
    end,
    [clause([Untimed], Tests, [unknown(Action, Node, Context, Rest)]) || {Untimed, Tests} <- untimed(Action)]
        ++ case Action of
               #{kind := 'else', pattern := {tuple, _, _}} ->
                   {Event, _} = Context,
                   Values = call(element, [op('-', call(tuple_size, [Event]), integer(1)), Event]),
                   [clause([any()], [], [{match, erl_anno:new(0), Pattern, Values}, mark(Action), Result])];
               _ -> [clause([Pattern], Guard, [mark(Action), Result])]
           end.

%% `a at T` for an event without a time: the pattern, and the tests that do not use `T`.
untimed(#{kind := 'else'}) -> [];
untimed(#{pattern := {tuple, Anno, Elements}, guard := Guard}) ->
    case lists:split(length(Elements) - 1, Elements) of
        {_, [{var, _, '_'}]} -> [];
        {Data, [{var, _, T}]} ->
            Without = [[Test || Test <- Tests, not ordsets:is_element(T, witness_spec_pattern:variables(Test))] || Tests <- Guard],
            [{{tuple, Anno, Data ++ [atom(undefined)]}, case lists:member([], Without) of true -> []; false -> Without end}]
    end.

%% `get' is cheaper than `put', and nearly always enough. One entry says whether there are new marks.
mark(#{id := Id}) ->
    Key = atom(name("$witness_", Id)),
    Unmarked = {op, erl_anno:new(0), '=:=', call(get, [Key]), atom(undefined)},
    New = [call(put, [Key, integer(Id)]), call(put, [atom('$witness_marked'), atom(true)])],
    {op, erl_anno:new(0), 'andalso', Unmarked, {block, erl_anno:new(0), New}}.

combine(#{operator := Operator}, {_, #{obligations := Limit}}, Left, Right) ->
    formula(case Operator of 'and' -> conj; 'or' -> disj end, [integer(Limit), Left, Right]).

decide(Verdict, #{variables := Variables} = Node, Decisive, Bound) ->
    {tuple, Anno, Elements} = witness_spec_explain:verdict(Verdict, {Node, Variables ++ Bound}, Decisive),
    {tuple, Anno, [atom(verdict) | Elements]}.

unit(Operator) -> witness_spec_explain:unit(Operator).
zero(Operator) -> witness_spec_formula:zero(Operator).

%% Whether an action other than `init` matches, for the nodes that can be reached without such a match. What is forbidden at once is
%% engaged by any event of its kind.
engaged(Units, Event) ->
    Clauses = [engaged_node(Node, Event) || #{start := {node, Start, _}, nodes := Nodes} <- Units,
                                            Node <- untouched([Start], witness_spec_node:table(Nodes), #{}, [init, 'else'])],
    function(engaged, 2, lists:uniq(Clauses) ++ [clause([any(), any()], [], [atom(false)])]).

engaged_node(#{leaves := Leaves, children := Children} = Node, Event) ->
    {Elses, Described} = lists:partition(fun is_else/1, Leaves),
    Engaging = [clause([Pattern], Guard, [atom(true)]) || {_, #{kind := Kind}, _} = Leaf <- Described, Kind =/= init,
                                                          {Pattern, Guard} <- [engaging(Leaf)]],
    Inside = lists:foldr(fun(Child, Else) ->
        op('orelse', call(engaged, [Event, state(Child)]), Else)
    end, atom(false), Children),
    {node, Number, Variables} = node_target(Node),
    case has_timed_modalities(Node) of
        true ->
            %% Late events engage nodes inside only.
            Given = tuple([integer(Number) | put_given(vars(Variables))]),
            Engages = else_engages(Elses, Event, 'case'(Event, Engaging ++ [clause([any()], [], [atom(false)])])),
            InTime = op('andalso', call(is_tuple, [passed(Event)]), Engages),
            clause([Event, Given], [], [op('orelse', InTime, put_given(Inside))]);
        false ->
            clause([Event, state({node, Number, Variables})], [],
                   [else_engages(Elses, Event, 'case'(Event, Engaging ++ [clause([any()], [], [Inside])]))])
    end.

%% A `case` in a function of its own: the names of its variables are those of others.
else_engages(Elses, Event, Rest) ->
    lists:foldr(fun(Else, Behind) ->
        Case = 'case'(Event, [clause([Pattern], Guard, [atom(false)]) || {Pattern, Guard} <- not_engaging(Else)]
                             ++ [clause([any()], [], [atom(true)])]),
        op('orelse', {call, erl_anno:new(0), {'fun', erl_anno:new(0), {clauses, [clause([], [], [Case])]}}, []}, Behind)
    end, Rest, Elses).

%% Which events engage no `else`: births, and what is described or may be described.
not_engaging({box, Action, {verdict, no}}) -> [birth(Action)];
not_engaging({_, #{others := Others} = Action, _}) ->
    [birth(Action) | [{Pattern, in_known_time(Other)} || #{pattern := Pattern} = Other <- Others]
               ++ lists:append([untimed(Other) || Other <- Others])].

birth(Action) -> {tuple([atom(init), any(), any(), any(), any() | [any() || is_map_key(values, Action)]]), []}.

op(Op, Left, Right) -> {op, erl_anno:new(0), Op, Left, Right}.

engaging({box, #{pattern := {tuple, _, [Kind | Fields]}}, {verdict, no}}) -> {tuple([Kind | [any() || _ <- Fields]]), []};
engaging({_, #{pattern := Pattern} = Action, _}) -> {Pattern, in_known_time(Action)}.

%% The guard under which it is known that the action matches.
in_known_time(#{pattern := {tuple, _, Elements}, guard := Guard} = Action) ->
    case {untimed(Action), Guard} of
        {[], _} -> Guard;
        {_, []} -> [[has_time(lists:last(Elements))]];
        _ -> [[has_time(lists:last(Elements)) | Tests] || Tests <- Guard]
    end.

%% Without a time it is not known whether the action matches.
has_time(Variable) -> {op, erl_anno:new(0), '=/=', Variable, atom(undefined)}.

%% The nodes that are reached without an action, or by actions of these kinds.
untouched([Number | Numbers], Nodes, Seen, Kinds) when is_map_key(Number, Seen) ->
    untouched(Numbers, Nodes, Seen, Kinds);
untouched([Number | Numbers], Nodes, Seen, Kinds) ->
    #{Number := #{leaves := Leaves, children := Children} = Node} = Nodes,
    Next = [Target || {_, #{kind := Kind}, {node, Target, _}} <- Leaves, lists:member(Kind, Kinds)]
        ++ [Child || {node, Child, _} <- Children],
    [Node | untouched(Next ++ Numbers, Nodes, Seen#{Number => []}, Kinds)];
untouched([], _, _, _) ->
    [].

ok(Target, {_, Limits}) ->
    case is_computed(Target) of
        false -> tuple([atom(ok), state(Target)]);
        true -> formula(begun, [words(Limits), state(Target)])
    end.

formula(Name, Arguments) -> remote(witness_spec_formula, Name, Arguments).
