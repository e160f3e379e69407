%% What makes something be done again. Each look at the files is asked for.
-module(witness_cli_watch_tests).

-include_lib("eunit/include/eunit.hrl").

%% A round is done, and then the files are looked at as often as the test says.
what_has_changed_is_done_again_test() ->
    watched(fun(Folder, Look) ->
        ok = write(Folder, "a.hml", "one"),
        round = Look(),
        %% The same contents, written again, are no change.
        ok = write(Folder, "a.hml", "one"),
        [nothing, nothing] = [Look(), Look()],
        ok = write(Folder, "a.hml", "two"),
        [nothing, round] = [Look(), Look()],
        [nothing, nothing] = [Look(), Look()]
    end).

an_included_file_is_watched_also_before_it_is_there_test() ->
    watched(fun(Folder, Look) ->
        ok = write(Folder, "a.hml", "-include(\"a.hrl\").\n"),
        round = Look(),
        ok = write(Folder, "include/a.hrl", " -include(\"b.hrl\").\n"),
        [nothing, round] = [Look(), Look()],
        ok = write(Folder, "include/b.hrl", "b"),
        [nothing, round] = [Look(), Look()],
        ok = write(Folder, "include/c.hrl", "c"),
        [nothing, nothing] = [Look(), Look()]
    end).

%% An editor removes a file, and then renames another one.
what_rests_for_no_look_is_waited_for_test() ->
    watched(fun(Folder, Look) ->
        ok = write(Folder, "a.hml", "one"),
        round = Look(),
        ok = file:delete(filename:join(Folder, "a.hml")),
        nothing = Look(),
        ok = write(Folder, "a.hml", "half"),
        nothing = Look(),
        ok = write(Folder, "a.hml", "whole"),
        [nothing, round] = [Look(), Look()],
        ok = file:delete(filename:join(Folder, "a.hml")),
        [nothing, round] = [Look(), Look()]
    end).

a_log_that_never_rests_is_read_after_all_test() ->
    watched(fun(Folder, Look) ->
        ok = write(Folder, "a.hml", "one"),
        ok = write(Folder, "a.log", ""),
        round = Look(),
        Looks = [begin
            ok = write(Folder, "a.log", lists:duplicate(N, $x)),
            Look()
        end || N <- lists:seq(1, 12)],
        ?assertEqual(1, length([round || round <- Looks])),
        ?assertEqual([nothing, nothing], lists:sublist(Looks, 2))
    end).

the_folder_of_a_recording_is_watched_test() ->
    watched(fun(Folder, Look) ->
        ok = write(Folder, "a.hml", "one"),
        ok = write(Folder, "a.log/data", "x"),
        round = Look(),
        ok = write(Folder, "a.log/data", "xy"),
        [nothing, round] = [Look(), Look()],
        ok = write(Folder, "a.log/more", "x"),
        [nothing, round] = [Look(), Look()]
    end).

what_changes_during_a_round_is_done_again_test() ->
    witness_folder:with(fun(Folder) ->
        ok = write(Folder, "a.hml", "one"),
        Rounds = counters:new(1, []),
        Round = fun() ->
            counters:add(Rounds, 1, 1),
            ok = write(Folder, "a.hml", "two"),
            {case counters:get(Rounds, 1) of 2 -> stop; _ -> go_on end, counters:get(Rounds, 1)}
        end,
        ?assertEqual(2, witness_cli_watch:run(fun() -> files(Folder) end, Round, fun() -> look end))
    end).

the_last_result_is_that_of_all_test() ->
    ?assertEqual(3, witness_cli_watch:run(fun() -> [] end, fun() -> {go_on, 3} end, fun() -> stop end)).

%% `Look`: one more look, and what has followed from it. The first one is a round before any look.
watched(Test) ->
    witness_folder:with(fun(Folder) ->
        Self = self(),
        Wait = fun() ->
            Self ! {waits, self()},
            receive {look, Self} -> look end
        end,
        Round = fun() ->
            Self ! round,
            {go_on, 0}
        end,
        Start = fun() -> spawn_link(fun() -> witness_cli_watch:run(fun() -> files(Folder) end, Round, Wait) end) end,
        Look = fun() ->
            Watch = case get(watch) of
                undefined ->
                    _ = put(watch, Start()),
                    get(watch);
                Pid ->
                    Pid ! {look, Self},
                    Pid
            end,
            receive {waits, Watch} -> receive round -> round after 0 -> nothing end end
        end,
        try Test(Folder, Look) after
            Watch = erase(watch),
            unlink(Watch),
            exit(Watch, kill)
        end
    end).

files(Folder) ->
    witness_cli_watch:sources(filename:join(Folder, "a.hml"), [filename:join(Folder, "include")])
        ++ [{log, filename:join(Folder, "a.log")}].

write(Folder, Name, Text) ->
    File = filename:join(Folder, Name),
    ok = filelib:ensure_dir(File),
    file:write_file(File, Text).
