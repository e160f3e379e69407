-module(witness_replay_births).
-moduledoc """
Who was born in a recording: pids of processes, processes by their pids, and what they were spawned with.

All births are known from the beginning, since what a log has from outside may name a process that nobody has spawned yet. So this, and
two numbers in `m:witness_replay_flow`, is what a replay has of each process that ever lived: some twenty bytes here. A pid
of a VM that is no node is two numbers, which are one word. `pids` has a word for each process, and `places` half a word: which of the blocks of
births its own is in. `ids` is a hash table of processes by their pids, half a word each, in which the pids of processes that were
spawned one after the other do not collide. What a process was spawned with is read again when it is asked for.
""".

-export([read/1, last/0, pid/1, id/1, known/1]).
-export([file/1]).

-record(births, {last :: non_neg_integer(),
                 pids :: atomics:atomics_ref(),
                 places :: atomics:atomics_ref(),
                 blocks :: tuple(),
                 ids :: atomics:atomics_ref(),
                 size :: pos_integer()}).

%% Bytes of a birth while all are gathered: the process, its pid, and its place.
-define(BIRTH, 16).

%% The greatest number of a process that half a word has room for.
-define(MOST, 16#ffffffff).

-doc "Reads all births, for all processes of this VM. Those that nobody has spawned who was recorded, with what they began with.".
-spec read(witness_log_recording:recording()) ->
    {ok, [{pos_integer(), Signature :: term()}]}
        | {error, witness_log_recording:error() | no_processes | {two | no_pid, binary()} | {number, pos_integer()}}.
read(Recording) ->
    %% What is thrown away when all is read goes with a process of its own.
    {Reader, Monitor} = spawn_monitor(?MODULE, file, [Recording]),
    receive
        {'DOWN', Monitor, process, Reader, {births, Result}} -> Result;
        {'DOWN', Monitor, process, Reader, Reason} -> exit(Reason)
    end.

-doc false.
-spec file(witness_log_recording:recording()) -> no_return().
file(Recording) ->
    Gathered = witness_log_recording:fold_births(fun
        (Block, #{id := Id, parent := Parent, pid := Pid, signature := Signature}, {Last, Firsts, Blocks, Births}) ->
            Known = case Blocks of [{_, Block} | _] -> Blocks; _ -> [{length(Blocks), Block} | Blocks] end,
            case word(Pid) of
                none -> exit({births, {error, {no_pid, witness_event:format_term(Pid, 100)}}});
                _ when Id > ?MOST -> exit({births, {error, {number, Id}}});
                Word ->
                    {max(Id, Last), [{Id, Signature} || Parent =:= 0] ++ Firsts, Known,
                     <<Births/binary, Id:32, Word:64, (element(1, hd(Known))):32>>}
            end
    end, {0, [], [], <<>>}, Recording),
    exit({births, maybe
        {ok, {Last, Firsts, Blocks, All}} ?= Gathered,
        true ?= Last > 0,
        Places = list_to_tuple([Place || {_, Place} <- lists:reverse(Blocks)]),
        {ok, Births} ?= filed(All, new(Last, byte_size(All) div ?BIRTH, Places)),
        ok = persistent_term:put(?MODULE, Births),
        {ok, lists:keysort(1, Firsts)}
    else
        false -> {error, no_processes};
        {error, _} = Error -> Error
    end}).

new(Last, Count, Blocks) ->
    Size = Count * 4 div 3 + 1,
    [Pids, Places, Ids] = [atomics:new(N, [{signed, false}]) || N <- [Last, Last div 2 + 1, Size div 2 + 1]],
    #births{last = Last, pids = Pids, places = Places, blocks = Blocks, ids = Ids, size = Size}.

filed(<<>>, Births) -> {ok, Births};
filed(<<Id:32, Word:64, Block:32, Rest/binary>>, #births{pids = Pids, places = Places, ids = Ids} = Births) ->
    case {atomics:get(Pids, Id), found(first(Word, Births), Word, Births)} of
        {0, {empty, At}} ->
            ok = atomics:put(Pids, Id, Word),
            ok = put_half(Places, Id, Block),
            ok = put_half(Ids, At, Id),
            filed(Rest, Births);
        _ -> {error, {two, witness_event:format_term(of_word(Word), 100)}}
    end.

%% Half a word, which is put once.
put_half(Halves, N, Value) -> atomics:add(Halves, N div 2 + 1, Value bsl (N rem 2 * 32)).

half(Halves, N) -> (atomics:get(Halves, N div 2 + 1) bsr (N rem 2 * 32)) band 16#ffffffff.

first(Word, #births{size = Size}) -> ((Word bsr 32) bsl 28 + Word band 16#ffffffff) rem Size.

%% The process with this pid, or the empty place where it would be. There is an empty place behind each.
found(At, Word, #births{ids = Ids, pids = Pids, size = Size} = Births) ->
    case half(Ids, At) of
        0 -> {empty, At};
        Id ->
            case atomics:get(Pids, Id) of
                Word -> Id;
                _ -> found((At + 1) rem Size, Word, Births)
            end
    end.

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
            case found(first(Word, Births), Word, Births) of
                {empty, _} -> none;
                Id -> Id
            end
    end.

-doc "The pid of a process in the recording, and what it was spawned with.".
-spec known(pos_integer()) -> {pid(), Signature :: term()} | none.
known(Id) ->
    maybe
        Pid = pid(Id),
        true ?= is_pid(Pid),
        #births{places = Places, blocks = Blocks} = here(),
        {ok, #{signature := Signature}} ?= witness_replay_log:birth(element(half(Places, Id) + 1, Blocks), Id),
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
