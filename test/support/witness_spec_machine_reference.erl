-module(witness_spec_machine_reference).
-moduledoc """
What a machine says of a whole finite trace: it goes from event to event with its state, its data, and the time at which it entered the state.

It shares no code with `m:witness_spec_machine_core` and knows no formula. Actions, guards and values are terms of its own.
""".

-export([judge/3, is_read/3, has_key/3, variables/1]).
-export_type([machine/0, action/0, event/0]).

-type machine() :: #{data := [{atom(), value()}], states := [state(), ...]}.
-type state() :: {Name :: atom(), Hot :: false | true | non_neg_integer(), [transition()]}.
-type transition() :: {action() | 'else', target(), [{atom(), value()}]}.
-type target() :: {state, atom()} | stay | violated | satisfied.
-doc "A kind of message, its three parts, and alternatives of tests.".
-type action() :: {recv | send | cast, [part()], [[test()]]}.
-type part() :: '_' | {var, atom()} | {lit, term()}.
-type test() :: {'<' | '>=' | '=:=' | '=/=', value(), value()}.
-type value() :: {var, atom()} | {lit, term()} | {'+' | max, value(), value()}.
-type event() :: {recv | send | cast, Message :: tuple()}.

-doc """
The events that violate it, one after the other: behind each the machine begins anew, with this event if a deadline had passed before it.
The last one is `yes` or `no` at the complete end, or `none` if nothing has begun again. Without `per` the first violation is the last.
""".
-spec judge(machine(), Per :: #{atom() => term()}, [{pos_integer(), event(), Time :: integer()}]) ->
    [{no, pos_integer()} | yes | no | none].
judge(Machine, Per, Trace) ->
    case begin_at(Machine, Per, Trace) of
        [] when map_size(Per) > 0 -> [none];
        Own ->
            case run(start(Machine), Own, Machine, Per) of
                {no, I, Rest} when map_size(Per) > 0 -> [{no, I} | judge(Machine, Per, Rest)];
                {no, I, _} -> [{no, I}];
                Verdict -> [Verdict]
            end
    end.

%% A machine of a value begins with an event that has this value.
begin_at(Machine, Per, Trace) when map_size(Per) > 0 ->
    lists:dropwhile(fun({_, Event, _}) -> not has_key(Machine, Per, Event) end, Trace);
begin_at(_, _, Trace) -> Trace.

start(#{data := Data, states := [{First, _, _} | _]}) ->
    {First, lists:foldl(fun({Name, Value}, Known) -> Known#{Name => value(Value, Known)} end, #{}, Data), start}.

run({Name, Data, start}, [{_, _, Time} | _] = Trace, Machine, Per) -> run({Name, Data, Time}, Trace, Machine, Per);
run({Name, Data, Since}, [{I, Event, Time} | Rest] = Trace, #{states := States} = Machine, Per) ->
    {Name, Hot, Transitions} = lists:keyfind(Name, 1, States),
    case is_integer(Hot) andalso Time - Since > Hot of
        true -> {no, I, Trace};
        false ->
            case first(Transitions, Event, maps:merge(Per, Data)) of
                none -> run({Name, Data, Since}, Rest, Machine, Per);
                {violated, _, _} -> {no, I, Rest};
                {satisfied, _, _} -> yes;
                {stay, Updates, Bound} -> run({Name, updated(Data, Updates, Bound), Since}, Rest, Machine, Per);
                {{state, Next}, Updates, Bound} -> run({Next, updated(Data, Updates, Bound), Time}, Rest, Machine, Per)
            end
    end;
run({Name, _, _}, [], #{states := States}, _) ->
    case lists:keyfind(Name, 1, States) of
        {_, false, _} -> yes;
        _ -> no
    end.

updated(Data, Updates, Bound) -> maps:merge(Data, #{Name => value(Value, Bound) || {Name, Value} <- Updates}).

first([{'else', Target, Updates} | _], _, Known) -> {Target, Updates, Known};
first([{Action, Target, Updates} | Others], Event, Known) ->
    case match(Action, Event, Known) of
        no -> first(Others, Event, Known);
        Bound -> {Target, Updates, Bound}
    end;
first([], _, _) -> none.

-doc "Whether some action describes the event: data may be anything, and guards that need more than the action count for nothing.".
-spec is_read(machine(), [atom()], event()) -> boolean().
is_read(Machine, Known, Event) -> lists:any(fun(Action) -> open(Action, Machine, Known, #{}, Event) end, actions(Machine)).

-doc "Whether an action with all variables of `per` describes the event with these values.".
-spec has_key(machine(), Per :: #{atom() => term()}, event()) -> boolean().
has_key(Machine, Per, Event) ->
    Keys = maps:keys(Per),
    lists:any(fun(Action) ->
        Keys -- variables(Action) =:= [] andalso open(Action, Machine, Keys, Per, Event)
    end, actions(Machine)).

open({Kind, Parts, Guard}, #{data := Data}, Known, Per, Event) ->
    Open = [case lists:member(Part, [{var, Name} || {Name, _} <- Data]) of true -> '_'; false -> Part end || Part <- Parts],
    Needed = [Name || Tests <- Guard, {_, One, Other} <- Tests, Value <- [One, Other], Name <- names(Value)],
    Tests = case lists:usort(Needed) -- ([Name || {var, Name} <- Open] ++ Known) of [] -> Guard; _ -> [] end,
    match({Kind, Open, Tests}, Event, Per) =/= no.

names({var, Name}) -> [Name];
names({lit, _}) -> [];
names({_, One, Other}) -> names(One) ++ names(Other).

actions(#{states := States}) -> [Action || {_, _, Transitions} <- States, {{_, _, _} = Action, _, _} <- Transitions].

-doc "The variables in the pattern of an action.".
-spec variables(action()) -> [atom()].
variables({_, Parts, _}) -> lists:usort([Name || {var, Name} <- Parts]).

match({Kind, Parts, Guard}, {Kind, Message}, Known) ->
    case parts(Parts, tuple_to_list(Message), Known) of
        no -> no;
        Bound ->
            case Guard =:= [] orelse lists:any(fun(Tests) -> lists:all(fun(Test) -> holds(Test, Bound) end, Tests) end, Guard) of
                true -> Bound;
                false -> no
            end
    end;
match(_, _, _) -> no.

parts(['_' | Parts], [_ | Values], Known) -> parts(Parts, Values, Known);
parts([{lit, Term} | Parts], [Term | Values], Known) -> parts(Parts, Values, Known);
parts([{var, Name} | Parts], [Value | Values], Known) ->
    case Known of
        #{Name := Value} -> parts(Parts, Values, Known);
        #{Name := _} -> no;
        #{} -> parts(Parts, Values, Known#{Name => Value})
    end;
parts([], [], Known) -> Known;
parts(_, _, _) -> no.

holds({Operator, One, Other}, Bound) -> erlang:Operator(value(One, Bound), value(Other, Bound)).

value({var, Name}, Bound) -> map_get(Name, Bound);
value({lit, Term}, _) -> Term;
value({'+', One, Other}, Bound) -> value(One, Bound) + value(Other, Bound);
value({max, One, Other}, Bound) -> max(value(One, Bound), value(Other, Bound)).
