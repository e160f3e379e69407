-module(witness_team_tests_SUITE).
-moduledoc """
The tests of other projects, with monitors: copies of `examples/testing` are tested by rebar3 and Mix as their teams
would do it, in processes of the operating system. They pass when the pool is right and fail when it is not, and say
why.
""".

-export([all/0, suite/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([eunit_passes/1, eunit_fails_with_the_explanation/1]).
-export([common_test_passes/1, common_test_fails_with_the_explanation/1]).
-export([mix_test_passes/1, mix_test_fails_with_the_explanation/1]).

-include_lib("stdlib/include/assert.hrl").

-define(RUN_MS, 240_000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [{group, projects}].

groups() ->
    [{projects, [parallel], [{group, erlang}, {group, elixir}]},
     {erlang, [], [eunit_passes, eunit_fails_with_the_explanation,
                   common_test_passes, common_test_fails_with_the_explanation]},
     {elixir, [], [mix_test_passes, mix_test_fails_with_the_explanation]}].

init_per_suite(Config) ->
    [{root, witness_checkout:root(filename:dirname(proplists:get_value(data_dir, Config)))} | Config].

end_per_suite(_) -> ok.

%% Each project builds Witness for itself, from the sources of this checkout.
init_per_group(projects, Config) -> Config;
init_per_group(erlang, Config) ->
    Folder = copied("erlang", Config),
    Checkout = filename:join(Folder, "_checkouts/witness"),
    ok = filelib:ensure_dir(Checkout),
    ok = file:make_symlink(proplists:get_value(root, Config), Checkout),
    [{project, Folder} | Config];
init_per_group(elixir, Config) ->
    case os:find_executable("mix") of
        false -> {skip, "there is no mix on the path"};
        _ ->
            Folder = copied("elixir", Config),
            Mix = filename:join(Folder, "mix.exs"),
            {ok, Text} = file:read_file(Mix),
            Root = unicode:characters_to_binary(io_lib:format("~tp", [proplists:get_value(root, Config)])),
            ok = file:write_file(Mix, binary:replace(Text, ~"\"../../..\"", Root)),
            [{project, Folder} | Config]
    end.

end_per_group(_, _) -> ok.

copied(Name, Config) ->
    From = filename:join([proplists:get_value(root, Config), "examples/testing", Name]),
    To = filename:join(proplists:get_value(priv_dir, Config), Name),
    Files = ["rebar.config", "mix.exs"]
        ++ [filename:join(Folder, File) || Folder <- ["src", "lib", "test", "specs"],
                                           {ok, Inside} <- [file:list_dir(filename:join(From, Folder))],
                                           File <- Inside],
    [begin
         ok = filelib:ensure_dir(filename:join(To, File)),
         {ok, _} = file:copy(filename:join(From, File), filename:join(To, File))
     end || File <- Files, filelib:is_regular(filename:join(From, File))],
    To.

eunit_passes(Config) ->
    {0, Output} = tested("rebar3", ["eunit"], "correct", Config),
    has(~"9 tests, 0 failures", Output).

eunit_fails_with_the_explanation(Config) ->
    {1, Output} = tested("rebar3", ["eunit"], "buggy", Config),
    has(~"9 tests, 1 failures", Output),
    has(~"pool_tests:gives_and_takes_test/0", Output),
    explained(Output).

common_test_passes(Config) ->
    {0, Output} = tested("rebar3", ["ct"], "correct", Config),
    has(~"All 2 tests passed", Output).

common_test_fails_with_the_explanation(Config) ->
    {1, Output} = tested("rebar3", ["ct"], "buggy", Config),
    has(~"Failed 1 tests. Passed 1 tests.", Output),
    has(~"lends_to_users", Output),
    explained(Output).

mix_test_passes(Config) ->
    {0, Output} = tested("mix", ["test"], "correct", Config),
    has(~"8 (tests, 0 failures|passed)", Output).

mix_test_fails_with_the_explanation(Config) ->
    {Status, Output} = tested("mix", ["test"], "buggy", Config),
    ?assert(lists:member(Status, [1, 2]), Status),
    has(~"8 tests, 1 failure|7/8 passed", Output),
    has(~"test gives and takes \\(PoolTest\\)", Output),
    explained(Output).

%% The chart, and the specification's line with the action that must not happen.
explained(Output) ->
    has(~"VIOLATION of lent_to_one \\(.*specs/pool.hml:3\\)", Output),
    has(~"slice Connection = db1", Output),
    has(~"=> [0-9]+ .*reply\\(_, \\{lent,db1\\}\\)", Output),
    has(~"specs/pool.hml:8:6: this must not happen: _ : _ ! reply\\(_, \\{lent, Connection\\}\\)", Output),
    has(~"\\|      \\^\\^\\^\\^\\^", Output).

has(Pattern, Output) ->
    ?assertMatch({match, _}, re:run(Output, Pattern), #{expected => Pattern}).

%% The VM of the suite has a folder of the toolchain in front that is not for users, and the build a place of its own.
tested(Program, Arguments, Pool, Config) ->
    Path = filename:join(code:root_dir(), "bin") ++ ":" ++ os:getenv("PATH"),
    Rebar = case os:find_executable("rebar3") of false -> ""; File -> File end,
    Executable = os:find_executable(Program),
    Port = open_port({spawn_executable, Executable},
                     [{args, Arguments}, {cd, proplists:get_value(project, Config)}, exit_status, binary, hide,
                      stderr_to_stdout,
                      {env, [{"PATH", Path}, {"POOL", Pool}, {"MIX_REBAR3", Rebar}, {"REBAR_COLOR", "none"},
                             {"REBAR_BASE_DIR", false}, {"REBAR_PROFILE", false}, {"MIX_ENV", false},
                             {"ERL_LIBS", false}, {"ERL_FLAGS", false}]}]),
    {Status, Output} = collect(Port, []),
    ct:pal("~ts ~tp with POOL=~ts~nexit code ~b~n~ts", [Program, Arguments, Pool, Status, Output]),
    {Status, Output}.

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, [Output, Data]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Output)}
    after ?RUN_MS -> ct:fail({still_running, iolist_to_binary(Output)})
    end.
