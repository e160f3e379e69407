-module(witness_search_surw).
-moduledoc """
A selectively uniform random walk (Zhao, Wolff, Mathur, Roychoudhury: Selectively Uniform Concurrency Testing, ASPLOS 2025, section 3).

Some steps are *interesting*, and the orders of these are to be equally likely. A first run says how many of them each process does. The
process that does the next one is *intended*: it is drawn with a probability in proportion to the interesting steps that it has left.
Until it has done its step, no other process does an interesting one; all other steps are chosen at random. If the counts are those of
the run, and no process has to wait for another one, all orders of interesting steps have the same probability.

What a process that is not there yet will do is counted for its nearest ancestor that is there. When a process is spawned, its parent, if it is
the intended one, draws again between the two. The signals from one process to another count as a process that is spawned by the
sender.
""".
-behaviour(witness_search_strategy).

-export([new/2, choose/3]).

-export_type([profile/0]).

-doc "How many interesting steps each actor does, and by which actor it is spawned.".
-type profile() :: #{counts := #{Actor :: term() => pos_integer()}, parents := #{Actor :: term() => Parent :: term()}}.

%% left: the interesting steps that each actor has left; weight: the same, with those of actors that are spawned by it later.
-record(surw, {random :: rand:state(),
               left :: #{term() => non_neg_integer()},
               parents :: #{term() => term()},
               weight = #{} :: #{term() => non_neg_integer()},
               intended = none :: none | {is, term()}}).

-doc false.
new(Seed, Options) ->
    #{counts := Counts, parents := Parents} = maps:get(profile, Options, #{counts => #{}, parents => #{}}),
    #surw{random = rand:seed_s(exsss, Seed), left = Counts, parents = Parents}.

-doc false.
choose(Possible, #{actor := Actor, interesting := IsInteresting}, S0) ->
    Named = [{Step, Actor(Step), IsInteresting(Step)} || Step <- witness_search_possible:to_list(Possible)],
    Actors = lists:uniq([Name || {_, Name, _} <- Named]),
    S1 = intend(lists:foldl(fun admit/2, S0, Actors)),
    {Allowed, S2} = allowed(Named, Actors, S1),
    {N, Random} = rand:uniform_s(length(Allowed), S2#surw.random),
    {Step, Name, Interesting} = lists:nth(N, Allowed),
    {Step, done(Interesting, Name, S2#surw{random = Random})}.

%% An actor that is there for the first time takes its part of the weight of the nearest one above it.
admit(Actor, #surw{weight = Weight} = S) when is_map_key(Actor, Weight) -> S;
admit(Actor, #surw{weight = Weight} = S) ->
    Own = weight(Actor, S),
    case above(Actor, S) of
        none -> S#surw{weight = Weight#{Actor => Own}};
        Above ->
            #{Above := All} = Weight,
            drawn_again(Above, Actor, S#surw{weight = Weight#{Above := max(0, All - Own), Actor => Own}})
    end.

%% Its own steps, and those of all actors below it that are not there.
weight(Actor, #surw{left = Left} = S) ->
    lists:sum([Count || Other := Count <- Left, Other =:= Actor orelse is_below(Other, Actor, S)]).

is_below(Other, Actor, #surw{parents = Parents, weight = Weight} = S) ->
    case Parents of
        _ when is_map_key(Other, Weight) -> false;
        #{Other := Actor} -> true;
        #{Other := Parent} -> is_below(Parent, Actor, S);
        #{} -> false
    end.

above(Actor, #surw{parents = Parents, weight = Weight} = S) ->
    case Parents of
        #{Actor := Parent} when is_map_key(Parent, Weight) -> Parent;
        #{Actor := Parent} -> above(Parent, S);
        #{} -> none
    end.

drawn_again(Above, Actor, #surw{intended = {is, Above}} = S) -> draw([Above, Actor], S);
drawn_again(_, _, S) -> S.

intend(#surw{intended = none, weight = Weight} = S) -> draw(lists:sort(maps:keys(Weight)), S);
intend(S) -> S.

%% If nothing is left of what was counted, each actor is as likely.
draw(Actors, #surw{weight = Weight, random = Random} = S) ->
    All = [map_get(Actor, Weight) || Actor <- Actors],
    Weights = case lists:sum(All) of 0 -> [1 || _ <- All]; _ -> All end,
    {N, Next} = rand:uniform_s(lists:sum(Weights), Random),
    S#surw{intended = {is, pick(N, lists:zip(Actors, Weights))}, random = Next}.

pick(N, [{Actor, Weight} | _]) when N =< Weight -> Actor;
pick(N, [{_, Weight} | Others]) -> pick(N - Weight, Others).

%% If the intended actor cannot go on, and only others that do something interesting can, one of these is intended.
allowed(Named, Actors, #surw{intended = {is, Intended}} = S) ->
    case [Item || {_, Actor, Interesting} = Item <- Named, Actor =:= Intended orelse not Interesting] of
        [] -> allowed(Named, Actors, draw(Actors, S));
        Allowed -> {Allowed, S}
    end.

done(false, _, S) -> S;
done(true, Actor, #surw{left = Left, weight = Weight} = S) ->
    Counted = maps:get(Actor, Left, 0),
    S#surw{left = Left#{Actor => max(0, Counted - 1)}, weight = Weight#{Actor := max(0, map_get(Actor, Weight) - min(1, Counted))},
           intended = none}.
