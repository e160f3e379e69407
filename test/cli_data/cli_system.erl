-module(cli_system).
-moduledoc "Small systems for the tests of the command line: a server that answers, and what can go wrong around it.".

-export([answers/1, answer/2, violates/0, waits/0, spawns/1, returns/0, crashes/0, outlives/0, holds/0, stops/0, halts/1, prints/0,
         says/1, settings/0, logs/0, borrows/0, 'grüßt'/0]).
-export([server/0, step/1, multiply/1, borrower/0]).

-doc "A server answers with these numbers.".
answers(Numbers) ->
    {Server, Monitor} = spawn_monitor(?MODULE, server, []),
    [begin Server ! {self(), Number}, receive {answer, Number} -> ok end end || Number <- Numbers],
    Server ! stop,
    receive {'DOWN', Monitor, process, Server, normal} -> ok end.

-doc "So many servers, one after the other, answer with these numbers.".
answer(Servers, Numbers) -> [answers(Numbers) || _ <- lists:seq(1, Servers)].

-doc "One wrong server after the other, for ever.".
violates() ->
    answers([10]),
    violates().

-doc "Says `ready`, and has a server that never ends.".
waits() ->
    Server = spawn(?MODULE, server, []),
    Server ! {self(), 1},
    receive {answer, 1} -> ok end,
    watched(),
    io:format("ready~n").

-doc "Spawns without end: one process after the other (`chain`), or as many as there can be. Each thousand says so.".
spawns(chain) -> [spawn(?MODULE, step, [N]) || N <- lists:seq(1, 8)];
spawns(fan) -> spawn(?MODULE, multiply, [1]).

-doc "What a library receives for the process that calls it.".
borrows() ->
    {Borrower, Monitor} = spawn_monitor(?MODULE, borrower, []),
    Borrower ! {told, 1},
    receive {'DOWN', Monitor, process, Borrower, normal} -> ok end.

borrower() -> cli_library:await().

step(N) ->
    tell(N),
    spawn(?MODULE, step, [N + 1]).

multiply(N) ->
    tell(N),
    try spawn(?MODULE, multiply, [N + 1])
    catch error:system_limit -> full
    end,
    multiply(N + 1).

tell(N) -> N rem 1000 =:= 0 andalso io:format("spawned~n").

%% Waits until a monitor reads the server: an interrupt before that ends a run without a monitor.
watched() ->
    case [Run || Run <- processes(), proc_lib:get_label(Run) =:= witness_run, is_watching(witness_run:info(Run))] of
        [] -> erlang:yield(), watched();
        [_ | _] -> ok
    end.

is_watching(#{monitors := Monitors}) -> Monitors > 0.

returns() -> ok.

crashes() -> error(boom).

-doc "Kills what watches it, and goes on.".
outlives() ->
    spawn(?MODULE, server, []),
    watched(),
    [Watching | _] = [P || P <- processes(), lists:member(proc_lib:get_label(P), [witness_dispatcher, witness_pool])],
    Ref = monitor(process, Watching),
    exit(Watching, kill),
    receive {'DOWN', Ref, process, Watching, _} -> ok end,
    %% The run has ended.
    gone(),
    io:format("still there~n").

gone() ->
    case [P || P <- processes(), proc_lib:get_label(P) =:= witness_run] of
        [] -> ok;
        _ -> erlang:yield(), gone()
    end.

-doc "Says which process of the operating system it is in, and never ends.".
holds() ->
    io:format("pid ~ts, held~n", [os:getpid()]),
    receive never -> ok end.

stops() ->
    ok = init:stop(),
    receive never -> ok end.

halts(Status) -> halt(Status).

-doc "Prints in all the ways there are, none of which may reach standard output with --json.".
prints() ->
    io:format("by io~n"),
    io:format(user, "by user~n", []),
    erlang:display(by_display),
    Port = open_port({fd, 1, 1}, [out]),
    port_command(Port, "by descriptor\n"),
    {_, Monitor} = spawn_monitor(fun() -> io:format("by a child~n") end),
    receive {'DOWN', Monitor, process, _, normal} -> ok end,
    answers([1, 10]).

says(Text) -> io:format("~ts~n", [Text]).

settings() -> io:format("~p~n", [[application:get_env(cli_system, Key) || Key <- [a, b]]]).

logs() ->
    logger:error("a report"),
    answers([1]).

'grüßt'() -> io:format("grüßt~n").

server() ->
    receive
        {Client, Number} ->
            Client ! {answer, Number},
            server();
        stop -> ok
    end.
