-module(witness_otp_processes).
-moduledoc "Programs with processes, signals, timers and groups.".

-export([timers/0, timer_module/0, late_messages/0, aliases/0, priority_messages/0, monitors_of_names/0, links/0, exit_signals/0,
         kills/0,
         heap_limits/0, spawn_options/0, spawn_requests/0, process_information/0, group_leaders/0, input_output_server/0,
         process_groups/0, global_names/0,
         remote_calls/0, erpc_calls/0, names/0, traces/0, trace_sessions/0, suspended/0, ports_monitored/0, system_monitor/0,
         many_processes/0, labels/0, tags/0, slots_and_schedulers/0, garbage/0]).

timers() ->
    Ref = erlang:start_timer(10, self(), first),
    Long = erlang:send_after(60000, self(), never),
    At = erlang:send_after(erlang:monotonic_time(millisecond) + 20, self(), second, [{abs, true}]),
    Left = erlang:read_timer(Long),
    A = receive {timeout, Ref, first} -> 1 end,
    B = receive second -> 2 end,
    {A + B, is_integer(erlang:cancel_timer(Long)), erlang:cancel_timer(At), Left > 50000,
     erlang:cancel_timer(erlang:start_timer(5000, self(), x), [{async, true}, {info, false}])}.

timer_module() ->
    {ok, _} = timer:send_after(5, once),
    {ok, Each} = timer:send_interval(3, tick),
    {ok, _} = timer:apply_after(4, erlang, send, [self(), applied]),
    receive once -> ok end,
    receive applied -> ok end,
    [receive tick -> ok end || _ <- lists:seq(1, 4)],
    {ok, cancel} = timer:cancel(Each),
    {Micros, Sum} = timer:tc(fun() -> lists:sum(lists:seq(1, 1000)) end),
    {Sum, Micros >= 0, timer:hms(1, 2, 3)}.

late_messages() ->
    Me = self(),
    Pids = [spawn(fun() -> receive after N -> Me ! {N, self()} end end) || N <- [0, 1, 2, 3, 5, 8]],
    gather(3, length(Pids)).

gather(_, 0) -> [];
gather(Ms, N) ->
    receive {K, _} -> [K | gather(Ms, N - 1)]
    after Ms -> [late | gather(Ms + 1, N)]
    end.

aliases() ->
    Reply = alias([reply]),
    Always = alias(),
    Pid = spawn(fun() -> receive {Alias, Other} -> Alias ! {Alias, 1}, Alias ! {Alias, 2}, Other ! {Other, 3} end end),
    Pid ! {Reply, Always},
    One = receive {Reply, N} -> N end,
    Three = receive {Always, M} -> M end,
    true = unalias(Always),
    Always ! lost,
    Nothing = receive Message -> Message after 10 -> nothing end,
    Monitor = monitor(process, Pid, [{alias, demonitor}, {tag, ended}]),
    {One, Three, Nothing, receive {ended, Monitor, process, Pid, Reason} -> Reason end}.

priority_messages() ->
    case erlang:system_info(otp_release) >= "28" of
        false -> too_old;
        true ->
            Urgent = apply(erlang, alias, [[priority]]),
            [self() ! {plain, N} || N <- lists:seq(1, 5)],
            _ = erlang:send(Urgent, urgent, [priority]),
            Pid = spawn(fun() -> ok end),
            _ = erlang:monitor(process, Pid, [priority]),
            First = receive M1 -> M1 end,
            receive {'DOWN', _, process, Pid, _} -> ok end,
            Second = receive M2 -> M2 end,
            {First, Second}
    end.

monitors_of_names() ->
    Pid = spawn(fun() -> receive stop -> exit(stopped) end end),
    register(named, Pid),
    Monitors = [monitor(process, named), monitor(process, {named, node()}), monitor(process, nobody)],
    named ! stop,
    Ends = [receive {'DOWN', M, process, What, Why} -> {What, Why} end || M <- Monitors],
    Other = spawn(fun() -> receive stop -> ok end end),
    Another = monitor(process, Other),
    Was = demonitor(Another, [flush, info]),
    Other ! stop,
    {Ends, Was}.

links() ->
    process_flag(trap_exit, true),
    Me = self(),
    Chain = fun Chain(0) -> Me ! {last, self()}, receive stop -> exit(broken) end;
                Chain(N) -> spawn_link(fun() -> Chain(N - 1) end), receive never -> ok end
            end,
    First = spawn_link(fun() -> Chain(10) end),
    receive {last, Last} -> Last ! stop end,
    Why = receive {'EXIT', First, Reason} -> Reason end,
    Missing = link_to(First),
    {Why, Missing}.

link_to(Pid) ->
    try link(Pid) of true -> receive {'EXIT', Pid, Reason} -> Reason end
    catch error:noproc -> raised end.

exit_signals() ->
    [begin
        {Pid, Monitor} =
            spawn_monitor(fun() ->
                process_flag(trap_exit, Traps),
                receive {'EXIT', _, R} -> exit({trapped, R}); go -> exit(went) end
            end),
        receive after 3 -> ok end,
        exit(Pid, Reason),
        Pid ! go,
        receive {'DOWN', Monitor, process, Pid, Is} -> {Traps, Reason, Is} end
     end || Traps <- [true, false], Reason <- [normal, shutdown, kill, {some, term}]].

%% The processes are killed anywhere in their work.
kills() ->
    Me = self(),
    Busy = fun Busy(N) -> Me ! {self(), N}, erlang:yield(), Busy(N + 1) end,
    Workers = [spawn_monitor(fun() -> Busy(0) end) || _ <- lists:seq(1, 5)],
    [receive {Pid, 10} -> exit(Pid, kill) end || {Pid, _} <- Workers],
    [receive {'DOWN', M, process, P, Why} -> Why end || {P, M} <- Workers].

heap_limits() ->
    Grow = fun Grow(List) -> Grow([make_ref() | List]) end,
    {Pid, Monitor} = spawn_opt(fun() -> Grow([]) end,
                               [monitor, {max_heap_size, #{size => 50000, kill => true, error_logger => false}}]),
    receive {'DOWN', Monitor, process, Pid, Why} -> Why end.

spawn_options() ->
    {Pid, Monitor} = spawn_opt(fun() -> receive N -> exit(N + 1) end end,
                               [link, {monitor, [{tag, 'GONE'}]}, {priority, high}, {min_heap_size, 1000},
                                {message_queue_data, off_heap}]),
    unlink(Pid),
    {priority, Priority} = process_info(Pid, priority),
    Pid ! 3,
    receive {'GONE', Monitor, process, Pid, Is} -> {Is, Priority} end.

spawn_requests() ->
    Ok = spawn_request(fun() -> receive go -> ok end end, [monitor, {reply_tag, born}]),
    Pid = receive {born, Ok, ok, P} -> P end,
    Pid ! go,
    receive {'DOWN', Ok, process, Pid, normal} -> ok end,
    Given = spawn_request(node(), erlang, self, [], [{reply, error_only}]),
    Wrong = spawn_request(nowhere@nohost, erlang, self, [], [{reply_tag, born}]),
    {spawn_request_abandon(Given), receive {born, Wrong, error, Why} -> Why end}.

process_information() ->
    Pid = spawn(fun() -> receive stop -> ok end end),
    [Pid ! N || N <- lists:seq(1, 5)],
    receive after 5 -> ok end,
    [{message_queue_len, Length}, {status, Status},
     {current_function, _}] = process_info(Pid, [message_queue_len, status, current_function]),
    {messages, Messages} = process_info(Pid, messages),
    Alive = lists:member(Pid, processes()),
    Pid ! stop,
    {Length, Status, Messages, Alive, length(process_info(self())) > 5, erlang:process_display(self(), backtrace)}.

group_leaders() ->
    Me = self(),
    Leader = spawn_link(fun() -> lead(Me, 0) end),
    Pid = spawn(fun() ->
        group_leader(Leader, self()),
        io:format("~s ~b~n", ["text", 5]),
        Name = io:get_line("name? "),
        Me ! {name, Name}
    end),
    Name = receive {name, Is} -> Is end,
    Leader ! {Me, count},
    receive {count, N} -> {Name, N, is_process_alive(Pid)} end.

lead(Me, N) ->
    receive
        {io_request, From, As, {put_chars, _, M, F, A}} -> _ = apply(M, F, A), From ! {io_reply, As, ok}, lead(Me, N + 1);
        {io_request, From, As, {put_chars, _, _}} -> From ! {io_reply, As, ok}, lead(Me, N + 1);
        {io_request, From, As, {get_line, _, _}} -> From ! {io_reply, As, "somebody\n"}, lead(Me, N);
        {Me, count} -> Me ! {count, N}
    end.

input_output_server() ->
    File = filename:join(witness_otp_program:folder(), "text"),
    ok = file:write_file(File, "12 abc {term, [1,2]}.\nlast\n"),
    {ok, Device} = file:open(File, [read, write]),
    {ok, [N, Word]} = io:fread(Device, "", "~d ~s"),
    {ok, Term} = io:read(Device, ''),
    _ = io:get_line(Device, ''),
    Line = io:get_line(Device, ''),
    ok = io:put_chars(Device, "more"),
    ok = io:format("~ts: ~w ~p~n", ["what", N, Term]),
    {N, Word, Term, Line, io:get_chars(Device, '', 10), io:columns(Device)}.

process_groups() ->
    {ok, _} = pg:start_link(mine),
    {Monitor, []} = pg:monitor(mine, workers),
    Pids = [spawn(fun() -> receive {From, N} -> From ! N * 2 end end) || _ <- lists:seq(1, 4)],
    ok = pg:join(mine, workers, Pids),
    receive {Monitor, join, workers, Pids} -> ok end,
    Members = pg:get_members(mine, workers),
    [Pid ! {self(), 5} || Pid <- Members],
    Sum = lists:sum([receive N -> N end || _ <- Members]),
    [receive {Monitor, leave, workers, [_]} -> ok end || _ <- Members],
    {Sum, pg:get_local_members(mine, workers), pg:which_groups(mine)}.

global_names() ->
    Pid = spawn(fun() -> receive {From, Text} -> From ! string:uppercase(Text) end end),
    yes = global:register_name(shouter, Pid),
    _ = global:send(shouter, {self(), "hello"}),
    Answer = receive Text -> Text end,
    Locked = witness_otp_program:each(fun(N) -> global:trans({lock, self()}, fun() -> N * N end, [node()]) end, lists:seq(1, 4)),
    {Answer, lists:sum(Locked), global:whereis_name(nobody)}.

remote_calls() ->
    Answers = [rpc:call(node(), lists, sum, [[1, 2, N]]) || N <- lists:seq(1, 3)],
    Key = rpc:async_call(node(), lists, reverse, [[a, b]]),
    {badrpc, {'EXIT', {badarith, _}}} = rpc:call(node(), erlang, '+', [a, 1]),
    {Answers, rpc:yield(Key), rpc:multicall([node()], erlang, length, [[1]]), rpc:call(nowhere@nohost, erlang, node, []),
     rpc:pmap({lists, sum}, [], [[1], [2, 3]]), rpc:block_call(node(), erlang, abs, [-4], 1000)}.

erpc_calls() ->
    Sum = erpc:call(node(), fun() -> lists:sum(lists:seq(1, 10)) end),
    Request = erpc:send_request(node(), erlang, apply, [fun() -> receive after 5 -> done end end, []]),
    Waited = erpc:wait_response(Request, 0),
    Done = case Waited of no_response -> erpc:receive_response(Request, 5000); {response, Is} -> Is end,
    Failed = try erpc:call(node(), erlang, error, [wrong]) catch error:{exception, wrong, _} -> wrong end,
    Late = try erpc:call(node(), timer, sleep, [1000], 5) catch error:{erpc, timeout} -> late end,
    {Sum, Done, Failed, Late, erpc:multicall([node()], erlang, abs, [-3]),
     try erpc:call(nowhere@nohost, erlang, self, []) catch error:{erpc, Why} -> Why end}.

names() ->
    Winners = witness_otp_program:each(fun(N) ->
        try register(only, self()) of true -> receive after 10 -> {won, N =< 8} end catch error:badarg -> lost end
    end, lists:seq(1, 8)),
    {lists:sort(Winners), whereis(only), lists:member(init, registered()), catch (nobody ! hello)}.

traces() ->
    Pid = spawn(fun() -> receive N -> lists:reverse([N]) end end),
    1 = erlang:trace(Pid, true, [call, 'receive']),
    1 = erlang:trace_pattern({lists, reverse, 1}, true, [global]),
    Pid ! 5,
    A = receive {trace, Pid, 'receive', N} -> N after 1000 -> nothing end,
    {A, receive {trace, Pid, call, {lists, reverse, _}} -> called after 1000 -> nothing end}.

trace_sessions() ->
    Session = trace:session_create(mine, self(), []),
    Pid = spawn(fun() -> receive N -> lists:reverse([N]) end end),
    1 = trace:process(Session, Pid, true, [call, procs]),
    _ = trace:function(Session, {lists, reverse, 1}, true, []),
    Pid ! 5,
    Seen = receive {trace, Pid, call, {lists, reverse, [[5]]}} -> called after 1000 -> nothing end,
    Exit = receive {trace, Pid, exit, normal} -> ended after 1000 -> nothing end,
    {Seen, Exit, trace:session_destroy(Session)}.

suspended() ->
    Me = self(),
    Pid = spawn(fun() -> receive N -> Me ! {got, N} end end),
    true = erlang:suspend_process(Pid),
    Pid ! 4,
    Nothing = receive {got, _} -> too_early after 20 -> nothing end,
    true = erlang:resume_process(Pid),
    {Nothing, receive {got, N} -> N end}.

ports_monitored() ->
    Port = open_port({spawn, "cat"}, [binary]),
    Monitor = monitor(port, Port),
    true = port_command(Port, <<"hello">>),
    Data = receive {Port, {data, D}} -> D end,
    true = port_close(Port),
    {Data, receive {'DOWN', Monitor, port, Port, Why} -> Why end}.

system_monitor() ->
    _ = erlang:system_monitor(self(), [{large_heap, 200000}]),
    Pid = spawn(fun() -> List = lists:seq(1, 400000), receive stop -> length(List) end end),
    Seen = receive {monitor, Pid, large_heap, _} -> large after 5000 -> nothing end,
    _ = erlang:system_monitor(undefined),
    Pid ! stop,
    Seen.

many_processes() ->
    Me = self(),
    Ring = lists:foldl(fun(_, Next) -> spawn(fun() -> receive N -> Next ! N + 1 end end) end, Me, lists:seq(1, 3000)),
    Ring ! 0,
    receive N -> N end.

labels() ->
    Pid = proc_lib:spawn(fun() -> proc_lib:set_label({worker, 1}), receive {From, go} -> From ! done end end),
    receive after 5 -> ok end,
    Label = proc_lib:get_label(Pid),
    Pid ! {self(), go},
    {Label, receive done -> done end, proc_lib:initial_call(Pid)}.

tags() ->
    Pid = spawn(fun() -> receive {From, Ref} -> From ! {Ref, erlang:phash2(Ref) > 0, node(Ref)} end end),
    Refs = [make_ref() || _ <- lists:seq(1, 100)],
    Ref = lists:nth(50, Refs),
    Pid ! {self(), Ref},
    {receive {Ref, Is, Node} -> {Is, Node} end, lists:sort(Refs) =:= Refs, erlang:ref_to_list(Ref) =/= "",
     length(lists:usort([erlang:unique_integer() || _ <- Refs]))}.

slots_and_schedulers() ->
    {erlang:system_info(schedulers) > 0, erlang:system_info(process_count) > 5, length(erlang:ports()) > 0,
     element(1, erlang:statistics(reductions)) > 0, erlang:memory(total) > 1000, is_integer(erlang:system_time()),
     tuple_size(erlang:timestamp()),
     is_list(erlang:system_info(version))}.

garbage() ->
    Pids = [spawn(fun() -> receive {From, go} -> From ! byte_size(binary:copy(<<"x">>, 10000)) end end) || _ <- [1, 2, 3]],
    [true = erlang:garbage_collect(Pid) || Pid <- Pids],
    Pid = hd(Pids),
    async = erlang:garbage_collect(Pid, [{async, me}]),
    receive {garbage_collect, me, true} -> ok end,
    [P ! {self(), go} || P <- Pids],
    {lists:sum([receive N -> N end || _ <- Pids]), erlang:garbage_collect()}.
