-module(witness_bench_count).
-moduledoc """
A monitor that reads every event and only counts it: the analysis `none`, which leaves only the cost of
instrumentation.

When its process has ended it adds the number of its events to a counter, if one is given.
""".
-behaviour(witness_monitor).

-export([init/3, handle_event/2]).

-doc false.
init(_, _, Counter) -> {ok, {0, Counter}}.

-doc false.
handle_event({exit, _, _, _}, {Events, undefined}) -> {verdict, yes, Events + 1};
handle_event({exit, _, _, _}, {Events, Counter}) ->
    counters:add(Counter, 1, Events + 1),
    {verdict, yes, Events + 1};
handle_event(_, {Events, Counter}) -> {ok, {Events + 1, Counter}}.
