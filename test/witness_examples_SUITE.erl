-module(witness_examples_SUITE).
-moduledoc """
Runs `bin/witness run` on every example, as a user does: a process of the operating system, judged by its standard
output, its standard error and its exit code.
""".

-export([all/0, suite/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([
    the_race_of_two_bookings_is_found_and_shown/1,
    bookings_one_at_a_time_violate_nothing/1,
    every_booking_worker_keeps_its_promises/1,
    what_holds_and_what_does_not_are_told_apart_in_one_run/1,
    booking_service_runs_without_witness/1
]).
-export([
    correct_sums_violate_nothing/1,
    a_wrong_sum_is_found/1,
    a_wrong_sum_is_shown_as_text/1,
    correct_answers_violate_nothing/1,
    a_wrong_answer_is_found/1
]).
-export([
    a_lost_elixir_visit_is_found/1,
    safe_elixir_visits_violate_nothing/1,
    the_elixir_counter_does_what_it_is_told/1
]).

-include_lib("stdlib/include/assert.hrl").

-define(RUN_MS, 120_000).

suite() ->
    [{timetrap, {minutes, 5}}].

all() ->
    [{group, http_service}, {group, calculator}, {group, elixir}, {group, evm}].

groups() ->
    [
        {http_service, [], [
            booking_service_runs_without_witness,
            the_race_of_two_bookings_is_found_and_shown,
            bookings_one_at_a_time_violate_nothing,
            every_booking_worker_keeps_its_promises,
            what_holds_and_what_does_not_are_told_apart_in_one_run
        ]},
        {calculator, [], [
            correct_sums_violate_nothing,
            a_wrong_sum_is_found,
            a_wrong_sum_is_shown_as_text,
            correct_answers_violate_nothing,
            a_wrong_answer_is_found
        ]},
        %% The same over the VM's own tracing, which is what there is without native code.
        {evm, [], [{http_service, [], [
            the_race_of_two_bookings_is_found_and_shown,
            what_holds_and_what_does_not_are_told_apart_in_one_run
        ]}, {calculator, [], [
            correct_sums_violate_nothing,
            a_wrong_sum_is_found
        ]}]},
        {elixir, [], [
            a_lost_elixir_visit_is_found,
            safe_elixir_visits_violate_nothing,
            the_elixir_counter_does_what_it_is_told
        ]}
    ].

init_per_suite(Config) ->
    [{root, witness_checkout:root(proplists:get_value(data_dir, Config))} | Config].

end_per_suite(_Config) ->
    ok.

init_per_group(elixir, Config) ->
    case os:find_executable("elixirc") of
        false -> {skip, "there is no elixirc on the path"};
        Compiler -> compile_elixir(Compiler, example(elixir, Config))
    end;
init_per_group(evm, Config) ->
    [{options, ["--source", "evm"]} | Config];
init_per_group(Group, Config) ->
    compile_erlang(example(Group, Config)).

end_per_group(_Group, _Config) ->
    ok.

%%% The booking service

booking_service_runs_without_witness(Config) ->
    #{exit := 0, stdout := Printed} = erl(Config, "http_service_demo:main(), halt()."),
    ?assertMatch({match, _}, re:run(Printed, ~"tickets for anna and bruno, paid 2 times")).

the_race_of_two_bookings_is_found_and_shown(Config) ->
    Run = #{exit := 1, stderr := Printed} = witness(Config, ["bug.hml"], "http_service_demo:main()"),
    ?assertMatch({match, _}, re:run(Printed, ~"tickets for anna and bruno")),
    [Verdict] = verdicts(~"no", Run),
    ?assertMatch(#{~"name" := ~"one_ticket_a_seat", ~"slice" := null, ~"vacuous" := false}, Verdict),
    ?assertMatch({match, _}, re:run(maps:get(~"spec", Verdict), ~"bug\\.hml:3$")),
    ?assertMatch({match, _}, re:run(maps:get(~"signature", Verdict), ~"^seat_server:init\\(")),
    #{~"event" := #{~"kind" := ~"send", ~"text" := Decided}, ~"explanation" := Steps} = Verdict,
    {match, [Seat]} = re:run(Decided, ~"booked,<<\"([0-9A-D]+)\">>", [{capture, all_but_first, binary}]),
    %% The server answers `free` to both passengers before it books the seat for the first: the race.
    ?assertEqual([~"free", ~"free", ~"booked", ~"booked"], answers_about(Seat, Steps)),
    ?assertMatch(#{~"gaps" := 0, ~"verdicts" := #{~"no" := 1, ~"inconclusive" := 0}}, summary(Run)).

bookings_one_at_a_time_violate_nothing(Config) ->
    Run = #{exit := 0} = witness(Config, ["bug.hml"], "http_service_demo:sequential()"),
    ?assertMatch(#{~"no" := 0, ~"yes" := 1, ~"inconclusive" := 0}, maps:get(~"verdicts", summary(Run))).

every_booking_worker_keeps_its_promises(Config) ->
    Run = #{exit := 0} = witness(Config, ["holds.hml"], "http_service_demo:main()"),
    #{~"verdicts" := Verdicts, ~"gaps" := 0, ~"vacuous" := 0, ~"warnings" := []} = summary(Run),
    #{~"no" := 0, ~"yes" := Yes, ~"inconclusive" := 0} = Verdicts,
    %% Three seats are booked in peace and one in the race, by two workers each, and a worker has two promises.
    ?assert(Yes >= 16 andalso Yes rem 4 =:= 0, Verdicts).

what_holds_and_what_does_not_are_told_apart_in_one_run(Config) ->
    Run = #{exit := 1} = witness(Config, ["holds.hml", "bug.hml"], "http_service_demo:main()"),
    ?assertMatch([#{~"name" := ~"one_ticket_a_seat"}], verdicts(~"no", Run)),
    ?assertMatch(#{~"gaps" := 0, ~"verdicts" := #{~"inconclusive" := 0}}, summary(Run)).

%%% The calculator

correct_sums_violate_nothing(Config) ->
    holds(Config, "sum.hml", "calculator_demo:main(correct)").

a_wrong_sum_is_found(Config) ->
    violated(Config, "sum.hml", "calculator_demo:main(buggy)", ~"answer_is_the_sum", ~"{ok,-1}").

a_wrong_sum_is_shown_as_text(Config) ->
    #{exit := 1, stdout := Text} = text(Config, ["sum.hml"], "calculator_demo:main(buggy)"),
    ?assertMatch({match, _}, re:run(Text, ~"answer_is_the_sum")),
    ?assertMatch({match, _}, re:run(Text, ~"\\{add,1,2\\}")),
    ?assertMatch({match, _}, re:run(Text, ~"\\{ok,-1\\}")).

correct_answers_violate_nothing(Config) ->
    holds(Config, "answer.hml", "calculator_demo:main(correct)").

a_wrong_answer_is_found(Config) ->
    violated(Config, "answer.hml", "calculator_demo:main(buggy)", ~"answer_follows", ~"{ok,-1}").

%%% Elixir

a_lost_elixir_visit_is_found(Config) ->
    violated(Config, "bug.hml", "'Elixir.CounterDemo':lossy()", ~"counts_rise", ~"{:count,").

safe_elixir_visits_violate_nothing(Config) ->
    holds(Config, "bug.hml", "'Elixir.CounterDemo':safe()").

the_elixir_counter_does_what_it_is_told(Config) ->
    holds(Config, "holds.hml", "'Elixir.CounterDemo':lossy()").

%%% What a run said

holds(Config, Spec, Call) ->
    Run = #{exit := 0} = witness(Config, [Spec], Call),
    #{~"no" := 0, ~"yes" := Yes, ~"inconclusive" := 0} = maps:get(~"verdicts", summary(Run)),
    ?assert(Yes > 0),
    ?assertMatch(#{~"gaps" := 0, ~"vacuous" := 0, ~"warnings" := []}, summary(Run)).

violated(Config, Spec, Call, Name, Culprit) ->
    Run = #{exit := 1} = witness(Config, [Spec], Call),
    [#{~"name" := Name, ~"event" := #{~"text" := Decided}, ~"explanation" := [_ | _]}] = verdicts(~"no", Run),
    ?assertNotEqual(nomatch, binary:match(Decided, Culprit)),
    ?assertMatch(#{~"gaps" := 0, ~"verdicts" := #{~"no" := 1, ~"inconclusive" := 0}}, summary(Run)).

verdicts(Which, #{json := Lines}) ->
    [Line || #{~"type" := ~"verdict", ~"verdict" := Verdict} = Line <- Lines, Verdict =:= Which].

summary(#{json := Lines}) ->
    #{~"v" := 1, ~"type" := ~"summary"} = lists:last(Lines).

%% What the seat server answered about one seat, oldest first, as far as the explanation reaches back.
answers_about(Seat, Steps) ->
    Answer = <<"\\{(free|booked|taken),<<\"", Seat/binary, "\">>">>,
    [
        What
     || #{~"kind" := ~"send", ~"text" := Text} <- Steps,
        {match, [What]} <- [re:run(Text, Answer, [{capture, all_but_first, binary}])]
    ].

%%% Running

%% With --json: standard output is nothing but JSON, one object a line.
witness(Config, Specs, Call) ->
    Run = #{stdout := Output} = run_witness(Config, ["--json"], Specs, Call),
    Run#{json => [json:decode(Line) || Line <- binary:split(Output, ~"\n", [global, trim_all])]}.

text(Config, Specs, Call) ->
    run_witness(Config, [], Specs, Call).

run_witness(Config, Options, Specs, Call) ->
    Paths = lists:append([["--pa", Path] || Path <- proplists:get_value(paths, Config)]),
    Folder = proplists:get_value(example, Config),
    SpecOptions = lists:append([["--spec", filename:join(Folder, Spec)] || Spec <- Specs]),
    Witness = filename:join([proplists:get_value(root, Config), "bin", "witness"]),
    Given = proplists:get_value(options, Config, []),
    execute(Config, Witness, ["run"] ++ Given ++ Options ++ Paths ++ SpecOptions ++ [Call]).

erl(Config, Expression) ->
    Paths = lists:append([["-pa", Path] || Path <- proplists:get_value(paths, Config)]),
    execute(Config, filename:join(otp_bin(), "erl"), ["-noshell"] ++ Paths ++ ["-eval", Expression]).

%% A port cannot tell the two outputs of a program apart, so a shell sends one of them to a file.
execute(Config, Program, Arguments) ->
    Number = integer_to_list(erlang:unique_integer([positive])),
    ErrorFile = filename:join(proplists:get_value(priv_dir, Config), "stderr-" ++ Number),
    Port = open_port({spawn_executable, "/bin/sh"}, [
        {args, ["-c", "exec \"$@\" 2>\"$STDERR_FILE\"", "sh", Program | Arguments]},
        {env, [{"STDERR_FILE", ErrorFile}, {"PATH", otp_bin() ++ ":" ++ os:getenv("PATH")}]},
        {cd, proplists:get_value(priv_dir, Config)},
        exit_status,
        binary,
        hide
    ]),
    {Status, Output} = collect(Port, []),
    {ok, Errors} = file:read_file(ErrorFile),
    ct:pal("~ts ~tp~nexit code ~b~n~ts~nstandard error:~n~ts", [Program, Arguments, Status, Output, Errors]),
    #{exit => Status, stdout => Output, stderr => Errors}.

%% The VM puts the folder of its inner programs first on the path; the `erl` there is not for users. With this one in
%% front, what runs outside is the release that runs the suite.
otp_bin() ->
    filename:join(code:root_dir(), "bin").

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, [Output, Data]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Output)}
    after ?RUN_MS -> ct:fail({still_running, iolist_to_binary(Output)})
    end.

%%% Compiling the examples

%% A folder of its own for what is compiled, and the folder of the sources.
example(Name, Config) ->
    Folder = filename:join([proplists:get_value(root, Config), "examples", atom_to_list(Name)]),
    Out = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Name)),
    ok = filelib:ensure_path(Out),
    [{example, Folder}, {paths, [Out]} | Config].

compile_erlang(Config) ->
    [Out] = proplists:get_value(paths, Config),
    Sources = [_ | _] = filelib:wildcard(filename:join(proplists:get_value(example, Config), "*.erl")),
    Options = [debug_info, return, warnings_as_errors, {outdir, Out}],
    [{ok, _, []} = compile:file(Source, Options) || Source <- Sources],
    Config.

compile_elixir(Compiler, Config) ->
    [Out] = proplists:get_value(paths, Config),
    Source = filename:join(proplists:get_value(example, Config), "counter.ex"),
    #{exit := 0} = execute(Config, Compiler, ["--warnings-as-errors", "-o", Out, Source]),
    Elixir = os:find_executable("elixir"),
    #{exit := 0, stdout := Lib} = execute(Config, Elixir, ["-e", "IO.puts(:code.lib_dir(:elixir))"]),
    Ebin = filename:join(unicode:characters_to_list(string:trim(Lib)), "ebin"),
    lists:keystore(paths, 1, Config, {paths, [Out, Ebin]}).
