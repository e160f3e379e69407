-module(witness_log_mark).
-moduledoc """
A place in a text, with enough of the preceding text to find the place again.

A mark has the number of bytes before the place, the first of them and the last of them, 1 KiB each. So a file that
was truncated and has grown again, or another file, can be distinguished from the one that was read, whatever its name and
size. (Two texts that are equal in both parts, such as logs of a single repeated line, cannot be distinguished.)

Invariant: `byte_size(Head) =:= byte_size(Tail) =:= min(Offset, 1024)`.
""".

-export([new/0, add/2, offset/1, head/1, tail/1, save/1, size/1, match/3]).

-export_type([mark/0, saved/0]).

-record(mark, {offset = 0 :: non_neg_integer(), head = ~"" :: binary(), tail = ~"" :: binary()}).

-doc "A place in a text.".
-opaque mark() :: #mark{}.

-doc "A mark for a file: hashes replace the text. Its keys may be part of a larger map.".
-type saved() :: #{offset := non_neg_integer(), head := binary(), tail := binary(), atom() => term()}.

-define(MARK_BYTES, 1024).

-doc "The beginning of a text.".
-spec new() -> mark().
new() -> #mark{}.

-doc "The place after some more text.".
-spec add(binary(), mark()) -> mark().
add(Text, #mark{offset = Offset, head = Head, tail = Tail}) ->
    #mark{offset = Offset + byte_size(Text), head = add_to_head(Head, Text), tail = add_to_tail(Tail, Text)}.

add_to_head(Head, _) when byte_size(Head) =:= ?MARK_BYTES -> Head;
add_to_head(Head, Text) -> <<Head/binary, (binary:part(Text, 0, min(byte_size(Text), ?MARK_BYTES - byte_size(Head))))/binary>>.

%% Copied, so that a mark does not keep the text in memory.
add_to_tail(_, Text) when byte_size(Text) >= ?MARK_BYTES -> binary:copy(binary:part(Text, byte_size(Text), -?MARK_BYTES));
add_to_tail(Tail, Text) ->
    Kept = min(byte_size(Tail), ?MARK_BYTES - byte_size(Text)),
    <<(binary:part(Tail, byte_size(Tail), -Kept))/binary, Text/binary>>.

-doc "How many bytes precede it.".
-spec offset(mark() | saved()) -> non_neg_integer().
offset(#{offset := Offset}) -> Offset;
offset(#mark{offset = Offset}) -> Offset.

-doc "The first bytes of the text.".
-spec head(mark()) -> binary().
head(#mark{head = Head}) -> Head.

-doc "The bytes before the place.".
-spec tail(mark()) -> binary().
tail(#mark{tail = Tail}) -> Tail.

-doc "The mark as plain data.".
-spec save(mark()) -> saved().
save(#mark{offset = Offset, head = Head, tail = Tail}) ->
    #{offset => Offset, head => erlang:md5(Head), tail => erlang:md5(Tail)}.

-doc "The number of bytes in its head, and in its tail.".
-spec size(saved() | mark()) -> 0..?MARK_BYTES.
size(#{offset := Offset}) -> min(Offset, ?MARK_BYTES);
size(#mark{offset = Offset}) -> min(Offset, ?MARK_BYTES).

-doc "The mark with this head and tail, if they match.".
-spec match(Head :: binary(), Tail :: binary(), saved() | mark()) -> {ok, mark()} | error.
match(Head, Tail, Mark) ->
    Found = #mark{offset = offset(Mark), head = Head, tail = Tail},
    case Mark of
        #mark{} when Found =:= Mark -> {ok, Found};
        #{head := Head1, tail := Tail1} ->
            case save(Found) of
                #{head := Head1, tail := Tail1} -> {ok, Found};
                #{} -> error
            end;
        #mark{} -> error
    end.
