-module(witness_outline_core_props_tests).
-moduledoc """
The protocol of the tracers on a model of the VM, under random schedules.

The model is as adverse as the real VM is (see `m:witness_trace_evm`), and a little more:

- a process is on in any number of sessions; each of its events goes to each of them, in the
  order of the sessions, with a stamp of its own; a new session is put first, and a child has
  the sessions of its parent in reverse (measured);
- the events of one process reach one tracer in order; everything else waits for as long as
  it likes, so A4 does not hold; the messages of one tracer to another stay in order;
- at any time a tracer may be told that what a process has done until then was delivered, if that is so;
- anything can happen between two effects of a tracer, and within `share`;
- with `handover` stamps, an event has a stamp only while they are on for its process;
- tracers are lent again when they are done, with whatever is still on its way to them.

A schedule is a list of numbers: each picks one of the steps that are possible. When it is
used up, everything is delivered: then no process may be on anywhere but where its events
are wanted. Then all processes end and everything is delivered again: then each must have
been analysed completely, once, in order, by the tracer that the assignment dictates, and
all maps of all tracers must be empty.

Mutants of the core show that the property can fail: each has one fault.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([run/3]).

%% alive: the sessions of a process as {Tracer, Stamped}, newest first
%% count: the events of a process so far; read: how many of them have been analysed
%% ended: the number of a process's exit; closed: processes that were said to have ended
%% dictated: the tracer that a process got by the assignment; owner: the tracer that has adopted a process
%% busy: tracers that are in the middle of a message
-record(vm, {core :: module(),
             stamps :: always | handover,
             clock = -1000 :: integer(),
             next = 2 :: pos_integer(),
             alive = #{} :: #{pos_integer() => [{integer(), boolean()}]},
             count = #{1 => 0} :: #{pos_integer() => non_neg_integer()},
             read = #{1 => 0} :: #{pos_integer() => non_neg_integer()},
             ended = #{} :: #{pos_integer() => pos_integer()},
             closed = #{} :: #{pos_integer() => []},
             dictated = #{1 => 0} :: #{pos_integer() => integer()},
             owner = #{1 => 0} :: #{pos_integer() => integer()},
             queues = #{} :: #{{Tracer :: integer(), From :: term()} => queue:queue()},
             tracers = #{} :: #{integer() => tuple()},
             busy = #{} :: #{integer() => []},
             free = [] :: [integer()]}).

-record(tracer, {core, lent = false, pending = none}).

-define(SCHEDULES, 50_000).
-define(PROCESSES, 8).

%% --- the properties --------------------------------------------------------------

every_process_is_analysed_once_in_order_by_its_owner_test_() ->
    [{atom_to_list(Stamps),
      {timeout, 600, fun() -> ?assertEqual(sound, judge(witness_outline_core, Stamps, ?SCHEDULES div 2)) end}}
     || Stamps <- [always, handover]].

judge(Core, Stamps, N) ->
    Sound = ?FORALL(Schedule, schedule(),
                    case run(Core, Stamps, Schedule) of
                        ok -> true;
                        Fault -> ?WHENFAIL(put(fault, Fault), false)
                    end),
    case proper:quickcheck(Sound, [{numtests, N}, {max_size, 42}, quiet, {constraint_tries, 1}]) of
        true -> sound;
        false -> {Stamps, proper:counterexample(), get(fault)}
    end.

schedule() ->
    ?LET(Bytes, ?SIZED(Size, binary(2 * (20 + Size * 5))), [X || <<X:16>> <= Bytes]).

%% Every planted fault is found. Faults that need a rare schedule have their own number of tries.
mutants() ->
    [{"a process that lives on in the origin's session", 5_000,
      "remove_route(P, effect({off, P}, C1))", "remove_route(P, C1)"},
     {"events before the fork are lost", 1_000,
      "#{} -> C#core{stash = Stash#{P => [S]}}\n", "#{} -> _ = Stash, C\n"},
     {"what was routed is not dropped", 2_000,
      "C#core{own = Own#{P := {late, Last, Label}}}", "C#core{own = Own#{P := {direct, Label}}}"},
     {"direct events overtake those that wait", 5_000,
      "then([{own, S} || S <- lists:reverse(Waiting)]", "then([{own, S} || S <- Waiting]"},
     {"the origin ends the route at an event without a stamp", 5_000,
      "when U =:= none; U =< Cut ->", "when U =< Cut ->"},
     {"events before `take' are lost", 5_000,
      "ask(lent, {early, P, S}, C)", "duplicate(S, C)"},
     {"children of an overlap are not discarded", 5_000,
      "duplicate(S, acknowledge(P, Next, C))", "acknowledge(P, Next, C)"},
     {"a child that was born in both sessions is not claimed", 20_000,
      "place(Child, E, Label, true, own, C);\n        {fork, _, Child, _, _} -> ask({traced, Child}, {traced, Child, E, Label, From}, C)",
      "place(Child, E, Label, true, own, C);\n        {fork, _, Child, _, _} -> place(Child, E, Label, {false, -9999}, From, C)"},
     {"a tracer that is its own former origin", 100_000,
      "{fork, _, Child, _, _} when From =:= own ->",
      "{fork, _, Child, _, _} when From =:= own; From =:= {origin, C0#core.self} ->"},
     {"what waited when the exit was routed is forgotten", 5_000,
      "lists:foldl(fun duplicate/2, C#core{own = Rest}, lists:reverse(Waiting));",
      "begin _ = Waiting, C#core{own = Rest} end;"},
     {"what came early is not told from old duplicates", 50_000,
      "taken(P, Fork, Label, How, O, overdue(P, C));", "taken(P, Fork, Label, How, O, C);"},
     {"the owner is not told that everything is delivered", 5_000,
      "#{P := {cut, Next, _}} -> acknowledge(P, Next, C);", "#{P := {cut, _, _}} -> remove_route(P, effect({off, P}, C));"},
     {"hops stay after a discard", 100_000,
      "unroute(P, Next, C) -> remove_route(P, send(Next, {routed, C#core.self, {eof, P}}, C)).",
      "unroute(P, _, C) -> remove_route(P, C)."}].

faults_are_found_test_() ->
    [{Name, {timeout, 600, fun() ->
        Mutant = witness_mutant:load(list_to_atom("witness_outline_core_mutant_" ++ integer_to_list(I)),
                                     witness_outline_core, Name, Find, Replace),
        ?assert(lists:any(fun(Stamps) -> judge(Mutant, Stamps, N) =/= sound end, [handover, always]))
     end}} || {I, {Name, N, Find, Replace}} <- lists:enumerate(mutants())].

%% --- a run -----------------------------------------------------------------------

-doc "Runs a core through a schedule; `ok`, or what went wrong.".
run(Core, Stamps, Schedule) ->
    try
        Vm = settle(lists:foldl(fun step/2, new(Core, Stamps), Schedule), 1),
        quiet(Vm),
        Ended = lists:foldl(fun(P, A) -> happen(P, exit, A) end, Vm, maps:keys(Vm#vm.alive)),
        complete(settle(Ended, 1))
    catch
        throw:Reason -> Reason;
        error:Reason:Stack -> {crashed, Reason, Stack}
    end.

new(Core, Stamps) ->
    Vm = start_tracer(0, #vm{core = Core, stamps = Stamps, alive = #{1 => [{0, Stamps =:= always}]}}),
    T = #tracer{core = C} = map_get(0, Vm#vm.tracers),
    Vm#vm{tracers = #{0 => T#tracer{core = Core:adopt(1, {ready, 1}, C)}}}.

start_tracer(Id, Vm = #vm{core = Core, tracers = Tracers}) ->
    Assign = fun({m, How, [C, P]}, {ready, P}) -> {How, {label, C}} end,
    Vm#vm{tracers = Tracers#{Id => #tracer{core = Core:new(#{self => Id, sink => {session, Id}, assign => Assign})}}}.

step(X, Vm) ->
    case X rem 8 < 3 of
        true when map_size(Vm#vm.alive) > 0 -> system_step(X div 8, Vm);
        _ -> tracer_step(X div 8, Vm)
    end.

system_step(X, Vm = #vm{alive = Alive, next = Next}) ->
    P = pick(X div 16, maps:keys(Alive)),
    case X rem 16 of
        K when K < 4, Next =< ?PROCESSES -> happen(P, own, Vm);
        K when K < 7, Next =< ?PROCESSES -> happen(P, shared, Vm);
        13 -> happen(P, other, Vm);
        K when K < 13; map_size(Alive) =:= 1 -> happen(P, act, Vm);
        _ -> happen(P, exit, Vm)
    end.

tracer_step(X, Vm) ->
    case tasks(Vm) ++ deliveries(Vm) of
        [] -> Vm;
        Tasks -> tracer_task(pick(X, Tasks), Vm)
    end.

%% Nothing of such a process is on its way to the tracer.
deliveries(#vm{core = Core, busy = Busy, queues = Queues, tracers = Tracers}) ->
    [{delivered, Id, P} || Id := #tracer{core = C} <- Tracers, not is_map_key(Id, Busy), {P, _} <- Core:cuts(C),
                           not is_map_key({Id, {process, P}}, Queues)].

pick(X, List) -> lists:nth(X rem length(List) + 1, List).

tasks(#vm{busy = Busy, queues = Queues}) ->
    maps:keys(Busy) ++ [Key || Key = {T, _} <- maps:keys(Queues), not is_map_key(T, Busy)].

%% Everything is delivered, in some order.
settle(Vm, X) ->
    case tasks(Vm) of
        [] -> Vm;
        Tasks -> settle(tracer_task(pick(X, Tasks), Vm), (X * 75 + 74) rem 65537)
    end.

%% --- the system ------------------------------------------------------------------

happen(P, act, Vm) -> emit(P, {act, P}, Vm);
happen(P, other, Vm) -> report(P, {other, P}, Vm);
happen(P, exit, Vm0) ->
    Vm = #vm{alive = Alive, ended = Ended, count = Count} = emit(P, {exit, P, normal, undefined}, Vm0),
    Vm#vm{alive = maps:remove(P, Alive), ended = Ended#{P => map_get(P, Count)}};
happen(P, How, Vm0 = #vm{next = C, count = Count, read = Read, alive = Alive}) ->
    Signature = {m, How, [C, P]},
    Vm = emit(P, {fork, P, C, Signature, undefined}, Vm0#vm{next = C + 1, count = Count#{C => 0}, read = Read#{C => 0}}),
    emit(C, {init, C, P, Signature, undefined},
         Vm#vm{alive = (Vm#vm.alive)#{C => lists:reverse(map_get(P, Alive))}}).

%% The time of an event is its number in the process.
emit(P, What, Vm = #vm{count = Count}) ->
    #{P := N} = Count,
    report(P, number(What, N + 1), Vm#vm{count = Count#{P := N + 1}}).

number({act, P}, N) when N rem 2 =:= 0 -> {send, P, P, N, N};
number({act, P}, N) -> {recv, P, undefined, N, N};
number(E, N) -> setelement(tuple_size(E), E, N).

report(P, E, Vm = #vm{alive = Alive}) ->
    lists:foldl(fun({T, Stamped}, A = #vm{clock = Clock}) ->
                        U = case Stamped of true -> Clock; false -> none end,
                        push(T, {process, P}, {own, {U, E}}, A#vm{clock = Clock + 1})
                end, Vm, map_get(P, Alive)).

push(T, From, Message, Vm = #vm{queues = Queues}) ->
    Queue = maps:get({T, From}, Queues, queue:new()),
    Vm#vm{queues = Queues#{{T, From} => queue:in(Message, Queue)}}.

%% --- the tracers -----------------------------------------------------------------

%% A tracer takes a message, or goes on with what it is in the middle of.
tracer_task(Key = {Id, _}, Vm = #vm{core = Core, queues = Queues, tracers = Tracers}) ->
    {{value, Message}, Queue} = queue:out(map_get(Key, Queues)),
    Queues1 = case queue:is_empty(Queue) of
        true -> maps:remove(Key, Queues);
        false -> Queues#{Key := Queue}
    end,
    #{Id := T = #tracer{core = C, lent = Lent}} = Tracers,
    T1 = T#tracer{lent = Lent orelse element(1, Message) =:= take},
    proceed(Id, T1, Core:handle(Message, C), Vm#vm{queues = Queues1});
tracer_task({delivered, Id, P}, Vm = #vm{core = Core, tracers = Tracers}) ->
    #{Id := T = #tracer{core = C}} = Tracers,
    proceed(Id, T, Core:handle({delivered, P}, C), Vm);
tracer_task(Id, Vm = #vm{tracers = Tracers, busy = Busy}) ->
    #{Id := T = #tracer{pending = Pending}} = Tracers,
    perform(Pending, Id, T#tracer{pending = none}, Vm#vm{busy = maps:remove(Id, Busy)}).

proceed(Id, T, {Effects, Next, Core}, Vm) -> effects(Effects, Next, Id, T#tracer{core = Core}, Vm).

%% Effects that concern only other tracers may be done at once: their queues wait anyway. An effect on the system waits for
%% its turn.
effects([], done, Id, T, Vm) -> done(Id, T, Vm);
effects([], Question, Id, T, Vm) -> pending({question, Question}, Id, T, Vm);
effects([{send, To, Message} | Es], Next, Id, T, Vm) -> effects(Es, Next, Id, T, push(To, {tracer, Id}, Message, Vm));
effects([{analyse, Label, S} | Es], Next, Id, T, Vm) -> effects(Es, Next, Id, T, analysed(Id, Label, S, Vm));
effects([{ended, P, Label} | Es], Next, Id, T, Vm) -> effects(Es, Next, Id, T, ended(P, Label, Vm));
effects([E | Es], Next, Id, T, Vm) -> pending({effect, E, Es, Next}, Id, T, Vm).

pending(What, Id, T, Vm = #vm{tracers = Tracers, busy = Busy}) ->
    Vm#vm{tracers = Tracers#{Id := T#tracer{pending = What}}, busy = Busy#{Id => []}}.

%% As `m:witness_outline_tracer` does: a lent tracer that is done gives itself back.
done(Id, T = #tracer{core = Core, lent = Lent}, Vm = #vm{tracers = Tracers, free = Free}) ->
    case Lent andalso (Vm#vm.core):is_done(Core) of
        false -> Vm#vm{tracers = Tracers#{Id := T}};
        true -> Vm#vm{tracers = Tracers#{Id := T#tracer{lent = false}}, free = [Id | Free]}
    end.

perform({effect, E, Es, Next}, Id, T, Vm) ->
    effects(Es, Next, Id, T, effect(E, Id, Vm));
perform({question, lent}, Id, T, Vm = #vm{free = Free}) ->
    answer(Id =/= 0 andalso not lists:member(Id, Free), Id, T, Vm);
perform({question, {traced, P}}, Id, T, Vm) ->
    perform({question, {traced, P, {session, Id}}}, Id, T, Vm);
perform({question, {traced, P, {session, In}}}, Id, T, Vm = #vm{alive = Alive, clock = Clock}) ->
    Answer = case Alive of
        #{P := Sessions} -> lists:keymember(In, 1, Sessions) orelse {false, Clock};
        #{} -> dead
    end,
    answer(Answer, Id, T, Vm#vm{clock = Clock + 1});
perform({question, {tracer, P}}, Id, T, Vm = #vm{free = Free, dictated = Dictated}) ->
    is_map_key(P, Dictated) andalso throw({two_tracers, P}),
    {N, Vm1} = case Free of
        [F | Rest] -> {F, Vm#vm{free = Rest}};
        [] -> New = map_size(Vm#vm.tracers), {New, start_tracer(New, Vm)}
    end,
    answer({N, {session, N}}, Id, T, Vm1#vm{dictated = Dictated#{P => N}});
perform({question, {adopt, P, {fork, Parent, P, {m, How, [P, Parent]}, _}, Label}}, Id, T, Vm = #vm{owner = Owner}) ->
    Label =:= {label, P} orelse throw({label, P, Label}),
    is_map_key(P, Owner) andalso throw({two_owners, P}),
    Dictated = case How of own -> map_get(P, Vm#vm.dictated); shared -> map_get(Parent, Owner) end,
    Dictated =:= Id orelse throw({wrong_owner, P, Id}),
    answer({ready, P}, Id, T, Vm#vm{owner = Owner#{P => Id}});
perform({question, {share, P, Sink}}, Id, T, Vm) ->
    pending({on, P, Sink}, Id, T, stamp(P, Id, true, Vm));
perform({on, P, {session, To}}, Id, T, Vm = #vm{alive = Alive, clock = Clock}) ->
    case Alive of
        #{P := Sessions} ->
            Sessions1 = case lists:keymember(To, 1, Sessions) of
                true -> lists:keyreplace(To, 1, Sessions, {To, true});
                false -> [{To, true} | Sessions]
            end,
            pending({cut, P}, Id, T, Vm#vm{alive = Alive#{P := Sessions1}, clock = Clock + 1});
        #{} -> answer(dead, Id, T, Vm)
    end;
perform({cut, _}, Id, T, Vm = #vm{clock = Clock}) ->
    answer({cut, Clock}, Id, T, Vm#vm{clock = Clock + 1}).

answer(Answer, Id, T = #tracer{core = Core}, Vm) ->
    proceed(Id, T, (Vm#vm.core):answer(Answer, Core), Vm).

effect({off, P}, Id, Vm = #vm{alive = Alive}) ->
    case Alive of
        #{P := Sessions} -> Vm#vm{alive = Alive#{P := lists:keydelete(Id, 1, Sessions)}};
        #{} -> Vm
    end;
effect({settle, _}, _, Vm = #vm{stamps = always}) -> Vm;
effect({settle, P}, Id, Vm) -> stamp(P, Id, false, Vm).

stamp(P, Id, On, Vm = #vm{alive = Alive}) ->
    case Alive of
        #{P := Sessions} ->
            lists:keymember(Id, 1, Sessions) orelse throw({stamps_of_what_is_off, P, Id}),
            Vm#vm{alive = Alive#{P := lists:keyreplace(Id, 1, Sessions, {Id, On})}};
        #{} -> Vm
    end.

%% --- the judge -------------------------------------------------------------------

analysed(Id, Label, {_, E}, Vm = #vm{read = Read, owner = Owner}) ->
    P = element(2, E),
    N = element(tuple_size(E), E),
    #{P := Before} = Read,
    N =:= Before + 1 orelse throw({analysed, E, previous, Before}),
    map_get(P, Owner) =:= Id orelse throw({analysed_by, Id, E}),
    Label =:= {ready, P} orelse throw({label, P, Label}),
    Vm#vm{read = Read#{P := N}}.

ended(P, Label, Vm = #vm{closed = Closed, ended = Ended, read = Read}) ->
    is_map_key(P, Closed) andalso throw({ended_twice, P}),
    Label =:= {ready, P} orelse throw({label, P, Label}),
    maps:get(P, Ended, none) =:= map_get(P, Read) orelse throw({ended_early, P}),
    Vm#vm{closed = Closed#{P => []}}.

%% A process is on in the session of its owner, and elsewhere only while it is routed from there. No event waits for a fork
%% any more, unless that fork itself waits for a handover to end.
quiet(Vm = #vm{alive = Alive, tracers = Tracers, owner = Owner}) ->
    maps:foreach(
        fun(P, Sessions) ->
                lists:keymember(map_get(P, Owner), 1, Sessions) orelse throw({not_on, P}),
                [throw({on_in_vain, P, T}) || {T, _} <- Sessions,
                                             not wanted(P, (Vm#vm.core):maps((map_get(T, Tracers))#tracer.core))]
        end, Alive),
    [throw({left, Id, P}) || Id := #tracer{core = Core} <- Tracers, P <- kept((Vm#vm.core):maps(Core))].

kept(#{own := Own, stash := Stash, unpaired := Unpaired}) ->
    Waiting = [Events || _ := {priority, _, _, Events, _} <- Own] ++ maps:values(Stash),
    (maps:keys(Stash) ++ maps:keys(Unpaired)) -- [Child || Events <- Waiting, {_, {fork, _, Child, _, _}} <- Events].

wanted(P, #{own := Own, route := Route}) -> is_map_key(P, Own) orelse is_map_key(P, Route).

complete(#vm{core = Module, read = Read, count = Count, tracers = Tracers, closed = Closed}) ->
    Read =:= Count orelse throw({incomplete, maps:filter(fun(P, N) -> N =/= map_get(P, Count) end, Read)}),
    map_size(Closed) =:= map_size(Count) orelse throw({not_ended, Closed}),
    [throw({left, Id, Part, M}) || Id := #tracer{core = Core} <- Tracers, Part := M <- Module:maps(Core), M =/= #{}],
    ok.
