-module(witness_sys_links).
-moduledoc """
Chains of linked processes: the last one ends with a reason, and each one before it ends with the same. In each chain
one process traps exits, ends normally, and so protects those before it.
""".
-export([main/2, member/3]).

-spec main(pos_integer(), pos_integer()) -> ok.
main(Chains, Length) ->
    Firsts = [spawn_monitor(?MODULE, member, [Length, 3, self()]) || _ <- lists:seq(1, Chains)],
    Lasts = [receive {last, Pid} -> Pid end || _ <- Firsts],
    _ = [exit(Pid, fire) || Pid <- Lasts],
    %% The members before the one that traps are not told: they end when their root tells them.
    _ = [receive {trapped, _} -> ok end || _ <- Firsts],
    _ = [Pid ! {bye, self()} || {Pid, _} <- Firsts],
    _ = [receive {'DOWN', Ref, process, Pid, _} -> ok end || {Pid, Ref} <- Firsts],
    ok.

-doc "Member N of a chain starts member N - 1; member `Trap` traps exits.".
-spec member(pos_integer(), pos_integer(), pid()) -> ok | no_return().
member(Trap, Trap, Root) ->
    process_flag(trap_exit, true),
    Next = spawn_link(?MODULE, member, [Trap - 1, Trap, Root]),
    receive {'EXIT', Next, fire} -> Root ! {trapped, self()}, ok end;
member(1, _, Root) ->
    Root ! {last, self()},
    receive never -> ok end;
member(N, Trap, Root) ->
    Next = spawn_link(?MODULE, member, [N - 1, Trap, Root]),
    receive {bye, Root} -> unlink(Next), pass_on(Next, N, Trap, Root) end.

pass_on(Next, N, Trap, Root) when N - 1 > Trap -> Next ! {bye, Root}, ok;
pass_on(_, _, _, _) -> ok.
