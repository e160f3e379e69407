-module(witness_bounded_monitor).
-moduledoc "A monitor for tests that may share a shard: it counts what it reads, keeps it, or fails at a message `crash`.".
-behaviour(witness_monitor).

-export([init/3, handle_event/2]).

init(_, _, Arg) -> {ok, {Arg, 0, []}}.

handle_event({exit, _, _, _}, {Arg, N, Kept}) -> {verdict, yes, {Arg, N, Kept}};
handle_event({recv, _, _, crash, _}, {crash, _, Kept}) -> {ok, hd(Kept)};
handle_event({recv, _, _, _, _} = E, {keep, N, Kept}) -> {ok, {keep, N + 1, [E | Kept]}};
handle_event({recv, _, _, _, _}, {Arg, N, Kept}) -> {ok, {Arg, N + 1, Kept}};
handle_event(_, State) -> {ok, State}.
