-module(witness_monitor_slice_expiry).
-moduledoc """
The time of each slice's last event, and the slices that have been idle for too long. Pure.

Time is that of the trace: nanoseconds in the events. An event without a time makes no slice older, and a slice without
timed events is never idle. Each event of a slice costs the logarithm of the number of slices.
""".

-export([new/1, touch/3, forget/2, due/2, save/1, load/2]).
-export_type([idle/0, saved/0]).

%% Ordered by last time; slices with the same time by their numbers, in the order in which they were touched.
-record(idle, {limit :: pos_integer(),
               last = #{} :: #{witness_monitor_slices:key() => {integer(), Number :: pos_integer()}},
               order = gb_trees:empty() :: gb_trees:tree({integer(), pos_integer()}, witness_monitor_slices:key()),
               number = 0 :: non_neg_integer()}).

-opaque idle() :: #idle{}.

-doc "The slices with the times of their last events, the oldest one first.".
-type saved() :: [{witness_monitor_slices:key(), integer()}].

-doc "No slices.".
-spec new(Milliseconds :: pos_integer()) -> idle().
new(Milliseconds) -> #idle{limit = erlang:convert_time_unit(Milliseconds, millisecond, nanosecond)}.

-doc "An event of a slice that is alive.".
-spec touch(witness_monitor_slices:key(), witness_event:ts(), idle()) -> idle().
touch(_, undefined, Idle) -> Idle;
touch(Key, Time, Idle) ->
    I = #idle{last = Last, order = Order, number = Number} = forget(Key, Idle),
    At = {Time, Number + 1},
    I#idle{last = Last#{Key => At}, order = gb_trees:insert(At, Key, Order), number = Number + 1}.

-doc "The slice has ended.".
-spec forget(witness_monitor_slices:key(), idle()) -> idle().
forget(Key, I = #idle{last = Last, order = Order}) ->
    case maps:take(Key, Last) of
        {At, Others} -> I#idle{last = Others, order = gb_trees:delete(At, Order)};
        error -> I
    end.

-doc "The slices that have been idle for longer than the limit at this time, the longest one first; they are forgotten.".
-spec due(witness_event:ts(), idle()) -> {[witness_monitor_slices:key()], idle()}.
due(undefined, Idle) -> {[], Idle};
due(Now, I = #idle{limit = Limit}) -> due(Now - Limit, [], I).

due(Since, Due, I = #idle{last = Last, order = Order}) ->
    case gb_trees:is_empty(Order) orelse gb_trees:take_smallest(Order) of
        {{Time, _}, Key, Others} when Time < Since ->
            due(Since, [Key | Due], I#idle{last = maps:remove(Key, Last), order = Others});
        _ -> {lists:reverse(Due), I}
    end.

-doc "As plain data.".
-spec save(idle()) -> saved().
save(#idle{order = Order}) -> [{Key, Time} || {{Time, _}, Key} <- gb_trees:to_list(Order)].

-doc "Loads saved data into a new one. Raises an error for malformed data.".
-spec load(saved() | term(), idle()) -> idle().
load(Saved, Idle) ->
    lists:foldl(fun({Key, Time}, I) when is_integer(Time) -> touch(Key, Time, I) end, Idle, Saved).
