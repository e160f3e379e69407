-module(witness_weave_expr).
-moduledoc """
The traversal: rewrites the expressions of a function.

It rewrites only nodes that are actions: sends, receives, calls and funs that `witness_weave_calls` knows.
None of these can occur in a pattern, a guard or a type. So the traversal need not know where these are: it goes
through every node alike, also through nodes that a later release adds.
""".

-export([context/2, clauses/2, record_fields/2]).
-export([alias/2, remote/4, generated/1]).

-export_type([context/0]).

-doc """
What is known of the module, and the place of an expression in it.

- `locals`, `imports`: what a call without a module means.
- `prefix`: no variable of the module starts with it.
- `records`: its attributes that define records.
- `calls`, `natives`, `sends`, `receives`, `timeouts`, `waits`, `references`, `announces`: as in the plan.
- `place`: `body`; or `record`, a default value, which cannot contain variables.
""".
-type context() :: #{module := module(), runtime := module(), key := term(), prefix := string(),
                     locals := #{{atom(), arity()} => []}, imports := #{{atom(), arity()} => module()},
                     records := [erl_parse:abstract_form()], place := body | record, calls := module(),
                     natives := #{mfa() => non_neg_integer()}, sends := told | replaced | announced | routed,
                     receives := told | replaced, timeouts := boolean(), waits := boolean() | blocked, references := boolean(),
                     announces := boolean()}.

-doc "The context for weaving the functions of a module.".
-spec context([erl_parse:abstract_form()], witness_weave:plan()) -> context().
context(Forms, Plan = #{runtime := Runtime}) ->
    #{module => hd([Module || {attribute, _, module, Module} <- Forms]),
      runtime => Runtime,
      key => maps:get(key, Plan, '$witness_inline'),
      prefix => prefix("@", names([Form || {function, _, _, _, _} = Form <- Forms], [])),
      locals => #{{Name, Arity} => [] || {function, _, Name, Arity, _} <- Forms},
      imports => #{Function => Module || {attribute, _, import, {Module, Functions}} <- Forms, Function <- Functions},
      records => [Form || {attribute, _, Kind, _} = Form <- Forms, Kind =:= record orelse Kind =:= native_record],
      calls => maps:get(calls, Plan, witness_weave_calls),
      natives => maps:get(natives, Plan, #{}),
      sends => maps:get(sends, Plan, told),
      receives => maps:get(receives, Plan, told),
      timeouts => maps:get(timeouts, Plan, false), waits => maps:get(waits, Plan, false),
      references => maps:get(references, Plan, false), announces => maps:get(announces, Plan, false),
      place => body}.

prefix(Prefix, Names) ->
    case lists:any(fun(Name) -> lists:prefix(Prefix, atom_to_list(Name)) end, Names) of
        true -> prefix("@" ++ Prefix, Names);
        false -> Prefix
    end.

names({var, _, Name}, Names) -> [Name | Names];
names(Node, Names) when is_tuple(Node) -> names(tuple_to_list(Node), Names);
names([Node | Nodes], Names) -> names(Nodes, names(Node, Names));
names(_, Names) -> Names.

-doc "The clauses of one function.".
-spec clauses([erl_parse:abstract_clause()], context()) -> [erl_parse:abstract_clause()].
clauses(Clauses, Context) ->
    {Woven, _} = nodes(Clauses, Context, 1),
    Woven.

-doc "The fields of a record. Their default values are evaluated where a record is created.".
record_fields(Fields, Context) ->
    {Woven, _} = nodes(Fields, Context#{place := record}, 1),
    Woven.

%% The last argument counts the variables that were made in this function, so that each of them is used once.
nodes(Nodes, Context, N) ->
    lists:mapfoldl(fun(Node, N1) -> node(Node, Context, N1) end, N, Nodes).

node({op, Anno, '!', To, Msg}, Context, N) ->
    {[To1, Msg1], N1} = nodes([To, Msg], Context, N),
    send(Anno, '!', fun(To2, Msg2) -> {op, Anno, '!', To2, Msg2} end, [To1, Msg1], Context, N1);
node({call, Anno, Callee, Args}, Context, N) ->
    call(Anno, Callee, Args, Context, N);
node({'fun', Anno, {function, Name, Arity}} = Fun, Context, N) ->
    case resolve(Name, Arity, Context) of
        {Module, Name} ->
            case external(Fun, {atom, Anno, Module}, {atom, Anno, Name}, {integer, Anno, Arity}, Context, N) of
                {Fun, N} -> {Fun, N};
                {Woven, N1} -> {numbered(Fun, Woven), N1}
            end;
        local ->
            {Fun, N}
    end;
node({'fun', _, {function, Module, Name, Arity}} = Fun, Context, N) ->
    {[Module1, Name1, Arity1], N1} = nodes([Module, Name, Arity], Context, N),
    external(setelement(3, Fun, {function, Module1, Name1, Arity1}), Module1, Name1, Arity1, Context, N1);
node({'fun', Anno, {clauses, Clauses}}, Context, N) ->
    {Woven, N1} = nodes(Clauses, Context, N),
    {{'fun', Anno, {clauses, Woven}}, N1};
node(Receive, #{place := record, module := Module}, _) when element(1, Receive) =:= 'receive' ->
    error({receive_in_record, Module, erl_anno:location(element(2, Receive))});
node({'receive', Anno, Clauses}, Context, N) ->
    {Woven, N1} = lists:mapfoldl(fun(Clause, M) -> rewrite_clause(Clause, Context, M) end, N, Clauses),
    {note_endless_wait(Anno, {'receive', Anno, Woven}, Context), N1};
node({'receive', Anno, Clauses, Timeout, After}, Context, N) ->
    {Woven, N1} = lists:mapfoldl(fun(Clause, M) -> rewrite_clause(Clause, Context, M) end, N, Clauses),
    {Timeout1, N2} = node(Timeout, Context, N1),
    {After1, N3} = nodes(After, Context, N2),
    {{'receive', Anno, Woven, note_wait(Timeout1, Context), timeout(Anno, Timeout, After1, Context)}, N3};
node({'try', Anno, Body, Of, Catch, After}, Context, N) ->
    {[Body1, Of1, Catch1], N1} = lists:mapfoldl(fun(Part, M) -> nodes(Part, Context, M) end, N, [Body, Of, Catch]),
    {After1, N2} = nodes(After, Context, N1),
    {{'try', Anno, Body1, Of1, Catch1, witness_weave_after:body(After, After1, maps:get(records, Context))}, N2};
%% The field is at the position where other nodes have their location in the source.
node({typed_record_field, Field, Type}, Context, N) ->
    {Field1, N1} = node(Field, Context, N),
    {{typed_record_field, Field1, Type}, N1};
node(Nodes, Context, N) when is_list(Nodes) ->
    nodes(Nodes, Context, N);
node(Node, Context, N) when is_tuple(Node), tuple_size(Node) > 2 ->
    [Tag, Anno | Parts] = tuple_to_list(Node),
    {Woven, N1} = nodes(Parts, Context, N),
    {list_to_tuple([Tag, Anno | Woven]), N1};
node(Leaf, _, N) ->
    {Leaf, N}.

%% The woven code goes on to send by itself, so that an error has the same stack trace. The tuple is never made. It makes the
%% compiler read both arguments as those of one call, from the right: that order determines the names of funs.
send(Anno, _, Send, [To, Msg], #{place := body} = Context, N) ->
    [ToVar, MsgVar, Value] = [variable(Anno, Context, I) || I <- [N, N + 1, N + 2]],
    G = generated(Anno),
    {{block, G,
      [{match, G, {tuple, G, [ToVar, MsgVar]}, {tuple, G, [To, Msg]}} |
       case Context of
           #{sends := told} ->
               Before = [remote(G, Context, sends, []) || maps:get(announces, Context)],
               Before ++ [{match, G, Value, Send(ToVar, MsgVar)},
                          remote(G, Context, sent, [ToVar, MsgVar]),
                          Value];
           #{sends := routed} ->
               [stand_in(Anno, send, {atom, Anno, erlang}, {atom, Anno, send}, [ToVar, MsgVar], Context)];
           #{sends := Sends} ->
               %% The compiler's code for a send fails as `erlang:send/2', however the send is written.
               StandIn = stand_in(Anno, send, {atom, Anno, erlang}, {atom, Anno, send}, [ToVar, MsgVar], Context),
               Announced = [remote(G, Context, sent, [ToVar, MsgVar]) || Sends =:= announced],
               [{'if', G, [{clause, G, [], [is_another(G, ToVar)], Announced ++ [Send(ToVar, MsgVar)]},
                           {clause, G, [], [[{atom, G, true}]], [StandIn]}]}]
       end]},
     N + 3};
send(Anno, Name, _, Args, Context, N) ->
    {stand_in(Anno, send, {atom, Anno, erlang}, {atom, Anno, Name}, Args, Context), N}.

%% A guard: another process of this node.
is_another(G, To) ->
    Guard = fun(Name, Args) -> {call, G, {remote, G, {atom, G, erlang}, {atom, G, Name}}, Args} end,
    [Guard(is_pid, [To]), {op, G, '=:=', Guard(node, [To]), Guard(node, [])}, {op, G, '=/=', To, Guard(self, [])}].

timeout(_, {atom, _, infinity}, After, _) -> After;
timeout(Anno, _, After, #{timeouts := true} = Context) -> [remote(generated(Anno), Context, timeout, []) | After];
timeout(_, _, After, _) -> After.

%% The time is evaluated right before the `receive' starts. A `receive' that only polls does not wait.
note_wait({integer, _, 0} = Time, _) -> Time;
note_wait(Time, #{waits := true} = Context) -> remote(generated(element(2, Time)), Context, waits, [Time]);
note_wait(Time, _) -> Time.

%% An `after' would be one more clause, so variables that all other clauses bind would become unsafe. So the call comes before the
%% `receive'. What a `receive' binds in a `case' of one clause is bound after it, too.
note_endless_wait(Anno, Receive, #{waits := true} = Context) ->
    G = generated(Anno),
    {'case', G, remote(G, Context, waits, [{atom, G, infinity}]), [{clause, G, [{var, G, '_'}], [], [Receive]}]};
note_endless_wait(_, Receive, _) -> Receive.

%% Receives that are to be replaced are rewritten after the compiler has read them (`witness_weave_core').
rewrite_clause(Clause, #{receives := replaced} = Context, N) ->
    [Tag, Anno | Parts] = tuple_to_list(Clause),
    {Woven, N1} = nodes(Parts, Context, N),
    {list_to_tuple([Tag, Anno | Woven]), N1};
rewrite_clause({clause, Anno, [Pattern], Guards, Body}, Context, N) ->
    Msg = variable(Anno, Context, N),
    {Body1, N1} = nodes(Body, Context, N + 1),
    {{clause, Anno, [alias(Pattern, Msg)], Guards, [remote(generated(Anno), Context, received, [Msg]) | Body1]}, N1}.

call(Anno, {remote, _, {atom, _, erlang}, {atom, _, apply}} = Callee, [Module, Name, Args], Context, N) ->
    case elements(Args) of
        {ok, Elements} ->
            call(Anno, {remote, Anno, Module, Name}, Elements, Context, N);
        unknown ->
            {[Module1, Name1, Args1], N1} = nodes([Module, Name, Args], Context, N),
            case possible(literal(Module1), literal(Name1), '_', Context) of
                true -> {remote(Anno, Context, apply, [Module1, Name1, Args1]), N1};
                false -> {{call, Anno, Callee, [Module1, Name1, Args1]}, N1}
            end
    end;
call(Anno, {remote, RemoteAnno, Module, Name}, Args, Context, N) ->
    {[Module1, Name1 | Args1], N1} = nodes([Module, Name | Args], Context, N),
    Arity = length(Args),
    case {literal(Module1), literal(Name1)} of
        {erlang, send} when Arity =:= 2 ->
            Callee = {remote, RemoteAnno, Module1, Name1},
            send(Anno, send, fun(To, Msg) -> {call, Anno, Callee, [To, Msg]} end, Args1, Context, N1);
        {erlang, '!'} when Arity =:= 2 ->
            send(Anno, '!', fun(To, Msg) -> {op, Anno, '!', To, Msg} end, Args1, Context, N1);
        {M, F} when M =:= '_'; F =:= '_' ->
            case possible(M, F, Arity, Context) of
                true -> {stand_in(Anno, apply, Module1, Name1, Args1, Context), N1};
                false -> {{call, Anno, {remote, RemoteAnno, Module1, Name1}, Args1}, N1}
            end;
        {M, F} ->
            case class(M, F, Arity, Context) of
                none -> {{call, Anno, {remote, RemoteAnno, Module1, Name1}, Args1}, N1};
                {Class, Number} ->
                    case makes_reference(M, F, Context) of
                        true ->
                            note_reference(Anno, Number, {call, Anno, {remote, RemoteAnno, Module1, Name1}, Args1}, Context, N1);
                        false -> {stand_in(Anno, Class, [{integer, Anno, Number}], Module1, Name1, Args1, Context), N1}
                    end;
                leave -> leave(Anno, {remote, RemoteAnno, Module1, Name1}, Args1, Context, N1);
                Class -> {stand_in(Anno, Class, Module1, Name1, Args1, Context), N1}
            end
    end;
call(Anno, {atom, NameAnno, Name} = Callee, Args, Context, N) ->
    case resolve(Name, length(Args), Context) of
        {Module, Name} ->
            Remote = {remote, NameAnno, {atom, NameAnno, Module}, Callee},
            case call(Anno, Remote, Args, Context, N) of
                {{call, Anno, Remote, Args1}, N1} -> {{call, Anno, Callee, Args1}, N1};
                Woven -> Woven
            end;
        local ->
            {Args1, N1} = nodes(Args, Context, N),
            {{call, Anno, Callee, Args1}, N1}
    end;
call(Anno, Fun, Args, Context, N) ->
    {[Fun1 | Args1], N1} = nodes([Fun | Args], Context, N),
    {{call, Anno, Fun1, Args1}, N1}.

%% The call stays where it is, so that the stack trace is the same. Its arguments are read as those of one call.
leave(Anno, {remote, _, _, {atom, _, Name}} = Callee, Args, #{place := body} = Context, N) ->
    G = generated(Anno),
    Vars = [variable(Anno, Context, I) || I <- lists:seq(N, N + length(Args) - 1)],
    List = lists:foldr(fun(Var, Tail) -> {cons, G, Var, Tail} end, {nil, G}, Vars),
    {{block, G, [{match, G, {tuple, G, Vars}, {tuple, G, Args}},
                 remote(G, Context, leaving, [{atom, G, Name}, List]),
                 {call, Anno, Callee, Vars}]},
     N + length(Args)};
leave(Anno, {remote, _, Module, Name}, Args, Context, N) -> {stand_in(Anno, leave, Module, Name, Args, Context), N}.

makes_reference(erlang, Name, #{references := true, place := body}) -> lists:member(Name, [make_ref, monitor, alias]);
makes_reference(_, _, _) -> false.

%% If the compiler sees that a reference was just made, a `receive' of messages with it starts where the mailbox ended then.
%% Without that, each call of a server would scan all messages that are queued.
note_reference(Anno, Number, Call, Context, N) ->
    G = generated(Anno),
    Value = variable(Anno, Context, N),
    {{block, G, [{match, G, Value, Call}, remote(G, Context, returned, [{integer, G, Number}, Value]), Value]}, N + 1}.

%% The meaning of a name without a module. A function of the module itself is treated like one of another module only if
%% its result is what counts, as that of `lookup/2' in `ets', which is part of the VM.
resolve(Name, Arity, #{module := Own, locals := Locals, imports := Imports} = Context) ->
    case {is_map_key({Name, Arity}, Locals), Imports} of
        {true, _} ->
            case class(Own, Name, Arity, Context) of
                {result, _} -> {Own, Name};
                _ -> local
            end;
        {false, #{{Name, Arity} := Module}} -> {Module, Name};
        {false, _} ->
            case erl_internal:bif(Name, Arity) of
                true -> {erlang, Name};
                false -> local
            end
    end.

class(Module, Function, Arity, #{calls := Calls, natives := Natives}) ->
    case Natives of
        #{{Module, Function, Arity} := Number} -> {foreign, Number};
        #{} -> Calls:class(Module, Function, Arity)
    end.

possible(Module, Function, Arity, #{calls := Calls, natives := Natives}) ->
    Calls:possible(Module, Function, Arity) orelse
        lists:any(fun({M, F, A}) -> is_one(Module, M) andalso is_one(Function, F) andalso is_one(Arity, A) end,
                  maps:keys(Natives)).

is_one('_', _) -> true;
is_one(Same, Same) -> true;
is_one(_, _) -> false.

external(Fun, Module, Name, Arity, Context, N) ->
    case possible(literal(Module), literal(Name), literal(Arity), Context) of
        true -> {remote(element(2, Fun), Context, function, [Module, Name, Arity]), N};
        false -> {Fun, N}
    end.

%% If `f/1' is imported, the compiler makes a fun of its own for `fun f/1'; OTP 27 also does so for `fun spawn/1'. That fun
%% takes a number, which it must continue to take.
numbered(Fun, Woven) ->
    G = generated(element(2, Fun)),
    {block, G, [{match, G, {var, G, '_'}, Fun}, Woven]}.

literal({atom, _, Name}) -> Name;
literal({integer, _, Arity}) -> Arity;
literal(_) -> '_'.

elements({nil, _}) -> {ok, []};
elements({cons, _, Head, Tail}) ->
    maybe
        {ok, Elements} ?= elements(Tail),
        {ok, [Head | Elements]}
    end;
elements(_) -> unknown.

stand_in(Anno, Function, Module, Name, Args, Context) -> stand_in(Anno, Function, [], Module, Name, Args, Context).

stand_in(Anno, Function, Number, Module, Name, Args, Context) ->
    List = lists:foldr(fun(Arg, Tail) -> {cons, Anno, Arg, Tail} end, {nil, Anno}, Args),
    remote(Anno, Context, Function, Number ++ [Module, Name, List]).

-doc "A call of a function of the run-time module.".
remote(Anno, #{runtime := Runtime}, Function, Args) ->
    {call, Anno, {remote, Anno, {atom, Anno, Runtime}, {atom, Anno, Function}}, Args}.

-doc "A pattern that also binds a variable to the whole value.".
alias(Pattern, Variable) -> {match, element(2, Variable), Variable, Pattern}.

variable(Anno, #{prefix := Prefix}, N) ->
    {var, generated(Anno), list_to_atom(Prefix ++ integer_to_list(N))}.

-doc "The location of generated code: the compiler does not warn about it.".
generated(Anno) -> erl_anno:set_generated(true, Anno).
