-module(witness_outline_core).
-moduledoc """
RIARC's choreography as pure functions: what one tracer knows and does.

A tracer owns a partition: it analyses the events of a set of processes. Children inherit
the tracer of their parent (assumption A2), so a tracer also gathers events of processes
that belong to other tracers, and routes these to the next hop. A *handover* moves such a
process from the tracer that its events reach (its **origin**) to the tracer that owns it.
The paper lets the new tracer pre-empt the old one (RIARC text, Algorithm 5); on the real
VM this loses events. Here the origin does it, and nothing is ever switched off before
its successor is on:

```
T (sees the fork of C)        N (will own C)             O (origin of C, may be T)
 |-- take C from O ----------->|                         |
 |                             |-- switch C to N -------->|  share: C on in N's session,
 |                             |                         |  cut := a stamp after it
 |                             |<------ routed e ---------|  each e of C up to the cut
 |                             | (direct e wait)         |
 |                             |<------ routed eof -------|  at the first e beyond the cut
 |                             | (drops what was routed, |  C off in O's session
 |                             |  then takes the rest)   |
```

The first event beyond the cut proves that all events before it have come, since the
source keeps the order of one process for one tracer. So does the VM, if it is asked after the cut and says
that what has happened is delivered (`delivered`): a process may do nothing for a long time. The `eof` travels along the route
and is the acknowledgement that `dtc` is in the paper. Where T is the origin, it shares at
once, without waiting for the `switch`.

Direct events may still be on their way when `eof` has come, and may come before `take`. So
events that were routed are dropped until the first event beyond them. A tracer that is lent and
has not received `take` yet keeps events of processes that it does not know.

## Overlaps

A process that forks while it is on in two sessions has its child born in both. The owner
takes such a child from its own session. The origin is told to `discard` it, or finds that out by
itself: it switches the child off and drops its events, with the children of the child.

Duplicates of an overlap may reach a tracer after its partition has ended, even in its next
one. Then the tracer may have been the origin of a process that it is to own. It may be a hop
of a process of which it also gets duplicates (so a hop is for one origin only). The new process
may be, or may have been, on in its session by birth. Hence `traced` is asked before a process
is shared, and events that are older than the answer are dropped.

## Interface

`handle/2` takes a message and the state; it returns effects to perform, in order, and
either `done` or a question. `answer/2` takes the answer to it before any other message:
`{Effects, done | Question, State}`. There is no other interaction, so every
interleaving of tracers can be explored.

## What the state means

- `own`, the traced map. A process is `direct`; or `priority` (its origin still routes
  earlier events, and those gathered directly wait), then `late` (all that had to be routed
  was, but some of it may still come directly); or `routed` (it died before the switch, and
  everything comes from its origin);
- `route`, the routing map: `live` (own session is the origin), `cut` (the same, after the
  switch), or `hop` (its events come routed and are passed on);
- `stash`: events of a process that wait for its fork (A4 does not hold; `init` is always
  first, so a stash begins with it), or for its `take`;
- `unpaired`: a process that is born in this session is reported here twice, by the `fork` of
  its parent and by its `init`, in any order. Of these processes one report was handled
  (analysed, routed, or found to be a duplicate); the other one is still to come. So the tracer
  recognises the second report of a process that belongs to another tracer.

A process is in at most one of `own`, `route`, `stash` (checked: `{invariant, ...}`
errors name the invariant of the RIARC text, appendix B.2, see
`docs/internals/outline.md`).
""".

-export([new/1, reassign/2, handle/2, answer/2, direct/2, is_done/1, owned/1, settling/1, adopt/3, adopt_newborn/3,
         origins/1, cuts/1, maps/1, with_maps/2]).

-doc "Names a tracer; only compared and passed on.".
-type tracer() :: term().

-doc "What is needed to switch a process on in a tracer's session; only passed on.".
-type sink() :: term().

-doc "Which monitors read a process; made and read by the instrumentation map.".
-type label() :: term().

-doc "Which tracer owns a new process, from its signature and the label of its parent.".
-type assign() :: fun((witness_event:signature(), Parent :: label()) -> {own | shared, label()}).

-doc """
Messages to a tracer: an event of its own session, an event or `eof` routed to it from an
origin's session, and the three messages of a handover. `take` says how far the origin is.
`born`: the process has been in the new session alone since its birth; `dead`: it ended before
it was shared; `shared`: it is being shared, and events of the new session that are older than
the stamp are duplicates; `ask`: the origin waits for `switch`.
""".
-type message() ::
    {own, witness_trace:stamped()}
  | {routed, Origin :: tracer(), witness_trace:stamped() | {eof, witness_event:proc()}}
  | {take, Child :: witness_event:proc(), Origin :: tracer(), witness_event:event(), label(),
     born | dead | {shared, Now :: integer()} | ask}
  | {switch, witness_event:proc(), sink()}
  | {discard, witness_event:proc()}
  | {delivered, witness_event:proc()}.

-doc """
Effects, to be performed in order: send a message to another tracer; hand an event to
the monitors of a process; say that a process has ended and all its events were analysed;
switch a process off in the own session; say that its stamps are not compared any more.
""".
-type effect() ::
    {send, tracer(), message()}
  | {analyse, label(), witness_trace:stamped()}
  | {ended, witness_event:proc(), label()}
  | {off, witness_event:proc()}
  | {settle, witness_event:proc()}.

-doc """
Questions, with their answers:

- `{tracer, C}`: a tracer for `C` that owns nothing; `{tracer(), sink()}`;
- `{adopt, C, Fork, Label}`: this tracer owns `C` from now on; its label with the monitors;
- `lent`: has the pool named this tracer to another one since its last partition ended; a boolean;
- `{traced, C}`: is `C` on in the own session; `true`, `dead`, or `{false, Stamp}` with a
  stamp after all events so far;
- `{traced, C, Sink}`: the same for another session; or `born`: `C` has had its own partition
  in that session since its birth, and was never on in this one;
- `{share, C, Sink}`: switch `C` on in the sink's session too; `{cut, Stamp}` or `dead`.
""".
-type question() ::
    {tracer, witness_event:proc()}
  | {adopt, witness_event:proc(), witness_event:event(), label()}
  | lent
  | {traced, witness_event:proc()}
  | {traced, witness_event:proc(), sink()}
  | {share, witness_event:proc(), sink()}.

-doc "The result of handling a message.".
-type result() :: {[effect()], done | question(), core()}.

-type own() ::
    {direct, label()}
  | {late, Last :: integer(), label()}
  | {priority, Origin :: tracer(), Last :: integer(),
     Waiting :: [witness_trace:stamped()], label()}
  | {routed, Origin :: tracer(), label()}.

-type route() ::
    {live, Next :: tracer()}
  | {cut, Next :: tracer(), Cut :: integer()}
  | {hop, Origin :: tracer(), Next :: tracer()}.

-record(core, {self :: tracer(),
               sink :: sink(),
               assign :: assign(),
               own = #{} :: #{witness_event:proc() => own()},
               route = #{} :: #{witness_event:proc() => route()},
               stash = #{} :: #{witness_event:proc() => [witness_trace:stamped()]},
               unpaired = #{} :: #{witness_event:proc() => []},
               todo = [] :: [message() | {unstash, witness_event:proc()}],
               asked :: undefined | {question(), Why :: tuple()},
               effects = [] :: [effect()]}).

-opaque core() :: #core{}.

-export_type([core/0, tracer/0, sink/0, label/0, assign/0, message/0, effect/0,
              question/0, result/0, own/0, route/0]).

-doc "A tracer that owns nothing yet.".
-spec new(#{self := tracer(), sink := sink(), assign := assign()}) -> core().
new(#{self := Self, sink := Sink, assign := Assign}) ->
    #core{self = Self, sink = Sink, assign = Assign}.

-doc "Owns a process without a handover: one of the first, which are on in the own session only.".
-spec adopt(witness_event:proc(), label(), core()) -> core().
adopt(P, Label, C) -> own(P, {direct, Label}, C).

-doc "The same for a process that has just been spawned: its `init` is still to come, and no tracer gets its `fork`.".
-spec adopt_newborn(witness_event:proc(), label(), core()) -> core().
adopt_newborn(P, Label, C) -> paired(P, adopt(P, Label, C)).

-doc "Whether nothing is left to analyse or to route (I1: only then may a tracer go).".
-spec is_done(core()) -> boolean().
is_done(#core{own = Own, route = Route}) -> map_size(Own) =:= 0 andalso map_size(Route) =:= 0.

-doc "The processes of this partition with their labels.".
-spec owned(core()) -> [{witness_event:proc(), label()}].
owned(#core{own = Own}) -> [{P, label(O)} || P := O <- Own].

-doc """
The processes that a tracer keeps. `own` and `route` have those that live or have events still
to come; `stash` and `unpaired` have those with a birth that has not been reported completely.
""".
-spec maps(core()) -> #{own := #{witness_event:proc() => own()}, route := #{witness_event:proc() => route()},
                        stash := #{witness_event:proc() => [witness_trace:stamped()]},
                        unpaired := #{witness_event:proc() => []}}.
maps(#core{own = Own, route = Route, stash = Stash, unpaired = Unpaired}) ->
    #{own => Own, route => Route, stash => Stash, unpaired => Unpaired}.

-doc "From now on new processes are assigned in this way.".
-spec reassign(assign(), core()) -> core().
reassign(Assign, C) -> C#core{assign = Assign}.

-doc "A tracer with the maps that `maps/1` has returned of one between two messages.".
-spec with_maps(#{own := #{witness_event:proc() => own()}, route := #{witness_event:proc() => route()},
                  stash := #{witness_event:proc() => [witness_trace:stamped()]},
                  unpaired := #{witness_event:proc() => []}}, core()) -> core().
with_maps(#{own := Own, route := Route, stash := Stash, unpaired := Unpaired}, C) ->
    C#core{own = Own, route = Route, stash = Stash, unpaired = Unpaired}.

-doc "Whether a process of this partition is still being handed over.".
-spec settling(core()) -> boolean().
settling(#core{own = Own}) ->
    lists:any(fun({direct, _}) -> false; ({late, _, _}) -> false; (_) -> true end, maps:values(Own)).

-doc "The tracers from which processes of this partition are being handed over.".
-spec origins(core()) -> [tracer()].
origins(#core{own = Own}) -> lists:usort([O || _ := {priority, O, _, _, _} <- Own]).

-doc """
The processes of which this tracer is the origin that has shared them, each with the stamp behind which their events are the next
tracer's. When all of their events up to that stamp have come, the message `delivered` ends the handover.
""".
-spec cuts(core()) -> [{witness_event:proc(), integer()}].
cuts(#core{route = Route}) -> [{P, Cut} || P := {cut, _, Cut} <- Route].

-doc """
The label of a process if its own events are analysed at once. For such a process
`handle({own, E})` of a `send` or `recv` returns exactly `[{analyse, Label, E}]` and an
unchanged state; a caller may do that by itself.
""".
-spec direct(witness_event:proc(), core()) -> {ok, label()} | no.
direct(P, #core{own = Own}) ->
    case Own of
        #{P := {direct, Label}} -> {ok, Label};
        #{} -> no
    end.

-doc "Handles one message.".
-spec handle(message(), core()) -> result().
handle(Message, C = #core{asked = undefined, todo = []}) -> run(C#core{todo = [Message]}).

-doc "Continues with the answer to the question that was asked last.".
-spec answer(term(), core()) -> result().
answer(Answer, C = #core{asked = {_, Why}}) -> run(answered(Why, Answer, C#core{asked = undefined})).

run(C = #core{asked = undefined, todo = [Task | Tasks]}) -> run(task(Task, C#core{todo = Tasks}));
run(C = #core{asked = undefined}) -> {lists:reverse(C#core.effects), done, C#core{effects = []}};
run(C = #core{asked = {Question, _}}) -> {lists:reverse(C#core.effects), Question, C#core{effects = []}}.

task({own, S}, C) -> gathered(S, C);
task({routed, O, {eof, P}}, C) -> eof(P, O, C);
task({routed, O, S}, C) -> routed(S, O, C);
task({take, P, O, Fork, Label, How}, C) -> taken(P, Fork, Label, How, O, overdue(P, C));
task({switch, P, Sink}, C) -> switch(P, Sink, C);
task({discard, P}, C) -> discard_routed(P, C);
task({delivered, P}, C) -> delivered(P, C);
task({unstash, P}, C) -> unstash(P, C).

%% --- events of the own session ---------------------------------------------------

gathered(S = {U, E}, C = #core{own = Own}) ->
    P = element(2, E),
    case Own of
        #{P := {direct, Label}} -> analyse(S, own, Label, C);
        #{P := {priority, _, Last, _, _}} when U =:= none; U < Last ->
            duplicate(S, C);                        % was routed already, or is older than that
        #{P := {late, Last, _}} when U =:= none; U < Last ->
            duplicate(S, C);
        #{P := {late, _, Label}} ->
            analyse(S, own, Label, effect({settle, P}, C#core{own = Own#{P := {direct, Label}}}));
        #{P := {priority, O, Last, Waiting, Label}} ->
            C#core{own = Own#{P := {priority, O, Last, [S | Waiting], Label}}};
        #{P := {routed, _, _}} -> duplicate(S, C);  % its origin delivers all of it
        #{} -> gathered_foreign(P, S, C)
    end.

gathered_foreign(P, S = {U, _}, C = #core{route = Route}) ->
    case Route of
        #{P := {live, Next}} -> dispatch(P, S, Next, C);
        #{P := {cut, Next, Cut}} when U =:= none; U =< Cut -> dispatch(P, S, Next, C);
        #{P := {cut, Next, _}} -> duplicate(S, acknowledge(P, Next, C));
        #{P := {hop, _, _}} -> duplicate(S, C);
        #{} -> unknown(P, S, C)
    end.

%% I18, I13: the origin routes what it gathers of processes that others own.
dispatch(_, {_, {other, _}}, _, C) -> C;
dispatch(P, S = {_, E}, Next, C) ->
    C1 = send(Next, {routed, C#core.self, S}, done_with(E, C)),
    case E of
        {exit, _, _, _} -> remove_route(P, C1);
        {fork, _, Child, _, _} -> then({unstash, Child}, add_route(Child, {live, Next}, C1));   % I9
        _ -> C1
    end.

%% I11: the acknowledgement follows the last routed event, and the route goes.
acknowledge(P, Next, C) ->
    C1 = send(Next, {routed, C#core.self, {eof, P}}, C),
    remove_route(P, effect({off, P}, C1)).

%% The process may have done something beyond the cut meanwhile.
delivered(P, C = #core{route = Route}) ->
    case Route of
        #{P := {cut, Next, _}} -> acknowledge(P, Next, C);
        #{} -> C
    end.

%% The owner of the process gets this event from elsewhere. The child of a fork was born in this
%% session with it, and is discarded unless it was claimed.
duplicate({_, E}, C0) ->
    C = #core{own = Own, route = Route} = done_with(E, C0),
    case E of
        {fork, _, Child, _, _} when not is_map_key(Child, Own) ->
            case Route of
                #{Child := {live, _}} -> C;
                #{Child := {cut, _, _}} -> C;
                #{} -> unstashed(Child, effect({off, Child}, C))
            end;
        _ -> C
    end.

%% Stashed events of a process that belongs to another tracer are duplicates.
unstashed(P, C = #core{stash = Stash}) ->
    case maps:take(P, Stash) of
        {Stashed, Rest} -> lists:foldl(fun duplicate/2, C#core{stash = Rest}, lists:reverse(Stashed));
        error -> C
    end.

%% `init' is always first. If the fork was handled, the process belongs to another tracer, or
%% has ended. Otherwise, since A4 does not hold, the fork is still on its way.
unknown(P, S = {_, {init, _, _, _, _}}, C = #core{stash = Stash, unpaired = Unpaired}) ->
    case Unpaired of
        #{P := _} -> duplicate(S, C);
        #{} -> C#core{stash = Stash#{P => [S]}}
    end;
unknown(P, S, C = #core{stash = Stash}) ->
    case Stash of
        #{P := Stashed} -> C#core{stash = Stash#{P := [S | Stashed]}};
        #{} when map_size(C#core.own) =:= 0, map_size(C#core.route) =:= 0 ->
            ask(lent, {early, P, S}, C);
        #{} -> duplicate(S, C)
    end.

%% Events that came after this tracer was lent and before `take', except those of the process to be
%% taken, are duplicates from an earlier partition.
overdue(P, C = #core{stash = Stash}) ->
    Others = [Q || Q := Stashed <- Stash, Q =/= P, element(1, element(2, lists:last(Stashed))) =/= init],
    lists:foldl(fun unstashed/2, C, Others).

unstash(P, C = #core{stash = Stash}) ->
    case maps:take(P, Stash) of
        {Stashed, Rest} ->
            then([{own, S} || S <- lists:reverse(Stashed)], C#core{stash = Rest});
        error -> C
    end.

%% --- routed events ---------------------------------------------------------------

routed(S = {U, E}, O, C = #core{own = Own, route = Route}) ->
    P = element(2, E),
    case Own of
        #{P := {priority, O, Last, Waiting, Label}} ->
            Last1 = case U of none -> Last; _ -> max(U, Last) end,
            analyse(S, {origin, O}, Label, C#core{own = Own#{P := {priority, O, Last1, Waiting, Label}}});
        #{P := {routed, O, Label}} -> analyse(S, {origin, O}, Label, C);
        #{} ->
            case Route of
                #{P := {hop, O, Next}} -> forward(P, S, O, Next, C);
                #{} -> overlap(S, O, C)
            end
    end.

%% The process was born in this tracer's session as well, which the origin does not know yet, or it
%% has ended. So what the origin routes is a duplicate, and so are the children.
overlap({_, {fork, _, Child, _, _}}, O, C) -> send(O, {discard, Child}, C);
overlap(_, _, C) -> C.

%% I19: an event that is routed through.
forward(P, S = {_, E}, O, Next, C) ->
    C1 = send(Next, {routed, O, S}, C),
    case E of
        {exit, _, _, _} -> remove_route(P, C1);
        {fork, _, Child, _, _} -> add_route(Child, {hop, O, Next}, C1);     % I10
        _ -> C1
    end.

eof(P, O, C = #core{own = Own, route = Route}) ->
    case Own of
        #{P := {priority, O, Last, Waiting, Label}} ->
            then([{own, S} || S <- lists:reverse(Waiting)], C#core{own = Own#{P := {late, Last, Label}}});
        #{} ->
            case Route of
                #{P := {hop, O, Next}} ->                                   % I12
                    remove_route(P, send(Next, {routed, O, {eof, P}}, C));
                #{} -> C                            % direct since its birth, or ended
            end
    end.

%% --- analysis --------------------------------------------------------------------

%% From: the session that the event comes from, the own one or that of an origin. This tracer
%% can be the origin too, in an earlier partition.
analyse({_, {other, _}}, _, _, C) -> C;
analyse(S = {_, E}, From, Label, C0) ->
    C = effect({analyse, Label, S}, case From of own -> done_with(E, C0); {origin, _} -> C0 end),
    case E of
        {fork, _, Child, _, _} when From =:= own -> place(Child, E, Label, true, own, C);
        {fork, _, Child, _, _} -> ask({traced, Child}, {traced, Child, E, Label, From}, C);
        {exit, P, _, _} -> effect({ended, P, Label}, disown(P, C));         % I5
        _ -> C
    end.

%% Here: whether the child is on in the own session. During an overlap a child may have been born
%% in the own session although its fork was routed.
place(Child, Fork, Parent, true, {origin, O}, C) ->
    place(Child, Fork, Parent, true, own, send(O, {discard, Child}, C));
place(Child, Fork = {fork, _, _, Signature, _}, Parent, Here, From, C) ->
    case (C#core.assign)(Signature, Parent) of
        {own, Label} when From =:= own -> ask({tracer, Child}, {tracer, Child, Fork, Label, own}, C);
        {own, Label} -> ask({tracer, Child}, {tracer, Child, Fork, Label, From}, unstashed(Child, C));
        {shared, Label} -> take(Child, Fork, Label, Here, From, C)
    end.

%% If a process is on here by birth, all its events are here. If it has ended, its origin has all of
%% them, and children that were born here are taken when their fork comes routed.
take(P, Fork, Label, true, _, C) -> ask({adopt, P, Fork, Label}, {own, P, direct}, C);
take(P, Fork, Label, dead, {origin, O}, C) -> ask({adopt, P, Fork, Label}, {own, P, {routed, O}}, C);
take(P, Fork, Label, {false, Now}, {origin, O}, C) -> ask({adopt, P, Fork, Label}, {switch, P, O, Now}, C).

%% The tracer of its parent has handled its fork.
taken(P, Fork, Label, born, _, C) -> ask({adopt, P, Fork, Label}, {own, P, direct}, paired(P, C));
taken(P, Fork, Label, ask, O, C) -> ask({traced, P}, {take, P, Fork, Label, O}, C);
taken(P, Fork, Label, dead, O, C) -> take(P, Fork, Label, dead, {origin, O}, C);
taken(P, Fork, Label, {shared, Now}, O, C) ->
    ask({adopt, P, Fork, Label}, {own, P, {priority, O, Now}}, C).

answered({traced, Child, Fork, Parent, From}, Here, C) -> place(Child, Fork, Parent, Here, From, C);
answered({early, _, S}, false, C) -> duplicate(S, C);
answered({early, P, S}, true, C = #core{stash = Stash}) -> C#core{stash = Stash#{P => [S]}};
answered({own, P, direct}, Label, C) -> then({unstash, P}, own(P, {direct, Label}, C));
answered({own, P, {routed, O}}, Label, C) -> then({unstash, P}, own(P, {routed, O, Label}, C));
answered({own, P, {priority, O, Now}}, Label, C) ->
    then({unstash, P}, own(P, {priority, O, Now, [], Label}, C));
answered({switch, P, O, Now}, Label, C = #core{sink = Sink}) ->
    answered({own, P, {priority, O, Now}}, Label, send(O, {switch, P, Sink}, C));
answered({take, Child, Fork, Label, O}, true, C) ->
    take(Child, Fork, Label, true, own, send(O, {discard, Child}, C));
answered({take, Child, Fork, Label, O}, Here, C) -> take(Child, Fork, Label, Here, {origin, O}, C);
answered({tracer, Child, Fork, Label, own}, {Next, Sink}, C) ->
    ask({traced, Child, Sink}, {lend, Child, Fork, Label, Next, Sink}, C);
answered({tracer, Child, Fork, Label, {origin, O}}, {Next, _}, C) ->
    add_route(Child, {hop, O, Next}, send(Next, {take, Child, O, Fork, Label, ask}, C));
%% Its `init' is reported there, not here.
answered({lend, Child, Fork, Label, Next, _}, born, C = #core{self = Self}) ->
    send(Next, {take, Child, Self, Fork, Label, born}, paired(Child, C));
answered({lend, Child, Fork, Label, Next, Sink}, Here, C0 = #core{self = Self}) ->
    C = add_route(Child, {live, Next}, C0),                                 % I8
    case Here of
        {false, Now} -> switch(Child, Sink, send(Next, {take, Child, Self, Fork, Label, {shared, Now}}, C));
        dead -> then({unstash, Child}, send(Next, {take, Child, Self, Fork, Label, dead}, C));
        true -> then({unstash, Child}, send(Next, {take, Child, Self, Fork, Label, ask}, C))
    end;
answered({share, P}, Answer, C = #core{route = Route}) ->
    #{P := {live, Next}} = Route,
    case Answer of
        {cut, Cut} -> then({unstash, P}, C#core{route = Route#{P := {cut, Next, Cut}}});
        dead -> then({unstash, P}, C)              % all of it is in the own session
    end.

%% --- the origin's part of a handover ---------------------------------------------

%% No route: the process's exit has been routed already.
switch(P, Sink, C = #core{route = Route}) ->
    case Route of
        #{P := {live, _}} -> ask({share, P, Sink}, {share, P}, C);
        #{P := _} -> error({invariant, 'I17', P});  % shared before, or gathered elsewhere
        #{} -> C
    end.

discard_routed(P, C = #core{route = Route}) ->
    case Route of
        #{P := {live, Next}} -> effect({off, P}, unroute(P, Next, C));
        #{} -> C
    end.

%% `eof' also ends the routes of the tracers on the way to the owner. The owner ignores it, since
%% it has the process directly.
unroute(P, Next, C) -> remove_route(P, send(Next, {routed, C#core.self, {eof, P}}, C)).

%% --- the maps, with their invariants ---------------------------------------------

own(P, Mode, C = #core{own = Own, route = Route}) ->
    is_map_key(P, Own) andalso error({invariant, 'I2', P}),
    is_map_key(P, Route) andalso error({invariant, 'I22', P}),
    C#core{own = Own#{P => Mode}}.

%% If the exit was routed, the waiting events are duplicates.
disown(P, C = #core{own = Own}) ->
    case maps:take(P, Own) of
        {{priority, _, _, Waiting, _}, Rest} ->
            lists:foldl(fun duplicate/2, C#core{own = Rest}, lists:reverse(Waiting));
        {_, Rest} -> C#core{own = Rest};
        error -> error({invariant, 'I3', P})
    end.

add_route(P, R, C = #core{route = Route, own = Own}) ->
    (is_map_key(P, Route) orelse is_map_key(P, Own)) andalso error({invariant, 'I6', P}),
    C#core{route = Route#{P => R}}.

remove_route(P, C = #core{route = Route}) ->
    is_map_key(P, Route) orelse error({invariant, 'I7', P}),
    C#core{route = maps:remove(P, Route)}.

%% This report of the own session is handled. Each fork and `init' comes here once, so the second of
%% a pair removes the entry of the first.
done_with({init, P, _, _, _}, C) -> paired(P, C);
done_with({fork, _, Child, _, _}, C) -> paired(Child, C);
done_with(_, C) -> C.

paired(P, C = #core{unpaired = Unpaired}) ->
    C#core{unpaired = case Unpaired of
                          #{P := _} -> maps:remove(P, Unpaired);
                          #{} -> Unpaired#{P => []}
                      end}.

label({direct, Label}) -> Label;
label({late, _, Label}) -> Label;
label({priority, _, _, _, Label}) -> Label;
label({routed, _, Label}) -> Label.

%% --- effects, questions, work ----------------------------------------------------

effect(E, C) -> C#core{effects = [E | C#core.effects]}.

send(To, Message, C) -> effect({send, To, Message}, C).

ask(Question, Why, C = #core{asked = undefined}) -> C#core{asked = {Question, Why}}.

then(Tasks, C) when is_list(Tasks) -> C#core{todo = Tasks ++ C#core.todo};
then(Task, C) -> C#core{todo = [Task | C#core.todo]}.
