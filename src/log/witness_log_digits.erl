-module(witness_log_digits).
-moduledoc """
Numbers in Erlang's notation: with a base, a point or an exponent, and of many digits.

Each function takes text and its offset in the block, and returns the value, the text after it, and the offset of
that. It throws if the text is not a number, as `witness_log_literal` expects.
""".

-export([number/2, number_in_base/3, digit/1]).

-export_type([at/0]).

-doc "An offset in a block.".
-type at() :: non_neg_integer().

-define(IS_DIGIT(C), (C >= $0 andalso C =< $9)).
%% The time to read a number grows with the square of its digits.
-define(MAX_DIGITS, 10_000).

-spec expected(at(), unicode:chardata()) -> no_return().
expected(At, What) -> throw({expected, At, What}).

-spec malformed(at(), unicode:chardata()) -> no_return().
malformed(At, What) -> throw({malformed, At, What}).

-doc "A number without a sign.".
-spec number(binary(), at()) -> {number(), Rest :: binary(), at()}.
number(Text, At) ->
    {Digits, Behind, Next} = decimal(Text, At, At, []),
    case Behind of
        <<"#", Rest/binary>> -> in_base(Digits, Rest, Next + 1, At);
        <<".", C, _/binary>> when ?IS_DIGIT(C) -> float(Digits, Behind, Next, At);
        _ -> {list_to_integer(Digits), Behind, Next}
    end.

%% Digits, with single `_' between digits.
decimal(<<C, Rest/binary>>, At, Begin, Digits) when ?IS_DIGIT(C), At - Begin < ?MAX_DIGITS ->
    decimal(Rest, At + 1, Begin, [C | Digits]);
decimal(<<"_", C, Rest/binary>>, At, Begin, [_ | _] = Digits) when ?IS_DIGIT(C), At - Begin < ?MAX_DIGITS ->
    decimal(Rest, At + 2, Begin, [C | Digits]);
decimal(<<C, _/binary>>, At, Begin, _) when ?IS_DIGIT(C), At > Begin ->
    too_many(Begin);
decimal(Rest, At, _, [_ | _] = Digits) ->
    {lists:reverse(Digits), Rest, At};
decimal(_, At, _, []) ->
    expected(At, ~"a digit").

-spec too_many(at()) -> no_return().
too_many(At) -> malformed(At, [~"a number of more than ", integer_to_binary(?MAX_DIGITS), ~" digits"]).

in_base(Digits, Text, At, Begin) ->
    case list_to_integer(Digits) of
        Base when Base >= 2, Base =< 36 ->
            case number_in_base(Text, At, Base) of
                {_, _, At} -> expected(At, [~"a digit of base ", integer_to_binary(Base)]);
                Read -> Read
            end;
        _ ->
            malformed(Begin, ~"a base that is not from 2 to 36")
    end.

-doc "A number in some base. If there is none, the returned offset is the given one.".
-spec number_in_base(binary(), at(), Base :: 2..36) -> {non_neg_integer(), Rest :: binary(), at()}.
number_in_base(Text, At, Base) -> number_in_base(Text, At, At, Base, 0).

number_in_base(<<C, Rest/binary>> = Text, At, Begin, Base, Value) ->
    case digit(C) of
        Digit when Digit < Base, At - Begin < ?MAX_DIGITS -> number_in_base(Rest, At + 1, Begin, Base, Value * Base + Digit);
        Digit when Digit < Base -> too_many(Begin);
        _ -> underscored(Text, At, Begin, Base, Value)
    end;
number_in_base(<<>>, At, _, _, Value) ->
    {Value, <<>>, At}.

underscored(<<"_", C, Rest/binary>> = Text, At, Begin, Base, Value) when At > Begin ->
    case digit(C) of
        Digit when Digit < Base -> number_in_base(Rest, At + 2, Begin, Base, Value * Base + Digit);
        _ -> {Value, Text, At}
    end;
underscored(Text, At, _, _, Value) ->
    {Value, Text, At}.

-doc "The value of a digit in the bases that have it; other characters are 36, which is not below any base.".
-spec digit(char()) -> 0..36.
digit(C) when is_integer(C), ?IS_DIGIT(C) -> C - $0;
digit(C) when is_integer(C), C >= $a, C =< $z -> C - $a + 10;
digit(C) when is_integer(C), C >= $A, C =< $Z -> C - $A + 10;
digit(_) -> 36.

float(Digits, <<".", Rest/binary>>, At, Begin) ->
    {Fraction, Behind, Next} = decimal(Rest, At + 1, At + 1, []),
    {Exponent, Last, End} = exponent(Behind, Next),
    try
        {list_to_float(Digits ++ "." ++ Fraction ++ Exponent), Last, End}
    catch
        error:badarg -> malformed(Begin, ~"a float that is too large")
    end.

exponent(<<E, Sign, C, Rest/binary>>, At) when E =:= $e orelse E =:= $E, Sign =:= $- orelse Sign =:= $+, ?IS_DIGIT(C) ->
    {Digits, Behind, Next} = decimal(<<C, Rest/binary>>, At + 2, At + 2, []),
    {[$e, Sign | Digits], Behind, Next};
exponent(<<E, C, Rest/binary>>, At) when E =:= $e orelse E =:= $E, ?IS_DIGIT(C) ->
    {Digits, Behind, Next} = decimal(<<C, Rest/binary>>, At + 1, At + 1, []),
    {[$e | Digits], Behind, Next};
exponent(Rest, At) ->
    {[], Rest, At}.
