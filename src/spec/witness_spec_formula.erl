-module(witness_spec_formula).
-moduledoc """
What is left to be satisfied, at run time.

A generated monitor has one state for each place of its formula: a number, or a tuple of a number and the values of the
variables that are still needed (`t:leaf/0`). That is all there is as long as one obligation at a time is alive. Where
several are, they form a positive boolean combination of leaves, which this module keeps normalised:

- conjunctions and disjunctions are flat and alternate, and have at least two members;
- no member stands twice (members are compared exactly: `1` and `1.0` are different data);
- a leaf that a conjunction demands is taken as true inside its other members, and one that a disjunction offers as
  false (this is absorption, at every depth).

So loops that fall together again become one. A combination holds at most 1000 leaves; beyond, the verdict is
`inconclusive` with the reason `too_many_obligations`, since a monitor's memory must be bounded.

The functions take the step function of the generated module as an argument.
""".

-export([conj/2, disj/2, step/3, first/4, any/3, at_end/3, describe/2]).
-export_type([leaf/0, state/0, result/0]).

-doc "A state of a generated monitor.".
-type leaf() :: pos_integer() | tuple().
-doc "Leaves combined; the members of a combination are the keys of a map, so that equality is exact.".
-type state() :: leaf() | {'and' | 'or', #{state() => []}} | {fresh, state()}.
-doc "What `handle_event/2` returns.".
-type result() :: {ok, state()} | {verdict, yes | no | inconclusive, info()}.
-doc "The source text of a leaf's formula with its variables.".
-type text() :: fun((leaf()) -> {binary(), [{Name :: binary(), Value :: term()}]}).
-doc "See the description of generated monitors in `m:witness_spec`.".
-type info() :: map().

-define(MAX_OBLIGATIONS, 1000).
%% A description lists this many members of a combination.
-define(MAX_DESCRIBED, 20).

-doc "Both results have to hold.".
-spec conj(result(), result()) -> result().
conj({ok, Left}, {ok, Right}) -> join('and', [Left, Right]);
conj({verdict, no, _} = No, _) -> No;
conj(_, {verdict, no, _} = No) -> No;
conj({verdict, inconclusive, _} = Unknown, _) -> Unknown;
conj(_, {verdict, inconclusive, _} = Unknown) -> Unknown;
conj({verdict, yes, Left}, {verdict, yes, Right}) -> {verdict, yes, telling(Left, Right)};
conj({verdict, yes, _}, Right) -> Right;
conj(Left, {verdict, yes, _}) -> Left.

-doc "One of the results has to hold.".
-spec disj(result(), result()) -> result().
disj({ok, Left}, {ok, Right}) -> join('or', [Left, Right]);
disj({verdict, yes, _} = Yes, _) -> Yes;
disj(_, {verdict, yes, _} = Yes) -> Yes;
disj({verdict, inconclusive, _} = Unknown, _) -> Unknown;
disj(_, {verdict, inconclusive, _} = Unknown) -> Unknown;
disj({verdict, no, Left}, {verdict, no, Right}) -> {verdict, no, telling(Left, Right)};
disj({verdict, no, _}, Right) -> Right;
disj(Left, {verdict, no, _}) -> Left.

%% Of two explanations, the one that names an action.
telling(#{action := _} = Left, _) -> Left;
telling(_, Right) -> Right.

-doc "A step of a combination: every leaf takes it, and what they return is combined again.".
-spec step(fun((Event, leaf()) -> result()), Event, state()) -> result().
step(Step, Event, {'and', Members}) ->
    combine('and', no, Step, Event, maps:keys(Members), none, []);
step(Step, Event, {'or', Members}) ->
    combine('or', yes, Step, Event, maps:keys(Members), none, []);
step(Step, Event, Leaf) ->
    Step(Event, Leaf).

%% `Absorbing` decides the whole combination at once; its opposite only drops a member.
combine(Operator, Absorbing, Step, Event, [Member | Members], Dropped, States) ->
    case step(Step, Event, Member) of
        {ok, State} -> combine(Operator, Absorbing, Step, Event, Members, Dropped, [State | States]);
        {verdict, Absorbing, _} = Decided -> Decided;
        {verdict, inconclusive, _} = Unknown -> undecided(Operator, Absorbing, Step, Event, Members, Unknown);
        {verdict, _, _} = Neutral -> combine(Operator, Absorbing, Step, Event, Members, Neutral, States)
    end;
combine(_, _, _, _, [], Dropped, []) ->
    Dropped;
combine(Operator, _, _, _, [], _, States) ->
    join(Operator, States).

undecided(_, _, _, _, [], Unknown) ->
    Unknown;
undecided(Operator, Absorbing, Step, Event, [Member | Members], Unknown) ->
    case step(Step, Event, Member) of
        {verdict, Absorbing, _} = Decided -> Decided;
        _ -> undecided(Operator, Absorbing, Step, Event, Members, Unknown)
    end.

join(Operator, States) ->
    State = normal(Operator, members(Operator, States, #{})),
    case leaves(State) =< ?MAX_OBLIGATIONS of
        true -> {ok, State};
        false -> {verdict, inconclusive, #{reason => too_many_obligations}}
    end.

members(Operator, [{Operator, Members} | States], Set) -> members(Operator, States, maps:merge(Set, Members));
members(Operator, [State | States], Set) -> members(Operator, States, Set#{State => []});
members(_, [], Set) -> Set.

%% Members that are combinations are simplified under the leaves, until no new leaf comes to light.
normal(Operator, Set) ->
    case [Member || Member <- maps:keys(Set), is_combination(Member)] of
        [] ->
            single(Operator, Set);
        Combinations ->
            Leaves = maps:without(Combinations, Set),
            case members(Operator, needed(Combinations, Leaves), Leaves) of
                Set -> single(Operator, Set);
                Simpler -> normal(Operator, Simpler)
            end
    end.

single(Operator, Set) ->
    case maps:keys(Set) of
        [Only] -> Only;
        _ -> {Operator, Set}
    end.

needed(Combinations, Leaves) ->
    [Simpler || Member <- Combinations, Simpler <- [under(Leaves, Member)], Simpler =/= superfluous].

%% A combination next to these leaves. It is superfluous when one of the leaves is a member, or is all that is left of a
%% member.
under(Leaves, {Operator, Members}) -> under(Leaves, Operator, maps:keys(Members), #{}).

under(Leaves, Operator, [Member | Members], Set) ->
    case is_combination(Member) of
        true ->
            case without(Leaves, Member) of
                superfluous -> superfluous;
                Simpler -> under(Leaves, Operator, Members, members(Operator, [Simpler], Set))
            end;
        false when is_map_key(Member, Leaves) ->
            superfluous;
        false ->
            under(Leaves, Operator, Members, Set#{Member => []})
    end;
under(_, Operator, [], Set) ->
    normal(Operator, Set).

%% A member of such a combination: what it shares with the leaves goes.
without(Leaves, {Operator, Members}) ->
    {Combinations, Others} = lists:partition(fun is_combination/1, maps:keys(Members)),
    Kept = [Leaf || Leaf <- Others, not is_map_key(Leaf, Leaves)],
    case Kept ++ needed(Combinations, Leaves) of
        [] -> superfluous;
        States -> normal(Operator, members(Operator, States, #{}))
    end.

is_combination({'and', _}) -> true;
is_combination({'or', _}) -> true;
is_combination(_) -> false.

leaves({Operator, Members}) when Operator =:= 'and'; Operator =:= 'or' ->
    lists:sum([leaves(Member) || Member <- maps:keys(Members)]);
leaves(_) ->
    1.

-doc """
A step before any action other than `init` has matched, which is kept as `{fresh, State}`. A `yes` that falls here is
vacuous unless an action matches this very event (`Engaged`). What is still alive after another event than `init` has
matched something, so `fresh` ends there.
""".
-spec first(fun((Event, leaf()) -> result()), fun((Event, leaf()) -> boolean()), Event, state()) -> result().
first(Step, Engaged, Event, State) ->
    case step(Step, Event, State) of
        {ok, Next} when element(1, Event) =:= init -> {ok, {fresh, Next}};
        {verdict, yes, Info} -> {verdict, yes, Info#{vacuous => not any(Engaged, Event, State)}};
        Result -> Result
    end.

-doc "Whether a leaf of the combination is engaged by the event.".
-spec any(fun((Event, leaf()) -> boolean()), Event, state()) -> boolean().
any(Engaged, Event, {Operator, Members}) when Operator =:= 'and'; Operator =:= 'or' ->
    lists:any(fun(Member) -> any(Engaged, Event, Member) end, maps:keys(Members));
any(Engaged, Event, Leaf) ->
    Engaged(Event, Leaf).

-doc "The verdict at the complete end of the trace, from the verdicts and the bindings of the leaves.".
-spec at_end(fun((leaf()) -> {yes | no, info()}), text(), state()) -> {yes | no, info()}.
at_end(End, Text, {fresh, State}) ->
    {Verdict, Info} = at_end(End, Text, State),
    {Verdict, Info#{vacuous => Verdict =:= yes}};
at_end(End, Text, {Operator, Members}) when Operator =:= 'and'; Operator =:= 'or' ->
    Verdicts = [at_end(End, Text, Member) || Member <- maps:keys(Members)],
    Absorbing = case Operator of 'and' -> no; 'or' -> yes end,
    case lists:keyfind(Absorbing, 1, Verdicts) of
        false -> hd(Verdicts);
        Decided -> Decided
    end;
at_end(End, Text, Leaf) ->
    {Verdict, Info} = End(Leaf),
    {_, Bindings} = Text(Leaf),
    {Verdict, Info#{bindings => Bindings}}.

-doc """
The remaining formula as text with the values of its variables, from the texts of the leaves. Not all members of a large
combination are listed.
""".
-spec describe(text(), state()) ->
    #{formula := binary(), bindings := [{binary(), term()}]}.
describe(Text, {fresh, State}) ->
    describe(Text, State);
describe(Text, State) ->
    {Formula, Bindings} = formula(Text, State),
    #{formula => unicode:characters_to_binary(Formula), bindings => distinct(Bindings)}.

formula(Text, {Operator, Members}) when Operator =:= 'and'; Operator =:= 'or' ->
    {Shown, Left} = lists:split(min(map_size(Members), ?MAX_DESCRIBED), maps:keys(Members)),
    {Formulas, Bindings} = lists:unzip([formula(Text, Member) || Member <- Shown]),
    Separator = [" ", atom_to_binary(Operator), " "],
    More = case Left of [] -> ""; _ -> [Separator, io_lib:format("~b more", [length(Left)])] end,
    {[lists:join(Separator, [["(", Formula, ")"] || Formula <- Formulas]), More], lists:append(Bindings)};
formula(Text, Leaf) ->
    Text(Leaf).

distinct([Binding | Bindings]) -> [Binding | distinct([Other || Other <- Bindings, Other =/= Binding])];
distinct([]) -> [].
