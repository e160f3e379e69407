-module(witness_monitors_branches).
-moduledoc "Many kinds of messages, some of which are echoed; the state is what has to be echoed.".
-behaviour(witness_monitor).
-export([init/3, handle_event/2]).

init(_, _, _) -> {ok, ready}.

handle_event({recv, _, _, {a1, _}, _}, ready) -> {ok, ready};
handle_event({recv, _, _, {a2, _}, _}, ready) -> {ok, ready};
handle_event({recv, _, _, {a3, _}, _}, ready) -> {ok, ready};
handle_event({recv, _, _, {a4, _}, _}, ready) -> {ok, ready};
handle_event({recv, _, _, {a5, _}, _}, ready) -> {ok, ready};
handle_event({recv, _, _, {a6, _}, _}, ready) -> {ok, ready};
handle_event({recv, _, _, {a7, _}, _}, ready) -> {ok, ready};
handle_event({recv, _, _, {a8, _}, _}, ready) -> {ok, ready};
handle_event({recv, _, _, {a9, _}, _}, ready) -> {ok, ready};
handle_event({recv, _, _, {a10, _}, _}, ready) -> {ok, ready};
handle_event({recv, _, _, {b1, N}, _}, ready) -> {ok, {echo, N}};
handle_event({recv, _, _, {b2, N}, _}, ready) -> {ok, {echo, N}};
handle_event({recv, _, _, {b3, N}, _}, ready) -> {ok, {echo, N}};
handle_event({recv, _, _, {b4, N}, _}, ready) -> {ok, {echo, N}};
handle_event({recv, _, _, {b5, N}, _}, ready) -> {ok, {echo, N}};
handle_event({recv, _, _, {b6, N}, _}, ready) -> {ok, {echo, N}};
handle_event({recv, _, _, {b7, N}, _}, ready) -> {ok, {echo, N}};
handle_event({recv, _, _, {b8, N}, _}, ready) -> {ok, {echo, N}};
handle_event({recv, _, _, {b9, N}, _}, ready) -> {ok, {echo, N}};
handle_event({recv, _, _, {bad, _}, _}, ready) -> {verdict, no, bad};
handle_event({send, _, _, _, _}, ready) -> {verdict, no, unasked};
handle_event({send, _, _, N, _}, {echo, N}) -> {ok, ready};
handle_event(_, _) -> {verdict, yes, something_else}.
