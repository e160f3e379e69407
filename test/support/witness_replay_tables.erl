-module(witness_replay_tables).
-moduledoc "The named tables of a replay, for tests that begin one again and again in a VM.".

-export([delete/0]).

-doc "So they can be made.".
-spec delete() -> ok.
delete() ->
    Tables = [witness_replay_proxies, witness_replay_pids, witness_replay_aliases, witness_replay_parking, witness_replay_bound],
    lists:foreach(fun(Table) -> ets:info(Table) =:= undefined orelse ets:delete(Table) end, Tables).
