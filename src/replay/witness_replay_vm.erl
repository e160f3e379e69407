-module(witness_replay_vm).
-moduledoc """
Controls the VM of a replay, from outside.

It starts the VM, sends it the job over one file descriptor, and gets its reports and its result over another one, as in
`m:witness_record_vm`. Its partner inside is `m:witness_replay_node`, which the boot script starts (`m:witness_replay_boot`).
*Invariant:* the VM ends when the calling process ends, for whatever reason.
""".

-export([fold/6, open/4]).


-doc """
Starts the VM, and waits for its result. Meanwhile the calling process folds over what the processes of the replay report,
unless there is no function (`none`). Until a block is folded, no more than a few further ones come. If the function is to get
the calls of a function, these come at the end.
""".
-spec fold(none | fun((witness_replay_emitter:report(), Acc) -> Acc)
               | {witness_replay_traced:named(), fun((witness_replay_traced:found(), Acc) -> Acc)},
           Acc, witness_log_recording:recording(), witness_replay_code:code(), [binary()], witness_replay:options()) ->
    {ok, witness_replay:report(), Acc} | {error, witness_replay:error(), Acc}.
fold(Fun, Acc, Recording, Code, Atoms, Options) ->
    Own = filename:absname(filename:dirname(code:which(?MODULE))),
    maybe
        {ok, Dir} ?= witness_record_boot:folder(Options),
        {ok, Boot} ?= witness_replay_boot:write(Dir, Atoms, Own),
        Caller = self(),
        Tag = make_ref(),
        {Pid, Monitor} = spawn_monitor(fun() ->
            _ = monitor(process, Caller),
            Told = fun(Block) -> Caller ! {Tag, self(), Block} end,
            Result = replay(Boot, Own, Code, Recording, wanted_reports(Fun), Told, Options),
            _ = file:del_dir_r(Dir),
            Caller ! {Tag, Result}
        end),
        wait_for_result(Tag, Pid, Monitor, case Fun of {_, Told} -> Told; _ -> Fun end, Acc)
    else
        {error, Reason} -> {error, {witness_replay, {file, Reason}}, Acc}
    end.

wanted_reports(none) -> #{events => false};
wanted_reports({Function, _}) -> #{events => false, calls_of => Function};
wanted_reports(_) -> #{events => true}.

%% The port belongs to another process, so its messages do not come to the caller.
wait_for_result(Tag, Pid, Monitor, Fun, Acc) ->
    receive
        {Tag, Pid, Block} ->
            Acc1 = lists:foldl(Fun, Acc, Block),
            Pid ! more,
            wait_for_result(Tag, Pid, Monitor, Fun, Acc1);
        {Tag, {Outcome, What}} ->
            true = demonitor(Monitor, [flush]),
            {Outcome, What, Acc};
        {'DOWN', Monitor, process, Pid, Reason} -> {error, {witness_replay, {vm, Reason}}, Acc}
    end.

-doc """
Starts a VM in which each process stops at its limit. The calling process gets the messages of the port. `Dir` is a folder to
delete when the port is closed.
""".
-spec open(witness_replay_code:code(), [binary()], #{pos_integer() => non_neg_integer() | infinity}, witness_replay:options()) ->
    {ok, port(), Dir :: file:filename()} | {error, witness_replay:error()}.
open(Code, Atoms, Limits, Options) ->
    Own = filename:absname(filename:dirname(code:which(?MODULE))),
    maybe
        {ok, Dir} ?= witness_record_boot:folder(Options),
        {ok, Boot} ?= witness_replay_boot:write(Dir, Atoms, Own),
        {ok, open_vm(Boot, Own, Code, #{events => false, mirror => false, limits => Limits}, Options), Dir}
    else
        {error, Reason} -> {error, {witness_replay, {file, Reason}}}
    end.

replay(Boot, Own, #{changed := Changed} = Code, Recording, Wanted, Told, Options) ->
    process_flag(trap_exit, true),
    Port = open_vm(Boot, Own, Code, Wanted#{mirror => is_map_key(mirror, Options), whole => maps:get(whole, Options, false)},
                   Options),
    case read_reports(Port, none, Told, Options) of
        {finished, Report} ->
            Known = maps:merge(maps:with([kept], Code), #{changed => Changed, messages => messages(Recording)}),
            {ok, maps:merge(count_stopped(Report, witness_log_recording:info(Recording)), Known)};
        {refused, Reason} -> {error, {witness_replay, Reason}};
        {failed, Reason} -> {error, {witness_replay, {vm, Reason}}}
    end.

messages(Recording) ->
    case maps:get(options, witness_log_recording:header(Recording), #{}) of
        #{contents := true} -> contents;
        #{hash := true} -> hash;
        #{} -> none
    end.

%% If the recording has ended as planned, no process was cut.
count_stopped(Report, #{complete := Complete, stopped := none}) -> Report#{complete => Complete, stopped => 0};
count_stopped(#{cut := Cut} = Report, #{complete := Complete}) -> Report#{complete => Complete, cut := 0, stopped => Cut}.

open_vm(Boot, Own, #{path := {First, Later}} = Code, How, Options) ->
    %% Before OTP 28 a VM without a shell reads what the user types on the terminal while stepping. So it gets no input:
    %% `-noinput' would make an atom (`m:witness_replay_boot').
    Arguments = ["-noshell", "+Bi", "+fnu", "-boot", Boot, "-mode", "interactive"]
        ++ maps:get(vm_args, Options, [])
        %% While the VM boots, the first folder has precedence, and afterwards the last one. Both are that of Witness.
        ++ ["-pa" | [Own | First] ++ lists:reverse([Own | Later])],
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Port = open_port({spawn_executable, "/bin/sh"}, [nouse_stdio, exit_status, binary, {packet, 4},
                                            {args, ["-c", "exec \"$@\" </dev/null", "sh", Erl | Arguments]},
                                            {env, [{"ERL_CRASH_DUMP_SECONDS", "0"}]}]),
    Given = maps:merge(#{syntax => auto}, maps:with([syntax, signatures], Options)),
    Job = maps:merge(maps:with([woven, handler, calls, observed], Code),
                     maps:merge(Given, How#{dir => filename:absname(maps:get(dir, Options))})),
    true = port_command(Port, term_to_binary({start, Job})),
    Port.

%% The messages come from our own code, in a VM with the rights of this one.
read_reports(Port, Last, Told, Options) ->
    receive
        {Port, {data, Data}} ->
            case witness_event_external:decode(Data) of
                {output, Text} ->
                    #{mirror := Mirror} = Options,
                    _ = Mirror(Text),
                    read_reports(Port, Last, Told, Options);
                {progress, Text} ->
                    _ = (maps:get(on_progress, Options, fun(_) -> ok end))(Text),
                    read_reports(Port, Last, Told, Options);
                {events, Block} ->
                    _ = Told(Block),
                    read_reports(Port, Last, Told, Options);
                {calls, Found} ->
                    _ = Told([Found]),
                    read_reports(Port, Last, Told, Options);
                Other ->
                    %% The VM waits for that: a write to a VM that has ended closes the port, and loses what was not read yet.
                    true = port_command(Port, term_to_binary(bye)),
                    read_reports(Port, Other, Told, Options)
            end;
        more when Last =/= none -> read_reports(Port, Last, Told, Options);
        more ->
            true = port_command(Port, term_to_binary(more)),
            read_reports(Port, Last, Told, Options);
        %% When the port closes, the other VM ends too.
        {'DOWN', _, process, _, _} -> {failed, alone};
        {Port, {exit_status, _}} when Last =/= none -> Last;
        {Port, {exit_status, Status}} -> {failed, {exit_status, Status}};
        {'EXIT', Port, _} when Last =/= none -> Last;
        {'EXIT', Port, Reason} -> {failed, Reason}
    end.
