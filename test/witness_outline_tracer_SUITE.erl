-module(witness_outline_tracer_SUITE).
-moduledoc """
Real tracers, with their pool and real runners, on a scripted source: the paper's system of P, Q and R (RIARC text,
sections 2.1 and 4.2), in every set-up that inheritance can reach, under every sound permutation of its events.

```
P: fork(Q)  Q ! a, Q ! a                             exit
Q: init     ? a, ? a      fork(R)  R ! b, R ! b      exit
R: init                            ? b, ? b          exit
```

Messages are numbered, and come in pairs that no other event divides, though a handover can.

A permutation is an order in which the events are *delivered*; it is sound if it keeps the order of each process. What
must have occurred before an event (its process's earlier events, the fork, the send) occurs at the latest when the
event does, and stays in transit until its own turn. So events come before the fork of their process, and late.

How far the tracers are when something occurs is not scripted, they run. But at one place in each permutation, at
another one in the next, the script waits until they have nothing to do; `step_by_step` waits after each event. The
same tracers serve one permutation after the other, so they also meet what earlier ones have left behind.
""".
-include_lib("stdlib/include/assert.hrl").

-behaviour(witness_monitor).

-compile(export_all).

%% In milliseconds; a wait ends when what is waited for is there.
-define(LONG, 20_000).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [{group, set_ups}, the_permutations_are_all_sound_ones, the_set_ups_are_all_that_can_be_reached].

groups() -> [{set_ups, [parallel], [step_by_step, no_process_stays_on_in_vain | [Case || {Case, _} <- set_ups()]]}].

%% Which processes each monitor reads.
set_ups() ->
    [{p_and_q_and_r, [[p], [q], [r]]}, {p_and_qr, [[p], [q, r]]}, {pq_and_r, [[p, q], [r]]}, {pqr, [[p, q, r]]},
     {only_p, [[p]]}, {only_q, [[q]]}, {only_r, [[r]]}, {no_monitors, []},
     {p_and_q, [[p], [q]]}, {p_and_r, [[p], [r]]}, {q_and_r, [[q], [r]]}, {only_pq, [[p, q]]}, {only_qr, [[q, r]]}].

p_and_q_and_r(_) -> sound(p_and_q_and_r).
p_and_qr(_) -> sound(p_and_qr).
pq_and_r(_) -> sound(pq_and_r).
pqr(_) -> sound(pqr).
only_p(_) -> sound(only_p).
only_q(_) -> sound(only_q).
only_r(_) -> sound(only_r).
no_monitors(_) -> sound(no_monitors).
p_and_q(_) -> sound(p_and_q).
p_and_r(_) -> sound(p_and_r).
q_and_r(_) -> sound(q_and_r).
only_pq(_) -> sound(only_pq).
only_qr(_) -> sound(only_qr).

sound(Case) -> in_order(set_up(Case), permutations(), fun somewhere/3).

%% The set-ups that hand over the most, and a part of the permutations.
step_by_step(_) ->
    Some = [P || {N, P} <- lists:enumerate(permutations()), N rem 8 =:= 0],
    [in_order(set_up(Case), Some, fun everywhere/3) || Case <- [p_and_q_and_r, p_and_qr]].

%% A process is off in a session as soon as something tells the tracer that it can be. So, before all of them end, the
%% processes do something that is no event; twice, since a child that was born in two sessions waits for its parent.
no_process_stays_on_in_vain(_) ->
    Exits = [p_exit, q_exit, r_exit],
    Lives = [Local -- Exits || Local <- maps:values(locals())],
    Permutations = [Permutation ++ Exits || Permutation <- interleave(Lives)],
    [in_order(set_up(Case), Permutations, fun quiet/3) || Case <- [p_and_q_and_r, p_and_qr, pq_and_r, only_r]].

quiet(N, Steps, Names) ->
    {Alive, Exits} = lists:split(length(Steps) - 3, Steps),
    Other = lists:append([[{occur, other, {other, P}}, {deliver, other}] || P <- tuple_to_list(Names)]),
    somewhere(N, Alive, Names) ++ [Other, Other, fun(Source) -> one_session(Source, Names) end] ++ Exits.

one_session(Source, Names) ->
    [?assertMatch({P, [_]}, {P, witness_trace_scripted:sessions(Source, P)}) || P <- tuple_to_list(Names)].

somewhere(N, Steps, _) ->
    {Before, After} = lists:split(N rem length(Steps), Steps),
    [lists:append(Before), lists:append(After)].

everywhere(_, Steps, _) -> Steps.

set_up(Case) -> proplists:get_value(Case, set_ups()).

%% --- the system ------------------------------------------------------------------

locals() -> #{p => [p_fork, p_send, p_exit],
              q => [q_init, q_recv, q_fork, q_send, q_exit],
              r => [r_init, r_recv, r_exit]}.

%% What must occur before an event of another process can.
cause(q_recv) -> [p_send];
cause(r_recv) -> [q_send];
cause(_) -> [].

%% Pairs of messages, else one event.
events(p_init, {P, _, _}) -> [{init, P, undefined, {sys, p, []}, 0}];
events(p_fork, {P, Q, _}) -> [{fork, P, Q, {sys, q, []}, 0}];
events(p_send, {P, Q, _}) -> [{send, P, Q, {a, N}, 0} || N <- [1, 2]];
events(p_exit, {P, _, _}) -> [{exit, P, normal, 0}];
events(q_init, {P, Q, _}) -> [{init, Q, P, {sys, q, []}, 0}];
events(q_recv, {P, Q, _}) -> [{recv, Q, P, {a, N}, 0} || N <- [1, 2]];
events(q_fork, {_, Q, R}) -> [{fork, Q, R, {sys, r, []}, 0}];
events(q_send, {_, Q, R}) -> [{send, Q, R, {b, N}, 0} || N <- [1, 2]];
events(q_exit, {_, Q, _}) -> [{exit, Q, normal, 0}];
events(r_init, {_, Q, R}) -> [{init, R, Q, {sys, r, []}, 0}];
events(r_recv, {_, Q, R}) -> [{recv, R, Q, {b, N}, 0} || N <- [1, 2]];
events(r_exit, {_, _, R}) -> [{exit, R, killed, 0}].

%% How many there are, the first `init' included.
-define(EVENTS, 16).

permutations() -> interleave(maps:values(locals())).

interleave([]) -> [[]];
interleave(Lists) ->
    [[E | Rest] || [E | Tail] <- Lists, Rest <- interleave([L || L <- [Tail | Lists -- [[E | Tail]]], L =/= []])].

the_permutations_are_all_sound_ones(_) ->
    Permutations = permutations(),
    ?assertEqual(9240, length(Permutations)),           % 11! / (3! 5! 3!)
    ?assertEqual(9240, length(lists:usort(Permutations))),
    [?assertEqual(Local, [E || E <- Permutation, lists:member(E, Local)])
     || Permutation <- Permutations, Local <- maps:values(locals())].

%% A process has a monitor of its own, for itself or for a group, or is not named, or is cut out of groups.
the_set_ups_are_all_that_can_be_reached(_) ->
    Ways = [single, group, unnamed, cut],
    Reached = [witness_offline_system:set_up_of([{p, WayP}, {q, WayQ}, {r, WayR}], none, [])
               || WayP <- Ways, WayQ <- Ways, WayR <- Ways],
    ?assertEqual(lists:usort(Reached), lists:usort([lists:sort(SetUp) || {_, SetUp} <- set_ups()])).

%% --- the script ------------------------------------------------------------------

%% The steps for each event of a permutation, and the events in the order in which they occur.
script(Permutation, Names) ->
    {Steps, Occurred} = lists:mapfoldl(fun(E, Before) ->
        {New, After} = needed(E, Names, Before),
        {New ++ [{deliver, {E, N}} || {N, _} <- lists:enumerate(events(E, Names))], After}
    end, [], Permutation),
    {Steps, lists:reverse(Occurred)}.

occur(E, Names, Occurred) ->
    {Steps, Before} = lists:mapfoldl(fun(Cause, Acc) -> needed(Cause, Names, Acc) end, Occurred,
                                     earlier(E) ++ cause(E)),
    {Step, After} = happens(E, Names, Before),
    {lists:append(Steps) ++ Step, After}.

needed(E, Names, Occurred) ->
    case lists:member(E, Occurred) of
        true -> {[], Occurred};
        false -> occur(E, Names, Occurred)
    end.

%% The `init' of a child occurs with the fork.
happens(E, Names, Occurred) ->
    case lists:member(E, Occurred) of
        true -> {[], Occurred};
        false when E =:= p_fork -> {[{fork, {E, 1}, hd(events(E, Names)), {q_init, 1}}], [q_init, E | Occurred]};
        false when E =:= q_fork -> {[{fork, {E, 1}, hd(events(E, Names)), {r_init, 1}}], [r_init, E | Occurred]};
        false -> {[{occur, {E, N}, Event} || {N, Event} <- lists:enumerate(events(E, Names))], [E | Occurred]}
    end.

earlier(q_init) -> [p_fork];
earlier(r_init) -> [q_fork];
earlier(E) ->
    [Local] = [L || L <- maps:values(locals()), lists:member(E, L)],
    case lists:takewhile(fun(X) -> X =/= E end, Local) of [] -> []; Before -> [lists:last(Before)] end.

%% --- a run -----------------------------------------------------------------------

in_order(SetUp, Permutations, Waits) ->
    process_flag(trap_exit, true),
    {ok, Source} = witness_trace_scripted:start_link(),
    Counters = counters:new(2, []),
    Stamps = case [Partition || Partition = [_, _ | _] <- SetUp] of [] -> handover; _ -> always end,
    {ok, Pool} = witness_outline_pool:start_link(
                   #{source => witness_trace_scripted, source_options => #{source => Source, stamps => Stamps},
                     run => self(), maps => [instrumentation(SetUp)], explain => 1, groups => 0, hold_back => 3_600_000,
                     memory => 1 bsl 30, counters => Counters, held => atomics:new(1, [])}),
    lists:foreach(fun({N, Permutation}) ->
        try permutation(N, Permutation, SetUp, Waits, Source, Pool)
        catch Class:Reason:Stack -> erlang:raise(Class, {SetUp, N, Permutation, Reason}, Stack)
        end,
        returned(N, Source, Pool, Counters, 100)
    end, lists:enumerate(Permutations)),
    ok = witness_outline_pool:stop(Pool),
    unlink(Source),
    gen_server:stop(Source).

%% Ended processes are never heard of again on the VM, so each permutation has processes of its own.
permutation(N, Permutation, SetUp, Waits, Source, Pool) ->
    Names = {P, _, _} = list_to_tuple([{external, <<Name, (integer_to_binary(N))/binary>>} || Name <- "pqr"]),
    {Steps, Occurred} = script(Permutation, Names),
    Launched = {witness_trace_scripted, launched, [Source, P, {sys, p, []}]},
    {ok, P} = witness_outline_pool:launch(Pool, Launched, group_leader()),
    [First | Parts] = Waits(N, Steps, Names),
    ok = witness_trace_scripted:play(Source, First),
    lists:foreach(fun(Part) ->
        ok = witness_trace_scripted:settle(Source),
        if
            is_function(Part) -> Part(Source);
            true -> ok = witness_trace_scripted:play(Source, Part)
        end
    end, Parts),
    Expected = [{element(number(hd(Partition)), Names), expected(Partition, [p_init | Occurred], Names)}
                || Partition <- SetUp],
    ?assertEqual(lists:sort(Expected), lists:sort([verdict() || _ <- SetUp])),
    receive
        {ended, _} -> ok;
        {'EXIT', _, Why} when Why =/= normal -> error(Why)
    after ?LONG -> error(run_goes_on)
    end.

number(p) -> 1;
number(q) -> 2;
number(r) -> 3.

%% A monitor reads the events of its processes in the order in which they occurred.
expected(Partition, Occurred, Names) ->
    lists:append([events(E, Names) || E <- Occurred, lists:member(process(E), Partition)]).

process(p_init) -> p;
process(E) ->
    [P] = [P || P := Local <- locals(), lists:member(E, Local)],
    P.

verdict() ->
    receive
        {monitor, Runner, #{process := P}} ->
            receive
                {verdict, Runner, #{verdict := yes, info := Events}} -> {P, Events};
                {verdict, Runner, Other} -> {P, Other};
                {'EXIT', _, Why} when Why =/= normal -> error(Why)
            after ?LONG -> error({no_verdict, P})
            end;
        {'EXIT', _, Why} when Why =/= normal -> error(Why)
    after ?LONG -> error(no_monitor)
    end.

%% Every tracer but the first has given itself back; each event of the permutations so far was analysed once.
returned(N, Source, Pool, Counters, Tries) ->
    ok = witness_trace_scripted:settle(Source),
    Now = {witness_outline_pool:info(Pool), counters:get(Counters, 1), counters:get(Counters, 2)},
    case Now of
        {#{busy := 1}, Processes, Events} when Processes =:= 3 * N, Events =:= ?EVENTS * N -> flush();
        _ when Tries > 0 -> returned(N, Source, Pool, Counters, Tries - 1);
        _ -> error({not_returned, Now})
    end.

flush() ->
    receive
        {system_ended, normal} -> flush();
        {pong, _, _} -> flush();
        {'EXIT', _, normal} -> flush();
        Other -> error({unexpected, Other})
    after 0 -> ok
    end.

%% --- the monitor -----------------------------------------------------------------

init(_, _, _) -> {ok, []}.

%% The launcher is not known to the script.
handle_event({init, P, Parent, Signature, Ts}, Events) when is_pid(Parent) ->
    {ok, [{init, P, undefined, Signature, Ts} | Events]};
handle_event(E, Events) -> {ok, [E | Events]}.

handle_end(complete, Events) -> {yes, lists:reverse(Events)};
handle_end(stopped, Events) -> {no, lists:reverse(Events)}.

%% One map. A process that no monitor reads is cut out of its parent's group.
instrumentation(SetUp) ->
    fun({sys, P, []}) ->
        case [Partition || Partition <- SetUp, lists:member(P, Partition)] of
            [[P | Rest]] -> [#{monitor => {?MODULE, P}, spec => <<"script">>, name => undefined, group => Rest =/= []}];
            [_] -> [];
            [] -> [none]
        end
    end.
