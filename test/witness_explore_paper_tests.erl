-module(witness_explore_paper_tests).
-moduledoc """
The paper's choreography: each branch of Algorithms 1 to 4 from the point of view of one tracer, `me`, and
each defect of the printed form, as printed and mended.
""".
-include_lib("eunit/include/eunit.hrl").

%% --- Algorithm 1: the direct mode ------------------------------------------------

a_direct_event_without_a_route_is_analysed_test() ->
    C = root(),
    [?assertMatch({[{analyse, {label, p}, S}], done, C}, own(S, C)) || S <- [recv(p), send(p), init(p, x)]].

what_is_no_event_is_left_out_test() ->
    ?assertMatch({[], done, _}, own({1, {other, p}}, root())).

a_direct_event_with_a_route_is_dispatched_test() ->
    C = creator(),
    [?assertMatch({[{send, n, {routed, me, S}}], done, C}, own(S, C)) || S <- [recv(c), send(c), init(c, p)]].

a_dispatched_fork_sets_the_route_of_the_child_test() ->
    S = fork(c, d, own),
    {[{send, n, {routed, me, S}}], done, C} = own(S, creator()),
    ?assertEqual([{c, n}, {d, n}], routes(C)).

a_dispatched_exit_keeps_the_route_for_the_request_test() ->
    S = ends(c),
    {[{send, n, {routed, me, S}}], done, C} = own(S, creator()),
    ?assertEqual([{c, n}], routes(C)).

a_request_is_dispatched_back_and_ends_the_route_test() ->
    {[{send, n, {routed, me, {dtc, n, c}}}], done, C} = handle({dtc, n, c}, creator()),
    ?assertEqual([], routes(C)),
    ?assertNot(witness_explore_paper:is_done(C)).

the_exit_of_the_last_process_ends_the_tracer_test() ->
    {[{analyse, {label, p}, _}, {ended, p, {label, p}}], done, C} = own(ends(p), root()),
    ?assert(witness_explore_paper:is_done(C)),
    ?assertEqual([], witness_explore_paper:owned(C)).

a_tracer_with_a_route_stays_until_the_request_test() ->
    {_, done, C1} = own(ends(p), creator()),
    ?assertNot(witness_explore_paper:is_done(C1)),
    {_, done, C2} = handle({dtc, n, c}, C1),
    ?assert(witness_explore_paper:is_done(C2)).

routed_events_and_acknowledgements_are_forwarded_with_their_dispatcher_test() ->
    S = recv(c),
    {[{send, n, {routed, o, S}}], done, C1} = routed(S, creator()),
    F = fork(c, d, own),
    {[{send, n, {routed, o, F}}], done, C2} = routed(F, C1),
    ?assertEqual([{c, n}, {d, n}], routes(C2)),
    {[{send, n, {routed, o, {dtc, n, d}}}], done, C3} = routed({dtc, n, d}, C2),
    ?assertEqual([{c, n}], routes(C3)).

a_forwarded_acknowledgement_can_end_the_tracer_test() ->
    {_, done, C1} = own(ends(p), creator()),
    {_, done, C2} = routed({dtc, n, c}, C1),
    ?assert(witness_explore_paper:is_done(C2)).

the_invariants_of_the_direct_mode_are_asserted_test() ->
    ?assertError({invariant, 'I17', c}, handle({dtc, n, c}, root())),
    ?assertError({invariant, 'I20', c}, routed({dtc, n, c}, root())),
    ?assertError({invariant, 'I19', c}, routed(recv(c), root())),
    ?assertError({invariant, 'I3', c}, own(ends(c), root())),
    ?assertError({invariant, 'I6', d}, begin {_, _, C} = own(fork(c, d, own), creator()), own(fork(c, d, own), C) end),
    ?assertError({invariant, 'I2', p}, witness_explore_paper:adopt(p, {label, p}, root())).

%% --- Algorithm 2 -----------------------------------------------------------------

a_fork_with_monitors_of_its_own_makes_a_tracer_and_a_route_test() ->
    S = {_, E} = fork(p, c, own),
    {[{analyse, {label, p}, S}], {tracer, c}, C1} = own(S, root()),
    {[{send, n, {take, c, me, E, {assigned, c}, ask}}], done, C} = answer({n, sink}, C1),
    ?assertEqual([{c, n}], routes(C)),
    ?assertEqual([{p, {label, p}}], witness_explore_paper:owned(C)).

a_fork_without_stays_with_the_tracer_by_inheritance_test() ->
    S = {_, E} = fork(p, c, shared),
    {[{analyse, {label, p}, S}], {adopt, c, E, {assigned, c}}, C1} = own(S, root()),
    {[], done, C} = answer({label, c}, C1),
    ?assertEqual([{c, {label, c}}, {p, {label, p}}], owned(C)),
    ?assertMatch({[{analyse, {label, c}, _}], done, _}, own(recv(c), C)).

a_routed_fork_with_monitors_of_its_own_names_the_dispatcher_test() ->
    S = {_, E} = fork(c, d, own),
    {[{analyse, {label, c}, S}], {tracer, d}, C1} = routed(S, owner(all())),
    {[{send, n, {take, d, o, E, {assigned, d}, ask}}], done, C} = answer({n, sink}, C1),
    ?assertEqual([{d, n}], routes(C)).

a_routed_fork_without_is_detached_from_the_dispatcher_test() ->
    S = {_, E} = fork(c, d, shared),
    {[_], {adopt, d, E, _}, C1} = routed(S, owner(all())),
    {[], {preempt, d}, C2} = answer({label, d}, C1),
    {[{send, o, {dtc, me, d}}], done, C} = answer(ok, C2),
    ?assertEqual([{c, {label, c}}, {d, {label, d}}], owned(C)).

%% --- Algorithm 3: the priority mode ----------------------------------------------

only_routed_messages_are_taken_in_priority_mode_test() ->
    {[], done, C1} = own(recv(c), owner(all())),
    {[], done, C2} = handle({dtc, n, d}, C1),
    ?assertEqual([{own, recv(c)}, {dtc, n, d}], witness_explore_paper:lost(C2)),
    ?assertMatch({[{analyse, {label, c}, {1, {send, c, _, _, _}}}], done, _}, routed(send(c), C2)).

the_acknowledgement_ends_priority_mode_and_the_rest_follows_in_order_test() ->
    {[], done, C1} = own(recv(c), owner(all())),
    {[], done, C2} = own(send(c), C1),
    {Effects, done, C3} = routed({dtc, me, c}, C2),
    ?assertEqual([{analyse, {label, c}, recv(c)}, {analyse, {label, c}, send(c)}], Effects),
    ?assertMatch({[{analyse, {label, c}, _}], done, _}, own(recv(c), C3)).

priority_mode_lasts_until_each_process_is_detached_test() ->
    {_, _, C1} = routed(fork(c, d, shared), owner(all())),
    {_, _, C2} = answer({label, d}, C1),
    {_, done, C3} = answer(ok, C2),
    {[], done, C4} = own(recv(d), C3),
    {[], done, C5} = routed({dtc, me, c}, C4),
    ?assertMatch({[{analyse, {label, d}, _}], done, _}, routed({dtc, me, d}, C5)).

a_routed_event_of_a_routed_process_is_forwarded_test() ->
    C = hop(all()),
    [?assertMatch({[{send, n, {routed, o, S}}], done, C}, routed(S, C)) || S <- [recv(d), send(d), ends(d)]],
    {[{send, n, {routed, o, _}}], done, C1} = routed(fork(d, e, own), C),
    ?assertEqual([{d, n}, {e, n}], routes(C1)).

a_routed_exit_ends_the_process_test() ->
    {Effects, done, C} = routed(ends(c), hop(all())),
    ?assertEqual([{analyse, {label, c}, ends(c)}, {ended, c, {label, c}}], Effects),
    ?assertEqual([], owned(C)),
    ?assertNot(witness_explore_paper:is_done(C)).

an_acknowledgement_for_another_tracer_is_forwarded_test() ->
    ?assertMatch({[{send, n, {routed, o, {dtc, n, d}}}], done, _}, routed({dtc, n, d}, hop(all()))).

the_invariants_of_the_priority_mode_are_asserted_test() ->
    ?assertError({invariant, 'I23', c}, routed({dtc, n, c}, hop(all()))),
    ?assertError({invariant, 'I23', d}, routed({dtc, me, d}, hop(all()))).

%% --- Algorithm 4 -----------------------------------------------------------------

a_new_tracer_pre_empts_the_dispatcher_and_asks_it_to_detach_test() ->
    {_, E} = fork(p, c, own),
    {[], {adopt, c, E, {assigned, c}}, C1} = handle({take, c, o, E, {assigned, c}, ask}, new(all())),
    {[], {preempt, c}, C2} = answer({label, c}, C1),
    {[{send, o, {dtc, me, c}}], done, C} = answer(ok, C2),
    ?assertEqual([{c, {label, c}}], owned(C)).

what_comes_after_the_end_is_lost_test() ->
    {_, done, C1} = own(ends(p), root()),
    {[], done, C2} = own(recv(p), C1),
    ?assertEqual([{own, recv(p)}], witness_explore_paper:lost(C2)).

nothing_is_handled_before_the_answer_test() ->
    {_, {tracer, c}, C} = own(fork(p, c, own), root()),
    ?assertError(function_clause, own(recv(p), C)).

%% --- appendix B: events before their fork ----------------------------------------

with_reordering_events_wait_for_the_fork_test() ->
    C0 = root(#{mend => all(), reorder => true}),
    {[], done, C1} = own(init(c, p), C0),
    {[], done, C2} = own(fork(c, d, shared), C1),
    {[], done, C3} = own(recv(d), C2),
    {[{analyse, {label, p}, _}], {adopt, c, _, _}, C4} = own(fork(p, c, shared), C3),
    {[{analyse, {label, c}, S}, {analyse, {label, c}, _}], {adopt, d, _, _}, C5} = answer({label, c}, C4),
    ?assertEqual(init(c, p), S),
    ?assertMatch({[{analyse, {label, d}, _}], done, _}, answer({label, d}, C5)).

without_they_go_to_the_wrong_monitor_test() ->
    ?assertMatch({[{analyse, {label, p}, {1, {init, c, _, _, _}}}], done, _}, own(init(c, p), root())).

%% --- the defects of the printed form ---------------------------------------------

i4_does_not_hold_where_a_tracer_is_made_test() ->
    ?assertError({invariant, 'I4', c}, own(fork(p, c, own), root(#{mend => all() -- ['I4']}))).

i8_does_not_hold_where_none_is_made_test() ->
    ?assertError({invariant, 'I8', c}, own(fork(p, c, shared), root(#{mend => all() -- ['I8']}))).

i16_does_not_hold_for_what_is_traced_by_inheritance_test() ->
    Mend = all() -- ['I16'],
    ?assertError({invariant, 'I16', me}, own(recv(p), root(#{mend => Mend}))),
    {_, done, C1} = routed({dtc, me, c}, owner(Mend)),
    {_, {adopt, d, _, _}, C2} = own(fork(c, d, shared), C1),
    ?assertError({invariant, 'I16', me}, answer({label, d}, C2)).

a3_32_the_tracer_ends_before_its_acknowledgement_comes_test() ->
    {_, done, C1} = routed(ends(c), owner(all() -- ['A3.32'])),
    ?assert(witness_explore_paper:is_done(C1)),
    {[], done, C2} = routed({dtc, me, c}, C1),
    ?assertEqual([{routed, o, {dtc, me, c}}], witness_explore_paper:lost(C2)),

    {_, done, M1} = routed(ends(c), owner(all())),
    ?assertNot(witness_explore_paper:is_done(M1)),
    {[], done, M2} = routed({dtc, me, c}, M1),
    ?assert(witness_explore_paper:is_done(M2)),
    ?assertEqual([], witness_explore_paper:lost(M2)).

a3_46_an_ended_process_is_added_again_test() ->
    Ended = fun(Mend) ->
        {_, done, C1} = routed(ends(c), hop(Mend)),
        {[], done, C2} = routed({dtc, me, c}, C1),
        {_, done, C3} = routed({dtc, n, d}, C2),
        {owned(C3), witness_explore_paper:is_done(C3)}
    end,
    ?assertEqual({[{c, {label, c}}], false}, Ended(all() -- ['A3.46'])),
    ?assertEqual({[], true}, Ended(all())).

a3_47_the_acknowledgement_for_an_ended_process_meets_direct_mode_test() ->
    Acknowledged = fun(Mend) ->
        {_, {adopt, d, _, _}, C1} = routed(fork(c, d, shared), owner(Mend)),
        {_, {preempt, d}, C2} = answer({label, d}, C1),
        {_, done, C3} = answer(ok, C2),
        {_, done, C4} = routed(ends(d), C3),
        {[], done, C5} = routed({dtc, me, c}, C4),
        routed({dtc, me, d}, C5)
    end,
    ?assertError({invariant, 'I20', d}, Acknowledged(all() -- ['A3.47'])),
    {[], done, C} = Acknowledged(all()),
    ?assertMatch({[{analyse, {label, c}, _}], done, _}, own(recv(c), C)).

a3_51_a_forwarded_acknowledgement_leaves_its_route_in_priority_mode_test() ->
    Routes = fun(Mend) -> {_, done, C} = routed({dtc, n, d}, hop(Mend)), routes(C) end,
    ?assertEqual([{d, n}], Routes(all() -- ['A3.51'])),
    ?assertEqual([], Routes(all())).

a5_17_no_tracer_traces_the_process_between_clear_and_trace_test() ->
    {_, E} = fork(p, c, own),
    {[], {adopt, c, _, _}, C1} = handle({take, c, o, E, {assigned, c}, ask}, new(all() -- ['A5.17'])),
    {[], {clear, c}, C2} = answer({label, c}, C1),
    {[], {trace, c}, C3} = answer(ok, C2),
    ?assertMatch({[{send, o, {dtc, me, c}}], done, _}, answer(ok, C3)).

%% --- one tracer ------------------------------------------------------------------

all() -> witness_explore_paper:defects().

new(Mend) when is_list(Mend) -> new(#{mend => Mend});
new(Given) ->
    Assign = fun({m, How, [C, _]}, {label, _}) -> {How, {assigned, C}} end,
    witness_explore_paper:new(Given#{self => me, sink => my_sink, assign => Assign}).

root() -> root(#{mend => all()}).

root(Given) -> witness_explore_paper:adopt(p, {label, p}, new(Given)).

%% Owns p, has made the tracer n for c.
creator() ->
    {_, {tracer, c}, C1} = own(fork(p, c, own), root()),
    {_, done, C} = answer({n, sink}, C1),
    C.

%% Was made for c, in priority mode; o dispatches.
owner(Mend) ->
    {_, E} = fork(p, c, own),
    {[], _, C1} = handle({take, c, o, E, {assigned, c}, ask}, new(Mend)),
    {[], Question, C2} = answer({label, c}, C1),
    {_, done, C} = case Question of
        {preempt, c} -> answer(ok, C2);
        {clear, c} -> {[], {trace, c}, C3} = answer(ok, C2), answer(ok, C3)
    end,
    C.

%% The same, and has made the tracer n for d, a child of c.
hop(Mend) ->
    {_, {tracer, d}, C1} = routed(fork(c, d, own), owner(Mend)),
    {_, done, C} = answer({n, sink}, C1),
    C.

handle(Message, C) -> witness_explore_paper:handle(Message, C).
answer(Answer, C) -> witness_explore_paper:answer(Answer, C).
own(S, C) -> handle({own, S}, C).
routed(M, C) -> handle({routed, o, M}, C).
owned(C) -> lists:sort(witness_explore_paper:owned(C)).
routes(C) -> lists:sort(witness_explore_paper:routes(C)).

fork(P, C, How) -> {1, {fork, P, C, {m, How, [C, P]}, undefined}}.
init(C, P) -> {1, {init, C, P, {m, own, [C, P]}, undefined}}.
ends(P) -> {1, {exit, P, normal, undefined}}.
recv(P) -> {1, {recv, P, undefined, hello, undefined}}.
send(P) -> {1, {send, P, q, hello, undefined}}.
