-module(witness_task_rebar3).
-moduledoc """
The plugin of rebar3: `rebar3 witness COMMAND ...` in a project with `{project_plugins, [{witness, {git, "..."}}]}`.

The provider has the commands of `m:witness_cli` and `step`. The project is compiled before. Its folders, and those of its
dependencies, are the `--pa` of the commands that need code. The option `witness` of `rebar.config` has the defaults
(`witness_task:arguments/3`).
""".

%% Modules of rebar3 are called through a variable: they are no dependency of Witness.
-export([init/1, do/1, format_error/1]).

-doc "What rebar3 calls to have the provider (`providers` in `witness.app.src`).".
-spec init(State) -> {ok, State}.
init(State) ->
    Providers = providers,
    Rebar = rebar_state,
    %% rebar3 parses the arguments of each provider except `do', to which it passes all that follows the namespace.
    Provider = Providers:create([
        {namespace, witness}, {name, do}, {module, ?MODULE}, {bare, true}, {deps, [{default, compile}]},
        {example, "rebar3 witness run --spec specs/shop.hml 'shop_demo:main(10)'"},
        {short_desc, "Runs a command of Witness: rebar3 witness run ... (rebar3 witness --help)"},
        {desc, "Runs a command of Witness on the project: rebar3 witness COMMAND ... rebar3 witness --help lists the commands, "
               "and rebar3 witness COMMAND --help the options of one."},
        {opts, []}]),
    {ok, Rebar:add_provider(State, Provider)}.

-doc "What rebar3 calls to run a command. A command that does not succeed ends rebar3 with its exit code.".
-spec do(State) -> {ok, State}.
do(State) ->
    Rebar = rebar_state,
    case arguments(Rebar:command_args(State), Rebar:get(State, witness, []), State) of
        {ok, Arguments} ->
            case witness_task:execute(rebar3, root(), Arguments, [], []) of
                0 -> {ok, State};
                Code -> halt(Code)
            end;
        {error, Text} ->
            io:format(standard_error, "rebar3 witness: ~ts~n", [Text]),
            halt(2)
    end.

arguments([Name | Given], Configured, State) ->
    case [Command || Command <- witness_task:commands(), atom_to_list(Command) =:= Name] of
        [Command] ->
            maybe
                {ok, All} ?= witness_task:arguments(Command, Given, Configured),
                {ok, All ++ project(Command, State)}
            else
                {error, Text} -> {error, [~"option witness of rebar.config: ", Text]}
            end;
        [] -> {ok, [unicode:characters_to_binary(Argument) || Argument <- [Name | Given]]}
    end;
arguments([], _, _) -> {ok, [~"--help"]}.

project(Command, State) when Command =:= run; Command =:= record; Command =:= search; Command =:= check; Command =:= compile ->
    Rebar = rebar_state,
    App = rebar_app_info,
    lists:append([[~"--pa", unicode:characters_to_binary(App:ebin_dir(One))]
                  || One <- Rebar:project_apps(State) ++ Rebar:all_deps(State)]);
project(_, _) -> [].

%% The folder with the sources of the plugin. That of `_checkouts` is compiled elsewhere.
root() ->
    Built = filename:dirname(filename:dirname(code:which(?MODULE))),
    Source = proplists:get_value(source, ?MODULE:module_info(compile)),
    [Root | _] = [Folder || Folder <- [Built, lists:foldl(fun(_, File) -> filename:dirname(File) end, Source, [1, 2, 3])],
                            filelib:is_regular(filename:join([Folder, "bin", "witness"]))],
    Root.

-doc false.
-spec format_error(term()) -> unicode:chardata().
format_error(Reason) -> witness_event:format_term(Reason, 400).
