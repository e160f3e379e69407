-module(witness_monitor_expiry).
-moduledoc """
Keys with times, and which of these times were more than a limit ago. Pure.

Two things expire: slices that have had no event for too long, by the time of their last event, and monitors and slices with a
deadline, by this time without a limit. Time is that of the trace: nanoseconds in the events. An event without a time makes no slice
older, and a slice without timed events is never idle. Each call costs the logarithm of the number of keys.
""".

-export([before_all/0, new/1, touch/3, set/3, forget/2, due/2, next/1, save/1, load/2]).
-export_type([idle/0, key/0, saved/0]).

-doc "A slice or a monitor.".
-type key() :: term().

%% Ordered by time; keys with the same time by their numbers, in the order in which they were given it.
-record(idle, {limit :: non_neg_integer(),
               last = #{} :: #{key() => {integer(), Number :: pos_integer()}},
               order = gb_trees:empty() :: gb_trees:tree({integer(), pos_integer()}, key()),
               number = 0 :: non_neg_integer()}).

-opaque idle() :: #idle{}.

-doc "The keys with their times, the oldest one first.".
-type saved() :: [{key(), integer()}].

-doc "A time before every time of an event: 64 bits hold them in nanoseconds.".
-spec before_all() -> integer().
before_all() -> -(1 bsl 63).

-doc "No keys.".
-spec new(Milliseconds :: non_neg_integer()) -> idle().
new(Milliseconds) -> #idle{limit = erlang:convert_time_unit(Milliseconds, millisecond, nanosecond)}.

-doc "The time of a key, in place of an earlier one.".
-spec touch(key(), witness_event:ts(), idle()) -> idle().
touch(_, undefined, Idle) -> Idle;
touch(Key, Time, #idle{last = Last} = Idle) when element(1, map_get(Key, Last)) =:= Time -> Idle;
touch(Key, Time, Idle) ->
    I = #idle{last = Last, order = Order, number = Number} = forget(Key, Idle),
    At = {Time, Number + 1},
    I#idle{last = Last#{Key => At}, order = gb_trees:insert(At, Key, Order), number = Number + 1}.

-doc "The deadline of a key, in place of an earlier one; `none`: it has none any more.".
-spec set(key(), integer() | none, idle()) -> idle().
set(Key, none, Idle) -> forget(Key, Idle);
set(Key, At, Idle) -> touch(Key, At, Idle).

-doc "The key has ended.".
-spec forget(key(), idle()) -> idle().
forget(Key, I = #idle{last = Last, order = Order}) ->
    case maps:take(Key, Last) of
        {At, Others} -> I#idle{last = Others, order = gb_trees:delete(At, Order)};
        error -> I
    end.

-doc "The keys with a time that was more than the limit ago at this time, the oldest one first; they are forgotten.".
-spec due(witness_event:ts(), idle()) -> {[key()], idle()}.
due(undefined, Idle) -> {[], Idle};
due(Now, I = #idle{limit = Limit}) -> due(Now - Limit, [], I).

due(Since, Due, I = #idle{last = Last, order = Order}) ->
    case gb_trees:is_empty(Order) orelse gb_trees:take_smallest(Order) of
        {{Time, _}, Key, Others} when Time < Since ->
            due(Since, [Key | Due], I#idle{last = maps:remove(Key, Last), order = Others});
        _ -> {lists:reverse(Due), I}
    end.

-doc "The first time of a key.".
-spec next(idle()) -> integer() | none.
next(#idle{order = Order}) ->
    case gb_trees:is_empty(Order) orelse gb_trees:smallest(Order) of
        true -> none;
        {{Time, _}, _} -> Time
    end.

-doc "As plain data.".
-spec save(idle()) -> saved().
save(#idle{order = Order}) -> [{Key, Time} || {{Time, _}, Key} <- gb_trees:to_list(Order)].

-doc "Loads saved data into a new one. Raises an error for malformed data.".
-spec load(saved() | term(), idle()) -> idle().
load(Saved, Idle) ->
    lists:foldl(fun({Key, Time}, I) when is_integer(Time) -> touch(Key, Time, I) end, Idle, Saved).
