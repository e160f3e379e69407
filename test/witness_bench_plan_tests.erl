-module(witness_bench_plan_tests).
-moduledoc "The workload is a function of the model's load and its seed, and of nothing else.".
-include_lib("eunit/include/eunit.hrl").

model(Given) ->
    {ok, Model} = witness_bench_model:parse(Given),
    Model.

plan(Given) -> witness_bench_model:plan(model(Given)).

small() -> #{~"n" => 1000, ~"t" => 20, ~"shape" => ~"burst"}.

the_same_seed_is_the_same_plan_test() ->
    ?assertEqual(plan(small()), plan(small())),
    ?assertNotEqual(plan(small()), plan((small())#{~"seed" => 2})),
    ?assertNotEqual(plan((small())#{~"seed" => ~"free"}), plan((small())#{~"seed" => ~"free"})),
    ?assertEqual(1000, length(lists:append(plan(small())))),
    ?assertEqual(20, length(plan(small()))).

%% Releases of OTP agree on these numbers, and so do all that will come, or workloads are not comparable.
the_plan_of_a_seed_is_known_test() ->
    ?assertEqual([[{379006597, 105}, {698400770, 100}, {1015132223, 102}],
                  [{336721259, 100}, {719360721, 101}, {1118884514, 100}],
                  [{491196288, 100}, {945585371, 99}],
                  [{423879442, 99}, {962833771, 100}]],
                 plan(#{~"n" => 10, ~"t" => 4})),
    ?assertMatch({true, 62098312885130385},
                 witness_bench_random:trial(witness_bench_random:threshold(0.9), witness_bench_random:trials(sending, 1))),
    ?assert(witness_bench_random:chance(x, 1, 0.5)).

%% Whatever else a model says.
nothing_but_the_load_changes_the_plan_test() ->
    Plan = plan(small()),
    [?assertEqual({Key, Plan}, {Key, plan((small())#{Key => Value})})
     || {Key, Value} <- [{~"pr_send", 0.1}, {~"pr_recv", 0.5}, {~"work_us", 3}, {~"payload_bytes", 100}, {~"share", 0.5},
                         {~"crash", 0.5}, {~"loss", 0.5}, {~"kind", ~"tree"}, {~"kind", ~"peers"}]].

%% Each random quantity has a stream of its own.
a_stream_does_not_shift_another_test() ->
    Plan = plan(small()),
    Counts = [length(Unit) || Unit <- Plan],
    Times = [[At || {At, _} <- Unit] || Unit <- Plan],
    Batches = [Requests || Unit <- Plan, {_, Requests} <- Unit],
    Wider = plan((small())#{~"w" => 5000}),
    ?assertEqual(Times, [[At || {At, _} <- Unit] || Unit <- Wider]),
    ?assertNotEqual(Plan, Wider),
    Regular = plan((small())#{~"creation_deviation" => 0}),
    ?assertEqual(Counts, [length(Unit) || Unit <- Regular]),
    ?assertEqual(Batches, [Requests || Unit <- Regular, {_, Requests} <- Unit]),
    Other = plan((small())#{~"shape" => ~"steady"}),
    ?assertNotEqual(Counts, [length(Unit) || Unit <- Other]),
    ?assertEqual(Batches, [Requests || Unit <- Other, {_, Requests} <- Unit]).

batches_are_normal_test() ->
    Batches = [Requests || Unit <- plan(#{~"n" => 5000, ~"w" => 100_000}), {_, Requests} <- Unit],
    ?assert(fits(Batches, {normal, 100_000, 2000})),
    ?assertNot(fits(Batches, {normal, 100_000, 2300})),
    ?assertNot(fits(Batches, {normal, 100_300, 2000})).

%% Gaps between creations, in parts of their mean; they fill the period.
creations_are_spread_over_the_period_test() ->
    Plan = plan(#{~"n" => 5000, ~"t" => 10, ~"period_ms" => 100}),
    Gaps = [Gap * length(Unit) / 100.0e6 || Unit <- Plan, Gap <- gaps(0, Unit)],
    ?assert(fits(Gaps, {normal, 1, 0.1})),
    ?assertNot(fits(Gaps, {normal, 1, 0.11})),
    [?assert(abs(element(1, lists:last(Unit)) / 100.0e6 - 1) < 0.02) || Unit <- Plan].

gaps(_, []) -> [];
gaps(Before, [{At, _} | Members]) when At >= Before -> [At - Before | gaps(At, Members)].

fits(Sample, Distribution) ->
    #{p := P} = witness_bench_statistics:kolmogorov_smirnov(Sample, Distribution),
    P > 0.01.

%% A batch is never empty, whatever its deviation.
every_member_has_a_request_test() ->
    Plan = plan(#{~"n" => 2000, ~"t" => 2, ~"w" => 1, ~"deviation" => 1}),
    ?assert(lists:all(fun({_, Requests}) -> Requests >= 1 end, lists:append(Plan))).

%% What the master keeps are the numbers of units: however many members, it takes as much.
a_plan_does_not_grow_with_its_members_test() ->
    Size = fun(N) -> erts_debug:flat_size(witness_bench_plan:new(model(#{~"n" => N, ~"t" => 50}))) end,
    ?assertEqual(Size(100), Size(200_000)).

trials_succeed_as_often_as_they_should_test() ->
    [begin
        Threshold = witness_bench_random:threshold(P),
        {Yes, _} = lists:foldl(fun(_, {Sum, Trials}) ->
            case witness_bench_random:trial(Threshold, Trials) of
                {true, Next} -> {Sum + 1, Next};
                {false, Next} -> {Sum, Next}
            end
        end, {0, witness_bench_random:trials(sending, 1)}, lists:seq(1, 100_000)),
        #{p := Fit} = witness_bench_statistics:chi_square([Yes, 100_000 - Yes], [P * 100_000, (1 - P) * 100_000]),
        ?assert(Fit > 0.01)
     end || P <- [0.1, 0.5, 0.9]],
    {true, _} = witness_bench_random:trial(witness_bench_random:threshold(1), witness_bench_random:trials(sending, 1)).

chances_come_as_often_as_they_should_test() ->
    ?assertNot(witness_bench_random:chance(x, 1, 0)),
    ?assert(witness_bench_random:chance(x, 1, 1)),
    Yes = length([Id || Id <- lists:seq(1, 20_000), witness_bench_random:chance({crash, Id}, 1, 0.3)]),
    #{p := P} = witness_bench_statistics:chi_square([Yes, 20_000 - Yes], [6000, 14_000]),
    ?assert(P > 0.01),
    %% One question tells nothing about another one.
    Both = length([Id || Id <- lists:seq(1, 20_000), witness_bench_random:chance({crash, Id}, 1, 0.5),
                         witness_bench_random:chance({share, Id}, 1, 0.5)]),
    #{p := Q} = witness_bench_statistics:chi_square([Both, 20_000 - Both], [5000, 15_000]),
    ?assert(Q > 0.01).

the_same_ones_crash_whatever_happens_test() ->
    Failures = witness_bench_member:failures(model(#{~"crash" => 0.2, ~"loss" => 0.1})),
    Crashes = [{Id, At} || Id <- lists:seq(1, 2000), At <- [witness_bench_member:crash_at(Id, 50, Failures)], At =/= infinity],
    ?assert(abs(length(Crashes) - 400) < 80),
    ?assert(lists:all(fun({_, At}) -> At >= 1 andalso At =< 50 end, Crashes)),
    ?assertEqual(Crashes,
                 [{Id, witness_bench_member:crash_at(Id, 50, Failures)} || {Id, _} <- lists:reverse(lists:reverse(Crashes))]),
    ?assertEqual(infinity, witness_bench_member:crash_at(1, 50, none)),
    ?assertNot(lists:any(fun(Id) -> witness_bench_member:is_lost(chunk, {Id, 50, 50}, Failures) end, lists:seq(1, 2000))),
    Lost = length([Id || Id <- lists:seq(1, 2000), witness_bench_member:is_lost(ack, {Id, 49, 50}, Failures)]),
    ?assert(abs(Lost - 200) < 60).
