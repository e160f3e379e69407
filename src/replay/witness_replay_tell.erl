-module(witness_replay_tell).
-moduledoc """
Tells what processes do while they are replayed, from inside the VM that is there for that. `m:witness_replay_events`
makes events of it.

Each process tells what it does when it does it, and a process of its own, the teller, passes it on in blocks. A message
is told as sent before it is on its way, and as taken by who has taken it; what is sent to a process of the same node is
in its mailbox when the send returns. So what is told comes in an order that agrees with cause and effect.

Whoever reads what is told says when it wants more. Until then only a few blocks are on their way, and when too much
waits for the teller, who has something to tell waits too.

What a process sends when its log has nothing more but an end that may be that of a signal, nobody knows to have
happened: it is told as *unsure*. Of one that sends for ever only the beginning is.
""".

-export([start/1, start/2, is_on/0, is_whole/0, more/0, is_behind/0, asked/2, finish/0]).
-export([born/2, spawned/3, sent/4, took/3, ended/2, killed/1, did/2, acts/2, leads/2]).

-export_type([told/0, what/0, detail/0]).

-include("src/replay/witness_replay_process.hrl").

-doc "What a process of the recording did, at which of its entries; behind so many of them, for what is no entry.".
-type told() :: {Id :: pos_integer(), Entry :: non_neg_integer(), what()}.

-doc "`lost`: from here on it sends what is not told. Processes are told with what they are called, which only this VM knows of a fun.".
-type what() :: {born, witness_event:signature()} | {spawn, Child :: pos_integer(), witness_event:signature()} | {send, To :: term(), Msg :: term(), sure | unsure} | lost
              | {recv, From :: pos_integer() | outside, Msg :: term()} | {exit, ended | killed, Reason :: term()}
              | detail().

-doc """
What is told besides to who wants to have the whole: with each thing its stack; calls, and times that were over; and before a
message that is not sent to a pid who gets it, before a process that is spawned the function that does it, and its options.
""".
-type detail() :: {at, Stack :: [tuple()], what() | detail()}
                | {call, mfa(), Args :: [term()], Value :: term()} | {raise, mfa(), Args :: [term()], Class :: atom(), Reason :: term()}
                | {effect, mfa(), Args :: [term()]} | timeout
                | {leads, pos_integer()} | {with, Function :: atom(), Options :: term()}.

%% Of a block; blocks that nobody has read; what may wait for the teller.
-define(BLOCK, 200).
-define(BLOCKS, 4).
-define(CROWD, 10_000).
%% Milliseconds after which a block is passed on that is not full.
-define(PAUSE, 20).
%% Of each process.
-define(UNSURE, 1_000).
-define(UNSURE_TABLE, witness_replay_unsure).

-record(teller, {port :: port(),
                 waiting :: atomics:atomics_ref(),
                 told = [] :: [told()],
                 size = 0 :: non_neg_integer(),
                 unread = 0 :: non_neg_integer(),
                 last = false :: boolean()}).

-doc "Begins to tell, over this port. Called by who looks after the replay, before anything is replayed.".
-spec start(port()) -> ok.
start(Port) -> start(Port, false).

-doc "The same; `Whole`: with all details.".
-spec start(port(), Whole :: boolean()) -> ok.
start(Port, Whole) ->
    ok = persistent_term:put({?MODULE, whole}, Whole),
    %% Processes use it, and loading it is nothing that they do.
    {module, _} = code:ensure_loaded(witness_event_signature),
    Waiting = atomics:new(1, []),
    ?UNSURE_TABLE = ets:new(?UNSURE_TABLE, [named_table, public]),
    Teller = spawn_link(fun() -> loop(#teller{port = Port, waiting = Waiting}) end),
    persistent_term:put(?MODULE, {Teller, Waiting}).

-doc "Whether anybody wants to know.".
-spec is_on() -> boolean().
is_on() -> persistent_term:get(?MODULE, off) =/= off.

-doc "Whether somebody wants to know every detail.".
-spec is_whole() -> boolean().
is_whole() -> persistent_term:get({?MODULE, whole}, false).

-doc "A block was read.".
-spec more() -> ok.
more() ->
    {Teller, _} = persistent_term:get(?MODULE),
    Teller ! more,
    ok.

-doc "Whether so much waits to be told that processes may wait for that.".
-spec is_behind() -> boolean().
is_behind() ->
    case persistent_term:get(?MODULE, off) of
        off -> false;
        {_, Waiting} -> atomics:get(Waiting, 1) > ?CROWD
    end.

-doc "Passes on all that was told before, whether anybody has read so far or not.".
-spec finish() -> ok.
finish() ->
    case persistent_term:get(?MODULE, off) of
        off -> ok;
        {Teller, _} -> asked(finish, Teller)
    end.

%% --- what processes do -----------------------------------------------------------

-doc "A process begins that nobody has spawned who is replayed.".
-spec born(pos_integer(), {module(), atom(), [term()]}) -> ok.
born(Id, MFA) ->
    case is_on() of
        true -> told({Id, 0, {born, witness_event_signature:resolve(MFA)}}, no_wait);
        false -> ok
    end.

-doc "A process is about to spawn, by its next entry.".
-spec spawned(pos_integer(), {module(), atom(), [term()]}, #process{}) -> ok.
spawned(Child, MFA, #process{id = Id, at = At}) ->
    case is_on() of
        true -> told({Id, At + 1, {spawn, Child, witness_event_signature:resolve(MFA)}}, wait);
        false -> ok
    end.

-doc "A process sends. The entry is its next one.".
-spec sent(term(), term(), witness_log_recording:run() | done, #process{}) -> ok.
sent(To, Msg, Entry, #process{id = Id, at = At}) ->
    case surely(Entry) of
        true -> told({Id, entry(Entry, At), {send, To, Msg, sure}}, wait);
        false ->
            case ets:update_counter(?UNSURE_TABLE, Id, 1, {Id, 0}) of
                N when N =< ?UNSURE -> told({Id, At, {send, To, Msg, unsure}}, wait);
                N when N =:= ?UNSURE + 1 -> told({Id, At, lost}, wait);
                _ -> ok
            end
    end.

%% What comes before an entry that is the process's own doing has happened.
surely(done) -> false;
surely({exit, normal}) -> true;
surely({exit, _}) -> false;
surely(_) -> true.

entry({sent, _, _}, At) -> At + 1;
entry(_, At) -> At.

-doc "A process has taken a message, by the entry that was its next one.".
-spec took(pos_integer() | outside, #process{}, Taken) -> Taken when Taken :: [term(), ...].
took(From, #process{id = Id, at = At}, [Msg] = Taken) ->
    ok = told({Id, At + 1, {recv, From, Msg}}, wait),
    Taken.

-doc "A process has ended, and passed its last entry. One that was cut tells nothing.".
-spec ended(ended | killed | cut, #process{}) -> ok.
ended(How, #process{id = Id, at = At, recent = [{exit, Reason} | _]}) when How =/= cut ->
    told({Id, At, {exit, How, Reason}}, wait);
ended(_, _) -> ok.

-doc "A process is ended that has nothing left but its end. What it would have sent from here on, nobody knows.".
-spec killed(#process{} | none) -> ok.
killed(#process{id = Id, at = At, entries = [{exit, Reason}]}) ->
    ok = told({Id, At, lost}, no_wait),
    told({Id, At + 1, {exit, killed, Reason}}, no_wait);
killed(_) -> ok.

-doc "A process does what is no event, by its next entry, if somebody wants to know that.".
-spec did(detail(), #process{}) -> ok.
did(What, #process{id = Id, at = At}) ->
    case is_whole() of
        true -> told({Id, At + 1, What}, wait);
        false -> ok
    end.

-doc "The same, for what is no entry.".
-spec acts(detail(), #process{}) -> ok.
acts(What, #process{id = Id, at = At}) ->
    case is_whole() of
        true -> told({Id, At, What}, wait);
        false -> ok
    end.

-doc "What it is about to send or to spawn goes there.".
-spec leads(detail(), #process{}) -> ok.
leads(What, #process{id = Id, at = At}) ->
    case is_whole() of
        true -> passed_on({Id, At, What}, wait);
        false -> ok
    end.

told({Id, Entry, What} = Told, Wait) ->
    %% Who looks after the replay tells of others.
    case Wait =:= wait andalso is_whole() of
        true ->
            {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
            passed_on({Id, Entry, {at, witness_replay_course:stack(Stack), What}}, Wait);
        false -> passed_on(Told, Wait)
    end.

%% Who looks after the replay must not wait: it passes on that blocks were read.
passed_on(Told, Wait) ->
    case persistent_term:get(?MODULE, off) of
        off -> ok;
        {Teller, Waiting} ->
            Teller ! {told, Told},
            case atomics:add_get(Waiting, 1, 1) > ?CROWD of
                true when Wait =:= wait -> asked(reached, Teller);
                _ -> ok
            end
    end.

-doc "Waits until a process has seen all that was sent to it before, or has ended: it goes with the port, and then nobody wants to know any more.".
-spec asked(reached | finish, pid()) -> ok.
asked(Question, Pid) ->
    Ref = monitor(process, Pid),
    Pid ! {Question, self(), Ref},
    receive
        {Ref, ok} ->
            true = demonitor(Ref, [flush]),
            ok;
        {'DOWN', Ref, process, Pid, _} -> ok
    end.

%% --- the teller ------------------------------------------------------------------

-spec loop(#teller{}) -> no_return().
loop(#teller{size = Size} = T) when Size >= ?BLOCK -> loop(passed(T));
loop(#teller{told = Told, size = Size, unread = Unread} = T) ->
    receive
        {told, One} -> loop(T#teller{told = [One | Told], size = Size + 1});
        more -> loop(T#teller{unread = Unread - 1});
        {reached, From, Ref} ->
            From ! {Ref, ok},
            loop(T);
        {finish, From, Ref} ->
            Passed = passed(T#teller{last = true}),
            From ! {Ref, ok},
            loop(Passed)
    after case Size of 0 -> infinity; _ -> ?PAUSE end -> loop(passed(T))
    end.

%% What was told before the end stands before it in the mailbox.
passed(#teller{size = 0} = T) -> T;
passed(#teller{unread = Unread, last = false} = T) when Unread >= ?BLOCKS ->
    receive
        more -> passed(T#teller{unread = Unread - 1});
        {finish, _, _} = Finish ->
            self() ! Finish,
            passed(T#teller{last = true})
    end;
passed(#teller{port = Port, waiting = Waiting, told = Told, size = Size, unread = Unread} = T) ->
    true = port_command(Port, term_to_binary({events, lists:reverse(Told)})),
    ok = atomics:sub(Waiting, 1, Size),
    T#teller{told = [], size = 0, unread = Unread + 1}.
