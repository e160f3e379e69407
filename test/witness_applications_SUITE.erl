-module(witness_applications_SUITE).
-moduledoc """
Applications of other authors, under real traffic on loopback, each in a VM of its own and over both sources.

What the monitors have found is compared with what the clients were told: as many processes with whole traces, requests,
transactions and replies as the clients have made; and what the clients were told is the same as without Witness.

The monitors that count are this module: a trace has to begin with its `init`, and the verdict comes at its end with what was
counted in it (`label/2`).
""".
-behaviour(witness_monitor).

-export([all/0, suite/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2,
         init_per_testcase/2, end_per_testcase/2]).
-export([httpd_and_httpc/1, tls_connections/1, mnesia_transactions/1, ssh_exec_and_sftp/1, elixir_supervisors/1]).
-export([an_application_ends_the_run/1, applications_come_before_the_function/1, stop_leaves_the_application_running/1,
         what_was_started_is_stopped_when_one_does_not_start/1, what_cannot_be_started_is_named/1,
         the_process_that_watches_the_application_may_die/1]).
-export([init/3, handle_event/2, handle_end/2]).
-export([observed/5, alone/2, http/1, http_client/2, tls/1, tls_server/2, mnesia/1, teller/2, ssh/1, shop/1]).
-export([prepare/2, ends/2, function_in/2, asks/0, stopped/1, refused/1, lost/1, start/2, stop/1, server/0]).

-include_lib("stdlib/include/assert.hrl").

-define(CLIENTS, 8).
-define(REQUESTS, 20).
-define(WAIT_MS, 30_000).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [{group, native}, {group, evm}, {group, api}].

groups() ->
    Systems = [httpd_and_httpc, tls_connections, mnesia_transactions, ssh_exec_and_sftp, elixir_supervisors],
    [{native, [], Systems}, {evm, [], Systems},
     {api, [], [an_application_ends_the_run, applications_come_before_the_function, stop_leaves_the_application_running,
                what_was_started_is_stopped_when_one_does_not_start, what_cannot_be_started_is_named,
                the_process_that_watches_the_application_may_die]}].

init_per_suite(Config) ->
    Root = witness_checkout:root(proplists:get_value(data_dir, Config)),
    [{data, filename:join([Root, "test", "applications"])} | Config].

end_per_suite(_) -> ok.

init_per_group(native, Config) -> witness_source:init(native, Config);
init_per_group(_, Config) -> witness_source:init(evm, Config).

end_per_group(_, _) -> ok.

init_per_testcase(elixir_supervisors, Config) ->
    case os:find_executable("elixir") of
        false -> {skip, "there is no elixir on the path"};
        _ -> Config
    end;
init_per_testcase(_, Config) -> Config.

end_per_testcase(_, _) -> ok.

%%% Real applications

httpd_and_httpc(Config) ->
    {#{200 := Found, 404 := Missing}, Run} =
        run(Config, inets, http, {folder(Config), ?CLIENTS, ?REQUESTS}, "http.hml",
            [{{httpc_handler, init, 1}, answers}, {{httpd_request_handler, init, 1}, requests},
             {{?MODULE, http_client, 2}, answered}]),
    Requests = ?CLIENTS * ?REQUESTS,
    ?assertEqual(Requests, Found + Missing),
    ?assertEqual(#{{~"answered_once", yes} => Requests, {~"one_request", yes} => Requests,
                   {~"found", no} => Missing, {~"found", yes} => Found}, properties(Run)),
    ?assertEqual(counts(Requests, #{200 => Found, 404 => Missing}), counted({httpc_handler, init}, Run)),
    ?assertEqual(counts(Requests, #{request => Requests}), counted({httpd_request_handler, init}, Run)),
    ?assertEqual(counts(?CLIENTS, #{200 => Found, 404 => Missing}), counted({?MODULE, http_client}, Run)).

tls_connections(Config) ->
    {Echoed, Run} = run(Config, ssl, tls, {?CLIENTS, ?REQUESTS}, "tls.hml",
                        [{{ssl_gen_statem, init, '_'}, tls}, {{tls_sender, init, '_'}, tls}, {{?MODULE, tls_server, 2}, tls}]),
    Messages = ?CLIENTS * ?REQUESTS,
    ?assertEqual(Messages, Echoed),
    %% Both ends send each message and receive it; the server also receives the end.
    ?assertEqual(#{{~"each_receive_is_answered", yes} => 2 * Messages + ?CLIENTS,
                   {~"each_receive_gets_data", yes} => 2 * Messages, {~"each_receive_gets_data", no} => ?CLIENTS,
                   {~"each_send_is_done", yes} => 2 * Messages}, properties(Run)),
    ?assertEqual(counts(2 * ?CLIENTS, #{'receive' => 2 * Messages + ?CLIENTS, data => 2 * Messages, closed => ?CLIENTS}),
                 counted({ssl_gen_statem, init}, Run)),
    ?assertEqual(counts(2 * ?CLIENTS, #{send => 2 * Messages}), counted({tls_sender, init}, Run)),
    ?assertEqual(counts(?CLIENTS, #{data => Messages, closed => ?CLIENTS}), counted({?MODULE, tls_server}, Run)).

mnesia_transactions(Config) ->
    {{Sum, Aborted}, Run} = run(Config, mnesia, mnesia, {?CLIENTS, ?REQUESTS}, "transactions.hml",
                                [{{?MODULE, teller, 2}, transactions}, {{mnesia_sp, init_proc, 4}, transactions}]),
    Transactions = ?CLIENTS * ?REQUESTS,
    ?assertEqual(Transactions, Sum + Aborted),
    %% Mnesia has transactions of its own, for its schema. A transaction of a client has the client's process in its slice.
    Tellers = [P || #{process := P, signature := {?MODULE, teller, _}} <- maps:get(verdicts, Run)],
    Own = [Verdict || #{name := ~"begun_and_done", verdict := Verdict, slice := [{_, {tid, _, P}}]} <- maps:get(verdicts, Run),
                      lists:member(P, Tellers)],
    ?assertEqual(lists:duplicate(Transactions, yes), Own),
    #{{~"begun_and_done", yes} := All, {~"locks_for_itself", yes} := ?CLIENTS} = Found = properties(Run),
    ?assertEqual(2, map_size(Found)),
    ?assertEqual(counts(?CLIENTS, #{begun => Transactions, done => Transactions}), counted({?MODULE, teller}, Run)),
    Manager = fun([Name | _]) -> Name =:= mnesia_tm end,
    ?assertEqual(counts(1, #{begun => All, done => All}), counted({mnesia_sp, init_proc, Manager}, Run)).

ssh_exec_and_sftp(Config) ->
    Clients = 3,
    {{Printed, Files}, Run} = run(Config, ssh, ssh, {folder(Config), Clients, ?REQUESTS}, "ssh.hml",
                                  [{{ssh_client_channel, init, 1}, channel}, {{ssh_connection_handler, init, '_'}, connection}]),
    Commands = Clients * ?REQUESTS,
    ?assertEqual({Commands, Clients}, {length(Printed), length(Files)}),
    #{{~"executes_once", yes} := Commands, {~"each_call_is_answered", yes} := Calls,
      {~"no_channel_crashes", yes} := Channels} = Found = properties(Run),
    ?assertEqual(3, map_size(Found)),
    %% A channel for each command, and two, one at each end, for each client's files.
    ?assertEqual(Commands + 2 * Clients, Channels),
    #{processes := Channels, executed := Commands, called := Calls, replied := Calls} = counted({ssh_client_channel, init}, Run),
    ?assertMatch(#{processes := P} when P =:= 2 * Clients, counted({ssh_connection_handler, init}, Run)).

elixir_supervisors(Config) ->
    Broken = 5,
    {Result, Run} = run(Config, shop, shop, {?CLIENTS, [1, 2, 3, 4], Broken}, "shop.hml",
                        [{{'Elixir.Shop.Cart', init, 1}, cart}, {{'Elixir.Shop', '_', '_'}, task},
                         {{'Elixir.Task.Supervised', reply, '_'}, customer},
                         {{'Elixir.Registry.Partition', init, 1}, partition}]),
    ?assertEqual({[{{Name, paid, 10}, 10} || Name <- lists:seq(1, ?CLIENTS)],
                  [{Name, paid, 0} || Name <- lists:seq(101, 100 + Broken)]}, Result),
    %% For each customer: four prices and the payment. For each broken cart: a price, a call without an answer, and a payment.
    ?assertEqual(#{{~"each_call_is_answered", yes} => 5 * ?CLIENTS + 2 * Broken, {~"each_call_is_answered", no} => Broken,
                   {~"a_cart_is_paid", yes} => ?CLIENTS + Broken, {~"a_cart_is_paid", no} => Broken,
                   {~"a_customer_opens_one_cart", yes} => ?CLIENTS}, properties(Run)),
    ?assertEqual(counts(?CLIENTS + 2 * Broken, #{called => 5 * ?CLIENTS + 3 * Broken, replied => 5 * ?CLIENTS + 2 * Broken}),
                 counted({'Elixir.Shop.Cart', init}, Run)),
    ?assertEqual(counts(4 * ?CLIENTS, #{added => 4 * ?CLIENTS}), counted({'Elixir.Shop', '_'}, Run)),
    ?assertEqual(counts(?CLIENTS, #{told => ?CLIENTS, added => 4 * ?CLIENTS}), counted({'Elixir.Task.Supervised', reply}, Run)),
    ?assertMatch(#{processes := 4}, counted({'Elixir.Registry.Partition', init}, Run)).

%%% The API

an_application_ends_the_run(_) ->
    in_peer(fun(Peer) ->
        [begin
             #{system := Told, outcome := Outcome, warnings := Warnings} = Summary =
                 peer:call(Peer, ?MODULE, ends, [Source, Reason], ?WAIT_MS),
             ?assertEqual({Reason, Codes}, {Reason, [Code || #{code := Code} <- Warnings]}),
             ?assertMatch(#{gaps := 0, verdicts := #{yes := 1}}, Summary)
         end || Source <- [native, evm],
                {Reason, Told, Outcome, Codes} <- [
                    {normal, normal, ok, []}, {stop, normal, ok, []}, {shutdown, {crashed, shutdown}, untrusted, [system_crashed]},
                    {{shutdown, x}, normal, ok, []}, {boom, {crashed, boom}, untrusted, [system_crashed]}]]
    end).

applications_come_before_the_function(_) ->
    in_peer(fun(Peer) ->
        [?assertMatch({true, #{outcome := ok, system := normal, verdicts := #{yes := 1}}},
                      peer:call(Peer, ?MODULE, function_in, [Source, inets], ?WAIT_MS)) || Source <- [native, evm]],
        ?assertMatch({false, #{outcome := untrusted, system := {crashed, {not_started, no_such_app, _}}}},
                     peer:call(Peer, ?MODULE, function_in, [evm, no_such_app], ?WAIT_MS))
    end).

stop_leaves_the_application_running(_) ->
    in_peer(fun(Peer) ->
        [?assertMatch({#{verdicts := #{inconclusive := 1}, system := undefined}, true},
                      peer:call(Peer, ?MODULE, stopped, [Source], ?WAIT_MS)) || Source <- [native, evm]]
    end).

what_was_started_is_stopped_when_one_does_not_start(_) ->
    in_peer(fun(Peer) ->
        Before = peer:call(Peer, application, which_applications, []),
        [begin
             #{outcome := untrusted, system := {crashed, {not_started, witness_application_test, Why}},
               warnings := [#{code := system_crashed, text := Text} | _]} =
                 peer:call(Peer, ?MODULE, ends, [Source, {start, How}], ?WAIT_MS),
             ?assertNotEqual(nomatch, string:find(Text, Told), {How, Why, Text}),
             Left = peer:call(Peer, application, which_applications, []) -- Before,
             ?assertEqual([witness], [App || {App, _, _} <- Left, App =/= compiler, App =/= syntax_tools])
         end || Source <- [native, evm],
                {How, Told} <- [{refuse, ~"returned the error no_licence"}, {crash, ~"its start function crashed: {boom"}]]
    end).

what_cannot_be_started_is_named(_) ->
    in_peer(fun(Peer) ->
        [?assertMatch({match, _}, re:run(peer:call(Peer, ?MODULE, refused, [Options], ?WAIT_MS), Words), {Options, Words})
         || {Options, Words} <- [
            {#{system => {application, inet}}, "no application inet .*did you mean inets"},
            {#{system => {application, xmerl}}, "xmerl is a library"},
            {#{system => {application, kernel}}, "kernel is running already"},
            {#{system => {application, "inets"}}, "option system: expected"},
            {#{system => {application, inets}, scope => tree}, "option scope: expected node"},
            {#{system => {application, inets}, applications => [ssl]}, "option applications: expected none"},
            {#{system => {erlang, node, []}, applications => [ssl], scope => tree}, "option scope: expected node"},
            {#{system => {erlang, node, []}, applications => ssl}, "option applications: expected a list"},
            {#{system => {erlang, node, []}, applications => ["ssl"]}, "option applications: expected a list"}]]
    end).

the_process_that_watches_the_application_may_die(_) ->
    in_peer(fun(Peer) ->
        [?assertMatch({#{outcome := untrusted, warnings := [#{code := application_lost} | _]}, true},
                      peer:call(Peer, ?MODULE, lost, [Source], ?WAIT_MS)) || Source <- [native, evm]]
    end).

%%% Running, in a VM of its own

%% What the clients were told, which is the same without Witness, and what the run has found.
run(Config, App, Scenario, Argument, Specification, Counted) ->
    Specs = [filename:join(proplists:get_value(data, Config), Specification)],
    Monitors = [{Signature, {?MODULE, Label}} || {Signature, Label} <- Counted],
    Alone = in_peer(fun(Peer) ->
        ok = peer:call(Peer, ?MODULE, prepare, [App, proplists:get_value(data, Config)], ?WAIT_MS),
        peer:call(Peer, ?MODULE, alone, [App, {Scenario, Argument}], ?WAIT_MS)
    end),
    in_peer(fun(Peer) ->
        ok = peer:call(Peer, ?MODULE, prepare, [App, proplists:get_value(data, Config)], ?WAIT_MS),
        {Told, Run} = peer:call(Peer, ?MODULE, observed,
                                [proplists:get_value(source, Config), App, {Scenario, Argument}, Specs, Monitors], ?WAIT_MS),
        ct:pal("~p~n~p~n~p~n~p", [Told, maps:with([summary], Run), properties(Run), violations(Run)]),
        ?assertEqual(Alone, Told),
        #{summary := #{gaps := 0, system := normal, warnings := []}} = Run,
        {Told, Run}
    end).

in_peer(Fun) ->
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, args => ["+fnu", "-pa" | code:get_path()]}),
    try
        ok = peer:call(Peer, logger, set_primary_config, [level, none]),
        Fun(Peer)
    after
        peer:stop(Peer)
    end.

%% The last violation of each property, with its explanation.
violations(#{verdicts := Verdicts}) ->
    #{Name => Verdict || #{name := Name, verdict := no} = Verdict <- Verdicts}.

%% How often each property has got each verdict. A slice may also begin with a reply to another call than it is about.
properties(#{verdicts := Verdicts}) ->
    sum([#{{Name, Verdict} => 1} || #{name := Name, verdict := Verdict, vacuous := false} <- Verdicts, is_binary(Name)]).

%% What was counted in the traces of processes with this signature, all of which have to be whole.
counted({M, F}, Run) ->
    counted({M, F, fun(_) -> true end}, Run);
counted({M, F, Suits}, #{verdicts := Verdicts}) ->
    Own = [{Verdict, Info} || #{name := undefined, signature := {M1, F1, Args}, verdict := Verdict, info := Info} <- Verdicts,
                              M1 =:= M, F =:= '_' orelse F1 =:= F, Suits(Args)],
    ?assertEqual([], [Other || {Verdict, _} = Other <- Own, Verdict =/= yes]),
    sum([Info#{processes => 1} || {yes, Info} <- Own]).

counts(Processes, Counts) -> Counts#{processes => Processes}.

sum(Maps) -> lists:foldl(fun(Map, Sum) -> maps:merge_with(fun(_, A, B) -> A + B end, Map, Sum) end, #{}, Maps).

folder(Config) -> proplists:get_value(priv_dir, Config).

-doc "Starts an application and runs the clients against it; what they were told.".
alone(App, Traffic) ->
    {ok, _} = application:ensure_all_started(App),
    traffic(App, Traffic).

traffic(App, {Scenario, Argument}) ->
    Told = ?MODULE:Scenario(Argument),
    ok = application:stop(App),
    Told.

-doc "The same under observation.".
observed(Source, App, Traffic, Specs, Monitors) ->
    {ok, Run} = witness:start(#{system => {application, App}, source => Source, specs => Specs, monitors => Monitors,
                                log => false, max_verdicts => 100_000, explain => 1}),
    ok = witness:await_started(Run, ?WAIT_MS),
    Told = traffic(App, Traffic),
    {ok, Summary} = witness:await(Run, ?WAIT_MS),
    Verdicts = [maps:with([name, verdict, vacuous, signature, process, slice, info], V) || V <- witness:verdicts(Run)],
    {ok, _} = witness:stop(Run),
    {Told, #{summary => maps:remove(coverage, Summary), verdicts => Verdicts}}.

-doc "What an application needs before it can be started.".
prepare(shop, Data) ->
    ok = witness_cli_setup:load_elixir('Elixir.Shop', []),
    _ = 'Elixir.Code':compile_file(unicode:characters_to_binary(filename:join(Data, "shop.ex"))),
    application:load({application, shop, [{applications, [kernel, stdlib, elixir]}, {mod, {'Elixir.Shop.Application', []}}]});
prepare(_, _) -> ok.

%%% Traffic

%% Clients at the same time; what each of them says.
clients(Function, Arguments) ->
    Clients = [spawn_monitor(?MODULE, Function, Given) || Given <- Arguments],
    [receive {'DOWN', Ref, process, P, Reason} -> {told, Told} = Reason, Told end || {P, Ref} <- Clients].

-spec told(term()) -> no_return().
told(Told) -> exit({told, Told}).

-doc "Files over HTTP, some of which are not there: how often which code was the answer.".
http({Folder, Clients, Requests}) ->
    ok = file:write_file(filename:join(Folder, "found.txt"), "found"),
    {ok, Server} = inets:start(httpd, [{port, 0}, {bind_address, {127, 0, 0, 1}}, {server_name, "localhost"},
                                       {server_root, Folder}, {document_root, Folder}]),
    [{port, Port}] = httpd:info(Server, [port]),
    Codes = lists:append(clients(http_client, lists:duplicate(Clients, [Requests, Port]))),
    ok = until_ended({httpd_request_handler, init, 1}),
    ok = inets:stop(httpd, Server),
    sum([#{Code => 1} || Code <- Codes]).

%% Clients get their answers before the server's processes end. If the server is stopped meanwhile, these lose what they use.
until_ended(Function) ->
    Refs = [monitor(process, P) || P <- processes(), proc_lib:translate_initial_call(P) =:= Function],
    lists:foreach(fun(Ref) -> receive {'DOWN', Ref, process, _, _} -> ok end end, Refs).

http_client(Requests, Port) ->
    told([begin
              Path = case N rem 4 of 0 -> "missing.txt"; _ -> "found.txt" end,
              Url = lists:flatten(io_lib:format("http://127.0.0.1:~b/~s", [Port, Path])),
              %% Without options of its own, each request's process would have a copy of all certificates of this machine.
              Options = [{ssl, [{verify, verify_none}]}],
              {ok, {{_, Code, _}, _, Body}} = httpc:request(get, {Url, [{"connection", "close"}]}, Options, []),
              true = Code =/= 200 orelse Body =:= "found",
              Code
          end || N <- lists:seq(1, Requests)]).

-doc "Numbers that come back over TLS; how many.".
tls({Clients, Messages}) ->
    Key = [{digest, sha256}, {key, {namedCurve, secp256r1}}],
    Chain = #{root => Key, intermediates => [], peer => Key},
    #{server_config := ServerConfig, client_config := ClientConfig} =
        public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}),
    Common = [{active, false}, {mode, binary}],
    {ok, Listen} = ssl:listen(0, Common ++ [{ip, {127, 0, 0, 1}}, {reuseaddr, true} | ServerConfig]),
    {ok, {_, Port}} = ssl:sockname(Listen),
    Servers = [spawn_monitor(?MODULE, tls_server, [Listen, N]) || N <- lists:seq(1, Clients)],
    Connect = Common ++ [{server_name_indication, disable} | ClientConfig],
    Echoed = [tls_client(Port, Messages, Connect) || _ <- lists:seq(1, Clients)],
    [receive {'DOWN', Ref, process, P, Reason} -> {told, closed} = Reason end || {P, Ref} <- Servers],
    ok = ssl:close(Listen),
    lists:sum(Echoed).

tls_client(Port, Messages, Options) ->
    {ok, Socket} = ssl:connect({127, 0, 0, 1}, Port, Options),
    Echoed = [begin
                  ok = ssl:send(Socket, <<N:32>>),
                  {ok, <<N:32>>} = ssl:recv(Socket, 4)
              end || N <- lists:seq(1, Messages)],
    ok = ssl:close(Socket),
    length(Echoed).

tls_server(Listen, _) ->
    {ok, Accepted} = ssl:transport_accept(Listen),
    {ok, Socket} = ssl:handshake(Accepted),
    echo(Socket).

echo(Socket) ->
    case ssl:recv(Socket, 0) of
        {ok, Data} ->
            ok = ssl:send(Socket, Data),
            echo(Socket);
        {error, closed} ->
            _ = ssl:close(Socket),
            told(closed)
    end.

-doc "Tellers add to the same account, and abort now and then: the sum of the account, and the number of aborts.".
mnesia({Tellers, Transactions}) ->
    {atomic, ok} = mnesia:create_table(account, [{ram_copies, [node()]}]),
    Aborted = clients(teller, [[N, Transactions] || N <- lists:seq(1, Tellers)]),
    [{account, all, Sum}] = mnesia:dirty_read(account, all),
    {Sum, lists:sum(Aborted)}.

teller(_, Transactions) ->
    Results = [mnesia:transaction(fun() ->
                   Before = case mnesia:read(account, all, write) of [] -> 0; [{account, all, Sum}] -> Sum end,
                   N rem 5 =/= 0 orelse mnesia:abort(changed_my_mind),
                   mnesia:write({account, all, Before + 1})
               end) || N <- lists:seq(1, Transactions)],
    [] = [Other || Other <- Results, Other =/= {atomic, ok}, Other =/= {aborted, changed_my_mind}],
    told(length([aborted || {aborted, _} <- Results])).

-doc "Commands and files over SSH: what was printed, and what was in the files.".
ssh({Folder, Clients, Commands}) ->
    Key = public_key:generate_key({namedCurve, secp256r1}),
    Pem = public_key:pem_encode([public_key:pem_entry_encode('ECPrivateKey', Key)]),
    ok = file:write_file(filename:join(Folder, "ssh_host_ecdsa_key"), Pem),
    Echo = fun(Command) -> {ok, ["did ", Command]} end,
    {ok, Daemon} = ssh:daemon({127, 0, 0, 1}, 0, [{system_dir, Folder}, {user_dir, Folder}, {user_passwords, [{"w", "secret"}]},
                                                 {exec, {direct, Echo}},
                                                 {subsystems, [ssh_sftpd:subsystem_spec([{root, Folder}])]}]),
    {ok, Information} = ssh:daemon_info(Daemon),
    Port = proplists:get_value(port, Information),
    Told = [ssh_client(N, Folder, Port, Commands) || N <- lists:seq(1, Clients)],
    ok = ssh:stop_daemon(Daemon),
    {Printed, Files} = lists:unzip(Told),
    {lists:append(Printed), Files}.

ssh_client(Client, Folder, Port, Commands) ->
    {ok, Connection} = ssh:connect("127.0.0.1", Port, [{silently_accept_hosts, true}, {save_accepted_host, false},
                                                       {user_interaction, false}, {user, "w"}, {password, "secret"},
                                                       {user_dir, Folder}]),
    Printed = [execute(Connection, "command " ++ integer_to_list(N)) || N <- lists:seq(1, Commands)],
    {ok, Channel} = ssh_sftp:start_channel(Connection),
    Name = "/file" ++ integer_to_list(Client),
    ok = ssh_sftp:write_file(Channel, Name, <<"file ", (integer_to_binary(Client))/binary>>),
    {ok, Read} = ssh_sftp:read_file(Channel, Name),
    ok = ssh_sftp:stop_channel(Channel),
    ok = ssh:close(Connection),
    {Printed, Read}.

execute(Connection, Command) ->
    {ok, Channel} = ssh_connection:session_channel(Connection, ?WAIT_MS),
    success = ssh_connection:exec(Connection, Channel, Command, ?WAIT_MS),
    printed(Connection, Channel, ~"").

printed(Connection, Channel, Printed) ->
    receive
        {ssh_cm, Connection, {data, Channel, _, Data}} -> printed(Connection, Channel, <<Printed/binary, Data/binary>>);
        {ssh_cm, Connection, {closed, Channel}} -> Printed;
        {ssh_cm, Connection, Other} when element(2, Other) =:= Channel -> printed(Connection, Channel, Printed)
    end.

-doc "Customers of the shop, and carts that break.".
shop({Customers, Prices, Broken}) ->
    {'Elixir.Shop':customers(Customers, Prices), ['Elixir.Shop':break(Name) || Name <- lists:seq(101, 100 + Broken)]}.

%%% An application of the suite's own

start(normal, [refuse]) -> {error, no_licence};
start(normal, [crash]) -> error(boom);
start(normal, [serve]) -> proc_lib:start_link(?MODULE, server, []).

stop(_) -> ok.

server() ->
    register(witness_application_test, self()),
    proc_lib:init_ack({ok, self()}),
    receive {ends, Reason} -> exit(Reason) end.

load(How) ->
    application:load({application, witness_application_test,
                      [{applications, [kernel, stdlib, inets]}, {mod, {?MODULE, [How]}}]}).

start_run(Source) ->
    {ok, Run} = witness:start(#{system => {application, witness_application_test}, source => Source, log => false,
                                monitors => [{{?MODULE, server, 0}, {?MODULE, nothing}}]}),
    Run.

ended(Run) ->
    {ok, Summary} = witness:await(Run, ?WAIT_MS),
    {ok, Summary} = witness:stop(Run),
    _ = application:stop(inets),
    ok = application:unload(witness_application_test),
    Summary.

-doc "A run of an application that ends in some way.".
ends(Source, {start, How}) ->
    ok = load(How),
    Run = start_run(Source),
    {error, {witness_run_application, {not_started, witness_application_test, _}}} = witness:await_started(Run, ?WAIT_MS),
    ended(Run);
ends(Source, How) ->
    ok = load(serve),
    Run = start_run(Source),
    ok = witness:await_started(Run, ?WAIT_MS),
    _ = case How of
        stop -> ok = application:stop(witness_application_test);
        Reason -> witness_application_test ! {ends, Reason}
    end,
    ended(Run).

function_in(Source, App) ->
    register(witness_asker, self()),
    {ok, Run} = witness:start(#{system => {?MODULE, asks, []}, applications => [App], source => Source, log => false,
                                monitors => [{{?MODULE, asks, 0}, {?MODULE, nothing}}]}),
    {ok, Summary} = witness:await(Run, ?WAIT_MS),
    {ok, _} = witness:stop(Run),
    unregister(witness_asker),
    {receive {asked, Running} -> Running after 0 -> false end, Summary}.

asks() -> witness_asker ! {asked, lists:keymember(inets, 1, application:which_applications())}.

stopped(Source) ->
    ok = load(serve),
    Run = start_run(Source),
    ok = witness:await_started(Run, ?WAIT_MS),
    {ok, Summary} = witness:stop(Run),
    Runs = is_pid(whereis(witness_application_test)),
    ok = application:stop(witness_application_test),
    ok = application:unload(witness_application_test),
    {Summary, Runs}.

lost(Source) ->
    ok = load(serve),
    Run = start_run(Source),
    ok = witness:await_started(Run, ?WAIT_MS),
    [exit(P, kill) || P <- processes(), proc_lib:get_label(P) =:= witness_run_application],
    {ok, Summary} = witness:await(Run, ?WAIT_MS),
    {ok, _} = witness:stop(Run),
    Runs = is_pid(whereis(witness_application_test)),
    ok = application:stop(witness_application_test),
    ok = application:unload(witness_application_test),
    {Summary, Runs}.

refused(Options) ->
    {error, Reason} = witness:start(Options#{log => false}),
    unicode:characters_to_binary(witness:format_error(Reason)).

%%% The monitors that count

init(_, _, Label) -> {ok, {new, Label}}.

handle_event({init, _, _, _, _}, {new, Label}) -> {ok, {Label, #{}}};
handle_event(_, {new, _}) -> {verdict, no, no_init};
handle_event({exit, _, _, _}, {_, Counts}) -> {verdict, yes, Counts};
handle_event(Event, {Label, Counts}) ->
    case label(Label, Event) of
        none -> {ok, {Label, Counts}};
        What -> {ok, {Label, maps:update_with(What, fun(N) -> N + 1 end, 1, Counts)}}
    end.

handle_end(_, {_, Counts}) -> {inconclusive, Counts}.

label(answers, {send, _, _, {http, {_, {ok, {{_, Code, _}, _, _}}}}, _}) -> Code;
label(answered, {recv, _, _, {http, {_, {ok, {{_, Code, _}, _, _}}}}, _}) -> Code;
label(requests, {recv, _, _, {tcp, _, <<"GET ", _/binary>>}, _}) -> request;
label(tls, {recv, _, _, {'$gen_call', _, {recv, _, _}}, _}) -> 'receive';
label(tls, {recv, _, _, {'$gen_call', _, {application_data, _}}, _}) -> send;
label(tls, {Kind, _, _, {_, {ok, Data}}, _}) when Kind =/= fork, is_binary(Data) -> data;
label(tls, {Kind, _, _, {_, {error, closed}}, _}) when Kind =/= fork -> closed;
label(transactions, {Kind, _, _, {mnesia_tm, _, {new_tid, _, _}}, _}) when Kind =/= fork -> begun;
label(transactions, {Kind, _, _, {delete_transaction, _}, _}) when Kind =/= fork -> done;
label(channel, {recv, _, _, {ssh_cm, _, {exec, _, _, _}}, _}) -> executed;
label(channel, {recv, _, _, {'$gen_call', _, _}, _}) -> called;
label(channel, {send, _, _, {Tag, _}, _}) when is_reference(Tag); is_list(Tag) -> replied;
label(cart, {recv, _, _, {'$gen_call', _, _}, _}) -> called;
label(cart, {send, _, _, {Tag, {Name, _}}, _}) when is_reference(Tag), is_integer(Name); is_list(Tag), is_integer(Name) -> replied;
label(cart, {send, _, _, {Tag, {_, paid, _}}, _}) when is_reference(Tag); is_list(Tag) -> replied;
label(task, {send, _, _, {added, _}, _}) -> added;
label(customer, {recv, _, _, {added, _}, _}) -> added;
label(customer, {recv, _, _, {_, _, _, _, {'Elixir.Shop', customer, _}}, _}) -> told;
label(_, _) -> none.
