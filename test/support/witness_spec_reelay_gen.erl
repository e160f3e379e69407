-module(witness_spec_reelay_gen).
-moduledoc """
Random past-time formulas over four propositions, and traces for them. They draw from the process's `rand`.

`{since, 3, F, G}` is `F since G`, with `G` at most 3 units before, or at one of the last 3 + 1 places; with `none` there is no
bound. A trace is a list of items. The *places* are those that the formula is about (`places/1`).
""".

-export([example/0, smaller/1, places/1, evaluate/2, propositions/0]).
-export_type([formula/0, mode/0, item/0, example/0]).

-type formula() :: true | false | {prop, 1..4}
                 | {'not', formula()} | {'and' | 'or' | implies, formula(), formula()}
                 | {previously, formula()}
                 | {once | historically, bound(), formula()}
                 | {since, bound(), formula(), formula()}.
-type bound() :: none | non_neg_integer().

-doc """
What a bound of n means, and which times the places have:

- `events`: the last n + 1 places;
- `units`: n units of time, or the last n + 1 places, which are one unit apart;
- `gaps`: n units of time; the places are some units apart;
- `times`: n units of time; several places have the same time, some have a nanosecond more or less, and time goes back.
""".
-type mode() :: events | units | gaps | times.

-doc """
A `step` is an event with the propositions that are true. `noise` is an event in which all are false, and no place if the property
has `over`. So is a `birth`, which comes first. The time is so many units (`grid`) and so many nanoseconds (`shift`).
""".
-type item() :: #{kind := step | noise | birth, holds := [1..4], grid := integer(), shift := -1..1}.

-doc """
A formula and its traces, of which there are several if the property has `per`: one for each value. `style` chooses how the property
is written.
""".
-type example() :: #{formula := formula(), mode := mode(), unit := binary(), over := boolean(), traces := [[item()]],
                     style := non_neg_integer(), order := [pos_integer()]}.

-define(DEPTH, 4).
-define(EVENTS, 40).

-doc "The names of the propositions.".
-spec propositions() -> [string()].
propositions() -> ["A", "B", "C", "D"].

formula(0) -> leaf();
formula(Depth) ->
    case weighted([{1 + 4 - min(4, Depth), leaf}, {2, 'not'}, {3, 'and'}, {2, 'or'}, {1, implies}, {3, previously}, {4, once},
                   {4, historically}, {5, since}]) of
        leaf -> leaf();
        Unary when Unary =:= 'not'; Unary =:= previously -> {Unary, formula(Depth - 1)};
        Window when Window =:= once; Window =:= historically -> {Window, bound(), formula(Depth - 1)};
        since -> {since, bound(), formula(Depth - 1), formula(Depth - 1)};
        Binary -> {Binary, formula(Depth - 1), formula(Depth - 1)}
    end.

leaf() ->
    case rand:uniform(30) of
        1 -> true;
        2 -> false;
        _ -> {prop, rand:uniform(length(propositions()))}
    end.

bound() ->
    case rand:uniform(20) of
        N when N =< 7 -> none;
        N when N =< 15 -> rand:uniform(4) - 1;
        N when N =< 19 -> rand:uniform(9) - 1;
        20 -> 20
    end.

-doc "A random formula with a trace; every tenth one has two or three traces.".
-spec example() -> example().
example() ->
    Traces = case rand:uniform(10) of 1 -> 1 + rand:uniform(2); _ -> 1 end,
    Mode = weighted([{5, events}, {2, units}, {2, gaps}, {4, times}]),
    Over = Traces > 1 orelse rand:uniform(3) > 1,
    #{formula => formula(2 + rand:uniform(?DEPTH - 2)), mode => Mode, over => Over,
      traces => [trace(Mode, Over) || _ <- lists:seq(1, Traces)],
      unit => element(rand:uniform(6), {~"us", ~"ms", ~"s", ~"min", ~"h", ~"d"}),
      style => rand:uniform(1 bsl 30)}.

%% Each proposition is true in stretches, which are long or short.
trace(Mode, Over) ->
    Stay = [rand:uniform() || _ <- propositions()],
    Likely = [rand:uniform() || _ <- propositions()],
    Birth = [#{kind => birth, holds => [], grid => 0, shift => 0} || rand:uniform(3) =:= 1],
    Noise = case rand:uniform(2) of 1 -> 0.0; 2 -> 0.3 end,
    items(rand:uniform(?EVENTS), {Mode, Over, Noise, Stay, Likely}, [rand:uniform(2) =:= 1 || _ <- propositions()],
          lists:reverse(Birth)).

items(0, _, _, Items) -> lists:reverse(Items);
items(Left, {Mode, Over, Noise, Stay, Likely} = How, Before, Items) ->
    Last = case [Item || #{kind := Kind} = Item <- Items, Kind =:= step orelse not Over] of
        [] -> #{grid => 0, shift => 0};
        [Latest | _] -> Latest
    end,
    case rand:uniform() < Noise of
        true ->
            %% An event that is no place may have any time.
            Time = next(case Over of true -> times; false -> Mode end, Last),
            items(Left - 1, How, Before, [Time#{kind => noise, holds => []} | Items]);
        false ->
            Now = [case rand:uniform() < S of true -> Value; false -> rand:uniform() < L end
                   || {S, L, Value} <- lists:zip3(Stay, Likely, Before)],
            Holds = [I || {I, true} <- lists:enumerate(Now)],
            items(Left - 1, How, Now, [(next(Mode, Last))#{kind => step, holds => Holds} | Items])
    end.

next(Mode, #{grid := Grid}) when Mode =:= events; Mode =:= units -> #{grid => Grid + 1, shift => 0};
next(gaps, #{grid := Grid}) -> #{grid => Grid + rand:uniform(4), shift => 0};
next(times, #{grid := Grid, shift := Shift}) ->
    case rand:uniform(10) of
        N when N =< 3 -> #{grid => Grid, shift => Shift};
        4 -> #{grid => max(0, Grid - rand:uniform(3)), shift => 0};
        N when N =< 7 -> #{grid => Grid + rand:uniform(3), shift => rand:uniform(3) - 2};
        _ -> #{grid => Grid + rand:uniform(5), shift => 0}
    end.

-doc "Examples with one thing less.".
-spec smaller(example()) -> [example()].
smaller(#{formula := Formula, traces := Traces, mode := Mode} = Example) ->
    [Example#{traces := [Trace]} || [_, _ | _] <- [Traces], Trace <- Traces]
        ++ [Example#{formula := Smaller} || Smaller <- smaller_formulas(Formula)]
        %% Without its last half, and without one item. Where the places are one unit apart, they stay so.
        ++ [Example#{traces := [lists:sublist(Trace, length(Trace) div 2)]} || [[_, _ | _] = Trace] <- [Traces]]
        ++ [Example#{traces := [Shorter]} || [[_, _ | _] = Trace] <- [Traces], N <- lists:seq(1, length(Trace)),
                                             Shorter <- [without(N, Trace)], Mode =/= units orelse N =:= length(Trace)]
        ++ [Example#{traces := [replaced(N, Item#{holds := lists:delete(P, Holds)}, Trace)]}
            || [Trace] <- [Traces], {N, #{holds := Holds} = Item} <- lists:enumerate(Trace), P <- Holds].

without(N, List) -> lists:sublist(List, N - 1) ++ lists:nthtail(N, List).

replaced(N, New, List) -> lists:sublist(List, N - 1) ++ [New | lists:nthtail(N, List)].

smaller_formulas({Op, F}) when Op =:= 'not'; Op =:= previously -> [F | [{Op, Smaller} || Smaller <- smaller_formulas(F)]];
smaller_formulas({Op, F, G}) when Op =:= 'and'; Op =:= 'or'; Op =:= implies ->
    [F, G] ++ [{Op, Smaller, G} || Smaller <- smaller_formulas(F)] ++ [{Op, F, Smaller} || Smaller <- smaller_formulas(G)];
smaller_formulas({since, Bound, F, G}) ->
    [F, G] ++ [{since, Less, F, G} || Less <- smaller_bounds(Bound)]
        ++ [{since, Bound, Smaller, G} || Smaller <- smaller_formulas(F)]
        ++ [{since, Bound, F, Smaller} || Smaller <- smaller_formulas(G)];
smaller_formulas({Op, Bound, F}) when Op =:= once; Op =:= historically ->
    [F] ++ [{Op, Less, F} || Less <- smaller_bounds(Bound)] ++ [{Op, Bound, Smaller} || Smaller <- smaller_formulas(F)];
smaller_formulas(_) -> [].

smaller_bounds(none) -> [];
smaller_bounds(Bound) -> [none | [Less || Less <- lists:usort([0, Bound div 2, Bound - 1]), Less >= 0, Less < Bound]].

-doc "The items that the formula is about.".
-spec places(example()) -> [[item()]].
places(#{over := Over, traces := Traces}) ->
    [[Item || #{kind := Kind} = Item <- Trace, Kind =:= step orelse not Over] || Trace <- Traces].

-doc "The formula where these propositions are true, if it has nothing about the past.".
-spec evaluate(formula(), [1..4]) -> boolean() | past.
evaluate(Constant, _) when is_boolean(Constant) -> Constant;
evaluate({prop, I}, Holds) -> lists:member(I, Holds);
evaluate({'not', F}, Holds) -> lift(fun(A, _) -> not A end, evaluate(F, Holds), true);
evaluate({'and', F, G}, Holds) -> lift(fun erlang:'and'/2, evaluate(F, Holds), evaluate(G, Holds));
evaluate({'or', F, G}, Holds) -> lift(fun erlang:'or'/2, evaluate(F, Holds), evaluate(G, Holds));
evaluate({implies, F, G}, Holds) -> lift(fun(A, B) -> not A orelse B end, evaluate(F, Holds), evaluate(G, Holds));
evaluate(_, _) -> past.

lift(_, past, _) -> past;
lift(_, _, past) -> past;
lift(Fun, A, B) -> Fun(A, B).

weighted(Choices) -> weighted(rand:uniform(lists:sum([Weight || {Weight, _} <- Choices])), Choices).

weighted(N, [{Weight, Choice} | _]) when N =< Weight -> Choice;
weighted(N, [{Weight, _} | Choices]) -> weighted(N - Weight, Choices).
