-module(witness_explore_paper_search_tests).
-moduledoc """
What the search finds about the paper's choreography: it is sound on the source that the paper assumes once the defects
of its printed form are mended, each of them is found if it alone is left, and on the VM's source it is not sound,
mended or not.
""".
-include_lib("eunit/include/eunit.hrl").

%% The system of the paper (figure 2a); every process ends.
-define(PQR, [{p, [{spawn, q}, {send, q}, exit]}, {q, [{recv, p}, {spawn, r}, exit]}, {r, [exit]}]).
-define(PQ, [{p, [{spawn, q}, exit]}, {q, [{send, p}, exit]}]).

%% --- the source that the paper assumes -------------------------------------------

mended_it_is_sound_on_the_ideal_source_test_() ->
    [{unicode:characters_to_list(io_lib:format("~0p ~0p", [Monitors, Reduce])),
      {timeout, 120, fun() ->
          ?assertMatch({ok, #{states := States}} when States > 100,
                       search(?PQR, Monitors, ideal, #{mend => all()}, #{reduce => Reduce}))
      end}}
     || Monitors <- [[{p, single}, {q, single}, {r, single}], [{p, single}, {q, group}],
                     [{p, group}, {r, single}], [{p, group}]],
        Reduce <- [[], [atomic, direct, settled]]].

mended_it_is_sound_for_siblings_test_() ->
    {timeout, 120, fun() ->
        Siblings = [{p, [{spawn, q}, {spawn, r}, exit]}, {q, [exit]}, {r, [exit]}],
        ?assertMatch({ok, _}, search(Siblings, [{q, single}, {r, single}], ideal, #{mend => all()}))
    end}.

%% All the others are mended. That each of them is found says that the search would have found it above.
each_defect_is_found_test_() ->
    [{atom_to_list(Defect),
      {timeout, 120, fun() ->
          {violation, What, Path, _} = search(?PQR, Monitors, ideal, #{mend => all() -- [Defect]}, #{reduce => []}),
          ?assertEqual(Expected, What),
          ?assertEqual(Length, length(Path))
      end}}
     || {Defect, Monitors, Length, Expected} <- defects()].

every_defect_has_its_search_test() ->
    ?assertEqual(all(), [Defect || {Defect, _, _, _} <- defects()]).

%% Process 1 is P, its tracer -1, and so on; the length is that of the shortest path, which the search
%% finds without its reductions.
defects() ->
    Each = [{p, single}, {q, single}, {r, single}],
    Apart = [{p, single}, {q, group}],
    [{'I4', Each, 2, {invariant, 'I4', 2}},
     {'I8', Apart, 15, {invariant, 'I8', 3}},
     {'I16', Each, 3, {invariant, 'I16', -1}},
     {'A3.32', Apart, 32, {lost, -2, {routed, -1, {dtc, -2, 2}}}},
     {'A3.46', Apart, 31, {still_owned, 2, -2}},
     {'A3.47', Apart, 26, {invariant, 'I20', 3}},
     {'A3.51', Each, 34, {still_routed, 3, -2}},
     {'A5.17', Apart, 15, {lost, {fork, 2, 3, {shared, 3, 2}, 3}, 1, -2}}].

%% No tracer sees Q send: it is off at T:P and not yet on at T:Q.
what_happens_between_clear_and_trace_is_lost_test() ->
    {violation, What, Path, _} = search(?PQ, [{q, single}], ideal, #{mend => all() -- ['A5.17']}),
    ?assertMatch({lost, {exit, 2, normal, 3}, 1, -2}, What),
    Sent = [Note || {_, Notes} <- Path, {happened, {send, _, _, _, _}, _} = Note <- Notes],
    ?assertMatch([{happened, {send, 2, 1, _, 2}, []}], Sent).

%% --- the VM's source -------------------------------------------------------------

%% A4 does not hold: the child's first event comes before its fork, and the parent's monitor gets it.
as_printed_it_is_not_sound_on_the_vm_test_() ->
    [fun() ->
         {violation, What, Path, _} = search(?PQ, [{q, single}], vm, #{mend => Mend}, #{reduce => []}),
         ?assertMatch({analysed_by_a_stranger, {init, 2, 1, _, 1}, -1, 0}, What),
         ?assertEqual([{act, 1}, {event, -1, 2}], [Step || {Step, _} <- Path])
     end || Mend <- [['I4', 'I8', 'I16'], all()]].

%% With the reordering of appendix B the next reason comes up: an event of Q is on its way to T:P when Q is cleared
%% there. It comes when T:P has acknowledged, and has no route any more.
with_reordering_an_event_still_comes_late_test() ->
    {violation, What, Path, _} = search(?PQ, [{q, single}], vm, #{mend => all(), reorder => true}),
    ?assertMatch({analysed_by_a_stranger, {init, 2, 1, _, 1}, -1, -2}, What),
    ?assertEqual(drawn(), [unicode:characters_to_list(string:trim(Line, trailing))
                           || Line <- witness_explore_text:sequence(Path, [~"P", ~"Q"])]).

drawn() ->
    ["           P       Q      T:P     T:Q",
     "   1       *       |       |       |    P1: P spawns Q, seen by T:P",
     "           |       *       |       |    Q1: Q begins, seen by T:P",
     "   2       |-------------->|       |    takes P1: P spawns Q",
     "           |       |       +       |    analyses P1",
     "           |       |       +       |    a tracer for Q? T:Q",
     "           |       |       +       |    to T:Q: take Q, origin T:P",
     "   3       |       |       |------>|    takes: take Q, origin T:P",
     "           |       |       |       +    adopts Q",
     "           |       |       |       +    clears Q: off wherever it is on",
     "   4       |       |       |       +    traces Q",
     "           |       |       |       +    to T:P: detach Q, it is with T:Q",
     "   5       |       |       |<------|    takes: detach Q, it is with T:Q",
     "           |       |       +       |    to T:Q: acknowledgement: Q is with T:Q, from T:P",
     "   6       |       |------>|       |    takes Q1: Q begins"].

%% --- a search --------------------------------------------------------------------

all() -> witness_explore_paper:defects().

search(Processes, Monitors, Source, Extra) -> search(Processes, Monitors, Source, Extra, #{}).

search(Processes, Monitors, Source, Extra, Given) ->
    Scenario = #{name => ~"test", about => ~"", processes => Processes, monitors => [Monitors],
                 choreography => {witness_explore_paper, Extra}},
    {ok, World} = witness_explore_scenario:world(Scenario, Given#{source => Source, pool => fresh, stamps => handover}),
    witness_explore:run(World, #{max_seconds => 100}).
