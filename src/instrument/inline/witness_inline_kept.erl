-module(witness_inline_kept).
-moduledoc """
What is kept of the monitors of a process for the time after its death.

An exit signal ends a process without running any of its code, and its dictionary goes with it. If the process *waited* at that
moment, its monitors have seen all that it did, and only its end is missing. So before a process waits it leaves here that it
does, and the state of its monitors, unless it has left that state before. The coordinator reads this when the process is dead.

**The cell** of a process is three numbers that only the process writes: its *mark*; how many of its events are in the count of
the run already; the number of the last row of events. The mark says how many events the monitors have seen, whether the process
waits, and the number of the state that it waits in. So to wait in a state that was left before costs one operation on an
atomic.

**Rows** of the table are written by the process before its mark, and deleted when it has ended:

| | |
|---|---|
| `{{P, Number}, State}` | a state of its only monitor |
| `{{P, covered}, Mask}` | the actions that this monitor has taken |
| `{{P, states}, Last, States}` | the states of several monitors, with rows of events up to `Last` in them |
| `{{P, {events, N}}, Events}` | events since then: they replace states that are large |

If there is no state, the state is that after the birth of the process, which the reader computes again.

While the mark says that the process waits, the rows are what it has seen. Otherwise they are what it had seen when it last waited:
something is missing, but what is known remains true.
""".

-export([new/0, new_cell/0, mark_waiting/3, unmark_waiting/1, mark_running/2, mark_unknown/2, put_count/2, put_state/3,
         put_coverage/2, put_states/4, add_events/3, delete_states/2, read/2, delete/2]).
-export_type([table/0, cell/0, state_number/0, found/0]).

-opaque table() :: ets:table().
-opaque cell() :: atomics:atomics_ref().

-type state_number() :: 0..14.

-doc """
`waits`: the process waited when it died; `gave_up`: it had stopped marking that it waits; `events`: the number of events that were
seen, of which `uncounted` are not in the count of the run.
`state`: of one monitor in `mark_waiting/3`, or of several; `later`: what `add_events/3` was given since, the oldest first.
""".
-type found() :: #{waits := boolean(), gave_up := boolean(), events := non_neg_integer(), uncounted := non_neg_integer(),
                   covered := non_neg_integer(),
                   state := none | unknown | {one, term()} | {several, term()}, later := [term()]}.

-define(UNKNOWN_STATE, 15).

-doc "A table of the calling process.".
-spec new() -> table().
new() -> ets:new(?MODULE, [public, {write_concurrency, true}, {decentralized_counters, true}]).

-spec new_cell() -> cell().
new_cell() -> atomics:new(3, []).

%% The process that the entries describe calls these functions. Without a coordinator there is no table, and no reader.

-doc "The process waits in this state, after so many events.".
-spec mark_waiting(cell(), Events :: non_neg_integer(), state_number()) -> ok.
mark_waiting(Cell, Events, Number) -> atomics:put(Cell, 1, Events bsl 5 bor (Number bsl 1 bor 1)).

-doc "The process no longer waits. Its mark says that it does.".
-spec unmark_waiting(cell()) -> ok.
unmark_waiting(Cell) -> atomics:sub(Cell, 1, 1).

-doc "From now on the process does not mark that it waits: it has too many states.".
-spec mark_unknown(cell(), Events :: non_neg_integer()) -> ok.
mark_unknown(Cell, Events) -> atomics:put(Cell, 1, Events bsl 5 bor (?UNKNOWN_STATE bsl 1)).

-doc "The process acts, whether it waited or not.".
-spec mark_running(cell(), Events :: non_neg_integer()) -> ok.
mark_running(Cell, Events) -> atomics:put(Cell, 1, Events bsl 5).

-doc "This number of events is in the count of the run.".
-spec put_count(cell(), Events :: non_neg_integer()) -> ok.
put_count(Cell, Events) -> atomics:put(Cell, 2, Events).

-doc "A state of the only monitor. The process must not wait in a state that had this number before.".
-spec put_state(table(), 0..14, term()) -> ok.
put_state(Table, Number, State) -> insert(Table, {{self(), Number}, State}).

-doc "The actions that the only monitor has taken.".
-spec put_coverage(table(), non_neg_integer()) -> ok.
put_coverage(Table, Mask) -> insert(Table, {{self(), covered}, Mask}).

-doc "The states of several monitors. Rows of events up to `Before` are deleted already. Returns the number of the last row that is now.".
-spec put_states(table(), cell(), Before :: non_neg_integer(), States :: term()) -> Last :: non_neg_integer().
put_states(Table, Cell, Before, States) ->
    Last = atomics:get(Cell, 3),
    ok = insert(Table, {{self(), states}, Last, States}),
    ok = delete_events({self(), Cell}, Before, Table),
    Last.

-doc "Further events, in the form that the caller chooses.".
-spec add_events(table(), cell(), Events :: term()) -> ok.
add_events(Table, Cell, Events) -> insert(Table, {{self(), {events, atomics:add_get(Cell, 3, 1)}}, Events}).

-doc "The only monitor has ended: deletes this number of states that the process has left.".
-spec delete_states(table(), States :: non_neg_integer()) -> ok.
delete_states(Table, States) ->
    try lists:foreach(fun(Key) -> ets:delete(Table, {self(), Key}) end, [covered | lists:seq(0, States - 1)])
    catch error:badarg -> ok
    end.

insert(Table, Row) ->
    try true = ets:insert(Table, Row), ok
    catch error:badarg -> ok
    end.

-doc "Reads what a dead process has left.".
-spec read({pid(), cell()}, table()) -> found().
read({P, Cell}, Table) ->
    Mark = atomics:get(Cell, 1),
    Events = Mark bsr 5,
    Waits = Mark band 1 =:= 1,
    Number = (Mark bsr 1) band 15,
    {Last, State} = find_state(P, Waits, Number, Table),
    #{waits => Waits, gave_up => Number =:= ?UNKNOWN_STATE, events => Events, uncounted => max(0, Events - atomics:get(Cell, 2)),
      state => State, covered => ets:lookup_element(Table, {P, covered}, 2, 0),
      later => [Later || N <- lists:seq(Last + 1, atomics:get(Cell, 3)), {_, Later} <- ets:lookup(Table, {P, {events, N}})]}.

find_state(_, false, ?UNKNOWN_STATE, _) -> {0, unknown};
find_state(P, Waits, Number, Table) ->
    case {ets:lookup(Table, {P, states}), ets:lookup(Table, {P, Number})} of
        {[{_, Last, States}], _} -> {Last, {several, States}};
        {[], [{_, State}]} when Waits -> {0, {one, State}};
        {[], []} -> {0, none};
        %% The process has been in that state, but need not be in it now.
        {[], _} -> {0, unknown}
    end.

-doc "Deletes what a process has left.".
-spec delete({pid(), cell()}, table()) -> ok.
delete({P, _} = Of, Table) ->
    try
        Last = ets:lookup_element(Table, {P, states}, 2, 0),
        lists:foreach(fun(Key) -> ets:delete(Table, {P, Key}) end, [covered, states | lists:seq(0, ?UNKNOWN_STATE - 1)]),
        delete_events(Of, Last, Table)
    catch
        error:badarg -> ok
    end.

%% Rows up to `Before' are deleted already.
delete_events({P, Cell}, Before, Table) ->
    try lists:foreach(fun(N) -> ets:delete(Table, {P, {events, N}}) end, lists:seq(Before + 1, atomics:get(Cell, 3)))
    catch error:badarg -> ok
    end.
