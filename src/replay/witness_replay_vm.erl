-module(witness_replay_vm).
-moduledoc """
Looks after the VM of a replay, from outside. It is told what to do over a file descriptor, and tells what became of it over
another one, as in `m:witness_record_vm`; it ends with the process that called, however that ends.
""".

-export([run/4]).

-doc "Starts the VM, and waits for what it tells in the end.".
-spec run(witness_log_recording:recording(), witness_replay_code:code(), [binary()], witness_replay:options()) ->
    {ok, witness_replay:report()} | {error, witness_replay:reason()}.
run(Recording, Code, Atoms, Options) ->
    Own = filename:absname(filename:dirname(code:which(?MODULE))),
    maybe
        {ok, Dir} ?= folder(Options),
        {ok, Boot} ?= witness_replay_boot:write(Dir, Atoms, Own),
        Caller = self(),
        Tag = make_ref(),
        {Pid, Monitor} = spawn_monitor(fun() ->
            _ = monitor(process, Caller),
            Result = replay(Boot, Own, Code, Recording, Options),
            _ = file:del_dir_r(Dir),
            Caller ! {Tag, Result}
        end),
        ended(Tag, Pid, Monitor)
    else
        {error, Reason} -> {error, {file, Reason}}
    end.

%% The port is another process's: what it sends is none of the caller's messages.
ended(Tag, Pid, Monitor) ->
    receive
        {Tag, Result} ->
            true = demonitor(Monitor, [flush]),
            Result;
        {'DOWN', Monitor, process, Pid, Reason} -> {error, {vm, Reason}}
    end.

folder(Options) ->
    Dir = filename:join(witness_record_code:cache(maps:with([cache], Options)),
                        io_lib:format("replay.~s.~b", [os:getpid(), erlang:unique_integer([positive])])),
    Name = lists:flatten(Dir),
    maybe
        ok ?= filelib:ensure_path(Name),
        ok ?= file:change_mode(Name, 8#700),
        {ok, Name}
    end.

replay(Boot, Own, #{woven := Woven, plain := Plain, changed := Changed} = Code, Recording, Options) ->
    process_flag(trap_exit, true),
    Arguments = ["-noshell", "+Bi", "+fnu", "-boot", Boot, "-mode", "interactive"]
        ++ maps:get(vm_args, Options, [])
        ++ ["-pa", Own | lists:reverse(Plain)] ++ lists:reverse(Woven) ++ ["-s", "witness_replay_node", "main"],
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Port = open_port({spawn_executable, Erl}, [nouse_stdio, exit_status, binary, {packet, 4}, {args, Arguments},
                                            {env, [{"ERL_CRASH_DUMP_SECONDS", "0"}]}]),
    Job = (maps:with([woven, handler, calls], Code))#{dir => filename:absname(maps:get(dir, Options)),
                                                      mirror => is_map_key(mirror, Options)},
    true = port_command(Port, term_to_binary({start, Job})),
    #{complete := Complete} = witness_log_recording:info(Recording),
    case heard(Port, none, Options) of
        {finished, Report} -> {ok, Report#{complete => Complete, changed => Changed}};
        {failed, Reason} -> {error, {vm, Reason}}
    end.

%% What it tells comes from our own code, in a VM with the rights of this one.
heard(Port, Told, Options) ->
    receive
        {Port, {data, Data}} ->
            case binary_to_term(Data) of
                {output, Text} ->
                    #{mirror := Mirror} = Options,
                    _ = Mirror(Text),
                    heard(Port, Told, Options);
                {progress, Text} ->
                    _ = (maps:get(on_progress, Options, fun(_) -> ok end))(Text),
                    heard(Port, Told, Options);
                Other -> heard(Port, Other, Options)
            end;
        %% With the port the other VM goes too.
        {'DOWN', _, process, _, _} -> {failed, alone};
        {Port, {exit_status, _}} when Told =/= none -> Told;
        {Port, {exit_status, Status}} -> {failed, {exit_status, Status}}
    end.
