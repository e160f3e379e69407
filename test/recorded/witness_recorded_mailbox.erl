-module(witness_recorded_mailbox).
-moduledoc "Plain processes and their mailboxes.".

-import(witness_recorded, [message/2, content/1, timeout/0, spawned/1, monitored/1, ended/2]).

-export([selective/0, names/0, many/0, ahead/0, aliases/0, asleep/0, requested/0, born/0, tasks/0, relayed/0]).
-export([awake/1, task/2, child/1]).

-define(SENDERS, 5).
-define(ROUNDS, 40).
%% More messages than may be queued for a process before its senders wait.
-define(AHEAD, 5_000).

-doc "Five senders race; the receiver takes what it likes best first, looks without waiting, and waits a moment.".
selective() ->
    Me = self(),
    Senders = [spawned(fun() -> sender(Me, I) end) || I <- lists:seq(1, ?SENDERS)],
    [Pid ! {go, Me} || Pid <- Senders],
    self() ! {low, self(), 0, own},
    Taken = collect(?SENDERS, []),
    {length(Taken), erlang:phash2(Taken)}.

sender(To, I) ->
    receive {go, To} = Go -> message(To, Go) end,
    lists:foreach(fun(N) ->
        To ! {case N rem 3 of 0 -> high; _ -> low end, self(), I, N},
        busy(N * 131 rem 3000)
    end, lists:seq(1, ?ROUNDS)),
    To ! {done, self(), I, none}.

busy(0) -> ok;
busy(N) -> busy(N - 1).

collect(Open, Taken) ->
    receive
        {high, From, _, _} = M -> message(From, M), collect(Open, [M | Taken])
    after 0 ->
        timeout(),
        receive
            {low, From, _, _} = M when From =/= none -> message(From, M), collect(Open, [M | Taken]);
            {done, From, _, _} = M when Open > 1 -> message(From, M), collect(Open - 1, [M | Taken]);
            {done, From, _, _} = M -> message(From, M), rest([M | Taken])
        after 1 ->
            timeout(),
            collect(Open, [timeout | Taken])
        end
    end.

rest(Taken) ->
    receive
        {_, From, _, _} = M -> message(From, M), rest([M | Taken])
    after 0 -> timeout(), lists:reverse(Taken)
    end.

-doc """
Senders that are far ahead of the receiver. First, the receiver waits for a message that comes when a sender has sent
everything. Then two processes send each other very much before they take it. Some of it no process takes.
""".
ahead() ->
    Me = self(),
    Last = spawned(fun() -> receive {all, From} = M -> message(From, M), Me ! {begun, self()} end end),
    First = spawned(fun() -> [Me ! {number, self(), N} || N <- lists:seq(1, ?AHEAD)], Last ! {all, self()} end),
    receive {begun, Last} = Begun -> message(Last, Begun) end,
    Sum = lists:sum([receive {number, First, N} = Took -> message(First, Took), N end || _ <- lists:seq(1, ?AHEAD)]),
    Others = [spawned(fun() -> mutual(Me) end) || _ <- [1, 2]],
    [Pid ! {other, Other} || {Pid, Other} <- lists:zip(Others, lists:reverse(Others))],
    {Sum, [receive {took, Pid, Taken} = Told -> message(Pid, Told), Taken end || Pid <- Others]}.

mutual(Parent) ->
    Other = receive {other, Pid} = M -> message(Parent, M), Pid end,
    [Other ! Msg || N <- lists:seq(1, ?AHEAD), Msg <- [{left, self(), N}, {number, self(), N}]],
    Parent ! {took, self(), lists:sum([receive {number, Other, N} = Took -> message(Other, Took), N end
                                       || _ <- lists:seq(1, ?AHEAD)])}.

-doc "Messages to registered names, of processes that come and go.".
names() ->
    Me = self(),
    lists:map(fun(Round) ->
        {Pid, Ref} = monitored(fun() ->
            true = register(witness_recorded_named, self()),
            Me ! {here, self()},
            named(Round)
        end),
        receive {here, Pid} = Here -> message(Pid, Here) end,
        Asking = [spawned(fun() -> witness_recorded_named ! {hello, self(), I}, asked(Me, Pid) end) || I <- [1, 2, 3]],
        [receive {answered, P, _} = Answer -> message(P, Answer) end || P <- Asking],
        receive {'DOWN', Ref, process, Pid, Reason} = Down -> content(Down), ended(Pid, Reason) end,
        gone = try witness_recorded_named ! late of _ -> there catch error:badarg -> gone end
    end, [1, 2, 3]),
    done.

named(Round) ->
    lists:foreach(fun(_) ->
        receive {hello, From, I} = Hello -> message(From, Hello), From ! {hello_back, self(), I + Round} end
    end, [1, 2, 3]),
    exit({round, Round}).

asked(Me, Named) ->
    receive {hello_back, Named, N} = Back -> message(Named, Back), Me ! {answered, self(), N} end.

-doc "Five thousand processes besides the first one.".
many() ->
    Me = self(),
    Pids = [spawned(fun() -> receive {I, Me} = M -> message(Me, M), Me ! {I, self()} end end)
            || I <- lists:seq(1, 5000)],
    [Pid ! {I, Me} || {I, Pid} <- lists:enumerate(Pids)],
    [receive {_, From} = M -> message(From, M) end || _ <- Pids],
    length(Pids).

-doc "Requests with replies to an alias. Some replies come when no process waits any more.".
aliases() ->
    Server = spawned(fun alias_server/0),
    Replies = [request(Server, N) || N <- lists:seq(1, 60)],
    Ref = monitor(process, Server),
    Server ! stop,
    receive {'DOWN', Ref, process, Server, _} = Down -> content(Down) end,
    {length(Replies), erlang:phash2(Replies)}.

request(Server, N) ->
    Ref = monitor(process, Server, [{alias, reply_demonitor}]),
    Server ! {request, self(), Ref, N},
    receive {Ref, Reply} = M -> message(Server, M), Reply
    after N rem 3 ->
        timeout(),
        demonitor(Ref, [flush]),
        receive {Ref, Reply} = M -> message(Server, M), {late, Reply} after 0 -> timeout(), none end
    end.

alias_server() ->
    receive
        {request, From, Alias, N} = M ->
            message(From, M),
            busy(N * 7919 rem 60000),
            Alias ! {Alias, N * N},
            alias_server();
        stop -> message('_', stop)
    end.

-doc "Processes that hibernate, and wake at a message.".
asleep() ->
    Me = self(),
    Pids = [spawned(fun() -> sleep(Me, How) end)
            || How <- [erlang, proc_lib] ++ [bare || erlang:function_exported(erlang, hibernate, 0)]],
    [begin Pid ! {wake, Me, N}, receive {awake, Pid, N} = M -> message(Pid, M) end end || N <- [1, 2, 3], Pid <- Pids],
    [begin
         Ref = monitor(process, Pid),
         Pid ! {wake, Me, stop},
         receive {'DOWN', Ref, process, Pid, _} = Down -> content(Down) end
     end || Pid <- Pids],
    done.

sleep(Me, erlang) -> erlang:hibernate(?MODULE, awake, [{Me, erlang}]);
sleep(Me, proc_lib) -> proc_lib:hibernate(?MODULE, awake, [{Me, proc_lib}]);
sleep(Me, bare) ->
    ok = erlang:hibernate(),
    awake({Me, bare}).

awake({Me, How}) ->
    receive
        {wake, Me, stop} = M -> message(Me, M);
        {wake, Me, N} = M -> message(Me, M), Me ! {awake, self(), N}, sleep(Me, How)
    end.

-doc "Processes that are spawned by a request. A message tells that they were born.".
requested() ->
    [begin
         Request = spawn_request(?MODULE, child, [self()], [{reply_tag, born}, monitor]),
         {born, Request, ok, Pid} = Born = receive {born, Request, _, _} = M0 -> M0 end,
         witness_recorded:either([[{spawn, Pid}, {content, Born}]]),
         receive {hello, Pid} = M -> message(Pid, M) end,
         receive {'DOWN', Request, process, Pid, Reason} = Down -> content(Down), ended(Pid, Reason) end
     end || _ <- [1, 2, 3]],
    done.

child(Parent) ->
    witness_recorded:born(Parent),
    Parent ! {hello, self()},
    exit(fulfilled).

-doc "Every form of spawn that tells more than a pid, those that fail among them: the next child is that of the next call.".
born() ->
    Self = self(),
    Forms = [fun() -> spawn_monitor(?MODULE, child, [Self]) end,
             fun() -> spawn_monitor(fun() -> child(Self) end) end,
             fun() -> spawn_monitor(node(), ?MODULE, child, [Self]) end,
             fun() -> spawn_opt(?MODULE, child, [Self], [monitor, {priority, low}]) end,
             fun() -> requested(spawn_request(fun() -> child(Self) end, [monitor])) end,
             fun() -> requested(spawn_request(node(), ?MODULE, child, [Self], [monitor])) end],
    lists:foreach(fun(Form) ->
        failed = try spawn_monitor(?MODULE, child, not_a_list()) catch error:badarg -> failed end,
        %% Of this one only the reply says that there is no child.
        Wrong = spawn_request(?MODULE, child, [Self], [{no_such_option, 1}]),
        receive {spawn_reply, Wrong, error, badopt} = No -> content(No) end,
        {Pid, Ref} = Form(),
        witness_recorded:either([[{spawn, Pid}], [{spawn, Pid}, {content, {spawn_reply, Ref, ok, Pid}}]]),
        receive {hello, Pid} = M -> message(Pid, M) end,
        receive {'DOWN', Ref, process, Pid, Reason} = Down -> content(Down), ended(Pid, Reason) end
    end, Forms),
    length(Forms).

requested(Request) -> receive {spawn_reply, Request, ok, Pid} -> {Pid, Request} end.

not_a_list() -> hd([improper]).

-doc "Processes of proc_lib, which tell that they have begun.".
tasks() ->
    [begin
         {ok, Pid} = Started = proc_lib:start_link(?MODULE, task, [self(), N]),
         witness_recorded:either([[{spawn, Pid}, {message, Pid, {ack, Pid, Started}}]]),
         receive {task, Pid, Square} = M -> message(Pid, M), Square end
     end || N <- [1, 2, 3]].

task(Parent, N) ->
    witness_recorded:born(Parent),
    proc_lib:init_ack({ok, self()}),
    Parent ! {task, self(), N * N}.

-doc "A process with code that is not woven hands messages on: they are its own, not those of the processes that wrote to it.".
relayed() ->
    Me = self(),
    Relay = spawned(fun() -> witness_recorded_relay:relay(Me) end),
    Writers = [spawned(fun() -> [Relay ! {note, self(), N} || N <- [1, 2, 3]] end) || _ <- [1, 2]],
    [receive {relayed, {note, Writer, _}} = M -> message(Relay, M) end || Writer <- Writers, _ <- [1, 2, 3]],
    Ref = monitor(process, Relay),
    Relay ! stop,
    receive {'DOWN', Ref, process, Relay, _} = Down -> content(Down) end,
    done.
