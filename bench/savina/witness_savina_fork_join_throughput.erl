-module(witness_savina_fork_join_throughput).
-moduledoc """
Each of `processes` is sent `messages`, in as many rounds over all of them. For each it computes sin(37.2)^2;
after the last it ends. SOMns's two numbers are read as 3,000 processes and 60 messages.

Verified: each process has added up as many of these squares as it should have got messages, to the last bit.
""".
-behaviour(witness_savina).

-export([sets/0, run/1]).
-export([worker/3]).

-import(witness_savina_processes, [start/3, gather/3, verify/3]).

%% Comes with the message: the compiler would compute with a number that it knows.
-define(ANGLE, 37.2).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{processes => 60, messages => 10_000},
      somns => #{processes => 3_000, messages => 60},
      small => #{processes => 10, messages => 10}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{processes := Processes, messages := Messages}) ->
    Workers = [start(?MODULE, worker, [self(), Messages, 0.0]) || _ <- lists:seq(1, Processes)],
    _ = [Worker ! {compute, ?ANGLE} || _ <- lists:seq(1, Messages), Worker <- Workers],
    Expected = sum(Messages, ?ANGLE, 0.0),
    Sums = gather(Processes, fun({sum, Sum}, All) -> verify(sum, Expected, Sum), All + 1 end, 0),
    verify(sums, Processes, Sums),
    #{sum => Expected * Processes}.

sum(0, _, Sum) -> Sum;
sum(N, Angle, Sum) -> sum(N - 1, Angle, Sum + square(Angle)).

square(Angle) ->
    Sine = math:sin(Angle),
    Sine * Sine.

-doc false.
worker(Main, 0, Sum) ->
    Main ! {sum, Sum};
worker(Main, Left, Sum) ->
    receive {compute, Angle} -> worker(Main, Left - 1, Sum + square(Angle)) end.
