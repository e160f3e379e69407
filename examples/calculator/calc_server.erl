-module(calc_server).
-moduledoc """
A server that adds and multiplies, as a plain process.

It comes correct and with a bug: the buggy one subtracts where it should add.
""".

-export([start/1, loop/1, request/2]).

-export_type([variant/0]).

-type variant() :: correct | buggy.
-type request() :: {add | mul, integer(), integer()} | stop.

-spec start(variant()) -> pid().
start(Variant) ->
    spawn(?MODULE, loop, [Variant]).

-doc "Sends the request, and waits for the answer.".
-spec request(pid(), request()) -> {ok, integer()} | bye.
request(Server, Request) ->
    Server ! {self(), Request},
    receive
        {ok, Result} -> {ok, Result};
        bye -> bye
    end.

-doc false.
-spec loop(variant()) -> ok.
loop(Variant) ->
    receive
        {Client, {add, A, B}} ->
            Client ! {ok, add(Variant, A, B)},
            loop(Variant);
        {Client, {mul, A, B}} ->
            Client ! {ok, A * B},
            loop(Variant);
        {Client, stop} ->
            Client ! bye,
            ok
    end.

-spec add(variant(), integer(), integer()) -> integer().
add(correct, A, B) -> A + B;
add(buggy, A, B) -> A - B.
