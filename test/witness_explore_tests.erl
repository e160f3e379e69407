-module(witness_explore_tests).
-moduledoc """
The exploration of the choreography: everything that is explored comes to what is expected, every planted fault is
found, and the reductions lose nothing.
""".
-include_lib("eunit/include/eunit.hrl").

%% --- the choreography ------------------------------------------------------------

%% What the command `explore --all` does, one test for each search. Worlds that are the same are explored once.
everything_is_as_expected_test_() ->
    {_, Tests} = lists:foldl(fun unique/2, {#{}, []}, searches()),
    witness_share:inside(?MODULE, lists:reverse(Tests)).

searches() ->
    [{Scenario, World} || #{} = Scenario <- witness_explore_scenario:all(), not maps:get(deep, Scenario, false),
                          Source <- witness_explore_scenario:sources(Scenario),
                          not lists:member({maps:get(name, Scenario), Source}, long()),
                          {ok, World} <- [witness_explore_scenario:world(Scenario, #{source => Source})]].

%% Each of them takes longer than most of the others together; `make explore-deep' has them, too.
long() -> [{~"set-up {P},{Q},{R}", vm}, {~"lent to a grandchild", vm}, {~"exits in every order", vm}].

unique({Scenario = #{name := Name}, World = #{source := Source}}, {Known, Tests}) ->
    case Known of
        #{World := _} -> {Known, Tests};
        #{} ->
            Title = binary_to_list(Name) ++ ", " ++ atom_to_list(Source),
            {Known#{World => []}, [{Title, {timeout, 900, fun() -> as_expected(Scenario, World) end}} | Tests]}
    end.

as_expected(Scenario, World) ->
    Result = witness_explore:run(World, #{}),
    witness_explore_scenario:as_expected(Result, Scenario) orelse
        ?assertEqual(expected(Scenario), told(Result, Scenario)).

expected(Scenario) -> maps:get(expect, Scenario, sound).

%% What a person can read.
told({violation, What, Path, _}, Scenario) ->
    Names = witness_explore_scenario:names(Scenario),
    unicode:characters_to_list(
        lists:join($\n, witness_explore_text:sequence(Path, Names) ++ [witness_explore_text:violation(What, Names)]));
told(Result, _) -> Result.

all_set_ups_of_the_paper_are_there_test() ->
    Contents = [unicode:characters_to_binary(witness_explore_scenario:content(S))
                || #{name := <<"set-up ", _/binary>>} = S <- witness_explore_scenario:all()],
    ?assertEqual(12, length(lists:usort(Contents))),
    [?assertEqual({<<"set-up ", Content/binary>>, Content},
                  {maps:get(name, S), unicode:characters_to_binary(witness_explore_scenario:content(S))})
     || #{name := <<"set-up ", Content/binary>>} = S <- witness_explore_scenario:all()].

%% --- planted faults --------------------------------------------------------------

every_planted_fault_is_found_test_() ->
    [witness_mutant:can_be_planted([witness_explore_faults:text(Fault) || Fault <- witness_explore_faults:all()]) |
     [{binary_to_list(element(1, Fault)), {timeout, 300, fun() -> is_found(I, Fault) end}}
     || {I, Fault} <- witness_share:of_all(lists:enumerate(witness_explore_faults:all()))]].

is_found(I, {Name, _, _, ScenarioName, Source, Expected, Depth} = Fault) ->
    Faulty = witness_explore_faults:plant(list_to_atom("witness_explore_fault_" ++ integer_to_list(I)), Fault),
    {ok, Scenario} = witness_explore_scenario:named(ScenarioName),
    {ok, World} = witness_explore_scenario:world(Scenario, #{source => Source, choreography => Faulty}),
    {violation, What, Path, _} = witness_explore:run(World, #{}),
    ?assertEqual({Name, Expected, Depth}, {Name, kind(What), length(Path)}),
    %% It can be told.
    ?assertNotEqual("", told({violation, What, Path, #{}}, Scenario)).

kind({invariant, Name, _}) -> {invariant, Name};
kind(What) when is_tuple(What) -> element(1, What);
kind(What) -> What.

the_catalogue_has_each_kind_once_test() ->
    Names = [element(1, Fault) || Fault <- witness_explore_faults:all()],
    ?assertEqual(lists:sort(Names), lists:usort(Names)),
    ?assert(length(Names) >= 15).

%% --- farther than a search gets --------------------------------------------------

%% A chain of five, each with a tracer of its own, has too many states. This way leads to where Q's tracer has been lent
%% again, for S, and is a hop of T from R's tracer, while P's tracer still routes to it what R, S and T do: it has not
%% heard yet that R was claimed.
chain() ->
    #{name => ~"a chain of five", about => ~"",
      processes => [{p, [{spawn, q}]}, {q, [{spawn, r}, exit]}, {r, [{send, p}, {spawn, s}]}, {s, [{spawn, t}]},
                    {t, [exit]}],
      monitors => [[{q, single}, {r, single}, {s, single}, {t, single}]]}.

way() ->
    [%% Q is shared; R is born while it is on in both sessions
     {act, 1}, {event, -1, 1}, {go, -1}, {go, -1}, {mail, -2, -1}, {go, -1}, {go, -1}, {act, 2}, {go, -1}, {act, 2},
     {event, -1, 2}, {event, -1, 2}, {event, -1, 2}, {mail, -2, -1}, {mail, -2, -1},
     %% R is claimed, and handed over; Q's tracer has nothing left to do
     {lend, -2, -3}, {go, -2}, {go, -2}, {mail, -3, -2}, {go, -2}, {go, -2}, {go, -2}, {act, 3},
     {mail, -2, -1}, {event, -2, 2}, {event, -2, 2}, {event, -2, 3}, {event, -2, 3}, {go, -2},
     %% it is lent again, for S; T, the child of S, is older than that
     {mail, -3, -2}, {mail, -3, -2}, {event, -3, 3}, {act, 3}, {event, -3, 3}, {lend, -3, -2},
     {go, -3}, {go, -3}, {mail, -2, -3}, {go, -3}, {act, 4}, {go, -3}, {go, -3}, {act, 5},
     {event, -3, 4}, {event, -3, 4}, {mail, -2, -3}, {mail, -2, -3}, {event, -3, 5}, {event, -3, 5},
     {event, -1, 3}, {event, -1, 3}, {event, -1, 3}, {event, -1, 4}, {event, -1, 4}].

the_way_is_sound_test_() ->
    [{binary_to_list(Name), fun() -> ?assertEqual(ok, walk(witness_outline_core, way() ++ Last)) end}
     || {Name, _, _, Last} <- witness_explore_faults:far()].

far_faults_are_found_test_() ->
    [{binary_to_list(Name), fun() ->
         Faulty = witness_explore_faults:plant(list_to_atom("witness_explore_far_fault_" ++ integer_to_list(I)), Fault),
         ?assertMatch({violation, _}, walk(Faulty, way() ++ Last))
     end} || {I, {Name, _, _, Last} = Fault} <- lists:enumerate(witness_explore_faults:far())].

%% Takes these steps, and then whichever is the first until none is left.
walk(Core, Steps) ->
    {ok, World} = witness_explore_scenario:world(chain(), #{source => vm, choreography => Core, reduce => [atomic]}),
    {First, Setting} = witness_explore_world:new(World),
    try walk(Steps, First, Setting) catch throw:{violation, _} = Violation -> Violation end.

walk(Steps, World, Setting) ->
    case {Steps, witness_explore_world:steps(World, Setting)} of
        {[], []} -> witness_explore_check:final(witness_explore_world:view(World, Setting));
        {[], [Step | _]} -> walk([Step], World, Setting);
        {[Step | Rest], Possible} ->
            ?assert(lists:member(Step, Possible)),
            walk(Rest, element(1, witness_explore_world:step(Step, World, Setting)), Setting)
    end.

%% --- the search ------------------------------------------------------------------

%% Each of the reductions, and all of them, come to the same ends as the search without any; there are fewer states.
reductions_lose_nothing_test_() ->
    [{binary_to_list(Name) ++ ", " ++ atom_to_list(Source), {timeout, 600, fun() -> lose_nothing(Name, Source) end}}
     || Name <- [~"acknowledgement for the dead", ~"lives on", ~"child of an overlap", ~"killed",
                 ~"request and reply", ~"attach"],
        Source <- [ideal, birth, vm]].

lose_nothing(Name, Source) ->
    {ok, Scenario} = witness_explore_scenario:named(Name),
    [{All, Ends} | Reduced] = [ends(Scenario, Source, Reduce)
                               || Reduce <- [[], [atomic], [direct], [settled], [atomic, direct, settled]]],
    [?assertEqual(Ends, Other) || {_, Other} <- Reduced],
    {Fewest, _} = lists:last(Reduced),
    ?assert(Fewest < All).

ends(Scenario, Source, Reduce) ->
    {ok, World} = witness_explore_scenario:world(Scenario, #{source => Source, reduce => Reduce}),
    {ok, #{states := States, ends := Ends, fingerprint := Fingerprint}} = witness_explore:run(World, #{}),
    {States, {Ends, Fingerprint}}.

%% A fault that the search without reductions finds, is found with them, and the other way round.
reductions_hide_no_fault_test_() ->
    [{binary_to_list(Name), {timeout, 600, fun() -> hide_nothing(I, Fault) end}}
     || {I, {Name, _, _, Scenario, _, _, _} = Fault} <- lists:enumerate(witness_explore_faults:all()),
        lists:member(Scenario, [~"acknowledgement for the dead", ~"lives on", ~"request and reply",
                                ~"set-up {P,Q,R}"])].

hide_nothing(I, {_, _, _, Name, Source, _, _} = Fault) ->
    Faulty = witness_explore_faults:plant(list_to_atom("witness_explore_fault_" ++ integer_to_list(I)), Fault),
    {ok, Scenario} = witness_explore_scenario:named(Name),
    [?assertMatch({violation, _, _, _}, witness_explore:run(World, #{}))
     || Reduce <- [[], [atomic], [direct], [settled]],
        {ok, World} <- [witness_explore_scenario:world(Scenario,
                                                       #{source => Source, choreography => Faulty, reduce => Reduce})]].

limits_make_a_search_incomplete_test_() ->
    {timeout, 60, fun() ->
        World = world(~"siblings", vm),
        ?assertMatch({incomplete, {depth, 5}, #{depth := 5}}, witness_explore:run(World, #{max_depth => 5})),
        ?assertMatch({incomplete, {states, _}, #{states := States}} when States >= 2_000,
                     witness_explore:run(World, #{max_states => 2_000})),
        ?assertMatch({incomplete, {seconds, _}, #{}}, witness_explore:run(World, #{max_seconds => 0.001}))
    end}.

progress_is_told_test() ->
    Self = self(),
    {ok, #{depth := Depth, states := States}} =
        witness_explore:run(world(~"siblings", ideal), #{progress => fun(Stats) -> Self ! {stats, Stats} end}),
    Told = told(),
    ?assertEqual(lists:seq(0, Depth - 1), lists:usort([D || #{depth := D} <- Told])),
    Totals = [Total || #{estimate := {about, Total}} <- Told],
    ?assertNotEqual([], Totals),
    ?assert(lists:last(Totals) =< 2 * States).

told() -> receive {stats, Stats} -> [Stats | told()] after 0 -> [] end.

world(Name, Source) ->
    {ok, Scenario} = witness_explore_scenario:named(Name),
    {ok, World} = witness_explore_scenario:world(Scenario, #{source => Source}),
    World.

%% The path to a violation is a path of the world, step by step, to a state that has it.
a_path_leads_to_its_violation_test() ->
    {ok, Scenario} = witness_explore_scenario:named(~"paper, A5.17"),
    {ok, World} = witness_explore_scenario:world(Scenario, #{}),
    {violation, What, Path, _} = witness_explore:run(World, #{}),
    {First, Setting} = witness_explore_world:new(World),
    {Steps, [Last]} = lists:split(length(Path) - 1, [Step || {Step, _} <- Path]),
    Before = lists:foldl(fun(Step, W) ->
                                 ?assert(lists:member(Step, witness_explore_world:steps(W, Setting))),
                                 element(1, witness_explore_world:step(Step, W, Setting))
                         end, First, Steps),
    ?assertThrow({violation, What}, witness_explore_world:step(Last, Before, Setting)).

a_run_to_its_end_is_shown_test() ->
    {reached, Path, #{}} = witness_explore:run(world(~"lives on", vm),
                                               #{until => fun witness_explore_check:is_quiet/1}),
    Analysed = [Event || {_, Notes} <- Path, {analysed, _, Event} <- Notes],
    ?assertMatch([{init, 2, 1, _, 1}, {send, 2, 1, m, 2}, {send, 2, 1, m, 3}],
                 [E || E <- Analysed, element(2, E) =:= 2]),
    ?assertMatch([_], [Cut || {_, Notes} <- Path, {did, _, {cut, 2}, Cut} <- Notes]).

%% Around a circle the path comes back to where it was.
a_livelock_is_shown_as_a_circle_test() ->
    [Fault] = [F || {~"a `take' is put off for ever", _, _, _, _, _, _} = F <- witness_explore_faults:all()],
    Faulty = witness_explore_faults:plant(witness_explore_fault_livelock, Fault),
    {ok, Scenario} = witness_explore_scenario:named(~"acknowledgement for the dead"),
    {ok, World} = witness_explore_scenario:world(Scenario, #{source => birth, choreography => Faulty}),
    {violation, livelock, Path, _} = witness_explore:run(World, #{}),
    {First, Setting} = witness_explore_world:new(World),
    States = lists:foldl(fun({Step, _}, [W | Ws]) -> [element(1, witness_explore_world:step(Step, W, Setting)),
                                                      W | Ws] end, [First], Path),
    ?assert(lists:member(hd(States), tl(States))).

%% --- a scenario of a user --------------------------------------------------------

a_path_is_drawn_test() ->
    {ok, Scenario} = witness_explore_scenario:named(~"paper on the VM"),
    {ok, World} = witness_explore_scenario:world(Scenario, #{}),
    {violation, What, Path, _} = witness_explore:run(World, #{}),
    ?assertEqual(
        ["           P       Q      T:P",
         "   1       *       |       |    P1: P spawns Q, seen by T:P",
         "           |       *       |    Q1: Q begins, seen by T:P",
         "   2       |       |------>|    takes Q1: Q begins",
         "Q1 (Q begins) is analysed by T:P, and no tracer has adopted the process"],
        string:split(told({violation, What, Path, #{}}, Scenario), "\n", all)).

a_file_is_read_test() ->
    Text = ~"""
           % Q's child may die at any moment.
           {about, "as in the documentation"}.
           {process, p, [{spawn, q}, {send, q}, {recv, q}, exit]}.
           {process, q, [{recv, p}, {spawn, r_1}, {send, p}]}. {process, r_1, []}.
           {monitors, [{p, single}, {q, group}]}.
           {monitors, [{r_1, single}]}.
           {mortal, [r_1]}. {sources, [vm, ideal]}. {stamps, handover}. {pool, fresh}. {first, pooled}.
           {attach, false}. {order, [q, p]}.
           """,
    {ok, Scenario} = witness_explore_file:parse("a/b.scenario", Text),
    ?assertEqual(#{name => ~"b.scenario", about => ~"as in the documentation",
                   processes => [{~"p", [{spawn, ~"q"}, {send, ~"q"}, {recv, ~"q"}, exit]},
                                 {~"q", [{recv, ~"p"}, {spawn, ~"r_1"}, {send, ~"p"}]}, {~"r_1", []}],
                   monitors => [[{~"p", single}, {~"q", group}], [{~"r_1", single}]],
                   mortal => [~"r_1"], sources => [vm, ideal], stamps => handover, pool => fresh, first => pooled,
                   attach => false, order => [~"q", ~"p"]}, Scenario),
    ?assertEqual(~"{p},{q,r_1},{r_1}", unicode:characters_to_binary(witness_explore_scenario:content(Scenario))),
    {ok, World} = witness_explore_scenario:world(Scenario, #{}),
    ?assertMatch({incomplete, {depth, 5}, _}, witness_explore:run(World, #{max_depth => 5})).

mistakes_in_a_file_have_a_place_test_() ->
    [{Place, fun() ->
         {error, Error} = witness_explore_file:parse("f", unicode:characters_to_binary(Text)),
         ?assertMatch({0, _}, binary:match(unicode:characters_to_binary(Error),
                                           list_to_binary("f:" ++ Place ++ ": expected")))
     end} || {Text, Place} <-
        [{"{process, p, [exit]}", "1:21"},
         {"\n {proces, p, [exit]}.", "2:2"},
         {"{process, p, [{spwan, q}]}.", "1:16"},
         {"{process, p, [exit | x]}.", "1:20"},
         {"{process, 'p', [exit]}.", "1:11"},
         {"{process, p, {exit}}.", "1:1"},
         {"{process, [p], [exit]}.", "1:11"},
         {"{monitors, [p]}.", "1:13"},
         {"{monitors, [{p, alone}]}.", "1:17"},
         {"{pool, 3}.", "1:8"},
         {"{attach, maybe}.", "1:10"},
         {"{process, p, [exit]}. }", "1:23"}]].

what_a_file_says_makes_no_atoms_test() ->
    Names = [list_to_binary(["never_seen_" | integer_to_list(I)]) || I <- lists:seq(1, 500)],
    Text = [[~"{process, ", Name, ~", [{send, ", Name, ~"_}]}.\n"] || Name <- Names],
    Before = erlang:system_info(atom_count),
    {ok, _} = witness_explore_file:parse("f", iolist_to_binary(Text)),
    ?assertEqual(Before, erlang:system_info(atom_count)).

any_bytes_are_a_scenario_or_a_mistake_test() ->
    lists:foreach(fun(I) ->
                          rand:seed(exsss, I),
                          Parts = ["{", "}", "[", "]", ",", ".", "process", "exit", "\"", " ", "\n", "%", <<255>>,
                                   "p", "1", "monitors"],
                          Text = iolist_to_binary([lists:nth(rand:uniform(length(Parts)), Parts)
                                                   || _ <- lists:seq(1, 30)]),
                          ?assert(lists:member(element(1, witness_explore_file:parse("f", Text)), [ok, error]))
                  end, lists:seq(1, 2000)).

a_scenario_that_makes_no_sense_is_refused_test_() ->
    [{Said, fun() ->
         {error, Error} = witness_explore_scenario:world(#{name => ~"x", about => ~"", processes => Processes,
                                                           monitors => Monitors}, #{}),
         ?assertEqual(Said, unicode:characters_to_list(Error))
     end} || {Said, Processes, Monitors} <-
        [{"a scenario needs a process", [], []},
         {"there are two processes P", [{p, []}, {p, []}], []},
         {"there is no process Q", [{p, [{send, q}]}], []},
         {"there is no process Q", [{p, []}], [[{q, single}]]},
         {"process Q is spawned twice", [{p, [{spawn, q}, {spawn, q}]}, {q, []}], []},
         {"process P acts after its exit", [{p, [exit, {send, p}]}], []},
         {"some processes spawn each other in a circle", [{p, []}, {q, [{spawn, r}]}, {r, [{spawn, q}]}], []},
         {"some processes spawn each other in a circle", [{p, [{spawn, p}]}], []},
         {"at most 12 processes can be explored", [{integer_to_binary(I), []} || I <- lists:seq(1, 13)], []}]].
