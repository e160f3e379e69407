-module(witness_step_reorder_tests).
-moduledoc """
Random executions of processes with tables: their reports come in any order that messages allow, and pass in one that tables allow,
too.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% What a process of an execution does: its reports, the latest first; the messages that it has not taken; the change that it is in.
-record(p, {reports = [], box = [], changing = none, alive = true}).

reports_pass_in_an_order_that_tables_allow_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(?FORALL(Seed, integer(), begin
        Lists = execution(Seed),
        Passed = passed(interleaved(Lists)),
        ?WHENFAIL(io:format("~tp~n~tp~n", [Lists, Passed]), agrees(Passed, Lists))
    end), [{numtests, 2000}, nocolors, {to_file, user}]))}.

%% It can fail: an execution in which the order of the replay is not that of the tables is found.
without_it_they_do_not_test() ->
    ?assertNot(proper:quickcheck(?FORALL(Seed, integer(), begin
        Lists = execution(Seed),
        agrees(interleaved(Lists), Lists)
    end), [{numtests, 200}, quiet, noshrink])).

%% Nothing is lost if the reports of some calls never come.
what_is_missing_stops_nothing_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(?FORALL(Seed, integer(), begin
        Lists = execution(Seed),
        Cut = #{Id => [Report || Report <- Reports, not is_change(Report) orelse rand:uniform(10) > 1] || Id := Reports <- Lists},
        Passed = passed(interleaved(Cut), places(Lists)),
        lists:sort(Passed) =:= lists:sort(lists:append(maps:values(Cut))) andalso keeps_each_process(Passed, Cut)
    end), [{numtests, 1000}, nocolors, {to_file, user}]))}.

a_call_waits_for_the_change_before_it_test() ->
    Change = {1, 1, {ordered, 1, 2, {call, {ets, insert, 2}, [t, {k, 1}], true}}},
    Read = {2, 1, {ordered, 2, 2, {call, {ets, lookup, 2}, [t, k], [{k, 1}]}}},
    Next = {2, 1, {send, self(), hello, sure}},
    Take = {3, 1, {recv, 2, hello}},
    ?assertEqual([Change, Read, Next, Take], passed([Read, Next, Take, Change])),
    %% Both were under way: the order in which they began.
    During = {2, 1, {ordered, 1, 1, {call, {ets, lookup, 2}, [t, k], []}}},
    ?assertEqual([Change, During], passed([During, Change])),
    Before = {2, 1, {ordered, 0, 0, {call, {ets, lookup, 2}, [t, k], []}}},
    ?assertEqual([Before, Change], passed([Before, Change])).

passed(Reports) ->
    passed(Reports, places(maps:groups_from_list(fun(Report) -> element(1, Report) end, Reports))).

passed(Reports, Places) ->
    {Passed, Order} = lists:foldl(fun(Report, {Done, O}) ->
        {Now, O1} = witness_step_reorder:add(Report, O),
        {Done ++ Now, O1}
    end, {[], witness_step_reorder:new(#{}, Places)}, Reports),
    Passed ++ witness_step_reorder:finish(Order).

places(Lists) ->
    #{Id => [witness_step_reorder:place(Call) || {_, _, {ordered, _, _, _} = Call} <- Reports] || Id := Reports <- Lists}.

%% --- what must hold --------------------------------------------------------------

agrees(Passed, Lists) ->
    lists:sort(Passed) =:= lists:sort(lists:append(maps:values(Lists))) andalso keeps_each_process(Passed, Lists)
        andalso keeps_causes(Passed, #{}) andalso keeps_calls([Order || {_, _, {ordered, _, _, _} = Order} <- Passed]).

keeps_each_process(Passed, Lists) ->
    lists:all(fun({Id, Own}) -> [Report || {Of, _, _} = Report <- Passed, Of =:= Id] =:= Own end, maps:to_list(Lists)).

%% A message is not taken before it is sent, and a process does nothing before it is spawned.
keeps_causes([], _) -> true;
keeps_causes([{Id, _, {recv, From, Msg}} | Passed], Sent) ->
    case Sent of
        #{{From, Msg} := N} when N > 0, is_map_key(Id, Sent) -> keeps_causes(Passed, Sent#{{From, Msg} := N - 1});
        #{} -> false
    end;
keeps_causes([{Id, _, {send, _, Msg, _}} | Passed], Sent) ->
    keeps_causes(Passed, maps:update_with({Id, Msg}, fun(N) -> N + 1 end, 1, Sent));
keeps_causes([{1, _, {born, _}} | Passed], Sent) -> keeps_causes(Passed, Sent#{1 => []});
keeps_causes([{Id, _, What} | Passed], Sent) ->
    is_map_key(Id, Sent) andalso keeps_causes(Passed, case What of {spawn, Child, _} -> Sent#{Child => []}; _ -> Sent end).

%% Calls pass in the order in which they began.
keeps_calls(Calls) ->
    Begun = [{Begin, element(2, Call) =:= {ets, lookup, 2}} || {ordered, Begin, _, Call} <- Calls],
    Begun =:= lists:sort(Begun).

is_change({_, _, {ordered, _, _, {call, {ets, insert, 2}, _, _}}}) -> true;
is_change(_) -> false.

%% --- an execution, and a replay of it --------------------------------------------

%% The reports of each process.
execution(Seed) ->
    _ = rand:seed(exsss, Seed),
    First = #p{reports = [{1, 0, {born, {m, f, []}}}]},
    #{Id => lists:reverse(Reports) || Id := #p{reports = Reports} <- run(10 + rand:uniform(60), #{1 => First}, 0)}.

run(0, Processes, Number) ->
    {Ended, _} = maps:fold(fun(Id, #p{changing = Changing}, {All, N}) when Changing =/= none -> change_ends(Id, All, N);
                              (_, _, Acc) -> Acc
                           end, {Processes, Number}, Processes),
    Ended;
run(Left, Processes, Number) ->
    Alive = [Id || Id := #p{alive = true} <- Processes],
    Id = lists:nth(rand:uniform(length(Alive)), Alive),
    {Next, N} = case maps:get(Id, Processes) of
        #p{changing = none} = P -> act(rand:uniform(10), Id, P, Alive, Processes, Number);
        #p{} -> change_ends(Id, Processes, Number)
    end,
    run(Left - 1, Next, N).

change_ends(Id, Processes, Number) ->
    #{Id := #p{changing = Begin} = P} = Processes,
    Call = {ordered, Begin, Number + 1, {call, {ets, insert, 2}, [t, {k, Begin}], true}},
    {Processes#{Id := report(Id, Call, P#p{changing = none})}, Number + 1}.

act(A, Id, P, _, Processes, N) when A =< 3 -> {Processes#{Id := P#p{changing = N + 1}}, N + 1};
act(A, Id, P, _, Processes, N) when A =< 5 ->
    {Processes#{Id := report(Id, {ordered, N, N, {call, {ets, lookup, 2}, [t, k], []}}, P)}, N};
act(A, Id, P, Alive, Processes, N) when A =< 7 ->
    To = lists:nth(rand:uniform(length(Alive)), Alive),
    Msg = {to, To, rand:uniform(2)},
    Sent = Processes#{Id := report(Id, {send, To, Msg, sure}, P)},
    #{To := Receiver} = Sent,
    {Sent#{To := Receiver#p{box = Receiver#p.box ++ [{Id, Msg}]}}, N};
act(8, Id, P, _, Processes, N) when map_size(Processes) < 5 ->
    Child = map_size(Processes) + 1,
    {(Processes#{Id := report(Id, {spawn, Child, {m, f, []}}, P)})#{Child => #p{}}, N};
act(_, Id, #p{box = [{From, Msg} | Box]} = P, _, Processes, N) ->
    {Processes#{Id := report(Id, {recv, From, Msg}, P#p{box = Box})}, N};
act(_, _, _, _, Processes, N) -> {Processes, N}.

report(Id, What, #p{reports = Reports} = P) -> P#p{reports = [{Id, length(Reports), What} | Reports]}.

%% The reports in any order that births and messages allow.
interleaved(Lists) -> interleaved(maps:filter(fun(_, Reports) -> Reports =/= [] end, Lists), #{1 => []}, #{}).

interleaved(Lists, _, _) when map_size(Lists) =:= 0 -> [];
interleaved(Lists, Born, Sent) ->
    May = [Id || Id := [{_, _, What} | _] <- Lists, is_map_key(Id, Born), case What of
        {recv, From, Msg} -> maps:get({From, Msg}, Sent, 0) > 0;
        _ -> true
    end],
    Id = lists:nth(rand:uniform(length(May)), May),
    #{Id := [{_, _, What} = Report | Rest]} = Lists,
    Left = case Rest of [] -> maps:remove(Id, Lists); _ -> Lists#{Id := Rest} end,
    [Report | case What of
        {spawn, Child, _} -> interleaved(Left, Born#{Child => []}, Sent);
        {send, _, Msg, _} -> interleaved(Left, Born, maps:update_with({Id, Msg}, fun(N) -> N + 1 end, 1, Sent));
        {recv, From, Msg} -> interleaved(Left, Born, maps:update_with({From, Msg}, fun(N) -> N - 1 end, Sent));
        _ -> interleaved(Left, Born, Sent)
    end].
