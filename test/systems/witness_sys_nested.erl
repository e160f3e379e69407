-module(witness_sys_nested).
-moduledoc """
A binary tree of processes, spawned by each other. Every process is told its parent; in the buggy tree the
second child at level `Wrong` is told its grandparent. Leaves end at once, the others when their children have
told them.
""".
-export([tree/2, level/4]).

-spec tree(pos_integer(), non_neg_integer()) -> [ok].
tree(Depth, Wrong) ->
    grow(Depth, Wrong, self(), none).

-doc "`Told` is the parent that the process is told, `Up` the one that waits for it.".
-spec level(pos_integer(), non_neg_integer(), pid(), pid()) -> done.
level(N, Wrong, Told, Up) ->
    _ = N > 1 andalso grow(N - 1, Wrong, self(), Told),
    Up ! {done, self()},
    done.

grow(N, Wrong, Self, Above) ->
    Second = if N =:= Wrong -> Above; true -> Self end,
    Kids = [spawn(?MODULE, level, [N, Wrong, Told, Self]) || Told <- [Self, Second]],
    [receive {done, Kid} -> ok end || Kid <- Kids].
