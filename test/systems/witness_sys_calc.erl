-module(witness_sys_calc).
-moduledoc """
A calculator that answers `{From, {Op, A, B}}`, asked by one client, by several at the same time, or through a
queue of requests that no client waits for. The bug names what goes wrong: `none`, `big_sums` (sums above 20 are one
too high), `{operand, A}` (sums with the first operand A are).
""".
-export([one/1, many/2, queued/2, loop/1, client/3, desk/1, flood/4]).

-type bug() :: none | big_sums | {operand, integer()}.

-spec one(bug()) -> stop.
one(Bug) ->
    Server = spawn(?MODULE, loop, [Bug]),
    _ = [ask(Server, {Op, A, A + 1}) || A <- lists:seq(1, 15), Op <- [add, mul]],
    Server ! stop.

-spec many(pos_integer(), bug()) -> stop.
many(Clients, Bug) ->
    Server = spawn(?MODULE, loop, [Bug]),
    _ = [spawn(?MODULE, client, [Server, self(), Id]) || Id <- lists:seq(1, Clients)],
    collect(Clients),
    Server ! stop.

-spec queued(pos_integer(), bug()) -> stop.
queued(Clients, Bug) ->
    Server = spawn(?MODULE, desk, [Bug]),
    _ = [spawn(?MODULE, flood, [Server, self(), Id, 12]) || Id <- lists:seq(1, Clients)],
    collect(Clients),
    Server ! stop.

collect(0) -> ok;
collect(N) -> receive {done, _} -> collect(N - 1) end.

-spec loop(bug()) -> ok.
loop(Bug) ->
    receive
        {From, {Op, A, B}} -> From ! {ok, apply_op(Bug, Op, A, B)}, loop(Bug);
        stop -> ok
    end.

-spec client(pid(), pid(), integer()) -> {done, integer()}.
client(Server, Root, Id) ->
    _ = [ask(Server, {add, Id, B}) || B <- lists:seq(1, 10)],
    Root ! {done, Id}.

-doc "The server of the queue: requests and replies carry an identifier.".
-spec desk(bug()) -> ok.
desk(Bug) ->
    receive
        {From, Id, {Op, A, B}} -> From ! {Id, apply_op(Bug, Op, A, B)}, desk(Bug);
        stop -> ok
    end.

-doc "Sends all its requests before it takes the first reply.".
-spec flood(pid(), pid(), integer(), pos_integer()) -> {done, integer()}.
flood(Server, Root, A, N) ->
    Ids = lists:seq(1, N),
    _ = [Server ! {self(), Id, {add, A, Id}} || Id <- Ids],
    _ = [receive {Id, _} -> ok end || Id <- Ids],
    Root ! {done, A}.

ask(Server, Request) ->
    Server ! {self(), Request},
    receive {ok, Result} -> Result end.

apply_op(big_sums, add, A, B) when A + B > 20 -> A + B + 1;
apply_op({operand, A}, add, A, B) -> A + B + 1;
apply_op(_, add, A, B) -> A + B;
apply_op(_, mul, A, B) -> A * B.
