-module(witness_trace_freeze).
-moduledoc """
Suspends all processes of a system at once, so that its observer can end, however fast the system spawns.

A program that spawns without end leaves almost no time to others, and perhaps no place in the process table. So the process
that suspends it is started before, with the priority `max`, and keeps some places free. While it works, only its own
scheduler runs processes (`multi_scheduling`). A process that runs next handles the signal that suspends it before anything
else. So a system that spawns is suspended after one or two scans of the process table.

An application is stopped in good order, so the system goes on for that (`thaw/2`). It may leave no time for it, so there is
a limit.

Processes that were there at `start/2` are no part of the system, and neither are those for which `Own` returns true.
They go on.
""".

-export([start/2, freeze/1, thaw/2]).
-export_type([freezer/0]).

-opaque freezer() :: pid().

-define(SHUTDOWN_MS, 10_000).

-doc """
From now on the system can be suspended. `Own` tells whether a suspended process is to go on. Idle processes keep so many
places of the process table, which are freed when the system is suspended.
""".
-spec start(Places :: non_neg_integer(), Own :: fun((pid()) -> boolean())) -> freezer().
start(Reserved, Own) ->
    Caller = self(),
    Ref = make_ref(),
    _ = spawn_opt(fun() ->
        Places = [spawn_link(fun() -> receive never -> ok end end) || _ <- lists:seq(1, Reserved)],
        process_flag(trap_exit, true),
        Known = maps:from_keys(processes(), []),
        Caller ! {Ref, self()},
        idle(Known, Own, Places)
    end, [{priority, max}, {message_queue_data, off_heap}]),
    receive {Ref, Freezer} -> Freezer end.

-doc "Suspends the system. Nothing happens if it is suspended already.".
-spec freeze(freezer()) -> ok.
freeze(Freezer) -> call(Freezer, freeze).

-doc """
The system goes on, so that its applications can be stopped. If the kernel has a `shutdown_timeout`, each application has
that time. Otherwise they have 10 s in all, and then the VM is ended with this status.
""".
-spec thaw(freezer(), Status :: non_neg_integer()) -> ok.
thaw(Freezer, Status) ->
    %% A system that goes on may leave no time for this call.
    Limit = case application:get_env(kernel, shutdown_timeout) of
        undefined -> ok = application:set_env(kernel, shutdown_timeout, ?SHUTDOWN_MS), ?SHUTDOWN_MS;
        {ok, _} -> infinity
    end,
    call(Freezer, {thaw, Limit, Status}).

call(Freezer, What) ->
    Ref = monitor(process, Freezer, [{alias, reply_demonitor}]),
    Freezer ! {What, Ref},
    receive
        {Ref, done} -> ok;
        {'DOWN', Ref, process, _, _} -> ok
    end.

idle(Known, Own, Places) ->
    receive
        {freeze, From} ->
            %% With one scheduler there is nothing to block.
            _ = erlang:system_flag(multi_scheduling, block_normal),
            Suspended = suspend_all(Known, []),
            _ = erlang:system_flag(multi_scheduling, unblock_normal),
            _ = [exit(Place, kill) || Place <- Places],
            Others = lists:filter(fun(P) -> not resume_own(P, Own) end, Suspended),
            From ! {From, done},
            frozen(Others);
        {{thaw, Limit, Status}, From} ->
            From ! {From, done},
            halt_after(Limit, Status)
    end.

%% If this process ended, all processes that it has suspended would go on.
frozen(Suspended) ->
    receive
        {freeze, From} ->
            From ! {From, done},
            frozen(Suspended);
        {{thaw, Limit, Status}, From} ->
            lists:foreach(fun resume/1, Suspended),
            From ! {From, done},
            halt_after(Limit, Status)
    end.

%% Does not wait for reports that are still to be logged: a system that spawns without end can have millions of them.
-spec halt_after(timeout(), non_neg_integer()) -> no_return().
halt_after(Limit, Status) -> receive after Limit -> halt(Status, [{flush, true}]) end.

%% Waits for each process until it is suspended or has ended. The next scan finds what it has spawned before.
suspend_all(Known, Suspended) ->
    case [P || P <- processes(), not is_map_key(P, Known), P =/= self()] of
        [] -> Suspended;
        New ->
            Ref = make_ref(),
            lists:foreach(fun(P) -> suspend(P, Ref) end, New),
            Now = [P || P <- New, receive {{Ref, P}, State} -> State =:= suspended end],
            suspend_all(maps:merge(Known, maps:from_keys(New, [])), Now ++ Suspended)
    end.

suspend(P, Ref) ->
    try erlang:suspend_process(P, [{asynchronous, {Ref, P}}])
    catch error:_ -> self() ! {{Ref, P}, exited}
    end.

resume_own(P, Own) ->
    case Own(P) of
        true -> resume(P), true;
        false -> false
    end.

resume(P) ->
    _ = try erlang:resume_process(P)
        catch error:badarg -> false
        end,
    ok.
