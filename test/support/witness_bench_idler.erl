-module(witness_bench_idler).
-moduledoc """
A system with known idle times: a server that answers at once, and a client that waits before each request. The server is
idle at least as long, and never longer than it lives.

It is a module of its own because it is woven and restored, and a fun of the original code cannot be called in the moment in
which it is restored.
""".

-export([measured/1, server/1, requests/0, pause/0]).

-doc "How many requests there are.".
requests() -> 20.

-doc "Milliseconds before each of them.".
pause() -> 3.

-doc "The first process: the client.".
measured(Measures) ->
    Local = witness_bench_response:open(Measures),
    client(),
    witness_bench_response:close(Local).

client() ->
    process_flag(trap_exit, true),
    Server = spawn_link(?MODULE, server, [self()]),
    ask(Server, requests()),
    Server ! stop,
    receive {'EXIT', Server, normal} -> ok end.

ask(_, 0) -> ok;
ask(Server, N) ->
    receive after pause() -> ok end,
    Server ! {self(), N},
    receive {Server, N} -> ask(Server, N - 1) end.

-doc false.
server(Client) ->
    receive
        {Client, N} -> Client ! {self(), N}, server(Client);
        stop -> ok
    end.
