-module(search_gproc).
-moduledoc "Uses of gproc (github.com/uwiger/gproc) as its documentation has them: each must end well in each schedule.".

-export([uses/0, names/0, ends/0, awaits/0, properties/0, counters/0, gives_away/0, monitors/0, pools/0]).

-doc "The functions that are searched, with their arguments, and whether they pass or fail.".
uses() -> [{Use, [], passed} || Use <- [names, ends, awaits, properties, counters, gives_away, monitors, pools]].

-doc "Processes want the same name: one has it.".
names() ->
    start(),
    Reg = fun() ->
        {Pid, Value} = gproc:reg_or_locate({n, l, name}, self(), fun() -> receive stop -> ok end end),
        true = is_pid(Value),
        exit({has, Pid})
    end,
    [Pid] = lists:uniq([Pid || {has, Pid} <- results([Reg, Reg, Reg])]),
    Pid = gproc:where({n, l, name}),
    Pid ! stop,
    ok.

-doc "A name is free when its process has ended, and gproc has handled that.".
ends() ->
    start(),
    Reg = fun() -> true = gproc:reg({n, l, name}), normal end,
    all([Reg]),
    ok = gproc:audit_process(self()),
    Free = fun Free() -> case gproc:where({n, l, name}) of undefined -> ok; _ -> timer:sleep(1), Free() end end,
    Free(),
    true = gproc:reg({n, l, name}),
    true = gproc:unreg({n, l, name}),
    ok.

-doc "A process waits for a name.".
awaits() ->
    start(),
    Me = self(),
    Owner = spawn(fun() -> true = gproc:reg({n, l, name}, value), receive stop -> ok end end),
    all([fun() -> {Owner, value} = gproc:await({n, l, name}, 10_000) end || _ <- [1, 2]]),
    {Owner, value} = gproc:await({n, l, name}),
    _ = gproc:reg({n, l, other}, Me),
    Owner ! stop,
    ok.

-doc "A message to all processes with a property comes to each of them.".
properties() ->
    start(),
    Me = self(),
    Subscribe = fun() ->
        true = gproc:reg({p, l, topic}),
        Me ! subscribed,
        receive news -> ok end
    end,
    Pids = [spawn_monitor(Subscribe) || _ <- [1, 2, 3]],
    [receive subscribed -> ok end || _ <- Pids],
    news = gproc:send({p, l, topic}, news),
    [receive {'DOWN', Ref, process, _, Reason} -> normal = Reason end || {_, Ref} <- Pids],
    ok.

-doc "Counters of several processes, and their sum.".
counters() ->
    start(),
    true = gproc:reg({a, l, count}),
    Me = self(),
    Count = fun() ->
        true = gproc:reg({c, l, count}, 0),
        2 = gproc:update_counter({c, l, count}, 2),
        Me ! counted,
        receive stop -> ok end
    end,
    Pids = [spawn(Count) || _ <- [1, 2, 3]],
    [receive counted -> ok end || _ <- Pids],
    6 = gproc:lookup_value({a, l, count}),
    [Pid ! stop || Pid <- Pids],
    ok.

-doc "A name goes to another process, or its owner has ended.".
gives_away() ->
    start(),
    Me = self(),
    {Heir, Ref} = spawn_monitor(fun() -> receive stop -> ok end end),
    true = gproc:reg({n, l, name}, Me),
    all([fun() -> gproc:where({n, l, name}) end, fun() -> Heir ! stop end]),
    case gproc:give_away({n, l, name}, Heir) of
        Heir -> ok;
        undefined -> ok
    end,
    receive {'DOWN', Ref, process, _, normal} -> ok end,
    ok.

-doc "A process is told when a name is given up.".
monitors() ->
    start(),
    {Owner, _} = spawn_monitor(fun() -> true = gproc:reg({n, l, name}), receive stop -> ok end end),
    {Owner, _} = gproc:await({n, l, name}),
    Ref = gproc:monitor({n, l, name}),
    Owner ! stop,
    receive {gproc, unreg, Ref, {n, l, name}} -> ok end.

-doc "Workers of a pool, chosen in turn.".
pools() ->
    start(),
    ok = gproc_pool:new(pool, round_robin, [{size, 2}]),
    [_ = gproc_pool:add_worker(pool, Name) || Name <- [one, two]],
    Me = self(),
    Work = fun(Name) ->
        true = gproc_pool:connect_worker(pool, Name),
        Me ! connected,
        receive stop -> exit(gproc_pool:disconnect_worker(pool, Name)) end
    end,
    {Pids, Refs} = lists:unzip([spawn_monitor(fun() -> Work(Name) end) || Name <- [one, two]]),
    [receive connected -> ok end || _ <- Pids],
    Picked = [Pid || {picked, Pid} <- results([fun() -> exit({picked, gproc_pool:pick_worker(pool)}) end || _ <- [1, 2]])],
    true = lists:sort(Picked) =:= lists:sort(Pids),
    [Pid ! stop || Pid <- Pids],
    [receive {'DOWN', Ref, process, _, Reason} -> true = Reason end || Ref <- Refs],
    ok.

start() ->
    {ok, _} = gproc_sup:start_link([]),
    ok.

all(Funs) ->
    [normal = Reason || Reason <- results(Funs)],
    ok.

results(Funs) ->
    Started = [spawn_monitor(Fun) || Fun <- Funs],
    [receive {'DOWN', Ref, process, Pid, Reason} -> Reason end || {Pid, Ref} <- Started].
