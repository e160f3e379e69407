-module(witness_spec_guard).
-moduledoc """
The possible values of variables, and the actions that match no event because of them.

A type is a set of the kinds of terms that Erlang distinguishes. The place of a variable gives it a type (a
process is never an atom), and so does a pattern (`X = {a, _}`). A guard that holds narrows the type. If no value remains,
or a guard's constants decide it, the action never matches.

All answers are certain: a type has at least all possible kinds, and what is not understood can be any term.
""".

-export([signature/1, action/2, formula/2, join/2, conjuncts/1]).
-export_type([types/0]).

-type kind() :: integer | float | atom | reference | function | port | pid | tuple | map | nil | cons | bitstring.

-doc "The kinds of values that a variable can have. A missing variable can have any value.".
-type types() :: #{Name :: atom() => ordsets:ordset(kind())}.

-type finding() :: witness_spec_diagnostic:finding().
-type expr() :: witness_spec_pattern:expr().

%% No value is possible: the place that shows it, and why.
-type never() :: {never, witness_spec_diagnostic:location(), Hint :: unicode:chardata() | undefined}.

%% The value of an expression in a guard.
-type value() :: {value, term()} | {kinds, ordsets:ordset(kind())}.

-define(ANY, [atom, bitstring, cons, float, function, integer, map, nil, pid, port, reference, tuple]).
-define(LIST, [cons, nil]).
-define(NUMBER, [float, integer]).
%% A process is a pid, or a tuple if a log names a process that is not a pid of the BEAM.
-define(PROCESS, [pid, tuple]).
-define(RECEIVER, [atom, pid, port, reference, tuple]).

%% Constants are computed up to this size.
-define(MAX_INTEGER, 1 bsl 64).
%% So many first tests of a guard are compared with each other.
-define(MAX_TESTS, 50).
%% A hint names at most as many kinds.
-define(MAX_WORDS, 3).

-doc "The types of a signature's variables, or why it never matches.".
-spec signature(witness_spec_action:signature()) -> {ok, types()} | {never, finding()}.
signature(#{pattern := Pattern, guard := Guard}) -> match([{Pattern, [tuple]}], Guard, #{}).

-doc "The types of all variables after the action has matched, or why it never does.".
-spec action(witness_spec_action:action(), types()) -> {ok, types()} | {never, finding()}.
action(#{kind := 'else'}, Types) -> {ok, Types};
action(#{kind := Kind, pattern := {tuple, _, [_ | Parts]}, guard := Guard}, Types) ->
    match(lists:zip(Parts, places(Kind, Parts) ++ [?ANY]), Guard, Types).

places(fork, _) -> [?PROCESS, ?PROCESS, [tuple]];
places(init, [_, Parent | _]) -> [?PROCESS, parent(Parent), [tuple]];
places(exit, _) -> [?PROCESS, ?ANY];
places(send, [_, _, _, _Request, _Time]) -> [?PROCESS, ?RECEIVER, ?ANY, ?ANY];
places(send, _) -> [?PROCESS, ?RECEIVER, ?ANY];
places(recv, _) -> [?PROCESS, ?ANY, ?ANY];
places(call, _) -> [?PROCESS, [tuple]];
places(return, _) -> [?PROCESS, [tuple], ?ANY].

%% `undefined` if the parent is not known.
parent({atom, _, Name}) when Name =/= undefined -> ?PROCESS;
parent(_) -> [atom | ?PROCESS].

match(Parts, Guard, Types) ->
    try lists:foldl(fun({Part, Allowed}, Known) -> pattern(Part, Allowed, Known) end, Types, Parts) of
        Known ->
            case guard(Guard, Known) of
                {never, Location, Hint} ->
                    {never, witness_spec_diagnostic:warning(Location, guard_fails, "this guard always fails",
                                                            otherwise(Hint, "it is false for all values"))};
                Narrowed ->
                    {ok, Narrowed}
            end
    catch
        throw:{never, Location, Hint} ->
            {never, witness_spec_diagnostic:warning(Location, never_matches, "nothing can match this pattern",
                                                    otherwise(Hint, "its parts contradict each other"))}
    end.

otherwise(undefined, Hint) -> Hint;
otherwise(Hint, _) -> Hint.

-doc """
The formula without the modalities of actions that never match (`[a] f` is then true, `<a> f` false), and warnings about
these.
""".
-spec formula(witness_spec_parse:formula(), types()) -> {witness_spec_parse:formula(), [finding()]}.
formula({Modality, Meta, Action, Formula}, Types) when Modality =:= box; Modality =:= dia ->
    case action(Action, Types) of
        {ok, Known} ->
            {Inner, Findings} = formula(Formula, Known),
            {{Modality, Meta, Action, Inner}, Findings};
        {never, Finding} ->
            {{case Modality of box -> tt; dia -> ff end, Meta}, [Finding]}
    end;
formula({Fixpoint, Meta, Name, Parameters, Formula}, Types) ->
    {Inner, Findings} = formula(Formula, Types),
    {{Fixpoint, Meta, Name, Parameters, Inner}, Findings};
formula({Operator, Meta, Formulas}, Types) when is_list(Formulas) ->
    {Inner, Findings} = lists:unzip([formula(Formula, Types) || Formula <- Formulas]),
    {{Operator, Meta, Inner}, lists:append(Findings)};
formula(Formula, _) ->
    {Formula, []}.

-doc "The types if one or the other holds.".
-spec join(types(), types()) -> types().
join(Left, Right) -> maps:intersect_with(fun(_, One, Other) -> ordsets:union(One, Other) end, Left, Right).

%% Patterns.

-spec pattern(expr(), ordsets:ordset(kind()), types()) -> types().
pattern({var, _, '_'}, _, Types) ->
    Types;
pattern({var, _, Name} = Variable, Allowed, Types) ->
    Known = known(Name, Types),
    Types#{Name => possible(Variable, Known, ordsets:intersection(Known, Allowed))};
pattern({match, _, _, _} = Alias, Allowed, Types) ->
    Sides = sides(Alias, []),
    Both = lists:foldl(fun(Side, Kinds) -> ordsets:intersection(kinds(Side), Kinds) end, Allowed, Sides),
    Kinds = possible(Alias, Allowed, Both),
    lists:foldl(fun(Side, Known) -> pattern(Side, Kinds, Known) end, Types, Sides);
pattern(Pattern, Allowed, Types) ->
    _ = possible(Pattern, Allowed, ordsets:intersection(Allowed, kinds(Pattern))),
    parts(Pattern, Types).

sides({match, _, Left, Right}, Sides) -> sides(Left, sides(Right, Sides));
sides(Pattern, Sides) -> [Pattern | Sides].

possible(Pattern, Known, []) -> throw(never(Pattern, Known));
possible(_, _, Kinds) -> Kinds.

kinds({Number, _, _}) when Number =:= integer; Number =:= char -> [integer];
kinds({string, _, []}) -> [nil];
kinds({string, _, _}) -> [cons];
kinds({bin, _, _}) -> [bitstring];
kinds({nil, _}) -> [nil];
kinds({Kind, _, _}) when Kind =:= atom; Kind =:= float; Kind =:= tuple; Kind =:= map -> [Kind];
kinds({cons, _, _, _}) -> [cons];
kinds({op, _, '++', _, _}) -> ?ANY;
kinds({op, _, _, _, _}) -> ?NUMBER;
kinds({op, _, _, _}) -> ?NUMBER;
kinds({var, _, _}) -> ?ANY.

parts({tuple, _, Elements}, Types) ->
    lists:foldl(fun(Element, Known) -> pattern(Element, ?ANY, Known) end, Types, Elements);
parts({cons, _, Head, Tail}, Types) -> pattern(Tail, ?ANY, pattern(Head, ?ANY, Types));
parts({op, _, '++', _, Tail}, Types) -> pattern(Tail, ?ANY, Types);
parts({map, _, Fields}, Types) ->
    lists:foldl(fun({map_field_exact, _, _, Value}, Known) -> pattern(Value, ?ANY, Known) end, Types, Fields);
parts({bin, _, Segments}, Types) -> lists:foldl(fun segment/2, Types, Segments);
parts(_, Types) -> Types.

segment({bin_element, _, {var, _, _} = Variable, _, Specifiers}, Types) ->
    pattern(Variable, segment(Specifiers), Types);
segment(_, Types) ->
    Types.

segment(default) -> [integer];
segment(Specifiers) ->
    case [Kind || Specifier <- Specifiers, Kind <- specifier_kinds(Specifier)] of
        [Kind] -> [Kind];
        _ -> [integer]
    end.

specifier_kinds(float) -> [float];
specifier_kinds(Bits) when Bits =:= binary; Bits =:= bytes; Bits =:= bitstring; Bits =:= bits -> [bitstring];
specifier_kinds(_) -> [].

%% Guards.

-spec guard(witness_spec_pattern:guard(), types()) -> types() | never().
guard([], Types) -> Types;
guard([First | Others], Types) ->
    lists:foldl(fun(Tests, Known) -> either(Known, tests(Tests, Types)) end, tests(First, Types), Others).

tests(Tests, Types) ->
    case lists:foldl(fun holds/2, Types, Tests) of
        {never, _, _} = Never -> Never;
        Narrowed -> contradiction(lists:sublist(lists:append([conjuncts(Test) || Test <- Tests]), ?MAX_TESTS), Narrowed)
    end.

holds(_, {never, _, _} = Never) -> Never;
holds(Test, Types) ->
    {Holds, _} = test(Test, Types),
    Holds.

-doc "The tests that all have to hold for this one.".
-spec conjuncts(expr()) -> [expr()].
conjuncts({op, _, 'andalso', Left, Right}) -> conjuncts(Left) ++ conjuncts(Right);
conjuncts(Test) -> [Test].

contradiction([Test | Tests], Types) ->
    case [Other || Other <- Tests, witness_spec_overlap:exclusive(Test, Other)] of
        [] -> contradiction(Tests, Types);
        [Other | _] ->
            {Line, Column} = place(Test),
            {never, place(Other), io_lib:format("it contradicts the test in line ~b, column ~b", [Line, Column])}
    end;
contradiction([], Types) ->
    Types.

%% The types if the test is true, and if it is false. Either is `never` if that is impossible; both are if
%% evaluating the test fails. Each expression is visited once, however deeply it is nested.
-spec test(expr(), types()) -> {types() | never(), types() | never()}.
test({op, _, And, Left, Right}, Types) when And =:= 'andalso'; And =:= 'and' ->
    {Holds, Fails} = test(Left, Types),
    {BothHold, OtherFails} = test_after(Right, Holds),
    {BothHold, either(Fails, OtherFails)};
test({op, _, Or, Left, Right}, Types) when Or =:= 'orelse'; Or =:= 'or' ->
    {Holds, Fails} = test(Left, Types),
    {OtherHolds, BothFail} = test_after(Right, Fails),
    {either(Holds, OtherHolds), BothFail};
test({op, _, 'not', Test}, Types) ->
    {Holds, Fails} = test(Test, Types),
    {Fails, Holds};
test({op, _, Op, Left, Right} = Test, Types) ->
    case erl_internal:comp_op(Op, 2) of
        true -> comparison(Op, Left, Right, Test, Types);
        false -> boolean(Test, Types)
    end;
test({call, _, Function, [Argument | Others] = Arguments} = Test, Types) ->
    case type_test(name(Function), length(Arguments)) of
        none ->
            boolean(Test, Types);
        {Kinds, Exactness} ->
            case values(Others, Types) of
                {_, Known} -> test_type(Argument, Kinds, Exactness, Test, Known);
                Never -> {Never, Never}
            end
    end;
test(Test, Types) ->
    boolean(Test, Types).

test_after(_, {never, _, _} = Never) -> {Never, Never};
test_after(Test, Types) -> test(Test, Types).

%% Any other expression that must be true or false.
boolean(Test, Types) ->
    case value(Test, Types) of
        {{value, true}, Known} -> {Known, never(Test, [])};
        {{value, false}, Known} -> {never(Test, []), Known};
        {{value, _}, _} ->
            Neither = {never, place(Test), "a test is `true` or `false`, and this is neither"},
            {Neither, Neither};
        {Value, Known} ->
            Boolean = require(Test, [atom], Value, Known),
            {Boolean, Boolean};
        Never -> {Never, Never}
    end.

%% The kinds that pass a type test, and whether all terms of these kinds pass.
type_test(is_atom, 1) -> {[atom], exact};
type_test(is_boolean, 1) -> {[atom], some};
type_test(is_integer, 1) -> {[integer], exact};
type_test(is_float, 1) -> {[float], exact};
type_test(is_number, 1) -> {?NUMBER, exact};
type_test(is_list, 1) -> {?LIST, exact};
type_test(is_tuple, 1) -> {[tuple], exact};
type_test(is_map, 1) -> {[map], exact};
type_test(is_bitstring, 1) -> {[bitstring], exact};
type_test(is_binary, 1) -> {[bitstring], some};
type_test(is_pid, 1) -> {[pid], exact};
type_test(is_port, 1) -> {[port], exact};
type_test(is_reference, 1) -> {[reference], exact};
type_test(is_function, 1) -> {[function], exact};
type_test(is_function, 2) -> {[function], some};
type_test(is_record, Arity) when Arity =:= 2; Arity =:= 3 -> {[tuple], some};
type_test(_, _) -> none.

test_type(Argument, Kinds, Exactness, Test, Types) ->
    case value(Argument, Types) of
        {never, _, _} = Never ->
            {Never, Never};
        {Value, Known} ->
            Found = kinds_of(Value),
            Holds = case ordsets:intersection(Found, Kinds) of
                [] -> {never, place(Test), hint(Argument, Found)};
                Passing -> narrow(Argument, Passing, Known)
            end,
            Fails = case ordsets:subtract(Found, Kinds) of
                _ when Exactness =:= some -> Known;
                [] -> {never, place(Test), hint(Argument, Found)};
                Failing -> narrow(Argument, Failing, Known)
            end,
            {Holds, Fails}
    end.

comparison(Op, Left, Right, Test, Types) ->
    case values([Left, Right], Types) of
        {[{value, One}, {value, Other}], Known} ->
            case erlang:Op(One, Other) of
                true -> {Known, {never, place(Test), undefined}};
                false -> {{never, place(Test), undefined}, Known}
            end;
        {Values, Known} ->
            case same(Left, Right) of
                true -> reflexive(Op, Test, Known);
                false -> compare(Op, {Left, Right}, Values, Test, Known)
            end;
        Never ->
            {Never, Never}
    end.

same({var, _, Name}, {var, _, Name}) -> true;
same(_, _) -> false.

reflexive(Op, Test, Types) when Op =:= '=:='; Op =:= '=='; Op =:= '>='; Op =:= '=<' ->
    {Types, {never, place(Test), undefined}};
reflexive(_, Test, Types) ->
    {{never, place(Test), undefined}, Types}.

compare('=:=', Operands, [One, Other], Test, Types) ->
    {equal(Operands, kinds_of(One), kinds_of(Other), Test, Types), Types};
compare('==', Operands, [One, Other], Test, Types) ->
    {equal(Operands, numbers(kinds_of(One)), numbers(kinds_of(Other)), Test, Types), Types};
compare(Op, Operands, Values, Test, Types) when Op =:= '=/='; Op =:= '/=' ->
    {Equal, Other} = compare(case Op of '=/=' -> '=:='; '/=' -> '==' end, Operands, Values, Test, Types),
    {Other, Equal};
compare(Op, {Left, Right}, [One, Other], Test, Types) ->
    Lefts = [rank(Kind) || Kind <- kinds_of(One)],
    Rights = [rank(Kind) || Kind <- kinds_of(Other)],
    Hint = case hint(Left, kinds_of(One)) of undefined -> hint(Right, kinds_of(Other)); Found -> Found end,
    Less = lists:max(Lefts) < lists:min(Rights),
    Greater = lists:min(Lefts) > lists:max(Rights),
    Never = {never, place(Test), Hint},
    case Op of
        _ when not Less, not Greater -> {Types, Types};
        _ when (Op =:= '<' orelse Op =:= '=<') =:= Less -> {Types, Never};
        _ -> {Never, Types}
    end.

equal({Left, Right}, One, Other, Test, Types) ->
    case ordsets:intersection(One, Other) of
        [] -> {never, place(Test), unequal(Left, Right, One, Other)};
        Both -> narrow(Right, Both, narrow(Left, Both, Types))
    end.

unequal({string, _, Text}, _, _, [bitstring]) -> witness_spec_elixir_string:binary_hint(Text);
unequal(_, {string, _, Text}, [bitstring], _) -> witness_spec_elixir_string:binary_hint(Text);
unequal(Left, Right, One, Other) -> case hint(Left, One) of undefined -> hint(Right, Other); Hint -> Hint end.

%% `1 == 1.0`.
numbers(Kinds) ->
    case ordsets:is_disjoint(Kinds, ?NUMBER) of
        true -> Kinds;
        false -> ordsets:union(Kinds, ?NUMBER)
    end.

%% Erlang's order of terms.
rank(Number) when Number =:= integer; Number =:= float -> 1;
rank(atom) -> 2;
rank(reference) -> 3;
rank(function) -> 4;
rank(port) -> 5;
rank(pid) -> 6;
rank(tuple) -> 7;
rank(map) -> 8;
rank(nil) -> 9;
rank(cons) -> 10;
rank(bitstring) -> 11.

%% Expressions.

-spec value(expr(), types()) -> {value(), types()} | never().
value({var, _, Name}, Types) -> {{kinds, known(Name, Types)}, Types};
value({Literal, _, Value}, Types) when
        Literal =:= atom; Literal =:= integer; Literal =:= float; Literal =:= char; Literal =:= string ->
    {{value, Value}, Types};
value({nil, _}, Types) -> {{value, []}, Types};
value({cons, _, Head, Tail}, Types) ->
    case values([Head, Tail], Types) of
        {[{value, First}, {value, Rest}], Known} -> {{value, [First | Rest]}, Known};
        {_, Known} -> {{kinds, [cons]}, Known};
        Never -> Never
    end;
value({tuple, _, Elements}, Types) ->
    case values(Elements, Types) of
        {Values, Known} ->
            case [Value || {value, Value} <- Values] of
                All when length(All) =:= length(Values) -> {{value, list_to_tuple(All)}, Known};
                _ -> {{kinds, [tuple]}, Known}
            end;
        Never -> Never
    end;
value({map, _, _}, Types) -> {{kinds, [map]}, Types};
value({map, _, Map, _}, Types) -> apply_function([Map], [[map]], fun(_) -> {kinds, [map]} end, Types);
value({bin, _, _}, Types) -> {{kinds, [bitstring]}, Types};
value({op, _, Op, Operand}, Types) when Op =:= '+'; Op =:= '-'; Op =:= 'bnot' ->
    arithmetic(Op, [Operand], Types);
%% These two return their right operand, which can be any term.
value({op, _, Op, _, _}, Types) when Op =:= 'andalso'; Op =:= 'orelse' -> {{kinds, ?ANY}, Types};
value({op, _, Op, Left, Right} = Expr, Types) ->
    case erl_internal:arith_op(Op, 2) of
        true ->
            case arithmetic(Op, [Left, Right], Types) of
                {failed, _} -> {never, place(Expr), "this cannot be calculated"};
                Result -> Result
            end;
        false when Op =:= 'xor' ->
            apply_function([Left, Right], [[atom], [atom]], fun(_) -> {kinds, [atom]} end, Types);
        false ->
            tested(test(Expr, Types))
    end;
value({op, _, 'not', _} = Expr, Types) -> tested(test(Expr, Types));
value({call, _, {var, _, _} = Let, Arguments}, Types) ->
    case values(Arguments, Types) of
        {_, Known} -> value(Let, Known);
        Never -> Never
    end;
value({call, _, Function, Arguments} = Expr, Types) ->
    Name = name(Function),
    Arity = length(Arguments),
    case type_test(Name, Arity) of
        none ->
            {Needed, Result} = bif(Name, Arity),
            apply_function(Arguments, Needed, fun(_) -> {kinds, Result} end, Types);
        _ ->
            tested(test(Expr, Types))
    end.

tested({{never, _, _} = Never, {never, _, _}}) -> Never;
tested({{never, _, _}, Types}) -> {{value, false}, Types};
tested({Types, {never, _, _}}) -> {{value, true}, Types};
tested({Holds, Fails}) -> {{kinds, [atom]}, join(Holds, Fails)}.

values([Expr | Exprs], Types) ->
    case value(Expr, Types) of
        {Value, Known} ->
            case values(Exprs, Known) of
                {Values, After} -> {[Value | Values], After};
                Never -> Never
            end;
        Never -> Never
    end;
values([], Types) ->
    {[], Types}.

%% A function with arguments that must be of certain kinds.
apply_function(Arguments, Needed, Result, Types) ->
    case values(Arguments, Types) of
        {Values, Known} ->
            case lists:foldl(fun demand/2, Known, lists:zip3(Arguments, Needed, Values)) of
                {never, _, _} = Never -> Never;
                After -> {Result(Values), After}
            end;
        Never -> Never
    end.

demand(_, {never, _, _} = Never) -> Never;
demand({Argument, Kinds, Value}, Types) -> require(Argument, Kinds, Value, Types).

require(Expr, Kinds, Value, Types) ->
    Found = kinds_of(Value),
    case ordsets:intersection(Found, Kinds) of
        [] -> never(Expr, Found);
        Both -> narrow(Expr, Both, Types)
    end.

arithmetic(Op, Operands, Types) ->
    Needed = case lists:member(Op, ['+', '-', '*', '/']) of true -> ?NUMBER; false -> [integer] end,
    apply_function(Operands, [Needed || _ <- Operands], fun(Values) -> calculate(Op, Values) end, Types).

%% Shifts are not computed: their results can have any size.
calculate(Op, [{value, One}]) when abs(One) < ?MAX_INTEGER -> {value, erlang:Op(One)};
calculate(Op, [{value, One}, {value, Other}]) when
        Op =/= 'bsl', Op =/= 'bsr', abs(One) < ?MAX_INTEGER, abs(Other) < ?MAX_INTEGER ->
    try
        {value, erlang:Op(One, Other)}
    catch
        error:badarith -> failed
    end;
calculate('/', _) -> {kinds, [float]};
calculate(Op, Values) when Op =:= '+'; Op =:= '-'; Op =:= '*' ->
    case lists:all(fun(Value) -> kinds_of(Value) =:= [integer] end, Values) of
        true -> {kinds, [integer]};
        false -> {kinds, ?NUMBER}
    end;
calculate(_, _) -> {kinds, [integer]}.

%% The kinds of arguments and results of the guard BIFs.
bif(abs, 1) -> {[?NUMBER], ?NUMBER};
bif(Size, 1) when Size =:= bit_size; Size =:= byte_size -> {[[bitstring]], [integer]};
bif(Round, 1) when Round =:= ceil; Round =:= floor; Round =:= round; Round =:= trunc -> {[?NUMBER], [integer]};
bif(binary_part, 2) -> {[[bitstring], [tuple]], [bitstring]};
bif(binary_part, 3) -> {[[bitstring], [integer], [integer]], [bitstring]};
bif(element, 2) -> {[[integer], [tuple]], ?ANY};
bif(float, 1) -> {[?NUMBER], [float]};
bif(Part, 1) when Part =:= hd; Part =:= tl -> {[[cons]], ?ANY};
bif(is_map_key, 2) -> {[?ANY, [map]], [atom]};
bif(length, 1) -> {[?LIST], [integer]};
bif(map_get, 2) -> {[?ANY, [map]], ?ANY};
bif(map_size, 1) -> {[[map]], [integer]};
bif(node, 0) -> {[], [atom]};
bif(node, 1) -> {[[pid, port, reference]], [atom]};
bif(self, 0) -> {[], [pid]};
bif(size, 1) -> {[[bitstring, tuple]], [integer]};
bif(tuple_size, 1) -> {[[tuple]], [integer]};
bif(_, Arity) -> {lists:duplicate(Arity, ?ANY), ?ANY}.

name({atom, _, Name}) -> Name;
name({remote, _, _, {atom, _, Name}}) -> Name;
name({var, _, Let}) -> Let.

%% Types.

known(Name, Types) -> maps:get(Name, Types, ?ANY).

narrow(_, _, {never, _, _} = Never) -> Never;
narrow({var, _, Name} = Variable, Kinds, Types) ->
    Known = known(Name, Types),
    case ordsets:intersection(Known, Kinds) of
        [] -> never(Variable, Known);
        Both -> Types#{Name => Both}
    end;
narrow(_, _, Types) -> Types.

either({never, _, _} = Never, {never, _, _}) -> Never;
either({never, _, _}, Types) -> Types;
either(Types, {never, _, _}) -> Types;
either(Left, Right) -> join(Left, Right).

kinds_of({kinds, Kinds}) -> Kinds;
kinds_of({value, []}) -> [nil];
kinds_of({value, Value}) when is_integer(Value) -> [integer];
kinds_of({value, Value}) when is_float(Value) -> [float];
kinds_of({value, Value}) when is_atom(Value) -> [atom];
kinds_of({value, Value}) when is_tuple(Value) -> [tuple];
kinds_of({value, Value}) when is_list(Value) -> [cons].

never(Expr, Kinds) -> {never, place(Expr), hint(Expr, Kinds)}.

place(Expr) ->
    Anno = element(2, Expr),
    {erl_anno:line(Anno), erl_anno:column(Anno)}.

%% Hints do not name variables that the author did not write.
hint({var, _, Name}, Kinds) when Kinds =/= [], length(Kinds) =< ?MAX_WORDS ->
    case atom_to_list(Name) of
        "_@" ++ _ -> undefined;
        Written -> [witness_spec_diagnostic:quote(Written), " is ", words(Kinds), " here"]
    end;
hint(_, Kinds) when Kinds =:= ?PROCESS; Kinds =:= [atom | ?PROCESS] -> "a process is a pid";
hint(_, ?RECEIVER) -> "a message is sent to a pid, a port, a name, `{Name, Node}` or an alias, which is a reference";
hint(_, _) -> undefined.

words(?PROCESS) -> "a process";
words(Kinds) ->
    Groups = [{?LIST, "a list"}, {?NUMBER, "a number"}],
    {Words, Left} = lists:foldl(fun({Group, Word}, {Found, Rest}) ->
        case ordsets:is_subset(Group, Rest) of
            true -> {[Word | Found], ordsets:subtract(Rest, Group)};
            false -> {Found, Rest}
        end
    end, {[], Kinds}, Groups),
    lists:join(" or ", lists:sort(Words ++ [word(Kind) || Kind <- Left])).

word(nil) -> "the empty list";
word(cons) -> "a list with elements";
word(bitstring) -> "a binary";
word(Kind) when Kind =:= atom; Kind =:= integer -> ["an ", atom_to_list(Kind)];
word(Kind) -> ["a ", atom_to_list(Kind)].
