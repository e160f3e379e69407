-module(witness_replay_backpressure_tests).
-moduledoc "Which processes wait, and when they go on.".
-include_lib("eunit/include/eunit.hrl").

-define(CROWD, 4096).

%% Processes 1, 2 and so on, which have begun. The test process acts as each.
flow(N) ->
    ok = begin_all(N),
    [ok = witness_replay_backpressure:handle_start(of_(Id)) || Id <- lists:seq(1, N)],
    ok.

begin_all(N) -> begin_all(N, fun(_) -> none end).

begin_all(N, Parent) ->
    ok = witness_replay_tables:delete(),
    ok = witness_replay_proxies:start(N),
    ok = witness_replay_backpressure:start(Parent).

%% The numbers of a process.
of_(Id) ->
    {Pid, Flow} = witness_replay_proxies:proxy(Id),
    true = exit(Pid, kill),
    Flow.

waits(Id, From) -> witness_replay_backpressure:set_waiting(From, of_(Id)).
took(Id) -> witness_replay_backpressure:count_taken(Id, of_(Id)).
sent(From, To) -> witness_replay_backpressure:throttle(From, of_(From), To, of_(To)).
begins(Id) -> witness_replay_backpressure:wait_to_spawn(Id, of_(Id)).

ended(Id) ->
    ok = witness_replay_backpressure:handle_exit(Id, of_(Id)),
    witness_replay_proxies:delete(Id, self()).

fill(From, To) -> [ok = sent(From, To) || _ <- lists:seq(1, ?CROWD)].

%% One message more: a process that ends when it may go on.
sending(From, To) -> spawn_monitor(fun() -> ok = sent(From, To) end).

%% Waits until the state of a process says that it waits.
until_held(Id, To) -> until_state(Id, {held, To}).

until_state(Id, State) ->
    witness_await:until(fun() ->
        case witness_replay_backpressure:states([Id]) of
            #{Id := State} -> true;
            Other -> Other
        end
    end).

goes_on({Pid, Ref}) -> receive {'DOWN', Ref, process, Pid, normal} -> ok end.

is_held({_, Ref}) -> receive {'DOWN', Ref, _, _, _} -> false after 20 -> true end.

held_until_half_is_taken_test() ->
    ok = flow(2),
    fill(1, 2),
    Sender = sending(1, 2),
    until_held(1, 2),
    [ok = took(2) || _ <- lists:seq(1, ?CROWD div 2)],
    ?assert(is_held(Sender)),
    ok = took(2),
    goes_on(Sender),
    ?assertEqual(#{}, witness_replay_backpressure:states([1, 2])).

%% The receiver waits for a message of the sender, directly or through a third process.
a_sender_goes_on_if_its_receiver_waits_for_it_test() ->
    ok = flow(3),
    fill(1, 2),
    ok = waits(2, 3),
    Sender = sending(1, 2),
    until_held(1, 2),
    ok = waits(3, 1),
    goes_on(Sender),
    ?assertEqual(#{2 => {waits, 3}, 3 => {waits, 1}}, witness_replay_backpressure:states([1, 2, 3])),
    %% It does not wait again at once.
    fill(1, 2).

held_by_each_other_test() ->
    ok = flow(2),
    fill(1, 2),
    fill(2, 1),
    Senders = [{_, One}, {_, Two}] = [sending(1, 2), sending(2, 1)],
    %% One of them goes on. The other one waits until the first takes its messages, or ends.
    First = receive {'DOWN', Ref, process, _, normal} when Ref =:= One; Ref =:= Two -> Ref end,
    [Left] = [Sender || {_, Other} = Sender <- Senders, Other =/= First],
    [ok = ended(Id) || Id <- [1, 2]],
    goes_on(Left).

a_sender_goes_on_if_its_receiver_cannot_test() ->
    Stuck = fun(Do) ->
        ok = flow(4),
        fill(1, 2),
        Sender = sending(1, 2),
        until_held(1, 2),
        Do(),
        goes_on(Sender)
    end,
    %% The receiver has ended, waits for a process that has ended, or takes no messages any more.
    Stuck(fun() -> ok = ended(2) end),
    Stuck(fun() -> ok = ended(3), ok = waits(2, 3) end),
    Stuck(fun() -> ok = witness_replay_backpressure:release_senders(of_(2)) end).

%% As long as a process runs, a message may be on its way to one of the cycle.
round_in_circles_test() ->
    ok = flow(4),
    fill(1, 2),
    Sender = sending(1, 2),
    until_held(1, 2),
    [ok = waits(Id, For) || {Id, For} <- [{3, 4}, {4, 3}, {2, 3}]],
    ?assert(is_held(Sender)),
    ok = witness_replay_backpressure:disable(),
    goes_on(Sender).

%% The receiver waits for a process that seems to wait for the sender, but has a message. The sender waits for about a second, so a
%% test that was late tries again.
a_process_that_has_a_message_needs_no_sender_test() ->
    Pid = with_a_message(),
    Began = erlang:monotonic_time(millisecond),
    IsLate = fun() -> erlang:monotonic_time(millisecond) - Began > 900 end,
    Sender = sending(1, 2),
    witness_await:until(fun() -> IsLate() orelse witness_replay_backpressure:states([1]) =:= #{1 => {held, 2}} end),
    IsHeld = is_held(Sender),
    ?assert(IsHeld orelse IsLate()),
    true = exit(Pid, kill),
    case IsHeld of
        true -> goes_on(Sender);
        false -> a_process_that_has_a_message_needs_no_sender_test()
    end.

%% The wait is bounded: the message may be one that is never taken.
a_message_that_no_process_takes_blocks_no_sender_for_ever_test_() -> {timeout, 60, fun() ->
    Pid = with_a_message(),
    goes_on(sending(1, 2)),
    true = exit(Pid, kill)
end}.

with_a_message() ->
    ok = flow(3),
    fill(1, 2),
    ok = waits(2, 3),
    true = ets:delete(witness_replay_proxies, 3),
    {Pid, Flow} = witness_replay_proxies:proxy(3),
    Pid ! message,
    ok = witness_replay_backpressure:set_waiting(1, Flow),
    Pid.

%% The receiver waits for a process that its parent has still to begin.
a_process_that_has_not_begun_waits_for_its_parent_test() ->
    ok = begin_all(5, fun(5) -> 4; (4) -> 3; (_) -> none end),
    [ok = witness_replay_backpressure:handle_start(of_(Id)) || Id <- [1, 2, 3]],
    fill(1, 2),
    ok = waits(2, 5),
    Sender = sending(1, 2),
    until_held(1, 2),
    ?assert(is_held(Sender)),
    ok = waits(3, 1),
    goes_on(Sender).

%% A receiver that is throttled for a process that has ended goes on by itself, so its own senders wait.
a_throttled_process_needs_only_its_receiver_test() ->
    ok = flow(3),
    fill(1, 2),
    ok = ended(3),
    ok = waits(2, -3),
    Sender = sending(1, 2),
    until_held(1, 2),
    ?assert(is_held(Sender)),
    ok = waits(2, -1),
    goes_on(Sender).

%% However long the chain of waiting processes is, and wherever it becomes a cycle.
a_long_way_test() ->
    [begin
         ok = flow(700),
         fill(1, 2),
         [ok = waits(Id, Id + 1) || Id <- lists:seq(2, 699)],
         ok = waits(700, Last),
         Sender = sending(1, 2),
         Last =:= 1 orelse ?assertEqual({Last, held}, {Last, case is_held(Sender) of true -> held; false -> went_on end}),
         Last =:= 1 orelse witness_replay_backpressure:disable(),
         goes_on(Sender)
     end || Last <- [1, 2, 350, 699]].

a_process_that_learns_of_an_end_waits_for_it_test() ->
    Follows = fun(Do) ->
        ok = flow(3),
        Other = spawn(fun() -> receive stop -> ok end end),
        Told = spawn_monitor(fun() -> ok = witness_replay_backpressure:wait_for_end(1, of_(1), 2, Other, of_(2)) end),
        until_held(1, 2),
        ?assert(is_held(Told)),
        Do(Other),
        goes_on(Told),
        ?assertEqual(#{}, witness_replay_backpressure:states([1]))
    end,
    %% Process 2 ends, has nothing left, or waits for a message of process 1, directly or through process 3.
    Follows(fun(Other) -> Other ! stop end),
    Follows(fun(_) -> ok = witness_replay_backpressure:release_senders(of_(2)) end),
    Follows(fun(_) -> ok = waits(2, 1) end),
    Follows(fun(_) -> ok = waits(3, 1), ok = waits(2, 3) end),
    Follows(fun(_) -> ok = witness_replay_backpressure:disable() end),
    %% Process 2 has not begun.
    ok = begin_all(2),
    ok = witness_replay_backpressure:wait_for_end(1, of_(1), 2, self(), of_(2)).

%% --- sleep -----------------------------------------------------------------------

%% From now on a process that sleeps does so until it is woken, as when very many are throttled.
for_long() ->
    All = persistent_term:get(witness_replay_backpressure),
    [ok = atomics:put(All, Kind, 1 bsl 40) || Kind <- [5, 6]],
    ok.

until_asleep(For, Id, {Pid, _}) ->
    witness_await:until(fun() ->
        ets:member(witness_replay_parking, {For, Id}) andalso process_info(Pid, status) =:= {status, waiting}
    end).

a_parked_sender_is_unparked_test() ->
    Woken = fun(Before, Do) ->
        ok = begin_all(6, fun(6) -> 3; (_) -> none end),
        [ok = witness_replay_backpressure:handle_start(of_(Id)) || Id <- [1, 2, 3, 4, 5]],
        fill(1, 2),
        fill(4, 5),
        ok = for_long(),
        Before(),
        Sender = sending(1, 2),
        until_asleep(-2, 1, Sender),
        Do(),
        goes_on(Sender),
        ?assertEqual([], ets:tab2list(witness_replay_parking))
    end,
    None = fun() -> ok end,
    %% The receiver takes half.
    Woken(None, fun() -> [ok = took(2) || _ <- lists:seq(1, ?CROWD div 2 + 1)] end),
    %% The receiver waits for the sender, at last.
    Woken(None, fun() -> ok = waits(2, 1) end),
    Woken(fun() -> ok = waits(2, 3) end, fun() -> ok = waits(3, 1) end),
    %% The parent of a process that has not begun waits, too.
    Woken(fun() -> ok = waits(2, 6) end, fun() -> ok = waits(3, 1) end),
    Woken(fun() -> ok = waits(3, 1) end, fun() -> ok = waits(2, 6) end),
    %% A process on the way is throttled.
    Woken(fun() -> ok = waits(2, 4) end, fun() ->
        ok = waits(5, 1),
        goes_on(sending(4, 5))
    end),
    Woken(None, fun() -> ok = witness_replay_backpressure:disable() end).

a_parked_parent_is_unparked_test() ->
    [begin
         ok = crowd(),
         ok = for_long(),
         Parents = [beginning(Id) || Id <- [1, 2]],
         [until_asleep(1 bsl 57 + 2, Id, Parent) || {Id, Parent} <- lists:enumerate(Parents)],
         ok = Do(),
         [goes_on(Parent) || Parent <- Parents],
         ?assertEqual([], ets:tab2list(witness_replay_parking))
     end || Do <- [fun witness_replay_backpressure:raise_limit/0, fun witness_replay_backpressure:disable/0]].

a_process_that_is_parked_for_an_end_is_unparked_by_it_test() ->
    ok = flow(2),
    ok = for_long(),
    Other = spawn(fun() -> receive stop -> ok end end),
    Told = spawn_monitor(fun() -> ok = witness_replay_backpressure:wait_for_end(1, of_(1), 2, Other, of_(2)) end),
    until_asleep(-2, 1, Told),
    Other ! stop,
    goes_on(Told).

%% A process that is killed while it sleeps leaves no entry.
a_process_that_is_killed_is_no_longer_parked_test() ->
    ok = flow(2),
    fill(1, 2),
    Sender = {Pid, Ref} = sending(1, 2),
    until_asleep(-2, 1, Sender),
    true = exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, killed} -> ok end,
    ok = ended(1),
    ?assertEqual([], ets:tab2list(witness_replay_parking)).

no_process_is_throttled_by_itself_test() ->
    ok = flow(1),
    fill(1, 1),
    fill(1, 1).

%% --- births ----------------------------------------------------------------------

-define(MAY_LIVE, 1024).

%% As many processes as may live at once.
crowd() ->
    ok = flow(?MAY_LIVE),
    lists:foreach(fun(_) -> ok = witness_replay_backpressure:count_live() end, lists:seq(1, ?MAY_LIVE)).

beginning(Id) -> spawn_monitor(fun() -> ok = begins(Id) end).

until_begins(Id) -> until_state(Id, begins).

no_process_is_begun_until_half_have_ended_test() ->
    ok = crowd(),
    Parent = beginning(1),
    until_begins(1),
    [ok = ended(Id) || Id <- lists:seq(2, ?MAY_LIVE div 2)],
    ?assert(is_held(Parent)),
    ok = ended(?MAY_LIVE div 2 + 1),
    goes_on(Parent),
    ?assertEqual(#{}, witness_replay_backpressure:states([1])).

an_end_that_is_told_twice_counts_once_test() ->
    ok = crowd(),
    Parent = beginning(1),
    until_begins(1),
    Numbers = [{Id, of_(Id)} || Id <- lists:seq(2, ?MAY_LIVE div 2)],
    [ok = witness_replay_backpressure:handle_exit(Id, Flow) || {Id, Flow} <- Numbers ++ Numbers],
    ?assert(is_held(Parent)),
    ok = ended(?MAY_LIVE div 2 + 1),
    goes_on(Parent).

%% All other processes wait for a parent, or are throttled themselves: more may live, but up to a bound.
more_processes_are_begun_when_none_runs_test() ->
    ok = crowd(),
    [ok = waits(Id, 1) || Id <- lists:seq(4, ?MAY_LIVE)],
    Parents = [beginning(Id) || Id <- [1, 2]],
    [until_begins(Id) || Id <- [1, 2]],
    [?assert(is_held(Parent)) || Parent <- Parents],
    ok = waits(3, 1),
    [goes_on(Parent) || Parent <- Parents],
    [ok = begins(1) || _ <- lists:seq(3, ?MAY_LIVE)],
    Again = beginning(1),
    until_begins(1),
    ?assert(is_held(Again)),
    %% The replay calls `more/0` when the process that runs makes no progress.
    ok = witness_replay_backpressure:raise_limit(),
    goes_on(Again).

%% Some have ended meanwhile, though not half of them. A quarter more than those that live is fewer than may live.
more_are_begun_when_some_have_ended_test() ->
    ok = flow(2502),
    [ok = witness_replay_backpressure:count_live() || _ <- lists:seq(1, 8000)],
    ok = witness_replay_backpressure:raise_limit(),
    [ok = begins(1) || _ <- lists:seq(8001, 10_000)],
    Parent = beginning(1),
    until_begins(1),
    [ok = ended(Id) || Id <- lists:seq(3, 2502)],
    ?assert(is_held(Parent)),
    ok = waits(2, 1),
    goes_on(Parent).

no_parent_waits_after_backpressure_is_disabled_test() ->
    ok = crowd(),
    Parent = beginning(1),
    until_begins(1),
    ok = witness_replay_backpressure:disable(),
    goes_on(Parent),
    ok = begins(2).
