-module(witness_sys_master).
-moduledoc """
A master that sends the numbers 1 to N to each of its workers, in turn, and gets their sums. `Skip` is `none` or
`{Worker, Number}`: that worker never gets that number.
""".
-export([master/3, worker/2]).

-spec master(pos_integer(), pos_integer(), none | {pos_integer(), pos_integer()}) -> ok.
master(Workers, N, Skip) ->
    Pids = [{Id, spawn(?MODULE, worker, [Id, self()])} || Id <- lists:seq(1, Workers)],
    _ = [Pid ! {task, I} || I <- lists:seq(1, N), {Id, Pid} <- Pids, {Id, I} =/= Skip],
    _ = [Pid ! finish || {_, Pid} <- Pids],
    _ = [receive {sum, Id, _} -> ok end || {Id, _} <- Pids],
    ok.

-spec worker(pos_integer(), pid()) -> {sum, pos_integer(), non_neg_integer()}.
worker(Id, Master) ->
    Master ! {sum, Id, sum(0)}.

sum(Acc) ->
    receive
        {task, I} -> sum(Acc + I);
        finish -> Acc
    end.
