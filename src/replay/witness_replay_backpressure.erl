-module(witness_replay_backpressure).
-moduledoc """
Backpressure between replayed processes: which process each one is blocked on, and its queue length.

A replay has no time: without a bound, senders and parents could run far ahead, and memory would grow with the length of the
recording. So this module bounds queue lengths and the number of live processes. Each process has two numbers, which all
processes can read: its state, and its queue length. They are in the process table with the live process
(`m:witness_replay_proxies`). A process that has ended has none. *Invariant:* a blocked process goes on when nothing else helps,
and not before.

*Throttling senders* (`sent/4`). A sender is throttled when more than 4,096 messages to its receiver were sent and not taken. It
goes on when half of them are taken.

*Why no process is throttled forever.* Each process waits for one other process at most; one that has not started waits for its
parent. So from the receiver on there is one chain:

- If it ends at a process that runs, or that waits to spawn, the sender keeps waiting.
- If it ends at a process that has ended, or returns to the sender, the sender goes on.
- If it has a cycle without the sender, the sender keeps waiting. A process of the cycle is throttled and goes on by itself, or
  a message to one of them is on its way. If neither is so, nothing runs, and the controller disables throttling (`let_go/0`).

If the last waiting process of the chain has messages in its mailbox, it has not run since they came: the sender keeps waiting.
The numbers may change while a process reads them, so it checks again.

*Receivers that never drain* would block every later sender. So a sender that is released by force subtracts one high-water mark
from the receiver's queue length.

*Ends* (`follows/5`). The message about the end of a process is in the log, so it comes without that process. A process that did
not wait would start all that comes later, while earlier work is still to be done. So before it takes such a message, it waits
in the same way until that process has nothing left but its end.

*Bounding live processes* (`begins/2`). While very many processes are alive, a process that wants to spawn waits. Otherwise all
work that came from outside in an hour would start at once. It goes on when enough processes have ended. It also goes on when
none runs, since the live processes may wait for the blocked ones. Blocked processes detect that here. If a process runs without
progress, the controller detects it (`more/0`). From then on more processes may be alive.

*Waking.* A blocked process checks again and again. In between it sleeps: the longer, the more processes are blocked. A process
that changes something by which others may go on wakes these (`m:witness_replay_parking`). Correctness does not depend on that;
it saves time.
""".

-export([start/1, new/0, begins/2, first/0, more/0, begun/1, waits/2, runs/1, sent/4, took/2, follows/5, last/1, ended/2, states/1, let_go/0]).

-export_type([flow/0]).

-doc "The numbers of a process.".
-opaque flow() :: atomics:atomics_ref().

%% The high-water mark: if more messages to a process were sent and not taken, its senders are throttled.
-define(CROWD, 4096).
%% If more messages than this are queued for a process, they are kept off its heap.
-define(MANY, 512).
%% The first limit of live processes: while so many are alive, none is spawned.
-define(MAY_LIVE, 1024).
%% About how many milliseconds without an end pass before a blocked process checks whether any process runs.
-define(WITHOUT_END, 8).
%% Maximum re-checks per millisecond, over all throttled processes, or over all that wait to spawn.
-define(LOOK, 32).
%% If no more than that are blocked, each checks so often without sleeping.
-define(YIELDS, 32).
%% Checks after which a message in a mailbox counts as one that is never taken.
-define(MANY_LOOKS, 1000).
%% In milliseconds, longer than any process sleeps.
-define(LONG, 1_000_000).
%% If more than this are throttled, a process that stops running wakes those that may go on now. Fewer check soon enough by
%% themselves.
-define(MANY_HELD, 1024).
%% It follows the chain so far.
-define(NEAR, 32).
%% The places of the numbers of all: live processes; their limit; whether a process checks whether any runs; whether throttling
%% is disabled; throttled processes; processes that wait to spawn; the number of live processes at the last check of one of
%% these; how many checks before found the same.
-define(LIVING, 1).
-define(MOST, 2).
-define(LOOKING, 3).
-define(LET_GO, 4).
-define(HELD, 5).
-define(BEGINNING, 6).
-define(LIVED, 7).
-define(THE_SAME, 8).
-define(NUMBERS, 8).
%% The places of the numbers of a process: its state, its queue length.
-define(STATE, 1).
-define(LIES, 2).
%% A positive state is the process that this one waits for. A negative state is the process that this one is throttled for.
-define(NOT_BEGUN, 0).
-define(RUNS, (1 bsl 57)).
-define(ENDED, (1 bsl 57 + 1)).
-define(BEGINS, (1 bsl 57 + 2)).
%% The queue length, negated, of a process that takes no message any more.
-define(NOTHING, (1 bsl 57)).
%% The maximum length of a chain.
-define(FAR, 1000).

-doc "Called before any process starts. `Parent`: returns the parent of a process.".
-spec start(Parent :: fun((pos_integer()) -> pos_integer() | none)) -> ok.
start(Parent) ->
    ok = persistent_term:put({?MODULE, parent}, Parent),
    ok = witness_replay_parking:start(),
    All = atomics:new(?NUMBERS, []),
    ok = atomics:put(All, ?MOST, ?MAY_LIVE),
    persistent_term:put(?MODULE, All).

%% The numbers of all.
all() -> persistent_term:get(?MODULE).

-doc "The numbers of a process that has not started.".
-spec new() -> flow().
new() -> atomics:new(2, []).

-doc "A process wants to spawn. It waits as long as very many processes are alive and at least one of them runs.".
-spec begins(pos_integer(), flow()) -> ok.
begins(Id, Flow) -> begins(Id, Flow, all()).

begins(Id, Flow, All) ->
    Most = atomics:get(All, ?MOST),
    case atomics:add_get(All, ?LIVING, 1) =< Most orelse atomics:get(All, ?LET_GO) =/= 0 of
        true -> ok;
        false ->
            ok = atomics:sub(All, ?LIVING, 1),
            ok = held(Id, Flow, ?BEGINS, none, fun(Looks) -> may_begin(Looks, Most, All) end, All),
            begins(Id, Flow, All)
    end.

-doc "A process without a recorded parent starts.".
-spec first() -> ok.
first() -> atomics:add(all(), ?LIVING, 1).

%% The caller is in this state while it checks whether it may go on. `End`: it also goes on when this process ends.
held(Id, Flow, State, End, MayGo, All) ->
    Kind = kind(State),
    ok = atomics:put(Flow, ?STATE, State),
    ok = atomics:add(All, Kind, 1),
    ok = looking(0, Id, State, End, MayGo, All),
    ok = atomics:sub(All, Kind, 1),
    runs(Flow).

%% The place of the number that counts it.
kind(?BEGINS) -> ?BEGINNING;
kind(For) when For < 0 -> ?HELD.

%% If only few are blocked, they yield first: a receiver takes all in less than a millisecond, and then no process would run.
looking(Looks, Id, State, End, MayGo, All) ->
    case MayGo(Looks) of
        true -> ok;
        false ->
            case Looks < ?YIELDS andalso atomics:get(All, kind(State)) =< ?LOOK of
                true ->
                    true = erlang:yield(),
                    looking(Looks + 1, Id, State, End, MayGo, All);
                false ->
                    Alias = witness_replay_parking:lies_down(State, Id, End),
                    ok = seeks(State, All),
                    ok = sleeping(max(?YIELDS, Looks), ?LONG, Alias, kind(State), MayGo, All),
                    witness_replay_parking:gets_up(State, Id, Alias)
            end
    end.

%% The more are blocked, the longer each sleeps: otherwise thousands that only check would take the time of the processes that
%% they wait for. A process may be woken slightly too early. Then it sleeps for short times first.
sleeping(Looks, Long, Alias, Kind, MayGo, All) ->
    case MayGo(Looks) of
        true -> ok;
        false ->
            case witness_replay_parking:sleep(Alias, min(Long, 1 + atomics:get(All, Kind) div ?LOOK)) of
                woken -> sleeping(Looks, 1, Alias, Kind, MayGo, All);
                over -> sleeping(Looks + 1, min(?LONG, 2 * Long), Alias, Kind, MayGo, All);
                ended -> ok
            end
    end.

%% A process that stops running wakes all that are throttled on the chain from it: it may have been the last one that ran for
%% one of them.
seeks(?BEGINS, _) -> ok;
seeks(For, All) ->
    case atomics:get(All, ?HELD) of
        Held when Held =< ?MANY_HELD -> ok;
        _ -> sought(abs(For), ?NEAR)
    end.

sought(_, 0) -> ok;
sought(Other, N) ->
    State = state(Other),
    ok = case State < 0 of true -> witness_replay_parking:wake(State, Other); false -> ok end,
    case next(Other, State) of
        none -> ok;
        Next -> sought(Next, N - 1)
    end.

may_begin(Looks, Most, All) ->
    Living = atomics:get(All, ?LIVING),
    case Living =< Most div 2 orelse atomics:get(All, ?MOST) > Most orelse atomics:get(All, ?LET_GO) =/= 0 of
        true -> true;
        false ->
            _ = Looks >= ?YIELDS andalso is_quiet(Living, All)
                andalso atomics:compare_exchange(All, ?LOOKING, 0, 1) =:= ok andalso looked(Living, All),
            false
    end.

%% Whether no process has ended for a while, measured by the number of checks since then.
is_quiet(Living, All) ->
    case atomics:exchange(All, ?LIVED, Living) of
        Living -> atomics:add_get(All, ?THE_SAME, 1) >= ?WITHOUT_END * min(?LOOK, atomics:get(All, ?BEGINNING));
        _ ->
            ok = atomics:put(All, ?THE_SAME, 0),
            false
    end.

%% A process that has a message and was not woken yet does not count as running, so there are two checks.
looked(Living, All) ->
    _ = not anybody_runs() andalso receive after 1 -> not anybody_runs() end
        andalso atomics:get(All, ?LIVING) =:= Living andalso more(),
    ok = atomics:put(All, ?THE_SAME, 0),
    atomics:put(All, ?LOOKING, 0).

anybody_runs() -> witness_replay_proxies:any(fun(Flow) -> atomics:get(Flow, ?STATE) =:= ?RUNS end).

-doc """
Raises the limit of live processes above their number, and above the last limit: some may have ended since processes were
blocked.
""".
-spec more() -> ok.
more() ->
    All = all(),
    Living = atomics:get(All, ?LIVING),
    ok = atomics:put(All, ?MOST, max(atomics:get(All, ?MOST) + 1, Living + max(?MAY_LIVE, Living div 4))),
    witness_replay_parking:wake(?BEGINS).

-doc "A process is about to start.".
-spec begun(flow()) -> ok.
begun(Flow) -> runs(Flow).

-doc "A process waits for a message of another one.".
-spec waits(pos_integer(), flow()) -> ok.
waits(From, Flow) ->
    ok = atomics:put(Flow, ?STATE, From),
    seeks(From, all()).

-doc "A process does not wait any more.".
-spec runs(flow()) -> ok.
runs(Flow) -> atomics:put(Flow, ?STATE, ?RUNS).

-doc "The caller has taken a message that another one has sent.".
-spec took(pos_integer(), flow()) -> ok.
took(Id, Flow) ->
    case atomics:sub_get(Flow, ?LIES, 1) of
        %% Off the heap, so many messages are not moved at each garbage collection. For few it costs more than it saves.
        N when N > ?MANY ->
            _ = process_flag(message_queue_data, off_heap),
            case N of
                ?CROWD div 2 -> witness_replay_parking:wake(-Id);
                _ -> ok
            end;
        _ -> ok
    end.

-doc "A process takes no message any more: no process has to wait for that.".
-spec last(flow()) -> ok.
last(Flow) -> atomics:put(Flow, ?LIES, -?NOTHING).

-doc "A process has ended. If this is called twice, it counts once.".
-spec ended(pos_integer(), flow()) -> ok.
ended(Id, Flow) ->
    ok = last(Flow),
    All = all(),
    case atomics:exchange(Flow, ?STATE, ?ENDED) of
        ?ENDED -> ok;
        State ->
            %% It was killed while it was blocked.
            ok = case State =:= ?BEGINS orelse State < 0 of
                true ->
                    ok = witness_replay_parking:forget(State, Id),
                    atomics:sub(All, kind(State), 1);
                false -> ok
            end,
            atomics:sub(All, ?LIVING, 1)
    end.

-doc "A process has sent a message to another one, and waits as long as the queue there is too long.".
-spec sent(pos_integer(), flow(), pos_integer(), flow()) -> ok.
sent(Id, Flow, To, ToFlow) ->
    case atomics:add_get(ToFlow, ?LIES, 1) of
        N when N > ?CROWD, Id =/= To ->
            All = all(),
            held(Id, Flow, -To, none, fun(Looks) -> may_send(Looks, Id, To, ToFlow, All) end, All);
        _ -> ok
    end.

may_send(Looks, Id, To, ToFlow, All) ->
    atomics:get(ToFlow, ?LIES) =< ?CROWD div 2 orelse
        needs(Looks, To, Id, All) andalso atomics:sub(ToFlow, ?LIES, ?CROWD) =:= ok.

%% Whether only this process makes the other one go on. Before it checks that, it lets others run. The answer is no if the last
%% process of the chain has a message that it has not taken: the process that it seems to wait for may have sent it, and may
%% have ended, or wait itself.
needs(Looks, Other, Id, All) ->
    atomics:get(All, ?LET_GO) =/= 0 orelse Looks >= ?YIELDS andalso
        case follow(Other, Id, none, 1, true) of
            {waits, Who, For} -> Looks > ?MANY_LOOKS orelse has_taken(Who) andalso state(Who) =:= For;
            Needs -> Needs
        end.

%% `Mark`: a process on the chain. It moves ahead as the chain gets longer, so a search in a cycle meets it. `Needs`: the result
%% if the next process does nothing more for the one before. A process that is throttled for the next one goes on by itself
%% then.
follow(Id, Id, _, _, false) -> true;
follow(Id, Id, _, _, Needs) -> Needs;
follow(Mark, _, Mark, _, _) -> false;
follow(_, _, _, ?FAR, _) -> false;
follow(Other, Id, Mark, N, Needs) ->
    Ahead = case N band (N - 1) of 0 -> Other; _ -> Mark end,
    State = state(Other),
    case next(Other, State) of
        none -> (State =:= ?ENDED orelse State =:= ?NOT_BEGUN) andalso Needs;
        Next when State =:= ?NOT_BEGUN -> follow(Next, Id, Ahead, N + 1, Needs);
        Next when State > 0 -> follow(Next, Id, Ahead, N + 1, {waits, Other, Next});
        Next -> follow(Next, Id, Ahead, N + 1, false)
    end.

%% The process that one in this state waits for, or is throttled for. A process that has not started waits for its parent.
next(_, State) when State >= ?RUNS -> none;
next(Other, ?NOT_BEGUN) -> (persistent_term:get({?MODULE, parent}))(Other);
next(_, For) -> abs(For).

has_taken(Id) ->
    case witness_replay_proxies:known(Id) of
        {Slot, _} ->
            case process_info(Slot, message_queue_len) of
                {message_queue_len, N} when N > 0 -> false;
                _ -> true
            end;
        _ -> false
    end.

state(Id) ->
    case witness_replay_proxies:known(Id) of
        {_, Flow} -> atomics:get(Flow, ?STATE);
        not_begun -> ?NOT_BEGUN;
        ended -> ?ENDED
    end.

-doc """
A process is about to take the end of another one, which is alive in this VM. It waits until that one has nothing left but its
end, unless that one needs this process to go on.
""".
-spec follows(pos_integer(), flow(), pos_integer(), Slot :: pid(), flow()) -> ok.
follows(Id, Flow, Other, Slot, OtherFlow) ->
    case is_last(OtherFlow) of
        true -> ok;
        false ->
            All = all(),
            held(Id, Flow, -Other, Slot, fun(Looks) -> is_last(OtherFlow) orelse needs(Looks, Other, Id, All) end, All)
    end.

%% Only its end is left. If it was killed, it may go on forever, without an entry.
is_last(Flow) -> atomics:get(Flow, ?LIES) < -(?NOTHING div 2).

-doc """
Disables throttling and the limit of live processes, for good. Called if nothing runs any more, or if processes stop at limits.
""".
-spec let_go() -> ok.
let_go() ->
    ok = atomics:put(all(), ?LET_GO, 1),
    witness_replay_parking:wake().

-doc "For each of these processes that is blocked: the one that it waits for, or is throttled for; `begins`: it waits to spawn.".
-spec states([pos_integer()]) -> #{pos_integer() => {waits | held, pos_integer()} | begins}.
states(Ids) -> #{Id => told(State) || Id <- Ids, State <- [state(Id)], State =/= ?NOT_BEGUN, State =/= ?RUNS, State =/= ?ENDED}.

told(?BEGINS) -> begins;
told(For) when For > 0 -> {waits, For};
told(For) -> {held, -For}.
