-module(witness_recorded_ends).
-moduledoc "Programs that end in other ways, or print.".

-export([halting/1, forever/0, printing/0, late/0, crashing/0, savina/1, savina/2]).

-doc "Messages, and then the end of the VM.".
halting(How) ->
    Me = self(),
    Pid = spawn(fun() -> echo(Me) end),
    [begin Pid ! N, receive {N, Pid} -> ok end end || N <- lists:seq(1, 100)],
    _ = [exit(Pid, kill) || not ends_the_vm(How)],
    ended(How).

ends_the_vm({ignored, _}) -> false;
ends_the_vm(How) -> How =/= return andalso How =/= crash.

ended(halt) -> halt(5);
ended(stop) -> init:stop(6), receive after infinity -> ok end;
ended(return) -> ok;
ended(crash) -> error(program_is_wrong);
%% A process that is not recorded.
ended(outside) ->
    {ok, _} = timer:apply_after(0, fun() -> halt(7) end),
    receive after infinity -> ok end;
ended({signal, Name}) ->
    true = os:putenv("ERL_CRASH_DUMP", "/dev/null"),
    os:cmd("kill -" ++ Name ++ " " ++ os:getpid()),
    receive after infinity -> ok end;
ended({ignored, Name}) ->
    os:cmd("kill -" ++ Name ++ " " ++ os:getpid());
ended(kill) ->
    %% What is flushed by time is there by then.
    receive after 2500 -> ok end,
    os:cmd("kill -KILL " ++ os:getpid()).

echo(To) -> receive N -> To ! {N, self()}, echo(To) end.

forever() ->
    io:format("running~n"),
    receive after infinity -> ok end.

printing() ->
    io:format("one ~ts~n", [~"zwei"]),
    io:put_chars(standard_error, "to standard error\n"),
    io:format("read ~tp on ~p~n", [io:get_line(""), node()]).

-doc "The last of its processes outlives the first one.".
late() ->
    Me = self(),
    spawn(fun() ->
        Ref = monitor(process, Me),
        receive {'DOWN', Ref, process, Me, _} -> ok end,
        spawn(fun() -> receive after 30 -> io:format("last words~n") end end)
    end),
    ok.

crashing() -> error(program_is_wrong).

-doc "All benchmarks of Savina, with small parameters; their results go to a file.".
savina(File) ->
    ok = file:write_file(File, term_to_binary(savina(witness_savina:names(), small))).

-doc "Some of them, and what they return.".
savina(Names, Set) -> [{Name, witness_savina:run(Name, Set)} || Name <- Names].
