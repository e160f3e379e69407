-module(witness_bench_tasks).
-moduledoc """
An embarrassingly parallel load: each member is one task, which computes by itself and sends its result. Its batch is
a single request, with the work of the whole batch.

```
master                                              task
  |-- {M, {chunk, {Id, 1, 1}, Stamp, Payload}} ------>|
  |<-- {T, {'end', {Id, 1, 1}, Stamp, Payload}} ------|
                                                      * exit normal
```
""".
-behaviour(witness_bench_member).

-export([create/4, size/1, inner/2, terms/0, functions/0]).
-export([start/4, plain/4]).

-doc false.
create(Id, Units, Setup = #{rounds := Rounds}, _) ->
    {spawn(?MODULE, witness_bench_member:begin_at({Id, Setup}), [self(), Id, Units, Rounds]), 1, 1}.

-doc false.
size(_) -> 1.

-doc false.
inner(_, _) -> 0.

-doc false.
terms() -> false.

-doc false.
functions() -> [{start, {?MODULE, start, 4}}, {plain, {?MODULE, plain, 4}}].

-doc "A task.".
-spec start(Master :: pid(), Id :: pos_integer(), Units :: pos_integer(), Rounds :: non_neg_integer()) -> ok.
start(Master, Id, Units, Rounds) ->
    receive
        {Master, {chunk, {Id, 1, 1} = Triple, Stamp, Payload}} ->
            ok = witness_bench_work:spin(Units * Rounds),
            Master ! {self(), {'end', Triple, Stamp, Payload}},
            ok
    end.

-doc "A task that is not monitored.".
-spec plain(Master :: pid(), Id :: pos_integer(), Units :: pos_integer(), Rounds :: non_neg_integer()) -> ok.
plain(Master, Id, Units, Rounds) -> start(Master, Id, Units, Rounds).
