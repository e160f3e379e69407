-module(witness_cli_course).
-moduledoc """
Asks a run how far it has come, again and again, for its report.

It does so in a process of its own: a run that is busy answers late, and whoever waits for its end, and for interrupts,
must not wait for that. It ends with the run, or with the process that has started it.
""".

-export([start/2, stop/1]).

-doc "Starts to ask.".
-spec start(witness:run(), witness_web:report()) -> pid().
start(Run, Report) ->
    Parent = self(),
    spawn(fun() ->
        _ = monitor(process, Parent),
        ask(Run, Report, erlang:monotonic_time(millisecond), witness_web_course:new())
    end).

%% A run that has ended has told all of it in its summary.
ask(Run, Report, Begin, Course) ->
    try witness:info(Run) of
        #{events := Events, processes := Processes, monitors := Monitors, verdicts := Verdicts} ->
            Sample = #{events => Events, processes => Processes, monitors => Monitors, violations => maps:get(no, Verdicts, 0)},
            More = witness_web_course:add({erlang:monotonic_time(millisecond) - Begin, Sample}, Course),
            ok = witness_web:course(More, Report),
            receive {'DOWN', _, process, _, _} -> ok
            after witness_web_course:interval(More) -> ask(Run, Report, Begin, More)
            end
    catch
        exit:_ -> ok
    end.

-doc "Asks no more; nothing changes the report afterwards.".
-spec stop(pid()) -> ok.
stop(Pid) ->
    Ref = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.
