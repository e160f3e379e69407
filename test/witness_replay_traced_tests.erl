-module(witness_replay_traced_tests).
-moduledoc "What runs in processes that are replayed calls no module of OTP whose calls could be taken for the program's.".
-include_lib("eunit/include/eunit.hrl").

%% Those of which something runs there while calls are traced. Nobody is told of events meanwhile (`witness_event_signature').
-define(INSIDE, [witness_replay_runtime, witness_replay_process, witness_replay_flow, witness_replay_fun, witness_replay_tell,
                 witness_replay_stop, witness_replay_reason, witness_replay_log, witness_weave_runtime]).

what_the_replay_calls_cannot_be_traced_test() ->
    Called = lists:usort([Module || Inside <- ?INSIDE, {Module, Function, Arity} <- imports(Inside),
                                    not erlang:is_builtin(Module, Function, Arity), not is_preloaded(Module), not is_own(Module)]),
    ?assertEqual([], Called -- witness_replay_traced:used()),
    ?assert(lists:member(lists, Called)).

imports(Module) ->
    {ok, {_, [{imports, Imports}]}} = beam_lib:chunks(code:which(Module), [imports]),
    Imports.

%% The VM has these before it has any folder.
is_preloaded(Module) -> code:which(Module) =:= preloaded.

is_own(Module) -> string:prefix(atom_to_list(Module), "witness_") =/= nomatch.
