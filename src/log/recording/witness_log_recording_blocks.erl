-module(witness_log_recording_blocks).
-moduledoc """
A cache of recently read blocks of a recording, for many cursors. One block has sub-traces of thousands of processes. Without
the cache it would be read and expanded for each of them.

The cache has a limit in bytes, whatever the size of the blocks; the block that was read first is removed first. A cache belongs to
the process that made it.
""".

-export([new/0, delete/1, read/3, cached/3]).

-export_type([cache/0]).

-doc "A cache.".
-type cache() :: {cache, ets:table()}.

%% Limit in bytes, without the last block, which is always kept.
-define(MAX_CACHED_BYTES, 8_388_608).

%% The table has: blocks by their keys, with additional data; keys by the numbers of blocks; and the state under this key.
-define(STATE, state).

-doc "An empty cache.".
-spec new() -> cache().
new() ->
    Table = ets:new(?MODULE, [private]),
    ets:insert(Table, {?STATE, 0, 0, 0}),
    {cache, Table}.

-doc "Deletes a cache.".
-spec delete(cache()) -> ok.
delete({cache, Table}) ->
    true = ets:delete(Table),
    ok.

-doc "The block at an offset of a file, as `witness_log_recording_file:read/2` returns it.".
-spec read(non_neg_integer(), witness_log_recording_file:file(), none | cache()) ->
    {ok, binary(), Next :: non_neg_integer()} | eof | cut | {error, witness_log_recording_file:error()}.
read(At, File, Cache) -> cached({File, At}, fun() -> witness_log_recording_file:read(At, File) end, Cache).

-doc "The cached value of a key, or a new value, which is cached. The values are blocks, and pieces of the index.".
-spec cached(term(), fun(() -> {ok, binary(), Also :: term()} | Other), none | cache()) -> {ok, binary(), Also :: term()} | Other.
cached(_, Make, none) -> Make();
cached(Key, Make, {cache, Table}) ->
    case ets:lookup(Table, {block, Key}) of
        [{_, Block, Also}] -> {ok, Block, Also};
        [] ->
            case Make() of
                {ok, Block, Also} = Made ->
                    [{_, First, Last, Bytes}] = ets:lookup(Table, ?STATE),
                    ets:insert(Table, [{{block, Key}, Block, Also}, {Last, {block, Key}}]),
                    make_room(First, Last + 1, Bytes + byte_size(Block), Table),
                    Made;
                Other -> Other
            end
    end.

make_room(First, Last, Bytes, Table) when Bytes > ?MAX_CACHED_BYTES, First < Last - 1 ->
    [{_, Key}] = ets:take(Table, First),
    [{_, Block, _}] = ets:take(Table, Key),
    make_room(First + 1, Last, Bytes - byte_size(Block), Table);
make_room(First, Last, Bytes, Table) ->
    true = ets:insert(Table, {?STATE, First, Last, Bytes}).
