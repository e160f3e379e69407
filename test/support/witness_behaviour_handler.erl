-module(witness_behaviour_handler).
-moduledoc """
A handler of `gen_event`, which may be installed several times, and writes down what its manager receives and replies.

An event is `{Id, #{Name => Return}}`: what the handler of this name returns. The handler that is asked first about an
event, by its identifier, writes it down.
""".
-behaviour(gen_event).

-export([init/1, handle_event/2, handle_call/2, handle_info/2, terminate/2]).

init({{Log, Name}, {swapped, _}}) -> {ok, {Log, Name}};
init({_, bad}) -> bad;
init({Log, Name}) -> {ok, {Log, Name}}.

handle_event(Event, State) -> asked({notify, Event}, Event, State).

handle_info(Event, State) -> asked(Event, Event, State).

handle_call({_, Return} = Request, {Log, _} = State) ->
    log(Log, {recv, {call, ?MODULE, Request}}),
    log(Log, {send, {reply, Return}}),
    case Return of
        ok -> {ok, yes, State};
        hibernate -> {ok, yes, State, hibernate};
        remove -> {remove_handler, yes};
        bad -> bad;
        crash -> error(crash);
        throw -> throw({ok, yes, State});
        swap -> {swap_handler, yes, swapped, State, {?MODULE, element(2, State)}, State}
    end.

asked(Message, {Id, Returns}, {Log, Name} = State) ->
    case get(seen) of
        Id -> ok;
        _ ->
            put(seen, Id),
            log(Log, {recv, Message})
    end,
    case maps:get(Name, Returns, ok) of
        ok -> {ok, State};
        hibernate -> {ok, State, hibernate};
        remove -> remove_handler;
        bad -> bad;
        crash -> error(crash);
        throw -> throw({ok, State});
        swap -> {swap_handler, swapped, State, {?MODULE, Name}, State}
    end.

terminate(swapped, {Log, _}) -> {swapped, Log};
terminate(_, _) -> ok.

log(Log, What) -> ets:insert(Log, {erlang:unique_integer([monotonic]), {logged, self()}, What}).
