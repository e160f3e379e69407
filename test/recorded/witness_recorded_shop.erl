-module(witness_recorded_shop).
-moduledoc """
A service behind OTP's HTTP server. It only looks at what the path of a request says: nothing but the path (`/plain`), one
header (`/header`), or the body (`/body`).
""".

-import(witness_recorded, [message/2, content/1, result/2, spawned/1]).

-export([source/3, direct/3]).
-export([do/1]).

-include_lib("inets/include/httpd.hrl").

-doc "The server is outside, and hands its requests to this process.".
source(Port, Requests, Ready) ->
    true = register(?MODULE, self()),
    {ok, _} = inets:start(httpd, config(Port, [witness_record_httpd]) ++ [{witness_record_handler, ?MODULE},
                                                                           {witness_record_timeout, 10_000}]),
    ok = ready(Ready),
    %% The process that reads an event need not be the one that has taken it.
    serve(Requests).

serve(0) -> done;
serve(N) ->
    receive
        {http_request, Event, #{method := "POST", path := Path}} = M ->
            content(M),
            Me = self(),
            Worker = spawned(fun() ->
                Me ! {answered, self(), witness_record_source:answer(Event, answer(wanted(Path, Event)))}
            end),
            receive {answered, Worker, ok} = Answered -> message(Worker, Answered) end,
            serve(N - 1)
    end.

wanted("/plain", _) -> "plain";
wanted("/header", Event) -> read(Event, {header, "x-wanted"});
wanted("/body", Event) -> read(Event, body).

read(Event, Part) ->
    {ok, Value} = result({witness_record_source, read, 2}, witness_record_source:read(Event, Part)),
    Value.

answer(Text) -> {200, [{content_type, "text/plain"}], integer_to_list(erlang:phash2(Text))}.

-doc "The server is part of the recording, and calls this module.".
direct(Port, Requests, Ready) ->
    true = register(?MODULE, self()),
    {ok, _} = inets:start(httpd, config(Port, [?MODULE]), stand_alone),
    ok = ready(Ready),
    [receive {answered, _} -> ok end || _ <- lists:seq(1, Requests)],
    done.

do(#mod{request_uri = Path, parsed_header = Headers, entity_body = Body}) ->
    Text = case Path of
        "/plain" -> "plain";
        "/header" -> proplists:get_value("x-wanted", Headers);
        "/body" -> Body
    end,
    {200, Rest, Answer} = answer(Text),
    ?MODULE ! {answered, self()},
    {proceed, [{response, {response, [{code, 200}, {content_length, integer_to_list(length(Answer))} | Rest], Answer}}]}.

config(Port, Modules) ->
    [{port, Port}, {bind_address, {127, 0, 0, 1}}, {ipfamily, inet}, {server_name, "shop"}, {server_root, "."},
     {document_root, "."}, {modules, Modules}].

%% The client waits for this connection.
ready(Port) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, []),
    gen_tcp:close(Socket).
