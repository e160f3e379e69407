-module(witness_bench_worker).
-moduledoc """
A worker of the master-worker model: it answers each request at once, or after the model's work, and ends on the
master's request (BenchCRV text, section 3.1; RIARC text, C.3).

```
master                                              worker
  |-- {M, {chunk, {Id, 1, N}, Stamp, Payload}} ------>|
  |<-- {W, {ack, {Id, 1, N}, Stamp, Payload}} --------|      ...
  |-- {M, {chunk, {Id, N, N}, Stamp, Payload}} ------>|
  |<-- {W, {'end', {Id, N, N}, Stamp, Payload}} ------|
  |-- {M, {term, {Id, N, N}}} ----------------------->|
                                                      * exit normal
```
""".
-behaviour(witness_bench_member).

-export([create/4, size/1, inner/2, terms/0, functions/0]).
-export([start/5, plain/5]).

-doc false.
create(Id, Requests, Setup = #{rounds := Rounds, failures := Failures, node := Node}, _) ->
    Args = [self(), Id, Requests, Rounds, Failures],
    Function = witness_bench_member:begin_at({Id, Setup}),
    To = case {Node =:= node(), Failures} of
        {true, none} -> spawn(?MODULE, Function, Args);
        {true, _} -> element(1, spawn_monitor(?MODULE, Function, Args));
        {false, _} -> spawn(Node, ?MODULE, Function, Args)
    end,
    {To, Requests, 1}.

-doc false.
size(_) -> 1.

-doc false.
inner(_, _) -> 0.

-doc false.
terms() -> true.

-doc false.
functions() -> [{start, {?MODULE, start, 5}}, {plain, {?MODULE, plain, 5}}].

-doc "A worker.".
-spec start(Master :: pid(), Id :: pos_integer(), Requests :: pos_integer(), Rounds :: non_neg_integer(),
            witness_bench_member:failures()) -> ok.
start(Master, Id, Requests, Rounds, Failures) ->
    answer(Master, Id, Requests, Rounds, Failures, witness_bench_member:crash_at(Id, Requests, Failures)).

-doc "A worker that is not monitored.".
-spec plain(Master :: pid(), Id :: pos_integer(), Requests :: pos_integer(), Rounds :: non_neg_integer(),
            witness_bench_member:failures()) -> ok.
plain(Master, Id, Requests, Rounds, Failures) ->
    start(Master, Id, Requests, Rounds, Failures).

answer(Master, Id, Requests, Rounds, Failures, CrashAt) ->
    receive
        {Master, {chunk, {Id, Number, Requests}, _, _}} when Number >= CrashAt ->
            exit(crash);
        {Master, {chunk, {Id, Number, Requests} = Triple, Stamp, Payload}} ->
            ok = witness_bench_work:spin(Rounds),
            case Number of
                Requests -> Master ! {self(), {'end', Triple, Stamp, Payload}};
                _ -> witness_bench_member:is_lost(ack, Triple, Failures)
                         orelse (Master ! {self(), {ack, Triple, Stamp, Payload}})
            end,
            answer(Master, Id, Requests, Rounds, Failures, CrashAt);
        {Master, {term, {Id, Requests, Requests}}} ->
            ok
    end.
