-module(http_service_demo).
-moduledoc """
Starts the booking service, lets passengers book over HTTP, and stops it again.

`main/0` sells seats to one passenger after the other, and then lets two passengers ask for the same seat at the
same time, seat by seat, until both have been told that it is theirs. `sequential/0` is the same service and the
same requests, one at a time: nothing goes wrong.

The service and the clients are gone when a function returns; the application `inets`, which belongs to the node and
serves both sides' HTTP, stays started.
""".

-export([main/0, sequential/0]).

-define(PASSENGERS, [~"anna", ~"bruno"]).

-doc "Provokes the race, and returns when two passengers hold the same seat.".
-spec main() -> ok.
main() ->
    with_service(fun(Port) ->
        {Quiet, Contended} = lists:split(3, seats()),
        one_at_a_time(Port, Quiet),
        race(Port, Contended, 1)
    end).

-doc "The same requests, never two at a time.".
-spec sequential() -> ok.
sequential() ->
    with_service(fun(Port) -> one_at_a_time(Port, lists:sublist(seats(), 12)) end).

-spec with_service(fun((inet:port_number()) -> ok)) -> ok.
with_service(Bookings) ->
    {ok, _} = application:ensure_all_started(inets),
    {ok, Supervisor} = http_service_sup:start_link(),
    Port = http_service_web:port(),
    io:format("booking: listening on 127.0.0.1:~b~n", [Port]),
    Bookings(Port),
    gen_server:stop(Supervisor),
    io:format("booking: stopped~n").

%% Every passenger asks for every seat, and waits for the answer before the next one asks.
-spec one_at_a_time(inet:port_number(), [seat_server:seat()]) -> ok.
one_at_a_time(Port, Seats) ->
    Answers = [[request(Port, Seat, Passenger) || Passenger <- ?PASSENGERS] || Seat <- Seats],
    [[201, 409]] = lists:usort(Answers),
    io:format("booking: ~b seats, one request at a time: one ticket for each seat~n", [length(Seats)]).

-spec race(inet:port_number(), [seat_server:seat()], pos_integer()) -> ok.
race(Port, [Seat | Seats], Tries) ->
    Clients = [spawn_client(Port, Seat, Passenger) || Passenger <- ?PASSENGERS],
    [Client ! go || {Client, _} <- Clients],
    case lists:sort([status(Client) || Client <- Clients]) of
        [201, 201] ->
            io:format("booking: seat ~s, two at a time (try ~b): tickets for ~s, paid ~b times~n", [
                Seat,
                Tries,
                lists:join(" and ", lists:sort(seat_server:passengers(Seat))),
                ledger_server:charges(Seat)
            ]);
        [201, 409] ->
            race(Port, Seats, Tries + 1)
    end;
race(_Port, [], Tries) ->
    error({no_race_in, Tries - 1}).

%% The client is ready, and asks when it is told to: so both ask at the same time.
-spec spawn_client(inet:port_number(), seat_server:seat(), seat_server:passenger()) -> {pid(), reference()}.
spawn_client(Port, Seat, Passenger) ->
    spawn_monitor(fun() ->
        receive
            go -> exit({status, request(Port, Seat, Passenger)})
        end
    end).

-spec status({pid(), reference()}) -> 100..599.
status({Client, Monitor}) ->
    receive
        {'DOWN', Monitor, process, Client, {status, Status}} -> Status
    end.

-spec request(inet:port_number(), seat_server:seat(), seat_server:passenger()) -> 100..599.
request(Port, Seat, Passenger) ->
    Query = uri_string:compose_query([{~"seat", Seat}, {~"passenger", Passenger}]),
    Url = ["http://127.0.0.1:", integer_to_list(Port), "/book?", Query],
    %% A connection of its own for each request, so that no request waits behind another.
    Request = {iolist_to_binary(Url), [{"connection", "close"}], "text/plain", ""},
    {ok, {{_, Status, _}, _, _}} = httpc:request(post, Request, [], [{body_format, binary}]),
    Status.

-spec seats() -> [seat_server:seat(), ...].
seats() ->
    [<<(integer_to_binary(Row))/binary, Letter>> || Row <- lists:seq(1, 50), Letter <- "ABCD"].
