-module(witness_inline_behaviour_server).
-moduledoc """
The events of a `gen_server` process, derived from its callbacks; pure.

| callback | events |
|---|---|
| `handle_call(Request, From, _)` | receives `{'$gen_call', From, Request}` |
| `handle_cast(Message, _)` | receives `{'$gen_cast', Message}` |
| `handle_info(Message, _)` | receives `Message`, unless it is the time-out that the previous callback has set |
| `{reply, Reply, ...}` | sends the reply to the caller or its alias |
| `{stop, _, Reply, _}` | the same, after `terminate`, as `gen_server` does |
| `terminate(Reason, _)` | has ended for this reason, or for that of a crash in `terminate` |
| `init` without a state | has ended, for the reason that `gen_server` exits with |
""".
-behaviour(witness_inline_behaviour).

-export([new/0, given/4, returned/5, is_told/1, sent/2]).

%% last: is sent when `terminate' has returned; timeout: the content of a time-out that may still come; any other message cancels it.
-record(server, {last = [] :: [witness_inline_behaviour:seen()], timeout = none :: none | {timeout, term()}}).

new() -> #server{}.

given(_, handle_call, [Request, From, _], State) -> received({'$gen_call', From, Request}, State);
given(_, handle_cast, [Message, _], State) -> received({'$gen_cast', Message}, State);
given(_, handle_info, [Message, _], #server{timeout = {timeout, Message}} = State) ->
    {[], State#server{timeout = none}};
given(_, handle_info, [Message, _], State) -> received(Message, State);
given(_, _, _, State) -> {[], State}.

received(Message, State) -> {[{recv, Message}], State#server{timeout = none}}.

returned(_, init, _, Outcome, State) ->
    started(Outcome, State);
returned(_, terminate, [Reason, _], {value, _}, #server{last = Last} = State) ->
    {Last, State, {ended, Reason}};
returned(_, terminate, _, {raised, Class, Reason, Stack}, #server{last = Last} = State) ->
    {Last, State, {ended, reason(Class, Reason, Stack)}};
returned(_, handle_call, [_, From, _], {value, Value}, State) ->
    answered(Value, From, State);
returned(_, Function, _, {value, Value}, State) when Function =:= handle_cast; Function =:= handle_info;
                                                   Function =:= handle_continue ->
    {[], waiting(Value, State), running};
returned(_, _, _, _, State) ->
    {[], State, running}.

answered({reply, Reply, _}, From, State) -> {[sent(From, Reply)], State, running};
answered({reply, Reply, _, Action} = Value, From, State) ->
    case is_action(Action) of
        true -> {[sent(From, Reply)], waiting(Value, State), running};
        false -> {[], State, running}
    end;
answered({stop, _, Reply, _}, From, State) -> {[], State#server{last = [sent(From, Reply)]}, running};
answered(Value, _, State) -> {[], waiting(Value, State), running}.

waiting({ok, _, Action}, State) -> waiting(Action, State);
waiting({noreply, _, Action}, State) -> waiting(Action, State);
waiting({reply, _, _, Action}, State) -> waiting(Action, State);
waiting(Time, State) when is_integer(Time) -> State#server{timeout = {timeout, timeout}};
waiting({_, infinity, _}, State) -> State;
waiting({Kind, _, Content}, State) when Kind =:= timeout; Kind =:= hibernate ->
    State#server{timeout = {timeout, Content}};
waiting({Kind, Time, Content, _}, State) when Kind =:= timeout; Kind =:= hibernate ->
    waiting({Kind, Time, Content}, State);
waiting(_, State) -> State.

%% An invalid action ends the server before it replies.
is_action({continue, _}) -> true;
is_action(hibernate) -> true;
is_action(infinity) -> true;
is_action(Time) when is_integer(Time) -> Time >= 0;
is_action(Action) when tuple_size(Action) =:= 3; tuple_size(Action) =:= 4 ->
    is_timed() andalso (element(1, Action) =:= timeout orelse element(1, Action) =:= hibernate);
is_action(_) -> false.

%% OTP 29 and later know actions with a time-out of their own.
is_timed() -> list_to_integer(erlang:system_info(otp_release)) >= 29.

started({value, {ok, _}}, State) -> {[], State, running};
started({value, {ok, _, Action} = Value}, State) ->
    case is_action(Action) of
        true -> {[], waiting(Value, State), running};
        false -> {[], State, {ended, {bad_return_value, Value}}}
    end;
started({value, {stop, Reason}}, State) -> {[], State, {ended, Reason}};
started({value, {error, _}}, State) -> {[], State, {ended, normal}};
started({value, ignore}, State) -> {[], State, {ended, normal}};
started({value, Value}, State) -> {[], State, {ended, {bad_return_value, Value}}};
started({raised, Class, Reason, Stack}, State) -> {[], State, {ended, reason(Class, Reason, Stack)}}.

reason(error, Reason, Stack) -> {Reason, Stack};
reason(exit, Reason, _) -> Reason.

-doc "The receiver and the message of `gen:reply/2` for this caller.".
-spec sent(From :: term(), Reply :: term()) -> witness_inline_behaviour:seen().
sent({_, [alias | Alias] = Tag}, Reply) when is_reference(Alias) -> {send, Alias, {Tag, Reply}};
sent({_, [[alias | Alias] | _] = Tag}, Reply) when is_reference(Alias) -> {send, Alias, {Tag, Reply}};
sent({To, Tag}, Reply) -> {send, To, {Tag, Reply}}.

%% `last' is sent after `terminate'.
is_told(#server{last = Last}) -> Last =:= [].
