-module(witness_monitors_sum).
-moduledoc "Each answer is the sum that was asked for; the state is that sum.".
-behaviour(witness_monitor).
-export([init/3, handle_event/2]).

init(_, _, _) -> {ok, ready}.

handle_event({recv, _, _, {_, {add, A, B}}, _}, ready) -> {ok, A + B};
handle_event(_, ready) -> {verdict, yes, something_else};
handle_event({send, _, _, {ok, Sum}, _}, Sum) -> {ok, ready};
handle_event({send, _, _, {ok, _}, _}, Sum) -> {verdict, no, Sum};
handle_event(_, _) -> {verdict, yes, something_else}.
