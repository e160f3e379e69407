-module(witness_replay_events_tests).
-include_lib("eunit/include/eunit.hrl").

%% The first process spawns the second one.
begun() ->
    Processes = [#{id => Id, parent => Id - 1, place => 0, pid => pid(Id), signature => {erlang, apply, 2}, ended => true}
                 || Id <- [1, 2]],
    {[{{init, _, undefined, {m, f, [1]}, _}, {1, 0}}], E} =
        witness_replay_events:handle_report({1, 0, {born, {m, f, [1]}}}, witness_replay_events:new(Processes, none)),
    {[{{fork, _, _, {m, f, [2]}, _}, {1, 1}}, {{init, _, _, {m, f, [2]}, _}, {1, 1}}], E1} =
        witness_replay_events:handle_report({1, 1, {spawn, 2, {m, f, [2]}}}, E),
    E1.

pid(Id) -> list_to_pid("<0." ++ integer_to_list(1000 + Id) ++ ".0>").

%% What is reported, one after the other, and then the end of the recording.
events(Told) ->
    {Items, E} = lists:mapfoldl(fun witness_replay_events:handle_report/2, begun(), Told),
    lists:append(Items) ++ witness_replay_events:finish(E).

short(Placed) -> [short_one(Item) || {Item, _} <- Placed].

short_one({send, _, _, Msg, _}) -> {send, Msg};
short_one({recv, _, _, Msg, _}) -> {recv, Msg};
short_one({call, _, {m, f, [Arg]}, _}) -> {call, Arg};
short_one({return, _, {m, f, 1}, Value, _}) -> {return, Value};
short_one({exit, P, Reason, _}) -> {exit, id(P), Reason};
short_one({gap, P, Why, _, _}) -> {gap, id(P), Why}.

id(P) -> hd([Id || Id <- [1, 2], pid(Id) =:= P]).

send(Msg, How) -> {2, 3, {send, pid(1), Msg, How}}.

recv(Msg) -> {1, 2, {recv, 2, Msg}}.

what_is_sure_is_told_at_once_test() ->
    ?assertEqual([{{send, pid(2), pid(1), a, undefined}, {2, 3}}, {{recv, pid(1), pid(2), a, undefined}, {1, 2}},
                  {{gap, pid(1), cut, unknown, undefined}, {1, 2}}, {{gap, pid(2), cut, unknown, undefined}, {2, 3}}],
                 events([send(a, sure), recv(a)])).

a_process_that_ends_by_itself_has_sent_all_test() ->
    ?assertEqual([{send, a}, {send, b}, {exit, 2, done}, {recv, b}, {exit, 1, normal}],
                 short(events([send(a, unsure), send(b, unsure), {2, 4, {exit, ended, done}}, recv(b),
                               {1, 3, {exit, ended, normal}}]))).

what_was_taken_was_sent_and_all_before_it_test() ->
    %% Also what is taken after its sender was killed. The exit is reported when none of the sender's messages is unknown.
    ?assertEqual([{send, a}, {send, b}, {recv, b}, {send, c}, {exit, 2, killed}, {recv, c}, {exit, 1, normal}],
                 short(events([send(a, unsure), send(b, unsure), recv(b), send(c, unsure), {2, 4, {exit, killed, killed}}, recv(c),
                               {1, 3, {exit, ended, normal}}]))).

a_message_that_no_process_has_taken_is_not_known_test() ->
    ?assertEqual([{send, a}, {recv, a}, {exit, 1, normal}, {gap, 2, killed}, {exit, 2, killed}],
                 short(events([send(a, unsure), send(b, unsure), {2, 4, {exit, killed, killed}}, recv(a),
                               {1, 3, {exit, ended, normal}}]))).

called(Arg, How) -> {2, 3, {called, {m, f, [Arg]}, How}}.

returned(Value, How) -> {2, 3, {returned, {m, f, 1}, Value, How}}.

calls_are_kept_back_as_messages_are_test() ->
    Told = [called(a, sure), returned(a, sure), called(b, unsure), send(c, unsure), returned(b, unsure), called(d, unsure)],
    Begun = [{call, a}, {return, a}],
    %% Those before a message that was taken have happened.
    ?assertEqual(Begun ++ [{call, b}, {send, c}, {recv, c}, {exit, 1, normal}, {gap, 2, killed}, {exit, 2, killed}],
                 short(events(Told ++ [{2, 4, {exit, killed, killed}}, recv(c), {1, 3, {exit, ended, normal}}]))),
    ?assertEqual(Begun ++ [{call, b}, {send, c}, {return, b}, {call, d}, {exit, 2, done}, {gap, 1, cut}],
                 short(events(Told ++ [{2, 4, {exit, ended, done}}]))),
    ?assertEqual(Begun ++ [{gap, 2, killed}, {exit, 2, killed}, {gap, 1, cut}],
                 short(events(Told ++ [{2, 4, {exit, killed, killed}}]))),
    ?assertEqual(Begun ++ [{gap, 1, cut}, {gap, 2, cut}], short(events(Told))).

what_a_native_function_calls_is_missing_test() ->
    Hidden = {2, 3, {hidden, sure}},
    ?assertEqual([{call, a}, {gap, 2, hidden_calls}, {return, a}, {exit, 2, done}, {gap, 1, cut}],
                 short(events([called(a, sure), Hidden, returned(a, sure), {2, 4, {exit, ended, done}}]))),
    ?assertEqual([{gap, 2, killed}, {exit, 2, killed}, {gap, 1, cut}],
                 short(events([{2, 3, {hidden, unsure}}, {2, 4, {exit, killed, killed}}]))).

another_message_proves_nothing_test() ->
    ?assertEqual([{recv, b}, {exit, 1, normal}, {gap, 2, killed}, {exit, 2, killed}],
                 short(events([send(a, unsure), {2, 4, {exit, killed, killed}}, recv(b), {1, 3, {exit, ended, normal}}]))).

what_was_not_told_is_missing_test() ->
    Told = [send(a, unsure), {2, 3, lost}],
    ?assertEqual([{send, a}, {gap, 2, killed}, {exit, 2, done}, {gap, 1, cut}],
                 short(events(Told ++ [{2, 4, {exit, ended, done}}]))),
    ?assertEqual([{send, a}, {gap, 2, killed}, {recv, z}, {exit, 2, killed}, {gap, 1, cut}],
                 short(events(Told ++ [recv(z), {2, 4, {exit, killed, killed}}]))).

nothing_comes_behind_an_end_test() ->
    ?assertEqual([{exit, 2, killed}, {gap, 1, cut}],
                 short(events([{2, 4, {exit, killed, killed}}, send(a, unsure), send(b, sure)]))).

%% A process that is alive at a planned end was stopped. What it has sent is known if it waited.
stopped(Told, Waiting) ->
    Processes = [#{id => Id, parent => Id - 1, place => 0, pid => pid(Id), signature => {erlang, apply, 2}, ended => false}
                 || Id <- [1, 2]],
    {Items, E} = lists:mapfoldl(fun witness_replay_events:handle_report/2, witness_replay_events:new(Processes, Waiting),
                                [{1, 0, {born, {m, f, [1]}}}, {1, 1, {spawn, 2, {m, f, [2]}}} | Told]),
    [Item || {_, Item} <- lists:enumerate(lists:append(Items) ++ witness_replay_events:finish(E)),
             not lists:member(element(1, element(1, Item)), [init, fork])].

nothing_is_missing_of_a_process_that_is_alive_at_a_planned_end_test() ->
    ?assertEqual([{send, a}, {recv, a}], short(stopped([send(a, sure), recv(a)], #{}))),
    ?assertEqual([{gap, 1, cut}, {gap, 2, cut}], lists:nthtail(2, short(stopped([send(a, sure), recv(a)], none)))).

a_process_that_waits_at_a_planned_end_has_sent_all_test() ->
    ?assertEqual([{send, a}, {send, b}], short(stopped([send(a, unsure), send(b, unsure)], #{2 => []}))),
    ?assertEqual([{send, a}, {recv, a}, {send, b}], short(stopped([send(a, unsure), recv(a), send(b, unsure)], #{2 => []}))).

a_process_that_does_not_wait_at_a_planned_end_has_a_gap_test() ->
    ?assertEqual([{gap, 2, cut}], short(stopped([send(a, unsure)], #{1 => []}))).

a_process_that_has_sent_too_much_to_be_told_has_a_gap_test() ->
    ?assertEqual([{send, a}, {gap, 2, cut}], short(stopped([send(a, unsure), {2, 3, lost}], #{2 => []}))),
    ?assertEqual([{gap, 2, cut}], short(stopped([send(a, unsure), {2, 3, lost}], #{}))).
