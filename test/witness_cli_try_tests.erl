%% `witness compile --try` and `--watch`: what specifications say of a log.
-module(witness_cli_try_tests).

-include_lib("eunit/include/eunit.hrl").

-define(BANK, ~"""
never_below_zero: with bank:open(_)
check [_ <- _, bank:open(Money)] [_ ? {withdraw, A}] [_ ? {withdraw, B} when A + B > Money] ff.

""").

%% --- verdicts ----------------------------------------------------------------------

%% For systems with all kinds of events and verdicts, and for properties over all processes.
verdicts_are_those_of_check_test_() ->
    {setup, fun() ->
        #{level := Level} = logger:get_primary_config(),
        ok = logger:set_primary_config(level, none),
        {ok, _} = application:ensure_all_started(witness),
        ok = code:ensure_modules_loaded(witness_sys:modules()),
        Level
    end, fun(Level) -> logger:set_primary_config(level, Level) end,
     [{atom_to_list(Name), {timeout, 120, fun() -> agrees(System) end}}
      || #{name := Name} = System <- witness_sys:all(), lists:member(Name, chosen())]
     ++ [{atom_to_list(Name), {timeout, 120, fun() -> agrees(System) end}} || #{name := Name} = System <- witness_sys:together()]}.

chosen() ->
    [calc_clients_wrong, calc_queue_wrong, token_leaks, ring_faulty, patterns, names, mailbox, exits_clean, links,
     nested_wrong, blips_odd].

agrees(#{specs := Specs, system := System}) ->
    witness_folder:with(fun(Folder) ->
        Log = filename:join(Folder, "a.log"),
        Files = [witness_sys:spec_file(Spec) || Spec <- Specs],
        {ok, Run} = witness:start(#{log => false, system => System, scope => tree, log_file => Log, specs => Files,
                                    instrument => central}),
        {ok, _} = witness:await(Run, 60_000),
        {ok, _} = witness:stop(Run),
        %% Large messages are part of the set.
        Reading = ["--json", "--max-line", "16777216"],
        {_, Checked} = json(["check", "--instrument", "central" | Reading]
                            ++ lists:append([["--spec", File] || File <- Files]) ++ [Log]),
        {_, Tried} = json(["compile" | Reading] ++ ["--try", Log | Files]),
        #{~"properties" := Expected, ~"coverage" := Coverage} = Summary = lists:last(Checked),
        #{~"type" := ~"trial", ~"properties" := Found} = Trial = lists:last(Tried),
        Same = [~"spec", ~"name", ~"monitored", ~"verdicts", ~"vacuous"],
        ?assertEqual([maps:with(Same, P) || P <- Expected], [maps:with(Same, P) || #{~"monitored" := M} = P <- Found, M > 0]),
        ?assertEqual(maps:with([~"processes", ~"events"], Summary), maps:with([~"processes", ~"events"], Trial)),
        %% What was taken was counted, and nothing else.
        ?assertEqual(lists:usort([{Spec, Line, Column} || #{~"spec" := Spec, ~"actions" := Actions} <- Coverage,
                                  #{~"taken" := true, ~"line" := Line, ~"column" := Column} <- Actions]),
                     lists:usort([{Spec, Line, Column} || #{~"spec" := Spec, ~"actions" := Actions} <- Found,
                                  #{~"matched" := Count, ~"line" := Line, ~"column" := Column} <- Actions, Count > 0])),
        %% The first violations are those of check.
        Violations = [{Spec, maps:get(~"log", V)} || #{~"type" := ~"verdict", ~"verdict" := ~"no", ~"spec" := Spec} = V <- Checked],
        [?assertEqual({Spec, lists:sublist([Place || {Of, Place} <- Violations, Of =:= Spec], 5)},
                      {Spec, [Place || #{~"log" := Place} <- Shown]})
         || #{~"spec" := Spec, ~"violations" := Shown} <- Found]
    end).

%% --- what is shown ------------------------------------------------------------------

a_property_is_shown_with_its_actions_and_violations_test() ->
    ?assertEqual({0, ~"""
        a.log: 4 events of 1 process
        never_below_zero (a.hml:1): 1 process: 1 violated
          line 2, column 8:   matched 1 of 4 events  _ <- _, bank:open(Money)
          line 2, column 35:  matched 1 of 4 events  _ ? {withdraw, A}
          line 2, column 55:  matched 1 of 4 events  _ ? {withdraw, B} when A + B > Money
          violated at a.log:3, by bank, line 2, column 55: bank ? {withdraw,50}

        """}, tried(?BANK, log(["{withdraw,70}", "{withdraw,50}", "bye"]), [])).

what_never_matches_stands_out_with_what_comes_near_test() ->
    ?assertEqual({0, ~"""
        a.log: 4 events of 1 process
        never_below_zero (a.hml:1): 1 process: 1 satisfied (1 vacuously)
          line 2, column 8:   matched 1 of 4 events     _ <- _, bank:open(Money)
          line 2, column 35:  never matched (4 events)  _ ? {withdraw, A}
            another shape, the same words: a.log:2: bank ? {self,{withdraw,70}}
            another shape, the same words: a.log:4: bank ? {withdraw,50,now}
          line 2, column 55:  matched 0 of 4 events     _ ? {withdraw, B} when A + B > Money
            another shape, the same words: a.log:2: bank ? {self,{withdraw,70}}
            another shape, the same words: a.log:4: bank ? {withdraw,50,now}

        """}, tried(?BANK, log(["{self,{withdraw,70}}", "bye", "{withdraw,50,now}"]), [])).

an_action_with_other_values_says_so_test() ->
    {0, Text} = tried(~"with bank:open(_) check [_ <- _, _] [_ ? {withdraw, 10}] [_ ? bye] ff.", log(["{withdraw,70}", "bye"]), []),
    shows(Text, [~"never matched (3 events)  _ ? {withdraw, 10}\n    1 event has this shape, but other values,"]).

%% Each event counts once, however many slices read it, and at whatever places of the formula the action stands.
an_event_counts_once_for_an_action_test() ->
    {0, Lines} = json_of(~"per K over _ ? {put, K}, _ ? stop check max X.([_ ? {put, _}] X and [_ ? stop] ff).",
                         log(["{put,1}", "{put,2}", "{put,3}", "stop"]), []),
    ?assertMatch(#{~"properties" := [#{~"slices" := 3, ~"monitored" := 1, ~"events" := 5, ~"verdicts" := #{~"no" := 3},
                                       ~"actions" := [#{~"matched" := 3}, #{~"matched" := 1}]}]}, lists:last(Lines)).

%% Their monitors are in several processes.
what_comes_near_first_is_first_in_the_log_test() ->
    Log = [io_lib:format("init(\"~b\",_,{bank,open,[100]})~nrecv(\"~b\",{withdraw,~b,now})~n", [N, N, N])
           || N <- lists:seq(1, 200)],
    {0, Lines} = json_of(?BANK, Log, []),
    ?assertMatch(#{~"properties" := [#{~"monitored" := 200, ~"events" := 400,
                                       ~"actions" := [#{~"matched" := 200},
                                                      #{~"near" := [#{~"log" := ~"a.log:2", ~"text" := ~"1 ? {withdraw,1,now}"},
                                                                    #{~"log" := ~"a.log:4"}]}, _]}]}, lists:last(Lines)).

%% To take the marks of each event loses none of them, and each event is told with its line.
a_function_that_gets_each_event_changes_nothing_test() ->
    in_folder(?BANK, log(["{withdraw,70}", "bye", "{withdraw,50}"]), fun() ->
        Self = self(),
        Summary = fun(More) ->
            {ok, Run} = witness:start(More#{log => false, system => {log, {file, "a.log"}}, specs => ["a.hml"]}),
            {ok, _} = witness:await(Run, 60_000),
            {ok, Found} = witness:stop(Run),
            maps:without([elapsed_ms], Found)
        end,
        ?assertEqual(Summary(#{}), Summary(#{on_read => fun(Read) -> Self ! {read, Read} end})),
        {ok, [{_, [#{id := Birth}, #{id := First}, _]}]} = witness_spec:actions("a.hml", #{}),
        [Born, Withdrawn] = [1 bsl Id || Id <- [Birth, First]],
        Reads = [receive {read, Read} -> Read end || _ <- lists:seq(1, 4)],
        ?assertMatch([#{place := {1, 1}, taken := Born, spec := ~"a.hml:1", name := ~"never_below_zero",
                        event := {init, _, _, _, _}},
                      #{place := {2, 2}, taken := Withdrawn, event := {recv, _, _, {withdraw, 70}, _}},
                      #{place := {3, 3}, taken := 0}, #{place := {4, 4}, taken := 0}], Reads),
        ?assertEqual(none, receive {read, More} -> More after 0 -> none end)
    end).

a_property_without_a_process_says_so_test() ->
    {3, Text} = tried(~"lost: with bink:open(_) check [_ <- _, _] [_ ? stop] ff.", log(["stop"]), []),
    shows(Text, [~"a.log: 2 events of 1 process; the result cannot be trusted or says nothing\nlost (a.hml:1): no process\nwarning: ",
                 ~"did you mean bank:open/1?"]).

the_more_important_lines_stay_on_a_screen_test() ->
    Spec = [[~"p", integer_to_list(N), ~": with bank:open(_) check [_ <- _, _] [_ ? ", case N of 9 -> ~"never"; _ -> ~"{withdraw, _}" end,
             ~"] [_ ? bye] ff.\n"] || N <- lists:seq(1, 9)],
    {0, Text} = tried(Spec, log(["{withdraw,70}", "bye", "bye"]), []),
    Lines = binary:split(Text, ~"\n", [global, trim]),
    ?assertEqual(20, length(Lines)),
    shows(Text, [~"p1 (", ~"p9 (", ~"never matched (4 events)", ~"violated at a.log:3", ~"other lines; --json has all\n"]),
    %% All lines are more.
    {0, Json} = json_of(Spec, log(["{withdraw,70}", "bye", "bye"]), []),
    ?assertMatch(#{~"properties" := [_, _, _, _, _, _, _, _, #{~"actions" := [_, _, _]}]}, lists:last(Json)).

json_has_the_same_as_objects_test() ->
    {0, Lines} = json_of(?BANK, log(["{self,{withdraw,70}}", "bye"]), []),
    ?assertMatch([#{~"type" := ~"specification"},
                  #{~"type" := ~"trial", ~"log" := ~"a.log", ~"outcome" := ~"ok", ~"interrupted" := false, ~"refused" := null,
                    ~"events" := 3, ~"processes" := 1, ~"warnings" := [#{~"code" := ~"vacuous"}], ~"elapsed_ms" := _,
                    ~"properties" := [#{~"spec" := ~"a.hml:1", ~"name" := ~"never_below_zero", ~"monitored" := 1, ~"slices" := null,
                                        ~"events" := 3, ~"verdicts" := #{~"yes" := 1}, ~"vacuous" := 1, ~"violations" := [],
                                        ~"actions" := [#{~"line" := 2, ~"column" := 8, ~"matched" := 1, ~"near" := [], ~"same_shape" := 0,
                                                         ~"decides" := null},
                                                       #{~"matched" := 0, ~"text" := ~"_ ? {withdraw, A}",
                                                         ~"near" := [#{~"log" := ~"a.log:2", ~"text" := ~"bank ? {self,{withdraw,70}}"}]},
                                                       #{~"decides" := ~"no"}]}]}], Lines),
    {0, Violated} = json_of(?BANK, log(["{withdraw,70}", "{withdraw,50}"]), []),
    ?assertMatch(#{~"properties" := [#{~"violations" := [#{~"log" := ~"a.log:3", ~"process" := ~"bank", ~"line" := 2, ~"column" := 55,
                                                           ~"kind" := ~"recv", ~"text" := ~"bank ? {withdraw,50}", ~"deadline" := false}]}]},
                 lists:last(Violated)).

a_deadline_is_told_as_one_test() ->
    Late = ~"with bank:open(_) always {_ ? {withdraw, _}} leads to {_ ? done} within 1 s.",
    Log = log([]) ++ [recv(~"{withdraw,70}", 0), ~"clock(9000000000)\n"],
    {0, Text} = tried(Late, Log, []),
    shows(Text, [~"line 1, column 56: it did not come in time"]),
    {0, Lines} = json_of(Late, Log, []),
    ?assertMatch(#{~"properties" := [#{~"violations" := [#{~"deadline" := true, ~"text" := null}]}]}, lists:last(Lines)).

%% --- logs that are wrong, and options -------------------------------------------------

a_damaged_log_is_an_error_with_its_line_test() ->
    Damaged = log(["{withdraw,70}", "{withdraw,", "{withdraw,50}"]),
    {2, Text} = tried(?BANK, Damaged, []),
    shows(Text, [~"a.log: 2 events of 1 process; it is wrong, and was not read on\n", ~"witness compile: a.log:3:"]),
    {0, Skipped} = tried(?BANK, Damaged, ["--skip-malformed"]),
    shows(Skipped, [~"1 violated", ~"warning: ", ~"a.log:3:"]),
    {3, _} = tried(?BANK, log(["{withdraw,70}", "{withdraw,"]), ["--skip-malformed"]),
    {2, Missing} = in_folder(?BANK, log([]), fun() -> printed(["compile", "--try", "no.log", "a.hml"]) end),
    shows(Missing, [~"witness compile: no.log: no such file or directory"]).

errors_of_the_specification_come_first_test() ->
    {2, Text} = tried(~"with bank:open(_) check [_ <- _, _] [_ ? (] ff.", log([]), []),
    shows(Text, [~"a.hml:1:"]),
    ?assertEqual(nomatch, string:find(Text, "a.log")),
    %% This one depends on how the log is read.
    Timed = ~"with bank:open(_) check [_ <- _, _] [_ ? bye at T] [_ ? bye at U when U > T] ff.",
    {2, Clocks} = tried(Timed, log([]), ["--clocks", "1"]),
    shows(Clocks, [~"a.hml:1:"]).

options_of_logs_are_those_of_check_test() ->
    Log = [~"@1000000000 init(\"bank\",_,{bank,open,[100]})\n"],
    Backward = [Log, recv("bye", 9_000_000_000), recv("bye", 2_000_000_000)],
    Spec = ~"with bank:open(_) check [_ <- _, _] within 2 s <_ ? bye> tt.",
    {0, _} = tried(Spec, Backward, []),
    {2, Skew} = tried(Spec, Backward, ["--skew", "1"]),
    shows(Skew, [~"a.log:3: ", ~"skew"]),
    {0, Sorted} = tried(Spec, Backward, ["--sort", "10"]),
    shows(Sorted, [~"1 satisfied"]),
    {2, Long} = tried(Spec, [Log, recv(lists:duplicate(100, $x), 2)], ["--max-line", "64"]),
    shows(Long, [~"--max-line"]),
    {2, Root} = tried(Spec, Log, ["--root", ""]),
    shows(Root, [~"witness compile: --root: "]).

%% With clocks that differ, monitors have other states.
actions_are_counted_whatever_the_clocks_test() ->
    Log = ["@1000000000 init(\"bank\",_,{bank,open,[100]})\n", recv("{withdraw,70}", 2_000_000_000), recv("bye", 3_000_000_000)],
    Spec = ~"with bank:open(_) check [_ <- _, _] (<_ ? never> tt or within 9 s <_ ? {withdraw, _}> within 9 s <_ ? bye> tt).",
    [begin
         {0, Lines} = json_of(Spec, Log, Options),
         ?assertMatch(#{~"properties" := [#{~"actions" := [#{~"matched" := 1}, #{~"matched" := 0, ~"text" := ~"_ ? never"},
                                                           #{~"matched" := 1}, #{~"matched" := 1}]}]}, lists:last(Lines))
     end || Options <- [[], ["--clocks", "1"]]].

an_option_of_a_log_needs_one_test() ->
    [begin
         {2, Text} = in_folder(?BANK, log([]), fun() -> printed(["compile" | Options] ++ ["a.hml"]) end),
         shows(Text, [Words])
     end || {Options, Words} <- [{["--sort", "1"], ~"option --sort is for a log: name it with --try LOG"},
                                 {["--skip-malformed"], ~"option --skip-malformed is for a log"},
                                 {["--max-slices", "1"], ~"option --max-slices is for a log"},
                                 {["--try", "-", "--watch"], ~"--watch reads the log again and again"}]].

%% --- watching -----------------------------------------------------------------------

what_is_edited_is_tried_again_test() ->
    watched(["--try", "a.log"], fun(Look) ->
        shows(Look(), [~"a.log: 3 events", ~"1 satisfied (1 vacuously)", ~"never matched (3 events)  _ ? {withdraw, A}"]),
        %% It is broken, then it is away, and then it is mended.
        ok = file:write_file("a.hml", ~"never_below_zero: with bank:open(_) check ["),
        shows(Look(), [~"\n", ~"a.hml:1:", ~"error: "]),
        ok = file:delete("a.hml"),
        shows(Look(), [~"a.hml: error: "]),
        ok = file:write_file("a.hml", string:replace(?BANK, "{withdraw, A}", "{_, {withdraw, A}}")),
        shows(Look(), [~"matched 1 of 3 events", ~"_ ? {_, {withdraw, A}}"]),
        %% The log is away for a moment, and comes back with another event.
        ok = file:delete("a.log"),
        shows(Look(), [~"witness compile: a.log: no such file or directory"]),
        ok = file:write_file("a.log", log(["{self,{withdraw,70}}", "{withdraw,50}"])),
        shows(Look(), [~"1 violated", ~"violated at a.log:3"])
    end, 0).

without_a_log_it_is_compiled_again_test() ->
    watched([], fun(Look) ->
        shows(Look(), [~"a.hml: 1 property\n"]),
        ok = file:write_file("a.hml", [?BANK, string:replace(?BANK, "never", "again")]),
        shows(Look(), [~"a.hml: 2 properties\n"]),
        ok = file:write_file("a.hml", "%"),
        shows(Look(), [~"there is no property in this file"])
    end, 2).

%% `Look` returns what was printed when the command waits for a change, after it has seen the last one twice.
watched(Options, Test, Code) ->
    in_folder(?BANK, log(["{self,{withdraw,70}}", "bye"]), fun() ->
        witness_output:of_call(fun() ->
            {compile, Parsed} = witness_cli_args:parse(["compile", "--watch" | Options] ++ ["a.hml"]),
            Self = self(),
            Wait = fun() ->
                Self ! {waits, self()},
                receive {Self, Next} -> Next end
            end,
            {Pid, Monitor} = spawn_monitor(fun() -> exit({ended, witness_cli_compile:run(Parsed, Wait)}) end),
            receive {waits, Pid} -> ok end,
            First = counters:new(1, []),
            Look = fun() ->
                _ = [begin
                    Pid ! {Self, look},
                    receive {waits, Pid} -> ok; {'DOWN', Monitor, process, Pid, Reason} -> error(Reason) end
                end || counters:get(First, 1) > 0, _ <- [changed, settled]],
                ok = counters:put(First, 1, 1),
                witness_output:taken()
            end,
            Test(Look),
            Pid ! {Self, stop},
            receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual({ended, {ok, Code}}, Reason) end
        end)
    end).

%% --- helpers -----------------------------------------------------------------------

log(Messages) ->
    [~"init(\"bank\",_,{bank,open,[100]})\n" | [[~"recv(\"bank\",", Message, ~")\n"] || Message <- Messages]].

recv(Message, Time) -> [$@, integer_to_list(Time), ~" recv(\"bank\",", Message, ~")\n"].

tried(Spec, Log, Options) -> in_folder(Spec, Log, fun() -> printed(["compile", "--try", "a.log" | Options] ++ ["a.hml"]) end).

json_of(Spec, Log, Options) ->
    in_folder(Spec, Log, fun() -> json(["compile", "--json", "--try", "a.log" | Options] ++ ["a.hml"]) end).

in_folder(Spec, Log, Fun) ->
    witness_folder:with(fun(Folder) ->
        {ok, Before} = file:get_cwd(),
        ok = file:set_cwd(Folder),
        try
            ok = file:write_file("a.hml", Spec),
            ok = file:write_file("a.log", Log),
            Fun()
        after
            ok = file:set_cwd(Before)
        end
    end).

%% A process of its own gets what the command catches.
printed(Arguments) ->
    witness_output:of_call(fun() ->
        {_, Monitor} = spawn_monitor(fun() -> exit({ended, witness_cli:run(Arguments)}) end),
        receive {'DOWN', Monitor, process, _, {ended, Code}} -> Code end
    end).

json(Arguments) ->
    {Code, Text} = printed(Arguments),
    {Code, [json:decode(Line) || Line <- binary:split(Text, ~"\n", [global, trim])]}.

shows(Text, Words) -> [?assertNotEqual({Word, Text, nomatch}, {Word, Text, string:find(Text, Word)}) || Word <- Words].
