-module(witness_savina_radix_sort).
-moduledoc """
A source sends `values` numbers below `limit`, drawn from `seed`, through one stage for each bit, the lowest
first, to the validator, the benchmark's main process. A stage forwards at once what does not have its bit, and
the others, in their order, when it has seen all. `limit` is a power of two: 60 stages for Savina's 2^60, 16 for
SOMns's 65,536. Savina's generator gives 16 bits, so in the other stages no number has the bit.

Verified: what arrives is in order, and is as many numbers with the same sum as were drawn.
""".
-behaviour(witness_savina).

-export([sets/0, run/1]).
-export([source/4, stage/3]).

-import(witness_savina_processes, [start/3, await/1, verify/3]).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{values => 100_000, limit => 1 bsl 60, seed => 2_048},
      somns => #{values => 50_000, limit => 65_536, seed => 74_755},
      small => #{values => 40, limit => 1 bsl 8, seed => 2_048}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{values := N, limit := Limit, seed := Seed}) ->
    Limit > 1 andalso Limit band (Limit - 1) =:= 0 orelse exit({no_power_of_two, Limit}),
    {First, Stages} = stages(N, Limit div 2, self(), 0),
    _ = start(?MODULE, source, [First, N, Limit, Seed]),
    Sum = validate(N, 0, 0),
    await(Stages + 1),
    verify(sum, lists:sum(drawn(N, Limit, Seed)), Sum),
    verify(pending, none, receive {value, More} -> More after 0 -> none end),
    #{stages => Stages, sum => Sum}.

%% From the last to the first.
stages(_, 0, Next, Count) -> {Next, Count};
stages(N, Bit, Next, Count) -> stages(N, Bit div 2, start(?MODULE, stage, [N, Bit, Next]), Count + 1).

validate(0, _, Sum) -> Sum;
validate(Left, Last, Sum) ->
    receive
        {value, Value} ->
            verify(order, max(Last, Value), Value),
            validate(Left - 1, Value, Sum + Value)
    end.

drawn(0, _, _) -> [];
drawn(Left, Limit, R0) ->
    R = witness_savina_random:next(R0),
    [R rem Limit | drawn(Left - 1, Limit, R)].

-doc false.
source(_, 0, _, _) -> ok;
source(First, Left, Limit, R0) ->
    R = witness_savina_random:next(R0),
    First ! {value, R rem Limit},
    source(First, Left - 1, Limit, R).

-doc false.
stage(N, Bit, Next) -> stage(N, Bit, Next, []).

stage(0, _, Next, Kept) ->
    lists:foreach(fun(Message) -> Next ! Message end, lists:reverse(Kept));
stage(Left, Bit, Next, Kept) ->
    receive
        {value, Value} = Message when Value band Bit =:= 0 ->
            Next ! Message,
            stage(Left - 1, Bit, Next, Kept);
        {value, _} = Message ->
            stage(Left - 1, Bit, Next, [Message | Kept])
    end.
