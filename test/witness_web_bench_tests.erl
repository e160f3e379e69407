-module(witness_web_bench_tests).
-moduledoc "The report of a benchmark, from folders as `witness bench` writes them. The page is tested in a browser.".

-include_lib("eunit/include/eunit.hrl").

-define(PAGE, ~"<title>x</title><script id=data>@WITNESS-DATA@</script>").
-define(HOSTILE, ~"</script>\e[2J\x{202E}").

what_is_drawn_is_what_was_measured_test() ->
    witness_folder:with(fun(Folder) ->
        Bench = measured(Folder, "a", fun(Row) -> Row end),
        #{~"kind" := ~"bench", ~"measured" := [One]} = written(Folder, [Bench]),
        #{~"steps" := [#{~"n" := 10}, #{~"n" := 20, ~"shape" := ~"steady", ~"compared" := [Untraced, Inline]}],
          ~"runs" := Runs, ~"arrivals" := [#{~"n" := 20, ~"counts" := Counts}], ~"timelines" := [_, Timeline],
          ~"responses" := [#{~"fits" := [_ | _]}, #{~"mode" := ~"inline", ~"fits" := [], ~"count" := 6}]} = One,
        ?assertEqual(8, length(Runs)),
        %% Two repetitions: the median, the least, the largest, and the same of the overhead.
        ?assertMatch(#{~"metrics" := #{~"response_mean_ns" := [1500.0, 1000, 2000]}}, Untraced),
        ?assertMatch(#{~"metrics" := #{~"response_mean_ns" := [3000.0, 2000, 4000, 100.0, 100.0, 100.0]}}, Inline),
        %% The members of the model, by its seed.
        ?assertEqual(20, lists:sum([Count || [_, _, Count] <- Counts])),
        #{~"samples" := #{~"columns" := [~"memory" | _], ~"rows" := [[0, true, 100 | _], [100.5, false, 300 | _]]}} = Timeline
    end).

%% A sample for each millisecond of an hour would not fit on a page, but its peak must.
what_is_long_is_thinned_to_its_peaks_test() ->
    witness_folder:with(fun(Folder) ->
        Bench = measured(Folder, "a", fun(Row) -> Row end),
        Peak = 77_777,
        Lines = [io_lib:format("~b,system,~b,0,0,1,0,0,0,1,0.0~n", [I, case I of 4321 -> Peak; _ -> 1 end])
                 || I <- lists:seq(1, 10_000)],
        ok = file:write_file(filename:join([Bench, "samples", "steady.20.inline.sequence.r2.csv"]), [samples_header(), Lines]),
        #{~"measured" := [#{~"timelines" := [_, #{~"samples" := #{~"rows" := Rows}}]}]} = written(Folder, [Bench]),
        ?assertEqual(250, length(Rows)),
        ?assertEqual(Peak, lists:max([Memory || [_, _, Memory | _] <- Rows]))
    end).

no_text_of_a_benchmark_is_more_than_text_test() ->
    witness_folder:with(fun(Folder) ->
        Bench = measured(Folder, "a", fun(Row) -> Row#{trouble => ?HOSTILE} end),
        ok = change(Bench, fun(Source) -> Source#{~"about" => ?HOSTILE} end),
        {ok, Measured} = witness_web_bench:read(Bench),
        {ok, File} = witness_web_bench:write(Folder, [Measured], page(Folder)),
        {ok, Text} = file:read_file(File),
        [?assertEqual(nomatch, binary:match(Text, Bad)) || Bad <- [~"</script>\e", ~"\e", ~"\x{202E}", ~"</script>["]],
        #{~"measured" := [#{~"about" := About, ~"runs" := [#{~"trouble" := Trouble} | _]}]} = data(Text),
        [?assertMatch({0, _}, binary:match(Shown, ~"</script>")) || Shown <- [About, Trouble]]
    end).

two_stand_beside_each_other_test() ->
    witness_folder:with(fun(Folder) ->
        A = measured(Folder, "a", fun(Row) -> Row end),
        B = measured(Folder, "b", fun(Row) -> Row end),
        ?assertMatch(#{~"measured" := [#{~"folder" := ~"a"}, #{~"folder" := ~"b"}]}, written(Folder, [A, B]))
    end).

what_is_unsound_is_told_test() ->
    witness_folder:with(fun(Folder) ->
        Fine = measured(Folder, "a", fun(Row) -> Row end),
        Bad = measured(Folder, "b", fun(#{mode := ~"inline"} = Row) -> Row#{status := unsound, reason => ~"a hole"};
                                       (Row) -> Row
                                    end),
        {ok, One} = witness_web_bench:read(Fine),
        {ok, Other} = witness_web_bench:read(Bad),
        ?assertEqual({true, false}, {witness_web_bench:is_sound(One), witness_web_bench:is_sound(Other)})
    end).

%% The adapter of another tool need not be there to look at what it has measured, nor the file that arrivals came from.
what_was_needed_to_measure_is_not_needed_to_look_test() ->
    witness_folder:with(fun(Folder) ->
        Bench = measured(Folder, "a", fun(Row) -> Row end),
        ok = change(Bench, fun(Source) ->
            Source#{~"model" => #{}, ~"modes" => [#{~"adapter" => ~"no_such_tool"}],
                    ~"shapes" => [#{~"shape" => ~"file", ~"file" => ~"/gone/monday.csv", ~"label" => ~"steady"}]}
        end),
        {error, Missing} = witness_web_bench:read(Bench),
        ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(Missing), ~"steady.csv")),
        ok = filelib:ensure_path(filename:join(Bench, "arrivals")),
        ok = file:write_file(filename:join([Bench, "arrivals", "steady.csv"]), "5\n15\n"),
        #{~"measured" := [#{~"arrivals" := [#{~"counts" := [[_, _, 5], [_, _, 15]]}]}]} = written(Folder, [Bench])
    end).

damage_is_told_with_its_place_test_() ->
    [{Name, ?_test(witness_folder:with(fun(Folder) ->
         Bench = measured(Folder, "a", fun(Row) -> Row end),
         ok = file:write_file(filename:join(Bench, Name), Text),
         {error, Problem} = witness_web_bench:read(Bench),
         ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(Problem), list_to_binary(Name)))
     end))}
     || {Name, Text} <- [{"results.csv", "id\n"}, {"experiment.json", "[]"}, {"experiment.json", "{\"name\": 1}"},
                         {"platform.json", "{}"}, {"samples/steady.20.inline.sequence.r2.csv", "time_ms,window\nx,y\n"},
                         {"responses/steady.20.inline.sequence.r1.csv", "low_ns,high_ns,count\n1,2,x\n"}]].

a_folder_of_something_else_is_refused_test() ->
    witness_folder:with(fun(Folder) -> {error, [Folder | _]} = witness_web_bench:read(Folder) end).

%% --- folders ----------------------------------------------------------------------

%% Two repetitions of two modes at two steps, where watching doubles the response time.
measured(Folder, Name, Change) ->
    Bench = filename:join(Folder, Name),
    Experiment = #{~"name" => ~"a", ~"modes" => [~"untraced", ~"inline"], ~"shapes" => [~"steady"], ~"steps" => [10, 20],
                   ~"model" => #{~"t" => 4}, ~"repetitions" => 2},
    Text = iolist_to_binary(json:encode(Experiment)),
    {ok, Parsed} = witness_bench_experiment:parse(Text, Folder),
    {ok, Store} = witness_bench_store:open(Bench, Text, Parsed, witness_bench_platform:facts(false)),
    {ok, Claimed} = witness_bench_store:claim(Store),
    Done = lists:foldl(fun(Benchmark, Into) -> add(Benchmark, Change, Into) end, Claimed,
                       [B || R <- [1, 2], B <- witness_bench_experiment:benchmarks(Parsed, R)]),
    _ = witness_bench_store:release(Done),
    Bench.

add(#{id := Id, mode := Mode, repetition := R} = Benchmark, Change, Store) ->
    Mean = 1000 * R * case Mode of untraced -> 1; _ -> 2 end,
    Row = witness_bench_result:row(Benchmark, ~"2026-01-01T00:00:00Z", 1, {ok, #{
        response => #{mean_ns => Mean}, duration_ms => 4000.5, done_ms => 4001, sound => true, gaps => 0}}),
    ok = file:write_file(witness_bench_store:samples(Store, Id),
                         [samples_header(), "0,system,100,0,0,1,0,0,0,1,0.0\n100.5,monitors,300,5.5,0,0,0,0,0,1,0.0\n"]),
    witness_bench_store:add(Store, Change(Row), [[900, 1000, 2], [1001, 1100, 1]]).

samples_header() -> "time_ms,window,memory,utilisation,run_queue,members,tracers,events,gaps,messages,messages_per_s\n".

change(Bench, Change) ->
    File = filename:join(Bench, "experiment.json"),
    {ok, Text} = file:read_file(File),
    file:write_file(File, json:encode(Change(json:decode(Text)))).

page(Folder) ->
    File = filename:join(Folder, "page.html"),
    ok = file:write_file(File, ?PAGE),
    File.

written(Folder, Benches) ->
    Measured = [begin {ok, One} = witness_web_bench:read(Bench), One end || Bench <- Benches],
    {ok, File} = witness_web_bench:write(Folder, Measured, page(Folder)),
    {ok, Text} = file:read_file(File),
    data(Text).

data(Text) ->
    {match, [Json]} = re:run(Text, "<script id=data>(.*)</script>", [dotall, {capture, all_but_first, binary}]),
    json:decode(Json).
