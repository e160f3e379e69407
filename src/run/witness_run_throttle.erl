-module(witness_run_throttle).
-moduledoc """
Limits reports per second, and counts those above the limit. Pure: the caller gives the time, in milliseconds.

Each key has a limit per second, and all keys together have ten times that limit.

```erlang
1> {true, T1} = witness_run_throttle:allow(p, 0, witness_run_throttle:new(1)).
2> {false, T2} = witness_run_throttle:allow(p, 999, T1).
3> {[{p, 1}], _} = witness_run_throttle:take(T2).
```
""".

-export([new/1, allow/3, take/1]).

-export_type([throttle/0]).

-define(WINDOW_MS, 1000).
-define(ALL_KEYS_FACTOR, 10).

-type window() :: {Begin :: integer(), Count :: non_neg_integer()}.

%% `all' is the window of all keys.
-record(throttle, {rate :: pos_integer() | infinity,
                   all :: undefined | window(),
                   windows = #{} :: #{Key :: term() => window()},
                   left_out = #{} :: #{Key :: term() => pos_integer()}}).

-opaque throttle() :: #throttle{}.

-doc "A throttle without reports.".
-spec new(pos_integer() | infinity) -> throttle().
new(Rate) -> #throttle{rate = Rate}.

-doc "Whether a report is let through. If not, it is counted.".
-spec allow(Key :: term(), Now :: integer(), throttle()) -> {boolean(), throttle()}.
allow(_, _, T = #throttle{rate = infinity}) -> {true, T};
allow(Key, Now, T = #throttle{rate = Rate, all = All, windows = Windows, left_out = LeftOut}) ->
    case {count_in_window(Now, Rate, maps:get(Key, Windows, undefined)), count_in_window(Now, ?ALL_KEYS_FACTOR * Rate, All)} of
        {{_, _} = Window, {_, _} = All1} -> {true, T#throttle{all = All1, windows = Windows#{Key => Window}}};
        _ -> {false, T#throttle{left_out = maps:update_with(Key, fun(N) -> N + 1 end, 1, LeftOut)}}
    end.

count_in_window(Now, Max, {Begin, Count}) when Now - Begin < ?WINDOW_MS, Count < Max -> {Begin, Count + 1};
count_in_window(Now, _, {Begin, _}) when Now - Begin < ?WINDOW_MS -> full;
count_in_window(Now, _, _) -> {Now, 1}.

-doc "For each key, how many reports were not let through since the last call.".
-spec take(throttle()) -> {[{Key :: term(), pos_integer()}], throttle()}.
take(T = #throttle{left_out = LeftOut}) -> {lists:sort(maps:to_list(LeftOut)), T#throttle{left_out = #{}}}.
