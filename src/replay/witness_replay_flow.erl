-module(witness_replay_flow).
-moduledoc """
Who waits for whom, and how much lies before each process that is replayed: two numbers for each, which all see at once.

A sender that is far ahead of its receiver is *held*, so that what is in memory does not grow with the length of a
recording. Nobody is held for ever: each process waits for one other at most, so from the receiver on there is one
way, and it leads to a process that runs, and then there is a reason to wait; or to one that has ended or not begun,
or back to the sender, and then the sender goes on. Where it goes round in circles without the sender, one of those is
held and goes on, or a message is on its way to one of them. Should it not be so, nothing runs, and then nobody is
held any more (`let_go/1`). Whoever reads these numbers while they change may go on too early, which costs memory and
nothing else, or looks again.

Who is told of the end of a process waits for it in the same way: the message is in the log, and nobody has to send
it, but who does not wait begins all that comes after, while what came before is still to be done.

What lies before a process that takes none of it would hold every further sender. So a sender that goes on because it
had to takes as much off the receiver's number as may lie before one.
""".

-export([start/1, here/0, begun/2, waits/3, runs/2, sent/3, took/2, follows/4, last/2, ended/2, states/2, let_go/1]).

-export_type([flow/0]).

-opaque flow() :: atomics:atomics_ref().

%% Messages that lie before a process and have not been taken, from which on senders are held.
-define(CROWD, 4096).
%% Messages that lie before a process, from which on they are kept off its heap.
-define(MANY, 512).
%% Whom a process waits for is a positive number, whom it is held for a negative one.
-define(NOT_BEGUN, 0).
-define(RUNS, (1 bsl 60)).
-define(ENDED, (1 bsl 61)).
%% So far it is followed who waits for whom.
-define(FAR, 1000).

-doc "For processes up to this one. Called before any of them begins.".
-spec start(non_neg_integer()) -> ok.
start(Last) -> persistent_term:put(?MODULE, atomics:new(2 * Last + 1, [])).

-doc "The numbers of this VM.".
-spec here() -> flow().
here() -> persistent_term:get(?MODULE).

-doc "A process is about to begin.".
-spec begun(pos_integer(), flow()) -> ok.
begun(Id, Flow) -> runs(Id, Flow).

-doc "A process waits for a message of another one.".
-spec waits(pos_integer(), pos_integer(), flow()) -> ok.
waits(Id, From, Flow) -> atomics:put(Flow, 2 * Id - 1, From).

-doc "It does not any more.".
-spec runs(pos_integer(), flow()) -> ok.
runs(Id, Flow) -> atomics:put(Flow, 2 * Id - 1, ?RUNS).

-doc "The caller has taken a message that another one has sent.".
-spec took(pos_integer(), flow()) -> ok.
took(Id, Flow) ->
    case atomics:sub_get(Flow, 2 * Id, 1) of
        %% So many need not be moved each time that it collects; of few that costs more than it saves.
        N when N > ?MANY ->
            _ = process_flag(message_queue_data, off_heap),
            ok;
        _ -> ok
    end.

-doc "A process takes no message any more: nobody has to wait for that.".
-spec last(pos_integer(), flow()) -> ok.
last(Id, Flow) -> atomics:put(Flow, 2 * Id, -?ENDED).

-doc "A process has ended.".
-spec ended(pos_integer(), flow()) -> ok.
ended(Id, Flow) ->
    ok = last(Id, Flow),
    atomics:put(Flow, 2 * Id - 1, ?ENDED).

-doc "A process has sent a message to another one, and waits as long as too much lies there.".
-spec sent(pos_integer(), pos_integer(), flow()) -> ok.
sent(Id, To, Flow) ->
    case atomics:add_get(Flow, 2 * To, 1) of
        N when N > ?CROWD, Id =/= To ->
            ok = atomics:put(Flow, 2 * Id - 1, -To),
            ok = held(Id, To, Flow),
            runs(Id, Flow);
        _ -> ok
    end.

held(Id, To, Flow) ->
    case {atomics:get(Flow, 2 * To), needs(To, Id, Flow)} of
        {N, _} when N =< ?CROWD div 2 -> ok;
        {_, true} -> atomics:sub(Flow, 2 * To, ?CROWD);
        {_, false} ->
            receive after 1 -> held(Id, To, Flow) end
    end.

%% Whether nothing but this one makes the other one go on.
needs(To, Id, Flow) -> atomics:get(Flow, last_of(Flow)) =/= 0 orelse needs(To, Id, Flow, ?FAR).

needs(Id, Id, _, _) -> true;
needs(_, _, _, 0) -> false;
needs(Other, Id, Flow, Left) ->
    case atomics:get(Flow, 2 * Other - 1) of
        ?RUNS -> false;
        ?ENDED -> true;
        ?NOT_BEGUN -> true;
        Next -> needs(abs(Next), Id, Flow, Left - 1)
    end.

-doc """
A process is about to be told of the end of another one, for which a process of this VM stands: it waits until that
has nothing left to do, as long as nobody waits for it.
""".
-spec follows(pos_integer(), pos_integer(), Slot :: pid(), flow()) -> ok.
follows(Id, Other, Slot, Flow) ->
    case is_last(Other, Flow) of
        true -> ok;
        false ->
            Ref = monitor(process, Slot),
            ok = atomics:put(Flow, 2 * Id - 1, -Other),
            ok = following(Id, Other, Ref, Flow),
            true = demonitor(Ref, [flush]),
            runs(Id, Flow)
    end.

following(Id, Other, Ref, Flow) ->
    case is_last(Other, Flow) orelse needs(Other, Id, Flow) of
        true -> ok;
        false ->
            receive {'DOWN', Ref, process, _, _} -> ok
            after 1 -> following(Id, Other, Ref, Flow)
            end
    end.

%% One that was killed may do something for ever that is no entry.
is_last(Id, Flow) -> atomics:get(Flow, 2 * Id) < -(?ENDED div 2).

-doc "From now on nobody is held: nothing runs any more, or who runs is not said here.".
-spec let_go(flow()) -> ok.
let_go(Flow) -> atomics:put(Flow, last_of(Flow), 1).

last_of(Flow) ->
    #{size := Last} = atomics:info(Flow),
    Last.

-doc "Of these processes: whom each waits for, or is held for.".
-spec states([pos_integer()], flow()) -> #{pos_integer() => {waits | held, pos_integer()}}.
states(Ids, Flow) ->
    #{Id => case State > 0 of true -> {waits, State}; false -> {held, -State} end
      || Id <- Ids, State <- [atomics:get(Flow, 2 * Id - 1)], State =/= ?NOT_BEGUN, State =/= ?RUNS, State =/= ?ENDED}.
