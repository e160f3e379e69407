-module(search_gen_batch_server).
-moduledoc """
Uses of gen_batch_server (github.com/rabbitmq/gen-batch-server) as its README has them: each must end well in each schedule.
""".

-export([uses/0, calls/0, casts/0, batches/0, stops/0]).
-export([init/1, handle_batch/2, terminate/2]).

-doc "The functions that are searched, with their arguments, and whether they pass or fail.".
uses() -> [{Use, [], passed} || Use <- [calls, casts, batches, stops]].

-doc "Each call has its own answer.".
calls() ->
    Server = server(),
    all([fun() -> {answer, N} = gen_batch_server:call(Server, {ask, N}) end || N <- lists:seq(1, 4)]),
    ok = gen_batch_server:stop(Server).

-doc "What a client has cast is there when it calls, in its order.".
casts() ->
    Server = server(),
    all([fun() ->
        [ok = gen_batch_server:cast(Server, {put, Who, N}) || N <- [1, 2, 3]],
        [1, 2, 3] = gen_batch_server:call(Server, {all, Who})
    end || Who <- [one, two]]),
    ok = gen_batch_server:stop(Server).

batches() ->
    Server = server(),
    all([fun() ->
        ok = gen_batch_server:cast_batch(Server, [{put, Who, N} || N <- [1, 2, 3]]),
        [1, 2, 3] = gen_batch_server:call(Server, {all, Who})
    end || Who <- [one, two]]),
    ok = gen_batch_server:stop(Server).

-doc "A call is answered, or the caller is told that the server has stopped.".
stops() ->
    Server = server(),
    all([fun() -> try {answer, 1} = gen_batch_server:call(Server, {ask, 1}) catch exit:_ -> ok end end,
         fun() -> gen_batch_server:stop(Server) end]).

server() ->
    {ok, Server} = gen_batch_server:start_link({local, ?MODULE}, ?MODULE, [], [{min_batch_size, 2}, {max_batch_size, 4}]),
    Server.

all(Funs) ->
    Started = [spawn_monitor(Fun) || Fun <- Funs],
    [receive {'DOWN', Ref, process, Pid, Reason} -> normal = Reason end || {Pid, Ref} <- Started],
    ok.

init([]) -> {ok, []}.

handle_batch(Batch, State0) ->
    {Actions, State} = lists:foldl(fun
        ({cast, {put, Who, N}}, {Actions, State}) -> {Actions, [{Who, N} | State]};
        ({call, From, {ask, N}}, {Actions, State}) -> {[{reply, From, {answer, N}} | Actions], State};
        ({call, From, {all, Who}}, {Actions, State}) ->
            {[{reply, From, lists:reverse(proplists:get_all_values(Who, State))} | Actions], State};
        ({info, _}, Acc) -> Acc
    end, {[], State0}, Batch),
    {ok, Actions, State}.

terminate(_, _) -> ok.
