-module(witness_overhead).
-moduledoc """
What observation costs: the system's own wall-clock, from its start to its end, under a
saturated master-worker load (`witness_load:flat/4`), in one run and interleaved:

- `untraced`: without any tracing, the unit of all ratios;
- `floor`: with a bare process tracer on every process that throws each event away;
- `empty`: every process monitored by a monitor that reads its events and checks nothing;
- `sequence`: every process monitored by one that checks that its trace is sound.

Beside it stands the time until the last monitor had its verdict. The numbers are medians.

Usage: `witness_overhead:main([Workers, Alive, Requests, Repetitions])`.
""".

-export([main/1]).

-define(VARIANTS, [untraced, floor, empty, sequence]).

-spec main([string()]) -> no_return().
main(Args) ->
    [Workers, Alive, Requests, Repetitions] = [list_to_integer(A) || A <- Args],
    io:format("OTP ~s, ~w scheduler(s): ~w workers, ~w alive, ~w requests each, medians of ~w~n",
              [erlang:system_info(otp_release), erlang:system_info(schedulers_online),
               Workers, Alive, Requests, Repetitions]),
    Load = [Workers, Alive, Requests],
    _ = run(sequence, [min(Workers, 500), Alive, Requests]),
    Results = [{V, run(V, Load)} || _ <- lists:seq(1, Repetitions), V <- ?VARIANTS],
    Medians = #{V => {median([T || {W, {T, _}} <- Results, W =:= V]),
                      median([D || {W, {_, D}} <- Results, W =:= V])} || V <- ?VARIANTS},
    #{untraced := {Unit, _}, floor := {Floor, _}} = Medians,
    io:format("~-10s ~10s ~12s ~10s ~12s   all~n", ["", "system s", "x untraced", "x floor", "done after s"]),
    lists:foreach(fun(V) ->
        #{V := {T, D}} = Medians,
        io:format("~-10s ~10.2f ~12.2f ~10.2f ~12.2f  ~ts~n",
                  [V, T / 1.0e6, T / Unit, T / Floor, D / 1.0e6,
                   lists:join(" ", [io_lib:format("~.2f", [X / 1.0e6]) || {W, {X, _}} <- Results, W =:= V])])
    end, ?VARIANTS),
    halt(0).

median(List) -> lists:nth((length(List) + 1) div 2, lists:sort(List)).

%% {microseconds of the system, microseconds until all was analysed}
run(untraced, Load) ->
    {_, Ref} = spawn_monitor(witness_load, flat, [self() | Load]),
    T = system(),
    receive {'DOWN', Ref, process, _, normal} -> {T, T} end;
run(floor, Load) ->
    Self = self(),
    Tracer = spawn_opt(fun Drop() -> receive _ -> Drop() end end, [{message_queue_data, off_heap}]),
    Session = trace:session_create(floor, Tracer, []),
    System = spawn(fun() -> receive go -> witness_load:flat(Self, lists:nth(1, Load), lists:nth(2, Load), lists:nth(3, Load)) end end),
    1 = trace:process(Session, System, true, [procs, send, 'receive', set_on_spawn]),
    System ! go,
    T = system(),
    trace:session_destroy(Session),
    exit(Tracer, kill),
    {T, T};
run(Variant, Load) ->
    Arg = case Variant of empty -> empty; sequence -> check end,
    Begin = erlang:monotonic_time(microsecond),
    {ok, Run} = witness:start(#{system => {witness_load, flat, [self() | Load]}, max_verdicts => 0,
                                drain => infinity, log => false,
                                monitors => [{{witness_load, F, '_'}, {witness_load_monitor, Arg}}
                                             || F <- [flat, node]]}),
    T = system(),
    {ok, #{verdicts := #{no := 0, inconclusive := 0, yes := Sound}}} = witness:await(Run, infinity),
    Done = erlang:monotonic_time(microsecond) - Begin,
    {ok, _} = witness:stop(Run),
    Sound = hd(Load) + 1,
    {T, Done}.

system() -> receive {done, _, _, T} -> erlang:garbage_collect(), T end.
