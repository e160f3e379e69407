-module(witness_cli_mix).
-moduledoc """
A project of Mix as the system to run: what `mix run` does before it starts the project's application, done in this VM.

The project is compiled where it needs to be, its code and that of its dependencies is put on the code path, and its
configuration is set, that of `config/runtime.exs` included. It is Mix that does all this (`loadconfig`, `app.config`),
so `MIX_ENV`, `MIX_BUILD_PATH` and the like mean what they always do. Nothing is started: that is left to the run, which
observes it. As with `mix run`, the folder of the project becomes the current one.

What Mix and the compiler print goes to standard error. Errors are text for people.
""".

-export([prepare/1]).

-doc "Prepares this VM for a project; the applications that it has, more than one for an umbrella.".
-spec prepare(Folder :: string()) -> {ok, [atom()]} | {error, unicode:chardata()}.
prepare(Folder) ->
    File = os:getenv("MIX_EXS", "mix.exs"),
    maybe
        ok ?= witness_cli_setup:check_folders("--mix", [Folder]),
        true ?= filelib:is_regular(filename:absname(File, Folder)) orelse
            {error, [~"--mix: there is no ", witness_text:clean(File), ~" in ", witness_text:clean(Folder)]},
        ok ?= witness_cli_setup:load_elixir('Elixir.Mix', []),
        ok ?= file:set_cwd(Folder),
        in_order(unicode:characters_to_binary(File))
    else
        {error, Reason} when is_atom(Reason) -> {error, [~"--mix: ", file:format_error(Reason)]};
        {error, Text} -> {error, Text}
    end.

in_order(File) ->
    Leader = group_leader(),
    Paths = code:get_path(),
    true = group_leader(whereis(standard_error), self()),
    try
        configured(File)
    catch
        error:#{'__exception__' := true} = Exception ->
            {error, [~"--mix: ", witness_text:clean(elixir('Exception', message, [Exception]))]};
        exit:{shutdown, _} -> {error, ~"--mix: the project does not compile"};
        Class:Reason -> {error, [~"--mix: Mix failed: ", witness_event:format_term({Class, Reason}, 400)]}
    after
        %% Mix takes from the path what the project does not name, Witness included.
        ok = code:add_pathsz(Paths -- code:get_path()),
        true = group_leader(Leader, self())
    end.

configured(File) ->
    _ = elixir('Mix', start, []),
    %% Where Hex is, if it is installed.
    _ = elixir('Mix.Local', append_archives, []),
    _ = elixir('Mix.Local', append_paths, []),
    _ = elixir('Code', compile_file, [File]),
    _ = elixir('Mix.Task', run, [~"loadconfig", []]),
    _ = elixir('Mix.Task', run, [~"app.config", []]),
    case elixir('Mix.Project', 'umbrella?', []) of
        true -> {ok, lists:sort(maps:keys(elixir('Mix.Project', apps_paths, [])))};
        false ->
            case proplists:get_value(app, elixir('Mix.Project', config, [])) of
                undefined -> {error, ~"--mix: the project names no application (app: in mix.exs)"};
                App -> {ok, [App]}
            end
    end.

elixir(Module, Function, Arguments) ->
    apply(list_to_existing_atom("Elixir." ++ atom_to_list(Module)), Function, Arguments).
