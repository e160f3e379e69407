-module(witness_replay_parking).
-moduledoc """
Parks blocked processes (`m:witness_replay_backpressure`), so that others can wake them before their time is over.

Each parked process makes an alias of its own, and wake-up messages go to that alias. *Invariant:* a process that goes on has no
wake-up message in its mailbox. Such a message would count as one that the process has not taken. So when a process is unparked,
it deactivates its alias, and removes the wake-up messages that came before.
""".

-export([start/0, park/3, sleep/2, unpark/3, forget/2, wake/2, wake/1, wake/0]).

-export_type([for/0]).

-doc "The state in `m:witness_replay_backpressure` of a parked process: what it waits for.".
-type for() :: integer().

-define(PARKED, ?MODULE).

-doc "Makes the table.".
-spec start() -> ok.
start() ->
    ?PARKED = ets:new(?PARKED, [named_table, public, ordered_set]),
    ok.

-doc """
The caller, which is process `Id`, is going to sleep. From now on it can be woken. `End`: the end of this process wakes it too.
""".
-spec park(for(), pos_integer(), End :: pid() | none) -> reference().
park(For, Id, End) ->
    Alias = case End of none -> alias(); Pid -> monitor(process, Pid, [{alias, explicit_unalias}]) end,
    true = ets:insert(?PARKED, {{For, Id}, Alias}),
    Alias.

-doc "It sleeps this many milliseconds at most.".
-spec sleep(reference(), non_neg_integer()) -> woken | ended | over.
sleep(Alias, Ms) ->
    receive
        Alias -> woken;
        {'DOWN', Alias, process, _, _} -> ended
    after Ms -> over
    end.

-doc "It is unparked, and goes on.".
-spec unpark(for(), pos_integer(), reference()) -> ok.
unpark(For, Id, Alias) ->
    ok = forget(For, Id),
    true = unalias(Alias),
    true = demonitor(Alias, [flush]),
    flush(Alias).

flush(Alias) -> receive Alias -> flush(Alias) after 0 -> ok end.

-doc "It cannot be woken any more.".
-spec forget(for(), pos_integer()) -> ok.
forget(For, Id) ->
    true = ets:delete(?PARKED, {For, Id}),
    ok.

-doc "Wakes this process, if it sleeps in that state.".
-spec wake(for(), pos_integer()) -> ok.
wake(For, Id) -> lists:foreach(fun({_, Alias}) -> Alias ! Alias end, ets:lookup(?PARKED, {For, Id})).

-doc "Wakes all that sleep in that state.".
-spec wake(for()) -> ok.
wake(For) -> wake_all({For, '_'}).

-doc "Wakes all.".
-spec wake() -> ok.
wake() -> wake_all('_').

wake_all(Key) -> lists:foreach(fun(Alias) -> Alias ! Alias end, ets:select(?PARKED, [{{Key, '$1'}, [], ['$1']}])).
