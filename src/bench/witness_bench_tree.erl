-module(witness_bench_tree).
-moduledoc """
A tree of processes for each batch, like services that send requests to others for each request. A process passes each
request on to its children, and answers when all of them have answered. It spawns them at its first request, and each
process ends with its last response, so trees grow from the root and shrink from the leaves.

```
master                      root                      children
  |-- {M, {chunk, T, ..}} --->|                          |
  |                           | forks them (first time)  |
  |                           |-- {R, {chunk, T', ..}} ->|        T' = {{Id, Child}, Number, Requests}
  |                           |<- {C, {ack, T', ..}} ----|        ... from each of them
  |<-- {R, {ack, T, ..}} -----|
```
""".
-behaviour(witness_bench_member).

-export([create/4, size/1, inner/2, terms/0, functions/0]).
-export([start/7, plain/7]).

%% parent, triples, and for each number that waits: how many children, and the answer
-record(s, {parent, id, requests, depth, branch, rounds, setup, children = [], waiting = #{}}).

-doc false.
create(Id, Requests, Setup = #{depth := Depth, branch := Branch, rounds := Rounds, share := Share, seed := Seed}, _) ->
    Given = #{share => Share, seed => Seed},
    {spawn(?MODULE, witness_bench_member:begin_at({Id, Setup}), [self(), Id, Requests, Depth, Branch, Rounds, Given]),
     Requests, 1}.

-doc false.
size(#{depth := Depth, branch := Branch}) -> size(Depth, Branch).

size(0, _) -> 1;
size(Depth, Branch) -> 1 + Branch * size(Depth - 1, Branch).

%% A request and a response on each edge.
-doc false.
inner(Requests, #{depth := Depth, branch := Branch}) -> 2 * Requests * (size(Depth, Branch) - 1).

-doc false.
terms() -> false.

-doc false.
functions() -> [{start, {?MODULE, start, 7}}, {plain, {?MODULE, plain, 7}}].

-doc "A process of a tree, with so many levels below it.".
-spec start(Parent :: pid(), Id :: term(), Requests :: pos_integer(), Depth :: non_neg_integer(),
            Branch :: pos_integer(), Rounds :: non_neg_integer(), #{share := number(), seed := non_neg_integer()}) -> ok.
start(Parent, Id, Requests, Depth, Branch, Rounds, Given) ->
    loop(#s{parent = Parent, id = Id, requests = Requests, depth = Depth, branch = Branch, rounds = Rounds,
            setup = Given}).

-doc "A process of a tree that is not monitored.".
-spec plain(Parent :: pid(), Id :: term(), Requests :: pos_integer(), Depth :: non_neg_integer(),
            Branch :: pos_integer(), Rounds :: non_neg_integer(), #{share := number(), seed := non_neg_integer()}) -> ok.
plain(Parent, Id, Requests, Depth, Branch, Rounds, Given) ->
    start(Parent, Id, Requests, Depth, Branch, Rounds, Given).

%% Children answer in the order of requests, so a number is complete when the previous ones are.
loop(S = #s{parent = Parent, id = Id, requests = Requests, depth = Depth, rounds = Rounds, waiting = Waiting}) ->
    receive
        {Parent, {chunk, {Id, Number, Requests}, Stamp, Payload}} when Depth =:= 0 ->
            ok = witness_bench_work:spin(Rounds),
            answer(Number, Stamp, Payload, S);
        {Parent, {chunk, {Id, Number, Requests}, Stamp, Payload}} ->
            ok = witness_bench_work:spin(Rounds),
            Grown = #s{children = Children} = add_children(S),
            [Child ! {self(), {chunk, {Of, Number, Requests}, undefined, Payload}} || {Child, Of} <- Children],
            loop(Grown#s{waiting = Waiting#{Number => {length(Children), Stamp}}});
        {_, {_, {_, Number, Requests}, _, Payload}} ->
            case Waiting of
                #{Number := {1, Stamp}} -> answer(Number, Stamp, Payload, S#s{waiting = maps:remove(Number, Waiting)});
                #{Number := {More, Stamp}} -> loop(S#s{waiting = Waiting#{Number := {More - 1, Stamp}}})
            end
    end.

add_children(S = #s{children = [], id = Id, requests = Requests, depth = Depth, branch = Branch, rounds = Rounds,
             setup = Given}) ->
    S#s{children = [{spawn(?MODULE, witness_bench_member:begin_at({{Id, I}, Given}),
                           [self(), {Id, I}, Requests, Depth - 1, Branch, Rounds, Given]), {Id, I}}
                    || I <- lists:seq(1, Branch)]};
add_children(S) -> S.

answer(Requests, Stamp, Payload, #s{parent = Parent, id = Id, requests = Requests}) ->
    Parent ! {self(), {'end', {Id, Requests, Requests}, Stamp, Payload}},
    ok;
answer(Number, Stamp, Payload, S = #s{parent = Parent, id = Id, requests = Requests}) ->
    Parent ! {self(), {ack, {Id, Number, Requests}, Stamp, Payload}},
    loop(S).
