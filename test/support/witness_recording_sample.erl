-module(witness_recording_sample).
-moduledoc """
Recordings for tests: what processes did, as terms, becomes bytes that a recorder could have handed over, in
sub-traces and blocks of any sizes, and a recording in a folder, written here or by the writer.

Entries are those of `m:witness_log_recording`; `{timed, Time, Entry}` has a time of its own. As a recorder of the writer this module hands over parts that were given
before (`give/1`).
""".

-export([parts/2, parts/3, births/1, has_ended/1, write/3, header/1, calls/0, read/1, read/2, entries/2, times/1, plain/1, bare/1]).
-export([folder/1, delete/1]).
-export([give/1, ended/1, state/0, take/1, flush/0, stop/0]).

-export_type([process/0]).

-type process() :: {witness_log_recording_process:birth(), [entry() | {timed, Time :: non_neg_integer(), entry()}]}.
-type entry() :: witness_log_recording:entry() | witness_log_recording:ordered().

-doc "Calls of which entries tell results, with their numbers.".
calls() -> #{{erlang, monotonic_time, 0} => 0, {ets, lookup, 2} => 7, {os, getenv, 1} => 200}.

-doc "What a header says for these tests.".
header(Full) -> #{options => #{full_ids => Full}, calls => calls()}.

-doc "The bytes of what processes did, in sub-traces of up to `Size` bytes, in the order of a process, in any between them.".
-spec parts([process()], Size :: pos_integer()) -> [{order | data | processes, binary()}].
parts(Processes, Size) -> parts(Processes, Size, false).

parts(Processes, Size, Full) ->
    births(Processes) ++ shuffled(lists:append([pieces(Id, Entries, Size, Full) || {#{id := Id}, Entries} <- Processes])).

births(Processes) ->
    [{processes, [[witness_log_recording_process:encode(Record)
                   || Record <- [{birth, Birth} | [{born_at, Id, Time} || #{time := Time} <- [Birth]]]]
                  | [witness_log_recording_process:encode({ended, Id}) || has_ended(Entries)]]}
     || {#{id := Id} = Birth, Entries} <- Processes].

-doc "Whether a process has an end.".
has_ended(Entries) -> lists:keymember(exit, 1, [E || Entry <- Entries, E <- [bare(Entry)], is_tuple(E)]).

pieces(Id, Entries, Size, Full) ->
    {Order, Data} = bytes(Entries, none, Full, [], []),
    [[{data, subtrace(Id, N, Bytes)} || {N, Bytes} <- lists:enumerate(0, cut(Data, Size))],
     [{order, subtrace(Id, N, Bytes)} || {N, Bytes} <- lists:enumerate(0, cut(Order, Size))]].

bytes([{from, Id} | Entries], Id, Full, Order, Data) ->
    {Same, Rest} = lists:splitwith(fun(E) -> E =:= {from, Id} end, Entries),
    bytes(Rest, Id, Full, [Order | encode({again, 1 + length(Same)}, Full)], Data);
bytes([{from, Id} | Entries], _, Full, Order, Data) -> bytes(Entries, Id, Full, [Order | encode({from, Id, 1}, Full)], Data);
bytes([timeout | Entries], Last, Full, Order, Data) ->
    {Same, Rest} = lists:splitwith(fun(E) -> E =:= timeout end, Entries),
    bytes(Rest, Last, Full, [Order | encode({timeout, 1 + length(Same)}, Full)], Data);
bytes([{content, _} | _] = Entries, Last, Full, Order, Data) ->
    {Same, Rest} = lists:splitwith(fun(E) -> is_tuple(E) andalso element(1, E) =:= content end, Entries),
    bytes(Rest, Last, Full, [Order | encode({content, length(Same)}, Full)], [Data | [item(Term) || {_, Term} <- Same]]);
bytes([{timed, Time, Entry} | Entries], Last, Full, Order, Data) ->
    bytes([Entry | Entries], Last, Full, [Order | encode({time, Time}, Full)], Data);
bytes([{ordered, Begin, End, Entry} | Entries], Last, Full, Order, Data) ->
    bytes([Entry | Entries], Last, Full, [Order | encode({ordered, Begin, End}, Full)], Data);
bytes([Entry | Entries], Last, Full, Order, Data) ->
    {Encoded, Items} = case Entry of
        {result, MFA, Term} ->
            Call = maps:get(MFA, calls()),
            case is_short(Term) of
                true -> {{result, Call, {value, Term}}, []};
                false -> {{result, Call, data}, [item(Term)]}
            end;
        {raise, MFA, Class, Reason} -> {{raise, maps:get(MFA, calls())}, [item({Class, Reason})]};
        {exit, Reason} -> {exit, [item(Reason)]};
        {contents, Term} -> {contents, [item(Term)]};
        {sent, To, Term} -> {sent, [item({To, Term})]};
        Plain -> {Plain, []}
    end,
    bytes(Entries, Last, Full, [Order | encode(Encoded, Full)], [Data | Items]);
bytes([], _, _, Order, Data) -> {iolist_to_binary(Order), iolist_to_binary(Data)}.

is_short(I) when is_integer(I) -> I >= -(1 bsl 63) andalso I < 1 bsl 63;
is_short(Term) -> lists:member(Term, [true, false, undefined, ok, [], error, infinity, none]).

encode(Entry, Full) -> witness_log_recording_entry:encode(Entry, Full).

item(Term) ->
    External = term_to_binary(Term),
    [leb(byte_size(External)), External].

leb(N) -> witness_log_recording_number:leb(N).

subtrace(Id, Number, Bytes) -> iolist_to_binary([leb(Id), leb(Number), leb(byte_size(Bytes)), Bytes]).

cut(<<>>, _) -> [];
cut(Bytes, Size) ->
    Length = min(byte_size(Bytes), rand:uniform(Size)),
    <<Part:Length/binary, Rest/binary>> = Bytes,
    [Part | cut(Rest, Size)].

%% One of the next of each, at random, until there are none.
shuffled([]) -> [];
shuffled(Lists) ->
    {Before, [Chosen | After]} = lists:split(rand:uniform(length(Lists)) - 1, Lists),
    case Chosen of
        [] -> shuffled(Before ++ After);
        [Part | Parts] -> [Part | shuffled(Before ++ [Parts | After])]
    end.

-doc """
Writes a recording of these parts: `block` bytes a block, about; `compress`; `index`, `end`: whether these files are there;
`modules`: those that were loaded.
""".
write(Dir, Parts, #{header := Header} = Options) ->
    ok = file:make_dir(Dir),
    Id = <<"sample00">>,
    Z = case Options of #{compress := true} -> witness_log_recording_file:compressor(); #{} -> none end,
    put_file(Dir, header, Id, [term_to_binary(Header)], Z),
    Sizes = #{Kind => put_file(Dir, Kind, Id, blocks([P || {K, P} <- Parts, K =:= Kind], maps:get(block, Options, 64)), Z)
              || Kind <- [order, data, processes]},
    maps:get(index, Options, true) andalso
        begin
            {ok, Order} = witness_log_recording_file:open(Dir, order),
            {ok, Data} = witness_log_recording_file:open(Dir, data),
            {ok, Index, []} = witness_log_recording_index:build(Order, Data, maps:get(full_ids, maps:get(options, Header))),
            ok = witness_log_recording_file:close(Order),
            ok = witness_log_recording_file:close(Data),
            put_file(Dir, index, Id, witness_log_recording_index:encode(Index, Sizes), Z)
        end,
    maps:get('end', Options, true) andalso
        begin
            Names = [[leb(4), ~"true"], [leb(2), ~"ok"]],
            Size = iolist_size(witness_log_recording_file:block(Names, Z)),
            put_file(Dir, modules, Id, [term_to_binary(#{ended => finished, sizes => Sizes, names => Size,
                                                         modules => maps:get(modules, Options, [{lists, ~"md5", true}])}), Names],
                     Z)
        end,
    ok.

put_file(Dir, Kind, Id, Blocks, Z) ->
    Bytes = [witness_log_recording_file:head(Kind, Id) | [witness_log_recording_file:block(B, Z) || B <- Blocks]],
    ok = file:write_file(witness_log_recording_file:name(Dir, Kind), Bytes),
    iolist_size(Bytes).

blocks(Parts, Size) -> blocks(Parts, Size, [], 0).

blocks([Part | Parts], Size, Gathered, Held) when Gathered =:= []; Held + byte_size(Part) =< Size ->
    blocks(Parts, Size, [Gathered, Part], Held + iolist_size(Part));
blocks([], _, [], 0) -> [];
blocks(Parts, Size, Gathered, _) -> [Gathered | blocks(Parts, Size, [], 0)].

-doc "All that a recording has, or its first error.".
read(Dir) -> read(Dir, #{}).

-doc "The same, with options for opening it.".
read(Dir, Options) ->
    maybe
        {ok, R} ?= witness_log_recording:open(Dir, Options),
        {ok, Processes} ?= witness_log_recording:processes(R),
        {ok, Modules} ?= witness_log_recording:modules(R),
        {ok, Atoms} ?= witness_log_recording:atoms(R),
        {ok, Entries} ?= entries(witness_log_recording:ids(R), R, #{}),
        {ok, #{info => witness_log_recording:info(R), header => witness_log_recording:header(R), processes => Processes,
               modules => Modules, atoms => Atoms, entries => Entries}}
    end.

entries([Id | Ids], R, All) ->
    case entries(Id, R) of
        {ok, Entries} -> entries(Ids, R, All#{Id => Entries});
        {error, _} = Error -> Error
    end;
entries([], _, All) -> {ok, All}.

-doc "The entries of a process.".
entries(Id, R) ->
    case witness_log_recording:fold(fun(Entry, Entries) -> [Entry | Entries] end, [], Id, R) of
        {ok, Entries} -> {ok, lists:reverse(Entries)};
        {error, _} = Error -> Error
    end.

-doc "The entries of each process with their times.".
times(Dir) ->
    {ok, R} = witness_log_recording:open(Dir),
    witness_log_recording:with_cursors(fun(Open) ->
        #{Id => begin {ok, Cursor} = Open(Id), timed(Cursor) end || Id <- witness_log_recording:ids(R)}
    end, R).

timed(Cursor) ->
    case witness_log_recording_cursor:next(Cursor) of
        {ok, Entry, Next} ->
            Time = witness_log_recording_cursor:time(Next),
            case Entry of
                {from, From, N} -> lists:duplicate(N, {Time, {from, From}});
                {timeout, N} -> lists:duplicate(N, {Time, timeout});
                _ -> [{Time, Entry}]
            end ++ timed(Next);
        done -> []
    end.

-doc "What processes did, by their ids; those that did nothing are left out.".
plain(Processes) -> #{Id => [bare(Entry) || Entry <- Entries] || {#{id := Id}, [_ | _] = Entries} <- Processes}.

-doc "An entry without its time, and its place in the order of calls.".
bare({timed, _, Entry}) -> bare(Entry);
bare({ordered, _, _, Entry}) -> Entry;
bare(Entry) -> Entry.

-doc "A folder that is not there.".
folder(Name) ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    Base = filename:join([filename:basedir(user_cache, "witness-test"), os:getpid()]),
    ok = filelib:ensure_path(Base),
    filename:join(Base, Name ++ "-" ++ Unique).

-doc "Removes it.".
delete(Dir) -> file:del_dir_r(Dir).

%% --- as a recorder ---------------------------------------------------------------

-doc "A recorder, of the process that calls, which will hand over what it is given.".
state() ->
    _ = ets:whereis(?MODULE) =/= undefined andalso ets:delete(?MODULE),
    ?MODULE = ets:new(?MODULE, [named_table, public, ordered_set]),
    true = ets:insert(?MODULE, [{state, running}, {flushed, 0}, {stopped, false}]),
    ok.

-doc "Hands these parts over, next.".
give(Parts) ->
    true = ets:insert(?MODULE, {{parts, erlang:unique_integer([monotonic])}, Parts}),
    ok.

-doc "The recorder ends, for this reason.".
ended(Reason) ->
    true = ets:insert(?MODULE, {state, {ended, Reason}}),
    ok.

take(_) ->
    [{state, State}] = ets:lookup(?MODULE, state),
    case ets:next(?MODULE, {parts, -1 bsl 80}) of
        {parts, _} = Key ->
            [{Key, Parts}] = ets:take(?MODULE, Key),
            {Parts, State};
        _ -> {[], State}
    end.

flush() ->
    _ = ets:update_counter(?MODULE, flushed, 1),
    ok.

stop() ->
    true = ets:insert(?MODULE, {stopped, true}),
    ok.
