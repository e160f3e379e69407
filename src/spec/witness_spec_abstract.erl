-module(witness_spec_abstract).
-moduledoc """
Short functions that make abstract code, for the modules that generate it.

A state and a filter have the same shape: a number, or a tuple of the number and the values of variables.
""".
-include("witness_spec_time.hrl").

-export([any/0, var/1, vars/1, integer/1, atom/1, tuple/1, list/1, binary/1, map/1, numbered/2, state/1, values/1, is_computed/1,
         attempt/2, rewrite/2]).
-export([clause/3, function/3, 'case'/2, call/2, remote/3, local/2, exported/3, name/2]).
-export_type([expr/0, clause/0, form/0]).

-type expr() :: erl_parse:abstract_expr().
-type clause() :: erl_parse:abstract_clause().
-type form() :: erl_parse:abstract_form().

%% Generated code has no place in the source.
a() -> erl_anno:new(0).

-spec any() -> expr().
any() -> var('_').

-spec var(atom()) -> expr().
var(Name) -> {var, a(), Name}.

-spec vars([atom()]) -> [expr()].
vars(Names) -> [var(Name) || Name <- Names].

-spec integer(integer()) -> expr().
integer(Value) -> {integer, a(), Value}.

-spec atom(atom()) -> expr().
atom(Name) -> {atom, a(), Name}.

-spec tuple([expr()]) -> expr().
tuple(Elements) -> {tuple, a(), Elements}.

-spec list([expr()]) -> expr().
list(Elements) -> lists:foldr(fun(Head, Tail) -> {cons, a(), Head, Tail} end, {nil, a()}, Elements).

-doc "A text as UTF-8.".
-spec binary(unicode:chardata()) -> expr().
binary(Text) -> {bin, a(), [{bin_element, a(), {string, a(), unicode:characters_to_list(Text)}, default, [utf8]}]}.

-spec map([{atom(), expr()}]) -> expr().
map(Fields) -> {map, a(), [{map_field_assoc, a(), atom(Key), Value} || {Key, Value} <- Fields]}.

-doc "The number alone if there are no variables: such a state takes no memory.".
-spec numbered(pos_integer(), Variables :: [atom()]) -> expr().
numbered(Number, []) -> integer(Number);
numbered(Number, Variables) -> tuple([integer(Number) | vars(Variables)]).

-doc """
A state, or at a target where parameters get values, `{failed, Line, Column}` if one of these cannot be computed
(`witness_spec_formula:begun/2`).
""".
-spec state(witness_spec_node:target()) -> expr().
state({node, Number, Variables}) ->
    Values = values(Variables),
    case [Place || {_, Value, Place} = Given <- Variables, is_data(Given), not is_simple(Value)] of
        [] when Values =:= [] -> integer(Number);
        [] -> tuple([integer(Number) | Values]);
        [{Line, Column} | _] ->
            attempt(tuple([integer(Number) | Values]), tuple([atom(failed), integer(Line), integer(Column)]))
    end.

-doc "The first expression, or the other one if it fails.".
-spec attempt(expr(), expr()) -> expr().
attempt(Expr, Failed) ->
    case is_simple(Expr) of
        true -> Expr;
        false -> {'try', a(), [Expr], [], [clause([{tuple, a(), [atom(error), any(), any()]}], [], [Failed])], []}
    end.

-doc "The values of the variables of a target.".
-spec values([atom() | witness_spec_node:given()]) -> [expr()].
values(Variables) -> [case Variable of {_, Value, _} -> Value; _ -> var(Variable) end || Variable <- Variables].

%% What cannot fail.
is_simple({Kind, _, _}) when Kind =:= var; Kind =:= atom; Kind =:= integer; Kind =:= float; Kind =:= char; Kind =:= string -> true;
is_simple({nil, _}) -> true;
is_simple({tuple, _, Elements}) -> lists:all(fun is_simple/1, Elements);
is_simple({cons, _, Head, Tail}) -> is_simple(Head) andalso is_simple(Tail);
is_simple({map, _, Fields}) -> lists:all(fun({_, _, Key, Value}) -> is_simple(Key) andalso is_simple(Value) end, Fields);
is_simple(_) -> false.

-doc "Whether parameters get values there.".
-spec is_computed(witness_spec_node:target()) -> boolean().
is_computed({node, _, Variables}) -> lists:any(fun is_data/1, Variables);
is_computed({verdict, _}) -> false.

%% What `m:witness_spec_time` computes never fails, and is small.
is_data({Name, _, _}) -> not ?IS_TIME(Name);
is_data(Name) when is_atom(Name) -> false.

-spec clause([expr()], witness_spec_pattern:guard(), [expr()]) -> clause().
clause(Patterns, Guard, Body) -> {clause, a(), Patterns, Guard, Body}.

-spec function(atom(), arity(), [clause()]) -> form().
function(Name, Arity, Clauses) -> {function, a(), Name, Arity, Clauses}.

-spec 'case'(expr(), [clause()]) -> expr().
'case'(Subject, Clauses) -> {'case', a(), Subject, Clauses}.

-spec call(atom(), [expr()]) -> expr().
call(Name, Arguments) -> {call, a(), atom(Name), Arguments}.

-spec remote(module(), atom(), [expr()]) -> expr().
remote(Module, Name, Arguments) -> {call, a(), {remote, a(), atom(Module), atom(Name)}, Arguments}.

-doc "The function of this name as a fun.".
-spec local(atom(), arity()) -> expr().
local(Name, Arity) -> {'fun', a(), {function, Name, Arity}}.

-doc "The same for an exported one: the code that is current when it is called.".
-spec exported(module(), atom(), arity()) -> expr().
exported(Module, Name, Arity) -> {'fun', a(), {function, atom(Module), atom(Name), {integer, a(), Arity}}}.

-doc "`s1`, `s2`...: such names do not depend on the specification, so that files share their atoms.".
-spec name(string(), pos_integer()) -> atom().
name(Prefix, Number) -> list_to_atom(Prefix ++ integer_to_list(Number)).

-doc "A term with other parts: those that `Change` returns as `{done, Part}`. Of the others, the parts inside are changed.".
-spec rewrite(fun((term()) -> {done, term()} | inside), Term) -> Term when Term :: term().
rewrite(Change, Term) ->
    case Change(Term) of
        {done, Other} -> Other;
        inside when is_tuple(Term) -> list_to_tuple(rewrite_each(Change, tuple_to_list(Term)));
        inside when is_list(Term) -> rewrite_each(Change, Term);
        inside when is_map(Term) -> maps:map(fun(_, Value) -> rewrite(Change, Value) end, Term);
        inside -> Term
    end.

rewrite_each(Change, [Head | Tail]) -> [rewrite(Change, Head) | rewrite_each(Change, Tail)];
rewrite_each(_, []) -> [].
