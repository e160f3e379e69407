-module(witness_explore_SUITE).
-moduledoc """
The command `explore`, as a user calls it: what it prints and where, and its exit codes.
""".

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_sound_scenario_ends_with_0/1,
    a_violation_ends_with_1_and_is_drawn/1,
    a_violation_of_a_scenario_in_a_file_is_drawn_with_its_names/1,
    what_is_not_finished_ends_with_3/1,
    several_searches_have_a_summary/1,
    a_run_is_drawn/1,
    what_there_is_can_be_listed/1,
    wrong_usage_ends_with_2/1,
    mistakes_of_a_file_are_pointed_at/1
]).

-include_lib("stdlib/include/assert.hrl").

suite() -> [{timetrap, {minutes, 5}}].

all() -> [a_sound_scenario_ends_with_0, a_violation_ends_with_1_and_is_drawn,
          a_violation_of_a_scenario_in_a_file_is_drawn_with_its_names, what_is_not_finished_ends_with_3,
          several_searches_have_a_summary, a_run_is_drawn, what_there_is_can_be_listed, wrong_usage_ends_with_2,
          mistakes_of_a_file_are_pointed_at].

init_per_suite(Config) ->
    Program = filename:join([witness_checkout:root(proplists:get_value(data_dir, Config)), "bin", "witness"]),
    %% The first call may have to build Witness, and says so.
    {0, _, _} = explore([{program, Program} | Config], ["--list"]),
    [{program, Program} | Config].

end_per_suite(_) -> ok.

a_sound_scenario_ends_with_0(Config) ->
    {0, Output, ~""} = explore(Config, ["--scenario", "siblings", "--source", "vm"]),
    contains(Output, [~"siblings", ~"vm", ~"sound", ~" states, ", ~"depth ", ~" states/s"]).

a_violation_ends_with_1_and_is_drawn(Config) ->
    {1, Output, ~""} = explore(Config, ["--scenario", "siblings", "--source", "vm", "--choreography", "paper"]),
    contains(Output, [~"VIOLATION after 2 steps", ~"\n   2       |       |------>|    takes Q1: Q begins\n",
                      ~"\n => Q1 (Q begins) is analysed by T:P, and no tracer has adopted the process\n"]).

a_violation_of_a_scenario_in_a_file_is_drawn_with_its_names(Config) ->
    File = file(Config, "mine.scenario",
                ~"{process, boss, [{spawn, worker}]}.\n{process, worker, []}.\n{monitors, [{worker, single}]}.\n"),
    {0, Sound, ~""} = explore(Config, ["--scenario", File]),
    contains(Sound, [~"mine.scenario", ~"{worker}", ~"ideal", ~"birth", ~"vm"]),
    {1, Output, ~""} = explore(Config, ["--scenario", File, "--source", "vm", "--choreography", "printed"]),
    contains(Output, [~"boss spawns worker, seen by T:boss", ~"takes worker1: worker begins"]).

what_is_not_finished_ends_with_3(Config) ->
    {3, Output, ~""} = explore(Config, ["--scenario", "siblings", "--source", "vm", "--depth", "4"]),
    contains(Output, [~"no violation up to depth 4, incomplete"]),
    {3, _, ~""} = explore(Config, ["--scenario", "siblings", "--source", "vm", "--states", "100"]).

several_searches_have_a_summary(Config) ->
    {0, Output, ~""} = explore(Config, ["--scenario", "set-up {P,Q}", "--scenario", "set-up {P,Q,R}", "--scenario",
                                        "paper, I8"]),
    contains(Output, [~"sound, the same as set-up {P,Q}", ~"violation after 2 steps, as expected",
                      ~"7 searches, 7 of them as expected", ~"the largest system explored completely: set-up {P,Q}, "]).

a_run_is_drawn(Config) ->
    {0, Output, ~""} = explore(Config, ["--scenario", "lives on", "--source", "vm", "--draw"]),
    contains(Output, [~"switches Q on in the session of T:Q", ~"the cut of Q is", ~"eof of Q, from T:P",
                      ~"analyses Q3"]).

what_there_is_can_be_listed(Config) ->
    {0, Output, ~""} = explore(Config, ["--list"]),
    contains(Output, [~"set-up {P},{Q},{R}", ~"example 9", ~"paper, A3.46"]).

wrong_usage_ends_with_2(Config) ->
    [begin
         {2, ~"", Error} = explore(Config, Arguments),
         contains(Error, [~"witness explore: ", Expected])
     end || {Arguments, Expected} <- [{[], ~"--all, --scenario NAME or --list is expected"},
                                      {["--all", "--scenario", "siblings"], ~"not both"},
                                      {["--scenario", "no such thing"], ~"'no such thing' is neither a scenario"},
                                      {["--scenario", "siblings", "--source", "log"], ~"--source"},
                                      {["--scenario", "siblings", "--depth", "0"], ~"--depth"}]].

mistakes_of_a_file_are_pointed_at(Config) ->
    Malformed = file(Config, "malformed.scenario", ~"{process, p,\n  [{spwan, q}]}.\n"),
    {2, ~"", Error} = explore(Config, ["--scenario", Malformed]),
    contains(Error, [~"malformed.scenario:2:5: expected spawn, send, recv, kill"]),
    Senseless = file(Config, "senseless.scenario", ~"{process, p, [{spawn, q}]}.\n"),
    {2, ~"", Other} = explore(Config, ["--scenario", Senseless]),
    contains(Other, [~"senseless.scenario: there is no process q"]).

%%% Tools

file(Config, Name, Text) ->
    File = filename:join(proplists:get_value(priv_dir, Config), Name),
    ok = file:write_file(File, Text),
    File.

contains(Text, Parts) -> [?assertMatch({Part, {_, _}}, {Part, binary:match(Text, Part)}) || Part <- Parts].

%% The exit code, standard output, standard error: a shell sends that to a file.
explore(Config, Arguments) ->
    Errors = filename:join(proplists:get_value(priv_dir, Config), "stderr-" ++
                           integer_to_list(erlang:unique_integer([positive]))),
    Port = open_port({spawn_executable, "/bin/sh"}, [
        {args, ["-c", "exec \"$@\" 2>\"$STDERR_FILE\"", "sh", proplists:get_value(program, Config),
                "explore" | Arguments]},
        {env, [{"STDERR_FILE", Errors}, {"PATH", filename:join(code:root_dir(), "bin") ++ ":" ++ os:getenv("PATH")}]},
        exit_status, binary, hide]),
    {Status, Output} = collect(Port, ~""),
    {ok, Error} = file:read_file(Errors),
    ct:pal("~tp~nexit code ~b~n~ts~nstandard error:~n~ts", [Arguments, Status, Output, Error]),
    {Status, Output, Error}.

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, <<Output/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Output}
    end.
