-module(calculator_demo).
-moduledoc "A client that asks the calculator three things, and stops it.".

-export([main/1]).

-doc "Runs the client with the correct or with the buggy server.".
-spec main(calc_server:variant()) -> ok.
main(Variant) ->
    Server = calc_server:start(Variant),
    lists:foreach(
        fun({Name, A, B} = Request) ->
            {ok, Result} = calc_server:request(Server, Request),
            io:format("~s(~b, ~b) is ~b~n", [Name, A, B, Result])
        end,
        [{add, 5, 0}, {mul, 3, 7}, {add, 1, 2}]
    ),
    bye = calc_server:request(Server, stop),
    ok.
