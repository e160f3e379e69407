-module(witness_replay_proxies).
-moduledoc """
The process table: the live process of each recorded process, and the owner of each alias.

A slot is a live process with its numbers (`m:witness_replay_backpressure`). The first process that spawns a recorded process, or sends
to it, makes its slot. So a slot may be there before the process starts. Nothing is kept of a process that has ended.

*Invariant:* a process without a row has ended, or was not needed yet. A bit for each process says that it has ended. `ended/2`
sets the bit before it deletes the rows. So a process that finds no row learns from the bit, read afterwards, what that means.
""".

-export([start/1, slot/1, known/1, any/1, begun/3, ended/2, receiver/1, alias/2, aliased/1, forget/1]).

-export_type([slot/0]).

-doc "A live process, and its numbers.".
-type slot() :: {pid(), witness_replay_backpressure:flow()}.

-define(SLOTS, witness_replay_proxies).
-define(PIDS, witness_replay_pids).
-define(ALIASES, witness_replay_aliases).

%% So many bits of a word are used: with one more the values would be bignums, which need memory.
-define(BITS, 59).

%% Rows that are read at a time.
-define(ROWS, 1000).

-doc "Makes the tables, for processes up to this one.".
-spec start(non_neg_integer()) -> ok.
start(Last) ->
    _ = [ets:new(Table, [named_table, public, {read_concurrency, true}]) || Table <- [?SLOTS, ?PIDS, ?ALIASES]],
    persistent_term:put(?MODULE, atomics:new(Last div ?BITS + 1, [])).

-doc "The live process of a recorded one, made when it is needed first. `none`: it has ended.".
-spec slot(pos_integer()) -> slot() | none.
slot(Id) ->
    case known(Id) of
        {_, _} = Slot -> Slot;
        not_begun -> made(Id);
        ended -> none
    end.

-doc "The same, but nothing is made.".
-spec known(pos_integer()) -> slot() | not_begun | ended.
known(Id) ->
    case ets:lookup(?SLOTS, Id) of
        [{_, Pid, Flow}] -> {Pid, Flow};
        [] -> case has_ended(Id) of true -> ended; false -> not_begun end
    end.

%% It may have started, and ended, meanwhile.
made(Id) ->
    Pid = spawn(witness_replay_life, place, [Id]),
    Flow = witness_replay_backpressure:new(),
    Row = {Id, Pid, Flow},
    case ets:insert_new(?SLOTS, Row) andalso not has_ended(Id) of
        true -> {Pid, Flow};
        false ->
            true = ets:delete_object(?SLOTS, Row),
            true = exit(Pid, kill),
            slot(Id)
    end.

-doc "Whether the test holds for the numbers of any process that is there from the start of the search to its end.".
-spec any(fun((witness_replay_backpressure:flow()) -> boolean())) -> boolean().
any(Is) ->
    true = ets:safe_fixtable(?SLOTS, true),
    Found = any(Is, ets:select(?SLOTS, [{{'_', '_', '$1'}, [], ['$1']}], ?ROWS)),
    true = ets:safe_fixtable(?SLOTS, false),
    Found.

any(_, '$end_of_table') -> false;
any(Is, {Flows, Next}) -> lists:any(Is, Flows) orelse any(Is, ets:select(Next)).

-doc "A process is about to start.".
-spec begun(pos_integer(), pid(), slot()) -> ok.
begun(Id, Pid, Slot) ->
    true = ets:insert(?PIDS, {Pid, Id, Slot}),
    ok.

-doc "A process has ended.".
-spec ended(pos_integer(), pid()) -> ok.
ended(Id, Pid) ->
    ok = has_ended(Id, persistent_term:get(?MODULE)),
    true = ets:delete(?PIDS, Pid),
    true = ets:delete(?SLOTS, Id),
    ok.

%% Other processes may set other bits of the word, or the same one, meanwhile.
has_ended(Id, Ended) ->
    At = Id div ?BITS + 1,
    Word = atomics:get(Ended, At),
    case atomics:compare_exchange(Ended, At, Word, Word bor (1 bsl (Id rem ?BITS))) of
        ok -> ok;
        _ -> has_ended(Id, Ended)
    end.

has_ended(Id) -> atomics:get(persistent_term:get(?MODULE), Id div ?BITS + 1) band (1 bsl (Id rem ?BITS)) =/= 0.

-doc "The process that has this recorded pid, and its live process. `none`: it is outside.".
-spec receiver(pid()) -> {pos_integer(), slot() | none} | none.
receiver(Pid) ->
    case ets:lookup(?PIDS, Pid) of
        [{_, Id, Slot}] -> {Id, Slot};
        [] ->
            case witness_replay_process_table:id(Pid) of
                none -> none;
                Id -> {Id, slot(Id)}
            end
    end.

-doc """
A process has made an alias. The result is what to delete when it ends, if that is new. All aliases of a process share a row.
""".
-spec alias(reference(), pos_integer()) -> [term()].
alias(Ref, Id) ->
    Owner = witness_replay_process:owner(Ref),
    New = ets:insert_new(?ALIASES, {Owner, Id}),
    %% If the row belonged to another process, the caller would fail here, and its end would be reported.
    Id = aliased(Ref),
    [Owner || New].

-doc "The process that owns an alias, as long as it is alive.".
-spec aliased(reference()) -> pos_integer() | none.
aliased(Ref) ->
    case ets:lookup(?ALIASES, witness_replay_process:owner(Ref)) of
        [{_, Id}] -> Id;
        [] -> none
    end.

-doc "A process that has made aliases has ended.".
-spec forget([term()]) -> ok.
forget(Owners) -> lists:foreach(fun(Owner) -> ets:delete(?ALIASES, Owner) end, Owners).
