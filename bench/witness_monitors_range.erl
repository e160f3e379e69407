-module(witness_monitors_range).
-moduledoc "Each value lies within its bounds.".
-behaviour(witness_monitor).
-export([init/3, handle_event/2]).

init(_, _, _) -> {ok, watching}.

handle_event({recv, _, _, {value, V, Low, High}, _}, S) when V >= Low, V =< High -> {ok, S};
handle_event({recv, _, _, {value, V, Low, High}, _}, _) -> {verdict, no, {V, Low, High}};
handle_event({send, _, _, _, _}, S) -> {ok, S};
handle_event(_, _) -> {verdict, yes, something_else}.
