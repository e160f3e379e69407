-module(witness_cli_streams_SUITE).
-moduledoc """
`bin/witness` and what is around it: standard streams that are closed or full, readers that go away, what can keep it from
starting, and the end of the process that has started it. Exit code 1 is a violation and nothing else.
""".

-export([all/0, suite/0, groups/0, init_per_suite/1, end_per_suite/1]).
-export([
    closed_standard_output_runs_nothing/1,
    full_standard_output_is_no_success/1,
    violation_stands_where_output_is_lost/1,
    reader_that_goes_away_is_no_error_report/1,
    closed_standard_input_and_error_change_no_result/1
]).
-export([what_keeps_it_from_starting_is_no_violation/1, system_that_halts_is_no_violation/1]).
-export([killed_launcher_ends_what_it_started/1, hangup_ends_in_good_order/1]).

-include_lib("stdlib/include/assert.hrl").

-import(witness_command, [collect/2, until/3, contains/2]).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [{group, Group} || {Group, _, _} <- groups()].

groups() ->
    [{streams, [], [closed_standard_output_runs_nothing, full_standard_output_is_no_success,
                    violation_stands_where_output_is_lost, reader_that_goes_away_is_no_error_report,
                    closed_standard_input_and_error_change_no_result]},
     {launcher, [], [what_keeps_it_from_starting_is_no_violation, system_that_halts_is_no_violation]},
     {supervision, [], [killed_launcher_ends_what_it_started, hangup_ends_in_good_order]}].

init_per_suite(Config) ->
    Root = witness_checkout:root(proplists:get_value(data_dir, Config)),
    Data = filename:join([Root, "test", "cli_data"]),
    Private = proplists:get_value(priv_dir, Config),
    Out = filename:join(Private, "ebin"),
    ok = filelib:ensure_path(Out),
    [{ok, _, []} = compile:file(filename:join(Data, Module), [debug_info, return, {outdir, Out}])
     || Module <- ["cli_system", "cli_monitor"]],
    Recording = filename:join(Private, "known.rec"),
    Ready = [{root, Root}, {data, Data}, {ebin, Out}, {recording, Recording} | Config],
    #{exit := 0} = witness(Ready, ["record", "--contents", "-o", Recording, "--pa", Out, "cli_system:answers([1, 2])"]),
    Ready.

end_per_suite(_) -> ok.

%%% Streams

closed_standard_output_runs_nothing(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "closed.rec"),
    [begin
         #{exit := 3, stderr := Text} = redirected(Config, ">&-", Command),
         contains(Text, [~"standard output is closed"])
     end || Command <- [["record", "-o", Dir | program(Config)], ["run" | checked(Config, "small.hml")], ["--version"]]],
    #{exit := 3} = redirected(Config, "<&- >&- 2>&-", ["--version"]),
    ?assertNot(filelib:is_dir(Dir)).

full_standard_output_is_no_success(Config) ->
    #{exit := 3, stderr := Demo} = redirected(Config, "> /dev/full", ["demo"]),
    contains(Demo, [~"witness: standard output could not be written"]),
    ?assertEqual(nomatch, binary:match(Demo, ~"fault of Witness")),
    [begin
         #{exit := Code, stderr := Text} = redirected(Config, "> /dev/full", Command),
         ?assertEqual({Command, 3}, {Command, Code}),
         contains(Text, [~"witness: standard output could not be written (no space left on device)"]),
         %% That is all: no report of the VM.
         ?assertEqual(nomatch, binary:match(Text, ~"REPORT"))
     end || Command <- succeeding(Config)].

violation_stands_where_output_is_lost(Config) ->
    [#{exit := 1} = Lost(["run" | Json] ++ violated(Config))
     || Json <- [[], ["--json"]],
        Lost <- [fun(Arguments) -> redirected(Config, "> /dev/full", Arguments) end, fun(Arguments) -> unread(Config, Arguments) end]].

reader_that_goes_away_is_no_error_report(Config) ->
    [begin
         #{exit := Code, stderr := Text} = unread(Config, Command),
         ?assertEqual({Command, 3, ~""}, {Command, Code, Text})
     end || Command <- [["log", proplists:get_value(recording, Config)], ["log", "--json", proplists:get_value(recording, Config)],
                        ["--help"], ["compile", data(Config, "small.hml")]]].

closed_standard_input_and_error_change_no_result(Config) ->
    [begin
         #{exit := 0} = redirected(Config, Redirection, ["run" | checked(Config, "small.hml")]),
         #{exit := 1} = redirected(Config, Redirection, ["run" | violated(Config)]),
         #{exit := 2} = redirected(Config, Redirection, ["run", "--spec", "no_such.hml" | program(Config)])
     end || Redirection <- ["<&-", "2>&-", "2> /dev/full", "<&- 2>&-"]].

%% Commands that succeed, and print something, as text and as JSON.
succeeding(Config) ->
    Recording = proplists:get_value(recording, Config),
    Spec = data(Config, "small.hml"),
    Listing = [["--help"], ["run", "--help"], ["--version"], ["compile", "--erlang", Spec], ["compile", "--dot", Spec],
               ["explore", "--list"], ["explore", "--scenario", "siblings"], ["bench", "--list"], ["bench", "--show", "laptop"],
               ["log", "--sequence", Recording], ["replay", "--step", "--command", "help", Recording]],
    Checking = [["compile", Spec], ["run" | checked(Config, "small.hml")], ["check", "--spec", Spec, Recording],
                ["log", Recording], ["replay", Recording], ["replay", "--spec", Spec, Recording],
                ["replay", "--check", "--spec", Spec, Recording]],
    New = fun(Name) -> filename:join(proplists:get_value(priv_dir, Config), Name) end,
    Listing ++ Checking ++ [[Name, "--json" | Arguments] || [Name | Arguments] <- Checking]
        ++ [["record", "-o", New("text.rec") | program(Config)], ["record", "--json", "-o", New("json.rec") | program(Config)],
            ["record", "-o", New("monitored.rec") | checked(Config, "small.hml")]].

program(Config) -> ["--pa", proplists:get_value(ebin, Config), "cli_system:answers([1, 2])"].

checked(Config, Spec) -> ["--spec", data(Config, Spec) | program(Config)].

violated(Config) -> ["--spec", data(Config, "small.hml"), "--pa", proplists:get_value(ebin, Config), "cli_system:answers([10])"].

%%% What happens before the VM runs

what_keeps_it_from_starting_is_no_violation(Config) ->
    Private = proplists:get_value(priv_dir, Config),
    Stubs = filename:join(Private, "stubs"),
    stub(Stubs, "erl", "exit 1"),
    Other = filename:join(Private, "another_folder"),
    stub(Other, "dpkg", "echo unknown"),
    stub(Other, "erl", "exit 1"),
    Empty = filename:join(Private, "empty"),
    [begin
         #{exit := Code, stdout := ~"", stderr := Text} = shell(Config, Script, ["--version"]),
         ?assertEqual({Why, 3}, {Why, Code}),
         ?assertNotEqual({Why, ~""}, {Why, Text})
     end || {Why, Script} <- [
        {"there is no toolchain for this machine", "PATH=" ++ Other ++ ":$PATH WITNESS_CACHE=" ++ Empty ++ " \"$@\""},
        {"the cache has no place", "env -u HOME -u WITNESS_CACHE -u XDG_CACHE_HOME \"$@\""},
        {"the toolchain is broken", checkout(Private, "echo 'exit 1' >bin/toolchain; chmod +x bin/toolchain")},
        {"what the toolchain tells is broken", checkout(Private, "echo 'echo \"if (\"' >bin/toolchain")},
        {"the toolchain does not tell all", checkout(Private, "echo 'echo export X=1' >bin/toolchain")},
        {"there is no toolchain", checkout(Private, "rm bin/toolchain")},
        {"nothing can be built", checkout(Private, "echo > _build")},
        {"there is no builder", checkout(Private, ["cp -r ", Stubs, "/erl bin/rebar3"])},
        {"the folder is gone", "mkdir gone; cd gone; rmdir ../gone; \"$@\""},
        {"the VM does not start", "WITNESS_ERL_FLAGS='+no_such_flag' \"$@\""},
        {"the VM has no code", "WITNESS_ERL_FLAGS='-s no_such_module' \"$@\""},
        {"a signal comes before the VM runs", checkout(Private, "echo 'kill -TERM $PPID; echo true' >bin/toolchain")}
     ]],
    %% These keep it from nothing.
    [begin
         #{exit := Code, stdout := Text} = shell(Config, Script, ["--version"]),
         ?assertEqual({Why, 0}, {Why, Code}),
         contains(Text, [~"witness "])
     end || {Why, Script} <- [
        {"there is no HOME", "WITNESS_CACHE=${WITNESS_CACHE:-$HOME/.cache/witness} exec env -u HOME \"$@\""},
        %% Where a release of OTP is asked for by name, that is looked for in the cache.
        {"the cache cannot be written", "XDG_CACHE_HOME=/proc exec env -u WITNESS_OTP -u WITNESS_CACHE \"$@\""}
     ]].

%% A checkout with the launcher alone, so that it has to build; the program that runs is the one of that.
checkout(Private, Change) ->
    lists:flatten(["set -e; d=$(mktemp -d ", Private,
                   "/checkout-XXXX); mkdir $d/bin $d/src; l=$(dirname \"$1\"); cp $l/witness $l/toolchain $d/bin;"
                   " shift; cd $d; ", Change, "; PATH=$d/bin:$PATH; exec $d/bin/witness \"$@\""]).

stub(Folder, Name, Script) ->
    File = filename:join(Folder, Name),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, ["#!/bin/sh\n", Script, $\n]),
    ok = file:change_mode(File, 8#755).

%% Also with those that Witness uses for its own.
system_that_halts_is_no_violation(Config) ->
    [begin
         #{exit := 3,
           stderr := Text} = witness(Config, ["run", "--spec", data(Config, "small.hml"), "--pa", proplists:get_value(ebin, Config),
                                              lists:concat(["cli_system:halts(", Status, ")"])]),
         contains(Text, [~"(halt, init:stop)"])
     end || Status <- [0, 1, 64, 65, 66, 67, 140]].

%%% The end of the launcher

killed_launcher_ends_what_it_started(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "killed.rec"),
    Held = ["--pa", proplists:get_value(ebin, Config), "cli_system:holds()"],
    [begin
         {Port, Pids} = held(Config, Command ++ Held),
         ok = witness_command:signal(Port, "KILL"),
         ok = witness_command:gone(Pids)
     end || Command <- [["run", "--spec", data(Config, "small.hml")],
                        ["run", "--json", "--no-halt", "--spec", data(Config, "small.hml")],
                        ["record", "--last", "1MB", "-o", Dir]]],
    %% What was kept has been written.
    #{exit := 0, stdout := Text} = witness(Config, ["log", Dir]),
    contains(Text, [~"cli_system:holds()"]).

hangup_ends_in_good_order(Config) ->
    [begin
         {Port, Pids} = held(Config, ["run", "--spec", data(Config, "small.hml"), "--pa", proplists:get_value(ebin, Config),
                                      "cli_system:holds()"]),
         ok = Signal(Port),
         {3, Text} = collect(Port, ~""),
         contains(Text, [~"the run was interrupted", ~"NO RESULT"]),
         ok = witness_command:gone(Pids)
     end || Signal <- [fun(Port) -> witness_command:signal(Port, "HUP") end,
                       fun(Port) -> witness_command:signal_group(Port, "HUP") end]].

%% The processes of the operating system that the command has started, when the system runs.
held(Config, Arguments) ->
    Port = witness_command:start(Config, "/dev/stdout", executable(Config), Arguments),
    Text = until(Port, ~"held\n", ~""),
    {match, [Inner]} = re:run(Text, "pid ([0-9]+), held", [{capture, all_but_first, list}]),
    Outer = witness_command:vms(Port),
    ?assertMatch([_], Outer),
    {Port, lists:usort([Inner | Outer])}.

%%% Helpers

redirected(Config, Redirection, Arguments) -> shell(Config, "\"$@\" " ++ Redirection, Arguments).

%% The reader of its standard output has gone when it begins: otherwise all may have been written before.
unread(Config, Arguments) -> shell(Config, "exec 3> >(:); wait $!; \"$@\" >&3 3>&-", Arguments).

shell(Config, Script, Arguments) ->
    witness_command:run(Config, "/bin/bash", ["-c", Script, "bash", executable(Config) | Arguments]).

witness(Config, Arguments) -> witness_command:run(Config, executable(Config), Arguments).

data(Config, Name) -> filename:join(proplists:get_value(data, Config), Name).

executable(Config) -> filename:join([proplists:get_value(root, Config), "bin", "witness"]).
