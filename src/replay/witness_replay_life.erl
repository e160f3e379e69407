-module(witness_replay_life).
-moduledoc """
Starts replayed processes: those that the program spawns, and those without a recorded parent. The identity of a child is in the
log of its parent.

`m:witness_replay_proxies` makes the live process of a recorded one when a process first needs it. The live process runs
`place/1`, and waits. So messages can be there before the process starts. `begun/3` sends it the function to run. *Invariant:*
the controller is notified of a child before the child can do anything (`child/3`). When the function has returned or raised,
the interpreter compares that with the log (`witness_replay_interpreter:finished/1`).
""".

-export([spawned/3, begun/2, begun/3, child/3, hibernate/2]).
-export([place/1, awake/1]).

-include("src/replay/witness_replay_process.hrl").

-doc false.
-spec place(pos_integer()) -> no_return().
place(Id) ->
    receive
        {witness_begin, Flow, {Module, Function, Args}, Heap} ->
            Pid = witness_replay_process_table:pid(Id),
            #{checked := Checked, announced := Announced} = witness_replay_interpreter:given(),
            Plain = not (Checked orelse Announced orelse witness_replay_emitter:is_on()),
            {_, P} = witness_replay_interpreter:looked((witness_replay_process:new(Id, Pid, Flow, Plain))#process{heap = Heap}),
            witness_replay_interpreter:keep(witness_replay_breakpoint:limited(P)),
            run(Module, Function, Args)
    end.

%% Only the end may come after the call: this `try' is not the program's.
-spec run(module(), atom(), [term()]) -> no_return().
run(Module, Function, Args) ->
    try witness_replay_runtime:apply(Module, Function, Args) of
        _ -> witness_replay_interpreter:finished(normal)
    catch
        throw:Reason:Stack -> witness_replay_interpreter:finished({{nocatch, Reason}, witness_replay_interpreter:stack(Stack)});
        error:Reason:Stack -> witness_replay_interpreter:finished({Reason, witness_replay_interpreter:stack(Stack)});
        exit:Reason -> witness_replay_interpreter:finished(Reason)
    end.

-doc "The program spawns, by this function of `erlang`.".
-spec spawned(atom(), [term()], witness_replay_process:process()) -> term().
spawned(Function, Args, P) -> by_log(Function, Args, witness_replay_interpreter:peeked(P)).

by_log(Function, Args, {{spawn, Child}, P}) ->
    %% If the recording was cut, the birth of the child may be missing.
    Pid = case witness_replay_process_table:pid(Child) of none -> witness_replay_interpreter:stopped(cut, P); Known -> Known end,
    ok = witness_replay_backpressure:begins(P#process.id, P#process.flow),
    %% If another node cannot be reached, the VM spawns a process here that reports that.
    Start = case witness_record_runtime:elsewhere(Args) andalso witness_replay_process_table:known(Child) of
        {_, {_, _, With} = Begun} when is_list(With) -> witness_replay_results:known_funs(Begun);
        _ -> started_with(Args)
    end,
    ok = witness_replay_emitter:leads({with, Function, lists:last(Args)}, P),
    ok = witness_replay_emitter:spawned(Child, Start, P),
    ok = child(Child, Start, witness_replay_heap:born(Function, Args)),
    P1 = witness_replay_process:pop(P),
    MFA = {erlang, Function, length(Args)},
    case witness_replay_interpreter:looked(P1) of
        {{result, MFA, Value}, P2} -> witness_replay_results:returned(MFA, Args, Value, P2);
        {_, P2} ->
            witness_replay_interpreter:keep(P2),
            Pid
    end;
by_log(Function, Args, {Entry, P}) -> witness_replay_results:answered({Entry, P}, erlang, Function, Args).

%% The arguments have a node or none, and a fun, or a function with its arguments.
started_with([Fun | _]) when is_function(Fun) -> {erlang, apply, [Fun, []]};
started_with([_, Fun | _]) when is_function(Fun) -> {erlang, apply, [Fun, []]};
started_with([Module, Function, Args | _]) when is_list(Args) -> {Module, Function, Args};
started_with([_, Module, Function, Args | _]) -> {Module, Function, Args}.

-doc "Starts a process that another one has spawned. The controller is notified before the child can do anything.".
-spec child(pos_integer(), {module(), atom(), [term()]}, witness_replay_heap:limit()) -> ok.
child(Id, MFA, Heap) ->
    {Pid, _} = witness_replay_proxies:slot(Id),
    witness_replay_interpreter:told({begun, Id, Pid}),
    Pid = begun(Id, MFA, Heap),
    ok.

-doc "Starts a process. The result is its live process.".
-spec begun(pos_integer(), {module(), atom(), [term()]}) -> pid().
begun(Id, MFA) -> begun(Id, MFA, witness_replay_heap:born()).

-doc "The same, with the limit of its heap.".
-spec begun(pos_integer(), {module(), atom(), [term()]}, witness_replay_heap:limit()) -> pid().
begun(Id, MFA, Heap) ->
    {Pid, Flow} = Slot = witness_replay_proxies:slot(Id),
    ok = witness_replay_proxies:begun(Id, witness_replay_process_table:pid(Id), Slot),
    ok = witness_replay_backpressure:begun(Flow),
    Pid ! {witness_begin, Flow, MFA, Heap},
    Pid.

-doc """
The process hibernates until a message comes, and goes on with this function, or after the call. In a replay it goes on at once,
or ends there if it did so in the recording.
""".
-spec hibernate([term()], witness_replay_process:process()) -> term().
hibernate(Args, P) ->
    case witness_record_runtime:may_hibernate(Args) of
        true ->
            ok = witness_replay_results:hibernates(Args, P),
            goes_on(Args);
        %% It fails.
        false -> erlang:apply(erlang, hibernate, Args)
    end.

goes_on([]) -> ok;
goes_on(MFA) ->
    %% The stack is discarded, so a process that hibernates again and again does not grow.
    self() ! witness_awake,
    erlang:hibernate(?MODULE, awake, [MFA]).

-doc false.
-spec awake([term()]) -> no_return().
awake([Module, Function, Args]) ->
    receive witness_awake -> run(Module, Function, Args) end.
