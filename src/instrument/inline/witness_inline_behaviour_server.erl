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

-export([new/0, before_callback/4, after_callback/5, has_reported_all/1, reply_event/2]).

%% last: is sent when `terminate' has returned; timeout: the content of a time-out that may still come; any other message
%% cancels it.
-record(server, {last = [] :: [witness_inline_behaviour:seen()], timeout = none :: none | {timeout, term()}}).

new() -> #server{}.

before_callback(_, handle_call, [Request, From, _], State) -> receive_message({'$gen_call', From, Request}, State);
before_callback(_, handle_cast, [Message, _], State) -> receive_message({'$gen_cast', Message}, State);
before_callback(_, handle_info, [Message, _], #server{timeout = {timeout, Message}} = State) ->
    {[], State#server{timeout = none}};
before_callback(_, handle_info, [Message, _], State) -> receive_message(Message, State);
before_callback(_, _, _, State) -> {[], State}.

receive_message(Message, State) -> {[{recv, Message}], State#server{timeout = none}}.

after_callback(_, init, _, Outcome, State) ->
    after_init(Outcome, State);
after_callback(_, terminate, [Reason, _], {value, _}, #server{last = Last} = State) ->
    {Last, State, {ended, Reason}};
after_callback(_, terminate, _, {raised, Class, Reason, Stack}, #server{last = Last} = State) ->
    {Last, State, {ended, reason(Class, Reason, Stack)}};
after_callback(_, handle_call, [_, From, _], {value, Value}, State) ->
    after_call(Value, From, State);
after_callback(_, Function, _, {value, Value}, State) when Function =:= handle_cast; Function =:= handle_info;
                                                   Function =:= handle_continue ->
    {[], put_timeout(Value, State), running};
after_callback(_, _, _, _, State) ->
    {[], State, running}.

after_call({reply, Reply, _}, From, State) -> {[reply_event(From, Reply)], State, running};
after_call({reply, Reply, _, Action} = Value, From, State) ->
    case is_action(Action) of
        true -> {[reply_event(From, Reply)], put_timeout(Value, State), running};
        false -> {[], State, running}
    end;
after_call({stop, _, Reply, _}, From, State) -> {[], State#server{last = [reply_event(From, Reply)]}, running};
after_call(Value, _, State) -> {[], put_timeout(Value, State), running}.

put_timeout({ok, _, Action}, State) -> put_timeout(Action, State);
put_timeout({noreply, _, Action}, State) -> put_timeout(Action, State);
put_timeout({reply, _, _, Action}, State) -> put_timeout(Action, State);
put_timeout(Time, State) when is_integer(Time) -> State#server{timeout = {timeout, timeout}};
put_timeout({_, infinity, _}, State) -> State;
put_timeout({Kind, _, Content}, State) when Kind =:= timeout; Kind =:= hibernate ->
    State#server{timeout = {timeout, Content}};
put_timeout({Kind, Time, Content, _}, State) when Kind =:= timeout; Kind =:= hibernate ->
    put_timeout({Kind, Time, Content}, State);
put_timeout(_, State) -> State.

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

after_init({value, {ok, _}}, State) -> {[], State, running};
after_init({value, {ok, _, Action} = Value}, State) ->
    case is_action(Action) of
        true -> {[], put_timeout(Value, State), running};
        false -> {[], State, {ended, {bad_return_value, Value}}}
    end;
after_init({value, {stop, Reason}}, State) -> {[], State, {ended, Reason}};
after_init({value, {error, _}}, State) -> {[], State, {ended, normal}};
after_init({value, ignore}, State) -> {[], State, {ended, normal}};
after_init({value, Value}, State) -> {[], State, {ended, {bad_return_value, Value}}};
after_init({raised, Class, Reason, Stack}, State) -> {[], State, {ended, reason(Class, Reason, Stack)}}.

reason(error, Reason, Stack) -> {Reason, Stack};
reason(exit, Reason, _) -> Reason.

-doc "The receiver and the message of `gen:reply/2` for this caller.".
-spec reply_event(From :: term(), Reply :: term()) -> witness_inline_behaviour:seen().
reply_event({_, [alias | Alias] = Tag}, Reply) when is_reference(Alias) -> {send, Alias, {Tag, Reply}};
reply_event({_, [[alias | Alias] | _] = Tag}, Reply) when is_reference(Alias) -> {send, Alias, {Tag, Reply}};
reply_event({To, Tag}, Reply) -> {send, To, {Tag, Reply}}.

%% `last' is sent after `terminate'.
has_reported_all(#server{last = Last}) -> Last =:= [].
