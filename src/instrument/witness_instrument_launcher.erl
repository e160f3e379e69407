-module(witness_instrument_launcher).
-moduledoc """
Starts the system's first process, as a child of a process of Witness.

The launcher is traced only while it spawns, so that its child is traced from birth. When the child ends, the launcher sends
`{system_ended, Reason}` to the run.
""".

-export([start_link/3, launch/1, launch_known/1]).
-export([init/3]).

-doc "A launcher that waits to be told to launch.".
-spec start_link({module(), atom(), [term()]}, GroupLeader :: pid(), Run :: pid()) -> pid().
start_link(MFA, GroupLeader, Run) -> spawn_link(?MODULE, init, [MFA, GroupLeader, Run]).

-doc "Has the process started. The source reports it: the launcher does nothing else while it is traced.".
-spec launch(pid()) -> ok.
launch(Launcher) -> Launcher ! {launch, []}, ok.

-doc "Has the process started, if the source does not report launchers, and returns it.".
-spec launch_known(pid()) -> pid().
launch_known(Launcher) ->
    Ref = monitor(process, Launcher),
    Launcher ! {launch, [{self(), Ref}]},
    receive
        {Ref, Root} -> demonitor(Ref, [flush]), Root;
        {'DOWN', Ref, process, Launcher, Reason} -> exit(Reason)
    end.

-doc false.
-spec init({module(), atom(), [term()]}, pid(), pid()) -> term().
init({M, F, Args}, GroupLeader, Run) ->
    proc_lib:set_label(witness_launcher),
    Told = receive {launch, Callers} -> Callers end,
    group_leader(GroupLeader, self()),
    {Root, Ref} = spawn_monitor(M, F, Args),
    [Caller ! {Asked, Root} || {Caller, Asked} <- Told],
    wait({Root, Ref, Run}).

wait({_, Ref, Run} = L) ->
    receive
        {'DOWN', Ref, process, _, Reason} -> Run ! {system_ended, Reason};
        {system, From, Request} -> witness_event_process:system(Request, From, fun wait/1, L)
    end.
