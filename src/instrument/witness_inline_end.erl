-module(witness_inline_end).
-moduledoc """
The end of a monitored process, seen by what its first function leaves behind.

Exceptions go on as they were: class, reason, and stack without the frames that are here because of monitoring.
""".

-export([run/4]).

-doc """
Calls the first function of the process. The state of its monitors may be gone at the end, deleted by code that is not
woven, which the host is told.
""".
-spec run(module(), atom(), [term()], Host :: pid()) -> term().
run(Module, Function, Args, Host) ->
    %% After hibernation it may be one of the calls that are events.
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

%% What the VM makes of an exception that nobody catches.
reason(exit, Reason, _) -> Reason;
reason(error, Reason, Stack) -> {Reason, Stack};
reason(throw, Value, Stack) -> {{nocatch, Value}, Stack}.

%% Below this module's frame stands the function that has asked, which is the same one that was called from here.
before(First, Stack) ->
    case lists:splitwith(fun(Frame) -> element(1, Frame) =/= ?MODULE end, Stack) of
        {Above, [_ | Below]} -> Above ++ asked(First, lists:dropwhile(fun is_own/1, Below));
        {_, []} -> Stack
    end.

is_own(Frame) -> lists:member(element(1, Frame), [?MODULE, witness_inline_process, witness_inline_spawn]).

asked({M, F, A}, [{M, F, A, _} | Below]) -> Below;
asked(_, Below) -> Below.
