-module(witness_replay_monitor_SUITE).
-moduledoc "Replays are monitored, written as logs, and compared with what was found while the program was recorded.".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [what_is_replayed_is_judged_as_what_is_kept_and_live, what_a_killed_process_has_sent_may_not_be_known,
     what_is_replayed_can_be_written, a_replay_stops_at_the_first_violation, verdicts_are_those_of_the_recording,
     a_violation_is_found_where_nothing_was_recorded, what_diverges_is_no_verdict, what_is_wrong_is_named].

init_per_suite(Config) ->
    [Programs, Monitors] = [compiled(Name, Files, Config)
                            || {Name, Files} <- [{"programs",
                                                  ["recorded/witness_recorded_checked", "recorded/witness_recorded_killed",
                                                   "cli_data/cli_system"]},
                                                 {"monitors", ["recorded/witness_recorded_monitor", "cli_data/cli_monitor"]}]],
    true = code:add_patha(Monitors),
    {ok, Started} = application:ensure_all_started(witness),
    [{programs, Programs}, {monitors, Monitors}, {started, Started} | Config].

end_per_suite(Config) ->
    true = code:del_path(proplists:get_value(monitors, Config)),
    [ok = application:stop(App) || App <- lists:reverse(proplists:get_value(started, Config))].

compiled(Name, Files, Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), Name),
    ok = filelib:ensure_path(Out),
    [{ok, _} = compile:file(filename:join([root(Config), "test", File]), [{outdir, Out}, debug_info]) || File <- Files],
    Out.

%% --- verdicts --------------------------------------------------------------------

%% The program does the same in every run, so that three of them can be compared.
what_is_replayed_is_judged_as_what_is_kept_and_live(Config) ->
    Call = {witness_recorded_checked, run, []},
    Dir = file(".rec", Config),
    Self = self(),
    %% Live monitors run in the VM of the program.
    #{pa := Folders} = Options = options(Dir, Call, Config),
    {ok, Run} = witness_recorded_run:start(Options#{pa := Folders ++ [proplists:get_value(monitors, Config)]},
                                        #{monitors => anything(), on_verdict => fun(V) -> Self ! {verdict, V} end, log => false},
                                        fun(_) -> ok end),
    {ok, #{outcome := ok, verdicts := #{yes := Yes}}} = witness:await(Run, 600_000),
    {ok, _} = witness:stop(Run),
    Live = [receive {verdict, V} -> V end || _ <- lists:seq(1, Yes)],
    {Checked, #{outcome := ok, gaps := 0}} = judged({replay, #{dir => Dir}}),
    ?assert(length(Checked) > 4),
    ?assertEqual(by_process(Live, fun named/1), by_process(Checked, fun named/1)),
    {Replayed, #{outcome := ok}} = judged({replay, #{dir => Dir, on_report => fun(Report) -> Self ! {report, Report} end}}),
    ?assertMatch({ok, #{outcome := identical}}, receive {report, Report} -> Report end),
    ?assertEqual(by_process(Checked, fun same/1), by_process(Replayed, fun same/1)),
    %% For a recording with contents, the replay is another way to the same events.
    Kept = file(".rec", Config),
    {ok, #{outcome := recorded}} = witness_record:record((options(Kept, Call, Config))#{contents => true}),
    ?assert(witness_run_replay:has_contents(Kept)),
    {FromFile, #{outcome := ok}} = judged({recording, Kept}),
    {FromReplay, #{outcome := ok}} = judged({replay, #{dir => Kept}}),
    ?assertEqual(by_process(FromFile, fun same/1), by_process(FromReplay, fun same/1)),
    %% The places are the same, too: a recording with contents has entries of messages that were sent.
    ?assertEqual(lists:sort([Place || #{log := Place} <- FromFile]), lists:sort([Place || #{log := Place} <- FromReplay])).

by_process(Verdicts, Plain) ->
    lists:sort([{Process, Verdict, [Plain(Event) || Event <- Info]}
                || #{process := Process, verdict := Verdict, info := Info} <- Verdicts]).

same(Event) -> Event.

%% In a live run, a name has become the process that has it.
named({send, _, Msg}) -> {send, Msg};
named(Event) -> Event.

what_a_killed_process_has_sent_may_not_be_known(Config) ->
    [begin
         Dir = file(".rec", Config),
         {ok, #{outcome := recorded}} = witness_record:record(options(Dir, {witness_recorded_killed, Function, []}, Config)),
         {Verdicts, Summary} = judged({replay, #{dir => Dir}}),
         ct:pal("~p~n~p", [Verdicts, Summary]),
         [Found] = [V || #{signature := {witness_recorded_killed, Who, []}} = V <- Verdicts,
                    lists:member(Who, [worker, computer, talker])],
         ?assertMatch({Function, Expected}, {Function, {maps:get(verdict, Found), maps:get(reason, Found)}}),
         %% No other process misses anything.
         ?assertMatch([#{verdict := yes}], [V || #{signature := {_, Who, []}} = V <- Verdicts, Who =:= Function])
     end || {Function, Expected} <- [{all, {yes, undefined}}, {waits, {yes, undefined}}, {some, {inconclusive, {gap, killed}}},
                                     {endless, {inconclusive, {gap, killed}}}]].

%% --- logs ------------------------------------------------------------------------

what_is_replayed_can_be_written(Config) ->
    Dir = answering("[1, 2]", [], Config),
    [begin
         Log = file(Extension, Config),
         #{exit := 0} = witness(Config, ["replay", "--events", Log, Dir]),
         {Written, #{outcome := ok}} = judged({file, Log}),
         {Checked, #{outcome := ok}} = judged({replay, #{dir => Dir}}),
         ?assertEqual(by_process(Checked, fun same/1), by_process(Written, fun same/1))
     end || Extension <- [".log", ".jsonl"]],
    %% Both at once.
    Both = file(".log", Config),
    #{exit := 0} = witness(Config, ["replay", "--events", Both, "--spec", spec(Config), Dir]),
    ?assertMatch({_, #{outcome := ok}}, judged({file, Both})).

%% --- the command -----------------------------------------------------------------

%% 6,000 events and more; the 12th answer is the first violation.
a_replay_stops_at_the_first_violation(Config) ->
    Dir = file(".rec", Config),
    {ok, #{outcome := recorded}} = witness_record:record(options(Dir, {witness_recorded_checked, long, [1000]}, Config)),
    Arguments = ["replay", "--monitor", "witness_recorded_checked:echo/0=cli_monitor(11)", "--pa",
                 proplists:get_value(monitors, Config)],
    #{exit := 1, stdout := Text} = witness(Config, Arguments ++ ["--until", "verdict", Dir]),
    witness_command:contains(Text, [~"VIOLATION", ~"STOPPED at the first violation, at",
                                    unicode:characters_to_binary([Dir, ":2:"])]),
    #{exit := 1, stdout := Whole} = witness(Config, Arguments ++ ["--json", Dir]),
    [#{~"events" := All}] =
        [S || #{~"type" := ~"summary"} = S <- [json:decode(L) || L <- binary:split(Whole, ~"\n", [global, trim_all])]],
    ?assert(All > 6000),
    stopped_early(3, All, Arguments ++ ["--json", "--until", "verdict", Dir], Config),
    %% Without a violation it goes to the end.
    #{exit := 0,
      stdout := End} = witness(Config, ["replay", "--spec", spec(Config), "--until", "verdict", answering("[1]", [], Config)]),
    witness_command:contains(End, [~"IDENTICAL"]).

%% The replay goes on until the command is told of the violation. It may come to its end if that takes long, but not each time.
stopped_early(Attempts, All, Arguments, Config) ->
    #{exit := 1, stdout := Json} = witness(Config, Arguments),
    Lines = [json:decode(Line) || Line <- binary:split(Json, ~"\n", [global, trim_all])],
    [#{~"events" := Events}] = [S || #{~"type" := ~"summary"} = S <- Lines],
    [#{~"log" := Place} | _] = [V || #{~"type" := ~"verdict", ~"verdict" := ~"no"} = V <- Lines],
    ?assertMatch(#{~"type" := ~"replay", ~"outcome" := ~"stopped", ~"at" := Place}, lists:last(Lines)),
    ct:pal("~b of ~b events", [Events, All]),
    case Attempts of
        1 -> ?assert(Events < All);
        _ when Events < All -> ok;
        _ -> stopped_early(Attempts - 1, All, Arguments, Config)
    end.

verdicts_are_those_of_the_recording(Config) ->
    Dir = answering("[1, 10]", ["--spec", spec(Config)], Config),
    #{exit := 0, stdout := Same} = witness(Config, ["replay", "--check", Dir]),
    witness_command:contains(Same, [~"VIOLATED", ~"IDENTICAL", ~"same verdicts"]),
    #{exit := 1} = witness(Config, ["replay", "--spec", spec(Config), Dir]),
    %% Another specification of that name on that line.
    Other = filename:join(file("", Config), "small.hml"),
    ok = filelib:ensure_dir(Other),
    {ok, Text} = file:read_file(spec(Config)),
    ok = file:write_file(Other, string:replace(Text, ~"N > 9", ~"N > 99")),
    #{exit := 1, stdout := Differs} = witness(Config, ["replay", "--check", "--spec", Other, Dir]),
    witness_command:contains(Differs,
                             [~"differs: one_digit, small.hml:3 on", ~"recorded: violated", ~"replayed: ", ~"OTHER VERDICTS"]),
    #{exit := 1, stdout := Json} = witness(Config, ["replay", "--json", "--check", "--spec", Other, Dir]),
    ?assertMatch(#{~"outcome" := ~"identical", ~"verdicts" := [#{~"recorded" := [~"no"]}]},
                 json:decode(lists:last(binary:split(Json, ~"\n", [global, trim_all])))),
    ok = file:write_file(filename:join(Dir, "verdicts"), "{}"),
    #{exit := 2, stderr := Untrusted} = witness(Config, ["replay", "--check", Dir]),
    witness_command:contains(Untrusted, [~"verdicts: it was changed since it was recorded", ~"--trust"]),
    #{exit := 2, stderr := Damaged} = witness(Config, ["replay", "--check", "--trust", Dir]),
    witness_command:contains(Damaged, [~"witness replay: ", ~"verdicts: it does not hold verdicts"]).

a_violation_is_found_where_nothing_was_recorded(Config) ->
    Dir = answering("[1, 10]", [], Config),
    #{exit := 0} = witness(Config, ["replay", "--check", Dir]),
    #{exit := 1} = witness(Config, ["replay", "--check", "--spec", spec(Config), Dir]),
    %% An undecided result has no verdict to compare.
    #{exit := 3} =
        witness(Config, ["replay", "--monitor", "nobody:nothing/0=cli_monitor", "--pa", proplists:get_value(monitors, Config),
                         Dir]).

%% A program that was changed answers otherwise.
what_diverges_is_no_verdict(Config) ->
    Dir = answering("[1, 2]", ["--spec", spec(Config)], Config),
    Changed = file("", Config),
    ok = filelib:ensure_path(Changed),
    {ok, Text} = file:read_file(filename:join([root(Config), "test", "cli_data", "cli_system.erl"])),
    Source = filename:join(Changed, "cli_system.erl"),
    ok = file:write_file(Source, string:replace(Text, ~"Client ! {answer, Number}", ~"Client ! {answer, erlang:unique_integer()}")),
    {ok, _} = compile:file(Source, [debug_info, {outdir, Changed}]),
    #{exit := 2} = witness(Config, ["replay", "--check", "--pa", Changed, Dir]),
    #{exit := 1, stdout := Diverged} = witness(Config, ["replay", "--check", "--allow-changed", "--pa", Changed, Dir]),
    witness_command:contains(Diverged, [~"diverged: ", ~"DIVERGED"]).

what_is_wrong_is_named(Config) ->
    Dir = file(".rec", Config),
    [begin
         #{exit := 2, stdout := Text, stderr := Error} = witness(Config, ["replay" | Arguments]),
         ?assertEqual(nomatch, binary:match(Text, ~"IDENTICAL")),
         witness_command:contains(Error, [~"witness replay: " | Words])
     end || {Arguments, Words} <- [
         {["--until", "verdict", Dir], [~"--until verdict: name a specification"]},
         {["--until", "verdict", "--check", "--spec", spec(Config), Dir], [~"exclude each other"]},
         {["--until", "morning", Dir], [~"--until verdict is expected, not 'morning'"]},
         {["--spec", spec(Config), Dir], [unicode:characters_to_binary(Dir)]},
         {["--check", Dir], [unicode:characters_to_binary(Dir)]},
         {["--monitor", "nonsense", Dir], [~"--monitor: "]}]],
    Malformed = filename:join(filename:dirname(spec(Config)), "malformed.hml"),
    #{exit := 2, stderr := Error} = witness(Config, ["replay", "--spec", Malformed, answering("[1]", [], Config)]),
    witness_command:contains(Error, [~"malformed.hml:"]).

%% --- helpers ---------------------------------------------------------------------

anything() -> [{{'_', '_', '_'}, {witness_recorded_monitor, []}}].

judged(Log) ->
    {ok, Run} = witness:start(#{system => {log, Log}, monitors => anything(), log => false}),
    {ok, Summary} = witness:await(Run, 600_000),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    {Verdicts, Summary}.

answering(Numbers, Arguments, Config) ->
    Dir = file(".rec", Config),
    #{exit := _} = witness(Config, ["record", "-o", Dir, "--pa", proplists:get_value(programs, Config)] ++ Arguments
                                    ++ ["cli_system:answers(" ++ Numbers ++ ")"]),
    Dir.

options(Dir, Run, Config) -> #{run => Run, dir => Dir, pa => [proplists:get_value(programs, Config)]}.

file(Extension, Config) ->
    filename:join(proplists:get_value(priv_dir, Config), "f-" ++ integer_to_list(erlang:unique_integer([positive])) ++ Extension).

spec(Config) -> filename:join([root(Config), "test", "cli_data", "small.hml"]).

root(Config) -> witness_checkout:root(proplists:get_value(data_dir, Config)).

witness(Config, Arguments) -> witness_command:run(Config, filename:join([root(Config), "bin", "witness"]), Arguments).
