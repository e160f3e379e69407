-module(witness_log_recording_entry).
-moduledoc """
The entries of a process in the file `order`, as bytes (`docs/internals/record.md`).

Entries are read one after the other from the bytes of a process, in any pieces: if an entry is incomplete,
`next/2` asks for more. The data of an entry in the file `data` are not part of its bytes; the entry says how many terms they
are.
""".

-export([encode/1, encode/2, reader/1, next/2, count/1]).

-export_type([entry/0, reader/0]).

-doc """
An entry of a process. "Data" means the next term of the process in the file `data`.

- `{from, Id, N}`: it took N messages, one after the other, from this process;
- `{content, N}`: N messages from outside; their contents are data;
- `{timeout, N}`: the `after` of a `receive` was taken N times in a row;
- `{spawn, Id}`: it spawned this process;
- `{result, Call, Term}`: what a call of this number returned; `{raise, Call}`: it raised, data is `{Class, Reason}`;
- `exit`: it ended, data is the reason;
- `{named, Id}`: it sent a message to a name, and this process (0: none that is recorded) received it;
- `{hash, Hash}`: the hash of the message that was taken last;
- `waited`: it was waiting in a `receive` when it was ended: its end follows;
- `{ordered, Begin, End}`: the place of the next entry, a result or an exception, in the order of the calls on shared memory;
- `{time, Nanoseconds}`: the time of the entries that follow, up to the next time: since the recording was opened;
- `sent`: it sent a message, data is `{To, Message}`; `contents`: data is the message that was taken last.
""".
-type entry() :: {from, Id :: pos_integer(), N :: pos_integer()}
               | {content | timeout, N :: pos_integer()}
               | {spawn, Id :: pos_integer()}
               | {result, Call :: non_neg_integer(), {value, term()} | data}
               | {raise, Call :: non_neg_integer()}
               | exit
               | {named, Id :: non_neg_integer()}
               | {hash, <<_:64>>}
               | sent
               | contents
               | waited
               | {ordered, Begin :: non_neg_integer(), End :: non_neg_integer()}
               | {time, non_neg_integer()}.

-doc "What the next entry depends on.".
-opaque reader() :: {Full :: boolean(), Last :: none | pos_integer()}.

-define(FROM, 0).
-define(AGAIN, 1).
-define(CONTENT, 2).
-define(TIMEOUT, 3).
-define(SPAWN, 4).
-define(RESULT, 5).
-define(RAISE, 6).
-define(MARK, 7).

%% --- writing ---------------------------------------------------------------------

-doc "An entry as bytes, with small ids.".
-spec encode(entry() | {again, pos_integer()}) -> binary().
encode(Entry) -> encode(Entry, false).

-doc "An entry as bytes. `again`: more messages of the sender that was named last. `Full`: ids take eight bytes.".
-spec encode(entry() | {again, pos_integer()}, Full :: boolean()) -> binary().
encode({from, Id, 1}, Full) -> encode_id(?FROM, Id, Full);
encode({from, Id, N}, Full) -> <<(encode_id(?FROM, Id, Full))/binary, (encode_value(?AGAIN, N - 1))/binary>>;
encode({again, N}, _) -> encode_value(?AGAIN, N);
encode({content, N}, _) -> encode_value(?CONTENT, N);
encode({timeout, N}, _) -> encode_value(?TIMEOUT, N);
encode({spawn, Id}, Full) -> encode_id(?SPAWN, Id, Full);
encode({result, Call, Term}, _) -> <<(encode_value(?RESULT, Call))/binary, (encode_result(Term))/binary>>;
encode({raise, Call}, _) -> encode_value(?RAISE, Call);
encode(exit, _) -> encode_value(?MARK, 0);
encode({named, Id}, false) -> <<(encode_value(?MARK, 1))/binary, (leb(Id))/binary>>;
encode({named, Id}, true) -> <<(encode_value(?MARK, 1))/binary, Id:64/little>>;
encode({hash, <<Hash:8/binary>>}, _) -> <<(encode_value(?MARK, 2))/binary, Hash/binary>>;
encode(sent, _) -> encode_value(?MARK, 3);
encode(contents, _) -> encode_value(?MARK, 4);
encode(waited, _) -> encode_value(?MARK, 5);
encode({ordered, Begin, End}, _) -> <<(encode_value(?MARK, 6))/binary, (leb(Begin))/binary, (leb(End - Begin))/binary>>;
encode({time, Time}, _) -> <<(encode_value(?MARK, 7))/binary, (leb(Time))/binary>>.

encode_id(Kind, Id, false) -> encode_value(Kind, Id);
encode_id(Kind, Id, true) -> <<Kind:3, 0:5, Id:64/little>>.

encode_value(Kind, Value) when Value < 31 -> <<Kind:3, Value:5>>;
encode_value(Kind, Value) -> <<Kind:3, 31:5, (leb(Value - 31))/binary>>.

leb(N) -> witness_log_recording_number:leb(N).

encode_result(data) -> <<0>>;
encode_result({value, I}) when is_integer(I) -> <<1, (leb(witness_log_recording_number:zigzag(I)))/binary>>;
encode_result({value, true}) -> <<2>>;
encode_result({value, false}) -> <<3>>;
encode_result({value, undefined}) -> <<4>>;
encode_result({value, ok}) -> <<5>>;
encode_result({value, []}) -> <<6>>;
encode_result({value, error}) -> <<7>>;
encode_result({value, infinity}) -> <<8>>;
encode_result({value, none}) -> <<9>>.

%% --- reading ---------------------------------------------------------------------

-doc "A reader at the first entry of a process. `Full`: the ids of this recording take eight bytes.".
-spec reader(Full :: boolean()) -> reader().
reader(Full) -> {Full, none}.

-doc "The first entry in the bytes, and the rest. `more`: the bytes end within it.".
-spec next(binary(), reader()) -> {entry(), Rest :: binary(), reader()} | more | {malformed, unicode:chardata()}.
next(<<Kind:3, 31:5, Rest/binary>>, Reader) ->
    case witness_log_recording_number:read(Rest) of
        {Value, Rest1} -> entry(Kind, Value + 31, Rest1, Reader);
        more -> more;
        too_large -> malformed(~"a number of more than 64 bits")
    end;
next(<<Kind:3, Value:5, Rest/binary>>, Reader) -> entry(Kind, Value, Rest, Reader);
next(<<>>, _) -> more.

entry(Kind, 0, Rest, {true, _} = Reader) when Kind =:= ?FROM; Kind =:= ?SPAWN ->
    case Rest of
        <<Id:64/little, Rest1/binary>> -> decode_id(Kind, Id, Rest1, Reader);
        _ -> more
    end;
entry(Kind, Id, Rest, {false, _} = Reader) when Kind =:= ?FROM; Kind =:= ?SPAWN -> decode_id(Kind, Id, Rest, Reader);
entry(?AGAIN, _, _, {_, none}) -> malformed(~"one more message of a sender that was never named");
entry(?AGAIN, N, Rest, {_, Last} = Reader) when N > 0 -> {{from, Last, N}, Rest, Reader};
entry(?CONTENT, N, Rest, Reader) when N > 0 -> {{content, N}, Rest, Reader};
entry(?TIMEOUT, N, Rest, Reader) when N > 0 -> {{timeout, N}, Rest, Reader};
entry(?RESULT, Call, Rest, Reader) -> decode_result(Call, Rest, Reader);
entry(?RAISE, Call, Rest, Reader) -> {{raise, Call}, Rest, Reader};
entry(?MARK, 0, Rest, Reader) -> {exit, Rest, Reader};
entry(?MARK, 1, <<Id:64/little, Rest/binary>>, {true, _} = Reader) -> {{named, Id}, Rest, Reader};
entry(?MARK, 1, _, {true, _}) -> more;
entry(?MARK, 1, Rest, Reader) -> decode_number(named, Rest, Reader);
entry(?MARK, 2, <<Hash:8/binary, Rest/binary>>, Reader) -> {{hash, binary:copy(Hash)}, Rest, Reader};
entry(?MARK, 2, _, _) -> more;
entry(?MARK, 3, Rest, Reader) -> {sent, Rest, Reader};
entry(?MARK, 4, Rest, Reader) -> {contents, Rest, Reader};
entry(?MARK, 5, Rest, Reader) -> {waited, Rest, Reader};
entry(?MARK, 6, Rest, Reader) ->
    maybe
        {Begin, Rest1} ?= witness_log_recording_number:read(Rest),
        {Length, Rest2} ?= witness_log_recording_number:read(Rest1),
        {{ordered, Begin, Begin + Length}, Rest2, Reader}
    else
        more -> more;
        too_large -> malformed(~"a number of more than 64 bits")
    end;
entry(?MARK, 7, Rest, Reader) -> decode_number(time, Rest, Reader);
entry(Kind, Value, _, _) ->
    malformed([~"no entry has the kind ", integer_to_binary(Kind), ~" with ", integer_to_binary(Value)]).

decode_number(Kind, Bytes, Reader) ->
    case witness_log_recording_number:read(Bytes) of
        {Number, Rest} -> {{Kind, Number}, Rest, Reader};
        more -> more;
        too_large -> malformed(~"a number of more than 64 bits")
    end.

decode_id(_, 0, _, _) -> malformed(~"no process has the id 0");
decode_id(?FROM, Id, Rest, {Full, _}) -> {{from, Id, 1}, Rest, {Full, Id}};
decode_id(?SPAWN, Id, Rest, Reader) -> {{spawn, Id}, Rest, Reader}.

decode_result(Call, <<0, Rest/binary>>, Reader) -> {{result, Call, data}, Rest, Reader};
decode_result(Call, <<1, Rest/binary>>, Reader) ->
    case witness_log_recording_number:read(Rest) of
        {N, Rest1} -> {{result, Call, {value, witness_log_recording_number:unzigzag(N)}}, Rest1, Reader};
        more -> more;
        too_large -> malformed(~"a number of more than 64 bits")
    end;
decode_result(Call, <<2, Rest/binary>>, Reader) -> {{result, Call, {value, true}}, Rest, Reader};
decode_result(Call, <<3, Rest/binary>>, Reader) -> {{result, Call, {value, false}}, Rest, Reader};
decode_result(Call, <<4, Rest/binary>>, Reader) -> {{result, Call, {value, undefined}}, Rest, Reader};
decode_result(Call, <<5, Rest/binary>>, Reader) -> {{result, Call, {value, ok}}, Rest, Reader};
decode_result(Call, <<6, Rest/binary>>, Reader) -> {{result, Call, {value, []}}, Rest, Reader};
decode_result(Call, <<7, Rest/binary>>, Reader) -> {{result, Call, {value, error}}, Rest, Reader};
decode_result(Call, <<8, Rest/binary>>, Reader) -> {{result, Call, {value, infinity}}, Rest, Reader};
decode_result(Call, <<9, Rest/binary>>, Reader) -> {{result, Call, {value, none}}, Rest, Reader};
decode_result(_, <<>>, _) -> more;
decode_result(_, <<Form, _/binary>>, _) -> malformed([~"no result has the form ", integer_to_binary(Form)]).

malformed(What) -> {malformed, What}.

-doc "How many entries it represents: each message and each timeout of a run is one. A place in an order, or a time, is none.".
-spec count(entry()) -> non_neg_integer().
count({ordered, _, _}) -> 0;
count({time, _}) -> 0;
count({from, _, N}) -> N;
count({content, N}) -> N;
count({timeout, N}) -> N;
count(_) -> 1.
