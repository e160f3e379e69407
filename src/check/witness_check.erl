-module(witness_check).
-moduledoc """
Checks that need no specification (docs/checks.md): properties of every system, by name.

A check about what processes do has a monitor for each process. What the monitors report is judged at the end of the run, when the
other processes are known that an event concerns (`m:witness_run_checks`). A check about what processes wait for looks at the
processes that are still there.
""".

-export([names/0, system_checks/0, needs_looks/1, attached_checks/0, why_not_attached/1, monitors/1, spec/1, of_spec/1]).

-export_type([name/0]).

%% Of the name of a module in a verdict.
-define(NAME_CHARS, 200).

-doc """
- `crashes`: a process ends by an error that nothing handles;
- `calls`: a call gets no answer;
- `late`: the answer to a call comes when its process has given it up;
- `restarts`: a supervisor gives up on a child;
- `deadlock`: processes wait for each other;
- `mailboxes`: messages are never taken, or come faster than they are taken;
- `leaks`: a process is still there after the end of the system, or its monitors of the same process become more and more.
""".
-type name() :: crashes | calls | late | restarts | deadlock | mailboxes | leaks.

-doc "All checks.".
-spec names() -> [name()].
names() -> [crashes, calls, late, restarts | system_checks()].

-doc "The checks that have no monitors: they look at the processes that are still there.".
-spec system_checks() -> [name()].
system_checks() -> [deadlock, mailboxes, leaks].

-doc "Whether one of the checks has to look at the processes that are still there.".
-spec needs_looks([name()]) -> boolean().
needs_looks(Checks) -> lists:any(fun(Check) -> lists:member(Check, [crashes | system_checks()]) end, Checks).

-doc """
The checks of processes that run already, or that are only some of the system's. What a check finds there must follow from what is
watched: other processes may do anything, and what was before is not known.
""".
-spec attached_checks() -> [name()].
attached_checks() -> [Check || Check <- names(), why_not_attached(Check) =:= none].

-doc "Why a check cannot be had there, as the end of a sentence.".
-spec why_not_attached(name()) -> none | binary().
why_not_attached(crashes) -> ~"processes that are not watched may handle a crash";
why_not_attached(restarts) -> ~"which processes a supervisor has started before, and which one is its parent, is not known";
why_not_attached(_) -> none.

-doc "The monitors of the checks, each for processes of every signature.".
-spec monitors([name()]) -> [{{'_', '_', '_'}, {module(), undefined}}].
monitors(Checks) -> [{{'_', '_', '_'}, {Module, undefined}} || Check <- Checks, {Module, Of} <- modules(), Of =:= Check].

modules() ->
    [{witness_check_crashes, crashes}, {witness_check_calls, calls}, {witness_check_late, late},
     {witness_check_restarts, restarts}].

-doc "What verdicts name as their specification: that of a check, or of a monitor that a user has written.".
-spec spec(name() | module()) -> binary().
spec(Name) ->
    case {lists:member(Name, names()), lists:keyfind(Name, 1, modules())} of
        {true, _} -> <<"check ", (atom_to_binary(Name))/binary>>;
        {false, {_, Check}} -> spec(Check);
        {false, false} -> spec_of_monitor(Name, witness_event:syntax([Name]))
    end.

spec_of_monitor(Module, erlang) -> atom_to_binary(Module);
spec_of_monitor(Module, elixir) -> witness_event:format_term(Module, ?NAME_CHARS, elixir).

-doc "The check with this name in verdicts.".
-spec of_spec(binary()) -> {ok, name()} | error.
of_spec(<<"check ", Name/binary>>) ->
    case [Check || Check <- names(), atom_to_binary(Check) =:= Name] of
        [Check] -> {ok, Check};
        [] -> error
    end;
of_spec(_) -> error.
