-module(witness_task_mix).
-moduledoc """
The tasks of Mix: `mix witness.run` and the like.

Each task is a module with `witness_task.hrl`, which calls `run/2`. The project is the one of the current folder; Mix has loaded its
`config/config.exs`, where `config :witness` has the defaults (`witness_task:arguments/3`).
""".

-export([run/2]).

-doc "Runs the task of a command. If the command does not succeed, Mix ends with its exit code.".
-spec run(witness_task:command() | init, [binary()]) -> ok.
run(init, Arguments) ->
    Project = 'Elixir.Mix.Project',
    Mix = 'Elixir.Mix',
    Shell = Mix:shell(),
    Project:'umbrella?'() andalso refuse(init, ~"this is an umbrella project: call it in the folder of one of its projects"),
    case witness_task_init:write(atom_to_binary(proplists:get_value(app, Project:config())), Arguments) of
        {ok, Lines} -> lists:foreach(fun(Line) -> Shell:info(unicode:characters_to_binary(Line)) end, Lines);
        {error, Text} -> refuse(init, Text)
    end;
run(Command, Arguments) ->
    case witness_task:arguments(Command, Arguments, configuration()) of
        {ok, All} ->
            lists:any(fun is_mix/1, All) andalso
                refuse(Command, ~"--mix: the project is that of the current folder, so this option is not for a task"),
            case witness_task:execute(mix, root(), All ++ project(Command), [filename:join(elixir(), "bin")], environment()) of
                0 -> ok;
                Code -> exit({shutdown, Code})
            end;
        {error, Text} -> refuse(Command, [~"config :witness: ", Text])
    end.

%% `providers' is for rebar3.
configuration() -> proplists:delete(providers, application:get_all_env(witness)).

is_mix(Argument) -> Argument =:= ~"--mix" orelse string:prefix(Argument, ~"--mix=") =/= nomatch.

%% With this reason Mix ends with the code and prints nothing.
-spec refuse(witness_task:command() | init, unicode:chardata()) -> no_return().
refuse(Command, Text) ->
    io:format(standard_error, "mix witness.~ts: ~ts~n", [Command, Text]),
    exit({shutdown, 2}).

%% What the command line needs to find the project. What is run is compiled and configured there, and printed to standard error.
project(Command) when Command =:= run; Command =:= record; Command =:= search -> [~"--mix", ~"."];
project(check) -> [~"--pa", project_folders()];
%% A specification may name functions of Elixir.
project(compile) -> [~"--pa", project_folders(), ~"--pa", filename:join([elixir(), "lib", "*", "ebin"])];
project(_) -> [].

project_folders() ->
    ok = compile(),
    Project = 'Elixir.Mix.Project',
    filename:join([Project:build_path(), "lib", "*", "ebin"]).

%% Standard output is for the results of the command.
compile() ->
    Mix = 'Elixir.Mix',
    Task = 'Elixir.Mix.Task',
    Shell = Mix:shell(),
    Mix:shell('Elixir.Mix.Shell.Quiet'),
    _ = Task:run(~"compile", []),
    Mix:shell(Shell),
    ok.

%% The folder with the sources of the dependency.
root() ->
    Project = 'Elixir.Mix.Project',
    #{witness := Folder} = Project:deps_paths(),
    Folder.

%% The Elixir that runs here may not be the one on PATH.
elixir() -> filename:dirname(filename:dirname(code:lib_dir(elixir))).

environment() ->
    Mix = 'Elixir.Mix',
    [{"MIX_ENV", atom_to_list(Mix:env())}, {"MIX_TARGET", atom_to_list(Mix:target())}].
