-module(witness_check).
-moduledoc """
Checks that need no specification (docs/checks.md): properties of every system, by name.

A check about what processes do has a monitor for each process. What the monitors report is judged at the end of the run, when the
other processes are known that an event concerns (`m:witness_run_checks`). A check about what processes wait for looks at the
processes that are still there.
""".

-export([names/0, monitors/1, spec/1, of_spec/1]).

-export_type([name/0]).

-doc """
`crashes`: a process ends by an error that nothing handles; `calls`: a call gets no answer; `deadlock`: processes wait for each
other.
""".
-type name() :: crashes | calls | deadlock.

-doc "All checks.".
-spec names() -> [name()].
names() -> [crashes, calls, deadlock].

-doc "The monitors of the checks, each for processes of every signature.".
-spec monitors([name()]) -> [{{'_', '_', '_'}, {module(), undefined}}].
monitors(Checks) -> [{{'_', '_', '_'}, {Module, undefined}} || Check <- Checks, {Module, Of} <- modules(), Of =:= Check].

modules() -> [{witness_check_crashes, crashes}, {witness_check_calls, calls}].

-doc "What verdicts name as their specification: that of a check, or of a monitor that a user has written.".
-spec spec(name() | module()) -> binary().
spec(Check) when Check =:= crashes; Check =:= calls; Check =:= deadlock -> <<"check ", (atom_to_binary(Check))/binary>>;
spec(Monitor) ->
    case lists:keyfind(Monitor, 1, modules()) of
        {_, Check} -> spec(Check);
        false -> atom_to_binary(Monitor)
    end.

-doc "The check with this name in verdicts.".
-spec of_spec(binary()) -> {ok, name()} | error.
of_spec(<<"check ", Name/binary>>) ->
    case [Check || Check <- names(), atom_to_binary(Check) =:= Name] of
        [Check] -> {ok, Check};
        [] -> error
    end;
of_spec(_) -> error.
