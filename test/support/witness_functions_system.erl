%% Processes that call functions with numbers in order, and send them to a sink. The functions are not exported.
-module(witness_functions_system).

-export([workers/3, worker/3, reloads/2, between/2, raises/1, raise/1, waits/1]).

%% `Skip` is left out by the last worker.
workers(Workers, Steps, Skip) ->
    Sink = spawn(fun Loop() -> receive stop -> ok; _ -> Loop() end end),
    Refs = [element(2, spawn_monitor(?MODULE, worker, [Sink, Steps, case N of Workers -> Skip; _ -> none end]))
            || N <- lists:seq(1, Workers)],
    lists:foreach(fun(Ref) -> receive {'DOWN', Ref, process, _, Reason} -> normal = Reason end end, Refs),
    Sink ! stop,
    ok.

worker(Sink, Steps, Skip) -> run(1, Steps, Skip, Sink).

run(N, Steps, _, _) when N > Steps -> ok;
run(Skip, Steps, Skip, Sink) ->
    Sink ! {done, self(), Skip},
    run(Skip + 1, Steps, Skip, Sink);
run(N, Steps, Skip, Sink) ->
    {ok, N} = step(N, Sink),
    run(N + 1, Steps, Skip, Sink).

step(N, Sink) ->
    Sink ! {done, self(), N},
    {ok, N}.

%% Between two calls of a function of `Module`, `Reload` is called.
reloads(Module, Reload) ->
    {_, Ref} = spawn_monitor(?MODULE, between, [Module, Reload]),
    receive {'DOWN', Ref, process, _, normal} -> ok end.

between(Module, Reload) ->
    one = Module:one(),
    ok = Reload(),
    one = Module:one(),
    self() ! seen,
    receive seen -> ok end.

raises(Times) ->
    {_, Ref} = spawn_monitor(?MODULE, raise, [Times]),
    receive {'DOWN', Ref, process, _, normal} -> ok end.

raise(Times) -> lists:foreach(fun(N) -> try fail(N) catch error:{even, N} -> ok end end, lists:seq(1, Times)).

fail(N) when N rem 2 =:= 0 -> error({even, N});
fail(N) -> N.

waits(Test) ->
    Test ! {waits, self()},
    receive stop -> ok end.
