-module(witness_inline_process).
-moduledoc """
What woven code calls for inline monitoring (`m:witness_weave_runtime`), in the process that runs it.

A process that is monitored has the state of its monitors (`m:witness_inline_monitors`) in its dictionary, under one key.
Every other process pays for one read of that key. Its values:

| | |
|---|---|
| nothing | the process is not monitored, or its first function has not asked yet |
| `off` | it is not monitored, and need not ask again |
| a number | a monitor is running, since that time of the coordinator: what it does is not an event |
| a state | it is monitored |

A process is born here when its first function asks (`entry/3`), regardless of how it was spawned. If the spawning code is
woven, the fun that the process was spawned with asks as well. The process ends when it leaves that function.
""".
-behaviour(witness_weave_runtime).

-export([sends/0, sent/2, received/1, blocks/1, wakes/1, sleep/3, entry/3, send/3, spawn/3, spawn_request/3, start/3, call/3,
         cast/3, reply/3, request/3,
         dictionary/3, hibernate/3, apply/3, function/3, make_fun/3, callback/3, init/2, called/3, returned/4]).
-export([report_event/1, start_monitoring/2, report_exit/1, report_gap/1, is_active/0, coordinator/0, mark_waiting/0, mark_acting/0,
         check_dictionary/1]).
-export([resume/4]).
-compile({no_auto_import, [apply/3, spawn/3, spawn_request/3]}).

-define(KEY, '$witness_inline').
%% As in `witness_inline_monitors'.
-define(SEND, 8).
-define(RECV, 16).
-define(STAMPED, 32).
-define(SURVIVES, 128).
-define(CALL, 512).
-define(RETURN, 1024).
-define(TIME(State), if element(2, State) band ?STAMPED =:= 0 -> undefined; true -> witness_inline_monitors:stamp(State) end).

%% --- messages --------------------------------------------------------------------

-doc false.
-spec sent(term(), term()) -> ok.
sent(To, Message) ->
    case get(?KEY) of
        State when element(2, State) band ?SEND =/= 0 -> handle_event({send, self(), To, Message, ?TIME(State)}, State);
        _ -> ok
    end.

-doc false.
-spec received(term()) -> ok.
received({_, Request, ok, Child} = Message) when is_reference(Request), is_pid(Child) ->
    ok = witness_inline_spawn:handle_reply(Request, {ok, Child}),
    report_received(Message);
received({_, Request, error, _} = Message) when is_reference(Request) ->
    ok = witness_inline_spawn:handle_reply(Request, error),
    report_received(Message);
received(Message) ->
    report_received(Message).

report_received(Message) ->
    case get(?KEY) of
        State when element(2, State) band ?RECV =/= 0 ->
            handle_event({recv, self(), undefined, Message, ?TIME(State)}, State);
        _ -> ok
    end.

handle_event(Event, State) ->
    case witness_inline_monitors:event(Event, State) of
        none -> end_monitoring(State);
        Next -> put(?KEY, Next), ok
    end.

end_monitoring(State) ->
    put(?KEY, off),
    ok = witness_inline_monitors:delete_stored(State),
    witness_inline_outside:leave().

%% A send is an event only when it has succeeded. So before it, the process must not be marked as waiting. A process is never
%% marked so in its own code, but OTP may call this between two callbacks.
-doc false.
-spec sends() -> ok.
sends() ->
    case get('$witness_inline_behaviour') of
        undefined -> ok;
        _ -> witness_inline_behaviour:is_between() andalso mark_acting(), ok
    end.

-doc false.
-spec send(module(), atom(), [term()]) -> term().
send(Module, Function, [To, Message | Options] = Args) ->
    ok = sends(),
    Result = erlang:apply(Module, Function, Args),
    _ = is_sent(Function, Options, Result) andalso sent(To, Message),
    Result.

%% `send' without options returns the message, whatever that is.
is_sent(send_nosuspend, _, Result) -> Result;
is_sent(send, [_], Result) -> Result =:= ok;
is_sent(_, [], _) -> true.

%% --- calls and returns -----------------------------------------------------------

%% Between two callbacks OTP may call functions that are woven, while the process is marked as waiting.

-doc false.
-spec called(module(), atom(), [term()]) -> ok.
called(Module, Function, Args) ->
    case get(?KEY) of
        State when element(2, State) band ?CALL =/= 0 ->
            ok = sends(),
            handle_event({call, self(), {Module, Function, Args}, ?TIME(State)}, State);
        _ -> ok
    end.

-doc false.
-spec returned(module(), atom(), arity(), term()) -> ok.
returned(Module, Function, Arity, Value) ->
    case get(?KEY) of
        State when element(2, State) band ?RETURN =/= 0 ->
            ok = sends(),
            handle_event({return, self(), {Module, Function, Arity}, Value, ?TIME(State)}, State);
        _ -> ok
    end.

%% --- waiting ---------------------------------------------------------------------

-doc false.
-spec blocks(Time :: term()) -> witness_inline_kept:cell() | none.
blocks(Time) ->
    case get(?KEY) of
        State when element(2, State) band ?SURVIVES =/= 0, Time =:= infinity;
                   element(2, State) band ?SURVIVES =/= 0, is_integer(Time), Time > 0, Time =< 16#ffffffff ->
            mark_waiting(State);
        %% Its monitors do not go on after its death, or this `receive' only polls, or fails.
        _ -> none
    end.

%% The `recv' event comes after that.
-doc false.
-spec wakes(witness_inline_kept:cell() | none) -> ok.
wakes(none) -> ok;
wakes(Cell) -> witness_inline_kept:unmark_waiting(Cell).

%% A message that comes meanwhile stays in the mailbox.
-doc false.
-spec sleep(module(), atom(), [term()]) -> term().
sleep(Module, Function, [Time] = Args) ->
    Waits = blocks(Time),
    Result = erlang:apply(Module, Function, Args),
    ok = wakes(Waits),
    Result.

-doc """
Until its next event the process does nothing of its own: it waits for a message, or runs code that only does what it was asked. If
it is ended meanwhile, only its end is missing in its trace.
""".
-spec mark_waiting() -> ok.
mark_waiting() ->
    case get(?KEY) of
        State when element(2, State) band ?SURVIVES =/= 0 ->
            _ = mark_waiting(State),
            ok;
        _ -> ok
    end.

mark_waiting(State) ->
    case witness_inline_monitors:mark_waiting(State) of
        {Waits, State} -> Waits;
        {Waits, Next} -> put(?KEY, Next), Waits
    end.

-doc "The process acts next.".
-spec mark_acting() -> ok.
mark_acting() ->
    case get(?KEY) of
        State when element(2, State) band ?SURVIVES =/= 0 -> witness_inline_monitors:mark_running(State);
        _ -> ok
    end.

-doc """
An event of the process, as the source of events would give it, but without its time. If the process is not monitored, nothing
happens.
""".
-spec report_event(witness_event:event()) -> ok.
report_event(Event) ->
    case get(?KEY) of
        State when is_tuple(State) ->
            case witness_inline_monitors:wants(element(1, Event), State) of
                true ->
                    Stamped = setelement(tuple_size(Event), Event, witness_inline_monitors:stamp(State)),
                    handle_event(resolve(Stamped, State), State);
                false -> ok
            end;
        _ -> ok
    end.

resolve({fork, P, Child, Signature, Ts}, State) ->
    {fork, P, Child, witness_event_signature:resolve(Signature, witness_inline_monitors:signatures(State)), Ts};
resolve(Event, _) -> Event.

%% --- birth -----------------------------------------------------------------------

-doc false.
-spec entry(module(), atom(), [term()]) -> go | {done, term()}.
entry(Module, Function, Args) ->
    case witness_inline_registry:find(Module) of
        none -> go;
        Observer ->
            [{initial_call, Initial}, {parent, Parent}] = process_info(self(), [initial_call, parent]),
            case is_first(Module, Function, length(Args), Initial) of
                true ->
                    case start_if_observed(witness_event_signature:resolve({Module, Function, Args}), Parent, Observer) of
                        monitored -> {done, witness_inline_end:run(Module, Function, Args, coordinator())};
                        not_monitored -> go
                    end;
                false ->
                    put(?KEY, off),
                    go;
                unknown ->
                    go
            end
    end.

%% Whether a process was spawned with this function. Processes of OTP start in OTP's functions. It is not known yet whether the
%% function that OTP calls will ask as a callback.
is_first(Module, Function, Arity, {Module, Function, Arity}) -> true;
is_first(Module, Function, Arity, {proc_lib, init_p, _}) ->
    case get('$initial_call') of
        {Module, Function, Arity} ->
            case witness_inline_behaviour:is_first(Module, Function, Arity) of
                true -> true;
                false -> unknown
            end;
        _ -> unknown
    end;
is_first(_, _, _, _) -> false.

-doc """
The process starts here, in a woven module, with this signature. The caller must also see the end of the process.
""".
-spec start_monitoring(module(), witness_event:signature()) -> monitored | not_monitored.
start_monitoring(Module, Signature) ->
    case witness_inline_registry:find(Module) of
        none -> not_monitored;
        Observer ->
            {parent, Parent} = process_info(self(), parent),
            start_if_observed(Signature, Parent, Observer)
    end.

start_if_observed(Given, Parent, #{switch := Switch, known := Known, maps := Maps, scope := Scope} = Observer) ->
    Signature = witness_event_signature:resolve(Given, witness_event_wrapper:of_config(Observer)),
    Monitors = try
        atomics:get(Switch, 1) =:= 1 andalso ets:lookup(Known, self())
    of
        [] -> case Scope(self()) of true -> monitors_for(Maps, Signature); false -> [] end;
        [{_, seen}] -> report_lost(Observer);
        %% The process was born before the run, or the run is over.
        _ -> []
    catch
        %% The coordinator has ended, and its tables with it.
        error:badarg -> []
    end,
    case start_monitors(Monitors, Signature, Parent, Observer) of
        none ->
            put(?KEY, off),
            not_monitored;
        State ->
            put(?KEY, State),
            ok = witness_inline_outside:observe(maps:get(outside, Observer)),
            monitored
    end.

start_monitors([], _, _, _) -> none;
start_monitors(Monitors, Signature, Parent, #{birth_table := BirthTable} = Observer) ->
    Cell = witness_inline_kept:new_cell(),
    case witness_inline_birth_table:insert(Signature, Monitors, {Parent, Cell}, BirthTable) of
        true -> witness_inline_monitors:start(Signature, Parent, Monitors, Cell, Observer);
        gone -> none;
        false ->
            [] = report_lost(Observer),
            none
    end.

%% An observed process without a state has lost it: code that is not woven has deleted its dictionary.
report_lost(#{coordinator := Coordinator}) ->
    ok = witness_inline_monitors:report_lost(self(), Coordinator),
    [].

-doc """
Called in a process with callbacks in this module that is not monitored. If it was, code has deleted its dictionary between two
callbacks, while its mark said that it waited. So it reports to the coordinator that its state is lost, before it goes on.
""".
-spec check_dictionary(module()) -> ok.
check_dictionary(Module) ->
    case get(?KEY) =:= undefined andalso witness_inline_registry:find(Module) of
        #{known := Known, birth_table := BirthTable, coordinator := Coordinator} ->
            case (try
                      {ets:lookup(Known, self()), witness_inline_birth_table:open_processes(self(), BirthTable)}
                  catch
                      error:badarg -> gone
                  end) of
                gone -> ok;
                {[{_, old}], _} -> put(?KEY, off), ok;
                {[], []} -> ok;
                {_, _} ->
                    put(?KEY, off),
                    witness_inline_monitors:report_lost(self(), Coordinator)
            end;
        _ -> ok
    end.

monitors_for(Maps, Signature) ->
    Label = witness_instrument_map:new(Maps, #{held => false, signature => Signature}),
    [{N, Entry} || {N, {_, Entry}} <- lists:enumerate(witness_instrument_map:starts(Label))].

%% --- end -------------------------------------------------------------------------

-doc "The process ends for this reason: gives its `exit`, after which all monitors end. Only the first call has an effect.".
-spec report_exit(Reason :: term()) -> ok.
report_exit(Reason) ->
    case witness_inline_spawn:take_pending() of
        true -> report_gap(spawn_request);
        false -> report_event({exit, self(), Reason, undefined}), finish(complete)
    end.

-doc "Events are missing from here on, for every monitor of the process.".
-spec report_gap(Why :: atom()) -> ok.
report_gap(Why) -> finish({gap, Why}).

finish(How) ->
    case get(?KEY) of
        State when is_tuple(State) ->
            put(?KEY, off),
            ok = witness_inline_outside:leave(),
            ok = witness_inline_monitors:finish(How, State),
            witness_inline_monitors:delete_stored(State);
        _ -> ok
    end.

-doc false.
-spec hibernate(module(), atom(), [term()]) -> term().
hibernate(Module, hibernate, []) ->
    ok = mark_waiting(),
    try erlang:apply(Module, hibernate, [])
    after mark_acting()
    end;
hibernate(Module, hibernate, [M, F, Args] = Call) ->
    case is_active() andalso is_accepted(Module, M, F, Args) of
        true ->
            Resumed = [?MODULE, resume, [M, F, Args, coordinator()]],
            ok = mark_waiting(),
            erlang:apply(Module, hibernate, Resumed);
        false -> erlang:apply(Module, hibernate, Call)
    end.

%% `hibernate/3' refuses invalid arguments before the process sleeps.
is_accepted(proc_lib, M, F, Args) -> is_atom(M) andalso is_atom(F) andalso is_list(Args);
is_accepted(erlang, M, F, Args) when is_atom(M), is_atom(F), length(Args) =< 255 -> true;
is_accepted(erlang, _, _, _) -> false.

-doc false.
-spec resume(module(), atom(), [term()], pid()) -> term().
resume(Module, Function, Args, Coordinator) ->
    ok = mark_acting(),
    witness_inline_end:run(Module, Function, Args, Coordinator).

%% --- other calls -----------------------------------------------------------------

-doc false.
-spec spawn(module(), atom(), [term()]) -> term().
spawn(Module, Function, Args) ->
    ok = sends(),
    witness_inline_spawn:spawn(Module, Function, Args).

-doc false.
-spec spawn_request(module(), atom(), [term()]) -> term().
spawn_request(Module, Function, Args) ->
    ok = sends(),
    witness_inline_spawn:request(Module, Function, Args).

-doc false.
-spec start(module(), atom(), [term()]) -> term().
start(Module, Function, Args) ->
    ok = sends(),
    witness_inline_behaviour_client:start(Module, Function, Args).

-doc false.
-spec call(module(), atom(), [term()]) -> term().
call(Module, Function, Args) ->
    ok = sends(),
    witness_inline_behaviour_client:call(Module, Function, Args).

-doc false.
-spec cast(module(), atom(), [term()]) -> term().
cast(Module, Function, Args) ->
    ok = sends(),
    witness_inline_behaviour_client:cast(Module, Function, Args).

-doc false.
-spec reply(module(), atom(), [term()]) -> term().
reply(Module, Function, Args) ->
    ok = sends(),
    witness_inline_behaviour_client:reply(Module, Function, Args).

-doc false.
-spec request(module(), atom(), [term()]) -> term().
request(Module, Function, Args) ->
    ok = sends(),
    witness_inline_behaviour_client:request(Module, Function, Args).

-doc false.
-spec callback(module(), atom(), [term()]) -> go | {done, term()}.
callback(Module, Function, Args) -> witness_inline_behaviour:callback(Module, Function, Args).

-doc false.
-spec init(module(), [term()]) -> go | {done, term()}.
init(Module, Args) -> witness_inline_behaviour:init(Module, Args).

-doc false.
-spec dictionary(module(), atom(), [term()]) -> term().
dictionary(erlang, get, []) -> [Entry || {Key, _} = Entry <- get(), not is_own(Key)];
dictionary(erlang, get_keys, Args) -> [Key || Key <- erlang:apply(erlang, get_keys, Args), not is_own(Key)];
dictionary(erlang, erase, []) ->
    {Own, Others} = lists:partition(fun({Key, _}) -> is_own(Key) end, erase()),
    lists:foreach(fun({Key, Value}) -> put(Key, Value) end, Own),
    Others.

%% The state, and the marks of the monitors.
is_own(Key) when is_atom(Key) ->
    case atom_to_binary(Key) of
        <<"$witness_", _/binary>> -> true;
        _ -> false
    end;
is_own(_) -> false.

-doc false.
-spec apply(module(), atom(), [term()]) -> term().
apply(Module, Function, Args) when length(Args) >= 0 ->
    case class(Module, Function, length(Args)) of
        none -> erlang:apply(Module, Function, Args);
        Class -> ?MODULE:Class(Module, Function, Args)
    end;
%% If the arguments are not a list, the call itself refuses them.
apply(Module, Function, Args) ->
    erlang:apply(Module, Function, Args).

class(Module, Function, Arity) when is_atom(Module), is_atom(Function) ->
    witness_weave_calls:class(Module, Function, Arity);
class(_, _, _) -> none.

-doc false.
-spec function(module(), atom(), arity()) -> function().
function(Module, Function, Arity) ->
    case class(Module, Function, Arity) of
        none -> fun Module:Function/Arity;
        _ -> witness_weave_runtime:calling(Arity, fun(Args) -> apply(Module, Function, Args) end)
    end.

-doc false.
-spec make_fun(module(), atom(), [term()]) -> function().
make_fun(erlang, make_fun, [Module, Function, Arity]) -> function(Module, Function, Arity).

%% --- the monitors of the process -------------------------------------------------

-doc "The coordinator that coordinates the monitors of the process. The process must have some.".
-spec coordinator() -> pid().
coordinator() -> witness_inline_monitors:coordinator(get(?KEY)).

-doc "Whether the process is monitored.".
-spec is_active() -> boolean().
is_active() -> is_tuple(get(?KEY)).
