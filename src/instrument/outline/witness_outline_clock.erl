-module(witness_outline_clock).
-moduledoc """
The clock of a tracer, for readers that put the events of several processes in order (`m:witness_monitor_reorder`).

A reader releases the events that it keeps when no earlier event can come any more. A tick carries the time at which it was
due. When the tracer handles the tick, it has handled everything that was in its mailbox at that time, however late it is.
So a reader may release events up to that time less the window. Ticks come every half window as long as they are needed: a
few after the last event of a reader. While a process of the partition is being handed over, its events may be on a detour.
So ticks wait for that, but not for ever.
""".

-export([new/1, note_events/3, keep_ticking/2, clear_timer/1, tick/3]).
-export_type([clock/0, reader/0]).

%% How many ticks a clock waits for a handover to end, and how many come after the last event of a reader: two cover the
%% window, since a tick is half of it.
-define(MAX_SETTLING_TICKS, 40).
-define(TICKS_AFTER_EVENT, 3).

%% ticking: readers with the ticks that they still need
-record(clock, {window :: pos_integer(),
                ticking = #{} :: #{reader() => pos_integer()},
                patience = ?MAX_SETTLING_TICKS :: non_neg_integer(),
                timer :: undefined | reference()}).

-opaque clock() :: #clock{}.

-type reader() :: pid() | witness_central_monitors:clock().

-doc "A clock that no reader needs yet. The window is in milliseconds.".
-spec new(pos_integer()) -> clock().
new(Window) -> #clock{window = Window}.

-doc "Events were given to these readers. Those in `Alive` read several processes, some of which are alive, and need ticks.".
-spec note_events([reader()], Alive :: #{reader() => term()}, clock()) -> clock().
note_events(Readers, Alive, C) when map_size(Alive) > 0 ->
    Ticking = lists:foldl(fun(Reader, A) when is_map_key(Reader, Alive) -> A#{Reader => ?TICKS_AFTER_EVENT};
                             (_, A) -> A
                          end, C#clock.ticking, Readers),
    schedule(C#clock{ticking = Ticking});
note_events(_, _, C) -> C.

-doc "Only these readers still need ticks.".
-spec keep_ticking(Alive :: #{reader() => term()}, clock()) -> clock().
keep_ticking(Alive, C = #clock{ticking = Ticking}) -> C#clock{ticking = maps:intersect(Alive, Ticking)}.

-doc "The message `{tick, Due}` has come.".
-spec clear_timer(clock()) -> clock().
clear_timer(C) -> C#clock{timer = undefined}.

-doc "The readers that a tick notifies, with a time in nanoseconds. `Settling`: a process of the partition is being handed over.".
-spec tick(Due :: integer(), Settling :: boolean(), clock()) -> {[{reader(), integer()}], clock()}.
tick(_, true, C = #clock{patience = Patience}) when Patience > 0 ->
    {[], schedule(C#clock{patience = Patience - 1})};
tick(Due, _, C = #clock{window = Window, ticking = Ticking}) ->
    Time = Due - erlang:convert_time_unit(Window, millisecond, nanosecond),
    Left = #{Reader => N - 1 || Reader := N <- Ticking, N > 1},
    {[{Reader, Time} || Reader := _ <- Ticking], schedule(C#clock{ticking = Left, patience = ?MAX_SETTLING_TICKS})}.

schedule(C = #clock{timer = undefined, ticking = Ticking, window = Window}) when map_size(Ticking) > 0 ->
    Due = erlang:monotonic_time(millisecond) + max(1, Window div 2),
    Nanoseconds = erlang:convert_time_unit(Due, millisecond, nanosecond),
    C#clock{timer = erlang:send_after(Due, self(), {tick, Nanoseconds}, [{abs, true}])};
schedule(C) -> C.
