-module(witness_bench_collector_tests).
-moduledoc "Samples of a node: their contents, when they end, and that the collector and the probe do not wait for each other.".
-include_lib("eunit/include/eunit.hrl").

-define(EVENT, 30_000).

rows_have_what_was_measured_test_() -> {timeout, 120, fun rows_have_what_was_measured/0}.

rows_have_what_was_measured() ->
    File = file(),
    M = witness_bench_response:new(#{}),
    {ok, C} = collector(M, File),
    Before = erlang:memory(total),
    ok = witness_bench_collector:start_windows(C),
    lists:foreach(fun(_) -> ok = witness_bench_response:count_created(M) end, lists:seq(1, 3)),
    ok = witness_bench_response:messages(M, 40),
    Self = self(),
    {Holder, Held} = spawn_monitor(fun() -> Large = binary:copy(<<1>>, 50_000_000), Self ! holds, receive {go, _} -> Large end end),
    receive holds -> ok after ?EVENT -> error(not_held) end,
    ok = witness_bench_collector:probe(fun() -> Self ! asked, #{events => 17, tracers => 5, gaps => 2} end, C),
    %% When the probe is asked for the second time, its first answer is recorded.
    [receive asked -> ok after ?EVENT -> error(not_asked) end || _ <- [1, 2]],
    %% A sample has seen it; in the last one it is gone.
    Holder ! {go, now},
    receive {'DOWN', Held, process, Holder, normal} -> ok after ?EVENT -> error(held) end,
    ok = witness_bench_response:count_ended(M),
    ok = witness_bench_collector:mark(system, C),
    ok = witness_bench_response:count_ended(M),
    ok = witness_bench_collector:set_final(#{events => 23, gaps => 3}, C),
    ok = witness_bench_collector:mark(monitors, C),
    {ok, #{system := System, monitors := Monitors}} = witness_bench_collector:stop(C),
    ?assertMatch(#{members_peak := 3, tracers_peak := 5}, System),
    #{duration_ms := D1, messages_per_second := PerSecond, memory_peak := Peak, memory_mean := Mean} = System,
    #{duration_ms := D2} = Monitors,
    ?assert(D2 > D1),
    ?assert(abs(PerSecond * D1 / 1000 - 40) < 0.01),
    ?assert(Peak >= Before + 40_000_000),
    ?assert(Mean < Peak),
    [Header | Rows] = rows(File),
    ?assertEqual([~"time_ms", ~"window", ~"memory", ~"utilisation", ~"run_queue", ~"members", ~"tracers", ~"events",
                  ~"gaps", ~"messages", ~"messages_per_s"], lists:sublist(Header, 11)),
    ?assertEqual(11 + erlang:system_info(schedulers_online), length(Header)),
    [?assertEqual(length(Header), length(Row)) || Row <- Rows],
    ?assert(length(Rows) >= 3),
    Named = [maps:from_list(lists:zip(Header, Row)) || Row <- Rows],
    %% Those of the two marks are the last ones of their windows.
    {Alive, After} = lists:splitwith(fun(#{~"window" := Window}) -> Window =:= ~"system" end, Named),
    ?assertMatch(#{~"members" := ~"2", ~"tracers" := ~"5", ~"events" := ~"17", ~"gaps" := ~"2", ~"messages" := ~"40"},
                 lists:last(Alive)),
    ?assertMatch(#{~"window" := ~"monitors", ~"members" := ~"1", ~"events" := ~"23", ~"gaps" := ~"3"}, lists:last(After)),
    Times = [binary_to_float(T) || #{~"time_ms" := T} <- Named],
    ?assertEqual(Times, lists:usort(Times)),
    ?assertEqual(0.0, hd(Times)),
    %% The mean over the time, from the rows.
    Memories = [{binary_to_float(T), binary_to_integer(Bytes)} || #{~"time_ms" := T, ~"memory" := Bytes} <- Alive],
    Area = lists:sum([(T1 - T0) * (M0 + M1) / 2 || {{T0, M0}, {T1, M1}} <- lists:zip(lists:droplast(Memories), tl(Memories))]),
    ?assert(abs(Area / element(1, lists:last(Memories)) - Mean) < 0.01 * Mean).

%% However late a sample is, and however soon the next is due.
samples_are_half_an_interval_apart_test_() ->
    {timeout, 60, fun() ->
        File = file(),
        M = witness_bench_response:new(#{}),
        {ok, C} = witness_bench_collector:start_link(#{measures => M, interval => 4, file => File}),
        ok = witness_bench_collector:start_windows(C),
        Self = self(),
        ok = witness_bench_collector:probe(fun() -> Self ! asked, #{events => 0, tracers => 0, gaps => 0} end, C),
        %% Held up for a part of an interval or for more than one; what comes after a late sample is not.
        [begin
             [receive asked -> ok after ?EVENT -> error(not_asked) end || _ <- [1, 2]],
             true = erlang:suspend_process(C),
             ok = computing(microsecond, erlang:monotonic_time(microsecond) + N * 200),
             true = erlang:resume_process(C)
         end || N <- lists:seq(1, 40)],
        ok = witness_bench_collector:mark(system, C),
        {ok, _} = witness_bench_collector:stop(C),
        %% All were planned but the one of the mark, the last one of its window; more may come before the collector is stopped.
        Planned = lists:droplast([binary_to_float(Time) || [Time, ~"system" | _] <- rows(File)]),
        %% A clock that stands still for a moment has no sample twice.
        ?assert(length(Planned) > 25),
        %% Rows are rounded to a thousandth.
        [?assert(T1 - T0 > 1.9985, {T0, T1}) || {T0, T1} <- lists:zip(lists:droplast(Planned), tl(Planned))]
    end}.

%% A process that computes all the time keeps one scheduler busy, and not the others.
utilisation_is_that_of_the_schedulers_test_() ->
    {timeout, 60, fun() ->
        M = witness_bench_response:new(#{}),
        {ok, C} = collector(M, none),
        Self = self(),
        %% It does so before the window begins and until it has ended, however late the collector runs.
        Busy = spawn_link(fun() -> Self ! computing, computing() end),
        receive computing -> ok after ?EVENT -> error(not_computing) end,
        ok = witness_bench_collector:start_windows(C),
        receive after 300 -> ok end,
        ok = witness_bench_collector:mark(system, C),
        unlink(Busy),
        exit(Busy, kill),
        {ok, #{system := #{utilisation := All, utilisations := Each}}} = witness_bench_collector:stop(C),
        ?assertEqual(erlang:system_info(schedulers_online), length(Each)),
        ?assert(abs(All - lists:sum(Each) / length(Each)) < 1.0e-6),
        %% The time that the scheduler has, not the processor: on a machine with other work it is the same.
        ?assert(lists:sum(Each) > 90),
        [?assert(U >= 0 andalso U =< 100) || U <- Each]
    end}.

computing() -> computing().

computing(Unit, Until) ->
    case erlang:monotonic_time(Unit) of
        Now when Now < Until -> computing(Unit, Until);
        _ -> ok
    end.

a_probe_that_does_not_answer_holds_up_no_process_test() ->
    M = witness_bench_response:new(#{}),
    {ok, C} = collector(M, none),
    Self = self(),
    ok = witness_bench_collector:start_windows(C),
    ok = witness_bench_collector:probe(fun() -> Self ! {asked, self()}, receive never -> ok end end, C),
    Asker = receive {asked, Pid} -> Pid after ?EVENT -> error(not_asked) end,
    Ref = monitor(process, Asker),
    %% Some more samples.
    receive after 30 -> ok end,
    ?assertEqual({message_queue_len, 0}, process_info(Asker, message_queue_len)),
    ok = witness_bench_collector:mark(system, C),
    {ok, #{system := #{tracers_peak := 0}}} = witness_bench_collector:stop(C),
    %% It is not left behind.
    receive {'DOWN', Ref, process, Asker, killed} -> ok after ?EVENT -> error(left) end.

a_probe_that_fails_is_asked_again_test() ->
    M = witness_bench_response:new(#{}),
    {ok, C} = collector(M, none),
    Self = self(),
    ok = witness_bench_collector:start_windows(C),
    ok = witness_bench_collector:probe(fun() -> Self ! asked, error(ended) end, C),
    [receive asked -> ok after ?EVENT -> error(not_asked) end || _ <- [1, 2]],
    {ok, #{}} = witness_bench_collector:stop(C).

a_file_that_cannot_be_written_is_an_error_test() ->
    M = witness_bench_response:new(#{}),
    ?assertEqual({error, {samples, enoent}}, collector(M, filename:join(file(), "none"))).

%% Where there is a device that is always full.
what_was_not_written_is_told_test() ->
    case filelib:is_regular("/dev/full") orelse filelib:is_file("/dev/full") of
        true ->
            {ok, C} = collector(witness_bench_response:new(#{}), "/dev/full"),
            ok = witness_bench_collector:start_windows(C),
            ok = witness_bench_collector:mark(system, C),
            ?assertEqual({error, {samples, enospc}}, witness_bench_collector:stop(C));
        false -> ok
    end.

nothing_is_left_test() ->
    Before = processes(),
    File = file(),
    {ok, C} = collector(witness_bench_response:new(#{}), File),
    New = processes() -- Before,
    ?assert(lists:member(C, New)),
    ?assertEqual({priority, high}, process_info(C, priority)),
    Refs = [monitor(process, P) || P <- New],
    {ok, #{}} = witness_bench_collector:stop(C),
    [receive {'DOWN', Ref, process, _, _} -> ok after ?EVENT -> error(left) end || Ref <- Refs],
    ok = file:delete(File).

collector(Measures, File) ->
    witness_bench_collector:start_link(#{measures => Measures, interval => 5, file => File}).

file() ->
    filename:join(os:getenv("TMPDIR", "/tmp"),
                  io_lib:format("~s-~s-~w.csv", [?MODULE, os:getpid(), erlang:unique_integer([positive])])).

rows(File) ->
    {ok, Text} = file:read_file(File),
    ok = file:delete(File),
    [binary:split(Line, ~",", [global]) || Line <- binary:split(Text, ~"\n", [global]), Line =/= ~""].
