-module(witness_replay_results).
-moduledoc """
Answers the calls of replayed processes from their logs.

*Invariant:* what a call returns or raises comes from the log, and the call is not executed. If the next entry is not that of
the call, the interpreter decides how the process ends (`m:witness_replay_interpreter`). Calls that act on other processes
(`effect/3`) do nothing: their consequences are in the logs of those processes.

Some results matter for later calls, so this module notes them: aliases that are active (`m:witness_replay_process`), compiled
patterns (`m:witness_replay_compiled`), limits of heaps (`m:witness_replay_heap`).
""".

-export([result/3, foreign/3, answered/4, returned/4, raised/5, known_funs/1, effect/3, halt/2, leaving/3, hibernates/2]).

-include("src/replay/witness_replay_process.hrl").

-doc "A call of a function of the table.".
-spec result(module(), atom(), [term()]) -> term().
result(Module, Function, Args) ->
    case get(?KEY) of
        #process{} = P ->
            case is_asked(Module, Function) of
                true -> answered(witness_replay_interpreter:peeked(P), Module, Function, Args);
                false -> erlang:apply(Module, Function, Args)
            end;
        _ -> erlang:apply(Module, Function, Args)
    end.

-doc "The same, of a function that is not woven. What it does inside is outside. The log names the processes that it starts.".
-spec foreign(module(), atom(), [term()]) -> term().
foreign(Module, Function, Args) ->
    case get(?KEY) of
        #process{} = P ->
            case is_asked(Module, Function) of
                true -> foreign_answered(witness_replay_interpreter:peeked(P), Module, Function, Args);
                false -> erlang:apply(Module, Function, Args)
            end;
        _ -> erlang:apply(Module, Function, Args)
    end.

%% Recordings of earlier builds have no results of these functions.
is_asked(Module, Function) when Module =:= re; Module =:= binary; Function =:= is_compiled_ms ->
    #{compiled := Compiled} = witness_replay_interpreter:given(),
    Compiled;
is_asked(_, _) -> true.

foreign_answered({{spawn, Child}, P}, Module, Function, Args) ->
    case witness_replay_process_table:known(Child) of
        {_, {_, _, Arguments} = MFA} when is_list(Arguments) ->
            ok = witness_replay_backpressure:begins(P#process.id, P#process.flow),
            ok = witness_replay_emitter:spawned(Child, MFA, P),
            ok = witness_replay_life:child(Child, MFA, witness_replay_heap:born()),
            foreign_answered(witness_replay_interpreter:peeked(witness_replay_process:pop(P)), Module, Function, Args);
        _ -> witness_replay_interpreter:diverged({spawn, Child}, {call, Module, Function, Args}, P)
    end;
foreign_answered(Peeked, Module, Function, Args) -> answered(Peeked, Module, Function, Args).

-doc "Answers a call with this entry of the log.".
-spec answered({witness_log_recording:run() | done, witness_replay_process:process()}, module(), atom(), [term()]) -> term().
answered({Entry, P}, Module, Function, Args) ->
    MFA = {Module, Function, length(Args)},
    case Entry of
        {result, MFA, Value} -> returned(MFA, Args, Value, P);
        {raise, MFA, Class, Reason} ->
            ok = witness_replay_emitter:did({raise, MFA, Args, Class, Reason}, P),
            witness_replay_interpreter:keep(witness_replay_process:pop(P)),
            raised(Class, Reason, Module, Function, Args);
        _ -> unanswered(Entry, {call, Module, Function, Args}, P, MFA)
    end.

%% Calls that make a reference are in the log only if they return. They fail if their arguments are wrong.
-spec unanswered(witness_log_recording:run() | done, term(), #process{}, mfa()) -> no_return().
unanswered(Entry, Call, P, {erlang, Function, _}) when Function =:= monitor; Function =:= alias; Function =:= make_ref ->
    {call, Module, Function, Args} = Call,
    try erlang:apply(Module, Function, Args) of
        Ref ->
            true = is_reference(Ref) andalso erlang:demonitor(Ref, [flush]),
            witness_replay_interpreter:unanswered(Entry, Call, P)
    catch
        error:Reason -> raised(error, Reason, Module, Function, Args)
    end;
unanswered(Entry, Call, P, _) -> witness_replay_interpreter:unanswered(Entry, Call, P).

-doc "A call returns this value, which is in the log.".
-spec returned(mfa(), [term()], term(), witness_replay_process:process()) -> term().
returned(MFA, Args, Value, P) ->
    ok = witness_replay_emitter:did({call, MFA, Args, Value}, P),
    witness_replay_interpreter:keep(remembered(MFA, Args, Value, witness_replay_process:pop(P))),
    real(MFA, Args, Value).

%% Only functions that are executed use the results of these.
real({Module, Function, _}, Args, Value) when Function =:= match_spec_compile; Module =:= re; Module =:= binary ->
    ok = witness_replay_compiled:made({Module, Function, Args}, Value),
    Value;
real(_, _, Value) -> known_funs(Value).

-doc "Translates funs of the recording to funs of this VM.".
-spec known_funs(term()) -> term().
known_funs(Value) when is_atom(Value); is_number(Value); is_pid(Value); is_reference(Value); is_binary(Value) -> Value;
known_funs(Value) -> witness_replay_interpreter:unseen(witness_replay_fun, local, [Value]).

%% Notes which aliases are active, and the default limit of heaps.
remembered({erlang, monitor, 3}, [_, _, Options], Ref, P) -> monitored(Options, Ref, P);
remembered({erlang, alias, 0}, _, Ref, P) -> alias(Ref, explicit, P);
remembered({erlang, alias, 1}, [Options], Ref, P) ->
    alias(Ref, case lists:member(reply, Options) of true -> once; false -> explicit end, P);
remembered({erlang, unalias, 1}, [Ref], _, P) -> witness_replay_process:unalias({any, Ref}, P);
remembered({erlang, demonitor, 2}, [Ref, _], _, P) -> witness_replay_process:unalias({monitor, Ref}, P);
remembered({erlang, system_flag, 2}, [max_heap_size, Limit], _, P) ->
    ok = witness_replay_heap:system(Limit),
    P;
remembered({erlang, Spawn, _}, Args, {_, Ref}, P) when Spawn =:= spawn_opt, is_reference(Ref) -> requested(Args, Ref, P);
remembered({erlang, Spawn, _}, Args, Ref, P) when Spawn =:= spawn_request, is_reference(Ref) -> requested(Args, Ref, P);
remembered(_, _, _, P) -> P.

requested(Args, Ref, P) ->
    case lists:last(Args) of
        Options when is_list(Options) ->
            case lists:keyfind(monitor, 1, [Option || Option <- Options, is_tuple(Option)]) of
                {monitor, Given} when is_list(Given) -> monitored(Given, Ref, P);
                _ -> P
            end;
        _ -> P
    end.

monitored(Options, Ref, P) ->
    case lists:keyfind(alias, 1, Options) of
        {alias, explicit_unalias} -> alias(Ref, explicit, P);
        {alias, demonitor} -> alias(Ref, monitor, P);
        {alias, reply_demonitor} -> alias(Ref, once, P);
        _ -> P
    end.

alias(Ref, How, #process{id = Id, owners = Owners} = P) ->
    New = witness_replay_proxies:alias(Ref, Id),
    witness_replay_process:alias(Ref, How, P#process{owners = New ++ Owners}).

-doc "Raises the exception of a call.".
-spec raised(error | exit | throw, term(), module(), atom(), [term()]) -> no_return().
raised(Class, Reason, Module, Function, Args) ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    erlang:raise(Class, Reason, [{Module, Function, Args, []} | witness_replay_interpreter:stack(Stack)]).

-doc "The program ends its VM, which is the last thing that it does.".
-spec halt([term()], witness_replay_process:process() | undefined) -> no_return().
halt(Args, Process) ->
    case Process of
        #process{} = P ->
            witness_record_runtime:may_halt(Args) orelse raised(error, badarg, erlang, halt, Args),
            {Entry, P1} = witness_replay_interpreter:peeked(P),
            witness_replay_interpreter:unanswered(Entry, {call, erlang, halt, Args}, P1);
        _ -> erlang:apply(erlang, halt, Args)
    end.

-doc "A signal to another process, or output of the VM itself.".
-spec effect(atom(), [term()], witness_replay_process:process() | undefined) -> term().
effect(process_flag, [max_heap_size, Limit], #process{} = P) ->
    {Before, P1} = witness_replay_heap:flag(Limit, P),
    witness_replay_interpreter:keep(P1),
    Before;
effect(process_flag, [min_heap_size, Size], #process{} = P) -> witness_replay_heap:min_heap_size(Size, P);
effect(process_flag, Args, _) -> erlang:apply(erlang, process_flag, Args);
effect(Function, Args, Process) ->
    case Process of
        #process{} = P ->
            true = possible(Function, Args),
            ok = witness_replay_emitter:acts({effect, {erlang, Function, length(Args)}, Args}, P),
            effected(Function, Args, P);
        _ -> erlang:apply(erlang, Function, Args)
    end.

possible(Function, [To | _] = Args) when Function =:= exit; Function =:= exit_signal ->
    is_pid(To) orelse is_port(To) orelse is_reference(To) orelse raised(error, badarg, erlang, Function, Args);
possible(unlink, [To] = Args) -> is_pid(To) orelse is_port(To) orelse raised(error, badarg, erlang, unlink, Args);
possible(demonitor, [Ref] = Args) -> is_reference(Ref) orelse raised(error, badarg, erlang, demonitor, Args);
possible(_, _) -> true.

%% A signal of the process to itself has arrived when the call returns.
effected(Function, [Pid | _], #process{pid = Pid} = P) when Function =:= exit; Function =:= exit_signal ->
    case witness_replay_interpreter:peeked(P) of
        {{exit, _}, P1} -> witness_replay_interpreter:stopped(killed, witness_replay_process:pop(P1));
        {_, P1} ->
            witness_replay_interpreter:keep(P1),
            true
    end;
effected(Function, [Pid, Reason | _], _) when Function =:= exit; Function =:= exit_signal ->
    witness_replay_interpreter:has_sent_exit(Pid, Reason);
effected(demonitor, [Ref], P) ->
    witness_replay_interpreter:keep(witness_replay_process:unalias({monitor, Ref}, P)),
    true;
effected(display, [Term], _) ->
    witness_replay_interpreter:printed({put_chars, unicode, io_lib, format, ["~tw\n", [Term]]}),
    true;
effected(_, _, _) -> true.

-doc "The program is about to make a call that raises an exit.".
-spec leaving(atom(), [term()], witness_replay_process:process() | undefined) -> ok.
leaving(exit, [normal], _) -> ok;
leaving(raise, [exit, normal, _], _) -> ok;
leaving(Function, [Class | _] = Args, Process) when Function =:= exit; Class =:= exit ->
    case Process of
        #process{} = P -> _ = [witness_replay_interpreter:keep(marked(ok, Function, Args, P)) || is_marked(Function, Args)], ok;
        _ -> ok
    end;
leaving(raise, _, _) -> ok.

-doc """
The process hibernates. It goes on if it has woken in the recording. Otherwise a signal has ended it there, or the recording was
cut there.
""".
-spec hibernates([term()], witness_replay_process:process()) -> ok | no_return().
hibernates(Args, P0) ->
    case is_marked(hibernate, Args) of
        true ->
            P1 = marked(ok, hibernate, Args, P0),
            case witness_replay_interpreter:peeked(P1) of
                {{exit, _}, P} -> witness_replay_interpreter:stopped(killed, witness_replay_process:pop(P));
                {_, P} -> witness_replay_interpreter:keep(marked(true, hibernate, Args, P))
            end,
            ok;
        false -> ok
    end.

%% Whether the recording has entries of such calls.
is_marked(Function, Args) ->
    #{marked := Marked} = witness_replay_interpreter:given(),
    lists:member({erlang, Function, length(Args)}, Marked).

marked(Value, Function, Args, P0) ->
    MFA = {erlang, Function, length(Args)},
    case witness_replay_interpreter:peeked(P0) of
        {{result, MFA, Value}, P} -> witness_replay_process:pop(P);
        {Entry, P} -> witness_replay_interpreter:unanswered(Entry, {call, erlang, Function, Args}, P)
    end.
