-module(witness_savina_cigarette_smokers).
-moduledoc """
An arbiter, the benchmark's main process, draws one of `smokers` and how long it smokes, `rounds` times. The
smoker reports that it has started, and then the next round starts; the smoker keeps busy for so many steps
(`witness_savina_random:busy_wait/1`). The seed is `rounds * smokers`.

Verified: the smokers have smoked `rounds` times; the sum of what they smoked, each weighted with its place, is
that of what was drawn.
""".
-behaviour(witness_savina).

-export([sets/0, run/1]).
-export([smoker/2]).

-import(witness_savina_processes, [start/3, gather/3, verify/3]).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{rounds => 1_000, smokers => 200},
      somns => #{rounds => 10_000, smokers => 200},
      small => #{rounds => 60, smokers => 7}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{rounds := Rounds, smokers := N}) ->
    Smokers = list_to_tuple([start(?MODULE, smoker, [self(), Place]) || Place <- lists:seq(1, N)]),
    Drawn = arbiter(Rounds, Smokers, Rounds * N, 0),
    _ = [Smoker ! exit || Smoker <- tuple_to_list(Smokers)],
    Smoked = gather(N, fun({smoked, Place, Times, Steps}, {All, Sum}) ->
        {All + Times, Sum + Place * Steps}
    end, {0, 0}),
    verify(smoked, {Rounds, Drawn}, Smoked),
    #{rounds => Rounds, weighted => Drawn}.

arbiter(0, _, _, Sum) -> Sum;
arbiter(Left, Smokers, R0, Sum) ->
    R1 = witness_savina_random:next(R0),
    R2 = witness_savina_random:next(R1),
    Place = R1 rem tuple_size(Smokers) + 1,
    Steps = R2 rem 1000 + 10,
    element(Place, Smokers) ! {smoke, Steps},
    receive started -> arbiter(Left - 1, Smokers, R2, Sum + Place * Steps) end.

-doc false.
smoker(Arbiter, Place) -> smoker(Arbiter, Place, 0, 0).

smoker(Arbiter, Place, Times, Sum) ->
    receive
        {smoke, Steps} ->
            Arbiter ! started,
            _ = witness_savina_random:busy_wait(Steps),
            smoker(Arbiter, Place, Times + 1, Sum + Steps);
        exit ->
            Arbiter ! {smoked, Place, Times, Sum}
    end.
