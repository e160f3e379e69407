-module(witness_spec_formula).
-moduledoc """
The formula that remains to be satisfied, at run time.

A generated monitor has one state for each place of its formula: a number, or a tuple of a number and the values of the
variables that are still needed (`t:leaf/0`). While a single obligation is alive, that is the whole state. Several
obligations form a positive boolean combination of leaves, which this module keeps normalised:

- conjunctions and disjunctions are flat and alternate, and have at least two members;
- no member occurs twice (members are compared exactly: `1` and `1.0` are different data);
- a leaf that a conjunction demands is taken as true inside its other members, and one that a disjunction offers as
  false (this is absorption, at every depth).

So loops that reach the same state become one again. A combination has no more leaves than a limit; above it, the verdict is
`inconclusive` with the reason `too_many_obligations`, since a monitor's memory must be bounded. So is one that would have larger values of
parameters than a limit (`state_too_large`).

The leaf 0 is what no event decides (`m:witness_spec_clocks`).

Mostly all members are leaves, and few. These are a list, and a step that changes none of them returns the given
state. If a combination has inner combinations, all of them are maps with the members as keys: two are equal if
they have the same members.

The functions take the step function of the generated module as an argument.
""".

-export([begun/2, enter/4, conj/3, disj/3, step/4, first/5, known/1, any/3, at_end/3, ended/2, at_stop/3, describe/2, members/1,
         zero/1]).
-export_type([leaf/0, state/0, result/0, limit/0, text/0, info/0]).

-doc "A state of a generated monitor.".
-type leaf() :: non_neg_integer() | tuple().
-doc "A parameter of the leaf could not be computed: the place of what gives it a value.".
-type failed() :: {failed, Line :: pos_integer(), Column :: pos_integer()}.
-doc "A combination of leaves.".
-type state() :: leaf() | {operator(), [leaf(), ...] | nested()} | {fresh, state()}.
-type operator() :: 'and' | 'or'.
-type nested() :: #{leaf() | {operator(), nested()} => []}.
-doc "The result of `handle_event/2`.".
-type result() :: {ok, state()} | {verdict, yes | no | inconclusive, info()}.
-doc "The source text of a leaf's formula with its variables.".
-type text() :: fun((leaf()) -> {binary(), [{Name :: binary(), Value :: term()}]}).
-doc "See the description of generated monitors in `m:witness_spec`.".
-type info() :: map().
-doc "Limit of the leaves of a combination.".
-type limit() :: pos_integer().

-define(IS_LEAF(State), (is_integer(State) orelse is_integer(element(1, State)))).

%% A description lists this many members of a combination.
-define(MAX_DESCRIBED, 20).
%% Searching a list of so few states costs less than making a map.
-define(SHORT_LIST_STATES, 8).

-doc """
What follows is a formula with parameters, in this state, unless one of them cannot be computed (`argument`), or they are too large.
`Words`: of a state.
""".
-spec begun(Words :: pos_integer(), leaf() | failed()) -> result().
begun(_, {failed, Line, Column}) -> {verdict, inconclusive, #{reason => argument, line => Line, column => Column}};
begun(Words, State) ->
    case erts_debug:flat_size(State) =< Words of
        true -> {ok, State};
        false -> {verdict, inconclusive, #{reason => state_too_large}}
    end.

-doc "The same for a formula that reads this event already.".
-spec enter(fun((Event, leaf()) -> result()), pos_integer(), Event, leaf() | failed()) -> result().
enter(Step, Words, Event, State) ->
    case begun(Words, State) of
        {ok, State} -> Step(Event, State);
        Unknown -> Unknown
    end.

-doc "Both results have to hold.".
-spec conj(limit(), result(), result()) -> result().
conj(_, {ok, Same} = Result, {ok, Same}) -> Result;
conj(Limit, {ok, Left}, {ok, Right}) when Limit > 1, ?IS_LEAF(Left), ?IS_LEAF(Right) -> {ok, {'and', [Left, Right]}};
conj(Limit, {ok, Left}, {ok, Right}) -> join('and', Limit, [], [Left, Right]);
conj(_, {verdict, no, _} = No, _) -> No;
conj(_, _, {verdict, no, _} = No) -> No;
conj(_, {verdict, inconclusive, _} = Unknown, _) -> Unknown;
conj(_, _, {verdict, inconclusive, _} = Unknown) -> Unknown;
conj(_, {verdict, yes, Left}, {verdict, yes, Right}) -> {verdict, yes, telling(Left, Right)};
conj(_, {verdict, yes, _}, Right) -> Right;
conj(_, Left, {verdict, yes, _}) -> Left.

-doc "One of the results has to hold.".
-spec disj(limit(), result(), result()) -> result().
disj(_, {ok, Same} = Result, {ok, Same}) -> Result;
disj(Limit, {ok, Left}, {ok, Right}) when Limit > 1, ?IS_LEAF(Left), ?IS_LEAF(Right) -> {ok, {'or', [Left, Right]}};
disj(Limit, {ok, Left}, {ok, Right}) -> join('or', Limit, [], [Left, Right]);
disj(_, {verdict, yes, _} = Yes, _) -> Yes;
disj(_, _, {verdict, yes, _} = Yes) -> Yes;
disj(_, {verdict, inconclusive, _} = Unknown, _) -> Unknown;
disj(_, _, {verdict, inconclusive, _} = Unknown) -> Unknown;
disj(_, {verdict, no, Left}, {verdict, no, Right}) -> {verdict, no, telling(Left, Right)};
disj(_, {verdict, no, _}, Right) -> Right;
disj(_, Left, {verdict, no, _}) -> Left.

%% Prefers the explanation that names an action.
telling(#{action := _} = Left, _) -> Left;
telling(_, Right) -> Right.

-doc "A step of a combination: every leaf takes it, and the results are combined again.".
-spec step(fun((Event, leaf()) -> result()), limit(), Event, state()) -> result().
step(Step, Limit, Event, {Operator, [One, Other]} = State) when is_atom(Operator) ->
    case {Step(Event, One), Step(Event, Other)} of
        {{ok, One}, {ok, Other}} -> {ok, State};
        {Left, Right} when Operator =:= 'and' -> conj(Limit, Left, Right);
        {Left, Right} -> disj(Limit, Left, Right)
    end;
step(Step, Limit, Event, {Operator, Members} = State) when is_atom(Operator), is_list(Members) ->
    combine(Members, [], [], none, Step, Limit, Event, zero(Operator), State);
step(Step, Limit, Event, {Operator, Members} = State) when is_atom(Operator) ->
    Each = fun(Happened, Member) -> step(Step, Limit, Happened, Member) end,
    combine(maps:keys(Members), [], [], none, Each, Limit, Event, zero(Operator), State);
step(Step, _, Event, Leaf) ->
    Step(Event, Leaf).

-doc "The verdict that decides a combination at once, `no` a conjunction and `yes` a disjunction; its opposite only drops a member.".
-spec zero(operator()) -> no | yes.
zero('and') -> no;
zero('or') -> yes.

%% `Same` are the members that the step has not changed: they are distinct. Both lists are in reverse.
combine([Member | Members], Same, Changed, Dropped, Step, Limit, Event, Zero, Before) ->
    case Step(Event, Member) of
        {ok, Member} -> combine(Members, [Member | Same], Changed, Dropped, Step, Limit, Event, Zero, Before);
        {ok, State} -> combine(Members, Same, [State | Changed], Dropped, Step, Limit, Event, Zero, Before);
        {verdict, Zero, _} = Decided -> Decided;
        {verdict, inconclusive, _} = Unknown -> undecided(Members, Unknown, Step, Event, Zero);
        {verdict, _, _} = Neutral -> combine(Members, Same, Changed, Neutral, Step, Limit, Event, Zero, Before)
    end;
combine([], _, [], none, _, _, _, _, Before) ->
    {ok, Before};
combine([], [], [], Dropped, _, _, _, _, _) ->
    Dropped;
combine([], Same, Changed, _, _, Limit, _, _, {Operator, Members}) when is_list(Members) ->
    join(Operator, Limit, Same, lists:reverse(Changed));
combine([], Same, Changed, _, _, Limit, _, _, {Operator, _}) ->
    normalize(Operator, Limit, Changed ++ Same).

undecided([], Unknown, _, _, _) ->
    Unknown;
undecided([Member | Members], Unknown, Step, Event, Zero) ->
    case Step(Event, Member) of
        {verdict, Zero, _} = Decided -> Decided;
        _ -> undecided(Members, Unknown, Step, Event, Zero)
    end.

%% Joins distinct leaves, in reverse, with other states.
join(Operator, _, [_ | _] = Leaves, [Leaf]) when ?IS_LEAF(Leaf) ->
    {ok, case lists:member(Leaf, Leaves) of
        false -> {Operator, lists:reverse(Leaves, [Leaf])};
        true when tl(Leaves) =:= [] -> Leaf;
        true -> {Operator, lists:reverse(Leaves)}
    end};
join(Operator, Limit, Leaves, States) when length(States) =< ?SHORT_LIST_STATES ->
    case add(Operator, States, Leaves) of
        nested -> normalize(Operator, Limit, States ++ Leaves);
        All -> flatten(Operator, Limit, All)
    end;
join(Operator, Limit, Leaves, States) ->
    normalize(Operator, Limit, States ++ Leaves).

add(Operator, [{Operator, Members} | States], Leaves) when is_list(Members) ->
    add(Operator, States, add(Operator, Members, Leaves));
add(_, [{Other, _} | _], _) when Other =:= 'and'; Other =:= 'or' ->
    nested;
add(Operator, [Leaf | States], Leaves) ->
    case lists:member(Leaf, Leaves) of
        true -> add(Operator, States, Leaves);
        false -> add(Operator, States, [Leaf | Leaves])
    end;
add(_, [], Leaves) ->
    Leaves.

flatten(_, _, [Only]) -> {ok, Only};
flatten(Operator, Limit, Leaves) when length(Leaves) =< Limit -> {ok, {Operator, lists:reverse(Leaves)}};
flatten(_, _, _) -> {verdict, inconclusive, #{reason => too_many_obligations}}.

%% Combinations inside others. A combination that has become flat is a list again.
normalize(Operator, Limit, States) ->
    case normal(Operator, members(Operator, [to_map(State) || State <- States], #{})) of
        {Top, Members} = State when Top =:= 'and'; Top =:= 'or' ->
            case lists:any(fun is_combination/1, maps:keys(Members)) of
                false -> flatten(Top, Limit, lists:reverse(maps:keys(Members)));
                true -> limit(Limit, State)
            end;
        Leaf ->
            {ok, Leaf}
    end.

limit(Limit, State) ->
    case count(State) =< Limit of
        true -> {ok, State};
        false -> {verdict, inconclusive, #{reason => too_many_obligations}}
    end.

to_map({Operator, Members}) when is_atom(Operator), is_list(Members) -> {Operator, maps:from_keys(Members, [])};
to_map(State) -> State.

members(Operator, [{Operator, Members} | States], Set) -> members(Operator, States, maps:merge(Set, Members));
members(Operator, [State | States], Set) -> members(Operator, States, Set#{State => []});
members(_, [], Set) -> Set.

%% Simplifies members that are combinations, under the leaves, until no new leaf appears.
normal(Operator, Set) ->
    case [Member || Member <- maps:keys(Set), is_combination(Member)] of
        [] ->
            single(Operator, Set);
        Combinations ->
            Leaves = maps:without(Combinations, Set),
            case members(Operator, drop_superfluous(Combinations, Leaves), Leaves) of
                Set -> single(Operator, Set);
                Simpler -> normal(Operator, Simpler)
            end
    end.

single(Operator, Set) ->
    case maps:keys(Set) of
        [Only] -> Only;
        _ -> {Operator, Set}
    end.

drop_superfluous(Combinations, Leaves) ->
    [Simpler || Member <- Combinations, Simpler <- [under(Leaves, Member)], Simpler =/= superfluous].

%% A combination next to these leaves. It is superfluous if one of the leaves is a member, or is all that remains of a
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

%% A member of such a combination, without what it shares with the leaves.
without(Leaves, {Operator, Members}) ->
    {Combinations, Others} = lists:partition(fun is_combination/1, maps:keys(Members)),
    Kept = [Leaf || Leaf <- Others, not is_map_key(Leaf, Leaves)],
    case Kept ++ drop_superfluous(Combinations, Leaves) of
        [] -> superfluous;
        States -> normal(Operator, members(Operator, States, #{}))
    end.

-doc "The members of a combination.".
-spec members([leaf(), ...] | nested()) -> [leaf() | {operator(), nested()}].
members(Members) when is_list(Members) -> Members;
members(Members) -> maps:keys(Members).

is_combination({'and', _}) -> true;
is_combination({'or', _}) -> true;
is_combination(_) -> false.

count({Operator, Members}) when Operator =:= 'and'; Operator =:= 'or' ->
    lists:sum([count(Member) || Member <- maps:keys(Members)]);
count(_) ->
    1.

-doc """
A step before any action other than `init` has matched, which is kept as `{fresh, State}`. A `yes` in this step is
vacuous unless this very event engages an obligation (`Engaged`). If the state is still alive after an event other than `init`, that
event has matched something, so `fresh` ends there.
""".
-spec first(fun((Event, leaf()) -> result()), fun((Event, leaf()) -> boolean()), limit(), Event, state()) -> result().
first(Step, Engaged, Limit, Event, State) ->
    case step(Step, Limit, Event, State) of
        {ok, Next} when element(1, Event) =:= init -> {ok, {fresh, Next}};
        {verdict, yes, Info} -> {verdict, yes, Info#{vacuous => not any(Engaged, Event, State)}};
        Result -> Result
    end.

-doc "The result for the whole formula. If only the leaf 0 is left, nothing can decide it any more: it depends on clocks that differ.".
-spec known(result()) -> result().
known({ok, 0}) -> {verdict, inconclusive, #{reason => skew}};
known({ok, {fresh, 0}}) -> {verdict, inconclusive, #{reason => skew}};
known(Result) -> Result.

-doc "Whether a leaf of the combination is engaged by the event.".
-spec any(fun((Event, leaf()) -> boolean()), Event, state()) -> boolean().
any(Engaged, Event, {Operator, Members}) when Operator =:= 'and'; Operator =:= 'or' ->
    lists:any(fun(Member) -> any(Engaged, Event, Member) end, members(Members));
any(Engaged, Event, Leaf) ->
    Engaged(Event, Leaf).

-doc "The verdict at the complete end of the trace, from the verdicts and the bindings of the leaves.".
-spec at_end(fun((leaf()) -> {yes | no | inconclusive, info()}), text(), state() | failed()) -> {yes | no | inconclusive, info()}.
at_end(End, Text, {fresh, State}) ->
    {Verdict, Info} = at_end(End, Text, State),
    {Verdict, Info#{vacuous => Verdict =:= yes}};
at_end(_, _, {failed, _, _} = Failed) ->
    {verdict, inconclusive, Info} = begun(1, Failed),
    {inconclusive, Info};
at_end(End, Text, {Operator, Members}) when Operator =:= 'and'; Operator =:= 'or' ->
    ended(Operator, [at_end(End, Text, Member) || Member <- members(Members)]);
at_end(End, Text, Leaf) ->
    {Verdict, Info} = End(Leaf),
    {_, Bindings} = Text(Leaf),
    {Verdict, Info#{bindings => Bindings}}.

-doc "Of the verdicts of members at the end, the one that decides the combination.".
-spec ended(operator(), [{yes | no | inconclusive, info()}, ...]) -> {yes | no | inconclusive, info()}.
ended(Operator, Verdicts) ->
    case lists:keyfind(zero(Operator), 1, Verdicts) of
        false -> hd([Unknown || {inconclusive, _} = Unknown <- Verdicts] ++ Verdicts);
        Decided -> Decided
    end.

-doc """
The result where the observation stops before the end. If the property demands something that has not come (the trace so far would
violate it), the reason is `pending`, and the place is that of what has to come.
""".
-spec at_stop(fun((leaf()) -> {yes | no | inconclusive, info()}), text(), state() | failed()) -> {inconclusive, info()}.
at_stop(End, Text, State) ->
    case at_end(End, Text, State) of
        {no, Info} -> {inconclusive, (maps:without([vacuous, matched], Info))#{reason => pending}};
        {yes, _} -> {inconclusive, #{}};
        {inconclusive, _} = Unknown -> Unknown
    end.

-doc """
The remaining formula as text with the values of its variables, from the texts of the leaves. Not all members of a large
combination are listed.
""".
-spec describe(text(), state()) ->
    #{formula := binary(), bindings := [{binary(), term()}]}.
describe(Text, {fresh, State}) ->
    describe(Text, State);
describe(_, {failed, _, _}) ->
    #{formula => ~"...", bindings => []};
describe(Text, State) ->
    case formula(Text, upper(State)) of
        {Formula, Bindings} when is_binary(Formula) -> #{formula => Formula, bindings => Bindings};
        {Formula, Bindings} -> #{formula => unicode:characters_to_binary(Formula), bindings => distinct(Bindings)}
    end.

%% Of both bounds one is shown: their texts are the same.
upper({Operator, Members}) when Operator =:= 'and'; Operator =:= 'or' ->
    All = members(Members),
    case {All -- [0], [Upper || {'and', Inner} = Upper <- All, lists:member(0, members(Inner))]} of
        {[Bound], _} -> Bound;
        {All, [Upper]} -> upper(Upper);
        {Bounds, _} -> {Operator, if is_list(Members) -> Bounds; true -> maps:without([0], Members) end}
    end;
upper(State) -> State.

formula(Text, {Operator, Members}) when Operator =:= 'and'; Operator =:= 'or' ->
    All = members(Members),
    {Shown, Left} = lists:split(min(length(All), ?MAX_DESCRIBED), All),
    {Formulas, Bindings} = lists:unzip([formula(Text, Member) || Member <- Shown]),
    Separator = [" ", atom_to_binary(Operator), " "],
    More = case Left of [] -> ""; _ -> [Separator, io_lib:format("~b more", [length(Left)])] end,
    {case {lists:uniq([unicode:characters_to_binary(Formula) || Formula <- Formulas]), Left} of
         {[Only], []} -> Only;
         {Different, _} -> [lists:join(Separator, [["(", Formula, ")"] || Formula <- Different]), More]
     end, lists:append(Bindings)};
formula(Text, Leaf) ->
    Text(Leaf).

distinct([Binding | Bindings]) -> [Binding | distinct([Other || Other <- Bindings, Other =/= Binding])];
distinct([]) -> [].
