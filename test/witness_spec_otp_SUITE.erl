-module(witness_spec_otp_SUITE).
-moduledoc """
The patterns for OTP's messages against the messages of real processes: what servers get and send is gathered with a
trace session, and compiled specifications say what matches.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [a_call_without_a_timeout_is_answered_to_the_pid, a_call_with_a_timeout_is_answered_to_the_alias,
     calls_by_name_and_to_several_nodes, requests_in_a_collection, a_reply_belongs_to_its_call, a_late_reply,
     casts, what_is_left_is_info, requests_of_the_system_are_no_info, a_server_that_asks_another_gets_a_reply,
     gen_statem_has_the_same_messages, gen_event_has_messages_of_its_own, a_supervisor_is_asked_by_calls,
     each_message_has_one_name, slices_by_call, a_reply_has_the_request_of_its_call, a_request_is_known_however_it_is_monitored,
     an_elixir_server].

%% --- gen_server --------------------------------------------------------------------

a_call_without_a_timeout_is_answered_to_the_pid(_) ->
    Me = self(),
    Events = gather(server(), fun(Server) -> pong = gen_server:call(Server, {ping, 1}, infinity) end),
    [#{'From' := {Me, Tag}, 'N' := 1}] = matches("_ ? call(From, {ping, N})", Events),
    ?assert(is_reference(Tag)),
    ?assertEqual([#{'To' => Me}], matches("_ : To ! reply(_, pong)", Events)),
    ?assertEqual([#{'T' => Tag, 'R' => pong}], matches("_ : _ ! reply({_, T}, R)", Events)),
    ?assertEqual([], matches("_ ? cast(_)", Events)).

a_call_with_a_timeout_is_answered_to_the_alias(_) ->
    Me = self(),
    Events = gather(server(), fun(Server) -> pong = gen_server:call(Server, {ping, 1}) end),
    [#{'From' := {Me, [alias | Alias]}}] = matches("_ ? call(From, {ping, _})", Events),
    ?assertEqual([#{'To' => Alias}], matches("_ : To ! reply(_, pong)", Events)).

calls_by_name_and_to_several_nodes(_) ->
    Server = server(),
    register(?MODULE, Server),
    Events = gather(Server, fun(_) ->
        pong = gen_server:call(?MODULE, {ping, 1}),
        pong = gen_server:call({?MODULE, node()}, {ping, 2}, infinity),
        {[{_, pong}], []} = gen_server:multi_call([node()], ?MODULE, {ping, 3}, 10_000)
    end),
    [#{'N' := 1}, #{'N' := 2}, #{'N' := 3, 'From' := {_, Labelled}}] = matches("_ ? call(From, {ping, N})", Events),
    ?assertMatch([[alias | _] | _], Labelled),
    ?assertEqual(3, length(matches("_ : _ ! reply(_, pong)", Events))),
    ?assertEqual([#{'T' => Labelled}], [Found || #{'T' := T} = Found <- matches("_ : _ ! reply({_, T}, _)", Events),
                                                 T =:= Labelled]).

requests_in_a_collection(_) ->
    Events = gather(server(), fun(Server) ->
        One = gen_server:send_request(Server, {ping, 1}),
        Others = gen_server:send_request(Server, {ping, 2}, label, gen_server:reqids_new()),
        {reply, pong} = gen_server:receive_response(One, 10_000),
        {{reply, pong}, label, _} = gen_server:receive_response(Others, 10_000, true)
    end),
    ?assertMatch([#{'N' := 1}, #{'N' := 2}], matches("_ ? call(_, {ping, N})", Events)),
    ?assertEqual(2, length(matches("_ : _ ! reply(_, pong)", Events))).

a_reply_belongs_to_its_call(_) ->
    Events = gather(server(), fun(Server) ->
        Held = gen_server:send_request(Server, hold),
        pong = gen_server:call(Server, {ping, 1}),
        ok = gen_server:call(Server, release, infinity),
        {reply, released} = gen_server:receive_response(Held, 10_000)
    end),
    Answer = fun(Request, Reply) ->
        verdict("max X.([_ ? call(F, " ++ Request ++ ")] max Y.([_ : _ ! reply(F, " ++ Reply ++ ")] ff"
                " and [_ : _ ! reply(F, R) when R =/= " ++ Reply ++ "] X"
                " and [_ : _ ! {T, _} when T =/= element(2, F)] Y and [_ ? _] Y)"
                " and [_ ? call(_, R) when R =/= " ++ Request ++ "] X and [_ : _ ! _] X)", Events)
    end,
    ?assertEqual(no, Answer("hold", "released")),
    ?assertEqual(no, Answer("release", "ok")),
    ?assertEqual(no, Answer("{ping, 1}", "pong")),
    %% The reply to another call.
    ?assertEqual(open, Answer("hold", "pong")),
    ?assertEqual(open, Answer("{ping, 1}", "released")).

a_late_reply(_) ->
    Events = gather(server(), fun(Server) ->
        ?assertExit({timeout, _}, gen_server:call(Server, hold, 0)),
        ok = gen_server:call(Server, release)
    end),
    [#{'Tag' := [alias | Alias] = Tag}] = matches("_ ? call({_, Tag}, hold)", Events),
    ?assertEqual([#{'T' => Tag, 'To' => Alias}], matches("_ : To ! reply({_, T}, released)", Events)).

casts(_) ->
    Server = server(),
    register(?MODULE, Server),
    Events = gather(Server, fun(_) ->
        gen_server:cast(Server, one),
        gen_server:abcast([node()], ?MODULE, two),
        sync(Server)
    end),
    ?assertEqual([#{'M' => one}, #{'M' => two}], matches("_ ? cast(M)", Events)),
    ?assertEqual([], matches("_ ? info(_)", Events)).

what_is_left_is_info(_) ->
    Ref = make_ref(),
    Infos = [atom, 17, "list", <<>>, #{a => b}, {}, {one}, {two, 2}, {three, 3, 3}, {1, 2, 3, 4}, [], [alias | Ref],
             {Ref, plain}, {[], 1}, {[a | b], 1}, {[[]], 1}, {[[a] | b], 1}, {self(), Ref, three},
             {self(), {Ref, self()}, x}, {self(), {}, {call, x, y}}, {call, {self(), Ref}, {call, x, y}},
             {'$gen_call', x}, {'$gen_cast', x, y},
             {system, x}, {notify, x, y}, {timeout, Ref, x}, {'DOWN', Ref, process, self(), x}],
    Events = gather(server(), fun(Server) -> [Server ! Info || Info <- Infos], sync(Server) end),
    ?assertEqual([#{'M' => Info} || Info <- Infos], matches("_ ? info(M)", Events)),
    ?assertEqual(length(Infos), length(matches("_ ? info(_)", Events))),
    ?assertEqual([#{'A' => A, 'B' => B} || {A, B} <- Infos], matches("_ ? info({A, B})", Events)),
    ?assertEqual([#{'A' => A} || {A, _, _} <- Infos], matches("_ ? info({A, _, _})", Events)),
    ?assertEqual([#{'B' => 2}], matches("_ ? info({two, B})", Events)),
    ?assertEqual([#{'A' => A} || {A, _, _, _} <- Infos], matches("_ ? info({A, _, _, _})", Events)),
    ?assertEqual([#{'M' => {two, 2}}], matches("_ ? info(M = {two, _})", Events)),
    ?assertEqual([#{}], matches("_ ? info(atom)", Events)).

requests_of_the_system_are_no_info(_) ->
    Events = gather(server(), fun(Server) ->
        _ = sys:get_state(Server),
        ok = sys:suspend(Server),
        ok = sys:resume(Server),
        Server ! {notify, event},
        sync(Server)
    end),
    ?assertEqual([], matches("_ ? info(_)", Events)),
    ?assertEqual([], matches("_ ? info({_, _})", Events)),
    ?assertEqual([], matches("_ ? info({_, _, _})", Events)),
    ?assert(length(matches("_ ? {system, _, _}", Events)) >= 3).

a_server_that_asks_another_gets_a_reply(_) ->
    Other = server(),
    Events = gather(server(), fun(Server) ->
        pong = gen_server:call(Server, {ask, Other, 5_000}),
        pong = gen_server:call(Server, {ask, Other, infinity})
    end),
    ok = gen_server:stop(Other),
    [#{'From' := {_, Alias}}, #{'From' := {_, Ref}}] = matches("_ : _ ! call(From, {ping, _})", Events),
    ?assertEqual([#{'T' => Alias}, #{'T' => Ref}], matches("_ ? reply({_, T}, pong)", Events)),
    ?assertEqual(2, length(matches("_ ? reply(_, pong)", Events))),
    %% Only the alias tells that it is one.
    ?assertEqual([#{'M' => {Ref, pong}}], matches("_ ? info(M)", Events)).

%% --- Other behaviours ------------------------------------------------------------------

gen_statem_has_the_same_messages(_) ->
    {ok, Machine} = gen_statem:start(?MODULE, machine, []),
    Events = gather(Machine, fun(_) ->
        pong = gen_statem:call(Machine, {ping, 1}),
        pong = gen_statem:call(Machine, {ping, 2}, 10_000),
        pong = gen_statem:call(Machine, {ping, 3}, {dirty_timeout, 10_000}),
        {reply, pong} = gen_statem:receive_response(gen_statem:send_request(Machine, {ping, 4}), 10_000),
        ok = gen_statem:cast(Machine, one),
        Machine ! two,
        pong = gen_statem:call(Machine, {ping, 5})
    end),
    ?assertEqual([#{'N' => N} || N <- lists:seq(1, 5)], matches("_ ? call(_, {ping, N})", Events)),
    ?assertEqual(5, length(matches("_ : _ ! reply(_, pong)", Events))),
    ?assertEqual([#{'M' => one}], matches("_ ? cast(M)", Events)),
    ?assertEqual([#{'M' => two}], matches("_ ? info(M)", Events)).

gen_event_has_messages_of_its_own(_) ->
    {ok, Manager} = gen_event:start(),
    Me = self(),
    Events = gather(Manager, fun(_) ->
        ok = gen_event:add_handler(Manager, ?MODULE, handler),
        ok = gen_event:notify(Manager, one),
        ok = gen_event:sync_notify(Manager, two),
        {asked, three} = gen_event:call(Manager, ?MODULE, three),
        {asked, four} = gen_event:call(Manager, ?MODULE, four, infinity),
        Request = gen_event:send_request(Manager, ?MODULE, five),
        {reply, {asked, five}} = gen_event:receive_response(Request, 10_000),
        Manager ! six,
        [_] = gen_event:which_handlers(Manager),
        ok = gen_event:swap_handler(Manager, {?MODULE, handler}, {{?MODULE, id}, handler}),
        _ = gen_event:delete_handler(Manager, {?MODULE, id}, handler),
        [] = gen_event:which_handlers(Manager)
    end),
    ?assertEqual([#{'E' => one}], matches("_ ? notify(E)", Events)),
    [#{'From' := {Me, Synced}, 'E' := two}] = matches("_ ? sync_notify(From, E)", Events),
    ?assertEqual([#{'T' => Synced}], [Found || #{'T' := T} = Found <- matches("_ : _ ! reply({_, T}, ok)", Events),
                                               T =:= Synced]),
    ?assertEqual([#{'R' => three}, #{'R' => four}, #{'R' => five}],
                 matches("_ ? call(_, witness_spec_otp_SUITE, R)", Events)),
    ?assertEqual([#{'R' => three}, #{'R' => four}, #{'R' => five}], matches("_ : _ ! reply(_, {asked, R})", Events)),
    Before = lists:takewhile(fun(Event) -> element(4, Event) =/= six end, Events),
    ?assertEqual(open, verdict("max X.([_ ? call(F, _, R)] max Y.([_ : _ ! reply(F, {asked, R})] X and [_ ? _] Y"
                               " and [_ : _ ! reply(F, S) when S =/= {asked, R}] ff)"
                               " and [_ ? notify(_)] X and [_ ? sync_notify(_, _)] X"
                               " and [_ ? {_, _, {add_handler, _, _}}] X and [_ : _ ! reply(_, ok)] X)", Before)),
    ?assertEqual([#{'M' => six}], matches("_ ? info(M)", Events)).

a_supervisor_is_asked_by_calls(_) ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, supervisor),
    unlink(Supervisor),
    Events = gather(Supervisor, fun(_) -> [] = supervisor:which_children(Supervisor) end),
    ?assertMatch([_], matches("_ ? call(_, which_children)", Events)),
    ?assertMatch([_], matches("_ : _ ! reply(_, [])", Events)).

%% Every kind of message once, from a process of each behaviour: there is one pattern for each of them.
each_message_has_one_name(_) ->
    Server = server(),
    Served = gather(Server, fun(_) ->
        pong = gen_server:call(Server, {ping, 1}), pong = gen_server:call(Server, {ping, 1}, infinity),
        gen_server:cast(Server, one), Server ! two, _ = sys:get_state(Server), sync(Server)
    end),
    {ok, Manager} = gen_event:start(),
    Managed = gather(Manager, fun(_) ->
        ok = gen_event:notify(Manager, one), ok = gen_event:sync_notify(Manager, two),
        {error, bad_module} = gen_event:call(Manager, none, three), Manager ! four,
        {error, bad_module} = gen_event:call(Manager, none, five, infinity), [] = gen_event:which_handlers(Manager)
    end),
    Patterns = ["call(_, _)", "cast(_)", "info(_)", "notify(_)", "sync_notify(_, _)", "call(_, _, _)", "{system, _, _}",
                "{_, _, which_handlers}"],
    [?assertMatch({_, [_]}, {Event, [Pattern || Pattern <- Patterns, [] =/= matches("_ ? " ++ Pattern, [Event])]}) ||
        {recv, _, _, _, _} = Event <- Served ++ Managed],
    [?assertMatch({_, [_]}, {Event, matches("_ : _ ! reply(_, R)", [Event])}) ||
        {send, _, _, _, _} = Event <- Served ++ Managed].

%% The slice of an event is the tag, in the call as in the reply, in whatever order replies come.
slices_by_call(_) ->
    Events = gather(server(), fun(Server) ->
        Held = gen_server:send_request(Server, hold),
        gen_server:cast(Server, one),
        pong = gen_server:call(Server, {ping, 1}, infinity),
        Server ! {ok, no_tag},
        ok = gen_server:call(Server, release),
        {reply, released} = gen_server:receive_response(Held, 10_000)
    end),
    {ok, #{module := Module, entries := [#{per := [~"From"]}]} = Map, _} = witness_spec:compile_string(~"per", ~"""
        with m:f(_) per From over _ ? call(From, _), _ : _ ! reply(From, _), _ ? cast(_)
        monitor [_ ? call(From, hold)] [_ ? cast(_)] [_ : _ ! reply(From, R) when R =/= expected] ff.
        """),
    {slices, Filter} = Module:init({m, f, [1]}, self(), 1),
    Slices = [{Module:slice(Event, Filter), Event} || Event <- Events],
    {skip, _} = lists:keyfind({recv, {ok, no_tag}}, 2, [{Slice, {Kind, M}} || {Slice, {Kind, _, _, M, _}} <- Slices]),
    [{all, {recv, _, _, {'$gen_cast', one}, _}}] = [Found || {all, _} = Found <- Slices],
    Calls = [{Key, Request} || {{slice, Key}, {recv, _, _, {'$gen_call', _, Request}, _}} <- Slices],
    Replies = [{Key, Reply} || {{slice, Key}, {send, _, _, {_, Reply}, _}} <- Slices],
    [{Hold, hold}, {Ping, {ping, 1}}, {Release, release}] = Calls,
    ?assertEqual(3, length(lists:usort([Hold, Ping, Release]))),
    ?assertEqual(lists:sort([{Hold, released}, {Ping, pong}, {Release, ok}]), lists:sort(Replies)),
    Outcome = fun(Key) ->
        run(Module, Module:instance(Key, Filter), [Event || {S, Event} <- Slices, S =:= {slice, Key} orelse S =:= all])
    end,
    ?assertEqual(no, Outcome(Hold)),
    ?assertEqual(yes, Outcome(Ping)),
    witness_spec:unload(Map).

%% Calls by pid and by alias, in a collection, to a `gen_statem`, replied to late and in another order. A message of `sys` has no
%% request.
a_reply_has_the_request_of_its_call(_) ->
    Served = gather(server(), fun(Server) ->
        Held = gen_server:send_request(Server, hold),
        pong = gen_server:call(Server, {ping, 1}, infinity),
        pong = gen_server:call(Server, {ping, 2}, 10_000),
        Collection = gen_server:send_request(Server, {ping, 3}, label, gen_server:reqids_new()),
        {{reply, pong}, label, _} = gen_server:receive_response(Collection, infinity, true),
        _ = sys:get_state(Server),
        Server ! {make_ref(), stray},
        ok = gen_server:call(Server, release),
        {reply, released} = gen_server:receive_response(Held, 10_000),
        ?assertExit({timeout, _}, gen_server:call(Server, hold, 0)),
        ok = gen_server:call(Server, release)
    end),
    ?assertEqual([{hold, released}, {hold, released}, {release, ok}, {release, ok},
                  {{ping, 1}, pong}, {{ping, 2}, pong}, {{ping, 3}, pong}], answers(Served)),
    {ok, Machine} = gen_statem:start(?MODULE, machine, []),
    Managed = gather(Machine, fun(Process) ->
        pong = gen_statem:call(Process, {ping, 4}),
        pong = gen_statem:call(Process, {ping, 5}, infinity)
    end),
    ?assertEqual([{{ping, 4}, pong}, {{ping, 5}, pong}], answers(Managed)).

%% The requests and replies that a property says, sorted.
answers(Events) ->
    {ok, #{module := Module} = Map, _} = witness_spec:compile_string(~"answers",
        ~"with m:f(_) per Request, Reply over _ : _ ! reply(_, Reply) to Request monitor [_ : _ ! _] ff."),
    {ok, Machine} = witness_monitor_machine:new(#{monitor => {Module, 1}, process => self(), signature => {m, f, [1]},
                                                  explain => 1}),
    {Outcomes, {ok, _}} = witness_monitor_machine:run(Events, Machine),
    witness_spec:unload(Map),
    lists:sort([{Request, Reply} || #{verdict := no, slice := [{~"Request", Request}, {~"Reply", Reply}]} <- Outcomes]).

%% The calls are not in the alphabet: whatever gathers the events must gather them all the same.
a_request_is_known_however_it_is_monitored(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "requests.hml"),
    Over = "per Id over _ : _ ! reply(_, {ok, Id}) to next monitor [_ : _ ! _] [_ : _ ! _] ff.",
    {ok, _} = application:ensure_all_started(witness),
    [begin
         ok = file:write_file(File, [With, Over]),
         ?assertMatch({With, Options, [{[{~"Id", 1}], no}, {[{~"Id", 2}], yes}]}, {With, Options, told(File, Options)})
     end || {With, Options} <- [{"with witness_requests_server:init(_) ", #{}},
                                {"with witness_requests_server:init(_) ", #{source => evm}},
                                {"with witness_requests_server:main() group ", #{}},
                                {"with witness_requests_server:init(_) ", #{instrument => central}},
                                {"", #{instrument => central}},
                                {"with witness_requests_server:init(_) ", #{instrument => inline, weave => [witness_requests_server]}}]].

told(File, Options) ->
    {ok, Run} = witness:start(Options#{system => {witness_requests_server, main, []}, specs => [File], log => false}),
    {ok, _} = witness:await(Run, 60_000),
    Verdicts = witness:verdicts(Run),
    _ = witness:stop(Run),
    lists:sort([{Slice, Verdict} || #{verdict := Verdict, slice := Slice} <- Verdicts]).

an_elixir_server(_) ->
    case os:find_executable("elixir") of
        false -> {skip, "no elixir on the path"};
        Elixir -> an_elixir_server_by(Elixir)
    end.

%% The script of Elixir says where its library is, in the command line that it would run.
an_elixir_server_by(Elixir) ->
    {match, [Library]} = re:run(os:cmd("ELIXIR_CLI_DRY_RUN=1 '" ++ Elixir ++ "' -e ok"), "-pa (.*)/elixir/ebin",
                                [{capture, all_but_first, list}, ungreedy]),
    Paths = [filename:join([Library, App, "ebin"]) || App <- ["elixir", "logger"]],
    ok = code:add_pathsz(Paths),
    {ok, Started} = application:ensure_all_started(elixir),
    try
        an_elixir_server_is_one_of_otp()
    after
        [ok = application:stop(App) || App <- lists:reverse(Started)],
        [code:del_path(Path) || Path <- Paths]
    end.

an_elixir_server_is_one_of_otp() ->
    [{Module, _}] = 'Elixir.Code':compile_string(~"""
        defmodule Witness.Otp.Server do
          use GenServer
          def init(state), do: {:ok, state}
          def handle_call({:ping, _}, _from, state), do: {:reply, :pong, state}
          def handle_cast(_, state), do: {:noreply, state}
          def handle_info(_, state), do: {:noreply, state}
        end
        """),
    {ok, Server} = 'Elixir.GenServer':start(Module, 0),
    Events = gather(Server, fun(_) ->
        pong = 'Elixir.GenServer':call(Server, {ping, 1}),
        ok = 'Elixir.GenServer':cast(Server, one),
        Server ! two,
        pong = 'Elixir.GenServer':call(Server, {ping, 2}, infinity)
    end),
    ?assertEqual([#{'N' => 1}, #{'N' => 2}], matches("_ ? call(_, {ping, N})", Events)),
    ?assertEqual(2, length(matches("_ : _ ! reply(_, pong)", Events))),
    ?assertEqual([#{'M' => one}], matches("_ ? cast(M)", Events)),
    ?assertEqual([#{'M' => two}], matches("_ ? info(M)", Events)),
    {ok, #{module := Code} = Map, []} = witness_spec:compile_string(~"x", ~"with Witness.Otp.Server.init(_) none."),
    ?assertEqual([1], Code:match({Module, init, [0]})),
    witness_spec:unload(Map).

%% --- What the processes do: this module is the callback module of all of them ---------------------

server() ->
    {ok, Server} = gen_server:start(?MODULE, server, []),
    Server.

%% What was sent before has been delivered.
sync(Server) -> ok = gen_server:call(Server, sync).

init(server) -> {ok, none};
init(machine) -> {ok, idle, none};
init(supervisor) -> {ok, {#{}, []}};
init(handler) -> {ok, handler};
init({handler, _}) -> {ok, handler}.

callback_mode() -> handle_event_function.

handle_call({ping, _}, _, Held) -> {reply, pong, Held};
handle_call({ask, Other, Timeout}, _, Held) -> {reply, gen_server:call(Other, {ping, asked}, Timeout), Held};
handle_call(sync, _, Held) -> {reply, ok, Held};
handle_call(hold, From, _) -> {noreply, From};
handle_call(release, _, Held) ->
    gen_server:reply(Held, released),
    {reply, ok, none}.

handle_cast(_, Held) -> {noreply, Held}.

handle_info(_, handler) -> {ok, handler};
handle_info(_, Held) -> {noreply, Held}.

handle_call(Request, handler) -> {ok, {asked, Request}, handler}.

handle_event(_, handler) -> {ok, handler}.

handle_event({call, From}, {ping, _}, _, _) -> {keep_state_and_data, {reply, From, pong}};
handle_event(_, _, _, _) -> keep_state_and_data.

%% --- Gathering and matching -------------------------------------------------------------

%% The events of a process while `Fun` talks to it. Then the process ends.
gather(Process, Fun) ->
    Session = trace:session_create(?MODULE, self(), []),
    1 = trace:process(Session, Process, true, [send, 'receive']),
    Fun(Process),
    Delivered = trace:delivered(Session, Process),
    receive {trace_delivered, Process, Delivered} -> ok end,
    trace:session_destroy(Session),
    Monitor = monitor(process, Process),
    exit(Process, kill),
    receive {'DOWN', Monitor, process, Process, _} -> ok end,
    gathered(Process).

gathered(Process) ->
    receive
        {trace, Process, 'receive', Message} -> [{recv, Process, undefined, Message, undefined} | gathered(Process)];
        {trace, Process, send, Message, To} -> [{send, Process, To, Message, undefined} | gathered(Process)];
        {trace, Process, send_to_non_existing_process, Message, To} ->
            [{send, Process, To, Message, undefined} | gathered(Process)]
    after 0 ->
        []
    end.

%% The bindings of the action in those events that match it.
matches(Action, Events) ->
    compiled(["[", Action, "] ff"], fun(Module) ->
        [maps:from_list([{binary_to_atom(Name), Value} || {Name, Value} <- Bindings]) ||
            Event <- Events,
            {verdict, no, #{bindings := Bindings}} <- [Module:handle_event(Event, start(Module))]]
    end).

verdict(Formula, Events) -> compiled(Formula, fun(Module) -> run(Module, start(Module), Events) end).

compiled(Formula, Fun) ->
    {ok, #{module := Module} = Map, _} =
        witness_spec:compile_string(~"test", unicode:characters_to_binary(["with m:f(_) monitor ", Formula, "."])),
    try
        Fun(Module)
    after
        witness_spec:unload(Map)
    end.

start(Module) ->
    {ok, State} = Module:init({m, f, [1]}, self(), 1),
    State.

run(_, _, []) -> open;
run(Module, State, [Event | Events]) ->
    case Module:handle_event(Event, State) of
        {ok, Next} -> run(Module, Next, Events);
        {verdict, Verdict, _} -> Verdict
    end.
