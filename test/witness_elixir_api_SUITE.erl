-module(witness_elixir_api_SUITE).
-moduledoc """
The modules of Witness for Elixir, as real Elixir sees them. Each case is a file of ExUnit in `test/elixir`, in a VM of its own.
""".

-include_lib("stdlib/include/assert.hrl").
-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([examples_of_the_documentation_are_right/1, an_example_that_is_wrong_fails/1, iex_shows_the_documentation/1,
         runs_have_the_forms_of_elixir/1, monitors_are_written_in_elixir/1, runs_are_supervised/1,
         a_project_is_compiled_for_production_without_witness/1]).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [examples_of_the_documentation_are_right, an_example_that_is_wrong_fails, iex_shows_the_documentation,
          runs_have_the_forms_of_elixir, monitors_are_written_in_elixir, runs_are_supervised,
          a_project_is_compiled_for_production_without_witness].

init_per_suite(Config) ->
    case os:find_executable("elixir") of
        false -> {skip, "there is no elixir on the path"};
        Elixir -> [{elixir, Elixir} | Config]
    end.

end_per_suite(_) -> ok.

examples_of_the_documentation_are_right(Config) ->
    #{exit := 0, stdout := Text} = elixir("examples", [], Config),
    %% Those of all modules: of each the number is in the names of its tests.
    ?assert(passed(Text) >= 14).

an_example_that_is_wrong_fails(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "Elixir.Wrong.erl"),
    ok = file:write_file(File, ~"""
     -module('Elixir.Wrong').
     -export([one/0, '__info__'/1]).
     -doc "iex> Wrong.one()\n2".
     one() -> 1.
     '__info__'(functions) -> [{one, 0}];
     '__info__'(_) -> [].
     """),
    #{exit := 2, stdout := Text} = elixir("wrong_example", [File], Config),
    witness_command:contains(Text, [~"doctest Wrong.one/0", ~"left:  1", ~"right: 2"]).

iex_shows_the_documentation(Config) -> passes("help", Config).

runs_have_the_forms_of_elixir(Config) -> passes("api", Config).

monitors_are_written_in_elixir(Config) -> passes("monitor", Config).

runs_are_supervised(Config) -> passes("supervised", Config).

%% As docs/elixir.md says.
a_project_is_compiled_for_production_without_witness(Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), "shop"),
    Root = unicode:characters_to_binary(io_lib:format("~tp", [witness_checkout:root(proplists:get_value(data_dir, Config))])),
    [begin
         File = filename:join(Folder, Name),
         ok = filelib:ensure_dir(File),
         ok = file:write_file(File, Text)
     end || {Name, Text} <- [
        {"mix.exs", string:replace(~"""
         defmodule Shop.MixProject do
           use Mix.Project
           def project, do: [app: :shop, version: "1.0.0", elixirc_paths: paths(Mix.env()), deps: deps()]
           def application, do: [extra_applications: [:logger]]
           defp deps, do: [{:witness, path: ROOT, only: [:dev, :test], runtime: false}]
           defp paths(:test), do: ["lib", "test/support"]
           defp paths(_), do: ["lib"]
         end
         """, "ROOT", Root)},
        {"lib/maybe.ex", ~"""
         if Code.ensure_loaded?(Witness.Monitor) do
           defmodule Shop.Maybe do
             use Witness.Monitor
             @impl true
             def handle_event(_event, state), do: {:ok, state}
           end
         end
         """},
        {"lib/plain.ex", ~"""
         defmodule Shop.Plain do
           def init(_signature, _process, arg), do: {:ok, arg}
           def handle_event(_event, state), do: {:ok, state}
           def monitors, do: for(module <- [Shop.Maybe, Shop.Beside, Shop.Plain], Code.ensure_loaded?(module), do: module)
         end
         """},
        {"test/support/beside.ex", ~"""
         defmodule Shop.Beside do
           use Witness.Monitor
           @impl true
           def handle_event(_event, state), do: {:ok, state}
         end
         """}]],
    Mix = fun(Env, Arguments) ->
        Home = filename:join(proplists:get_value(priv_dir, Config), "home"),
        witness_command:run([{cd, Folder} | Config], "env",
                            ["-u", "ERL_LIBS", "-u", "REBAR_PROFILE", "-u", "REBAR_BASE_DIR", "HOME=" ++ Home, "QUIET=1",
                             "MIX_ENV=" ++ Env, "MIX_REBAR3=" ++ os:find_executable("rebar3"), "mix" | Arguments])
    end,
    [begin
         #{exit := 0} = Mix(Env, ["compile", "--warnings-as-errors"]),
         #{exit := 0, stdout := Text} = Mix(Env, ["run", "-e", "IO.inspect(Shop.Plain.monitors())"]),
         witness_command:contains(Text, [Monitors])
     end || {Env, Monitors} <- [{"prod", ~"[Shop.Plain]"}, {"test", ~"[Shop.Maybe, Shop.Beside, Shop.Plain]"}]].

passes(Name, Config) ->
    #{exit := 0, stdout := Text, stderr := Errors} = elixir(Name, [], Config),
    ?assert(passed(Text) > 0),
    %% Neither the compiler of Elixir nor Witness warns of anything.
    ?assertEqual(~"", Errors).

%% ExUnit says `Result: 5 passed', before Elixir 1.20 `5 tests, 0 failures'.
passed(Text) ->
    {match, [Count]} = re:run(Text, "([0-9]+) (?:passed|tests?, 0 failures|doctests?, 0 failures)", [{capture, all_but_first, list}]),
    list_to_integer(Count).

elixir(Name, Arguments, Config) ->
    Ebin = filename:dirname(code:which(witness)),
    File = filename:join([witness_checkout:root(proplists:get_value(data_dir, Config)), "test", "elixir", Name ++ "_test.exs"]),
    witness_command:run(Config, proplists:get_value(elixir, Config), ["-pa", Ebin, File | Arguments]).
