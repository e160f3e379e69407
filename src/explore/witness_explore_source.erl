-module(witness_explore_source).
-moduledoc """
The smallest sources of events: in which sessions each process is on, and what is on its way.

There is a queue for each tracer and process: the events of one process reach one tracer in order (S1 of
`docs/internals/outline.md`), everything else comes at any time. A tracer takes from any of its queues.

- `vm`: the VM's tracing. A process is on in any number of sessions, newest first, and each of its events goes to each
  of them. A child is born into the sessions of its parent, with their stamps (measured: in reverse). So events of a
  child can be taken before its fork, and children of an overlap are born twice.
- `ideal`: that of the paper. A process is on in one session (A3), which its children inherit (A2), and a fork is taken
  before what its child did (A4). To share a process is to move it, in one step; a mark that is no event follows what is
  on its way (`{other, P}`).
- `birth`: a process that is to have a tracer of its own is born into the session of that tracer, and into no other. Its
  events wait there until the tracer knows of the process.

Stamps are compared only between events, cuts and moments of one process. So here they count what has happened to it.
The N-th event in the session at place I has the stamp `16 * N + I` (newer sessions stamp an event earlier: S5), and a
moment after it is `16 * N + 15`. So states that differ in nothing but the time are one state.
""".

-export([new/3, emit/4, add_birth/4, remove/2, heads/1, queues/1, look/2, take/2, now/1]).
-export([on/2, is_on/3, is_only_on/4, switch_on/4, switch_off/3, stamp/4, move/5]).

-export_type([source/0, kind/0, stamps/0]).

-type kind() :: ideal | vm | birth.

-doc "Whether every event has a stamp, or those of processes that are being handed over (`m:witness_trace_evm`).".
-type stamps() :: always | handover.

-type process() :: witness_explore_system:process().
-type tracer() :: neg_integer().

%% on: for each process its sessions as {Tracer, Stamped}; queues: what is on its way, oldest first
-record(source, {kind :: kind(),
                 stamps :: stamps(),
                 on :: tuple(),
                 queues = #{} :: #{{tracer(), process()} => [witness_trace:stamped(), ...]}}).

-opaque source() :: #source{}.

-define(SCALE, 16).

-doc "A source for a number of processes, none of which is on.".
-spec new(kind(), stamps(), pos_integer()) -> source().
new(Kind, Stamps, Size) -> #source{kind = Kind, stamps = Stamps, on = erlang:make_tuple(Size, [])}.

-doc "A moment after so much has happened to a process, as a stamp.".
-spec now(non_neg_integer()) -> integer().
now(Count) when is_integer(Count) -> ?SCALE * Count + ?SCALE - 1.

-doc "Something happens to a process, as the N-th.".
-spec emit(process(), N :: pos_integer(), witness_event:event() | {other, process()}, source()) -> source().
emit(P, N, Event, S = #source{on = On}) -> emit(element(P, On), 0, P, ?SCALE * N, Event, S).

emit([], _, _, _, _, S) -> S;
emit([{T, Stamped} | Sessions], I, P, Base, Event, S) ->
    Stamp = case Stamped of true -> Base + I; false -> none end,
    emit(Sessions, I + 1, P, Base, Event, push({T, P}, {Stamp, Event}, S)).

push(Key, Stamped, S = #source{queues = Queues}) ->
    S#source{queues = case Queues of
                          #{Key := Queue} -> Queues#{Key := Queue ++ [Stamped]};
                          #{} -> Queues#{Key => [Stamped]}
                      end}.

-doc "A process is born. `Own`: the tracer of the only session into which it is born.".
-spec add_birth(process(), Parent :: process(), Own :: tracer() | none, source()) -> source().
add_birth(C, P, none, S = #source{on = On}) -> S#source{on = setelement(C, On, lists:reverse(element(P, On)))};
add_birth(C, _, Own, S = #source{on = On, stamps = Stamps}) -> S#source{on = setelement(C, On, [{Own, Stamps =:= always}])}.

-doc "A process has ended.".
-spec remove(process(), source()) -> source().
remove(P, S = #source{on = On}) -> S#source{on = setelement(P, On, [])}.

-doc """
The queues from which a tracer can take. If A4 holds, what a child did waits for its fork.
""".
-spec heads(source()) -> [{tracer(), process()}].
heads(#source{kind = vm, queues = Queues}) -> maps:keys(Queues);
heads(#source{queues = Queues}) ->
    Forks = [{T, C} || {T, _} := Queue <- Queues, {_, {fork, _, C, _, _}} <- Queue],
    [Key || Key := _ <- Queues, not lists:member(Key, Forks)].

-doc "The queues that are not empty.".
-spec queues(source()) -> [{tracer(), process()}].
queues(#source{queues = Queues}) -> maps:keys(Queues).

-doc "What is on its way from a process to a tracer, oldest first.".
-spec look({tracer(), process()}, source()) -> [witness_trace:stamped()].
look(Key, #source{queues = Queues}) -> maps:get(Key, Queues, []).

-doc "The next event of a queue that is not empty.".
-spec take({tracer(), process()}, source()) -> {witness_trace:stamped(), source()}.
take(Key, S = #source{queues = Queues}) ->
    case Queues of
        #{Key := [Stamped]} -> {Stamped, S#source{queues = maps:remove(Key, Queues)}};
        #{Key := [Stamped | Rest]} -> {Stamped, S#source{queues = Queues#{Key := Rest}}}
    end.

-doc "The tracers that have a process on in their sessions, newest first.".
-spec on(process(), source()) -> [tracer()].
on(P, #source{on = On}) -> [T || {T, _} <- element(P, On)].

-doc "Whether a process is on in the session of a tracer.".
-spec is_on(tracer(), process(), source()) -> boolean().
is_on(T, P, #source{on = On}) -> lists:keymember(T, 1, element(P, On)).

-doc "Whether a process is on in the session of this tracer, with stamps or without, and in no other.".
-spec is_only_on(tracer(), process(), Stamped :: boolean(), source()) -> boolean().
is_only_on(T, P, Stamped, #source{on = On}) -> element(P, On) =:= [{T, Stamped}].

-doc "Switches a process on in a session, with stamps or without.".
-spec switch_on(tracer(), process(), Stamped :: boolean(), source()) -> source().
switch_on(T, P, Stamped, S = #source{on = On}) ->
    Sessions = element(P, On),
    New = case lists:keymember(T, 1, Sessions) of
        true -> lists:keyreplace(T, 1, Sessions, {T, Stamped});
        false -> [{T, Stamped} | Sessions]
    end,
    S#source{on = setelement(P, On, New)}.

-doc "Switches a process off in a session; what is on its way still arrives.".
-spec switch_off(tracer(), process(), source()) -> source().
switch_off(T, P, S = #source{on = On}) -> S#source{on = setelement(P, On, lists:keydelete(T, 1, element(P, On)))}.

-doc "Switches the stamps of a process on or off in a session where it is on.".
-spec stamp(tracer(), process(), boolean(), source()) -> source().
stamp(T, P, Stamped, S = #source{on = On}) ->
    S#source{on = setelement(P, On, lists:keyreplace(T, 1, element(P, On), {T, Stamped}))}.

-doc """
Moves a process after the N-th thing that happened to it from one session to another, in one step, and marks the end
of the first.
""".
-spec move(process(), From :: tracer(), To :: tracer(), N :: non_neg_integer(), source()) -> source().
move(P, From, To, N, S) ->
    push({From, P}, {now(N) + 1, {other, P}}, switch_on(To, P, true, switch_off(From, P, S))).
