-module(witness_bench_scripts_tests).
-moduledoc "The scripts of `bench/` find the modules that they run, without running them: a measurement takes minutes.".

-include_lib("eunit/include/eunit.hrl").

%% `erl -run MODULE` finds the module in a folder that bench/prepare names.
modules_that_scripts_run_are_found_test_() ->
    Folders = folders(),
    Run = [{Script, Module} || Script <- scripts(),
                               [Module] <- matches(Script, "-run (\\w+)")],
    ?assert(length(Run) >= 15),
    [{Script, fun() ->
        ?assertNotEqual([], [Folder || Folder <- Folders, filelib:is_file(filename:join(Folder, Module ++ ".beam"))])
    end}
     || {Script, Module} <- Run].

%% What `cp` takes from the compiled tests is there, each alternative of it.
modules_that_scripts_copy_are_found_test_() ->
    Copied = [{Script, Names} || Script <- scripts(), [Names] <- matches(Script, "cp \"\\$lib\"/(\\S+\\.beam)")],
    ?assert(length(Copied) >= 3),
    [{Script ++ ": " ++ Name, fun() -> ?assertNotEqual([], filelib:wildcard(filename:join(lib(), Name))) end}
     || {Script, Names} <- Copied, Name <- alternatives(Names)].

alternatives(Names) ->
    case re:run(Names, "^(.*)\\{(.*)\\}(.*)$", [{capture, all_but_first, list}]) of
        {match, [Before, Between, After]} -> [Before ++ One ++ After || One <- string:lexemes(Between, ",")];
        nomatch -> [Names]
    end.

folders() ->
    [[Names]] = matches(filename:join(root(), "bench/prepare"), "modules=\\(\"\\$lib\"/\\{(.*)\\}\\)"),
    [filename:join(lib(), Name) || Name <- string:lexemes(Names, ",")].

scripts() ->
    [File || Pattern <- ["bench/*", "bench/*/run"], File <- filelib:wildcard(filename:join(root(), Pattern)),
     filelib:is_regular(File), filename:extension(File) =:= ""].

matches(File, Pattern) ->
    {ok, Text} = file:read_file(File),
    case re:run(Text, Pattern, [global, {capture, all_but_first, list}]) of
        {match, Found} -> Found;
        nomatch -> []
    end.

root() -> witness_checkout:root(lib()).

%% The compiled tests.
lib() -> filename:dirname(filename:dirname(code:which(?MODULE))).
