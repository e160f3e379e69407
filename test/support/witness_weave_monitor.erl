-module(witness_weave_monitor).
-moduledoc "Writes the events of its process, as inline monitoring gives them, into the journal of `witness_weave_journal`.".
-behaviour(witness_monitor).

-export([init/3, handle_event/2, handle_end/2]).

init(Signature, _, none) ->
    told({init, Signature}),
    {ok, none}.

handle_event({init, _, _, _, _}, State) -> {ok, State};
handle_event({send, _, To, Msg, _}, State) -> seen({send, To, Msg}, State);
handle_event({recv, _, _, Msg, _}, State) -> seen({recv, Msg}, State);
handle_event({fork, _, Child, Signature, _}, State) -> seen({fork, Child, Signature}, State);
handle_event({exit, _, Reason, _}, State) -> seen({exit, Reason}, State).

handle_end(_, _) -> {inconclusive, none}.

seen(Event, State) ->
    told(Event),
    {ok, State}.

told(Event) -> witness_weave_journal:write({told, Event}).
