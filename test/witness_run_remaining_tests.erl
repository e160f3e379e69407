-module(witness_run_remaining_tests).
-moduledoc "What is said of processes that are still there, of real ones in each state.".

-include_lib("eunit/include/eunit.hrl").

-export([waiting/0, calling/1, responded/1, calling_next/0, starting/0, stopping/1, sleeping/0, running/1, slow/0]).
-export([hibernating/1]).
-export([init/1, handle_call/3, handle_cast/2, terminate/2]).

%% A process in each state, running and suspended, with its place. The called server never answers, and the one to stop never ends.
states_test_() ->
    {setup, fun started/0, fun ended/1, fun(Processes) ->
        [{lists:concat([How, ", ", Kind, " in ", Function]), fun() -> is_described(How, Kind, Function, P, Awaited) end}
         || {Kind, Function, P, Awaited} <- Processes, How <- [live, suspended], not (How =:= suspended andalso Kind =:= runs)]
    end}.

%% The VM does not keep the fun of a process, and after a call in its last line the fun is not on the stack.
what_is_spawned_with_a_fun_is_named_by_its_module_test() ->
    Sleeper = spawn(fun() -> timer:sleep(infinity) end),
    witness_await:until(fun() -> in(Sleeper) =:= {timer, sleep, 1} end),
    witness_await:waits(Sleeper),
    Process = witness_run_remaining:describe(Sleeper),
    exit(Sleeper, kill),
    ?assertMatch(#{state := sleeps, signature := {erlang, apply, 2}}, Process),
    ?assertMatch({match, _}, re:run(witness_run_remaining:format(Process), "^<[0-9.]+> a fun: sleeps in timer:sleep/1")),
    Origin = fun(Test, Called) -> unicode:characters_to_list(witness_run_remaining:origin(Process, Test, Called, false)) end,
    ?assertEqual(", spawned with a function of shop by the test", Origin([self()], fun(_) -> [shop] end)),
    ?assertEqual(", spawned by the test", Origin([self()], fun(_) -> [] end)).

%% Elixir need not be there.
a_process_of_elixir_sleeps_test() ->
    Module = 'Elixir.Process',
    IsThere = code:which(Module) =/= non_existing,
    Forms = [merl:quote(Line) || Line <- ["-module('Elixir.Process').", "-export([sleep/1]).",
                                          "sleep(For) -> receive after For -> ok end."]],
    {ok, Module, Code} = compile:forms(Forms),
    _ = [{module, Module} = code:load_binary(Module, "process.erl", Code) || not IsThere],
    Sleeper = spawn(Module, sleep, [infinity]),
    witness_await:until(fun() -> in(Sleeper) =:= {Module, sleep, 1} end),
    witness_await:waits(Sleeper),
    Process = witness_run_remaining:describe(Sleeper),
    {_, Ref} = {exit(Sleeper, kill), monitor(process, Sleeper)},
    receive {'DOWN', Ref, process, Sleeper, _} -> ok end,
    _ = [code:delete(Module) andalso code:purge(Module) || not IsThere],
    ?assertMatch(#{state := sleeps}, Process).

%% By a server that is still there, and by one that has ended.
what_spawned_a_process_is_named_test() ->
    {ok, Server} = gen_server:start({local, shop}, ?MODULE, deaf, []),
    Self = self(),
    {Parent, Ref} = spawn_monitor(fun() -> Self ! {child, spawn(?MODULE, sleeping, [])} end),
    Child = receive {child, C} -> C end,
    receive {'DOWN', Ref, process, Parent, normal} -> ok end,
    Process = witness_run_remaining:describe(Child),
    Origin = fun(Of, Redact) ->
        unicode:characters_to_list(witness_run_remaining:origin(Process#{parent := Of}, [Self], fun(_) -> [shop_door] end, Redact))
    end,
    ?assertEqual(", spawned by " ++ pid_to_list(Parent) ++ " (shop_door), which has ended", Origin(Parent, false)),
    Named = ", spawned by " ++ pid_to_list(Server) ++ " witness_run_remaining_tests:init/1 (shop)",
    ?assertEqual([Named, Named], [Origin(Server, Redact) || Redact <- [false, true]]),
    ?assertEqual("", Origin(undefined, false)),
    exit(Child, kill),
    exit(Server, kill).

a_label_of_what_spawned_a_process_is_redacted_test() ->
    Server = proc_lib:spawn(fun() -> proc_lib:set_label({secret, "4711"}), sleeping() end),
    witness_await:until(fun() -> proc_lib:get_label(Server) =/= undefined end),
    Process = (witness_run_remaining:describe(Server))#{parent := Server},
    [?assertEqual(IsThere, string:find(witness_run_remaining:origin(Process, [], fun(_) -> [] end, Redact), "4711") =/= nomatch)
     || {IsThere, Redact} <- [{true, false}, {false, true}]],
    exit(Server, kill).

%% As OTP 27 starts a server. Its stack does not say that it waits for a request, but what it was started as does.
a_hibernating_server_waits_for_a_request_test() ->
    State = fun(Function, Message) ->
        P = proc_lib:spawn(?MODULE, Function, [hibernates]),
        witness_await:until(fun() -> in(P) =:= {erlang, hibernate, 3} end),
        _ = [begin erlang:suspend_process(P), P ! Message end || Message =/= none],
        #{state := Is} = witness_run_remaining:describe(P),
        exit(P, kill),
        Is
    end,
    ?assertEqual([request, waits, unknown], [State(init, none), State(hibernating, none), State(init, hello)]).

hibernating(hibernates) -> erlang:hibernate(?MODULE, waiting, []).

%% The last part is the function in which it waits, which is not told if it is one of OTP.
started() ->
    {ok, Server} = gen_server:start(?MODULE, deaf, []),
    {ok, Slow} = gen_server:start(?MODULE, slow, []),
    Started = [{waits, waiting, [], waiting}, {calls, calling, [Server], do_call}, {calls, responded, [Server], receive_response},
               {stops, stopping, [Slow], stop}, {starts, starting, [], sync_start}, {sleeps, sleeping, [], sleep},
               {runs, running, [0], running}],
    Processes = [begin
                     P = spawn(?MODULE, Function, Args),
                     %% It does not wait for the module of the function.
                     witness_await:until(fun() -> {_, In, _} = in(P), In =:= Waits end),
                     %% It is in its first function before it has begun with it.
                     Kind =:= runs orelse witness_await:waits(P),
                     {Kind, Function, P, awaited(Kind, P, Args)}
                 end || {Kind, Function, Args, Waits} <- Started],
    %% The calls have arrived.
    witness_await:until(fun() -> is_idle(Server) end),
    [{request, loop, Server, undefined} | Processes].

awaited(starts, P, _) -> child(P);
awaited(_, _, [Of]) when is_pid(Of) -> Of;
awaited(_, _, _) -> undefined.

child(P) ->
    [Child] = [Of || Of <- processes(), process_info(Of, parent) =:= {parent, P}],
    Child.

in(P) -> element(2, process_info(P, current_function)).

is_idle(Server) -> process_info(Server, [status, message_queue_len]) =:= [{status, waiting}, {message_queue_len, 0}].

ended(Processes) -> [exit(P, kill) || {_, _, Of, Awaited} <- Processes, P <- [Of, Awaited], is_pid(P)].

is_described(suspended, Kind, Function, P, Awaited) ->
    true = erlang:suspend_process(P),
    try is_said(case Kind of waits -> unknown; _ -> Kind end, Function, P, Awaited)
    after erlang:resume_process(P)
    end;
is_described(live, Kind, Function, P, Awaited) -> is_said(Kind, Function, P, Awaited).

is_said(Kind, Function, P, Awaited) ->
    #{state := State, awaited := Of, place := Place, mailbox := 0, messages := []} = Said = witness_run_remaining:describe(P),
    ?assertEqual({Kind, Awaited}, {State, Of}),
    ?assertMatch({_, Function, _, _}, Place),
    Text = unicode:characters_to_list(witness_run_remaining:format(Said)),
    ?assert(lists:prefix(pid_to_list(P) ++ " witness_run_remaining_tests:", Text)),
    [?assert(string:find(Text, Part) =/= nomatch) || Part <- parts(Kind, Function, Awaited)].

parts(request, _, _) -> ["waits for a request"];
parts(waits, _, _) -> ["waits for a message in witness_run_remaining_tests:waiting/0 (witness_run_remaining_tests.erl:"];
parts(unknown, _, _) -> ["is in witness_run_remaining_tests:waiting/0"];
parts(calls, Function, P) ->
    [["waits for the answer to its call of ", pid_to_list(P), " in witness_run_remaining_tests:", atom_to_list(Function), "/1"]];
parts(stops, _, P) -> [["waits until ", pid_to_list(P), " has ended, in witness_run_remaining_tests:stopping/1"]];
parts(starts, _, P) -> [["waits until ", pid_to_list(P), " has started, in witness_run_remaining_tests:starting/0"]];
parts(sleeps, _, _) -> ["sleeps in witness_run_remaining_tests:sleeping/0"];
parts(runs, _, _) -> ["runs in witness_run_remaining_tests:running/1"].

%% What stands behind a call or in a wait is in tail position nowhere, so the stack names it.
waiting() ->
    receive go -> ok end,
    waiting().

calling(Server) ->
    _ = gen_server:call(Server, anything, infinity),
    calling(Server).

responded(Server) ->
    _ = gen_server:receive_response(gen_server:send_request(Server, anything), infinity),
    responded(Server).

stopping(P) ->
    gen_server:stop(P),
    stopping(P).

starting() ->
    {ok, _} = proc_lib:start_link(?MODULE, slow, []),
    starting().

%% It never says that it has started.
slow() -> waiting().

sleeping() ->
    timer:sleep(infinity),
    sleeping().

running(N) -> running(N + 1).

init(hibernates) -> hibernating(hibernates);
init(How) -> {ok, How}.
handle_call(_, _, deaf) -> {noreply, deaf};
handle_call(_, _, turns) ->
    timer:sleep(1),
    {reply, ok, turns}.
handle_cast({call, Other}, turns) ->
    ok = gen_server:call(Other, anything, infinity),
    gen_server:cast(Other, {call, self()}),
    {noreply, turns}.
terminate(_, slow) -> waiting();
terminate(_, _) -> ok.

%% What its answers cost a process may be counted late. Then it is said to have done nothing for less long, but never for longer.
since_when_a_process_does_nothing_is_known_from_the_second_look_test() ->
    [Quiet, Woken] = Ps = [spawn(?MODULE, waiting, []) || _ <- [1, 2]],
    [witness_await:waits(P) || P <- Ps],
    Idle = fun() ->
        {First, Look} = look(Ps, 1_000, #{}),
        ?assertEqual([{Quiet, 0}, {Woken, 0}], idle(First)),
        {Second, _} = look(Ps, 4_500, Look),
        [{Quiet, 3_500}, {Woken, 3_500}] =:= idle(Second) andalso Second
    end,
    {#{idle := false}, _} = look(Ps, 1_000, #{}),
    witness_await:until(fun() -> case Idle() of #{idle := true} -> true; Other -> Other end end),
    {_, Before} = look(Ps, 1_000, #{}),
    Woken ! go,
    witness_await:until(fun() -> is_idle(Woken) end),
    {After, _} = look(Ps, 4_500, Before),
    ?assertMatch({[{Quiet, _}, {Woken, 0}], #{idle := false}}, {idle(After), After}),
    [exit(P, kill) || P <- Ps].

what_is_idle_is_told_test() ->
    P = spawn(?MODULE, waiting, []),
    Process = witness_run_remaining:describe(P),
    Text = fun(Ms) -> unicode:characters_to_list(witness_run_remaining:format(Process#{idle_ms := Ms})) end,
    ?assertNotEqual(nomatch, string:find(Text(3_500), ", idle for 3.5 s")),
    ?assertEqual(nomatch, string:find(Text(999), "idle")),
    exit(P, kill).

look(Pids, NowMs, Before) -> look(Pids, fun(_) -> system end, NowMs, Before).

look(Pids, Belongs, NowMs, Before) ->
    look(Pids, Belongs, NowMs, Before, none).

look(Pids, Belongs, NowMs, Before, Holds) ->
    Idle = witness_run_remaining:idle(Before),
    {Remaining, _, Look} = witness_run_remaining:look(Pids, Belongs, true, NowMs, {Before, Idle}, Holds),
    {Remaining, Look}.

idle(#{processes := Processes}) -> [{P, Ms} || #{process := P, idle_ms := Ms} <- Processes].

at_most_five_are_shown_and_all_are_counted_test() ->
    {ok, Server} = gen_server:start(?MODULE, deaf, []),
    Ended = spawn(fun() -> ok end),
    _ = witness_await:down(Ended),
    Ps = [spawn(fun ?MODULE:waiting/0) || _ <- lists:seq(1, 7)],
    [witness_await:waits(P) || P <- [Server | Ps]],
    {#{count := Count, requests := Requests} = Remaining, _} = look([Server, Ended | Ps], 0, #{}),
    ?assertEqual({8, 1}, {Count, Requests}),
    Lines = [unicode:characters_to_list(Line) || Line <- witness_run_remaining:shown(Remaining)],
    ?assertEqual(7, length(Lines)),
    ?assertEqual(["2 other processes", "1 server waits for a request"], lists:nthtail(5, Lines)),
    [exit(P, kill) || P <- [Server | Ps]].

%% Three that wait for each other, and one that has called one of them and is in no circle.
calls_in_a_circle_are_a_deadlock_test() ->
    Circle = [A, B, C] = [spawn(fun ?MODULE:calling_next/0) || _ <- [1, 2, 3]],
    [P ! {next, Next} || {P, Next} <- [{A, B}, {B, C}, {C, A}]],
    Outside = spawn(?MODULE, calling, [A]),
    All = [Outside | Circle],
    [witness_await:until(fun() -> in(P) =:= {gen, do_call, 4} end) || P <- All],
    [witness_await:waits(P) || P <- All],
    {#{circles := Circles} = Remaining, _} = look(All, 0, #{}),
    ?assertEqual([[A, B, C]], Circles),
    %% That they were suspended to make sure of it is nothing that they do.
    witness_await:until(fun() ->
        {_, Look} = look(All, 0, #{}),
        {#{idle := Idle}, _} = look(All, 10, Look),
        Idle
    end),
    Text = unicode:characters_to_list(lists:join("\n", witness_run_remaining:shown(Remaining))),
    Line = lists:append(["deadlock: ", pid_to_list(A), " waits for ", pid_to_list(B), " waits for ", pid_to_list(C), " waits for ",
                         pid_to_list(A)]),
    ?assert(lists:prefix(Line, Text)),
    [exit(P, kill) || P <- All].

%% Two processes of an application wait for each other, a third one for nothing that matters, and one of the system's for the first.
what_an_application_does_is_told_if_the_system_waits_for_it_test() ->
    [A, B] = Circle = [spawn(fun ?MODULE:calling_next/0) || _ <- [1, 2]],
    [P ! {next, Next} || {P, Next} <- [{A, B}, {B, A}]],
    Caller = spawn(?MODULE, calling, [A]),
    Other = spawn(fun ?MODULE:waiting/0),
    [witness_await:until(fun() -> in(P) =:= {gen, do_call, 4} end) || P <- [Caller | Circle]],
    [witness_await:waits(P) || P <- [Caller, Other | Circle]],
    Belongs = fun(P) -> case P of Caller -> system; _ -> application end end,
    {#{circles := Circles, count := Count, processes := Processes, applications := Applications} = Remaining, _} =
        look([Caller, Other | Circle], Belongs, 0, #{}),
    Pids = fun(Described) -> [P || #{process := P} <- Described] end,
    ?assertEqual({[[A, B]], 1, [Caller], Circle}, {Circles, Count, Pids(Processes), Pids(Applications)}),
    ?assertMatch([_, _, _, _], witness_run_remaining:shown(Remaining)),
    {#{circles := [], applications := []}, _} = look([Caller, Other], Belongs, 0, #{}),
    [exit(P, kill) || P <- [Caller, Other | Circle]].

%% Two servers call each other in turn, so each is seen in a call of the other, but never both at the same time. The processes
%% between them are looked at meanwhile, so that much happens between the looks at the two.
calls_in_turn_are_no_deadlock_test_() ->
    {timeout, 60, fun() ->
        {ok, A} = gen_server:start(?MODULE, turns, []),
        Between = [spawn(?MODULE, waiting, []) || _ <- lists:seq(1, 100)],
        {ok, B} = gen_server:start(?MODULE, turns, []),
        gen_server:cast(A, {call, B}),
        Both = fun(_) ->
            {#{circles := Circles, processes := Processes}, _} = look([A, B | Between], 0, #{}),
            ?assertEqual([], Circles),
            [A, B] -- [P || #{process := P, state := calls} <- Processes] =:= []
        end,
        Seen = lists:filter(Both, lists:seq(1, 500)),
        witness_await:until(fun() -> Seen =/= [] orelse Both(again) end),
        [exit(P, kill) || P <- [A, B | Between]]
    end}.

calling_next() -> receive {next, P} -> gen:call(P, '$gen_call', anything, infinity) end, calling_next().

messages_are_counted_and_names_are_told_test() ->
    P = spawn(fun() -> proc_lib:set_label({secret, 4711}), waiting() end),
    P ! {other, 4711},
    In = [{current_function, {?MODULE, waiting, 0}}, {message_queue_len, 1}],
    witness_await:until(fun() -> process_info(P, [current_function, message_queue_len]) =:= In end),
    witness_await:waits(P),
    {Remaining, _} = look([P], 0, #{}),
    Text = fun(R) -> unicode:characters_to_list(lists:join("\n", witness_run_remaining:shown(R))) end,
    [?assert(string:find(Text(Remaining), Part) =/= nomatch) || Part <- ["({secret,4711})", "; in its mailbox: 1 message, {other,4711}"]],
    #{processes := [Described]} = Remaining,
    ?assertEqual(nomatch, string:find(Text(Remaining#{processes := [witness_run_remaining:redact(Described)]}), "4711")),
    exit(P, kill).

%% Not when there are many messages, nor when they are large.
a_full_mailbox_is_not_read_test_() ->
    [fun() ->
         P = spawn(?MODULE, waiting, []),
         [P ! Message || Message <- Messages],
         Count = length(Messages),
         witness_await:until(fun() -> process_info(P, message_queue_len) =:= {message_queue_len, Count} end),
         witness_await:waits(P),
         ?assertMatch(#{mailbox := Count, messages := []}, witness_run_remaining:describe(P)),
         exit(P, kill)
     end || Messages <- [lists:seq(1, 1001), [lists:seq(1, 100_000)]]].
