-module(witness_behaviour_server).
-moduledoc """
A `gen_server` that performs its requests. It logs what it receives and sends, in order; tests compare the log with what
another observer reports.

A request is `{Do, Return}`: a list of what to do, and how to return. `Do` has `{tell, Term}` (sends it to the sink),
`answer` (replies to the callers that wait) and `{local, cast | info, Do}` (calls its own callback).
""".
-behaviour(gen_server).

-export([init/1, handle_call/3, handle_cast/2, handle_info/2, handle_continue/2, terminate/2, code_change/3]).

init({Log, Sink, {stop, Reason}}) -> _ = {Log, Sink}, {stop, Reason};
init({_, _, ignore}) -> ignore;
init({_, _, crash}) -> error(crash);
init({_, _, {throw, Value}}) -> throw(Value);
init({_, _, {return, Value}}) -> Value;
init({Log, Sink, ok}) -> {ok, #{log => Log, sink => Sink, held => [], last => []}}.

handle_call({Do, Return} = Request, From, State) ->
    log(State, {recv, {'$gen_call', From, Request}}),
    Next = acted(Do, State),
    case Return of
        reply -> answered(From, State), {reply, yes, Next};
        {throw, reply} -> answered(From, State), throw({reply, yes, Next});
        {reply, Action} -> answered(From, State), {reply, yes, Next, Action};
        later -> #{held := Held} = Next, {noreply, Next#{held := Held ++ [From]}};
        stop -> {stop, normal, yes, Next#{last := [From]}};
        _ -> returned(Return, Next)
    end.

handle_cast({nested, Do}, State) -> {noreply, acted(Do, State)};
handle_cast({Do, Return} = Message, State) ->
    log(State, {recv, {'$gen_cast', Message}}),
    returned(Return, acted(Do, State)).

handle_info({nested, Do}, State) -> {noreply, acted(Do, State)};
handle_info(timeout, State) -> {noreply, acted([{tell, timeout}], State)};
handle_info({Do, Return} = Message, State) ->
    log(State, {recv, Message}),
    returned(Return, acted(Do, State)).

handle_continue(Do, State) -> {noreply, acted(Do, State)}.

%% No old version of this state exists, so there is nothing to convert.
code_change(_, State, Do) -> {ok, acted(Do, State)}.

terminate(_, #{last := Last} = State) ->
    _ = acted([{tell, terminate}], State),
    [answered(From, State) || From <- Last],
    ok.

returned(crash, _) -> error(crash);
returned(exit, _) -> exit(left);
returned(bad, _) -> bad;
returned({stop, Reason}, State) -> {stop, Reason, State};
returned({throw, _}, State) -> throw({noreply, State});
returned({_, Action}, State) -> {noreply, State, Action};
returned(_, State) -> {noreply, State}.

acted([], State) -> State;
acted([{tell, Term} | Do], #{sink := Sink} = State) ->
    log(State, {send, Sink, {told, Term}}),
    Sink ! {told, Term},
    acted(Do, State);
acted([answer | Do], #{held := Held} = State) ->
    [begin
         answered(From, State),
         gen_server:reply(From, yes)
     end || From <- Held],
    acted(Do, State#{held := []});
acted([{local, Which, Inside} | Do], State) ->
    {noreply, Next} = case Which of
        cast -> handle_cast({nested, Inside}, State);
        info -> ?MODULE:handle_info({nested, Inside}, State)
    end,
    acted(Do, Next).

answered({_, [alias | Alias] = Tag}, State) -> log(State, {send, Alias, {Tag, yes}});
answered({To, Tag}, State) -> log(State, {send, To, {Tag, yes}}).

log(#{log := Log}, What) -> ets:insert(Log, {erlang:unique_integer([monotonic]), {logged, self()}, What}).
