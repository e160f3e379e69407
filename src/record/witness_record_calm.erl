-module(witness_record_calm).
-moduledoc """
Takes the trace flag off recorded processes that have taken some messages, and tells their ends in the place of the VM.

A process with any trace flag costs some 40 nanoseconds where it is scheduled in and out, as much as all else that is recorded of a message.
The flag is there for the process's end alone: births are reported by the flag that the child is born with. So a process that stays asks this
one (`ask/1`), which monitors it, and takes the flag off.

*Why no end is lost.* The monitor is there before the flag is taken off: the process has answered a question that was asked behind it,
and what comes from one process is handled in order. So it ends with the flag, and the VM tells; or without, and the monitor has its
reason; or in between, and the recorder takes the first of the two. In the end `settle/1` waits for what monitors have to tell of processes
that are not alive any more.

*Why it changes nothing for the program.* What a process says here is said behind its back, and that it is monitored is not
shown (`m:witness_record_runtime`).
""".
-behaviour(gen_server).

-export([start_link/1, ask/1, settle/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(calm, {session :: trace:session(),
               monitored = #{} :: #{reference() => pid()},
               settled = false :: boolean()}).

-doc "Of the processes that have the flag in this session.".
-spec start_link(trace:session()) -> {ok, pid()}.
start_link(Session) -> {ok, _} = gen_server:start_link(?MODULE, Session, []).

-doc "The caller is recorded, and will take more messages.".
-spec ask(pid()) -> ok.
ask(Pid) ->
    Pid ! {calm, self()},
    ok.

-doc "All ends until now have been told. From now on everybody keeps his flag.".
-spec settle(pid()) -> ok.
settle(Pid) -> gen_server:call(Pid, settle, infinity).

-doc false.
init(Session) ->
    proc_lib:set_label(?MODULE),
    {ok, #calm{session = Session}}.

-doc false.
handle_call(settle, _, #calm{monitored = Monitored} = C) ->
    {reply, ok, told(#{Ref => [] || Ref := Pid <- Monitored, not is_process_alive(Pid)}, C#calm{settled = true})}.

%% Those of others are told, too, in the order in which they come.
told(Waiting, C) when map_size(Waiting) =:= 0 -> C;
told(Waiting, C) ->
    receive {'DOWN', Ref, process, Pid, Reason} -> told(maps:remove(Ref, Waiting), ended(Ref, Pid, Reason, C)) end.

-doc false.
handle_cast(_, C) -> {noreply, C}.

-doc false.
handle_info({calm, Pid}, #calm{settled = false} = C) -> {noreply, calmed(Pid, C)};
handle_info({'DOWN', Ref, process, Pid, Reason}, C) -> {noreply, ended(Ref, Pid, Reason, C)};
handle_info(_, C) -> {noreply, C}.

calmed(Pid, #calm{session = Session, monitored = Monitored} = C) ->
    Ref = monitor(process, Pid),
    case process_info(Pid, priority) of
        undefined ->
            true = demonitor(Ref, [flush]),
            C;
        {priority, _} ->
            %% It may have ended meanwhile.
            _ = try trace:process(Session, Pid, false, [procs]) catch error:badarg -> gone end,
            C#calm{monitored = Monitored#{Ref => Pid}}
    end.

ended(Ref, Pid, Reason, #calm{monitored = Monitored} = C) ->
    ok = witness_record_native:ended(Pid, Reason),
    C#calm{monitored = maps:remove(Ref, Monitored)}.
