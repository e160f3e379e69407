-module(witness_spec_oracle_values).
-moduledoc """
The values of `let`s, written from the section *Values* of docs/internals/semantics.md alone. Each value is computed by its
definition from all places up to its own. Nothing is kept from one place to the next.
""".

-export([places/3, of_none/1, actions/1]).
-export_type([values/0, value/0, window/0, condition/0]).

-doc "The `let`s of a property, in their order.".
-type values() :: [{Name :: atom(), value()}].
-type value() :: single() | {each, Variables :: [atom(), ...], single()}.
-type single() :: {previously, condition()} | {once | count, window(), condition()}
    | {since, window(), Holds :: condition(), Since :: condition()}
    | {sum | min | max | mean, window(), witness_spec_oracle:expr(), condition()}.
-type window() :: none | {time, Nanoseconds :: non_neg_integer()} | {events, pos_integer()}.
-type condition() :: {actions, [witness_spec_oracle:action()]} | {test, witness_spec_oracle:expr()}.

-doc """
An event with what is known at it: `'@latest'`, the greatest time of the projected trace so far, and `'@missing'`, the variables of `per` in
front of the first event of a key.
""".
-type place() :: {witness_spec_oracle:asked(), Known :: witness_spec_oracle:env()}.

-doc """
The values at each place of the events of a key. From the first place on where a value is not known, the result is the possible reasons
there. `Env` are the values of the signature and of `per`.
""".
-spec places(values(), [place()], witness_spec_oracle:env()) ->
    [witness_spec_oracle:env() | {failed, [no_time | argument]}].
places(Values, Trace, Env) ->
    _ = [erase(Key) || {?MODULE, _, _} = Key <- get_keys()],
    Places = lists:foldl(fun({Name, Value}, Before) ->
        [{Event, case value_at(Value, I, Before, Values) of
             {failed, Reasons} -> Known#{'@failed' => lists:usort(Reasons ++ maps:get('@failed', Known, []))};
             Term -> Known#{Name => Term}
         end} || {I, {Event, Known}} <- lists:enumerate(Before)]
    end, [{Event, maps:merge(Env, Known)} || {Event, Known} <- Trace], Values),
    Names = [Name || {Name, _} <- Values],
    until_failed([case Known of
                      #{'@failed' := Reasons} -> {failed, Reasons};
                      _ -> maps:with(Names, Known)
                  end || {_, Known} <- Places]).

until_failed([{failed, Reasons} | Places]) -> [{failed, Reasons} || _ <- [first | Places]];
until_failed([Values | Places]) -> [Values | until_failed(Places)];
until_failed([]) -> [].

-doc "What the value would be at no place.".
-spec of_none(value()) -> term().
of_none({each, _, Value}) -> fun(_) -> of_none(Value) end;
of_none(Value) when element(1, Value) =:= count; element(1, Value) =:= sum -> 0;
of_none({Kind, _, _, _}) when Kind =/= since -> none;
of_none(_) -> false.

-doc "The actions of all conditions.".
-spec actions(values()) -> [witness_spec_oracle:action()].
actions(Values) ->
    [Action || {_, Value} <- Values, Action <- actions_of(Value)].

actions_of({each, _, Value}) -> actions_of(Value);
actions_of(Value) -> [Action || {actions, Actions} <- tuple_to_list(Value), Action <- Actions].

%% V(i), or the function of the terms of its variables. A valuation of which the value is not known is one that some action has
%% bound, or is as one that none has bound.
value_at({each, Names, Value}, I, Places, Values) ->
    Id = make_ref(),
    Of = fun(Terms) -> once_only({?MODULE, Id, Terms}, fun() -> value(Value, I, with(Names, Terms, Places)) end) end,
    %% Only of expressions the values may fail for some valuations.
    Bound = [[map_get(X, Env) || X <- Several]
             || tuple_size(Value) =:= 4, element(1, Value) =/= since,
                {_, {each, Several, _} = Other} <- Values, length(Several) =:= length(Names), Action <- actions_of(Other),
                Several -- witness_spec_oracle:variables(element(2, Action)) =:= [],
                {Event, Known} <- lists:sublist(Places, I),
                {ok, Env} <- [witness_spec_oracle:match(without_guard(Action), Event, Known)]],
    case [Failed || Terms <- [[make_ref() || _ <- Names]] ++ Bound ++ [lists:reverse(Terms) || Terms <- Bound],
                    {failed, _} = Failed <- [Of(Terms)]] of
        [] -> Of;
        All -> {failed, lists:append([Reasons || {failed, Reasons} <- All])}
    end;
value_at(Value, I, Places, _) -> value(Value, I, Places).

%% Values ask others many times for the same terms.
once_only(Key, Compute) ->
    case get(Key) of
        {known, Value} -> Value;
        undefined ->
            Value = Compute(),
            put(Key, {known, Value}),
            Value
    end.

without_guard({Kind, Patterns, _}) -> {Kind, Patterns, []}.

with(Names, Terms, Places) -> [{Event, maps:merge(Known, maps:from_list(lists:zip(Names, Terms)))} || {Event, Known} <- Places].

-spec value(single(), pos_integer(), [place()]) -> term() | {failed, [no_time | argument]}.
value({previously, C}, I, Places) -> I > 1 andalso holds(C, [], I - 1, Places);
value(Value, I, Places) ->
    Window = element(2, Value),
    Untimed = [J || J <- upto(I), time(J, Places) =:= undefined],
    case {Window, Untimed} of
        {{time, _}, [_ | _]} ->
            %% What else is not known at this place may be told as well.
            {failed, [no_time | case value(Value, [I], I, Places) of {failed, More} -> More; _ -> [] end]};
        _ -> value(Value, [J || J <- upto(I), is_in(Window, J, I, Places)], I, Places)
    end.

value({once, _, C}, Window, _, Places) -> lists:any(fun(J) -> holds(C, [], J, Places) end, Window);
value({since, _, C, D}, Window, I, Places) ->
    lists:any(fun(J) ->
        holds(D, [], J, Places) andalso lists:all(fun(K) -> holds(C, [], K, Places) end, lists:seq(J + 1, I))
    end, Window);
value({count, _, C}, Window, _, Places) -> length([J || J <- Window, holds(C, [], J, Places)]);
value({Kind, _, Expr, C}, Window, _, Places) ->
    Results = [witness_spec_oracle:value(Expr, bound(C, J, Places)) || J <- Window, holds(C, [Expr], J, Places)],
    case lists:all(fun({ok, Term}) -> is_number(Term); (error) -> false end, Results) of
        true -> of_numbers(Kind, [Term || {ok, Term} <- Results]);
        false -> {failed, [argument]}
    end.

%% Numbers are added from the first to the last. Of equal ones, as 1 and 1.0, the first one is the least and the greatest. What is
%% too large for a float is not known.
of_numbers(sum, []) -> 0;
of_numbers(_, []) -> none;
of_numbers(min, Numbers) -> lists:min(Numbers);
of_numbers(max, Numbers) -> lists:max(Numbers);
of_numbers(Sum, [First | Others]) ->
    try
        Added = lists:foldl(fun(Number, Before) -> Before + Number end, First, Others),
        case Sum of sum -> Added; mean -> Added / (1 + length(Others)) end
    catch
        error:badarith -> {failed, [argument]}
    end.

%% Windows.
is_in(none, _, _, _) -> true;
is_in({time, Length}, J, I, Places) -> known('@latest', I, Places) - known('@latest', J, Places) =< Length;
is_in({events, N}, J, I, _) -> I - J < N.

time(J, Places) ->
    {Event, _} = lists:nth(J, Places),
    witness_spec_oracle:ts(Event).

known(Key, J, Places) ->
    {_, Known} = lists:nth(J, Places),
    map_get(Key, Known).

upto(I) -> lists:seq(1, I).

%% Conditions, with the expression of which they are the condition.
holds({test, Expr}, Of, J, Places) ->
    {_, Known} = lists:nth(J, Places),
    not is_missing([Expr, Of], J, Places) andalso witness_spec_oracle:value(Expr, Known) =:= {ok, true};
holds({actions, Actions}, Of, J, Places) ->
    not is_missing(Of, J, Places) andalso matching(Actions, J, Places) =/= [].

%% Whether something has a variable of `per` that has no value yet.
is_missing(Term, J, Places) ->
    Used = witness_spec_oracle:variables(Term),
    lists:any(fun(X) -> lists:member(X, Used) end, known('@missing', J, Places)).

%% What is known where the condition holds.
bound({test, _}, J, Places) ->
    {_, Known} = lists:nth(J, Places),
    Known;
bound({actions, Actions}, J, Places) -> hd(matching(Actions, J, Places)).

matching(Actions, J, Places) ->
    {Event, Known} = lists:nth(J, Places),
    [Bound || Action <- Actions, not is_missing(Action, J, Places),
              {ok, Bound} <- [witness_spec_oracle:match(Action, Event, Known)]].
