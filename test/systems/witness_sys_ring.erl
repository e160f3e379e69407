-module(witness_sys_ring).
-moduledoc """
A ring of nodes that passes a token down to 0, and then a stop message around. The node with the number `Faulty`
passes the token on without taking one off while it is above 20.
""".
-export([ring/3, node/3]).

-spec ring(pos_integer(), pos_integer(), non_neg_integer()) -> {token, pos_integer()}.
ring(Size, Token, Faulty) ->
    Nodes = [First | Rest] = [spawn(?MODULE, node, [Id, Id =:= Faulty, Size]) || Id <- lists:seq(1, Size)],
    _ = [Node ! {next, self(), Next} || {Node, Next} <- lists:zip(Nodes, Rest ++ [First])],
    _ = [receive {ready, Node} -> ok end || Node <- Nodes],
    First ! {token, Token}.

-spec node(pos_integer(), boolean(), pos_integer()) -> ok.
node(_, Faulty, Size) ->
    receive
        {next, Root, Next} ->
            Root ! {ready, self()},
            pass(Next, Faulty, Size)
    end.

pass(Next, Faulty, Size) ->
    receive
        {token, 0} -> Next ! {stop, Size}, pass(Next, Faulty, Size);
        {token, K} when Faulty, K > 20 -> Next ! {token, K}, pass(Next, Faulty, Size);
        {token, K} -> Next ! {token, K - 1}, pass(Next, Faulty, Size);
        {stop, 1} -> ok;
        {stop, Left} -> Next ! {stop, Left - 1}, ok
    end.
