-module(witness_bench_run_SUITE).
-moduledoc "One benchmark: every mode once, small; a tool of another make; what goes wrong, and what is left behind then.".
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-define(IDLER, witness_bench_idler).

-compile(export_all).

-define(EVENT, 30_000).

all() -> [{group, native}, {group, evm}, every_result_is_json, idle_times_are_those_of_the_system, a_rival_is_a_mode,
          a_rival_that_loses_events_is_unsound, a_rival_that_tells_of_gaps_is_not,
          a_rival_that_forgets_monitors_is_unsound, without_verdicts_soundness_is_not_known,
          what_a_rival_returns_is_checked, a_rival_that_fails_is_an_error_and_leaves_nothing, what_crashes_is_an_error,
          the_limit_of_time_strikes_here, a_caller_that_dies_leaves_nothing,
          a_vm_that_ends_is_an_error, a_vm_that_hangs_is_ended, a_vm_that_stands_still_is_killed,
          a_vm_ends_with_its_caller, a_vm_that_does_not_start_is_an_error, what_is_wrong_is_told].

groups() ->
    [{native, [], [every_mode_measures_the_same_system]}, {evm, [], [every_mode_measures_the_same_system]}].

suite() -> [{timetrap, {minutes, 3}}].

init_per_group(Source, Config) -> witness_source:init(Source, Config).

end_per_group(_, _) -> ok.

%% 60 workers of about ten requests within a fifth of a second.
model() -> #{~"n" => 60, ~"w" => 10, ~"t" => 2, ~"period_ms" => 100}.

%% Each in a VM of its own, over what a source is for.
every_mode_measures_the_same_system(Config) ->
    Modes = case proplists:get_value(source, Config) of
        native -> [untraced, outline_native, central_native, inline];
        evm -> [outline_evm, central_evm, inline_members]
    end,
    Results = [{Mode, fresh(#{mode => Mode, samples => samples(Mode, Config), interval => 20}, 1)} || Mode <- Modes],
    [{_, #{messages := Messages}} | _] = Results,
    lists:foreach(fun({Mode, Result}) ->
        #{response := Response, lag := Lag, windows := #{system := System, monitors := Monitors}} = Result,
        ?assertMatch({Mode, #{members := 60, messages := Messages, sound := true, gaps := 0, seed := 1}}, {Mode, Result}),
        #{duration_ms := Duration, done_ms := Done, cpu_ms := Cpu} = Result,
        %% The last worker is created after the first unit of time.
        ?assert(Duration > 100 andalso Done >= Duration andalso Cpu >= 0),
        #{mean_ns := Mean, p50 := P50, p99 := P99, max := Max, count := Count, unclosed := 0} = Response,
        ?assert(Count > 0 andalso Mean > 0 andalso P50 =< P99 andalso P99 =< Max),
        ?assertMatch(#{max := LagMax} when LagMax > 0, Lag),
        [begin
             #{memory_mean := M, memory_peak := Peak, utilisation := U, utilisations := [U], run_queue := Q} = Window,
             ?assert(M > 1.0e6 andalso Peak >= M andalso U > 0 andalso U =< 100 andalso Q >= 0)
         end || Window <- [System, Monitors]],
        ?assert(maps:get(duration_ms, Monitors) >= maps:get(duration_ms, System)),
        {ok, Text} = file:read_file(samples(Mode, Config)),
        ?assert(length(binary:matches(Text, ~"\n")) > 4),
        ?assertEqual({Mode, expected(Mode)}, {Mode, maps:get(verdicts, Result)}),
        %% The master's events, and those of its workers: a message is sent and received, a worker is spawned, born and ends.
        Workers = Messages + 2 * 60,
        ?assertEqual({Mode, case Mode of
                                untraced -> 0;
                                inline_members -> Workers;
                                _ -> Workers + Messages + 60 + 2
                            end}, {Mode, maps:get(analysed, Result)})
    end, Results).

expected(untraced) -> #{yes => 0, no => 0, inconclusive => 0};
expected(inline_members) -> #{yes => 60, no => 0, inconclusive => 0};
expected(_) -> #{yes => 61, no => 0, inconclusive => 0}.

samples(Mode, Config) -> filename:join(?config(priv_dir, Config), atom_to_list(Mode) ++ ".csv").

fresh(Config, Schedulers) ->
    case witness_bench_run:fresh(Config#{model => model()}, #{schedulers => Schedulers}) of
        {ok, Result} -> Result;
        {error, Reason} -> ct:fail("~ts", [witness:format_error(Reason)])
    end.

every_result_is_json(_) ->
    {ok, Result} = here(#{mode => outline_evm, analysis => none}),
    Text = iolist_to_binary(json:encode(Result)),
    ?assertMatch(#{~"response" := #{~"histogram" := [[_, _, _] | _]}, ~"sound" := true}, json:decode(Text)),
    #{response := #{histogram := Histogram, count := Count}} = Result,
    ?assertEqual(Count, lists:sum([N || [_, _, N] <- Histogram])),
    {ok, Plain} = here(#{collector => false, sample => 1.0}),
    ?assertMatch(#{windows := W, sound := true, events := 0} when map_size(W) =:= 0, Plain).

here(Config) -> witness_bench_run:run(Config#{model => model()}).

%% --- idle times ------------------------------------------------------------------

idle_times_are_those_of_the_system(_) ->
    Subject = #{system => fun(Measures) -> {?IDLER, measured, [Measures]} end, modules => [?IDLER],
                signatures => [#{signature => {?IDLER, server, 1}, role => member}],
                processes => #{root => 0, member => 1}},
    lists:foreach(fun(Mode) ->
        {ok, Checked} = witness_bench_run:check(#{mode => Mode, analysis => idle_time}),
        {ok, #{idle := Idle, duration_ms := Duration, sound := true}} = measured(Subject, Checked),
        #{mean_ns := Mean, count := Count, monitors := 1} = Idle,
        ct:pal("~w: ~p of ~w ms", [Mode, Idle, Duration]),
        %% The last message, `stop', comes at once.
        ?assertEqual(?IDLER:requests() + 1, Count),
        ?assert(Mean * Count >= ?IDLER:requests() * ?IDLER:pause() * 1.0e6),
        ?assert(Mean * Count =< Duration * 1.0e6)
    end, [inline, outline_evm, central_evm | [outline_native || witness_trace_native:available() =:= ok]]).

measured(Subject, Config) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({measured, witness_bench_measure:run(Subject, Config)}) end),
    receive
        {'DOWN', Ref, process, Pid, {measured, Result}} -> Result;
        {'DOWN', Ref, process, Pid, Reason} -> ct:fail(Reason)
    end.

%% --- another tool ----------------------------------------------------------------

rival(Options) -> #{mode => {adapter, witness_bench_rival}, options => Options}.

a_rival_is_a_mode(_) ->
    #{verdicts := Verdicts, analysed := Analysed, events := Events, gaps := 0, sound := true, messages := Messages} =
        fresh(rival(#{}), 2),
    ?assertEqual(#{yes => 61, no => 0, inconclusive => 0}, Verdicts),
    ?assertEqual(2 * Messages + 3 * 60 + 2, Analysed),
    %% But for that of the master, which it makes up.
    ?assertEqual(Analysed - 1, Events).

a_rival_that_loses_events_is_unsound(_) ->
    {error, {_, {unsound, _}} = Reason} = here(rival(#{lose => 500})),
    ?assertMatch({match, _}, re:run(witness:format_error(Reason), "^the trace was not sound: [{]")).

%% It still gives a result: each verdict is about events that were not missing.
a_rival_that_tells_of_gaps_is_not(_) ->
    {ok, #{gaps := 3, sound := false}} = here(rival(#{gaps => 3})),
    {ok, #{gaps := 7, sound := false}} = here(rival(#{gaps => 3, forget => 4})).

a_rival_that_forgets_monitors_is_unsound(_) ->
    {error, {_, {unsound, [Text]}}} = here(rival(#{forget => 4})),
    ?assertEqual("57 monitors for 61 processes, and no gap was told", lists:flatten(Text)),
    {error, {_, {unsound, [Single]}}} = here(rival(#{forget => 60})),
    ?assertEqual("1 monitor for 61 processes, and no gap was told", lists:flatten(Single)).

without_verdicts_soundness_is_not_known(_) ->
    {ok, Silent} = here(rival(#{silent => true})),
    ?assertMatch(#{gaps := 0, analysed := Analysed} when Analysed > 0, Silent),
    ?assertNot(is_map_key(sound, Silent)),
    ?assertNot(is_map_key(verdicts, Silent)),
    Benchmark = #{id => ~"one", mode_label => ~"rival", analysis_label => ~"sequence", shape => ~"steady", variant => ~"",
                  n => 60, w => 10, t => 2, seed => 1, repetition => 1},
    Row = witness_bench_result:row(Benchmark, ~"2026-01-01T00:00:00Z", 1, {ok, Silent}),
    ?assertMatch(#{status := ok, gaps := 0}, Row),
    ?assertNot(is_map_key(sound, Row)),
    ?assertMatch({ok, #{gaps := 3, sound := false}}, here(rival(#{silent => true, gaps => 3}))).

what_a_rival_returns_is_checked(_) ->
    Facts = fun(Changes) -> {ok, maps:merge(#{events => 0, gaps => 0}, Changes)} end,
    Wrong = "witness_bench_rival:await/1 returned facts ",
    [begin
         {error, Reason} = here(rival(Options)),
         ?assertEqual({Options, failed}, {Options, case Reason of {witness_bench_run, {mode, _}} -> failed; _ -> Reason end}),
         Text = unicode:characters_to_list(witness:format_error(Reason)),
         ?assertEqual({Options, Said}, {Options, lists:sublist(Text, length(Said))})
     end || {Options, Said} <-
                [{#{started => hello}, "witness_bench_rival:start/2 returned hello; expected {ok, State, First}, a process, or "},
                 {#{started => {ok, state, nobody}}, "witness_bench_rival:start/2 returned {ok,state,nobody}; expected "},
                 {#{started => {error, boom}}, "the tool says: boom"},
                 {#{found => hello}, "witness_bench_rival:await/1 returned hello; expected {ok, Facts} or {error, Text}"},
                 {#{found => {error, boom}}, "the tool says: boom"},
                 {#{found => {error, [1, 16#ffffffff]}}, "the tool says: [1,4294967295]"},
                 {#{found => {ok, #{gaps => 0}}}, Wrong ++ "without events; see the type facts() of witness_bench_adapter"},
                 {#{found => Facts(#{events => "x"})}, Wrong ++ "events => "},
                 {#{found => Facts(#{gaps => -1})}, Wrong ++ "gaps => -1; "},
                 {#{found => Facts(#{colour => red})}, Wrong ++ "colour => red; "},
                 {#{found => Facts(#{tracers => 1.5})}, Wrong ++ "tracers => 1.5; "},
                 {#{found => Facts(#{incomplete => maybe_so})}, Wrong ++ "incomplete => maybe_so; "},
                 {#{found => Facts(#{trouble => [boom]})}, Wrong ++ "trouble => [boom]; "},
                 {#{found => Facts(#{trouble => [~"one" | ~"two"]})}, Wrong ++ "trouble => "},
                 {#{found => Facts(#{verdicts => #{yes => 1, no => 0}})}, Wrong ++ "verdicts => "},
                 {#{found => Facts(#{verdicts => #{yes => 1, no => 0, inconclusive => -1}})}, Wrong ++ "verdicts => "}]].

a_rival_that_fails_is_an_error_and_leaves_nothing(_) ->
    Before = processes(),
    ?assertEqual({error, {witness_bench_run, {mode, ~"the rival does not start"}}}, here(rival(#{fault => start}))),
    ?assertEqual({error, {witness_bench_run, {mode, ~"the rival has lost its way"}}}, here(rival(#{fault => await}))),
    ?assertMatch({error, {witness_bench_run, {failed, {rival, [_ | _]}}}}, here(rival(#{fault => crash}))),
    %% No process goes on to sample, write or wait.
    ok = witness_await:until(fun() -> processes() -- Before =:= [] end).

%% --- what goes wrong -------------------------------------------------------------

what_crashes_is_an_error(_) ->
    {ok, Checked} = witness_bench_run:check(#{}),
    Subject = #{system => fun(_) -> {erlang, exit, [crash]} end, modules => [], signatures => [], processes => unknown},
    ?assertEqual({error, {system, crash}}, measured(Subject, Checked)),
    %% The crash of a monitor is not an error of the system.
    {ok, Idle} = witness_bench_run:check(#{mode => outline_evm, options => #{timestamps => false}, analysis => idle_time}),
    Server = #{system => fun(Measures) -> {?IDLER, measured, [Measures]} end, modules => [?IDLER],
               signatures => [#{signature => {?IDLER, server, 1}, role => member}], processes => unknown},
    {error, {unsound, [Text]}} = measured(Server, Idle),
    ?assertMatch({match, _}, re:run(Text, "a monitor has crashed: .*badarith")),
    ?assertMatch({error, {witness_bench_run, {samples, enoent}}}, here(#{samples => "/nowhere/at/all.csv"})).

the_limit_of_time_strikes_here(_) ->
    ?assertEqual({error, {witness_bench_run, {timeout, 300}}}, here((rival(#{fault => hang}))#{timeout => 300})).

%% The processes that measure, sample, write and wait in place of the caller end with it.
a_caller_that_dies_leaves_nothing(Config) ->
    Before = processes(),
    Self = self(),
    Caller = spawn(fun() -> here((rival(#{fault => hang, tell => Self}))#{samples => samples(left, Config)}) end),
    receive hanging -> ok after ?EVENT -> ct:fail(not_begun) end,
    Refs = [monitor(process, P) || P <- processes() -- Before],
    exit(Caller, kill),
    [receive {'DOWN', Ref, process, _, _} -> ok after ?EVENT -> ct:fail(left) end || Ref <- Refs].

a_vm_that_ends_is_an_error(Config) ->
    {Reason, Pid} = failed(#{fault => halt}, infinity, Config),
    ?assertEqual({witness_bench_run, {vm, {exit_status, 7}}}, Reason),
    ?assertEqual("its VM has ended with the exit status 7", lists:flatten(witness:format_error(Reason))),
    ?assertNot(is_alive(Pid)),
    {Killed, _} = failed(#{fault => kill}, infinity, Config),
    ?assertEqual("its VM was ended by the signal 9", lists:flatten(witness:format_error(Killed))).

a_vm_that_hangs_is_ended(Config) ->
    {Reason, Pid} = failed(#{fault => hang}, 2000, Config),
    ?assertMatch({witness_bench_run, {timeout, _}}, Reason),
    ?assertNot(is_alive(Pid)).

%% A stopped VM does not notice the end of its input.
a_vm_that_stands_still_is_killed(Config) ->
    {Reason, Pid} = failed(#{fault => stop}, 2000, Config),
    ?assertMatch({witness_bench_run, {timeout, _}}, Reason),
    ?assertNot(is_alive(Pid)).

%% If a VM needs longer than the limit to reach its fault, it gets more time.
failed(Fault, Timeout, Config) ->
    File = filename:join(?config(priv_dir, Config), "pid"),
    _ = file:delete(File),
    Given = (rival(Fault#{pid_file => File}))#{model => model(), timeout => Timeout},
    {error, Reason} = witness_bench_run:fresh(Given, #{}),
    case {Reason, file:read_file(File)} of
        {_, {ok, Pid}} -> {Reason, binary_to_list(Pid)};
        {{witness_bench_run, {timeout, Timeout}}, {error, enoent}} -> failed(Fault, 2 * Timeout, Config)
    end.

a_vm_ends_with_its_caller(Config) ->
    File = filename:join(?config(priv_dir, Config), "waiting"),
    Caller = spawn(fun() -> witness_bench_fresh:call(?MODULE, tell_and_wait, [File], #{timeout => infinity}) end),
    ok = witness_await:until(fun() -> filelib:is_regular(File) end),
    {ok, Pid} = file:read_file(File),
    ?assert(is_alive(binary_to_list(Pid))),
    exit(Caller, kill),
    ok = witness_await:until(fun() -> not is_alive(binary_to_list(Pid)) end).

tell_and_wait(File) ->
    ok = file:write_file(File ++ ".new", os:getpid()),
    ok = file:rename(File ++ ".new", File),
    receive never -> ok end.

is_alive(Pid) -> os:cmd("kill -0 " ++ Pid ++ " 2>&1") =:= "".

a_vm_that_does_not_start_is_an_error(_) ->
    {error, {witness_bench_run, {vm, _}} = Reason} = witness_bench_run:fresh(#{}, #{args => ["+no_such_flag"]}),
    ?assertMatch({match, _}, re:run(witness:format_error(Reason), "its VM has ended")).

what_is_wrong_is_told(_) ->
    [?assertEqual({Given, Text}, {Given, told(Given)})
     || {Given, Text} <-
            [{#{mode => unheard_of}, "mode of a benchmark: expected {adapter, Module} or one of untraced, inline_members, inline, "
                                     "central_native, central_evm, outline_native, outline_evm"},
             {#{mode => {adapter, lists}}, "the module lists is no adapter: it does not export start/2, await/1, stop/1 "
                                           "(see witness_bench_adapter)"},
             {#{mode => {adapter, no_such_module}}, "the adapter no_such_module cannot be loaded (nofile); is its folder on the "
                                                    "code path (--pa)?"},
             {#{analysis => {microseconds, -1}}, "analysis of a benchmark: expected a number of microseconds from 0 to 1000000"},
             {#{analysis => deep}, "analysis of a benchmark: expected none, sequence, idle_time or {microseconds, N}"},
             {#{interval => 0}, "interval of a benchmark: expected milliseconds, at least 1"},
             {#{sample => 2}, "sample of a benchmark: expected a number above 0, at most 1"},
             {#{timeout => soon}, "timeout of a benchmark: expected milliseconds, at least 1, or infinity"},
             {#{collector => yes}, "collector of a benchmark: expected true or false"},
             {#{samples => 7}, "samples of a benchmark: expected the name of a file, or none"},
             {#{options => []}, "options of a benchmark: expected a map"},
             {#{model => []}, "model of a benchmark: expected a map"},
             {#{colour => red}, "there is no key colour of a benchmark"},
             {[], "config of a benchmark: expected a map"},
             {#{model => #{~"n" => 0}}, "the model's n: a whole number from 1 to 10000000 is expected, not 0"}]],
    ?assertMatch({error, {witness_bench_run, {mode, _}}}, here(#{mode => outline_evm, options => #{memory => none}})),
    %% The limit of time is that of the benchmark.
    ?assertEqual({error, {witness_bench_run, {config, timeout, "no such key"}}}, witness_bench_run:fresh(#{}, #{timeout => 5})).

told(Given) ->
    {error, Reason} = witness_bench_run:run(Given),
    unicode:characters_to_list(witness:format_error(Reason)).
