-module(witness_explore_paper).
-moduledoc """
RIARC's choreography as the paper prints it, as pure functions: Algorithms 1 to 4 of the RIARC
text, with the handover of Algorithm 5 as questions. It is only explored: Witness runs
`m:witness_outline_core`, and the explorer shows why.

Every function names its algorithm and lines (`A1.13` is Algorithm 1, line 13). The words are the
paper's. `pi` is the routing map Π. `gamma` is the traced map Γ, where a process is `direct` (◦) or
`priority` (•). A *dispatcher* is a tracer that gathers events of a process that another tracer
owns. `dtc` is the request of the owner that the dispatcher detach the process, and also its
acknowledgement, which follows the process's last event along the route.

```
O (dispatcher of C)              T (own tracer of C's parent)         N (will own C)
|-- routed fork(P,C) ----------->| spwn(TRACER(C, O)) --------------->|
|                                |                                    | CLEAR(C, O): C off at O, and all
| C's last events are here now   |                                    | its events are in O's mailbox
|                                |                                    | TRACE(C, N): C on at N
|<------------------------------------------------------- dtc N C ----| priority mode: only what is
|-- routed e ------------------->|-- routed e ----------------------->| routed is handled
|-- routed dtc N C ------------->|-- routed dtc N C ----------------->| direct mode: the rest
```

## Interface

That of `m:witness_outline_core`, with other messages and questions. When TRYGC has ended a tracer, it
is done; messages that reach it later are lost (`lost/1`), as with an Erlang process. Tracers are never
lent twice.

## Readings

Where the text leaves something open:

- `init` is no event of the paper. Here it is one like `send` and `recv` (HANDLCOMM).
- A tracer has one monitor, for all that it analyses. Here monitors belong to processes; what a tracer
  analyses of a process that it does not trace goes to the monitor of its first one.
- CLEAR waits for the events of a process that has ended too, as the prose says (section 3); that
  line 14 of Algorithm 5 is not under the condition of line 10 cannot be seen in the print.
- The state that TRACER copies is the instrumentation map, which is a function here.

## Defects of the printed form

`defects/0` lists them. Each is as printed unless `mend` names it.
""".

-export([new/1, adopt/3, handle/2, answer/2, is_done/1, owned/1, routes/1, lost/1, defects/0]).

-export_type([core/0, message/0, effect/0, question/0, result/0, defect/0]).

-doc """
A defect of the printed form, by the place where it is:

- `'I4'`, `'I8'`, `'I16'`: an invariant of appendix B.2 that does not hold in each branch; it is asserted
  as it is printed;
- `'A3.32'`: a tracer ends although an acknowledgement is on its way to it, which is lost;
- `'A3.46'`: the acknowledgement for a process that has ended adds it to Γ again, so the tracer never ends;
- `'A3.47'`: a tracer goes to direct mode although the acknowledgement for a process that has ended is still on
  its way; when it comes, Algorithm 1 has no route for it (the `fail` of line 51);
- `'A3.51'`: a tracer in priority mode that forwards an acknowledgement keeps its route (against I12), so
  it never ends;
- `'A5.17'`: no tracer traces a process between CLEAR and TRACE; what it does then is lost, and its
  children are never traced. Mended, PREEMPT is one step, as section 3 assumes.
""".
-type defect() :: 'I4' | 'I8' | 'I16' | 'A3.32' | 'A3.46' | 'A3.47' | 'A3.51' | 'A5.17'.

-doc """
Messages: `own` is `evt`, gathered from the source; `routed` is `rtd`, with its dispatcher; `dtc` is a
request to the dispatcher. `take` starts a tracer: the arguments of TRACER.
""".
-type message() ::
    {own, stamped()}
  | {routed, Dispatcher :: tracer(), stamped() | detach()}
  | detach()
  | {take, witness_event:proc(), Dispatcher :: tracer(), witness_event:event(), label(), ask}.

-type detach() :: {dtc, Requester :: tracer(), witness_event:proc()}.
-type stamped() :: {Stamp :: integer() | none, witness_event:event() | {other, witness_event:proc()}}.
-type tracer() :: witness_outline_core:tracer().
-type label() :: witness_outline_core:label().

-doc "Effects, to be performed in order; as those of `m:witness_outline_core`.".
-type effect() ::
    {send, tracer(), message()}
  | {analyse, label(), stamped()}
  | {ended, witness_event:proc(), label()}.

-doc """
Questions, with their answers. `tracer` and `adopt` are those of `m:witness_outline_core`; the tracer must
be a fresh one. The others act on the source, for the tracer that asks, and are answered with `ok`:

- `{clear, P}`: the process is off wherever it is on, and its events have come into that tracer's mailbox;
- `{trace, P}`: it is on for this tracer, unless it has ended or another one has it;
- `{preempt, P}`: both in one step, then the wait.
""".
-type question() ::
    {tracer, witness_event:proc()}
  | {adopt, witness_event:proc(), witness_event:event(), label()}
  | {clear | trace | preempt, witness_event:proc()}.

-type result() :: {[effect()], done | question(), core()}.

%% monitor: the label of the first process, which is that of the tracer's monitor ς
%% mode: of the loop; mailbox: what is left in it by the selective receive of the priority mode, newest first
%% unacknowledged: requests for which no acknowledgement has come
%% requests, ended: how many dtc were sent, and how many processes ended; counted for I16 only
%% known, early: processes with a fork that has been seen; events before the fork, newest first; only with `reorder'
-record(paper, {self :: tracer(),
                assign :: witness_outline_core:assign(),
                mend :: [defect()],
                reorder :: boolean(),
                mode = direct :: direct | priority | terminated,
                monitor :: undefined | label(),
                pi = #{} :: #{witness_event:proc() => tracer()},
                gamma = #{} :: #{witness_event:proc() => {direct | priority, label()}},
                mailbox = [] :: [message()],
                unacknowledged = #{} :: #{witness_event:proc() => []},
                requests = 0 :: non_neg_integer(),
                ended = 0 :: non_neg_integer(),
                known = #{} :: #{witness_event:proc() => []},
                early = #{} :: #{witness_event:proc() => [stamped()]},
                todo = [] :: [message()],
                asked :: undefined | {question(), Why :: tuple()},
                effects = [] :: [effect()]}).

-opaque core() :: #paper{}.

-doc """
A tracer that traces nothing yet. `mend` names the defects that are mended, none without it. With
`reorder` events that come before the fork of their process wait for it, the extension of appendix B
for sources where A4 does not hold.
""".
-spec new(#{self := tracer(), assign := witness_outline_core:assign(), mend => [defect()], reorder => boolean(),
            _ => _}) -> core().
new(Given = #{self := Self, assign := Assign}) ->
    #paper{self = Self, assign = Assign, mend = maps:get(mend, Given, []), reorder = maps:get(reorder, Given, false)}.

-doc "ROOT (A6.4 to A6.8): the first process, which is on for this tracer; the loop is in direct mode.".
-spec adopt(witness_event:proc(), label(), core()) -> core().
adopt(P, Label, C = #paper{monitor = Monitor}) ->
    First = case Monitor of undefined -> Label; _ -> Monitor end,
    known(P, trace(P, direct, Label, C#paper{monitor = First})).

-doc "Whether TRYGC has ended the tracer.".
-spec is_done(core()) -> boolean().
is_done(#paper{mode = Mode}) -> Mode =:= terminated.

-doc "The processes in Γ with their labels.".
-spec owned(core()) -> [{witness_event:proc(), label()}].
owned(#paper{gamma = Gamma}) -> [{P, Label} || P := {_, Label} <- Gamma].

-doc "The next hops in Π.".
-spec routes(core()) -> [{witness_event:proc(), tracer()}].
routes(#paper{pi = Pi}) -> maps:to_list(Pi).

-doc "What came after the tracer had ended, in order of arrival; or still waits for a fork or for the direct mode.".
-spec lost(core()) -> [message()].
lost(#paper{mailbox = Mailbox, early = Early}) ->
    lists:reverse(Mailbox) ++ [{own, S} || _ := Events <- Early, S <- lists:reverse(Events)].

-doc "The defects of the printed form.".
-spec defects() -> [defect(), ...].
defects() -> ['I4', 'I8', 'I16', 'A3.32', 'A3.46', 'A3.47', 'A3.51', 'A5.17'].

-doc "Handles one message.".
-spec handle(message(), core()) -> result().
handle(Message, C = #paper{asked = undefined, todo = []}) -> run(C#paper{todo = [Message]}).

-doc "Continues with the answer to the question that was asked last.".
-spec answer(term(), core()) -> result().
answer(Answer, C = #paper{asked = {_, Why}}) -> run(answered(Why, Answer, C#paper{asked = undefined})).

run(C = #paper{asked = undefined, todo = [Message | Rest]}) -> run(receive_any(Message, C#paper{todo = Rest}));
run(C = #paper{asked = undefined}) -> {lists:reverse(C#paper.effects), done, i16(C#paper{effects = []})};
run(C = #paper{asked = {Question, _}}) -> {lists:reverse(C#paper.effects), Question, C#paper{effects = []}}.

%% A1.3 takes any message, A3.3 only routed ones. The first message of a tracer is `take': no other tracer knows its name
%% before, and it traces nothing.
receive_any(Message, C = #paper{mode = terminated}) -> leave(Message, C);
receive_any({take, P, Dispatcher, Fork, Label, _}, C) -> tracer(P, Dispatcher, Fork, Label, C);
receive_any({routed, Dispatcher, M}, C = #paper{mode = priority}) -> loop_priority(Dispatcher, M, C);
receive_any(Message, C = #paper{mode = priority}) -> leave(Message, C);
receive_any(Message, C = #paper{mode = direct}) -> loop_direct(Message, C).

leave(Message, C = #paper{mailbox = Mailbox}) -> C#paper{mailbox = [Message | Mailbox]}.

%% --- Algorithm 1: the direct mode ------------------------------------------------

%% LOOP◦ (A1.1 to A1.7), FORWDRTD◦ (A1.43 to A1.47)
loop_direct({own, {_, {other, _}}}, C) -> C;
loop_direct({own, S = {_, E}}, C = #paper{reorder = true, known = Known}) when not is_map_key(element(2, E), Known) ->
    wait_for_fork(S, C);
loop_direct({own, S}, C) -> handle_event_direct(S, C);
loop_direct({dtc, _, _} = D, C) -> dispatch_detach(D, C);
loop_direct({routed, Dispatcher, {dtc, _, _} = D}, C) -> forward_detach(Dispatcher, D, C);
loop_direct({routed, Dispatcher, S}, C) -> forward_event(Dispatcher, S, C).

%% HANDLEVT◦ (A1.8 to A1.12)
handle_event_direct(S = {_, E}, C) ->
    case element(1, E) of
        fork -> handle_spawn_direct(S, C);
        exit -> handle_exit_direct(S, C);
        _ -> handle_communication_direct(S, C)
    end.

%% HANDLSPWN◦ (A1.13 to A1.21)
handle_spawn_direct(S = {_, {fork, P, Child, _, _} = E}, C0) ->
    C = known(Child, C0),
    case next_hop(P, C) of
        undefined -> instrument(E, C#paper.self, analyse(S, C));
        Next -> add_route(Child, Next, dispatch(S, Next, C))
    end.

%% HANDLEXIT◦ (A1.22 to A1.29)
handle_exit_direct(S = {_, {exit, P, _, _}}, C) ->
    case next_hop(P, C) of
        undefined -> try_gc(untrace(P, analyse(S, C)));
        Next -> dispatch(S, Next, C)
    end.

%% HANDLCOMM◦ (A1.30 to A1.34)
handle_communication_direct(S = {_, E}, C) ->
    case next_hop(element(2, E), C) of
        undefined -> analyse(S, C);
        Next -> dispatch(S, Next, C)
    end.

%% DISPATCHDTC (A1.35 to A1.42): the request comes back as its own acknowledgement.
dispatch_detach({dtc, _, P} = D, C) ->
    case next_hop(P, C) of
        undefined -> error({invariant, 'I17', P});
        Next -> try_gc(remove_route(P, dispatch(D, Next, C)))
    end.

%% FORWDDTC (A1.48 to A1.56)
forward_detach(Dispatcher, {dtc, _, P} = D, C) ->
    case next_hop(P, C) of
        undefined -> error({invariant, 'I20', P});
        Next -> try_gc(remove_route(P, forward(Dispatcher, D, Next, C)))
    end.

%% FORWDEVT (A1.57 to A1.65)
forward_event(Dispatcher, S = {_, E}, C) ->
    P = element(2, E),
    case next_hop(P, C) of
        undefined -> error({invariant, 'I19', P});
        Next -> route_child(E, Next, forward(Dispatcher, S, Next, C))
    end.

%% A1.63, A1.64: the child's events will come the same way.
route_child({fork, _, Child, _, _}, Next, C) -> add_route(Child, Next, C);
route_child(_, _, C) -> C.

%% --- Algorithm 2: new processes --------------------------------------------------

%% INSTRUMENT◦ (A2.1 to A2.7), INSTRUMENT• (A2.8 to A2.15)
instrument({fork, P, Child, Signature, _} = E, Dispatcher, C) ->
    case (C#paper.assign)(Signature, label(P, C)) of
        {own, Label} -> ask({tracer, Child}, {tracer, E, Dispatcher, Label}, as_printed('I4', Child, C));
        {shared, Label} -> ask({adopt, Child, E, Label}, {adopt, Child, Dispatcher}, as_printed('I8', Child, C))
    end.

answered({tracer, {fork, _, Child, _, _} = E, Dispatcher, Label}, {Tracer, _}, C) ->     % A2.3, A2.4; A2.10, A2.11
    add_route(Child, Tracer, send(Tracer, {take, Child, Dispatcher, E, Label, ask}, C));
answered({adopt, Child, _}, Label, C = #paper{mode = direct}) ->                         % A2.6
    trace(Child, direct, Label, C);
answered({adopt, Child, Dispatcher}, Label, C = #paper{mode = priority}) ->              % A2.13, A2.14
    detach(Child, Dispatcher, trace(Child, priority, Label, C));
answered({first, P, Dispatcher}, Label, C) ->                                            % A4.12, A4.13
    First = known(P, C#paper{mode = priority, monitor = Label}),
    detach(P, Dispatcher, trace(P, priority, Label, First));
answered({clear, P, Dispatcher}, ok, C) -> ask({trace, P}, {traced, P, Dispatcher}, C);  % A5.18
answered({traced, P, Dispatcher}, ok, C = #paper{unacknowledged = Unacknowledged}) ->    % A4.6
    Requested = C#paper{unacknowledged = Unacknowledged#{P => []}, requests = C#paper.requests + 1},
    send(Dispatcher, {dtc, C#paper.self, P}, Requested).

%% --- Algorithm 3: the priority mode ----------------------------------------------

%% LOOP• (A3.1 to A3.8), HANDLEVT• (A3.9 to A3.14)
loop_priority(Dispatcher, {dtc, _, _} = D, C) -> handle_detach(Dispatcher, D, C);
loop_priority(Dispatcher, S = {_, E}, C) ->
    case element(1, E) of
        fork -> handle_spawn_priority(Dispatcher, S, C);
        exit -> handle_exit_priority(Dispatcher, S, C);
        _ -> handle_communication_priority(Dispatcher, S, C)
    end.

%% HANDLSPWN• (A3.15 to A3.25)
handle_spawn_priority(Dispatcher, S = {_, {fork, P, Child, _, _} = E}, C0) ->
    C = known(Child, C0),
    case next_hop(P, C) of
        undefined -> instrument(E, Dispatcher, analyse(S, C));
        Next -> add_route(Child, Next, forward(Dispatcher, S, Next, C))
    end.

%% HANDLEXIT• (A3.26 to A3.34)
handle_exit_priority(Dispatcher, S = {_, {exit, P, _, _}}, C) ->
    case next_hop(P, C) of
        undefined -> try_gc(untrace(P, analyse(S, C)));
        Next -> forward(Dispatcher, S, Next, C)
    end.

%% HANDLCOMM• (A3.35 to A3.40)
handle_communication_priority(Dispatcher, S = {_, E}, C) ->
    case next_hop(element(2, E), C) of
        undefined -> analyse(S, C);
        Next -> forward(Dispatcher, S, Next, C)
    end.

%% HANDLDTC (A3.41 to A3.52)
handle_detach(Dispatcher, {dtc, Requester, P} = D, C = #paper{self = Self}) ->
    case next_hop(P, C) of
        undefined when Requester =:= Self -> go_direct(acknowledged(P, C));
        Next when Next =/= undefined, Requester =/= Self -> forwarded(P, forward(Dispatcher, D, Next, C));
        _ -> error({invariant, 'I23', P})                                                % A3.45, A3.50
    end.

%% A3.46. As printed it marks the process whether or not it has ended.
acknowledged(P, C0 = #paper{unacknowledged = Unacknowledged, gamma = Gamma, monitor = Monitor}) ->
    C = C0#paper{unacknowledged = maps:remove(P, Unacknowledged)},
    case Gamma of
        #{P := {_, Label}} -> C#paper{gamma = Gamma#{P := {direct, Label}}};
        #{} ->
            case mended('A3.46', C) of
                false -> C#paper{gamma = Gamma#{P => {direct, Monitor}}};
                true -> C
            end
    end.

%% A3.47, A3.48: LOOP◦ begins with what the selective receive has left in the mailbox. The tracer that waited for an
%% acknowledgement may end now (A3.32 mended).
go_direct(C0) ->
    C = #paper{mode = Mode, mailbox = Mailbox} = case mended('A3.32', C0) of false -> C0; true -> try_gc(C0) end,
    case Mode =:= priority andalso all_detached(C) of
        true -> C#paper{mode = direct, mailbox = [], todo = lists:reverse(Mailbox) ++ C#paper.todo};
        false -> C
    end.

%% A3.47. As printed only processes in Γ count, and those that have ended are not in it.
all_detached(C = #paper{gamma = Gamma, unacknowledged = Unacknowledged}) ->
    [P || P := {priority, _} <- Gamma] =:= []
        andalso (map_size(Unacknowledged) =:= 0 orelse not mended('A3.47', C)).

%% A3.51. As printed the route stays.
forwarded(P, C) ->
    case mended('A3.51', C) of
        false -> C;
        true -> try_gc(remove_route(P, C))
    end.

%% --- Algorithm 4: what the loops use ---------------------------------------------

%% DISPATCH (A4.1, A4.2)
dispatch(M, Next, C) -> send(Next, {routed, C#paper.self, M}, C).

%% DETACH (A4.3 to A4.6), with PREEMPT (A5.15 to A5.18)
detach(P, Dispatcher, C) ->
    case mended('A5.17', C) of
        false -> ask({clear, P}, {clear, P, Dispatcher}, C);
        true -> ask({preempt, P}, {traced, P, Dispatcher}, C)
    end.

%% FORWD (A4.7, A4.8): the packet keeps the name of its dispatcher.
forward(Dispatcher, M, Next, C) -> send(Next, {routed, Dispatcher, M}, C).

%% TRYGC (A4.9, A4.10)
try_gc(C = #paper{gamma = Gamma, pi = Pi}) when map_size(Gamma) =:= 0, map_size(Pi) =:= 0 ->
    case mended('A3.32', C) andalso map_size(C#paper.unacknowledged) > 0 of
        false -> C#paper{mode = terminated};
        true -> C
    end;
try_gc(C) -> C.

%% TRACER (A4.11 to A4.14)
tracer(P, Dispatcher, Fork, Label, C) -> ask({adopt, P, Fork, Label}, {first, P, Dispatcher}, C).

%% --- ANALYSEEVT, and the maps with their invariants -----------------------------

analyse(S = {_, E}, C) ->
    P = element(2, E),
    Label = label(P, C),
    C1 = effect({analyse, Label, S}, C),
    case E of
        {exit, _, _, _} -> effect({ended, P, Label}, C1);
        _ -> C1
    end.

label(P, #paper{gamma = Gamma, monitor = Monitor}) ->
    case Gamma of
        #{P := {_, Label}} -> Label;
        #{} -> Monitor
    end.

next_hop(P, #paper{pi = Pi}) -> maps:get(P, Pi, undefined).

trace(P, Mode, Label, C = #paper{gamma = Gamma}) ->
    is_map_key(P, Gamma) andalso error({invariant, 'I2', P}),
    C#paper{gamma = Gamma#{P => {Mode, Label}}}.

untrace(P, C = #paper{gamma = Gamma, ended = Ended}) ->
    is_map_key(P, Gamma) orelse error({invariant, 'I3', P}),
    C#paper{gamma = maps:remove(P, Gamma), ended = Ended + 1}.

add_route(P, Next, C = #paper{pi = Pi}) ->
    is_map_key(P, Pi) andalso error({invariant, 'I6', P}),
    C#paper{pi = Pi#{P => Next}}.

remove_route(P, C = #paper{pi = Pi}) -> C#paper{pi = maps:remove(P, Pi)}.

%% --- the defects -----------------------------------------------------------------

mended(Defect, #paper{mend = Mend}) -> lists:member(Defect, Mend).

%% This branch violates the invariant as it is printed.
as_printed(Invariant, P, C) ->
    mended(Invariant, C) orelse error({invariant, Invariant, P}),
    C.

%% A tracer has sent as many requests as it has processes, past ones included.
i16(C = #paper{gamma = Gamma, requests = Requests, ended = Ended}) ->
    case mended('I16', C) of
        true -> C#paper{requests = 0, ended = 0};
        false when Requests =:= map_size(Gamma) + Ended -> C;
        false -> error({invariant, 'I16', C#paper.self})
    end.

%% --- reordering (appendix B) -----------------------------------------------------

wait_for_fork(S = {_, E}, C = #paper{early = Early}) ->
    C#paper{early = maps:update_with(element(2, E), fun(Events) -> [S | Events] end, [S], Early)}.

known(_, C = #paper{reorder = false}) -> C;
known(P, C = #paper{known = Known, early = Early}) ->
    Events = [{own, S} || S <- lists:reverse(maps:get(P, Early, []))],
    C#paper{known = Known#{P => []}, early = maps:remove(P, Early), todo = Events ++ C#paper.todo}.

%% --- effects and questions -------------------------------------------------------

effect(E, C) -> C#paper{effects = [E | C#paper.effects]}.

send(To, Message, C) -> effect({send, To, Message}, C).

ask(Question, Why, C = #paper{asked = undefined}) -> C#paper{asked = {Question, Why}}.
