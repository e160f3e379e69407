-module(witness_bench_peers).
-moduledoc """
Peer to peer: a group of processes, each of which sends requests to all the others and answers theirs. The master creates
groups; it takes no part in the messages within a group.

A batch is the total of a peer's requests, divided among the others, at least one request each. A peer has one request with
each of the others at a time, and sends the next one when it takes the response. No peer may end while another one
could still send a request. So a peer ends when it has taken all its own last responses and given its last responses to all the
others.

```
master                           peer                          each other peer
  |-- {M, {join, {Id, 1, 1}, Peers}} ->|                             |
  |                                |-- {P, {chunk, {Id, 1, N}, ..}} ->|
  |                                |<- {Q, {ack, {Id, 1, N}, ..}} ----|     ...
  |                                |<- {Q, {chunk, {Id, 1, N'}, ..}} -|     ...
  |<- {P, {'end', {Id, 1, 1}, ..}} ---|
                                   * exit normal
```

The peers measure the response times.
""".
-behaviour(witness_bench_member).

-export([create/4, size/1, inner/2, terms/0, functions/0]).
-export([start/7, plain/7]).

-record(s, {master, id, rounds, asked, answering, asking, local}).

-doc false.
create(Id, Requests, Setup = #{group := Group, rounds := Rounds, payload := Payload}, Measures) ->
    Peers = [spawn(?MODULE, witness_bench_member:begin_at({{Id, I}, Setup}),
                   [self(), Id, Requests, Group, Rounds, Payload, Measures]) || I <- lists:seq(1, Group)],
    [Peer ! {self(), {join, {Id, 1, 1}, Peers}} || Peer <- Peers],
    ok = witness_bench_response:messages(Measures, Group),
    {none, 0, Group}.

-doc false.
size(#{group := Group}) -> Group.

-doc false.
inner(_, _) -> 0.

-doc false.
terms() -> false.

-doc false.
functions() -> [{start, {?MODULE, start, 7}}, {plain, {?MODULE, plain, 7}}].

-doc "A peer.".
-spec start(Master :: pid(), Id :: pos_integer(), Requests :: pos_integer(), Group :: pos_integer(),
            Rounds :: non_neg_integer(), Payload :: binary(), witness_bench_response:measures()) -> ok.
start(Master, Id, Requests, Group, Rounds, Payload, Measures) ->
    %% Another peer may have been faster than the master: its request waits.
    Others = receive {Master, {join, {Id, 1, 1}, Peers}} -> lists:enumerate(lists:delete(self(), Peers)) end,
    Each = Requests div (Group - 1),
    Asked = #{Peer => max(1, if I =< Requests rem (Group - 1) -> Each + 1; true -> Each end) || {I, Peer} <- Others},
    S = #s{master = Master, id = Id, rounds = Rounds, asked = Asked, answering = Group - 1, asking = Group - 1,
           local = witness_bench_response:open(Measures)},
    loop(lists:foldl(fun({_, Peer}, Sent) -> ask(Peer, 1, Payload, Sent) end, S, Others)).

-doc "A peer that is not monitored.".
-spec plain(Master :: pid(), Id :: pos_integer(), Requests :: pos_integer(), Group :: pos_integer(),
            Rounds :: non_neg_integer(), Payload :: binary(), witness_bench_response:measures()) -> ok.
plain(Master, Id, Requests, Group, Rounds, Payload, Measures) ->
    start(Master, Id, Requests, Group, Rounds, Payload, Measures).

ask(Peer, Number, Payload, S = #s{id = Id, asked = Asked, local = Local}) ->
    {Stamp, Started} = witness_bench_response:start(Local),
    Peer ! {self(), {chunk, {Id, Number, map_get(Peer, Asked)}, Stamp, Payload}},
    S#s{local = Started}.

loop(#s{master = Master, id = Id, answering = 0, asking = 0, local = Local}) ->
    ok = witness_bench_response:close(Local),
    Master ! {self(), {'end', {Id, 1, 1}, undefined, <<>>}},
    ok;
loop(S = #s{rounds = Rounds, answering = Answering, asking = Asking, local = Local}) ->
    receive
        {Peer, {chunk, {_, Requests, Requests} = Triple, Stamp, Payload}} ->
            ok = witness_bench_work:spin(Rounds),
            Peer ! {self(), {'end', Triple, Stamp, Payload}},
            loop(S#s{answering = Answering - 1});
        {Peer, {chunk, Triple, Stamp, Payload}} ->
            ok = witness_bench_work:spin(Rounds),
            Peer ! {self(), {ack, Triple, Stamp, Payload}},
            loop(S);
        {_, {'end', _, Stamp, _}} ->
            loop(S#s{asking = Asking - 1, local = witness_bench_response:stop(Stamp, Local)});
        {Peer, {ack, {_, Number, _}, Stamp, Payload}} ->
            loop(ask(Peer, Number + 1, Payload, S#s{local = witness_bench_response:stop(Stamp, Local)}))
    end.
