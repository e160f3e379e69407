-module(witness_replay_boot).
-moduledoc """
Writes the boot script of a VM that replays. It makes the atoms of the recorded VM, in their order (`m:witness_record_boot`): code that
goes over the keys of a map must do so in the order of the recording. *Invariant:* each atom gets the number that it has in the recorded
VM.

Flags of the VM must not make an atom before that: all flags are ones that each VM knows, and none names a module. So the last command of
the script, and not a flag, starts the replay (`m:witness_replay_node`). Right after the preloaded modules the script loads the run-time
module and what it calls, since woven modules of OTP call it from then on.
""".

-export([write/3]).

-doc "Writes a boot script into a folder. The result is the name for `-boot`.".
-spec write(file:filename(), [binary()], Own :: file:filename()) -> {ok, file:filename()} | {error, term()}.
write(Dir, Atoms, Own) ->
    First = [{path, [Own]},
             {primLoad,
              [witness_replay_stack, witness_replay_process, witness_replay_log, witness_replay_reason, witness_replay_fun,
               witness_replay_emitter, witness_replay_backpressure, witness_replay_process_table, witness_replay_proxies,
               witness_replay_traced, witness_replay_breakpoint, witness_replay_interpreter, witness_replay_spawn,
               witness_replay_messages, witness_replay_results, witness_replay_calls, witness_replay_loads,
               witness_record_calls, witness_weave_runtime, witness_weave_funs, witness_record_runtime,
               witness_replay_runtime]}],
    witness_record_boot:write(Dir, Atoms, First, [{apply, {witness_replay_node, main, []}}]).
