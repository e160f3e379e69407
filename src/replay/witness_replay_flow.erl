-module(witness_replay_flow).
-moduledoc """
Who waits for whom, and how much lies before each process that is replayed: two numbers for each, which all see at once. They go with
who stands for the process (`m:witness_replay_slots`): of who has ended there are none.

A sender that is far ahead of its receiver is *held*, so that what is in memory does not grow with the length of a
recording. Nobody is held for ever: each process waits for one other at most, one that has not begun for its parent, so from the receiver on there is one
way, and it leads to a process that runs, or begins others, and then there is a reason to wait; or to one that has ended,
or back to the sender, and then the sender goes on. Where it goes round in circles without the sender, one of those is
held and goes on, or a message is on its way to one of them. Should it not be so, nothing runs, and then nobody is
held any more (`let_go/0`). Whoever reads these numbers while they change looks again.

Who is told of the end of a process waits for it in the same way: the message is in the log, and nobody has to send
it, but who does not wait begins all that comes after, while what came before is still to be done.

What lies before a process that takes none of it would hold every further sender. So a sender that goes on because it
had to takes as much off the receiver's number as may lie before one.

Who begins processes is held too, while very many live: what came from outside in an hour would all be begun at once otherwise. It
goes on when enough have ended; or when nobody runs, since those who live may wait for whoever is held. That is seen here, and where
a process runs without getting anywhere, by whoever looks after all (`more/0`). From then on more may live.

Whoever is held looks again and again, and sleeps in between, the longer the more are held; but who changes something by which others may go on
wakes these (`m:witness_replay_sleepers`). That only makes it faster.
""".

-export([start/1, new/0, begins/2, first/0, more/0, begun/1, waits/2, runs/1, sent/4, took/2, follows/5, last/1, ended/2, states/1, let_go/0]).

-export_type([flow/0]).

-doc "The numbers of a process.".
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
%% And if they are no more, each looks so often without a pause.
-define(YIELDS, 32).
%% Looks after which a message that lies before somebody is taken for one that nobody takes.
-define(MANY_LOOKS, 1000).
%% In milliseconds longer than anybody sleeps.
-define(LONG, 1_000_000).
%% Held ones, from which on those are looked for who may go on now: fewer look soon enough by themselves.
-define(MANY_HELD, 1024).
%% So far it is looked for them.
-define(NEAR, 32).
%% The numbers of all: processes that live, how many may, whether somebody looks who runs, whether nobody is held in circles, how many are
%% held for others, how many because very many live; how many lived when one of these looked last, and how often it was the same before.
-define(LIVING, 1).
-define(MOST, 2).
-define(LOOKING, 3).
-define(LET_GO, 4).
-define(HELD, 5).
-define(BEGINNING, 6).
-define(LIVED, 7).
-define(THE_SAME, 8).
-define(NUMBERS, 8).
%% Those of a process: its state, and what lies before it.
-define(STATE, 1).
-define(LIES, 2).
%% Whom a process waits for is a positive number, whom it is held for a negative one.
-define(NOT_BEGUN, 0).
-define(RUNS, (1 bsl 57)).
-define(ENDED, (1 bsl 57 + 1)).
-define(BEGINS, (1 bsl 57 + 2)).
%% What lies before one that takes nothing any more.
-define(NOTHING, (1 bsl 57)).
%% So far it is followed who waits for whom.
-define(FAR, 1000).

-doc "Called before any process begins. `Parent`: who is to begin another one.".
-spec start(Parent :: fun((pos_integer()) -> pos_integer() | none)) -> ok.
start(Parent) ->
    ok = persistent_term:put({?MODULE, parent}, Parent),
    ok = witness_replay_sleepers:start(),
    All = atomics:new(?NUMBERS, []),
    ok = atomics:put(All, ?MOST, ?MAY_LIVE),
    persistent_term:put(?MODULE, All).

%% The numbers of all.
all() -> persistent_term:get(?MODULE).

-doc "Of a process that has not begun.".
-spec new() -> flow().
new() -> atomics:new(2, []).

-doc "A process is to begin another one, and waits as long as very many live and somebody runs.".
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

-doc "A process begins that nobody has spawned.".
-spec first() -> ok.
first() -> atomics:add(all(), ?LIVING, 1).

%% The caller is in this state while it looks, again and again, whether it may go on. `End`: by whose end it may, too.
held(Id, Flow, State, End, MayGo, All) ->
    Kind = kind(State),
    ok = atomics:put(Flow, ?STATE, State),
    ok = atomics:add(All, Kind, 1),
    ok = looking(0, Id, State, End, MayGo, All),
    ok = atomics:sub(All, Kind, 1),
    runs(Flow).

%% By what it is counted.
kind(?BEGINS) -> ?BEGINNING;
kind(For) when For < 0 -> ?HELD.

%% A few only let the others run to begin with: in a millisecond a receiver has taken all, and then nobody runs.
looking(Looks, Id, State, End, MayGo, All) ->
    case MayGo(Looks) of
        true -> ok;
        false ->
            case Looks < ?YIELDS andalso atomics:get(All, kind(State)) =< ?LOOK of
                true ->
                    true = erlang:yield(),
                    looking(Looks + 1, Id, State, End, MayGo, All);
                false ->
                    Alias = witness_replay_sleepers:lies_down(State, Id, End),
                    ok = seeks(State, All),
                    ok = sleeping(max(?YIELDS, Looks), ?LONG, Alias, kind(State), MayGo, All),
                    witness_replay_sleepers:gets_up(State, Id, Alias)
            end
    end.

%% The more are held, the longer each sleeps: otherwise thousands that only look would take all the time that those need for
%% whom they wait. Who was woken may have been so a moment too early.
sleeping(Looks, Long, Alias, Kind, MayGo, All) ->
    case MayGo(Looks) of
        true -> ok;
        false ->
            case witness_replay_sleepers:sleep(Alias, min(Long, 1 + atomics:get(All, Kind) div ?LOOK)) of
                woken -> sleeping(Looks, 1, Alias, Kind, MayGo, All);
                over -> sleeping(Looks + 1, min(?LONG, 2 * Long), Alias, Kind, MayGo, All);
                ended -> ok
            end
    end.

%% Who stops to run wakes all who are held on the way from it: for one of them it may have been the last that ran.
seeks(?BEGINS, _) -> ok;
seeks(For, All) ->
    case atomics:get(All, ?HELD) of
        Held when Held =< ?MANY_HELD -> ok;
        _ -> sought(abs(For), ?NEAR)
    end.

sought(_, 0) -> ok;
sought(Other, N) ->
    State = state(Other),
    ok = case State < 0 of true -> witness_replay_sleepers:wake(State, Other); false -> ok end,
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

%% Whether no process has ended for a while: they have looked so often since.
is_quiet(Living, All) ->
    case atomics:exchange(All, ?LIVED, Living) of
        Living -> atomics:add_get(All, ?THE_SAME, 1) >= ?WITHOUT_END * min(?LOOK, atomics:get(All, ?BEGINNING));
        _ ->
            ok = atomics:put(All, ?THE_SAME, 0),
            false
    end.

%% Whoever has a message before it, and was not woken yet, is not seen: it is looked twice.
looked(Living, All) ->
    _ = not anybody_runs() andalso receive after 1 -> not anybody_runs() end
        andalso atomics:get(All, ?LIVING) =:= Living andalso more(),
    ok = atomics:put(All, ?THE_SAME, 0),
    atomics:put(All, ?LOOKING, 0).

anybody_runs() -> witness_replay_slots:any(fun(Flow) -> atomics:get(Flow, ?STATE) =:= ?RUNS end).

-doc "More may live than do now, and more than might: some have ended since those who are held were.".
-spec more() -> ok.
more() ->
    All = all(),
    Living = atomics:get(All, ?LIVING),
    ok = atomics:put(All, ?MOST, max(atomics:get(All, ?MOST) + 1, Living + max(?MAY_LIVE, Living div 4))),
    witness_replay_sleepers:wake(?BEGINS).

-doc "A process is about to begin.".
-spec begun(flow()) -> ok.
begun(Flow) -> runs(Flow).

-doc "A process waits for a message of another one.".
-spec waits(pos_integer(), flow()) -> ok.
waits(From, Flow) ->
    ok = atomics:put(Flow, ?STATE, From),
    seeks(From, all()).

-doc "It does not any more.".
-spec runs(flow()) -> ok.
runs(Flow) -> atomics:put(Flow, ?STATE, ?RUNS).

-doc "The caller has taken a message that another one has sent.".
-spec took(pos_integer(), flow()) -> ok.
took(Id, Flow) ->
    case atomics:sub_get(Flow, ?LIES, 1) of
        %% So many need not be moved each time that it collects; of few that costs more than it saves.
        N when N > ?MANY ->
            _ = process_flag(message_queue_data, off_heap),
            case N of
                ?CROWD div 2 -> witness_replay_sleepers:wake(-Id);
                _ -> ok
            end;
        _ -> ok
    end.

-doc "A process takes no message any more: nobody has to wait for that.".
-spec last(flow()) -> ok.
last(Flow) -> atomics:put(Flow, ?LIES, -?NOTHING).

-doc "A process has ended. Said twice, it counts once.".
-spec ended(pos_integer(), flow()) -> ok.
ended(Id, Flow) ->
    ok = last(Flow),
    All = all(),
    case atomics:exchange(Flow, ?STATE, ?ENDED) of
        ?ENDED -> ok;
        State ->
            %% It was killed while it was held.
            ok = case State =:= ?BEGINS orelse State < 0 of
                true ->
                    ok = witness_replay_sleepers:forget(State, Id),
                    atomics:sub(All, kind(State), 1);
                false -> ok
            end,
            atomics:sub(All, ?LIVING, 1)
    end.

-doc "A process has sent a message to another one, and waits as long as too much lies there.".
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

%% Whether nothing but this one makes the other one go on. Others run before that is asked. It is not so where the last one on the way
%% has a message that it has not taken yet: whom it seems to wait for may have sent it, and have ended, or wait itself.
needs(Looks, Other, Id, All) ->
    atomics:get(All, ?LET_GO) =/= 0 orelse Looks >= ?YIELDS andalso
        case follow(Other, Id, none, 1, true) of
            {waits, Who, For} -> Looks > ?MANY_LOOKS orelse has_taken(Who) andalso state(Who) =:= For;
            Needs -> Needs
        end.

%% `Mark`: one that was met on the way; it moves ahead as the way gets longer, so who goes round meets it. `Needs`: what is
%% so if the next one does nothing more for the one before; who is held for it goes on by itself then.
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

%% For whom a process that is in this state waits, or is held. Who has not begun waits for its parent.
next(_, State) when State >= ?RUNS -> none;
next(Other, ?NOT_BEGUN) -> (persistent_term:get({?MODULE, parent}))(Other);
next(_, For) -> abs(For).

has_taken(Id) ->
    case witness_replay_slots:known(Id) of
        {Slot, _} ->
            case process_info(Slot, message_queue_len) of
                {message_queue_len, N} when N > 0 -> false;
                _ -> true
            end;
        _ -> false
    end.

state(Id) ->
    case witness_replay_slots:known(Id) of
        {_, Flow} -> atomics:get(Flow, ?STATE);
        not_begun -> ?NOT_BEGUN;
        ended -> ?ENDED
    end.

-doc """
A process is about to be told of the end of another one, for which a process of this VM stands: it waits until that
has nothing left to do, as long as nobody waits for it.
""".
-spec follows(pos_integer(), flow(), pos_integer(), Slot :: pid(), flow()) -> ok.
follows(Id, Flow, Other, Slot, OtherFlow) ->
    case is_last(OtherFlow) of
        true -> ok;
        false ->
            All = all(),
            held(Id, Flow, -Other, Slot, fun(Looks) -> is_last(OtherFlow) orelse needs(Looks, Other, Id, All) end, All)
    end.

%% One that was killed may do something for ever that is no entry.
is_last(Flow) -> atomics:get(Flow, ?LIES) < -(?NOTHING div 2).

-doc "From now on nobody is held: nothing runs any more, or who runs is not said here, or processes stop.".
-spec let_go() -> ok.
let_go() ->
    ok = atomics:put(all(), ?LET_GO, 1),
    witness_replay_sleepers:wake().

-doc "Of these processes: whom each waits for, or is held for; `begins`: it is held because very many live.".
-spec states([pos_integer()]) -> #{pos_integer() => {waits | held, pos_integer()} | begins}.
states(Ids) -> #{Id => told(State) || Id <- Ids, State <- [state(Id)], State =/= ?NOT_BEGUN, State =/= ?RUNS, State =/= ?ENDED}.

told(?BEGINS) -> begins;
told(For) when For > 0 -> {waits, For};
told(For) -> {held, -For}.
