-module(witness_behaviour_systems).
-moduledoc """
Systems of OTP's behaviours that are watched in every mode, each a function with one argument. What they do does not
depend on timing: each request is answered before anything else happens, unless the name says otherwise.
""".
-behaviour(gen_server).

-export([clients/1, cluster/1, machine/1, manager/1, supervised/1]).
-export([queued/1, killed/1, refused/1, printing/1, ignoring/1, timing/1, hiding/1, unread/1, leaving/1, silent/1, synced/1,
         failing/1, custom/1, asked/1, erring/1, late/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%%% The same in every mode

%% Every way to ask a server.
clients(_) ->
    {ok, Server} = gen_server:start_link({local, ?MODULE}, ?MODULE, server, []),
    1 = gen_server:call(Server, {echo, 1}),
    2 = gen_server:call(?MODULE, {echo, 2}, infinity),
    3 = gen_server:call({?MODULE, node()}, {echo, 3}, 10_000),
    4 = apply(gen_server, call, [Server, {later, 4}]),
    ok = gen_server:cast(Server, {five, self()}),
    receive {five, 5} -> ok end,
    One = gen_server:send_request(Server, {echo, 6}),
    {reply, 6} = gen_server:receive_response(One, 10_000),
    Some = gen_server:send_request(Server, {echo, 8}, b, gen_server:send_request(Server, {echo, 7}, a, gen_server:reqids_new())),
    {{reply, 7}, a, _} = gen_server:receive_response(Some, 10_000, false),
    {{reply, 8}, b,
     Left} = gen_server:receive_response(gen_server:reqids_add(make_ref(), c, maps:filter(fun(_, L) -> L =:= b end, Some)),
                                         10_000, true),
    1 = gen_server:reqids_size(Left),
    ok = gen_server:call(Server, {stop, normal}),
    gone(Server).

%% Several at once.
cluster(_) ->
    {ok, Server} = gen_server:start({local, ?MODULE}, ?MODULE, server, []),
    {[{_, 1}], []} = gen_server:multi_call([node()], ?MODULE, {echo, 1}),
    {[{_, 2}], []} = gen_server:multi_call([node()], ?MODULE, {echo, 2}, 10_000),
    abcast = gen_server:abcast([node()], ?MODULE, {five, self()}),
    receive {five, 5} -> ok end,
    ok = gen_server:call(Server, {stop, {shutdown, done}}),
    gone(Server).

%% Requests that are postponed until the state changes.
machine(Mode) ->
    Log = ets:new(?MODULE, [public, ordered_set]),
    {ok, Machine} = gen_statem:start_link(witness_behaviour_machine, {Log, self(), {Mode, []}}, []),
    First = gen_statem:send_request(Machine, {1, message, [{keep, [postpone]}, {keep, [{reply, yes}]}]}),
    Second = gen_statem:send_request(Machine, {2, message, [{keep, [postpone]}, {two, [postpone]}, {keep, [{reply, yes}]}]}),
    ok = gen_statem:cast(Machine, {3, message, [{two, [{next_event, info, {4, inserted, [{keep, []}]}}]}]}),
    {reply, yes} = gen_statem:receive_response(First, 10_000),
    ok = gen_statem:cast(Machine, {5, message, [{one, []}]}),
    {reply, yes} = gen_statem:receive_response(Second, 10_000),
    yes = gen_statem:call(Machine, stop),
    gone(Machine).

%% Events that several handlers get, equal ones among them.
manager(_) ->
    {ok, Manager} = gen_event:start_link({local, ?MODULE}),
    ok = gen_event:add_handler(Manager, {witness_behaviour_listener, one}, handler),
    ok = gen_event:add_handler(Manager, {witness_behaviour_listener, two}, handler),
    [ok = gen_event:notify(Manager, tick) || _ <- lists:seq(1, 3)],
    Manager ! information,
    yes = gen_event:call(?MODULE, {witness_behaviour_listener, one}, ask),
    ok = gen_event:delete_handler(Manager, {witness_behaviour_listener, one}, gone),
    ok = gen_event:notify(Manager, tick),
    yes = gen_event:call(Manager, {witness_behaviour_listener, two}, ask, infinity),
    gen_event:stop(Manager).

supervised(_) ->
    {ok, Supervisor} = supervisor:start_link(witness_behaviour_tree, supervisor),
    {ok, Server} = supervisor:start_child(Supervisor, #{id => server, start => {gen_server, start_link, [?MODULE, server, []]},
                                                        restart => temporary}),
    ok = gen_server:call(Server, {stop, normal}),
    gone(Server),
    gen_server:stop(Supervisor).

%%% What differs

%% Three requests are in the queue before the server takes the first one.
queued(_) ->
    {ok, Server} = gen_server:start(?MODULE, server, []),
    gen_server:cast(Server, block),
    Requests = [gen_server:send_request(Server, {echo, N}) || N <- [1, 2, 3]],
    Server ! unblock,
    [{reply, _} = gen_server:receive_response(Request, 10_000) || Request <- Requests],
    ended(Server).

killed(_) ->
    {ok, Server} = gen_server:start(?MODULE, server, []),
    1 = gen_server:call(Server, {echo, 1}),
    exit(Server, kill),
    gone(Server).

%% A server that has ended is called.
refused(_) ->
    {ok, Server} = gen_server:start(?MODULE, server, []),
    ended(Server),
    try gen_server:call(Server, {echo, 1}) of
        _ -> error(answered)
    catch
        exit:{noproc, _} -> ok
    end.

%% A module that is not woven sends.
printing(_) ->
    {ok, Server} = gen_server:start(?MODULE, server, []),
    ok = gen_server:call(Server, print),
    ended(Server).

%% A message that the server has no callback for: this one is `witness_behaviour_deaf'.
ignoring(Module) ->
    {ok, Server} = gen_server:start(Module, [], []),
    Server ! noise,
    ok = gen_server:call(Server, ok),
    ended(Server).

%% A message like a time-out, while there is one.
timing(_) ->
    {ok, Server} = gen_server:start(?MODULE, server, []),
    ok = gen_server:call(Server, wait),
    Server ! timeout,
    ended(Server).

hiding(_) ->
    {ok, Server} = gen_server:start(?MODULE, server, []),
    ok = gen_server:call(Server, hide),
    1 = gen_server:call(Server, {echo, 1}),
    ended(Server).

%% A server ends with a message in its queue.
unread(_) ->
    {ok, Server} = gen_server:start(?MODULE, server, []),
    gen_server:cast(Server, block),
    Server ! {stop, normal},
    Server ! never_taken,
    Server ! unblock,
    gone(Server).

%% A state machine goes on in a module that is not woven.
leaving(Module) ->
    Log = ets:new(?MODULE, [public, ordered_set]),
    {ok, Machine} = gen_statem:start(witness_behaviour_machine, {Log, self(), {handle_event_function, []}}, []),
    ok = gen_statem:cast(Machine, {1, message, [{keep, [{change_callback_module, Module}]}]}),
    gen_statem:stop(Machine).

%% A manager that no handler is added to.
silent(_) ->
    {ok, Manager} = gen_event:start_link(),
    ok = gen_event:notify(Manager, tick),
    gen_event:stop(Manager).

synced(_) ->
    {ok, Manager} = gen_event:start_link(),
    ok = gen_event:add_handler(Manager, witness_behaviour_listener, handler),
    ok = gen_event:sync_notify(Manager, tick),
    gen_event:stop(Manager).

failing(_) ->
    ignore = gen_server:start(?MODULE, ignore, []),
    ok.

%% A behaviour that Witness does not know calls this module.
custom(_) ->
    {ok, Process} = witness_behaviour_custom:start(?MODULE, server),
    Process ! timeout,
    Process ! stop,
    gone(Process).

asked(_) ->
    {ok, Server} = gen_server:start(?MODULE, server, []),
    none = sys:get_state(Server),
    ended(Server).

%% The callback of a state machine returns nonsense.
erring(_) ->
    Log = ets:new(?MODULE, [public, ordered_set]),
    {ok, Machine} = gen_statem:start(witness_behaviour_machine, {Log, self(), {handle_event_function, []}}, []),
    ok = gen_statem:cast(Machine, {1, message, [{{return, nonsense}, []}]}),
    gone(Machine).

%% A reply that comes after `gen_server:wait_response/2' has timed out.
late(_) ->
    {ok, Server} = gen_server:start(?MODULE, server, []),
    ok = gen_server:cast(Server, block),
    Request = gen_server:send_request(Server, {echo, 1}),
    timeout = gen_server:wait_response(Request, 0),
    Server ! unblock,
    {reply, 1} = gen_server:receive_response(Request, 10_000),
    ended(Server).

ended(Server) ->
    gen_server:cast(Server, {stop, normal}),
    gone(Server).

gone(Process) ->
    Monitor = monitor(process, Process),
    receive {'DOWN', Monitor, process, _, _} -> ok end.

%%% Callbacks

init(server) -> {ok, none};
init(ignore) -> ignore.

handle_call({echo, Term}, _, State) -> {reply, Term, State};
handle_call({later, Term}, From, State) ->
    self() ! {now, From, Term},
    {noreply, State};
handle_call(print, _, State) ->
    io:put_chars(""),
    {reply, ok, State};
handle_call(wait, _, State) -> {reply, ok, State, 100_000};
handle_call(hide, _, State) ->
    process_flag(sensitive, true),
    {reply, ok, State};
handle_call({stop, Reason}, _, State) -> {stop, Reason, ok, State}.

handle_cast({five, Client}, State) ->
    Client ! {five, 5},
    {noreply, State};
handle_cast(block, State) ->
    receive unblock -> {noreply, State} end;
handle_cast({stop, Reason}, State) -> {stop, Reason, State}.

handle_info({now, From, Term}, State) ->
    gen_server:reply(From, Term),
    {noreply, State};
handle_info({stop, Reason}, State) -> {stop, Reason, State};
handle_info(timeout, State) -> {noreply, State}.
