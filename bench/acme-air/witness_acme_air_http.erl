-module(witness_acme_air_http).
-moduledoc """
An HTTP client that measures: one connection that stays open, and one request after the other. It does little
else, so the time of a request is nearly that of the server.
""".

-export([connect/1, close/1, request/3, last/2, form/1]).

-export_type([connection/0, method/0, answer/0]).

-type connection() :: gen_tcp:socket().
-type method() :: get | {post, ContentType :: iodata(), Body :: iodata()}.
-type answer() :: {Status :: pos_integer(), Headers :: #{Name :: binary() => binary()}, Body :: binary()}.

-define(TIMEOUT, 30_000).

-spec connect(inet:port_number()) -> connection().
connect(Port) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, http_bin},
                                                          {nodelay, true}]),
    Socket.

-spec close(connection()) -> ok.
close(Socket) -> gen_tcp:close(Socket).

-doc "Nanoseconds until the answer was read, and the answer. Names of headers are in lower case.".
-spec request(method(), {Path :: iodata(), Cookie :: binary()}, connection()) -> {pos_integer(), answer()}.
request(Method, {Path, Cookie}, Socket) ->
    Bytes = bytes(Method, Path, [[~"Cookie: sessionid=", Cookie, ~"\r\n"] || Cookie =/= ~""]),
    Begin = erlang:monotonic_time(),
    ok = gen_tcp:send(Socket, Bytes),
    {ok, {http_response, _, Status, _}} = gen_tcp:recv(Socket, 0, ?TIMEOUT),
    Headers = headers(Socket, #{}),
    #{~"content-length" := Length} = Headers,
    Body = body(Socket, binary_to_integer(Length)),
    End = erlang:monotonic_time(),
    {erlang:convert_time_unit(End - Begin, native, nanosecond), {Status, Headers, Body}}.

-doc "A request which ends the server instead of getting an answer.".
-spec last(Path :: iodata(), connection()) -> ok.
last(Path, Socket) ->
    ok = gen_tcp:send(Socket, bytes(get, Path, [])),
    {error, closed} = gen_tcp:recv(Socket, 0, ?TIMEOUT),
    ok.

bytes(get, Path, Headers) -> [~"GET ", Path, ~" HTTP/1.1\r\nHost: localhost\r\n", Headers, ~"\r\n"];
bytes({post, Type, Body}, Path, Headers) ->
    [~"POST ", Path, ~" HTTP/1.1\r\nHost: localhost\r\nContent-Type: ", Type, ~"\r\nContent-Length: ",
     integer_to_binary(iolist_size(Body)), ~"\r\n", Headers, ~"\r\n", Body].

headers(Socket, Headers) ->
    case gen_tcp:recv(Socket, 0, ?TIMEOUT) of
        {ok, http_eoh} -> Headers;
        {ok, {http_header, _, Name, _, Value}} -> headers(Socket, Headers#{string:lowercase(name(Name)) => Value})
    end.

name(Name) when is_atom(Name) -> atom_to_binary(Name);
name(Name) -> Name.

body(_, 0) -> ~"";
body(Socket, Length) ->
    ok = inet:setopts(Socket, [{packet, raw}]),
    {ok, Body} = gen_tcp:recv(Socket, Length, ?TIMEOUT),
    ok = inet:setopts(Socket, [{packet, http_bin}]),
    Body.

-doc "A form as the body of a `POST`.".
-spec form([{binary(), binary()}]) -> method().
form(Pairs) -> {post, ~"application/x-www-form-urlencoded", uri_string:compose_query(Pairs)}.
