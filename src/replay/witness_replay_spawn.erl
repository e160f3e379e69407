-module(witness_replay_spawn).
-moduledoc """
Starts replayed processes: those that the program spawns, and those without a recorded parent. The identity of a child is in the
log of its parent.

`m:witness_replay_proxies` makes the live process of a recorded one when a process first needs it. *Invariant:* the controller is
notified of a child before the child can do anything (`start_child/4`). When the function of a process has returned or raised,
the interpreter compares that with the log (`witness_replay_interpreter:finish/1`).

The first function of a process may itself be a call that the log answers. So the caller passes what calls it, `apply()`.
""".

-export([spawn_child/4, foreign/4, start_first/3, hibernate/3]).
-export([awake/2]).

-export_type([apply/0]).

-type mfargs() :: {module(), atom(), [term()]}.

-doc "Calls a function as a call that is known only at run time.".
-type apply() :: fun((module(), atom(), [term()]) -> term()).

%% The first code of a live process.
-spec begin_process(pos_integer(), witness_replay_proxies:flow(), mfargs(), witness_replay_heap:limit(), apply()) -> no_return().
begin_process(Id, Flow, MFA, Heap, Apply) ->
    Pid = witness_replay_process_table:pid(Id),
    #{checked := Checked, announced := Announced} = witness_replay_interpreter:config(),
    Plain = not (Checked orelse Announced orelse witness_replay_emitter:is_on()),
    {_, P} = witness_replay_interpreter:peek_entry(witness_replay_process:new(Id, Pid, Flow, Plain, Heap)),
    witness_replay_interpreter:put_state(witness_replay_breakpoint:set_limit(P)),
    run(MFA, Apply).

%% Only the end may come after the call: this `try' is not the program's.
-spec run(mfargs(), apply()) -> no_return().
run({Module, Function, Args}, Apply) ->
    try Apply(Module, Function, Args) of
        _ -> witness_replay_interpreter:finish(normal)
    catch
        throw:Reason:Stack -> witness_replay_interpreter:finish({{nocatch, Reason}, witness_replay_stack:of_program(Stack)});
        error:Reason:Stack -> witness_replay_interpreter:finish({Reason, witness_replay_stack:of_program(Stack)});
        exit:Reason -> witness_replay_interpreter:finish(Reason)
    end.

-doc "The program spawns, by this function of `erlang`.".
-spec spawn_child(atom(), [term()], apply(), witness_replay_process:process()) -> term().
spawn_child(Function, Args, Apply, P) -> spawn_by_log(Function, Args, Apply, witness_replay_interpreter:next_entry(P)).

spawn_by_log(Function, Args, Apply, {{spawn, Child}, P}) ->
    %% If the recording was cut, the birth of the child may be missing.
    Pid = case witness_replay_process_table:pid(Child) of none -> witness_replay_interpreter:stop(cut, P); Known -> Known end,
    ok = witness_replay_backpressure:wait_to_spawn(witness_replay_process:id(P), witness_replay_process:flow(P)),
    %% If another node cannot be reached, the VM spawns a process here that reports that.
    Start = case witness_record_runtime:elsewhere(Args) andalso witness_replay_process_table:lookup(Child) of
        {_, {_, _, With} = Begun} when is_list(With) -> witness_replay_results:local_funs(Begun);
        _ -> start_function(Args)
    end,
    ok = witness_replay_emitter:report_before({with, Function, lists:last(Args)}, P),
    ok = witness_replay_emitter:report_spawn(Child, Start, P),
    ok = start_child(Child, Start, witness_replay_heap:initial_limit(Function, Args), Apply),
    P1 = witness_replay_interpreter:pop_entry(P),
    MFA = {erlang, Function, length(Args)},
    case witness_replay_interpreter:peek_entry(P1) of
        {{result, MFA, Value}, P2} -> witness_replay_results:return(MFA, Args, Value, P2);
        {_, P2} ->
            witness_replay_interpreter:put_state(P2),
            Pid
    end;
spawn_by_log(Function, Args, _, Peeked) -> witness_replay_results:answer(Peeked, erlang, Function, Args).

%% The arguments have a node or none, and a fun, or a function with its arguments.
start_function([Fun | _]) when is_function(Fun) -> {erlang, apply, [Fun, []]};
start_function([_, Fun | _]) when is_function(Fun) -> {erlang, apply, [Fun, []]};
start_function([Module, Function, Args | _]) when is_list(Args) -> {Module, Function, Args};
start_function([_, Module, Function, Args | _]) -> {Module, Function, Args}.

-doc """
A call of a function that is not woven. What it does inside is outside. The log names the processes that it starts, before its
result.
""".
-spec foreign(module(), atom(), [term()], apply()) -> term().
foreign(Module, Function, Args, Apply) ->
    P = witness_replay_interpreter:current(),
    case P =/= none andalso witness_replay_results:is_in_log(Module, Function) of
        true ->
            {Entry, P1} = Next = witness_replay_interpreter:next_entry(P),
            ok = witness_replay_emitter:report_foreign(Module, Entry, P1),
            answer_foreign(Next, Module, Function, Args, Apply);
        false -> erlang:apply(Module, Function, Args)
    end.

answer_foreign({{spawn, Child}, P}, Module, Function, Args, Apply) ->
    case witness_replay_process_table:lookup(Child) of
        {_, {_, _, Arguments} = MFA} when is_list(Arguments) ->
            ok = witness_replay_backpressure:wait_to_spawn(witness_replay_process:id(P), witness_replay_process:flow(P)),
            ok = witness_replay_emitter:report_spawn(Child, MFA, P),
            ok = start_child(Child, MFA, witness_replay_heap:initial_limit(), Apply),
            Next = witness_replay_interpreter:next_entry(witness_replay_interpreter:pop_entry(P)),
            answer_foreign(Next, Module, Function, Args, Apply);
        _ -> witness_replay_interpreter:diverge({spawn, Child}, {call, Module, Function, Args}, P)
    end;
answer_foreign(Peeked, Module, Function, Args, _) -> witness_replay_results:answer(Peeked, Module, Function, Args).

%% Starts a process that another one has spawned.
start_child(Id, MFA, Heap, Apply) ->
    {Pid, _} = witness_replay_proxies:proxy(Id),
    witness_replay_interpreter:notify_controller({begun, Id, Pid}),
    Pid = start(Id, MFA, Heap, Apply),
    ok.

-doc "Starts a process without a recorded parent. The result is its live process.".
-spec start_first(pos_integer(), mfargs(), apply()) -> pid().
start_first(Id, MFA, Apply) -> start(Id, MFA, witness_replay_heap:initial_limit(), Apply).

start(Id, MFA, Heap, Apply) ->
    {Pid, Flow} = Proxy = witness_replay_proxies:proxy(Id),
    ok = witness_replay_proxies:insert(Id, witness_replay_process_table:pid(Id), Proxy),
    ok = witness_replay_backpressure:handle_start(Flow),
    ok = witness_replay_proxies:run(Pid, fun begin_process/5, [Id, Flow, MFA, Heap, Apply]),
    Pid.

-doc """
The process hibernates until a message comes, and goes on with this function, or after the call. In a replay it goes on at once,
or ends there if it did so in the recording.
""".
-spec hibernate([term()], apply(), witness_replay_process:process()) -> term().
hibernate(Args, Apply, P) ->
    case witness_record_runtime:may_hibernate(Args) of
        true ->
            ok = witness_replay_results:take_hibernation(Args, P),
            continue(Args, Apply);
        %% It fails.
        false -> erlang:apply(erlang, hibernate, Args)
    end.

continue([], _) -> ok;
continue([Module, Function, Args], Apply) ->
    %% The stack is discarded, so a process that hibernates again and again does not grow.
    self() ! witness_awake,
    erlang:hibernate(?MODULE, awake, [{Module, Function, Args}, Apply]).

-doc false.
-spec awake(mfargs(), apply()) -> no_return().
awake(MFA, Apply) ->
    receive witness_awake -> run(MFA, Apply) end.
