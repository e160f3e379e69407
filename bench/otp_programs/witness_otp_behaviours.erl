-module(witness_otp_behaviours).
-moduledoc "Programs with OTP's behaviours.".

-export([server/0, server_timeouts/0, server_requests/0, server_crashes/0, server_enters_loop/0, machine/0, events/0, one_for_one/0,
         one_for_all/0, rest_for_one/0, simple_one_for_one/0, gives_up/0, proc_lib/0, sys/0, change_code/0, application/0,
         hibernates/0]).

server() ->
    {ok, Server} = witness_otp_server:start_link({counter, 0}),
    _ = witness_otp_program:each(fun(N) -> gen_server:cast(counter, {add, N}), gen_server:call(counter, get) > 0 end,
                                 lists:seq(1, 20)),
    N = gen_server:call(Server, get),
    ok = gen_server:stop(Server),
    {N, whereis(counter)}.

server_timeouts() ->
    {ok, Server} = witness_otp_server:start_link(5),
    Late = try gen_server:call(Server, {later, 60}, 10) catch exit:{timeout, _} -> late end,
    {Late, gen_server:call(Server, {later, 5}, infinity), catch gen_server:call(nobody_is_there, get)}.

server_requests() ->
    Servers = [element(2, witness_otp_server:start_link(N)) || N <- lists:seq(1, 5)],
    Ids = lists:foldl(fun(S, Ids) -> gen_server:send_request(S, {later, 3}, S, Ids) end, gen_server:reqids_new(), Servers),
    Sum = requests(Ids, 0),
    {Sum, [gen_server:call(S, stop) || S <- Servers], gen_server:multi_call([node()], nobody, get, 100)}.

requests(Ids, Sum) ->
    case gen_server:receive_response(Ids, 5000, true) of
        {{reply, N}, _, Rest} -> requests(Rest, Sum + N);
        no_request -> Sum
    end.

server_crashes() ->
    process_flag(trap_exit, true),
    {ok, Server} = witness_otp_server:start_link(0),
    {'EXIT', {{crash, _}, _}} = catch gen_server:call(Server, crash),
    receive {'EXIT', Server, {crash, _}} -> {down, is_process_alive(Server)} end.

server_enters_loop() ->
    Me = self(),
    Pid = proc_lib:spawn_link(fun() ->
        true = register(loops, self()),
        ok = proc_lib:init_ack(Me, {ok, self()}),
        gen_server:enter_loop(witness_otp_server, [], 7, {local, loops}, 5)
    end),
    receive {ack, Pid, {ok, Pid}} -> ok end,
    receive after 30 -> ok end,
    gen_server:call(Pid, stop) >= 7.

machine() ->
    {ok, Lock} = gen_statem:start_link(witness_otp_lock, [1, 2, 3], []),
    Passed = spawn_monitor(fun() -> exit(gen_statem:call(Lock, pass)) end),
    [gen_statem:cast(Lock, {button, B}) || B <- [1, 2, 2, 1, 2, 3, 1, 2, 3]],
    {Pid, Monitor} = Passed,
    Answer = receive {'DOWN', Monitor, process, Pid, Is} -> Is end,
    receive after 80 -> ok end,
    Opened = gen_statem:call(Lock, opened),
    ok = gen_statem:stop(Lock),
    {Answer, Opened}.

events() ->
    {ok, Manager} = gen_event:start_link(),
    ok = gen_event:add_handler(Manager, witness_otp_handler, 0),
    ok = gen_event:add_handler(Manager, {witness_otp_handler, second}, 100),
    _ = witness_otp_program:each(fun(N) -> gen_event:sync_notify(Manager, N) end, lists:seq(1, 10)),
    ok = gen_event:notify(Manager, 5),
    Manager ! 7,
    Sum = gen_event:call(Manager, witness_otp_handler, sum),
    ok = gen_event:swap_handler(Manager, {witness_otp_handler, swap}, {{witness_otp_handler, new}, first}),
    Swapped = gen_event:call(Manager, {witness_otp_handler, new}, sum),
    ok = gen_event:add_sup_handler(Manager, {witness_otp_handler, supervised}, 0),
    gen_event:notify(Manager, gone),
    Gone = receive {gen_event_EXIT, {witness_otp_handler, supervised}, Why} -> Why end,
    {Sum, Swapped, Gone, gen_event:which_handlers(Manager)}.

worker(Id) -> #{id => Id, start => {witness_otp_server, start_link, [{Id, 0}]}}.

%% Kills the second child, waits until it is there again, and reports which children are new.
restarted(Strategy) ->
    Ids = [one, two, three],
    {ok, Tree} = supervisor:start_link(witness_otp_tree, {#{strategy => Strategy}, [worker(Id) || Id <- Ids]}),
    Before = [whereis(Id) || Id <- Ids],
    Monitors = [monitor(process, Pid) || Pid <- Before],
    exit(whereis(two), kill),
    Monitor = lists:nth(2, Monitors),
    receive {'DOWN', Monitor, process, _, killed} -> ok end,
    [_, _, _] = [Pid || {_, Pid, worker, _} <- supervisor:which_children(Tree), is_pid(Pid)],
    After = [whereis(Id) || Id <- Ids],
    Counts = supervisor:count_children(Tree),
    unlink(Tree),
    exit(Tree, shutdown),
    [receive {'DOWN', M, process, _, _} -> ok end || M <- [monitor(process, Pid) || Pid <- [Tree | After]]],
    {[A =/= B || {A, B} <- lists:zip(Before, After)], lists:sort(Counts)}.

one_for_one() -> restarted(one_for_one).
one_for_all() -> restarted(one_for_all).
rest_for_one() -> restarted(rest_for_one).

simple_one_for_one() ->
    Child = #{id => any, start => {witness_otp_server, start_link, []}, restart => transient},
    {ok, Tree} = supervisor:start_link(witness_otp_tree, {#{strategy => simple_one_for_one}, [Child]}),
    Pids = [element(2, supervisor:start_child(Tree, [N])) || N <- lists:seq(1, 30)],
    [ok = supervisor:terminate_child(Tree, Pid) || Pid <- lists:sublist(Pids, 10)],
    Sum = lists:sum(witness_otp_program:each(fun(Pid) -> gen_server:call(Pid, get) end, lists:nthtail(10, Pids))),
    {Sum, proplists:get_value(active, supervisor:count_children(Tree))}.

%% More restarts than are allowed.
gives_up() ->
    process_flag(trap_exit, true),
    {ok, Tree} = supervisor:start_link(witness_otp_tree, {#{intensity => 2, period => 60}, [worker(one)]}),
    Kills = kills(0),
    receive {'EXIT', Tree, Reason} -> {Kills, Reason} end.

kills(N) ->
    case whereis(one) of
        undefined when N >= 3 -> N;
        undefined -> receive after 1 -> kills(N) end;
        Pid ->
            Monitor = monitor(process, Pid),
            exit(Pid, kill),
            receive {'DOWN', Monitor, process, Pid, _} -> kills(N + 1) end
    end.

proc_lib() ->
    process_flag(trap_exit, true),
    {ok, Pid} = proc_lib:start_link(erlang, apply,
                                    [fun() ->
                                        proc_lib:init_ack({ok, self()}),
                                        receive {Who, what} -> Who ! get('$initial_call') end
                                    end, []]),
    Pid ! {self(), what},
    Call = receive {erlang, apply, 2} = Is -> Is; {_, _, _} = Is -> Is end,
    Failed = proc_lib:start(erlang, apply, [fun() -> proc_lib:init_fail({error, no}, {exit, normal}) end, []]),
    Timeout = proc_lib:start(timer, sleep, [infinity], 20),
    {Crashing, Monitor} = proc_lib:spawn_opt(fun() -> error(wrong) end, [monitor]),
    Crash = receive {'DOWN', Monitor, process, Crashing, {wrong, _}} -> crashed end,
    {Call, Failed, Timeout, Crash}.

sys() ->
    {ok, Server} = witness_otp_server:start_link(0),
    ok = sys:statistics(Server, true),
    ok = sys:log(Server, true),
    ok = sys:suspend(Server),
    gen_server:cast(Server, {add, 5}),
    ok = sys:resume(Server),
    6 = gen_server:call(Server, get),
    _ = sys:replace_state(Server, fun(N) -> N * 2 end),
    {ok, Statistics} = sys:statistics(Server, get),
    {ok, Log} = sys:log(Server, get),
    {status, Server, _, _} = sys:get_status(Server),
    ok = sys:install(Server, {fun(Count, {in, _}, _) -> Count + 1; (Count, _, _) -> Count end, 0}),
    {sys:get_state(Server), proplists:get_value(messages_in, Statistics), length(Log)}.

change_code() ->
    {ok, Server} = witness_otp_server:start_link(1),
    ok = sys:suspend(Server),
    ok = sys:change_code(Server, witness_otp_server, old, 40),
    ok = sys:resume(Server),
    gen_server:call(Server, get).

application() ->
    Tree = {#{strategy => one_for_all}, [worker(one), worker(two)]},
    ok = application:load({application, witness_otp_made, [{description, "made"}, {vsn, "1"}, {modules, []}, {registered, []},
                                                             {applications, [kernel, stdlib]}, {env, [{size, 3}]},
                                                             {mod, {witness_otp_tree, Tree}}]}),
    ok = application:set_env(witness_otp_made, size, 4),
    {ok, Started} = application:ensure_all_started(witness_otp_made),
    N = gen_server:call(two, get) + application:get_env(witness_otp_made, size, 0),
    ok = application:stop(witness_otp_made),
    ok = application:unload(witness_otp_made),
    {Started, N, persistent_term:get(witness_otp_tree), whereis(one)}.

hibernates() ->
    {ok, Server} = witness_otp_server:start_link(1),
    2 = gen_server:call(Server, hibernate),
    gen_server:cast(Server, {add, 1}),
    Me = self(),
    Pid = spawn(fun() -> proc_lib:hibernate(erlang, apply, [fun() -> receive N -> Me ! {woken, N} end end, []]) end),
    Pid ! 11,
    receive {woken, N} -> N + gen_server:call(Server, get) end.
