-module(witness_savina_ping_pong).
-moduledoc """
Two processes exchange `pings` messages and as many answers. After each answer ping sends itself a message to go on, as in
Savina.

Verified: both have counted `pings`.
""".
-behaviour(witness_savina).

-export([sets/0, run/1]).
-export([ping/4, pong/2]).

-import(witness_savina_processes, [start/3, await/1, verify/3]).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() -> #{savina => #{pings => 40_000}, somns => #{pings => 40_000}, small => #{pings => 100}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{pings := N}) ->
    Pong = start(?MODULE, pong, [self(), 0]),
    Ping = start(?MODULE, ping, [self(), Pong, N, 0]),
    Ping ! trigger,
    receive {answered, Pongs} -> verify(pongs, N, Pongs) end,
    receive {asked, Pings} -> verify(pings, N, Pings) end,
    await(2),
    #{pings => N}.

-doc false.
ping(Main, Pong, Left, Answers) ->
    receive
        trigger ->
            Pong ! {ping, self()},
            ping(Main, Pong, Left - 1, Answers);
        pong when Left > 0 ->
            self() ! trigger,
            ping(Main, Pong, Left, Answers + 1);
        pong ->
            Pong ! stop,
            Main ! {asked, Answers + 1}
    end.

-doc false.
pong(Main, Count) ->
    receive
        {ping, From} ->
            From ! pong,
            pong(Main, Count + 1);
        stop ->
            Main ! {answered, Count}
    end.
