-module(witness_replay_emitter).
-moduledoc """
Reports what replayed processes do, from inside the VM of the replay. `m:witness_replay_events` makes events of the reports.

Each process reports an action when it does it. A process of its own, the emitter, passes the reports on in blocks, over a port
to `m:witness_replay_vm`. *Invariant:* the order of the reports agrees with cause and effect. The sender reports a message
before it sends it, and the receiver reports it after it has taken it. A message to a process of the same node is in its mailbox
when the send returns, if the receiver keeps its messages on its heap, as the emitter does.

*Backpressure.* The consumer of the reports says when it wants more (`acknowledge/0`). Until then only a few blocks are on their
way. If too many reports wait for the emitter, a process with a further report waits too.

*Unsure actions.* If the log of a process has nothing left but an end that may be a signal's, its sends may not have happened, and
neither may its calls and their returns. They are reported as *unsure*. Of a process that sends or calls forever only the first ones are
reported.
""".

-export([start/3, is_on/0, is_whole/0, acknowledge/0, is_behind/0, sync/2, finish/0]).
-export([report_birth/2, report_spawn/3, report_send/4, report_call/3, report_return/3, is_observed/2, report_foreign/3,
         report_take/3, report_exit/2, report_kill/1, report_detail/2,
         report_action/2, report_before/2]).

-export_type([report/0, what/0, detail/0]).

-doc "A report: a process, its entry, and what it did. For an action that is no entry: the number of entries before it.".
-type report() :: {Id :: pos_integer(), Entry :: non_neg_integer(), what()}.

-doc """
`hidden`: a call of a module that may call a function that is observed. `lost`: what it sends and calls from here on is not reported.
Births and spawns have the signature, which for a fun only this VM knows.
""".
-type what() :: {born, witness_event:signature()} | {spawn, Child :: pos_integer(), witness_event:signature()}
    | {send, To :: term(), Msg :: term(), sure | unsure} | {called, {module(), atom(), [term()]}, sure | unsure}
    | {returned, mfa(), Value :: term(), sure | unsure} | {hidden, sure | unsure} | lost
              | {recv, From :: pos_integer() | outside, Msg :: term()} | {exit, ended | killed, Reason :: term()}
              | detail().

-doc """
What is reported in addition if all details are wanted: the stack of each report; calls, and timeouts. Before a message that is
not sent to a pid: the process that gets it. Before a spawn: the function that spawns, and its options. `ordered`: the place of a
call in the order of calls on shared memory (`t:witness_log_recording:ordered/0`).
""".
-type detail() :: {at, Stack :: [tuple()], what() | detail()}
                | {call, mfa(), Args :: [term()], Value :: term()}
                    | {raise, mfa(), Args :: [term()], Class :: atom(), Reason :: term()}
                | {effect, mfa(), Args :: [term()]} | timeout
                | {ordered, Begin :: non_neg_integer(), End :: non_neg_integer(), detail()}
                | {leads, pos_integer()} | {with, Function :: atom(), Options :: term()}.

%% Reports of a block; blocks that were not read yet; reports that may wait for the emitter.
-define(BLOCK_REPORTS, 200).
-define(MAX_UNREAD, 4).
-define(HIGH_WATER, 10_000).
%% Milliseconds after which a block is passed on that is not full.
-define(FLUSH_MS, 20).
%% Unsure actions that each process reports.
-define(MAX_UNSURE, 1_000).
-define(UNSURE_TABLE, witness_replay_unsure).

-record(emitter, {port :: port(),
                 waiting :: atomics:atomics_ref(),
                 reports = [] :: [report()],
                 size = 0 :: non_neg_integer(),
                 unread = 0 :: non_neg_integer(),
                 last = false :: boolean()}).

-doc """
Starts to report, over this port. The controller calls it before anything is replayed. `Whole`: with all details. Calls and returns are
reported of the functions that are observed.
""".
-spec start(port(), Whole :: boolean(), witness_replay_functions:observed()) -> ok.
start(Port, Whole, Observed) ->
    ok = persistent_term:put({?MODULE, whole}, Whole),
    ok = persistent_term:put({?MODULE, observed}, Observed),
    %% Processes use these modules, and must not load them as a step of theirs.
    ok = code:ensure_modules_loaded([witness_event_signature, witness_event_wrapper]),
    Waiting = atomics:new(1, []),
    ?UNSURE_TABLE = ets:new(?UNSURE_TABLE, [named_table, public]),
    Emitter = spawn_link(fun() -> loop(#emitter{port = Port, waiting = Waiting}) end),
    persistent_term:put(?MODULE, {Emitter, Waiting}).

-doc "Whether reports are wanted.".
-spec is_on() -> boolean().
is_on() -> persistent_term:get(?MODULE, off) =/= off.

-doc "Whether every detail is wanted.".
-spec is_whole() -> boolean().
is_whole() -> persistent_term:get({?MODULE, whole}, false).

-doc "A block was read.".
-spec acknowledge() -> ok.
acknowledge() ->
    {Emitter, _} = persistent_term:get(?MODULE),
    Emitter ! more,
    ok.

-doc "Whether so many reports wait that processes may wait for the emitter.".
-spec is_behind() -> boolean().
is_behind() ->
    case persistent_term:get(?MODULE, off) of
        off -> false;
        {_, Waiting} -> atomics:get(Waiting, 1) > ?HIGH_WATER
    end.

-doc "Passes on all reports so far, whether the consumer has read the previous ones or not.".
-spec finish() -> ok.
finish() ->
    case persistent_term:get(?MODULE, off) of
        off -> ok;
        {Emitter, _} -> sync(finish, Emitter)
    end.

%% --- what processes do -----------------------------------------------------------

-doc "A process without a replayed parent starts.".
-spec report_birth(pos_integer(), {module(), atom(), [term()]}) -> ok.
report_birth(Id, MFA) ->
    case is_on() of
        true -> report({Id, 0, {born, witness_replay_process_table:signature(MFA)}}, no_wait);
        false -> ok
    end.

-doc "A process is about to spawn, by its next entry.".
-spec report_spawn(pos_integer(), {module(), atom(), [term()]}, witness_replay_process:process()) -> ok.
report_spawn(Child, MFA, P) ->
    case is_on() of
        true -> report(by_entry({spawn, Child, witness_replay_process_table:signature(MFA)}, P), wait);
        false -> ok
    end.

-doc "A process sends. The entry is its next one.".
-spec report_send(term(), term(), witness_log_recording:run() | done, witness_replay_process:process()) -> ok.
report_send(To, Msg, Entry, P) -> report_act({send, To, Msg}, Entry, P).

-doc "A function is called. The entry is the next one of the process.".
-spec report_call({module(), atom(), [term()]}, witness_log_recording:run() | done, witness_replay_process:process()) -> ok.
report_call({Module, Function, Args} = Call, Entry, P) ->
    case is_observed(call, {Module, Function, length(Args)}) of
        true -> report_act({called, Call}, Entry, P);
        false -> ok
    end.

-doc "A call returns. The entry is the next one of the process.".
-spec report_return({mfa(), Value :: term()}, witness_log_recording:run() | done, witness_replay_process:process()) -> ok.
report_return({MFA, Value}, Entry, P) ->
    case is_observed(return, MFA) of
        true -> report_act({returned, MFA, Value}, Entry, P);
        false -> ok
    end.

-doc "Whether the calls or the returns of a function are reported.".
-spec is_observed(call | return, mfa()) -> boolean().
is_observed(Kind, MFA) ->
    case persistent_term:get({?MODULE, observed}, off) of
        #{functions := #{MFA := Kinds}} -> lists:member(Kind, Kinds);
        _ -> false
    end.

-doc "A function of a module that is not woven is called. The entry is the next one of the process.".
-spec report_foreign(module(), witness_log_recording:run() | done, witness_replay_process:process()) -> ok.
report_foreign(Module, Entry, P) ->
    case persistent_term:get({?MODULE, observed}, off) of
        #{hiding := #{Module := _}} -> report_act({hidden}, Entry, P);
        _ -> ok
    end.

report_act(Act, Entry, P) ->
    case is_sure(Entry) of
        true -> report(place(Entry, Act, erlang:append_element(Act, sure), P), wait);
        false ->
            Id = witness_replay_process:id(P),
            case ets:update_counter(?UNSURE_TABLE, Id, 1, {Id, 0}) of
                N when N =< ?MAX_UNSURE -> report(between(erlang:append_element(Act, unsure), P), wait);
                N when N =:= ?MAX_UNSURE + 1 -> report(between(lost, P), wait);
                _ -> ok
            end
    end.

%% An action may have an entry of its own.
place({sent, _, _}, {send, _, _}, What, P) -> by_entry(What, P);
place({result, {M, F, A}, _}, {called, {M, F, Args}}, What, P) when length(Args) =:= A -> by_entry(What, P);
place({result, MFA, _}, {returned, MFA, _}, What, P) -> by_entry(What, P);
place({raise, {M, F, A}, _, _}, {called, {M, F, Args}}, What, P) when length(Args) =:= A -> by_entry(What, P);
place(_, _, What, P) -> between(What, P).

%% What a process does by its next entry.
by_entry(What, P) -> {witness_replay_process:id(P), witness_replay_process:position(P), What}.

%% What a process does without an entry of its own.
between(What, P) -> {witness_replay_process:id(P), witness_replay_process:passed(P), What}.

%% If the next entry is the process's own action, what comes before it has happened.
is_sure(done) -> false;
is_sure({exit, normal}) -> true;
is_sure({exit, _}) -> false;
is_sure(_) -> true.

-doc "A process has taken a message, by the entry that was its next one.".
-spec report_take(pos_integer() | outside, witness_replay_process:process(), Taken) -> Taken when Taken :: [term(), ...].
report_take(From, P, [Msg] = Taken) ->
    ok = report(by_entry({recv, From, Msg}, P), wait),
    Taken.

-doc "A process has ended, and passed its last entry. One that was cut reports nothing.".
-spec report_exit(ended | killed | cut, witness_replay_process:process()) -> ok.
report_exit(cut, _) -> ok;
report_exit(How, P) ->
    case witness_replay_process:passed_exit(P) of
        {exit, Reason} -> report(between({exit, How, Reason}, P), wait);
        none -> ok
    end.

-doc "A process was killed with nothing left but its end. It is not known what it would have sent from here on.".
-spec report_kill(witness_replay_process:process()) -> ok.
report_kill(P) ->
    case witness_replay_process:peek(P) of
        {exit, Reason} ->
            ok = report(between(lost, P), no_wait),
            report(by_entry({exit, killed, Reason}, P), no_wait);
        _ -> ok
    end.

-doc "A process does something that is no event, by its next entry. This is reported if every detail is wanted.".
-spec report_detail(detail(), witness_replay_process:process()) -> ok.
report_detail(What, P) ->
    case is_whole() of
        true -> report(by_entry(with_order(What, witness_replay_process:order(P)), P), wait);
        false -> ok
    end.

with_order(What, none) -> What;
with_order(What, {Begin, End}) -> {ordered, Begin, End, What}.

-doc "The same, for an action that is no entry.".
-spec report_action(detail(), witness_replay_process:process()) -> ok.
report_action(What, P) ->
    case is_whole() of
        true -> report(between(What, P), wait);
        false -> ok
    end.

-doc "A detail of what the process is about to send or to spawn.".
-spec report_before(detail(), witness_replay_process:process()) -> ok.
report_before(What, P) ->
    case is_whole() of
        true -> pass_on(between(What, P), wait);
        false -> ok
    end.

report({Id, Entry, What} = Told, Wait) ->
    %% With `no_wait' the controller reports about another process, so its own stack does not matter.
    case Wait =:= wait andalso is_whole() of
        true ->
            {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
            pass_on({Id, Entry, {at, witness_replay_stack:of_program(Stack), What}}, Wait);
        false -> pass_on(Told, Wait)
    end.

%% The controller must not wait: it passes on that blocks were read.
pass_on(Told, Wait) ->
    case persistent_term:get(?MODULE, off) of
        off -> ok;
        {Emitter, Waiting} ->
            Emitter ! {told, Told},
            case atomics:add_get(Waiting, 1, 1) > ?HIGH_WATER of
                true when Wait =:= wait -> sync(reached, Emitter);
                _ -> ok
            end
    end.

-doc """
Waits until a process has handled all that was sent to it before, or has ended. The emitter ends with the port, and then no
reports are wanted any more.
""".
-spec sync(reached | finish, pid()) -> ok.
sync(Question, Pid) ->
    Ref = monitor(process, Pid),
    Pid ! {Question, self(), Ref},
    receive
        {Ref, ok} ->
            true = demonitor(Ref, [flush]),
            ok;
        {'DOWN', Ref, process, Pid, _} -> ok
    end.

%% --- the emitter ------------------------------------------------------------------

-spec loop(#emitter{}) -> no_return().
loop(#emitter{size = Size} = T) when Size >= ?BLOCK_REPORTS -> loop(flush(T));
loop(#emitter{reports = Told, size = Size, unread = Unread} = T) ->
    receive
        {told, One} -> loop(T#emitter{reports = [One | Told], size = Size + 1});
        more -> loop(T#emitter{unread = Unread - 1});
        {reached, From, Ref} ->
            From ! {Ref, ok},
            loop(T);
        {finish, From, Ref} ->
            Passed = flush(T#emitter{last = true}),
            From ! {Ref, ok},
            loop(Passed)
    after case Size of 0 -> infinity; _ -> ?FLUSH_MS end -> loop(flush(T))
    end.

%% Reports that were sent before `finish' precede it in the mailbox.
flush(#emitter{size = 0} = T) -> T;
flush(#emitter{unread = Unread, last = false} = T) when Unread >= ?MAX_UNREAD ->
    receive
        more -> flush(T#emitter{unread = Unread - 1});
        {finish, _, _} = Finish ->
            self() ! Finish,
            flush(T#emitter{last = true})
    end;
flush(#emitter{port = Port, waiting = Waiting, reports = Told, size = Size, unread = Unread} = T) ->
    true = port_command(Port, term_to_binary({events, lists:reverse(Told)})),
    ok = atomics:sub(Waiting, 1, Size),
    T#emitter{reports = [], size = 0, unread = Unread + 1}.
