%% The combination of a sliding window is that of its elements, whatever has entered and left.
-module(witness_spec_window_tests).
-include_lib("eunit/include/eunit.hrl").

agrees_with_its_elements_test_() ->
    [{Name, {timeout, 60, fun() ->
         [steps(200, rand:seed_s(exsss, Seed), Combine, Element, witness_spec_window:new(), []) || Seed <- lists:seq(1, 100)]
     end}} || {Name, Combine, Element} <- [{"sum", fun erlang:'+'/2, fun(Number) -> Number end},
                                           {"list", fun erlang:'++'/2, fun(Number) -> [Number] end},
                                           {"greatest", fun erlang:max/2, fun(Number) -> Number end}]].

steps(0, _, _, _, _, _) -> ok;
steps(N, Random, Combine, Element, Window, Elements) ->
    {Choice, Next} = rand:uniform_s(3, Random),
    {Number, More} = rand:uniform_s(10, Next),
    {Window1, Elements1} = case Choice of
        1 ->
            Before = 300 - N - Number,
            {witness_spec_window:drop(Before, Combine, Window), [E || {Place, _} = E <- Elements, Place >= Before]};
        _ ->
            New = Element(Number),
            {witness_spec_window:put(300 - N, New, Combine, Window), Elements ++ [{300 - N, New}]}
    end,
    ?assertEqual(length(Elements1), witness_spec_window:size(Window1)),
    ?assertEqual(case [E || {_, E} <- Elements1] of
                     [] -> none;
                     [First | Others] -> {some, lists:foldl(fun(E, All) -> Combine(All, E) end, First, Others)}
                 end, witness_spec_window:combined(Combine, Window1)),
    steps(N - 1, More, Combine, Element, Window1, Elements1).
