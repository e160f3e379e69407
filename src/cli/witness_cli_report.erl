-module(witness_cli_report).
-moduledoc """
`witness report`: the figures of a benchmark as a page for a browser, from the folder that `witness bench` has written;
or of two such folders, to compare them.
""".

-export([run/1, command/0]).

-export_type([options/0]).

-doc "See `command/0`.".
-type options() :: #{folder := string(), against => string(), output => string()}.

-doc "The declaration of the command, for `m:witness_cli_args`.".
-spec command() -> argparse:command().
command() ->
    #{help => ["Draws what benchmarks have measured: response time, memory, utilisation and duration against the load "
               "and over time, as one page for a browser that needs nothing beside it (docs/report.md).\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nExit codes: 0 the report is written; 2 wrong usage, or a folder that is wrong; 3 it is written, and "
               "a benchmark was unsound or has no result.\n\n"
               "  witness report laptop.bench\n"
               "  witness report after.bench --against before.bench -o comparison\n"],
      arguments => witness_cli_options:arguments(report, [
        #{name => against, flag => "--against", argument => "DIR",
          text => ~"the folder of another benchmark, of before a change, say: each figure has both"},
        #{name => output, flag => "--output", short => $o, argument => "DIR",
          text => ~"where report.html is written (into the folder of the benchmark)"},
        #{name => folder, argument => "DIR", text => ~"the folder that witness bench has written"}])}.

-doc "Writes the report and returns the exit code. An error is text for people.".
-spec run(options()) -> {ok, 0 | 3} | {error, unicode:chardata()}.
run(#{folder := Folder} = Options) ->
    Folders = [Folder | [Against || #{against := Against} <- [Options]]],
    maybe
        {ok, Measured} ?= read(Folders, []),
        {ok, File} ?= witness_web_bench:write(maps:get(output, Options, Folder), Measured),
        witness_cli_io:note([~"the report is ", witness_text:clean(File), $\n]),
        case lists:all(fun witness_web_bench:is_sound/1, Measured) of
            true -> {ok, 0};
            false ->
                witness_cli_io:note(~"a benchmark was unsound, or has no result: the report has which\n"),
                {ok, 3}
        end
    else
        {error, Problem} -> {error, witness_text:clean(Problem)}
    end.

read([], Measured) -> {ok, lists:reverse(Measured)};
read([Folder | Folders], Measured) ->
    case witness_web_bench:read(Folder) of
        {ok, One} -> read(Folders, [One | Measured]);
        {error, _} = Error -> Error
    end.
