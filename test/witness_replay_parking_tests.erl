-module(witness_replay_parking_tests).
-moduledoc "A parked process is unparked, and no message is left.".
-include_lib("eunit/include/eunit.hrl").

start() ->
    ok = witness_replay_tables:delete(),
    witness_replay_parking:start().

woken_by_name_by_kind_or_with_all_test() ->
    ok = start(),
    [begin
         Alias = witness_replay_parking:park(-7, 3, none),
         ?assertEqual(over, witness_replay_parking:sleep(Alias, 0)),
         _ = [ok = Other() || Other <- [fun() -> witness_replay_parking:wake(-7, 2) end,
                                        fun() -> witness_replay_parking:wake(-3, 7) end,
                                        fun() -> witness_replay_parking:wake(-8) end]],
         ?assertEqual(over, witness_replay_parking:sleep(Alias, 0)),
         ok = Wake(),
         ?assertEqual(woken, witness_replay_parking:sleep(Alias, 1_000_000)),
         ok = witness_replay_parking:unpark(-7, 3, Alias)
     end || Wake <- [fun() -> witness_replay_parking:wake(-7, 3) end, fun() -> witness_replay_parking:wake(-7) end,
                     fun witness_replay_parking:wake/0]].

%% A wake-up that comes while the process unparks, or later, is removed; messages of other processes are not.
nothing_stays_behind_test_() -> {spawn, fun() ->
    ok = start(),
    [begin
         self() ! [1 | hello],
         Alias = witness_replay_parking:park(-7, 3, End),
         [ok = witness_replay_parking:wake(-7) || _ <- [1, 2, 3]],
         ?assertEqual(woken, witness_replay_parking:sleep(Alias, 0)),
         ok = witness_replay_parking:unpark(-7, 3, Alias),
         Alias ! Alias,
         ok = witness_replay_parking:wake(),
         ?assertEqual({messages, [[1 | hello]]}, process_info(self(), messages)),
         ?assertEqual([], ets:tab2list(witness_replay_parking)),
         receive [1 | hello] -> ok end
     end || End <- [none, spawn(fun() -> receive never -> ok end end)]]
end}.

woken_by_an_end_test() ->
    ok = start(),
    Other = spawn(fun() -> receive stop -> ok end end),
    Alias = witness_replay_parking:park(-7, 3, Other),
    ?assertEqual(over, witness_replay_parking:sleep(Alias, 0)),
    Other ! stop,
    ?assertEqual(ended, witness_replay_parking:sleep(Alias, 1_000_000)),
    ok = witness_replay_parking:unpark(-7, 3, Alias).

%% A process wakes the sleepers at the same time as they park.
many_at_once_test_() -> {timeout, 60, fun() ->
    ok = start(),
    Sleepers = [spawn_monitor(fun() ->
        [ok = slept(Id) || _ <- lists:seq(1, 200)],
        {messages, []} = process_info(self(), messages)
    end)
                || Id <- lists:seq(1, 50)],
    Waker = spawn_link(fun Wake() -> ok = witness_replay_parking:wake(-1), Wake() end),
    [receive {'DOWN', Ref, process, _, Reason} -> ?assertEqual(normal, Reason) end || {_, Ref} <- Sleepers],
    true = unlink(Waker),
    true = exit(Waker, kill),
    ?assertEqual([], ets:tab2list(witness_replay_parking))
end}.

slept(Id) ->
    Alias = witness_replay_parking:park(-1, Id, none),
    woken = witness_replay_parking:sleep(Alias, 1_000_000),
    witness_replay_parking:unpark(-1, Id, Alias).
