-module(witness_trace_evm_SUITE).
-moduledoc "The source of events against the real VM.".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(CASES, witness_trace_function_cases).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [birth_to_exit, sends, receives, system_messages, a_gen_server_replies_to_an_alias,
     an_expired_after_is_no_event, a_message_timeout_of_a_process_is, other_trace_messages_are_no_events,
     signatures_are_what_the_author_wrote, children_inherit_the_session, a_process_that_is_off_has_no_events,
     every_event_has_a_stamp_and_a_time, without_a_handover_nothing_has, a_handover_switches_stamps_on_and_off,
     sharing_leaves_no_gap, sharing_a_process_that_forks_leaves_no_gap, a_child_has_the_sessions_of_its_parent_in_reverse,
     now_is_between_events, what_has_ended_is_dead, a_closed_session_leaves_nothing,
     a_process_is_not_shared_from_a_closed_session, a_session_ends_with_its_owner,
     kinds_that_no_monitor_reads_are_not_traced, only_messages_that_a_monitor_reads_are_traced,
     calls_enclose_what_they_do, kinds_that_no_monitor_reads_are_left_out, calls_of_every_form_are_delivered,
     calls_of_otp_are_delivered, tail_calls_return_in_reverse, a_call_that_raises_has_no_return,
     a_call_of_a_process_that_is_killed_has_no_return,
     calls_under_load_are_exact, a_process_that_hides_itself_has_no_further_calls, large_calls_are_gaps,
     calls_have_a_stamp_and_a_time,
     another_session_is_not_disturbed, legacy_tracing_is_not_disturbed, what_is_no_trace_message_is_ignored,
     guarantees].

%% --- decoding --------------------------------------------------------------------

%% The cases that every source has in common.
birth_to_exit(_) -> witness_trace_cases:birth_to_exit(fun events/2).
sends(_) -> witness_trace_cases:sends(fun events/2).
receives(_) -> witness_trace_cases:receives(fun events/2).
system_messages(_) -> witness_trace_cases:system_messages(fun events/2).
a_gen_server_replies_to_an_alias(_) -> witness_trace_cases:a_gen_server_replies_to_an_alias(fun events/2).
an_expired_after_is_no_event(_) -> witness_trace_cases:an_expired_after_is_no_event(fun events/2).
a_message_timeout_of_a_process_is(_) -> witness_trace_cases:a_message_timeout_of_a_process_is(fun events/2).
signatures_are_what_the_author_wrote(_) -> witness_trace_cases:signatures_are_what_the_author_wrote(fun events/2).

other_trace_messages_are_no_events(_) ->
    {P, Stamped} = gathered(always, fun() ->
        C = spawn(fun() -> receive stop -> ok end end),
        link(C), unlink(C), register(witness_trace_evm_other, self()), unregister(witness_trace_evm_other), C ! stop
    end, fun(_) -> ok end),
    Others = [U || {U, {other, Q}} <- Stamped, Q =:= P],
    ?assertEqual(4, length(Others)),
    ?assert(lists:all(fun is_integer/1, Others)).

nothing(_) -> ok.

what_is_no_trace_message_is_ignored(_) ->
    [?assertEqual(ignore, witness_trace_evm:decode(M)) || M <- [x, {}, {a, b}, {trace}, {trace, self()}, [], 1.0, {tick, 3}]].

%% --- on and off ------------------------------------------------------------------

children_inherit_the_session(_) ->
    T = tracer(always),
    P = waiting(fun() -> Q = spawn(fun() -> receive stop -> ok end end), receive stop -> Q ! stop end end),
    ok = witness_trace_evm:on(session(T), P),
    P ! go,
    [{fork, P, C, _, _}] = [E || {_, {fork, Q, _, _, _} = E} <- until(T, kind_of(fork, P)), Q =:= P],
    ?assertEqual(true, witness_trace_evm:traced(session(T), C)),
    ?assertEqual(true, witness_trace_evm:traced(session(T), P)),
    P ! stop,
    _ = until(T, kind_of(exit, C)).

a_process_that_is_off_has_no_events(_) ->
    T = tracer(always),
    P = waiting(fun Loop() -> receive {ask, From} -> From ! answered, Loop(); stop -> ok end end),
    ok = witness_trace_evm:on(session(T), P),
    P ! go,
    ask(P),
    ok = witness_trace_evm:off(session(T), P),
    ?assertEqual(false, witness_trace_evm:traced(session(T), P)),
    ?assertEqual([], trace:session_info(P)),
    ask(P),
    ok = witness_trace_evm:on(session(T), P),
    P ! stop,
    Events = [E || {_, E} <- until(T, kind_of(exit, P))],
    ?assertMatch([{recv, P, _, go, _}, {recv, P, _, {ask, _}, _}, {send, P, _, answered, _}, {recv, P, _, stop, _},
                  {exit, P, _, _}],
                 Events).

ask(P) -> P ! {ask, self()}, receive answered -> ok end.

what_has_ended_is_dead(_) ->
    T = tracer(always),
    T2 = tracer(always),
    Gone = gone(),
    ?assertEqual(dead, witness_trace_evm:on(session(T), Gone)),
    ?assertEqual(dead, witness_trace_evm:share(session(T), session(T2), Gone)),
    ?assertEqual(dead, witness_trace_evm:traced(session(T), Gone)),
    ?assertEqual(ok, witness_trace_evm:off(session(T), Gone)),
    ?assertEqual(ok, witness_trace_evm:settle(session(T), Gone)).

%% Its events between the end of that session and the cut would be in neither of the two.
a_process_is_not_shared_from_a_closed_session(_) ->
    P = waiting(fun() -> ok end),
    [begin
         [From, To] = [tracer(Stamps), tracer(Stamps)],
         ok = witness_trace_evm:on(session(From), P),
         ok = witness_trace_evm:close(session(From)),
         ?assertEqual(dead, witness_trace_evm:share(session(From), session(To), P)),
         ?assertEqual(false, witness_trace_evm:traced(session(To), P))
     end || Stamps <- [always, handover]],
    P ! go.

a_closed_session_leaves_nothing(_) ->
    T = tracer(always),
    P = waiting(fun() -> ok end),
    ok = witness_trace_evm:on(session(T), P),
    ?assertMatch([_], trace:session_info(P)),
    ok = witness_trace_evm:close(session(T)),
    ?assertEqual([], trace:session_info(P)),
    ?assertEqual(ok, witness_trace_evm:close(session(T))),
    P ! go.

%% However the owner dies, and to whichever process the handle was sent.
a_session_ends_with_its_owner(_) ->
    lists:foreach(fun(How) ->
        P = waiting(fun() -> ok end),
        Me = self(),
        {Owner, Ref} = spawn_monitor(fun() ->
            Session = witness_trace_evm:open(self(), #{stamps => handover}),
            ok = witness_trace_evm:on(Session, P),
            Me ! on,
            receive crash -> error(crash); stop -> witness_trace_evm:traced(Session, P) end
        end),
        receive on -> ok end,
        ?assertMatch([_], trace:session_info(P)),
        case How of kill -> exit(Owner, kill); _ -> Owner ! How end,
        receive {'DOWN', Ref, process, _, _} -> ok end,
        %% The VM gives no sign when it has ended a session.
        witness_await:until(fun() -> trace:session_info(P) =:= [] end),
        P ! go
    end, [kill, crash, stop]).

%% --- stamps ----------------------------------------------------------------------

every_event_has_a_stamp_and_a_time(_) ->
    Before = erlang:monotonic_time(nanosecond),
    {P, Stamped} = gathered(always, fun() -> [begin self() ! N, receive N -> ok end end || N <- lists:seq(1, 100)] end,
                            fun(_) -> ok end),
    After = erlang:monotonic_time(nanosecond),
    Us = [U || {U, E} <- Stamped, element(2, E) =:= P],
    Ts = [witness_event:ts(E) || {_, E} <- Stamped],
    ?assertEqual(lists:usort(Us), Us),
    ?assert(length(Us) > 200),
    ?assertEqual(lists:sort(Ts), Ts),
    ?assert(Before =< hd(Ts)),
    ?assert(lists:last(Ts) =< After).

without_a_handover_nothing_has(_) ->
    {_, Stamped} = gathered(handover, fun() -> self() ! x end, fun(_) -> ok end),
    ?assertEqual([none], lists:usort([U || {U, _} <- Stamped])),
    ?assertEqual([undefined], lists:usort([witness_event:ts(E) || {_, E} <- Stamped])).

a_handover_switches_stamps_on_and_off(_) ->
    From = tracer(handover),
    To = tracer(handover),
    P = waiting(fun Loop() -> receive {ask, Q} -> Q ! answered, Loop(); stop -> ok end end),
    ok = witness_trace_evm:on(session(From), P),
    P ! go,
    ask(P),
    {cut, Cut} = witness_trace_evm:share(session(From), session(To), P),
    ask(P),
    ok = witness_trace_evm:settle(session(To), P),
    ask(P),
    ok = witness_trace_evm:off(session(From), P),
    P ! stop,
    Direct = until(To, kind_of(exit, P)),
    Routed = all_of(From),
    {Early, Late} = lists:splitwith(fun({U, _}) -> U =:= none end, Routed),
    ?assertEqual(3, length(Early)),
    ?assertEqual(4, length(Late)),
    ?assert(lists:all(fun({U, _}) -> is_integer(U) andalso U > Cut end, Late)),
    {Stamped, Settled} = lists:split(2, Direct),
    ?assert(lists:all(fun({U, _}) -> is_integer(U) andalso U > Cut end, Stamped)),
    ?assertEqual([none, none, none, none], [U || {U, _} <- Settled]).

%% A busy process is shared again and again. The old session's events up to the cut, and the new session's events that are
%% not older than the cut, are together each event once, in order.
sharing_leaves_no_gap(_) ->
    lists:foreach(fun(_) ->
        Sink = spawn_link(fun Drop() -> receive _ -> Drop() end end),
        {_, Routed, Direct} = shared(fun Count(N) ->
            Sink ! N,
            receive stop -> Sink ! last after 0 -> Count(N + 1) end
        end),
        Sent = [M || {_, {send, _, _, M, _}} <- Routed ++ Direct],
        ?assertEqual(lists:seq(1, length(Sent) - 1) ++ [last], Sent),
        unlink(Sink),
        exit(Sink, kill)
    end, lists:seq(1, 200)).

sharing_a_process_that_forks_leaves_no_gap(_) ->
    lists:foreach(fun(_) ->
        {_, Routed, Direct} = shared(fun Count(N) ->
            spawn(?MODULE, nothing, [N]),
            receive stop -> spawn(?MODULE, nothing, [last]) after 0 -> Count(N + 1) end
        end),
        Forked = [N || {_, {fork, _, _, {_, nothing, [N]}, _}} <- Routed ++ Direct],
        ?assertEqual(lists:seq(1, length(Forked) - 1) ++ [last], Forked)
    end, lists:seq(1, 50)).

%% The events of a process that is shared while it works, as its owner would take them.
shared(Work) ->
    From = tracer(handover),
    To = tracer(handover),
    P = waiting(fun() -> Work(1) end),
    ok = witness_trace_evm:on(session(From), P),
    P ! go,
    _ = until(From, fun(All) -> length(All) > 20 end),
    {cut, Cut} = witness_trace_evm:share(session(From), session(To), P),
    _ = until(To, fun(All) -> length(All) > 20 end),
    P ! stop,
    Is = fun({_, E}) -> element(2, E) =:= P end,
    Routed = [S || S = {U, _} <- lists:filter(Is, until(From, kind_of(exit, P))), U =:= none orelse U =< Cut],
    %% What was performed between the switch and the cut comes twice.
    Last = lists:last([none | [U || {U, _} <- Routed, U =/= none]]),
    Direct = [S || S = {U, _} <- lists:filter(Is, until(To, kind_of(exit, P))), Last =:= none orelse U > Last],
    stop(From),
    stop(To),
    {P, Routed, Direct}.

%% Each session has a stamp of its own for an event, in this order. `m:witness_outline_core` relies on the first part: the
%% session that is switched on last comes first.
a_child_has_the_sessions_of_its_parent_in_reverse(_) ->
    [A, B, C] = Ts = [tracer(always) || _ <- [a, b, c]],
    P = waiting(fun() -> spawn(?MODULE, nothing, [x]) end),
    [ok = witness_trace_evm:on(session(T), P) || T <- Ts],
    P ! go,
    Seen = [{T, until(T, fun(All) -> length([x || {_, {exit, _, _, _}} <- All]) =:= 2 end)} || T <- Ts],
    Order = fun(Is) -> [T || {_, T} <- lists:sort([{U, T} || {T, Events} <- Seen, {U, E} <- Events, Is(E)])] end,
    ?assertEqual([C, B, A], Order(fun(E) -> element(1, E) =:= fork end)),
    ?assertEqual([A, B, C], Order(fun(E) -> element(1, E) =:= init end)).

now_is_between_events(_) ->
    T = tracer(always),
    P = waiting(fun Loop() -> receive {ask, From} -> From ! answered, Loop(); stop -> ok end end),
    ok = witness_trace_evm:on(session(T), P),
    P ! go,
    ask(P),
    Now = witness_trace_evm:now(),
    P ! stop,
    Us = [U || {U, _} <- until(T, kind_of(exit, P))],
    ?assertEqual(3, length([U || U <- Us, U < Now])),
    ?assertEqual(2, length([U || U <- Us, U > Now])).

%% --- filter ----------------------------------------------------------------------

kinds_that_no_monitor_reads_are_not_traced(_) ->
    Kinds = fun(Alphabet) -> lists:usort([element(1, E) || {_, E} <- filtered([Alphabet])]) end,
    ?assertEqual([exit, fork, init, recv, send], Kinds(all)),
    ?assertEqual([exit, fork, init], Kinds([fork])),
    ?assertEqual([exit, fork, init, send], Kinds([send, exit])),
    ?assertEqual([exit, fork, init, recv], Kinds([recv])).

%% Children and processes that were switched on later are filtered too; the sender of a message is not lost.
only_messages_that_a_monitor_reads_are_traced(_) ->
    Events = filtered([[{send, [{['_', {b, '_'}], [], []}]}, {recv, [{['_', {a, '_'}], [], []}]}],
                       [{recv, [{['$1', {c, '$2'}], [{is_port, '$1'}, {'>', '$2', 0}], []}]}]]),
    ?assertEqual([{b, 1}, {b, 2}], lists:sort([M || {_, {send, _, _, M, _}} <- Events])),
    ?assertMatch([{{a, 1}, P}, {{a, 2}, C}, {{c, 1}, P}, {{c, 2}, C}] when P =/= C andalso P =/= undefined,
                 lists:sort([{M, From} || {_, {recv, _, From, M, _}} <- Events])).

%% A process and its child receive and send `a', `b' and `c'.
filtered(Alphabets) ->
    {Collector, Session} = T = tracer(#{stamps => handover, filter => witness_trace_filter:union(Alphabets)}),
    P = waiting(fun() ->
        Work = fun(N) -> [begin self() ! {X, N}, receive {X, N} -> ok end end || X <- [a, b, c]] end,
        {C, Ref} = spawn_monitor(fun() -> receive go -> Work(2) end end),
        C ! go,
        receive {'DOWN', Ref, _, _, _} -> Work(1) end
    end),
    ok = witness_trace_evm:on(Session, P),
    P ! go,
    Events = until(T, fun(All) -> ended(P, All) end),
    stop({Collector, Session}),
    Events.

%% --- calls and returns -------------------------------------------------------------

calls_enclose_what_they_do(_) -> ?CASES:calls_enclose_what_they_do(fun function_events/3).
kinds_that_no_monitor_reads_are_left_out(_) -> ?CASES:kinds_that_no_monitor_reads_are_left_out(fun function_events/3).
calls_of_every_form_are_delivered(_) -> ?CASES:calls_of_every_form_are_delivered(fun function_events/3).
calls_of_otp_are_delivered(_) -> ?CASES:calls_of_otp_are_delivered(fun function_events/3).
tail_calls_return_in_reverse(_) -> ?CASES:tail_calls_return_in_reverse(fun function_events/3).
a_call_that_raises_has_no_return(_) -> ?CASES:a_call_that_raises_has_no_return(fun function_events/3).
a_call_of_a_process_that_is_killed_has_no_return(_) ->
    ?CASES:a_call_of_a_process_that_is_killed_has_no_return(fun function_events/3).

calls_under_load_are_exact(_) ->
    [?CASES:with_schedulers(Schedulers, fun() -> ?CASES:load(fun function_events/3, 5, 150) end) || Schedulers <- [1, 2]].

%% As for messages, the gap is where the process hides itself.
a_process_that_hides_itself_has_no_further_calls(_) ->
    Inner = {?CASES, inner, 1},
    Hides = fun() ->
        ?CASES:inner(1),
        process_flag(sensitive, true),
        ?CASES:inner(2),
        process_flag(sensitive, false),
        ?CASES:inner(3)
    end,
    {P, Events} = function_events(#{Inner => [call, return]}, Hides, fun(_) -> ok end),
    ?assertMatch([{recv, P, _, go, _}, {call, P, {_, inner, [1]}, _}, {return, P, Inner, {inner, 1}, _},
                  {gap, P, sensitive, unknown, _}, {call, P, {_, inner, [3]}, _}, {return, P, Inner, {inner, 3}, _},
                  {exit, P, normal, _}],
                 Events).

large_calls_are_gaps(_) ->
    Limited = fun(E) -> element(2, witness_trace:limit_size({none, E}, 10_000)) end,
    [Small, Large] = [lists:seq(1, N) || N <- [10, 10_000]],
    [?assertEqual(E, Limited(E)) || E <- [{call, p, {m, f, [Small, 1]}, 7}, {return, p, {m, f, 2}, Small, 7}]],
    [?assertEqual({gap, p, message_size, 1, 7}, Limited(E))
     || E <- [{call, p, {m, f, [1, Large]}, 7}, {return, p, {m, f, 2}, Large, 7}]].

calls_have_a_stamp_and_a_time(_) ->
    Filter = (witness_trace_filter:none())#{functions := #{{?CASES, inner, 1} => [call, return]}},
    {P, Stamped} = gathered(#{stamps => always, filter => Filter}, fun() -> ?CASES:inner(1) end, fun(_) -> ok end),
    ?assertMatch([{U1, {recv, P, _, go, T1}}, {U2, {call, P, _, T2}}, {U3, {return, P, _, _, T3}}, {_, {exit, P, _, _}}]
                     when is_integer(U1) andalso U1 < U2 andalso U2 < U3 andalso T1 =< T2 andalso T2 =< T3 andalso is_integer(T3),
                 Stamped).

function_events(Functions, Fun, Meanwhile) ->
    Filter = (witness_trace_filter:none())#{functions := Functions},
    {P, Stamped} = gathered(#{stamps => handover, filter => Filter}, Fun, Meanwhile),
    {P, [E || {_, E} <- Stamped, element(1, E) =/= other]}.

%% --- beside others ---------------------------------------------------------------

another_session_is_not_disturbed(_) ->
    Other = collector(),
    Session = trace:session_create(another, Other, []),
    undisturbed(Other, fun(P) -> 1 = trace:process(Session, P, true, [send, 'receive', procs, timestamp]) end),
    trace:session_destroy(Session).

legacy_tracing_is_not_disturbed(_) ->
    Other = collector(),
    undisturbed(Other, fun(P) -> 1 = erlang:trace(P, true, [send, 'receive', procs, timestamp, {tracer, Other}]) end).

undisturbed(Other, On) ->
    T = tracer(handover),
    P = waiting(fun Loop() -> receive {ask, From} -> From ! answered, Loop(); stop -> ok after 0 -> Loop() end end),
    On(P),
    ok = witness_trace_evm:on(session(T), P),
    P ! go,
    ask(P),
    ok = witness_trace_evm:off(session(T), P),
    ask(P),
    ok = witness_trace_evm:on(session(T), P),
    ok = witness_trace_evm:close(session(T)),
    P ! stop,
    Messages = wait(Other, fun(All) -> lists:any(fun(M) -> element(3, M) =:= exit end, All) end),
    %% The other tracer has asked for no filter: it sees the expiries too.
    Kinds = [element(3, M) || M <- Messages, element(4, M) =/= timeout],
    ?assertEqual(['receive', 'receive', send, 'receive', send, 'receive', exit], Kinds),
    ?assert(length(Messages) > length(Kinds)).

guarantees(_) ->
    ?assertMatch(#{inheritance := true, sets := true, fork_first := false, causal := false}, witness_trace_evm:guarantees()).

%% --- helpers ---------------------------------------------------------------------

%% What a process does after `go', with its descendants' part, decoded and without stamps.
events(Fun, Meanwhile) ->
    {P, Stamped} = gathered(handover, Fun, Meanwhile),
    {P, [E || {_, E} <- Stamped, element(1, E) =/= other]}.

gathered(Stamps, Fun, Meanwhile) ->
    T = tracer(Stamps),
    P = waiting(Fun),
    ok = witness_trace_evm:on(session(T), P),
    P ! go,
    Meanwhile(P),
    Stamped = until(T, fun(All) -> ended(P, All) end),
    stop(T),
    {P, Stamped}.

%% The process and all that it has forked have ended.
ended(P, All) ->
    Exits = [Q || {_, {exit, Q, _, _}} <- All],
    [P | [C || {_, {fork, _, C, _, _}} <- All]] -- Exits =:= [].

waiting(Fun) -> spawn(fun() -> receive go -> Fun() end end).

gone() -> witness_trace_cases:gone().

kind_of(Kind, P) -> fun(All) -> lists:any(fun({_, E}) -> element(1, E) =:= Kind andalso element(2, E) =:= P end, All) end.

%% A tracer keeps what its session delivers.
tracer(Stamps) when is_atom(Stamps) -> tracer(#{stamps => Stamps});
tracer(Options) ->
    Collector = collector(),
    Collector ! {open, self(), Options},
    receive {Collector, Session} -> {Collector, Session} end.

session({_, Session}) -> Session.

stop({Collector, _}) -> unlink(Collector), exit(Collector, kill), ok.

until({Collector, _}, Enough) ->
    Decoded = fun(All) -> [S || M <- All, S <- [witness_trace_evm:decode(M)], S =/= ignore] end,
    Decoded(wait(Collector, fun(All) -> Enough(Decoded(All)) end)).

all_of(T) -> until(T, fun(_) -> true end).

collector() -> spawn_link(fun() -> collect([], []) end).

wait(Collector, Enough) ->
    Ref = make_ref(),
    Collector ! {wait, self(), Ref, Enough},
    receive {Ref, All} -> All end.

%% A waiting process is notified when the mailbox is empty: each check reads everything.
collect(All, Waiting) ->
    receive
        M -> collected(M, All, Waiting)
    after 0 ->
        Left = lists:filter(fun(W) -> not told(W, lists:reverse(All)) end, Waiting),
        receive M -> collected(M, All, Left) end
    end.

collected({open, From, Options}, All, Waiting) ->
    From ! {self(), witness_trace_evm:open(self(), Options)},
    collect(All, Waiting);
collected({wait, From, Ref, Enough}, All, Waiting) -> collect(All, [{From, Ref, Enough} | Waiting]);
collected(M, All, Waiting) -> collect([M | All], Waiting).

told({From, Ref, Enough}, All) ->
    case Enough(All) of
        true -> From ! {Ref, All}, true;
        false -> false
    end.
