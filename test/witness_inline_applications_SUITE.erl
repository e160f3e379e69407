-module(witness_inline_applications_SUITE).
-moduledoc """
Applications that none of us wrote, woven as a whole, under the traffic of `witness_applications_SUITE`: their clients
are told the same as without Witness, and after the run again; monitors that only count have seen them at work.
""".
-behaviour(witness_monitor).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([httpd_and_httpc/1, tls_connections/1, mnesia_transactions/1, elixir_supervisors/1, modules_of_otp_are_refused/1]).
-export([init/3, handle_event/2, handle_end/2]).
-export([woven/3, refused/1]).

-include_lib("stdlib/include/assert.hrl").

-define(TRAFFIC, witness_applications_SUITE).
-define(CLIENTS, 4).
-define(REQUESTS, 10).
-define(WAIT_MS, 120_000).

suite() -> [{timetrap, {minutes, 4}}].

all() -> [httpd_and_httpc, tls_connections, mnesia_transactions, elixir_supervisors, modules_of_otp_are_refused].

init_per_suite(Config) ->
    Root = witness_checkout:root(proplists:get_value(data_dir, Config)),
    [{data, filename:join([Root, "test", "applications"])} | Config].

end_per_suite(_) -> ok.

init_per_testcase(elixir_supervisors, Config) ->
    case os:find_executable("elixir") of
        false -> {skip, "there is no elixir on the path"};
        _ -> Config
    end;
init_per_testcase(_, Config) -> Config.

end_per_testcase(_, _) -> ok.

httpd_and_httpc(Config) ->
    Folder = proplists:get_value(priv_dir, Config),
    {#{200 := Found, 404 := Missing}, Seen} =
        same(Config, inets, [{application, inets}], {http, {Folder, ?CLIENTS, ?REQUESTS}}),
    ?assertEqual(?CLIENTS * ?REQUESTS, Found + Missing),
    %% A request has a process at each end; the client's gets its request by call, and ends as a server does.
    #{processes := Handlers, exit := Handlers} = of_module(httpc_handler, Seen),
    ?assert(Handlers >= ?CLIENTS * ?REQUESTS),
    #{processes := Requests, recv := Received} = of_module(httpd_request_handler, Seen),
    %% A client has its answer before the server's process ends: the last ones may be killed when inets is stopped.
    ?assert(Requests + killed(httpd_request_handler, Seen) >= ?CLIENTS * ?REQUESTS),
    ?assert(Received >= Requests).

tls_connections(Config) ->
    {Echoed, Seen} = same(Config, ssl, [{application, ssl}], {tls, {?CLIENTS, ?REQUESTS}}),
    ?assertEqual(?CLIENTS * ?REQUESTS, Echoed),
    %% Both ends send each message: each of them is a call of the sender.
    #{processes := Senders, recv := Sent} = of_module(tls_sender, Seen),
    ?assertEqual(2 * ?CLIENTS, Senders),
    ?assert(Sent >= 2 * ?CLIENTS * ?REQUESTS).

mnesia_transactions(Config) ->
    {{Sum, Aborted}, Seen} = same(Config, mnesia, [{application, mnesia}], {mnesia, {?CLIENTS, ?REQUESTS}}),
    ?assertEqual(?CLIENTS * ?REQUESTS, Sum + Aborted),
    %% The manager of transactions and that of locks are started by `mnesia_sp'; each transaction asks both of them.
    #{processes := 2, recv := Received, send := Sent, exit := 2} = of_module(mnesia_sp, Seen),
    ?assert(Received >= 3 * ?CLIENTS * ?REQUESTS),
    ?assert(Sent >= 2 * ?CLIENTS * ?REQUESTS).

elixir_supervisors(Config) ->
    Broken = 3,
    Modules = ['Elixir.Registry', 'Elixir.Registry.Partition', 'Elixir.Registry.Supervisor', 'Elixir.Task',
               'Elixir.Task.Supervisor', 'Elixir.Task.Supervised', 'Elixir.DynamicSupervisor', 'Elixir.GenServer'],
    {{Paid, Unpaid}, Seen} = same(Config, shop, Modules, {shop, {?CLIENTS, [1, 2, 3, 4], Broken}}),
    ?assertEqual([{{Name, paid, 10}, 10} || Name <- lists:seq(1, ?CLIENTS)], Paid),
    ?assertEqual([{Name, paid, 0} || Name <- lists:seq(101, 100 + Broken)], Unpaid),
    %% The registry, what starts tasks, and each task: as its function where it is told that at once.
    #{processes := 4} = of_module('Elixir.Registry.Partition', Seen),
    #{processes := Tasks, recv := Told, exit := Ended} = of_module('Elixir.Task.Supervised', Seen),
    ?assert(Tasks >= ?CLIENTS),
    ?assert(Told >= Tasks),
    ?assertEqual(Tasks, Ended).

modules_of_otp_are_refused(_) ->
    in_peer(fun(Peer) ->
        [?assertMatch({match, _}, re:run(peer:call(Peer, ?MODULE, refused, [Weave], ?WAIT_MS), Words), {Weave, Words})
         || {Weave, Words} <- [{[gen_server], "gen_server"}, {[{application, kernel}], "kernel|sticky|application|code"},
                               {[{application, inet}], "no application inet"}]]
    end).

%% What clients are told, plain, woven, and when the original code is back.
same(Config, App, Weave, Traffic) ->
    in_peer(fun(Peer) ->
        ok = peer:call(Peer, ?TRAFFIC, prepare, [App, proplists:get_value(data, Config)], ?WAIT_MS),
        Alone = peer:call(Peer, ?TRAFFIC, alone, [App, Traffic], ?WAIT_MS),
        {Told, Summary, Verdicts} = peer:call(Peer, ?MODULE, woven, [App, Weave, Traffic], ?WAIT_MS),
        ct:pal("~p~n~p~n~p", [Told, Summary, [{M, of_module(M, Verdicts)} || M <- modules(Verdicts)]]),
        ?assertEqual(Alone, Told),
        ?assertEqual(Alone, peer:call(Peer, ?TRAFFIC, alone, [App, Traffic], ?WAIT_MS)),
        ?assertMatch(#{system := normal}, Summary),
        {Told, Verdicts}
    end).

in_peer(Fun) ->
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, args => ["+fnu", "-pa" | code:get_path()]}),
    try
        ok = peer:call(Peer, logger, set_primary_config, [level, none]),
        Fun(Peer)
    after
        peer:stop(Peer)
    end.

-doc "The traffic while the application is woven; nothing woven is left.".
woven(App, Weave, {Scenario, Argument}) ->
    {ok, Run} = witness:start(#{system => {application, App}, instrument => inline, weave => Weave, log => false,
                                monitors => [{{'_', '_', '_'}, {?MODULE, []}}], max_verdicts => 100_000, explain => 1}),
    ok = witness:await_started(Run, ?WAIT_MS),
    Told = ?TRAFFIC:Scenario(Argument),
    ok = application:stop(App),
    {ok, Summary} = witness:await(Run, ?WAIT_MS),
    Verdicts = [maps:with([verdict, signature, process, info], V) || V <- witness:verdicts(Run)],
    {ok, _} = witness:stop(Run),
    [] = [M || {M, _} <- code:all_loaded(), witness_weave:woven(M) =/= no],
    {Told, maps:remove(coverage, Summary), Verdicts}.

-doc "Why these modules cannot be woven.".
refused(Weave) ->
    {error, Reason} = witness:start(#{system => {erlang, node, []}, instrument => inline, weave => Weave,
                                      monitors => [{{'_', '_', '_'}, {?MODULE, []}}]}),
    unicode:characters_to_list(witness:format_error(Reason)).

%%% What was counted

of_module(Module, Verdicts) ->
    lists:foldl(fun(Counted, Sum) -> maps:merge_with(fun(_, A, B) -> A + B end, Counted, Sum) end, #{},
                [Info#{processes => 1} || #{signature := {M, _, _}, info := Info} <- Verdicts, M =:= Module, is_map(Info)]).

killed(Module, Verdicts) ->
    length([M || #{signature := {M, _, _}, verdict := inconclusive} <- Verdicts, M =:= Module]).

modules(Verdicts) -> lists:usort([M || #{signature := {M, _, _}} <- Verdicts]).

init(_, _, []) -> {ok, #{}}.

handle_event({exit, _, _, _}, Counted) -> {verdict, yes, Counted#{exit => 1}};
handle_event(Event, Counted) ->
    {ok, maps:update_with(element(1, Event), fun(N) -> N + 1 end, 1, Counted)}.

handle_end(_, Counted) -> {inconclusive, Counted}.
