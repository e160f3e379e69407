-module(witness_run_limits).
-moduledoc """
Limits that the process of a run checks: its duration, and its events per second.

An event counts when it is gathered for monitors. Events that wait for that are limited by memory.
""".

-export([start/1, schedule_check/1, check_rate/2]).

-export_type([rate/0]).

-doc "The limit of events per second, and how many events there were at a time in native units.".
-type rate() :: {Limit :: pos_integer(), Events :: non_neg_integer(), At :: integer()}.

-define(CHECK_INTERVAL_MS, 1000).

-doc "Sends messages to the run, which calls this: `{limit, duration}`, and `{limit, rate()}` after a second.".
-spec start(witness_options:options()) -> ok.
start(#{duration := Duration, rate := Rate}) ->
    _ = is_integer(Duration) andalso erlang:send_after(Duration, self(), {limit, duration}),
    _ = is_integer(Rate) andalso schedule_check({Rate, 0, erlang:monotonic_time()}),
    ok;
start(#{}) -> ok.

-doc "Sends `{limit, rate()}` after another second.".
-spec schedule_check(rate()) -> ok.
schedule_check(Rate) ->
    _ = erlang:send_after(?CHECK_INTERVAL_MS, self(), {limit, Rate}),
    ok.

-doc "Whether there were more events since the last check than the elapsed time allows.".
-spec check_rate(Events :: non_neg_integer(), rate()) -> {ok, rate()} | {exceeded, unicode:chardata()}.
check_rate(Events, Rate) -> check_rate(Events, erlang:monotonic_time(), Rate).

check_rate(Events, Now, {Limit, Before, At}) ->
    case (Events - Before) / max(1, Now - At) * erlang:convert_time_unit(1, second, native) of
        Found when Found > Limit ->
            {exceeded, io_lib:format("gathering was given up, since there were ~w events in a second, and no more than "
                                     "~w are asked for (rate)", [round(Found), Limit])};
        _ -> {ok, {Limit, Events, Now}}
    end.
