-module(witness_recorded_application).
-moduledoc "An application that does what it has to do, and stops.".
-behaviour(application).

-export([start/2, stop/1, top/0, server/0]).

-define(REQUESTS, 10).

start(normal, []) -> {ok, proc_lib:spawn_link(?MODULE, top, [])}.

stop(_) -> ok.

top() ->
    Server = proc_lib:spawn_link(?MODULE, server, []),
    Answers = [begin Server ! {self(), N}, receive {answer, Answer} -> Answer end end || N <- lists:seq(1, ?REQUESTS)],
    io:format("answered ~p~n", [lists:sum(Answers)]).

server() -> receive {From, N} -> From ! {answer, N * N}, server() end.
