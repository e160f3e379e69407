-module(witness_sys_pingpong).
-moduledoc """
Pairs of ping and pong, all at the same time. Pong answers `{ping, From, N}` with `{pong, N}`; a pong that was
started with `Wrong` adds one to that number.
""".
-export([pairs/2, ping/2, pong/1]).

-spec pairs(pos_integer(), integer()) -> ok.
pairs(N, Wrong) ->
    _ = [spawn(?MODULE, ping, [spawn(?MODULE, pong, [Wrong]), 20]) || _ <- lists:seq(1, N)],
    ok.

-spec ping(pid(), non_neg_integer()) -> stop.
ping(Pong, 0) ->
    Pong ! stop;
ping(Pong, N) ->
    Pong ! {ping, self(), N},
    receive {pong, _} -> ping(Pong, N - 1) end.

-spec pong(integer()) -> ok.
pong(Wrong) ->
    receive
        {ping, From, Wrong} -> From ! {pong, Wrong + 1}, pong(Wrong);
        {ping, From, N} -> From ! {pong, N}, pong(Wrong);
        stop -> ok
    end.
