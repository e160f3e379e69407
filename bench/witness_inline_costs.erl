-module(witness_inline_costs).
-moduledoc """
Where the time of inline monitoring goes: processor time of the whole node with one scheduler, of the same load unwoven
and woven, interleaved, as the difference for each event, request or process. The start of a run is not counted.

| Part | Load (`m:witness_load`) | Difference for each |
|---|---|---|
| `event` | processes that send themselves messages, one after the other | event |
| `tree` | a master and its workers, woven, without a monitor | request, a round of two messages |
| `birth` | workers of one request: their birth, five events, their verdict, and the run's part | worker |
| `workers`, `all` | workers of 100 requests, monitored without and with their master | request |
| `with times` | the line above it, with the option `timestamps` | the same |

Usage: `witness_inline_costs:main([Repetitions, Scale])`; each load is `Scale` per cent of its size.
""".

-export([main/1]).

-spec main([string()]) -> no_return().
main([Repetitions, Scale]) ->
    N = list_to_integer(Repetitions),
    io:format("OTP ~s, ~w scheduler(s), medians of ~w, processor time~n~-20s ~10s ~10s ~8s  ~s~n",
              [erlang:system_info(otp_release), erlang:system_info(schedulers_online), N,
               "", "unwoven ms", "woven ms", "ratio", "difference"]),
    lists:foreach(fun(Part) -> part(Part, N, list_to_integer(Scale)) end, parts()),
    halt(0).

%% Name, function of the load and its arguments, monitored functions, analysis, the number of units and the unit's name.
parts() ->
    Flat = fun(Workers, Requests) -> fun(Scale) -> [Workers * Scale div 100, 1000, Requests] end end,
    %% A longer list of ticks would add garbage collections.
    Ticks = fun(Scale) -> [1, Scale, 10_000] end,
    Events = fun([_, Length, T]) -> 2 * Length * T end,
    [{"event empty", chains, Ticks, [link], empty, Events, "ns an event"},
     {"event sequence", chains, Ticks, [link], check, Events, "ns an event"},
     {"  with times", chains, Ticks, [link], {timed, check}, Events, "ns an event"},
     {"tree", flat, Flat(10_000, 100), [], check, fun requests/1, "ns a request"},
     {"birth empty", flat, Flat(30_000, 1), [node], empty, fun([W | _]) -> W end, "ns a worker"},
     {"birth sequence", flat, Flat(30_000, 1), [node], check, fun([W | _]) -> W end, "ns a worker"},
     {"workers sequence", flat, Flat(10_000, 100), [node], check, fun requests/1, "ns a request"},
     {"  with times", flat, Flat(10_000, 100), [node], {timed, check}, fun requests/1, "ns a request"},
     {"all sequence", flat, Flat(10_000, 100), [node, flat], check, fun requests/1, "ns a request"}].

requests([Workers, _, Requests]) -> Workers * Requests.

part({Name, Function, Sized, Monitored, Analysis, Count, Unit}, N, Scale) ->
    Args = Sized(Scale),
    Woven = fun(Given) -> woven(Function, Given, Monitored, Analysis) end,
    Unwoven = fun(Given) -> unwoven(Function, Given) end,
    lists:foreach(fun(Run) -> ok = Run(Sized(min(Scale, 10))) end, [Unwoven, Woven]),
    %% Weaving a module takes as long as some ten thousand events.
    {T0s, T1s} = lists:unzip([{measured(Unwoven, Args), measured(Woven, Args) - measured(Woven, Sized(0))}
                              || _ <- lists:seq(1, N)]),
    [T0, T1] = [witness_overhead:median(Ts) || Ts <- [T0s, T1s]],
    io:format("~-20s ~10w ~10w ~8.2f  ~.1f ~s~n",
              [Name, T0, T1, T1 / max(1, T0), (T1 - T0) * 1.0e6 / Count(Args), Unit]).

%% Milliseconds.
measured(Run, Args) ->
    lists:foreach(fun erlang:garbage_collect/1, processes()),
    {Before, _} = statistics(runtime),
    ok = Run(Args),
    {After, _} = statistics(runtime),
    After - Before.

unwoven(Function, Args) ->
    {_, Ref} = spawn_monitor(witness_load, Function, [self() | Args]),
    receive {done, _, _, _} -> ok end,
    receive {'DOWN', Ref, process, _, normal} -> ok end.

%% A run needs a monitor, even one that reads no process.
woven(Function, Args, Monitored, {timed, Analysis}) -> woven(Function, Args, Monitored, Analysis, true);
woven(Function, Args, Monitored, Analysis) -> woven(Function, Args, Monitored, Analysis, false).

woven(Function, Args, Monitored, Analysis, Times) ->
    {ok, Run} = witness:start(#{
        timestamps => Times,
        system => {witness_load, Function, [self() | Args]}, instrument => inline, weave => [witness_load],
        max_verdicts => 0, drain => infinity, log => false,
        monitors => [{{witness_load, F, '_'}, {witness_load_monitor, Analysis}}
                     || F <- case Monitored of [] -> [nobody]; _ -> Monitored end]}),
    receive {done, _, _, _} -> ok end,
    {ok, #{verdicts := #{no := 0, inconclusive := 0, yes := _}}} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run),
    ok.
