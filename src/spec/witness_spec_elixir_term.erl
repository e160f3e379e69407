-module(witness_spec_elixir_term).
-moduledoc """
Patterns in Elixir's notation, as a specification writes them: `{:ok, %{a: 1}}` is `{ok, #{a := 1}}`.

The result is text for a hint. Reading makes no atoms and runs no code, whatever the text is. What has no counterpart in a
pattern, such as a function or an interpolation, is not read. Parts that are in Erlang's notation already stay as they are, and
a name such as `Id` is a variable, as the author of a specification means it.
""".

-export([read/1, binary/1]).

%% Nested terms that are read; the longest term, and the longest text that a hint has, in characters.
-define(MAX_DEPTH, 20).
-define(MAX_READ, 500).
-define(MAX_TEXT, 300).

-define(RESERVED, ["after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case", "catch", "cond",
                   "div", "else", "end", "fun", "if", "let", "maybe", "not", "of", "or", "orelse", "receive", "rem", "try",
                   "when", "xor"]).

-define(WORDS, ["after", "and", "catch", "do", "else", "end", "fn", "in", "not", "or", "rescue", "when"]).

-define(IS_UPPER(C), (C >= $A andalso C =< $Z)).
-define(IS_LOWER(C), (C >= $a andalso C =< $z)).
-define(IS_DIGIT(C), (C >= $0 andalso C =< $9)).
-define(IS_SPACE(C), (C =:= $\s orelse C =:= $\t orelse C =:= $\n orelse C =:= $\r)).

-doc "Reads one pattern at the beginning of the text: how a specification writes it, and what follows.".
-spec read(string()) -> {ok, Written :: string(), Rest :: string()} | none.
read(Chars) ->
    try term(lists:sublist(Chars, ?MAX_READ), ?MAX_DEPTH) of
        {Written, Left} ->
            Rest = lists:nthtail(min(?MAX_READ, length(Chars)) - length(Left), Chars),
            case lists:flatten(Written) of
                Text when length(Text) =< ?MAX_TEXT -> {ok, Text, Rest};
                _ -> none
            end
    catch
        throw:unreadable -> none
    end.

-doc "The binary that Elixir writes as this string, as a specification writes it.".
-spec binary(string()) -> string().
binary(Characters) -> [$~ | io_lib:write_string(Characters)].

term(_, 0) -> unreadable();
term(Chars, Depth) ->
    {First, Rest} = simple(skip(Chars), Depth - 1),
    case skip(Rest) of
        [$=, C | More] when C =/= $=, C =/= $>, C =/= $~, C =/= $:, C =/= $/, C =/= $< ->
            {Second, After} = term([C | More], Depth - 1),
            {[First, " = ", Second], After};
        _ ->
            {First, Rest}
    end.

simple("%{" ++ Rest, Depth) -> map(Rest, [], Depth);
simple("#{" ++ Rest, Depth) -> map(Rest, [], Depth);
simple([$%, C | _] = Chars, Depth) when ?IS_UPPER(C); ?IS_LOWER(C); C =:= $_ -> struct(tl(Chars), Depth);
simple([$: | Rest], _) -> atom(Rest);
simple("<<" ++ Rest, Depth) ->
    {Segments, After} = segments(skip(Rest), Depth),
    {["<<", lists:join(", ", Segments), ">>"], After};
simple([${ | Rest], Depth) ->
    {Elements, After} = elements(skip(Rest), $}, Depth),
    {Front, Pairs} = lists:splitwith(fun(Element) -> not is_tuple(Element) end, Elements),
    Last = [["[", lists:join(", ", [pair(Pair) || Pair <- Pairs]), "]"] || Pairs =/= []],
    {["{", lists:join(", ", Front ++ Last), "}"], After};
simple([$[ | Rest], Depth) -> list(skip(Rest), Depth);
simple([$" | _] = Chars, Depth) -> concatenation(Chars, Depth);
simple([$~, $" | Rest], _) -> binary_text(string(Rest, $"));
simple([$~, Sigil, Open | Rest], _) when ?IS_UPPER(Sigil); ?IS_LOWER(Sigil) -> sigil(Sigil, closing(Open), Rest);
simple([$' | Rest], _) ->
    {Content, After} = quoted(Rest, $'),
    {["'", Content, "'"], After};
simple([$?, $\\, C | Rest], _) -> {[$$, $\\, C], Rest};
simple([$?, C | Rest], _) when C > $\s -> {[$$, C], Rest};
simple([$$, C | Rest], _) when C > $\s, C =/= $\\ -> {[$$, C], Rest};
simple([$^ | Rest], _) ->
    {Name, After} = word(Rest),
    variable(Name, After);
simple([$-, C | Rest], _) when ?IS_DIGIT(C) ->
    {Number, After} = number([C | Rest]),
    {[$- | Number], After};
simple([C | _] = Chars, _) when ?IS_DIGIT(C) -> number(Chars);
simple([C | _] = Chars, _) when ?IS_UPPER(C) -> module(Chars);
simple([C | _] = Chars, _) when ?IS_LOWER(C); C =:= $_ ->
    {Name, After} = word(Chars),
    variable(Name, After);
simple(_, _) -> unreadable().

variable(_, [C | _]) when C =:= $(; C =:= $. -> unreadable();
variable(Name, Rest) when Name =:= "nil"; Name =:= "true"; Name =:= "false" -> {Name, Rest};
variable([$_, $_ | _], _) -> unreadable();
variable([$_ | _] = Name, Rest) -> {Name, Rest};
variable([First | Others] = Name, Rest) when ?IS_LOWER(First) ->
    lists:member(Name, ?WORDS) andalso unreadable(),
    {[First - $a + $A | Others], Rest};
variable([First | _] = Name, Rest) when ?IS_UPPER(First) -> {Name, Rest};
variable(_, _) -> unreadable().

%% One name is a variable of the specification.
module(Chars) ->
    case aliases(Chars) of
        {[Name], Rest} -> variable(Name, Rest);
        {Names, Rest} -> {module_name(Names), Rest}
    end.

module_name(["Elixir" | [_ | _] = Names]) -> module_name(Names);
module_name(Names) -> ["'Elixir.", lists:join(".", Names), "'"].

aliases(Chars) ->
    case word(Chars) of
        {Name, [$., C | Rest]} when ?IS_UPPER(C) ->
            {Names, After} = aliases([C | Rest]),
            {[Name | Names], After};
        {_, [$. | _]} -> unreadable();
        {Name, Rest} -> {[Name], Rest}
    end.

atom([Quote | Rest]) when Quote =:= $"; Quote =:= $' ->
    {Content, After} = string(Rest, Quote),
    {quote(Content), After};
atom([C | _] = Chars) when ?IS_UPPER(C); ?IS_LOWER(C); C =:= $_ ->
    {Name, Rest} = name(Chars),
    {atom_text(Name), Rest};
atom(Chars) ->
    Containers = ["%{}", "{}", "<<>>"],
    case [Container || Container <- Containers, lists:prefix(Container, Chars)] of
        [Container | _] -> {quote(Container), lists:nthtail(length(Container), Chars)};
        [] ->
            case lists:splitwith(fun(C) -> lists:member(C, "+-*/=<>|&!^.~@") end, Chars) of
                {[], _} -> unreadable();
                {Operator, Rest} -> {quote(Operator), Rest}
            end
    end.

atom_text([First | Others] = Name) ->
    Plain = ?IS_LOWER(First) andalso lists:all(fun is_word/1, Others) andalso not lists:member(Name, ?RESERVED),
    case Plain of true -> Name; false -> quote(Name) end.

quote(Content) -> ["'", lists:flatmap(fun($') -> "\\'"; (C) -> [C] end, lists:flatten(Content)), "'"].

%% A word may have one `?` or `!` at its end.
name(Chars) ->
    case word(Chars) of
        {Name, [C | Rest]} when C =:= $?; C =:= $! -> {Name ++ [C], Rest};
        Found -> Found
    end.

word(Chars) ->
    case lists:splitwith(fun is_word/1, Chars) of
        {[], _} -> unreadable();
        Found -> Found
    end.

is_word(C) -> ?IS_UPPER(C) orelse ?IS_LOWER(C) orelse ?IS_DIGIT(C) orelse C =:= $_ orelse C =:= $@.

number([$0, Base | Rest]) when Base =:= $x; Base =:= $o; Base =:= $b ->
    {Digits, After} = word(Rest),
    {[case Base of $x -> "16#"; $o -> "8#"; $b -> "2#" end, Digits], After};
number(Chars) ->
    case re:run(Chars, "^[0-9]+(_[0-9]+)*(\\.[0-9]+([eE][-+]?[0-9]+)?)?(?![.\\w])", [unicode, {capture, first, list}]) of
        {match, [Number]} -> {Number, lists:nthtail(length(Number), Chars)};
        nomatch -> unreadable()
    end.

%% Elements, and after them pairs `{Key, Value}` of a keyword list, up to the closing bracket.
elements([Close | Rest], Close, _) -> {[], Rest};
elements(Chars, Close, Depth) ->
    {Element, Rest} = item(Chars, Depth),
    case skip(Rest) of
        [$, | More] ->
            {Others, After} = elements(skip(More), Close, Depth),
            is_tuple(Element) andalso lists:any(fun(Other) -> not is_tuple(Other) end, Others) andalso unreadable(),
            {[Element | Others], After};
        [Close | After] -> {[Element], After};
        _ -> unreadable()
    end.

item(Chars, Depth) ->
    case key(Chars) of
        {Key, Rest} ->
            {Value, After} = term(Rest, Depth),
            {{Key, Value}, After};
        none -> term(Chars, Depth)
    end.

%% `name: ` or `"name": `.
key([$" | Rest]) ->
    try string(Rest, $") of
        {Content, [$:, C | After]} when ?IS_SPACE(C) -> {quote(Content), After};
        _ -> none
    catch
        throw:unreadable -> none
    end;
key([C | _] = Chars) when ?IS_UPPER(C); ?IS_LOWER(C); C =:= $_ ->
    case name(Chars) of
        {Name, [$:, Space | After]} when ?IS_SPACE(Space) -> {atom_text(Name), After};
        _ -> none
    end;
key(_) -> none.

pair({Key, Value}) -> ["{", Key, ", ", Value, "}"];
pair(Element) -> Element.

list([$] | Rest], _) -> {"[]", Rest};
list(Chars, Depth) ->
    {Inside, Rest} = list_elements(Chars, Depth),
    {["[", Inside, "]"], Rest}.

list_elements(Chars, Depth) ->
    {Element, Rest} = item(Chars, Depth),
    case skip(Rest) of
        [$, | More] ->
            {Others, After} = list_elements(skip(More), Depth),
            {[pair(Element), ", ", Others], After};
        [$|, C | More] when C =/= $| ->
            {Tail, After} = term([C | More], Depth),
            case skip(After) of
                [$] | End] -> {[pair(Element), " | ", Tail], End};
                _ -> unreadable()
            end;
        [$] | After] -> {pair(Element), After};
        _ -> unreadable()
    end.

%% The fields behind those that are known already.
map(Chars, Before, Depth) ->
    {Fields, Rest} = fields(skip(Chars), Depth),
    {["#{", lists:join(", ", [[Key, " := ", Value] || {Key, Value} <- Before ++ Fields]), "}"], Rest}.

fields([$} | Rest], _) -> {[], Rest};
fields(Chars, Depth) ->
    {Field, Rest} = field(Chars, Depth),
    case skip(Rest) of
        [$, | More] ->
            {Others, After} = fields(skip(More), Depth),
            {[Field | Others], After};
        [$} | After] -> {[Field], After};
        _ -> unreadable()
    end.

field(Chars, Depth) ->
    case item(Chars, Depth) of
        {{Key, Value}, Rest} -> {{Key, Value}, Rest};
        {Key, Rest} ->
            case skip(Rest) of
                [First, Second | More] when First =:= $=, Second =:= $>; First =:= $:, Second =:= $= ->
                    {Value, After} = term(More, Depth),
                    {{Key, Value}, After};
                _ -> unreadable()
            end
    end.

struct([C | _] = Chars, Depth) when ?IS_UPPER(C) ->
    {Names, Rest} = aliases(Chars),
    struct(module_name(Names), Rest, Depth);
struct(Chars, Depth) ->
    {Name, Rest} = word(Chars),
    {Module, Rest} = variable(Name, Rest),
    struct(Module, Rest, Depth).

struct(Module, [${ | Rest], Depth) -> map(Rest, [{"'__struct__'", Module}], Depth);
struct(_, _, _) -> unreadable().

segments(">>" ++ Rest, _) -> {[], Rest};
segments(Chars, Depth) ->
    {Segment, Rest} = segment(Chars, Depth),
    case skip(Rest) of
        [$, | More] ->
            {Others, After} = segments(skip(More), Depth),
            {[Segment | Others], After};
        ">>" ++ After -> {[Segment], After};
        _ -> unreadable()
    end.

segment([$" | Rest], _) ->
    {Content, After} = string(Rest, $"),
    {["\"", Content, "\"/utf8"], case skip(After) of "::" ++ _ -> unreadable(); [$/ | _] -> unreadable(); _ -> After end};
segment(Chars, Depth) ->
    {Value, Rest} = simple(Chars, Depth),
    case skip(Rest) of
        "::" ++ More -> specifiers(Value, skip(More));
        _ -> {Value, Rest}
    end.

specifiers(Value, Chars) ->
    case re:run(Chars, "^(?:(\\d+)|size\\((\\d+)\\)|([a-z]\\w*))((?:-[a-z]\\w*(?![\\w(]))*)", [{capture, all, list}]) of
        {match, [Whole, Number, Size, Type, Types]} ->
            Sizes = [[$: | Of] || Of <- [Number, Size], Of =/= []],
            Kinds = [[$/ | string:trim(Type ++ Types, leading, "-")] || Type ++ Types =/= []],
            {[Value, Sizes, Kinds], lists:nthtail(length(Whole), Chars)};
        nomatch -> unreadable()
    end.

%% `"abc"`, or `"abc" <> rest`.
concatenation([$" | Rest], Depth) ->
    {Content, After} = string(Rest, $"),
    case skip(After) of
        "<>" ++ More ->
            {Segments, End} = concatenated(skip(More), Depth),
            {["<<\"", Content, "\"/utf8, ", Segments, ">>"], End};
        _ -> binary_text({Content, After})
    end.

concatenated([$" | Rest], Depth) when Depth > 0 ->
    {Content, After} = string(Rest, $"),
    case skip(After) of
        "<>" ++ More ->
            {Segments, End} = concatenated(skip(More), Depth - 1),
            {["\"", Content, "\"/utf8, ", Segments], End};
        _ -> {["\"", Content, "\"/utf8"], After}
    end;
concatenated([C | _] = Chars, _) when ?IS_UPPER(C); ?IS_LOWER(C); C =:= $_ ->
    {Name, Rest} = word(Chars),
    {Variable, Rest} = variable(Name, Rest),
    {[Variable, "/binary"], Rest};
concatenated(_, _) -> unreadable().

binary_text({Content, Rest}) -> {["~\"", Content, "\""], Rest}.

sigil(Sigil, Close, Rest) when Sigil =:= $s; Sigil =:= $c; Sigil =:= $w -> sigil_text(Sigil, string(Rest, Close));
sigil(Sigil, Close, Rest) when Sigil =:= $S; Sigil =:= $C; Sigil =:= $W ->
    case lists:splitwith(fun(C) -> C =/= Close end, Rest) of
        {Content, [_ | After]} ->
            Escaped = lists:flatmap(fun(C) when C =:= $"; C =:= $\\ -> [$\\, C]; (C) -> [C] end, Content),
            sigil_text(string:to_lower(Sigil), {Escaped, After});
        _ -> unreadable()
    end;
sigil(_, _, _) -> unreadable().

sigil_text($w, {Content, [$a | Rest]}) -> {words(fun atom_text/1, Content), Rest};
sigil_text($w, {Content, [$c | Rest]}) -> {words(fun(Word) -> ["\"", Word, "\" ++ []"] end, Content), Rest};
sigil_text($w, {Content, [$s | Rest]}) -> sigil_text($w, {Content, [$\s | Rest]});
sigil_text($w, {Content, Rest}) -> {words(fun(Word) -> ["~\"", Word, "\""] end, Content), Rest};
sigil_text($s, Found) -> binary_text(Found);
sigil_text($c, {[], Rest}) -> {"[]", Rest};
sigil_text($c, {Content, Rest}) -> {["\"", Content, "\" ++ []"], Rest}.

words(Write, Content) ->
    ["[", lists:join(", ", [Write(Word) || Word <- string:lexemes(lists:flatten(Content), " \t\r\n")]), "]"].

closing($() -> $);
closing($[) -> $];
closing(${) -> $};
closing($<) -> $>;
closing(Mark) when Mark =:= $/; Mark =:= $|; Mark =:= $"; Mark =:= $' -> Mark;
closing(_) -> unreadable().

%% What is between the quotes, with the escapes of Erlang.
string("\"\"" ++ [C | _], $") when C =:= $\n; C =:= $\r -> unreadable();
string(Chars, Close) -> string(Chars, Close, []).

string([Close | Rest], Close, Content) -> {lists:flatten(lists:reverse(Content)), Rest};
string([$#, ${ | _], _, _) -> unreadable();
string([$\\, $u, ${ | Rest], Close, Content) -> string(Rest, Close, ["\\x{" | Content]);
string([$\\, $u, A, B, C, D | Rest], Close, Content) -> string(Rest, Close, [["\\x{", A, B, C, D, "}"] | Content]);
string([$\\, $a | Rest], Close, Content) -> string(Rest, Close, ["\\x{7}" | Content]);
string([$\\, C | Rest], Close, Content) when C =:= $x; C =:= $\\; C =:= $" -> string(Rest, Close, [[$\\, C] | Content]);
string([$\\, C | Rest], Close, Content) when C >= $a, C =< $z; C =:= $0 ->
    Escapes = case lists:member(C, "bdefnrstv0") of true -> [$\\, C]; false -> [C] end,
    string(Rest, Close, [Escapes | Content]);
string([$\\, C | Rest], Close, Content) when C > $\s -> string(Rest, Close, [C | Content]);
string([$" | Rest], Close, Content) -> string(Rest, Close, ["\\\"" | Content]);
string([C | Rest], Close, Content) when C >= $\s -> string(Rest, Close, [C | Content]);
string(_, _, _) -> unreadable().

%% A quoted atom of Erlang stays as it is.
quoted([$\\, C | Rest], Close) ->
    {Content, After} = quoted(Rest, Close),
    {[$\\, C | Content], After};
quoted([Close | Rest], Close) -> {[], Rest};
quoted([C | Rest], Close) when C >= $\s ->
    {Content, After} = quoted(Rest, Close),
    {[C | Content], After};
quoted(_, _) -> unreadable().

skip([C | Rest]) when ?IS_SPACE(C) -> skip(Rest);
skip(Chars) -> Chars.

-spec unreadable() -> no_return().
unreadable() -> throw(unreadable).
