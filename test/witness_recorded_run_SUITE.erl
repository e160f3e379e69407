-module(witness_recorded_run_SUITE).
-moduledoc """
Recordings are monitored: in the end, with what a run of the same program finds, and while they are made.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 8}}].

all() -> [{group, checked}, {group, recorded}, {group, last}].

groups() ->
    [{checked, [], [a_recording_is_judged_like_a_run, what_a_killed_vm_has_left_is_judged_up_to_there,
                    arguments_that_were_not_kept_leave_undecided, the_command_checks_a_recording,
                    a_damaged_recording_is_named_and_where, what_a_recording_cannot_is_named]},
     {recorded, [], [a_program_is_monitored_while_it_is_recorded, monitors_are_no_part_of_a_recording,
                     verdicts_and_recordings_share_an_exit_code, properties_over_processes_are_decided_in_every_command,
                     an_application_is_monitored_while_it_is_recorded,
                     a_wrong_specification_records_nothing]},
     {last, [], [the_last_part_is_kept_and_judged, it_is_kept_when_asked_for, it_is_kept_when_something_is_violated,
                 it_is_kept_however_the_program_ends, a_killed_vm_leaves_what_was_kept_before, a_wrong_size_is_named]}].

init_per_suite(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = filelib:ensure_path(Out),
    ok = witness_record_programs:compile(Out),
    true = code:add_patha(Out),
    {ok, Started} = application:ensure_all_started(witness),
    [{programs, Out}, {started, Started} | Config].

end_per_suite(Config) ->
    true = code:del_path(proplists:get_value(programs, Config)),
    [ok = application:stop(App) || App <- lists:reverse(proplists:get_value(started, Config))].

%% --- in the end ------------------------------------------------------------------

a_recording_is_judged_like_a_run(Config) ->
    Call = {witness_recorded_checked, run, []},
    %% To load a module, a process sends and receives messages of its own. So the program runs once before.
    ok = witness_recorded_checked:run(),
    ok = witness_await:until(fun() -> whereis(witness_recorded_checked) =:= undefined end),
    Monitors = [{{'_', '_', '_'}, {witness_recorded_monitor, []}}],
    {ok, Live} = witness:start(#{system => Call, monitors => Monitors, explain => 1}),
    {ok, #{outcome := ok}} = witness:await(Live, 60_000),
    Seen = seen(witness:verdicts(Live)),
    {ok, _} = witness:stop(Live),
    Dir = record(Call, Config),
    {Checked, #{outcome := ok, gaps := 0}} = check(Dir, Monitors),
    ct:pal("~p", [Checked]),
    ?assert(length(Checked) > 4),
    ?assertEqual(Seen, seen(Checked)),
    %% Places are entries of processes.
    [?assertMatch([_, _], string:split(string:prefix(Place, [Dir, $:]), ":")) || #{log := Place} <- Checked].

seen(Verdicts) -> lists:sort([{Verdict, Info} || #{verdict := Verdict, info := Info} <- Verdicts]).

what_a_killed_vm_has_left_is_judged_up_to_there(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    {ok, #{vm := 137}} = witness_record:record((options(Dir, {witness_recorded_checked, killed, []}, Config))#{contents => true}),
    {Verdicts, #{outcome := untrusted, gaps := Gaps}} = check(Dir, [{{'_', '_', '_'}, {witness_recorded_monitor, []}}]),
    ?assert(Gaps > 0),
    [?assertMatch(#{verdict := inconclusive, reason := {gap, cut}}, V) || V <- Verdicts],
    %% A violation that was seen before the gap is reported.
    {Violations, #{outcome := violated}} =
        check(Dir, [{{witness_recorded_checked, echo, 0}, {cli_monitor, 99}}]),
    ?assertMatch([#{verdict := no}], Violations).

arguments_that_were_not_kept_leave_undecided(Config) ->
    Dir = record({witness_recorded_checked, large, []}, Config),
    {Verdicts, #{outcome := untrusted}} = check(Dir, [{{'_', '_', '_'}, {witness_recorded_monitor, []}}]),
    ?assertMatch([#{verdict := inconclusive, reason := {gap, arguments}, signature := {witness_recorded_checked, large, []}}],
                 Verdicts).

check(Dir, Monitors) ->
    {ok, Run} = witness:start(#{system => {log, {recording, Dir}}, monitors => Monitors, log => false}),
    {ok, Summary} = witness:await(Run, 60_000),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    {Verdicts, Summary}.

the_command_checks_a_recording(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    Programs = proplists:get_value(programs, Config),
    #{exit := 0} = witness(Config, ["record", "--contents", "-o", Dir, "--pa", cli(Config), "cli_system:answers([1, 10, 3])"]),
    #{exit := 1, stdout := Text} = witness(Config, ["check", "--spec", spec(Config), Dir]),
    witness_command:contains(Text, [~"VIOLATED", unicode:characters_to_binary([Dir, ":2:"]), ~"recording", ~"to its end"]),
    #{exit := 1, stdout := Json} = witness(Config, ["check", "--json", "--spec", spec(Config), Dir]),
    [Verdict | _] = [json:decode(Line) || Line <- binary:split(Json, ~"\n", [global, trim_all])],
    %% That is the entry that `witness log' shows.
    #{~"type" := ~"verdict", ~"verdict" := ~"no", ~"log" := Place} = Verdict,
    [_, Process, Index] = string:split(Place, ":", all),
    #{exit := 0, stdout := Log} = witness(Config, ["log", "--process", Process, "--json", Dir]),
    [Entry] = [E || Line <- binary:split(Log, ~"\n", [global, trim_all]), #{~"index" := I} = E <- [json:decode(Line)],
                    I =:= binary_to_integer(Index)],
    ?assertMatch(#{~"kind" := ~"sent", ~"text" := ~"{answer,10}"}, Entry),
    _ = Programs.

a_damaged_recording_is_named_and_where(Config) ->
    Dir = record({witness_recorded_checked, run, []}, Config),
    Name = filename:join(Dir, "data"),
    {ok, Bytes} = file:read_file(Name),
    At = byte_size(Bytes) - 20,
    <<Front:At/binary, Byte, Back/binary>> = Bytes,
    ok = file:write_file(Name, [Front, Byte bxor 16#FF, Back]),
    #{exit := 2, stderr := Error} = witness(Config, ["check", "--spec", spec(Config), Dir]),
    witness_command:contains(Error, [~"witness check: ", unicode:characters_to_binary(Name), ~"at byte"]).

what_a_recording_cannot_is_named(Config) ->
    With = record({witness_recorded_checked, run, []}, Config),
    [begin
         #{exit := 2, stdout := ~"", stderr := Error} = witness(Config, ["check", "--spec", spec(Config) | Arguments]),
         witness_command:contains(Error, [~"witness check: " | Words])
     end || {Arguments, Words} <- [
         {["--follow", With], [~"--follow: only for logs"]},
         {["--save", "position", With], [~"--save: only for logs"]},
         {[proplists:get_value(priv_dir, Config)], [~"header"]}]],
    ok.

%% --- while it is recorded --------------------------------------------------------

a_program_is_monitored_while_it_is_recorded(Config) ->
    Call = {witness_recorded_checked, run, []},
    Monitors = [{{'_', '_', '_'}, {witness_recorded_monitor, []}}],
    ok = witness_recorded_checked:run(),
    ok = witness_await:until(fun() -> whereis(witness_recorded_checked) =:= undefined end),
    {ok, Live} = witness:start(#{system => Call, monitors => Monitors}),
    {ok, #{outcome := ok}} = witness:await(Live, 60_000),
    Seen = seen(witness:verdicts(Live)),
    {ok, _} = witness:stop(Live),
    Self = self(),
    %% Live, a name has become the process that has it.
    Plain = fun(Found) ->
        lists:sort([{V, [case E of {send, _, Msg} -> {send, Msg}; _ -> E end || E <- Info]} || {V, Info} <- Found])
    end,
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    {ok, Run} = witness_recorded_run:start((options(Dir, Call, Config))#{contents => true},
                                        #{monitors => Monitors, on_verdict => fun(V) -> Self ! {verdict, V} end, log => false},
                                        fun(Result) -> Self ! {recorded, Result} end),
    {ok, #{outcome := ok, verdicts := #{yes := Yes}} = Summary} = witness:await(Run, 120_000),
    ct:pal("~p", [Summary]),
    {ok, _} = witness:stop(Run),
    receive {recorded, {ok, #{outcome := recorded, ended := {returned, normal}}}} -> ok end,
    Verdicts = [receive {verdict, V} -> V end || _ <- lists:seq(1, Yes)],
    ?assertEqual(Plain(Seen), Plain(seen(Verdicts))),
    %% The recording that was made meanwhile says the same.
    {Checked, #{outcome := ok}} = check(Dir, Monitors),
    ?assertEqual(Seen, seen(Checked)).

monitors_are_no_part_of_a_recording(Config) ->
    Call = {witness_recorded_checked, run, []},
    Recorded = fun(Dir) ->
        {ok, R} = witness_log_recording:open(Dir),
        {ok, Processes} = witness_log_recording:processes(R),
        %% Which modules are loaded, and when, differs.
        lists:sort([{F, length([E || E <- Entries, element(1, E) =/= result])}
                    || #{id := Id, signature := {_, F, _}} <- Processes,
                       {ok, Entries} <- [witness_recording_sample:entries(Id, R)]])
    end,
    Alone = file(?FUNCTION_NAME, ".rec", Config),
    {ok, _} = witness_record:record(options(Alone, Call, Config)),
    Beside = file(?FUNCTION_NAME, ".rec", Config),
    {ok, Run} = witness_recorded_run:start(options(Beside, Call, Config),
                                        #{monitors => [{{'_', '_', '_'}, {witness_recorded_monitor, []}}], log => false},
                                        fun(_) -> ok end),
    {ok, #{outcome := ok}} = witness:await(Run, 120_000),
    {ok, _} = witness:stop(Run),
    ?assertEqual(Recorded(Alone), Recorded(Beside)).

verdicts_and_recordings_share_an_exit_code(Config) ->
    Record = fun(Arguments, Call) ->
        Dir = file(?FUNCTION_NAME, ".rec", Config),
        witness(Config, ["record", "-o", Dir, "--pa", cli(Config) | Arguments] ++ [Call])
    end,
    #{exit := 1, stdout := Text} = Record(["--spec", spec(Config)], "cli_system:answers([1, 10])"),
    witness_command:contains(Text, [~"VIOLATED", ~"recorded"]),
    #{exit := 0, stdout := Json} = Record(["--json", "--spec", spec(Config)], "cli_system:answers([1, 2])"),
    Types = [map_get(~"type", json:decode(Line)) || Line <- binary:split(Json, ~"\n", [global, trim_all])],
    ?assertEqual([~"summary", ~"recording"], lists:nthtail(length(Types) - 2, Types)),
    #{exit := 0} = Record(["--monitor", "cli_system:server/0=cli_monitor"], "cli_system:answers([1])"),
    #{exit := 1} = Record(["--monitor", "cli_system:server/0=cli_monitor"], "cli_system:answers([1, 2])"),
    %% No monitor has judged anything.
    #{exit := 3} = Record(["--spec", spec(Config)], "cli_system:returns()"),
    #{exit := 3} = Record(["--spec", spec(Config)], "cli_system:crashes()"),
    ok.

an_application_is_monitored_while_it_is_recorded(Config) ->
    Programs = proplists:get_value(programs, Config),
    App = witness_recorded_application,
    Resource = {application, App, [{description, "for tests"}, {vsn, "1"}, {modules, [App]}, {registered, []},
                                   {applications, [kernel, stdlib]}, {mod, {App, []}}]},
    ok = file:write_file(filename:join(Programs, atom_to_list(App) ++ ".app"), io_lib:format("~p.~n", [Resource])),
    Self = self(),
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    {ok, Run} = witness_recorded_run:start((maps:remove(run, options(Dir, {a, b, []}, Config)))#{app => App, contents => true},
                                        #{monitors => [{{App, '_', '_'}, {witness_recorded_monitor, []}}], log => false},
                                        fun(Result) -> Self ! {recorded, Result} end),
    {ok, #{verdicts := Verdicts} = Summary} = witness:await(Run, 120_000),
    ct:pal("~p", [Summary]),
    {ok, _} = witness:stop(Run),
    receive {recorded, {ok, #{outcome := recorded}}} -> ok end,
    {Checked, _} = check(Dir, [{{App, '_', '_'}, {witness_recorded_monitor, []}}]),
    ?assertEqual(lists:sum(maps:values(Verdicts)), length(Checked)),
    ?assert(length(Checked) > 0).

a_wrong_specification_records_nothing(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    Malformed = filename:join(filename:dirname(spec(Config)), "malformed.hml"),
    Calls = file(?FUNCTION_NAME, ".hml", Config),
    Text = "a: with cli_system:f(_) over _ calls cli_system:returns() check [_ calls cli_system:returns()] ff.\n",
    ok = file:write_file(Calls, Text),
    [begin
         #{exit := 2, stdout := ~"", stderr := Error} =
             witness(Config, ["record", "--spec", File, "-o", Dir, "--pa", cli(Config), "cli_system:returns()"]),
         witness_command:contains(Error, Texts),
         ?assertNot(filelib:is_file(Dir))
     end || {File, Texts} <- [{Malformed, [~"malformed.hml:"]},
                              {Calls, [~":1:30: error: calls and returns of functions cannot be seen here"]}]].

%% --- the last part ---------------------------------------------------------------

the_last_part_is_kept_and_judged(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    {ok, #{outcome := recorded}} =
        witness_record:record((options(Dir, {witness_recorded_checked, long, [500]}, Config))#{last => {bytes, 1_000_000}}),
    {ok, R} = witness_log_recording:open(Dir),
    ?assertMatch(#{late := true}, witness_log_recording:header(R)),
    {ok, Processes} = witness_log_recording:processes(R),
    ct:pal("~b processes, of which were early: ~tp", [length(Processes), [Id || #{id := Id, early := true} <- Processes]]),
    %% The first two are alive to the end.
    ?assertMatch([#{id := 1, early := true}, #{id := 2, early := true} | _], Processes),
    %% A process that was born in time is judged from birth to end, without a gap.
    {Verdicts, #{outcome := ok, gaps := 0}} = check(Dir, [{{'_', '_', '_'}, {witness_recorded_monitor, []}}]),
    ?assert(length(Verdicts) > 10),
    [?assertMatch(#{verdict := yes, info := [{init, _}, {recv, {_, pid}}, {send, pid, {echoed, _}}, {recv, stop}, {exit, normal}]},
                  V)
     || #{signature := {_, echo, []}} = V <- Verdicts],
    #{exit := 0, stdout := Log} = witness(Config, ["log", Dir]),
    witness_command:contains(Log, [~"begins late"]).

it_is_kept_when_asked_for(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    {ok, Recording} =
        witness_record:start((options(Dir, {witness_recorded_checked, forever, []}, Config))#{last => {seconds, 3600}}),
    %% Until both processes have been born.
    Kept = kept(Recording) ++ [witness_record:keep(Recording)],
    ?assertEqual([{ok, filename:join(Dir, "kept-" ++ integer_to_list(N))} || N <- lists:seq(1, length(Kept))], Kept),
    [?assertMatch({ok, _}, witness_log_recording:open(Folder)) || {ok, Folder} <- Kept],
    ok = witness_record:stop(Recording),
    {ok, #{outcome := recorded, ended := stopped}} = witness_record:await(Recording, infinity),
    ?assertEqual({error, {witness_record, ended}}, witness_record:keep(Recording)),
    {ok, R} = witness_log_recording:open(Dir),
    ?assertMatch({ok, [_, _]}, witness_log_recording:processes(R)).

kept(Recording) ->
    {ok, Folder} = witness_record:keep(Recording),
    {ok, R} = witness_log_recording:open(Folder),
    {ok, Processes} = witness_log_recording:processes(R),
    [{ok, Folder} | case Processes of [_, _] -> []; _ -> receive after 100 -> kept(Recording) end end].

%% The program goes on until then.
it_is_kept_when_something_is_violated(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    Kept = filename:join(Dir, "kept-1"),
    #{exit := 1} = witness(Config, ["record", "--last", "1MB", "--monitor", "witness_recorded_checked:named/1=cli_monitor(1)",
                                    "-o", Dir, "--pa", proplists:get_value(programs, Config), "--pa", cli(Config),
                                    lists:flatten(io_lib:format("witness_recorded_checked:long(20, ~tp)", [Kept]))]),
    #{exit := 1, stdout := Text} =
        witness(Config, ["check", "--monitor", "witness_recorded_checked:named/1=cli_monitor(1)", "--pa", cli(Config), Kept]),
    witness_command:contains(Text, [~"VIOLATED"]).

it_is_kept_however_the_program_ends(Config) ->
    [begin
         Dir = file(?FUNCTION_NAME, ".rec", Config),
         {ok, Summary} = witness_record:record(last({witness_recorded_ends, halting, [How]}, Dir, Config)),
         ?assertMatch({How, #{outcome := recorded, vm := Status}, true}, {How, Summary, Ended(maps:get(ended, Summary))}),
         ?assertEqual({How, 200}, {How, taken(Dir)})
     end || {How, Status, Ended} <-
                [{crash, 0, fun({returned, Text}) -> string:prefix(Text, "{program_is_wrong,") =/= nomatch end},
                 {return, 0, fun(E) -> E =:= {returned, normal} end},
                 {halt, 5, fun(E) -> E =:= halted end}, {stop, 6, fun(E) -> E =:= halted end},
                 {outside, 7, fun(E) -> E =:= halted end}, {{signal, "USR1"}, 1, fun(E) -> E =:= halted end},
                 {{ignored, "HUP"}, 0, fun(E) -> E =:= {returned, normal} end},
                 {{ignored, "QUIT"}, 0, fun(E) -> E =:= {returned, normal} end},
                 {{ignored, "TERM"}, 0, fun(E) -> E =:= {returned, normal} end}]].

%% After the kill, no process could write what was in the VM's memory.
a_killed_vm_leaves_what_was_kept_before(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    Go = file(?FUNCTION_NAME, ".go", Config),
    {ok, Recording} = witness_record:start(last({witness_recorded_checked, killed, [Go]}, Dir, Config)),
    {ok, Folder} = witness_record:keep(Recording),
    ok = file:write_file(Go, ~""),
    ?assertMatch({ok, #{outcome := {ended, {vm, 137}}, vm := 137}}, witness_record:await(Recording, infinity)),
    {ok, _} = witness_log_recording:open(Folder),
    ?assertMatch({error, _}, witness_log_recording:open(Dir)).

last(Run, Dir, Config) -> (options(Dir, Run, Config))#{last => {bytes, 1_000_000}}.

%% The number of messages that were taken from recorded processes.
taken(Dir) ->
    {ok, R} = witness_log_recording:open(Dir),
    lists:sum([N || Id <- witness_log_recording:ids(R), {ok, Demand} <- [witness_log_recording:demand(Id, R)], _ := N <- Demand]).

a_wrong_size_is_named(Config) ->
    [begin
         #{exit := 2, stderr := Error} = witness(Config, ["record", "--last", Size, "--pa", cli(Config), "cli_system:returns()"]),
         witness_command:contains(Error, [~"--last SIZE|TIME is expected"])
     end || Size <- ["0MB", "64", "5weeks", "-1s", "10kB"]],
    ok.

%% --- helpers ---------------------------------------------------------------------

record(Call, Config) ->
    Dir = file(element(2, Call), ".rec", Config),
    {ok, #{outcome := recorded}} = witness_record:record((options(Dir, Call, Config))#{contents => true}),
    Dir.

%% While it is recorded, in the end, in a replay, and where it is stepped through. A replay has the verdicts of the recording,
%% though another process may be the one that decides.
properties_over_processes_are_decided_in_every_command(Config) ->
    Spec = file(?FUNCTION_NAME, ".hml", Config),
    ok = file:write_file(Spec, ["once: per Seat over _ : _ ! {seat, Seat, sold}\n",
                                "monitor [_ : _ ! {seat, Seat, sold}] [_ : _ ! {seat, Seat, sold}] ff.\n"]),
    Central = ["--instrument", "central", "--spec", Spec],
    Record = fun(Sellers) ->
        Dir = file(?FUNCTION_NAME, ".rec", Config),
        Programs = ["--contents", "-o", Dir, "--pa", proplists:get_value(programs, Config)],
        Call = "witness_recorded_seats:sell(" ++ integer_to_list(Sellers) ++ ")",
        #{exit := Code} = witness(Config, ["record" | Programs] ++ Central ++ [Call]),
        {Code, Dir}
    end,
    {1, Dir} = Record(2),
    #{exit := 1} = witness(Config, ["check" | Central] ++ [Dir]),
    #{exit := 1} = witness(Config, ["replay" | Central] ++ [Dir]),
    #{exit := 0, stdout := Checked} = witness(Config, ["replay", "--check", Dir]),
    witness_command:contains(Checked, [~"VIOLATION of once", ~"with the same verdicts"]),
    #{exit := 0, stdout := Stepped} = witness(Config, ["replay", "--step", "--command", "verdict" | Central] ++ [Dir]),
    witness_command:contains(Stepped, [~"violated: once", ~"{seat,7,sold}"]),
    {0, Good} = Record(1),
    #{exit := 0} = witness(Config, ["replay" | Central] ++ [Good]),
    #{exit := 2, stderr := Refused} = witness(Config, ["replay", "--spec", Spec, Good]),
    witness_command:contains(Refused, [~"only central monitoring sees", ~"--instrument central"]).

options(Dir, Run, Config) -> #{run => Run, dir => Dir, pa => [proplists:get_value(programs, Config)]}.

file(Case, Extension, Config) ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case) ++ "-" ++ Unique ++ Extension).

%% The modules of the tests of the command line, compiled by themselves.
cli(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "cli"),
    case filelib:is_dir(Out) of
        true -> Out;
        false ->
            ok = filelib:ensure_path(Out),
            [{ok, _} = compile:file(File, [{outdir, Out}, {i, filename:dirname(File)}, debug_info])
             || File <- filelib:wildcard(filename:join([root(Config), "test", "cli_data", "*.erl"]))],
            Out
    end.

spec(Config) -> filename:join([root(Config), "test", "cli_data", "small.hml"]).

root(Config) -> witness_checkout:root(proplists:get_value(data_dir, Config)).

witness(Config) -> filename:join([root(Config), "bin", "witness"]).

witness(Config, Arguments) -> witness_command:run(Config, witness(Config), Arguments).
