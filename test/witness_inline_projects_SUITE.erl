-module(witness_inline_projects_SUITE).
-moduledoc """
Projects that are woven when they are compiled: copies of `examples/inline`, by rebar3 with the parse transform, and
by Mix with the compiler `:witness`, or with the parse transform in a module.
""".

-export([all/0, suite/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([rebar3_passes/1, rebar3_finds_the_violation/1, mix_passes/1, mix_finds_the_violation/1,
         mix_weaves_what_has_changed/1, mix_reports_wrong_specifications/1, mix_passes_with_the_parse_transform/1,
         mix_finds_the_violation_with_the_parse_transform/1]).

-include_lib("stdlib/include/assert.hrl").

suite() -> [{timetrap, {minutes, 10}}].

all() -> [{group, erlang}, {group, elixir}].

%% Elixir's are a sequence: each builds on what those before it have compiled, and the last two change the project.
groups() ->
    [{erlang, [], [rebar3_passes, rebar3_finds_the_violation]},
     {elixir, [sequence],
     [mix_passes, mix_finds_the_violation, mix_weaves_what_has_changed, mix_reports_wrong_specifications,
      mix_passes_with_the_parse_transform, mix_finds_the_violation_with_the_parse_transform]}].

init_per_suite(Config) ->
    [{root, witness_checkout:root(filename:dirname(proplists:get_value(data_dir, Config)))} | Config].

end_per_suite(_) -> ok.

init_per_group(Kind, Config) -> witness_project:prepare(Kind, "examples/inline", Config).

end_per_group(_, _) -> ok.

rebar3_passes(Config) ->
    {0, Output} = tested("rebar3", ["eunit"], "correct", Config),
    has(~"2 tests, 0 failures", Output).

rebar3_finds_the_violation(Config) ->
    {1, Output} = tested("rebar3", ["eunit"], "buggy", Config),
    has(~"2 tests, 1 failures", Output),
    has(~"got: violated", Output).

mix_passes(Config) ->
    {0, Output} = tested("mix", ["test"], "correct", Config),
    has(~"Woven for inline monitoring: 1 modules", Output),
    has(~"2 (tests, 0 failures|passed)", Output).

mix_finds_the_violation(Config) ->
    {Status, Output} = tested("mix", ["test"], "buggy", Config),
    ?assert(lists:member(Status, [1, 2]), Status),
    has_not(~"Woven", Output),
    has(~"violated by .*, Seats.init\\(\\[:a1, :a2\\]\\), Seat = :a1", Output),
    has(~"2 tests, 1 failure|1/2 passed", Output).

%% Specifications that name another function, and code that is compiled again.
mix_weaves_what_has_changed(Config) ->
    File = file("specs/seats.hml", Config),
    {ok, Specification} = file:read_file(File),
    ok = file:write_file(File, [Specification, "\nother: with Seats.sell(_, _) check [_ ? 1] ff.\n"]),
    {0, Other} = compiled(Config),
    has(~"Woven for inline monitoring: 1 modules", Other),
    ok = file:write_file(File, Specification),
    {0, Again} = compiled(Config),
    has(~"Woven for inline monitoring: 1 modules", Again),
    {0, Same} = compiled(Config),
    has_not(~"Woven", Same),
    {ok, Code} = file:read_file(file("lib/seats.ex", Config)),
    ok = file:write_file(file("lib/seats.ex", Config), [Code, "\n"]),
    {0, New} = compiled(Config),
    has(~"Compiling 1 file", New),
    has(~"Woven for inline monitoring: 1 modules", New),
    {0, _} = tested("mix", ["test"], "correct", Config).

mix_reports_wrong_specifications(Config) ->
    File = file("specs/seats.hml", Config),
    {ok, Specification} = file:read_file(File),
    ok = file:write_file(File, [Specification, "\nwrong: with Seats.init(_) check [_ ? X when Y > 1] ff.\n"]),
    {1, Output} = compiled(Config),
    has(~"specs/seats.hml:[0-9]+:[0-9]+: the variable `Y` is not bound", Output),
    ok = file:write_file(File, Specification),
    {0, _} = compiled(Config).

mix_passes_with_the_parse_transform(Config) ->
    ok = replaced("mix.exs", ~"\n      compilers: [^\n]*", ~"", Config),
    Transform = "@compile [{:parse_transform, :witness_inline}, {:witness_inline, %{specs: [\"specs/seats.hml\"]}}]",
    ok = replaced("lib/seats.ex", ~"  use GenServer", ["  ", Transform, "\n  use GenServer"], Config),
    {0, Output} = tested("mix", ["test"], "correct", Config),
    has_not(~"Woven", Output),
    has(~"2 (tests, 0 failures|passed)", Output).

mix_finds_the_violation_with_the_parse_transform(Config) ->
    {Status, Output} = tested("mix", ["test"], "buggy", Config),
    ?assert(lists:member(Status, [1, 2]), Status),
    has(~"violated by .*, Seats.init\\(\\[:a1, :a2\\]\\), Seat = :a1", Output).

replaced(Name, Pattern, New, Config) ->
    {ok, Text} = file:read_file(file(Name, Config)),
    Replaced = re:replace(Text, Pattern, New, [{return, binary}]),
    ?assertNotEqual(Text, Replaced),
    file:write_file(file(Name, Config), Replaced).

file(Name, Config) -> filename:join(proplists:get_value(project, Config), Name).

compiled(Config) -> witness_project:run("mix", ["compile"], [{"MIX_ENV", "test"}], Config).

tested(Program, Arguments, Seats, Config) -> witness_project:run(Program, Arguments, [{"SEATS", Seats}], Config).

has(Pattern, Output) -> ?assertMatch({match, _}, re:run(Output, Pattern), #{expected => Pattern}).

has_not(Pattern, Output) -> ?assertEqual(nomatch, re:run(Output, Pattern)).
