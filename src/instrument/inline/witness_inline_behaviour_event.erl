-module(witness_inline_behaviour_event).
%% The tags that OTP uses.
-dialyzer({no_improper_lists, before_callback/4}).
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

-export([new/0, before_callback/4, after_callback/5, has_reported_all/1]).

-type handlers() :: #{module() => pos_integer()}.

%% Handlers that are installed; those that have still to be called for the current event; the reply that is
%% sent when a handler that is removed or swapped has ended.
-record(manager, {installed = #{} :: handlers(), asked = #{} :: handlers(), event :: term(),
                  tag :: term(), last = [] :: [witness_inline_behaviour:seen()], swaps = false :: boolean()}).

new() -> #manager{}.

before_callback(Module, Function, [Event, _], State) when Function =:= handle_event; Function =:= handle_info ->
    notify(Module, {Function, Event}, take_reply(State));
before_callback(Module, handle_call, [Request, _], State) ->
    Tag = [alias | make_ref()],
    {Seen, Next} = take_reply(State),
    {Seen ++ [{recv, {self(), {self(), Tag}, {call, Module, Request}}}], Next#manager{asked = #{}, tag = Tag}};
before_callback(_, _, _, State) ->
    {[], State}.

notify(Module, Event, {Seen, #manager{asked = Asked, event = Event} = State}) when is_map_key(Module, Asked) ->
    {Seen, State#manager{asked = remove_handler(Module, Asked)}};
notify(Module, _, {_, #manager{asked = Asked}}) when is_map_key(Module, Asked) ->
    {lost, unknown_handlers};
notify(Module, {Function, Event} = Given, {Seen, #manager{installed = Installed} = State}) ->
    Message = case Function of handle_event -> {notify, Event}; handle_info -> Event end,
    {Seen ++ [{recv, Message}], State#manager{asked = remove_handler(Module, Installed), event = Given}}.

after_callback(Module, init, _, {value, Value}, State) when element(1, Value) =:= ok ->
    {Seen, #manager{installed = Installed} = Next} = take_reply(State),
    {Seen, Next#manager{installed = Installed#{Module => maps:get(Module, Installed, 0) + 1}}, running};
after_callback(_, init, _, _, State) ->
    {Seen, Next} = take_reply(State),
    {Seen, Next, running};
after_callback(Module, terminate, _, _, #manager{installed = Installed, swaps = Swaps} = State) ->
    {Seen, Next} = case Swaps of true -> {[], State#manager{swaps = false}}; false -> take_reply(State) end,
    {Seen, Next#manager{installed = remove_handler(Module, Installed)}, running};
after_callback(_, handle_call, _, Outcome, #manager{tag = Tag} = State) ->
    after_call(Outcome, Tag, State);
after_callback(_, _, _, {value, {swap_handler, _, _, _, _}}, State) ->
    {[], State#manager{swaps = true}, running};
after_callback(_, _, _, _, State) ->
    {[], State, running}.

after_call({value, {ok, Reply, _}}, Tag, State) -> {[reply_event(Tag, Reply)], State, running};
after_call({value, {ok, Reply, _, hibernate}}, Tag, State) -> {[reply_event(Tag, Reply)], State, running};
after_call({value, {swap_handler, Reply, _, _, _, _}}, Tag, State) ->
    {[], State#manager{last = [reply_event(Tag, Reply)], swaps = true}, running};
after_call({value, {remove_handler, Reply}}, Tag, State) -> {[], State#manager{last = [reply_event(Tag, Reply)]}, running};
after_call({value, Value}, Tag, State) -> {[], State#manager{last = [reply_event(Tag, {error, Value})]}, running};
after_call({raised, error, Reason, Stack}, Tag, State) ->
    {[], State#manager{last = [reply_event(Tag, {error, {'EXIT', {Reason, Stack}}})]}, running};
after_call({raised, exit, Reason, _}, Tag, State) ->
    {[], State#manager{last = [reply_event(Tag, {error, {'EXIT', Reason}})]}, running}.

reply_event([alias | Alias] = Tag, Reply) -> {send, Alias, {Tag, Reply}}.

take_reply(#manager{last = Last} = State) -> {Last, State#manager{last = [], swaps = false}}.

remove_handler(Module, Handlers) ->
    case Handlers of
        #{Module := N} when N > 1 -> Handlers#{Module := N - 1};
        #{} -> maps:remove(Module, Handlers)
    end.

has_reported_all(#manager{last = Last, swaps = Swaps}) -> Last =:= [] andalso not Swaps.
