-module(witness_replay_boot).
-moduledoc """
How a VM that replays begins: with the atoms of the recorded one, in their order.

Small maps keep their keys in the order in which the VM has met the names. So that all that goes over the keys of a map does so in
the order of the recording, the recorded VM's table of atoms is made before any code but the VM's own is loaded: a boot script
like that of every VM does it first. The run-time module is loaded next, since woven modules of OTP call it from then on.
""".

-export([write/3, atoms/1]).

-doc "Writes a boot script, and what it needs, into a folder; the name for `-boot`.".
-spec write(file:filename(), [binary()], Own :: file:filename()) -> {ok, file:filename()} | {error, term()}.
write(Dir, Atoms, Own) ->
    Names = filename:join(Dir, "atoms"),
    Boot = filename:join(Dir, "replay"),
    First = [{path, [Own]}, {primLoad, [?MODULE]}, {apply, {?MODULE, atoms, [Names]}},
             {primLoad, [witness_replay_process, witness_replay_log, witness_replay_reason, witness_replay_fun, witness_replay_tell,
                         witness_replay_flow, witness_replay_births, witness_replay_slots, witness_replay_traced, witness_replay_stop,
                         witness_replay_course, witness_replay_life, witness_replay_messages, witness_replay_results,
                         witness_replay_calls, witness_record_calls, witness_weave_runtime, witness_replay_runtime]}],
    maybe
        {ok, Binary} ?= file:read_file(filename:join([code:root_dir(), "bin", "no_dot_erlang.boot"])),
        {script, Id, Commands} = binary_to_term(Binary),
        {Preloaded, [{path, _} | _] = Rest} = lists:splitwith(fun(Command) -> element(1, Command) =/= path end, Commands),
        ok ?= file:write_file(Names, [<<(byte_size(Name)):16, Name/binary>> || Name <- Atoms]),
        ok ?= file:write_file(Boot ++ ".boot", term_to_binary({script, Id, Preloaded ++ First ++ Rest})),
        {ok, Boot}
    end.

-doc "Makes atoms, with nothing but the VM's own modules. Called by the boot script.".
-spec atoms(file:filename()) -> ok.
atoms(File) ->
    {ok, Names} = prim_file:read_file(File),
    made(Names).

made(<<Size:16, Name:Size/binary, Rest/binary>>) ->
    _ = binary_to_atom(Name),
    made(Rest);
made(<<>>) ->
    ok.
