-module(witness_requests_server).
-moduledoc "A server of ids that gives the third call for one the id of the first. The ids that it owns are the same, and no mistake.".
-behaviour(gen_server).

-export([main/0, init/1, handle_call/3, handle_cast/2]).

-doc "Three ids, with calls of which two wait, and the reply of another call between them.".
main() ->
    {ok, Server} = gen_server:start(?MODULE, none, []),
    [One, Two] = [gen_server:send_request(Server, next) || _ <- [1, 2]],
    {ok, 1} = gen_server:call(Server, {owner, 1}, infinity),
    [{reply, {ok, N}} = gen_server:wait_response(Id, infinity) || {N, Id} <- [{1, One}, {2, Two}]],
    {ok, 1} = gen_server:call(Server, next),
    gen_server:stop(Server).

init(_) -> {ok, 1}.

handle_call(next, _, 3) -> {reply, {ok, 1}, 4};
handle_call(next, _, N) -> {reply, {ok, N}, N + 1};
handle_call({owner, N}, From, Next) ->
    gen_server:reply(From, {ok, N}),
    {noreply, Next}.

handle_cast(_, N) -> {noreply, N}.
