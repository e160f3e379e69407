-module(witness_log_term).
-moduledoc """
Terms in Erlang's notation, read from text at 20 ns a byte and without running anything.

The reader is one loop over the text with a stack of its own, so that the VM reads the text in place from the first byte to
the last. Nested terms take no stack of the process, and nesting is bounded. `witness_log_literal` reads terms that are rare
or long to read, such as strings with escapes.

All functions here take the text twice: the remaining text, and the whole block with the offset where the rest
begins. A term never goes beyond the end of its line.
""".

-export([arguments/5, text/2, expected/3, unreadable/1]).

-export_type([malformed/0, argument/0]).

-doc "The offset of an error in the block, and what was expected there.".
-type malformed() :: {malformed, Offset :: non_neg_integer(), What :: unicode:chardata()}.

-doc "Arguments are read into a list, the last one first, each followed by the offset where it began.".
-type argument() :: term() | (Offset :: non_neg_integer()).

-define(MAX_DEPTH, 1000).
-define(IS_DIGIT(C), (C >= $0 andalso C =< $9)).
-define(IS_LOWER(C), (C >= $a andalso C =< $z)).
-define(IS_UPPER(C), (C >= $A andalso C =< $Z)).
-define(IS_NAME(C), (?IS_LOWER(C) orelse ?IS_UPPER(C) orelse ?IS_DIGIT(C) orelse C =:= $_ orelse C =:= $@)).
-define(IS_BLANK(C), (C =:= $\s orelse C =:= $\t orelse C =:= $\r)).
%% A character that is itself between quotes.
-define(IS_PLAIN(C), (C >= $\s andalso C < 16#7F andalso C =/= $" andalso C =/= $\\)).
%% A number with more digits may be large.
-define(SMALL_DIGITS, 17).
%% The VM reads numbers modulo 2^64. A number in so few bytes is never that large.
-define(MAX_PROCESS_BYTES, 24).

%% The open terms around the current one: their kinds, and what was read of them (`Acc`). The stack is flat: below each
%% kind is the `Acc` of the next outer term.
%%
%% arguments: of the event of the kind below it, up to `)`;  text: the whole text is one term;  tuple, list;
%% tail: after the `|` of a list;  key, value: of a map.

-doc """
Terms up to the `)` that closes them, and what follows it. They are those of an event of this kind: the second one of
`init` can be `_`, which is read as `undefined`.
""".
-spec arguments(Rest :: binary(), Block :: binary(), At, witness_log_atoms:atoms(), Kind :: atom()) ->
    {[argument()], Rest :: binary(), At} | malformed() when At :: non_neg_integer().
arguments(Rest, Block, At, Atoms, Kind) -> argument(Rest, Block, At, Atoms, 0, [], [arguments, Kind]).

-doc "The term of a text. Offsets are those in the text.".
-spec text(binary(), witness_log_atoms:atoms()) -> {ok, term()} | malformed().
text(Text, Atoms) ->
    case value(Text, Text, 0, Atoms, 0, [], [text]) of
        {malformed, _, _} = Malformed -> Malformed;
        {[Term], _, _} -> {ok, Term}
    end.

-doc "The error where something else was expected.".
-spec expected(unicode:chardata(), Block :: binary(), At :: non_neg_integer()) -> malformed().
expected(What, Block, At) ->
    case Block of
        <<_:At/binary, C/utf8, _/binary>> when C > $\s, C =/= 16#7F ->
            {malformed, At, [~"expected ", What, ~", found `", witness_event_term:text(<<C/utf8>>, 20), ~"`"]};
        <<_:At/binary, C, _/binary>> when C >= 16#80 ->
            unreadable(At);
        <<_:At/binary, C, _/binary>> when C =/= $\n, C =/= $\r ->
            {malformed, At, [~"expected ", What]};
        _ ->
            {malformed, At, [~"expected ", What, ~", found the end of the line"]}
    end.

-doc "The error of bytes that are not UTF-8.".
-spec unreadable(At :: non_neg_integer()) -> malformed().
unreadable(At) -> {malformed, At, ~"bytes that are not UTF-8"}.

argument(<<C, Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack) when ?IS_BLANK(C) ->
    argument(Rest, Block, At + 1, Atoms, Depth, Acc, Stack);
argument(Rest, Block, At, Atoms, Depth, Acc, Stack) ->
    value(Rest, Block, At, Atoms, Depth, [At | Acc], Stack).

value(<<C, Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack) when ?IS_LOWER(C) ->
    name(Rest, Block, At, Atoms, Depth, Acc, Stack, 1);
value(<<C, Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack) when ?IS_DIGIT(C) ->
    digits(Rest, Block, At, Atoms, Depth, Acc, Stack, 1, C - $0);
value(<<"{", Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack) ->
    open(Rest, Block, At + 1, Atoms, Depth + 1, [], [tuple, Acc | Stack]);
value(<<"<0.", Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack) ->
    process(Rest, Block, At, Atoms, Depth, Acc, Stack, 3);
value(<<"[", Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack) ->
    open(Rest, Block, At + 1, Atoms, Depth + 1, [], [list, Acc | Stack]);
value(<<"\"", Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack) ->
    string(Rest, Block, At, Atoms, Depth, Acc, Stack, 0);
value(<<"<<\"", Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack) ->
    binary(Rest, Block, At, Atoms, Depth, Acc, Stack, 0);
value(<<"#{", Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack) ->
    open(Rest, Block, At + 2, Atoms, Depth + 1, [], [key, Acc | Stack]);
value(<<C, Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack) when ?IS_BLANK(C) ->
    value(Rest, Block, At + 1, Atoms, Depth, Acc, Stack);
value(<<"_", Rest/binary>>, Block, At, Atoms, Depth, [_, _, _] = Acc, [arguments, init] = Stack) ->
    next(Rest, Block, At + 1, Atoms, Depth, [undefined | Acc], Stack);
value(_, Block, At, Atoms, Depth, Acc, Stack) ->
    literal(Block, At, Atoms, Depth, Acc, Stack).

literal(Block, At, Atoms, Depth, Acc, Stack) ->
    case witness_log_literal:read(Block, At, Atoms) of
        {ok, Value, Next} ->
            <<_:Next/binary, Rest/binary>> = Block,
            next(Rest, Block, Next, Atoms, Depth, [Value | Acc], Stack);
        {expected, Where, What} ->
            expected(What, Block, Where);
        {malformed, _, _} = Malformed ->
            Malformed
    end.

%% After the beginning of a tuple, list or map.
open(<<"}", Rest/binary>>, Block, At, Atoms, Depth, [], [tuple, Acc | Stack]) ->
    next(Rest, Block, At + 1, Atoms, Depth - 1, [{} | Acc], Stack);
open(<<"]", Rest/binary>>, Block, At, Atoms, Depth, [], [list, Acc | Stack]) ->
    next(Rest, Block, At + 1, Atoms, Depth - 1, [[] | Acc], Stack);
open(<<"}", Rest/binary>>, Block, At, Atoms, Depth, [], [key, Acc | Stack]) ->
    next(Rest, Block, At + 1, Atoms, Depth - 1, [#{} | Acc], Stack);
open(<<C, Rest/binary>>, Block, At, Atoms, Depth, [], Stack) when ?IS_BLANK(C) ->
    open(Rest, Block, At + 1, Atoms, Depth, [], Stack);
open(Rest, Block, At, Atoms, Depth, [], Stack) when Depth =< ?MAX_DEPTH ->
    value(Rest, Block, At, Atoms, Depth, [], Stack);
open(_, _, At, _, _, _, _) ->
    {malformed, At - 1, [~"more than ", integer_to_binary(?MAX_DEPTH), ~" levels of nesting"]}.

%% After a term.
next(<<",", Rest/binary>>, Block, At, Atoms, Depth, Acc, [Kind | _] = Stack) ->
    case Kind of
        tuple -> value(Rest, Block, At + 1, Atoms, Depth, Acc, Stack);
        list -> value(Rest, Block, At + 1, Atoms, Depth, Acc, Stack);
        arguments -> argument(Rest, Block, At + 1, Atoms, Depth, Acc, Stack);
        value -> value(Rest, Block, At + 1, Atoms, Depth, Acc, [key | tl(Stack)]);
        _ -> expected(follows(Kind), Block, At)
    end;
next(<<"}", Rest/binary>>, Block, At, Atoms, Depth, Elements, [tuple, Acc | Stack]) ->
    next(Rest, Block, At + 1, Atoms, Depth - 1, [tuple(Elements) | Acc], Stack);
next(<<")", Rest/binary>>, _, At, _, _, Acc, [arguments, _]) ->
    {Acc, Rest, At + 1};
next(<<"]", Rest/binary>>, Block, At, Atoms, Depth, Elements, [list, Acc | Stack]) ->
    next(Rest, Block, At + 1, Atoms, Depth - 1, [lists:reverse(Elements) | Acc], Stack);
next(<<"]", Rest/binary>>, Block, At, Atoms, Depth, [Tail | Elements], [tail, Acc | Stack]) ->
    next(Rest, Block, At + 1, Atoms, Depth - 1, [lists:reverse(Elements, Tail) | Acc], Stack);
next(<<"|", Rest/binary>>, Block, At, Atoms, Depth, Acc, [list | Stack]) ->
    value(Rest, Block, At + 1, Atoms, Depth, Acc, [tail | Stack]);
next(<<"=>", Rest/binary>>, Block, At, Atoms, Depth, Acc, [key | Stack]) ->
    value(Rest, Block, At + 2, Atoms, Depth, Acc, [value | Stack]);
next(<<"}", Rest/binary>>, Block, At, Atoms, Depth, Pairs, [value, Acc | Stack]) ->
    next(Rest, Block, At + 1, Atoms, Depth - 1, [map(Pairs, []) | Acc], Stack);
next(<<C, Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack) when ?IS_BLANK(C) ->
    next(Rest, Block, At + 1, Atoms, Depth, Acc, Stack);
next(<<>>, _, At, _, _, Acc, [text]) ->
    {Acc, <<>>, At};
next(_, Block, At, _, _, _, [Kind | _]) ->
    expected(follows(Kind), Block, At).

follows(arguments) -> ~"`,` or `)`";
follows(text) -> ~"the end of the term";
follows(tuple) -> ~"`,` or `}`";
follows(list) -> ~"`,`, `|` or `]`";
follows(tail) -> ~"`]`";
follows(key) -> ~"`=>`";
follows(value) -> ~"`,` or `}`".

tuple([B, A]) -> {A, B};
tuple([C, B, A]) -> {A, B, C};
tuple(Elements) -> list_to_tuple(lists:reverse(Elements)).

%% If a key occurs twice, the last value is taken, as in Erlang.
map([Value, Key | Pairs], List) -> map(Pairs, [{Key, Value} | List]);
map([], List) -> maps:from_list(List).

%% `Length' bytes of the name were read, `At' is where it began.
name(<<C, Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack, Length) when ?IS_NAME(C) ->
    name(Rest, Block, At, Atoms, Depth, Acc, Stack, Length + 1);
name(<<C, _/binary>>, Block, At, Atoms, Depth, Acc, Stack, _) when C >= 16#80 ->
    literal(Block, At, Atoms, Depth, Acc, Stack);
name(Rest, Block, At, Atoms, Depth, Acc, Stack, Length) ->
    case witness_log_atoms:intern(binary_part(Block, At, Length), Atoms) of
        'fun' -> literal(Block, At, Atoms, Depth, Acc, Stack);
        {refused, What} -> {malformed, At, What};
        Atom -> next(Rest, Block, At + Length, Atoms, Depth, [Atom | Acc], Stack)
    end.

digits(<<C, Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack, Length, Value)
  when ?IS_DIGIT(C), Length < ?SMALL_DIGITS ->
    digits(Rest, Block, At, Atoms, Depth, Acc, Stack, Length + 1, Value * 10 + C - $0);
digits(<<C, _/binary>>, Block, At, Atoms, Depth, Acc, Stack, _, _)
  when ?IS_DIGIT(C); C =:= $.; C =:= $#; C =:= $_ ->
    literal(Block, At, Atoms, Depth, Acc, Stack);
digits(Rest, Block, At, Atoms, Depth, Acc, Stack, Length, Value) ->
    next(Rest, Block, At + Length, Atoms, Depth, [Value | Acc], Stack).

process(<<C, Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack, Length) when ?IS_DIGIT(C); C =:= $. ->
    process(Rest, Block, At, Atoms, Depth, Acc, Stack, Length + 1);
process(<<">", Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack, Length) when Length < ?MAX_PROCESS_BYTES ->
    try list_to_pid(binary_to_list(Block, At + 1, At + Length + 1)) of
        Pid -> next(Rest, Block, At + Length + 1, Atoms, Depth, [Pid | Acc], Stack)
    catch
        error:badarg -> expected(~"a process such as <0.102.0>", Block, At)
    end;
process(<<">", _/binary>>, Block, At, _, _, _, _, _) ->
    expected(~"a process such as <0.102.0>", Block, At);
process(_, Block, At, _, _, _, _, Length) ->
    expected(~"`>` at the end of a process such as <0.102.0>", Block, At + Length).

string(<<C, Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack, Length) when ?IS_PLAIN(C) ->
    string(Rest, Block, At, Atoms, Depth, Acc, Stack, Length + 1);
string(<<"\"", Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack, Length) ->
    String = binary_to_list(binary_part(Block, At + 1, Length)),
    next(Rest, Block, At + Length + 2, Atoms, Depth, [String | Acc], Stack);
string(_, Block, At, Atoms, Depth, Acc, Stack, _) ->
    literal(Block, At, Atoms, Depth, Acc, Stack).

%% The text is copied, because a part of the block would keep all of it in memory.
binary(<<C, Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack, Length) when ?IS_PLAIN(C) ->
    binary(Rest, Block, At, Atoms, Depth, Acc, Stack, Length + 1);
binary(<<"\">>", Rest/binary>>, Block, At, Atoms, Depth, Acc, Stack, Length) ->
    Binary = binary:copy(binary_part(Block, At + 3, Length)),
    next(Rest, Block, At + Length + 6, Atoms, Depth, [Binary | Acc], Stack);
binary(_, Block, At, Atoms, Depth, Acc, Stack, _) ->
    literal(Block, At, Atoms, Depth, Acc, Stack).
