-module(witness_cli_bench).
-moduledoc """
`witness bench`: runs an experiment (`m:witness_bench_experiment`), built-in or from a file, and prints its
tables.

Tables go to standard output. Progress goes to standard error: on a terminal as one line that is overwritten, elsewhere as a line
for each benchmark. The exit code is 0 when every benchmark has its result, 2 for wrong usage or a wrong file, and 3
when a benchmark was unsound or could not be measured, a file could not be written, or the experiment was interrupted.
""".

-export([run/1, command/0]).

-export_type([options/0]).

-doc "See `command/0`.".
-type options() :: #{list := boolean(), show := boolean(), tables := boolean(), again := boolean(),
                     pa => [string()], output => string(),
                     experiment => string()}.

-doc "The declaration of the command, for `m:witness_cli_args`.".
-spec command() -> argparse:command().
command() ->
    #{help => ["Measures what watching costs: systems under realistic loads, in each mode beside the unwatched one, "
               "each benchmark in a fresh node. An experiment that was interrupted goes on when it is started again.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nExit codes: 0 every benchmark has its result; 2 wrong usage or a wrong file; 3 a benchmark was "
               "unsound or could not be measured, or it was interrupted.\n\n"
               "  witness bench --list\n"
               "  witness bench laptop\n"
               "  witness bench --show laptop > mine.json && witness bench mine.json -o mine\n"],
      arguments => witness_cli_options:arguments(bench, [
        #{name => list, flag => "--list", text => ~"list the ready-made experiments"},
        #{name => show, flag => "--show", text => ~"print the experiment instead of running it, to make one of your own of it"},
        #{name => output, flag => "--output", short => $o, argument => "DIR",
          text => ~"the folder for results and raw data (NAME.bench); what is there already is not measured again"},
        #{name => tables, flag => "--tables", text => ~"print the tables of what has been measured so far, and measure nothing"},
        #{name => again, flag => "--again", text => ~"measure again what was unsound or could not be measured"},
        #{name => pa, flag => "--pa", argument => "DIR", repeated => true,
          text => ~"a folder with compiled adapters of other tools; may be repeated"},
        #{name => experiment, argument => "NAME | FILE.json", required => false,
          text => ~"a ready-made experiment, or a file (docs/benchmarks.md)"}])}.

-doc "Runs the experiment and returns the exit code.".
-spec run(options()) -> 0..3.
run(Options) ->
    Out = witness_cli_io:open(text),
    try perform(Options, Out) of
        {error, Problem} -> report_error(Problem, 2);
        Code -> Code
    catch
        throw:{unwritten, Problem} -> report_error(Problem, 3)
    end.

report_error(Problem, Code) ->
    clear(),
    note([~"witness bench: ", witness_text:clean(Problem), $\n]),
    Code.

perform(Options, Out) ->
    maybe
        ok ?= consistent(Options),
        {ok, _} ?= witness_cli_setup:add_paths(maps:get(pa, Options, [])),
        performed(Options, Out)
    end.

consistent(#{list := List, show := Show, tables := Tables, again := Again} = Options) ->
    case {[Option || {Option, true} <- [{~"--list", List}, {~"--show", Show}, {~"--tables", Tables}]], Options} of
        {[One, Other | _], _} -> {error, [One, ~" and ", Other, ~" exclude each other"]};
        {[~"--list"], #{experiment := Name}} -> {error, [~"--list takes no experiment, and there is '", Name, $']};
        {[One], #{}} when Again -> {error, [One, ~" and --again exclude each other: it measures nothing"]};
        _ -> ok
    end.

performed(#{list := true}, Out) ->
    print(Out, [[Line, $\n] || Line <- witness_text:columns([[Name, About] || {Name, About} <- ready_made()])]),
    0;
performed(#{experiment := Name, show := true}, Out) ->
    maybe
        {ok, File} ?= file(Name),
        {ok, Text} ?= read(File),
        print(Out, Text),
        0
    end;
performed(#{experiment := Given, tables := Look} = Options, Out) ->
    maybe
        {ok, File} ?= file(Given),
        {ok, #{name := Name} = Experiment, Text} ?= witness_bench_experiment:read(File),
        Folder = maps:get(output, Options, binary_to_list(Name) ++ ".bench"),
        case Look of
            true -> analyse(Experiment, Text, Folder, Out);
            false -> conduct(Experiment, Text, Folder, Options, Out)
        end
    end;
performed(#{}, _) -> {error, ~"a ready-made experiment or a file is expected (see witness bench --list)"}.

%% A name without a folder and an extension is that of a built-in experiment, unless there is such a file.
file(Name) ->
    Ready = filename:join(folder(), Name ++ ".json"),
    case {filelib:is_regular(Name), filename:basename(Name) =:= Name andalso filelib:is_regular(Ready)} of
        {true, _} -> {ok, Name};
        {false, true} -> {ok, Ready};
        {false, false} ->
            Similar = [Other || {Other, _} <- ready_made(),
                                string:jaro_similarity(string:lowercase(Name), Other) > 0.85],
            {error, [$', Name, case filelib:is_dir(Name) of
                                   true -> ~"' is a folder, and neither a file";
                                   false -> ~"' is neither a file"
                               end,
                     ~" nor a ready-made experiment (see witness bench --list)",
                     [[~"; did you mean ", Other, $?] || Other <- lists:sublist(Similar, 1)]]}
    end.

folder() -> filename:join(code:priv_dir(witness), "experiments").

ready_made() ->
    [{filename:basename(File, ".json"), About}
     || File <- lists:sort(filelib:wildcard(filename:join(folder(), "*.json"))),
        {ok, Text} <- [file:read_file(File)], {ok, #{~"about" := About}} <- [witness_bench_json:decode(Text)]].

read(File) ->
    case file:read_file(File) of
        {ok, _} = Ok -> Ok;
        {error, Reason} -> {error, [File, ~": ", file:format_error(Reason)]}
    end.

%% The results may come from another machine. Nothing is written.
analyse(Experiment, Text, Folder, Out) ->
    maybe
        {ok, Store} ?= witness_bench_store:open(Folder, Text, Experiment, any),
        [_ | _] = Rows ?= witness_bench_store:rows(Store),
        {ok, Named} ?= witness_bench_store:platform(Store),
        {ok, Platform} ?= witness_bench_platform:named(Named),
        show(Rows, tables(Experiment, Rows, Platform, Store), Folder, Out)
    else
        {error, Problem} -> {error, Problem};
        _ ->
            note(~"witness bench: nothing has been measured yet\n"),
            3
    end.

conduct(Experiment, Text, Folder, Options, Out) ->
    Platform = witness_bench_platform:facts(witness_trace_native:available() =:= ok),
    maybe
        {ok, Store} ?= witness_bench_store:open(Folder, Text, Experiment, Platform),
        {ok, Claimed} ?= witness_bench_store:claim(Store),
        conduct_claimed(Experiment, Claimed, Platform, Folder, Options, Out)
    end.

conduct_claimed(Experiment, Store, Platform, Folder, #{again := Again}, Out) ->
    ok = witness_cli_signal:catch_interrupts(),
    note([witness_bench_platform:line(Platform), $\n]),
    Conducted = witness_bench_conduct:run(Experiment, Store, #{run => fun witness_bench_run:fresh/2, tell => progress_fun(),
                                                               interrupt => interrupt, again => Again}),
    clear(),
    case Conducted of
        {done, Done} ->
            Rows = witness_bench_store:rows(Done),
            Tables = tables(Experiment, Rows, Platform, Done),
            ok = witness_bench_store:save(Done, "tables.txt", Tables),
            show(Rows, Tables, Folder, Out);
        {interrupted, _} ->
            note(~"witness bench: interrupted; the same command goes on from here\n"),
            3;
        {error, Problem} ->
            note([~"witness bench: ", Problem, $\n]),
            3
    end.

tables(Experiment, Rows, Platform, Store) ->
    Raw = #{histogram => fun(Id) -> witness_bench_store:histogram(Store, Id) end,
            samples => fun(Id) -> witness_bench_store:sampled(Store, Id) end},
    witness_bench_table:tables(Experiment, Rows, Platform, Raw).

show(Rows, Tables, Folder, Out) ->
    print(Out, [Tables, ~"\nRaw data: ", witness_text:clean(Folder), $\n]),
    case lists:all(fun(#{status := Status}) -> Status =:= ok end, witness_bench_schedule:latest(Rows)) of
        true -> 0;
        false -> 3
    end.

print(Out, Text) -> witness_cli_io:print(Out, Text).

note(Text) -> witness_cli_io:note(Text).

%% --- progress --------------------------------------------------------------------

%% A killed shell passes no interrupt on. So if the parent process has changed, this process interrupts itself.
progress_fun() ->
    Tell = case witness_cli_io:terminal(stderr) of
        true -> fun on_terminal/1;
        false -> fun line/1
    end,
    Parent = witness_cli_signal:parent(),
    fun(News) ->
        Parent =:= witness_cli_signal:parent() orelse (self() ! interrupt),
        Tell(News)
    end.

on_terminal({begins, Benchmark, Progress}) -> overwrite_line(state(Benchmark, 0, Progress));
on_terminal({tick, Benchmark, Seconds, Progress}) -> overwrite_line(state(Benchmark, Seconds, Progress));
on_terminal({ends, #{status := ok}, _}) -> ok;
on_terminal({ends, Row, _}) -> clear(), note([ended(Row), $\n]);
on_terminal({warmup, _, _} = News) -> overwrite_line(text(News));
on_terminal({probe, Probe}) -> overwrite_line(text({probe, Probe}));
on_terminal(News) -> clear(), note([text(News), $\n]).

line({begins, _, #{done := 0} = Progress}) -> note([count_text(Progress), ~", ", time_left(Progress, 0), $\n]);
line({begins, _, _}) -> ok;
line({tick, _, _, _}) -> ok;
line({warmup, _, _}) -> ok;
line({probe, _}) -> ok;
line({ends, Row, #{done := Done, total := Total} = Progress}) ->
    note([io_lib:format("~b/~b ", [Done, Total]), ended(Row), ~"; ", time_left(Progress, 0), $\n]);
line(News) -> note([text(News), $\n]).

text({warmup, I, Of}) -> io_lib:format("warming up (~b of ~b)", [I, Of]);
text({probe, #{shape := Shape, n := N, t := T}}) ->
    io_lib:format("looking for a loading time: ~ts, ~b members in ~b units of time", [Shape, N, T]);
text({probed, #{shape := Shape, n := N, t := T, fits := Fits, lag_max_ns := Lag, utilisation := Utilisation}}) ->
    io_lib:format("~ts, ~b members in ~b units of time: created at most ~.1f ms late, utilisation ~.1f %: ~ts",
                  [Shape, N, T, Lag / 1.0e6, float(Utilisation), case Fits of true -> "fits"; false -> "too much" end]);
text({fitted, T}) -> io_lib:format("the loading time is ~b units", [T]).

state(#{id := Id}, Seconds, #{done := Done, total := Total} = Progress) ->
    io_lib:format("[~b/~b] ~ts, ~b s; ~ts", [Done + 1, Total, Id, Seconds, time_left(Progress, Seconds)]).

count_text(#{total := Total, sure := true}) -> io_lib:format("~b benchmarks", [Total]);
count_text(#{total := Total}) -> io_lib:format("~b benchmarks or more", [Total]).

time_left(#{done := Total, total := Total, sure := true}, _) -> ~"done";
time_left(#{left_s := Left, sure := Sure}, Seconds) ->
    [case Sure of true -> ~"about "; false -> ~"at least " end, time(max(0, Left - Seconds)), ~" left"].

time(Seconds) when Seconds < 90 -> io_lib:format("~b s", [round(Seconds)]);
time(Seconds) when Seconds < 5400 -> io_lib:format("~b min", [round(Seconds / 60)]);
time(Seconds) -> io_lib:format("~.1f h", [Seconds / 3600]).

ended(#{id := Id, status := ok} = Row) ->
    [Id, [io_lib:format(", response ~.3f ms", [Ns / 1.0e6]) || #{response_mean_ns := Ns} <- [Row]],
     [io_lib:format(", ~b gaps", [Gaps]) || #{gaps := Gaps} <- [Row], Gaps > 0]];
ended(#{id := Id, status := unsound} = Row) -> [Id, ~": UNSOUND: ", reason(Row)];
ended(#{id := Id} = Row) -> [Id, ~": no result: ", reason(Row)].

reason(Row) -> witness_text:clean(maps:get(reason, Row, ~"")).

overwrite_line(Text) -> note([~"\r\e[K", witness_text:cut(Text, max(40, columns() - 1))]).

columns() ->
    #{width := Width} = witness_cli_io:look(),
    Width.

clear() -> witness_cli_io:terminal(stderr) andalso note(~"\r\e[K").
