-module(witness_spec_parse).
-moduledoc """
The grammar of specifications, by recursive descent:

```text
file      = { property }
property  = [ name ":" ] "with" signature { "," signature } [ "group" ] what "."
what      = "none" | "monitor" formula | "check" formula
formula   = conj { "or" conj }
conj      = unit { "and" unit }
unit      = "[" action "]" unit | "<" action ">" unit
          | "and" "(" formula { "," formula } ")" | "or" "(" formula { "," formula } ")"
          | fixpoint "(" X "." formula ")" | fixpoint X "." formula
          | "(" formula ")" | "tt" | "ff" | X
fixpoint  = "max" | "min"
```

After `max X.` a formula reaches as far as it can, as in the literature, unless it begins with a parenthesis: then that
ends it, so that `max X.(f) and g` is `(max X.(f)) and g`. Braces may stand around an action: `[{...}]`; inside `<...>`
they are needed where a guard contains `>`. Between properties a comma may stand for the dot.

An error ends its property; the next one is read all the same.
""".

-export([file/1]).
-export_type([property/0, formula/0, meta/0]).

-doc "Where a formula begins and its source text, cut to a limit.".
-type meta() :: {witness_spec_diagnostic:location(), Text :: binary()}.
-doc "A formula as it was written.".
-type formula() :: {tt | ff, meta()}
    | {var, meta(), atom()}
    | {'and' | 'or', meta(), [formula(), ...]}
    | {box | dia, meta(), witness_spec_action:action(), formula()}
    | {max | min, meta(), atom(), formula()}.
-doc "A property; `formula` is missing where nothing is to be monitored.".
-type property() :: #{name := binary() | undefined,
                      location := witness_spec_diagnostic:location(),
                      signatures := [witness_spec_action:signature(), ...],
                      text := binary(),
                      group := boolean(),
                      dialect := monitor | check | none,
                      formula => formula()}.

-type token() :: witness_spec_scan:token().

-doc "Reads all properties of a file: those that are well-formed, and what is wrong with the others.".
-spec file([token()]) -> {[property()], [witness_spec_diagnostic:finding()]}.
file(Tokens) -> file(Tokens, [], []).

file([{eof, _}], Properties, Findings) ->
    {lists:reverse(Properties), lists:reverse(Findings)};
file(Tokens, Properties, Findings) ->
    try property(Tokens) of
        {Property, Rest} -> file(Rest, [Property | Properties], Findings)
    catch
        throw:{error, Location, _, _, _} = Finding ->
            file(resume(Tokens, Location, []), Properties, [Finding | Findings])
    end.

%% After the dot that ends the property with the error: the first one from there on that is not the dot of a fixpoint,
%% or any that a property follows.
resume([{dot, _} = Dot | Rest], Location, Before) ->
    case witness_spec_scan:location(Dot) >= Location andalso (begins(Rest) orelse not fixpoint_dot(Before)) of
        true -> Rest;
        false -> resume(Rest, Location, [Dot | Before])
    end;
resume([{eof, _}] = End, _, _) -> End;
resume([Token | Rest], Location, Before) -> resume(Rest, Location, [Token | Before]).

fixpoint_dot([_, {atom, _, Name} | _]) -> Name =:= max orelse Name =:= min;
fixpoint_dot([_, {'(', _}, {atom, _, Name} | _]) -> Name =:= max orelse Name =:= min;
fixpoint_dot(_) -> false.

begins([{atom, _, with} | _]) -> true;
begins([{atom, _, _}, {':', _}, {atom, _, with} | _]) -> true;
begins(_) -> false.

property([{atom, _, Name} = Token, {':', _}, {atom, _, with} = With | Rest]) ->
    with([With | Rest], #{name => atom_to_binary(Name), location => witness_spec_scan:location(Token)});
property([{atom, _, with} = Token | _] = Tokens) ->
    with(Tokens, #{name => undefined, location => witness_spec_scan:location(Token)});
property([{'-', _} = Dash, {atom, _, Name} | _]) when Name =:= record; Name =:= include; Name =:= include_lib ->
    fail(witness_spec_scan:location(Dash), not_supported, ["not supported yet: `-", atom_to_list(Name), "`"]);
property([{atom, _, per} = Token | _]) ->
    fail(witness_spec_scan:location(Token), not_supported, "not supported yet: `per` without `with`");
property(Tokens) ->
    expected("a property, such as `with m:f(_) monitor [_ ? stop] ff.`", Tokens).

with([{atom, _, with} = With | Rest], Property) ->
    {Signatures, After} = signatures(Rest, With),
    Text = witness_spec_scan:text(Rest, witness_spec_scan:location(hd(After))),
    group(After, Property#{signatures => Signatures, text => Text}).

group([{atom, _, group} = Token, {atom, _, none} | _], _) ->
    fail(witness_spec_scan:location(Token), syntax, "a signature with `none` begins no group");
group([{atom, _, group} | Rest], Property) -> what(Rest, Property#{group => true});
group(Tokens, Property) -> what(Tokens, Property#{group => false}).

what([{atom, _, none} | Rest], Property) ->
    {Property#{dialect => none}, dot(Rest)};
what([{atom, _, Dialect} | Rest], Property) when Dialect =:= monitor; Dialect =:= check ->
    {Formula, After} = formula(Rest),
    {Property#{dialect => Dialect, formula => Formula}, dot(After)};
what([{atom, _, Clause} = Token | _], _) when Clause =:= per; Clause =:= over ->
    fail(witness_spec_scan:location(Token), not_supported, ["not supported yet: `", atom_to_list(Clause), "`"]);
what(Tokens, _) ->
    expected("`monitor`, `check` or `none`", Tokens).

dot([{dot, _} | Rest]) -> Rest;
dot([{',', _} | Rest] = Tokens) ->
    case begins(Rest) of
        true -> Rest;
        false -> expected("`.` at the end of the property", Tokens)
    end;
dot(Tokens) -> expected("`.` at the end of the property", Tokens).

%% Signature patterns. A guard's commas and names could be mistaken for what may follow: a comma ends a guard where a
%% signature of a module other than `erlang` follows, a word where an operand cannot stand.
signatures(Tokens, Previous) ->
    {Signature, Last, Rest} = signature(Tokens, [], Previous),
    Parsed = witness_spec_action:signature(Signature, witness_spec_scan:after_token(Last)),
    case Rest of
        [{',', _} = Comma | More] ->
            {Others, After} = signatures(More, Comma),
            {[Parsed | Others], After};
        _ ->
            {[Parsed], Rest}
    end.

signature([{',', _} | Rest] = Tokens, Taken, Last) ->
    case lists:keymember('when', 1, Taken) andalso not next_signature(Rest) of
        true -> signature(Rest, [hd(Tokens) | Taken], hd(Tokens));
        false -> {lists:reverse(Taken), Last, Tokens}
    end;
signature([{atom, _, Word} = Token | Rest] = Tokens, Taken, Last) when
        Word =:= group; Word =:= monitor; Word =:= check; Word =:= none; Word =:= per; Word =:= over ->
    case Taken =/= [] andalso operand_ends(Last) of
        true -> {lists:reverse(Taken), Last, Tokens};
        false -> signature(Rest, [Token | Taken], Token)
    end;
signature([{End, _} | _] = Tokens, Taken, Last) when End =:= dot; End =:= eof ->
    {lists:reverse(Taken), Last, Tokens};
signature([Token | Rest] = Tokens, Taken, _) ->
    case witness_spec_scan:closing(Token) of
        none ->
            signature(Rest, [Token | Taken], Token);
        _ ->
            {Inside, Close, After} = witness_spec_pattern:enclosed(Tokens),
            signature(After, [Close | lists:reverse([Token | Inside], Taken)], Close)
    end.

next_signature([{Kind, _, Module}, {':', _}, {Other, _, _}, {'(', _} | _]) when
        (Kind =:= atom orelse Kind =:= var), (Other =:= atom orelse Other =:= var) ->
    Module =/= erlang;
next_signature(_) ->
    false.

operand_ends({Kind, _, _}) ->
    lists:member(Kind, [atom, var, integer, float, char, string, sigil_suffix]);
operand_ends({Symbol, _}) ->
    lists:member(Symbol, [')', ']', '}', '>>']).

formula(Tokens) -> infix('or', Tokens).

infix(Operator, Tokens) ->
    {First, Rest} = operand(Operator, Tokens),
    case more(Operator, Rest) of
        {[], _} -> {First, Rest};
        {Others, After} -> {{Operator, meta(Tokens, After), [First | Others]}, After}
    end.

operand('or', Tokens) -> infix('and', Tokens);
operand('and', Tokens) -> unit(Tokens).

more(Operator, [{Operator, _} | Rest]) ->
    {Next, After} = operand(Operator, Rest),
    {Others, End} = more(Operator, After),
    {[Next | Others], End};
more(_, Rest) ->
    {[], Rest}.

unit([{'[', _} | _] = Tokens) ->
    {Inside, Close, Rest} = witness_spec_pattern:enclosed(Tokens),
    Action = action(Inside, Close),
    {Formula, After} = unit(Rest),
    {{box, meta(Tokens, After), Action, Formula}, After};
unit([{'<', _} | _] = Tokens) ->
    {Inside, Close, Rest} = angle(Tokens),
    Action = action(Inside, Close),
    expects_formula(Rest, Inside),
    {Formula, After} = unit(Rest),
    {{dia, meta(Tokens, After), Action, Formula}, After};
unit([{Operator, _}, {'(', _} = Open | Rest] = Tokens) when Operator =:= 'and'; Operator =:= 'or' ->
    {Formulas, After} = list(Open, Rest),
    {{Operator, meta(Tokens, After), Formulas}, After};
unit([{Operator, _} = Token | _]) when Operator =:= 'and'; Operator =:= 'or' ->
    throw(witness_spec_diagnostic:error(witness_spec_scan:location(Token), syntax,
        ["expected a formula, found `", atom_to_list(Operator), "`"],
        ["it stands between two formulas, or in front of a list: `", atom_to_list(Operator), "(f, g)`"]));
unit([{atom, _, Fixpoint} | Rest] = Tokens) when Fixpoint =:= max; Fixpoint =:= min ->
    {Name, Formula, After} = fixpoint(Rest),
    {{Fixpoint, meta(Tokens, After), Name, Formula}, After};
unit([{'(', _} = Open | Rest]) ->
    {Formula, After} = formula(Rest),
    {Formula, close(Open, After)};
unit([{atom, _, Constant} | After] = Tokens) when Constant =:= tt; Constant =:= ff ->
    {{Constant, meta(Tokens, After)}, After};
unit([{var, _, Name} | After] = Tokens) when Name =/= '_' ->
    {{var, meta(Tokens, After), Name}, After};
unit(Tokens) ->
    expected("a formula", Tokens).

list(Open, Tokens) ->
    case formula(Tokens) of
        {Formula, [{',', _} | More]} ->
            {Formulas, After} = list(Open, More),
            {[Formula | Formulas], After};
        {Formula, Rest} ->
            {[Formula], close(Open, Rest)}
    end.

%% After `max` or `min`. Inside `max(X. ...)` the closing parenthesis ends the formula, one at its beginning does not.
fixpoint([{'(', _} = Open | Rest]) ->
    {Name, Body} = recursion(Rest),
    {Formula, After} = formula(Body),
    {Name, Formula, close(Open, After)};
fixpoint(Tokens) ->
    case recursion(Tokens) of
        {Name, [{'(', _} = Open | Rest]} ->
            {Formula, After} = formula(Rest),
            {Name, Formula, close(Open, After)};
        {Name, Body} ->
            {Formula, After} = formula(Body),
            {Name, Formula, After}
    end.

recursion([{var, _, Name}, {Dot, _} | Rest]) when Name =/= '_', (Dot =:= dot orelse Dot =:= '.') -> {Name, Rest};
recursion([{var, _, Name} | Rest]) when Name =/= '_' -> expected("`.` after the recursion variable", Rest);
recursion(Tokens) -> expected("a recursion variable", Tokens).

close(_, [{')', _} | Rest]) ->
    Rest;
close(Open, Tokens) ->
    {Line, Column} = witness_spec_scan:location(Open),
    {error, Location, Code, Text, Hint} = unexpected("`)`", Tokens),
    throw(witness_spec_diagnostic:error(Location, Code, Text, case Hint of
        undefined -> io_lib:format("to close the `(` of line ~b, column ~b", [Line, Column]);
        _ -> Hint
    end)).

action([{'{', _} | _] = Inside, Close) ->
    case witness_spec_pattern:enclosed(Inside) of
        {Action, Brace, []} -> witness_spec_action:action(Action, witness_spec_scan:location(Brace));
        {_, _, _} -> witness_spec_action:action(Inside, witness_spec_scan:location(Close))
    end;
action(Inside, Close) ->
    witness_spec_action:action(Inside, witness_spec_scan:location(Close)).

%% From `<` to its `>`: the first one outside brackets that is not the tip of `-->`.
angle([Open | Rest]) -> angle(Rest, [], Open).

angle([{'--', _} = Dash, {'>', _} = Tip | Rest], Inside, Open) ->
    case witness_spec_scan:after_token(Dash) =:= witness_spec_scan:location(Tip) of
        true -> angle(Rest, [Tip, Dash | Inside], Open);
        false -> {lists:reverse(Inside, [Dash]), Tip, Rest}
    end;
angle([{'>', _} = Close | Rest], Inside, _) ->
    {lists:reverse(Inside), Close, Rest};
angle([{End, _} = Token | _], _, Open) when End =:= dot; End =:= eof ->
    {Line, Column} = witness_spec_scan:location(Open),
    {error, Location, Code, Text, _} = unexpected("`>`", [Token]),
    throw(witness_spec_diagnostic:error(Location, Code, Text,
        io_lib:format("to close the `<` of line ~b, column ~b", [Line, Column])));
angle([Token | Rest] = Tokens, Inside, Open) ->
    case witness_spec_scan:closing(Token) of
        none ->
            angle(Rest, [Token | Inside], Open);
        _ ->
            {Within, Close, After} = witness_spec_pattern:enclosed(Tokens),
            angle(After, [Close | lists:reverse([Token | Within], Inside)], Open)
    end.

%% What no formula begins with, after a modality with a guard, was probably meant as a part of the guard.
expects_formula([Token | _] = Tokens, Inside) ->
    Begins = case Token of
        {Symbol, _} -> lists:member(Symbol, ['[', '<', '(', 'and', 'or']);
        {atom, _, Word} -> lists:member(Word, [tt, ff, max, min]);
        {Kind, _, _} -> Kind =:= var
    end,
    case Begins orelse not lists:keymember('when', 1, Inside) of
        true ->
            ok;
        false ->
            {error, Location, Code, Text, _} = unexpected("a formula", Tokens),
            throw(witness_spec_diagnostic:error(Location, Code, Text, braces()))
    end.

braces() -> "a guard with `>` inside `<...>` needs braces around the action: `<{P ? N when N > 1}>`".

meta([First | _] = Tokens, [Next | _]) ->
    {witness_spec_scan:location(First), witness_spec_scan:text(Tokens, witness_spec_scan:location(Next))}.

-spec expected(unicode:chardata(), [token()]) -> no_return().
expected(What, Tokens) -> throw(unexpected(What, Tokens)).

unexpected(What, [{'>', _} = Token | _]) ->
    witness_spec_diagnostic:error(witness_spec_scan:location(Token), syntax,
        ["expected ", What, ", found `>`"], braces());
unexpected(What, [{eof, _} = Token | _]) ->
    witness_spec_diagnostic:error(witness_spec_scan:location(Token), syntax,
        ["expected ", What, ", found the end of the file"]);
unexpected(What, [Token | _]) ->
    witness_spec_diagnostic:error(witness_spec_scan:location(Token), syntax,
        ["expected ", What, ", found ", witness_spec_diagnostic:quote(witness_spec_scan:token_text(Token))]).

-spec fail(witness_spec_diagnostic:location(), atom(), unicode:chardata()) -> no_return().
fail(Location, Code, Text) -> throw(witness_spec_diagnostic:error(Location, Code, Text)).
