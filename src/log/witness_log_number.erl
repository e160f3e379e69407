-module(witness_log_number).
-moduledoc """
Numbers of JSON: the grammar of RFC 8259, read as integers of any size or floats.
""".

-export([read/2]).

-define(IS_DIGIT(C), (C >= $0 andalso C =< $9)).
%% The time to read a number grows with the square of its digits.
-define(MAX_DIGITS, 10_000).

-doc "The number at an offset of a block, and the offset after it.".
-spec read(Block :: binary(), At) -> {ok, number(), At} | witness_log_term:malformed() when At :: non_neg_integer().
read(Block, At) ->
    Begin = case Block of
        <<_:At/binary, "-", _/binary>> -> At + 1;
        _ -> At
    end,
    Point = digits(Block, Begin),
    case Block of
        _ when Point =:= Begin -> witness_log_term:expected(~"a digit", Block, Begin);
        _ when Point - Begin > ?MAX_DIGITS -> too_many(At);
        <<_:Begin/binary, "0", _/binary>> when Point > Begin + 1 ->
            witness_log_term:expected(~"a number without leading zeros", Block, Begin);
        <<_:Point/binary, ".", C, _/binary>> when ?IS_DIGIT(C) ->
            End = digits(Block, Point + 1),
            exponent(Block, At, End, binary_part_of(Block, At, End));
        <<_:Point/binary, ".", _/binary>> -> witness_log_term:expected(~"a digit", Block, Point + 1);
        <<_:Point/binary, E, _/binary>> when E =:= $e; E =:= $E ->
            exponent(Block, At, Point, [binary_part_of(Block, At, Point), ~".0"]);
        _ -> {ok, binary_to_integer(binary_part_of(Block, At, Point)), Point}
    end.

too_many(At) -> {malformed, At, [~"a number of more than ", integer_to_binary(?MAX_DIGITS), ~" digits"]}.

binary_part_of(Block, From, To) -> binary_part(Block, From, To - From).

digits(Block, At) ->
    <<_:At/binary, Rest/binary>> = Block,
    count(Rest, At).

count(<<C, Rest/binary>>, At) when ?IS_DIGIT(C) -> count(Rest, At + 1);
count(_, At) -> At.

exponent(Block, Begin, At, Written) ->
    case Block of
        <<_:At/binary, E, Sign, C, _/binary>>
          when E =:= $e orelse E =:= $E, Sign =:= $- orelse Sign =:= $+, ?IS_DIGIT(C) ->
            End = digits(Block, At + 2),
            float([Written, $e, binary_part_of(Block, At + 1, End)], Begin, End);
        <<_:At/binary, E, C, _/binary>> when E =:= $e orelse E =:= $E, ?IS_DIGIT(C) ->
            End = digits(Block, At + 1),
            float([Written, $e, binary_part_of(Block, At + 1, End)], Begin, End);
        <<_:At/binary, E, _/binary>> when E =:= $e; E =:= $E ->
            witness_log_term:expected(~"an exponent", Block, At + 1);
        _ ->
            float(Written, Begin, At)
    end.

float(_, Begin, End) when End - Begin > ?MAX_DIGITS -> too_many(Begin);
float(Written, Begin, End) ->
    try
        {ok, binary_to_float(iolist_to_binary(Written)), End}
    catch
        error:badarg -> {malformed, Begin, ~"a float that is too large"}
    end.
