-module(witness_record_httpd).
-moduledoc """
The requests of OTP's HTTP server as a data source (`m:witness_record_source`). This module is for the server's option
`modules`, and delivers each request to a process of the program.

```erlang
inets:start(httpd, [{port, 8080}, {server_name, "shop"}, {server_root, "."}, {document_root, "."},
                    {modules, [witness_record_httpd]}, {witness_record_handler, shop}]).
```

The process with the name `shop` takes `{http_request, Event, #{method := Method, path := Path}}`. That message is recorded,
and so are the parts that the process reads of the event:

| Part | |
|---|---|
| `query` | what follows the `?`, or `""` |
| `headers` | `[{Name, Value}]`; names in lower case |
| `{header, Name}` | the value of one, or `undefined` |
| `body` | |
| `peer` | `{Port, Address}` of the client |

All are strings, as the server has them. The answer is `{Status, Headers, Body}`, with names of headers as the server expects
them, such as `{content_type, "text/plain"}`. If there is no answer in time (`witness_record_timeout`, 30,000 milliseconds),
the request gets a 504. If there is no such process, or it ends meanwhile, the request gets a 503.

The application `inets` must be outside: `outside => [inets]` of `m:witness_record`.
""".
-behaviour(witness_record_source).

-include_lib("inets/include/httpd.hrl").

-export([do/1, event/1, read/2]).

-define(TIMEOUT_MS, 30_000).

-doc false.
do(#mod{data = Done} = Request) ->
    case lists:keymember(response, 1, Done) orelse lists:keymember(status, 1, Done) of
        true -> {proceed, Done};
        false -> {proceed, [answered(deliver(Request), Request) | Done]}
    end.

deliver(#mod{config_db = Config} = Request) ->
    case httpd_util:lookup(Config, witness_record_handler) of
        undefined -> {error, noproc};
        To ->
            Timeout = httpd_util:lookup(Config, witness_record_timeout, ?TIMEOUT_MS),
            witness_record_source:deliver(?MODULE, To, Request, Timeout)
    end.

answered({ok, {Status, Headers, Body}}, _) ->
    Length = integer_to_list(iolist_size(Body)),
    {response, {response, [{code, Status}, {content_length, Length} | Headers], Body}};
answered({error, timeout}, #mod{request_uri = Uri}) -> {status, {504, Uri, "no answer in time"}};
answered({error, _}, #mod{request_uri = Uri}) -> {status, {503, Uri, "no process answers"}}.

-doc false.
event(#mod{method = Method, request_uri = Uri}) ->
    {Path, _} = parts(Uri),
    {http_request, #{method => Method, path => Path}}.

-doc false.
read(query, #mod{request_uri = Uri}) -> element(2, parts(Uri));
read(headers, #mod{parsed_header = Headers}) -> Headers;
read({header, Name}, #mod{parsed_header = Headers}) -> proplists:get_value(Name, Headers);
read(body, #mod{entity_body = Body}) -> Body;
read(peer, #mod{init_data = #init_data{peername = Peer}}) -> Peer.

parts(Uri) ->
    case string:split(Uri, "?") of
        [Path, Query] -> {Path, Query};
        [Path] -> {Path, ""}
    end.
