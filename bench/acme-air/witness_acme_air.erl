-module(witness_acme_air).
-moduledoc """
Acme-Air in Erlang: the flight booking service that the paper on record and replay measures, after `acmeair-nodejs`
(its routes and what it loads). It has an embedded Mnesia database in memory, loaded before each run
(`m:witness_acme_air_data`), behind OTP's HTTP server. That server is a data source (`m:witness_record_httpd`): it passes
each request to the process `acme_air`, which spawns a process for each, as is usual in Erlang
(`m:witness_acme_air_routes`).

The run ends with the request `/rest/api/loader/end`, which has no answer. Then the listing of all bookings is printed
to the file `bookings`: a replay writes no file, but can show what it would print (`--mirror-output`).
""".

-export([main/1]).

-export_type([options/0]).

-doc """
- `ready`: the service sends its port to this port of the loopback, when it can be used;
- `root`: a folder for that file, which OTP's HTTP server wants to have too;
- `customers`, `days`, `today`: what is loaded.
""".
-type options() :: #{ready := inet:port_number(), root := file:filename(), customers := pos_integer(),
                     days := pos_integer(), today := calendar:date()}.

-define(LOOPBACK, {127, 0, 0, 1}).

-doc "Serves until the request to end, and returns how many requests there were.".
-spec main(options()) -> non_neg_integer().
main(#{ready := Ready, root := Root} = Options) ->
    %% When it is recorded, both run already: one in the recording, the other one outside.
    {ok, _} = application:ensure_all_started([mnesia, inets]),
    ok = witness_acme_air_data:load(Options),
    true = register(acme_air, self()),
    %% Without `nodelay` the body of an answer waits for the acknowledgement of its head.
    {ok, Server} = inets:start(httpd, [{port, 0}, {bind_address, ?LOOPBACK}, {ipfamily, inet},
                                       {server_name, "acme-air"}, {server_root, Root}, {document_root, Root},
                                       {socket_type, {ip_comm, [{nodelay, true}]}},
                                       {modules, [witness_record_httpd]}, {witness_record_handler, acme_air}]),
    [{port, Port}] = httpd:info(Server, [port]),
    ok = tell(Ready, integer_to_list(Port)),
    {ok, File} = file:open(filename:join(Root, "bookings"), [write]),
    Served = serve(0),
    ok = io:put_chars(File, witness_acme_air_data:listing()),
    ok = file:close(File),
    %% Its listener is a child of this process: the recording would not end before it.
    ok = inets:stop(httpd, Server),
    Served.

tell(Ready, Text) ->
    {ok, Socket} = gen_tcp:connect(?LOOPBACK, Ready, []),
    ok = gen_tcp:send(Socket, Text),
    gen_tcp:close(Socket).

serve(N) ->
    receive
        {http_request, _, #{path := "/rest/api/loader/end"}} -> N;
        {http_request, Event, #{method := Method, path := Path}} ->
            _ = spawn(fun() -> work(Event, Method, Path) end),
            serve(N + 1)
    end.

work(Event, Method, Path) ->
    Read = fun(Part) ->
        {ok, Value} = witness_record_source:read(Event, Part),
        Value
    end,
    ok = witness_record_source:answer(Event, witness_acme_air_routes:answer(Method, Path, Read)).
