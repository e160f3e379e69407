-module(witness_log_recording_cursor).
-moduledoc """
The entries of one process of a recording, one after the other, from its sub-traces in two files.

A cursor has one block of each file, and the part so far of an entry, or of an item of data, that continues in
another sub-trace. A cursor that is one of many has only its sub-traces; a cache keeps the blocks for all of them
(`m:witness_log_recording_blocks`).
Each sub-trace is checked to be the expected one: an index of other files does not lead to entries of other
processes.
""".

-export([new/1, next/1, time/1, count/1]).

-export_type([cursor/0, source/0]).

-doc """
The source of entries, and what is needed to read them. `complete`: nothing may be missing; `blocks`: the cache that the
cursor shares with others, or `none`; `ordered`: calls on shared memory are `{ordered, Begin, End, Entry}`.
""".
-type source() :: #{id := pos_integer(), full := boolean(), complete := boolean(), ordered := boolean(),
                    blocks := none | witness_log_recording_blocks:cache(),
                    calls := #{non_neg_integer() => mfa()}, atoms := witness_log_atoms:atoms(),
                    order := {witness_log_recording_file:file(), witness_log_recording_index:positions()},
                    data := {witness_log_recording_file:file(), witness_log_recording_index:positions()}}.

%% Limit of the bytes of a term, whatever the number of its pieces.
-define(MAX_TERM_BYTES, 536_870_912).

%% The sub-traces of the process in a file: bytes that were not read yet, their origin, the number of the next
%% sub-trace, the positions of later ones, the bytes in them, and the current block.
-record(stream, {file :: witness_log_recording_file:file(),
                 id :: pos_integer(),
                 blocks :: none | witness_log_recording_blocks:cache(),
                 bytes = <<>> :: binary(),
                 number = 0 :: non_neg_integer(),
                 positions :: binary(),
                 left :: non_neg_integer(),
                 at = 0 :: non_neg_integer(),
                 block = none :: none | binary()}).

%% contents: remaining items of a run of messages from outside. ordered: whether the places of calls in their order are wanted;
%% place: that of the next entry. time: that of the last entry.
-record(cursor, {order :: #stream{},
                 data :: #stream{},
                 reader :: witness_log_recording_entry:reader(),
                 contents = 0 :: non_neg_integer(),
                 ordered :: boolean(),
                 place = none :: none | {Begin :: non_neg_integer(), End :: non_neg_integer()},
                 time = undefined :: undefined | non_neg_integer(),
                 complete :: boolean(),
                 calls :: #{non_neg_integer() => mfa()},
                 atoms :: witness_log_atoms:atoms()}).

-doc "A place among the entries of a process.".
-opaque cursor() :: #cursor{}.

-doc "Before the first entry.".
-spec new(source()) -> cursor().
new(#{id := Id, full := Full, complete := Complete, blocks := Blocks, calls := Calls, atoms := Atoms} = Source) ->
    #{order := Order, data := Data, ordered := Ordered} = Source,
    #cursor{order = stream(Id, Blocks, Order), data = stream(Id, Blocks, Data),
            reader = witness_log_recording_entry:reader(Full), complete = Complete, calls = Calls, atoms = Atoms,
            ordered = Ordered}.

stream(Id, Blocks, {File, {_, Bytes, Positions}}) ->
    #stream{file = File, id = Id, blocks = Blocks, positions = Positions, left = Bytes}.

-doc "The next entry. `done`: there is none, or it is incomplete in a recording that was cut.".
-spec next(cursor()) ->
    {ok, witness_log_recording:run() | witness_log_recording:ordered(), cursor()} | done
    | {error, witness_log_recording_file:error()}.
next(Cursor) ->
    case read(Cursor) of
        {ok, Entry, #cursor{place = {Begin, End}} = Next} -> {ok, ordered(Begin, End, Entry), Next#cursor{place = none}};
        Other -> Other
    end.

-doc "The time of the last entry, in nanoseconds since the recording was opened. `undefined`: the recording has no times.".
-spec time(cursor()) -> undefined | non_neg_integer().
time(#cursor{time = Time}) -> Time.

-doc "How many entries one that `next/1` gives represents: each message and each timeout of a run is one.".
-spec count(witness_log_recording:run() | witness_log_recording:ordered()) -> pos_integer().
count({from, _, N}) -> N;
count({timeout, N}) -> N;
count(_) -> 1.

%% The recording may have ended, or the process, before the result was recorded.
ordered(Begin, End, Entry) when element(1, Entry) =:= result; element(1, Entry) =:= raise -> {ordered, Begin, End, Entry};
ordered(_, _, Entry) -> Entry.

read(#cursor{contents = N} = Cursor) when N > 0 ->
    with_item(fun(Message) -> {content, Message} end, Cursor#cursor{contents = N - 1});
read(#cursor{order = #stream{bytes = Bytes} = Order, reader = Reader} = Cursor) ->
    case witness_log_recording_entry:next(Bytes, Reader) of
        {Entry, Rest, Reader1} -> entry(Entry, Cursor#cursor{order = Order#stream{bytes = Rest}, reader = Reader1});
        more ->
            case append_subtrace(Order) of
                {ok, Order1} -> read(Cursor#cursor{order = Order1});
                none when Bytes =:= <<>> -> done;
                none -> end_or_damage(~"the last entry of a process is not all there", Cursor);
                {error, _} = Error -> Error
            end;
        {malformed, What} -> damage(Order, What)
    end.

entry({content, N}, Cursor) -> read(Cursor#cursor{contents = N});
entry({result, Call, {value, Term}}, Cursor) ->
    with_call(Call, fun(MFA) -> {ok, {result, MFA, Term}, Cursor} end, Cursor);
entry({result, Call, data}, Cursor) ->
    with_call(Call, fun(MFA) -> with_item(fun(Term) -> {result, MFA, Term} end, Cursor) end, Cursor);
entry({raise, Call}, Cursor) ->
    with_call(Call, fun(MFA) -> with_item(fun({Class, Reason}) -> {raise, MFA, Class, Reason};
                                             (_) -> malformed
                                          end, Cursor) end, Cursor);
entry({ordered, Begin, End}, #cursor{ordered = true} = Cursor) -> read(Cursor#cursor{place = {Begin, End}});
entry({ordered, _, _}, Cursor) -> read(Cursor);
entry({time, Time}, Cursor) -> read(Cursor#cursor{time = Time});
entry(exit, Cursor) -> with_item(fun(Reason) -> {exit, Reason} end, Cursor);
entry(sent, Cursor) -> with_item(fun({To, Message}) -> {sent, To, Message}; (_) -> malformed end, Cursor);
entry(contents, Cursor) -> with_item(fun(Message) -> {contents, Message} end, Cursor);
entry(Entry, Cursor) -> {ok, Entry, Cursor}.

with_call(Call, Then, #cursor{calls = Calls, order = Order}) ->
    case Calls of
        #{Call := MFA} -> Then(MFA);
        #{} -> damage(Order, [~"no call has the number ", integer_to_binary(Call)])
    end.

%% --- data ------------------------------------------------------------------------

%% The next item of the process, if it is there. The current bytes are a part of a block; they are copied, so that a term does
%% not keep the block in memory.
with_item(Make, #cursor{data = Data} = Cursor) ->
    case item(Data) of
        {ok, Bytes, Data1} -> make_entry(Make, binary:copy(Bytes), Cursor#cursor{data = Data1});
        none -> end_or_damage(~"the data of an entry is not there", Cursor);
        {malformed, What} -> damage(Data, What);
        {error, _} = Error -> Error
    end.

make_entry(Make, Bytes, #cursor{data = Data, atoms = Atoms} = Cursor) ->
    case witness_log_recording_term:decode(Bytes, Atoms) of
        {ok, Term} ->
            case Make(Term) of
                malformed -> damage(Data, ~"the data of an entry is no pair");
                Entry -> {ok, Entry, Cursor}
            end;
        {refused, What} -> damage(Data, What)
    end.

item(#stream{bytes = Bytes, left = Left} = Data) ->
    case witness_log_recording_number:read(Bytes) of
        {Size, Rest} when Size > ?MAX_TERM_BYTES, Size =< byte_size(Rest) + Left -> {malformed, ~"a term of more than 512 MiB"};
        {Size, Rest} when Size =< byte_size(Rest) ->
            <<Item:Size/binary, Rest1/binary>> = Rest,
            {ok, Item, Data#stream{bytes = Rest1}};
        {Size, Rest} when Size =< byte_size(Rest) + Left -> gather(Size - byte_size(Rest), [Rest], Data);
        {_, _} -> none;
        more ->
            case append_subtrace(Data) of
                {ok, Data1} -> item(Data1);
                Other -> Other
            end;
        too_large -> {malformed, ~"a number of more than 64 bits"}
    end.

%% An item in several sub-traces. They are joined once.
gather(Missing, Parts, Data) ->
    case append_subtrace(Data#stream{bytes = <<>>}) of
        {ok, #stream{bytes = Bytes} = Data1} when byte_size(Bytes) < Missing ->
            gather(Missing - byte_size(Bytes), [Bytes | Parts], Data1);
        {ok, #stream{bytes = Bytes} = Data1} ->
            <<Last:Missing/binary, Rest/binary>> = Bytes,
            {ok, iolist_to_binary(lists:reverse(Parts, [Last])), Data1#stream{bytes = Rest}};
        Other -> Other
    end.

%% --- sub-traces ------------------------------------------------------------------

%% Appends the bytes of the next sub-trace to the current ones.
append_subtrace(#stream{positions = Positions, at = At} = Stream) ->
    case witness_log_recording_index:position(Positions, At) of
        {Block, Inside, Rest} -> subtrace(Inside, load_block(Block, Stream), Stream#stream{positions = Rest});
        none -> none;
        malformed -> damage(Stream, ~"the index is damaged")
    end.

load_block(At, #stream{at = At, block = Block}) when Block =/= none -> {ok, At, Block};
load_block(At, #stream{file = File, blocks = Blocks}) ->
    case witness_log_recording_blocks:read(At, File, Blocks) of
        {ok, Block, _} -> {ok, At, Block};
        {error, _} = Error -> Error;
        _ -> witness_log_recording_file:damage(At, {contents, ~"the index names a block that is not there"}, File)
    end.

subtrace(Inside, {ok, At, Block}, #stream{id = Id, blocks = Blocks, number = Number, bytes = Left, left = Total} = Stream) ->
    Found = case Block of
        <<_:Inside/binary, Rest/binary>> -> witness_log_recording_index:subtrace(Rest);
        _ -> none
    end,
    case Found of
        {{Id, Number, Bytes}, _} when byte_size(Bytes) =< Total ->
            Stream1 = Stream#stream{number = Number + 1, left = Total - byte_size(Bytes), at = At},
            {ok, case Blocks of
                none -> Stream1#stream{bytes = join(Left, Bytes), block = Block};
                _ -> Stream1#stream{bytes = binary:copy(join(Left, Bytes))}
            end};
        _ -> damage(Stream#stream{at = At}, ~"the index names a part of another process")
    end;
subtrace(_, {error, _} = Error, _) -> Error.

join(<<>>, Bytes) -> Bytes;
join(Left, Bytes) -> <<Left/binary, Bytes/binary>>.

damage(#stream{file = File, at = At}, What) -> witness_log_recording_file:damage(At, {contents, What}, File).

%% A recording that was cut ends here. A complete one is damaged.
end_or_damage(_, #cursor{complete = false}) -> done;
end_or_damage(What, #cursor{complete = true, order = Order}) -> damage(Order, What).
