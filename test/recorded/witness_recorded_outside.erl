-module(witness_recorded_outside).
-moduledoc "What a program learns from outside: shared tables, clocks, programs, files, sockets and another node.".

-import(witness_recorded, [message/2, content/1, spawned/1, monitored/1, result/2, ended/2]).

-export([tables/0, calls/0, ports/0, sockets/0, files/0, node/0]).
-export([remote/1]).

-doc "Processes race on a table.".
tables() ->
    Table = ets:new(shared, [public]),
    true = ets:insert_new(Table, {count, 0}),
    Pids = [monitored(fun() -> race(Table, I, 50) end) || I <- [1, 2, 3, 4]],
    [receive {'DOWN', Ref, process, Pid, Reason} = Down -> content(Down), ended(Pid, Reason) end || {Pid, Ref} <- Pids],
    result({ets, lookup, 2}, ets:lookup(Table, count)).

race(_, _, 0) -> ok;
race(Table, I, N) ->
    Count = result({ets, update_counter, 3}, ets:update_counter(Table, count, 1)),
    _ = result({ets, insert_new, 2}, ets:insert_new(Table, {Count rem 7, I})),
    _ = result({ets, lookup, 2}, ets:lookup(Table, N rem 7)),
    race(Table, I, N - 1).

-doc "Calls with results that cannot be computed again.".
calls() ->
    Pids = [monitored(fun() -> call(30) end) || _ <- [1, 2]],
    [receive {'DOWN', Ref, process, Pid, _} = Down -> content(Down) end || {Pid, Ref} <- Pids],
    done.

call(0) -> ok;
call(N) ->
    _ = result({erlang, unique_integer, 0}, erlang:unique_integer()),
    _ = result({erlang, timestamp, 0}, erlang:timestamp()),
    _ = result({os, system_time, 0}, os:system_time()),
    _ = result({erlang, make_ref, 0}, make_ref()),
    _ = result({erlang, process_info, 2}, process_info(self(), message_queue_len)),
    call(N - 1).

-doc "A program of the operating system, as a port, and by os:cmd.".
ports() ->
    Port = open_port({spawn_executable, "/bin/cat"}, [binary, exit_status]),
    [begin
         true = port_command(Port, Data),
         receive {Port, {data, Data}} = M -> content(M) end
     end || Data <- [~"one", ~"two", binary:copy(~"long", 1000)]],
    true = port_close(Port),
    Failing = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", "exit 3"]}, exit_status]),
    receive {Failing, {exit_status, 3}} = Status -> content(Status) end,
    string:trim(os:cmd("echo $((6 * 7))")).

-doc "A server and its clients over the loopback, active and passive.".
sockets() ->
    {ok, Listening} = gen_tcp:listen(0, [binary, {packet, 2}, {active, false}, {ip, loopback}]),
    {ok, Number} = inet:port(Listening),
    Me = self(),
    Server = spawned(fun() -> accept(Listening, 2) end),
    Pids = [spawned(fun() -> Me ! {answers, self(), connect(Number, I)} end) || I <- [1, 2]],
    Answers = [receive {answers, Pid, List} = M -> message(Pid, M), List end || Pid <- Pids],
    Ref = monitor(process, Server),
    receive {'DOWN', Ref, process, Server, _} = Down -> content(Down) end,
    lists:sort(lists:append(Answers)).

connect(Number, I) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Number, [binary, {packet, 2}, {active, true}]),
    Answers = [begin
                   ok = gen_tcp:send(Socket, <<I, J>>),
                   receive {tcp, Socket, Data} = M -> content(M), Data end
               end || J <- [1, 2, 3, 4, 5]],
    ok = gen_tcp:close(Socket),
    Answers.

accept(_, 0) -> ok;
accept(Listening, N) ->
    {ok, Socket} = gen_tcp:accept(Listening),
    serve(Socket),
    accept(Listening, N - 1).

serve(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, <<I, J>>} ->
            ok = gen_tcp:send(Socket, <<I, J, (I * J)>>),
            serve(Socket);
        {error, closed} -> ok
    end.

-doc "Files, raw and through a process.".
files() ->
    Name = "recorded-" ++ os:getpid() ++ ".tmp",
    ok = file:write_file(Name, ~"some text"),
    {ok, Text} = file:read_file(Name),
    {ok, Raw} = file:open(Name, [read, raw]),
    {ok, Some} = file:read(Raw, 4),
    ok = file:close(Raw),
    {ok, Device} = file:open(Name, [write]),
    ok = io:format(Device, "~p~n", [hello]),
    ok = file:close(Device),
    {ok, Written} = file:read_file(Name),
    ok = file:delete(Name),
    {Text, Some, Written}.

-doc "Another node writes, which is outside.".
node() ->
    {ok, _} = net_kernel:start(list_to_atom("recorded" ++ os:getpid()), #{name_domain => shortnames}),
    {ok, Peer, Node} = peer:start(#{name => peer:random_name(), args => ["-pa", unchanged()]}),
    true = register(witness_recorded_main, self()),
    [begin
         erlang:spawn(Node, ?MODULE, remote, [self()]),
         {hello, There} = Hello = receive {hello, From} = M when node(From) =:= Node -> M end,
         content(Hello),
         receive {named, There} = Named -> content(Named) end,
         There ! {thanks, self()},
         receive {done, There} = Done -> content(Done) end
     end || _ <- [1, 2, 3]],
    Local = spawned(fun() -> receive {ping, From} = M -> message(From, M), From ! {pong, self()} end end),
    Local ! {ping, self()},
    receive {pong, Local} = Pong -> message(Local, Pong) end,
    ok = peer:stop(Peer),
    done.

%% The other node is not recorded, and has nothing to tell a recorder.
unchanged() ->
    lists:last([Folder || Folder <- code:get_path(),
                          filelib:is_regular(filename:join(Folder, ?MODULE_STRING ".beam"))]).

remote(To) ->
    To ! {hello, self()},
    {witness_recorded_main, node(To)} ! {named, self()},
    receive {thanks, To} -> To ! {done, self()} end.
