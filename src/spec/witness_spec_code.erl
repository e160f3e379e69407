-module(witness_spec_code).
-moduledoc """
Generates the Erlang module of a specification, as abstract code.

Each node (`m:witness_spec_node`) becomes a function of the event and the node's variables. It matches the event against
the node's actions in one `case` as far as these exclude each other (`m:witness_spec_overlap`), and returns what
`handle_event/2` returns: the next state or the verdict. Actions that may match the same event, and nodes inside the
node, go on in a function of their own, whose result is combined at run time (`m:witness_spec_formula`). So a function
holds one `case`, and the names that the author gave to variables can stand as they are.

The atoms that generated code needs do not depend on the specification: functions are called `s1`, `s2`... (nodes),
`p1`... (their further parts) and `m1`... (signatures).
""".

-export([generate/3]).
-export_type([unit/0]).

-doc "A property ready for generation; `start` and `nodes` are missing for `none`.".
-type unit() :: #{index := pos_integer(),
                  signatures := [witness_spec_action:signature(), ...],
                  start => witness_spec_node:target(),
                  nodes => [witness_spec_node:state_node()]}.

-type form() :: erl_parse:abstract_form().

%% A `case` tests its clauses in order where the compiler cannot do better, and grouping compares all pairs.
-define(MAX_GROUP, 128).

-doc """
The forms of the module, each with a comment or without one. `Names` are all variables of the specification: those of
the generator keep clear of them.
""".
-spec generate(module(), [unit()], Names :: [atom()]) -> [{Comment :: binary(), form()}].
generate(Module, Units, Names) ->
    Event = var(fresh("Event", Names)),
    Nodes = [Node || {_, Node} <- lists:keysort(1, [{Number, Node} || #{nodes := Found} <- Units,
                                                                     #{number := Number} = Node <- Found])],
    {Steps, _} = lists:mapfoldl(fun(Node, Next) -> steps(Node, Event, Next) end, 1, Nodes),
    uncommented([{attribute, a(), module, Module},
                 {attribute, a(), behaviour, witness_monitor},
                 {attribute, a(), export, [{init, 3}, {handle_event, 2}, {handle_end, 2}, {describe, 1}, {alphabet, 1},
                                           {match, 1}]}])
        ++ uncommented([match(Units, Names) | matches(Units, Names)])
        ++ uncommented([init(Units), alphabet(), handle_event(Nodes, Event, Names)])
        ++ lists:append(Steps)
        ++ uncommented([engaged(Units, Event), handle_end(), ending(Nodes), describe(), text(Nodes)]).

uncommented(Forms) -> [{<<>>, Form} || Form <- Forms].

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
    function(match, 1, [clause([Signature], [], [matching(1, length(Units), Signature)])]).

matches(Units, Names) ->
    Signature = var(fresh("Signature", Names)),
    [begin
         Others = matching(Index + 1, length(Units), Signature),
         function(name("m", Index), 1, [clause([Signature], [], [{'case', a(), Signature,
             [clause([Pattern], Guard, [{cons, a(), {integer, a(), Index}, Others}]) ||
                 #{pattern := Pattern, guard := Guard} <- Signatures] ++ [clause([any()], [], [Others])]}])])
     end || #{index := Index, signatures := Signatures} <- Units].

matching(Index, Count, _) when Index > Count -> {nil, a()};
matching(Index, _, Signature) -> call(name("m", Index), [Signature]).

init(Units) ->
    Clauses = [clause([Pattern, any(), {integer, a(), Index}], Guard, [ok(tuple([atom(fresh), state(Start)]))]) ||
               #{index := Index, signatures := Signatures, start := Start} <- Units,
               #{pattern := Pattern, guard := Guard} <- Signatures],
    function(init, 3, Clauses ++ [clause([any(), any(), any()], [], [atom(ignore)])]).

alphabet() -> function(alphabet, 1, [clause([any()], [], [atom(all)])]).

%% Events.

handle_event(Nodes, Event, Names) ->
    State = var(fresh("State", Names)),
    Self = local(handle_event, 2),
    function(handle_event, 2,
        [clause([Event, state(node_target(Node))], [], [step(node_target(Node), Event)]) || Node <- Nodes]
        ++ [clause([Event, {match, a(), tuple([atom(Operator), any()]), State}], [],
                   [remote(step, [Self, Event, State])]) || Operator <- ['and', 'or']]
        ++ [clause([Event, tuple([atom(fresh), State])], [],
                   [remote(first, [Self, local(engaged, 2), Event, State])])]).

node_target(#{number := Number, variables := Variables}) -> {node, Number, Variables}.

step({node, Number, Variables}, Event) -> call(name("s", Number), [Event | vars(Variables)]).

%% The functions of a node: one for each part. `Next` is the number of the next function that is not a node's first.
steps(#{operator := {constant, Verdict}, number := Number, text := Text} = Node, _, Next) ->
    {[{Text, function(name("s", Number), 1, [clause([any()], [], [decided(Verdict, Node, undefined, [])])])}], Next};
steps(#{number := Number, operator := Operator, leaves := Leaves, children := Children, variables := Variables,
        scope := Scope, text := Text} = Node, Event, Next) ->
    [_ | Others] = Parts = parts(Operator, Leaves, Scope) ++ Children,
    Names = [name("s", Number) | [name("p", N) || N <- lists:seq(Next, Next + length(Others) - 1)]],
    Heads = [Event | vars(Variables)],
    Rests = [call(Name, Heads) || Name <- tl(Names)] ++ [none],
    Functions = [function(Name, length(Heads), [clause(Heads, [], [part(Part, Operator, Node, Event, Rest)])]) ||
                 {Name, Part, Rest} <- lists:zip3(Names, Parts, Rests)],
    {lists:zip([Text | [<<>> || _ <- Others]], Functions), Next + length(Others)}.

%% Leaves whose modality leaves the others alone where its action does not match (boxes in a conjunction, diamonds in a
%% disjunction) stand together as long as their actions exclude each other.
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

excludes({_, Action, _}, {_, Other, _}, Scope) -> witness_spec_overlap:disjoint(Action, Other, Scope).

part({group, Leaves}, Operator, Node, Event, Rest) ->
    Otherwise = case {Rest, Leaves} of
        {none, [{_, Action, _}]} -> decided(unit(Operator), Node, Action, []);
        {none, _} -> decided(unit(Operator), Node, undefined, []);
        _ -> Rest
    end,
    {'case', a(), Event, [matched(Leaf, Operator, Node, Rest) || Leaf <- Leaves] ++ [clause([any()], [], [Otherwise])]};
part({single, {_, Action, _} = Leaf}, Operator, Node, Event, Rest) ->
    {'case', a(), Event, [matched(Leaf, Operator, Node, Rest),
                          clause([any()], [], [decided(zero(Operator), Node, Action, [])])]};
part({node, _, _} = Child, _, _, Event, none) ->
    step(Child, Event);
part({node, _, _} = Child, Operator, _, Event, Rest) ->
    remote(combination(Operator), [step(Child, Event), Rest]).

matched({_, #{pattern := Pattern, guard := Guard} = Action, Target}, Operator, #{scope := Scope} = Node, Rest) ->
    Unit = unit(Operator),
    clause([Pattern], Guard, [case Target of
        {verdict, Unit} when Rest =/= none ->
            Rest;
        {verdict, Verdict} ->
            decided(Verdict, Node, Action, ordsets:subtract(witness_spec_pattern:variables(Pattern), Scope));
        {node, _, _} when Rest =:= none ->
            ok(state(Target));
        {node, _, _} ->
            remote(combination(Operator), [ok(state(Target)), Rest])
    end]).

unit('and') -> yes;
unit('or') -> no.

zero('and') -> no;
zero('or') -> yes.

combination('and') -> conj;
combination('or') -> disj.

decided(Verdict, Node, Action, Bound) -> tuple([atom(verdict), atom(Verdict), info(Node, Action, Bound)]).

%% The place of the node stands for an action where none decided alone.
info(#{location := Place, variables := Variables}, Action, Bound) ->
    {{Line, Column}, Text} = case Action of
        undefined -> {Place, []};
        #{location := Location, text := Written} -> {Location, [{action, binary(Written)}]}
    end,
    map([{line, {integer, a(), Line}}, {column, {integer, a(), Column}}] ++ Text
        ++ [{bindings, bindings(Variables ++ Bound)}, {vacuous, atom(false)}]).

%% What begins with an underscore was not meant to be looked at.
bindings(Variables) ->
    lists:foldr(fun(Name, Tail) ->
        case atom_to_list(Name) of
            [$_ | _] -> Tail;
            Written -> {cons, a(), tuple([binary(unicode:characters_to_binary(Written)), var(Name)]), Tail}
        end
    end, {nil, a()}, Variables).

%% Whether an action other than `init` matches, for the nodes that can be reached without one.
engaged(Units, Event) ->
    Clauses = [clauses_engaged(Node, Event) || #{start := {node, Start, _}, nodes := Nodes} <- Units,
                                               Node <- untouched([Start], table(Nodes), #{})],
    function(engaged, 2, lists:append(Clauses) ++ [clause([any(), any()], [], [atom(false)])]).

clauses_engaged(#{leaves := Leaves, children := Children} = Node, Event) ->
    State = state(node_target(Node)),
    [clause([Pattern, State], Guard, [atom(true)]) ||
        {_, #{kind := Kind, pattern := Pattern, guard := Guard}, _} <- Leaves, Kind =/= init]
        ++ [clause([Event, State], [], [lists:foldr(fun(Child, Else) ->
               {op, a(), 'orelse', call(engaged, [Event, state(Child)]), Else}
           end, atom(false), Children)]) || Children =/= []].

table(Nodes) -> #{Number => Node || #{number := Number} = Node <- Nodes}.

untouched([Number | Numbers], Nodes, Seen) when is_map_key(Number, Seen) ->
    untouched(Numbers, Nodes, Seen);
untouched([Number | Numbers], Nodes, Seen) ->
    #{Number := #{leaves := Leaves, children := Children} = Node} = Nodes,
    Next = [Target || {_, #{kind := init}, {node, Target, _}} <- Leaves] ++ [Child || {node, Child, _} <- Children],
    [Node | untouched(Next ++ Numbers, Nodes, Seen#{Number => []})];
untouched([], _, _) ->
    [].

%% The end of the trace: `[a] f` holds, `<a> f` does not, so the verdict of each node is known now.
handle_end() ->
    State = var('State'),
    function(handle_end, 2,
        [clause([atom(complete), State], [], [remote(at_end, [local(ending, 1), local(text, 1), State])]),
         clause([atom(stopped), any()], [], [tuple([atom(inconclusive), map([])])])]).

ending(Nodes) ->
    Table = table(Nodes),
    {Endings, _} = lists:mapfoldl(fun(Node, Known) ->
        {Ending, More} = ending(Node, Table, Known),
        {{Node, Ending}, More}
    end, #{}, Nodes),
    function(ending, 1, [clause([state(node_target(Node))], [],
                                [tuple([atom(Verdict), info(Node#{variables := []}, Action, [])])]) ||
                         {Node, {Verdict, Action}} <- Endings]
                        ++ [clause([any()], [], [tuple([atom(inconclusive), map([])])])]).

%% The verdict of a node with the action that decides it, if one does alone. Children come later in the list of nodes or
%% are fixpoints around; what is known already is kept.
ending(#{number := Number}, _, Known) when is_map_key(Number, Known) ->
    {map_get(Number, Known), Known};
ending(#{number := Number, operator := {constant, Verdict}}, _, Known) ->
    Ending = {Verdict, undefined},
    {Ending, Known#{Number => Ending}};
ending(#{number := Number, operator := Operator, leaves := Leaves, children := Children}, Table, Known) ->
    {Inner, After} = lists:mapfoldl(fun({node, Child, _}, Acc) -> ending(map_get(Child, Table), Table, Acc) end,
                                    Known, Children),
    Zero = zero(Operator),
    Endings = [{case Modality of box -> yes; dia -> no end, Action} || {Modality, Action, _} <- Leaves] ++ Inner,
    Ending = case {[Found || {Verdict, _} = Found <- Endings, Verdict =:= Zero], Endings} of
        {[Decided | _], _} -> Decided;
        {[], [Only]} -> Only;
        {[], _} -> {unit(Operator), undefined}
    end,
    {Ending, After#{Number => Ending}}.

%% Explanations.

describe() ->
    State = var('State'),
    function(describe, 1, [clause([State], [], [remote(describe, [local(text, 1), State])])]).

text(Nodes) ->
    function(text, 1, [clause([state(node_target(Node))], [], [tuple([binary(Text), bindings(Variables)])]) ||
                       #{text := Text, variables := Variables} = Node <- Nodes]
                      ++ [clause([any()], [], [tuple([binary(<<>>), {nil, a()}])])]).

%% Abstract code.

a() -> erl_anno:new(0).
name(Prefix, Number) -> list_to_atom(Prefix ++ integer_to_list(Number)).
any() -> {var, a(), '_'}.
var(Name) -> {var, a(), Name}.
vars(Names) -> [var(Name) || Name <- Names].
atom(Name) -> {atom, a(), Name}.
tuple(Elements) -> {tuple, a(), Elements}.
map(Fields) -> {map, a(), [{map_field_assoc, a(), atom(Key), Value} || {Key, Value} <- Fields]}.
ok(State) -> tuple([atom(ok), State]).
state({node, Number, []}) -> {integer, a(), Number};
state({node, Number, Variables}) -> tuple([{integer, a(), Number} | vars(Variables)]).
binary(Text) ->
    {bin, a(), [{bin_element, a(), {string, a(), unicode:characters_to_list(Text)}, default, [utf8]}]}.
call(Name, Arguments) -> {call, a(), atom(Name), Arguments}.
local(Name, Arity) -> {'fun', a(), {function, Name, Arity}}.
remote(Name, Arguments) -> {call, a(), {remote, a(), atom(witness_spec_formula), atom(Name)}, Arguments}.
clause(Patterns, Guard, Body) -> {clause, a(), Patterns, Guard, Body}.
function(Name, Arity, Clauses) -> {function, a(), Name, Arity, Clauses}.
