-module(witness_bench_model_tests).
-moduledoc "Models as they are written, and what is wrong with them.".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

parse(Given) -> witness_bench_model:parse(Given).

%% Those of the papers.
defaults_test() ->
    {ok, Model} = parse(#{}),
    ?assertMatch(#{kind := master_worker, n := 10_000, w := 100, t := 100, shape := steady, deviation := 0.02,
                   creation_deviation := 0.1, period_ms := 1000, pr_send := 0.9, pr_recv := 0.9, crash := 0, loss := 0}, Model),
    ?assertMatch({ok, #{shape := {pulse, 25}}}, parse(#{~"shape" => ~"pulse"})),
    ?assertMatch({ok, #{shape := {burst, 100}}}, parse(#{~"shape" => ~"burst"})),
    ?assertMatch({ok, #{shape := {ramp, 0, 1}}}, parse(#{~"shape" => ~"ramp"})),
    %% A rate of 5000 at most.
    ?assertMatch({ok, #{t := 100}}, parse(#{~"n" => 500_000})),
    ?assertMatch({ok, #{t := 200}}, parse(#{~"n" => 1_000_000})),
    ?assertMatch({ok, #{t := 201}}, parse(#{~"n" => 1_000_001})).

timeline_test() ->
    ?assertMatch({ok, #{t := 34}}, parse(#{~"n" => 100, ~"lambda" => 3})),
    ?assertMatch({ok, #{t := 8}}, parse(#{~"n" => 100, ~"t" => 8})).

errors_test_() ->
    [{lists:flatten(io_lib:format("~p", [Given])), ?_assertEqual({error, Path, Text}, parse(Given))}
     || {Given, Path, Text} <-
        [{[], [], ~"an object is expected"},
         {#{~"kind" => ~"x"}, [~"kind"], ~B("master_worker", "peers", "pipeline", "tasks" or "tree" is expected, not "x")},
         {#{~"n" => 0}, [~"n"], ~"a whole number from 1 to 10000000 is expected, not 0"},
         {#{~"n" => 1.5}, [~"n"], ~"a whole number from 1 to 10000000 is expected, not 1.5"},
         {#{~"w" => ~"100"}, [~"w"], ~B(a whole number from 1 to 10000000 is expected, not "100")},
         {#{~"pr_send" => 0}, [~"pr_send"], ~"a number from 0.001 to 1 is expected, not 0"},
         {#{~"pr_recv" => 1.1}, [~"pr_recv"], ~"a number from 0.001 to 1 is expected, not 1.1"},
         {#{~"seed" => -1}, [~"seed"], ~B(a whole number from 0 to 4294967295 or "free" is expected, not -1)},
         {#{~"shape" => ~"flat"}, [~"shape"], ~B("steady", "pulse", "burst", "ramp" or "file" is expected, not "flat")},
         {#{~"shape" => ~"pulse", ~"spread" => 0}, [~"spread"], ~"a number from 0.1 to 10000 is expected, not 0"},
         {#{~"shape" => ~"pulse", ~"pinch" => 10}, [~"pinch"], ~"is for the shape burst"},
         {#{~"spread" => 10}, [~"spread"], ~"is for the shape pulse"},
         {#{~"shape" => ~"ramp", ~"to" => 0}, [~"to"], ~"a number above 0, where from is 0, is expected, not 0"},
         {#{~"shape" => ~"file"}, [~"file"], ~"is missing"},
         {#{~"shape" => ~"file", ~"file" => 1}, [~"file"], ~"the name of a file is expected, not 1"},
         {#{~"shape" => ~"file", ~"file" => ~"/there/is/none"}, [~"file"], ~"/there/is/none: no such file or directory"},
         {#{~"lambda" => 5, ~"t" => 3}, [~"lambda"], ~"t and lambda exclude each other"},
         {#{~"lambda" => 0}, [~"lambda"], ~"a number above 0 and below 1e9 is expected, not 0"},
         {#{~"lambda" => 0.00001}, [~"lambda"], ~"is too small: t would be more than 1000000"},
         {#{~"lambda" => 5, ~"shape" => ~"pulse"}, [~"lambda"], ~"is for the shape steady"},
         {#{~"crash" => 0.5, ~"kind" => ~"tree"}, [~"crash"], ~"is for the kind master_worker"},
         {#{~"stages" => 3}, [~"stages"], ~"is for the kind pipeline"},
         {#{~"crash" => 0.5, ~"nodes" => 2}, [~"crash"], ~"0, where there are two nodes, is expected, not 0.5"},
         {#{~"loss" => 2}, [~"loss"], ~"a number from 0 to 1 is expected, not 2"},
         {#{~"kind" => ~"tree", ~"depth" => 16, ~"branch" => 9}, [~"n"],
          ~"is too large: it comes to more than 10000000 processes"}]].

an_unknown_key_is_named_test() ->
    {error, [~"threads"], Text} = parse(#{~"threads" => 3}),
    ?assertMatch(<<"there is no such key; there are ", _/binary>>, Text),
    ?assertMatch({_, _}, binary:match(Text, ~"pr_send")).

a_file_of_arrivals_test() ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"), "witness_bench_arrivals_" ++ os:getpid() ++ ".csv"),
    ok = file:write_file(File, ~"1\n2\n\n4\n"),
    try
        Name = unicode:characters_to_binary(File),
        Given = #{~"shape" => ~"file", ~"file" => Name},
        ?assertMatch({ok, #{shape := {counts, [1, 2, 4]}, t := 3, n := 7}}, parse(Given)),
        ?assertMatch({ok, #{t := 3, n := 70}}, parse(Given#{~"n" => 70})),
        ?assertEqual({error, [~"t"], ~"the file has 3 units of time: these, or no t, are expected"}, parse(Given#{~"t" => 4})),
        ok = file:write_file(File, ~"1\nx\n"),
        ?assertEqual({error, [~"file"],
                      <<Name/binary, ":2: ARRIVALS or UNIT,ARRIVALS is expected, whole numbers of at most 11 digits">>},
                     parse(Given))
    after
        file:delete(File)
    end.

%% With the root.
processes_test() ->
    [?assertEqual({Given, Expected}, {Given, begin {ok, M} = parse(Given#{~"n" => 10}), witness_bench_model:processes(M) end})
     || {Given, Expected} <- [{#{}, 11}, {#{~"kind" => ~"tasks"}, 11}, {#{~"kind" => ~"pipeline", ~"stages" => 4}, 41},
                              {#{~"kind" => ~"peers", ~"group" => 3}, 31}, {#{~"nodes" => 2}, 1},
                              {#{~"kind" => ~"tree", ~"depth" => 2, ~"branch" => 3}, 131}]].

%% What is to be monitored can be spawned, and its modules can be woven.
signatures_exist_test() ->
    [begin
        {ok, Model} = parse(#{~"kind" => Kind}),
        [#{role := root} | Members] = Signatures = witness_bench_model:signatures(Model),
        ?assertMatch([#{role := member}], Members),
        [begin
            ?assert(lists:member(M, witness_bench_model:modules(Model))),
            {module, M} = code:ensure_loaded(M),
            ?assert(erlang:function_exported(M, F, A))
         end || #{signature := {M, F, A}} <- Signatures]
     end || Kind <- kinds()].

kinds() -> [~"master_worker", ~"peers", ~"pipeline", ~"tasks", ~"tree"].

a_free_seed_is_fixed_once_test() ->
    {ok, Free} = parse(#{~"seed" => ~"free"}),
    {ok, #{seed := Seed} = Model} = witness_bench_model:prepare(Free),
    ?assert(is_integer(Seed)),
    ?assertEqual(witness_bench_model:plan(Model), witness_bench_model:plan(Model)),
    ?assertEqual({ok, Model}, witness_bench_model:prepare(Model)).

%% What comes from a file may be anything.
anything_is_parsed_or_refused_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(?FORALL(Given, given(), case parse(Given) of
        {ok, Model} -> is_integer(witness_bench_model:processes(Model));
        {error, Path, Text} -> lists:all(fun is_binary/1, Path) andalso is_binary(Text)
    end), [quiet, {numtests, 3000}, {to_file, user}]))}.

given() -> ?LET(Pairs, list({oneof(keys()), value()}), maps:from_list(Pairs)).

keys() ->
    [~"kind", ~"n", ~"w", ~"t", ~"shape", ~"spread", ~"pinch", ~"from", ~"to", ~"file", ~"lambda", ~"period_ms", ~"deviation",
     ~"creation_deviation", ~"pr_send", ~"pr_recv", ~"seed", ~"work_us", ~"payload_bytes", ~"crash", ~"loss", ~"nodes", ~"share",
     ~"stages", ~"group", ~"depth", ~"branch"].

value() ->
    oneof([0, 1, 2, 0.5, -1, 1.0e300, 1 bsl 80, 16, 100, null, true, ~"free", [], #{}, ~"/", <<255>>, <<0>>
           | kinds() ++ [~"steady", ~"pulse", ~"burst", ~"ramp", ~"file"]]).
