-module(witness_inline_behaviour_event).
%% The tags that OTP uses.
-dialyzer({no_improper_lists, given/4}).
-moduledoc """
The events of the manager of a `gen_event`, derived from its handlers; pure.

| callback | events |
|---|---|
| `handle_event(Event, _)` of the first handler that is called | receives `{notify, Event}`, also if it was `sync_notify` |
| `handle_info(Message, _)` of the first one | receives `Message` |
| `handle_call(Request, _)` | receives `{self(), {self(), Tag}, {call, Module, Request}}`: the caller is not known here |
| the result of `handle_call` | sends `{Tag, Reply}` |

The manager calls all handlers with the same event, one after the other, and that is one event of the process. It calls
each of its handlers exactly once for an event. So the set of installed handlers determines when the next event starts: when a
handler is called that is not left to be called for the current one.
""".
-behaviour(witness_inline_behaviour).

-export([new/0, given/4, returned/5, is_told/1]).

-type handlers() :: #{module() => pos_integer()}.

%% Handlers that are installed; those that have still to be called for the current event; the reply that is
%% sent when a handler that is removed or swapped has ended.
-record(manager, {installed = #{} :: handlers(), asked = #{} :: handlers(), event :: term(),
                  tag :: term(), last = [] :: [witness_inline_behaviour:seen()], swaps = false :: boolean()}).

new() -> #manager{}.

given(Module, Function, [Event, _], State) when Function =:= handle_event; Function =:= handle_info ->
    notified(Module, {Function, Event}, replied(State));
given(Module, handle_call, [Request, _], State) ->
    Tag = [alias | make_ref()],
    {Seen, Next} = replied(State),
    {Seen ++ [{recv, {self(), {self(), Tag}, {call, Module, Request}}}], Next#manager{asked = #{}, tag = Tag}};
given(_, _, _, State) ->
    {[], State}.

notified(Module, Event, {Seen, #manager{asked = Asked, event = Event} = State}) when is_map_key(Module, Asked) ->
    {Seen, State#manager{asked = without(Module, Asked)}};
notified(Module, _, {_, #manager{asked = Asked}}) when is_map_key(Module, Asked) ->
    {lost, unknown_handlers};
notified(Module, {Function, Event} = Given, {Seen, #manager{installed = Installed} = State}) ->
    Message = case Function of handle_event -> {notify, Event}; handle_info -> Event end,
    {Seen ++ [{recv, Message}], State#manager{asked = without(Module, Installed), event = Given}}.

returned(Module, init, _, {value, Value}, State) when element(1, Value) =:= ok ->
    {Seen, #manager{installed = Installed} = Next} = replied(State),
    {Seen, Next#manager{installed = Installed#{Module => maps:get(Module, Installed, 0) + 1}}, running};
returned(_, init, _, _, State) ->
    {Seen, Next} = replied(State),
    {Seen, Next, running};
returned(Module, terminate, _, _, #manager{installed = Installed, swaps = Swaps} = State) ->
    {Seen, Next} = case Swaps of true -> {[], State#manager{swaps = false}}; false -> replied(State) end,
    {Seen, Next#manager{installed = without(Module, Installed)}, running};
returned(_, handle_call, _, Outcome, #manager{tag = Tag} = State) ->
    called(Outcome, Tag, State);
returned(_, _, _, {value, {swap_handler, _, _, _, _}}, State) ->
    {[], State#manager{swaps = true}, running};
returned(_, _, _, _, State) ->
    {[], State, running}.

called({value, {ok, Reply, _}}, Tag, State) -> {[sent(Tag, Reply)], State, running};
called({value, {ok, Reply, _, hibernate}}, Tag, State) -> {[sent(Tag, Reply)], State, running};
called({value, {swap_handler, Reply, _, _, _, _}}, Tag, State) ->
    {[], State#manager{last = [sent(Tag, Reply)], swaps = true}, running};
called({value, {remove_handler, Reply}}, Tag, State) -> {[], State#manager{last = [sent(Tag, Reply)]}, running};
called({value, Value}, Tag, State) -> {[], State#manager{last = [sent(Tag, {error, Value})]}, running};
called({raised, error, Reason, Stack}, Tag, State) ->
    {[], State#manager{last = [sent(Tag, {error, {'EXIT', {Reason, Stack}}})]}, running};
called({raised, exit, Reason, _}, Tag, State) ->
    {[], State#manager{last = [sent(Tag, {error, {'EXIT', Reason}})]}, running}.

sent([alias | Alias] = Tag, Reply) -> {send, Alias, {Tag, Reply}}.

replied(#manager{last = Last} = State) -> {Last, State#manager{last = [], swaps = false}}.

without(Module, Handlers) ->
    case Handlers of
        #{Module := N} when N > 1 -> Handlers#{Module := N - 1};
        #{} -> maps:remove(Module, Handlers)
    end.

is_told(#manager{last = Last, swaps = Swaps}) -> Last =:= [] andalso not Swaps.
