-module(witness_outline_overdue).
-moduledoc """
How long the end of a run waits for a tracer whose monitors are in its own process.

Such a tracer works off its events with its monitors, one of which may never return. Monitors in processes of their own
are waited for by the run itself, with the same patience (`drain`).
""".

-export([watch/1, give_up/1]).

-doc "Has the message `overdue` come when it has taken too long, in mode `central`.".
-spec watch(#{central => term(), drain => timeout(), _ => _}) -> ok.
watch(#{central := _, drain := Drain}) when is_integer(Drain) ->
    _ = erlang:send_after(Drain, self(), overdue),
    ok;
watch(#{}) -> ok.

-doc "It has: the tracers end, and whoever waited for them.".
-spec give_up([pid()]) -> no_return().
give_up(Tracers) ->
    Reason = {shutdown, {given_up, overdue}},
    lists:foreach(fun(Tracer) -> exit(Tracer, Reason) end, Tracers),
    %% To ask waits until the signal has been handled.
    lists:foreach(fun erlang:is_process_alive/1, Tracers),
    exit(Reason).
