-module(witness_test_shop).
-moduledoc """
An application that runs before Witness comes: two servers, `till` and `stock`, and a `clerk`, if it is hired. They hang, or do not,
when they are told so (`m:witness_remote_SUITE`, `m:witness_checks_SUITE`).
""".
-behaviour(gen_server).

-compile(export_all).

-doc "Starts the application. It is there when the servers are.".
open() ->
    ok = application:load({application, ?MODULE, [{vsn, "1"}, {modules, [?MODULE]}, {registered, [till, stock, clerk]},
                                                  {applications, [kernel, stdlib]}, {mod, {?MODULE, []}}]}),
    application:start(?MODULE).

close() ->
    _ = logger:add_primary_filter(?MODULE, {fun(_, _) -> stop end, none}),
    ok = application:stop(?MODULE),
    ok = logger:remove_primary_filter(?MODULE),
    application:unload(?MODULE).

-doc "The two servers call each other, and wait for ever.".
hang() ->
    _ = spawn(fun() -> gen_server:call(till, {ask, [stock, till]}, infinity) end),
    await(fun() -> calls(till) andalso calls(stock) end).

-doc "One server calls the other, again and again.".
ask_in_turn() -> [ok = gen_server:call(till, {ask, [stock]}) || _ <- lists:seq(1, 20)], ok.

-doc "A clerk that waits for its orders.".
hire() ->
    case supervisor:start_child(witness_test_shop_sup, #{id => clerk, restart => temporary, start => {?MODULE, start_clerk, []}}) of
        {ok, _} -> ok;
        %% The supervisor does not know yet that the clerk before has gone.
        {error, {already_started, _}} -> receive after 5 -> hire() end
    end.

-doc "The clerk does this, and then ends, or goes on if it waits.".
order(What) -> clerk ! {order, What}, ok.

await_gone(Name) -> await(fun() -> whereis(Name) =:= undefined end).

await_call(Name) -> await(fun() -> calls(Name) end).

-doc "The clerk has this many messages that it does not take, and gets more.".
talk_often() -> _ = spawn(?MODULE, talk, [clerk]), ok.

talk(To) -> [To ! {hello, N} || N <- lists:seq(1, 5)], receive after 20 -> talk(To) end.

-doc "The clerk monitors a process again and again, and demonitors it each time, or does not.".
monitor_often(What) -> _ = spawn(?MODULE, order_often, [What]), ok.

order_often(What) -> [clerk ! {order, {What, self()}} || _ <- lists:seq(1, 5)], receive after 2 -> order_often(What) end.

calls(Name) ->
    process_info(whereis(Name), [current_function, status]) =:= [{current_function, {gen, do_call, 4}}, {status, waiting}].

await(Until) -> case Until() of true -> ok; false -> receive after 5 -> await(Until) end end.

%% --- its processes ---------------------------------------------------------------

start(_, _) -> supervisor:start_link({local, witness_test_shop_sup}, ?MODULE, supervisor).

stop(_) -> ok.

start_clerk() ->
    P = spawn_link(?MODULE, clerk, []),
    true = register(clerk, P),
    {ok, P}.

clerk() ->
    receive
        {order, call} -> gen_server:call(stock, {ask, []});
        {order, call_and_give_up} -> try gen_server:call(stock, later, 20) catch exit:{timeout, _} -> ok end;
        {order, call_and_end_by_it} -> gen_server:call(stock, later, 20);
        {order, call_and_wait} -> ok = gen_server:call(stock, later, infinity), clerk();
        {order, {monitor, P}} -> monitor(process, P), clerk();
        {order, {monitor_and_demonitor, P}} -> demonitor(monitor(process, P)), clerk();
        {order, {take, What}} -> receive What -> ok end, clerk();
        {order, go} -> ok
    end.

init(supervisor) ->
    {ok, {#{}, [#{id => Name, start => {gen_server, start_link, [{local, Name}, ?MODULE, Name, []]}, shutdown => brutal_kill}
                || Name <- [till, stock]]}};
init(Name) -> {ok, Name}.

handle_call({ask, []}, _, State) -> {reply, ok, State};
handle_call({ask, [Next | Names]}, _, State) -> {reply, gen_server:call(Next, {ask, Names}, infinity), State};
handle_call(later, From, _) -> {noreply, From}.

handle_cast(answer, From) -> gen_server:reply(From, ok), {noreply, answered}.
