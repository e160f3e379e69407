-module(witness_booking).
-moduledoc """
The booking service of `examples/http_service`, for as long as somebody wants it, with OTP's web server in the same
recording. What it has sold is printed to a file in the end: a replay writes no file, but what it would print can be
seen.
""".

-export([main/2]).

-doc "Tells its port to who listens on this one of the loopback, and serves until that connection is closed.".
-spec main(inet:port_number(), file:filename()) -> ok.
main(Ready, Name) ->
    {ok, Service} = http_service_sup:start_link(),
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Ready, [{active, false}]),
    ok = gen_tcp:send(Socket, integer_to_list(http_service_web:port())),
    {error, closed} = gen_tcp:recv(Socket, 0),
    #{written := Written, group := []} = sys:get_state(ledger_server),
    {ok, File} = file:open(Name, [write]),
    ok = io:put_chars(File, [line(Entry) || Entry <- lists:reverse(Written)]),
    ok = file:close(File),
    gen_server:stop(Service).

line({Receipt, Seat, Passenger}) -> [integer_to_binary(Receipt), " ", Seat, " ", Passenger, "\n"].
