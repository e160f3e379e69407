-module(witness_search_vm).
-moduledoc """
Controls the VM of a search, from outside: it starts it, sends it the job, and gets its reports. *Invariant:* the VM ends when the calling
process ends, also while a native function blocks all of its schedulers.

The VM says again and again that it lives (`m:witness_search_limit`). If it does not for a while, it is killed. A shell beside it looks
each second whether the VM that has started it is still there, and kills the VM otherwise.
""".

-export([search/3]).

%% Milliseconds for which the VM may say nothing, in slices.
-define(SILENT_MS, 30_000).
-define(SLICES, 10).
%% Runs the VM in the place of the shell, and beside it what kills it when the parent has ended.
-define(BESIDE, "(while kill -0 $PPID && kill -0 $$; do sleep 1; done; kill -KILL $$) <&- >/dev/null 2>&1 3<&- 4>&- & exec \"$@\"").

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
    case witness_search_boot:write(Code, Options) of
        {ok, Boot} -> run(Job, Code, Options, Boot);
        {error, Reason} -> {error, {vm, {file, Reason}}}
    end.

run(Job, Code, Options, Boot) ->
    Arguments = witness_search_limit:arguments(map_get(memory, Job))
        ++ witness_record_vm:arguments(Boot, Options, Code) ++ ["-s", "witness_search_node", "main"],
    Port = open_port({spawn_executable, "/bin/sh"},
                     [nouse_stdio, exit_status, binary, {packet, 4}, {env, [{"ERL_CRASH_DUMP_SECONDS", "0"}]},
                      {args, ["-c", ?BESIDE, "sh", filename:join([code:root_dir(), "bin", "erl"]) | Arguments]}]),
    true = port_command(Port, term_to_binary({start, Job})),
    try read(Port, #{result => none, silent => 0, called => none}, Options) after kill(Port) end.

%% The messages come from our own code, in a VM with the rights of this one. silent: how many slices have passed without any;
%% called: the last function outside that the program has called for the first time.
read(Port, #{result := Result, silent := Silent, called := Called} = S, Options) ->
    receive
        {Port, {data, Data}} ->
            Next = S#{silent := 0},
            case witness_event_external:decode(Data) of
                lives -> read(Port, Next, Options);
                {calls, Calls} -> read(Port, Next#{called := Calls}, Options);
                {schedules, Number} ->
                    _ = (maps:get(on_schedules, Options, fun(_) -> ok end))(Number) =:= stop andalso port_command(Port, ~"stop"),
                    read(Port, Next, Options);
                Report ->
                    %% The VM waits for that: what a VM has written that has ended may be lost.
                    true = port_command(Port, ~"bye"),
                    read(Port, Next#{result := Report}, Options)
            end;
        {'DOWN', _, process, _, _} -> {error, {vm, alone}};
        {Port, {exit_status, Status}} when Result =:= none -> {error, {vm, {exit_status, Status}}};
        {Port, {exit_status, _}} -> Result
    %% A machine that sleeps takes one slice.
    after ?SILENT_MS div ?SLICES ->
        case {Silent < ?SLICES, Result} of
            {true, none} -> read(Port, S#{silent := Silent + 1}, Options);
            {false, none} -> {error, {vm, {silent, Called}}};
            _ -> Result
        end
    end.

%% It may have ended. While the port is open, no other process has its number.
kill(Port) ->
    case erlang:port_info(Port, os_pid) of
        {os_pid, Pid} ->
            _ = os:cmd("kill -KILL " ++ integer_to_list(Pid) ++ " 2>&1"),
            ok;
        undefined -> ok
    end.
