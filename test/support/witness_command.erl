-module(witness_command).
-moduledoc """
Programs in processes of the operating system, for suites: run to their end, waited for, sent signals. The release on
their path is the one that runs the suite.

`Config`: `priv_dir`, for files, and where a program runs unless `cd` is there.
""".

-include_lib("stdlib/include/assert.hrl").

-export([run/3, started/3, ended/1, start/4, collect/2, until/3, signal/2, signal_group/2, vms/1, gone/1, contains/2]).

-define(LIMIT_MS, 240_000).

-doc "Runs a program to its end.".
-spec run(proplists:proplist(), file:filename(), [unicode:chardata()]) ->
    #{exit := non_neg_integer(), stdout := binary(), stderr := binary()}.
run(Config, Program, Arguments) -> ended(started(Config, Program, Arguments)).

-doc "The same, for several at a time: starts one.".
-spec started(proplists:proplist(), file:filename(), [unicode:chardata()]) ->
    {port(), Errors :: file:filename(), Program :: file:filename(), [unicode:chardata()]}.
started(Config, Program, Arguments) ->
    Errors = filename:join(proplists:get_value(priv_dir, Config),
                           "stderr-" ++ integer_to_list(erlang:unique_integer([positive]))),
    {start(Config, Errors, Program, Arguments), Errors, Program, Arguments}.

-doc "Waits for its end.".
-spec ended({port(), file:filename(), file:filename(), [unicode:chardata()]}) ->
    #{exit := non_neg_integer(), stdout := binary(), stderr := binary()}.
ended({Port, Errors, Program, Arguments}) ->
    {Status, Output} = collect(Port, ~""),
    {ok, Error} = file:read_file(Errors),
    ct:pal("~ts ~tp~nexit code ~b~n~ts~nstandard error:~n~ts", [Program, Arguments, Status, Output, Error]),
    #{exit => Status, stdout => Output, stderr => Error}.

-doc """
Starts a program with its standard error in a file. A port cannot tell the two outputs apart, so a shell redirects one of
them. The program would ignore each signal that this VM ignores, so the shell resets them.
""".
-spec start(proplists:proplist(), file:filename(), file:filename(), [unicode:chardata()]) -> port().
start(Config, Errors, Program, Arguments) ->
    %% The VM puts the folder of its inner programs first on the path, which is not for users.
    Path = filename:join(code:root_dir(), "bin") ++ ":" ++ os:getenv("PATH"),
    open_port({spawn_executable, "/bin/sh"}, [
        {args, ["-c", "exec env --default-signal=INT,TERM \"$@\" 2>\"$STDERR_FILE\"", "sh", Program
                | [unicode:characters_to_binary(Argument) || Argument <- Arguments]]},
        {env, [{"STDERR_FILE", Errors}, {"PATH", Path}]},
        {cd, proplists:get_value(cd, Config, proplists:get_value(priv_dir, Config))},
        exit_status, binary, hide]).

-doc "Waits for the end: the exit code, and what was printed, behind what had come before.".
-spec collect(port(), binary()) -> {non_neg_integer(), binary()}.
collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, <<Output/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Output}
    after ?LIMIT_MS -> ct:fail({still_running, Output})
    end.

-doc "Waits until a text was printed; all that was printed.".
-spec until(port(), binary(), binary()) -> binary().
until(Port, Text, Output) ->
    case binary:match(Output, Text) of
        nomatch ->
            receive
                {Port, {data, Data}} -> until(Port, Text, <<Output/binary, Data/binary>>)
            after ?LIMIT_MS -> ct:fail({not_printed, Text, Output})
            end;
        _ -> Output
    end.

-doc "Sends a signal to the program.".
-spec signal(port(), Signal :: string()) -> ok.
signal(Port, Signal) ->
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    "" = os:cmd("kill -" ++ Signal ++ " " ++ integer_to_list(Pid)),
    ok.

-doc "Sends a signal to the program and to what it has started, at once, as a terminal would: to the group that it leads.".
-spec signal_group(port(), Signal :: string()) -> ok.
signal_group(Port, Signal) ->
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    "" = os:cmd(io_lib:format("kill -s ~ts -- -~b", [Signal, Pid])),
    ok.

-doc "The VMs that `bin/witness` has started, by their processes of the operating system.".
-spec vms(port()) -> [Pid :: string()].
vms(Port) ->
    {os_pid, Shell} = erlang:port_info(Port, os_pid),
    string:lexemes(os:cmd(io_lib:format("pgrep -P ~b beam", [Shell])), "\n").

-doc "Waits for the end of processes of the operating system that are no children of this one.".
-spec gone([Pid :: string()]) -> ok.
gone(Pids) ->
    "" = os:cmd("timeout 60 tail -f /dev/null" ++ [" --pid=" ++ Pid || Pid <- Pids] ++ " 2>&1 || echo still there"),
    ok.

-doc "The text contains each of the words.".
-spec contains(binary(), [binary()]) -> [ok].
contains(Text, Words) ->
    [?assertNotEqual(nomatch, binary:match(Text, Word), #{word => Word, text => Text}) || Word <- Words].
