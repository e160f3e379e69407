-module(witness_outline_drain).
-moduledoc """
Bounds how long the end of a run waits for its tracers.

A tracer that has its monitors in its own process runs them itself, and one of them may never return. A system that a run was attached
to goes on, and may do more than its tracers can analyse. If neither is so, a run waits for its tracers for as long as they take. It
waits for monitors that have processes of their own by itself, with the same limit (`drain`).
""".

-export([watch/1, reach/3, note/2, give_up/1]).

%% Milliseconds that the system of an attached run is still observed, so that its tracers can agree on an end.
-define(CUT_MS, 1_000).
%% Milliseconds in which the VM has to say that everything up to the stop was reported.
-define(REACH_MS, 5_000).

-doc """
In mode `central`, and if the run is attached to its system, the caller receives `overdue` after `drain` milliseconds. If the run is
attached and its partitions may end at different moments (`cut`), the caller receives `cut` before that.
""".
-spec watch(#{central => term(), attached => boolean(), cut => boolean(), drain => timeout(), _ => _}) -> ok.
watch(Config = #{drain := Drain}) when is_integer(Drain) ->
    IsAttached = maps:get(attached, Config, false),
    _ = (IsAttached orelse is_map_key(central, Config)) andalso erlang:send_after(Drain, self(), overdue),
    _ = IsAttached andalso maps:get(cut, Config) andalso erlang:send_after(min(?CUT_MS, Drain), self(), cut),
    ok;
watch(#{}) -> ok.

-doc """
The present time, once all that happened before it was reported. The VM is asked and its answer awaited, but not for long: a process may be in native
code. Nothing is asked where the stop time is not wanted.
""".
-spec reach(Ask :: fun(() -> reference()), Answer :: fun((reference()) -> term()),
            #{stop_time => witness_monitor_stop_time:stop_time(), drain => timeout(), _ => _}) -> integer() | unknown.
reach(Ask, Answer, Config) ->
    case witness_monitor_stop_time:is_wanted(stop_time(Config)) of
        true ->
            Time = erlang:monotonic_time(nanosecond),
            Expected = Answer(Ask()),
            receive Expected -> Time after reach_ms(Config) -> unknown end;
        false -> unknown
    end.

%% The tracers need the rest of the time for what they have.
reach_ms(#{drain := Drain}) when is_integer(Drain) -> min(?REACH_MS, Drain div 2);
reach_ms(#{}) -> ?REACH_MS.

-doc "Notes the stop time, if it is known.".
-spec note(integer() | unknown, #{stop_time => witness_monitor_stop_time:stop_time(), _ => _}) -> ok.
note(unknown, _) -> ok;
note(Time, Config) -> witness_monitor_stop_time:note(Time, stop_time(Config)).

stop_time(Config) -> maps:get(stop_time, Config, witness_monitor_stop_time:none()).

-doc "The time is over: ends the tracers and the calling process.".
-spec give_up([pid()]) -> no_return().
give_up(Tracers) ->
    Reason = {shutdown, {given_up, overdue}},
    lists:foreach(fun(Tracer) -> exit(Tracer, Reason) end, Tracers),
    %% `is_process_alive/1' waits until the signal has been handled.
    lists:foreach(fun erlang:is_process_alive/1, Tracers),
    exit(Reason).
