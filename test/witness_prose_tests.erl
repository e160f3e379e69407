-module(witness_prose_tests).
-moduledoc """
Comments and documentation have none of the words that `docs/internals/glossary.md` retires: a process is "it", and what acts is
named.
""".
-include_lib("eunit/include/eunit.hrl").

retired_words_are_not_used_test_() ->
    {timeout, 120, fun() ->
        Words = retired(),
        ?assertEqual([], [{File, N, Line} || File <- files(), {N, Line} <- found(File, read(File), Words)])
    end}.

a_retired_word_is_found_test() ->
    Found = fun(File, Text) -> [N || {N, _} <- found(File, unicode:characters_to_binary(Text), retired())] end,
    ?assertEqual([1, 3, 6],
                 Found("a.erl",
                       "%% Who sends\n-module(a).\n-doc \"Nobody waits.\".\nf() -> who; % it\nwho() -> \"nobody\".\n% it is held\n")),
    ?assertEqual([3, 4], Found("a.erl", "-moduledoc \"\"\"\nA process\nwaits for whoever\nis looked at.\n\"\"\".\n")),
    ?assertEqual([1, 2], Found("a.md", "Who\nhis `queue`\n```\nwho\n```\nThe whole `who` here\n")),
    ?assertEqual([1, 3], Found("a.c", "/* everybody */ int who;\n/* one\n * whose */\n\"nobody\";\n")),
    ?assertEqual([2], Found("run", "who=1\n# who\n")).

%% --- texts -----------------------------------------------------------------------

%% The table of the glossary.
retired() ->
    [_, Section] = binary:split(read("docs/internals/glossary.md"), ~"## Retired words"),
    Rows = [Cell || <<"| ", Row/binary>> <- binary:split(Section, ~"\n", [global]), [Cell | _] <- [binary:split(Row, ~" |")],
            Cell =/= ~"Not"],
    Words = lists:append([binary:split(Row, ~", ", [global]) || Row <- Rows]),
    ?assert(length(Words) > 10),
    {ok, Pattern} = re:compile([~"(^|[^`\\w-])(", lists:join($|, Words), ~")\\b", ~"(?!`)"], [caseless, unicode]),
    Pattern.

files() ->
    Root = root(),
    Files = [filename:join(Folder, File) || Folder <- ["src", "c_src", "docs", "bench", "test"],
                                            File <- filelib:wildcard(filename:join("**", "*.{erl,hrl,c,h,md}"),
                                                                     filename:join(Root, Folder))],
    Scripts = [File || File <- filelib:wildcard("{bin,bench}/*", Root), filename:extension(File) =:= "",
                       filelib:is_regular(filename:join(Root, File))],
    ["README.md" | lists:sort(Files ++ Scripts)] -- ["docs/internals/glossary.md", "test/witness_prose_tests.erl"].

root() -> witness_checkout:root(filename:dirname(code:which(?MODULE))).

read(File) ->
    {ok, Text} = file:read_file(filename:join(root(), File)),
    Text.

%% Lines of prose with such a word.
found(File, Text, Words) ->
    [{N, Line} || {N, Line} <- prose(filename:extension(File), Text), re:run(Line, Words, [{capture, none}]) =:= match].

prose(Erlang, Text) when Erlang =:= ".erl"; Erlang =:= ".hrl" ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text), 1, [return_comments]),
    documented(Tokens);
prose(".md", Text) -> outside(lists:enumerate(lines(Text)));
prose(C, Text) when C =:= ".c"; C =:= ".h" ->
    case re:run(Text, ~B"/\*.*?\*/|//[^\n]*", [global, dotall, {capture, first, index}]) of
        {match, Comments} ->
            lists:append([lists:enumerate(1 + length(binary:matches(binary:part(Text, 0, At), ~"\n")),
                                          lines(binary:part(Text, At, Size)))
                          || [{At, Size}] <- Comments]);
        nomatch -> []
    end;
prose(_, Text) -> [Line || {_, <<"#", _/binary>>} = Line <- lists:enumerate(lines(Text))].

documented([{comment, At, Text} | Tokens]) -> [{erl_anno:line(At), unicode:characters_to_binary(Text)} | documented(Tokens)];
documented([{'-', _}, {atom, _, Doc}, {string, At, Text} | Tokens]) when Doc =:= doc; Doc =:= moduledoc ->
    %% What a triple-quoted string says begins in the line behind its quotes.
    Below = case lists:member($\n, Text) of true -> 1; false -> 0 end,
    lists:enumerate(erl_anno:line(At) + Below, lines(unicode:characters_to_binary(Text))) ++ documented(Tokens);
documented([_ | Tokens]) -> documented(Tokens);
documented([]) -> [].

%% Markdown but for its blocks of code.
outside([{_, <<"```", _/binary>>} | Lines]) ->
    outside(case lists:dropwhile(fun({_, Line}) -> not is_fence(Line) end, Lines) of [] -> []; [_ | Rest] -> Rest end);
outside([Line | Lines]) -> [Line | outside(Lines)];
outside([]) -> [].

is_fence(<<"```", _/binary>>) -> true;
is_fence(_) -> false.

lines(Text) -> binary:split(Text, ~"\n", [global]).
