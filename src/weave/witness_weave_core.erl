-module(witness_weave_core).
-moduledoc """
Replaces receives, in Core Erlang; pure.

A `receive` that takes its messages from the run time has to say which ones it would take, and that depends on the variables
that are bound there. In Core Erlang this is explicit. There a `receive` is a loop over primitive operations, with the clauses
as a `case`. The free variables of that `case` are the bound ones. Funs have their names and numbers already, so added code does
not change them.

```
letrec 'recv$^0'/0 =                                       case Runtime:take(m, fun m:'-witness receive 1-'/2, {X}, T) of
  fun () -> let <Ok, Msg> = primop recv_peek_message() ...   <[Msg]> when 'true' ->
    case Msg of                                                case Msg of
      <{X', Y}> when X' =:= X -> primop remove_message(), B      <{X', Y}> when X' =:= X -> B
      <Other> -> primop recv_next(), ...                         <_> -> match_fail
    ... primop recv_wait_timeout(T), primop timeout(), A     <'timeout'> when 'true' -> A
in apply 'recv$^0'/0()                                     end

                     '-witness receive 1-'/2 = fun (Bound, Msg) ->
                       case Bound of <{X}> when 'true' ->
                         case Msg of <{X', Y}> when X' =:= X -> 'true'; <_> -> 'false'
```

Bodies stay in tail position, and their exported variables stay as they are. A `receive` of an unknown form is an error: none is
left as it was.

`self()` becomes `Runtime:self()`. In a guard it becomes a variable, which is bound where the innermost function around it starts.
Stack traces that the program gets pass through `Runtime:stack/1`, and the value of a `catch` through `Runtime:caught/1`.
""".

-export([primitive/1, module/2]).

-define(SELF, '$witness_self').

-doc "The module with its receives replaced. If one cannot be replaced, raises `error:{unknown_receive, Module}`.".
-spec module(cerl:c_module(), witness_weave:plan()) -> cerl:c_module().
module(Core, #{runtime := Runtime}) ->
    Name = cerl:atom_val(cerl:module_name(Core)),
    {Defs, {Helpers, _}} = lists:mapfoldl(fun({Function, Fun}, State) ->
        {Fun1, State1} = cerl_trees:mapfold(fun(Node, S) -> node(Node, S, Name, Runtime) end, State, Fun),
        {{Function, cerl_trees:map(fun(Node) -> with_self(Node, Runtime) end, Fun1)}, State1}
    end, {[], 1}, cerl:module_defs(Core)),
    ok = none_left(Defs, Name),
    Added = lists:reverse(Helpers),
    cerl:update_c_module(Core, cerl:module_name(Core), cerl:module_exports(Core) ++ [Helper || {Helper, _} <- Added],
                         cerl:module_attrs(Core), Defs ++ Added).

%% Each node comes after its subtrees.
node(Node, State, Name, Runtime) ->
    case cerl:type(Node) of
        call -> {own_self(Node, Runtime), State};
        clause -> {rewrite_guard(Node, Runtime), State};
        primop -> {stack(Node, Runtime), State};
        'catch' -> {runtime(Runtime, caught, [Node]), State};
        letrec -> rewrite_take(Node, State, Name, Runtime);
        _ -> {Node, State}
    end.

runtime(Runtime, Function, Args) -> cerl:c_call(cerl:c_atom(Runtime), cerl:c_atom(Function), Args).

%% --- identity --------------------------------------------------------------------

own_self(Call, Runtime) ->
    case is_call(Call, erlang, self) of
        true -> cerl:update_c_call(Call, cerl:c_atom(Runtime), cerl:c_atom(self), []);
        false -> Call
    end.

is_call(Node, Module, Function) ->
    cerl:type(Node) =:= call andalso cerl:call_args(Node) =:= [] andalso
        is_atom_of(cerl:call_module(Node), Module) andalso is_atom_of(cerl:call_name(Node), Function).

is_atom_of(Node, Name) -> cerl:is_c_atom(Node) andalso cerl:atom_val(Node) =:= Name.

%% A guard cannot call the run-time module.
rewrite_guard(Clause, Runtime) ->
    Guard = cerl_trees:map(fun(Node) ->
        case is_call(Node, Runtime, self) of
            true -> cerl:c_var(?SELF);
            false -> Node
        end
    end, cerl:clause_guard(Clause)),
    cerl:update_c_clause(Clause, cerl:clause_pats(Clause), Guard, cerl:clause_body(Clause)).

with_self(Node, Runtime) ->
    case cerl:type(Node) =:= 'fun' andalso lists:member(?SELF, cerl_trees:free_variables(cerl:fun_body(Node))) of
        true ->
            Body = cerl:c_let([cerl:c_var(?SELF)], runtime(Runtime, self, []), cerl:fun_body(Node)),
            cerl:update_c_fun(Node, cerl:fun_vars(Node), Body);
        false -> Node
    end.

stack(Primop, Runtime) ->
    case cerl:atom_val(cerl:primop_name(Primop)) of
        build_stacktrace -> runtime(Runtime, stack, [Primop]);
        _ -> Primop
    end.

%% --- receives --------------------------------------------------------------------

rewrite_take(Letrec, State, Name, Runtime) ->
    case cerl:letrec_defs(Letrec) of
        [{_, Fun}] ->
            Body = cerl:fun_body(Fun),
            case primitive(Body) of
                recv_peek_message -> rewrite_peek(Letrec, Body, State, Name, Runtime);
                recv_wait_timeout -> {waiting(Body, Name, Runtime), State};
                _ -> {Letrec, State}
            end;
        _ -> {Letrec, State}
    end.

-doc "The primitive operation that an expression of Core Erlang starts with.".
-spec primitive(cerl:cerl()) -> atom().
primitive(Node) ->
    First = case cerl:type(Node) of
        'let' -> cerl:let_arg(Node);
        seq -> cerl:seq_arg(Node);
        'case' -> cerl:case_arg(Node);
        _ -> Node
    end,
    case cerl:type(First) of
        primop -> cerl:atom_val(cerl:primop_name(First));
        _ -> none
    end.

rewrite_peek(Letrec, Let, {Helpers, N}, Name, Runtime) ->
    [_, Msg] = cerl:let_vars(Let),
    Case = cerl:let_body(Let),
    'case' = known(cerl:type(Case), 'case', Name),
    [There, NotThere] = cerl:case_clauses(Case),
    Clauses = cerl:clause_body(There),
    {Time, After} = time(cerl:clause_body(NotThere), Name),
    Helper = list_to_atom("-witness receive " ++ integer_to_list(N) ++ "-"),
    Matching = rewrite_decision(Clauses, fun(_) -> cerl:c_atom(true) end, fun() -> cerl:c_atom(false) end),
    Needed = [Var || Var <- needed(Matching), Var =/= cerl:var_name(Msg)],
    true = known(lists:all(fun(Var) -> not is_tuple(Var) end, Needed), true, Name),
    Bound = cerl:c_tuple([cerl:c_var(Var) || Var <- Needed]),
    Given = cerl:c_var('$witness_bound'),
    Fun = cerl:c_fun([Given, Msg], cerl:c_case(Given, [cerl:c_clause([Bound], Matching), failing_clause()])),
    Bodies = rewrite_decision(Clauses, fun(Body) -> Body end, fun failure/0),
    %% The primitive operation has the line of the `receive'.
    Take = cerl:set_ann(runtime(Runtime, take, [cerl:c_atom(Name), cerl:abstract(fun Name:Helper/2), Bound, Time]),
                        cerl:get_ann(cerl:let_arg(Let))),
    Answer = cerl:c_clause([cerl:make_list([Msg])], Bodies),
    Taken = cerl:c_case(Take, [Answer | After] ++ [failing_clause()]),
    [{Loop, _}] = cerl:letrec_defs(Letrec),
    false = known(lists:member(cerl:var_name(Loop), cerl_trees:free_variables(Taken)), false, Name),
    {Taken, {[{cerl:c_fname(Helper, 2), Fun} | Helpers], N + 1}}.

%% Code that reads a message ends by taking it, or by going on to the next one. The compiler writes more than one `case' if a
%% pattern depends on variables that it has bound itself.
rewrite_decision(Node, Took, Next) ->
    case {cerl:type(Node), primitive(Node)} of
        {seq, remove_message} -> Took(cerl:seq_body(Node));
        {seq, recv_next} -> Next();
        %% `cerl:update_tree/2' does not know native records.
        {record, _} -> Node;
        {_, _} ->
            case cerl:subtrees(Node) of
                [] -> Node;
                Groups -> cerl:update_tree(Node, [[rewrite_decision(Part, Took, Next) || Part <- Group] || Group <- Groups])
            end
    end.

%% Keys of maps, and sizes, in patterns are expressions, but `cerl_trees' treats them as variables that the pattern binds.
needed(Matching) ->
    {Binds, Uses} = cerl_trees:fold(fun(Node, Found) ->
        case cerl:type(Node) of
            clause -> lists:foldl(fun pattern/2, Found, cerl:clause_pats(Node));
            _ -> Found
        end
    end, {[], []}, Matching),
    ordsets:union(cerl_trees:free_variables(Matching), ordsets:subtract(ordsets:from_list(Uses), ordsets:from_list(Binds))).

pattern(Node, {Binds, Uses} = Found) ->
    case cerl:type(Node) of
        var -> {[cerl:var_name(Node) | Binds], Uses};
        alias -> pattern(cerl:alias_var(Node), pattern(cerl:alias_pat(Node), Found));
        map_pair -> pattern(cerl:map_pair_val(Node), {Binds, cerl_trees:free_variables(cerl:map_pair_key(Node)) ++ Uses});
        bitstr -> pattern(cerl:bitstr_val(Node), {Binds, cerl_trees:free_variables(cerl:bitstr_size(Node)) ++ Uses});
        _ -> lists:foldl(fun pattern/2, Found, lists:append(cerl:subtrees(Node)))
    end.

%% This `receive' has no clauses.
waiting(Body, Name, Runtime) ->
    {Time, After} = time(Body, Name),
    Take = runtime(Runtime, take, [cerl:c_atom(Name), cerl:c_atom(none), cerl:c_tuple([]), Time]),
    cerl:c_case(Take, After ++ [failing_clause()]).

%% The clause that the compiler writes for the case that nothing matches. It is never reached: the run time gives a match.
failing_clause() -> cerl:ann_c_clause([compiler_generated], [cerl:c_var('$witness_none')], cerl:c_atom(true), failure()).

failure() -> cerl:c_primop(cerl:c_atom(match_fail), [cerl:c_tuple([cerl:c_atom(case_clause), cerl:c_atom(none)])]).

rest(Node) ->
    case cerl:type(Node) of
        seq -> cerl:seq_body(Node);
        _ -> cerl:c_atom(ok)
    end.

%% The time of a wait, and the clause for the code after it.
time(Node, Name) ->
    recv_wait_timeout = known(primitive(Node), recv_wait_timeout, Name),
    {Wait, Clauses} = case cerl:type(Node) of
        'let' -> {cerl:let_arg(Node), cerl:case_clauses(cerl:let_body(Node))};
        'case' -> {cerl:case_arg(Node), cerl:case_clauses(Node)};
        seq -> {cerl:seq_arg(Node), []};
        primop -> {Node, []}
    end,
    [Time] = cerl:primop_args(Wait),
    Over = [cerl:clause_body(Clause) || Clause <- Clauses, [Pattern] <- [cerl:clause_pats(Clause)],
                                        cerl:is_literal(Pattern), cerl:concrete(Pattern) =:= true],
    {Time, [cerl:c_clause([cerl:c_atom(timeout)], timed_out(Body)) || Body <- Over]}.

timed_out(Body) ->
    case primitive(Body) of
        timeout -> rest(Body);
        _ -> Body
    end.

known(Same, Same, _) -> Same;
known(_, _, Name) -> error({unknown_receive, Name}).

none_left(Defs, Name) ->
    lists:foreach(fun({_, Fun}) ->
        cerl_trees:fold(fun(Node, ok) ->
            case cerl:type(Node) =:= primop andalso
                lists:member(cerl:atom_val(cerl:primop_name(Node)),
                             [recv_peek_message, recv_next, recv_wait_timeout, remove_message, timeout]) of
                true -> error({unknown_receive, Name});
                false -> ok
            end
        end, ok, Fun)
    end, Defs).
