-module(witness_offline_shard_tests).
-moduledoc """
Many monitors in one process say what each of them says in a process of its own, and keep nothing when they are gone.

The callbacks of hand-made monitors are those of `m:witness_monitor_runner_tests`.
""".
-include_lib("eunit/include/eunit.hrl").

-define(EXPLAIN, 5).

%% --- the traces of the specifications ----------------------------------------------

specifications_test_() ->
    {inorder, [{filename:basename(File), {setup, fun() -> prepare(File) end, fun clean/1, fun tests/1}} ||
               File <- witness_specifications_tests:specifications()]}.

%% The same specification, compiled twice.
prepare(File) ->
    #{module := Module, entries := Entries, traces := Traces} = Prepared = witness_specifications_tests:prepare(File),
    {ok, #{module := Other} = Twin, _} = witness_spec:compile_file(File),
    true = Module =/= Other,
    Monitors = lists:append([monitors(Name, Events, Prepared) || {Name, _, Events} <- Traces]),
    Indices = lists:usort([Index || #{index := Index, action := monitor} <- Entries]),
    {Prepared, Twin, [{{Module, Index}, {Other, Index},
                       [alone(M) || #{monitor := {_, I}} = M <- Monitors, I =:= Index]} || Index <- Indices]}.

clean({Prepared, Twin, _}) ->
    witness_specifications_tests:clean(Prepared),
    witness_spec:unload(Twin).

tests({_, _, Properties}) ->
    [{"each property has monitors", fun() -> [?assertMatch([_ | _], Monitors) || {_, _, Monitors} <- Properties] end},
     {"one after the other", fun() -> [one_after_the_other(Property) || Property <- Properties] end},
     {"what is only counted", fun() -> [counted_as_told(Property) || Property <- Properties] end},
     {"in any order", fun() -> [in_any_order(Property, Seed) || Property <- Properties, Seed <- lists:seq(1, 5)] end}].

%% Each operation is given by itself.
one_after_the_other({Monitor, _, Monitors}) ->
    Ops = lists:append([[{Id, What} || What <- Whats] || #{id := Id, whats := Whats} <- Monitors]),
    Shard = shard(Monitor),
    {Told, Covered} = lists:foldl(fun({Line, Op}, {Told, _}) ->
        {Now, Covered} = work([numbered(Line, Op)], Shard),
        ?assertEqual([], [L || {L, _, _, _} <- Now, L =/= Line]),
        {Told ++ Now, Covered}
    end, {[], 0}, lists:enumerate(Ops)),
    as_alone(Told, Covered, Ops, Monitors),
    gone(Shard).

%% A shard that counts reports satisfied monitors as numbers and not as outcomes; nothing else differs.
counted_as_told({Monitor, _, Monitors}) ->
    Ops = [numbered(Line, Op) || {Line, Op} <- lists:enumerate(
               lists:append([[{Id, What} || What <- Whats] || #{id := Id, whats := Whats} <- Monitors]))],
    Telling = shard(Monitor),
    Counting = shard(Monitor, #{counted => fun() -> true end}),
    {All, {[], 0, 0, 0, #{}}, Covered} = answer(Ops, Telling),
    {Told, {Gone, Of, Slices, Vacuous, Undecided}, Covered} = answer(Ops, Counting),
    {Satisfied, Others} = lists:partition(fun({_, _, _, Outcome}) ->
        %% The slices of a monitor report its end.
        is_map(Outcome) andalso maps:get(verdict, Outcome, undefined) =:= yes
    end, All),
    {Ends, InSlices} = lists:partition(fun({_, _, Kind, _}) -> Kind =:= verdict end, Satisfied),
    Ended = lists:sort([Id || {_, Id, _, _} <- Ends]),
    %% A monitor that had no slices is satisfied vacuously; that outcome is reported.
    None = [Told1 || {_, _, verdict, #{verdict := yes}} = Told1 <- Told],
    ?assertEqual(Others, Told -- None),
    ?assertEqual(#{}, Undecided),
    ?assertEqual(Ended, lists:sort(Gone ++ [Id || {_, Id, _, _} <- None])),
    ?assertEqual({length(Ends) - length(None), length(InSlices)}, {Of, Slices}),
    ?assertEqual(length([vacuous || {_, _, _, #{vacuous := true}} <- Satisfied -- None]), Vacuous),
    ?assertEqual(save(Telling), save(Counting)),
    gone(Telling),
    gone(Counting).

%% Three monitors of each; now and then a new shard goes on, with the other module.
in_any_order({Monitor, Twin, Monitors}, Seed) ->
    rand:seed(exsss, Seed),
    Many = [M#{id := {Id, Copy}} || #{id := Id} = M <- Monitors, Copy <- [1, 2, 3]],
    Ops = interleaved([{Id, Whats} || #{id := Id, whats := Whats} <- Many]),
    Numbered = [numbered(Line, Op) || {Line, Op} <- lists:enumerate(Ops)],
    {Told, Covered} = shards(Numbered, shard(Monitor), Monitor, Twin, {[], 0}),
    as_alone(Told, Covered, Ops, Many).

shards([], Shard, _, _, Result) ->
    gone(Shard),
    Result;
shards(Ops, Shard, Monitor, Twin, {Told, _}) ->
    {Now, Later} = lists:split(min(length(Ops), rand:uniform(9)), Ops),
    {More, Covered} = work(Now, Shard),
    case rand:uniform(3) of
        1 -> shards(Later, moved(Shard, Twin), Twin, Monitor, {Told ++ More, Covered});
        _ -> shards(Later, Shard, Monitor, Twin, {Told ++ More, Covered})
    end.

%% The data may be in a file in the meantime.
moved(Shard, Monitor) ->
    Data = binary_to_term(term_to_binary(save(Shard))),
    stop(Shard),
    New = shard(Monitor),
    ok = load(Data, New),
    New.

as_alone(Told, Covered, Ops, Monitors) ->
    Lines = [Line || {Line, _, _, _} <- Told],
    ?assertEqual(lists:sort(Lines), Lines),
    At = #{Line => Op || {Line, Op} <- lists:enumerate(Ops)},
    [?assertEqual({Id, Event}, map_get(Line, At)) || {Line, Id, _, #{event := #{event := Event}}} <- Told],
    %% A deadline passes before the event that tells the time.
    [?assertMatch({Id, What} when is_atom(What); is_map_key(deadline, Info), map_get(Line, At))
     || {Line, Id, _, #{event := undefined, info := Info}} <- Told],
    [?assertEqual({Name, Alone}, {Name, [{Kind, Outcome} || {_, Of, Kind, Outcome} <- Told, Of =:= Id]}) ||
     #{id := {Name, _} = Id, alone := Alone} <- Monitors],
    ?assertEqual(lists:foldl(fun(#{covered := Mask}, All) -> Mask bor All end, 0, Monitors), Covered).

%% Each id has its own order in a random one.
interleaved(Sequences) ->
    Placed = [lists:zip(lists:sort([rand:uniform() || _ <- Whats]), [{Id, What} || What <- Whats]) ||
              {Id, Whats} <- Sequences],
    [Op || {_, Op} <- lists:keysort(1, lists:append(Placed))].

numbered(Line, {Id, What}) -> {Line, Id, What}.

%% What each monitor of a trace is given.
monitors(Name, Events, #{module := Module, entries := Entries}) ->
    Match = fun(Signature) -> [lists:nth(Index, Entries) || Index <- Module:match(Signature)] end,
    {Labels, Monitors, Ended} = lists:foldl(fun(E, State) -> given(E, Name, Match, State) end, {#{}, [], []}, Events),
    [M#{whats := lists:reverse(Whats, [ending(Id, Labels, Ended)])} || #{id := Id, whats := Whats} = M <- Monitors].

ending(Id, Labels, Ended) ->
    case [P || P := Label <- Labels, lists:member(Id, witness_instrument_map:label(readers, Label))] -- Ended of
        [] -> complete;
        _ -> stopped
    end.

given({init, P, Parent, Signature, _} = E, Name, Match, {Labels, Monitors, Ended}) ->
    Maps = [fun(S) -> [case Entry of #{action := none} -> none; _ -> Entry end || Entry <- Match(S)] end],
    Label = case Labels of
        #{Parent := Known} -> {_, Child} = witness_instrument_map:assign(Signature, Known, Maps), Child;
        _ -> witness_instrument_map:new(Maps, #{held => true, signature => Signature})
    end,
    New = [{N, #{id => {Name, length(Monitors) + I}, group => Group, monitor => {Module, Index},
                 whats => [{start, P, Signature}]}} ||
           {I, {N, #{group := Group, module := Module, index := Index}}} <-
               lists:enumerate(witness_instrument_map:starts(Label))],
    Members = [{N, Id, Group} || {N, #{id := Id, group := Group}} <- New],
    read(E, {Labels#{P => witness_instrument_map:with_readers(Members, Label)}, Monitors ++ [M || {_, M} <- New], Ended});
given(E, _, _, State) ->
    read(E, State).

read(E, {Labels, Monitors, Ended}) ->
    P = witness_event:proc(E),
    Readers = witness_instrument_map:label(readers, map_get(P, Labels)),
    {Labels,
     [case lists:member(Id, Readers) of true -> M#{whats := [E | Whats]}; false -> M end ||
      #{id := Id, whats := Whats} = M <- Monitors],
     [P || witness_event:kind(E) =:= exit] ++ Ended}.

%% The same monitor in a process of its own.
alone(#{monitor := Monitor, whats := [{start, P, Signature} | Whats]} = M) ->
    {Outcomes, Covered} = runner(Monitor, P, Signature, Whats),
    M#{alone => Outcomes, covered => Covered}.

runner(Monitor, P, Signature, Whats) ->
    Runner = witness_monitor_runner:start(#{monitor => Monitor, process => P, signature => Signature, run => self(),
                                            explain => ?EXPLAIN, ordered => false}),
    lists:foreach(fun(complete) -> witness_monitor_runner:complete(Runner);
                     (stopped) -> witness_monitor_runner:stop(Runner);
                     ({gap, Reason}) -> witness_monitor_runner:report_gap(Runner, Reason);
                     (E) -> witness_monitor_runner:send_events(Runner, [{none, E}])
                  end, Whats),
    collect(Runner).

collect(Runner) ->
    receive
        {slice, Runner, Outcome} ->
            {Outcomes, Covered} = collect(Runner),
            {[{slice, Outcome} | Outcomes], Covered};
        {verdict, Runner, ignored} -> {[{verdict, ignored}], 0};
        {verdict, Runner, #{covered := Covered} = Outcome} -> {[{verdict, maps:remove(covered, Outcome)}], Covered}
    end.

%% --- monitors that misbehave -------------------------------------------------------

a_crash_is_an_outcome_of_its_monitor_and_the_shard_goes_on_test() ->
    Whats = #{good => [{start, self(), {m, f, [good]}}, recv({1, a}), recv({1, b}), complete],
              bad => [{start, self(), {m, f, [bad]}}, recv({1, a}), recv({2, bad}), recv({1, b}), complete]},
    [begin
         Monitor = {witness_monitor_runner_tests, Arg},
         Ops = [{1, bad}, {1, good}, {2, bad}, {2, good}, {3, bad}, {3, good}, {4, bad}, {5, bad}, {4, good}],
         Shard = shard(Monitor),
         {Told, 0} = work([numbered(Line, {Id, lists:nth(N, map_get(Id, Whats))}) ||
                           {Line, {N, Id}} <- lists:enumerate(Ops)], Shard),
         Found = fun(Id) -> [{Kind, without_stack(Outcome)} || {_, Of, Kind, Outcome} <- Told, Of =:= Id] end,
         [begin
              {Outcomes, 0} = runner(Monitor, self(), Signature, Given),
              ?assertEqual([{Kind, without_stack(Outcome)} || {Kind, Outcome} <- Outcomes], Found(Id))
          end || Id := [{start, _, Signature} | Given] <- Whats],
         ?assertMatch([_ | _], [x || {_, #{reason := {crashed, _}}} <- Found(bad)]),
         ?assertEqual([], [x || {_, #{reason := {crashed, _}}} <- Found(good)]),
         gone(Shard)
     end || Arg <- crashing()].

crashing() ->
    Crash = fun({recv, _, _, {_, bad}, _}) -> error(oops); (_) -> ok end,
    Sliced = #{slice => fun key/1, names => [~"Key"], ended => fun(_, Seen) -> {yes, length(Seen)} end},
    [#{init => fun({_, _, [bad]}, _) -> error(oops); (_, _) -> ok end},
     #{event => Crash},
     #{event => fun({recv, _, _, {_, bad}, _}) -> nonsense; (_) -> ok end},
     #{ended => fun(_, Seen) -> {yes, [ok = Crash(E) || E <- Seen]} end},
     #{slice => fun(E) -> ok = Crash(E), all end},
     Sliced#{event => Crash},
     Sliced#{instance => fun({2}) -> error(oops); (_) -> Sliced#{seen => []} end},
     Sliced#{slice => fun(E) -> ok = Crash(E), key(E) end}].

without_stack(#{reason := {crashed, {Class, Reason, [_ | _]}}} = Outcome) ->
    Outcome#{reason := {crashed, {Class, Reason}}};
without_stack(Outcome) -> Outcome.

what_callbacks_leave_in_the_mailbox_is_thrown_away_test() ->
    Shard = shard({witness_monitor_runner_tests, #{event => fun(_) -> self() ! junk, ok end}}),
    {[], 0} = work([{1, a, start()} | [{N, a, recv(x)} || N <- lists:seq(2, 100)]], Shard),
    {[{101, a, verdict, _}], 0} = work([{101, a, complete}], Shard),
    ?assertEqual({message_queue_len, 0}, process_info(Shard, message_queue_len)),
    gone(Shard).

%% --- operations --------------------------------------------------------------------

a_process_that_is_refused_has_an_outcome_and_no_monitor_test() ->
    Shard = shard({witness_monitor_runner_tests, #{init => fun(_, _) -> ignore end}}),
    ?assertEqual({[{7, a, verdict, ignored}], 0}, work([{7, a, start()}, {8, a, recv(x)}, {9, a, complete}], Shard)),
    gone(Shard).

after_its_verdict_nothing_is_for_a_monitor_until_its_id_starts_again_test() ->
    Shard = shard({witness_monitor_runner_tests, #{event => fun({recv, _, _, M, _}) -> {verdict, no, M} end}}),
    {Told, 0} = work([{1, a, recv(0)}, {2, a, start()}, {3, a, recv(1)}, {4, a, recv(2)}, {5, a, {gap, lost}},
                      {6, a, complete}, {7, a, start()}, {8, a, recv(3)}], Shard),
    ?assertMatch([{3, a, verdict, #{info := 1}}, {8, a, verdict, #{info := 3}}], Told),
    gone(Shard).

at_a_gap_a_monitor_ends_inconclusive_test() ->
    Sliced = #{slice => fun key/1, names => [~"Key"]},
    Shard = shard({witness_monitor_runner_tests, Sliced}),
    {Told, 0} = work([{1, a, start()}, {2, a, recv({1, x})}, {3, a, recv({2, x})}, {4, a, {gap, lost}}], Shard),
    ?assertMatch([{4, a, slice, #{reason := {gap, lost}, slice := [{~"Key", 1}]}},
                  {4, a, slice, #{reason := {gap, lost}, slice := [{~"Key", 2}]}},
                  {4, a, verdict, #{reason := {gap, lost}, slice := undefined}}], Told),
    gone(Shard).

slices_beyond_the_bound_go_with_the_operation_that_displaces_them_test() ->
    Shard = shard({witness_monitor_runner_tests, #{slice => fun key/1, names => [~"Key"]}}, #{max_slices => 1}),
    {Told, 0} = work([{1, a, start()}, {2, a, recv({1, x})}, {3, a, recv({2, x})}], Shard),
    ?assertMatch([{3, a, slice, #{reason := max_slices, slice := [{~"Key", 1}]}}], Told),
    stop(Shard).

an_id_that_is_in_use_cannot_start_test() ->
    process_flag(trap_exit, true),
    Shard = shard({witness_monitor_runner_tests, #{}}),
    Shard ! {work, 1, self(), [{1, a, start()}, {2, a, start()}]},
    receive {'EXIT', Shard, Reason} -> ?assertEqual(started_twice, Reason) end,
    process_flag(trap_exit, false).

a_shard_ends_with_its_owner_test() ->
    Self = self(),
    {Owner, Ref} = spawn_monitor(fun() ->
        Self ! {shard, shard({witness_monitor_runner_tests, #{}})},
        receive stop -> ok end
    end),
    Shard = receive {shard, Pid} -> monitor(process, Pid), Pid end,
    Owner ! stop,
    receive {'DOWN', Ref, process, Owner, normal} -> ok end,
    receive {'DOWN', _, process, Shard, normal} -> ok end.

%% --- states ------------------------------------------------------------------------

%% A hundred thousand monitors leave no more behind than a thousand.
a_monitor_that_is_gone_takes_no_memory_test_() ->
    {timeout, 60, [{Name, fun() ->
        Shard = shard({witness_monitor_runner_tests, Arg}),
        Memory = fun(From, To) ->
            [begin
                 Ids = lists:seq(N, N + 99),
                 {Told, 0} = work([{Id, Id, What} || What <- [start(), recv({1, x}) | Ends], Id <- Ids], Shard),
                 ?assertEqual(100, length([x || {_, _, verdict, _} <- Told]))
             end || N <- lists:seq(From, To, 100)],
            garbage_collect(Shard),
            {memory, Bytes} = process_info(Shard, memory),
            Bytes
        end,
        Small = Memory(1, 1000),
        Large = Memory(1001, 100_000),
        ?assert(Large < Small + 50_000),
        ?assertEqual({0, []}, save(Shard)),
        gone(Shard)
    end} || {Name, Ends, Arg} <-
        [{"ended", [complete], #{}},
         {"decided", [recv({1, stop})], #{event => fun({recv, _, _, {_, stop}, _}) -> {verdict, no, x}; (_) -> ok end}},
         {"sliced", [recv({2, x}), complete], #{slice => fun key/1, names => [~"Key"]}}]]}.

%% Saving does not change a shard: it goes on, and so does the new one.
a_saved_shard_goes_on_test() ->
    Monitor = {witness_monitor_runner_tests, #{ended => fun(_, Seen) -> {yes, [M || {recv, _, _, M, _} <- Seen]} end}},
    Old = shard(Monitor),
    {[], 0} = work([{1, a, start()}, {2, b, start()}, {3, a, recv(x)}], Old),
    New = moved_to(save(Old), shard(Monitor)),
    [begin
         {Told, 0} = work([{4, a, recv(M)}, {5, a, complete}, {6, b, complete}], Shard),
         ?assertMatch([{5, a, verdict, #{info := [x, M]}}, {6, b, verdict, #{info := []}}], Told),
         gone(Shard)
     end || {Shard, M} <- [{Old, old}, {New, new}]].

what_was_taken_before_is_covered_in_the_new_shard_test() ->
    Mark = fun({recv, _, _, N, _}) -> put(list_to_atom("$witness_" ++ integer_to_list(N)), N), ok end,
    Monitor = {witness_monitor_runner_tests, #{event => Mark}},
    Old = shard(Monitor),
    {[], 2#1010} = work([{1, a, start()}, {2, a, recv(1)}, {3, a, recv(3)}], Old),
    New = moved_to(save(Old), shard(Monitor)),
    ?assertEqual({[], 2#101010}, work([{4, a, recv(5)}], New)),
    [stop(Shard) || Shard <- [Old, New]].

what_is_no_state_of_a_shard_is_refused_and_changes_nothing_test() ->
    Shard = shard({witness_monitor_runner_tests, #{}}),
    {[], 0} = work([{1, a, start()}, {2, a, recv(x)}], Shard),
    {0, [{a, Good}]} = save(Shard),
    [?assertEqual({Data, {error, damaged}}, {Data, load(Data, Shard)}) ||
     Data <- [x, {0, x}, {-1, []}, {0, [x]}, {0, [{a, Good} | x]}, {0, [{a, Good}, {b, x}]}, {0, [{a, {whole, x}}]}]],
    ?assertEqual({0, [{a, Good}]}, save(Shard)),
    stop(Shard).

moved_to(Data, Shard) ->
    ok = load(Data, Shard),
    Shard.

%% --- helpers -----------------------------------------------------------------------

shard(Monitor) -> shard(Monitor, #{}).

shard(Monitor, More) -> witness_offline_shard:start_link(More#{monitor => Monitor, explain => ?EXPLAIN}).

work(Ops, Shard) ->
    {Told, {[], 0, 0, 0, #{}}, Covered} = answer(Ops, Shard),
    {Told, Covered}.

answer(Ops, Shard) ->
    Seq = make_ref(),
    Shard ! {work, Seq, self(), Ops},
    receive {worked, Seq, Shard, Told, Counted, Covered} -> {Told, Counted, Covered} end.

save(Shard) ->
    Ref = make_ref(),
    Shard ! {save, self(), Ref},
    receive {saved, Ref, Shard, Data} -> Data end.

load(Data, Shard) ->
    Ref = make_ref(),
    Shard ! {load, self(), Ref, Data},
    receive
        {loaded, Ref, Shard} -> ok;
        {load_failed, Ref, Shard, Reason} -> {error, Reason}
    end.

%% Stops a shard that has no monitors left.
gone(Shard) ->
    ?assertMatch({_, []}, save(Shard)),
    stop(Shard).

stop(Shard) ->
    Ref = monitor(process, Shard),
    unlink(Shard),
    exit(Shard, shutdown),
    receive {'DOWN', Ref, process, Shard, shutdown} -> ok end.

start() -> {start, self(), {m, f, [1]}}.

recv(Message) -> {recv, self(), undefined, Message, undefined}.

key({recv, _, _, {Key, _}, _}) -> {slice, {Key}};
key(_) -> skip.
