-module(witness_sys_transfers).
-moduledoc """
Accounts as processes, and clients that move money between them, many at the same time. A transfer has a number: the
client has it withdrawn from one account, and when that was granted deposited in another one.

A `lossy` client forgets to deposit what was withdrawn, a `generous` account confirms a deposit twice, and a `miscounting`
one another sum than was withdrawn: each of them with the last transfer of the last client, so it happens for sure.
""".
-export([main/2, account/2, client/4]).

-type how() :: correct | lossy | generous | miscounting.

-spec main(Clients :: pos_integer(), how()) -> ok.
main(Clients, How) ->
    Accounts = [spawn(?MODULE, account, [100, How]) || _ <- lists:seq(1, 4)],
    clients([{C, 12, correct} || C <- lists:seq(1, Clients)], Accounts),
    clients([{last, 1, How}], Accounts),
    [Account ! stop || Account <- Accounts],
    ok.

clients(Clients, Accounts) ->
    Pids = [spawn_monitor(?MODULE, client, [C, N, How, Accounts]) || {C, N, How} <- Clients],
    _ = [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Pids],
    ok.

-spec account(integer(), how()) -> ok.
account(Balance, How) ->
    receive
        {withdraw, Tx, Sum, Client} when Sum > Balance ->
            Client ! {refused, Tx},
            account(Balance, How);
        {withdraw, Tx, Sum, Client} ->
            Client ! {withdrawn, Tx, Sum},
            account(Balance - Sum, How);
        {deposit, Tx, Sum, Client} ->
            _ = [Client ! {deposited, Tx, Confirmed} || Confirmed <- confirmed(Tx, Sum, How)],
            account(Balance + Sum, How);
        stop ->
            ok
    end.

confirmed({last, _}, Sum, generous) -> [Sum, Sum];
confirmed({last, _}, Sum, miscounting) -> [Sum + 1];
confirmed(_, Sum, _) -> [Sum].

-spec client(pos_integer() | last, non_neg_integer(), how(), [pid()]) -> ok.
client(_, 0, _, _) -> ok;
client(C, N, How, Accounts) ->
    Tx = {C, N},
    move(Tx, pick(erlang:phash2(Tx), Accounts), pick(N, Accounts), 1 + N rem 3, How),
    client(C, N - 1, How, Accounts).

move(Tx, From, To, Sum, How) ->
    From ! {withdraw, Tx, Sum, self()},
    receive
        {refused, Tx} -> ok;
        {withdrawn, Tx, Sum} when How =:= lossy -> ok;
        {withdrawn, Tx, Sum} ->
            To ! {deposit, Tx, Sum, self()},
            receive {deposited, Tx, _} -> ok end
    end.

pick(N, Accounts) -> lists:nth(1 + N rem length(Accounts), Accounts).
