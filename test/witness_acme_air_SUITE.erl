-module(witness_acme_air_SUITE).
-moduledoc """
Acme-Air (`m:witness_acme_air`), a service with a database, under a few clients: they find what is wrong with it, and
a recorded run is replayed without them, to the same bookings.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [a_recorded_run_replays_to_the_same_bookings, planted_faults_are_found].

init_per_suite(Config) ->
    Work = filename:join(proplists:get_value(priv_dir, Config), "acme_air"),
    Programs = filename:join(Work, "programs"),
    ok = witness_acme_air_service:programs(Programs),
    %% So many days that there are flights back too.
    [{service, #{work => Work, programs => Programs, customers => 20, days => 9, today => {2026, 11, 22}}} | Config].

end_per_suite(_) -> ok.

a_recorded_run_replays_to_the_same_bookings(Config) ->
    #{work := Work} = Options = proplists:get_value(service, Config),
    Dir = filename:join(Work, "recording"),
    Service = witness_acme_air_service:start({recorded, Dir}, "recorded", Options),
    {Answered, Known} = used(Service, Options),
    %% Bookings were made and cancelled.
    [?assertMatch(#{Kind := _}, Answered)
     || Kind <- [login, view_profile, update_profile, query_flights, book_flight, list_bookings, cancel_booking,
                 logout]],
    {Listing, _} = witness_acme_air_service:stop(Service),
    ?assertEqual(Known, Listing),
    ?assertNotEqual(~"", Listing),
    {Report, Printed} = witness_acme_air_service:replay(Dir, fun(_) -> ok end),
    ?assertMatch(#{outcome := identical, complete := true, changed := []}, Report),
    ?assertEqual(Listing, Printed).

%% Each is another service, which the clients do not get along with.
planted_faults_are_found(Config) ->
    %% What is expected here is nothing to be told of.
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    try ?assertEqual([], [Find || {Module, Find, Replace} <- faults(), not found(Module, Find, Replace, Config)])
    after logger:set_primary_config(level, Level)
    end.

faults() ->
    [{witness_acme_air_data, "mnesia:delete({booking, Id})", "ok"},
     {witness_acme_air_data, "[ok = mnesia:write(Booking) || Booking <- Bookings]", "ok = mnesia:write(hd(Bookings))"},
     {witness_acme_air_data, "ok = mnesia:write(Changed)", "ok"},
     {witness_acme_air_data, "{Id, Day}, #flight.on", "{Id, ~\"2026-11-22\"}, #flight.on"},
     {witness_acme_air_data, "mnesia:delete({session, Id})", "ok"},
     {witness_acme_air_routes, "_ -> throw({status, 403, \"no valid session\"})", "_ -> ok"}].

found(Module, Find, Replace, Config) ->
    #{programs := Programs} = Options = proplists:get_value(service, Config),
    Faulty = Programs ++ "_faulty",
    ok = witness_acme_air_service:programs(Faulty),
    {ok, Source} = file:read_file(proplists:get_value(source, Module:module_info(compile))),
    [Before, After] = string:split(Source, Find, all),
    File = filename:join(Faulty, atom_to_list(Module) ++ ".erl"),
    ok = file:write_file(File, [Before, Replace, After]),
    {ok, Module} = compile:file(File, [{outdir, Faulty}]),
    {_, Ref} = spawn_monitor(fun() ->
        Service = witness_acme_air_service:start(plain, "faulty", Options#{programs := Faulty}),
        {_, Known} = used(Service, Options),
        {Known, _} = witness_acme_air_service:stop(Service)
    end),
    receive {'DOWN', Ref, process, _, Reason} -> Reason =/= normal end.

%% How many requests of each kind there were, and which bookings there should be.
used(Service, Options) ->
    Port = witness_acme_air_service:port(Service),
    ?assertEqual(#{denied => 12, wrong => []}, witness_acme_air_client:probe(Port)),
    Loaded = maps:with([days, today], Options),
    Clients = witness_acme_air_client:start(Loaded#{port => Port, threads => 2, users => 4, seed => 1}),
    Samples = witness_acme_air_client:rounds(Clients, 12),
    {maps:groups_from_list(fun({Kind, _}) -> Kind end, Samples), witness_acme_air_client:finish(Clients)}.
