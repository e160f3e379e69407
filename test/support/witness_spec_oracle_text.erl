-module(witness_spec_oracle_text).
-moduledoc """
The text of a property, in a notation that a number chooses at each place: both forms of operators and fixpoints, braces
or none, every arrow.
""".

-export([file/2, property/2, action/2]).

-doc "A file: the records that it needs and its properties.".
-spec file([witness_spec_oracle:property()], Style :: integer()) -> iodata().
file(Properties, Style) ->
    Records = [["-record(", atom_to_list(Name), ", {", lists:join(", ", [atom_to_list(F) || F <- Fields]), "}).\n"] ||
               {Name, Fields} <- witness_spec_oracle_gen:records(), mentions(Name, Properties)],
    Defined = [definition(Definition, Style) || #{written := {Definitions, _, _, _}} <- Properties, Definition <- Definitions],
    %% Definitions may stand before or behind what uses them.
    {Before, After} = lists:split(erlang:phash2(Style, length(Defined) + 1), Defined),
    [Records, Before, [[property(Property, Style), ".\n"] || Property <- Properties], After].

definition({Word, Name, Parameters, Content}, Style) ->
    [atom_to_list(Word), " ", atom_to_list(Name), [["(", lists:join(", ", [atom_to_list(P) || P <- Parameters]), ")"] || Parameters =/= []],
     " = ", case Word of define -> formula(Content, Style, 0); action -> action(Content, Style) end, ".\n"].

mentions(Name, Name) -> true;
mentions(Name, Tuple) when is_tuple(Tuple) -> mentions(Name, tuple_to_list(Tuple));
mentions(Name, Map) when is_map(Map) -> mentions(Name, maps:to_list(Map));
mentions(Name, [Head | Tail]) -> mentions(Name, Head) orelse mentions(Name, Tail);
mentions(_, _) -> false.

-doc "A property without its dot.".
-spec property(witness_spec_oracle:property(), Style :: integer()) -> iodata().
property(#{written := {_, Over, Values, Formula}} = Property, Style) ->
    property((maps:remove(written, Property))#{over := Over, values => Values, formula := Formula}, Style);
property(#{name := Name, signatures := Signatures, group := Group, per := Per, over := Over} = Property, Style) ->
    [[[atom_to_list(Name), ": "] || Name =/= undefined],
     [["with ", signatures(Signatures)] || Signatures =/= []],
     [" group" || Group],
     [[[" " || Signatures =/= []], "per ", lists:join(", ", [atom_to_list(X) || X <- Per])] || Per =/= []],
     [[" over ", lists:join(", ", [listed(Action, Style) || Action <- Over])] || is_list(Over)],
     [["\n  among ", signatures(Among)] || #{among := Among} <- [Property]],
     [["\n  let ", atom_to_list(V), defined_value(Value, Style)] || {V, Value} <- maps:get(values, Property, [])],
     " ", atom_to_list(map_get(dialect, Property)),
     [["\n  ", formula(Formula, Style, 0)] || #{formula := Formula} <- [Property]]].

defined_value({each, Names, Value}, Style) ->
    ["(", lists:join(", ", [atom_to_list(X) || X <- Names]), ") = ", value(Value, Style)];
defined_value(Value, Style) -> [" = ", value(Value, Style)].

%% `let`s. What begins with a brace would be an action.
value({previously, C}, Style) -> ["previously ", condition(C, Style)];
value({since, Window, C, D}, Style) -> [condition(C, Style), " since ", window(Window, Style), condition(D, Style)];
value({Kind, Window, C}, Style) -> [atom_to_list(Kind), " ", window(Window, Style), condition(C, Style)];
value({Kind, Window, Expr, C}, Style) ->
    [atom_to_list(Kind), " ", window(Window, Style), whole(Expr, Style), " of ", condition(C, Style)].

window(none, _) -> "";
window({time, Nanoseconds} = Window, Style) -> ["within ", duration(Nanoseconds, Window, Style), " "];
window({events, 1}, Style) -> ["within ", choose(Style, events, ["1 event ", "1 events "])];
window({events, N}, _) -> ["within ", integer_to_list(N), " events "].

condition({actions, Actions}, Style) -> lists:join(" or ", [["{", action(Action, Style), "}"] || Action <- Actions]);
condition({test, Expr}, Style) -> whole(Expr, Style).

whole(Expr, Style) ->
    Written = expr(Expr),
    case hd(unicode:characters_to_list(Written)) =:= ${ orelse choose(Style, Expr, [parentheses, none]) =:= parentheses of
        true -> ["(", Written, ")"];
        false -> Written
    end.

%% Behind a guard, `*` would be taken for a part of it.
listed({'begin', Action}, Style) -> ["begin ", action(Action, Style)];
listed({use, _, [], _, _} = Use, Style) -> ["{", action(Use, Style), "}"];
listed(Action, Style) ->
    case {choose(Style, Action, [braces, none]), Action} of
        {braces, _} -> ["{", action(Action, Style), "}"];
        {none, {exit, [P, Reason], Guard}} -> [pattern(P), " ** ", pattern(Reason), guard(Guard)];
        {none, _} -> action(Action, Style)
    end.

signatures(Signatures) -> lists:join(", ", [[signature(Pattern), guard(Guard)] || {Pattern, Guard} <- Signatures]).

signature({var, Name}) -> atom_to_list(Name);
signature('_') -> "_";
signature({tuple, [Module, Function, {list, Arguments, nil}]}) ->
    [module(Module, length(Arguments)), pattern(Function), "(", lists:join(", ", [pattern(A) || A <- Arguments]), ")"].

module({lit, 'Elixir.My.App'}, 1) -> "My.App.";
module(Module, _) -> [pattern(Module), ":"].

%% Level 2 takes modalities and atoms only, 1 conjunctions too, 0 everything.
formula(Constant, _, _) when is_atom(Constant) -> atom_to_list(Constant);
formula({use, Name, Arguments}, Style, _) -> used(Name, Arguments, Style);
formula({rec, X, []}, _, _) -> atom_to_list(X);
formula({rec, X, Values}, _, _) -> [atom_to_list(X), "(", lists:join(", ", [expr(Value) || Value <- Values]), ")"];
formula({Fix, X, Parameters, Formula} = Whole, Style, Level) when Fix =:= max; Fix =:= min ->
    Data = [["(", lists:join(", ", [[atom_to_list(P), " = ", expr(Value)] || {P, Value} <- Parameters]), ")"] || Parameters =/= []],
    Name = [atom_to_list(Fix), choose(Style, Whole, [" ", "  ", "\n  "]), atom_to_list(X), Data],
    case choose(Style, Formula, [prefix, bracketed, bare]) of
        prefix -> [atom_to_list(Fix), "(", atom_to_list(X), Data, ". ", formula(Formula, Style, 0), ")"];
        bare when Level =:= 0 -> [Name, ". ", bare(Formula, Style)];
        _ -> [Name, ".(", formula(Formula, Style, 0), ")"]
    end;
formula({Op, [Single]}, Style, _) -> [atom_to_list(Op), "(", formula(Single, Style, 0), ")"];
formula({Op, Formulas} = Whole, Style, Level) ->
    Own = case Op of 'and' -> 1; 'or' -> 0 end,
    case choose(Style, Whole, [prefix, infix]) of
        prefix -> [atom_to_list(Op), "(", lists:join(", ", [formula(F, Style, 0) || F <- Formulas]), ")"];
        infix when Level =< Own -> infix(Op, Formulas, Style, Own + 1);
        infix -> ["(", infix(Op, Formulas, Style, Own + 1), ")"]
    end;
formula({Timed, Nanoseconds, Formula} = Whole, Style, _) when Timed =:= within; Timed =:= during ->
    [atom_to_list(Timed), " ", duration(Nanoseconds, Whole, Style), " ", formula(Formula, Style, 2)];
formula({Modality, Action, Formula}, Style, _) ->
    Written = action(Action, Style),
    {Open, Close} = case {Modality, choose(Style, Action, [braces, none])} of
        {box, braces} -> {"[{", "}]"};
        {box, none} -> {"[", "]"};
        {dia, braces} -> {"<{", "}>"};
        {dia, none} -> case greater(Action) orelse minus(Written) of true -> {"<{", "}>"}; false -> {"<", ">"} end
    end,
    [Open, Written, Close, choose(Style, Formula, [" ", ""]), formula(Formula, Style, 2)].

duration(1000, Whole, Style) -> choose(Style, Whole, ["1 us", "1000 ns", "0.001 ms"]);
duration(N, Whole, Style) -> [integer_to_list(N), choose(Style, Whole, [" ", "   "]), "ns"].

%% What begins with a parenthesis would end at its closing one.
bare(Formula, Style) ->
    Written = formula(Formula, Style, 0),
    case unicode:characters_to_list(Written) of
        "(" ++ _ -> ["(", Written, ")"];
        _ -> Written
    end.

infix(Op, Formulas, Style, Level) ->
    lists:join([" ", atom_to_list(Op), " "], [formula(F, Style, Level) || F <- Formulas]).

%% `<-` would be an arrow.
minus(Written) -> hd(unicode:characters_to_list(Written)) =:= $-.

greater({_, _, Guard}) -> has_greater(Guard);
greater({use, _, _, _, Guard}) -> has_greater(Guard).

has_greater({op, '>', _}) -> true;
has_greater(Tuple) when is_tuple(Tuple) -> has_greater(tuple_to_list(Tuple));
has_greater([Head | Tail]) -> has_greater(Head) orelse has_greater(Tail);
has_greater(_) -> false.

choose(Style, Place, Options) -> lists:nth(erlang:phash2({Style, Place}, length(Options)) + 1, Options).

-doc "An action with its guard.".
-spec action(witness_spec_oracle:action(), Style :: integer()) -> iodata().
action({'else', _, _}, _) -> "else";
action({use, Name, Arguments, Time, Guard}, Style) ->
    [used(Name, Arguments, Style), [[" at ", pattern(T)] || T <- Time], guard(Guard)];
action({Kind, Patterns, Guard} = Action, Style) ->
    {Data, More} = lists:split(witness_spec_oracle:parts(Kind), Patterns),
    {Request, Time} = case More of [{to, R} | Rest] -> {[R], Rest}; _ -> {[], More} end,
    [case {Kind, Data} of
         {fork, [P, C, Signature]} ->
             [pattern(P), choose(Style, Action, [" -> ", " --> "]), pattern(C), ", ", signature(Signature)];
         {init, [C, P, Signature]} ->
             [pattern(C), choose(Style, Action, [" <- ", " <-- "]), pattern(P), ", ", signature(Signature)];
         {exit, [P, Reason]} -> [pattern(P), choose(Style, Action, [" ** ", " * "]), pattern(Reason)];
         {send, [P, Q, M]} -> [pattern(P), " : ", pattern(Q), " ! ", pattern(M)];
         {recv, [P, M]} -> [pattern(P), choose(Style, Action, [" ? ", "?"]), pattern(M)];
         {call, [P, Called]} -> [pattern(P), " calls ", signature(Called)];
         {return, [P, {lit, {Module, Function, Arity}}, Value]} ->
             [pattern(P), " returns ", module({lit, Module}, Arity), atom_to_list(Function), "/", integer_to_list(Arity), " -> ",
              pattern(Value)]
     end, [[" to ", pattern(R)] || R <- Request], [[" at ", pattern(T)] || T <- Time], guard(Guard)].

used(Name, [], _) -> atom_to_list(Name);
used(Name, Arguments, Style) -> [atom_to_list(Name), "(", lists:join(", ", [argument(A, Style) || A <- Arguments]), ")"].

argument(Constant, _) when Constant =:= tt; Constant =:= ff -> atom_to_list(Constant);
argument({Formula, _, _} = Argument, Style) when Formula =:= rec; Formula =:= use -> formula(Argument, Style, 2);
argument(Argument, _) -> pattern(Argument).

pattern('_') -> "_";
pattern({var, X}) -> atom_to_list(X);
pattern({lit, Term}) -> literal(Term);
pattern({text, Text}) -> literal_text(Text);
pattern({prefix, Text, Tail}) -> [literal_text(Text), " ++ ", operand(Tail)];
pattern({tuple, Patterns}) -> ["{", lists:join(", ", [pattern(P) || P <- Patterns]), "}"];
pattern({list, [], nil}) -> "[]";
pattern({list, Heads, Tail}) ->
    ["[", lists:join(", ", [pattern(P) || P <- Heads]), [[" | ", pattern(Tail)] || Tail =/= nil], "]"];
pattern({map, Fields}) -> ["#{", lists:join(", ", [[expr(K), " := ", pattern(P)] || {K, P} <- Fields]), "}"];
pattern({same, One, Other}) -> [operand(One), " = ", operand(Other)];
pattern({bin, Segments}) -> ["<<", lists:join(", ", [segment(S) || S <- Segments]), ">>"];
pattern({record, Name, Named, Others}) ->
    Fields = [[atom_to_list(F), " = ", pattern(P)] || {F, P} <- Named],
    ["#", atom_to_list(Name), "{", lists:join(", ", Fields ++ [["_ = ", pattern(Others)] || Others =/= none]), "}"];
pattern({otp, Name, Patterns}) -> [atom_to_list(Name), "(", lists:join(", ", [pattern(P) || P <- Patterns]), ")"].

operand({Infix, _, _} = Pattern) when Infix =:= same; Infix =:= prefix -> ["(", pattern(Pattern), ")"];
operand(Pattern) -> pattern(Pattern).

segment({text, Text}) -> literal_text(Text);
segment({int, Pattern, Bits, Signed, Endian}) ->
    [operand(Pattern), ":", width(Bits), "/", atom_to_list(Signed), "-", atom_to_list(Endian)];
segment({bytes, Pattern, Size}) -> [operand(Pattern), ":", width(Size), "/binary"];
segment({rest, Kind, Pattern}) -> [operand(Pattern), "/", atom_to_list(Kind)].

width({Simple, _} = Size) when Simple =:= lit; Simple =:= var -> expr(Size);
width(Size) -> ["(", expr(Size), ")"].

guard([]) -> "";
guard(Alternatives) ->
    [" when ", lists:join("; ", [lists:join(", ", [expr(Test) || Test <- Tests]) || Tests <- Alternatives])].

expr({var, X}) -> atom_to_list(X);
expr({lit, Term}) -> literal(Term);
expr({ask, {var, Let}, Args}) -> [atom_to_list(Let), "(", lists:join(", ", [expr(Arg) || Arg <- Args]), ")"];
expr({op, Op, [Arg]}) -> [atom_to_list(Op), " ", inner(Arg)];
expr({op, Op, [Left, Right]}) -> [inner(Left), " ", atom_to_list(Op), " ", inner(Right)];
expr({call, Bif, Args}) -> [atom_to_list(Bif), "(", lists:join(", ", [expr(Arg) || Arg <- Args]), ")"];
expr({Short, Left, Right}) when Short =:= 'andalso'; Short =:= 'orelse' ->
    [inner(Left), " ", atom_to_list(Short), " ", inner(Right)];
expr({tuple, Exprs}) -> ["{", lists:join(", ", [expr(E) || E <- Exprs]), "}"];
expr({cons, Head, Tail}) -> ["[", expr(Head), " | ", expr(Tail), "]"];
expr({map, Fields}) -> ["#{", lists:join(", ", [[expr(K), " => ", expr(V)] || {K, V} <- Fields]), "}"];
expr({remote, Module, Function, Args}) ->
    [atom_to_list(Module), ":", atom_to_list(Function), "(", lists:join(", ", [expr(Arg) || Arg <- Args]), ")"];
expr({update, Map, Fields}) ->
    [case Map of {var, _} -> expr(Map); _ -> ["(", expr(Map), ")"] end, "#{", lists:join(", ", [[expr(K), " => ", expr(V)] || {K, V} <- Fields]), "}"];
expr({field, {var, _} = Expr, Record, Field}) -> [expr(Expr), "#", atom_to_list(Record), ".", atom_to_list(Field)];
expr({is_record, Expr, Record}) -> ["is_record(", expr(Expr), ", ", atom_to_list(Record), ")"].

inner({Simple, _} = Expr) when Simple =:= var; Simple =:= tuple; Simple =:= map -> expr(Expr);
inner({Call, _, _} = Expr) when Call =:= call; Call =:= ask -> expr(Expr);
inner({remote, _, _, _} = Expr) -> expr(Expr);
inner(Expr) -> ["(", expr(Expr), ")"].

%% Small numbers may be written as the characters that they are.
literal(C) when is_integer(C), C >= $a, C =< $z, C rem 2 =:= 0 -> [$$, C];
literal(Term) -> io_lib:format("~tw", [Term]).

literal_text(Text) -> io_lib:format("~tp", [Text]).
