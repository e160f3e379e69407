-module(witness_log_recording_index).
-moduledoc """
For each process: where its sub-traces are in the files `order` and `data`, how many entries it has, and how many
messages it took of which process (`docs/internals/record.md`).

An index is made in one pass over each of the two files, by the writer when a recording ends,
or by a reader that finds none. The sub-traces of a process may be in any order; the index has those from the first
one up to the first that is missing. In memory an index is compressed bytes, a few for each process. A lookup bisects,
and then searches the piece that has the process.
""".

-export([empty/0, build/3, encode/2, load/1, lookup/3, ids/1, position/2, subtrace/1]).

-export_type([index/0, process/0, sizes/0, positions/0, subtrace/0]).

-doc """
Pieces of records, compressed, one after the other; and for each piece the id of its first record, and its offset. Two
binaries, so that processes share them, whatever the number of pieces.
""".
-opaque index() :: {Processes :: non_neg_integer(), Pieces :: binary(), Places :: binary()}.

-doc """
A process: the number of its entries; its sub-traces in both files, with their bytes in total; how many messages it took of
which process.
""".
-type process() :: #{entries := non_neg_integer(), order := positions(), data := positions(),
                     demand := #{pos_integer() => pos_integer()}}.

-doc "How many sub-traces there are, the bytes in them, and where they are, for `position/2`.".
-type positions() :: {Count :: non_neg_integer(), Bytes :: non_neg_integer(), binary()}.

-doc "The sizes of the files that an index is for.".
-type sizes() :: #{order := non_neg_integer(), data := non_neg_integer(), processes := non_neg_integer()}.

-doc "A part of the bytes of a process: its number (0 is the first), and the bytes.".
-type subtrace() :: {Id :: pos_integer(), Number :: non_neg_integer(), binary()}.

-type file() :: witness_log_recording_file:file().

%% Approximate bytes of a block.
-define(BLOCK_BYTES, 65_536).

%% Approximate bytes of a piece in memory, before it is compressed. Each lookup searches one piece.
-define(PIECE_BYTES, 2_048).

%% The sub-traces of a process in a file, so far: the number of the next one, later ones that wait for it, the positions
%% of the others, the offset of the last one's block, and their bytes.
-record(trace, {next = 0 :: non_neg_integer(),
                waiting = #{} :: #{non_neg_integer() => {Block :: non_neg_integer(), Inside :: non_neg_integer(), term()}},
                positions = [] :: [binary()],     % in reverse
                block = 0 :: non_neg_integer(),
                bytes = 0 :: non_neg_integer()}).

%% Limits for a forged file: repeated bytes compress to almost nothing, so it could take memory without bound. For each byte of the
%% file, in addition to what any file may have: sub-traces, and pairs of a process and a sender of its messages. Then: bytes of
%% sub-traces that wait for an earlier one, and senders of one process.
-define(SUBTRACES_PER_BYTE, 4).
-define(FREE_SUBTRACES, 100_000).
-define(PAIRS_PER_BYTE, 8).
-define(FREE_PAIRS, 4_000_000).
-define(MAX_WAITING_BYTES, 268_435_456).
-define(MAX_SENDERS, 16_777_216).

%% The entries of a process, so far.
-record(entries, {left = <<>> :: binary(),
                  reader :: witness_log_recording_entry:reader(),
                  count = 0 :: non_neg_integer()}).

%% --- making ----------------------------------------------------------------------

-doc "An index without processes.".
-spec empty() -> index().
empty() -> {0, <<>>, <<>>}.

-doc "An index of the whole blocks of two files. `Full`: ids take eight bytes. `cut`: further bytes follow them.".
-spec build(file(), file(), Full :: boolean()) ->
    {ok, index(), Cut :: [order | data]} | {error, witness_log_recording_file:error()}.
build(Order, Data, Full) ->
    %% On the heap, garbage collections would copy the data of some hundred thousand processes again and again.
    Tables = [Orders, Datas, Demand] = [ets:new(?MODULE, [private, Type]) || Type <- [set, set, ordered_set]],
    Z = witness_log_recording_file:compressor(),
    try
        Fresh = #entries{reader = witness_log_recording_entry:reader(Full)},
        maybe
            Pairs = ?FREE_PAIRS + ?PAIRS_PER_BYTE * witness_log_recording_file:size(Order),
            {OrderEnd, _, _} ?= scan(Order, Orders, fun(Id, Bytes, none) -> read_entries(Id, Bytes, Fresh, Demand, Pairs);
                                                       (Id, Bytes, Entries) -> read_entries(Id, Bytes, Entries, Demand, Pairs) end),
            {DataEnd, _, _} ?= scan(Data, Datas, fun(_, _, _) -> none end),
            Ids = lists:umerge(ids_in(Orders), ids_in(Datas)),
            Pieces = make_pieces(Ids, fun(Id) -> record(Id, trace_of(Id, Orders), trace_of(Id, Datas), Demand) end, none, Z),
            Cut = [order || OrderEnd =:= cut] ++ [data || DataEnd =:= cut],
            {ok, pack(length(Ids), Pieces), Cut}
        end
    after
        zlib:close(Z),
        lists:foreach(fun ets:delete/1, Tables)
    end.

%% `Piece': the first id of the current piece, and its bytes.
make_pieces([Id | Ids], Record, none, Z) -> make_pieces(Ids, Record, {Id, Record(Id)}, Z);
make_pieces([Id | Ids], Record, {First, Bytes}, Z) when byte_size(Bytes) < ?PIECE_BYTES ->
    make_pieces(Ids, Record, {First, <<Bytes/binary, (Record(Id))/binary>>}, Z);
make_pieces([], _, none, _) -> [];
make_pieces(Ids, Record, Piece, Z) -> [compress(Piece, Z) | make_pieces(Ids, Record, none, Z)].

compress({First, Bytes}, Z) -> {First, witness_log_recording_file:compress(Bytes, Z)}.

pack(Processes, Pieces) ->
    {Places, _} = lists:mapfoldl(fun({First, Bytes}, At) -> {<<First:64, At:64>>, At + byte_size(Bytes)} end, 0, Pieces),
    {Processes, iolist_to_binary([Bytes || {_, Bytes} <- Pieces]), iolist_to_binary(Places)}.

%% The pieces in order of their numbers; the first one has 0.
pieces(Index) -> [piece(N, Index) || N <- lists:seq(0, count(Index) - 1)].

count({_, _, Places}) -> byte_size(Places) div 16.

piece(N, {_, Pieces, Places}) ->
    <<_:N/binary-unit:128, _:64, At:64, Rest/binary>> = Places,
    End = case Rest of
        <<_:64, Next:64, _/binary>> -> Next;
        <<>> -> byte_size(Pieces)
    end,
    zlib:uncompress(binary:part(Pieces, At, End - At)).

ids_in(Traces) -> lists:sort(ets:select(Traces, [{{'$1', '_', '_'}, [], ['$1']}])).

trace_of(Id, Traces) ->
    case ets:lookup(Traces, Id) of
        [{_, Trace, State}] -> {Trace, State};
        [] -> {#trace{}, none}
    end.

scan(File, Traces, Step) ->
    %% Limits: sub-traces, and bytes that wait.
    Room = {?FREE_SUBTRACES + ?SUBTRACES_PER_BYTE * witness_log_recording_file:size(File), ?MAX_WAITING_BYTES},
    witness_log_recording_file:fold(fun(At, Block, Left) -> scan_block(Block, 0, At, Traces, Step, File, Left) end, Room,
                                    witness_log_recording_file:first_offset(), File).

scan_block(<<>>, _, _, _, _, _, Room) -> {ok, Room};
scan_block(_, _, At, _, _, File, {Left, Waiting}) when Left =:= 0; Waiting < 0 ->
    witness_log_recording_file:damage(At, {contents, ~"more parts of processes than a file of this size can hold"}, File);
scan_block(Bytes, Inside, At, Traces, Step, File, {Left, Waiting}) ->
    case subtrace(Bytes) of
        {{Id, Number, Contents}, Rest} ->
            {Trace, State} = trace_of(Id, Traces),
            case add_subtrace(Id, Number, {At, Inside, Contents}, Trace, State, Step) of
                {malformed, What} -> witness_log_recording_file:damage(At, {contents, What}, File);
                {Trace1, State1} ->
                    true = ets:insert(Traces, {Id, Trace1, State1}),
                    %% A sub-trace in its turn may release later ones that have waited for it.
                    Waiting1 = case Trace1#trace.bytes - Trace#trace.bytes of
                        0 -> Waiting - byte_size(Contents);
                        Added -> Waiting + Added - byte_size(Contents)
                    end,
                    scan_block(Rest, Inside + byte_size(Bytes) - byte_size(Rest), At, Traces, Step, File, {Left - 1, Waiting1})
            end;
        {malformed, What} -> witness_log_recording_file:damage(At, {contents, What}, File)
    end.

add_subtrace(Id, Number, {At, Inside, Contents}, #trace{next = Number, waiting = Waiting} = Trace, State, Step) ->
    case Step(Id, Contents, State) of
        {malformed, _} = Malformed -> Malformed;
        State1 ->
            Moved = witness_log_recording_number:leb(witness_log_recording_number:zigzag(At - Trace#trace.block)),
            Position = <<Moved/binary, (witness_log_recording_number:leb(Inside))/binary>>,
            Trace1 = Trace#trace{next = Number + 1, positions = join(Position, Trace#trace.positions), block = At,
                                 bytes = Trace#trace.bytes + byte_size(Contents)},
            case maps:take(Number + 1, Waiting) of
                {Next, Waiting1} -> add_subtrace(Id, Number + 1, Next, Trace1#trace{waiting = Waiting1}, State1, Step);
                error -> {Trace1, State1}
            end
    end;
add_subtrace(_, Number, Position, #trace{next = Next, waiting = Waiting} = Trace, State, _)
  when Number > Next, not is_map_key(Number, Waiting) ->
    {Trace#trace{waiting = Waiting#{Number => copy(Position)}}, State};
add_subtrace(_, _, _, _, _, _) ->
    {malformed, ~"two parts of a process have the same number"}.

%% Each binary in the list is larger than the one before it, so there are few, and each byte is copied a few times.
join(Last, [Before | Pieces]) when byte_size(Before) =< byte_size(Last) ->
    join(iolist_to_binary([Before, Last]), Pieces);
join(Last, Pieces) ->
    [Last | Pieces].

%% It may wait for long, and must not keep its block in memory.
copy({At, Inside, Contents}) -> {At, Inside, binary:copy(Contents)}.

%% Message counts by sender are in a separate table: a process may have many senders.
read_entries(Id, Bytes, #entries{left = Left} = Entries, Demand, Pairs) ->
    case read(case Left of <<>> -> Bytes; _ -> <<Left/binary, Bytes/binary>> end, Entries, #{}, Pairs) of
        {malformed, _} = Malformed -> Malformed;
        {Entries1, Taken} ->
            _ = [ets:update_counter(Demand, {Id, Sender}, N, {{Id, Sender}, 0}) || Sender := N <- Taken],
            case ets:info(Demand, size) > Pairs of
                true -> too_many();
                false -> Entries1
            end
    end.

too_many() -> {malformed, ~"more senders than a file of this size can name"}.

read(_, _, Taken, Pairs) when map_size(Taken) > Pairs -> too_many();
read(Bytes, #entries{reader = Reader, count = Count} = Entries, Taken, Pairs) ->
    case witness_log_recording_entry:next(Bytes, Reader) of
        {Entry, Rest, Reader1} ->
            Taken1 = case Entry of
                {from, Id, N} -> Taken#{Id => maps:get(Id, Taken, 0) + N};
                _ -> Taken
            end,
            Counted = Count + witness_log_recording_entry:count(Entry),
            read(Rest, Entries#entries{reader = Reader1, count = Counted}, Taken1, Pairs);
        more -> {Entries#entries{left = binary:copy(Bytes)}, Taken};
        {malformed, _} = Malformed -> Malformed
    end.

-doc "The first sub-trace in the bytes.".
-spec subtrace(binary()) -> {subtrace(), Rest :: binary()} | {malformed, unicode:chardata()}.
subtrace(Bytes) ->
    maybe
        {Id, Rest} ?= witness_log_recording_number:read(Bytes),
        true ?= Id > 0,
        {Number, Rest1} ?= witness_log_recording_number:read(Rest),
        {Size, Rest2} ?= witness_log_recording_number:read(Rest1),
        <<Contents:Size/binary, Rest3/binary>> ?= Rest2,
        {{Id, Number, Contents}, Rest3}
    else
        _ -> {malformed, ~"a part of a process is damaged"}
    end.

%% --- as bytes --------------------------------------------------------------------

record(Id, {Order, Entries}, {Data, _}, Demand) ->
    Count = case Entries of #entries{count = C} -> C; none -> 0 end,
    Senders = ets:select(Demand, [{{{Id, '$1'}, '$2'}, [], [{{'$1', '$2'}}]}]),
    Record = iolist_to_binary([leb(Id), leb(Count), trace(Order), trace(Data),
                               leb(length(Senders)), demand(Senders, 0)]),
    <<(leb(byte_size(Record)))/binary, Record/binary>>.

leb(N) -> witness_log_recording_number:leb(N).

trace(#trace{next = Count, bytes = Bytes, positions = Pieces}) ->
    Positions = lists:reverse(Pieces),
    [leb(Count), leb(Bytes), leb(iolist_size(Positions)), Positions].

demand([{Sender, Count} | Senders], Before) -> [leb(Sender - Before), leb(Count) | demand(Senders, Sender)];
demand([], _) -> [].

-doc "The contents of the blocks of the file `index`.".
-spec encode(index(), sizes()) -> [binary(), ...].
encode({Processes, _, _} = Index, #{order := Order, data := Data, processes := Births}) ->
    [<<Order:64/little, Data:64/little, Births:64/little, Processes:64/little>>
     | blocks(pieces(Index), <<>>)].

blocks([Piece | Pieces], Block) when Block =:= <<>>; byte_size(Block) + byte_size(Piece) =< ?BLOCK_BYTES ->
    blocks(Pieces, <<Block/binary, Piece/binary>>);
blocks([], <<>>) -> [];
blocks(Pieces, Block) -> [Block | blocks(Pieces, <<>>)].

-doc "The index in a file. `cut`: it is incomplete.".
-spec load(file()) -> {ok, index(), sizes()} | cut | {error, witness_log_recording_file:error()}.
load(File) ->
    Z = witness_log_recording_file:compressor(),
    Loaded = try
        witness_log_recording_file:fold(fun(At, Block, Before) -> block(At, Block, Before, Z, File) end, none,
                                        witness_log_recording_file:first_offset(), File)
    after
        zlib:close(Z)
    end,
    case Loaded of
        {ok, {Sizes, Processes, Processes, _, Pieces}, _} ->
            {ok, pack(Processes, lists:reverse(Pieces)), Sizes};
        {ok, {_, Processes, Count, _, _}, End} when Count > Processes ->
            witness_log_recording_file:damage(End, {contents, ~"the index has too many processes"}, File);
        {error, _} = Error -> Error;
        _ -> cut
    end.

block(_, <<Order:64/little, Data:64/little, Births:64/little, Processes:64/little>>, none, _, _) ->
    {ok, {#{order => Order, data => Data, processes => Births}, Processes, 0, 0, []}};
block(At, _, none, _, File) ->
    witness_log_recording_file:damage(At, {contents, ~"an index begins with sizes"}, File);
block(At, Block, {Sizes, Processes, Count, Last, Pieces}, Z, File) ->
    case check_pieces(Block, Block, none, Count, Last, []) of
        {New, Count1, Last1} -> {ok, {Sizes, Processes, Count1, Last1, [compress(Piece, Z) || Piece <- New] ++ Pieces}};
        malformed -> witness_log_recording_file:damage(At, {contents, ~"the index is damaged"}, File)
    end.

%% Records are ordered by id. A piece, which begins with the record of `First', is put before the others.
check_pieces(<<>>, Piece, First, Count, Last, Pieces) when First =/= none -> {[{First, Piece} | Pieces], Count, Last};
check_pieces(Block, Piece, First, Count, Last, Pieces) when First =/= none, byte_size(Piece) - byte_size(Block) >= ?PIECE_BYTES ->
    Whole = binary:part(Piece, 0, byte_size(Piece) - byte_size(Block)),
    check_pieces(Block, Block, none, Count, Last, [{First, Whole} | Pieces]);
check_pieces(Block, Piece, First, Count, Last, Pieces) ->
    maybe
        {Size, Rest} ?= witness_log_recording_number:read(Block),
        <<Record:Size/binary, Rest1/binary>> ?= Rest,
        {Id, _} ?= witness_log_recording_number:read(Record),
        true ?= Id > Last,
        check_pieces(Rest1, Piece, case First of none -> Id; _ -> First end, Count + 1, Id, Pieces)
    else
        _ -> malformed
    end.

%% --- looking up ------------------------------------------------------------------

-doc "The ids of the processes that have entries, in order.".
-spec ids(index()) -> [pos_integer()].
ids(Index) -> lists:append([ids_of(Piece) || Piece <- pieces(Index)]).

ids_of(<<>>) -> [];
ids_of(Piece) ->
    {Size, Rest} = witness_log_recording_number:read(Piece),
    <<Record:Size/binary, Rest1/binary>> = Rest,
    {Id, _} = witness_log_recording_number:read(Record),
    [Id | ids_of(Rest1)].

-doc "The data of a process. `none`: it has no entries. A caller with many lookups passes a cache.".
-spec lookup(pos_integer(), index(), none | witness_log_recording_blocks:cache()) -> {ok, process()} | none | malformed.
lookup(Id, {_, _, Places} = Index, Cache) ->
    case bisect(Id, Places, -1, count(Index) - 1) of
        -1 -> none;
        N ->
            {ok, Bytes, _} = witness_log_recording_blocks:cached({piece, N}, fun() -> {ok, piece(N, Index), none} end, Cache),
            find_record(Id, Bytes)
    end.

%% The last piece with a first id that is not above; it is one of those in (Low, High], or none (-1).
bisect(_, _, Same, Same) -> Same;
bisect(Id, Places, Low, High) ->
    Middle = (Low + High + 1) div 2,
    <<_:Middle/binary-unit:128, First:64, _/binary>> = Places,
    case First =< Id of
        true -> bisect(Id, Places, Middle, High);
        false -> bisect(Id, Places, Low, Middle - 1)
    end.

find_record(_, <<>>) -> none;
find_record(Id, Piece) ->
    {Size, Rest} = witness_log_recording_number:read(Piece),
    <<Record:Size/binary, Rest1/binary>> = Rest,
    case witness_log_recording_number:read(Record) of
        {Id, Fields} -> process(Fields);
        {Other, _} when Other < Id -> find_record(Id, Rest1);
        _ -> none
    end.

process(Fields) ->
    maybe
        {Entries, Rest} ?= witness_log_recording_number:read(Fields),
        {ok, Order, Rest1} ?= positions(Rest),
        {ok, Data, Rest2} ?= positions(Rest1),
        {Senders, Rest3} ?= witness_log_recording_number:read(Rest2),
        true ?= Senders =< ?MAX_SENDERS,
        {ok, Demand} ?= demand(Senders, Rest3, 0, #{}),
        {ok, #{entries => Entries, order => Order, data => Data, demand => Demand}}
    else
        _ -> malformed
    end.

positions(Bytes) ->
    maybe
        {Count, Rest} ?= witness_log_recording_number:read(Bytes),
        {Total, Rest1} ?= witness_log_recording_number:read(Rest),
        {Size, Rest2} ?= witness_log_recording_number:read(Rest1),
        <<Positions:Size/binary, Rest3/binary>> ?= Rest2,
        {ok, {Count, Total, Positions}, Rest3}
    else
        _ -> malformed
    end.

demand(0, <<>>, _, Demand) -> {ok, Demand};
demand(Left, Bytes, Before, Demand) when Left > 0 ->
    maybe
        {Step, Rest} ?= witness_log_recording_number:read(Bytes),
        {Count, Rest1} ?= witness_log_recording_number:read(Rest),
        true ?= Step > 0 andalso Count > 0,
        demand(Left - 1, Rest1, Before + Step, Demand#{Before + Step => Count})
    else
        _ -> malformed
    end;
demand(_, _, _, _) -> malformed.

-doc "The next position: the offset of the block, and that of the sub-trace in it. `Before`: the block of the previous one.".
-spec position(binary(), Before :: non_neg_integer()) ->
    {Block :: non_neg_integer(), Inside :: non_neg_integer(), Rest :: binary()} | none | malformed.
position(<<>>, _) -> none;
position(Positions, Before) ->
    maybe
        {Moved, Rest} ?= witness_log_recording_number:read(Positions),
        {Inside, Rest1} ?= witness_log_recording_number:read(Rest),
        Block = Before + witness_log_recording_number:unzigzag(Moved),
        true ?= Block >= 0,
        {Block, Inside, Rest1}
    else
        _ -> malformed
    end.
