-module(witness_replay_sleepers).
-moduledoc """
Who is held and sleeps, so that others can wake it before its time is over.

Each sleeps at an alias of its own, to which it is sent. When it gets up that is none any more, and what still came is taken away: a
message that stayed there would count as one that the process has not taken.
""".

-export([start/0, lies_down/3, sleep/2, gets_up/3, forget/2, wake/2, wake/1, wake/0]).

-export_type([for/0]).

-doc "What somebody sleeps for.".
-type for() :: integer().

-define(SLEEPERS, ?MODULE).

-doc "Makes the table.".
-spec start() -> ok.
start() ->
    ?SLEEPERS = ets:new(?SLEEPERS, [named_table, public, ordered_set]),
    ok.

-doc "The caller, who is this process, is going to sleep. From now on it can be woken. `End`: whose end wakes it too.".
-spec lies_down(for(), pos_integer(), End :: pid() | none) -> reference().
lies_down(For, Id, End) ->
    Alias = case End of none -> alias(); Pid -> monitor(process, Pid, [{alias, explicit_unalias}]) end,
    true = ets:insert(?SLEEPERS, {{For, Id}, Alias}),
    Alias.

-doc "It sleeps so many milliseconds at most.".
-spec sleep(reference(), non_neg_integer()) -> woken | ended | over.
sleep(Alias, Ms) ->
    receive
        Alias -> woken;
        {'DOWN', Alias, process, _, _} -> ended
    after Ms -> over
    end.

-doc "It goes on.".
-spec gets_up(for(), pos_integer(), reference()) -> ok.
gets_up(For, Id, Alias) ->
    ok = forget(For, Id),
    true = unalias(Alias),
    true = demonitor(Alias, [flush]),
    flushed(Alias).

flushed(Alias) -> receive Alias -> flushed(Alias) after 0 -> ok end.

-doc "It will not go on.".
-spec forget(for(), pos_integer()) -> ok.
forget(For, Id) ->
    true = ets:delete(?SLEEPERS, {For, Id}),
    ok.

-doc "Wakes this process, if it sleeps for that.".
-spec wake(for(), pos_integer()) -> ok.
wake(For, Id) -> lists:foreach(fun({_, Alias}) -> Alias ! Alias end, ets:lookup(?SLEEPERS, {For, Id})).

-doc "Wakes all who sleep for that.".
-spec wake(for()) -> ok.
wake(For) -> woken({For, '_'}).

-doc "Wakes all.".
-spec wake() -> ok.
wake() -> woken('_').

woken(Key) -> lists:foreach(fun(Alias) -> Alias ! Alias end, ets:select(?SLEEPERS, [{{Key, '$1'}, [], ['$1']}])).
