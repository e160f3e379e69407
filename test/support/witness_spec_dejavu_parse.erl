-module(witness_spec_dejavu_parse).
-moduledoc """
Reads specifications of DejaVu, and expands their macros.

Operators are left with those that `t:formula/0` has: `H f` is `!P !f`, and `[f, g)` is `!g S f`. Each quantifier has a variable of
its own. A quantifier reaches as far as it can: the results in DejaVu's tests are those of this reading, although its newest parser
ends those with a capital letter sooner.
""".

-export([properties/1]).
-export_type([formula/0, argument/0, property/0]).

-type argument() :: {var, string()} | {value, integer() | binary()}.
-type formula() ::
    boolean()
  | {event, Name :: binary(), [argument()]}
  | {compare, Operator :: string(), argument(), argument()}
  | {rule, Name :: binary(), [argument()]}
  | {'not', formula()}
  | {'and' | 'or', formula(), formula()}
  | {previous, formula()}
  | {once, window(), formula()}
  | {since | zince, window(), formula(), formula()}
  | {exists | forall, Variable :: string(), Among :: all | seen, formula()}.
-type window() :: always | {within | before, Seconds :: non_neg_integer()}.
-type property() :: #{name := binary(), formula := formula(), rules := #{binary() => {[string()], formula()}}}.

-doc "The properties of a specification. It has to be well-formed.".
-spec properties(binary()) -> [property()].
properties(Text) ->
    Definitions = definitions(tokens(Text)),
    Macros = maps:from_list([{Name, {Parameters, F}} || {macro, Name, Parameters, F} <- Definitions]),
    {Properties, _} = lists:mapfoldl(fun({Name, F, Rules}, N) -> property(Name, F, Rules, Macros, N) end, 1,
                                     [{Name, F, Rules} || {property, Name, F, Rules} <- Definitions]),
    Properties.

property(Name, F, Rules, Macros, N) ->
    Names = #{macros => Macros, rules => [Rule || {Rule, _, _} <- Rules]},
    {Formula, N1} = expand(F, #{}, Names, N),
    {Expanded, N2} = lists:mapfoldl(fun({Rule, Parameters, Body}, M) ->
                                            {Of, M1} = expand(Body, #{}, Names, M),
                                            {{Rule, {Parameters, Of}}, M1}
                                    end, N1, Rules),
    {#{name => Name, formula => Formula, rules => maps:from_list(Expanded)}, N2}.

%% Macros become their bodies; bound variables get numbers.
expand(F, _, _, N) when is_boolean(F) -> {F, N};
expand({call, Name, Arguments}, Values, #{macros := Macros, rules := Rules} = Names, N) ->
    Given = [argument(Argument, Values) || Argument <- Arguments],
    case {Macros, lists:member(Name, Rules)} of
        {#{Name := {Parameters, Body}}, false} -> expand(Body, maps:from_list(lists:zip(Parameters, Given)), Names, N);
        {_, true} -> {{rule, Name, Given}, N};
        {_, false} -> {{event, Name, Given}, N}
    end;
expand({compare, Operator, A, B}, Values, _, N) -> {{compare, Operator, argument(A, Values), argument(B, Values)}, N};
expand({Quantifier, Variable, Among, F}, Values, Names, N) when Quantifier =:= exists; Quantifier =:= forall ->
    New = Variable ++ integer_to_list(N),
    {Body, N1} = expand(F, Values#{Variable => {var, New}}, Names, N + 1),
    {{Quantifier, New, Among, Body}, N1};
expand({Operator, F}, Values, Names, N) ->
    {F1, N1} = expand(F, Values, Names, N),
    {{Operator, F1}, N1};
expand({once, Window, F}, Values, Names, N) ->
    {F1, N1} = expand(F, Values, Names, N),
    {{once, Window, F1}, N1};
expand({Operator, F, G}, Values, Names, N) ->
    {F1, N1} = expand(F, Values, Names, N),
    {G1, N2} = expand(G, Values, Names, N1),
    {{Operator, F1, G1}, N2};
expand({Operator, Window, F, G}, Values, Names, N) ->
    {F1, N1} = expand(F, Values, Names, N),
    {G1, N2} = expand(G, Values, Names, N1),
    {{Operator, Window, F1, G1}, N2}.

argument({var, Variable} = Argument, Values) -> maps:get(Variable, Values, Argument);
argument(Argument, _) -> Argument.

tokens(Text) ->
    Plain = re:replace(Text, ~"/\\*.*?\\*/|//[^\\n]*", " ", [global, dotall, {return, binary}]),
    case re:run(Plain, ~"\"[^\"]*\"|[A-Za-z_][A-Za-z_0-9]*|[0-9]+|<->|->|:=|<=|>=|[^\\s]", [global, {capture, first, binary}]) of
        {match, Found} -> [Token || [Token] <- Found];
        nomatch -> []
    end.

definitions([]) -> [];
definitions([~"prop", Name, ~":" | Tokens]) ->
    case formula(Tokens) of
        {F, [~"where" | Rules]} ->
            {Defined, Rest} = rules(Rules),
            [{property, Name, F, Defined} | definitions(Rest)];
        {F, Rest} -> [{property, Name, F, []} | definitions(Rest)]
    end;
definitions([~"pred", Name | Tokens]) ->
    case parameters(Tokens) of
        {Parameters, [~"=" | Body]} ->
            {F, Rest} = formula(Body),
            [{macro, Name, Parameters, F} | definitions(Rest)];
        {_, Rest} -> declarations(Rest)
    end;
definitions([Word, _ | Tokens]) when Word =:= ~"preds"; Word =:= ~"event"; Word =:= ~"events" ->
    {_, Rest} = parameters(Tokens),
    declarations(Rest).

declarations([~",", _ | Tokens]) ->
    {_, Rest} = parameters(Tokens),
    declarations(Rest);
declarations(Tokens) -> definitions(Tokens).

parameters([~"(" | Tokens]) ->
    {Inside, [~")" | Rest]} = lists:splitwith(fun(Token) -> Token =/= ~")" end, Tokens),
    {[binary_to_list(Token) || Token <- Inside, Token =/= ~","], Rest};
parameters(Tokens) -> {[], Tokens}.

rules([Name | Tokens]) ->
    {Parameters, [~":=" | Body]} = parameters(Tokens),
    case formula(Body) of
        {F, [~"," | More]} ->
            {Others, Rest} = rules(More),
            {[{Name, Parameters, F} | Others], Rest};
        {F, Rest} -> {[{Name, Parameters, F}], Rest}
    end.

formula(Tokens) -> implications(disjunction(Tokens)).

implications({F, [Arrow | Tokens]}) when Arrow =:= ~"->"; Arrow =:= ~"<->" ->
    {G, Rest} = disjunction(Tokens),
    implications({case Arrow of
                      ~"->" -> {'or', {'not', F}, G};
                      ~"<->" -> {'or', {'and', F, G}, {'and', {'not', F}, {'not', G}}}
                  end, Rest});
implications(Parsed) -> Parsed.

disjunction(Tokens) -> operands('or', ~"|", fun conjunction/1, conjunction(Tokens)).

conjunction(Tokens) -> operands('and', ~"&", fun since/1, since(Tokens)).

operands(Operator, Sign, Operand, {F, [Sign | Tokens]}) ->
    {G, Rest} = Operand(Tokens),
    operands(Operator, Sign, Operand, {{Operator, F, G}, Rest});
operands(_, _, _, Parsed) -> Parsed.

since(Tokens) ->
    case leaf(Tokens) of
        {F, [Word | More]} when Word =:= ~"S"; Word =:= ~"Z" ->
            {Window, Right} = window(More),
            {G, Rest} = leaf(Right),
            {{case Word of ~"S" -> since; ~"Z" -> zince end, Window, F, G}, Rest};
        Parsed -> Parsed
    end.

window([~"[", ~"<=", N, ~"]" | Rest]) -> {{within, binary_to_integer(N)}, Rest};
window([~"[", ~">", N, ~"]" | Rest]) -> {{before, binary_to_integer(N)}, Rest};
window(Rest) -> {always, Rest}.

leaf([~"true" | Rest]) -> {true, Rest};
leaf([~"false" | Rest]) -> {false, Rest};
leaf([~"!" | Tokens]) ->
    {F, Rest} = leaf(Tokens),
    {{'not', F}, Rest};
leaf([~"@" | Tokens]) ->
    {F, Rest} = leaf(Tokens),
    {{previous, F}, Rest};
leaf([~"P" | Tokens]) ->
    {Window, More} = window(Tokens),
    {F, Rest} = leaf(More),
    {{once, Window, F}, Rest};
leaf([~"H" | Tokens]) ->
    {Window, More} = window(Tokens),
    {F, Rest} = leaf(More),
    {{'not', {once, Window, {'not', F}}}, Rest};
leaf([~"[" | Tokens]) ->
    {F, [~"," | More]} = formula(Tokens),
    {G, [~")" | Rest]} = formula(More),
    {{since, always, {'not', G}, F}, Rest};
leaf([~"(" | Tokens]) ->
    {F, [~")" | Rest]} = formula(Tokens),
    {F, Rest};
leaf([Word, Variable, ~"." | Tokens])
  when Word =:= ~"Exists"; Word =:= ~"exists"; Word =:= ~"Forall"; Word =:= ~"forall" ->
    {F, Rest} = formula(Tokens),
    {Quantifier, Among} = case Word of
        ~"Exists" -> {exists, all};
        ~"exists" -> {exists, seen};
        ~"Forall" -> {forall, all};
        ~"forall" -> {forall, seen}
    end,
    {{Quantifier, binary_to_list(Variable), Among, F}, Rest};
leaf([Name, Operator, Other | Rest])
  when Operator =:= ~"<"; Operator =:= ~"<="; Operator =:= ~">"; Operator =:= ~">="; Operator =:= ~"=" ->
    {{compare, binary_to_list(Operator), value(Name), value(Other)}, Rest};
leaf([Name, ~"(" | Tokens]) ->
    {Inside, [~")" | Rest]} = lists:splitwith(fun(Token) -> Token =/= ~")" end, Tokens),
    {{call, Name, [value(Token) || Token <- Inside, Token =/= ~","]}, Rest};
leaf([Name | Rest]) -> {{call, Name, []}, Rest}.

%% A number in quotes is a number, as it is in a log.
value(<<$", Quoted/binary>>) -> {value, witness_spec_dejavu:value(binary:part(Quoted, 0, byte_size(Quoted) - 1))};
value(<<Digit, _/binary>> = Token) when Digit >= $0, Digit =< $9 -> {value, binary_to_integer(Token)};
value(Token) -> {var, binary_to_list(Token)}.
