-module(witness_monitor_throttle_tests).
-moduledoc """
Turns of slow monitors. There are as many turns as schedulers, and the monitors take turns. The requests of one monitor are
granted in their order, whatever the processes that have a turn do.
""".
-include_lib("eunit/include/eunit.hrl").

-define(SLOW, {slow, none}).
-define(T, witness_monitor_throttle).

%% For a run that ends when the test does.
with(Test) -> with(infinity, Test).

with(Long, Test) ->
    Run = spawn(fun() -> receive stop -> ok end end),
    Turns = {Pid, _} = ?T:start_link(Run, Long),
    Monitor = monitor(process, Pid),
    try Test(Turns) after
        Run ! stop,
        receive {'DOWN', Monitor, process, Pid, Reason} -> ?assert(Reason =:= normal orelse Reason =:= killed) end
    end.

%% A process that asks for a turn, reports that it has it, and keeps it until it is told to give it back.
asks(Monitor, Turns) -> asks(unknown, Monitor, Turns).

asks(Pace, Monitor, Turns) ->
    Test = self(),
    spawn(fun() ->
        Turn = ?T:request_turn(Pace, Monitor, Turns),
        Test ! {asked, self()},
        receive {Turn, turn} -> ok; {'DOWN', Turn, process, _, _} -> ok end,
        Test ! {has, self()},
        receive give -> ok = ?T:end_turn(Turn, Turns), Test ! {gave, self()} end
    end).

has(Pid) -> receive {has, Pid} -> ok end.

gives(Pid) ->
    Pid ! give,
    receive {gave, Pid} -> ok end.

%% All requests that were sent before are handled.
heard({Pid, _}) -> sys:get_state(Pid).

waits(Pid, Turns) ->
    receive {asked, Pid} -> ok end,
    _ = heard(Turns),
    receive {has, Pid} -> error({has, Pid}) after 0 -> ok end.

%% Waits until so many turns are free, after those that were given back have rested.
free(Count, Turns) -> witness_await:until(fun() -> element(5, heard(Turns)) =:= Count end).

%% All turns but this many are taken.
taken(But, Turns) ->
    Pids = [asks(?SLOW, Turns) || _ <- lists:seq(1, erlang:system_info(schedulers_online) - But)],
    lists:foreach(fun has/1, Pids),
    Pids.

in_the_order_in_which_they_were_asked_for_test() ->
    with(fun(Turns) ->
        _ = taken(1, Turns),
        [First | Others] = [begin Pid = asks(?SLOW, Turns), receive {asked, Pid} -> Pid end end || _ <- lists:seq(1, 5)],
        has(First),
        lists:foldl(fun(Next, Before) ->
            _ = heard(Turns),
            receive {has, Next} -> error(too_early) after 0 -> ok end,
            gives(Before),
            has(Next),
            Next
        end, First, Others)
    end).

%% However many requests of one monitor wait.
each_monitor_in_its_turn_test() ->
    with(fun(Turns) ->
        [Has | _] = taken(0, Turns),
        Asks = fun(Monitor) -> Pid = asks(Monitor, Turns), receive {asked, Pid} -> Pid end end,
        [A1, A2, A3, B1, B2, C1] = [Asks({Monitor, none}) || Monitor <- [a, a, a, b, b, c]],
        lists:foldl(fun(Next, Before) ->
            gives(Before),
            has(Next),
            Next
        end, Has, [A1, B1, C1, A2, B2, A3])
    end).

a_process_that_dies_has_no_turn_test() ->
    with(fun(Turns) ->
        [Has | _] = taken(0, Turns),
        [One, Two] = [asks(?SLOW, Turns) || _ <- [1, 2]],
        [waits(Pid, Turns) || Pid <- [One, Two]],
        exit(One, kill),
        exit(Has, kill),
        has(Two)
    end).

%% A turn that was kept too long is replaced, and is not counted when it is given back.
no_process_waits_for_one_that_keeps_its_turn_too_long_test() ->
    with(10, fun(Turns) ->
        Keep = taken(0, Turns) ++ taken(0, Turns) ++ taken(0, Turns),
        lists:foreach(fun gives/1, Keep),
        lists:foreach(fun gives/1, taken(0, Turns)),
        free(erlang:system_info(schedulers_online), Turns)
    end).

what_turns_out_to_be_quick_needs_no_turn_test() ->
    with(fun(Turns) ->
        Monitor = {quick, none},
        [Has | _] = taken(0, Turns),
        Quick = asks(Monitor, Turns),
        %% A process of the same monitor that has found itself slow.
        Slow = asks(slow, Monitor, Turns),
        Other = asks(?SLOW, Turns),
        [waits(Pid, Turns) || Pid <- [Quick, Slow, Other]],
        ?assertNot(?T:is_quick(Monitor, Turns)),
        ok = ?T:report_pace(true, Monitor, Turns),
        has(Quick),
        ?assert(?T:is_quick(Monitor, Turns)),
        ?assertNot(?T:is_quick(?SLOW, Turns)),
        %% It has had no turn to give back, and neither has a process that asks later.
        gives(Quick),
        Late = asks(Monitor, Turns),
        has(Late),
        gives(Late),
        waits(asks(slow, Monitor, Turns), Turns),
        [receive {has, Pid} -> error(too_early) after 0 -> ok end || Pid <- [Slow, Other]],
        gives(Has),
        has(Slow),
        gives(Slow),
        has(Other),
        %% Until it is seen to be slow.
        ok = ?T:report_pace(false, Monitor, Turns),
        waits(asks(Monitor, Turns), Turns),
        ?assertNot(?T:is_quick(Monitor, Turns))
    end).

no_process_waits_for_a_throttle_that_has_ended_test() ->
    with(fun({Pid, _} = Turns) ->
        _ = taken(0, Turns),
        Waits = asks(?SLOW, Turns),
        waits(Waits, Turns),
        true = unlink(Pid),
        exit(Pid, kill),
        has(Waits),
        gives(Waits),
        has(asks(?SLOW, Turns)),
        ?assertNot(?T:is_quick(?SLOW, Turns)),
        ok = ?T:report_pace(true, ?SLOW, Turns)
    end).
