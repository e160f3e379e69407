-module(witness_cli).
-moduledoc """
The command line: `bin/witness COMMAND ...`.

`bin/witness` starts a VM that calls `main/0`, with the user's arguments after `-extra`. `main/0` runs the command
and ends the VM with its exit code:

| Code | Meaning |
|---|---|
| 0 | it ran, and nothing was violated |
| 1 | a violation; or a file that is not formatted |
| 2 | wrong usage or bad input |
| 3 | the result cannot be trusted or says nothing, or could not be written to standard output |

The system that is watched runs in the same VM, and may end it (`halt/1`). Its exit status must not be taken for that of
Witness. So `bin/witness` may pass the flag `-witness_status N`: then the VM ends with N plus the exit code, and first writes
that status to a pipe (`-witness_shell`). Any other status means that the system has ended the VM.

An error of the user is printed as one message that names the mistake and what was expected. An error in Witness itself is printed
as a report with its place, and the exit code is 3.
""".

-export([main/0, run/1]).

-doc "Runs the command that the VM was started with, and ends the VM.".
-spec main() -> pid().
main() ->
    %% The VM finishes starting only after this has returned.
    proc_lib:spawn(fun command/0).

-spec command() -> no_return().
command() ->
    ok = witness_cli_signal:watch_shell(),
    case try perform(init:get_plain_arguments()) catch _:_ -> 3 end of
        {stop, Code, Freezer} ->
            %% The running system may leave no time to report the status later.
            ok = report_status(witness_cli_io:status(Code)),
            ok = witness_trace_freeze:thaw(Freezer, witness_cli_io:status(Code)),
            ok = init:stop(witness_cli_io:status(Code)),
            exit(normal);
        Code ->
            ok = report_status(witness_cli_io:status(Code)),
            halt(witness_cli_io:status(Code), [{flush, true}])
    end.

%% Reports the status to `bin/witness', which takes a status that was not reported for that of the system.
report_status(Status) ->
    case init:get_argument(witness_shell) of
        {ok, [[_, Number]]} ->
            Descriptor = list_to_integer(Number),
            Port = open_port({fd, Descriptor, Descriptor}, [out]),
            %% The pipe is empty, so it is written at once.
            true = port_command(Port, [integer_to_list(Status), $\n]),
            ok;
        _ -> ok
    end.

-doc "Runs a command and returns the exit code.".
-spec run([string() | {error | incomplete, string(), unicode:chardata()}]) -> 0..3.
run(Arguments) ->
    case perform(Arguments) of
        {stop, Code, _} -> Code;
        Code -> Code
    end.

%% `stop': applications are running that are to be stopped in good order.
-spec perform([string() | {error | incomplete, string(), unicode:chardata()}]) -> witness_cli_run:code().
perform(Arguments) ->
    try
        ok = witness_cli_io:prepare(),
        ok = as_text(Arguments),
        Parsed = witness_cli_args:parse(Arguments),
        ok = use_syntax(Parsed),
        case Parsed of
            {print, Text} ->
                witness_cli_io:print(witness_cli_io:open(text), Text),
                0;
            {error, Text} -> refuse(Text);
            {compile, Options} -> outcome(~"compile", witness_cli_compile:run(Options));
            {format, Options} -> outcome(~"format", witness_cli_format:run(Options));
            {demo, Options} -> witness_cli_demo:run(Options);
            {explore, Options} -> witness_cli_explore:run(Options);
            {bench, Options} -> witness_cli_bench:run(Options);
            {report, Options} -> outcome(~"report", witness_cli_report:run(Options));
            {log, Options} -> outcome(~"log", witness_cli_log:run(Options));
            {run, Options} -> run_system(Options);
            {check, Options} -> check_log(Options);
            {record, Options} -> record(Options);
            {replay, Options} -> replay(Options);
            {search, Options} -> monitored(~"search", Options, fun witness_cli_search:run/2);
            {attach, Options} -> attach(Options)
        end
    of
        {stop, Code, Freezer} -> {stop, wait_for_output(Code), Freezer};
        Code -> wait_for_output(Code)
    catch
        throw:{refused, Problem} -> refuse(Problem);
        Class:Reason:Stack ->
            %% If the system is stopping the VM, any call may fail, and no more code is loaded.
            is_stopping() orelse witness_cli_io:note(io_lib:format("witness: an error in Witness itself: ~ts~n~tp~n",
                                              [witness_event:format_term({Class, Reason}, 1000), Stack])),
            3
    end.

%% The notation of what this process writes.
use_syntax({_, #{syntax := Syntax}}) -> witness_event:use_syntax(Syntax);
use_syntax(_) -> witness_event:use_syntax(auto).

is_stopping() ->
    {Status, _} = init:get_status(),
    Status =:= stopping andalso
        witness_cli_io:note(~"witness: the system has stopped the VM (init:stop) before the run had ended, so there is no result\n") =:= ok.

%% The VM passes on file names as they are, so an argument may be invalid Unicode.
as_text([]) -> ok;
as_text([Argument | Arguments]) ->
    case is_list(Argument) of
        true -> as_text(Arguments);
        false -> throw({refused, [~"witness: an argument is not UTF-8: '", show_bytes(Argument),
                              ~"'; rename the file, or name it by a link to it"]})
    end.

%% Each invalid byte is shown as \xFF.
show_bytes(Text) when is_list(Text) -> witness_text:clean(Text);
show_bytes({_, Text, <<Byte, After/binary>>}) ->
    [witness_text:clean(Text), io_lib:format("\\x~2.16.0B", [Byte]), show_bytes(unicode:characters_to_list(After))].

%% A result that was not written completely is not a success.
wait_for_output(Code) ->
    case witness_cli_io:wait_for_delivery() of
        delivered -> Code;
        {lost, Reason} ->
            Reason =:= closed orelse
                witness_cli_io:note([~"witness: standard output could not be written", why(Reason),
                                     ~": some of the result is lost\n"]),
            case Code of 0 -> 3; _ -> Code end
    end.

why(unknown) -> ~"";
why(Reason) -> [~" (", file:format_error(Reason), $)].

refuse(Text) ->
    witness_cli_io:note([string:trim(Text, trailing, "\n"), $\n]),
    2.

outcome(_, {ok, Code}) -> Code;
outcome(Command, {error, Text}) -> refused(Command, Text).

%% Everything that can be checked without running the system is checked here, in the order in which it is needed.
run_system(Given) ->
    #{scope := Scope, no_halt := NoHalt} = Options = absolute(Given),
    {Folders, Properties} = properties(~"run", Options),
    Project = case Options of #{mix := Folder} -> accept(~"run", witness_cli_mix:prepare(Folder)); #{} -> [] end,
    ok = accept(~"run", case Options of #{config := File} -> witness_cli_setup:load_config(File); #{} -> ok end),
    System = accept(~"run", system(Options, Project)),
    ok = accept(~"run", witness_cli_setup:load_elixir(module(System), Folders)),
    Started = case System of
        {application, _} -> #{scope => Scope};
        _ ->
            ok = accept(~"run", witness_cli_call:check(System)),
            #{scope => Scope, applications => Project}
    end,
    Woven = case Options of
        #{weave := Names} -> #{weave => [accept(~"run", "--weave: ", witness_cli_call:parse_weave(Name)) || Name <- Names]};
        #{} -> #{}
    end,
    Chosen = maps:with([instrument, source, log_file, log_size, message_size, memory], Options),
    watch(~"run", maps:merge(maps:merge(Properties, Woven), Chosen),
          Started#{system => System, halt => not NoHalt}, Options).

%% A Mix project is run in its folder.
absolute(#{mix := Folder} = Options) when Folder =/= "." ->
    maps:map(fun(Key, Names) when Key =:= specs; Key =:= pa; Key =:= include ->
                     [filename:absname(Name) || Name <- Names];
                (Key, Name) when Key =:= config; Key =:= log_file; Key =:= report -> filename:absname(Name);
                (_, Value) -> Value
             end, Options);
absolute(Options) -> Options.

system(#{app := _, system := _}, _) -> {error, ~"--app and 'mod:fun(args)' exclude each other"};
system(#{app := App}, _) -> witness_cli_call:parse_application(App);
system(#{system := Text}, _) -> witness_cli_call:parse(Text);
system(#{}, [App]) -> {ok, {application, App}};
system(#{}, []) -> {error, ~"'mod:fun(args)', --app APP or --mix DIR is expected, and not there"};
system(#{}, Apps) ->
    {error, [~"the project has the applications ", witness_text:list([atom_to_binary(App) || App <- Apps]),
             ~": name one with --app"]}.

%% For an application, the folders show whether it needs Elixir.
module({application, _}) -> erlang;
module({Module, _, _}) -> Module.

check_log(#{log := Given, replay := Replay, trust := Trust} = Options) ->
    Trust andalso not Replay andalso refused(~"check", ~"--trust is for --replay: without it no code of a recording runs"),
    case {Given, Replay} of
        {{file, Name}, _} -> check(file(Name, Options), Options);
        {standard_input, false} -> check(standard_input, Options);
        {standard_input, true} -> refuse_replay(~"standard input")
    end.

%% A recording is data. Its code runs only if the command says so.
file(Name, #{replay := Replay, trust := Trust}) ->
    case {filelib:is_dir(Name), Replay} of
        {false, false} -> {file, Name};
        {false, true} -> refuse_replay(witness_text:clean(Name));
        {true, false} -> {recording, Name};
        {true, true} ->
            case witness_run_replay:has_contents(Name) of
                true -> {recording, Name};
                false ->
                    ok = accept(~"check", witness_cli_replay:check_usable(Name, Trust)),
                    {replay, #{dir => Name, trust => Trust, on_progress => witness_cli_progress:new()}}
            end
    end.

-spec refuse_replay(unicode:chardata()) -> no_return().
refuse_replay(Log) -> refused(~"check", [Log, ~": --replay is for the folder of a recording, and this is none"]).

check(Log, Options) ->
    {_, Properties} = properties(~"check", Options),
    watch(~"check", accept(~"check", witness_cli_check:start(Log, Properties, Options)), #{}, Options).

record(Options) -> monitored(~"record", Options, fun witness_cli_record:run/2).

replay(Given) -> monitored(~"replay", accept(~"replay", witness_cli_replay:with_stored(Given)), fun witness_cli_replay:run/2).

%% What is recorded or replayed is also monitored if there are properties.
monitored(Command, Options, Run) ->
    Properties = case is_map_key(specs, Options) orelse is_map_key(monitors, Options) of
        true -> element(2, properties(Command, Options));
        false -> none
    end,
    Properties =/= none orelse not is_map_key(report, Options) orelse
        refused(Command, [~"--report: name a specification with --spec FILE.hml",
                          [~", or a monitor with --monitor 'm:f/1=module'" || Command =/= ~"search"]]),
    case Run(maps:merge(Options, report(Command, Options)), Properties) of
        {ok, Code} -> Code;
        {error, {unwritten, Text}} ->
            witness_cli_io:note([~"witness ", Command, ~": ", Text, $\n]),
            3;
        {error, {_, _} = Error} -> refuse(Command, Error);
        {error, Text} -> refused(Command, Text)
    end.

attach(Options) ->
    {_, Properties} = properties(~"attach", Options),
    Attachment = accept(~"attach", witness_cli_attach:prepare(Options)),
    case witness_cli_attach:run(Attachment, Properties, maps:merge(Options, report(~"attach", Options))) of
        {ok, Code} -> Code;
        {error, Error} -> refuse(~"attach", Error)
    end.

%% The properties to check, and the folders of code from the options.
properties(Command, Options) ->
    Specs = maps:get(specs, Options, []),
    Folders = accept(Command, witness_cli_setup:add_paths(maps:get(pa, Options, []))),
    ok = accept(Command, witness_cli_setup:check_folders("--include", maps:get(include, Options, []))),
    Monitors = [accept(Command, "--monitor: ", witness_cli_call:parse_monitor(Monitor))
                || Monitor <- maps:get(monitors, Options, [])],
    %% What a log says need not come from a BEAM, so crashes in it are only checked if the user asks for it.
    Checks = case {Command, Options, Specs ++ Monitors} of
        {_, #{checks := _}, _} -> maps:with([checks], Options);
        {~"run", #{instrument := inline}, []} -> #{};
        {~"run", _, []} -> #{checks => [crashes, deadlock]};
        _ -> #{}
    end,
    Specs =/= [] orelse Monitors =/= [] orelse Checks =/= #{} orelse
        refused(Command, [~"nothing to check: name a specification with --spec FILE.hml",
                          [~", or a monitor with --monitor 'm:f/1=module'" || Command =/= ~"attach"],
                          [~", or a check with --check crashes" || Command =:= ~"check"],
                          [~", or checks with --check deadlock,calls,mailboxes" || Command =:= ~"attach"]]),
    Given = accept(Command, witness_cli_check:properties(Options)),
    {Folders, maps:merge(Given#{specs => Specs, monitors => Monitors}, Checks)}.

%% The open report, if the options ask for one. A Mix project is run in its folder, but its report goes to the current one.
report(Command, #{report := Given} = Options) ->
    Folder = case Options of #{mix := _} -> filename:absname(Given); #{} -> Given end,
    Specs = maps:get(specs, Options, []),
    #{report => accept(Command, ~"--report: ", witness_web:open(Folder, #{specs => Specs}))};
report(_, #{}) -> #{}.

watch(Command, Properties, System, #{json := Json} = Options) ->
    Output = maps:merge(report(Command, Options), maps:with([must_decide], Options)),
    case witness_cli_run:run(Output#{start => maps:merge(Properties, System), json => Json,
                                     for => maps:get(for, Options, infinity),
                                     timeout => maps:get(timeout, Options, infinity)}) of
        {ok, Code} -> Code;
        {error, Error} -> refuse(Command, Error)
    end.

%% Diagnostics have a format of their own, which editors understand.
refuse(_, {witness_spec, _} = Error) -> refuse(witness:format_error(Error));
refuse(Command, Error) -> refused(Command, witness_cli_options:name_option(witness:format_error(Error))).

accept(Command, Result) -> accept(Command, ~"", Result).

accept(_, _, ok) -> ok;
accept(_, _, {ok, Value}) -> Value;
accept(Command, Where, {error, Text}) -> refused(Command, [Where, Text]).

-spec refused(binary(), unicode:chardata()) -> no_return().
refused(Command, Text) -> throw({refused, [~"witness ", Command, ~": ", Text]}).
