-module(witness_spec_let).
-moduledoc """
What `let`s say of the trace so far: values with names, for guards, patterns and values of a formula
(docs/internals/semantics.md, *Values*).

An action of the formula that uses a `let` binds its value at the event, as if it stood in the pattern. Each action does so anew. So
`name_values/1` gives each of them variables of its own, `_@V@1`, `_@V@2`... for `V`, which the analyses of actions do not see in
patterns. `put_values/1` puts them there, for the monitors: these read events with one more element in front of the time, the values of
all `let`s (`m:witness_spec_value`). `m:witness_spec_let_code` generates what computes them.

A `let` with variables, as `let Asked(User) = once {_ ? {request, User}}`, has a value for each valuation of them. An action binds all of
them, and is about one valuation; or it binds none, and is about all. Its value is `{Values, Others}`: the values that differ from that of
all others, as `{1, Value}`, and that one as `{0, Value}`. So `Asked(U)` is an expression that a guard can compute: of `{1, Value}` or, if
there is none, `false`, and of `{0, Value}` the greater one has the value.
""".

-export([names/1, variables/1, kinds/2, unkeyed/2, about_keys/3, name_values/1, used/1, put_values/1, written/1]).
-export([parameters/1, uses/1, uncalled/1, unasked/1, without_asked/2, binds/2, about_all/1]).
-export_type([definition/0, asked/0]).

-doc """
A `let`. Of `since`, `condition` is what has to hold after `since`. `of`: the expression of a `sum`, `min`, `max` or `mean`, with its place.
A window is a duration in nanoseconds, or the last so many events. `put_values/1` adds what a `let` with variables asks for `each`
valuation.
""".
-type definition() :: #{name := atom(), location := location(), text := binary(), parameters := [{atom(), location()}],
                        each => [asked()],
                        value := previously | once | since | count | sum | min | max | mean,
                        window := all | {time, non_neg_integer()} | {events, pos_integer()},
                        condition := [action(), ...], since => [action(), ...],
                        'of' => {witness_spec_pattern:expr(), location()}}.

-doc "A `let` that is so far in front, and the places of the variables in its own valuations.".
-type asked() :: {pos_integer(), [pos_integer()]}.

-type location() :: witness_spec_diagnostic:location().
-type action() :: witness_spec_action:action().
-type property() :: witness_spec_parse:property().

-doc "Their names.".
-spec names([definition()]) -> ordsets:ordset(atom()).
names(Lets) -> ordsets:from_list([Name || #{name := Name} <- Lets]).

-doc "The variables in their conditions and expressions.".
-spec variables([definition()]) -> ordsets:ordset(atom()).
variables(Lets) ->
    Conditions = witness_spec_parse:let_actions(Lets),
    witness_spec_pattern:variables([[Pattern | Guard] || #{pattern := Pattern, guard := Guard} <- Conditions]
                                   ++ [Expr || #{'of' := {Expr, _}} <- Lets]).

-doc "The actions of `over` that bind no variable of `per`.".
-spec unkeyed(Over, Per :: [atom()]) -> Over when Over :: [action()].
unkeyed(Over, Per) ->
    Keys = ordsets:from_list(Per),
    [Action || #{pattern := Pattern} = Action <- Over, ordsets:is_disjoint(Keys, witness_spec_pattern:variables(Pattern))].

-doc """
The conditions in which variables of `per` occur, with these, that may match events without a key: those that come later do not know whether
they held. `Scope` are the variables of the signature and of `per`.
""".
-spec about_keys([definition()], {Over :: all | [action()], Per :: [atom()]}, Scope :: ordsets:ordset(atom())) ->
    [{action(), ordsets:ordset(atom())}].
about_keys(_, {_, []}, _) -> [];
about_keys(Lets, {Over, Per}, Scope) ->
    Keys = ordsets:from_list(Per),
    Unkeyed = [witness_spec_overlap:own(Action, Scope) || Action <- unkeyed(Over, Per)],
    [{Condition, Used} || Let <- Lets, Of <- [[Expr || {Expr, _} <- [maps:get('of', Let, none)]]],
                          #{pattern := Pattern, guard := Guard} = Condition <- witness_spec_parse:let_actions([Let]),
                          Used <- [ordsets:intersection(Keys, witness_spec_pattern:variables([Pattern, Guard, Of]))], Used =/= [],
                          may_match(Condition, Unkeyed, Scope)].

may_match(#{kind := test}, Events, _) -> Events =/= [];
may_match(Condition, Events, Scope) ->
    not lists:all(fun(Event) -> witness_spec_overlap:disjoint(Event, Condition, Scope) end, Events).

-doc "The variables of a `let`.".
-spec parameters(definition()) -> [atom()].
parameters(#{parameters := Parameters}) -> [Name || {Name, _} <- Parameters].

-doc "Whether an action binds all variables of a `let`.".
-spec binds(action(), definition()) -> boolean().
binds(#{pattern := Pattern}, Let) ->
    ordsets:is_subset(ordsets:from_list(parameters(Let)), witness_spec_pattern:variables(Pattern)).

-doc "What a `let` with variables computes for all valuations.".
-spec about_all(definition()) -> [witness_spec_pattern:expr()].
about_all(Let) ->
    Others = [Action || Action <- witness_spec_parse:let_actions([Let]), not binds(Action, Let)],
    lists:append([Guard || #{guard := Guard} <- Others]) ++ [Expr || #{'of' := {Expr, _}} <- [Let], Others =/= []].

-doc "Expressions without the uses of other `let`s for all variables of this one.".
-spec without_asked(Exprs, definition()) -> Exprs when Exprs :: term().
without_asked(Exprs, Let) ->
    change_uses(fun(Anno, Other, Arguments) ->
        case asked(Arguments, parameters(Let)) of
            {each, _} -> {nil, Anno};
            no -> {call, Anno, Other, Arguments}
        end
    end, Exprs).

%% The places of the variables in these arguments, if they are these variables.
asked(Arguments, Parameters) ->
    Names = [Name || {var, _, Name} <- Arguments],
    case length(Names) =:= length(Arguments) andalso lists:sort(Names) =:= lists:sort(Parameters) of
        true -> {each, [Place || Parameter <- Parameters, {Place, Name} <- lists:enumerate(Names), Name =:= Parameter]};
        false -> no
    end.

-doc "The uses of names in a part of a property: how many arguments each has, 0 without parentheses.".
-spec uses(term()) -> [{atom(), arity(), location()}].
uses({call, Anno, {var, _, Name}, Arguments}) -> [{Name, length(Arguments), place(Anno)} | uses(Arguments)];
uses({var, _, '_'}) -> [];
uses({var, Anno, Name}) -> [{Name, 0, place(Anno)}];
uses(Tuple) when is_tuple(Tuple) -> uses(tuple_to_list(Tuple));
uses([Head | Tail]) -> uses(Head) ++ uses(Tail);
uses(Map) when is_map(Map) -> uses(maps:values(Map));
uses(_) -> [].

place(Anno) -> {erl_anno:line(Anno), erl_anno:column(Anno)}.

-doc "Expressions in which `let`s with arguments are these arguments.".
-spec uncalled(Exprs) -> Exprs when Exprs :: term().
uncalled(Exprs) -> change_uses(fun(Anno, _, Arguments) -> {tuple, Anno, Arguments} end, Exprs).

-doc "Expressions in which `let`s have no arguments.".
-spec unasked(Exprs) -> Exprs when Exprs :: term().
unasked(Exprs) -> change_uses(fun(_, Let, _) -> Let end, Exprs).

change_uses(Change, Exprs) ->
    witness_spec_abstract:rewrite(fun
        ({call, Anno, {var, _, _} = Let, Arguments}) -> {done, Change(Anno, Let, change_uses(Change, Arguments))};
        (_) -> inside
    end, Exprs).

-doc "The kinds of values that `let`s have, and the variables for them in these actions (`m:witness_spec_guard`).".
-spec kinds([definition()], [action()]) -> #{atom() => [atom | float | integer]}.
kinds(Lets, Actions) ->
    Kinds = [kinds_of(Value) || #{value := Value} <- Lets],
    Named = [lists:zip(Values, Kinds) || #{values := Values} <- Actions],
    maps:without(['_'], maps:from_list(lists:append([lists:zip([Name || #{name := Name} <- Lets], Kinds) | Named]))).

kinds_of(Value) when Value =:= previously; Value =:= once; Value =:= since -> [atom];
kinds_of(count) -> [integer];
kinds_of(sum) -> [float, integer];
kinds_of(mean) -> [atom, float];
kinds_of(_) -> [atom, float, integer].

-doc """
The properties with a variable for each use of a `let` in the formula: the actions have, as `values`, those for their event, in the order
of the `let`s, and `_` for one that is not used there.
""".
-spec name_values([property()]) -> [property()].
name_values(Properties) -> [name_values_of(Property) || Property <- Properties].

name_values_of(#{lets := [_ | _] = Lets, formula := Formula} = Property) ->
    {Named, _} = name([Name || #{name := Name} <- Lets], Formula, #{}, 1),
    Property#{formula := Named};
name_values_of(Property) -> Property.

%% `Names` are the variables for the values at the last event, `Number` that of the next action.
name(_, {Constant, _} = Formula, _, Number) when Constant =:= tt; Constant =:= ff -> {Formula, Number};
name(_, {var, Meta, Variable, Values}, Names, Number) -> {{var, Meta, Variable, rename(Values, Names)}, Number};
name(Lets, {Modality, Meta, #{pattern := Pattern, guard := Guard} = Action, Formula}, _, Number) when
        Modality =:= box; Modality =:= dia ->
    Used = ordsets:union(witness_spec_pattern:variables([Pattern | Guard]), used_before(Formula)),
    Names = #{Name => variable(Name, Number) || Name <- Lets, ordsets:is_element(Name, Used)},
    {Behind, Next} = name(Lets, Formula, Names, Number + 1),
    {{Modality, Meta, Action#{pattern := rename(Pattern, Names), guard := rename(Guard, Names),
                              values => [maps:get(Name, Names, '_') || Name <- Lets]}, Behind}, Next};
name(Lets, {Fixpoint, Meta, Variable, Parameters, Formula}, Names, Number) ->
    {Inner, Next} = name(Lets, Formula, Names, Number),
    {{Fixpoint, Meta, Variable, [{Name, Place, rename(Value, Names)} || {Name, Place, Value} <- Parameters], Inner}, Next};
name(Lets, {Operator, Meta, Formulas}, Names, Number) ->
    {Inner, Next} = lists:mapfoldl(fun(Formula, Now) -> name(Lets, Formula, Names, Now) end, Number, Formulas),
    {{Operator, Meta, Inner}, Next}.

%% The variables of the values that are computed in a formula before its next event.
used_before({var, _, _, Values}) -> witness_spec_pattern:variables(Values);
used_before({Modality, _, _, _}) when Modality =:= box; Modality =:= dia -> [];
used_before({_, _, _, Parameters, Formula}) ->
    ordsets:union(witness_spec_pattern:variables([Value || {_, _, Value} <- Parameters]), used_before(Formula));
used_before({_, _, Formulas}) -> ordsets:union([used_before(Formula) || Formula <- Formulas]);
used_before(_) -> [].

variable(Name, Number) -> list_to_atom("_@" ++ atom_to_list(Name) ++ "@" ++ integer_to_list(Number)).

rename(Expr, Names) ->
    witness_spec_abstract:rewrite(fun({var, Anno, Name}) when is_map_key(Name, Names) -> {done, {var, Anno, map_get(Name, Names)}};
                                     (_) -> inside
                                  end, Expr).

-doc "How the author wrote a variable; a variable for the value of a `let` has the name of that.".
-spec written(atom()) -> string().
written(Name) ->
    case atom_to_list(Name) of
        [$_, $@, First | _] = Added when First < $0; First > $9 ->
            case string:split(tl(tl(Added)), "@", trailing) of
                [Let, [_ | _]] when is_list(Let) -> Let;
                _ -> Added
            end;
        Written -> Written
    end.

-doc "The names of the `let`s that the actions of the formula use (`name_values/1`).".
-spec used([action()]) -> ordsets:ordset(string()).
used(Actions) ->
    ordsets:from_list([written(Variable) || #{values := Values} <- Actions, Variable <- Values, Variable =/= '_']).

-doc """
The properties with the values of `let`s in the patterns of their formulas: a tuple in front of the time. For an `else` that needs some,
it is the whole pattern.
""".
-spec put_values([property()]) -> [property()].
put_values(Properties) -> [put_values_of(Property) || Property <- Properties].

put_values_of(#{lets := [_ | _] = Lets, formula := Formula} = Property) ->
    Put = fun(Action, none, none) -> {put_in(Action, Lets), none, none} end,
    {Valued, none} = witness_spec_parse:actions(Put, none, none, Formula),
    {Defined, _} = lists:mapfoldl(fun(#{name := Name} = Let, Before) ->
        Each = [{Place, Order} || {call, _, {var, _, Other}, Arguments} <- calls(about_all(Let)),
                                  {each, Order} <- [asked(Arguments, parameters(Let))],
                                  {Place, Earlier} <- lists:enumerate(Before), Earlier =:= Other],
        {computed(Let#{each => lists:uniq(Each)}), [Name | Before]}
    end, [], Lets),
    Property#{lets := Defined, formula := computed(Valued)};
put_values_of(Property) -> Property.

calls({call, _, {var, _, _}, Arguments} = Call) -> [Call | calls(Arguments)];
calls(Tuple) when is_tuple(Tuple) -> calls(tuple_to_list(Tuple));
calls([Head | Tail]) -> calls(Head) ++ calls(Tail);
calls(_) -> [].

computed(Part) ->
    change_uses(fun(Anno, Let, Arguments) ->
        Call = fun(Name, Of) -> {call, Anno, {atom, Anno, Name}, Of} end,
        Element = fun(Place, Of) -> Call(element, [{integer, Anno, Place}, Of]) end,
        Asked = [{tuple, Anno, Arguments}, Element(1, Let)],
        Element(2, Call(max, [{op, Anno, 'andalso', Call(is_map_key, Asked), Call(map_get, Asked)}, Element(2, Let)]))
    end, Part).

put_in(#{pattern := Pattern, guard := Guard, values := Values} = Action, Lets) ->
    Anno = element(2, Pattern),
    Known = {tuple, Anno, [{var, Anno, Name} || Name <- Values]},
    Action#{each => [Name || {Name, #{parameters := [_ | _]}} <- lists:zip(Values, Lets)],
            shown => [{as_written(Call), Call} || Call <- lists:uniq(calls(Guard)), is_plain(Call)], pattern := case Pattern of
        {tuple, _, Elements} ->
            {Data, [Time]} = lists:split(length(Elements) - 1, Elements),
            {tuple, Anno, Data ++ [Known, Time]};
        {var, _, '_'} ->
            case lists:all(fun(Name) -> Name =:= '_' end, Values) of
                true -> Pattern;
                false -> Known
            end
    end}.

%% What an explanation shows.
is_plain({call, _, _, Arguments}) ->
    lists:all(fun(Argument) -> lists:member(element(1, Argument), [var, atom, integer]) end, Arguments).

as_written({call, _, {var, _, Let}, Arguments}) ->
    iolist_to_binary([written(Let), "(", lists:join(", ", [case Argument of
        {var, _, Name} -> written(Name);
        {_, _, Literal} -> io_lib:format("~tw", [Literal])
    end || Argument <- Arguments]), ")"]).
