-module(witness_behaviour_machine).
-moduledoc """
A `gen_statem`, in either callback mode, that does what its events say, and writes down which of them came as messages
and what it sends.

An event is `{Id, From, Attempts}`: for each time that it is handled, in this order, `{Next, Actions}`. The last
attempt never postpones it; a state has the name of a callback, `init`. `From` says whether it comes as a `message` or
was `inserted`. `Next` is a state, `keep` or `repeat`. Actions are those of `gen_statem`, `{reply, yes}` to the caller
of the event, and `{drop, now}`: what enters the next state takes back that the event was postponed.
""".
-behaviour(gen_statem).

-export([init/1, callback_mode/0, handle_event/4, one/3, two/3, init/3, terminate/3]).

init({Log, Sink, {Mode, Actions}}) ->
    put(mode, Mode),
    Data = #{log => Log, sink => Sink, attempts => #{}, drop => false},
    {ok, one, Data, actions(Actions, none, Data)}.

callback_mode() -> get(mode).

one(Type, Content, Data) -> event(Type, Content, one, Data).
two(Type, Content, Data) -> event(Type, Content, two, Data).
init(Type, Content, Data) -> event(Type, Content, init, Data).

handle_event(Type, Content, State, Data) -> event(Type, Content, State, Data).

terminate(_, _, #{sink := Sink} = Data) ->
    log(Data, {send, Sink, {told, terminate}}),
    Sink ! {told, terminate}.

event(enter, _, _, #{drop := true} = Data) -> {keep_state, Data#{drop := false}, [{postpone, false}]};
event(enter, _, _, _) -> keep_state_and_data;
event({call, From}, stop, _, Data) ->
    log(Data, {recv, {'$gen_call', From, stop}}),
    replied(From, Data),
    {stop_and_reply, normal, [{reply, From, yes}]};
event(Type, {Id, Origin, Attempts} = Content, State, #{attempts := Before} = Data) ->
    N = maps:get(Id, Before, 0) + 1,
    N > 1 orelse Origin =:= inserted orelse log(Data, {recv, message(Type, Content)}),
    {Next, Wanted} = lists:nth(min(N, length(Attempts)), Attempts),
    Later = Data#{attempts := Before#{Id => N}, drop := lists:member({drop, now}, Wanted)},
    result(Next, State, Later, actions(Wanted, Type, Data));
event(_, _, _, _) -> keep_state_and_data.

message({call, From}, Content) -> {'$gen_call', From, Content};
message(cast, Content) -> {'$gen_cast', Content};
message(info, Content) -> Content.

actions([{reply, yes} | Actions], {call, From} = Type, Data) ->
    replied(From, Data),
    [{reply, From, yes} | actions(Actions, Type, Data)];
actions([{Not, _} | Actions], Type, Data) when Not =:= reply; Not =:= drop -> actions(Actions, Type, Data);
actions([{next_event, call, Content} | Actions], Type, #{sink := Sink} = Data) ->
    [{next_event, {call, {Sink, make_ref()}}, Content} | actions(Actions, Type, Data)];
actions([Action | Actions], Type, Data) -> [Action | actions(Actions, Type, Data)];
actions([], _, _) -> [].

result({return, Value}, _, _, _) -> Value;
result({throw, Next}, _, Data, Actions) -> throw({next_state, Next, Data, Actions});
result(keep, _, Data, []) -> {keep_state, Data};
result(keep, _, Data, Actions) -> {keep_state, Data, Actions};
result(repeat, _, Data, Actions) -> {repeat_state, Data, Actions};
result(same, State, Data, Actions) -> {next_state, State, Data, Actions};
result(Next, _, Data, []) -> {next_state, Next, Data};
result(Next, _, Data, Actions) -> {next_state, Next, Data, Actions}.

replied({_, [alias | Alias] = Tag}, Data) -> log(Data, {send, Alias, {Tag, yes}});
replied({To, Tag}, Data) -> log(Data, {send, To, {Tag, yes}}).

log(#{log := Log}, What) -> ets:insert(Log, {erlang:unique_integer([monotonic]), {logged, self()}, What}).
