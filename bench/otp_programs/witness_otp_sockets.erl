-module(witness_otp_sockets).
-moduledoc "Programs with sockets.".

-export([tcp/0, tcp_active/0, tcp_socket_backend/0, udp/0, socket/0, local_socket/0, resolver/0]).

tcp() ->
    {ok, Listens} = gen_tcp:listen(0, [binary, {packet, 4}, {active, false}, {ip, {127, 0, 0, 1}}, {reuseaddr, true}]),
    {ok, Port} = inet:port(Listens),
    Server = spawn_link(fun() -> accepts(Listens, 3) end),
    Answers = witness_otp_program:each(fun(N) ->
        {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {packet, 4}, {active, false}]),
        ok = gen_tcp:send(Socket, term_to_binary({square, N})),
        {ok, Answer} = gen_tcp:recv(Socket, 0, 5000),
        ok = gen_tcp:close(Socket),
        binary_to_term(Answer)
    end, [1, 2, 3]),
    unlink(Server),
    Answers.

accepts(_, 0) -> ok;
accepts(Listens, N) ->
    {ok, Socket} = gen_tcp:accept(Listens),
    {ok, Data} = gen_tcp:recv(Socket, 0),
    {square, M} = binary_to_term(Data),
    ok = gen_tcp:send(Socket, term_to_binary(M * M)),
    accepts(Listens, N - 1).

tcp_active() -> active([]).
tcp_socket_backend() -> active([{inet_backend, socket}]).

active(Backend) ->
    {ok, Listens} = gen_tcp:listen(0, Backend ++ [{packet, line}, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, {_, Port}} = inet:sockname(Listens),
    Me = self(),
    spawn_link(fun() ->
        {ok, Socket} = gen_tcp:accept(Listens),
        [ok = gen_tcp:send(Socket, [integer_to_list(N), $\n]) || N <- lists:seq(1, 50)],
        ok = gen_tcp:close(Socket),
        Me ! sent
    end),
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, Backend ++ [{packet, line}, {active, once}]),
    Sum = lines(Socket, 0),
    receive sent -> {Sum, element(1, hd(element(2, inet:getopts(Listens, [active]))))} end.

lines(Socket, Sum) ->
    receive
        {tcp, Socket, Line} ->
            ok = inet:setopts(Socket, [{active, once}]),
            lines(Socket, Sum + list_to_integer(string:trim(Line)));
        {tcp_closed, Socket} -> Sum
    end.

udp() ->
    {ok, Server} = gen_udp:open(0, [binary, {active, true}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Server),
    Asking = [spawn_monitor(fun() ->
        {ok, Socket} = gen_udp:open(0, [binary, {active, false}]),
        ok = gen_udp:send(Socket, {127, 0, 0, 1}, Port, integer_to_binary(N)),
        {ok, {_, _, Answer}} = gen_udp:recv(Socket, 0, 5000),
        exit({answer, binary_to_integer(Answer)})
    end) || N <- lists:seq(1, 4)],
    [receive {udp, Server, Ip, From, N} -> ok = gen_udp:send(Server, Ip, From, integer_to_binary(binary_to_integer(N) * 10)) end
     || _ <- Asking],
    [receive {'DOWN', M, process, P, {answer, N}} -> N end || {P, M} <- Asking].

socket() ->
    {ok, Listens} = socket:open(inet, stream, tcp),
    ok = socket:bind(Listens, #{family => inet, port => 0, addr => loopback}),
    ok = socket:listen(Listens),
    {ok, Address} = socket:sockname(Listens),
    Server = spawn_monitor(fun() ->
        {ok, Socket} = socket:accept(Listens),
        {ok, Data} = socket:recv(Socket, 5),
        ok = socket:send(Socket, [Data, Data]),
        ok = socket:close(Socket)
    end),
    {ok, Socket} = socket:open(inet, stream, tcp),
    ok = socket:connect(Socket, Address),
    ok = socket:send(Socket, <<"hello">>),
    Answer = case socket:recv(Socket, 10, nowait) of
        {ok, Data} -> Data;
        {select, {select_info, _, Handle}} ->
            receive {'$socket', Socket, select, Handle} -> {ok, Data} = socket:recv(Socket, 10), Data end
    end,
    {Pid, Monitor} = Server,
    receive {'DOWN', Monitor, process, Pid, normal} -> {Answer, element(1, socket:recv(Socket, 0))} end.

local_socket() ->
    File = filename:join(witness_otp_program:folder(), "s"),
    {ok, Listens} = gen_tcp:listen(0, [{ifaddr, {local, File}}, binary, {active, false}]),
    spawn_link(fun() ->
        {ok, Socket} = gen_tcp:connect({local, File}, 0, [binary]),
        ok = gen_tcp:send(Socket, <<"there">>),
        receive {tcp_closed, _} -> ok end
    end),
    {ok, Socket} = gen_tcp:accept(Listens),
    {ok, Data} = gen_tcp:recv(Socket, 5),
    Data.

resolver() ->
    {ok, Ip} = inet:getaddr("localhost", inet),
    {ok, {_, _, _, _, _, _, _, _}} = inet:getaddr("::1", inet6),
    {ok, Host} = inet:gethostname(),
    {Ip, Host =/= "", inet:parse_address("10.0.0.1"), inet:ntoa({127, 0, 0, 1}), element(1, inet:getifaddrs())}.
