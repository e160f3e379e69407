-module(witness_weave_entry).
-moduledoc """
The prologue of functions that ask the run time first, and of functions that report their calls.

The first are those that a process may start with, and callbacks of OTP's behaviours. Every clause keeps its body, its guards and its
patterns, and gives its arguments a name:

```erlang
loop(@A1 = Pattern) when Guard ->
    case case erlang:get(Key) of undefined -> Runtime:entry(m, loop, [@A1]); _ -> go end of
        go -> Body;
        {done, @V} -> @V
    end
```

`Body` stays in tail position, and in the function that it was in. A process may die because no clause of its first
function matches, and the run time has to see that too. So if the clauses may not match, one is added that raises the same error.

That is an `entry`. A `callback` asks `Runtime:callback/3`, also if the process does not have the key: it may have lost it.
`init` is a callback that a process of a behaviour starts with: without the key it asks `Runtime:init/2`.

A function that reports its calls does so at the beginning of `Body`, after it has asked: a first function that is called once more
is one call. A clause that raises the error for arguments without a clause reports the call too. If it also reports its returns,
`Body` is in no tail position:

```erlang
    Runtime:called(m, loop, [@A1]), @R = begin Body end, Runtime:returned(m, loop, 1, @R), @R
```
""".

-export([clauses/6]).

-export_type([question/0, reports/0]).

-doc "What a function asks the run time, for its role in the process.".
-type question() :: entry | callback | init | none.

-doc "What a function reports to the run time.".
-type reports() :: [call | return].

-doc "The clauses of a function, which are woven already, with what it asks and reports.".
-spec clauses(erl_anno:anno(), atom(), [erl_parse:abstract_clause()], question(), reports(), witness_weave_expr:context()) ->
    [erl_parse:abstract_clause()].
clauses(_, _, Clauses, none, [], _) -> Clauses;
%% A call without a clause does not return, and its arguments are not reported.
clauses(_, Name, Clauses, none, [return], Context) ->
    [{clause, Anno, Patterns, Guards,
      reporting(witness_weave_expr:generated(Anno), [return], Name, Patterns, Body, Context)}
     || {clause, Anno, Patterns, Guards, Body} <- Clauses];
clauses(Anno, Name, Clauses, Question, Reports, Context) ->
    [clause(Clause, Name, Question, Reports, Context) || Clause <- Clauses ++ otherwise(Anno, Clauses, Context)].

clause({clause, Anno, Patterns, Guards, Body}, Name, Question, Reports, Context) ->
    G = witness_weave_expr:generated(Anno),
    Args = arguments(G, length(Patterns), Context),
    {clause, Anno, lists:zipwith(fun witness_weave_expr:alias/2, Patterns, Args), Guards,
     prologue(G, Question, Name, Args, reporting(G, Reports, Name, Args, Body, Context), Context)}.

reporting(G, Reports, Name, Args, Body, #{module := Module} = Context) ->
    Report = fun(Event, Given) -> witness_weave_expr:remote(G, Context, Event, [{atom, G, Module}, {atom, G, Name} | Given]) end,
    Result = variable(G, "R", Context),
    [Report(called, [list(G, Args)]) || lists:member(call, Reports)]
        ++ case lists:member(return, Reports) of
               true -> [{match, G, Result, {block, G, Body}}, Report(returned, [{integer, G, length(Args)}, Result]), Result];
               false -> Body
           end.

prologue(_, none, _, _, Body, _) -> Body;
prologue(G, Question, Name, Args, Body, #{key := Key} = Context) ->
    Value = variable(G, "V", Context),
    {Without, With} = questions(G, Question, Name, list(G, Args), Context),
    Get = {call, G, {remote, G, {atom, G, erlang}, {atom, G, get}}, [erl_parse:map_anno(fun(_) -> G end, erl_parse:abstract(Key))]},
    Decision = {'case', G, Get, [{clause, G, [{atom, G, undefined}], [], [Without]},
                                 {clause, G, [{var, G, '_'}], [], [With]}]},
    [{'case', G, Decision, [{clause, G, [{atom, G, go}], [], Body},
                            {clause, G, [{tuple, G, [{atom, G, done}, Value]}], [], [Value]}]}].

%% The questions in a process without the key, and in one that has it.
questions(G, entry, Name, Args, Context) ->
    {ask(G, entry, [{atom, G, Name}, Args], Context), {atom, G, go}};
questions(G, callback, Name, Args, Context) ->
    Ask = ask(G, callback, [{atom, G, Name}, Args], Context),
    {Ask, Ask};
questions(G, init, Name, Args, Context) ->
    {ask(G, init, [Args], Context), ask(G, callback, [{atom, G, Name}, Args], Context)}.

ask(G, Question, Args, #{module := Module} = Context) ->
    witness_weave_expr:remote(G, Context, Question, [{atom, G, Module} | Args]).

otherwise(Anno, Clauses, Context) ->
    {clause, _, Patterns, Guards, _} = lists:last(Clauses),
    Names = [Name || {var, _, Name} <- Patterns],
    Bound = [Name || Name <- Names, Name =/= '_'],
    case Guards =:= [] andalso length(Names) =:= length(Patterns) andalso lists:usort(Bound) =:= lists:sort(Bound) of
        true ->
            [];
        false ->
            G = witness_weave_expr:generated(Anno),
            Args = arguments(G, length(Patterns), Context),
            Error = {call, G, {remote, G, {atom, G, erlang}, {atom, G, error}},
                     [{atom, G, function_clause}, list(G, Args)]},
            [{clause, G, [{var, G, '_'} || _ <- Patterns], [], [Error]}]
    end.

list(G, Elements) -> lists:foldr(fun(Element, Tail) -> {cons, G, Element, Tail} end, {nil, G}, Elements).

arguments(G, Arity, Context) -> [variable(G, "A" ++ integer_to_list(I), Context) || I <- lists:seq(1, Arity)].

variable(G, Name, #{prefix := Prefix}) -> {var, G, list_to_atom(Prefix ++ Name)}.
