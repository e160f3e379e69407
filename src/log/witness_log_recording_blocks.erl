-module(witness_log_recording_blocks).
-moduledoc """
Blocks of a recording that were read last, for cursors that are many: sub-traces of thousands of processes stand in one block, and
without this it would be read, and expanded, for each of them.

What is kept has a limit in bytes, whatever the size of the blocks; the block that was read first goes first. A cache is of the process
that has made it.
""".

-export([new/0, delete/1, read/3, kept/3]).

-export_type([cache/0]).

-doc "A cache.".
-type cache() :: {cache, ets:table()}.

%% Bytes that are kept, but for the last block, which is always there.
-define(LIMIT, 8_388_608).

%% Blocks by their keys, with what comes with them; keys by the numbers of blocks; and what there is.
-define(STATE, state).

-doc "An empty one.".
-spec new() -> cache().
new() ->
    Table = ets:new(?MODULE, [private]),
    ets:insert(Table, {?STATE, 0, 0, 0}),
    {cache, Table}.

-doc "It is not needed any more.".
-spec delete(cache()) -> ok.
delete({cache, Table}) ->
    true = ets:delete(Table),
    ok.

-doc "The block at an offset of a file, as `witness_log_recording_file:read/2` gives it.".
-spec read(non_neg_integer(), witness_log_recording_file:file(), none | cache()) ->
    {ok, binary(), Next :: non_neg_integer()} | eof | cut | {error, witness_log_recording_file:error()}.
read(At, File, Cache) -> kept({File, At}, fun() -> witness_log_recording_file:read(At, File) end, Cache).

-doc "What is kept under a key, or is made, and kept. Of a recording these are its blocks, and the pieces of its index.".
-spec kept(term(), fun(() -> {ok, binary(), Also :: term()} | Other), none | cache()) -> {ok, binary(), Also :: term()} | Other.
kept(_, Make, none) -> Make();
kept(Key, Make, {cache, Table}) ->
    case ets:lookup(Table, {block, Key}) of
        [{_, Block, Also}] -> {ok, Block, Also};
        [] ->
            case Make() of
                {ok, Block, Also} = Made ->
                    [{_, First, Last, Bytes}] = ets:lookup(Table, ?STATE),
                    ets:insert(Table, [{{block, Key}, Block, Also}, {Last, {block, Key}}]),
                    made_room(First, Last + 1, Bytes + byte_size(Block), Table),
                    Made;
                Other -> Other
            end
    end.

made_room(First, Last, Bytes, Table) when Bytes > ?LIMIT, First < Last - 1 ->
    [{_, Key}] = ets:take(Table, First),
    [{_, Block, _}] = ets:take(Table, Key),
    made_room(First + 1, Last, Bytes - byte_size(Block), Table);
made_room(First, Last, Bytes, Table) ->
    true = ets:insert(Table, {?STATE, First, Last, Bytes}).
