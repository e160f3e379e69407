-module(witness_called_server).
-moduledoc """
The servers that `m:witness_called_arguments` has: one of each behaviour. It is given its behaviour, and the process that it lives
no longer than, or `none`. It answers `{echo, Request}`; `never` is never answered, `{stop, Reason}` ends it without an answer.
""".

-export([init/1, callback_mode/0, handle_call/3, handle_cast/2, handle_info/2, handle_event/4, handle_event/2, handle_call/2,
         terminate/2,
         child/1, lives/1]).

init({_, {stop, Reason}}) -> {stop, Reason};
init({_, ignore}) -> ignore;
init({_, crash}) -> error(crash);
init({Behaviour, Owner}) ->
    lives(Owner),
    case Behaviour of
        gen_server -> {ok, none};
        gen_statem -> {ok, none, none};
        gen_event -> {ok, none};
        supervisor -> {ok, {#{}, []}};
        dynamic -> {ok, #{strategy => one_for_one, intensity => 1, period => 1, max_children => infinity, extra_arguments => []}};
        bridge -> {ok, self(), none}
    end;
init(_) -> {stop, wrong}.

-doc "The process lives no longer than the other.".
lives(Owner) when is_pid(Owner) ->
    Self = self(),
    _ = spawn(fun() ->
        Ref = monitor(process, Owner),
        receive {'DOWN', Ref, process, _, _} -> exit(Self, kill) end
    end),
    ok;
lives(none) -> ok.

callback_mode() -> handle_event_function.

handle_call(never, _, State) -> {noreply, State};
handle_call({stop, Reason}, _, State) -> {stop, Reason, State};
handle_call(Request, _, State) -> {reply, {echo, Request}, State}.

handle_cast(Message, State) -> told(Message, State).

handle_info(Message, State) -> told(Message, State).

handle_event({call, _}, never, _, _) -> keep_state_and_data;
handle_event({call, _}, {stop, Reason}, _, _) -> {stop, Reason};
handle_event({call, From}, Request, _, _) -> {keep_state_and_data, [{reply, From, {echo, Request}}]};
handle_event(_, Message, State, _) ->
    _ = told(Message, State),
    keep_state_and_data.

%% Of a manager.
handle_event(Message, State) ->
    {noreply, State} = told(Message, State),
    {ok, State}.

handle_call(Request, State) -> {ok, {echo, Request}, State}.

terminate(_, _) -> terminated.

told({tell, To, Message}, State) ->
    To ! Message,
    {noreply, State};
told(_, State) -> {noreply, State}.

-doc "A child of a supervisor.".
child(Owner) ->
    {ok, spawn_link(fun() ->
        lives(Owner),
        receive stop -> ok end
    end)}.
