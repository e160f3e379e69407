-module(booking_worker).
-moduledoc """
One process for each booking: checks the seat, charges the passenger, takes the seat, answers, ends.

The race is here. Between the check and the booking another worker can do the same two steps for the same seat:
both are told that it is free, both charge, both book. The repair is one request that checks and books.
""".

-export([start_link/3, serve/3]).

-export_type([answer/0]).

-doc "What the client receives, exactly once.".
-type answer() :: {answer, Worker :: pid(), {booked, ledger_server:receipt()} | taken}.

-doc "Starts a worker that sends its `t:answer/0` to the client.".
-spec start_link(Client :: pid(), seat_server:seat(), seat_server:passenger()) -> {ok, pid()}.
start_link(Client, Seat, Passenger) ->
    {ok, proc_lib:spawn_link(?MODULE, serve, [Client, Seat, Passenger])}.

-doc false.
-spec serve(pid(), seat_server:seat(), seat_server:passenger()) -> answer().
serve(Client, Seat, Passenger) ->
    Client ! {answer, self(), reserve(Seat, Passenger)}.

-spec reserve(seat_server:seat(), seat_server:passenger()) -> {booked, ledger_server:receipt()} | taken.
reserve(Seat, Passenger) ->
    case seat_server:check(Seat) of
        {free, Seat} ->
            {charged, Receipt} = ledger_server:charge(Seat, Passenger),
            {booked, Seat, Passenger} = seat_server:book(Seat, Passenger),
            {booked, Receipt};
        {taken, Seat} ->
            taken
    end.
