-module(witness_bench_fresh).
-moduledoc """
A call in a fresh VM, which is started for it and gone afterwards.

The VM is a child of this one and talks to it over its standard input and output (`m:peer`), so neither is a distributed
node, and whatever ends this VM ends that one, since its input ends. What does not end that way, because it hangs in native
code, say, is killed.
""".

-export([call/4, settle/0]).

%% Spawned by its name, so that it can be told from other processes.
-export([work/7]).

%% Milliseconds that a VM may take to boot, and to end when its input has.
-define(BOOT, 60_000).
-define(END, 2_000).

-doc """
Calls a function there, which must return `{ok, _}` or `{error, _}`. An error is also `{timeout, Milliseconds}`, and
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
    Caller ! {Tag, started(Caller, Module, Function, Args, Options, Deadline)}.

-doc "Waits until no VM of a call is left, those of callers that were killed included.".
-spec settle() -> ok.
settle() ->
    Refs = [monitor(process, Pid) || Pid <- processes(),
                                     {initial_call, {?MODULE, work, 7}} <- [process_info(Pid, initial_call)]],
    lists:foreach(fun(Ref) -> receive {'DOWN', Ref, process, _, _} -> ok end end, Refs).

deadline(infinity) -> infinity;
deadline(Timeout) -> erlang:monotonic_time(millisecond) + Timeout.

left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

started(Caller, Module, Function, Args, Options = #{timeout := Timeout}, Deadline) ->
    process_flag(trap_exit, true),
    Wanted = monitor(process, Caller),
    case peer:start_link(#{connection => standard_io, shutdown => close, wait_boot => min(?BOOT, left(Deadline)),
                           args => args(Options),
                           %% Its end is told by the caller; a dump of a large node takes long.
                           env => [{"ERL_CRASH_DUMP_SECONDS", "0"}]}) of
        {ok, Peer, _} ->
            ok = told_of_end(Peer),
            Pid = peer:call(Peer, os, getpid, [], left(Deadline)),
            try
                awaited(asked(Peer, Module, Function, Args), Peer, Wanted, Timeout, Deadline)
            after
                ok = stopped(Peer, Pid)
            end;
        {error, timeout} -> {error, {timeout, Timeout}};
        {error, Reason} -> {error, {vm, Reason}}
    end.

%% As many schedulers as asked for, no questions at Ctrl-C, which a terminal sends to all processes of a group, and no
%% reports of the processes that crash because the model says so.
args(Options) ->
    N = integer_to_list(maps:get(schedulers, Options, erlang:system_info(schedulers_online))),
    ["+S", N ++ ":" ++ N, "+Bi", "-kernel", "logger_level", "critical"] ++ maps:get(args, Options, [])
        ++ ["-pa" | lists:reverse([filename:absname(Dir) || Dir <- code:get_path(), Dir =/= "."])].

%% Whoever talks to the VM ends as if nothing were, when it has ended; the status comes before.
told_of_end(Peer) ->
    Self = self(),
    sys:install(Peer, {fun(none, {in, {_, {exit_status, Status}}}, _) -> Self ! {ended, Peer, Status}, done;
                          (none, _, _) -> none
                       end, none}, infinity).

asked(Peer, Module, Function, Args) ->
    Self = self(),
    Ref = make_ref(),
    _ = spawn_link(fun() ->
        Self ! {Ref, try peer:call(Peer, Module, Function, Args, infinity)
                     catch Class:Reason -> {raised, Class, Reason}
                     end}
    end),
    Ref.

awaited(Ref, Peer, Wanted, Timeout, Deadline) ->
    receive
        {Ref, {raised, _, Reason}} -> {error, {vm, status(Peer, Reason)}};
        {Ref, Result} -> Result;
        {'EXIT', Peer, Reason} -> {error, {vm, status(Peer, Reason)}};
        {'DOWN', Wanted, process, _, _} -> {error, {vm, unwanted}}
    after left(Deadline) ->
        {error, {timeout, Timeout}}
    end.

status(Peer, Otherwise) ->
    receive {ended, Peer, Status} -> {exit_status, Status} after 0 -> Otherwise end.

%% The end of its input ends the VM. Whether it has ended only the operating system knows.
stopped(Peer, Pid) ->
    try peer:stop(Peer) catch exit:_ -> ok end,
    gone(Pid) orelse begin
        _ = os:cmd("kill -KILL " ++ Pid ++ " 2>&1"),
        gone(Pid)
    end,
    ok.

gone(Pid) -> gone(Pid, deadline(?END)).

gone(Pid, Deadline) ->
    case {os:cmd("kill -0 " ++ Pid ++ " 2>&1"), left(Deadline)} of
        {[_ | _], _} -> true;
        {"", 0} -> false;
        {"", _} -> receive after 20 -> gone(Pid, Deadline) end
    end.
