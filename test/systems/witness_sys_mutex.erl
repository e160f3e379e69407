-module(witness_sys_mutex).
-moduledoc """
A lock server that several clients want at the same time. `generous` gives the lock to every client that asks, and its
clients keep it until all of them have it, so that the fault shows in every run.
""".
-export([main/2, lock/1, client/4]).

-spec main(pos_integer(), strict | generous) -> stop.
main(Clients, How) ->
    Lock = spawn(?MODULE, lock, [How]),
    Pids = [spawn(?MODULE, client, [Id, Lock, self(), How]) || Id <- lists:seq(1, Clients)],
    _ = How =:= generous andalso
        begin
            _ = [receive {holds, Pid} -> ok end || Pid <- Pids],
            [Pid ! carry_on || Pid <- Pids]
        end,
    _ = [receive {done, Pid} -> ok end || Pid <- Pids],
    Lock ! stop.

-spec lock(strict | generous) -> ok.
lock(How) ->
    receive
        {acquire, Client} when How =:= generous -> Client ! {granted, self()}, lock(How);
        {acquire, Client} -> Client ! {granted, self()}, held(Client), lock(How);
        {release, _} -> lock(How);
        stop -> ok
    end.

held(Client) -> receive {release, Client} -> ok end.

-spec client(pos_integer(), pid(), pid(), strict | generous) -> {done, pid()}.
client(_, Lock, Root, How) ->
    _ = [hold(Lock, Root, How, Round) || Round <- lists:seq(1, 5)],
    Root ! {done, self()}.

hold(Lock, Root, How, Round) ->
    Lock ! {acquire, self()},
    receive {granted, Lock} -> ok end,
    _ = {How, Round} =:= {generous, 1} andalso
        begin Root ! {holds, self()}, receive carry_on -> ok end end,
    Lock ! {release, self()}.
