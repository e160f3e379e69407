-module(witness_spec_elixir).
-moduledoc """
Elixir's notation in a specification that is not well-formed, such as `{:ok, %{a: 1}}`.

`explain/4` finds the first term or operator of Elixir in a property, and says how a specification writes it. It is asked only after
another pass has found an error, so it refuses nothing that is valid. `m:witness_spec_elixir_string` is about what is
well-formed, but matches nothing.
""".

-export([explain/4]).

-type finding() :: witness_spec_diagnostic:finding().
-type location() :: witness_spec_diagnostic:location().

%% So many characters of a property are read: the time grows faster than their number.
-define(MAX_READ, 10_000).
%% How many brackets around a term may be part of it.
-define(MAX_OUTER, 10).
%% The longest text that an error quotes, in characters.
-define(MAX_QUOTED, 35).

-define(IS_UPPER(C), (C >= $A andalso C =< $Z)).
-define(IS_LOWER(C), (C >= $a andalso C =< $z)).
-define(IS_DIGIT(C), (C >= $0 andalso C =< $9)).
-define(IS_SPACE(C), (C =:= $\s orelse C =:= $\t orelse C =:= $\n orelse C =:= $\r)).
-define(IS_WORD(C), (?IS_UPPER(C) orelse ?IS_LOWER(C) orelse ?IS_DIGIT(C) orelse C =:= $_ orelse C =:= $@)).

%% Where the reader is. `before`: whether an operand has just ended, or the sign or word that stands there; `opens`: the
%% brackets that are open, the last one first, with their texts; `guard`: their number at a `when`; `joined`: the last `and` or `or`
%% of the test that is read; `failed`: the place of the error; `last`: where the property ends.
-record(reader, {location :: location(),
                 before = none :: none | operand | {sign, char()} | {word, string()},
                 opens = [] :: [{location(), string()}],
                 guard = none :: none | non_neg_integer(),
                 joined = none :: none | {location(), string()},
                 failed :: location(),
                 last :: location() | eof}).

-doc """
The finding, or the one that replaces it because its property has a term in Elixir's notation. `Chars` is the text from the place
`From`, where the property begins; it is read up to the place `To`.
""".
-spec explain(finding(), Chars :: string(), From :: location(), To :: location() | eof) -> finding().
explain({error, Location, Code, _, _} = Finding, Chars, From, To) when
        Location =/= undefined, Code =:= syntax orelse Code =:= not_a_pattern orelse Code =:= not_a_guard ->
    try read(lists:sublist(Chars, ?MAX_READ), #reader{location = From, failed = Location, last = To}) of
        none -> Finding
    catch
        throw:{error, _, _, _, _} = Explained -> Explained
    end;
explain(Finding, _, _, _) ->
    Finding.

-spec read(string(), #reader{}) -> none.
read([], _) -> none;
read(_, #reader{location = At, last = Last}) when Last =/= eof, At > Last -> none;
read([C | Rest], R) when ?IS_SPACE(C) -> read(Rest, next([C], R));
read([$" | Rest] = Chars, R) -> read_quoted(Chars, Rest, $", R);
read([$' | Rest] = Chars, R) -> read_quoted(Chars, Rest, $', R);
read([$$, $\\, C | Rest], R) -> read(Rest, operand([$$, $\\, C], R));
read([$$, C | Rest], R) -> read(Rest, operand([$$, C], R));
read([C | _] = Chars, #reader{before = Before} = R) when Before =:= operand ->
    operator(Chars, R),
    case ?IS_WORD(C) of true -> word(Chars, R); false -> sign(Chars, R) end;
read([C | _] = Chars, R) ->
    start(Chars, R),
    case ?IS_WORD(C) of true -> word(Chars, R); false -> sign(Chars, R) end.

%% At a place where a term begins.
start([$:, C | _] = Chars, R) when C =:= $"; C =:= $'; ?IS_UPPER(C); ?IS_LOWER(C); C =:= $_ -> remote(Chars, R), term(Chars, R);
start([$:, C | _] = Chars, #reader{before = {sign, Sign}} = R) when C > $\s, Sign =/= $[, Sign =/= $: -> term(Chars, R);
start([$%, C | _] = Chars, #reader{before = {sign, Sign}, opens = [_ | _]} = R) when
        Sign =/= $., C =:= ${ orelse ?IS_UPPER(C) orelse ?IS_LOWER(C) orelse C =:= $_ ->
    term(Chars, R);
start([$^, C | _] = Chars, R) when ?IS_LOWER(C) -> term(Chars, R);
start([$?, C | _] = Chars, #reader{before = {sign, Sign}} = R) when C > $\s, Sign =/= $[, Sign =/= $< -> term(Chars, R);
start([$0, Base, C | _] = Chars, R) when (Base =:= $x orelse Base =:= $o orelse Base =:= $b), ?IS_WORD(C) -> term(Chars, R);
start([$~, C | _] = Chars, R) when C =:= $c; C =:= $C; C =:= $w; C =:= $W -> term(Chars, R);
start([$~, C, Open | _] = Chars, R) when ?IS_UPPER(C), C =/= $S, C =/= $B; ?IS_LOWER(C), C =/= $s, C =/= $b ->
    lists:member(Open, "([{</|\"'") andalso
        refuse(R, lists:sublist(Chars, 2),
               "match the term that it makes; most are structs: `#{'__struct__' := 'Elixir.Date', year := 2026}`");
start([$&, C | _] = Chars, R) when C > $\s -> function(Chars, R);
start("fn" ++ [C | _] = Chars, #reader{before = {sign, Sign}} = R) when ?IS_SPACE(C) orelse C =:= $(, Sign =/= $[, Sign =/= $< ->
    function(Chars, R);
start([$@, C | _] = Chars, R) when ?IS_LOWER(C) ->
    refuse(R, [$@ | word_at(tl(Chars))], "a specification has no attributes of a module: write the value itself");
start([$#, C | _], R) when C =:= $\s; C =:= $# -> refuse(R, "#", "a comment begins with `%`");
start([$#, C | _] = Chars, R) when ?IS_UPPER(C) -> shown(Chars, R);
start("is_nil(" ++ _, #reader{guard = Guard} = R) when Guard =/= none ->
    refuse(R, "is_nil", "write `X =:= nil`");
start([C | _] = Chars, #reader{before = {sign, Sign}} = R) when ?IS_LOWER(C), Sign =:= $[ orelse Sign =:= ${ orelse
                                                                         Sign =:= $( orelse Sign =:= $, -> keyword(Chars, R);
start([C | _] = Chars, #reader{before = Before, opens = [_ | _]} = R) when
        ?IS_UPPER(C), Before =/= {word, "max"}, Before =/= {word, "min"} ->
    alias(Chars, R);
start(_, _) -> none.

%% `:calc.init(`.
remote(Chars, R) ->
    case witness_spec_elixir_term:read(Chars) of
        {ok, Module, [$., C | Rest]} when ?IS_LOWER(C) ->
            Function = word_at([C | Rest]),
            refuse_term(R#reader.location, taken(Chars, lists:nthtail(length(Function), [C | Rest])), [Module, ":", Function]);
        _ -> none
    end.

keyword(Chars, R) ->
    Name = word_at(Chars),
    case lists:nthtail(length(Name), Chars) of
        [$:, Space | _] when ?IS_SPACE(Space) ->
            case witness_spec_elixir_term:read([$[ | pair_at(Chars)] ++ "]") of
                {ok, Written, []} -> term(Chars, pair_at(Chars), Written, R);
                _ -> none
            end;
        _ -> none
    end.

%% The text of `name: value` up to a comma or the bracket that ends it.
pair_at(Chars) -> pair_at(Chars, 0).

pair_at([C | _], 0) when C =:= $,; C =:= $]; C =:= $}; C =:= $) -> [];
pair_at([C | Rest], Depth) when C =:= $[; C =:= ${; C =:= $( -> [C | pair_at(Rest, Depth + 1)];
pair_at([C | Rest], Depth) when C =:= $]; C =:= $}; C =:= $) -> [C | pair_at(Rest, Depth - 1)];
pair_at([C | Rest], Depth) -> [C | pair_at(Rest, Depth)];
pair_at([], _) -> [].

%% `Shop.Pool`, but not `Shop.Pool.init(`, and not the variable of `max X.`.
alias(Chars, R) ->
    case lists:nthtail(length(word_at(Chars)), Chars) of
        [$., C | _] when ?IS_UPPER(C) -> term(Chars, R);
        _ -> none
    end.

-spec function(string(), #reader{}) -> no_return().
function(Chars, R) ->
    refuse(R, word_at(Chars, hd(Chars) =:= $&),
           "a pattern does not compare functions: `_` matches every term, and a guard may have `is_function(F, 2)`").

%% `#PID<0.90.0>`, as Witness shows it.
shown(Chars, R) ->
    case re:run(Chars, "^#[A-Z][\\w.]*<", [{capture, first, list}]) of
        {match, [Shown]} ->
            refuse(R, Shown, "a pattern cannot write this term: `_` matches it, or a variable, which is known in what follows");
        nomatch -> none
    end.

%% At a place where no term begins.
operator("!==" ++ _, R) -> instead(R, "!==", "=/=");
operator("===" ++ _, R) -> instead(R, "===", "=:=");
operator("!=" ++ _, #reader{guard = Guard} = R) when Guard =/= none -> instead(R, "!=", "/=");
operator("<=" ++ _, #reader{guard = Guard} = R) when Guard =/= none -> instead(R, "<=", "=<");
operator("&&" ++ _, R) -> instead(R, "&&", "andalso");
operator("||" ++ _, R) -> instead(R, "||", "orelse");
operator([$i, $n, C | _], #reader{guard = Guard} = R) when Guard =/= none, ?IS_SPACE(C) orelse C =:= $[ ->
    refuse(R, "in", "compare with each value, `X =:= 1; X =:= 2`, or with the limits, `X >= 1, X =< 9`");
operator([$., $., C | _], R) when ?IS_WORD(C) ->
    refuse(R, "..", "compare with the limits in a guard, `X >= 1, X =< 9`; a range itself is a struct, with `first` and `last`");
operator([$., C | _] = Chars, #reader{guard = Guard} = R) when Guard =/= none, ?IS_LOWER(C) ->
    Field = word_at(tl(Chars)),
    refuse(R, [$. | Field], ["the field of a map is `map_get(", Field, ", X)`"]);
operator("::" ++ _ = Chars, #reader{opens = [{_, "<<" ++ _} | _]} = R) -> term(Chars, R);
operator([C | _], #reader{failed = At, location = At, joined = {Joined, Word}} = R) when C =:= $<; C =:= $>; C =:= $=; C =:= $/ ->
    refuse(R#reader{location = Joined}, Word,
           ["write `", Word, case Word of "and" -> "also"; "or" -> "else" end, "`: in Erlang, `", Word,
            "` binds tighter than a comparison"]);
operator(_, _) -> none.

-spec instead(#reader{}, string(), string()) -> no_return().
instead(R, Found, Written) -> refuse(R, Found, ["write `", Written, "`"]).

%% A term at this place, or the largest one around it.
term(Chars, R) ->
    case around(Chars, R) of
        none ->
            case Chars of
                "::" ++ _ -> none;
                [$~ | _] -> none;
                [$% | _] -> none;
                _ -> own(Chars, R)
            end;
        Found -> throw(Found)
    end.

%% The pair of a keyword list.
-spec term(string(), string(), string(), #reader{}) -> no_return().
term(Chars, Pair, Written, R) ->
    case around(Chars, R) of
        none -> refuse_term(R#reader.location, string:trim(Pair), Written);
        Found -> throw(Found)
    end.

own(Chars, #reader{location = At}) ->
    case witness_spec_elixir_term:read(Chars) of
        {ok, Written, Rest} -> refuse_term(At, taken(Chars, Rest), Written);
        none -> none
    end.

around(Chars, #reader{opens = Opens, location = At}) ->
    Outer = lists:reverse(lists:sublist(Opens, ?MAX_OUTER)) ++ [{At, Chars} || hd(Chars) =:= $% orelse hd(Chars) =:= $~],
    around(Outer, length(Chars), At).

around([{At, Chars} | Inner], Left, Found) ->
    case witness_spec_elixir_term:read(Chars) of
        {ok, Written, Rest} when At =:= Found; length(Rest) < Left ->
            Text = taken(Chars, Rest),
            finding(At, Text, Written);
        _ -> around(Inner, Left, Found)
    end;
around([], _, _) -> none.

-spec refuse_term(location(), string(), string()) -> no_return().
refuse_term(At, Text, Written) -> throw(finding(At, Text, Written)).

finding(At, Text, Written) ->
    witness_spec_diagnostic:error(At, elixir, [quote(Text), " is Elixir's notation"],
                                  ["a specification is written as in Erlang: `", Written, "`"]).

-spec refuse(#reader{}, string(), unicode:chardata()) -> no_return().
refuse(#reader{location = At}, Text, Hint) ->
    throw(witness_spec_diagnostic:error(At, elixir, [quote(Text), " is Elixir's notation"], Hint)).

quote(Text) ->
    case length(Text) > ?MAX_QUOTED of
        true -> witness_spec_diagnostic:quote([lists:sublist(Text, ?MAX_QUOTED), "..."]);
        false -> witness_spec_diagnostic:quote([case ?IS_SPACE(C) of true -> $\s; false -> C end || C <- Text])
    end.

taken(Chars, Rest) -> lists:sublist(Chars, length(Chars) - length(Rest)).

%% Moving on.

next(Passed, #reader{location = At} = R) -> R#reader{location = lists:foldl(fun place_after/2, At, Passed)}.

place_after($\n, {Line, _}) -> {Line + 1, 1};
place_after(_, {Line, Column}) -> {Line, Column + 1}.

operand(Passed, R) -> (next(Passed, R))#reader{before = operand}.

read_quoted(Chars, Rest, Close, R) ->
    After = after_quote(Rest, Close),
    Passed = taken(Chars, After),
    concatenated(Chars, After, R),
    case {R#reader.before, After} of
        {{sign, Sign}, [$:, Space | _]} when Close =:= $", ?IS_SPACE(Space), Sign =:= $[ orelse Sign =:= ${ orelse Sign =:= $, ->
            term(Chars, R);
        _ -> none
    end,
    read(After, operand(Passed, R)).

%% `"abc" <> rest`.
concatenated([$" | _] = Chars, After, R) ->
    case string:trim(After, leading) of
        "<>" ++ _ -> term(Chars, R);
        _ -> none
    end;
concatenated(_, _, _) -> none.

after_quote([$\\, _ | Rest], Close) -> after_quote(Rest, Close);
after_quote([Close | Rest], Close) -> Rest;
after_quote([_ | Rest], Close) -> after_quote(Rest, Close);
after_quote([], _) -> [].

word(Chars, #reader{opens = Opens, location = At} = R) ->
    Word = word_at(Chars),
    Rest = lists:nthtail(length(Word), Chars),
    Next = next(Word, R),
    read(Rest, case Word of
        "when" -> Next#reader{before = {word, Word}, guard = length(Opens), joined = none};
        _ when Word =:= "monitor"; Word =:= "check"; Word =:= "group"; Word =:= "per"; Word =:= "over"; Word =:= "none" ->
            Next#reader{before = {word, Word}, guard = case Opens of [] -> none; _ -> R#reader.guard end};
        _ when Word =:= "and"; Word =:= "or" ->
            Next#reader{before = {word, Word}, joined = case R#reader.guard of none -> none; _ -> {At, Word} end};
        _ when Word =:= "andalso"; Word =:= "orelse" -> Next#reader{before = {word, Word}, joined = none};
        _ when Word =:= "with"; Word =:= "max"; Word =:= "min"; Word =:= "not"; Word =:= "begin"; Word =:= "div"; Word =:= "rem" ->
            Next#reader{before = {word, Word}};
        _ -> Next#reader{before = operand}
    end).

word_at(Chars) -> lists:takewhile(fun(C) -> ?IS_WORD(C) end, Chars).

%% With the sign in front.
word_at([C | Rest], true) -> [C | lists:takewhile(fun(Other) -> ?IS_WORD(Other) orelse Other =:= $. orelse Other =:= $/ end, Rest)];
word_at(Chars, false) -> word_at(Chars).

%% A comment goes up to the end of its line.
sign([$% | _] = Chars, R) ->
    Comment = lists:takewhile(fun(C) -> C =/= $\n end, Chars),
    read(lists:nthtail(length(Comment), Chars), next(Comment, R));
sign([C | Rest] = Chars, #reader{opens = Opens, location = At} = R) when C =:= $[; C =:= ${; C =:= $( ->
    read(Rest, (next([C], R))#reader{opens = [{At, Chars} | Opens], before = {sign, C}});
sign("<<" ++ Rest = Chars, #reader{opens = Opens, location = At} = R) ->
    read(Rest, (next("<<", R))#reader{opens = [{At, Chars} | Opens], before = {sign, $,}});
sign(">>" ++ Rest, #reader{opens = [{_, "<<" ++ _} | Opens]} = R) -> read(Rest, (operand(">>", R))#reader{opens = Opens});
sign([C | Rest], #reader{opens = Opens} = R) when C =:= $]; C =:= $}; C =:= $) ->
    Outer = case Opens of [_ | Others] -> Others; [] -> [] end,
    Guard = case R#reader.guard of Depth when is_integer(Depth), length(Outer) < Depth -> none; Known -> Known end,
    read(Rest, (operand([C], R))#reader{opens = Outer, guard = Guard, joined = none});
sign([C | Rest], R) when C =:= $,; C =:= $; -> read(Rest, (next([C], R))#reader{before = {sign, C}, joined = none});
sign([C | Rest] = Chars, R) ->
    case [Operator || Operator <- ["=:=", "=/=", "==", ":=", "=>", "=<", ">=", "->", "<-", "++", "--", "/=", "**", "||", "::"],
                      lists:prefix(Operator, Chars)] of
        [Operator | _] -> read(lists:nthtail(length(Operator), Chars), (next(Operator, R))#reader{before = {sign, $=}});
        [] -> read(Rest, (next([C], R))#reader{before = {sign, C}})
    end.
