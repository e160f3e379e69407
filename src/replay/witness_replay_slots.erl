-module(witness_replay_slots).
-moduledoc """
Who stands in this VM for the processes of the recording: for those that live, and for those that somebody has to do with
before they begin. Of those that have ended nothing is kept.

Who is looked for has a row here, or has not begun, or has ended. Whoever ends says so (`witness_replay_flow:ended/2`) before its rows go, so who finds none
knows what that means when it looks there afterwards.
""".

-export([start/0, slot/1, begun/3, ended/2, receiver/1, alias/2, aliased/1, forget/1]).

-define(SLOTS, witness_replay_slots).
-define(PIDS, witness_replay_pids).
-define(ALIASES, witness_replay_aliases).

-doc "Makes the tables.".
-spec start() -> ok.
start() ->
    _ = [ets:new(Table, [named_table, public, {read_concurrency, true}]) || Table <- [?SLOTS, ?PIDS, ?ALIASES]],
    ok.

-doc "Who stands for a process, made when it is needed first. `none`: it has ended.".
-spec slot(pos_integer()) -> pid() | none.
slot(Id) ->
    case ets:lookup(?SLOTS, Id) of
        [{_, Slot}] -> Slot;
        [] ->
            case witness_replay_flow:has_ended(Id, witness_replay_flow:here()) of
                true -> none;
                false -> made(Id)
            end
    end.

%% It may have begun, and ended, meanwhile.
made(Id) ->
    Slot = spawn(witness_replay_life, place, [Id]),
    case ets:insert_new(?SLOTS, {Id, Slot}) andalso not witness_replay_flow:has_ended(Id, witness_replay_flow:here()) of
        true -> Slot;
        false ->
            true = ets:delete_object(?SLOTS, {Id, Slot}),
            true = exit(Slot, kill),
            slot(Id)
    end.

-doc "A process is about to begin.".
-spec begun(pos_integer(), pid(), Slot :: pid()) -> ok.
begun(Id, Pid, Slot) ->
    true = ets:insert(?PIDS, {Pid, Id, Slot}),
    ok.

-doc "A process has ended, and has said so.".
-spec ended(pos_integer(), pid()) -> ok.
ended(Id, Pid) ->
    true = ets:delete(?PIDS, Pid),
    true = ets:delete(?SLOTS, Id),
    ok.

-doc "The process that has a pid, and who stands for it. `none`: it is outside.".
-spec receiver(pid()) -> {pos_integer(), pid() | none} | none.
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
