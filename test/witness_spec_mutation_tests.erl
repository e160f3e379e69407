-module(witness_spec_mutation_tests).
-moduledoc """
The comparison with the oracle can fail: faults are planted into the compiler, one at a time, and each is found.

A mutation replaces a piece of source text that must stand exactly once in its module; the module is compiled into the
memory of another VM, under its own name, and is the right one again for the next mutation.
""".
-include_lib("eunit/include/eunit.hrl").

%% A fault that so many pairs do not find is not found. Most are found in the first file.
-define(PAIRS, 150_000).
-define(UNMUTATED, 8_000).
%% One with which the two faults that are rarest, in lists and in meeting variables, are found early.
-define(SEED, 7).

every_fault_is_found_test_() ->
    {setup, fun start/0, fun peer:stop/1, fun(Peer) ->
        [witness_mutant:can_be_planted(faults()),
         {"no fault", {timeout, 300, fun() -> ?assertMatch({ok, _}, pairs(Peer, ?UNMUTATED, mixed)) end}} |
         [{Fault, {timeout, 600, fun() -> found(Peer, Module, From, To) end}}
          || {Fault, Module, From, To} <- witness_share:of_all(faults())]]
    end}.

faults() ->
    [%% Combinations of obligations.
     {"a conjunction is true when one member is", witness_spec_formula,
      "conj(_, {verdict, yes, _}, Right) -> Right;", "conj(_, {verdict, yes, _} = Yes, _) -> Yes;"},
     {"a disjunction needs its second member", witness_spec_formula,
      "disj(_, {verdict, yes, _} = Yes, _) -> Yes;", "disj(_, {verdict, yes, _}, Right) -> Right;"},
     {"only one member is kept", witness_spec_formula,
      "members(Operator, [State | States], Set) -> members(Operator, States, Set#{State => []});",
      "members(Operator, [State | States], _) -> members(Operator, States, #{State => []});"},
     {"absorption keeps what it should remove", witness_spec_formula,
      "Leaf <- Others, not is_map_key(Leaf, Leaves)]", "Leaf <- Others, is_map_key(Leaf, Leaves)]"},
     {"the bound is one more", witness_spec_formula,
      "when length(Leaves) =< Limit ->", "when length(Leaves) =< Limit + 1 ->"},
     {"an obligation that holds a list is taken for a combination", witness_spec_formula,
      "to_map({Operator, Members}) when is_atom(Operator), is_list(Members)",
      "to_map({Operator, Members}) when is_list(Members)"},
     {"vacuity ends with the birth", witness_spec_formula,
      "when element(1, Event) =:= init -> {ok, {fresh, Next}};",
      "when element(1, Event) =:= exit -> {ok, {fresh, Next}};"},
     {"a combination at the end is decided by the wrong verdict", witness_spec_formula,
      "case lists:keyfind(zero(Operator), 1, Verdicts) of", "case lists:keyfind(zero('or'), 1, Verdicts) of"},
     %% Nodes.
     {"tt is neutral in a disjunction", witness_spec_node,
      "'and' -> {tt, ff}; 'or' -> {ff, tt} end,", "'and' -> {tt, ff}; 'or' -> {tt, ff} end,"},
     {"a conjunction that one member decides is dropped", witness_spec_node,
      "            {{Zero, Place}, []}", "            {{Unit, Place}, []}"},
     {"of several modalities the last is forgotten", witness_spec_node,
      "{Node, End} = node(Operator, [Member || {_, _, Member} <- Modalities], Scope, Loops, After),",
      "{Node, End} = node(Operator, [Member || {_, _, Member} <- lists:sublist(Modalities, 2)], Scope, Loops, After),"},
     %% Code.
     {"actions that overlap stand in one case", witness_spec_code,
      "-> witness_spec_overlap:disjoint(Action, Other, Scope).", "-> _ = {Action, Other, Scope}, true."},
     {"what an action decides alone ends the conjunction", witness_spec_code,
      "        {verdict, Unit} when Rest =/= none ->\n            Rest;",
      "        {verdict, Unit} when Rest =/= none ->\n            decide(Unit, Node, undefined, []);"},
     {"boxes of a disjunction stand together", witness_spec_code,
      "neutral('or') -> dia.", "neutral('or') -> box."},
     {"the birth engages", witness_spec_code,
      "Kind =/= init,", "Kind =/= fork,"},
     {"what is forbidden is engaged only where it happens", witness_spec_code,
      "engaging({box, #{pattern := {tuple, _, [Kind | Fields]}}, {verdict, no}}) -> {tuple([Kind | [any() || _ <- Fields]]), []};\n", ""},
     {"what satisfies at once is engaged by its kind", witness_spec_code,
      "[Kind | Fields]}}, {verdict, no}}) ->", "[Kind | Fields]}}, {verdict, _}}) ->"},
     {"what is demanded beside what is forbidden is not vacuous", witness_spec_code,
      "length(Forbidden) =:= length(Leaves) andalso", "length(Forbidden) > 0 andalso"},
     {"nodes in nodes do not engage", witness_spec_code,
      " ++ [Child || {node, Child, _} <- Children],", " ++ [Child || {node, Child, _} <- Children, Child < 0],"},
     {"boxes fail at the end", witness_spec_explain,
      "[{case Modality of box -> yes; dia -> no end,", "[{case Modality of box -> no; dia -> no end,"},
     %% Parameters.
     {"parameters get each other's values", witness_spec_node,
      "maps:from_list(lists:zip(Names, [{Value, Location}", "maps:from_list(lists:zip(lists:reverse(Names), [{Value, Location}"},
     {"a formula inside misses the event at which it begins", witness_spec_formula,
      "        {ok, State} -> Step(Event, State);\n        Unknown", "        {ok, State} -> {ok, State};\n        Unknown"},
     {"a value that fails violates", witness_spec_formula,
      "begun(_, {failed, Line, Column}) -> {verdict, inconclusive,", "begun(_, {failed, Line, Column}) -> {verdict, no,"},
     {"what is not known is neutral in a conjunction", witness_spec_formula,
      "conj(_, {verdict, inconclusive, _} = Unknown, _) -> Unknown;", "conj(_, {verdict, inconclusive, _}, Right) -> Right;"},
     {"what is not known is neutral in a disjunction", witness_spec_formula,
      "disj(_, _, {verdict, inconclusive, _} = Unknown) -> Unknown;", "disj(_, Left, {verdict, inconclusive, _}) -> Left;"},
     {"what is not known decides a conjunction", witness_spec_formula,
      "        {verdict, inconclusive, _} = Unknown -> undecided(Members, Unknown, Step, Event, Zero);",
      "        {verdict, inconclusive, _} = Unknown -> Unknown;"},
     {"what could not begin is satisfied at the end", witness_spec_formula,
      "    {inconclusive, Info};", "    {yes, Info};"},
     %% Which actions exclude each other.
     {"a guard excludes what has none", witness_spec_overlap,
      "contradictory(_, []) -> false;", "contradictory(_, []) -> true;"},
     {"all variables that meet are the same", witness_spec_overlap,
      "_ -> {both, Left}", "_ -> {both, []}"},
     {"a string is no list", witness_spec_overlap,
      "category({List, _, _}) when List =:= string -> list;", "category({List, _, _}) when List =:= string -> string;"},
     %% Events and slices.
     {"the last action of `over' counts", witness_spec_slice,
      "['case'(Event, Chosen ++", "['case'(Event, lists:reverse(Chosen) ++"},
     {"every event with a key begins a slice", witness_spec_slice,
      "true when Begins ->", "true when Begins; not Begins ->"},
     {"events without a key are not seen", witness_spec_slice,
      "false -> atom(all)", "false -> atom(skip)"},
     {"a reply belongs to every call of its caller", witness_spec_otp,
      "\"T =:= element(2, From)\"", "\"T =/= element(1, From)\""}].

start() ->
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, args => ["-pa" | code:get_path()]}),
    Peer.

pairs(Peer, N, Focus) ->
    Options = #{pairs => N, seed => ?SEED, focus => Focus, properties => 12, traces => 40, shrink => false},
    peer:call(Peer, witness_spec_oracle_run, pairs, [Options], infinity).

%% What the faults of a module are found with.
focus(witness_spec_formula) -> loose;
focus(witness_spec_overlap) -> alike;
focus(_) -> mixed.

%% A fault that makes the compiler fail is no fault for the oracle.
found(Peer, Module, From, To) ->
    {Module, Right, _} = code:get_object_code(Module),
    {ok, Module, Wrong} = witness_mutant:compiled(Module, witness_mutant:mutated(Module, Module, From, To), [binary]),
    try
        load(Peer, Module, Wrong),
        ?assertMatch({disagreement, #{kind := Kind}} when Kind =/= compile, pairs(Peer, ?PAIRS, focus(Module)))
    after
        load(Peer, Module, Right)
    end.

load(Peer, Module, Object) ->
    {module, Module} = peer:call(Peer, code, load_binary, [Module, atom_to_list(Module), Object]),
    ok.
