-module(witness_counting_monitor).
-moduledoc "A monitor for tests: every step has an effect, since it counts the events that it is given.".
-behaviour(witness_monitor).

-export([init/3, handle_event/2, handle_end/2]).

init(_, _, Counter) -> {ok, Counter}.

handle_event(_, Counter) ->
    counters:add(Counter, 1, 1),
    {ok, Counter}.

handle_end(_, _) -> {no, ended}.
