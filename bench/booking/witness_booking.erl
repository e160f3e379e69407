-module(witness_booking).
-moduledoc """
The booking service of `examples/http_service`, for as long as its client is connected, with OTP's web server in the
same recording. At the end it prints to a file what it has sold: a replay writes no file, but can show what it would
print.
""".

-export([main/2]).

-doc "Sends its port to this port of the loopback, and serves until that connection is closed.".
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
