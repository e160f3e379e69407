-module(witness_run_throttle_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

so_many_a_second_test() ->
    {Said, T} = allow([{p, 0}, {p, 10}, {p, 999}, {p, 1000}, {p, 1001}], witness_run_throttle:new(2)),
    ?assertEqual([true, true, false, true, true], Said),
    {LeftOut, T1} = witness_run_throttle:take(T),
    ?assertEqual([{p, 1}], LeftOut),
    ?assertMatch({[], _}, witness_run_throttle:take(T1)).

one_property_does_not_silence_another_test() ->
    {Said, _} = allow([{p, 0}, {p, 1}, {q, 2}], witness_run_throttle:new(1)),
    ?assertEqual([true, false, true], Said).

all_together_have_a_limit_test() ->
    {Said, _} = allow([{N, 0} || N <- lists:seq(1, 12)] ++ [{13, 1000}], witness_run_throttle:new(1)),
    ?assertEqual(lists:duplicate(10, true) ++ [false, false, true], Said).

without_a_limit_all_pass_test() ->
    {Said, T} = allow([{p, 0} || _ <- lists:seq(1, 1000)], witness_run_throttle:new(infinity)),
    ?assert(lists:all(fun(B) -> B end, Said)),
    ?assertMatch({[], _}, witness_run_throttle:take(T)).

%% Every report is either let through or counted, and never more than the limit pass in a window.
every_report_passes_or_is_counted_test_() -> {timeout, 60, fun every_report_passes_or_is_counted/0}.

every_report_passes_or_is_counted() ->
    Reports = ?LET(Steps, list({oneof([p, q, r]), integer(0, 300)}),
                   element(1, lists:mapfoldl(fun({Key, Step}, Now) -> {{Key, Now + Step}, Now + Step} end, -5000, Steps))),
    ?assert(proper:quickcheck(?FORALL({Given, Rate}, {Reports, integer(1, 3)}, begin
        {Said, T} = allow(Given, witness_run_throttle:new(Rate)),
        {LeftOut, _} = witness_run_throttle:take(T),
        Passed = [{Key, Now} || {{Key, Now}, true} <- lists:zip(Given, Said)],
        length(Given) =:= length(Passed) + lists:sum([N || {_, N} <- LeftOut])
            %% A window begins with what passes, so any second meets two of them at most.
            andalso lists:all(fun({Key, Now}) ->
                                      length([x || {K, T1} <- Passed, K =:= Key, T1 >= Now, T1 < Now + 1000]) =< 2 * Rate
                              end, Passed)
    end), [{numtests, 200}, {to_file, user}])).

allow(Reports, Throttle) ->
    lists:mapfoldl(fun({Key, Now}, T) -> witness_run_throttle:allow(Key, Now, T) end, Throttle, Reports).
