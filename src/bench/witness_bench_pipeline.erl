-module(witness_bench_pipeline).
-moduledoc """
A chain of stages for each batch: every request goes through all of them, and the last one answers the master. A stage
ends when it has passed on the last request.

```
master                      stage 1         ...         stage S
  |-- {M, {chunk, T, ..}} --->|                           |
  |                           |-- {P1, {chunk, T, ..}} -->|
  |<----------------------- {PS, {ack | 'end', T, ..}} ---|        T = {Id, Number, Requests}
```
""".
-behaviour(witness_bench_member).

-export([create/4, size/1, inner/2, terms/0, functions/0]).
-export([start/5, plain/5]).

%% The last stage first, so that each one knows the next.
-doc false.
create(Id, Requests, Setup = #{stages := Stages}, _) ->
    {stages(Stages, self(), Id, Requests, Setup#{last => Stages}), Requests, 1}.

stages(0, First, _, _, _) -> First;
stages(Stage, Next, Id, Requests, Setup = #{last := Last, rounds := Rounds}) ->
    Role = if Stage =:= Last -> last; true -> inner end,
    P = spawn(?MODULE, witness_bench_member:begin_at({{Id, Stage}, Setup}), [Next, Id, Requests, Role, Rounds]),
    stages(Stage - 1, P, Id, Requests, Setup).

-doc false.
size(#{stages := Stages}) -> Stages.

-doc false.
inner(Requests, #{stages := Stages}) -> Requests * (Stages - 1).

-doc false.
terms() -> false.

-doc false.
functions() -> [{start, {?MODULE, start, 5}}, {plain, {?MODULE, plain, 5}}].

-doc "A stage; after the last one the next process is the master.".
-spec start(Next :: pid(), Id :: pos_integer(), Requests :: pos_integer(), inner | last,
            Rounds :: non_neg_integer()) -> ok.
start(Next, Id, Requests, Role, Rounds) ->
    receive
        {_, {chunk, {Id, Number, Requests} = Triple, Stamp, Payload}} ->
            ok = witness_bench_work:spin(Rounds),
            Next ! {self(), {kind(Role, Number, Requests), Triple, Stamp, Payload}},
            if Number =:= Requests -> ok;
               true -> start(Next, Id, Requests, Role, Rounds)
            end
    end.

kind(inner, _, _) -> chunk;
kind(last, Requests, Requests) -> 'end';
kind(last, _, _) -> ack.

-doc "A stage that is not monitored.".
-spec plain(Next :: pid(), Id :: pos_integer(), Requests :: pos_integer(), inner | last,
            Rounds :: non_neg_integer()) -> ok.
plain(Next, Id, Requests, Role, Rounds) -> start(Next, Id, Requests, Role, Rounds).
