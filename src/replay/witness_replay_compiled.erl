-module(witness_replay_compiled).
-moduledoc """
Patterns and match specifications that the VM has compiled, as a replay has them.

`re:compile/1,2` (from OTP 28 on), `binary:compile_pattern/1` and `ets:match_spec_compile/1` return memory of the VM, which a reference names. The program of a
replay is given what the recorded one was given, so that it compares, sorts and sends the same. That reference names nothing in this VM. So the functions that
take a compiled pattern are given another one, which this VM compiles of the same arguments when it is needed first.

A process may have found it in a table, and so be ahead of the process that has compiled it. Then the function fails, and is called again until that process is there: in the
recording it was compiled before, so that process does not wait for this one. What a process outside has compiled is not known; then the process diverges after half a minute.
""".

-export([start/0, made/2, used/3]).

-include("src/replay/witness_replay_process.hrl").

-define(TABLE, ?MODULE).
-define(LOOKS, 30_000).
-define(LOOK_MS, 1).

-doc "Before any process is replayed.".
-spec start() -> ok.
start() ->
    ?TABLE = ets:new(?TABLE, [named_table, public, {read_concurrency, true}]),
    ok.

-doc "A call has returned this in the recording.".
-spec made({module(), atom(), [term()]}, term()) -> ok.
made(Call, Value) ->
    case reference(pattern(Value)) of
        none -> ok;
        Ref ->
            _ = ets:insert_new(?TABLE, {Ref, Call}),
            ok
    end.

-doc "Calls a function that takes compiled ones. An exception of it has the arguments that the program has given.".
-spec used(module(), atom(), [term()]) -> term().
used(Module, Function, Args) ->
    case get(?KEY) of
        #process{} ->
            case lists:all(fun(Arg) -> reference(Arg) =:= none end, Args) of
                true -> erlang:apply(Module, Function, Args);
                false -> used(Module, Function, Args, ?LOOKS)
            end;
        _ -> erlang:apply(Module, Function, Args)
    end.

%% One that is not known may be of this VM: what `re:run/3` compiles itself, and hands on to woven code.
used(Module, Function, Args, Looks) ->
    Here = [here(Arg) || Arg <- Args],
    try
        erlang:apply(Module, Function, Here)
    catch
        error:badarg when Here =:= Args, Looks > 0 ->
            receive after ?LOOK_MS -> ok end,
            used(Module, Function, Args, Looks - 1);
        error:Reason:Failed ->
            {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
            erlang:raise(error, Reason, [{Module, Function, Args, element(4, hd(Failed))} | witness_replay_course:stack(Stack)])
    end.

here(Arg) ->
    Ref = reference(Arg),
    case Ref =/= none andalso ets:lookup(?TABLE, Ref) of
        [{_, {here, Pattern}}] -> Pattern;
        [{_, {Module, Function, Args}}] ->
            %% It is no step of the process: `re:compile/2` goes on in woven code.
            Pattern = pattern(witness_replay_course:unseen(Module, Function, Args)),
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
