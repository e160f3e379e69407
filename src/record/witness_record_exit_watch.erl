-module(witness_record_exit_watch).
-moduledoc """
Takes the trace flag off recorded processes that have taken some messages, and reports their ends in place of the VM.

A process with any trace flag costs some 40 nanoseconds each time that it is scheduled in and out. That is as much as all else
that is recorded of a message. Only the end of the process needs the flag: births are reported by the flag that the child is born
with. So a process that stays asks this one (`ask/1`), which monitors it, and takes the flag off.

*Why no end is lost.* The monitor is set before the flag is taken off. The VM keeps the signal of a monitor back until its sender is
scheduled out or sends that process something else, and until then neither `process_info/2` nor `is_process_alive/1` waits for it. So
this process yields, and then asks the other one something: signals from one process to another are handled in order. So the process
ends with the flag, and the VM reports it; or without, and the monitor reports it; or in between, and the recorder takes the first of the
two reports. At the end `settle/1` waits for the monitors of processes that are not alive any more.

*Why it changes nothing for the program.* The request of a process is not recorded, and its monitor is hidden from the program
(`m:witness_record_runtime`).
""".
-behaviour(gen_server).

-export([start_link/1, ask/1, settle/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(calm, {session :: trace:session(),
               monitored = #{} :: #{reference() => pid()},
               settled = false :: boolean()}).

-doc "Starts it for the processes that have the flag in this session.".
-spec start_link(trace:session()) -> {ok, pid()}.
start_link(Session) -> {ok, _} = gen_server:start_link(?MODULE, Session, []).

-doc "Asks for the caller's flag to be taken off. The caller is recorded, and will take more messages.".
-spec ask(pid()) -> ok.
ask(Pid) ->
    Pid ! {calm, self()},
    ok.

-doc "Returns when all ends until now are recorded. From now on no process loses its flag.".
-spec settle(pid()) -> ok.
settle(Pid) -> gen_server:call(Pid, settle, infinity).

-doc false.
init(Session) ->
    proc_lib:set_label(?MODULE),
    {ok, #calm{session = Session}}.

-doc false.
handle_call(settle, _, #calm{monitored = Monitored} = C) ->
    {reply, ok, wait_for_exits(#{Ref => [] || Ref := Pid <- Monitored, not is_process_alive(Pid)}, C#calm{settled = true})}.

%% Ends of other processes are recorded, too, in the order in which they arrive.
wait_for_exits(Waiting, C) when map_size(Waiting) =:= 0 -> C;
wait_for_exits(Waiting, C) ->
    receive
        {'DOWN', Ref, process, Pid, Reason} -> wait_for_exits(maps:remove(Ref, Waiting), record_exit(Ref, Pid, Reason, C))
    end.

-doc false.
handle_cast(_, C) -> {noreply, C}.

-doc false.
handle_info({calm, Pid}, #calm{settled = false} = C) -> {noreply, clear_flag(Pid, C)};
handle_info({'DOWN', Ref, process, Pid, Reason}, C) -> {noreply, record_exit(Ref, Pid, Reason, C)};
handle_info(_, C) -> {noreply, C}.

clear_flag(Pid, #calm{session = Session, monitored = Monitored} = C) ->
    Ref = monitor(process, Pid),
    true = erlang:yield(),
    case process_info(Pid, priority) of
        undefined ->
            true = demonitor(Ref, [flush]),
            C;
        {priority, _} ->
            %% It may have ended meanwhile.
            _ = try trace:process(Session, Pid, false, [procs]) catch error:badarg -> gone end,
            C#calm{monitored = Monitored#{Ref => Pid}}
    end.

record_exit(Ref, Pid, Reason, #calm{monitored = Monitored} = C) ->
    ok = witness_record_native:ended(Pid, Reason),
    C#calm{monitored = maps:remove(Ref, Monitored)}.
