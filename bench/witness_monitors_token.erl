-module(witness_monitors_token).
-moduledoc "No request is answered with the server's own token.".
-behaviour(witness_monitor).
-export([init/3, handle_event/2]).

init({_, _, [Own]}, _, _) -> {ok, {ready, Own}}.

handle_event({recv, _, _, _, _}, {ready, Own}) -> {ok, {asked, Own}};
handle_event({send, _, _, Own, _}, {asked, Own}) -> {verdict, no, Own};
handle_event({send, _, _, _, _}, {asked, Own}) -> {ok, {ready, Own}};
handle_event(_, _) -> {verdict, yes, something_else}.
