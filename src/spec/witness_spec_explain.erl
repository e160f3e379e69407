-module(witness_spec_explain).
-moduledoc """
Generates the explanations of a monitor: the verdict at the complete end of the trace (`handle_end/2`), the remaining
formula (`describe/1`), and its actions (`coverage/1`).
""".
-include("witness_spec_time.hrl").

-export([functions/1, actions/1, verdict/3, bindings/1, unit/1]).
-export_type([decisive/0]).

-import(witness_spec_abstract, [any/0, atom/1, binary/1, clause/3, function/3, integer/1, list/1, local/2, map/1,
                                numbered/2, remote/3, tuple/1, var/1]).

-doc "The deciding action, by matching or by not matching, or the deadline; `undefined` if no single one decided.".
-type decisive() :: {matched | unmatched, witness_spec_action:action()} | {deadline, witness_spec_abstract:expr()} | undefined.

-type expr() :: witness_spec_abstract:expr().

-doc "The callbacks with their helpers `ending/1`, `text/1` and `deadlines/1`, which have a clause for each node.".
-spec functions([witness_spec_code:unit()]) -> [witness_spec_abstract:form()].
functions(Units) ->
    Nodes = lists:uniq(fun(#{number := Number}) -> Number end, lists:append([Nodes || #{nodes := Nodes} <- Units])),
    Table = witness_spec_node:table(Nodes),
    Deadlines = with_deadlines(Nodes, Table),
    [handle_end(Units), endings(Nodes, Table, Deadlines), describe(Units), text(Nodes), coverage(Units)]
        ++ case [Node || Node <- Nodes, has_deadline(Node, Deadlines)] of
               [] -> [];
               Timed -> [is_timed(Units, Deadlines), next_deadline(Units), handle_time(Units), deadlines(Timed, Deadlines)]
           end.

-doc "The verdict that has no effect in a combination, the opposite of `witness_spec_formula:zero/1`.".
-spec unit('and' | 'or') -> yes | no.
unit('and') -> yes;
unit('or') -> no.

-doc "A verdict with its information. If no action decided alone, the place is that of the node.".
-spec verdict(yes | no | unknown, {witness_spec_node:state_node(), Shown :: [atom() | {binary(), expr()}]}, decisive()) -> expr().
verdict(unknown, _, _) -> tuple([atom(inconclusive), map([{reason, atom(skew)}])]);
verdict(Verdict, {#{location := Place} = Node, Shown}, Decisive) ->
    Decided = case Decisive of
        undefined -> {Place, []};
        {deadline, Deadline} ->
            {Location, Awaited} = awaited(Verdict, Node),
            {Location, Awaited ++ [{deadline, remote(erlang, element, [integer(1), Deadline])}]};
        {How, #{location := Location, text := Text} = Action} ->
            {Location, [{action, binary(Text)}, {matched, atom(How =:= matched)}]
                       ++ [{why, binary(Why)} || #{why := Why} <- [Action]]}
    end,
    tuple([atom(Verdict), map(place(Decided) ++ [{bindings, bindings(Shown)}, {vacuous, atom(false)}])]).

place({{Line, Column}, More}) -> [{line, integer(Line)}, {column, integer(Column)} | More].

%% The single action that had to come before a deadline, or that was forbidden until then.
awaited(Verdict, #{leaves := Leaves, children := []} = Node) ->
    case only(Verdict, Leaves) of
        {ok, #{location := Location, text := Text}} -> {Location, [{action, binary(Text)}]};
        none -> {maps:get(location, Node), []}
    end;
awaited(_, #{location := Place}) -> {Place, []}.

%% Of actions that have not matched, the one that would have decided otherwise, if there is a single one, however often its author's
%% sentence uses it. An `else` goes round a loop and decides nothing.
only(Verdict, Leaves) ->
    Modality = case Verdict of no -> dia; yes -> box end,
    Deciding = [Action || {_, #{kind := Kind} = Action, Target} <- Leaves, Kind =/= 'else', Target =/= {verdict, Verdict}],
    case lists:all(fun({Other, _, _}) -> Other =:= Modality end, Leaves)
         andalso lists:uniq(fun(#{location := Location}) -> Location end, Deciding) of
        [Action] -> {ok, Action};
        _ -> none
    end.

-doc "Names with their values, or texts with expressions. Names with an underscore at the beginning are left out.".
-spec bindings([atom() | {binary(), expr()}]) -> expr().
bindings(Variables) ->
    list([tuple([binary(Written), Value]) || Variable <- Variables,
                                             {[First | _] = Written, Value} <- [named(Variable)], First =/= $_]).

named({Written, Expr}) -> {unicode:characters_to_list(Written), Expr};
named(Name) -> {witness_spec_let:written(Name), var(Name)}.

%% At the end of the trace `[a] f` holds, `<a> f` does not, so the verdict of each node is known at compile time.

handle_end(Units) ->
    State = var('State'),
    function(handle_end, 2, witness_spec_let_code:unwrapped(Units, {handle_end, [var('How')]})
                            ++ [clause([atom(How), State], [], [remote(witness_spec_formula, Function,
                                                                    [local(ending, 1), local(text, 1), State])])
                             || {How, Function} <- [{complete, at_end}, {stopped, at_stop}]]).

endings(Nodes, Table, Deadlines) ->
    {Endings, _} = lists:mapfoldl(fun(Node, Known) ->
        {Ending, More} = ending(Node, Table, Known),
        {{Node, Ending}, More}
    end, #{}, Nodes),
    function(ending, 1, [case has_deadline(Node, Deadlines) of
                             true -> clause([state(Node)], [], [timed_ending(Node)]);
                             false -> clause([state(Node)], [], [verdict(Verdict, {Node, []}, Decisive)])
                         end || {Node, {Verdict, Decisive}} <- Endings]
                        ++ [clause([any()], [], [tuple([atom(inconclusive), map([])])])]).

%% Of each node, whether something in it has a deadline: then its state says what that decides. Nodes are in others many times.
with_deadlines(Nodes, Table) -> lists:foldl(fun(Node, Known) -> with_deadline(Node, Table, Known) end, #{}, Nodes).

with_deadline(#{number := Number}, _, Known) when is_map_key(Number, Known) -> Known;
with_deadline(#{number := Number, children := Children} = Node, Table, Known) ->
    Inner = lists:foldl(fun({node, Child, _}, A) -> with_deadline(map_get(Child, Table), Table, A) end, Known, Children),
    Inner#{Number => witness_spec_node:is_timed(Node)
               orelse lists:any(fun(Child) -> target_has_deadline(Child, Inner) end, Children)}.

has_deadline(#{number := Number}, Deadlines) -> map_get(Number, Deadlines).

target_has_deadline({node, Number, _}, Deadlines) -> map_get(Number, Deadlines).

timed_ending(#{operator := Operator, leaves := Leaves, children := Children} = Node) ->
    Own = case witness_spec_node:is_timed(Node) of
        true ->
            Deadline = var(?DEADLINE),
            [witness_spec_abstract:'case'(remote(erlang, element, [integer(2), Deadline]),
                [clause([atom(Verdict)], [], [verdict(Verdict, {Node, []}, {deadline, Deadline})]) || Verdict <- [no, yes]])
             || Leaves =/= []];
        false ->
            [verdict(case Modality of box -> yes; dia -> no end, {Node, []}, {unmatched, Action})
             || {Modality, Action, _} <- Leaves]
    end,
    Inner = [witness_spec_abstract:call(ending, [state_at_end(Child)]) || Child <- Children],
    case Own ++ Inner of
        [Only] -> Only;
        All -> remote(witness_spec_formula, ended, [atom(Operator), list(All)])
    end.

%% Deadlines pass without events, too.

is_timed(Units, Deadlines) ->
    Timed = [clause([integer(Index)], [], [atom(true)])
             || #{index := Index, nodes := Nodes} <- Units, lists:any(fun(Node) -> has_deadline(Node, Deadlines) end, Nodes)],
    function(is_timed, 1, Timed ++ [clause([any()], [], [atom(false)])]).

next_deadline(Units) ->
    Arguments = [var('From'), var('State')],
    function(next_deadline, 2, witness_spec_let_code:unwrapped(Units, {next_deadline, [var('From')]})
                               ++ [clause(Arguments, [], [remote(witness_spec_time, next, [local(deadlines, 1) | Arguments])])]).

handle_time(Units) ->
    Arguments = [var('Time'), var('State')],
    Passed = remote(witness_spec_time, pass, [local(deadlines, 1), local(text, 1) | Arguments]),
    function(handle_time, 2, witness_spec_let_code:unwrapped(Units, {handle_time, [var('Time')]})
                             ++ [clause(Arguments, [], [Passed])]).

%% The deadlines in a node with their places. Nothing decides `open` before the next event or the end.
deadlines(Timed, Deadlines) ->
    function(deadlines, 1, [clause([state(Node)], [], [deadlines_in(Node, Deadlines)]) || Node <- Timed]
                           ++ [clause([any()], [], [atom(open)])]).

deadlines_in(#{operator := Operator, leaves := Leaves, children := Children} = Node, Deadlines) ->
    Own = case witness_spec_node:is_timed(Node) of
        true -> tuple([var(?DEADLINE) | [map(place(awaited(Verdict, Node))) || Verdict <- [no, yes]]]);
        false -> atom(open)
    end,
    Inner = [case target_has_deadline(Child, Deadlines) of
                 true -> witness_spec_abstract:call(deadlines, [state_at_end(Child)]);
                 false -> atom(open)
             end || Child <- Children],
    case [Own || Leaves =/= []] ++ Inner of
        [Only] -> Only;
        All -> tuple([atom(Operator), list(All)])
    end.

%% At the end no value of a parameter is computed.
state_at_end({node, Number, Variables}) ->
    Values = [case Variable of
                  {Name, Value, _} when ?IS_TIME(Name) -> Value;
                  {_, _, _} -> atom(undefined);
                  Name -> var(Name)
              end || Variable <- Variables],
    case Values of [] -> integer(Number); _ -> tuple([integer(Number) | Values]) end.

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
    Zero = witness_spec_formula:zero(Operator),
    Endings = [{case Modality of box -> yes; dia -> no end, {unmatched, Action}} || {Modality, Action, _} <- Leaves]
        ++ Inner,
    Ending = case [Found || Deciding <- [Zero, unknown], {Verdict, _} = Found <- Endings, Verdict =:= Deciding] of
        [Decided | _] -> Decided;
        [] when tl(Endings) =:= [] -> hd(Endings);
        [] ->
            Unit = unit(Operator),
            {Unit, case Inner =:= [] andalso only(Unit, Leaves) of
                {ok, Action} -> {unmatched, Action};
                _ -> undefined
            end}
    end,
    {Ending, After#{Number => Ending}}.

%% What remains to be satisfied.

describe(Units) ->
    State = var('State'),
    function(describe, 1, witness_spec_let_code:described(Units)
                          ++ [clause([State], [], [remote(witness_spec_formula, describe, [local(text, 1), State])])]).

text(Nodes) ->
    function(text, 1, [clause([state(Node)], [], [tuple([binary(Text), bindings(Variables)])]) ||
                       #{text := Text, variables := Variables} = Node <- Nodes]
                      ++ [clause([any()], [], [tuple([binary(<<>>), list([])])])]).

state(#{number := Number, variables := Variables}) -> numbered(Number, Variables).

coverage(Units) ->
    function(coverage, 1, [clause([integer(Index)], [], [erl_parse:abstract(Actions)])
                           || #{index := Index, nodes := _} = Unit <- Units,
                              Actions <- [[maps:remove(shape, Action) || Action <- actions(Unit)]]]
                          ++ [clause([any()], [], [list([])])]).

-doc """
The actions of a property from left to right, as their author wrote them, with their numbers in the file and the verdicts that they decide
by themselves.
""".
-spec actions(witness_spec_code:unit()) ->
    [#{id := pos_integer(), line := pos_integer(), column := pos_integer(), text := binary(), decides := yes | no | undefined,
       shape := witness_spec_shape:shape()}].
actions(#{nodes := Nodes}) ->
    Actions = [{Order, #{id => Id, line => Line, column => Column, text => Text, shape => witness_spec_shape:new(Action),
                            decides => case Target of {verdict, Verdict} -> Verdict; {node, _, _} -> undefined end}} ||
               #{leaves := Leaves} <- Nodes,
               {_, #{id := Id, order := Order, location := {Line, Column}, text := Text} = Action, Target} <- Leaves,
               not is_map_key(implied, Action)],
    [Action || {_, Action} <- lists:ukeysort(1, Actions)];
actions(#{}) -> [].
