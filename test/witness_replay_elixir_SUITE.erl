-module(witness_replay_elixir_SUITE).
-moduledoc "Programs of Elixir, an application of Mix and an HTTP server as a data source, recorded and replayed.".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 15}}].

all() -> [{group, programs}, the_application_of_a_mix_project, a_data_source, a_server_that_is_recorded].

groups() -> [{programs, [], [servers_and_their_clients, supervisors_tasks_agents_and_registries]}].

init_per_suite(Config) ->
    case witness_record_elixir_SUITE:init_per_suite(Config) of
        {skip, _} = Skip -> Skip;
        Prepared ->
            {ok, _} = application:ensure_all_started(inets),
            [_, Programs] = proplists:get_value(pa, Prepared),
            [{programs, Programs}, {until, witness_replay_SUITE:until()} | Prepared]
    end.

end_per_suite(_) -> application:stop(inets).

servers_and_their_clients(Config) -> program(?FUNCTION_NAME, exactly, Config).

supervisors_tasks_agents_and_registries(Config) -> program(?FUNCTION_NAME, main, Config).

%% As often as those of Erlang.
program(Case, Function, Config) -> witness_replay_SUITE:program(Case, 'Elixir.Recorded', Function, Config).

%% Each recording twice: a replay may get right by chance what it does not know of.
replayed(Dir) ->
    [?assertMatch({ok, #{outcome := identical, complete := true, cut := 0, changed := []}}, witness_replay:replay(#{dir => Dir}))
     || _ <- [1, 2]].

the_application_of_a_mix_project(Config) ->
    Project = witness_record_elixir_SUITE:project(?FUNCTION_NAME, "[Starling, Starling.Once]", Config),
    {_, Dir} = witness_record_elixir_SUITE:names(?FUNCTION_NAME, Config),
    #{exit := 0} = witness_record_elixir_SUITE:witness(Config, ["record", "--mix", Project, "-o", Dir]),
    #{exit := 0, stdout := Text} = witness_record_elixir_SUITE:witness(Config, ["replay", "--mirror-output", Dir]),
    witness_command:contains(Text, [~"IDENTICAL"]).

%% In the replay no process serves, and none asks.
a_data_source(Config) ->
    {_, Dir, _} = witness_record_source_SUITE:served(source, #{outside => [inets]}, Config),
    replayed(Dir).

a_server_that_is_recorded(Config) ->
    {_, Dir, _} = witness_record_source_SUITE:served(direct, #{weave => [inets]}, Config),
    replayed(Dir).
