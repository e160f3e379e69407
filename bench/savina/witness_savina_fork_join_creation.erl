-module(witness_savina_fork_join_creation).
-moduledoc """
`processes` are started and sent one message each. When they get it, they compute sin(37.2)^2 and end.

The reason of a process's exit is what it has computed, so that there is no message but the one that Savina has.

Verified: `processes` have ended, each with the right number.
""".
-behaviour(witness_savina).

-export([sets/0, run/1]).
-export([worker/0]).

-import(witness_savina_processes, [verify/3]).

%% Comes with the message: the compiler would compute with a number that it knows.
-define(ANGLE, 37.2).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() -> #{savina => #{processes => 40_000}, somns => #{processes => 40_000}, small => #{processes => 50}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{processes := N}) ->
    create(N),
    Expected = square(?ANGLE),
    #{sum => collect(N, Expected, 0.0)}.

    %% Not linked: otherwise the reason of their exit would end this process.
create(0) -> ok;
create(N) ->
    {Worker, _} = spawn_monitor(?MODULE, worker, []),
    Worker ! {compute, ?ANGLE},
    create(N - 1).

collect(0, _, Sum) -> Sum;
collect(N, Expected, Sum) ->
    receive {'DOWN', _, process, _, Reason} -> verify(computed, {computed, Expected}, Reason) end,
    collect(N - 1, Expected, Sum + Expected).

square(Angle) ->
    Sine = math:sin(Angle),
    Sine * Sine.

-doc false.
-spec worker() -> no_return().
worker() ->
    receive {compute, Angle} -> exit({computed, square(Angle)}) end.
