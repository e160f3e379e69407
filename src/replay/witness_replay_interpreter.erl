-module(witness_replay_interpreter).
-moduledoc """
The interpreter of a replayed process: what its log says next, and how it ends.

A process has its state (`m:witness_replay_process`) in its dictionary, under a key that the program does not
see. The functions that answer the program (`m:witness_replay_messages`, `m:witness_replay_results`, `m:witness_replay_spawn`)
look at the next entry with `next_entry/1`, take it with `pop_entry/1`, and store the state after it with `put_state/1`.
*Invariant:* a process does only what its log says next, or it diverges.

If an entry does not answer what the program asks for, the process ends:

- its log has an exit that a signal can have caused: `killed`;
- its log has nothing more, since the recording was cut there: `cut`;
- otherwise it diverges.

A process that comes to its end by itself calls `finish/1`. Each end is reported to the controller (`m:witness_replay_node`).
""".

-export([init/1, config/0, call_number/3, notify_controller/1]).
-export([key/0, current/0, put_state/1, state_of/1, answer_request/2, resume/1]).
-export([next_entry/1, peek_entry/1, pop_entry/1, handle_mismatch/3, diverge/3, finish/1, stop/2]).
-export([note_exit_signal/2, has_exit_signal/2, report_output/1, call_outside/3]).

-compile({inline, [state/1]}).

%% The key of the recorder.
-define(KEY, '$witness_record').

-define(SIGNALS, witness_replay_signals).

-doc """
Makes the tables. The caller is the controller, and gets what processes report as `{witness_replay, What}`.

- `calls`: the numbers of calls, for those that are known at run time only;
- `checked`: the log has hashes or contents of messages; `announced`: it has what was sent;
- `marked`: the log has entries of these calls, although they have no result: exits that processes raise themselves,
  hibernation;
- `compiled`: the log has the results of compiling patterns;
- `mirror`: the controller wants the output of the program.
""".
-spec init(#{calls := #{mfa() => non_neg_integer()}, checked := boolean(), announced := boolean(), marked := [mfa()],
             compiled := boolean(), mirror := boolean()}) -> ok.
init(Given) ->
    ok = witness_replay_proxies:start(witness_replay_process_table:last()),
    _ = ets:new(?SIGNALS, [named_table, public, bag]),
    ok = witness_replay_backpressure:start(fun witness_replay_process_table:parent/1),
    persistent_term:put(?MODULE, Given#{controller => self()}).

-doc "What `init/1` was given, and its caller, `controller`.".
-spec config() -> #{atom() => term()}.
config() -> persistent_term:get(?MODULE).

-doc "The number of a call that is known at run time only. `none`: it has none.".
-spec call_number(module(), atom(), arity()) -> non_neg_integer() | none.
call_number(Module, Function, Arity) ->
    %% Woven modules of OTP run before there is a configuration.
    case persistent_term:get(?MODULE, off) of
        #{calls := #{{Module, Function, Arity} := Number}} -> Number;
        _ -> none
    end.

-doc "Reports to the controller.".
-spec notify_controller(term()) -> term().
notify_controller(What) ->
    #{controller := Controller} = persistent_term:get(?MODULE),
    Controller ! {witness_replay, What}.

%% --- the state -------------------------------------------------------------------

-doc "The key in the dictionary of a process under which its state is.".
-spec key() -> atom().
key() -> ?KEY.

-doc "The state of the caller. `none`: it is outside, that is, not replayed.".
-spec current() -> witness_replay_process:process() | none.
current() -> state(get(?KEY)).

state(undefined) -> none;
state(outside) -> none;
state({asked, _, _}) -> none;
state(P) -> P.

-doc "Stores the state of the caller.".
-spec put_state(witness_replay_process:process()) -> term().
put_state(P) -> put(?KEY, P).

-doc "The state of a live process, if that is replayed, and has not ended.".
-spec state_of(pid()) -> witness_replay_process:process() | none.
state_of(Proxy) ->
    maybe
        {dictionary, Entries} ?= process_info(Proxy, dictionary),
        {_, State} ?= lists:keyfind(?KEY, 1, Entries),
        state(State)
    else
        _ -> none
    end.

-doc """
The caller is going to answer a request for its state (`m:witness_replay_breakpoint`), in a `receive` of this module. It is outside
until it is back there.
""".
-spec answer_request(module(), witness_replay_process:process()) -> term().
answer_request(Module, P) -> put(?KEY, {asked, Module, P}).

-doc "The caller is in a `receive` of this module. The result is its state, if it is back from a request for it.".
-spec resume(module()) -> witness_replay_process:process() | none.
resume(Module) ->
    case get(?KEY) of
        {asked, Module, P} ->
            put_state(P),
            P;
        _ -> none
    end.

%% --- the next entry --------------------------------------------------------------

-doc "The next entry. If the process has reached its limit, it stops here first.".
-spec next_entry(witness_replay_process:process()) -> {witness_log_recording:run() | done, witness_replay_process:process()}.
next_entry(P) ->
    case witness_replay_process:next(P) of
        limit -> next_entry(witness_replay_breakpoint:wait(P));
        fetch -> next_entry(fetch(P));
        Entry -> {Entry, P}
    end.

-doc "The same, but the process does not stop.".
-spec peek_entry(witness_replay_process:process()) -> {witness_log_recording:run() | done, witness_replay_process:process()}.
peek_entry(P) ->
    case witness_replay_process:peek(P) of
        fetch -> peek_entry(fetch(P));
        Entry -> {Entry, P}
    end.

fetch(P) ->
    case witness_replay_log:next(witness_replay_process:id(P)) of
        {ok, {Entries, More}} -> perform(witness_replay_process:add_entries(Entries, More, P));
        {error, Error} ->
            notify_controller({unreadable, Error}),
            die()
    end.

-doc "The state after the entry that was the next one.".
-spec pop_entry(witness_replay_process:process()) -> witness_replay_process:process().
pop_entry(P) -> perform(witness_replay_process:pop(P)).

%% Does what is due. The result is the state.
perform({[], P}) -> P;
perform({[sync_tracer | Due], P}) ->
    ok = witness_replay_traced:sync(),
    perform({Due, P});
perform({[release_senders | Due], P}) ->
    ok = witness_replay_backpressure:release_senders(witness_replay_process:flow(P)),
    perform({Due, P});
perform({[bound_heap | Due], P}) ->
    ok = witness_replay_heap:bound(P),
    perform({Due, P}).

-doc "The entry does not answer what the program wants: the process ends.".
-spec handle_mismatch(witness_log_recording:run() | done, term(), witness_replay_process:process()) -> no_return().
handle_mismatch(done, _, P) -> stop(cut, P);
handle_mismatch({exit, Reason} = Entry, Wanted, P) ->
    case was_killed(Reason, P) of
        true -> stop(killed, pop_entry(P));
        false -> diverge(Entry, Wanted, P)
    end;
handle_mismatch(waited, {'receive', _} = Wanted, P0) ->
    case peek_entry(pop_entry(P0)) of
        {{exit, _}, P} -> stop(killed, pop_entry(P));
        {done, P} -> stop(cut, P);
        {Entry, P} -> diverge(Entry, Wanted, P)
    end;
handle_mismatch(Entry, Wanted, P) -> diverge(Entry, Wanted, P).

-doc "Reports a divergence to the controller. The process does nothing more.".
-spec diverge(witness_log_recording:run() | done, term(), witness_replay_process:process()) -> no_return().
diverge(Entry, Wanted, P) ->
    notify_controller({diverged, divergence(Entry, Wanted, P)}),
    die().

divergence(Entry, Wanted, P) ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    #{id => witness_replay_process:id(P), at => witness_replay_process:position(P), log => Entry, program => Wanted,
      stack => witness_replay_stack:of_program(Stack), recent => witness_replay_process:recent(P)}.

%% --- ends ------------------------------------------------------------------------

-doc "The program has ended, for this reason.".
-spec finish(term()) -> no_return().
finish(Reason) ->
    {Entry, P} = next_entry(current()),
    case Entry of
        done -> stop(ended, P);
        {exit, Recorded} ->
            case witness_replay_reason:same(Recorded, Reason) of
                true -> stop(ended, pop_entry(P));
                false ->
                    case was_killed(Recorded, P) of
                        true when Recorded =:= killed ->
                            %% In the recorded VM its heap exceeded a limit.
                            case witness_replay_heap:is_limited(P) of
                                true -> stop(killed, pop_entry(P));
                                false -> suspect(Recorded, Entry, {exits, Reason}, P)
                            end;
                        true -> suspect(Recorded, Entry, {exits, Reason}, P);
                        false -> diverge(Entry, {exits, Reason}, P)
                    end
            end;
        _ -> diverge(Entry, {exits, Reason}, P)
    end.

%% A signal with the reason `normal' ends no process. A reason with a stack trace is that of a crash: of this process, or of
%% another one, which came over a link. In the latter case that process has ended with the same reason.
was_killed(normal, _) -> false;
was_killed(Reason, P) ->
    not witness_replay_reason:has_stack(Reason)
        orelse witness_replay_log:has_same_exit(witness_replay_process:id(P), Reason).

%% The process has ended by itself, but its log has another reason: so a signal came at the last moment. Whether a process has
%% sent one is known only when all processes are done.
-spec suspect(term(), witness_log_recording:run(), term(), witness_replay_process:process()) -> no_return().
suspect(Reason, Entry, Wanted, P) ->
    notify_controller({suspected, witness_replay_process:pid(P), Reason, divergence(Entry, Wanted, P)}),
    stop(killed, pop_entry(P)).

-doc "Notes that a replayed process sends an exit signal.".
-spec note_exit_signal(pid() | port() | reference(), term()) -> true.
note_exit_signal(To, Reason) -> ets:insert(?SIGNALS, {To, Reason}).

-doc "Whether a replayed process has sent an exit signal to this one that may have ended it with this reason.".
-spec has_exit_signal(pid(), term()) -> boolean().
has_exit_signal(Pid, Reason) ->
    lists:any(fun({_, kill}) -> Reason =:= killed;
                 ({_, Sent}) -> witness_replay_reason:same(Reason, Sent)
              end, ets:lookup(?SIGNALS, Pid)).

-doc "Ends the process: it reports its end to the controller, and runs no code of the program any more.".
-spec stop(ended | killed | cut, witness_replay_process:process()) -> no_return().
stop(How, P) ->
    Id = witness_replay_process:id(P),
    ok = witness_replay_heap:unbound(),
    ok = witness_replay_backpressure:handle_exit(Id, witness_replay_process:flow(P)),
    ok = witness_replay_proxies:delete(Id, witness_replay_process:pid(P)),
    ok = witness_replay_proxies:forget(witness_replay_process:owners(P)),
    ok = witness_replay_emitter:report_exit(How, P),
    witness_replay_log:forget(Id),
    notify_controller({ended, Id, How, witness_replay_process:passed(P)}),
    die().

-spec die() -> no_return().
die() ->
    exit(self(), kill),
    receive after infinity -> die() end.

%% --- outside of the program ------------------------------------------------------

-doc "Reports what a program prints, if the controller wants that.".
-spec report_output(term()) -> ok.
report_output(Request) ->
    case persistent_term:get(?MODULE) of
        #{mirror := true} -> notify_controller({output, Request});
        #{mirror := false} -> ok
    end,
    ok.

-doc "Calls a function as a process that is not replayed.".
-spec call_outside(module(), atom(), [term()]) -> term().
call_outside(Module, Function, Args) ->
    case current() of
        none -> erlang:apply(Module, Function, Args);
        P ->
            put(?KEY, outside),
            try
                erlang:apply(Module, Function, Args)
            after
                put_state(P)
            end
    end.
