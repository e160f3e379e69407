%% What an author of Elixir writes in a specification by habit. The tables are those of the guide, and Elixir evaluates
%% their left sides.
-module(witness_spec_elixir_tests).
-include_lib("eunit/include/eunit.hrl").

%% --- Terms --------------------------------------------------------------------------------------

the_guide_says_how_a_term_of_elixir_is_written_test_() ->
    Rows = table("Elixir"),
    ?assert(length(Rows) >= 15),
    Elixir = terms([Left || [Left, _] <- Rows]),
    [{unicode:characters_to_list(Left), fun() ->
        ?assertEqual(Right, advice([action(Left)])),
        ?assertEqual({[], true}, {findings(action(Right)), matches(action(Right), Term)}),
        ?assertEqual({[], false}, {findings(action(Right)), matches(action(Right), {other, Term})})
    end} || {[Left, Right], Term} <- lists:zip(Rows, Elixir)].

%% Elixir evaluates them in its own VM, with these variables and this struct.
terms(Terms) ->
    Written = lists:join(", ", Terms),
    Program = ["defmodule Shop.Conn do\n  defstruct id: nil, free: true\nend\n"
               "defmodule Shop.Terms do\n  def all(rest, id), do: {rest, id, [", Written, "]}\nend\n"
               "IO.write(Base.encode64(:erlang.term_to_binary(Shop.Terms.all(\"x\", 7) |> elem(2))))\n"],
    evaluate(Program).

evaluate(Program) ->
    witness_folder:with(fun(Folder) ->
        File = filename:join(Folder, "program.exs"),
        ok = file:write_file(File, unicode:characters_to_binary(Program)),
        binary_to_term(base64:decode(os:cmd("elixir " ++ File ++ " 2>/dev/null")))
    end).

%% --- Guards -------------------------------------------------------------------------------------

the_guide_says_how_a_guard_of_elixir_is_written_test_() ->
    Rows = table("Guard of Elixir"),
    ?assert(length(Rows) >= 8),
    Values = [0, 1, 2, 3, 4, 5, 1.0, nil, a],
    Elixir = evaluate(["defmodule Shop.Guards do\n",
                       [["  def g", integer_to_list(N), "(x) when ", Left, ", do: true\n",
                         "  def g", integer_to_list(N), "(_), do: false\n"]
                        || {N, [Left, _]} <- lists:enumerate(Rows)], "end\n"
                       "rows = for n <- 1..", integer_to_list(length(Rows)), ", do: for x <- [0, 1, 2, 3, 4, 5, 1.0, nil, :a], "
                       "do: apply(Shop.Guards, :\"g#{n}\", [x])\n"
                       "IO.write(Base.encode64(:erlang.term_to_binary(rows)))\n"]),
    [{unicode:characters_to_list(Left), fun() ->
        Parts = quoted(hint(action(["{X} when ", Left]))),
        ?assert(Parts =/= []),
        [?assertMatch({_, _}, binary:match(Right, Part)) || Part <- lists:sublist(Parts, 1)],
        Guarded = action(["{X} when ", Right]),
        ?assertEqual([], findings(Guarded)),
        ?assertEqual(Expected, [matches(Guarded, {Value}) || Value <- Values])
    end} || {[Left, Right], Expected} <- lists:zip(Rows, Elixir)].

%% --- What has no counterpart ----------------------------------------------------------------------

what_has_no_counterpart_is_an_error_with_a_hint_test_() ->
    [{Written, ?_assertMatch([{error, elixir, _, <<_, _/binary>>}], findings(action(Written)))}
     || Written <- ["\"#{id}\"", "{:ok, \"a#{id}\"}", "&Shop.run/1", "&(&1 + 1)", "fn -> :ok end", "{fn x -> x end, 1}",
                    "#PID<0.90.0>",
                    "{#Reference<0.1.2.3>, #Shop.User<...>}", "~D[2026-01-01]", "~r/a/", "@timeout", "1..2"]].

the_place_of_an_error_is_that_of_the_term_test() ->
    ?assertMatch({error, {witness_spec, [#{line := 3, column := 8, text := ~"`{:ok, %{a: 1}}` is Elixir's notation"}]}},
                 compile("with m:f(_)\ncheck [_ <- _, _]\n  [_ ? {:ok, %{a: 1}}] ff.\n")),
    %% A map of Elixir is a comment of Erlang, so the end of the property is missing.
    ?assertMatch({error, {witness_spec, [#{line := 1, column := 36, text := ~"`%{a: 1}` is Elixir's notation"}]}},
                 compile("with m:f(_) check [_ <- _, _] [_ ? %{a: 1}] ff.\n\nb: with m:g(_) check [_ <- _, _] [_ ? a] ff.\n")),
    ?assertMatch({error, {witness_spec, [#{line := 2, column := 10, hint := <<_, _/binary>>}]}},
                 compile("%% It's\nwith m:f({:a, 1}) check [_ <- _, _] [_ ? a] ff.\n")).

signatures_are_read_as_elixir_too_test_() ->
    [{Written, ?_assertEqual(Right, advice(["with ", Written, " check [_ <- _, _] [_ ? a] ff.\n"]))}
     || {Written, Right} <- [{":calc.init(_)", ~"calc:init"}, {"Shop.Pool.init(size: 2)", ~"[{size, 2}]"},
                             {"Shop.Pool.init([:a, _])", ~"[a, _]"}, {"Shop.Pool.init(%{a: 1}), m:f(_)", ~"#{a := 1}"},
                             {"m:f(A) when A != 1", ~"/="}]].

%% Each error ends its own property, and the others are still checked.
each_property_has_an_error_of_its_own_test() ->
    {error, {witness_spec, Found}} = compile(["with m:f(_) check [_ <- _, _] [_ ? :a] ff.\n",
                                              "with m:g(_) check [_ <- _, _] [_ ? {b] ff.\n",
                                              "with m:h(_) check [_ <- _, _] [_ ? [c: 1]] ff.\n"]),
    ?assertMatch([#{line := 1, hint := <<"a specification", _/binary>>}, #{line := 2, hint := <<"to close", _/binary>>},
                  #{line := 3, hint := <<"a specification", _/binary>>}], Found).

%% The comment that a map begins has the end of the property, too.
the_property_after_a_map_of_elixir_is_checked_test() ->
    ?assertMatch({error, {witness_spec, [#{line := 1, code := elixir}, #{line := 2, code := elixir},
                                         #{line := 3, code := not_shml}]}},
                 compile(["with m:f(_) check [_ <- _, _] [_ ? %{a: 1}] ff.\n", "with m:g(_) check [_ <- _, _] [_ ? {%{b: 1}, 2}] ff.\n",
                          "h: with m:h(_) monitor <_ ? a> ff.\n"])).

%% --- What is no notation of Elixir --------------------------------------------------------------------

errors_of_erlang_stay_as_they_are_test_() ->
    [{Source, ?_assertNotMatch({error, {witness_spec, [#{code := elixir} | _]}}, compile(Source))} || Source <- [
        "with m:f(_) check [_ : ok ! {a] ff.", "with m:f(_) check [self : Q ! M N] ff.", "with m:f(_) check [m: q ! x y] ff.",
        "a: with m:f(_) check max X.X Y.", "with m:f(_) check max X.Y.(ff", "with m:f(_) check [_ ? a b] ff. %{a: 1}",
        "with m:f(_) check [_ ? {a, % {x}\n b c}] ff.", "with m:f(_) check [P ?a b] ff.", "with m:f(_) check <> tt.",
        "with m:f(_) check [_ ? \"#{x}\" \"#{y}\" z] ff.", "with Shop.Pool.init(_) check [_ ? a b] ff.",
        "with m:f(A) when A =:= in; A > 1 check [_ ? a b] ff.", "with m:f(_) check [_ ? <<X:8/integer>> b] ff."]].

%% --- Strings ------------------------------------------------------------------------------------

strings_of_elixir_are_binaries_test_() ->
    Warned = [{warning, elixir_string, ~"`\"a\"` is a list of characters, not a string of Elixir",
               ~"a string of Elixir is a binary: write `~\"a\"`; a list of characters is `\"a\" ++ []`"}],
    [{Source, ?_assertEqual(Expected, findings(Source))} || {Source, Expected} <- [
        {"with Shop.Pool.init(_) check [_ <- _, _] [_ ? {b, \"a\"}] ff.", Warned},
        {"with 'Elixir.Shop':init(\"a\") check [_ <- _, _] [_ ? b] ff.", Warned},
        {"with Shop.Pool.init(_) check [_ <- _, _] [_ ? call(_, [\"a\" | _])] ff.", Warned},
        {"with Shop.Pool.init(_) over _ ? {\"a\", _} check [_ ? _] ff.", Warned},
        {"with Shop.Pool.init(_) check [_ <- _, _] [_ ? X when X =:= \"a\"] ff.", Warned},
        {"with m:f(_) check [_ <- _, _] [_ ? #{'__struct__' := 'Elixir.Shop', name := \"a\"}] ff.", Warned},
        {"with m:f(_) check [_ <- _, _] [_ -> _, Shop.Pool.init(\"a\")] ff.", Warned},
        %% Not of Elixir, or not known to be.
        {"with m:f(_) check [_ <- _, _] [_ ? {b, \"a\"}] ff.", []},
        {"with Shop.Pool.init(_), m:f(_) check [_ <- _, _] [_ ? \"a\"] ff.", []},
        {"with _:init(_) check [_ <- _, _] [_ ? \"a\"] ff.", []},
        {"with Shop.Pool.init(_) check [_ <- _, _] [_ -> _, m:f(\"a\")] ff.", []},
        %% Said to be a list, or a binary already.
        {"with Shop.Pool.init(_) check [_ <- _, _] [_ ? \"a\" ++ []] ff.", []},
        {"with Shop.Pool.init(_) check [_ <- _, _] [_ ? \"a\" ++ _] ff.", []},
        {"with Shop.Pool.init(_) check [_ <- _, _] [_ ? {~\"a\", <<\"a\">>, <<\"a\"/utf8, _/binary>>}] ff.", []},
        {"with Shop.Pool.init(_) check [_ <- _, _] [_ ? X when length(\"a\") < X] ff.", []}]].

a_string_that_is_compared_with_a_binary_has_a_hint_test() ->
    ?assertMatch([{warning, guard_fails, ~"this guard always fails",
                   <<"a string of Elixir is a binary: write `~\"a\"`", _/binary>>}],
                 findings("with m:f(_) check [_ <- _, _] ([_ ? X when is_binary(X), X =:= \"a\"] ff and [_ ? b] ff).")).

and_binds_tighter_than_comparisons_test_() ->
    [{Guard, ?_assertEqual(Count, length([Code || {warning, precedence = Code, _, _} <- findings(action(["X when ", Guard]))]))}
     || {Guard, Count} <- [{"is_integer(X) and X > 1", 1}, {"is_atom(X) or X =:= a", 1}, {"X > 1 and true", 1},
                           {"is_integer(X) and (X > 1)", 0}, {"is_integer(X) andalso X > 1", 0}, {"is_atom(X) and X =:= true", 0},
                           {"(X =:= 1) or (X =:= 2)", 0}]].

formulas_are_not_true_and_false_test() ->
    ?assertMatch({error, {witness_spec, [#{hint := <<"the formula that always holds is `tt`", _/binary>>}]}},
                 compile("with m:f(_) check [_ ? _] false.")).

%% --- Bounds -------------------------------------------------------------------------------------

%% The time that a hint takes is bounded, and so is its text, whatever the text is.
large_sources_have_errors_in_bounded_time_test_() ->
    {timeout, 60, [?_assertMatch({error, _}, compile(["with m:f(_) check [_ ? ", lists:duplicate(60_000, Part), "] ff."]))
                   || Part <- ["{a: ", "%{a: ", "[:a, ", "A.B, ", "\"a\" <> ", "<<1::", ":a, ", "%{\n"]]}.

%% --- What the tests share ------------------------------------------------------------------------------

action(Message) -> ["with Shop.Pool.init(Id, Rest) check [_ <- _, _] [{_ ? ", Message, "}] ff.\n"].

compile(Source) ->
    case witness_spec:compile_string(~"a.hml", unicode:characters_to_binary(Source)) of
        {ok, Map, Warnings} -> ok = witness_spec:unload(Map), {ok, Warnings};
        Error -> Error
    end.

findings(Source) ->
    Found = case compile(Source) of {ok, Warnings} -> Warnings; {error, {witness_spec, Errors}} -> Errors end,
    [{Severity, Code, Text, Hint} || #{severity := Severity, code := Code, text := Text, hint := Hint} <- Found].

hint(Source) ->
    [{_, _, _, Hint}] = findings(Source),
    Hint.

%% What the hint of the only finding says to write.
advice(Source) -> hd(quoted(hint(Source))).

quoted(Text) ->
    {match, Found} = re:run(Text, "`([^`]+)`", [global, unicode, {capture, all_but_first, binary}]),
    lists:append(Found).

%% Whether a message violates the property.
matches(Source, Message) ->
    {ok, #{module := Module} = Map, []} = witness_spec:compile_string(~"a.hml", unicode:characters_to_binary(Source)),
    Signature = {'Elixir.Shop.Pool', init, [7, ~"x"]},
    try
        [1] = Module:match(Signature),
        {ok, Born} = Module:init(Signature, self(), 1),
        case Module:handle_event({init, self(), undefined, Signature, 0}, Born) of
            {ok, State} ->
                case Module:handle_event({recv, self(), undefined, Message, 1}, State) of
                    {verdict, no, _} -> true;
                    _ -> false
                end
        end
    after
        ok = witness_spec:unload(Map)
    end.

%% The rows of a table of the guide, without their marks.
table(Heading) ->
    Root = witness_checkout:root(filename:dirname(code:which(?MODULE))),
    {ok, Guide} = file:read_file(filename:join([Root, "docs", "specifications.md"])),
    [_, From] = string:split(Guide, ["\n| ", Heading, " | In a specification |\n|---|---|\n"]),
    [Table | _] = string:split(From, "\n\n"),
    [[unescaped(Cell) || Cell <- re:split(Row, "(?<!\\\\)\\|", [trim]), Cell =/= <<>>] || Row <- string:split(Table, "\n", all)].

unescaped(Cell) ->
    {match, [Code]} = re:run(Cell, "^ `(.*)` $", [unicode, {capture, all_but_first, binary}]),
    binary:replace(Code, ~"\\|", ~"|", [global]).
