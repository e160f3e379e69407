-module(witness_replay_flow_tests).
-moduledoc "Who is held, and who goes on.".
-include_lib("eunit/include/eunit.hrl").

-define(CROWD, 4096).

%% Processes 1, 2 and so on, which have begun.
flow(N) ->
    ok = witness_replay_flow:start(N),
    Flow = witness_replay_flow:here(),
    [ok = witness_replay_flow:begun(Id, Flow) || Id <- lists:seq(1, N)],
    Flow.

fill(From, To, Flow) -> [ok = witness_replay_flow:sent(From, To, Flow) || _ <- lists:seq(1, ?CROWD)].

%% One more: a process that ends when it may go on.
sending(From, To, Flow) -> spawn_monitor(fun() -> ok = witness_replay_flow:sent(From, To, Flow) end).

%% Until it says so.
until_held(Id, To, Flow) ->
    case witness_replay_flow:states([Id], Flow) of
        #{Id := {held, To}} -> ok;
        _ -> erlang:yield(), until_held(Id, To, Flow)
    end.

goes_on({Pid, Ref}) -> receive {'DOWN', Ref, process, Pid, normal} -> ok end.

is_held({_, Ref}) -> receive {'DOWN', Ref, _, _, _} -> false after 20 -> true end.

held_until_half_is_taken_test() ->
    Flow = flow(2),
    fill(1, 2, Flow),
    Sender = sending(1, 2, Flow),
    until_held(1, 2, Flow),
    [ok = witness_replay_flow:took(2, Flow) || _ <- lists:seq(1, ?CROWD div 2)],
    ?assert(is_held(Sender)),
    ok = witness_replay_flow:took(2, Flow),
    goes_on(Sender),
    ?assertEqual(#{}, witness_replay_flow:states([1, 2], Flow)).

%% The receiver wants something else of the sender, itself or through a third.
goes_on_for_who_waits_test() ->
    Flow = flow(3),
    fill(1, 2, Flow),
    ok = witness_replay_flow:waits(2, 3, Flow),
    Sender = sending(1, 2, Flow),
    until_held(1, 2, Flow),
    ok = witness_replay_flow:waits(3, 1, Flow),
    goes_on(Sender),
    ?assertEqual(#{2 => {waits, 3}, 3 => {waits, 1}}, witness_replay_flow:states([1, 2, 3], Flow)),
    %% Not again at once.
    fill(1, 2, Flow).

held_by_each_other_test() ->
    Flow = flow(2),
    fill(1, 2, Flow),
    fill(2, 1, Flow),
    Senders = [{_, One}, {_, Two}] = [sending(1, 2, Flow), sending(2, 1, Flow)],
    %% One is enough: the other one waits for that it takes what lies there, or ends.
    First = receive {'DOWN', Ref, process, _, normal} when Ref =:= One; Ref =:= Two -> Ref end,
    [Left] = [Sender || {_, Other} = Sender <- Senders, Other =/= First],
    [ok = witness_replay_flow:ended(Id, Flow) || Id <- [1, 2]],
    goes_on(Left).

nobody_else_goes_on_test() ->
    Stuck = fun(Do) ->
        Flow = flow(4),
        fill(1, 2, Flow),
        Sender = sending(1, 2, Flow),
        until_held(1, 2, Flow),
        Do(Flow),
        goes_on(Sender)
    end,
    %% Who has ended, who waits for one that has, and who takes nothing any more.
    Stuck(fun(Flow) -> ok = witness_replay_flow:ended(2, Flow) end),
    Stuck(fun(Flow) -> ok = witness_replay_flow:ended(3, Flow), ok = witness_replay_flow:waits(2, 3, Flow) end),
    Stuck(fun(Flow) -> ok = witness_replay_flow:last(2, Flow) end).

%% A message may be on its way to one of them, as long as something runs.
round_in_circles_test() ->
    Flow = flow(4),
    fill(1, 2, Flow),
    Sender = sending(1, 2, Flow),
    until_held(1, 2, Flow),
    [ok = witness_replay_flow:waits(Id, For, Flow) || {Id, For} <- [{3, 4}, {4, 3}, {2, 3}]],
    ?assert(is_held(Sender)),
    ok = witness_replay_flow:let_go(Flow),
    goes_on(Sender).

who_is_told_of_an_end_waits_for_it_test() ->
    Follows = fun(Do) ->
        Flow = flow(3),
        Other = spawn(fun() -> receive stop -> ok end end),
        Told = spawn_monitor(fun() -> ok = witness_replay_flow:follows(1, 2, Other, Flow) end),
        until_held(1, 2, Flow),
        ?assert(is_held(Told)),
        Do(Flow, Other),
        goes_on(Told),
        ?assertEqual(#{}, witness_replay_flow:states([1], Flow))
    end,
    %% It ends, has nothing left, or wants a message of who is told, also through another one.
    Follows(fun(_, Other) -> Other ! stop end),
    Follows(fun(Flow, _) -> ok = witness_replay_flow:last(2, Flow) end),
    Follows(fun(Flow, _) -> ok = witness_replay_flow:waits(2, 1, Flow) end),
    Follows(fun(Flow, _) -> ok = witness_replay_flow:waits(3, 1, Flow), ok = witness_replay_flow:waits(2, 3, Flow) end),
    Follows(fun(Flow, _) -> ok = witness_replay_flow:let_go(Flow) end),
    %% It has not begun.
    ok = witness_replay_flow:start(2),
    ok = witness_replay_flow:follows(1, 2, self(), witness_replay_flow:here()).

nobody_is_held_by_itself_test() ->
    Flow = flow(1),
    fill(1, 1, Flow),
    fill(1, 1, Flow).

%% --- births ----------------------------------------------------------------------

-define(MAY_LIVE, 1024).

%% As many live as may; all but the first one are after it in the array.
crowd() ->
    Flow = flow(?MAY_LIVE),
    [ok = witness_replay_flow:first(Flow) || _ <- lists:seq(1, ?MAY_LIVE)],
    Flow.

beginning(Id, Flow) -> spawn_monitor(fun() -> ok = witness_replay_flow:begins(Id, Flow) end).

until_begins(Id, Flow) ->
    case witness_replay_flow:states([Id], Flow) of
        #{Id := begins} -> ok;
        _ -> erlang:yield(), until_begins(Id, Flow)
    end.

nobody_is_begun_until_half_have_ended_test() ->
    Flow = crowd(),
    Parent = beginning(1, Flow),
    until_begins(1, Flow),
    [ok = witness_replay_flow:ended(Id, Flow) || Id <- lists:seq(2, ?MAY_LIVE div 2)],
    ?assert(is_held(Parent)),
    ok = witness_replay_flow:ended(?MAY_LIVE div 2 + 1, Flow),
    goes_on(Parent),
    ?assertEqual(#{}, witness_replay_flow:states([1], Flow)).

%% All the others wait for it, or are held as it is: more may live, but not without a bound.
more_are_begun_when_nobody_runs_test() ->
    Flow = crowd(),
    [ok = witness_replay_flow:waits(Id, 1, Flow) || Id <- lists:seq(4, ?MAY_LIVE)],
    Parents = [beginning(Id, Flow) || Id <- [1, 2]],
    [until_begins(Id, Flow) || Id <- [1, 2]],
    [?assert(is_held(Parent)) || Parent <- Parents],
    ok = witness_replay_flow:waits(3, 1, Flow),
    [goes_on(Parent) || Parent <- Parents],
    [ok = witness_replay_flow:begins(1, Flow) || _ <- lists:seq(3, ?MAY_LIVE)],
    Again = beginning(1, Flow),
    until_begins(1, Flow),
    ?assert(is_held(Again)),
    %% Whoever looks after all knows that the one that runs does not get on.
    ok = witness_replay_flow:more(Flow),
    goes_on(Again).

%% Some have ended meanwhile, though not half of them: a quarter more than live are fewer than might.
more_are_begun_when_some_have_ended_test() ->
    Flow = flow(2502),
    [ok = witness_replay_flow:first(Flow) || _ <- lists:seq(1, 8000)],
    ok = witness_replay_flow:more(Flow),
    [ok = witness_replay_flow:begins(1, Flow) || _ <- lists:seq(8001, 10_000)],
    Parent = beginning(1, Flow),
    until_begins(1, Flow),
    [ok = witness_replay_flow:ended(Id, Flow) || Id <- lists:seq(3, 2502)],
    ?assert(is_held(Parent)),
    ok = witness_replay_flow:waits(2, 1, Flow),
    goes_on(Parent).

nobody_is_held_where_processes_stop_test() ->
    Flow = crowd(),
    Parent = beginning(1, Flow),
    until_begins(1, Flow),
    ok = witness_replay_flow:let_go(Flow),
    goes_on(Parent),
    ok = witness_replay_flow:begins(2, Flow).
