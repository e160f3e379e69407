-module(witness_sys_storm).
-moduledoc """
Producers that send numbered messages to consumers as fast as they can, in waves: every consumer gets `{item, 1}` to
`{item, N}` from each producer, mixed, and some take them late.
""".
-export([main/3, producer/2, consumer/2]).

-spec main(pos_integer(), pos_integer(), pos_integer()) -> ok.
main(Producers, Consumers, N) ->
    Pids = [spawn_monitor(?MODULE, consumer, [Producers * N, Id]) || Id <- lists:seq(1, Consumers)],
    _ = [spawn(?MODULE, producer, [[Pid || {Pid, _} <- Pids], N]) || _ <- lists:seq(1, Producers)],
    _ = [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Pids],
    ok.

-spec producer([pid()], pos_integer()) -> ok.
producer(Consumers, N) ->
    _ = [Pid ! {item, I} || I <- lists:seq(1, N), Pid <- Consumers],
    ok.

-doc "Consumers with an odd number wait for an item that comes late before they take the others.".
-spec consumer(non_neg_integer(), pos_integer()) -> ok.
consumer(N, Id) when Id rem 2 =:= 1 -> receive {item, 20} -> take(N - 1) end;
consumer(N, _) -> take(N).

take(0) -> ok;
take(N) -> receive {item, _} -> take(N - 1) end.
