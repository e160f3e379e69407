-module(witness_searched_shop).
-moduledoc """
An application for searches: a stock and a till below a supervisor. The stock tells the till of each sale. With a fault it answers the
customer before, so that the till may be asked too early.

The application `witness_searched_street` needs this one; `witness_searched_closed` does not start.
""".
-behaviour(application).

-compile(export_all).

app(shop) -> app(witness_searched_shop, [], open, [{opened, 9}]);
app(street) -> app(witness_searched_street, [witness_searched_shop], street, []);
app(closed) -> app(witness_searched_closed, [], closed, []).

app(Name, Needs, Args, Parameters) ->
    {application, Name, [{description, "for searches"}, {vsn, "1"}, {modules, [?MODULE]}, {registered, []},
                         {applications, [kernel, stdlib | Needs]}, {env, Parameters}, {mod, {?MODULE, Args}}]}.

start(_, closed) -> {error, on_sundays};
start(_, open) -> supervisor:start_link(?MODULE, supervisor);
start(_, street) ->
    true = is_pid(whereis(stock)),
    supervisor:start_link(?MODULE, street).

stop(_) ->
    io:format("closed~n"),
    [] =:= [exit_of_own() || {ok, true} <- [application:get_env(witness_searched_shop, tells_stop)]].

exit_of_own() -> spawn(fun() -> exit(was_stopped) end).

init(street) -> {ok, {#{}, []}};
init(supervisor) ->
    {ok, {#{}, [#{id => Id, start => {gen_server, start_link, [{local, Id}, ?MODULE, Id, []]}} || Id <- [stock, till]]}};
init(stock) -> {ok, application:get_env(witness_searched_shop, seats, 1)};
init(till) -> {ok, 0}.

handle_call({sell, true}, From, Seats) ->
    gen_server:reply(From, sold),
    {noreply, sold(Seats)};
handle_call({sell, false}, _, Seats) -> {reply, sold, sold(Seats)};
handle_call(sum, _, Sum) -> {reply, Sum, Sum};
handle_call(slowly, From, Sum) ->
    _ = erlang:send_after(1_000, self(), {answer, From}),
    {noreply, Sum}.

sold(Seats) ->
    ok = gen_server:cast(till, sold),
    Seats - 1.

handle_cast(sold, Sum) ->
    io:format("sold~n"),
    {noreply, Sum + 1}.

handle_info({answer, From}, Sum) ->
    gen_server:reply(From, Sum),
    {noreply, Sum}.

%% --- programs ----------------------------------------------------------------------

%% The application runs already.
buys(Fault) ->
    Self = self(),
    _ = spawn(fun() ->
        sold = gen_server:call(stock, {sell, Fault}),
        Self ! {sum, gen_server:call(till, sum)}
    end),
    receive {sum, Sum} -> 1 = Sum end,
    ok.

%% Starts it itself, and stops it, and again.
visits(Fault) ->
    lists:foreach(fun(_) ->
        undefined = whereis(stock),
        {ok, [_]} = application:ensure_all_started(witness_searched_shop),
        ok = buys(Fault),
        ok = application:stop(witness_searched_shop)
    end, [morning, evening]).

%% What a run changes is not there in the next one.
changes() ->
    [] = [App || {App, _, _} <- application:loaded_applications(), App =:= witness_searched_shop],
    undefined = application:get_env(witness_searched_shop, opened),
    undefined = application:get_env(stdlib, witness_searched),
    {ok, []} = application:get_env(kernel, shell_history_drop),
    ok = application:set_env(kernel, shell_history_drop, [changed]),
    ok = application:set_env(stdlib, witness_searched, true),
    {ok, true} = application:get_env(stdlib, witness_searched),
    {ok, [witness_searched_shop, witness_searched_street]} = application:ensure_all_started(witness_searched_street),
    {error, {already_started, witness_searched_street}} = application:start(witness_searched_street),
    {ok, 9} = application:get_env(witness_searched_shop, opened),
    ok = application:set_env(witness_searched_shop, opened, 10),
    [witness_searched_street, witness_searched_shop, stdlib, kernel] = [App || {App, _, _} <- application:which_applications()],
    {ok, witness_searched_shop} = application:get_application(whereis(stock)),
    ok.

%% The supervisor of a permanent application ends.
ends(Type) ->
    {ok, _} = application:ensure_all_started(witness_searched_shop, Type),
    {links, Links} = process_info(whereis(stock), links),
    Monitor = monitor(process, stock),
    _ = [exit(Supervisor, kill) || Supervisor <- Links],
    receive {'DOWN', Monitor, process, _, _} -> ok end.

%% This process waits for an answer when the function has returned.
keeps() -> spawn(fun() -> receive never -> ok end end), ok.

%% A process of the application does not take it.
rings() ->
    {group_leader, Leader} = process_info(whereis(till), group_leader),
    Door = spawn(fun() -> receive close -> ok end end),
    true = group_leader(Leader, Door),
    Door ! ring,
    ok.

leaves() -> spawn(fun() -> 0 = (catch gen_server:call(till, slowly)) end).
