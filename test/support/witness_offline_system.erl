-module(witness_offline_system).
-moduledoc """
The paper's system of P, Q and R (RIARC text, sections 2.1 and 4.2) as logs, and what monitors have to be given of each.

```
P: init  fork(Q)  Q ! a, Q ! a                             exit
Q:       init     ? a, ? a      fork(R)  R ! b, R ! b      exit
R:       init                            ? b, ? b          exit
```

A log is any interleaving of the three lives: 27,720, with two messages that follow each other as one.

The oracle (`arrived/2`, `expected/2`) knows only this: the earliest item of a known process that has come is next; a
`fork` makes its child known; the birth of a process comes first, made from its fork where the log has none.
""".
-export([set_up_of/3, set_ups/0, name/1, lives/0, lives_without_births/0, items/1, logs/1, pid/1, signature/1]).
-export([oracle/1, arrived/2, root/1, waits/1, expected/2, births_made/1, expected_of/2]).

-export_type([process/0, partition/0, event/0, oracle/0]).

-type process() :: p | q | r.
-doc "What one monitor reads; its first process is the one that it was started for.".
-type partition() :: [process(), ...].
-doc "One item, or two messages that follow each other (`items/1`).".
-type event() :: atom().

%% waits: what came, earliest first; known: processes with delivered items; born: those of them without an item yet, with the fork
%% out: what was delivered, newest first
-record(oracle, {waits = [] :: [{pos_integer(), witness_event:item()}],
                 known :: [pid()],
                 born = #{} :: #{pid() => {pos_integer(), witness_event:item()}},
                 out = [] :: [{pos_integer(), witness_event:item(), told | made}]}).

-opaque oracle() :: #oracle{}.

-doc "Every set-up that inheritance can reach.".
-spec set_ups() -> [[partition()]].
set_ups() ->
    [[[p], [q], [r]], [[p], [q, r]], [[p, q], [r]], [[p, q, r]], [[p]], [[q]], [[r]], [], [[p], [q]], [[p], [r]],
     [[q], [r]], [[p, q]], [[q, r]]].

-spec name([partition()]) -> string().
name(SetUp) -> lists:flatten([["{", lists:join(",", [atom_to_list(P) || P <- Ps]), "}"] || Ps <- SetUp]).

-spec lives() -> [[event()]].
lives() -> [[p_init, p_fork, p_send, p_exit], [q_init, q_recv, q_fork, q_send, q_exit], [r_init, r_recv, r_exit]].

-spec lives_without_births() -> [[event()]].
lives_without_births() -> [[E || E <- Life, element(1, hd(items(E))) =/= init] || Life <- lives()].

-spec pid(process()) -> pid().
pid(p) -> list_to_pid("<0.1.0>");
pid(q) -> list_to_pid("<0.2.0>");
pid(r) -> list_to_pid("<0.3.0>").

-spec signature(process()) -> witness_event:signature().
signature(P) -> {sys, P, []}.

-spec items(event()) -> [witness_event:item()].
items(p_init) -> [{init, pid(p), undefined, signature(p), undefined}];
items(p_fork) -> [{fork, pid(p), pid(q), signature(q), undefined}];
items(p_send) -> [{send, pid(p), pid(q), {a, N}, undefined} || N <- [1, 2]];
items(p_exit) -> [{exit, pid(p), normal, undefined}];
items(q_init) -> [{init, pid(q), pid(p), signature(q), undefined}];
items(q_recv) -> [{recv, pid(q), pid(p), {a, N}, undefined} || N <- [1, 2]];
items(q_fork) -> [{fork, pid(q), pid(r), signature(r), undefined}];
items(q_send) -> [{send, pid(q), pid(r), {b, N}, undefined} || N <- [1, 2]];
items(q_exit) -> [{exit, pid(q), normal, undefined}];
items(r_init) -> [{init, pid(r), pid(q), signature(r), undefined}];
items(r_recv) -> [{recv, pid(r), pid(q), {b, N}, undefined} || N <- [1, 2]];
items(r_exit) -> [{exit, pid(r), killed, undefined}].

-doc "All interleavings of lives.".
-spec logs([[event()]]) -> [[event()]].
logs([]) -> [[]];
logs(Lives) ->
    [[E | Rest] || [E | Tail] <- Lives, Rest <- logs([L || L <- [Tail | Lives -- [[E | Tail]]], L =/= []])].

-doc "Nothing has come; these processes are the roots, as far as they are known already.".
-spec oracle([pid()]) -> oracle().
oracle(Known) -> #oracle{known = Known}.

-doc "Items have come, with their lines.".
-spec arrived([{pos_integer(), witness_event:item()}], oracle()) -> oracle().
arrived(Items, Oracle) -> lists:foldl(fun(Item, O) -> delivered(came(Item, O)) end, Oracle, Items).

came({_, {init, P, undefined, _, _}} = Item, O = #oracle{known = Known, waits = Waits}) ->
    O#oracle{known = lists:usort([P | Known]), waits = Waits ++ [Item]};
came(Item, O = #oracle{waits = Waits}) ->
    O#oracle{waits = Waits ++ [Item]}.

delivered(O = #oracle{waits = Waits, known = Known}) ->
    case [Item || {_, E} = Item <- Waits, lists:member(element(2, E), Known)] of
        [Next | _] -> delivered(deliver(Next, O#oracle{waits = lists:delete(Next, Waits)}));
        [] -> O
    end.

deliver({Line, E}, O0 = #oracle{born = Born, out = Out}) ->
    P = element(2, E),
    O = case Born of
        #{P := {ForkLine, {fork, Parent, P, Signature, Ts}}} when element(1, E) =/= init ->
            O0#oracle{out = [{ForkLine, {init, P, Parent, Signature, Ts}, made} | Out], born = maps:remove(P, Born)};
        #{} -> O0#oracle{born = maps:remove(P, Born)}
    end,
    forked({Line, E}, O#oracle{out = [{Line, E, told} | O#oracle.out]}).

forked({_, {fork, _, C, _, _}} = Fork, O = #oracle{known = Known, born = Born}) ->
    O#oracle{known = [C | Known], born = Born#{C => Fork}};
forked(_, O) -> O.

-doc "The log has ended. If it does not name the root, the root is P, the one process that no other has spawned.".
-spec root(oracle()) -> oracle().
root(O = #oracle{known = []}) -> delivered(O#oracle{known = [pid(p)]});
root(O) -> O.

-doc "How many items wait.".
-spec waits(oracle()) -> non_neg_integer().
waits(#oracle{waits = Waits}) -> length(Waits).

-doc "How many births were made from forks.".
-spec births_made(oracle()) -> non_neg_integer().
births_made(#oracle{out = Out}) -> length([made || {_, _, made} <- Out]).

-doc """
What the monitor of a partition is given, with lines: it starts with the fork of its process, or with the first item
of a root, and is complete with the last exit of its processes.
""".
-spec expected(partition(), oracle()) -> {pid(), [{pos_integer(), term()}]}.
expected([First | _] = Partition, #oracle{out = Newest}) ->
    Out = lists:reverse(Newest),
    P = pid(First),
    Read = [{L, E} || {L, E, _} <- Out, lists:member(element(2, E), [pid(Name) || Name <- Partition])],
    [{Start, Signature} | _] = [{L, S} || {L, {fork, _, C, S, _}, _} <- Out, C =:= P]
                               ++ [{L, S} || {L, {init, C, undefined, S, _}, _} <- Out, C =:= P],
    {Last, {exit, _, _, _}} = lists:last(Read),
    {P, [{Start, {start, P, Signature}}] ++ Read ++ [{Last, complete}]}.

-doc "The same of a whole log that names its root.".
-spec expected_of(partition(), [event()]) -> {pid(), [{pos_integer(), term()}]}.
expected_of(Partition, Log) ->
    expected(Partition, arrived(lists:enumerate(lists:append([items(E) || E <- Log])), oracle([]))).

%% The partitions that come of how each process is named: P, its child Q, and its child R. Second: the group that a
%% child joins.
set_up_of([], _, SetUp) -> lists:sort(SetUp);
set_up_of([{P, single} | Ps], _, SetUp) -> set_up_of(Ps, none, [[P] | SetUp]);
set_up_of([{P, group} | Ps], _, SetUp) -> set_up_of(Ps, [P], [[P] | SetUp]);
set_up_of([{P, unnamed} | Ps], Group, SetUp) when is_list(Group) ->
    Larger = Group ++ [P],
    set_up_of(Ps, Larger, [Larger | SetUp -- [Group]]);
set_up_of([_ | Ps], _, SetUp) -> set_up_of(Ps, none, SetUp).
