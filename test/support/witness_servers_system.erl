-module(witness_servers_system).
-moduledoc """
Processes that run before any run, and start workers for others: a supervisor, and a desk that calls the supervisor. A worker has the
name that was asked for in its arguments.
""".
-behaviour(gen_server).

-export([start/0, stop/1, start_child/3, crash/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, handle_continue/2]).

-record(desk, {supervisor :: pid()}).

start() ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, supervisor),
    {ok, Desk} = gen_server:start_link(?MODULE, {desk, Supervisor}, []),
    {Supervisor, Desk}.

stop({Supervisor, Desk}) ->
    {links, Linked} = process_info(Desk, links),
    [unlink(P) || P <- [Desk, Supervisor]],
    Monitors = [monitor(process, P) || P <- [Desk, Supervisor | Linked -- [self()]]],
    [exit(P, shutdown) || P <- [Desk, Supervisor]],
    [receive {'DOWN', Monitor, process, _, _} -> ok end || Monitor <- Monitors],
    ok.

-doc "Has a worker started in one of these ways; `cast` and `message` are no calls, so nothing is started on behalf of the caller.".
start_child(supervisor, Name, {Supervisor, _}) -> supervisor:start_child(Supervisor, [Name, []]);
start_child(cast, Name, {_, Desk}) -> gen_server:cast(Desk, {start, Name, self()}), answer();
start_child(message, Name, {_, Desk}) -> Desk ! {start, Name, self()}, answer();
start_child(How, Name, {_, Desk}) -> gen_server:call(Desk, {How, Name}).

answer() -> receive {started, Started} -> Started end.

-doc "The worker ends with an error; the one that its supervisor starts in its place.".
crash(Worker) ->
    Monitor = monitor(process, Worker),
    exit(Worker, crash),
    receive {'DOWN', Monitor, process, Worker, crash} -> ok end.

init(supervisor) ->
    {ok, {#{strategy => simple_one_for_one, intensity => 1_000_000, period => 1},
          [#{id => worker, start => {gen_server, start_link, [?MODULE]}, restart => transient}]}};
init({desk, Supervisor}) -> {ok, #desk{supervisor = Supervisor}};
init(Name) -> {ok, Name}.

handle_call({call, Name}, _, Desk) -> {reply, start(Name, Desk), Desk};
handle_call({spawned, Name}, _, Desk) -> {reply, gen_server:start_link(?MODULE, Name, []), Desk};
handle_call({continue, Name}, From, Desk) -> {noreply, Desk, {continue, {Name, From}}};
handle_call({process, Name}, From, Desk) ->
    spawn(fun() -> gen_server:reply(From, start(Name, Desk)) end),
    {noreply, Desk};
handle_call(name, _, Name) -> {reply, Name, Name}.

handle_continue({Name, From}, Desk) ->
    gen_server:reply(From, start(Name, Desk)),
    {noreply, Desk}.

handle_cast({start, Name, To}, Desk) -> To ! {started, start(Name, Desk)}, {noreply, Desk}.

handle_info({start, Name, To}, Desk) -> To ! {started, start(Name, Desk)}, {noreply, Desk};
handle_info(_, State) -> {noreply, State}.

start(Name, #desk{supervisor = Supervisor}) -> supervisor:start_child(Supervisor, [Name, []]).
