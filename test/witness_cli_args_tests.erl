-module(witness_cli_args_tests).

-include_lib("eunit/include/eunit.hrl").

every_option_of_run_is_read_test() ->
    {run, Options} = witness_cli_args:parse(
        ["run", "--spec", "a.hml", "--spec=b.hml", "--monitor", "m:f/1=n", "--instrument", "central", "--source", "evm",
         "--scope", "tree", "--pa", "x", "--pa", "y", "--config", "sys.config", "--json", "--for", "1.5", "--timeout", "60",
         "--no-halt", "-I", "include", "--include", "lib/x/include", "--max-slices", "5", "--max-obligations", "7",
         "--slice-idle", "2.5", "--log", "a.log", "--report", "r", "--weave", "m", "--weave=app:a", "--must-decide",
         "m:f(-1)"]),
    ?assertEqual(#{specs => ["a.hml", "b.hml"], log_file => "a.log", report => "r", monitors => ["m:f/1=n"], instrument => central,
                   source => evm,
                   include => ["include", "lib/x/include"], max_slices => 5, max_obligations => 7,
                   slice_idle => 2500, weave => ["m", "app:a"],
                   scope => tree, pa => ["x", "y"], config => "sys.config", json => true, for => 1500, timeout => 60_000,
                   no_halt => true, redact => false, must_decide => true, system => "m:f(-1)"}, Options).

without_options_run_has_the_defaults_of_the_command_line_test() ->
    ?assertEqual({run, #{system => "m:f()", scope => node, instrument => outline, json => false,
                         no_halt => false, redact => false, must_decide => false}}, witness_cli_args:parse(["run", "m:f()"])).

an_application_takes_the_place_of_a_function_test() ->
    {run, Options} = witness_cli_args:parse(["run", "--app", "inets"]),
    ?assertMatch(#{app := "inets", scope := node}, Options),
    ?assertNot(is_map_key(system, Options)).

options_may_follow_the_function_test() ->
    ?assertMatch({run, #{system := "m:f()", specs := ["a"]}}, witness_cli_args:parse(["run", "m:f()", "--spec", "a"])).

compile_takes_several_files_test() ->
    ?assertEqual({compile, #{files => ["a.hml", "b.hml"], expand => false, erlang => true, dot => false, mermaid => false,
                             json => false, watch => false, skip_malformed => false}},
                 witness_cli_args:parse(["compile", "a.hml", "b.hml", "--erlang"])).

every_option_of_compile_is_read_test() ->
    ?assertEqual({compile, #{files => ["a.hml"], expand => true, erlang => true, dot => true, mermaid => true,
                             json => true, pa => ["x", "y"], include => ["i", "j"], 'try' => "a.log", watch => true,
                             instrument => central, format => json, roots => ["p"], skew => 1000, sort => 2500, clocks => 0,
                             skip_malformed => true, max_atoms => 5, max_line => 64, max_slices => 6, slice_idle => 7000,
                             max_obligations => 8, max_state => 9, syntax => elixir}},
                 witness_cli_args:parse(["compile", "--expand", "--erlang", "--dot", "--mermaid", "--json", "--pa", "x", "--pa",
                                         "y", "-I", "i", "--include", "j", "--try", "a.log", "--watch", "--instrument", "central",
                                         "--format", "json", "--root", "p", "--skew", "1", "--sort", "2.5", "--clocks", "0",
                                         "--skip-malformed", "--max-atoms", "5", "--max-line", "64", "--max-slices", "6",
                                         "--slice-idle", "7", "--max-obligations", "8", "--max-state", "9", "--syntax", "elixir",
                                         "a.hml"])),
    ?assertMatch({compile, #{'try' := standard_input}}, witness_cli_args:parse(["compile", "--try", "-", "a.hml"])).

every_option_of_format_is_read_test() ->
    ?assertEqual({format, #{files => [{file, "a.hml"}, standard_input, {file, "b"}], check => false, json => false}},
                 witness_cli_args:parse(["format", "a.hml", "-", "b"])),
    ?assertEqual({format, #{files => [{file, "a.hml"}], check => true, json => true}},
                 witness_cli_args:parse(["format", "--json", "a.hml", "--check"])).

every_option_of_search_is_read_test() ->
    {search, Options} = witness_cli_args:parse(
        ["search", "-o", "a.rec", "--spec", "a.hml", "--spec", "b.hml", "-I", "i", "--pa", "x", "--syntax", "erlang",
         "--schedules", "7", "--for", "1.5", "--seed", "0", "--strategy", "pos,random", "--depth", "2", "--steps", "50",
         "--no-deadlock", "--left", "--mailboxes", "--all", "--crashes", "any", "--expect", "{ok, 1}", "--timeouts", "late", "--delivery", "causal",
         "--weave", "ssl", "--json", "--report", "r", "--mix", "p", "m:f()"]),
    ?assertEqual(#{system => "m:f()", output => "a.rec", specs => ["a.hml", "b.hml"], include => ["i"], pa => ["x"],
                   syntax => erlang, schedules => 7, for => 1500, seed => 0, strategies => [pos, random], depth => 2, steps => 50,
                   no_deadlock => true, left => true, mailboxes => true, all => true,
                   crashes => any, expect => "{ok, 1}", timeouts => late, delivery => causal,
                   weave => ["ssl"],
                   json => true, report => "r", mix => "p"}, Options),
    ?assertEqual({search, #{system => "m:f()", seed => 1, no_deadlock => false, left => false, mailboxes => false,
                            all => false, json => false}},
                 witness_cli_args:parse(["search", "m:f()"])).

errors_name_what_was_expected_test_() ->
    [{lists:flatten(["arguments: " | lists:join(" ", Arguments)]), fun() -> refused(Arguments, Words) end}
     || {Arguments, Words} <- [
        {[], ["a command is expected", "run", "compile", "demo"]},
        {["rnu"], ["'rnu'", "demo, run, check, record, replay, search, attach, compile, format, explore, log, bench and report"]},
        {["rnu", "--help"], ["'rnu'", "demo, run, check, record, replay, search, attach, compile, format, explore, log, bench and report"]},
        {["--quick", "run"], ["--quick"]},
        {["run", "--app"], ["--app APP is expected"]},
        {["run", "--spec"], ["--spec FILE.hml is expected"]},
        {["run", "m:f()", "--sepc", "a"], ["--sepc", "did you mean --spec?"]},
        {["run", "m:f()", "--for", "soon"], ["--for SECONDS", "'soon'"]},
        {["run", "m:f()", "--for", "0"], ["--for SECONDS", "'0'"]},
        {["run", "m:f()", "--timeout", "-5"], ["--timeout SECONDS"]},
        {["run", "m:f()", "--max-slices", "0"], ["--max-slices NUMBER", "'0'"]},
        {["run", "m:f()", "--max-obligations", "many"], ["--max-obligations NUMBER", "'many'"]},
        {["run", "m:f()", "--include"], ["-I DIR | --include DIR is expected"]},
        {["run", "m:f()", "--scope", "galaxy"], ["--scope tree|node", "'galaxy'"]},
        {["run", "m:f(1,", "2)"], ["'2)'", "quotes"]},
        {["search"], ["'mod:fun(args)' is expected"]},
        {["search", "m:f()", "--strategy", "pct,luck"], ["--strategy LIST", "'pct,luck': the names are pct, pos, random and surw"]},
        {["search", "m:f()", "--strategy", ""], ["--strategy LIST"]},
        {["search", "m:f()", "--seed", "-1"], ["--seed NUMBER", "'-1'"]},
        {["compile"], ["FILE.hml"]},
        {["format"], ["FILE.hml|DIR|-"]},
        {["demo", "x"], ["'x'"]},
        {["run", "--bad\e[31m"], ["--bad\\x{1B}"]}
    ]].

refused(Arguments, Words) ->
    {error, Error} = witness_cli_args:parse(Arguments),
    Text = unicode:characters_to_binary(Error),
    [?assertNotEqual(nomatch, string:find(Text, Word), {Word, Text}) || Word <- Words].

help_exists_for_every_command_test_() ->
    [{lists:flatten(["arguments: " | lists:join(" ", Arguments)]), fun() ->
        {print, Text} = witness_cli_args:parse(Arguments),
        [?assertNotEqual(nomatch, string:find(unicode:characters_to_binary(Text), Word)) || Word <- Words]
      end} || {Arguments, Words} <- [
        {["--help"], ["run", "compile", "demo", "--version"]},
        {["-h"], ["run"]},
        {["run", "--help"], ["--spec", "--monitor", "--scope", "--no-halt", "--app", "'mod:fun(args)'", "Exit codes"]},
        {["run", "--spec", "--help"], ["--spec"]},
        {["compile", "--help"], ["--erlang", "--dot", "--mermaid", "--include", "--try LOG", "--watch", "FILE.hml"]},
        {["format", "--help"], ["--check", "--json", "FILE.hml|DIR|-", "Exit codes"]},
        {["search", "--help"], ["--spec", "--schedules", "--strategy", "--no-deadlock", "'mod:fun(args)'", "Exit codes"]},
        {["demo", "--help"], ["Exit codes"]},
        {["--version"], ["witness 0."]}
    ]].

%% Only where there is such an argument.
one_argument_too_many_test() ->
    {error, Error} = witness_cli_args:parse(["bench", "smoke", "laptop"]),
    ?assertEqual(~"witness bench: 'laptop' is one argument too many (see witness bench --help)",
                 unicode:characters_to_binary(Error)).
