-module(witness_bench_idle_tests).
-moduledoc "The idle times of processes: what a reading of their whole traces gives, and what monitors add up step by step.".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SIGNATURE, {worker, start, []}).

%% A worker with three requests, each answered 5 after it has come; the last one came while it worked on the second.
a_worker_test() ->
    Events = [init(100), recv(150), send(155), recv(170), recv(172), send(175), send(180), exit_at(190)],
    %% Delivered: 50 after its birth, 15 after its first answer, and none.
    ?assertEqual({idle, 3, 65, 50 * 50 + 15 * 15}, found(delivered, Events)),
    %% Were these the times at which it takes them, it would have waited for 2 before the third.
    ?assertEqual({idle, 3, 67, 50 * 50 + 15 * 15 + 4}, found(taken, Events)).

a_process_without_requests_has_no_idle_time_test() ->
    ?assertEqual({idle, 0, 0, 0}, found(taken, [init(1), exit_at(2)])),
    ?assertMatch(#{mean_ns := +0.0, count := 0, monitors := 0},
                 witness_bench_idle:summary(witness_bench_idle:add({idle, 0, 0, 0}, witness_bench_idle:new()))).

%% A clock that is behind makes no negative time.
clocks_of_two_processors_test() ->
    ?assertEqual({idle, 1, 0, 0}, found(taken, [init(100), recv(99), exit_at(200)])).

monitors_weigh_by_their_messages_test() ->
    Few = {idle, 1, 100, 10_000},
    Many = {idle, 3, 30, 300},
    ?assertMatch(#{mean_ns := 32.5, count := 4, monitors := 2},
                 witness_bench_idle:summary(witness_bench_idle:add(Many, witness_bench_idle:add(Few, witness_bench_idle:new())))).

it_may_share_a_process_test() ->
    ?assert(witness_monitor_safety:is_bounded(witness_bench_idle)).

idle_times_are_those_of_the_whole_trace_test_() ->
    {timeout, 60, fun() -> ?assertEqual(true, proper:quickcheck(agrees(), [quiet, {numtests, 500}, {to_file, user}])) end}.

agrees() ->
    ?FORALL({Definition, Traces}, {oneof([taken, delivered]), non_empty(list(trace()))},
            begin
                All = [idle_times(Definition, T) || T <- Traces],
                Found = [found(Definition, T) || T <- Traces],
                Times = lists:append(All),
                #{mean_ns := Mean, deviation_ns := Deviation, count := Count, monitors := Monitors} =
                    witness_bench_idle:summary(lists:foldl(fun witness_bench_idle:add/2, witness_bench_idle:new(), Found)),
                Found =:= [{idle, length(Ts), lists:sum(Ts), lists:sum([X * X || X <- Ts])} || Ts <- All]
                    andalso Count =:= length(Times) andalso Monitors =:= length([T || T <- All, T =/= []])
                    andalso (Times =:= [] orelse near(lists:sum(Times) / Count, Mean))
                    andalso (Count < 2 orelse near(deviation(Times), Deviation))
            end).

trace() ->
    ?LET({Start, Steps}, {range(-1_000_000, 1_000_000), list({oneof([recv, send, fork]), range(0, 1_000_000)})},
         begin
             {Events, End} = lists:mapfoldl(fun({Kind, After}, Now) -> {event(Kind, Now + After), Now + After} end, Start, Steps),
             [init(Start) | Events] ++ [exit_at(End)]
         end).

event(recv, T) -> recv(T);
event(send, T) -> send(T);
event(fork, T) -> {fork, self(), self(), ?SIGNATURE, T}.

init(T) -> {init, self(), undefined, ?SIGNATURE, T}.
recv(T) -> {recv, self(), undefined, message, T}.
send(T) -> {send, self(), self(), message, T}.
exit_at(T) -> {exit, self(), normal, T}.

found(Definition, Events) ->
    {ok, State} = witness_bench_idle:init(?SIGNATURE, self(), Definition),
    {verdict, yes, Found} = lists:foldl(fun(E, {ok, S}) -> witness_bench_idle:handle_event(E, S) end, {ok, State}, Events),
    Found.

%% Of each message, by looking back at everything before it.
idle_times(Definition, Events) ->
    [case is_busy(Definition, Before) of
         true -> 0;
         false -> T - element(5, lists:last(Before))
     end || {N, {recv, _, _, _, T}} <- lists:enumerate(0, Events), Before <- [lists:sublist(Events, N)]].

%% Each send answers the oldest message that waits, if one does.
is_busy(taken, _) -> false;
is_busy(delivered, Before) ->
    [] =/= lists:foldl(fun({recv, _, _, _, T}, Waiting) -> Waiting ++ [T];
                          ({send, _, _, _, _}, [_ | Waiting]) -> Waiting;
                          (_, Waiting) -> Waiting
                       end, [], Before).

deviation(Times) ->
    Mean = lists:sum(Times) / length(Times),
    math:sqrt(lists:sum([(T - Mean) * (T - Mean) || T <- Times]) / (length(Times) - 1)).

near(A, B) -> abs(A - B) =< 1.0e-6 * max(1.0, A).
