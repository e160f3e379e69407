-module(witness_bench_nodes).
-moduledoc """
A second node on this machine, for models with workers on another node than their master (BenchCRV text, section
5).

This node becomes a distributed one, and stays so; a benchmark has a VM of its own. Both nodes listen on the
loopback interface only, with a random cookie, and a name service (epmd) is started if there is none,
as `erl -name` does.
""".

-export([start/0, distribute/1, name_service/0]).

-define(NAME_SERVICE_TRIES, 500).
-define(NAME_SERVICE_PAUSE_MS, 10).

-doc "Starts a node, which ends with the calling process, and connects it.".
-spec start() -> {ok, node()} | {error, term()}.
start() ->
    Cookie = binary_to_atom(binary:encode_hex(crypto:strong_rand_bytes(16))),
    maybe
        {ok, _} ?= distribute(Cookie),
        {ok, Peer, _} ?= peer:start_link(#{connection => standard_io, args => ["-pa" | code:get_path()]}),
        {ok, Node} ?= peer:call(Peer, ?MODULE, distribute, [erlang:get_cookie()]),
        true ?= net_kernel:connect_node(Node),
        {ok, Node}
    else
        false -> {error, not_connected};
        {error, Reason} -> {error, Reason}
    end.

-doc "Makes this node a distributed one with this cookie, if it is not one already.".
-spec distribute(Cookie :: atom()) -> {ok, node()} | {error, term()}.
distribute(Cookie) ->
    case is_alive() of
        true -> {ok, node()};
        false ->
            ok = application:set_env(kernel, inet_dist_use_interface, {127, 0, 0, 1}),
            Name = "witness_bench_" ++ os:getpid() ++ "@127.0.0.1",
            maybe
                ok ?= name_service(),
                {ok, _} ?= net_kernel:start(list_to_atom(Name), #{name_domain => longnames}),
                true = erlang:set_cookie(Cookie),
                {ok, node()}
            end
    end.

-doc "Starts the name service of this machine if none is running, and returns when it answers.".
-spec name_service() -> ok | {error, no_name_service}.
name_service() ->
    case os:find_executable("epmd", filename:join([code:root_dir(), "erts-" ++ erlang:system_info(version), "bin"])) of
        false -> ok;
        Epmd ->
            Port = open_port({spawn_executable, Epmd},
                             [{args, ["-daemon"]}, {env, [{"ERL_EPMD_ADDRESS", "127.0.0.1"}]}, exit_status]),
            receive {Port, {exit_status, _}} -> ok end
    end,
    answers(?NAME_SERVICE_TRIES).

%% The command has ended, and the daemon that it leaves may not listen yet.
answers(0) -> {error, no_name_service};
answers(Tries) ->
    case erl_epmd:names({127, 0, 0, 1}) of
        {ok, _} -> ok;
        {error, _} ->
            timer:sleep(?NAME_SERVICE_PAUSE_MS),
            answers(Tries - 1)
    end.
