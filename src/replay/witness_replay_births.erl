-module(witness_replay_births).
-moduledoc """
Who was born in a recording: pids of processes, processes by their pids, and what they were spawned with.

All births are known from the beginning, since what a log has from outside may name a process that nobody has spawned yet. So this, and
two numbers in `m:witness_replay_flow`, is what a replay has of each process that ever lived: some thirty bytes here. A pid
of a VM that is no node is two numbers, which are one word. `pids` and `places` have a word for each process, its pid and where its birth stands in the recording;
`ids` is a hash table of processes by their pids, in which the pids of processes that were spawned one after the other do not collide. What a process was spawned
with is read again when it is asked for.
""".

-export([read/1, last/0, pid/1, id/1, known/1]).
-export([file/1]).

-record(births, {last :: non_neg_integer(),
                 pids :: atomics:atomics_ref(),
                 places :: atomics:atomics_ref(),
                 ids :: atomics:atomics_ref(),
                 size :: pos_integer()}).

%% Bytes of a birth while all are gathered: the process, its pid, and its place.
-define(BIRTH, 20).

-doc "Reads all births, for all processes of this VM. Those that nobody has spawned who was recorded, with what they began with.".
-spec read(witness_log_recording:recording()) ->
    {ok, [{pos_integer(), Signature :: term()}]} | {error, witness_log_recording:error() | no_processes | {two | no_pid, binary()}}.
read(Recording) ->
    %% What is thrown away when all is read goes with a process of its own.
    {Reader, Monitor} = spawn_monitor(?MODULE, file, [Recording]),
    receive {'DOWN', Monitor, process, Reader, {births, Result}} -> Result end.

-doc false.
-spec file(witness_log_recording:recording()) -> no_return().
file(Recording) ->
    Gathered = witness_log_recording:fold_births(fun
        (Place, #{id := Id, parent := Parent, pid := Pid, signature := Signature}, {Last, Firsts, Births}) ->
            case word(Pid) of
                none -> exit({births, {error, {no_pid, witness_event:format_term(Pid, 100)}}});
                Word -> {max(Id, Last), [{Id, Signature} || Parent =:= 0] ++ Firsts, <<Births/binary, Id:48, Word:64, Place:48>>}
            end
    end, {0, [], <<>>}, Recording),
    exit({births, maybe
        {ok, {Last, Firsts, All}} ?= Gathered,
        true ?= Last > 0,
        {ok, Births} ?= filed(All, new(Last, byte_size(All) div ?BIRTH)),
        ok = persistent_term:put(?MODULE, Births),
        {ok, lists:keysort(1, Firsts)}
    else
        false -> {error, no_processes};
        {error, _} = Error -> Error
    end}).

new(Last, Count) ->
    Size = Count * 4 div 3 + 1,
    [Pids, Places, Ids] = [atomics:new(N, [{signed, false}]) || N <- [Last, Last, Size]],
    #births{last = Last, pids = Pids, places = Places, ids = Ids, size = Size}.

filed(<<>>, Births) -> {ok, Births};
filed(<<Id:48, Word:64, Place:48, Rest/binary>>, #births{pids = Pids, places = Places} = Births) ->
    ok = atomics:put(Pids, Id, Word),
    ok = atomics:put(Places, Id, Place),
    case filed_at(first(Word, Births), Id, Word, Births) of
        ok -> filed(Rest, Births);
        same -> {error, {two, witness_event:format_term(of_word(Word), 100)}}
    end.

filed_at(At, Id, Word, #births{ids = Ids, pids = Pids} = Births) ->
    case atomics:get(Ids, At) of
        0 -> atomics:put(Ids, At, Id);
        Id -> filed_at(next(At, Births), Id, Word, Births);
        Other ->
            case atomics:get(Pids, Other) of
                Word -> same;
                _ -> filed_at(next(At, Births), Id, Word, Births)
            end
    end.

first(Word, #births{size = Size}) -> ((Word bsr 32) bsl 28 + Word band 16#ffffffff) rem Size + 1.

next(At, #births{size = At}) -> 1;
next(At, _) -> At + 1.

-doc "The greatest number of a process.".
-spec last() -> pos_integer().
last() -> (here())#births.last.

-doc "The pid of a process in the recording.".
-spec pid(pos_integer()) -> pid() | none.
pid(Id) ->
    case here() of
        #births{last = Last, pids = Pids} when Id =< Last -> of_word(atomics:get(Pids, Id));
        #births{} -> none
    end.

-doc "The process that had a pid.".
-spec id(pid()) -> pos_integer() | none.
id(Pid) ->
    case word(Pid) of
        none -> none;
        Word ->
            Births = here(),
            found(first(Word, Births), Word, Births)
    end.

%% There is an empty place behind each.
found(At, Word, #births{ids = Ids, pids = Pids} = Births) ->
    case atomics:get(Ids, At) of
        0 -> none;
        Id ->
            case atomics:get(Pids, Id) of
                Word -> Id;
                _ -> found(next(At, Births), Word, Births)
            end
    end.

-doc "The pid of a process in the recording, and what it was spawned with.".
-spec known(pos_integer()) -> {pid(), Signature :: term()} | none.
known(Id) ->
    maybe
        Pid = pid(Id),
        true ?= is_pid(Pid),
        #births{places = Places} = here(),
        {ok, #{signature := Signature}} ?= witness_replay_log:birth(atomics:get(Places, Id), Id),
        {Pid, Signature}
    else
        _ -> none
    end.

here() -> persistent_term:get(?MODULE).

%% --- pids ------------------------------------------------------------------------

%% A pid is written as its node, two numbers, and which incarnation of the node it is. The first VM's `init' has 0.
word(Pid) when is_pid(Pid), node(Pid) =:= node() ->
    Bytes = term_to_binary(Pid),
    case binary:part(Bytes, byte_size(Bytes), -12) of
        <<Number:32, Serial:32, _:32>> when Number > 0; Serial > 0 -> Serial bsl 32 bor Number;
        _ -> none
    end;
word(_) -> none.

of_word(0) -> none;
of_word(Word) ->
    Own = term_to_binary(self()),
    Size = byte_size(Own) - 12,
    <<Node:Size/binary, _:64, Incarnation:4/binary>> = Own,
    binary_to_term(<<Node/binary, Word:32, (Word bsr 32):32, Incarnation/binary>>).
