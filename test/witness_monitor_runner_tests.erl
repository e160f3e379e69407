-module(witness_monitor_runner_tests).
-moduledoc """
One monitor in its process: what it reports, whatever it does. The monitor is this module;
its argument holds a function for each callback.
""".
-include_lib("eunit/include/eunit.hrl").

-export([init/3, handle_event/2, handle_end/2, describe/1, slice/2, instance/2, slice_names/1]).

%% --- the monitor -----------------------------------------------------------------

init(Signature, Process, #{init := Init} = Arg) ->
    case Init(Signature, Process) of
        ok -> {ok, Arg#{seen => []}};
        Other -> Other
    end;
init(_, _, #{names := _} = Arg) -> {slices, Arg};
init(_, _, #{slice := _} = Arg) -> {ok, Arg#{seen => []}, Arg};
init(_, _, Arg) -> {ok, Arg#{seen => []}}.

slice(E, #{slice := Slice}) -> Slice(E).

instance(Key, Arg) -> (maps:get(instance, Arg, fun(_) -> Arg#{seen => []} end))(Key).

slice_names(#{names := Names}) -> Names.

handle_event(E, State = #{seen := Seen}) ->
    case maps:get(event, State, fun(_) -> ok end) of
        Event ->
            case Event(E) of
                ok -> {ok, State#{seen := [E | Seen]}};
                Other -> Other
            end
    end.

handle_end(How, State = #{seen := Seen}) ->
    End = maps:get(ended, State, fun(_, _) -> {inconclusive, undecided} end),
    End(How, lists:reverse(Seen)).

describe(#{describe := Describe} = State) -> Describe(State);
describe(#{seen := Seen}) -> #{formula => integer_to_binary(length(Seen)), bindings => [{~"N", length(Seen)}]}.

%% --- verdicts --------------------------------------------------------------------

a_verdict_ends_the_monitor_test() ->
    [begin
         {Runner, Ref} = start(#{event => fun({exit, _, R, _}) -> {verdict, Verdict, R}; (_) -> ok end}),
         feed(Runner, [a, {exit, self(), why, 3}, b]),
         ?assertMatch(#{verdict := Verdict, reason := undefined, info := why, vacuous := false,
                        event := #{index := 2, event := {exit, _, why, 3}}, skipped := 0,
                        steps := [#{index := 1, formula := ~"1", bindings := [{~"N", 1}]},
                                  #{index := 2, formula := undefined, bindings := []}]},
                      outcome(Runner)),
         ?assertEqual(normal, down(Ref))
     end || Verdict <- [no, yes, inconclusive]].

a_monitor_gets_its_process_and_signature_test() ->
    Self = self(),
    {Runner, _} = start(#{init => fun({m, f, [1]}, P) when P =:= Self -> ignore end}),
    ?assertEqual(ignored, outcome(Runner)).

a_monitor_that_refuses_ends_without_a_verdict_test() ->
    {Runner, Ref} = start(#{init => fun(_, _) -> ignore end}),
    ?assertEqual(ignored, outcome(Runner)),
    ?assertEqual(normal, down(Ref)).

a_vacuous_yes_is_marked_test() ->
    {Runner, _} = start(#{event => fun(_) -> {verdict, yes, #{vacuous => true}} end}),
    feed(Runner, [a]),
    ?assertMatch(#{verdict := yes, vacuous := true}, outcome(Runner)).

what_the_end_decides_test() ->
    [begin
         {Runner, _} = start(#{ended => fun(E, Seen) -> {Verdict, {E, length(Seen)}} end}),
         feed(Runner, [a, b]),
         ok = witness_monitor_runner:How(Runner),
         Ended = case How of complete -> complete; stop -> stopped end,
         ?assertMatch(#{verdict := Verdict, reason := Reason, info := {Ended, 2}, event := undefined,
                        steps := [#{index := 1}, #{index := 2}]}, outcome(Runner))
     end || {How, Verdict, Reason} <- [{complete, yes, undefined}, {complete, no, undefined},
                                       {complete, inconclusive, undefined},
                                       {stop, no, undefined}, {stop, inconclusive, stopped}]].

without_handle_end_the_end_is_inconclusive_test() ->
    {Runner, _} = start(#{}, bare()),
    ok = witness_monitor_runner:complete(Runner),
    ?assertMatch(#{verdict := inconclusive, reason := undefined}, outcome(Runner)),
    {Stopped, _} = start(#{}, bare()),
    feed(Stopped, [a]),
    ok = witness_monitor_runner:stop(Stopped),
    ?assertMatch(#{verdict := inconclusive, reason := stopped, steps := [#{formula := undefined, bindings := []}]},
                 outcome(Stopped)).

%% --- monitors that misbehave -----------------------------------------------------

a_crash_anywhere_is_inconclusive_with_the_crash_test() ->
    Crash = fun(_) -> error(oops) end,
    Crash2 = fun(_, _) -> error(oops) end,
    [begin
         {Runner, Ref} = start(Arg),
         feed(Runner, [a]),
         ok = witness_monitor_runner:complete(Runner),
         ?assertMatch(#{verdict := inconclusive, reason := {crashed, {error, oops, [_ | _]}}, event := undefined},
                      outcome(Runner)),
         ?assertEqual(normal, down(Ref))
     end || Arg <- [#{init => Crash2}, #{event => Crash}, #{ended => Crash2}]].

throws_and_exits_are_crashes_too_test() ->
    [begin
         {Runner, _} = start(#{event => F}),
         feed(Runner, [a]),
         ?assertMatch(#{verdict := inconclusive, reason := {crashed, {Class, oops, _}}}, outcome(Runner))
     end || {Class, F} <- [{throw, fun(_) -> throw(oops) end}, {exit, fun(_) -> exit(oops) end}]].

the_event_at_which_a_monitor_crashed_is_the_last_step_test() ->
    {Runner, _} = start(#{event => fun({recv, _, _, bad, _}) -> error(oops); (_) -> ok end}),
    feed(Runner, [good, bad]),
    ?assertMatch(#{steps := [#{index := 1}, #{index := 2, event := {recv, _, _, bad, _}}]}, outcome(Runner)).

a_wrong_return_value_is_a_crash_test() ->
    [begin
         {Runner, _} = start(Arg),
         feed(Runner, [a]),
         ok = witness_monitor_runner:complete(Runner),
         ?assertMatch(#{verdict := inconclusive, reason := {crashed, {bad_return, Callback, Value}}}, outcome(Runner))
     end || {Callback, Value, Arg} <- [{init, nonsense, #{init => fun(_, _) -> nonsense end}},
                                       {handle_event, nonsense, #{event => fun(_) -> nonsense end}},
                                       {handle_event, {verdict, maybe_so, x}, #{event => fun(_) -> {verdict, maybe_so, x} end}},
                                       {handle_end, nonsense, #{ended => fun(_, _) -> nonsense end}}]].

a_description_that_crashes_leaves_the_verdict_test() ->
    {Runner, _} = start(#{describe => fun(_) -> error(oops) end}),
    feed(Runner, [a]),
    ok = witness_monitor_runner:stop(Runner),
    ?assertMatch(#{verdict := inconclusive, reason := stopped, steps := [#{formula := undefined, bindings := []}]},
                 outcome(Runner)).

a_runner_that_is_killed_is_seen_by_its_run_test() ->
    process_flag(trap_exit, true),
    {Runner, Ref} = start(#{}),
    ok = linked(Runner),
    exit(Runner, kill),
    ?assertEqual(killed, down(Ref)),
    receive {'EXIT', Runner, killed} -> ok end,
    process_flag(trap_exit, false).

a_runner_ends_with_its_run_test() ->
    Self = self(),
    {Run, RunRef} = spawn_monitor(fun() -> receive stop -> ok end end),
    Runner = witness_monitor_runner:start(spec(#{init => fun(_, _) -> Self ! started, ok end}, #{run => Run})),
    Ref = monitor(process, Runner),
    receive started -> ok end,
    exit(Run, kill),
    ?assertEqual(killed, down(RunRef)),
    ?assertEqual(killed, down(Ref)).

%% --- gaps ------------------------------------------------------------------------

at_a_gap_a_monitor_ends_inconclusive_and_sees_nothing_of_it_test() ->
    {Runner, _} = start(#{ended => fun(_, _) -> {yes, wrong} end}),
    feed(Runner, [a]),
    ok = witness_monitor_runner:report_gap(Runner, lost),
    feed(Runner, [b]),
    ok = witness_monitor_runner:complete(Runner),
    ?assertMatch(#{verdict := inconclusive, reason := {gap, lost}, steps := [#{index := 1}]}, outcome(Runner)).

what_was_decided_before_a_gap_stands_test() ->
    {Runner, _} = start(#{event => fun(_) -> {verdict, no, x} end}),
    feed(Runner, [a]),
    ok = witness_monitor_runner:report_gap(Runner, lost),
    ?assertMatch(#{verdict := no}, outcome(Runner)).

%% --- explanations ----------------------------------------------------------------

an_explanation_has_the_last_steps_and_says_how_many_are_left_out_test() ->
    [begin
         {Runner, _} = start(#{event => fun({recv, _, _, last, _}) -> {verdict, no, x}; (_) -> ok end}),
         feed(Runner, lists:duplicate(N - 1, a) ++ [last]),
         #{steps := Steps, skipped := Skipped, event := #{index := N}} = outcome(Runner),
         Kept = min(N, 12),
         ?assertEqual({N - Kept, lists:seq(N - Kept + 1, N)}, {Skipped, [I || #{index := I} <- Steps]})
     end || N <- [1, 11, 12, 13, 23, 24, 25, 26, 1000]].

%% A hundred thousand events with states of their own leave no more behind than a hundred.
the_space_for_explanations_is_constant_test() ->
    {Runner, _} = start(#{}, maps:merge(bare(), #{explain => 5})),
    Memory = fun(N) ->
        feed(Runner, lists:seq(1, N)),
        sync(Runner),
        garbage_collect(Runner),
        {memory, M} = process_info(Runner, memory),
        M
    end,
    Small = Memory(100),
    Large = Memory(100_000),
    ?assert(Large < Small + 20_000),
    ok = witness_monitor_runner:stop(Runner),
    ?assertMatch(#{steps := [_, _, _, _, _], skipped := 100_097}, outcome(Runner)).

%% --- several processes -----------------------------------------------------------

events_of_several_processes_are_put_in_order_test() ->
    {Runner, _} = start(#{ended => fun(complete, Seen) -> {yes, [M || {recv, _, _, M, _} <- Seen]} end}, #{ordered => true}),
    ok = witness_monitor_runner:send_events(Runner, [stamped(3, c), stamped(1, a)]),
    ok = witness_monitor_runner:send_clock(Runner, 1),
    ok = witness_monitor_runner:send_events(Runner, [stamped(2, b), stamped(5, e)]),
    ok = witness_monitor_runner:send_clock(Runner, 3),
    ok = witness_monitor_runner:send_events(Runner, [stamped(4, d)]),
    ok = witness_monitor_runner:complete(Runner),
    ?assertMatch(#{verdict := yes, info := [a, b, c, d, e]}, outcome(Runner)).

a_verdict_falls_while_the_rest_is_released_test() ->
    {Runner, Ref} = start(#{event => fun({recv, _, _, b, _}) -> {verdict, no, b}; (_) -> ok end}, #{ordered => true}),
    ok = witness_monitor_runner:send_events(Runner, [stamped(3, c), stamped(2, b), stamped(1, a)]),
    ok = witness_monitor_runner:stop(Runner),
    ?assertMatch(#{verdict := no, event := #{index := 2}}, outcome(Runner)),
    ?assertEqual(normal, down(Ref)),
    none_left(Runner).

an_event_that_comes_too_late_is_a_gap_test() ->
    {Runner, _} = start(#{}, #{ordered => true}),
    ok = witness_monitor_runner:send_events(Runner, [stamped(3, c)]),
    ok = witness_monitor_runner:send_clock(Runner, 10),
    ok = witness_monitor_runner:send_events(Runner, [stamped(2, b)]),
    ?assertMatch(#{verdict := inconclusive, reason := {gap, late}, steps := [#{event := {recv, _, _, c, _}}]}, outcome(Runner)).

%% --- partitions that are bounded -------------------------------------------------

%% The test acts as the partition.
a_runner_takes_its_events_by_itself_test() ->
    Test = self(),
    Take = fun(all) -> Test ! {takes, self()}, receive {answer, Answer} -> Answer end end,
    {Runner, Ref} = start(#{ended => fun(complete, Seen) -> {yes, Seen} end}, #{take => Take}),
    Give = fun(Batch) -> Runner ! Batch, Runner ! {answer, ok} end,
    asks(Runner),
    Runner ! {answer, empty},
    Runner ! witness_data,
    asks(Runner),
    Init = fun(Signature) -> {init, self(), undefined, Signature, 1} end,
    Give({witness_batch, [Init({erlang, apply, [m, f, [1]]}), recv(a)], open}),
    asks(Runner),
    Give({witness_batch, [], open}),
    asks(Runner),
    Forked = {proc_lib, init_p, [self(), [], n, g, []]},
    Give({witness_batch, [recv(b), {fork, self(), Runner, Forked, 2}, {exit, self(), normal, 3}], complete}),
    ?assertMatch(#{verdict := yes, info := [{init, _, _, {m, f, [1]}, 1}, {recv, _, _, a, _}, {recv, _, _, b, _},
                                            {fork, _, _, {n, g, []}, 2}, {exit, _, normal, 3}]}, outcome(Runner)),
    ?assertEqual(normal, down(Ref)),
    asks_no_more(Runner).

the_status_of_a_partition_ends_a_runner_test() ->
    [begin
         {Runner, Ref} = start(#{ended => fun(How, Seen) -> {yes, {How, length(Seen)}} end}, #{take => take(ok)}),
         asks(Runner),
         Runner ! {witness_batch, [recv(a)], Status},
         ?assertMatch(#{verdict := Verdict, reason := Reason, info := Info}, outcome(Runner)),
         ?assertEqual(normal, down(Ref)),
         asks_no_more(Runner)
     end || {Status, Verdict, Reason, Info} <- [{complete, yes, undefined, {complete, 1}}, {stopped, yes, undefined, {stopped, 1}},
                                                {{gap, overflow, 7}, inconclusive, {gap, overflow}, undefined}]].

a_verdict_stands_before_a_gap_of_the_same_batch_test() ->
    {Runner, _} = start(#{event => fun(_) -> {verdict, no, x} end}, #{take => take(ok)}),
    Runner ! {witness_batch, [recv(a)], {gap, memory, 1}},
    ?assertMatch(#{verdict := no}, outcome(Runner)).

a_run_may_end_a_runner_that_takes_test() ->
    {Runner, _} = start(#{}, #{take => take(empty)}),
    asks(Runner),
    ok = witness_monitor_runner:report_gap(Runner, tracer_lost),
    ?assertMatch(#{verdict := inconclusive, reason := {gap, tracer_lost}}, outcome(Runner)).

%% The test has all turns.
with_turns(Test) ->
    Run = spawn(fun() -> receive stop -> ok end end),
    Turns = witness_monitor_throttle:start_link(Run, infinity),
    Ask = fun() -> witness_monitor_throttle:request_turn(slow, {?MODULE, other}, Turns) end,
    Taken = [Ask() || _ <- lists:seq(1, erlang:system_info(schedulers_online))],
    [receive {Turn, turn} -> ok end || Turn <- Taken],
    Test(Turns, Ask, fun() -> witness_monitor_throttle:end_turn(hd(Taken), Turns) end),
    Run ! stop.

take(Kind, Answer) ->
    Test = self(),
    fun(Asked) -> Test ! {takes, Asked, self()}, case Asked of Kind -> Answer; _ -> empty end end.

a_runner_whose_monitor_is_not_known_waits_for_a_turn_test() ->
    with_turns(fun(Turns, _, Give) ->
        {Runner, _} = start(#{ended => fun(complete, Seen) -> {yes, length(Seen)} end}, #{take => take(all, ok), turns => Turns}),
        receive {takes, gap, Runner} -> ok end,
        %% The runner is notified while it waits, and finds no gap.
        Runner ! witness_data,
        receive {takes, gap, Runner} -> ok end,
        Give(),
        receive {takes, all, Runner} -> ok end,
        Runner ! {witness_batch, [recv(a)], open},
        %% The monitor is quick, and needs no turn any more.
        receive {takes, all, Runner} -> ok end,
        Runner ! {witness_batch, [recv(b)], complete},
        ?assertMatch(#{verdict := yes, info := 2}, outcome(Runner))
    end).

a_runner_that_waits_for_a_turn_ends_at_a_gap_test() ->
    with_turns(fun(Turns, _, _) ->
        {Runner, Ref} = start(#{}, #{take => take(gap, ok), turns => Turns}),
        receive {takes, gap, Runner} -> ok end,
        Runner ! {witness_batch, [], {gap, memory, 3}},
        ?assertMatch(#{verdict := inconclusive, reason := {gap, memory}, steps := []}, outcome(Runner)),
        ?assertEqual(normal, down(Ref))
    end).

a_slow_monitor_gives_way_after_some_events_test() ->
    with_turns(fun(Turns, Ask, Give) ->
        Test = self(),
        Event = fun({recv, _, _, N, _}) -> lists:seq(1, 10_000), Test ! {read, N}, N =:= 1 andalso receive go -> ok end, ok end,
        {Runner, _} = start(#{event => Event, ended => fun(complete, Seen) -> {yes, length(Seen)} end},
                            #{tracer => Test, turns => Turns}),
        ok = witness_monitor_runner:send_batch(Runner, [recv(N) || N <- lists:seq(1, 100)], 0, Test),
        Give(),
        receive {read, 1} -> ok end,
        Turn = Ask(),
        Runner ! go,
        receive {Turn, turn} -> ok end,
        receive {read, 64} -> ok end,
        %% It answers while it waits, since it has nothing else to do.
        _ = sys:get_state(Runner),
        receive {read, 65} -> error(too_early) after 0 -> ok end,
        ok = witness_monitor_throttle:end_turn(Turn, Turns),
        receive {read, Runner, 0} -> ok end,
        receive {read, 100} -> ok end,
        ?assertEqual({priority, low}, process_info(Runner, priority)),
        ok = witness_monitor_runner:complete(Runner),
        ?assertMatch(#{verdict := yes, info := 100}, outcome(Runner))
    end).

%% A birth alone does not show whether a monitor is quick, and a monitor may become slow or quick again.
a_monitor_is_what_it_is_now_test() ->
    with_turns(fun(Turns, Ask, Give) ->
        Test = self(),
        Event = fun({recv, _, _, slow, _}) -> lists:seq(1, 100_000), ok; (_) -> ok end,
        Ended = fun(complete, Seen) -> {yes, length(Seen)} end,
        {Runner, _} = start(#{event => Event, ended => Ended}, #{tracer => Test, turns => Turns}),
        Read = fun(Events) -> ok = witness_monitor_runner:send_batch(Runner, Events, 0, Test) end,
        Is = fun(Pace, Priority) ->
            receive {read, Runner, 0} -> ok end,
            ?assertEqual({priority, Priority}, process_info(Runner, priority)),
            {Pid, Table} = Turns,
            _ = sys:get_state(Pid),
            ?assertEqual(Pace, [Quick || {_, Quick} <- ets:tab2list(Table)])
        end,
        Read([{init, self(), self(), {m, f, []}, 1}]),
        Give(),
        Is([], low),
        Read([recv(quick)]),
        Is([true], normal),
        %% The test has all turns again, and the monitor needs none.
        Turn = Ask(),
        receive {Turn, turn} -> ok end,
        Read([recv(slow) || _ <- lists:seq(1, 64)]),
        Is([true], normal),
        Read([recv(slow)]),
        Is([false], low),
        Read([recv(quick)]),
        _ = sys:get_state(Runner),
        receive {read, Runner, 0} -> error(too_early) after 0 -> ok end,
        ok = witness_monitor_throttle:end_turn(Turn, Turns),
        Is([true], normal),
        ok = witness_monitor_runner:complete(Runner),
        ?assertMatch(#{verdict := yes, info := 68}, outcome(Runner))
    end).

slices_are_taken_too_test() ->
    {Runner, _} = sliced(#{ended => fun(complete, Seen) -> {yes, length(Seen)} end}, #{take => take(ok)}),
    Runner ! {witness_batch, [recv({1, a}), recv({2, a}), recv({1, b})], open},
    Runner ! {witness_batch, [], complete},
    ?assertEqual([1, 2], lists:sort([N || #{info := N} <- slices(Runner, 2)])),
    ?assertMatch(#{slices := 2}, outcome(Runner)).

a_tracer_is_told_what_was_read_test() ->
    Self = self(),
    {Runner, _} = start(#{ended => fun(complete, Seen) -> {yes, length(Seen)} end}, #{tracer => Self}),
    ok = witness_monitor_runner:send_batch(Runner, [recv(a), recv(b)], 70, Self),
    receive {read, Runner, 70} -> ok end,
    ok = witness_monitor_runner:send_batch(Runner, [recv(c)], 0, Self),
    receive {read, Runner, 0} -> ok end,
    ok = witness_monitor_runner:complete(Runner),
    ?assertMatch(#{verdict := yes, info := 3}, outcome(Runner)).

%% What the tracer said before it died counts.
the_loss_of_its_tracer_is_a_gap_test() ->
    [begin
         {Tracer, Gone} = spawn_monitor(fun() -> receive {say, Words} -> Words() end, receive die -> ok end end),
         {Runner, _} = start(#{ended => fun(complete, _) -> {yes, ended} end}, #{tracer => Tracer}),
         Tracer ! {say, fun() -> Say(Runner) end},
         Tracer ! die,
         ?assertEqual(normal, down(Gone)),
         ?assertMatch(#{verdict := Verdict, reason := Reason}, outcome(Runner))
     end || {Say, Verdict, Reason} <- [{fun(_) -> ok end, inconclusive, {gap, tracer_lost}},
                                       {fun witness_monitor_runner:complete/1, yes, undefined}]].

%% A monitor may monitor processes itself; their ends are not that of the tracer.
another_process_that_ends_is_no_tracer_test() ->
    Event = fun(_) -> spawn_monitor(fun() -> ok end), ok end,
    {Runner, _} = start(#{event => Event, ended => fun(complete, Seen) -> {yes, length(Seen)} end}, #{tracer => self()}),
    lists:foreach(fun(_) ->
        ok = witness_monitor_runner:send_batch(Runner, [recv(a)], 0, self()),
        receive {read, Runner, 0} -> ok end
    end, lists:seq(1, 10)),
    ok = witness_monitor_runner:complete(Runner),
    ?assertMatch(#{verdict := yes, info := 10}, outcome(Runner)).

take(Answer) ->
    Test = self(),
    fun(all) -> Test ! {takes, self()}, Answer end.

asks(Runner) -> receive {takes, Runner} -> ok end.

asks_no_more(Runner) -> receive {takes, Runner} -> error(takes) after 0 -> ok end.

recv(Message) -> {recv, self(), undefined, Message, 0}.

%% --- events that are not for the monitor ------------------------------------------

what_a_monitor_passes_over_it_does_not_see_test() ->
    {Runner, _} = start(#{slice => fun({recv, _, _, {M, _}, _}) -> M; (_) -> all end,
                          ended => fun(complete, Seen) -> {yes, [M || {recv, _, _, M, _} <- Seen]} end}),
    feed(Runner, [{skip, 1}, {all, 2}, {skip, 3}]),
    feed(Runner, [{skip, 4}, {all, 5}, x]),
    ok = witness_monitor_runner:complete(Runner),
    ?assertMatch(#{verdict := yes, info := [{all, 2}, {all, 5}, x], slice := undefined, skipped := 0,
                   steps := [#{index := 1}, #{index := 2}, #{index := 3}]}, outcome(Runner)).

a_choice_that_crashes_ends_the_monitor_after_what_came_before_test() ->
    [begin
         {Runner, _} = start(#{slice => fun({recv, _, _, bad, _}) -> Bad(); (_) -> all end,
                               event => fun({recv, _, _, no, _}) -> {verdict, no, x}; (_) -> ok end}),
         feed(Runner, [a, Before, bad, b]),
         ?assertMatch(#{verdict := Verdict, steps := [#{index := 1}, #{index := 2}]}, outcome(Runner))
     end || Bad <- [fun() -> error(oops) end, fun() -> nonsense end, fun() -> {slice, {1}} end],
            {Before, Verdict} <- [{b, inconclusive}, {no, no}]].

%% --- slices ------------------------------------------------------------------------

each_slice_has_a_verdict_of_its_own_test() ->
    {Runner, Ref} = sliced(#{event => fun({recv, _, _, {_, stop}, _}) -> {verdict, yes, x}; (_) -> ok end,
                             ended => fun(complete, Seen) -> {no, length(Seen)} end}),
    feed(Runner, [{1, a}, {2, a}, {all, a}, skip, {1, stop}, {1.0, a}, {2, b}, {1, c}]),
    ok = witness_monitor_runner:complete(Runner),
    ?assertMatch([#{verdict := yes, slice := [{~"Key", 1}], event := #{index := 3}, steps := [_, _, _]},
                  #{verdict := no, slice := [{~"Key", 2}], info := 3, event := undefined},
                  #{verdict := no, slice := [{~"Key", K}], info := 1},
                  #{verdict := no, slice := [{~"Key", 1}], info := 1}] when K =:= 1.0, slices(Runner, 4)),
    ?assertEqual(#{slices => 4, covered => 0}, outcome(Runner)),
    ?assertEqual(normal, down(Ref)),
    none_left(Runner).

without_any_slice_there_is_an_ordinary_verdict_test() ->
    [begin
         {Runner, _} = sliced(#{}),
         feed(Runner, [{all, x}, skip]),
         End(Runner),
         ?assertMatch(#{verdict := Verdict, vacuous := Vacuous, reason := Reason, slice := undefined, covered := 0,
                        steps := [], skipped := 0}, outcome(Runner))
     end || {End, Verdict, Vacuous, Reason} <-
         [{fun witness_monitor_runner:complete/1, yes, true, undefined},
          {fun witness_monitor_runner:stop/1, inconclusive, false, stopped},
          {fun(Runner) -> witness_monitor_runner:report_gap(Runner, lost) end, inconclusive, false, {gap, lost}}]].

at_a_gap_and_at_a_stop_every_slice_that_is_alive_is_inconclusive_test() ->
    [begin
         {Runner, _} = sliced(#{event => fun({recv, _, _, {_, stop}, _}) -> {verdict, yes, x}; (_) -> ok end}),
         feed(Runner, [{N, a} || N <- lists:seq(1, 50)] ++ [{7, stop}]),
         End(Runner),
         [#{verdict := yes, slice := [{~"Key", 7}]} | Others] = slices(Runner, 50),
         ?assertEqual([{inconclusive, Reason, N} || N <- lists:seq(1, 50), N =/= 7],
                      [{V, R, N} || #{verdict := V, reason := R, slice := [{~"Key", N}]} <- Others]),
         %% Slices that would have begun after a gap do not exist, so the monitor itself says that it missed them.
         case outcome(Runner) of
             #{slices := 50} -> ?assertEqual(stopped, Reason);
             #{verdict := inconclusive, reason := Why, slice := undefined} ->
                 ?assertEqual({{gap, lost}, {gap, lost}}, {Why, Reason})
         end
     end || {End, Reason} <- [{fun witness_monitor_runner:stop/1, stopped},
                              {fun(Runner) -> witness_monitor_runner:report_gap(Runner, lost) end, {gap, lost}}]].

%% It is the last one of its key: where another one would begin is not known.
beyond_the_bound_the_oldest_slice_goes_test() ->
    {Runner, _} = sliced(#{}, #{max_slices => 2}),
    feed(Runner, [{1, a}, {2, a}, {1, b}, {3, a}, {1, c}, {4, a}]),
    ?assertMatch([#{verdict := inconclusive, reason := max_slices, slice := [{~"Key", 1}], steps := [_, _]},
                  #{verdict := inconclusive, reason := max_slices, slice := [{~"Key", 2}], steps := [_]}], slices(Runner, 2)),
    ok = witness_monitor_runner:stop(Runner),
    ?assertMatch([#{reason := stopped, slice := [{~"Key", 3}]}, #{reason := stopped, slice := [{~"Key", 4}]}],
                 slices(Runner, 2)),
    ?assertMatch(#{slices := 4}, outcome(Runner)).

%% A slice that decides with its first event does not count against `max_slices'.
a_slice_that_does_not_live_displaces_no_other_test() ->
    {Runner, _} = sliced(#{event => fun({recv, _, _, {_, stop}, _}) -> {verdict, no, x}; (_) -> ok end}, #{max_slices => 1}),
    feed(Runner, [{1, a}, {2, stop}, {3, stop}]),
    ok = witness_monitor_runner:stop(Runner),
    ?assertMatch([#{slice := [{_, 2}], verdict := no}, #{slice := [{_, 3}]}, #{slice := [{_, 1}], reason := stopped}],
                 slices(Runner, 3)).

a_crash_is_that_of_its_slice_test() ->
    [begin
         {Runner, _} = sliced(Arg),
         feed(Runner, [{1, a}, {2, crash}, {1, b}]),
         ok = witness_monitor_runner:stop(Runner),
         ?assertMatch([#{verdict := inconclusive, reason := {crashed, {error, oops, [_ | _]}}, slice := [{~"Key", 2}]},
                       #{reason := stopped, slice := [{~"Key", 1}], steps := [_, _]}], slices(Runner, 2)),
         ?assertMatch(#{slices := 2}, outcome(Runner))
     end || Arg <- [#{event => fun({recv, _, _, {_, crash}, _}) -> error(oops); (_) -> ok end},
                    #{instance => fun({2}) -> error(oops); (_) -> #{seen => []} end}]].

when_no_slice_can_be_told_all_of_them_end_test() ->
    [begin
         {Runner, _} = sliced(#{slice => fun({recv, _, _, bad, _}) -> Bad(); ({recv, _, _, {K, _}, _}) -> {slice, {K}} end}),
         feed(Runner, [{1, a}, {2, a}, bad, {3, a}]),
         ?assertMatch([#{reason := {crashed, Crash}, slice := [{_, 1}]}, #{reason := {crashed, Crash}, slice := [{_, 2}]}],
                      slices(Runner, 2)),
         ?assertMatch(#{verdict := inconclusive, reason := {crashed, _}, slice := undefined}, outcome(Runner))
     end || Bad <- [fun() -> error(oops) end, fun() -> nonsense end, fun() -> {slice, {1, 2}} end, fun() -> {slice, 1} end]].

slices_of_several_processes_see_one_order_test() ->
    {Runner, _} = sliced(#{ended => fun(complete, Seen) -> {yes, [M || {recv, _, _, {_, M}, _} <- Seen]} end},
                         #{ordered => true}),
    ok = witness_monitor_runner:send_events(Runner, [stamped(3, {1, c}), stamped(1, {1, a})]),
    ok = witness_monitor_runner:send_clock(Runner, 1),
    ok = witness_monitor_runner:send_events(Runner, [stamped(2, {2, b}), stamped(5, {all, e})]),
    ok = witness_monitor_runner:send_clock(Runner, 3),
    ok = witness_monitor_runner:send_events(Runner, [stamped(4, {1, d})]),
    ok = witness_monitor_runner:complete(Runner),
    ?assertMatch([#{info := [a, c, d, e]}, #{info := [b, e]}], slices(Runner, 2)),
    ?assertMatch(#{slices := 2}, outcome(Runner)).

an_event_that_comes_too_late_is_a_gap_for_every_slice_test() ->
    {Runner, _} = sliced(#{}, #{ordered => true}),
    ok = witness_monitor_runner:send_events(Runner, [stamped(3, {1, c}), stamped(4, {2, c})]),
    ok = witness_monitor_runner:send_clock(Runner, 10),
    ok = witness_monitor_runner:send_events(Runner, [stamped(2, {1, b})]),
    ?assertMatch([#{reason := {gap, late}}, #{reason := {gap, late}}], slices(Runner, 2)).

%% Fifty thousand slices that come and go leave no more behind than a thousand. Those that are displaced leave the filter that knows
%% their keys, which a heap has room for twice.
-define(FILTER_BYTES, 12_000_000).

the_space_for_slices_is_constant_test_() ->
    {timeout, 60, [{Name, fun() ->
        {Runner, _} = sliced(#{event => fun({recv, _, _, {_, stop}, _}) -> {verdict, yes, x}; (_) -> ok end},
                             #{max_slices => 100, run => sink()}),
        Memory = fun(From, To) ->
            [feed(Runner, Events(N)) || N <- lists:seq(From, To)],
            sync(Runner),
            garbage_collect(Runner),
            {memory, M} = process_info(Runner, memory),
            M
        end,
        Small = Memory(1, 1000),
        Large = Memory(1001, 50_000),
        ?assert(Large < Small + More),
        ok = witness_monitor_runner:stop(Runner)
    end} || {Name, Events, More} <- [{"come and go", fun(N) -> [{N, a}, {N, stop}] end, 20_000},
                                     {"displaced", fun(N) -> [{N, a}] end, ?FILTER_BYTES}]]}.

%% --- coverage ----------------------------------------------------------------------

the_actions_that_were_taken_are_told_at_the_end_test() ->
    Mark = fun({recv, _, _, N, _}) when is_integer(N) -> put(list_to_atom("$witness_" ++ integer_to_list(N)), N), ok;
              (_) -> ok
           end,
    {Runner, _} = start(#{event => Mark}),
    feed(Runner, [1, 5, 1, 70]),
    ok = witness_monitor_runner:stop(Runner),
    ?assertMatch(#{covered := 2#100010 bor (1 bsl 70)}, outcome(Runner)).

what_is_no_mark_is_not_told_test() ->
    {Runner, _} = start(#{event => fun(_) -> put('$witness_x', x), put('$witness_', -1), put({1}, 1), put(a, 3), ok end}),
    feed(Runner, [a]),
    ok = witness_monitor_runner:stop(Runner),
    ?assertMatch(#{covered := 0}, outcome(Runner)).

%% --- helpers ---------------------------------------------------------------------

start(Arg) -> start(Arg, #{}).

start(Arg, More) ->
    Runner = witness_monitor_runner:start(spec(Arg, More)),
    {Runner, monitor(process, Runner)}.

spec(Arg, More) ->
    maps:merge(#{monitor => {?MODULE, Arg}, process => self(), signature => {m, f, [1]}, run => self(),
                 explain => 12, ordered => false}, More).

feed(Runner, Events) ->
    ok = witness_monitor_runner:send_events(Runner, [{none, case E of
                                                                {exit, _, _, _} -> E;
                                                                M -> {recv, self(), undefined, M, undefined}
                                                            end} || E <- Events]).

%% The key is in the message.
sliced(Arg) -> sliced(Arg, #{}).

sliced(Arg, More) ->
    Slice = fun({recv, _, _, {sync, From, Ref}, _}) -> From ! Ref, skip;
               ({recv, _, _, {all, _}, _}) -> all;
               ({recv, _, _, {K, _}, _}) -> {slice, {K}};
               (_) -> skip
            end,
    start(maps:merge(#{slice => Slice, names => [~"Key"]}, Arg), More).

slices(Runner, Count) -> [receive {slice, Runner, Outcome} -> Outcome end || _ <- lists:seq(1, Count)].

%% A run that forgets the outcomes.
sink() -> spawn_link(fun Sink() -> receive _ -> Sink() end end).

stamped(U, Message) -> {U, {recv, self(), undefined, Message, U}}.

outcome(Runner) -> receive {verdict, Runner, Outcome} -> Outcome end.

none_left(Runner) ->
    receive
        {Kind, Runner, Other} when Kind =:= verdict; Kind =:= slice -> error({too_many_outcomes, Other})
    after 0 -> ok
    end.

down(Ref) -> receive {'DOWN', Ref, process, _, Reason} -> Reason end.

%% The bare monitor answers.
sync(Runner) ->
    Ref = make_ref(),
    feed(Runner, [{sync, self(), Ref}]),
    receive Ref -> ok end.

linked(Runner) ->
    witness_await:until(fun() ->
        {links, Links} = process_info(self(), links),
        lists:member(Runner, Links)
    end).

%% A monitor with the mandatory callbacks only.
bare() ->
    Forms = [{attribute, 1, module, witness_monitor_runner_bare},
             {attribute, 1, export, [{init, 3}, {handle_event, 2}]}
             | [begin {ok, Ts, _} = erl_scan:string(F), {ok, Form} = erl_parse:parse_form(Ts), Form end
                || F <- ["init(_, _, _) -> {ok, 0}.",
                         "handle_event({recv, _, _, {sync, P, R}, _}, S) -> P ! R, {ok, S};"
                         "handle_event(_, S) -> {ok, S + 1}."]]],
    {ok, M, Code} = compile:forms(Forms, []),
    {module, M} = code:load_binary(M, "bare", Code),
    #{monitor => {M, x}}.
