-module(witness_monitor_stop_time).
-moduledoc """
The time up to which a run has watched its system, for monitors with deadlines.

A run that stops takes the time, and then sees to it that all events from before reach their monitors, and its log. If that was so, it notes
the time before the monitors are told that watching has ended. So deadlines before it have passed, also where the system was silent, and
the log says the same. If it was not so, as in a system that never rests, the time stays unknown, and only those deadlines have passed that
passed before.
""".

-export([none/0, new/0, is_wanted/1, note/2, read/1]).
-export_type([stop_time/0]).

-opaque stop_time() :: none | atomics:atomics_ref().

%% No monotonic time: some 292 years before the VM began.
-define(UNKNOWN, -(1 bsl 63)).

-doc "A time that is never known.".
-spec none() -> stop_time().
none() -> none.

-doc "The time is not known yet.".
-spec new() -> stop_time().
new() ->
    Stop = atomics:new(1, []),
    ok = atomics:put(Stop, 1, ?UNKNOWN),
    Stop.

-doc "Whether it is worth while to learn the time.".
-spec is_wanted(stop_time()) -> boolean().
is_wanted(Stop) -> Stop =/= none.

-doc "All events before this time, in nanoseconds, have been handed to their monitors, or will be before they are told of the stop.".
-spec note(Time :: integer(), stop_time()) -> ok.
note(Time, Stop) when Stop =/= none -> atomics:put(Stop, 1, Time).

-doc "The time, if it was noted.".
-spec read(stop_time()) -> integer() | unknown.
read(none) -> unknown;
read(Stop) ->
    case atomics:get(Stop, 1) of
        ?UNKNOWN -> unknown;
        Time -> Time
    end.
