-module(search_poolboy).
-moduledoc "Uses of poolboy (github.com/devinus/poolboy) as its README has them: each must end well in each schedule.".
-behaviour(gen_server).

-export([uses/0, transactions/0, overflows/0, full/0, workers_end/1, holders_end/0, timeouts/0]).
-export([start_link/1, init/1, handle_call/3, handle_cast/2]).

-doc "The functions that are searched, with their arguments, and whether they pass or fail.".
uses() -> [{transactions, [], passed}, {overflows, [], passed}, {full, [], passed}, {workers_end, [false], passed},
           {workers_end, [true], failed}, {holders_end, [], passed}, {timeouts, [], passed}].

-doc "Clients share two workers: no worker has two clients at once, and all workers are free in the end.".
transactions() ->
    Pool = pool([{size, 2}, {max_overflow, 0}]),
    Busy = ets:new(busy, [public]),
    all([fun() -> exclusively(Pool, Busy) end || _ <- lists:seq(1, 4)]),
    {ready, 2, 0, 0} = poolboy:status(Pool),
    ok = poolboy:stop(Pool).

exclusively(Pool, Busy) ->
    poolboy:transaction(Pool, fun(Worker) ->
        true = ets:insert_new(Busy, {Worker}),
        {answer, 1} = gen_server:call(Worker, {ask, 1}),
        true = ets:delete(Busy, Worker)
    end).

-doc "More clients than workers: further workers are started, and ended afterwards.".
overflows() ->
    Pool = pool([{size, 1}, {max_overflow, 2}]),
    Busy = ets:new(busy, [public]),
    all([fun() -> exclusively(Pool, Busy) end || _ <- lists:seq(1, 4)]),
    {ready, 1, 0, 0} = poolboy:status(Pool),
    ok = poolboy:stop(Pool).

-doc "A client that does not wait gets a worker or `full`.".
full() ->
    Pool = pool([{size, 1}, {max_overflow, 0}]),
    all([fun() ->
        case poolboy:checkout(Pool, false) of
            full -> ok;
            Worker when is_pid(Worker) -> poolboy:checkin(Pool, Worker)
        end
    end || _ <- lists:seq(1, 3)]),
    {ready, 1, 0, 0} = poolboy:status(Pool),
    ok = poolboy:stop(Pool).

-doc """
Workers end in use: others take their places. A client may get a worker that has ended (`Alive`: it must not): the pool puts a worker
back that is given back, until it is told that this one has ended.
""".
workers_end(Alive) ->
    Pool = pool([{size, 2}, {max_overflow, 0}]),
    Kill = fun(Worker) ->
        Ref = monitor(process, Worker),
        exit(Worker, kill),
        receive {'DOWN', Ref, process, _, _} -> ok end
    end,
    all([fun() -> poolboy:transaction(Pool, Kill) end, fun() -> poolboy:transaction(Pool, Kill) end,
         fun() -> poolboy:transaction(Pool, fun is_pid/1) end]),
    [is_process_alive(poolboy:checkout(Pool)) orelse not Alive orelse error(ended) || _ <- [1, 2]],
    {_, Free, 0, Used} = poolboy:status(Pool),
    2 = Free + Used,
    ok = poolboy:stop(Pool).

-doc "A client ends without giving its worker back: another one gets it.".
holders_end() ->
    Pool = pool([{size, 1}, {max_overflow, 0}]),
    _ = spawn(fun() -> poolboy:checkout(Pool, true, infinity) end),
    all([fun() -> poolboy:transaction(Pool, fun is_pid/1) end || _ <- [1, 2]]),
    ok = poolboy:stop(Pool).

-doc "A client waits for a worker for too short a time.".
timeouts() ->
    Pool = pool([{size, 1}, {max_overflow, 0}]),
    Hold = fun(_) -> timer:sleep(10) end,
    Short = fun() ->
        try poolboy:transaction(Pool, fun is_pid/1, 5) catch exit:{timeout, _} -> late end
    end,
    all([fun() -> poolboy:transaction(Pool, Hold) end, Short, Short]),
    {ready, 1, 0, 0} = poolboy:status(Pool),
    ok = poolboy:stop(Pool).

pool(Options) ->
    {ok, Pool} = poolboy:start_link([{worker_module, ?MODULE} | Options], []),
    Pool.

all(Funs) ->
    Started = [spawn_monitor(Fun) || Fun <- Funs],
    [receive {'DOWN', Ref, process, Pid, Reason} -> normal = Reason end || {Pid, Ref} <- Started],
    ok.

%% --- a worker --------------------------------------------------------------------

start_link(Args) -> gen_server:start_link(?MODULE, Args, []).

init(Args) -> {ok, Args}.

handle_call({ask, N}, _, State) -> {reply, {answer, N}, State}.

handle_cast(_, State) -> {noreply, State}.
