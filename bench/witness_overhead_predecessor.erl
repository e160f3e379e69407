-module(witness_overhead_predecessor).
-moduledoc """
The load under the outline monitors of detectEr, the tool of the RIARC paper's authors: a
tracer for each worker, with a monitor inside it that reads every event and checks nothing.

It is not part of this repository: `bench/overhead` compiles a checkout of it.
""".

-export([available/0, run/1]).

-spec available() -> boolean().
available() -> code:ensure_loaded(tracer) =:= {module, tracer} andalso code:ensure_loaded(trace_lib) =:= {module, trace_lib}.

-doc """
The system's own time, the time until the last monitor had its verdict, both in microseconds, and the number of workers'
monitors that never get one: handovers by this tool lose events.
""".
-spec run([non_neg_integer()]) -> {System :: integer(), Done :: integer(), Undecided :: non_neg_integer()}.
run([Workers, Alive, Requests]) ->
    Self = self(),
    Before = processes(),
    %% A tracer that has lost events may crash; that is reported with each event that it had.
    Config = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    Exits = atomics:new(2, []),
    Begin = erlang:monotonic_time(microsecond),
    atomics:put(Exits, 2, Begin),
    Caller = spawn(fun() -> monitor:start_online({witness_load, flat, [Self, Workers, Alive, Requests]},
                                                 fun(MFA) -> monitors(MFA, Exits) end, []) end),
    System = receive {done, _, _, T} -> T end,
    settle([Caller | Before]),
    ok = monitor:stop(),
    lists:foreach(fun(P) -> exit(P, kill) end, [P || P <- processes() -- Before, is_tracer(P)]),
    ok = logger:set_primary_config(Config),
    {System, atomics:get(Exits, 2) - Begin, Workers - atomics:get(Exits, 1)}.

monitors({witness_load, node, _}, Exits) ->
    {ok, fun Monitor({trace, _, exit, _}) ->
                 atomics:add(Exits, 1, 1),
                 atomics:put(Exits, 2, erlang:monotonic_time(microsecond)),
                 yes;
             Monitor(_) -> Monitor
         end};
monitors(_, _) ->
    undefined.

%% Tracers that have lost an exit wait for ever: the others are done when none of them has run since the last check.
settle(Before) ->
    case [P || P <- processes() -- Before, is_tracer(P)] of
        [] -> ok;
        Tracers ->
            receive after 200 -> ok end,
            Rest = [Status || P <- Tracers, {status, Status} <- [process_info(P, status)]],
            length(Rest) =:= length(Tracers) andalso lists:all(fun(S) -> S =:= waiting end, Rest) orelse settle(Before)
    end.

is_tracer(P) ->
    case process_info(P, initial_call) of
        {_, {tracer, _, _}} -> true;
        _ -> false
    end.
