-module(witness_log_recording_fold).
-moduledoc """
The entries of one process of a recording, from its sub-traces in two files.

In hand are one block of each file, and what an entry or an item of data that began in one sub-trace and ends in another
has had so far. Every sub-trace is checked to be the one that is expected: an index of other files does not lead to
entries of other processes.
""".

-export([fold/3]).

-export_type([source/0]).

-doc "Where entries come from, and what is needed to read them. `complete`: nothing may be missing.".
-type source() :: #{id := pos_integer(), full := boolean(), complete := boolean(),
                    calls := #{non_neg_integer() => mfa()}, atoms := witness_log_atoms:atoms(),
                    order := {witness_log_recording_file:file(), witness_log_recording_index:positions()},
                    data := {witness_log_recording_file:file(), witness_log_recording_index:positions()}}.

%% The sub-traces of the process in a file: bytes that were not read yet, where they come from, the number of the next
%% sub-trace, the positions of those to come, the bytes in them, and the block in hand.
-record(stream, {file :: witness_log_recording_file:file(),
                 id :: pos_integer(),
                 bytes = <<>> :: binary(),
                 number = 0 :: non_neg_integer(),
                 positions :: binary(),
                 left :: non_neg_integer(),
                 at = 0 :: non_neg_integer(),
                 block = none :: none | binary()}).

%% What is the same for all entries.
-type context() :: {Fun :: fun((dynamic(), Acc :: dynamic()) -> dynamic()), source()}.

-doc "Folds over the entries, with runs as one; up to the first that is not all there, where something may be missing.".
-spec fold(fun((witness_log_recording:run(), Acc) -> Acc), Acc, source()) ->
    {ok, Acc} | {error, witness_log_recording_file:error()}.
fold(Fun, Acc, #{id := Id, full := Full, order := Order, data := Data} = Source) ->
    entries(stream(Id, Order), stream(Id, Data), witness_log_recording_entry:reader(Full), Acc, {Fun, Source}).

stream(Id, {File, {_, Bytes, Positions}}) -> #stream{file = File, id = Id, positions = Positions, left = Bytes}.

-spec entries(#stream{}, #stream{}, witness_log_recording_entry:reader(), dynamic(), context()) -> dynamic().
entries(#stream{bytes = Bytes} = Order, Data, Reader, Acc, Context) ->
    case witness_log_recording_entry:next(Bytes, Reader) of
        {Entry, Rest, Reader1} -> entry(Entry, Order#stream{bytes = Rest}, Data, Reader1, Acc, Context);
        more ->
            case more(Order) of
                {ok, Order1} -> entries(Order1, Data, Reader, Acc, Context);
                none when Bytes =:= <<>> -> {ok, Acc};
                none -> missing(Order, ~"the last entry of a process is not all there", Acc, Context);
                {error, _} = Error -> Error
            end;
        {malformed, What} -> damaged(Order, What)
    end.

%% How much of it is data.
entry({content, N}, Order, Data, Reader, Acc, Context) -> contents(N, Order, Data, Reader, Acc, Context);
entry({result, Call, {value, Term}}, Order, Data, Reader, Acc, Context) ->
    called(Call, fun(MFA) -> {result, MFA, Term} end, Order, Data, Reader, Acc, Context);
entry({result, Call, data}, Order, Data, Reader, Acc, Context) ->
    with_item(fun(Term, Data1) -> called(Call, fun(MFA) -> {result, MFA, Term} end, Order, Data1, Reader, Acc, Context) end,
              Order, Data, Acc, Context);
entry({raise, Call}, Order, Data, Reader, Acc, Context) ->
    with_item(fun({Class, Reason}, Data1) ->
                      called(Call, fun(MFA) -> {raise, MFA, Class, Reason} end, Order, Data1, Reader, Acc, Context);
                 (_, Data1) -> damaged(Data1, ~"an exception is no pair")
              end, Order, Data, Acc, Context);
entry(exit, Order, Data, Reader, Acc, Context) ->
    with_item(fun(Reason, Data1) -> told({exit, Reason}, Order, Data1, Reader, Acc, Context) end, Order, Data, Acc, Context);
entry(sent, Order, Data, Reader, Acc, Context) ->
    with_item(fun({To, Message}, Data1) -> told({sent, To, Message}, Order, Data1, Reader, Acc, Context);
                 (_, Data1) -> damaged(Data1, ~"what was sent is no pair")
              end, Order, Data, Acc, Context);
entry(contents, Order, Data, Reader, Acc, Context) ->
    with_item(fun(Message, Data1) -> told({contents, Message}, Order, Data1, Reader, Acc, Context) end, Order, Data, Acc, Context);
entry(Entry, Order, Data, Reader, Acc, Context) -> told(Entry, Order, Data, Reader, Acc, Context).

told(Entry, Order, Data, Reader, Acc, {Fun, _} = Context) -> entries(Order, Data, Reader, Fun(Entry, Acc), Context).

called(Call, Make, Order, Data, Reader, Acc, {_, #{calls := Calls}} = Context) ->
    case Calls of
        #{Call := MFA} -> told(Make(MFA), Order, Data, Reader, Acc, Context);
        #{} -> damaged(Order, [~"no call has the number ", integer_to_binary(Call)])
    end.

contents(0, Order, Data, Reader, Acc, Context) -> entries(Order, Data, Reader, Acc, Context);
contents(N, Order, Data, Reader, Acc, {Fun, _} = Context) ->
    with_item(fun(Message, Data1) -> contents(N - 1, Order, Data1, Reader, Fun({content, Message}, Acc), Context) end,
              Order, Data, Acc, Context).

%% --- data ------------------------------------------------------------------------

%% The next item of the process, if it is there. What is in hand is a part of a block; it is copied, so that a term does
%% not keep the block.
with_item(Then, Order, Data, Acc, {_, #{atoms := Atoms}} = Context) ->
    case item(Data) of
        {ok, Bytes, Data1} ->
            case witness_log_recording_term:decode(binary:copy(Bytes), Atoms) of
                {ok, Term} -> Then(Term, Data1);
                {refused, What} -> damaged(Data1, What)
            end;
        none -> missing(Order, ~"the data of an entry is not there", Acc, Context);
        {malformed, What} -> damaged(Data, What);
        {error, _} = Error -> Error
    end.

item(#stream{bytes = Bytes, left = Left} = Data) ->
    case witness_log_recording_number:read(Bytes) of
        {Size, Rest} when Size =< byte_size(Rest) ->
            <<Item:Size/binary, Rest1/binary>> = Rest,
            {ok, Item, Data#stream{bytes = Rest1}};
        {Size, Rest} when Size =< byte_size(Rest) + Left -> gathered(Size - byte_size(Rest), [Rest], Data);
        {_, _} -> none;
        more ->
            case more(Data) of
                {ok, Data1} -> item(Data1);
                Other -> Other
            end;
        too_large -> {malformed, ~"a number of more than 64 bits"}
    end.

%% An item in several sub-traces. They are put together once.
gathered(Missing, Parts, Data) ->
    case more(Data#stream{bytes = <<>>}) of
        {ok, #stream{bytes = Bytes} = Data1} when byte_size(Bytes) < Missing ->
            gathered(Missing - byte_size(Bytes), [Bytes | Parts], Data1);
        {ok, #stream{bytes = Bytes} = Data1} ->
            <<Last:Missing/binary, Rest/binary>> = Bytes,
            {ok, iolist_to_binary(lists:reverse(Parts, [Last])), Data1#stream{bytes = Rest}};
        Other -> Other
    end.

%% --- sub-traces ------------------------------------------------------------------

%% With the bytes of the next sub-trace behind those in hand.
more(#stream{positions = Positions, at = At} = Stream) ->
    case witness_log_recording_index:position(Positions, At) of
        {Block, Inside, Rest} -> subtrace(Inside, loaded(Block, Stream), Stream#stream{positions = Rest});
        none -> none;
        malformed -> damaged(Stream, ~"the index is damaged")
    end.

loaded(At, #stream{at = At, block = Block}) when Block =/= none -> {ok, At, Block};
loaded(At, #stream{file = File}) ->
    case witness_log_recording_file:read(At, File) of
        {ok, Block, _} -> {ok, At, Block};
        {error, _} = Error -> Error;
        _ -> witness_log_recording_file:damage(At, {contents, ~"the index names a block that is not there"}, File)
    end.

subtrace(Inside, {ok, At, Block}, #stream{id = Id, number = Number, bytes = Left, left = Total} = Stream) ->
    Found = case Block of
        <<_:Inside/binary, Rest/binary>> -> witness_log_recording_index:subtrace(Rest);
        _ -> none
    end,
    case Found of
        {{Id, Number, Bytes}, _} when byte_size(Bytes) =< Total ->
            {ok, Stream#stream{bytes = joined(Left, Bytes), number = Number + 1, left = Total - byte_size(Bytes), at = At,
                               block = Block}};
        _ -> damaged(Stream#stream{at = At}, ~"the index names a part of another process")
    end;
subtrace(_, {error, _} = Error, _) -> Error.

joined(<<>>, Bytes) -> Bytes;
joined(Left, Bytes) -> <<Left/binary, Bytes/binary>>.

damaged(#stream{file = File, at = At}, What) -> witness_log_recording_file:damage(At, {contents, What}, File).

%% What was cut ends here. What is complete is damaged.
missing(_, _, Acc, {_, #{complete := false}}) -> {ok, Acc};
missing(Order, What, _, {_, #{complete := true}}) -> damaged(Order, What).
