-module(witness_inline_behaviour).
-moduledoc """
The events of a process of `gen_server`, `gen_statem`, `gen_event` or `supervisor`, seen from its callbacks.

Woven callbacks (`m:witness_weave_behaviour`) ask here first. What a callback is given and what it returns are events,
as the VM would trace the process: the message that OTP has taken for it, the replies that OTP sends for it. What each
behaviour makes of them is in `m:witness_inline_behaviour_server`, `_statem` and `_event`, which are pure.

A callback is observed when OTP has called it. When the process's own code calls it, also in another callback, it is
part of what goes on already. Within a callback the stack tells the one from the other: a callback that enters another
loop (`enter_loop`) never returns.
""".

-export([callback/3, init/2, is_first/3, is_between/0]).
-export_type([seen/0, outcome/0]).

-doc "An event of the process itself.".
-type seen() :: {recv, Message :: term()} | {send, To :: term(), Message :: term()}.

-doc "How a callback has ended: `throw/1` is a value for OTP.".
-type outcome() :: {value, term()} | {raised, error | exit, Reason :: term(), Stack :: list()}.

-type state() :: term().

-doc "The state at the start of the process.".
-callback new() -> state().

-doc "The events of a callback that is called. `lost`: what it is given does not fit what was seen before.".
-callback given(module(), Function :: atom(), Args :: [term()], state()) -> {[seen()], state()} | {lost, Why :: atom()}.

-doc "The events of its outcome, and what becomes of the process.".
-callback returned(module(), Function :: atom(), Args :: [term()], outcome(), state()) ->
    {[seen()], state(), running | {ended, Reason :: term()}} | {lost, Why :: atom()}.

-doc "Whether all that the callbacks of before have had sent is told, so that OTP does nothing more before the next one that is an event.".
-callback is_told(state()) -> boolean().

%% Beside the state of the monitors: woven code sees neither.
-define(KEY, '$witness_inline_behaviour').

%% What this module keeps of a process: `outside' of callbacks, `calling' one, which then asks a second time, or `inside' of
%% it; and whether the process has begun here, so that its end is seen here too.
-record(slot, {kind :: module(), where = outside :: outside | calling | inside, begun :: boolean(), state :: state()}).

-doc "A callback of a process that is monitored. `go`: do what was written.".
-spec callback(module(), atom(), [term()]) -> go | {done, term()}.
callback(Module, Function, Args) ->
    case witness_inline_process:active() of
        true -> asked(get(?KEY), Module, Function, Args);
        false ->
            ok = witness_inline_process:remembers(Module),
            go
    end.

asked(#slot{where = outside} = Slot, Module, Function, Args) ->
    ok = witness_inline_process:acts(),
    observed(Slot, Module, Function, Args);
asked(#slot{where = calling} = Slot, _, _, _) ->
    _ = put(?KEY, Slot#slot{where = inside}),
    go;
asked(Slot, Module, Function, Args) ->
    within(Slot, caller(Module, Function, length(Args)), Module, Function, Args).

within(_, none, _, _, _) ->
    go;
within(_, unknown, _, _, _) ->
    witness_inline_process:gap(backtrace_depth),
    go;
within(Slot, Kind, Module, Function, Args) ->
    Begun = case Slot of #slot{begun = Before} -> Before; undefined -> false end,
    observed(#slot{kind = Kind, begun = Begun, state = Kind:new()}, Module, Function, Args).

-doc """
`init/1` of a callback module, in a process that is not monitored: one that OTP has started begins here. Any other
begins as with every function that processes are spawned with.
""".
-spec init(module(), [term()]) -> go | {done, term()}.
init(Module, Args) ->
    case caller(Module, init, 1) of
        none ->
            case is_first(Module, init, 1) orelse get('$initial_call') =/= {Module, init, 1} of
                true -> witness_inline_process:entry(Module, init, Args);
                false -> begun(witness_inline_behaviour_supervisor, Module, Args)
            end;
        unknown -> go;
        Kind -> begun(Kind, Module, Args)
    end.

begun(Kind, Module, Args) ->
    case witness_inline_process:born(Module, signature(Kind, Module, Args)) of
        monitored ->
            Observed = observed(#slot{kind = Kind, begun = true, state = Kind:new()}, Module, init, Args),
            %% It goes on where it has no callbacks, so from here on it can only be seen in parts.
            _ = Kind =:= witness_inline_behaviour_supervisor andalso witness_inline_process:gap(no_callbacks),
            Observed;
        not_monitored -> go
    end.

-doc """
Whether `proc_lib` itself has called the function. What the process says of its first function is the callback of a
behaviour where there is one, also one that is not known here.
""".
-spec is_first(module(), atom(), arity()) -> boolean().
is_first(Module, Function, Arity) -> by(Module, Function, Arity) =:= proc_lib.

signature(witness_inline_behaviour_event, _, _) ->
    case process_info(self(), registered_name) of
        {registered_name, Name} -> {gen_event, init, [{local, Name}]};
        [] -> {gen_event, init, [undefined]}
    end;
signature(witness_inline_behaviour_server, Module, Args) ->
    witness_inline_behaviour_child:signature('Elixir.GenServer', [Module | Args]);
signature(_, Module, Args) ->
    {Module, init, Args}.

observed(#slot{kind = Kind, state = State} = Slot, Module, Function, Args) ->
    case Kind:given(Module, Function, Args, State) of
        {lost, Why} ->
            witness_inline_process:gap(Why),
            go;
        {Seen, Next} ->
            seen(Seen),
            Calling = Slot#slot{where = calling, state = Next},
            _ = put(?KEY, Calling),
            {done, done(Calling, Module, Function, Args)}
    end.

%% The stack of an exception is kept as it is: OTP reports it, and it is the reason of the exit.
done(Slot, Module, Function, Args) ->
    try apply(Module, Function, Args) of
        Value ->
            returned(Slot, Module, Function, Args, {value, Value}),
            Value
    catch
        throw:Value:Stack ->
            returned(Slot, Module, Function, Args, {value, Value}),
            erlang:raise(throw, Value, Stack);
        Class:Reason:Stack ->
            returned(Slot, Module, Function, Args, {raised, Class, Reason, Stack}),
            erlang:raise(Class, Reason, Stack)
    end.

returned(#slot{kind = Kind, begun = Begun, state = State} = Slot, Module, Function, Args, Outcome) ->
    case Kind:returned(Module, Function, Args, Outcome, State) of
        {Seen, Next, Becomes} ->
            seen(Seen),
            case Becomes of
                {ended, Reason} when Begun -> witness_inline_process:ended(Reason);
                _ ->
                    _ = put(?KEY, Slot#slot{where = outside, state = Next}),
                    _ = Kind:is_told(Next) andalso witness_inline_process:rests(),
                    ok
            end;
        {lost, Why} ->
            witness_inline_process:gap(Why)
    end.

-doc "Whether the process is in OTP's code between two callbacks.".
-spec is_between() -> boolean().
is_between() ->
    case get(?KEY) of
        #slot{where = outside} -> true;
        _ -> false
    end.

seen([]) ->
    ok;
seen([{recv, Message} | Seen]) ->
    witness_inline_process:event({recv, self(), undefined, Message, undefined}),
    seen(Seen);
seen([{send, To, Message} | Seen]) ->
    witness_inline_process:event({send, self(), To, Message, undefined}),
    seen(Seen).

%% Who has called the function that asks: it stands in the stack itself, as the call of this module is not its last.
%% What the VM is set to show of the stack may be less than that.
caller(Module, Function, Arity) -> kind(by(Module, Function, Arity)).

by(Module, Function, Arity) ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    case lists:dropwhile(fun({M, F, A, _}) -> {M, F, A} =/= {Module, Function, Arity} end, Stack) of
        [_, {By, _, _, _} | _] -> By;
        _ ->
            case length(Stack) < erlang:system_info(backtrace_depth) of
                true -> none;
                false -> unknown
            end
    end.

kind(unknown) -> unknown;
kind(gen_server) -> witness_inline_behaviour_server;
kind(gen_statem) -> witness_inline_behaviour_statem;
kind(gen_event) -> witness_inline_behaviour_event;
kind(supervisor) -> witness_inline_behaviour_supervisor;
kind(supervisor_bridge) -> witness_inline_behaviour_supervisor;
kind('Elixir.DynamicSupervisor') -> witness_inline_behaviour_supervisor;
kind(_) -> none.
