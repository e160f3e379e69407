-module(witness_cli_hostile_SUITE).
-moduledoc """
Inputs and surroundings that are against `bin/witness`: full disks, monitors that never return, names that are no text, systems
that stop the VM, files with bytes that no specification has, nodes that are stopped. Each has a clear answer, and its exit code.
""".

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([disk_that_is_full_ends_a_recording_with_its_file/1, disk_that_is_full_leaves_no_half_of_a_log/1,
         disk_that_is_full_leaves_no_half_of_a_cache/1, monitors_that_never_return_end_with_the_timeout/1,
         monitor_that_takes_memory_is_killed/1, names_that_are_no_text_are_refused/1, system_that_stops_the_vm_is_told/1,
         specification_may_begin_with_a_mark/1, bytes_of_no_text_are_pointed_at/1, warnings_are_bounded/1,
         replay_that_is_killed_leaves_no_folder/1, node_that_is_stopped_is_told/1]).

-include_lib("stdlib/include/assert.hrl").

-import(witness_command, [contains/2]).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [disk_that_is_full_ends_a_recording_with_its_file, disk_that_is_full_leaves_no_half_of_a_log,
     disk_that_is_full_leaves_no_half_of_a_cache, monitors_that_never_return_end_with_the_timeout,
     monitor_that_takes_memory_is_killed, names_that_are_no_text_are_refused, system_that_stops_the_vm_is_told,
     specification_may_begin_with_a_mark, bytes_of_no_text_are_pointed_at, warnings_are_bounded,
     replay_that_is_killed_leaves_no_folder, node_that_is_stopped_is_told].

init_per_suite(Config) ->
    Root = witness_checkout:root(proplists:get_value(data_dir, Config)),
    Data = filename:join([Root, "test", "cli_data"]),
    Out = filename:join(proplists:get_value(priv_dir, Config), "ebin"),
    ok = filelib:ensure_path(Out),
    [{ok, _, []} = compile:file(filename:join(Data, Module), [debug_info, return, {outdir, Out}])
     || Module <- ["cli_system", "cli_hungry", "cli_monitor"]],
    Ready = [{root, Root}, {data, Data}, {ebin, Out} | Config],
    #{exit := 0} = witness(Ready, ["--version"]),
    Ready.

end_per_suite(_) -> ok.

disk_that_is_full_ends_a_recording_with_its_file(Config) -> with_full_disk("recorded", fun(Dir) -> full(Dir, Config) end, Config).

%% The result is told all the same, and the exit code of a success is 3.
disk_that_is_full_leaves_no_half_of_a_log(Config) ->
    Recording = filename:join(proplists:get_value(priv_dir, Config), "unwritten.rec"),
    #{exit := 0} = witness(Config, ["record", "-o", Recording | program(Config)]),
    Spec = ["--spec", data(Config, "small.hml")],
    Unwritten = fun(File) ->
        [begin
             #{exit := 3, stdout := Text,
               stderr := Errors} = witness(Config, ["replay", "--events", File | Options] ++ [Recording]),
             contains(Errors, [list_to_binary(["witness replay: ", File, ": no space left on device"])]),
             contains(string:lowercase(Text), [~"identical"])
         end || Options <- [[], ["--json"], Spec, ["--json" | Spec], ["--check" | Spec]]]
    end,
    Unwritten("/dev/full"),
    with_full_disk("written", fun(Dir) ->
        Unwritten(filename:join(Dir, "events.log")),
        ?assertEqual({ok, ["full"]}, file:list_dir(Dir))
    end, Config).

disk_that_is_full_leaves_no_half_of_a_cache(Config) ->
    Private = proplists:get_value(priv_dir, Config),
    Recording = filename:join(Private, "uncached.rec"),
    #{exit := 0} = witness(Config, ["record", "-o", Recording | program(Config)]),
    with_full_disk("woven_full", fun(Dir) ->
        %% What else is kept there is the toolchain.
        Cache = filename:join(Private, "cache_on_a_full_disk"),
        ok = file:make_dir(Cache),
        _ = file:make_symlink(filename:join(filename:dirname(witness_record_code:cache(#{})), "toolchain"),
                              filename:join(Cache, "toolchain")),
        ok = file:make_symlink(Dir, filename:join(Cache, "woven")),
        [begin
             #{exit := 3, stderr := Errors} = shell(Config, ["WITNESS_CACHE=", Cache, " \"$1\" ", Command]),
             contains(Errors, [~"modules cannot be woven: ", ~": no space left on device"]),
             ?assertEqual(["full"], [Name || Name <- filelib:wildcard("**", Dir), filelib:is_regular(filename:join(Dir, Name))])
         end || Command <- [["replay --trust ", Recording], ["replay --trust --spec ", data(Config, "small.hml"), " ", Recording]]]
    end, Config).

%% A file system of one page, which is full. Where it cannot be made the test says so.
with_full_disk(Name, Do, Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), Name),
    ok = filelib:ensure_path(Dir),
    case os:cmd("mount -t tmpfs -o size=4k tmpfs " ++ Dir ++ " && echo mounted") of
        "mounted\n" ->
            try
                ok = file:write_file(filename:join(Dir, "full"), binary:copy(<<0>>, 4096)),
                Do(Dir)
            after
                os:cmd("umount " ++ Dir)
            end;
        Why -> {skip, "no file system can be made: " ++ Why}
    end.

full(Dir, Config) ->
    [begin
         To = filename:join(Dir, Name),
         #{exit := 3, stdout := Out, stderr := Errors} = witness(Config, ["record", "-o", To | Options] ++ program(Config)),
         ?assertEqual(nomatch, binary:match(Errors, ~"error in Witness")),
         contains(<<Out/binary, Errors/binary>>, [list_to_binary(filename:join(To, "processes")), Text]),
         %% The folder can be named again.
         ?assertEqual({ok, []}, file:list_dir(To))
     end || {Name, Options, Text} <- [{"plain", [], ~"no space left on device; nothing was recorded"},
                                      {"monitored", ["--spec", data(Config, "small.hml")],
                                       ~"no space left on device; nothing was recorded"},
                                      {"last", ["--last", "1MB"], ~"no space left on device"},
                                      {"json", ["--last", "1MB", "--json"], ~"enospc"}]].

monitors_that_never_return_end_with_the_timeout(Config) ->
    Began = erlang:monotonic_time(second),
    Log = logged("never.log", Config),
    %% What a run takes on this machine when nothing is waited for.
    Usual = erlang:monotonic_time(second) - Began,
    Run = [["run" | Options] ++ program(Config)
           || Options <- [[], ["--source", "evm"], ["--instrument", "central"], ["--instrument", "inline"]]],
    Check = [["check", "--pa", proplists:get_value(ebin, Config), Log | Options] || Options <- [[], ["--instrument", "central"]]],
    IsUnmonitored = fun(Text) -> binary:match(Text, ~"nothing was monitored") =/= nomatch end,
    [begin
         {Took, #{exit := 3, stdout := Text}} =
             limited("--timeout", [Command, "--monitor", "cli_system:server/0=cli_hungry(" ++ What ++ ")" | Options],
                     IsUnmonitored, Config),
         contains(Text, [~"--timeout", ~"NO RESULT", ~"1: 1 undecided"]),
         %% The usual patience alone would be 30 seconds.
         ?assert(Took < Usual + 30)
     end || What <- ["loops", "takes"], [Command | Options] <- Run ++ Check],
    %% A planned end is none for a monitor that has not judged what had happened before.
    {_, #{exit := 3, stdout := Planned}} =
        limited("--for", ["run", "--monitor", "cli_system:server/0=cli_hungry(loops)", "--instrument", "inline" | program(Config)],
                fun(Text) -> binary:match(Text, ~"overdue") =:= nomatch end, Config),
    contains(Planned, [~"1 undecided: the monitor crashed: overdue"]).

%% With a limit of a second, and how many seconds it took. If the system begins so late that this says nothing, the limit is longer.
limited(Limit, Arguments, IsLate, Config) ->
    Limited = fun(Seconds) ->
        Begin = erlang:monotonic_time(second),
        Ended = witness(Config, Arguments ++ [Limit, Seconds]),
        {erlang:monotonic_time(second) - Begin, Ended}
    end,
    {_, #{stdout := Text}} = First = Limited("1"),
    case IsLate(Text) of
        true -> Limited("6");
        false -> First
    end.

monitor_that_takes_memory_is_killed(Config) ->
    Log = logged("memory.log", Config),
    true = code:add_patha(proplists:get_value(ebin, Config)),
    try
        [killed(#{system => {cli_system, answers, [[1]]}, drain => infinity, source => Source, instrument => Instrument}, [])
         || {Source, Instrument} <- [{evm, outline}, {native, outline}, {native, central}], source(Source)],
        %% Those of other properties go on.
        [killed(#{system => {log, {file, Log}}, instrument => Instrument}, [{{cli_system, server, 0}, {cli_monitor, []}}])
         || Instrument <- [outline, central]]
    after
        code:del_path(proplists:get_value(ebin, Config))
    end.

killed(Options, Others) ->
    {ok, Run} = witness:start(Options#{monitors => [{{cli_system, server, 0}, {cli_hungry, takes}} | Others], memory => 1 bsl 25,
                                       log => false}),
    {ok, #{outcome := untrusted, verdicts := Verdicts}} = witness:await(Run, infinity),
    ?assertEqual(#{no => 0, inconclusive => 1, yes => length(Others)}, Verdicts),
    {ok, _} = witness:stop(Run).

logged(Name, Config) ->
    Log = filename:join(proplists:get_value(priv_dir, Config), Name),
    #{exit := 0} = witness(Config, ["run", "--spec", data(Config, "small.hml"), "--log", Log | program(Config)]),
    Log.

source(native) -> witness_trace_native:available() =:= ok;
source(evm) -> true.

names_that_are_no_text_are_refused(Config) ->
    [begin
         #{exit := 2, stdout := ~"", stderr := Text} = shell(Config, Script),
         contains(Text, [~"witness: an argument is not UTF-8: '", ~"\\xFF"])
     end || Script <- ["\"$1\" compile $(printf 'a\\377.hml')", "\"$1\" log $(printf 'a\\377')", "\"$1\" $(printf '\\377\\303')",
                       "\"$1\" run --$(printf 'sp\\377ec') x", "\"$1\" run --spec x 'm:f(\"'$(printf '\\377')'\")'"]],
    #{exit := 3, stderr := Where} = shell(Config, "d=$(printf 'd\\377'); mkdir -p \"$d\"; cd \"$d\"; \"$1\" --version"),
    contains(Where, [~"the name of the current folder is not UTF-8"]).

%% Either Witness sees the stop, or the VM ends before, and the launcher says that.
system_that_stops_the_vm_is_told(Config) ->
    [begin
         #{exit := 3,
           stderr := Text} = witness(Config, ["run", "--spec", data(Config, "small.hml"), "--pa",
                                              proplists:get_value(ebin, Config)] ++ Json ++
                                             ["cli_system:stops()"]),
         ?assertMatch({match, _},
                      re:run(Text, "^witness: (the system has stopped the VM \\(init:stop\\) before the run had ended, so there is no result|"
                                   "the VM ended with status 0 before the run did: the system may have ended it \\(halt, init:stop\\))$",
                             [multiline])),
         ?assertEqual(nomatch, binary:match(Text, ~"an error in Witness"))
     end || Json <- [[], ["--json"]]].

specification_may_begin_with_a_mark(Config) ->
    {ok, Text} = file:read_file(data(Config, "small.hml")),
    #{exit := 0, stderr := ~""} = witness(Config, ["compile", written("mark.hml", [<<16#feff/utf8>>, Text], Config)]).

bytes_of_no_text_are_pointed_at(Config) ->
    {ok, Text} = file:read_file(data(Config, "small.hml")),
    [begin
         #{exit := 2, stderr := Errors} = witness(Config, ["compile", written(Name, Bytes, Config)]),
         contains(Errors, [list_to_binary(Name ++ Place), Why])
     end || {Name, Bytes, Place, Why} <- [
        {"first.hml", [0, Text], ":1:1: error:", ~"NUL"}, {"last.hml", [Text, "% ", 0], ":9:3: error:", ~"NUL"},
        {"wide.hml", [16#ff, 16#fe, unicode:characters_to_binary(Text, utf8, {utf16, little})], ":1:1: error:", ~"not UTF-8"}]].

%% Of a small file in one line.
warnings_are_bounded(Config) ->
    Text = ["with cli_system:server() check ",
            lists:join(" and ", [io_lib:format("[_ ? {a,~b}] ff and [_ ? {a,~b}] ff", [N, N]) || N <- lists:seq(1, 120)]), ".\n"],
    #{exit := 0, stderr := Warnings} = witness(Config, ["compile", written("many.hml", Text, Config)]),
    contains(Warnings, [~"warnings more, which are not shown"]),
    ?assert(byte_size(Warnings) < 100_000).

%% Other replays use the same cache: the name of a folder has the process that made it.
replay_that_is_killed_leaves_no_folder(Config) ->
    Recording = filename:join(proplists:get_value(priv_dir, Config), "answers.rec"),
    #{exit := 0} = witness(Config, ["record", "-o", Recording | program(Config)]),
    Port = witness_command:start(Config, "/dev/stdout", executable(Config), ["replay", "--step", Recording]),
    true = port_command(Port, "next take of 2\nstate 2\nhelp\n"),
    %% A state is asked of a VM that stays. When it has answered, its folder has gone.
    Text = witness_command:until(Port, ~"mailbox", ~""),
    ct:pal("~ts", [Text]),
    [Pid] = witness_command:vms(Port),
    ?assertEqual([], folders(Pid)),
    ok = witness_command:signal(Port, "KILL"),
    {137, _} = witness_command:collect(Port, ~""),
    ok = witness_command:gone([Pid]),
    ?assertEqual([], folders(Pid)).

folders(Pid) -> filelib:wildcard("boot." ++ Pid ++ ".*", witness_record_code:cache(#{})).

node_that_is_stopped_is_told(Config) ->
    Name = lists:concat(["stopped", os:getpid(), "@127.0.0.1"]),
    Cookie = written("cookie", "secret", Config),
    ok = file:change_mode(Cookie, 8#600),
    Node = open_port({spawn_executable, filename:join([code:root_dir(), "bin", "erl"])},
                     [{args, ["-noshell", "-name", Name, "-setcookie", "secret", "-eval", "io:format(\"up ~s.\", [os:getpid()])"]},
                      binary]),
    {match, [Pid]} = re:run(witness_command:until(Node, ~".", ~""), "up ([0-9]+)", [{capture, all_but_first, list}]),
    try
        "" = os:cmd("kill -STOP " ++ Pid),
        #{exit := 2,
          stderr := Text} = witness(Config, ["attach", Name, "--cookie-file", Cookie, "--spec", data(Config, "small.hml")]),
        contains(Text, [~"it is there, but does not answer", ~"stopped"])
    after
        os:cmd("kill -KILL " ++ Pid)
    end.

program(Config) -> ["--pa", proplists:get_value(ebin, Config), "cli_system:answers([1])"].

written(Name, Bytes, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), Name),
    ok = file:write_file(File, Bytes),
    File.

shell(Config, Script) -> witness_command:run(Config, "/bin/bash", ["-c", Script, "bash", executable(Config)]).

witness(Config, Arguments) -> witness_command:run(Config, executable(Config), Arguments).

data(Config, Name) -> filename:join(proplists:get_value(data, Config), Name).

executable(Config) -> filename:join([proplists:get_value(root, Config), "bin", "witness"]).
