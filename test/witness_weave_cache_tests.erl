-module(witness_weave_cache_tests).
-moduledoc "The cache finds woven code again as long as nothing is different. Whatever is on disk, the code that it returns is right.".
-include_lib("eunit/include/eunit.hrl").

cache_test_() ->
    {foreach, fun setup/0, fun file:del_dir_r/1,
     [fun(Dir) -> {timeout, 60, {atom_to_list(Name), fun() -> Test(Dir), ok end}} end || {Name, Test} <- tests()]}.

setup() ->
    Dir = filename:join("/tmp", "witness_weave_cache_" ++ os:getpid() ++ "_" ++ integer_to_list(erlang:unique_integer([positive]))),
    ok = filelib:ensure_path(filename:join(Dir, "ebin")),
    [write(Dir, M, Text) || {M, Text} <- [{wc_a, "f() -> receive X -> X end."}, {wc_b, "f() -> self() ! 1."}]],
    Dir.

tests() ->
    [{woven_once, fun woven_once/1}, {what_has_changed_is_woven_alone, fun what_has_changed_is_woven_alone/1},
     {another_plan, fun another_plan/1}, {what_is_left, fun what_is_left/1}, {names, fun names/1}, {damaged, fun damaged/1},
     {at_the_same_time, fun at_the_same_time/1}, {natives, fun natives/1}, {functions, fun functions/1}, {bounded, fun bounded/1},
     {bounded_while_others_use_it, fun bounded_while_others_use_it/1}, {nowhere, fun nowhere/1},
     {results, fun results/1}].

woven_once(Dir) ->
    {[Ebin], [], 2} = prepared(Dir, plan()),
    [?assertEqual(witness_weave_recorder, runtime(Ebin, M)) || M <- [wc_a, wc_b]],
    ?assertEqual({[Ebin], [], 0}, prepared(Dir, plan())),
    %% Neither the time of a file nor its folder matters.
    {ok, _} = file:copy(filename:join(Dir, "ebin/wc_a.beam"), filename:join(Dir, "ebin/copy")),
    ok = file:rename(filename:join(Dir, "ebin/copy"), filename:join(Dir, "ebin/wc_a.beam")),
    ok = file:rename(filename:join(Dir, "ebin"), filename:join(Dir, "other")),
    ?assertMatch({ok, [Ebin], []}, witness_weave_cache:prepare(read(Dir, "other"), plan(), cache(Dir))),
    %% Nothing with a temporary name is left.
    ?assertEqual([], [F || F <- files(cache(Dir)), filename:extension(F) =/= ".beam", filename:extension(F) =/= ""]).

what_has_changed_is_woven_alone(Dir) ->
    {[First], [], 2} = prepared(Dir, plan()),
    write(Dir, wc_b, "f() -> self() ! 2."),
    {[Second], [], 1} = prepared(Dir, plan()),
    ?assertNotEqual(First, Second),
    write(Dir, wc_b, "f() -> self() ! 1."),
    ?assertEqual({[First], [], 0}, prepared(Dir, plan())).

another_plan(Dir) ->
    {[First], [], 2} = prepared(Dir, plan()),
    {[Second], [], 2} = prepared(Dir, (plan())#{timeouts => true}),
    ?assertNotEqual(First, Second),
    %% Native functions matter only if the code can call them.
    {[Second], [], 0} = prepared(Dir, (plan())#{timeouts => true, natives => #{{wc_none, wc_none, 1} => 1}}),
    write(Dir, wc_b, "f() -> wc_none:wc_none(1)."),
    {[Third], [], 1} = prepared(Dir, (plan())#{timeouts => true, natives => #{{wc_none, wc_none, 1} => 1}}),
    {[Fourth], [], 1} = prepared(Dir, (plan())#{timeouts => true, natives => #{{wc_none, wc_none, 1} => 2}}),
    ?assertNotEqual(Third, Fourth).

functions(Dir) ->
    {[First], [], 2} = prepared(Dir, plan()),
    {[First], [], 0} = prepared(Dir, (plan())#{functions => #{{wc_none, f, 0} => [call]}}),
    {[Second], [], 1} = prepared(Dir, (plan())#{functions => #{{wc_b, f, 0} => [call]}}),
    {[Third], [], 1} = prepared(Dir, (plan())#{functions => #{{wc_b, f, 0} => [call, return]}}),
    ?assertEqual(3, length(lists:uniq([First, Second, Third]))),
    ?assertEqual({[Second], [], 0}, prepared(Dir, (plan())#{functions => #{{wc_b, f, 0} => [call], {wc_none, f, 0} => [call]}})).

what_is_left(Dir) ->
    write(Dir, wc_c, "-on_load(g/0).\ng() -> ok.\nf() -> ok."),
    ok = file:write_file(filename:join(Dir, "ebin/wc_d.beam"), "nothing"),
    {ok, _} = file:copy(code:which(witness_weave), filename:join(Dir, "ebin/witness_weave.beam")),
    Plan = (plan())#{except => [wc_b]},
    {[Ebin], NotWoven, 5} = prepared(Dir, Plan),
    ?assertMatch([{wc_b, {excepted, wc_b}}, {wc_c, {on_load, wc_c}}, {wc_d, {not_object_code, wc_d, _}}, {witness_weave, {own, _}}],
                 lists:sort(NotWoven)),
    ?assertEqual(["wc_a.beam"], filelib:wildcard("*.beam", Ebin)),
    ?assertEqual({[Ebin], NotWoven, 0}, prepared(Dir, Plan)).

names(Dir) ->
    {ok, [Ebin], NotWoven} = witness_weave_cache:prepare([queue, erlang, no_such_module], plan(), cache(Dir)),
    ?assertEqual(["queue.beam"], filelib:wildcard("*.beam", Ebin)),
    ?assertEqual([erlang, no_such_module], lists:sort([M || {M, _} <- NotWoven])).

%% A file that is shorter, is missing, or was never written whole is made again.
damaged(Dir) ->
    {[Ebin], [], 2} = prepared(Dir, plan()),
    {ok, Whole} = file:read_file(filename:join(Ebin, "wc_a.beam")),
    ok = file:write_file(filename:join(Ebin, "wc_a.beam"), binary:part(Whole, 0, 100)),
    {[Ebin], [], 0} = prepared(Dir, plan()),
    ?assertEqual({ok, Whole}, file:read_file(filename:join(Ebin, "wc_a.beam"))),
    ok = file:delete(filename:join(Ebin, "wc_b.beam")),
    {[Ebin], [], 0} = prepared(Dir, plan()),
    ?assert(filelib:is_regular(filename:join(Ebin, "wc_b.beam"))),
    [begin
         [ok = file:write_file(F, Bytes) || F <- filelib:wildcard(filename:join([cache(Dir), "folders", "*"]))],
         {[Ebin], [], 0} = prepared(Dir, plan())
     end || Bytes <- [<<131>>, term_to_binary([]), term_to_binary("another")]],
    ok = file:del_dir_r(Ebin),
    [ok = file:write_file(F, <<131>>) || F <- filelib:wildcard(filename:join([cache(Dir), "modules", "*"]))],
    {[Ebin], [], 2} = prepared(Dir, plan()),
    ?assertEqual({ok, Whole}, file:read_file(filename:join(Ebin, "wc_a.beam"))).

at_the_same_time(Dir) ->
    Ends = [spawn_monitor(fun() -> exit({done, element(1, prepared(Dir, plan()))}) end) || _ <- lists:seq(1, 8)],
    [Result] = lists:usort([receive {'DOWN', Ref, process, P, Reason} -> Reason end || {P, Ref} <- Ends]),
    ?assertMatch({done, [_]}, Result).

natives(Dir) ->
    write(Dir, wc_c, "-export([g/1]).\nf() -> erlang:load_nif(\"x\", 0).\ng(X) -> X."),
    Natives = [{wc_c, f, 0}, {wc_c, g, 1}],
    ?assertMatch([#{natives := Natives}], read(Dir, "ebin")),
    %% So too where the file is compressed as a whole.
    File = filename:join(Dir, "ebin/wc_c.beam"),
    {ok, Plain} = file:read_file(File),
    ok = file:write_file(File, zlib:gzip(Plain)),
    ?assertMatch([#{natives := Natives}], read(Dir, "ebin")).

%% What was used within a week stays, and so does everything up to the limit. The cache checks all of it once a day.
bounded(Dir) ->
    {[First], [], 2} = prepared(Dir, plan()),
    ok = age_file(looked(Dir), 2),
    write(Dir, wc_b, "f() -> self() ! 2."),
    {[Second], [], 1} = prepared(Dir, plan(), 0),
    ?assert(filelib:is_dir(First)),
    ok = age(cache(Dir)),
    write(Dir, wc_b, "f() -> self() ! 3."),
    {[Third], [], 1} = prepared(Dir, plan(), 1 bsl 30),
    ?assert(lists:all(fun filelib:is_dir/1, [First, Second, Third])),
    write(Dir, wc_b, "f() -> self() ! 4."),
    {[Fourth], [], 1} = prepared(Dir, plan(), 0),
    ?assert(lists:all(fun filelib:is_dir/1, [First, Second, Third])),
    ok = age_file(looked(Dir), 2),
    ok = witness_weave_cache_bound:keep(cache(Dir), 0),
    ?assertEqual(lists:sort([Third, Fourth]), filelib:wildcard(filename:join([cache(Dir), "sets", "*"]))),
    %% The module that all have in common, and the last two of the other.
    ?assertEqual(3, length(filelib:wildcard(filename:join([cache(Dir), "modules", "*"])))),
    %% The oldest go first, and no more than have to.
    ok = age(cache(Dir)),
    ok = age(Third, 9),
    Sizes = lists:sum([filelib:file_size(F) || F <- files(cache(Dir))]),
    ok = witness_weave_cache_bound:shrink(cache(Dir), Sizes - 1),
    ?assertEqual([false, true], [filelib:is_dir(Folder) || Folder <- [Third, Fourth]]),
    %% Whatever is missing is made again.
    ?assertMatch({[Fourth], [], 0}, prepared(Dir, plan(), 0)).

bounded_while_others_use_it(Dir) ->
    {[Ebin], [], 2} = prepared(Dir, plan()),
    [begin
         ok = age(cache(Dir)),
         Others = [spawn_monitor(fun() ->
                                     _ = prepared(Dir, (plan())#{timeouts => true, except => [{I, N}]}, 0),
                                     ok = witness_weave_cache_bound:shrink(cache(Dir), 0)
                                 end) || N <- [1, 2]],
         Users = [spawn_monitor(fun() -> {[Ebin], [], _} = prepared(Dir, plan()) end) || _ <- [1, 2, 3]],
         [receive {'DOWN', Ref, process, P, Reason} -> ?assertEqual(normal, Reason) end || {P, Ref} <- Others ++ Users],
         ?assertMatch({[Ebin], [], 0}, prepared(Dir, plan())),
         ?assertEqual(2, length(filelib:wildcard("*.beam", Ebin)))
     end || I <- lists:seq(1, 20)],
    ?assertEqual([], [F || F <- filelib:wildcard(filename:join([cache(Dir), "*", "*"])), lists:member($., filename:basename(F))]).

%% As if none of it had been used for eight days.
age(Folder) ->
    lists:foreach(fun(File) -> age_file(File, 8) end, files(Folder)).

age(Folder, Days) -> lists:foreach(fun(File) -> age_file(File, Days) end, files(Folder)).

age_file(File, Days) ->
    Then = calendar:gregorian_seconds_to_datetime(
        calendar:datetime_to_gregorian_seconds(calendar:local_time()) - Days * 86_400),
    ok = file:change_time(File, Then).

looked(Dir) -> filename:join(cache(Dir), "looked").

%% A result is made once, as long as its file is whole and what determines it is the same. Where nothing can be written, it is made
%% each time.
results(Dir) ->
    Made = counters:new(1, []),
    Make = fun() -> counters:add(Made, 1, 1), {result, counters:get(Made, 1)} end,
    Stored = fun(Of, Cache) -> witness_weave_cache:stored(Of, Cache, Make) end,
    Cache = cache(Dir),
    ?assertEqual([{result, 1}, {result, 1}, {result, 2}, {result, 1}], [Stored(Of, Cache) || Of <- [a, a, b, a]]),
    {ok, Files} = file:list_dir(filename:join(Cache, "modules")),
    [ok = file:write_file(filename:join([Cache, "modules", File]), "damaged") || File <- Files],
    ?assertEqual([{result, 3}, {result, 3}], [Stored(a, Cache), Stored(a, Cache)]),
    ok = file:write_file(filename:join(Dir, "file"), ""),
    ?assertEqual([{result, 4}, {result, 5}], [Stored(a, filename:join(Dir, "file")) || _ <- [1, 2]]).

nowhere(Dir) ->
    ok = file:write_file(cache(Dir), ""),
    ?assertMatch({error, {_, _}}, witness_weave_cache:prepare(read(Dir, "ebin"), plan(), cache(Dir))).

%% The folders, what is left as it is, and how many modules had to be woven.
prepared(Dir, Plan) -> prepared(Dir, Plan, 1 bsl 30).

prepared(Dir, Plan, Limit) ->
    Count = counters:new(1, []),
    {ok, Ebins, NotWoven} = witness_weave_cache:prepare(read(Dir, "ebin"), Plan, cache(Dir),
                                                        #{limit => Limit, progress => fun(_, _) -> counters:add(Count, 1, 1) end}),
    {Ebins, NotWoven, counters:get(Count, 1)}.

plan() -> #{runtime => witness_weave_recorder}.

read(Dir, Name) ->
    {ok, Folders} = witness_weave_objects:read([filename:join(Dir, Name)], cache(Dir)),
    Folders.

cache(Dir) -> filename:join(Dir, "cache").

files(Dir) -> filelib:fold_files(Dir, "", true, fun(File, Files) -> [File | Files] end, []).

write(Dir, Module, Text) ->
    Name = atom_to_list(Module),
    ok = file:write_file(filename:join([Dir, "ebin", Name ++ ".beam"]),
                         witness_weave_source:code(["-module(", Name, ").\n-export([f/0]).\n", Text, "\n"], [])).

runtime(Ebin, Module) ->
    {ok, {Module, [{attributes, Attributes}]}} = beam_lib:chunks(filename:join(Ebin, atom_to_list(Module) ++ ".beam"),
                                                                 [attributes]),
    hd(proplists:get_value(witness_weave, Attributes)).
