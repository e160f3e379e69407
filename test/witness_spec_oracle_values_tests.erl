-module(witness_spec_oracle_values_tests).
-moduledoc "The evaluator of `let`s against values that are computed by hand, and its notation.".
-include_lib("eunit/include/eunit.hrl").

%% Messages `a`, `b` and numbers that are received at these times.
trace(Messages) -> [{answers, {recv, self(), undefined, Message, Time}, []} || {Time, Message} <- Messages].

%% With the greatest time so far.
places(Messages) ->
    [{Event, #{'@latest' => lists:max([0 | [Time || {Time, _} <- lists:sublist(Messages, I), is_integer(Time)]]), '@missing' => []}}
     || {I, Event} <- lists:enumerate(trace(Messages))].

got(Term) -> {actions, [{recv, ['_', {lit, Term}], []}]}.
number() -> {actions, [{recv, ['_', {var, 'N'}], [[{call, is_integer, [{var, 'N'}]}]]}]}.
is(Test) -> {test, Test}.

%% The values of a single `let` at each place.
alone(Value, Messages) -> [of_v(Known) || Known <- witness_spec_oracle_values:places([{'V', Value}], places(Messages), #{})].

of_v(#{'V' := Term}) -> Term;
of_v({failed, Reasons}) -> Reasons.

-define(LETTERS, [{0, a}, {1, b}, {2, b}, {2, a}, {5, c}]).

previously_is_about_the_place_before_test() ->
    ?assertEqual([false, true, false, false, true], alone({previously, got(a)}, ?LETTERS)),
    ?assertEqual([false, true, true, true, true], alone({previously, is({lit, true})}, ?LETTERS)).

once_is_about_all_places_of_the_window_test() ->
    ?assertEqual([false, true, true, true, true], alone({once, none, got(b)}, ?LETTERS)),
    ?assertEqual([false, true, true, true, false], alone({once, {events, 2}, got(b)}, ?LETTERS)),
    ?assertEqual([false, true, true, false, false], alone({once, {events, 1}, got(b)}, ?LETTERS)),
    ?assertEqual([false, true, true, true, true], alone({once, {time, 3}, got(b)}, ?LETTERS)),
    ?assertEqual([false, true, true, true, false], alone({once, {time, 2}, got(b)}, ?LETTERS)).

a_window_ends_where_the_time_of_its_first_place_is_too_old_test() ->
    ?assertEqual([true, true, false], alone({once, {time, 3}, got(a)}, [{0, a}, {3, b}, {4, b}])).

since_begins_where_its_second_condition_holds_test() ->
    Other = {actions, [{recv, ['_', {lit, b}], []}, {recv, ['_', {lit, c}], []}]},
    ?assertEqual([true, true, true, true, true], alone({since, none, Other, got(a)}, ?LETTERS)),
    ?assertEqual([false, true, true, false, false], alone({since, none, got(b), got(b)}, ?LETTERS)),
    ?assertEqual([true, true, false, true, false], alone({since, {events, 2}, got(b), got(a)}, ?LETTERS)),
    ?assertEqual([true, true, true, true, false], alone({since, {time, 2}, Other, got(a)}, ?LETTERS)).

count_counts_places_test() ->
    ?assertEqual([0, 1, 2, 2, 2], alone({count, none, got(b)}, ?LETTERS)),
    ?assertEqual([0, 1, 2, 1, 0], alone({count, {events, 2}, got(b)}, ?LETTERS)).

the_times_of_a_window_do_not_go_back_test() ->
    %% From the second event on, all are read at 5.
    ?assertEqual([1, 0, 1, 2], alone({count, {time, 3}, got(a)}, [{0, a}, {5, b}, {1, a}, {3, a}])).

numbers_are_those_of_the_window_test() ->
    Numbers = [{0, x}, {1, 3}, {2, 1}, {3, x}, {4, -2}],
    ?assertEqual([0, 3, 4, 4, 2], alone({sum, none, {var, 'N'}, number()}, Numbers)),
    ?assertEqual([none, 3, 1, 1, -2], alone({min, none, {var, 'N'}, number()}, Numbers)),
    ?assertEqual([none, 3, 3, 1, -2], alone({max, {events, 2}, {var, 'N'}, number()}, Numbers)),
    ?assertEqual([none, 3.0, 2.0, 1.0, -2.0], alone({mean, {time, 1}, {var, 'N'}, number()}, Numbers)),
    ?assertEqual([0, 9, 10, 10, 14], alone({sum, none, {op, '*', [{var, 'N'}, {var, 'N'}]}, number()}, Numbers)).

floats_are_added_from_the_first_to_the_last_test() ->
    Any = {actions, [{recv, ['_', {var, 'N'}], []}]},
    Of = fun(Kind, Numbers) -> lists:last(alone({Kind, none, {var, 'N'}, Any}, [{0, Number} || Number <- Numbers])) end,
    ?assertEqual([-0.0, 3.0, 1.0, 1, [argument], [argument]],
                 [Of(sum, [-0.0]), Of(sum, [1, 2.0]), Of(min, [1.0, 1]), Of(max, [1, 1.0]), Of(sum, [1.0e308, 1.0e308]),
                  Of(mean, [1 bsl 1030])]).

the_first_action_that_matches_binds_test() ->
    Both = {actions, [{recv, ['_', {tuple, [{var, 'N'}, '_']}], []}, {recv, ['_', {tuple, ['_', {var, 'N'}]}], []}]},
    ?assertEqual([1], alone({sum, none, {var, 'N'}, Both}, [{0, {1, 2}}])).

what_is_no_number_ends_the_instance_there_test() ->
    Any = {actions, [{recv, ['_', {var, 'N'}], []}]},
    ?assertEqual([1, [argument], [argument]], alone({sum, none, {var, 'N'}, Any}, [{0, 1}, {1, a}, {2, 2}])),
    ?assertEqual([[argument]], alone({max, none, {op, '+', [{var, 'N'}, {lit, 1}]}, Any}, [{0, a}])).

an_event_without_a_time_ends_what_has_a_duration_test() ->
    Messages = [{0, a}, {undefined, b}, {2, a}],
    ?assertEqual([true, [no_time], [no_time]], alone({once, {time, 5}, got(a)}, Messages)),
    ?assertEqual([true, true, true], alone({once, {events, 3}, got(a)}, Messages)).

a_let_knows_those_in_front_of_it_at_each_place_test() ->
    Values = [{'A', {once, none, got(b)}},
              {'B', {previously, is({var, 'A'})}},
              {'C', {count, none, is({op, 'not', [{var, 'B'}]})}},
              {'D', {count, none, {actions, [{recv, ['_', {var, 'M'}], [[{op, '>', [{var, 'C'}, {var, 'K'}]}]]}]}}}],
    ?assertEqual([#{'A' => false, 'B' => false, 'C' => 1, 'D' => 0}, #{'A' => true, 'B' => false, 'C' => 2, 'D' => 1},
                  #{'A' => true, 'B' => true, 'C' => 2, 'D' => 2}],
                 witness_spec_oracle_values:places(Values, places([{0, a}, {0, b}, {0, a}]), #{'K' => 1})).

%% The values for 1 and for 2.
alone_for(Value, Messages) ->
    [case Known of #{'V' := For} -> {For([1]), For([2])}; {failed, Reasons} -> Reasons end
     || Known <- witness_spec_oracle_values:places([{'V', {each, ['X'], Value}}], places(Messages), #{})].

a_value_for_a_variable_is_that_under_each_valuation_test() ->
    Of = {actions, [{recv, ['_', {tuple, [{lit, a}, {var, 'X'}]}], []}, {recv, ['_', {lit, all}], []}]},
    Messages = [{0, {a, 1}}, {1, b}, {2, all}, {3, {a, 2}}],
    ?assertEqual([{1, 0}, {1, 0}, {2, 1}, {2, 2}], alone_for({count, none, Of}, Messages)),
    ?assertEqual([{1, 0}, {1, 0}, {1, 1}, {1, 2}], alone_for({count, {events, 2}, Of}, Messages)),
    ?assertEqual([{false, false}, {true, false}, {false, false}, {true, true}], alone_for({previously, Of}, Messages)).

a_value_that_fails_for_some_valuation_ends_the_instance_test() ->
    Of = {actions, [{recv, ['_', {tuple, [{var, 'X'}, {var, 'N'}]}], []}]},
    ?assertEqual([{2, 0}, [argument], [argument]], alone_for({sum, none, {var, 'N'}, Of}, [{0, {1, 2}}, {1, {7, x}}, {2, b}])).

a_let_asks_another_for_other_terms_test() ->
    Values = [{'A', {each, ['X', 'Y'], {once, none, {actions, [{recv, ['_', {tuple, [{var, 'X'}, {var, 'Y'}]}], []}]}}}},
              {'B', {each, ['X'], {count, none, {test, {ask, {var, 'A'}, [{lit, 1}, {var, 'X'}]}}}}}],
    Known = witness_spec_oracle_values:places(Values, places([{0, x}, {1, {1, 2}}, {2, {2, 1}}]), #{}),
    ?assertEqual([{0, 0}, {0, 1}, {0, 2}], [{B([1]), B([2])} || #{'B' := B} <- Known]).

%% `V` in a guard, in a pattern, and behind an action.
formulas_know_the_values_after_the_event_test() ->
    Property = #{signatures => [{'_', []}], dialect => check, group => false, per => [], over => all, name => undefined,
                 values => [{'V', {count, none, {actions, [{recv, ['_', '_'], []}]}}}],
                 formula => {max, 'X', [], {'and', [{box, {recv, ['_', {var, 'V'}], []}, ff},
                                                    {box, {recv, ['_', '_'], [[{op, '>', [{var, 'V'}, {lit, 3}]}]]}, ff},
                                                    {box, {'else', [], []}, {rec, 'X', []}}]}}},
    ?assertEqual([yes], verdicts(Property, [{0, 0}, {0, 1}, {0, 2}])),
    ?assertEqual([no], verdicts(Property, [{0, 0}, {0, 2}])),
    ?assertEqual([no], verdicts(Property, [{0, x}, {0, x}, {0, x}, {0, x}])).

verdicts(Property, Messages) ->
    {ok, Machine} = witness_spec_oracle:machine(Property, {m, f, []}),
    verdicts(trace(Messages), [], Machine).

verdicts([Event | Events], [], Machine) ->
    {Verdicts, Next} = witness_spec_oracle:event(Event, Machine),
    verdicts(Events, [Verdict || {none, Verdict, _} <- Verdicts], Next);
verdicts([], [], Machine) -> [Verdict || {none, Verdict, _} <- witness_spec_oracle:finish(Machine)];
verdicts(_, Verdicts, _) -> Verdicts.

the_text_is_that_of_the_grammar_test_() ->
    Written = fun(Values) ->
        Property = #{signatures => [{'_', []}], dialect => check, group => false, per => [], over => all, name => undefined,
                     values => Values, formula => ff},
        unicode:characters_to_binary(witness_spec_oracle_text:property(Property, 1))
    end,
    [?_assertEqual(<<"with _\n  let V = ", Text/binary, " check\n  ff">>, Written([{'V', Value}])) ||
        {Text, Value} <- [{<<"{_ ? a} since within 2 events {_ ? b}">>, {since, {events, 2}, got(a), got(b)}},
                          {<<"previously {_ ? a}">>, {previously, got(a)}},
                          {<<"count ({} == K)">>, {count, none, is({op, '==', [{tuple, []}, {var, 'K'}]})}}]].
