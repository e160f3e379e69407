-module(witness_inline_end).
-moduledoc """
Detects the end of a monitored process: the return or the exception of its first function.

Exceptions go on as they were: class, reason, and stack without the frames that are here because of monitoring.
""".

-export([run/4]).

-doc """
Calls the first function of the process. Code that is not woven may have deleted the state of the monitors by the end; then this
function reports that to the coordinator.
""".
-spec run(module(), atom(), [term()], Coordinator :: pid()) -> term().
run(Module, Function, Args, Coordinator) ->
    %% After hibernation the function may be one of the calls that are events.
    try witness_inline_process:apply(Module, Function, Args) of
        Value ->
            ok = report_exit(normal, Coordinator),
            Value
    catch
        Class:Reason:Stack ->
            Before = program_stack({Module, Function, length(Args)}, Stack),
            ok = report_exit(reason(Class, Reason, Before), Coordinator),
            erlang:raise(Class, Reason, Before)
    end.

report_exit(Reason, Coordinator) ->
    case get('$witness_inline') of
        undefined -> witness_inline_monitors:report_lost(self(), Coordinator);
        _ -> witness_inline_process:report_exit(Reason)
    end.

%% The exit reason that the VM makes of an uncaught exception.
reason(exit, Reason, _) -> Reason;
reason(error, Reason, Stack) -> {Reason, Stack};
reason(throw, Value, Stack) -> {{nocatch, Value}, Stack}.

%% Below this module's frame is the function that has asked. It is the same function that was called from here.
program_stack(First, Stack) ->
    case lists:splitwith(fun(Frame) -> element(1, Frame) =/= ?MODULE end, Stack) of
        {Above, [_ | Below]} -> Above ++ drop_caller(First, lists:dropwhile(fun is_own/1, Below));
        {_, []} -> Stack
    end.

is_own(Frame) -> lists:member(element(1, Frame), [?MODULE, witness_inline_process, witness_inline_spawn]).

drop_caller({M, F, A}, [{M, F, A, _} | Below]) -> Below;
drop_caller(_, Below) -> Below.
