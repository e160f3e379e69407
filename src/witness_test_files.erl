-module(witness_test_files).
-moduledoc """
Finds the specifications of a test.

Tests run in different folders: `rebar3 eunit` and `mix test` in that of the project, `rebar3 ct` in one of its
logs, an editor anywhere. So a relative name is looked for in the current folder, then in the folder of the test's own
source, then in each folder above that.
""".

-export([find/2, source_folder/1, source_file/1, format_error/1]).

-doc "The files, or the first one that is in none of the folders. `Base`: the first folder after the current one.".
-spec find([file:name_all()], Base :: file:name_all() | undefined) ->
    {ok, [file:name_all()]} | {error, {?MODULE, {no_file, file:name_all(), Folders :: [file:name_all()]}}}.
find(Names, Base) ->
    {ok, Here} = file:get_cwd(),
    Folders = lists:uniq([Here | folders_above(Base)]),
    Found = [{Name, [File || Folder <- Folders, File <- [filename:absname(Name, Folder)], filelib:is_regular(File)]}
             || Name <- Names],
    case [Name || {Name, []} <- Found] of
        [] -> {ok, [shorten(Name, File, Here) || {Name, [File | _]} <- Found]};
        [Missing | _] -> {error, {?MODULE, {no_file, Missing, Folders}}}
    end.

folders_above(undefined) -> [];
folders_above(Folder) ->
    case filename:dirname(Folder) of
        Folder -> [Folder];
        Parent -> [Folder | folders_above(Parent)]
    end.

%% The path of the file, as short as possible.
shorten(Name, File, Here) ->
    case filename:pathtype(Name) =:= relative andalso string:prefix(File, [Here, "/"]) of
        Relative when Relative =/= false, Relative =/= nomatch -> Relative;
        _ -> File
    end.

-doc "The folder of the source that a fun was compiled from, if known.".
-spec source_folder(fun()) -> file:filename_all() | undefined.
source_folder(Fun) ->
    {module, Module} = erlang:fun_info(Fun, module),
    case source_file(Module) of
        "" -> undefined;
        File -> filename:dirname(filename:absname(File))
    end.

-doc "The source that a module was compiled from, empty if it is not known.".
-spec source_file(module()) -> file:filename().
source_file(Module) ->
    try
        Source = [_ | _] = proplists:get_value(source, Module:module_info(compile)),
        Source
    catch
        error:_ -> ""
    end.

-doc "A reason as text.".
-spec format_error({no_file, file:name_all(), [file:name_all()]}) -> unicode:chardata().
format_error({no_file, Name, Folders}) ->
    ["there is no file ", witness_text:clean(Name), "; it was looked for in\n",
     [["  ", witness_text:clean(Folder), "\n"] || Folder <- Folders]].
