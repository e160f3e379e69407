-module(witness_load).
-moduledoc """
Loads in which every message is numbered, so that a monitor can tell whether its trace is
complete and in order (`m:witness_load_monitor`).

- `flat/4`: a master and its workers, of which only so many are alive at a time;
- `tree/5`: nested spawns; each process serves its children before it becomes a client;
- `chains/4`: processes that each spawn the next and end at once, which handovers and the
  pool of tracers find hardest.

A worker asks its parent `Requests` times and ends:

```
worker                       parent
  | <-- {msg, P, 1, go} -------|
  |--- {msg, W, 1, ping} ----->|
  | <-- {msg, P, 2, pong} -----|      ... Requests times
  |--- {msg, W, N, done} ----->|
  * exit normal
```

The number counts the messages from one process to another. The collector gets
`{done, Root, Messages, Microseconds}`: what the system did and how long that took it.
""".

-export([flat/4, tree/5, chains/4, node/4, link/3]).

-doc "A master that gives `Workers` workers, `Alive` of them at a time, `Requests` requests each.".
-spec flat(pid(), non_neg_integer(), pos_integer(), non_neg_integer()) -> ok.
flat(Collector, Workers, Alive, Requests) ->
    timed(Collector, fun() ->
        Now = min(Workers, Alive),
        lists:foreach(fun(_) -> child(0, 0, Requests) end, lists:seq(1, Now)),
        serve(Now, Workers - Now, fun() -> child(0, 0, Requests) end, #{}, 0)
    end).

-doc "`Rounds` times `Branch` children, each the root of a tree of this depth.".
-spec tree(pid(), pos_integer(), non_neg_integer(), pos_integer(), non_neg_integer()) -> ok.
tree(Collector, Rounds, Depth, Branch, Requests) ->
    timed(Collector, fun() ->
        lists:sum([children(Depth, Branch, Requests) || _ <- lists:seq(1, Rounds)])
    end).

-doc "`Chains` chains of `Length` processes that send themselves `Ticks` messages each.".
-spec chains(pid(), pos_integer(), non_neg_integer(), non_neg_integer()) -> ok.
chains(Collector, Chains, Length, Ticks) ->
    timed(Collector, fun() ->
        lists:foreach(fun(_) -> spawn(?MODULE, link, [self(), Length, Ticks]) end, lists:seq(1, Chains)),
        lists:foreach(fun(_) -> receive chain_ended -> ok end end, lists:seq(1, Chains)),
        Chains
    end).

-doc "A process of a chain.".
-spec link(pid(), non_neg_integer(), non_neg_integer()) -> term().
link(Root, Length, Ticks) ->
    lists:foreach(fun(N) -> self() ! {tick, N}, receive {tick, N} -> ok end end, lists:seq(1, Ticks)),
    case Length of
        0 -> Root ! chain_ended;
        _ -> spawn(?MODULE, link, [Root, Length - 1, Ticks])
    end.

timed(Collector, Work) ->
    Start = erlang:monotonic_time(microsecond),
    Messages = Work(),
    Collector ! {done, self(), Messages, erlang:monotonic_time(microsecond) - Start},
    ok.

-doc "A process of a tree: a worker, once its own children have ended.".
-spec node(pid(), non_neg_integer(), non_neg_integer(), non_neg_integer()) -> ok.
node(Parent, Depth, Branch, Requests) ->
    receive {msg, Parent, 1, go} -> ok end,
    Depth > 0 andalso children(Depth - 1, Branch, Requests),
    work(Parent, 1, Requests).

work(Parent, N, Requests) when N > Requests ->
    Parent ! {msg, self(), N, done},
    ok;
work(Parent, N, Requests) ->
    Parent ! {msg, self(), N, ping},
    Next = N + 1,
    receive {msg, Parent, Next, pong} -> work(Parent, Next, Requests) end.

children(Depth, Branch, Requests) ->
    lists:foreach(fun(_) -> child(Depth, Branch, Requests) end, lists:seq(1, Branch)),
    serve(Branch, 0, undefined, #{}, 0).

child(Depth, Branch, Requests) ->
    Child = spawn(?MODULE, node, [self(), Depth, Branch, Requests]),
    Child ! {msg, self(), 1, go}.

serve(0, 0, _, _, Messages) -> Messages;
serve(Alive, Waiting, Spawn, Sent, Messages) ->
    receive
        {msg, Child, _, ping} ->
            N = maps:get(Child, Sent, 1) + 1,
            Child ! {msg, self(), N, pong},
            serve(Alive, Waiting, Spawn, Sent#{Child => N}, Messages + 1);
        {msg, Child, _, done} when Waiting > 0 ->
            Spawn(),
            serve(Alive, Waiting - 1, Spawn, maps:remove(Child, Sent), Messages + 1);
        {msg, Child, _, done} ->
            serve(Alive - 1, 0, Spawn, maps:remove(Child, Sent), Messages + 1)
    end.
