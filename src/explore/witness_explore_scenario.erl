-module(witness_explore_scenario).
-moduledoc """
Scenarios: what the processes of a small system do, and which monitors read them; and those that Witness explores
itself.

The monitors are given as instrumentation maps, one or several. They go through `m:witness_instrument_map`. As in a run, this
decides which tracer owns a process and which monitors read it. A process is `single` (its monitor reads only it),
`group` (its monitor reads its descendants too, as far as the map does not name them), or `none` (cut out, with its
descendants). `content/1` says what each monitor reads, in the notation of the paper: `{P},{Q,R}`.
""".

-export([all/0, named/1, world/2, sources/1, as_expected/2, content/1, names/1]).

-export_type([scenario/0, name/0, expected/0]).

-doc "The name of a process.".
-type name() :: atom() | binary().

-doc """
`name` and `about` are for people. `processes`: each with its actions. `monitors`: the maps. Optional: `sources`
(default all three), `stamps` (`always` where there are groups, else `handover`), `pool` (`again`), `first` (`kept`),
`attach` (`false`), `mortal` (the processes that can die at any moment), `order` (the processes of the events that the first
tracer takes first), `choreography`, `expect` (the result that the search must have: `sound`, or a violation), `deep` (not a
part of `--all`).
""".
-type scenario() :: #{name := binary(), about := binary(),
                      processes := [{name(), [{spawn | send | recv | kill, name()} | other | exit]}],
                      monitors := [[{name(), single | group | none}]],
                      sources => [witness_explore_source:kind()], stamps => witness_explore_source:stamps(),
                      pool => again | fresh, first => kept | pooled, attach => boolean(), mortal => [name()],
                          order => [name()],
                      choreography => module() | {module(), map()}, expect => sound | expected(), deep => boolean()}.

-doc "How the term of a violation begins, as a list.".
-type expected() :: [term(), ...].

-define(MAX_PROCESSES, 12).

%% --- from a scenario to a world --------------------------------------------------

-doc """
The world of a scenario, for `witness_explore:run/2`; or what is wrong with the scenario, as text. `Given` replaces
what the scenario says: `source`, `stamps`, `pool`, `choreography`, `reduce`.
""".
-spec world(scenario(), map()) -> {ok, witness_explore_world:options()} | {error, unicode:chardata()}.
world(Scenario = #{processes := Processes}, Given) ->
    try
        check(Scenario),
        Names = [Name || {Name, _} <- Processes],
        Number = fun(Name) -> number(Name, Names) end,
        Scripts = [[numbered(Action, Number) || Action <- Script] || {_, Script} <- Processes],
        Hows = [How || {_, {How, _}} <- labels(Scenario)],
        Signatures = [{How, C, parent(C, Scripts)} || {C, How} <- lists:enumerate(Hows)],
        Mortal = [Number(Name) || Name <- maps:get(mortal, Scenario, [])],
        Stamps = case lists:any(fun(Map) -> lists:keymember(group, 2, Map) end, maps:get(monitors, Scenario)) of
            true -> always;
            false -> handover
        end,
        Choreography = maps:get(choreography, Scenario, witness_outline_core),
        Default = #{source => hd(sources(Scenario)), stamps => maps:get(stamps, Scenario, Stamps),
                    pool => maps:get(pool, Scenario, again), first => maps:get(first, Scenario, kept),
                    choreography => Choreography, reduce => [atomic, direct, settled]},
        {ok, maps:merge(Default#{system => witness_explore_system:new(Scripts, Signatures, Mortal),
                                 attach => maps:get(attach, Scenario, false),
                                 order => [Number(Name) || Name <- maps:get(order, Scenario, [])]},
                        maps:with([source, stamps, pool, choreography, reduce], Given))}
    catch
        throw:{wrong, Text} -> {error, Text}
    end.

-doc "The sources that a scenario is explored with.".
-spec sources(scenario()) -> [witness_explore_source:kind(), ...].
sources(Scenario) -> maps:get(sources, Scenario, [ideal, birth, vm]).

-doc "Whether a search had the result that the scenario expects. An incomplete one did not.".
-spec as_expected(witness_explore:result(), scenario()) -> boolean().
as_expected({ok, _}, Scenario) -> maps:get(expect, Scenario, sound) =:= sound;
as_expected({violation, What, _, _}, #{expect := [_ | _] = Expected}) ->
    lists:prefix(Expected, case What of _ when is_tuple(What) -> tuple_to_list(What); _ -> [What] end);
as_expected(_, _) -> false.


number(Name, Names) -> number(Name, Names, 1).

number(Name, [Name | _], N) -> N;
number(Name, [_ | Names], N) -> number(Name, Names, N + 1);
number(Name, [], _) -> wrong([~"there is no process ", name(Name)]).

numbered({Kind, Name}, Number) -> {Kind, Number(Name)};
numbered(Action, _) when Action =:= exit; Action =:= other -> Action.

parent(C, Scripts) ->
    case [P || {P, Script} <- lists:enumerate(Scripts), {spawn, Child} <- Script, Child =:= C] of
        [P] -> P;
        [] -> none
    end.

-spec wrong(unicode:chardata()) -> no_return().
wrong(Text) -> throw({wrong, Text}).

check(#{processes := Processes, monitors := Maps}) ->
    Names = [Name || {Name, _} <- Processes],
    Processes =/= [] orelse wrong(~"a scenario needs a process"),
    length(Processes) =< ?MAX_PROCESSES orelse wrong(io_lib:format("at most ~b processes can be explored", [?MAX_PROCESSES])),
    [wrong([~"there are two processes ", name(Name)]) || Name <- lists:usort(Names -- lists:usort(Names))],
    [number(Name, Names) || {_, Script} <- Processes, {_, Name} <- Script],
    [number(Name, Names) || Map <- Maps, {Name, _} <- Map],
    Spawned = [Child || {_, Script} <- Processes, {spawn, Child} <- Script],
    [wrong([~"process ", name(Name), ~" is spawned twice"]) || Name <- lists:usort(Spawned -- lists:usort(Spawned))],
    [begin
         length(lists:takewhile(fun(A) -> A =/= exit end, Script)) + 1 >= length(Script) orelse
             wrong([~"process ", name(Name), ~" acts after its exit"]),
         length(Script) =< 50 orelse wrong([~"process ", name(Name), ~" has more than 50 actions"])
     end || {Name, Script} <- Processes],
    Roots = Names -- Spawned,
    Roots =/= [] andalso lists:sort(reached(Roots, Processes)) =:= lists:sort(Names) orelse
        wrong(~"some processes spawn each other in a circle"),
    ok.

reached(Roots, Processes) ->
    lists:append([[Root | reached([C || {spawn, C} <- proplists:get_value(Root, Processes, [])], Processes)]
                  || Root <- Roots]).

%% The label of each process, as in a run, and whether the process has a tracer of its own.
labels(Scenario = #{processes := Processes, monitors := Maps}) ->
    Instrumentations = [fun({m, Name, []}) -> entries(Name, Map) end || Map <- Maps],
    Spawned = [Child || {_, Script} <- Processes, {spawn, Child} <- Script],
    Labels = lists:foldl(
        fun(Name, Acc) ->
                Signature = {m, Name, []},
                Given = case maps:get(attach, Scenario, false) of
                    true -> #{held => false};
                    false -> #{held => true, signature => Signature}
                end,
                Root = started(Name, witness_instrument_map:new(Instrumentations, Given)),
                children(Name, Root, Processes, Instrumentations, Acc#{Name => {own, Root}})
        end, #{}, [Name || {Name, _} <- Processes, not lists:member(Name, Spawned)]),
    [{Name, map_get(Name, Labels)} || {Name, _} <- Processes].

children(Parent, Label, Processes, Instrumentations, Labels) ->
    lists:foldl(fun({spawn, Child}, Acc) ->
                        {How, Label1} = witness_instrument_map:assign({m, Child, []}, Label, Instrumentations),
                        Label2 = started(Child, Label1),
                        children(Child, Label2, Processes, Instrumentations, Acc#{Child => {How, Label2}});
                   (_, Acc) -> Acc
                end, Labels, proplists:get_value(Parent, Processes)).

%% A reader is known by the number of its map and the process that it was started for.
started(Name, Label) ->
    witness_instrument_map:with_readers([{N, {N, Name}, Group}
                                      || {N, #{group := Group}} <- witness_instrument_map:starts(Label)], Label).

entries(Name, Map) ->
    case lists:keyfind(Name, 1, Map) of
        {Name, none} -> [none];
        {Name, How} -> [#{monitor => {m, Name}, spec => ~"", name => undefined, group => How =:= group}];
        false -> []
    end.

-doc "What each monitor of a scenario reads: `{P},{Q,R}`.".
-spec content(scenario()) -> unicode:chardata().
content(Scenario) ->
    Reads = [{Reader, Name} || {Name, {_, Label}} <- labels(Scenario),
             Reader <- witness_instrument_map:label(readers, Label)],
    lists:join(~",", [[${, lists:join(~",", [name(Name) || {R, Name} <- Reads, R =:= Reader]), $}]
                      || Reader <- lists:usort([R || {R, _} <- Reads])]).

-doc "The names of the processes, for people.".
-spec names(scenario()) -> [binary()].
names(#{processes := Processes}) -> [name(Name) || {Name, _} <- Processes].

name(Name) when is_atom(Name) -> string:uppercase(atom_to_binary(Name));
name(Name) -> Name.

%% --- the scenarios that Witness explores -----------------------------------------

-doc "The scenario with this name.".
-spec named(unicode:chardata()) -> {ok, scenario()} | error.
named(Name) ->
    Wanted = unicode:characters_to_binary(Name),
    case [S || S = #{name := N} <- all(), N =:= Wanted] of
        [S | _] -> {ok, S};
        [] -> error
    end.

-doc "The named scenarios.".
-spec all() -> [scenario()].
all() -> set_ups() ++ examples() ++ more() ++ paper().

%% The system of the paper (figure 2a); every process ends.
pqr() -> [{p, [{spawn, q}, {send, q}, exit]}, {q, [{recv, p}, {spawn, r}, exit]}, {r, [exit]}].

%% Every set-up that inheritance can reach, by its content. {P,R} without Q is none of them: R inherits from Q.
set_ups() ->
    [#{name => <<"set-up ", Content/binary>>, about => ~"the paper's P, Q and R", processes => pqr(), monitors => [Map]}
     || {Content, Map} <-
            [{~"{P},{Q},{R}", [{p, single}, {q, single}, {r, single}]},
             {~"{P},{Q,R}", [{p, single}, {q, group}]},
             {~"{P,Q},{R}", [{p, group}, {r, single}]},
             {~"{P,Q,R}", [{p, group}]},
             {~"{P},{Q}", [{p, single}, {q, single}]},
             {~"{P},{R}", [{p, single}, {r, single}]},
             {~"{Q},{R}", [{q, single}, {r, single}]},
             {~"{P,Q}", [{p, group}, {r, none}]},
             {~"{Q,R}", [{q, group}]},
             {~"{P}", [{p, single}]},
             {~"{Q}", [{q, single}]},
             {~"{R}", [{r, single}]}]].

%% The examples of the paper. R does nothing, as in figure 2a.
examples() ->
    Idle = [{p, [{spawn, q}, {send, q}, exit]}, {q, [{recv, p}, {spawn, r}, exit]}, {r, []}],
    Centre = [[{p, group}]],
    Each = [[{p, single}, {q, single}, {r, single}]],
    [#{name => ~"example 2", about => ~"trace partitions: {P} and {Q,R} apart (figure 1c); R has an empty trace",
       processes => Idle, monitors => [[{p, single}, {q, group}]]},
     #{name => ~"example 3", about => ~"sound traces: one monitor for P, Q and R (figure 1b)", processes => Idle,
       monitors => Centre},
     #{name => ~"example 4", about => ~"separate instrumentation (figure 2b)", processes => Idle, monitors => Each},
     #{name => ~"example 5",
       about => ~"unsound, were it not for the routes: P's tracer gathers what Q does (figure 3a)",
       processes => Idle, monitors => Each, sources => [ideal, vm], order => [p, q, p, p, q]},
     #{name => ~"example 7", about => ~"reordering spawn events: Q receives and spawns before P's spawn event comes",
       processes => Idle, monitors => Centre, sources => [vm], order => [q, q, q, p, p]},
     #{name => ~"example 8", about => ~"the same with P's spawn event between those of Q",
       processes => Idle, monitors => Centre, sources => [vm], order => [q, q, p, q, p]},
     #{name => ~"example 9", about => ~"trace identity: what comes in order stays in order",
       processes => Idle, monitors => Centre, sources => [vm], order => [p, q, q, p, q]},
     #{name => ~"example 7, separate", about => ~"the arrivals of example 7 where each process has its own tracer",
       processes => Idle, monitors => Each, sources => [vm], order => [q, q, q, p, p]}].

more() ->
    [#{name => ~"siblings", about => ~"two children, each with a tracer of its own",
       processes => [{p, [{spawn, q}, {spawn, r}, exit]}, {q, [exit]}, {r, [exit]}],
       monitors => [[{q, single}, {r, single}]]},
     #{name => ~"lent again", about => ~"R is spawned when Q may have ended: its tracer may be that of Q",
       processes => [{p, [{spawn, q}, {recv, q}, {spawn, r}]}, {q, [{send, p}, exit]}, {r, [exit]}],
       monitors => [[{q, single}, {r, single}]]},
     #{name => ~"lent to a grandchild", about => ~"the tracer that P's and Q's events reach may be lent again, for R",
       processes => [{p, [{spawn, q}, exit]}, {q, [{spawn, r}, exit]}, {r, [exit]}],
       monitors => [[{p, single}, {q, single}, {r, single}]], first => pooled},
     #{name => ~"lent to a grandchild, settled",
       about => ~"R is born when Q's own tracer has settled it: old events of R come with stamps, routed ones without",
       processes => [{p, [{spawn, q}, exit]}, {q, [{send, p}, {spawn, r}]}, {r, []}],
       monitors => [[{q, single}, {r, single}]], first => pooled},
     #{name => ~"depth 4", about => ~"a chain in which each process spawns the next one and goes",
       processes => [{p, [{spawn, q}]}, {q, [{spawn, r}]}, {r, [{spawn, s}]}, {s, []}],
       monitors => [[{p, single}, {q, single}, {r, single}, {s, single}]], deep => true},
     #{name => ~"depth 4, all end", about => ~"a chain of four, each with its own tracer, that all end",
       processes => [{p, [{spawn, q}, exit]}, {q, [{spawn, r}, exit]}, {r, [{spawn, s}, exit]}, {s, [exit]}],
       monitors => [[{p, single}, {q, single}, {r, single}, {s, single}]], sources => [ideal, birth], deep => true},
     #{name => ~"siblings and a grandchild", about => ~"two children, one of which has a child",
       processes => [{p, [{spawn, q}, {spawn, r}, exit]}, {q, [{spawn, s}, exit]}, {r, [exit]}, {s, [exit]}],
       monitors => [[{q, single}, {r, single}, {s, single}]], sources => [ideal, birth], deep => true},
     #{name => ~"siblings and a grandchild, short", about => ~"the same where the parents live on",
       processes => [{p, [{spawn, q}, {spawn, r}]}, {q, [{spawn, s}]}, {r, [exit]}, {s, [exit]}],
       monitors => [[{q, single}, {r, single}, {s, single}]], deep => true},
     #{name => ~"lent to its own child", about => ~"the tracer that R's events reach may be lent again, for R",
       processes => [{p, [{spawn, q}, exit]}, {q, [{spawn, r}, exit]}, {r, [{spawn, s}, exit]}, {s, [exit]}],
       monitors => [[{q, single}, {r, group}]], first => pooled, sources => [ideal], stamps => handover, deep => true},
     #{name => ~"dead, with a child that lives",
       about => ~"R, born in two sessions, has a tracer of its own and is dead when its spawn event comes",
       processes => [{p, [{spawn, q}]}, {q, [{spawn, r}]}, {r, [{spawn, s}, exit]}, {s, []}],
       monitors => [[{q, single}, {r, group}]], deep => true},
     #{name => ~"anybody dies at any moment", about => ~"the paper's P, Q and R, each of which can die at any moment",
       processes => pqr(), monitors => [[{p, single}, {q, single}, {r, single}]], mortal => [p, q, r], deep => true},
     #{name => ~"depth 4, claimed", about => ~"R's tracer claims S, which was born in two sessions, over two hops",
       processes => [{p, [{spawn, q}]}, {q, [{spawn, r}]}, {r, [{spawn, s}]}, {s, []}],
       monitors => [[{q, single}, {r, group}]]},
     #{name => ~"depth 4, short", about => ~"a chain in which the last two have tracers of their own",
       processes => [{p, [{spawn, q}]}, {q, [{spawn, r}]}, {r, [{spawn, s}]}, {s, []}],
       monitors => [[{r, single}, {s, single}]]},
     #{name => ~"exits in every order", about => ~"a chain whose processes end when they like",
       processes => [{p, [{spawn, q}, exit]}, {q, [{spawn, r}, exit]}, {r, [exit]}],
       monitors => [[{p, single}, {q, single}, {r, single}]]},
     #{name => ~"dies during its handover", about => ~"Q can die at any moment",
       processes => [{p, [{spawn, q}]}, {q, [{send, p}, {spawn, r}]}, {r, []}],
       monitors => [[{q, single}]], mortal => [q]},
     #{name => ~"killed", about => ~"P kills Q while Q is handed over",
       processes => [{p, [{spawn, q}, {kill, q}]}, {q, [{send, p}, {send, p}, exit]}],
       monitors => [[{q, single}]]},
     #{name => ~"late spawn event", about => ~"Q has come and gone before its spawn event comes",
       processes => [{p, [{spawn, q}, exit]}, {q, [{send, p}, exit]}],
       monitors => [[{q, single}]], sources => [vm], order => [q, q, q, p, p]},
     #{name => ~"late spawn events", about => ~"the same over two generations",
       processes => [{p, [{spawn, q}]}, {q, [{spawn, r}, exit]}, {r, [exit]}],
       monitors => [[{q, single}, {r, single}]], sources => [vm], order => [r, r, q, q, q, p]},
     #{name => ~"group with a cut", about => ~"P's group is cut at Q; R below has a monitor again",
       processes => [{p, [{spawn, q}, {spawn, s}]}, {q, [{spawn, r}, exit]}, {r, [exit]}, {s, [exit]}],
       monitors => [[{p, group}, {q, none}, {r, single}]]},
     #{name => ~"group below a handover", about => ~"Q is handed over, and its children R and S stay with it",
       processes => [{p, [{spawn, q}]}, {q, [{spawn, r}, exit]}, {r, [{spawn, s}]}, {s, []}],
       monitors => [[{q, group}]]},
     #{name => ~"group below a handover, dead",
       about => ~"R, born in two sessions, is dead when its spawn event comes; its child S lives on",
       processes => [{p, [{spawn, q}]}, {q, [{spawn, r}]}, {r, [{spawn, s}, exit]}, {s, []}],
       monitors => [[{q, group}]]},
     #{name => ~"acknowledgement for the dead", about => ~"Q ends at once: its acknowledgement comes late, or never",
       processes => [{p, [{spawn, q}, exit]}, {q, [exit]}],
       monitors => [[{p, single}, {q, single}]]},
     #{name => ~"lives on", about => ~"Q is on in the session of its tracer in the end, and in no other",
       processes => [{p, [{spawn, q}]}, {q, [{send, p}, {send, p}]}],
       monitors => [[{q, single}]]},
     #{name => ~"lives on, linked", about => ~"what is no event proves as well how far Q's first tracer has come",
       processes => [{p, [{spawn, q}]}, {q, [other, {send, p}, other, {send, p}, other]}],
       monitors => [[{q, single}]], sources => [vm]},
     #{name => ~"child of an overlap", about => ~"R is born while Q is on in two sessions, and stays with Q's tracer",
       processes => [{p, [{spawn, q}]}, {q, [{spawn, r}, {send, r}]}, {r, []}],
       monitors => [[{q, group}]]},
     #{name => ~"child of an overlap, separate", about => ~"the same where R has a tracer of its own",
       processes => [{p, [{spawn, q}]}, {q, [{spawn, r}, {send, r}]}, {r, []}],
       monitors => [[{q, single}, {r, single}]]},
     #{name => ~"two specifications", about => ~"one watches P, and Q with its descendants; the other R alone",
       processes => [{p, [{spawn, q}]}, {q, [{spawn, r}, exit]}, {r, [exit]}],
       monitors => [[{p, single}, {q, group}], [{r, single}]]},
     #{name => ~"attach", about => ~"P runs and spawns while it is adopted",
       processes => [{p, [{spawn, q}, {spawn, r}, exit]}, {q, [exit]}, {r, [exit]}],
       monitors => [[{r, single}]], attach => true},
     #{name => ~"attach to two", about => ~"two processes that run, one of which spawns twice",
       processes => [{p, [{spawn, q}, exit]}, {q, [{send, s}, exit]}, {s, [{recv, q}, {spawn, t}]}, {t, []}],
       monitors => [[{q, single}, {t, single}]], attach => true},
     #{name => ~"request and reply", about => ~"Q serves P while it is handed over",
       processes => [{p, [{spawn, q}, {send, q}, {recv, q}]}, {q, [{recv, p}, {send, p}, exit]}],
       monitors => [[{p, single}, {q, single}]]},
     #{name => ~"stamps always", about => ~"every event is stamped, as where there are groups",
       processes => [{p, [{spawn, q}]}, {q, [{spawn, r}]}, {r, [exit]}],
       monitors => [[{q, single}, {r, single}]], stamps => always}].

%% The paper's own choreography. It is sound on its ideal source if the defects of the printed form are mended. Then each
%% defect by itself, and the VM's source, where it is not sound whatever is mended.
paper() ->
    Defects = witness_explore_paper:defects(),
    Each = [{q, single}, {r, single}],
    [paper(<<"paper, mended, ", Content/binary>>, ~"the printed algorithms with their defects mended", Map, Defects,
           sound)
     || {Content, Map} <- [{~"{P},{Q},{R}", [{p, single}, {q, single}, {r, single}]},
                           {~"{P},{Q,R}", [{p, single}, {q, group}]},
                           {~"{P,Q},{R}", [{p, group}, {r, single}]}, {~"{P,Q,R}", [{p, group}]}]] ++
    [paper(<<"paper, ", (atom_to_binary(Defect))/binary>>, About, Map, Defects -- [Defect], Expected)
     || {Defect, Map, Expected, About} <-
            [{'I4', [{q, single}, {r, single}], [invariant, 'I4'], ~"as printed, I4 fails where a tracer is created"},
             {'I8', [{p, group}], [invariant, 'I8'], ~"as printed, I8 fails where none is created"},
             {'I16', [{p, group}], [invariant, 'I16'], ~"as printed, I16 fails for processes that are never detached"},
             {'A3.32', [{q, single}, {r, single}], [lost],
              ~"Algorithm 3, line 32: a tracer ends before its acknowledgement has come"},
             {'A3.46', [{q, single}, {r, single}], [still_owned],
              ~"Algorithm 3, line 46: an exited process is added again"},
             {'A3.47', [{q, group}], [invariant, 'I20'],
              ~"Algorithm 3, line 47: direct mode before an acknowledgement has come"},
             {'A3.51', [{q, single}, {r, single}], [still_routed], ~"Algorithm 3, line 51: a route is left behind"},
             {'A5.17', [{q, single}, {r, single}], [lost],
              ~"Algorithm 5, line 17: no tracer traces the process between off and on"}]] ++
    [(paper(~"paper on the VM", ~"the fork comes after the child's events: A4 does not hold", Each, Defects,
            [analysed_by_a_stranger]))
         #{sources => [vm]},
     (paper(~"paper on the VM, reordered", ~"events reach the old tracer after it was cleared; forks are waited for",
            Each,
            Defects, [analysed_by_a_stranger]))
         #{sources => [vm], choreography => {witness_explore_paper, #{mend => Defects, reorder => true}}}].

paper(Name, About, Map, Mend, Expected) ->
    #{name => Name, about => About, processes => pqr(), monitors => [Map], sources => [ideal], pool => fresh,
      choreography => {witness_explore_paper, #{mend => Mend}}, expect => Expected}.
