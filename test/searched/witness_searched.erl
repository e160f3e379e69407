-module(witness_searched).
-moduledoc "Programs that are searched: those with a fault (`true`) go wrong in some order, and their repaired twins (`false`) in none.".

-export([run/2, savina/1]).
-export([register/1, update/1, deadlock/1, call/1, stale/1, restart/1, notify/1, late/1, name/1, links/1, machine/1]).
-export([event/1, acknowledge/1]).
-export([background/2]).
-export([ways/0, early/0, left/0, wakes/0, globals/0, not_taken/0, gives_up/0, ends_first/0, ends/1, asserts/0, slow/0]).
-export([triangle/0, halts/1, names/0]).
-export([inherits/0, environment/0, leader/0, place/0, table/1, term/1, queue/1, linked/0, misspelt/0, asleep/0]).
-export([ports/0, sockets/0, forever/0, computes/0, crowd/0, clock/0, outside/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, callback_mode/0, handle_event/4,
         handle_event/2, handle_call/2, started/2]).

-include_lib("stdlib/include/assert.hrl").

-behaviour(gen_server).

-doc "A program of `test/recorded`; its processes note their steps in a table.".
run(Module, Function) ->
    witness_recorded_journal = ets:new(witness_recorded_journal, [named_table, public, ordered_set]),
    _ = case Function of {Name, Args} -> apply(Module, Name, Args); _ -> Module:Function() end,
    ok.

-doc "A benchmark of Savina, with small parameters.".
savina(Name) ->
    _ = witness_savina:run(Name, small),
    ok.

%% --- faults ----------------------------------------------------------------------

-doc "Two processes look whether a name is free, and register it.".
register(Fault) ->
    Take = fun() ->
        case whereis(taken) of
            undefined when Fault -> true = erlang:register(taken, self());
            _ -> try erlang:register(taken, self()) catch error:badarg -> false end
        end,
        receive done -> ok end
    end,
    Pids = [spawn(Take), spawn(Take)],
    [Pid ! done || Pid <- Pids],
    ok.

-doc "Two processes count in a table.".
update(Fault) ->
    Table = ets:new(count, [public]),
    true = ets:insert(Table, {count, 0}),
    Count = fun() ->
        case Fault of
            true ->
                [{count, N}] = ets:lookup(Table, count),
                ets:insert(Table, {count, N + 1});
            false -> ets:update_counter(Table, count, 1)
        end
    end,
    join([Count, Count]),
    [{count, 2}] = ets:lookup(Table, count),
    ok.

join(Funs) -> [receive {'DOWN', Ref, process, _, Reason} -> normal = Reason end || {_, Ref} <- [spawn_monitor(Fun) || Fun <- Funs]].

-doc "Two servers call each other, while each handles a call.".
deadlock(Fault) ->
    {ok, One} = gen_server:start_link(?MODULE, {peer, Fault}, []),
    {ok, Two} = gen_server:start_link(?MODULE, {peer, Fault}, []),
    ok = gen_server:cast(One, {peer, Two}),
    ok = gen_server:cast(Two, {peer, One}),
    join([fun() -> gen_server:call(One, ask, infinity) end, fun() -> gen_server:call(Two, ask, infinity) end]),
    ok.

-doc "The same, while the function returns, or looks again and again.".
background(Fault, Then) ->
    {ok, One} = gen_server:start(?MODULE, {peer, Fault}, []),
    {ok, Two} = gen_server:start(?MODULE, {peer, Fault}, []),
    ok = gen_server:cast(One, {peer, Two}),
    ok = gen_server:cast(Two, {peer, One}),
    _ = [spawn(fun() -> gen_server:call(Server, ask, infinity) end) || Server <- [One, Two]],
    Then =:= returns orelse polls().

polls() -> receive after 10 -> polls() end.

-doc "A server is called that another process stops.".
call(Fault) ->
    {ok, Server} = gen_server:start(?MODULE, plain, []),
    Stop = fun() -> gen_server:stop(Server) end,
    Call = fun() ->
        try gen_server:call(Server, ask) of _ -> ok catch exit:_ when not Fault -> ok end
    end,
    [receive {'DOWN', Ref, process, _, Reason} -> is_tuple(Reason) andalso exit(Reason) end
     || {_, Ref} <- [spawn_monitor(Stop), spawn_monitor(Call)]],
    ok.

-doc "The result of an earlier request is taken for that of the next one: the requests have no reference.".
stale(Fault) ->
    Me = self(),
    Server = spawn(fun Loop() -> receive {Key, N} -> Me ! {Key, N * 2}, Loop() end end),
    Ask = fun(N) ->
        Key = case Fault of true -> answer; false -> make_ref() end,
        Server ! {Key, N},
        receive {Key, Answer} -> Answer after 10 -> none end
    end,
    Slow = spawn(fun() -> receive go -> Server ! {answer, 100} end end),
    Slow ! go,
    case Ask(1) of none -> ok; 2 -> ok end.

-doc "The worker of a supervisor is asked for by its name while it is started again.".
restart(Fault) ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, supervisor),
    Crash = fun() -> try exit(whereis(worker), kill) catch error:badarg -> true end end,
    Ask = fun() ->
        try gen_server:call(worker, ask) of _ -> ok catch exit:_ when not Fault -> ok end
    end,
    {_, Ref} = spawn_monitor(Crash),
    {_, Asked} = spawn_monitor(Ask),
    receive {'DOWN', Ref, process, _, normal} -> ok end,
    Reason = receive {'DOWN', Asked, process, _, R} -> R end,
    unlink(Supervisor),
    exit(Supervisor, shutdown),
    normal = Reason,
    ok.

-doc "Two handlers of an event manager: the second one is added while an event comes, and must see it.".
notify(Fault) ->
    {ok, Manager} = gen_server:start_link(?MODULE, {log, []}, []),
    Add = fun() -> ok = gen_server:call(Manager, {add, self()}) end,
    {_, Ref} = spawn_monitor(Add),
    case Fault of true -> ok; false -> receive {'DOWN', Ref, process, _, normal} -> ok end end,
    [_] = gen_server:call(Manager, list),
    ok.

-doc "An answer comes after the timeout of the caller, which takes it for another message.".
late(Fault) ->
    Me = self(),
    Server = spawn(fun() ->
        receive {ask, From, Tag} -> receive after 20 -> From ! {Tag, late} end end,
        Me ! {other, done}
    end),
    Tag = case Fault of true -> other; false -> make_ref() end,
    Server ! {ask, self(), Tag},
    receive {Tag, _} -> error(early) after 10 -> ok end,
    receive {other, done} -> ok; {other, Wrong} -> exit({wrong, Wrong}) end.

-doc "A message to a name, which its owner has given up.".
name(Fault) ->
    Owner = spawn(fun() -> true = erlang:register(owner, self()), receive stop -> ok end end),
    Send = fun() -> try owner ! hello catch error:badarg when not Fault -> hello end end,
    {_, Ref} = spawn_monitor(Send),
    Owner ! stop,
    receive {'DOWN', Ref, process, _, Reason} -> normal = Reason end,
    ok.

-doc "A process ends with one that it is linked to, unless that one has ended before it is linked.".
links(Fault) ->
    Me = self(),
    Watcher = spawn(fun() ->
        process_flag(trap_exit, not Fault),
        Child = spawn_link(fun() -> exit(crash) end),
        receive {'EXIT', Child, crash} -> Me ! told after 10 -> Me ! told end
    end),
    Ref = monitor(process, Watcher),
    receive told -> ok; {'DOWN', Ref, process, _, Reason} -> exit({lost, Reason}) end.

-doc "A state machine gets an event in a state for which it has no clause.".
machine(Fault) ->
    {ok, Machine} = gen_statem:start_link(?MODULE, {machine, Fault}, []),
    unlink(Machine),
    Ref = monitor(process, Machine),
    join([fun() -> gen_statem:cast(Machine, open) end, fun() -> gen_statem:cast(Machine, close) end]),
    gen_statem:cast(Machine, stop),
    receive {'DOWN', Ref, process, _, Reason} -> normal = Reason end,
    ok.

-doc "The handler of an event manager is asked for its sum, and an event removes it.".
event(Fault) ->
    {ok, Manager} = gen_event:start_link(),
    ok = gen_event:add_handler(Manager, ?MODULE, 0),
    Last = fun() -> ok = gen_event:notify(Manager, 2), ok = gen_event:notify(Manager, last) end,
    Ask = fun() ->
        case gen_event:call(Manager, ?MODULE, sum) of
            Sum when is_integer(Sum) -> ok;
            {error, bad_module} when not Fault -> ok
        end
    end,
    join([Ask, Last]),
    ok = gen_event:stop(Manager).

-doc "A process says that it has started before it has its name.".
acknowledge(Fault) ->
    {ok, Pid} = proc_lib:start_link(?MODULE, started, [self(), Fault]),
    Me = self(),
    started ! {are_you, Me},
    receive {Pid, started} -> ok end.

started(Parent, true) ->
    proc_lib:init_ack(Parent, {ok, self()}),
    started(Parent, named);
started(_, named) ->
    true = erlang:register(started, self()),
    receive {are_you, From} -> From ! {self(), started}, ok end;
started(Parent, false) ->
    true = erlang:register(started, self()),
    proc_lib:init_ack(Parent, {ok, self()}),
    receive {are_you, From} -> From ! {self(), started}, ok end.

%% --- what is a failure, if it is asked for -----------------------------------------

%% What comes first is taken, and then only a close.
not_taken() ->
    Door = spawn(fun() -> receive _ -> receive close -> ok end end end),
    _ = [spawn(fun() -> Door ! What end) || What <- [open, close]],
    ok.

%% The supervisor ends when its child does.
gives_up() ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, restless),
    [{_, Child, _, _}] = supervisor:which_children(Supervisor),
    exit(Child, kill),
    receive never -> ok end.

%% The environment stays for the next run.
ends_first() ->
    case os:getenv("WITNESS_SEARCHED_FIRST") of
        false ->
            true = os:putenv("WITNESS_SEARCHED_FIRST", "no"),
            error(first);
        _ -> ok
    end.

left() ->
    spawn(fun() -> receive never -> ok end end),
    ok.

%% Their order in the module is not that of the alphabet.
names() ->
    Keys = maps:keys(#{animal(3) => 3, animal(2) => 2, animal(1) => 1}),
    [atom_to_list(Name) || Name <- Keys].

animal(1) -> hare_of_a_search;
animal(2) -> zebra_of_a_search;
animal(3) -> ape_of_a_search.

%% The server of this table comes with it.
globals() ->
    false = undefined =:= ets:info(global_names),
    ok.

wakes() ->
    spawn(fun wakes_up/0),
    left().

wakes_up() ->
    receive never -> ok after 1000 -> wakes_up() end.

ends(Reason) ->
    {_, Ref} = spawn_monitor(fun() -> exit(Reason) end),
    receive {'DOWN', Ref, process, _, Reason} -> ok end.

asserts() ->
    {_, Ref} = spawn_monitor(fun() -> ?assert(node() =:= away) end),
    receive {'DOWN', Ref, process, _, _} -> ok end.

%% In the first schedule it fails in one way, and in others in another one.
ways() ->
    Me = self(),
    [spawn(fun() -> Me ! Way end) || Way <- [one, two]],
    receive one -> error(one); two -> error(two) end.

%% In the first schedule a process fails at once. If that one comes later, two others may lose an update.
early() ->
    Table = ets:new(count, [public]),
    true = ets:insert(Table, {count, 0}),
    spawn(fun() -> [] =:= try ets:lookup(Table, started) catch error:badarg -> ended end andalso error(early) end),
    join([fun() ->
        true = ets:insert(Table, {started, true}),
        _ = [begin self() ! N, receive N -> ok end end || N <- lists:seq(1, 10)],
        [{count, N}] = ets:lookup(Table, count),
        ets:insert(Table, {count, N + 1})
    end || _ <- "ab"]),
    [{count, 2}] = ets:lookup(Table, count),
    ok.

slow() ->
    Me = self(),
    spawn(fun() -> Me ! done end),
    receive done -> ok after 60_000 -> error(late) end.

triangle() ->
    Me = self(),
    Other = spawn(fun() -> receive first -> Me ! second end end),
    spawn(fun() -> Me ! first, Other ! first end),
    receive first -> receive second -> ok end; second -> error(overtaken) end.

halts(Status) -> halt(Status).

%% --- what the program has in common with its VM ------------------------------------

inherits() ->
    Me = self(),
    Owner = spawn(fun() ->
        Table = ets:new(inherited, [{heir, Me, left}]),
        true = ets:info(Table, owner) =:= self(),
        Me = proplists:get_value(heir, ets:info(Table)),
        true = ets:insert(Table, {one}),
        Me ! {made, Table}
    end),
    Table = receive {made, Made} -> Made end,
    receive {'ETS-TRANSFER', Table, Owner, left} -> ok end,
    Me = ets:info(Table, owner),
    Taker = spawn(fun() -> receive {'ETS-TRANSFER', Table, Me, yours} -> Me ! ets:lookup(Table, one) end end),
    true = ets:give_away(Table, Taker, yours),
    receive [{one}] -> ok end,
    receive {'ETS-TRANSFER', Table, Taker, left} -> ok end.

environment() ->
    [] = ets:lookup(ac_tab, searched),
    true = ets:insert(ac_tab, {searched, 1}),
    [{searched, 1}] = ets:lookup(ac_tab, searched),
    ok.

leader() ->
    true = group_leader() =:= whereis(user),
    ok.

place() ->
    {current_function, {?MODULE, place, 0}} = process_info(self(), current_function),
    {current_location, {?MODULE, place, 0, [{file, _}, {line, _}]}} = process_info(self(), current_location),
    ok.

linked() ->
    Pid = spawn(fun() -> ok end),
    link(Pid),
    ok.

misspelt() -> spawn(2).

%% A process ends while it hibernates. Another process that this VM runs is monitored by its name, and does not end; by its name and
%% node it is called.
asleep() ->
    {Pid, Ref} = spawn_monitor(erlang, hibernate, [?MODULE, asleep, []]),
    Server = monitor(process, code_server),
    true = exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, killed} -> ok end,
    {code_server, node()} ! {code_call, self(), get_path},
    receive {code_server, [_ | _]} -> ok end,
    receive {'DOWN', Server, process, _, _} -> error(ended) after 1 -> ok end.

%% The first operation of a process comes before or after one of its parent. It is wrong if it comes as it is given.

table(Wrong) ->
    spawn(fun() ->
        ets:new(made, [named_table]),
        receive never -> ok end
    end),
    Wrong =:= (ets:info(made, type) =/= undefined) andalso error(wrong),
    ok.

term(Wrong) ->
    {_, Ref} = spawn_monitor(fun() -> exit({is, persistent_term:get(searched, none)}) end),
    persistent_term:put(searched, some),
    receive {'DOWN', Ref, process, _, {is, Wrong}} -> error(wrong); {'DOWN', Ref, process, _, {is, _}} -> ok end.

queue(Wrong) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({is, process_info(self(), message_queue_len)}) end),
    Pid ! hello,
    receive
        {'DOWN', Ref, process, _, {is, {message_queue_len, Wrong}}} -> error(wrong);
        {'DOWN', Ref, process, _, {is, _}} -> ok
    end.

%% --- what cannot be controlled, and what does not end ------------------------------

ports() ->
    Port = open_port({spawn, "cat"}, [binary]),
    port_close(Port).

sockets() -> gen_tcp:listen(0, []).

forever() -> forever().

computes() -> computes(0).

computes(N) when N >= 0 -> computes(N + 1).

crowd() ->
    spawn(fun crowd/0),
    crowd().

clock() ->
    self() ! erlang:system_info(scheduler_id) + erlang:system_time() rem 7,
    receive _ -> ok end.

outside() ->
    _ = [self() ! element(1, erlang:statistics(reductions)) || _ <- lists:seq(1, 10)],
    ok.

%% --- servers -----------------------------------------------------------------------

init(restless) ->
    {ok, {#{intensity => 0}, [#{id => worker, start => {gen_server, start_link, [?MODULE, plain, []]}}]}};
init(supervisor) ->
    Start = {gen_server, start_link, [{local, worker}, ?MODULE, plain, []]},
    {ok, {#{intensity => 5}, [#{id => worker, start => Start}]}};
init({machine, Fault}) -> {ok, closed, Fault};
init(State) -> {ok, State}.

handle_call(ask, _, {{peer, Fault}, Peer}) ->
    _ = [gen_server:call(Peer, answer, infinity) || Fault],
    {reply, ok, {{peer, Fault}, Peer}};
handle_call(ask, _, State) -> {reply, State, State};
handle_call(answer, _, State) -> {reply, ok, State};
handle_call({add, Pid}, _, {log, Pids}) -> {reply, ok, {log, [Pid | Pids]}};
handle_call(list, _, {log, Pids}) -> {reply, Pids, {log, Pids}}.

handle_cast({peer, Peer}, State) -> {noreply, {State, Peer}}.

handle_info(_, State) -> {noreply, State}.

%% The handler of the event manager.
handle_event(last, _) -> remove_handler;
handle_event(N, Sum) -> {ok, Sum + N}.

handle_call(sum, Sum) -> {ok, Sum, Sum}.

callback_mode() -> handle_event_function.

handle_event(cast, stop, _, _) -> {stop, normal};
handle_event(cast, open, closed, Fault) -> {next_state, open, Fault};
handle_event(cast, close, open, Fault) -> {next_state, closed, Fault};
handle_event(cast, close, closed, false) -> keep_state_and_data;
handle_event(cast, open, open, false) -> keep_state_and_data.
