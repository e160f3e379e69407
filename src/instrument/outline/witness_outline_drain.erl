-module(witness_outline_drain).
-moduledoc """
Bounds how long the end of a run waits for a tracer that has its monitors in its own process.

Such a tracer runs its monitors itself, and one of them may never return. If monitors have processes of their own, the run
itself waits for them, with the same limit (`drain`).
""".

-export([watch/1, give_up/1]).

-doc "In mode `central`: the caller receives `overdue` after `drain` milliseconds.".
-spec watch(#{central => term(), drain => timeout(), _ => _}) -> ok.
watch(#{central := _, drain := Drain}) when is_integer(Drain) ->
    _ = erlang:send_after(Drain, self(), overdue),
    ok;
watch(#{}) -> ok.

-doc "The time is over: ends the tracers and the calling process.".
-spec give_up([pid()]) -> no_return().
give_up(Tracers) ->
    Reason = {shutdown, {given_up, overdue}},
    lists:foreach(fun(Tracer) -> exit(Tracer, Reason) end, Tracers),
    %% `is_process_alive/1' waits until the signal has been handled.
    lists:foreach(fun erlang:is_process_alive/1, Tracers),
    exit(Reason).
