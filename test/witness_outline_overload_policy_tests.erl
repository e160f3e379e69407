-module(witness_outline_overload_policy_tests).
-include_lib("eunit/include/eunit.hrl").

-define(MB, 1_000_000).

%% [{Kind, Messages, Bytes}], with what was found at the last measurement and the processes in their order.
usage(Processes) ->
    Named = [{list_to_pid("<0." ++ integer_to_list(1000 + N) ++ ".0>"), P} || {N, P} <- lists:enumerate(Processes)],
    {[P || {P, _} <- Named],
     lists:foldl(fun({P, {Kind, Messages, Bytes}}, U) ->
                         witness_outline_overload_policy:put_measurement(P, Messages, Bytes,
                                                                         witness_outline_overload_policy:add(P, Kind, U))
                 end, witness_outline_overload_policy:new(), Named)}.

waiting(Counts, U) -> witness_outline_overload_policy:put_queue_lengths(fun(P) -> maps:get(P, Counts, 0) end, U).

what_was_measured_counts_test() ->
    {_, U} = usage([{tracer, 10, 5 * ?MB}, {monitor, 0, ?MB}, {monitor, 7, 2 * ?MB}]),
    ?assertEqual({5 * ?MB, 3 * ?MB}, witness_outline_overload_policy:totals(U)).

a_process_that_is_new_counts_test() ->
    U = witness_outline_overload_policy:add(self(), monitor, witness_outline_overload_policy:new()),
    {0, Bytes} = witness_outline_overload_policy:totals(U),
    ?assert(Bytes > 0).

what_came_since_is_estimated_by_what_a_message_took_test() ->
    {[P], U} = usage([{tracer, 100, ?MB}]),
    ?assertEqual({2 * ?MB, 0}, witness_outline_overload_policy:totals(waiting(#{P => 200}, U))),
    ?assertEqual({?MB div 2, 0}, witness_outline_overload_policy:totals(waiting(#{P => 50}, U))).

an_estimate_that_is_off_is_stale_test() ->
    {[P, Q, R], U} = usage([{tracer, 100, ?MB}, {tracer, 100, ?MB}, {monitor, 100, 10 * ?MB}]),
    ?assertEqual([], witness_outline_overload_policy:coarse(waiting(#{P => 100, Q => 110, R => 120}, U))),
    ?assertEqual([R, Q], witness_outline_overload_policy:coarse(waiting(#{P => 100, Q => 150, R => 150}, U))).

a_process_that_has_ended_takes_nothing_test() ->
    {[P, Q], U} = usage([{tracer, 0, ?MB}, {monitor, 0, ?MB}]),
    Left = witness_outline_overload_policy:put_queue_lengths(fun(X) when X =:= P -> undefined; (_) -> 0 end, U),
    ?assertEqual([Q], witness_outline_overload_policy:processes(Left)),
    ?assertEqual({0, 0}, witness_outline_overload_policy:totals(witness_outline_overload_policy:remove(Q, Left))).

within_the_budget_nothing_happens_test() ->
    {_, U} = usage([{tracer, 0, 60}, {monitor, 0, 40}]),
    ?assertEqual(fine, witness_outline_overload_policy:judge(100, U)).

monitors_that_take_too_much_end_the_largest_first_test() ->
    {[_, P, Q], U} = usage([{tracer, 0, 50}, {monitor, 0, 20}, {monitor, 0, 40}]),
    ?assertEqual({end_monitors, [Q, P], 88}, witness_outline_overload_policy:judge(100, U)).

tracers_that_take_too_much_end_all_test() ->
    {_, U} = usage([{tracer, 0, 51}, {monitor, 0, 50}]),
    ?assertEqual(give_up, witness_outline_overload_policy:judge(100, U)).

%% Whatever there is: what is left without the monitors that may be ended is within the budget.
enough_can_be_ended_test() ->
    [begin
         {_, U} = usage([{case rand:uniform(2) of 1 -> tracer; 2 -> monitor end, 0, rand:uniform(100)}
                         || _ <- lists:seq(1, rand:uniform(10))]),
         Memory = rand:uniform(600),
         {Tracers, Monitors} = witness_outline_overload_policy:totals(U),
         case witness_outline_overload_policy:judge(Memory, U) of
             fine -> ?assert(Tracers + Monitors =< Memory);
             give_up -> ?assert(Tracers + Monitors > Memory);
             {end_monitors, _, Until} ->
                 ?assert(Tracers + Monitors > Memory),
                 ?assert(Tracers =< Until),
                 ?assert(Until =< Memory)
         end
     end || _ <- lists:seq(1, 1000)].
