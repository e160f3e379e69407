-module(witness_event_bounded).
-moduledoc """
Writes terms as text of a bounded number of characters, in any notation. The limit bounds the work too.

A notation is a function that turns an item of work into its parts: text, and further items. Every item writes something or is
followed by one that does, and takes no more of a term than can still be written.
""".

-export([write/3, iterator/1, prefix/2, integer/3, letter/1, is_hidden/1]).

-export_type([chunk/0, work/1, expand/1]).

-doc "Finished text; a binary is ASCII, so that its size is its number of characters.".
-type chunk() :: binary() | [char()].

-doc "The work that remains, in order.".
-type work(Item) :: [{text, chunk()} | Item].

-doc "The parts of an item, when `Left` characters can still be written.".
-type expand(Item) :: fun((Item, Left :: non_neg_integer()) -> work(Item)).

-define(SORTED_KEYS, 64).
-define(DECIMAL_BYTES, 375).

-doc "The text of all items, at most `Limit` characters; a longer text ends in `...`.".
-spec write(work(Item), Limit :: non_neg_integer(), expand(Item)) -> binary().
%% A stack of work instead of recursion: the depth of a term costs nothing.
write(Work, Limit, Expand) -> write(Work, Limit, Limit, [], Expand).

write([], _, _, Written, _) ->
    encode(lists:reverse(Written));
write([{text, Text} | Work], Left, Limit, Written, Expand) ->
    case Left - size_of(Text) of
        Less when Less >= 0 -> write(Work, Less, Limit, [Text | Written], Expand);
        _ -> cut(lists:reverse(Written, [Text]), Limit)
    end;
write([Item | Work], Left, Limit, Written, Expand) ->
    write(Expand(Item, Left) ++ Work, Left, Limit, Written, Expand).

size_of(Text) when is_binary(Text) -> byte_size(Text);
size_of(Text) -> length(Text).

cut(Written, Limit) ->
    Room = max(Limit - 3, 0),
    Kept = lists:sublist(unicode:characters_to_list(Written), Room),
    encode([Kept, lists:duplicate(Limit - Room, $.)]).

%% Only Unicode is written.
encode(Text) ->
    <<_/binary>> = unicode:characters_to_binary(Text).

-doc "The pairs of a map. Those of up to 64 keys are sorted by key.".
-spec iterator(map()) -> maps:iterator().
iterator(Map) when map_size(Map) =< ?SORTED_KEYS -> maps:iterator(Map, ordered);
iterator(Map) -> maps:iterator(Map).

-doc "The beginning of a string, or of text in UTF-8: one character more than can be written, so that the cut is detected.".
-spec prefix(string() | binary(), Left :: non_neg_integer()) -> string().
prefix(List, Left) when is_list(List) -> lists:sublist(List, Left + 1);
prefix(Binary, Left) ->
    case unicode:characters_to_list(binary:part(Binary, 0, prefix_size(Binary, Left + 1, 0))) of
        Chars when is_list(Chars) -> Chars
    end.

prefix_size(_, 0, Size) -> Size;
prefix_size(Binary, Count, Size) ->
    case Binary of
        <<_:Size/binary, C/utf8, _/binary>> -> prefix_size(Binary, Count - 1, Size + byte_size(<<C/utf8>>));
        _ -> Size
    end.

-doc """
An integer in decimal digits. The time for them grows with the square of the size, so integers of more than some 900 digits are in
base 16, after the prefix of that base.
""".
-spec integer(integer(), Base16 :: string(), Left :: non_neg_integer()) -> chunk().
integer(Integer, Base16, Left) ->
    case erlang:external_size(Integer) =< ?DECIMAL_BYTES of
        true -> integer_to_binary(Integer);
        false -> hexadecimal(Integer, Base16, Left)
    end.

hexadecimal(Integer, Base16, Left) when Integer < 0 -> [$- | hexadecimal(-Integer, Base16, Left)];
hexadecimal(Integer, Base16, Left) ->
    Bytes = binary:encode_unsigned(Integer),
    Digits = binary:encode_hex(binary:part(Bytes, 0, min(byte_size(Bytes), Left + 1))),
    Base16 ++ string:trim(binary_to_list(Digits), leading, "0").

-doc "The letter behind the backslash of a control character. Only Elixir has one for 7 and for 127.".
-spec letter(char()) -> char().
letter(7) -> $a;
letter($\b) -> $b;
letter($\t) -> $t;
letter($\n) -> $n;
letter($\v) -> $v;
letter($\f) -> $f;
letter($\r) -> $r;
letter($\e) -> $e;
letter($\d) -> $d;
letter($\\) -> $\\.

-doc "Whether a character takes no place or changes the direction of others.".
-spec is_hidden(char()) -> boolean().
is_hidden(C) ->
    C =:= 16#AD orelse C =:= 16#61C orelse C =:= 16#180E orelse C >= 16#200B andalso C =< 16#200F
        orelse C >= 16#2028 andalso C =< 16#202E orelse C >= 16#2060 andalso C =< 16#206F orelse C =:= 16#FEFF
        orelse C >= 16#FFF9 andalso C =< 16#FFFB orelse C >= 16#E0000 andalso C =< 16#E0FFF.
