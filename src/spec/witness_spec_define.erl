-module(witness_spec_define).
-moduledoc """
Definitions: names for formulas and actions, expanded where they are used.

```text
action Granted(Client) = _ : Client ! {granted, _}.
define Released(Client) = [_ ? {release, Client}] tt.
```

A use becomes what is defined, with the arguments in place of the parameters. What a definition binds itself, variables of data and of
recursion, gets a name of its own in each use (`Q@1`), so it captures nothing of the arguments and of what stands around.
Whether a parameter is a value or a formula follows from how its definition uses it. For a parameter that stands several times, `_` is a
variable that stands nowhere else.

The parts of a definition keep their places, and their texts have the arguments. An action that is a use keeps the place and the text
of the use. So an error may be in a definition because of a use: `with_uses/2` adds where that is.
""".

-export([expand/2, with_uses/2]).
-export_type([uses/0]).

-type finding() :: witness_spec_diagnostic:finding().
-type location() :: witness_spec_diagnostic:location().
-type property() :: witness_spec_parse:property().
-type definition() :: witness_spec_parse:definition().
-type formula() :: witness_spec_parse:formula().
-type action() :: witness_spec_action:action().
-type expr() :: witness_spec_pattern:expr().

-doc "Where definitions are, from a place to another one, with their names and the place of the first use.".
-type uses() :: [{From :: location(), To :: location(), Name :: atom(), Use :: location()}].

%% A definition that was checked: how it uses its parameters, and the variables of data and of recursion that it binds.
-type known() :: broken
    | #{definition := definition(), kinds := #{atom() => value | formula}, several := [atom()], own := [atom()], loops := [atom()]}.

%% What a parameter is replaced by, with its size and its text.
-type argument() :: {value, expr(), non_neg_integer(), binary()} | {formula, formula(), non_neg_integer(), binary()}.

%% Where a part is expanded: the arguments of the definition that it is in, and the names that it binds, old and new. `lets`
%% are those with variables.
-type context() :: #{inside := boolean(), known := #{atom() => known()}, arguments := #{atom() => argument()}, lets := [atom()],
                     own := #{atom() | {loop, atom()} => atom()}, loops := #{atom() => atom()}}.

%% What was expanded so far, in the whole file. `taken` are the names of its variables.
-type state() :: #{uses := non_neg_integer(), elements := non_neg_integer(), number := non_neg_integer(),
                   used := #{atom() => location()}, taken := #{string() => []}}.

-define(MAX_USES, 3_000).
-define(MAX_ELEMENTS, 200_000).
-define(MAX_ACTION, 10_000).
%% As in `m:witness_spec_scan`.
-define(MAX_TEXT, 240).

-doc """
The properties without uses of definitions, and what is wrong. A property with an error is left out, and so is one that uses a
definition with an error. `Tokens` are those of the file.
""".
-spec expand([property() | definition()], [witness_spec_scan:token()]) -> {[property()], uses(), [finding()]}.
expand(Written, Tokens) ->
    {Definitions, Properties} = lists:partition(fun(Part) -> is_map_key(define, Part) end, Written),
    {Known, Wrong} = check(Definitions, declared(Tokens)),
    Taken = #{atom_to_list(Name) => [] || {var, _, Name} <- Tokens},
    Context = #{inside => false, known => Known, arguments => #{}, lets => [], own => #{}, loops => #{}},
    {Expanded, Findings, #{used := Used}} = lists:foldl(fun(Property, {Done, Found, State}) ->
        try property(Property, Context, State) of
            {Plain, After} -> {[Plain | Done], Found, After}
        catch
            throw:broken -> {Done, Found, State};
            throw:{error, _, _, _, _} = Finding -> {Done, [Finding | Found], State}
        end
    end, {[], [], #{uses => 0, elements => 0, number => 0, used => #{}, taken => Taken}}, Properties),
    Mentioned = maps:merge(Used, mentioned(Definitions)),
    Unused = [witness_spec_diagnostic:warning(Location, unused_definition, ["the definition ", quote(Name), " is not used"],
                  case Word of
                      formula -> ["it is used as a formula, as in `[_ ? _] ", written(Name, Parameters), "`"];
                      action -> ["it is used as an action, as in `[", written(Name, Parameters), "] ff`"]
                  end)
              || Wrong =:= [], Findings =:= [],
                 #{define := Word, name := Name, location := Location, parameters := Parameters} <- Definitions,
                 not is_map_key(Name, Mentioned)],
    {lists:reverse(Expanded),
     [{From, To, Name, map_get(Name, Used)} || #{name := Name, from := From, to := To} <- Definitions, is_map_key(Name, Used)],
     Wrong ++ lists:reverse(Findings) ++ Unused}.

-doc "Findings, with the use of the definition that they are in.".
-spec with_uses([finding()], uses()) -> [finding()].
with_uses(Findings, Uses) -> [with_use(Finding, Uses) || Finding <- Findings].

with_use({Severity, Location, Code, Text, Hint} = Finding, Uses) when Location =/= undefined ->
    case [Use || {From, To, _, _} = Use <- Uses, From =< Location, Location < To] of
        [] -> Finding;
        [{_, _, Name, {Line, Column}} | _] ->
            In = io_lib:format("in the definition `~ts`, used in line ~b, column ~b", [Name, Line, Column]),
            {Severity, Location, Code, Text, case Hint of undefined -> In; _ -> [Hint, "; ", In] end}
    end;
with_use(Finding, _) -> Finding.

%% The names that the file defines, well-formed or not.
declared([{atom, _, Word}, {var, _, Name}, {Sign, _} | Rest]) when
        (Word =:= define orelse Word =:= action), (Sign =:= '=' orelse Sign =:= '(') ->
    [Name | declared(Rest)];
declared([_ | Rest]) -> declared(Rest);
declared([]) -> [].

%% Definitions by themselves.

check(Definitions, Declared) ->
    {Table, Twice} = lists:foldl(fun(#{name := Name, location := Location} = Definition, {Seen, Found}) ->
        case Seen of
            #{Name := #{location := {Line, _}}} ->
                {Seen, [witness_spec_diagnostic:error(Location, duplicate_definition,
                            ["a definition has the name ", quote(Name), " already"],
                            io_lib:format("the first one is in line ~b", [Line])) | Found]};
            _ -> {Seen#{Name => Definition}, Found}
        end
    end, {#{}, []}, Definitions),
    lists:foldl(fun(#{name := Name}, {Known, Found}) -> known(Name, [], Table, Known, Found) end,
                {#{Name => broken || Name <- Declared, not is_map_key(Name, Table)}, Twice}, Definitions).

%% Those that a definition uses are checked first. `Path` are the ones that are being checked.
known(Name, _, _, Known, Found) when is_map_key(Name, Known) -> {Known, Found};
known(Name, Path, Table, Known, Found) ->
    #{Name := Definition} = Table,
    Names = [Used || {Used, _} <- names(Definition), is_map_key(Used, Table)],
    {Before, More} = lists:foldl(fun(Used, {Now, Errors}) ->
        case lists:member(Used, [Name | Path]) of
            true -> {Now, Errors};
            false -> known(Used, [Name | Path], Table, Now, Errors)
        end
    end, {Known, Found}, Names),
    try
        circle(Names, Name, Path, Definition),
        {Before#{Name => checked(Definition, Before)}, More}
    catch
        throw:broken -> {Before#{Name => broken}, More};
        throw:{error, _, _, _, _} = Finding -> {Before#{Name => broken}, [Finding | More]}
    end.

circle(Names, Name, Path, #{location := Location}) ->
    case [Used || Used <- Names, lists:member(Used, [Name | Path])] of
        [] -> ok;
        [Used | _] ->
            Circle = lists:reverse([Used | lists:takewhile(fun(Other) -> Other =/= Used end, [Name | Path])]),
            throw(witness_spec_diagnostic:error(Location, recursive_definition,
                ["the definition ", quote(Name), " uses itself: ",
                 lists:join(" -> ", [quote(N) || N <- Circle ++ [hd(Circle)]])],
                "a definition is put where it is used; a loop is `max X.( ... X)` or `min X.( ... X)`"))
    end.

%% The names that stand in a definition where a use may stand, with their places.
names(#{define := action, action := Action}) -> names_of_action(Action);
names(#{define := formula, formula := Formula}) -> names_of_formula(Formula).

names_of_action(#{kind := use, name := Name, location := Location}) -> [{Name, Location}];
names_of_action(_) -> [].

names_of_formula({var, {Location, _}, Name, Arguments}) ->
    [{Name, Location} | lists:flatmap(fun
        ({_, {formula, Formula}}) -> names_of_formula(Formula);
        ({_, {var, Anno, Other}}) -> [{Other, place(Anno)}];
        (_) -> []
    end, Arguments)];
names_of_formula({Modality, _, Action, Formula}) when Modality =:= box; Modality =:= dia ->
    names_of_action(Action) ++ names_of_formula(Formula);
names_of_formula({_, _, _, _, Formula}) -> names_of_formula(Formula);
names_of_formula({_, _, Formulas}) when is_list(Formulas) -> lists:flatmap(fun names_of_formula/1, Formulas);
names_of_formula(_) -> [].

mentioned(Definitions) -> #{Name => Location || Definition <- Definitions, {Name, Location} <- names(Definition)}.

checked(#{parameters := Parameters} = Definition, Known) ->
    lists:foldl(fun({Name, Location}, Seen) ->
        is_map_key(Name, Seen) andalso
            throw(witness_spec_diagnostic:error(Location, bound_parameter, [quote(Name), " is a parameter already"],
                                                "a definition has each parameter once")),
        is_map_key(Name, Known) andalso taken(Name, Location, Known),
        Seen#{Name => []}
    end, #{}, Parameters),
    Names = ordsets:from_list([Name || {Name, _} <- Parameters]),
    Scope = #{known => Known, parameters => Names, scope => Names, loops => []},
    Found = case Definition of
        #{formula := Formula} -> inside(Formula, Scope);
        #{action := Action} -> {_, Of} = inside_action(Action, Scope), Of
    end,
    Kinds = lists:foldl(fun
        ({Kind, Name, Location}, Before) when Kind =:= value; Kind =:= formula ->
            case Before of
                #{Name := {Kind, _}} -> Before;
                #{Name := {_, {Line, Column}}} ->
                    throw(witness_spec_diagnostic:error(Location, mixed_parameter,
                        ["the parameter ", quote(Name), " is a ", atom_to_list(Kind), " here, and not in ",
                         io_lib:format("line ~b, column ~b", [Line, Column])],
                        "a parameter is either a value, in patterns, guards and values, or a formula"));
                _ -> Before#{Name => {Kind, Location}}
            end;
        (_, Before) -> Before
    end, #{}, lists:keysort(3, Found)),
    Values = [Name || {value, Name, _} <- Found],
    #{definition => Definition, kinds => #{Name => Kind || Name := {Kind, _} <- Kinds},
      several => lists:usort(Values -- lists:usort(Values)),
      own => lists:usort([Name || {own, Name, _} <- Found]), loops => lists:usort([Name || {loop, Name, _} <- Found])}.

-spec taken(atom(), location(), #{atom() => known()}) -> no_return().
taken(Name, Location, Known) ->
    throw(witness_spec_diagnostic:error(Location, taken_name, [quote(Name), " is the name of a definition"],
        case Known of
            #{Name := #{definition := Definition}} -> [defined(Definition), ": use another name here"];
            _ -> "use another name here"
        end)).

%% What stands in a definition: `{value | formula, Parameter, Place}`, and `{own | loop, Name, Place}` for what it binds.
inside({Constant, _}, _) when Constant =:= tt; Constant =:= ff -> [];
inside({var, {Location, _}, Name, Arguments}, #{parameters := Parameters, loops := Loops, known := Known} = Scope) ->
    case {lists:member(Name, Loops), lists:member(Name, Parameters), Known} of
        {true, _, _} -> lists:flatmap(fun({_, Value}) -> inside_value(Value, Location, Scope) end, Arguments);
        {_, true, _} when Arguments =:= [] -> [{formula, Name, Location}];
        {_, true, _} ->
            throw(witness_spec_diagnostic:error(Location, wrong_arguments, ["the parameter ", quote(Name), " takes no arguments"],
                "the argument for it is a whole formula, such as `X(N + 1)`"));
        {_, _, #{Name := _}} ->
            lists:flatmap(fun
                ({{_, {formula, Formula}}, formula}) -> inside(Formula, Scope);
                ({{_, {var, Anno, Other}}, formula}) -> inside({var, {place(Anno), <<>>}, Other, []}, Scope);
                ({{_, Constant}, formula}) -> _ = constant(Constant, Name, Known), [];
                ({{_, Value}, value}) -> inside_argument(Value, Location, Scope);
                ({_, none}) -> []
            end, paired(Arguments, definition(Name, formula, Location, Known), Location));
        _ ->
            throw(witness_spec_diagnostic:error(Location, unbound_recursion_variable,
                ["the recursion variable ", quote(Name), " is not bound in this definition"],
                "a definition knows its own `max X.` and `min X.`, its parameters, and other definitions"))
    end;
inside({Modality, _, Action, Formula}, Scope) when Modality =:= box; Modality =:= dia ->
    {Inner, Found} = inside_action(Action, Scope),
    Found ++ inside(Formula, Inner);
inside({Fixpoint, {Location, _}, Name, Data, Formula}, #{parameters := Parameters, loops := Loops, known := Known} = Scope) when
        Fixpoint =:= max; Fixpoint =:= min ->
    is_map_key(Name, Known) andalso taken(Name, Location, Known),
    lists:member(Name, Parameters) andalso
        throw(witness_spec_diagnostic:error(Location, bound_parameter, [quote(Name), " is a parameter of this definition"],
                                            "use another name for the recursion variable")),
    {Inner, Found} = lists:mapfoldl(fun({Own, Place, Value}, #{scope := Bound} = Before) ->
        lists:member(Own, Parameters) andalso
            throw(witness_spec_diagnostic:error(Place, bound_parameter, [quote(Own), " has a value already"],
                                                "it is a parameter of this definition: give this one another name")),
        {[{own, Own, Place} | bound(Value, Before)], Before#{scope := ordsets:add_element(Own, Bound)}}
    end, Scope, Data),
    [{loop, Name, Location} | lists:append(Inner)] ++ inside(Formula, Found#{loops := [Name | Loops]});
inside({_, _, _, _, Formula}, Scope) -> inside(Formula, Scope);
inside({_, _, Formulas}, Scope) -> lists:flatmap(fun(Formula) -> inside(Formula, Scope) end, Formulas).

inside_action(#{kind := 'else'}, Scope) -> {Scope, []};
inside_action(#{pattern := Pattern, guard := Guard} = Action, Scope) ->
    #{scope := Bound, parameters := Parameters, known := Known} = Scope,
    case Action of
        #{kind := use, name := Name, arguments := Arguments, location := Location} ->
            lists:member(Name, Parameters) andalso throw(witness_spec_action:not_an_action(Location)),
            paired(Arguments, definition(Name, action, Location, Known), Location);
        _ -> ok
    end,
    Inner = Scope#{scope := ordsets:union(Bound, witness_spec_pattern:variables(Pattern))},
    {Inner, named(Pattern, Parameters) ++ bound(Guard, Inner)}.

named(Pattern, Parameters) ->
    [{case lists:member(Name, Parameters) of true -> value; false -> own end, Name, Location}
     || {Name, Location} <- witness_spec_pattern:occurrences(Pattern)].

bound(Expr, #{scope := Bound, parameters := Parameters}) ->
    [case ordsets:is_element(Name, Bound) of
         true -> {case lists:member(Name, Parameters) of true -> value; false -> own end, Name, Location};
         false ->
             throw(witness_spec_diagnostic:error(Location, unbound_variable,
                 ["the variable ", quote(Name), " is not bound in this definition"],
                 "a definition knows its parameters, and what its own actions bind"))
     end || {Name, Location} <- witness_spec_pattern:occurrences(Expr)].

inside_value({formula, {var, {Location, _}, Name, Arguments}}, _, #{parameters := Parameters} = Scope) ->
    lists:member(Name, Parameters) orelse not_a_value(Name, Location),
    [{value, Name, Location} | lists:flatmap(fun({_, Value}) -> inside_value(Value, Location, Scope) end, Arguments)];
inside_value({var, Anno, '_'}, _, _) -> no_value(place(Anno));
inside_value(Value, _, Scope) -> bound(Value, Scope).

%% An argument may be a variable that the other definition binds.
inside_argument({formula, {var, {Location, _}, Name, Arguments}}, _, #{parameters := Parameters} = Scope) ->
    lists:member(Name, Parameters) orelse not_a_value(Name, Location),
    [{value, Name, Location} | lists:flatmap(fun({_, Value}) -> inside_argument(Value, Location, Scope) end, Arguments)];
inside_argument(Value, _, #{parameters := Parameters}) -> named(Value, Parameters).

-spec not_a_value(atom(), location()) -> no_return().
not_a_value(Name, Location) ->
    throw(witness_spec_diagnostic:error(Location, not_a_value, [quote(Name), " with arguments is a formula, not a value"],
                                        "a value is what a guard can compute")).

-spec no_value(location()) -> no_return().
no_value(Location) -> throw(witness_spec_diagnostic:error(Location, not_a_value, "`_` has no value")).

%% The definition of this name, which has to be of this kind.
definition(Name, Kind, Location, Known) ->
    case Known of
        #{Name := broken} -> throw(broken);
        #{Name := #{definition := #{define := Kind}} = Found} -> Found;
        #{Name := #{definition := #{define := Other} = Definition}} ->
            throw(witness_spec_diagnostic:error(Location, wrong_definition,
                [quote(Name), " is ", a(Other), ", not ", a(Kind)],
                [defined(Definition), "; ", case Other of
                    formula -> ["a formula stands behind an action: `[_ ? _] ", atom_to_list(Name), "`"];
                    action -> ["an action stands in a modality: `[", atom_to_list(Name), "] f`"]
                end]));
        _ -> throw(witness_spec_action:not_an_action(Location))
    end.

a(formula) -> "a formula";
a(action) -> "an action".

%% The arguments of a use, each with what its parameter is.
paired(Arguments, #{definition := Definition, kinds := Kinds}, Location) ->
    #{name := Name, parameters := Parameters} = Definition,
    length(Arguments) =:= length(Parameters) orelse
        throw(witness_spec_diagnostic:error(Location, wrong_arguments,
            [quote(Name), case Parameters of
                [] -> " has no parameters";
                [_] -> " has one parameter";
                _ -> io_lib:format(" has ~b parameters", [length(Parameters)])
            end, io_lib:format(", and not ~b", [length(Arguments)])],
            [defined(Definition), ", as `", written(Name, Parameters), "`"])),
    [{Argument, maps:get(Parameter, Kinds, none)} || {Argument, {Parameter, _}} <- lists:zip(Arguments, Parameters)].

written(Name, []) -> atom_to_list(Name);
written(Name, Parameters) -> [atom_to_list(Name), "(", lists:join(", ", [atom_to_list(P) || {P, _} <- Parameters]), ")"].

constant({atom, _, Constant}, _, _) when Constant =:= tt; Constant =:= ff -> Constant;
constant(Expr, Name, Known) ->
    #{Name := #{definition := #{location := {Line, Column}}}} = Known,
    throw(witness_spec_diagnostic:error(place(element(2, Expr)), wrong_arguments,
        ["this argument has to be a formula: a recursion variable, a definition, `tt` or `ff`"],
        io_lib:format("`~ts`, defined in line ~b, column ~b, goes on with it", [Name, Line, Column]))).

%% Expansion.

property(#{over := Over, lets := Lets} = Property, Given, State) ->
    Context = Given#{lets := [Name || #{name := Name, parameters := [_ | _]} <- Lets]},
    Expand = fun(Action, Now) -> action(Action, Context, Now) end,
    {Seen, Next} = case Over of
        all -> {all, State};
        _ -> lists:mapfoldl(Expand, State, Over)
    end,
    {Known, Then} = witness_spec_parse:map_lets(Expand, Next, Lets),
    case Property of
        #{formula := Formula} ->
            {Expanded, After} = formula(Formula, Context, Then),
            {Property#{over := Seen, lets := Known, formula := Expanded}, After};
        _ ->
            {Property#{over := Seen, lets := Known}, Then}
    end.

-spec formula(formula(), context(), state()) -> {formula(), state()}.
formula({Constant, Meta}, Context, State) when Constant =:= tt; Constant =:= ff ->
    {{Constant, meta(Meta, Context)}, grown(1, Meta, Context, State)};
formula({var, {Location, _} = Meta, Name, Arguments}, #{arguments := Given, loops := Loops, known := Known} = Context, State) ->
    case {Loops, Given, Known} of
        {#{Name := Renamed}, _, _} -> variable(Meta, Renamed, Arguments, Context, State);
        {_, #{Name := {formula, Formula, Size, _}}, _} -> {Formula, grown(Size, Meta, Context, State)};
        {_, _, #{Name := _}} -> use(definition(Name, formula, Location, Known), Arguments, Meta, Context, State);
        _ -> variable(Meta, Name, Arguments, Context, State)
    end;
formula({Modality, Meta, Action, Formula}, Context, State) when Modality =:= box; Modality =:= dia ->
    {Expanded, Next} = action(Action, Context, State),
    {Inner, After} = formula(Formula, Context, grown(1, Meta, Context, Next)),
    {{Modality, meta(Meta, Context), Expanded, Inner}, After};
formula({Fixpoint, {Location, _} = Meta, Name, Data, Formula}, #{own := Own, loops := Loops, known := Known} = Context, State) when
        Fixpoint =:= max; Fixpoint =:= min ->
    is_map_key(Name, Known) andalso taken(Name, Location, Known),
    Renamed = renamed(Name, Context),
    {Parameters, Next} = lists:mapfoldl(fun({Parameter, Place, Value}, Now) ->
        {Expr, Then} = expr(Value, value, Context, Now),
        {{maps:get(Parameter, Own, Parameter), Place, Expr}, Then}
    end, grown(1, Meta, Context, State), Data),
    {Inner, After} = formula(Formula, Context#{loops := Loops#{Name => Renamed}}, Next),
    {{Fixpoint, meta(Meta, Context), Renamed, Parameters, Inner}, After};
formula({Timed, Meta, Duration, [], Formula}, Context, State) ->
    {Inner, After} = formula(Formula, Context, grown(1, Meta, Context, State)),
    {{Timed, meta(Meta, Context), Duration, [], Inner}, After};
formula({Operator, Meta, Formulas}, Context, State) ->
    {Inner, After} = lists:mapfoldl(fun(Formula, Now) -> formula(Formula, Context, Now) end,
                                    grown(1, Meta, Context, State), Formulas),
    {{Operator, meta(Meta, Context), Inner}, After}.

%% The recursion variable of a fixpoint.
renamed(Name, #{own := Own}) -> maps:get({loop, Name}, Own, Name).

variable({Location, _} = Meta, Name, Arguments, Context, State) ->
    {Values, After} = lists:mapfoldl(fun({_, Argument}, Now) ->
        case value(Argument, Context) of
            {var, Anno, '_'} -> no_value(place(Anno));
            Value -> expr(Value, value, Context, Now)
        end
    end, grown(1, {Location, <<>>}, Context, State), Arguments),
    {{var, meta(Meta, Context), Name, Values}, After}.

%% The value of a `let` for these arguments looks like the use of a formula.
value({formula, {var, {Place, _}, Name, Arguments}}, #{lets := Lets, arguments := Given} = Context) ->
    lists:member(Name, Lets) orelse is_map_key(Name, Given) orelse not_a_value(Name, Place),
    Anno = erl_anno:new(Place),
    {call, Anno, {var, Anno, Name}, [case value(Argument, Context) of
        {var, At, '_'} -> no_value(place(At));
        Value -> Value
    end || {_, Argument} <- Arguments]};
value(Value, _) -> Value.

use(#{definition := #{formula := Formula}} = Definition, Arguments, {Location, _}, Context, State) ->
    {Given, Next} = lists:mapfoldl(fun({{Text, Argument}, Kind}, Now) ->
        argument(Kind, Argument, text(Text, Context), Definition, Location, Context, Now)
    end, counted(Definition, Location, State), paired(Arguments, Definition, Location)),
    {Inside, After} = enter(Definition, Given, Context, Next),
    formula(Formula, Inside, After).

%% The context inside a definition: new names for what it binds.
enter(#{definition := Definition, several := Several, own := Own, loops := Loops}, Given, #{known := Known, lets := Lets}, State) ->
    #{parameters := Parameters} = Definition,
    Arguments = [{Name, Argument} || {{Name, _}, Argument} <- lists:zip(Parameters, Given), Argument =/= none],
    {Any, Others} = lists:partition(fun({Name, Argument}) -> is_any(Argument) andalso lists:member(Name, Several) end, Arguments),
    {Names, After} = fresh([{Name, Name} || {Name, _} <- Any] ++ [{Name, Name} || Name <- Own]
                           ++ [{{loop, Name}, Name} || Name <- Loops], State),
    {#{inside => true, known => Known, own => Names, loops => #{}, arguments => maps:from_list(Others), lets => Lets}, After}.

is_any({value, {var, _, '_'}, _, _}) -> true;
is_any(_) -> false.

fresh([], State) -> {#{}, State};
fresh(Names, #{number := Before, taken := Taken} = State) ->
    Number = Before + 1,
    Fresh = [{Key, atom_to_list(Name) ++ "@" ++ integer_to_list(Number)} || {Key, Name} <- Names],
    case lists:any(fun({_, Written}) -> is_map_key(Written, Taken) end, Fresh) of
        true -> fresh(Names, State#{number := Number});
        false -> {#{Key => list_to_atom(Written) || {Key, Written} <- Fresh}, State#{number := Number}}
    end.

counted(#{definition := #{name := Name}}, Location, #{uses := Uses, used := Used} = State) ->
    Uses < ?MAX_USES orelse
        throw(witness_spec_diagnostic:error(Location, too_large,
            io_lib:format("definitions are used more than ~b times in this file", [?MAX_USES]),
            "uses inside of definitions count each time; split the file")),
    State#{uses := Uses + 1, used := maps:merge(#{Name => Location}, Used)}.

%% Only what definitions add is counted: the rest is bounded as it is read.
grown(_, _, #{inside := false}, State) -> State;
grown(Size, {Location, _}, _, #{elements := Elements} = State) ->
    Elements + Size =< ?MAX_ELEMENTS orelse
        throw(witness_spec_diagnostic:error(Location, too_large,
            io_lib:format("the formulas of this file have more than ~b elements, with their definitions", [?MAX_ELEMENTS]),
            "split the file")),
    State#{elements := Elements + Size}.

argument(none, _, _, _, _, _, State) -> {none, State};
argument(formula, {formula, Formula}, Text, _, _, Context, State) -> formula_argument(Formula, Text, Context, State);
argument(formula, {var, Anno, Name}, Text, _, _, Context, State) when Name =/= '_' ->
    formula_argument({var, {place(Anno), Text}, Name, []}, Text, Context, State);
argument(formula, Value, Text, #{definition := #{name := Name}}, _, #{known := Known} = Context, State) ->
    Constant = constant(Value, Name, Known),
    formula_argument({Constant, {place(element(2, Value)), Text}}, Text, Context, State);
argument(value, Argument, Text, #{definition := Definition}, _, Context, State) ->
    Value = value(Argument, Context),
    {Expr, #{elements := After} = Next} = expr(Value, {argument, Definition}, Context, State),
    Size = case Context of #{inside := false} -> size_of(Expr); _ -> After - map_get(elements, State) end,
    {{value, Expr, Size, Text}, Next}.

formula_argument(Formula, Text, Context, State) ->
    {Expanded, #{elements := After} = Next} = formula(Formula, Context, State),
    Own = case Expanded of {var, _, _, Values} -> 1 + size_of(Values); _ -> 1 end,
    {{formula, Expanded, After - map_get(elements, State) + Own, Text}, Next}.

-spec action(action(), context(), state()) -> {action(), state()}.
action(#{kind := 'else', text := Text} = Action, Context, State) -> {Action#{text := text(Text, Context)}, State};
action(#{kind := use, name := Name, arguments := Arguments, location := Location, text := Text, guard := Guard,
         pattern := {tuple, Anno, Elements}} = Use, #{known := Known} = Context, State) ->
    #{definition := #{action := Body} = Definition} = Found = definition(Name, action, Location, Known),
    _ = paired(Arguments, Found, Location),
    {Given, Next} = lists:mapfoldl(fun({Written, Pattern}, Now) ->
        argument(value, Pattern, text(Written, Context), Found, Location, Context, Now)
    end, counted(Found, Location, State), Arguments),
    {Inside, Entered} = enter(Found, Given, Context, Next),
    {#{pattern := {tuple, _, Parts}, guard := Own} = Expanded, Then} = action(Body, Inside, Entered),
    {Tests, Tested} = expr(Guard, guard, Context, Then),
    {Time, After} = expr(lists:last(Elements), pattern, Context, Tested),
    Timed = case {Time, lists:last(Parts)} of
        {{var, _, '_'}, Inner} -> Inner;
        {_, {var, _, '_'}} -> Time;
        _ ->
            throw(witness_spec_diagnostic:error(place(element(2, Time)), wrong_arguments,
                                                ["the action ", quote(Name), " has an `at` already"], defined(Definition)))
    end,
    Joined = length(Own) * size_of(Tests) + length(Tests) * size_of(Own),
    Joined + size_of(Parts) =< ?MAX_ACTION orelse too_large(Location),
    {maps:merge(Expanded#{location := Location, text := text(Text, Context), guard := both(Own, Tests),
                          pattern := {tuple, Anno, lists:droplast(Parts) ++ [Timed]}}, maps:with([begins, why, implied], Use)),
     grown(Joined, {Location, <<>>}, Context, After)};
action(#{pattern := Pattern, guard := Guard, text := Text, location := Location} = Action, Context, State) ->
    #{elements := Before} = State,
    {Matched, Next} = expr(Pattern, pattern, Context, State),
    {Tests, #{elements := After} = Then} = expr(Guard, guard, Context, Next),
    After - Before =< ?MAX_ACTION orelse too_large(Location),
    {Action#{pattern := Matched, guard := Tests, text := text(Text, Context)}, Then}.

-spec too_large(location()) -> no_return().
too_large(Location) ->
    throw(witness_spec_diagnostic:error(Location, too_large,
        io_lib:format("an action has at most ~b elements, with its definitions", [?MAX_ACTION]))).

both([], Tests) -> Tests;
both(Tests, []) -> Tests;
both(Own, Tests) -> [One ++ Other || One <- Own, Other <- Tests].

%% A pattern, guard or value. Elements are counted before arguments are put in.
expr(Expr, _, #{inside := false}, State) -> {Expr, State};
expr(Expr, Mode, #{arguments := Given} = Context, State) ->
    Occurrences = witness_spec_pattern:occurrences(Expr),
    Size = lists:sum([case Given of #{Name := {_, _, N, _}} -> N; _ -> 0 end || {Name, _} <- Occurrences]),
    Location = case Occurrences of [{_, At} | _] -> At; [] -> undefined end,
    Size =< ?MAX_ACTION orelse too_large(Location),
    After = grown(size_of(Expr) + Size, {Location, <<>>}, Context, State),
    {put_in(Expr, Mode, Context), After}.

put_in({var, _, '_'} = Any, _, _) -> Any;
put_in({var, Anno, Name}, Mode, #{arguments := Given, own := Own}) ->
    case {Given, Own} of
        {#{Name := {value, Expr, _, Text}}, _} -> fits(Mode, Expr, Name, place(Anno), Text), Expr;
        {_, #{Name := Renamed}} -> {var, Anno, Renamed};
        _ -> {var, Anno, Name}
    end;
%% What is called is the value of a `let`, and no function that an argument names.
put_in({call, Anno, {var, At, Name}, Arguments}, Mode, Context) ->
    case put_in({var, At, Name}, Mode, Context) of
        {var, _, Let} when Let =/= '_' -> {call, Anno, {var, At, Let}, put_in(Arguments, Mode, Context)};
        Other ->
            throw(witness_spec_diagnostic:error(place(element(2, Other)), not_a_value,
                ["this is no `let`, and ", quote(Name), " has arguments"],
                io_lib:format("in line ~b, column ~b", tuple_to_list(place(At)))))
    end;
put_in({map_field_exact, Anno, Key, Value}, pattern, Context) ->
    {map_field_exact, Anno, put_in(Key, guard, Context), put_in(Value, pattern, Context)};
put_in({bin_element, Anno, Value, Size, Type}, pattern, Context) ->
    {bin_element, Anno, put_in(Value, pattern, Context), put_in(Size, guard, Context), Type};
put_in({Literal, _, _} = Expr, _, _) when
        Literal =:= atom; Literal =:= integer; Literal =:= float; Literal =:= char; Literal =:= string ->
    Expr;
put_in(Tuple, Mode, Context) when is_tuple(Tuple) -> list_to_tuple(put_in(tuple_to_list(Tuple), Mode, Context));
put_in([Head | Tail], Mode, Context) -> [put_in(Head, Mode, Context) | put_in(Tail, Mode, Context)];
put_in(Part, _, _) -> Part.

%% An argument of a use inside a definition is put further in, which decides.
fits({argument, _}, _, _, _, _) -> ok;
fits(Mode, Expr, Name, {Line, Column}, Text) ->
    try witness_spec_pattern:check(Mode, Expr)
    catch
        throw:{error, _, Code, Reason, _} ->
            throw(witness_spec_diagnostic:error(place(element(2, Expr)), Code,
                ["the argument ", witness_spec_diagnostic:quote(Text), " has no place where ", quote(Name), " stands"],
                [io_lib:format("in line ~b, column ~b ", [Line, Column]), case Mode of
                    pattern -> "it is a part of a pattern";
                    guard -> "it is a part of a guard";
                    value -> "it is a part of a value"
                end, ": ", Reason]))
    end.

size_of(Expr) when is_tuple(Expr) -> 1 + size_of(tuple_to_list(Expr));
size_of([Head | Tail]) -> size_of(Head) + size_of(Tail);
size_of(_) -> 0.

%% Texts.

meta({Location, Text}, Context) -> {Location, text(Text, Context)}.

text(Text, #{arguments := Given, own := Own}) when Given =:= #{}, Own =:= #{} -> Text;
text(Text, #{arguments := Given, own := Own}) ->
    Names = maps:merge(#{atom_to_binary(Name) => Written || Name := {_, _, _, Written} <- Given},
                       #{atom_to_binary(Name) => atom_to_binary(Renamed) || Name := Renamed <- Own, is_atom(Name)}),
    Parts = re:split(Text, "(\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|\\$(?:\\\\.|.)|[\\p{L}_][\\p{L}\\p{N}_@]*)",
                     [unicode, ucp, {return, binary}]),
    case unicode:characters_to_list([maps:get(Part, Names, Part) || Part <- Parts]) of
        Long when length(Long) > ?MAX_TEXT -> unicode:characters_to_binary([lists:sublist(Long, ?MAX_TEXT), "..."]);
        Chars -> unicode:characters_to_binary(Chars)
    end.

defined(#{location := {Line, Column}}) -> io_lib:format("it is defined in line ~b, column ~b", [Line, Column]).

quote(Name) -> witness_spec_diagnostic:quote(atom_to_list(Name)).

place(Anno) -> {erl_anno:line(Anno), erl_anno:column(Anno)}.
