-module(witness_replay_results).
-moduledoc """
Answers the calls of replayed processes from their logs.

*Invariant:* what a call returns or raises comes from the log, and the call is not executed. If the next entry is not that of
the call, the interpreter decides how the process ends (`m:witness_replay_interpreter`). Calls that act on other processes
(`effect/3`) do nothing: their consequences are in the logs of those processes.

Some results matter for later calls, so this module notes them: aliases that are active (`m:witness_replay_process`), compiled
patterns (`m:witness_replay_compiled`), limits of heaps (`m:witness_replay_heap`).
""".

-export([result/3, is_in_log/2, answer/4, return/4, called/3, returned/2, raise/5, local_funs/1, effect/3, halt/2,
         take_exit_mark/3, take_hibernation/2]).

-doc "A call of a function of the table.".
-spec result(module(), atom(), [term()]) -> term().
result(Module, Function, Args) ->
    P = witness_replay_interpreter:current(),
    case P =/= none andalso is_in_log(Module, Function) of
        true -> answer(witness_replay_interpreter:next_entry(P), Module, Function, Args);
        false -> erlang:apply(Module, Function, Args)
    end.

-doc "Whether the log has the results of a function of the table. Recordings of earlier builds lack some.".
-spec is_in_log(module(), atom()) -> boolean().
is_in_log(Module, Function) when Module =:= re; Module =:= binary; Function =:= is_compiled_ms ->
    #{compiled := Compiled} = witness_replay_interpreter:config(),
    Compiled;
is_in_log(_, _) -> true.

-doc "Answers a call with this entry of the log.".
-spec answer({witness_log_recording:run() | done, witness_replay_process:process()}, module(), atom(), [term()]) -> term().
answer({Entry, P}, Module, Function, Args) ->
    MFA = {Module, Function, length(Args)},
    ok = witness_replay_emitter:report_call({Module, Function, Args}, Entry, P),
    case Entry of
        {result, MFA, Value} -> return(MFA, Args, Value, P);
        {raise, MFA, Class, Reason} ->
            ok = witness_replay_emitter:report_detail({raise, MFA, Args, Class, Reason}, P),
            witness_replay_interpreter:put_state(witness_replay_interpreter:pop_entry(P)),
            raise(Class, Reason, Module, Function, Args);
        _ -> handle_mismatch(Entry, {call, Module, Function, Args}, P, MFA)
    end.

%% Calls that make a reference are in the log only if they return. They fail if their arguments are wrong.
-spec handle_mismatch(witness_log_recording:run() | done, term(), witness_replay_process:process(), mfa()) -> no_return().
handle_mismatch(Entry, Call, P, {erlang, Function, _}) when Function =:= monitor; Function =:= alias; Function =:= make_ref ->
    {call, Module, Function, Args} = Call,
    try erlang:apply(Module, Function, Args) of
        Ref ->
            true = is_reference(Ref) andalso erlang:demonitor(Ref, [flush]),
            witness_replay_interpreter:handle_mismatch(Entry, Call, P)
    catch
        error:Reason -> raise(error, Reason, Module, Function, Args)
    end;
handle_mismatch(Entry, Call, P, _) -> witness_replay_interpreter:handle_mismatch(Entry, Call, P).

-doc "A call returns this value, which is in the log.".
-spec return(mfa(), [term()], term(), witness_replay_process:process()) -> term().
return(MFA, Args, Value, P) ->
    ok = witness_replay_emitter:report_detail({call, MFA, Args, Value}, P),
    witness_replay_interpreter:put_state(note_state(MFA, Args, Value, witness_replay_interpreter:pop_entry(P))),
    Local = local_value(MFA, Args, Value),
    ok = witness_replay_emitter:report_return({MFA, Local}, {result, MFA, Value}, P),
    Local.

-doc "A function that reports its calls was called.".
-spec called(module(), atom(), [term()]) -> ok.
called(Module, Function, Args) ->
    report(call, {Module, Function, length(Args)}, fun witness_replay_emitter:report_call/3, {Module, Function, Args}).

-doc "A function that reports its returns returns.".
-spec returned(mfa(), Value :: term()) -> ok.
returned(MFA, Value) -> report(return, MFA, fun witness_replay_emitter:report_return/3, {MFA, Value}).

%% What the process does between two entries.
report(Kind, MFA, Report, What) ->
    case witness_replay_emitter:is_observed(Kind, MFA) andalso witness_replay_interpreter:current() of
        false -> ok;
        none -> ok;
        P0 ->
            {Entry, P} = witness_replay_interpreter:peek_entry(P0),
            witness_replay_interpreter:put_state(P),
            Report(What, Entry, P)
    end.

%% Only functions that are executed use the results of these.
local_value({Module, Function, _}, Args, Value) when Function =:= match_spec_compile; Module =:= re; Module =:= binary ->
    ok = witness_replay_compiled:note({Module, Function, Args}, Value),
    Value;
local_value(_, _, Value) -> local_funs(Value).

-doc "Translates funs of the recording to funs of this VM.".
-spec local_funs(term()) -> term().
local_funs(Value) when is_atom(Value); is_number(Value); is_pid(Value); is_reference(Value); is_binary(Value) -> Value;
local_funs(Value) -> witness_replay_interpreter:call_outside(witness_replay_fun, local, [Value]).

%% Notes which aliases are active, and the default limit of heaps.
note_state({erlang, monitor, 3}, [_, _, Options], Ref, P) -> note_monitor(Options, Ref, P);
note_state({erlang, alias, 0}, _, Ref, P) -> alias(Ref, explicit, P);
note_state({erlang, alias, 1}, [Options], Ref, P) ->
    alias(Ref, case lists:member(reply, Options) of true -> once; false -> explicit end, P);
note_state({erlang, unalias, 1}, [Ref], _, P) -> witness_replay_process:unalias({any, Ref}, P);
note_state({erlang, demonitor, 2}, [Ref, _], _, P) -> witness_replay_process:unalias({monitor, Ref}, P);
note_state({erlang, system_flag, 2}, [max_heap_size, Limit], _, P) ->
    ok = witness_replay_heap:set_default(Limit),
    P;
%% If the other process has ended, a signal comes later, even when this one has done all that it does.
note_state({erlang, link, _}, [Pid | _], true, P) when is_pid(Pid) ->
    true = witness_replay_interpreter:note_exit_signal(witness_replay_process:pid(P), noproc),
    P;
note_state({erlang, Spawn, _}, Args, {_, Ref}, P) when Spawn =:= spawn_opt, is_reference(Ref) -> note_spawn(Args, Ref, P);
note_state({erlang, Spawn, _}, Args, Ref, P) when Spawn =:= spawn_request, is_reference(Ref) -> note_spawn(Args, Ref, P);
note_state(_, _, _, P) -> P.

note_spawn(Args, Ref, P) ->
    case lists:last(Args) of
        Options when is_list(Options) ->
            case lists:keyfind(monitor, 1, [Option || Option <- Options, is_tuple(Option)]) of
                {monitor, Given} when is_list(Given) -> note_monitor(Given, Ref, P);
                _ -> P
            end;
        _ -> P
    end.

note_monitor(Options, Ref, P) ->
    case lists:keyfind(alias, 1, Options) of
        {alias, explicit_unalias} -> alias(Ref, explicit, P);
        {alias, demonitor} -> alias(Ref, monitor, P);
        {alias, reply_demonitor} -> alias(Ref, once, P);
        _ -> P
    end.

alias(Ref, How, P) ->
    New = witness_replay_proxies:alias(Ref, witness_replay_process:id(P)),
    witness_replay_process:alias(Ref, How, witness_replay_process:add_owners(New, P)).

-doc "Raises the exception of a call.".
-spec raise(error | exit | throw, term(), module(), atom(), [term()]) -> no_return().
raise(Class, Reason, Module, Function, Args) ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    erlang:raise(Class, Reason, [{Module, Function, Args, []} | witness_replay_stack:of_program(Stack)]).

-doc "The program ends its VM, which is the last thing that it does.".
-spec halt([term()], witness_replay_process:process() | none) -> no_return().
halt(Args, none) -> erlang:apply(erlang, halt, Args);
halt(Args, P) ->
    witness_record_runtime:may_halt(Args) orelse raise(error, badarg, erlang, halt, Args),
    {Entry, P1} = witness_replay_interpreter:next_entry(P),
    witness_replay_interpreter:handle_mismatch(Entry, {call, erlang, halt, Args}, P1).

-doc "A signal to another process, or output of the VM itself.".
-spec effect(atom(), [term()], witness_replay_process:process() | none) -> term().
effect(Function, Args, none) -> erlang:apply(erlang, Function, Args);
effect(process_flag, [max_heap_size, Limit], P) ->
    {Before, P1} = witness_replay_heap:flag(Limit, P),
    witness_replay_interpreter:put_state(P1),
    Before;
effect(process_flag, [min_heap_size, Size], P) -> witness_replay_heap:min_heap_size(Size, P);
effect(process_flag, Args, _) -> erlang:apply(erlang, process_flag, Args);
effect(Function, Args, _) ->
    MFA = {erlang, Function, length(Args)},
    ok = called(erlang, Function, Args),
    true = check_args(Function, Args),
    P = witness_replay_interpreter:current(),
    ok = witness_replay_emitter:report_action({effect, MFA, Args}, P),
    Value = run_effect(Function, Args, P),
    ok = returned(MFA, Value),
    Value.

check_args(Function, [To | _] = Args) when Function =:= exit; Function =:= exit_signal ->
    is_pid(To) orelse is_port(To) orelse is_reference(To) orelse raise(error, badarg, erlang, Function, Args);
check_args(unlink, [To] = Args) -> is_pid(To) orelse is_port(To) orelse raise(error, badarg, erlang, unlink, Args);
check_args(demonitor, [Ref] = Args) -> is_reference(Ref) orelse raise(error, badarg, erlang, demonitor, Args);
check_args(_, _) -> true.

run_effect(Function, [Pid, Reason | _], P) when Function =:= exit; Function =:= exit_signal ->
    case witness_replay_process:pid(P) of
        Pid -> take_own_signal(P);
        _ -> witness_replay_interpreter:note_exit_signal(Pid, Reason)
    end;
run_effect(demonitor, [Ref], P) ->
    witness_replay_interpreter:put_state(witness_replay_process:unalias({monitor, Ref}, P)),
    true;
run_effect(display, [Term], _) ->
    witness_replay_interpreter:report_output({put_chars, unicode, io_lib, format, ["~tw\n", [Term]]}),
    true;
run_effect(_, _, _) -> true.

%% A signal of the process to itself has arrived when the call returns.
take_own_signal(P) ->
    case witness_replay_interpreter:next_entry(P) of
        {{exit, _}, P1} -> witness_replay_interpreter:stop(killed, witness_replay_interpreter:pop_entry(P1));
        {_, P1} ->
            witness_replay_interpreter:put_state(P1),
            true
    end.

-doc "The program is about to make a call that raises an exit.".
-spec take_exit_mark(atom(), [term()], witness_replay_process:process() | none) -> ok.
take_exit_mark(_, _, none) -> ok;
take_exit_mark(exit, [normal], _) -> ok;
take_exit_mark(raise, [exit, normal, _], _) -> ok;
take_exit_mark(Function, [Class | _] = Args, P) when Function =:= exit; Class =:= exit ->
    _ = [witness_replay_interpreter:put_state(take_mark(ok, Function, Args, P)) || is_marked(Function, Args)],
    ok;
take_exit_mark(raise, _, _) -> ok.

-doc """
The process hibernates. It goes on if it has woken in the recording. Otherwise a signal has ended it there, or the recording was
cut there.
""".
-spec take_hibernation([term()], witness_replay_process:process()) -> ok | no_return().
take_hibernation(Args, P0) ->
    case is_marked(hibernate, Args) of
        true ->
            P1 = take_mark(ok, hibernate, Args, P0),
            case witness_replay_interpreter:next_entry(P1) of
                {{exit, _}, P} -> witness_replay_interpreter:stop(killed, witness_replay_interpreter:pop_entry(P));
                {_, P} -> witness_replay_interpreter:put_state(take_mark(true, hibernate, Args, P))
            end,
            ok;
        false -> ok
    end.

%% Whether the recording has entries of such calls.
is_marked(Function, Args) ->
    #{marked := Marked} = witness_replay_interpreter:config(),
    lists:member({erlang, Function, length(Args)}, Marked).

take_mark(Value, Function, Args, P0) ->
    MFA = {erlang, Function, length(Args)},
    case witness_replay_interpreter:next_entry(P0) of
        {{result, MFA, Value}, P} -> witness_replay_interpreter:pop_entry(P);
        {Entry, P} -> witness_replay_interpreter:handle_mismatch(Entry, {call, erlang, Function, Args}, P)
    end.
