-module(witness_replay_log).
-moduledoc """
Reads a recording for the processes that replay it.

The reader is a process of its own, since the files of a recording belong to the process that has opened them. It gives out
entries in batches (`next/1`, called by `m:witness_replay_process`), and keeps none. *Invariant:* memory has one batch of
entries for each live process. The reader itself keeps a place in the log for each live process. It also keeps sixteen bytes for
each exit reason, from the first `has_same_exit/2` on.
""".

-export([start/1, next/1, birth/2, forget/1, has_same_exit/2]).

-export_type([entries/0]).

-doc "The next entries of a process, and whether there may be more.".
-type entries() :: {[witness_log_recording:run() | witness_log_recording:ordered()], More :: boolean()}.

%% Entries of a batch.
-define(BATCH_ENTRIES, 64).

-doc "Starts the reader. It ends with the caller.".
-spec start(witness_log_recording:recording()) -> pid().
start(Recording) ->
    Owner = self(),
    spawn_link(fun() ->
        %% Thousands of processes may ask at the same time, and what is read is garbage soon. Its collection must not go through
        %% all their messages.
        _ = process_flag(message_queue_data, off_heap),
        register(?MODULE, self()),
        Owner ! {?MODULE, ready},
        _ = witness_log_recording:with_cursors(fun(Cursor) -> loop(Cursor, #{}, none, Recording) end, Recording)
    end).

-doc "What a process does next in the recording. `{error, _}`: it cannot be read.".
-spec next(pos_integer()) -> {ok, entries()} | {error, witness_log_recording:error()}.
next(Id) -> ask({next, Id}).

-doc "The birth of a process, by the place of its block in the recording.".
-spec birth(non_neg_integer(), pos_integer()) ->
    {ok, witness_log_recording_process:birth()} | none | {error, witness_log_recording:error()}.
birth(Place, Id) -> ask({birth, Place, Id}).

-doc "A process has ended: its place is not needed any more.".
-spec forget(pos_integer()) -> ok.
forget(Id) ->
    ?MODULE ! {forget, Id},
    ok.

-doc "Whether another process has ended with the same exit reason (`witness_replay_reason:same/2`).".
-spec has_same_exit(pos_integer(), term()) -> boolean().
has_same_exit(Id, Reason) -> ask({shared, Id, Reason}).

ask(Question) ->
    Ref = make_ref(),
    ?MODULE ! {Question, self(), Ref},
    receive {Ref, Answer} -> Answer end.

%% All exit reasons are read at the first question for one: a single answer takes as long.
loop(Cursor, Places, Reasons, Recording) ->
    receive
        {{next, Id}, From, Ref} ->
            {Answer, Places1} = read(Id, Cursor, Places),
            From ! {Ref, Answer},
            loop(Cursor, Places1, Reasons, Recording);
        {{birth, Place, Id}, From, Ref} ->
            From ! {Ref, witness_log_recording:birth(Place, Id, Recording)},
            loop(Cursor, Places, Reasons, Recording);
        {{shared, _, _}, _, _} = Question when Reasons =:= none ->
            self() ! Question,
            loop(Cursor, Places, reasons(Recording), Recording);
        {{shared, Id, Reason}, From, Ref} ->
            From ! {Ref, is_shared(Id, Reason, Reasons)},
            loop(Cursor, Places, Reasons, Recording);
        {forget, Id} -> loop(Cursor, maps:remove(Id, Places), Reasons, Recording)
    end.

read(Id, Cursor, Places) ->
    Place = case Places of
        #{Id := Known} -> {ok, Known};
        #{} -> Cursor(Id)
    end,
    case Place of
        {ok, none} -> {{ok, {[], false}}, Places};
        {ok, Begin} ->
            case entries(?BATCH_ENTRIES, Begin, []) of
                {ok, Entries, Next} -> {{ok, {Entries, true}}, Places#{Id => Next}};
                {done, Entries} -> {{ok, {Entries, false}}, maps:remove(Id, Places)};
                {error, _} = Error -> {Error, Places}
            end;
        {error, _} = Error -> {Error, Places}
    end.

%% A process that has nothing left but its end has to know that, so the end comes with the batch.
entries(0, Place, Entries) ->
    case witness_log_recording_cursor:next(Place) of
        {ok, {exit, _} = Exit, _} -> {done, lists:reverse(Entries, [Exit])};
        {ok, waited, Next} -> entries(0, Next, [waited | Entries]);
        done -> {done, lists:reverse(Entries)};
        _ -> {ok, lists:reverse(Entries), Place}
    end;
entries(N, Place, Entries) ->
    case witness_log_recording_cursor:next(Place) of
        {ok, Entry, Next} -> entries(N - 1, Next, [Entry | Entries]);
        done -> {done, lists:reverse(Entries)};
        {error, _} = Error -> Error
    end.

%% For each reason except `normal' the process that ended with it, or `many'. An end that cannot be read does not count.
reasons(Recording) ->
    lists:foldl(fun(Id, Reasons) ->
        case witness_log_recording:fold_runs(fun({exit, _} = Exit, _) -> Exit; (_, Exit) -> Exit end, none, Id, Recording) of
            {ok, {exit, Reason}} when Reason =/= normal ->
                maps:update_with(witness_replay_reason:digest(Reason), fun(_) -> many end, Id, Reasons);
            _ -> Reasons
        end
    end, #{}, witness_log_recording:ids(Recording)).

is_shared(Id, Reason, Reasons) ->
    case maps:get(witness_replay_reason:digest(Reason), Reasons, Id) of
        Id -> false;
        _ -> true
    end.
