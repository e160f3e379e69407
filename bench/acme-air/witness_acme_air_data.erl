-module(witness_acme_air_data).
-moduledoc """
The database of `m:witness_acme_air`: six tables of Mnesia, in memory alone. All changes are made in
transactions.
""".

-export([load/1, count/1, listing/0, airports/0, day/2]).
-export([customer/1, update_customer/2, login/2, session/1, logout/1, flights/3, book/3, cancel/2, bookings/1]).

-export_type([customer/0, flight/0, booking/0]).

-record(customer, {id, password, status, total_miles, miles_ytd, address, phone, phone_type}).
-record(airport, {code, name}).
-record(segment, {route, id, miles}).
-record(flight, {id, on, day}).
-record(booking, {id, customer, flight, made}).
-record(session, {id, customer, until}).

-doc "A row as JSON.".
-type customer() :: #{binary() => term()}.
-type flight() :: #{binary() => term()}.
-type booking() :: #{binary() => term()}.

-define(DAY, 24 * 60 * 60).

-doc "Makes the tables: so many customers, and a flight a day on each route between two airports.".
-spec load(witness_acme_air:options()) -> ok.
load(#{customers := Customers, days := Days, today := Today}) ->
    [{atomic, ok} = mnesia:create_table(Table, [{ram_copies, [node()]} | Options]) || {Table, Options} <- tables()],
    [ok = mnesia:dirty_write(new_customer(N)) || N <- lists:seq(0, Customers - 1)],
    [ok = mnesia:dirty_write(#airport{code = Code, name = Name}) || {Code, Name} <- airports()],
    Routes = [{From, To} || {From, _} <- airports(), {To, _} <- airports(), From =/= To],
    [load_segment(N, Route, Days, Today) || {N, Route} <- lists:enumerate(Routes)],
    ok.

tables() ->
    [{customer, [{attributes, record_info(fields, customer)}]},
     {airport, [{attributes, record_info(fields, airport)}]},
     {segment, [{attributes, record_info(fields, segment)}]},
     {flight, [{attributes, record_info(fields, flight)}, {index, [on]}]},
     {booking, [{attributes, record_info(fields, booking)}, {index, [customer]}]},
     {session, [{attributes, record_info(fields, session)}]}].

new_customer(N) ->
    #customer{id = <<"uid", (integer_to_binary(N))/binary, "@email.com">>, password = ~"password", status = ~"GOLD",
              total_miles = 1000000, miles_ytd = 1000, phone = ~"919-123-4567", phone_type = ~"BUSINESS",
              address = #{~"streetAddress1" => ~"123 Main St.", ~"city" => ~"Anytown", ~"stateProvince" => ~"NC",
                          ~"country" => ~"USA", ~"postalCode" => ~"27617"}}.

load_segment(N, {From, To} = Route, Days, Today) ->
    Id = <<"AA", (integer_to_binary(N))/binary>>,
    ok = mnesia:dirty_write(#segment{route = Route, id = Id, miles = 300 + erlang:phash2({From, To}, 8000)}),
    [begin
         Day = day(Today, D),
         ok = mnesia:dirty_write(#flight{id = <<Id/binary, "-", Day/binary>>, on = {Id, Day}, day = Day})
     end || D <- lists:seq(0, Days - 1)].

-doc "The day so many days later, as it stands in requests.".
-spec day(calendar:date(), non_neg_integer()) -> binary().
day(Today, Later) ->
    {Y, M, D} = calendar:gregorian_days_to_date(calendar:date_to_gregorian_days(Today) + Later),
    iolist_to_binary(io_lib:format("~4..0w-~2..0w-~2..0w", [Y, M, D])).

-doc "The codes and names of the airports.".
-spec airports() -> [{Code :: binary(), Name :: binary()}, ...].
airports() ->
    [{~"AMS", ~"Amsterdam"}, {~"AKL", ~"Auckland"}, {~"BKK", ~"Bangkok"}, {~"BOM", ~"Mumbai"}, {~"BRU", ~"Brussels"},
     {~"CAI", ~"Cairo"}, {~"CDG", ~"Paris"}, {~"DEL", ~"Delhi"}, {~"DXB", ~"Dubai"}, {~"FCO", ~"Rome"},
     {~"FRA", ~"Frankfurt"}, {~"GVA", ~"Geneva"}, {~"HKG", ~"Hong Kong"}, {~"IST", ~"Istanbul"}, {~"JFK", ~"New York"},
     {~"LHR", ~"London"}, {~"MXP", ~"Milan"}, {~"NRT", ~"Tokyo"}, {~"SIN", ~"Singapore"}, {~"YUL", ~"Montreal"}].

-doc "How many there are.".
-spec count(customer | airport | segment | flight | booking | session) -> non_neg_integer().
count(Table) -> mnesia:table_info(Table, size).

-doc "All bookings, one a line, in the order of their customers.".
-spec listing() -> binary().
listing() ->
    All = mnesia:activity(transaction, fun() -> mnesia:match_object(#booking{_ = '_'}) end),
    Sorted = lists:sort([{C, I, F} || #booking{id = I, customer = C, flight = F} <- All]),
    iolist_to_binary([[Customer, " ", Id, " ", Flight, "\n"] || {Customer, Id, Flight} <- Sorted]).

%% --- customers and sessions -----------------------------------------------------------

-doc "A customer, without the password.".
-spec customer(binary()) -> {ok, customer()} | not_found.
customer(Id) ->
    case read(customer, Id) of
        [#customer{} = C] -> {ok, shown(C)};
        [] -> not_found
    end.

shown(#customer{} = C) ->
    #{~"_id" => C#customer.id, ~"status" => C#customer.status, ~"total_miles" => C#customer.total_miles,
      ~"miles_ytd" => C#customer.miles_ytd, ~"address" => C#customer.address, ~"phoneNumber" => C#customer.phone,
      ~"phoneNumberType" => C#customer.phone_type}.

-doc "Changes address and telephone of a customer, if the password is right.".
-spec update_customer(binary(), customer()) -> {ok, customer()} | denied.
update_customer(Id, #{~"password" := Password, ~"address" := Address, ~"phoneNumber" := Phone,
                      ~"phoneNumberType" := Type}) ->
    mnesia:activity(transaction, fun() ->
        case mnesia:read(customer, Id, write) of
            [#customer{password = Password} = C] ->
                Changed = C#customer{address = Address, phone = Phone, phone_type = Type},
                ok = mnesia:write(Changed),
                {ok, shown(Changed)};
            _ -> denied
        end
    end).

-doc "A new session, for a day.".
-spec login(binary(), binary()) -> {ok, Session :: binary()} | denied.
login(Id, Password) ->
    case read(customer, Id) of
        [#customer{password = Password}] ->
            Session = new_id(),
            write(#session{id = Session, customer = Id, until = erlang:system_time(second) + ?DAY}),
            {ok, Session};
        _ -> denied
    end.

-doc "The customer of a session. An expired session is removed.".
-spec session(binary()) -> {ok, Customer :: binary()} | invalid.
session(Id) ->
    Now = erlang:system_time(second),
    case read(session, Id) of
        [#session{customer = Customer, until = Until}] when Until > Now -> {ok, Customer};
        [#session{}] ->
            ok = logout(Id),
            invalid;
        [] -> invalid
    end.

-doc "Removes a session.".
-spec logout(binary()) -> ok.
logout(Id) -> mnesia:activity(transaction, fun() -> mnesia:delete({session, Id}) end).

%% --- flights and bookings ---------------------------------------------------------------

-doc "Flights from one airport to another on a day (`2026-11-22`), with their segment.".
-spec flights(binary(), binary(), binary()) -> [flight()].
flights(From, To, Day) ->
    mnesia:activity(transaction, fun() ->
        case mnesia:read(segment, {From, To}) of
            [#segment{id = Id, miles = Miles}] ->
                Segment = #{~"_id" => Id, ~"originPort" => From, ~"destPort" => To, ~"miles" => Miles},
                [shown(Flight, Segment) || Flight <- mnesia:index_read(flight, {Id, Day}, #flight.on)];
            [] -> []
        end
    end).

shown(#flight{id = Id, on = {SegmentId, _}, day = Day}, Segment) ->
    #{~"_id" => Id, ~"flightSegmentId" => SegmentId, ~"flightSegment" => Segment, ~"scheduledDepartureTime" => Day,
      ~"scheduledArrivalTime" => Day, ~"firstClassBaseCost" => 500, ~"economyClassBaseCost" => 200,
      ~"numFirstClassSeats" => 10, ~"numEconomyClassSeats" => 200, ~"airplaneTypeId" => ~"B747"}.

-doc "Books flights for a customer, and returns the numbers of the bookings.".
-spec book(Customer :: binary(), Flights :: [binary()], Made :: integer()) -> {ok, [binary()]} | not_found.
book(Customer, Flights, Made) ->
    Bookings = [#booking{id = new_id(), customer = Customer, flight = Flight, made = Made} || Flight <- Flights],
    mnesia:activity(transaction, fun() ->
        case mnesia:read(customer, Customer) =/= [] andalso [Id || Id <- Flights, mnesia:read(flight, Id) =:= []] of
            [] ->
                [ok = mnesia:write(Booking) || Booking <- Bookings],
                {ok, [Id || #booking{id = Id} <- Bookings]};
            _ -> not_found
        end
    end).

-doc "Removes a booking of a customer.".
-spec cancel(Customer :: binary(), Booking :: binary()) -> ok | not_found.
cancel(Customer, Id) ->
    mnesia:activity(transaction, fun() ->
        case mnesia:read(booking, Id, write) of
            [#booking{customer = Customer}] -> mnesia:delete({booking, Id});
            _ -> not_found
        end
    end).

-doc "The bookings of a customer.".
-spec bookings(binary()) -> [booking()].
bookings(Customer) ->
    Found = mnesia:activity(transaction, fun() -> mnesia:index_read(booking, Customer, #booking.customer) end),
    [#{~"_id" => Id, ~"customerId" => Customer, ~"flightId" => Flight, ~"dateOfBooking" => Made}
     || #booking{id = Id, flight = Flight, made = Made} <- Found].

read(Table, Key) -> mnesia:activity(transaction, fun() -> mnesia:read(Table, Key) end).

write(Record) -> mnesia:activity(transaction, fun() -> mnesia:write(Record) end).

new_id() -> binary:encode_hex(rand:bytes(16), lowercase).
