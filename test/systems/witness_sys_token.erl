-module(witness_sys_token).
-moduledoc """
Token servers: each keeps a token of its own and hands out the following ones, to a client of its own that asks
for one at a time. `farm(N, Leaky)` starts N pairs at once; the server with the number `Leaky` gives its own token
away at the fifth request.
""".
-export([farm/2, client/2, loop/2, leaky_loop/3]).

-spec farm(pos_integer(), non_neg_integer()) -> ok.
farm(N, Leaky) ->
    _ = [spawn(?MODULE, client, [I, I =:= Leaky]) || I <- lists:seq(1, N)],
    ok.

-spec client(pos_integer(), boolean()) -> stop.
client(I, Leaks) ->
    Server = spawn(?MODULE, loop, [I * 1000, if Leaks -> {leak_after, 4}; true -> keep end]),
    _ = [get_token(Server) || _ <- lists:seq(1, 8)],
    Server ! stop.

get_token(Server) ->
    Server ! {get, self()},
    receive Token when is_integer(Token) -> Token end.

-spec loop(pos_integer(), keep | {leak_after, non_neg_integer()}) -> ok.
loop(Own, keep) -> leaky_loop(Own, Own + 1, -1);
loop(Own, {leak_after, K}) -> leaky_loop(Own, Own + 1, K).

-spec leaky_loop(pos_integer(), pos_integer(), integer()) -> ok.
leaky_loop(Own, Next, Left) ->
    receive
        {get, From} when Left =:= 0 -> From ! Own, leaky_loop(Own, Next, -1);
        {get, From} -> From ! Next, leaky_loop(Own, Next + 1, Left - 1);
        stop -> ok
    end.
