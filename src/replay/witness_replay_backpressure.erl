-module(witness_replay_backpressure).
-moduledoc """
Backpressure between replayed processes: which process each one is blocked on, and its queue length.

A replay has no time: without a bound, senders and parents could run far ahead, and memory would grow with the length of the
recording. So this module bounds queue lengths and the number of live processes. Each process has two numbers, which all
processes can read: its state, and its queue length. They are in the table of proxies with the live process
(`m:witness_replay_proxies`). A process that has ended has none. *Invariant:* a blocked process goes on when nothing else helps,
and not before.

*Throttling senders* (`throttle/4`). A sender is throttled when more than 4,096 messages to its receiver were sent and not taken.
It goes on when half of them are taken.

*Why no process is throttled forever.* Each process waits for one other process at most; one that has not started waits for its
parent. So from the receiver on there is one chain:

- If it ends at a process that runs, or that waits to spawn, the sender keeps waiting.
- If it ends at a process that has ended, or returns to the sender, the sender goes on.
- If it has a cycle without the sender, the sender keeps waiting. A process of the cycle is throttled and goes on by itself, or
  a message to one of them is on its way. If neither is so, nothing runs, and the controller disables throttling (`disable/0`).

If the last waiting process of the chain has messages in its mailbox, it has not run since they came: the sender keeps waiting.
The numbers may change while a process reads them, so it checks again.

*Receivers that never drain* would block every later sender. So a sender that is released by force subtracts one high-water mark
from the receiver's queue length.

*Ends* (`wait_for_end/5`). The message about the end of a process is in the log, so it comes without that process. A process that
did not wait would start all that comes later, while earlier work is still to be done. So before it takes such a message, it waits
in the same way until that process has nothing left but its end.

*Bounding live processes* (`wait_to_spawn/2`). While very many processes are alive, a process that wants to spawn waits.
Otherwise all work that came from outside in an hour would start at once. It goes on when enough processes have ended. It also
goes on when none runs, since the live processes may wait for the blocked ones. Blocked processes detect that here. If a process
runs without progress, the controller detects it (`raise_limit/0`). From then on more processes may be alive.

*Waking.* A blocked process checks again and again. In between it sleeps: the longer, the more processes are blocked. A process
that changes something by which others may go on wakes these (`m:witness_replay_parking`). Correctness does not depend on that;
it saves time.
""".

-export([start/1, wait_to_spawn/2, count_live/0, raise_limit/0, handle_start/1, set_waiting/2, set_running/1, throttle/4,
         count_taken/2, wait_for_end/5, release_senders/1, handle_exit/2, states/1, disable/0]).

-type flow() :: witness_replay_proxies:flow().

%% The high-water mark: if more messages to a process were sent and not taken, its senders are throttled.
-define(HIGH_WATER, 4096).
%% If more messages than this are queued for a process, they are kept off its heap.
-define(OFF_HEAP_ABOVE, 512).
%% The first limit of live processes: while so many are alive, none is spawned.
-define(FIRST_MAX_LIVE, 1024).
%% About how many milliseconds without an end pass before a blocked process checks whether any process runs.
-define(NO_END_MS, 8).
%% Maximum re-checks per millisecond, over all throttled processes, or over all that wait to spawn.
-define(CHECKS_PER_MS, 32).
%% If no more than that are blocked, each checks so often without sleeping.
-define(MAX_YIELDS, 32).
%% Checks after which a message in a mailbox counts as one that is never taken.
-define(MAX_CHECKS, 1000).
%% In milliseconds, longer than any process sleeps.
-define(MAX_SLEEP_MS, 1_000_000).
%% If more than this are throttled, a process that stops running wakes those that may go on now. Fewer check soon enough by
%% themselves.
-define(WAKE_ABOVE, 1024).
%% It follows the chain so far.
-define(MAX_WAKE_STEPS, 32).
%% The places of the numbers of all: live processes; their limit; whether a process checks whether any runs; whether throttling
%% is disabled; throttled processes; processes that wait to spawn; the number of live processes at the last check of one of
%% these; how many checks before found the same.
-define(LIVE, 1).
-define(MAX_LIVE, 2).
-define(CHECKING, 3).
-define(DISABLED, 4).
-define(THROTTLED, 5).
-define(SPAWNING, 6).
-define(LAST_LIVE, 7).
-define(SAME_CHECKS, 8).
-define(COUNTERS, 8).
%% The places of the numbers of a process: its state, its queue length.
-define(STATE, 1).
-define(QUEUED, 2).
%% A positive state is the process that this one waits for. A negative state is the process that this one is throttled for.
-define(NOT_STARTED, 0).
-define(RUNNING, (1 bsl 57)).
-define(ENDED, (1 bsl 57 + 1)).
-define(WAITS_TO_SPAWN, (1 bsl 57 + 2)).
%% The queue length, negated, of a process that takes no message any more.
-define(TAKES_NONE, (1 bsl 57)).
%% The maximum length of a chain.
-define(MAX_CHAIN, 1000).

-doc "Called before any process starts. `Parent`: returns the parent of a process.".
-spec start(Parent :: fun((pos_integer()) -> pos_integer() | none)) -> ok.
start(Parent) ->
    ok = persistent_term:put({?MODULE, parent}, Parent),
    ok = witness_replay_parking:start(),
    All = atomics:new(?COUNTERS, []),
    ok = atomics:put(All, ?MAX_LIVE, ?FIRST_MAX_LIVE),
    persistent_term:put(?MODULE, All).

%% The numbers of all.
counters() -> persistent_term:get(?MODULE).

-doc "A process wants to spawn. It waits as long as very many processes are alive and at least one of them runs.".
-spec wait_to_spawn(pos_integer(), flow()) -> ok.
wait_to_spawn(Id, Flow) -> wait_to_spawn(Id, Flow, counters()).

wait_to_spawn(Id, Flow, All) ->
    Most = atomics:get(All, ?MAX_LIVE),
    case atomics:add_get(All, ?LIVE, 1) =< Most orelse atomics:get(All, ?DISABLED) =/= 0 of
        true -> ok;
        false ->
            ok = atomics:sub(All, ?LIVE, 1),
            ok = block(Id, Flow, ?WAITS_TO_SPAWN, none, fun(Looks) -> may_spawn(Looks, Most, All) end, All),
            wait_to_spawn(Id, Flow, All)
    end.

-doc "A process without a recorded parent starts.".
-spec count_live() -> ok.
count_live() -> atomics:add(counters(), ?LIVE, 1).

%% The caller is in this state while it checks whether it may go on. `End`: it also goes on when this process ends.
block(Id, Flow, State, End, MayGo, All) ->
    Kind = counter(State),
    ok = atomics:put(Flow, ?STATE, State),
    ok = atomics:add(All, Kind, 1),
    ok = wait_until(0, Id, State, End, MayGo, All),
    ok = atomics:sub(All, Kind, 1),
    set_running(Flow).

%% The place of the number that counts it.
counter(?WAITS_TO_SPAWN) -> ?SPAWNING;
counter(For) when For < 0 -> ?THROTTLED.

%% If only few are blocked, they yield first: a receiver takes all in less than a millisecond, and then no process would run.
wait_until(Looks, Id, State, End, MayGo, All) ->
    case MayGo(Looks) of
        true -> ok;
        false ->
            case Looks < ?MAX_YIELDS andalso atomics:get(All, counter(State)) =< ?CHECKS_PER_MS of
                true ->
                    true = erlang:yield(),
                    wait_until(Looks + 1, Id, State, End, MayGo, All);
                false ->
                    Alias = witness_replay_parking:park(State, Id, End),
                    ok = wake_throttled(State, All),
                    ok = sleep_until(max(?MAX_YIELDS, Looks), ?MAX_SLEEP_MS, Alias, counter(State), MayGo, All),
                    witness_replay_parking:unpark(State, Id, Alias)
            end
    end.

%% The more are blocked, the longer each sleeps: otherwise thousands that only check would take the time of the processes that
%% they wait for. A process may be woken slightly too early. Then it sleeps for short times first.
sleep_until(Looks, Long, Alias, Kind, MayGo, All) ->
    case MayGo(Looks) of
        true -> ok;
        false ->
            case witness_replay_parking:sleep(Alias, min(Long, 1 + atomics:get(All, Kind) div ?CHECKS_PER_MS)) of
                woken -> sleep_until(Looks, 1, Alias, Kind, MayGo, All);
                over -> sleep_until(Looks + 1, min(?MAX_SLEEP_MS, 2 * Long), Alias, Kind, MayGo, All);
                ended -> ok
            end
    end.

%% A process that stops running wakes all that are throttled on the chain from it: it may have been the last one that ran for
%% one of them.
wake_throttled(?WAITS_TO_SPAWN, _) -> ok;
wake_throttled(For, All) ->
    case atomics:get(All, ?THROTTLED) of
        Held when Held =< ?WAKE_ABOVE -> ok;
        _ -> wake_chain(abs(For), ?MAX_WAKE_STEPS)
    end.

wake_chain(_, 0) -> ok;
wake_chain(Other, N) ->
    State = state(Other),
    ok = case State < 0 of true -> witness_replay_parking:wake(State, Other); false -> ok end,
    case waits_for(Other, State) of
        none -> ok;
        Next -> wake_chain(Next, N - 1)
    end.

may_spawn(Looks, Most, All) ->
    Living = atomics:get(All, ?LIVE),
    case Living =< Most div 2 orelse atomics:get(All, ?MAX_LIVE) > Most orelse atomics:get(All, ?DISABLED) =/= 0 of
        true -> true;
        false ->
            _ = Looks >= ?MAX_YIELDS andalso is_quiet(Living, All)
                andalso atomics:compare_exchange(All, ?CHECKING, 0, 1) =:= ok andalso check_running(Living, All),
            false
    end.

%% Whether no process has ended for a while, measured by the number of checks since then.
is_quiet(Living, All) ->
    case atomics:exchange(All, ?LAST_LIVE, Living) of
        Living -> atomics:add_get(All, ?SAME_CHECKS, 1) >= ?NO_END_MS * min(?CHECKS_PER_MS, atomics:get(All, ?SPAWNING));
        _ ->
            ok = atomics:put(All, ?SAME_CHECKS, 0),
            false
    end.

%% A process that has a message and was not woken yet does not count as running, so there are two checks.
check_running(Living, All) ->
    _ = not is_any_running() andalso receive after 1 -> not is_any_running() end
        andalso atomics:get(All, ?LIVE) =:= Living andalso raise_limit(),
    ok = atomics:put(All, ?SAME_CHECKS, 0),
    atomics:put(All, ?CHECKING, 0).

is_any_running() -> witness_replay_proxies:any(fun(Flow) -> atomics:get(Flow, ?STATE) =:= ?RUNNING end).

-doc """
Raises the limit of live processes above their number, and above the last limit: some may have ended since processes were
blocked.
""".
-spec raise_limit() -> ok.
raise_limit() ->
    All = counters(),
    Living = atomics:get(All, ?LIVE),
    ok = atomics:put(All, ?MAX_LIVE, max(atomics:get(All, ?MAX_LIVE) + 1, Living + max(?FIRST_MAX_LIVE, Living div 4))),
    witness_replay_parking:wake(?WAITS_TO_SPAWN).

-doc "A process is about to start.".
-spec handle_start(flow()) -> ok.
handle_start(Flow) -> set_running(Flow).

-doc "A process waits for a message of another one.".
-spec set_waiting(pos_integer(), flow()) -> ok.
set_waiting(From, Flow) ->
    ok = atomics:put(Flow, ?STATE, From),
    wake_throttled(From, counters()).

-doc "A process does not wait any more.".
-spec set_running(flow()) -> ok.
set_running(Flow) -> atomics:put(Flow, ?STATE, ?RUNNING).

-doc "The caller has taken a message that another one has sent.".
-spec count_taken(pos_integer(), flow()) -> ok.
count_taken(Id, Flow) ->
    case atomics:sub_get(Flow, ?QUEUED, 1) of
        %% Off the heap, so many messages are not moved at each garbage collection. For few it costs more than it saves.
        N when N > ?OFF_HEAP_ABOVE ->
            _ = process_flag(message_queue_data, off_heap),
            case N of
                ?HIGH_WATER div 2 -> witness_replay_parking:wake(-Id);
                _ -> ok
            end;
        _ -> ok
    end.

-doc "A process takes no message any more: no process has to wait for that.".
-spec release_senders(flow()) -> ok.
release_senders(Flow) -> atomics:put(Flow, ?QUEUED, -?TAKES_NONE).

-doc "A process has ended. If this is called twice, it counts once.".
-spec handle_exit(pos_integer(), flow()) -> ok.
handle_exit(Id, Flow) ->
    ok = release_senders(Flow),
    All = counters(),
    case atomics:exchange(Flow, ?STATE, ?ENDED) of
        ?ENDED -> ok;
        State ->
            %% It was killed while it was blocked.
            ok = case State =:= ?WAITS_TO_SPAWN orelse State < 0 of
                true ->
                    ok = witness_replay_parking:forget(State, Id),
                    atomics:sub(All, counter(State), 1);
                false -> ok
            end,
            atomics:sub(All, ?LIVE, 1)
    end.

-doc "A process has sent a message to another one, and waits as long as the queue there is too long.".
-spec throttle(pos_integer(), flow(), pos_integer(), flow()) -> ok.
throttle(Id, Flow, To, ToFlow) ->
    case atomics:add_get(ToFlow, ?QUEUED, 1) of
        N when N > ?HIGH_WATER, Id =/= To ->
            All = counters(),
            block(Id, Flow, -To, none, fun(Looks) -> may_send(Looks, Id, To, ToFlow, All) end, All);
        _ -> ok
    end.

may_send(Looks, Id, To, ToFlow, All) ->
    atomics:get(ToFlow, ?QUEUED) =< ?HIGH_WATER div 2 orelse
        is_needed(Looks, To, Id, All) andalso atomics:sub(ToFlow, ?QUEUED, ?HIGH_WATER) =:= ok.

%% Whether only this process makes the other one go on. Before it checks that, it lets others run. The answer is no if the last
%% process of the chain has a message that it has not taken: the process that it seems to wait for may have sent it, and may
%% have ended, or wait itself.
is_needed(Looks, Other, Id, All) ->
    atomics:get(All, ?DISABLED) =/= 0 orelse Looks >= ?MAX_YIELDS andalso
        case follow_chain(Other, Id, none, 1, true) of
            {waits, Who, For} -> Looks > ?MAX_CHECKS orelse has_taken(Who) andalso state(Who) =:= For;
            Needs -> Needs
        end.

%% `Mark`: a process on the chain. It moves ahead as the chain gets longer, so a search in a cycle meets it. `Needs`: the result
%% if the next process does nothing more for the one before. A process that is throttled for the next one goes on by itself
%% then.
follow_chain(Id, Id, _, _, false) -> true;
follow_chain(Id, Id, _, _, Needs) -> Needs;
follow_chain(Mark, _, Mark, _, _) -> false;
follow_chain(_, _, _, ?MAX_CHAIN, _) -> false;
follow_chain(Other, Id, Mark, N, Needs) ->
    Ahead = case N band (N - 1) of 0 -> Other; _ -> Mark end,
    State = state(Other),
    case waits_for(Other, State) of
        none -> (State =:= ?ENDED orelse State =:= ?NOT_STARTED) andalso Needs;
        Next when State =:= ?NOT_STARTED -> follow_chain(Next, Id, Ahead, N + 1, Needs);
        Next when State > 0 -> follow_chain(Next, Id, Ahead, N + 1, {waits, Other, Next});
        Next -> follow_chain(Next, Id, Ahead, N + 1, false)
    end.

%% The process that one in this state waits for, or is throttled for. A process that has not started waits for its parent.
waits_for(_, State) when State >= ?RUNNING -> none;
waits_for(Other, ?NOT_STARTED) -> (persistent_term:get({?MODULE, parent}))(Other);
waits_for(_, For) -> abs(For).

has_taken(Id) ->
    case witness_replay_proxies:lookup(Id) of
        {Proxy, _} ->
            case process_info(Proxy, message_queue_len) of
                {message_queue_len, N} when N > 0 -> false;
                _ -> true
            end;
        _ -> false
    end.

state(Id) ->
    case witness_replay_proxies:lookup(Id) of
        {_, Flow} -> atomics:get(Flow, ?STATE);
        not_begun -> ?NOT_STARTED;
        ended -> ?ENDED
    end.

-doc """
A process is about to take the end of another one, which is alive in this VM. It waits until that one has nothing left but its
end, unless that one needs this process to go on.
""".
-spec wait_for_end(pos_integer(), flow(), pos_integer(), Proxy :: pid(), flow()) -> ok.
wait_for_end(Id, Flow, Other, Proxy, OtherFlow) ->
    case is_last(OtherFlow) of
        true -> ok;
        false ->
            All = counters(),
            block(Id, Flow, -Other, Proxy, fun(Looks) -> is_last(OtherFlow) orelse is_needed(Looks, Other, Id, All) end, All)
    end.

%% Only its end is left. If it was killed, it may go on forever, without an entry.
is_last(Flow) -> atomics:get(Flow, ?QUEUED) < -(?TAKES_NONE div 2).

-doc """
Disables throttling and the limit of live processes, for good. Called if nothing runs any more, or if processes stop at limits.
""".
-spec disable() -> ok.
disable() ->
    ok = atomics:put(counters(), ?DISABLED, 1),
    witness_replay_parking:wake().

-doc "For each of these processes that is blocked: the one that it waits for, or is throttled for; `begins`: it waits to spawn.".
-spec states([pos_integer()]) -> #{pos_integer() => {waits | held, pos_integer()} | begins}.
states(Ids) ->
    #{Id => blocked_on(State) || Id <- Ids, State <- [state(Id)],
                                 State =/= ?NOT_STARTED, State =/= ?RUNNING, State =/= ?ENDED}.

blocked_on(?WAITS_TO_SPAWN) -> begins;
blocked_on(For) when For > 0 -> {waits, For};
blocked_on(For) -> {held, -For}.
