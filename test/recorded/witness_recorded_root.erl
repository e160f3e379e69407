-module(witness_recorded_root).
-moduledoc "First processes that end with what the program has returned, so that it is in the recording, and in its replay.".

-export([run/2, savina/0]).

-doc "Ends with `{result, Result}`. Programs note their steps in a table, as under `witness_recorded:run/3`.".
-spec run(module(), atom() | {atom(), [term()]}) -> no_return().
run(Module, Function) ->
    witness_recorded_journal = ets:new(witness_recorded_journal, [named_table, public, ordered_set]),
    {Name, Args} = case Function of {_, _} -> Function; _ -> {Function, []} end,
    exit({result, apply(Module, Name, Args)}).

-doc "All benchmarks of Savina, with small parameters.".
savina() -> [{Name, witness_savina:run(Name, small)} || Name <- witness_savina:names()].
