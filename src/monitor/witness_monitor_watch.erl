-module(witness_monitor_watch).
-moduledoc """
The timer of a process with monitors that wait for deadlines: one for all of them, set for the first deadline.

Times are those of events: nanoseconds of the VM's monotonic clock. When the timer fires, the process has to find out up to which time
all events have arrived before it may say that a deadline has passed.
""".

-export([new/0, set/2, fired/2]).
-export_type([watch/0]).

-opaque watch() :: none | {At :: integer(), Timer :: reference()}.

-doc "No timer.".
-spec new() -> watch().
new() -> none.

-doc """
Has the message `{timeout, Timer, deadline}` sent to the calling process soon after this time. A timer that is set for an earlier time
stays: it costs less to let it fire in vain than to replace it with each deadline that is met.
""".
-spec set(At :: integer() | none, watch()) -> watch().
set(none, Watch) -> Watch;
set(At, {Set, _} = Watch) when Set =< At -> Watch;
set(At, Watch) ->
    _ = [erlang:cancel_timer(Timer, [{async, true}, {info, false}]) || {_, Timer} <- [Watch]],
    {At, erlang:start_timer(erlang:convert_time_unit(At, nanosecond, millisecond) + 1, self(), deadline, [{abs, true}])}.

-doc "The timer of a message has fired, unless it was replaced.".
-spec fired(Timer :: reference(), watch()) -> {ok, watch()} | replaced.
fired(Timer, {_, Timer}) -> {ok, none};
fired(_, _) -> replaced.
