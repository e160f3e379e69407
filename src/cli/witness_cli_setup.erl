-module(witness_cli_setup).
-moduledoc """
Prepares the node for the system that is to run in it: code path, configuration, the libraries of Elixir.

Errors are text for people.
""".

-export([add_paths/1, check_folders/2, load_config/1, read_config/1, load_elixir/2, hide_structs/2]).

-doc """
Puts folders at the front of the code path, in their order. A folder may be a pattern such as `_build/default/lib/*/ebin`.
A copy of Witness among them is skipped, and not returned: this node runs its own.
""".
-spec add_paths([string()]) -> {ok, [file:filename()]} | {error, unicode:chardata()}.
add_paths(Patterns) ->
    Folders = lists:append([expand(Pattern) || Pattern <- Patterns]),
    case check_folders("--pa", Folders) of
        ok ->
            Others = witness_weave_own:others(Folders),
            lists:foreach(fun(Folder) -> true = code:add_patha(Folder) end, lists:reverse(Others)),
            {ok, Others};
        {error, _} = Error -> Error
    end.

-doc "Whether all folders of an option exist.".
-spec check_folders(Option :: string(), [file:filename()]) -> ok | {error, unicode:chardata()}.
check_folders(Option, Folders) ->
    case [Folder || Folder <- Folders, not filelib:is_dir(Folder)] of
        [] -> ok;
        [Missing | _] -> {error, [Option, ~": there is no folder ", witness_text:clean(Missing)]}
    end.

expand(Pattern) ->
    case lists:any(fun(Char) -> lists:member(Char, "*?[{") end, Pattern) andalso not filelib:is_dir(Pattern) of
        false -> [Pattern];
        true ->
            case [Match || Match <- filelib:wildcard(Pattern), filelib:is_dir(Match)] of
                [] -> [Pattern];
                Matches -> Matches
            end
    end.

-doc """
Sets the environment of applications from a `sys.config` file and the files that it includes.

Applications that are loaded later keep these values. Parameters that the applications `kernel` and `stdlib` read when the VM
starts have no effect any more.
""".
-spec load_config(file:filename()) -> ok | {error, unicode:chardata()}.
load_config(File) ->
    maybe
        {ok, Config} ?= read_config(File),
        try
            application:set_env(Config, [{persistent, true}])
        catch
            error:{badarg, Duplicate} ->
                {error, [~"--config: ", witness_text:clean(File), ~": ", witness_event:format_term(Duplicate, 200)]}
        end
    end.

-doc "The environment of applications in such a file.".
-spec read_config(file:filename()) -> {ok, [{atom(), [{atom(), term()}]}]} | {error, unicode:chardata()}.
read_config(File) ->
    try
        {ok, config(File, [])}
    catch
        throw:{config, Where, Problem} -> {error, [~"--config: ", witness_text:clean(Where), ~": ", Problem]}
    end.

%% Later values win, so an included file comes before the entries after it.
config(File, Including) ->
    lists:member(File, Including) andalso throw({config, File, ~"the file includes itself"}),
    case file:consult(File) of
        {ok, [Entries]} when is_list(Entries) ->
            lists:foldl(fun merge/2, [], [Pair || Entry <- Entries, Pair <- entry(Entry, File, [File | Including])]);
        {ok, _} -> throw({config, File, ~"one list of {Application, [{Parameter, Value}]}, ended by a full stop, is expected"});
        {error, {Line, _, _} = Reason} when is_integer(Line) ->
            throw({config, [File, $:, integer_to_list(Line)], syntax(Reason)});
        {error, Reason} -> throw({config, File, file:format_error(Reason)})
    end.

syntax({_, erl_parse, ["syntax error before: ", Nothing]}) when Nothing =:= []; Nothing =:= "" ->
    ~"the file ends within a term";
syntax({_, Module, Problem}) -> Module:format_error(Problem).

entry({Application, Parameters} = Entry, File, _) when is_atom(Application), is_list(Parameters) ->
    lists:all(fun is_parameter/1, Parameters) orelse throw({config, File, unexpected(Entry)}),
    [Entry];
entry(Included, File, Including) when is_list(Included) ->
    io_lib:char_list(Included) orelse throw({config, File, unexpected(Included)}),
    Name = case filename:extension(Included) of "" -> Included ++ ".config"; _ -> Included end,
    config(filename:absname(Name, filename:dirname(File)), Including);
entry(Entry, File, _) -> throw({config, File, unexpected(Entry)}).

is_parameter({Name, _}) -> is_atom(Name);
is_parameter(_) -> false.

unexpected(Entry) ->
    [~"{Application, [{Parameter, Value}]} is expected instead of ", witness_event:format_term(Entry, 80)].

merge({Application, New}, Config) ->
    Old = proplists:get_value(Application, Config, []),
    Kept = [Parameter || {Name, _} = Parameter <- Old, not lists:keymember(Name, 1, New)],
    lists:keystore(Application, 1, Config, {Application, Kept ++ New}).

-doc """
Makes Elixir available if the function to run is one of Elixir, or a folder contains modules of Elixir. Its libraries are
those of the `elixir` on PATH.
""".
-spec load_elixir(module(), [file:filename()]) -> ok | {error, unicode:chardata()}.
load_elixir(Module, Folders) ->
    %% A module may still be loaded when its folder is on the path no more.
    case needs_elixir(Module, Folders) andalso code:where_is_file("elixir.beam") of
        false -> ok;
        non_existing -> find_elixir();
        _ -> start_elixir()
    end.

needs_elixir(Module, Folders) ->
    lists:prefix("Elixir.", atom_to_list(Module)) orelse
        lists:any(fun(Folder) -> filelib:wildcard("Elixir.*.beam", Folder) =/= [] end, Folders).

find_elixir() ->
    case os:find_executable("elixir") of
        false -> {error, ~"this needs the libraries of Elixir, and there is no elixir on PATH: name them with --pa"};
        Script ->
            %% The script is in Elixir's own folder bin, next to lib.
            Root = filename:dirname(filename:dirname(follow_links(Script, 20))),
            case filelib:wildcard(filename:join([Root, "lib", "*", "ebin"])) of
                [] -> {error, [~"there are no libraries of Elixir beside ", Script, ~": name them with --pa"]};
                Libraries ->
                    ok = code:add_pathsz(Libraries),
                    start_elixir()
            end
    end.

follow_links(File, Links) when Links > 0 ->
    case file:read_link_all(File) of
        {ok, Target} -> follow_links(filename:absname(Target, filename:dirname(File)), Links - 1);
        {error, _} -> File
    end;
follow_links(File, 0) -> File.

-doc """
Before texts show terms of a recording: structs of its code, and of that in these folders, hide their fields if their authors implement
`Inspect`.
""".
-spec hide_structs(Recording :: file:filename(), [file:filename()]) -> ok.
hide_structs(Dir, Folders) ->
    Found = [unicode:characters_to_binary(filename:basename(File, ".beam"))
             || Folder <- Folders, File <- filelib:wildcard("Elixir.Inspect.*.beam", Folder)],
    witness_event_inspect_hidden:add(witness_record_kept:modules(Dir) ++ Found).

start_elixir() ->
    case application:ensure_all_started(elixir) of
        {ok, _} -> log_to_standard_error();
        {error, Reason} -> {error, [~"Elixir does not start: ", witness_event:format_term(Reason, 200)]}
    end.

%% Elixir's Logger creates the VM's handler anew when it starts.
log_to_standard_error() ->
    case application:get_env(logger, default_handler) of
        undefined ->
            application:set_env(logger, default_handler, [{config, [{type, standard_error}]}], [{persistent, true}]);
        {ok, _} -> ok
    end.
