-module(witness_cli_attach).
-moduledoc """
`witness attach`: watches a node that runs already, on which Witness need not be installed (`m:witness_remote`).

Limits protect the target, and each has a default: the time, the events per second, the size of a
message, and the memory.
""".

-export([command/0, prepare/1, run/3]).

%% Milliseconds. The end after a given time is a planned end, which the tool causes. If the tool does not, the target ends a
%% little later by itself.
-define(LATER_MS, 10_000).
%% Milliseconds that the target may take for what was gathered until then, and once more for monitors that have not answered.
-define(DRAIN_MS, 10_000).

-doc "The declaration of the command, for `m:witness_cli_args`.".
-spec command() -> argparse:command().
command() ->
    #{help => ["Watches processes of a node that runs already, and checks them, against specifications or without. Witness "
               "need not be installed there: what is needed is loaded under names of its own, and removed at the end, "
               "also when this command is killed or the connection is lost. What is watched are the processes that are "
               "named and all that they spawn from then on; without a name, the whole node.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nExit codes: 0 nothing was violated; 1 a violation; 2 wrong usage, or no such node, process or "
               "application; 3 the result cannot be trusted or says nothing, also when the connection was lost.\n\n"
               "  witness attach shop@host --app shop --check deadlock,calls,mailboxes\n"
               "  witness attach shop@host --spec checkout.hml --app shop\n"
               "  witness attach shop@host --spec checkout.hml --name checkout --for 300\n"],
      arguments => witness_cli_options:arguments(attach, [
        specs, signatures, include, checks,
        #{name => cookie_file, flag => "--cookie-file", argument => "FILE",
          text => ~"where the node's cookie stands (~/.erlang.cookie)"},
        #{name => apps, flag => "--app", argument => "APP", repeated => true,
          text => ~"watch an application with its supervision tree; may be repeated"},
        #{name => names, flag => "--name", argument => "NAME", repeated => true,
          text => ~"watch the process that is registered by this name; may be repeated"},
        #{name => pids, flag => "--pid", argument => "'<0.123.0>'", repeated => true,
          text => ~"watch a process, as the node itself writes it; may be repeated"},
        instrument, for, rate, message_size, memory, max_slices, slice_idle, max_obligations, max_state, redact, syntax,
        witness_cli_options:report(),
        witness_cli_options:must_decide(),
        witness_cli_options:json(~"one JSON object a line on standard output, and nothing else"),
        #{name => node, argument => "NODE", text => ~"the node, NAME@HOST"}])}.

-doc "The node, and the processes on it, to attach to. An error is text for people.".
-spec prepare(map()) -> {ok, witness_remote:target()} | {error, unicode:chardata()}.
prepare(#{node := Node} = Options) ->
    maybe
        {ok, File} ?= cookie_file(Options),
        {ok, Cookie} ?= witness_remote_connection:read_cookie(File),
        true ?= length(Node) < 256,
        {ok, #{node => list_to_atom(Node), cookie => Cookie, watch => targets(Options)}}
    else
        false -> {error, ~"the name of the node is too long"};
        {error, _} = Error -> Error
    end.

cookie_file(#{cookie_file := File}) -> {ok, File};
cookie_file(#{}) ->
    case init:get_argument(home) of
        {ok, [[Home]]} -> {ok, filename:join(Home, ".erlang.cookie")};
        _ -> {error, ~"there is no home folder with a cookie: name a file with --cookie-file"}
    end.

targets(Options) ->
    [{Kind, Name} || {Kind, Key} <- [{application, apps}, {name, names}, {pid, pids}],
                     Name <- maps:get(Key, Options, [])].

-doc "Attaches; returns the exit code, or an error of the user.".
-spec run(witness_remote:target(), map(), map()) -> {ok, 0..3} | {error, witness:error()}.
run(#{node := Node} = Target, Properties, Options) ->
    #{json := Json, rate := Rate, message_size := Size, memory := Memory} = Options,
    {For, Duration} = case Options of
        #{for := Asked} -> {Asked, Asked + ?LATER_MS};
        #{} -> {infinity, witness_cli_options:default(attach, for)}
    end,
    Limits = #{duration => Duration, rate => Rate, message_size => Size, memory => Memory, drain => ?DRAIN_MS},
    Report = maps:with([report, must_decide], Options),
    case witness_cli_run:run(Report#{start => maps:merge(maps:remove(monitors, Properties), Limits),
                                     with => fun(Start) ->
                                         witness_remote:start(Target#{on_leaving => fun note_leaving/1}, Start)
                                     end,
                                     node => Node,
                                     json => Json, for => For, timeout => infinity,
                                     subject => [~"node ", atom_to_binary(Node)]}) of
        {error, {witness_remote, {lost, _}} = Error} ->
            witness_cli_io:note([~"witness attach: ", witness:format_error(Error), $\n]),
            {ok, 3};
        Result -> Result
    end.

note_leaving(Line) -> witness_cli_io:note([Line, $\n]).
