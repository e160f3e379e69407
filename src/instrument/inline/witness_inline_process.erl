-module(witness_inline_process).
-moduledoc """
What woven code calls for inline monitoring (`m:witness_weave_runtime`), in the process that runs it.

A process that is monitored has the state of its monitors (`m:witness_inline_monitors`) in its dictionary, under one key.
Every other process pays for one read of that key. Its values:

| | |
|---|---|
| nothing | the process is not monitored, or its first function has not asked yet |
| `off` | it is not monitored, and need not ask again |
| a number | a monitor is running, since that time of the host: what it does is not an event |
| a state | it is monitored |

A process is born here when its first function asks (`entry/3`), regardless of how it was spawned. If the spawning code is woven, the
fun that the process was spawned with asks as well. The process ends when it leaves that function.
""".
-behaviour(witness_weave_runtime).

-export([sends/0, sent/2, received/1, blocks/1, wakes/1, sleep/3, entry/3, send/3, spawn/3, spawn_request/3, start/3, call/3, cast/3, reply/3, request/3,
         dictionary/3, hibernate/3, apply/3, function/3, make_fun/3, callback/3, init/2]).
-export([event/1, born/2, ended/1, gap/1, active/0, host/0, rests/0, acts/0, remembers/1]).
-export([resume/4]).
-compile({no_auto_import, [apply/3, spawn/3, spawn_request/3]}).

-define(KEY, '$witness_inline').
%% As in `witness_inline_monitors'.
-define(SEND, 8).
-define(RECV, 16).
-define(STAMPED, 32).
-define(SURVIVES, 128).
-define(TIME(State), if element(2, State) band ?STAMPED =:= 0 -> undefined; true -> witness_inline_monitors:stamp(State) end).

%% --- messages --------------------------------------------------------------------

-doc false.
-spec sent(term(), term()) -> ok.
sent(To, Message) ->
    case get(?KEY) of
        State when element(2, State) band ?SEND =/= 0 -> seen({send, self(), To, Message, ?TIME(State)}, State);
        _ -> ok
    end.

-doc false.
-spec received(term()) -> ok.
received({_, Request, ok, Child} = Message) when is_reference(Request), is_pid(Child) ->
    ok = witness_inline_spawn:replied(Request, {ok, Child}),
    taken(Message);
received({_, Request, error, _} = Message) when is_reference(Request) ->
    ok = witness_inline_spawn:replied(Request, error),
    taken(Message);
received(Message) ->
    taken(Message).

taken(Message) ->
    case get(?KEY) of
        State when element(2, State) band ?RECV =/= 0 ->
            seen({recv, self(), undefined, Message, ?TIME(State)}, State);
        _ -> ok
    end.

seen(Event, State) ->
    case witness_inline_monitors:event(Event, State) of
        none -> left(State);
        Next -> put(?KEY, Next), ok
    end.

left(State) ->
    put(?KEY, off),
    ok = witness_inline_monitors:swept(State),
    witness_inline_outside:leave().

%% A send is an event only when it has succeeded. So before it, the process must not be marked as waiting. A process is never
%% marked so in its own code, but OTP may call this between two callbacks.
-doc false.
-spec sends() -> ok.
sends() ->
    case get('$witness_inline_behaviour') of
        undefined -> ok;
        _ -> witness_inline_behaviour:is_between() andalso acts(), ok
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

%% --- waiting ---------------------------------------------------------------------

-doc false.
-spec blocks(Time :: term()) -> witness_inline_kept:cell() | none.
blocks(Time) ->
    case get(?KEY) of
        State when element(2, State) band ?SURVIVES =/= 0, Time =:= infinity;
                   element(2, State) band ?SURVIVES =/= 0, is_integer(Time), Time > 0, Time =< 16#ffffffff ->
            rests(State);
        %% Its monitors do not go on after its death, or this `receive' only polls, or fails.
        _ -> none
    end.

%% The `recv' event comes after that.
-doc false.
-spec wakes(witness_inline_kept:cell() | none) -> ok.
wakes(none) -> ok;
wakes(Cell) -> witness_inline_kept:goes_on(Cell).

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
-spec rests() -> ok.
rests() ->
    case get(?KEY) of
        State when element(2, State) band ?SURVIVES =/= 0 ->
            _ = rests(State),
            ok;
        _ -> ok
    end.

rests(State) ->
    case witness_inline_monitors:waits(State) of
        {Waits, State} -> Waits;
        {Waits, Next} -> put(?KEY, Next), Waits
    end.

-doc "The process acts next.".
-spec acts() -> ok.
acts() ->
    case get(?KEY) of
        State when element(2, State) band ?SURVIVES =/= 0 -> witness_inline_monitors:runs(State);
        _ -> ok
    end.

-doc """
An event of the process, as the source of events would give it, but without its time. If the process is not monitored, nothing
happens.
""".
-spec event(witness_event:event()) -> ok.
event(Event) ->
    case get(?KEY) of
        State when is_tuple(State) ->
            case witness_inline_monitors:wants(element(1, Event), State) of
                true -> seen(setelement(tuple_size(Event), Event, witness_inline_monitors:stamp(State)), State);
                false -> ok
            end;
        _ -> ok
    end.

%% --- birth -----------------------------------------------------------------------

-doc false.
-spec entry(module(), atom(), [term()]) -> go | {done, term()}.
entry(Module, Function, Args) ->
    case witness_inline_registry:find(Module) of
        none -> go;
        Births ->
            [{initial_call, Initial}, {parent, Parent}] = process_info(self(), [initial_call, parent]),
            case is_first(Module, Function, length(Args), Initial) of
                true ->
                    case observed(witness_event_signature:resolve({Module, Function, Args}), Parent, Births) of
                        monitored -> {done, witness_inline_end:run(Module, Function, Args, host())};
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
-spec born(module(), witness_event:signature()) -> monitored | not_monitored.
born(Module, Signature) ->
    case witness_inline_registry:find(Module) of
        none -> not_monitored;
        Births ->
            {parent, Parent} = process_info(self(), parent),
            observed(Signature, Parent, Births)
    end.

observed(Signature, Parent, #{switch := Switch, known := Known, maps := Maps, scope := Scope} = Births) ->
    Monitors = try
        atomics:get(Switch, 1) =:= 1 andalso ets:lookup(Known, self())
    of
        [] -> case Scope(self()) of true -> entries(Maps, Signature); false -> [] end;
        [{_, seen}] -> lost(Births);
        %% The process was born before the run, or the run is over.
        _ -> []
    catch
        %% The host has ended, and its tables with it.
        error:badarg -> []
    end,
    case started(Monitors, Signature, Parent, Births) of
        none ->
            put(?KEY, off),
            not_monitored;
        State ->
            put(?KEY, State),
            ok = witness_inline_outside:observe(maps:get(outside, Births)),
            monitored
    end.

started([], _, _, _) -> none;
started(Monitors, Signature, Parent, #{notes := Notes} = Births) ->
    Cell = witness_inline_kept:cell(),
    case witness_inline_birth_table:born(Signature, Monitors, {Parent, Cell}, Notes) of
        true -> witness_inline_monitors:start(Signature, Parent, Monitors, Cell, Births);
        gone -> none;
        false ->
            [] = lost(Births),
            none
    end.

%% An observed process without a state has lost it: code that is not woven has deleted its dictionary.
lost(#{host := Host}) ->
    ok = witness_inline_monitors:lost(self(), Host),
    [].

-doc """
Called in a process with callbacks in this module that is not monitored. If it was, code has deleted its dictionary between two
callbacks, while its mark said that it waited. So it reports to the host that its state is lost, before it goes on.
""".
-spec remembers(module()) -> ok.
remembers(Module) ->
    case get(?KEY) =:= undefined andalso witness_inline_registry:find(Module) of
        #{known := Known, notes := Notes, host := Host} ->
            case (try {ets:lookup(Known, self()), witness_inline_birth_table:open(self(), Notes)} catch error:badarg -> gone end) of
                gone -> ok;
                {[{_, old}], _} -> put(?KEY, off), ok;
                {[], []} -> ok;
                {_, _} ->
                    put(?KEY, off),
                    witness_inline_monitors:lost(self(), Host)
            end;
        _ -> ok
    end.

entries(Maps, Signature) ->
    Label = witness_instrument_map:new(Maps, #{held => false, signature => Signature}),
    [{N, Entry} || {N, {_, Entry}} <- lists:enumerate(witness_instrument_map:starts(Label))].

%% --- end -------------------------------------------------------------------------

-doc "The process ends for this reason: gives its `exit`, after which all monitors end. Only the first call has an effect.".
-spec ended(Reason :: term()) -> ok.
ended(Reason) ->
    case witness_inline_spawn:pending() of
        true -> gap(spawn_request);
        false -> event({exit, self(), Reason, undefined}), over(complete)
    end.

-doc "Events are missing from here on, for every monitor of the process.".
-spec gap(Why :: atom()) -> ok.
gap(Why) -> over({gap, Why}).

over(How) ->
    case get(?KEY) of
        State when is_tuple(State) ->
            put(?KEY, off),
            ok = witness_inline_outside:leave(),
            ok = witness_inline_monitors:finish(How, State),
            witness_inline_monitors:swept(State);
        _ -> ok
    end.

-doc false.
-spec hibernate(module(), atom(), [term()]) -> term().
hibernate(Module, hibernate, []) ->
    ok = rests(),
    try erlang:apply(Module, hibernate, [])
    after acts()
    end;
hibernate(Module, hibernate, [M, F, Args] = Call) ->
    case active() andalso is_accepted(Module, M, F, Args) of
        true ->
            Resumed = [?MODULE, resume, [M, F, Args, host()]],
            ok = rests(),
            erlang:apply(Module, hibernate, Resumed);
        false -> erlang:apply(Module, hibernate, Call)
    end.

%% `hibernate/3' refuses invalid arguments before the process sleeps.
is_accepted(proc_lib, M, F, Args) -> is_atom(M) andalso is_atom(F) andalso is_list(Args);
is_accepted(erlang, M, F, Args) when is_atom(M), is_atom(F), length(Args) =< 255 -> true;
is_accepted(erlang, _, _, _) -> false.

-doc false.
-spec resume(module(), atom(), [term()], pid()) -> term().
resume(Module, Function, Args, Host) ->
    ok = acts(),
    witness_inline_end:run(Module, Function, Args, Host).

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

-doc "The host that coordinates the monitors of the process. The process must have some.".
-spec host() -> pid().
host() -> witness_inline_monitors:host(get(?KEY)).

-doc "Whether the process is monitored.".
-spec active() -> boolean().
active() -> is_tuple(get(?KEY)).
