-module(witness_savina_processes).
-moduledoc """
Starts the processes of a benchmark, waits for their ends, and verifies what it has found.

The process that starts them is linked to all of them, so that a crash ends the benchmark, and monitors them,
so that it knows when they have ended.
""".

-export([start/3, start_server/2, await/1, gather/3, verify/3]).

-doc "Starts a process; `await/1` counts its end.".
-spec start(module(), atom(), [term()]) -> pid().
start(Module, Function, Args) ->
    {Pid, _} = spawn_opt(Module, Function, Args, [link, monitor]),
    Pid.

-doc "Starts a `gen_server`; `await/1` counts its end.".
-spec start_server(module(), term()) -> pid().
start_server(Module, Arg) ->
    {ok, Pid} = gen_server:start_link(Module, Arg, []),
    _ = monitor(process, Pid),
    Pid.

-doc "Waits until so many of the caller's processes have ended. If one ends with another reason than normal, so does the caller.".
-spec await(non_neg_integer()) -> ok.
await(0) -> ok;
await(N) ->
    receive
        {'DOWN', _, process, _, normal} -> await(N - 1);
        {'DOWN', _, process, _, Reason} -> exit(Reason)
    end.

-doc """
Waits likewise, and folds over all other messages that come until then. What a process sends to the caller
before it ends comes before its end, so nothing is missed.
""".
-spec gather(non_neg_integer(), fun((Message :: term(), Acc) -> Acc), Acc) -> Acc.
gather(0, _, Acc) -> Acc;
gather(N, Fold, Acc) ->
    receive
        {'DOWN', _, process, _, normal} -> gather(N - 1, Fold, Acc);
        {'DOWN', _, process, _, Reason} -> exit(Reason);
        Message -> gather(N, Fold, Fold(Message, Acc))
    end.

-doc "Ends the process, and by its links the benchmark, if the two are not exactly equal.".
-spec verify(What :: term(), Expected :: term(), Found :: term()) -> ok.
verify(_, Same, Same) -> ok;
verify(What, Expected, Found) -> exit({wrong, What, Expected, Found}).
