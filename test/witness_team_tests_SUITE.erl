-module(witness_team_tests_SUITE).
-moduledoc """
The tests of other projects, with monitors: copies of `examples/testing` are tested by rebar3 and Mix as their teams
would do it, in processes of the operating system. They pass when the pool is right and fail when it is not, and say
why.
""".

-export([all/0, suite/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([eunit_passes/1, eunit_fails_with_the_explanation/1]).
-export([common_test_passes/1, common_test_fails_with_the_explanation/1]).
-export([mix_test_passes/1, mix_test_fails_with_the_explanation/1, mix_test_of_nothing_has_a_warning/1]).

-include_lib("stdlib/include/assert.hrl").

suite() -> [{timetrap, {minutes, 10}}].

all() -> [{group, projects}].

groups() ->
    [{projects, [parallel], [{group, erlang}, {group, elixir}]},
     {erlang, [], [eunit_passes, eunit_fails_with_the_explanation,
                   common_test_passes, common_test_fails_with_the_explanation]},
     {elixir, [], [mix_test_passes, mix_test_fails_with_the_explanation, mix_test_of_nothing_has_a_warning]}].

init_per_suite(Config) ->
    [{root, witness_checkout:root(filename:dirname(proplists:get_value(data_dir, Config)))} | Config].

end_per_suite(_) -> ok.

init_per_group(projects, Config) -> Config;
init_per_group(Kind, Config) -> witness_project:prepare(Kind, "examples/testing", Config).

end_per_group(_, _) -> ok.

eunit_passes(Config) ->
    {0, Output} = tested("rebar3", ["eunit"], "correct", Config),
    has(~"9 tests, 0 failures", Output).

eunit_fails_with_the_explanation(Config) ->
    {1, Output} = tested("rebar3", ["eunit"], "buggy", Config),
    has(~"9 tests, 1 failures", Output),
    has(~"pool_tests:gives_and_takes_test/0", Output),
    explained(~"\\{lent,db1\\}", Output).

common_test_passes(Config) ->
    {0, Output} = tested("rebar3", ["ct"], "correct", Config),
    has(~"All 2 tests passed", Output).

common_test_fails_with_the_explanation(Config) ->
    {1, Output} = tested("rebar3", ["ct"], "buggy", Config),
    has(~"Failed 1 tests. Passed 1 tests.", Output),
    has(~"lends_to_users", Output),
    explained(~"\\{lent,db1\\}", Output).

mix_test_passes(Config) ->
    {0, Output} = tested("mix", ["test"], "correct", Config),
    has(~"8 (tests, 0 failures|passed)", Output).

mix_test_fails_with_the_explanation(Config) ->
    {Status, Output} = tested("mix", ["test"], "buggy", Config),
    ?assert(lists:member(Status, [1, 2]), Status),
    has(~"8 tests, 1 failure|7/8 passed", Output),
    has(~"test gives and takes \\(PoolTest\\)", Output),
    explained(~"\\{:lent, :db1\\}", Output).

%% The chart, and the specification's line with the action that must not happen.
%% One warning for a module, and none for a module of which another test starts a pool.
mix_test_of_nothing_has_a_warning(Config) ->
    File = filename:join([proplists:get_value(project, Config), "test", "nothing_test.exs"]),
    Module = fun(Name, Options, Test) ->
        ["defmodule ", Name, " do\n  use Witness.Case, async: true, specs: \"specs/pool.hml\"", Options, "\n",
         "  test \"starts none\", do: assert 1 == 1\n  test \"may start one\", do: ", Test, "\nend\n"]
    end,
    Starts = "{:ok, _} = Pool.start_link([:db1])",
    ok = file:write_file(File, [Module("NothingTest", "", "assert 2 == 2"), Module("SomeTest", "", Starts)]),
    {0, Output} = tested("mix", ["test", "test/nothing_test.exs"], "correct", Config),
    ?assertMatch({match, [_]}, re:run(Output, "nothing was monitored", [global]), Output),
    [has([~"(4 tests, 0 failures|4 passed)(.|\\n)*witness: warning: ", Warning], Output)
     || Warning <- [~"NothingTest: nothing was monitored in 2 tests: ", ~"SomeTest: test may start one: .* has a vacuous verdict only"]],
    ok = file:write_file(File, Module("SomeTest", ", unmonitored: :fail", Starts)),
    {2, Failed} = tested("mix", ["test", "test/nothing_test.exs"], "correct", Config),
    ok = file:delete(File),
    has(~"test starts none \\(SomeTest\\)(.|\\n)*NO RESULT: nothing was monitored", Failed),
    has(~"2 tests, 1 failure|1/2 passed", Failed).

explained(Lent, Output) ->
    has(~"VIOLATION of lent_to_one \\(.*specs/pool.hml:3\\)", Output),
    has(~"slice Connection = :?db1", Output),
    has([~"=> [0-9]+ .*reply\\(_, ", Lent, ~"\\)"], Output),
    has(~"specs/pool.hml:8:6: this must not happen: _ : _ ! reply\\(_, \\{lent, Connection\\}\\)", Output),
    has(~"\\|      \\^\\^\\^\\^\\^", Output).

has(Pattern, Output) ->
    ?assertMatch({match, _}, re:run(Output, Pattern), #{expected => Pattern}).

tested(Program, Arguments, Pool, Config) -> witness_project:run(Program, Arguments, [{"POOL", Pool}], Config).
