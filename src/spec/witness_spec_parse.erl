-module(witness_spec_parse).
-moduledoc """
The grammar of specifications, by recursive descent; `m:witness_spec_record` has already read the attributes:

```text
file      = { attribute } { property | definition }
definition = "define" X [ "(" V { "," V } ")" ] "=" formula "." | "action" X [ "(" V { "," V } ")" ] "=" action "."
property  = [ name ":" ] selector [ "over" [ "taken" | "delivered" ] seen { "," seen } ] [ "among" signature { "," signature } ]
            { "let" V [ "(" V { "," V } ")" ] "=" value } what "."
selector  = "with" signature { "," signature } [ "group" ] [ "per" V { "," V } ] | "per" V { "," V }
seen      = [ "begin" ] action
value     = "previously" condition | "once" [ window ] condition | condition "since" [ window ] condition
          | "count" [ window ] condition | ("sum" | "min" | "max" | "mean") [ window ] expression "of" condition
condition = "{" action "}" { "or" "{" action "}" } | guard
window    = "within" duration | "within" integer ("events" | "event")
what      = "none" | "monitor" formula | "check" formula | sentence | machine
formula   = conj { "or" conj }
conj      = unit { "and" unit }
unit      = "[" action "]" unit | "<" action ">" unit
          | "and" "(" formula { "," formula } ")" | "or" "(" formula { "," formula } ")"
          | ("within" | "during") duration unit
          | fixpoint "(" X [ data ] "." formula ")" | fixpoint X [ data ] "." formula
          | "(" formula ")" | "tt" | "ff" | X [ "(" argument { "," argument } ")" ]
argument  = expression | X "(" argument { "," argument } ")" | "_"
fixpoint  = "max" | "min"
duration  = number ("ns" | "us" | "ms" | "s" | "min" | "h" | "d")
data      = "(" V "=" expression { "," V "=" expression } ")"
```

A `sentence` says in words what its core says as a formula (`m:witness_spec_sentence`), and so does a `machine` with states
(`m:witness_spec_machine`). A property with one of them needs no `over`.

After `max X.` a formula reaches as far as it can, as in the literature. If it begins with a parenthesis, that
ends it: `max X.(f) and g` is `(max X.(f)) and g`. Braces may surround an action: `[{...}]`; inside `<...>`
they are needed if a guard contains `>`, and in `over` around an exit written `P * R` that follows a guard. Between
properties a comma may replace the dot. A condition without braces is a guard, which does not begin with a brace.

An error ends its property or definition; the next one is still read.
""".

-export([file/2, actions/4, formula_actions/1, let_actions/1, map_lets/3, property_actions/1, property_signatures/1, names/1,
         what/1]).
-export_type([property/0, definition/0, formula/0, argument/0, parameter/0, meta/0]).

-import(witness_spec_scan, [refuse/3, expected/3]).

-doc "Where a formula begins and its source text, cut to a limit.".
-type meta() :: {witness_spec_diagnostic:location(), Text :: binary()}.
-doc """
A formula as it was written. A fixpoint may have parameters, and its recursion variable then has a value for each of them.
`m:witness_spec_define` replaces the uses of definitions, which look like recursion variables, and arguments by values. `unknown` and negative
durations are made by `m:witness_spec_clocks`.
""".
-type formula() :: {tt | ff, meta()}
    | {var, meta(), atom(), [witness_spec_pattern:expr() | argument()]}
    | {'and' | 'or', meta(), [formula(), ...]}
    | {box | dia, meta(), witness_spec_action:action(), formula()}
    | {max | min, meta(), atom(), [parameter()], formula()}
    | {within | during, meta(), {duration, Nanoseconds :: integer()}, [], formula()}
    | {unknown, meta()}.
-doc "What stands in the parentheses behind a name, with its text.".
-type argument() :: {Text :: binary(), witness_spec_pattern:expr() | {formula, formula()}}.
-doc "A definition, with its place from the first token up to its dot. The location is that of its name.".
-type definition() :: #{define := formula | action, name := atom(), location := witness_spec_diagnostic:location(),
                        parameters := [{atom(), witness_spec_diagnostic:location()}],
                        from := witness_spec_diagnostic:location(), to := witness_spec_diagnostic:location(),
                        formula => formula(), action => witness_spec_action:action()}.
-doc "A parameter with its first value.".
-type parameter() :: {atom(), witness_spec_diagnostic:location(), witness_spec_pattern:expr()}.
-doc """
A property; `formula` is missing if nothing is to be monitored. `all`: it has no `with`, and is about all processes
together; the one signature matches every process then, and `group` is true. The values of the variables in `per` choose the
slice; their places are in `per_at`. `over` are the actions that describe the events which count. `receives` says which messages
`_ ? M` is about, with the place of that word. `among` says which processes a property about all processes reads. `lets` are what
`m:witness_spec_let` computes. `defined` are the names of the file's
definitions, `core` is the text of the property with what its sentence or machine expands to, `machine` is what was written in place of a formula, with its `warnings`. `requests`, from `m:witness_spec_otp`: some action needs the request of a reply.
""".
-type property() :: #{name := binary() | undefined,
                      location := witness_spec_diagnostic:location(),
                      signatures := [witness_spec_action:signature(), ...],
                      text := binary(),
                      all := boolean(),
                      group := boolean(),
                      per := [atom()],
                      per_at := [witness_spec_diagnostic:location()],
                      over := all | [witness_spec_action:action(), ...],
                      receives := any | {taken | delivered, witness_spec_diagnostic:location()},
                      among := all | [witness_spec_action:signature(), ...],
                      lets := [witness_spec_let:definition()],
                      dialect := monitor | check | none,
                      requests => boolean(),
                      defined => [atom()],
                      core => binary(),
                      machine => witness_spec_machine:machine(),
                      warnings => [witness_spec_diagnostic:finding()],
                      formula => formula()}.

-type token() :: witness_spec_scan:token().

%% They become one `case`, and the compiler's time grows faster than their number.
-define(MAX_OVER, 1_000).
%% Each of them is computed at each event.
-define(MAX_LETS, 50).
%% So many errors are compared with Elixir's notation.
-define(MAX_EXPLAINED, 50).

-doc "Reads all properties and definitions of a file: those that are well-formed, and the errors of the others. `Chars` is the text of the file.".
-spec file([token()], Chars :: string()) -> {[property() | definition()], [witness_spec_diagnostic:finding()]}.
file(Tokens, Chars) ->
    Defined = defined(Tokens),
    {Properties, Findings} = file(Tokens, [], [], {Chars, {1, 1}, ?MAX_EXPLAINED}, Defined),
    {Properties, reserved(Tokens) ++ Findings}.

-doc "What a property was written as.".
-spec what(property()) -> formula | sentence | machine.
what(#{machine := _}) -> machine;
what(#{core := _}) -> sentence;
what(_) -> formula.

%% The text from a place on.
skip([$\n | Chars], {Line, _}, {Until, _} = Place) when Line < Until -> skip(Chars, {Line + 1, 1}, Place);
skip([_ | Chars], {Line, Column}, Place) when {Line, Column} < Place -> skip(Chars, {Line, Column + 1}, Place);
skip(Chars, _, _) -> Chars.

%% These variables are added to the author's (`m:witness_spec_otp`).
reserved(Tokens) ->
    [witness_spec_diagnostic:error(witness_spec_scan:location(Variable), reserved_variable,
                                   "variables that begin with `_@` are reserved") ||
        {var, _, Name} = Variable <- Tokens, lists:prefix("_@", atom_to_list(Name))].

%% The names of all definitions, which those of a core have to avoid.
defined([{atom, _, Word}, {var, _, Name} | Rest]) when Word =:= define; Word =:= action -> [Name | defined(Rest)];
defined([_ | Rest]) -> defined(Rest);
defined([]) -> [].

file([{eof, _}], Properties, Findings, _, _) ->
    {lists:reverse(Properties), lists:reverse(Findings)};
file(Tokens, Properties, Findings, Text, Defined) ->
    try property(Tokens, Defined) of
        {Property, Rest} -> file(Rest, [Property | Properties], Findings, Text, Defined)
    catch
        throw:{error, Location, _, _, _} = Finding ->
            {{error, Place, _, _, _} = Explained, Left} = explain(Finding, Tokens, resume(Tokens, Location, []), Text),
            file(resume(Tokens, Place, []), Properties, [Explained | Findings], Left, Defined)
    end.

%% The text is that from a place on, with the number of errors that may still be compared with it.
explain(Finding, _, _, {_, _, 0} = Text) ->
    {Finding, Text};
explain(Finding, [First | _], [Next | _], {Chars, Place, Left}) ->
    From = witness_spec_scan:location(First),
    To = case Next of {eof, _} -> eof; _ -> witness_spec_scan:location(Next) end,
    Own = skip(Chars, Place, From),
    {witness_spec_elixir:explain(Finding, Own, From, To), {Own, From, Left - 1}}.

%% After the dot that ends the property with the error: the first one from there on that is not the dot of a fixpoint,
%% or any that a property follows. If its dot is missing, a property follows at the beginning of a line.
resume([{dot, _} = Dot | Rest], Location, Before) ->
    case witness_spec_scan:location(Dot) >= Location andalso (begins(Rest) orelse not fixpoint_dot(Before)) of
        true -> Rest;
        false -> resume(Rest, Location, [Dot | Before])
    end;
resume([{eof, _}] = End, _, _) -> End;
resume([Token | Rest] = Tokens, Location, Before) ->
    case witness_spec_scan:location(Token) of
        {_, 1} = Place when Place > Location, Before =/= [] ->
            case begins(Tokens) of
                true -> Tokens;
                false -> resume(Rest, Location, [Token | Before])
            end;
        _ -> resume(Rest, Location, [Token | Before])
    end.

fixpoint_dot([_, {atom, _, Name} | _]) -> Name =:= max orelse Name =:= min;
fixpoint_dot([_, {'(', _}, {atom, _, Name} | _]) -> Name =:= max orelse Name =:= min;
fixpoint_dot([{')', _} | Before]) -> fixpoint_dot(before_parentheses(Before, 0));
fixpoint_dot(_) -> false.

before_parentheses([{'(', _} | Before], 0) -> Before;
before_parentheses([{'(', _} | Before], Depth) -> before_parentheses(Before, Depth - 1);
before_parentheses([{')', _} | Before], Depth) -> before_parentheses(Before, Depth + 1);
before_parentheses([_ | Before], Depth) -> before_parentheses(Before, Depth);
before_parentheses([], _) -> [].

begins([{atom, _, Word} | _]) when Word =:= with; Word =:= per -> true;
begins([{atom, _, Word}, {var, _, _} | _]) when Word =:= define; Word =:= action -> true;
begins([{atom, _, _}, {':', _}, {atom, _, Word} | _]) -> Word =:= with orelse Word =:= per;
begins(_) -> false.

property([{atom, _, Name} = Token, {':', _}, {atom, _, Word} = Whom | Rest], Defined) when Word =:= with; Word =:= per ->
    subject([Whom | Rest], #{name => atom_to_binary(Name), location => witness_spec_scan:location(Token), defined => Defined});
property([{atom, _, Word} = Token | _] = Tokens, Defined) when Word =:= with; Word =:= per ->
    subject(Tokens, #{name => undefined, location => witness_spec_scan:location(Token), defined => Defined});
property([{atom, _, Word} = First, {var, _, Name} = Token | Rest], _) when Name =/= '_', (Word =:= define orelse Word =:= action) ->
    {Parameters, After} = case Rest of
        [{'(', _} | _] -> enclosed(Rest, fun defined_parameter/2);
        _ -> {[], Rest}
    end,
    Body = case After of
        [{'=', _} | Behind] -> Behind;
        _ -> expected("`=` and what the name is for", After)
    end,
    Definition = #{name => Name, location => witness_spec_scan:location(Token), parameters => Parameters,
                   from => witness_spec_scan:location(First)},
    {Content, End} = case Word of
        define ->
            {Formula, AfterFormula} = formula(Body),
            {#{define => formula, formula => Formula}, AfterFormula};
        action ->
            {Action, AfterAction} = defined_action(Body),
            {#{define => action, action => Action}, AfterAction}
    end,
    {maps:merge(Definition#{to => witness_spec_scan:location(hd(End))}, Content), dot(End)};
property([{'-', _} = Dash, {atom, _, Name} | _], _) when Name =:= record; Name =:= include ->
    fail(witness_spec_scan:location(Dash), syntax, ["`-", atom_to_list(Name), "` stands at the top of the file only"]);
property([{atom, _, over} = Token | _], _) ->
    refuse(Token, "`over` stands behind `with` or `per`",
           "`with m:f(_)` says which processes it is about; `per V over ...` is about the values of `V` in all processes");
property([{atom, _, _} = Name, {':', _} | Rest], _) ->
    expected(["`with` or `per` behind `", witness_spec_scan:token_text(Name), ":`"], Rest);
property(Tokens, _) ->
    expected("a property, such as `with m:f(_) monitor [_ <- _, _] [_ ? stop] ff.`", Tokens).

defined_parameter([{var, _, Name} = Token], _) when Name =/= '_' -> {Name, witness_spec_scan:location(Token)};
defined_parameter(Tokens, End) ->
    throw(witness_spec_diagnostic:error(case Tokens of [First | _] -> witness_spec_scan:location(First); [] -> End end, syntax,
        "expected a parameter", "the parameters of a definition are variables, as in `define Busy(Who) = ...`")).

defined_action(Tokens) ->
    {Action, [Next | _] = After} = witness_spec_pattern:split_before(Tokens, fun([{Symbol, _} | _], _) ->
        Symbol =:= dot orelse Symbol =:= eof; (_, _) -> false end),
    case action_at(Action, witness_spec_scan:location(Next)) of
        #{kind := 'else', location := Location} ->
            throw(witness_spec_diagnostic:error(Location, syntax, "`else` needs no name", "write it where it stands: `[else] f`"));
        Defined -> {Defined, After}
    end.

subject([{atom, _, per} = Per | _] = Tokens, Property) ->
    Anyone = #{pattern => {var, erl_anno:new(witness_spec_scan:location(Per)), '_'}, guard => [],
               location => witness_spec_scan:location(Per)},
    per(Tokens, Property#{signatures => [Anyone], text => ~"all processes", all => true, group => true});
subject([{atom, _, with} = With | Rest], Property) ->
    {Signatures, After} = signatures(Rest, With),
    Text = witness_spec_scan:text(Rest, witness_spec_scan:location(hd(After))),
    group(After, Property#{signatures => Signatures, text => Text, all => false}).

group([{atom, _, group} = Token, {atom, _, none} | _], _) ->
    fail(witness_spec_scan:location(Token), syntax, "a signature with `none` begins no group");
group([{atom, _, group} | Rest], Property) -> per(Rest, Property#{group => true});
group(Tokens, Property) -> per(Tokens, Property#{group => false}).

per([{atom, _, per} = Per | Rest], Property) ->
    {Variables, After} = variables(Rest),
    case After of
        [{atom, _, among} = Among | _] ->
            refuse(Among, "`among` stands behind `over`", "as in `per Id over _ ? {request, Id} among m:f(_)`");
        [{'let', _} | _] -> ok;
        [{atom, _, over} | _] -> ok;
        _ -> begins_short(After, []) orelse needs_over(witness_spec_scan:location(Per))
    end,
    {Names, Places} = lists:unzip([{Name, witness_spec_scan:location(V)} || {var, _, Name} = V <- Variables]),
    over(After, Property#{per => Names, per_at => Places});
per(Tokens, Property) ->
    over(Tokens, Property#{per => [], per_at => []}).

-spec needs_over(witness_spec_diagnostic:location()) -> no_return().
needs_over(Location) ->
    throw(witness_spec_diagnostic:error(Location, syntax, "`per` needs an `over`",
        "as in `per Id over _ ? {request, Id}, _ : _ ! {answer, Id}`: which events belong to which value")).

variables([{var, _, Name} = Variable | Rest]) when Name =/= '_' ->
    case Rest of
        [{',', _} | More] ->
            {Others, After} = variables(More),
            {[Variable | Others], After};
        _ ->
            {[Variable], Rest}
    end;
variables(Tokens) ->
    expected("a variable after `per`", Tokens).

over([{atom, _, over} = Over | Words], #{per := Per} = Property) ->
    {Receives, Rest} = receives(Words),
    {Actions, After} = list_of(fun(Item) -> over_action(Item, Per) end, Rest, Over),
    length(Actions) =< ?MAX_OVER orelse
        fail(witness_spec_scan:location(Over), too_large, io_lib:format("`over` has at most ~b actions", [?MAX_OVER])),
    among(After, Property#{over => Actions, receives => Receives});
over(Tokens, Property) ->
    among(Tokens, Property#{over => all, receives => any}).

among([{atom, _, among} = Among | Rest], #{all := true} = Property) ->
    {Signatures, After} = signatures(Rest, Among),
    length(Signatures) =< ?MAX_OVER orelse
        fail(witness_spec_scan:location(Among), too_large, io_lib:format("`among` has at most ~b signatures", [?MAX_OVER])),
    Text = witness_spec_scan:text(Rest, witness_spec_scan:location(hd(After))),
    lets(After, Property#{among => Signatures, text := <<"all ", Text/binary>>});
among([{atom, _, among} = Among | _], _) ->
    refuse(Among, "`among` is for properties without `with`",
           "`with` says which processes have a monitor each; `per V over ... among m:f(_)` is about all of these together");
among(Tokens, Property) ->
    lets(Tokens, Property#{among => all}).

%% No action begins with one of these words.
receives([{atom, _, Word} = Token | Rest]) when Word =:= taken; Word =:= delivered ->
    {{Word, witness_spec_scan:location(Token)}, Rest};
receives(Tokens) -> {any, Tokens}.

over_action({[{'begin', _} = Begin | Tokens], End}, Per) ->
    #{pattern := Pattern} = Action = action_at(Tokens, End),
    ordsets:is_disjoint(witness_spec_pattern:variables(Pattern), ordsets:from_list(Per)) andalso
        refuse(Begin, "no slice can begin here", case Per of
            [] -> "`begin` is for slices, and there is no `per`";
            _ -> "an action that begins a slice binds the variables of `per`"
        end),
    Action#{begins => true};
over_action({Tokens, End}, _) ->
    case action_at(Tokens, End) of
        #{kind := 'else', location := Location} ->
            throw(witness_spec_diagnostic:error(Location, syntax, "`else` has no place in `over`",
                "without `over` every event counts; `else` is for the formula, as in `[else] X`"));
        Action -> Action#{begins => false}
    end.

lets(Tokens, Property) ->
    {Lets, After} = lets(Tokens),
    length(Lets) =< ?MAX_LETS orelse
        fail(witness_spec_scan:location(hd(Tokens)), too_large, io_lib:format("a property has at most ~b `let`s", [?MAX_LETS])),
    dialect(After, Property#{lets => Lets}).

lets([{'let', _}, {var, _, Name} = Variable | Behind]) when Name =/= '_' ->
    {Parameters, Rest} = case Behind of
        [{'(', _} | _] -> enclosed(Behind, fun let_parameter/2);
        _ -> {[], Behind}
    end,
    case Rest of
        [{'=', _} | Value] ->
            {Definition, Left} = value(Value),
            ends_let(Left),
            {Others, After} = lets(Left),
            {[Definition#{name => Name, location => witness_spec_scan:location(Variable), parameters => Parameters,
                          text => witness_spec_scan:text(Value, witness_spec_scan:location(hd(Left)))} | Others], After};
        _ -> expected("`=` and a value", Rest)
    end;
lets([{'let', _} | Rest]) ->
    expected("a variable behind `let`", Rest, "it begins with a capital letter, as in `let Asked = once {_ ? request}`");
lets(Tokens) -> {[], Tokens}.

let_parameter([{var, _, Name} = Token], _) when Name =/= '_' -> {Name, witness_spec_scan:location(Token)};
let_parameter(Tokens, End) ->
    throw(witness_spec_diagnostic:error(case Tokens of [First | _] -> witness_spec_scan:location(First); [] -> End end, syntax,
        "expected a variable", "as in `let Asked(User) = once {_ ? {request, User}}`: `Asked` has a value for each user")).

ends_let([{'when', _} = When | _]) -> refuse(When, "a guard has no place here", "that of an action stands inside of its braces");
ends_let([{',', _} = Comma, {'let', _} | _]) -> refuse(Comma, "no comma stands between `let`s", "leave it out");
ends_let([{atom, _, since} = Since | _]) ->
    refuse(Since, "`since` has no place here", "it stands between two conditions, without a word in front: `{a} since {b}`");
ends_let(_) -> ok.

value([{atom, _, previously}, {atom, _, within} = Within | _]) ->
    refuse(Within, "`previously` has no window", "it is about the event before, as in `previously {_ ? request}`");
value([{atom, _, previously} = Word | Rest]) ->
    {Condition, After} = condition(Rest, Word),
    {#{value => previously, window => all, condition => Condition}, After};
value([{atom, _, Kind} = Word | Rest]) when Kind =:= once; Kind =:= count ->
    {Window, Behind} = window(Rest),
    {Condition, After} = condition(Behind, Word),
    {#{value => Kind, window => Window, condition => Condition}, After};
%% A guard may call `max/2` and `min/2`: then `since` comes, and no `of`.
value([{atom, _, Kind}, {'(', _} | _] = Tokens) when Kind =:= min; Kind =:= max ->
    case witness_spec_pattern:split_before(Tokens, fun ends_condition/2) of
        {_, [{atom, _, since} | _]} -> since(Tokens);
        _ -> aggregate(Tokens)
    end;
value([{atom, _, Kind} | _] = Tokens) when Kind =:= sum; Kind =:= min; Kind =:= max; Kind =:= mean -> aggregate(Tokens);
value(Tokens) -> since(Tokens).

aggregate([{atom, _, Kind} | Rest]) ->
    {Window, Behind} = window(Rest),
    {Expr, [Of | Left]} = witness_spec_pattern:split_before(Behind, fun ends_condition/2),
    element(1, Of) =:= 'of' orelse
        refuse(Of, ["expected `of` behind what `", atom_to_list(Kind), "` is about"],
               ["as in `", atom_to_list(Kind), " N of {_ ? {pay, N}}`"]),
    Value = witness_spec_pattern:expression(Expr, "a value", witness_spec_scan:location(Of)),
    {Condition, After} = condition(Left, Of),
    {#{value => Kind, window => Window, condition => Condition, 'of' => {Value, witness_spec_scan:location(hd(Expr))}}, After}.

since([First | Next] = Tokens) ->
    is_value(First, Next) andalso not ends_condition(Tokens, []) orelse not_a_value("a value", Tokens),
    {Condition, Rest} = condition(Tokens, First),
    case Rest of
        [{atom, _, since} = Word | Behind] ->
            {Window, Left} = window(Behind),
            {Since, After} = condition(Left, Word),
            {#{value => since, window => Window, condition => Condition, since => Since}, After};
        _ -> not_a_value("`since`", Rest)
    end.

%% No guard begins with an atom and an operand, or a brace, behind it.
is_value({atom, _, _}, [{'{', _} | _]) -> false;
is_value({atom, _, _} = First, [{_, _, _} | _] = Next) -> ends_condition(Next, [First]);
is_value(_, _) -> true.

-spec not_a_value(unicode:chardata(), [token()]) -> no_return().
not_a_value(What, Tokens) ->
    expected(What, Tokens, "a value begins with `previously`, `once`, `count`, `sum`, `min`, `max` or `mean`, or is `{a} since {b}`").

window([{atom, _, within}, {integer, _, Count} = Token, {atom, _, Events} | Rest]) when Events =:= events; Events =:= event ->
    Count > 0 orelse refuse(Token, "expected a number of events from 1 on", "`within 1 event` is this event alone"),
    {{events, Count}, Rest};
window([{atom, _, within} | Rest]) ->
    {Duration, After} = duration(within, Rest),
    {{time, Duration}, After};
window(Tokens) -> {all, Tokens}.

%% A guard is an action that every event matches as far as its pattern is concerned.
condition([{'{', _} | _] = Tokens, _) ->
    {Inside, Close, Rest} = witness_spec_pattern:split_enclosed(Tokens),
    #{kind := Kind, location := Location} = Action = action(Inside, Close),
    Kind =/= 'else' orelse
        throw(witness_spec_diagnostic:error(Location, syntax, "`else` has no place in a `let`",
                                            "a condition names its events; `else` is for the formula, as in `[else] X`")),
    case Rest of
        [{'or', _}, {'{', _} = Open | More] ->
            {Others, After} = condition([Open | More], Open),
            {[Action | Others], After};
        [{'or', _} = Or | _] ->
            refuse(Or, "expected an action in braces behind `or`",
                   "a condition is actions, or a guard: give one of them a `let` of its own");
        _ -> {[Action], Rest}
    end;
condition(Tokens, Before) ->
    {Guard, Rest} = witness_spec_pattern:split_before(Tokens, fun ends_condition/2),
    Guard =/= [] orelse
        refuse(hd(Rest), ["expected a condition behind ", witness_spec_diagnostic:quote(witness_spec_scan:token_text(Before))],
               "an action in braces, as in `{_ ? request}`, or a guard over `let`s in front of this one"),
    [refuse(Sign, "an action in a condition stands in braces, and only `or` between them",
            "as in `once {_ ? a} or {_ ? b}`; for the opposite give it a name, as in `let A = once within 1 event {_ ? a}`: then `not A`")
     || {Symbol, _} = Sign <- Guard, lists:member(Symbol, ['?', '!', '<-', '->'])],
    At = witness_spec_scan:location(hd(Guard)),
    End = witness_spec_scan:location(hd(Rest)),
    {[#{kind => test, location => At, text => witness_spec_scan:text(Guard, End), pattern => {var, erl_anno:new(At), '_'},
        guard => witness_spec_pattern:guard(Guard, End)}], Rest}.

ends_condition([{Symbol, _} | _], _) when Symbol =:= 'let'; Symbol =:= 'of'; Symbol =:= dot; Symbol =:= eof -> true;
ends_condition([{atom, _, Word} | _], Before) when Word =:= since; Word =:= monitor; Word =:= check; Word =:= none ->
    Before =:= [] orelse witness_spec_scan:ends_operand(hd(Before));
ends_condition(Tokens, [Last | _] = Before) ->
    witness_spec_scan:ends_operand(Last) andalso begins_short(Tokens, Before);
ends_condition(_, _) -> false.

dialect([{atom, _, none} = Token | _], #{over := Over, lets := Lets}) when is_list(Over); Lets =/= [] ->
    fail(witness_spec_scan:location(Token), syntax, "a signature with `none` takes no `per`, no `over` and no `let`");
dialect([{atom, _, none} | Rest], Property) ->
    {Property#{dialect => none}, dot(Rest)};
dialect([{atom, _, Dialect} | _], #{per_at := [Per | _], over := all}) when Dialect =:= monitor; Dialect =:= check ->
    needs_over(Per);
dialect([{atom, _, Dialect} | Rest], Property) when Dialect =:= monitor; Dialect =:= check ->
    {Formula, After} = formula(Rest),
    {Property#{dialect => Dialect, formula => Formula}, dot(After)};
dialect([{atom, _, Word} = Token | _], _) when Word =:= group; Word =:= per; Word =:= over; Word =:= among ->
    refuse(Token, ["`", atom_to_list(Word), "` has no place here"],
           "the order is `with`, `group`, `per`, `over`, `among`, `let`, and then `monitor` or `check`");
dialect([{atom, _, machine} | _] = Tokens, Property) -> machine(Tokens, Property#{dialect => check});
dialect(Tokens, Property) ->
    case witness_spec_sentence:begins(Tokens, []) of
        true -> sentence(Tokens, Property#{dialect => check});
        false -> expected("`monitor`, `check`, `none`, `machine` or a sentence", Tokens, "a sentence begins with `never`, `always`, "
                          "`at most`, `at least`, `exactly`, `unique`, `increasing`, or an action in braces")
    end.

sentence(Tokens, #{over := Over, lets := Lets} = Property) ->
    {#{actions := Read} = Sentence, After} = witness_spec_sentence:read(Tokens),
    Actions = #{Role => sentence_action(Part, End) || {Role, Part, End} <- Read},
    ok = witness_spec_sentence:check(Sentence, Actions, Property),
    Whole = case Over of
        all -> Property#{over := witness_spec_sentence:over(Sentence, Actions, let_actions(Lets), Property)};
        _ -> Property
    end,
    Core = unicode:characters_to_binary(witness_spec_sentence:core(Sentence, Actions, Property)),
    {ok, Scanned} = witness_spec_scan:string(Core),
    {Own, [_ | Check]} = lets(Scanned),
    {Formula, _} = formula(Check),
    {Filled, More} = witness_spec_sentence:fill(Formula, Own, Sentence, Actions),
    {Whole#{lets := Lets ++ More, formula => Filled, core => witness_spec_sentence:text(Whole, Sentence, Actions)}, dot(After)}.

machine(Tokens, #{over := Over, lets := Lets} = Property) ->
    {Machine, After} = witness_spec_machine:read(Tokens, fun sentence_action/2),
    {Whole, Seen} = case Over of
        all ->
            Derived = witness_spec_machine_core:over(Machine, let_actions(Lets), Property),
            {Property#{over := [Action || {Action, _} <- Derived]}, #{Action => Text || {Action, Text} <- Derived}};
        _ -> {Property, #{}}
    end,
    Warnings = witness_spec_machine_check:check(Machine, Whole),
    {Formula, Text} = witness_spec_machine_core:formula(Machine, Whole),
    Heading = witness_spec_sentence:heading(Whole, fun(#{text := Written, begins := Begins} = Action) ->
        [["begin " || Begins], witness_spec_machine_core:braced(Action, maps:get(Action, Seen, Written))]
    end),
    {Whole#{formula => Formula, machine => Machine, warnings => Warnings,
            core => unicode:characters_to_binary([[[Line, "\n"] || Line <- Heading], "check ", Text, "."])}, dot(After)}.

%% What is short for a formula.
begins_short(Tokens, Before) -> witness_spec_sentence:begins(Tokens, Before) orelse witness_spec_machine:begins(Tokens).

%% The prefix is not a part of what the author wrote.
sentence_action([_ | _] = Tokens, End) ->
    {_, Added} = witness_spec_sentence:prefix(Tokens),
    case action_at(Added ++ Tokens, End) of
        #{kind := 'else', location := Location} ->
            throw(witness_spec_diagnostic:error(Location, syntax, "`else` has no place in a sentence",
                                                "a sentence names its events; `else` is for the formula, as in `[else] X`"));
        Action -> Action#{text := witness_spec_scan:text(Tokens, End)}
    end;
sentence_action([], End) ->
    throw(witness_spec_diagnostic:error(End, syntax, "expected an action", "as in `never {_ ? stop}`")).

dot([{dot, _} | Rest]) -> Rest;
dot([{',', _} | Rest] = Tokens) ->
    case begins(Rest) of
        true -> Rest;
        false -> expected("`.` at the end of the property", Tokens)
    end;
dot(Tokens) -> expected("`.` at the end of the property", Tokens).

%% Signatures and the actions of `over` are in lists; a guard could hide their commas and their end. A word ends the
%% list where an operand is impossible; a comma ends a guard if what follows cannot be a test.
signatures(Tokens, Previous) ->
    list_of(fun({Signature, End}) -> witness_spec_action:signature(Signature, End) end, Tokens, Previous).

list_of(Read, Tokens, Previous) ->
    {Taken, Rest} = element(Tokens),
    Last = case Taken of [] -> Previous; _ -> lists:last(Taken) end,
    Item = Read({Taken, witness_spec_scan:after_token(Last)}),
    case Rest of
        [{',', _} = Comma | More] ->
            {Others, After} = list_of(Read, More, Comma),
            {[Item | Others], After};
        _ ->
            {[Item], Rest}
    end.

element(Tokens) ->
    case witness_spec_pattern:split_before(Tokens, fun ends_main/2) of
        {Main, [{'when', _} = When | Guard]} ->
            {Tests, Rest} = witness_spec_pattern:split_before(Guard, fun ends_guard/2),
            {Main ++ [When | Tests], Rest};
        %% The comma of `P -> C, m:f(A)` and `C <- P, m:f(A)`.
        {Main, [{',', _} = Comma | Signature] = Rest} ->
            case is_birth(Main) of
                true ->
                    {Others, After} = element(Signature),
                    {Main ++ [Comma | Others], After};
                false ->
                    {Main, Rest}
            end;
        {Main, Rest} ->
            {Main, Rest}
    end.

%% Braces around the whole action include the comma, too.
is_birth([{'{', _} | _] = Tokens) ->
    {_, _, After} = witness_spec_pattern:split_enclosed(Tokens),
    is_birth(After);
is_birth(Tokens) ->
    case witness_spec_pattern:split_before(Tokens, fun witness_spec_action:is_about_function/2) of
        {_, []} -> lists:any(fun(Arrow) -> lists:keymember(Arrow, 1, Tokens) end, ['->', '<-', '--']);
        %% The arrow of `P returns m:f/1 -> V`.
        _ -> false
    end.

ends_main([{Symbol, _} | _], _) when Symbol =:= ','; Symbol =:= 'when' -> true;
ends_main(Tokens, Taken) -> ends_list(Tokens, Taken).

ends_guard([{',', _} | Rest], _) -> next_signature(Rest) orelse next_action(Rest);
ends_guard(Tokens, Taken) -> ends_list(Tokens, Taken).

ends_list([{End, _} | _], _) when End =:= dot; End =:= eof; End =:= 'let' -> true;
ends_list([{atom, _, Word} | _], [Last | Before]) when
        Word =:= group; Word =:= monitor; Word =:= check; Word =:= none; Word =:= per; Word =:= over; Word =:= among ->
    witness_spec_scan:ends_operand(Last) andalso not is_to(Last, Before);
ends_list(Tokens, [Last | Before] = Taken) ->
    witness_spec_scan:ends_operand(Last) andalso not is_to(Last, Before) andalso begins_short(Tokens, Taken);
ends_list(_, _) -> false.

%% Behind the `to` of a reply comes its request, which may be any atom.
is_to({atom, _, to}, [Last | Before]) -> witness_spec_scan:ends_operand(Last) andalso not is_to(Last, Before);
is_to(_, _) -> false.

next_signature([{var, _, _}, {'.', _} | _]) ->
    true;
next_signature([{Kind, _, Module}, {':', _}, {Other, _, _}, {'(', _} | _]) when
        (Kind =:= atom orelse Kind =:= var), (Other =:= atom orelse Other =:= var) ->
    Module =/= erlang;
next_signature(_) ->
    false.

%% No test begins with `begin` or is a tuple alone, and none has one of the signs of actions; `P * R` could be one.
next_action([{'begin', _} | _]) ->
    true;
next_action([{var, _, _}, {'(', _} | _]) ->
    true;
next_action([{'{', _} | _] = Tokens) ->
    {_, Close, After} = witness_spec_pattern:split_enclosed(Tokens),
    ends_test(After, [Close]) orelse has_sign(Tokens);
next_action(Tokens) ->
    has_sign(Tokens).

has_sign(Tokens) ->
    Signs = fun(Left, Taken) -> is_sign(Left) orelse witness_spec_action:is_about_function(Left, Taken) end,
    case witness_spec_pattern:split_before(Tokens, fun(Left, Taken) -> Signs(Left, Taken) orelse ends_test(Left, Taken) end) of
        {_, []} -> false;
        {Taken, Rest} -> Signs(Rest, lists:reverse(Taken))
    end.

is_sign([{'*', _}, {'*', _} | _]) -> true;
is_sign([{'--', _}, {'>', _} | _]) -> true;
is_sign([{Symbol, _} | _]) -> lists:member(Symbol, ['->', '<-', '?', '!']);
is_sign(_) -> false.

ends_test([{Symbol, _} | _], _) when Symbol =:= ','; Symbol =:= ';'; Symbol =:= 'when' -> true;
ends_test(Tokens, Taken) -> ends_list(Tokens, Taken).

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
    {Inside, Close, Rest} = witness_spec_pattern:split_enclosed(Tokens),
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
    refuse(Token, ["expected a formula, found `", atom_to_list(Operator), "`"],
           ["it stands between two formulas, or in front of a list: `", atom_to_list(Operator), "(f, g)`"]);
unit([{atom, _, Fixpoint} | Rest] = Tokens) when Fixpoint =:= max; Fixpoint =:= min ->
    {Name, Parameters, Formula, After} = fixpoint(Rest),
    {{Fixpoint, meta(Tokens, After), Name, Parameters, Formula}, After};
unit([{atom, _, Word} | Rest] = Tokens) when Word =:= within; Word =:= during ->
    {Duration, Behind} = duration(Word, Rest),
    {Formula, After} = unit(Behind),
    {{Word, meta(Tokens, After), {duration, Duration}, [], Formula}, After};
unit([{'(', _} = Open | Rest]) ->
    {Formula, After} = formula(Rest),
    {Formula, close(Open, After)};
unit([{atom, _, Constant} | After] = Tokens) when Constant =:= tt; Constant =:= ff ->
    {{Constant, meta(Tokens, After)}, After};
unit([{atom, _, Boolean} = Token | _]) when Boolean =:= true; Boolean =:= false ->
    refuse(Token, ["expected a formula, found `", atom_to_list(Boolean), "`"],
           "the formula that always holds is `tt`, the one that never does is `ff`");
unit([{var, _, Name}, {'(', _} = Open | Rest] = Tokens) when Name =/= '_' ->
    {Arguments, After} = enclosed([Open | Rest], fun argument/2),
    {{var, meta(Tokens, After), Name, Arguments}, After};
unit([{var, _, Name} | After] = Tokens) when Name =/= '_' ->
    {{var, meta(Tokens, After), Name, []}, After};
unit([{'let', _} = Let | _]) -> refuse(Let, "expected a formula, found `let`", "it stands in front of `monitor` or `check`");
unit(Tokens) ->
    expected("a formula", Tokens).

duration(Word, [{integer, _, Nanoseconds} = Token, Next | _] = Tokens) ->
    case {witness_spec_time:is_duration(Token), witness_spec_time:is_duration(Next)} of
        {true, false} -> {Nanoseconds, tl(Tokens)};
        {true, true} ->
            refuse(Next, "a duration is one number with one unit", "`1 min 30 s` is `90 s`");
        {false, _} -> without_unit(Word, Tokens)
    end;
duration(Word, [{float, _, _} | _] = Tokens) -> without_unit(Word, Tokens);
duration(Word, Tokens) ->
    expected("a duration", Tokens, ["as in `", atom_to_list(Word), " 5 s`; ", witness_spec_time:units()]).

-spec without_unit(atom(), [token()]) -> no_return().
without_unit(Word, [Number, Next | _]) ->
    is_formula_word(Next) orelse not witness_spec_time:is_unknown_unit(Number, Next) orelse
        refuse(Next, [witness_spec_diagnostic:quote(witness_spec_scan:token_text(Next)), " is not a unit of time"],
               ["as in `", atom_to_list(Word), " 5 s`; ", witness_spec_time:units()]),
    Written = witness_spec_scan:token_text(Number),
    refuse(Number, [witness_spec_diagnostic:quote(Written), " is not a duration: it needs a unit in the same line"],
           ["as in `", atom_to_list(Word), " ", Written, " s`; ", witness_spec_time:units()]).

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
    {Name, Parameters, Body} = recursion(Rest),
    {Formula, After} = formula(Body),
    {Name, Parameters, Formula, close(Open, After)};
fixpoint(Tokens) ->
    case recursion(Tokens) of
        {Name, Parameters, [{'(', _} = Open | Rest]} ->
            {Formula, After} = formula(Rest),
            {Name, Parameters, Formula, close(Open, After)};
        {Name, Parameters, Body} ->
            {Formula, After} = formula(Body),
            {Name, Parameters, Formula, After}
    end.

recursion([{var, _, Name}, {'(', _} = Open | Rest]) when Name =/= '_' ->
    {Parameters, After} = enclosed([Open | Rest], fun parameter/2),
    case After of
        [{Dot, _} | Body] when Dot =:= dot; Dot =:= '.' -> {Name, Parameters, Body};
        _ -> expected("`.` after the parameters", After)
    end;
recursion([{var, _, Name}, {Dot, _} | Rest]) when Name =/= '_', (Dot =:= dot orelse Dot =:= '.') -> {Name, [], Rest};
recursion([{var, _, Name} | Rest]) when Name =/= '_' -> expected("`.` after the recursion variable", Rest);
recursion(Tokens) -> expected("a recursion variable", Tokens).

%% What is in parentheses, separated by commas.
enclosed([Open | _] = Tokens, Read) ->
    {Inside, Close, After} = witness_spec_pattern:split_enclosed(Tokens),
    Inside =/= [] orelse fail(witness_spec_scan:location(Open), syntax, "there is nothing in these parentheses"),
    {[Read(Part, End) || {Part, End} <- witness_spec_pattern:split(Inside, ',', witness_spec_scan:location(Close))], After}.

argument(Tokens, End) -> {witness_spec_scan:text(Tokens, End), argument_of(Tokens, End)}.

argument_of([{var, _, '_'} = Any], _) -> {var, erl_anno:new(witness_spec_scan:location(Any)), '_'};
argument_of([{var, _, _}, {'(', _} | _] = Tokens, End) ->
    case witness_spec_pattern:split_enclosed(tl(Tokens)) of
        {_, _, []} ->
            {Formula, _} = unit(Tokens ++ [{eof, erl_anno:new(End)}]),
            {formula, Formula};
        _ -> witness_spec_pattern:expression(Tokens, "a value", End)
    end;
argument_of(Tokens, End) -> witness_spec_pattern:expression(Tokens, "a value", End).

parameter([{var, _, Name} = Variable, {'=', _} | Value], End) when Name =/= '_' ->
    {Name, witness_spec_scan:location(Variable), witness_spec_pattern:expression(Value, "the first value", End)};
parameter(Tokens, End) ->
    throw(witness_spec_diagnostic:error(case Tokens of [First | _] -> witness_spec_scan:location(First); [] -> End end, syntax,
        "expected a parameter with its first value", "it is written `N = 0`, as in `max X(N = 0).([_ ? _] X(N + 1))`")).

close(_, [{')', _} | Rest]) ->
    Rest;
close(Open, Tokens) ->
    {Line, Column} = witness_spec_scan:location(Open),
    {error, Location, Code, Text, Hint} = unexpected("`)`", Tokens),
    throw(witness_spec_diagnostic:error(Location, Code, Text, case Hint of
        undefined -> io_lib:format("to close the `(` of line ~b, column ~b", [Line, Column]);
        _ -> Hint
    end)).

action(Inside, Close) -> action_at(Inside, witness_spec_scan:location(Close)).

action_at([{'{', _} | _] = Tokens, End) ->
    case witness_spec_pattern:split_enclosed(Tokens) of
        {Action, Brace, []} -> witness_spec_action:action(Action, witness_spec_scan:location(Brace));
        {_, _, _} -> witness_spec_action:action(Tokens, End)
    end;
action_at(Tokens, End) ->
    witness_spec_action:action(Tokens, End).

%% From `<` to its `>`: the first one outside brackets that is not the tip of `-->`.
angle([Open | Tokens]) ->
    case witness_spec_pattern:split_before(Tokens, fun ends_angle/2) of
        {Inside, [{'>', _} = Close | Rest]} ->
            {Inside, Close, Rest};
        {_, Rest} ->
            {Line, Column} = witness_spec_scan:location(Open),
            expected("`>`", Rest, io_lib:format("to close the `<` of line ~b, column ~b", [Line, Column]))
    end.

ends_angle([{'>', _} = Tip | _], [{'--', _} = Dash | _]) ->
    witness_spec_scan:after_token(Dash) =/= witness_spec_scan:location(Tip);
ends_angle([{Symbol, _} | _], _) ->
    lists:member(Symbol, ['>', dot, eof]);
ends_angle(_, _) ->
    false.

%% After a modality with a guard, tokens that begin no formula were probably meant as a part of the guard.
expects_formula([Token | _] = Tokens, Inside) ->
    Begins = case Token of
        {Symbol, _} -> lists:member(Symbol, ['[', '<', '(', 'and', 'or']);
        {atom, _, _} -> is_formula_word(Token);
        {Kind, _, _} -> Kind =:= var
    end,
    case Begins orelse not lists:keymember('when', 1, Inside) of
        true ->
            ok;
        false -> expected("a formula", Tokens, braces())
    end.

is_formula_word({atom, _, Word}) -> lists:member(Word, [tt, ff, max, min, within, during]);
is_formula_word(_) -> false.

braces() -> "a guard with `>` inside `<...>` needs braces around the action: `<{P ? N when N > 1}>`".

-doc """
A formula with other actions, from left to right. `Fun` gets each action, the knowledge before it, and what was
gathered so far; it returns the other action, the knowledge after it, and what is gathered then. Knowledge that has a `scope` of
variables gets the parameters of fixpoints, too.
""".
-spec actions(Fun, Known, Gathered, formula()) -> {formula(), Gathered} when
      Fun :: fun((witness_spec_action:action(), Known, Gathered) -> {witness_spec_action:action(), Known, Gathered}).
actions(Fun, Known, Gathered, {Modality, Meta, Action, Formula}) when Modality =:= box; Modality =:= dia ->
    {Other, Behind, More} = Fun(Action, Known, Gathered),
    {Inner, All} = actions(Fun, Behind, More, Formula),
    {{Modality, Meta, Other, Inner}, All};
actions(Fun, Known, Gathered, {Fixpoint, Meta, Name, Parameters, Formula}) ->
    Inside = case Known of
        #{scope := Scope} -> Known#{scope := ordsets:union(Scope, names(Parameters))};
        _ -> Known
    end,
    {Inner, All} = actions(Fun, Inside, Gathered, Formula),
    {{Fixpoint, Meta, Name, Parameters, Inner}, All};
actions(Fun, Known, Gathered, {Operator, Meta, Formulas}) when is_list(Formulas) ->
    {Inner, All} = lists:mapfoldl(fun(Formula, More) -> actions(Fun, Known, More, Formula) end, Gathered, Formulas),
    {{Operator, Meta, Inner}, All};
actions(_, _, Gathered, Formula) ->
    {Formula, Gathered}.

-doc "The actions of a formula, from left to right.".
-spec formula_actions(formula()) -> [witness_spec_action:action()].
formula_actions(Formula) ->
    {_, Actions} = actions(fun(Action, none, Before) -> {Action, none, [Action | Before]} end, none, [], Formula),
    lists:reverse(Actions).

-doc "The actions in the conditions of `let`s. One of the kind `test` is only a guard.".
-spec let_actions([witness_spec_let:definition()]) -> [witness_spec_action:action()].
let_actions(Lets) -> lists:append([Condition ++ maps:get(since, Let, []) || #{condition := Condition} = Let <- Lets]).

-doc "`let`s with other actions, and what was gathered from left to right.".
-spec map_lets(Fun, Gathered, [witness_spec_let:definition()]) -> {[witness_spec_let:definition()], Gathered} when
      Fun :: fun((witness_spec_action:action(), Gathered) -> {witness_spec_action:action(), Gathered}).
map_lets(Fun, Gathered, Lets) ->
    lists:mapfoldl(fun(#{condition := Condition} = Let, Before) ->
        {Changed, After} = lists:mapfoldl(Fun, Before, Condition),
        case Let of
            #{since := Since} ->
                {Other, End} = lists:mapfoldl(Fun, After, Since),
                {Let#{condition := Changed, since := Other}, End};
            _ ->
                {Let#{condition := Changed}, After}
        end
    end, Gathered, Lets).

-doc "The actions of a property: those of `over`, those of `let`s, and then those of its formula.".
-spec property_actions(property()) -> [witness_spec_action:action()].
property_actions(#{over := Over, lets := Lets} = Property) ->
    case Over of all -> []; _ -> Over end
        ++ let_actions(Lets)
        ++ case Property of #{formula := Formula} -> formula_actions(Formula); #{} -> [] end.

-doc "The signatures that say which processes a property reads.".
-spec property_signatures(property() | witness_spec_code:unit()) -> [witness_spec_action:signature(), ...].
property_signatures(#{among := [_ | _] = Among}) -> Among;
property_signatures(#{signatures := Signatures}) -> Signatures.

-doc "The names of parameters.".
-spec names([parameter()]) -> ordsets:ordset(atom()).
names(Parameters) -> ordsets:from_list([Name || {Name, _, _} <- Parameters]).

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
