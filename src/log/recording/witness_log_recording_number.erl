-module(witness_log_recording_number).
-moduledoc """
The numbers of recordings: LEB128, seven bits a byte, the lowest first, the eighth bit set in all bytes except the
last. A number has at most 64 bits, and so at most ten bytes.
""".

-export([leb/1, read/1, several/2, ascending/1, read_ascending/1, zigzag/1, unzigzag/1]).

-define(LIMIT, 16#10000000000000000).

-doc "A number below 2^64 in LEB128.".
-spec leb(non_neg_integer()) -> binary().
leb(N) when N < 16#80 -> <<N>>;
leb(N) when N < 16#4000 -> <<1:1, N:7, (N bsr 7)>>;
leb(N) when N < ?LIMIT -> leb(N, <<>>).

leb(N, Bytes) when N < 16#80 -> <<Bytes/binary, N>>;
leb(N, Bytes) -> leb(N bsr 7, <<Bytes/binary, 1:1, N:7>>).

-doc "The first number in the bytes. `more`: they end within it; `too_large`: it has more than 64 bits.".
-spec read(binary()) -> {non_neg_integer(), Rest :: binary()} | more | too_large.
read(<<0:1, N:7, Rest/binary>>) -> {N, Rest};
read(<<1:1, Low:7, 0:1, High:7, Rest/binary>>) -> {High bsl 7 bor Low, Rest};
read(Bytes) -> read(Bytes, 0, 0).

read(<<0:1, Bits:7, Rest/binary>>, Shift, N) ->
    case Bits bsl Shift bor N of
        Value when Value < ?LIMIT -> {Value, Rest};
        _ -> too_large
    end;
read(<<1:1, Bits:7, Rest/binary>>, Shift, N) when Shift < 63 -> read(Rest, Shift + 7, Bits bsl Shift bor N);
read(<<>>, _, _) -> more;
read(_, _, _) -> too_large.

-doc "The first so many numbers in the bytes.".
-spec several(non_neg_integer(), binary()) -> {[non_neg_integer()], Rest :: binary()} | more | too_large.
several(Count, Bytes) -> several(Count, Bytes, []).

several(0, Rest, Numbers) -> {lists:reverse(Numbers), Rest};
several(Left, Bytes, Numbers) ->
    case read(Bytes) of
        {N, Rest} -> several(Left - 1, Rest, [N | Numbers]);
        Wrong -> Wrong
    end.

-doc "Different numbers in ascending order, each as the difference from the previous one.".
-spec ascending([non_neg_integer()]) -> binary().
ascending(Numbers) ->
    {Deltas, _} = lists:mapfoldl(fun(N, Before) when N > Before -> {leb(N - Before), N} end, -1, Numbers),
    iolist_to_binary(Deltas).

-doc "The numbers of `ascending/1`.".
-spec read_ascending(binary()) -> {ok, [non_neg_integer()]} | malformed.
read_ascending(Bytes) -> read_ascending(Bytes, -1, []).

read_ascending(<<>>, _, Numbers) -> {ok, lists:reverse(Numbers)};
read_ascending(Bytes, Before, Numbers) ->
    case read(Bytes) of
        {Delta, Rest} when Delta > 0 -> read_ascending(Rest, Before + Delta, [Before + Delta | Numbers]);
        _ -> malformed
    end.

-doc "An integer as a natural number: 0, -1, 1, -2, 2 become 0, 1, 2, 3, 4.".
-spec zigzag(integer()) -> non_neg_integer().
zigzag(I) when I >= 0 -> I bsl 1;
zigzag(I) -> -1 - (I bsl 1).

-doc "The integer of `zigzag/1`.".
-spec unzigzag(non_neg_integer()) -> integer().
unzigzag(N) when N band 1 =:= 0 -> N bsr 1;
unzigzag(N) -> -1 - (N bsr 1).
