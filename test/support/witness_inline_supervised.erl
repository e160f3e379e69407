-module(witness_inline_supervised).
-moduledoc "A server under a supervisor, for `m:witness_inline_SUITE`: the supervisor ends it by an exit signal while it waits.".
-behaviour(gen_server).

-export([run/1, forgets/0, start_link/1, init/1, handle_call/3, handle_cast/2]).

-doc "Starts the supervisor and the server, calls the server, and stops the supervisor.".
run(How) ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, {supervisor, How}),
    [{server, Server, worker, _}] = supervisor:which_children(Supervisor),
    pong = gen_server:call(Server, ping),
    witness_await:waits(Server),
    ok = gen_server:stop(Supervisor).

-doc "Deletes the dictionary of a server between two calls, and kills the server while it waits after that.".
forgets() ->
    {ok, Tokens, _} = erl_scan:string("fun(State) -> erase(), State end."),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    {value, Forgets, _} = erl_eval:exprs(Exprs, []),
    {ok, Server} = gen_server:start(?MODULE, {server, waits}, []),
    pong = gen_server:call(Server, ping),
    _ = sys:replace_state(Server, Forgets),
    pong = gen_server:call(Server, ping),
    witness_await:waits(Server),
    Ref = monitor(process, Server),
    exit(Server, kill),
    receive {'DOWN', Ref, process, Server, killed} -> ok end.

start_link(How) -> gen_server:start_link(?MODULE, {server, How}, []).

init({supervisor, How}) -> {ok, {#{}, [#{id => server, start => {?MODULE, start_link, [How]}}]}};
init({server, How}) -> {ok, How}.

handle_call(ping, _, waits) -> {reply, pong, waits};
handle_call(ping, _, hibernates) -> {reply, pong, hibernates, hibernate}.

handle_cast(_, How) -> {noreply, How}.
