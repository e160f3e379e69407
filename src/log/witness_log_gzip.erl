-module(witness_log_gzip).
-moduledoc """
The text of gzip data, a piece at a time. The data are members, one after the other. Zeros may follow the last one: tar and tapes
pad blocks with them, and `gzip` ignores them too.

`m:zlib` does not say where a member has ended, and so which bytes follow it. But a member ends with the CRC-32 and the size of
its text, so its end is found by these. An end is accepted only if `zlib:inflateEnd/1` confirms it.
""".

-export([open/0, feed/2, finish/1, close/1]).

-export_type([gzip/0, reason/0]).

%% crc, size: those of the text of this member so far. head: its first bytes. before: its last bytes before `piece', which was
%% given to zlib and is not finished yet. read: how many bytes of the member preceded `piece'.
-record(member, {crc = 0 :: non_neg_integer(),
                 size = 0 :: non_neg_integer(),
                 head = ~"" :: binary(),
                 before = ~"" :: binary(),
                 piece = ~"" :: binary(),
                 read = 0 :: non_neg_integer()}).

-doc "A decompressor. `{behind, Bytes}`: a member has ended, and these bytes follow it. `padding`: zeros have followed it.".
-opaque gzip() :: {zlib:zstream(), #member{} | {behind, binary()} | padding}.

-doc "What is wrong with the data.".
-type reason() :: damaged | truncated.

-define(WINDOW_BITS, 16 + 15). % gzip only, with the largest window
-define(TRAILER_BYTES, 8).
-define(HEAD_BYTES, 12).        % a head without extra fields has 10 bytes, and the shortest text 2
-define(EXTRA_FLAG, 4).        % the flag for extra fields

-doc "A decompressor. The process that opened it uses it.".
-spec open() -> gzip().
open() ->
    Z = zlib:open(),
    {Z, member(Z)}.

member(Z) ->
    ok = zlib:inflateInit(Z, ?WINDOW_BITS, cut),
    #member{}.

-doc "The next piece of text. `more`: there is more text, call again without bytes; `done`: input is needed.".
-spec feed(binary(), gzip()) -> {more | done, Text :: iodata(), gzip()} | {error, damaged}.
feed(~"", {Z, {behind, ~""}}) -> {done, [], {Z, {behind, ~""}}};
feed(Bytes, {Z, {behind, ~""}}) -> begin_member(Bytes, Z);
feed(~"", {Z, {behind, Rest}}) -> begin_member(Rest, Z);
feed(Bytes, {Z, padding}) -> check_padding(Bytes, Z);
feed(Bytes, {Z, #member{piece = ~""} = M}) -> inflate(Bytes, Z, M#member{head = head(Bytes, M), piece = Bytes});
%% There was more text.
feed(~"", {Z, #member{} = M}) -> inflate(~"", Z, M).

join(~"", Bytes) -> Bytes;
join(Before, Bytes) -> <<Before/binary, Bytes/binary>>.

head(Bytes, #member{head = Head}) ->
    <<Head/binary, (binary:part(Bytes, 0, min(byte_size(Bytes), ?HEAD_BYTES - byte_size(Head))))/binary>>.

begin_member(<<0, _/binary>> = Bytes, Z) -> check_padding(Bytes, Z);
begin_member(Bytes, Z) -> feed(Bytes, {Z, member(Z)}).

check_padding(Bytes, Z) ->
    case Bytes =:= binary:copy(<<0>>, byte_size(Bytes)) of
        true -> {done, [], {Z, padding}};
        false -> {error, damaged}
    end.

inflate(Bytes, Z, M) ->
    try zlib:safeInflate(Z, Bytes) of
        {continue, Text} -> {more, Text, {Z, count(Text, M)}};
        {finished, Text} -> end_member(Text, Z, count(Text, M));
        {need_dictionary, _, _} -> {error, damaged}
    catch
        error:data_error -> {error, damaged}
    end.

count(Text, #member{crc = Crc, size = Size} = M) ->
    M#member{crc = erlang:crc32(Crc, Text), size = (Size + iolist_size(Text)) band 16#ffffffff}.

%% zlib has taken all of the piece, or all of it up to the end of the member; it has dropped the rest.
end_member(Text, Z, #member{before = Before, piece = Piece, read = Read} = M) ->
    All = join(Before, Piece),
    case trailer(All, M#member{read = Read - byte_size(Before)}) of
        none -> {done, Text, {Z, M#member{before = keep_end(All), piece = ~"", read = Read + byte_size(Piece)}}};
        {At, Size} ->
            try
                ok = zlib:inflateEnd(Z),
                <<_:At/binary, _:Size/binary, Rest/binary>> = All,
                {case Rest of ~"" -> done; _ -> more end, Text, {Z, {behind, Rest}}}
            catch
                error:data_error -> {error, damaged}
            end
    end.

keep_end(All) -> binary:copy(binary:part(All, byte_size(All), -min(?TRAILER_BYTES, byte_size(All)))).

%% The position of the trailer in these bytes; `read' bytes of the member precede them. The trailer of an empty text is zeros, and
%% one more zero may belong to the compressed text. So eight zeros at the end of the bytes may not be the whole trailer.
trailer(Bytes, #member{crc = Crc, size = Size, read = Read} = M) ->
    From = max(0, min_member_size(M) - Read),
    case From =< byte_size(Bytes) andalso
             binary:match(Bytes, <<Crc:32/little, Size:32/little>>, [{scope, {From, byte_size(Bytes) - From}}]) of
        {At, _} when Crc =:= 0, Size =:= 0 ->
            case Bytes of
                <<_:At/binary, 0:72, _/binary>> -> {At, ?TRAILER_BYTES + 1};
                <<_:At/binary, 0:64>> -> none;
                _ -> {At, ?TRAILER_BYTES}
            end;
        {At, _} -> {At, ?TRAILER_BYTES};
        _ -> none
    end.

%% A head may contain eight zeros.
min_member_size(#member{head = <<_:3/binary, Flags, _:6/binary, Size:16/little>>}) when Flags band ?EXTRA_FLAG =/= 0 ->
    ?HEAD_BYTES + 2 + Size;
min_member_size(_) -> ?HEAD_BYTES.

-doc "Whether the data were complete, at the end of the input.".
-spec finish(gzip()) -> ok | {error, truncated}.
finish({Z, #member{}}) ->
    try zlib:inflateEnd(Z)
    catch error:data_error -> {error, truncated}
    end;
finish(_) -> ok.

-doc "Frees the memory of the decompressor.".
-spec close(gzip()) -> ok.
close({Z, _}) -> zlib:close(Z).
