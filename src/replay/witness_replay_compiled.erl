-module(witness_replay_compiled).
-moduledoc """
Patterns and match specifications that the VM has compiled, in a replay.

`re:compile/1,2` (from OTP 28 on), `binary:compile_pattern/1` and `ets:match_spec_compile/1` return memory of the VM, which a
reference names. *Invariant:* the program gets the recorded value, so it compares, sorts and sends the same. But that reference
names nothing in this VM. So functions that take a compiled pattern get another one, which this VM compiles with the same
arguments when it is first needed. `m:witness_replay_results` reports what was compiled (`note/2`), `m:witness_replay_runtime`
calls the functions (`call/3`).

A process may have found the pattern in a table, and may be ahead of the process that has compiled it. Then the function fails,
and is called again until that process has come to its call. In the recording it compiled before, so it does not wait for this
process. If a process outside has compiled the pattern, the arguments are never known. Then the call raises `badarg` after half
a minute.
""".

-export([start/0, note/2, call/3]).

-define(TABLE, ?MODULE).
-define(MAX_RETRIES, 30_000).
-define(RETRY_MS, 1).

-doc "Called before any process is replayed.".
-spec start() -> ok.
start() ->
    ?TABLE = ets:new(?TABLE, [named_table, public, {read_concurrency, true}]),
    ok.

-doc "Notes that a call has returned this value in the recording.".
-spec note({module(), atom(), [term()]}, term()) -> ok.
note(Call, Value) ->
    case reference(pattern(Value)) of
        none -> ok;
        Ref ->
            _ = ets:insert_new(?TABLE, {Ref, Call}),
            ok
    end.

-doc """
Calls a function that takes compiled patterns. The stack trace of an exception has the arguments that the program has given.
""".
-spec call(module(), atom(), [term()]) -> term().
call(Module, Function, Args) ->
    case witness_replay_interpreter:current() =:= none orelse lists:all(fun(Arg) -> reference(Arg) =:= none end, Args) of
        true -> erlang:apply(Module, Function, Args);
        false -> call(Module, Function, Args, ?MAX_RETRIES)
    end.

%% An unknown pattern may be one of this VM: `re:run/3' compiles patterns itself, and passes them to woven code.
call(Module, Function, Args, Looks) ->
    Here = [local_pattern(Arg) || Arg <- Args],
    try
        erlang:apply(Module, Function, Here)
    catch
        error:badarg when Here =:= Args, Looks > 0 ->
            receive after ?RETRY_MS -> ok end,
            call(Module, Function, Args, Looks - 1);
        error:Reason:Failed ->
            {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
            erlang:raise(error, Reason, [{Module, Function, Args, element(4, hd(Failed))} | witness_replay_stack:of_program(Stack)])
    end.

local_pattern(Arg) ->
    Ref = reference(Arg),
    case Ref =/= none andalso ets:lookup(?TABLE, Ref) of
        [{_, {here, Pattern}}] -> Pattern;
        [{_, {Module, Function, Args}}] ->
            %% This is no step of the process, although `re:compile/2' goes on in woven code.
            Pattern = pattern(witness_replay_interpreter:call_outside(Module, Function, Args)),
            true = ets:insert(?TABLE, {Ref, {here, Pattern}}),
            Pattern;
        _ -> Arg
    end.

pattern({ok, Pattern}) -> Pattern;
pattern(Value) -> Value.

reference({re_pattern, _, _, _, Ref}) when is_reference(Ref) -> Ref;
reference({Kind, Ref}) when is_reference(Ref), Kind =:= ac orelse Kind =:= bm -> Ref;
reference(Ref) when is_reference(Ref) -> Ref;
reference(_) -> none.
