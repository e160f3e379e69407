-module(witness_replay_flow).
-moduledoc """
Who waits for whom, and how much lies before each process that is replayed: two numbers for each, which all see at once.

A sender that is far ahead of its receiver is *held*, so that what is in memory does not grow with the length of a
recording. Nobody is held for ever: each process waits for one other at most, so from the receiver on there is one
way, and it leads to a process that runs, and then there is a reason to wait; or to one that has ended or not begun,
back to the sender, or round in circles, and then the sender goes on. Whoever reads these numbers while they change may
go on too early, which costs memory and nothing else, or looks again.

What lies before a process that takes none of it would hold every further sender. So a sender that goes on because it had to
takes as much off the receiver's number as may lie before one.
""".

-export([start/1, here/0, begun/2, waits/3, runs/2, sent/3, took/2, last/2, ended/2, states/2]).

-export_type([flow/0]).

-opaque flow() :: atomics:atomics_ref().

%% Messages that lie before a process and have not been taken, from which on senders are held.
-define(CROWD, 4096).
%% Whom a process waits for is a positive number, whom it is held for a negative one.
-define(NOT_BEGUN, 0).
-define(RUNS, (1 bsl 60)).
-define(ENDED, (1 bsl 61)).
%% So far it is followed who waits for whom.
-define(FAR, 1000).

-doc "For processes up to this one. Called before any of them begins.".
-spec start(non_neg_integer()) -> ok.
start(Last) -> persistent_term:put(?MODULE, atomics:new(2 * max(1, Last), [])).

-doc "The numbers of this VM.".
-spec here() -> flow().
here() -> persistent_term:get(?MODULE).

-doc "A process begins.".
-spec begun(pos_integer(), flow()) -> ok.
begun(Id, Flow) -> runs(Id, Flow).

-doc "A process waits for a message of another one.".
-spec waits(pos_integer(), pos_integer(), flow()) -> ok.
waits(Id, From, Flow) -> atomics:put(Flow, 2 * Id - 1, From).

-doc "It does not any more.".
-spec runs(pos_integer(), flow()) -> ok.
runs(Id, Flow) -> atomics:put(Flow, 2 * Id - 1, ?RUNS).

-doc "A process has taken a message that another one has sent.".
-spec took(pos_integer(), flow()) -> ok.
took(Id, Flow) -> atomics:sub(Flow, 2 * Id, 1).

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
    case {atomics:get(Flow, 2 * To), needs(To, Id, Flow, ?FAR)} of
        {N, _} when N =< ?CROWD div 2 -> ok;
        {_, true} -> atomics:sub(Flow, 2 * To, ?CROWD);
        {_, false} ->
            receive after 1 -> held(Id, To, Flow) end
    end.

%% Whether nothing but the sender, or nothing at all, makes the receiver go on.
needs(Id, Id, _, _) -> true;
needs(_, _, _, 0) -> true;
needs(Other, Id, Flow, Left) ->
    case atomics:get(Flow, 2 * Other - 1) of
        ?RUNS -> false;
        ?ENDED -> true;
        ?NOT_BEGUN -> true;
        Next -> needs(abs(Next), Id, Flow, Left - 1)
    end.

-doc "Of these processes: whom each waits for, or is held for.".
-spec states([pos_integer()], flow()) -> #{pos_integer() => {waits | held, pos_integer()}}.
states(Ids, Flow) ->
    #{Id => case State > 0 of true -> {waits, State}; false -> {held, -State} end
      || Id <- Ids, State <- [atomics:get(Flow, 2 * Id - 1)], State =/= ?NOT_BEGUN, State =/= ?RUNS, State =/= ?ENDED}.
