-module(witness_search_world_tests).
-moduledoc """
The world of a search as data. Its steps and the relation of dependence (`m:witness_search_conflict`) are checked against each other:
of random worlds, each two possible steps that are called independent lead to the same world in both orders, and give the same answers.
""".
-include_lib("eunit/include/eunit.hrl").

-define(WORLDS, 20_000).
-define(PROCESSES, 3).

independent_steps_commute_test_() ->
    {timeout, 120, fun() ->
        Found = [check(world(Seed)) || Seed <- lists:seq(1, ?WORLDS)],
        {Independent, Dependent} = {lists:sum([I || {I, _} <- Found]), lists:sum([D || {_, D} <- Found])},
        %% Both kinds are there, or this would say nothing.
        ?assert(Independent > 1_000),
        ?assert(Dependent > 1_000)
    end}.

check(World) ->
    Steps = witness_search_world:steps(World),
    Pairs = [{One, Two} || One <- Steps, Two <- Steps, One < Two],
    {Dependent, Independent} = lists:partition(fun({One, Two}) -> witness_search_conflict:depends(One, Two, World) end, Pairs),
    lists:foreach(fun({One, Two}) ->
        Described = [{Step, witness_search_world:describe(Step, World)} || Step <- [One, Two]],
        ?assertEqual({Described, both(One, Two, World)}, {Described, both(Two, One, World)})
    end, Independent),
    {length(Independent), length(Dependent)}.

%% If the first step makes the second one impossible, the result is a term that the other order does not have.
both(One, Two, World) ->
    {Effects, Next} = witness_search_world:step(One, World),
    case lists:member(Two, witness_search_world:steps(Next)) of
        true ->
            {More, Last} = witness_search_world:step(Two, Next),
            %% What has changed is told in the order of the steps.
            {_, Told} = witness_search_world:changes(Last),
            {lists:sort(Effects ++ More), Told};
        false -> {impossible, Two}
    end.

%% A world after some random steps, in which each process that could go on has a random operation.
world(Seed) ->
    Random = rand:seed_s(exsss, Seed),
    {1, First} = witness_search_world:first(#{start => {m, f, []}, leader => self()}, witness_search_world:new(#{})),
    Born = lists:foldl(fun(_, World) ->
        Parked = witness_search_world:park(1, {spawn, {m, f, []}, inherited, []}, World),
        {_, Spawned} = witness_search_world:step({process, 1}, Parked),
        Spawned
    end, First, lists:seq(2, ?PROCESSES)),
    {World, Random1} = park_all(lists:seq(1, ?PROCESSES), Born, Random),
    {Length, Random2} = rand:uniform_s(8, Random1),
    walk(Length, World, Random2).

park_all(Ids, World, Random) ->
    lists:foldl(fun(Id, {W, R}) ->
        {Operation, Next} = operation(R),
        {witness_search_world:park(Id, Operation, W), Next}
    end, {World, Random}, Ids).

walk(0, World, _) -> World;
walk(Length, World, Random) ->
    case witness_search_world:steps(World) of
        [] -> World;
        Steps ->
            {Place, Random1} = rand:uniform_s(length(Steps), Random),
            {Effects, Stepped} = witness_search_world:step(lists:nth(Place, Steps), World),
            {Next, Random2} = park_all([Id || {answer, Id, _} <- Effects], Stepped, Random1),
            walk(Length - 1, Next, Random2)
    end.

%% Operations that make no reference: references are numbered in the order of the steps.
operation(Random) ->
    {[Kind, Id, Name, Choice], Next} = lists:mapfoldl(fun rand:uniform_s/2, Random, [15, ?PROCESSES, 2, 3]),
    Pid = witness_search_identity:pid(Id),
    Called = lists:nth(Name, [one, two]),
    Reason = lists:nth(Choice, [normal, kill, crash]),
    {case Kind of
        1 -> {send, Pid, Choice, 2};
        2 -> {send, Called, Choice, 2};
        3 -> {'receive', #{match => fun(Message) -> Message =:= Choice end, time => infinity, take => true}};
        4 -> {'receive', #{match => fun(_) -> true end, time => 0, take => true}};
        5 -> {link, Pid};
        6 -> {unlink, Pid};
        7 -> {exit, Pid, Reason};
        8 -> {trap_exit, Choice > 1};
        9 -> {register, Called, Pid};
        10 -> {unregister, Called};
        11 -> {whereis, Called};
        12 -> {is_alive, Pid};
        13 -> {information, Pid};
        14 -> {ended, case Reason of kill -> killed; _ -> Reason end};
        15 -> {adopt, one, {m, f, []}, self()}
    end, Next}.

a_process_is_adopted_once_test() ->
    {1, First} = witness_search_world:first(#{start => {m, f, []}, leader => self()}, witness_search_world:new(#{})),
    Adopt = fun(World) ->
        witness_search_world:step({process, 1}, witness_search_world:park(1, {adopt, one, {m, g, []}, self()}, World))
    end,
    {[{start, 2, {m, g, []}, []}, {answer, 1, true}], Adopted} = Adopt(First),
    ?assertMatch(#{parent := 0, path := <<_:16/binary>>}, witness_search_world:birth(2, Adopted)),
    ?assertEqual(2, witness_search_world:adopted(one, Adopted)),
    {[{answer, 1, true}], Again} = Adopt(Adopted),
    {[{ended, 2, normal}], Gone} =
        witness_search_world:step({process, 2}, witness_search_world:park(2, {ended, normal}, Again)),
    ?assertEqual(none, witness_search_world:adopted(one, Gone)),
    ?assertMatch({[{answer, 1, false}], _}, Adopt(Gone)).

%% --- single steps ------------------------------------------------------------------

two_processes() ->
    {1, First} = witness_search_world:first(#{start => {m, f, []}, leader => self()}, witness_search_world:new(#{})),
    {[{start, 2, _, _}, {answer, 1, {spawned, 2, Pid, none}}], World} =
        witness_search_world:step({process, 1}, witness_search_world:park(1, {spawn, {m, g, []}, inherited, []}, First)),
    {Pid, World}.

receives(Match, Time) -> {'receive', #{match => Match, time => Time, take => true}}.

messages_of_a_sender_do_not_overtake_its_signals_test() ->
    {Pid, World} = two_processes(),
    Waiting = witness_search_world:park(2, receives(fun(_) -> true end, infinity), World),
    {_, Exiting} = witness_search_world:step({process, 1}, witness_search_world:park(1, {exit, Pid, kill}, Waiting)),
    Sending = witness_search_world:park(1, {send, Pid, hello, 2}, Exiting),
    ?assertEqual([{process, 1}, {signal, 1, 2}], witness_search_world:steps(Sending)),
    ?assertMatch({[{kill, 2, killed, _}, {answer, 1, {sent, 2}}], _}, witness_search_world:step({process, 1}, Sending)).

time_moves_when_nothing_else_can_happen_test() ->
    {Pid, World} = two_processes(),
    Waiting = witness_search_world:park(2, receives(fun(_) -> true end, 60_000), World),
    Both = witness_search_world:park(1, {send, Pid, hello, 2}, Waiting),
    ?assertEqual([{process, 1}], witness_search_world:steps(Both)),
    Alone = witness_search_world:park(1, receives(fun(_) -> false end, infinity), Waiting),
    ?assertEqual([{timeout, 2}], witness_search_world:steps(Alone)),
    {[{answer, 2, timeout}], Later} = witness_search_world:step({timeout, 2}, Alone),
    ?assertEqual(60_000_000_000, witness_search_world:clock(Later)).

a_receive_takes_the_first_message_that_matches_test() ->
    {Pid, World} = two_processes(),
    Sent = lists:foldl(fun(Message, W) ->
        {_, Next} = witness_search_world:step({process, 1}, witness_search_world:park(1, {send, Pid, Message, 2}, W)),
        Next
    end, World, [1, 2, 3, 2]),
    Parked = witness_search_world:park(2, receives(fun(Message) -> Message =:= 2 end, infinity), Sent),
    {[{answer, 2, {message, {1, none, 2}}}], Taken} = witness_search_world:step({process, 2}, Parked),
    {{information, #{messages := Left}}, _} = witness_search_world:query(information, 2, Taken),
    ?assertEqual([1, 3, 2], Left).

the_end_of_a_process_reaches_all_that_are_to_be_told_test() ->
    {Pid, World} = two_processes(),
    {[{answer, 1, Ref}], Watched} =
        witness_search_world:step({process, 1}, witness_search_world:park(1, {monitor, Pid, []}, World)),
    {_, Ended} = witness_search_world:step({process, 2}, witness_search_world:park(2, {ended, crash}, Watched)),
    Waiting = witness_search_world:park(1, receives(fun(_) -> true end, infinity), Ended),
    ?assertEqual([{signal, 2, 1}], witness_search_world:steps(Waiting)),
    {[], Told} = witness_search_world:step({signal, 2, 1}, Waiting),
    ?assertMatch({[{answer, 1, {message, {outside, none, {'DOWN', Ref, process, Pid, crash}}}}], _},
                 witness_search_world:step({process, 1}, Told)).
