-module(witness_replay_traced_tests).
-moduledoc "In replayed processes, the replay calls no OTP module that can be traced: the calls would look like the program's.".
-include_lib("eunit/include/eunit.hrl").

%% The modules with code that runs there while calls are traced. No events are reported meanwhile
%% (`witness_event_signature').
-define(INSIDE, [witness_replay_stack, witness_replay_runtime, witness_replay_messages, witness_replay_results,
                 witness_replay_spawn, witness_replay_interpreter, witness_replay_process, witness_replay_proxies,
                 witness_replay_process_table, witness_replay_backpressure, witness_replay_fun, witness_replay_emitter,
                 witness_replay_breakpoint, witness_replay_reason, witness_replay_log, witness_weave_runtime]).

what_the_replay_calls_cannot_be_traced_test() ->
    Called = lists:usort([Module || Inside <- ?INSIDE, {Module, Function, Arity} <- imports(Inside),
                                    not erlang:is_builtin(Module, Function, Arity), not is_preloaded(Module), not is_own(Module)]),
    ?assertEqual([], Called -- witness_replay_traced:own_modules()),
    ?assert(lists:member(lists, Called)).

imports(Module) ->
    {ok, {_, [{imports, Imports}]}} = beam_lib:chunks(code:which(Module), [imports]),
    Imports.

%% The VM has these modules before it has any folder.
is_preloaded(Module) -> code:which(Module) =:= preloaded.

is_own(Module) -> string:prefix(atom_to_list(Module), "witness_") =/= nomatch.

%% A traced process waits for the tracer, so the messages on their way to it are bounded, however far the process could run.
a_traced_process_waits_for_the_tracer_test() ->
    Self = self(),
    ok = persistent_term:put(witness_replay_traced, Self),
    try
        New = witness_replay_process:new(1, Self, atomics:new(2, []), true, #{size => 0, kill => true}),
        {[], P} = witness_replay_process:add_entries([{from, 2, 5000}, {from, 3, 1}, {from, 2, 1}], true, New),
        {Pid, Monitor} = spawn_monitor(fun() -> lists:foldl(fun(_, At) -> passed(Self, At) end, P, lists:seq(1, 5000)) end),
        ?assertEqual([1023, 2047, 3071, 4095], [waited(Pid, Monitor, 0) || _ <- lists:seq(1, 4)]),
        ?assertEqual({ended, normal}, waited(Pid, Monitor, 0))
    after
        persistent_term:erase(witness_replay_traced)
    end.

passed(Test, Process) ->
    Passed = witness_replay_interpreter:pop_entry(Process),
    Test ! {passed, self(), witness_replay_process:passed(Passed)},
    Passed.

waited(Pid, Monitor, At) ->
    receive
        {passed, Pid, Now} -> waited(Pid, Monitor, Now);
        {reached, Pid, Ref} ->
            Pid ! {Ref, ok},
            At;
        {'DOWN', Monitor, process, Pid, Reason} -> {ended, Reason}
    end.
