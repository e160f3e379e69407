-module(witness_log_recording_file).
-moduledoc """
What all files of a recording have in common (`docs/internals/record.md`): a head, and blocks with checksums.

Both the head and the head of a block have a checksum of their own. So a file that was cut, with an incomplete last
block, differs from one with a damaged length: only the former is read up to that block.

A block is read by its offset, into a bounded amount of memory: however its bytes were compressed, they expand
to no more than its head says, and no block has more than 256 MiB.
""".

-include_lib("kernel/include/file.hrl").

-export([name/2, head/2, head/3, compressor/0, compress/2, block/2]).
-export([open/2, close/1, read/2, size/1, first_offset/0, recording/1, fold/4, check_end/1, damage/3, error_at/3]).

-export_type([kind/0, file/0, id/0, what/0, reason/0, error/0]).

-doc "The files of a recording, by name.".
-type kind() :: header | order | data | processes | modules | index.

-doc "The identity of a recording, in the heads of all its files.".
-type id() :: <<_:64>>.

-doc "An open file, for the process that opened it.".
-opaque file() :: {kind(), Name :: file:filename_all(), file:fd(), Size :: non_neg_integer(), id()}.

-doc "What is wrong in a file.".
-type what() :: magic | {version, byte()} | kind | head | cut | block_head | block | {block, too_large}
              | {posix, file:posix() | badarg | terminated} | {contents, unicode:chardata()}.

-doc "Where it is wrong.".
-type reason() :: #{file := file:filename_all(), offset := non_neg_integer(), what := what()}.

-doc "`m:witness_log_recording` makes text of the reason.".
-type error() :: {witness_log_recording, reason()}.

-define(MAGIC, 16#89, "WITREC\n").
%% Version 1 has no places of calls in their order. Only recordings with times have the last one.
-define(VERSION, 2).
-define(FIRST_VERSION, 1).
-define(VERSION_WITH_TIMES, 3).
-define(HEAD_BYTES, 22).
-define(BLOCK_HEAD_BYTES, 17).
-define(MAX_BLOCK_BYTES, 16#10000000).
%% Fewer bytes are not worth compressing.
-define(MIN_COMPRESSED_BYTES, 64).

-doc "The name of a file in its folder.".
-spec name(file:filename_all(), kind()) -> file:filename_all().
name(Dir, Kind) -> filename:join(Dir, atom_to_list(Kind)).

%% --- writing ---------------------------------------------------------------------

-doc "The head of a file of a recording without times.".
-spec head(kind(), id()) -> binary().
head(Kind, Id) -> head(Kind, Id, false).

-doc "The head of a file. `Times`: readers that do not know times must refuse it.".
-spec head(kind(), id(), Times :: boolean()) -> binary().
head(Kind, <<Id:8/binary>>, Times) ->
    Version = case Times of true -> ?VERSION_WITH_TIMES; false -> ?VERSION end,
    Head = <<?MAGIC, Version, (letter(Kind)), Id/binary>>,
    <<Head/binary, (erlang:crc32(Head)):32/little>>.

letter(header) -> $h;
letter(order) -> $o;
letter(data) -> $d;
letter(processes) -> $p;
letter(modules) -> $m;
letter(index) -> $i.

-doc "A compressor of blocks, for the process that made it.".
-spec compressor() -> zlib:zstream().
compressor() ->
    Z = zlib:open(),
    ok = zlib:deflateInit(Z, best_speed),
    Z.

-doc "These bytes, compressed, for `zlib:uncompress/1`.".
-spec compress(iodata(), zlib:zstream()) -> binary().
compress(Bytes, Z) ->
    Compressed = iolist_to_binary(zlib:deflate(Z, Bytes, finish)),
    ok = zlib:deflateReset(Z),
    Compressed.

-doc "A block of these bytes; compressed, if that makes it smaller.".
-spec block(iodata(), zlib:zstream() | none) -> iolist().
block(Bytes, Compressor) ->
    Length = iolist_size(Bytes),
    Length =< ?MAX_BLOCK_BYTES orelse error(too_large, [Length]),
    {Compression, Stored} = compress_block(Bytes, Length, Compressor),
    Head = <<Length:32/little, (iolist_size(Stored)):32/little, Compression, (erlang:crc32(Stored)):32/little>>,
    [Head, <<(erlang:crc32(Head)):32/little>> | Stored].

compress_block(Bytes, Length, Compressor) when Compressor =:= none; Length < ?MIN_COMPRESSED_BYTES -> {0, Bytes};
compress_block(Bytes, Length, Z) ->
    Stored = compress(Bytes, Z),
    case byte_size(Stored) < Length of
        true -> {1, Stored};
        false -> {0, Bytes}
    end.

%% --- reading ---------------------------------------------------------------------

-doc "Opens a file of a recording, and reads its head.".
-spec open(file:filename_all(), kind()) -> {ok, file()} | {error, error()}.
open(Dir, Kind) ->
    Name = name(Dir, Kind),
    maybe
        {ok, #file_info{type = Type, size = Size}} ?= file:read_file_info(Name, [raw]),
        ok ?= case Type of regular -> ok; _ -> {error, eftype} end,
        {ok, Fd} ?= file:open(Name, [read, raw, binary]),
        Head = file:pread(Fd, 0, ?HEAD_BYTES),
        case check_head(Head, letter(Kind)) of
            {ok, Id} -> {ok, {Kind, Name, Fd, Size, Id}};
            What ->
                _ = file:close(Fd),
                error_at(Name, 0, What)
        end
    else
        {error, Reason} -> error_at(Name, 0, {posix, Reason})
    end.

check_head({ok, <<?MAGIC, Version, Kind, Id:8/binary, Crc:32/little>>}, Letter) ->
    case erlang:crc32(<<?MAGIC, Version, Kind, Id/binary>>) of
        Crc when Version < ?FIRST_VERSION; Version > ?VERSION_WITH_TIMES -> {version, Version};
        Crc when Kind =/= Letter -> kind;
        Crc -> {ok, Id};
        _ -> head
    end;
check_head({ok, Bytes}, _) ->
    case binary:longest_common_prefix([Bytes, <<?MAGIC>>]) of
        Common when Common =:= byte_size(Bytes); Common =:= 8, byte_size(Bytes) < ?HEAD_BYTES -> cut;
        _ -> magic
    end;
check_head(eof, _) -> cut;
check_head({error, Reason}, _) -> {posix, Reason}.

-doc "Closes a file.".
-spec close(file()) -> ok.
close({_, _, Fd, _, _}) ->
    _ = file:close(Fd),
    ok.

-doc "The size of a file when it was opened.".
-spec size(file()) -> non_neg_integer().
size({_, _, _, Size, _}) -> Size.

-doc "The recording that a file belongs to.".
-spec recording(file()) -> id().
recording({_, _, _, _, Id}) -> Id.

-doc "The offset of the first block.".
-spec first_offset() -> non_neg_integer().
first_offset() -> ?HEAD_BYTES.

-doc """
The block at an offset, and the offset of the next one. `eof`: there is none; `cut`: it is incomplete.
""".
-spec read(non_neg_integer(), file()) -> {ok, binary(), Next :: non_neg_integer()} | eof | cut | {error, error()}.
read(At, {_, _, _, Size, _}) when At =:= Size -> eof;
read(At, {_, _, _, Size, _}) when At + ?BLOCK_HEAD_BYTES > Size -> cut;
read(At, {_, _, Fd, Size, _} = File) ->
    case check_block_head(file:pread(Fd, At, ?BLOCK_HEAD_BYTES)) of
        {ok, {_, Stored, _, _}} when At + ?BLOCK_HEAD_BYTES + Stored > Size -> cut;
        {ok, {Length, Stored, Compression, Crc}} -> read_contents(At, Length, Stored, Compression, Crc, File);
        cut -> cut;
        What -> damage(At, What, File)
    end.

check_block_head({ok, <<Head:13/binary, Crc:32/little>>}) ->
    <<Length:32/little, Stored:32/little, Compression, StoredCrc:32/little>> = Head,
    case erlang:crc32(Head) of
        Crc when Length > ?MAX_BLOCK_BYTES -> {block, too_large};
        Crc when Compression =:= 0, Stored =:= Length; Compression =:= 1, Stored < Length ->
            {ok, {Length, Stored, Compression, StoredCrc}};
        _ -> block_head
    end;
check_block_head({error, Reason}) -> {posix, Reason};
check_block_head(_) -> cut.

read_contents(At, Length, Stored, Compression, Crc, {_, _, Fd, _, _} = File) ->
    case file:pread(Fd, At + ?BLOCK_HEAD_BYTES, Stored) of
        {ok, Bytes} when byte_size(Bytes) =:= Stored ->
            case erlang:crc32(Bytes) =:= Crc andalso expand(Compression, Bytes, Length) of
                false -> damage(At, block, File);
                Contents -> {ok, Contents, At + ?BLOCK_HEAD_BYTES + Stored}
            end;
        eof when Stored =:= 0 -> {ok, <<>>, At + ?BLOCK_HEAD_BYTES};
        {error, Reason} -> damage(At, {posix, Reason}, File);
        _ -> cut
    end.

expand(0, Bytes, _) -> Bytes;
expand(1, Bytes, Length) ->
    Z = zlib:open(),
    try
        ok = zlib:inflateInit(Z),
        case inflate(Z, zlib:safeInflate(Z, Bytes), Length, []) of
            Contents when byte_size(Contents) =:= Length -> Contents;
            _ -> false
        end
    catch
        error:data_error -> false
    after
        zlib:close(Z)
    end.

%% A call returns some kilobytes: the expansion of a bomb stops here, soon after the block should have ended.
inflate(_, {need_dictionary, _, _}, _, _) -> <<>>;
inflate(Z, {More, Part}, Left, Parts) ->
    case Left - iolist_size(Part) of
        Less when More =:= continue, Less >= 0 -> inflate(Z, zlib:safeInflate(Z, []), Less, [Parts | Part]);
        _ -> iolist_to_binary([Parts | Part])
    end.

-doc "An error in a file.".
-spec damage(non_neg_integer(), what(), file()) -> {error, error()}.
damage(At, What, {_, Name, _, _, _}) -> error_at(Name, At, What).

-doc "The same, by the name of the file.".
-spec error_at(file:filename_all(), non_neg_integer(), what()) -> {error, error()}.
error_at(Name, At, What) -> {error, {witness_log_recording, #{file => Name, offset => At, what => What}}}.

-doc "Whether a file ends with a whole block: only the heads of its blocks are read.".
-spec check_end(file()) -> ok | cut | {error, error()}.
check_end(File) -> check_end(?HEAD_BYTES, File).

check_end(At, {_, _, _, Size, _}) when At =:= Size -> ok;
check_end(At, {_, _, _, Size, _}) when At + ?BLOCK_HEAD_BYTES > Size -> cut;
check_end(At, {_, _, Fd, _, _} = File) ->
    case check_block_head(file:pread(Fd, At, ?BLOCK_HEAD_BYTES)) of
        {ok, {_, Stored, _, _}} -> check_end(At + ?BLOCK_HEAD_BYTES + Stored, File);
        cut -> cut;
        What -> damage(At, What, File)
    end.

-doc """
Folds over the blocks of a file, from the first to the last whole one. `cut`: further bytes follow it.
""".
-spec fold(fun((At :: non_neg_integer(), binary(), Acc) -> {ok, Acc} | {error, error()}), Acc, non_neg_integer(), file()) ->
    {ok | cut, Acc, End :: non_neg_integer()} | {error, error()}.
fold(Fun, Acc, At, File) ->
    case read(At, File) of
        {ok, Bytes, Next} ->
            case Fun(At, Bytes, Acc) of
                {ok, Acc1} -> fold(Fun, Acc1, Next, File);
                {error, _} = Error -> Error
            end;
        eof -> {ok, Acc, At};
        cut -> {cut, Acc, At};
        {error, _} = Error -> Error
    end.
