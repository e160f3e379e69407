%% A log as a source of events: what it delivers, in which order, and what it refuses.
-module(witness_trace_log_tests).
-include_lib("eunit/include/eunit.hrl").

-define(SIG, {m, f, [1]}).

p() -> list_to_pid("<0.101.0>").
q() -> list_to_pid("<0.102.0>").
r() -> list_to_pid("<0.103.0>").
named(Name) -> {external, Name}.

fork(P, C) -> {fork, P, C, ?SIG, undefined}.
init(C, P) -> {init, C, P, ?SIG, undefined}.
exit_of(P) -> {exit, P, normal, undefined}.
send(P, To) -> {send, P, To, hello, undefined}.
recv(P) -> recv(P, hello).
recv(P, Msg) -> {recv, P, undefined, Msg, undefined}.
attached(P) -> {attached, P, {m, f, 1}, undefined}.
root(P) -> {root, P, undefined}.
gap(P, Missing) -> {gap, P, orphaned, Missing, undefined}.

%% --- the examples of the RIARC text, appendix B.1 ----------------------------------

example_7_spawns_are_reordered_test() ->
    {P, Q, R} = {p(), q(), r()},
    Log0 = new([P]),
    {Out1, Log1} = add(1, recv(Q), Log0),
    {Out2, Log2} = add(2, fork(Q, R), Log1),
    {Out3, Log3} = add(3, fork(P, Q), Log2),
    {Out4, Log4} = add(4, send(P, Q), Log3),
    ?assertEqual({[], []}, {Out1, Out2}),
    ?assertEqual([{root, P, undefined}, {t, 3, fork(P, Q)}, {t, 3, init(Q, P)}, {t, 1, recv(Q)}, {t, 2, fork(Q, R)}],
                 Out3),
    ?assertEqual([{t, 4, send(P, Q)}], Out4),
    ?assertEqual([], orphans(Log4)).

example_7_with_init_events_test() ->
    {P, Q, R} = {p(), q(), r()},
    ?assertEqual([fork(P, Q), init(Q, P), recv(Q), fork(Q, R), send(P, Q), init(R, Q), exit_of(R)],
                 items([init(Q, P), recv(Q), fork(Q, R), fork(P, Q), send(P, Q), init(R, Q), exit_of(R)])).

example_8_other_interleaving_test() ->
    {P, Q, R} = {p(), q(), r()},
    Delivered = [fork(P, Q), init(Q, P), recv(Q), fork(Q, R), send(P, Q)],
    ?assertEqual(Delivered, items([recv(Q), fork(P, Q), fork(Q, R), send(P, Q)])),
    ?assertEqual(Delivered, items([init(Q, P), recv(Q), fork(P, Q), fork(Q, R), send(P, Q)])).

example_9_identity_test() ->
    {P, Q, R} = {p(), q(), r()},
    ?assertEqual([fork(P, Q), init(Q, P), recv(Q), send(P, Q), fork(Q, R)],
                 items([fork(P, Q), recv(Q), send(P, Q), fork(Q, R)])),
    Causal = [fork(P, Q), init(Q, P), recv(Q), send(P, Q), fork(Q, R), init(R, Q)],
    ?assertEqual(Causal, items(Causal)).

%% --- all permutations ---------------------------------------------------------------

%% P spawns Q, which spawns R: in whatever order their events are merged, each is delivered once, in order, after the
%% spawn of its process.
all_permutations_of_a_chain_are_made_causal_test() ->
    {P, Q, R} = {p(), q(), r()},
    permutations([[fork(P, Q), send(P, Q), exit_of(P)],
                  [recv(Q), fork(Q, R), exit_of(Q)],
                  [recv(R), exit_of(R)]], 560),
    permutations([[fork(P, Q), exit_of(P)],
                  [init(Q, P), recv(Q), fork(Q, R), exit_of(Q)],
                  [init(R, Q), recv(R), exit_of(R)]], 1260).

all_permutations_of_siblings_keep_their_order_test() ->
    {P, Q, R} = {p(), q(), r()},
    permutations([[fork(P, Q), fork(P, R), send(P, Q)], [recv(Q, 1), recv(Q, 2)], [recv(R, 1), exit_of(R)]], 210),
    ?assertEqual([fork(P, R), fork(P, Q), init(Q, P), recv(Q), init(R, P), recv(R)],
                 items([fork(P, R), fork(P, Q), recv(Q), recv(R)])).

permutations(Traces, Number) ->
    Logs = merges(Traces),
    ?assertEqual(Number, length(Logs)),
    [begin
         Items = items(Log),
         Made = [I || {init, _, _, _, _} = I <- Items -- Log],
         ?assertEqual(lists:sort(Log), lists:sort(Items -- Made)),
         [?assertEqual(Trace, [I || I <- Items -- Made, witness_event:proc(I) =:= witness_event:proc(hd(Trace))])
          || Trace <- Traces],
         ?assertEqual(causal, causal(Items, [p()], []))
     end || Log <- Logs].

merges(Traces) ->
    case [T || T <- Traces, T =/= []] of
        [] -> [[]];
        Left -> [[hd(T) | Merge] || T <- Left, Merge <- merges([tl(T) | Left -- [T]])]
    end.

%% Every process is spawned before it acts, begins with its init, and ends with its exit.
causal([], _, _) -> causal;
causal([{init, C, _, _, _} | Items], Live, New) -> true = lists:member(C, New), causal(Items, [C | Live], New -- [C]);
causal([Item | Items], Live, New) ->
    P = witness_event:proc(Item),
    case {lists:member(P, Live), Item} of
        {false, _} -> {not_alive, Item};
        {true, {fork, _, C, _, _}} -> causal(Items, Live, [C | New]);
        {true, {exit, _, _, _}} -> causal(Items, Live -- [P], New);
        {true, _} -> causal(Items, Live, New)
    end.

%% --- births -------------------------------------------------------------------------

an_init_is_made_from_the_fork_with_its_line_and_time_test() ->
    {P, Q} = {p(), q()},
    ?assertEqual([{root, P, undefined}, {t, 1, {fork, P, Q, ?SIG, 7}}, {t, 1, {init, Q, P, ?SIG, 7}}, {t, 2, recv(Q)}],
                 run(new([P]), [{fork, P, Q, ?SIG, 7}, recv(Q)])).

an_init_is_not_made_before_anything_happens_test() ->
    ?assertEqual([fork(p(), q())], items([fork(p(), q())])).

an_init_without_parent_of_a_forked_process_is_its_own_test() ->
    {P, Q} = {p(), q()},
    ?assertEqual([fork(P, Q), init(Q, undefined), recv(Q)], items([fork(P, Q), init(Q, undefined), recv(Q)])),
    ?assertEqual([fork(P, Q), init(Q, undefined)], items([init(Q, undefined), fork(P, Q)])).

a_process_may_begin_with_any_item_test() ->
    {P, Q} = {p(), q()},
    [?assertEqual([fork(P, Q), init(Q, P), Item], items(Log))
     || Item <- [exit_of(Q), send(Q, P), gap(Q, unknown), attached(Q), fork(Q, r())],
        Log <- [[fork(P, Q), Item], [Item, fork(P, Q)]]].

%% --- tracers ------------------------------------------------------------------------

children_inherit_the_tracer_of_their_parent_test() ->
    {P, Q} = {p(), q()},
    {_, Log0} = add(1, fork(P, Q), new([P])),
    ?assert(witness_trace_log:traced(t, Q, Log0)),
    ?assertNot(witness_trace_log:traced(other, Q, Log0)),
    Log1 = witness_trace_log:on(Q, other, Log0),
    ?assertNot(witness_trace_log:traced(t, Q, Log1)),
    ?assertEqual([{other, 2, init(Q, P)}, {other, 2, fork(Q, r())}, {other, 2, init(r(), Q)}, {other, 3, recv(r())}],
                 [case O of {T, 1, I} -> {T, 2, I}; _ -> O end
                  || O <- run(2, Log1, [fork(Q, r()), recv(r())])]).

a_child_has_its_own_tracer_before_its_first_waiting_item_test() ->
    {P, Q} = {p(), q()},
    {ok, Log0} = witness_trace_log:add(1, recv(Q), new([P])),
    {none, Log1} = witness_trace_log:next(Log0),
    {ok, Log2} = witness_trace_log:add(2, fork(P, Q), Log1),
    {root, P, undefined, 2, Log3} = witness_trace_log:next(Log2),
    {deliver, t, 2, _, Log4} = witness_trace_log:next(Log3),
    Log5 = witness_trace_log:on(Q, own, Log4),
    ?assertMatch({[{own, 2, {init, _, _, _, _}}, {own, 1, {recv, _, _, _, _}}], _}, drain(Log5)).

a_process_that_was_switched_on_is_known_test() ->
    {P, Q} = {p(), q()},
    Log = witness_trace_log:on(Q, own, new([P])),
    ?assertEqual([{own, 1, recv(Q)}, {root, P, undefined}, {t, 2, fork(P, Q)}, {own, 3, recv(Q)}],
                 run(Log, [recv(Q), fork(P, Q), recv(Q)])),
    %% Also when it waits, or its fork does.
    {[], Log1} = add(2, fork(P, Q), element(2, add(1, recv(Q), witness_trace_log:new(#{roots => [], top => t})))),
    {[{own, 1, _}], Log2} = drain(witness_trace_log:on(Q, own, Log1)),
    ?assertMatch({[{t, 2, {fork, P, Q, _, _}}], _}, drain(witness_trace_log:on(P, t, Log2))).

what_is_switched_off_is_left_out_with_its_children_test() ->
    {P, Q, R} = {p(), q(), r()},
    {_, Log0} = add(1, fork(P, Q), new([P])),
    Log = witness_trace_log:off(Q, Log0),
    ?assertNot(witness_trace_log:traced(t, Q, Log)),
    ?assertEqual([{t, 5, recv(P)}], run(2, Log, [recv(Q), fork(Q, R), recv(R), recv(P), exit_of(R)])),
    ?assertEqual(dead, witness_trace_log:traced(t, R, after_all(2, Log, [recv(Q), fork(Q, R), exit_of(R)]))),
    %% And can be switched on again.
    ?assertEqual([{u, 2, init(Q, P)}, {u, 2, recv(Q)}],
                 [{T, 2, I} || {T, _, I} <- run(2, witness_trace_log:on(Q, u, Log), [recv(Q)])]).

an_ended_process_is_dead_test() ->
    {P, Q} = {p(), q()},
    Log = after_all(1, new([P]), [fork(P, Q), exit_of(Q)]),
    ?assertEqual(dead, witness_trace_log:traced(t, Q, Log)),
    ?assertEqual(Log, witness_trace_log:on(Q, t, Log)),
    ?assertEqual(Log, witness_trace_log:off(Q, Log)),
    ?assertEqual(false, witness_trace_log:traced(t, r(), Log)).

only_what_changes_nothing_is_plain_test() ->
    {P, Q} = {p(), q()},
    Plain = fun(Log) -> [witness_trace_log:is_plain(X, Log) || X <- [P, Q]] end,
    {_, Log1} = add(1, recv(Q), new([P])),
    ?assertEqual([false, false], Plain(Log1)),
    {_, Log2} = add(2, recv(P), Log1),
    ?assertEqual([true, false], Plain(Log2)),
    {_, Log3} = add(3, fork(P, Q), Log2),
    ?assertEqual([true, true], Plain(Log3)),
    {_, Log4} = add(4, exit_of(Q), Log3),
    ?assertEqual([true, false], Plain(Log4)),
    {_, Log5} = add(5, fork(P, Q), Log4),
    ?assertEqual([true, false], Plain(Log5)),
    ?assertEqual([false, false], Plain(witness_trace_log:off(P, Log5))).

guarantees_are_all_but_causal_messages_test() ->
    ?assertEqual(#{sets => true, inheritance => true, single => true, fork_first => true, birth => true,
                   causal => false}, witness_trace_log:guarantees()).

%% --- roots --------------------------------------------------------------------------

given_roots_are_told_before_their_first_item_test() ->
    {P, Q} = {p(), q()},
    ?assertEqual([{root, P, undefined}, {t, 1, recv(P)}, {root, Q, ?SIG}, {t, 2, init(Q, P)}, {t, 3, recv(P)}],
                 run(new([P, Q]), [recv(P), init(Q, P), recv(P)])).

a_given_root_may_be_spawned_in_the_log_test() ->
    {P, Q} = {p(), q()},
    ?assertEqual([{root, Q, undefined}, {t, 1, recv(Q)}, {root, P, undefined}, {t, 2, fork(P, Q)}, {t, 3, recv(Q)}],
                 run(new([P, Q]), [recv(Q), fork(P, Q), recv(Q)])),
    ?assertEqual([{root, P, undefined}, {t, 1, fork(P, Q)}, {t, 1, init(Q, P)}, {t, 2, recv(Q)}],
                 run(new([P, Q]), [fork(P, Q), recv(Q)])),
    Out = run(new([Q]), [fork(P, Q), init(Q, P), recv(P)]),
    ?assertEqual([{root, Q, ?SIG}, {t, 2, init(Q, P)}, {orphan, P, 2}], Out).

nothing_else_is_a_root_where_roots_are_given_test() ->
    {P, Q, R} = {p(), q(), r()},
    ?assertEqual([{root, P, undefined}, {t, 3, recv(P)}, {orphan, Q, 1}, {orphan, R, 1}],
                 run(new([P]), [init(Q, undefined), attached(R), recv(P)])).

auto_takes_each_process_without_parent_at_once_test() ->
    {P, Q} = {p(), q()},
    {Out1, Log1} = add(1, init(P, undefined), auto()),
    ?assertEqual([{root, P, ?SIG}, {t, 1, init(P, undefined)}], Out1),
    {Out2, Log2} = add(2, attached(Q), Log1),
    ?assertEqual([{root, Q, {attached, {m, f, 1}}}, {t, 2, attached(Q)}], Out2),
    {Out3, _} = add(3, init(r(), undefined), Log2),
    ?assertEqual([{root, r(), ?SIG}, {t, 3, init(r(), undefined)}], Out3).

%% Their parents are named, but are not in the log.
marked_processes_are_roots_test() ->
    {P, Q, R} = {p(), q(), r()},
    ?assertEqual([{root, P, ?SIG}, {t, 2, init(P, R)}, {root, Q, ?SIG}, {t, 4, init(Q, R)}, {t, 5, recv(P)}],
                 run(auto(), [root(P), init(P, R), root(Q), init(Q, R), recv(P)])),
    %% The name may be used again.
    ?assertEqual([{root, P, ?SIG}, {t, 2, init(P, R)}, {t, 3, exit_of(P)}, {root, P, ?SIG}, {t, 5, init(P, R)}],
                 run(auto(), [root(P), init(P, R), exit_of(P), root(P), init(P, R)])),
    %% A saved position knows it.
    {[], Marked} = add(1, root(P), auto()),
    ?assertMatch({[{root, P, ?SIG}, {t, 2, _}], _}, add(2, init(P, R), witness_trace_log:load(witness_trace_log:save(Marked)))).

where_roots_are_given_a_mark_does_not_count_test() ->
    {P, Q} = {p(), q()},
    ?assertEqual([{root, P, undefined}, {t, 3, recv(P)}, {orphan, Q, 1}], run(new([P]), [root(Q), init(Q, undefined), recv(P)])).

a_process_that_has_begun_or_was_spawned_is_no_root_test() ->
    {P, Q} = {p(), q()},
    Refused = fun(Items) -> witness_trace_log:add(9, root(Q), after_all(1, auto(), Items)) end,
    [?assertMatch({error, _, _}, Refused(Items)) || Items <- [[init(Q, undefined)], [recv(Q)], [init(P, undefined), fork(P, Q)]]].

auto_takes_the_first_that_nothing_has_spawned_test() ->
    {P, Q, R} = {p(), q(), r()},
    Out = run(auto(), [recv(Q), recv(P), recv(R), fork(P, Q)]),
    ?assertEqual([{root, P, undefined}, {t, 2, recv(P)}, {t, 4, fork(P, Q)}, {t, 4, init(Q, P)}, {t, 1, recv(Q)},
                  {orphan, R, 1}], Out),
    %% Its init says the signature, even if it names a parent.
    ?assertEqual([{root, P, ?SIG}, {t, 1, init(P, Q)}, {t, 2, recv(P)}], run(auto(), [init(P, Q), recv(P)])).

auto_waits_for_the_window_only_test() ->
    {P, Q} = {p(), q()},
    Log0 = auto(#{window => 3}),
    {[], Log1} = add(1, recv(Q), Log0),
    {[], Log2} = add(2, recv(P), Log1),
    ?assertNot(witness_trace_log:is_plain(P, Log2)),
    {Out, Log3} = add(3, fork(P, Q), Log2),
    ?assertEqual([{root, P, undefined}, {t, 2, recv(P)}, {t, 3, fork(P, Q)}, {t, 3, init(Q, P)}, {t, 1, recv(Q)}], Out),
    ?assert(witness_trace_log:is_plain(P, Log3)),
    %% A spawn beyond the window comes too late: its child is a root, and cannot be spawned any more.
    {_, Log4} = add(2, recv(Q), element(2, add(1, recv(Q), auto(#{window => 2})))),
    ?assertMatch({error, _, _}, witness_trace_log:add(3, fork(P, Q), Log4)).

auto_takes_no_second_root_after_one_that_came_first_test() ->
    {P, Q, R} = {p(), q(), r()},
    ?assertEqual([{root, P, ?SIG}, {t, 1, init(P, undefined)}, {orphan, Q, 1}],
                 run(auto(), [init(P, undefined), recv(Q)])),
    ?assertEqual([{root, P, ?SIG}, {t, 2, init(P, undefined)}, {root, Q, undefined}, {t, 1, recv(Q)}, {orphan, R, 1}],
                 run(auto(), [recv(Q), init(P, undefined), recv(R)])),
    {Out, Log} = through(1, auto(), [recv(Q), init(P, undefined), recv(R), fork(P, Q)]),
    ?assertMatch([{root, P, _}, {t, 2, _}, {t, 4, _}, {t, 4, _}, {t, 1, _}], Out),
    ?assertMatch({[], _}, drain(witness_trace_log:settle(Log))).

processes_are_plain_once_the_root_is_known_test() ->
    {P, Q} = {p(), q()},
    ?assert(witness_trace_log:is_plain(P, after_all(1, auto(), [init(P, undefined)]))),
    Open = after_all(1, auto(), [recv(Q), init(P, undefined)]),
    ?assertNot(witness_trace_log:is_plain(P, Open)),
    ?assert(witness_trace_log:is_plain(P, after_all(3, Open, [fork(P, Q), recv(P)]))),
    ?assert(witness_trace_log:is_plain(P, witness_trace_log:settle(Open))).

an_init_without_parent_is_no_root_when_its_spawn_is_in_the_log_test() ->
    {P, Q} = {p(), q()},
    ?assertEqual([{root, P, undefined}, {t, 1, fork(P, Q)}, {t, 2, init(Q, undefined)}],
                 run(auto(), [fork(P, Q), init(Q, undefined)])).

settling_an_empty_log_leaves_the_root_open_test() ->
    Log = witness_trace_log:settle(auto()),
    ?assertEqual([{root, p(), undefined}, {t, 1, recv(p())}], run(Log, [recv(p())])).

settling_decides_once_test() ->
    {[], Log0} = add(1, recv(p()), auto()),
    {[{root, _, _}, {t, 1, _}], Log1} = drain(witness_trace_log:settle(Log0)),
    {[], Log2} = add(2, recv(q()), Log1),
    ?assertEqual({[], Log2}, drain(witness_trace_log:settle(Log2))).

%% --- the bound ----------------------------------------------------------------------

the_process_that_waits_longest_loses_its_items_test() ->
    {P, Q, R} = {p(), q(), r()},
    Out = run(bounded(2), [recv(Q), recv(R), recv(Q), fork(P, R), fork(P, Q), recv(Q)]),
    ?assertEqual([{root, P, undefined}, {t, 4, fork(P, R)}, {t, 4, init(R, P)}, {t, 2, recv(R)},
                  {t, 5, fork(P, Q)}, {t, 5, init(Q, P)}, {t, 1, gap(Q, 2)}, {t, 6, recv(Q)}], Out).

what_comes_of_a_lost_process_is_lost_until_its_spawn_test() ->
    {P, Q} = {p(), q()},
    Out = run(bounded(1), [recv(Q), recv(Q), recv(Q), recv(Q), fork(P, Q), recv(Q, last)]),
    ?assertEqual([{root, P, undefined}, {t, 5, fork(P, Q)}, {t, 5, init(Q, P)}, {t, 1, gap(Q, 4)},
                  {t, 6, recv(Q, last)}], Out).

a_lost_process_keeps_its_init_and_its_exit_test() ->
    {P, Q} = {p(), q()},
    ?assertEqual([{root, P, undefined}, {t, 5, fork(P, Q)}, {t, 1, init(Q, P)}, {t, 2, gap(Q, 2)}, {t, 4, exit_of(Q)}],
                 run(bounded(1), [init(Q, P), recv(Q), recv(Q), exit_of(Q), fork(P, Q)])),
    ?assertEqual([{root, P, undefined}, {t, 5, fork(P, Q)}, {t, 5, init(Q, P)}, {t, 1, gap(Q, 3)}, {t, 4, exit_of(Q)}],
                 run(bounded(1), [recv(Q), recv(Q), recv(Q), exit_of(Q), fork(P, Q)])),
    %% Where nothing else is lost there is no gap.
    ?assertEqual([{root, P, undefined}, {t, 4, fork(P, Q)}, {t, 1, init(Q, P)}, {t, 2, exit_of(Q)}, {orphan, r(), 1}],
                 run(bounded(2), [init(Q, P), exit_of(Q), recv(r()), fork(P, Q)])).

lost_processes_are_orphans_in_the_end_test() ->
    {P, Q, R} = {p(), q(), r()},
    Log = after_all(1, bounded(2), [recv(R), recv(Q), recv(Q), recv(Q), recv(P)]),
    ?assertEqual([{R, 1}, {Q, 3}], orphans(Log)).

a_spawn_that_is_lost_makes_orphans_of_its_children_test() ->
    {P, Q, R} = {p(), q(), r()},
    Out = run(bounded(2), [fork(Q, R), recv(R), recv(R), fork(P, Q)]),
    ?assertEqual([{root, P, undefined}, {t, 4, fork(P, Q)}, {t, 4, init(Q, P)}, {t, 1, gap(Q, 1)},
                  {orphan, R, 2}], Out).

a_child_whose_spawn_was_lost_can_be_spawned_by_another_test() ->
    {P, Q, R} = {p(), q(), r()},
    [?assertEqual([{root, P, undefined}, {t, 3 + N, fork(P, R)}, {t, 3 + N, init(R, P)}, {t, 4 + N, recv(R, 2)},
                   {orphan, Q, 2 + N}],
                  run(bounded(1), [fork(Q, R), recv(Q)] ++ lists:duplicate(N, recv(Q)) ++ [fork(P, R), recv(R, 2)]))
     || N <- [0, 1]],
    %% Also if the spawn came when the rest was lost before.
    ?assertEqual([{root, P, undefined}, {t, 4, fork(P, R)}, {t, 4, init(R, P)}, {t, 5, recv(R, 2)}, {orphan, Q, 3}],
                 run(bounded(1), [recv(Q), recv(Q), fork(Q, R), fork(P, R), recv(R, 2)])).

too_many_lost_processes_are_refused_test() ->
    Names = [named(integer_to_binary(N)) || N <- lists:seq(1, 5)],
    Log = after_all(1, bounded(2), [recv(P) || P <- Names]),
    {error, What, Log} = witness_trace_log:add(6, recv(named(~"6")), Log),
    ?assertEqual("more than 2 processes whose spawn is not in the log; 6 may be one", text(What)),
    %% The others go on, and what is found again makes room.
    {[{root, _, _}, _, _, _], Log1} = add(7, fork(p(), hd(Names)), Log),
    ?assertMatch({[], _}, add(8, recv(named(~"6")), Log1)).

the_root_is_decided_before_anything_is_lost_test() ->
    {P, Q} = {p(), q()},
    ?assertEqual([{root, P, undefined}, {t, 1, recv(P)}, {t, 2, recv(P)}, {t, 3, fork(P, Q)}],
                 run(auto(#{waiting => 2}), [recv(P), recv(P), fork(P, Q)])).

%% --- orphans ------------------------------------------------------------------------

orphans_are_told_in_the_order_of_their_appearance_test() ->
    {P, Q, R} = {p(), q(), r()},
    Log = after_all(1, new([P]), [recv(R), recv(Q), recv(P), exit_of(R), fork(Q, named(~"x"))]),
    {Orphans, Log1} = witness_trace_log:finish(Log),
    ?assertEqual([{R, 2}, {Q, 2}], Orphans),
    ?assertMatch({[], Log1}, witness_trace_log:finish(Log1)),
    ?assert(witness_trace_log:is_plain(P, Log1)).

%% --- names that are used again ------------------------------------------------------

names_are_used_again_test() ->
    {P, Q} = {p(), q()},
    Life = [fork(P, Q), init(Q, P), recv(Q), exit_of(Q)],
    Log = lists:append(lists:duplicate(3, Life)),
    ?assertEqual(Log, items(Log)),
    %% Also where all of them wait, for their root.
    ?assertEqual(Log, [I || {t, _, I} <- run(auto(), Log)]),
    %% The first spawn may come late, as long as it comes before the second one.
    ?assertEqual(Life ++ Life, items([init(Q, P), recv(Q), exit_of(Q)] ++ [fork(P, Q)] ++ Life)).

a_new_life_is_not_mixed_up_with_one_that_waits_test() ->
    {P, Q, R} = {p(), q(), r()},
    %% Of two processes R one was spawned by Q, which is not known when the other one begins.
    Out = run(new([P]), [fork(Q, R), recv(R, 1), exit_of(R), fork(P, R), recv(R, 2), fork(P, Q)]),
    ?assertEqual([{root, P, undefined}, {t, 4, fork(P, R)}, {t, 4, init(R, P)}, {t, 5, recv(R, 2)},
                  {t, 6, fork(P, Q)}, {t, 6, init(Q, P)}, {t, 1, gap(Q, 1)}, {orphan, R, 2}], Out).

the_late_spawn_of_a_root_is_not_mixed_up_with_a_new_life_test() ->
    {P, Q, R} = {p(), q(), r()},
    ?assertEqual([{root, P, undefined}, {t, 1, fork(P, R)}, {t, 3, exit_of(P)}, {t, 1, init(R, P)}, {t, 4, fork(R, P)},
                  {t, 4, init(P, R)}, {t, 5, fork(P, Q)}, {t, 5, init(Q, P)}, {t, 2, gap(Q, 1)}],
                 run(new([P]), [fork(P, R), fork(Q, P), exit_of(P), fork(R, P), fork(P, Q)])).

a_forgotten_name_is_unknown_test() ->
    {P, Q} = {p(), q()},
    Begun = after_all(1, new([P]), [fork(P, Q), exit_of(Q)]),
    Remembered = short_lives(9_999, Begun),
    ?assertMatch({error, _, _}, witness_trace_log:add(1, recv(Q), Remembered)),
    Forgotten = short_lives(1, Remembered),
    ?assertMatch({[], _}, add(1, recv(Q), Forgotten)),
    ?assertEqual([{Q, 1}], orphans(element(2, add(1, recv(Q), Forgotten)))),
    %% A name that ended again since is remembered.
    Again = short_lives(2, after_all(1, Remembered, [fork(P, Q), exit_of(Q)])),
    ?assertMatch({error, _, _}, witness_trace_log:add(1, recv(Q), Again)).

%% --- what is refused ----------------------------------------------------------------

impossible_items_are_refused_with_their_reason_test_() ->
    {P, Q, R} = {p(), q(), r()},
    [{What, fun() ->
         Log = after_all(1, new([P]), Before),
         {error, Text, Same} = witness_trace_log:add(9, Item, Log),
         ?assertEqual(What, text(Text)),
         ?assertEqual(Log, Same)
     end}
     || {What, Before, Item} <-
        [{"<0.102.0> has ended: nothing can follow", [fork(P, Q), exit_of(Q)], Event}
         || Event <- [recv(Q), send(Q, P), exit_of(Q), init(Q, P), fork(Q, R), gap(Q, 1), attached(Q)]]
     ++ [{"<0.102.0> has ended: nothing can follow", [exit_of(Q)], recv(Q)},
         {"<0.102.0> has ended: nothing can follow", [fork(P, Q), exit_of(Q), fork(P, Q), exit_of(Q)], recv(Q)},
         {"<0.102.0> has ended: nothing can follow", [fork(R, Q), exit_of(Q), fork(R, Q), exit_of(Q)], recv(Q)},
         {"init of <0.102.0>, which has begun already", [fork(P, Q), init(Q, P)], init(Q, P)},
         {"init of <0.102.0>, which has begun already", [fork(P, Q), recv(Q)], init(Q, P)},
         {"init of <0.102.0>, which has begun already", [init(Q, P)], init(Q, P)},
         {"init of <0.102.0>, which has begun already", [recv(Q)], init(Q, undefined)},
         {"init of <0.101.0>, which has begun already", [recv(P)], init(P, undefined)},
         {"fork of <0.102.0>, which is alive", [fork(P, Q), recv(Q)], fork(P, Q)},
         {"fork of <0.102.0>, which is alive", [fork(P, Q), recv(Q)], fork(R, Q)},
         {"second fork of <0.102.0>", [fork(P, Q)], fork(P, Q)},
         {"second fork of <0.102.0>", [fork(P, Q)], fork(R, Q)},
         {"second fork of <0.102.0>", [fork(R, Q)], fork(P, Q)},
         {"second fork of <0.102.0>", [fork(R, Q), recv(Q)], fork(R, Q)},
         {"<0.101.0> cannot be spawned by itself", [], fork(P, P)},
         {"<0.102.0> was spawned by <0.101.0>, but its init names <0.103.0>", [fork(P, Q)], init(Q, R)},
         {"<0.102.0> was spawned by <0.103.0>, but its init names <0.101.0>", [fork(R, Q)], init(Q, P)},
         {"<0.102.0> was spawned by <0.101.0>, but its init names <0.103.0>", [init(Q, R)], fork(P, Q)},
         {"w 1 has ended: nothing can follow", [fork(P, named(~"w 1")), exit_of(named(~"w 1"))], recv(named(~"w 1"))}]].

the_parent_is_known_when_the_rest_is_lost_test() ->
    {P, Q, R} = {p(), q(), r()},
    Log = after_all(1, bounded(1), [init(Q, R), recv(Q)]),
    {error, What, Log} = witness_trace_log:add(3, fork(P, Q), Log),
    ?assertEqual("<0.102.0> was spawned by <0.101.0>, but its init names <0.103.0>", text(What)).

a_root_cannot_be_spawned_test() ->
    Log = after_all(1, auto(), [init(p(), undefined)]),
    {error, What, Log} = witness_trace_log:add(2, fork(q(), p()), Log),
    ?assertEqual("fork of <0.101.0>, which is alive", text(What)).

refused_items_leave_no_trace_test() ->
    {P, Q} = {p(), q()},
    ?assertEqual([{root, P, undefined}, {t, 1, fork(P, Q)}, {t, 2, init(Q, P)}, refused, {t, 4, recv(Q)}],
                 run(new([P]), [fork(P, Q), init(Q, P), init(Q, P), recv(Q)])).

an_item_is_not_added_before_the_last_one_is_out_test() ->
    {ok, Log} = witness_trace_log:add(2, recv(p()), after_all(1, new([p()]), [recv(p())])),
    ?assertError(function_clause, witness_trace_log:add(3, recv(p()), Log)).

%% --- memory and checkpoints ---------------------------------------------------------

memory_does_not_grow_with_processes_that_come_and_go_test_() ->
    {timeout, 60, fun() ->
        %% Names of the same size, so that only their number counts.
        Log1 = short_lives(15_000, new([p()])),
        Log2 = short_lives(100_000, Log1),
        ?assertEqual(erts_debug:flat_size(maps:remove(ended, witness_trace_log:save(Log1))),
                     erts_debug:flat_size(maps:remove(ended, witness_trace_log:save(Log2)))),
        ?assert(erts_debug:flat_size(Log2) < 1.05 * erts_debug:flat_size(Log1))
    end}.

%% The work for an item does not grow with how often a name was used:.
many_lives_of_a_name_may_wait_test_() ->
    {timeout, 60, fun() ->
        {P, Q, R} = {p(), q(), r()},
        Lives = fun(Life) -> lists:append(lists:duplicate(30_000, Life)) end,
        Out = run(new([P]), Lives([fork(Q, R), recv(R), exit_of(R)]) ++ [fork(P, Q)]),
        ?assertEqual(Lives([fork(Q, R), init(R, Q), recv(R), exit_of(R)]), [I || {t, _, I} <- lists:nthtail(3, Out)])
    end}.

saved_logs_are_plain_data_test() ->
    {P, Q, R} = {p(), q(), r()},
    Log = after_all(1, new([P]), [recv(Q), exit_of(Q), fork(R, Q), recv(Q), recv(P), fork(P, named(~"x"))]),
    Data = binary_to_term(term_to_binary(witness_trace_log:save(Log))),
    ?assertEqual(run(7, Log, [fork(P, R), recv(named(~"x"))]),
                 run(7, witness_trace_log:load(Data), [fork(P, R), recv(named(~"x"))])),
    Ready = witness_trace_log:on(R, t, Log),
    ?assertEqual(run(7, Ready, []), run(7, witness_trace_log:load(witness_trace_log:save(Ready)), [])).

%% Short-lived children of P, one after the other.
short_lives(N, Log) ->
    P = p(),
    lists:foldl(fun(I, Acc) ->
                    C = named(<<I:32>>),
                    after_all(1, Acc, [fork(P, C), init(C, P), recv(C), exit_of(C)])
                end, Log, lists:seq(1, N)).

%% --- helpers ------------------------------------------------------------------------

new(Roots) -> witness_trace_log:new(#{roots => Roots, top => t}).
auto() -> auto(#{}).
auto(Options) -> witness_trace_log:new(Options#{roots => auto, top => t}).
bounded(Waiting) -> witness_trace_log:new(#{roots => [p()], top => t, waiting => Waiting}).

%% The items that are delivered, P being the root; all must be.
items(Log) ->
    [{root, _, _} | Out] = run(new([p()]), Log),
    [case O of {t, _, Item} -> Item end || O <- Out].

run(Log, Items) -> run(1, Log, Items).

run(Line, Log, Items) ->
    {Out, Log1} = through(Line, Log, Items),
    {Rest, Log2} = drain(witness_trace_log:settle(Log1)),
    Out ++ Rest ++ [{orphan, P, Count} || {P, Count} <- orphans(Log2)].

after_all(Line, Log, Items) -> element(2, through(Line, Log, Items)).

through(Line, Log, Items) ->
    {Outs, Log1} = lists:mapfoldl(fun({N, Item}, Acc) -> add(N, Item, Acc) end, Log, lists:enumerate(Line, Items)),
    {lists:append(Outs), Log1}.

add(Line, Item, Log) ->
    case witness_trace_log:add(Line, Item, Log) of
        {ok, Log1} -> drain(Log1);
        {error, _, Log1} -> {[refused], Log1}
    end.

drain(Log) -> drain(witness_trace_log:next(Log), []).

drain({deliver, Tracer, Line, Item, Log}, Out) -> drain(witness_trace_log:next(Log), [{Tracer, Line, Item} | Out]);
drain({root, P, Signature, _, Log}, Out) -> drain(witness_trace_log:next(Log), [{root, P, Signature} | Out]);
drain({none, Log}, Out) -> {lists:reverse(Out), Log}.

orphans(Log) -> element(1, witness_trace_log:finish(Log)).

text(Chars) -> unicode:characters_to_list(Chars).

the_name_of_a_root_may_be_used_again_test() ->
    P = p(),
    ?assertEqual([{root, P, ?SIG}, {t, 1, init(P, undefined)}, {t, 2, exit_of(P)},
                  {root, P, ?SIG}, {t, 3, init(P, undefined)}, {t, 4, recv(P)}],
                 run(auto(), [init(P, undefined), exit_of(P), init(P, undefined), recv(P)])),
    {Out, _} = through(1, auto(), [init(P, undefined), exit_of(P), recv(P)]),
    ?assertEqual(refused, lists:last(Out)).

a_root_comes_with_the_line_of_its_first_item_test() ->
    {ok, Log} = witness_trace_log:add(7, init(p(), undefined), auto()),
    ?assertMatch({root, _, ?SIG, 7, _}, witness_trace_log:next(Log)).

%% Four items of 16 MB each are too much, though they are few.
what_waits_is_bounded_in_memory_test() ->
    P = p(), Q = q(),
    Large = lists:duplicate(1_000_000, 1),
    Log = lists:foldl(fun(Line, L) ->
        {ok, L1} = witness_trace_log:add(Line, {recv, Q, undefined, Large, undefined}, L),
        {none, L2} = witness_trace_log:next(L1),
        L2
    end, witness_trace_log:new(#{roots => [P], top => t}), [1, 2, 3]),
    {Held, _} = add(4, recv(Q), Log),
    ?assertEqual([], Held),
    {Out, _} = add(5, fork(P, Q), Log),
    ?assertMatch([{root, P, undefined}, {t, 5, _}, {t, 5, {init, Q, _, _, _}}, {t, 1, {recv, _, _, _, _}} | _], Out),
    {ok, Log4} = witness_trace_log:add(4, {recv, Q, undefined, Large, undefined}, Log),
    {none, Log5} = witness_trace_log:next(Log4),
    {Lost, _} = add(5, fork(P, Q), Log5),
    ?assertMatch([{root, P, undefined}, {t, 5, _}, {t, 5, {init, Q, _, _, _}}, {t, 1, {gap, Q, orphaned, 4, _}}], Lost).
