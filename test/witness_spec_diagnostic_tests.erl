%% Every error and warning with its exact place.
-module(witness_spec_diagnostic_tests).
-include_lib("eunit/include/eunit.hrl").

each_fault_is_reported_where_it_stands_test_() ->
    [{Source, ?_assertEqual(Expected, faults(Source))} || {Source, Expected} <- [
        %% What is missing or in excess.
        {"foo", [{1, 1, syntax}]},
        {"with", [{1, 5, syntax}]},
        {"with m", [{1, 6, syntax}]},
        {"with m:f", [{1, 6, syntax}]},
        {"with m:f(", [{1, 9, syntax}]},
        {"with m:f(_)", [{1, 12, syntax}]},
        {"with m:f(_).", [{1, 12, syntax}]},
        {"with 3:f(_) none.", [{1, 6, syntax}]},
        {"with m:f(_) X none.", [{1, 13, syntax}]},
        {"with m:f(_), none.", [{1, 14, syntax}]},
        {"with m:f(_) group none.", [{1, 13, syntax}]},
        {"with m:f(_) monitor", [{1, 20, syntax}]},
        {"with m:f(_) monitor ff", [{1, 23, syntax}]},
        {"with m:f(_) monitor ff ff.", [{1, 24, syntax}]},
        {"with m:f(_) monitor (ff.", [{1, 24, syntax}]},
        {"with m:f(_) monitor and ff.", [{1, 21, syntax}]},
        {"with m:f(_) monitor and().", [{1, 25, syntax}]},
        {"with m:f(_) monitor max x. ff.", [{1, 25, syntax}]},
        {"with m:f(_) monitor max X ff.", [{1, 27, syntax}]},
        {"with m:f(_) monitor max(X. [_ ? a] X.", [{1, 37, syntax}]},
        {"with m:f(_) monitor [_ ? a", [{1, 21, syntax}]},
        {"with m:f(_) monitor [_ ? a ff.", [{1, 30, syntax}]},
        {"with m:f(_) monitor [_ ? {a, b] ff.", [{1, 31, syntax}]},
        {"with m:f(_) check <_ ? a ff.", [{1, 28, syntax}]},
        {"with m:f(_) check <_ ? A when A > 3> tt.", [{1, 35, syntax}]},
        {"with m:f(_) check (<_ ? A when A > B> tt).", [{1, 37, syntax}]},
        %% Actions.
        {"with m:f(_) monitor [] ff.", [{1, 22, syntax}]},
        {"with m:f(_) monitor [{}] ff.", [{1, 23, syntax}]},
        {"with m:f(_) monitor [P ! a] ff.", [{1, 22, syntax}]},
        {"with m:f(_) monitor [P ? ] ff.", [{1, 26, syntax}]},
        {"with m:f(_) monitor [ ? a] ff.", [{1, 23, syntax}]},
        {"with m:f(_) monitor [P ? a, b] ff.", [{1, 29, syntax}]},
        {"with m:f(_) monitor [P ? a b] ff.", [{1, 28, syntax}]},
        {"with m:f(_) monitor [P ? a when ] ff.", [{1, 33, syntax}]},
        {"with m:f(_) monitor [P ? a when b when c] ff.", [{1, 35, syntax}]},
        {"with m:f(_) monitor [P : b] ff.", [{1, 27, syntax}]},
        {"with m:f(_) monitor [P : b ! c ! d] ff.", [{1, 32, syntax}]},
        {"with m:f(_) monitor [P -> b] ff.", [{1, 28, syntax}]},
        {"with m:f(_) monitor [P -> C, m:f(a)b] ff.", [{1, 36, syntax}]},
        %% Patterns and guards.
        {"with m:f(_) monitor [_ ? foo(1)] ff.", [{1, 26, not_a_pattern}]},
        {"with m:f(_) monitor [_ ? {x, fun() -> halt() end}] ff.", [{1, 30, not_a_pattern}]},
        {"with m:f(halt()) none.", [{1, 10, not_a_pattern}]},
        {"with m:f(_) monitor [_ ? A + 1] ff.", [{1, 26, not_a_pattern}]},
        {"with m:f(_) monitor [_ ? #{a => 1}] ff.", [{1, 30, not_a_pattern}]},
        {"with m:f(_) monitor [_ ? a when foo(1)] ff.", [{1, 33, not_a_guard}]},
        {"with m:f(_) monitor [_ ? a when halt()] ff.", [{1, 33, not_a_guard}]},
        {"with m:f(_) monitor [_ ? a when\n  is_atom(a, b, c)] ff.", [{2, 3, not_a_guard}]},
        {"with m:f(_) monitor [_ ? a when file:delete(x)] ff.", [{1, 33, not_a_guard}]},
        {"with m:f(_) monitor [_ ? A when A ++ A] ff.", [{1, 35, not_a_guard}]},
        {"with m:f(_) monitor [_ ? A when begin A end] ff.", [{1, 33, not_a_guard}]},
        {"with m:f(_) monitor [_ ? <<A:N>>] ff.", [{1, 30, erlang}]},
        {"with m:f(_) monitor [_ ? {N, <<A:N>>}] ff.", [{1, 34, erlang}]},
        {"with m:f(_) monitor [_ ? #{K := 1}] ff.", [{1, 28, erlang}]},
        {"with m:f(_) monitor [_ ? A when _ > A] ff.", [{1, 33, erlang}]},
        {"with m:f(_) monitor [_ ? <<1/foo>>] ff.", [{1, 28, erlang}]},
        %% Variables.
        {"with m:f(_) monitor [_ ? a when A > 1] ff.", [{1, 33, unbound_variable}]},
        {"with m:f(A), m:g(_) monitor [_ ? B when A > B] ff.", [{1, 41, unbound_variable}]},
        {"with m:f(_) when A > 1 monitor [_ ? b] ff.", [{1, 18, unbound_variable}]},
        {"with m:f(_) monitor and([_ ? A] ff, [_ ? B when A > B] ff).", [{1, 49, unbound_variable}]},
        {"with m:f(_) monitor [_ ? a] X.", [{1, 29, unbound_recursion_variable}]},
        {"with m:f(_) monitor max X.([_ ? a] X) and [_ ? b] X.", [{1, 51, unbound_recursion_variable}]},
        {"with m:f(_) monitor max X. X.", [{1, 28, unguarded_recursion}]},
        {"with m:f(_) monitor max X. (X and [_ ? a] ff).", [{1, 29, unguarded_recursion}]},
        {"with m:f(_) monitor max X. [_ ? a] max Y. and(X, Y).", [{1, 50, unguarded_recursion}]},
        {"with m:f(_) monitor [_ ? a] max X. max Y. X.", [{1, 43, unguarded_recursion}]},
        %% Dialects.
        {"with m:f(_) monitor <_ ? a> ff.", [{1, 21, not_shml}]},
        {"with m:f(_) monitor [_ ? a] ff or [_ ? b] ff.", [{1, 21, not_shml}]},
        {"with m:f(_) monitor [_ ? a] or([_ ? a] ff, [_ ? b] ff).", [{1, 29, not_shml}]},
        {"with m:f(_) monitor [_ ? a] min X. [_ ? a] X.", [{1, 29, not_shml}]},
        %% Names.
        {"a: with m:f(_) none.\nb: with m:g() none.\n a: with m:h() none.", [{3, 2, duplicate_name}]},
        %% What is to come.
        {"with m:f(_) over _ ? a monitor ff.", [{1, 13, not_supported}]},
        {"with m:f(_) per X over _ ? a monitor ff.", [{1, 13, not_supported}]},
        {"with m:f(A) when A > 1 per X over _ ? a monitor ff.", [{1, 24, not_supported}]},
        {"per X over _ ? {X} monitor ff.", [{1, 1, not_supported}]},
        {"-record(x, {a}).\nwith m:f(_) none.", [{1, 1, not_supported}]},
        {"-include(\"x.hrl\").\nwith m:f(_) none.", [{1, 1, not_supported}]},
        {"with My.App.init(_) none.", [{1, 6, not_supported}]},
        {"with m:f(_) monitor [_ <- _, My.App.init(_)] ff.", [{1, 30, not_supported}]},
        {"with m:f(_) monitor [_ ? call(F, X)] ff.", [{1, 26, not_supported}]},
        {"with m:f(_) monitor [_ : _ ! reply(F, X)] ff.", [{1, 30, not_supported}]},
        {"with m:f(_) monitor [_ ? #r{a = 1}] ff.", [{1, 26, not_supported}]},
        {"with m:f(_) monitor [_ ? A when A#r.b > 1] ff.", [{1, 34, not_supported}]},
        {"with m:f(_) monitor [_ ? A when is_record(A, r)] ff.", [{1, 33, not_supported}]},
        %% Characters.
        {"with m:f(_) monitor [_ ? 'a] ff.\n\nwith m:f(_) none.", [{1, 26, syntax}]},
        {"with m:f(_) monitor [_ ? \"a] ff.\n\nwith m:f(_) none.", [{1, 26, syntax}]},
        {"with m:f(_) monitor\r\n[_ ? \x{2192}] ff.", [{2, 6, syntax}]},
        {"with m:f(_) monitor [_ ? $", [{1, 26, syntax}]},
        %% Nothing at all.
        {"", [{undefined, undefined, empty}]},
        {"% only\n% comments", [{undefined, undefined, empty}]}]].

each_suspicion_is_a_warning_where_it_stands_test_() ->
    [{Source, ?_assertEqual(Expected, warnings(Source))} || {Source, Expected} <- [
        {"with m:f(_) monitor max X.[_ ? a] X.", [{1, 21, never_violated}]},
        {"with m:f(_) check [_ ? a] (ff or tt).", [{1, 19, never_violated}]},
        {"with m:f(_) check tt.", [{1, 19, never_violated}]},
        {"with m:f(_) check\n  min X.<_ ? a> X.", [{2, 3, never_satisfied}]},
        {"with m:f(_) check ff.", [{1, 19, never_satisfied}]},
        {"with m:f(_) check <_ ? a> (ff and [_ ? b] ff).", [{1, 19, never_satisfied}]},
        {"with m:f(_) monitor and([_ ? {a,B}] ff, [_ ? {a,C}] ff).", [{1, 42, overlapping_branches}]},
        {"with m:f(_) monitor and([_ ? _] ff,\n [_ ? {a, _}] ff, [_ : _ ! _] ff).", [{2, 3, overlapping_branches}]},
        {"with m:f(_) monitor and([_ ? B when B > 1] ff, [_ ? B when B > 1] ff).", [{1, 49, overlapping_branches}]},
        {"with m:f(_) monitor and([_ ? B when B > 1] ff, [_ ? B when B > 2] ff).", []},
        {"with m:f(_) monitor and([_ ? {B, B}] ff, [_ ? {1, 2}] ff).", []},
        {"with m:f(B) monitor and([_ ? B] ff, [_ ? 2] ff).", []},
        {"with m:f(A), m:g(_) monitor [_ ? A] ff.", [{1, 34, partly_bound}]},
        {"with m:f(_) check <_ ? a> tt or [_ ? b] ff.", []},
        {"with m:f(_) check [_ ? a] <_ ? b> tt.", []},
        {"with m:f(_) check max X.([_ ? a] X and [_ ? b] ff).", []}]].

every_property_is_read_though_others_are_wrong_test() ->
    Source = "with m:f(_) monitor max X. [_ ? {a, b] X.\n"
             "x: with n:g() check\n"
             "  [P ! a] ff.\n"
             "with m:f(_) monitor [_ ? a] Y.\n"
             "y: with m:f() monitor max X. [_ ? a] (ff.\n"
             "with m:f(_) monitor and([_ ? a when A] ff, <_ ? a> X).\n",
    ?assertEqual([{1, 38, syntax}, {3, 4, syntax}, {4, 29, unbound_recursion_variable}, {5, 41, syntax},
                  {6, 37, unbound_variable}, {6, 44, not_shml}, {6, 52, unbound_recursion_variable}], faults(Source)).

a_comma_may_stand_between_properties_test() ->
    ?assertEqual([], faults("with m:f(_) monitor [_ ? a] ff,\nx: with m:f(_) none, with m:g() check ff.")).

invalid_utf8_is_an_error_with_its_place_test() ->
    ?assertMatch({error, [#{code := not_utf8, line := 2, column := 7}]},
                 compile(<<"with m:f(_) monitor\n [_ ? ", 255, "] ff.">>)),
    ?assertMatch({error, [#{code := not_utf8, line := 1, column := 3}]}, compile(<<"%é"/utf8, 16#C3>>)).

a_file_that_cannot_be_read_is_an_error_test() ->
    {error, [#{code := unreadable, line := undefined, text := Text} = Missing]} = witness_spec:compile_file("no/such.hml"),
    ?assertEqual(<<"cannot read the file: no such file or directory">>, Text),
    ?assertEqual(<<"no/such.hml: error: cannot read the file: no such file or directory">>, format(Missing)),
    {error, [#{code := unreadable}]} = witness_spec:compile_file("."),
    {error, [#{code := unreadable}]} = witness_spec:to_erlang("no/such.hml").

a_diagnostic_shows_the_line_with_a_caret_test() ->
    {error, [Diagnostic]} = compile(<<"% é\nwith m:f(_) check\n\t<_ ? Ü when Ü > 3> tt."/utf8>>),
    ?assertEqual(<<"test.hml:3:18: error: expected a formula, found `3`\n"
                   "  \t<_ ? Ü when Ü > 3> tt.\n"
                   "  \t                ^\n"
                   "  a guard with `>` inside `<...>` needs braces around the action: `<{P ? N when N > 1}>`"/utf8>>,
                 format(Diagnostic)).

a_diagnostic_without_a_place_is_one_line_and_a_hint_test() ->
    {error, [Diagnostic]} = compile(<<>>),
    ?assertEqual(<<"test.hml: error: there is no property in this file\n"
                   "  a property is, for example, `with m:f(_) monitor [_ ? stop] ff.`">>, format(Diagnostic)).

control_characters_of_a_source_never_reach_the_terminal_test() ->
    {error, [Diagnostic]} = compile(<<"with m:f(_) monitor [_ ? 'a\e[31m", 16#202E/utf8, "'] gg."/utf8>>),
    ?assertEqual([], [C || C <- unicode:characters_to_list(format(Diagnostic)), C =:= $\e orelse C =:= 16#202E]).

long_lines_are_cut_around_the_column_test() ->
    Source = ["with m:f(_) monitor and(", [["[_ ? ", integer_to_list(N), "] ff, "] || N <- lists:seq(1, 1000)], "gg)."],
    {error, [Diagnostic]} = compile(iolist_to_binary(Source)),
    [_, Line, Caret] = string:split(format(Diagnostic), "\n", all),
    ?assert(string:length(Line) < 200),
    ?assertEqual("gg", string:slice(unicode:characters_to_list(Line), string:length(Caret) - 1, 2)).

no_more_than_fifty_errors_are_reported_test() ->
    {error, Diagnostics} = compile(iolist_to_binary(lists:duplicate(200, "with m:f(_) monitor X.\n"))),
    ?assertEqual(50, length(Diagnostics)).

faults(Source) ->
    case compile(unicode:characters_to_binary(Source)) of
        {ok, _, _} -> [];
        {error, Diagnostics} -> places(error, Diagnostics)
    end.

warnings(Source) ->
    {ok, _, Diagnostics} = compile(unicode:characters_to_binary(Source)),
    places(warning, Diagnostics).

places(Wanted, Diagnostics) ->
    [{Line, Column, Code} || #{severity := Severity, line := Line, column := Column, code := Code} <- Diagnostics,
                             Severity =:= Wanted].

format(Diagnostic) -> iolist_to_binary(witness_spec:format_diagnostic(Diagnostic)).

compile(Source) ->
    Result = witness_spec:compile_string(<<"test.hml">>, Source),
    case Result of {ok, Map, _} -> witness_spec:unload(Map); _ -> ok end,
    Result.
