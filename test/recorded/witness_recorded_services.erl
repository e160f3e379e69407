-module(witness_recorded_services).
-moduledoc "An application that the program itself starts and stops, what `sys` tells of processes, and handlers of events.".
-behaviour(application).
-behaviour(gen_server).

-import(witness_recorded, [message/2, content/1, spawned/1, either/1, ended/2]).

-export([application/0, system/0]).
-export([start/2, stop/1, start_worker/0, init/1, handle_call/3, handle_cast/2, handle_event/2]).

-define(APP, witness_recorded_inner).
-define(SUPERVISOR, witness_recorded_inner_sup).

-doc "The processes of the application are recorded, as its clients are: the supervisor's children note their parent, and what they take.".
application() ->
    ok = application:load({application, ?APP, [{vsn, "1"}, {modules, [?MODULE]}, {registered, []},
                                               {applications, [kernel, stdlib]}, {mod, {?MODULE, []}}, {env, [{k, 7}]}]}),
    ok = application:start(?APP),
    Me = self(),
    Worker = whereis(?MODULE),
    Clients = [spawned(fun() -> Me ! {answers, self(), client(Worker, I, 10, [])} end) || I <- [1, 2, 3]],
    Answers = [receive {answers, Client, List} = M -> message(Client, M), List end || Client <- Clients],
    Ref = monitor(process, Worker),
    exit(Worker, kill),
    receive {'DOWN', Ref, process, Worker, killed} = Down -> content(Down) end,
    logger:debug("an event ~p", [self()]),
    Supervisor = whereis(?SUPERVISOR),
    Children = length(supervisor:which_children(Supervisor)),
    message(Supervisor, {'_', '_'}),
    Stopped = application:stop(?APP),
    {lists:sort(lists:append(Answers)), Children, Stopped, application:get_env(?APP, k)}.

client(_, _, 0, Answers) -> Answers;
client(Worker, I, N, Answers) ->
    Reply = gen_server:call(?MODULE, {next, I}),
    message(Worker, {'_', Reply}),
    client(Worker, I, N - 1, [Reply | Answers]).

start(normal, []) ->
    Worker = #{id => worker, start => {?MODULE, start_worker, []}},
    supervisor:start_link({local, ?SUPERVISOR}, ?MODULE, {supervisor, [Worker]}).

stop(_) -> ok.

start_worker() -> gen_server:start_link({local, ?MODULE}, ?MODULE, {worker, 0}, []).

-doc "State and status of a server that is recorded, also while it is suspended, and events for a handler.".
system() ->
    Me = self(),
    {ok, Server} = Started = gen_server:start(?MODULE, {counter, Me}, []),
    either([[{spawn, Server}, {message, Server, {ack, Server, Started}}]]),
    1 = call(Server, {next, Me}),
    {counting, 1} = sys:get_state(Server),
    message(Server, '_'),
    {status, Server, _, _} = sys:get_status(Server),
    message(Server, '_'),
    ok = sys:suspend(Server),
    message(Server, '_'),
    Waiting = spawned(fun() -> Me ! {told, self(), call(Server, {next, self()})} end),
    {counting, 5} = sys:replace_state(Server, fun({counting, N}) -> {counting, N + 4} end),
    message(Server, '_'),
    ok = sys:resume(Server),
    message(Server, '_'),
    receive {told, Waiting, 6} = M -> message(Waiting, M) end,
    {ok, Events} = Begun = gen_event:start(),
    either([[{spawn, Events}, {message, Events, {ack, Events, Begun}}]]),
    ok = gen_event:add_handler(Events, ?MODULE, {handler, Me}),
    message(Events, '_'),
    ok = gen_event:notify(Events, one),
    receive {handled, Events, one} = One -> message(Events, One) end,
    ok = gen_event:sync_notify(Events, two),
    message(Events, '_'),
    receive {handled, Events, two} = Two -> message(Events, Two) end,
    ok = gen_event:stop(Events),
    Ref = monitor(process, Server),
    ok = gen_server:stop(Server),
    receive {'DOWN', Ref, process, Server, Reason} = Down -> content(Down), ended(Server, Reason) end,
    done.

call(Server, Request) ->
    Reply = gen_server:call(Server, Request),
    message(Server, '_'),
    Reply.

init({supervisor, Children}) -> {ok, {#{}, Children}};
init({worker, N}) ->
    witness_recorded:born(whereis(?SUPERVISOR)),
    {ok, {counting, N}};
init({counter, Parent}) ->
    witness_recorded:born(Parent),
    {ok, {counting, 0}};
init({handler, To}) -> {ok, To}.

handle_call({next, _}, {Client, _}, {counting, N}) ->
    message(Client, '_'),
    {reply, N + 1, {counting, N + 1}}.

handle_cast(_, State) -> {noreply, State}.

handle_event(Event, To) ->
    To ! {handled, self(), Event},
    {ok, To}.
