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

Who begins processes is held too, while very many live: what came from outside in an hour would all be begun at once otherwise. It
goes on when enough have ended; or when nobody runs, since those who live may wait for whoever is held. That is seen here, and where
a process runs without getting anywhere, by whoever looks after all (`more/1`). From then on more may live.
""".

-export([start/1, here/0, begins/2, first/1, more/1, begun/2, waits/3, runs/2, sent/3, took/2, follows/4, last/2, ended/2, has_ended/2,
         states/2, let_go/1]).

-export_type([flow/0]).

-opaque flow() :: atomics:atomics_ref().

%% Messages that lie before a process and have not been taken, from which on senders are held.
-define(CROWD, 4096).
%% Messages that lie before a process, from which on they are kept off its heap.
-define(MANY, 512).
%% Processes that live at once, from which on nobody begins another one, to begin with.
-define(MAY_LIVE, 1024).
%% Milliseconds without an end, about, before it is looked whether anybody runs.
-define(WITHOUT_END, 8).
%% Of those who are held so many look in a millisecond whether they may go on.
-define(LOOK, 32).
%% The numbers of all: processes that live, how many may, whether somebody looks who runs, whether nobody is held in circles, how many are
%% held, how many lived when one of them looked last, and how often it was the same before.
-define(LIVING, 1).
-define(MOST, 2).
-define(LOOKING, 3).
-define(LET_GO, 4).
-define(HELD, 5).
-define(LIVED, 6).
-define(THE_SAME, 7).
%% Those of a process: its state, and what lies before it.
-define(STATE(Id), (2 * (Id) + 6)).
-define(LIES(Id), (2 * (Id) + 7)).
%% Whom a process waits for is a positive number, whom it is held for a negative one.
-define(NOT_BEGUN, 0).
-define(RUNS, (1 bsl 60)).
-define(ENDED, (1 bsl 61)).
-define(BEGINS, (1 bsl 62)).
%% So far it is followed who waits for whom.
-define(FAR, 1000).

-doc "For processes up to this one. Called before any of them begins.".
-spec start(non_neg_integer()) -> ok.
start(Last) ->
    Flow = atomics:new(?LIES(Last), []),
    ok = atomics:put(Flow, ?MOST, ?MAY_LIVE),
    persistent_term:put(?MODULE, Flow).

-doc "The numbers of this VM.".
-spec here() -> flow().
here() -> persistent_term:get(?MODULE).

-doc "A process is to begin another one, and waits as long as very many live and somebody runs.".
-spec begins(pos_integer(), flow()) -> ok.
begins(Id, Flow) ->
    Most = atomics:get(Flow, ?MOST),
    case atomics:add_get(Flow, ?LIVING, 1) =< Most orelse atomics:get(Flow, ?LET_GO) =/= 0 of
        true -> ok;
        false ->
            ok = atomics:sub(Flow, ?LIVING, 1),
            ok = held(Id, ?BEGINS, fun() -> crowded(Most, Flow) end, Flow),
            begins(Id, Flow)
    end.

-doc "A process begins that nobody has spawned.".
-spec first(flow()) -> ok.
first(Flow) -> atomics:add(Flow, ?LIVING, 1).

%% The caller is in this state while it looks, again and again, whether it may go on.
held(Id, State, Looks, Flow) ->
    ok = atomics:put(Flow, ?STATE(Id), State),
    ok = atomics:add(Flow, ?HELD, 1),
    ok = Looks(),
    ok = atomics:sub(Flow, ?HELD, 1),
    runs(Id, Flow).

%% Milliseconds until it looks again. The more are held, the longer: otherwise thousands that only look would take all the time
%% that those need for whom they wait.
pause(Flow) -> 1 + atomics:get(Flow, ?HELD) div ?LOOK.

crowded(Most, Flow) ->
    receive after pause(Flow) -> ok end,
    Living = atomics:get(Flow, ?LIVING),
    case Living =< Most div 2 orelse atomics:get(Flow, ?MOST) > Most orelse atomics:get(Flow, ?LET_GO) =/= 0 of
        true -> ok;
        false ->
            _ = is_quiet(Living, Flow) andalso atomics:compare_exchange(Flow, ?LOOKING, 0, 1) =:= ok andalso looked(Living, Flow),
            crowded(Most, Flow)
    end.

%% Whether no process has ended for a while: they have looked so often since.
is_quiet(Living, Flow) ->
    case atomics:exchange(Flow, ?LIVED, Living) of
        Living -> atomics:add_get(Flow, ?THE_SAME, 1) >= ?WITHOUT_END * min(?LOOK, atomics:get(Flow, ?HELD));
        _ ->
            ok = atomics:put(Flow, ?THE_SAME, 0),
            false
    end.

%% Whoever has a message before it, and was not woken yet, is not seen: it is looked twice.
looked(Living, Flow) ->
    _ = not anybody_runs(Flow) andalso receive after 1 -> not anybody_runs(Flow) end
        andalso atomics:get(Flow, ?LIVING) =:= Living andalso more(Flow),
    ok = atomics:put(Flow, ?THE_SAME, 0),
    atomics:put(Flow, ?LOOKING, 0).

anybody_runs(Flow) ->
    #{size := Size} = atomics:info(Flow),
    runs_from(?STATE(1), Size, Flow).

runs_from(At, Size, _) when At > Size -> false;
runs_from(At, Size, Flow) -> atomics:get(Flow, At) =:= ?RUNS orelse runs_from(At + 2, Size, Flow).

-doc "More may live than do now, and more than might: some have ended since those who are held were.".
-spec more(flow()) -> ok.
more(Flow) ->
    Living = atomics:get(Flow, ?LIVING),
    atomics:put(Flow, ?MOST, max(atomics:get(Flow, ?MOST) + 1, Living + max(?MAY_LIVE, Living div 4))).

-doc "A process is about to begin.".
-spec begun(pos_integer(), flow()) -> ok.
begun(Id, Flow) -> runs(Id, Flow).

-doc "A process waits for a message of another one.".
-spec waits(pos_integer(), pos_integer(), flow()) -> ok.
waits(Id, From, Flow) -> atomics:put(Flow, ?STATE(Id), From).

-doc "It does not any more.".
-spec runs(pos_integer(), flow()) -> ok.
runs(Id, Flow) -> atomics:put(Flow, ?STATE(Id), ?RUNS).

-doc "The caller has taken a message that another one has sent.".
-spec took(pos_integer(), flow()) -> ok.
took(Id, Flow) ->
    case atomics:sub_get(Flow, ?LIES(Id), 1) of
        %% So many need not be moved each time that it collects; of few that costs more than it saves.
        N when N > ?MANY ->
            _ = process_flag(message_queue_data, off_heap),
            ok;
        _ -> ok
    end.

-doc "A process takes no message any more: nobody has to wait for that.".
-spec last(pos_integer(), flow()) -> ok.
last(Id, Flow) -> atomics:put(Flow, ?LIES(Id), -?ENDED).

-doc "A process has ended.".
-spec ended(pos_integer(), flow()) -> ok.
ended(Id, Flow) ->
    ok = last(Id, Flow),
    case atomics:exchange(Flow, ?STATE(Id), ?ENDED) of
        %% It was killed while it was held.
        State when State =:= ?BEGINS; State < 0 -> ok = atomics:sub(Flow, ?HELD, 1);
        _ -> ok
    end,
    atomics:sub(Flow, ?LIVING, 1).

-doc "Whether it has.".
-spec has_ended(pos_integer(), flow()) -> boolean().
has_ended(Id, Flow) -> atomics:get(Flow, ?STATE(Id)) =:= ?ENDED.

-doc "A process has sent a message to another one, and waits as long as too much lies there.".
-spec sent(pos_integer(), pos_integer(), flow()) -> ok.
sent(Id, To, Flow) ->
    case atomics:add_get(Flow, ?LIES(To), 1) of
        N when N > ?CROWD, Id =/= To -> held(Id, -To, fun() -> sending(Id, To, Flow) end, Flow);
        _ -> ok
    end.

sending(Id, To, Flow) ->
    case {atomics:get(Flow, ?LIES(To)), needs(To, Id, Flow)} of
        {N, _} when N =< ?CROWD div 2 -> ok;
        {_, true} -> atomics:sub(Flow, ?LIES(To), ?CROWD);
        {_, false} ->
            receive after pause(Flow) -> sending(Id, To, Flow) end
    end.

%% Whether nothing but this one makes the other one go on.
needs(To, Id, Flow) -> atomics:get(Flow, ?LET_GO) =/= 0 orelse needs(To, Id, Flow, ?FAR).

needs(Id, Id, _, _) -> true;
needs(_, _, _, 0) -> false;
needs(Other, Id, Flow, Left) ->
    case atomics:get(Flow, ?STATE(Other)) of
        ?RUNS -> false;
        ?BEGINS -> false;
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
            ok = held(Id, -Other, fun() -> following(Id, Other, Ref, Flow) end, Flow),
            true = demonitor(Ref, [flush]),
            ok
    end.

following(Id, Other, Ref, Flow) ->
    case is_last(Other, Flow) orelse needs(Other, Id, Flow) of
        true -> ok;
        false ->
            receive {'DOWN', Ref, process, _, _} -> ok
            after pause(Flow) -> following(Id, Other, Ref, Flow)
            end
    end.

%% One that was killed may do something for ever that is no entry.
is_last(Id, Flow) -> atomics:get(Flow, ?LIES(Id)) < -(?ENDED div 2).

-doc "From now on nobody is held: nothing runs any more, or who runs is not said here, or processes stop.".
-spec let_go(flow()) -> ok.
let_go(Flow) -> atomics:put(Flow, ?LET_GO, 1).

-doc "Of these processes: whom each waits for, or is held for; `begins`: it is held because very many live.".
-spec states([pos_integer()], flow()) -> #{pos_integer() => {waits | held, pos_integer()} | begins}.
states(Ids, Flow) ->
    #{Id => state(State)
      || Id <- Ids, State <- [atomics:get(Flow, ?STATE(Id))], State =/= ?NOT_BEGUN, State =/= ?RUNS, State =/= ?ENDED}.

state(?BEGINS) -> begins;
state(For) when For > 0 -> {waits, For};
state(For) -> {held, -For}.
