-module(witness_cli_mix).
-moduledoc """
A Mix project as the system to run: does in this VM what `mix run` does before it starts the project's application.

This module compiles the project if needed, puts its code and that of its dependencies on the code path, and sets its
configuration, including `config/runtime.exs`. Mix itself does all this (`loadconfig`, `app.config`),
so `MIX_ENV`, `MIX_BUILD_PATH` and the like have their usual meaning. Nothing is started: that is left to the run, which
observes it. As with `mix run`, the folder of the project becomes the current one.

What Mix and the compiler print goes to standard error. Errors are text for people.
""".

-export([prepare/1, export/1]).

-export_type([exported/0]).

-doc """
A project for another VM: its applications, the folders of its code and that of its dependencies, and the parameters that Mix has
set, for all applications.
""".
-type exported() :: #{apps := [atom()], folders := [file:filename()], environment := [{atom(), [{atom(), term()}]}]}.

-doc "Prepares this VM for a project; returns its applications, more than one for an umbrella.".
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

-doc "Prepares a project for a VM that does not have Mix.".
-spec export(Folder :: string()) -> {ok, exported()} | {error, unicode:chardata()}.
export(Folder) ->
    maybe
        ok ?= witness_cli_setup:load_elixir('Elixir.Mix', []),
        {Paths, Before} = {code:get_path(), parameters()},
        {ok, Apps} ?= prepare(Folder),
        Elixir = filename:dirname(filename:dirname(filename:dirname(code:which(elixir)))),
        Folders = [Path || Path <- code:get_path() -- Paths, not lists:prefix(Elixir ++ "/", Path)],
        {ok, Environment} ?= transferable(maps:filter(fun(Key, Value) -> maps:find(Key, Before) =/= {ok, Value} end,
                                                      parameters())),
        {ok, #{apps => Apps, folders => [filename:absname(Path) || Path <- Folders], environment => Environment}}
    end.

%% The parameters of Mix itself are not the project's.
parameters() ->
    #{{App, Name} => Value || {App, _, _} <- application:loaded_applications(),
                              not lists:member(App, [mix, ex_unit, iex, hex]),
                              {Name, Value} <- application:get_all_env(App)}.

transferable(Parameters) ->
    case [Key || Key := Value <- Parameters, not is_transferable(Value)] of
        [] ->
            Groups = maps:groups_from_list(fun({{App, _}, _}) -> App end, fun({{_, Name}, Value}) -> {Name, Value} end,
                                           maps:to_list(Parameters)),
            {ok, lists:sort(maps:to_list(Groups))};
        [{App, Name} | _] ->
            {error, [~"--mix: the parameter ", atom_to_binary(Name), ~" of ", atom_to_binary(App),
                     ~" holds a process, a port or a reference, which mean nothing in another VM"]}
    end.

is_transferable([Head | Tail]) -> is_transferable(Head) andalso is_transferable(Tail);
is_transferable(Tuple) when is_tuple(Tuple) -> is_transferable(tuple_to_list(Tuple));
is_transferable(Map) when is_map(Map) -> is_transferable(maps:to_list(Map));
is_transferable(Fun) when is_function(Fun) ->
    case erlang:fun_info(Fun, type) of
        {type, external} -> true;
        {type, local} -> is_transferable(element(2, erlang:fun_info(Fun, env)))
    end;
is_transferable(Term) -> not (is_pid(Term) orelse is_port(Term) orelse is_reference(Term)).

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
        %% Mix removes from the path what the project does not name, Witness included.
        ok = code:add_pathsz(Paths -- code:get_path()),
        %% A copy of Witness that the project depends on is not part of the project, and this node runs its own.
        _ = [code:del_path(Path) || Path <- code:get_path() -- Paths, witness_weave_own:is_folder(Path)],
        true = group_leader(Leader, self())
    end.

configured(File) ->
    _ = elixir('Mix', start, []),
    %% The location of Hex, if it is installed.
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
