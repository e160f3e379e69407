-module(witness_sys_election).
-moduledoc """
Chang and Roberts's election in a ring: all nodes start at once with their number, pass on what is greater and drop what
is smaller; the one that gets its own number back is the leader and tells the others. In the faulty ring the node 2 takes
a greater number for its own.
""".
-export([main/2, node/3]).

-spec main([pos_integer()], ok | faulty) -> ok.
main(Ids, How) ->
    Nodes = [First | Rest] = [spawn(?MODULE, node, [Id, self(), How]) || Id <- Ids],
    _ = [Node ! {neighbour, Next} || {Node, Next} <- lists:zip(Nodes, Rest ++ [First])],
    _ = [receive {ready, Node} -> ok end || Node <- Nodes],
    _ = [Node ! elect || Node <- Nodes],
    _ = [receive {ended, Node} -> ok end || Node <- Nodes],
    _ = [Node ! stop || Node <- Nodes],
    ok.

-spec node(pos_integer(), pid(), ok | faulty) -> ok.
node(Id, Root, How) ->
    receive
        {neighbour, Next} ->
            Root ! {ready, self()},
            receive elect -> Next ! {candidate, Id} end,
            elect(Id, Next, How),
            Root ! {ended, self()},
            receive stop -> ok end
    end.

elect(Id, Next, How) ->
    receive
        {candidate, Id} -> Next ! {leader, Id}, receive {leader, Id} -> ok end;
        {candidate, Other} when Other > Id -> Next ! {candidate, Other}, elect(Id, Next, How);
        {candidate, _} when Id =:= 2, How =:= faulty -> Next ! {candidate, Id}, elect(Id, Next, How);
        {candidate, _} -> elect(Id, Next, How);
        {leader, Leader} -> Next ! {leader, Leader}
    end.
