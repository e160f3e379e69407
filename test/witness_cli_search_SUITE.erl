-module(witness_cli_search_SUITE).
-moduledoc """
`witness search` as a user has it: what it says of a run that goes wrong, that the recording of this run replays, and what it says otherwise.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [a_violation_is_explained_as_by_a_replay, what_is_not_monitored_is_said, a_violation_has_a_report,
     a_crash_names_the_process_and_the_reason,
     a_function_that_fails_is_a_crash, a_failure_has_a_chart, a_step_that_never_happens_is_in_the_order,
     a_deadlock_names_each_process_and_where_it_waits, a_deadlock_may_be_no_failure, a_run_without_end_is_a_failure,
     what_else_is_a_failure, another_value_is_a_failure, tests_of_eunit_are_programs,
     all_failures_are_grouped_by_their_cause, what_was_found_is_kept_when_a_search_ends_early, groups_are_bounded,
     an_application_runs_by_the_schedule, an_application_has_its_environment, the_application_of_a_mix_project_is_started,
     what_an_application_does_wrong_is_said,
     nothing_is_found, a_planned_end_is_no_error, what_is_not_controlled_is_named, a_program_of_elixir_is_shown_in_its_notation,
     json_has_one_object_a_line, the_same_seed_finds_the_same_run, an_interrupt_ends_it,
     what_has_no_result_says_why,
     native_functions_that_block_have_a_bound, a_blocked_vm_ends_with_its_parent, what_is_wrong_is_named].

init_per_suite(Config) ->
    Root = witness_checkout:root(filename:dirname(code:which(?MODULE))),
    Out = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = filelib:ensure_path(Out),
    {ok, _} = compile:file(filename:join([Root, "test", "cli_data", "cli_searched"]), [{outdir, Out}, debug_info]),
    {ok, cli_unwoven, Unwoven} = compile:forms([{attribute, 1, module, cli_unwoven}, {attribute, 1, export, [{f, 0}]},
                                                {attribute, 1, on_load, {f, 0}},
                                                {function, 1, f, 0, [{clause, 1, [], [], [{atom, 1, ok}]}]}], [debug_info]),
    ok = file:write_file(filename:join(Out, "cli_unwoven.beam"), Unwoven),
    Awaits = filename:join(Out, "cli_awaits.erl"),
    ok = file:write_file(Awaits, ~"-module(cli_awaits).\n-export([f/0]).\n-record(r, {x = receive _ -> 0 after 0 -> 1 end}).\nf() -> #r{}.\n"),
    {ok, _} = compile:file(Awaits, [{outdir, Out}, debug_info]),
    Spec = filename:join(Out, "sold_once.hml"),
    ok = file:write_file(Spec, ~"sold_once: with cli_searched:hall(_) over _ ? {sell, _}\ncheck [_ ? {sell, _}] [_ ? {sell, _}] ff.\n"),
    {ok, Shop} = compile:file(filename:join([Root, "test", "searched", "witness_searched_shop"]), [{outdir, Out}, debug_info]),
    {module, Shop} = code:load_abs(filename:join(Out, atom_to_list(Shop))),
    [ok = file:write_file(filename:join(Out, atom_to_list(App) ++ ".app"), io_lib:format("~tp.~n", [Resource]))
     || Which <- [shop, street, closed], {application, App, _} = Resource <- [Shop:app(Which)]],
    [{programs, Out}, {spec, Spec}, {root, Root} | Config].

end_per_suite(_) -> ok.

%% --- found -----------------------------------------------------------------------

a_violation_is_explained_as_by_a_replay(Config) ->
    Dir = file(?FUNCTION_NAME, Config),
    #{exit := 1, stdout := Text} = search(Config, ["--spec", spec(Config), "-o", Dir, "cli_searched:seats()"]),
    ?assertMatch({match, _}, re:run(Text, "^FAILED after [0-9]+ schedules? \\([0-9.]+ m?s\\)\n\nVIOLATION of sold_once")),
    witness_command:contains(Text, [~"IDENTICAL", ~"\nschedule  ", ~"\norder     first ", ~"\n          then ", ~"  witness replay --spec ", ~"  witness replay --step --spec "]),
    %% The commands that it says do what it says.
    #{exit := 1, stdout := Replayed} = witness(Config, ["replay", "--spec", spec(Config), Dir]),
    ?assertEqual(violation(Text), violation(Replayed)),
    #{exit := 0, stdout := Why} =
        witness(Config, ["replay", "--step", "--spec", spec(Config), "--command", "verdict", "--command", "why", Dir]),
    witness_command:contains(Why, [~"takes of", ~"{sell,"]).

%% Without times.
violation(Text) ->
    {match, [Violation]} = re:run(Text, "VIOLATION.*?\n  *with|VIOLATION.*?\\^\\^", [dotall, {capture, first, binary}]),
    re:replace(Violation, "\\+[0-9.]+ ms|  +", " ", [global, {return, binary}]).

what_is_not_monitored_is_said(Config) ->
    Spec = file(?FUNCTION_NAME, ".hml", Config),
    Misspelt = "one: with cli_searched:hal(_) over _ ? {sell, _} monitor [_ ? {sell, _}] ff.\n",
    Warning = ~".hml:1 (one) monitored nothing: no process had a signature that matches cli_searched:hal(_); seen: ",
    ok = file:write_file(Spec, Misspelt),
    #{exit := 3, stdout := None} = search(Config, ["--spec", Spec, "--schedules", "20", "cli_searched:seats()"]),
    witness_command:contains(None, [Warning, ~"did you mean cli_searched:hall/1", ~"NO RESULT: nothing was monitored in 20 schedules.\n"]),
    ok = file:write_file(Spec, [Misspelt, "two: with cli_searched:hall(_) over _ ? never monitor [_ ? never] ff.\n"]),
    #{exit := 0, stdout := Some} = search(Config, ["--spec", Spec, "--schedules", "20", "cli_searched:seats()"]),
    witness_command:contains(Some, [Warning, ~"OK: nothing went wrong in 20 schedules"]),
    nomatch = binary:match(Some, ~"(two)"),
    #{exit := 3, stdout := Json} = search(Config, ["--json", "--spec", Spec, "--schedules", "20", "cli_searched:fine()"]),
    #{~"outcome" := ~"unmonitored", ~"warnings" := [#{~"code" := ~"nothing_monitored"}, #{~"code" := ~"nothing_monitored"}]} = json:decode(Json).

actions_that_never_match_are_said(Config) ->
    Spec = file(?FUNCTION_NAME, ".hml", Config),
    Search = fun(Text, Options) ->
        ok = file:write_file(Spec, Text),
        search(Config, Options ++ ["--spec", Spec, "--schedules", "20", "cli_searched:seats()"])
    end,
    Misspelt = "one: with cli_searched:hall(_) over _ ? _ monitor [_ ? {sel, _}] [_ ? {sell, _}] ff.\n",
    #{exit := 0, stdout := None} = Search(Misspelt, []),
    witness_command:contains(None, [~".hml:1 (one) says nothing here: none of its actions has ever matched\n",
                                    ~"\nunseen    ", ~".hml:1:52: _ ? {sel, _}\n", ~"OK: nothing went wrong in 20 schedules"]),
    #{exit := 0, stdout := Json} = Search(Misspelt, ["--json"]),
    #{~"warnings" := [#{~"code" := ~"vacuous"}],
      ~"coverage" := [#{~"name" := ~"one", ~"actions" := [#{~"text" := ~"_ ? {sel, _}", ~"taken" := false}, #{~"taken" := false}]}]} =
        json:decode(Json),
    %% What must never match has done what it is for.
    #{exit := 0, stdout := Never} = Search("two: with cli_searched:hall(_) over _ ? _ monitor [_ ? never] ff.\n", []),
    nomatch = binary:match(Never, [~"warning", ~"unseen"]),
    %% Each property has its own marks.
    #{exit := 0, stdout := Some} = Search([Misspelt, "two: with cli_searched:hall(_) over _ ? {sell, _} monitor [_ ? {sell, _}] [_ ? {sel, _}] ff.\n"], []),
    witness_command:contains(Some, [~"(one) says nothing", ~".hml:1:52: _ ? {sel, _}\n"]),
    nomatch = binary:match(Some, [~"(two) says nothing", ~".hml:2:5"]).

a_violation_has_a_report(Config) ->
    Folder = file(?FUNCTION_NAME, "_report", Config),
    #{exit := 1} = search(Config, ["--spec", spec(Config), "--report", Folder, "-o", file(?FUNCTION_NAME, Config), "cli_searched:seats()"]),
    {ok, Page} = file:read_file(filename:join(Folder, "report.html")),
    witness_command:contains(Page, [~"sold_once"]).

a_crash_names_the_process_and_the_reason(Config) ->
    Dir = file(?FUNCTION_NAME, Config),
    #{exit := 1, stdout := Text} = search(Config, ["-o", Dir, "cli_searched:dishes()"]),
    witness_command:contains(Text, [~"FAILED after ", ~"CRASH of <0.4.", ~", cli_searched:'-dishes/0-fun-2-'()",
                                    ~"no process handled it", ~"ends: {badmatch,cake}", ~"    in cli_searched:", ~"(cli_searched.erl:"]),
    #{exit := 0, stdout := Replayed} = witness(Config, ["replay", Dir]),
    witness_command:contains(Replayed, [~"IDENTICAL"]).

a_function_that_fails_is_a_crash(Config) ->
    #{exit := 1, stdout := Text} = search(Config, ["-o", file(?FUNCTION_NAME, Config), "lists:nth(2, [a])"]),
    witness_command:contains(Text, [~"CRASH of <0.1.", ~", lists:nth(2,[a])", ~"the function has failed", ~"function_clause"]).

%% From the top: what has failed, the order that it needs, what led to it with these steps, and how to replay it.
a_failure_has_a_chart(Config) ->
    #{exit := 1, stdout := Crash} = search(Config, ["-o", file(?FUNCTION_NAME, Config), "cli_searched:dishes()"]),
    Parts = [~"CRASH of <0.4.1>", ~"\norder  first <0.3.1> sends to <0.1.1>: cake\n       then <0.2.1> sends to <0.1.1>: soup\n",
             ~"    <0.1.1>      <0.2.1>      <0.3.1>      <0.4.1>\n", ~"|<------------------------*            |    first: cake\n",
             ~"*<------------------------|            |    cake\n", ~"*    starts cli_searched:'-dishes/0-fun-2-'(),",
             ~"|    then: soup\n", ~" => 12 ", ~"X    ends: {badmatch,cake}\n", ~"\nschedule  ", ~"  witness replay --step "],
    Places = [{Part, binary:match(Crash, Part)} || Part <- Parts],
    ?assertEqual([], [Part || {Part, nomatch} <- Places]),
    ?assertEqual(Places, lists:keysort(2, Places)),
    %% A message that is never taken is drawn from its sender.
    #{exit := 1, stdout := Deadlock} = search(Config, ["-o", file(?FUNCTION_NAME, "_deadlock", Config), "cli_searched:clerks()"]),
    witness_command:contains(Deadlock, [~"|----------->*            |    {other,<0.3.1>}\n", ~"\n => end: nothing more can happen\n"]),
    #{exit := 1, stdout := Json} =
        search(Config, ["--json", "-o", file(?FUNCTION_NAME, "_json", Config), "cli_searched:dishes()"]),
    #{~"explanation" := Steps} = json:decode(Json),
    ?assertEqual([{~"send", [#{~"pair" => 1, ~"place" => ~"first"}]}, {~"send", [#{~"pair" => 1, ~"place" => ~"second"}]}],
                 [{Kind, Pairs} || #{~"kind" := Kind, ~"pairs" := [_ | _] = Pairs} <- Steps]),
    ?assertMatch(#{~"kind" := ~"exit", ~"text" := <<"<0.4.1> ** {{badmatch,cake}", _/binary>>}, lists:last(Steps)).

%% The run ends before the other dish comes.
a_step_that_never_happens_is_in_the_order(Config) ->
    Expect = ["--expect", "{first, soup}"],
    #{exit := 1, stdout := Text} = search(Config, Expect ++ ["-o", file(?FUNCTION_NAME, Config), "cli_searched:first_dish()"]),
    witness_command:contains(Text, [<<"\norder  first <0.3.1> sends to <0.1.1>: cake\n"
                                    "       before <0.2.1> sends to <0.1.1>: soup, which never happens here\n">>,
                                    ~" => end: the function returns\n"]),
    #{exit := 1, stdout := Json} =
        search(Config, ["--json", "-o", file(?FUNCTION_NAME, "_json", Config)] ++ Expect ++ ["cli_searched:first_dish()"]),
    ?assertMatch(#{~"reversed" := [#{~"second" := ~"<0.2.1> sends to <0.1.1>: soup", ~"never" := [~"second"]}]}, json:decode(Json)).

a_deadlock_names_each_process_and_where_it_waits(Config) ->
    Dir = file(?FUNCTION_NAME, Config),
    #{exit := 1, stdout := Text} = search(Config, ["-o", Dir, "cli_searched:clerks()"]),
    witness_command:contains(Text, [~"FAILED after 1 schedule (", ~"DEADLOCK: the function has not returned",
                                    ~" cli_searched:clerks/0: waits for a message in cli_searched:wait_for/1 (cli_searched.erl:",
                                    ~" cli_searched:'-clerks/0-fun-0-'/0: waits for a message in cli_searched:wait_for/1"]),
    #{exit := 0, stdout := Replayed} = witness(Config, ["replay", Dir]),
    witness_command:contains(Replayed, [~"IDENTICAL", ~"3 processes still alive"]).

a_deadlock_may_be_no_failure(Config) ->
    Dir = file(?FUNCTION_NAME, Config),
    #{exit := 0, stdout := Text} = search(Config, ["--no-deadlock", "--schedules", "5", "-o", Dir, "cli_searched:clerks()"]),
    witness_command:contains(Text, [~"OK: nothing went wrong in 5 schedules"]),
    ?assertNot(filelib:is_file(Dir)).

a_run_without_end_is_a_failure(Config) ->
    #{exit := 1, stdout := Text} =
        search(Config, ["--steps", "50", "-o", file(?FUNCTION_NAME, Config), "cli_searched:endless()"]),
    witness_command:contains(Text, [~"FAILED after 1 schedule", ~"NOT ENDED after 50 steps", ~"(--steps)",
                                    ~"cli_searched:endless/0: runs in cli_searched:endless/0"]).

what_else_is_a_failure(Config) ->
    [begin
         #{exit := 1, stdout := Text} = search(Config, ["-o", file(?FUNCTION_NAME, "_" ++ Name, Config) | Arguments]),
         witness_command:contains(Text, Words)
     end || {Name, Arguments, Words} <- [
         {"1", ["cli_searched:quits(7)"], [~"FAILED after 1 schedule", ~"HALTED by <0.1.", ~"with status 7"]},
         {"2", ["--left", "cli_searched:leaves()"], [~"FAILED after 1 schedule", ~"LEFT: the function has returned",
                                                     ~"cli_searched:wait_for/1: waits for a message in cli_searched:wait_for/1"]}]],
    #{exit := 0} = search(Config, ["--crashes", "none", "--schedules", "9", "lists:nth(2, [a])"]).

%% --- all failures ----------------------------------------------------------------

%% Each group has the first of its runs, with its order and chart, as a recording. Violations are explained by a replay.
all_failures_are_grouped_by_their_cause(Config) ->
    Dir = file(?FUNCTION_NAME, Config),
    #{exit := 1, stdout := Text} = search(Config, ["--all", "--schedules", "200", "-o", Dir, "cli_searched:ways()"]),
    {match, [Failed]} = re:run(Text, "^FAILED in 3 ways: ([0-9]+) of 200 schedules \\(", [{capture, all_but_first, list}]),
    {match, Counts} = re:run(Text, "\n--- [1-3] of 3, in ([0-9]+) schedules?\n\n(?:CRASH of <0.1.1>|DEADLOCK: )",
                             [global, {capture, all_but_first, list}]),
    ?assertEqual(3, length(Counts)),
    ?assertEqual(list_to_integer(Failed), lists:sum([list_to_integer(Count) || [Count] <- Counts])),
    witness_command:contains(Text, [~"  ends: wrong_end\n", ~"  ends: wrong_begin\n", ~"DEADLOCK: the function has not returned",
                                    ~"\norder  first ", ~"\n => end: nothing more can happen\n", ~"\nsearched  200 schedules in "]),
    ?assertEqual(["1", "2", "3"], lists:sort(filelib:wildcard("*", Dir))),
    [begin
         One = filename:join(Dir, Name),
         witness_command:contains(Text, [iolist_to_binary(["\nrecorded  in ", One, "\n"]), iolist_to_binary(["\n  witness replay ", One, "\n"])]),
         #{exit := 0, stdout := Replayed} = witness(Config, ["replay", One]),
         witness_command:contains(Replayed, [~"IDENTICAL"])
     end || Name <- ["1", "2", "3"]],
    Json = fun(Name, Options) ->
        #{exit := 1, stdout := Lines} =
            search(Config, ["--json", "--all", "--schedules", "200", "-o", file(?FUNCTION_NAME, Name, Config)] ++ Options),
        [json:decode(Line) || Line <- binary:split(Lines, ~"\n", [global, trim])]
    end,
    [#{~"outcome" := ~"failed", ~"ended" := ~"schedules", ~"omitted" := 0, ~"number" := null, ~"failures" := Failures}] =
        Json("_json", ["cli_searched:ways()"]),
    ?assertEqual([~"crashed", ~"crashed", ~"deadlock"], lists:sort([Outcome || #{~"outcome" := Outcome} <- Failures])),
    ?assertEqual(list_to_integer(Failed), lists:sum([Count || #{~"count" := Count} <- Failures])),
    ?assertEqual([~"1", ~"2", ~"3"], [filename:basename(One) || #{~"dir" := One} <- Failures]),
    Violated = Json("_violated", ["--spec", spec(Config), "cli_searched:seats()"]),
    ?assertMatch(#{~"failures" := [#{~"outcome" := ~"violated", ~"name" := ~"sold_once"}]}, lists:last(Violated)),
    ?assertEqual([~"replay", ~"search", ~"summary", ~"verdict"],
                 lists:usort([Type || #{~"type" := Type} <- Violated]) -- [~"warning"]),
    #{exit := 0, stdout := Passed} = search(Config, ["--all", "--schedules", "9", "cli_searched:fine()"]),
    witness_command:contains(Passed, [~"OK: nothing went wrong in 9 schedules."]),
    #{exit := 2, stderr := Report} = search(Config, ["--all", "--spec", spec(Config), "--report", "page", "cli_searched:fine()"]),
    witness_command:contains(Report, [~"--all and --report exclude each other"]).

%% By its time, an interrupt, and a run without a result.
what_was_found_is_kept_when_a_search_ends_early(Config) ->
    Endless = ["--all", "--schedules", "1000000000"],
    #{exit := 1, stdout := Timed} =
        search(Config, Endless ++ ["--for", "0.001", "-o", file(?FUNCTION_NAME, "_time", Config), "cli_searched:marks_and_fails(\"/dev/null\")"]),
    witness_command:contains(Timed, [~"FAILED in 1 way: ", ~"  ends: marked\n", ~"\nsearched  "]),
    Began = file(?FUNCTION_NAME, Config),
    Dir = file(?FUNCTION_NAME, "_interrupt", Config),
    Errors = filename:join(proplists:get_value(priv_dir, Config), "all_interrupted"),
    Call = lists:flatten(io_lib:format("cli_searched:marks_and_fails(~0p)", [Began])),
    Port = witness_command:start(Config, Errors, bin(Config),
                                 ["search", "--pa", proplists:get_value(programs, Config), "-o", Dir] ++ Endless ++ [Call]),
    ok = wait_for_file(Began),
    ok = witness_command:signal(Port, "INT"),
    {1, Interrupted} = witness_command:collect(Port, ~""),
    witness_command:contains(Interrupted, [~"FAILED in 1 way: ", ~"  ends: marked\n", ~"INTERRUPTED: this is what had been found."]),
    #{exit := 0} = witness(Config, ["replay", filename:join(Dir, "1")]),
    #{exit := 1, stdout := Refused} =
        search(Config, ["--all", "-o", file(?FUNCTION_NAME, "_refused", Config), "cli_searched:refused_later()"]),
    witness_command:contains(Refused, [~"FAILED in 1 way: ", ~"  ends: soup\n", ~"NO RESULT of the other schedules:\n", ~"erlang:open_port/2"]).

groups_are_bounded(Config) ->
    Dir = file(?FUNCTION_NAME, Config),
    #{exit := 1, stdout := Text} = search(Config, ["--all", "--schedules", "300", "-o", Dir, "cli_searched:many_ways()"]),
    witness_command:contains(Text, [~"FAILED in 20 ways: 300 of 300 schedules", ~"--- 20 of 20, in "]),
    ?assertMatch({match, _}, re:run(Text, "\nleft out  [0-9]+ schedules that failed in other ways than these 20\n")),
    ?assertEqual(20, length(filelib:wildcard("*", Dir))).

%% --- applications ----------------------------------------------------------------

-define(SHOP, "witness_searched_shop").

an_application_runs_by_the_schedule(Config) ->
    Dir = file(?FUNCTION_NAME, Config),
    #{exit := 1, stdout := Text} = search(Config, ["--app", ?SHOP, "-o", Dir, ?SHOP ":buys(true)"]),
    witness_command:contains(Text, [~"CRASH of <0.1.1>, witness_searched_shop:buys(true)", ~"ends: {badmatch,0}", ~"\norder  first "]),
    #{exit := 0, stdout := Replayed} = witness(Config, ["replay", Dir]),
    witness_command:contains(Replayed, [~"IDENTICAL"]),
    #{exit := 0} = search(Config, ["--app", ?SHOP, "--schedules", "50", ?SHOP ":buys(false)"]),
    %% A specification sees the processes of the application.
    Spec = file(?FUNCTION_NAME, ".hml", Config),
    ok = file:write_file(Spec, ~"sold: with witness_searched_shop:init(till) over _ ? {'$gen_cast', sold} check [_ ? {'$gen_cast', sold}] ff.\n"),
    #{exit := 1, stdout := Violated} =
        search(Config, ["--app", ?SHOP, "--spec", Spec, "-o", file(?FUNCTION_NAME, "_spec", Config), ?SHOP ":buys(false)"]),
    witness_command:contains(Violated, [~"VIOLATION of sold", ~"IDENTICAL"]).

an_application_has_its_environment(Config) ->
    File = file(?FUNCTION_NAME, ".config", Config),
    ok = file:write_file(File, ~"[{witness_searched_shop, [{tells_stop, true}]}].\n"),
    Arguments = ["--app", "witness_searched_street", "--crashes", "any", "--schedules", "5",
                 "-o", file(?FUNCTION_NAME, Config), ?SHOP ":buys(false)"],
    #{exit := 0} = search(Config, Arguments),
    #{exit := 1, stdout := Text} = search(Config, ["--config", File | Arguments]),
    witness_command:contains(Text, [~"CRASH of ", ~"ends: was_stopped"]).

the_application_of_a_mix_project_is_started(Config) ->
    case os:find_executable("mix") of
        false -> {skip, "there is no mix on the path"};
        _ ->
            Project = filename:join(proplists:get_value(priv_dir, Config), "parrot"),
            [begin
                 ok = filelib:ensure_dir(filename:join(Project, File)),
                 ok = file:write_file(filename:join(Project, File), Text)
             end || {File, Text} <- parrot()],
            Dir = file(?FUNCTION_NAME, Config),
            #{exit := 1, stdout := Found} = witness(Config, ["search", "--mix", Project, "-o", Dir, "Parrot.ask(true)"]),
            witness_command:contains(Found, [~"CRASH of #PID<0.1.1>, Parrot.ask(true)", ~"(MatchError)", ~":nothing"]),
            ?assertEqual(nomatch, string:find(Found, "unfaithful")),
            #{exit := 0, stdout := Replayed} = witness(Config, ["replay", Dir]),
            witness_command:contains(Replayed, [~"IDENTICAL"]),
            #{exit := 0, stdout := Passed} =
                witness(Config, ["search", "--mix", Project, "--schedules", "50", "Parrot.ask(false)"]),
            ?assertEqual(nomatch, string:find(Passed, "unfaithful"))
    end.

%% The server may be asked before it is told what to say.
parrot() ->
    [{"mix.exs", ~"""
      defmodule Parrot.MixProject do
        use Mix.Project
        def project, do: [app: :parrot, version: "1.0.0", deps: []]
        def application, do: [mod: {Parrot.Application, []}, extra_applications: [:logger]]
      end
      """},
     {"config/config.exs", ~"""
      import Config
      config :parrot, compiled: config_env()
      """},
     {"config/runtime.exs", ~"""
      import Config
      config :parrot, started: "runtime"
      """},
     {"lib/parrot.ex", ~"""
      defmodule Parrot.Application do
        use Application
        require Logger

        def start(_, _) do
          Logger.error("a report")
          Supervisor.start_link([Parrot], strategy: :one_for_one)
        end
      end

      defmodule Parrot do
        use GenServer
        def start_link(arg), do: GenServer.start_link(__MODULE__, arg, name: __MODULE__)
        def init(_), do: {:ok, :nothing}
        def handle_call(:hear, _, said), do: {:reply, said, said}
        def handle_cast({:say, what}, _), do: {:noreply, what}

        def ask(fault) do
          {:dev, "runtime"} = {Application.get_env(:parrot, :compiled), Application.get_env(:parrot, :started)}
          IO.puts("asked")
          self = self()

          spawn(fn ->
            unless fault, do: GenServer.cast(__MODULE__, {:say, :hello})
            send(self, :said)
            if fault, do: GenServer.cast(__MODULE__, {:say, :hello})
          end)

          receive do: (:said -> :ok)
          :hello = GenServer.call(__MODULE__, :hear)
        end
      end
      """}].

what_an_application_does_wrong_is_said(Config) ->
    [begin
         Dir = file(?FUNCTION_NAME, "_" ++ Name, Config),
         #{exit := 1, stdout := Text} = search(Config, ["-o", Dir | Arguments]),
         witness_command:contains(Text, Words),
         #{exit := 0, stdout := Replayed} = witness(Config, ["replay", Dir]),
         witness_command:contains(Replayed, [~"IDENTICAL"])
     end || {Name, Arguments, Words} <- [
         {"1", ["--app", "witness_searched_closed", ?SHOP ":buys(false)"],
          [~"FAILED after 1 schedule", ~"CRASH: the application witness_searched_closed does not start: ", ~"on_sundays"]},
         {"2", [?SHOP ":ends(permanent)"],
          [~"HALTED: with this end of an application, the VM ends: {application_terminated,witness_searched_shop,killed}"]}]].

another_value_is_a_failure(Config) ->
    Dir = file(?FUNCTION_NAME, Config),
    #{exit := 1, stdout := Text} = search(Config, ["--expect", "{first, soup}", "-o", Dir, "cli_searched:first_dish()"]),
    ?assertMatch({match, _}, re:run(Text, "^FAILED after [2-9] schedules ")),
    witness_command:contains(Text, [~"UNEXPECTED result of <0.1.", ~", cli_searched:first_dish()\n  returned: {first,cake}\n  expected: {first,soup}\n"]),
    #{exit := 0, stdout := Replayed} = witness(Config, ["replay", Dir]),
    witness_command:contains(Replayed, [~"IDENTICAL"]),
    #{exit := 1, stdout := Json} =
        search(Config, ["--json", "--expect", "{first,soup}", "-o", file(?FUNCTION_NAME, "_json", Config), "cli_searched:first_dish()"]),
    ?assertMatch(#{~"outcome" := ~"unexpected", ~"reason" := ~"{returned,{first,cake}}", ~"process" := <<"<0.1.", _/binary>>},
                 json:decode(Json)),
    %% An end that is no crash is no value either.
    #{exit := 1, stdout := Ended} =
        search(Config, ["--expect", "ok", "-o", file(?FUNCTION_NAME, "_ended", Config), "cli_searched:ends(shutdown)"]),
    witness_command:contains(Ended, [~"UNEXPECTED result", ~"has ended, and not returned: shutdown\n  expected: ok"]),
    #{exit := 0} = search(Config, ["--schedules", "9", "cli_searched:ends(shutdown)"]),
    #{exit := 0} = search(Config, ["--schedules", "9", "--expect", "[b]", "lists:nthtail(1, [a, b])"]),
    %% The notation is that of the function.
    [?assertMatch({Expected, #{exit := Code}}, {Expected, search(Config, ["--schedules", "2", "--expect", Expected,
                                                   "-o", file(?FUNCTION_NAME, Expected, Config), "Map.new([a: 1])"])})
     || os:find_executable("elixirc") =/= false, {Expected, Code} <- [{"%{a: 1}", 0}, {"#{a => 1}", 0}, {"%{a: 2}", 1}]].

%% A test function is a program; EUnit itself runs what generators and fixtures return.
tests_of_eunit_are_programs(Config) ->
    [begin
         Dir = file(?FUNCTION_NAME, Name, Config),
         #{exit := 1, stdout := Text} = search(Config, Options ++ ["-o", Dir, Call]),
         witness_command:contains(Text, [~"FAILED after ", ~"\n  witness replay " | Words]),
         #{exit := 0, stdout := Replayed, stderr := Printed} = witness(Config, ["replay", "--mirror-output", Dir]),
         witness_command:contains(Replayed, [~"IDENTICAL"]),
         _ = Options =:= [] orelse witness_command:contains(Printed, [~"{expected,soup}"])
     end || {Name, Options, Call, Words} <- [
         {"1", [], "cli_searched:soup_test()", [~"CRASH of <0.1.", ~"assertEqual", ~"{expected,soup},{value,cake}"]},
         {"2", ["--weave", "eunit", "--expect", "ok"], "eunit:test({generator, cli_searched, all_test_})",
          [~"UNEXPECTED result", ~"returned: error"]},
         {"3", ["--weave", "eunit"], "eunit:test({generator, cli_searched, all_test_})", [~"returned: error", ~"expected: ok"]}]].

%% --- not found -------------------------------------------------------------------

nothing_is_found(Config) ->
    Dir = file(?FUNCTION_NAME, Config),
    [begin
         #{exit := 0, stdout := Text} = search(Config, ["-o", Dir, "--strategy", "pct,pos", "--schedules", "30", "--seed", "9", Call]),
         ?assertMatch({match, _}, re:run(Text, "^searched  30 schedules in [0-9.]+ m?s, [0-9]+ a second \\(pct, pos; seed 9\\)\n\n"
                                               "OK: nothing went wrong in 30 schedules. They are a sample of all schedules, and no proof.\n$"))
     end || Call <- ["cli_searched:fine()", "cli_searched:quits(0)", "cli_searched:leaves()"]],
    ?assertNot(filelib:is_file(Dir)).

a_planned_end_is_no_error(Config) ->
    #{exit := 0, stdout := Text} = search(Config, ["--for", "0.001", "--schedules", "1000000000", "cli_searched:kiosks(3)"]),
    {match, [Count]} = re:run(Text, "OK: nothing went wrong in ([0-9]+) schedules?\\.", [{capture, all_but_first, list}]),
    ?assert(list_to_integer(Count) < 1_000_000).

what_is_not_controlled_is_named(Config) ->
    #{exit := 0, stdout := Text} = search(Config, ["--schedules", "3", "cli_searched:measured()"]),
    witness_command:contains(Text, [~"unfaithful  erlang:memory/1: its result does not follow from the schedule\n"]).

a_program_of_elixir_is_shown_in_its_notation(Config) ->
    case os:find_executable("elixirc") of
        false -> {skip, "there is no Elixir"};
        Compiler ->
            Out = filename:join(proplists:get_value(priv_dir, Config), "elixir"),
            ok = filelib:ensure_path(Out),
            Source = filename:join(Out, "till.ex"),
            ok = file:write_file(Source, ~"""
                                          defmodule Till do
                                            def pay(amount) do
                                              spawn(fn -> charge(%{amount: amount}) end)
                                              receive do: (:paid -> :ok)
                                            end
                                            def wait(_), do: receive(do: (:paid -> :ok))
                                            defp charge(%{amount: :little}), do: :ok
                                          end
                                          """),
            #{exit := 0} = witness_command:run(Config, Compiler, ["-o", Out, Source]),
            Search = fun(Name, Call) -> witness(Config, ["search", "--pa", Out, "-o", file(Name, Config), Call]) end,
            #{exit := 1, stdout := Crash} = Search(elixir_crash, "Till.pay(:much)"),
            witness_command:contains(Crash, [~"anonymous fn() in Till.pay/1", ~"(FunctionClauseError)", ~"Till.charge(%{amount: :much}) (till.ex:7)"]),
            ?assertEqual(nomatch, binary:match(Crash, ~"'Elixir.")),
            #{exit := 1, stdout := Deadlock} = Search(elixir_deadlock, "Till.wait(1)"),
            witness_command:contains(Deadlock, [~"Till.wait/1: waits for a message in Till.wait/1 (till.ex:6)"])
    end.

%% --- options and output ----------------------------------------------------------

json_has_one_object_a_line(Config) ->
    Last = fun(Code, Options, Call) ->
        #{exit := Code, stdout := Text} = search(Config, ["--json" | Options] ++ [Call]),
        Objects = [json:decode(Line) || Line <- binary:split(Text, ~"\n", [global, trim])],
        {[Type || #{~"type" := Type} <- Objects], lists:last(Objects)}
    end,
    ViolatedIn = file(violated_json, Config),
    {Types, Violated} = Last(1, ["--spec", spec(Config), "-o", ViolatedIn], "cli_searched:seats()"),
    ?assertEqual([~"verdict", ~"summary", ~"replay", ~"search"], Types -- [~"warning" || ~"warning" <- Types]),
    Place = iolist_to_binary([spec(Config), ~":1"]),
    DirOfViolated = unicode:characters_to_binary(ViolatedIn),
    ?assertMatch(#{~"outcome" := ~"violated", ~"name" := ~"sold_once", ~"spec" := Place, ~"dir" := DirOfViolated, ~"seed" := 1,
                   ~"strategies" := [~"pct", ~"pos", ~"random"]}, Violated),
    ?assertMatch({[~"search"], #{~"outcome" := ~"crashed", ~"signature" := <<"cli_searched:'-dishes/0-fun-2-'()">>,
                                 ~"reason" := <<"{{badmatch,cake},", _/binary>>}},
                 Last(1, ["-o", file(crashed_json, Config)], "cli_searched:dishes()")),
    {[~"search"], #{~"outcome" := ~"deadlock", ~"schedules" := 1, ~"strategy" := null, ~"processes" := Waiting}} =
        Last(1, ["-o", file(deadlock_json, Config)], "cli_searched:clerks()"),
    ?assertMatch([#{~"signature" := ~"cli_searched:clerks/0", ~"state" := ~"waits", ~"place" := ~"cli_searched:wait_for/1"}, _, _], Waiting),
    ?assertMatch({[~"search"], #{~"outcome" := ~"passed", ~"schedules" := 3, ~"dir" := null, ~"processes" := null,
                                 ~"unfaithful" := [#{~"kind" := ~"differs", ~"what" := ~"{erlang,memory,1}"}]}},
                 Last(0, ["--schedules", "3"], "cli_searched:measured()")).

the_same_seed_finds_the_same_run(Config) ->
    [First, Second, Other] =
        [begin
             #{exit := 1, stdout := Text} = search(Config, ["--json", "--strategy", "random", "--seed", Seed,
                                                            "-o", file(?FUNCTION_NAME, Name, Config), "cli_searched:dishes()"]),
             maps:with([~"schedules", ~"length", ~"switches"], json:decode(Text))
         end || {Seed, Name} <- [{"5", "_1"}, {"5", "_2"}, {"6", "_3"}]],
    ?assertEqual(First, Second),
    ?assertNotEqual(First, Other).

an_interrupt_ends_it(Config) ->
    Began = file(?FUNCTION_NAME, Config),
    Errors = filename:join(proplists:get_value(priv_dir, Config), "interrupted"),
    Call = lists:flatten(io_lib:format("cli_searched:marks(~0p)", [Began])),
    Port = witness_command:start(Config, Errors, bin(Config),
                                 ["search", "--pa", proplists:get_value(programs, Config), "--schedules", "1000000000", Call]),
    ok = wait_for_file(Began),
    Vms = witness_command:vms(Port),
    Searching = lists:append([string:lexemes(os:cmd("pgrep -P " ++ Pid ++ " beam; pgrep -P $(pgrep -P " ++ Pid ++ " erl_child) beam"), "\n")
                              || Pid <- Vms]),
    ok = witness_command:signal(Port, "INT"),
    {3, Text} = witness_command:collect(Port, ~""),
    witness_command:contains(Text, [~"INTERRUPTED: nothing had gone wrong in "]),
    ?assertNotEqual([], Searching),
    witness_command:gone(Vms ++ [Pid || Pid <- Searching, lists:all(fun(C) -> C >= $0 andalso C =< $9 end, Pid)]).

wait_for_file(File) ->
    case filelib:is_file(File) of
        true -> ok;
        false -> receive after 20 -> wait_for_file(File) end
    end.

what_has_no_result_says_why(Config) ->
    [begin
         #{exit := Code, stdout := Text, stderr := Error} = search(Config, Arguments),
         ?assertEqual({Arguments, Exit}, {Arguments, Code}),
         witness_command:contains(iolist_to_binary([Text, Error]), Words),
         ?assertEqual(nomatch, string:find(Text, "recorded"))
     end || {Exit, Arguments, Words} <- [
         {2, ["os:cmd(\"echo\")"], [~"NO RESULT after 1 schedule", ~"calls erlang:open_port/2, whose effects cannot be controlled"]},
         {3, ["--memory", "200", "cli_searched:collects()"],
          [~"NO RESULT after 1 schedule", ~"needs more memory than --memory allows, while this process runs: <0.1.1>, cli_searched:collects()",
           ~"    in cli_searched:collects/1 (cli_searched.erl:"]},
         {3, ["--memory", "200", "binary:copy(<<1>>, 68719476736)"],
          [~"witness search: the VM of the search has ended with status ", ~"--memory"]},
         {2, ["cli_unwoven:f()"],
          [~"witness search: cli_unwoven cannot be controlled: cli_unwoven cannot be woven: it has a function that runs when it is loaded"]},
         {2, ["cli_awaits:f()"],
          [~"witness search: cli_awaits cannot be controlled: cli_awaits, line 3: a receive in the default value of a record's field"]}]].

%% With one scheduler the VM cannot say anything any more. Of several, each has its own timers, so the function may block those of
%% the search. Mostly it does not, so several searches run.
native_functions_that_block_have_a_bound(Config) ->
    blocking(fun(Folder) ->
        Searches = [{Words, witness_command:started(Config, "/usr/bin/env",
                                                    ["ERL_FLAGS=" ++ Flags | blocking(Function, "/dev/null", Folder, Config)])}
                    || {Flags, Times} <- [{"+S 1", 1}, {"+S 2", 5}],
                       {Function, Words} <- lists:append(lists:duplicate(Times, [
                           {"clean", [~"busy for too long", ~"cli_native:clean/0, by cli_blocking:call/2 (cli_blocking.erl:5)"]},
                           {"dirty", [~"NO RESULT after 1 schedule", ~"has run for too long", ~"cli_native:dirty/0"]}]))],
        [begin
             #{exit := 3, stdout := Out, stderr := Error} = witness_command:ended(Started),
             witness_command:contains(<<Out/binary, Error/binary>>, Words)
         end || {Words, Started} <- Searches],
        %% What looks after the VM ends a second later.
        _ = [ok = witness_command:gone(Left) || Left <- [string:lexemes(os:cmd("pgrep -f " ++ Folder), "\n")], Left =/= []]
    end, Config).

a_blocked_vm_ends_with_its_parent(Config) ->
    blocking(fun(Folder) ->
        Began = file(?FUNCTION_NAME, Config),
        Errors = filename:join(proplists:get_value(priv_dir, Config), "killed"),
        [Program | Arguments] = blocking("clean", Began, Folder, Config),
        Port = witness_command:start(Config, Errors, Program, Arguments),
        ok = wait_for_file(Began),
        Vms = witness_command:vms(Port),
        Blocked = string:lexemes(os:cmd("pgrep -f " ++ Folder), "\n") -- Vms,
        ?assertNotEqual([], Blocked),
        "" = os:cmd(lists:join($\s, ["kill -KILL" | Vms])),
        witness_command:gone(Blocked)
    end, Config).

blocking(Function, Began, Folder, Config) ->
    [bin(Config), "search", "--pa", Folder, lists:flatten(io_lib:format("cli_blocking:call(~s, ~0p)", [Function, Began]))].

blocking(Test, Config) ->
    case os:find_executable("cc") of
        false -> {skip, "there is no C compiler"};
        Compiler ->
            Folder = filename:join(proplists:get_value(priv_dir, Config), "blocking"),
            Library = filename:join(Folder, "cli_native"),
            ok = filelib:ensure_path(Folder),
            [ok = file:write_file(filename:join(Folder, File), Text)
             || {File, Text} <- [{"cli_native.c", native()}, {"cli_native.erl", native(Library)}, {"cli_blocking.erl", caller()}]],
            Include = filename:join([code:root_dir(), "erts-" ++ erlang:system_info(version), "include"]),
            "" = os:cmd(lists:join($\s, [Compiler, "-shared -fPIC", "-I" ++ Include, "-o", Library ++ ".so", Library ++ ".c 2>&1"])),
            [{ok, _} = compile:file(filename:join(Folder, Module), [{outdir, Folder}, debug_info, {source, Module ++ ".erl"}])
             || Module <- ["cli_native", "cli_blocking"]],
            Test(Folder)
    end.

native() -> ~"""
    #include <erl_nif.h>
    #include <unistd.h>
    static ERL_NIF_TERM block(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
    { for (;;) pause(); return enif_make_int(env, argc + (int)argv[0]); }
    static ErlNifFunc functions[] = {{"clean", 0, block, 0}, {"dirty", 0, block, ERL_NIF_DIRTY_JOB_IO_BOUND}};
    ERL_NIF_INIT(cli_native, functions, NULL, NULL, NULL, NULL)

    """.

native(Library) ->
    io_lib:format("-module(cli_native).\n-export([clean/0, dirty/0]).\n-nifs([clean/0, dirty/0]).\n-on_load(load/0).\n"
                  "load() -> erlang:load_nif(~0p, 0).\nclean() -> erlang:nif_error(0).\ndirty() -> erlang:nif_error(0).\n", [Library]).

caller() ->
    "-module(cli_blocking).\n-export([call/2]).\ncall(Function, Began) ->\n    ok = file:write_file(Began, <<>>),\n"
    "    {blocked, cli_native:Function()}.\n".

what_is_wrong_is_named(Config) ->
    Exists = proplists:get_value(priv_dir, Config),
    Bad = filename:join(Exists, "bad.hml"),
    ok = file:write_file(Bad, ~"bad: with cli_searched:hall(_) check [_ ? ] ff.\n"),
    [begin
         #{exit := Code, stdout := Out, stderr := Error} = search(Config, Arguments),
         ?assertEqual({Arguments, 2, ~""}, {Arguments, Code, Out}),
         witness_command:contains(Error, Words)
     end || {Arguments, Words} <- [
         {[], [~"witness search: 'mod:fun(args)' is expected, and not there"]},
         {["cli_searched:fnie()"], [~"witness search: ", ~"fine/0"]},
         {["nobody_has_this:f()"], [~"witness search: ", ~"nobody_has_this"]},
         {["cli_searched:fine()", "m:g()"], [~"'m:g()' is one argument too many"]},
         {["--pa", "nowhere", "cli_searched:fine()"], [~"--pa: there is no folder nowhere"]},
         {["-o", Exists, "cli_searched:fine()"], [~"witness search: ", unicode:characters_to_binary(Exists), ~"it exists"]},
         {["--schedules", "0", "cli_searched:fine()"], [~"--schedules NUMBER", ~"is expected, not '0'"]},
         {["--strategy", "luck", "cli_searched:fine()"], [~"--strategy LIST", ~"not 'luck': the names are pct, pos, random and surw"]},
         {["--seed", "-1", "cli_searched:fine()"], [~"--seed NUMBER"]},
         {["--spec", "nowhere.hml", "cli_searched:fine()"], [~"nowhere.hml"]},
         {["--spec", Bad, "cli_searched:fine()"], [~"bad.hml:1:"]},
         {["--report", "r", "cli_searched:fine()"], [~"--report: name a specification with --spec FILE.hml\n"]},
         {["--weave", "nobody_has_this", "cli_searched:fine()"], [~"nobody_has_this"]},
         {["--mix", "nowhere", "cli_searched:fine()"], [~"nowhere"]},
         {["--app", "nobody_has_this", "cli_searched:fine()"], [~"there is no application nobody_has_this"]},
         {["--app", "", "cli_searched:fine()"], [~"--app: the name of an application is expected"]},
         {["--config", "nowhere.config", "cli_searched:fine()"], [~"--config: nowhere.config: "]},
         {["cli_searched:all_test_()"], [~"cli_searched:all_test_() returns tests of EUnit, and runs none of them",
                                         ~"eunit:test({generator,cli_searched,all_test_}), with --weave eunit --expect ok"]},
         {["--expect", "[a", "cli_searched:fine()"], [~"--expect TERM: syntax error", ~"\n  [a\n"]},
         {["--expect", "1, 2", "cli_searched:fine()"], [~"--expect TERM: one term is expected here"]},
         {["--expect", "node()", "cli_searched:fine()"], [~"--expect TERM: only terms are allowed here", ~"\n  node()\n"]},
         {["--schedule", "3", "cli_searched:fine()"], [~"did you mean --schedules?"]}]],
    ok.

%% --- helpers ---------------------------------------------------------------------

search(Config, Arguments) -> witness(Config, ["search", "--pa", proplists:get_value(programs, Config) | Arguments]).

witness(Config, Arguments) -> witness_command:run(Config, bin(Config), Arguments).

bin(Config) -> filename:join([proplists:get_value(root, Config), "bin", "witness"]).

spec(Config) -> proplists:get_value(spec, Config).

file(Name, Config) -> file(Name, ".rec", Config).

file(Name, Ending, Config) -> filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Name) ++ Ending).
