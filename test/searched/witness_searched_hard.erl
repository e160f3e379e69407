-module(witness_searched_hard).
-moduledoc "Programs that want more than a search can give: without end, without bound, or with effects on what runs them.".

-compile(export_all).
-compile(nowarn_export_all).

%% --- without end -----------------------------------------------------------------

spawns() ->
    spawn(fun spawns/0),
    spawns().

messages() ->
    self() ! message,
    messages().

clock() -> clock(erlang:monotonic_time()).

clock(Begin) ->
    case erlang:monotonic_time() > Begin + 1_000 of
        true -> ok;
        false -> clock(Begin)
    end.

references() ->
    _ = make_ref(),
    references().

urgent() ->
    process_flag(priority, max),
    forever().

forever() -> forever().

%% --- without bound ---------------------------------------------------------------

list() -> list([], infinity).

binaries() -> binaries([], infinity).

queue() -> queue(infinity).

table() -> table(ets:new(table, []), infinity).

tables() -> tables(infinity).

%% Each needs some 250 MB, and then no more.
large(list) -> list([], 15_000_000);
large(binaries) -> binaries([], 250);
large(queue) -> queue(160);
large(table) -> table(ets:new(table, []), 160);
large(tables) -> tables(120_000).

list(_, 0) -> forever();
list(Known, Left) -> list([Left | Known], left(Left)).

binaries(_, 0) -> forever();
binaries(Known, Left) -> binaries([binary:copy(<<1>>, 1_000_000) | Known], left(Left)).

queue(0) -> forever();
queue(Left) ->
    self() ! lists:seq(1, 100_000),
    queue(left(Left)).

table(_, 0) -> forever();
table(Table, Left) ->
    true = ets:insert(Table, {make_ref(), lists:seq(1, 100_000)}),
    table(Table, left(Left)).

tables(0) -> forever();
tables(Left) ->
    _ = ets:new(table, []),
    tables(left(Left)).

left(infinity) -> infinity;
left(Left) -> Left - 1.

atoms() -> atoms(1).

atoms(N) ->
    _ = binary_to_atom(<<"a search has no use for this one ", (integer_to_binary(N))/binary>>),
    atoms(N + 1).

at_once() -> byte_size(binary:copy(<<1>>, 1 bsl 36)).

limited() ->
    process_flag(max_heap_size, 10_000_000),
    ok.

%% --- the VM ----------------------------------------------------------------------

kills(Name) -> exit(whereis(Name), kill).

unregisters() -> unregister(code_server).

links() -> link(whereis(code_server)).

deletes() -> ets:delete(inet_db).

tells() -> init ! {stop, stop}.

flags() -> erlang:system_flag(max_heap_size, 10_000).

blocks() -> erlang:system_flag(multi_scheduling, block).

traces() -> erlang:trace(self(), true, [call]).

session() -> trace:session_create(searched, self(), []).

monitors() -> erlang:system_monitor(self(), [{large_heap, 1_000}]).

stops(How) -> apply(init, stop, How).

restarts() -> init:restart().

command() -> os:cmd("echo").

elsewhere() -> spawn('searched@nowhere', fun() -> ok end).

remote_call() -> rpc:call('searched@nowhere', erlang, node, []).

node_monitor() -> monitor_node('searched@nowhere', true).

distributes() -> net_kernel:start(searched, #{name_domain => shortnames}).

replaces() ->
    {ok, Object} = file:read_file(code:which(?MODULE)),
    code:load_binary(?MODULE, "replaced", Object).

purges() -> code:purge(?MODULE).

%% --- controlled, or named --------------------------------------------------------

alone() ->
    pang = net_adm:ping('searched@nowhere'),
    nonode@nohost = erpc:call(node(), erlang, node, []),
    ok.

%% The module is there from then on, in other versions in turn.
upgrades() ->
    [begin
         {module, searched_dynamic} = code:load_binary(searched_dynamic, "searched", dynamic(Version)),
         Version = searched_dynamic:version(),
         _ = code:purge(searched_dynamic)
     end || Version <- [1, 2]],
    ok.

dynamic(Version) ->
    Forms = [{attribute, 1, module, searched_dynamic}, {attribute, 1, export, [{version, 0}]},
             {function, 1, version, 0, [{clause, 1, [], [], [{integer, 1, Version}]}]}],
    {ok, _, Object} = compile:forms(Forms, []),
    Object.

%% Nothing of this is there in the next run.
numbered() -> is_list(os:getpid()).

leaves() ->
    undefined = application:get_env(kernel, searched),
    ok = application:set_env(kernel, searched, 1),
    {ok, 1} = application:get_env(kernel, searched),
    none = persistent_term:get(searched, none),
    ok = persistent_term:put(searched, 1),
    _ = [persistent_term:erase(Key) || {Key, _} <- persistent_term:get(), Key =/= searched],
    ok.

starts() ->
    ok = application:load({application, searched, [{vsn, "1"}, {modules, []}, {registered, []}, {applications, [kernel, stdlib]},
                                                  {env, [{key, 1}]}]}),
    {ok, 1} = application:get_env(searched, key),
    ok = application:start(searched),
    ok = application:start(sasl).

tables_are_named() ->
    false = lists:member(searched, ets:all()),
    searched = ets:new(searched, [named_table]),
    Own = ets:new(unnamed, []),
    All = ets:all(),
    true = lists:member(searched, All) andalso lists:member(Own, All) andalso lists:member(ac_tab, All),
    [] = [Name || Name <- All, is_atom(Name), lists:prefix("witness_search", atom_to_list(Name))],
    ok.

logs() ->
    logger:error("searched ~p", [1]),
    error_logger:error_msg("searched", []),
    io:format("searched"),
    io:format(standard_error, "searched", []),
    eof = io:get_line(""),
    ok.

informed() ->
    {1, 0} = {erlang:system_info(scheduler_id), erlang:system_info(start_time)},
    Before = erlang:system_info(process_count),
    Waits = spawn(fun() -> receive never -> ok end end),
    Before = erlang:system_info(process_count) - 1,
    Before = length(processes()) - 1,
    true = exit(Waits, kill),
    ok.

counted() ->
    _ = erlang:system_info(atom_count),
    ok.

groups() ->
    {ok, _} = pg:start_link(),
    ok = pg:join(searched, self()),
    [_] = pg:get_members(searched),
    ok.

tagged() ->
    Pid = spawn(fun() -> ok end),
    Ref = monitor(process, Pid, [{tag, {ended, Pid}}]),
    receive {{ended, Pid}, Ref, process, Pid, _} -> ok end,
    Other = monitor(process, Pid, [{tag, gone}]),
    receive {gone, Other, process, Pid, noproc} -> ok end,
    code_server_is_there().

code_server_is_there() ->
    Ref = monitor(process, code_server),
    receive {'DOWN', Ref, process, _, Reason} -> exit(Reason) after 10 -> ok end.

nested(0) -> ok;
nested(N) ->
    Options = [monitor, {fullsweep_after, N rem 3}, {priority, low}, {min_heap_size, 1_000}, {message_queue_data, off_heap}],
    {Pid, Ref} = spawn_opt(fun() -> nested(N - 1) end, Options),
    receive {'DOWN', Ref, process, Pid, normal} -> ok end.
