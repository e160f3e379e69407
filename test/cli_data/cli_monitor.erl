-module(cli_monitor).
-moduledoc "No process sends more messages than its argument says. With `busy` it never comes back from the first one.".
-behaviour(witness_monitor).

-export([init/3, handle_event/2, handle_end/2]).

init(_, _, []) -> {ok, 1};
init(_, _, Limit) -> {ok, Limit}.

handle_event({send, _, _, _, _}, busy) -> receive after infinity -> {ok, busy} end;
handle_event({send, _, _, _, _}, 0) -> {verdict, no, too_many};
handle_event({send, _, _, _, _}, Left) -> {ok, Left - 1};
handle_event(_, Left) -> {ok, Left}.

handle_end(complete, _) -> {yes, undefined};
handle_end(stopped, _) -> {inconclusive, undefined}.
