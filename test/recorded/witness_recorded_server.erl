-module(witness_recorded_server).
-moduledoc "A server with clients that lose patience: late replies, replies from elsewhere, and idle times.".
-behaviour(gen_server).

-import(witness_recorded, [message/2, content/1, timeout/0, monitored/1, either/1, ended/2]).

-export([calls/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

calls() ->
    {ok, Server} = Started = gen_server:start({local, ?MODULE}, ?MODULE, self(), []),
    either([[{spawn, Server}, {message, Server, {ack, Server, Started}}]]),
    Clients = [monitored(fun() -> client(Server, I, 25) end) || I <- [1, 2, 3, 4]],
    [receive {'DOWN', Ref, process, Client, Reason} = Down -> content(Down), ended(Client, Reason) end
     || {Client, Ref} <- Clients],
    Ref = monitor(process, Server),
    Log = call(Server, log, infinity),
    receive {'DOWN', Ref, process, Server, Reason} = Down -> content(Down), ended(Server, Reason) end,
    {length(Log), erlang:phash2(Log)}.

client(_, I, 0) -> exit({done, I});
client(Server, I, N) ->
    ok = gen_server:cast(case N rem 2 of 0 -> ?MODULE; 1 -> Server end, {note, self(), I, N}),
    _ = try call(Server, {work, I, N}, 1) catch exit:{timeout, _} -> timeout end,
    flush(Server),
    client(Server, I, N - 1).

%% A reply may come while the call gives up.
call(Server, Request, Time) ->
    try gen_server:call(Server, Request, Time) of
        Reply ->
            either([[{message, Server, '_'}], [timeout, {message, Server, '_'}]]),
            Reply
    catch
        exit:{timeout, _} = Reason ->
            either([[timeout, timeout], [timeout]]),
            exit(Reason)
    end.

flush(Server) ->
    receive Late -> message(Server, Late), flush(Server) after 0 -> timeout() end.

init(Parent) ->
    witness_recorded:born(Parent),
    {ok, {0, []}}.

handle_call(log, {From, _}, {_, Log}) ->
    message(From, '_'),
    {stop, normal, Log, none};
handle_call({work, I, N}, {From, _} = Client, {K, Log}) ->
    message(From, '_'),
    case (K + I + N) rem 7 of
        0 ->
            timer:sleep(2),
            timeout(),
            {reply, slow, {K + 1, [{slow, I, N} | Log]}};
        1 ->
            gen_server:reply(Client, early),
            {noreply, {K + 1, [{early, I, N} | Log]}, 0};
        2 ->
            _ = erlang:send_after(1, self(), {later, Client}),
            {noreply, {K + 1, [{later, I, N} | Log]}};
        _ -> {reply, K, {K + 1, [{at_once, I, N} | Log]}}
    end.

handle_cast({note, From, I, N}, {K, Log}) ->
    message(From, '_'),
    {noreply, {K, [{note, I, N} | Log]}}.

handle_info({later, {From, _} = Client} = Msg, {K, Log}) ->
    content(Msg),
    gen_server:reply(Client, late),
    {noreply, {K, [{replied, From} | Log]}};
handle_info(timeout, {K, Log}) ->
    timeout(),
    {noreply, {K, [timeout | Log]}}.
