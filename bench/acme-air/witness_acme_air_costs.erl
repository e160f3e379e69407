-module(witness_acme_air_costs).
-moduledoc """
What recording costs the clients of Acme-Air: `main([Work, Pairs, Rounds, Seconds])`, as for `bench/acme-air/run`.

**Latency.** A pair is two VMs that serve at the same time, one of them recorded. Two client threads do their plan
(`m:witness_acme_air_client`) in rounds, on one and on the other in turn, and send the same requests to both. So other work of the
machine disturbs both. The table has for each kind of request its share, and the medians and the 99th percentiles of all
rounds in milliseconds. It also has by how many per cent the median of a round is larger when it is recorded: the geometric
mean over all rounds, with its 95 % interval. It is *resolved* if that interval is above or below the goal (1 %).

**Size.** Then a service is recorded for so many seconds at full load, with the bytes that it writes before compression:
*ordering* (`order` and `processes`) and *external data* (`data`: requests as far as they are read, and the results of
calls, of which most are those of Mnesia's tables). The recording is replayed, without network, and the listing of all
bookings has to be the same. Figures of *the text* are those of its own service, for SOMns, under JMeter.
""".

-export([main/1]).

-define(ITERATIONS, 25).
-define(WARM_UP, 200).
-define(GOAL, 1.0).
-define(SERVICE, #{customers => 10_000, days => 5}).
-define(CLIENTS, #{threads => 2, users => 200}).

-spec main([string()]) -> no_return().
main([Work, Pairs, Rounds, Seconds]) ->
    Programs = filename:join(Work, "programs"),
    ok = witness_acme_air_service:programs(Programs),
    Options = maps:merge(?SERVICE, #{work => Work, programs => Programs, today => date()}),
    io:format("OTP ~s, 2 client threads, ~s pair(s) of VMs, ~s rounds of ~b iterations each, after ~b to warm up~n",
              [erlang:system_info(otp_release), Pairs, Rounds, ?ITERATIONS, ?WARM_UP]),
    All = [pair(I, list_to_integer(Rounds), Options) || I <- lists:seq(1, list_to_integer(Pairs))],
    latencies(lists:append(All)),
    recording(list_to_integer(Seconds), Options),
    ok = file:del_dir_r(Work),
    halt(0).

%% --- latency ----------------------------------------------------------------------------

%% The samples of each round: {Plain, Recorded}, both by kind.
pair(I, Rounds, #{work := Work} = Options) ->
    Dir = filename:join(Work, "pair"),
    Services = [witness_acme_air_service:start(How, Name, Options)
                || {How, Name} <- [{plain, "plain"}, {{recorded, Dir}, "recorded"}]],
    [Plain, Recorded] = Clients = [clients(Service, I, Options) || Service <- Services],
    _ = [witness_acme_air_client:rounds(Threads, ?WARM_UP) || Threads <- Clients],
    Samples = [in_turn(N, Plain, Recorded) || N <- lists:seq(1, Rounds)],
    [_, _] = [ended(Service, Threads) || {Service, Threads} <- lists:zip(Services, Clients)],
    ok = file:del_dir_r(Dir),
    io:format(standard_error, "pair ~b: done~n", [I]),
    Samples.

in_turn(N, Plain, Recorded) when N rem 2 =:= 0 ->
    A = round_of(Plain),
    {A, round_of(Recorded)};
in_turn(_, Plain, Recorded) ->
    B = round_of(Recorded),
    {round_of(Plain), B}.

round_of(Threads) -> by_kind(witness_acme_air_client:rounds(Threads, ?ITERATIONS)).

by_kind(Samples) -> maps:groups_from_list(fun({Kind, _}) -> Kind end, fun({_, Time}) -> Time end, Samples).

clients(Service, Seed, Options) ->
    Port = witness_acme_air_service:port(Service),
    #{wrong := []} = witness_acme_air_client:probe(Port),
    Loaded = maps:with([today, days], Options),
    witness_acme_air_client:start(maps:merge(?CLIENTS, Loaded#{port => Port, seed => Seed})).

%% What the clients know must be what the service has.
ended(Service, Threads) ->
    Known = witness_acme_air_client:finish(Threads),
    {Known, Summary} = witness_acme_air_service:stop(Service),
    {Known, Summary}.

latencies(Rounds) ->
    io:format("~n~-16s ~7s ~9s ~9s ~9s ~9s  ~s~n",
              ["", "share", "plain ms", "recorded", "99th", "recorded", "median, recorded over plain, in per cent"]),
    {Plain, Recorded} = lists:unzip(Rounds),
    Requests = lists:sum([length(Times) || Round <- Recorded, _ := Times <- Round]),
    Overheads = [kind(Kind, Requests, Plain, Recorded, Rounds)
                 || {_, Kind} <- lists:reverse(lists:sort([{count(Kind, Recorded), Kind} || Kind <- kinds(Recorded)]))],
    Mean = lists:sum(Overheads) / length(Overheads),
    io:format("geometric mean of ~b kinds: ~s % (the text: at most +1 for each, geometric mean -1, least -3)~n",
              [length(Overheads), signed(per_cent(Mean))]).

kinds(Rounds) -> lists:usort([Kind || Round <- Rounds, Kind := _ <- Round]).

count(Kind, Rounds) -> length(all(Kind, Rounds)).

all(Kind, Rounds) -> lists:append([maps:get(Kind, Round, []) || Round <- Rounds]).

kind(Kind, Requests, Plain, Recorded, Rounds) ->
    [A, B] = [all(Kind, Side) || Side <- [Plain, Recorded]],
    Logs = [math:log(witness_bench_statistics:median(Y) / witness_bench_statistics:median(X))
            || {#{Kind := X}, #{Kind := Y}} <- Rounds],
    {Low, High} = case Logs of
        [_, _ | _] -> witness_bench_statistics:t_interval(Logs, 0.95);
        _ -> {hd(Logs), hd(Logs)}
    end,
    Mean = lists:sum(Logs) / length(Logs),
    io:format("~-16w ~5.1f % ~9.3f ~9.3f ~9.3f ~9.3f  ~s (~s to ~s)~s~n",
              [Kind, 100 * length(B) / Requests, quantile(0.5, A), quantile(0.5, B), quantile(0.99, A),
               quantile(0.99, B), signed(per_cent(Mean)), signed(per_cent(Low)), signed(per_cent(High)),
               resolved(per_cent(Low), per_cent(High))]),
    Mean.

quantile(P, Times) -> witness_bench_statistics:quantile(P, Times) / 1.0e6.

per_cent(Log) -> 100 * (math:exp(Log) - 1).

signed(Number) -> io_lib:format("~s~.1f", [if Number < 0 -> ""; true -> "+" end, Number]).

resolved(_, High) when High =< ?GOAL -> "";
resolved(Low, _) when Low > ?GOAL -> "  more than 1";
resolved(_, _) -> "  not resolved".

%% --- size, and replay ---------------------------------------------------------------------

recording(Seconds, #{work := Work} = Options) ->
    Dir = filename:join(Work, "recording"),
    Service = witness_acme_air_service:start({recorded, Dir}, "service", Options),
    Threads = clients(Service, 0, Options),
    Begin = erlang:monotonic_time(millisecond),
    Counts = until(Begin + Seconds * 1000, Threads, #{}),
    Took = (erlang:monotonic_time(millisecond) - Begin) / 1000,
    {Listing, #{files := Files, born := Born}} = ended(Service, Threads),
    Requests = lists:sum(maps:values(Counts)),
    io:format("~nrecorded for ~.1f s: ~b requests, ~b processes, ~b bookings in the end~n",
              [Took, Requests, Born, length(binary:matches(Listing, ~"\n"))]),
    sizes(Took, Files),
    io:format("the text         1.40 MB/s    993.0 MB: ordering 121.0 (12 %), external data 872.0 (88 %)~n"
              "query_flights ~.1f % of the requests (the text: 46.7)~n",
              [100 * maps:get(query_flights, Counts) / Requests]),
    Replaying = erlang:monotonic_time(millisecond),
    {Report, Printed} = witness_acme_air_service:replay(Dir, fun(_) -> ok end),
    Replayed = (erlang:monotonic_time(millisecond) - Replaying) / 1000,
    #{outcome := identical, complete := true, entries := Entries} = Report,
    Listing = Printed,
    io:format("replayed in ~.1f s: ~b entries, identical, and so is the listing (~s)~n",
              [Replayed, Entries, binary:encode_hex(erlang:md5(Listing), lowercase)]).

sizes(Took, Files) ->
    [begin
         [Order, Data, Processes] = [maps:get(Size, maps:get(File, Files)) / 1.0e6 || File <- [order, data, processes]],
         All = Order + Data + Processes,
         io:format("~-16s ~.2f MB/s  ~7.1f MB: ordering ~.1f (~b %), external data ~.1f (~b %)~n",
                   [What, All / Took, All, Order + Processes, round(100 * (Order + Processes) / All), Data,
                    round(100 * Data / All)])
     end || {What, Size} <- [{"uncompressed", raw}, {"as files", bytes}]],
    ok.

until(End, Threads, Counts) ->
    More = lists:foldl(fun({Kind, _}, C) -> maps:update_with(Kind, fun(N) -> N + 1 end, 1, C) end, Counts,
                       witness_acme_air_client:rounds(Threads, ?ITERATIONS)),
    case erlang:monotonic_time(millisecond) >= End of
        true -> More;
        false -> until(End, Threads, More)
    end.
