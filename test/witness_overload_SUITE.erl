-module(witness_overload_SUITE).
-moduledoc """
Monitors and tracers that cannot keep up (promise 2): buffers stay within their budget, the system does what it does, what is
missing is told, and no verdict is wrong. Over `evm`, where the budget is sampled, what goes beyond it is bounded. And limits
that a user has set are kept. `bench/overload` is the large one.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [{group, native}, {group, evm}, {group, native_limits}, {group, evm_limits}].

groups() ->
    Limits = [too_many_events_a_second_end_the_run, too_long_ends_the_run_as_planned, a_message_that_is_too_large_is_a_gap],
    [{native, [], [sleeping_monitors_miss_events_and_say_so, busy_monitors_miss_events_and_say_so, a_partition_has_its_own_bound,
                   an_event_that_never_fits_is_a_gap, later_partitions_have_the_room_of_earlier_ones]},
     {evm, [], [slow_monitors_stay_within_the_budget, monitors_that_never_return_do, a_monitor_that_falls_behind_ends_alone,
                a_monitor_that_grows_ends_alone, a_monitor_that_does_not_want_to_end_ends]},
     {native_limits, [], Limits},
     {evm_limits, [], Limits}].

init_per_group(Group, Config) when Group =:= native; Group =:= native_limits -> witness_source:init(native, Config);
init_per_group(_, Config) -> witness_source:init(evm, Config).

end_per_group(_, _) -> ok.

%% --- the load --------------------------------------------------------------------

sleeping_monitors_miss_events_and_say_so(_) ->
    misses_are_told({gap, memory}, #{load => {600, 200, 50}, pace => {sleeping, 10}, memory => 1 bsl 20}).

busy_monitors_miss_events_and_say_so(_) ->
    misses_are_told({gap, memory}, #{load => {300, 100, 50}, pace => witness_overload:busy(), memory => 1 bsl 20}).

a_partition_has_its_own_bound(_) ->
    misses_are_told({gap, overflow}, #{load => {100, 50, 50}, pace => {sleeping, 10}, memory => 1 bsl 26,
                                       partition_memory => 1 bsl 13}).

misses_are_told(Reason, Options) ->
    R = witness_overload:run(Options#{drain => 500}),
    ct:pal("~p", [R]),
    #{bytes := Bytes, budget := Budget, samples := Samples, reasons := Reasons, summary := Summary, load := {Workers, _, _}} =
        maps:merge(Options, R),
    ?assert(Samples > 0),
    ?assert(Bytes =< Budget),
    %% What is full when the load ends has been seen. A partition beyond its own bound is empty at once: no sample need see it.
    [?assert(Bytes > 0) || Reason =:= {gap, memory}],
    #{Reason := Gaps} = Reasons,
    ?assertEqual([], maps:keys(Reasons) -- [Reason, {crashed, overdue}]),
    Undecided = lists:sum(maps:values(Reasons)),
    Decided = Workers - Undecided,
    ?assertMatch(#{gaps := Gaps, monitored := Workers, outcome := untrusted, system := normal,
                   verdicts := #{no := 0, inconclusive := Undecided, yes := Decided}}, Summary),
    Named = [Text || #{code := Code, text := Text} <- maps:get(warnings, Summary), Code =:= gap orelse Code =:= memory],
    ?assertMatch([_], Named),
    ?assertMatch({match, _}, re:run(Named, ["\\b", integer_to_list(Gaps), "\\b"])).

%% --- the load over evm -----------------------------------------------------------

-define(BUDGET, (32 bsl 20)).
%% What may be beyond it: what comes between two looks, and until the tracers have ended (measured: up to 34 MB).
-define(OVERSHOOT, (64 bsl 20)).

slow_monitors_stay_within_the_budget(_) -> bounded({sleeping, 1}).

monitors_that_never_return_do(_) -> bounded(never).

%% The load finds by itself that it has done what it always does.
bounded(Pace) ->
    R = witness_overload:run(#{source => evm, load => {2000, 500, 50}, pace => Pace, memory => ?BUDGET, drain => 500}),
    ct:pal("~p", [R]),
    #{bytes := Bytes, reasons := Reasons, summary := #{warnings := Warnings, gaps := Gaps} = Summary} = R,
    ?assert(Bytes < ?BUDGET + ?OVERSHOOT),
    ?assertMatch(#{outcome := untrusted, verdicts := #{no := 0, yes := 0, inconclusive := Gaps}}, Summary),
    ?assertEqual(#{{gap, memory} => Gaps}, Reasons),
    ?assertMatch([_ | _], [Text || #{code := memory, text := Text} <- Warnings]).

a_monitor_that_falls_behind_ends_alone(_) -> ends_alone(slow).

a_monitor_that_grows_ends_alone(_) -> ends_alone(growing).

a_monitor_that_does_not_want_to_end_ends(_) -> ends_alone(trapping).

%% What it does not read takes more and more, until it ends. Its process goes no further than another monitor has read, so no
%% tracer is ever behind.
ends_alone(How) ->
    {Verdicts, Summary} = run(evm, {?MODULE, walk, [1]}, #{
        memory => ?BUDGET, monitors => [{{?MODULE, walk, 1}, {?MODULE, How}}, {{?MODULE, walk, 1}, {?MODULE, guide}}],
        on_verdict => fun(#{verdict := inconclusive, process := P}) -> P ! stop; (_) -> ok end}),
    Reason = case How of trapping -> {crashed, killed}; _ -> {gap, memory} end,
    ?assertEqual([{walk, inconclusive, Reason}, {walk, yes, undefined}], lists:sort(Verdicts)),
    ?assertMatch(#{outcome := untrusted, system := normal}, Summary).

walk(N) ->
    Message = {N, lists:seq(1, 1000)},
    self() ! Message,
    receive Message -> ok end,
    receive
        {go_on, N} -> walk(N + 1);
        stop -> ok
    end.

%% --- limits ----------------------------------------------------------------------

too_many_events_a_second_end_the_run(Config) ->
    {Verdicts, Summary} = run(source(Config), {?MODULE, endless, [self()]},
                              #{rate => 100, monitors => [{{?MODULE, endless, 1}, {?MODULE, all}}]}),
    goes_on(),
    ?assertEqual([{endless, inconclusive, {gap, rate}}], Verdicts),
    ?assertMatch(#{outcome := untrusted, warnings := [#{code := rate}, #{code := rate}]}, Summary).

too_long_ends_the_run_as_planned(Config) ->
    {Verdicts, Summary} = run(source(Config), {?MODULE, waiting, [self()]},
                              #{duration => 50, monitors => [{{?MODULE, waiting, 1}, {?MODULE, all}}]}),
    goes_on(),
    ?assertEqual([{waiting, inconclusive, stopped}], Verdicts),
    ?assertMatch(#{outcome := ok, gaps := 0, warnings := [#{code := duration}]}, Summary).

goes_on() ->
    System = receive {system, P} -> P end,
    ?assert(is_process_alive(System)),
    exit(System, kill).

endless(Test) ->
    Test ! {system, self()},
    (fun Loop() -> self() ! more, receive more -> Loop() end end)().

waiting(Test) ->
    Test ! {system, self()},
    receive never -> ok end.

a_message_that_is_too_large_is_a_gap(Config) ->
    {Verdicts, Summary} = run(source(Config), {?MODULE, talkers, []},
                              #{message_size => 8000, monitors => [{{?MODULE, talker, 1}, {?MODULE, all}}]}),
    Gap = {talker, inconclusive, {gap, message_size}},
    ?assertEqual([Gap, Gap, Gap, {talker, yes, undefined}, {talker, yes, undefined}], lists:sort(Verdicts)),
    ?assertMatch(#{outcome := untrusted, gaps := 3, system := normal, warnings := [#{code := message_size}]}, Summary).

talkers() ->
    Large = lists:seq(1, 1000),
    [begin
         {P, Ref} = spawn_monitor(?MODULE, talker, [length(Messages)]),
         [P ! M || M <- Messages],
         receive {'DOWN', Ref, process, P, _} -> ok end
     end || Messages <- [[1, 2], [1, Large, 2], [Large], [binary:copy(<<0>>, 16_000)], [lists:seq(1, 400)]]].

talker(0) -> ok;
talker(N) -> receive _ -> talker(N - 1) end.

source(Config) -> proplists:get_value(source, Config).

run(Source, System, Options) ->
    {ok, Run} = witness:start(maps:merge(#{system => System, source => Source, log => false}, Options)),
    {ok, Summary} = witness:await(Run, infinity),
    Verdicts = [{F, V, Reason} || #{verdict := V, reason := Reason, signature := {_, F, _}} <- witness:verdicts(Run)],
    {ok, _} = witness:stop(Run),
    {Verdicts, Summary}.

%% --- one after the other ---------------------------------------------------------

-define(MEMORY, 1 bsl 20).

an_event_that_never_fits_is_a_gap(_) ->
    {Verdicts, Summary} = in_turn([{hog, 1, 2 * ?MEMORY}]),
    ?assertMatch([{hog, inconclusive, {gap, overflow}}], Verdicts),
    ?assertMatch(#{gaps := 1, outcome := untrusted, system := normal}, Summary).

%% What a partition with a gap held is free for others.
later_partitions_have_the_room_of_earlier_ones(_) ->
    {Verdicts, Summary} = in_turn([{hog, 3000, 1000}, {hog, 3000, 1000}, {guest, 40, 1000}, {guest, 40, 1000},
                                   {hog, 3000, 1000}, {guest, 40, 1000}]),
    ?assertMatch([{hog, inconclusive, {gap, _}}, {hog, inconclusive, {gap, _}}, {guest, yes, undefined}, {guest, yes, undefined},
                  {hog, inconclusive, {gap, _}}, {guest, yes, undefined}], Verdicts),
    ?assertMatch(#{gaps := 3, outcome := untrusted, system := normal}, Summary).

%% Each process sends itself so many messages of so many words and ends, and the next starts when the verdict on it is out.
in_turn(Processes) ->
    Self = self(),
    {ok, Run} = witness:start(#{system => {?MODULE, system, [Self, Processes]}, source => native, log => false,
                                memory => ?MEMORY, partition_memory => ?MEMORY,
                                monitors => [{{?MODULE, F, 2}, {?MODULE, F}} || F <- [hog, guest]],
                                on_verdict => fun(V) -> Self ! V end}),
    System = receive {system, P} -> P end,
    Verdicts = [receive
                    #{verdict := Verdict, reason := Reason, signature := {_, Kind, _}} ->
                        System ! next,
                        {Kind, Verdict, Reason}
                end || _ <- Processes],
    {ok, Summary} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run),
    {Verdicts, Summary}.

system(Test, Processes) ->
    Test ! {system, self()},
    lists:foreach(fun({Kind, Messages, Words}) ->
        spawn(?MODULE, Kind, [Messages, Words]),
        receive next -> ok end
    end, Processes).

hog(Messages, Words) -> talk(Messages, Words).

guest(Messages, Words) -> talk(Messages, Words).

talk(Messages, Words) ->
    lists:foreach(fun(N) ->
        self() ! {N, lists:duplicate(Words div 2, N)},
        receive {N, _} -> ok end
    end, lists:seq(1, Messages)).

%% The monitors: that of a hog is slow, that of a guest counts.
init({_, hog, _}, _, hog) -> {ok, hog};
init({_, walk, _}, _, growing) -> {ok, []};
init({_, walk, _}, _, trapping) -> process_flag(trap_exit, true), {ok, slow};
init({_, walk, _}, _, How) -> {ok, How};
init(_, _, all) -> {ok, all};
init({_, guest, [Messages, _]}, _, guest) -> {ok, {guest, 2 * Messages + 1}}.

handle_event({recv, P, P, {N, _}, _}, guide) -> P ! {go_on, N}, {ok, guide};
handle_event({exit, _, _, _}, State) when State =:= guide; State =:= all -> {verdict, yes, complete};
handle_event(_, State) when State =:= guide; State =:= all -> {ok, State};
handle_event(E, Events) when is_list(Events) -> {ok, [E | Events]};
handle_event(_, slow) -> receive never -> ok end;
handle_event({exit, _, _, _}, hog) -> {verdict, no, nothing_was_missing};
handle_event(_, hog) -> receive after 1 -> {ok, hog} end;
handle_event({exit, _, _, _}, {guest, 0}) -> {verdict, yes, complete};
handle_event({exit, _, _, _}, {guest, Left}) -> {verdict, no, {missing, Left}};
handle_event(_, {guest, Left}) -> {ok, {guest, Left - 1}}.
