-module(witness_search_reversal).
-moduledoc """
A run as its difference from the default order, and the smallest such difference with which it still fails. Pure.

In the *default order* a process goes on as long as it can, and then the oldest one that can does; a time is over when nothing else is
possible. A *pair* says of two steps that the first one comes before the second: the second waits until the first is done, unless nothing
else is possible. A step is named by what acts, and how many steps that has done, so it has the same name in all runs.

`pairs/2` takes from a run of each two steps that follow each other in touching something, one of them changing it, which one came first.
With all these pairs the order of all dependent steps is that of the run. `shrink/3` finds a subset (delta debugging; Zeller, Hildebrandt:
Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28(2), 2002).
""".
-behaviour(witness_search_strategy).

-export([new/2, choose/3, pairs/2, shrink/3, named/1]).

-export_type([pair/0, name/0]).

-type name() :: {witness_search_world:actor(), pos_integer()}.
-type pair() :: {First :: name(), Second :: name()}.

%% going: the step with which the process goes on that has acted last, if it can.
-record(reversal, {before :: #{name() => [name()]},
                   done = #{} :: #{witness_search_world:actor() => pos_integer()},
                   going = none :: none | witness_search_world:step()}).

-doc false.
new(Pairs, _) -> #reversal{before = maps:groups_from_list(fun({_, Second}) -> Second end, fun({First, _}) -> First end, Pairs)}.

%% Times come last, the earliest one first.
-doc false.
choose(Possible, _, #reversal{before = Before, going = Going} = R) when map_size(Before) =:= 0 ->
    Step = first(Going =/= none andalso witness_search_possible:is_member(Going, Possible), Going, Possible),
    {Step, R#reversal{going = going(Step)}};
choose(Possible, #{actor := Actor}, #reversal{done = Done, going = Going} = R) ->
    Goes = Going =/= none andalso witness_search_possible:is_member(Going, Possible),
    IsFree = fun(Step) -> not is_held(Actor(Step), R) end,
    Step = case Goes andalso IsFree(Going) of
        true -> Going;
        false ->
            case witness_search_possible:find(IsFree, Possible) of
                {found, Free} -> Free;
                none -> first(Goes, Going, Possible)
            end
    end,
    Chosen = Actor(Step),
    {Step, R#reversal{going = going(Step), done = Done#{Chosen => maps:get(Chosen, Done, 0) + 1}}}.

first(true, Going, _) -> Going;
first(false, _, Possible) -> witness_search_possible:nth(1, Possible).

going({timeout, Id}) -> {process, Id};
going({timer, _}) -> none;
going(Step) -> Step.

is_held(Actor, #reversal{before = Before, done = Done}) ->
    Next = {Actor, maps:get(Actor, Done, 0) + 1},
    case Before of
        #{Next := Firsts} -> lists:any(fun(First) -> not is_done(First, Done) end, Firsts);
        #{} -> false
    end.

is_done({Actor, N}, Done) -> maps:get(Actor, Done, 0) >= N.

-doc "The steps of a run with their names.".
-spec named([witness_search_scheduler:traced()]) -> [{name(), witness_search_scheduler:traced()}].
named(Trace) ->
    {Named, _} = lists:mapfoldl(fun(#{actor := Actor} = Step, Done) ->
        N = maps:get(Actor, Done, 0) + 1,
        {{{Actor, N}, Step}, Done#{Actor => N}}
    end, #{}, Trace),
    Named.

-doc "The pairs of a run, without those that another run has in the same order.".
-spec pairs([{name(), witness_search_scheduler:traced()}], Other :: [{name(), witness_search_scheduler:traced()}]) -> [pair()].
pairs(Named, Other) ->
    {Pairs, _, _} = lists:foldl(fun({Name, #{touches := Touches}}, Acc) ->
        lists:foldl(fun(Touch, Found) -> touch(Touch, Name, Found) end, Acc, Touches)
    end, {[], #{}, #{}}, Named),
    Places = maps:from_list([{Name, Place} || {Place, {Name, _}} <- lists:enumerate(Other)]),
    lists:uniq([Pair || {{One, _}, {Two, _}} = Pair <- lists:reverse(Pairs), One =/= Two, not is_same(Pair, Places)]).

is_same({First, Second}, Places) ->
    case Places of
        #{First := One, Second := Two} -> One < Two;
        #{} -> false
    end.

%% The last step that has changed a thing, and those that have read it since.
touch({reads, What}, Name, {Pairs, Changed, Read}) ->
    {[{First, Name} || #{What := First} <- [Changed]] ++ Pairs, Changed, Read#{What => [Name | maps:get(What, Read, [])]}};
touch({changes, What}, Name, {Pairs, Changed, Read}) ->
    Before = [First || #{What := First} <- [Changed]] ++ maps:get(What, Read, []),
    {[{First, Name} || First <- Before] ++ Pairs, Changed#{What => Name}, Read#{What => []}}.

-doc """
The smallest set of pairs that is found, with so many runs at most, with which the run still fails. `Fails` runs the program with these
pairs. `none`: it does not fail with all of them.
""".
-spec shrink([pair()], fun(([pair()]) -> boolean()), pos_integer()) -> [pair()] | none.
shrink(Pairs, Fails, Runs) ->
    case Fails([]) of
        true -> [];
        false ->
            case Fails(Pairs) of
                true ->
                    {Smallest, _} = minimise(Pairs, 2, Fails, Runs),
                    Smallest;
                false -> none
            end
    end.

minimise(Pairs, _, _, Runs) when length(Pairs) < 2; Runs =< 0 -> {Pairs, Runs};
minimise(Pairs, Parts, Fails, Runs) ->
    Size = (length(Pairs) + Parts - 1) div Parts,
    case first_failing(complements(Pairs, Size), Fails, Runs) of
        {found, Fewer, Left} -> minimise(Fewer, max(Parts - 1, 2), Fails, Left);
        {none, Left} when Size =< 1 -> {Pairs, Left};
        {none, Left} -> minimise(Pairs, min(Parts * 2, length(Pairs)), Fails, Left)
    end.

complements(Pairs, Size) ->
    [lists:sublist(Pairs, Start) ++ nthtail(Start + Size, Pairs) || Start <- lists:seq(0, length(Pairs) - 1, Size)].

nthtail(N, List) when N >= length(List) -> [];
nthtail(N, List) -> lists:nthtail(N, List).

first_failing([Pairs | Others], Fails, Runs) when Runs > 0 ->
    case Fails(Pairs) of
        true -> {found, Pairs, Runs - 1};
        false -> first_failing(Others, Fails, Runs - 1)
    end;
first_failing(_, _, Runs) -> {none, Runs}.
