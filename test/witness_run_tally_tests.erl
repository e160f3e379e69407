-module(witness_run_tally_tests).
-include_lib("eunit/include/eunit.hrl").

-define(SUM, {~"calc.hml:3", ~"sum", 1}).
-define(MUL, {~"calc.hml:9", undefined, 1}).

nothing_monitored_is_not_trusted_and_says_which_property_test() ->
    T = new(),
    ?assertNot(witness_run_tally:is_trusted(T)),
    ?assertMatch(#{monitored := 0, slices := 0, gaps := 0, vacuous := 0, coverage := [],
                   verdicts := #{no := 0, yes := 0, inconclusive := 0}}, witness_run_tally:summary(T)),
    Nothing = ~" monitored nothing: no process had a signature that matches ",
    ?assertEqual([{nothing_monitored, <<"calc.hml:3 (sum)", Nothing/binary, "s:sum(_)">>},
                  {nothing_monitored, <<"calc.hml:9", Nothing/binary, "s:mul(_)">>}], warnings(T)).

verdicts_are_counted_in_all_test() ->
    T = verdicts([{?SUM, no}, {?SUM, yes}, {?MUL, yes}, {?MUL, inconclusive}], started()),
    ?assertEqual(#{no => 1, yes => 2, inconclusive => 1}, witness_run_tally:verdicts(T)),
    ?assertMatch(#{monitored := 2, slices := 0}, witness_run_tally:summary(T)),
    ?assert(witness_run_tally:is_trusted(T)).

slices_are_verdicts_not_monitors_test() ->
    Slices = [(of_property(?SUM, yes))#{slice := [{~"Id", Id}]} || Id <- [1, 2, 3]],
    T = lists:foldl(fun witness_run_tally:add_verdict/2, started(), Slices),
    ?assertMatch(#{monitored := 2, slices := 3, verdicts := #{yes := 3}}, witness_run_tally:summary(T)).

undecided_slices_are_told_up_to_a_bound_test() ->
    Slice = fun(Id) -> (of_property(?SUM, inconclusive))#{slice := [{~"Id", Id}], reason => stopped} end,
    Told = lists:foldl(fun(Id, T) ->
        ?assert(witness_run_tally:is_reported(Slice(Id), T)),
        witness_run_tally:add_verdict(Slice(Id), T)
    end, started(), lists:seq(1, 1000)),
    ?assertNot(witness_run_tally:is_reported(Slice(1001), Told)),
    ?assert(witness_run_tally:is_reported((of_property(?MUL, inconclusive))#{slice := [{~"Id", 1}], reason => stopped}, Told)),
    [?assert(witness_run_tally:is_reported(V, Told)) || V <- [of_property(?SUM, inconclusive), (Slice(1001))#{verdict := no}]],
    T = witness_run_tally:add_undecided(?SUM, {gap, late}, 3, witness_run_tally:add_undecided(?SUM, stopped, 5, Told)),
    ?assertMatch(#{slices := 1008, gaps := 3, verdicts := #{inconclusive := 1008},
                   undecided := [#{reason := stopped, count := 1005, told := 1000},
                                 #{reason := {gap, late}, count := 3, told := 0}]}, witness_run_tally:summary(T)),
    ?assertNot(witness_run_tally:is_trusted(T)).

crashes_of_slices_are_told_apart_up_to_a_bound_test() ->
    T = lists:foldl(fun(N, A) -> witness_run_tally:add_undecided(?SUM, {crashed, N}, 1, A) end, started(), lists:seq(1, 1000)),
    #{undecided := Undecided} = witness_run_tally:summary(T),
    ?assertEqual({101, 1000}, {length(Undecided), lists:sum([N || #{count := N} <- Undecided])}).

a_gap_or_a_crash_takes_the_trust_test_() ->
    [?_assertNot(witness_run_tally:is_trusted(undecided(Reason, started()))) || Reason <- [{gap, late}, {crashed, boom}]].

what_stops_or_is_too_much_keeps_the_trust_test_() ->
    [?_assert(witness_run_tally:is_trusted(undecided(Reason, started()))) || Reason <- [stopped, max_slices, undefined]].

only_gaps_are_gaps_test() ->
    T = lists:foldl(fun undecided/2, started(), [{gap, late}, {crashed, boom}, stopped, {gap, tracer_lost}]),
    ?assertMatch(#{gaps := 2}, witness_run_tally:summary(T)).

gaps_are_told_by_their_reasons_test() ->
    T = lists:foldl(fun undecided/2, started(), [{gap, memory}, {gap, late}, {gap, memory}, stopped]),
    ?assertEqual([~"a monitor misses events: some came too late to be put in order",
                  ~"2 monitors or slices miss events: there were more in all than could be kept for the monitors (memory)"],
                 [Text || #{code := Code, text := Text} <- witness_run_tally:warnings(T, fun() -> [] end),
                                              Code =:= gap orelse Code =:= memory]).

the_actions_of_all_monitors_of_a_property_are_merged_test() ->
    T = witness_run_tally:add_coverage(?SUM, 2#100, witness_run_tally:add_coverage(?SUM, 2#010, started())),
    Actions = [action(4, ~"_ ? a", undefined, true), action(5, ~"_ ? b", no, true), action(6, ~"_ ? c", yes, false)],
    ?assertEqual([#{spec => ~"calc.hml:3", name => ~"sum", version => 1, actions => Actions}],
                 maps:get(coverage, witness_run_tally:summary(T))).

another_property_covers_nothing_of_this_one_test() ->
    T = witness_run_tally:add_coverage(?MUL, 2#1110, started()),
    #{coverage := [#{actions := Actions}]} = witness_run_tally:summary(T),
    ?assertEqual([false, false, false], [Taken || #{taken := Taken} <- Actions]).

each_property_has_its_own_numbers_test() ->
    T = lists:foldl(fun(Change, A) -> Change(A) end, verdicts([{?SUM, no}, {?SUM, inconclusive}, {?MUL, no}], started()), [
        fun(A) -> witness_run_tally:add_satisfied_monitors(?SUM, 4, 1, 0, A) end,
        fun(A) -> witness_run_tally:add_satisfied(?SUM, {0, 10}, 2, A) end,
        fun(A) -> witness_run_tally:add_undecided(?MUL, stopped, 100, A) end]),
    {Spec, Name, Version} = ?SUM,
    #{properties := [Sum, Mul]} = witness_run_tally:summary(T),
    ?assertEqual(#{spec => Spec, name => Name, version => Version, monitored => 5, vacuous => 3,
                   verdicts => #{no => 1, yes => 14, inconclusive => 1}}, Sum),
    ?assertMatch(#{monitored := 1, vacuous := 0, verdicts := #{no := 1, yes := 0, inconclusive := 100}}, Mul),
    ?assertMatch(#{properties := []}, witness_run_tally:summary(new())).

a_property_is_vacuous_if_all_its_verdicts_are_test() ->
    Vacuous = (of_property(?SUM, yes))#{vacuous := true},
    One = witness_run_tally:add_verdict(Vacuous, started()),
    Why = ~"no action but the birth has ever matched",
    ?assertEqual([{vacuous, <<"calc.hml:3 (sum) has a vacuous verdict only: ", Why/binary>>}], warnings(One)),
    Two = witness_run_tally:add_verdict(Vacuous, One),
    ?assertEqual([{vacuous, <<"calc.hml:3 (sum) has vacuous verdicts only, 2 of them: ", Why/binary>>}], warnings(Two)),
    ?assertMatch(#{vacuous := 2}, witness_run_tally:summary(Two)),
    ?assertEqual([], warnings(verdicts([{?SUM, inconclusive}], Two))),
    ?assertEqual([], warnings(started())).

warnings(T) -> [{Code, Text} || #{code := Code, text := Text} <- witness_run_tally:warnings(T, fun() -> [] end)].

started() -> lists:foldl(fun witness_run_tally:add_monitor/2, new(), [?SUM, ?MUL]).

new() ->
    Numbered = fun(Id, Line, Text, Decides) -> (maps:remove(taken, action(Line, Text, Decides, false)))#{id => Id} end,
    witness_run_tally:new([#{key => ?SUM, signature => ~"s:sum(_)",
                         actions => [Numbered(1, 4, ~"_ ? a", undefined), Numbered(2, 5, ~"_ ? b", no),
                                     Numbered(3, 6, ~"_ ? c", yes)]},
                       #{key => ?MUL, signature => ~"s:mul(_)", actions => []}]).

action(Line, Text, Decides, Taken) -> #{line => Line, column => 3, text => Text, decides => Decides, taken => Taken}.

verdicts(Verdicts, T) ->
    lists:foldl(fun({Key, Verdict}, A) -> witness_run_tally:add_verdict(of_property(Key, Verdict), A) end, T, Verdicts).

undecided(Reason, T) -> witness_run_tally:add_verdict((of_property(?SUM, inconclusive))#{reason := Reason}, T).

of_property({Spec, Name, _}, Verdict) ->
    #{spec => Spec, name => Name, verdict => Verdict, reason => undefined, slice => undefined, vacuous => false}.
