-module(witness_cli_SUITE).
-moduledoc """
The command line as a user has it: `bin/witness` as a process of the operating system, judged by its standard output, its
standard error and its exit code.
""".

-export([all/0, suite/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([
    nothing_violated_ends_with_0/1,
    a_violation_ends_with_1_and_is_shown/1, woven_modules_are_judged_the_same/1,
    slices_are_judged_one_by_one/1,
    too_many_slices_leave_the_oldest_undecided/1,
    too_many_obligations_leave_it_undecided/1,
    a_vacuous_property_gets_a_warning/1,
    actions_that_were_never_taken_are_named/1,
    records_come_from_included_folders/1,
    a_monitor_written_in_erlang_is_used/1,
    a_monitor_gets_its_argument/1,
    the_scope_tree_watches_the_tree_only/1,
    arguments_may_be_unicode/1,
    configuration_reaches_the_system/1,
    reports_of_the_logger_stay_out_of_standard_output/1,
    elixir_runs_without_naming_its_libraries/1,
    colours_are_off_when_output_is_no_terminal/1
]).
-export([
    json_has_standard_output_for_itself/1,
    json_lines_have_what_is_promised/1,
    a_gap_has_its_process_and_its_reason/1,
    a_reader_that_goes_away_ends_the_run/1
]).
-export([
    for_is_a_planned_end/1,
    what_has_to_come_is_missed_at_a_planned_end/1,
    violations_of_one_kind_have_one_chart/1, a_chart_has_times_and_names/1,
    where_one_must_decide_an_undecided_verdict_is_no_result/1,
    a_run_that_waits_says_what_is_still_there/1,
    timeout_is_an_error/1,
    a_violation_before_the_timeout_counts_more/1,
    an_interrupt_ends_a_run_without_halt_in_good_order/1,
    sigterm_ends_a_run_without_halt_in_good_order/1,
    an_interrupt_that_was_not_asked_for_gives_no_result/1,
    a_second_interrupt_ends_at_once/1,
    an_interrupt_ends_a_system_that_spawns_without_end/1,
    an_interrupt_ends_an_application_that_spawns_without_end/1
]).
-export([
    an_application_that_stops_ends_the_run/1,
    an_application_that_crashes_gives_no_result/1,
    an_application_that_does_not_start_gives_no_result/1,
    an_application_is_configured/1,
    an_interrupt_ends_an_application_in_good_order/1,
    for_ends_an_application_in_good_order/1,
    a_second_interrupt_ends_an_application_that_hangs/1,
    an_application_that_cannot_be_run_is_named/1
]).
-export([
    a_mix_project_is_compiled_and_configured/1,
    the_application_of_a_mix_project_is_started/1,
    an_umbrella_project_needs_a_name/1,
    a_mix_project_that_is_wrong_is_named/1
]).
-export([
    wrong_usage_ends_with_2/1,
    a_missing_module_is_named/1,
    a_wrong_arity_lists_the_right_ones/1,
    a_syntax_error_of_the_call_is_pointed_at/1,
    a_missing_specification_is_named/1,
    a_malformed_specification_is_pointed_at/1,
    a_monitor_without_callbacks_is_refused/1,
    a_missing_folder_is_named/1,
    forms_for_other_programs_come_one_at_a_time/1,
    a_broken_configuration_is_named/1,
    what_does_not_exist_yet_is_refused/1
]).
-export([
    a_signature_that_no_process_had_gives_no_result/1,
    a_system_that_crashes_gives_no_result/1,
    a_system_that_halts_the_vm_gives_no_result/1,
    a_system_that_is_no_longer_watched_goes_on_to_its_end/1
]).
-export([
    compile_lists_properties/1,
    compile_prints_erlang_that_compiles/1,
    compile_tells_errors_with_their_place/1,
    compile_gives_json/1,
    compile_draws_what_programs_read/1,
    compile_warns_of_functions_that_modules_do_not_have/1,
    compile_tries_a_log_of_standard_input/1,
    compile_watches_its_files_until_an_interrupt/1,
    the_demonstration_finds_its_bug/1,
    the_demonstration_gives_json/1,
    help_and_version_need_no_system/1,
    what_was_logged_is_checked_again/1,
    a_log_that_cannot_be_written_is_named/1
]).

-include_lib("stdlib/include/assert.hrl").

-import(witness_command, [collect/2, until/3, contains/2]).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [{group, Group} || {Group, _, _} <- groups()].

groups() ->
    [{run, [],
      [nothing_violated_ends_with_0, a_violation_ends_with_1_and_is_shown, woven_modules_are_judged_the_same,
       slices_are_judged_one_by_one,
       too_many_slices_leave_the_oldest_undecided, too_many_obligations_leave_it_undecided,
       violations_of_one_kind_have_one_chart, a_chart_has_times_and_names, a_vacuous_property_gets_a_warning,
       actions_that_were_never_taken_are_named,
       records_come_from_included_folders, a_monitor_written_in_erlang_is_used,
       a_monitor_gets_its_argument, the_scope_tree_watches_the_tree_only, arguments_may_be_unicode,
       configuration_reaches_the_system, reports_of_the_logger_stay_out_of_standard_output,
       elixir_runs_without_naming_its_libraries, colours_are_off_when_output_is_no_terminal,
       what_was_logged_is_checked_again]},
     {json, [], [json_has_standard_output_for_itself, json_lines_have_what_is_promised,
                 a_gap_has_its_process_and_its_reason, a_reader_that_goes_away_ends_the_run]},
     {ends, [], [for_is_a_planned_end, what_has_to_come_is_missed_at_a_planned_end,
                 where_one_must_decide_an_undecided_verdict_is_no_result,
                 a_run_that_waits_says_what_is_still_there, timeout_is_an_error, a_violation_before_the_timeout_counts_more,
                 an_interrupt_ends_a_run_without_halt_in_good_order, sigterm_ends_a_run_without_halt_in_good_order,
                 an_interrupt_that_was_not_asked_for_gives_no_result, a_second_interrupt_ends_at_once,
                 an_interrupt_ends_a_system_that_spawns_without_end, an_interrupt_ends_an_application_that_spawns_without_end]},
     {application, [], [an_application_that_stops_ends_the_run, an_application_that_crashes_gives_no_result,
                        an_application_that_does_not_start_gives_no_result, an_application_is_configured,
                        an_interrupt_ends_an_application_in_good_order, for_ends_an_application_in_good_order,
                        a_second_interrupt_ends_an_application_that_hangs, an_application_that_cannot_be_run_is_named]},
     {mix, [], [a_mix_project_is_compiled_and_configured, the_application_of_a_mix_project_is_started,
                an_umbrella_project_needs_a_name, a_mix_project_that_is_wrong_is_named]},
     {refused, [], [wrong_usage_ends_with_2, a_missing_module_is_named, a_wrong_arity_lists_the_right_ones,
                    a_syntax_error_of_the_call_is_pointed_at, a_missing_specification_is_named,
                    a_malformed_specification_is_pointed_at, a_monitor_without_callbacks_is_refused,
                    a_missing_folder_is_named, forms_for_other_programs_come_one_at_a_time,
                    a_broken_configuration_is_named, what_does_not_exist_yet_is_refused,
                    a_log_that_cannot_be_written_is_named]},
     {no_result, [], [a_signature_that_no_process_had_gives_no_result, a_system_that_crashes_gives_no_result,
                      a_system_that_halts_the_vm_gives_no_result,
                      a_system_that_is_no_longer_watched_goes_on_to_its_end]},
     {others, [], [compile_lists_properties, compile_prints_erlang_that_compiles, compile_tells_errors_with_their_place,
                   compile_gives_json, compile_draws_what_programs_read,
                   compile_warns_of_functions_that_modules_do_not_have, compile_tries_a_log_of_standard_input,
                   compile_watches_its_files_until_an_interrupt, the_demonstration_finds_its_bug,
                   the_demonstration_gives_json, help_and_version_need_no_system]}].

init_per_suite(Config) ->
    Root = witness_checkout:root(proplists:get_value(data_dir, Config)),
    Data = filename:join([Root, "test", "cli_data"]),
    Out = filename:join(proplists:get_value(priv_dir, Config), "ebin"),
    ok = filelib:ensure_path(Out),
    [{ok, _, []} = compile:file(filename:join(Data, Module), [debug_info, return, {outdir, Out}])
     || Module <- ["cli_system", "cli_monitor", "cli_application"]],
    ok = file:write_file(filename:join(Out, "cli_application.app"), io_lib:format("~p.~n", [cli_application:spec()])),
    %% The first call may have to build Witness, and says so.
    Ready = [{root, Root}, {data, Data}, {ebin, Out} | Config],
    #{exit := 0} = witness(Ready, ["--version"]),
    Ready.

end_per_suite(_) -> ok.

init_per_group(mix, Config) ->
    case os:find_executable("mix") of
        false -> {skip, "there is no mix on the path"};
        _ -> [{project, project(proplists:get_value(priv_dir, Config))} | Config]
    end;
init_per_group(_, Config) -> Config.

end_per_group(_, _) -> ok.

%%% run

nothing_violated_ends_with_0(Config) ->
    #{exit := 0, stdout := Text, stderr := ~""} = run(Config, ["--spec", small], "cli_system:answers([1, 2])"),
    contains(Text, [~"monitors  1: 1 satisfied", ~"OK: nothing was violated."]).

a_violation_ends_with_1_and_is_shown(Config) ->
    #{exit := 1, stdout := Text} = run(Config, ["--spec", small], "cli_system:answers([1, 10])"),
    contains(Text, [~"VIOLATION of one_digit", ~"small.hml:3", ~"cli_system:server()", ~"{answer,10}", ~" => 5",
                    ~"small.hml:7:11: this must not happen: _ : _ ! {answer, N} when N > 9\n",
                    ~"    7 |      and [_ : _ ! {answer, N} when N > 9] ff\n",
                    ~"      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n    with N = 10\n",
                    ~"VIOLATED: 1 monitor has seen a violation."]).

woven_modules_are_judged_the_same(Config) ->
    Verdicts = fun(Options) ->
        #{exit := 1, json := Lines} = json(Config, ["--spec", small, "--spec", sliced | Options], "cli_system:answers([1, 10, 2])"),
        lists:sort([{Spec, Verdict, Slice, Index}
                    || #{~"type" := ~"verdict", ~"spec" := Spec, ~"verdict" := Verdict, ~"slice" := Slice,
                         ~"event" := Event} <- Lines, Index <- [case Event of null -> null; #{~"index" := I} -> I end]])
    end,
    Expected = Verdicts([]),
    ?assertEqual(4, length(Expected)),
    ?assertEqual(Expected, Verdicts(["--instrument", "inline"])),
    ?assertEqual(Expected, Verdicts(["--instrument", "inline", "--weave", "cli_system"])),
    refused(Config, ["--instrument", "inline", "--weave", "cli_system", "--weave", "no_such", "--spec", small],
            "cli_system:returns()",
            [~"no_such cannot be woven: there is no such module"]),
    refused(Config, ["--weave", "cli_system", "--spec", small], "cli_system:returns()", [~"option --weave: only where"]).

slices_are_judged_one_by_one(Config) ->
    #{exit := 1, stdout := Text} = run(Config, ["--spec", sliced], "cli_system:answers([1, 10, 2])"),
    contains(Text, [~"VIOLATION of one_digit", ~"slice Number = 10\n",
                    ~"monitors  1, 3 slices: 1 violated, 2 satisfied", ~"VIOLATED: 1 violation was seen."]),
    #{exit := 1, json := Lines} = json(Config, ["--spec", sliced], "cli_system:answers([1, 10, 2])"),
    ?assertEqual([{~"yes", ~"Number = 1"}, {~"no", ~"Number = 10"}, {~"yes", ~"Number = 2"}], slices(Lines)),
    ?assertMatch(#{~"slices" := 3, ~"verdicts" := #{~"no" := 1, ~"yes" := 2}}, lists:last(Lines)).

slices(Lines) ->
    [{Verdict, Slice} || #{~"type" := ~"verdict", ~"verdict" := Verdict, ~"slice" := Slice} <- Lines].

too_many_slices_leave_the_oldest_undecided(Config) ->
    Run = fun(Given) -> ["--spec", open, "--max-slices", "2" | Given] end,
    #{exit := 0, json := Lines} = json(Config, Run([]), "cli_system:answers([1, 2, 3, 4])"),
    ?assertEqual([{~"inconclusive", ~"Number = 1"}, {~"inconclusive", ~"Number = 2"}, {~"yes", ~"Number = 3"},
                  {~"yes", ~"Number = 4"}], lists:sort(slices(Lines))),
    #{exit := 0, stdout := Text} = run(Config, Run([]), "cli_system:answers([1, 2, 3, 4])"),
    contains(Text, [~"2 undecided: another slice took its place: there were more than max_slices allows"]).

too_many_obligations_leave_it_undecided(Config) ->
    #{exit := 0} = run(Config, ["--spec", growing], "cli_system:answers([1, 2, 3])"),
    #{exit := 1} = run(Config, ["--spec", growing], "cli_system:answers([1, 2, 1])"),
    #{exit := 0, stdout := Text} =
        run(Config, ["--spec", growing, "--max-obligations", "2"], "cli_system:answers([1, 2, 3])"),
    contains(Text, [~"1 undecided: too much was left to satisfy: there were more obligations than max_obligations"]).

a_vacuous_property_gets_a_warning(Config) ->
    #{exit := 0, stdout := Text} = run(Config, ["--spec", vacuous], "cli_system:answers([1])"),
    contains(Text, [~"warning: ", ~"vacuous.hml:1 (never_asked) has a vacuous verdict only", ~"2 satisfied (1 vacuously)\n",
                    ~"vacuous.hml:4): 1 satisfied\n"]),
    #{exit := 0, json := Lines} = json(Config, ["--spec", vacuous], "cli_system:answers([1])"),
    ?assertMatch([#{~"code" := ~"vacuous"}], [Line || #{~"type" := ~"warning"} = Line <- Lines]).

%% The one that violates by itself is none of them.
actions_that_were_never_taken_are_named(Config) ->
    #{exit := 0, stdout := Text} = run(Config, ["--spec", small], "cli_system:answers([])"),
    contains(Text, [~"unseen    ", ~"small.hml:8:11: _ : _ ! {answer, N} when N =< 9\n"]),
    ?assertEqual(nomatch, binary:match(Text, ~"N > 9")),
    #{exit := 0, json := Lines} = json(Config, ["--spec", small], "cli_system:answers([1])"),
    #{~"coverage" := [#{~"name" := ~"one_digit", ~"actions" := Actions}]} = lists:last(Lines),
    ?assertEqual([{5, null, true}, {6, null, true}, {7, ~"no", false}, {8, null, true}],
                 [{Line, Decides, Taken} || #{~"line" := Line, ~"decides" := Decides, ~"taken" := Taken} <- Actions]).

records_come_from_included_folders(Config) ->
    Include = data(Config, "include"),
    #{exit := 1, stdout := Text} = run(Config, ["-I", Include, "--spec", records], "cli_system:answers([10])"),
    contains(Text, [~"#answer{number = N} when N > 9"]),
    #{exit := 0} = witness(Config, ["compile", "--include", Include, data(Config, "records.hml")]),
    #{exit := 2, stderr := Error} = witness(Config, ["compile", data(Config, "records.hml")]),
    contains(Error, [~"records.hml:1:", ~"cli_records.hrl"]).

a_monitor_written_in_erlang_is_used(Config) ->
    #{exit := 0} = run(Config, ["--monitor", "cli_system:server/0=cli_monitor"], "cli_system:answers([1])"),
    #{exit := 1, stdout := Text} =
        run(Config, ["--monitor", "cli_system:_/_=cli_monitor"], "cli_system:answers([1, 2])"),
    contains(Text, [~"VIOLATION of cli_monitor", ~"the monitor says: too_many"]).

a_monitor_gets_its_argument(Config) ->
    #{exit := 0} = run(Config, ["--monitor", "cli_system:server/_=cli_monitor(2)"], "cli_system:answers([1, 2])"),
    #{exit := 1} = run(Config, ["--monitor", "cli_system:server/_=cli_monitor(2)"], "cli_system:answers([1, 2, 3])").

%% With the scope node the processes of the VM are watched too.
the_scope_tree_watches_the_tree_only(Config) ->
    Seen = fun(Scope) ->
        #{exit := 0, json := Lines} =
            json(Config, ["--scope", Scope, "--spec", small], "cli_system:answers([1])"),
        maps:get(~"processes", lists:last(Lines))
    end,
    ?assertEqual(2, Seen("tree")),
    ?assert(Seen("node") >= 2).

arguments_may_be_unicode(Config) ->
    Monitor = ["--monitor", "cli_system:_/_=cli_monitor(99)"],
    #{exit := 0, stdout := Text} = run(Config, Monitor, <<"cli_system:says(\"größer \x{1F600}\")"/utf8>>),
    contains(Text, [<<"größer \x{1F600}"/utf8>>]),
    #{exit := 0, stdout := Greeting} = run(Config, Monitor, <<"cli_system:grüßt()"/utf8>>),
    contains(Greeting, [<<"grüßt"/utf8>>]),
    Folder = filename:join(proplists:get_value(priv_dir, Config), <<"mit Lücke"/utf8>>),
    ok = filelib:ensure_path(Folder),
    {ok, _} = file:copy(data(Config, "small.hml"), filename:join(Folder, <<"prüfung.hml"/utf8>>)),
    #{exit := 1, stdout := Violation} =
        run(Config, ["--spec", filename:join(Folder, <<"prüfung.hml"/utf8>>)], "cli_system:answers([10])"),
    contains(Violation, [<<"prüfung.hml:3"/utf8>>]).

configuration_reaches_the_system(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "sys.config"),
    ok = file:write_file(File, "[{cli_system, [{a, 1}, {b, two}]}]."),
    #{stdout := Text} = run(Config, ["--config", File, "--monitor", "cli_system:_/_=cli_monitor(99)"],
                            "cli_system:settings()"),
    contains(Text, [~"[{ok,1},{ok,two}]"]).

reports_of_the_logger_stay_out_of_standard_output(Config) ->
    #{exit := 0, stdout := Text, stderr := Log} = run(Config, ["--spec", small], "cli_system:logs()"),
    contains(Log, [~"a report"]),
    ?assertEqual(nomatch, binary:match(Text, ~"a report")).

elixir_runs_without_naming_its_libraries(Config) ->
    case os:find_executable("elixirc") of
        false -> {skip, "there is no elixirc on the path"};
        Compiler ->
            Example = filename:join([proplists:get_value(root, Config), "examples", "elixir"]),
            Out = filename:join(proplists:get_value(priv_dir, Config), "elixir"),
            ok = filelib:ensure_path(Out),
            #{exit := 0} = execute(Config, Compiler, ["-o", Out, filename:join(Example, "counter.ex")]),
            #{exit := 1} = witness(Config, ["run", "--pa", Out, "--spec", filename:join(Example, "bug.hml"),
                                            "CounterDemo.lossy()"])
    end.

colours_are_off_when_output_is_no_terminal(Config) ->
    #{exit := 1, stdout := Text} = run(Config, ["--spec", small], "cli_system:answers([10])"),
    ?assertEqual(nomatch, binary:match(Text, ~"\e")).

%%% --json

json_has_standard_output_for_itself(Config) ->
    #{exit := 1, json := Lines, stderr := Errors} = json(Config, ["--spec", small], "cli_system:prints()"),
    ?assertEqual([~"verdict", ~"summary"], [maps:get(~"type", Line) || Line <- Lines]),
    contains(Errors, [~"by io", ~"by user", ~"by_display", ~"by descriptor", ~"by a child"]).

json_lines_have_what_is_promised(Config) ->
    %% What is wrong with a specification is known before anything runs.
    #{exit := 1, json := [Early, Verdict, Warning, Summary]} =
        json(Config, ["--spec", small, "--spec", nobody], "cli_system:answers([10])"),
    ?assertMatch(#{~"v" := 1, ~"type" := ~"warning", ~"code" := ~"specification", ~"text" := _}, Early),
    ?assertMatch(#{~"v" := 1, ~"type" := ~"verdict", ~"verdict" := ~"no", ~"name" := ~"one_digit",
                   ~"signature" := ~"cli_system:server()", ~"slice" := null, ~"vacuous" := false,
                   ~"source" := #{~"line" := 7, ~"column" := 11, ~"file" := _, ~"text" := _},
                   ~"event" := #{~"index" := 3, ~"kind" := ~"send"}, ~"explanation" := [_ | _]}, Verdict),
    ?assertMatch(#{~"v" := 1, ~"type" := ~"warning", ~"code" := ~"nothing_monitored", ~"text" := _}, Warning),
    ?assertMatch(#{~"v" := 1, ~"type" := ~"summary", ~"verdicts" := #{~"no" := 1, ~"yes" := 0, ~"inconclusive" := 0},
                   ~"slices" := 0, ~"coverage" := [_], ~"gaps" := 0, ~"vacuous" := 0, ~"warnings" := [_, _]}, Summary),
    ?assertMatch([{_, _}], lists:usort([{Run, Node} || #{~"run" := Run, ~"node" := Node, ~"time" := _}
                                                           <- [Verdict, Warning, Summary]])).

%% The library cannot be woven, as it has no debug information.
a_gap_has_its_process_and_its_reason(Config) ->
    Library = filename:join(proplists:get_value(priv_dir, Config), "library"),
    ok = filelib:ensure_path(Library),
    {ok, _, []} = compile:file(data(Config, "cli_library.erl"), [return, {outdir, Library}]),
    Options = ["--pa", Library, "--instrument", "inline", "--weave", "cli_system", "--spec", borrowed],
    #{exit := 3, stdout := Text} = run(Config, Options, "cli_system:borrows()"),
    contains(Text, [~"gaps      1\n", ~"a monitor misses events: the process ran code of cli_library", ~" (cli_system:borrower/0)",
                    ~"1 undecided: events are missing: the process ran code of cli_library", ~"NO RESULT: events are missing."]),
    #{exit := 3, json := Lines} = json(Config, Options, "cli_system:borrows()"),
    #{~"gaps" := 1, ~"missing" := [Missing], ~"warnings" := Warnings, ~"verdicts" := #{~"inconclusive" := 1}} = lists:last(Lines),
    #{~"process" := P, ~"signature" := ~"cli_system:borrower/0", ~"reason" := ~"not_woven", ~"module" := ~"cli_library",
      ~"count" := null,
      ~"text" := Why} = Missing,
    contains(Why, [~"the process ran code of cli_library", ~"--weave"]),
    [contains(Told, [Why, <<P/binary, " (cli_system:borrower/0)">>]) || #{~"code" := ~"gap", ~"text" := Told} <- Warnings].

%% `head` leaves after the first line; the system would go on for ever.
a_reader_that_goes_away_ends_the_run(Config) ->
    [begin
         Arguments = ["run" | Options] ++ ["--pa", proplists:get_value(ebin, Config), "--spec", data(Config, "small.hml"),
                                           "cli_system:violates()"],
         #{exit := 1, stdout := Output} =
             execute(Config, "/bin/bash",
                     ["-c", "\"$@\" | head -n 1; exit ${PIPESTATUS[0]}", "bash", executable(Config) | Arguments]),
         contains(Output, [First])
     end || {Options, First} <- [{["--json"], ~"\"verdict\""}, {[], ~"VIOLATION"}]].

%%% How a run ends

for_is_a_planned_end(Config) ->
    #{exit := 0, stdout := Text} = run(Config, ["--spec", small, "--for", "3"], "cli_system:waits()"),
    contains(Text, [~"1 undecided: watching stopped before a decision", ~"OK: nothing was violated, 1 monitor is undecided."]).

what_has_to_come_is_missed_at_a_planned_end(Config) ->
    #{exit := 0, stdout := Text} = run(Config, ["--spec", ends, "--for", "3"], "cli_system:waits()"),
    contains(Text, [~"1 undecided: watching stopped before what has to come", ~"          1 of ends (", ~"), to come: _ ** _\n",
                    ~"UNDECIDED: nothing was violated, 1 monitor is undecided: what has to come had not come."]),
    #{exit := 3} = run(Config, ["--spec", ends, "--for", "3", "--must-decide"], "cli_system:waits()").

where_one_must_decide_an_undecided_verdict_is_no_result(Config) ->
    #{exit := 3, stdout := Text} = run(Config, ["--spec", small, "--for", "3", "--must-decide"], "cli_system:waits()"),
    contains(Text, [~"system    returned", ~"alive     <", ~" cli_system:server/0: ", ~" in cli_system:server/0 (cli_system.erl:",
                    ~"          1 of one_digit (", ~", to hold: max X.", ~"NO RESULT: 1 verdict is undecided."]),
    #{exit := 0} = run(Config, ["--spec", small, "--must-decide"], "cli_system:answers([1, 2])"),
    #{exit := 1} = run(Config, ["--spec", small, "--must-decide"], "cli_system:answers([10])").

%% It says so by itself, and its summary does too.
a_run_that_waits_says_what_is_still_there(Config) ->
    Port = start_run(Config, ["--json", "--spec", small], "cli_system:waits()"),
    Before = until(Port, ~" cli_system:server/0: waits for a message in cli_system:server/0 (cli_system.erl:", ~""),
    contains(Before, [~": nothing happens, and the run has not ended; still there:\n  <"]),
    signal(Port, "INT"),
    {3, After} = collect(Port, Before),
    [Summary] = [Line || Line <- string:split(After, "\n", all), string:prefix(Line, "{\"v\":1,\"type\":\"summary\"") =/= nomatch],
    ?assertMatch(#{~"alive" := #{~"count" := 1, ~"requests" := 0,
                                     ~"processes" := [#{~"signature" := ~"cli_system:server/0", ~"state" := ~"unknown",
                                                        ~"place" := ~"cli_system:server/0", ~"mailbox" := 0}]}},
                 json:decode(Summary)).

timeout_is_an_error(Config) ->
    #{exit := 3, stdout := Text} = run(Config, ["--spec", small, "--timeout", "3"], "cli_system:waits()"),
    contains(Text, [~"--timeout", ~"NO RESULT"]).

a_violation_before_the_timeout_counts_more(Config) ->
    #{exit := 1, json := Lines} =
        json(Config, ["--monitor", "cli_system:server/0=cli_monitor(0)", "--timeout", "3"], "cli_system:waits()"),
    ?assertMatch([#{~"type" := ~"verdict"}, #{~"type" := ~"warning", ~"code" := ~"timeout"}, #{~"type" := ~"summary"}], Lines).

an_interrupt_ends_a_run_without_halt_in_good_order(Config) -> interrupted(Config, "INT", ["--no-halt"], 0).

sigterm_ends_a_run_without_halt_in_good_order(Config) -> interrupted(Config, "TERM", ["--no-halt"], 0).

an_interrupt_that_was_not_asked_for_gives_no_result(Config) -> interrupted(Config, "INT", [], 3).

interrupted(Config, Signal, Options, Code) ->
    Port = start_run(Config, Options ++ ["--spec", small], "cli_system:waits()"),
    Before = until(Port, ~"ready\n", ~""),
    signal(Port, Signal),
    {Code, After} = collect(Port, Before),
    %% It returns when it has printed.
    ?assertMatch({match, _}, re:run(After, ~"system    (returned|still ran)\n")),
    contains(After, [~"monitors  1: 1 undecided"]).

%% The monitor is busy for ever, so good order would take its time.
a_second_interrupt_ends_at_once(Config) ->
    Port = start_run(Config, ["--no-halt", "--monitor", "cli_system:server/0=cli_monitor(busy)"], "cli_system:waits()"),
    Before = until(Port, ~"ready\n", ~""),
    signal(Port, "INT"),
    Again = until(Port, ~"interrupted: ", Before),
    signal(Port, "INT"),
    {3, _} = collect(Port, Again).

%% When the interrupt is told, nothing of the system runs any more: each of its processes can have one line on the way. That
%% are those of eight chains, or as many as the process table has.
an_interrupt_ends_a_system_that_spawns_without_end(Config) ->
    spawning(fun() ->
        [begin
             Port = start_run(Config, Mode ++ ["--spec", small], lists:concat(["cli_system:spawns(", How, ")"])),
             {3, After} = interrupted(Port),
             contains(After, [~"the run was interrupted", ~"NO RESULT"]),
             Most = case How of chain -> 16; fan -> 4096 end,
             ?assertMatch({Mode, How, Lines} when Lines =< Most, {Mode, How, length(binary:matches(After, ~"spawned\n"))})
         end || Mode <- modes(), How <- [chain, fan]]
    end).

%% It goes on while it is stopped in good order. A chain is that at once; a process table that is full leaves no time for it.
an_interrupt_ends_an_application_that_spawns_without_end(Config) ->
    spawning(fun() ->
        [begin
             {0, After} = interrupted(start_application(Config, Mode ++ ["--spec", small], [{does, {spawns, How}}])),
             contains(After, [~"system    cli_application still ran", ~"OK: nothing was violated."])
         end || {Mode, How} <- [{[], fan} | [{Mode, chain} || Mode <- modes()]]]
    end).

modes() -> [[], ["--source", "evm"], ["--instrument", "inline"], ["--instrument", "central"]].

spawning(Test) ->
    true = os:putenv("WITNESS_ERL_FLAGS", "+P 3000"),
    try Test() after os:unsetenv("WITNESS_ERL_FLAGS") end.

%% The exit code, and what came after the interrupt.
interrupted(Port) ->
    Before = until(Port, ~"spawned\n", ~""),
    signal(Port, "TERM"),
    {Code, Output} = collect(Port, until(Port, ~"interrupted: ", Before)),
    [_, After] = binary:split(Output, ~"interrupted: "),
    {Code, After}.

what_was_logged_is_checked_again(Config) ->
    [begin
         Log = filename:join(proplists:get_value(priv_dir, Config), Name),
         #{exit := 1, stdout := Live} =
             run(Config, ["--spec", small, "--log", Log | Scope], "cli_system:answers([1, 10])"),
         #{exit := 1, stdout := Offline} = witness(Config, ["check", "--spec", data(Config, "small.hml"), Log]),
         ?assertEqual(violation(Live), violation(Offline))
     end || Name <- ["a.log", "a.jsonl"], Scope <- [[], ["--scope", "tree"]]],
    #{exit := 1, stdout := Full} = run(Config, ["--spec", small, "--log", "/dev/full"], "cli_system:answers([1, 10])"),
    contains(Full, [~"the log is not complete: /dev/full: no space left on device"]),
    #{exit := 3} = run(Config, ["--spec", small, "--log", "/dev/full"], "cli_system:answers([1, 2])").

%% From the name of the property to the end of its explanation, but for the place in the log, and the names, which no log has.
violation(Text) ->
    [_, Behind] = binary:split(Text, ~"VIOLATION of "),
    [Violation, _] = binary:split(Behind, ~"    with N = 10\n"),
    lists:foldl(fun({Pattern, New}, Text1) -> re:replace(Text1, Pattern, New, [unicode, {return, binary}]) end, Violation,
                [{~"\n  at .*", ~""}, {~"(\n +<[0-9.]+> +<[0-9.]+>)\n +[a-z].*", ~"\\1"}]).

%% The first of a kind has a chart, nine others a headline.
violations_of_one_kind_have_one_chart(Config) ->
    #{exit := 1, stdout := Text} = run(Config, ["--spec", small], "cli_system:answer(12, [10])"),
    Parts = binary:split(Text, ~"VIOLATION of one_digit", [global]),
    ?assertEqual(1 + 10, length(Parts)),
    ?assertMatch([_], [Part || Part <- Parts, string:find(Part, ~" => ") =/= nomatch]),
    contains(Text, [~"monitors  12: 12 violated\n", ~"VIOLATED: 12 monitors have seen violations."]),
    #{json := Lines} = json(Config, ["--spec", small], "cli_system:answer(12, [10])"),
    ?assertEqual(12, length([V || V = #{~"type" := ~"verdict"} <- Lines])),
    ?assertMatch([#{~"properties" := [#{~"name" := ~"one_digit", ~"monitored" := 12, ~"verdicts" := #{~"no" := 12, ~"yes" := 0}}]}],
                 [S || S = #{~"type" := ~"summary"} <- Lines]).

%% Each row says when it was, and each process what it is called.
a_chart_has_times_and_names(Config) ->
    #{exit := 1, stdout := Text} = run(Config, ["--spec", small], "cli_system:answers([10])"),
    ?assertMatch({match, _}, re:run(Text, ~"\n +<[0-9.]+> +<[0-9.]+>\n +cli_system +cli_system\n")),
    ?assertMatch({match, _}, re:run(Text, ~"\n => [0-9]+ +\\+[0-9.]+ m?s +\\*")),
    #{json := Lines} = json(Config, ["--spec", small], "cli_system:answers([10])"),
    ?assertMatch([#{~"names" := Names}] when map_size(Names) >= 1, [V || V = #{~"type" := ~"verdict"} <- Lines]),
    [#{~"explanation" := [#{~"after_ns" := 0} | _] = Steps}] = [V || V = #{~"type" := ~"verdict"} <- Lines],
    Times = [Time || #{~"after_ns" := Time} <- Steps],
    ?assertEqual(lists:sort(Times), Times).

%%% Applications

an_application_that_stops_ends_the_run(Config) ->
    #{exit := 0, stdout := Text} = application(Config, ["--spec", small], [{does, {ends, normal}}]),
    contains(Text, [~"application stopped", ~"system    cli_application has stopped", ~"monitors  1: 1 satisfied"]),
    %% Its top supervisor has given up.
    #{exit := 3, stdout := Shutdown} = application(Config, ["--spec", small], [{does, {ends, shutdown}}]),
    contains(Shutdown, [~"warning: the application ended with shutdown", ~"NO RESULT: the system crashed."]),
    #{exit := 1, stdout := Violation} =
        application(Config, ["--spec", small], [{does, {ends, normal}}, {numbers, [1, 10]}]),
    contains(Violation, [~"VIOLATION of one_digit", ~"VIOLATED"]).

an_application_that_crashes_gives_no_result(Config) ->
    #{exit := 3, stdout := Text} = application(Config, ["--spec", small], [{does, {ends, boom}}]),
    contains(Text, [~"the system ended with boom", ~"monitors  1: 1 satisfied", ~"NO RESULT: the system crashed."]).

an_application_that_does_not_start_gives_no_result(Config) ->
    [begin
         #{exit := 3, stdout := Text} = application(Config, ["--spec", small], [{does, Does}]),
         contains(Text, [~"the application cli_application did not start: ", Why, ~"the system did not start"])
     end || {Does, Why} <- [{refuse, ~"cli_application:start/2 of cli_application returned the error no_licence"},
                            {crash_at_start, ~"its start function crashed: {boom,"}]].

an_application_is_configured(Config) ->
    #{exit := 0, json := Lines} = lines(application(Config, ["--json", "--spec", sliced],
                                                    [{does, {ends, normal}}, {numbers, [1, 2]}])),
    ?assertEqual([{~"yes", ~"Number = 1"}, {~"yes", ~"Number = 2"}], slices(Lines)).

an_interrupt_ends_an_application_in_good_order(Config) ->
    [begin
         Port = start_application(Config, ["--spec", small], []),
         Before = until(Port, ~"ready\n", ~""),
         signal(Port, Signal),
         {0, After} = collect(Port, Before),
         contains(After, [~"system    cli_application still ran", ~"monitors  2: 1 satisfied, 1 undecided",
                          ~"1 undecided: watching stopped before a decision", ~"application stopped"])
     end || Signal <- ["INT", "TERM", {group, "TERM"}]].

for_ends_an_application_in_good_order(Config) ->
    #{exit := 0, stdout := Text} = application(Config, ["--spec", small, "--for", "3"], []),
    contains(Text, [~"system    cli_application still ran", ~"application stopped"]).

a_second_interrupt_ends_an_application_that_hangs(Config) ->
    Port = start_application(Config, ["--spec", small], [{does, hang}]),
    Before = until(Port, ~"ready\n", ~""),
    signal(Port, "INT"),
    Again = until(Port, ~"undecided.\n", Before),
    signal(Port, "INT"),
    {3, _} = collect(Port, Again).

an_application_that_cannot_be_run_is_named(Config) ->
    [begin
         #{exit := 2, stdout := ~"", stderr := Error} =
             witness(Config, ["run", "--spec", data(Config, "small.hml") | Arguments]),
         contains(Error, [Words])
     end || {Arguments, Words} <- [
        {["--app", "inet"],
         ~"there is no application inet on the code path (inet.app; --pa names its folder); did you mean inets?"},
        {["--app", "kernel"], ~"the application kernel is running already"},
        {["--app", "xmerl"], ~"the application xmerl is a library"},
        {["--app", "inets", "--scope", "tree"], ~"option --scope: expected node, for an application"},
        {["--app", "inets", "m:f()"], ~"--app and 'mod:fun(args)' exclude each other"},
        {["--app", ""], ~"--app: the name of an application is expected"},
        {[], ~"'mod:fun(args)', --app APP or --mix DIR is expected"}]].

application(Config, Options, Env) -> witness(Config, application_arguments(Config, Options, Env)).

start_application(Config, Options, Env) ->
    witness_command:start(Config, "/dev/stdout", executable(Config), application_arguments(Config, Options, Env)).

application_arguments(Config, Options, Env) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "application.config"),
    ok = file:write_file(File, io_lib:format("~p.~n", [[{cli_application, Env}]])),
    ["run", "--pa", proplists:get_value(ebin, Config), "--config", File, "--app", "cli_application" | specs(Config, Options)].

%%% Projects of Mix

a_mix_project_is_compiled_and_configured(Config) ->
    #{exit := 0, stdout := Text, stderr := Compiled} = mix(Config, [], ["Parrot.ask(2)"]),
    contains(Text, [~"says {:dev, \"runtime\", 2}", ~"monitors  1, 2 slices: 2 satisfied", ~"OK: nothing was violated."]),
    %% Elixir's Logger has been started, and writes where the logger does.
    contains(Compiled, [~"Generated parrot app", ~"a report"]),
    ?assertEqual(nomatch, binary:match(Text, ~"a report")),
    %% Now it is compiled, and Mix is silent. Another environment has a build of its own, wherever that is.
    #{exit := 0, json := Lines, stderr := Again} = lines(mix(Config, [], ["--json", "Parrot.ask(1)"])),
    ?assertMatch(#{~"type" := ~"summary", ~"verdicts" := #{~"yes" := 1}}, lists:last(Lines)),
    ?assertEqual(nomatch, binary:match(Again, ~"Generated")),
    Build = filename:join(proplists:get_value(priv_dir, Config), "parrot_build"),
    #{exit := 0, stdout := Production} =
        mix(Config, [{"MIX_ENV", "prod"}, {"MIX_BUILD_PATH", Build}], ["Parrot.ask(1)"]),
    contains(Production, [~"says {:prod, \"runtime\", 1}"]),
    ?assert(filelib:is_regular(filename:join(Build, "lib/parrot/ebin/parrot.app"))).

the_application_of_a_mix_project_is_started(Config) ->
    [begin
         #{exit := 0, stdout := Text} = mix(Config, [], ["--for", "2" | Named]),
         contains(Text, [~"system    parrot still ran", ~"monitors  1: 1 undecided"])
     end || Named <- [[], ["--app", "parrot"]]],
    %% In the folder itself, too.
    Project = proplists:get_value(project, Config),
    #{exit := 0, stdout := Here} =
        execute([{cd, Project} | Config], executable(Config),
                ["run", "--mix", ".", "--spec", "answers.hml", "Parrot.ask(1)"]),
    contains(Here, [~"monitors  1, 1 slice: 1 satisfied"]).

an_umbrella_project_needs_a_name(Config) ->
    Umbrella = filename:join(proplists:get_value(priv_dir, Config), "umbrella"),
    write(Umbrella, "mix.exs", "defmodule Umbrella.MixProject do\n  use Mix.Project\n"
                               "  def project, do: [apps_path: \"apps\", deps: []]\nend\n"),
    [write_project(filename:join([Umbrella, "apps", Name]), Name) || Name <- ["parrot", "cuckoo"]],
    Spec = filename:join(Umbrella, "apps/parrot/answers.hml"),
    #{exit := 2, stderr := Error} = witness(Config, ["run", "--mix", Umbrella, "--spec", Spec]),
    contains(Error, [~"the project has the applications cuckoo and parrot: name one with --app"]),
    #{exit := 0, stdout := Text} = witness(Config, ["run", "--mix", Umbrella, "--spec", Spec, "--app", "parrot", "--for", "2"]),
    contains(Text, [~"system    parrot still ran"]).

a_mix_project_that_is_wrong_is_named(Config) ->
    Folder = proplists:get_value(priv_dir, Config),
    Broken = filename:join(Folder, "broken"),
    write_project(Broken, "parrot"),
    write(Broken, "lib/broken.ex", "defmodule Broken do\n  def f(, do: 1\nend\n"),
    Missing = filename:join(Folder, "missing"),
    write_project(Missing, "parrot"),
    write(Missing, "mix.exs", "defmodule Missing.MixProject do\n  use Mix.Project\n"
                              "  def project, do: [app: :parrot, version: \"1.0.0\", deps: [{:nowhere, path: \"../nowhere\"}]]\nend\n"),
    [begin
         #{exit := 2, stdout := ~"", stderr := Error} =
             witness(Config, ["run", "--mix", Project, "--spec", data(Config, "small.hml")]),
         contains(Error, Words)
     end || {Project, Words} <- [
        {filename:join(Folder, "nowhere"), [~"--mix: there is no folder "]},
        {Folder, [~"--mix: there is no mix.exs in "]},
        {Broken, [~"lib/broken.ex", ~"--mix: the project does not compile"]},
        {Missing, [~"--mix: ", ~"nowhere"]}]].

mix(Config, Environment, Arguments) ->
    Project = proplists:get_value(project, Config),
    Variables = [lists:flatten([Name, $=, Value]) || {Name, Value} <- Environment],
    Witness = ["run", "--mix", Project, "--spec", filename:join(Project, "answers.hml") | Arguments],
    execute(Config, "/usr/bin/env", Variables ++ [executable(Config) | Witness]).

project(Folder) ->
    Project = filename:join(Folder, "parrot"),
    write_project(Project, "parrot"),
    Project.

%% A server that says how it was configured, when the project was compiled and when it was started.
write_project(Folder, Name) ->
    Module = [string:to_upper(hd(Name)) | tl(Name)],
    Replace = fun(Text) -> string:replace(string:replace(Text, "Parrot", Module, all), "parrot", Name, all) end,
    [write(Folder, File, unicode:characters_to_binary(Replace(Text))) || {File, Text} <- [
        {"mix.exs", ~"""
         defmodule Parrot.MixProject do
           use Mix.Project
           def project, do: [app: :parrot, version: "1.0.0", deps: []]
           def application, do: [mod: {Parrot.Application, []}, extra_applications: [:logger]]
         end
         """},
        {"config/config.exs", ~"""
         import Config
         config :parrot, compiled: config_env()
         """},
        {"config/runtime.exs", ~"""
         import Config
         config :parrot, started: "runtime"
         """},
        {"lib/parrot.ex", ~"""
         defmodule Parrot.Application do
           use Application
           require Logger

           def start(_, _) do
             Logger.error("a report")
             Supervisor.start_link([Parrot], strategy: :one_for_one)
           end
         end

         defmodule Parrot do
           use GenServer
           def start_link(arg), do: GenServer.start_link(__MODULE__, arg, name: __MODULE__)
           def init(arg), do: {:ok, arg}

           def handle_call({:say, n}, _, state) do
             {:reply, {Application.get_env(:parrot, :compiled), Application.get_env(:parrot, :started), n}, state}
           end

           def ask(times), do: for(n <- 1..times, do: IO.puts("says #{inspect(GenServer.call(__MODULE__, {:say, n}))}"))
         end
         """},
        {"answers.hml", ~"""
         says_what_it_is_told: with Parrot.init(_)
         per From over _ ? call(From, {say, _}), _ : _ ! reply(From, _)
         check [_ ? call(From, {say, N})] <_ : _ ! reply(From, {_, _, N})> tt.
         """}]].

write(Folder, Name, Text) ->
    File = filename:join(Folder, Name),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Text).

%%% Wrong usage and bad input

wrong_usage_ends_with_2(Config) ->
    Cookie = filename:join(proplists:get_value(priv_dir, Config), "cookie"),
    ok = file:write_file(Cookie, ~"cookie"),
    ok = file:change_mode(Cookie, 8#400),
    [begin
         #{exit := 2, stdout := ~"", stderr := Error} = witness(Config, Arguments),
         contains(Error, Words)
     end || {Arguments, Words} <- [
        {[], [~"a command is expected", ~"compile"]},
        {["rewind"],
         [~"there is no command 'rewind'", ~"demo, run, check, record, replay, search, attach, compile, format, explore, log, bench and report"]},
        {["run", "--quick", "m:f()"], [~"there is no option --quick"]},
        {["run", "--for", "x", "m:f()"], [~"--for SECONDS is expected"]},
        {["run", "--instrument", "inline", "cli_system:returns()"], [~"--spec", ~"--monitor"]},
        {["run", "--check", "crashes,hangs", "m:f()"], [~"--check LIST is expected", ~"crashes,hangs", ~"deadlock, mailboxes and leaks"]},
        {["check", "-"], [~"--spec", ~"--check crashes"]},
        {["attach", "a@b", "--cookie-file", Cookie], [~"--check deadlock,calls,mailboxes"]},
        {["attach", "a@b", "--cookie-file", Cookie, "--check", "crashes"],
         [~"witness attach: option --check:", ~"only calls, late, deadlock, mailboxes and leaks",
          ~"not crashes, since processes that are not watched may handle a crash"]},
        {["check", "--check", "deadlock", "-"], [~"option --check: expected crashes, calls, late or restarts"]},
        {["run", "--spec", "x.hml"], [~"'mod:fun(args)'"]}]].

a_missing_module_is_named(Config) ->
    refused(Config, ["--spec", small], "no_such_module:main()", [~"no_such_module", ~"--pa"]).

a_wrong_arity_lists_the_right_ones(Config) ->
    refused(Config, ["--spec", small], "cli_system:answers()", [~"cli_system does not export answers/0", ~"answers/1"]).

a_syntax_error_of_the_call_is_pointed_at(Config) ->
    refused(Config, ["--spec", small], "cli_system:answers([1 2])",
            [~"\n  cli_system:answers([1 2])\n                        ^\n"]).

a_log_that_cannot_be_written_is_named(Config) ->
    [refused(Config, ["--spec", small, "--log", Log], "cli_system:answers([10])", [list_to_binary(Log), Why])
     || {Log, Why} <- [{"/no/such/folder/a.log", ~"no such file or directory"}, {"a.jsonl.gz", ~"without .gz"}]].

a_missing_specification_is_named(Config) ->
    refused(Config, ["--spec", "no_such_file.hml"], "cli_system:returns()", [~"no_such_file.hml"]).

a_malformed_specification_is_pointed_at(Config) ->
    refused(Config, ["--spec", malformed], "cli_system:returns()", [~"malformed.hml:3:", ~"error", ~"^"]).

a_monitor_without_callbacks_is_refused(Config) ->
    refused(Config, ["--monitor", "cli_system:server/0=cli_system"], "cli_system:returns()",
            [~"cli_system", ~"init/3", ~"handle_event/2"]),
    refused(Config, ["--monitor", "cli_system:server/0=no_such_monitor"], "cli_system:returns()", [~"no_such_monitor"]).

a_missing_folder_is_named(Config) ->
    refused(Config, ["--pa", "no/such/folder", "--spec", small], "cli_system:returns()", [~"--pa", ~"no/such/folder"]),
    refused(Config, ["-I", "no/such/folder", "--spec", small], "cli_system:returns()",
            [~"--include", ~"no/such/folder"]),
    #{exit := 2, stderr := Error} = witness(Config, ["compile", "--pa", "no/such/folder", data(Config, "small.hml")]),
    contains(Error, [~"witness compile: --pa: there is no folder no/such/folder"]).

forms_for_other_programs_come_one_at_a_time(Config) ->
    [begin
         #{exit := 2, stdout := ~"", stderr := Error} =
             witness(Config, ["compile" | Options] ++ [data(Config, File) || File <- ["small.hml" | Others]]),
         contains(Error, [Words])
     end || {Options, Others, Words} <- [{["--dot", "--erlang"], [], ~"--erlang and --dot exclude each other"},
                                         {["--mermaid"], ["nobody.hml"], ~"--mermaid draws one file"}]].

a_broken_configuration_is_named(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "broken.config"),
    ok = file:write_file(File, "[{cli_system,\n [{a 1}]}]."),
    refused(Config, ["--config", File, "--spec", small], "cli_system:returns()", [~"broken.config:2"]).

what_does_not_exist_yet_is_refused(Config) ->
    refused(Config, ["--instrument", "elsewhere", "--spec", small], "cli_system:returns()", [~"--instrument", ~"inline"]),
    refused(Config, ["--source", "log", "--spec", small], "cli_system:returns()", [~"--source", ~"evm"]).

refused(Config, Options, Call, Words) ->
    #{exit := 2, stdout := ~"", stderr := Error} = run(Config, Options, Call),
    contains(Error, Words).

%%% No result

a_signature_that_no_process_had_gives_no_result(Config) ->
    #{exit := 3, stdout := Text, stderr := Early} = run(Config, ["--spec", nobody], "cli_system:answers([1])"),
    contains(Text, [~"warning: ", ~"no_such_module:loop(_)", ~"NO RESULT: nothing was monitored."]),
    contains(Early, [~"nobody.hml:1:13: warning: there is no module `no_such_module` on the code path\n"]).

a_system_that_is_no_longer_watched_goes_on_to_its_end(Config) ->
    [begin
         #{exit := 3, stdout := Text} = run(Config, ["--source", Source, "--spec", small], "cli_system:outlives()"),
         contains(Text, [~"still there\n", ~"NO RESULT"])
     end || Source <- ["native", "evm"]].

a_system_that_crashes_gives_no_result(Config) ->
    #{exit := 3, stdout := Text} = run(Config, ["--spec", small], "cli_system:crashes()"),
    contains(Text, [~"boom", ~"NO RESULT"]).

a_system_that_halts_the_vm_gives_no_result(Config) ->
    [begin
         #{exit := 3, stderr := Error} =
             run(Config, ["--spec", small], ["cli_system:halts(", integer_to_list(Status), ")"]),
         contains(Error, [~"before the run did"])
     end || Status <- [0, 1]].

%%% compile, demo, help

compile_lists_properties(Config) ->
    #{exit := 0, stdout := Text, stderr := ~""} =
        witness(Config, ["compile", data(Config, "small.hml"), data(Config, "nobody.hml")]),
    contains(Text, [~"small.hml: 1 property", ~"line 3  one_digit  with cli_system:server()", ~"nobody.hml: 1 property"]).

compile_prints_erlang_that_compiles(Config) ->
    #{exit := 0, stdout := Source} = witness(Config, ["compile", "--erlang", data(Config, "small.hml")]),
    File = filename:join(proplists:get_value(priv_dir, Config), "generated.erl"),
    ok = file:write_file(File, Source),
    {ok, Forms} = epp:parse_file(File, []),
    {ok, _, _} = compile:forms(Forms, [binary]).

compile_tells_errors_with_their_place(Config) ->
    #{exit := 2, stdout := Text, stderr := Error} =
        witness(Config, ["compile", data(Config, "malformed.hml"), data(Config, "small.hml"), "no_such_file.hml"]),
    contains(Text, [~"small.hml: 1 property"]),
    contains(Error, [~"malformed.hml:3:", ~"^", ~"no_such_file.hml"]).

compile_gives_json(Config) ->
    #{exit := 2, json := [Diagnostic, Specification]} =
        lines(witness(Config, ["compile", "--json", data(Config, "malformed.hml"), data(Config, "small.hml")])),
    ?assertMatch(#{~"type" := ~"diagnostic", ~"severity" := ~"error", ~"line" := 3, ~"column" := _}, Diagnostic),
    ?assertMatch(#{~"type" := ~"specification", ~"properties" := [#{~"name" := ~"one_digit", ~"line" := 3}]}, Specification).

compile_draws_what_programs_read(Config) ->
    File = data(Config, "small.hml"),
    #{exit := 0, stdout := <<"digraph ", _/binary>> = Dot} = witness(Config, ["compile", "--dot", File]),
    contains(Dot, [~"s1 -> s2", ~"peripheries=2", ~"one_digit: with cli_system:server()"]),
    #{exit := 0, stdout := <<"flowchart ", _/binary>> = Mermaid} = witness(Config, ["compile", "--mermaid", File]),
    contains(Mermaid, [~"s1 -->|", ~"violated1"]),
    #{exit := 0, json := [Line]} = lines(witness(Config, ["compile", "--json", "--dot", "--mermaid", File])),
    ?assertEqual(#{~"dot" => Dot, ~"mermaid" => Mermaid, ~"erlang" => null},
                 maps:with([~"dot", ~"mermaid", ~"erlang"], Line)).

%% Without --pa nothing is known of the system.
compile_warns_of_functions_that_modules_do_not_have(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "misspelt.hml"),
    ok = file:write_file(File, "with cli_system:servr() check [_ <- _, _] [_ ? never] ff."),
    #{exit := 0, stderr := ~""} = witness(Config, ["compile", File]),
    #{exit := 0, stderr := Warning} = witness(Config, ["compile", "--pa", proplists:get_value(ebin, Config), File]),
    contains(Warning, [~"misspelt.hml:1:17: warning: the module `cli_system` has no function `servr/0`"]),
    #{exit := 0, json := [Diagnostic, _]} =
        lines(witness(Config, ["compile", "--json", "--pa", proplists:get_value(ebin, Config), File])),
    ?assertMatch(#{~"severity" := ~"warning", ~"line" := 1, ~"column" := 17, ~"end_column" := 22, ~"code" := _,
                   ~"hint" := _}, Diagnostic).

compile_tries_a_log_of_standard_input(Config) ->
    #{exit := 0, stdout := Text, stderr := ~""} =
        execute(Config, "/bin/sh", ["-c", "printf 'init(\"s\",_,{cli_system,server,[]})\\nrecv(\"s\",{never,1})\\n' | \"$@\"", "sh",
                                    executable(Config), "compile", "--try", "-", tried(Config)]),
    contains(Text, [~"standard input: 2 events of 1 process\n", ~"never matched (2 events)  _ ? never",
                    ~"another shape, the same words: standard input:2: s ? {never,1}"]).

%% The first block is there before the file changes.
compile_watches_its_files_until_an_interrupt(Config) ->
    File = tried(Config),
    Port = witness_command:start(Config, "/dev/stdout", executable(Config), ["compile", "--watch", File]),
    First = witness_command:until(Port, ~"tried.hml: 1 property\n", ~""),
    ok = file:write_file(File, "with cli_system:server() check ["),
    _ = witness_command:until(Port, ~"error: ", ~""),
    ok = file:write_file(File, "with cli_system:server() check [_ <- _, _] ff."),
    _ = witness_command:until(Port, ~"tried.hml: 1 property\n", ~""),
    signal(Port, "INT"),
    ?assertMatch({0, _}, witness_command:collect(Port, First)).

tried(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "tried.hml"),
    ok = file:write_file(File, "with cli_system:server() check [_ <- _, _] [_ ? never] [_ ? _] ff."),
    File.

the_demonstration_finds_its_bug(Config) ->
    #{exit := 0, stdout := Text} = witness(Config, ["demo"]),
    contains(Text, [~"VIOLATION of one_ticket_a_seat", ~"booked", ~"VIOLATED", ~"To go on:"]).

the_demonstration_gives_json(Config) ->
    #{exit := 0, json := Lines} = lines(witness(Config, ["demo", "--json"])),
    ?assertMatch([#{~"name" := ~"one_ticket_a_seat"}], [Line || #{~"verdict" := ~"no"} = Line <- Lines]),
    ?assertMatch(#{~"type" := ~"summary"}, lists:last(Lines)).

help_and_version_need_no_system(Config) ->
    [begin
         #{exit := 0, stdout := Text, stderr := ~""} = witness(Config, Arguments),
         contains(Text, Words)
     end || {Arguments, Words} <- [{["--help"], [~"run", ~"compile", ~"demo"]}, {["run", "--help"], [~"--no-halt"]},
                                   {["compile", "--help"], [~"--erlang"]}, {["demo", "--help"], [~"Exit codes"]},
                                   {["--version"], [~"witness 0."]}]].

%%% Running

run(Config, Options, Call) ->
    witness(Config, ["run", "--pa", proplists:get_value(ebin, Config) | specs(Config, Options)] ++ [Call]).

json(Config, Options, Call) -> lines(run(Config, ["--json" | Options], Call)).

%% Atoms name specifications of cli_data.
specs(Config, Options) ->
    [case Option of
         _ when is_atom(Option) -> data(Config, atom_to_list(Option) ++ ".hml");
         _ -> Option
     end || Option <- Options].

data(Config, Name) -> filename:join(proplists:get_value(data, Config), Name).

lines(#{stdout := Output} = Run) ->
    Run#{json => [json:decode(Line) || Line <- binary:split(Output, ~"\n", [global, trim_all])]}.

executable(Config) -> filename:join([proplists:get_value(root, Config), "bin", "witness"]).

witness(Config, Arguments) -> execute(Config, executable(Config), Arguments).

execute(Config, Program, Arguments) -> witness_command:run(Config, Program, Arguments).

start_run(Config, Options, Call) ->
    witness_command:start(Config, "/dev/stdout", executable(Config),
          ["run", "--pa", proplists:get_value(ebin, Config) | specs(Config, Options)] ++ [Call]).

%% All processes of a group have it.
signal(Port, {group, Signal}) -> witness_command:signal_group(Port, Signal);
signal(Port, Signal) -> witness_command:signal(Port, Signal).
