-module(witness_savina_thread_ring).
-moduledoc """
A ring of `processes` passes a number on, from `hops` down to 0. Then `exit` goes once around, and each ends.

Verified: each process has had the number as often as its place in the ring implies.
""".
-behaviour(witness_savina).

-export([sets/0, run/1]).
-export([member/3]).

-import(witness_savina_processes, [start/3, gather/3, verify/3]).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{processes => 100, hops => 100_000},
      somns => #{processes => 100, hops => 100_000},
      small => #{processes => 10, hops => 203}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{processes := N, hops := Hops}) ->
    Members = [First | Others] = [start(?MODULE, member, [self(), Place, N]) || Place <- lists:seq(0, N - 1)],
    _ = [Member ! {next, Next} || {Member, Next} <- lists:zip(Members, Others ++ [First])],
    First ! {pass, Hops},
    All = gather(N, fun({passed, Place, Count}, Sum) ->
        verify(passed, {Place, passes(Place, N, Hops)}, {Place, Count}),
        Sum + Count
    end, 0),
    verify(passed, Hops + 1, All),
    #{passed => All}.

%% The first has the numbers Hops, Hops - N, ..., the next Hops - 1, ...: none is below 0.
passes(Place, _, Hops) when Place > Hops -> 0;
passes(Place, N, Hops) -> (Hops - Place) div N + 1.

-doc false.
member(Main, Place, N) ->
    receive {next, Next} -> member(Main, Place, N, Next, 0) end.

member(Main, Place, N, Next, Count) ->
    receive
        {pass, 0} ->
            Next ! {exit, N},
            member(Main, Place, N, Next, Count + 1);
        {pass, Left} ->
            Next ! {pass, Left - 1},
            member(Main, Place, N, Next, Count + 1);
        {exit, Left} ->
            _ = Left > 1 andalso (Next ! {exit, Left - 1}),
            Main ! {passed, Place, Count}
    end.
