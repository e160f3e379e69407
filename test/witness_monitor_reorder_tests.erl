-module(witness_monitor_reorder_tests).
-moduledoc "The order of a partition with several processes: complete and sorted, or late.".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

nothing_is_released_before_its_time_test() ->
    {ok, O} = witness_monitor_reorder:add(event(1, 10), witness_monitor_reorder:new()),
    ?assertMatch({[], O}, witness_monitor_reorder:release(9, O)),
    {[E], O1} = witness_monitor_reorder:release(10, O),
    ?assertEqual(event(1, 10), {1, E}),
    ?assertEqual([], witness_monitor_reorder:release_all(O1)).

an_event_that_comes_after_a_later_one_was_released_is_late_test() ->
    {ok, O} = witness_monitor_reorder:add(event(5, 10), witness_monitor_reorder:new()),
    {[_], O1} = witness_monitor_reorder:release(10, O),
    ?assertEqual(late, witness_monitor_reorder:add(event(4, 10), O1)),
    ?assertMatch({ok, _}, witness_monitor_reorder:add(event(6, 10), O1)).

an_event_that_comes_late_in_time_but_not_in_order_is_held_test() ->
    {[], O} = witness_monitor_reorder:release(100, witness_monitor_reorder:new()),
    ?assertMatch({ok, _}, witness_monitor_reorder:add(event(1, 10), O)).

stamps_may_be_negative_test() ->
    {ok, O1} = witness_monitor_reorder:add(event(-1, 10), witness_monitor_reorder:new()),
    {ok, O2} = witness_monitor_reorder:add(event(-2, 10), O1),
    ?assertEqual([element(2, event(-2, 10)), element(2, event(-1, 10))], witness_monitor_reorder:release_all(O2)).

what_comes_out_is_sorted_and_complete_or_something_is_late_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_sorted(), [quiet, {numtests, 5000}, {to_file, user}]))}.

%% Events have a stamp and a time, which grow together; they come in any order, and time
%% passes in between. What is not late comes out once, by stamps, and never before its time.
prop_sorted() ->
    ?FORALL(Steps, list(frequency([{5, {add, integer(0, 100)}}, {1, {release, integer(0, 120)}}])),
            begin
                Unique = unique(Steps, #{}),
                {Out, Late, Early, Order} = lists:foldl(fun step/2, {[], [], false, witness_monitor_reorder:new()}, Unique),
                Rest = [U || {recv, _, _, U, _} <- witness_monitor_reorder:release_all(Order)],
                All = lists:append(lists:reverse([Rest | Out])),
                Before = fun(U) -> [X || X <- lists:append(lists:reverse(Out)), X > U] =/= [] end,
                not Early
                    andalso All =:= lists:usort(All)
                    andalso lists:sort(All ++ Late) =:= lists:sort([U || {add, U} <- Unique])
                    andalso lists:all(Before, Late)
            end).

step({add, U}, {Out, Late, Early, Order}) ->
    case witness_monitor_reorder:add(event(U, time(U)), Order) of
        {ok, Order1} -> {Out, Late, Early, Order1};
        late -> {Out, [U | Late], Early, Order}
    end;
step({release, T}, {Out, Late, Early, Order}) ->
    {Events, Order1} = witness_monitor_reorder:release(T, Order),
    Us = [U || {recv, _, _, U, _} <- Events],
    {[Us | Out], Late, Early orelse lists:any(fun(U) -> time(U) > T end, Us), Order1}.

%% Several events may have the same time, none the same stamp.
time(U) -> U div 3.

unique([], _) -> [];
unique([{add, U} | Steps], Seen) when is_map_key(U, Seen) -> unique(Steps, Seen);
unique([{add, U} | Steps], Seen) -> [{add, U} | unique(Steps, Seen#{U => []})];
unique([Step | Steps], Seen) -> [Step | unique(Steps, Seen)].

event(U, Time) -> {U, {recv, p, q, U, Time}}.
