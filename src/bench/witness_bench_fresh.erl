-module(witness_bench_fresh).
-moduledoc """
A call in a fresh VM, which is started for it and ends afterwards.

The VM is a child of this one and communicates over its standard input and output (`m:peer`), so neither is a distributed
node. If this VM ends, for whatever reason, the other one ends too, since its input ends. A VM that does not end that way, because
it hangs in native code, say, is killed.
""".

-export([call/4, settle/0]).

%% Spawned by its name, to distinguish it from other processes.
-export([work/7]).

%% Milliseconds that a VM may take to boot, and to end after its input.
-define(BOOT_MS, 60_000).
-define(END_MS, 2_000).

-doc """
Calls a function there, which must return `{ok, _}` or `{error, _}`. Further errors are `{timeout, Milliseconds}`, and
`{vm, Reason}` if the VM could not be started or has ended by itself (`{exit_status, N}`: 128 and the signal, if one ended it).
""".
-spec call(module(), atom(), [term()], #{timeout := timeout(), schedulers => pos_integer(), args => [string()]}) ->
    {ok, term()} | {error, term()}.
call(Module, Function, Args, Options = #{timeout := Timeout}) ->
    Caller = self(),
    Deadline = deadline(Timeout),
    Tag = make_ref(),
    {Worker, Ref} = spawn_monitor(?MODULE, work, [Caller, Tag, Module, Function, Args, Options, Deadline]),
    receive
        {Tag, Result} ->
            demonitor(Ref, [flush]),
            Result;
        {'DOWN', Ref, process, Worker, Reason} ->
            {error, {vm, Reason}}
    end.

-doc false.
-spec work(pid(), reference(), module(), atom(), [term()], map(), integer() | infinity) -> term().
work(Caller, Tag, Module, Function, Args, Options, Deadline) ->
    Caller ! {Tag, start(Caller, Module, Function, Args, Options, Deadline)}.

-doc "Waits until no VM of a call is left, including those of callers that were killed.".
-spec settle() -> ok.
settle() ->
    Refs = [monitor(process, Pid) || Pid <- processes(),
                                     {initial_call, {?MODULE, work, 7}} <- [process_info(Pid, initial_call)]],
    lists:foreach(fun(Ref) -> receive {'DOWN', Ref, process, _, _} -> ok end end, Refs).

deadline(infinity) -> infinity;
deadline(Timeout) -> erlang:monotonic_time(millisecond) + Timeout.

time_left(infinity) -> infinity;
time_left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

start(Caller, Module, Function, Args, Options = #{timeout := Timeout}, Deadline) ->
    process_flag(trap_exit, true),
    Wanted = monitor(process, Caller),
    case peer:start_link(#{connection => standard_io, shutdown => close, wait_boot => min(?BOOT_MS, time_left(Deadline)),
                           args => args(Options),
                           %% The caller reports its end; a dump of a large node takes long.
                           env => [{"ERL_CRASH_DUMP_SECONDS", "0"}]}) of
        {ok, Peer, _} ->
            ok = report_exit_status(Peer),
            Pid = peer:call(Peer, os, getpid, [], time_left(Deadline)),
            try
                wait_for_answer(request(Peer, Module, Function, Args), Peer, Wanted, Timeout, Deadline)
            after
                ok = stop(Peer, Pid)
            end;
        {error, timeout} -> {error, {timeout, Timeout}};
        {error, Reason} -> {error, {vm, Reason}}
    end.

%% The given number of schedulers; no questions at Ctrl-C, which a terminal sends to all processes of a group; and no
%% reports of processes that the model crashes.
args(Options) ->
    N = integer_to_list(maps:get(schedulers, Options, erlang:system_info(schedulers_online))),
    ["+S", N ++ ":" ++ N, "+Bi", "-kernel", "logger_level", "critical"] ++ maps:get(args, Options, [])
        ++ ["-pa" | lists:reverse([filename:absname(Dir) || Dir <- code:get_path(), Dir =/= "."])].

%% When the VM has ended, its peer process ends normally, without the exit status; so the status is taken before.
report_exit_status(Peer) ->
    Self = self(),
    sys:install(Peer, {fun(none, {in, {_, {exit_status, Status}}}, _) -> Self ! {ended, Peer, Status}, done;
                          (none, _, _) -> none
                       end, none}, infinity).

request(Peer, Module, Function, Args) ->
    Self = self(),
    Ref = make_ref(),
    _ = spawn_link(fun() ->
        Self ! {Ref, try peer:call(Peer, Module, Function, Args, infinity)
                     catch Class:Reason -> {raised, Class, Reason}
                     end}
    end),
    Ref.

wait_for_answer(Ref, Peer, Wanted, Timeout, Deadline) ->
    receive
        {Ref, {raised, _, Reason}} -> {error, {vm, status(Peer, Reason)}};
        {Ref, Result} -> Result;
        {'EXIT', Peer, Reason} -> {error, {vm, status(Peer, Reason)}};
        {'DOWN', Wanted, process, _, _} -> {error, {vm, unwanted}}
    after time_left(Deadline) ->
        {error, {timeout, Timeout}}
    end.

status(Peer, Otherwise) ->
    receive {ended, Peer, Status} -> {exit_status, Status} after 0 -> Otherwise end.

%% The end of its input ends the VM. Only the operating system knows whether it has ended.
stop(Peer, Pid) ->
    try peer:stop(Peer) catch exit:_ -> ok end,
    has_exited(Pid) orelse begin
        _ = os:cmd("kill -KILL " ++ Pid ++ " 2>&1"),
        has_exited(Pid)
    end,
    ok.

has_exited(Pid) -> has_exited(Pid, deadline(?END_MS)).

has_exited(Pid, Deadline) ->
    case {os:cmd("kill -0 " ++ Pid ++ " 2>&1"), time_left(Deadline)} of
        {[_ | _], _} -> true;
        {"", 0} -> false;
        {"", _} -> receive after 20 -> has_exited(Pid, Deadline) end
    end.
