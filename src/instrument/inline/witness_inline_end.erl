-module(witness_inline_end).
-moduledoc """
Detects the end of a monitored process: the return or the exception of its first function.

Exceptions go on as they were: class, reason, and stack without the frames that are here because of monitoring.
""".

-export([run/4]).

-doc """
Calls the first function of the process. Code that is not woven may have deleted the state of the monitors by the end; then this
function reports that to the host.
""".
-spec run(module(), atom(), [term()], Host :: pid()) -> term().
run(Module, Function, Args, Host) ->
    %% After hibernation the function may be one of the calls that are events.
    try witness_inline_process:apply(Module, Function, Args) of
        Value ->
            ok = ended(normal, Host),
            Value
    catch
        Class:Reason:Stack ->
            Before = before({Module, Function, length(Args)}, Stack),
            ok = ended(reason(Class, Reason, Before), Host),
            erlang:raise(Class, Reason, Before)
    end.

ended(Reason, Host) ->
    case get('$witness_inline') of
        undefined -> witness_inline_monitors:lost(self(), Host);
        _ -> witness_inline_process:ended(Reason)
    end.

%% The exit reason that the VM makes of an uncaught exception.
reason(exit, Reason, _) -> Reason;
reason(error, Reason, Stack) -> {Reason, Stack};
reason(throw, Value, Stack) -> {{nocatch, Value}, Stack}.

%% Below this module's frame is the function that has asked. It is the same function that was called from here.
before(First, Stack) ->
    case lists:splitwith(fun(Frame) -> element(1, Frame) =/= ?MODULE end, Stack) of
        {Above, [_ | Below]} -> Above ++ asked(First, lists:dropwhile(fun is_own/1, Below));
        {_, []} -> Stack
    end.

is_own(Frame) -> lists:member(element(1, Frame), [?MODULE, witness_inline_process, witness_inline_spawn]).

asked({M, F, A}, [{M, F, A, _} | Below]) -> Below;
asked(_, Below) -> Below.
