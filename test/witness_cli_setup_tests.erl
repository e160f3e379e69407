-module(witness_cli_setup_tests).

-include_lib("eunit/include/eunit.hrl").

configuration_test_() ->
    {foreach, fun folder/0, fun file:del_dir_r/1,
     [fun(Folder) -> {Name, fun() -> Case(Folder) end} end || {Name, Case} <- [
        {"values are set, and survive the loading of the application", fun values_are_set/1},
        {"included files come first", fun included_files_come_first/1},
        {"errors name file and line", fun errors_name_file_and_line/1},
        {"what is no configuration is refused", fun no_configuration/1},
        {"a file that includes itself is refused", fun includes_itself/1}
     ]]}.

folder() ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), "witness_cli_setup_tests_" ++ os:getpid()),
    ok = filelib:ensure_path(Folder),
    Folder.

write(Folder, Name, Text) ->
    File = filename:join(Folder, Name),
    ok = file:write_file(File, Text),
    File.

values_are_set(Folder) ->
    File = write(Folder, "sys.config", "[{witness_cli_setup_tests, [{a, 1}, {b, two}]}]."),
    ?assertEqual(ok, witness_cli_setup:load_config(File)),
    ok = application:load({application, witness_cli_setup_tests, [{env, [{a, 0}, {c, 3}]}]}),
    ?assertEqual([{a, 1}, {b, two}, {c, 3}], lists:sort(application:get_all_env(witness_cli_setup_tests))),
    ok = application:unload(witness_cli_setup_tests).

included_files_come_first(Folder) ->
    _ = write(Folder, "other.config", "[{wst, [{a, 1}, {b, 1}]}]."),
    File = write(Folder, "sys.config", "[\"other\", {wst, [{a, 2}]}]."),
    ?assertEqual(ok, witness_cli_setup:load_config(File)),
    ?assertEqual({{ok, 2}, {ok, 1}}, {application:get_env(wst, a), application:get_env(wst, b)}).

errors_name_file_and_line(Folder) ->
    refused(write(Folder, "sys.config", "[{wst,\n  [{a 1}]}]."), "sys.config:2: syntax error before"),
    refused(filename:join(Folder, "none.config"), "no such file").

no_configuration(Folder) ->
    refused(write(Folder, "sys.config", "[{wst, [a]}]."), "{wst,[a]}"),
    refused(write(Folder, "sys.config", "{wst, []}."), "one list"),
    refused(write(Folder, "sys.config", "[]. []."), "one list"),
    refused(write(Folder, "sys.config", "[42]."), "42").

includes_itself(Folder) ->
    refused(write(Folder, "sys.config", "[\"sys\"]."), "includes itself").

refused(File, Words) ->
    {error, Error} = witness_cli_setup:load_config(File),
    Text = unicode:characters_to_list(Error),
    ?assertNotEqual(nomatch, string:find(Text, Words), Text).

the_first_folder_is_searched_first_test() ->
    Path = code:get_path(),
    Here = filename:dirname(code:which(?MODULE)),
    There = code:root_dir(),
    try
        ?assertEqual({ok, [There, Here]}, witness_cli_setup:add_paths([There, Here])),
        ?assertMatch([There, Here | _], code:get_path())
    after
        code:set_path(Path)
    end.

a_pattern_stands_for_all_folders_that_match_test() ->
    Path = code:get_path(),
    try
        {ok, Folders} = witness_cli_setup:add_paths([filename:join(code:lib_dir(), "{stdlib,kernel}-*/ebin")]),
        ?assertEqual(2, length(Folders))
    after
        code:set_path(Path)
    end.

a_missing_folder_is_an_error_that_names_it_test() ->
    Path = code:get_path(),
    {error, Error} = witness_cli_setup:add_paths([code:root_dir(), "no/such/folder"]),
    ?assertNotEqual(nomatch, string:find(unicode:characters_to_list(Error), "no/such/folder")),
    ?assertEqual(Path, code:get_path()).
