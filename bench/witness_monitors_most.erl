-module(witness_monitors_most).
-moduledoc "At most three requests wait at a time; the state is their number.".
-behaviour(witness_monitor).
-export([init/3, handle_event/2]).

init(_, _, _) -> {ok, 0}.

handle_event({recv, _, _, _, _}, Waiting) when Waiting < 3 -> {ok, Waiting + 1};
handle_event({recv, _, _, _, _}, _) -> {verdict, no, too_many};
handle_event({send, _, _, _, _}, 0) -> {ok, 0};
handle_event({send, _, _, _, _}, Waiting) -> {ok, Waiting - 1};
handle_event(_, _) -> {verdict, yes, something_else}.
