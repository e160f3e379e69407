-module(witness_event_inspect_exit).
-moduledoc """
Why a process has ended, in the words of `Exception.format_exit/1` of Elixir, on one line:

| Reason | Text |
|---|---|
| `{timeout, {'Elixir.GenServer', call, [Pool, get, 5000]}}` | `exited in: GenServer.call(Pool, :get, 5000) ** (EXIT) time out` |
| `{{badmatch, 1}, Stack}` | `an exception was raised: ** (MatchError) no match of right hand side value: 1 a.ex:3: Pool.get/1` |
| `{shutdown, closed}` | `shutdown: :closed` |

No code of the system runs, so an exception says what its field `message` does. If it has no such text, its struct is shown. The
stack has no names of applications, and an error has none of the hints that Elixir computes from loaded modules. Mistakes in the
specifications of supervisors are terms.
""".

-export([format/2, format/3]).

-type item() :: {exit, Reason :: term()} | {entries, Stack :: term()} | witness_event_inspect:item().

-type work() :: witness_event_bounded:work(item()).

-define(MAX_ARGS, 255).
%% Entries of the information on the place of an entry of a stack.
-define(MAX_PLACE, 10).
%% Characters of the name of a file.
-define(MAX_FILE, 1000).

-doc "A reason as at most `Limit` characters.".
-spec format(Reason :: term(), Limit :: non_neg_integer()) -> binary().
format(Reason, Limit) -> format(Reason, Limit, fun witness_event_inspect_hidden:is_hidden/1).

-doc "Like `format/2`, with a function that says which structs hide their fields.".
-spec format(Reason :: term(), Limit :: non_neg_integer(), witness_event_inspect:hides()) -> binary().
format(Reason, Limit, Hides) ->
    witness_event_bounded:write([{exit, Reason}], Limit, fun
        ({exit, Inner}, Left) -> explain(Inner, Left);
        ({entries, Stack}, _) -> entries(Stack);
        (Item, Left) -> witness_event_inspect:expand(Item, Left, Hides)
    end).

-spec explain(term(), Left :: non_neg_integer()) -> work().
explain({Error, [_ | _] = Stack} = Reason, Left) ->
    case is_stack(Stack, Left) of
        true ->
            {Exception, Message} = exception(Error, Stack, Left),
            [{text, ~"an exception was raised: ** ("}, {term, Exception}, {text, ~") "}] ++ Message ++ [{entries, Stack}];
        false -> plain(Reason)
    end;
explain({shutdown, {failed_to_start_child, Child, {'EXIT', Reason}}}, _) -> not_started(Child, Reason);
explain({shutdown, {failed_to_start_child, Child, Reason}}, _) -> not_started(Child, Reason);
explain({Reason, {Module, Function, Args}} = Whole, _) when is_atom(Module), is_atom(Function) ->
    case is_short(Args, ?MAX_ARGS) of
        true ->
            Call = witness_event_inspect:mfa(Module, Function, Args),
            [{text, ~"exited in: "} | Call] ++ [{text, ~" ** (EXIT) "}, {exit, Reason}];
        false -> plain(Whole)
    end;
explain(Reason, _) -> plain(Reason).

%% Whether it is a list of at most so many elements.
is_short([_ | Rest], Max) -> Max > 0 andalso is_short(Rest, Max - 1);
is_short(Rest, _) -> Rest =:= [].

not_started(Child, Reason) ->
    [{text, ~"shutdown: failed to start child: "}, {term, Child}, {text, ~" ** (EXIT) "}, {exit, Reason}].

plain(normal) -> [{text, ~"normal"}];
plain(shutdown) -> [{text, ~"shutdown"}];
plain({shutdown, Reason}) -> [{text, ~"shutdown: "}, {term, Reason}];
plain(calling_self) -> [{text, ~"process attempted to call itself"}];
plain(timeout) -> [{text, ~"time out"}];
plain(killed) -> [{text, ~"killed"}];
plain(noconnection) -> [{text, ~"no connection"}];
plain(noproc) ->
    [{text, ~"no process: the process is not alive or there's no process currently associated with the given name, "},
     {text, ~"possibly because its application isn't started"}];
plain({nodedown, Node}) when is_atom(Node) -> [{text, ~"no connection to "}, {text, harmless(atom_to_list(Node))}];
plain({already_started, Pid}) -> [{text, ~"already started: "}, {term, Pid}];
plain({bad_return_value, Value}) -> [{text, ~"bad return value: "}, {term, Value}];
plain({bad_call, Request}) -> [{text, ~"bad call: "}, {term, Request}];
plain({bad_cast, Request}) -> [{text, ~"bad cast: "}, {term, Request}];
plain({bad_return, {Module, init, Value}}) when is_atom(Module) ->
    witness_event_inspect:mfa(Module, init, 1) ++ [{text, ~" returned a bad value: "}, {term, Value}];
plain(Reason) -> [{term, Reason}].

%% The exception that Elixir makes of an error, and its message.
exception(badarg, _, _) -> {'Elixir.ArgumentError', [{text, ~"argument error"}]};
exception({badarg, Term}, _, _) -> {'Elixir.ArgumentError', [{text, ~"argument error: "}, {term, Term}]};
exception(badarith, _, _) -> {'Elixir.ArithmeticError', [{text, ~"bad argument in arithmetic expression"}]};
exception(system_limit, _, _) -> {'Elixir.SystemLimitError', [{text, ~"a system limit has been reached"}]};
exception(cond_clause, _, _) -> {'Elixir.CondClauseError', [{text, ~"no cond clause evaluated to a truthy value"}]};
exception({badarity, {Fun, Args}} = Term, _, _) when is_function(Fun) ->
    {arity, Arity} = erlang:fun_info(Fun, arity),
    case is_short(Args, ?MAX_ARGS) of
        true ->
            {'Elixir.BadArityError',
             [{term, Fun}, {text, ~" with arity "}, {term, Arity}, {text, ~" called with "} | count(Args)]};
        false -> other(Term)
    end;
exception({badfun, Term}, _, _) when not is_function(Term) ->
    {'Elixir.BadFunctionError', [{text, ~"expected a function, got: "}, {term, Term}]};
exception({badmatch, Term}, _, _) -> {'Elixir.MatchError', [{text, ~"no match of right hand side value: "}, {term, Term}]};
exception({badmap, Term}, _, _) -> {'Elixir.BadMapError', [{text, ~"expected a map, got: "}, {term, Term}]};
exception({badbool, Operator, Term}, _, _) when Operator =:= 'and'; Operator =:= 'or'; Operator =:= 'not' ->
    {'Elixir.BadBooleanError',
     [{text, ~"expected a boolean on left-side of \""}, {text, atom_to_list(Operator)}, {text, ~"\", got: "}, {term, Term}]};
exception({case_clause, Term}, _, _) -> {'Elixir.CaseClauseError', [{text, ~"no case clause matching: "}, {term, Term}]};
exception({else_clause, Term}, _, _) -> {'Elixir.WithClauseError', [{text, ~"no with clause matching: "}, {term, Term}]};
exception({try_clause, Term}, _, _) -> {'Elixir.TryClauseError', [{text, ~"no try clause matching: "}, {term, Term}]};
exception({badkey, Key}, [{maps, get, [_, Map], _} | _], _) -> missing(Key, Map);
exception({badkey, Key}, [{maps, update, [_, _, Map], _} | _], _) -> missing(Key, Map);
exception({badkey, Key}, [{erlang, map_get, [_, Map], _} | _], _) -> missing(Key, Map);
exception({badkey, Key}, _, _) -> missing(Key, nil);
exception({badkey, Key, Term}, _, _) -> missing(Key, Term);
exception(#{'__struct__' := 'Elixir.KeyError', '__exception__' := true, key := Key, term := Term, message := nil}, _, _) ->
    missing(Key, Term);
exception(undef, Stack, _) ->
    {'Elixir.UndefinedFunctionError', [{text, ~"function "} | first(Stack)] ++ [{text, ~" is undefined"}]};
exception(function_clause, Stack, _) ->
    {'Elixir.FunctionClauseError', [{text, ~"no function clause matching in "} | first(Stack)]};
exception(#{'__struct__' := Module, '__exception__' := true} = Exception, _, Left) when is_atom(Module) ->
    case Exception of
        #{message := Message} when is_binary(Message) ->
            case witness_event_inspect_struct:is_printable(Message, Left) of
                true -> {Module, [{text, harmless(witness_event_bounded:prefix(Message, Left))}]};
                false -> {Module, [{term, Exception}]}
            end;
        _ -> {Module, [{term, Exception}]}
    end;
exception(Term, _, _) -> other(Term).

other(Term) -> {'Elixir.ErlangError', [{text, ~"Erlang error: "}, {term, Term}]}.

missing(Key, nil) -> {'Elixir.KeyError', [{text, ~"key "}, {term, Key}, {text, ~" not found"}]};
missing(Key, Term) -> {'Elixir.KeyError', [{text, ~"key "}, {term, Key}, {text, ~" not found in: "}, {term, Term}]}.

count([]) -> [{text, ~"no arguments"}];
count([Arg]) -> [{text, ~"1 argument ("}, {term, Arg}, {text, ~")"}];
count(Args) -> [{text, integer_to_binary(length(Args))}, {text, ~" arguments "} | witness_event_inspect:arity(Args)].

first([{Module, Function, Args, _} | _]) when is_list(Args) -> witness_event_inspect:mfa(Module, Function, length(Args));
first([{Module, Function, Arity, _} | _]) -> witness_event_inspect:mfa(Module, Function, Arity);
first([{Fun, _, _} | _]) -> [{term, Fun}].

%% Whether the entries that can still be written are those of a stack.
is_stack([Entry | Rest], Left) -> is_entry(Entry) andalso (Left =:= 0 orelse is_stack(Rest, Left - 1));
is_stack(Rest, _) -> Rest =:= [].

is_entry({Module, Function, Arity, Location}) -> is_atom(Module) andalso is_atom(Function) andalso is_entry(Arity, Location);
is_entry({Fun, Arity, Location}) -> is_function(Fun) andalso is_entry(Arity, Location);
is_entry(_) -> false.

is_entry(Arity, Location) -> (is_integer(Arity) orelse is_short(Arity, ?MAX_ARGS)) andalso is_short(Location, ?MAX_PLACE).

entries([{Module, Function, Arity, Location} | Rest]) ->
    [{text, ~" "}, {text, place(Location)} | witness_event_inspect:mfa(Module, Function, Arity)] ++ [{entries, Rest}];
entries([{Fun, Arity, Location} | Rest]) ->
    [{text, ~" "}, {text, place(Location)}, {term, Fun} | witness_event_inspect:arity(Arity)] ++ [{entries, Rest}];
entries([]) -> [].

place(Location) ->
    case lists:keyfind(file, 1, Location) of
        {file, File} ->
            case is_short(File, ?MAX_FILE) andalso io_lib:printable_unicode_list(File) of
                true -> harmless(File) ++ number(line, Location) ++ number(column, Location) ++ ": ";
                false -> ""
            end;
        _ -> ""
    end.

number(Key, Location) ->
    case lists:keyfind(Key, 1, Location) of
        {Key, Number} when is_integer(Number), Number > 0, Number < 1_000_000_000 -> [$: | integer_to_list(Number)];
        _ -> ""
    end.

%% Text that has no quotes around it. Lines become one.
harmless(Chars) ->
    lists:flatmap(fun
        (C) when C =:= $\n; C =:= $\r; C =:= $\t -> " ";
        (C) -> witness_event_inspect_name:escape_character(C)
    end, Chars).
