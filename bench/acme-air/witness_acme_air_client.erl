-module(witness_acme_air_client).
-moduledoc """
The load plan of Acme-Air (`AcmeAir.jmx`): threads that log in, query flights, book, list, cancel and log out, one
request after the other, and check every answer against what they know. Each user belongs to one thread, so that a thread
knows all bookings of its users. The same seed gives the same requests.
""".

-export([start/1, rounds/2, finish/1, probe/1]).

-export_type([options/0, kind/0, sample/0]).

-doc """
- `port`: that of the service;
- `threads`; `users`: how many of the loaded users they have;
- `today`, `days`: what was loaded (`t:witness_acme_air:options/0`);
- `seed`: of the random choices.
""".
-type options() :: #{port := inet:port_number(), threads := pos_integer(), users := pos_integer(),
                     today := calendar:date(), days := pos_integer(), seed := integer()}.

-type kind() :: login | view_profile | update_profile | query_flights | book_flight | list_bookings | cancel_booking
              | logout.

-doc "Nanoseconds of a request.".
-type sample() :: {kind(), pos_integer()}.

-record(client, {options, socket, rand, user, cookie = ~"", samples = [], phones = #{},
                 %% User => #{Number => Flight}
                 bookings = #{}}).

-define(API, "/rest/api/").

-doc "Threads, connected to the service. They are linked: if an answer is wrong, the caller ends.".
-spec start(options()) -> [pid(), ...].
start(#{threads := Threads, port := Port, seed := Seed} = Options) ->
    [spawn_link(fun() ->
         loop(#client{options = Options#{thread => T}, socket = witness_acme_air_http:connect(Port),
                      rand = rand:seed_s(exsss, {Seed, T, 0})})
     end) || T <- lists:seq(0, Threads - 1)].

-doc "Each thread does so many iterations of the plan. Returns the samples of all of them, in no order.".
-spec rounds([pid()], non_neg_integer()) -> [sample()].
rounds(Threads, N) ->
    Asked = [{Thread, make_ref()} || Thread <- Threads],
    [Thread ! {Ref, self(), N} || {Thread, Ref} <- Asked],
    lists:append([receive {Ref, Samples} -> Samples end || {_, Ref} <- Asked]).

-doc "Closes the connections, and returns all expected bookings, as the service lists them.".
-spec finish([pid()]) -> binary().
finish(Threads) ->
    Known = [begin
                 Ref = monitor(process, Thread),
                 unlink(Thread),
                 Thread ! finish,
                 receive {'DOWN', Ref, process, _, {known, Bookings}} -> Bookings end
             end || Thread <- Threads],
    iolist_to_binary([[User, " ", Number, " ", Flight, "\n"]
                      || {User, Number, Flight} <- lists:sort([{U, N, F} || Bookings <- Known, U := Of <- Bookings,
                                                                            N := F <- Of])]).

loop(#client{samples = []} = C) ->
    receive
        {Ref, From, N} ->
            Done = lists:foldl(fun(_, C1) -> iteration(C1) end, C, lists:seq(1, N)),
            From ! {Ref, Done#client.samples},
            loop(Done#client{samples = []});
        finish ->
            ok = witness_acme_air_http:close(C#client.socket),
            exit({known, C#client.bookings})
    end.

%% --- the plan ---------------------------------------------------------------------------

iteration(C0) ->
    C1 = login(C0),
    C2 = sometimes(C1, fun profile/1),
    {C3, Available} = lists:foldl(fun(_, {C, _}) -> query_flights(C) end, {C2, none}, lists:seq(1, 5)),
    C4 = book(C3, Available),
    C5 = list(C4),
    C6 = sometimes(C5, fun cancel/1),
    logout(C6).

login(#client{options = #{threads := Threads, thread := T, users := Users}} = C0) ->
    {N, C1} = uniform((Users - T + Threads - 1) div Threads, C0),
    User = <<"uid", (integer_to_binary((N - 1) * Threads + T))/binary, "@email.com">>,
    Form = witness_acme_air_http:form([{~"login", User}, {~"password", ~"password"}]),
    {{200, #{~"set-cookie" := <<"sessionid=", Set/binary>>}, ~"logged in"}, C2} =
        asked(login, Form, "login", C1#client{user = User, cookie = ~""}),
    [Cookie, _] = binary:split(Set, ~";"),
    C2#client{cookie = Cookie}.

logout(C0) ->
    {{200, _, ~"logged out"}, C1} = asked(logout, get, "login/logout", C0),
    C1#client{user = undefined}.

profile(#client{user = User, phones = Phones} = C0) ->
    Path = ["customer/byid/", User],
    Phone = maps:get(User, Phones, ~"919-123-4567"),
    {Profile, C1} = json(view_profile, get, Path, C0),
    #{~"_id" := User, ~"phoneNumber" := Phone, ~"address" := Address} = Profile,
    {N, C2} = uniform(10_000_000, C1),
    New = integer_to_binary(N),
    Update = Profile#{~"password" => ~"password", ~"phoneNumber" := New},
    {#{~"_id" := User, ~"phoneNumber" := New, ~"address" := Address}, C3} =
        json(update_profile, {post, ~"application/json", json:encode(Update)}, Path, C2),
    C3#client{phones = Phones#{User => New}}.

%% The flights there and back that a customer could take.
query_flights(#client{options = #{today := Today, days := Days}} = C0) ->
    Airports = witness_acme_air_data:airports(),
    {I, C1} = uniform(length(Airports), C0),
    {J, C2} = uniform(length(Airports) - 1, C1),
    {{From, _}, Others} = {lists:nth(I, Airports), lists:delete(lists:nth(I, Airports), Airports)},
    {To, _} = lists:nth(J, Others),
    {There, C3} = uniform(6, C2),
    {Back, C4} = uniform(7, C3),
    [Out, Return] = [witness_acme_air_data:day(Today, Later) || Later <- [There - 1, Back + 5]],
    {#{~"tripFlights" := Ways}, C5} =
        json(query_flights, witness_acme_air_http:form([{~"fromAirport", From}, {~"toAirport", To}, {~"fromDate", Out},
                                                        {~"returnDate", Return}, {~"oneWay", ~"false"}]),
             "flights/queryflights", C4),
    [#{~"flightsOptions" := Forth}, #{~"flightsOptions" := Home}] = Ways,
    {C5, {found(Forth, {From, To, Out, There - 1 < Days}), found(Home, {To, From, Return, Back + 5 < Days})}}.

found([], {_, _, _, false}) -> none;
found([#{~"_id" := Id, ~"scheduledDepartureTime" := Day,
         ~"flightSegment" := #{~"originPort" := From, ~"destPort" := To}}], {From, To, Day, true}) -> Id.

book(C, {none, _}) -> C;
book(#client{user = User, bookings = Bookings} = C0, {Out, Return}) ->
    OneWay = Return =:= none,
    Form = witness_acme_air_http:form([{~"userid", User}, {~"toFlightId", Out},
                                       {~"oneWayFlight", atom_to_binary(OneWay)},
                                       {~"retFlightId", if OneWay -> ~""; true -> Return end}]),
    {Booked, C1} = json(book_flight, Form, "bookings/bookflights", C0),
    New = case Booked of
        #{~"oneWay" := true, ~"departBookingId" := One} when OneWay -> #{One => Out};
        #{~"oneWay" := false, ~"departBookingId" := One, ~"returnBookingId" := Other} when not OneWay ->
            #{One => Out, Other => Return}
    end,
    C1#client{bookings = Bookings#{User => maps:merge(maps:get(User, Bookings, #{}), New)}}.

list(#client{user = User, bookings = Bookings} = C0) ->
    {Listed, C1} = json(list_bookings, get, ["bookings/byuser/", User], C0),
    Known = maps:get(User, Bookings, #{}),
    Known = #{Number => Flight || #{~"_id" := Number, ~"flightId" := Flight, ~"customerId" := Of} <- Listed,
                                  Of =:= User},
    true = length(Listed) =:= map_size(Known),
    C1.

cancel(#client{user = User, bookings = Bookings} = C) ->
    Known = maps:get(User, Bookings, #{}),
    Numbers = lists:sublist(lists:sort(maps:keys(Known)), max(0, map_size(Known) - 2)),
    C1 = lists:foldl(fun(Number, A0) ->
        Form = witness_acme_air_http:form([{~"number", Number}, {~"userid", User}]),
        {#{~"status" := ~"success"}, A} = json(cancel_booking, Form, "bookings/cancelbooking", A0),
        A
    end, C, Numbers),
    C1#client{bookings = Bookings#{User => maps:without(Numbers, Known)}}.

sometimes(C0, Do) ->
    case uniform(4, C0) of
        {1, C} -> Do(C);
        {_, C} -> C
    end.

uniform(N, #client{rand = Rand} = C) ->
    {I, Rand1} = rand:uniform_s(N, Rand),
    {I, C#client{rand = Rand1}}.

json(Kind, Method, Path, C0) ->
    {{200, #{~"content-type" := ~"application/json"}, Body}, C} = asked(Kind, Method, Path, C0),
    {json:decode(Body), C}.

asked(Kind, Method, Path, #client{socket = Socket, cookie = Cookie, samples = Samples} = C) ->
    {Time, Answer} = witness_acme_air_http:request(Method, {[?API, Path], Cookie}, Socket),
    {Answer, C#client{samples = [{Kind, Time} | Samples]}}.

%% --- what the plan does not ask ---------------------------------------------------------

-doc "Requests that need a session are refused without one, and pages that do not exist are not found.".
-spec probe(inet:port_number()) -> #{denied := non_neg_integer(), wrong := [term()]}.
probe(Port) ->
    Socket = witness_acme_air_http:connect(Port),
    User = ~"uid0@email.com",
    Ask = fun(Method, Path, Cookie) ->
        {_, Answer} = witness_acme_air_http:request(Method, {[?API, Path], Cookie}, Socket),
        Answer
    end,
    Form = fun witness_acme_air_http:form/1,
    Login = fun(Password) -> Ask(Form([{~"login", User}, {~"password", Password}]), "login", ~"") end,
    {200, #{~"set-cookie" := <<"sessionid=", Set/binary>>}, _} = Login(~"password"),
    [Cookie, _] = binary:split(Set, ~";"),
    Guarded = [{get, ["customer/byid/", User]}, {get, ["bookings/byuser/", User]},
               {{post, ~"application/json", ~"{}"}, ["customer/byid/", User]},
               {Form([{~"number", ~"1"}, {~"userid", User}]), "bookings/cancelbooking"},
               {Form([{~"userid", User}, {~"toFlightId", ~"1"}, {~"retFlightId", ~""}, {~"oneWayFlight", ~"true"}]),
                "bookings/bookflights"}],
    Denied = [{403, Method, Path, C} || {Method, Path} <- Guarded, C <- [~"", ~"0123"]],
    Others = [{404, get, "nothing", Cookie}, {404, get, "config/countNothing", Cookie},
              {400, Form([]), "login", Cookie},
              {403, get, "customer/byid/uid1@email.com", Cookie}, {200, get, "config/countCustomers", Cookie},
              {200, get, "config/runtime", Cookie}, {200, get, "loader/query", Cookie},
              {400, {post, ~"application/json", ~"{"}, ["customer/byid/", User], Cookie},
              {404, Form([{~"number", ~"1"}, {~"userid", User}]), "bookings/cancelbooking", Cookie},
              {200, get, "login/logout", Cookie}, {403, get, ["bookings/byuser/", User], Cookie}],
    Answers = [{Expected, Ask(Method, Path, C), Path} || {Expected, Method, Path, C} <- Denied ++ Others],
    {403, _, _} = Login(~"wrong"),
    ok = witness_acme_air_http:close(Socket),
    #{denied => length([403 || {_, {403, _, _}, _} <- Answers]),
      wrong => [Answer || {Expected, {Status, _, _}, _} = Answer <- Answers, Status =/= Expected]}.
