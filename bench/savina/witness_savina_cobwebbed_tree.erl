-module(witness_savina_cobwebbed_tree).
-moduledoc """
UnbalancedCobwebbedTree: a tree of processes grows to `nodes` nodes, or as close below as full sets of
`children` allow; then it is traversed, and ended from the root, the benchmark's main process.

A new node works, asks the root whether it gets children, and waits for the answer. While the tree may grow, the root
tosses a coin (seed 2) and draws how much work the children have when they are traversed, `mean` and `deviation`
units, and whether one of them is urgent. When it may not grow, the root has the tree traversed, then ended, once; a
node passes both on to its children.

Differences from Savina, which draws with Java's generator and where the answer no is silence:

- the root always answers, so that no node is ended while children for it are on their way; the shape of the
  tree depends on the schedule, the number of nodes does not;
- the coin is the highest of the generator's 16 bits; the normal distribution is approximated by a sum of twelve
  numbers;
- Savina's node works for 100 units before it asks, and each unit is 40,000 turns of an empty loop, which Java's
  compiler may leave out; here a unit is `turns` steps (`witness_savina_random:busy_wait/1`), one in all
  parameter sets;
- Savina's nodes print; ours count. The traversal that prefers urgent nodes is never sent, in Savina or here.

Verified: the tree has as many nodes as the root has granted, no further set of children would fit (or it has
died out, every node having been denied), and its height is the one reported to the root; each node was traversed once;
each child that got children reported so to its parent.
""".
-behaviour(witness_savina).

-export([sets/0, run/1]).
-export([node/5]).

-import(witness_savina_processes, [start/3, gather/3, verify/3]).

%% Units of work before a node asks; about how many grants in a hundred have an urgent child.
-define(FIRST_WORK, 100).
-define(URGENT, 50).

%% size: nodes granted; asked: nodes that have asked; left: children of the root that are alive; found: nodes,
%% nodes that were traversed, sets of children, and height, as the nodes say (the root is the first of them).
-record(root, {size, asked = 0, height = 2, random, children, left, growth = going_on, found = {1, 1, 0, 1}}).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{nodes => 200_000, children => 10, mean => 500, deviation => 100, turns => 1},
      somns => #{nodes => 100_000, children => 10, mean => 500, deviation => 100, turns => 1},
      small => #{nodes => 100, children => 10, mean => 50, deviation => 10, turns => 1}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(Parameters = #{nodes := Most, children := N}) ->
    N < Most orelse exit(too_few_nodes),
    {Work, R} = normal(2, Parameters),
    Children = grow(N, 2, Work, Parameters, self()),
    S = #root{size = N + 1, random = R, children = Children, left = N},
    #root{size = Size, height = Height, growth = Growth, found = Found} = root(S, Parameters),
    {Nodes, Traversed, Grants, Deepest} = Found,
    verify(nodes, Size, Nodes),
    verify(full, true, Size =< Most andalso (Size + N > Most orelse Growth =:= died_out)),
    verify(traversed, Size, Traversed),
    verify(height, Height, Deepest),
    verify(grants, (Size - 1) div N - 1, Grants),
    #{nodes => Nodes, height => Height}.

grow(N, Height, Work, Parameters, Root) ->
    Children = [start(?MODULE, node, [self(), Root, Height, Work, Parameters]) || _ <- lists:seq(1, N)],
    _ = [Child ! try_children || Child <- Children],
    Children.

%% Until all its children have ended.
root(S = #root{left = 0}, _) -> S;
root(S = #root{left = Left, found = Found, height = Height}, Parameters) ->
    receive
        {ask, Node, Depth} -> root(answer(Node, Depth, S#root{height = max(Height, Depth)}, Parameters), Parameters);
        granted -> root(S#root{found = add({0, 0, 1, 0}, Found)}, Parameters);
        {subtree, Counts} -> root(S#root{found = add(Counts, Found)}, Parameters);
        {'DOWN', _, process, _, normal} -> root(S#root{left = Left - 1}, Parameters);
        {'DOWN', _, process, _, Reason} -> exit(Reason)
    end.

%% It is full where no further set of children fits, and may die out before.
answer(Node, Depth, S0, Parameters) ->
    S = grant(Node, Depth, S0#root{asked = S0#root.asked + 1}, Parameters),
    case S of
        #root{growth = going_on, asked = All, size = All} -> ended(died_out, S);
        #root{} -> S
    end.

grant(Node, Depth, S = #root{size = Size, random = R0}, Parameters = #{nodes := Most, children := N})
  when Size + N =< Most ->
    R1 = witness_savina_random:next(R0),
    case R1 bsr 15 of
        1 ->
            {Work, R2} = normal(R1, Parameters),
            {Urgent, R} = urgent(witness_savina_random:next(R2), N),
            Node ! {children, Urgent, Work},
            S#root{size = Size + N, height = max(S#root.height, Depth + 1), random = R};
        0 ->
            Node ! none,
            S#root{random = R1}
    end;
grant(Node, _, S = #root{growth = Growth}, _) ->
    Node ! none,
    case Growth of
        going_on -> ended(full, S);
        full -> S
    end.

ended(Why, S = #root{children = Children}) ->
    _ = [Child ! Message || Message <- [traverse, terminate], Child <- Children],
    S#root{growth = Why}.

urgent(R, _) when R rem 100 > ?URGENT -> {none, R};
urgent(R0, N) ->
    R = witness_savina_random:next(R0),
    {R rem N, R}.

%% The sum of twelve numbers between 0 and 1 has the mean 6 and the deviation 1.
normal(R0, Parameters = #{mean := Mean, deviation := Deviation}) ->
    {Sum, R} = lists:foldl(fun(_, {S, R1}) ->
        R2 = witness_savina_random:next(R1),
        {S + R2, R2}
    end, {0, R0}, lists:seq(1, 12)),
    case Mean + Deviation * (Sum - 6 * 65536) div 65536 of
        Work when Work > 0 -> {Work, R};
        _ -> normal(R, Parameters)
    end.

add({N1, T1, G1, H1}, {N2, T2, G2, H2}) -> {N1 + N2, T1 + T2, G1 + G2, max(H1, H2)}.

-doc false.
node(Parent, Root, Height, Work, Parameters = #{turns := Turns, children := N}) ->
    receive try_children -> ok end,
    _ = witness_savina_random:busy_wait(?FIRST_WORK * Turns),
    Root ! {ask, self(), Height},
    Children = receive
        none -> [];
        {children, _Urgent, Theirs} ->
            Parent ! granted,
            grow(N, Height + 1, Theirs, Parameters, Root)
    end,
    live(Parent, Work * Turns, Children, {1, 0, 0, Height}).

%% A child's `granted' may come at any time until its end.
live(Parent, Work, Children, Counts) ->
    receive
        granted ->
            live(Parent, Work, Children, add({0, 0, 1, 0}, Counts));
        traverse ->
            _ = witness_savina_random:busy_wait(Work),
            _ = [Child ! traverse || Child <- Children],
            live(Parent, Work, Children, add({0, 1, 0, 0}, Counts));
        terminate ->
            _ = [Child ! terminate || Child <- Children],
            Parent ! {subtree, gather(length(Children), fun count/2, Counts)}
    end.

count(granted, Counts) -> add({0, 0, 1, 0}, Counts);
count({subtree, Theirs}, Counts) -> add(Theirs, Counts).
