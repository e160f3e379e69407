-module(witness_behaviour_deaf).
-moduledoc "A `gen_server` without `handle_info/2`; and a callback module of `gen_statem` that no test weaves.".
-behaviour(gen_server).

-export([init/1, handle_call/3, handle_cast/2, callback_mode/0, handle_event/4]).

init([]) -> {ok, []}.

handle_call(ok, _, State) -> {reply, ok, State}.

handle_cast({stop, Reason}, State) -> {stop, Reason, State}.

callback_mode() -> handle_event_function.

handle_event(_, _, _, _) -> keep_state_and_data.
