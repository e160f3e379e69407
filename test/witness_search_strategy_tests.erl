-module(witness_search_strategy_tests).
-moduledoc "Strategies are what they claim: they are functions of their seed, and PCT finds faults at least as often as its bound says.".
-include_lib("eunit/include/eunit.hrl").

-define(RUNS, 4_000).

a_seed_determines_all_choices_test() ->
    lists:foreach(fun(Name) ->
        ?assertEqual({Name, choices(Name, 1)}, {Name, choices(Name, 1)}),
        ?assertNotEqual({Name, choices(Name, 1)}, {Name, choices(Name, 2)})
    end, witness_search_strategy:names()).

choices(Name, Seed) -> choices(witness_search_strategy:new(Name, #{seed => Seed, length => 50, depth => 3}), 5, 50).

%% The chosen one of so many processes, each of which goes on for ever.
choices(Strategy, Processes, Number) ->
    First = witness_search_possible:change([{Id, now} || Id <- lists:seq(1, Processes)], witness_search_possible:new(late)),
    {Choices, _} = lists:mapfoldl(fun(_, {Possible, State}) ->
        {{process, Id} = Step, Next} = witness_search_strategy:choose(Possible, view(), State),
        {Step, {witness_search_possible:change([{Id, now}], witness_search_possible:seen(Possible)), Next}}
    end, {First, Strategy}, lists:seq(1, Number)),
    Choices.

%% All steps depend on each other, and each is interesting.
view() -> #{actor => fun({process, Id}) -> [Id] end, touches => fun(_) -> [{changes, all}] end, interesting => fun(_) -> true end}.

%% The measured share may be below the probability by chance: by four standard deviations once in thirty thousand tests. The seed is
%% fixed.
pct_keeps_its_bound_test_() ->
    [{timeout, 60, {lists:flatten(io_lib:format("depth ~b, ~b threads of ~b steps", [Depth, Threads, Steps])), fun() ->
        Bound = witness_search_bounds:bound(Depth, Threads, Threads * Steps),
        Share = witness_search_bounds:measure(pct, Depth, {Threads, Steps}, ?RUNS, 1),
        ?assert(Share >= Bound - 4 * math:sqrt(Bound * (1 - Bound) / ?RUNS))
    end}} || Depth <- [1, 2, 3], {Threads, Steps} <- [{2, 5}, {5, 5}, {5, 10}]].

%% --- surw ------------------------------------------------------------------------

%% Of a chi-square distribution, one value in a thousand is larger. The seeds are fixed.
orders_of_interesting_steps_are_equally_likely_test_() ->
    [{timeout, 60, {Name, fun() ->
        ?assert(chi_square(surw, Program, Orders) < Critical),
        ?assert(chi_square(random, Program, Orders) > Critical)
    end}} || {Name, Program, Orders, Critical} <-
        [{"the same lengths", #{1 => [i, i, i], 2 => [i, i, i]}, 20, 43.8},
         {"different lengths", #{1 => [i, i, i, i, i], 2 => [i]}, 6, 20.5},
         {"steps of no interest", #{1 => [n, i, n, n, n, i], 2 => [i, n, i, n], 3 => [i]}, 30, 58.3},
         {"a late child", #{1 => [i, {spawn, 2, [n, i, i, i]}, i]}, 4, 16.3},
         {"children of children",
          #{1 => [{spawn, 2, [{spawn, 3, [n, n, i]}, i]}, {spawn, 4, [i, n, i]}], 5 => [n, i, n, i]}, 180, 245.0}]].

%% How far the shares of all orders are from being equal.
chi_square(Strategy, Program, Orders) ->
    Profile = #{counts => counts(Program), parents => parents(Program)},
    Runs = 200 * Orders,
    Found = lists:foldl(fun(Seed, Acc) ->
        New = witness_search_strategy:new(Strategy, #{seed => erlang:phash2({Program, Seed}), profile => Profile}),
        maps:update_with(interesting(New, Program), fun(N) -> N + 1 end, 1, Acc)
    end, #{}, lists:seq(1, Runs)),
    ?assert(map_size(Found) =< Orders),
    lists:sum([(N - 200) * (N - 200) / 200 || _ := N <- Found]) + 200 * (Orders - map_size(Found)).

%% Which process did each interesting step.
interesting(Strategy, Program) ->
    interesting(Strategy, witness_search_possible:change(possible(Program), witness_search_possible:new(late)), Program).

possible(Program) -> [{Id, now} || Id := _ <- Program].

interesting(_, _, Program) when map_size(Program) =:= 0 -> [];
interesting(Strategy, Possible, Program) ->
    View = (view())#{interesting := fun({process, Id}) -> hd(map_get(Id, Program)) =:= i end},
    {{process, Id}, Next} = witness_search_strategy:choose(Possible, View, Strategy),
    #{Id := [Step | Others]} = Program,
    Kept = case Others of [] -> maps:remove(Id, Program); _ -> Program#{Id := Others} end,
    Left = case Step of {spawn, Child, Steps} -> Kept#{Child => Steps}; _ -> Kept end,
    Changed = witness_search_possible:change([{Id, no} || not is_map_key(Id, Left)] ++ possible(Left),
                                             witness_search_possible:seen(Possible)),
    [Id || Step =:= i] ++ interesting(Next, Changed, Left).

counts(Program) ->
    maps:from_list(lists:append([[{[Id], length([i || i <- Steps])} | lists:append([maps:to_list(counts(#{Child => Of}))
                                                                                    || {spawn, Child, Of} <- Steps])]
                                 || Id := Steps <- Program])).

parents(Program) ->
    maps:from_list(lists:append([[{[Child], [Id]} | maps:to_list(parents(#{Child => Of}))]
                                 || Id := Steps <- Program, {spawn, Child, Of} <- Steps])).

%% What was counted may be wrong: a process does more or less, is not there, or was not known.
wrong_counts_do_not_stop_it_test() ->
    Program = #{1 => [i, n, i], 2 => [n, i, i, {spawn, 3, [i, i]}]},
    [?assertEqual([1, 1, 2, 2, 3, 3],
                  lists:sort(interesting(witness_search_strategy:new(surw, #{seed => Seed, profile => Profile}), Program)))
     || Seed <- lists:seq(1, 20),
        Profile <- [#{counts => #{}, parents => #{}}, #{counts => #{[1] => 9, [7] => 3}, parents => #{[7] => [2]}},
                    #{counts => #{[3] => 1}, parents => #{[3] => [1]}}]].

%% A schedule that is given is followed; then the first step is taken.
choices_are_replayed_test() ->
    Given = [{process, 3}, {process, 2}],
    ?assertEqual(Given ++ [{process, 1}], choices(witness_search_strategy:replaying(Given), 3, 3)),
    ?assertEqual([{process, 1}, {process, 1}], choices(witness_search_strategy:replaying([{process, 4}]), 3, 2)).
