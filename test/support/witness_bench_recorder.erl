-module(witness_bench_recorder).
-moduledoc "A monitor that keeps all events of its process and tells them with its verdict.".
-behaviour(witness_monitor).

-export([init/3, handle_event/2]).

-spec init(witness_event:signature(), pid(), term()) -> {ok, term()}.
init(Signature, P, _) -> {ok, {Signature, P, []}}.

-spec handle_event(witness_event:event(), term()) -> {ok, term()} | {verdict, yes, term()}.
handle_event({exit, _, _, _} = E, {Signature, P, Events}) -> {verdict, yes, {Signature, P, lists:reverse([E | Events])}};
handle_event(E, {Signature, P, Events}) -> {ok, {Signature, P, [E | Events]}}.
