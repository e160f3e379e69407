-module(witness_cli_args).
-moduledoc """
The commands and options of the command line: parsing, help, and errors in arguments.

Everything is declared once, as a command of `m:argparse`, which parses and writes the help. Its errors use the internal
name of an argument; this module replaces it by the user's words.
""".

-export([parse/1, shared/1, report/0, seconds/1]).

-export_type([parsed/0]).

-doc "The action: print a text, run a command with its options, or print an error.".
-type parsed() :: {print, unicode:chardata()}
                | {run | check | record | replay | log | attach | compile | demo | explore | bench | report, Options :: #{atom() => term()}}
                | {error, unicode:chardata()}.

-define(PROGRAM, "witness").
-define(STANDARD_INPUT, "standard input").
-define(COMMANDS, [{"demo", "shows Witness at work: finds a bug in a small web service"},
                   {"run", "runs a system and watches it"},
                   {"check", "checks a log of what a system did"},
                   {"record", "runs a program and records what made its run what it was"},
                   {"replay", "does what was recorded again, and says whether it went the same way"},
                   {"attach", "watches a node that runs already, and leaves it as it was"},
                   {"compile", "checks specifications, and shows what they say"},
                   {"explore", "tries every order in which tracers can act, on small systems"},
                   {"log", "shows what a recording has"},
                   {"bench", "measures what watching costs, under realistic loads"},
                   {"report", "draws what benchmarks have measured, as a page for a browser"}]).

-doc "Reads the arguments of the command line.".
-spec parse([string()]) -> parsed().
parse(Arguments) ->
    case {Arguments, lists:any(fun is_help/1, Arguments)} of
        {["--version" | _], _} -> {print, version()};
        {[First | _], true} ->
            case lists:keymember(First, 1, ?COMMANDS) of
                true -> {print, [argparse:help(command(), #{progname => ?PROGRAM, columns => 100, command => [First]}), $\n]};
                false when hd(First) =:= $- -> {print, overview()};
                false -> {error, unknown_command(First)}
            end;
        {[], _} -> {error, [~"witness: a command is expected\n\n", overview()]};
        {_, false} -> parsed(argparse:parse([standard_input(A) || A <- Arguments], command(), #{progname => ?PROGRAM}))
    end.

%% `argparse' takes a lone dash for the start of an option.
standard_input("-") -> ?STANDARD_INPUT;
standard_input(Argument) -> Argument.

is_help(Argument) -> Argument =:= "--help" orelse Argument =:= "-h".

parsed({ok, #{log := ?STANDARD_INPUT} = Options, _, _}) -> {check, Options#{log := standard_input}};
parsed({ok, #{log := File} = Options, _, _}) -> {check, Options#{log := {file, File}}};
parsed({ok, Options, [_, Command], _}) -> {list_to_existing_atom(Command), Options};
parsed({error, {[_], undefined, [$- | _] = Option, _}}) -> {error, [~"witness: there is no option ", clean(Option)]};
parsed({error, {[_], undefined, Command, _}}) -> {error, unknown_command(Command)};
parsed({error, {[_, Command], Argument, Actual, _}}) ->
    {error, [~"witness ", Command, ~": ", problem(Command, Argument, Actual), ~" (see witness ", Command, ~" --help)"]}.

unknown_command(Command) ->
    Names = [Name || {Name, _} <- ?COMMANDS],
    [~"witness: there is no command '", clean(Command), ~"': there are ", witness_text:list(Names),
     ~" (see witness --help)"].

problem(Command, undefined, [$- | _] = Option) ->
    [~"there is no option ", clean(Option), similar(Command, Option)];
problem(Command, undefined, Actual) ->
    #{commands := #{Command := #{arguments := Arguments}}} = command(),
    [~"'", clean(Actual), ~"' is one argument too many",
     [~"; is 'mod:fun(args)' in quotes?" || #{name := system} <- Arguments]];
problem(Command, #{name := Name}, undefined) -> [usage(Command, Name), ~" is expected, and not there"];
problem(Command, #{name := Name}, Actual) -> [usage(Command, Name), ~" is expected, not '", clean(Actual), ~"'"].

similar(Command, Option) ->
    #{commands := #{Command := #{arguments := Arguments}}} = command(),
    Options = [[$- | Long] || #{long := Long} <- Arguments],
    case [Other || Other <- Options, string:jaro_similarity(Option, Other) > 0.8] of
        [] -> ~"";
        [Other | _] -> [~"; did you mean ", Other, ~"?"]
    end.

%% An option and its value as in the help.
usage(Command, Name) ->
    #{commands := #{Command := #{arguments := Arguments}}} = command(),
    [Usage] = [Shown || #{name := Other, help := {Shown, _}} <- Arguments, Other =:= Name],
    string:trim(Usage, both, "[].").

clean(Text) -> witness_text:clean(Text).

version() ->
    _ = application:load(witness),
    {ok, Version} = application:get_key(witness, vsn),
    io_lib:format("witness ~ts (Erlang/OTP ~ts)~n", [Version, erlang:system_info(otp_release)]).

overview() ->
    [~"""
     Witness watches a running Erlang or Elixir system and checks what each process does.

     Usage: witness COMMAND ...


     """,
     [[~"  ", Line, $\n] || Line <- witness_text:columns([[Name, Text] || {Name, Text} <- ?COMMANDS])],
     ~"""

      witness COMMAND --help    says more about a command
      witness --version         prints the version

      """].

%% Declarations

command() ->
    #{commands => #{"run" => run(), "check" => check(), "record" => witness_cli_record:command(),
                  "replay" => witness_cli_replay:command(),
                  "log" => witness_cli_log:command(), "attach" => witness_cli_attach:command(), "compile" => compile(),
                  "demo" => demo(), "explore" => witness_cli_explore:command(),
                  "bench" => witness_cli_bench:command(), "report" => witness_cli_report:command()}}.

run() ->
    #{help => ["Runs mod:fun(args), or the application APP, in a fresh node and checks every process against the "
               "specifications. The arguments are Erlang terms; nothing in them is evaluated. A function of Elixir is "
               "written MyApp.Server.run(1).\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nThe run ends when the function has returned and all processes that it has spawned have ended, or "
               "when the application has stopped or an interrupt (Ctrl-C or SIGTERM) comes."
               "\n\nExit codes: 0 nothing was violated; 1 a violation; 2 wrong usage or bad input; 3 the result cannot be "
               "trusted or says nothing.\n\n"
               "  witness run --pa ebin --spec calc.hml 'calc_demo:main(10)'\n"
               "  witness run --pa ebin --monitor 'calc_server:loop/1=no_crash' 'calc_demo:main(10)'\n"
               "  witness run --pa '_build/default/lib/*/ebin' --spec calc.hml --app calc --config sys.config\n"
               "  witness run --mix . --spec shop.hml 'Shop.Demo.run(10)'\n"],
      arguments => properties() ++ [
        #{name => instrument, long => "-instrument", type => {atom, [outline, central, inline]}, default => outline,
          help => {"[--instrument outline|central|inline]",
                   ["how events get to the monitors: outline, a tracer for each partition (default); central, one tracer "
                    "with all monitors, for small systems and for properties over several processes (per without with); or "
                    "inline, woven into the modules as they are loaded, for the least cost"]}},
        #{name => weave, long => "-weave", action => append, type => string,
          help => {"[--weave MODULE|app:APP]...",
                   ["with --instrument inline: a module, or those of an application, to be woven; without it all modules in "
                    "the folders of those that the specifications and the system name; may be repeated"]}},
        #{name => source, long => "-source", type => {atom, [native, evm]},
          help => {"[--source native|evm]", ["where events come from: native, a tracer in C (default, where it can be "
                                             "loaded), or evm, the messages of the VM's tracing"]}},
        #{name => scope, long => "-scope", type => {atom, [tree, node]}, default => node,
          help => {"[--scope tree|node]", ["what is watched: the function's process and its descendants, or (default) every "
                                           "process of the node"]}},
        #{name => log_file, long => "-log", type => string,
          help => {"[--log FILE]", ["write all that is traced to a file, for witness check: as JSON Lines if its name "
                                    "ends in .jsonl, .ndjson or .json"]}},
        #{name => config, long => "-config", type => string,
          help => {"[--config FILE.config]", ["the environment of applications (sys.config)"]}},
        #{name => json, long => "-json", type => boolean, default => false,
          help => {"[--json]", ["one JSON object a line on standard output; what the system prints goes to standard error"]}},
        report(),
        #{name => no_halt, long => "-no-halt", type => boolean, default => false,
          help => {"[--no-halt]", ["go on until an interrupt (Ctrl-C or SIGTERM), though the function has returned"]}},
        #{name => app, long => "-app", type => string,
          help => {"[--app APP]", ["start this application, with all that it needs, instead of calling a function"]}},
        #{name => mix, long => "-mix", type => string,
          help => {"[--mix DIR]", ["start the application of the Mix project in this folder, compiled and configured "
                                   "as by mix run; --app names one of an umbrella project; mod:fun(args) is called "
                                   "when it has started"]}},
        #{name => system, type => string, required => false,
          help => {"['mod:fun(args)']", ["the function to run"]}}
      ] ++ times()}.

check() ->
    #{help => ["Checks what a log says that processes did: events, one a line, as Erlang terms or in JSON Lines (docs/logs.md), "
               "as they are, or compressed with gzip or zstd. With - as its name it is read from standard input. A folder is one that witness record has written.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nExit codes: 0 nothing was violated; 1 a violation; 2 wrong usage, or a log that is wrong, where it is; "
               "3 the result cannot be trusted or says nothing.\n\n"
               "  witness check --spec calc.hml trace.log\n"
               "  zcat trace-*.jsonl.gz | witness check --spec calc.hml -\n"],
      arguments => properties() ++ [
        #{name => instrument, long => "-instrument", type => {atom, [outline, central]},
          help => {"[--instrument outline|central]", ["a tracer for each partition (default), or one for all, as properties over several processes need it; "
                                              "other verdicts are the same"]}},
        #{name => format, long => "-format", type => {atom, [text, json]},
          help => {"[--format text|json]", ["how events are written; otherwise told by the name of the log, or by its beginning"]}},
        #{name => roots, long => "-root", action => append, type => string,
          help => {"[--root PROCESS]...", ["the process that began it all, such as '<0.90.0>'; otherwise found in the log; may be "
                                           "repeated"]}},
        #{name => follow, long => "-follow", type => boolean, default => false,
          help => {"[--follow]", ["go on as the log grows, also when it is rotated, until an interrupt"]}},
        #{name => skip_malformed, long => "-skip-malformed", type => boolean, default => false,
          help => {"[--skip-malformed]", ["leave out what is wrong in the log, and count it (exit code 3, or 1)"]}},
        #{name => save, long => "-save", type => string,
          help => {"[--save FILE]", ["save the position every 5 seconds and at the end, with what the monitors know"]}},
        #{name => from, long => "-from", type => string,
          help => {"[--from FILE]", ["go on at a saved position; verdicts that fell after it are told again"]}},
        #{name => max_atoms, long => "-max-atoms", type => {integer, [{min, 1}]},
          help => {"[--max-atoms NUMBER]", ["atoms that the log may bring with it (100000)"]}},
        #{name => max_line, long => "-max-line", type => {integer, [{min, 64}]},
          help => {"[--max-line BYTES]", ["the longest line (1048576)"]}},
        #{name => json, long => "-json", type => boolean, default => false,
          help => {"[--json]", ["one JSON object a line on standard output, and nothing else"]}},
        report(),
        #{name => replay, long => "-replay", type => boolean, default => false,
          help => {"[--replay]", ["replay a recording that does not have the contents of messages, which runs the code that it names; without it "
                                  "a recording is data"]}},
        #{name => trust, long => "-trust", type => boolean, default => false,
          help => {"[--trust]", ["with --replay: also a recording that this account has not made on this machine, or that was changed since"]}},
        #{name => log, type => string, help => {"LOG", ["the log, - for standard input, or the folder of a recording"]}}
      ] ++ times()}.

compile() ->
    #{help => ["Checks specifications without running anything, and lists their properties, or shows them in another "
               "form: as Erlang, or drawn as the states of their monitors.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nExit codes: 0 all are correct (there may be warnings); 2 one is not.\n\n"
               "  witness compile calc.hml\n"
               "  witness compile --dot calc.hml | dot -Tsvg > calc.svg\n"],
      arguments => [
        #{name => pa, long => "-pa", action => append, type => string,
          help => {"[--pa DIR]...", ["a folder with compiled modules, or a quoted pattern: warns of signatures with "
                                     "functions that these modules do not have; may be repeated"]}},
        #{name => include, short => $I, long => "-include", action => append, type => string,
          help => {"[-I DIR | --include DIR]...",
                   ["a folder of record definitions that specifications name with -include; may be repeated"]}},
        #{name => dot, long => "-dot", type => boolean, default => false,
          help => {"[--dot]", ["draw the states of the monitors, in the language of Graphviz"]}},
        #{name => mermaid, long => "-mermaid", type => boolean, default => false,
          help => {"[--mermaid]", ["draw the states of the monitors, in the language of Mermaid"]}},
        #{name => erlang, long => "-erlang", type => boolean, default => false,
          help => {"[--erlang]", ["print the monitors as Erlang source"]}},
        #{name => json, long => "-json", type => boolean, default => false,
          help => {"[--json]", ["print results and diagnostics as one JSON object a line"]}},
        #{name => files, type => string, nargs => nonempty_list, help => {"FILE.hml...", ["the specifications"]}}
      ]}.

demo() ->
    #{help => ["Runs a small web service that sells seats, with a bug that shows only when two requests race. Witness watches "
               "its processes, finds the violation, and shows the messages that led to it.\n\n",
               usage, "\n\n", options,
               "\n\nExit codes: 0 the violation was found, as expected; 3 otherwise.\n"],
      arguments => [
        #{name => json, long => "-json", type => boolean, default => false,
          help => {"[--json]", ["one JSON object a line on standard output, and nothing else"]}}
      ]}.

%% The arguments for the properties to check.
properties() ->
    [
        #{name => specs, long => "-spec", action => append, type => string,
          help => {"[--spec FILE.hml]...", ["a specification; may be repeated"]}},
        #{name => monitors, long => "-monitor", action => append, type => string,
          help => {"[--monitor 'm:f/ARITY=MODULE']...",
                   ["a monitor written in Erlang for all processes with this signature; _ for any arity, function or "
                    "module (m:f/_, m:_/_); MODULE(TERM) hands TERM to its init/3; may be repeated"]}},
        #{name => pa, long => "-pa", action => append, type => string,
          help => {"[--pa DIR]...", ["a folder with compiled modules, or a quoted pattern like '_build/default/lib/*/ebin'; may "
                                     "be repeated"]}},
        #{name => include, short => $I, long => "-include", action => append, type => string,
          help => {"[-I DIR | --include DIR]...",
                   ["a folder of record definitions that specifications name with -include; may be repeated"]}},
        #{name => redact, long => "-redact", type => boolean,
          help => {"[--redact]", ["show the shape of messages, arguments and values without their contents; not with "
                                  "--log or --save"]}},
        #{name => max_slices, long => "-max-slices", type => {integer, [{min, 1}]},
          help => {"[--max-slices NUMBER]", ["slices of a monitor that are alive at the same time (100000); one more "
                                             "ends the oldest, undecided"]}},
        #{name => slice_idle, long => "-slice-idle", type => {custom, fun seconds/1},
          help => {"[--slice-idle SECONDS]", ["end a slice, undecided, for which nothing has come for so long, by the times of "
                                              "the events; otherwise it lasts"]}},
        #{name => max_obligations, long => "-max-obligations", type => {integer, [{min, 1}]},
          help => {"[--max-obligations NUMBER]", ["parts of a formula that a monitor keeps at the same time (1000); with "
                                                  "more it ends undecided"]}}
    ].

-doc "The argument for a report.".
-spec report() -> map().
report() ->
    #{name => report, long => "-report", type => string,
      help => {"[--report DIR]", ["write what was found as a page for a browser too, DIR/report.html (docs/report.md)"]}}.

times() ->
    [
        #{name => for, long => "-for", type => {custom, fun seconds/1},
          help => {"[--for SECONDS]", ["stop watching after this time: a planned end"]}},
        #{name => timeout, long => "-timeout", type => {custom, fun seconds/1},
          help => {"[--timeout SECONDS]", ["break off after this time: an error (exit code 3); monitors that are behind then have as long "
                                          "again"]}}
    ].

-doc "The arguments with these names, of those for the properties to check.".
-spec shared([atom()]) -> [map()].
shared(Names) -> [Argument || Name <- Names, Argument = #{name := N} <- properties(), N =:= Name].

-doc "A time in milliseconds. `badarg` is an error of the user.".
-spec seconds(string()) -> pos_integer().
seconds(Text) ->
    Seconds = try list_to_float(Text) catch error:badarg -> list_to_integer(Text) end,
    Seconds > 0 andalso Seconds =< 4_000_000 orelse error(badarg),
    max(1, round(Seconds * 1000)).
