-module(witness_search_vm).
-moduledoc """
Controls the VM of a search, from outside: it starts it, sends it the job, and gets its reports. *Invariant:* the VM ends when the calling
process ends.
""".

-export([search/3]).

-doc "Searches. The calling process gets the reports of `m:witness_search_node`, until the VM has ended.".
-spec search(map(), witness_record_code:code(), map()) -> {ok, Found :: map()} | {error, witness_search:reason()}.
search(Job, Code, Options) ->
    Caller = self(),
    Tag = make_ref(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        _ = monitor(process, Caller),
        Caller ! {Tag, run(Job, Code, Options)}
    end),
    receive
        {Tag, Result} ->
            true = demonitor(Monitor, [flush]),
            Result;
        {'DOWN', Monitor, process, Pid, Reason} -> {error, {vm, Reason}}
    end.

run(Job, Code, Options) ->
    process_flag(trap_exit, true),
    Arguments = witness_search_limit:arguments(map_get(memory, Job))
        ++ witness_record_vm:arguments(Options, Code) ++ ["-s", "witness_search_node", "main"],
    Port = open_port({spawn_executable, filename:join([code:root_dir(), "bin", "erl"])},
                     [nouse_stdio, exit_status, binary, {packet, 4}, {args, Arguments}, {env, [{"ERL_CRASH_DUMP_SECONDS", "0"}]}]),
    true = port_command(Port, term_to_binary({start, Job})),
    read(Port, none, Options).

%% The messages come from our own code, in a VM with the rights of this one.
read(Port, Last, Options) ->
    receive
        {Port, {data, Data}} ->
            case witness_event_external:decode(Data) of
                {schedules, Number} ->
                    _ = (maps:get(on_schedules, Options, fun(_) -> ok end))(Number) =:= stop andalso port_command(Port, ~"stop"),
                    read(Port, Last, Options);
                Report ->
                    %% The VM waits for that: what a VM has written that has ended may be lost.
                    true = port_command(Port, ~"bye"),
                    read(Port, Report, Options)
            end;
        %% When the port closes, the VM ends.
        {'DOWN', _, process, _, _} -> {error, {vm, alone}};
        {Port, {exit_status, _}} when Last =/= none -> Last;
        {Port, {exit_status, Status}} -> {error, {vm, {exit_status, Status}}}
    end.
