-module(witness_booking_client).
-moduledoc """
Passengers of the booking service, in threads with one connection at a time: so many requests a second, evenly, and
every answer is checked. Each asks for each seat more than once, and at about the same time as the others. The passenger
that got a seat is kept, with the number of the receipt.
""".

-export([start/3, await/1]).

-define(THREADS, 4).
%% How often a thread asks for a seat, and how many requests it makes over a connection.
-define(TIMES, 4).
-define(REQUESTS, 500).

-type thread() :: {pid(), reference()}.

-doc """
Threads that ask for so many seconds, at a rate for all together. They are linked: if an answer is wrong, the
caller ends.
""".
-spec start(inet:port_number(), Rate :: pos_integer(), Seconds :: pos_integer()) -> [thread(), ...].
start(Port, Rate, Seconds) ->
    Begin = erlang:monotonic_time(millisecond),
    End = Begin + Seconds * 1000,
    Each = Rate * Seconds div ?THREADS,
    [begin
         Passenger = <<"passenger", (integer_to_binary(T))/binary>>,
         {Pid, Ref} = spawn_monitor(fun() ->
             exit({known, lists:append([connection(Port, Numbers, Passenger, Begin, End, Rate)
                                        || Numbers <- connections(Each)])})
         end),
         true = link(Pid),
         {Pid, Ref}
     end || T <- lists:seq(1, ?THREADS)].

connections(Each) -> [lists:seq(N, min(Each, N + ?REQUESTS) - 1) || N <- lists:seq(0, Each - 1, ?REQUESTS)].

%% What was sold over one connection.
connection(Port, Numbers, Passenger, Begin, End, Rate) ->
    Socket = witness_acme_air_http:connect(Port),
    Sold = [{Receipt, Seat, Passenger}
            || N <- Numbers, Seat <- [integer_to_binary(N div ?TIMES)],
               until(Begin + N * ?THREADS * 1000 div Rate) < End,
               Receipt <- booked(Seat, Passenger, Socket)],
    ok = witness_acme_air_http:close(Socket),
    Sold.

%% Waits until then, and returns the time. A thread that is late asks at once.
until(Due) ->
    receive after max(0, Due - erlang:monotonic_time(millisecond)) -> erlang:monotonic_time(millisecond) end.

booked(Seat, Passenger, Socket) ->
    Path = [~"/book?", uri_string:compose_query([{~"seat", Seat}, {~"passenger", Passenger}])],
    case witness_acme_air_http:request({post, ~"text/plain", ~""}, {Path, ~""}, Socket) of
        {_, {201, _, <<"receipt ", Receipt/binary>>}} -> [binary_to_integer(string:trim(Receipt))];
        {_, {409, _, ~"taken\n"}} -> []
    end.

-doc "What was sold, in the order of the receipts, as the service prints it.".
-spec await([thread(), ...]) -> binary().
await(Threads) ->
    Sold = [receive {'DOWN', Ref, process, _, {known, Known}} -> Known end || {_, Ref} <- Threads],
    iolist_to_binary([[integer_to_binary(Receipt), " ", Seat, " ", Passenger, "\n"]
                      || {Receipt, Seat, Passenger} <- lists:sort(lists:append(Sold))]).
