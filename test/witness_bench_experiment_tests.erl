-module(witness_bench_experiment_tests).
-moduledoc "Experiments as they are read, planned, scheduled and kept; what runs a benchmark is a stand-in here.".
-include_lib("eunit/include/eunit.hrl").

-define(MINIMAL, ~B"""
{"name": "mine", "modes": ["untraced", "inline", "outline_native"], "shapes": ["steady", "burst"],
 "steps": [20, 10], "repetitions": 2, "warmup": 0, "model": {"t": 2, "w": 5}}
""").

parsed(Text) ->
    {ok, Experiment} = witness_bench_experiment:parse(Text, "."),
    Experiment.

changed(Changes) ->
    {ok, Minimal} = witness_bench_json:decode(?MINIMAL),
    parsed(iolist_to_binary(json:encode(maps:merge(Minimal, Changes)))).

%%% Reading

what_is_missing_has_its_default_test() ->
    #{analyses := [sequence], repetitions := {fixed, 2}, warmup := 0, schedulers := default, interval_ms := 500,
      sample := 0.1, tables := [overhead], papers := none, steps := [10, 20], variants := [{~"", _}]} = parsed(?MINIMAL),
    #{repetitions := {fixed, 3}, warmup := 1} =
        parsed(~B({"name": "x", "modes": ["inline"], "shapes": ["steady"], "steps": [1]})),
    #{repetitions := {batches, #{batch := 3, most := 9, points := 1}}} = changed(#{~"repetitions" => #{}}).

%% Each with the beginning of what is said.
errors_name_their_place_test_() ->
    {ok, Minimal} = witness_bench_json:decode(?MINIMAL),
    [{unicode:characters_to_list(Begin), fun() ->
        {error, Problem} = witness_bench_experiment:parse(
            case is_map(Wrong) of true -> iolist_to_binary(json:encode(maps:merge(Minimal, Wrong))); false -> Wrong end, "."),
        ?assertEqual(Begin, string:slice(unicode:characters_to_binary(Problem), 0, string:length(Begin)))
    end} || {Wrong, Begin} <- [
        {~"", ~"line 1, column 1: the text ends"},
        {~"{\n \"name\": ,}", ~"line 2, column 10: this is no JSON"},
        {<<"{\n \"ä\": 1 2}"/utf8>>, ~"line 2, column 9: this is no JSON"},
        {~"{}\n {}", ~"line 2, column 2: the end of the text"},
        {~B({"name": "a", "name": "b"}), ~"name: this key stands twice in one object"},
        {~B({"modes": [{"a": {"b": 1}}, {"a": {"c": [], "b": 1, "c": 2}}]}), ~"modes[2].a.c: this key stands twice"},
        {~"[1]", ~"the experiment: an object is expected, not [1]"},
        {#{~"mode" => 1}, ~"mode: there is no such key; did you mean modes?"},
        {#{~"zzz" => 1}, ~"zzz: there is no such key; there are about, analyses"},
        {~B({"modes": ["inline"], "shapes": ["steady"], "steps": [1]}), ~"name: is missing"},
        {#{~"name" => ~"../x"}, ~"name: a name of at most 40 letters"},
        {#{~"modes" => []}, ~"modes: a list of 1 to 20 values is expected, not []"},
        {#{~"modes" => [~"untraced", ~"outlined"]}, ~B(modes[2]: "untraced", "inline_members")},
        {#{~"modes" => [~"x"]}, <<"modes[1]: \"untraced\", \"inline_members\", \"inline\", \"central_native\", "
                                  "\"central_evm\", \"outline_native\", \"outline_evm\" or {\"adapter\": MODULE} is expected, not \"x\"">>},
        {#{~"modes" => [~"inline", ~"inline"]}, ~"modes[2]: stands twice"},
        {#{~"modes" => [#{~"adapter" => ~"no_such_module_here"}]}, ~"modes[1].adapter: there is no module no_such_module_here"},
        {#{~"modes" => [#{~"adapter" => ~"lists"}]}, ~"modes[1].adapter: the module lists is no adapter"},
        {#{~"analyses" => [#{~"microseconds" => -1}]}, ~"analyses[1].microseconds: a number from 0"},
        {#{~"analyses" => [~"x"]}, ~B(analyses[1]: "none", "sequence", "idle_time" or {"microseconds": NUMBER} is expected)},
        {#{~"shapes" => [~"round"]}, ~"shapes[1]: "},
        {#{~"shapes" => [~"steady", #{~"shape" => ~"pulse", ~"spread" => ~"x"}]}, ~"shapes[2].spread: "},
        {#{~"shapes" => [#{~"shape" => ~"file", ~"file" => ~"no_such.csv"}]}, ~"shapes[1].file: "},
        {#{~"shapes" => [~"steady", #{~"shape" => ~"pulse", ~"label" => ~"steady"}]}, ~"shapes[2]: has the label of another"},
        {#{~"steps" => [10, 0]}, ~"steps[2]: a whole number from 1"},
        {#{~"steps" => [10, 20_000_000]}, ~"steps.20000000: "},
        {#{~"steps" => #{~"sizes" => [10]}}, ~"steps.count: is missing"},
        {#{~"model" => #{~"n" => 5}}, ~"model.n: is given by steps"},
        {#{~"steps" => #{~"sizes" => [9, 2], ~"count" => 5}}, ~"steps.count: at most the smallest of sizes, 2, is expected, not 5"},
        {#{~"model" => #{~"w" => -1}}, ~"model.w: a whole number from 1 to 10000000 is expected, not -1"},
        {#{~"model" => #{~"t" => ~"foo"}}, ~B(model.t: a whole number from 1 to 1000000 or "fit" is expected, not "foo")},
        {#{~"model" => #{~"zzz" => 1}}, ~"model.zzz: there is no such key; there are "},
        {#{~"model" => #{~"payload_byte" => 1}}, ~"model.payload_byte: there is no such key; did you mean payload_bytes?"},
        {#{~"model" => #{~"spread" => 10}}, ~"model.spread: is for the shape pulse, in shapes"},
        {#{~"shapes" => [~"steady", #{~"shape" => ~"pulse", ~"pinch" => 10}]}, ~"shapes[2].pinch: is for the shape burst"},
        {#{~"shapes" => [#{~"shape" => ~"pulse", ~"w" => 10}]}, ~"shapes[1].w: there is no such key; there are "},
        {#{~"variants" => [#{~"label" => ~"a", ~"w" => ~"b"}]}, ~"variants[1].w: a whole number"},
        {#{~"variants" => [#{~"label" => ~"a", ~"pinch" => 5}]}, ~"variants[1].pinch: is for the shape burst"},
        {#{~"variants" => [#{~"w" => 1}]}, ~"variants[1].label: is missing"},
        {#{~"variants" => [#{~"label" => ~"a", ~"t" => ~"fit"}]}, ~"variants[1].t: only model.t"},
        {#{~"repetitions" => 0}, ~"repetitions: a whole number from 1"},
        {#{~"repetitions" => #{~"batch" => 5, ~"most" => 4}}, ~"repetitions.most: must be at least one batch"},
        {#{~"tables" => [~"overheads"]}, ~"tables[1]: \"overhead\""},
        {#{~"sample" => 0}, ~"sample: a number from 0.001"}
    ]].

a_byte_order_mark_is_skipped_test() ->
    ?assertEqual(parsed(?MINIMAL), parsed(<<16#FEFF/utf8, (?MINIMAL)/binary>>)).

%% Names of modes, shapes and keys come from files.
a_file_makes_no_atoms_test() ->
    Name = <<"bench_atom_", (integer_to_binary(erlang:unique_integer([positive])))/binary>>,
    [{error, _} = witness_bench_experiment:parse(iolist_to_binary(json:encode(Value)), ".")
     || Value <- [#{Name => Name}, #{~"name" => ~"x", ~"modes" => [Name]},
                  #{~"name" => ~"x", ~"modes" => [#{~"adapter" => Name}]}]],
    ?assertError(badarg, binary_to_existing_atom(Name)).

files_of_arrivals_are_found_beside_the_experiment_test() ->
    witness_folder:with(fun(Folder) ->
        ok = file:write_file(filename:join(Folder, "arrivals.csv"), "5\n5\n"),
        File = filename:join(Folder, "e.json"),
        ok = file:write_file(File, ~B"""
        {"name": "x", "modes": ["untraced"], "steps": [10], "shapes": [{"shape": "file", "file": "arrivals.csv", "label": "day"}]}
        """),
        {ok, Experiment, _} = witness_bench_experiment:read(File),
        [#{id := ~"day.10.untraced.none.r1", t := 2} | _] = witness_bench_experiment:benchmarks(Experiment, 1),
        %% They are part of what the folder is about.
        Results = filename:join(Folder, "results"),
        Open = fun() -> witness_bench_store:open(Results, ~"{}", Experiment, #{}) end,
        {ok, Store} = Open(),
        ?assertNot(filelib:is_dir(Results)),
        {ok, Claimed} = witness_bench_store:claim(Store),
        _ = witness_bench_store:release(Claimed),
        ?assertEqual({ok, ~"5\n5\n"}, file:read_file(filename:join([Results, "arrivals", "day.csv"]))),
        ok = file:delete(filename:join(Results, "experiment.json")),
        ok = file:write_file(filename:join(Results, "experiment.json"), json:encode(maps:get(source, Experiment))),
        {ok, _} = Open(),
        ok = file:write_file(filename:join(Folder, "arrivals.csv"), "5\n6\n"),
        {error, Problem} = Open(),
        ?assertMatch({match, _}, re:run(unicode:characters_to_binary(Problem), "arrivals.csv has changed since"))
    end).

%%% Benchmarks

modes_take_turns_and_see_the_same_model_test() ->
    Experiment = changed(#{~"analyses" => [~"none", #{~"microseconds" => 5}]}),
    First = witness_bench_experiment:benchmarks(Experiment, 1),
    %% Untraced has no analysis: five of each model.
    Turns = [~"untraced.none", ~"inline.none", ~"inline.5us", ~"outline_native.none", ~"outline_native.5us"],
    ?assertEqual([iolist_to_binary([Shape, $., N, $., Turn, ~".r1"])
                  || Shape <- [~"steady", ~"burst"], N <- [~"10", ~"20"], Turn <- Turns],
                 [Id || #{id := Id} <- First]),
    ?assertEqual(4, length(lists:usort([Model || #{model := Model} <- First]))),
    Second = witness_bench_experiment:benchmarks(Experiment, 2),
    ?assertMatch([#{id := ~"steady.10.inline.none.r2"} | _], Second),
    ?assertEqual([Model || #{model := Model} <- lists:sort(First)], [Model || #{model := Model} <- lists:sort(Second)]).

a_free_seed_is_another_one_in_each_repetition_test() ->
    Seeds = fun(Experiment) ->
        [lists:usort([Seed || #{seed := Seed} <- witness_bench_experiment:benchmarks(Experiment, R)]) || R <- [1, 2, 1]]
    end,
    [[A], [B], [A]] = Seeds(changed(#{~"model" => #{~"seed" => ~"free"}})),
    ?assertNotEqual(A, B),
    ?assertEqual([[7], [7], [7]], Seeds(changed(#{~"model" => #{~"seed" => 7}}))).

variants_change_the_model_test() ->
    Experiment = changed(#{~"variants" => [#{~"label" => ~"slow", ~"pr_send" => 0.1}, #{~"label" => ~"quick"}]}),
    Benchmarks = witness_bench_experiment:benchmarks(Experiment, 1),
    ?assertEqual([#{~"t" => 2, ~"w" => 5, ~"pr_send" => 0.1, ~"shape" => ~"steady", ~"n" => 10, ~"seed" => 1}],
                 [Model || #{id := ~"steady.slow.10.inline.sequence.r1", model := Model} <- Benchmarks]),
    ?assertEqual(2 * 2 * 2 * 3, length(Benchmarks)).

sizes_come_to_the_steps_of_their_series_test() ->
    #{steps := [1, 2, 3, 4, 10, 20, 30, 40], sizes := #{4 := [1, 2, 3, 4], 40 := [10, 20, 30, 40]}} =
        changed(#{~"steps" => #{~"sizes" => [4, 40], ~"count" => 4}}).

ready_made_experiments_are_right_test_() ->
    Folder = filename:join(code:priv_dir(witness), "experiments"),
    Files = filelib:wildcard("*.json", Folder),
    ?assertEqual(12, length(Files)),
    [{File, fun() ->
        {ok, #{name := Name, about := About}, _} = witness_bench_experiment:read(filename:join(Folder, File)),
        ?assertEqual(File, binary_to_list(Name) ++ ".json"),
        ?assertNotEqual(~"", About)
    end} || File <- Files].

%% From its parameters alone, on a machine that keeps up.
laptop_takes_about_twenty_minutes_test() ->
    {ok, Experiment, _} = witness_bench_experiment:read(filename:join([code:priv_dir(witness), "experiments", "laptop.json"])),
    {_, #{left_s := Left, sure := true}} =
        witness_bench_schedule:next(Experiment, fun(R) -> witness_bench_experiment:benchmarks(Experiment, R) end, [], []),
    ?assert(Left > 15 * 60),
    ?assert(Left < 25 * 60).

%%% How many repetitions

%% Rows of one cell with these response times; all else is steady.
rows(Times) -> rows(Times, 10).

rows(Times, N) ->
    [#{id => <<"x", (integer_to_binary(N))/binary, ".r", (integer_to_binary(R))/binary>>, status => ok, mode => ~"inline",
       analysis => ~"none", shape => ~"steady", variant => ~"", n => N, repetition => R, response_mean_ns => Time,
       system_memory_mean => 100, system_utilisation => 50.0} || {R, Time} <- lists:enumerate(Times)].

batches_follow_the_coefficient_of_variation_test() ->
    Rule = {batches, #{batch => 3, most => 9, points => 1}},
    Wanted = fun(Rows) -> witness_bench_schedule:wanted(Rule, Rows) end,
    ?assertEqual(3, Wanted([])),
    %% One batch does not show how the coefficient would move.
    ?assertEqual(6, Wanted(rows([10, 10, 10]))),
    ?assertEqual(6, Wanted(rows([10, 10, 10, 10, 10, 10]))),
    ?assertEqual(9, Wanted(rows([10, 10, 10, 10, 10, 11]))),
    ?assertEqual(9, Wanted(rows([10, 10, 10, 10, 10, 11, 30, 10, 10]))),
    %% Every step counts.
    ?assertEqual(9, Wanted(rows([10, 10, 10, 10, 10, 10], 1) ++ rows([10, 10, 10, 10, 10, 11], 2))).

%% The coefficients of 10, 10, 13 and of 10, 10, 13, 10, 10, 13 are 15.746 and 14.084 per cent.
the_movement_is_that_of_the_coefficients_test() ->
    Movement = witness_bench_schedule:movement(rows([10, 10, 13, 10, 10, 13]), 3, 6),
    ?assert(abs(Movement - 100 * math:sqrt(2 / 121) * abs(math:sqrt(3 / 2) - math:sqrt(6 / 5))) < 1.0e-9).

what_could_not_be_measured_does_not_count_test() ->
    Failed = [Row#{status := failed} || Row <- rows([10, 10, 10, 10, 10, 1000])],
    ?assertEqual(0.0, witness_bench_schedule:movement(Failed, 3, 6)).

%%% Conducting, with a stand-in that needs no node

result(Config) -> result(Config, 1).

result(#{model := #{~"n" := N}, mode := Mode}, Factor) ->
    Cost = case Mode of untraced -> 1; inline -> 2; _ -> 3 end,
    {ok, #{duration_ms => 1000.0, done_ms => 1000.0 + Cost, members => N, gaps => 0, sound => true, trouble => [~"a, \"b\""],
           response => #{mean_ns => N * Cost * Factor * 1000, p99 => N * 5000, count => 2, histogram => [[1000, 1999, 2]]},
           lag => #{mean_ns => 5, p99 => 9, max => 10},
           windows => #{system => #{memory_mean => 100.0 + Cost, utilisation => 10.0 * Cost}}}}.

conduct(Experiment, Store, Run) -> conduct(Experiment, Store, Run, false).

conduct(Experiment, Store, Run, Again) ->
    witness_bench_conduct:run(Experiment, Store, #{run => Run, tell => fun(_) -> ok end, interrupt => interrupt, again => Again}).

open(Folder) -> open(Folder, ?MINIMAL).

open(Folder, Text) ->
    maybe
        {ok, Store} ?= witness_bench_store:open(Folder, Text, parsed(Text), #{cores => 2}),
        {ok, Claimed} ?= witness_bench_store:claim(Store),
        {ok, witness_bench_store:release(Claimed)}
    end.

every_benchmark_has_its_row_test() ->
    witness_folder:with(fun(Folder) ->
        Experiment = parsed(?MINIMAL),
        {ok, Store} = open(Folder),
        Self = self(),
        {done, Done} = conduct(Experiment, Store, fun(Config, Vm) -> Self ! {ran, Config, Vm}, result(Config) end),
        Rows = witness_bench_store:rows(Done),
        ?assertEqual([Id || R <- [1, 2], #{id := Id} <- witness_bench_experiment:benchmarks(Experiment, R)],
                     [Id || #{id := Id} <- Rows]),
        receive {ran, #{mode := untraced, analysis := none, sample := 0.1, interval := 500, samples := Samples}, #{}} ->
            ?assertEqual(~"steady.10.untraced.none.r1.csv.part", unicode:characters_to_binary(filename:basename(Samples)))
        end,
        [#{status := ok, response_mean_ns := 10_000, trouble := ~"a, \"b\"", sound := ~"true", attempt := 1,
           system_utilisation := 10.0, n := 10, t := 2, w := 5, load_ms := 2000} | _] = Rows,
        %% The file says the same, in another node too.
        {ok, Again} = open(Folder),
        ?assertEqual(Rows, witness_bench_store:rows(Again)),
        ?assertEqual([{1000, 1999, 2}], witness_bench_store:histogram(Again, ~"steady.10.untraced.none.r1")),
        {done, _} = conduct(Experiment, Again, fun(_, _) -> error(not_again) end)
    end).

%% An interrupt comes while the fourth runs, which is killed and has no row.
an_interrupted_experiment_goes_on_test() ->
    witness_folder:with(fun(Folder) ->
        Experiment = parsed(?MINIMAL),
        {ok, Store} = open(Folder),
        Self = self(),
        Run = fun(#{samples := File} = Config, _) ->
            case atomics:add_get(persistent_term:get(?MODULE), 1, 1) of
                4 ->
                    ok = file:write_file(File, "half"),
                    Self ! interrupt,
                    receive never -> ok end;
                _ -> result(Config)
            end
        end,
        persistent_term:put(?MODULE, atomics:new(1, [])),
        {interrupted, _} = conduct(Experiment, Store, Run),
        {ok, Reopened} = open(Folder),
        ?assertEqual(3, length(witness_bench_store:rows(Reopened))),
        ?assertEqual([], filelib:wildcard("{.,samples,responses}/*.part", Folder)),
        {done, Done} = conduct(Experiment, Reopened, Run),
        ?assertEqual(24, length(witness_bench_store:rows(Done))),
        ?assertEqual(1 + 24, atomics:get(persistent_term:get(?MODULE), 1)),
        persistent_term:erase(?MODULE)
    end).

%% Whenever it is killed, each file is whole: what is written beside its place does not count.
what_a_killed_tool_leaves_is_no_harm_test() ->
    witness_folder:with(fun(Folder) ->
        {ok, Store} = open(Folder),
        {done, _} = conduct(parsed(?MINIMAL), Store, fun(Config, _) -> result(Config) end),
        [ok = file:write_file(filename:join(Folder, Name), "torn") || Name <- ["results.csv.part", "samples/x.csv.part"]],
        {ok, Again} = open(Folder),
        ?assertEqual(24, length(witness_bench_store:rows(Again))),
        ?assertEqual([], filelib:wildcard("{.,samples}/*.part", Folder))
    end).

folders_that_do_not_fit_are_refused_test() ->
    Refused = fun({error, Problem}) -> unicode:characters_to_binary(Problem) end,
    witness_folder:with(fun(Folder) ->
        {ok, _} = open(Folder),
        Other = binary:replace(?MINIMAL, ~"[20, 10]", ~"[20]"),
        ?assertMatch({match, _}, re:run(Refused(open(Folder, Other)), "of another experiment, or this one has changed")),
        %% Blanks are no change.
        {ok, _} = open(Folder, binary:replace(?MINIMAL, ~"[20, 10]", ~"[20,\n10]")),
        ?assertMatch({match, _}, re:run(Refused(witness_bench_store:open(Folder, ?MINIMAL, parsed(?MINIMAL), #{cores => 3})),
                                        "another platform")),
        ok = file:write_file(filename:join(Folder, "results.csv"), "id,n\nx,y\n"),
        ?assertMatch({match, _}, re:run(Refused(open(Folder)), "results.csv: line 1: "))
    end),
    witness_folder:with(fun(Folder) ->
        ok = file:write_file(filename:join(Folder, "precious"), ""),
        ?assertMatch({match, _}, re:run(Refused(open(Folder)), "holds something that is no experiment")),
        File = filename:join(Folder, "precious"),
        ?assertMatch({match, _}, re:run(Refused(open(File)), "not a directory"))
    end).

%% What runs there is not disturbed.
a_folder_is_used_by_one_at_a_time_test() ->
    witness_folder:with(fun(Folder) ->
        {ok, Store} = open(Folder),
        {ok, Claimed} = witness_bench_store:claim(Store),
        Running = witness_bench_store:samples(Claimed, ~"x"),
        ok = file:write_file(Running, "half"),
        case os:type() of
            {unix, linux} ->
                {error, Problem} = open(Folder),
                ?assertMatch({match, _}, re:run(Problem, "another run of this experiment uses it now")),
                %% Looking is allowed.
                {ok, _} = witness_bench_store:open(Folder, ?MINIMAL, parsed(?MINIMAL), #{cores => 2}),
                ?assert(filelib:is_regular(Running));
            _ -> ok
        end,
        _ = witness_bench_store:release(Claimed),
        {ok, _} = open(Folder)
    end).

what_goes_wrong_is_a_row_test() ->
    witness_folder:with(fun(Folder) ->
        Experiment = parsed(?MINIMAL),
        {ok, Store} = open(Folder),
        Run = fun(#{mode := inline}, _) -> {error, {witness_bench_run, {unsound, ["a trace\nis wrong"]}}};
                 (#{mode := outline_native}, _) -> exit(crash);
                 (Config, _) -> result(Config)
              end,
        {done, Done} = conduct(Experiment, Store, Run),
        {ok, Again} = open(Folder),
        ?assertMatch([{ok, none}, {unsound, ~"the trace was not sound: a trace is wrong"},
                      {failed, <<"it could not be measured: ", _/binary>>} | _],
                     [{Status, maps:get(reason, Row, none)} || #{status := Status} = Row <- witness_bench_store:rows(Again)]),
        %% They are measured again when asked for, and the last row counts.
        {done, _} = conduct(Experiment, Done, fun(_, _) -> error(not_again) end),
        {done, Mended} = conduct(Experiment, Again, fun(Config, _) -> result(Config) end, true),
        ?assertEqual(24 + 16, length(witness_bench_store:rows(Mended))),
        Latest = witness_bench_schedule:latest(witness_bench_store:rows(Mended)),
        ?assertEqual({24, [ok]}, {length(Latest), lists:usort([Status || #{status := Status} <- Latest])}),
        ?assertEqual([1, 2], lists:usort([Attempt || #{attempt := Attempt} <- Latest]))
    end).

a_benchmark_has_its_limit_test() ->
    witness_folder:with(fun(Folder) ->
        Text = iolist_to_binary(json:encode(#{name => x, modes => [inline], shapes => [steady], steps => [10], limit_s => 1,
                                              repetitions => 1, warmup => 0})),
        {ok, Store} = open(Folder, Text),
        {done, Done} = conduct(parsed(Text), Store, fun(_, _) -> receive never -> ok end end),
        ?assertMatch([#{status := failed, reason := ~"not done after 1 s (limit_s)"}], witness_bench_store:rows(Done))
    end).

batches_are_conducted_as_they_are_needed_test() ->
    witness_folder:with(fun(Folder) ->
        {ok, Minimal} = witness_bench_json:decode(?MINIMAL),
        Text = iolist_to_binary(json:encode(Minimal#{~"repetitions" => #{}, ~"steps" => [10], ~"shapes" => [steady]})),
        Count = fun(Name, Run) ->
            {ok, Store} = open(filename:join(Folder, Name), Text),
            {done, Done} = conduct(parsed(Text), Store, Run),
            length(witness_bench_store:rows(Done)) div 3
        end,
        ?assertEqual(6, Count("same", fun(Config, _) -> result(Config) end)),
        %% The second batch differs from the first, so the third is needed.
        Runs = counters:new(1, []),
        ?assertEqual(9, Count("other", fun(#{mode := inline} = Config, _) ->
                                              ok = counters:add(Runs, 1, 1),
                                              result(Config, case counters:get(Runs, 1) of Run when Run =< 3 -> 1; _ -> 7 end);
                                          (Config, _) -> result(Config, 1)
                                       end))
    end).

%%% The loading time that fits

%% A machine that can create so many members a second; for bursts only half as many.
machine(Rate) ->
    fun(#{model := #{~"n" := N, ~"t" := T, ~"shape" := Shape}, mode := untraced}, _) ->
        Load = N / T / case Shape of ~"burst" -> Rate / 2; _ -> Rate end,
        {ok, #{lag => #{max => case Load > 1 of true -> 2_000_000_000; false -> 1_000_000 end},
               windows => #{system => #{utilisation => min(100.0, Load * 69)}}}}
    end.

the_loading_time_is_found_and_kept_test_() ->
    {timeout, 20, fun() ->
        [witness_folder:with(fun(Folder) ->
            Text = iolist_to_binary(json:encode(#{name => x, modes => [inline], shapes => [steady, burst], steps => [1000, 10_000],
                                                  model => #{t => fit}, warmup => 0})),
            {ok, Store} = open(Folder, Text),
            Run = fun(#{mode := inline, model := #{~"t" := T}}, _) -> throw_away(T);
                     (Config, Vm) -> (machine(Rate))(Config, Vm)
                  end,
            {done, Done} = conduct(parsed(Text), Store, Run),
            [T] = lists:usort([T || #{t := T} <- witness_bench_store:rows(Done)]),
            ?assert(T >= max(100, 10_000 / (Rate / 2))),
            ?assert(T =< max(100, 1.16 * 10_000 / (Rate / 2)) + 1),
            {ok, Again} = open(Folder, Text),
            ?assertEqual({ok, T}, witness_bench_capacity:saved(Again))
        end) || Rate <- [50, 1000, 100_000]]
    end}.

throw_away(_) -> {ok, #{}}.

a_machine_that_never_fits_is_told_test() ->
    witness_folder:with(fun(Folder) ->
        Text = iolist_to_binary(json:encode(#{name => x, modes => [inline], shapes => [steady], steps => [10_000],
                                              model => #{t => fit}})),
        {ok, Store} = open(Folder, Text),
        {error, Slow} = conduct(parsed(Text), Store, machine(0.001)),
        ?assertMatch({match, _}, re:run(Slow, "no loading time was found: in 20000 s")),
        {error, Failed} = conduct(parsed(Text), Store, fun(_, _) -> {error, {witness_bench_run, {timeout, 5}}} end),
        ?assertMatch({match, _}, re:run(Failed, "could not be measured: it was not done after 5 ms"))
    end).

%%% Tables

tables_say_what_the_rows_say_test() ->
    witness_folder:with(fun(Folder) ->
        {ok, Store} = open(Folder),
        Experiment = (parsed(?MINIMAL))#{papers := high, tables := witness_bench_experiment:tables()},
        {done, Done} = conduct(Experiment, Store, fun(Config, _) -> result(Config) end),
        Platform = witness_bench_platform:facts(true),
        Text = unicode:characters_to_binary(witness_bench_table:tables(Experiment, witness_bench_store:rows(Done), Platform,
            #{histogram => fun(_) -> [{1000, 1999, 5}, {2000, 2999, 9}, {9000, 9999, 1}] end,
              samples => fun(_) -> samples([{~"system", 0, 1, 10}, {~"system", 8, 5, 90}, {~"system", 4, 3, 50},
                                            {~"monitors", 0, 6, 20}]) end})),
        [?assertMatch({_, _}, binary:match(squeezed(Text), Part), Part)
         || Part <- [~"steady, n = 20, w = 5, t = 2 (2 s); 2 repetitions\n",
                     ~" in per cent: the median, and the least and the largest\n",
                     ~" inline sequence +100 +1.0 +100 +0.1\n", ~" outline_native sequence +200 +2.0 +200 +0.2\n",
                     ~" untraced none 0.0200 0.100 9.63e-5 10.0 1.00 1.00 - 0\n",
                     ~"table 3 (500k x 100, 16 schedulers), inline / RIARC:\n response time +4 / +95 %",
                     ~" steady inline sequence 0.0200 0.0400 2.00 -\n",
                     ~"burst grows 1.00 times as steeply as steady, untraced (BenchCRV text, appendix A: 2.80)",
                     ~" steady outline_native sequence 8 6 1.00 10.0 90.0 20.0\n", ~" gamma: shape", ~"fewer than 3 repetitions"]]
    end).

%% The heading promises no more than there is.
tables_without_overheads_say_why_test() ->
    Text = fun(Changes, Run) ->
        witness_folder:with(fun(Folder) ->
            Experiment = changed(Changes#{~"shapes" => [~"steady"], ~"repetitions" => 1,
                                          ~"model" => #{~"t" => 1, ~"period_ms" => 500}}),
            {ok, Opened} = witness_bench_store:open(Folder, ~"{}", Experiment#{source := #{}}, #{}),
            {ok, Store} = witness_bench_store:claim(Opened),
            {done, Done} = conduct(Experiment, Store, Run),
            _ = witness_bench_store:release(Done),
            unicode:characters_to_binary(witness_bench_table:tables(
                Experiment, witness_bench_store:rows(Done), witness_bench_platform:facts(true), #{}))
        end)
    end,
    Measured = fun(Config, _) -> result(Config) end,
    Failed = fun(#{mode := untraced}, _) -> {error, {witness_bench_run, {timeout, 5}}}; (Config, _) -> result(Config) end,
    [?assertEqual({Line, Is}, {Line, binary:match(Text(Changes, Run), Line) =/= nomatch})
     || {Changes, Run, Expected} <- [{#{}, Measured, heading}, {#{~"modes" => [~"untraced"]}, Measured, none},
                                     {#{~"modes" => [~"inline"]}, Measured, reason}, {#{}, Failed, reason}],
        {Line, Is} <- [{~"t = 1 (0.5 s); 1 repetition\n", true},
                       {~"Overhead over the untraced system in per cent\n", Expected =:= heading},
                       {~"Overhead over", Expected =:= heading},
                       {~"No overheads: no untraced benchmark has a result", Expected =:= reason}]].

samples(Samples) ->
    [#{~"window" => Window, ~"members" => integer_to_binary(Members), ~"tracers" => integer_to_binary(Tracers),
       ~"memory" => integer_to_binary(Megabytes * 1048576)} || {Window, Members, Tracers, Megabytes} <- Samples].

squeezed(Text) -> re:replace(Text, ~B" +", ~" ", [global, {return, binary}]).

%% Without anything that identifies the machine.
the_platform_is_told_without_names_test() ->
    {ok, Host} = inet:gethostname(),
    Facts = witness_bench_platform:facts(false),
    ?assertEqual([cores, cpu, emulator, erts, memory_bytes, native, os, otp, schedulers, witness], lists:sort(maps:keys(Facts))),
    Text = iolist_to_binary([json:encode(Facts), unicode:characters_to_binary(witness_bench_platform:line(Facts))]),
    ?assertEqual(nomatch, binary:match(Text, list_to_binary(Host))),
    ?assertMatch({_, _}, binary:match(Text, ~"without native code")).
