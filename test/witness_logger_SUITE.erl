-module(witness_logger_SUITE).
-moduledoc """
A violation is shown by the loggers of Erlang and Elixir as they are when nothing is configured, in nodes of their own, with the
property, the process and the place.
""".

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([default_handler_shows_violations/1, filter_of_the_user_hides_violations/1, handler_of_the_domain_gets_violations/1,
         application_that_stops_leaves_the_handler_as_it_was/1, mix_run_shows_violations/1]).

-include_lib("stdlib/include/assert.hrl").

-import(witness_command, [contains/2]).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [default_handler_shows_violations, filter_of_the_user_hides_violations, handler_of_the_domain_gets_violations,
     application_that_stops_leaves_the_handler_as_it_was, mix_run_shows_violations].

init_per_suite(Config) ->
    Root = witness_checkout:root(proplists:get_value(data_dir, Config)),
    Data = filename:join([Root, "test", "cli_data"]),
    Out = filename:join(proplists:get_value(priv_dir, Config), "ebin"),
    ok = filelib:ensure_path(Out),
    {ok, _, []} = compile:file(filename:join(Data, "cli_system"), [debug_info, return, {outdir, Out}]),
    [{spec, filename:join(Data, "small.hml")}, {ebin, Out} | Config].

end_per_suite(_) -> ok.

default_handler_shows_violations(Config) -> shown(erl(Config, "ok")).

filter_of_the_user_hides_violations(Config) ->
    Text = erl(Config, "logger:add_handler_filter(default, mine, {fun logger_filters:domain/2, {stop, sub, [witness]}})"),
    ?assertEqual(nomatch, binary:match(Text, ~"violated")).

%% As docs/operations.md shows it.
handler_of_the_domain_gets_violations(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "violations.log"),
    _ = erl(Config, io_lib:format("logger:add_handler(witness, logger_std_h, #{config => #{file => ~0p}, filter_default => stop,"
                                  " filters => [{witness, {fun logger_filters:domain/2, {log, sub, [witness]}}}]})", [File])),
    {ok, Text} = file:read_file(File),
    shown(Text).

application_that_stops_leaves_the_handler_as_it_was(Config) ->
    Text = erl(Config, "put(before, logger:get_handler_config(default))",
               "application:stop(witness), io:format(\"same: ~p\", [get(before) =:= logger:get_handler_config(default)])"),
    contains(Text, [~"same: true"]).

mix_run_shows_violations(Config) ->
    case os:find_executable("mix") of
        false -> {skip, "there is no mix on the path"};
        Mix ->
            Folder = filename:join(proplists:get_value(priv_dir, Config), "project"),
            ok = filelib:ensure_path(Folder),
            ok = file:write_file(filename:join(Folder, "mix.exs"), ~"""
                defmodule Plain.MixProject do
                  use Mix.Project
                  def project, do: [app: :plain, version: "0.1.0", prune_code_paths: false]
                  def application, do: [extra_applications: [:logger]]
                end
                """),
            Run = ["{:ok, run} = :witness.start(%{system: {:cli_system, :answers, [[10]]}, specs: [",
                   io_lib:format("~0tp", [proplists:get_value(spec, Config)]),
                   "]}); {:ok, _} = :witness.await(run, :infinity); Logger.flush()"],
            Paths = lists:append([["-pa", Dir] || Dir <- paths(Config)]),
            #{exit := 0, stdout := Out, stderr := Errors} =
                witness_command:run([{cd, Folder} | Config], os:find_executable("elixir"), Paths ++ ["-S", Mix, "run", "-e", Run]),
            shown(<<Out/binary, Errors/binary>>)
    end.

shown(Text) -> contains(Text, [~"small.hml:3 (one_digit) violated by <", ~", cli_system:server()"]).

%% What a plain node prints that runs a system with a violation.
erl(Config, Before) -> erl(Config, Before, "ok").

erl(Config, Before, After) ->
    Run = io_lib:format("~ts, {ok, Run} = witness:start(#{system => {cli_system, answers, [[10]]}, specs => [~0p]}),"
                        " {ok, #{outcome := violated}} = witness:await(Run, infinity), ~ts, init:stop().",
                        [Before, proplists:get_value(spec, Config), After]),
    #{exit := 0, stdout := Text} =
        witness_command:run(Config, filename:join([code:root_dir(), "bin", "erl"]),
                            ["-noshell", "-pa" | paths(Config)] ++ ["-eval", unicode:characters_to_binary(Run)]),
    Text.

paths(Config) -> [filename:dirname(code:which(witness)), proplists:get_value(ebin, Config)].
