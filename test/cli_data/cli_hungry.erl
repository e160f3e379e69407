-module(cli_hungry).
-moduledoc "A monitor that never comes back from its first event: it loops, or it takes memory without end.".
-behaviour(witness_monitor).

-export([init/3, handle_event/2, handle_end/2]).

init(_, _, What) -> {ok, What}.

handle_event(_, loops) -> loops();
handle_event(_, takes) -> takes([]).

handle_end(_, _) -> {yes, undefined}.

-spec loops() -> no_return().
loops() -> loops().

-spec takes(list()) -> no_return().
takes(Taken) -> takes([lists:seq(1, 1000) | Taken]).
