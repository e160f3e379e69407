-module(witness_spec_sentence).
-moduledoc """
Sentences: frequent requirements in words, in place of `monitor f` and `check f`.

```text
sentence = "never" action [ scope ]
         | "always" action "leads" "to" action [ "within" duration ]
         | action "precedes" action [ "within" duration ]
         | ( "at" "most" | "exactly" ) number action
         | "at" "least" number action [ "within" duration ]
         | "at" "most" number action "in" "any" duration
         | "at" "most" number "open" action "until" action
         | "unique" V { "," V } "in" action
         | [ "strictly" ] "increasing" V "in" action
         | action "alternates" "with" action
scope    = "before" action | "after" action [ "until" action ] | "between" action "and" action
```

The action stands in braces, or without them if it has no guard. `call(...)`, `cast(...)` and `info(...)` alone are messages that the process
receives, `reply(...)` alone is one that it sends.

A sentence is what it expands to, its *core*: text in the language itself, in which `A`, `B`, `Q` and `R` are its actions (`core/3`).
`m:witness_spec_parse` reads that text as any other, and `fill/4` puts the actions in, with their own places in the file. The names of
the core's variables are none of the author's.
""".

-export([begins/1, read/1, prefix/1, check/3, core/3, over/4, fill/4, text/3]).
-export_type([sentence/0, role/0]).

-import(witness_spec_scan, [refuse/3, expected/3]).

-type token() :: witness_spec_scan:token().
-doc "`a` is the action that the sentence is about, `b` the other one; the scope begins with `q` and ends with `r`.".
-type role() :: a | b | q | r.
-doc "What was read: the form, the tokens of each action with the place behind them, and `variables` that the author uses.".
-type sentence() :: #{form := form(), actions := [{role(), [token()], witness_spec_diagnostic:location()}],
                      location := witness_spec_diagnostic:location(), text := binary(), variables := ordsets:ordset(atom())}.
-type form() :: {never, globally | before | 'after' | until | between}
    | {leads, Duration :: none | string()} | {precedes, Duration :: none | string()} | alternates
    | {at_most | exactly, non_neg_integer()} | {at_least, pos_integer(), Duration :: none | string()}
    | {in_any, non_neg_integer(), Duration :: string()}
    | {open, pos_integer()} | {unique, [atom(), ...]} | {increasing, strictly | equal, atom()}.
-type actions() :: #{role() => witness_spec_action:action()}.

-define(SERVER_RECEIVES, [call, cast, info]).

-doc "Whether a sentence begins here. A brace may also belong to what stands in front of it.".
-spec begins([token()]) -> boolean().
begins([{atom, _, Word} | _]) when Word =:= never; Word =:= always -> true;
begins([{atom, _, at}, {atom, _, Word} | _]) -> Word =:= most orelse Word =:= least;
begins([{atom, _, exactly}, {integer, _, _} | _]) -> true;
begins([{atom, _, Word}, {var, _, _} | _]) -> Word =:= unique orelse Word =:= increasing;
begins([{atom, _, strictly}, {atom, _, increasing} | _]) -> true;
begins([{'{', _} | _] = Tokens) -> joins(witness_spec_pattern:split_enclosed(Tokens));
begins([{atom, _, _} = Word, {'(', _} | _] = Tokens) ->
    is_message(Word) andalso joins(witness_spec_pattern:split_enclosed(tl(Tokens)));
begins(_) -> false.

joins({_, _, [{atom, _, Word} | _]}) -> Word =:= precedes orelse Word =:= alternates;
joins(_) -> false.

is_message({atom, _, Word}) -> lists:member(Word, [reply | ?SERVER_RECEIVES]).

-doc "Reads a sentence, and the tokens behind it. Throws a `t:witness_spec_diagnostic:finding/0`.".
-spec read([token(), ...]) -> {sentence(), [token()]}.
read([First | _] = Tokens) ->
    {Form, Actions, [Next | _] = Rest} = form(Tokens),
    End = witness_spec_scan:location(Next),
    Own = lists:takewhile(fun(Token) -> witness_spec_scan:location(Token) < End end, Tokens),
    Location = witness_spec_scan:location(First),
    {#{form => Form, actions => Actions, location => Location,
       text => witness_spec_scan:text(Own, End),
       variables => ordsets:from_list([Name || {var, _, Name} <- Own])}, Rest}.

form([{atom, _, never} | Tokens]) ->
    {A, Rest} = action(a, Tokens, [before, 'after', between]),
    scope(A, Rest);
form([{atom, _, always} | Tokens]) ->
    {A, Leads} = action(a, Tokens, [leads]),
    {B, Rest} = action(b, words([leads, to], Leads, "`leads to` and another action", "as in `always {_ ? ping} leads to {_ : _ ! pong}`"),
                       [within]),
    {Duration, After} = within(Rest),
    {{leads, Duration}, [A, B], After};
form([{atom, _, at}, {atom, _, most} | Tokens]) ->
    {N, Rest} = number(Tokens),
    most(N, Rest);
form([{atom, _, at}, {atom, _, least} = Word | Tokens]) ->
    {N, Rest} = number(Tokens),
    N > 0 orelse refuse(Word, "`at least 0` is always so", "give a number from 1 on"),
    {A, Behind} = action(a, Rest, [within]),
    {Duration, After} = within(Behind),
    {{at_least, N, Duration}, [A], After};
form([{atom, _, exactly} | Tokens]) ->
    {N, Rest} = number(Tokens),
    {A, After} = action(a, Rest, []),
    {{exactly, N}, [A], After};
form([{atom, _, unique} | Tokens]) ->
    {Variables, Rest} = variables(Tokens),
    {A, After} = action(a, words([in], Rest, "`in` and an action", "as in `unique Id in {_ : _ ! {id, Id}}`"), []),
    {{unique, Variables}, [A], After};
form([{atom, _, strictly}, {atom, _, increasing} | Tokens]) -> increasing(strictly, Tokens);
form([{atom, _, increasing} | Tokens]) -> increasing(equal, Tokens);
form(Tokens) ->
    case action(a, Tokens, [precedes, alternates]) of
        {A, [{atom, _, precedes} | Rest]} ->
            {B, Behind} = action(b, Rest, [within]),
            {Duration, After} = within(Behind),
            {{precedes, Duration}, [A, B], After};
        {A, Rest} ->
            {B, After} = action(b, words([alternates, with], Rest, "`precedes` or `alternates with`",
                                         "as in `{_ ? {approve, Doc}} precedes {_ : _ ! {publish, Doc}}`"), []),
            {alternates, [A, B], After}
    end.

scope(A, [{atom, _, before} | Tokens]) ->
    {R, After} = action(r, Tokens, []),
    {{never, before}, [A, R], After};
scope(A, [{'after', _} | Tokens]) ->
    case action(q, Tokens, [until]) of
        {Q, [{atom, _, until} | Rest]} ->
            {R, After} = action(r, Rest, []),
            {{never, until}, [A, Q, R], After};
        {Q, After} -> {{never, 'after'}, [A, Q], After}
    end;
scope(A, [{atom, _, between} | Tokens]) ->
    {Q, Behind} = action(q, Tokens, ['and']),
    case Behind of
        [{'and', _} | Rest] ->
            {R, After} = action(r, Rest, []),
            {{never, between}, [A, Q, R], After};
        _ -> expected("`and` with the end of the scope", Behind, "as in `never {_ ? c} between {_ ? a} and {_ ? b}`")
    end;
scope(A, Tokens) -> {{never, globally}, [A], Tokens}.

most(N, [{atom, _, open} = Open, Next | Rest] = Tokens) ->
    case is_operator(Next) of
        true -> most_of(N, Tokens);
        false ->
            N > 0 orelse refuse(Open, "`at most 0 open` is `never`", "as in `never {_ : _ ! {job, _}}`"),
            {A, Until} = action(a, [Next | Rest], [until]),
            {B, After} = action(b, words([until], Until, "`until` and the action that closes",
                                         "as in `at most 5 open {_ : _ ! {job, Id}} until {_ ? {done, Id}}`"), []),
            {{open, N}, [A, B], After}
    end;
most(N, Tokens) -> most_of(N, Tokens).

most_of(N, Tokens) ->
    case action(a, Tokens, [in, within]) of
        {A, [{atom, _, in} | _] = Rest} ->
            {Duration, After} = duration(words([in, any], Rest, "`in any` and a duration", "as in `at most 3 {_ ? ping} in any 30 s`")),
            {{in_any, N, Duration}, [A], After};
        {_, [{atom, _, within} = Within | _]} ->
            refuse(Within, "`at most` has no `within`", "as in `at most 3 {_ ? ping} in any 30 s`");
        {A, After} -> {{at_most, N}, [A], After}
    end.

%% The atom `open` may be a process, too.
is_operator({Symbol, _}) -> lists:member(Symbol, [':', '?', '**', '*', '->', '--', '<-']);
is_operator(_) -> false.

increasing(How, [{var, _, Name} | Tokens]) when Name =/= '_' ->
    {A, After} = action(a, words([in], Tokens, "`in` and an action", "as in `increasing N in {_ ? {seq, N}}`"), []),
    {{increasing, How, Name}, [A], After};
increasing(_, Tokens) -> expected("a variable", Tokens, "as in `increasing N in {_ ? {seq, N}}`").

variables([{var, _, Name}, {',', _} | Tokens]) when Name =/= '_' ->
    {Names, Rest} = variables(Tokens),
    {[Name | Names], Rest};
variables([{var, _, Name} | Tokens]) when Name =/= '_' -> {[Name], Tokens};
variables(Tokens) -> expected("a variable", Tokens, "as in `unique Id in {_ : _ ! {id, Id}}`").

number([{integer, _, N} = Token | Tokens]) ->
    case witness_spec_time:is_duration(Token) of
        false -> {N, Tokens};
        true -> expected("a number of events", [Token | Tokens], "as in `at most 3 {_ ? ping}`")
    end;
number(Tokens) -> expected("a number of events", Tokens, "as in `at most 3 {_ ? ping}`").

within([{atom, _, within} | Tokens]) -> duration(Tokens);
within(Tokens) -> {none, Tokens}.

duration([{integer, _, _} = Token | Tokens]) ->
    case witness_spec_time:is_duration(Token) of
        true -> {witness_spec_scan:token_text(Token), Tokens};
        false -> expected("a duration", [Token | Tokens], witness_spec_time:units())
    end;
duration(Tokens) -> expected("a duration", Tokens, witness_spec_time:units()).

words([], Tokens, _, _) -> Tokens;
words([Word | Words], [{atom, _, Word} | Tokens], What, Hint) -> words(Words, Tokens, What, Hint);
words(_, Tokens, What, Hint) -> expected(What, Tokens, Hint).

%% The tokens of an action, up to one of the words that may follow it.
action(Role, [{'{', _} | _] = Tokens, _) ->
    {Inside, Close, Rest} = witness_spec_pattern:split_enclosed(Tokens),
    {{Role, Inside, witness_spec_scan:location(Close)}, Rest};
action(Role, Tokens, Words) ->
    Ends = fun([{Symbol, _} | _], _) when Symbol =:= dot; Symbol =:= eof -> true;
              ([{',', _} | Behind], _) -> begins_property(Behind);
              ([{atom, _, _}, {':', _}, {atom, _, Word} | _], [_ | _]) when Word =:= with; Word =:= per -> true;
              ([Token | _], Taken) ->
                   lists:member(word(Token), Words) andalso Taken =/= [] andalso witness_spec_scan:ends_operand(hd(Taken))
           end,
    case witness_spec_pattern:split_before(Tokens, Ends) of
        {[], Rest} -> expected("an action", Rest, "in braces, as in `never {_ ? stop}`");
        {Part, [Next | _] = Rest} ->
            Guarded = witness_spec_pattern:split_before(Part, fun([Token | _], _) -> element(1, Token) =:= 'when' end),
            [refuse(When, "an action with a guard stands in braces", "as in `never {_ ? {pay, N} when N < 0}`")
             || {_, [{'when', _} = When | _]} <- [Guarded]],
            {{Role, Part, witness_spec_scan:location(Next)}, Rest}
    end.

begins_property([{atom, _, Word} | _]) when Word =:= with; Word =:= per -> true;
begins_property([{atom, _, _}, {':', _}, {atom, _, Word} | _]) -> Word =:= with orelse Word =:= per;
begins_property(_) -> false.

word({atom, _, Word}) -> Word;
word({Symbol, _}) -> Symbol;
word(_) -> none.

-doc "What stands in front of an action that has none of it, as text and as tokens: `_ ?` of `call(...)` alone, `_ : _ !` of `reply(...)` alone.".
-spec prefix([token()]) -> {string(), [token()]}.
prefix([{atom, Anno, Word} = First, {'(', _} | _] = Tokens) ->
    Any = {var, Anno, '_'},
    case is_message(First) andalso witness_spec_pattern:split_enclosed(tl(Tokens)) of
        {_, _, Behind} when Word =:= reply, Behind =:= [] orelse element(3, hd(Behind)) =:= to ->
            {"_ : _ ! ", [Any, {':', Anno}, Any, {'!', Anno}]};
        {_, _, []} -> {"_ ? ", [Any, {'?', Anno}]};
        _ -> {"", []}
    end;
prefix(_) -> {"", []}.

-doc """
Refuses what would mean less than it seems to. Only `leads to` and `open` follow several values of a variable at a time, and a slice begins
with events that have its values.
""".
-spec check(sentence(), actions(), witness_spec_parse:property()) -> ok.
check(#{form := Form} = Sentence, Actions, #{per := Per} = Property) ->
    Given = given(Property),
    keys(Sentence, Actions, Per),
    callers(Actions, Given),
    case Form of
        {unique, Names} -> [is_bound(Name, map_get(a, Actions), Given, Sentence) || Name <- Names], ok;
        {increasing, _, Name} -> is_bound(Name, map_get(a, Actions), Given, Sentence);
        {leads, _} -> ok;
        {open, _} -> differ(a, b, Actions);
        {precedes, _} -> differ(a, b, Actions), apart(Sentence, Actions, Given);
        alternates -> differ(a, b, Actions), apart(Sentence, Actions, Given);
        {never, before} -> differ(a, r, Actions), apart(Sentence, Actions, Given);
        {never, Scope} when Scope =:= until; Scope =:= between ->
            differ(q, r, Actions),
            differ(a, r, Actions),
            apart(Sentence, Actions, Given);
        _ -> apart(Sentence, Actions, Given)
    end.

%% What has one value in an instance.
given(#{signatures := Signatures, per := Per}) ->
    ordsets:union([ordsets:from_list(Per) | [witness_spec_pattern:variables(Pattern) || #{pattern := Pattern} <- Signatures]]).

keys(#{form := Form}, Actions, Per) ->
    [begin
         #{pattern := Pattern, location := Location} = map_get(Role, Actions),
         [throw(witness_spec_diagnostic:error(Location, syntax, ["this action does not bind `", atom_to_list(Name), "`"],
             "`per` makes a slice for each value, and an event without one begins none"))
          || Name <- Per, not lists:member(Name, witness_spec_pattern:variables(Pattern))]
     end || Role <- beginning(Form)].

%% The events that matter first.
beginning({never, Scope}) when Scope =:= 'after'; Scope =:= until; Scope =:= between -> [q];
beginning({precedes, _}) -> [b];
beginning(alternates) -> [a, b];
beginning(_) -> [a].

%% The caller of a reply has to be known.
callers(Actions, Given) ->
    [throw(witness_spec_diagnostic:error(Location, syntax, ["a reply to `", atom_to_list(Name), "` needs a slice for each call"],
                                         ["put `per ", atom_to_list(Name), "` in front of the sentence"]))
     || #{pattern := {tuple, _, [{atom, _, send}, _, _, {call, _, {atom, _, reply}, [{var, _, Name} | _]} | _]},
          location := Location} <- maps:values(Actions), Name =/= '_', not lists:member(Name, Given)].

differ(One, Other, Actions) ->
    #{One := #{text := Text}, Other := #{text := Same, location := Location}} = Actions,
    Text =/= Same orelse
        throw(witness_spec_diagnostic:error(Location, syntax, "this is the same action once more", "no event can be both here")),
    ok.

apart(#{actions := Read}, Actions, Given) ->
    Own = [{Role, ordsets:subtract(witness_spec_pattern:variables(Pattern), Given),
            ordsets:subtract(witness_spec_pattern:variables(Guard), ordsets:union(Given, witness_spec_pattern:variables(Pattern)))}
           || {Role, _, _} <- Read, #{pattern := Pattern, guard := Guard} <- [map_get(Role, Actions)]],
    [begin
         #{location := Location} = map_get(max(One, Other), Actions),
         throw(witness_spec_diagnostic:error(Location, syntax,
             ["both actions have `", atom_to_list(Name), "`, and their values would not be compared"],
             ["a slice for each value compares them: put `per ", atom_to_list(Name), "` in front of the sentence"]))
     end || {One, Names, _} <- Own, {Other, Others, Used} <- Own, One =/= Other,
            Name <- ordsets:intersection(Names, ordsets:union(Others, Used))],
    ok.

is_bound(Name, #{pattern := Pattern, location := Place}, Given, #{location := Location}) ->
    case {lists:member(Name, witness_spec_pattern:variables(Pattern)), lists:member(Name, Given)} of
        {true, false} -> ok;
        {false, _} ->
            throw(witness_spec_diagnostic:error(Place, syntax, ["the action has no variable `", atom_to_list(Name), "`"],
                                                "the sentence is about its values"));
        {_, true} ->
            throw(witness_spec_diagnostic:error(Location, syntax,
                                                ["`", atom_to_list(Name), "` is the same at all events of an instance"],
                                                "it stands behind `per`, or in the signature"))
    end.

-doc """
The text of the core: `let`s and `check` with its formula, in which the actions have names. `Property` has the variables of `per` and the
`let`s of the author.
""".
-spec core(sentence(), actions(), witness_spec_parse:property()) -> unicode:chardata().
core(Sentence, Actions, Property) ->
    Named = fun(Role, []) -> {name(Role), none};
               (Role, Guard) -> {[name(Role), " when ", alternatives(Guard)], guarded}
            end,
    [lists:join(" ", lists_of(Sentence, Actions, Property, Named)), "."].

lists_of(#{form := Form, variables := Variables}, Actions, #{per := Per, lets := Lets, defined := Defined} = Property, Write) ->
    Given = given(Property),
    Known = ordsets:union([Variables, Given, ordsets:from_list(Defined ++ [Name || #{name := Name} <- Lets])]),
    expansion(Form, #{write => Write, actions => Actions, per => Per, given => Given, known => Known}).

alternatives(Guard) -> lists:join("; ", [lists:join(", ", Tests) || Tests <- Guard]).

%% The `let`s, and `check` with the formula.
expansion({never, globally}, C) -> check(loop("X", [box(a, "ff", C)], C));
expansion({never, before}, C) ->
    [Was, Before, Times] = [fresh(Name, C) || Name <- ["Was", "Before", "Times"]],
    ['let'(Was, "once ", a, C), ["let ", Before, " = previously ", Was], 'let'(Times, "count ", r, C)
     | check(loop("X", [box(r, [[Before, [Times, " =:= 1"]]], "ff", C), box(r, "tt", C)], C))];
expansion({never, 'after'}, C) -> check(loop("X", [box(q, loop("Y", [box(a, "ff", C)], C), C)], C));
expansion({never, until}, C) -> in_scope("ff", C);
expansion({never, between}, C) -> in_scope(loop("Z", [box(r, "ff", C)], C), C);
expansion({leads, Duration}, C) ->
    check(loop("X", [box(a, ["(", fresh("X", C), " and ", limited(Duration), eventually(b, [], C), ")"], C)], C));
expansion({precedes, Duration}, C) ->
    Seen = fresh("Seen", C),
    ['let'(Seen, ["once ", limited(Duration)], a, C) | check(loop("X", [box(b, [[["not ", Seen]]], "ff", C)], C))];
expansion(alternates, C) ->
    Open = fresh("Open", C),
    X = fresh("X", C),
    check(loop("X", Open, "false", [box(b, [[["not ", Open]]], "ff", C), box(a, [[Open]], "ff", C),
                                    box(a, [[["not ", Open]]], [X, "(true)"], C), box(b, [[Open]], [X, "(false)"], C)], C));
expansion({at_most, N}, C) -> counted("", N, C);
expansion({in_any, N, Duration}, C) -> counted(limited(Duration), N, C);
expansion({at_least, N, Duration}, C) ->
    Count = fresh("Count", C),
    ['let'(Count, "count ", a, C) | check([stays(C), limited(Duration), reached(Count, N, C)])];
expansion({exactly, 0}, C) -> expansion({never, globally}, C);
expansion({exactly, N}, C) ->
    [Let, Check] = counted("", N, C),
    [Let, [Check, " and ", reached(fresh("Count", C), N, C)]];
expansion({unique, Names}, C) ->
    Times = [fresh("Times", C), "(", names(Names), ")"],
    ['let'(Times, "count ", a, C) | check(loop("X", [box(a, [[[Times, " > 1"]]], "ff", C)], C))];
expansion({increasing, How, Name}, C) ->
    Last = fresh("Last", C),
    V = atom_to_list(Name),
    {Wrong, Right} = case How of strictly -> {" =< ", " > "}; equal -> {" < ", " >= "} end,
    check(loop("X", Last, "[]", [
        box(a, [[[Last, " =/= []"], [V, Wrong, "hd(", Last, ")"]]], "ff", C),
        box(a, [[[Last, " =:= []"]], [[V, Right, "hd(", Last, ")"]]], [fresh("X", C), "([", V, "])"], C)], C));
expansion({open, N}, #{actions := #{a := #{pattern := A}, b := #{pattern := B}}, given := Given} = C) ->
    Open = fresh("Open", C),
    X = fresh("X", C),
    Most = integer_to_list(N),
    Both = ordsets:intersection(witness_spec_pattern:variables(A), witness_spec_pattern:variables(B)),
    {First, Closed, Full, More, Opened} = case ordsets:subtract(Both, Given) of
        [] -> {"0", ["max(0, ", Open, " - 1)"], [[[Open, " >= ", Most]]], [[[Open, " < ", Most]]], [Open, " + 1"]};
        Names ->
            Key = case Names of [Name] -> atom_to_list(Name); _ -> ["{", names(Names), "}"] end,
            Size = ["map_size(", Open, ")"],
            IsOpen = ["is_map_key(", Key, ", ", Open, ")"],
            {"#{}", ["maps:remove(", Key, ", ", Open, ")"], [[[Size, " >= ", Most], ["not ", IsOpen]]],
             [[[Size, " < ", Most]], [IsOpen]], [Open, "#{", Key, " => true}"]}
    end,
    check(loop("X", Open, First, [box(b, [X, "(", Closed, ")"], C), unless(b, a, Full, "ff", C),
                                  unless(b, a, More, [X, "(", Opened, ")"], C)], C)).

check(Formula) -> [["check ", Formula]].

'let'(Name, Value, Role, C) -> ["let ", Name, " = ", Value, condition(Role, C)].

loop(Name, Members, C) -> looped(fresh(Name, C), "", "", Members).

loop(Name, Parameter, First, Members, C) ->
    looped(fresh(Name, C), ["(", Parameter, " = ", First, ")"], ["(", Parameter, ")"], Members).

%% All other events go round the loop.
looped(X, First, Same, Members) -> ["max ", X, First, ".(", lists:join(" and ", Members ++ [["[else] ", X, Same]]), ")"].

eventually(Role, Guard, C) ->
    Y = fresh("Y", C),
    ["min ", Y, ".(", dia(Role, Guard, C), " tt or <else> ", Y, ")"].

%% What comes in the scope, which `r` ends.
in_scope(Wrong, C) ->
    X = fresh("X", C),
    check(loop("X", [unless(r, q, loop("Y", [box(r, X, C), unless(r, a, Wrong, C)], C), C), box(r, X, C)], C)).

counted(Window, N, C) ->
    Count = fresh("Count", C),
    ['let'(Count, ["count ", Window], a, C) | check(loop("X", [box(a, [[[Count, " > ", integer_to_list(N)]]], "ff", C)], C))].

%% A slice that has come to a decision would begin again, and has seen its values before.
stays(#{per := []}) -> "";
stays(C) -> [loop("Z", [], C), " and "].

reached(Count, N, C) -> eventually(a, [[[Count, " >= ", integer_to_list(N)]]], C).

limited(none) -> "";
limited(Duration) -> ["within ", Duration, " "].

%% `[Role] F`, but not for an event that the first action matches, too.
unless(First, Role, F, C) -> unless(First, Role, [], F, C).

unless(First, Role, Guard, F, #{actions := Actions, given := Given} = C) ->
    case are_disjoint(map_get(First, Actions), map_get(Role, Actions), Given) of
        true -> box(Role, Guard, F, C);
        false -> ["(", dia(First, [], C), " tt or ", box(Role, Guard, F, C), ") and ", box(Role, "tt", C)]
    end.

%% Which events the name of an action stands for is not known here.
are_disjoint(#{kind := One}, #{kind := Other}, _) when One =:= use; Other =:= use -> false;
are_disjoint(One, Other, Scope) -> witness_spec_overlap:disjoint(One, Other, Scope).

box(Role, F, C) -> box(Role, [], F, C).

box(Role, Guard, F, #{write := Write}) ->
    {Text, _} = Write(Role, Guard),
    ["[", Text, "] ", F].

dia(Role, Guard, #{write := Write}) ->
    case Write(Role, Guard) of
        {Text, none} -> ["<", Text, ">"];
        {Text, guarded} -> ["<{", Text, "}>"]
    end.

condition(Role, #{write := Write}) ->
    {Text, _} = Write(Role, []),
    ["{", Text, "}"].

name(Role) -> string:uppercase(atom_to_list(Role)).

fresh(Name, #{known := Known}) -> fresh(Name, 1, [atom_to_list(Variable) || Variable <- Known]).

fresh(Name, N, Known) ->
    Tried = case N of 1 -> Name; _ -> Name ++ integer_to_list(N) end,
    case lists:member(Tried, Known) of
        false -> Tried;
        true -> fresh(Name, N + 1, Known)
    end.

-doc """
What `over` is if the author does not say it: the events of the actions, also of those in `let`s. Those that matter first begin slices. `never`
alone, `at least` and `exactly` read all events, since a process that did nothing has shown nothing.
""".
-spec over(sentence(), actions(), OfLets :: [witness_spec_action:action()], witness_spec_parse:property()) ->
    all | [witness_spec_action:action(), ...].
over(#{form := Form, actions := Read}, Actions, OfLets, #{per := Per} = Property) ->
    Known = given(Property),
    case reads_all(Form) andalso Per =:= [] andalso not is_about_functions(maps:values(Actions) ++ OfLets) of
        true -> all;
        false ->
            %% An event that several describe begins a slice if the first of them does.
            {First, Others} = lists:partition(fun(Role) -> lists:member(Role, beginning(Form)) end, [Role || {Role, _, _} <- Read]),
            [seen(map_get(Role, Actions), Per =/= [], Known) || Role <- First]
                ++ [seen(map_get(Role, Actions), false, Known) || Role <- Others]
                ++ [seen(Action, false, Known) || #{kind := Kind} = Action <- OfLets, Kind =/= test]
    end.

reads_all({never, globally}) -> true;
reads_all({Kind, _, _}) -> Kind =:= at_least;
reads_all({Kind, _}) -> Kind =:= exactly;
reads_all(_) -> false.

%% `over` has to name functions.
is_about_functions(Actions) -> lists:any(fun(#{kind := Kind}) -> Kind =:= call orelse Kind =:= return end, Actions).

%% Nothing in front of an action of `over` binds variables.
seen(#{pattern := Pattern, guard := Guard} = Action, Begins, Given) ->
    Known = ordsets:union(witness_spec_pattern:variables(Pattern), Given),
    case ordsets:is_subset(witness_spec_pattern:variables(Guard), Known) of
        true -> Action#{begins => Begins};
        false -> Action#{begins => Begins, guard := []}
    end.

-doc "The formula and `let`s of a core with the actions in place of their names, and with the places of the sentence.".
-spec fill(Formula, Lets, sentence(), actions()) -> {Formula, Lets} when
      Formula :: witness_spec_parse:formula(), Lets :: [witness_spec_let:definition()].
fill(Formula, Lets, #{location := Location, text := Text}, Actions) ->
    {placed({Location, Text}, Actions, Formula),
     [Let#{location := Location, condition := [filled(Action, Actions, Location) || Action <- Condition],
           parameters := [{Name, Location} || {Name, _} <- Parameters]}
      || #{condition := Condition, parameters := Parameters} = Let <- Lets]}.

filled(#{kind := use, name := Name, guard := More}, Actions, _) ->
    #{guard := Guard} = Action = maps:get(role(Name), Actions),
    Action#{guard := both(Guard, More)};
filled(#{kind := test} = Test, _, Location) -> Test#{location := Location}.

role('A') -> a;
role('B') -> b;
role('Q') -> q;
role('R') -> r.

both([], Guard) -> Guard;
both(Guard, []) -> Guard;
both(Guard, More) -> [Tests ++ Others || Tests <- Guard, Others <- More].

%% Actions keep their text and place, all else has those of the sentence.
placed({Location, _} = Meta, Actions, {Modality, _, #{kind := 'else'} = Else, F}) ->
    {Modality, Meta, Else#{location := Location, implied => true}, placed(Meta, Actions, F)};
placed({Location, _} = Meta, Actions, {Modality, _, #{kind := use} = Use, F}) ->
    {Modality, Meta, filled(Use, Actions, Location), placed(Meta, Actions, F)};
placed({Location, _} = Meta, Actions, {Operator, _, Name, Parameters, F}) ->
    {Operator, Meta, Name, [{Parameter, Location, First} || {Parameter, _, First} <- Parameters], placed(Meta, Actions, F)};
placed(Meta, _, {var, _, Name, Arguments}) -> {var, Meta, Name, Arguments};
placed(Meta, Actions, {Operator, _, Formulas}) -> {Operator, Meta, [placed(Meta, Actions, F) || F <- Formulas]};
placed(Meta, _, {Constant, _}) -> {Constant, Meta}.

-doc """
The property with its core in place of the sentence, as text. `Property` has the `over` that the sentence gives it, and the `let`s of the
author.
""".
-spec text(witness_spec_parse:property(), sentence(), actions()) -> binary().
text(#{name := Name, text := Text, all := All, group := Group, per := Per, over := Over, receives := Receives, among := Among,
       lets := Lets} = Property, #{actions := Read} = Sentence, Actions) ->
    Parts = #{Role => written(Tokens, End) || {Role, Tokens, End} <- Read},
    Write = fun(Role, More) ->
                {Main, Guard} = map_get(Role, Parts),
                case both(Guard, More) of
                    [] -> {Main, none};
                    Whole -> {[Main, " when ", alternatives(Whole)], guarded}
                end
            end,
    Roles = #{Place => Role || Role := #{location := Place} <- Actions},
    Seen = fun(#{location := Place, text := Action} = One) ->
               {Shown, Is} = case {Roles, One} of
                   {#{Place := Role}, #{guard := []}} -> {element(1, map_get(Role, Parts)), none};
                   {#{Place := Role}, _} -> Write(Role, []);
                   _ -> {Action, guarded}
               end,
               [["begin " || maps:get(begins, One, false)], case Is of none -> Shown; guarded -> ["{", Shown, "}"] end]
           end,
    <<_/binary>> = unicode:characters_to_binary(lists:join("\n", lists:append([
        [[[[io_lib:format("~tw: ", [binary_to_existing_atom(Name)])] || Name =/= undefined], [["with ", Text] || not All], [" group" || Group, not All],
          [[[" " || not All], "per ", names(Per)] || Per =/= []]]],
        [["over ", case Receives of any -> ""; {Word, _} -> [atom_to_list(Word), " "] end, lists:join(", ", [Seen(A) || A <- Over])]
         || Over =/= all],
        [["among ", lists:join(", ", [Signature || #{text := Signature} <- Among])] || Among =/= all],
        [["let ", atom_to_list(Let), parameters(Parameters), " = ", Value]
         || #{name := Let, parameters := Parameters, text := Value} <- Lets],
        lists_of(Sentence, Actions, Property, Write)
    ])) ++ ["."]).

%% The text of an action, and the alternatives of its guard.
written(Tokens, End) ->
    {Main, Behind} = witness_spec_pattern:split_before(Tokens, fun([Token | _], _) -> element(1, Token) =:= 'when' end),
    {Prefix, _} = prefix(Tokens),
    {[Prefix, witness_spec_scan:text(Main, case Behind of [When | _] -> witness_spec_scan:location(When); [] -> End end)],
     case Behind of
         [] -> [];
         [_ | Guard] -> [[witness_spec_scan:text(Tests, Until)] || {Tests, Until} <- witness_spec_pattern:split(Guard, ';', End)]
     end}.

parameters([]) -> "";
parameters(Parameters) -> ["(", names([Name || {Name, _} <- Parameters]), ")"].

names(Names) -> lists:join(", ", [atom_to_list(Name) || Name <- Names]).
