-module(witness_outline_core_tests).
-moduledoc """
The branches of the choreography one by one, from the point of view of one tracer, `me`.
How they work together is shown in `m:witness_outline_core_props_tests`.
""".
-include_lib("eunit/include/eunit.hrl").

%% --- the own partition -----------------------------------------------------------

events_of_an_owned_process_are_analysed_at_once_test() ->
    C = owner_of(p),
    S = {1, {recv, p, x, hello, 1}},
    ?assertMatch({[{analyse, {label, p}, S}], done, C}, own(S, C)),
    ?assertEqual({ok, {label, p}}, witness_outline_core:direct(p, C)),
    ?assertEqual(no, witness_outline_core:direct(q, C)).

what_is_no_event_is_not_analysed_test() ->
    ?assertMatch({[], done, _}, own({1, {other, p}}, owner_of(p))).

the_exit_of_the_last_process_ends_the_partition_test() ->
    C0 = owner_of(p),
    ?assertNot(witness_outline_core:is_done(C0)),
    S = {1, {exit, p, normal, 1}},
    {Effects, done, C} = own(S, C0),
    ?assertEqual([{analyse, {label, p}, S}, {ended, p, {label, p}}], Effects),
    ?assert(witness_outline_core:is_done(C)),
    ?assertEqual([], witness_outline_core:owned(C)).

a_child_that_shares_monitors_stays_with_its_parents_tracer_test() ->
    {[{analyse, {label, p}, _}], {adopt, c, _, assigned}, C1} = own(fork(1, p, c, shared), owner_of(p)),
    {[], done, C} = witness_outline_core:answer({label, c}, C1),
    ?assertEqual([{c, {label, c}}, {p, {label, p}}], lists:sort(witness_outline_core:owned(C))),
    ?assertMatch({[{analyse, {label, c}, _}], done, _}, own(init(2, c, p), C)).

the_same_process_twice_breaks_an_invariant_test() ->
    {_, {adopt, c, _, _}, C1} = own(fork(1, p, c, shared), owner_of(p)),
    {_, done, C2} = witness_outline_core:answer({label, c}, C1),
    {_, {adopt, c, _, _}, C3} = own(fork(2, p, c, shared), C2),
    ?assertError({invariant, 'I2', c}, witness_outline_core:answer({label, c}, C3)).

nothing_is_handled_before_the_answer_test() ->
    {_, {adopt, c, _, _}, C} = own(fork(1, p, c, shared), owner_of(p)),
    ?assertError(function_clause, own(init(2, c, p), C)).

%% --- A4 does not hold ------------------------------------------------------------

events_before_the_fork_wait_for_it_test() ->
    {[], done, C1} = own(init(2, c, p), owner_of(p)),
    {[], done, C2} = own({3, {send, c, p, hi, 3}}, C1),
    {[_], {adopt, c, _, _}, C3} = own(fork(1, p, c, shared), C2),
    {Effects, done, _} = witness_outline_core:answer({label, c}, C3),
    ?assertMatch([{analyse, {label, c}, {2, {init, c, p, _, _}}}, {analyse, {label, c}, {3, {send, c, _, _, _}}}], Effects).

a_fork_that_waited_is_placed_in_its_turn_test() ->
    {[], done, C1} = own(init(2, c, p), owner_of(p)),
    {[], done, C2} = own(fork(3, c, d, shared), C1),
    {[], done, C3} = own(init(4, d, c), C2),
    {_, {adopt, c, _, _}, C4} = own(fork(1, p, c, shared), C3),
    {[{analyse, _, {2, _}}, {analyse, _, {3, _}}], {adopt, d, _, _}, C5} = witness_outline_core:answer({label, c}, C4),
    ?assertMatch({[{analyse, {label, d}, {4, _}}], done, _}, witness_outline_core:answer({label, d}, C5)).

%% --- the origin ------------------------------------------------------------------

a_process_with_monitors_of_its_own_is_handed_over_test() ->
    {[_], {tracer, c}, C1} = own(fork(1, p, c, own), owner_of(p)),
    {[], {traced, c, sink}, C2} = witness_outline_core:answer({n, sink}, C1),
    {Effects, {share, c, sink}, C3} = witness_outline_core:answer({false, 5}, C2),
    ?assertMatch([{send, n, {take, c, me, {fork, p, c, _, _}, assigned, {shared, 5}}}], Effects),
    {[], done, _} = witness_outline_core:answer({cut, 7}, C3).

the_origin_routes_up_to_the_cut_and_acknowledges_the_first_event_beyond_it_test() ->
    C1 = origin_of(c, 10),
    S = {10, {recv, c, x, hello, 1}},
    {[{send, n, {routed, me, S}}], done, C2} = own(S, C1),
    ?assertEqual({[], done, C2}, own({10, {other, c}}, C2)),
    {Effects, done, C3} = own({11, {recv, c, x, hello, 2}}, C2),
    ?assertEqual([{send, n, {routed, me, {eof, c}}}, {off, c}], Effects),
    ?assertMatch({[], done, C3}, own({12, {recv, c, x, hello, 3}}, C3)).

an_event_without_a_stamp_lies_before_every_cut_test() ->
    S = {none, {recv, c, x, hello, undefined}},
    ?assertMatch({[{send, n, {routed, me, S}}], done, _}, own(S, origin_of(c, 10))).

what_is_no_event_proves_the_cut_too_test() ->
    ?assertMatch({[{send, n, {routed, me, {eof, c}}}, {off, c}], done, _}, own({11, {other, c}}, origin_of(c, 10))).

an_exit_before_the_cut_ends_the_route_test() ->
    S = {9, {exit, c, normal, 9}},
    {[{send, n, {routed, me, S}}], done, C} = own(S, origin_of(c, 10)),
    ?assertMatch({[], done, C}, witness_outline_core:handle({switch, c, other}, C)).

a_process_that_died_before_it_was_shared_is_routed_completely_test() ->
    {_, {tracer, c}, C1} = own(fork(1, p, c, own), owner_of(p)),
    {_, {traced, c, sink}, C2} = witness_outline_core:answer({n, sink}, C1),
    {[{send, n, {take, c, me, _, _, dead}}], done, C3} = witness_outline_core:answer(dead, C2),
    ?assertMatch({[{send, n, {routed, me, {99, _}}}], done, _}, own({99, {exit, c, normal, 99}}, C3)).

a_process_that_dies_while_it_is_shared_is_routed_completely_test() ->
    {_, {tracer, c}, C1} = own(fork(1, p, c, own), owner_of(p)),
    {_, {traced, c, sink}, C2} = witness_outline_core:answer({n, sink}, C1),
    {_, {share, c, sink}, C3} = witness_outline_core:answer({false, 5}, C2),
    {[], done, C4} = witness_outline_core:answer(dead, C3),
    ?assertMatch({[{send, n, {routed, me, {99, _}}}], done, _}, own({99, {exit, c, normal, 99}}, C4)).

the_child_of_a_routed_process_is_routed_the_same_way_test() ->
    {Effects, done, C} = own(fork(9, c, d, own), origin_of(c, 10)),
    ?assertMatch([{send, n, {routed, me, {9, {fork, c, d, _, _}}}}], Effects),
    ?assertMatch({[{send, n, {routed, me, {20, _}}}], done, _}, own(init(20, d, c), C)).

a_process_that_is_on_in_the_new_session_by_birth_is_not_shared_test() ->
    {_, {tracer, c}, C1} = own(fork(1, p, c, own), owner_of(p)),
    {_, {traced, c, sink}, C2} = witness_outline_core:answer({n, sink}, C1),
    ?assertMatch({[{send, n, {take, c, me, _, _, ask}}], done, _}, witness_outline_core:answer(true, C2)).

%% --- overlaps --------------------------------------------------------------------

a_child_of_the_overlap_is_discarded_by_the_origin_test() ->
    {[_, {off, c}, {off, d}], done, C1} = own(fork(11, c, d, own), origin_of(c, 10)),
    {[], done, C2} = own(init(12, d, c), C1),
    ?assertEqual({[], done, C2}, own({13, {recv, d, x, hello, 13}}, C2)).

what_was_stashed_of_a_discarded_process_are_duplicates_test() ->
    {[], done, C1} = own(init(12, d, c), origin_of(c, 10)),
    {[], done, C2} = own(fork(13, d, e, own), C1),
    ?assertMatch({[_, {off, c}, {off, d}, {off, e}], done, _}, own(fork(11, c, d, own), C2)).

children_of_what_is_off_already_are_discarded_test() ->
    {_, done, C1} = own({11, {recv, c, x, hello, 11}}, origin_of(c, 10)),
    ?assertMatch({[{off, d}], done, _}, own(fork(12, c, d, own), C1)).

the_owner_claims_a_child_that_was_born_in_its_own_session_test() ->
    C1 = taker_of(c, o, 5),
    {[], done, C2} = own(init(7, d, c), C1),
    {[{analyse, _, _}], {traced, d}, C3} = routed(o, fork(6, c, d, shared), C2),
    {[{send, o, {discard, d}}], {adopt, d, _, _}, C4} = witness_outline_core:answer(true, C3),
    ?assertMatch({[{analyse, {label, d}, {7, _}}], done, _}, witness_outline_core:answer({label, d}, C4)).

a_claimed_child_with_monitors_of_its_own_is_handed_over_by_its_owner_test() ->
    {_, {traced, d}, C1} = routed(o, fork(6, c, d, own), taker_of(c, o, 5)),
    {[{send, o, {discard, d}}], {tracer, d}, C2} = witness_outline_core:answer(true, C1),
    ?assertMatch({_, {traced, d, sink}, _}, witness_outline_core:answer({n, sink}, C2)).

what_is_routed_of_a_claimed_child_are_duplicates_test() ->
    {_, {traced, d}, C1} = routed(o, fork(6, c, d, shared), taker_of(c, o, 5)),
    {_, {adopt, d, _, _}, C2} = witness_outline_core:answer(true, C1),
    {_, done, C3} = witness_outline_core:answer({label, d}, C2),
    ?assertEqual({[], done, C3}, routed(o, init(8, d, c), C3)),
    ?assertEqual({[{send, o, {discard, e}}], done, C3}, routed(o, fork(9, d, e, own), C3)).

discard_switches_off_and_ends_the_route_of_the_hops_test() ->
    {_, done, C1} = own(fork(9, c, d, own), origin_of(c, 10)),
    {Effects, done, C2} = witness_outline_core:handle({discard, d}, C1),
    ?assertEqual([{send, n, {routed, me, {eof, d}}}, {off, d}], Effects),
    {[], done, C3} = own(init(12, d, c), C2),
    ?assertEqual({[], done, C3}, own({13, {recv, d, x, hello, 13}}, C3)),
    ?assertEqual({[], done, C3}, witness_outline_core:handle({discard, d}, C3)).

discard_after_init_has_come_test() ->
    {_, done, C1} = own(fork(9, c, d, own), origin_of(c, 10)),
    {_, done, C2} = own(init(12, d, c), C1),
    ?assertMatch({[{send, n, {routed, me, {eof, d}}}, {off, d}], done, _}, witness_outline_core:handle({discard, d}, C2)).

%% --- the new owner ---------------------------------------------------------------

direct_events_wait_for_the_acknowledgement_test() ->
    C1 = taker_of(c, o, 5),
    ?assert(witness_outline_core:settling(C1)),
    ?assertEqual(no, witness_outline_core:direct(c, C1)),
    {[{analyse, _, _}], done, C2} = routed(o, init(none, c, p), C1),
    {[], done, C3} = own({21, {recv, c, x, second, 2}}, C2),
    {[{analyse, {label, c}, {20, _}}], done, C4} = routed(o, {20, {recv, c, x, first, 1}}, C3),
    {Effects, done, C5} = routed(o, {eof, c}, C4),
    ?assertMatch([{settle, c}, {analyse, {label, c}, {21, {recv, c, x, second, 2}}}], Effects),
    ?assertEqual({ok, {label, c}}, witness_outline_core:direct(c, C5)),
    ?assertNot(witness_outline_core:settling(C5)).

%% The sessions of an event have stamps of their own, the new session the smaller one.
what_was_routed_is_dropped_when_it_comes_directly_before_the_acknowledgement_test() ->
    C1 = taker_of(c, o, 5),
    {[], done, C2} = own({19, {recv, c, x, first, 1}}, C1),
    {_, done, C3} = routed(o, {20, {recv, c, x, first, 1}}, C2),
    {[], done, C4} = own({21, {recv, c, x, second, 2}}, C3),
    ?assertMatch({[{settle, c}, {analyse, _, {21, _}}], done, _}, routed(o, {eof, c}, C4)).

what_was_routed_is_dropped_when_it_comes_directly_after_the_acknowledgement_test() ->
    {_, done, C1} = routed(o, {20, {recv, c, x, first, 1}}, taker_of(c, o, 5)),
    {[], done, C2} = routed(o, {eof, c}, C1),
    ?assertNot(witness_outline_core:settling(C2)),
    {[], done, C3} = own({19, {recv, c, x, first, 1}}, C2),
    ?assertMatch({[{settle, c}, {analyse, _, {21, _}}], done, _}, own({21, {recv, c, x, second, 2}}, C3)).

what_is_older_than_the_take_is_dropped_test() ->
    {_, done, C1} = own({4, {recv, c, x, old, 4}}, taker_of(c, o, 5)),
    {_, done, C2} = own({none, {recv, c, x, old, undefined}}, C1),
    ?assertMatch({[], done, _}, routed(o, {eof, c}, C2)).

a_routed_exit_ends_the_process_test() ->
    {Effects, done, C} = routed(o, {9, {exit, c, normal, 9}}, taker_of(c, o, 5)),
    ?assertMatch([{analyse, _, _}, {ended, c, {label, c}}], Effects),
    ?assert(witness_outline_core:is_done(C)),
    ?assertEqual({[], done, C}, routed(o, {eof, c}, C)).

of_what_died_before_the_switch_only_the_origins_events_count_test() ->
    C1 = taken(c, o, dead),
    ?assert(witness_outline_core:settling(C1)),
    {[], done, C2} = own(init(6, c, p), C1),
    {[{analyse, _, _}], done, C3} = routed(o, init(7, c, p), C2),
    {[], done, C4} = own({8, {exit, c, normal, 8}}, C3),
    ?assertMatch({[{analyse, _, _}, {ended, c, _}], done, _}, routed(o, {9, {exit, c, normal, 9}}, C4)).

the_owner_of_a_process_with_another_origin_asks_it_to_switch_test() ->
    {[], {traced, c}, C1} = take(c, o, ask, idle()),
    {[], {adopt, c, _, _}, C2} = witness_outline_core:answer({false, 5}, C1),
    ?assertMatch({[{send, o, {switch, c, sink_of_me}}], done, _}, witness_outline_core:answer({label, c}, C2)).

the_owner_of_a_process_that_is_on_by_birth_needs_no_handover_test() ->
    {[], done, C1} = own(init(3, c, p), idle()),
    {[], {traced, c}, C2} = take(c, o, ask, C1),
    {[{send, o, {discard, c}}], {adopt, c, _, _}, C3} = witness_outline_core:answer(true, C2),
    ?assertMatch({[{analyse, {label, c}, {3, _}}], done, _}, witness_outline_core:answer({label, c}, C3)).

the_owner_of_a_dead_process_asks_for_nothing_test() ->
    {[], {traced, c}, C1} = take(c, o, ask, idle()),
    {[], {adopt, c, _, _}, C2} = witness_outline_core:answer(dead, C1),
    ?assertMatch({[], done, _}, witness_outline_core:answer({label, c}, C2)).

a_shared_child_of_a_routed_process_is_switched_too_test() ->
    {_, {traced, d}, C1} = routed(o, fork(6, c, d, shared), taker_of(c, o, 5)),
    {[], {adopt, d, _, _}, C2} = witness_outline_core:answer({false, 8}, C1),
    {[{send, o, {switch, d, sink_of_me}}], done, C3} = witness_outline_core:answer({label, d}, C2),
    ?assertMatch({[{analyse, {label, d}, _}], done, _}, routed(o, init(7, d, c), C3)).

a_dead_child_of_a_routed_process_comes_from_the_origin_alone_test() ->
    {_, {traced, d}, C1} = routed(o, fork(6, c, d, shared), taker_of(c, o, 5)),
    {[], {adopt, d, _, _}, C2} = witness_outline_core:answer(dead, C1),
    {[], done, C3} = witness_outline_core:answer({label, d}, C2),
    {[], done, C4} = own({8, {exit, d, normal, 8}}, C3),
    ?assertMatch({[{analyse, _, _}, {ended, d, _}], done, _}, routed(o, {9, {exit, d, normal, 9}}, C4)).

%% --- between being lent and `take' -----------------------------------------------

events_that_come_before_take_are_kept_test() ->
    {[], lent, C1} = own({6, {recv, c, x, early, 6}}, idle()),
    {[], done, C2} = witness_outline_core:answer(true, C1),
    {[], done, C3} = own({8, {recv, c, x, early, 8}}, C2),
    {[], {adopt, c, _, _}, C4} = take(c, o, {shared, 5}, C3),
    {[], done, C5} = witness_outline_core:answer({label, c}, C4),
    {_, done, C6} = routed(o, {7, {recv, c, x, early, 6}}, C5),
    ?assertMatch({[{settle, c}, {analyse, _, {8, _}}], done, _}, routed(o, {eof, c}, C6)).

an_idle_tracer_that_is_not_lent_gets_duplicates_test() ->
    {[], lent, C1} = own(fork(6, q, d, own), idle()),
    ?assertMatch({[{off, d}], done, _}, witness_outline_core:answer(false, C1)).

duplicates_that_come_before_take_are_found_by_it_test() ->
    {[], lent, C1} = own(fork(6, q, d, own), idle()),
    {[], done, C2} = witness_outline_core:answer(true, C1),
    ?assertMatch({[{off, d}], {adopt, c, _, _}, _}, take(c, o, {shared, 5}, C2)).

%% --- a partition from birth ------------------------------------------------------

a_process_with_a_partition_of_its_own_is_not_routed_test() ->
    C0 = owner_of(p),
    {[_], {tracer, c}, C1} = own(fork(1, p, c, own), C0),
    {[], {traced, c, sink}, C2} = witness_outline_core:answer({n, sink}, C1),
    ?assertMatch({[{send, n, {take, c, me, {fork, p, c, _, _}, assigned, born}}], done, C0},
                 witness_outline_core:answer(born, C2)).

a_process_is_direct_from_its_birth_test() ->
    {[], {adopt, c, _, assigned}, C1} = take(c, o, born, idle()),
    {[], done, C2} = witness_outline_core:answer({label, c}, C1),
    ?assertEqual({ok, {label, c}}, witness_outline_core:direct(c, C2)),
    {[{analyse, {label, c}, _}], done, C3} = own(init(1, c, p), C2),
    {_, done, C4} = own({2, {exit, c, normal, 2}}, C3),
    ?assertEqual(idle(), C4).

%% --- nothing stays ---------------------------------------------------------------

nothing_is_kept_of_the_first_process_test() ->
    C1 = witness_outline_core:adopt_newborn(p, {label, p}, idle()),
    {[_], done, C2} = own(init(1, p, undefined), C1),
    {_, done, C3} = own({2, {exit, p, normal, 2}}, C2),
    ?assertEqual(idle(), C3).

the_birth_of_a_process_is_complete_with_its_fork_and_its_init_test() ->
    {_, _, C1} = own(fork(1, p, c, shared), owner_of(p)),
    {_, done, C2} = witness_outline_core:answer({label, c}, C1),
    ?assertMatch(#{unpaired := #{c := _}}, witness_outline_core:maps(C2)),
    {_, done, C3} = own(init(2, c, p), C2),
    ?assertMatch(#{unpaired := None} when None =:= #{}, witness_outline_core:maps(C3)).

%% A group; c and its child d are born in an overlap, and are dead when the fork of c comes routed.
nothing_is_kept_of_what_died_in_an_overlap_test() ->
    Direct = [fork(6, g, c, shared), {8, {exit, g, normal, 8}}, init(7, c, g), fork(9, c, d, shared),
              {10, {exit, c, normal, 10}}, init(9, d, c), {11, {exit, d, normal, 11}}],
    Streams = [[S || {_, E} = S <- Direct, element(2, E) =:= P] || P <- [g, c, d]],
    [?assertEqual({Order, idle()}, {Order, deliver(Order, ended_group())}) || Order <- interleave(Streams)].

%% All of it has come routed.
ended_group() ->
    {_, {traced, c}, C1} = routed(o, fork(6, g, c, shared), taker_of(g, o, 5)),
    {_, {adopt, c, _, _}, C2} = witness_outline_core:answer(dead, C1),
    {_, done, C3} = witness_outline_core:answer({label, c}, C2),
    {_, {traced, d}, C4} = routed(o, fork(9, c, d, shared), C3),
    {_, {adopt, d, _, _}, C5} = witness_outline_core:answer(dead, C4),
    {_, done, C6} = witness_outline_core:answer({label, d}, C5),
    lists:foldl(fun(P, C) -> {_, done, Next} = routed(o, {12, {exit, P, normal, 12}}, C), Next end, C6, [g, c, d]).

deliver([], C) -> C;
deliver([S | Rest], C) ->
    case own(S, C) of
        {_, done, Next} -> deliver(Rest, Next);
        {_, lent, Asked} -> {_, done, Next} = witness_outline_core:answer(false, Asked), deliver(Rest, Next)
    end.

interleave([]) -> [[]];
interleave(Lists) ->
    [[E | Rest] || [E | Tail] <- Lists, Rest <- interleave([L || L <- [Tail | Lists -- [[E | Tail]]], L =/= []])].

%% --- hops ------------------------------------------------------------------------

a_hop_passes_on_all_of_one_origin_until_eof_test() ->
    C1 = hop_of(d, o, n),
    S = {9, {recv, d, x, hello, 9}},
    {[{send, n, {routed, o, S}}], done, C2} = routed(o, S, C1),
    {[{send, n, {routed, o, {9, _}}}], done, C3} = routed(o, fork(9, d, e, own), C2),
    {[{send, n, {routed, o, {eof, d}}}], done, C4} = routed(o, {eof, d}, C3),
    {[], done, C4} = routed(o, S, C4),
    ?assertMatch({[{send, n, {routed, o, {10, {exit, e, _, _}}}}], done, _}, routed(o, {10, {exit, e, normal, 10}}, C4)).

a_hop_drops_what_comes_from_another_origin_test() ->
    C = hop_of(d, o, n),
    ?assertEqual({[], done, C}, routed(other, {9, {recv, d, x, hello, 9}}, C)),
    ?assertEqual({[], done, C}, routed(other, {eof, d}, C)).

a_hop_drops_what_comes_directly_and_discards_the_children_test() ->
    C = hop_of(d, o, n),
    ?assertEqual({[], done, C}, own({9, {recv, d, x, hello, 9}}, C)),
    ?assertMatch({[{off, e}], done, _}, own(fork(9, d, e, own), C)).

an_exit_ends_the_route_of_a_hop_test() ->
    {[{send, n, _}], done, C} = routed(o, {10, {exit, d, normal, 10}}, hop_of(d, o, n)),
    ?assertMatch({[], done, C}, routed(o, {eof, d}, C)).

what_was_stashed_of_a_process_that_goes_elsewhere_are_duplicates_test() ->
    {[], done, C1} = own(init(7, d, c), taker_of(c, o, 5)),
    {[], done, C2} = own(fork(8, d, e, own), C1),
    {_, {traced, d}, C3} = routed(o, fork(6, c, d, own), C2),
    ?assertMatch({[{off, e}], {tracer, d}, _}, witness_outline_core:answer(dead, C3)).

%% A tracer may have been the origin itself, in an earlier partition.
what_is_routed_from_oneself_is_routed_test() ->
    {_, {traced, d}, C1} = routed(me, fork(6, c, d, own), taken(c, me, dead)),
    {[], {tracer, d}, C2} = witness_outline_core:answer(dead, C1),
    {[{send, n, {take, d, me, _, _, ask}}], done, C3} = witness_outline_core:answer({n, sink}, C2),
    ?assertMatch({[{send, n, {routed, me, _}}], done, _}, routed(me, init(7, d, c), C3)).

%% --- helpers ---------------------------------------------------------------------

idle() ->
    witness_outline_core:new(#{self => me, sink => sink_of_me, assign => fun({m, How, _}, {label, _}) -> {How, assigned} end}).

owner_of(P) -> witness_outline_core:adopt(P, {label, P}, idle()).

origin_of(Child, Cut) ->
    {_, {tracer, Child}, C1} = own(fork(1, p, Child, own), owner_of(p)),
    {_, {traced, Child, sink}, C2} = witness_outline_core:answer({n, sink}, C1),
    {_, {share, Child, sink}, C3} = witness_outline_core:answer({false, 5}, C2),
    {[], done, C} = witness_outline_core:answer({cut, Cut}, C3),
    C.

take(Child, Origin, How, C) ->
    {_, Fork} = fork(1, p, Child, own),
    witness_outline_core:handle({take, Child, Origin, Fork, assigned, How}, C).

taken(Child, Origin, How) ->
    {[], {adopt, Child, _, assigned}, C1} = take(Child, Origin, How, idle()),
    {[], done, C} = witness_outline_core:answer({label, Child}, C1),
    C.

taker_of(Child, Origin, Now) -> taken(Child, Origin, {shared, Now}).

hop_of(Child, Origin, Next) ->
    {_, {traced, Child}, C1} = routed(Origin, fork(6, c, Child, own), taker_of(c, Origin, 5)),
    {[], {tracer, Child}, C2} = witness_outline_core:answer({false, 8}, C1),
    {[{send, Next, {take, Child, Origin, _, _, ask}}], done, C} = witness_outline_core:answer({Next, sink}, C2),
    C.

own(S, C) -> witness_outline_core:handle({own, S}, C).

routed(Origin, S, C) -> witness_outline_core:handle({routed, Origin, S}, C).

fork(U, P, Child, How) -> {U, {fork, P, Child, {m, How, []}, U}}.

init(U, P, Parent) -> {U, {init, P, Parent, {m, f, []}, U}}.
