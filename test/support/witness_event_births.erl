-module(witness_event_births).
-moduledoc """
For tests: what the VM reports of the birth of a real process.
""".

-export([raw/1, signature/1]).

-doc """
Runs `Start` in a traced process and gives the module, function and arguments of the VM's `spawn` and `spawned` events
of the process that `Start` returns, which is gone when this returns.
""".
-spec raw(fun(() -> pid())) -> {module(), atom(), [term()]}.
raw(Start) ->
    Session = trace:session_create(?MODULE, self(), []),
    Test = self(),
    {Driver, Monitor} = spawn_monitor(fun() -> drive(Test, Start) end),
    1 = trace:process(Session, Driver, true, [procs, set_on_spawn]),
    Driver ! go,
    Child = receive
        {started, Driver, Pid} -> Pid;
        {'DOWN', Monitor, process, Driver, Reason} -> error({not_started, Reason})
    end,
    Raw = receive {trace, Child, spawned, _, Born} -> Born after 25_000 -> error(no_spawned_event) end,
    {Parent, Raw} = receive {trace, By, spawn, Child, Made} -> {By, Made} after 25_000 -> error(no_spawn_event) end,
    ChildMonitor = monitor(process, Child),
    Driver ! stop,
    receive {'DOWN', Monitor, process, Driver, shutdown} -> ok end,
    %% What has another parent is ended by that one, a supervisor, which logs children that others have killed.
    Parent =:= Driver andalso exit(Child, kill),
    receive {'DOWN', ChildMonitor, process, Child, _} -> ok end,
    true = trace:session_destroy(Session),
    forget(),
    Raw.

-doc "The signature that the events of the birth resolve to.".
-spec signature(fun(() -> pid())) -> witness_event:signature().
signature(Start) -> witness_event_signature:resolve(raw(Start)).

%% Traps exits, so that a child that ends at once does not take it along. It ends as supervisors wish their parents to.
drive(Test, Start) ->
    receive go -> ok end,
    process_flag(trap_exit, true),
    Test ! {started, self(), Start()},
    receive stop -> exit(shutdown) end.

forget() ->
    receive
        Event when element(1, Event) =:= trace -> forget()
    after 0 -> ok
    end.
