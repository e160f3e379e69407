-module(witness_trace_cases).
-moduledoc """
For tests: systems, and the events that every source has of them.

A source here is a function: given what a process does after the message `go`, and what the test does meanwhile, it returns
the process and the events of it and of its descendants, decoded and with signatures, in an order that respects that of
each process, but without the `init` of the process itself.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-type source() :: fun((fun(() -> term()), Meanwhile :: fun((pid()) -> term())) -> {pid(), [witness_event:event()]}).
-export_type([source/0]).

events(Source, Fun) -> Source(Fun, fun(_) -> ok end).
events(Source, Fun, Meanwhile) -> Source(Fun, Meanwhile).

%% A process that has ended.
gone() ->
    {P, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, P, _} -> P end.

birth_to_exit(Source) ->
    Self = self(),
    {P, Events} = events(Source, fun() ->
        {C, Ref} = spawn_monitor(fun() -> receive Self -> exit(why) end end),
        C ! Self,
        receive {'DOWN', Ref, process, C, why} -> C end
    end),
    [C] = [C || {fork, _, C, _, _} <- Events, C =/= P],
    Of = fun(Q) -> [E || E <- Events, element(2, E) =:= Q] end,
    ?assertMatch([{init, C, P, {?MODULE, _, []}, undefined}, {recv, C, P, Self, undefined}, {exit, C, why, undefined}],
                 Of(C)),
    ?assertMatch([{recv, P, _, go, _}, {fork, P, C, {?MODULE, _, []}, _}, {send, P, C, Self, _},
                  {recv, P, C, {'DOWN', _, process, C, why}, _}, {exit, P, normal, _}], Of(P)).

sends(Source) ->
    register(?MODULE, self()),
    Me = self(),
    Gone = gone(),
    Alias = alias(),
    {P, Events} = events(Source, fun() ->
        Me ! pid, ?MODULE ! name, {?MODULE, node()} ! remote_name, Gone ! nobody, Alias ! alias,
        self() ! own, receive own -> ok end, erlang:send(Me, send3, [noconnect]), erlang:send_nosuspend(Me, nosuspend),
        try no_such_name ! lost catch error:badarg -> ok end
    end),
    unregister(?MODULE),
    ?assertEqual([{Me, pid}, {?MODULE, name}, {{?MODULE, node()}, remote_name}, {Gone, nobody}, {Alias, alias},
                  {P, own}, {Me, send3}, {Me, nosuspend}],
                 [{To, M} || {send, Q, To, M, _} <- Events, Q =:= P, M =/= lost]),
    ?assertMatch([{recv, _, P, own, _}], [E || {recv, _, _, own, _} = E <- Events]),
    [receive M -> ok end || M <- [pid, name, remote_name, alias, send3, nosuspend]].

receives(Source) ->
    Me = self(),
    {P, Events} = events(Source, fun() ->
        register(witness_trace_cases_receiver, self()),
        Alias = alias(),
        Me ! {ready, self(), Alias},
        receive last -> ok end
    end, fun(P) ->
        Alias = receive {ready, P, A} -> A end,
        P ! pid, witness_trace_cases_receiver ! name, Alias ! alias, P ! last
    end),
    ?assertEqual([{Me, pid}, {Me, name}, {Me, alias}, {Me, last}],
                 [{From, M} || {recv, Q, From, M, _} <- Events, Q =:= P, M =/= go]).

%% What the VM itself sends has a process as its sender where it is about one.
system_messages(Source) ->
    Gone = gone(),
    {P, Events} = events(Source, fun() ->
        process_flag(trap_exit, true),
        Ref = monitor(process, Gone),
        receive {'DOWN', Ref, _, _, noproc} -> ok end,
        C = spawn_link(fun() -> exit(why) end),
        receive {'EXIT', C, why} -> ok end,
        erlang:send_after(0, self(), after_0),
        receive after_0 -> ok end,
        T = erlang:start_timer(0, self(), timer),
        receive {timeout, T, timer} -> ok end,
        Port = open_port({spawn, "echo hi"}, [exit_status]),
        receive {Port, {data, _}} -> ok end,
        receive {Port, {exit_status, 0}} -> ok end,
        ok
    end),
    Seen = [{M, From} || {recv, Q, From, M, _} <- Events, Q =:= P, M =/= go],
    [C] = [C || {fork, Q, C, _, _} <- Events, Q =:= P],
    ?assertEqual(Gone, proplists:get_value(down, [{down, F} || {{'DOWN', _, _, _, _}, F} <- Seen])),
    ?assertEqual([C], [F || {{'EXIT', Q, why}, F} <- Seen, Q =:= C]),
    ?assertEqual([undefined], [F || {after_0, F} <- Seen]),
    ?assertEqual([undefined], [F || {{timeout, _, timer}, F} <- Seen]),
    ?assertMatch([_, _], [F || {{Port, {_, _}}, F} <- Seen, is_port(Port), F =:= Port]).

a_gen_server_replies_to_an_alias(Source) ->
    {P, Events} = events(Source, fun() ->
        {ok, Server} = gen_server:start(?MODULE, [arg], []),
        pong = gen_server:call(Server, ping),
        gen_server:stop(Server)
    end),
    [{fork, P, S, Signature, _}] = [E || {fork, Q, _, _, _} = E <- Events, Q =:= P],
    ?assertEqual({?MODULE, init, [[arg]]}, Signature),
    ?assertMatch([{init, S, P, Signature, _}], [E || {init, Q, _, _, _} = E <- Events, Q =:= S]),
    [{Asker, Tag}] = [From || {recv, Q, P1, {'$gen_call', From, ping}, _} <- Events, Q =:= S, P1 =:= P],
    ?assertEqual(P, Asker),
    [Alias] = [A || {send, Q, A, {T, pong}, _} <- Events, Q =:= S, T =:= Tag],
    ?assert(is_reference(Alias)),
    ?assertEqual([S], [From || {recv, Q, From, {T, pong}, _} <- Events, Q =:= P, T =:= Tag]).

an_expired_after_is_no_event(Source) ->
    %% Loading code is done by message.
    [{module, _} = code:ensure_loaded(M) || M <- [timer, gen_server]],
    {P, Events} = events(Source, fun() ->
        receive never -> ok after 0 -> ok end,
        receive never -> ok after 1 -> ok end,
        timer:sleep(1),
        Silent = spawn(fun() -> receive stop -> ok end end),
        try gen_server:call(Silent, request, 1) catch exit:{timeout, _} -> ok end,
        Silent ! stop,
        receive go_on -> ok after 0 -> ok end
    end),
    ?assertMatch([{recv, _, _, go, _}], [E || {recv, Q, _, _, _} = E <- Events, Q =:= P]).

a_message_timeout_of_a_process_is(Source) ->
    Me = self(),
    {P, Events} = events(Source, fun() -> receive timeout -> ok end end, fun(P) -> P ! timeout end),
    ?assertMatch([{recv, P, Me, timeout, _}], [E || {recv, Q, _, timeout, _} = E <- Events, Q =:= P]).

signatures_are_what_the_author_wrote(Source) ->
    {P, Events} = events(Source, fun() ->
        Wait = fun(Q) -> Ref = monitor(process, Q), receive {'DOWN', Ref, _, _, _} -> ok end end,
        Wait(spawn(?MODULE, nothing, [1])),
        Wait(proc_lib:spawn(?MODULE, nothing, [2])),
        Wait(erlang:spawn(?MODULE, nothing, [3]))
    end),
    ?assertEqual([{?MODULE, nothing, [N]} || N <- [1, 2, 3]], [S || {fork, Q, _, S, _} <- Events, Q =:= P]),
    ?assertEqual([{?MODULE, nothing, [N]} || N <- [1, 2, 3]], lists:sort([S || {init, _, Q, S, _} <- Events, Q =:= P])).

nothing(_) -> ok.

init(Arg) -> {ok, Arg}.
handle_call(ping, _, S) -> {reply, pong, S}.
handle_cast(_, S) -> {noreply, S}.
