-module(witness_spec_explain).
-moduledoc """
Generates the explanations of a monitor: the verdict at the complete end of the trace (`handle_end/2`), the remaining
formula (`describe/1`), and its actions (`coverage/1`).
""".

-export([functions/1, verdict/3, bindings/1, unit/1, zero/1]).
-export_type([decisive/0]).

-import(witness_spec_abstract, [any/0, atom/1, binary/1, clause/3, function/3, integer/1, list/1, local/2, map/1,
                                numbered/2, remote/3, tuple/1, var/1]).

-doc "The deciding action, by matching or by not matching; `undefined` if no single one decided.".
-type decisive() :: {matched | unmatched, witness_spec_action:action()} | undefined.

-type expr() :: witness_spec_abstract:expr().

-doc "The callbacks with their helpers `ending/1` and `text/1`, which have a clause for each node.".
-spec functions([witness_spec_code:unit()]) -> [witness_spec_abstract:form()].
functions(Units) ->
    Nodes = lists:append([Nodes || #{nodes := Nodes} <- Units]),
    [handle_end(), ending(Nodes), describe(), text(Nodes), coverage(Units)].

-doc "The verdict that decides a combination at once: `no` a conjunction, `yes` a disjunction.".
-spec zero('and' | 'or') -> yes | no.
zero('and') -> no;
zero('or') -> yes.

-doc "The verdict that has no effect in a combination.".
-spec unit('and' | 'or') -> yes | no.
unit('and') -> yes;
unit('or') -> no.

-doc "A verdict with its information. If no action decided alone, the place is that of the node.".
-spec verdict(yes | no, {witness_spec_node:state_node(), Shown :: [atom()]}, decisive()) -> expr().
verdict(Verdict, {#{location := Place}, Shown}, Decisive) ->
    {{Line, Column}, Action} = case Decisive of
        undefined -> {Place, []};
        {How, #{location := Location, text := Text}} ->
            {Location, [{action, binary(Text)}, {matched, atom(How =:= matched)}]}
    end,
    tuple([atom(Verdict), map([{line, integer(Line)}, {column, integer(Column)}] ++ Action
                              ++ [{bindings, bindings(Shown)}, {vacuous, atom(false)}])]).

-doc "Names with their values. Names with an underscore at the beginning are left out.".
-spec bindings([atom()]) -> expr().
bindings(Variables) ->
    list([tuple([binary(Written), var(Name)]) || Name <- Variables, [First | _] = Written <- [atom_to_list(Name)],
                                                 First =/= $_]).

%% At the end of the trace `[a] f` holds, `<a> f` does not, so the verdict of each node is known at compile time.

handle_end() ->
    State = var('State'),
    function(handle_end, 2, [clause([atom(How), State], [], [remote(witness_spec_formula, Function,
                                                                    [local(ending, 1), local(text, 1), State])])
                             || {How, Function} <- [{complete, at_end}, {stopped, at_stop}]]).

ending(Nodes) ->
    Table = #{Number => Node || #{number := Number} = Node <- Nodes},
    {Endings, _} = lists:mapfoldl(fun(Node, Known) ->
        {Ending, More} = ending(Node, Table, Known),
        {{Node, Ending}, More}
    end, #{}, Nodes),
    function(ending, 1, [clause([state(Node)], [], [verdict(Verdict, {Node, []}, Decisive)]) ||
                         {Node, {Verdict, Decisive}} <- Endings]
                        ++ [clause([any()], [], [tuple([atom(inconclusive), map([])])])]).

%% The verdict of a node with the action that decides it, if one does alone. Children come later in the list of nodes or
%% are enclosing fixpoints; known verdicts are kept.
ending(#{number := Number}, _, Known) when is_map_key(Number, Known) ->
    {map_get(Number, Known), Known};
ending(#{number := Number, operator := {constant, Verdict}}, _, Known) ->
    Ending = {Verdict, undefined},
    {Ending, Known#{Number => Ending}};
ending(#{number := Number, operator := Operator, leaves := Leaves, children := Children}, Table, Known) ->
    {Inner, After} = lists:mapfoldl(fun({node, Child, _}, Acc) -> ending(map_get(Child, Table), Table, Acc) end,
                                    Known, Children),
    Zero = zero(Operator),
    Endings = [{case Modality of box -> yes; dia -> no end, {unmatched, Action}} || {Modality, Action, _} <- Leaves]
        ++ Inner,
    Ending = case {[Found || {Verdict, _} = Found <- Endings, Verdict =:= Zero], Endings} of
        {[Decided | _], _} -> Decided;
        {[], [Only]} -> Only;
        {[], _} -> {unit(Operator), undefined}
    end,
    {Ending, After#{Number => Ending}}.

%% What remains to be satisfied.

describe() ->
    State = var('State'),
    function(describe, 1, [clause([State], [], [remote(witness_spec_formula, describe, [local(text, 1), State])])]).

text(Nodes) ->
    function(text, 1, [clause([state(Node)], [], [tuple([binary(Text), bindings(Variables)])]) ||
                       #{text := Text, variables := Variables} = Node <- Nodes]
                      ++ [clause([any()], [], [tuple([binary(<<>>), list([])])])]).

state(#{number := Number, variables := Variables}) -> numbered(Number, Variables).

%% The actions of each property in the order in which they were written.
coverage(Units) ->
    function(coverage, 1, [clause([integer(Index)], [], [erl_parse:abstract(actions(Nodes))]) ||
                           #{index := Index, nodes := Nodes} <- Units] ++ [clause([any()], [], [list([])])]).

actions(Nodes) ->
    Actions = [{Location, #{id => Id, line => Line, column => Column, text => Text,
                            decides => case Target of {verdict, Verdict} -> Verdict; {node, _, _} -> undefined end}} ||
               #{leaves := Leaves} <- Nodes,
               {_, #{id := Id, location := {Line, Column} = Location, text := Text}, Target} <- Leaves],
    [Action || {_, Action} <- lists:keysort(1, Actions)].
