-module(witness_cli_args).
-moduledoc """
The commands and options of the command line: parsing, help, and errors in arguments.

Everything is declared once, as a command of `m:argparse`, which parses and writes the help: options that several commands
have in `m:witness_cli_options`, the others with their command. The errors of `argparse` use the internal name of an argument;
this module replaces it by the user's words.
""".

-export([parse/1]).

-export_type([parsed/0]).

-doc "The action: print a text, run a command with its options, or print an error.".
-type parsed() :: {print, unicode:chardata()}
                | {run | check | record | replay | search | log | attach | compile | format | demo | explore | bench | report,
                   Options :: #{atom() => term()}}
                | {error, unicode:chardata()}.

-define(PROGRAM, "witness").
-define(STANDARD_INPUT, "standard input").
-define(COMMANDS, [{"demo", "shows Witness at work: finds a bug in a small web service"},
                   {"run", "runs a system and watches it"},
                   {"check", "checks a log of what a system did"},
                   {"record", "runs a program and records what made its run what it was"},
                   {"replay", "does what was recorded again, and says whether it went the same way"},
                   {"search", "runs a program by one schedule after the other, until it goes wrong"},
                   {"attach", "watches a node that runs already, and leaves it as it was"},
                   {"compile", "checks specifications, and shows what they say"},
                   {"format", "rewrites specifications in a uniform layout"},
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
parsed({ok, #{'try' := ?STANDARD_INPUT} = Options, _, _}) -> {compile, Options#{'try' := standard_input}};
parsed({ok, #{files := Files} = Options, [_, "format"], _}) ->
    {format, Options#{files := [case File of ?STANDARD_INPUT -> standard_input; _ -> {file, File} end || File <- Files]}};
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
problem(Command, #{name := Name}, Actual) -> [usage(Command, Name), ~" is expected, not '", clean(Actual), ~"'", names(Name)].

%% What a list of names may have.
names(Name) ->
    [[~": the names are ", witness_text:list([atom_to_binary(Atom) || Atom <- Atoms])]
     || #{name := Option, type := {Lists, {one_of, Atoms}}} <- witness_option_schema:flags(), Option =:= Name,
        Lists =:= list orelse Lists =:= nonempty_list].

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
                  "replay" => witness_cli_replay:command(), "search" => witness_cli_search:command(),
                  "log" => witness_cli_log:command(), "attach" => witness_cli_attach:command(), "compile" => compile(),
                  "format" => witness_cli_format:command(), "demo" => demo(), "explore" => witness_cli_explore:command(),
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
      arguments => witness_cli_options:arguments(run, witness_cli_options:properties() ++ [
        checks, instrument, weave, source, scope, log_file, log_size, message_size, memory, config,
        witness_cli_options:json(~"one JSON object a line on standard output; what the system prints goes to standard error"),
        witness_cli_options:report(), witness_cli_options:must_decide(), no_halt, app, witness_cli_options:mix(~"start"), system
        | witness_cli_options:times()])}.

check() ->
    #{help => ["Checks what a log says that processes did: events, one a line, as Erlang terms or in JSON Lines (docs/logs.md), "
               "as they are, or compressed with gzip or zstd. With - as its name it is read from standard input. A folder is one that witness record has written.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nExit codes: 0 nothing was violated; 1 a violation; 2 wrong usage, or a log that is wrong, where it is; "
               "3 the result cannot be trusted or says nothing.\n\n"
               "  witness check --spec calc.hml trace.log\n"
               "  zcat trace-*.jsonl.gz | witness check --spec calc.hml -\n"],
      arguments => witness_cli_options:arguments(check, witness_cli_options:properties() ++ [
        checks, instrument, format, roots, follow, skew, sort, clock, clocks, skip_malformed, save, from, max_atoms, max_line,
        witness_cli_options:json(~"one JSON object a line on standard output, and nothing else"),
        witness_cli_options:report(),
        witness_cli_options:must_decide(),
        #{name => replay, flag => "--replay",
          text => [~"replay a recording that does not have the contents of messages, which runs the code that it names; ",
                   ~"without it a recording is data"]},
        trust,
        #{name => log, argument => "LOG", text => ~"the log, - for standard input, or the folder of a recording"}
        | witness_cli_options:times()])}.

compile() ->
    #{help => ["Checks specifications without running anything, and lists their properties, or shows them in another "
               "form: as Erlang, or drawn as the states of their monitors. With --try it says what they say of a log.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nExit codes: 0 all are correct (there may be warnings, and violations in the log); 2 one is not, or the log is wrong; "
               "3 nothing was violated in the log, and that cannot be trusted or says nothing.\n\n"
               "  witness compile calc.hml\n"
               "  witness compile --watch --try trace.log calc.hml\n"
               "  witness compile --dot calc.hml | dot -Tsvg > calc.svg\n"],
      arguments => witness_cli_options:arguments(compile, [
        #{name => pa, flag => "--pa", argument => "DIR", repeated => true,
          text => [~"a folder with compiled modules, or a quoted pattern: warns of signatures with functions that these ",
                   ~"modules do not have; may be repeated"]},
        include, signatures,
        #{name => expand, flag => "--expand", text => ~"print sentences and machines as formulas, without definitions and records"},
        #{name => dot, flag => "--dot", text => ~"draw the states of the monitors, in the language of Graphviz"},
        #{name => mermaid, flag => "--mermaid", text => ~"draw the states of the monitors, in the language of Mermaid"},
        #{name => erlang, flag => "--erlang", text => ~"print the monitors as Erlang source"},
        witness_cli_options:json(~"print results and diagnostics as one JSON object a line"),
        #{name => 'try', flag => "--try", argument => "LOG",
          text => [~"say what the specifications say of this log (- for standard input), or of the recording in this folder: verdicts, how ",
                   ~"many events each action has matched, and what comes near to an action that never matches"]},
        #{name => watch, flag => "--watch", text => ~"do it again whenever one of the files changes, until an interrupt (Ctrl-C)"}
        | witness_cli_check:arguments()] ++ [max_slices, slice_idle, max_obligations, max_state, syntax,
        #{name => files, argument => "FILE.hml", repeated => true, text => ~"the specifications"}])}.

demo() ->
    #{help => ["Runs a small web service that sells seats, with a bug that shows only when two requests race. Witness watches "
               "its processes, finds the violation, and shows the messages that led to it.\n\n",
               usage, "\n\n", options,
               "\n\nExit codes: 0 the violation was found, as expected; 3 otherwise.\n"],
      arguments => witness_cli_options:arguments(demo, [
        witness_cli_options:json(~"one JSON object a line on standard output, and nothing else")])}.
