-module(witness_log_json).
-moduledoc """
JSON Lines, the format of logs for programs in any language: an object a line (see `docs/logs.md`).
""".

-export([event/4, process/2]).

-define(IS_BLANK(C), (C =:= $\s orelse C =:= $\t orelse C =:= $\r)).

-doc """
The event of the line at an offset of a block, and the offset of the next line. `none` is a blank line.
""".
-spec event(Rest :: binary(), Block :: binary(), At :: non_neg_integer(), witness_log_atoms:atoms()) ->
    {witness_log:entry() | none, Next :: non_neg_integer()} | witness_log_term:malformed().
event(<<"{", Rest/binary>>, Block, At, Atoms) ->
    case witness_log_value:fields(Rest, Block, At + 1) of
        {malformed, _, _} = Malformed -> Malformed;
        {Fields, Behind, Next} -> last(Behind, Block, Next, At, Fields, Atoms)
    end;
event(<<C, Rest/binary>>, Block, At, Atoms) when ?IS_BLANK(C) -> event(Rest, Block, At + 1, Atoms);
event(<<"\n", _/binary>>, _, At, _) -> {none, At + 1};
event(<<>>, _, At, _) -> {none, At};
event(_, Block, At, _) -> witness_log_term:expected(~"an object: `{`", Block, At).

last(<<"\n", _/binary>>, Block, At, Begin, Fields, Atoms) -> item(Fields, Block, Begin, At + 1, Atoms);
last(<<>>, Block, At, Begin, Fields, Atoms) -> item(Fields, Block, Begin, At, Atoms);
last(<<C, Rest/binary>>, Block, At, Begin, Fields, Atoms) when ?IS_BLANK(C) ->
    last(Rest, Block, At + 1, Begin, Fields, Atoms);
last(_, Block, At, _, _, _) -> witness_log_term:expected(~"the end of the line", Block, At).

-doc "The process with this name.".
-spec process(Name :: binary(), witness_log_atoms:atoms()) -> witness_event:proc().
process(<<"<", _/binary>> = Name, Atoms) ->
    case witness_log_term:text(Name, Atoms) of
        {ok, Pid} when is_pid(Pid) -> Pid;
        _ -> {external, Name}
    end;
process(Name, _) ->
    {external, Name}.

item(Fields, Block, Begin, Next, Atoms) ->
    try event(Fields, Begin, Atoms) of
        {expected, What, At} -> witness_log_term:expected(What, Block, At);
        Item -> {Item, Next}
    catch
        throw:{malformed, _, _} = Malformed -> Malformed
    end.

event(Fields, Begin, Atoms) ->
    ok = single(Fields),
    Time = time(find(time, Fields)),
    case required(event, Fields, Begin) of
        {~"receives", _} -> {receives, receives(required(messages, Fields, Begin))};
        {~"clock", At} when Time =:= undefined -> malformed(At, ~"expected a field \"time\" beside this event");
        {~"clock", _} -> {clock, Time};
        {~"functions", _} -> functions(required(functions, Fields, Begin), Atoms);
        {Kind, AtKind} -> event(Kind, AtKind, Time, Fields, Begin, Atoms)
    end.

receives({~"taken", _}) -> taken;
receives({~"delivered", _}) -> delivered;
receives({_, At}) -> malformed(At, ~"expected \"taken\" or \"delivered\"").

functions({Texts, At}, Atoms) when is_list(Texts) ->
    witness_log_item:functions([case is_binary(Text) of
        true -> term(Text, At, Atoms);
        false -> malformed(At, ~"expected functions in Erlang's notation, an array of strings")
    end || Text <- Texts], At);
functions({_, At}, _) -> malformed(At, ~"expected functions in Erlang's notation, an array of strings").

event(Kind, AtKind, Time, Fields, Begin, Atoms) ->
    {Process, At} = peer(process, Fields, Begin, Atoms),
    case Kind of
        ~"send" ->
            {To, AtTo} = peer(to, Fields, Begin, Atoms),
            check({send, Process, To, content(message, Fields, Begin, Atoms), Time}, [At, AtTo]);
        ~"recv" ->
            {From, AtFrom} = optional(from, Fields, Begin, Atoms),
            check({recv, Process, From, content(message, Fields, Begin, Atoms), Time}, [At, AtFrom]);
        ~"fork" ->
            {Child, AtChild} = peer(child, Fields, Begin, Atoms),
            {Signature, AtSignature} = signature(Fields, Begin, Atoms),
            check({fork, Process, Child, Signature, Time}, [At, AtChild, AtSignature]);
        ~"init" ->
            {Parent, AtParent} = optional(parent, Fields, Begin, Atoms),
            {Signature, AtSignature} = signature(Fields, Begin, Atoms),
            check({init, Process, Parent, Signature, Time}, [At, AtParent, AtSignature]);
        ~"exit" ->
            check({exit, Process, content(reason, Fields, Begin, Atoms), Time}, [At]);
        ~"call" ->
            {Call, AtCall} = signature(Fields, Begin, Atoms),
            check({call, Process, Call, Time}, [At, AtCall]);
        ~"return" ->
            {Function, AtFunction} = function(Fields, Begin, Atoms),
            check({return, Process, Function, content(value, Fields, Begin, Atoms), Time}, [At, AtFunction]);
        ~"gap" ->
            {Reason, AtReason} = name(reason, Fields, Begin, Atoms),
            {Missing, AtMissing} = missing(find(missing, Fields), AtReason),
            check({gap, Process, Reason, Missing, Time}, [At, AtReason, AtMissing]);
        ~"attached" ->
            {Function, AtFunction} = function(Fields, Begin, Atoms),
            check({attached, Process, Function, Time}, [At, AtFunction]);
        ~"root" ->
            check({root, Process, Time}, [At]);
        _ ->
            {expected, witness_log_item:kinds(), AtKind}
    end.

check(Item, Places) -> witness_log_item:check(Item, Places).

-spec malformed(non_neg_integer(), unicode:chardata()) -> no_return().
malformed(At, What) -> throw({malformed, At, What}).

%% Fields

find(Name, [Value, At, Name | _]) -> {Value, At};
find(Name, [_, _, _ | Fields]) -> find(Name, Fields);
find(_, []) -> none.

required(Name, Fields, Begin) ->
    case find(Name, Fields) of
        none -> malformed(Begin, [~"expected a field \"", atom_to_binary(Name), ~"\""]);
        Found -> Found
    end.

single([_, _, unknown | Fields]) -> single(Fields);
single([_, At, Name | Fields]) ->
    case find(Name, Fields) of
        none -> single(Fields);
        _ -> malformed(At, [~"a second field \"", atom_to_binary(Name), ~"\""])
    end;
single([]) -> ok.

time(none) -> undefined;
time({Time, _}) when is_integer(Time), Time > -1 bsl 63, Time < 1 bsl 63 -> Time;
time({null, _}) -> undefined;
time({_, At}) -> malformed(At, ~"expected a time in nanoseconds, an integer below 2^63").

peer(Name, Fields, Begin, Atoms) -> peer(required(Name, Fields, Begin), Atoms).

peer({Name, At}, Atoms) when is_binary(Name) -> {process(Name, Atoms), At};
peer({#{~"term" := Text}, At}, Atoms) when is_binary(Text) -> {term(Text, At, Atoms), At};
peer({_, At}, _) -> malformed(At, ~"expected the name of a process, a string").

optional(Name, Fields, Begin, Atoms) ->
    case find(Name, Fields) of
        none -> {undefined, Begin};
        {null, At} -> {undefined, At};
        Found -> peer(Found, Atoms)
    end.

%% A message, a reason or what a call returns: a value of JSON, or a term of Erlang.
content(Name, Fields, Begin, Atoms) ->
    case find(term, Fields) of
        none ->
            {Value, _} = required(Name, Fields, Begin),
            Value;
        {Text, At} when is_binary(Text) ->
            ok = check_alone(Name, Fields, ~"term", At),
            term(Text, At, Atoms);
        {_, At} ->
            malformed(At, ~"expected a term in Erlang's notation, a string")
    end.

%% Two fields with the same meaning exclude each other.
check_alone(Name, Fields, Other, At) ->
    case find(Name, Fields) of
        none -> ok;
        _ -> malformed(At, [~"expected only one of \"", atom_to_binary(Name), ~"\" and \"", Other, ~"\""])
    end.

term(Text, At, Atoms) ->
    case witness_log_term:text(Text, Atoms) of
        {ok, Term} -> Term;
        {malformed, Offset, What} ->
            malformed(At, [~"in the term, behind ", integer_to_binary(Offset), ~" bytes: ", What])
    end.

name(Name, Fields, Begin, Atoms) ->
    case required(Name, Fields, Begin) of
        {Text, At} when is_binary(Text) ->
            case witness_log_atoms:intern(Text, Atoms) of
                {refused, What} -> malformed(At, What);
                Atom -> {Atom, At}
            end;
        {_, At} ->
            malformed(At, ~"expected a name, a string")
    end.

missing(none, At) -> {unknown, At};
missing({null, At}, _) -> {unknown, At};
missing(Missing, _) -> Missing.

%% A function and its arguments, or its arity: `signature' in Erlang's notation, or its parts.
signature(Fields, Begin, Atoms) -> call(args, [], Fields, Begin, Atoms).

function(Fields, Begin, Atoms) -> call(arity, 0, Fields, Begin, Atoms).

call(Last, Default, Fields, Begin, Atoms) ->
    case find(signature, Fields) of
        none ->
            {Module, At} = name(module, Fields, Begin, Atoms),
            {Function, _} = name(function, Fields, Begin, Atoms),
            {Value, AtLast} = case find(Last, Fields) of
                none -> {Default, At};
                Found -> Found
            end,
            {{Module, Function, Value}, AtLast};
        {Text, At} when is_binary(Text) ->
            ok = check_alone(module, Fields, ~"signature", At),
            {term(Text, At, Atoms), At};
        {_, At} ->
            malformed(At, ~"expected a signature in Erlang's notation, a string")
    end.
