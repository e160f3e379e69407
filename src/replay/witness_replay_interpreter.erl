-module(witness_replay_interpreter).
-moduledoc """
The interpreter of a replayed process: what its log says next, and how it ends.

A process has its state, a `#process{}` (`m:witness_replay_process`), in its dictionary, under a key that the program does not
see. The functions that answer the program (`m:witness_replay_messages`, `m:witness_replay_results`, `m:witness_replay_life`)
take the next entry with `peeked/1`, and store the state after it with `keep/1`. *Invariant:* a process does only what its log
says next, or it diverges.

If an entry does not answer what the program asks for, the process ends:

- its log has an exit that a signal can have caused: `killed`;
- its log has nothing more, since the recording was cut there: `cut`;
- otherwise it diverges.

A process that comes to its end by itself calls `finished/1`. Each end is reported to the controller (`m:witness_replay_node`).
""".

-export([begin_all/1, given/0, told/1, keep/1, peeked/1, looked/1, unanswered/3, diverged/3, finished/1, stopped/2, has_sent_exit/2,
         signalled/2, printed/1, unseen/3, stack/1]).

-include("src/replay/witness_replay_process.hrl").

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
-spec begin_all(#{calls := #{mfa() => non_neg_integer()}, checked := boolean(), announced := boolean(), marked := [mfa()], compiled := boolean(),
                  mirror := boolean()}) -> ok.
begin_all(Given) ->
    ok = witness_replay_proxies:start(witness_replay_process_table:last()),
    _ = ets:new(?SIGNALS, [named_table, public, bag]),
    ok = witness_replay_backpressure:start(fun witness_replay_process_table:parent/1),
    ok = witness_record_runtime:stands_in(witness_replay_runtime),
    persistent_term:put(?MODULE, Given#{controller => self()}).

-doc "What `begin_all/1` was given, and its caller, `controller`.".
-spec given() -> #{atom() => term()}.
given() -> persistent_term:get(?MODULE).

-doc "Reports to the controller.".
-spec told(term()) -> term().
told(What) ->
    #{controller := Controller} = persistent_term:get(?MODULE),
    Controller ! {witness_replay, What}.

%% --- the next entry --------------------------------------------------------------

-doc "Stores the state of the process.".
-spec keep(witness_replay_process:process()) -> term().
keep(P) -> put(?KEY, P).

-doc "The next entry. If the process has reached its limit, it stops here first.".
-spec peeked(witness_replay_process:process()) -> {witness_log_recording:run() | done, witness_replay_process:process()}.
peeked(#process{at = At, limit = Limit} = P) when At >= Limit -> peeked(witness_replay_breakpoint:wait(P));
peeked(P) -> looked(P).

-doc "The same, but the process does not stop.".
-spec looked(witness_replay_process:process()) -> {witness_log_recording:run() | done, witness_replay_process:process()}.
looked(P) ->
    case witness_replay_process:peek(P) of
        {error, Error} ->
            told({unreadable, Error}),
            gone();
        Peeked -> Peeked
    end.

-doc "The entry does not answer what the program wants: the process ends.".
-spec unanswered(witness_log_recording:run() | done, term(), #process{}) -> no_return().
unanswered(done, _, P) -> stopped(cut, P);
unanswered({exit, Reason} = Entry, Wanted, P) ->
    case was_killed(Reason, P) of
        true -> stopped(killed, witness_replay_process:pop(P));
        false -> diverged(Entry, Wanted, P)
    end;
unanswered(waited, {'receive', _} = Wanted, P0) ->
    case looked(witness_replay_process:pop(P0)) of
        {{exit, _}, P} -> stopped(killed, witness_replay_process:pop(P));
        {done, P} -> stopped(cut, P);
        {Entry, P} -> diverged(Entry, Wanted, P)
    end;
unanswered(Entry, Wanted, P) -> diverged(Entry, Wanted, P).

-doc "Reports a divergence to the controller. The process does nothing more.".
-spec diverged(witness_log_recording:run() | done, term(), #process{}) -> no_return().
diverged(Entry, Wanted, P) ->
    told({diverged, told_of_divergence(Entry, Wanted, P)}),
    gone().

told_of_divergence(Entry, Wanted, #process{id = Id, at = At} = P) ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    #{id => Id, at => At + 1, log => Entry, program => Wanted, stack => stack(Stack),
      recent => witness_replay_process:recent(P)}.

%% --- ends ------------------------------------------------------------------------

-doc "The program has ended, for this reason.".
-spec finished(term()) -> no_return().
finished(Reason) ->
    {Entry, P} = peeked(get(?KEY)),
    case Entry of
        done -> stopped(ended, P);
        {exit, Recorded} ->
            case witness_replay_reason:same(Recorded, Reason) of
                true -> stopped(ended, witness_replay_process:pop(P));
                false ->
                    case was_killed(Recorded, P) of
                        true when Recorded =:= killed ->
                            %% In the recorded VM its heap exceeded a limit.
                            case witness_replay_heap:is_limited(P) of
                                true -> stopped(killed, witness_replay_process:pop(P));
                                false -> suspected(Recorded, Entry, {exits, Reason}, P)
                            end;
                        true -> suspected(Recorded, Entry, {exits, Reason}, P);
                        false -> diverged(Entry, {exits, Reason}, P)
                    end
            end;
        _ -> diverged(Entry, {exits, Reason}, P)
    end.

%% A signal with the reason `normal' ends no process. A reason with a stack trace is that of a crash: of this process, or of
%% another one, which came over a link. In the latter case that process has ended with the same reason.
was_killed(normal, _) -> false;
was_killed(Reason, #process{id = Id}) ->
    not witness_replay_reason:has_stack(Reason)
        orelse witness_replay_log:shared(Id, Reason).

%% The process has ended by itself, but its log has another reason: so a signal came at the last moment. Whether a process has
%% sent one is known only when all processes are done.
-spec suspected(term(), witness_log_recording:run(), term(), #process{}) -> no_return().
suspected(Reason, Entry, Wanted, #process{pid = Pid} = P) ->
    told({suspected, Pid, Reason, told_of_divergence(Entry, Wanted, P)}),
    stopped(killed, witness_replay_process:pop(P)).

-doc "Notes that a replayed process sends an exit signal.".
-spec has_sent_exit(pid() | port() | reference(), term()) -> true.
has_sent_exit(To, Reason) -> ets:insert(?SIGNALS, {To, Reason}).

-doc "Whether a replayed process has sent an exit signal to this one that may have ended it with this reason.".
-spec signalled(pid(), term()) -> boolean().
signalled(Pid, Reason) ->
    lists:any(fun({_, kill}) -> Reason =:= killed;
                 ({_, Sent}) -> witness_replay_reason:same(Reason, Sent)
              end, ets:lookup(?SIGNALS, Pid)).

-doc "Ends the process: it reports its end to the controller, and runs no code of the program any more.".
-spec stopped(ended | killed | cut, #process{}) -> no_return().
stopped(How, #process{id = Id, pid = Pid, at = At, flow = Flow, owners = Owners} = P) ->
    ok = witness_replay_heap:forget(),
    ok = witness_replay_backpressure:ended(Id, Flow),
    ok = witness_replay_proxies:ended(Id, Pid),
    ok = witness_replay_proxies:forget(Owners),
    ok = witness_replay_emitter:ended(How, P),
    witness_replay_log:forget(Id),
    told({ended, Id, How, At}),
    gone().

-spec gone() -> no_return().
gone() ->
    exit(self(), kill),
    receive after infinity -> gone() end.

%% --- outside of the program ------------------------------------------------------

-doc "Reports what a program prints, if the controller wants that.".
-spec printed(term()) -> ok.
printed(Request) ->
    case persistent_term:get(?MODULE) of
        #{mirror := true} -> told({output, Request});
        #{mirror := false} -> ok
    end,
    ok.

-doc "Calls a function as a process that is not replayed.".
-spec unseen(module(), atom(), [term()]) -> term().
unseen(Module, Function, Args) ->
    case get(?KEY) of
        #process{} = P ->
            put(?KEY, outside),
            try
                erlang:apply(Module, Function, Args)
            after
                put(?KEY, P)
            end;
        _ -> erlang:apply(Module, Function, Args)
    end.

-doc "A stack without the frames of the replay.".
-spec stack([term()]) -> [term()].
stack(Stack) -> [Frame || Frame <- Stack, not is_own_frame(Frame)].

is_own_frame(Frame) when is_tuple(Frame), tuple_size(Frame) > 0 ->
    lists:member(element(1, Frame), [?MODULE, witness_replay_runtime, witness_replay_life, witness_replay_messages, witness_replay_results,
                                     witness_replay_process, witness_replay_backpressure, witness_replay_proxies, witness_replay_process_table,
                                     witness_replay_log, witness_replay_emitter, witness_replay_breakpoint, witness_weave_funs]);
is_own_frame(_) -> false.
