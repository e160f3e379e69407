-module(witness_acme_air_routes).
-moduledoc "The routes of `m:witness_acme_air` under `/rest/api`: a request in, an answer out.".

-export([answer/3]).

-define(API, "/rest/api/").

-doc """
The answer to a request; `Read` gives parts of it (`m:witness_record_httpd`). It is 403 without a valid session if one
is needed, 400 for a request that cannot be understood, 404 for what does not exist.
""".
-spec answer(Method :: string(), Path :: string(), Read :: fun((term()) -> term())) ->
    {Status :: pos_integer(), Headers :: [{atom() | string(), string()}], Body :: iodata()}.
answer(Method, ?API ++ Path, Read) ->
    try route(Method, string:lexemes(Path, "/"), Read)
    catch throw:{status, Status, Text} -> text(Status, Text)
    end;
answer(_, _, _) -> text(404, "no such page").

route("POST", ["login"], Read) ->
    #{~"login" := User, ~"password" := Password} = form(Read, [~"login", ~"password"]),
    case witness_acme_air_data:login(User, Password) of
        {ok, Session} ->
            Cookie = "sessionid=" ++ binary_to_list(Session) ++ "; Path=/",
            {200, [{content_type, "text/plain"}, {"set-cookie", Cookie}], "logged in"};
        denied -> text(403, "no such user, or another password")
    end;
route("GET", ["login", "logout"], Read) ->
    ok = witness_acme_air_data:logout(session_id(Read)),
    {200, [{content_type, "text/plain"}, {"set-cookie", "sessionid=; Path=/"}], "logged out"};
route("POST", ["flights", "queryflights"], Read) ->
    #{~"fromAirport" := From, ~"toAirport" := To, ~"fromDate" := There, ~"returnDate" := Back, ~"oneWay" := OneWay} =
        form(Read, [~"fromAirport", ~"toAirport", ~"fromDate", ~"returnDate", ~"oneWay"]),
    Ways = [witness_acme_air_data:flights(From, To, There)
            | [witness_acme_air_data:flights(To, From, Back) || OneWay =:= ~"false"]],
    json(#{~"tripFlights" => [#{~"numPages" => 1, ~"flightsOptions" => Flights, ~"currentPage" => 0,
                                ~"hasMoreOptions" => false, ~"pageSize" => 10} || Flights <- Ways],
           ~"tripLegs" => length(Ways)});
route("POST", ["bookings", "bookflights"], Read) ->
    #{~"userid" := User, ~"toFlightId" := To, ~"retFlightId" := Return, ~"oneWayFlight" := OneWay} =
        form(Read, [~"userid", ~"toFlightId", ~"retFlightId", ~"oneWayFlight"]),
    ok = allowed(User, Read),
    case witness_acme_air_data:book(User, [To | [Return || OneWay =/= ~"true"]], erlang:system_time(second)) of
        {ok, [One]} -> json(#{~"oneWay" => true, ~"departBookingId" => One});
        {ok, [One, Other]} -> json(#{~"oneWay" => false, ~"departBookingId" => One, ~"returnBookingId" => Other});
        not_found -> text(404, "no such flight")
    end;
route("GET", ["bookings", "byuser", User], Read) ->
    ok = allowed(list_to_binary(User), Read),
    json(witness_acme_air_data:bookings(list_to_binary(User)));
route("POST", ["bookings", "cancelbooking"], Read) ->
    #{~"number" := Number, ~"userid" := User} = form(Read, [~"number", ~"userid"]),
    ok = allowed(User, Read),
    case witness_acme_air_data:cancel(User, Number) of
        ok -> json(#{~"status" => ~"success"});
        not_found -> text(404, "no such booking")
    end;
route("GET", ["customer", "byid", User], Read) ->
    ok = allowed(list_to_binary(User), Read),
    case witness_acme_air_data:customer(list_to_binary(User)) of
        {ok, Customer} -> json(Customer);
        not_found -> text(404, "no such customer")
    end;
route("POST", ["customer", "byid", User], Read) ->
    ok = allowed(list_to_binary(User), Read),
    case witness_acme_air_data:update_customer(list_to_binary(User), update(Read)) of
        {ok, Customer} -> json(Customer);
        denied -> text(403, "another password")
    end;
route("GET", ["config", "runtime"], _) ->
    json([#{~"name" => ~"Runtime", ~"description" => ~"Erlang/OTP"},
          #{~"name" => ~"Version", ~"description" => list_to_binary(erlang:system_info(otp_release))}]);
route("GET", ["config", "activeDataService"], _) -> text(200, "mnesia");
route("GET", ["config", "dataServices"], _) ->
    json([#{~"name" => ~"mnesia", ~"description" => ~"Mnesia, in memory"}]);
route("GET", ["config", Count], _) -> json(#{~"count" => witness_acme_air_data:count(counted(Count))});
route("GET", ["loader", "query"], _) ->
    text(200, integer_to_list(witness_acme_air_data:count(customer)));
route("GET", ["loader", "bookings"], _) -> text(200, witness_acme_air_data:listing());
route(_, _, _) -> throw({status, 404, "no such page"}).

counted("countCustomers") -> customer;
counted("countAirports") -> airport;
counted("countFlightSegments") -> segment;
counted("countFlights") -> flight;
counted("countBookings") -> booking;
counted("countSessions") -> session;
counted(_) -> throw({status, 404, "no such page"}).

%% A user sees and changes only its own data.
allowed(User, Read) ->
    case witness_acme_air_data:session(session_id(Read)) of
        {ok, User} -> ok;
        _ -> throw({status, 403, "no valid session"})
    end.

session_id(Read) ->
    Cookies = case Read({header, "cookie"}) of undefined -> ""; Text -> Text end,
    case [Id || Cookie <- string:lexemes(Cookies, "; "), "sessionid=" ++ Id <- [Cookie]] of
        [Id | _] -> list_to_binary(Id);
        [] -> ~""
    end.

form(Read, Names) ->
    case uri_string:dissect_query(list_to_binary(Read(body))) of
        {error, _, _} -> throw({status, 400, "the form cannot be read"});
        Pairs ->
            Form = #{Name => Value || {Name, Value} <- Pairs, is_binary(Value)},
            [] =:= Names -- maps:keys(Form) orelse throw({status, 400, "something is missing in the form"}),
            Form
    end.

update(Read) ->
    try json:decode(list_to_binary(Read(body))) of
        #{~"password" := _, ~"address" := #{}, ~"phoneNumber" := _, ~"phoneNumberType" := _} = Update -> Update;
        _ -> throw({status, 400, "something is missing in the profile"})
    catch error:_ -> throw({status, 400, "the profile cannot be read"})
    end.

json(Term) -> {200, [{content_type, "application/json"}], json:encode(Term)}.

text(Status, Text) -> {Status, [{content_type, "text/plain"}], Text}.
