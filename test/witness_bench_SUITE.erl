-module(witness_bench_SUITE).
-moduledoc """
`witness bench` as a user has it: `bin/witness` as a process of the operating system, the tables that it prints, and
the raw data that it leaves.
""".

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([smoke_measures_every_mode/1, tracers_and_memory_follow_the_load/1, an_interrupted_experiment_goes_on/1,
         a_killed_experiment_goes_on/1,
         another_tool_is_measured_beside_ours/1, an_unsound_benchmark_gives_no_result/1, wrong_input_is_refused/1,
         ready_made_experiments_are_listed_and_shown/1]).

-include_lib("stdlib/include/assert.hrl").

-import(witness_command, [collect/2, until/3, contains/2]).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [smoke_measures_every_mode, tracers_and_memory_follow_the_load, an_interrupted_experiment_goes_on, a_killed_experiment_goes_on,
     another_tool_is_measured_beside_ours, an_unsound_benchmark_gives_no_result, wrong_input_is_refused,
     ready_made_experiments_are_listed_and_shown].

init_per_suite(Config) ->
    Root = witness_checkout:root(proplists:get_value(data_dir, Config)),
    Ready = [{root, Root} | Config],
    #{exit := 0} = witness(Ready, ["--version"]),
    Ready.

end_per_suite(_) -> ok.

smoke_measures_every_mode(Config) ->
    #{exit := 0, stdout := Text, stderr := Progress} = witness(Config, ["bench", "smoke"]),
    Modes = witness_bench_witness:modes(),
    [contains(Text, [<<"\n  ", (atom_to_binary(Mode))/binary>>]) || Mode <- Modes],
    contains(Text, [~"steady, n = 300, w = 20, t = 1 (0.5 s); 1 repetition\n", ~"burst, n = 300", ~"Raw data: smoke.bench"]),
    contains(Progress, [~"14 benchmarks", ~" left\n", ~"14/14 "]),
    Folder = filename:join(proplists:get_value(priv_dir, Config), "smoke.bench"),
    {ok, Results} = file:read_file(filename:join(Folder, "results.csv")),
    {ok, Rows} = witness_bench_result:parse(Results),
    ?assertEqual(lists:sort([{Shape, atom_to_binary(Mode)} || Shape <- [~"steady", ~"burst"], Mode <- Modes]),
                 lists:sort([{Shape, Mode} || #{shape := Shape, mode := Mode} <- Rows])),
    [begin
         ?assertMatch(#{status := ok, sound := ~"true", gaps := 0, members := 300, response_count := Count} when Count > 0, Row),
         %% Each mode had the identical workload.
         ?assertEqual({Shape, maps:get(Shape, messages(Rows))}, {Shape, Messages}),
         ok = monitored(Row),
         {ok, Samples} = file:read_file(filename:join([Folder, "samples", <<Id/binary, ".csv">>])),
         ?assert(length(binary:split(Samples, ~"\n", [global, trim])) > 2),
         {ok, Responses} = file:read_file(filename:join([Folder, "responses", <<Id/binary, ".csv">>])),
         ?assertMatch(<<"low_ns,high_ns,count\n", _, _/binary>>, Responses)
     end || #{id := Id, shape := Shape, messages := Messages} = Row <- Rows],
    {ok, Platform} = file:read_file(filename:join(Folder, "platform.json")),
    #{~"otp" := _, ~"erts" := _, ~"cores" := _, ~"native" := _} = json:decode(Platform),
    %% All is there: the same command shows it again.
    #{exit := 0, stdout := Text, stderr := Again} = witness(Config, ["bench", "smoke"]),
    ?assertEqual(nomatch, binary:match(Again, ~"/14")),
    ?assertEqual({ok, Results}, file:read_file(filename:join(Folder, "results.csv"))).

messages(Rows) -> #{Shape => Messages || #{shape := Shape, mode := ~"untraced", messages := Messages} <- Rows}.

%% A worker is spawned, is born, gets and sends messages, and ends; so does the master, which `inline_members' leaves out.
monitored(#{mode := ~"untraced", events := 0}) -> ok;
monitored(#{mode := ~"inline_members", messages := Messages, analysed := Analysed, yes := 300, no := 0, inconclusive := 0}) ->
    ?assertEqual(Messages + 2 * 300, Analysed);
monitored(#{mode := Mode, messages := Messages, analysed := Analysed, yes := 301, no := 0, inconclusive := 0}) ->
    ?assertEqual({Mode, 2 * Messages + 3 * 300 + 2}, {Mode, Analysed}).

%% More than the machine can do at once, so that members, and their tracers, are alive at the same time.
tracers_and_memory_follow_the_load(Config) ->
    Modes = [Mode || Mode <- [~"outline_evm", ~"outline_native"],
                     Mode =:= ~"outline_evm" orelse witness_trace_native:available() =:= ok],
    File = experiment(Config, ~"elastic", #{~"modes" => Modes, ~"shapes" => [~"burst"], ~"steps" => [500], ~"interval_ms" => 20,
                                            ~"model" => #{~"t" => 1, ~"period_ms" => 200, ~"w" => 100, ~"work_us" => 100},
                                            ~"tables" => [~"elasticity"]}),
    #{exit := 0, stdout := Text} = witness(Config, ["bench", File]),
    [contains(Text, [<<"  ", Mode/binary, " ">>]) || Mode <- Modes],
    Folder = filename:join(proplists:get_value(priv_dir, Config), "elastic.bench"),
    {ok, Rows} = rows(Folder),
    [begin
         #{members := Most, tracers := Peak, memory := {First, Highest, Last}} =
             witness_bench_evaluate:elasticity(witness_bench_store:sampled(#{folder => Folder, rows => []}, Id)),
         ?assert(Most > 50, Row),
         ?assert(Tracers >= Peak, Row),
         ?assert(Tracers > 50, Row),
         %% When the last monitor is done, memory goes back; how much by then is up to the collections of those that live on.
         ?assert(Last < Highest, {First, Highest, Last})
     end || #{id := Id, tracers := Tracers} = Row <- Rows],
    ?assertEqual(length(Modes), length(Rows)).

an_interrupted_experiment_goes_on(Config) ->
    goes_on(Config, ~"interrupted", fun(Port) -> witness_command:signal_group(Port, "INT") end, 3).

%% The tool and the shell that started it are killed at once.
a_killed_experiment_goes_on(Config) ->
    goes_on(Config, ~"killed", fun(Port) -> witness_command:signal_group(Port, "KILL") end, 128 + 9).

goes_on(Config, Name, Break, Code) ->
    Experiment = fun(Repetitions) -> experiment(Config, Name, #{~"repetitions" => Repetitions}) end,
    File = Experiment(4),
    Folder = filename:join(proplists:get_value(priv_dir, Config), <<Name/binary, ".bench">>),
    Port = witness_command:start(Config, "/dev/stdout", executable(Config), ["bench", File]),
    %% There are enough left, for seconds, also where this process stands still.
    _ = until(Port, ~"2/8 ", ~""),
    Break(Port),
    {Code, _} = collect(Port, ~""),
    {ok, Before} = rows(Folder),
    ?assert(length(Before) >= 2),
    ?assert(length(Before) < 8),
    #{exit := 0, stdout := Tables} = witness(Config, ["bench", "--tables", File]),
    contains(Tables, [~"steady, n = 50, w = 10, t = 1 (0.3 s); "]),
    %% Another one is not mixed with it.
    #{exit := 2, stderr := Refused} = witness(Config, ["bench", Experiment(2)]),
    contains(Refused, [~"or this one has changed"]),
    #{exit := 0, stderr := Progress} = witness(Config, ["bench", Experiment(4)]),
    contains(Progress, [~"8/8 "]),
    ?assertEqual(nomatch, binary:match(Progress, ~"\n1/8 ")),
    {ok, Rows} = rows(Folder),
    ?assertEqual(8, length(Rows)),
    ?assertEqual(Before, lists:sublist(Rows, length(Before))).

rows(Folder) ->
    {ok, Results} = file:read_file(filename:join(Folder, "results.csv")),
    witness_bench_result:parse(Results).

experiment(Config, Name, Changes) ->
    File = filename:join(proplists:get_value(priv_dir, Config), <<Name/binary, ".json">>),
    Experiment = #{~"name" => Name, ~"modes" => [~"untraced", ~"outline_native"], ~"shapes" => [~"steady"], ~"steps" => [50],
                   ~"model" => #{~"t" => 1, ~"period_ms" => 300, ~"w" => 10}, ~"warmup" => 0, ~"repetitions" => 1,
                   ~"interval_ms" => 100},
    ok = file:write_file(File, json:encode(maps:merge(Experiment, Changes))),
    unicode:characters_to_list(File).

another_tool_is_measured_beside_ours(Config) ->
    File = experiment(Config, ~"beside", #{~"modes" => [~"untraced", #{~"adapter" => ~"bench_adapter"}]}),
    #{exit := 2, stderr := Missing} = witness(Config, ["bench", File]),
    contains(Missing, [~"modes[2].adapter: there is no module bench_adapter on the code path (see --pa)"]),
    #{exit := 0, stdout := Text} = witness(Config, ["bench", "--pa", adapter(Config, 0), File]),
    contains(Text, [~"\n  bench_adapter  sequence"]).

%% Another tool reports that a trace was wrong.
an_unsound_benchmark_gives_no_result(Config) ->
    File = experiment(Config, ~"unsound", #{~"modes" => [~"untraced", #{~"adapter" => ~"bench_adapter"}]}),
    Pa = adapter(Config, 1),
    #{exit := 3, stdout := Text, stderr := Progress} = witness(Config, ["bench", "--pa", Pa, File]),
    contains(Text, [~"Without a result:\n  steady.50.bench_adapter.sequence.r1: UNSOUND: "]),
    contains(Progress, [~"2/2 steady.50.bench_adapter.sequence.r1: UNSOUND: "]),
    %% It stays so, until it is measured again.
    #{exit := 3} = witness(Config, ["bench", "--pa", Pa, File]),
    #{exit := 0} = witness(Config, ["bench", "--again", "--pa", adapter(Config, 0), File]).

%% A tool that observes nothing, and reports so many verdicts `no'.
adapter(Config, No) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), "adapter" ++ integer_to_list(No)),
    ok = filelib:ensure_path(Folder),
    Source = ["-module(bench_adapter). -behaviour(witness_bench_adapter). -export([start/2, await/1, stop/1]).\n"
              "start(_, #{system := {M, F, Args}}) -> {ok, none, spawn(M, F, Args)}.\n"
              "await(none) -> {ok, #{events => 0, gaps => 0, verdicts => #{yes => 51 - ", integer_to_list(No), ", no => ",
              integer_to_list(No), ", inconclusive => 0}}}.\nstop(none) -> ok.\n"],
    File = filename:join(Folder, "bench_adapter.erl"),
    ok = file:write_file(File, Source),
    {ok, bench_adapter} = compile:file(File, [{outdir, Folder}]),
    Folder.

wrong_input_is_refused(Config) ->
    Wrong = experiment(Config, ~"wrong", #{~"steps" => [10, ~"many"]}),
    Occupied = filename:join(proplists:get_value(priv_dir, Config), "occupied"),
    ok = filelib:ensure_path(filename:join(Occupied, "something")),
    [begin
         #{exit := 2, stdout := ~"", stderr := Error} = witness(Config, ["bench" | Arguments]),
         contains(Error, [~"witness bench: ", Said])
     end || {Arguments, Said} <- [
        {[], ~"a ready-made experiment or a file is expected"},
        {["no_such"], ~"'no_such' is neither a file nor a ready-made experiment (see witness bench --list)"},
        {[Wrong], ~"wrong.json: steps[2]: a whole number from 1"},
        {["smoke", "-o", Occupied], ~"occupied: holds something that is no experiment"},
        {["smoke", "--pa", "no_such"], ~"--pa: there is no folder no_such"},
        {["smoke", "laptop"], ~"'laptop' is one argument too many"}]].

ready_made_experiments_are_listed_and_shown(Config) ->
    #{exit := 0, stdout := List} = witness(Config, ["bench", "--list"]),
    [contains(List, [Name]) || Name <- [~"smoke ", ~"laptop ", ~"paper-high ", ~"response-fit "]],
    #{exit := 0, stdout := Shown} = witness(Config, ["bench", "--show", "smoke"]),
    {ok, #{name := ~"smoke"}} = witness_bench_experiment:parse(Shown, ".").

%%% Internal

witness(Config, Arguments) -> witness_command:run(Config, executable(Config), Arguments).

executable(Config) -> filename:join([proplists:get_value(root, Config), "bin", "witness"]).
