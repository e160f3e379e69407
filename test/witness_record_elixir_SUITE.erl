-module(witness_record_elixir_SUITE).
-moduledoc """
Programs of Elixir, recorded: what a recording says of each process is what the process itself has noted; and projects of Mix,
by the command.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 15}}].

all() -> [servers_and_their_clients, supervisors_tasks_agents_and_registries, a_function_by_the_command,
          the_application_of_a_mix_project, a_function_of_a_mix_project, a_function_of_a_mix_project_is_monitored_as_in_a_run,
          a_mix_project_that_depends_on_witness, what_is_wrong_with_a_project_is_named].

init_per_suite(Config) ->
    case os:find_executable("elixirc") of
        false -> {skip, "there is no elixirc on the path"};
        _ ->
            Folder = proplists:get_value(priv_dir, Config),
            Out = filename:join(Folder, "programs"),
            Elixir = filename:join(Folder, "elixir"),
            ok = witness_record_programs:compile(Out),
            ok = witness_record_programs:compile_elixir(Elixir),
            ok = witness_cli_setup:load_elixir('Elixir.Recorded', []),
            [{pa, [Elixir, Out]} | Config]
    end.

end_per_suite(_) -> ok.

servers_and_their_clients(Config) -> program(exactly, exact, Config).

supervisors_tasks_agents_and_registries(Config) -> program(main, within, Config).

program(Function, Strictness, Config) ->
    [begin
         {File, Dir} = names(Function, Config),
         {ok, Summary} = witness_record:record(#{run => {witness_recorded, run, ['Elixir.Recorded', Function, File]}, dir => Dir,
                                                 pa => proplists:get_value(pa, Config), vm_args => ["+S", Schedulers]}),
         ct:pal("~p", [Summary]),
         ?assertMatch(#{outcome := recorded, ended := {returned, normal}, unwoven := []}, Summary),
         {Journal, Recorded} = witness_record_comparison:both(File, Dir),
         ct:pal("~p", [maps:get(result, Journal)]),
         ?assertEqual([], lists:sublist(witness_record_comparison:differences(Journal, Recorded, Strictness), 5))
     end || Schedulers <- ["1:1", "2:2"]].

a_function_by_the_command(Config) ->
    {_, Dir} = names(?FUNCTION_NAME, Config),
    {File, _} = names(?FUNCTION_NAME, Config),
    Folders = lists:append([["--pa", Folder] || Folder <- proplists:get_value(pa, Config)]),
    #{exit := 0, stdout := Text} =
        witness(Config, ["record", "-o", Dir | Folders] ++
                        [lists:flatten(io_lib:format("witness_recorded:run('Elixir.Recorded', main, ~p)", [File]))]),
    witness_command:contains(Text, [~"elixir says 50", ~"RECORDED"]).

the_application_of_a_mix_project(Config) ->
    Project = project(?FUNCTION_NAME, "[Starling, Starling.Once]", Config),
    {_, Dir} = names(?FUNCTION_NAME, Config),
    #{exit := 0, stdout := Text} = witness(Config, ["record", "--mix", Project, "-o", Dir]),
    witness_command:contains(Text, [~"says {:dev, \"runtime\", 3}", ~"the application starling has ended: shutdown", ~"RECORDED"]),
    conversations(Dir, 3).

a_function_of_a_mix_project(Config) ->
    Project = project(?FUNCTION_NAME, "[Starling]", Config),
    {_, Dir} = names(?FUNCTION_NAME, Config),
    #{exit := 0, stdout := Text} = witness(Config, ["record", "--mix", Project, "-o", Dir, "Starling.ask(5)"]),
    witness_command:contains(Text, [~"says {:dev, \"runtime\", 5}", ~"RECORDED"]),
    conversations(Dir, 5).

%% The same words have the same processes watched, and the same verdict.
a_function_of_a_mix_project_is_monitored_as_in_a_run(Config) ->
    Project = project(?FUNCTION_NAME, "[Starling]", Config),
    {_, Dir} = names(?FUNCTION_NAME, Config),
    Spec = filename:join(proplists:get_value(priv_dir, Config), "starling.hml"),
    [begin
         ok = file:write_file(Spec, io_lib:format("with 'Elixir.Starling':init(_) over _ ? call(_, _) check "
                                                  "max X.([_ ? call(_, {say, 4})] ff and [_ ? call(_, {say, N}) when N =/= 4] X).",
                                                  [])),
         Words = ["--mix", Project, "--spec", Spec, "Starling.ask(" ++ Times ++ ")"],
         ?assertMatch(#{exit := Exit}, witness(Config, ["run" | Words])),
         Folder = Dir ++ Times,
         #{exit := Exit, stdout := Text} = witness(Config, ["record", "-o", Folder | Words]),
         witness_command:contains(Text, [~"monitors  1", ~"RECORDED"]),
         ?assertMatch(#{exit := Exit}, witness(Config, ["replay", "--spec", Spec, Folder])),
         ?assertMatch(#{exit := Exit}, witness(Config, ["check", "--replay", "--spec", Spec, Folder]))
     end || {Times, Exit} <- [{"2", 0}, {"4", 1}]].

%% The copy that it has among its dependencies is no part of it, whether it is started with the project or not.
a_mix_project_that_depends_on_witness(Config) ->
    Project = project(?FUNCTION_NAME, "[Starling]", Config),
    Root = witness_checkout:root(proplists:get_value(data_dir, Config)),
    Rebar = os:find_executable("rebar3"),
    [begin
         write(Project, "mix.exs", io_lib:format("""
          defmodule Starling.MixProject do
            use Mix.Project
            def project, do: [app: :starling, version: "1.0.~s", deps: [{:witness, path: ~tp, only: :test, runtime: ~s}]]
            def application, do: [mod: {Starling.Application, []}, extra_applications: [:logger]]
          end
          """, [Number, Root, Runtime])),
         {_, Dir} = names(?FUNCTION_NAME, Config),
         #{exit := 0, stdout := Text} =
             witness_command:run(Config, "/usr/bin/env",
                                 ["-u", "REBAR_PROFILE", "MIX_ENV=test", "MIX_REBAR3=" ++ Rebar,
                                  "REBAR_COLOR=none",
                                  filename:join([Root, "bin", "witness"]), "record", "--mix", Project, "-o", Dir,
                                  "Starling.ask(5)"]),
         witness_command:contains(Text, [~"says {:test, \"runtime\", 5}", ~"RECORDED"]),
         ?assert(filelib:is_regular(filename:join(Project, "_build/test/lib/witness/ebin/witness.app"))),
         conversations(Dir, 5),
         ?assertMatch(#{exit := 0}, witness(Config, ["replay", Dir]))
     end || {Number, Runtime} <- [{"1", "false"}, {"2", "true"}]].

%% The server of the application took a request of one process so often, and that one its answers.
conversations(Dir, Number) ->
    #{entries := All, info := _} = witness_record_comparison:recorded(Dir),
    Takes = fun(Id) -> [From || {from, From} <- maps:get(Id, All)] end,
    Count = fun(Of, Id) -> length([Id || From <- Takes(Of), From =:= Id]) end,
    Pairs = [{Client, Server} || Client := _ <- All, Server := _ <- All, Client =/= Server,
                                 Count(Client, Server) >= Number, Count(Server, Client) =:= Number],
    ?assertNotEqual([], Pairs).

what_is_wrong_with_a_project_is_named(Config) ->
    Folder = proplists:get_value(priv_dir, Config),
    Project = project(?FUNCTION_NAME, "[]", Config),
    write(Project, "config/runtime.exs", "import Config\nconfig :starling, started: self()\n"),
    [begin
         #{exit := Code, stdout := ~"", stderr := Error} = witness(Config, ["record", "--mix", Dir]),
         ?assertEqual(2, Code),
         witness_command:contains(Error, Words)
     end || {Dir, Words} <- [{filename:join(Folder, "nowhere"), [~"--mix: there is no folder "]},
                             {Folder, [~"--mix: there is no mix.exs in "]},
                             {Project, [~"the parameter started of starling holds a process"]}]].

names(Case, Config) ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    Name = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case) ++ "-" ++ Unique),
    {Name ++ ".journal", Name ++ ".rec"}.

witness(Config, Arguments) ->
    Witness = filename:join([witness_checkout:root(proplists:get_value(data_dir, Config)), "bin", "witness"]),
    witness_command:run(Config, Witness, Arguments).

%% A server that says how it was configured, and one that asks it; when that ends, the application does.
project(Name, Children, Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Name) ++ "_project"),
    [write(Folder, File, string:replace(Text, "CHILDREN", Children)) || {File, Text} <- [
        {"mix.exs", ~"""
         defmodule Starling.MixProject do
           use Mix.Project
           def project, do: [app: :starling, version: "1.0.0", deps: []]
           def application, do: [mod: {Starling.Application, []}, extra_applications: [:logger]]
         end
         """},
        {"config/config.exs", ~"""
         import Config
         config :starling, compiled: config_env()
         """},
        {"config/runtime.exs", ~"""
         import Config
         config :starling, started: "runtime"
         """},
        {"lib/starling.ex", ~"""
         defmodule Starling.Application do
           use Application

           def start(_, _) do
             Supervisor.start_link(CHILDREN, strategy: :one_for_one, auto_shutdown: :any_significant)
           end
         end

         defmodule Starling.Once do
           use Task, restart: :transient, significant: true
           def start_link(_), do: Task.start_link(fn -> Starling.ask(3) end)
           def child_spec(arg), do: %{id: __MODULE__, start: {__MODULE__, :start_link, [arg]}, restart: :transient, significant: true}
         end

         defmodule Starling do
           use GenServer
           def start_link(arg), do: GenServer.start_link(__MODULE__, arg, name: __MODULE__)
           def init(arg), do: {:ok, arg}

           def handle_call({:say, n}, _, state) do
             {:reply, {Application.get_env(:starling, :compiled), Application.get_env(:starling, :started), n}, state}
           end

           def ask(times), do: for(n <- 1..times, do: IO.puts("says #{inspect(GenServer.call(__MODULE__, {:say, n}))}"))
         end
         """}]],
    Folder.

write(Folder, Name, Text) ->
    File = filename:join(Folder, Name),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Text).
