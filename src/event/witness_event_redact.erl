-module(witness_event_redact).
-moduledoc """
The shape of terms without their contents: data that may leave a node with confidential messages.

A shape is a term, so it is shown, matched and drawn like any other:

| Of | the shape is |
|---|---|
| an atom, process, port or reference | itself |
| an integer, float or function | `'integer()'`, `'float()'`, `'fun()'` |
| a term of another type, such as a native record of OTP 29 | `'term()'` |
| a binary, or other bits | `{'binary()', Bytes}`, `{'bitstring()', Bits}` |
| a list of characters | `{'string()', Length}` |
| a tuple | the tuple of the shapes; of more than 16 elements `{'tuple()', Size, [Shape of the first ones]}` |
| a list | the list of the shapes; of more than 8 elements `{'list()', Length, [Shape of the first ones]}` |
| a map | the map of the shapes of the values with atoms as keys, and the number of other keys as `'other keys()'` |

Atoms are regarded as the vocabulary of a program: if a program makes atoms of its users' input, shapes show them. Sizes are
shown. After some hundred parts of a term `...` follows, so that no term takes long.
""".

-export([term/1, signature/1, item/1, stack/1, status/1]).

-define(MAX_PARTS, 300).
-define(SHOWN_ELEMENTS, 16).
-define(SHOWN_LIST_ELEMENTS, 8).
-define(SHOWN_KEYS, 32).

-doc "The shape of a term.".
-spec term(term()) -> term().
term(Term) ->
    {Shape, _} = shape(Term, ?MAX_PARTS),
    Shape.

-doc "A signature with the shapes of its arguments.".
-spec signature(witness_event:signature()) -> witness_event:signature().
signature({M, F, Args}) when is_list(Args), length(Args) =< 255 -> {M, F, [term(Arg) || Arg <- Args]};
signature({M, F, Args}) -> {M, F, term(Args)}.

-doc """
An event with the shape of its message, reason, arguments or value. Its processes and its time stay.
""".
-spec item(witness_event:item()) -> witness_event:item().
item({Kind, P, Other, Signature, Ts}) when Kind =:= fork; Kind =:= init -> {Kind, P, Other, signature(Signature), Ts};
item({exit, P, Reason, Ts}) -> {exit, P, term(Reason), Ts};
item({Kind, P, Peer, Msg, Ts}) when Kind =:= send; Kind =:= recv -> {Kind, P, Peer, term(Msg), Ts};
item({call, P, Call, Ts}) -> {call, P, signature(Call), Ts};
item({return, P, Function, Value, Ts}) -> {return, P, Function, term(Value), Ts};
item(Mark) -> Mark.

-doc """
A stack trace with its lines, and with arities instead of arguments. Entries of modules that are not loaded are removed.
""".
-spec stack(term()) -> [{module(), atom(), arity(), [{line, pos_integer()}]}].
stack([{M, F, Args, Where} | Stack]) when is_atom(M), is_atom(F), is_list(Where) ->
    case erlang:module_loaded(M) of
        true -> [{M, F, arity(Args), [Line || {line, _} = Line <- Where]} | stack(Stack)];
        false -> stack(Stack)
    end;
stack([_ | Stack]) -> stack(Stack);
stack(_) -> [].

arity(Args) when is_list(Args) -> length(Args);
arity(Arity) -> Arity.

-doc "The status of an OTP process in reports (`c:gen_server:format_status/1`), as shapes.".
-spec status(Status) -> Status when Status :: gen_server:format_status().
status(Status) -> maps:map(fun(_, Term) -> term(Term) end, Status).

%% Left: how many further parts may be visited.
shape(_, Left) when Left =< 0 -> {'...', 0};
shape(T, Left) when is_atom(T); is_pid(T); is_port(T); is_reference(T); T =:= [] -> {T, Left - 1};
shape(T, Left) when is_integer(T) -> {'integer()', Left - 1};
shape(T, Left) when is_float(T) -> {'float()', Left - 1};
shape(T, Left) when is_binary(T) -> {{'binary()', byte_size(T)}, Left - 1};
shape(T, Left) when is_bitstring(T) -> {{'bitstring()', bit_size(T)}, Left - 1};
shape(T, Left) when is_function(T) -> {'fun()', Left - 1};
shape(T, Left) when is_tuple(T), tuple_size(T) =< ?SHOWN_ELEMENTS ->
    {Shapes, Left1} = shapes(tuple_to_list(T), Left - 1),
    {list_to_tuple(Shapes), Left1};
shape(T, Left) when is_tuple(T) ->
    {Shapes, Left1} = shapes([element(N, T) || N <- lists:seq(1, ?SHOWN_ELEMENTS)], Left - 1),
    {{'tuple()', tuple_size(T), Shapes}, Left1};
shape(T, Left) when is_list(T) ->
    case is_string(T) of
        true -> {{'string()', length(T)}, Left - 1};
        false -> list(T, Left - 1)
    end;
shape(T, Left) when is_map(T) -> map(T, Left - 1);
shape(_, Left) -> {'term()', Left - 1}.

list(T, Left) when length(T) =< ?SHOWN_LIST_ELEMENTS -> shapes(T, Left);
list(T, Left) when length(T) > ?SHOWN_LIST_ELEMENTS ->
    {Shapes, Left1} = shapes(lists:sublist(T, ?SHOWN_LIST_ELEMENTS), Left),
    {{'list()', length(T), Shapes}, Left1};
list(T, Left) -> improper(T, Left, ?SHOWN_LIST_ELEMENTS).

improper([Head | Tail], Left, Cells) when Cells > 0 ->
    {First, Left1} = shape(Head, Left),
    {Rest, Left2} = improper(Tail, Left1, Cells - 1),
    {[First | Rest], Left2};
improper([_ | _], Left, _) -> {'...', Left};
improper(End, Left, _) -> shape(End, Left).

shapes(List, Left) -> lists:mapfoldl(fun shape/2, Left, List).

%% If all keys are atoms, any of them serve as the first ones.
map(Map, Left) ->
    {Known, Size} = keys(maps:next(maps:iterator(Map)), [], 0),
    {Shapes, Left1} = lists:mapfoldl(fun({Key, Value}, L) ->
        {Shape, L1} = shape(Value, L),
        {{Key, Shape}, L1}
    end, Left, lists:sort(Known)),
    Others = map_size(Map) - Size,
    {maps:from_list(Shapes ++ [{'other keys()', Others} || Others > 0]), Left1}.

keys({Key, Value, Next}, Known, Size) when is_atom(Key), Size < ?SHOWN_KEYS ->
    keys(maps:next(Next), [{Key, Value} | Known], Size + 1);
keys({_, _, Next}, Known, Size) -> keys(maps:next(Next), Known, Size);
keys(none, Known, Size) -> {Known, Size}.

is_string([C | Rest]) when is_integer(C), C >= 0, C =< 16#10FFFF -> Rest =:= [] orelse is_string(Rest);
is_string(_) -> false.
