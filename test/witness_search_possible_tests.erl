-module(witness_search_possible_tests).
-moduledoc "The possible steps, kept up to date, are those of the world; and a step costs hardly more if there are many processes.".
-include_lib("eunit/include/eunit.hrl").

-define(ELEMENTS, 300).

a_tree_is_an_ordered_set_test() ->
    lists:foldl(fun(Seed, {Tree, Set}) ->
        Element = erlang:phash2(Seed, ?ELEMENTS),
        {Changed, Expected} = case erlang:phash2({kind, Seed}, 2) of
            0 -> {witness_search_tree:insert(Element, Tree), ordsets:add_element(Element, Set)};
            1 -> {witness_search_tree:delete(Element, Tree), ordsets:del_element(Element, Set)}
        end,
        ?assertEqual(Expected, witness_search_tree:to_list(Changed)),
        ?assertEqual(length(Expected), witness_search_tree:size(Changed)),
        ?assertEqual(lists:member(Seed rem ?ELEMENTS, Expected), witness_search_tree:is_member(Seed rem ?ELEMENTS, Changed)),
        _ = [begin
                 Place = erlang:phash2({place, Seed}, length(Expected)) + 1,
                 Nth = lists:nth(Place, Expected),
                 ?assertEqual(Nth, witness_search_tree:nth(Place, Changed)),
                 ?assertEqual(lists:last(Expected), witness_search_tree:largest(Changed)),
                 ?assertEqual(Place, witness_search_tree:count(fun(Other) -> Other =< Nth end, Changed)),
                 ?assertEqual({found, Nth}, witness_search_tree:find(fun(Other) -> Other >= Nth end, Changed))
             end || Expected =/= []],
        {Changed, Expected}
    end, {witness_search_tree:new(), []}, lists:seq(1, 5_000)).

a_tree_stays_low_test() ->
    Tree = lists:foldl(fun witness_search_tree:insert/2, witness_search_tree:new(), lists:seq(1, 10_000)),
    Half = lists:foldl(fun witness_search_tree:delete/2, Tree, lists:seq(1, 5_000)),
    ?assert(depth(Tree) =< 2 * 14),
    ?assert(depth(Half) =< 2 * 13).

%% How many elements are compared at most.
depth(Tree) -> lists:max([compared(Place, Tree) || Place <- [1, 2_500, witness_search_tree:size(Tree)]]).

compared(Place, Tree) ->
    Element = witness_search_tree:nth(Place, Tree),
    Counter = counters:new(1, []),
    _ = witness_search_tree:count(fun(Other) -> ok = counters:add(Counter, 1, 1), Other =< Element end, Tree),
    counters:get(Counter, 1).

%% What strategies see of two processes, signals between them, a timer, and timeouts, in random orders.
changes_are_told_test() ->
    [?assertEqual(ok, told(Timeouts, Seed)) || Timeouts <- [late, any], Seed <- lists:seq(1, 300)].

told(Timeouts, Seed) ->
    {_, _, _, _} = lists:foldl(fun(Step, {Possible, Known, Times, State}) ->
        What = lists:nth(erlang:phash2({what, Seed, Step}, 6) + 1, [1, 2, 3, {1, 2}, {2, 1}, timer()]),
        When = when_(What, erlang:phash2({'when', Seed, Step}, 4)),
        Changed = witness_search_possible:change([{What, When}], Possible),
        After = State#{What => When},
        Expected = expected(Timeouts, After),
        ?assertEqual(Expected, witness_search_possible:to_list(Changed)),
        ?assertEqual(length(Expected), witness_search_possible:size(Changed)),
        ?assert(lists:all(fun(One) -> witness_search_possible:is_member(One, Changed) end, Expected)),
        %% Not each change is followed by a choice.
        case erlang:phash2({seen, Seed, Step}, 2) of
            0 -> {Changed, Known, Times, After};
            1 ->
                {Added, Removed, Shown} = witness_search_possible:news(Times, Changed),
                ?assertEqual(lists:sort(Expected), lists:usort((Known -- Removed) ++ Added)),
                ?assertEqual([], [One || One <- Added, not lists:member(One, Expected)]),
                ?assertEqual(Added, [One || One <- Expected, lists:member(One, Added)]),
                {witness_search_possible:seen(Changed), Expected, Shown, After}
        end
    end, {witness_search_possible:new(Timeouts), [], [], #{}}, lists:seq(1, 30)),
    ok.

timer() -> witness_search_identity:reference(1).

when_({_, _}, N) -> lists:nth(N rem 2 + 1, [now, no]);
when_(Ref, N) when is_reference(Ref) -> lists:nth(N rem 2 + 1, [7, no]);
when_(_, N) -> lists:nth(N + 1, [now, no, 7, 9]).

expected(Timeouts, State) ->
    Steps = [{process, Id} || Id <- [1, 2, 3], now =:= maps:get(Id, State, no)]
        ++ [{signal, From, To} || {From, To} = Pair <- [{1, 2}, {2, 1}], now =:= maps:get(Pair, State, no)],
    Times = lists:sort([{At, case What of Id when is_integer(Id) -> {timeout, Id}; Ref -> {timer, Ref} end}
                        || What := At <- State, is_integer(At)]),
    case {Timeouts, Steps} of
        {late, []} -> [Step || {At, Step} <- Times, At =:= element(1, hd(Times))];
        {late, _} -> Steps;
        {any, _} -> Steps ++ [Step || {_, Step} <- Times]
    end.

%% In reductions, so that it does not depend on how fast the machine is. Ten times for a hundred times as many processes is far more
%% than a logarithm needs, and far less than a look at each process.
a_step_costs_hardly_more_with_many_processes_test_() ->
    [{atom_to_list(Name), fun() -> ?assert(cost(New, 10_000) < 10 * cost(New, 100)) end}
     || {Name, New} <- [{Name, witness_search_strategy:new(Name, #{seed => 1})} || Name <- [random, pct, pos]]
            ++ [{default, witness_search_strategy:reversing([])},
                {reversed, witness_search_strategy:reversing([{{[2], 1}, {[1], 1}}])}]].

cost(Strategy, Processes) ->
    View = #{actor => fun({process, Id}) -> [Id] end, touches => fun({process, Id}) -> [{changes, Id}] end,
             interesting => fun(_) -> true end},
    Possible = witness_search_possible:change([{Id, now} || Id <- lists:seq(1, Processes)], witness_search_possible:new(late)),
    %% The first choice is told of all.
    {_, First} = witness_search_strategy:choose(Possible, View, Strategy),
    Own = self(),
    {Pid, Ref} = spawn_opt(fun() ->
        {reductions, Before} = process_info(self(), reductions),
        _ = go_on(100, View, witness_search_possible:seen(Possible), First),
        {reductions, After} = process_info(self(), reductions),
        Own ! {self(), After - Before}
    end, [monitor, {min_heap_size, 10_000_000}]),
    receive {'DOWN', Ref, process, Pid, normal} -> receive {Pid, Cost} -> Cost end end.

go_on(0, _, _, _) -> ok;
go_on(N, View, Possible, Strategy) ->
    {{process, Id}, Next} = witness_search_strategy:choose(Possible, View, Strategy),
    Changed = witness_search_possible:change([{Id, no}], witness_search_possible:seen(Possible)),
    go_on(N - 1, View, Changed, Next).
