-module(witness_replay_process_table).
-moduledoc """
The process table of a recording: the pid of each process, the process of each pid, the parent of each process, and its signature.

`read/1` reads all births before the replay starts: data from outside in a log may contain the pid of a process that is not
spawned yet. So a replay keeps some ten bytes for each process that ever lived. *Invariant:* each number is written once, by
`read/1`; then all processes of the VM read it.

The numbers are packed: each takes as many bits as the largest of its kind. A pid of a VM that is no node consists of two
numbers, which fit into one word. `pids` has this word of each process, `parents` its parent, and `places` which block of births
contains its birth. `ids` is a hash table from pids to processes, in which the pids of processes that were spawned one after the
other do not collide. Signatures are not kept: `lookup/1` asks `m:witness_replay_log` for them.
""".

-export([read/1, last/0, pid/1, id/1, parent/1, lookup/1, signature/1]).
-export([file/1]).

-record(births, {last :: non_neg_integer(),
                 pids :: packed(),
                 parents :: packed(),
                 places :: packed(),
                 blocks :: tuple(),
                 ids :: packed(),
                 size :: pos_integer(),
                 rows :: witness_event_wrapper:table()}).

%% An array of numbers of so many bits, so many in a word. They are 0 until they are put.
-type packed() :: {Bits :: 1..64, InWord :: 1..64, atomics:atomics_ref()}.

%% Bytes of a birth while all are gathered: the process, its pid, and its parent.
-define(BIRTH_BYTES, 16).

%% The largest identifier of a process that fits while all are gathered.
-define(MAX_ID, 16#ffffffff).

-doc "Reads all births, for all processes of this VM. The result: processes without a recorded parent, with their signatures.".
-spec read(witness_log_recording:recording()) ->
    {ok, [{pos_integer(), Signature :: term()}]}
        | {error, witness_log_recording:error() | no_processes | {two | no_pid, binary()} | {number, pos_integer()}}.
read(Recording) ->
    %% A separate process reads, so its garbage goes when it ends.
    {Reader, Monitor} = spawn_monitor(?MODULE, file, [Recording]),
    receive
        {'DOWN', Monitor, process, Reader, {births, Result}} -> Result;
        {'DOWN', Monitor, process, Reader, Reason} -> exit(Reason)
    end.

%% The births of each block are gathered in a binary of their own: a single one would be copied as it grows.
-doc false.
-spec file(witness_log_recording:recording()) -> no_return().
file(Recording) ->
    Gathered = witness_log_recording:fold_births(fun
        (Block, #{id := Id, parent := Parent, pid := Pid, signature := Signature}, {Last, MostWord, MostParent, Firsts, Blocks}) ->
            case pid_to_word(Pid) of
                none -> exit({births, {error, {no_pid, witness_event:format_term(Pid, 100)}}});
                _ when Id > ?MAX_ID; Parent > ?MAX_ID -> exit({births, {error, {number, max(Id, Parent)}}});
                Word ->
                    {max(Id, Last), max(Word, MostWord), max(Parent, MostParent), [{Id, Signature} || Parent =:= 0] ++ Firsts,
                     add_birth(Block, <<Id:32, Word:64, Parent:32>>, Blocks)}
            end
    end, {0, 0, 0, [], []}, Recording),
    exit({births, maybe
        {ok, {Last, MostWord, MostParent, Firsts, Blocks}} ?= Gathered,
        true ?= Last > 0,
        {Places, Gatherings} = lists:unzip(lists:reverse(Blocks)),
        Count = iolist_size(Gatherings) div ?BIRTH_BYTES,
        Size = Count * 4 div 3 + 1,
        Births = #births{last = Last, pids = packed(Last, MostWord), parents = packed(Last, MostParent),
                         places = packed(Last, length(Places)), blocks = list_to_tuple(Places), ids = packed(Size, Last),
                         size = Size, rows = witness_log_recording:rows(Recording)},
        ok ?= put_births(Gatherings, 0, Births),
        ok = persistent_term:put(?MODULE, Births),
        {ok, lists:keysort(1, Firsts)}
    else
        false -> {error, no_processes};
        {error, _} = Error -> Error
    end}).

add_birth(Block, Birth, [{Block, Births} | Blocks]) -> [{Block, <<Births/binary, Birth/binary>>} | Blocks];
add_birth(Block, Birth, Blocks) -> [{Block, Birth} | Blocks].

put_births([], _, _) -> ok;
put_births([<<>> | Gatherings], Place, Births) -> put_births(Gatherings, Place + 1, Births);
put_births([<<Id:32, Word:64, Parent:32, Rest/binary>> | Gatherings], Place, Births) ->
    #births{pids = Pids, parents = Parents, places = Places, ids = Ids} = Births,
    case {number(Id, Pids), find(hash(Word, Births), Word, Births)} of
        {0, {empty, At}} ->
            ok = put_once(Id, Word, Pids),
            ok = put_once(Id, Parent, Parents),
            ok = put_once(Id, Place, Places),
            ok = put_once(At, Id, Ids),
            put_births([Rest | Gatherings], Place, Births);
        _ -> {error, {two, witness_event:format_term(word_to_pid(Word), 100)}}
    end.

hash(Word, #births{size = Size}) -> ((Word bsr 32) bsl 28 + Word band 16#ffffffff) rem Size.

%% The process with this pid, or the empty place where it would be. From each place on there is an empty one, so the search
%% ends.
find(At, Word, #births{ids = Ids, pids = Pids, size = Size} = Births) ->
    case number(At, Ids) of
        0 -> {empty, At};
        Id ->
            case number(Id, Pids) of
                Word -> Id;
                _ -> find((At + 1) rem Size, Word, Births)
            end
    end.

%% An array with indexes from 0 to `Last`, of numbers up to `Most`.
packed(Last, Most) ->
    Bits = length(integer_to_list(Most, 2)),
    InWord = 64 div Bits,
    {Bits, InWord, atomics:new(Last div InWord + 1, [{signed, false}])}.

put_once(N, Value, {Bits, InWord, Words}) -> atomics:add(Words, N div InWord + 1, Value bsl (N rem InWord * Bits)).

number(N, {Bits, InWord, Words}) -> (atomics:get(Words, N div InWord + 1) bsr (N rem InWord * Bits)) band (1 bsl Bits - 1).

-doc "The largest identifier of a process.".
-spec last() -> pos_integer().
last() -> (table())#births.last.

-doc "The pid of a process in the recording.".
-spec pid(pos_integer()) -> pid() | none.
pid(Id) ->
    case table() of
        #births{last = Last, pids = Pids} when Id =< Last -> word_to_pid(number(Id, Pids));
        #births{} -> none
    end.

-doc "The process that has this pid in the recording.".
-spec id(pid()) -> pos_integer() | none.
id(Pid) ->
    case pid_to_word(Pid) of
        none -> none;
        Word ->
            Births = table(),
            case find(hash(Word, Births), Word, Births) of
                {empty, _} -> none;
                Id -> Id
            end
    end.

-doc "The parent of a process. `none`: it has no recorded parent.".
-spec parent(pos_integer()) -> pos_integer() | none.
parent(Id) ->
    case table() of
        #births{last = Last, parents = Parents} when Id =< Last ->
            case number(Id, Parents) of
                Parent when Parent > 0, Parent =< Last -> Parent;
                _ -> none
            end;
        #births{} -> none
    end.

-doc "The pid of a process in the recording, and its signature.".
-spec lookup(pos_integer()) -> {pid(), Signature :: term()} | none.
lookup(Id) ->
    maybe
        Pid = pid(Id),
        true ?= is_pid(Pid),
        #births{places = Places, blocks = Blocks} = table(),
        {ok, #{signature := Signature}} ?= witness_replay_log:birth(element(number(Id, Places) + 1, Blocks), Id),
        {Pid, Signature}
    else
        _ -> none
    end.

-doc "What the author of a process wrote, by what it is spawned with here, with the rows for signatures of the recording.".
-spec signature({module(), Function :: atom(), Args :: [term()]}) -> witness_event:signature().
signature(Raw) -> witness_event_signature:resolve(Raw, (table())#births.rows).

table() -> persistent_term:get(?MODULE).

%% --- pids ------------------------------------------------------------------------

%% In the external format a pid has its node, two numbers, and the incarnation of the node. Both numbers of `init' are 0.
pid_to_word(Pid) when is_pid(Pid), node(Pid) =:= node() ->
    Bytes = term_to_binary(Pid),
    case binary:part(Bytes, byte_size(Bytes), -12) of
        <<Number:32, Serial:32, _:32>> when Number > 0; Serial > 0 -> Serial bsl 32 bor Number;
        _ -> none
    end;
pid_to_word(_) -> none.

word_to_pid(0) -> none;
word_to_pid(Word) ->
    Own = term_to_binary(self()),
    Size = byte_size(Own) - 12,
    <<Node:Size/binary, _:64, Incarnation:4/binary>> = Own,
    binary_to_term(<<Node/binary, Word:32, (Word bsr 32):32, Incarnation/binary>>).
