-module(witness_monitors_pending).
-moduledoc "Each request is answered; the state is the requests that wait.".
-behaviour(witness_monitor).
-export([init/3, handle_event/2, handle_end/2]).

init(_, _, _) -> {ok, []}.

handle_event({recv, _, _, {request, Id}, _}, Waiting) -> {ok, [Id | lists:delete(Id, Waiting)]};
handle_event({send, _, _, {answer, Id}, _}, Waiting) -> {ok, lists:delete(Id, Waiting)};
handle_event({_, _, _, _, _}, []) -> {verdict, yes, something_else};
handle_event({recv, _, _, _, _}, Waiting) -> {ok, Waiting};
handle_event(_, Waiting) -> {verdict, no, Waiting}.

handle_end(complete, []) -> {yes, all_answered};
handle_end(complete, Waiting) -> {no, Waiting};
handle_end(stopped, _) -> {inconclusive, stopped}.
