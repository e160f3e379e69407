-module(witness_instrument_map_tests).
-moduledoc "Which monitors read a process, and which tracer owns it.".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% A runner is represented by what it runs: {Map, Monitor, Process that it was started for}.

%% --- one map ---------------------------------------------------------------------

a_process_that_no_map_names_stays_with_its_parents_tracer_test() ->
    {shared, Label} = born(other, root(), [map(#{a => [alone(m)]})]),
    ?assertEqual([], readers(Label)).

a_process_with_a_monitor_gets_a_tracer_test() ->
    {own, Label} = born(a, root(), [map(#{a => [alone(m)]})]),
    ?assertEqual([{1, m, a}], readers(Label)).

a_monitor_reads_no_descendant_of_its_process_test() ->
    Maps = [map(#{a => [alone(m)]})],
    {own, A} = born(a, root(), Maps),
    {shared, B} = born(b, A, Maps),
    ?assertEqual([], readers(B)).

a_group_reads_descendants_at_any_depth_test() ->
    Maps = [map(#{a => [group(m)]})],
    {own, A} = born(a, root(), Maps),
    {shared, B} = born(b, A, Maps),
    {shared, C} = born(c, B, Maps),
    ?assertEqual([{1, m, a}], readers(C)).

what_a_map_names_leaves_the_group_test() ->
    Maps = [map(#{a => [group(m)], b => [alone(n)]})],
    {own, A} = born(a, root(), Maps),
    {own, B} = born(b, A, Maps),
    ?assertEqual([{1, n, b}], readers(B)),
    {shared, C} = born(c, B, Maps),
    ?assertEqual([], readers(C)).

a_group_in_a_group_test() ->
    Maps = [map(#{a => [group(m)]})],
    {own, A} = born(a, root(), Maps),
    {own, A2} = born(a, A, Maps, a2),
    {shared, B} = born(b, A2, Maps),
    ?assertEqual([{1, m, a2}], readers(B)).

none_cuts_a_subtree_out_of_a_group_test() ->
    Maps = [map(#{a => [group(m)], b => [none]})],
    {own, A} = born(a, root(), Maps),
    {shared, B} = born(b, A, Maps),
    {shared, C} = born(c, B, Maps),
    ?assertEqual({[], []}, {readers(B), readers(C)}).

none_wins_over_monitors_of_the_same_map_test() ->
    {shared, Label} = born(a, root(), [map(#{a => [alone(m), none, group(n)]})]),
    ?assertEqual([], witness_instrument_map:starts(Label)).

several_monitors_of_one_map_read_one_process_test() ->
    {own, Label} = born(a, root(), [map(#{a => [alone(m), group(n)]})]),
    ?assertEqual([{1, m, a}, {1, n, a}], lists:sort(readers(Label))).

%% --- several maps ----------------------------------------------------------------

a_process_that_another_map_names_stays_in_the_group_test() ->
    Maps = [map(#{a => [group(m)]}), map(#{b => [alone(n)]})],
    {own, A} = born(a, root(), Maps),
    {shared, B} = born(b, A, Maps),
    ?assertEqual([{1, m, a}, {2, n, b}], lists:sort(readers(B))),
    {shared, C} = born(c, B, Maps),
    ?assertEqual([{1, m, a}], readers(C)).

none_of_one_map_does_not_cut_another_maps_group_test() ->
    Maps = [map(#{a => [group(m)]}), map(#{a => [group(n)], b => [none]})],
    {own, A} = born(a, root(), Maps),
    {shared, B} = born(b, A, Maps),
    ?assertEqual([{1, m, a}], readers(B)).

%% --- a map for processes that its groups do not read ------------------------------

a_whole_tree_has_one_monitor_test() ->
    Maps = [rest(group(m)), map(#{b => [alone(n), group(n)]})],
    {own, A} = born(a, root(), Maps),
    {shared, B} = born(b, A, Maps),
    {shared, C} = born(c, B, Maps),
    ?assertEqual([[{1, m, a}], [{1, m, a}], [{1, m, a}]], [[R || {1, _, _} = R <- readers(L)] || L <- [A, B, C]]).

each_child_of_a_process_that_no_monitor_reads_has_its_own_test() ->
    Maps = [rest(group(m))],
    {own, A} = born(a, root(), Maps),
    {own, B} = born(b, root(), Maps),
    ?assertEqual([[{1, m, a}], [{1, m, b}]], [readers(L) || L <- [A, B]]).

where_no_group_reads_on_there_is_another_monitor_test() ->
    Maps = [rest(alone(m))],
    {own, A} = born(a, root(), Maps),
    {own, B} = born(b, A, Maps),
    ?assertEqual([[{1, m, a}], [{1, m, b}]], [readers(L) || L <- [A, B]]).

%% --- what the run waits for ------------------------------------------------------

a_process_is_held_if_its_parent_is_test() ->
    [begin
         {_, Label} = witness_instrument_map:assign({m, a, []}, witness_instrument_map:new([], #{held => Held}), []),
         ?assertEqual(Held, witness_instrument_map:label(held, Label))
     end || Held <- [true, false]].

the_first_process_of_a_system_is_monitored_like_any_other_test() ->
    Label = witness_instrument_map:new([map(#{a => [alone(m)]})], #{held => true, signature => {m, a, []}}),
    ?assertMatch([{1, #{monitor := {m, arg}}}], witness_instrument_map:starts(Label)),
    ?assert(witness_instrument_map:label(held, Label)).

%% --- properties ------------------------------------------------------------------

-define(holds(Property),
        {timeout, 60, ?_assert(proper:quickcheck(Property, [quiet, {numtests, 500}, {max_size, 12}, {to_file, user}]))}).

maps_are_independent_test_() -> ?holds(prop_independent()).
tracers_are_shared_exactly_where_monitors_are_test_() -> ?holds(prop_owner()).

%% The monitors of a map see the same of a line of descendants, alone and among other maps.
prop_independent() ->
    ?FORALL({Maps, Line}, {list(entries()), list(name())},
            begin
                Together = line(Line, [map(M) || M <- Maps]),
                lists:all(fun({N, M}) ->
                                  [of_map(N, Label) || {_, Label} <- Together]
                                      =:= [of_map(1, Label) || {_, Label} <- line(Line, [map(M)])]
                          end, lists:enumerate(Maps))
            end).

of_map(N, Label) -> lists:sort([{M, P} || {I, M, P} <- readers(Label), I =:= N]).

%% A process gets a tracer of its own exactly if it has monitors and shares none with its parent. If a monitor reads both,
%% they share a tracer.
prop_owner() ->
    ?FORALL({Maps, Line}, {list(entries()), non_empty(list(name()))},
            begin
                Born = line(Line, [map(M) || M <- Maps]),
                Parents = [[] | [readers(Label) || {_, Label} <- lists:droplast(Born)]],
                lists:all(fun({{How, Label}, Parent}) ->
                                  Readers = readers(Label),
                                  Common = [R || R <- Readers, lists:member(R, Parent)],
                                  (How =:= own) =:= (Readers =/= [] andalso Common =:= [])
                          end, lists:zip(Born, Parents))
            end).

name() -> oneof([a, b, c, d]).

entries() -> ?LET(L, list({name(), list(frequency([{4, entry()}, {1, none}]))}), maps:from_list(L)).

entry() -> ?LET({M, Group}, {oneof([m, n]), boolean()}, entry(M, Group)).

line(Line, Maps) ->
    {Born, _} = lists:mapfoldl(fun({I, Name}, Parent) ->
                                       {How, Label} = born(Name, Parent, Maps, I),
                                       {{How, Label}, Label}
                               end, root(), lists:enumerate(Line)),
    Born.

%% --- helpers ---------------------------------------------------------------------

rest(Entry) -> fun(_) -> {unless_read, [Entry]} end.

map(Entries) -> fun({m, Name, []}) -> maps:get(Name, Entries, []) end.

alone(Monitor) -> entry(Monitor, false).
group(Monitor) -> entry(Monitor, true).

entry(Monitor, Group) -> #{monitor => {Monitor, arg}, spec => ~"spec", name => undefined, group => Group}.

root() -> witness_instrument_map:new([], #{held => true}).

born(Name, Parent, Maps) -> born(Name, Parent, Maps, Name).

%% As a tracer does: the way that the process was assigned, and its label once its monitors run.
born(Name, Parent, Maps, Process) ->
    {How, Label} = witness_instrument_map:assign({m, Name, []}, Parent, Maps),
    Started = [{N, {N, Monitor, Process}, Group}
               || {N, #{monitor := {Monitor, _}, group := Group}} <- witness_instrument_map:starts(Label)],
    Ready = witness_instrument_map:with_readers(Started, Label),
    ?assertEqual([], witness_instrument_map:starts(Ready)),
    ?assertEqual(lists:sort(readers(Ready)), lists:sort([R || {_, R, _} <- witness_instrument_map:label(members, Ready)])),
    {How, Ready}.

readers(Label) -> witness_instrument_map:label(readers, Label).
