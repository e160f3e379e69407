-module(witness_behaviour_listener).
-moduledoc "A handler of `gen_event`, for `m:witness_behaviour_systems`.".
-behaviour(gen_event).

-export([init/1, handle_event/2, handle_call/2, handle_info/2]).

init(handler) -> {ok, none}.

handle_event(tick, State) -> {ok, State}.

handle_call(ask, State) -> {ok, yes, State}.

handle_info(information, State) -> {ok, State}.
