-module(witness_mix_tasks_SUITE).
-moduledoc """
The tasks of Mix, in projects that depend on this checkout, as their teams would call them. Each case has a fresh project and
an empty HOME. Only the dependency, once compiled, is kept for the next case.
""".

-export([all/0, suite/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([help_lists_all_tasks/1, run_has_the_exit_codes/1, run_takes_arguments_and_input_unchanged/1, run_prints_only_json/1,
         a_system_that_ends_its_vm_has_no_result/1, recordings_are_replayed_stepped_through_and_checked/1,
         a_search_starts_the_application/1, specifications_are_checked_against_the_project/1,
         a_running_node_is_watched/1, a_report_needs_a_benchmark/1,
         init_writes_a_test_that_passes/1, init_overwrites_nothing/1, an_umbrella_project_is_run/1,
         wrong_configuration_is_named/1, tests_have_the_specifications_of_the_project/1, signatures_of_the_project_are_used/1,
         later_tasks_run_after_a_success/1]).
-export([sigterm_ends_with_the_summary/1, a_killed_task_interrupts_the_command/1, ctrl_c_ends_with_the_summary/1,
         a_terminal_is_read_by_the_command/1]).

-include_lib("stdlib/include/assert.hrl").

suite() -> [{timetrap, {minutes, 10}}].

all() -> [{group, commands}, {group, interrupts}].

groups() ->
    [{commands, [], [run_has_the_exit_codes, run_takes_arguments_and_input_unchanged, run_prints_only_json,
                     a_system_that_ends_its_vm_has_no_result, recordings_are_replayed_stepped_through_and_checked,
                     a_search_starts_the_application, specifications_are_checked_against_the_project,
                     a_running_node_is_watched, a_report_needs_a_benchmark,
                     init_writes_a_test_that_passes, init_overwrites_nothing, an_umbrella_project_is_run,
                     wrong_configuration_is_named, tests_have_the_specifications_of_the_project,
                     signatures_of_the_project_are_used, later_tasks_run_after_a_success,
                     help_lists_all_tasks]},
     {interrupts, [], [ctrl_c_ends_with_the_summary, a_terminal_is_read_by_the_command, sigterm_ends_with_the_summary,
                       a_killed_task_interrupts_the_command]}].

init_per_suite(Config) ->
    case os:find_executable("mix") of
        false -> {skip, "there is no mix on the path"};
        _ ->
            [{root, witness_checkout:root(filename:dirname(proplists:get_value(data_dir, Config)))},
             {project, filename:join(proplists:get_value(priv_dir, Config), "shop")} | Config]
    end.

end_per_suite(_) -> ok.

init_per_testcase(Case, Config) ->
    Project = proplists:get_value(project, Config),
    Kept = filelib:wildcard(filename:join(Project, "_build/*/lib/witness")),
    Others = filelib:wildcard(filename:join(Project, "*")) ++ filelib:wildcard(filename:join(Project, "_build/*/lib/*")),
    _ = [file:del_dir_r(File) || File <- Others -- Kept, File =/= filename:join(Project, "_build")],
    write_project(Project, proplists:get_value(root, Config)),
    [{home, filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case) ++ "_home")} | Config].

end_per_testcase(_, _) -> ok.

%%% Commands

help_lists_all_tasks(Config) ->
    #{exit := 0, stdout := Tasks} = mix(["help"], Config),
    [?assertMatch({match, _}, re:run(Tasks, ["mix witness\\.", Name, " +# [A-Z]"]), Name)
     || Name <- ["run", "check", "record", "replay", "step", "search", "attach", "compile", "report", "init"]],
    #{exit := 0, stdout := Help} = mix(["help", "witness.run"], Config),
    contains(Help, [~"mix witness.run [OPTIONS] ['Shop.Demo.run(10)']", ~"`mix witness.run --help` lists the options"]),
    #{exit := 0, stdout := Options} = mix(["witness.run", "--help"], Config),
    contains(Options, [~"--must-decide"]).

run_has_the_exit_codes(Config) ->
    #{exit := 0, stdout := Holds, stderr := Compiled} = mix(["witness.run", "Shop.ask(2)"], Config),
    contains(Holds, [~"says {:dev, \"runtime\", 2}", ~"monitors  1: 1 undecided", ~"OK: nothing was violated"]),
    contains(Compiled, [~"Generated shop app"]),
    #{exit := 1, stdout := Violated} = mix(["witness.run", "Shop.ask(3)"], Config),
    contains(Violated, [~"VIOLATION of small (specs/shop.hml:1)", ~"VIOLATED: 1 monitor"]),
    #{exit := 2, stderr := Wrong} = mix(["witness.run", "--nope"], Config),
    contains(Wrong, [~"witness run: there is no option --nope"]),
    #{exit := 2, stderr := Twice} = mix(["witness.run", "--mix", "."], Config),
    contains(Twice, [~"mix witness.run: --mix: the project is that of the current folder"]),
    #{exit := 3, stdout := Undecided} = mix(["witness.run", "--must-decide", "Shop.ask(1)"], Config),
    contains(Undecided, [~"NO RESULT"]),
    #{exit := 0, stdout := Test} = mix([{"MIX_ENV", "test"}], ["witness.run", "Shop.ask(1)"], Config),
    contains(Test, [~"says {:test, \"runtime\", 1}"]),
    %% Its application, without a function.
    #{exit := 0, stdout := Application} = mix(["witness.run", "--for", "5"], Config),
    contains(Application, [~"system    shop still ran"]).

run_takes_arguments_and_input_unchanged(Config) ->
    Folder = filename:join(proplists:get_value(project, Config), "my specs"),
    ok = filelib:ensure_path(Folder),
    {ok, _} = file:copy(filename:join(proplists:get_value(project, Config), "specs/shop.hml"), filename:join(Folder, ~"größe $1.hml")),
    #{exit := 0, stdout := Text} =
        mix(["witness.run", "--spec", "my specs/größe $1.hml", "Shop.show(<<\"a  b 'c' \\\\ \\\"\">>)"], Config),
    contains(Text, [~"shows \"a  b 'c' \\\\ \\\"\""]),
    %% A VM of OTP 27 takes what comes on standard input, unless it is started with -noinput.
    Command = "printf 'one\\ntwo\\n' | ELIXIR_ERL_OPTIONS=-noinput mix witness.run 'Shop.read()'",
    #{exit := 0, stdout := Read} = execute([], "/bin/sh", ["-c", Command], Config),
    contains(Read, [~"read \"one\\n\"", ~"read \"two\\n\""]).

run_prints_only_json(Config) ->
    #{exit := 1, stdout := Text, stderr := Errors} = mix(["witness.run", "--json", "Shop.ask(3)"], Config),
    Lines = [json:decode(Line) || Line <- binary:split(Text, ~"\n", [global, trim])],
    ?assertMatch([#{~"type" := ~"verdict", ~"verdict" := ~"no"}, #{~"type" := ~"summary"}], Lines),
    contains(Errors, [~"says {:dev, \"runtime\", 3}"]).

a_system_that_ends_its_vm_has_no_result(Config) ->
    #{exit := 3, stderr := Errors} = mix(["witness.run", "Shop.halt()"], Config),
    contains(Errors, [~"the VM ended with status 0 before the run did"]).

recordings_are_replayed_stepped_through_and_checked(Config) ->
    #{exit := 1, stdout := Recorded} = mix(["witness.record", "--contents", "-o", "a.rec", "Shop.ask(3)"], Config),
    contains(Recorded, [~"VIOLATION of small", ~"RECORDED in "]),
    #{exit := 0, stdout := Replayed} = mix(["witness.replay", "a.rec"], Config),
    contains(Replayed, [~"IDENTICAL"]),
    #{exit := 0, stdout := Compared} = mix(["witness.replay", "--check", "a.rec"], Config),
    contains(Compared, [~"VIOLATION of small"]),
    #{exit := 0, stdout := Stepped} =
        mix(["witness.step", "--command", "goto Shop.handle_call/3", "--command", "where", "a.rec"], Config),
    contains(Stepped, [~"Shop.handle_call/3"]),
    #{exit := 1, stdout := Checked} = mix(["witness.check", "a.rec"], Config),
    contains(Checked, [~"VIOLATION of small"]).

%% It has the configuration and the specifications of the project, and replays.
a_search_starts_the_application(Config) ->
    #{exit := 1, stdout := Found} = mix(["witness.search", "-o", "found.rec", "Shop.ask(3)"], Config),
    contains(Found, [~"FAILED after 1 schedule", ~"VIOLATION of small (specs/shop.hml:1)", ~"IDENTICAL",
                     ~"\n  mix witness.replay --spec ", ~"\n  mix witness.step --spec "]),
    #{exit := 1, stdout := Replayed} = mix(["witness.replay", "--spec", "specs/shop.hml", "found.rec"], Config),
    contains(Replayed, [~"VIOLATION of small"]),
    #{exit := 0, stdout := Passed} = mix(["witness.search", "--schedules", "20", "Shop.ask(2)"], Config),
    contains(Passed, [~"OK: nothing went wrong in 20 schedules"]),
    #{exit := 2, stderr := Twice} = mix(["witness.search", "--mix", ".", "Shop.ask(2)"], Config),
    contains(Twice, [~"mix witness.search: --mix: the project is that of the current folder"]).

specifications_are_checked_against_the_project(Config) ->
    write(Config, "specs/other.hml", "other: with Shop.innit(_)\ncheck [_ ? 1] ff.\n"),
    #{exit := 0, stdout := Own, stderr := None} = mix(["witness.compile"], Config),
    contains(Own, [~"specs/shop.hml: 1 property"]),
    ?assertEqual(nomatch, binary:match(None, ~"warning")),
    #{exit := 0, stdout := Other, stderr := Warning} = mix(["witness.compile", "specs/other.hml"], Config),
    contains(Other, [~"specs/other.hml: 1 property"]),
    ?assertEqual(nomatch, binary:match(Other, ~"shop.hml")),
    contains(Warning, [~"specs/other.hml:1:18: warning: the module `'Elixir.Shop'` has no function `innit/1`"]),
    write(Config, "specs/other.hml", "other: with"),
    #{exit := 2} = mix(["witness.compile", "specs/other.hml"], Config).

a_running_node_is_watched(Config) ->
    {Node, Name} = node([], "", Config),
    #{exit := Code, stdout := Text} =
        mix(["witness.attach", Name, "--cookie-file", "cookie", "--check", "mailboxes", "--for", "1"], Config),
    ok = witness_command:signal(Node, "KILL"),
    _ = witness_command:collect(Node, ~""),
    ?assertEqual(0, Code),
    contains(Text, [~"watched ", ~"OK: nothing was violated"]).

%% A node; `Then` is what it evaluates after it has said that it is ready.
node(Arguments, Then, Config) ->
    Name = "shop_task_" ++ os:getpid(),
    Cookie = filename:join(proplists:get_value(project, Config), "cookie"),
    ok = file:write_file(Cookie, "abcdef"),
    ok = file:change_mode(Cookie, 8#600),
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Node = open_port({spawn_executable, Erl},
                     [{args, ["-noinput", "-sname", Name, "-setcookie", "abcdef" | Arguments]
                           ++ ["-eval", "io:put_chars(\"ready\\n\")" ++ Then]}, binary, exit_status]),
    _ = witness_command:until(Node, ~"ready", ~""),
    {ok, Host} = inet:gethostname(),
    {Node, Name ++ "@" ++ Host}.

a_report_needs_a_benchmark(Config) ->
    #{exit := 2, stderr := Error} = mix(["witness.report", "specs"], Config),
    contains(Error, [~"witness report: specs"]).

init_writes_a_test_that_passes(Config) ->
    Project = proplists:get_value(project, Config),
    ok = file:del_dir_r(filename:join(Project, "specs")),
    #{exit := 0, stdout := Text} = mix(["witness.init"], Config),
    contains(Text, [~"* creating specs/shop.hml", ~"* creating test/shop_witness_test.exs", ~"mix test test/shop_witness_test.exs"]),
    #{exit := 0} = mix([{"MIX_ENV", "test"}], ["test", "test/shop_witness_test.exs"], Config),
    #{exit := 0} = mix(["format", "--check-formatted", "test/shop_witness_test.exs"], Config),
    %% As the comment in the test says.
    File = filename:join(Project, "test/shop_witness_test.exs"),
    {ok, Test} = file:read_file(File),
    ok = file:write_file(File, string:replace(Test, ~"{:reply, n, n + 1}", ~"{:reply, n, n - 1}")),
    #{exit := 2, stdout := Failed} = mix([{"MIX_ENV", "test"}], ["test", "test/shop_witness_test.exs"], Config),
    contains(Failed, [~"VIOLATION of no_answer_is_negative (specs/shop.hml:4)"]).

init_overwrites_nothing(Config) ->
    #{exit := 2, stderr := There} = mix(["witness.init"], Config),
    contains(There, [~"mix witness.init: specs/shop.hml is there already, so nothing was written"]),
    ?assertNot(filelib:is_file(filename:join(proplists:get_value(project, Config), "test/shop_witness_test.exs"))),
    #{exit := 2, stderr := Argument} = mix(["witness.init", "shop"], Config),
    contains(Argument, [~"mix witness.init: no argument is expected, not 'shop'"]).

an_umbrella_project_is_run(Config) ->
    Shop = proplists:get_value(project, Config),
    Umbrella = Shop ++ "_umbrella",
    ok = write_project(filename:join(Umbrella, "apps/shop"), proplists:get_value(root, Config)),
    Own = lists:keystore(project, 1, Config, {project, Umbrella}),
    write(Own, "mix.exs", "defmodule Umbrella.MixProject do\n  use Mix.Project\n  def project, do: [apps_path: \"apps\", deps: []]\nend\n"),
    write(Own, "config/config.exs", "import Config\nconfig :shop, compiled: config_env()\n"
                                    "config :witness, specs: [Path.expand(\"../apps/shop/specs/shop.hml\", __DIR__)]\n"),
    write(Own, "config/runtime.exs", "import Config\nconfig :shop, started: \"runtime\"\n"),
    write(Own, "apps/cart/lib/cart.ex", "defmodule Cart, do: (def cart, do: :cart)\n"),
    write(Own, "apps/cart/mix.exs", ["defmodule Cart.MixProject do\n  use Mix.Project\n  def project, do: [app: :cart, ",
                                     shared_build(), "version: \"1.0.0\", deps: []]\nend\n"]),
    {ok, Mix} = file:read_file(filename:join(Umbrella, "apps/shop/mix.exs")),
    write(Own, "apps/shop/mix.exs", string:replace(Mix, "[app: :shop, ", ["[app: :shop, ", shared_build()])),
    #{exit := 2, stderr := Error} = mix(["witness.run"], Own),
    contains(Error, [~"the project has the applications cart and shop: name one with --app"]),
    #{exit := 0, stdout := Named} = mix(["witness.run", "--app", "shop", "--for", "5"], Own),
    contains(Named, [~"system    shop still ran", ~"monitors  1: 1 undecided"]),
    #{exit := 1} = mix(["witness.run", "Shop.ask(3)"], Own),
    #{exit := 2, stderr := Init} = mix(["witness.init"], Own),
    contains(Init, [~"mix witness.init: this is an umbrella project: call it in the folder of one of its projects"]),
    #{exit := 1} = mix(["witness.run", "Shop.ask(3)"], lists:keystore(project, 1, Own, {project, filename:join(Umbrella, "apps/shop")})).

shared_build() -> "build_path: \"../../_build\", config_path: \"../../config/config.exs\", lockfile: \"../../mix.lock\", ".

wrong_configuration_is_named(Config) ->
    [begin
         write(Config, "config/config.exs", ["import Config\nconfig :witness, ", Text, "\n"]),
         #{exit := 2, stdout := Nothing, stderr := Error} = mix(["witness.run", "Shop.ask(1)"], Config),
         ?assertEqual(nomatch, binary:match(Nothing, ~"says")),
         contains(Error, [[~"mix witness.run: config :witness: ", Expected]])
     end || {Text, Expected} <- [
        {"spec: [\"a.hml\"]", ~"there is no key spec: there are specs, signatures, run, check, record"},
        {"specs: \"a.hml\"", ~"specs: a list of names of files is expected, each a string, not <<\"a.hml\">>"},
        {"signatures: [{MyServer, :init, [:wrong]}]", ~"signatures: {MyServer, :init, [:wrong]}: no argument says where the module"},
        {"run: [for: 3]", ~"run: a list of arguments is expected, each a string, not [{for,3}]"}]],
    write(Config, "config/config.exs", "import Config\nconfig :witness, run: [\"--for\", \"never\"]\n"),
    #{exit := 2, stderr := Flag} = mix(["witness.run"], Config),
    contains(Flag, [~"witness run: --for SECONDS is expected, not 'never'"]),
    write(Config, "config/config.exs", "import Config\nconfig :witness, specs: [\"a.hml\"]\n"),
    #{exit := 2, stderr := File} = mix(["witness.run"], Config),
    contains(File, [~"a.hml: error: cannot read the file: no such file or directory"]).

tests_have_the_specifications_of_the_project(Config) ->
    write(Config, "test/test_helper.exs", "ExUnit.start(timeout: :infinity)\n"),
    write(Config, "test/shop_test.exs", ~"""
     defmodule ShopTest do
       use ExUnit.Case
       use Witness.Case

       test "asks" do
         shop = start_supervised!(%{id: :shop, start: {GenServer, :start_link, [Shop, []]}})
         for n <- 1..String.to_integer(System.get_env("ASKS")), do: GenServer.call(shop, {:say, n})
       end
     end
     """),
    #{exit := 0} = mix([{"MIX_ENV", "test"}, {"ASKS", "2"}], ["test"], Config),
    #{exit := 2, stdout := Failed} = mix([{"MIX_ENV", "test"}, {"ASKS", "3"}], ["test"], Config),
    contains(Failed, [~"VIOLATION of small (specs/shop.hml:1)"]).

%% The processes start in a function of Shop.Server. Without the row there is nothing to monitor.
signatures_of_the_project_are_used(Config) ->
    write(Config, "lib/cart.ex", ~"""
     defmodule Shop.Server do
       def init({_module, _number}), do: receive(do: (:pay -> :ok))
     end

     defmodule Shop.Cart do
       def pay(number) do
         {pid, ref} = spawn_monitor(Shop.Server, :init, [{__MODULE__, number}])
         send(pid, :pay)
         receive(do: ({:DOWN, ^ref, _, _, _} -> :ok))
       end
     end
     """),
    write(Config, "specs/cart.hml", "cart: with Shop.Cart.init(_)\nover _ ? pay\ncheck [_ ? pay] ff.\n"),
    write(Config, "test/cart_test.exs", ~"""
     defmodule CartTest do
       use ExUnit.Case
       use Witness.Case, unmonitored: :ignore
       test "is paid", do: Shop.Cart.pay(3)
     end
     """),
    Call = "Shop.Cart.pay(3)",
    configure(~"", Config),
    #{exit := 3} = mix(["witness.record", "--contents", "-o", "plain.rec", Call], Config),
    #{exit := 3} = mix(["witness.check", "plain.rec"], Config),
    #{exit := 0, stderr := Warned} = mix(["witness.compile"], Config),
    contains(Warned, [~"has no function `init/1`"]),
    #{exit := 0} = mix([{"MIX_ENV", "test"}], ["test", "test/cart_test.exs"], Config),
    configure(~", signatures: [{Shop.Server, :init, [{:module, :args}]}]", Config),
    [begin
         #{exit := 1, stdout := Text} = mix(Arguments, Config),
         contains(Text, [~"VIOLATION of cart (specs/cart.hml:1)", ~"Shop.Cart.init(3)"])
     end || Arguments <- [["witness.run", Call], ["witness.record", "-o", "own.rec", Call], ["witness.check", "plain.rec"],
                          ["witness.replay", "--spec", "specs/cart.hml", "plain.rec"]]],
    #{exit := 0, stdout := Stepped} = mix(["witness.step", "--command", "goto end", "--command", "processes all", "plain.rec"], Config),
    contains(Stepped, [~"Shop.Cart.init/1"]),
    #{exit := 0, stderr := None} = mix(["witness.compile"], Config),
    ?assertEqual(nomatch, binary:match(None, ~"warning")),
    #{exit := 2, stdout := Failed} = mix([{"MIX_ENV", "test"}], ["test", "test/cart_test.exs"], Config),
    contains(Failed, [~"VIOLATION of cart (specs/cart.hml:1)"]),
    attach_finds_the_violation(Config).

configure(More, Config) ->
    write(Config, "config/config.exs", ["import Config\nconfig :witness, specs: [\"specs/cart.hml\"]", More, "\n"]).

%% The node pays one cart after the other.
attach_finds_the_violation(Config) ->
    {Node, Name} = node(["-pa", filename:join(proplists:get_value(project, Config), "_build/dev/lib/shop/ebin")],
                        ", F = fun G() -> 'Elixir.Shop.Cart':pay(3), timer:sleep(50), G() end, spawn(F)", Config),
    try
        Port = witness_command:start([{cd, proplists:get_value(project, Config)} | Config], "/dev/null", "env",
                                     variables([], Config) ++ ["mix", "witness.attach", Name, "--cookie-file", "cookie"]),
        Shown = witness_command:until(Port, ~"VIOLATION of cart (specs/cart.hml:1)", ~""),
        ok = witness_command:signal(Port, "TERM"),
        {1, Text} = witness_command:collect(Port, Shown),
        contains(Text, [~"Shop.Cart.init(3)"])
    after
        ok = witness_command:signal(Node, "KILL"),
        _ = witness_command:collect(Node, ~"")
    end.

later_tasks_run_after_a_success(Config) ->
    #{exit := 0, stdout := Text} = mix(["do", "witness.compile", "+", "witness.run", "Shop.ask(1)", "+", "eval", "IO.puts(:next)"], Config),
    contains(Text, [~"1 property", ~"OK: nothing", ~"next"]),
    #{exit := 1, stdout := Failed} = mix(["do", "witness.run", "Shop.ask(3)", "+", "eval", "IO.puts(:next)"], Config),
    ?assertEqual(nomatch, binary:match(Failed, ~"next")).

%%% Interrupts

ctrl_c_ends_with_the_summary(Config) ->
    Port = terminal("stty -a > before; mix witness.run 'Shop.wait()'; code=$?; stty -a > after; cmp before after && exit $code", Config),
    Shown = witness_command:until(Port, ~"says {:dev, \"runtime\", 1}", ~""),
    true = port_command(Port, [3]),
    {3, Text} = witness_command:collect(Port, Shown),
    contains(Text, [~"interrupted: the run comes to its end", ~"the run was interrupted", ~"watched "]),
    ?assertEqual(nomatch, binary:match(Text, ~"BREAK")).

a_terminal_is_read_by_the_command(Config) ->
    Port = terminal("mix witness.run 'Shop.read()'", Config),
    Shown = witness_command:until(Port, ~"reads", ~""),
    true = port_command(Port, ~"one\r"),
    More = witness_command:until(Port, ~"read \"one\\n\"", Shown),
    true = port_command(Port, ~"two\r"),
    {0, Text} = witness_command:collect(Port, More),
    contains(Text, [~"read \"two\\n\"", ~": nothing was violated"]).

%% Ctrl-C is SIGQUIT, which ends dash, but no bash.
terminal(Line, Config) ->
    witness_command:start([{cd, proplists:get_value(project, Config)} | Config], "/dev/null", "env",
                          variables([{"SHELL", os:find_executable("bash")}], Config) ++ ["script", "-qec", Line, "/dev/null"]).

sigterm_ends_with_the_summary(Config) ->
    {Port, Shown} = waiting("stderr", Config),
    ok = witness_command:signal(Port, "TERM"),
    {3, Text} = witness_command:collect(Port, Shown),
    contains(Text, [~"watched ", ~"NO RESULT"]).

a_killed_task_interrupts_the_command(Config) ->
    {Port, Shown} = waiting("stderr", Config),
    ok = witness_command:signal(Port, "KILL"),
    %% The command has the standard output of the task.
    Text = witness_command:until(Port, ~"NO RESULT", Shown),
    contains(Text, [~"watched "]).

waiting(Errors, Config) ->
    Port = witness_command:start([{cd, proplists:get_value(project, Config)} | Config],
                                 filename:join(proplists:get_value(project, Config), Errors), "env",
                                 variables([], Config) ++ ["mix", "witness.run", "Shop.wait()"]),
    {Port, witness_command:until(Port, ~"says {:dev, \"runtime\", 1}", ~"")}.

%%% The project

mix(Arguments, Config) -> mix([], Arguments, Config).

mix(Variables, Arguments, Config) -> execute(Variables, "mix", Arguments, Config).

execute(Variables, Program, Arguments, Config) ->
    witness_command:run([{cd, proplists:get_value(project, Config)} | Config], "env",
                        variables(Variables, Config) ++ [Program | Arguments]).

%% The HOME is empty, but what is woven once is not woven again. Mix compiles a dependency in a folder each time, and prints so.
variables(Variables, Config) ->
    Home = proplists:get_value(home, Config),
    ok = filelib:ensure_path(Home),
    Cache = os:getenv("WITNESS_CACHE", filename:join(os:getenv("XDG_CACHE_HOME", os:getenv("HOME", "") ++ "/.cache"), "witness")),
    Set = [{"HOME", Home}, {"WITNESS_CACHE", Cache}, {"MIX_REBAR3", os:find_executable("rebar3")}, {"QUIET", "1"} | Variables],
    lists:append([["-u", Name] || Name <- ["MIX_ENV", "ERL_LIBS", "ERL_FLAGS", "REBAR_PROFILE", "REBAR_BASE_DIR"]])
        ++ [lists:flatten([Name, $=, Value]) || {Name, Value} <- Set].

contains(Text, Words) -> witness_command:contains(Text, [iolist_to_binary(Word) || Word <- Words]).

write([{_, _} | _] = Config, Name, Text) -> write(proplists:get_value(project, Config), Name, Text);
write(Folder, Name, Text) ->
    File = filename:join(Folder, Name),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, unicode:characters_to_binary(Text)).

%% A server that says how it was configured, when the project was compiled and when it was started.
write_project(Folder, Root) ->
    Path = io_lib:format("~tp", [Root]),
    Project = unicode:characters_to_binary(Folder),
    [write(Project, File, Text) || {File, Text} <- [
        {"mix.exs", string:replace(~"""
         defmodule Shop.MixProject do
           use Mix.Project
           def project, do: [app: :shop, version: "1.0.0", deps: [{:witness, path: ROOT, runtime: false}]]
           def application, do: [mod: {Shop.Application, []}, extra_applications: [:logger]]
         end
         """, "ROOT", Path)},
        {"config/config.exs", ~"""
         import Config
         config :shop, compiled: config_env()
         config :witness, specs: ["specs/shop.hml"]
         """},
        {"config/runtime.exs", ~"""
         import Config
         config :shop, started: "runtime"
         """},
        {"test/test_helper.exs", "ExUnit.start(timeout: :infinity)\n"},
        {"specs/shop.hml", ~"""
         small: with Shop.init(_)
         over _ : _ ! reply(_, _)
         check max Ready.([_ : _ ! reply(_, {_, _, N}) when N < 3] Ready and [_ : _ ! reply(_, {_, _, N}) when N >= 3] ff).
         """},
        {"lib/shop.ex", ~"""
         defmodule Shop.Application do
           use Application
           def start(_, _), do: Supervisor.start_link([{Shop, []}], strategy: :one_for_one)
         end

         defmodule Shop do
           use GenServer
           def start_link(_), do: GenServer.start_link(__MODULE__, [], name: __MODULE__)
           def init(_), do: {:ok, []}

           def handle_call({:say, n}, _, state) do
             {:reply, {Application.get_env(:shop, :compiled), Application.get_env(:shop, :started), n}, state}
           end

           def ask(times), do: for(n <- 1..times, do: IO.puts("says #{inspect(GenServer.call(__MODULE__, {:say, n}))}"))
           def show(text), do: IO.puts("shows #{inspect(text)}")
           def halt, do: System.halt(0)

           def wait do
             ask(1)
             Process.sleep(:infinity)
           end

           def read do
             ask(1)
             IO.puts("reads")
             for _ <- 1..2, do: IO.puts("read #{inspect(IO.gets(""))}")
           end
         end
         """}]],
    ok.
