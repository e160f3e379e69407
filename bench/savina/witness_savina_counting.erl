-module(witness_savina_counting).
-moduledoc """
A producer sends `messages` increments to a counter, then asks it for the sum.

Verified: the counter has counted `messages`.
""".
-behaviour(witness_savina).

-export([sets/0, run/1]).
-export([producer/3, counter/1]).

-import(witness_savina_processes, [start/3, await/1, verify/3]).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() -> #{savina => #{messages => 1_000_000}, somns => #{messages => 200_000}, small => #{messages => 200}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{messages := N}) ->
    Counter = start(?MODULE, counter, [0]),
    _ = start(?MODULE, producer, [self(), Counter, N]),
    receive {count, Count} -> verify(count, N, Count) end,
    await(2),
    #{count => N}.

-doc false.
producer(Main, Counter, N) ->
    increment(Counter, N),
    Counter ! {retrieve, self()},
    receive {count, _} = Count -> Main ! Count end.

increment(_, 0) -> ok;
increment(Counter, N) ->
    Counter ! increment,
    increment(Counter, N - 1).

-doc false.
counter(Count) ->
    receive
        increment -> counter(Count + 1);
        {retrieve, From} -> From ! {count, Count}
    end.
