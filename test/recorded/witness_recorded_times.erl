-module(witness_recorded_times).
-moduledoc "A system in which certain times certainly pass.".

-export([run/0, server/0, quiet/0, stays/1, has_child/1]).

-define(SLEEP_MS, 40).

%% The client asks, sleeps, and asks again. The server sleeps before its second answer. Meanwhile nothing is sent to the quiet one.
run() ->
    Server = spawn(?MODULE, server, []),
    Quiet = spawn(?MODULE, quiet, []),
    [ask(Server, N) || N <- [1, 2]],
    Quiet ! stop,
    Server ! stop,
    [await(P) || P <- [Server, Quiet]],
    done.

ask(Server, N) ->
    Server ! {ask, self(), N},
    receive {answer, N} -> timer:sleep(?SLEEP_MS) end.

server() ->
    receive
        {ask, Client, 1} ->
            Client ! {answer, 1},
            server();
        {ask, Client, 2} ->
            timer:sleep(?SLEEP_MS),
            Client ! {answer, 2},
            server();
        stop -> ok
    end.

quiet() -> receive stop -> ok; {answer, never} -> ok end.

await(P) ->
    Ref = monitor(process, P),
    receive {'DOWN', Ref, process, P, _} -> ok end.

-doc "It stays. When its deadline has certainly passed, there is a file. No process sends or takes a message.".
stays(File) ->
    timer:sleep(?SLEEP_MS),
    ok = prim_file:write_file(File, ~"slept"),
    quiet().

-doc "The same, for a child.".
has_child(File) ->
    _ = spawn(?MODULE, stays, [File]),
    quiet().
