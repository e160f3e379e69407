-module(witness_recorded_forward).
-moduledoc """
Messages that take another way than their sender would expect: two of one server reach a resource in the other order, through
two workers; and answers that come from the process that was asked in the end.
""".
-behaviour(gen_server).

-export([reversed/0, forwarded/0]).
-export([init/1, handle_call/3, handle_cast/2, terminate/2]).

-define(ROUNDS, 5).

-doc """
The order in which requests came, round after round. The worker that gets the first of two waits for time to pass. In a replay
it does not wait, and would be the first one.
""".
reversed() ->
    Self = self(),
    Resource = spawn(fun() -> resource(Self, 2 * ?ROUNDS, []) end),
    [Slow, Fast] = [spawn(fun() -> worker(Resource, Time) end) || Time <- [20, 0]],
    _ = spawn(fun() -> server(Slow, Fast, ?ROUNDS) end),
    receive {order, Resource, Order} -> Order end.

server(Slow, Fast, 0) ->
    [Worker ! stop || Worker <- [Slow, Fast]];
server(Slow, Fast, N) ->
    Slow ! {use, self(), {N, first}},
    Fast ! {use, self(), {N, second}},
    [receive {used, Round} -> ok end || Round <- [{N, first}, {N, second}]],
    server(Slow, Fast, N - 1).

worker(Resource, Time) ->
    receive
        {use, Server, Request} ->
            receive after Time -> ok end,
            Resource ! {use, Server, Request},
            worker(Resource, Time);
        stop -> ok
    end.

resource(To, 0, Order) -> To ! {order, self(), lists:reverse(Order)};
resource(To, N, Order) ->
    receive
        {use, Server, Request} ->
            Server ! {used, Request},
            resource(To, N - 1, [Request | Order])
    end.

-doc "The last server of a chain answers requests, in the order in which they are done.".
forwarded() ->
    {ok, Front} = gen_server:start_link(?MODULE, none, []),
    Chain = lists:foldl(fun(_, Server) ->
        {ok, Next} = gen_server:start_link(?MODULE, Server, []),
        Next
    end, Front, [1, 2, 3]),
    Ids = lists:foldl(fun(N, Asked) -> gen_server:send_request(Chain, {ask, N}, N, Asked) end,
                      gen_server:reqids_new(), lists:seq(1, 20)),
    Result = {answers(Ids, []), gen_server:call(Chain, {ask, 21})},
    ok = gen_server:stop(Chain),
    Result.

answers(Ids, Answers) ->
    case gen_server:receive_response(Ids, infinity, true) of
        no_request -> lists:reverse(Answers);
        {Answer, Label, Left} -> answers(Left, [{Label, Answer} | Answers])
    end.

init(Next) -> {ok, Next}.

%% The last server has other processes answer, one for each request.
handle_call(Request, Client, Next) -> handle_cast({forwarded, Request, Client}, Next).

handle_cast({forwarded, {ask, N}, Client}, none) ->
    _ = spawn_link(fun() ->
        receive after N rem 3 -> ok end,
        gen_server:reply(Client, {N, self()})
    end),
    {noreply, none};
handle_cast({forwarded, _, _} = Request, Next) ->
    ok = gen_server:cast(Next, Request),
    {noreply, Next}.

terminate(_, none) -> ok;
terminate(_, Next) -> gen_server:stop(Next).
