-module(witness_spec_value).
-moduledoc """
The values of `let`s while a monitor runs (docs/internals/semantics.md, *Values*).

A generated monitor has what it remembers for them beside the state of its formula (`m:witness_spec_let_code`). At an event `step/6`
computes all values in their order, and gives the event with these to the formula. The time of a trace never goes back here: an event that
comes later counts as not earlier.

The values of a key of `per` go on without a live instance. Then they are a *past*: the same without a state. `remember/3` handles an event
with it, `recall/2` gives it to the next instance.
""".

-export([new/1, step/6, describe/3]).
-export([is_timed/1, past/1, is_past/2, remember/3, recall/2, put_time/2, fades/4]).
-export_type([kind/0, described/0, memory/0, keeper/0, past/0, unknown/0]).

-doc "What a `let` says, and its window; one with so many variables says it `each` valuation, and asks these `let`s for theirs.".
-type kind() :: plain() | {each, pos_integer(), plain(), [witness_spec_let:asked()]}.
-type plain() :: {previously | once | since | count | sum | min | max | mean,
                 Window :: all | {time, Nanoseconds :: non_neg_integer()} | {events, pos_integer()}}.

-doc "A `let` with the numbers of its conditions, its place, and that of its expression.".
-type described() :: {kind(), Conditions :: [pos_integer(), ...], place(), place()}.
-type place() :: {Line :: pos_integer(), Column :: pos_integer()}.

-doc "The number of events so far, the greatest time, what each `let` remembers, and their values at the last event.".
-type memory() :: {non_neg_integer(), integer() | none, [several()], [term()]}.

%% Whether the condition held before; where it held last; the combination of all, or of those in the window.
-type one() :: boolean() | none | integer() | {some, term()} | witness_spec_window:window().
-type several() :: one() | witness_spec_valuation:valuations(one()).

-type values() :: {values, Known :: term(), memory(), State :: term()}.

-doc "Values without the state of a formula.".
-type past() :: {values, Known :: term(), memory(), none}.

-doc """
What handles the pasts of a property with `per`: its `let`s, their conditions, and the words of their windows, as for `step/6`. `unkeyed`:
the first values of a key that has had no event, which events without a key change; `none` where all events have keys. `keyed`: whether
conditions depend on the key at events without one.
""".
-type keeper() :: #{lets := [described()], holds := holds(), words := pos_integer(), unkeyed := past() | none,
                    keyed := boolean()}.

-type holds() :: fun((Condition :: pos_integer() | tuple(), Known :: term(), witness_event:event(), Earlier :: [term()]) ->
                         boolean() | {value, term()} | failed | [Valuations :: [tuple()]]).
-type unknown() :: {verdict, inconclusive, #{reason := atom(), line => pos_integer(), column => pos_integer()}}.

%% Memory of a place in a window, in words.
-define(WORDS, 8).

-doc "What is remembered before the first event.".
-spec new([kind()]) -> memory().
new(Kinds) -> {0, none, [first(Kind) || Kind <- Kinds], []}.

first({each, _, Kind, _}) -> witness_spec_valuation:new(first(Kind));
first({previously, _}) -> false;
first({Value, _}) when Value =:= once; Value =:= since -> none;
first({_, all}) -> none;
first(_) -> witness_spec_window:new().

-doc """
A step of a monitor with values. `Holds` says of an event whether the condition with this number holds, or of what a sum is; `Handle` is
the step of the formula. The windows together have at most so many words.
""".
-spec step([described()], holds(), Handle, Words :: pos_integer(), witness_event:event(), values()) ->
    {ok, values()} | Decided | unknown() when
      Handle :: fun((Event :: tuple(), State :: term()) -> {ok, State :: term()} | Decided).
step(Lets, Holds, Handle, Words, Event, {values, Known, Before, State}) ->
    case next(Lets, Holds, Words, Event, Known, Before) of
        {ok, {_, _, _, Values} = Memory} ->
            case Handle(erlang:insert_element(tuple_size(Event), Event, list_to_tuple(Values)), State) of
                {ok, After} -> {ok, {values, Known, Memory, After}};
                Decided -> Decided
            end;
        Unknown -> Unknown
    end.

next(Lets, Holds, Words, Event, Known, {Count, Before, Memory, _}) ->
    Time = witness_event:ts(Event),
    Now = if is_integer(Time), Before =:= none orelse Time > Before -> Time; true -> Before end,
    try values(Lets, Memory, {Count + 1, Time, Now}, {Holds, Known, Event}, [], []) of
        {Values, Next} ->
            case Words < ?WORDS * size(Next, 0) of
                true -> {verdict, inconclusive, #{reason => state_too_large}};
                false -> {ok, {Count + 1, Now, Next, Values}}
            end
    catch
        throw:{unknown, Reason, {Line, Column}} -> {verdict, inconclusive, #{reason => Reason, line => Line, column => Column}}
    end.

-doc "Whether a window has a duration.".
-spec is_timed(keeper()) -> boolean().
is_timed(#{lets := Lets}) -> [timed || {Kind, _, _, _} <- Lets, {_, {time, _}} <- [plain(Kind)]] =/= [].

plain({each, _, Kind, _}) -> Kind;
plain(Kind) -> Kind.

-doc "The past that a state leaves behind.".
-spec past(values()) -> past().
past({values, Known, Memory, _}) -> {values, Known, Memory, none}.

-doc "Whether a term is a past that could have come of these values.".
-spec is_past(past() | term(), values() | term()) -> boolean().
is_past({values, Known, {Count, Now, Memory, Values}, none}, {values, Known, {_, _, First, _}, _}) ->
    is_integer(Count) andalso (Now =:= none orelse is_integer(Now)) andalso length(Memory) =:= length(First)
        andalso lists:member(length(Values), [0, length(First)]);
is_past(_, _) -> false.

-doc "A step of values without their formula: the past behind this event, from that in front of it, or from the state there.".
-spec remember(keeper(), witness_event:event(), past() | values()) -> {ok, past()} | unknown().
remember(#{lets := Lets, holds := Holds, words := Words}, Event, {values, Known, Before, _}) ->
    case next(Lets, Holds, Words, Event, Known, Before) of
        {ok, Memory} -> {ok, {values, Known, Memory, none}};
        Unknown -> Unknown
    end.

-doc "The first state of an instance with this past.".
-spec recall(past() | values(), values()) -> values().
recall({values, _, Memory, _}, {values, Known, _, State}) -> {values, Known, Memory, State}.

-doc "The trace has come to this time, by an event that these values have not read.".
-spec put_time(integer(), Values) -> Values when Values :: past() | values().
put_time(Now, {values, Known, {Count, Before, Memory, Values}, State}) when Before =:= none; Before < Now ->
    {values, Known, {Count, Now, Memory, Values}, State};
put_time(_, Values) -> Values.

-doc """
When the past of a key is the same as that of a key that has had no event (`Unkeyed`), for all that can follow: `already`, behind a time, or
not before another event. The trace has come to `Now`.
""".
-spec fades(keeper(), Unkeyed :: past() | unknown() | none, Now :: integer() | none, past()) ->
    already | {behind, integer()} | never.
fades(_, {verdict, _, _}, _, _) -> never;
fades(#{keyed := true}, _, _, _) -> never;
fades(#{lets := Lets}, Unkeyed, Now, {values, _, {Count, _, Memory, _}, _}) ->
    Kinds = [Kind || {Kind, _, _, _} <- Lets],
    {NoCount, _, NoMemory, _} = case Unkeyed of none -> new(Kinds); {values, _, None, _} -> None end,
    Ends = lists:flatmap(fun({Kind, One, No}) ->
        case {left(Kind, Count, Now, One), left(Kind, NoCount, Now, No)} of
            {Left, Left} -> case Count =:= NoCount orelse is_placed(Kind, Left) of true -> []; false -> [never] end;
            {Left, Other} -> [end_of(Kind, Left), end_of(Kind, Other)]
        end
    end, lists:zip3(Kinds, Memory, NoMemory)),
    case Ends of
        [] -> already;
        _ -> case lists:member(never, Ends) of true -> never; false -> {behind, lists:max(Ends)} end
    end.

%% Whether what is left means the same at every place. Events of a window have the numbers of their places.
is_placed(Kind, Left) ->
    case plain(Kind) of
        {_, {events, _}} -> Left =:= first(Kind);
        _ -> true
    end.

%% What of a memory can still be in a window at the next event.
left({each, _, Kind, _}, Count, Now, Several) ->
    Left = fun(One) -> left(Kind, Count, Now, One) end,
    witness_spec_valuation:map({Left, fun(One, Other) -> is_same(Kind, One, Other) end}, Several);
left({Value, {events, Events}}, Count, _, One) -> left_from(Value, Count + 2 - Events, One);
left({Value, {time, Duration}}, _, Now, One) when is_integer(Now) -> left_from(Value, Now - Duration, One);
left(_, _, _, One) -> One.

left_from(Value, From, Last) when Value =:= once; Value =:= since -> if is_integer(Last), Last >= From -> Last; true -> none end;
left_from(Value, From, Window) -> witness_spec_window:drop(From, fun(Earlier, Later) -> combine(Value, Earlier, Later) end, Window).

%% Behind this time nothing of it is left.
end_of({each, _, Kind, _}, Left) -> lists:max([end_of(Kind, One) || One <- witness_spec_valuation:ones(Left)]);
end_of({Value, {time, Duration}}, Left) ->
    case if Value =:= once; Value =:= since -> Left; true -> witness_spec_window:last(Left) end of
        none -> -1 bsl 63;
        Last -> Last + Duration
    end;
end_of(_, _) -> never.

-doc "What `c:witness_monitor:describe/1` says of the formula, with the values of the `let`s that have these names.".
-spec describe(Description, Names :: [binary()], memory()) -> Description when
      Description :: #{formula := binary(), bindings := [{binary(), term()}]}.
describe(Description, _, {0, _, _, _}) -> Description;
describe(#{bindings := Bindings} = Description, Names, {_, _, _, Values}) ->
    Description#{bindings := Bindings ++ [Named || {<<First, _/binary>>, _} = Named <- lists:zip(Names, Values), First =/= $_]}.

size([{Size, _, _, _} | Memory], Total) -> size(Memory, Total + Size);
size([{Others, _, _} = Several | Memory], Total) ->
    Windows = case Others of {_, _, _, _} -> size(witness_spec_valuation:ones(Several), 0); _ -> 0 end,
    size(Memory, Total + witness_spec_valuation:size(Several) + Windows);
size([_ | Memory], Total) -> size(Memory, Total);
size([], Total) -> Total.

%% Both lists are in reverse.
values([{Kind, Conditions, Place, Of} | Lets], [One | Memory], At, {Holds, Known, Event} = Asked, Values, Next) ->
    Here = here(plain(Kind), At, Place),
    try next_value(Kind, Conditions, fun(Condition) -> Holds(Condition, Known, Event, Values) end, Values, Here, One) of
        {Value, Then} -> values(Lets, Memory, At, Asked, [Value | Values], [Then | Next])
    catch
        %% What is summed has no value or is no number, or the sum is too large for a float.
        error:_ -> throw({unknown, argument, Of})
    end;
values([], [], _, _, Values, Next) -> {lists:reverse(Values), lists:reverse(Next)}.

%% No event matches a valuation of something new: what holds for it holds for all others.
next_value({each, Count, Kind, Each}, [First | _] = Conditions, Holds, Values, Here, Several) ->
    Results = fun(Valuation) -> [Holds(erlang:insert_element(1, Valuation, Number)) || Number <- Conditions] end,
    OfOthers = Results(erlang:make_tuple(Count, make_ref())),
    Known = [list_to_tuple([element(Part, Valuation) || Part <- Order])
             || {Place, Order} <- Each, {Shown, _} <- [lists:nth(Place, Values)], Valuation <- maps:keys(Shown)],
    %% Not lists:usort/1: it takes 1 and 1.0 for the same.
    Touched = maps:keys(maps:from_keys(lists:append([Known | Holds({valuations, First})]), [])),
    Step = fun(others, One) -> value(Kind, OfOthers, Here, One);
              (Valuation, One) -> value(Kind, Results(Valuation), Here, One)
           end,
    IsSame = fun(One, Other) -> is_same(Kind, One, Other) end,
    witness_spec_valuation:step(Touched, is_idle(Kind, OfOthers), {Step, IsSame}, Several);
next_value(Kind, Conditions, Holds, _, Here, One) -> value(Kind, [Holds(Number) || Number <- Conditions], Here, One).

%% Whether these results leave any memory and its value as they are.
is_idle({Value, all}, Results) when Value =/= previously -> Results =:= case Value of since -> [true, false]; _ -> [false] end;
is_idle(_, _) -> false.

is_same(_, One, One) -> true;
is_same({Value, _}, {Size, _, _, _} = One, {Size, _, _, _} = Other) ->
    Combine = fun(Earlier, Later) -> combine(Value, Earlier, Later) end,
    witness_spec_window:ends(Combine, One) =:= witness_spec_window:ends(Combine, Other);
is_same(_, _, _) -> false.

%% This place, and the first place of the window.
here({_, {time, _}}, {_, undefined, _}, Place) -> throw({unknown, no_time, Place});
here({_, {time, Duration}}, {_, _, Now}, _) -> {Now, Now - Duration};
here({_, {events, Events}}, {Index, _, _}, _) -> {Index, Index - Events + 1};
here({_, all}, _, _) -> {0, 0}.

value({previously, _}, [Holds], _, Before) -> {Before, Holds};
value({once, _}, [Holds], Here, Last) -> held(true, Holds, Here, Last);
value({since, _}, [While, Holds], Here, Last) -> held(While, Holds, Here, Last);
value({Value, Window}, [Result], {Here, From}, Before) ->
    Combine = fun(Earlier, Later) -> combine(Value, Earlier, Later) end,
    Element = case Result of
        false -> none;
        true -> {some, 1};
        {value, Number} when is_number(Number) -> {some, case Value of mean -> {Number, 1}; _ -> Number end}
    end,
    case Window of
        all ->
            All = case {Before, Element} of
                {_, none} -> Before;
                {none, _} -> Element;
                {{some, Earlier}, {some, Later}} -> {some, Combine(Earlier, Later)}
            end,
            {result(Value, All), All};
        _ ->
            Dropped = witness_spec_window:drop(From, Combine, Before),
            Next = case Element of
                none -> Dropped;
                {some, New} -> witness_spec_window:put(Here, New, Combine, Dropped)
            end,
            {result(Value, witness_spec_window:combined(Combine, Next)), Next}
    end.

held(_, true, {Here, _}, _) -> {true, Here};
held(false, false, _, _) -> {false, none};
held(true, false, {_, From}, Last) when is_integer(Last), Last >= From -> {true, Last};
held(true, false, _, _) -> {false, none}.

combine(min, Earlier, Later) when Later < Earlier -> Later;
combine(max, Earlier, Later) when Later > Earlier -> Later;
combine(Value, Earlier, _) when Value =:= min; Value =:= max -> Earlier;
combine(mean, {Earlier, Count}, {Later, More}) -> {Earlier + Later, Count + More};
combine(_, Earlier, Later) -> Earlier + Later.

result(mean, {some, {Sum, Count}}) -> Sum / Count;
result(_, {some, Result}) -> Result;
result(Value, none) when Value =:= count; Value =:= sum -> 0;
result(_, none) -> none.
