-module(witness_record_writer).
-moduledoc """
Writes what the recorder of this VM has gathered into the files of a folder (`docs/internals/record.md`).

The process takes blocks of bytes from the recorder (`m:witness_record_native`), compresses them and appends them to their
files. No process waits for it. Once a second it also takes what processes still have buffered, so that a VM that dies leaves a
recording up to about a second before.

Data is written before the entries that refer to it, and births before both. So the files of a VM that was killed refer to
nothing that is missing.

If a file cannot be written, the recording ends: nothing more is recorded, and what was written until then stays
readable. The system goes on.
""".

-behaviour(gen_server).

-export([start_link/3, finish/2, finish/3, write/4]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).

-export_type([options/0, summary/0, reason/0]).

-doc """
- `compress`: whether blocks are compressed (`true`);
- `native`: the module that has gathered the data (`witness_record_native`);
- `flush`: milliseconds after which what processes have buffered is written (1,000);
- `index`: bytes of entries up to which the index is made at the end (64 MiB). It takes a pass over them; the reader of a larger
  recording makes its index.
""".
-type options() :: #{compress => boolean(), native => module(), flush => pos_integer(), index => non_neg_integer()}.

-doc "What was written: for each file its bytes, the bytes before compression, and its blocks.".
-type summary() :: #{order := written(), data := written(), processes := written(), dir := file:filename_all()}.

-type written() :: #{bytes := non_neg_integer(), raw := non_neg_integer(), blocks := non_neg_integer()}.

-doc """
Why the recording ended early: the recorder's reason; a file that could not be written; or the end of the process that started
it.
""".
-type reason() :: {owner, term()} | {file, file:filename_all(), file:posix() | badarg | terminated} | term().

-type kind() :: order | data | processes.

%% Each refers only to those before it.
-define(KINDS, [processes, data, order]).
%% About how many bytes a block has before compression; what the recorder hands over at once is never divided.
-define(BLOCK_BYTES, 65_536).
%% Pieces that are taken at once, each of about as many bytes.
-define(MAX_PIECES, 16).
-define(FLUSH_MS, 1_000).
%% Milliseconds to wait when there was nothing to take.
-define(IDLE_MS, 10).
-define(MAX_INDEXED_BYTES, 67_108_864).

%% gathered: the bytes of the next block. next: its place in the file.
-record(stream, {name :: file:filename_all(),
                 device :: file:fd(),
                 gathered = [] :: iodata(),
                 size = 0 :: non_neg_integer(),
                 next :: non_neg_integer(),
                 raw = 0 :: non_neg_integer(),
                 blocks = 0 :: non_neg_integer()}).

-record(writer, {dir :: file:filename_all(),
                 id :: witness_log_recording_file:id(),
                 native :: module() | none,
                 full :: boolean(),
                 times :: boolean(),
                 contents :: boolean(),
                 rows :: witness_event_wrapper:table(),
                 compressor :: none | zlib:zstream(),
                 streams :: #{kind() => #stream{}},
                 index :: non_neg_integer(),
                 flush :: pos_integer(),
                 more = #{} :: map(),
                 ended = running :: running | {ended, reason()},
                 failed = false :: boolean()}).

-doc """
Starts a recording in a folder, which is created if it does not exist. `Header` is what the file `header` has besides what is
known here: release, system and time.
""".
-spec start_link(file:filename_all(), Header :: map(), options()) -> {ok, pid()} | {error, reason()}.
start_link(Dir, Header, Options) ->
    case gen_server:start_link(?MODULE, {Dir, Header, Options}, []) of
        {ok, Pid} -> {ok, Pid};
        {error, Reason} -> {error, Reason}
    end.

-doc """
Finishes the recording: writes what is left, the index, and the modules, each with its MD5 and whether it was woven. `ended`: the
recording had ended before, for this reason.
""".
-spec finish(pid(), [{module(), MD5 :: binary(), Woven :: boolean()}]) ->
    {ok, summary()} | {ended, reason(), summary()}.
finish(Pid, Modules) -> finish(Pid, Modules, #{}).

-doc "The same; `More` is what the file `modules` has besides.".
-spec finish(pid(), [{module(), MD5 :: binary(), Woven :: boolean()}], More :: map()) ->
    {ok, summary()} | {ended, reason(), summary()}.
finish(Pid, Modules, More) -> gen_server:call(Pid, {finish, Modules, More}, infinity).

-doc """
Writes a whole recording of parts that were gathered before, in the calling process. `modules` and `more` are as for `finish/3`;
`ended`: whether it was ended early. Births are written as they are, with their signatures.
""".
-spec write(file:filename_all(), Header :: map(), [{kind(), iodata()}],
            #{modules := [{module(), binary(), boolean()}], ended := running | {ended, reason()}, compress => boolean(),
              more => map()}) ->
    {ok, summary()} | {error, reason()}.
write(Dir, Header, Parts, #{modules := Modules, ended := Ended} = Options) ->
    maybe
        {ok, W} ?= open(Dir, Header, Options),
        Gathered = lists:foldl(fun gather/2, W#writer{ended = Ended, contents = false, native = none,
                                                           more = maps:get(more, Options, #{})}, Parts),
        {Result, #writer{failed = Failed, ended = Why}} = complete(Modules, Gathered),
        case {Failed, Result, Why} of
            {true, _, {ended, Reason}} -> {error, Reason};
            {false, {ok, Summary}, _} -> {ok, Summary};
            {false, {ended, _, Summary}, _} -> {ok, Summary}
        end
    end.

%% --- the process -----------------------------------------------------------------

-doc false.
init({Dir, Header, Options}) ->
    process_flag(trap_exit, true),
    %% Among a hundred thousand processes that want to run, this one would run once in a minute, and the budget would be exceeded
    %% before. Its work has to be done anyway.
    process_flag(priority, high),
    proc_lib:set_label(witness_record_writer),
    maybe
        {ok, #writer{flush = Flush} = W} ?= open(Dir, Header, Options),
        _ = erlang:send_after(Flush, self(), flush),
        self() ! take,
        {ok, W}
    else
        %% The caller is linked to this process, and gets the reason as a value.
        {error, Reason} -> {error, Reason}
    end.

open(Dir, Header, Options) ->
    Id = rand:bytes(8),
    maybe
        ok ?= make_folder(Dir),
        Times = case Header of #{options := #{times := true}} -> true; #{} -> false end,
        {ok, Streams} ?= create_files(Dir, Id, Times, [block(maps:merge(system_info(), Header), none)]),
        Compressor = case Options of #{compress := false} -> none; #{} -> witness_log_recording_file:compressor() end,
        Flush = maps:get(flush, Options, ?FLUSH_MS),
        Full = case Header of #{options := #{full_ids := true}} -> true; #{} -> false end,
        Contents = case Header of #{options := #{contents := true}} -> true; #{} -> false end,
        {ok, #writer{dir = Dir, id = Id, native = maps:get(native, Options, witness_record_native), full = Full,
                     times = Times, contents = Contents, rows = witness_record_names:rows(Header), compressor = Compressor,
                     streams = Streams,
                     index = maps:get(index, Options, ?MAX_INDEXED_BYTES), flush = Flush}}
    end.

%% If the recording cannot be started, its folder can be used for another one.
create_files(Dir, Id, Times, Header) ->
    maybe
        {ok, Streams} ?= streams(Dir, Id, Times, ?KINDS, #{}),
        ok ?= put_file(Dir, header, Id, Times, Header),
        {ok, Streams}
    else
        %% The file belongs to another recording.
        {error, {file, _, eexist}} = Error -> Error;
        Error ->
            _ = [file:delete(witness_log_recording_file:name(Dir, Kind), [raw]) || Kind <- ?KINDS],
            Error
    end.

system_info() ->
    #{otp => list_to_binary(erlang:system_info(otp_release)), erts => list_to_binary(erlang:system_info(version)),
      system => list_to_binary(string:trim(erlang:system_info(system_version))),
      node => node(), schedulers => erlang:system_info(schedulers_online),
      started => calendar:system_time_to_rfc3339(os:system_time(millisecond), [{unit, millisecond}, {offset, "Z"},
                                                                               {return, binary}])}.

make_folder(Dir) ->
    case file:make_dir(Dir) of
        ok -> name_error(Dir, file:change_mode(Dir, 8#700));
        {error, eexist} -> ok;
        Error -> name_error(Dir, Error)
    end.

name_error(_, ok) -> ok;
name_error(_, {ok, _} = Ok) -> Ok;
name_error(Name, {error, Reason}) -> {error, {file, Name, Reason}}.

streams(_, _, _, [], Streams) -> {ok, Streams};
streams(Dir, Id, Times, [Kind | Kinds], Streams) ->
    Name = witness_log_recording_file:name(Dir, Kind),
    Head = witness_log_recording_file:head(Kind, Id, Times),
    maybe
        {ok, Device} ?= create(Name),
        ok ?= name_error(Name, file:write(Device, Head)),
        streams(Dir, Id, Times, Kinds, Streams#{Kind => #stream{name = Name, device = Device, next = byte_size(Head)}})
    end.

%% No other account may ever read the messages of the program.
create(Name) ->
    maybe
        {ok, Device} ?= name_error(Name, file:open(Name, [write, exclusive, raw, binary])),
        ok ?= name_error(Name, file:change_mode(Name, 8#600)),
        {ok, Device}
    end.

%% A file that exists is complete.
put_file(Dir, Kind, Id, Times, Blocks) ->
    Name = witness_log_recording_file:name(Dir, Kind),
    Temporary = witness_log_recording_file:name(Dir, Kind) ++ ".new",
    maybe
        {ok, Device} ?= create(Temporary),
        Written = name_error(Name, file:write(Device, [witness_log_recording_file:head(Kind, Id, Times) | Blocks])),
        Closed = name_error(Name, file:close(Device)),
        ok ?= Written,
        ok ?= Closed,
        ok ?= name_error(Name, file:rename(Temporary, Name))
    else
        {error, {file, _, eexist}} = Error -> Error;
        Error ->
            _ = file:delete(Temporary, [raw]),
            Error
    end.

-doc false.
handle_call({finish, Modules, More}, _, W) ->
    {Reply, W1} = flush_and_complete(Modules, W#writer{more = More}),
    {stop, normal, Reply, W1}.

-doc false.
handle_cast(_, W) -> {noreply, W}.

-doc false.
handle_info(take, W) ->
    {Taken, W1} = take(W),
    _ = case Taken of
        0 -> erlang:send_after(?IDLE_MS, self(), take);
        _ -> self() ! take
    end,
    {noreply, W1};
handle_info(flush, #writer{native = Native, flush = Flush} = W) ->
    ok = Native:flush(),
    {_, W1} = take(W),
    _ = erlang:send_after(Flush, self(), flush),
    {noreply, flush(W1)};
handle_info(_, W) -> {noreply, W}.

-doc false.
terminate(_, #writer{streams = Streams}) when map_size(Streams) =:= 0 -> ok;
terminate(Reason, #writer{ended = Ended} = W) ->
    _ = flush_and_complete([], W#writer{ended = case Ended of running -> {ended, {owner, Reason}}; _ -> Ended end}),
    ok.

-doc false.
format_status(Status) ->
    %% Messages of the program must not get into a log.
    maps:map(fun(state, #writer{dir = Dir, ended = Ended}) -> {Dir, Ended};
                (_, Value) -> Value
             end, Status).

%% --- taking ----------------------------------------------------------------------

take(#writer{native = Native, ended = Ended} = W) ->
    {Parts, State} = Native:take(?MAX_PIECES),
    Bytes = lists:sum([iolist_size(Part) || {_, Part} <- Parts]),
    %% The recorder ended because it was told to stop: that is no early end of the recording.
    Ended1 = case {Ended, State} of {running, {ended, stopped}} -> running; {running, _} -> State; _ -> Ended end,
    Sorted = [Part || Kind <- ?KINDS, {K, _} = Part <- Parts, K =:= Kind],
    {Bytes, lists:foldl(fun gather/2, W#writer{ended = Ended1}, Sorted)}.

gather(_, #writer{failed = true} = W) -> W;
gather({processes, Part}, #writer{contents = true, rows = Rows} = W) ->
    append(processes, [Part | witness_record_names:signatures(Part, Rows)], W);
gather({Kind, Part}, W) -> append(Kind, Part, W).

append(Kind, Part, #writer{streams = Streams} = W) ->
    #{Kind := #stream{gathered = Gathered, size = Size} = Stream} = Streams,
    Grown = Size + iolist_size(Part),
    W1 = W#writer{streams = Streams#{Kind := Stream#stream{gathered = [Gathered | Part], size = Grown}}},
    %% What is in the other files is written first.
    case Grown >= ?BLOCK_BYTES of
        true when Kind =:= order -> flush(W1);
        true -> put_block(Kind, W1);
        false -> W1
    end.

%% Everything that was taken; what is referred to is written first.
flush(W) -> lists:foldl(fun put_block/2, W, ?KINDS).

put_block(_, #writer{failed = true} = W) -> W;
put_block(Kind, #writer{streams = Streams, compressor = Compressor} = W) ->
    case Streams of
        #{Kind := #stream{size = 0}} -> W;
        #{Kind := #stream{name = Name, device = Device, gathered = Gathered, size = Size, next = Next} = Stream} ->
            Block = witness_log_recording_file:block(Gathered, Compressor),
            case file:write(Device, Block) of
                ok ->
                    Stream1 = Stream#stream{gathered = [], size = 0, next = Next + iolist_size(Block),
                                            raw = Stream#stream.raw + Size, blocks = Stream#stream.blocks + 1},
                    W#writer{streams = Streams#{Kind := Stream1}};
                {error, Reason} -> fail({file, Name, Reason}, Stream, W)
            end
    end.

%% Nothing is written any more, since missing data would look as if it had never been. A partly written block is removed. If the
%% file cannot even be truncated, a reader treats it as one that was cut off.
fail(Reason, #stream{device = Device, next = Next}, #writer{native = Native, ended = Ended} = W) ->
    _ = file:position(Device, Next),
    _ = file:truncate(Device),
    ok = case Native of none -> ok; _ -> Native:stop() end,
    W#writer{failed = true, ended = case Ended of running -> {ended, Reason}; _ -> Ended end}.

%% --- the end ---------------------------------------------------------------------

flush_and_complete(Modules, #writer{native = Native} = W) ->
    ok = Native:flush(),
    complete(Modules, drain(W)).

complete(Modules, W) ->
    #writer{streams = Streams} = W1 = close(flush(W)),
    W2 = W1#writer{streams = #{}},
    Summary = (maps:map(fun(_, Stream) -> stream_summary(Stream) end, Streams))#{dir => W#writer.dir},
    Sizes = maps:map(fun(_, #stream{next = Next}) -> Next end, Streams),
    W3 = with_modules(Modules, Sizes, with_index(Sizes, W2)),
    case W3#writer.ended of
        running -> {{ok, Summary}, W3};
        {ended, Reason} -> {{ended, Reason, Summary}, W3}
    end.

drain(W) ->
    case take(W) of
        {0, W1} -> W1;
        {_, W1} -> drain(W1)
    end.

stream_summary(#stream{next = Next, raw = Raw, blocks = Blocks}) -> #{bytes => Next, raw => Raw, blocks => Blocks}.

close(#writer{streams = Streams} = W) ->
    maps:fold(fun(_, #stream{name = Name, device = Device} = Stream, W1) ->
        case file:close(Device) of
            ok -> W1;
            {error, Reason} -> fail({file, Name, Reason}, Stream, W1)
        end
    end, W, Streams).

%% Without an index the reader makes one, so this is not an error.
with_index(#{order := Size}, #writer{index = Index} = W) when Size > Index -> W;
with_index(_, #writer{failed = true} = W) -> W;
with_index(Sizes, #writer{dir = Dir, full = Full, times = Times} = W) ->
    maybe
        {ok, Order} ?= witness_log_recording_file:open(Dir, order),
        {ok, Data} ?= witness_log_recording_file:open(Dir, data),
        Built = witness_log_recording_index:build(Order, Data, Full),
        ok = witness_log_recording_file:close(Order),
        ok = witness_log_recording_file:close(Data),
        {ok, Index, []} ?= Built,
        _ = put_file(Dir, index, W#writer.id, Times, blocks(witness_log_recording_index:encode(Index, Sizes), W)),
        W
    else
        _ -> W
    end.

with_modules(Modules, Sizes, #writer{dir = Dir, id = Id, ended = Ended, more = More} = W) ->
    Names = blocks(names(), W),
    End = More#{ended => case Ended of running -> finished; {ended, Reason} -> Reason end, sizes => Sizes, modules => Modules,
                names => iolist_size(Names)},
    case put_file(Dir, modules, Id, W#writer.times, [block(End, W#writer.compressor) | Names]) of
        ok -> W;
        {error, Why} when Ended =:= running -> W#writer{ended = {ended, Why}};
        {error, _} -> W
    end.

block(Map, Compressor) -> witness_log_recording_file:block(term_to_binary(Map), Compressor).

blocks(Contents, #writer{compressor = Compressor}) ->
    [witness_log_recording_file:block(Bytes, Compressor) || Bytes <- Contents].

%% A small map is in the order in which the VM has met its keys. So a replay meets these names first, in the same order.
names() -> names(0, erlang:system_info(atom_count), [], 0).

%% This is the VM's own encoding of an atom by its place in the table.
names(Next, Count, Gathered, Size) when Next =:= Count; Size >= ?BLOCK_BYTES ->
    [lists:reverse(Gathered) | case Next of Count -> []; _ -> names(Next, Count, [], 0) end];
names(Next, Count, Gathered, Size) ->
    Name = atom_to_binary(binary_to_term(<<131, 75, Next:24>>)),
    Named = [witness_log_recording_number:leb(byte_size(Name)), Name],
    names(Next + 1, Count, [Named | Gathered], Size + byte_size(Name) + 2).
