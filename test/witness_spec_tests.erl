%% Verdicts of compiled specifications, construct by construct, in both dialects and both notations.
-module(witness_spec_tests).
-include_lib("eunit/include/eunit.hrl").

-define(P, p).
-define(Q, q).

%% The examples of the documentation.

calc() ->
    "% the replies of a calculator\n"
    "reply_is_sum: with calc_server:loop(_)        % optional name\n"
    "monitor                                       % sHML (safety)\n"
    "  and([_ <- _, calc_server:loop(_)]\n"
    "    max(X. and([_ ? {_, {add, A, B}}]\n"
    "      and([_:_ ! {ok, R} when R =/= A + B] ff,\n"
    "          [_:_ ! {ok, R} when R =:= A + B] X)))).\n".

calc_replies_that_are_sums_are_undecided_test() ->
    Trace = [init(calc_server, loop, [0]), recv({c, {add, 1, 2}}), send({ok, 3}), recv({c, {add, 2, 2}}), send({ok, 4})],
    ?assertEqual(undecided, verdict(calc(), {calc_server, loop, [0]}, Trace)).

calc_reply_that_is_no_sum_is_a_violation_with_place_and_bindings_test() ->
    Trace = [init(calc_server, loop, [0]), recv({c, {add, 1, 2}}), send({ok, 3}), recv({c, {add, 2, 2}}), send({ok, 5})],
    ?assertEqual({no, 5, #{line => 6, column => 12, action => <<"_:_ ! {ok, R} when R =/= A + B">>, matched => true,
                           bindings => [{<<"A">>, 2}, {<<"B">>, 2}, {<<"R">>, 5}], vacuous => false}},
                 verdict(calc(), {calc_server, loop, [0]}, Trace)).

calc_that_is_asked_something_else_satisfies_and_that_is_not_vacuous_after_a_request_test() ->
    Trace = [init(calc_server, loop, [0]), recv({c, {add, 1, 2}}), send({ok, 3}), recv(stop)],
    ?assertMatch({yes, 4, #{vacuous := false, line := 5, action := <<"_ ? {_, {add, A, B}}">>}},
                 verdict(calc(), {calc_server, loop, [0]}, Trace)).

%% What a correct system never does may leave no trace: then it is no sign of a property that nothing came of.
what_is_forbidden_at_once_is_engaged_by_what_it_could_be_test() ->
    [?assertMatch({yes, _, #{vacuous := Vacuous}}, verdict(["with m:f(_) ", Formula, "."], Events), Formula)
     || {Formula, Events, Vacuous} <- [
            {"check [_ ? bad] ff", [recv(good)], false},
            {"check [_ ? bad] ff", [send(bad)], true},
            {"check [_ ? bad] tt", [recv(good)], true},
            {"check <_ ? good> tt or [_ ? bad] ff", [send(bad)], true},
            {"check max X. ([_ ? bad] ff and [_ : _ ! bad] X)", [recv(good)], false},
            {"check [_ ? bad] ff and [_ : _ ! bad] ff", [{exit, self(), normal, 0}], true}]].

an_alphabet_of_what_is_forbidden_may_be_silent_test() ->
    [with_spec(["with m:f(_) over ", Over, " check ", Formula, "."], fun(#{module := Module}) ->
         {ok, State, _} = Module:init({m, f, [0]}, self(), 1),
         {yes, Info} = Module:handle_end(complete, State),
         ?assertEqual(Vacuous, maps:get(vacuous, Info, false), {Over, Formula})
     end) || {Over, Formula, Vacuous} <- [
            {"_ ? bad", "[_ ? bad] ff", false},
            {"_ ? bad, _ : _ ! bad", "[_ ? _] ff and [_ : _ ! _] ff", false},
            {"_ ? bad, _ : _ ! bad", "max X. ([_ ? bad] ff and max Y. ([_ : _ ! _] ff))", false},
            {"_ ? bad, _ : _ ! ok", "[_ ? bad] ff", true},
            {"_ ? _", "max X. ([_ ? bad] ff and [_ ? good] X)", true},
            {"_ ? _", "[_ ? good] [_ ? bad] ff", true},
            {"_ ? _", "[_ ? _] tt", true}]].

calc_that_is_never_asked_satisfies_vacuously_test() ->
    ?assertMatch({yes, 2, #{vacuous := true}},
                 verdict(calc(), {calc_server, loop, [0]}, [init(calc_server, loop, [0]), died(normal)])).

token() ->
    "with token_server:loop(_, _)\n"
    "check\n"
    "  [{_ <- _, token_server:loop(Own, _)}]\n"
    "  max X.([{_ ? _}]([{_:_ ! Tok when Own =:= Tok}] ff and [{_:_ ! Tok when Own =/= Tok}] X)).\n".

token_server_that_gives_other_tokens_is_undecided_test() ->
    Trace = [init(token_server, loop, [1, 2]), recv(0), send(2), recv(0), send(3)],
    ?assertEqual(undecided, verdict(token(), {token_server, loop, [1, 2]}, Trace)).

token_server_that_gives_its_own_token_away_violates_test() ->
    Trace = [init(token_server, loop, [1, 2]), recv(0), send(2), recv(0), send(1)],
    ?assertMatch({no, 5, #{line := 4, column := 22, bindings := [{<<"Own">>, 1}, {<<"Tok">>, 1}]}},
                 verdict(token(), {token_server, loop, [1, 2]}, Trace)).

%% Actions.

every_kind_of_action_matches_its_event_only_test_() ->
    Events = #{fork => {fork, ?P, ?Q, {m, g, [1]}, 0}, init => {init, ?P, ?Q, {m, g, [1]}, 0}, exit => died(normal),
               send => send(msg), recv => recv(msg)},
    Written = [{fork, "A -> B, m:g(X)"}, {fork, "A --> B, m:g(_)"}, {fork, "_ -> _, Sig"},
               {init, "A <- B, m:g(X)"}, {init, "A <-- B, M:F(1)"}, {init, "_ <- _, _"},
               {exit, "A ** normal"}, {exit, "A * R"}, {exit, "A*R"},
               {send, "A : B ! msg"}, {send, "_:_!_"}, {recv, "A ? msg"}, {recv, "_?_"}],
    [{Text, [?_assertEqual({Kind, Verdict}, {Kind, element(1, verdict(["with m:f(_) check ", Formula, "."], [Event]))}) ||
             {Kind, Event} <- maps:to_list(Events),
             {Formula, Verdict} <- [{["[", Text, "] ff"], if Kind =:= Matched -> no; true -> yes end},
                                    {["[{", Text, "}] ff"], if Kind =:= Matched -> no; true -> yes end},
                                    {["<", Text, "> tt"], if Kind =:= Matched -> yes; true -> no end},
                                    {["<{", Text, "}> tt"], if Kind =:= Matched -> yes; true -> no end}]]} ||
     {Matched, Text} <- Written].

patterns_and_guards_are_erlangs_own_test_() ->
    Cases = [{"#{a := A, {k, 1} := [_ | T]}", #{a => 1, {k, 1} => [x]}, #{a => 1}},
             {"<<\"ab\", N, Rest:N/binary, _/bits>>", <<"ab", 2, "xyz">>, <<"ab", 9, "xyz">>},
             {"\"text\" ++ _", "texts", "tex"},
             {"~\"bin\"", <<"bin">>, "bin"},
             {"$c", $c, $d},
             {"{A, A}", {1, 1}, {1, 1.0}},
             {"{A, B} = {_, {c, _}}", {1, {c, 2}}, {1, 2}},
             {"[1, 2.5, -3, 16#ff, 'quoted atom']", [1, 2.5, -3, 255, 'quoted atom'], [1, 2.5, 3, 255, 'quoted atom']},
             {"(2 * 3)", 6, 5},
             {"X when X > 3, X < 7; X =:= stop", 5, 8},
             {"X when (X =:= 1) or (X =:= 2) andalso true", 2, 3},
             {"X when is_map_key(a, X) andalso map_get(a, X) > 1", #{a => 2}, #{a => 1}},
             {"{A, B} when #{A => B} =:= #{1 => 2}", {1, 2}, {2, 1}},
             {"{A, B} when A + length(B) >= 3; B =:= x", {1, [a, b]}, {1, [a]}},
             {"{A, B} when <<A, 1>> =:= B", {0, <<0, 1>>}, {0, <<0, 2>>}},
             {"X when erlang:is_atom(X), not is_boolean(X)", a, true},
             {"{A, B} when (A > B) or (is_tuple(B) andalso length(b) > 1)", {2, 1}, {#{}, {}}},
             {"{A, B} when not ((is_tuple(B) andalso length(b) > 1) and (A > B))", {2, 1}, {2, {}}},
             {"[_, {'é', \"ü→\"}]", [0, {'é', "ü→"}], [0, {'é', "ü"}]}],
    [{Text, ?_assertEqual({no, yes}, {element(1, verdict(["with m:f(_) monitor [P ? ", Text, "] ff."], [recv(Good)])),
                                      element(1, verdict(["with m:f(_) monitor [P ? ", Text, "] ff."], [recv(Bad)]))})} ||
     {Text, Good, Bad} <- Cases].

a_guard_with_greater_in_a_diamond_needs_parentheses_or_braces_test() ->
    [?assertMatch({yes, 1, _}, verdict(["with m:f(_) check ", Formula], [recv(3)])) ||
     Formula <- ["<P ? X when (X > 2)> tt.", "<{P ? X when X > 2}> tt.", "<P ? X when X >= 2> tt.", "<P ? X when 2 < X> tt."]],
    ?assertMatch({yes, 1, _}, verdict("with m:f(_) check <{P ? <<1>>}> tt.", [recv(<<1>>)])),
    ?assertMatch({yes, 1, _}, verdict("with m:f(_) check <P ? <<1>>>tt.", [recv(<<1>>)])),
    ?assertMatch({yes, 1, _}, verdict("with m:f(_) check <{P ? #{a := b}}> tt.", [recv(#{a => b})])).

a_tuple_pattern_of_a_process_is_not_taken_for_braces_test() ->
    ?assertMatch({no, 1, _},
                 verdict("with m:f(_) monitor [{external, N} ? a] ff.", [{recv, {external, <<"x">>}, undefined, a, 0}])).

%% Formulas.

both_notations_mean_the_same_test_() ->
    Forms = ["max(X. and([_ ? a] X, [_ ? b] ff))",
             "max X. and([_ ? a] X, [_ ? b] ff)",
             "max X.(and([_ ? a] X, [_ ? b] ff))",
             "max X. [_ ? a] X and [_ ? b] ff",
             "max X.([_ ? a] X and [_ ? b] ff)",
             "max(X.([_ ? a] X) and [_ ? b] (ff))",
             "(max X . ([{_ ? a}] X and ([{_ ? b}] ff)))",
             "max X.\n  [_ ? a] X % comment. with dot\n  and [_ ? b]\n ff"],
    [{Form, [?_assertMatch({no, 3, _}, verdict(["with m:f(_) ", Dialect, " ", Form, "."], [recv(a), recv(a), recv(b)])) ||
             Dialect <- ["monitor", "check"]]} || Form <- Forms].

or_binds_less_than_and_and_modalities_bind_most_test() ->
    Formula = "with m:f(_) check <_ ? a> tt or <_ ? b> tt and <_ ? c> tt.",
    ?assertMatch({yes, 1, _}, verdict(Formula, [recv(a)])),
    ?assertMatch({no, 1, _}, verdict(Formula, [recv(b)])),
    ?assertMatch({no, 1, _}, verdict("with m:f(_) check <_ ? a> ff and tt or ff.", [recv(a)])).

prefix_or_offers_alternatives_test() ->
    Formula = "with m:f(_) check or(<_ ? a> tt, <_ ? b> <_ ? c> tt, [_ ? _] ff).",
    ?assertMatch({yes, 1, _}, verdict(Formula, [recv(a)])),
    ?assertMatch({yes, 2, _}, verdict(Formula, [recv(b), recv(c)])),
    ?assertMatch({no, 2, _}, verdict(Formula, [recv(b), recv(d)])),
    ?assertMatch({yes, 1, _}, verdict(Formula, [send(b)])).

min_is_unfolded_as_max_is_and_false_at_the_end_test() ->
    Formula = "with m:f(_) check min X. or(<_ ? b> tt, <_ ? a> X).",
    ?assertMatch({yes, 3, _}, verdict(Formula, [recv(a), recv(a), recv(b)])),
    ?assertMatch({no, 2, _}, verdict(Formula, [recv(a), recv(c)])),
    ?assertMatch({no, complete, #{line := 1, column := 19}}, verdict(Formula, [recv(a), recv(a), complete])).

what_is_true_or_false_at_once_is_told_at_the_first_event_test() ->
    ?assertMatch({yes, 1, #{vacuous := true, line := 1, column := 19}}, verdict("with m:f(_) check tt.", [recv(a)])),
    ?assertMatch({no, 1, #{vacuous := false}}, verdict("with m:f(_) check ff and [_ ? a] tt.", [recv(a)])),
    ?assertMatch({yes, 1, _}, verdict("with m:f(_) check [_ ? a] ff or (tt and max X. tt).", [recv(a)])).

the_end_rule_holds_boxes_and_fails_diamonds_test() ->
    [?assertMatch({Verdict, complete, _}, verdict(["with m:f(_) check [_ ? x] ", Formula, "."], [recv(x), complete])) ||
     {Formula, Verdict} <- [{"[_ ? a] ff", yes}, {"<_ ? a> tt", no}, {"([_ ? a] ff and <_ ? a> tt)", no},
                            {"([_ ? a] ff or <_ ? a> tt)", yes}, {"([_ ? a] ff or max X.(<_ ? a> X and [_ ? b] ff))", yes}]].

watching_that_stops_is_inconclusive_test() ->
    ?assertEqual({inconclusive, stopped, #{}}, verdict("with m:f(_) check [_ ? x] ff.", [stopped])),
    ?assertEqual({inconclusive, stopped, #{}}, verdict("with m:f(_) check [_ ? x] <_ ? y> ff.", [stopped])),
    ?assertEqual({inconclusive, stopped, #{reason => pending, line => 1, column => 28, action => ~"_ ? y", bindings => []}},
                 verdict("with m:f(_) check [_ ? x] <_ ? y> ff.", [recv(x), stopped])).

variables_scope_over_the_continuation_and_mean_equality_test() ->
    Formula = "with m:f(_) monitor [_ ? {req, Id}] max X. and([_ : _ ! {res, Id, V}] [_ : _ ! V] ff, [_ ? _] X).",
    ?assertMatch({no, 4, #{bindings := [{<<"V">>, 7}]}}, verdict(Formula, [recv({req, 1}), recv(x), send({res, 1, 7}), send(7)])),
    ?assertMatch({yes, 2, _}, verdict(Formula, [recv({req, 1}), send({res, 2, 7})])),
    ?assertMatch({yes, 3, _}, verdict(Formula, [recv({req, 1}), send({res, 1, 7}), send(7.0)])).

variables_bound_in_a_loop_are_new_each_time_around_test() ->
    Formula = "with m:f(_) monitor max X. [_ ? N] and([_ : _ ! N] X, [_ : _ ! M when M =/= N] ff).",
    ?assertEqual(undecided, verdict(Formula, [recv(1), send(1), recv(2), send(2)])),
    ?assertMatch({no, 4, _}, verdict(Formula, [recv(1), send(1), recv(2), send(1)])).

variables_in_front_of_a_loop_keep_their_value_test() ->
    Formula = "with m:f(_) monitor [_ ? N] max X. and([_ ? M when M =:= N] ff, [_ ? M when M =/= N] X).",
    ?assertMatch({no, 4, _}, verdict(Formula, [recv(1), recv(2), recv(3), recv(1)])).

inner_loops_return_to_outer_ones_test() ->
    Formula = "with m:f(_) monitor max X. [_ ? A] max Y. and([_ ? {in, A}] Y, [_ ? out] X, [_ ? {bad, A}] ff).",
    ?assertMatch({no, 6, _}, verdict(Formula, [recv(1), recv({in, 1}), recv({in, 1}), recv(out), recv(2), recv({bad, 2})])),
    ?assertMatch({yes, 5, _}, verdict(Formula, [recv(1), recv({in, 1}), recv(out), recv(2), recv({bad, 1})])).

obligations_that_pile_up_are_kept_apart_by_their_data_test() ->
    Formula = "with m:f(_) check max X. and([_ ? {req, Id}] (X and min Y. or(<_ : _ ! {res, Id}> tt, <_ ? _> Y,"
              " <_ : _ ! {res, Other} when Other =/= Id> Y)), [_ : _ ! _] X).",
    ?assertEqual(undecided, verdict(Formula, [recv({req, 1}), recv({req, 2}), recv({req, 1}), send({res, 2}), send({res, 1})])),
    ?assertMatch({no, complete, #{bindings := [{<<"Id">>, 2}]}},
                 verdict(Formula, [recv({req, 1}), recv({req, 2}), recv({req, 1}), send({res, 1}), complete])).

many_obligations_that_move_at_once_stay_apart_test() ->
    Formula = "with m:f(_) check max X.([_ ? {new, Id}] (X and max Y.([_ : _ ! tick] max Z.([_ : _ ! tock] Y"
              " and [_ ? {'end', Id}] ff and [_ ? {new, _}] Z) and [_ ? {new, _}] Y)) and [_ : _ ! _] X).",
    New = [recv({new, N}) || N <- lists:seq(1, 30)],
    ?assertMatch({no, 32, #{bindings := [{<<"Id">>, 17}]}}, verdict(Formula, New ++ [send(tick), recv({'end', 17})])),
    ?assertMatch({yes, 32, _}, verdict(Formula, New ++ [send(tick), recv({'end', 31})])),
    ?assertMatch({yes, 33, _}, verdict(Formula, New ++ [send(tick), send(tock), recv({'end', 17})])),
    ?assertMatch({no, 34, _}, verdict(Formula, New ++ [send(tick), send(tock), send(tick), recv({'end', 30})])).

too_many_obligations_are_inconclusive_test() ->
    Formula = "with m:f(_) check max X. [_ ? Id] (X and max Y.([_ ? A when A =/= Id] Y and [_ ? Id] ff)).",
    ?assertEqual(undecided, verdict(Formula, [recv(N) || N <- lists:seq(1, 900)])),
    ?assertMatch({no, 901, _}, verdict(Formula, [recv(N) || N <- lists:seq(1, 900)] ++ [recv(450)])),
    ?assertMatch({inconclusive, _, #{reason := too_many_obligations}},
                 verdict(Formula, [recv(N) || N <- lists:seq(1, 1100)])).

data_that_is_equal_but_not_the_same_is_not_one_obligation_test() ->
    Formula = "with m:f(_) check max X. [_ ? Id] (X and max Y.([_ ? {stop, Id}] ff and [_ ? A when A =/= {stop, Id}] Y)).",
    ?assertMatch({no, 3, _}, verdict(Formula, [recv(1), recv(1.0), recv({stop, 1})])),
    ?assertMatch({no, 3, _}, verdict(Formula, [recv(1), recv(1.0), recv({stop, 1.0})])).

names_that_the_generator_likes_are_free_for_authors_test() ->
    Formula = "with m:f(Event, State, Signature) monitor [_ ? {Event, State}] [_ ? Event@1] [_ ? {Signature, Event@1}] ff.",
    ?assertMatch({no, 3, _}, verdict(Formula, {m, f, [1, 2, 3]}, [recv({1, 2}), recv(x), recv({3, x})])).

what_is_bound_before_can_be_a_key_or_a_size_test() ->
    [begin
         ?assertMatch({no, 1, _}, verdict(["with m:g(B) ", Over, " check [_ ? ", Pattern, "] ff."], {m, g, [8]}, [recv(Good)])),
         ?assertMatch({yes, 1, #{matched := false}},
                      verdict(["with m:g(B) check [_ ? ", Pattern, "] ff."], {m, g, [9]}, [recv(Good)]))
     end || {Pattern, Good} <- [{"<<_:B>>", <<1>>}, {"#{B := _}", #{8 => x}}], Over <- ["", ["over _ ? ", Pattern]]].

overlapping_branches_all_have_to_hold_test() ->
    Formula = "with m:f(_) check [_ ? {A, _}] [_ ? A] tt and [_ ? {_, B}] [_ ? B] ff and [_ ? {x, x}] ff.",
    ?assertMatch({no, 2, #{column := 61}}, verdict(Formula, [recv({1, 2}), recv(2)])),
    ?assertMatch({yes, 2, _}, verdict(Formula, [recv({1, 2}), recv(1)])),
    ?assertMatch({no, 1, _}, verdict(Formula, [recv({x, x})])).

%% Signatures and entries.

variables_of_every_signature_scope_over_the_formula_test() ->
    Source = "with m:f(A, _) when A > 1, m:g(A) when is_atom(A), erlang:is_atom(A), n:f(_, A) group check [_ ? A] ff.",
    ?assertMatch({no, 1, _}, verdict(Source, {m, f, [2, 0]}, [recv(2)])),
    ?assertMatch({yes, 1, _}, verdict(Source, {m, f, [2, 0]}, [recv(0)])),
    ?assertMatch({no, 1, _}, verdict(Source, {m, g, [a]}, [recv(a)])),
    ?assertMatch({no, 1, _}, verdict(Source, {n, f, [0, 5]}, [recv(5)])),
    ?assertEqual(ignore, verdict(Source, {m, f, [1, 0]}, [recv(1)])),
    ?assertEqual(ignore, verdict(Source, {m, g, [1]}, [recv(1)])),
    ?assertEqual(ignore, verdict(Source, {m, g, []}, [recv(1)])).

entries_say_what_stands_in_the_file_test() ->
    Source = "one: with m:f(A) when A > 0, erlang:is_integer(A), n:f(_) group\nmonitor [_ ? a] ff.\n\n"
             "with 'Elixir.My.Mod':'f!'(), M:F(x) check [_ ? b] ff,\n'the third': with m:f(_) none.",
    with_spec(Source, fun(#{file := <<"test.hml">>, module := Module, entries := Entries}) ->
        ?assertEqual([#{index => 1, name => <<"one">>, line => 1, all => false, group => true, per => [],
                        receives => any, functions => [], action => monitor,
                        signature => <<"m:f(A) when A > 0, erlang:is_integer(A), n:f(_)">>,
                        names => [{m, f, 1}, {n, f, 1}]},
                      #{index => 2, name => undefined, line => 4, all => false, group => false, per => [],
                        receives => any, functions => [], action => monitor,
                        signature => <<"'Elixir.My.Mod':'f!'(), M:F(x)">>,
                        names => [{'Elixir.My.Mod', 'f!', 0}, {'_', '_', 1}]},
                      #{index => 3, name => <<"the third">>, line => 5, all => false, group => false, per => [],
                        receives => any, functions => [], action => none,
                        signature => <<"m:f(_)">>, names => [{m, f, 1}]}], Entries),
        ?assertEqual([1, 3], Module:match({m, f, [1]})),
        ?assertEqual([3], Module:match({m, f, [0]})),
        ?assertEqual([1], Module:match({n, f, [0]})),
        ?assertEqual([2], Module:match({'Elixir.My.Mod', 'f!', []})),
        ?assertEqual([2], Module:match({a, b, [x]})),
        ?assertEqual([], Module:match({n, f, []})),
        ?assertEqual([], Module:match({erlang, is_integer, [1]})),
        ?assertEqual([], Module:match(nonsense)),
        ?assertEqual(all, Module:alphabet(1)),
        ?assertEqual(ignore, Module:init({m, f, [1]}, self(), 3)),
        ?assertEqual(ignore, Module:init({m, f, [1]}, self(), 17))
    end).

words_of_the_language_are_atoms_inside_guards_and_patterns_test() ->
    Source = "with m:f(A) when A =:= check; A =:= monitor group monitor [group ? {with, monitor, check, none, tt, ff, max}] ff.",
    ?assertMatch({no, 1, _}, verdict(Source, {m, f, [check]}, [{recv, group, 0, {with, monitor, check, none, tt, ff, max}, 0}])).

%% Over and per.

an_event_that_over_does_not_name_is_not_seen_test() ->
    Source = "with m:f(Own) over _ : _ ! {V, Own}, _ ? go when Own > 0 monitor [_ ? go] [_ : _ ! {1, _}] ff.",
    with_spec(Source, fun(#{module := Module}) ->
        {ok, State, Filter} = Module:init({m, f, [7]}, self(), 1),
        ?assertEqual([all, skip, all, skip, skip, skip],
                     [Module:slice(Event, Filter) ||
                      Event <- [send({1, 7}), send({1, 8}), recv(go), recv(stay), init(m, f, [7]), died(normal)]]),
        {ok, _, NotPositive} = Module:init({m, f, [0]}, self(), 1),
        ?assertEqual(skip, Module:slice(recv(go), NotPositive)),
        {ok, Next} = Module:handle_event(recv(go), State),
        ?assertMatch({verdict, no, #{line := 1}}, Module:handle_event(send({1, 7}), Next))
    end).

the_first_action_that_matches_chooses_the_slice_test() ->
    Source = "with m:f(Own) per A, B over _ ? {x, B, A}, _ ? {x, 1, 2, 3}, _ ? {A, B, _, _} when A =/= Own, _ ** _"
             " monitor [_ ? _] [_ ? {x, B, A}] [_ ? Own] ff.",
    with_spec(Source, fun(#{module := Module}) ->
        {slices, Filter} = Module:init({m, f, [0]}, self(), 1),
        ?assertEqual([{slice, {2, 1}}, all, {slice, {x, 1}}, skip, skip, all],
                     [Module:slice(Event, Filter) ||
                      Event <- [recv({x, 1, 2}), recv({x, 1, 2, 3}), recv({x, 1, 2, 4}), recv({0, 1, 2, 4}), send(a), died(a)]]),
        ?assertEqual([<<"A">>, <<"B">>], Module:slice_names(Filter)),
        First = Module:instance({2, 1}, Filter),
        {ok, Second} = Module:handle_event(recv(go), First),
        ?assertMatch({verdict, yes, #{matched := false}}, Module:handle_event(recv({x, 2, 1}), Second)),
        {ok, Third} = Module:handle_event(recv({x, 1, 2}), Second),
        ?assertMatch(#{bindings := [{<<"Own">>, 0}]}, Module:describe(Third)),
        ?assertMatch({verdict, no, #{bindings := [{<<"Own">>, 0}], matched := true}}, Module:handle_event(recv(0), Third))
    end).

values_of_a_slice_are_compared_exactly_test() ->
    with_spec("with m:f(_) per A over _ ? {A, _} monitor [_ ? {A, x}] ff.", fun(#{module := Module}) ->
        {slices, Filter} = Module:init({m, f, [0]}, self(), 1),
        ?assertMatch({verdict, yes, #{matched := false}}, Module:handle_event(recv({1.0, x}), Module:instance({1}, Filter))),
        ?assertMatch({verdict, no, _}, Module:handle_event(recv({1, x}), Module:instance({1}, Filter)))
    end).

only_marked_actions_begin_a_slice_test() ->
    Source = "with m:f(_) per A over begin _ ? {A, x}, _ : _ ! A, _ ** _ check <_ ? _> tt.",
    with_spec(Source, fun(#{module := Module}) ->
        {slices, Filter} = Module:init({m, f, [x]}, self(), 1),
        ?assertEqual([{slice, {1}}, {live, {1}}, all, skip],
                     [Module:slice(E, Filter) || E <- [{recv, p, q, {1, x}, 0}, {send, p, q, 1, 0}, {exit, p, normal, 0},
                                                       {recv, p, q, {1, y}, 0}]])
    end).

a_file_may_mix_properties_with_and_without_over_test() ->
    Source = "with m:f(A) monitor [_ ? A] ff.\nwith m:f(A) over _ ? _ monitor [_ ? A] ff.\n"
             "with m:f(_) per A over _ ? A monitor [_ ? A] ff.\nwith m:g() none.\nwith m:f(_) per A over _ : _ ! A check tt.",
    with_spec(Source, fun(#{module := Module}) ->
        ?assertMatch({ok, {fresh, _}}, Module:init({m, f, [0]}, self(), 1)),
        {ok, _, Two} = Module:init({m, f, [0]}, self(), 2),
        {slices, Three} = Module:init({m, f, [0]}, self(), 3),
        {slices, Five} = Module:init({m, f, [0]}, self(), 5),
        ?assertEqual(ignore, Module:init({m, g, []}, self(), 4)),
        ?assertEqual([all, {slice, {5}}, skip], [Module:slice(recv(5), Filter) || Filter <- [Two, Three, Five]]),
        ?assertEqual([all, [recv], [recv], all, [send]], [Module:alphabet(N) || N <- [1, 2, 3, 4, 5]]),
        ?assertMatch({verdict, yes, #{vacuous := true}}, Module:handle_event(send(1), Module:instance({1}, Five)))
    end).

an_alphabet_says_what_match_specifications_can_say_test_() ->
    [{Over, ?_assertEqual(Alphabet, with_spec(["with m:f(Own) over ", Over, " monitor [_ ? _] ff."],
                                              fun(#{module := Module}) -> Module:alphabet(1) end))} ||
     {Over, Alphabet} <-
         [{"_ -> _, _, _ <- _, m:f(1), _ ** normal", [fork, init, exit]},
          {"_ : _ ! _, _ : _ ! x", [send]},
          {"_ ? {'$gen_call', {_, A}, {add, B, 1}} when B > 1", [{recv, heads([['_', {'$gen_call', {'_', '_'}, {add, '_', 1}}]])}]},
          {"_ ? Own, _ : name ! stop, _ : _ ! [a, $b | T]",
           [{send, heads([['_', [a, $b | '_']], [name, stop]])}, recv]},
          {"_ ? #{a := 1}, _ : _ ! stop", [{send, heads([['_', stop]])}, recv]},
          {"_ : _ ! {<<1>>, #{}, \"ab\", [], 1.0, -1}", [{send, heads([['_', {'_', '_', "ab", [], '_', '_'}]])}]},
          {"_ : _ ! (A = {B, x}), _ : _ ! ({y, _} = A)", [{send, heads([['_', {'_', x}], ['_', {y, '_'}]])}]},
          {"_ ? {x, A, A}, _ ? {x, B, B}", [{recv, heads([['_', {x, '_', '_'}]])}]},
          %% Calls that are received, and whatever may be their reply.
          {"_ : _ ! reply(_, {ok, _}) to next, _ : a ! {b, c, d}",
           [{send, heads([['_', {'_', '_'}], ['_', {'_', {ok, '_'}}], [a, {b, c, d}]])},
            {recv, heads([['_', {'$gen_call', '_', '_'}]])}]},
          {"_ ? a, _ : _ ! reply(_, _) to next, _ : _ ! _", [send, {recv, heads([['_', a], ['_', {'$gen_call', '_', '_'}]])}]},
          %% What would be a variable of a match specification, or could be one.
          {"_ ? {'$1', '$999', '_', '$x', '$'}", [{recv, heads([['_', {'_', '_', '_', '$x', '$'}]])}]}]].

heads(Heads) -> [{Head, [], []} || Head <- Heads].

%% Whatever an alphabet leaves out, the monitor would have passed over.
an_alphabet_leaves_out_nothing_that_the_monitor_reads_test() ->
    Source = "with m:f(Own) over _ : _ ! {A, A} when A > 1, _ : to ! {'$1', '$1', _}, _ ? [Own | _], _ ? {1.0, -2, \"s\" ++ _}"
             " monitor [_ ? _] ff.",
    with_spec(Source, fun(#{module := Module}) ->
        {ok, _, Filter} = Module:init({m, f, [0]}, self(), 1),
        Alphabet = Module:alphabet(1),
        Terms = [0, 1, 2, 2.0, '$1', '$2', to],
        Messages = Terms ++ [[0 | x], [0, 1], [], {1.0, -2, "st"}, {1, -2, "st"}, {1.0, 2, "t"}]
            ++ [{A, B} || A <- Terms, B <- Terms] ++ [{A, B, C} || A <- Terms, B <- Terms, C <- [x, '$1']],
        Read = [Event || Message <- Messages, To <- [to, self()],
                         Event <- [{send, self(), To, Message, 0}, {recv, self(), To, Message, 0}],
                         Module:slice(Event, Filter) =:= all],
        ?assert(length(Read) > 10),
        [begin
             Spec = ets:match_spec_compile([{Head, Guard, [true]} || {Head, Guard, []} <- proplists:get_value(Kind, Alphabet)]),
             ?assertEqual({Event, [true]}, {Event, ets:match_spec_run([[Peer, Message]], Spec)})
         end || {Kind, _, Peer, Message, _} = Event <- Read, not lists:member(Kind, Alphabet)]
    end).

%% Coverage.

the_actions_of_a_property_are_listed_in_the_order_of_the_source_test() ->
    Source = "with m:f(_) check\n max X.([_ ? a] [_ ? b] ff\n and <_ : _ ! c> tt and [_ ? d] X).\nwith m:f(_) monitor [_ ? e] ff.",
    with_spec(Source, fun(#{module := Module}) ->
        One = Module:coverage(1),
        ?assertEqual([{2, 10, <<"_ ? a">>, undefined}, {2, 18, <<"_ ? b">>, no}, {3, 7, <<"_ : _ ! c">>, yes},
                      {3, 26, <<"_ ? d">>, undefined}],
                     [{Line, Column, Text, Decides} ||
                      #{line := Line, column := Column, text := Text, decides := Decides} <- One]),
        [#{id := Last, text := <<"_ ? e">>}] = Module:coverage(2),
        ?assertEqual(lists:seq(1, 5), lists:sort([Last | [Id || #{id := Id} <- One]])),
        ?assertEqual([], Module:coverage(3))
    end).

an_action_that_matches_is_marked_test_() ->
    Source = "with m:f(_) check max X.([_ ? {a, N}] [_ ? b] ff and [_ ? {N, a}] X and [_ : _ ! d] X)",
    [{Text, ?_assertEqual(Marked, marked(Source, Trace))} ||
     {Text, Trace, Marked} <- [{"none", [], []},
                               {"the first, which leaves the others", [recv({a, 1})], [<<"_ ? {a, N}">>]},
                               {"one of a group, time and again", [send(d), send(d)], [<<"_ : _ ! d">>]},
                               {"several by one event", [recv({a, a})], [<<"_ ? {N, a}">>, <<"_ ? {a, N}">>]},
                               {"what decides", [recv({a, 1}), recv(b)], [<<"_ ? b">>, <<"_ ? {a, N}">>]}]].

marked(Source, Trace) ->
    with_spec([Source, "."], fun(#{module := Module}) ->
        {_, Ref} = spawn_monitor(fun() ->
            {ok, State} = Module:init({m, f, [0]}, self(), 1),
            _ = run(Module, Trace, 1, State),
            Ids = [Id || {_, Id} <- get(), is_integer(Id)],
            exit({marked, lists:sort([Text || #{id := Id, text := Text} <- Module:coverage(1), lists:member(Id, Ids)])})
        end),
        receive {'DOWN', Ref, process, _, {marked, Texts}} -> Texts end
    end).

%% Each loop begins those around it, so that the ways from the last to the first are 2 to the power of 58.
loops_that_begin_each_other_are_compiled_once_test_() ->
    Loop = fun Loop(N) ->
        Begun = [["X", integer_to_list(I), " and "] || I <- lists:seq(1, N - 1)],
        ["max X", integer_to_list(N), ".(", Begun, "[_ ? ", integer_to_list(N), "] ",
         if N < 60 -> Loop(N + 1); true -> "within 5 s <_ ? ok> tt" end, ")"]
    end,
    {timeout, 60, fun() ->
        {ok, Map, _} = witness_spec:compile_string(~"loops", iolist_to_binary(["with m:f(_) over _ ? _ check ", Loop(1), "."]), #{}),
        witness_spec:unload(Map)
    end}.

%% The limit of obligations.

the_limit_of_obligations_can_be_chosen_test() ->
    Source = <<"with m:f(_) check max X. [_ ? Id] (X and max Y.([_ ? A when A =/= Id] Y and [_ ? Id] ff)).">>,
    [begin
         {ok, #{module := Module} = Map, _} = witness_spec:compile_string(<<"test.hml">>, Source, #{max_obligations => Limit}),
         {ok, State} = Module:init({m, f, [0]}, self(), 1),
         %% `X and max Y...` counts as one, until it takes a step.
         ?assertEqual({inconclusive, Limit + 1, #{reason => too_many_obligations}},
                      run(Module, [recv(N) || N <- lists:seq(1, 50)], 1, State)),
         witness_spec:unload(Map)
     end || Limit <- [1, 2, 20]].

%% Explanations.

a_description_is_the_source_text_with_the_bindings_test() ->
    with_spec(calc(), fun(#{module := Module}) ->
        {ok, S0} = Module:init({calc_server, loop, [0]}, self(), 1),
        ?assertMatch(#{formula := <<"[_ <- _, calc_server:loop(_)] max(X. and([_ ? {_, ", _/binary>>, bindings := []},
                     Module:describe(S0)),
        {ok, S1} = Module:handle_event(init(calc_server, loop, [0]), S0),
        {ok, S2} = Module:handle_event(recv({c, {add, 1, 2}}), S1),
        ?assertEqual(#{formula => <<"and([_:_ ! {ok, R} when R =/= A + B] ff, [_:_ ! {ok, R} when R =:= A + B] X)">>,
                       bindings => [{<<"A">>, 1}, {<<"B">>, 2}]}, Module:describe(S2))
    end).

a_description_of_several_obligations_joins_them_and_is_bounded_test() ->
    with_spec("with m:f(_) check max X. [_ ? Id] (X and max Y. [_ : _ ! Id] Y).", fun(#{module := Module}) ->
        {ok, S0} = Module:init({m, f, [0]}, self(), 1),
        {ok, S1} = Module:handle_event(recv(7), S0),
        ?assertEqual(#{formula => <<"X and max Y. [_ : _ ! Id] Y">>, bindings => [{<<"Id">>, 7}]}, Module:describe(S1))
    end),
    with_spec("with m:f(_) check max X. [_ ? Id] (X and max Y. [_ ? _] Y and [_ : _ ! Id] ff).", fun(#{module := Module}) ->
        {ok, S0} = Module:init({m, f, [0]}, self(), 1),
        #{formula := Formula} = Module:describe(run_all(Module, [recv(N) || N <- lists:seq(1, 500)], S0)),
        ?assert(byte_size(Formula) < 2000),
        ?assertMatch({_, _}, binary:match(Formula, <<"more">>))
    end).

the_text_of_a_long_formula_is_cut_test() ->
    Source = ["with m:f(_) monitor ", [["[_ ? {number, ", integer_to_list(N), "}] "] || N <- lists:seq(1, 100)], "ff."],
    with_spec(Source, fun(#{module := Module}) ->
        {ok, S0} = Module:init({m, f, [0]}, self(), 1),
        #{formula := Formula} = Module:describe(S0),
        ?assert(byte_size(Formula) < 300),
        ?assertEqual(<<"...">>, binary:part(Formula, byte_size(Formula), -3))
    end).

%% The generated module.

a_loop_without_data_allocates_no_state_test() ->
    with_spec("with m:f(_) monitor max X. and([_ ? a] X, [_ ? b] ff).", fun(#{module := Module}) ->
        {ok, S0} = Module:init({m, f, [0]}, self(), 1),
        {ok, S1} = Module:handle_event(recv(a), S0),
        {ok, S2} = Module:handle_event(recv(a), S1),
        ?assert(is_integer(S2))
    end).

the_generated_source_compiles_to_the_same_monitor_test() ->
    File = write("generated.hml", [calc(), token(), "with m:f(Ü) check [_ ? {Ü, 'ä→', \"→\"}] ff or <_ ? _> tt.",
                                   " with m:g() none."]),
    {ok, Source} = witness_spec:to_erlang(File),
    ok = remove(File),
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Source)),
    Forms = [begin {ok, Form} = erl_parse:parse_form(Part), Form end || Part <- split(Tokens, [])],
    {ok, Module, Object} = compile:forms(Forms, [binary, return_errors, nowarn_behaviours]),
    try
        {module, Module} = code:load_binary(Module, "", Object),
        {ok, S0} = Module:init({calc_server, loop, [0]}, self(), 1),
        {ok, S1} = Module:handle_event(init(calc_server, loop, [0]), S0),
        {ok, S2} = Module:handle_event(recv({c, {add, 1, 2}}), S1),
        ?assertMatch({verdict, no, #{line := 6}}, Module:handle_event(send({ok, 4}), S2)),
        ?assertEqual([3], Module:match({m, f, [0]}))
    after
        code:delete(Module),
        code:purge(Module)
    end.

split([{dot, _} = Dot | Rest], Form) -> [lists:reverse(Form, [Dot]) | split(Rest, [])];
split([Token | Rest], Form) -> split(Rest, [Token | Form]);
split([], []) -> [].

a_file_is_compiled_under_its_name_test() ->
    File = write("calc.hml", calc()),
    {ok, #{file := Name} = Map, []} = witness_spec:compile_file(File),
    ok = remove(File),
    ?assertEqual(unicode:characters_to_binary(File), Name),
    ?assertEqual(ok, witness_spec:unload(Map)).

%% Helpers.

init(M, F, Args) -> {init, ?P, ?Q, {M, F, Args}, 0}.
died(Reason) -> {exit, ?P, Reason, 0}.
recv(Msg) -> {recv, ?P, ?Q, Msg, 0}.
send(Msg) -> {send, ?P, ?Q, Msg, 0}.

verdict(Source, Trace) -> verdict(Source, {m, f, [0]}, Trace).

%% --- object code that is kept --------------------------------------------------------------------

%% Each test of a project compiles the same specifications.
what_was_compiled_is_kept_test() ->
    forget_kept(),
    File = write("kept.hml", kept_source(0)),
    Object = fun(Options) -> {ok, {_, Code}, _} = witness_spec:to_object(File, witness_spec_code_0, Options), Code end,
    Code = Object(#{}),
    [{Key, Code}] = kept(),
    ?assertEqual(Code, Object(#{})),
    %% It is what the next compilation gives.
    ok = persistent_term:put(Key, ~"kept"),
    ?assertEqual(~"kept", Object(#{})),
    ?assertNotEqual(~"kept", Object(#{max_obligations => 7})),
    ok = file:write_file(File, kept_source(1)),
    ?assertNotEqual(~"kept", Object(#{})),
    ?assertEqual(3, length(kept())),
    remove(File),
    forget_kept().

no_more_is_kept_than_a_limit_test() ->
    forget_kept(),
    Modules = [with_spec(kept_source(N), fun(#{module := Module}) -> Module end) || N <- lists:seq(1, 70)],
    ?assertEqual({70, 64}, {length(Modules), length(kept())}),
    forget_kept().

kept_source(N) -> io_lib:format("with m:f(_) monitor [_ <- _, _] [_ ? {kept, ~w}] ff.", [N]).

kept() -> [Kept || {{witness_spec_build, _}, _} = Kept <- persistent_term:get()].

forget_kept() ->
    _ = [persistent_term:erase(Key) || {Key, _} <- kept()],
    persistent_term:erase(witness_spec_build).

%% The verdict of the first property with the number of the event at which it fell.
verdict(Source, Signature, Trace) ->
    with_spec(Source, fun(#{module := Module}) ->
        case Module:init(Signature, self(), 1) of
            {ok, State} -> run(Module, Trace, 1, State);
            {ok, State, _} -> run(Module, Trace, 1, State);
            ignore -> ignore
        end
    end).

run(Module, [End], _, State) when End =:= complete; End =:= stopped ->
    {Verdict, Info} = Module:handle_end(End, State),
    {Verdict, End, Info};
run(Module, [Event | Events], N, State) ->
    case Module:handle_event(Event, State) of
        {ok, Next} -> run(Module, Events, N + 1, Next);
        {verdict, Verdict, Info} -> {Verdict, N, Info}
    end;
run(_, [], _, _) ->
    undecided.

run_all(Module, Events, State) ->
    lists:foldl(fun(Event, S) -> {ok, Next} = Module:handle_event(Event, S), Next end, State, Events).

with_spec(Source, Fun) ->
    case witness_spec:compile_string(<<"test.hml">>, unicode:characters_to_binary(Source)) of
        {ok, Map, _} -> try Fun(Map) after witness_spec:unload(Map) end;
        {error, {witness_spec, Diagnostics}} ->
            error({rejected, [iolist_to_binary(witness_spec:format_diagnostic(D)) || D <- Diagnostics]})
    end.

write(Name, Source) ->
    File = filename:join([filename:basedir(user_cache, "witness_test"), os:getpid(), Name]),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, unicode:characters_to_binary(Source)),
    File.

remove(File) -> file:del_dir_r(filename:dirname(File)).
