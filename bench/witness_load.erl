-module(witness_load).
-moduledoc """
Loads in which every message is numbered, so that a monitor can tell whether its trace is
complete and in order (`m:witness_load_monitor`).

- `flat/4`: a master and its workers, with a bound on how many are alive at a time;
- `paced/5`: the same, but workers start at a steady rate, and the times of their responses are noted;
- `tree/5`: nested spawns; each process serves its children before it becomes a client;
- `chains/4`: processes that each spawn the next and end at once, the hardest load for handovers and for the
  pool of tracers.

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
`{done, Root, Messages, Microseconds}`: what the system did and how long that took.
""".

-export([flat/4, paced/5, tree/5, chains/4, node/4, client/3, link/3, response/1]).

-doc "A master that gives `Workers` workers, `Alive` of them at a time, `Requests` requests each.".
-spec flat(pid(), non_neg_integer(), pos_integer(), non_neg_integer()) -> ok.
flat(Collector, Workers, Alive, Requests) ->
    timed(Collector, fun() ->
        Now = min(Workers, Alive),
        lists:foreach(fun(_) -> child(0, 0, Requests) end, lists:seq(1, Now)),
        serve(Now, Workers - Now, fun() -> child(0, 0, Requests) end, #{}, 0)
    end).

-doc """
A master that starts `PerSecond` workers a second and gives them `Requests` requests each. Each response is timed, and
counted among those of its length (`response/1`).
""".
-spec paced(pid(), non_neg_integer(), pos_integer(), pos_integer(), counters:counters_ref()) -> ok.
paced(Collector, Workers, PerSecond, Requests, Responses) ->
    timed(Collector, fun() ->
        Begin = fun() -> ask(spawn(?MODULE, client, [self(), Requests, Responses])) end,
        pace(0, Workers, 1_000_000_000 / PerSecond, erlang:monotonic_time(nanosecond), Begin, 0, #{}, 0)
    end).

%% The plan is absolute: a worker that is late is started at once.
pace(Workers, Workers, _, _, _, Alive, Sent, Messages) ->
    serve(Alive, 0, undefined, Sent, Messages);
pace(Begun, Workers, Gap, Start, Begin, Alive, Sent, Messages) ->
    Early = round(Start + Begun * Gap) - erlang:monotonic_time(nanosecond),
    receive
        {msg, Child, _, ping} when Early > 0 ->
            pace(Begun, Workers, Gap, Start, Begin, Alive, answered(Child, Sent), Messages + 1);
        {msg, Child, _, done} when Early > 0 ->
            pace(Begun, Workers, Gap, Start, Begin, Alive - 1, maps:remove(Child, Sent), Messages + 1)
    after max(0, Early) div 1_000_000 ->
        Begin(),
        pace(Begun + 1, Workers, Gap, Start, Begin, Alive + 1, Sent, Messages)
    end.

-doc "The counter, one of 500, for a response after so many nanoseconds, and the nanoseconds for a counter.".
-spec response({nanoseconds, pos_integer()} | {counter, pos_integer()}) -> pos_integer().
response({nanoseconds, T}) -> max(1, min(500, round(12 * math:log2(max(1, T)))));
response({counter, C}) -> round(math:pow(2, C / 12)).

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

-doc "A worker that times its responses.".
-spec client(pid(), pos_integer(), counters:counters_ref()) -> ok.
client(Parent, Requests, Responses) ->
    receive {msg, Parent, 1, go} -> ok end,
    request(Parent, 1, Requests, Responses).

request(Parent, N, Requests, _) when N > Requests ->
    Parent ! {msg, self(), N, done},
    ok;
request(Parent, N, Requests, Responses) ->
    Start = erlang:monotonic_time(),
    Parent ! {msg, self(), N, ping},
    Next = N + 1,
    receive {msg, Parent, Next, pong} -> ok end,
    Time = erlang:convert_time_unit(erlang:monotonic_time() - Start, native, nanosecond),
    counters:add(Responses, response({nanoseconds, Time}), 1),
    request(Parent, Next, Requests, Responses).

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
    ask(spawn(?MODULE, node, [self(), Depth, Branch, Requests])).

ask(Child) -> Child ! {msg, self(), 1, go}.

answered(Child, Sent) ->
    N = maps:get(Child, Sent, 1) + 1,
    Child ! {msg, self(), N, pong},
    Sent#{Child => N}.

serve(0, 0, _, _, Messages) -> Messages;
serve(Alive, Waiting, Spawn, Sent, Messages) ->
    receive
        {msg, Child, _, ping} ->
            serve(Alive, Waiting, Spawn, answered(Child, Sent), Messages + 1);
        {msg, Child, _, done} when Waiting > 0 ->
            Spawn(),
            serve(Alive, Waiting - 1, Spawn, maps:remove(Child, Sent), Messages + 1);
        {msg, Child, _, done} ->
            serve(Alive - 1, 0, Spawn, maps:remove(Child, Sent), Messages + 1)
    end.
