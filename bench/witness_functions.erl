-module(witness_functions).
-moduledoc """
What an event costs the system: a call of a function, a call with its return, and a message that is sent.

A process calls a small function, or sends a message, again and again. It reads the clock before and after. The time of the same loop
without Witness is subtracted. A property reads the events, and has nothing to decide. Next to it is a loop of calls of another
function, which no property names: such a call costs nothing.

Usage: `witness_functions:main([Events, Repetitions])`; nanoseconds an event, medians of interleaved repetitions.
""".

-export([main/1, system/3, step/1, other/1]).

-spec main([string()]) -> no_return().
main(Args) ->
    [Events, Repetitions] = [list_to_integer(A) || A <- Args],
    {ok, _} = application:ensure_all_started(witness),
    io:format("OTP ~s, ~w scheduler(s): nanoseconds that an event costs the system, medians of ~w; ~w events~n~-24s ~10s ~10s ~10s ~10s~n",
              [erlang:system_info(otp_release), erlang:system_info(schedulers_online), Repetitions, Events,
               "", "message", "call", "+ return", "other call"]),
    Modes = [{native, outline} || witness_trace_native:available() =:= ok] ++ [{evm, central}],
    Measured = [{Mode, What, measure(Mode, What, Events) - measure(none, What, Events)}
                || _ <- lists:seq(1, Repetitions), Mode <- Modes, What <- whats()],
    lists:foreach(fun({Source, Instrument} = Mode) ->
        io:format("~-24s ~10w ~10w ~10w ~10w~n",
                  [io_lib:format("~s, ~s", [Source, Instrument])
                   | [median([round(T) || {M, W, T} <- Measured, M =:= Mode, W =:= What]) || What <- whats()]])
    end, Modes),
    halt(0).

whats() -> [message, call, both, other].

median(Times) -> lists:nth((length(Times) + 1) div 2, lists:sort(Times)).

%% Nanoseconds an event.
measure(Mode, What, Events) ->
    lists:foreach(fun erlang:garbage_collect/1, processes()),
    Self = self(),
    case Mode of
        none -> spawn(?MODULE, system, [Self, What, Events]);
        {Source, Instrument} ->
            {ok, Run} = witness:start(#{system => {?MODULE, system, [Self, What, Events]}, log => false, source => Source,
                                        instrument => Instrument, monitors => [{{?MODULE, system, 3}, property(What)}]}),
            {ok, #{outcome := ok}} = witness:await(Run, infinity),
            {ok, _} = witness:stop(Run)
    end,
    receive {time, Time} -> Time / Events end.

property(message) -> property("_ : _ ! {step, _}", "_ : _ ! {step, _}");
property(both) ->
    property("_ calls witness_functions:step(_), _ returns witness_functions:step/1 -> _", "_ calls witness_functions:step(_)");
property(_) -> property("_ calls witness_functions:step(_)", "_ calls witness_functions:step(_)").

property(Over, Action) ->
    Text = ["p: with witness_functions:system(_, _, _) over ", Over, " check max X.([", Action, "] X and [else] X)."],
    {ok, #{module := Module, entries := [#{index := Index}]}, _} = witness_spec:compile_string(~"functions.hml", iolist_to_binary(Text)),
    {Module, Index}.

-doc false.
-spec system(pid(), message | call | both | other, pos_integer()) -> ok.
system(Collector, What, Events) ->
    Sink = spawn(fun() -> receive stop -> ok end end),
    Begin = erlang:monotonic_time(nanosecond),
    loop(What, Sink, Events),
    Collector ! {time, erlang:monotonic_time(nanosecond) - Begin},
    exit(Sink, kill),
    ok.

loop(_, _, 0) -> ok;
loop(message, Sink, N) -> Sink ! {step, N}, loop(message, Sink, N - 1);
loop(other, Sink, N) -> N = other(N), loop(other, Sink, N - 1);
loop(What, Sink, N) -> N = step(N), loop(What, Sink, N - 1).

-doc false.
-spec step(N) -> N when N :: integer().
step(N) -> N.

-doc false.
-spec other(N) -> N when N :: integer().
other(N) -> N.
