-module(witness_test_search_SUITE).
-moduledoc """
`witness_test:search/3`: a test fails if a schedule does, says how to replay it, and refuses what the VM of the search cannot have.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [a_violation_fails_the_test, a_test_that_monitors_nothing_fails,
          what_else_goes_wrong_fails_the_test, a_function_that_is_not_exported_is_searched,
          nothing_goes_wrong, what_is_not_controlled_is_said,
          the_recording_is_where_it_is_asked_for, what_the_vm_cannot_have_is_refused, eunit_shows_the_failure].

init_per_suite(Config) ->
    Root = witness_checkout:root(filename:dirname(code:which(?MODULE))),
    Out = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = filelib:ensure_path(Out),
    [{ok, _} = compile:file(filename:join(Root, File), [return_errors, debug_info, {outdir, Out}])
     || File <- ["test/searched/witness_searched_test.erl", "examples/last_seat/last_seat.erl",
                 "examples/last_seat/last_seat_hall.erl", "examples/last_seat/last_seat_cashier.erl"]],
    true = code:add_patha(Out),
    [{programs, Out}, {root, Root} | Config].

end_per_suite(Config) ->
    true = code:del_path(proplists:get_value(programs, Config)),
    ok.

%% Recordings are written into the current folder.
init_per_testcase(Case, Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), Case),
    ok = filelib:ensure_path(Dir),
    ok = file:set_cwd(Dir),
    [{dir, Dir} | Config].

end_per_testcase(_, _) -> ok.

spec(Config) -> filename:join(proplists:get_value(root, Config), "examples/last_seat/sold_once.hml").

search(Specs, Function, Options, Config) ->
    witness_test:search(Specs, Function, maps:merge(#{pa => [proplists:get_value(programs, Config)]}, Options)).

failed(Specs, Function, Options, Config) ->
    try search(Specs, Function, Options, Config) of
        ok -> passed
    catch
        error:{Problem, Lines}:Stack ->
            {Problem, unicode:characters_to_binary(lists:join("\n", [string:trim(Line, trailing) || Line <- Lines])), hd(Stack)}
    end.

recordings(Config) -> filelib:wildcard("*", proplists:get_value(dir, Config)).

a_violation_fails_the_test(Config) ->
    {violation, Text, _} = failed(spec(Config), {last_seat, main, [1]}, #{schedules => 50}, Config),
    [Recording] = recordings(Config),
    ?assertMatch({match, _}, re:run(Text, "^FAILED after [0-9]+ schedules \\(")),
    witness_command:contains(Text, [~"VIOLATION of sold_once", ~"this must not happen: _ ? cast({sold, Seat, _})",
                                    ~"\norder     first ", ~"\n  witness replay --spec ", ~"\n  witness replay --step --spec ",
                                    unicode:characters_to_binary(["recorded  in ", proplists:get_value(dir, Config), "/", Recording, "\n"])]),
    ?assertMatch("recording-" ++ _, Recording),
    ?assertMatch({ok, #{outcome := identical}}, witness_replay:replay(#{dir => Recording})).

a_test_that_monitors_nothing_fails(Config) ->
    Search = fun(Options) -> failed(spec(Config), {witness_searched_test, fine, []}, Options#{schedules => 2}, Config) end,
    {nothing_monitored, Text, _} = Search(#{}),
    witness_command:contains(Text, [~"NO RESULT: nothing was monitored.", ~"sold_once.hml:2 (sold_once) monitored nothing: ",
                                    ~"witness_searched_test:fine/0 1 time", ~"option unmonitored => warn"]),
    ct:capture_start(),
    passed = Search(#{unmonitored => warn}),
    passed = Search(#{unmonitored => ignore}),
    ct:capture_stop(),
    ?assertMatch([[_]], [re:split(Warnings, "\n", [trim]) || Warnings <- [lists:append(ct:capture_get([]))]]),
    {not_started, _, _} = Search(#{unmonitored => never}).

a_test_whose_specification_never_matches_may_fail(Config) ->
    Spec = filename:join(proplists:get_value(priv_dir, Config), "never.hml"),
    ok = file:write_file(Spec, "never: with last_seat_hall:init(_) over _ ? _ monitor [_ ? never] [_ ? {sold, _}] ff.\n"),
    Search = fun(Options) -> failed(Spec, {last_seat, main, [1]}, Options#{schedules => 5, crashes => none}, Config) end,
    {vacuous, Text, _} = Search(#{vacuous => fail}),
    witness_command:contains(Text, [~"NO RESULT: ", ~"never.hml:1 (never) says nothing here"]),
    ct:capture_start(),
    passed = Search(#{}),
    passed = Search(#{vacuous => ignore}),
    ct:capture_stop(),
    ?assertMatch([[_]], [re:split(Warnings, "\n", [trim]) || Warnings <- [lists:append(ct:capture_get([]))]]),
    {not_started, _, _} = Search(#{vacuous => never}).

what_else_goes_wrong_fails_the_test(Config) ->
    [begin
         {failed_schedule, Text, Place} = failed([], Function, Options, Config),
         ?assertMatch({witness_searched_test, _, _, [{file, _} | _]}, Place),
         witness_command:contains(Text, [~"\n  witness replay /" | Words])
     end || {Function, Options, Words} <- [
         {{witness_searched_test, first, [ann]}, #{}, [~"CRASH of <0.1.1>, witness_searched_test:first(ann)\n  the function has failed",
                                                       ~"assertEqual", ~"{expected,ann},{value,bob}", ~"in witness_searched_test:first/1 (witness_searched_test.erl:"]},
         {fun witness_searched_test:first/0, #{expect => ann}, [~"UNEXPECTED result of ", ~"\n  returned: bob\n  expected: ann\n"]},
         {{witness_searched_test, waits, []}, #{}, [~"DEADLOCK: the function has not returned", ~"witness_searched_test:waits/0"]}]],
    ?assertMatch({no_result, <<"NO RESULT after 1 schedule", _/binary>>, _}, failed([], {witness_searched_test, opens, []}, #{}, Config)).

%% Its module in the search exports it.
a_function_that_is_not_exported_is_searched(Config) ->
    {failed_schedule, Text, _} = failed([], witness_searched_test:hidden(), #{}, Config),
    witness_command:contains(Text, [~"CRASH of <0.1.1>, witness_searched_test:bob_is_first()", ~"{expected,ann},{value,bob}",
                                    ~"in witness_searched_test:first/1 (witness_searched_test.erl:"]),
    [Recording] = recordings(Config),
    ?assertMatch({ok, #{outcome := identical}},
                 witness_replay:replay(#{dir => filename:join(proplists:get_value(dir, Config), Recording)})),
    ?assertNot(erlang:function_exported(witness_searched_test, bob_is_first, 0)).

nothing_goes_wrong(Config) ->
    ?assertEqual(ok, search([], {witness_searched_test, fine, []}, #{schedules => 5}, Config)),
    ?assertEqual(ok, search([], {witness_searched_test, first, [ann]}, #{schedules => 5, crashes => none}, Config)),
    ?assertEqual([], recordings(Config)).

what_is_not_controlled_is_said(Config) ->
    ct:capture_start(),
    ok = search([], {witness_searched_test, measures, []}, #{schedules => 2}, Config),
    ct:capture_stop(),
    ?assertEqual("witness: warning: search: erlang:memory/1: its result does not follow from the schedule\n", lists:append(ct:capture_get([]))).

the_recording_is_where_it_is_asked_for(Config) ->
    Given = filename:join(proplists:get_value(dir, Config), "mine.rec"),
    {failed_schedule, _, _} = failed([], {witness_searched_test, first, [ann]}, #{dir => Given}, Config),
    ?assertEqual(["mine.rec"], recordings(Config)),
    ?assertMatch({not_started, <<_/binary>>, _}, failed([], {witness_searched_test, first, [ann]}, #{dir => Given}, Config)).

what_the_vm_cannot_have_is_refused(Config) ->
    {ok, made_of_nothing, Beam} = compile:forms([{attribute, 1, module, made_of_nothing}, {attribute, 1, export, [{f, 0}]},
                                                 {function, 2, f, 0, [{clause, 2, [], [], [{atom, 2, ok}]}]}]),
    {module, _} = code:load_binary(made_of_nothing, "made_of_nothing.beam", Beam),
    [begin
         {not_started, Text, _} = failed(Specs, Function, Options, Config),
         witness_command:contains(Text, [Word])
     end || {Specs, Function, Options, Word} <- [
         {[], {witness_searched_test, first, [#{a => [{self()}]}]}, #{}, ~"of the arguments does not exist: let the function start what it needs"},
         {[], {witness_searched_test, first, [[a | make_ref()]]}, #{}, ~"#Ref<"},
         {[], {witness_searched_test, first, [fun() -> ok end]}, #{}, ~"of the arguments does not exist"},
         {[], {witness_searched_test, fine, []}, #{schedule => 2}, ~"option schedule: expected nothing: a test has its own"},
         {[], fun() -> ok end, #{}, ~"this fun does not exist: name a function of a module"},
         {[], {witness_searched_test, second, []}, #{}, ~"witness_searched_test:second/0 is not exported"},
         {[], {nobody_has_this, f, []}, #{}, ~"nobody_has_this:f/0 is not exported"},
         {[], first, #{}, ~"{Module, Function, Arguments}, not first"},
         {"nowhere.hml", {witness_searched_test, fine, []}, #{}, ~"there is no file nowhere.hml"},
         {[{{a, b, 1}, {c, d}}], {witness_searched_test, fine, []}, #{}, ~"a search takes files of specifications, and no monitors"},
         {[], {witness_searched_test, fine, []}, #{run => {a, b, []}}, ~"option run: expected nothing"},
         {[], {witness_searched_test, fine, []}, #{schedules => 0}, ~"option schedules: expected a number above 0"},
         {[], {witness_searched_test, fine, []}, #{base => 1}, ~"option base: "},
         {[], {witness_searched_test, fine, []}, #{timeout => 1}, ~"option timeout"}]],
    %% Without folders, that of the module is searched for.
    try witness_test:search([], {made_of_nothing, f, []}) of
        ok -> error(passed)
    catch
        error:{not_started, Lines} -> witness_command:contains(list_to_binary(Lines), [~"the code path has none of made_of_nothing"])
    end,
    ?assertEqual([], recordings(Config)).

%% In a VM with a code path like that of a project; the folders are found there.
eunit_shows_the_failure(Config) ->
    Tests = filename:join(proplists:get_value(dir, Config), "seat_tests"),
    ok = file:write_file(Tests ++ ".erl", ~"""
                                        -module(seat_tests).
                                        -export([evening/0]).
                                        -include_lib("eunit/include/eunit.hrl").
                                        evening() -> last_seat:main(1).
                                        seat_test_() ->
                                            {timeout, 300, fun() ->
                                                ok = witness_test:search(os:getenv("SPEC"), {?MODULE, evening, []}, #{dir => os:getenv("OUT")})
                                            end}.
                                        """),
    {ok, _} = compile:file(Tests, [debug_info]),
    Recording = filename:absname("eunit.rec"),
    #{exit := 0, stdout := Text} = witness_command:run(Config, os:find_executable("env"), [
        "SPEC=" ++ spec(Config), "OUT=" ++ Recording, "erl", "-noshell", "-pa", filename:dirname(code:which(witness)),
        proplists:get_value(programs, Config), filename:dirname(Tests),
        "-eval", "eunit:test(seat_tests, [{print_depth, 100}]), halt()."]),
    witness_command:contains(Text, [~"**error:{violation,[", ~"VIOLATION of sold_once", ~"eunit.rec", ~"seat_tests.erl, line "]),
    ?assertMatch({ok, #{outcome := identical}}, witness_replay:replay(#{dir => Recording})).
