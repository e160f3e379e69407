-module(witness_replay_emitter).
-moduledoc """
Reports what replayed processes do, from inside the VM of the replay. `m:witness_replay_events` makes events of the reports.

Each process reports an action when it does it. A process of its own, the teller, passes the reports on in blocks, over a port
to `m:witness_replay_vm`. *Invariant:* the order of the reports agrees with cause and effect. The sender reports a message
before it sends it, and the receiver reports it after it has taken it. A message to a process of the same node is in its mailbox
when the send returns, if the receiver keeps its messages on its heap, as the teller does.

*Backpressure.* The consumer of the reports says when it wants more (`more/0`). Until then only a few blocks are on their way.
If too many reports wait for the teller, a process with a further report waits too.

*Unsure sends.* If the log of a process has nothing left but an end that may be a signal's, its sends may not have happened.
They are reported as *unsure*. Of a process that sends forever only the first ones are reported.
""".

-export([start/1, start/2, is_on/0, is_whole/0, more/0, is_behind/0, asked/2, finish/0]).
-export([born/2, spawned/3, sent/4, took/3, ended/2, killed/1, did/2, acts/2, leads/2]).

-export_type([told/0, what/0, detail/0]).

-include("src/replay/witness_replay_process.hrl").

-doc "A report: a process, its entry, and what it did. For an action that is no entry: the number of entries before it.".
-type told() :: {Id :: pos_integer(), Entry :: non_neg_integer(), what()}.

-doc """
`lost`: what it sends from here on is not reported. Births and spawns have the signature, which for a fun only this VM knows.
""".
-type what() :: {born, witness_event:signature()} | {spawn, Child :: pos_integer(), witness_event:signature()} | {send, To :: term(), Msg :: term(), sure | unsure} | lost
              | {recv, From :: pos_integer() | outside, Msg :: term()} | {exit, ended | killed, Reason :: term()}
              | detail().

-doc """
What is reported in addition if all details are wanted: the stack of each report; calls, and timeouts. Before a message that is
not sent to a pid: the process that gets it. Before a spawn: the function that spawns, and its options.
""".
-type detail() :: {at, Stack :: [tuple()], what() | detail()}
                | {call, mfa(), Args :: [term()], Value :: term()} | {raise, mfa(), Args :: [term()], Class :: atom(), Reason :: term()}
                | {effect, mfa(), Args :: [term()]} | timeout
                | {leads, pos_integer()} | {with, Function :: atom(), Options :: term()}.

%% Reports of a block; blocks that were not read yet; reports that may wait for the teller.
-define(BLOCK, 200).
-define(BLOCKS, 4).
-define(CROWD, 10_000).
%% Milliseconds after which a block is passed on that is not full.
-define(PAUSE, 20).
%% Unsure sends that each process reports.
-define(UNSURE, 1_000).
-define(UNSURE_TABLE, witness_replay_unsure).

-record(teller, {port :: port(),
                 waiting :: atomics:atomics_ref(),
                 told = [] :: [told()],
                 size = 0 :: non_neg_integer(),
                 unread = 0 :: non_neg_integer(),
                 last = false :: boolean()}).

-doc "Starts to report, over this port. The controller calls it before anything is replayed.".
-spec start(port()) -> ok.
start(Port) -> start(Port, false).

-doc "The same; `Whole`: with all details.".
-spec start(port(), Whole :: boolean()) -> ok.
start(Port, Whole) ->
    ok = persistent_term:put({?MODULE, whole}, Whole),
    %% Processes use this module, and must not load it as a step of theirs.
    {module, _} = code:ensure_loaded(witness_event_signature),
    Waiting = atomics:new(1, []),
    ?UNSURE_TABLE = ets:new(?UNSURE_TABLE, [named_table, public]),
    Teller = spawn_link(fun() -> loop(#teller{port = Port, waiting = Waiting}) end),
    persistent_term:put(?MODULE, {Teller, Waiting}).

-doc "Whether reports are wanted.".
-spec is_on() -> boolean().
is_on() -> persistent_term:get(?MODULE, off) =/= off.

-doc "Whether every detail is wanted.".
-spec is_whole() -> boolean().
is_whole() -> persistent_term:get({?MODULE, whole}, false).

-doc "A block was read.".
-spec more() -> ok.
more() ->
    {Teller, _} = persistent_term:get(?MODULE),
    Teller ! more,
    ok.

-doc "Whether so many reports wait that processes may wait for the teller.".
-spec is_behind() -> boolean().
is_behind() ->
    case persistent_term:get(?MODULE, off) of
        off -> false;
        {_, Waiting} -> atomics:get(Waiting, 1) > ?CROWD
    end.

-doc "Passes on all reports so far, whether the consumer has read the previous ones or not.".
-spec finish() -> ok.
finish() ->
    case persistent_term:get(?MODULE, off) of
        off -> ok;
        {Teller, _} -> asked(finish, Teller)
    end.

%% --- what processes do -----------------------------------------------------------

-doc "A process without a replayed parent starts.".
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

%% If the next entry is the process's own action, what comes before it has happened.
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

-doc "A process has ended, and passed its last entry. One that was cut reports nothing.".
-spec ended(ended | killed | cut, #process{}) -> ok.
ended(How, #process{id = Id, at = At, recent = [{exit, Reason} | _]}) when How =/= cut ->
    told({Id, At, {exit, How, Reason}}, wait);
ended(_, _) -> ok.

-doc "A process was killed with nothing left but its end. It is not known what it would have sent from here on.".
-spec killed(#process{} | none) -> ok.
killed(#process{id = Id, at = At, entries = [{exit, Reason}]}) ->
    ok = told({Id, At, lost}, no_wait),
    told({Id, At + 1, {exit, killed, Reason}}, no_wait);
killed(_) -> ok.

-doc "A process does something that is no event, by its next entry. This is reported if every detail is wanted.".
-spec did(detail(), #process{}) -> ok.
did(What, #process{id = Id, at = At}) ->
    case is_whole() of
        true -> told({Id, At + 1, What}, wait);
        false -> ok
    end.

-doc "The same, for an action that is no entry.".
-spec acts(detail(), #process{}) -> ok.
acts(What, #process{id = Id, at = At}) ->
    case is_whole() of
        true -> told({Id, At, What}, wait);
        false -> ok
    end.

-doc "A detail of what the process is about to send or to spawn.".
-spec leads(detail(), #process{}) -> ok.
leads(What, #process{id = Id, at = At}) ->
    case is_whole() of
        true -> passed_on({Id, At, What}, wait);
        false -> ok
    end.

told({Id, Entry, What} = Told, Wait) ->
    %% With `no_wait' the controller reports about another process, so its own stack does not matter.
    case Wait =:= wait andalso is_whole() of
        true ->
            {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
            passed_on({Id, Entry, {at, witness_replay_interpreter:stack(Stack), What}}, Wait);
        false -> passed_on(Told, Wait)
    end.

%% The controller must not wait: it passes on that blocks were read.
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

-doc """
Waits until a process has handled all that was sent to it before, or has ended. The teller ends with the port, and then no
reports are wanted any more.
""".
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

%% Reports that were sent before `finish' precede it in the mailbox.
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
