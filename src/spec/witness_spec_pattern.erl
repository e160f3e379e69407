-module(witness_spec_pattern).
-moduledoc """
The Erlang inside a specification: patterns and guards, with records.

Erlang's own parser reads them; this module ensures that the result is a pattern, a guard, or an expression that always ends, and nothing
else, so that no specification can run code. Erlang's linter finds remaining errors (such as a variable that is unbound inside a
binary) when the generated module is compiled.

Functions throw a `t:witness_spec_diagnostic:finding/0`.
""".

-export([pattern/3, guard/2, expression/3, check/2, split/3, split_enclosed/1, split_before/2, split_guard/1, variables/1,
         occurrences/1]).
-export_type([expr/0, guard/0]).

-doc "A pattern or a guard test in the abstract format.".
-type expr() :: erl_parse:abstract_expr().
-doc "Alternatives of tests that must all hold; `[]` means no guard.".
-type guard() :: [[expr()]].

-type token() :: witness_spec_scan:token().
-type location() :: witness_spec_diagnostic:location().

-doc "Reads a pattern. `What` names it in errors, `End` is the place after it.".
-spec pattern([token()], What :: unicode:chardata(), End :: location()) -> expr().
pattern([], What, End) ->
    fail(End, syntax, ["expected a pattern for ", What]);
pattern(Tokens, What, End) ->
    check_size(Tokens),
    case parse(Tokens, End) of
        [Expr] -> is_pattern(Expr), Expr;
        [_, Second | _] -> fail(location(Second), syntax, ["expected one pattern for ", What, ", found several"])
    end.

-doc "Reads what follows `when`: tests separated by `,`, alternatives separated by `;`.".
-spec guard([token()], End :: location()) -> guard().
guard(Tokens, End) ->
    check_size(Tokens),
    [begin
         Tests = parse(Alternative, AlternativeEnd),
         lists:foreach(fun is_guard/1, Tests),
         Tests
     end || {Alternative, AlternativeEnd} <- split(Tokens, ';', End)].

-doc """
Reads the value of a parameter: what a guard may compute, `++`, and functions of bounded cost (`functions/0`). `What` names it in errors.
""".
-spec expression([token()], What :: unicode:chardata(), End :: location()) -> expr().
expression([], What, End) ->
    fail(End, syntax, ["expected ", What]);
expression(Tokens, What, End) ->
    check_size(Tokens),
    case parse(Tokens, End) of
        [Expr] -> is_value(Expr), Expr;
        [_, Second | _] -> fail(location(Second), syntax, ["expected ", What, ", found several"])
    end.

-doc "Throws what is wrong with an expression in a pattern, in a guard, or in the value of a parameter.".
-spec check(pattern | guard | value, expr()) -> ok.
check(pattern, Expr) -> is_pattern(Expr), ok;
check(_, {var, Anno, '_'}) -> fail(location({var, Anno}), not_a_value, "`_` has no value");
check(guard, Expr) -> is_guard(Expr), ok;
check(value, Expr) -> is_value(Expr), ok.

%% Their time is at most proportional to the size of their arguments, which is bounded. They have no effect.
functions() -> [{lists, delete, 2}, {lists, member, 2}, {maps, get, 3}, {maps, put, 3}, {maps, remove, 2}].

%% The compiler's time grows faster than the size of a pattern or guard, and above some size it gives up. Long words count
%% as several.
-define(MAX_SIZE, 2_500).
-define(WORD_CHARACTERS, 16).

check_size([]) ->
    ok;
check_size([First | _] = Tokens) ->
    Size = lists:sum([1 + length(witness_spec_scan:token_text(Token)) div ?WORD_CHARACTERS || Token <- Tokens]),
    Size =< ?MAX_SIZE orelse
        fail(witness_spec_scan:location(First), too_large,
             io_lib:format("a pattern or guard has at most ~b words and signs", [?MAX_SIZE])),
    ok.

parse([], End) ->
    fail(End, syntax, "expected a guard test");
parse(Tokens, End) ->
    case erl_parse:parse_exprs(Tokens ++ [{dot, erl_anno:new(End)}]) of
        {ok, Exprs} ->
            [erl_parse:map_anno(fun plain/1, Expr) || Expr <- Exprs];
        {error, {Anno, Module, Reason}} ->
            check_words(Tokens),
            Location = location({error, Anno}),
            Text = case lists:flatten(Module:format_error(Reason)) of
                "syntax error before: " ++ [] -> incomplete();
                "syntax error before: " ++ _ when Location =:= End -> incomplete();
                "syntax error before: " ++ Before ->
                    check_unit(Tokens, Location),
                    ["syntax error before ", witness_spec_diagnostic:quote(Before)];
                Other -> Other
            end,
            fail(Location, syntax, Text)
    end.

%% Words of Erlang that have no place in a pattern or guard.
check_words(Tokens) ->
    [witness_spec_scan:refuse(Token, ["`", atom_to_list(Word), "` is a word of Erlang"],
                              ["as an atom it is written `'", atom_to_list(Word), "'`"])
     || {Word, _} = Token <- Tokens,
        lists:member(Word, ['after', 'begin', 'case', 'catch', 'else', 'end', 'fun', 'if', 'let', 'maybe', 'of', 'receive',
                            'try'])].

check_unit([Number, Next | _], Location) when element(1, Number) =:= integer; element(1, Number) =:= float ->
    At = witness_spec_scan:location(Next),
    At =/= Location orelse not witness_spec_time:is_unknown_unit(Number, Next) orelse
        throw(witness_spec_diagnostic:error(At, syntax,
            [witness_spec_diagnostic:quote(witness_spec_scan:token_text(Next)), " is not a unit of time"], witness_spec_time:units()));
check_unit([_ | Tokens], Location) -> check_unit(Tokens, Location);
check_unit([], _) -> ok.

incomplete() -> "this pattern or guard is not complete".

plain(Anno) -> erl_anno:new({erl_anno:line(Anno), erl_anno:column(Anno)}).

-doc """
Splits tokens at the separators that are outside brackets; each part comes with the place where it ends.
""".
-spec split([token()], Separator :: atom(), End :: location()) -> [{[token()], location()}].
split(Tokens, Separator, End) -> split(Tokens, Separator, End, 0, []).

split([{Separator, _} = Token | Rest], Separator, End, 0, Part) ->
    [{lists:reverse(Part), witness_spec_scan:location(Token)} | split(Rest, Separator, End, 0, [])];
split([Token | Rest], Separator, End, Depth, Part) ->
    split(Rest, Separator, End, Depth + nesting(Token), [Token | Part]);
split([], _, End, _, Part) ->
    [{lists:reverse(Part), End}].

nesting({Symbol, _} = Token) ->
    case witness_spec_scan:closing(Token) of
        none when Symbol =:= ')'; Symbol =:= ']'; Symbol =:= '}'; Symbol =:= '>>' -> -1;
        none -> 0;
        _ -> 1
    end;
nesting(_) ->
    0.

-doc """
The contents of the first bracket: the tokens inside, the closing bracket, and
the tokens after it.
""".
-spec split_enclosed([token(), ...]) -> {[token()], token(), [token()]}.
split_enclosed([Open | Rest]) -> split_enclosed(Rest, [Open], []).

split_enclosed([{Symbol, _} = Token | Rest], [Open | Outer] = Stack, Inside) when Symbol =/= dot, Symbol =/= eof ->
    case witness_spec_scan:closing(Open) of
        Symbol when Outer =:= [] -> {lists:reverse(Inside), Token, Rest};
        Symbol -> split_enclosed(Rest, Outer, [Token | Inside]);
        Expected ->
            case nesting(Token) of
                1 -> split_enclosed(Rest, [Token | Stack], [Token | Inside]);
                0 -> split_enclosed(Rest, Stack, [Token | Inside]);
                -1 -> mismatch(Token, Expected, Open)
            end
    end;
split_enclosed([{dot, _} = Token | _], [Open | _], _) ->
    mismatch(Token, witness_spec_scan:closing(Open), Open);
split_enclosed([{eof, _} | _], [Open | _], _) ->
    never_closed(Open);
split_enclosed([Token | Rest], Stack, Inside) ->
    split_enclosed(Rest, Stack, [Token | Inside]);
split_enclosed([], [Open | _], _) ->
    never_closed(Open).

-doc """
The tokens before the first one outside brackets for which `Stop` is true, and the tokens from there on. `Stop`
gets the remaining tokens, at least one, and those taken so far, the last one first.
""".
-spec split_before([token()], Stop :: fun(([token(), ...], Taken :: [token()]) -> boolean())) -> {[token()], [token()]}.
split_before(Tokens, Stop) -> split_before(Tokens, [], Stop).

split_before([Token | Rest] = Tokens, Taken, Stop) ->
    case Stop(Tokens, Taken) of
        true ->
            {lists:reverse(Taken), Tokens};
        false ->
            case witness_spec_scan:closing(Token) of
                none ->
                    split_before(Rest, [Token | Taken], Stop);
                _ ->
                    {Inside, Close, After} = split_enclosed(Tokens),
                    split_before(After, [Close | lists:reverse([Token | Inside], Taken)], Stop)
            end
    end;
split_before([], Taken, _) ->
    {lists:reverse(Taken), []}.

-doc "The tokens in front of a guard, and its `when` with what stands behind it; `[]` without a guard.".
-spec split_guard([token()]) -> {[token()], [token()]}.
split_guard(Tokens) -> split_before(Tokens, fun([Token | _], _) -> element(1, Token) =:= 'when' end).

-spec never_closed(token()) -> no_return().
never_closed(Open) ->
    fail(witness_spec_scan:location(Open), syntax,
         [witness_spec_diagnostic:quote(witness_spec_scan:token_text(Open)), " is never closed"]).

-spec mismatch(token(), atom(), token()) -> no_return().
mismatch(Found, Expected, Open) ->
    {Line, Column} = witness_spec_scan:location(Open),
    throw(witness_spec_diagnostic:error(witness_spec_scan:location(Found), syntax,
        ["expected ", witness_spec_diagnostic:quote(atom_to_list(Expected)), ", found ",
         witness_spec_diagnostic:quote(witness_spec_scan:token_text(Found))],
        io_lib:format("to close the `~s` of line ~b, column ~b", [witness_spec_scan:token_text(Open), Line, Column]))).

is_pattern({Kind, _, _}) when
        Kind =:= var; Kind =:= atom; Kind =:= integer; Kind =:= float; Kind =:= char; Kind =:= string ->
    ok;
is_pattern({nil, _}) -> ok;
is_pattern({cons, _, Head, Tail}) -> is_pattern(Head), is_pattern(Tail);
is_pattern({tuple, _, Elements}) -> lists:foreach(fun is_pattern/1, Elements);
is_pattern({match, _, Left, Right}) -> is_pattern(Left), is_pattern(Right);
is_pattern({map, _, Fields}) -> lists:foreach(fun is_field/1, Fields);
is_pattern({bin, _, Elements}) -> lists:foreach(fun is_segment/1, Elements);
is_pattern({record, _, Name, Fields}) when is_atom(Name) -> lists:foreach(fun is_record_field/1, Fields);
is_pattern({record_index, _, Name, _}) when is_atom(Name) -> ok;
is_pattern({op, _, '++', Left, Right}) -> is_pattern(Left), is_pattern(Right);
is_pattern({op, _, _, _, _} = Expr) -> is_constant(Expr);
is_pattern({op, _, _, _} = Expr) -> is_constant(Expr);
is_pattern({call, _, {var, _, _}, _} = Expr) ->
    throw(witness_spec_diagnostic:error(location(Expr), not_a_pattern, "a value for a variable has no place in a pattern",
        "compare it in a guard, as in `{_ ? {bid, Item, N} when N =:= Highest(Item)}`"));
is_pattern({call, _, _, _} = Expr) ->
    throw(witness_spec_diagnostic:error(location(Expr), not_a_pattern, "this is not an Erlang pattern",
        "`call(...)`, `cast(...)`, `reply(...)` and the like stand for whole messages only"));
is_pattern(Expr) -> fail(location(Expr), not_a_pattern, "this is not an Erlang pattern").

is_field({map_field_exact, _, Key, Value}) -> is_guard(Key), is_pattern(Value);
is_field({map_field_assoc, Anno, _, _}) ->
    fail(location({map, Anno}), not_a_pattern, "a pattern matches a map field with `:=`, not with `=>`").

is_record_field({record_field, _, {atom, _, _}, Value}) -> is_pattern(Value);
is_record_field({record_field, _, {var, _, '_'}, Value}) -> is_pattern(Value);
is_record_field({record_field, _, Name, _}) -> fail(location(Name), not_a_pattern, "this is not the name of a field").

is_segment({bin_element, _, Value, Size, _}) ->
    is_pattern(Value),
    case Size of default -> ok; _ -> is_guard(Size) end.

is_constant({Kind, _, _}) when Kind =:= integer; Kind =:= float; Kind =:= char -> ok;
is_constant({op, _, Op, Left, Right} = Expr) ->
    operator(Expr, Op, 2, not_a_pattern), is_constant(Left), is_constant(Right);
is_constant({op, _, Op, Operand} = Expr) ->
    operator(Expr, Op, 1, not_a_pattern), is_constant(Operand);
is_constant(Expr) ->
    fail(location(Expr), not_a_pattern, "an operator in a pattern needs numbers on both sides").

operator(Expr, Op, Arity, Code) ->
    case erl_internal:arith_op(Op, Arity) of
        true -> ok;
        false -> fail(location(Expr), Code, ["`", atom_to_list(Op), "` has no place in a pattern"])
    end.

is_guard({Kind, _, _}) when
        Kind =:= var; Kind =:= atom; Kind =:= integer; Kind =:= float; Kind =:= char; Kind =:= string ->
    ok;
is_guard({nil, _}) -> ok;
is_guard({cons, _, Head, Tail}) -> is_guard(Head), is_guard(Tail);
is_guard({tuple, _, Elements}) -> lists:foreach(fun is_guard/1, Elements);
is_guard({map, _, Fields}) -> lists:foreach(fun is_guard_field/1, Fields);
is_guard({map, _, Map, Fields}) -> is_guard(Map), lists:foreach(fun is_guard_field/1, Fields);
is_guard({bin, _, Elements}) -> lists:foreach(fun is_guard_segment/1, Elements);
is_guard({record_field, _, Value, Name, {atom, _, _}}) when is_atom(Name) -> is_guard(Value);
is_guard({record_index, _, Name, _}) when is_atom(Name) -> ok;
is_guard({record, _, _, _} = Expr) -> refuse_record(Expr);
is_guard({record, _, _, _, _} = Expr) -> refuse_record(Expr);
is_guard({op, _, Op, Left, Right} = Expr) when Op =/= '!', Op =/= '++', Op =/= '--' ->
    allow(lists:member(Op, ['andalso', 'orelse']) orelse binary_operator(Op), Expr), is_guard(Left), is_guard(Right);
is_guard({op, _, Op, Operand} = Expr) ->
    allow(erl_internal:arith_op(Op, 1) orelse erl_internal:bool_op(Op, 1), Expr), is_guard(Operand);
is_guard({call, _, {atom, _, Name}, Arguments} = Expr) -> function(Name, Arguments, Expr);
%% The value of a `let` for these: `m:witness_spec_let` finds what is none.
is_guard({call, _, {var, _, Name}, [_ | _] = Arguments}) when Name =/= '_' -> lists:foreach(fun is_guard/1, Arguments);
is_guard({call, _, {remote, _, {atom, _, erlang}, {atom, _, Name}}, Arguments} = Expr) ->
    function(Name, Arguments, Expr);
is_guard({call, _, {remote, _, {atom, _, Module}, {atom, _, Name}}, Arguments} = Expr) ->
    Arity = length(Arguments),
    not_a_guard(Expr, io_lib:format("~tw:~tw/~b", [Module, Name, Arity]), case lists:member({Module, Name, Arity}, functions()) of
        true -> "; the value of a parameter may call this one";
        false -> ""
    end);
is_guard(Expr) -> no_place(Expr).

is_value({Kind, _, _} = Expr) when
        Kind =:= var; Kind =:= atom; Kind =:= integer; Kind =:= float; Kind =:= char; Kind =:= string; Kind =:= tuple; Kind =:= map;
        Kind =:= bin ->
    in_value(Expr);
is_value({Kind, _, _, _} = Expr) when Kind =:= cons; Kind =:= map; Kind =:= op; Kind =:= call -> in_value(Expr);
is_value({op, _, _, _, _} = Expr) -> in_value(Expr);
is_value({nil, _}) -> ok;
is_value(Expr) -> in_value(Expr), not_a_value(location(Expr), "this has no place in a value").

in_value(Expr) ->
    try is_guard(as_guard(Expr))
    catch throw:{error, Location, not_a_guard, Text, _} -> not_a_value(Location, string:replace(Text, "a guard", "a value"))
    end.

-spec not_a_value(location(), unicode:chardata()) -> no_return().
not_a_value(Location, Text) ->
    throw(witness_spec_diagnostic:error(Location, not_a_value, Text,
        ["a value is what a guard can compute, with `++` and calls of ", known_functions()])).

known_functions() -> lists:join(", ", [io_lib:format("~w:~w/~b", [M, F, A]) || {M, F, A} <- functions()]).

%% What a guard has not is replaced by a tuple of its arguments: then it is an expression as in guards.
as_guard({call, Anno, {remote, _, {atom, _, Module}, {atom, _, Name}}, Arguments} = Call) ->
    case lists:member({Module, Name, length(Arguments)}, functions()) of
        true -> {tuple, Anno, as_guard(Arguments)};
        false when Module =:= erlang -> setelement(4, Call, as_guard(Arguments));
        false ->
            throw(witness_spec_diagnostic:error(location(Call), not_a_value,
                [witness_spec_diagnostic:quote(io_lib:format("~tw:~tw/~b", [Module, Name, length(Arguments)])),
                 " is not a function that a value may call"],
                ["there are ", known_functions(), ", and what guards may call, such as min/2 or map_size/1"]))
    end;
as_guard({call, _, {atom, _, is_record}, _} = Call) -> fail_record(Call);
as_guard({Record, _, _, _, _} = Expr) when Record =:= record_field; Record =:= record -> fail_record(Expr);
as_guard({record, _, _, _} = Expr) -> fail_record(Expr);
as_guard({record_index, _, _, _} = Expr) -> fail_record(Expr);
as_guard({op, Anno, '++', Left, Right}) -> {tuple, Anno, [as_guard(Left), as_guard(Right)]};
as_guard({var, _, '_'} = Expr) -> fail(location(Expr), not_a_value, "`_` has no value");
as_guard(Expr) when is_tuple(Expr) -> list_to_tuple([as_guard(Part) || Part <- tuple_to_list(Expr)]);
as_guard([Expr | Exprs]) -> [as_guard(Expr) | as_guard(Exprs)];
as_guard(Part) -> Part.

-spec fail_record(expr()) -> no_return().
fail_record(Expr) ->
    throw(witness_spec_diagnostic:error(location(Expr), not_a_value, "a value takes no records",
        "bind the field in the pattern of the action, as in `_ ? #name{field = V}`")).

is_guard_field({_, _, Key, Value}) -> is_guard(Key), is_guard(Value).

is_guard_segment({bin_element, _, Value, Size, _}) ->
    is_guard(Value),
    case Size of default -> ok; _ -> is_guard(Size) end.

binary_operator(Op) ->
    erl_internal:arith_op(Op, 2) orelse erl_internal:bool_op(Op, 2) orelse erl_internal:comp_op(Op, 2).

function(Name, Arguments, Expr) ->
    Arity = length(Arguments),
    case erl_internal:guard_bif(Name, Arity) orelse erl_internal:new_type_test(Name, Arity) of
        true -> lists:foreach(fun is_guard/1, Arguments);
        false -> not_a_guard(Expr, io_lib:format("~tw/~b", [Name, Arity]), "")
    end.

-spec not_a_guard(expr(), unicode:chardata(), string()) -> no_return().
not_a_guard(Expr, Function, Elsewhere) ->
    throw(witness_spec_diagnostic:error(location(Expr), not_a_guard,
        [witness_spec_diagnostic:quote(Function), " is not a function that a guard may call"],
        ["guards may call Erlang's guard BIFs only, such as is_pid/1 or length/1", Elsewhere])).

-spec refuse_record(expr()) -> no_return().
refuse_record(Expr) ->
    throw(witness_spec_diagnostic:error(location(Expr), not_a_guard, "a guard does not make records",
        "match the record in the pattern, or compare its fields: `R#name.field =:= Value`")).

allow(true, _) -> ok;
allow(false, Expr) -> no_place(Expr).

-spec no_place(expr()) -> no_return().
no_place(Expr) -> fail(location(Expr), not_a_guard, "this has no place in a guard").

-doc "The names of all variables in a pattern or guard, without `_`.".
-spec variables(expr() | guard() | [expr()]) -> ordsets:ordset(atom()).
variables(Expr) -> ordsets:from_list([Name || {Name, _} <- occurrences(Expr)]).

-doc "Every occurrence of a variable other than `_`, from left to right.".
-spec occurrences(expr() | guard() | [expr()]) -> [{atom(), location()}].
occurrences(Expr) -> lists:reverse(occurrences(Expr, [])).

occurrences({var, _, '_'}, Found) -> Found;
occurrences({var, Anno, Name}, Found) -> [{Name, location({var, Anno})} | Found];
occurrences({Literal, _, _}, Found) when
        Literal =:= atom; Literal =:= integer; Literal =:= float; Literal =:= char; Literal =:= string ->
    Found;
occurrences(Tuple, Found) when is_tuple(Tuple) -> occurrences(tuple_to_list(Tuple), Found);
occurrences([Head | Tail], Found) -> occurrences(Tail, occurrences(Head, Found));
occurrences(_, Found) -> Found.

location(Expr) ->
    Anno = element(2, Expr),
    {erl_anno:line(Anno), erl_anno:column(Anno)}.

-spec fail(location(), atom(), unicode:chardata()) -> no_return().
fail(Location, Code, Text) -> throw(witness_spec_diagnostic:error(Location, Code, Text)).
