-module(witness_log_agreement_SUITE).
-moduledoc """
A run that was logged has the same verdicts when its log is checked: of the systems of `m:witness_sys`, over both
sources, in both formats, with a tracer for each partition and with one for all.

Every verdict is compared with its process, its signature, its slice, the number of its event, and its explanation. A
log is an observation of its own, so it is compared with the run that has written it, never with another one. Two
things are not the same, and are made so before:

- a local fun is its text in the log, since it is nothing without the system (`comparable/1`);
- the stack of a monitor that has crashed, which runs elsewhere.

Each system is a group; they are run in shards, at the same time. The environment variable `WITNESS_AGREEMENT_RUNS`
says how often each system is run over each source, 3 times if it is not there; the formats take turns.
""".

-include_lib("kernel/include/file.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([offline_agrees/1, however_a_run_ends_its_log_says_the_same/1, what_ran_already_is_the_same_in_a_log/1,
         children_of_others_are_the_same_in_a_log/1, what_is_not_known_of_a_process_decides_nothing/1, a_log_changes_nothing_else/1,
         what_writes_the_log_does_not_show/1,
         a_log_that_cannot_be_written_starts_nothing/1, an_earlier_log_stays_until_the_run_is_started/1,
         a_full_disk_leaves_the_run_untrusted/1, a_log_that_is_too_large_leaves_the_run_untrusted/1,
         where_events_are_missing_the_log_says_so/1,
         what_writes_the_log_may_crash/1, processes_of_a_node/1, a_log_of_a_log_is_refused/1]).
-export([waiting/1, started/1, asks/1, answers/3, echo/1, parent/1]).


-define(SHARDS, 2).
-define(RUNS, 2).
-define(RUN_TIMEOUT, 60_000).

suite() -> [{timetrap, {minutes, 5 + how_often()}}].

all() ->
    [{group, shards}, however_a_run_ends_its_log_says_the_same, what_ran_already_is_the_same_in_a_log,
     children_of_others_are_the_same_in_a_log, what_is_not_known_of_a_process_decides_nothing, a_log_changes_nothing_else,
     what_writes_the_log_does_not_show,
     a_log_that_cannot_be_written_starts_nothing, an_earlier_log_stays_until_the_run_is_started,
     a_full_disk_leaves_the_run_untrusted, a_log_that_is_too_large_leaves_the_run_untrusted,
     where_events_are_missing_the_log_says_so, what_writes_the_log_may_crash,
     processes_of_a_node, a_log_of_a_log_is_refused].

groups() ->
    Names = witness_share:inside(?MODULE, [Name || #{name := Name} <- witness_sys:all()]),
    Shards = [{shard(N), [], [{group, Name} || {I, Name} <- lists:enumerate(Names), I rem ?SHARDS =:= N rem ?SHARDS]}
             || N <- lists:seq(1, ?SHARDS)],
    [{shards, [parallel], [{group, Shard} || {Shard, _, _} <- Shards]}] ++ Shards
        ++ [{Name, [], [offline_agrees]} || Name <- Names].

shard(N) -> list_to_atom("shard_" ++ integer_to_list(N)).

init_per_suite(Config) -> [{level, witness_agreement_SUITE:prepare()} | Config].

end_per_suite(Config) -> ok = logger:set_primary_config(level, proplists:get_value(level, Config)).

init_per_group(Group, Config) ->
    case [System || #{name := Name} = System <- witness_sys:all(), Name =:= Group] of
        [System] -> [{system, System} | Config];
        [] -> Config
    end.

end_per_group(_, _) -> ok.

%% --- the shared set --------------------------------------------------------------

offline_agrees(Config) ->
    #{name := Name} = System = proplists:get_value(system, Config),
    lists:foreach(fun({Source, Ending, N}) ->
        File = file(lists:concat([Name, $_, Source, $_, N, Ending]), Config),
        {Expected, #{processes := Processes, events := Events, coverage := Coverage} = Live} =
            live(System, #{source => Source, log_file => File}),
        ?assertEqual({Name, witness_sys:expected(System)}, {Name, witness_sys:counts(Expected)}),
        %% The first two lines are no events, nor that of the root.
        Lines = Events + 3,
        ?assertEqual([], [Warning || #{code := log_incomplete} = Warning <- maps:get(warnings, Live)]),
        lists:foreach(fun(Mode) ->
            {Found, Summary} = offline(System, File, #{instrument => Mode}),
            ?assertEqual({Name, Source, Mode, compared(Expected)}, {Name, Source, Mode, compared(Found)}),
            ?assertMatch(#{processes := Processes, events := Events, lines := Lines, refused := undefined}, Summary),
            ?assertEqual(Coverage, maps:get(coverage, Summary))
        end, [outline, central]),
        ok = file:delete(File)
    end, [{Source, ending(Source, N), N} || N <- lists:seq(1, how_often()), Source <- sources()]).

%% Each source has logs of either format by turns.
ending(native, N) when N rem 2 =:= 0 -> ".jsonl";
ending(evm, N) when N rem 2 =:= 1 -> ".jsonl";
ending(_, _) -> ".log".

sources() ->
    case witness_trace_native:available() of
        ok -> [native, evm];
        {error, _} -> [evm]
    end.

how_often() -> witness_setting:number("WITNESS_AGREEMENT_RUNS", ?RUNS).

file(Name, Config) -> filename:join(proplists:get_value(priv_dir, Config), Name).

live(#{system := MFA, scope := Scope} = System, More) -> run(System, More#{system => MFA, scope => Scope}).

%% Large messages are part of the set.
offline(System, File, More) -> run(System, More#{system => {log, {file, File}}, max_line => 1 bsl 24}).

run(#{specs := Specs, monitors := Monitors}, More) ->
    Options = #{log => false, specs => [witness_sys:spec_file(S) || S <- Specs], monitors => Monitors},
    case witness:start(maps:merge(Options, More)) of
        {ok, Run} ->
            {ok, Summary} = witness:await(Run, ?RUN_TIMEOUT),
            Verdicts = witness:verdicts(Run),
            {ok, Summary} = witness:stop(Run),
            {Verdicts, Summary};
        {error, Reason} -> error(unicode:characters_to_binary(witness:format_error(Reason)))
    end.

%% --- what is compared ------------------------------------------------------------

%% The order of verdicts on different processes is not the same from run to run.
compared(Verdicts) -> lists:sort([compared_verdict(V) || V <- Verdicts]).

compared_verdict(#{reason := Reason, event := Event, steps := Steps} = Verdict) ->
    comparable((maps:without([log, names, aliases], Verdict))#{
                 reason := case Reason of {crashed, {Class, Why, _}} -> {crashed, Class, Why}; _ -> Reason end,
                 event := case Event of undefined -> undefined; _ -> untimed(Event) end,
                 steps := [untimed(Step) || Step <- Steps]}).

%% Over `evm' the reader of an event decides whether it carries a time.
untimed(#{event := Event} = Step) -> Step#{event := setelement(tuple_size(Event), Event, untimed)}.

comparable(F) when is_function(F) ->
    case erlang:fun_info(F, type) of
        {type, external} -> F;
        {type, local} -> {external, list_to_binary(erlang:fun_to_list(F))}
    end;
comparable([Head | Tail]) -> [comparable(Head) | comparable(Tail)];
comparable(Tuple) when is_tuple(Tuple) -> list_to_tuple(comparable(tuple_to_list(Tuple)));
comparable(Map) when is_map(Map) -> #{comparable(Key) => comparable(Value) || Key := Value <- Map};
comparable(Other) -> Other.

%% --- all kinds of properties, at all ends ------------------------------------------

%% Which processes are read decides as much as what they do: `all_end` has an instance for each of them. Where a run stops,
%% deadlines have passed in silence.
however_a_run_ends_its_log_says_the_same(Config) ->
    Specs = [{Mode, write(Name, Text, Config)} || {Mode, Name, Text} <- properties()],
    Runs = [{Source, Mode, Scope, Suffix, System}
            || Source <- sources(), Mode <- [outline, central], {Scope, Suffix} <- [{tree, ".log"}, {node, ".jsonl"}],
               System <- [done, open, crashed, quiet]],
    ?assertEqual([], lists:append([disagreement(Run, Specs, Config) || Run <- Runs])).

disagreement({Source, Mode, Scope, Suffix, System} = Run, Specs, Config) ->
    File = file(lists:concat([ends_, System, $_, Source, $_, Mode, $_, Scope, Suffix]), Config),
    Given = #{specs => [Spec || {Of, Spec} <- Specs, Of =:= any orelse Of =:= Mode],
              instrument => Mode, log => false},
    Live = finished((duration(System, Given))#{system => {?MODULE, asks, [System]}, scope => Scope, source => Source,
                                               log_file => File}),
    _ = System =:= quiet andalso exit(whereis(?MODULE), kill),
    [{Run, Both} || Both <- [differing(Live, finished(Given#{system => {log, {file, File}}}))], Both =/= []].

duration(quiet, Options) -> Options#{duration => 300};
duration(_, Options) -> Options.

finished(Options) ->
    {ok, Run} = witness:start(Options),
    {ok, #{processes := Processes, coverage := Coverage}} = witness:await(Run, ?RUN_TIMEOUT),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    [{processes, Processes}, {coverage, Coverage} | compared(Verdicts)].

differing(Live, Log) -> [{run, Live -- Log} || Live -- Log =/= []] ++ [{log, Log -- Live} || Log -- Live =/= []].

write(Name, Text, Config) ->
    File = file([Name, ".hml"], Config),
    ok = file:write_file(File, Text),
    File.

%% A property over all processes is for central instrumentation. A group does not have the processes that its file names.
properties() ->
    [{any, "worker", ~"""
        answered: with witness_log_agreement_SUITE:answers(_, _, _) check
          [_ <- _, _] [_ ? {ask, _, N}] <_ : _ ! {answer, N}> tt.
        second: with witness_log_agreement_SUITE:answers(_, N, _) when N > 1 check
          [_ <- _, _] [_ ? {ask, _, _}] <_ : _ ! {answer, N}> tt.
        late: with witness_log_agreement_SUITE:answers(_, _, _) check
          [_ <- _, _] [_ ? {ask, _, N}] within 1 h <_ : _ ! {answer, N}> tt.
        calm: with witness_log_agreement_SUITE:answers(_, _, _) check
          [_ <- _, _] [_ ? {ask, _, _}] during 1 h [_ ** _] ff.
        """},
     {any, "soon", ~"""
        soon: with witness_log_agreement_SUITE:answers(_, _, _) check
          [_ <- _, _] [_ ? {ask, _, N}] within 30 ms <_ : _ ! {answer, N}> tt.
        """},
     {central, "at_once", ~"""
        at_once: per N over _ ? {ask, _, N}, _ : _ ! {answer, N} check
          [_ ? {ask, _, _}] within 30 ms <_ : _ ! {answer, _}> tt.
        """},
     {any, "group", ~"""
        grouped: with witness_log_agreement_SUITE:asks(_) group per N over _ ? {ask, _, N}, _ : _ ! {answer, N} check
          [_ ? {ask, _, _}] <_ : _ ! {answer, _}> tt.
        """},
     {central, "all", ~"""
        each: per N over _ ? {ask, _, N}, _ : _ ! {answer, N} check [_ ? {ask, _, _}] <_ : _ ! {answer, _}> tt.
        in_time: per N over _ ? {ask, _, N}, _ : _ ! {answer, N} check
          [_ ? {ask, _, _}] within 1 h <_ : _ ! {answer, _}> tt.
        some: per N over _ ? {ask, _, N}, _ : _ ! {answer, N} among witness_log_agreement_SUITE:answers(_, 2, _) check
          [_ ? {ask, _, _}] <_ : _ ! {answer, _}> tt.
        all_end: per P over P <- _, _, P ** _ check [P <- _, _] <P ** _> tt.
        spawned: per P over P <- _, _, _ -> P, _ check and(<_ <- _, _> ff, [_ -> _, _] tt).
        """}].

%% Of a process that ran before, the function is known: a log has it, and no `init` that nothing has reported.
what_ran_already_is_the_same_in_a_log(Config) ->
    Ours = write("ours", ~"""
        twice: with witness_log_agreement_SUITE:echo(_) check [_ <- _, _] [_ ? _] [_ ? _] ff.
        ends: with witness_log_agreement_SUITE:echo(_) check max X. ([_ ? _] X and [_ ** _] tt).
        child: with witness_log_agreement_SUITE:answers(_, _, _) check [_ <- _, _] <_ ? _> tt.
        """, Config),
    All = write("ours_all", ~"""
        said: per N over _ ? {_, N}, _ : _ ! {_, N} check [_ ? _] <_ : _ ! _> tt.
        all_end: per P over P ** _, P ? _ check [P ? _] [P ? _] ff.
        """, Config),
    Calls = write("ours_calls", ~"""
        again: with witness_log_agreement_SUITE:echo(_) over _ calls witness_log_agreement_SUITE:echo(_), _ ** _ check
          [_ calls witness_log_agreement_SUITE:echo(_)] ff.
        """, Config),
    [begin
         File = file(lists:concat(["attached_", Mode, $_, length(More), Suffix]), Config),
         Given = #{specs => [Ours | More], instrument => Mode, log => false},
         Old = [spawn(?MODULE, echo, [N]) || N <- [1, 2]],
         {ok, Run} = witness:start(Given#{system => {attach, Old}, log_file => File}),
         [P ! {self(), N} || N <- [1, 2], P <- Old],
         [receive {P, N} -> ok end || N <- [1, 2], P <- Old],
         [P ! End || {P, End} <- lists:zip(Old, [stop, spawn])],
         Live = ended(Run),
         ?assertMatch([_, _ | _], [V || #{verdict := no} = V <- Live]),
         ?assertEqual({Mode, More, Suffix, []}, {Mode, More, Suffix, differing(Live, checked(File, Given))}),
         {ok, Log} = file:read_file(File),
         #{items := Items} = witness_log:parse(Log, witness_log:parser(#{format => element(2, witness_log:format_of(File))})),
         ?assertEqual(lists:sort(Old), lists:sort([P || {_, {attached, P, {?MODULE, echo, 1}, _}} <- Items]))
     end || {Mode, More} <- [{outline, []}, {central, [All]}, {central, [All, Calls]}], Suffix <- [".log", ".jsonl"]].

echo(_) ->
    receive stop -> ok;
            spawn -> spawn(?MODULE, answers, [self(), 1, done]);
            {From, N} -> From ! {self(), N}, echo(N)
    end.

%% Each child begins a tree, and its parent is not read.
children_of_others_are_the_same_in_a_log(Config) ->
    Specs = [{Mode, write(Name, Text, Config)} || {Mode, Name, Text} <- properties()],
    [begin
         File = file(lists:concat(["children_", Mode, $_, Scope, ".log"]), Config),
         Given = #{specs => [Spec || {Of, Spec} <- Specs, Of =:= any orelse Of =:= Mode], instrument => Mode, log => false},
         Parents = [spawn_link(?MODULE, parent, [self()]) || _ <- [1, 2]],
         {ok, Run} = witness:start(Given#{system => {children, Parents}, duration => 1000, scope => Scope, source => Source,
                                          log_file => File}),
         Told = [begin P ! {spawn, How}, receive {P, ended} -> P end end || {P, How} <- lists:zip(Parents, [done, open])],
         Live = ended(Run),
         ?assertMatch([_ | _], [V || #{verdict := no} = V <- Live]),
         ?assertEqual({Source, Mode, Scope, []},
                      {Source, Mode, Scope, differing(Live, checked(File, Given))}),
         [P ! stop || P <- Told]
     end || Source <- sources(), Mode <- [outline, central], Scope <- [tree, node]].

parent(Tester) ->
    receive {spawn, How} -> {P, Ref} = spawn_monitor(?MODULE, asks, [How]), receive {'DOWN', Ref, process, P, _} -> ok end end,
    Tester ! {self(), ended},
    receive stop -> ok end.

%% The guard and the pattern would take the atom in place of the argument for one.
what_is_not_known_of_a_process_decides_nothing(Config) ->
    Spec = write("unknown", ~"""
        guarded: with m:w(N) when N > 0 check [_ <- _, _] [_ ? stop] ff.
        named: with m:w(a) check [_ <- _, _] [_ ? stop] ff.
        used: with m:w(N) check [_ <- _, _] <_ ? N> tt.
        any: with m:w(_) check [_ <- _, _] [_ ? stop] ff.
        grouped: with m:g() group check [_ <- _, _] [_ ? stop] ff.
        """, Config),
    File = file("unknown.log", Config),
    [begin
         ok = file:write_file(File, ["receives(delivered)\n", Begin, "recv(\"p\",stop)\nexit(\"p\",normal)\n"]),
         {ok, Run} = witness:start(#{specs => [Spec], instrument => Mode, log => false, system => {log, {file, File}}}),
         {ok, #{outcome := Outcome}} = witness:await(Run, ?RUN_TIMEOUT),
         ?assertEqual({Begin, Expected}, {Begin, {Outcome, lists:sort([{Name, V, R} || #{name := Name, verdict := V, reason := R}
                                                                                       <- witness:verdicts(Run)])}}),
         {ok, _} = witness:stop(Run)
     end || Mode <- [outline, central],
            {Begin, Expected} <-
                [{"attached(\"p\",{m,w,1})\n", {violated, [{~"any", no, undefined} | [{Name, inconclusive, {gap, unknown_signature}}
                                                                                     || Name <- [~"guarded", ~"named", ~"used"]]]}},
                 {"init(\"p\",_,{m,w,[1]})\n", {violated, [{~"any", no, undefined}, {~"guarded", no, undefined},
                                                           {~"used", no, undefined}]}},
                 {"attached(\"p\",{m,g,0})\n", {untrusted, [{~"grouped", inconclusive, {gap, orphan}}]}}]].

checked(File, Given) ->
    {ok, Run} = witness:start(Given#{system => {log, {file, File}}}),
    ended(Run).

ended(Run) ->
    {ok, _} = witness:await(Run, ?RUN_TIMEOUT),
    Verdicts = compared(witness:verdicts(Run)),
    {ok, _} = witness:stop(Run),
    Verdicts.

asks(How) ->
    How =:= quiet andalso register(?MODULE, self()),
    Workers = [spawn(?MODULE, answers, [self(), N, How]) || N <- [1, 2]],
    [P ! {ask, self(), N} || {N, P} <- lists:enumerate(Workers)],
    Refs = [monitor(process, P) || P <- Workers],
    [receive {'DOWN', Ref, _, _, _} -> ok end || Ref <- Refs],
    ok.

%% If it is quiet, it waits for the end of its parent.
answers(Parent, N, How) ->
    Ref = monitor(process, Parent),
    receive {ask, From, N} when How =:= done; N =:= 1 -> From ! {answer, N};
            {ask, _, _} when How =:= crashed -> exit(on_purpose);
            {ask, _, _} when How =:= open -> ok;
            {ask, _, _} -> receive {'DOWN', Ref, process, _, _} -> ok end;
            {'DOWN', Ref, process, _, _} -> ok
    end.

%% --- what else a log does --------------------------------------------------------

a_log_changes_nothing_else(Config) ->
    [begin
         {Verdicts, Without} = live(system(office), #{source => Source}),
         {Logged, With} = live(system(office), #{source => Source, log_file => file("nothing_else.log", Config)}),
         ?assertEqual(witness_sys:counts(Verdicts), witness_sys:counts(Logged)),
         ?assertEqual(lasting(Without), lasting(With))
     end || Source <- sources()].

%% What does not differ from run to run.
lasting(#{coverage := Coverage} = Summary) ->
    Properties = [{Spec, Name, length(Actions)} || #{spec := Spec, name := Name, actions := Actions} <- Coverage],
    (maps:without([elapsed_ms, tracers, events], Summary))#{coverage := Properties}.

what_writes_the_log_does_not_show(Config) ->
    Self = self(),
    File = file("hidden.log", Config),
    [begin
         {ok, Run} = witness:start(#{system => {?MODULE, waiting, [Self]}, source => Source, log => false,
                                     log_file => File, on_verdict => fun(V) -> Self ! {verdict, V} end}),
         {ok, Ref} = witness:subscribe(Run),
         P = receive {waiting, P0} -> P0 end,
         logged(~"{waiting,", File),
         [_] = writers(P),
         ?assertMatch(#{monitors := 0}, witness:info(Run)),
         P ! go,
         {ok, Summary} = witness:await(Run, ?RUN_TIMEOUT),
         ?assertMatch(#{monitored := 0, slices := 0, coverage := [], warnings := [], outcome := untrusted,
                        verdicts := #{no := 0, yes := 0, inconclusive := 0}}, Summary),
         ?assertEqual([], witness:verdicts(Run)),
         receive {witness, Ref, Told} -> ?assertEqual({summary, Summary}, Told) end,
         receive {verdict, _} = Verdict -> error(Verdict) after 0 -> ok end,
         {ok, _} = witness:stop(Run),
         ?assertMatch({ok, #file_info{mode = Mode}} when Mode band 8#777 =:= 8#600, file:read_file_info(File))
     end || Source <- sources()].

a_log_that_cannot_be_written_starts_nothing(Config) ->
    Dir = proplists:get_value(priv_dir, Config),
    Files = [Dir | [filename:join(Dir, Name) || Name <- ["nowhere/a.log", "a.log.gz"]]],
    [begin
         {error, {witness_run_start, {log, Text}} = Reason} =
             witness:start(#{system => {?MODULE, started, [self()]}, log_file => File}),
         ?assertNotEqual(nomatch, string:find(Text, filename:basename(File))),
         ?assertEqual(Text, witness:format_error(Reason))
     end || File <- Files],
    receive started -> error(started) after 0 -> ok end,
    ?assertEqual([], filelib:wildcard(filename:join(Dir, "*.new"))).

an_earlier_log_stays_until_the_run_is_started(Config) ->
    File = file("earlier.log", Config),
    ok = file:write_file(File, "earlier\n"),
    Wrong = file("wrong.hml", Config),
    ok = file:write_file(Wrong, "wrong"),
    Options = #{system => {?MODULE, started, [self()]}, log => false, log_file => File},
    {error, {witness_spec, _}} = witness:start(Options#{specs => [Wrong]}),
    ?assertEqual({ok, ~"earlier\n"}, file:read_file(File)),
    {ok, Run} = witness:start(Options),
    {ok, _} = witness:await(Run, ?RUN_TIMEOUT),
    {ok, _} = witness:stop(Run),
    {ok, Written} = file:read_file(File),
    ?assertMatch({match, _}, re:run(Written, ~"^receives\\(delivered\\)\nclock\\(-?[0-9]+\\)\n@-?[0-9]+ root\\(<[0-9.]+>\\)\n@-?[0-9]+ init\\(")),
    ?assertEqual([], filelib:wildcard(File ++ ".*")).

a_full_disk_leaves_the_run_untrusted(_) ->
    {Verdicts, Summary} = live(system(calc), #{log_file => "/dev/full"}),
    ?assertEqual(witness_sys:expected(system(calc)), witness_sys:counts(Verdicts)),
    #{outcome := untrusted, warnings := [#{code := log_incomplete, text := Text}]} = Summary,
    ?assertNotEqual(nomatch, string:find(Text, "/dev/full: no space left on device")).

a_log_that_is_too_large_leaves_the_run_untrusted(Config) ->
    File = file("small.log", Config),
    {Verdicts, Summary} = live(system(calc), #{log_file => File, log_size => 300}),
    ?assertEqual(witness_sys:expected(system(calc)), witness_sys:counts(Verdicts)),
    #{outcome := untrusted, warnings := [#{code := log_incomplete, text := Text}]} = Summary,
    ?assertNotEqual(nomatch, string:find(Text, "small.log: it may not become larger (log_size)")),
    ?assert(filelib:file_size(File) =< 300).

%% A message that is too large for the native source is a gap.
where_events_are_missing_the_log_says_so(Config) ->
    case witness_trace_native:available() of
        ok ->
            File = file("gap.log", Config),
            {ok, Run} = witness:start(#{system => {?MODULE, waiting, [self()]}, source => native, message_size => 4000,
                                        log => false, log_file => File}),
            P = receive {waiting, P0} -> P0 end,
            %% What is buffered is part of the gap: the child is known once its birth was read.
            logged(~"{waiting,", File),
            P ! lists:seq(1, 1000),
            P ! go,
            incomplete(P, message_size, "larger", File, witness:await(Run, ?RUN_TIMEOUT)),
            {ok, _} = witness:stop(Run);
        {error, _} -> {skip, "only the native source has a limit"}
    end.

what_writes_the_log_may_crash(Config) ->
    File = file("crash.log", Config),
    [begin
         {ok, Run} = witness:start(#{system => {?MODULE, waiting, [self()]}, source => Source, log => false,
                                     log_file => File}),
         P = receive {waiting, P0} -> P0 end,
         logged(~"{waiting,", File),
         [Writer] = writers(P),
         Ref = monitor(process, Writer),
         exit(Writer, kill),
         receive {'DOWN', Ref, process, Writer, _} -> ok end,
         P ! go,
         incomplete(P, monitor_crashed, "crashed", File, witness:await(Run, ?RUN_TIMEOUT)),
         {ok, _} = witness:stop(Run)
     end || Source <- sources()].

%% Waits until the log has a text.
logged(Text, File) ->
    witness_await:until(fun() ->
        {ok, Log} = file:read_file(File),
        binary:match(Log, Text) =/= nomatch
    end).

%% Each process that was alive has a gap, so the monitored ones are undecided.
incomplete(P, Reason, Word, File, {ok, Summary}) ->
    #{outcome := untrusted, warnings := Warnings} = Summary,
    [Text] = [Text || #{code := log_incomplete, text := Text} <- Warnings],
    ?assertNotEqual(nomatch, string:find(Text, Word)),
    {ok, Log} = file:read_file(File),
    #{items := Items} = witness_log:parse(Log, witness_log:parser(#{format => text})),
    Gaps = [Item || {_, Item} <- Items, element(1, Item) =:= gap],
    ?assertEqual(Gaps, lists:nthtail(length(Items) - length(Gaps), [Item || {_, Item} <- Items])),
    ?assertMatch([{gap, _, Reason, unknown, undefined}, {gap, _, Reason, unknown, undefined}], Gaps),
    Patient = #{specs => [], monitors => [{{?MODULE, waiting, 1}, {witness_sys_faulty, undecided}}]},
    %% The gaps of a log are counted, even those that no monitor reads.
    {[#{verdict := inconclusive, process := P, reason := {gap, Reason}}], #{outcome := untrusted, gaps := 2, missing := [_, _]}} =
        offline(Patient, File, #{}).

%% Of a process that was there before only the births of its children are known.
processes_of_a_node(Config) ->
    Self = self(),
    File = file("node.log", Config),
    [begin
         Old = spawn_link(fun() ->
             receive {spawn, Args} -> spawn(?MODULE, waiting, Args) end,
             receive stop -> ok end
         end),
         Monitor = {{?MODULE, waiting, 1}, {witness_sys_faulty, undecided}},
         {ok, Run} = witness:start(#{system => {?MODULE, waiting, [Self]}, scope => node, source => Source,
                                     log => false, log_file => File, monitors => [Monitor], halt => false,
                                     on_verdict => fun(#{process := P}) -> Self ! {ended, P} end}),
         P1 = receive {waiting, Q1} -> Q1 end,
         Old ! {spawn, [Self]},
         P2 = receive {waiting, Q2} -> Q2 end,
         [begin P ! go, receive {ended, P} -> ok end end || P <- [P1, P2]],
         {ok, _} = witness:stop(Run),
         Old ! stop,
         {Found, #{outcome := ok}} = offline(#{specs => [], monitors => [Monitor]}, File, #{}),
         ?assertEqual(lists:sort([P1, P2]), lists:sort([P || #{process := P, reason := undefined} <- Found])),
         {ok, Log} = file:read_file(File),
         #{items := Items} = witness_log:parse(Log, witness_log:parser(#{format => text})),
         ?assertMatch([{root, P2, _}, {init, P2, Old, {?MODULE, waiting, [_]}, _} | _],
                      [Item || {_, Item} <- Items, element(1, Item) =/= receives, element(2, Item) =:= P2]),
         ?assertEqual([], [Item || {_, Item} <- Items, element(2, Item) =:= Old])
     end || Source <- sources()].

a_log_of_a_log_is_refused(_) ->
    ?assertEqual({error, {witness_options, {not_for_logs, log_file}}},
                 witness:start(#{system => {log, {file, "a.log"}}, log_file => "b.log"})).

%% --- systems ---------------------------------------------------------------------

system(Name) ->
    [System] = [System || #{name := Other} = System <- witness_sys:all(), Other =:= Name],
    System.

%% The processes that write what this process and its descendants do.
writers(P) ->
    [Pid || Pid <- processes(), proc_lib:get_label(Pid) =:= {witness_monitor, witness_monitor_log, P}].

waiting(Tester) ->
    Child = spawn(fun() -> receive stop -> ok end end),
    Tester ! {waiting, self()},
    receive go -> Child ! stop end.

started(Tester) -> Tester ! started.
