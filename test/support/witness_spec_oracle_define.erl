-module(witness_spec_oracle_define).
-moduledoc """
Writes a property with definitions: parts of its formula and its actions get names, what they have in common with what is around them
becomes parameters, and what they bind gets other names, often those of variables around. So the text means the same property, which
the evaluator reads without any definition.

A use is `{use, Name, Arguments}` in place of a formula, and `{use, Name, Arguments, Time, Guard}` in place of an action.
""".

-export([written/2]).
-export_type([definition/0, formula/0, action/0]).

-type definition() :: {define | action, atom(), Parameters :: [atom()], formula() | action()}.
-doc "A formula with uses.".
-type formula() :: term().
-doc "An action, or a use of one.".
-type action() :: term().

-define(NAMES, ['A', 'B', 'C', 'D', 'S', 'N', 'M', 'P', 'Q', 'X', 'Event', 'T']).
-define(LOOPS, ['X', 'Y', 'Z', 'A', 'W', 'V']).
-define(MORE, ['P1', 'P2', 'P3', 'P4', 'P5', 'P6', 'P7', 'P8', 'P9', 'P10', 'P11', 'P12', 'P13', 'P14', 'P15', 'P16']).

-doc """
The definitions, and the `over`, the `let`s and the formula that use them. `Prefix` begins the names of the definitions.
""".
-spec written(witness_spec_oracle:property(), string()) -> {[definition()], all | [action()], Values :: term(), formula()}.
written(#{over := Over, formula := Formula, per := Per, signatures := Signatures} = Property, Prefix) ->
    Shared = case [witness_spec_oracle:variables(Pattern) || {Pattern, _} <- Signatures] of
        [] -> [];
        [First | Others] -> lists:foldl(fun(Names, Acc) -> [N || N <- Acc, lists:member(N, Names)] end, First, Others)
    end,
    {Seen, After} = case Over of
        all -> {all, {Prefix, 1, []}};
        _ -> lists:mapfoldl(fun
                 ({'begin', Action}, State) ->
                     {Some, Next} = action(Action, Shared, Per, State),
                     {{'begin', Some}, Next};
                 (Action, State) -> action(Action, Shared, Per, State)
             end, {Prefix, 1, []}, Over)
    end,
    {Values, {Scope, Then}} = lists:mapfoldl(fun({Name, Value}, {Known, State}) ->
        {Some, Next} = value(Value, Known, State),
        {{Name, Some}, {[Name | Known], Next}}
    end, {Shared ++ Per, After}, maps:get(values, Property, [])),
    {Written, {_, _, Definitions}} = formula(Formula, Scope, Then),
    {shuffled(Definitions), Seen, Values, Written}.

value({each, Names, Value}, Scope, State) ->
    {Some, After} = value(Value, Names ++ Scope, State),
    {{each, Names, Some}, After};
value(Value, Scope, State) ->
    Needed = names([Part || Part <- tl(tuple_to_list(Value)), element(1, Part) =/= actions]),
    {Parts, After} = lists:mapfoldl(fun
        ({actions, Actions}, Now) ->
            {Some, Next} = lists:mapfoldl(fun(Action, One) -> action(Action, Scope, Needed, One) end, Now, Actions),
            {{actions, Some}, Next};
        (Part, Now) -> {Part, Now}
    end, State, tl(tuple_to_list(Value))),
    {list_to_tuple([element(1, Value) | Parts]), After}.

chance(Percent) -> rand:uniform(100) =< Percent.
shuffled(List) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- List])].

add(Kind, Parameters, Body, {Prefix, N, Definitions}) ->
    Name = list_to_atom(Prefix ++ "_" ++ integer_to_list(N)),
    {Name, {Prefix, N + 1, [{Kind, Name, Parameters, Body} | Definitions]}}.

%% Formulas, from the inside.
formula(Formula, Scope, State) ->
    {Written, Next} = inside(Formula, Scope, State),
    case is_tuple(Formula) andalso element(1, Formula) =/= rec andalso chance(18) of
        true -> defined(Written, Scope, Next);
        false -> {Written, Next}
    end.

inside({Op, Formulas}, Scope, State) ->
    {Written, After} = lists:mapfoldl(fun(F, Now) -> formula(F, Scope, Now) end, State, Formulas),
    {{Op, Written}, After};
inside({Fix, X, Parameters, F}, Scope, State) when Fix =:= max; Fix =:= min ->
    {Written, After} = formula(F, [Name || {Name, _} <- Parameters] ++ Scope, State),
    {{Fix, X, Parameters, Written}, After};
inside({Timed, Length, F}, Scope, State) when Timed =:= within; Timed =:= during ->
    {Written, After} = formula(F, Scope, State),
    {{Timed, Length, Written}, After};
inside({Modality, {_, Patterns, _} = Action, F}, Scope, State) when Modality =:= box; Modality =:= dia ->
    {Written, Next} = formula(F, witness_spec_oracle:variables(Patterns) ++ Scope, State),
    {Used, After} = action(Action, Scope, names(F), Next),
    {{Modality, Used, Written}, After};
inside(F, _, State) -> {F, State}.

defined(Formula, Scope, State) ->
    Free = lists:usort(free(Formula, Scope, [])),
    case lists:member(bound, Free) of
        true -> {Formula, State};
        false ->
            Parts = [Part || Part <- Free, element(1, Part) =:= rec orelse chance(60)],
            Constants = [C || C <- [tt, ff], chance(25), has(C, Formula)],
            Literals = [{lit, T} || T <- lists:sublist(shuffled([0, 1, 2, a, b, ok]), 2), chance(40), has({lit, T}, Formula)],
            Names = names(Formula),
            Outer = [N || N <- Names, lists:member(N, Scope)],
            Loops = loops(Formula),
            Fresh = fresh(length(Names) + length(Parts) + length(Constants) + length(Literals), Scope),
            {ForNames, Rest} = lists:split(length(Names), Fresh),
            ForOthers = lists:zip(Parts ++ Constants ++ Literals, Rest),
            Data = maps:from_list(lists:zip(Names, ForNames)),
            Parameters = [map_get(N, Data) || N <- Outer] ++ Rest,
            Free2 = [X || X <- shuffled(?LOOPS) ++ ?MORE, not lists:member(X, Parameters)],
            Renaming = #{data => Data, loops => maps:from_list(lists:zip(Loops, lists:sublist(Free2, length(Loops)))),
                         others => maps:from_list(ForOthers)},
            Body = renamed(Formula, [], Renaming),
            Pairs = shuffled(lists:zip(Parameters, [{var, N} || N <- Outer] ++ Parts ++ Constants ++ Literals)),
            {Name, After} = add(define, [P || {P, _} <- Pairs], Body, State),
            {{use, Name, [Argument || {_, Argument} <- Pairs]}, After}
    end.

%% Names that are often those around.
fresh(N, Scope) ->
    Names = lists:foldl(fun(Name, Acc) -> case lists:member(Name, Acc) of true -> Acc; false -> [Name | Acc] end end, [],
                        shuffled(Scope ++ ?NAMES)),
    lists:sublist(shuffled(Names) ++ ?MORE ++ [list_to_atom("R" ++ integer_to_list(I)) || I <- lists:seq(1, 40)], N).

%% What goes on outside of the formula: recursion variables with values, and uses that know nothing of the inside. `bound` if such a
%% variable has a value that is known inside only.
free({rec, X, Values}, Scope, Bound) ->
    case {lists:member(X, Bound), names(Values) -- Scope} of
        {true, _} -> [];
        {false, []} -> [{rec, X, Values}];
        {false, _} -> [bound]
    end;
free({use, _, Arguments} = Use, Scope, Bound) ->
    Inside = lists:append([free(A, Scope, Bound) || A <- Arguments]),
    [Use || names(Arguments) -- Scope =:= [], not lists:any(fun(X) -> lists:member(X, Bound) end, called(Arguments))] ++ Inside;
free({Fix, X, _, F}, Scope, Bound) when Fix =:= max; Fix =:= min -> free(F, Scope, [X | Bound]);
free({_, Formulas}, Scope, Bound) when is_list(Formulas) -> lists:append([free(F, Scope, Bound) || F <- Formulas]);
free({_, _, F}, Scope, Bound) -> free(F, Scope, Bound);
free(_, _, _) -> [].

called({rec, X, _}) -> [X];
called(Tuple) when is_tuple(Tuple) -> called(tuple_to_list(Tuple));
called([Head | Tail]) -> called(Head) ++ called(Tail);
called(_) -> [].

has(Part, Part) -> true;
has(_, {lit, _}) -> false;
has(Part, Tuple) when is_tuple(Tuple) -> lists:any(fun(One) -> has(Part, One) end, tl(tuple_to_list(Tuple)));
has(Part, [Head | Tail]) -> has(Part, Head) orelse has(Part, Tail);
has(_, _) -> false.

%% All variables for data.
names(Formula) -> lists:usort(named(Formula)).

named({var, X}) -> [X];
named({lit, _}) -> [];
named({text, _}) -> [];
named({prefix, _, Pattern}) -> named(Pattern);
named({Fix, _, Parameters, F}) when Fix =:= max; Fix =:= min ->
    [Name || {Name, _} <- Parameters] ++ named([Value || {_, Value} <- Parameters]) ++ named(F);
named(Tuple) when is_tuple(Tuple) -> named(tuple_to_list(Tuple));
named([Head | Tail]) -> named(Head) ++ named(Tail);
named(_) -> [].

loops(Formula) -> lists:usort(binding(Formula)).

binding({Fix, X, _, F}) when Fix =:= max; Fix =:= min -> [X | binding(F)];
binding(Tuple) when is_tuple(Tuple) -> binding(tuple_to_list(Tuple));
binding([Head | Tail]) -> binding(Head) ++ binding(Tail);
binding(_) -> [].

%% Parts that are outside become parameters first.
renamed({rec, X, Values} = Whole, Bound, #{others := Others, loops := Loops} = Renaming) ->
    case {lists:member(X, Bound), Others} of
        {false, #{Whole := Parameter}} -> {rec, Parameter, []};
        {true, _} -> {rec, map_get(X, Loops), renamed(Values, Bound, Renaming)}
    end;
renamed({use, Name, Arguments} = Whole, Bound, #{others := Others} = Renaming) ->
    case Others of
        #{Whole := Parameter} ->
            case lists:any(fun(X) -> lists:member(X, Bound) end, called(Arguments)) of
                false -> {rec, Parameter, []};
                true -> {use, Name, renamed(Arguments, Bound, Renaming)}
            end;
        _ -> {use, Name, renamed(Arguments, Bound, Renaming)}
    end;
renamed({Fix, X, Parameters, F}, Bound, #{data := Data, loops := Loops} = Renaming) when Fix =:= max; Fix =:= min ->
    {Fix, map_get(X, Loops), [{map_get(Name, Data), renamed(Value, Bound, Renaming)} || {Name, Value} <- Parameters],
     renamed(F, [X | Bound], Renaming)};
renamed({var, X}, _, #{data := Data}) -> {var, maps:get(X, Data, X)};
renamed({lit, _} = Literal, _, #{others := Others}) ->
    case Others of #{Literal := Parameter} -> {var, Parameter}; _ -> Literal end;
renamed({text, _} = Text, _, _) -> Text;
renamed({prefix, Text, Pattern}, Bound, Renaming) -> {prefix, Text, renamed(Pattern, Bound, Renaming)};
renamed(Tuple, Bound, Renaming) when is_tuple(Tuple) ->
    [Kind | Parts] = tuple_to_list(Tuple),
    First = case Kind of _ when is_tuple(Kind) -> renamed(Kind, Bound, Renaming); _ -> Kind end,
    list_to_tuple([First | renamed(Parts, Bound, Renaming)]);
renamed([Head | Tail], Bound, Renaming) -> [renamed(Head, Bound, Renaming) | renamed(Tail, Bound, Renaming)];
renamed(Constant, _, #{others := Others}) when Constant =:= tt; Constant =:= ff ->
    case Others of #{Constant := Parameter} -> {rec, Parameter, []}; _ -> Constant end;
renamed(Other, _, _) -> Other.

%% Actions. `Needed` are the variables that are used outside of it.
action({'else', _, _} = Action, _, _, State) -> {Action, State};
action({Kind, Patterns, Guard} = Action, Scope, Needed, State) ->
    case chance(25) of
        true ->
            {Data, More} = lists:split(witness_spec_oracle:parts(Kind), Patterns),
            %% A use may add a time, but no request.
            {Request, Time} = lists:splitwith(fun(Pattern) -> element(1, Pattern) =:= to end, More),
            {Inner, Outer} = case {Guard, rand:uniform(3)} of
                {[Tests], 1} ->
                    {Some, Others} = lists:split(rand:uniform(length(Tests) + 1) - 1, Tests),
                    {[Some || Some =/= []], [Others || Others =/= []]};
                {_, 2} -> {[], Guard};
                _ -> {Guard, []}
            end,
            {Own, Later} = case chance(50) of true -> {More, []}; false -> {Request, Time} end,
            {Open, Whole} = open(Kind, Data),
            Names = names([Open, Own, Inner]),
            Outside = Scope ++ Needed ++ names([Outer, Later, Whole]),
            Kept = [N || N <- Names, lists:member(N, Outside) orelse chance(25)],
            Fresh = fresh(length(Names) + length(Whole), Outside),
            {ForNames, Rest} = lists:split(length(Names), Fresh),
            Renaming = #{data => maps:from_list(lists:zip(Names, ForNames)), loops => #{}, others => #{}},
            Body = {Kind, filled(renamed(Open, [], Renaming), Rest) ++ renamed(Own, [], Renaming), renamed(Inner, [], Renaming)},
            Pairs = shuffled([{map_get(N, map_get(data, Renaming)), {var, N}} || N <- Kept] ++ lists:zip(Rest, Whole)),
            {Name, After} = add(action, [P || {P, _} <- Pairs], Body, State),
            {{use, Name, [Argument || {_, Argument} <- Pairs], Later, Outer}, After};
        false -> {Action, State}
    end.

%% Whole patterns that become parameters: the data with `hole` in their places, and the patterns.
open(Kind, Data) ->
    Opened = [case chance(30) andalso is_argument(Pattern, Kind, Place) of true -> {hole, Pattern}; false -> Pattern end
              || {Place, Pattern} <- lists:enumerate(Data)],
    {[case P of {hole, _} -> hole; _ -> P end || P <- Opened], [Pattern || {hole, Pattern} <- Opened]}.

is_argument(_, Kind, 3) when Kind =:= fork; Kind =:= init -> false;
is_argument(_, Kind, 2) when Kind =:= call; Kind =:= return -> false;
is_argument(Pattern, _, _) -> not has_otp(Pattern).

has_otp({otp, _, _}) -> true;
has_otp(Tuple) when is_tuple(Tuple) -> lists:any(fun has_otp/1, tuple_to_list(Tuple));
has_otp([Head | Tail]) -> has_otp(Head) orelse has_otp(Tail);
has_otp(_) -> false.

filled([hole | Patterns], [Name | Names]) -> [{var, Name} | filled(Patterns, Names)];
filled([Pattern | Patterns], Names) -> [Pattern | filled(Patterns, Names)];
filled([], []) -> [].
