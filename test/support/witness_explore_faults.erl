-module(witness_explore_faults).
-moduledoc """
A catalogue of faults to be planted in the choreography, one of each kind, for the explorer to find.

A fault is an edit of the core's source, which is compiled under another name, into memory. An edit that does not apply
exactly once is an error: the catalogue has to follow the core.
""".

-export([all/0, far/0, text/1, plant/2]).

-export_type([fault/0, far/0]).

-doc """
What is wrong, the text that is replaced, what with; the scenario and the source that show it; what kind of violation is
found, and after how many steps.
""".
-type fault() :: {Name :: binary(), Find :: string(), Replace :: string(), Scenario :: binary(),
                  witness_explore_source:kind(), Violation :: atom() | {invariant, atom()}, Steps :: pos_integer()}.

-doc """
What is wrong, the text that is replaced, what with; how the way goes on that leads there (`m:witness_explore_tests`).
""".
-type far() :: {Name :: binary(), Find :: string(), Replace :: string(), [witness_explore_world:step()]}.

-doc "The core with a fault, loaded as the module of this name.".
-spec plant(module(), fault() | far()) -> module().
plant(Name, Fault) ->
    {What, Module, Find, Replace} = text(Fault),
    witness_mutant:load(Name, Module, What, Find, Replace).

-doc "What is replaced by what.".
-spec text(fault() | far()) -> witness_mutant:fault().
text(Fault) ->
    [What, Find, Replace | _] = tuple_to_list(Fault),
    {What, witness_outline_core, Find, Replace}.

-doc "The faults.".
-spec all() -> [fault()].
all() ->
    [{~"no routing at all",
      "dispatch(P, S = {_, E}, Next, C) ->\n    C1 = send(Next, {routed, C#core.self, S}, done_with(E, C)),",
      "dispatch(P, {_, E}, Next, C) ->\n    C1 = done_with(E, C),",
      ~"acknowledgement for the dead", ideal, incomplete, 8},
     {~"no priority: a new process is direct at once",
      "then({unstash, P}, own(P, {priority, O, Now, [], Label}, C))",
      "then({unstash, P}, own(P, {direct, Label}, C))",
      ~"acknowledgement for the dead", vm, lost, 10},
     {~"direct events are analysed in priority",
      "C#core{own = Own#{P := {priority, O, Last, [S | Waiting], Label}}}",
      "analyse(S, own, Label, C)",
      ~"acknowledgement for the dead", vm, lost, 10},
     {~"direct events that waited are taken up in the wrong order",
      "then([{own, S} || S <- lists:reverse(Waiting)]", "then([{own, S} || S <- Waiting]",
      ~"request and reply", vm, lost, 19},
     {~"the route is dropped on a forwarded spawn",
      "add_route(Child, {hop, O, Next}, C1);     % I10", "C1;",
      ~"depth 4", ideal, route_to_nowhere, 19},
     {~"the route is dropped on a dispatched spawn",
      "then({unstash, Child}, add_route(Child, {live, Next}, C1))", "then({unstash, Child}, C1)",
      ~"exits in every order", ideal, incomplete, 17},
     {~"a tracer is given back with a route left",
      "map_size(Own) =:= 0 andalso map_size(Route) =:= 0.", "map_size(Own) =:= 0 orelse Route =:= none.",
      ~"exits in every order", ideal, not_empty, 13},
     {~"an unknown process is treated as an own one",
      "#{} -> C#core{stash = Stash#{P => [S]}}\n", "#{} -> _ = Stash, effect({analyse, P, S}, C)\n",
      ~"acknowledgement for the dead", vm, analysed_by_a_stranger, 3},
     {~"the stash is forgotten",
      "then([{own, S} || S <- lists:reverse(Stashed)], C#core{stash = Rest})", "C#core{stash = Rest}",
      ~"acknowledgement for the dead", vm, lost, 8},
     {~"the acknowledgement comes before the last event",
      "when U =:= none; U =< Cut -> dispatch", "when U =:= none -> dispatch",
      ~"request and reply", vm, lost, 18},
     {~"the acknowledgement comes at the first event",
      "when U =:= none; U =< Cut -> dispatch", "when U =< Cut -> dispatch",
      ~"request and reply", vm, lost, 13},
     {~"the acknowledgement is never sent",
      "acknowledge(P, Next, C) ->\n    C1 = send(Next, {routed, C#core.self, {eof, P}}, C),",
          "acknowledge(P, _, C) ->\n    C1 = C,",
      ~"acknowledgement for the dead", ideal, incomplete, 13},
     {~"the acknowledgement adds an exited process again",
      "#{} -> C                            % direct since its birth, or ended", "#{} -> own(P, {late, 0, P}, C)",
      ~"exits in every order", vm, {invariant, 'I22'}, 18},
     {~"an exited process stays",
      "effect({ended, P, Label}, disown(P, C));", "effect({ended, P, Label}, C);",
      ~"acknowledgement for the dead", ideal, still_owned, 10},
     {~"the end of a process is not told",
      "effect({ended, P, Label}, disown(P, C));", "disown(P, C);",
      ~"acknowledgement for the dead", ideal, end_not_told, 10},
     {~"a duplicate is analysed",
      "#{P := {late, Last, _}} when U =:= none; U < Last ->",
          "#{P := {late, Last, _}} when U =:= never, Last =:= never ->",
      ~"request and reply", vm, analysed_twice, 21},
     {~"duplicates that came before the acknowledgement wait to be analysed",
      "C#core{own = Own#{P := {late, Last, Label}}}", "C#core{own = Own#{P := {direct, Label}}}",
      ~"request and reply", vm, analysed_twice, 21},
     {~"a process lives on in the origin's session",
      "remove_route(P, effect({off, P}, C1))", "remove_route(P, C1)",
      ~"lives on", vm, on_in_vain, 17},
     {~"events before `take' are lost",
      "ask(lent, {early, P, S}, C)", "duplicate(S, C)",
      ~"request and reply", ideal, lost, 17},
     {~"children of an overlap are not discarded",
      "duplicate(S, acknowledge(P, Next, C))", "acknowledge(P, Next, C)",
      ~"child of an overlap", vm, on_in_vain, 18},
     {~"a child that was born in two sessions is not claimed",
      "{fork, _, Child, _, _} -> ask({traced, Child}, {traced, Child, E, Label, From}, C);",
      "{fork, _, Child, _, _} -> place(Child, E, Label, {false, -9999}, From, C);",
      ~"group below a handover", vm, analysed_twice, 20},
     {~"the origin is not told to discard a child that was claimed",
      "place(Child, Fork, Parent, true, own, send(O, {discard, Child}, C))",
          "begin _ = O, place(Child, Fork, Parent, true, own, C) end",
      ~"child of an overlap", vm, routed_in_vain, 20},
     {~"hops stay after a discard",
      "unroute(P, Next, C) -> remove_route(P, send(Next, {routed, C#core.self, {eof, P}}, C)).",
      "unroute(P, _, C) -> remove_route(P, C).",
      ~"depth 4, claimed", vm, routed_in_vain, 29},
     {~"a shared child gets a tracer of its own",
      "{shared, Label} -> take(Child, Fork, Label, Here, From, C)",
          "{shared, Label} -> ask({tracer, Child}, {tracer, Child, Fork, Label, From}, C)",
      ~"set-up {P,Q,R}", ideal, wrong_owner, 7},
     {~"a child with a monitor of its own stays with its parent",
      "{own, Label} when From =:= own -> ask({tracer, Child}, {tracer, Child, Fork, Label, own}, C);",
      "{own, Label} when From =:= own -> take(Child, Fork, Label, Here, From, C);",
      ~"acknowledgement for the dead", ideal, wrong_owner, 3},
     {~"a process that is dead at the switch is taken for shared",
      "dead -> then({unstash, P}, C)              % all of it is in the own session",
      "dead -> then({unstash, P}, C#core{route = Route#{P := {cut, Next, -9999}}})",
      ~"acknowledgement for the dead", vm, incomplete, 14},
     {~"a `switch' that comes after the exit is an error",
      "error({invariant, 'I17', P});  % shared before, or gathered elsewhere\n        #{} -> C",
      "error({invariant, 'I17', P});\n        #{} -> error({invariant, 'I17', P})",
      ~"exits in every order", vm, {invariant, 'I17'}, 18},
     {~"what is no event is analysed",
      "analyse({_, {other, _}}, _, _, C) -> C;", "analyse({_, {never, _}}, _, _, C) -> C;",
      ~"lives on, linked", vm, no_event, 14},
     {~"a `take' is put off for ever",
      "taken(P, Fork, Label, born, _, C) -> ask({adopt, P, Fork, Label}, {own, P, direct}, paired(P, C));",
      "taken(P, Fork, Label, born, O, C) -> send(C#core.self, {take, P, O, Fork, Label, born}, C);",
      ~"acknowledgement for the dead", birth, livelock, 6},
     {~"a process with a session of its own is routed",
      "send(Next, {take, Child, Self, Fork, Label, born}, paired(Child, C));",
      "send(Next, {take, Child, Self, Fork, Label, born}, add_route(Child, {live, Next}, paired(Child, C)));",
      ~"acknowledgement for the dead", birth, not_direct, 4},
     {~"an `init' is waited for that comes to another tracer",
      "send(Next, {take, Child, Self, Fork, Label, born}, paired(Child, C));",
      "send(Next, {take, Child, Self, Fork, Label, born}, C);",
      ~"acknowledgement for the dead", birth, still_kept, 8},
     {~"the `init' of a discarded process is kept",
      "#{P := _} -> duplicate(S, C);\n        #{} -> C#core{stash = Stash#{P => [S]}}",
      "#{P := _} -> C#core{stash = Stash#{P => [S]}};\n        #{} -> C#core{stash = Stash#{P => [S]}}",
      ~"child of an overlap", vm, still_kept, 19},
     {~"what was routed already is dropped with its children",
      "duplicate(S, C);                        % was routed", "C; % was routed",
      ~"lent to a grandchild", vm, still_kept, 30},
     {~"what comes late is dropped with its children",
      "#{P := {late, Last, _}} when U =:= none; U < Last ->\n            duplicate(S, C);",
      "#{P := {late, Last, _}} when U =:= none; U < Last ->\n            C;",
      ~"child of an overlap", vm, still_kept, 23},
     {~"what comes directly of a process that is routed is dropped with its children",
      "duplicate(S, C);  % its origin", "C;  % its origin",
      ~"group below a handover, dead", vm, still_kept, 29},
     {~"what waited of a process with a routed exit is dropped with its children",
      "lists:foldl(fun duplicate/2, C#core{own = Rest}, lists:reverse(Waiting));",
          "begin _ = Waiting, C#core{own = Rest} end;",
      ~"exits in every order", vm, still_kept, 30},
     {~"what came early is not told from old duplicates",
      "taken(P, Fork, Label, How, O, overdue(P, C));", "taken(P, Fork, Label, How, O, C);",
      ~"lent to a grandchild", vm, still_kept, 28},
     {~"what is older than the question is not dropped",
      "{own, P, {priority, O, Now}}, C).\n\nanswered",
          "begin _ = Now, {own, P, {priority, O, -9999}} end, C).\n\nanswered",
      ~"lent to a grandchild, settled", vm, still_kept, 30}].

-doc "Faults that lie farther away than a search gets; they are found at the end of a given way.".
-spec far() -> [far()].
far() ->
    [{~"events of any origin are passed on",
      "#{P := {hop, O, Next}} -> forward(P, S, O, Next, C);", "#{P := {hop, _, Next}} -> forward(P, S, O, Next, C);",
      [{event, -1, 5}, {event, -1, 5} | [{mail, -2, -1} || _ <- lists:seq(1, 7)]]},
     {~"the acknowledgement of any origin ends a route",
      "#{P := {hop, O, Next}} ->                                   % I12",
      "#{P := {hop, _, Next}} ->                                   % I12",
      [{mail, -2, -1} || _ <- lists:seq(1, 5)]
          ++ [{mail, -1, -2}, {go, -1}, {mail, -1, -2}, {go, -1}, {mail, -1, -2}]
          ++ [{mail, -2, -1} || _ <- lists:seq(1, 3)]}].
