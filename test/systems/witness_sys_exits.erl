-module(witness_sys_exits).
-moduledoc """
Every way in which a process ends, each in a process of its own, many of them at the same time: by returning, by
`exit/1`, by an error or an uncaught throw, killed or told to exit by another, with what it is linked to, and
after it trapped an exit.
""".
-export([main/0, returns/0, quits/1, divides/0, throws/0, waits/1, ignores_normal/1, traps/1, leader/2, follower/1,
         cannot_trap_kill/1]).

-spec main() -> ok.
main() ->
    Alone = [spawn_monitor(?MODULE, F, A) || {F, A} <- alone()],
    Waiting = [{Name, spawn_monitor(?MODULE, Name, [self()])}
               || Name <- [waits, ignores_normal, traps, cannot_trap_kill]],
    Leaders = [{How, spawn_monitor(?MODULE, leader, [How, self()])} || How <- [boom, normal, divide]],
    _ = [receive {ready, Pid} -> told(Name, Pid) end || {Name, {Pid, _}} <- Waiting],
    _ = [receive {linked, Pid, Follower} -> follow(How, Pid, Follower) end || {How, {Pid, _}} <- Leaders],
    _ = [receive {'DOWN', Ref, process, Pid, _} -> ok end
         || {Pid, Ref} <- Alone ++ [P || {_, P} <- Waiting ++ Leaders]],
    ok.

alone() ->
    [{returns, []}, {divides, []}, {throws, []} |
     [{quits, [Reason]} || Reason <- [normal, shutdown, {shutdown, soon}, 42, "text", #{why => here}]]].

told(waits, Pid) -> exit(Pid, told);
told(ignores_normal, Pid) -> exit(Pid, normal), Pid ! go;
told(traps, Pid) -> exit(Pid, trapped);
told(cannot_trap_kill, Pid) -> exit(Pid, kill).

follow(normal, Leader, Follower) ->
    Ref = monitor(process, Leader),
    Leader ! go,
    receive {'DOWN', Ref, process, Leader, normal} -> Follower ! go end;
follow(_, Leader, _) ->
    Leader ! go.

-spec returns() -> ok.
returns() -> ok.

-spec quits(term()) -> no_return().
quits(Reason) -> exit(Reason).

-spec divides() -> float().
divides() -> 1 / zero().

-spec throws() -> no_return().
throws() -> throw(ball).

-doc "Is told to exit by another process, which it does not trap.".
-spec waits(pid()) -> no_return().
waits(Root) -> Root ! {ready, self()}, never().

-doc "An exit signal with the reason `normal` does nothing to a process that does not trap exits.".
-spec ignores_normal(pid()) -> ok.
ignores_normal(Root) ->
    Root ! {ready, self()},
    receive go -> ok end.

-spec traps(pid()) -> ok.
traps(Root) ->
    process_flag(trap_exit, true),
    Root ! {ready, self()},
    receive {'EXIT', Root, trapped} -> ok end.

-spec cannot_trap_kill(pid()) -> no_return().
cannot_trap_kill(Root) ->
    process_flag(trap_exit, true),
    Root ! {ready, self()},
    never().

-doc "Ends as it is told once its linked follower is there.".
-spec leader(normal | boom | divide, pid()) -> ok.
leader(How, Root) ->
    Follower = spawn_link(?MODULE, follower, [How]),
    Root ! {linked, self(), Follower},
    receive go -> ok end,
    case How of
        normal -> ok;
        boom -> exit(boom);
        divide -> divides(), ok
    end.

-doc "Ends with its leader, unless that ends normally: then it waits to be told.".
-spec follower(normal | boom | divide) -> ok.
follower(_) -> receive go -> ok end.

never() -> receive never -> never() end.

-spec zero() -> 0.
zero() -> list_to_integer("0").
