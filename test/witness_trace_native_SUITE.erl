-module(witness_trace_native_SUITE).
-moduledoc """
The native source against the real VM. After every case nothing is left that native code has allocated.

`WITNESS_NATIVE_PROCESSES` and `WITNESS_NATIVE_SECONDS` lengthen the two cases that look for leaks and races.
""".
-include_lib("stdlib/include/assert.hrl").
-include_lib("proper/include/proper.hrl").

-import(witness_setting, [number/2]).
-compile(export_all).

-import(witness_trace_native_reader, [open/1, born/2, read/2, take/1, close/1, partition/2, events/1]).

-define(N, witness_trace_native).
-define(CASES, witness_trace_function_cases).
-define(READER, witness_trace_native_reader).

suite() -> [{timetrap, {seconds, 120 + number("WITNESS_NATIVE_PROCESSES", 0) div 5000 + number("WITNESS_NATIVE_SECONDS", 0)}}].

all() ->
    [birth_to_exit, sends, receives, system_messages, a_gen_server_replies_to_an_alias,
     an_expired_after_is_no_event, a_message_timeout_of_a_process_is, signatures_are_what_the_author_wrote,
     events_carry_a_time_if_wanted, kinds_that_no_monitor_reads_are_not_traced, only_messages_that_a_monitor_reads_are_traced,
     calls_enclose_what_they_do, kinds_that_no_monitor_reads_are_left_out, calls_of_every_form_are_delivered,
     calls_of_otp_are_delivered, tail_calls_return_in_reverse, a_call_that_raises_has_no_return,
     a_call_of_a_process_that_is_killed_has_no_return,
     calls_under_load_are_exact, calls_under_load_are_exact_in_partitions_of_their_own, calls_carry_a_time_if_wanted,
     a_process_that_hides_itself_has_no_further_calls,
     a_flag_of_another_kind_hides_no_process, large_calls_are_gaps, calls_are_counted_in_memory,
     only_calls_that_its_consumer_needs_are_added, calls_beside_servers, each_session_has_calls_of_its_own,
     large_returns_of_a_central_partition_are_items,
     descendants_of_a_group_share_its_partition, others_have_partitions_of_their_own,
     a_process_that_no_monitor_names_has_no_partition, names_have_wildcards, what_native_code_leaves_out_has_no_name,
     what_native_code_decides_is_what_erlang_decides,
     a_grouped_partition_is_causal, a_run_has_ended_with_its_last_process,
     a_process_that_is_on_has_no_events_but_its_children_do, a_process_that_is_off_has_no_events,
     a_process_that_is_off_is_not_waited_for, what_has_ended_is_dead,
     a_consumer_is_told_once, a_consumer_is_told_of_an_exit, a_consumer_is_told_after_a_while, a_consumer_is_told_of_the_end,
     the_consumer_is_the_process_that_takes, a_dead_consumer_reads_no_more, a_handle_that_is_collected_reads_no_more,
     what_is_unread_is_gone, only_what_its_consumer_needs_is_added,
     a_full_partition_has_a_gap, a_large_batch_comes_in_pieces, full_memory_is_a_gap_and_recovers, a_large_message_is_a_gap,
     an_exit_that_was_not_reported_is_a_gap,
     sizes_are_not_too_small, deep_terms_do_no_harm, shared_terms_do_no_harm,
     close_while_processes_are_born, many_sessions_at_once, a_session_ends_with_its_owner,
     nothing_happens_to_a_run_when_the_code_is_replaced, without_the_code_nothing_crashes, a_node_stops_while_it_is_traced,
     short_lived_processes_leave_nothing, races].

init_per_suite(Config) ->
    case ?N:available() of
        ok -> Config;
        {error, Why} -> {skip, unicode:characters_to_list(Why)}
    end.

end_per_suite(_) -> ok.

%% What an earlier case has left is its own fault.
init_per_testcase(_, Config) -> [{resources, ?N:resources()} | Config].

end_per_testcase(_, Config) ->
    case ?READER:resources_left(proplists:get_value(resources, Config)) of
        [] -> ok;
        Left -> {fail, {left, Left}}
    end.

%% Common Test keeps what a case returns: it must be no handle.
ended_well(Reader) ->
    _ = close(Reader),
    ok.

%% --- decoding --------------------------------------------------------------------

%% The cases that every source has in common.
birth_to_exit(_) -> witness_trace_cases:birth_to_exit(fun group_events/2).
sends(_) -> witness_trace_cases:sends(fun group_events/2).
receives(_) -> witness_trace_cases:receives(fun group_events/2).
system_messages(_) -> witness_trace_cases:system_messages(fun group_events/2).
a_gen_server_replies_to_an_alias(_) -> witness_trace_cases:a_gen_server_replies_to_an_alias(fun group_events/2).
an_expired_after_is_no_event(_) -> witness_trace_cases:an_expired_after_is_no_event(fun group_events/2).
a_message_timeout_of_a_process_is(_) -> witness_trace_cases:a_message_timeout_of_a_process_is(fun group_events/2).
signatures_are_what_the_author_wrote(_) -> witness_trace_cases:signatures_are_what_the_author_wrote(fun group_events/2).

%% A process and its descendants, in one partition.
group_events(Fun, Meanwhile) -> group_events(#{}, Fun, Meanwhile).

group_events(Options, Fun, Meanwhile) ->
    Reader = open(Options#{names => [{'_', '_', '_', true}]}),
    P = born(Reader, fun() -> receive go -> Fun() end end),
    P ! go,
    Meanwhile(P),
    Read = read(Reader, fun ?READER:ended/1),
    #{launcher := Launcher} = close(Read),
    [#{child := P, grouped := true, held := true, status := complete} = Partition] = ?READER:partitions(Read),
    [{init, P, Launcher, {?MODULE, _, []}, undefined} | Events] = events(Partition),
    {P, Events}.

events_carry_a_time_if_wanted(_) ->
    Before = erlang:monotonic_time(nanosecond),
    Reader = open(#{timestamps => true}),
    P = born(Reader, fun() -> [begin self() ! N, receive N -> ok end end || N <- lists:seq(1, 50)] end),
    Read = close(read(Reader, fun ?READER:ended/1)),
    After = erlang:monotonic_time(nanosecond),
    Times = [witness_event:ts(E) || E <- events(partition(Read, P))],
    ?assertEqual(102, length(Times)),
    ?assertEqual(lists:sort(Times), Times),
    ?assert(Before =< hd(Times)),
    ?assert(lists:last(Times) =< After).

kinds_that_no_monitor_reads_are_not_traced(_) ->
    Kinds = fun(Alphabet) -> lists:usort([element(1, E) || E <- filtered([Alphabet])]) end,
    ?assertEqual([exit, fork, init, recv, send], Kinds(all)),
    ?assertEqual([exit, fork, init], Kinds([fork])),
    ?assertEqual([exit, fork, init, send], Kinds([send, exit])),
    ?assertEqual([exit, fork, init, recv], Kinds([recv])).

only_messages_that_a_monitor_reads_are_traced(_) ->
    Events = filtered([[{send, [{['_', {b, '_'}], [], []}]}, {recv, [{['_', {a, '_'}], [], []}]}]]),
    ?assertEqual([{b, 1}, {b, 2}], lists:sort([M || {send, _, _, M, _} <- Events])),
    ?assertEqual([{a, 1}, {a, 2}], lists:sort([M || {recv, P, P, M, _} <- Events])).

%% A process and its child receive and send `a' and `b'.
filtered(Alphabets) ->
    Reader = open(#{names => [{'_', '_', '_', true}], filter => witness_trace_filter:union(Alphabets)}),
    Work = fun(N) -> [begin self() ! {X, N}, receive {X, N} -> ok end end || X <- [a, b]] end,
    P = born(Reader, fun() ->
        {_, Ref} = spawn_monitor(fun() -> Work(2) end),
        receive {'DOWN', Ref, _, _, _} -> Work(1) end
    end),
    Read = close(read(Reader, fun ?READER:ended/1)),
    events(partition(Read, P)).

%% --- calls and returns -------------------------------------------------------------

calls_enclose_what_they_do(_) -> ?CASES:calls_enclose_what_they_do(fun function_events/3).
kinds_that_no_monitor_reads_are_left_out(_) -> ?CASES:kinds_that_no_monitor_reads_are_left_out(fun function_events/3).
calls_of_every_form_are_delivered(_) -> ?CASES:calls_of_every_form_are_delivered(fun function_events/3).
calls_of_otp_are_delivered(_) -> ?CASES:calls_of_otp_are_delivered(fun function_events/3).
tail_calls_return_in_reverse(_) -> ?CASES:tail_calls_return_in_reverse(fun function_events/3).
a_call_that_raises_has_no_return(_) -> ?CASES:a_call_that_raises_has_no_return(fun function_events/3).
a_call_of_a_process_that_is_killed_has_no_return(_) ->
    ?CASES:a_call_of_a_process_that_is_killed_has_no_return(fun function_events/3).

%% In one partition the order is causal, too. What monitors report has no send.
calls_under_load_are_exact(_) ->
    [?CASES:with_schedulers(Schedulers, fun() ->
        [First | Events] = ?CASES:load(fun function_events/3, Processes, 400),
        ?assertEqual([], [E || E <- misplaced([{init, element(2, First), none, none, undefined} | Events]),
                               element(1, element(4, E)) =/= 'DOWN'])
     end) || Schedulers <- [1, 2], Processes <- [1, 10]].

calls_under_load_are_exact_in_partitions_of_their_own(_) ->
    Source = fun(Functions, Fun, _) ->
        Reader = open(#{filter => functions(Functions)}),
        P = born(Reader, Fun),
        Read = close(read(Reader, fun ?READER:ended/1)),
        ?assert(lists:all(fun(#{status := Status}) -> Status =:= complete end, ?READER:partitions(Read))),
        {P, lists:append([events(Partition) || Partition <- ?READER:partitions(Read)])}
    end,
    [?CASES:with_schedulers(Schedulers, fun() -> ?CASES:load(Source, 10, 400) end) || Schedulers <- [1, 2]].

calls_carry_a_time_if_wanted(_) ->
    Reader = open(#{timestamps => true, filter => functions([{?CASES, inner, 1}])}),
    P = born(Reader, fun() -> ?CASES:inner(1) end),
    Events = events(partition(close(read(Reader, fun ?READER:ended/1)), P)),
    ?assertMatch([{init, P, _, _, T1}, {call, P, {_, inner, [1]}, T2}, {return, P, {_, inner, 1}, {inner, 1}, T3},
                  {exit, P, normal, _}]
                     when is_integer(T1) andalso T1 =< T2 andalso T2 =< T3 andalso is_integer(T3),
                 Events).

a_process_that_hides_itself_has_no_further_calls(_) ->
    Reader = open(#{filter => functions([{?CASES, inner, 1}])}),
    P = born(Reader, fun() -> ?CASES:inner(1), process_flag(sensitive, true), ?CASES:inner(2) end),
    Partition = partition(close(read(Reader, fun ?READER:ended/1)), P),
    ?assertMatch(#{status := {gap, sensitive, 0}}, Partition),
    ?assertMatch([{init, P, _, _, _}, {call, P, {_, inner, [1]}, _}, {return, P, {_, inner, 1}, {inner, 1}, _}], events(Partition)).

a_flag_of_another_kind_hides_no_process(_) ->
    Reader = open(#{filter => functions([{erlang, process_flag, 3}])}),
    P = born(Reader, fun() -> process_flag(self(), save_calls, 0) end),
    Partition = partition(close(read(Reader, fun ?READER:ended/1)), P),
    ?assertMatch([{init, P, _, _, _}, {call, P, {erlang, process_flag, [P, save_calls, 0]}, _},
                  {return, P, {erlang, process_flag, 3}, 0, _}, {exit, P, normal, _}], events(Partition)).

%% The arguments are too large, or the value.
large_calls_are_gaps(_) ->
    Gap = fun(Call) ->
        Reader = open(#{message_size => 10_000, filter => functions([{lists, seq, 2}, {lists, last, 1}])}),
        P = born(Reader, Call),
        maps:get(status, partition(close(read(Reader, fun ?READER:ended/1)), P))
    end,
    ?assertEqual(complete, Gap(fun() -> lists:last(lists:seq(1, 10)) end)),
    ?assertMatch({gap, message_size, _}, Gap(fun() -> lists:seq(1, 10_000) end)),
    ?assertMatch({gap, message_size, _}, Gap(fun() -> lists:last(lists:duplicate(10_000, x)) end)).

calls_are_counted_in_memory(_) ->
    Reader = #{session := Session} = open(#{flush => 60_000, filter => (functions([{?CASES, inner, 1}]))#{send := [], recv := []}}),
    P = born(Reader, fun Calls() -> receive {inner, N, From} -> ?CASES:inner(N), From ! done, Calls(); stop -> ok end end),
    Inner = fun(N) -> P ! {inner, N, self()}, receive done -> maps:get(bytes, ?N:counts(Session)) end end,
    Before = Inner(1),
    %% In the arguments and in the value.
    ?assert(Inner(lists:seq(1, 10_000)) - Before > 2 * 80_000),
    P ! stop,
    Read = close(read(Reader, fun ?READER:ended/1)),
    ?assertMatch(#{bytes := 0}, ?N:counts(Session)),
    ?assertEqual([init, call, return, call, return, exit], [element(1, E) || E <- events(partition(Read, P))]).

only_calls_that_its_consumer_needs_are_added(_) ->
    Kinds = fun(Narrowed) ->
        Reader = open(#{filter => functions([{?CASES, inner, 1}])}),
        P = born(Reader, fun() -> receive go -> ?CASES:inner(1) end end),
        R = take(Reader),
        ok = ?N:narrow(?READER:handle(R, P), Narrowed),
        P ! go,
        [element(1, E) || E <- events(partition(close(read(R, fun ?READER:ended/1)), P))]
    end,
    ?assertEqual([init, call], Kinds([call])),
    ?assertEqual([init, return], Kinds([return])),
    ?assertEqual([init, recv, call, return, exit], Kinds([recv, call, return, exit])),
    ?assertEqual([init, recv], Kinds([recv])).

%% Servers are traced, and have no events. Their calls inside `gen_server` are none of a monitor.
calls_beside_servers(_) ->
    {ok, Server} = gen_server:start(?CASES, [], []),
    Filter = functions([{gen_server, call, 2}, {?CASES, handle_call, 3}]),
    Reader = #{session := Session} = open(#{servers => true, filter => Filter}),
    ok = ?N:server(Session, Server, false),
    P = born(Reader, fun() -> gen_server:call(Server, ask) end),
    Read = close(read(Reader, fun ?READER:ended/1)),
    ?assertEqual([P], ?READER:children(Read)),
    ?assertMatch([{init, P, _, _, _}, {call, P, {gen_server, call, [Server, ask]}, _}, {send, P, _, _, _}, {recv, P, _, _, _},
                  {return, P, {gen_server, call, 2}, answer, _}, {exit, P, normal, _}],
                 events(partition(Read, P))),
    gen_server:stop(Server).

%% Two sessions observe one process, each another function, and a third one both.
each_session_has_calls_of_its_own(_) ->
    [One, Two, Three] = [{?CASES, F, 1} || F <- [one, two, three]],
    Calls = fun() -> {?CASES:one(1), ?CASES:two(2), ?CASES:three(3)} end,
    P = spawn(fun() -> receive go -> spawn_link(Calls), receive stop -> ok end end end),
    Readers = [open(#{filter => functions(Functions)}) || Functions <- [[One, Two], [Two, Three], [Three, One, Two]]],
    [ok = ?N:on(?READER:session(R), P) || R <- Readers],
    P ! go,
    Complete = fun(R) -> [x || #{status := complete} <- ?READER:partitions(R)] =/= [] end,
    Seen = [[{element(1, E), F} || E <- events(Partition), lists:member(element(1, E), [call, return]), {_, F, _} <- [called(E)]]
            || R <- Readers, Partition <- ?READER:partitions(close(take_until(R, Complete)))],
    P ! stop,
    Expected = [[one, two], [two, three], [one, two, three]],
    ?assertEqual([lists:append([[{call, F}, {return, F}] || F <- Fs]) || Fs <- Expected], Seen).

called({call, _, {M, F, Args}, _}) -> {M, F, length(Args)};
called({return, _, MFA, _, _}) -> MFA.

%% The partition goes on for the other processes, and for this one.
large_returns_of_a_central_partition_are_items(_) ->
    Session = ?N:open(#{names => [{'_', '_', '_', false}], message_size => 10_000, filter => functions([{lists, duplicate, 2}])}),
    Central = ?N:central(Session, false),
    Launcher = spawn_link(fun() -> receive go -> spawn(fun() -> [lists:duplicate(N, x) || N <- [1, 10_000, 2]] end) end end),
    ok = ?N:launcher(Session, Launcher),
    Launcher ! go,
    witness_await:until(fun() -> maps:with([held, processes], ?N:counts(Session)) =:= #{held => 0, processes => 1} end),
    ok = ?N:close(Session),
    ok = ?N:take(Central),
    Items = receive {witness_batch, Taken, stopped} -> Taken end,
    ?assertMatch([{init, P, _, _, _}, {call, P, {lists, duplicate, [1, x]}, _}, {return, P, {lists, duplicate, 2}, [x], _},
                  {call, P, _, _}, {gap, P, message_size, unknown, _},
                  {call, P, {lists, duplicate, [2, x]}, _}, {return, P, _, [x, x], _}, {exit, P, normal, _}],
                 Items),
    ?READER:flush().

function_events(Functions, Fun, Meanwhile) -> group_events(#{filter => functions(Functions)}, Fun, Meanwhile).

functions(Functions) when is_map(Functions) -> (witness_trace_filter:none())#{functions := Functions};
functions(Functions) -> functions(maps:from_keys(Functions, [call, return])).

%% --- partitions ------------------------------------------------------------------

descendants_of_a_group_share_its_partition(_) ->
    Reader = open(#{names => [{?MODULE, tree, 1, true}]}),
    P = ?READER:spawned(Reader, erlang, spawn, [?MODULE, tree, [3]], fun(Q) -> Q end),
    Read = close(read(Reader, fun ?READER:ended/1)),
    ?assertEqual([P], ?READER:children(Read)),
    #{grouped := true, status := complete} = Partition = partition(Read, P),
    Events = events(Partition),
    ?assertEqual(15, length([x || {init, _, _, _, _} <- Events])),
    ?assertEqual(15, length([x || {exit, _, _, _} <- Events])),
    ?assertEqual([], misplaced(Events)).

tree(0) -> ok;
tree(N) ->
    spawn(?MODULE, tree, [N - 1]),
    spawn(?MODULE, tree, [N - 1]).

others_have_partitions_of_their_own(_) ->
    Reader = open(#{names => [{?MODULE, tree, 1, false}]}),
    _ = ?READER:spawned(Reader, erlang, spawn, [?MODULE, tree, [3]], fun(Q) -> Q end),
    Read = close(read(Reader, fun ?READER:ended/1)),
    Partitions = ?READER:partitions(Read),
    ?assertEqual(15, length(Partitions)),
    lists:foreach(fun(#{child := C, grouped := false, held := true, status := complete} = Partition) ->
        Events = [{init, C, _, _, _} | Rest] = events(Partition),
        ?assertEqual([C], lists:usort([witness_event:proc(E) || E <- Events])),
        ?assertMatch({exit, C, normal, _}, lists:last(Rest))
    end, Partitions).

a_process_that_no_monitor_names_has_no_partition(_) ->
    ?assertEqual([], named([], fun() -> spawn(?MODULE, a, []), spawn(fun() -> ok end) end)),
    ?assertEqual([{?MODULE, b, []}],
                 named([{?MODULE, b, 0, false}], fun() -> [spawn(?MODULE, F, []) || F <- [a, b, c]], spawn(?MODULE, b, [1]) end)),
    %% Native code resolves callbacks of OTP, but neither funs nor supervisors.
    Started = fun() -> {ok, S} = gen_server:start(?MODULE, stop_at_once, []), S end,
    ?assertMatch([{?MODULE, init, [_]}], named([{?MODULE, init, 1, false}], Started)),
    ?assertEqual([], named([{?MODULE, init, 2, false}], Started)),
    ?assertEqual([], named([{gen_server, init_it, 6, false}], Started)),
    ?assertMatch([{?MODULE, _, []}], named([{?MODULE, b, 0, false}], fun() -> spawn(fun() -> ok end) end)).

names_have_wildcards(_) ->
    Spawn = fun() -> [spawn(?MODULE, F, Args) || F <- [a, b], Args <- [[], [1]]] end,
    Named = fun(Pattern) -> lists:sort([{F, length(Args)} || {_, F, Args} <- named([Pattern], Spawn)]) end,
    ?assertEqual([{a, 0}, {a, 1}, {b, 0}, {b, 1}], Named({'_', '_', '_', false})),
    ?assertEqual([{a, 0}, {a, 1}, {b, 0}, {b, 1}], Named({?MODULE, '_', '_', false})),
    ?assertEqual([{a, 0}, {b, 0}], Named({'_', '_', 0, false})),
    ?assertEqual([{b, 0}, {b, 1}], Named({?MODULE, b, '_', false})),
    ?assertEqual([{a, 1}], Named({'_', a, 1, false})),
    ?assertEqual([], Named({lists, '_', '_', false})).

a() -> ok.
a(_) -> ok.
b() -> ok.
b(_) -> ok.
c() -> ok.
init(stop_at_once) -> {ok, [], 0};
init(Arg) -> {ok, Arg}.
handle_info(timeout, S) -> {stop, normal, S}.

%% The signatures of the children with a partition.
named(Names, Spawn) ->
    Reader = open(#{names => Names}),
    Root = ?READER:spawned(Reader, erlang, spawn, [fun() -> receive go -> Spawn() end end], fun(P) -> P end),
    Root ! go,
    Read = close(read(Reader, fun ?READER:ended/1)),
    [witness_event_signature:resolve(Raw) || #{child := C, raw := Raw} <- ?READER:partitions(Read), C =/= Root].

%% The process itself has no partition: only its children have.
a_process_that_is_on_has_no_events_but_its_children_do(_) ->
    Reader = #{session := Session} = open(#{}),
    P = spawn(fun Spawn() -> receive {spawn, N} -> spawn(?MODULE, a, [N]), Spawn(); stop -> ok end end),
    ok = ?N:on(Session, P),
    P ! {spawn, 1},
    P ! {spawn, 2},
    Read = read(Reader, fun(R) -> length([x || #{status := complete} <- ?READER:partitions(R)]) =:= 2 end),
    P ! stop,
    #{births := stopped} = Closed = close(Read),
    ?assertNot(lists:member(P, ?READER:children(Closed))),
    %% Either may be the first to end.
    ?assertMatch([{?MODULE, a, [1]}, {?MODULE, a, [2]}],
                 lists:sort([S || #{held := false} = Partition <- ?READER:partitions(Closed),
                                  {init, _, Q, S, _} <- events(Partition), Q =:= P])).

a_process_that_is_off_has_no_events(_) ->
    Reader = #{session := Session} = open(#{}),
    P = born(Reader, fun answering/0),
    ask(P),
    ok = ?N:off(Session, P),
    ?assertEqual([], trace:session_info(P)),
    ask(P),
    Read = read(Reader, fun(R) -> [x || Q <- ?READER:children(R), Q =:= P, ?READER:status(R, P) =/= open] =/= [] end),
    #{status := stopped} = Partition = partition(Read, P),
    ?assertMatch([{init, P, _, _, _}, {recv, P, _, {ask, _}, _}, {send, P, _, answered, _}], events(Partition)),
    P ! stop,
    ended_well(Read).

a_process_that_is_off_is_not_waited_for(_) ->
    Reader = #{session := Session} = open(#{}),
    P = born(Reader, fun answering/0),
    ?assertMatch(#{held := 1}, ?N:counts(Session)),
    ok = ?N:off(Session, P),
    ?assertMatch(#{held := 0}, ?N:counts(Session)),
    close(read(Reader, fun ?READER:ended/1)),
    P ! stop.

answering() -> receive {ask, From} -> From ! answered, answering(); stop -> ok end.

ask(P) -> P ! {ask, self()}, receive answered -> ok end.

what_has_ended_is_dead(_) ->
    Reader = #{session := Session} = open(#{}),
    Gone = witness_trace_cases:gone(),
    ?assertEqual(dead, ?N:on(Session, Gone)),
    ?assertEqual(ok, ?N:off(Session, Gone)),
    ?assertEqual(dead, ?N:launcher(Session, Gone)),
    close(Reader),
    Other = spawn(fun answering/0),
    ?assertEqual(dead, ?N:on(Session, Other)),
    Other ! stop,
    ?assertEqual(ok, ?N:close(Session)).

a_run_has_ended_with_its_last_process(_) ->
    Reader = #{session := Session} = open(#{names => []}),
    P = born(Reader, fun() ->
        Q = spawn(fun answering/0),
        receive {stop, Ref, From} -> From ! {Ref, Q} end
    end),
    ?assertMatch(#{held := Held} when Held >= 1, ?N:counts(Session)),
    Ref = make_ref(),
    P ! {stop, Ref, self()},
    Q = receive {Ref, Child} -> Child end,
    witness_await:until(fun() -> not is_process_alive(P) andalso maps:get(held, ?N:counts(Session)) =:= 1 end),
    ?assertNot(?READER:ended(take(Reader))),
    Q ! stop,
    Read = read(Reader, fun ?READER:ended/1),
    ?assertMatch(#{held := 0, processes := 2}, ?N:counts(Session)),
    ended_well(Read).

%% --- names: native code and Erlang -----------------------------------------------

%% If native code gives a process no partition, no name may match the signature that Erlang resolves.
what_native_code_leaves_out_has_no_name(_) ->
    Property = ?FORALL({Names, Rows, Raws}, {list(pattern()), list(row()), vector(30, raw(3))},
        begin
            {ok, Table} = witness_event_wrapper:table(Rows),
            Session = ?N:open(#{names => Names, signatures => Table}),
            Missed = [{Raw, S} || Raw <- Raws, S <- [witness_event_signature:resolve(Raw, Table)],
                                  {Named, Group} <- [by_erlang(S, Names)], {Born, Grouped} <- [by_native(Session, Raw)],
                                  (Named andalso not Born) orelse (Group andalso not Grouped)],
            ok = ?N:close(Session),
            ?WHENFAIL(ct:log("~p", [{Rows, Missed}]), Missed =:= [])
        end),
    ?assert(proper:quickcheck(Property, [{numtests, 300}, {to_file, user}, noshrink])).

by_erlang({M, F, Args}, Names) ->
    Of = fun({X, Y, Z, _}) ->
        (X =:= '_' orelse X =:= M) andalso (Y =:= '_' orelse Y =:= F) andalso
            (Z =:= '_' orelse (try length(Args) catch error:badarg -> none end) =:= Z)
    end,
    Matching = lists:filter(Of, Names),
    {Matching =/= [], lists:keymember(true, 4, Matching)}.

%% Tells native code of a birth, without any process.
by_native(Session, Raw) ->
    ok = birth(Session, self(), Raw),
    Births = ?N:births(Session),
    Result = case ?N:take(Births) of
        ok -> receive {witness_batch, [{birth, _, Grouped, false, _, Raw}], open} -> {true, Grouped} end;
        empty -> {false, false}
    end,
    ok = ?N:trace_procs(exit, run(Session), self(), normal, #{}),
    Result.

birth(Session, Child, Raw) -> ?N:trace_procs(spawned, run(Session), Child, whereis(init), #{extra => Raw}).

%% What the VM hands to the callbacks.
run(Session) -> element(1, element(2, Session)).

pattern() -> {oneof(['_' | modules()]), oneof(['_' | functions()]), oneof(['_' | lists:seq(0, 7)]), boolean()}.

modules() -> [m, n, my_server, 'Elixir.GenStage', proc_lib, gen, gen_server, gen_event, gen_statem, erlang,
             erts_internal, supervisor,
              supervisor_bridge,
              'Elixir.Task.Supervised', 'Elixir.DynamicSupervisor', 'Elixir.Agent.Server', ?MODULE].
functions() -> [f, init, init_it, init_p, apply, spawn_init, dist_spawn_init, noreply, reply, '-raw/1-fun-0-'].

%% Without funs native code knows as much as Erlang. Some of the signatures have names, and exactly these are born into partitions.
what_native_code_decides_is_what_erlang_decides(_) ->
    Property = ?FORALL({Rows, Raws}, {list(row()), vector(30, {boolean(), wrapped()})},
        begin
            {ok, Table} = witness_event_wrapper:table(Rows),
            Name = fun(Raw) -> {M, F, Args} = witness_event_signature:resolve(Raw, Table), {M, F, length(Args), false} end,
            Names = [Name(Raw) || {true, Raw} <- Raws],
            Session = ?N:open(#{names => Names, signatures => Table}),
            Differ = [{Raw, Name(Raw)} || {_, Raw} <- Raws, {Born, _} <- [by_native(Session, Raw)],
                                          Born =/= lists:member(Name(Raw), Names)],
            ok = ?N:close(Session),
            ?WHENFAIL(ct:log("~p", [{Rows, Differ}]), Differ =:= [])
        end),
    ?assert(proper:quickcheck(Property, [{numtests, 200}, {to_file, user}, noshrink])).

%% A gen_server with arguments that a row may match. No fun is among them.
wrapped() ->
    ?LET({Mod, Arg}, {oneof([my_server, 'Elixir.GenStage', 'Elixir.ConsumerSupervisor', supervisor, supervisor_bridge,
                             'Elixir.DynamicSupervisor', 'Elixir.Phoenix.Tracker.Shard', m]), wrapped_argument(2)},
         {proc_lib, init_p, [self(), [], gen, init_it, [gen_server, self(), self(), Mod, Arg, []]]}).

wrapped_argument(0) -> oneof([m, n, nil, true, undefined, 1, [], start, key, 'Elixir.GenStage', my_server]);
wrapped_argument(Depth) ->
    Inner = ?LAZY(wrapped_argument(Depth - 1)),
    frequency([{2, wrapped_argument(0)}, {4, {Inner, Inner}}, {2, {Inner, Inner, Inner}}, {2, [Inner, Inner, Inner]},
               {2, [{key, Inner}, {other, Inner}]}, {1, [Inner, {other, Inner}, {key, Inner}]}, {1, [{key, Inner} | Inner]},
               {2, #{key => Inner, other => Inner}}]).

%% A row of a project for `my_server'.
row() ->
    {my_server, init,
     [oneof([{module, args}, {start, module}, {'_', module, args}, [module, args, '_'], [{key, module}],
             [{other, args}, {key, module}],
             #{key => module}, #{key => {module, args}, other => '_'}, {{module, '_'}, args}, {module, start}])]}.

raw(0) -> {oneof(modules()), oneof(functions()), arguments()};
raw(Depth) ->
    Inner = raw(Depth - 1),
    frequency([{2, raw(0)},
               {3, ?LET({M, F, Args}, Inner, {proc_lib, init_p, [self(), [], M, F, Args]})},
               {2, ?LET({M, F, Args}, Inner, {erlang, apply, [M, F, Args]})},
               {2, ?LET(MFA, Inner, {erts_internal, spawn_init, [MFA]})},
               {1, {proc_lib, init_p, [self(), [], a_fun()]}},
               {1, {erlang, apply, [a_fun(), arguments()]}},
               {4, {proc_lib, init_p, [self(), [], gen, init_it, generic()]}},
               {1, ?LET(MFA, Inner, {'Elixir.Task.Supervised', noreply, oneof([[a, b, c, MFA], [a, b, MFA], [a]])})},
               %% No library spawns with these, but any program can.
               {1, {proc_lib, init_p, odd_list()}}, {1, {erlang, apply, odd_list()}}, {1, {gen, init_it, odd_list()}},
               {1, {erts_internal, spawn_init, odd_list()}}]).

generic() ->
    ?LET({Gen, Name, Mod, Args},
         {oneof([gen_server, gen_event, gen_statem, gen_fsm, m]), oneof([[], [{local, x}]]), callback_module(),
          callback_argument()},
         [Gen, self(), self()] ++ Name ++ [Mod, Args, []]).

callback_module() ->
    oneof([m, n, my_server, 'Elixir.GenStage', supervisor, supervisor_bridge, 'Elixir.DynamicSupervisor',
             'Elixir.Agent.Server', 'Elixir.Supervisor.Default',
           1,
           "x"]).

callback_argument() ->
    ?LET(MFA, raw(0), oneof([[], {name, m, []}, {m, [], name}, [m, [], name], {name, 1, []}, a_fun(), MFA])).

arguments() ->
    oneof([[], [1], [a, b], [{m, f, []}, c, d], [1, 2, 3, 4, 5], [a, b, c, d, e, f, g], [a | b], [a, b, c, d, e, f, g, h, i]]).
odd_list() -> list(oneof([m, gen, init_it, f, 1, "x", [], [a | b], {m, f, []}, {1, f, []}, a_fun()])).
a_fun() -> oneof([exactly(fun() -> ok end), exactly(fun lists:append/1)]).

%% --- order -----------------------------------------------------------------------

%% Processes send to each other as fast as they can; what one of them receives, another has sent before.
a_grouped_partition_is_causal(_) ->
    lists:foreach(fun(Batch) ->
        Reader = open(#{names => [{'_', '_', '_', true}], batch => Batch}),
        P = born(Reader, fun() ->
            Peers = [spawn(?MODULE, chat, [300]) || _ <- lists:seq(1, 20)],
            [Q ! {peers, Peers} || Q <- Peers]
        end),
        Read = close(read(Reader, fun ?READER:ended/1)),
        Events = events(partition(Read, P)),
        ?assertEqual(20 * 300, length([x || {recv, _, _, {said, _, _}, _} <- Events])),
        ?assertEqual([], misplaced(Events))
    end, [1, 64, 1000]).

%% Each process receives as many messages as it sends.
chat(N) ->
    Peers = receive {peers, All} -> All end,
    [begin P ! {said, self(), {K, P}}, receive never -> ok after 0 -> ok end end
     || K <- lists:seq(1, N div length(Peers)), P <- Peers],
    [receive {said, _, _} -> ok end || _ <- lists:seq(1, N)].

%% Events that do not come after their cause.
misplaced(Events) -> misplaced(Events, #{}, []).

misplaced([], _, Misplaced) -> lists:reverse(Misplaced);
misplaced([E | Events], Seen, Misplaced) ->
    Cause = case E of
        {init, C, _, _, _} -> case maps:size(Seen) of 0 -> none; _ -> {forked, C} end;
        {recv, P, From, M, _} when is_pid(From), is_map_key({lives, From}, Seen) -> {sent, From, P, M};
        {_, P, _, _, _} -> {lives, P};
        {_, P, _, _} -> {lives, P}
    end,
    Effect = case E of
        {fork, _, C1, _, _} -> {forked, C1};
        {init, C2, _, _, _} -> {lives, C2};
        {send, P1, To, M1, _} -> {sent, P1, To, M1};
        _ -> none
    end,
    Known = Seen#{none => true, Effect => true},
    case Cause =:= none orelse is_map_key(Cause, Seen) of
        true -> misplaced(Events, Known, Misplaced);
        false -> misplaced(Events, Known, [E | Misplaced])
    end.

%% --- batches ---------------------------------------------------------------------

%% Only what a sink hears is traced, and it has been traced when the sink answers.
sink() -> receive {hear, _, From} -> From ! heard, sink(); stop -> ok end.

hear(P, Term) -> P ! {hear, Term, self()}, receive heard -> ok end.

sink_options(Options) -> Options#{filter => (witness_trace_filter:none())#{send := []}}.

%% A sink of which the first event has been taken.
sink(Reader) ->
    P = born(Reader, fun sink/0),
    {P, take_until(Reader, fun(R) -> lists:member(P, ?READER:children(R)) andalso events(partition(R, P)) =/= [] end)}.

take_until(Reader, Enough) ->
    Read = take(Reader),
    case Enough(Read) of
        true -> ?READER:flush(), Read;
        false -> erlang:yield(), take_until(Read, Enough)
    end.

told() -> receive witness_data -> true after 60_000 -> false end.
not_told() -> receive witness_data -> false after 0 -> true end.

a_consumer_is_told_once(_) ->
    Reader = open(sink_options(#{batch => 5, flush => 60_000})),
    {P, R} = sink(Reader),
    Last = lists:foldl(fun(_, R1) ->
        [begin hear(P, N), ?assert(not_told()) end || N <- lists:seq(1, 4)],
        hear(P, 5),
        ?assert(told()),
        [hear(P, N) || N <- lists:seq(6, 30)],
        ?assert(not_told()),
        take(R1)
    end, R, [1, 2, 3]),
    #{batches := Batches} = partition(Last, P),
    ?assertEqual([30, 30, 30, 1], [length(B) || B <- Batches]),
    P ! stop,
    ended_well(read(Last, fun ?READER:ended/1)).

a_consumer_is_told_of_an_exit(_) ->
    Reader = open(sink_options(#{batch => 1000, flush => 60_000})),
    {P, R} = sink(Reader),
    P ! stop,
    Read = read(R, fun(R1) -> ?READER:status(R1, P) =:= complete end),
    ?assertMatch([{init, _, _, _, _}, {recv, _, _, stop, _}, {exit, _, normal, _}], events(partition(Read, P))),
    ended_well(Read).

a_consumer_is_told_after_a_while(_) ->
    Reader = open(sink_options(#{batch => 1000, flush => 1})),
    {P, R} = sink(Reader),
    [begin hear(P, N), ?assert(told()), take(R) end || N <- lists:seq(1, 20)],
    P ! stop,
    ended_well(read(R, fun ?READER:ended/1)).

a_consumer_is_told_of_the_end(_) ->
    Reader = #{session := Session} = open(sink_options(#{batch => 1000, flush => 60_000})),
    {P, R} = sink(Reader),
    %% Another process consumes it, so that what it is told is of this partition.
    {Consumer, Monitor} = consumer(?READER:handle(R, P)),
    hear(P, 1),
    ok = ?N:close(Session),
    receive {'DOWN', Monitor, process, Consumer, Read} -> ?assertMatch([{[{recv, _, _, _, _}], stopped}], Read) end,
    P ! stop.

%% A process that takes whenever it is told, and ends at the end with the batches that it got.
consumer(Handle) ->
    Me = self(),
    Started = {Consumer, _} = spawn_monitor(fun() -> consume(Handle, Me, []) end),
    receive {Consumer, consumes} -> Started end.

consume(Handle, Me, Batches) ->
    case ?N:take(Handle) of
        empty ->
            Me ! {self(), consumes},
            receive witness_data -> consume(Handle, Me, Batches) end;
        ok ->
            receive
                {witness_batch, Items, open} -> consume(Handle, Me, [{Items, open} | Batches]);
                {witness_batch, Items, Status} -> exit(lists:reverse(Batches, [{Items, Status}]))
            end
    end.

%% --- consumers -------------------------------------------------------------------

the_consumer_is_the_process_that_takes(_) ->
    Reader = #{session := Session} = open(sink_options(#{batch => 1})),
    {P, R} = sink(Reader),
    Handle = ?READER:handle(R, P),
    {First, Monitor} = consumer(Handle),
    empty = ?N:take(Handle),
    exit(First, kill),
    receive {'DOWN', Monitor, process, First, killed} -> ok end,
    hear(P, 1),
    Read = read(R, fun(R1) -> length(events(partition(R1, P))) =:= 2 end),
    {Second, Monitor2} = consumer(Handle),
    exit(Second, kill),
    receive {'DOWN', Monitor2, process, Second, killed} -> ok end,
    witness_await:until(fun() -> hear(P, 2), maps:get(bytes, ?N:counts(Session)) =:= 0 end),
    ?assertEqual(empty, ?N:take(Handle)),
    ended_well(?READER:unread(Read, P)),
    P ! stop.

a_dead_consumer_reads_no_more(_) ->
    Reader = #{session := Session} = open(sink_options(#{flush => 60_000})),
    {P, R} = sink(Reader),
    {Consumer, Monitor} = consumer(?READER:handle(R, P)),
    hear(P, lists:seq(1, 2500)),
    ?assertMatch(#{bytes := Bytes} when Bytes > 16_000, ?N:counts(Session)),
    exit(Consumer, kill),
    receive {'DOWN', Monitor, process, Consumer, killed} -> ok end,
    witness_await:until(fun() -> maps:get(bytes, ?N:counts(Session)) =:= 0 end),
    hear(P, lists:seq(1, 1000)),
    ?assertMatch(#{bytes := 0}, ?N:counts(Session)),
    ended_well(?READER:unread(R, P)),
    P ! stop.

a_handle_that_is_collected_reads_no_more(_) ->
    Session = #{session := S} = open(sink_options(#{flush => 60_000})),
    P = born(Session, fun sink/0),
    hear(P, lists:seq(1, 2500)),
    ?assertMatch(#{bytes := Bytes} when Bytes > 16_000, ?N:counts(S)),
    ok = ?N:take(?N:births(S)),
    receive {witness_batch, [{birth, _, _, _, P, _}], open} -> ok end,
    witness_await:until(fun() -> garbage_collect(), maps:get(bytes, ?N:counts(S)) =:= 0 end),
    hear(P, lists:seq(1, 1000)),
    ?assertMatch(#{bytes := 0}, ?N:counts(S)),
    P ! stop,
    ended_well(read(Session, fun ?READER:ended/1)).

what_is_unread_is_gone(_) ->
    Reader = #{session := Session} = open(sink_options(#{flush => 60_000})),
    {P, R} = sink(Reader),
    hear(P, lists:seq(1, 1000)),
    Handle = ?READER:handle(R, P),
    ok = ?N:unread(Handle),
    ?assertMatch(#{bytes := 0}, ?N:counts(Session)),
    hear(P, lists:seq(1, 1000)),
    ?assertMatch(#{bytes := 0}, ?N:counts(Session)),
    ?assertEqual(empty, ?N:take(Handle)),
    %% It is still waited for.
    P ! stop,
    ended_well(?READER:unread(read(R, fun ?READER:ended/1), P)).

only_what_its_consumer_needs_is_added(_) ->
    Reader = open(#{}),
    P = born(Reader, fun answering/0),
    ask(P),
    R = take(Reader),
    ok = ?N:narrow(?READER:handle(R, P), [recv, exit]),
    ask(P),
    P ! stop,
    ?assertMatch([{init, P, _, _, _}, {recv, P, _, {ask, _}, _}, {send, P, _, answered, _},
                  {recv, P, _, {ask, _}, _}, {recv, P, _, stop, _}, {exit, P, normal, _}],
                 events(partition(close(read(R, fun ?READER:ended/1)), P))).

%% --- gaps ------------------------------------------------------------------------

a_full_partition_has_a_gap(_) ->
    Reader = #{session := Session} = open(sink_options(#{partition_memory => 50_000})),
    P = born(Reader, fun sink/0),
    [hear(P, lists:duplicate(100, N)) || N <- lists:seq(1, 99)],
    ?assertMatch(#{bytes := 0}, ?N:counts(Session)),
    Read = take(Reader),
    ?assertMatch(#{status := {gap, overflow, 100}, batches := [[]]}, partition(Read, P)),
    [hear(P, N) || N <- lists:seq(1, 1000)],
    works(Reader),
    P ! stop,
    #{batches := [[]]} = partition(close(read(Read, fun ?READER:ended/1)), P).

%% No native call makes a hundred thousand terms. The rest stays in hand, and is charged.
a_large_batch_comes_in_pieces(_) ->
    Reader = #{session := Session} = open(sink_options(#{flush => 60_000})),
    {P, R} = sink(Reader),
    [hear(P, N) || N <- lists:seq(1, 25_000)],
    #{bytes := Before} = ?N:counts(Session),
    Handle = ?READER:handle(R, P),
    Piece = fun() ->
        ok = ?N:take(Handle),
        receive {witness_batch, Events, open} -> [N || {recv, _, _, {hear, N, _}, _} <- Events] end
    end,
    ?assertEqual(lists:seq(1, 10_000), Piece()),
    ?assertMatch(#{bytes := Before}, ?N:counts(Session)),
    ?assertEqual(lists:seq(10_001, 20_000), Piece()),
    hear(P, more),
    ?assertEqual(lists:seq(20_001, 25_000), Piece()),
    ?assertEqual([more], Piece()),
    empty = ?N:take(Handle),
    ?assertMatch(#{bytes := 0}, ?N:counts(Session)),
    ended_well(?READER:unread(R, P)),
    P ! stop.

%% What a partition holds in its consumer's hands counts too.
full_memory_is_a_gap_and_recovers(_) ->
    Reader = #{session := Session} = open(sink_options(#{memory => 100_000, flush => 60_000})),
    {P, R} = sink(Reader),
    hear(P, lists:duplicate(6000, x)),
    ?assertMatch(#{bytes := Bytes} when Bytes > 32_000, ?N:counts(Session)),
    Q = born(Reader, fun sink/0),
    [begin
         hear(Q, lists:duplicate(100, N)),
         ?assertMatch(#{bytes := Bytes} when Bytes =< 100_000, ?N:counts(Session))
     end || N <- lists:seq(1, 99)],
    Read = take(R),
    ?assertMatch(#{status := {gap, memory, 100}, batches := [[]]}, partition(Read, Q)),
    ?assertMatch(#{status := open, batches := [[{recv, P, _, _, _}], [{init, P, _, _, _}]]}, partition(Read, P)),
    works(Reader),
    [Q1 ! stop || Q1 <- [P, Q]],
    ended_well(read(Read, fun ?READER:ended/1)).

%% A process that starts later is watched from birth to exit.
works(Reader) ->
    P = born(Reader, fun sink/0),
    [hear(P, lists:duplicate(10, N)) || N <- lists:seq(1, 20)],
    P ! stop,
    Read = take_until(Reader, fun(R) -> lists:member(P, ?READER:children(R)) andalso ?READER:status(R, P) =/= open end),
    ?assertMatch(#{status := complete}, partition(Read, P)),
    ?assertEqual(23, length(events(partition(Read, P)))).

a_large_message_is_a_gap(_) ->
    Reader = #{session := Session} = open(sink_options(#{message_size => 10_000})),
    {P, R} = sink(Reader),
    hear(P, lists:duplicate(400, x)),
    hear(P, lists:duplicate(4000, x)),
    ?assertMatch(#{bytes := 0}, ?N:counts(Session)),
    hear(P, small),
    Read = take(R),
    ?assertMatch(#{status := {gap, message_size, 3}, batches := [[], [{init, P, _, _, _}]]}, partition(Read, P)),
    P ! stop,
    ended_well(read(Read, fun ?READER:ended/1)).

an_exit_that_was_not_reported_is_a_gap(_) ->
    Reader = #{session := Session} = open(#{}),
    ok = birth(Session, self(), {m, f, [1]}),
    ok = birth(Session, self(), {m, f, [2]}),
    ok = ?N:trace_procs(exit, run(Session), self(), normal, #{}),
    Read = close(Reader),
    [Lost, Whole] = ?READER:partitions(Read),
    ?assertMatch(#{raw := {m, f, [1]}, status := {gap, lost, 1}, batches := [[]]}, Lost),
    ?assertMatch(#{raw := {m, f, [2]}, status := complete, batches := [[{init, _, _, _, _}, {exit, _, normal, _}]]}, Whole).

%% --- memory ----------------------------------------------------------------------

%% The accounted size of buffers is their real size or more, and at most a few percent less.
sizes_are_not_too_small(_) ->
    try memory() of
        _ -> sizes()
    catch error:notsup -> {skip, "this VM runs without its own allocators, which count"}
    end.

sizes() ->
    Measured = [measured_again(3, Terms) || Terms <- terms()],
    ct:log("~p", [Measured]),
    ?assertEqual([], [Small || Small <- Measured, is_small(Small)]).

is_small({_, Said, Real}) -> Said < 0.95 * Real.

%% What else the VM allocates meanwhile is in the real size, too. A size that is too small is so each time.
measured_again(Times, {What, Count, Make}) ->
    Measured = measured(What, Count, Make),
    case Times > 1 andalso is_small(Measured) of
        true -> measured_again(Times - 1, {What, Count, Make});
        false -> Measured
    end.

measured(What, Count, Make) ->
    [] = ?READER:resources_left(maps:map(fun(_, _) -> 0 end, ?N:resources())),
    Session = ?N:open(#{names => [{'_', '_', '_', false}], flush => 60_000}),
    ok = birth(Session, self(), {m, f, []}),
    Before = memory(),
    add(run(Session), Count, Make),
    Real = memory() - Before,
    #{bytes := Said} = ?N:counts(Session),
    ok = ?N:close(Session),
    {What, Said, Real}.

add(_, 0, _) -> ok;
add(Run, Count, Make) ->
    ok = ?N:trace_receive('receive', Run, self(), Make(Count), #{match_spec_result => undefined}),
    Count rem 1000 =:= 0 andalso garbage_collect(),
    add(Run, Count - 1, Make).

memory() ->
    [garbage_collect(P) || P <- processes()],
    erlang:memory(total).

terms() ->
    Chars = fun(N) -> lists:seq(1, N) end,
    [Port | _] = erlang:ports(),
    [{"atoms", 300_000, fun(_) -> x end},
     {"small integers", 300_000, fun(N) -> N end},
     {"floats", 200_000, fun(N) -> N * 1.5 end},
     {"integers of 65 bits", 200_000, fun(N) -> (1 bsl 64) + N end},
     {"integers of 10,000 bits", 20_000, fun(N) -> (1 bsl 10_000) + N end},
     {"integers of a million bits", 200, fun(N) -> (1 bsl 1_000_000) + N end},
     {"pairs", 200_000, fun(N) -> {N, ok} end},
     {"pids, references, ports", 100_000, fun(_) -> {self(), make_ref(), Port} end},
     {"short lists", 100_000, fun(_) -> Chars(10) end},
     {"lists of 120", 20_000, fun(_) -> Chars(120) end},
     {"lists of 1000", 2_000, fun(_) -> Chars(1000) end},
     {"tuples of 230", 20_000, fun(N) -> erlang:make_tuple(230, N) end},
     {"tuples of 20 floats", 20_000, fun(N) -> list_to_tuple([X * 1.5 || X <- lists:seq(N, N + 20)]) end},
     {"deep tuples", 1_000, fun(_) -> lists:foldl(fun(N, T) -> {N, T} end, [], Chars(2_000)) end},
     {"small maps", 50_000, fun(N) -> #{a => N, b => {N}, c => []} end},
     {"maps of 33", 10_000, fun(_) -> maps:from_keys(Chars(33), x) end},
     {"maps of 1000", 500, fun(_) -> maps:from_keys(Chars(1_000), x) end},
     {"binaries of 60 bytes", 50_000, fun(N) -> <<N:480>> end},
     {"binaries of 70 bytes", 50_000, fun(N) -> <<N:560>> end},
     {"binaries of 100,000 bytes", 300, fun(N) -> <<N:800_000>> end},
     {"bitstrings of 100,001 bits", 1_000, fun(N) -> <<N:100_001>> end},
     {"funs", 50_000, fun(N) -> fun() -> N end end},
     {"funs with much around them", 1_000, fun(N) -> Around = lists:seq(N, N + 1_000), fun() -> Around end end},
     {"funs by name", 50_000, fun(_) -> fun lists:append/1 end}].

deep_terms_do_no_harm(_) ->
    Reader = #{session := Session} = open(sink_options(#{})),
    {P, R} = sink(Reader),
    Deep = fun(Wrap, N) -> lists:foldl(fun(_, T) -> Wrap(T) end, [], lists:seq(1, N)) end,
    Terms = [Deep(fun(T) -> {T} end, 1_000_000), Deep(fun(T) -> [T] end, 1_000_000), Deep(fun(T) -> [T | x] end, 1_000_000),
             Deep(fun(T) -> {1, T, x} end, 100_000), Deep(fun(T) -> #{k => T} end, 100_000), Deep(fun(T) -> #{T => v} end, 1_000),
             Deep(fun(T) -> fun() -> T end end, 10_000), [1, {2} | improper], {[], {}, #{}, <<>>, <<1:1>>, ""}],
    [hear(P, T) || T <- Terms],
    P ! stop,
    Read = read(R, fun ?READER:ended/1),
    ?assertEqual(#{bytes => 0}, maps:with([bytes], ?N:counts(Session))),
    Heard = [T || {recv, _, _, {hear, T, _}, _} <- events(partition(close(Read), P))],
    ?assertEqual(length(Terms), length(Heard)),
    ?assert(Terms =:= Heard).

%% A term that shares its parts is small in a process. Copied into a message it would exceed any memory. A process may end with it.
shared_terms_do_no_harm(_) ->
    Reader = open(#{}),
    P = born(Reader, fun() -> exit(lists:foldl(fun(_, T) -> {T, T} end, [], lists:seq(1, 100))) end),
    Read = close(read(Reader, fun ?READER:ended/1)),
    ?assertMatch(#{status := {gap, _, _}}, partition(Read, P)).

%% --- sessions --------------------------------------------------------------------

%% Each process that was born has an end, and none is born without a partition that was announced.
close_while_processes_are_born(_) ->
    lists:foreach(fun(N) ->
        Reader = open(#{names => [{'_', '_', '_', N rem 3 =:= 0}]}),
        Mad = [born(Reader, fun spawning/0) || _ <- [1, 2, 3]],
        Read = read(Reader, fun(R) -> length(lists:append([events(P) || P <- ?READER:partitions(R)])) > 100 * N end),
        Closed = close(Read),
        [exit(P, kill) || P <- Mad],
        lists:foreach(fun(#{child := C, status := Status} = Partition) ->
            ?assert(lists:member(Status, [complete, stopped]), {Status, length(events(Partition))}),
            case events(Partition) of
                [{init, C, _, _, _} | _] -> ok;
                %% Born in the moment of the end.
                [] -> ?assertEqual(stopped, Status)
            end
        end, ?READER:partitions(Closed))
    end, lists:seq(1, 10)).

%% One child after the other: the reader could not follow more.
spawning() ->
    {_, Ref} = spawn_monitor(fun() -> self() ! x end),
    receive {'DOWN', Ref, _, _, _} -> spawning() end.

many_sessions_at_once(_) ->
    Work = fun() ->
        Reader = open(#{}),
        Ps = [born(Reader, fun() -> [begin self() ! N, receive N -> ok end end || N <- lists:seq(1, 100)] end)
              || _ <- lists:seq(1, 10)],
        %% The first may have ended before the second was born: that all are gone is told then, too.
        Complete = fun(R) -> length([x || #{status := complete} <- ?READER:partitions(R)]) =:= length(Ps) end,
        Read = close(read(Reader, Complete)),
        ?assertEqual(lists:sort(Ps), lists:sort(?READER:children(Read))),
        [?assertEqual(202, length(events(P))) || P <- ?READER:partitions(Read)]
    end,
    Sessions = [spawn_monitor(fun() -> [Work() || _ <- lists:seq(1, 5)] end) || _ <- lists:seq(1, 20)],
    [receive {'DOWN', Ref, process, P, Why} -> ?assertEqual(normal, Why) end || {P, Ref} <- Sessions],
    %% One process in several sessions.
    Readers = [open(#{}) || _ <- lists:seq(1, 5)],
    P = spawn(fun() -> receive go -> spawn(?MODULE, a, [1]) end end),
    [ok = ?N:on(?READER:session(R), P) || R <- Readers],
    P ! go,
    Complete = fun(R) -> [x || #{status := complete} <- ?READER:partitions(R)] =/= [] end,
    [?assertMatch([[{init, _, P, {?MODULE, a, [1]}, _}, {exit, _, normal, _}]],
                  [events(Q) || Q <- ?READER:partitions(close(take_until(R, Complete)))]) || R <- Readers].

%% The session ends however its owner dies, while processes are born.
a_session_ends_with_its_owner(_) ->
    lists:foreach(fun(How) ->
        P = spawn(fun Spawn() -> spawn(fun() -> self() ! x end), receive stop -> ok after 0 -> Spawn() end end),
        Me = self(),
        {Owner, Ref} = spawn_monitor(fun() ->
            Session = ?N:open(#{names => [{'_', '_', '_', true}]}),
            ok = ?N:on(Session, P),
            Me ! on,
            receive crash -> exit(crash); stop -> ?N:counts(Session) end
        end),
        receive on -> ok end,
        ?assertMatch([_], trace:session_info(P)),
        case How of kill -> exit(Owner, kill); _ -> Owner ! How end,
        receive {'DOWN', Ref, process, _, _} -> ok end,
        witness_await:until(fun() -> trace:session_info(P) =:= [] end),
        P ! stop
    end, [kill, crash, stop]).

%% --- code ------------------------------------------------------------------------

%% New code takes over, and the purge of the old code does no harm.
nothing_happens_to_a_run_when_the_code_is_replaced(_) ->
    Reader = open(#{}),
    P = born(Reader, fun() -> numbers(1) end),
    R = read(Reader, fun(R1) -> ?READER:children(R1) =/= [] end),
    {?N, Beam, File} = code:get_object_code(?N),
    [begin
         ?assert(code:soft_purge(?N)),
         {module, ?N} = code:load_binary(?N, File, Beam)
     end || _ <- lists:seq(1, 5)],
    ?assertEqual(false, code:purge(?N)),
    P ! {stop, self()},
    receive {numbers, Last} ->
        Read = close(read(R, fun ?READER:ended/1)),
        ?assertMatch(#{status := complete}, partition(Read, P)),
        ?assertEqual(lists:seq(1, Last),
                     [N || #{child := Q} = Partition <- ?READER:partitions(Read), Q =:= P, {send, _, To, N, _} <- events(Partition),
                      To =:= P])
    end.

%% Sends itself numbers until it is stopped.
numbers(N) ->
    receive
        {stop, From} -> From ! {numbers, N - 1};
        _ -> numbers(N)
    after 0 ->
        self() ! N,
        numbers(N + 1)
    end.

%% No process is traced any more. The test has a node of its own, since a module that is loaded again does not know older sessions.
without_the_code_nothing_crashes(_) ->
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, args => ["-pa" | code:get_path()]}),
    ?assertEqual({[], badarg, 15}, peer:call(Peer, ?MODULE, delete_code, [], 60_000)),
    peer:stop(Peer).

delete_code() ->
    process_flag(trap_exit, true),
    Reader = open(#{names => [{'_', '_', '_', true}]}),
    P = born(Reader, fun answering/0),
    Read = read(Reader, fun(R) -> ?READER:children(R) =/= [] end),
    ask(P),
    true = code:delete(?N),
    _ = code:purge(?N),
    ask(P),
    Info = trace:session_info(P),
    {module, ?N} = code:load_file(?N),
    Taken = try take(Read) catch error:Why -> Why end,
    P ! stop,
    %% And the next session is whole.
    Next = open(#{names => [{'_', '_', '_', true}]}),
    Q = ?READER:spawned(Next, erlang, spawn, [?MODULE, tree, [3]], fun(C) -> C end),
    #{status := complete} = Partition = partition(close(read(Next, fun ?READER:ended/1)), Q),
    {Info, Taken, length([x || {exit, _, _, _} <- events(Partition)])}.

%% The VM stops as it was told and prints what it prints without tracing, whatever its processes do at that moment.
a_node_stops_while_it_is_traced(_) ->
    Quiet = node_that_stops("untraced"),
    ?assertMatch({0, _}, Quiet),
    [?assertEqual({How, Quiet}, {How, node_that_stops(How)}) || How <- ["stop", "stop", "halt", "halt"]].

node_that_stops(How) ->
    Args = ["-noinput", "-kernel", "logger_level", "none"] ++ lists:append([["-pa", Dir] || Dir <- code:get_path()]) ++
        ["-s", atom_to_list(?MODULE), "stop_node", How],
    Port = open_port({spawn_executable, filename:join(code:root_dir(), "bin/erl")},
                     [{args, Args}, exit_status, binary, stderr_to_stdout]),
    node_output(Port, <<>>).

node_output(Port, Output) ->
    receive
        {Port, {data, More}} -> node_output(Port, <<Output/binary, More/binary>>);
        {Port, {exit_status, Status}} -> {Status, re:replace(Output, "[0-9]", "", [global, {return, binary}])}
    end.

stop_node([untraced]) ->
    halt(0);
stop_node([How]) ->
    spawn(fun() ->
        Reader = open(#{}),
        [born(Reader, fun spawning/0) || _ <- [1, 2, 3]],
        Read = read(Reader, fun(R) -> length(?READER:partitions(R)) > 300 end),
        case How of stop -> init:stop(); halt -> spawn(fun() -> halt(0) end) end,
        read(Read, fun(_) -> false end)
    end).

%% --- long ------------------------------------------------------------------------

%% Each process has its own partition, which is read to its end, declared unread, or forgotten.
short_lived_processes_leave_nothing(_) ->
    Count = number("WITNESS_NATIVE_PROCESSES", 200_000),
    Session = ?N:open(#{names => [{?MODULE, b, 1, false}]}),
    Launcher = spawn_link(fun() ->
        receive go -> spawn(fun() -> offspring(Count) end), receive stop -> ok end end
    end),
    ok = ?N:launcher(Session, Launcher),
    Launcher ! go,
    #{births := Count, complete := Complete} = born_and_read(Session, #{births => 0, complete => 0, open => []}),
    ?assertEqual((Count + 2) div 3, Complete),
    ?assertMatch(#{processes := Processes, held := 0} when Processes =:= Count + 1, ?N:counts(Session)),
    witness_await:until(fun() -> garbage_collect(), maps:get(bytes, ?N:counts(Session)) =:= 0 end),
    ok = ?N:close(Session),
    Launcher ! stop,
    ?READER:flush().

%% Waits for every tenth child: the reader could not follow all at the same time.
offspring(0) -> ok;
offspring(N) ->
    {_, Ref} = spawn_monitor(?MODULE, b, [N]),
    N rem 10 =:= 0 andalso receive {'DOWN', Ref, _, _, _} -> drained() end,
    offspring(N - 1).

drained() -> receive {'DOWN', _, _, _, _} -> drained() after 0 -> ok end.

born_and_read(Session, State) ->
    case ?N:take(?N:births(Session)) of
        empty ->
            receive witness_data -> born_and_read(Session, read_open(State)) end;
        ok ->
            receive {witness_batch, Births, open} ->
                Now = read_open(lists:foldl(fun a_birth/2, State, Births)),
                case lists:member(ended, Births) of
                    true -> Now;
                    false -> born_and_read(Session, Now)
                end
            end
    end.

a_birth(ended, State) -> State;
a_birth({birth, _, _, true, _, {erlang, apply, _}}, State) -> State;
a_birth({birth, Handle, false, true, Child, {?MODULE, b, [N]}}, State = #{births := Births, open := Open}) ->
    Born = State#{births := Births + 1},
    case N rem 3 of
        0 -> ok = ?N:unread(Handle), Born;
        1 -> Born#{open := [{Handle, Child, []} | Open]};
        2 -> Born
    end.

read_open(State = #{open := Open}) ->
    lists:foldl(fun({Handle, Child, Events}, S = #{open := Left, complete := Complete}) ->
        case ?N:take(Handle) of
            empty -> S#{open := [{Handle, Child, Events} | Left]};
            ok ->
                receive
                    {witness_batch, Items, open} -> S#{open := [{Handle, Child, Events ++ Items} | Left]};
                    {witness_batch, Items, complete} ->
                        [{init, Child, _, {?MODULE, b, [_]}, _}, {exit, Child, normal, _}] = Events ++ Items,
                        S#{complete := Complete + 1}
                end
        end
    end, State#{open := []}, Open).

%% Sessions come and go, however they end; processes are born, send, exit and are switched on and off by others; consumers
%% come late, die and say that they do not read. What a consumer gets of a process is from its beginning on, in its order.
races(_) ->
    register(?MODULE, self()),
    Until = erlang:monotonic_time(second) + number("WITNESS_NATIVE_SECONDS", 3),
    Pool = [spawn_link(?MODULE, busy, [1, 0]) || _ <- lists:seq(1, 8)],
    Actors = [spawn_monitor(?MODULE, race, [Until, Pool, rand:uniform(1 bsl 30)]) || _ <- lists:seq(1, 6)],
    [receive {'DOWN', Ref, process, P, Why} -> ?assertEqual(over, Why) end || {P, Ref} <- Actors],
    [begin unlink(P), exit(P, kill) end || P <- Pool],
    receive {failed, Failure} -> ct:fail(Failure) after 0 -> ok end.

race(Until, Pool, Seed) ->
    rand:seed(exsss, Seed),
    race(Until, Pool).

race(Until, Pool) ->
    case erlang:monotonic_time(second) >= Until of
        true -> exit(over);
        false ->
            {P, Ref} = spawn_monitor(?MODULE, racing_session, [Pool, rand:uniform(1 bsl 30)]),
            rand:uniform(5) =:= 1 andalso begin nap(20), exit(P, kill) end,
            receive {'DOWN', Ref, process, P, Why} -> true = lists:member(Why, [normal, killed]) end,
            race(Until, Pool)
    end.

nap(Most) -> receive after rand:uniform(Most) - 1 -> ok end.

racing_session(Pool, Seed) ->
    rand:seed(exsss, Seed),
    Any = fun(List) -> lists:nth(rand:uniform(length(List)), List) end,
    Session = ?N:open(#{names => [{'_', '_', '_', Any([true, false])}], memory => Any([1 bsl 30, 200_000]),
                        partition_memory => Any([1 bsl 29, 20_000]), batch => Any([1, 8, 64]), flush => Any([1, 5, 50])}),
    Switches = spawn_link(?MODULE, switch, [Session, Pool, rand:uniform(1 bsl 30)]),
    births(Session, erlang:monotonic_time(millisecond) + rand:uniform(60), Any),
    unlink(Switches),
    exit(Switches, kill),
    rand:uniform(3) =:= 1 orelse ?N:close(Session).

%% Switches processes on and off that other actors switch too.
switch(Session, Pool, Seed) ->
    rand:seed(exsss, Seed),
    switch(Session, Pool).

switch(Session, Pool) ->
    P = lists:nth(rand:uniform(length(Pool)), Pool),
    _ = case rand:uniform(2) of
        1 -> ?N:on(Session, P);
        2 -> ?N:off(Session, P)
    end,
    erlang:yield(),
    switch(Session, Pool).

births(Session, Until, Any) ->
    case ?N:take(?N:births(Session)) of
        empty ->
            receive witness_data -> births(Session, Until, Any)
            after max(0, Until - erlang:monotonic_time(millisecond)) -> ok
            end;
        ok ->
            receive
                {witness_batch, Births, open} ->
                    [racing_consumer(Any([takes, takes, unread, dies, late, forgets]), Handle)
                     || {birth, Handle, _, _, _, _} <- Births],
                    births(Session, Until, Any);
                %% It could not follow, and there is little memory.
                {witness_batch, [], {gap, Reason, Missing}} -> true = lists:member(Reason, [overflow, memory]) andalso Missing > 0
            end
    end.

racing_consumer(unread, Handle) -> ?N:unread(Handle);
racing_consumer(forgets, _) -> ok;
racing_consumer(dies, Handle) -> exit(spawn(fun() -> takes(Handle, #{}) end), kill);
racing_consumer(late, Handle) -> spawn_link(fun() -> nap(20), sound(Handle) end);
racing_consumer(takes, Handle) -> spawn_link(fun() -> sound(Handle) end).

sound(Handle) ->
    try takes(Handle, #{})
    catch Class:Reason:Stack -> ?MODULE ! {failed, {Class, Reason, Stack}}
    end.

%% If the session is gone, the consumer waits in vain, but only for 500 ms.
takes(Handle, Next) ->
    case ?N:take(Handle) of
        empty -> receive witness_data -> takes(Handle, Next) after 500 -> ok end;
        ok ->
            receive
                {witness_batch, Items, open} -> takes(Handle, in_order(Items, Next));
                {witness_batch, Items, complete} ->
                    Ended = in_order(Items, Next),
                    [] = [P || {P, N} <- maps:to_list(Ended), N =/= exited];
                {witness_batch, Items, stopped} -> in_order(Items, Next);
                {witness_batch, [], {gap, Reason, Missing}} ->
                    true = lists:member(Reason, [overflow, memory]) andalso Missing > 0
            end
    end.

%% What a process sends to itself is numbered.
in_order(Items, Next) ->
    lists:foldl(fun
        ({init, P, _, _, _}, Known) when not is_map_key(P, Known) -> Known#{P => 1};
        ({send, P, P, {number, N}, _}, Known) when map_get(P, Known) =:= N -> Known#{P := N + 1};
        ({send, P, _, hello, _}, Known) when is_integer(map_get(P, Known)) -> Known;
        ({recv, P, _, _, _}, Known) when is_integer(map_get(P, Known)) -> Known;
        ({fork, P, C, _, _}, Known) when is_integer(map_get(P, Known)), not is_map_key(C, Known) -> Known;
        ({exit, P, _, _}, Known) when is_integer(map_get(P, Known)) -> Known#{P := exited}
    end, Next, Items).

%% A process that has children which do the same for some generations. Some are killed by their parent.
busy(Generation, Work) ->
    [self() ! {number, N} || N <- lists:seq(1, Work)],
    Most = case Generation of 1 -> infinity; 2 -> 3; 3 -> 2; _ -> 0 end,
    offspring(Generation, Most).

offspring(_, 0) -> ok;
offspring(Generation, Most) ->
    C = spawn(?MODULE, busy, [Generation + 1, erlang:unique_integer([positive]) rem 50]),
    C ! hello,
    erlang:unique_integer([positive]) rem 4 =:= 0 andalso exit(C, kill),
    Generation =:= 1 andalso receive never -> ok after 1 -> ok end,
    offspring(Generation, case Most of infinity -> infinity; _ -> Most - 1 end).

