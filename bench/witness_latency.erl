-module(witness_latency).
-moduledoc """
The time from an event to its verdict under light load, with default settings: processes
start one at a time and violate a property by a message. The process itself reads the clock
just before it sends that message; the function that is called with the verdict (`on_verdict`)
reads it again.

- `newborn`: the process sends the message at once, so its monitor has to be started first;
- `settled`: it has been alive for a while, and its monitor waits.

The process lives on until its verdict is reported, so that its end does not trigger the delivery of its message.

Usage: `witness_latency:main([Processes])`; each row of the table is the distribution over so many.
""".
-behaviour(witness_monitor).

-export([main/1, system/3, violator/2]).
-export([init/3, handle_event/2]).

%% Milliseconds: how long a process is alive before it settles, and at most until the next one.
-define(SETTLE, 30).
-define(PAUSE, 20).

-spec main([string()]) -> no_return().
main([Processes]) ->
    N = list_to_integer(Processes),
    io:format("OTP ~s, ~w scheduler(s): milliseconds from event to verdict, ~w processes~n",
              [erlang:system_info(otp_release), erlang:system_info(schedulers_online), N]),
    io:format("~-16s ~8s ~8s ~8s ~8s~n", ["", "p50", "p90", "p99", "max"]),
    lists:foreach(fun({Source, Kind}) ->
        Times = lists:sort(times(Source, Kind, N)),
        io:format("~-16s ~8.2f ~8.2f ~8.2f ~8.2f~n",
                  [io_lib:format("~s ~s", [Source, Kind]) | [percentile(P, N, Times) / 1000 || P <- [50, 90, 99, 100]]])
    end, [{Source, Kind} || Source <- sources(), Kind <- [newborn, settled]]),
    halt(0).

sources() -> [native || witness_trace_native:available() =:= ok] ++ [evm].

percentile(P, N, Sorted) -> lists:nth(max(1, (P * N + 99) div 100), Sorted).

%% In microseconds.
times(Source, Kind, N) ->
    Self = self(),
    {ok, Run} = witness:start(#{system => {?MODULE, system, [Self, Kind, N]}, source => Source, log => false,
                                monitors => [{{?MODULE, violator, 2}, {?MODULE, none}}],
                                on_verdict => fun(V) -> told(V, Self) end}),
    System = receive {system, P} -> P end,
    Times = [receive {verdict, T} -> System ! next, T end || _ <- lists:seq(1, N)],
    {ok, #{verdicts := #{no := N}}} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run),
    Times.

told(#{verdict := no, event := #{event := {send, _, _, {bad, Sent}, _}}}, Collector) ->
    Collector ! {verdict, erlang:monotonic_time(microsecond) - Sent}.

%% --- the system ------------------------------------------------------------------

-doc false.
-spec system(pid(), newborn | settled, non_neg_integer()) -> ok.
system(Collector, Kind, N) ->
    Collector ! {system, self()},
    one_at_a_time(Kind, N).

%% The pause keeps the processes from falling into step with the timers of Witness.
one_at_a_time(_, 0) -> ok;
one_at_a_time(Kind, N) ->
    receive after rand:uniform(?PAUSE) -> ok end,
    Violator = spawn(?MODULE, violator, [self(), Kind]),
    receive {bad, _} -> ok end,
    receive next -> Violator ! go_on end,
    one_at_a_time(Kind, N - 1).

-doc false.
-spec violator(pid(), newborn | settled) -> ok.
violator(Other, Kind) ->
    _ = Kind =:= settled andalso receive after ?SETTLE + rand:uniform(?PAUSE) -> ok end,
    Other ! {bad, erlang:monotonic_time(microsecond)},
    receive go_on -> ok end.

%% --- the monitor -----------------------------------------------------------------

-doc false.
-spec init(witness_event:signature(), pid(), none) -> {ok, none}.
init(_, _, none) -> {ok, none}.

-doc false.
-spec handle_event(witness_event:event(), none) -> {ok, none} | {verdict, no, bad}.
handle_event({send, _, _, {bad, _}, _}, none) -> {verdict, no, bad};
handle_event(_, none) -> {ok, none}.
