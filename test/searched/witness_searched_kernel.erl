-module(witness_searched_kernel).
-moduledoc "Programs that use servers of OTP: names and locks of `global`, `timer`, `mnesia`, and aliases that processes outside answer.".

-compile(export_all).
-compile(nowarn_export_all).

%% --- global ------------------------------------------------------------------------

%% Two processes increase a counter. Wrong: each takes a lock of its own.
locks(Wrong) ->
    Table = ets:new(counter, [public]),
    true = ets:insert(Table, {counter, 0}),
    together(fun() ->
        Id = {case Wrong of true -> {counter, self()}; false -> counter end, self()},
        true = global:set_lock(Id),
        add(Table),
        true = global:del_lock(Id)
    end),
    [{counter, 2}] = ets:lookup(Table, counter),
    ok.

transactions(Wrong) ->
    Table = ets:new(counter, [public]),
    true = ets:insert(Table, {counter, 0}),
    together(fun() ->
        case Wrong of
            true -> add(Table);
            false -> global:trans({counter, self()}, fun() -> add(Table) end)
        end
    end),
    [{counter, 2}] = ets:lookup(Table, counter),
    ok.

add(Table) ->
    [{counter, Value}] = ets:lookup(Table, counter),
    ets:insert(Table, {counter, Value + 1}).

%% A process that finds no leader becomes it. Wrong: another one may do so meanwhile.
names(Wrong) ->
    Own = self(),
    Leads = fun() ->
        case global:whereis_name(leader) of
            undefined -> global:register_name(leader, self());
            Leader when is_pid(Leader) -> follows
        end
    end,
    _ = [spawn(fun() ->
        Own ! {result, case Wrong of true -> Leads(); false -> global:trans({leader, self()}, Leads) end},
        receive stop -> ok end
    end) || _ <- [1, 2]],
    [follows, yes] = lists:sort([receive {result, Result} -> Result end || _ <- [1, 2]]),
    [leader] = global:registered_names(),
    ok.

%% A name goes with its process.
successors() ->
    {First, Monitor} = spawn_monitor(fun() ->
        yes = global:register_name(leader, self()),
        no = global:register_name(leader, spawn(fun() -> ok end))
    end),
    receive {'DOWN', Monitor, process, First, _} -> ok end,
    undefined = global:whereis_name(leader),
    Own = self(),
    yes = global:register_name(leader, Own),
    Own = global:whereis_name(leader),
    Own = global:send(leader, message),
    receive message -> ok end,
    _ = global:unregister_name(leader),
    undefined = global:whereis_name(leader),
    ok.

%% Both have come to the end.
together(Fun) ->
    Pids = [spawn_monitor(Fun) || _ <- [1, 2]],
    [receive {'DOWN', Monitor, process, Pid, Reason} -> normal = Reason end || {Pid, Monitor} <- Pids].

%% --- timer -------------------------------------------------------------------------

timers() ->
    {ok, Interval} = timer:send_interval(1_000, tick),
    Ticks = [receive tick -> erlang:monotonic_time(millisecond) end || _ <- [1, 2, 3]],
    [1_000, 1_000] = [Next - Last || {Last, Next} <- lists:zip(lists:droplast(Ticks), tl(Ticks))],
    {ok, cancel} = timer:cancel(Interval),
    Own = self(),
    {ok, _} = timer:apply_after(60_000, erlang, send, [Own, applied]),
    receive applied -> ok end.

%% --- mnesia ------------------------------------------------------------------------

%% Wrong: what another process writes between the two operations is lost.
mnesia(Wrong) ->
    ok = application:start(mnesia),
    {atomic, ok} = mnesia:create_table(counter, [{ram_copies, [node()]}]),
    ok = mnesia:dirty_write({counter, key, 0}),
    Add = fun() ->
        [{counter, key, Value}] = mnesia:read(counter, key),
        mnesia:write({counter, key, Value + 1})
    end,
    together(fun() ->
        case Wrong of
            true -> ok = mnesia:async_dirty(Add);
            false -> {atomic, ok} = mnesia:transaction(Add)
        end
    end),
    [{counter, key, 2}] = mnesia:dirty_read(counter, key),
    ok.

%% --- aliases -----------------------------------------------------------------------

%% The answers of a process outside come as the aliases say.
aliases() ->
    {ok, Folder} = file:get_cwd(),
    {ok, Folder} = asked(alias()),
    Explicit = alias([explicit_unalias]),
    {ok, Folder} = asked(Explicit),
    {ok, Folder} = asked(Explicit),
    true = unalias(Explicit),
    none = asked(Explicit),
    false = unalias(Explicit),
    %% It ends with the first answer.
    Reply = alias([reply]),
    {ok, Folder} = asked(Reply),
    none = asked(Reply),
    false = unalias(Reply),
    Pid = spawn(fun() -> receive stop -> ok end end),
    Demonitor = monitor(process, Pid, [{alias, demonitor}]),
    {ok, Folder} = asked(Demonitor),
    {ok, Folder} = asked(Demonitor),
    true = demonitor(Demonitor),
    none = asked(Demonitor),
    Once = monitor(process, Pid, [{alias, reply_demonitor}]),
    {ok, Folder} = asked(Once),
    none = asked(Once),
    Kept = monitor(process, Pid, [{alias, explicit_unalias}]),
    true = demonitor(Kept),
    {ok, Folder} = asked(Kept),
    Ends = monitor(process, Pid, [{alias, demonitor}]),
    Pid ! stop,
    receive {'DOWN', Ends, process, Pid, normal} -> ok end,
    none = asked(Ends),
    receive Unexpected -> exit({unexpected, Unexpected}) after 0 -> ok end.

%% The answer itself goes to another process.
asked(Alias) ->
    file_server_2 ! {'$gen_call', {self(), [alias | Alias]}, {get_cwd}},
    receive {[alias | Alias], Answer} -> Answer after 1_000 -> none end.

requested() ->
    Ids = gen_server:send_request(file_server_2, {get_cwd}, first, gen_server:reqids_new()),
    Both = gen_server:send_request(file_server_2, {get_cwd}, second, Ids),
    {{reply, {ok, Folder}}, _, Left} = gen_server:receive_response(Both, 1_000, true),
    {{reply, {ok, Folder}}, _, _} = gen_server:receive_response(Left, 1_000, true),
    ok.

%% Pids in an answer are those of the program.
echo() ->
    Pid = spawn(fun() -> receive stop -> ok end end),
    Alias = alias(),
    Own = self(),
    Tag = #{pids => [Pid, {Own}], alias => Alias},
    file_server_2 ! {'$gen_call', {Own, Tag}, {get_cwd}},
    receive {Tag, {ok, _}} -> ok end,
    Pid ! stop,
    ok.
