-module(witness_cli_attach).
-moduledoc """
`witness attach`: watches a node that runs already, on which Witness need not be installed (`m:witness_remote`).

Limits protect the target, and each has a default: the time, the events per second, the size of a
message, and the memory.
""".

-export([command/0, prepare/1, run/3]).

%% Milliseconds. The end after a given time is a planned end, which the tool causes. If the tool does not, the target ends a
%% little later by itself.
-define(DURATION, 60_000).
-define(LATER, 10_000).

-doc "The declaration of the command, for `m:witness_cli_args`.".
-spec command() -> argparse:command().
command() ->
    #{help => ["Watches processes of a node that runs already, and checks them against the specifications. Witness "
               "need not be installed there: what is needed is loaded under names of its own, and removed at the end, "
               "also when this command is killed or the connection is lost. What is watched are the processes that are "
               "named and all that they spawn from then on; without a name, the whole node.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nExit codes: 0 nothing was violated; 1 a violation; 2 wrong usage, or no such node, process or "
               "application; 3 the result cannot be trusted or says nothing, also when the connection was lost.\n\n"
               "  witness attach shop@host --spec checkout.hml --app shop\n"
               "  witness attach shop@host --spec checkout.hml --name checkout --for 300\n"],
      arguments => witness_cli_args:shared([specs, include]) ++ [
        #{name => cookie_file, long => "-cookie-file", type => string,
          help => {"[--cookie-file FILE]", ["where the node's cookie stands (~/.erlang.cookie)"]}},
        #{name => apps, long => "-app", action => append, type => string,
          help => {"[--app APP]...", ["watch an application with its supervision tree; may be repeated"]}},
        #{name => names, long => "-name", action => append, type => string,
          help => {"[--name NAME]...", ["watch the process that is registered by this name; may be repeated"]}},
        #{name => pids, long => "-pid", action => append, type => string,
          help => {"[--pid '<0.123.0>']...", ["watch a process, as the node itself writes it; may be repeated"]}},
        #{name => for, long => "-for", type => {custom, fun witness_cli_args:seconds/1},
          help => {"[--for SECONDS]", ["stop watching after this time: a planned end; without it after 60 seconds, "
                                       "with a warning"]}},
        #{name => rate, long => "-rate", type => {integer, [{min, 1}]}, default => 20_000,
          help => {"[--rate NUMBER]", ["events a second beyond which watching is given up (20000)"]}},
        #{name => message_size, long => "-message-size", type => {integer, [{min, 1}]}, default => 1 bsl 16,
          help => {"[--message-size BYTES]", ["a larger message is not looked at, and is a gap in the trace of its "
                                              "process (65536)"]}},
        #{name => memory, long => "-memory", type => {integer, [{min, 1}]}, default => 256,
          help => {"[--memory MB]", ["memory that Witness may take at the node (256)"]}}
      ] ++ witness_cli_args:shared([max_slices, slice_idle, max_obligations]) ++ [
        #{name => redact, long => "-redact", type => boolean,
          help => {"[--redact]", ["show the shape of messages, arguments and values; their contents stay at the "
                                  "node"]}},
        witness_cli_args:report(),
        #{name => json, long => "-json", type => boolean, default => false,
          help => {"[--json]", ["one JSON object a line on standard output, and nothing else"]}},
        #{name => node, type => string, help => {"NODE", ["the node, NAME@HOST"]}}
      ]}.

-doc "The node, and the processes on it, to attach to. An error is text for people.".
-spec prepare(map()) -> {ok, witness_remote:target()} | {error, unicode:chardata()}.
prepare(#{node := Node} = Options) ->
    maybe
        {ok, File} ?= cookie_file(Options),
        {ok, Cookie} ?= witness_remote_connection:cookie(File),
        true ?= length(Node) < 256,
        {ok, #{node => list_to_atom(Node), cookie => Cookie, watch => watched(Options)}}
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

watched(Options) ->
    [{Kind, Name} || {Kind, Key} <- [{application, apps}, {name, names}, {pid, pids}],
                     Name <- maps:get(Key, Options, [])].

-doc "Attaches; returns the exit code, or an error of the user (`witness_remote:format_error/1`).".
-spec run(witness_remote:target(), map(), map()) -> {ok, 0..3} | {error, term()}.
run(#{node := Node} = Target, Properties, Options) ->
    #{json := Json, rate := Rate, message_size := Size, memory := Memory} = Options,
    {For, Duration} = case Options of
        #{for := Asked} -> {Asked, Asked + ?LATER};
        #{} -> {infinity, ?DURATION}
    end,
    Limits = #{duration => Duration, rate => Rate, message_size => Size, memory => Memory bsl 20},
    Report = maps:with([report], Options),
    case witness_cli_run:run(Report#{start => maps:merge(maps:remove(monitors, Properties), Limits),
                                     with => fun(Start) -> witness_remote:start(Target#{on_leaving => fun leaving/1}, Start) end, node => Node,
                                     json => Json, for => For, timeout => infinity,
                                     subject => [~"node ", atom_to_binary(Node)]}) of
        {error, {lost, _} = Reason} ->
            witness_cli_io:note([~"witness attach: ", witness_remote:format_error(Reason), $\n]),
            {ok, 3};
        Result -> Result
    end.

leaving(Line) -> witness_cli_io:note([Line, $\n]).
