-module(witness_spec_monpoly_parse).
-moduledoc """
Reads formulas, signatures and logs of MonPoly.

Operators are left with those that `t:formula/0` has: `ONCE` is `TRUE SINCE`, and `ALWAYS` is `NOT EVENTUALLY NOT`. A predicate of
`LET` becomes its body. Each bound variable has a name of its own.
""".

-export([formula/1, order/1, signature/1, log/2, free/1]).
-export_type([formula/0, argument/0, interval/0, signature/0, log/0]).

-type argument() ::
    {var, string()}
  | {value, integer() | float() | binary()}
  | {operation, string(), [argument()]}.
-type interval() :: {Least :: integer(), Greatest :: integer() | infinity}.
-type formula() ::
    boolean()
  | {event, Name :: binary(), [argument()]}
  | {compare, Operator :: string(), argument(), argument()}
  | {'not', formula()}
  | {'and' | 'or', formula(), formula()}
  | {previous | next, interval(), formula()}
  | {since | until, interval(), formula(), formula()}
  | {exists, Variable :: string(), formula()}
  | {aggregate, Result :: argument(), Operator :: string(), Of :: string(), Groups :: [argument()], formula()}.
-type signature() :: #{Name :: binary() => [Type :: binary()]}.
-type log() :: [{Seconds :: integer(), [{Name :: binary(), [integer() | float() | binary()]}]}].

%% Formulas.

-doc "Throws `{outside, Reason}` if the formula has what is not translated.".
-spec formula(binary()) -> formula().
formula(Text) ->
    {F, []} = formula(0, tokens(Text)),
    {Expanded, _} = expand(F, #{}, #{}, 1),
    Expanded.

-doc "The free variables in the order in which MonPoly prints their values.".
-spec order(binary()) -> [string()].
order(Text) ->
    {F, []} = formula(0, tokens(Text)),
    lists:uniq(ordered(F)).

ordered({'let', _, _, _, F}) -> ordered(F);
ordered({exists, Variable, F}) -> [Other || Other <- ordered(F), Other =/= Variable];
ordered({aggregate, Result, _, _, Groups, _}) -> ordered([Result | Groups]);
ordered({Operator, _, F, G}) when Operator =:= since; Operator =:= until -> ordered(G) ++ ordered(F);
ordered({var, Variable}) -> [Variable];
ordered(F) when is_tuple(F) -> ordered(tuple_to_list(F));
ordered([_ | _] = Several) -> lists:append([ordered(One) || One <- Several]);
ordered(_) -> [].

tokens(Text) ->
    Plain = re:replace(Text, ~"#[^\\n]*", " ", [global, {return, binary}]),
    all(Plain, ~"r?\"(?:[^\"\\\\]|\\\\.)*\"|-?[0-9]+\\.[0-9]*|-?[0-9]+(?![A-Za-z0-9_])|[A-Za-z0-9_]+|<-|<=|>=|[^\\s]").

all(Text, Pattern) ->
    case re:run(Text, Pattern, [global, {capture, first, binary}]) of
        {match, Found} -> [Token || [Token] <- Found];
        nomatch -> []
    end.

%% Operators with at least this precedence.
formula(Least, Tokens) ->
    {F, Rest} = prefix(Tokens),
    binary(Least, F, Rest).

binary(Least, F, [Word | Tokens] = All) ->
    case operator(Word) of
        {Operator, Precedence, Right} when Precedence >= Least ->
            {Interval, Operand} = case Precedence of 1 -> interval(Tokens); _ -> {none, Tokens} end,
            {G, Rest} = formula(Right, Operand),
            binary(Least, both(Operator, Interval, F, G), Rest);
        _ -> {F, All}
    end;
binary(_, F, []) -> {F, []}.

operator(~"SINCE") -> {since, 1, 1};
operator(~"UNTIL") -> {until, 1, 1};
operator(~"EQUIV") -> {equivalent, 4, 5};
operator(~"IMPLIES") -> {implies, 5, 5};
operator(~"OR") -> {'or', 6, 7};
operator(~"AND") -> {'and', 7, 8};
operator(_) -> none.

both(Operator, none, F, G) when Operator =:= 'and'; Operator =:= 'or' -> {Operator, F, G};
both(implies, none, F, G) -> {'or', {'not', F}, G};
both(equivalent, none, F, G) -> {'or', {'and', F, G}, {'and', {'not', F}, {'not', G}}};
both(Operator, Interval, F, G) -> {Operator, Interval, F, G}.

prefix([~"TRUE" | Rest]) -> {true, Rest};
prefix([~"FALSE" | Rest]) -> {false, Rest};
prefix([~"NOT" | Tokens]) ->
    {F, Rest} = formula(9, Tokens),
    {{'not', F}, Rest};
prefix([~"LET", Name | Tokens]) ->
    {Parameters, [~"=" | Body]} = arguments(Tokens),
    {F, [~"IN" | Scope]} = formula(0, Body),
    {G, Rest} = formula(0, Scope),
    {{'let', Name, [Parameter || {var, Parameter} <- Parameters], F, G}, Rest};
prefix([~"LETPAST" | _]) -> throw({outside, "`LETPAST`"});
prefix([Word | Tokens]) when Word =:= ~"EXISTS"; Word =:= ~"FORALL" ->
    {Variables, [~"." | Body]} = variables(Tokens),
    {F, Rest} = formula(4, Body),
    {case Word of
         ~"EXISTS" -> exists(Variables, F);
         ~"FORALL" -> {'not', exists(Variables, {'not', F})}
     end, Rest};
prefix([Variable, ~"<-", Word, Of | Tokens]) ->
    {Groups, Body} = case Tokens of
        [~";" | More] -> variables(More);
        _ -> {[], Tokens}
    end,
    {F, Rest} = formula(0, Body),
    Operator = string:lowercase(binary_to_list(Word)),
    {{aggregate, {var, name(Variable)}, Operator, name(Of), [{var, Group} || Group <- Groups], F}, Rest};
prefix([Word | Tokens]) when Word =:= ~"PREVIOUS"; Word =:= ~"PREV"; Word =:= ~"NEXT"; Word =:= ~"ONCE"; Word =:= ~"EVENTUALLY";
                             Word =:= ~"SOMETIMES"; Word =:= ~"ALWAYS"; Word =:= ~"PAST_ALWAYS"; Word =:= ~"HISTORICALLY" ->
    {Interval, Operand} = interval(Tokens),
    {F, Rest} = formula(3, Operand),
    {temporal(Word, Interval, F), Rest};
prefix(Tokens) ->
    try comparison(Tokens)
    catch throw:no -> other(Tokens)
    end.

temporal(Word, Interval, F) when Word =:= ~"PREVIOUS"; Word =:= ~"PREV" -> {previous, Interval, F};
temporal(~"NEXT", Interval, F) -> {next, Interval, F};
temporal(~"ONCE", Interval, F) -> {since, Interval, true, F};
temporal(Word, Interval, F) when Word =:= ~"EVENTUALLY"; Word =:= ~"SOMETIMES" -> {until, Interval, true, F};
temporal(~"ALWAYS", Interval, F) -> {'not', {until, Interval, true, {'not', F}}};
temporal(_, Interval, F) -> {'not', {since, Interval, true, {'not', F}}}.

other([~"(" | Tokens]) ->
    case formula(0, Tokens) of
        {F, [~")" | Rest]} -> {F, Rest};
        _ -> throw(no)
    end;
other([Name, ~"(" | _] = Tokens) ->
    {Arguments, Rest} = arguments(tl(Tokens)),
    {exists([Variable || {var, [$_ | _] = Variable} <- Arguments], {event, Name, Arguments}), Rest};
other(_) -> throw(no).

exists(Variables, F) -> lists:foldr(fun(Variable, G) -> {exists, Variable, G} end, F, Variables).

variables([Variable, ~"," | Tokens]) ->
    {Others, Rest} = variables(Tokens),
    {[name(Variable) | Others], Rest};
variables([Variable | Rest]) -> {[name(Variable)], Rest}.

name(~"_") -> "_" ++ integer_to_list(erlang:unique_integer([positive]));
name(Variable) -> binary_to_list(Variable).

comparison(Tokens) ->
    case term(Tokens) of
        {A, [Word | More]} when Word =:= ~"="; Word =:= ~"<"; Word =:= ~"<="; Word =:= ~">"; Word =:= ~">=" ->
            {B, Rest} = term(More),
            {case Word of
                 ~">" -> {compare, "<", B, A};
                 ~">=" -> {compare, "<=", B, A};
                 _ -> {compare, binary_to_list(Word), A, B}
             end, Rest};
        {_, [Word | _]} when Word =:= ~"MATCHES"; Word =:= ~"SUBSTRING" -> throw({outside, "`MATCHES`, `SUBSTRING`"});
        _ -> throw(no)
    end.

term(Tokens) -> operands([~"+", ~"-"], fun product/1, product(Tokens)).

product(Tokens) -> operands([~"*", ~"/", ~"MOD"], fun unary/1, unary(Tokens)).

operands(Signs, Operand, {A, [Sign | Tokens] = All}) ->
    case lists:member(Sign, Signs) of
        true ->
            {B, Rest} = Operand(Tokens),
            operands(Signs, Operand, {{operation, binary_to_list(Sign), [A, B]}, Rest});
        false -> {A, All}
    end;
operands(_, _, Parsed) -> Parsed.

unary([~"-" | Tokens]) ->
    {A, Rest} = unary(Tokens),
    {{operation, "-", [A]}, Rest};
unary([~"(" | Tokens]) ->
    case term(Tokens) of
        {A, [~")" | Rest]} -> {A, Rest};
        _ -> throw(no)
    end;
unary([Word, ~"(" | Tokens]) when Word =:= ~"f2i"; Word =:= ~"i2f" ->
    case term(Tokens) of
        {A, [~")" | Rest]} -> {{operation, binary_to_list(Word), [A]}, Rest};
        _ -> throw(no)
    end;
unary([Word, ~"(" | _]) when Word =:= ~"i2s"; Word =:= ~"s2i"; Word =:= ~"f2s"; Word =:= ~"s2f"; Word =:= ~"r2s"; Word =:= ~"s2r" ->
    throw({outside, "conversions between text and numbers"});
unary([Word, ~".", <<Letter, _/binary>> | _]) when Letter >= $a, Letter =< $z, Word =/= ~")" ->
    throw({outside, "fields of records"});
unary([<<$", _/binary>> = Quoted | Rest]) -> {{value, binary:part(Quoted, 1, byte_size(Quoted) - 2)}, Rest};
unary([<<First, _/binary>> = Word | Rest]) when First >= $0, First =< $9; First =:= $- -> {{value, number(Word)}, Rest};
unary([Word | Rest]) ->
    case re:run(Word, ~"^[A-Za-z_][A-Za-z0-9_]*$") =/= nomatch andalso operator(Word) of
        none -> {{var, name(Word)}, Rest};
        _ -> throw(no)
    end;
unary([]) -> throw(no).

number(Text) ->
    case binary:last(Text) of
        $. -> number(<<Text/binary, $0>>);
        _ ->
            try binary_to_integer(Text)
            catch error:badarg -> binary_to_float(Text)
            end
    end.

arguments([~"(", ~")" | Rest]) -> {[], Rest};
arguments([~"(" | Tokens]) -> arguments_left(term(Tokens)).

arguments_left({A, [~"," | Tokens]}) ->
    {Others, Rest} = arguments_left(term(Tokens)),
    {[A | Others], Rest};
arguments_left({A, [~")" | Rest]}) -> {[A], Rest};
arguments_left(_) -> throw(no).

%% Bounds are seconds. All times of the logs are integers, so that each bound can be closed.
interval([Open, Least, ~",", Greatest, Close | Rest]) when Open =:= ~"["; Open =:= ~"(" ->
    try {seconds(Least), Greatest =:= ~"*" orelse seconds(Greatest)} of
        {From, true} -> {{from(Open, From), infinity}, Rest};
        {From, To} -> {{from(Open, From), case Close of ~"]" -> To; ~")" -> To - 1 end}, Rest}
    catch
        throw:no -> {{0, infinity}, [Open, Least, ~",", Greatest, Close | Rest]}
    end;
interval(Tokens) -> {{0, infinity}, Tokens}.

from(~"[", From) -> From;
from(~"(", From) -> From + 1.

seconds(Text) ->
    case re:run(Text, ~"^(-?[0-9]+)([dhms]?)$", [{capture, all_but_first, binary}]) of
        {match, [Number, Unit]} ->
            binary_to_integer(Number) * case Unit of ~"d" -> 86400; ~"h" -> 3600; ~"m" -> 60; _ -> 1 end;
        {match, [Number]} -> binary_to_integer(Number);
        nomatch -> throw(no)
    end.

%% Predicates of `LET` become their bodies; bound variables get numbers.

expand(F, _, _, N) when is_boolean(F) -> {F, N};
expand({event, Name, Arguments}, Values, Lets, N) ->
    Given = [argument(Argument, Values) || Argument <- Arguments],
    case Lets of
        #{{Name, length(Arguments)} := {Parameters, Body, Outer}} ->
            expand(Body, maps:from_list(lists:zip(Parameters, Given)), Outer, N);
        #{} -> {{event, Name, Given}, N}
    end;
expand({'let', Name, Parameters, F, G}, Values, Lets, N) ->
    expand(G, Values, Lets#{{Name, length(Parameters)} => {Parameters, F, Lets}}, N);
expand({compare, Operator, A, B}, Values, _, N) -> {{compare, Operator, argument(A, Values), argument(B, Values)}, N};
expand({exists, Variable, F}, Values, Lets, N) ->
    New = numbered(Variable, N),
    {Body, N1} = expand(F, Values#{Variable => {var, New}}, Lets, N + 1),
    {{exists, New, Body}, N1};
expand({aggregate, Result, Operator, Of, Groups, F}, Values, Lets, N) ->
    %% All variables of the formula but the groups are bound.
    Inside = free(expand_lets(F, Lets)),
    Bound = lists:enumerate(N, [Variable || Variable <- Inside, not lists:member({var, Variable}, Groups)]),
    Locals = maps:from_list([{Variable, {var, numbered(Variable, I)}} || {I, Variable} <- Bound]),
    {Body, N1} = expand(F, maps:merge(Values, Locals), Lets, N + length(Bound)),
    Summed = case Locals of
        #{Of := {var, New}} -> {var, New};
        #{} -> argument({var, Of}, Values)
    end,
    {{aggregate, argument(Result, Values), Operator, Summed, [argument(Group, Values) || Group <- Groups], Body}, N1};
expand({Operator, F}, Values, Lets, N) ->
    {F1, N1} = expand(F, Values, Lets, N),
    {{Operator, F1}, N1};
expand({Operator, Interval, F}, Values, Lets, N) when Operator =:= previous; Operator =:= next ->
    {F1, N1} = expand(F, Values, Lets, N),
    {{Operator, Interval, F1}, N1};
expand({Operator, F, G}, Values, Lets, N) ->
    {F1, N1} = expand(F, Values, Lets, N),
    {G1, N2} = expand(G, Values, Lets, N1),
    {{Operator, F1, G1}, N2};
expand({Operator, Interval, F, G}, Values, Lets, N) ->
    {F1, N1} = expand(F, Values, Lets, N),
    {G1, N2} = expand(G, Values, Lets, N1),
    {{Operator, Interval, F1, G1}, N2}.

expand_lets(F, Lets) ->
    {Expanded, _} = expand(F, #{}, Lets, 1),
    Expanded.

numbered(Variable, N) -> Variable ++ "_" ++ integer_to_list(N).

argument({var, Variable} = Argument, Values) -> maps:get(Variable, Values, Argument);
argument({operation, Operator, Arguments}, Values) ->
    case {Operator, [argument(Argument, Values) || Argument <- Arguments]} of
        {"+", [{value, A}, {value, B}]} when is_integer(A), is_integer(B) -> {value, A + B};
        {_, Given} -> {operation, Operator, Given}
    end;
argument(Argument, _) -> Argument.

-doc "The free variables of a formula or argument, sorted.".
-spec free(formula() | argument() | [formula() | argument()]) -> [string()].
free(Several) when is_list(Several) -> lists:usort(lists:append([free(One) || One <- Several]));
free({var, Variable}) -> [Variable];
free({operation, _, Arguments}) -> free(Arguments);
free({event, _, Arguments}) -> free(Arguments);
free({compare, _, A, B}) -> free([A, B]);
free({exists, Variable, F}) -> free(F) -- [Variable];
free({aggregate, Result, _, _, Groups, _}) -> free([Result | Groups]);
free({'not', F}) -> free(F);
free({Operator, _, F}) when Operator =:= previous; Operator =:= next -> free(F);
free({_, _, F, G}) -> free([F, G]);
free({Operator, F, G}) when Operator =:= 'and'; Operator =:= 'or' -> free([F, G]);
free(_) -> [].

%% Signatures and logs.

-doc "The types of the columns of each predicate.".
-spec signature(binary()) -> signature().
signature(Text) ->
    [throw({outside, "events with records"}) || string:find(Text, "{") =/= nomatch],
    maps:from_list([{Name, [lists:last(string:split(string:trim(Column), ":", all)) || Column <- string:split(Columns, ",", all),
                                                                                    string:trim(Column) =/= ~""]}
                    || [Name, Columns] <- pairs(Text, ~"(\\w+)\\s*\\(([^)]*)\\)")]).

pairs(Text, Pattern) ->
    case re:run(Text, Pattern, [global, {capture, all_but_first, binary}]) of
        {match, Found} -> Found;
        nomatch -> []
    end.

-doc "The time points of a log. Each is a set of events.".
-spec log(binary(), signature()) -> log().
log(Text, Signature) ->
    Plain = re:replace(Text, ~"#[^\\n]*|>[^<]*<", " ", [global, {return, binary}]),
    points(all(Plain, ~"\"(?:[^\"\\\\]|\\\\.)*\"|[A-Za-z0-9_\\[\\]/:.!-]+|[@(),;]"), Signature).

points([], _) -> [];
points([~"@", Time | Tokens], Signature) ->
    {Events, Rest} = events(Tokens, Signature, []),
    [{binary_to_integer(Time), lists:usort(Events)} | points(Rest, Signature)].

events([Name, ~"(" | _] = Tokens, Signature, Events) -> tuples(Name, tl(Tokens), Signature, Events);
events([~";" | Rest], _, Events) -> {Events, Rest};
events([Name | Rest], Signature, Events) when Name =/= ~"@" -> events(Rest, Signature, [{Name, []} | Events]);
events(Rest, _, Events) -> {Events, Rest}.

tuples(Name, [~"(" | Tokens], Signature, Events) ->
    {Fields, [~")" | Rest]} = lists:splitwith(fun(Token) -> Token =/= ~")" end, Tokens),
    Types = maps:get(Name, Signature),
    Values = [value(Type, Field) || {Type, Field} <- lists:zip(Types, [Field || Field <- Fields, Field =/= ~","])],
    tuples(Name, Rest, Signature, [{Name, Values} | Events]);
tuples(_, Rest, Signature, Events) -> events(Rest, Signature, Events).

value(~"int", Text) -> binary_to_integer(Text);
value(~"float", Text) -> float(exact(Text));
value(_, <<$", Quoted/binary>>) -> binary:part(Quoted, 0, byte_size(Quoted) - 1);
value(_, Text) -> Text.

exact(Text) ->
    case re:run(Text, ~"^([+-]?[0-9]+)(e.*)$", [{capture, all_but_first, binary}]) of
        {match, [Whole, Exponent]} -> binary_to_float(<<Whole/binary, ".0", Exponent/binary>>);
        nomatch -> number(Text)
    end.
