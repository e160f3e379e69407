-module(witness_sys_blips).
-moduledoc """
Processes that end at once, many of them: their events reach a tracer before it knows them. `burst(N, Odd)` spawns
N of them, of which every `Odd`th exits with the reason `odd`; `chain(N)` is a process that spawns the next and
ends before that has begun.
""".
-export([burst/2, blip/2, chains/2, chain/1]).

-spec burst(pos_integer(), pos_integer()) -> ok.
burst(N, Odd) ->
    _ = [spawn(?MODULE, blip, [I, Odd]) || I <- lists:seq(1, N)],
    ok.

-spec blip(pos_integer(), pos_integer()) -> ok.
blip(I, Odd) when I rem Odd =:= 0 -> exit(odd);
blip(_, _) -> ok.

-spec chains(pos_integer(), pos_integer()) -> ok.
chains(Chains, Length) ->
    _ = [spawn(?MODULE, chain, [Length]) || _ <- lists:seq(1, Chains)],
    ok.

-spec chain(non_neg_integer()) -> pid() | ok.
chain(0) -> ok;
chain(N) -> spawn(?MODULE, chain, [N - 1]).
