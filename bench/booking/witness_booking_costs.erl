-module(witness_booking_costs).
-moduledoc """
A recording of a service under load, of any length, is replayed to its end: `main([Work, Examples, Seconds, Rate])`,
as for `bench/booking/run`.

The booking service of `examples/http_service` (`m:witness_booking`) is recorded while clients outside ask it for
seats (`m:witness_booking_client`). Then it is replayed without them: every process has to do what it did. What
the service prints at the end, all that it has sold, has to be what the clients were answered.
""".

-export([main/1]).

-spec main([string()]) -> no_return().
main([Work, Examples, Seconds, Rate]) ->
    {ok, _} = application:ensure_all_started(witness),
    Programs = filename:join(Work, "programs"),
    ok = programs(Programs, Examples),
    Dir = filename:join(Work, "recording"),
    {Known, Summary, Took} = recorded(Dir, Programs, list_to_integer(Seconds), list_to_integer(Rate)),
    #{files := Files, born := Born} = Summary,
    io:format("recorded for ~.1f s: ~s requests a second, ~b processes, ~b receipts, ~.2f MB (~.2f uncompressed)~n",
              [Took, Rate, Born, length(binary:matches(Known, ~"\n")), megabytes(bytes, Files), megabytes(raw, Files)]),
    {Report, Printed, Replayed, Kilobytes} = replayed(Dir),
    #{outcome := identical, complete := true, processes := Born, entries := Entries} = Report,
    Known = Printed,
    io:format("replayed in ~.1f s: ~b entries, identical, and so is what was sold; at most ~.1f MB~n",
              [Replayed, Entries, Kilobytes / 1024]),
    ok = file:del_dir_r(Work),
    halt(0).

megabytes(Size, Files) -> lists:sum([Bytes || _ := #{Size := Bytes} <- Files]) / 1.0e6.

programs(Programs, Examples) ->
    ok = filelib:ensure_path(Programs),
    Sources = filelib:wildcard(filename:join(Examples, "*.erl")),
    _ = [{ok, _} = compile:file(Source, [debug_info, {outdir, Programs}]) || Source <- Sources],
    {ok, _} = file:copy(code:which(witness_booking), filename:join(Programs, "witness_booking.beam")),
    ok.

%% What the clients know at the end, and how many seconds it took.
recorded(Dir, Programs, Seconds, Rate) ->
    Sold = Dir ++ ".sold",
    {ok, Listening} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, {active, false}]),
    {ok, Ready} = inet:port(Listening),
    {ok, Recording} = witness_record:start(#{run => {witness_booking, main, [Ready, Sold]}, dir => Dir,
                                             pa => [Programs], applications => [inets]}),
    %% Modules that are not in the cache are woven before.
    {ok, Socket} = gen_tcp:accept(Listening, 600_000),
    {ok, Port} = gen_tcp:recv(Socket, 0),
    Begin = erlang:monotonic_time(millisecond),
    Known = witness_booking_client:await(witness_booking_client:start(list_to_integer(Port), Rate, Seconds)),
    Took = (erlang:monotonic_time(millisecond) - Begin) / 1000,
    ok = gen_tcp:close(Socket),
    {ok, Summary} = witness_record:await(Recording, infinity),
    #{outcome := recorded, ended := {returned, normal}, unwoven := []} = Summary,
    {ok, Known} = file:read_file(Sold),
    {Known, Summary, Took}.

replayed(Dir) ->
    Looking = witness_replay_memory:look(),
    Begin = erlang:monotonic_time(millisecond),
    {Report, Printed} = witness_acme_air_service:replay(Dir, fun(_) -> ok end),
    Took = (erlang:monotonic_time(millisecond) - Begin) / 1000,
    {Report, Printed, Took, witness_replay_memory:most(Looking)}.
