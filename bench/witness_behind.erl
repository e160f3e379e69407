-module(witness_behind).
-moduledoc """
The load at which a way to connect monitors falls behind: `witness_load:paced/5` at growing rates, all processes monitored
by `m:witness_load_monitor`.

There is a line for each rate and each way: events that were analysed in a second of the system's time; how long after the end of
the system the last monitor had its verdict; how many monitors had a gap, or none at all since gathering had been given up. A
wrong verdict, or missing events without a gap, end the measurement with an error.

Usage: `witness_behind:main([Rates, Seconds, Requests, Memory])`, the rates separated by commas.
""".

-export([main/1]).

-spec main([string()]) -> no_return().
main([Rates, Seconds, Requests, Memory]) ->
    io:format("OTP ~s, ~w scheduler(s), ~s requests each, for ~s s, ~s bytes~n~9s  ~-16s ~10s ~12s ~10s ~10s~n",
              [erlang:system_info(otp_release), erlang:system_info(schedulers_online), Requests, Seconds, Memory,
               "workers/s", "", "system s", "events/s", "behind ms", "gaps"]),
    [line(list_to_integer(Rate), Way, list_to_integer(Seconds), list_to_integer(Requests), list_to_integer(Memory))
     || Rate <- string:split(Rates, ",", all), Way <- ways()],
    halt(0).

ways() ->
    [{Instrument, Source} || {Instrument, Source} <- [{outline, native}, {central, native}, {central, evm}],
                             Source =:= evm orelse witness_trace_native:available() =:= ok].

line(Rate, {Instrument, Source}, Seconds, Requests, Memory) ->
    Workers = Rate * Seconds,
    Responses = counters:new(500, [write_concurrency]),
    {ok, _} = application:ensure_all_started(witness),
    lists:foreach(fun erlang:garbage_collect/1, processes()),
    {ok, Run} = witness:start(#{
        system => {witness_load, paced, [self(), Workers, Rate, Requests, Responses]},
        monitors => [{{witness_load, F, '_'}, {witness_load_monitor, check}} || F <- [client, paced]],
        instrument => Instrument, source => Source, memory => Memory, max_verdicts => 0, drain => infinity, log => false}),
    T = receive {done, _, _, Microseconds} -> Microseconds end,
    Ended = erlang:monotonic_time(millisecond),
    {ok, #{verdicts := #{yes := Sound, no := 0, inconclusive := Undecided}, events := Events}} = witness:await(Run, infinity),
    Behind = erlang:monotonic_time(millisecond) - Ended,
    {ok, _} = witness:stop(Run),
    %% If gathering was given up, later workers have no monitor.
    Unseen = Workers + 1 - Sound - Undecided,
    true = Unseen =:= 0 orelse Undecided > 0,
    io:format("~9w  ~-16s ~10.2f ~12w ~10w ~10w~n",
              [Rate, lists:concat([Instrument, "/", Source]), T / 1.0e6, round(Events * 1_000_000 / T), Behind,
               Undecided + Unseen]).
