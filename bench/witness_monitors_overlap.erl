-module(witness_monitors_overlap).
-moduledoc "No pair holds the forbidden word.".
-behaviour(witness_monitor).
-export([init/3, handle_event/2]).

init(_, _, _) -> {ok, watching}.

handle_event({recv, _, _, {_, forbidden}, _}, _) -> {verdict, no, forbidden};
handle_event({recv, _, _, {_, _}, _}, S) -> {ok, S};
handle_event({send, _, _, _, _}, S) -> {ok, S};
handle_event(_, _) -> {verdict, yes, something_else}.
