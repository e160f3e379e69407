-module(witness_bench_response_tests).
-moduledoc """
What processes measure of themselves, against what is computed from the same times. Stamps are made here, so that no
test depends on the clock going on.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Many processes at once, each with times of its own; what they have found is merged as they end.
mean_and_percentiles_agree_with_all_times_test_() ->
    {timeout, 60, fun() -> ?assertEqual(true, proper:quickcheck(agrees(), [quiet, {numtests, 50}, {to_file, user}])) end}.

%% A stamp so long ago makes a response of an hour and more, of which what the test takes itself is nothing.
-define(AGO, 3_600_000_000_000).

agrees() ->
    ?FORALL(Processes, non_empty(list(non_empty(list(range(0, ?AGO))))),
            begin
                M = witness_bench_response:new(#{sample => 1.0}),
                in_processes([fun() -> responses(Times, M) end || Times <- Processes]),
                Times = [?AGO + T || T <- lists:append(Processes)],
                N = length(Times),
                Mean = lists:sum(Times) / N,
                Deviation = case N of 1 -> 0.0; _ -> math:sqrt(lists:sum([(T - Mean) * (T - Mean) || T <- Times]) / (N - 1)) end,
                #{response := R, messages := Messages} = witness_bench_response:summary(M),
                #{mean_ns := Told, deviation_ns := ToldDeviation, max := Max, count := Count, unclosed := Unclosed} = R,
                ?WHENFAIL(io:format("~p~n~p~n", [{N, Mean, Deviation}, R]),
                          Count =:= N andalso Unclosed =:= 0 andalso Messages =:= 2 * N
                          andalso near(Mean, Told, 1.0e-4) andalso abs(Deviation - ToldDeviation) < 1.0e-3 * Mean
                          andalso near(lists:max(Times), Max, 1.0e-3)
                          andalso lists:all(fun({Part, Key}) ->
                                                near(lists:nth(ceil(Part * N), lists:sort(Times)), maps:get(Key, R), 0.011)
                                            end, [{0.5, p50}, {0.95, p95}, {0.99, p99}, {0.999, p999}]))
            end).

responses(Times, M) ->
    L = lists:foldl(fun(Time, L0) ->
                        {Stamp, L1} = witness_bench_response:start(L0),
                        witness_bench_response:stop(Stamp - native(?AGO + Time), L1)
                    end, witness_bench_response:open(M), Times),
    witness_bench_response:close(L).

native(Nanoseconds) -> erlang:convert_time_unit(Nanoseconds, nanosecond, native).

near(A, B, Error) -> abs(A - B) =< Error * A.

in_processes(Funs) ->
    Refs = [element(2, spawn_monitor(Fun)) || Fun <- Funs],
    [receive {'DOWN', Ref, process, _, Reason} -> ?assertEqual(normal, Reason) end || Ref <- Refs].

%% The chance that a sound stream is outside is one in ten billions.
one_in_ten_is_looked_at_test() ->
    M = witness_bench_response:new(#{}),
    N = 100_000,
    ok = requests(N, M),
    #{response := #{count := Count}, messages := Messages} = witness_bench_response:summary(M),
    ?assertEqual(2 * N, Messages),
    ?assert(abs(Count - N div 10) < 650).

%% Many processes with one request each: if their streams were the same, all of these requests or none would be sampled.
streams_differ_test() ->
    M = witness_bench_response:new(#{}),
    Processes = 20_000,
    lists:foreach(fun(_) -> ok = requests(1, M) end, lists:seq(1, Processes)),
    #{response := #{count := Count}} = witness_bench_response:summary(M),
    ?assert(abs(Count - Processes div 10) < 300).

requests(N, M) ->
    witness_bench_response:close(requests_left(N, witness_bench_response:open(M))).

requests_left(0, L) -> L;
requests_left(N, L) ->
    {Stamp, L1} = witness_bench_response:start(L),
    requests_left(N - 1, witness_bench_response:stop(Stamp, L1)).

%% The text: the mean of one message in ten is within 1.4 % of the mean of all. The deviation of the response times here is
%% half of their mean, as with a log-normal distribution of this kind. The standard error is then 0.5 % of 90,000 responses,
%% of which 9,000 are in the sample.
the_sample_is_within_the_error_of_the_text_test_() ->
    {timeout, 60, fun() ->
        Times = log_normal(90_000),
        M = witness_bench_response:new(#{}),
        L = lists:foldl(fun(T, L0) ->
                            case witness_bench_response:start(L0) of
                                {undefined, L1} -> witness_bench_response:stop(undefined, L1);
                                {Stamp, L1} -> witness_bench_response:stop(Stamp - native(T), L1)
                            end
                        end, witness_bench_response:open(M), Times),
        ok = witness_bench_response:close(L),
        #{response := #{mean_ns := Mean}} = witness_bench_response:summary(M),
        Exact = lists:sum(Times) / length(Times),
        ?assert(abs(Mean - Exact) < 0.014 * Exact)
    end}.

%% The times are seconds, so that what the test itself takes is negligible.
log_normal(N) ->
    {Times, _} = lists:mapfoldl(fun(_, Random) ->
                                    {X, Next} = rand:normal_s(Random),
                                    {round(1.0e12 * math:exp(0.47 * X)), Next}
                                end, rand:seed_s(exsss, 7), lists:seq(1, N)),
    Times.

a_process_that_ends_without_closing_is_reported_test() ->
    M = witness_bench_response:new(#{sample => 1.0}),
    in_processes([fun() -> ok = requests(3, M) end, fun() -> _ = requests_left(2, witness_bench_response:open(M)) end]),
    ?assertMatch(#{response := #{count := 5, unclosed := 2}, messages := 6}, witness_bench_response:summary(M)).

%% If a process is preempted between reading the row and replacing it, another process may have replaced the row.
a_process_that_ends_at_the_same_time_is_not_lost_test() ->
    M = witness_bench_response:new(#{sample => 1.0}),
    in_processes([fun() -> lists:foreach(fun(_) -> ok = requests(1, M) end, lists:seq(1, 2000)) end || _ <- lists:seq(1, 8)]),
    ?assertMatch(#{response := #{count := 16_000, unclosed := 0}, messages := 32_000}, witness_bench_response:summary(M)).

members_lag_and_messages_test() ->
    M = witness_bench_response:new(#{}),
    in_processes([fun() ->
                      ok = witness_bench_response:count_created(M),
                      ok = witness_bench_response:lag(M, Lag),
                      ok = witness_bench_response:messages(M, 3),
                      Lag > 0 andalso witness_bench_response:count_ended(M)
                  end || Lag <- [-5, 100, 200, 300]]),
    ?assertEqual(1, witness_bench_response:live(M)),
    ?assertMatch(#{members := 4, messages := 12, lag := #{mean_ns := 150.0, max := 300}}, witness_bench_response:summary(M)).

%% No event of a trace comes from measuring.
nothing_is_sent_test() ->
    M = witness_bench_response:new(#{sample => 1.0}),
    Session = trace:session_create(?MODULE, self(), []),
    in_processes([fun() ->
                      1 = trace:process(Session, self(), true, [send, 'receive', procs]),
                      ok = witness_bench_response:count_created(M),
                      ok = witness_bench_response:lag(M, 5),
                      ok = requests(300, M),
                      ok = witness_bench_response:count_ended(M)
                  end]),
    true = trace:session_destroy(Session),
    ?assertEqual([], [T || T <- traced(), element(3, T) =/= exit]).

traced() -> receive T when element(1, T) =:= trace -> [T | traced()] after 0 -> [] end.

%% On another node the counters do not exist.
measures_of_another_node_measure_nothing_test() ->
    M = witness_bench_response:new(#{sample => 1.0}),
    Elsewhere = setelement(2, M, 'another@node'),
    {Stamp, L} = witness_bench_response:start(witness_bench_response:open(Elsewhere)),
    ?assertEqual(undefined, Stamp),
    ok = witness_bench_response:close(witness_bench_response:stop(Stamp, L)),
    ok = witness_bench_response:count_created(Elsewhere),
    ok = witness_bench_response:lag(Elsewhere, 7),
    ?assertMatch(#{members := 0, messages := 0, lag := #{max := 0}}, witness_bench_response:summary(M)).

wrong_samples_are_refused_test_() ->
    [?_assertError({case_clause, _}, witness_bench_response:new(#{sample => Wrong})) || Wrong <- [0, -0.1, 1.1, all]].
