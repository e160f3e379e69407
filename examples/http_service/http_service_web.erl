-module(http_service_web).
-moduledoc """
The HTTP side: owns OTP's web server on a free loopback port, and is its callback for requests.

`POST /book?seat=3B&passenger=anna` answers `201` when the seat is booked, `409` when it is taken, `400` when a
parameter is missing, and `500` when the worker has crashed. Anything else is `404`.
""".

-behaviour(gen_server).

-export([start_link/0, port/0]).
-export([init/1, handle_call/3, handle_cast/2, terminate/2]).
-export([do/1]).

-include_lib("inets/include/httpd.hrl").

-type state() :: #{httpd := pid(), port := inet:port_number()}.

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "The port on which the service listens.".
-spec port() -> inet:port_number().
port() ->
    gen_server:call(?MODULE, port).

-spec init([]) -> {ok, state()}.
init([]) ->
    %% Without it, `terminate/2` would not run, and the web server would outlive the service.
    process_flag(trap_exit, true),
    {ok, Httpd} = inets:start(httpd, [
        {port, 0},
        {bind_address, {127, 0, 0, 1}},
        {ipfamily, inet},
        {server_name, "booking"},
        {server_root, "."},
        {document_root, "."},
        {modules, [?MODULE]}
    ]),
    [{port, Port}] = httpd:info(Httpd, [port]),
    {ok, #{httpd => Httpd, port => Port}}.

-spec handle_call(port, gen_server:from(), state()) -> {reply, inet:port_number(), state()}.
handle_call(port, _From, #{port := Port} = State) ->
    {reply, Port, State}.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_Unknown, State) ->
    {noreply, State}.

-spec terminate(term(), state()) -> ok.
terminate(_Reason, #{httpd := Httpd}) ->
    ok = inets:stop(httpd, Httpd).

-doc "The web server's callback: it runs in the process of the connection.".
-spec do(#mod{}) -> {proceed, [{response, {Status :: 100..599, Body :: string()}}]}.
do(#mod{method = "POST", request_uri = Uri}) ->
    case uri_string:parse(list_to_binary(Uri)) of
        #{path := ~"/book", query := Query} -> book(uri_string:dissect_query(Query));
        #{} -> respond(404, "there is only /book")
    end;
do(#mod{}) ->
    respond(404, "there is only POST").

-spec book([{binary(), binary() | true}] | {error, term(), term()}) -> {proceed, list()}.
book(Parameters) when is_list(Parameters) ->
    case maps:from_list(Parameters) of
        #{~"seat" := Seat, ~"passenger" := Passenger} when is_binary(Seat), is_binary(Passenger) ->
            {ok, Worker} = booking_sup:start_worker(self(), Seat, Passenger),
            wait(Worker, monitor(process, Worker));
        #{} ->
            respond(400, "seat and passenger, please")
    end;
book({error, _, _}) ->
    respond(400, "no query").

-spec wait(pid(), reference()) -> {proceed, list()}.
wait(Worker, Monitor) ->
    receive
        {answer, Worker, {booked, Receipt}} ->
            demonitor(Monitor, [flush]),
            respond(201, "receipt " ++ integer_to_list(Receipt));
        {answer, Worker, taken} ->
            demonitor(Monitor, [flush]),
            respond(409, "taken");
        {'DOWN', Monitor, process, Worker, _Crash} ->
            respond(500, "sorry")
    end.

-spec respond(100..599, string()) -> {proceed, list()}.
respond(Status, Text) ->
    {proceed, [{response, {Status, Text ++ "\n"}}]}.
