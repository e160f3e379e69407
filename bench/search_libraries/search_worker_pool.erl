-module(search_worker_pool).
-moduledoc "Uses of worker_pool (github.com/inaka/worker_pool) as its README has them: each must end well in each schedule.".

-export([uses/0, calls/1, casts/1, runs/0, broadcasts/0, workers_end/0, requests/0]).

-doc "The functions that are searched, with their arguments, and whether they pass or fail.".
uses() ->
    [{Use, [Strategy], passed} || Use <- [calls, casts], Strategy <- [available_worker, next_worker, random_worker, best_worker]] ++
    [{runs, [], passed}, {broadcasts, [], passed}, {workers_end, [], passed}, {requests, [], passed}].

-doc "Clients call the workers that a strategy chooses.".
calls(Strategy) ->
    Pool = pool([{workers, 2}]),
    all([fun() -> {ok, N} = wpool:call(Pool, {erlang, '+', [N, 0]}, Strategy) end || N <- lists:seq(1, 4)]),
    stop(Pool).

-doc "Each cast is done once.".
casts(Strategy) ->
    Pool = pool([{workers, 2}]),
    Me = self(),
    all([fun() -> ok = wpool:cast(Pool, {erlang, send, [Me, {done, N}]}, Strategy) end || N <- lists:seq(1, 4)]),
    [receive {done, N} -> ok end || N <- lists:seq(1, 4)],
    stop(Pool).

-doc "Functions are given available workers.".
runs() ->
    Pool = pool([{workers, 2}]),
    Run = fun(Worker, Timeout) -> wpool_process:call(Worker, {erlang, '+', [1, 2]}, Timeout) end,
    all([fun() -> {ok, 3} = wpool:run(Pool, Run) end || _ <- lists:seq(1, 4)]),
    stop(Pool).

-doc "A broadcast comes to each worker.".
broadcasts() ->
    Pool = pool([{workers, 3}]),
    Me = self(),
    ok = wpool:broadcast(Pool, {erlang, send, [Me, done]}),
    [receive done -> ok end || _ <- lists:seq(1, 3)],
    {Replies, []} = wpool:broadcall(Pool, {erlang, '+', [1, 2]}, 5000),
    3 = length(Replies),
    stop(Pool).

-doc "Workers end while they work: later calls have their answers.".
workers_end() ->
    Pool = pool([{workers, 2}, {overrun_warning, infinity}]),
    Fail = fun() ->
        try wpool:call(Pool, {erlang, error, [wrong]}) of {error, _} -> ok catch _:_ -> ok end
    end,
    Kill = fun() -> try wpool:call(Pool, {erlang, apply, [fun() -> exit(self(), kill) end, []]}) catch _:_ -> ok end end,
    all([Fail, Kill, fun() -> {ok, 3} = wpool:call(Pool, {erlang, '+', [1, 2]}) end]),
    {ok, 3} = wpool:call(Pool, {erlang, '+', [1, 2]}),
    stop(Pool).

-doc "Requests: their answers are taken later.".
requests() ->
    Pool = pool([{workers, 2}]),
    all([fun() ->
        {reply, {ok, N}} = gen_server:wait_response(wpool:send_request(Pool, {erlang, '+', [N, 0]}), infinity)
    end || N <- lists:seq(1, 3)]),
    stop(Pool).

pool(Options) ->
    {ok, _} = wpool_sup:start_link(),
    {ok, _} = wpool:start_sup_pool(?MODULE, Options),
    ?MODULE.

stop(Pool) -> ok = wpool:stop_sup_pool(Pool).

all(Funs) ->
    Started = [spawn_monitor(Fun) || Fun <- Funs],
    [receive {'DOWN', Ref, process, Pid, Reason} -> normal = Reason end || {Pid, Ref} <- Started],
    ok.
