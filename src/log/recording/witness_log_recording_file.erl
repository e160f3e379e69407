-module(witness_log_recording_file).
-moduledoc """
What all files of a recording have in common (`docs/internals/record.md`): a head, and blocks with checksums.

Both the head and the head of a block have a checksum of their own. So a file that was cut, with an incomplete last
block, differs from one with a damaged length: only the former is read up to that block.

A block is read by its offset, into a bounded amount of memory: however its bytes were compressed, they expand
to no more than its head says, and no block has more than 256 MiB.
""".

-include_lib("kernel/include/file.hrl").

-export([name/2, head/2, head_size/0, compressor/0, compressed/2, block/2]).
-export([open/2, close/1, read/2, size/1, first/0, recording/1, fold/4, ends/1, damage/3]).

-export_type([kind/0, file/0, id/0, what/0, error/0]).

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
-type error() :: #{file := file:filename_all(), offset := non_neg_integer(), what := what()}.

-define(MAGIC, 16#89, "WITREC\n").
-define(VERSION, 1).
-define(HEAD, 22).
-define(BLOCK_HEAD, 17).
-define(MAX_BLOCK, 16#10000000).
%% Fewer bytes are not worth compressing.
-define(SMALL, 64).

-doc "The name of a file in its folder.".
-spec name(file:filename_all(), kind()) -> file:filename_all().
name(Dir, Kind) -> filename:join(Dir, atom_to_list(Kind)).

%% --- writing ---------------------------------------------------------------------

-doc "The head of a file.".
-spec head(kind(), id()) -> binary().
head(Kind, <<Id:8/binary>>) ->
    Head = <<?MAGIC, ?VERSION, (letter(Kind)), Id/binary>>,
    <<Head/binary, (erlang:crc32(Head)):32/little>>.

letter(header) -> $h;
letter(order) -> $o;
letter(data) -> $d;
letter(processes) -> $p;
letter(modules) -> $m;
letter(index) -> $i.

-doc "The size of `head/2`.".
-spec head_size() -> pos_integer().
head_size() -> ?HEAD.

-doc "A compressor of blocks, for the process that made it.".
-spec compressor() -> zlib:zstream().
compressor() ->
    Z = zlib:open(),
    ok = zlib:deflateInit(Z, best_speed),
    Z.

-doc "These bytes, compressed, for `zlib:uncompress/1`.".
-spec compressed(iodata(), zlib:zstream()) -> binary().
compressed(Bytes, Z) ->
    Compressed = iolist_to_binary(zlib:deflate(Z, Bytes, finish)),
    ok = zlib:deflateReset(Z),
    Compressed.

-doc "A block of these bytes; compressed, if that makes it smaller.".
-spec block(iodata(), zlib:zstream() | none) -> iolist().
block(Bytes, Compressor) ->
    Length = iolist_size(Bytes),
    Length =< ?MAX_BLOCK orelse error(too_large, [Length]),
    {Compression, Stored} = stored(Bytes, Length, Compressor),
    Head = <<Length:32/little, (iolist_size(Stored)):32/little, Compression, (erlang:crc32(Stored)):32/little>>,
    [Head, <<(erlang:crc32(Head)):32/little>> | Stored].

stored(Bytes, Length, Compressor) when Compressor =:= none; Length < ?SMALL -> {0, Bytes};
stored(Bytes, Length, Z) ->
    Stored = compressed(Bytes, Z),
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
        Head = file:pread(Fd, 0, ?HEAD),
        case checked(Head, letter(Kind)) of
            {ok, Id} -> {ok, {Kind, Name, Fd, Size, Id}};
            What ->
                _ = file:close(Fd),
                {error, #{file => Name, offset => 0, what => What}}
        end
    else
        {error, Reason} -> {error, #{file => Name, offset => 0, what => {posix, Reason}}}
    end.

checked({ok, <<?MAGIC, Version, Kind, Id:8/binary, Crc:32/little>>}, Letter) ->
    case erlang:crc32(<<?MAGIC, Version, Kind, Id/binary>>) of
        Crc when Version =/= ?VERSION -> {version, Version};
        Crc when Kind =/= Letter -> kind;
        Crc -> {ok, Id};
        _ -> head
    end;
checked({ok, Bytes}, _) ->
    case binary:longest_common_prefix([Bytes, <<?MAGIC>>]) of
        Common when Common =:= byte_size(Bytes); Common =:= 8, byte_size(Bytes) < ?HEAD -> cut;
        _ -> magic
    end;
checked(eof, _) -> cut;
checked({error, Reason}, _) -> {posix, Reason}.

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
-spec first() -> non_neg_integer().
first() -> ?HEAD.

-doc """
The block at an offset, and the offset of the next one. `eof`: there is none; `cut`: it is incomplete.
""".
-spec read(non_neg_integer(), file()) -> {ok, binary(), Next :: non_neg_integer()} | eof | cut | {error, error()}.
read(At, {_, _, _, Size, _}) when At =:= Size -> eof;
read(At, {_, _, _, Size, _}) when At + ?BLOCK_HEAD > Size -> cut;
read(At, {_, _, Fd, Size, _} = File) ->
    case block_head(file:pread(Fd, At, ?BLOCK_HEAD)) of
        {ok, {_, Stored, _, _}} when At + ?BLOCK_HEAD + Stored > Size -> cut;
        {ok, {Length, Stored, Compression, Crc}} -> contents(At, Length, Stored, Compression, Crc, File);
        cut -> cut;
        What -> damage(At, What, File)
    end.

block_head({ok, <<Head:13/binary, Crc:32/little>>}) ->
    <<Length:32/little, Stored:32/little, Compression, StoredCrc:32/little>> = Head,
    case erlang:crc32(Head) of
        Crc when Length > ?MAX_BLOCK -> {block, too_large};
        Crc when Compression =:= 0, Stored =:= Length; Compression =:= 1, Stored < Length ->
            {ok, {Length, Stored, Compression, StoredCrc}};
        _ -> block_head
    end;
block_head({error, Reason}) -> {posix, Reason};
block_head(_) -> cut.

contents(At, Length, Stored, Compression, Crc, {_, _, Fd, _, _} = File) ->
    case file:pread(Fd, At + ?BLOCK_HEAD, Stored) of
        {ok, Bytes} when byte_size(Bytes) =:= Stored ->
            case erlang:crc32(Bytes) =:= Crc andalso expanded(Compression, Bytes, Length) of
                false -> damage(At, block, File);
                Contents -> {ok, Contents, At + ?BLOCK_HEAD + Stored}
            end;
        eof when Stored =:= 0 -> {ok, <<>>, At + ?BLOCK_HEAD};
        {error, Reason} -> damage(At, {posix, Reason}, File);
        _ -> cut
    end.

expanded(0, Bytes, _) -> Bytes;
expanded(1, Bytes, Length) ->
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
damage(At, What, {_, Name, _, _, _}) -> {error, #{file => Name, offset => At, what => What}}.

-doc "Whether a file ends with a whole block: only the heads of its blocks are read.".
-spec ends(file()) -> ok | cut | {error, error()}.
ends(File) -> ends(?HEAD, File).

ends(At, {_, _, _, Size, _}) when At =:= Size -> ok;
ends(At, {_, _, _, Size, _}) when At + ?BLOCK_HEAD > Size -> cut;
ends(At, {_, _, Fd, _, _} = File) ->
    case block_head(file:pread(Fd, At, ?BLOCK_HEAD)) of
        {ok, {_, Stored, _, _}} -> ends(At + ?BLOCK_HEAD + Stored, File);
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
