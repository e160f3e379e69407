-module(witness_central_SUITE).
-moduledoc """
Central monitoring of systems that run, over both sources: one tracer, with all monitors in its process. The shared
systems have the verdicts of outline monitoring, with the same explanations; properties over several processes find what
is wrong, and nothing else; whatever goes wrong with a monitor, a process or the tracer is told.

`WITNESS_CENTRAL_RUNS` says how often each system runs; `make central` runs each 100 times.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(RUN_TIMEOUT, 120_000).
-define(IDLE_MS, 500).

suite() -> [{timetrap, {minutes, 5 + how_often()}}].

all() -> [{group, native}, {group, evm}].

groups() ->
    Both = [shared_systems_have_their_verdicts, more_monitors_change_nothing,
            properties_over_several_processes_have_theirs,
            one_monitor_over_the_whole_trace_says_the_same, verdicts_are_explained_as_in_outline,
            a_verdict_names_the_process_that_decided, a_redacted_run_shows_shapes, only_central_runs_take_them,
            a_written_log_says_the_same,
            a_test_finds_what_goes_wrong_between_processes, slices_end_when_idle, the_oldest_slice_makes_room,
            a_process_that_ran_before_is_not_read, some_of_all_processes_are_read, a_crash_of_a_monitor_is_its_own,
            a_tracer_that_dies_is_told,
            a_monitor_that_never_returns_ends, a_process_that_hides_is_a_gap, too_large_a_message_is_a_gap,
            too_much_is_a_gap_and_no_crash, specifications_are_replaced, names_of_modules_are_used_again,
            what_is_over_all_processes_is_not,
            nothing_is_left],
    [{native, [], Both}, {evm, [], Both ++ [what_runs_already_is_attached_to]}].

init_per_group(Source, Config) -> witness_source:init(Source, Config).

end_per_group(_, _) -> ok.

init_per_suite(Config) ->
    #{level := Before} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    ok = code:ensure_modules_loaded([?MODULE | witness_sys:modules()]),
    {ok, _} = application:ensure_all_started(witness),
    [{level, Before} | Config].

end_per_suite(Config) -> ok = logger:set_primary_config(level, proplists:get_value(level, Config)).

%% --- the shared systems ----------------------------------------------------------

shared_systems_have_their_verdicts(Config) -> agree(witness_sys:all(), Config).

properties_over_several_processes_have_theirs(Config) -> agree(witness_sys:together(), Config).

how_often() -> witness_setting:number("WITNESS_CENTRAL_RUNS", 2).

agree(Systems, Config) ->
    Given = #{instrument => central, source => source(Config)},
    [begin
         Expected = {witness_sys:outcome(System), witness_sys:expected(System)},
         Wrong = [R || R <- witness_agreement_SUITE:runs(System, Given, how_often()), R =/= Expected],
         ?assertEqual({Name, Expected, []}, {Name, Expected, lists:sublist(Wrong, 3)})
     end || #{name := Name} = System <- Systems].

%% Their marks, their crashes and what they leave in the process are nothing to the others.
more_monitors_change_nothing(Config) ->
    Given = #{instrument => central, source => source(Config), specs => [witness_sys:spec_file("nothing.hml")],
              monitors => [{{'_', '_', '_'}, {witness_sys_faulty, How}} || How <- [crash, undecided]]},
    Own = fun({Outcome, Counts}) -> {Outcome, [C || {Property, _, _} = C <- Counts, Property =/= ~"witness_sys_faulty"]} end,
    [?assertEqual({Name, [Own({witness_sys:outcome(System), witness_sys:expected(System)})]},
                  {Name, [Own(R) || R <- witness_agreement_SUITE:runs(System, Given, 1)]})
     || #{name := Name} = System <- witness_sys:all() ++ witness_sys:together()].

%% Figure 1b of the paper: only the root is mapped, and its group is the whole system. The same formula, for each value.
one_monitor_over_the_whole_trace_says_the_same(Config) ->
    [begin
         #{system := {M, F, Args}, expect := Expect} = system(Name),
         {ok, Text} = file:read_file(witness_sys:spec_file(Spec)),
         Root = io_lib:format("~w:~w(~s) group per", [M, F, lists:join(", ", ["_" || _ <- Args])]),
         Grouped = re:replace(Text, ["^", Property, ": per"], [Property, ": with ", Root], [multiline, {return, binary}]),
         ?assertNotEqual(Text, Grouped),
         File = write(Name, Grouped, Config),
         {Summary, Verdicts} = run(#{system => {M, F, Args}, specs => [File], instrument => outline}, Config),
         Of = fun(Counts) -> [Count || {P, _, _} = Count <- Counts, P =:= Property] end,
         ?assertEqual({Name, Of(Expect), 0}, {Name, Of(witness_sys:counts(Verdicts)), maps:get(gaps, Summary)})
     end || {Name, Spec, Property} <- [{transfers, "transfers.hml", ~"money_is_kept"},
                                       {transfers_lossy, "transfers.hml", ~"money_is_kept"},
                                       {transfers_generous, "transfers.hml", ~"money_is_kept"},
                                       {sessions, "sessions.hml", ~"one_at_a_time"},
                                       {sessions_hasty, "sessions.hml", ~"one_at_a_time"}]].

system(Name) ->
    [System] = [S || S = #{name := N} <- witness_sys:all() ++ witness_sys:together(), N =:= Name],
    System.

%% But for the names of processes, which differ from run to run. These systems do the same each time.
verdicts_are_explained_as_in_outline(Config) ->
    [begin
         #{system := System, specs := Specs} = system(Name),
         Given = #{system => System, specs => [witness_sys:spec_file(S) || S <- Specs], explain => 5},
         {Summary, Verdicts} = run(Given#{instrument => outline}, Config),
         {Central, Same} = run(Given#{instrument => central}, Config),
         ?assertEqual(told(Verdicts), told(Same)),
         Numbers = [verdicts, vacuous, gaps, slices, monitored, coverage, outcome, warnings],
         ?assertEqual({Name, maps:with(Numbers, Summary)}, {Name, maps:with(Numbers, Central)}),
         ?assertEqual(1, maps:get(tracers, Central))
     end || Name <- [calc_wrong, token_leaks, pingpong_wrong, counter_backwards, door_jammed, exits, patterns]].

told(Verdicts) ->
    lists:sort([nameless((maps:without([process, names, aliases], V))#{event := untimed(Event),
                                                                       steps := [untimed(Step) || Step <- Steps]})
                || #{event := Event, steps := Steps} = V <- Verdicts]).

untimed(undefined) -> undefined;
untimed(#{event := Event} = Step) -> Step#{event := setelement(tuple_size(Event), Event, untimed)}.

nameless(P) when is_pid(P); is_reference(P) -> name;
nameless(T) when is_tuple(T) -> list_to_tuple(nameless(tuple_to_list(T)));
nameless([H | T]) -> [nameless(H) | nameless(T)];
nameless(M) when is_map(M) -> #{nameless(K) => nameless(V) || K := V <- M};
nameless(Other) -> Other.

%% --- properties over several processes -------------------------------------------

a_verdict_names_the_process_that_decided(Config) ->
    {_, Generous} = run(together(transfers_generous), Config),
    [Made] = [V || #{verdict := no} = V <- Generous],
    ?assertMatch(#{signature := {witness_sys_transfers, account, [_, generous]}, slice := [{~"Tx", {last, 1}}],
                   event := #{index := 1, event := {send, _, _, {deposited, {last, 1}, _}, _}},
                   source := #{line := 5}}, Made),
    #{process := P, event := #{event := {send, P, _, _, _}}} = Made,
    {_, Lossy} = run(together(transfers_lossy), Config),
    [Lost] = [V || #{verdict := no} = V <- Lossy],
    ?assertMatch(#{process := undefined, signature := undefined, slice := [{~"Tx", {last, 1}}], event := undefined,
                   steps := [#{event := {send, _, _, {withdrawn, {last, 1}, _}, _}}]}, Lost),
    Look = #{colour => false, width => 100, unicode => false},
    Text = unicode:characters_to_binary(witness_text_verdict:verdict(Lost, Look)),
    Logged = fun(V) ->
        Report = maps:with([spec, name, process, signature, slice], V),
        {Format, Args} = witness_run_notifier:format(Report#{witness => violation}),
        lists:flatten(io_lib:format(Format, Args))
    end,
    ?assertMatch({match, _}, re:run(Logged(Lost), "transfers.hml:3 .money_is_kept. violated, Tx = .last,1.$")),
    ?assertMatch({match, _}, re:run(Logged(Made), "violated by <.*>, witness_sys_transfers:account.*, Tx = .last,1.$")),
    ?assertMatch({match, _}, re:run(Text, "^VIOLATION of money_is_kept .*transfers.hml:3\\)\n  slice Tx = \\{last,1\\}\n")).

a_redacted_run_shows_shapes(Config) ->
    {_, Verdicts} = run((together(transfers_generous))#{redact => true}, Config),
    ?assertMatch([#{signature := {witness_sys_transfers, account, ['integer()', generous]},
                    slice := [{~"Tx", {last, 'integer()'}}]}], [V || #{verdict := no} = V <- Verdicts]),
    {_, Lost} = run((together(transfers_lossy))#{redact => true}, Config),
    ?assertMatch([#{process := undefined, signature := undefined}], [V || #{verdict := no} = V <- Lost]).

together(Name) ->
    #{system := System, specs := Specs} = system(Name),
    #{system => System, specs => [witness_sys:spec_file(S) || S <- Specs], instrument => central}.

only_central_runs_take_them(Config) ->
    Given = (together(sessions))#{source => source(Config), log => false},
    {error, Reason} = witness:start(Given#{instrument => outline}),
    ?assertMatch({witness_spec, [#{code := needs_central, severity := error, line := 2, column := 1}]}, Reason),
    ?assertMatch({match, _}, re:run(witness:format_error(Reason), "sessions.hml:2:1: error: a property without `with`")).

a_written_log_says_the_same(Config) ->
    [begin
         File = filename:join(proplists:get_value(priv_dir, Config), lists:concat([Name, source(Config), Suffix])),
         {_, Verdicts} = run((together(Name))#{log_file => File}, Config),
         Given = #{system => {log, {file, File}}, specs => maps:get(specs, together(Name)), log => false},
         ?assertMatch({error, {witness_spec, [#{code := needs_central}]}}, witness:start(Given)),
         {ok, Run} = witness:start(Given#{instrument => central}),
         {ok, Summary} = witness:await(Run, ?RUN_TIMEOUT),
         Checked = witness:verdicts(Run),
         {ok, _} = witness:stop(Run),
         ?assertEqual(witness_sys:counts(Verdicts), witness_sys:counts(Checked)),
         ?assertMatch(#{gaps := 0}, Summary),
         Places = fun(Of) -> lists:sort([{S, process(Suffix, P), signature(Suffix, G)}
                                         || #{verdict := no, slice := S, process := P, signature := G} <- Of]) end,
         ?assertEqual(Places(Verdicts), Places(Checked))
     end || Name <- [transfers_generous, sessions_hasty, transfers_lossy], Suffix <- [".log", ".jsonl"]].

%% JSON has no names of processes that read back as such.
process(_, undefined) -> undefined;
process(_, P) -> iolist_to_binary(witness_event:format_proc(P)).

signature(_, undefined) -> undefined;
signature(_, {M, F, _}) -> {M, F}.

a_test_finds_what_goes_wrong_between_processes(Config) ->
    Spec = write(test, "one_talks: per Id over P ? {talk, Id}\n"
                       "check [P ? _] max X.([{Q ? _ when Q =/= P}] ff and [P ? _] X).\n", Config),
    Talk = fun(Pids) ->
        fun() ->
            Listeners = [spawn_monitor(fun() -> receive {talk, _} -> ok end end) || _ <- Pids],
            [P ! {talk, Id} || {{P, _}, Id} <- lists:zip(Listeners, Pids)],
            [receive {'DOWN', Ref, process, _, _} -> ok end || {_, Ref} <- Listeners]
        end
    end,
    Options = #{instrument => central, source => source(Config)},
    ?assertMatch([ok, ok], witness_test:check(Spec, Talk([1, 2]), Options)),
    ?assertError({violation, _}, witness_test:check(Spec, Talk([1, 1]), Options)).

%% --- instances -------------------------------------------------------------------

%% The times are those of the events: what is idle here is so however slow the machine is. Each value but 1 is not, if the process
%% does not stand still meanwhile; with the last one it has not.
slices_end_when_idle(Config) ->
    Spec = write(idle, "answered: per Id over begin _ ? {ask, Id}, _ ? {answer, Id}, _ ? last\n"
                       "check [_ ? {ask, _}] <_ ? {answer, _}> tt.\n", Config),
    Given = #{system => {?MODULE, idle, []}, specs => [Spec], instrument => central},
    {Summary, Verdicts} = run(Given#{slice_idle => ?IDLE_MS}, Config),
    Expected = [{[{~"Id", 1}], inconclusive, slice_idle}, {yes, undefined}],
    ?assertEqual(Expected, first_and_last(Verdicts)),
    Count = length(Verdicts),
    ?assertMatch(#{slices := Count, outcome := ok}, Summary),
    %% It holds for the slices of one process as well.
    {ok, Text} = file:read_file(Spec),
    Own = write(own, string:replace(Text, "per Id", "with witness_central_SUITE:idle() per Id"), Config),
    {_, Same} = run(Given#{slice_idle => ?IDLE_MS, instrument => outline, specs => [Own]}, Config),
    ?assertEqual(Expected, first_and_last(Same)),
    {_, Others} = run(Given, Config),
    ?assertEqual([{[{~"Id", 1}], yes, undefined}, {yes, undefined}], first_and_last(Others)).

first_and_last(Verdicts) ->
    [First | Others] = slices(Verdicts),
    {_, Verdict, Reason} = lists:last(Others),
    [First, {Verdict, Reason}].

idle() ->
    hear({ask, 1}),
    timer:sleep(2 * ?IDLE_MS),
    at_once(2),
    hear({answer, 1}),
    ok.

at_once(Id) ->
    Before = erlang:monotonic_time(millisecond),
    [hear(Message) || Message <- [{ask, Id}, {answer, Id}]],
    erlang:monotonic_time(millisecond) - Before < ?IDLE_MS orelse at_once(Id + 1).

hear(Message) ->
    self() ! Message,
    receive Message -> ok end.

slices(Verdicts) -> lists:sort([{S, V, R} || #{slice := S, verdict := V, reason := R} <- Verdicts]).

the_oldest_slice_makes_room(Config) ->
    Spec = write(room, "answered: per Id over begin _ ? {ask, Id}, _ ? {answer, Id}\n"
                       "check [_ ? {ask, _}] <_ ? {answer, _}> tt.\n", Config),
    {_, Verdicts} = run(#{system => {?MODULE, asking, [[1, 2, 3, 4]]}, specs => [Spec], instrument => central,
                          max_slices => 2}, Config),
    ?assertEqual([{[{~"Id", 1}], inconclusive, max_slices}, {[{~"Id", 2}], inconclusive, max_slices},
                  {[{~"Id", 3}], no, undefined}, {[{~"Id", 4}], no, undefined}], slices(Verdicts)).

%% Each by a process of its own, one after the other.
asking(Ids) ->
    [begin
         {_, Ref} = spawn_monitor(fun() -> hear({ask, Id}) end),
         receive {'DOWN', Ref, process, _, _} -> ok end
     end || Id <- Ids],
    ok.

%% --- which processes are read ----------------------------------------------------

%% With the whole node in scope, processes that run already are traced for what they spawn.
a_process_that_ran_before_is_not_read(Config) ->
    Spec = write(before, "nobody: per Id over _ ? {said, Id} check [_ ? _] ff.\n", Config),
    Old = spawn(fun echo/0),
    {Summary, Verdicts} = run(#{system => {?MODULE, tell, [Old]}, specs => [Spec], instrument => central, scope => node},
                              Config),
    exit(Old, kill),
    ?assertMatch([#{verdict := no, slice := [{~"Id", back}], signature := {?MODULE, tell, [_]}}], Verdicts),
    ?assertMatch(#{outcome := violated}, Summary).

echo() ->
    receive
        {said, there, P} ->
            P ! {said, there},
            echo();
        {P, go} ->
            self() ! {said, old},
            P ! {said, back},
            echo()
    end.

tell(Old) ->
    Old ! {self(), go},
    receive {said, back} -> ok end.

%% One instance for each value, whichever of these processes acts. What is spawned otherwise has the same messages.
some_of_all_processes_are_read(Config) ->
    Spec = write(among, "twice: per Id over _ ? {say, Id} among witness_central_SUITE:sayer(), witness_central_SUITE:voice(loud) check "
                        "[_ ? _] [_ ? _] ff.\n", Config),
    {Summary, Verdicts} = run(#{system => {?MODULE, voices, []}, specs => [Spec], instrument => central}, Config),
    ?assertEqual([{both, no}, {loud, no}, {one, yes}], lists:sort([{Id, V} || #{verdict := V, slice := [{~"Id", Id}]} <- Verdicts])),
    ?assertMatch(#{outcome := violated}, Summary),
    Other = write(none, "none: per Id over _ ? {say, Id} among witness_central_SUITE:sayer(_) check [_ ? _] ff.\n", Config),
    {#{warnings := Warnings}, []} = run(#{system => {?MODULE, voices, []}, specs => [Other], instrument => central,
                                          max_verdicts => 0}, Config),
    [Text] = [Warned || #{code := nothing_monitored, text := Warned} <- Warnings],
    ?assertMatch({_, _}, binary:match(Text, ~"no process had a signature that matches all witness_central_SUITE:sayer(_); seen: ")).

voices() ->
    Both = [spawn(?MODULE, sayer, []) || _ <- [1, 2]],
    Quiet = [spawn(?MODULE, voice, [quiet]) || _ <- [1, 2]],
    Loud = spawn(?MODULE, voice, [loud]),
    [P ! {say, both} || P <- Both ++ Quiet],
    [Loud ! {say, loud} || _ <- [1, 2]],
    [P ! {say, Id} || P <- Quiet, Id <- [one, quiet]],
    hd(Both) ! {say, one},
    [P ! stop || P <- [Loud | Both ++ Quiet]],
    ok.

voice(_) -> sayer().

what_runs_already_is_attached_to(Config) ->
    Spec = write(attached, "nobody: per Id over _ ? {said, Id} check [_ ? _] ff.\n", Config),
    Old = spawn(fun echo/0),
    {ok, Run} = witness:start(#{system => {attach, [Old]}, specs => [Spec], instrument => central, log => false}),
    Old ! {said, there, self()},
    receive {said, there} -> ok end,
    Old ! {self(), go},
    receive {said, back} -> ok end,
    exit(Old, kill),
    {ok, #{tracers := 1}} = witness:await(Run, ?RUN_TIMEOUT),
    ?assertMatch([#{verdict := no, process := Old, slice := [{~"Id", old}], signature := {_, _, _}}], witness:verdicts(Run)),
    {ok, _} = witness:stop(Run).

%% --- what goes wrong -------------------------------------------------------------

a_crash_of_a_monitor_is_its_own(Config) ->
    {Summary, Verdicts} = run(#{system => {?MODULE, asking, [[1, 2]]}, instrument => central,
                                monitors => [{{?MODULE, '_', '_'}, {?MODULE, How}} || How <- [crash, count]]},
                              Config),
    Three = lists:duplicate(3, yes) ++ lists:duplicate(3, inconclusive),
    ?assertEqual(lists:zip([count, count, count, crash, crash, crash], Three),
                 lists:sort([{case R of {crashed, _} -> crash; _ -> count end, V}
                             || #{verdict := V, reason := R} <- Verdicts])),
    ?assertMatch(#{outcome := untrusted}, Summary).

a_tracer_that_dies_is_told(Config) ->
    {Run, Root} = start_gated(#{}, Config),
    {Tracer, _} = await_gate(),
    exit(Tracer, kill),
    {ok, Summary} = witness:await(Run, ?RUN_TIMEOUT),
    ?assertMatch(#{outcome := untrusted, verdicts := #{no := 0, yes := 0, inconclusive := N}} when N > 0, Summary),
    ?assert(lists:any(fun(#{code := Code}) -> Code =:= tracer_lost end, maps:get(warnings, Summary))),
    {ok, _} = witness:stop(Run),
    ?assert(is_process_alive(Root)),
    exit(Root, kill).

%% The system does what it did; the run ends at its drain limit.
a_monitor_that_never_returns_ends(Config) ->
    Test = self(),
    {Run, Root} = start_gated(#{drain => 100, on_verdict => fun(#{reason := R}) -> Test ! {reason, R} end}, Config),
    {_, _} = await_gate(),
    Root ! {flood, 1},
    receive {flooded, Root} -> ok end,
    {ok, Summary} = witness:stop(Run),
    ?assertMatch(#{outcome := untrusted, verdicts := #{no := 0, yes := 0, inconclusive := 1}}, Summary),
    ?assertMatch([_ | _], [Text || #{code := overdue, text := Text} <- maps:get(warnings, Summary)]),
    receive {reason, Reason} -> ?assertEqual({gap, overdue}, Reason) end,
    ?assert(is_process_alive(Root)),
    exit(Root, kill).

a_process_that_hides_is_a_gap(Config) ->
    Spec = write(hides, "per_one: with witness_central_SUITE:hider(_) over _ ? _, _ ** _\n"
                        "check max X.([_ ? _] X and [_ ** crash] ff).\n"
                        "everywhere: per Id over begin _ ? {ask, Id}, _ ? {answer, Id}\n"
                        "check [_ ? _] <_ ? _> tt.\n", Config),
    {Summary, Verdicts} = run(#{system => {?MODULE, hiders, []}, specs => [Spec], instrument => central}, Config),
    ?assertEqual([{~"everywhere", inconclusive, {gap, sensitive}}, {~"per_one", inconclusive, {gap, sensitive}},
                  {~"per_one", yes, undefined}],
                 lists:usort([{N, V, R} || #{name := N, verdict := V, reason := R} <- Verdicts])),
    ?assertMatch(#{outcome := untrusted}, Summary),
    ?assertMatch([_ | _], [Text || #{code := sensitive, text := Text} <- maps:get(warnings, Summary)]).

hiders() ->
    [begin
         {P, Ref} = spawn_monitor(?MODULE, hider, [Hides]),
         P ! go,
         receive {'DOWN', Ref, process, _, _} -> ok end
     end || Hides <- [false, true, false]],
    ok.

hider(Hides) ->
    hear({ask, Hides}),
    receive go -> process_flag(sensitive, Hides) end.

too_large_a_message_is_a_gap(Config) ->
    {Summary, Verdicts} = run(#{system => {?MODULE, large, []}, instrument => central, message_size => 10_000,
                                monitors => [{{?MODULE, hears, 1}, {?MODULE, count}}]}, Config),
    ?assertEqual([{inconclusive, {gap, message_size}}, {yes, undefined}, {yes, undefined}],
                 lists:sort([{V, R} || #{verdict := V, reason := R} <- Verdicts])),
    ?assertMatch(#{outcome := untrusted, gaps := 1}, Summary).

large() ->
    [begin
         {P, Ref} = spawn_monitor(?MODULE, hears, [N]),
         P ! lists:seq(1, N),
         receive {'DOWN', Ref, process, _, _} -> ok end
     end || N <- [1, 100_000, 2]],
    ok.

hears(_) -> receive _ -> ok end.

%% The tracer waits for a gate, and the system does not, so events exceed the limit. Undecided monitors end with a gap, a
%% verdict that had fallen stands, and the system goes on.
too_much_is_a_gap_and_no_crash(Config) ->
    Spec = write(much, "first: per Id over _ ? {ask, Id} check [_ ? _] ff.\n", Config),
    {Run, Root} = start_gated(#{memory => 1 bsl 22, specs => [Spec]}, Config),
    {_, Open} = await_gate(),
    Root ! {flood, 100},
    %% Over `evm' the tracer is ended while it waits.
    ok = case source(Config) of
        native -> receive {flooded, Root} -> Open(), ok end;
        evm -> Root ! {flood_on, 1000}, ok
    end,
    {ok, Summary} = witness:await(Run, ?RUN_TIMEOUT),
    Code = case source(Config) of native -> overflow; evm -> memory end,
    ?assertMatch([_ | _], [Text || #{code := C, text := Text} <- maps:get(warnings, Summary), C =:= Code]),
    Verdicts = witness:verdicts(Run),
    Undecided = [R || #{verdict := inconclusive, reason := R} <- Verdicts],
    ?assert(lists:all(fun(R) -> R =:= {gap, Code} end, Undecided)),
    ?assert(length(Undecided) > 0),
    ?assertEqual([], [V || #{verdict := V} <- Verdicts, V =:= yes]),
    {ok, _} = witness:stop(Run),
    ?assert(is_process_alive(Root)),
    exit(Root, kill).

%% The first process of the system reports that it runs, and floods itself when it is told to. Its monitor blocks the tracer
%% at the first event.
start_gated(More, Config) ->
    ok = flush(),
    Given = #{system => {?MODULE, root, [self()]}, instrument => central, source => source(Config), log => false,
              monitors => [{{?MODULE, root, 1}, {?MODULE, {gate, self()}}}]},
    {ok, Run} = witness:start(maps:merge(Given, More)),
    receive {root, Root} -> {Run, Root} end.

flush() -> receive _ -> flush() after 0 -> ok end.

root(Test) ->
    Test ! {root, self()},
    root_loop(Test).

root_loop(Test) ->
    receive
        {flood, N} ->
            flood(N),
            Test ! {flooded, self()},
            root_loop(Test);
        {flood_on, N} ->
            flood(N),
            root_loop(Test);
        stop -> ok
    end.

flood(N) ->
    Message = {ask, lists:seq(1, 10_000)},
    [begin self() ! Message, receive Message -> ok end end || _ <- lists:seq(1, N)].

%% The tracer that waits at the gate, and a function that lets it go on.
await_gate() ->
    receive {at_gate, Tracer} -> {Tracer, fun() -> Tracer ! open end} end.

%% --- specifications that change --------------------------------------------------

specifications_are_replaced(Config) ->
    Said = fun(Most) -> io_lib:format("limit: with witness_central_SUITE:sayer() over _ ? {say, _}\n"
                                      "monitor max X.([_ ? {say, N} when N =< ~w] X and [_ ? {say, M} when M > ~w] ff).\n",
                                      [Most, Most]) end,
    File = write(limit, Said(5), Config),
    {ok, Run} = witness:start(#{system => {?MODULE, boss, [self()]}, specs => [File], instrument => central,
                                source => source(Config), log => false}),
    Root = receive {boss, P} -> P end,
    Old = sayer(Root),
    _ = write(limit, Said(50), Config),
    {ok, []} = witness:replace(Run, [File]),
    New = sayer(Root),
    [begin W ! {say, 10}, W ! {say, 51} end || W <- [Old, New]],
    stop([Old, New, Root]),
    {ok, #{outcome := violated}} = witness:await(Run, ?RUN_TIMEOUT),
    Found = [{W, N, maps:get(version, V, 1)}
             || #{verdict := no, process := W, event := #{event := {recv, _, _, {say, N}, _}}} = V <- witness:verdicts(Run)],
    ?assertEqual([{Old, 10, 1}, {New, 51, 2}], lists:keysort(3, Found)),
    {ok, _} = witness:stop(Run).

%% The monitor of the first version has ended. The third version has its module name, and reads what the first did not.
names_of_modules_are_used_again(Config) ->
    Head = "v: with witness_central_SUITE:sayer() ",
    File = write(again, [Head, "over _ ? {say, _} check [_ ? _] ff.\n"], Config),
    {ok, Run} = witness:start(#{system => {?MODULE, boss, [self()]}, specs => [File], instrument => central,
                                source => source(Config), replaceable => true, log => false}),
    Root = receive {boss, P} -> P end,
    First = sayer(Root),
    First ! {say, 1},
    witness_await:until(fun() -> length(witness:verdicts(Run)) =:= 1 end),
    [Name] = loaded(),
    [begin
         _ = write(again, [Head, Text], Config),
         {ok, _} = witness:replace(Run, [File])
     end || Text <- ["check [_ <- _, _] [_ ** _] ff.\n",
                     "check max X.([_ <- _, _] X and [_ ? _] X and [_ ** normal] ff).\n"]],
    ?assert(lists:member(Name, loaded())),
    Third = sayer(Root),
    Third ! {say, 1},
    stop([First, Third, Root]),
    {ok, #{coverage := Coverage}} = witness:await(Run, ?RUN_TIMEOUT),
    ?assertMatch([#{process := First, verdict := no},
                  #{process := Third, verdict := no, version := 3, event := #{event := {exit, Third, normal, _}}}],
                 witness:verdicts(Run)),
    ?assertMatch([#{version := 1, actions := [#{taken := true}]},
                  #{version := 3, actions := [#{taken := true}, #{taken := true}, #{taken := true}]}], Coverage),
    {ok, _} = witness:stop(Run).

stop(Pids) ->
    [begin
         Ref = monitor(process, P),
         P ! stop,
         receive {'DOWN', Ref, process, P, _} -> ok end
     end || P <- Pids],
    ok.

loaded() -> [M || {M, _} <- code:all_loaded(), lists:prefix("witness_spec_code_", atom_to_list(M))].

boss(Test) ->
    Test ! {boss, self()},
    boss_loop().

boss_loop() ->
    receive
        {new, Test} ->
            Test ! {sayer, spawn(?MODULE, sayer, [])},
            boss_loop();
        stop -> ok
    end.

sayer(Root) ->
    Root ! {new, self()},
    receive {sayer, P} -> P end.

sayer() -> receive {say, _} -> sayer(); stop -> ok end.

what_is_over_all_processes_is_not(Config) ->
    All = write(all, "all: per Id over _ ? {ask, Id} check [_ ? _] ff.\n", Config),
    One = write(one, "one: with witness_central_SUITE:sayer() over _ ? {ask, _} check [_ ? _] ff.\n", Config),
    [begin
         {ok, Run} = witness:start(#{system => {?MODULE, boss, [self()]}, specs => [First], instrument => central,
                                     source => source(Config), log => false}),
         Root = receive {boss, P} -> P end,
         ?assertEqual({error, {witness_run, {not_replaced, all}}}, witness:replace(Run, [Second])),
         ?assertMatch("properties over all processes" ++ _, witness:format_error({witness_run, {not_replaced, all}})),
         Root ! stop,
         {ok, _} = witness:await(Run, ?RUN_TIMEOUT),
         {ok, _} = witness:stop(Run)
     end || {First, Second} <- [{All, One}, {One, All}, {All, All}]].

%% --- afterwards ------------------------------------------------------------------

nothing_is_left(Config) ->
    Before = left(),
    [{_, _} = run(together(Name), Config) || Name <- [transfers, sessions_hasty]],
    witness_await:until(fun() -> left() =:= Before end).

%% Processes of Witness, what native code has allocated, modules of specifications.
left() ->
    [erlang:garbage_collect(P) || P <- processes()],
    Own = witness_run_attach:own_predicate(#{unobserved => []}),
    {length([P || P <- processes(), Own(P)]), witness_trace_native:resources(),
     length(loaded())}.

%% --- monitors --------------------------------------------------------------------

init(_, _, Arg) -> {ok, Arg}.

attached(_, _, Arg) -> {ok, Arg}.

handle_event(_, crash) -> error(on_purpose);
handle_event(E, {gate, Test}) when element(1, E) =:= init ->
    Test ! {at_gate, self()},
    receive open -> {ok, {gate, Test}} end;
handle_event(_, State) -> {ok, State}.

handle_end(complete, count) -> {yes, done};
handle_end(stopped, _) -> {inconclusive, stopped}.

%% --- runs ------------------------------------------------------------------------

source(Config) -> proplists:get_value(source, Config).

run(Given, Config) ->
    Options = maps:merge(#{source => source(Config), log => false, scope => tree}, Given),
    {ok, Run} = witness:start(Options),
    {ok, Summary} = witness:await(Run, ?RUN_TIMEOUT),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    {Summary, Verdicts}.

write(Name, Text, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), lists:concat([Name, "_", source(Config), ".hml"])),
    ok = file:write_file(File, Text),
    File.
