-module(witness_remote_connection).
-moduledoc """
A connection to the target node: hidden, with a cookie from a file, and with the known reasons if it fails.

If this VM is not distributed, it becomes a hidden node for this, to which no other node can connect. The target
lends a name to it (a dynamic name), so the names of tools do not create ever more atoms there. If the target has a long
name, and this machine has no domain for such a name, this node takes one of a few names with the address of this machine.

## Errors

`{remote, Text}`: the node cannot be attached to; `{lost, Text}`: the connection to it was lost.
""".

-export([read_cookie/1, open/2, check_release/1, check_modules/2, call/4, check_release/2]).

-export_type([problem/0]).

-doc "The problem, for people.".
-type problem() :: {witness_remote, {remote | lost, unicode:chardata()}}.

-define(OLDEST_RELEASE, 27).
-define(NAME_COUNT, 64).
-define(TIMEOUT_MS, 10_000).

-doc "Reads a cookie. Only its owner may be able to read the file, as for the VM itself. An error is text.".
-spec read_cookie(file:name_all()) -> {ok, atom()} | {error, unicode:chardata()}.
read_cookie(File) ->
    maybe
        {ok, {regular, Mode}} ?= file_kind(File),
        0 ?= Mode band 8#077,
        {ok, Content} ?= file:read_file(File),
        [Cookie] ?= string:lexemes(Content, "\r\n\t "),
        true ?= byte_size(Cookie) < 256,
        true ?= lists:all(fun(C) -> C > 32 andalso C < 127 end, binary_to_list(Cookie)),
        {ok, binary_to_atom(Cookie)}
    else
        {ok, {_, _}} -> cookie_error(File, "is no regular file");
        {error, Reason} -> cookie_error(File, ["cannot be read: ", file:format_error(Reason)]);
        Wrong when Wrong =:= []; Wrong =:= false; is_list(Wrong) ->
            cookie_error(File, "one word of at most 255 printable ASCII characters is expected in it");
        _ -> cookie_error(File, ["others than its owner may read it: chmod 400 ", file_name(File)])
    end.

file_kind(File) ->
    case file:read_file_info(File, [raw]) of
        {ok, Info} -> {ok, {element(3, Info), element(8, Info)}};
        {error, _} = Error -> Error
    end.

cookie_error(File, Problem) -> {error, ["the cookie file ", file_name(File), ": ", Problem]}.

file_name(File) ->
    case unicode:characters_to_binary(File) of
        Name when is_binary(Name) -> Name;
        _ -> "(its name is not Unicode)"
    end.

-doc "Connects to a node.".
-spec open(node(), Cookie :: atom()) -> ok | {error, problem()}.
open(Node, Cookie) ->
    maybe
        {ok, Name, Host} ?= split_node(Node),
        {ok, Address} ?= resolve(Node, Host),
        ok ?= ensure_distributed(Host, Address, ?NAME_COUNT),
        true = erlang:set_cookie(Node, Cookie),
        case net_kernel:hidden_connect_node(Node) of
            true -> ok;
            _ -> remote_error(format_unconnected(Node, Name, Host, Address))
        end
    end.

split_node(Node) ->
    case string:split(atom_to_list(Node), "@") of
        [[_ | _] = Name, [_ | _] = Host] -> {ok, Name, Host};
        _ -> remote_error(["a node is NAME@HOST, not ", atom_to_binary(Node)])
    end.

resolve(Node, Host) ->
    case inet:getaddr(Host, inet) of
        {ok, Address} -> {ok, Address};
        {error, Reason} ->
            remote_error(["the node ", atom_to_binary(Node), " cannot be reached: there is no host ", Host, " (",
                          inet:format_error(Reason), ")"])
    end.

ensure_distributed(Host, Address, Tries) ->
    case is_alive() of
        true -> ok;
        false -> start_distribution(lists:member($., Host), Address, Tries)
    end.

start_distribution(false, _, _) -> start_result(net_kernel:start(undefined, distribution_options(shortnames)));
start_distribution(true, Address, Tries) ->
    {ok, [{Own, _, _} | _]} = {ok, own_addresses(Address)},
    Name = "witness" ++ integer_to_list(rand:uniform(Tries)) ++ "@" ++ inet:ntoa(Own),
    start_result(net_kernel:start(list_to_atom(Name), distribution_options(longnames))).

distribution_options(Domain) -> #{name_domain => Domain, hidden => true, dist_listen => false}.

start_result({ok, _}) -> ok;
start_result({error, Reason}) ->
    remote_error(["this node cannot be made a distributed one: ", witness_event:format_term(Reason, 300)]).

%% The address of this machine that the other machine sees.
own_addresses(Address) ->
    {ok, Socket} = gen_udp:open(0, [inet]),
    _ = gen_udp:connect(Socket, Address, 4369),
    {ok, {Own, Port}} = inet:sockname(Socket),
    ok = gen_udp:close(Socket),
    [{Own, Port, udp}].

format_unconnected(Node, Name, Host, Address) ->
    ["the node ", atom_to_binary(Node), " cannot be reached: ",
     case erl_epmd:names(Address) of
         {error, _} -> ["no name service (epmd) answers on ", Host];
         {ok, Names} ->
             case lists:keyfind(Name, 1, Names) of
                 {Name, Port} -> format_refused(Address, Port);
                 false ->
                     ["there is no node of that name on ", Host,
                      case Names of
                          [] -> "";
                          _ -> [", but ", lists:join(", ", [Other || {Other, _} <- Names])]
                      end]
             end
     end].

format_refused(Address, Port) ->
    case gen_tcp:connect(Address, Port, [binary, {active, false}], ?TIMEOUT_MS) of
        {ok, Socket} ->
            Answer = begin_handshake(Socket),
            ok = gen_tcp:close(Socket),
            case Answer of
                {error, timeout} ->
                    "it is there, but does not answer; its process may be stopped (SIGSTOP), or the node is overloaded";
                _ -> "it is there, but does not accept the connection; most likely its cookie is another one (--cookie-file)"
            end;
        {error, Reason} ->
            ["it is registered, but its port ", integer_to_list(Port), " does not answer (",
             inet:format_error(Reason), ")"]
    end.

%% Begins the handshake of nodes, as OTP 25 and later do; each node answers it before it asks for a cookie. A connection alone
%% proves nothing: the operating system accepts it also for a process that is stopped.
begin_handshake(Socket) ->
    Name = ~"witness@nohost",
    Flags = element(2, erts_internal:get_dflags()),
    Hello = <<$N, Flags:64, 1:32, (byte_size(Name)):16, Name/binary>>,
    _ = gen_tcp:send(Socket, <<(byte_size(Hello)):16, Hello/binary>>),
    gen_tcp:recv(Socket, 0, ?TIMEOUT_MS).

-doc "Whether the node is recent enough.".
-spec check_release(node()) -> ok | {error, problem()}.
check_release(Node) ->
    maybe
        {ok, Release} ?= call(Node, erlang, system_info, [otp_release]),
        check_release(Node, Release)
    end.

-doc "Whether the node has these modules of OTP.".
-spec check_modules(node(), [module()]) -> ok | {error, problem()}.
check_modules(Node, Modules) ->
    maybe
        {ok, Places} ?= call(Node, lists, map, [fun code:which/1, Modules]),
        [] ?= [M || {M, non_existing} <- lists:zip(Modules, Places)],
        ok
    else
        {error, _} = Error -> Error;
        Missing ->
            remote_error(["the node ", atom_to_binary(Node), " lacks modules of Erlang/OTP: ",
                          lists:join(", ", [atom_to_binary(M) || M <- Missing])])
    end.

-doc "Whether a release of OTP is recent enough.".
-spec check_release(node(), string()) -> ok | {error, problem()}.
check_release(Node, Release) ->
    case string:to_integer(Release) of
        {Number, _} when is_integer(Number), Number >= ?OLDEST_RELEASE -> ok;
        _ ->
            remote_error(["the node ", atom_to_binary(Node), " runs Erlang/OTP ", Release, "; ",
                          integer_to_list(?OLDEST_RELEASE), " or later is needed, which has trace sessions"])
    end.

-doc "Calls a function on the node.".
-spec call(node(), module(), atom(), [term()]) -> {ok, term()} | {error, problem()}.
call(Node, Module, Function, Args) ->
    try
        {ok, erpc:call(Node, Module, Function, Args, ?TIMEOUT_MS)}
    catch
        error:{erpc, noconnection} ->
            {error, {witness_remote, {lost, ["the connection to ", atom_to_binary(Node), " was lost"]}}};
        error:{erpc, Reason} ->
            remote_error(["the node ", atom_to_binary(Node), " does not answer: ", witness_event:format_term(Reason, 200)]);
        Class:Reason ->
            Wrong = {Module, Function, Class, Reason},
            remote_error(["the node ", atom_to_binary(Node), ": ", witness_event:format_term(Wrong, 300)])
    end.

remote_error(Text) -> {error, {witness_remote, {remote, Text}}}.
