-module(witness_spec_sentence).
-moduledoc """
Sentences: frequent requirements in words, in place of `monitor f` and `check f`.

```text
sentence = main [ scope ] | "never" action "within" duration "after" action
main     = "never" action
         | "always" action
         | "always" chain "leads" "to" chain [ "within" duration ]
         | chain "precedes" chain [ "within" duration ]
         | ( "at" "most" | "exactly" ) number action
         | "at" "least" number action [ "within" duration ]
         | "at" "most" number action "in" "any" duration
         | "at" "most" number "open" action "until" action
         | "unique" V { "," V } "in" action
         | [ "strictly" ] "increasing" V "in" action
         | action "alternates" "with" action
chain    = action { "then" action }
scope    = "before" action | "after" action [ "until" action ] | "between" action "and" action
```

The action stands in braces, or without them if it has no guard. `call(...)`, `cast(...)` and `info(...)` alone are messages that the process
receives, `reply(...)` alone is one that it sends.

A sentence is what it expands to, its *core*: text in the language itself, in which `A`, `A2`..., `B`..., `Q` and `R` are its actions
(`m:witness_spec_sentence_core`). `m:witness_spec_parse` reads that text as any other, and `fill/4` puts the actions in, with their own
places in the file. The names of the core's variables are none of the author's.
""".

-export([begins/2, read/1, prefix/1, check/3, core/3, over/4, fill/4, text/3, heading/2, given/1, untimed/1]).
-export_type([sentence/0, form/0, scope/0, role/0]).

-import(witness_spec_scan, [refuse/3, expected/3]).

-type token() :: witness_spec_scan:token().
-doc """
`a` is the action that the sentence is about, `b` the other one; `{a, 2}`... and `{b, 2}`... come behind them in a chain. The scope begins with
`q` and ends with `r`.
""".
-type role() :: a | b | q | r | {a | b, pos_integer()}.
-doc "What was read: the form, the scope, the tokens of each action with the place behind them, and `variables` that the author uses.".
-type sentence() :: #{form := form(), scope := scope(), actions := [{role(), [token()], witness_spec_diagnostic:location()}, ...],
                      location := witness_spec_diagnostic:location(), text := binary(), variables := ordsets:ordset(atom())}.
-type form() :: never | always | {never_within, Duration :: string()}
    | {leads, Duration :: none | string()} | {precedes, Duration :: none | string()} | alternates
    | {at_most | exactly, non_neg_integer()} | {at_least, pos_integer(), Duration :: none | string()}
    | {in_any, non_neg_integer(), Duration :: string()}
    | {open, pos_integer()} | {unique, [atom(), ...]} | {increasing, strictly | equal, atom()}.
-type scope() :: globally | before | 'after' | until | between.
-type actions() :: #{role() => witness_spec_action:action()}.

-define(SERVER_RECEIVES, [call, cast, info]).
%% `until` ends an action, too: it is a mistake that is told.
-define(SCOPES, [before, 'after', between, until]).
%% A core grows with the product of the lengths.
-define(MAX_CHAIN, 10).

-doc "Whether a sentence begins here, behind these tokens in reverse. A brace may also be that of a record in front of it.".
-spec begins([token()], Before :: [token()]) -> boolean().
begins([{atom, _, Word} | _], _) when Word =:= never; Word =:= always -> true;
begins([{atom, _, at}, {atom, _, _} | _], _) -> true;
begins([{atom, _, Word}, Next | _], _) when Word =:= exactly; Word =:= unique; Word =:= increasing; Word =:= strictly ->
    lists:member(element(1, Next), [integer, var, atom, '{']);
begins([{'{', _} | _], [_, {'#', _} | _]) -> false;
begins([{'{', _} | _], _) -> true;
begins([{atom, _, _} = Word, {'(', _} | _] = Tokens, _) ->
    is_message(Word) andalso joins(witness_spec_pattern:split_enclosed(tl(Tokens)));
begins(_, _) -> false.

joins({_, _, [{atom, _, Word} | _]}) -> lists:member(Word, [precedes, then, alternates]);
joins(_) -> false.

is_message({atom, _, Word}) -> lists:member(Word, [reply | ?SERVER_RECEIVES]).

-doc "Reads a sentence, and the tokens behind it. Throws a `t:witness_spec_diagnostic:finding/0`.".
-spec read([token(), ...]) -> {sentence(), [token()]}.
read([First | _] = Tokens) ->
    {Form, Main, Behind} = form(Tokens),
    {Scope, Ends, [Next | _] = Rest} = scope(Form, Behind),
    End = witness_spec_scan:location(Next),
    Own = lists:takewhile(fun(Token) -> witness_spec_scan:location(Token) < End end, Tokens),
    Location = witness_spec_scan:location(First),
    {#{form => Form, scope => Scope, actions => Main ++ Ends, location => Location,
       text => witness_spec_scan:text(Own, End),
       variables => ordsets:from_list([Name || {var, _, Name} <- Own])}, Rest}.

form([{atom, _, never} | Tokens]) ->
    case action(a, Tokens, [within | ?SCOPES]) of
        {A, [{atom, _, within} | Rest]} ->
            {Duration, After} = duration(Rest),
            {{never_within, Duration}, [A], After};
        {A, Rest} -> {never, [A], Rest}
    end;
form([{atom, _, always} | Tokens]) ->
    case chain(a, Tokens, [leads | ?SCOPES]) of
        {As, [{atom, _, leads} | _] = Leads} ->
            {Bs, Rest} = chain(b, words([leads, to], Leads, "`leads to` and another action", "as in `always {_ ? ping} leads to {_ : _ ! pong}`"),
                               [within | ?SCOPES]),
            {Duration, After} = within(Rest),
            {{leads, Duration}, As ++ Bs, After};
        {[A], Rest} -> {always, [A], Rest};
        {_, Rest} -> expected("`leads to` and another action", Rest, "as in `always {_ ? order} then {_ ? paid} leads to {_ : _ ! sent}`")
    end;
form([{atom, _, at}, {atom, _, most} | Tokens]) ->
    {N, Rest} = number(Tokens),
    most(N, Rest);
form([{atom, _, at}, {atom, _, Word} = Token | _]) when Word =/= least ->
    expected("`at most` or `at least`", [Token], "as in `at most 3 {_ ? ping}`");
form([{atom, _, at}, {atom, _, least} = Word | Tokens]) ->
    {N, Rest} = number(Tokens),
    N > 0 orelse refuse(Word, "`at least 0` is always so", "give a number from 1 on"),
    {A, Behind} = action(a, Rest, [within | ?SCOPES]),
    {Duration, After} = within(Behind),
    {{at_least, N, Duration}, [A], After};
form([{atom, _, exactly} | Tokens]) ->
    {N, Rest} = number(Tokens),
    {A, After} = action(a, Rest, ?SCOPES),
    {{exactly, N}, [A], After};
form([{atom, _, unique} | Tokens]) ->
    {Variables, Rest} = variables(Tokens),
    {A, After} = action(a, words([in], Rest, "`in` and an action", "as in `unique Id in {_ : _ ! {id, Id}}`"), ?SCOPES),
    {{unique, Variables}, [A], After};
form([{atom, _, strictly} | Tokens]) ->
    increasing(strictly, words([increasing], Tokens, "`increasing`", "as in `strictly increasing N in {_ ? {seq, N}}`"));
form([{atom, _, increasing} | Tokens]) -> increasing(equal, Tokens);
form(Tokens) ->
    case chain(a, Tokens, [precedes, alternates]) of
        {As, [{atom, _, precedes} | Rest]} ->
            {Bs, Behind} = chain(b, Rest, [within | ?SCOPES]),
            {Duration, After} = within(Behind),
            [refuse(hd(Behind), "`within` has no place behind a chain of causes",
                    "`{a} precedes {b} within 5 s` is about one action in front of another") || Duration =/= none, tl(As) =/= []],
            {{precedes, Duration}, As ++ Bs, After};
        {[A], Rest} ->
            {B, After} = action(b, words([alternates, with], Rest, "`precedes` or `alternates with`",
                                         "as in `{_ ? {approve, Doc}} precedes {_ : _ ! {publish, Doc}}`"), ?SCOPES),
            {alternates, [A, B], After};
        {_, Rest} -> expected("`precedes` and another action", Rest, "as in `{_ ? {order, Id}} then {_ ? {paid, Id}} precedes {_ : _ ! {sent, Id}}`")
    end.

chain(Role, Tokens, Words) -> chain(Role, Role, 1, Tokens, Words).

chain(Role, First, N, Tokens, Words) ->
    case action(First, Tokens, [then | Words]) of
        {Action, [{atom, _, then} = Then | Rest]} ->
            N < ?MAX_CHAIN orelse refuse(Then, ["a chain has at most ", integer_to_list(?MAX_CHAIN), " actions"], "use several sentences"),
            {Others, After} = chain(Role, {Role, N + 1}, N + 1, Rest, Words),
            {[Action | Others], After};
        {Action, After} -> {[Action], After}
    end.

scope({never_within, _}, [{'after', _} | Tokens]) ->
    case action(q, Tokens, [until]) of
        {_, [{atom, _, until} = Until | _]} ->
            refuse(Until, "`until` has no place here", "`never {a} within 5 s after {q}` is about the five seconds behind each `q`");
        {Q, After} -> {'after', [Q], After}
    end;
scope({never_within, _}, Tokens) -> expected("`after` and an action", Tokens, "as in `never {_ ? retry} within 5 s after {_ : _ ! failed}`");
scope(_, [{atom, _, before} | Tokens]) ->
    {R, After} = action(r, Tokens, []),
    {before, [R], After};
scope(_, [{'after', _} | Tokens]) ->
    case action(q, Tokens, [until]) of
        {Q, [{atom, _, until} | Rest]} ->
            {R, After} = action(r, Rest, []),
            {until, [Q, R], After};
        {Q, After} -> {'after', [Q], After}
    end;
scope(_, [{atom, _, between} | Tokens]) ->
    {Q, Behind} = action(q, Tokens, ['and']),
    case Behind of
        [{'and', _} | Rest] ->
            {R, After} = action(r, Rest, []),
            {between, [Q, R], After};
        _ -> expected("`and` with the end of the scope", Behind, "as in `never {_ ? c} between {_ ? a} and {_ ? b}`")
    end;
scope(_, [{atom, _, until} = Until | _]) ->
    refuse(Until, "`until` stands behind `after`", "as in `never {_ ? c} after {_ ? a} until {_ ? b}`");
%% A word that begins no property, or one more action.
scope(Form, [{Kind, _, _}, Next | _] = Tokens) when Kind =:= atom, element(1, Next) =/= ':' -> unknown(Form, Tokens);
scope(Form, [{'{', _} | _] = Tokens) -> unknown(Form, Tokens);
scope(_, Tokens) -> {globally, [], Tokens}.

-spec unknown(form(), [token()]) -> no_return().
unknown(Form, Tokens) ->
    expected([[["`", Word, "`, "] || Word <- may_follow(Form)], "a scope or `.`"], Tokens,
             "a scope is `before {r}`, `after {q}`, `after {q} until {r}` or `between {q} and {r}`").

may_follow(never) -> ["within"];
may_follow(always) -> ["then", "leads to"];
may_follow({Kind, none}) when Kind =:= leads; Kind =:= precedes -> ["then", "within"];
may_follow({at_least, _, none}) -> ["within"];
may_follow({at_most, _}) -> ["in any"];
may_follow(_) -> [].

most(N, [{atom, _, open} = Open, Next | Rest] = Tokens) ->
    case is_operator(Next) of
        true -> most_of(N, Tokens);
        false ->
            N > 0 orelse refuse(Open, "`at most 0 open` is `never`", "as in `never {_ : _ ! {job, _}}`"),
            {A, Until} = action(a, [Next | Rest], [until]),
            {B, After} = action(b, words([until], Until, "`until` and the action that closes",
                                         "as in `at most 5 open {_ : _ ! {job, Id}} until {_ ? {done, Id}}`"), ?SCOPES),
            {{open, N}, [A, B], After}
    end;
most(N, Tokens) -> most_of(N, Tokens).

most_of(N, Tokens) ->
    case action(a, Tokens, [in, within | ?SCOPES]) of
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
    {A, After} = action(a, words([in], Tokens, "`in` and an action", "as in `increasing N in {_ ? {seq, N}}`"), ?SCOPES),
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
            [refuse(When, "an action with a guard stands in braces", "as in `never {_ ? {pay, N} when N < 0}`")
             || {_, [{'when', _} = When | _]} <- [witness_spec_pattern:split_guard(Part)]],
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
        false -> {"", []};
        {_, _, Behind} ->
            case Behind =:= [] orelse word(hd(Behind)) of
                Next when Word =:= reply, Next =:= true orelse Next =:= to orelse Next =:= at orelse Next =:= 'when' ->
                    {"_ : _ ! ", [Any, {':', Anno}, Any, {'!', Anno}]};
                Next when Word =/= reply, Next =:= true orelse Next =:= at orelse Next =:= 'when' -> {"_ ? ", [Any, {'?', Anno}]};
                _ -> {"", []}
            end
    end;
prefix(_) -> {"", []}.

-doc """
Refuses what would mean less than it seems to. Only `leads to`, `open` and `never ... within` follow several values of a variable at a time, and a
slice begins with events that have its values.
""".
-spec check(sentence(), actions(), witness_spec_parse:property()) -> ok.
check(#{form := Form} = Sentence, Actions, Property) ->
    Given = given(Property),
    is_about_something(Sentence, Property),
    keys(Sentence, Actions, Property),
    callers(Actions, Given),
    [differ(Pair, Actions) || Pair <- different(Sentence)],
    apart(Sentence, Actions, Given),
    case Form of
        {unique, Names} -> [is_bound(Name, map_get(a, Actions), Given, Sentence) || Name <- Names], ok;
        {increasing, _, Name} -> is_bound(Name, map_get(a, Actions), Given, Sentence);
        _ -> ok
    end.

%% Of the events of its own action alone it is always so.
is_about_something(#{form := always, location := Location}, #{over := all}) ->
    throw(witness_spec_diagnostic:error(Location, syntax, "`always` alone needs an `over`",
        "which events it is about, as in `over _ : _ ! {price, _} always {_ : _ ! {price, P} when P > 0}`; or `always {a} leads to {b}`"));
%% Where the action begins the slices, each has one.
is_about_something(#{form := Form, scope := globally, location := Location}, #{over := all, per := [_ | _]})
  when element(1, Form) =:= at_least, element(2, Form) =:= 1; Form =:= {exactly, 1} ->
    throw(witness_spec_diagnostic:error(Location, syntax, "a slice begins with its first event, so there always is one",
        "say what asks for it, as in `always {q} leads to {a}` or `at least 1 {a} after {q}`; `over` may say which events begin slices"));
is_about_something(_, _) -> ok.

-doc "What has one value in an instance: the variables of the signatures and of `per`.".
-spec given(witness_spec_parse:property()) -> ordsets:ordset(atom()).
given(#{signatures := Signatures, per := Per}) ->
    ordsets:union([ordsets:from_list(Per) | [witness_spec_pattern:variables(Pattern) || #{pattern := Pattern} <- Signatures]]).

%% `over` of the author says itself which events begin slices.
keys(#{form := always, scope := Scope}, _, _) when Scope =:= globally; Scope =:= before -> ok;
keys(#{form := Form, scope := Scope}, Actions, #{per := Per}) ->
    [begin
         #{pattern := Pattern, location := Location} = map_get(Role, Actions),
         [throw(witness_spec_diagnostic:error(Location, syntax, ["this action does not bind `", atom_to_list(Name), "`"],
             "`per` makes a slice for each value, and an event without one begins none"))
          || Name <- Per, not lists:member(Name, witness_spec_pattern:variables(Pattern))]
     end || Role <- witness_spec_sentence_core:begins(Form, Scope)],
    ok.

%% The caller of a reply has to be known.
callers(Actions, Given) ->
    [throw(witness_spec_diagnostic:error(Location, syntax, ["a reply to `", atom_to_list(Name), "` needs a slice for each call"],
                                         ["put `per ", atom_to_list(Name), "` in front of the sentence"]))
     || #{pattern := {tuple, _, [{atom, _, send}, _, _, {call, _, {atom, _, reply}, [{var, _, Name} | _]} | _]},
          location := Location} <- maps:values(Actions), Name =/= '_', not lists:member(Name, Given)].

%% Pairs of which no event can be both.
different(#{form := Form, actions := Read}) ->
    Roles = [Role || {Role, _, _} <- Read],
    Causes = [Role || {a, _} = Role <- Roles],
    [{lists:last([a | Causes]), b} || is_tuple(Form) andalso element(1, Form) =:= precedes]
        ++ [{a, b} || Form =:= alternates orelse is_tuple(Form) andalso element(1, Form) =:= open]
        ++ [{Role, r} || lists:member(r, Roles), Role <- Roles, Role =/= r].

differ({One, Other}, Actions) ->
    #{One := #{text := Text}, Other := #{text := Same, location := Location}} = Actions,
    Text =/= Same orelse
        throw(witness_spec_diagnostic:error(Location, syntax, "this is the same action once more", "no event can be both here")),
    ok.

apart(#{actions := Read} = Sentence, Actions, Given) ->
    Own = [{Role, ordsets:subtract(witness_spec_pattern:variables(Pattern), Given),
            ordsets:subtract(witness_spec_pattern:variables(Guard), ordsets:union(Given, witness_spec_pattern:variables(Pattern)))}
           || {Role, _, _} <- Read, #{pattern := Pattern, guard := Guard} <- [map_get(Role, Actions)]],
    [begin
         Location = lists:max([Place || #{location := Place} <- [map_get(One, Actions), map_get(Other, Actions)]]),
         throw(witness_spec_diagnostic:error(Location, syntax,
             ["both actions have `", atom_to_list(Name), "`, and their values would not be compared"],
             ["a slice for each value compares them: put `per ", atom_to_list(Name), "` in front of the sentence"]))
     end || {One, Names, _} <- Own, {Other, Others, Used} <- Own, One =/= Other, not follows(One, Other, Sentence),
            Name <- ordsets:intersection(Names, ordsets:union(Others, Used))],
    ok.

%% Whether the values of one action are known in the other.
follows(One, Other, #{form := {leads, _}}) -> not is_end(One) andalso not is_end(Other);
follows(One, Other, #{form := {open, _}}) -> not is_end(One) andalso not is_end(Other);
follows(_, _, #{form := {never_within, _}}) -> true;
follows(_, _, _) -> false.

is_end(Role) -> Role =:= q orelse Role =:= r.

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
    Named = fun(Role, Guard) -> shown({witness_spec_sentence_core:name(Role), []}, Guard) end,
    [lists:join(" ", lists_of(Sentence, Actions, Property, Named)), "."].

lists_of(#{variables := Variables, actions := Read} = Sentence, Actions, Property, Write) ->
    #{per := Per, lets := Lets, defined := Defined} = Property,
    Given = given(Property),
    Known = ordsets:union([Variables, Given, ordsets:from_list(Defined ++ [Name || #{name := Name} <- Lets])]),
    Roles = [Role || {Role, _, _} <- Read],
    witness_spec_sentence_core:lists(Sentence, #{write => Write, actions => Actions, roles => Roles, per => Per, given => Given,
                                                 known => Known}).

-doc """
What `over` is if the author does not say it: the events of the actions, also of those in `let`s. Those that matter first begin slices. `never`
alone, `at least` and `exactly` from the beginning on read all events, since a process that did nothing has shown nothing.
""".
-spec over(sentence(), actions(), OfLets :: [witness_spec_action:action()], witness_spec_parse:property()) ->
    all | [witness_spec_action:action(), ...].
over(#{form := Form, scope := Scope, actions := Read}, Actions, OfLets, #{per := Per} = Property) ->
    Known = given(Property),
    case reads_all(Form, Scope) andalso Per =:= [] andalso not is_about_functions(maps:values(Actions) ++ OfLets) of
        true -> all;
        false ->
            Begins = witness_spec_sentence_core:begins(Form, Scope),
            %% An event that several describe begins a slice if the first of them does.
            {First, Others} = lists:partition(fun(Role) -> lists:member(Role, Begins) end, [Role || {Role, _, _} <- Read]),
            [seen(map_get(Role, Actions), Per =/= [], Known) || Role <- First]
                ++ [seen(map_get(Role, Actions), false, Known) || Role <- Others]
                ++ [seen(Action, false, Known) || #{kind := Kind} = Action <- OfLets, Kind =/= test]
    end.

reads_all(never, Scope) -> Scope =:= globally;
reads_all({Kind, _, _}, Scope) -> Kind =:= at_least andalso (Scope =:= globally orelse Scope =:= before);
reads_all({Kind, _}, Scope) -> Kind =:= exactly andalso (Scope =:= globally orelse Scope =:= before);
reads_all(_, _) -> false.

%% `over` has to name functions.
is_about_functions(Actions) -> lists:any(fun(#{kind := Kind}) -> Kind =:= call orelse Kind =:= return end, Actions).

%% Nothing in front of an action of `over` binds variables.
seen(#{pattern := {tuple, Anno, Elements}, guard := Guard} = Action, Begins, Given) ->
    Pattern = {tuple, Anno, lists:droplast(Elements) ++ [{var, Anno, '_'}]},
    Known = ordsets:union(witness_spec_pattern:variables(Pattern), Given),
    case ordsets:is_subset(witness_spec_pattern:variables(Guard), Known) of
        true -> Action#{pattern := Pattern, begins => Begins};
        false -> Action#{pattern := Pattern, begins => Begins, guard := []}
    end.

-doc "An action without its `at T`, as in `over`.".
-spec untimed([token()]) -> [token()].
untimed(Tokens) ->
    {Main, Behind} = witness_spec_pattern:split_guard(Tokens),
    case lists:reverse(Main) of
        [{var, _, _}, {atom, _, at} | Before] -> lists:reverse(Before, Behind);
        _ -> Tokens
    end.

-doc "The formula and `let`s of a core with the actions in place of their names, and with the places of the sentence.".
-spec fill(Formula, Lets, sentence(), actions()) -> {Formula, Lets} when
      Formula :: witness_spec_parse:formula(), Lets :: [witness_spec_let:definition()].
fill(Formula, Lets, #{location := Location, text := Text} = Sentence, Actions) ->
    {placed({Location, Text}, {Actions, Sentence}, Formula),
     [Let#{location := Location, condition := [filled(Action, Actions, Location) || Action <- Condition],
           parameters := [{Name, Location} || {Name, _} <- Parameters]}
      || #{condition := Condition, parameters := Parameters} = Let <- Lets]}.

filled(#{kind := use, guard := More} = Use, Actions, _) ->
    #{guard := Guard} = Action = map_get(role(Use, Actions), Actions),
    Action#{guard := witness_spec_sentence_core:both(Guard, More)};
filled(#{kind := test} = Test, _, Location) -> Test#{location := Location}.

role(#{name := Name}, Actions) ->
    Written = atom_to_list(Name),
    [Role] = [Role || Role := _ <- Actions, witness_spec_sentence_core:name(Role) =:= Written],
    Role.

%% Actions keep their text and place, all else has those of the sentence.
placed({Location, _} = Meta, Actions, {Modality, _, #{kind := 'else'} = Else, F}) ->
    {Modality, Meta, Else#{location := Location, implied => true}, placed(Meta, Actions, F)};
placed({Location, _} = Meta, {Actions, Sentence} = All, {Modality, _, #{kind := use} = Use, F}) ->
    Action = filled(Use, Actions, Location),
    Told = case F of
        {ff, _} -> maps:merge(Action, witness_spec_sentence_core:why(Sentence, role(Use, Actions), Actions));
        _ -> Action
    end,
    {Modality, Meta, Told, placed(Meta, All, F)};
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
text(Property, #{actions := Read} = Sentence, Actions) ->
    Parts = #{Role => written(Tokens, End) || {Role, Tokens, End} <- Read},
    Write = fun(Role, More) -> shown(map_get(Role, Parts), More) end,
    Untimed = #{Role => written(untimed(Tokens), End) || {Role, Tokens, End} <- Read},
    Roles = #{Place => Role || Role := #{location := Place} <- Actions},
    Seen = fun(#{location := Place, text := Action} = One) ->
               {Shown, Is} = case {Roles, One} of
                   {#{Place := Role}, #{guard := []}} -> {element(1, map_get(Role, Untimed)), none};
                   {#{Place := Role}, _} -> shown(map_get(Role, Untimed), []);
                   _ -> {Action, guarded}
               end,
               [["begin " || maps:get(begins, One, false)], case Is of none -> Shown; guarded -> ["{", Shown, "}"] end]
           end,
    <<_/binary>> = unicode:characters_to_binary([[[Line, "\n"] || Line <- heading(Property, Seen)],
                                                 lists:join("\n", lists_of(Sentence, Actions, Property, Write)), "."]).

-doc "The lines in front of a formula. `Seen` is the text of an action of `over`.".
-spec heading(witness_spec_parse:property(), Seen) -> [unicode:chardata()] when
      Seen :: fun((witness_spec_action:action()) -> unicode:chardata()).
heading(#{name := Name, text := Text, all := All, group := Group, per := Per, over := Over, receives := Receives, among := Among,
          lets := Lets}, Seen) ->
    lists:append([
        [[[[io_lib:format("~tw: ", [binary_to_existing_atom(Name)])] || Name =/= undefined], [["with ", Text] || not All], [" group" || Group, not All],
          [[[" " || not All], "per ", witness_spec_sentence_core:names(Per)] || Per =/= []]]],
        [["over ", case Receives of any -> ""; {Word, _} -> [atom_to_list(Word), " "] end, lists:join(", ", [Seen(A) || A <- Over])]
         || Over =/= all],
        [["among ", lists:join(", ", [Signature || #{text := Signature} <- Among])] || Among =/= all],
        [["let ", atom_to_list(Let), parameters(Parameters), " = ", Value]
         || #{name := Let, parameters := Parameters, text := Value} <- Lets]
    ]).

%% An action with more tests in its guard, and whether it has one.
shown({Main, Guard}, More) ->
    case witness_spec_sentence_core:both(Guard, More) of
        [] -> {Main, none};
        Whole -> {[Main, " when ", witness_spec_sentence_core:alternatives(Whole)], guarded}
    end.

%% The text of an action, and the alternatives of its guard.
written(Tokens, End) ->
    {Main, Behind} = witness_spec_pattern:split_guard(Tokens),
    {Prefix, _} = prefix(Tokens),
    {[Prefix, witness_spec_scan:text(Main, case Behind of [When | _] -> witness_spec_scan:location(When); [] -> End end)],
     case Behind of
         [] -> [];
         [_ | Guard] -> [[witness_spec_scan:text(Tests, Until)] || {Tests, Until} <- witness_spec_pattern:split(Guard, ';', End)]
     end}.

parameters([]) -> "";
parameters(Parameters) -> ["(", witness_spec_sentence_core:names([Name || {Name, _} <- Parameters]), ")"].
