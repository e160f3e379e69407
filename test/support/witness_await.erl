-module(witness_await).
-moduledoc """
Waiting for what has no event of its own, for tests.

A test that can receive a message waits for the message. These functions are for the rest: a fact that has to be asked for
again and again, and the end of a process. They return when the fact holds, however long that takes, so the result of a test
does not depend on time. The limit only ends a test that would wait for ever, with an error that says what was seen last.
""".

-export([until/1, until/2, waits/1, down/1]).

%% Less than the shortest limit of a suite (two minutes), so that the error is reported and not the limit of the suite.
-define(LIMIT_MS, 100_000).
%% What is soon the case is found without a pause; what takes longer leaves the processor to those that work.
-define(YIELDS, 100).
-define(PAUSE_MS, 5).

-doc "Like `until/2`, with a limit of 100 seconds.".
-spec until(fun(() -> true | term())) -> ok.
until(Condition) -> until(Condition, ?LIMIT_MS).

-doc """
Calls the function until it returns `true`. If it has not done so within the limit, raises
`{not_reached, #{limit_ms, last_value, condition}}`.

Any other value than `true` means "not yet". A condition that returns what is missing instead of `false` makes the error tell
it. What the condition raises is raised.
""".
-spec until(fun(() -> true | term()), LimitMs :: non_neg_integer()) -> ok.
until(Condition, LimitMs) -> until(Condition, LimitMs, erlang:monotonic_time(millisecond) + LimitMs, 0).

%% The time is read first: the last look is always one behind the limit, however late this process runs.
until(Condition, LimitMs, Deadline, Looks) ->
    Over = erlang:monotonic_time(millisecond) >= Deadline,
    case Condition() of
        true -> ok;
        Value when Over -> error({not_reached, #{limit_ms => LimitMs, last_value => Value, condition => Condition}});
        _ ->
            pause(Looks),
            until(Condition, LimitMs, Deadline, Looks + 1)
    end.

pause(Looks) when Looks < ?YIELDS -> erlang:yield();
pause(_) -> receive after ?PAUSE_MS -> ok end.

-doc """
Waits until a process of this node waits for a message. A process may still run when its answer has been taken: a test that depends
on that must ask.
""".
-spec waits(pid()) -> ok.
waits(Pid) -> until(fun() -> process_info(Pid, status) =:= {status, waiting} end).

-doc """
Waits for the end of a process, and returns its reason: `noproc` if the process had ended before. If it is still alive after
100 seconds, raises `{still_alive, Pid, StackTrace}`.
""".
-spec down(pid()) -> Reason :: term().
down(Pid) ->
    Ref = monitor(process, Pid),
    receive {'DOWN', Ref, process, Pid, Reason} -> Reason
    after ?LIMIT_MS -> error({still_alive, Pid, node(Pid) =:= node() andalso process_info(Pid, current_stacktrace)})
    end.
