-module(witness_task).
-moduledoc """
The commands of Witness as tasks of a build tool, in a project that depends on Witness: `mix witness.run`, `rebar3 witness run`.

A command runs in a VM of its own, by `bin/witness` of the dependency, with the modules that the build tool has compiled. So what
runs is the system and not the build tool, and the exit code, the signals and `--json` are those of the command line. `bin/witness`
has the standard input and outputs of this VM. Each interrupt of this VM (SIGTERM, SIGHUP, SIGQUIT) is passed on, and the task waits
for the end of the command. If this VM is killed, the command is interrupted too.

This module is what build tools have in common: the defaults that the project configures, and the process of the operating system.
""".
-behaviour(gen_event).

-export([commands/0, arguments/3, execute/5]).
-export([init/1, handle_event/2, handle_call/2]).

-export_type([command/0, place/0]).

-doc "A command of Witness that is a task. `step` is `replay --step`.".
-type command() :: run | check | record | replay | step | search | attach | compile | report.

-doc "How the build tool names the task, and where it is configured, for errors.".
-type place() :: #{task := unicode:chardata(), configuration := unicode:chardata()}.

-define(COMMANDS, [run, check, record, replay, step, search, attach, compile, report]).
%% Those that check the specifications of the project unless their arguments name others. A recording has its own.
-define(CHECKING, [run, check, record, search, attach, compile]).
-define(SIGNALS, [sigterm, sighup, sigquit]).

-doc "The commands that a project can configure.".
-spec commands() -> [command()].
commands() -> ?COMMANDS.

-doc """
The arguments for the command line: those of the user after those that the project configures.

| Key | Value |
|---|---|
| `specs` | files with specifications: for the tasks `run`, `check`, `record`, `search`, `attach` and `compile` if their arguments name none |
| `signatures` | rows for signatures (`m:witness_event_wrapper`): for the tasks that monitor, if their arguments name none |
| the name of a task | further arguments of it, which come first |
""".
-spec arguments(command(), [unicode:chardata()], [{atom(), term()}]) -> {ok, [binary()]} | {error, unicode:chardata()}.
arguments(Command, Given, Configured) ->
    maybe
        ok ?= check(Configured),
        [Name | Flags] = words(Command),
        Own = [unicode:characters_to_binary(Text) || Text <- proplists:get_value(Command, Configured, []) ++ Given],
        Files = [unicode:characters_to_binary(File) || File <- proplists:get_value(specs, Configured, [])],
        {ok, [Name | Flags] ++ Own ++ specs(Command, Files, Own)
             ++ signatures(Command, proplists:get_value(signatures, Configured, []), Own)}
    end.

words(step) -> [~"replay", ~"--step"];
words(Command) -> [atom_to_binary(Command)].

specs(compile, Files, Own) ->
    case [File || File <- Own, filename:extension(File) =:= ~".hml"] of [] -> Files; _ -> [] end;
specs(Command, Files, Own) ->
    Named = [Text || Text <- Own, Flag <- [~"--spec", ~"--monitor", ~"--help"], names(Flag, Text)],
    case lists:member(Command, ?CHECKING) andalso Named =:= [] of
        true -> lists:append([[~"--spec", File] || File <- Files]);
        false -> []
    end.

signatures(report, _, _) -> [];
signatures(_, Rows, Own) ->
    case lists:any(fun(Text) -> names(~"--signature", Text) orelse names(~"--help", Text) end, Own) of
        true -> [];
        false -> lists:append([[~"--signature", unicode:characters_to_binary(witness_event_wrapper:format(Row))] || Row <- Rows])
    end.

names(Flag, Text) -> Text =:= Flag orelse string:prefix(Text, [Flag, $=]) =/= nomatch.

check([]) -> ok;
check([{signatures, Rows} | Others]) ->
    case witness_event_wrapper:table(Rows) of
        {ok, _} -> check(Others);
        {error, {_, Reason}} -> {error, [~"signatures: ", witness_event_wrapper:format_reason(Reason)]}
    end;
check([{Key, Value} | Others]) ->
    case {lists:member(Key, [specs | ?COMMANDS]), is_texts(Value)} of
        {true, true} -> check(Others);
        {true, false} ->
            Kind = case Key of specs -> ~"names of files"; _ -> ~"arguments" end,
            {error, [atom_to_binary(Key), ~": a list of ", Kind, ~" is expected, each a string, not ",
                     witness_event:format_term(Value, 80)]};
        {false, _} ->
            {error, [~"there is no key ", witness_event:format_term(Key, 80), ~": there are ",
                     witness_text:list([atom_to_binary(Name) || Name <- [specs, signatures | ?COMMANDS]])]}
    end;
check(Value) -> {error, [~"a list of keys with their values is expected, not ", witness_event:format_term(Value, 80)]}.

is_texts([Text | Texts]) -> is_text(Text) andalso is_texts(Texts);
is_texts(Rest) -> Rest =:= [].

is_text(Text) when is_binary(Text) -> is_list(unicode:characters_to_list(Text));
is_text(Text) -> io_lib:char_list(Text) andalso Text =/= [].

-doc """
Runs `bin/witness` of a folder with sources of Witness for a build tool, and returns its exit code. `Environment` is added to that of
this VM; `Path` are folders that come first on the `PATH` of the command.
""".
-spec execute(mix | rebar3, Root :: file:filename(), [binary()], Path :: [file:filename()], [{string(), string()}]) -> 0..3.
execute(Tool, Root, Arguments, Path, Environment) ->
    Before = take_signals(),
    Reader = take_input(),
    Ebin = filename:dirname(code:which(?MODULE)),
    Folders = [filename:join(code:root_dir(), "bin") | Path],
    All = lists:flatten([[Folder, $:] || Folder <- Folders]) ++ os:getenv("PATH", ""),
    Variables = [{"WITNESS_EBIN", filename:absname(Ebin)}, {"WITNESS_TOOL", atom_to_list(Tool)}, {"PATH", All}]
        ++ [{"WITNESS_TERMINAL", "1"} || is_in_foreground()] ++ Environment,
    %% The descriptors 0 to 2 of the command are those of this VM.
    Port = open_port({spawn_executable, filename:join([Root, "bin", "witness"])},
                     [{args, Arguments}, {env, Variables}, nouse_stdio, exit_status]),
    try
        wait_for_end(Port)
    after
        ok = return_input(Reader),
        ok = return_signals(Before)
    end.

wait_for_end(Port) ->
    receive
        {Port, {exit_status, Code}} when Code =< 3 -> Code;
        {Port, {exit_status, _}} -> 3;
        {?MODULE, interrupt} ->
            _ = case erlang:port_info(Port, os_pid) of
                {os_pid, Pid} -> os:cmd("kill -s TERM " ++ integer_to_list(Pid));
                undefined -> ended
            end,
            wait_for_end(Port)
    end.

%% The VM's handler would end this VM.
take_signals() ->
    Before = lists:member(erl_signal_handler, gen_event:which_handlers(erl_signal_server)),
    ok = gen_event:swap_handler(erl_signal_server, {erl_signal_handler, []}, {?MODULE, self()}),
    lists:foreach(fun(Signal) -> ok = os:set_signal(Signal, handle) end, ?SIGNALS),
    Before.

return_signals(Before) ->
    lists:foreach(fun(Signal) -> ok = os:set_signal(Signal, default) end, ?SIGNALS -- [sigterm]),
    _ = gen_event:delete_handler(erl_signal_server, ?MODULE, []),
    case Before of
        true -> gen_event:add_handler(erl_signal_server, erl_signal_handler, []);
        false -> ok
    end.

%% Until OTP 27 this process reads the standard input before it is asked for, which the command is to read.
take_input() ->
    case whereis(user_drv_reader) of
        undefined -> none;
        Reader ->
            true = erlang:suspend_process(Reader),
            Reader
    end.

return_input(none) -> ok;
return_input(Reader) ->
    true = erlang:resume_process(Reader),
    ok.

%% A task in the background must not change the terminal. Only Linux says; elsewhere it counts as in the foreground.
is_in_foreground() ->
    case file:read_file("/proc/self/stat") of
        {ok, Text} ->
            %% The name of the program, in parentheses, may have blanks.
            [_, Fields] = string:split(Text, ~") ", trailing),
            [_State, _Parent, Group, _Session, _Terminal, Foreground | _] = string:lexemes(Fields, " "),
            Group =:= Foreground;
        {error, _} -> true
    end.

-doc false.
-spec init({pid(), term()}) -> {ok, pid()}.
init({Task, _}) -> {ok, Task}.

-doc false.
-spec handle_event(atom(), pid()) -> {ok, pid()}.
handle_event(Signal, Task) ->
    case lists:member(Signal, ?SIGNALS) of
        true -> Task ! {?MODULE, interrupt};
        false -> erl_signal_handler:handle_event(Signal, [])
    end,
    {ok, Task}.

-doc false.
-spec handle_call(term(), State) -> {ok, ok, State}.
handle_call(_, State) -> {ok, ok, State}.
