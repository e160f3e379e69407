-module(witness_checks_system).
-moduledoc """
Systems with one fault each that no specification names, and their repaired twins (`m:witness_checks_SUITE`).

In a faulty one, the process at fault says so before it goes wrong (`at_fault/0`). The others wait for its end without a process
monitor, by which they would be told of it.
""".
-behaviour(gen_server).

-compile(export_all).

-doc "The process at fault of the last system that had one.".
at_fault() -> persistent_term:get(?MODULE).

is_at_fault() -> persistent_term:put(?MODULE, self()).

%% --- crashes that nothing handles ----------------------------------------------------

nothing_is_linked() ->
    ends(spawn(fun() -> is_at_fault(), error(oops) end)).

an_exception_is_not_caught() ->
    ends(spawn(fun() -> is_at_fault(), throw(not_found) end)).

%% The parent has no part in it but its link.
a_link_passes_it_on() ->
    Parent = spawn(fun() -> spawn_link(fun() -> is_at_fault(), error(inner) end), receive never -> ok end end),
    ends(Parent).

%% The process at fault is not the oldest one, and not the parent of the others.
many_links_pass_it_on() ->
    Self = self(),
    Parent = spawn(fun() ->
        Workers = [spawn_link(fun() -> receive never -> ok end end) || _ <- lists:seq(1, 5)],
        Master = spawn_link(fun() ->
            receive {go, Others} -> [link(P) || P <- Others], is_at_fault(), error(master) end
        end),
        Self ! {workers, Master, Workers},
        receive never -> ok end
    end),
    receive {workers, Master, Workers} -> Master ! {go, Workers} end,
    ends(Parent).

a_server_crashes_in_a_call() ->
    ends(spawn(fun() -> {ok, S} = gen_server:start(?MODULE, at_fault, []), gen_server:call(S, crash) end)).

%% The caller, its caller, and so on, are passed the error on.
a_server_crashes_in_a_call_of_a_call() ->
    {ok, Last} = gen_server:start(?MODULE, at_fault, []),
    {ok, Middle} = gen_server:start(?MODULE, {next, Last}, []),
    {ok, First} = gen_server:start(?MODULE, {next, Middle}, []),
    ends(spawn(fun() -> gen_server:call(First, {forward, {forward, crash}}) end)).

a_server_crashes_in_a_cast() ->
    {ok, S} = gen_server:start(?MODULE, at_fault, []),
    gen_server:cast(S, crash),
    ends(S).

a_call_is_given_up() ->
    {ok, S} = gen_server:start(?MODULE, silent, []),
    ends(spawn(fun() -> is_at_fault(), gen_server:call(S, never, 20) end)),
    ok = gen_server:stop(S).

%% Its parent waits for something else, and never takes the message.
the_message_is_left() ->
    process_flag(trap_exit, true),
    spawn_link(fun() -> is_at_fault(), error(inner) end),
    receive never -> ok end.

%% --- their twins --------------------------------------------------------------------

a_process_monitor_tells_of_it() ->
    {P, Ref} = spawn_monitor(fun() -> error(oops) end),
    receive {'DOWN', Ref, process, P, {oops, _}} -> ok end.

a_process_monitor_by_name_tells_of_it() ->
    P = spawn(fun() -> receive go -> error(oops) end end),
    true = register(named, P),
    Ref = monitor(process, named),
    P ! go,
    receive {'DOWN', Ref, process, {named, _}, {oops, _}} -> ok end.

a_process_monitor_with_a_tag_tells_of_it() ->
    P = spawn(fun() -> receive go -> error(oops) end end),
    Ref = monitor(process, P, [{tag, gone}]),
    P ! go,
    receive {gone, Ref, process, P, {oops, _}} -> ok end.

an_exception_is_caught() ->
    {P, Ref} = spawn_monitor(fun() -> try throw(not_found) catch not_found -> ok end end),
    receive {'DOWN', Ref, process, P, normal} -> ok end.

a_trapped_exit_tells_of_it() ->
    process_flag(trap_exit, true),
    P = spawn_link(fun() -> error(inner) end),
    receive {'EXIT', P, {inner, _}} -> ok end.

%% The link passes the error on to a process that another one is told of.
a_parent_s_link_tells_of_it() ->
    process_flag(trap_exit, true),
    P = spawn_link(fun() -> spawn_link(fun() -> error(inner) end), receive never -> ok end end),
    receive {'EXIT', P, {inner, _}} -> ok end.

a_failed_call_is_caught() ->
    {ok, S} = gen_server:start(?MODULE, quiet, []),
    try gen_server:call(S, crash) catch exit:{{requested, _}, {gen_server, call, _}} -> ok end.

a_call_that_is_given_up_is_caught() ->
    {ok, S} = gen_server:start(?MODULE, silent, []),
    try gen_server:call(S, never, 20) catch exit:{timeout, _} -> ok end,
    ok = gen_server:stop(S).

a_supervisor_starts_it_again() ->
    Sup = with_a_crash(),
    unlink(Sup),
    exit(Sup, shutdown),
    ends(Sup).

%% Reasons that the author has chosen, and those of a shutdown.
exits_are_no_errors() ->
    [ends(spawn(fun() -> exit(Reason) end)) || Reason <- [done, {shutdown, done}, shutdown, {error, enoent}, [], {a, []}]],
    P = spawn(fun() -> receive never -> ok end end),
    exit(P, kill),
    ends(P),
    {ok, S} = gen_server:start(?MODULE, quiet, []),
    ok = gen_server:stop(S).

%% A server that is shut down while it is called.
a_called_server_is_shut_down() ->
    [a_called_server_ends_by(Reason) || Reason <- [shutdown, {shutdown, closed}]].

a_called_server_ends_by(Reason) ->
    {ok, S} = gen_server:start(?MODULE, silent, []),
    Self = self(),
    P = spawn(fun() -> gen_server:call(S, {announce, Self}, infinity) end),
    receive called -> exit(S, Reason) end,
    ends(P).

%% --- calls without an answer --------------------------------------------------------

%% The caller goes on, and never knows.
an_answer_is_forgotten() ->
    {ok, S} = gen_server:start(?MODULE, silent, []),
    ends(spawn(fun() -> is_at_fault(), try gen_server:call(S, never, 20) catch exit:{timeout, _} -> ok end end)),
    ok = gen_server:stop(S).

a_call_is_given_up_and_its_end_is_handled() ->
    {ok, S} = gen_server:start(?MODULE, silent, []),
    {P, Ref} = spawn_monitor(fun() -> is_at_fault(), gen_server:call(S, never, 20) end),
    receive {'DOWN', Ref, process, P, {timeout, _}} -> ok end,
    ok = gen_server:stop(S).

a_request_is_not_waited_for() ->
    {ok, S} = gen_server:start(?MODULE, silent, []),
    ends(spawn(fun() -> is_at_fault(), gen_server:send_request(S, never) end)),
    ok = gen_server:stop(S).

%% --- their twins --------------------------------------------------------------------

%% The second server is not there, which a message tells with a first element of its own.
servers_are_called_at_once() ->
    {ok, S} = gen_server:start({local, ?MODULE}, ?MODULE, quiet, []),
    {[{_, ok}], []} = gen_server:multi_call([node()], ?MODULE, what),
    {[], [_]} = gen_server:multi_call([node()], there_is_no_such_server, what),
    ok = gen_server:stop(S).

calls_are_answered() ->
    {ok, S} = gen_server:start(?MODULE, quiet, []),
    {ok, Next} = gen_server:start(?MODULE, {next, S}, []),
    ok = gen_server:call(S, what),
    ok = gen_server:call(S, what, infinity),
    ok = gen_server:call(Next, {forward, what}),
    Request = gen_server:send_request(S, what),
    {reply, ok} = gen_server:receive_response(Request, infinity),
    [ok = gen_server:stop(P) || P <- [Next, S]].

%% Another process answers.
an_answer_comes_from_elsewhere() ->
    {ok, S} = gen_server:start(?MODULE, quiet, []),
    ok = gen_server:call(S, answered_later),
    ok = gen_server:stop(S).

%% They are not there, not any more, or end meanwhile: the caller is told.
servers_that_are_gone_do_not_answer() ->
    {ok, Crashing} = gen_server:start(?MODULE, quiet, []),
    try gen_server:call(Crashing, crash) catch exit:{{requested, _}, _} -> ok end,
    try gen_server:call(no_such_server, what) catch exit:{noproc, _} -> ok end,
    {ok, S} = gen_server:start(?MODULE, silent, []),
    Self = self(),
    P = spawn(fun() -> try gen_server:call(S, {announce, Self}, infinity) catch exit:{shutdown, _} -> ok end end),
    receive called -> exit(S, shutdown) end,
    ends(P).

a_caller_is_shut_down() ->
    {ok, S} = gen_server:start(?MODULE, silent, []),
    Self = self(),
    P = spawn(fun() -> gen_server:call(S, {announce, Self}, infinity) end),
    receive called -> exit(P, shutdown) end,
    ends(P),
    ok = gen_server:stop(S).

%% --- deadlocks ------------------------------------------------------------------------

servers_call_each_other() ->
    {ok, A} = gen_server:start(?MODULE, quiet, []),
    {ok, B} = gen_server:start(?MODULE, {next, A}, []),
    ok = gen_server:call(A, {next, B}),
    gen_server:call(A, {forward, {forward, what}}, infinity).

three_servers_call_each_other() ->
    {ok, A} = gen_server:start(?MODULE, quiet, []),
    {ok, B} = gen_server:start(?MODULE, {next, A}, []),
    {ok, C} = gen_server:start(?MODULE, {next, B}, []),
    ok = gen_server:call(A, {next, C}),
    gen_server:call(A, {forward, {forward, {forward, what}}}, infinity).

%% A supervisor does not answer while it starts a child.
a_child_calls_its_supervisor_when_it_starts() ->
    supervisor:start_link(?MODULE, {one_for_one, calls_its_parent}).

%% Nor while it ends one.
a_child_calls_its_supervisor_when_it_ends() ->
    {ok, Sup} = supervisor:start_link(?MODULE, {one_for_one, calls_its_parent_at_its_end}),
    supervisor:terminate_child(Sup, server).

%% It stops the other one while it handles a call.
a_server_is_stopped_and_calls_back() ->
    {ok, A} = gen_server:start(?MODULE, quiet, []),
    {ok, B} = gen_server:start(?MODULE, {calls_at_its_end, A}, []),
    gen_server:call(A, {stop, B}, infinity).

%% Of a state machine it is not known what it handles. When nothing happens any more, no process answers.
state_machines_call_each_other() ->
    {ok, A} = gen_statem:start(?MODULE, machine, []),
    {ok, B} = gen_statem:start(?MODULE, machine, []),
    gen_statem:call(A, {ask, B, {ask, A, what}}, infinity).

%% Each has passed the request on, and the answer comes while it calls the process that asked.
other_servers_call_back_before_the_answer() ->
    {ok, Machine} = gen_statem:start(?MODULE, machine, []),
    Plain = spawn(fun plain_server/0),
    [begin
         {ok, A} = gen_server:start(?MODULE, {next, Server}, []),
         ok = gen_server:call(A, {forward, {passed_on, A}}, infinity),
         ok = gen_server:stop(A)
     end || Server <- [Machine, Plain]],
    ok = gen_statem:stop(Machine),
    exit(Plain, kill).

plain_server() ->
    receive
        {'$gen_call', From, {passed_on, Back}} ->
            answers_later(From),
            ok = gen_server:call(Back, what, infinity),
            plain_server()
    end.

answers_later(From) -> spawn(fun() -> receive after 1500 -> gen_server:reply(From, ok) end end).

children_that_start_and_end_call_others() ->
    {ok, A} = gen_server:start(?MODULE, quiet, []),
    {ok, Sup} = supervisor:start_link(?MODULE, {one_for_one, {calls_at_its_start_and_end, A}}),
    [begin
         ok = supervisor:terminate_child(Sup, server),
         {ok, _} = supervisor:restart_child(Sup, server)
     end || _ <- lists:seq(1, 20)],
    ok = gen_server:stop(Sup),
    ok = gen_server:stop(A).

servers_call_each_other_in_turn() ->
    {ok, A} = gen_server:start(?MODULE, quiet, []),
    {ok, B} = gen_server:start(?MODULE, {next, A}, []),
    [ok = gen_server:call(B, {forward, what}) || _ <- lists:seq(1, 20)],
    ok = gen_server:call(A, {next, B}),
    ok = gen_server:call(A, {forward, what}),
    [ok = gen_server:stop(S) || S <- [A, B]].

%% The second one has passed the request on, and the answer comes while it calls the first one.
a_server_calls_back_before_the_answer() ->
    {ok, B} = gen_server:start(?MODULE, quiet, []),
    {ok, A} = gen_server:start(?MODULE, {next, B}, []),
    ok = gen_server:call(A, {forward, {passed_on, A}}),
    [ok = gen_server:stop(S) || S <- [A, B]].

%% --- answers that come late ----------------------------------------------------------

%% The process goes on, and only then the server answers.
a_call_is_given_up_and_answered() ->
    {ok, S} = gen_server:start(?MODULE, quiet, []),
    ends(spawn(fun() -> is_at_fault(), gives_up(S), answers(S) end)),
    ok = gen_server:stop(S).

%% The process has ended by then, and another one answers.
a_call_that_ends_its_process_is_answered() ->
    {ok, S} = gen_server:start(?MODULE, quiet, []),
    ends(spawn(fun() -> is_at_fault(), gen_server:call(S, when_told, 20) end)),
    {asked, From} = asked(S),
    gen_server:reply(From, ok),
    ok = gen_server:stop(S).

calls_are_answered_when_told() ->
    {ok, S} = gen_server:start(?MODULE, quiet, []),
    P = spawn(fun() -> ok = gen_server:call(S, when_told, infinity) end),
    answers(S),
    ends(P),
    ok = gen_server:stop(S).

a_call_is_given_up_and_never_answered() ->
    {ok, S} = gen_server:start(?MODULE, quiet, []),
    ends(spawn(fun() -> gives_up(S) end)),
    ok = gen_server:stop(S).

a_caller_is_shut_down_before_the_answer() ->
    {ok, S} = gen_server:start(?MODULE, quiet, []),
    P = spawn(fun() -> gen_server:call(S, when_told, infinity) end),
    asked(S),
    exit(P, shutdown),
    ends(P),
    answers(S),
    ok = gen_server:stop(S).

gives_up(S) -> try gen_server:call(S, when_told, 20) catch exit:{timeout, _} -> ok end.

%% When the server has a call to answer.
answers(S) ->
    asked(S),
    S ! answer,
    ok.

asked(S) -> witness_await:until(fun() -> case sys:get_state(S) of {asked, _} -> true; Other -> Other end end),
    sys:get_state(S).

%% --- supervisors that give up --------------------------------------------------------

%% Its intensity is 1 in 5 seconds.
it_crashes_again_and_again() ->
    {ok, Sup} = supervisor:start_link(?MODULE, {one_for_one, crashes_soon}),
    shut_down(Sup, fun() -> ends(Sup) end).

%% The parent of the supervisor starts it again, and it gives up again.
its_supervisor_is_started_again() ->
    {ok, Sup} = supervisor:start_link(?MODULE, {supervisor_of, crashes_soon}),
    shut_down(Sup, fun() -> ends(Sup) end).

shut_down(Sup, Wait) ->
    process_flag(trap_exit, true),
    Wait(),
    receive {'EXIT', Sup, shutdown} -> ok end.

%% --- their twins --------------------------------------------------------------------

it_crashes_once() ->
    Sup = with_a_crash(),
    shut_down(Sup, fun() -> exit(Sup, shutdown) end).

it_crashes_once_and_is_stopped() ->
    Sup = with_a_crash(),
    shut_down(Sup, fun() -> gen_server:stop(Sup, shutdown, infinity) end).

its_child_is_shut_down() ->
    {ok, Sup} = supervisor:start_link(?MODULE, one_for_one),
    [begin
         [{_, S, _, _}] = supervisor:which_children(Sup),
         ok = supervisor:terminate_child(Sup, server),
         ends(S),
         {ok, _} = supervisor:restart_child(Sup, server)
     end || _ <- [1, 2, 3]],
    shut_down(Sup, fun() -> exit(Sup, shutdown) end).

it_ends_with_its_significant_child() ->
    {ok, Sup} = supervisor:start_link(?MODULE, significant),
    [{_, S, _, _}] = supervisor:which_children(Sup),
    shut_down(Sup, fun() -> gen_server:stop(S) end).

%% --- what is still there ---------------------------------------------------------------

a_process_waits_for_ever() ->
    spawn(fun() -> is_at_fault(), receive never -> ok end end).

a_server_is_not_stopped() ->
    {ok, _} = gen_server:start(?MODULE, at_fault, []).

%% The server that they belong to has ended.
workers_are_not_stopped() ->
    {P, Ref} = spawn_monitor(fun() -> [spawn(fun() -> is_at_fault(), receive never -> ok end end) || _ <- lists:seq(1, 5)] end),
    receive {'DOWN', Ref, process, P, normal} -> ok end.

a_server_with_a_table_is_not_stopped() ->
    {ok, S} = gen_server:start({local, kitchen}, ?MODULE, at_fault, []),
    ok = gen_server:call(S, {open, orders, 12}),
    [ok = gen_server:call(S, {monitor, self()}) || _ <- [1, 2]].

%% --- their twins --------------------------------------------------------------------

%% While the other one sleeps, it is not known to wait in vain, however late that wakes.
it_ends_a_little_later() ->
    P = spawn(fun() -> receive go -> ok end end),
    spawn(fun() -> timer:sleep(300), P ! go end).

%% For longer than what is left does nothing before the run ends.
it_sleeps_and_ends() ->
    spawn(fun() -> timer:sleep(2500) end).

a_server_is_stopped() ->
    {ok, S} = gen_server:start(?MODULE, quiet, []),
    gen_server:stop(S).

%% --- monitors, of servers that have the name of the system, and go on ------------------------

a_server_monitors_at_each_request() -> ask_often(monitoring_server(?FUNCTION_NAME), monitor).

%% --- their twins --------------------------------------------------------------------

a_server_demonitors_after_each_request() -> ask_often(monitoring_server(?FUNCTION_NAME), monitor_and_demonitor).

a_server_monitors_many_processes() ->
    S = monitoring_server(?FUNCTION_NAME),
    [begin
         ok = gen_server:call(S, {monitor, spawn_link(fun() -> receive never -> ok end end)}),
         receive after 1 -> ok end
     end || _ <- lists:seq(1, 5000)],
    receive never -> ok end.

a_server_monitors_a_process_2000_times_at_once() ->
    S = monitoring_server(?FUNCTION_NAME),
    [ok = gen_server:call(S, {monitor, self()}) || _ <- lists:seq(1, 2000)],
    receive never -> ok end.

monitoring_server(Name) ->
    {ok, S} = gen_server:start({local, Name}, ?MODULE, quiet, []),
    S.

ask_often(S, What) ->
    [ok = gen_server:call(S, {What, self()}) || _ <- lists:seq(1, 5)],
    receive after 1 -> ask_often(S, What) end.

%% --- mailboxes --------------------------------------------------------------------------

its_messages_are_for_no_process() ->
    P = spawn(fun() -> is_at_fault(), worker() end),
    [P ! {hello, N} || N <- [1, 2]],
    P ! {work, self()},
    receive worked -> ok end.

an_old_answer_is_in_its_way() ->
    spawn(fun() -> is_at_fault(), self() ! {make_ref(), late}, receive never -> ok end end).

%% More come than it takes.
it_is_too_slow() ->
    P = spawn(fun() -> is_at_fault(), slow_worker() end),
    send_often(P).

%% It takes what is for it at once, and leaves what is for no process.
it_passes_over_what_it_does_not_know() ->
    P = spawn(fun() -> is_at_fault(), worker() end),
    work_often(P).

send_often(P) ->
    [P ! job || _ <- lists:seq(1, 5)],
    receive after 1 -> send_often(P) end.

work_often(P) ->
    P ! {hello, 1},
    P ! {work, self()},
    receive worked -> ok end,
    receive after 20 -> work_often(P) end.

slow_worker() -> receive job -> receive after 10 -> slow_worker() end end.

worker() -> receive {work, From} -> From ! worked, worker() end.

%% --- their twins --------------------------------------------------------------------

%% It waits for a request, and has none.
it_takes_all() ->
    P = spawn(fun() -> is_at_fault(), worker() end),
    [begin P ! {work, self()}, receive worked -> ok end end || _ <- lists:seq(1, 20)].

%% More and more messages wait, until its job is done.
it_does_a_long_job_first() ->
    P = spawn(fun() -> receive after 5000 -> slow_worker_ends(40) end end),
    [begin P ! job, receive after 100 -> ok end end || _ <- lists:seq(1, 40)],
    ends(P).

%% They become more for some seconds, and are worked off.
a_burst_is_worked_off() ->
    P = spawn(fun() -> slow_worker_ends(4000) end),
    [begin [P ! job || _ <- [1, 2]], receive after 1 -> ok end end || _ <- lists:seq(1, 2000)],
    ends(P).

%% Many messages, but they become fewer.
it_is_slow_but_done_in_time() ->
    P = spawn(fun() -> slow_worker_ends(1500) end),
    [P ! job || _ <- lists:seq(1, 1500)],
    ends(P).

slow_worker_ends(0) -> ok;
slow_worker_ends(N) -> receive job -> receive after 1 -> slow_worker_ends(N - 1) end end.

%% --- help -----------------------------------------------------------------------------

%% A supervisor, of which a child has crashed.
with_a_crash() ->
    {ok, Sup} = supervisor:start_link(?MODULE, one_for_one),
    [{_, S, _, _}] = supervisor:which_children(Sup),
    gen_server:cast(S, crash),
    ends(S),
    Sup.

ends(P) -> witness_await:until(fun() -> not is_process_alive(P) end).

init(one_for_one) ->
    init({one_for_one, quiet});
init({one_for_one, Child}) ->
    is_at_fault(),
    {ok, {#{}, [#{id => server, start => {gen_server, start_link, [?MODULE, Child, []]}}]}};
init({supervisor_of, Child}) ->
    {ok, {#{intensity => 0},
          [#{id => supervisor, start => {supervisor, start_link, [?MODULE, {one_for_one, Child}]}, type => supervisor}]}};
init(significant) ->
    {ok, {#{auto_shutdown => any_significant},
          [#{id => server, start => {gen_server, start_link, [?MODULE, quiet, []]}, restart => transient, significant => true}]}};
init(crashes_soon) ->
    self() ! crash,
    {ok, quiet};
init(at_fault) ->
    is_at_fault(),
    {ok, quiet};
init(calls_its_parent) ->
    {parent, Sup} = process_info(self(), parent),
    _ = supervisor:count_children(Sup),
    {ok, quiet};
init(calls_its_parent_at_its_end) ->
    {parent, Sup} = process_info(self(), parent),
    init({calls_at_its_end, Sup});
init({calls_at_its_start_and_end, Server}) ->
    ok = gen_server:call(Server, what),
    init({calls_at_its_end, Server});
init({calls_at_its_end, Server}) ->
    process_flag(trap_exit, true),
    {ok, {calls_at_its_end, Server}};
init(machine) ->
    {ok, state, data};
init(State) ->
    {ok, State}.

callback_mode() -> handle_event_function.

handle_event({call, From}, {ask, Server, Request}, state, data) ->
    {keep_state_and_data, {reply, From, gen_statem:call(Server, Request, infinity)}};
handle_event({call, From}, what, state, data) -> {keep_state_and_data, {reply, From, ok}};
handle_event({call, From}, {passed_on, Back}, state, data) ->
    _ = answers_later(From),
    {keep_state_and_data, {next_event, internal, {call, Back}}};
handle_event(internal, {call, Back}, state, data) ->
    ok = gen_server:call(Back, what, infinity),
    keep_state_and_data.

terminate(_, {calls_at_its_end, Server}) -> gen_server:call(Server, what, infinity);
terminate(_, _) -> ok.

handle_call(crash, _, _) -> error(requested);
handle_call(what, _, State) -> {reply, ok, State};
handle_call(when_told, From, _) -> {noreply, {asked, From}};
handle_call({stop, Server}, _, State) -> {reply, gen_server:stop(Server), State};
handle_call({next, Next}, _, _) -> {reply, ok, {next, Next}};
handle_call({forward, Request}, _, {next, Next}) -> {reply, gen_server:call(Next, Request, infinity), {next, Next}};
handle_call(answered_later, From, State) ->
    _ = spawn(fun() -> gen_server:reply(From, ok) end),
    {noreply, State};
handle_call({passed_on, Back}, From, State) ->
    _ = answers_later(From),
    self() ! {call, Back},
    {noreply, State};
handle_call({announce, To}, _, State) -> To ! called, {noreply, State};
handle_call({monitor, P}, _, State) -> _ = monitor(process, P), {reply, ok, State};
handle_call({monitor_and_demonitor, P}, _, State) -> true = demonitor(monitor(process, P)), {reply, ok, State};
handle_call({open, Table, Objects}, _, State) ->
    true = ets:insert(ets:new(Table, []), [{N} || N <- lists:seq(1, Objects)]),
    {reply, ok, State};
handle_call(never, _, State) -> {noreply, State}.

handle_cast(crash, _) -> error(requested).

handle_info(crash, _) -> error(requested);
handle_info(answer, {asked, From}) -> gen_server:reply(From, ok), {noreply, quiet};
handle_info({call, Server}, State) -> ok = gen_server:call(Server, what, infinity), {noreply, State};
handle_info(_, State) -> {noreply, State}.

%% --- an application ------------------------------------------------------------------

an_application_hangs() ->
    ok = witness_test_shop:open(),
    witness_test_shop:hang().
