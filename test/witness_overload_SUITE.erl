-module(witness_overload_SUITE).
-moduledoc """
Monitors that cannot keep up (promise 2, over the native source): buffers stay within their
budget, the system does what it does, what is missing is told, and no verdict is wrong.
`bench/overload` is the large one.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [sleeping_monitors_miss_events_and_say_so, busy_monitors_miss_events_and_say_so, a_partition_has_its_own_bound,
          an_event_that_never_fits_is_a_gap, later_partitions_have_the_room_of_earlier_ones].

init_per_suite(Config) ->
    case witness_trace_native:available() of
        ok -> Config;
        {error, Reason} -> {skip, unicode:characters_to_list(Reason)}
    end.

end_per_suite(_) -> ok.

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
    ?assert(Bytes > 0),
    ?assert(Bytes =< Budget),
    #{Reason := Gaps} = Reasons,
    ?assertEqual([], maps:keys(Reasons) -- [Reason, {crashed, overdue}]),
    Undecided = lists:sum(maps:values(Reasons)),
    Decided = Workers - Undecided,
    ?assertMatch(#{gaps := Gaps, monitored := Workers, outcome := untrusted, system := normal,
                   verdicts := #{no := 0, inconclusive := Undecided, yes := Decided}}, Summary),
    Named = [Text || #{code := gap, text := Text} <- maps:get(warnings, Summary)],
    ?assertMatch([_], Named),
    ?assertMatch({match, _}, re:run(Named, ["\\b", integer_to_list(Gaps), "\\b"])).

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
init({_, guest, [Messages, _]}, _, guest) -> {ok, {guest, 2 * Messages + 1}}.

handle_event({exit, _, _, _}, hog) -> {verdict, no, nothing_was_missing};
handle_event(_, hog) -> receive after 1 -> {ok, hog} end;
handle_event({exit, _, _, _}, {guest, 0}) -> {verdict, yes, complete};
handle_event({exit, _, _, _}, {guest, Left}) -> {verdict, no, {missing, Left}};
handle_event(_, {guest, Left}) -> {ok, {guest, Left - 1}}.
