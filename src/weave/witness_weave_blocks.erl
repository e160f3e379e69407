-module(witness_weave_blocks).
-moduledoc """
Receives that report when they block, in Core Erlang; pure. A transform of the compiler (`core_transform`).

A `receive` that finds a message at once reports no more than before: only a process that waits pays for saying so. So the woven
code first scans the mailbox as with `after 0`. If nothing matches, it calls the run time, and runs the same `receive`
once more, with its own time.

```
letrec 'recv$^0'/0 = ... clauses, with bodies B          case letrec 'recv$^0'/0 = ... clauses, with answers {1, X, Y}
  ... primop recv_wait_timeout(T) ... A                         ... primop recv_wait_timeout(0)
in apply 'recv$^0'/0()                                            Blocked = Runtime:blocks(T)
                                                                  letrec 'recv$^0 blocks'/0 = ... the same clauses and answers,
                                                                    each after Runtime:wakes(Blocked) ... primop recv_wait_timeout(T)
                                                         of {1, X, Y} -> B; timeout -> A
```

Bodies occur once, and stay in tail position. The `receive` takes the same message: the first one that matches, since between
the two loops messages are only added. The compiler may have a `receive` skip the messages that are older than a reference. For
that it requires that nothing is called between the scan of the mailbox and the wait.

A `receive` of an unknown form stays as it is, and one in which functions could get other names. It does not report that it
blocks, and the run time has to allow for that.
""".

-export([core_transform/2]).

-define(ATTRIBUTE, witness_weave).

-doc "The module. An attribute of it names the run time that it was woven for.".
-spec core_transform(cerl:c_module(), [compile:option()]) -> cerl:c_module().
core_transform(Core, _) ->
    case [Runtime || {Name, Value} <- cerl:module_attrs(Core), cerl:concrete(Name) =:= ?ATTRIBUTE,
                     Runtime <- cerl:concrete(Value)] of
        [Runtime | _] ->
            Defs = [{Name, cerl_trees:map(fun(Node) -> node(Node, Runtime) end, Fun)} || {Name, Fun} <- cerl:module_defs(Core)],
            cerl:update_c_module(Core, cerl:module_name(Core), cerl:module_exports(Core), cerl:module_attrs(Core), Defs);
        [] -> Core
    end.

%% Each node comes after its subtrees.
node(Node, Runtime) ->
    case cerl:type(Node) of
        letrec ->
            case cerl:letrec_defs(Node) of
                [{Loop, Fun}] ->
                    try rewrite_receive(Node, Loop, cerl:fun_body(Fun), Runtime)
                    catch throw:unknown -> Node
                    end;
                _ -> Node
            end;
        _ -> Node
    end.

rewrite_receive(Node, Loop, Body, Runtime) ->
    case witness_weave_core:primitive(Body) of
        recv_peek_message -> rewrite_look(Node, Loop, Body, Runtime);
        recv_wait_timeout -> rewrite_wait(Node, Loop, Body, Runtime);
        _ -> Node
    end.

%% --- a receive without clauses ---------------------------------------------------

rewrite_wait(Node, Loop, Body, Runtime) ->
    {Time, _} = wait(Body),
    Blocked = variable(Loop, " blocked"),
    blocked(Blocked, Time, Runtime, loop(Node, Loop, timed_out(fun(After) -> add_wake(Blocked, Runtime, After) end, Body))).

%% --- a receive with clauses ------------------------------------------------------

rewrite_look(Node, Loop, Body, Runtime) ->
    [_, Msg] = cerl:let_vars(Body),
    Case = of_type('case', cerl:let_body(Body)),
    [There, NotThere] = cerl:case_clauses(Case),
    Wait = cerl:clause_body(NotThere),
    {Time, After} = wait(Wait),
    case cerl:is_literal(Time) andalso cerl:concrete(Time) of
        %% The receive only polls.
        0 -> Node;
        Literal ->
            Taking = cerl:clause_body(There),
            {Answering, {_, Clauses}} = make_answers(Taking, [cerl:var_name(Msg)], {1, []}),
            length([Clause || Clause <- Clauses, is_numbered(cerl:clause_body(Clause))]) < 2 orelse throw(unknown),
            Looks = fun(Taken, Waits) ->
                Parts = [body(There, Taken), body(NotThere, Waits)],
                loop(Node, Loop, cerl:update_c_let(Body, cerl:let_vars(Body), cerl:let_arg(Body),
                                                   cerl:update_c_case(Case, cerl:case_arg(Case), Parts)))
            end,
            Blocked = variable(Loop, " blocked"),
            Over = fun(_) -> add_wake(Blocked, Runtime, cerl:c_atom(timeout)) end,
            Again = rename(" again", Looks(wake_after_removal(Answering, Blocked, Runtime), timed_out(Over, Wait))),
            Blocks = fun(_) -> cerl:c_atom(timeout) end,
            First = rename(" first", Looks(Answering, timed_out(Blocks, at_once(Wait)))),
            Timeout = [cerl:c_clause([cerl:c_atom(timeout)], After) || Literal =/= infinity],
            Answer = variable(Loop, " answer"),
            Taken = cerl:c_case(First, [cerl:c_clause([cerl:c_atom(timeout)], blocked(Blocked, Time, Runtime, Again)),
                                        cerl:c_clause([Answer], Answer)]),
            cerl:c_case(Taken, lists:reverse(Clauses, Timeout) ++ [failing_clause(variable(Loop, " none"))])
    end.

%% Whether the compiler makes functions of it and numbers them after it has ordered its tests: named funs, comprehensions, a large
%% `after` of a `try`. Two such bodies could exchange their numbers, which are in the names of the functions.
is_numbered(Body) ->
    cerl_trees:fold(fun(Part, Found) ->
        Found orelse cerl:type(Part) =:= letrec andalso not lists:member(letrec_goto, cerl:get_ann(Part))
    end,
                    false, Body).

%% Names within a function must differ, even if they are bound in different places.
variable(Loop, Suffix) ->
    {Name, 0} = cerl:var_name(Loop),
    cerl:c_var(list_to_atom(atom_to_list(Name) ++ Suffix)).

names_in(Node) ->
    case cerl:type(Node) of
        clause -> lists:foldl(fun pattern/2, [], cerl:clause_pats(Node));
        'let' -> [cerl:var_name(Var) || Var <- cerl:let_vars(Node)];
        'fun' -> [cerl:var_name(Var) || Var <- cerl:fun_vars(Node)];
        letrec -> [cerl:var_name(Name) || {Name, _} <- cerl:letrec_defs(Node)];
        _ -> []
    end.

%% The keys of maps, and sizes, in patterns are expressions.
pattern(Node, Names) ->
    case cerl:type(Node) of
        var -> [cerl:var_name(Node) | Names];
        alias -> pattern(cerl:alias_pat(Node), [cerl:var_name(cerl:alias_var(Node)) | Names]);
        map_pair -> pattern(cerl:map_pair_val(Node), Names);
        bitstr -> pattern(cerl:bitstr_val(Node), Names);
        _ -> lists:foldl(fun pattern/2, Names, lists:append(cerl:subtrees(Node)))
    end.

%% Each body becomes an answer with the variables that were bound since the message was read, and a clause for this answer. The last
%% clause comes first.
make_answers(Node, Bound0, {N, Clauses} = State) ->
    case is_removal(Node) of
        {true, Body} ->
            Needed = [cerl:c_var(Var) || Var <- names(Body), lists:member(Var, Bound0)],
            Answer = cerl:c_tuple([cerl:c_int(N) | Needed]),
            {cerl:update_c_seq(Node, cerl:seq_arg(Node), Answer), {N + 1, [cerl:c_clause([Answer], Body) | Clauses]}};
        false ->
            Bound = names_in(Node) ++ Bound0,
            case cerl:subtrees(Node) of
                [] -> {Node, State};
                Groups ->
                    {Woven, Next} = lists:mapfoldl(fun(Group, S) ->
                        lists:mapfoldl(fun(Part, S1) -> make_answers(Part, Bound, S1) end, S, Group)
                    end, State, Groups),
                    {cerl:update_tree(Node, Woven), Next}
            end
    end.

%% All names: `cerl_trees' wrongly treats the keys of maps in patterns as bound by the pattern.
names(Node) ->
    ordsets:from_list(cerl_trees:fold(fun(Part, Found) -> [cerl:var_name(Part) || cerl:type(Part) =:= var] ++ Found end, [], Node)).

%% The message must be out of the mailbox when the run time is called.
wake_after_removal(Node, Blocked, Runtime) ->
    cerl_trees:map(fun(Part) ->
        case is_removal(Part) of
            {true, Answer} -> cerl:update_c_seq(Part, cerl:seq_arg(Part), add_wake(Blocked, Runtime, Answer));
            false -> Part
        end
    end, Node).

is_removal(Node) ->
    case cerl:is_c_seq(Node) andalso cerl:is_c_primop(cerl:seq_arg(Node))
             andalso witness_weave_core:primitive(cerl:seq_arg(Node)) of
        remove_message -> {true, cerl:seq_body(Node)};
        _ -> false
    end.

%% The compiler requires that each name is bound once in a function.
rename(Suffix, Node) ->
    Names = cerl_trees:fold(fun(Part, Found) -> names_in(Part) ++ Found end, [], Node),
    cerl_trees:map(fun(Part) ->
        case cerl:type(Part) =:= var andalso lists:member(cerl:var_name(Part), Names) andalso cerl:var_name(Part) of
            false -> Part;
            {Name, Arity} -> cerl:update_c_fname(Part, list_to_atom(atom_to_list(Name) ++ Suffix), Arity);
            Name -> cerl:update_c_var(Part, list_to_atom(lists:concat([Name, Suffix])))
        end
    end, Node).

%% --- parts of both forms ---------------------------------------------------------

loop(Letrec, Loop, Body) ->
    [{Loop, Fun}] = cerl:letrec_defs(Letrec),
    cerl:update_c_letrec(Letrec, [{Loop, cerl:update_c_fun(Fun, cerl:fun_vars(Fun), Body)}], cerl:letrec_body(Letrec)).

%% The time of a wait, and the code after it.
wait(Node) ->
    recv_wait_timeout = witness_weave_core:primitive(of_type('let', Node)),
    [Time] = cerl:primop_args(cerl:let_arg(Node)),
    [Over, _] = cerl:case_clauses(of_type('case', cerl:let_body(Node))),
    {Time, cerl:clause_body(Over)}.

timed_out(Change, Node) ->
    Case = cerl:let_body(Node),
    [Over, Goes] = cerl:case_clauses(Case),
    cerl:update_c_let(Node, cerl:let_vars(Node), cerl:let_arg(Node),
                      cerl:update_c_case(Case, cerl:case_arg(Case), [body(Over, Change(cerl:clause_body(Over))), Goes])).

at_once(Node) ->
    Wait = cerl:let_arg(Node),
    cerl:update_c_let(Node, cerl:let_vars(Node), cerl:update_c_primop(Wait, cerl:primop_name(Wait), [cerl:c_int(0)]),
                      cerl:let_body(Node)).

body(Clause, Body) -> cerl:update_c_clause(Clause, cerl:clause_pats(Clause), cerl:clause_guard(Clause), Body).

blocked(Blocked, Time, Runtime, Next) -> cerl:c_let([Blocked], call(Runtime, blocks, [Time]), Next).

add_wake(Blocked, Runtime, Next) -> cerl:c_seq(call(Runtime, wakes, [Blocked]), Next).

call(Runtime, Function, Args) -> cerl:c_call(cerl:c_atom(Runtime), cerl:c_atom(Function), Args).

of_type(Type, Node) ->
    case cerl:type(Node) of
        Type -> Node;
        _ -> throw(unknown)
    end.

%% The clause that the compiler writes for the case that nothing matches.
failing_clause(Var) ->
    Failure = cerl:c_primop(cerl:c_atom(match_fail), [cerl:c_tuple([cerl:c_atom(case_clause), cerl:c_atom(none)])]),
    cerl:ann_c_clause([compiler_generated], [Var], Failure).
