-module(witness_replay_boot).
-moduledoc """
Writes the boot script of a VM that replays. It makes the atoms of the recorded VM, in their order.

Small maps keep their keys in the order in which the VM has met the names. Large maps have an order that depends on the number
of each name. Code that goes over the keys of a map must do so in the order of the recording. So *invariant:* each atom gets the
number that it has in the recorded VM.

VMs of the same build have the same atoms before they read their boot script. The script starts with the recorded VM's table of
atoms, and reading the script makes them. Flags of the VM must not make an atom before that: all flags are ones that each VM
knows, and none names a module. So the last command of the script, and not a flag, starts the replay (`m:witness_replay_node`).
Right after the preloaded modules the script loads the run-time module and what it calls, since woven modules of OTP call it
from then on.
""".

-export([write/3]).

-doc "Writes a boot script into a folder. The result is the name for `-boot`.".
-spec write(file:filename(), [binary()], Own :: file:filename()) -> {ok, file:filename()} | {error, term()}.
write(Dir, Atoms, Own) ->
    Boot = filename:join(Dir, "replay"),
    First = [{path, [Own]},
             {primLoad,
              [witness_replay_stack, witness_replay_process, witness_replay_log, witness_replay_reason, witness_replay_fun,
               witness_replay_emitter, witness_replay_backpressure, witness_replay_process_table, witness_replay_proxies,
               witness_replay_traced, witness_replay_breakpoint, witness_replay_interpreter, witness_replay_spawn,
               witness_replay_messages, witness_replay_results, witness_replay_calls, witness_replay_loads,
               witness_record_calls, witness_weave_runtime, witness_weave_funs, witness_record_runtime,
               witness_replay_runtime]}],
    maybe
        {ok, Binary} ?= file:read_file(filename:join([code:root_dir(), "bin", "no_dot_erlang.boot"])),
        {script, Id, Commands} = witness_event_external:decode(Binary),
        {Preloaded, [{path, _} | _] = Rest} = lists:splitwith(fun(Command) -> element(1, Command) =/= path end, Commands),
        ok ?= file:write_file(Boot ++ ".boot",
                              script(Atoms, Id, Preloaded ++ First ++ Rest ++ [{apply, {witness_replay_node, main, []}}])),
        {ok, Boot}
    end.

%% `{script, {Atoms, Id}, Commands}' in the external format, without making these atoms here.
script(Atoms, Id, Commands) ->
    [<<131, 104, 3>>, external(script), <<104, 2>>,
     case Atoms of [] -> []; _ -> <<108, (length(Atoms)):32>> end,
     [<<118, (byte_size(Name)):16, Name/binary>> || Name <- Atoms], <<106>>,
     external(Id), external(Commands)].

external(Term) ->
    <<131, External/binary>> = term_to_binary(Term),
    External.
