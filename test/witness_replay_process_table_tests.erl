-module(witness_replay_process_table_tests).
-moduledoc "The births in a recording, and the live process of each recorded one while it is replayed.".
-include_lib("eunit/include/eunit.hrl").

%% A pid of a VM that is not a node.
pid(Number, Serial) ->
    Own = term_to_binary(self()),
    Size = byte_size(Own) - 12,
    <<Node:Size/binary, _:64, Incarnation:4/binary>> = Own,
    binary_to_term(<<Node/binary, Number:32, Serial:32, Incarnation/binary>>).

birth(Id, Pid) -> birth(Id, Pid, max(0, Id - 7)).

birth(Id, Pid, Parent) -> #{id => Id, parent => Parent, place => 0, pid => Pid, signature => {m, f, [Id]}}.

with(Births, Fun) ->
    ok = witness_replay_tables:delete(),
    Dir = witness_recording_sample:folder("births"),
    Parts = witness_recording_sample:births([{Birth, []} || Birth <- Births]),
    ok = witness_recording_sample:write(Dir, Parts, #{header => witness_recording_sample:header(false)}),
    {ok, Recording} = witness_log_recording:open(Dir),
    Reader = witness_replay_log:start(Recording),
    receive {witness_replay_log, ready} -> ok end,
    try
        Fun(witness_replay_process_table:read(Recording))
    after
        true = unlink(Reader),
        Monitor = monitor(process, Reader),
        true = exit(Reader, kill),
        receive {'DOWN', Monitor, process, Reader, _} -> ok end,
        ok = witness_replay_tables:delete(),
        witness_recording_sample:delete(Dir)
    end.

%% In any order, with some missing births, and with pids that are far from each other or next to each other.
all_are_found_test() -> all_are_found(1 bsl 20).

%% Several numbers in a word.
all_are_found_of_a_short_run_test() -> all_are_found(1).

all_are_found(Serials) ->
    Ids = shuffled([Id || Id <- lists:seq(1, 3000), Id rem 10 =/= 0]),
    Numbers = shuffled(lists:uniq([{rand:uniform(1 bsl 28) - 1, rand:uniform(Serials) - 1} || _ <- Ids]
                                  ++ [{N, 0} || N <- lists:seq(100, 4000)]) -- [{0, 0}]),
    Born = [birth(Id, pid(Number, Serial)) || {Id, {Number, Serial}} <- lists:zip(Ids, Numbers, trim)],
    with(Born, fun(Read) ->
        ?assertEqual({ok, [{Id, {m, f, [Id]}} || Id <- lists:seq(1, 7)]}, Read),
        ?assertEqual(2999, witness_replay_process_table:last()),
        lists:foreach(fun(#{id := Id, pid := Pid, parent := Parent, signature := Signature}) ->
            ?assertEqual({Pid, Id}, {witness_replay_process_table:pid(Id), witness_replay_process_table:id(Pid)}),
            ?assertEqual(case Parent of 0 -> none; _ -> Parent end, witness_replay_process_table:parent(Id)),
            Id rem 100 =:= 1 andalso ?assertEqual({Pid, Signature}, witness_replay_process_table:lookup(Id))
        end, Born),
        [?assertEqual({none, none, none}, {witness_replay_process_table:pid(Id), witness_replay_process_table:lookup(Id),
                                           witness_replay_process_table:parent(Id)})
         || Id <- [10, 2990, 3000, 1_000_000]],
        Others = [pid(Number, 1 bsl 21) || {Number, _} <- Numbers],
        ?assertEqual([], [Pid || Pid <- [whereis(init) | Others], witness_replay_process_table:id(Pid) =/= none])
    end).

shuffled(List) -> [Element || {_, Element} <- lists:sort([{rand:uniform(), Element} || Element <- List])].

processes_that_cannot_be_told_apart_are_refused_test() ->
    Pid = pid(77, 1),
    with([birth(1, pid(76, 1)), birth(2, Pid), birth(3, Pid)], fun(Read) -> ?assertMatch({error, {two, <<"<0.77.1>">>}}, Read) end),
    with([birth(1, pid(76, 1)), birth(2, pid(78, 1)), birth(2, Pid)],
         fun(Read) -> ?assertMatch({error, {two, <<"<0.77.1>">>}}, Read) end),
    with([birth(1, Pid), birth(2, none)], fun(Read) -> ?assertEqual({error, {no_pid, ~"none"}}, Read) end),
    with([birth(1, whereis(init))], fun(Read) -> ?assertMatch({error, {no_pid, _}}, Read) end),
    with([], fun(Read) -> ?assertEqual({error, no_processes}, Read) end).

a_number_that_no_table_can_have_is_refused_test() ->
    with([birth(1, pid(76, 1)), birth(1 bsl 32, pid(77, 1))], fun(Read) -> ?assertEqual({error, {number, 1 bsl 32}}, Read) end),
    with([birth(1, pid(76, 1), 1 bsl 32)], fun(Read) -> ?assertEqual({error, {number, 1 bsl 32}}, Read) end),
    %% A parent that is not in the recording is `none`.
    with([birth(1, pid(76, 1), 9)],
         fun(Read) -> ?assertEqual({{ok, []}, none}, {Read, witness_replay_process_table:parent(1)}) end).

%% Each word has bits of processes of both.
ends_are_told_side_by_side_test_() -> {timeout, 60, fun ends_are_told_side_by_side/0}.

ends_are_told_side_by_side() ->
    Count = 1_500_000,
    with([birth(1, pid(1, 1))], fun({ok, _}) ->
        ok = witness_replay_proxies:start(Count),
        Places = atomics:new(2, []),
        Ending = [spawn_monitor(fun() -> lists:foreach(fun(Id) -> end_together(Id, Own, Places) end, lists:seq(Own, Count, 5)) end)
                  || Own <- [1, 2]],
        [receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end || {Pid, Monitor} <- Ending],
        ?assertEqual([], [Id || First <- [1, 2], Id <- lists:seq(First, Count, 5), ended =/= witness_replay_proxies:lookup(Id)]),
        ?assertEqual([], [Id || Id <- lists:seq(0, Count, 5), not_begun =/= witness_replay_proxies:lookup(Id)])
    end).

end_together(Id, Own, Places) ->
    ok = atomics:put(Places, Own, Id),
    meet(Id, Own, Places),
    ok = witness_replay_proxies:delete(Id, self()).

%% Waits until the other process is at the same place. There is no pause, so that both go on at the same moment.
meet(Id, Own, Places) -> atomics:get(Places, 3 - Own) >= Id - 2 orelse begin erlang:yield(), meet(Id, Own, Places) end.

%% Three processes look up a process again and again, while it begins and ends. In the end no entry of it is left.
nothing_is_kept_of_a_process_that_has_ended_test_() -> {timeout, 60, fun() ->
    Count = 2000,
    with([birth(Id, pid(1000 + Id, 0), 0) || Id <- lists:seq(1, Count)], fun({ok, _}) ->
        ok = witness_replay_proxies:start(Count),
        ok = witness_replay_backpressure:start(fun witness_replay_process_table:parent/1),
        Turn = atomics:new(1, []),
        Looking = [spawn_monitor(fun() -> look(Turn, Count) end) || _ <- [1, 2, 3]],
        lists:foreach(fun(Id) ->
            Pid = witness_replay_process_table:pid(Id),
            ok = atomics:put(Turn, 1, Id),
            Id rem 2 =:= 0 andalso erlang:yield(),
            {Place, Flow} = Proxy = witness_replay_proxies:proxy(Id),
            ok = witness_replay_proxies:insert(Id, Pid, Proxy),
            ok = witness_replay_backpressure:handle_start(Flow),
            ?assertEqual({Id, Proxy}, witness_replay_proxies:receiver(Pid)),
            true = exit(Place, kill),
            ok = witness_replay_backpressure:handle_exit(Id, Flow),
            ok = witness_replay_proxies:delete(Id, Pid),
            %% One that came too late may still be there for a moment.
            witness_await:until(fun() -> witness_replay_proxies:receiver(Pid) =:= {Id, none} end)
        end, lists:seq(1, Count)),
        ok = atomics:put(Turn, 1, Count + 1),
        [receive {'DOWN', Monitor, process, Looker, Reason} -> ?assertEqual(normal, Reason) end || {Looker, Monitor} <- Looking],
        ?assertEqual([0, 0], [ets:info(Table, size) || Table <- [witness_replay_proxies, witness_replay_pids]]),
        witness_await:until(fun() ->
            [P || P <- processes(), {_, {witness_replay_proxies, wait_to_run, 0}} <- [process_info(P, current_function)]] =:= []
        end),
        ?assertEqual(none, witness_replay_proxies:receiver(whereis(init)))
    end)
end}.

look(Turn, Count) ->
    case atomics:get(Turn, 1) of
        0 -> look(Turn, Count);
        Id when Id > Count -> ok;
        Id ->
            _ = witness_replay_proxies:proxy(Id),
            look(Turn, Count)
    end.

aliases_go_with_their_process_test() ->
    with([birth(1, pid(1, 1))], fun({ok, _}) ->
        ok = witness_replay_proxies:start(1),
        [First, Second] = [alias(), alias()],
        [Owner] = witness_replay_proxies:alias(First, 1),
        ?assertEqual([], witness_replay_proxies:alias(Second, 1)),
        ?assertEqual([1, 1], [witness_replay_proxies:alias_owner(Ref) || Ref <- [First, Second]]),
        ok = witness_replay_proxies:forget([Owner]),
        ?assertEqual([none, none], [witness_replay_proxies:alias_owner(Ref) || Ref <- [First, Second]])
    end).
