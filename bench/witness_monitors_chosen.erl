-module(witness_monitors_chosen).
-moduledoc "What is read is what was set; other events do not matter.".
-behaviour(witness_monitor).
-export([init/3, handle_event/2]).

init(_, _, _) -> {ok, ready}.

handle_event({recv, _, _, {set, V}, _}, ready) -> {ok, {set, V}};
handle_event({send, _, _, {value, V}, _}, {set, V}) -> {ok, ready};
handle_event({send, _, _, {value, _}, _}, {set, _}) -> {verdict, no, another};
handle_event({send, _, _, {value, _}, _}, ready) -> {verdict, yes, something_else};
handle_event({recv, _, _, {set, _}, _}, {set, _}) -> {verdict, yes, something_else};
handle_event(_, S) -> {ok, S}.
