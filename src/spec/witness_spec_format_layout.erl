-module(witness_spec_format_layout).
-moduledoc """
The layout of specifications (`m:witness_spec_format`): the document of a text, made of its tokens and comments.

The tokens become a tree of brackets, of which formulas, machines and the parts of properties are read as `m:witness_spec_parse` reads them.
What it cannot read that way keeps its lines. Every token is put into the document once, in its place.
""".

-export([file/2]).

-type token() :: witness_spec_scan:token().
-type comment() :: {witness_spec_diagnostic:location(), string()}.
-type doc() :: witness_spec_format_doc:doc().

%% A token with the comments in lines of their own in front of it, and that behind it in its line. `gap` is what its author has
%% put in front of it: nothing, a space, or the end of a line. `margin` is the column where its line begins; `empty`: behind an
%% empty line.
-record(word, {token :: token(), kind :: atom(), value :: term(), text :: string(), gap :: none | space | line, empty :: boolean(),
               margin :: pos_integer(), above = [] :: [{string(), boolean()}], behind = none :: none | string()}).

-type word() :: #word{}.
%% A bracket with what is in it.
-type tree() :: word() | {word(), [tree()], word()}.

-doc "The document of a file.".
-spec file([token()], [comment()]) -> doc().
file(Tokens, Comments) -> items(trees(words(joined(Tokens), Comments))).

%% Words

%% Signs of actions that are several tokens of Erlang, but only one if no space is between them.
joined([First, Second | Rest]) ->
    Sign = case {element(1, First), element(1, Second)} of
        {'*', '*'} -> '**';
        {'--', '>'} -> '-->';
        {'<-', '-'} -> '<--';
        _ -> none
    end,
    case Sign =/= none andalso witness_spec_scan:after_token(First) =:= witness_spec_scan:location(Second) of
        true -> [{Sign, erl_anno:set_text(atom_to_list(Sign), element(2, First))} | joined(Rest)];
        false -> [First | joined([Second | Rest])]
    end;
joined(Tokens) -> Tokens.

words(Tokens, Comments) -> words(Tokens, Comments, {1, 1}, 1).

%% `Place` is that behind the last token, `Margin` where its line begins.
words([Token | Tokens], Comments, {Row, _} = Place, Margin) ->
    {Line, Column} = Location = witness_spec_scan:location(Token),
    {Own, Others} = lists:splitwith(fun({At, _}) -> At < Location orelse Tokens =:= [] end, Comments),
    {Above, LastRow} = lists:mapfoldl(fun({{At, _}, Text}, Before) -> {{Text, At > Before + 1}, At} end, Row, Own),
    End = witness_spec_scan:after_token(Token),
    {Behind, Rest} = behind(End, Tokens, Others),
    First = Line > Row orelse Own =/= [] orelse Place =:= {1, 1},
    Word = #word{token = Token, kind = element(1, Token), value = value(Token), text = word_text(Token),
                 above = Above, behind = Behind,
                 gap = if First -> line; Location =:= Place -> none; true -> space end,
                 empty = Line > LastRow + 1, margin = case First of true -> Column; false -> Margin end},
    [Word | words(Tokens, Rest, End, Word#word.margin)];
words([], [], _, _) -> [].

%% A comment is behind a token if it stands in the line where the token ends, and no other token stands between them.
behind({Row, _}, [Next | _], [{{Row, _} = At, Text} | Rest] = Comments) ->
    case element(1, Next) =:= eof orelse witness_spec_scan:location(Next) > At of
        true -> {Text, Rest};
        false -> {none, Comments}
    end;
behind(_, _, Comments) -> {none, Comments}.

value({_, _, Value}) -> Value;
value(_) -> none.

%% A duration has one space.
word_text({integer, _, _} = Token) -> lists:append(lists:join(" ", string:lexemes(witness_spec_scan:token_text(Token), " \t\r")));
word_text(Token) -> witness_spec_scan:token_text(Token).

%% Trees

-spec trees([word()]) -> [tree()].
trees(Words) ->
    {Trees, []} = trees(Words, [], []),
    Trees.

%% The words up to the bracket that closes the last one of `Open`. A bracket without its counterpart is a word as any other.
trees([#word{kind = Kind} = Word | Words], Trees, Open) when Kind =:= '('; Kind =:= '['; Kind =:= '{'; Kind =:= '<<' ->
    trees(Words, [], [{Word, Trees} | Open]);
trees([#word{kind = Kind} = Word | Words], Trees, [{#word{kind = Opening} = First, Before} | Open]) when
        Kind =:= ')', Opening =:= '('; Kind =:= ']', Opening =:= '['; Kind =:= '}', Opening =:= '{';
        Kind =:= '>>', Opening =:= '<<' ->
    trees(Words, [{First, lists:reverse(Trees), Word} | colon(tight, Before)], Open);
trees([#word{kind = '!'} = Word | Words], Trees, Open) -> trees(Words, [Word | colon(spaced, Trees)], Open);
trees([#word{kind = Kind} = Word | Words], [Last | _] = Trees, Open) when Kind =:= '+'; Kind =:= '-'; Kind =:= '*' ->
    %% Between two operands; in a binary it may be part of a type.
    Spaced = ends_operand(Last) andalso not is_binary_pattern(Open),
    trees(Words, [case Spaced of true -> Word#word{value = spaced}; false -> Word end | Trees], Open);
trees([Word | Words], Trees, Open) -> trees(Words, [Word | Trees], Open);
trees([], Trees, [{First, Before} | Open]) -> trees([], Trees ++ [First | Before], Open);
trees([], Trees, []) -> {lists:reverse(Trees), []}.

is_binary_pattern([{#word{kind = Kind}, _} | _]) -> Kind =:= '<<';
is_binary_pattern([]) -> false.

%% The colon of `m:f(_)` or `P : Q ! M`, which is behind these trees.
colon(tight, [#word{kind = Kind} = Name, #word{kind = ':'} = Colon | Before]) when Kind =:= atom; Kind =:= var ->
    [Name, Colon#word{value = tight} | Before];
colon(spaced, [Receiver, #word{kind = ':'} = Colon | Before]) -> [Receiver, Colon#word{value = spaced} | Before];
colon(spaced, [Fields, Name, Sign, #word{kind = ':'} = Colon | Before]) ->
    [Fields, Name, Sign, Colon#word{value = spaced} | Before];
colon(_, Before) -> Before.

first({First, _, _}) -> First;
first(Word) -> Word.

last({_, _, Last}) -> Last;
last(Word) -> Word.

flattened(Trees) -> lists:flatmap(fun({First, Inside, Last}) -> [First | flattened(Inside) ++ [Last]]; (Word) -> [Word] end, Trees).

begins_line(Tree) -> (first(Tree))#word.gap =:= line.

%% Items

items([#word{kind = eof} = End]) -> word_above(End);
items(Trees) ->
    {Item, Rest} = item(Trees, []),
    [layout(Item), hard | items(Rest)].

%% The trees up to the dot, or the comma, that ends an item.
item([#word{kind = eof}] = End, Before) -> {lists:reverse(Before), End};
item([#word{kind = dot} = Dot | Rest], Before) ->
    case is_fixpoint(Before) of
        true -> item(Rest, [Dot | Before]);
        false -> {lists:reverse(Before, [Dot]), Rest}
    end;
item([#word{kind = ','} = Comma | Rest], Before) ->
    case begins(Rest) of
        true -> {lists:reverse(Before, [Comma]), Rest};
        false -> item(Rest, [Comma | Before])
    end;
item([Tree | Rest], Before) -> item(Rest, [Tree | Before]).

is_fixpoint([{#word{kind = '('}, _, _} | Before]) -> is_fixpoint(Before);
is_fixpoint([#word{kind = var}, #word{kind = atom, value = Name} | _]) -> Name =:= max orelse Name =:= min;
is_fixpoint(_) -> false.

begins([#word{kind = atom, value = Word} | _]) when Word =:= with; Word =:= per -> true;
begins([#word{kind = atom, value = Word}, #word{kind = var} | _]) when Word =:= define; Word =:= action -> true;
begins([#word{kind = atom}, #word{kind = ':'}, #word{kind = atom, value = Word} | _]) -> Word =:= with orelse Word =:= per;
begins(_) -> false.

-spec layout([tree()]) -> doc().
layout(Trees) ->
    {Body, End} = ended(Trees),
    try
        [case begins(Body) of true -> item(Body); false -> throw(unknown) end, [ending(Word) || Word <- End]]
    catch
        throw:unknown -> kept(Trees)
    end.

ended(Trees) ->
    case lists:last(Trees) of
        #word{kind = Kind} = End when Kind =:= dot; Kind =:= ',' -> {lists:droplast(Trees), [End]};
        _ -> {Trees, []}
    end.

item([#word{kind = atom, value = Word} = First, #word{kind = var} = Name | Rest]) when Word =:= define; Word =:= action ->
    {Parameters, Body} = case Rest of
        [{#word{kind = '('}, _, _} = Arguments, #word{kind = '='} = Is | After] -> {[Arguments, Is], After};
        [#word{kind = '='} = Is | After] -> {[Is], After};
        _ -> throw(unknown)
    end,
    Body =/= [] orelse throw(unknown),
    Doc = case Word of define -> whole_formula(Body); action -> leaf(Body) end,
    {group, [leaf([First, Name | Parameters]), {nest, 2, [line_before(Body), Doc]}]};
item(Trees) ->
    Clauses = clauses(Trees),
    Doc = property(Clauses),
    case begins_with_one_line(Trees) of
        true -> {group, Doc};
        false -> Doc
    end.

%% What the author wrote in one line.
begins_with_one_line([_ | Rest]) -> not lists:any(fun(#word{gap = Gap}) -> Gap =:= line end, flattened(Rest)).

line_before([First | _]) ->
    case begins_line(First) of
        true -> hard;
        false -> {line, " "}
    end.

%% Properties

%% The parts of a property, each with the word with which it begins.
-spec clauses([tree()]) -> [{atom(), [tree(), ...]}].
clauses([#word{kind = atom} = Name, #word{kind = ':'} = Colon | Rest]) ->
    [{Word, [First | Part]} | Others] = clauses(Rest),
    [{Word, [Name, Colon#word{value = name}, First | Part]} | Others];
clauses([#word{value = Word} = First | Rest]) -> clause(Word, Rest, [First], true).

%% `Bare`: nothing of the part has come but its first words.
clause(Word, [Tree | Rest] = Trees, [Last | _] = Before, Bare) ->
    case next_clause(Word, Trees, Before, Bare) of
        none -> clause(Word, Rest, [Tree | Before], stays_bare(Word, Tree, Last));
        What when What =:= check; What =:= monitor; What =:= sentence; What =:= machine; What =:= unknown ->
            [{Word, lists:reverse(Before)}, {What, Trees}];
        Next -> [{Word, lists:reverse(Before)} | clause(Next, Rest, [Tree], true)]
    end;
clause(Word, [], Before, _) -> [{Word, lists:reverse(Before)}].

stays_bare(over, #word{kind = atom, value = Word}, #word{value = over}) -> Word =:= taken orelse Word =:= delivered;
stays_bare(_, _, _) -> false.

%% A word begins a part only where no operand can stand.
next_clause(_, [#word{kind = 'let'} | _], _, _) -> 'let';
next_clause(group, [#word{kind = atom, value = Word} | _] = Trees, Before, true) -> next_word(Word, group, Trees, Before);
next_clause(_, _, _, true) -> none;
next_clause(Clause, Trees, [Last | Before] = All, false) ->
    case ends_operand(Last) andalso not is_inner(Clause, Last, Before) of
        false -> none;
        true ->
            case Trees of
                [#word{kind = atom, value = Word} | _] -> next_word(Word, Clause, Trees, All);
                _ -> case is_sentence(Trees, All) of true -> sentence; false -> none end
            end
    end.

next_word(Word, Clause, Trees, Before) ->
    maybe
        false ?= lists:member(Word, [group, per, over, among, none, check, monitor]) andalso Word,
        false ?= is_sentence(Trees, Before) andalso sentence,
        false ?= witness_spec_machine:begins(tokens(Trees, 1)) andalso machine,
        false ?= lists:member(Word, inner_words(Clause)) andalso none,
        unknown
    end.

%% The words that may stand behind an operand.
inner_words('let') -> [within, event, events, since, at, to, calls, returns];
inner_words(over) -> [at, to, calls, returns];
inner_words(_) -> [].

is_inner(Clause, #word{kind = atom, value = Word}, [Last | Before]) ->
    lists:member(Word, inner_words(Clause)) andalso ends_operand(Last) andalso not is_inner(Clause, Last, Before);
is_inner(_, _, _) -> false.

ends_operand({#word{}, _, _}) -> true;
ends_operand(#word{kind = Kind}) -> lists:member(Kind, [atom, var, integer, float, char, string, sigil_suffix, 'else']).

%% A brace also begins the condition of a `let`; that of a sentence has one of these words behind it.
is_sentence([{#word{kind = '{'}, _, _}, #word{kind = atom, value = Word} | _] = Trees, Before) ->
    lists:member(Word, [precedes, then, alternates]) andalso begins_sentence(Trees, Before);
is_sentence([{_, _, _} | _], _) -> false;
is_sentence(Trees, Before) -> begins_sentence(Trees, Before).

begins_sentence(Trees, Before) -> witness_spec_sentence:begins(tokens(Trees, 3), tokens(Before, 2)).

%% The tokens of the first trees, without what is in brackets, up to a bracket that is never closed.
tokens([{#word{token = Open}, _, #word{token = Close}} | Trees], Number) when Number > 0 ->
    [Open, Close | tokens(Trees, Number - 1)];
tokens([#word{token = Token} | Trees], Number) when Number > 0 ->
    case witness_spec_scan:closing(Token) of
        none -> [Token | tokens(Trees, Number - 1)];
        _ -> []
    end;
tokens(_, _) -> [].

property([{_, Head} | Clauses]) -> [head(Head, Clauses)].

%% `group`, `none`, and a `per` without `over` stay in the line of `with`.
head(Head, [{Word, Part} | Clauses]) when Word =:= group; Word =:= none -> head(Head ++ Part, Clauses);
head(Head, [{per, _} = Per, {over, _} = Over | Clauses]) -> [listed(Head), {line, " "} | slices(Per, Over, Clauses)];
head(Head, [{per, Part} | Clauses]) -> head(Head ++ Part, Clauses);
head(Head, [{over, _} = Over | Clauses]) ->
    case is_per(Head) of
        true -> slices({per, Head}, Over, Clauses);
        false -> [listed(Head) | parts([Over | Clauses])]
    end;
head(Head, Clauses) -> [listed(Head) | parts(Clauses)].

is_per([#word{value = per} | _]) -> true;
is_per([_, #word{kind = ':'}, #word{value = per} | _]) -> true;
is_per(_) -> false.

slices({per, Per}, {over, Over}, [{among, Among} | Clauses]) ->
    [{group, [listed(Per), {line, " "}, listed(Over), {line, " "}, listed(Among)]} | parts(Clauses)];
slices({per, Per}, {over, Over}, Clauses) -> [{group, [listed(Per), {line, " "}, listed(Over)]} | parts(Clauses)].

parts(Clauses) -> [part(Clause) || Clause <- Clauses].

part({Word, [First | Body]}) when Word =:= check, Body =/= []; Word =:= monitor, Body =/= [] ->
    [{line, " "}, {group, [word(First), {nest, 2, [line_before(Body), whole_formula(Body)]}]}];
part({sentence, Trees}) -> {nest, 2, [{line, " "}, sentence(Trees)]};
part({machine, Trees}) ->
    try {nest, 2, [hard, machine(Trees)]}
    catch throw:unknown -> [{line, " "}, kept(Trees)]
    end;
part({'let', [Let | Trees]}) -> [{line, " "}, word(Let), {nest, 4, [gap(Let, first(hd(Trees))), leaf(Trees)]}];
part({unknown, Trees}) -> [{line, " "}, kept(Trees)];
part({_, Trees}) -> [{line, " "}, listed(Trees)].

%% A list behind a word, in the column where it begins.
listed(Trees) ->
    {Words, List} = lists:split(first_of_list(Trees), Trees),
    case List of
        [] -> leaf(Words);
        [First | _] -> [leaf(Words), gap(last(lists:last(Words)), first(First)), {align, leaf(List)}]
    end.

first_of_list([#word{}, #word{kind = ':'} | Trees]) -> 2 + first_of_list(Trees);
first_of_list([#word{value = over}, #word{value = Word} | _]) when Word =:= taken; Word =:= delivered -> 2;
first_of_list(_) -> 1.

%% Sentences

-define(PHRASES, [leads, precedes, alternates, before, 'after', between]).
-define(INNER_PHRASES, [then, within, until, in]).

%% In the lines of its author, of which each that is too long is broken in front of its phrases, and then inside of these.
sentence(Trees) ->
    phrases(Trees, [{hard, fun(First) -> begins_line(First) andalso is_phrase(First, ?PHRASES ++ ?INNER_PHRASES) end},
                    {flat, fun(First) -> is_phrase(First, ?PHRASES) end},
                    {flat, fun(First) -> is_phrase(First, ?INNER_PHRASES) end}]).

phrases(Trees, []) -> leaf(Trees);
phrases([First | Trees], [{Kind, Begins} | Inner]) ->
    [Doc | Docs] = [phrases(Phrase, Inner) || Phrase <- phrases(Trees, [First], Begins)],
    {group, [Doc, [{sep, " ", Kind, 0, Next} || Next <- Docs]]}.

phrases([Tree | Trees], [Last | _] = Before, Begins) ->
    case ends_operand(Last) andalso Begins(Tree) of
        true -> [lists:reverse(Before) | phrases(Trees, [Tree], Begins)];
        false -> phrases(Trees, [Tree | Before], Begins)
    end;
phrases([], Before, _) -> [lists:reverse(Before)].

is_phrase(#word{kind = 'after'}, Words) -> lists:member('after', Words);
is_phrase(#word{kind = atom, value = Word}, Words) -> lists:member(Word, Words);
is_phrase(_, _) -> false.

%% Machines

%% An action with its arrow and target, and the semicolon behind it.
-type transition() :: {Action :: [tree(), ...], Target :: [tree(), ...], Semicolon :: [word()]}.

machine([Word | Trees]) ->
    {Data, States} = data(Trees),
    {Read, End} = states(States),
    Column = column(lists:append([Transitions || {_, Transitions} <- Read])),
    [leaf([Word | Data]), {nest, 2, [state(State, Column) || State <- Read]}, hard, word(End)].

%% In front of data there is a space.
data([{#word{kind = '('} = Open, Inside, Close} | Trees]) -> {[{Open#word{gap = space}, Inside, Close}], Trees};
data(Trees) -> {[], Trees}.

states([#word{kind = 'end'} = End]) -> {[], End};
states(Trees) ->
    begins_state(Trees) orelse throw(unknown),
    case lists:splitwith(fun(Tree) -> (first(Tree))#word.kind =/= ':' end, Trees) of
        {Head, [Colon | Rest]} ->
            {Transitions, Others} = transitions(Rest),
            {States, End} = states(Others),
            {[{Head ++ [Colon#word{value = name, gap = none}], Transitions} | States], End};
        _ -> throw(unknown)
    end.

begins_state(Trees) -> witness_spec_machine:begins_state(tokens(Trees, 3)).

-spec transitions([tree()]) -> {[transition()], [tree()]}.
transitions(Trees) ->
    case ends_state(Trees) of
        true -> {[], Trees};
        false ->
            {Action, [Arrow, Name | Behind]} = action(Trees, []),
            {More, Rest} = target(Behind, []),
            {Data, Others} = data(More),
            Target = [Arrow, Name | Data ++ Others],
            case Rest of
                [#word{kind = ';'} = Semicolon | Next] ->
                    {Transitions, After} = transitions(Next),
                    {[{Action, Target, [Semicolon]} | Transitions], After};
                _ -> {[{Action, Target, []}], Rest}
            end
    end.

ends_state([#word{kind = 'end'} | _]) -> true;
ends_state(Trees) -> begins_state(Trees).

action([#word{kind = '->'}, _ | _] = Trees, [_ | _] = Before) ->
    case witness_spec_machine:ends_action(tokens(Trees, 6), tokens(Before, length(Before))) of
        true -> {lists:reverse(Before), Trees};
        false -> action(tl(Trees), [hd(Trees) | Before])
    end;
action([Tree | Trees], Before) -> action(Trees, [Tree | Before]);
action([], _) -> throw(unknown).

target([#word{kind = ';'} | _] = Trees, Before) -> {lists:reverse(Before), Trees};
target([Tree | Rest] = Trees, Before) ->
    case ends_state(Trees) of
        true -> {lists:reverse(Before), Trees};
        false -> target(Rest, [Tree | Before])
    end;
target([], _) -> throw(unknown).

%% The arrows of a machine stand in one column, or else those of a state, if all lines of it fit.
state({Head, Transitions}, Column) ->
    Own = case Column of none -> column(Transitions); _ -> Column end,
    [hard, leaf(Head), {nest, 2, [[hard, transition(Transition, Own)] || Transition <- Transitions]}].

column(Transitions) ->
    Column = lists:max([0 | [action_length(Transition) || Transition <- Transitions]]) + 2,
    case lists:all(fun(Transition) -> witness_spec_format_doc:fits(transition(Transition, Column), 6) end, Transitions) of
        true -> Column;
        false -> none
    end.

action_length({Action, _, _}) -> witness_spec_format_doc:flat_length(leaf(Action)).

transition({Action, Target, Semicolon} = Transition, Column) ->
    Reached = case Column of
        none -> {sep, " ", flat, 2, leaf(Target)};
        _ -> [{last, lists:duplicate(Column - action_length(Transition), $\s)}, leaf(Target)]
    end,
    [leaf(Action), Reached, [ending(Word) || Word <- Semicolon]].

%% Formulas

%% A formula as it was read: operands with the operators in front of them; or what stands in front of a formula, and that one.
-type formula() :: {chain, formula(), [{word(), formula()}, ...]}
    | {unit, [[tree(), ...]],
       {leaf, [tree(), ...]}
       | {body, Head :: [tree()], Open :: word() | none, Space :: string(), formula(), Close :: word()}
                  | {list, Head :: word(), Open :: word(), [{formula(), [word()]}, ...], Close :: word()}
                  | {reach, Head :: [tree(), ...], formula()}}.

whole_formula(Trees) ->
    case read(Trees) of
        {Formula, []} -> formula(Formula, 0);
        _ -> throw(unknown)
    end.

-spec read([tree()]) -> {formula(), [tree()]}.
read(Trees) -> read('or', Trees).

read(Operator, Trees) ->
    {First, Rest} = operand(Operator, Trees),
    case more(Operator, Rest) of
        {[], _} -> {First, Rest};
        {Others, After} -> {{chain, First, Others}, After}
    end.

operand('or', Trees) -> read('and', Trees);
operand('and', Trees) -> unit(Trees, []).

more(Operator, [#word{kind = Operator} = Word | Rest]) ->
    {Formula, After} = operand(Operator, Rest),
    {Others, End} = more(Operator, After),
    {[{Word, Formula} | Others], End};
more(_, Rest) -> {[], Rest}.

unit([{#word{kind = '['}, _, _} = Box | Rest], Before) -> unit(Rest, [[Box] | Before]);
unit([#word{kind = '<'} = First | Rest], Before) ->
    case lists:splitwith(fun(Tree) -> (first(Tree))#word.kind =/= '>' end, Rest) of
        {Inside, [Last | After]} -> unit(After, [[{First, Inside, Last}] | Before]);
        _ -> throw(unknown)
    end;
unit([#word{kind = atom, value = Word} = First, #word{kind = integer} = Duration | Rest], Before) when
        Word =:= within; Word =:= during ->
    unit(Rest, [[First, Duration] | Before]);
unit([#word{kind = atom, value = Word} = First, {#word{kind = '('} = Open, Inside, Close} | Rest], Before) when
        Word =:= max; Word =:= min ->
    {Name, Formula} = recursion(Inside),
    {{unit, lists:reverse(Before), {body, [First, Open | Name], none, " ", whole(Formula), Close}}, Rest};
unit([#word{kind = atom, value = Word} = First | Rest], Before) when Word =:= max; Word =:= min ->
    {Name, Formula} = recursion(Rest),
    case Formula of
        [{#word{kind = '('} = Open, Inside, Close} | After] ->
            {{unit, lists:reverse(Before), {body, [First | Name], Open, "", whole(Inside), Close}}, After};
        _ ->
            case read(Formula) of
                {{chain, _, _} = Chain, After} -> {{unit, lists:reverse(Before), {reach, [First | Name], Chain}}, After};
                {{unit, More, Last}, After} -> {{unit, lists:reverse(Before, [[First | Name] | More]), Last}, After}
            end
    end;
unit([{#word{kind = '('} = Open, Inside, Close} | Rest], Before) ->
    {{unit, lists:reverse(Before), {body, [], Open, "", whole(Inside), Close}}, Rest};
unit([#word{kind = Operator} = Word, {#word{kind = '('} = Open, Inside, Close} | Rest], Before) when
        Operator =:= 'and'; Operator =:= 'or' ->
    {{unit, lists:reverse(Before), {list, Word, Open, members(Inside), Close}}, Rest};
unit([#word{kind = var} = Name, {#word{kind = '('}, _, _} = Arguments | Rest], Before) ->
    {{unit, lists:reverse(Before), {leaf, [Name, Arguments]}}, Rest};
unit([#word{kind = Kind, value = Word} = Last | Rest], Before) when Kind =:= var; Kind =:= atom, (Word =:= tt orelse Word =:= ff) ->
    {{unit, lists:reverse(Before), {leaf, [Last]}}, Rest};
unit(_, _) -> throw(unknown).

whole(Trees) ->
    case read(Trees) of
        {Formula, []} -> Formula;
        _ -> throw(unknown)
    end.

recursion([#word{kind = var} = Name, {#word{kind = '('}, _, _} = Parameters, #word{kind = Dot} = End | Rest]) when
        Dot =:= '.'; Dot =:= dot ->
    {[Name, Parameters, End], Rest};
recursion([#word{kind = var} = Name, #word{kind = Dot} = End | Rest]) when Dot =:= '.'; Dot =:= dot -> {[Name, End], Rest};
recursion(_) -> throw(unknown).

members(Trees) ->
    case read(Trees) of
        {Formula, []} -> [{Formula, []}];
        {Formula, [#word{kind = ','} = Comma | Rest]} -> [{Formula, [Comma]} | members(Rest)];
        _ -> throw(unknown)
    end.

first_word({chain, First, _}) -> first_word(First);
first_word({unit, [[First | _] | _], _}) -> first(First);
first_word({unit, [], {leaf, [First | _]}}) -> first(First);
first_word({unit, [], {body, [], Open, _, _, _}}) -> Open;
first_word({unit, [], {body, [First | _], _, _, _, _}}) -> First;
first_word({unit, [], {list, First, _, _, _}}) -> First;
first_word({unit, [], {reach, [First | _], _}}) -> First.

%% The document of a formula. Lines between modalities begin `Deeper` than the formula.
formula({chain, First, Others}, _) -> chain(segments(Others, [operand(First)], []));
formula({unit, [], Body}, _) -> body(Body);
formula({unit, [First | Others], Body}, Deeper) -> [leaf(First), modalities(First, Others, Body, Deeper)].

%% A short formula at the end stays with the modality in front of it.
modalities(Before, [Last], {leaf, [#word{gap = Gap} = Word]}, Deeper) when Gap =/= line ->
    separated(Before, kind(hd(Last), flat), Deeper, [leaf(Last), gap(last(lists:last(Last)), Word), word(Word)]);
modalities(Before, [[First | _] = Next | Others], Body, Deeper) ->
    [separated(Before, kind(First, flat), Deeper, leaf(Next)) | modalities(Next, Others, Body, Deeper)];
modalities(Before, [], {body, [], _, _, _, _} = Body, Deeper) -> separated(Before, head, Deeper, body(Body));
modalities(Before, [], Body, Deeper) ->
    Kind = case Body of {body, _, _, _, _, _} -> head; {reach, _, _} -> head; _ -> flat end,
    %% The `and` of a list must not look like one between formulas.
    Column = case Body of {list, _, _, _, _} when Deeper =:= 0 -> 2; _ -> Deeper end,
    separated(Before, kind(first_word({unit, [], Body}), Kind), Column, body(Body)).

%% Behind the dot of a loop there is a space if its author has put one: it would be another token otherwise.
separated(Before, Kind, Deeper, Doc) ->
    case is_glued(Before) of
        true -> Doc;
        false -> {sep, " ", Kind, Deeper, Doc}
    end.

is_glued(Trees) -> (last(lists:last(Trees)))#word.kind =:= '.'.

%% Operands of an `or` may be chains of `and`, which are indented.
operand({chain, _, _} = Chain) -> {nest, 2, formula(Chain, 0)};
operand(Formula) -> formula(Formula, 4).

%% The lines in which the author has put operands. If a line does not fit, each operand of it has its own.
segments([{Word, Formula} | Others], Line, Lines) ->
    Next = [word(Word), " ", operand(Formula)],
    case begins_line(Word) orelse begins_line(first_word(Formula)) of
        true -> segments(Others, [spaced(Next)], [Line | Lines]);
        false -> segments(Others, [spaced(Next), {line, " "} | Line], Lines)
    end;
segments([], Line, Lines) -> lists:reverse([Line | Lines]).

spaced([Word, Space, Doc]) -> [Word, {last, Space}, Doc].

chain(Lines) -> {group, lists:join(hard, [{group, lists:reverse(Line)} || Line <- Lines])}.

kind(First, Kind) ->
    case begins_line(First) of
        true -> hard;
        false -> Kind
    end.

body({leaf, Trees}) -> leaf(Trees);
body({body, Head, Open, Space, Formula, Close}) ->
    Words = Head ++ [Open || Open =/= none],
    {group, [leaf(Words), {hang, 2, [line_behind(Words, Space), formula(Formula, 0)]}, ending(Close)]};
body({reach, Head, Formula}) -> {group, [leaf(Head), {hang, 2, [line_behind(Head, " "), formula(Formula, 0)]}]};
body({list, Word, Open, [{Formula, []}], Close}) -> {group, [word(Word), word(Open), {last, ""}, formula(Formula, 2), ending(Close)]};
body({list, Word, Open, Members, Close}) ->
    Docs = [[[case begins_line(first_word(Formula)) of true -> hard; false -> {line, " "} end || Number > 1],
             formula(Formula, 2), [ending(Comma) || Comma <- Commas]] || {Number, {Formula, Commas}} <- lists:enumerate(Members)],
    {group, [word(Word), word(Open), {align, [{last, ""}, Docs]}, ending(Close)]}.

line_behind(Words, Space) -> [{line, Space} || not is_glued(Words)].

%% Leaves

%% What has no structure of its own: in a line if it fits, and otherwise broken behind commas and in front of words that join
%% two parts.
leaf([First | Trees]) ->
    [{[], Doc} | Parts] = parts(Trees, First, [{none, First}], []),
    {group, [Doc, [{sep, Flat, flat, 0, Part} || {{last, Flat}, Part} <- Parts]]}.

parts([Tree | Trees], Before, Part, Parts) ->
    case divides(Before, Tree) of
        true -> parts(Trees, Tree, [{Before, Tree}], [part_of(Part) | Parts]);
        false -> parts(Trees, Tree, [{Before, Tree} | Part], Parts)
    end;
parts([], _, Part, Parts) -> lists:reverse([part_of(Part) | Parts]).

part_of(Part) ->
    [{Before, First} | Others] = lists:reverse(Part),
    Rest = [[gap_between(Previous, Tree), tree(Tree)] || {Previous, Tree} <- Others],
    {gap_between(Before, First), {group, [tree(First), {nest, 2, Rest}]}}.

divides(#word{kind = Kind}, _) when Kind =:= ','; Kind =:= ';' -> true;
divides(_, #word{kind = Kind}) when Kind =:= 'when'; Kind =:= 'andalso'; Kind =:= 'orelse'; Kind =:= 'of'; Kind =:= 'after' -> true;
divides(#word{kind = atom, value = leads}, _) -> false;
divides(Before, #word{kind = atom, value = Word}) ->
    ends_operand(Before) andalso lists:member(Word, [within, since, per, to]);
divides(_, _) -> false.

tree({Open, [], Close}) -> [word(Open), {last, ""}, ending(Close)];
tree({Open, [First | _] = Inside, Close}) ->
    [word(Open), {align, [inside(Open, first(First)), leaf(Inside)]}, inside(last(lists:last(Inside)), Close), ending(Close)];
tree(#word{kind = Kind} = Word) when Kind =:= ','; Kind =:= ';'; Kind =:= dot -> ending(Word);
tree(Word) -> word(Word).

%% Lines as they are: each deeper indentation of the author is one of two columns.
kept(Trees) ->
    [#word{margin = Margin} = First | Words] = flattened(Trees),
    [word(First), kept(Words, [Margin], [], First)].

kept([#word{gap = line, margin = Margin} = Word | Words], Margins, Line, _) ->
    %% What is too wide to be indented does not say how deep it is.
    Levels = case witness_spec_format_doc:fits(word(Word), 2 * length(Margins)) of
        true -> level(Margin, Margins);
        false -> Margins
    end,
    [{nest, 2 * length(Margins), lists:reverse(Line)}, {nest, 2 * (length(Levels) - 1), [hard, word(Word)]},
     kept(Words, Levels, [], Word)];
kept([Word | Words], Margins, Line, Before) -> kept(Words, Margins, [tree(Word), kept_gap(Before, Word) | Line], Word);
kept([], Margins, Line, _) -> [{nest, 2 * length(Margins), lists:reverse(Line)}].

level(Margin, [Last | [_ | _] = Margins]) when Margin < Last -> level(Margin, Margins);
level(Margin, [Last | _] = Margins) when Margin > Last -> [Margin | Margins];
level(_, Margins) -> Margins.

%% Words in documents

word(#word{text = Text, empty = Empty, behind = Behind} = Word) ->
    [word_above(Word), witness_spec_format_doc:text(Text, Empty), [{behind, Behind} || Behind =/= none]].

%% What belongs to the word in front of it.
ending(#word{text = Text, behind = Behind, above = []}) ->
    [witness_spec_format_doc:tail(Text), [{behind, Behind} || Behind =/= none]];
ending(Word) -> word(Word).

word_above(#word{above = Above}) -> [{comment, Text, Empty} || {Text, Empty} <- Above].

%% Between words

gap_between(none, _) -> [];
gap_between(Before, Tree) -> gap(last(Before), first(Tree)).

%% A dot with a space behind it is another token, and a name that begins with a sign of Elixir is in one piece.
gap(#word{kind = '.'}, _) -> [];
gap(#word{kind = sigil_prefix}, _) -> [];
gap(_, #word{kind = sigil_suffix}) -> [];
gap(Before, Word) -> separable(spacing(Before, Word), Before, Word).

inside(Before, Word) -> separable("", Before, Word).

kept_gap(#word{kind = '.'}, _) -> [];
kept_gap(#word{kind = sigil_prefix}, _) -> [];
kept_gap(_, #word{kind = sigil_suffix}) -> [];
kept_gap(Before, Word) ->
    separable(case spacing_of_brackets(Before, Word) of none -> written(Word); Flat -> Flat end, Before, Word).

%% Without the author's space they might be read as other tokens.
separable("", #word{kind = dot}, _) -> {last, " "};
separable("", #word{text = [_ | _] = Before}, #word{text = Text, gap = Gap}) when Gap =/= none ->
    case erl_scan:string(Before ++ Text, {1, 1}, [text]) of
        {ok, [First, Second], _} ->
            case {erl_anno:text(element(2, First)), erl_anno:text(element(2, Second))} of
                {Before, Text} -> {last, ""};
                _ -> {last, " "}
            end;
        _ -> {last, " "}
    end;
separable(Flat, _, _) -> {last, Flat}.

spacing(Before, #word{} = Word) ->
    case spacing_of_brackets(Before, Word) of
        none ->
            case {side(Before, behind), side(Word, front)} of
                {tight, _} -> "";
                {_, tight} -> "";
                {spaced, _} -> " ";
                {_, spaced} -> " ";
                {operand, operand} -> " ";
                _ -> written(Word)
            end;
        Flat -> Flat
    end.

written(#word{gap = none}) -> "";
written(#word{}) -> " ".

spacing_of_brackets(_, #word{kind = Kind}) when
        Kind =:= ','; Kind =:= ';'; Kind =:= dot; Kind =:= ')'; Kind =:= ']'; Kind =:= '}'; Kind =:= '>>' -> "";
spacing_of_brackets(#word{kind = Kind}, _) when Kind =:= '('; Kind =:= '['; Kind =:= '{'; Kind =:= '<<' -> "";
spacing_of_brackets(#word{kind = Kind}, _) when Kind =:= ','; Kind =:= ';' -> " ";
spacing_of_brackets(_, _) -> none.

%% How a word stands to its neighbours: `tight`, `spaced`, as an `operand`, of which no two stand together, or as the author
%% wrote it.
side(#word{kind = ':', value = tight}, _) -> tight;
side(#word{kind = Sign, value = spaced}, _) when Sign =:= ':'; Sign =:= '+'; Sign =:= '-'; Sign =:= '*' -> spaced;
side(#word{kind = ':', value = name}, Side) -> case Side of front -> tight; behind -> spaced end;
side(#word{kind = Kind}, Side) ->
    Spaced = ['?', '!', '->', '<-', '-->', '<--', '**', '=', ':=', '=>', '::', '==', '=:=', '=/=', '/=', '=<', '>=', '<', '>', '|',
              '||', '++'],
    Closing = [')', ']', '}', '>>', sigil_suffix],
    case lists:member(Kind, Spaced) of
        true -> spaced;
        false ->
            case lists:member(Kind, Closing) andalso Side =:= behind orelse is_word(Kind) of
                true -> operand;
                false -> written
            end
    end.

%% Names, numbers, texts and Erlang's reserved words.
is_word(Kind) -> lists:member(Kind, [atom, var, integer, float, char, string]) orelse erl_scan:reserved_word(Kind).
