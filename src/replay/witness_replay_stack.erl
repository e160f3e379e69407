-module(witness_replay_stack).
-moduledoc "Stacks of replayed processes, as the program would see them.".

-export([of_program/1]).

%% The modules that a replayed process runs beside the program.
-define(OWN, [witness_replay_runtime, witness_replay_spawn, witness_replay_messages, witness_replay_results,
              witness_replay_interpreter,
              witness_replay_process, witness_replay_backpressure, witness_replay_proxies, witness_replay_process_table,
              witness_replay_log, witness_replay_emitter, witness_replay_breakpoint, witness_weave_funs]).

-doc "A stack without the frames of the replay.".
-spec of_program([term()]) -> [term()].
of_program(Stack) -> [Frame || Frame <- Stack, not is_own_frame(Frame)].

is_own_frame(Frame) when is_tuple(Frame), tuple_size(Frame) > 0 -> lists:member(element(1, Frame), ?OWN);
is_own_frame(_) -> false.
