-module(witness_log_value).
-moduledoc """
JSON, read from the lines of a log: an object with the fields of an event, with any values.

Strings are binaries, objects are maps with binaries as keys, arrays are lists; numbers are integers if they have
neither a point nor an exponent; and `true`, `false` and `null` are atoms. Like `witness_log_term`, it is one loop over
the text with a stack of its own, and takes the text twice: the remaining text, and the block with its offset.
""".

-export([fields/3]).

-export_type([fields/0, field/0]).

-doc "The fields of an event; all others are `unknown`.".
-type field() ::
    event | process | child | parent | to | from | message | messages | reason | value | term | module | function | functions
  | args | arity | signature | time | missing | unknown.

-doc "The fields of an object, the last one first, as `[Value, Offset, Field | More]`.".
-type fields() :: [term()].

-define(MAX_DEPTH, 1000).
-define(SMALL_DIGITS, 17).
-define(IS_DIGIT(C), (C >= $0 andalso C =< $9)).
-define(IS_BLANK(C), (C =:= $\s orelse C =:= $\t orelse C =:= $\r)).
-define(IS_PLAIN(C), (C >= $\s andalso C < 16#80 andalso C =/= $" andalso C =/= $\\)).

%% The open values around the current one, as in `witness_log_term': event_key, event: the object of the event, its
%% names and their values;  key, value: those of other objects;  array.

-doc "The fields of the object after a `{`, the text that follows it, and the offset of that.".
-spec fields(Rest :: binary(), Block :: binary(), At :: non_neg_integer()) ->
    {fields(), Rest :: binary(), At :: non_neg_integer()} | witness_log_term:malformed().
fields(Rest, Block, At) -> first_field(Rest, Block, At).

first_field(<<"}", Rest/binary>>, _, At) -> {[], Rest, At + 1};
first_field(<<C, Rest/binary>>, Block, At) when ?IS_BLANK(C) -> first_field(Rest, Block, At + 1);
first_field(Rest, Block, At) -> field(Rest, Block, At, []).

field(<<"\"event\":", Rest/binary>>, Block, At, Acc) -> field_value(Rest, Block, At + 8, [event | Acc]);
field(<<"\"process\":", Rest/binary>>, Block, At, Acc) -> field_value(Rest, Block, At + 10, [process | Acc]);
field(<<"\"message\":", Rest/binary>>, Block, At, Acc) -> field_value(Rest, Block, At + 10, [message | Acc]);
field(<<"\"time\":", Rest/binary>>, Block, At, Acc) -> field_value(Rest, Block, At + 7, [time | Acc]);
field(<<"\"to\":", Rest/binary>>, Block, At, Acc) -> field_value(Rest, Block, At + 5, [to | Acc]);
field(<<"\"from\":", Rest/binary>>, Block, At, Acc) -> field_value(Rest, Block, At + 7, [from | Acc]);
field(<<"\"term\":", Rest/binary>>, Block, At, Acc) -> field_value(Rest, Block, At + 7, [term | Acc]);
field(<<"\"", Rest/binary>>, Block, At, Acc) -> string(Rest, Block, At, 0, Acc, [event_key], 0);
field(<<C, Rest/binary>>, Block, At, Acc) when ?IS_BLANK(C) -> field(Rest, Block, At + 1, Acc);
field(_, Block, At, _) -> witness_log_term:expected(~"the name of a field, in quotes", Block, At).

field_value(<<C, Rest/binary>>, Block, At, Acc) when ?IS_BLANK(C) -> field_value(Rest, Block, At + 1, Acc);
field_value(Rest, Block, At, Acc) -> value(Rest, Block, At, 0, [At | Acc], [event]).

-spec name(binary()) -> field().
name(~"event") -> event;
name(~"process") -> process;
name(~"child") -> child;
name(~"parent") -> parent;
name(~"to") -> to;
name(~"from") -> from;
name(~"message") -> message;
name(~"messages") -> messages;
name(~"reason") -> reason;
name(~"value") -> value;
name(~"term") -> term;
name(~"module") -> module;
name(~"function") -> function;
name(~"functions") -> functions;
name(~"args") -> args;
name(~"arity") -> arity;
name(~"signature") -> signature;
name(~"time") -> time;
name(~"missing") -> missing;
name(_) -> unknown.

value(<<"\"", Rest/binary>>, Block, At, Depth, Acc, Stack) ->
    string(Rest, Block, At, Depth, Acc, Stack, 0);
value(<<"0", C, _/binary>>, Block, At, _, _, _) when ?IS_DIGIT(C) ->
    witness_log_term:expected(~"a number without leading zeros", Block, At);
value(<<C, Rest/binary>>, Block, At, Depth, Acc, Stack) when ?IS_DIGIT(C) ->
    digits(Rest, Block, At, Depth, Acc, Stack, 1, C - $0);
value(<<"{", Rest/binary>>, Block, At, Depth, Acc, Stack) ->
    open(Rest, Block, At + 1, Depth + 1, [], [key, Acc | Stack]);
value(<<"[", Rest/binary>>, Block, At, Depth, Acc, Stack) ->
    open(Rest, Block, At + 1, Depth + 1, [], [array, Acc | Stack]);
value(<<"true", Rest/binary>>, Block, At, Depth, Acc, Stack) ->
    next(Rest, Block, At + 4, Depth, [true | Acc], Stack);
value(<<"false", Rest/binary>>, Block, At, Depth, Acc, Stack) ->
    next(Rest, Block, At + 5, Depth, [false | Acc], Stack);
value(<<"null", Rest/binary>>, Block, At, Depth, Acc, Stack) ->
    next(Rest, Block, At + 4, Depth, [null | Acc], Stack);
value(<<"-", _/binary>>, Block, At, Depth, Acc, Stack) ->
    number(Block, At, Depth, Acc, Stack);
value(<<C, Rest/binary>>, Block, At, Depth, Acc, Stack) when ?IS_BLANK(C) ->
    value(Rest, Block, At + 1, Depth, Acc, Stack);
value(_, Block, At, _, _, _) ->
    witness_log_term:expected(~"a JSON value", Block, At).

%% After the beginning of an object or array.
open(<<"}", Rest/binary>>, Block, At, Depth, [], [key, Acc | Stack]) ->
    next(Rest, Block, At + 1, Depth - 1, [#{} | Acc], Stack);
open(<<"]", Rest/binary>>, Block, At, Depth, [], [array, Acc | Stack]) ->
    next(Rest, Block, At + 1, Depth - 1, [[] | Acc], Stack);
open(<<C, Rest/binary>>, Block, At, Depth, [], Stack) when ?IS_BLANK(C) ->
    open(Rest, Block, At + 1, Depth, [], Stack);
open(Rest, Block, At, Depth, [], [key | _] = Stack) when Depth =< ?MAX_DEPTH ->
    key(Rest, Block, At, Depth, [], Stack);
open(Rest, Block, At, Depth, [], [array | _] = Stack) when Depth =< ?MAX_DEPTH ->
    value(Rest, Block, At, Depth, [], Stack);
open(_, _, At, _, _, _) ->
    {malformed, At - 1, [~"more than ", integer_to_binary(?MAX_DEPTH), ~" levels of nesting"]}.

key(<<"\"", Rest/binary>>, Block, At, Depth, Acc, Stack) -> string(Rest, Block, At, Depth, Acc, Stack, 0);
key(<<C, Rest/binary>>, Block, At, Depth, Acc, Stack) when ?IS_BLANK(C) -> key(Rest, Block, At + 1, Depth, Acc, Stack);
key(_, Block, At, _, _, _) -> witness_log_term:expected(~"a name in quotes", Block, At).

%% After a value, or a name.
next(<<",", Rest/binary>>, Block, At, Depth, Acc, [Kind | Open] = Stack) ->
    case Kind of
        array -> value(Rest, Block, At + 1, Depth, Acc, Stack);
        value -> key(Rest, Block, At + 1, Depth, Acc, [key | Open]);
        event -> field(Rest, Block, At + 1, Acc);
        _ -> witness_log_term:expected(follows(Kind), Block, At)
    end;
next(<<":", Rest/binary>>, Block, At, Depth, Acc, [key | Stack]) ->
    value(Rest, Block, At + 1, Depth, Acc, [value | Stack]);
next(<<"}", Rest/binary>>, _, At, _, Acc, [event]) ->
    {Acc, Rest, At + 1};
next(<<"}", Rest/binary>>, Block, At, Depth, Pairs, [value, Acc | Stack]) ->
    next(Rest, Block, At + 1, Depth - 1, [map(Pairs, []) | Acc], Stack);
next(<<"]", Rest/binary>>, Block, At, Depth, Elements, [array, Acc | Stack]) ->
    next(Rest, Block, At + 1, Depth - 1, [lists:reverse(Elements) | Acc], Stack);
next(<<":", Rest/binary>>, Block, At, _, [Name | Acc], [event_key]) ->
    field_value(Rest, Block, At + 1, [name(Name) | Acc]);
next(<<C, Rest/binary>>, Block, At, Depth, Acc, Stack) when ?IS_BLANK(C) ->
    next(Rest, Block, At + 1, Depth, Acc, Stack);
next(_, Block, At, _, _, [Kind | _]) ->
    witness_log_term:expected(follows(Kind), Block, At).

follows(array) -> ~"`,` or `]`";
follows(key) -> ~"`:`";
follows(event_key) -> ~"`:`";
follows(value) -> ~"`,` or `}`";
follows(event) -> ~"`,` or `}`".

%% If a name occurs twice, the last value is taken, as most readers of JSON do.
map([Value, Key], []) -> #{Key => Value};
map([Value, Key | Pairs], List) -> map(Pairs, [{Key, Value} | List]);
map([], List) -> maps:from_list(List).

digits(<<C, Rest/binary>>, Block, At, Depth, Acc, Stack, Length, Value) when ?IS_DIGIT(C), Length < ?SMALL_DIGITS ->
    digits(Rest, Block, At, Depth, Acc, Stack, Length + 1, Value * 10 + C - $0);
digits(<<C, _/binary>>, Block, At, Depth, Acc, Stack, _, _) when ?IS_DIGIT(C); C =:= $.; C =:= $e; C =:= $E ->
    number(Block, At, Depth, Acc, Stack);
digits(Rest, Block, At, Depth, Acc, Stack, Length, Value) ->
    next(Rest, Block, At + Length, Depth, [Value | Acc], Stack).

number(Block, At, Depth, Acc, Stack) ->
    case witness_log_number:read(Block, At) of
        {ok, Value, Next} ->
            <<_:Next/binary, Rest/binary>> = Block,
            next(Rest, Block, Next, Depth, [Value | Acc], Stack);
        {malformed, _, _} = Malformed ->
            Malformed
    end.

%% `Length' bytes of it were read, and `At' is that of its opening quote. The text is copied, because a part of the block
%% would keep all of it in memory.
string(<<C, Rest/binary>>, Block, At, Depth, Acc, Stack, Length) when ?IS_PLAIN(C) ->
    string(Rest, Block, At, Depth, Acc, Stack, Length + 1);
string(<<"\"", Rest/binary>>, Block, At, Depth, Acc, Stack, Length) ->
    String = binary:copy(binary_part(Block, At + 1, Length)),
    next(Rest, Block, At + Length + 2, Depth, [String | Acc], Stack);
string(<<"\\", Rest/binary>>, Block, At, Depth, Acc, Stack, Length) ->
    Begun = binary:copy(binary_part(Block, At + 1, Length)),
    escape(Rest, Block, At + Length + 2, Depth, Acc, Stack, Begun);
string(<<C/utf8, Rest/binary>>, Block, At, Depth, Acc, Stack, Length) when C >= 16#80 ->
    string(Rest, Block, At, Depth, Acc, Stack, Length + byte_size(<<C/utf8>>));
string(_, Block, At, _, _, _, Length) ->
    unfinished(Block, At + Length + 1).

unfinished(Block, At) -> witness_log_term:expected(~"the closing \"", Block, At).

%% A string with escapes: its characters so far, and the offset of what follows.
escaped_string(<<"\"", Rest/binary>>, Block, At, Depth, Acc, Stack, Text) ->
    %% A binary that was appended to has spare memory, which the copy does not have.
    next(Rest, Block, At + 1, Depth, [binary:copy(Text) | Acc], Stack);
escaped_string(<<"\\", Rest/binary>>, Block, At, Depth, Acc, Stack, Text) ->
    escape(Rest, Block, At + 1, Depth, Acc, Stack, Text);
escaped_string(<<C, Rest/binary>>, Block, At, Depth, Acc, Stack, Text) when C >= $\s, C < 16#80 ->
    escaped_string(Rest, Block, At + 1, Depth, Acc, Stack, <<Text/binary, C>>);
escaped_string(<<C/utf8, Rest/binary>>, Block, At, Depth, Acc, Stack, Text) when C >= 16#80 ->
    escaped_string(Rest, Block, At + byte_size(<<C/utf8>>), Depth, Acc, Stack, <<Text/binary, C/utf8>>);
escaped_string(_, Block, At, _, _, _, _) ->
    unfinished(Block, At).

escape(<<"u", A, B, C, D, Rest/binary>>, Block, At, Depth, Acc, Stack, Text) ->
    case hexadecimal([A, B, C, D], 0) of
        High when High >= 16#D800, High < 16#DC00 ->
            low_surrogate(Rest, Block, At, Depth, Acc, Stack, Text, High);
        Char when is_integer(Char), Char < 16#D800; is_integer(Char), Char > 16#DFFF ->
            escaped_string(Rest, Block, At + 5, Depth, Acc, Stack, <<Text/binary, Char/utf8>>);
        _ ->
            {malformed, At - 1, ~"expected an escape that is a character"}
    end;
escape(<<C, Rest/binary>>, Block, At, Depth, Acc, Stack, Text) ->
    case named(C) of
        none -> witness_log_term:expected(~"an escape such as \\n or \\u00e9", Block, At);
        Char -> escaped_string(Rest, Block, At + 1, Depth, Acc, Stack, <<Text/binary, Char>>)
    end;
escape(<<>>, Block, At, _, _, _, _) ->
    unfinished(Block, At).

%% The second half of a character beyond 16#FFFF.
low_surrogate(<<"\\u", A, B, C, D, Rest/binary>>, Block, At, Depth, Acc, Stack, Text, High) ->
    case hexadecimal([A, B, C, D], 0) of
        Low when Low >= 16#DC00, Low =< 16#DFFF ->
            Char = 16#10000 + (High - 16#D800) * 16#400 + Low - 16#DC00,
            escaped_string(Rest, Block, At + 11, Depth, Acc, Stack, <<Text/binary, Char/utf8>>);
        _ ->
            {malformed, At - 1, ~"expected an escape that is a character"}
    end;
low_surrogate(_, _, At, _, _, _, _, _) ->
    {malformed, At - 1, ~"expected an escape that is a character"}.

hexadecimal([C | Digits], Value) when ?IS_DIGIT(C) -> hexadecimal(Digits, Value * 16 + C - $0);
hexadecimal([C | Digits], Value) when C >= $a, C =< $f -> hexadecimal(Digits, Value * 16 + C - $a + 10);
hexadecimal([C | Digits], Value) when C >= $A, C =< $F -> hexadecimal(Digits, Value * 16 + C - $A + 10);
hexadecimal([], Value) -> Value;
hexadecimal(_, _) -> none.

named($") -> $";
named($\\) -> $\\;
named($/) -> $/;
named($b) -> $\b;
named($f) -> $\f;
named($n) -> $\n;
named($r) -> $\r;
named($t) -> $\t;
named(_) -> none.
