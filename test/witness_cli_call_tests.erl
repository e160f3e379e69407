-module(witness_cli_call_tests).

-include_lib("eunit/include/eunit.hrl").

-export([two/1, two/2]).

-define(CALL(Text, Expected), ?_assertEqual({ok, Expected}, witness_cli_call:parse(Text))).
-define(MONITOR(Text, Expected), ?_assertEqual({ok, Expected}, witness_cli_call:parse_monitor(Text))).

calls_are_read_with_terms_as_arguments_test_() ->
    [
        ?CALL("calc:start()", {calc, start, []}),
        ?CALL("calc:start", {calc, start, []}),
        ?CALL("calc:start(10, [{name, \"a b\"}], #{k => <<1,2>>})", {calc, start, [10, [{name, "a b"}], #{k => <<1, 2>>}]}),
        ?CALL("calc:start(-1, +2.5, $a, fun m:f/2)", {calc, start, [-1, 2.5, $a, fun m:f/2]}),
        ?CALL("'my mod':'a-b'()", {'my mod', 'a-b', []}),
        ?CALL("m:f(\"gr\x{FC}n \x{1F600}\", gr\x{F6}\x{DF}e)", {m, f, ["gr\x{FC}n \x{1F600}", 'gr\x{F6}\x{DF}e']})
    ].

what_is_woven_is_a_module_or_an_application_test() ->
    ?assertEqual({ok, calc_server}, witness_cli_call:parse_weave("calc_server")),
    ?assertEqual({ok, {application, calc}}, witness_cli_call:parse_weave("app:calc")),
    ?assertEqual({ok, 'Elixir.MyApp.Server'}, witness_cli_call:parse_weave("MyApp.Server")),
    ?assertEqual({ok, 'Elixir.MyApp.Server'}, witness_cli_call:parse_weave("Elixir.MyApp.Server")),
    [?assertMatch({error, _}, witness_cli_call:parse_weave(Text)) || Text <- ["", lists:duplicate(300, $a)]].

elixir_functions_are_read_in_their_own_notation_test_() ->
    [
        ?CALL("MyApp.Server.run(1)", {'Elixir.MyApp.Server', run, [1]}),
        ?CALL("MyApp.run", {'Elixir.MyApp', run, []}),
        ?CALL("MyApp.run!(1)", {'Elixir.MyApp', 'run!', [1]}),
        ?CALL("MyApp.ready?()", {'Elixir.MyApp', 'ready?', []}),
        ?CALL("'Elixir.MyApp':run()", {'Elixir.MyApp', run, []}),
        ?CALL("MyApp.Server:run(1)", {'Elixir.MyApp.Server', run, [1]})
    ].

arguments_of_elixir_test_() ->
    {setup, fun witness_event_elixir_tests:load/0, fun witness_event_elixir_tests:unload/1, [
        ?CALL("DrvX.args(\"a\", :a, nil, Foo.Bar)", {'Elixir.DrvX', args, [~"a", a, nil, 'Elixir.Foo.Bar']}),
        ?CALL("M.f(%{a: 1}, %{\"k\" => -2.5}, {:ok, 1}, {}, {1, 2, 3})",
              {'Elixir.M', f, [#{a => 1}, #{~"k" => -2.5}, {ok, 1}, {}, {1, 2, 3}]}),
        ?CALL("M.f([a: 1], [1 | 2], a: 1, b: [])", {'Elixir.M', f, [[{a, 1}], [1 | 2], [{a, 1}, {b, []}]]}),
        ?CALL("M.f(~c\"x\\n\", ~s(y), <<1, \"b\">>, ?a, :\"two words\", Elixir.A)",
              {'Elixir.M', f, ["x\n", ~"y", <<1, $b>>, $a, 'two words', 'Elixir.A']}),
        ?CALL("A.B.f!(&M.f/0, &:m.f/2)", {'Elixir.A.B', 'f!', [fun 'Elixir.M':f/0, fun m:f/2]}),
        ?CALL("M.f(\"gr\x{FC}n \x{1F600}\")", {'Elixir.M', f, [~"gr\x{FC}n \x{1F600}"]}),
        ?CALL("M.f({left, #{a => 1}}, fun m:f/2)", {'Elixir.M', f, [{left, #{a => 1}}, fun m:f/2]}),
        ?CALL("M:f(\"a\")", {'Elixir.M', f, ["a"]}),
        points("M.f(1 2)", 7),
        points("M.f(:a, x)", 9),
        points("M.f([1)", 7),
        points("M.f(1", 6),
        points("M.f(:a, System.halt(1))", 9),
        points("M.f(:a, 1 + 2)", 11),
        points("M.f(:a, \"#{x}\")", 9),
        points("M.f(:a, <<300>>)", 9),
        points("M.f(%S{a: 1})", 5),
        in_turn("A.f([1]); B.g(%{a: 1}, &M.f/0);", [{'Elixir.A', f, [[1]]}, {'Elixir.B', g, [#{a => 1}, fun 'Elixir.M':f/0]}]),
        in_turn("A.a(); B.b", [{'Elixir.A', a, []}, {'Elixir.B', b, []}]),
        points("M.f(1); x; M.g(2)", 9),
        points("M.f(:a).g", 1)
    ]}.

%% What the evaluator of Erlang calls, with which arguments: the test stands in the place of the functions, which do not exist.
in_turn(Text, Calls) ->
    {Text, fun() ->
        {ok, {erl_eval, exprs, [Forms, Bindings]} = Call} = witness_cli_call:parse(Text),
        ?assertMatch({error, _}, witness_cli_call:check(Call)),
        Evaluated = fun({Module, Function}, Args) -> self() ! {called, {Module, Function, Args}}, ok end,
        {value, ok, _} = erl_eval:exprs(Forms, Bindings, none, {value, Evaluated}),
        ?assertEqual(Calls, [receive {called, Made} -> Made after 0 -> none end || _ <- Calls])
    end}.

what_is_no_call_is_an_error_that_points_at_the_place_test_() ->
    [
        points("calc:start(1 2)", 14),
        points("calc:start(1", 13),
        points("calc:start(1) x", 16),
        points("calc:start(X)", 12),
        points("calc:start(1, f(2))", 15),
        points("calc:start(1, a + 2)", 15),
        points("calc:start(1, {a, X})", 15),
        points("calc:start([1 | 2], 1 | 2)", 25),
        points("calc:start(\"x)", 13),
        points("calc", 5),
        points("calc:", 6),
        points("calc:start.", 11),
        points("12:start()", 1),
        points("MyApp(1)", 6),
        points("_:start()", 1),
        points("", 1)
    ].

points(Text, Column) ->
    {Text, fun() ->
        {error, Error} = witness_cli_call:parse(Text),
        [_, Shown, Caret] = string:split(unicode:characters_to_list(Error), "\n", all),
        ?assertEqual("  " ++ Text, Shown),
        ?assertEqual(2 + Column, length(Caret))
    end}.

no_code_of_an_argument_runs_test() ->
    ?assertMatch({error, _}, witness_cli_call:parse("m:f(erlang:halt(1))")),
    ?assertMatch({error, _}, witness_cli_call:parse("m:f((fun() -> exit(x) end)())")).

what_is_too_long_is_refused_before_it_is_read_test() ->
    ?assertMatch({error, _}, witness_cli_call:parse("m:f(" ++ lists:duplicate(100_000, $[))).

monitors_are_read_with_their_signatures_test_() ->
    [
        ?MONITOR("calc:loop/1=no_crash", {{calc, loop, 1}, {no_crash, []}}),
        ?MONITOR("calc:loop/_=no_crash", {{calc, loop, '_'}, {no_crash, []}}),
        ?MONITOR("calc:_/_=no_crash", {{calc, '_', '_'}, {no_crash, []}}),
        ?MONITOR("_:_/_=no_crash", {{'_', '_', '_'}, {no_crash, []}}),
        ?MONITOR("calc:loop/1=no_crash(#{limit => 30})", {{calc, loop, 1}, {no_crash, #{limit => 30}}}),
        ?MONITOR("MyApp.Server.init/1=MyApp.Monitor({a, 1})", {{'Elixir.MyApp.Server', init, 1}, {'Elixir.MyApp.Monitor', {a, 1}}})
    ].

wrong_monitors_are_refused_test_() ->
    [?_assertMatch({error, _}, witness_cli_call:parse_monitor(Text)) ||
        Text <- ["", "calc:loop", "calc:loop/1", "calc:loop/1=", "calc:loop/x=m", "calc:loop/1=m(1,2)", "calc:loop/300=m",
                 "calc:loop/1=m(X)", "calc:loop()=m", "calc=m", "calc:loop/1=M.", "calc:loop/1=m extra"]].

what_exists_is_found_test() ->
    ?assertEqual(ok, witness_cli_call:check({?MODULE, two, [1]})),
    ?assertEqual(ok, witness_cli_call:check({lists, reverse, [[]]})).

a_missing_module_is_named_test() ->
    {error, Error} = witness_cli_call:check({no_such_module_here, f, []}),
    ?assertMatch({match, _}, re:run(unicode:characters_to_list(Error), "no_such_module_here.*--pa")).

the_arities_that_exist_are_listed_test() ->
    {error, Error} = witness_cli_call:check({?MODULE, two, []}),
    ?assertEqual("witness_cli_call_tests does not export two/0: it exports two/1 and two/2", unicode:characters_to_list(Error)).

similar_names_are_suggested_test() ->
    {error, Error} = witness_cli_call:check({lists, revers, [1]}),
    ?assertMatch({match, _}, re:run(unicode:characters_to_list(Error), "did you mean reverse/[12]")).

two(_) -> ok.
two(_, _) -> ok.
