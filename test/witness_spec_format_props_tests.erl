-module(witness_spec_format_props_tests).
-moduledoc """
What holds for every text that is formatted: the specifications of this repository, random ones, and each of them with other white space and
with comments at random places.

`WITNESS_FORMAT_SEED` brings a run back, `WITNESS_FORMAT_TEXTS` is the number of random texts of each kind.
""".
-include_lib("eunit/include/eunit.hrl").

-export([checked/1, scattered/1, sources/0]).

-define(TEXTS, 150).
-define(WIDTH, 100).

specifications_of_the_repository_keep_what_they_say_test_() ->
    {timeout, 120, fun() ->
        ?assert(length(sources()) > 150),
        [?assertEqual({File, ok}, {File, checked(Source)}) || {File, Source} <- sources()]
    end}.

specifications_in_another_layout_keep_what_they_say_test_() ->
    {timeout, 240, fun() ->
        Seed = seed(),
        [?assertEqual({Seed, N, File, ok}, {Seed, N, File, checked(drawn({Seed, N, File}, fun() -> scattered(Source) end))})
         || N <- [1, 2], {File, Source} <- sources(), readable(Source)]
    end}.

random_formulas_keep_what_they_say_test_() ->
    {timeout, 240, fun() ->
        Seed = seed(),
        [?assertEqual({Seed, Focus, N, ok}, {Seed, Focus, N, checked(drawn({Seed, Focus, N}, fun() -> random(Focus, N) end))})
         || Focus <- [mixed, timed, asking, calls, values], N <- lists:seq(1, number())]
    end}.

random_sentences_keep_what_they_say_test_() ->
    {timeout, 240, fun() ->
        Seed = seed(),
        [?assertEqual({Seed, Mode, N, ok}, {Seed, Mode, N, checked(drawn({Seed, Mode, N}, fun() -> sentences(Mode) end))})
         || Mode <- modes(), N <- lists:seq(1, number() div 10)]
    end}.

random_machines_keep_what_they_say_test_() ->
    {timeout, 240, fun() ->
        Seed = seed(),
        [?assertEqual({Seed, N, ok}, {Seed, N, checked(drawn({Seed, N}, fun() -> scattered(machine()) end))})
         || N <- lists:seq(1, number())]
    end}.

%% They are written here with single blanks. Only a sentence that is too long has several lines, and each begins with a phrase.
random_sentences_are_broken_in_front_of_phrases_test_() ->
    {timeout, 240, fun() ->
        Seed = seed(),
        Lines = [begin
                     Drawn = drawn({Seed, Mode, N}, fun() -> witness_spec_sentence_props_tests:random_text(Mode) end),
                     [begin
                          {ok, Formatted} = witness_spec_format:text(drawn({Seed, N, Text}, fun() -> respaced(Text, [" ", "  ", "\t"]) end)),
                          Sentence = [Line || <<"  ", Line/binary>> <- binary:split(Formatted, ~"\n", [global])],
                          ?assertEqual({Seed, Text, flat(Text)}, {Seed, Text, flat(Formatted)}),
                          ?assertEqual({Seed, Text, []}, {Seed, Text, wrong_lines(flat(Text), flat(behind_head(Text)), Sentence)}),
                          length(Sentence)
                      end || Text <- re:split(Drawn, "(?<=\\.\n)(?=with)")]
                 end || Mode <- modes(), N <- lists:seq(1, number() div 30)],
        ?assertEqual([0, 1, 2], lists:usort([min(2, Number) || Number <- lists:append(Lines)]))
    end}.

%% However their authors have broken them, words that belong together stay in one line.
random_sentences_keep_their_words_together_test_() ->
    {timeout, 240, fun() ->
        Seed = seed(),
        [begin
             Drawn = drawn({Seed, Mode, N}, fun() -> respaced(witness_spec_sentence_props_tests:random_text(Mode), [" ", "\n", "\n    "]) end),
             {ok, Formatted} = witness_spec_format:text(Drawn),
             ?assertEqual({Seed, Mode, N, nomatch}, {Seed, Mode, N, re:run(Formatted, "\\b(leads|at|in|alternates|strictly)\n", [{capture, first, binary}])})
         end || Mode <- modes(), N <- lists:seq(1, number() div 10)]
    end}.

%% The generator writes them as they should be, but for the column of the arrows.
random_machines_have_a_line_for_each_transition_test_() ->
    {timeout, 240, fun() ->
        Seed = seed(),
        Drawn = [drawn({Seed, N}, fun() -> Text = machine(), {Text, respaced(Text, [" ", "\n", "\n\t "])} end)
                 || N <- lists:seq(1, number())],
        Short = [Both || {Text, _} = Both <- Drawn,
                         lists:all(fun(Line) -> byte_size(Line) =< ?WIDTH end, binary:split(Text, ~"\n", [global]))],
        ?assert(length(Short) > number() div 2),
        [begin
             {ok, Formatted} = witness_spec_format:text(Respaced),
             ?assertEqual({Seed, states_of(Text)}, {Seed, re:replace(states_of(Formatted), " +->", " ->", [global, {return, binary}])}),
             States = re:split(states_of(Formatted), "state "),
             ?assertEqual({Seed, Text, []}, {Seed, Text, [State || State <- States, not is_aligned(State)]})
         end || {Text, Respaced} <- Short]
    end}.

modes() -> [whole, per, some, shared, same].

machine() -> witness_spec_machine_props_tests:random_text().

%% A state without transitions is written with an empty line.
states_of(Text) -> binary:replace(behind_head(Text), ~"\n\n", ~"\n", [global]).

behind_head(Text) ->
    [_, Behind] = binary:split(Text, ~"\n  "),
    Behind.

flat(Text) -> string:trim(re:replace(Text, "\\s+", " ", [global, {return, binary}])).

%% The lines of a sentence that are wrong.
wrong_lines(Property, _, Lines) when byte_size(Property) =< ?WIDTH -> Lines;
wrong_lines(_, Sentence, Lines) when byte_size(Sentence) + 2 =< ?WIDTH -> Lines -- [Sentence];
%% Deeper lines are those of an action that is too long itself.
wrong_lines(_, _, [_ | Lines]) ->
    [Line || Line <- Lines, re:run(Line, "^( |(leads to|precedes|alternates with|then|within|before|after|between|until|in any|in) )") =:= nomatch].

%% One column of arrows, or a single blank in front of each.
is_aligned(State) ->
    Lines = [Line || Line <- binary:split(State, ~"\n", [global]), binary:match(Line, ~" -> ") =/= nomatch],
    length(lists:usort([element(1, binary:match(Line, ~" -> ")) || Line <- Lines])) =< 1
        orelse lists:all(fun(Line) -> binary:match(Line, ~"  ->") =:= nomatch end, Lines).

%% Words of specifications in any order are no specifications, and have a layout all the same.
random_words_keep_their_order_test_() ->
    {timeout, 240, fun() ->
        Seed = seed(),
        Corpus = witness_spec_fuzz_tests:corpus(),
        Formatted = [N || N <- lists:seq(1, 10 * number()),
                          begin
                              Source = witness_spec_fuzz_tests:input(Seed, N, Corpus),
                              Result = checked_text(Source),
                              ?assertEqual({Seed, N, ok}, {Seed, N, case Result of refused -> ok; _ -> Result end}),
                              Result =:= ok
                          end],
        ?assert(length(Formatted) > number())
    end}.

seed() -> witness_setting:number("WITNESS_FORMAT_SEED", erlang:system_time(second)).

number() -> witness_setting:number("WITNESS_FORMAT_TEXTS", ?TEXTS).

drawn(Key, Draw) ->
    _ = rand:seed(exsss, erlang:phash2(Key, 1 bsl 32)),
    Draw().

random(Focus, Style) ->
    Property = witness_spec_oracle_gen:among(witness_spec_oracle_gen:property(Focus)),
    Valued = [witness_spec_oracle_gen:with_values(Property#{name := undefined}) || is_map_key(formula, Property), Focus =:= mixed],
    Text = unicode:characters_to_binary(witness_spec_oracle_text:file([Property | Valued], Style)),
    case rand:uniform(3) of
        1 -> Text;
        _ -> scattered(Text)
    end.

sentences(Mode) -> scattered(witness_spec_sentence_props_tests:random_text(Mode)).

-doc "The specifications of the repository with their names, those in its texts as well.".
sources() ->
    Root = witness_checkout:root(filename:dirname(code:which(?MODULE))),
    Files = filelib:wildcard("{bench,examples,test}/**/*.hml", Root),
    Pages = filelib:wildcard("docs/**/*.md", Root),
    [{File, read(Root, File)} || File <- Files]
        ++ [{Page, Text} || Page <- Pages,
                            {match, Texts} <- [re:run(read(Root, Page), "^```hml[^\n]*\n(.*?)^```", [global, multiline, dotall, {capture, [1], binary}])],
                            [Text] <- Texts].

read(Root, File) ->
    {ok, Source} = file:read_file(filename:join(Root, File)),
    Source.

readable(Source) -> witness_spec_format:is_specification(Source) =:= ok.

-doc "The same tokens with other white space, and with comments between them.".
scattered(Source) ->
    {ok, Tokens} = witness_spec_scan:string(Source),
    Percent = rand:uniform(40),
    unicode:characters_to_binary(scattered(Tokens, {1, 1}, Percent)).

scattered([{eof, _} | _], _, _) -> one(["", "\n", "  % The end.", "\n\n\n%% The end.\n"]);
scattered([Token | Tokens], Place, Percent) ->
    Gap = case witness_spec_scan:location(Token) of
        Place when Place =/= {1, 1} -> "";
        _ ->
            case rand:uniform(100) =< Percent of
                true -> one(["\n", "\n", "\n    ", "\t\n", "\r\n\t", "\n\n\n", " % " ++ one(["", "one", "two", "grüß dich"]) ++ "\n",
                             "\n%% one \n    %% two\n", "  %three\r\n%four\n", "\n\n  % five\n\n"]);
                false -> one([" ", " ", " ", "\t", "   "])
            end
    end,
    [Gap, witness_spec_scan:token_text(Token) | scattered(Tokens, witness_spec_scan:after_token(Token), Percent)].

%% The same tokens with one of these gaps wherever white space is.
respaced(Source, Gaps) ->
    {ok, Tokens} = witness_spec_scan:string(Source),
    {Texts, _} = lists:mapfoldl(fun(Token, Place) ->
        Gap = case witness_spec_scan:location(Token) of Place -> ""; _ -> one(Gaps) end,
        {[Gap, witness_spec_scan:token_text(Token)], witness_spec_scan:after_token(Token)}
    end, {1, 1}, lists:droplast(Tokens)),
    unicode:characters_to_binary([Texts, "\n"]).

one(List) -> lists:nth(rand:uniform(length(List)), List).

-doc "`ok`, or what is wrong with the formatted text.".
checked(Source) ->
    case checked_text(Source) of
        ok ->
            {ok, Formatted} = witness_spec_format:text(Source),
            case not readable(Source) orelse said(Source) =:= said(Formatted) of
                true -> ok;
                false -> {says_something_else, Source, Formatted}
            end;
        Wrong -> {Wrong, Source}
    end.

checked_text(Source) ->
    case witness_spec_format:text(Source) of
        {error, [_ | _]} -> refused;
        {ok, Formatted} ->
            Wrong = [differs || tokens(Source) =/= tokens(Formatted)]
                ++ [comments || comments(Source) =/= comments(Formatted)]
                ++ [again || witness_spec_format:text(Formatted) =/= {ok, Formatted}]
                ++ [{wide, Line} || Line <- too_wide(Formatted)]
                ++ [white_space || re:run(Formatted, "[ \t\r]\n|\n\n\n|\\A\n|\n\n\\z|[^\n]\\z|\t", []) =/= nomatch, not has_white_space(Source)],
            case Wrong of
                [] -> ok;
                _ -> {Wrong, Formatted}
            end
    end.

tokens(Source) ->
    {ok, Tokens} = witness_spec_scan:string(Source),
    [case Token of {Kind, _} -> Kind; {Kind, _, Value} -> {Kind, Value} end || Token <- Tokens].

%% The comments, each with the number of tokens in front of it.
comments(Source) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Source), {1, 1}, [return_comments, text]),
    {Comments, _} = lists:foldl(fun({comment, _, Text}, {Before, N}) -> {[{string:trim(Text, trailing), N} | Before], N};
                                   (_, {Before, N}) -> {Before, N + 1} end, {[], 0}, Tokens),
    lists:reverse(Comments).

%% Lines beyond the width that have several words.
too_wide(Formatted) ->
    {ok, Tokens} = witness_spec_scan:string(Formatted),
    Lines = maps:groups_from_list(fun line/1, Tokens),
    [Line || Line <- maps:values(Lines), wide(lists:reverse(Line))].

line(Token) -> element(1, witness_spec_scan:location(Token)).

%% What a newline would change stays together.
wide([Last | Before]) ->
    Line = line(Last),
    {End, Column} = witness_spec_scan:after_token(Last),
    End =:= Line andalso Column - 1 > ?WIDTH
        andalso lists:all(fun(Token) -> element(1, Token) =/= '.' andalso element(1, Token) =/= sigil_prefix end, Before)
        andalso Before =/= [].

%% Inside of texts and comments.
has_white_space(Source) ->
    {ok, Tokens} = witness_spec_scan:string(Source),
    lists:any(fun({Text, _}) -> lists:any(fun(C) -> C < $\s end, Text) end, comments(Source)) orelse
    lists:any(fun({integer, _, _}) -> false;
                 (Token) -> lists:any(fun(C) -> C =< $\s end, witness_spec_scan:token_text(Token))
              end, Tokens).

%% What the parser reads, without places and texts.
said(Source) ->
    {ok, Tokens} = witness_spec_scan:string(Source),
    {_, Rest, _} = witness_spec_record:declarations(Tokens, []),
    {Properties, Findings} = witness_spec_parse:file(Rest, unicode:characters_to_list(Source)),
    {plain(Properties), [Code || {_, _, Code, _, _} <- Findings]}.

plain({Line, Column}) when is_integer(Line), is_integer(Column) -> place;
plain(Tuple) when is_tuple(Tuple) -> list_to_tuple(plain(tuple_to_list(Tuple)));
plain([Head | Tail]) -> [plain(Head) | plain(Tail)];
%% Some warnings name lines.
plain(#{warnings := Warnings} = Map) -> plain((maps:remove(warnings, Map))#{codes => [Code || {_, _, Code, _, _} <- Warnings]});
plain(Map) when is_map(Map) -> #{Key => plain(Value) || Key := Value <- Map};
plain(Text) when is_binary(Text) -> text;
plain(Other) -> Other.
