-module(witness_wrapped_SUITE).
-moduledoc """
Processes that start in a function of a library have the signatures of their author over every source, in logs, recordings and replays.
A property that has monitored nothing is told which signatures there were.
""".

-include_lib("stdlib/include/assert.hrl").
-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([every_source_gives_the_same_signatures/1, a_log_is_checked_with_other_rows/1,
         recordings_and_replays_have_the_same_signatures/1, a_search_has_the_rows/1,
         a_replay_is_checked_with_the_rows_of_its_recording/1, a_recording_is_shown_with_its_rows/1,
         a_recording_is_shown_with_other_rows/1, a_divergence_names_the_function_of_the_author/1,
         rows_come_from_the_configuration/1, wrong_rows_are_refused/1,
         a_property_without_a_monitor_names_near_signatures/1, each_source_counts_all_processes/1,
         functions_of_rows_give_no_warning/1]).

all() ->
    [every_source_gives_the_same_signatures, a_log_is_checked_with_other_rows, recordings_and_replays_have_the_same_signatures,
     a_search_has_the_rows, a_replay_is_checked_with_the_rows_of_its_recording, a_recording_is_shown_with_its_rows,
     a_recording_is_shown_with_other_rows, a_divergence_names_the_function_of_the_author,
     rows_come_from_the_configuration, wrong_rows_are_refused,
     a_property_without_a_monitor_names_near_signatures, each_source_counts_all_processes, functions_of_rows_give_no_warning].

suite() -> [{timetrap, {minutes, 5}}].

-define(ROWS, ["--signature", "Wrapped.Library.init({:start, :module, :args})", "--signature", "Wrapped.Options.init([module: :module])",
               "--signature", "'Elixir.Wrapped.Options':init(#{module => module, args => args})"]).
-define(SOURCES, [["--source", "native"], ["--source", "evm"], ["--instrument", "central"],
                  ["--instrument", "central", "--source", "evm"], ["--instrument", "inline"]]).

init_per_suite(Config) ->
    case os:find_executable("elixirc") of
        false -> {skip, "there is no elixirc on the path"};
        Compiler ->
            Folder = filename:join(proplists:get_value(priv_dir, Config), "wrapped"),
            ok = filelib:ensure_path(Folder),
            #{exit := 0} = witness_command:run(Config, Compiler, ["-o", Folder, checkout("test/applications/wrapped.ex", Config)]),
            [{folder, Folder} | Config]
    end.

end_per_suite(_) -> ok.

checkout(Name, Config) -> filename:join(witness_checkout:root(proplists:get_value(data_dir, Config)), Name).

file(Name, Config) -> filename:join(proplists:get_value(priv_dir, Config), Name).

witness(Arguments, Config) -> witness_command:run(Config, checkout("bin/witness", Config), Arguments).

%% Arguments for a specification of test/applications, in a file of the test, or in the checkout.
spec(Config) -> ["--pa", proplists:get_value(folder, Config), "--spec", checkout("test/applications/wrapped.hml", Config)].

own_spec(Name, Text, Config) ->
    ok = file:write_file(file(Name, Config), Text),
    ["--pa", proplists:get_value(folder, Config), "--spec", file(Name, Config)].

run(Arguments, Config) -> witness(["run", "--scope", "tree"] ++ Arguments ++ ["Wrapped.main(1)"], Config).

all_satisfied(#{exit := 0, stdout := Text}) -> ?assertMatch({match, _}, re:run(Text, "monitors +5: 5 satisfied\n"), Text).

every_source_gives_the_same_signatures(Config) ->
    [all_satisfied(run(Source ++ ?ROWS ++ spec(Config), Config)) || Source <- ?SOURCES].

%% The log of a run without rows has the signatures of the library's functions.
a_log_is_checked_with_other_rows(Config) ->
    [begin
         #{} = run(["--log", file(Name, Config)] ++ Rows ++ spec(Config), Config),
         all_satisfied(witness(["check"] ++ Other ++ spec(Config) ++ [file(Name, Config)], Config))
     end || {Name, Rows, Other} <- [{"without.log", [], ?ROWS}, {"with.jsonl", ?ROWS, []}, {"both.log", ?ROWS, ?ROWS}]].

recordings_and_replays_have_the_same_signatures(Config) ->
    [begin
         Pa = ["--pa", proplists:get_value(folder, Config)],
         #{exit := 0} = witness(["record"] ++ Contents ++ Pa ++ ["-o", file(Name, Config), "Wrapped.main(1)"], Config),
         all_satisfied(witness(["check"] ++ How ++ ?ROWS ++ spec(Config) ++ [file(Name, Config)], Config)),
         all_satisfied(witness(["replay"] ++ ?ROWS ++ spec(Config) ++ [file(Name, Config)], Config))
     end || {Name, Contents, How} <- [{"contents.rec", ["--contents"], []}, {"plain.rec", [], ["--replay"]}]].

a_replay_is_checked_with_the_rows_of_its_recording(Config) ->
    Dir = file("monitored.rec", Config),
    all_satisfied(witness(["record"] ++ ?ROWS ++ spec(Config) ++ ["-o", Dir, "Wrapped.main(1)"], Config)),
    #{exit := 0, stdout := Text} = witness(["replay", "--check", Dir], Config),
    all_satisfied(#{exit => 0, stdout => Text}).

a_recording_is_shown_with_its_rows(Config) ->
    ok = write_configuration(Config),
    [begin
         Dir = file(Name, Config),
         #{exit := 0} = record(["--contents" | Rows], Dir, Config),
         {shown, []} = {shown, not_shown([], Dir, Config)},
         all_satisfied(witness(["check"] ++ spec(Config) ++ [Dir], Config)),
         all_satisfied(witness(["replay"] ++ spec(Config) ++ [Dir], Config))
     end || {Name, Rows} <- [{"kept.rec", ?ROWS}, {"configured.rec", ["--config", file("sys.config", Config)]}]].

%% The rows of the arguments are in addition to those of the recording.
a_recording_is_shown_with_other_rows(Config) ->
    [First, Row | Others] = ?ROWS,
    Dir = file("one_row.rec", Config),
    #{exit := 0} = record(["--contents", First, Row], Dir, Config),
    {shown, [~"Option.init", ~"Map.init"]} = {shown, not_shown([], Dir, Config)},
    {shown, []} = {shown, not_shown(Others, Dir, Config)},
    all_satisfied(witness(["check"] ++ Others ++ spec(Config) ++ [Dir], Config)).

record(Arguments, Dir, Config) ->
    witness(["record"] ++ Arguments ++ ["--pa", proplists:get_value(folder, Config), "-o", Dir, "Wrapped.main(1)"], Config).

%% The processes that the log of a recording and the stepper do not show by their authors.
not_shown(Rows, Dir, Config) ->
    #{exit := 0, stdout := Log} = witness(["log"] ++ Rows ++ [Dir], Config),
    #{exit := 0, stdout := Stepped} =
        witness(["replay", "--step", "--command", "goto end", "--command", "processes all"] ++ Rows ++ [Dir], Config),
    Missing = [[Name || Name <- [~"Stage.init", ~"Cart.init", ~"Option.init", ~"Map.init"],
                        binary:match(Text, <<" Wrapped.", Name/binary>>) =:= nomatch] || Text <- [Log, Stepped]],
    ?assertMatch([Same, Same], Missing),
    hd(Missing).

%% In the changed program the server of the cart asks for the time.
a_divergence_names_the_function_of_the_author(Config) ->
    Dir = file("diverging.rec", Config),
    #{exit := 0} = record(?ROWS, Dir, Config),
    {ok, Source} = file:read_file(checkout("test/applications/wrapped.ex", Config)),
    Changed = file("changed", Config),
    ok = filelib:ensure_path(Changed),
    ok = file:write_file(Changed ++ ".ex", string:replace(Source, ~"def setup(items), do: items",
                                                          ~"def setup(items), do: [System.os_time() | items]")),
    #{exit := 0} = witness_command:run(Config, os:find_executable("elixirc"), ["-o", Changed, Changed ++ ".ex"]),
    #{exit := 1, stdout := Text} = witness(["replay", "--allow-changed", "--pa", Changed, Dir], Config),
    ?assertMatch({match, _}, re:run(Text, "#PID<[0-9.]+>, Wrapped.Cart.init/1"), Text).

%% The recording of the run that fails keeps the rows, so its replay explains the violation.
a_search_has_the_rows(Config) ->
    ok = write_configuration(Config),
    Spec = own_spec("asked.hml", ~"with Wrapped.Cart.init(_) over _ ? _ check [_ ? _] ff.\n", Config),
    Search = fun(Name, Rows) ->
        witness(["search", "--schedules", "3", "-o", file(Name, Config)] ++ Rows ++ Spec ++ ["Wrapped.main(1)"], Config)
    end,
    #{exit := 3} = Search("unasked.rec", []),
    [begin
         #{exit := 1, stdout := Text} = Search(Name, Rows),
         ?assertMatch({match, _}, re:run(Text, "VIOLATION of .*, Wrapped.Cart.init.*IDENTICAL", [dotall]), Text)
     end || {Name, Rows} <- [{"asked.rec", ?ROWS}, {"asked_configured.rec", ["--config", file("sys.config", Config)]}]].

rows_come_from_the_configuration(Config) ->
    ok = write_configuration(Config),
    all_satisfied(run(["--config", file("sys.config", Config)] ++ spec(Config), Config)).

write_configuration(Config) ->
    ok = file:write_file(file("sys.config", Config),
                         "[{witness, [{signatures, [{'Elixir.Wrapped.Library', init, [{start, module, args}]},\n"
                         "  {'Elixir.Wrapped.Options', init, [[{module, module}]]},\n"
                         "  {'Elixir.Wrapped.Options', init, [#{module => module, args => args}]}]}]}].\n").

wrong_rows_are_refused(Config) ->
    ok = file:write_file(file("wrong.config", Config), "[{witness, [{signatures, [{m, init, [wrong]}]}]}].\n"),
    [begin
         #{exit := 2, stderr := Text} = run(Arguments ++ spec(Config), Config),
         ?assertMatch({_, _}, binary:match(Text, Expected), Text)
     end || {Arguments, Expected} <-
            [{["--config", file("wrong.config", Config)],
              ~"witness run: option --signature: {m,init,[wrong]}: no argument says where the module of the author is"},
             {["--signature", "MyServer.init({:modul})"], ~"option --signature: {MyServer, :init, [{:modul}]}: no argument says"},
             {["--signature", "MyServer.init("], ~"--signature: "}]],
    [begin
         #{exit := 2, stderr := Text} = witness([Command, "--signature", "m:f(x)"] ++ Arguments, Config),
         ?assertMatch({_, _}, binary:match(Text, ~": option --signature: {m,f,[x]}: no argument says"), Text)
     end || {Command, Arguments} <- [{"record", ["--pa", proplists:get_value(folder, Config), "-o", file("none.rec", Config), "Wrapped.main(1)"]},
                                     {"log", ["none.rec"]},
                                     {"replay", ["none.rec"]}, {"replay", ["--step", "none.rec"]}]].

%% --- nothing monitored ---------------------------------------------------------------

near(Signature, Config) ->
    own_spec("near.hml", ["near: with ", Signature, "\nover _ ? call(_, _)\ncheck <_ ? call(_, hello)> tt.\n"], Config).

warning(#{stderr := Errors, stdout := Text}) ->
    {match, [Warning]} = re:run(<<Errors/binary, Text/binary>>, "near.hml:1 [(]near[)] (monitored nothing: .*)\n",
                                [{capture, all_but_first, binary}]),
    Warning.

%% Without rows: the author is told of the library's function. A module with the same last part, or a similar name, may be meant.
a_property_without_a_monitor_names_near_signatures(Config) ->
    [?assertEqual({match, Signature},
                  {re:run(warning(run(near(Signature, Config), Config)), Expected, [{capture, none}]), Signature})
     || {Signature, Expected} <-
        [{"Stage.init(_)", "matches Stage.init[(]_[)]; seen: Wrapped.Stage.init/1 1 time, Wrapped.job/1 12 times, "
                           ".* and 1 other; did you mean Wrapped.Stage.init/1[?]$"},
         {"Wrapped.Librari.init(_)", "; did you mean Wrapped.Library.init/1[?]$"},
         {"Wrapped.Library.start(_)", "; seen: Wrapped.Library.init/1 1 time, Wrapped.job/1 12 times, .*; did you mean "
                                      "Wrapped.Library.init/1[?]$"},
         {"Wrapped.job(13)", "; seen: Wrapped.job/1 12 times with other arguments, [^?]*$"},
         {"unlike:any(_)", "; seen: Wrapped.job/1 12 times, [^?]*$"}]].

%% What runs inline is counted as over the source that watches it.
each_source_counts_all_processes(Config) ->
    [begin
         Warning = warning(run(Source ++ near("Wrapped.Cart.init(_)", Config), Config)),
         [?assertMatch({_, _}, binary:match(Warning, Part), {Source, Warning})
          || Part <- [~"Wrapped.job/1 12 times", ~" and 1 other"]]
     end || Source <- ?SOURCES],
    _ = run(["--log", file("seen.log", Config)] ++ spec(Config), Config),
    ?assertMatch({_, _}, binary:match(warning(witness(["check"] ++ near("Wrapped.Cart.init(_)", Config) ++ [file("seen.log", Config)],
                                                      Config)), ~"Wrapped.job/1 12 times")).

functions_of_rows_give_no_warning(Config) ->
    Spec = own_spec("warned.hml", "with Wrapped.Cart.init(_)\nover _ ? call(_, _)\ncheck <_ ? call(_, hello)> tt.\n", Config),
    [?assertEqual(Expected, {re:run(Text, "has no function .*init/1", [{capture, none}]), Rows})
     || {Rows, Expected} <- [{[], {match, []}}, {?ROWS, {nomatch, ?ROWS}}], #{stderr := Text} <- [run(Rows ++ Spec, Config)]],
    [_, Folder, _, File] = Spec,
    [?assertEqual(Expected, {re:run(Text, "has no function .*init/1", [{capture, none}]), Rows})
     || {Rows, Expected} <- [{[], {match, []}}, {?ROWS, {nomatch, ?ROWS}}],
        #{exit := 0, stderr := Text} <- [witness(["compile", "--pa", Folder] ++ Rows ++ [File], Config)]].
