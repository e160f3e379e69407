-module(witness_replay_slots).
-moduledoc """
Who stands in this VM for the processes of the recording: for those that live, and for those that somebody has to do with
before they begin. Of those that have ended nothing is kept.

With it go the numbers by which all see whom it waits for (`m:witness_replay_flow`).

Who is looked for has a row here, or has not begun, or has ended. Of that there is a bit for each process; it is set before the rows of who ends
go, so who finds none knows what that means when it looks there afterwards.
""".

-export([start/1, slot/1, known/1, any/1, begun/3, ended/2, receiver/1, alias/2, aliased/1, forget/1]).

-export_type([slot/0]).

-doc "Who stands for a process, and its numbers.".
-type slot() :: {pid(), witness_replay_flow:flow()}.

-define(SLOTS, witness_replay_slots).
-define(PIDS, witness_replay_pids).
-define(ALIASES, witness_replay_aliases).

%% So many bits of a word are used: with one more numbers would need memory.
-define(BITS, 59).

%% Rows that are looked at at a time.
-define(ROWS, 1000).

-doc "Makes the tables, for processes up to this one.".
-spec start(non_neg_integer()) -> ok.
start(Last) ->
    _ = [ets:new(Table, [named_table, public, {read_concurrency, true}]) || Table <- [?SLOTS, ?PIDS, ?ALIASES]],
    persistent_term:put(?MODULE, atomics:new(Last div ?BITS + 1, [])).

-doc "Who stands for a process, made when it is needed first. `none`: it has ended.".
-spec slot(pos_integer()) -> slot() | none.
slot(Id) ->
    case known(Id) of
        {_, _} = Slot -> Slot;
        not_begun -> made(Id);
        ended -> none
    end.

-doc "The same, where it is there.".
-spec known(pos_integer()) -> slot() | not_begun | ended.
known(Id) ->
    case ets:lookup(?SLOTS, Id) of
        [{_, Pid, Flow}] -> {Pid, Flow};
        [] -> case has_ended(Id) of true -> ended; false -> not_begun end
    end.

%% It may have begun, and ended, meanwhile.
made(Id) ->
    Pid = spawn(witness_replay_life, place, [Id]),
    Flow = witness_replay_flow:new(),
    Row = {Id, Pid, Flow},
    case ets:insert_new(?SLOTS, Row) andalso not has_ended(Id) of
        true -> {Pid, Flow};
        false ->
            true = ets:delete_object(?SLOTS, Row),
            true = exit(Pid, kill),
            slot(Id)
    end.

-doc "Whether it is so for the numbers of any of those that are there from the first look to the last.".
-spec any(fun((witness_replay_flow:flow()) -> boolean())) -> boolean().
any(Is) ->
    true = ets:safe_fixtable(?SLOTS, true),
    Found = any(Is, ets:select(?SLOTS, [{{'_', '_', '$1'}, [], ['$1']}], ?ROWS)),
    true = ets:safe_fixtable(?SLOTS, false),
    Found.

any(_, '$end_of_table') -> false;
any(Is, {Flows, Next}) -> lists:any(Is, Flows) orelse any(Is, ets:select(Next)).

-doc "A process is about to begin.".
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

%% Others may set other bits of the word, or the same, meanwhile.
has_ended(Id, Ended) ->
    At = Id div ?BITS + 1,
    Word = atomics:get(Ended, At),
    case atomics:compare_exchange(Ended, At, Word, Word bor (1 bsl (Id rem ?BITS))) of
        ok -> ok;
        _ -> has_ended(Id, Ended)
    end.

has_ended(Id) -> atomics:get(persistent_term:get(?MODULE), Id div ?BITS + 1) band (1 bsl (Id rem ?BITS)) =/= 0.

-doc "The process that has a pid, and who stands for it. `none`: it is outside.".
-spec receiver(pid()) -> {pos_integer(), slot() | none} | none.
receiver(Pid) ->
    case ets:lookup(?PIDS, Pid) of
        [{_, Id, Slot}] -> {Id, Slot};
        [] ->
            case witness_replay_births:id(Pid) of
                none -> none;
                Id -> {Id, slot(Id)}
            end
    end.

-doc "A process has made an alias: what has to be forgotten with it, if that is new. All that one makes have a row together.".
-spec alias(reference(), pos_integer()) -> [term()].
alias(Ref, Id) ->
    Owner = witness_replay_process:owner(Ref),
    New = ets:insert_new(?ALIASES, {Owner, Id}),
    %% Another one's there would be told by the end of the caller.
    Id = aliased(Ref),
    [Owner || New].

-doc "Whose alias it is, as long as that lives.".
-spec aliased(reference()) -> pos_integer() | none.
aliased(Ref) ->
    case ets:lookup(?ALIASES, witness_replay_process:owner(Ref)) of
        [{_, Id}] -> Id;
        [] -> none
    end.

-doc "Who has made aliases has ended.".
-spec forget([term()]) -> ok.
forget(Owners) -> lists:foreach(fun(Owner) -> ets:delete(?ALIASES, Owner) end, Owners).
