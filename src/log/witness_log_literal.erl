-module(witness_log_literal).
-moduledoc """
The terms of Erlang's notation that are rare in a log, or longer to read: quoted names, strings with escapes,
bitstrings, characters, large numbers and those with a point or a base, processes of other nodes, references, ports
and functions.

A term never goes beyond the end of its line, and takes at most a bounded multiple of the memory of its text.
""".

-export([read/3]).

-define(IS_DIGIT(C), (C >= $0 andalso C =< $9)).
-define(IS_OCTAL(C), (C >= $0 andalso C =< $7)).
-define(IS_LOWER(C), (C >= $a andalso C =< $z orelse C >= 16#DF andalso C =< 16#FF andalso C =/= 16#F7)).
-define(IS_UPPER(C), (C >= $A andalso C =< $Z orelse C >= 16#C0 andalso C =< 16#DE andalso C =/= 16#D7)).
-define(IS_NAME(C), (?IS_LOWER(C) orelse ?IS_UPPER(C) orelse ?IS_DIGIT(C) orelse C =:= $_ orelse C =:= $@)).
-define(IS_BLANK(C), (C =:= $\s orelse C =:= $\t orelse C =:= $\r)).

%% This limit bounds the memory of a segment of a bitstring by a small multiple of its text.
-define(MAX_BITS, 256).

-type at() :: witness_log_digits:at().

-doc "The term at an offset of a block, and the offset after it; or what was expected instead, and where.".
-spec read(Block :: binary(), at(), witness_log_atoms:atoms()) ->
    {ok, term(), at()} | {expected, at(), unicode:chardata()} | witness_log_term:malformed().
read(Block, At, Atoms) ->
    <<_:At/binary, Rest/binary>> = Block,
    try
        {Value, _, Next} = literal(Rest, At, Atoms),
        {ok, Value, Next}
    catch
        throw:{expected, _, _} = Expected -> Expected;
        throw:{malformed, _, _} = Malformed -> Malformed
    end.

-spec expected(at(), unicode:chardata()) -> no_return().
expected(At, What) -> throw({expected, At, What}).

-spec malformed(at(), unicode:chardata()) -> no_return().
malformed(At, What) -> throw({malformed, At, What}).

%% Each of these takes the text and its offset, and returns the term, the text after it, and the offset of that.
literal(<<"\"", Rest/binary>>, At, _) ->
    quoted($", Rest, At + 1, []);
literal(<<"'", _/binary>> = Text, At, Atoms) ->
    atom(Text, At, Atoms);
literal(<<"~\"", Rest/binary>>, At, _) ->
    {Chars, Behind, Next} = quoted($", Rest, At + 2, []),
    {unicode:characters_to_binary(Chars), Behind, Next};
literal(<<"<<", Rest/binary>>, At, _) ->
    segments(blank(Rest, At + 2));
literal(<<"<", Rest/binary>>, At, Atoms) ->
    {Numbers, Behind, Next} = numbers(Rest, At + 1),
    {process(Numbers, At, Atoms), Behind, Next};
literal(<<"#Ref<", Rest/binary>>, At, Atoms) ->
    {Numbers, Behind, Next} = numbers(Rest, At + 5),
    {reference(Numbers, At, Atoms), Behind, Next};
literal(<<"#Port<", Rest/binary>>, At, Atoms) ->
    {Numbers, Behind, Next} = numbers(Rest, At + 6),
    {port(Numbers, At, Atoms), Behind, Next};
literal(<<"#Fun<", Rest/binary>> = Text, At, _) ->
    {Behind, Next} = local(Rest, At + 5, $>),
    {{external, binary:copy(binary_part(Text, 0, Next - At))}, Behind, Next};
literal(<<"#Record<\"", Rest/binary>> = Text, At, _) ->
    case quoted($", Rest, At + 9, []) of
        {_, <<">", Behind/binary>>, Next} -> {{external, binary:copy(binary_part(Text, 0, Next + 1 - At))}, Behind, Next + 1};
        {_, _, Next} -> expected(Next, ~"`>`")
    end;
literal(<<"fun", C, Rest/binary>>, At, Atoms) when ?IS_BLANK(C) ->
    function(blank(Rest, At + 4), At, Atoms);
literal(<<"$", Rest/binary>>, At, _) ->
    character(Rest, At + 1);
literal(<<C, _/binary>> = Text, At, _) when ?IS_DIGIT(C); C =:= $-; C =:= $+ ->
    number(Text, At);
literal(<<C/utf8, _/binary>>, At, _) when ?IS_UPPER(C); C =:= $_ ->
    expected(At, ~"a term (an atom that begins like a variable needs single quotes)");
literal(<<C/utf8, _/binary>> = Text, At, Atoms) when ?IS_LOWER(C) ->
    case name(Text, At) of
        {_, Next} when Next =:= At + 3, binary_part(Text, 0, 3) =:= ~"fun" -> expected(At, ~"fun m:f/1");
        _ -> atom(Text, At, Atoms)
    end;
literal(_, At, _) ->
    expected(At, ~"a term").

blank(<<C, Rest/binary>>, At) when ?IS_BLANK(C) -> blank(Rest, At + 1);
blank(Rest, At) -> {Rest, At}.

%% Names

atom(<<"'", Rest/binary>>, At, Atoms) ->
    {Chars, Behind, Next} = quoted($', Rest, At + 1, []),
    {intern(unicode:characters_to_binary(Chars), At, Atoms), Behind, Next};
atom(<<C/utf8, _/binary>> = Text, At, Atoms) when ?IS_LOWER(C) ->
    {Behind, Next} = name(Text, At),
    {intern(binary_part(Text, 0, Next - At), At, Atoms), Behind, Next};
atom(_, At, _) ->
    expected(At, ~"an atom").

name(<<C/utf8, Rest/binary>>, At) when ?IS_NAME(C) -> name(Rest, At + width(C));
name(Rest, At) -> {Rest, At}.

intern(Name, At, Atoms) -> accept(witness_log_atoms:intern(Name, Atoms), At).

accept({refused, What}, At) -> malformed(At, What);
accept(Value, _) -> Value.

%% Characters between quotes

quoted(Quote, <<Quote, Rest/binary>>, At, Chars) ->
    {lists:reverse(Chars), Rest, At + 1};
quoted(Quote, <<"\\", Rest/binary>>, At, Chars) ->
    {Char, Behind, Next} = escape(Rest, At + 1),
    quoted(Quote, Behind, Next, [Char | Chars]);
quoted(Quote, <<C/utf8, Rest/binary>> = Text, At, Chars) when C =/= $\n ->
    case Text of
        <<"\r\n", _/binary>> -> expected(At, closing(Quote));
        _ -> quoted(Quote, Rest, At + width(C), [C | Chars])
    end;
quoted(Quote, _, At, _) ->
    expected(At, closing(Quote)).

closing(Quote) -> [~"the closing ", Quote].

character(<<"\\", Rest/binary>>, At) -> escape(Rest, At + 1);
character(<<C/utf8, Rest/binary>>, At) when C =/= $\n, C =/= $\r -> {C, Rest, At + width(C)};
character(_, At) -> expected(At, ~"a character").

escape(<<"x{", Rest/binary>>, At) ->
    {Char, Behind, Next} = witness_log_digits:number_in_base(Rest, At + 2, 16),
    case Behind of
        <<"}", Last/binary>> when Next > At + 2 -> {scalar(Char, At - 1), Last, Next + 1};
        _ -> expected(Next, ~"digits of base 16 and `}`")
    end;
escape(<<"x", A, B, Rest/binary>>, At) ->
    case {witness_log_digits:digit(A), witness_log_digits:digit(B)} of
        {High, Low} when High < 16, Low < 16 -> {High * 16 + Low, Rest, At + 3};
        _ -> expected(At + 1, ~"two digits of base 16")
    end;
escape(<<"^", C, Rest/binary>>, At) when C >= $@, C =< $_ -> {C - $@, Rest, At + 2};
escape(<<"^", C, Rest/binary>>, At) when C >= $a, C =< $z -> {C - $`, Rest, At + 2};
escape(<<A, B, C, Rest/binary>>, At) when A >= $0, A =< $3, ?IS_OCTAL(B), ?IS_OCTAL(C) ->
    {(A - $0) * 64 + (B - $0) * 8 + C - $0, Rest, At + 3};
escape(<<A, B, Rest/binary>>, At) when ?IS_OCTAL(A), ?IS_OCTAL(B) -> {(A - $0) * 8 + B - $0, Rest, At + 2};
escape(<<A, Rest/binary>>, At) when ?IS_OCTAL(A) -> {A - $0, Rest, At + 1};
escape(<<C/utf8, Rest/binary>>, At) when C =/= $\n, C =/= $\r -> {escaped_character(C), Rest, At + width(C)};
escape(_, At) -> expected(At, ~"an escape such as \\n").

escaped_character($b) -> $\b;
escaped_character($d) -> $\d;
escaped_character($e) -> $\e;
escaped_character($f) -> $\f;
escaped_character($n) -> $\n;
escaped_character($r) -> $\r;
escaped_character($s) -> $\s;
escaped_character($t) -> $\t;
escaped_character($v) -> $\v;
escaped_character(C) -> C.

scalar(C, _) when C < 16#D800; C > 16#DFFF, C =< 16#10FFFF -> C;
scalar(_, At) -> malformed(At, ~"an escape that is no character").

width(C) when C < 16#80 -> 1;
width(C) when C < 16#800 -> 2;
width(C) when C < 16#10000 -> 3;
width(_) -> 4.

%% Bitstrings

segments({<<">>", Rest/binary>>, At}) -> {<<>>, Rest, At + 2};
segments({Text, At}) -> segments(segment(Text, At), <<>>).

segments({Segment, Behind, Next}, Bits) ->
    Joined = <<Bits/bitstring, Segment/bitstring>>,
    case blank(Behind, Next) of
        {<<",", Rest/binary>>, At} ->
            {Text, Begin} = blank(Rest, At + 1),
            segments(segment(Text, Begin), Joined);
        {<<">>", Rest/binary>>, At} ->
            {Joined, Rest, At + 2};
        {_, At} ->
            expected(At, ~"`,` or `>>`")
    end.

segment(<<"\"", Rest/binary>>, At) ->
    case quoted($", Rest, At + 1, []) of
        {Chars, <<"/utf8", Behind/binary>>, Next} -> {unicode:characters_to_binary(Chars), Behind, Next + 5};
        {Chars, Behind, Next} -> {bytes(Chars, At), Behind, Next}
    end;
segment(<<C, _/binary>> = Text, At) when ?IS_DIGIT(C); C =:= $-; C =:= $+; C =:= $$ ->
    case literal(Text, At, none) of
        {Value, Behind, Next} when is_integer(Value) -> sized_segment(Value, Behind, Next);
        _ -> expected(At, ~"an integer")
    end;
segment(_, At) ->
    expected(At, ~"an integer or a string").

sized_segment(Value, <<":", Rest/binary>>, At) ->
    case number(Rest, At + 1) of
        {Size, Behind, Next} when is_integer(Size), Size >= 0, Size =< ?MAX_BITS -> {<<Value:Size>>, Behind, Next};
        _ -> malformed(At + 1, [~"expected a number of bits, at most ", integer_to_binary(?MAX_BITS)])
    end;
sized_segment(Value, Behind, At) ->
    {<<Value>>, Behind, At}.

bytes(Chars, At) ->
    try
        list_to_binary(Chars)
    catch
        error:badarg -> malformed(At, ~"characters above 255 in a binary without /utf8")
    end.

%% Terms for which the VM has numbers

numbers(Text, At) ->
    case witness_log_digits:number_in_base(Text, At, 10) of
        {_, _, At} ->
            expected(At, ~"a number");
        {Number, <<".", Rest/binary>>, Next} ->
            {Numbers, Behind, Last} = numbers(Rest, Next + 1),
            {[Number | Numbers], Behind, Last};
        {Number, <<">", Rest/binary>>, Next} ->
            {[Number], Rest, Next + 1};
        {_, _, Next} ->
            expected(Next, ~"`.` or `>`")
    end.

process([0 | _] = Numbers, At, _) -> read_ours(fun erlang:list_to_pid/1, "<", Numbers, At, ~"a process such as <0.102.0>");
process([Node, Id, Serial], At, Atoms) -> accept(witness_log_atoms:pid(Node, Id, Serial, Atoms), At);
process(_, At, _) -> expected(At, ~"a process such as <0.102.0>").

reference([0 | _] = Numbers, At, _) -> read_ours(fun erlang:list_to_ref/1, "#Ref<", Numbers, At, ~"a reference");
reference([Node | Numbers], At, Atoms) -> accept(witness_log_atoms:reference(Node, Numbers, Atoms), At).

port([0 | _] = Numbers, At, _) -> read_ours(fun erlang:list_to_port/1, "#Port<", Numbers, At, ~"a port such as #Port<0.5>");
port([Node, Number], At, Atoms) -> accept(witness_log_atoms:port(Node, Number, Atoms), At);
port(_, At, _) -> expected(At, ~"a port such as #Port<0.5>").

%% The VM reads numbers modulo 2^64: larger ones would become other numbers.
read_ours(Read, Open, Numbers, At, What) ->
    try
        true = lists:all(fun(Number) -> Number < 1 bsl 64 end, Numbers),
        Read(Open ++ lists:flatten(lists:join($., [integer_to_list(Number) || Number <- Numbers])) ++ ">")
    catch
        error:_ -> malformed(At, [~"expected ", What, ~", found numbers that no such has"])
    end.

%% A local function is printed with its module, which may be quoted.
local(<<">", Rest/binary>>, At, $>) -> {Rest, At + 1};
local(<<"'", Rest/binary>>, At, $>) -> local(Rest, At + 1, $');
local(<<"'", Rest/binary>>, At, $') -> local(Rest, At + 1, $>);
local(<<"\\", C/utf8, Rest/binary>>, At, $') when C =/= $\n -> local(Rest, At + 1 + width(C), $');
local(<<C/utf8, Rest/binary>>, At, End) when C =/= $\n -> local(Rest, At + width(C), End);
local(_, At, End) -> expected(At, closing(End)).

function({Text, Begin}, At, Atoms) ->
    {Module, AfterModule, AtColon} = atom(Text, Begin, Atoms),
    {Name, AfterName, AtSlash} = atom(behind(~":", AfterModule, AtColon), AtColon + 1, Atoms),
    Behind = behind(~"/", AfterName, AtSlash),
    case witness_log_digits:number_in_base(Behind, AtSlash + 1, 10) of
        {Arity, Rest, Next} when Arity =< 255, Next > AtSlash + 1 ->
            {accept(witness_log_atoms:function(Module, Name, Arity, Atoms), At), Rest, Next};
        _ ->
            expected(AtSlash + 1, ~"an arity, at most 255")
    end.

behind(<<C>>, <<C, Rest/binary>>, _) -> Rest;
behind(Sign, _, At) -> expected(At, [~"`", Sign, ~"`"]).

%% A sign may precede a character too.
number(<<"-", Rest/binary>>, At) -> negative(unsigned(Rest, At + 1));
number(<<"+", Rest/binary>>, At) -> unsigned(Rest, At + 1);
number(Rest, At) -> unsigned(Rest, At).

negative({Value, Rest, At}) -> {-Value, Rest, At}.

unsigned(<<"$", Rest/binary>>, At) -> character(Rest, At + 1);
unsigned(Rest, At) -> witness_log_digits:number(Rest, At).
