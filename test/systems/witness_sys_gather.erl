-module(witness_sys_gather).
-moduledoc """
Parents that each spawn children which work at the same time and send `{result, I, I * I}`; the parent sends them on
to its own. The child `Fails` sends a failure instead and ends with the reason `failed`.
""".
-export([main/3, parent/3, child/3]).

-spec main(pos_integer(), pos_integer(), non_neg_integer()) -> ok.
main(Parents, Children, Fails) ->
    Pids = [spawn(?MODULE, parent, [Children, Fails, self()]) || _ <- lists:seq(1, Parents)],
    _ = [receive {all, Pid, _} -> ok end || Pid <- Pids],
    ok.

-spec parent(pos_integer(), non_neg_integer(), pid()) -> {all, pid(), [term()]}.
parent(Children, Fails, Root) ->
    Self = self(),
    _ = [spawn(?MODULE, child, [I, I =:= Fails, Self]) || I <- lists:seq(1, Children)],
    Root ! {all, Self, [receive {_, I, R} -> R end || I <- lists:seq(1, Children)]}.

-spec child(pos_integer(), boolean(), pid()) -> {result, pos_integer(), pos_integer()}.
child(I, true, Parent) -> Parent ! {failure, I, none}, exit(failed);
child(I, false, Parent) -> Parent ! {result, I, I * I}.
