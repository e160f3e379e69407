-module(witness_record_native_tests).
-moduledoc """
The recorder in the VM: exactly what processes report is taken, whichever process flushes, takes, moves or ends meanwhile.
Every child has the identifier that its parent asked for before the child begins. These tests decode what is taken by
`docs/internals/record-native.md`. The recorder's plain C has tests of its own in `test/native/record.c`.
""".
-include_lib("eunit/include/eunit.hrl").
-export([without_room_for_processes/0, decode/2]).

-define(R, witness_record_native).

record_test_() ->
    {foreach, fun() -> ok = ?R:available() end, fun(_) -> ?R:stop() end,
     [{timeout, 120, {atom_to_list(Name), fun() -> Test(), ok end}} || {Name, Test} <- tests()]}.

tests() ->
    [{each_kind_of_entry, fun each_kind_of_entry/0},
     {changes_one_after_the_other, fun changes_one_after_the_other/0},
     {changes_at_the_same_time, fun changes_at_the_same_time/0},
     {runs_of_several_processes, fun runs_of_several_processes/0},
     {any_term, fun any_term/0},
     {a_huge_binary, fun a_huge_binary/0},
     {numbers_of_any_size, fun numbers_of_any_size/0},
     {full_ids, fun full_ids/0},
     {every_form_of_spawn, fun every_form_of_spawn/0},
     {spawns_that_fail, fun spawns_that_fail/0},
     {spawns_that_fail_for_want_of_room, fun spawns_that_fail_for_want_of_room/0},
     {children_that_their_parent_has_not_announced, fun children_that_their_parent_has_not_announced/0},
     {children_after_a_spawn_that_failed, fun children_after_a_spawn_that_failed/0},
     {what_a_process_was_spawned_with, fun what_a_process_was_spawned_with/0},
     {ends, fun ends/0},
     {an_end_while_it_waits, fun an_end_while_it_waits/0},
     {calls_for_others_do_nothing, fun calls_for_others_do_nothing/0},
     {labels_that_must_be_verified, fun labels_that_must_be_verified/0},
     {a_sender_that_cannot_be, fun a_sender_that_cannot_be/0},
     {one_in_many_messages_says_so, fun one_in_many_messages_says_so/0},
     {a_process_that_moves, fun a_process_that_moves/0},
     {short_processes, fun short_processes/0},
     {taken_while_processes_end, fun taken_while_processes_end/0},
     {flushed_while_they_write, fun flushed_while_they_write/0},
     {a_budget_that_is_exceeded, fun a_budget_that_is_exceeded/0},
     {memory_comes_back, fun memory_comes_back/0},
     {one_after_the_other, fun one_after_the_other/0}].

%% --- entries ---------------------------------------------------------------------------

each_kind_of_entry() ->
    Root = fun(Me) ->
        ok = ?R:took(Me, 7), ok = ?R:took(Me, 7), ok = ?R:timeout(Me), ok = ?R:took(Me, 7), ok = ?R:took(Me, 300),
        ok = ?R:content(Me, hello), ok = ?R:content(Me, {1, "two"}), ok = ?R:timeout(Me), ok = ?R:timeout(Me),
        [ok = ?R:result(Me, 17, T) || T <- terms()],
        ok = ?R:raise(Me, 400, {error, badarg}),
        ok = ?R:named(Me, self()), ok = ?R:named(Me, 12), ok = ?R:named(Me, undefined),
        ok = ?R:named(Me, whereis(init)),
        ok = ?R:sent(Me, init, {stop, 1}), ok = ?R:contents(Me, #{a => 1}), ok = ?R:hash(Me, {m, [1]})
    end,
    {Id, #{mine := Entries}} = recorded(Root),
    ?assertEqual([{from, 7}, {from, 7}, timeout, {from, 7}, {from, 300}, {content, hello}, {content, {1, "two"}},
                  timeout, timeout]
                 ++ [{result, 17, T} || T <- terms()]
                 ++ [{raise, 400, {error, badarg}}, {named, Id}, {named, 12}, {named, 0}, {named, 0},
                     {sent, {init, {stop, 1}}}, {contents, #{a => 1}},
                     {hash, erlang:phash2({m, [1]}) bor (erlang:phash2([{m, [1]}]) bsl 32)},
                     {exit, normal}], Entries).

terms() -> [true, false, undefined, ok, [], error, infinity, none, other, 0, -1, {a, b}].

%% Whichever process changes and reads: what is before something else ends with a smaller number than that begins.
changes_one_after_the_other() ->
    {_, #{entries := Entries}} = recorded(fun(_) ->
        Others = [child(fun Turn(Me) ->
            receive
                {From, Changes} ->
                    change(Me, Changes),
                    From ! done,
                    Turn(Me);
                stop -> ok
            end
        end) || _ <- lists:seq(1, 3)],
        _ = [begin
                 Other ! {self(), Changes},
                 receive done -> ok end
             end || _ <- lists:seq(1, 50), Other <- Others, Changes <- [true, false, true]],
        _ = [Other ! stop || Other <- Others],
        [join(Other) || Other <- Others]
    end),
    Places = lists:sort([{Begin, End} || _ := All <- Entries, {ordered, Begin, End} <- All]),
    ?assertEqual(450, length(Places)),
    ?assertEqual(lists:append([[{N + 1, N + 2}, {N + 2, N + 2}, {N + 3, N + 4}] || N <- lists:seq(0, 149 * 4, 4)]), Places).

change(Me, true) -> ?R:changed(Me, ?R:changes());
change(Me, false) -> ?R:reads(Me).

%% No number is given twice, and none is left out. What a process does is in its order.
changes_at_the_same_time() ->
    {_, #{entries := Entries}} = recorded(fun(_) ->
        Others = [child(fun(Me) -> [change(Me, N rem 3 > 0) || N <- lists:seq(1, 3000)] end) || _ <- lists:seq(1, 4)],
        [join(Other) || Other <- Others]
    end),
    Places = [[{Begin, End} || {ordered, Begin, End} <- All] || _ := All <- Entries],
    ?assertEqual([0, 3000, 3000, 3000, 3000], lists:sort([length(Own) || Own <- Places])),
    [?assertEqual(lists:sort(Own), Own) || Own <- Places],
    Changes = lists:append([[Begin, End] || Own <- Places, {N, {Begin, End}} <- lists:enumerate(Own), N rem 3 > 0]),
    ?assertEqual(lists:seq(1, 2 * 4 * 2000), lists:sort(Changes)).

runs_of_several_processes() ->
    Seeds = lists:seq(1, 20),
    {_, #{entries := Entries, births := Births}} = recorded(fun(_) -> workers(Seeds, 2000) end),
    did(Seeds, 2000, Births, Entries).

any_term() ->
    Port = hd(erlang:ports()),
    Terms = [a, 'ä', 1, -1, 1 bsl 100, 1.5, <<>>, <<1, 2, 3>>, <<1:3>>, "list", [a | b], {}, {a, {b}}, #{},
             #{a => #{b => c}}, self(), make_ref(), Port, fun lists:map/2, fun(X) -> {X, Port} end, lists:seq(1, 10000),
             list_to_tuple(lists:seq(1, 300)),
             maps:from_keys(lists:seq(1, 1000), v), lists:seq(0, 255), lists:seq(0, 256), [0, -1], [[]], [[] | []],
             [{[a, "b", <<"c">>], 'ö', -7, 1 bsl 40, -(1 bsl 40)}], [1, 2 | c], 'a\0b', '',
             list_to_atom(lists:duplicate(255, $ü)), list_to_atom(lists:duplicate(127, $ü)),
             deep(13), deep(14), deep(15), deep(16), [deep(14) | deep(15)],
             lists:duplicate(100, abc),
             [binary:copy(<<"z">>, N) || N <- lists:seq(290, 330)],
             [lists:duplicate(N, $a) || N <- lists:seq(300, 325)],
             binary:copy(<<"x">>, 5000), deep(100000), [binary:copy(<<"y">>, 100000)]],
    {_, #{mine := Entries}} = recorded(fun(Me) ->
        [begin ok = ?R:content(Me, T), ok = ?R:result(Me, 1, T), ok = ?R:raise(Me, 1, {exit, T}),
               ok = ?R:sent(Me, T, T), ok = ?R:contents(Me, T), ok = ?R:hash(Me, T), ok = ?R:named(Me, T) end
         || T <- Terms]
    end),
    ?assertEqual([E || T <- Terms,
                       E <- [{content, T}, {result, 1, T}, {raise, 1, {exit, T}}, {sent, {T, T}}, {contents, T}]]
                 ++ [{exit, normal}],
                 [E || E <- Entries, element(1, E) =/= hash, element(1, E) =/= named]).

deep(N) -> lists:foldl(fun(_, T) -> [T] end, [], lists:seq(1, N)).

a_huge_binary() ->
    Huge = binary:copy(<<"0123456789">>, 3_000_000),
    {_, #{mine := Entries}} = recorded(fun(Me) ->
        ok = ?R:content(Me, small), ok = ?R:content(Me, {Huge}), ok = ?R:content(Me, small)
    end),
    ?assert([{content, small}, {content, {Huge}}, {content, small}, {exit, normal}] =:= Entries).

numbers_of_any_size() ->
    Numbers = [S * ((1 bsl B) + D) || B <- [0, 5, 6, 7, 13, 27, 31, 32, 58, 59, 60, 62, 63, 64, 65],
                                      S <- [1, -1], D <- [-1, 0, 1]],
    {_, #{mine := Entries}} = recorded(fun(Me) -> [ok = ?R:result(Me, abs(N) rem 1000, N) || N <- Numbers] end),
    ?assertEqual([{result, abs(N) rem 1000, N} || N <- Numbers] ++ [{exit, normal}], Entries).

full_ids() ->
    {Id, #{mine := Entries, births := Births}} = recorded(#{full_ids => true, order => 64}, fun(Me) ->
        [ok = ?R:took(Me, From) || From <- [1, 1, 2, 3000, 3000]],
        ok = ?R:named(Me, 5),
        join(child(fun(_) -> ok end))
    end),
    [Child] = [C || #{id := C, parent := P} <- maps:values(Births), P =:= Id],
    ?assertEqual([{from, 1}, {from, 1}, {from, 2}, {from, 3000}, {from, 3000}, {named, 5}, {spawn, Child},
                  {exit, normal}], Entries).

%% --- births ------------------------------------------------------------------------------

every_form_of_spawn() ->
    Self = self(),
    Fun = fun() -> Self ! {born, self(), ?R:identify()} end,
    Forms = [fun() -> spawn(Fun) end,
             fun() -> spawn_link(Fun) end,
             fun() -> element(1, spawn_monitor(Fun)) end,
             fun() -> spawn(erlang, apply, [Fun, []]) end,
             fun() -> spawn_link(erlang, apply, [Fun, []]) end,
             fun() -> element(1, spawn_monitor(erlang, apply, [Fun, []])) end,
             fun() -> spawn_opt(Fun, [link]) end,
             fun() -> element(1, spawn_opt(Fun, [monitor])) end,
             fun() -> element(1, spawn_opt(Fun, [link, {monitor, [{tag, gone}]}, {priority, high}])) end,
             fun() -> spawn_opt(erlang, apply, [Fun, []], [link, {min_heap_size, 1000}]) end,
             fun() -> requested(spawn_request(Fun)) end,
             fun() -> requested(spawn_request(Fun, [link, monitor])) end,
             fun() -> requested(spawn_request(node(), erlang, apply, [Fun, []], [monitor])) end,
             fun() -> spawn(node(), Fun) end,
             fun() -> spawn_link(node(), Fun) end,
             fun() -> element(1, spawn_monitor(node(), Fun)) end,
             fun() -> spawn_opt(node(), Fun, [link]) end,
             fun() -> proc_lib:spawn(Fun) end,
             fun() -> proc_lib:spawn_link(Fun) end,
             fun() -> proc_lib:spawn_opt(Fun, [link]) end],
    {Root, #{births := Births, mine := Entries}} = recorded(fun(_) ->
        Born = [begin Id = ?R:child(), {Id, Form()} end || Form <- Forms],
        Self ! {children, Born},
        %% They ask for their identifiers while there is a recording.
        join([Pid || {_, Pid} <- Born])
    end),
    Children = receive {children, Asked} -> Asked end,
    ?assertEqual(lists:usort([Id || {Id, _} <- Children]), [Id || {Id, _} <- Children]),
    ?assertEqual(length(Forms), length(Children)),
    [receive {born, Pid, Found} -> ?assertEqual(Id, Found) end || {Id, Pid} <- Children],
    ?assertEqual([{spawn, Id} || {Id, _} <- Children] ++ [{exit, normal}], Entries),
    ?assertEqual([{Id, Pid, Root, Place} || {Place, {Id, Pid}} <- lists:enumerate(0, Children)],
                 [{Id, maps:get(pid, B), maps:get(parent, B), maps:get(place, B)}
                  || {Id, _} <- Children, #{Id := B} <- [Births]]).

requested(Request) ->
    receive
        {spawn_reply, Request, ok, Pid} -> Pid;
        {spawn_reply, Request, error, Reason} -> error(Reason)
    end.

%% A failed spawn leaves nothing that a later child could be taken for.
spawns_that_fail() ->
    Self = self(),
    {_, #{births := Births, mine := Entries, verify := Verify}} = recorded(fun(Me) ->
        First = ?R:child(),
        ?assertError(badarg, spawn_opt(fun() -> ok end, [no_option])),
        First = ?R:child(),
        ?assertError(badarg, erlang:spawn_request(fun() -> ok end, no_list)),
        First = ?R:child(),
        Bad = spawn_request(node(), erlang, no, [], [{no, option}]),
        receive {spawn_reply, Bad, error, badopt} -> ok end,
        ok = ?R:unborn(),
        Second = child(fun(_) -> ok end),
        join(Second),
        _ = ?R:child(),
        ?assertError(badarg, spawn_opt(fun() -> ok end, [no_option])),
        ok = ?R:raise(Me, 5, {error, badarg}),
        join(child(fun(_) -> ok end)),
        Self ! {first, First}
    end),
    First = receive {first, F} -> F end,
    ?assertNot(Verify),
    ?assertMatch([{spawn, First}, {raise, 5, {error, badarg}}, {spawn, _}, {exit, normal}], Entries),
    ?assertEqual(3, map_size(Births)).

spawns_that_fail_for_want_of_room() ->
    {ok, Peer, _} = peer:start(#{connection => standard_io, args => ["+P", "1024"]}),
    try
        ok = peer:call(Peer, code, add_paths, [code:get_path()]),
        peer:call(Peer, ?MODULE, without_room_for_processes, [], 60_000)
    after
        peer:stop(Peer)
    end.

without_room_for_processes() ->
    {Root, #{births := Births, mine := Entries, verify := Verify}} = recorded(fun(_) ->
        fill(fun() -> child(fun(_) -> receive stop -> ok end end) end, []),
        fill(fun() -> _ = ?R:child(), requested(spawn_request(fun() -> receive stop -> ok end end)) end, []),
        ok = ?R:unborn()
    end),
    Spawned = [Id || {spawn, Id} <- Entries],
    ?assertNot(Verify),
    ?assert(length(Spawned) > 1000),
    ?assertEqual(lists:usort([Root | Spawned]), lists:sort(maps:keys(Births))),
    ?assertEqual([], [Id || Id <- Spawned, not lists:member(Id, maps:keys(Births))]).

%% Spawns until the process table is full; then all of them end.
fill(Spawn, Pids) ->
    try Spawn() of
        Pid -> fill(Spawn, [Pid | Pids])
    catch
        error:system_limit -> emptied(Pids)
    end.

emptied(Pids) ->
    [begin M = monitor(process, P), P ! stop, receive {'DOWN', M, _, _, _} -> ok end end || P <- Pids],
    ok.

children_that_their_parent_has_not_announced() ->
    Self = self(),
    {Root, #{births := Births, mine := Entries, verify := Verify}} = recorded(fun(Me) ->
        ok = ?R:took(Me, 1),
        Child = spawn(fun() -> Self ! {born, ?R:identify()}, receive stop -> ok end end),
        ?assertEqual(verify, ?R:took(Me, 1)),
        Child ! stop,
        join(Child)
    end),
    Id = receive {born, I} -> I end,
    ?assert(Verify),
    ?assert(Id > Root),
    ?assertMatch(#{Id := #{parent := Root}}, Births),
    ?assertEqual([{from, 1}, {spawn, Id}, {exit, normal}], Entries).

%% After the report that a spawn has failed, no child is announced.
children_after_a_spawn_that_failed() ->
    [begin
         {_, #{births := Births, verify := Verify}} = recorded(fun(Me) ->
             _ = ?R:child(),
             ok = Failed(Me),
             join(spawn(fun() -> ok end))
         end),
         ?assertEqual({2, Announced}, {map_size(Births), not Verify}),
         ?R:stop()
     end || {Announced, Failed} <- [{true, fun(_) -> ok end}, {false, fun(_) -> ?R:unborn() end},
                                    {false, fun(Me) -> ?R:raise(Me, 1, {error, badarg}) end},
                                    {false, fun(Me) -> ?R:result(Me, 1, ok) end}]].

what_a_process_was_spawned_with() ->
    Large = binary:copy(<<"x">>, 10000),
    {_, #{births := Births}} = recorded(fun(_) ->
        [begin _ = ?R:child(), join(spawn(M, F, A)) end
         || {M, F, A} <- [{lists, reverse, [[1, 2]]}, {erlang, size, [Large]}, {lists, append, [[Large], []]}]]
    end),
    [_ | Signatures] = [S || #{signature := S} <- by_id(Births)],
    ?assertEqual([{lists, reverse, [[1, 2]]}, {erlang, size, 1}, {lists, append, 2}], Signatures).

by_id(Births) -> [B || {_, B} <- lists:keysort(1, maps:to_list(Births))].

%% Every entry after `waits/1` cancels it, also one that lengthens a run. An exit signal from another process does not.
an_end_while_it_waits() ->
    Does = [{fun(_) -> ok end, [waited]},
            {fun(Me) -> ok = ?R:waits(Me) end, [waited]},
            {fun(Me) -> ok = ?R:took(Me, 2) end, [{from, 2}]},
            {fun(Me) -> ok = ?R:took(Me, 2), ok = ?R:waits(Me), ok = ?R:took(Me, 2), ok = ?R:waits(Me) end,
             [{from, 2}, {from, 2}, waited]},
            {fun(Me) -> ok = ?R:took(Me, 2), ok = ?R:waits(Me), ok = ?R:took(Me, 2) end, [{from, 2}, {from, 2}]},
            {fun(Me) -> ok = ?R:content(Me, x) end, [{content, x}]},
            {fun(Me) -> ok = ?R:timeout(Me) end, [timeout]},
            {fun(Me) -> ok = ?R:result(Me, 1, 5) end, [{result, 1, 5}]},
            {fun(Me) -> ok = ?R:result(Me, 1, ok) end, [{result, 1, ok}]},
            {fun(Me) -> ok = ?R:result(Me, 1, {x}) end, [{result, 1, {x}}]},
            {fun(Me) -> ok = ?R:raise(Me, 1, {error, x}) end, [{raise, 1, {error, x}}]},
            {fun(Me) -> ok = ?R:named(Me, undefined) end, [{named, 0}]},
            {fun(Me) -> ok = ?R:sent(Me, x, y) end, [{sent, {x, y}}]}],
    {Root, #{births := Births, entries := Entries}} = recorded(fun(_) ->
        [begin
             Self = self(),
             Child = child(fun(Me) -> ok = ?R:waits(Me), Do(Me), Self ! {done, self()}, receive never -> ok end end),
             receive {done, Child} -> exit(Child, kill) end,
             join(Child)
         end || {Do, _} <- Does]
    end),
    ?assertEqual([Expected ++ [{exit, killed}] || {_, Expected} <- Does],
                 [maps:get(Id, Entries) || #{id := Id, parent := P} <- by_id(Births), P =:= Root]).

ends() ->
    {Root, #{births := Births, entries := Entries, ends := Ends}} = recorded(fun(_) ->
        join(child(fun(_) -> exit(shutdown) end)),
        join(child(fun(_) -> exit({shutdown, #{why => [1, 2, 3]}}) end)),
        join(child(fun(Me) -> ok = ?R:timeout(Me), ok = ?R:content(Me, last) end)),
        Waits = child(fun(Me) -> ok = ?R:took(Me, 2), receive never -> ok end end),
        exit(Waits, kill),
        join(Waits)
    end),
    Children = [Id || #{id := Id, parent := P} <- by_id(Births), P =:= Root],
    Found = [lists:last(maps:get(Id, Entries)) || Id <- Children],
    ?assertEqual([{exit, shutdown}, {exit, {shutdown, #{why => [1, 2, 3]}}}, {exit, normal}, {exit, killed}], Found),
    ?assertEqual([timeout, {content, last}, {exit, normal}], maps:get(lists:nth(3, Children), Entries)),
    ?assertEqual(lists:sort([Root | Children]), lists:sort(Ends)).

%% --- ids and labels ---------------------------------------------------------------------

calls_for_others_do_nothing() ->
    {_, #{mine := Entries, state := State}} = recorded(fun(Me) ->
        Other = child(fun(_) -> receive stop -> ok end end),
        OtherId = ?R:identify(Other),
        [begin ok = ?R:took(Not, 1), ok = ?R:took(Not, bad), ok = ?R:from(Not, 1), ok = ?R:content(Not, x),
               ok = ?R:timeout(Not), ok = ?R:result(Not, 1, x), ok = ?R:raise(Not, 1, x), ok = ?R:named(Not, 1),
               ok = ?R:sent(Not, a, b), ok = ?R:contents(Not, x),
               ok = ?R:hash(Not, x) end
         || Not <- [0, OtherId, Me + 1000, -1, 1 bsl 31, 1 bsl 40, 1 bsl 80, a, {}, Me + 0.0, <<1>>, Other]],
        ok = ?R:result(Me, -1, x), ok = ?R:result(Me, bad, x), ok = ?R:raise(Me, bad, x),
        Nobody = [a, 1, make_ref(), whereis(init), binary_to_term(remote()), [Other]],
        ?assertEqual([0, 0, 0, 0, 0, 0], [?R:identify(T) || T <- Nobody]),
        Other ! stop,
        join(Other),
        ?assertEqual(0, ?R:identify(Other))
    end),
    ?assertMatch([{spawn, _}, {exit, normal}], Entries),
    ?assertEqual({ended, stopped}, State).

%% A process of another node.
remote() ->
    <<131, 88, 119, 3, "a@b", 1:32, 0:32, 1:32>>.

labels_that_must_be_verified() ->
    {_, #{mine := Entries}} = recorded(fun(Me) ->
        ok = ?R:took(Me, 3),
        ok = ?R:verify(on),
        verify = ?R:took(Me, 3),
        verify = ?R:took(Me, whatever),
        ok = ?R:took(0, 3),
        ok = ?R:from(Me, 4),
        ok = ?R:timeout(Me)
    end),
    ?assertEqual([{from, 3}, {from, 4}, timeout, {exit, normal}], Entries).

a_sender_that_cannot_be() ->
    [begin
         {Id, #{entries := Entries, state := State}} = recorded(fun(Me) ->
             ok = ?R:took(Me, 3), ok = ?R:took(Me, Sender), ok = ?R:took(Me, 3)
         end),
         ?assertEqual([{from, 3}], maps:get(Id, Entries)),
         ?assertEqual({ended, sender}, State),
         ?R:stop()
     end || Sender <- [0, -1, 1 bsl 32, 1 bsl 70, label, {a, b}, self()]].

%% --- schedulers, many processes, others at work ---------------------------------------------

one_in_many_messages_says_so() ->
    {_, #{mine := Entries}} = recorded(fun(Me) ->
        Said = [?R:took(Me, 1 + I rem 3) || I <- lists:seq(1, 1024)],
        ?assertEqual([64], [I || {I, calm} <- lists:enumerate(Said)]),
        ?assertEqual([256, 512, 768, 1024], [I || {I, look} <- lists:enumerate(Said)]),
        ?assertEqual([calm, look, ok], lists:usort(Said))
    end),
    ?assertEqual(1025, length(Entries)).

a_process_that_moves() ->
    Schedulers = erlang:system_info(schedulers_online),
    Steps = 20000,
    Self = self(),
    {_, #{mine := Entries}} = recorded(#{order => 64}, fun(Me) ->
        Seen = lists:foldl(fun(I, Seen) ->
            _ = I rem 50 =:= 0 andalso begin
                _ = process_flag(scheduler, 1 + (I div 50) rem Schedulers),
                erlang:yield()
            end,
            step(Me, I),
            Seen#{erlang:system_info(scheduler_id) => true}
        end, #{}, lists:seq(1, Steps)),
        Self ! {seen, map_size(Seen)}
    end),
    receive {seen, Seen} -> ?assertEqual(min(2, Schedulers), min(2, Seen)) end,
    ?assertEqual([entry(I) || I <- lists:seq(1, Steps)] ++ [{exit, normal}], Entries).

short_processes() ->
    Count = 100_000,
    Taker = taker(),
    {Root, Recording = #{births := Births, entries := Entries, ends := Ends}} = recorded(#{}, fun(_) ->
        [join([child(fun(Me) -> step(Me, Me) end) || _ <- lists:seq(1, 100)]) || _ <- lists:seq(1, Count div 100)]
    end, Taker),
    ?assertMatch(#{born := B, ended := B} when B =:= Count + 1, Recording),
    ?assertEqual(Count + 1, map_size(Births)),
    ?assertEqual(lists:seq(1, Count + 1), lists:sort(Ends)),
    maps:foreach(fun
        (Id, Found) when Id =:= Root -> ?assertEqual(Count + 1, length(Found));
        (Id, Found) -> ?assertEqual([entry(Id), {exit, normal}], Found)
    end, Entries),
    ?assertEqual(Count + 1, map_size(Entries)).

taken_while_processes_end() ->
    Seeds = lists:seq(1, 2000),
    Taker = taker(),
    {_, #{entries := Entries, births := Births}} = recorded(#{order => 64}, fun(_) -> workers(Seeds, 100) end, Taker),
    did(Seeds, 100, Births, Entries).

flushed_while_they_write() ->
    Seeds = lists:seq(1, 4),
    Taker = taker(),
    Flusher = forever(fun() -> ok = ?R:flush() end),
    {_, #{entries := Entries, births := Births}} = recorded(#{}, fun(_) -> workers(Seeds, 50_000) end, Taker),
    _ = over(Flusher),
    did(Seeds, 50_000, Births, Entries).

%% --- budget ----------------------------------------------------------------------------------

a_budget_that_is_exceeded() ->
    Self = self(),
    {_, #{mine := Entries, state := State, used := Used}} = recorded(#{budget => 1_000_000}, fun(Me) ->
        Counted = until_ended(Me, 0),
        #{used := Used} = ?R:info(),
        ok = ?R:took(Me, 1), ok = ?R:content(Me, never), ok = ?R:timeout(Me),
        0 = ?R:child(),
        %% The system goes on.
        join(child(fun(_) -> ok end)),
        Self ! {counted, Counted, Used}
    end),
    receive {counted, Counted, Most} ->
        ?assert(Most =< 1_000_000),
        ?assert(Counted > 1000),
        %% Everything until the end, and nothing after it.
        ?assertEqual([E || I <- lists:seq(1, Counted), E <- [{content, {I, <<0:800>>}}, {from, I}]],
                     lists:sublist(Entries, 2 * Counted)),
        ?assert(length(Entries) =< 2 * Counted + 1)
    end,
    ?assertEqual({ended, budget}, State),
    ?assertEqual(0, Used).

until_ended(Me, N) ->
    ok = ?R:content(Me, {N + 1, <<0:800>>}),
    ok = took(Me, N + 1),
    case ?R:info() of
        #{state := running} -> until_ended(Me, N + 1);
        #{state := {ended, budget}} -> N
    end.

memory_comes_back() ->
    Self = self(),
    {_, #{used := Used}} = recorded(#{budget => 100_000_000}, fun(_) ->
        [begin
             Pids = [child(fun(Me) -> [step(Me, I) || I <- lists:seq(1, 200)], receive stop -> ok end end)
                     || _ <- lists:seq(1, 1000)],
             [P ! stop || P <- Pids],
             join(Pids),
             {Some, running} = ?R:take(1000),
             Self ! {taken, Some},
             {[], running} = ?R:take(1000),
             #{used := Held} = ?R:info(),
             ?assert(Held < 500_000)
         end || _ <- lists:seq(1, 20)]
    end),
    ?assertEqual(0, Used).

one_after_the_other() ->
    {Id, #{mine := [{from, 1}, {exit, normal}]}} = recorded(fun(Me) -> ok = ?R:took(Me, 1) end),
    ok = ?R:start(#{}),
    ?assertEqual({error, running}, ?R:start(#{})),
    ?assertEqual({[], running}, ?R:take(10)),
    ok = ?R:stop(),
    ?assertEqual({[], {ended, stopped}}, ?R:take(10)),
    {Id, #{mine := [timeout, {exit, normal}]}} = recorded(fun(Me) -> ok = ?R:timeout(Me) end),
    ?assertError(_, ?R:start(#{budget => 1})),
    ?assertError(_, ?R:start(#{order => 1})),
    ?assertError(_, ?R:start(#{order => 1 bsl 17})).

%% --- what processes do ------------------------------------------------------------------------

%% A step follows from its number alone, so that a check can compute it again.
step(Me, I) ->
    ok = case entry(I) of
        {from, From} -> took(Me, From);
        {content, Term} -> ?R:content(Me, Term);
        timeout -> ?R:timeout(Me);
        {result, Call, Term} -> ?R:result(Me, Call, Term)
    end.

took(Me, From) ->
    case ?R:took(Me, From) of
        Said when Said =:= calm; Said =:= look -> ok;
        Taken -> Taken
    end.

entry(I) ->
    case erlang:phash2(I, 10) of
        0 -> {content, {I, list_to_binary(lists:duplicate(I rem 50, I rem 256))}};
        1 -> timeout;
        2 -> {result, I rem 100, I};
        3 -> {from, I};
        N -> {from, N}
    end.

%% Each worker is a process of its own.
workers(Seeds, Steps) ->
    join([child(fun(Me) -> [step(Me, Seed * 1000 + I) || I <- lists:seq(1, Steps)] end) || Seed <- Seeds]).

%% The workers are the children of the first process.
did(Seeds, Steps, Births, Entries) ->
    Ids = [Id || #{id := Id, parent := 1} <- by_id(Births)],
    ?assertEqual(length(Seeds), length(Ids)),
    [?assertEqual([entry(Seed * 1000 + I) || I <- lists:seq(1, Steps)] ++ [{exit, normal}], maps:get(Id, Entries))
     || {Seed, Id} <- lists:zip(Seeds, Ids)].

child(Fun) ->
    Id = ?R:child(),
    spawn(fun() -> Id =:= 0 orelse (Id = ?R:identify()), Fun(Id) end).

join(Pids) when is_list(Pids) ->
    lists:foreach(fun join/1, Pids);
join(Pid) ->
    _ = witness_await:down(Pid),
    ok.

%% --- a recording --------------------------------------------------------------------------------

recorded(Root) -> recorded(#{}, Root).

recorded(Options, Root) -> recorded(Options, Root, none).

%% What the first process and those that it spawned have reported, once they have ended; a taker may have taken a part.
recorded(Options, Root, Taker) ->
    ok = ?R:start(Options),
    Session = trace:session_create(witness_record, ?R:tracer(), []),
    _ = trace:process(Session, new, true, [procs]),
    Self = self(),
    Pid = child(fun(Me) ->
        try Root(Me), Self ! {root, self(), ok}
        catch Class:Reason:Stack -> Self ! {root, self(), {Class, Reason, Stack}}
        end
    end),
    Id = ?R:identify(Pid),
    receive {root, Pid, ok} -> ok; {root, Pid, {Class, Reason, Stack}} -> erlang:raise(Class, Reason, Stack) end,
    join(Pid),
    true = trace:session_destroy(Session),
    #{born := Born, ended := Ended, verify := Verify} = ?R:info(),
    Before = case Taker of none -> taken(); _ -> over(Taker) end,
    ok = ?R:stop(),
    {After, State} = take_all([]),
    #{used := Used} = ?R:info(),
    Decoded = #{entries := Entries} = decode(Before ++ After, maps:get(full_ids, Options, false)),
    {Id, Decoded#{mine => maps:get(Id, Entries, []), state => State, born => Born, ended => Ended, verify => Verify,
                  used => Used}}.

%% The entries that the first process took.
taken() ->
    receive {taken, Some} -> Some ++ taken() after 0 -> [] end.

take_all(Taken) ->
    case ?R:take(3) of
        {[], State} -> {Taken, State};
        {More, _} -> take_all(Taken ++ More)
    end.

%% Takes all the time, from before there is a recording. At the end it returns the parts in the order in which it took them.
taker() ->
    forever(fun() ->
        case ?R:take(2) of
            {[], _} -> erlang:yield();
            {More, _} -> put(taken, [More | case get(taken) of undefined -> []; Taken -> Taken end])
        end
    end).

forever(Fun) ->
    Self = self(),
    spawn_link(fun() -> forever(Fun, Self) end).

forever(Fun, Owner) ->
    Fun(),
    receive
        over ->
            Taken = case get(taken) of undefined -> []; Some -> Some end,
            Owner ! {over, self(), lists:append(lists:reverse(Taken))}
    after 0 -> forever(Fun, Owner)
    end.

over(Pid) ->
    Pid ! over,
    receive {over, Pid, Taken} -> Taken end.

%% --- decoding ------------------------------------------------------------------------------------

decode(Taken, Full) ->
    Processes = << <<B/binary>> || {processes, B} <- Taken >>,
    {Births, Ends} = processes(Processes, #{}, []),
    Order = sub_traces([B || {order, B} <- Taken]),
    Data = sub_traces([B || {data, B} <- Taken]),
    Entries = #{Id => entries(Bytes, maps:get(Id, Data, <<>>), Full) || Id := Bytes <- Order},
    ?assertEqual([], maps:keys(Data) -- maps:keys(Entries)),
    #{births => Births, ends => Ends, entries => Entries}.

processes(<<1, Rest/binary>>, Births, Ends) ->
    {Id, Rest1} = leb(Rest),
    {Parent, Rest2} = leb(Rest1),
    {Place, Rest3} = leb(Rest2),
    {Size, Rest4} = leb(Rest3),
    <<Term:Size/binary, Rest5/binary>> = Rest4,
    ?assertNot(is_map_key(Id, Births)),
    {Pid, Signature} = binary_to_term(Term),
    Birth = #{id => Id, parent => Parent, place => Place, pid => Pid, signature => Signature},
    processes(Rest5, Births#{Id => Birth}, Ends);
processes(<<2, Rest/binary>>, Births, Ends) ->
    {Id, Rest1} = leb(Rest),
    ?assert(is_map_key(Id, Births)),
    processes(Rest1, Births, [Id | Ends]);
processes(<<>>, Births, Ends) ->
    {Births, Ends}.

sub_traces(Blocks) ->
    Lists = lists:foldl(fun(Block, Map) -> sub_traces(Block, Map) end, #{}, Blocks),
    #{Id => iolist_to_binary(lists:reverse(Parts)) || Id := {_, Parts} <- Lists}.

sub_traces(<<>>, Map) ->
    Map;
sub_traces(Block, Map) ->
    {Id, Rest1} = leb(Block),
    {Number, Rest2} = leb(Rest1),
    {Size, Rest3} = leb(Rest2),
    <<Bytes:Size/binary, Rest4/binary>> = Rest3,
    {Number, Parts} = maps:get(Id, Map, {0, []}),
    sub_traces(Rest4, Map#{Id => {Number + 1, [Bytes | Parts]}}).

entries(Order, Data, Full) ->
    {Entries, <<>>} = entries(Order, Data, Full, none, []),
    lists:reverse(Entries).

entries(<<>>, Data, _, _, Done) ->
    {Done, Data};
entries(<<Kind:3, Low:5, Rest0/binary>>, Data, Full, Last, Done) ->
    {Value, Rest} = case Low of
        31 -> {More, R} = leb(Rest0), {31 + More, R};
        _ -> {Low, Rest0}
    end,
    case Kind of
        0 ->
            {Id, Rest1} = id(Value, Rest, Full),
            entries(Rest1, Data, Full, Id, [{from, Id} | Done]);
        1 ->
            entries(Rest, Data, Full, Last, lists:duplicate(Value, {from, Last}) ++ Done);
        2 ->
            {Terms, Data1} = items(Value, Data, []),
            entries(Rest, Data1, Full, Last, [{content, T} || T <- Terms] ++ Done);
        3 ->
            entries(Rest, Data, Full, Last, lists:duplicate(Value, timeout) ++ Done);
        4 ->
            {Id, Rest1} = id(Value, Rest, Full),
            entries(Rest1, Data, Full, Last, [{spawn, Id} | Done]);
        5 ->
            <<Form, Rest1/binary>> = Rest,
            {Term, Rest2, Data1} = case Form of
                0 -> {[T], D} = items(1, Data, []), {T, Rest1, D};
                1 -> {N, R1} = leb(Rest1), {(N bsr 1) bxor -(N band 1), R1, Data};
                _ -> {element(Form - 1, {true, false, undefined, ok, [], error, infinity, none}), Rest1, Data}
            end,
            entries(Rest2, Data1, Full, Last, [{result, Value, Term} | Done]);
        6 ->
            {[Term], Data1} = items(1, Data, []),
            entries(Rest, Data1, Full, Last, [{raise, Value, Term} | Done]);
        7 when Value =:= 1, Full ->
            <<Id:64/little, Rest1/binary>> = Rest,
            entries(Rest1, Data, Full, Last, [{named, Id} | Done]);
        7 when Value =:= 1 ->
            {Id, Rest1} = leb(Rest),
            entries(Rest1, Data, Full, Last, [{named, Id} | Done]);
        7 when Value =:= 2 ->
            <<Hash:64/little, Rest1/binary>> = Rest,
            entries(Rest1, Data, Full, Last, [{hash, Hash} | Done]);
        7 when Value =:= 5 -> entries(Rest, Data, Full, Last, [waited | Done]);
        7 when Value =:= 6 ->
            {Begin, Rest1} = leb(Rest),
            {Length, Rest2} = leb(Rest1),
            entries(Rest2, Data, Full, Last, [{ordered, Begin, Begin + Length} | Done]);
        7 ->
            {[Term], Data1} = items(1, Data, []),
            entries(Rest, Data1, Full, Last, [{element(Value + 1, {exit, named, hash, sent, contents}), Term} | Done])
    end.

id(Value, Rest, false) -> {Value, Rest};
id(0, <<Id:64/little, Rest/binary>>, true) -> {Id, Rest}.

%% The last one first.
items(0, Data, Terms) ->
    {Terms, Data};
items(N, Data, Terms) ->
    {Size, Rest} = leb(Data),
    <<Term:Size/binary, Rest1/binary>> = Rest,
    %% Each term is encoded as the VM itself encodes it.
    ?assert(term_to_binary(binary_to_term(Term)) =:= Term),
    items(N - 1, Rest1, [binary_to_term(Term) | Terms]).

leb(Bytes) -> leb(Bytes, 0, 0).

leb(<<1:1, Low:7, Rest/binary>>, Shift, Value) -> leb(Rest, Shift + 7, Value bor (Low bsl Shift));
leb(<<0:1, Low:7, Rest/binary>>, Shift, Value) -> {Value bor (Low bsl Shift), Rest}.
