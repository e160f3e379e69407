-module(witness_inline_behaviour_statem).
-moduledoc """
The events of a `gen_statem` process, derived from its callbacks; pure.

| callback | events |
|---|---|
| a state, or `handle_event`, with `{call, From}`, `cast` or `info` | receives `{'$gen_call', From, Request}`, `{'$gen_cast', Message}` or `Message` |
| the same, again after it was postponed, or inserted by `next_event` | none: it was a message before, or never is one |
| with `enter`, `internal` or a time-out | none |
| the action `{reply, From, Reply}` | sends the reply, when the action is executed |
| `terminate(Reason, _, _)`, `init` without a state | has ended, as with a `gen_server` |

The machine takes no message before it has handled the inserted events, and the postponed ones after a change of
state. So these events are kept here in the order in which the machine will handle them. The next event is the first of them, or, if
there are none, a message.
""".
-behaviour(witness_inline_behaviour).

-export([new/0, before_callback/4, after_callback/5, has_reported_all/1]).

-type machine_event() :: {Type :: term(), Content :: term()}.

%% What happens when the callback of an event, and the one that enters the next state, have returned.
-record(step, {event :: machine_event() | none, postpone = false :: boolean(), inserted = [] :: [machine_event()],
               changed = false :: boolean()}).

-record(machine, {queue = [] :: [machine_event()], postponed = [] :: [machine_event()], step = none :: none | #step{},
                  failed = none :: none | {Reason :: term(), Exit :: term()}}).

new() -> #machine{}.

before_callback(_, init, [_], State) -> {[], State};
before_callback(_, handle_event, [Type, Content, _, _], State) -> handle_machine_event({Type, Content}, State);
before_callback(_, terminate, [_, _, _], State) -> {[], State};
before_callback(_, _, [Type, Content, _], State) -> handle_machine_event({Type, Content}, State);
before_callback(_, _, _, State) -> {[], State}.

handle_machine_event({enter, _}, State) ->
    {[], State};
handle_machine_event(Event, State) ->
    case transition(State) of
        #machine{queue = [Event | Queue]} = Next -> {[], begin_step(Event, Next#machine{queue = Queue})};
        #machine{queue = [_ | _]} -> {lost, unknown_state_machine};
        #machine{} = Next -> {received_message(Event), begin_step(Event, Next)}
    end.

begin_step(Event, State) -> State#machine{step = #step{event = Event}}.

received_message({{call, From}, Request}) -> [{recv, {'$gen_call', From, Request}}];
received_message({cast, Message}) -> [{recv, {'$gen_cast', Message}}];
received_message({info, Message}) -> [{recv, Message}];
received_message(_) -> [].

%% Inserted events come first, then, if the state has changed, those that were postponed, then the events that were inserted
%% before.
transition(#machine{step = none} = State) ->
    State;
transition(#machine{queue = Queue, postponed = Before, step = Step} = State) ->
    #step{event = Event, postpone = Postpone, inserted = Inserted, changed = Changed} = Step,
    Postponed = case Postpone of true -> [Event | Before]; false -> Before end,
    case Changed of
        true ->
            Retried = lists:reverse(Postponed, Queue),
            State#machine{queue = lists:reverse(Inserted, Retried), postponed = [], step = none};
        false -> State#machine{queue = lists:reverse(Inserted, Queue), postponed = Postponed, step = none}
    end.

after_callback(_, init, [_], Outcome, State) ->
    after_init(Outcome, State);
after_callback(_, terminate, [Reason, _, _], {value, _}, State) ->
    {[], State, {ended, exit_reason(Reason, State)}};
after_callback(_, terminate, [_, _, _], {raised, Class, Reason, Stack}, State) ->
    {[], State, {ended, reason(Class, Reason, Stack)}};
after_callback(_, handle_event, [Type, _, Name, _], {value, Value}, State) ->
    after_state(Value, Type, Name, State);
after_callback(_, Name, [Type, _, _], {value, Value}, State) ->
    after_state(Value, Type, Name, State);
after_callback(_, _, _, {raised, Class, Reason, Stack}, State) ->
    {[], State#machine{failed = {Reason, reason(Class, Reason, Stack)}}, running};
after_callback(_, _, _, _, State) ->
    {[], State, running}.

%% `terminate' gets the reason of an error, and the process exits with the reason and a stack. If the machine
%% itself raises the error, for a bad return value or a missing callback, its stack is not known here.
exit_reason(Reason, #machine{failed = {Reason, Exit}}) -> Exit;
exit_reason(Reason, _) when Reason =:= undef; Reason =:= badarg -> {Reason, []};
exit_reason({Bad, _} = Reason, _) when Bad =:= bad_return_from_state_function; Bad =:= bad_action_from_state_function;
                                       Bad =:= bad_reply_action_from_state_function;
                                       Bad =:= bad_state_enter_return_from_state_function;
                                       Bad =:= bad_state_enter_action_from_state_function;
                                       Bad =:= bad_return_from_callback_mode -> {Reason, []};
exit_reason(Reason, _) -> Reason.

after_init({value, {ok, _, _}}, State) -> {[], State, running};
after_init({value, {ok, _, _, Actions}}, State) ->
    actions(to_list(Actions), [], #step{event = none}, true, State);
after_init({value, {stop, Reason}}, State) -> {[], State, {ended, Reason}};
after_init({value, {error, _}}, State) -> {[], State, {ended, normal}};
after_init({value, ignore}, State) -> {[], State, {ended, normal}};
after_init({value, Value}, State) -> {[], State, {ended, {bad_return_from_init, Value}}};
after_init({raised, Class, Reason, Stack}, State) -> {[], State, {ended, reason(Class, Reason, Stack)}}.

reason(error, Reason, Stack) -> {Reason, Stack};
reason(exit, Reason, _) -> Reason.

%% A callback that enters a state continues the step of the event that has led there.
after_state(Value, Type, Name, #machine{step = Before} = State) ->
    Step = case Before of none -> #step{event = none}; _ -> Before end,
    case Value of
        {next_state, Next, _} -> change_state(Next, Name, [], Type, Step, State);
        {next_state, Next, _, Actions} -> change_state(Next, Name, Actions, Type, Step, State);
        {Keep, _, Actions} when Keep =:= keep_state; Keep =:= repeat_state ->
            change_state(Name, Name, Actions, Type, Step, State);
        {Keep, Actions} when Keep =:= keep_state_and_data; Keep =:= repeat_state_and_data ->
            change_state(Name, Name, Actions, Type, Step, State);
        {stop_and_reply, _, Replies} -> {reply_events(to_list(Replies)), State, running};
        {stop_and_reply, _, Replies, _} -> {reply_events(to_list(Replies)), State, running};
        _ -> {[], State#machine{step = Step}, running}
    end.

change_state(Next, Name, Actions, Type, #step{changed = Changed} = Step, State) ->
    actions(to_list(Actions), [], Step#step{changed = Changed orelse Next =/= Name}, Type =/= enter, State).

to_list(List) when is_list(List) -> List;
to_list(One) -> [One].

reply_events([{reply, {Pid, _} = From, Reply} | Replies]) when is_pid(Pid) ->
    [witness_inline_behaviour_server:reply_event(From, Reply) | reply_events(Replies)];
reply_events(_) -> [].

%% An invalid action ends the machine; the actions before it are executed.
actions([{reply, {Pid, _} = From, Reply} | Actions], Seen, Step, IsState, State) when is_pid(Pid) ->
    actions(Actions, [witness_inline_behaviour_server:reply_event(From, Reply) | Seen], Step, IsState, State);
actions([{reply, _, _} | _], Seen, Step, _, State) -> end_actions(Seen, Step, State);
actions([postpone | Actions], Seen, Step, true, State) ->
    actions(Actions, Seen, Step#step{postpone = true}, true, State);
actions([{postpone, Postpone} | Actions], Seen, Step, IsState, State) when not Postpone orelse IsState ->
    actions(Actions, Seen, Step#step{postpone = Postpone}, IsState, State);
actions([{next_event, Type, Content} | Actions], Seen, #step{inserted = Inserted} = Step, true, State) ->
    actions(Actions, Seen, Step#step{inserted = [{Type, Content} | Inserted]}, true, State);
actions([Action | Actions], Seen, Step, IsState, State) ->
    case kind(Action) of
        {module, Module} when IsState ->
            case witness_weave:woven(Module) of
                {ok, _} -> actions(Actions, Seen, Step, IsState, State);
                no -> {lost, callback_module_not_woven}
            end;
        other -> actions(Actions, Seen, Step, IsState, State);
        _ -> end_actions(Seen, Step, State)
    end;
actions([], Seen, Step, _, State) -> end_actions(Seen, Step, State).

end_actions(Seen, Step, State) -> {lists:reverse(Seen), State#machine{step = Step}, running}.

kind({Change, Module}) when Change =:= change_callback_module; Change =:= push_callback_module -> {module, Module};
kind(pop_callback_module) -> other;
kind(hibernate) -> other;
kind({hibernate, _}) -> other;
kind(infinity) -> other;
kind(Time) when is_integer(Time) -> other;
kind({Type, Time, _}) when Time =:= infinity; Time =:= update; is_integer(Time) -> timeout(Type);
kind({Type, Time, _, _}) when Time =:= infinity; is_integer(Time) -> timeout(Type);
kind({Type, cancel}) -> timeout(Type);
kind(_) -> none.

timeout(timeout) -> other;
timeout(state_timeout) -> other;
timeout({timeout, _}) -> other;
timeout(_) -> none.

has_reported_all(_) -> true.
