-module(witness_inline_behaviour).
-moduledoc """
The events of a process of `gen_server`, `gen_statem`, `gen_event` or `supervisor`, seen from its callbacks.

Woven callbacks (`m:witness_weave_behaviour`) call this module first. It turns the arguments of a callback and its result into
events, as if the VM traced the process: the message that OTP has taken for it, the replies that OTP sends for it. The
events of each behaviour are in `m:witness_inline_behaviour_server`, `_statem` and `_event`, which are pure.

A callback is observed if OTP has called it. If the process's own code calls it, even in another callback, it is part of what
already runs. Within a callback the stack distinguishes the two, since a callback that enters another loop (`enter_loop`)
never returns.
""".

-export([callback/3, init/2, is_first/3, is_between/0]).
-export_type([seen/0, outcome/0]).

-doc "An event of the process itself.".
-type seen() :: {recv, Message :: term()} | {send, To :: term(), Message :: term()}.

-doc "How a callback has ended. A thrown term is a value for OTP.".
-type outcome() :: {value, term()} | {raised, error | exit, Reason :: term(), Stack :: list()}.

-type state() :: term().

-doc "The state at the start of the process.".
-callback new() -> state().

-doc "The events of a call of a callback. `lost`: its arguments do not fit what was seen before.".
-callback before_callback(module(), Function :: atom(), Args :: [term()], state()) -> {[seen()], state()} | {lost, Why :: atom()}.

-doc "The events of its outcome, and whether the process goes on.".
-callback after_callback(module(), Function :: atom(), Args :: [term()], outcome(), state()) ->
    {[seen()], state(), running | {ended, Reason :: term()}} | {lost, Why :: atom()}.

-doc "Whether all messages of the earlier callbacks are reported. If so, OTP performs no event before the next callback that is one.".
-callback has_reported_all(state()) -> boolean().

%% This entry is beside the state of the monitors; woven code sees neither.
-define(KEY, '$witness_inline_behaviour').

%% where: `outside' of callbacks; `calling' one, which then asks a second time; or `inside' of it. begun: whether the process has
%% begun in this module, which then sees its end too.
-record(slot, {kind :: module(), where = outside :: outside | calling | inside, begun :: boolean(), state :: state()}).

-doc "A callback of a process that may be monitored. `go`: run the original code.".
-spec callback(module(), atom(), [term()]) -> go | {done, term()}.
callback(Module, Function, Args) ->
    case witness_inline_process:is_active() of
        true -> dispatch(get(?KEY), Module, Function, Args);
        false ->
            ok = witness_inline_process:check_dictionary(Module),
            go
    end.

dispatch(#slot{where = outside} = Slot, Module, Function, Args) ->
    ok = witness_inline_process:mark_acting(),
    run_observed(Slot, Module, Function, Args);
dispatch(#slot{where = calling} = Slot, _, _, _) ->
    _ = put(?KEY, Slot#slot{where = inside}),
    go;
dispatch(Slot, Module, Function, Args) ->
    enter(Slot, calling_behaviour(Module, Function, length(Args)), Module, Function, Args).

enter(_, none, _, _, _) ->
    go;
enter(_, unknown, _, _, _) ->
    witness_inline_process:report_gap(backtrace_depth),
    go;
enter(Slot, Kind, Module, Function, Args) ->
    Begun = case Slot of #slot{begun = Before} -> Before; undefined -> false end,
    run_observed(#slot{kind = Kind, begun = Begun, state = Kind:new()}, Module, Function, Args).

-doc """
`init/1` of a callback module, in a process that is not monitored. If OTP has started the process, it begins here. Otherwise
`init/1` is treated as any other function that a process was spawned with.
""".
-spec init(module(), [term()]) -> go | {done, term()}.
init(Module, Args) ->
    case calling_behaviour(Module, init, 1) of
        none ->
            case is_first(Module, init, 1) orelse get('$initial_call') =/= {Module, init, 1} of
                true -> witness_inline_process:entry(Module, init, Args);
                false -> start_process(witness_inline_behaviour_supervisor, Module, Args)
            end;
        unknown -> go;
        Kind -> start_process(Kind, Module, Args)
    end.

start_process(Kind, Module, Args) ->
    case witness_inline_process:start_monitoring(Module, signature(Kind, Module, Args)) of
        monitored ->
            Observed = run_observed(#slot{kind = Kind, begun = true, state = Kind:new()}, Module, init, Args),
            %% Its loop has no callbacks, so events after `init' are missing.
            _ = Kind =:= witness_inline_behaviour_supervisor andalso witness_inline_process:report_gap(no_callbacks),
            Observed;
        not_monitored -> go
    end.

-doc """
Whether `proc_lib` itself has called the function. `'$initial_call'` does not show that: in a process of any behaviour, also one
that is not known here, it names the callback.
""".
-spec is_first(module(), atom(), arity()) -> boolean().
is_first(Module, Function, Arity) -> calling_module(Module, Function, Arity) =:= proc_lib.

signature(witness_inline_behaviour_event, _, _) ->
    case process_info(self(), registered_name) of
        {registered_name, Name} -> {gen_event, init, [{local, Name}]};
        [] -> {gen_event, init, [undefined]}
    end;
signature(witness_inline_behaviour_server, Module, Args) ->
    witness_inline_behaviour_child:signature('Elixir.GenServer', [Module | Args]);
signature(_, Module, Args) ->
    {Module, init, Args}.

run_observed(#slot{kind = Kind, state = State} = Slot, Module, Function, Args) ->
    case Kind:before_callback(Module, Function, Args, State) of
        {lost, Why} ->
            witness_inline_process:report_gap(Why),
            go;
        {Seen, Next} ->
            report_events(Seen),
            Calling = Slot#slot{where = calling, state = Next},
            _ = put(?KEY, Calling),
            {done, run_original(Calling, Module, Function, Args)}
    end.

%% The stack of an exception stays as it is: OTP reports it, and it is part of the exit reason.
run_original(Slot, Module, Function, Args) ->
    try apply(Module, Function, Args) of
        Value ->
            report_return(Slot, Module, Function, Args, {value, Value}),
            Value
    catch
        throw:Value:Stack ->
            report_return(Slot, Module, Function, Args, {value, Value}),
            erlang:raise(throw, Value, Stack);
        Class:Reason:Stack ->
            report_return(Slot, Module, Function, Args, {raised, Class, Reason, Stack}),
            erlang:raise(Class, Reason, Stack)
    end.

report_return(#slot{kind = Kind, begun = Begun, state = State} = Slot, Module, Function, Args, Outcome) ->
    case Kind:after_callback(Module, Function, Args, Outcome, State) of
        {Seen, Next, Becomes} ->
            report_events(Seen),
            case Becomes of
                {ended, Reason} when Begun -> witness_inline_process:report_exit(Reason);
                _ ->
                    _ = put(?KEY, Slot#slot{where = outside, state = Next}),
                    _ = Kind:has_reported_all(Next) andalso witness_inline_process:mark_waiting(),
                    ok
            end;
        {lost, Why} ->
            witness_inline_process:report_gap(Why)
    end.

-doc "Whether the process is in OTP's code between two callbacks.".
-spec is_between() -> boolean().
is_between() ->
    case get(?KEY) of
        #slot{where = outside} -> true;
        _ -> false
    end.

report_events([]) ->
    ok;
report_events([{recv, Message} | Seen]) ->
    witness_inline_process:report_event({recv, self(), undefined, Message, undefined}),
    report_events(Seen);
report_events([{send, To, Message} | Seen]) ->
    witness_inline_process:report_event({send, self(), To, Message, undefined}),
    report_events(Seen).

%% Which behaviour has called this function. The function is in the stack itself, since its call of this module is not a tail
%% call. The VM may be set to show fewer frames (`backtrace_depth').
calling_behaviour(Module, Function, Arity) -> behaviour_kind(calling_module(Module, Function, Arity)).

calling_module(Module, Function, Arity) ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    case lists:dropwhile(fun({M, F, A, _}) -> {M, F, A} =/= {Module, Function, Arity} end, Stack) of
        [_, {By, _, _, _} | _] -> By;
        _ ->
            case length(Stack) < erlang:system_info(backtrace_depth) of
                true -> none;
                false -> unknown
            end
    end.

behaviour_kind(unknown) -> unknown;
behaviour_kind(gen_server) -> witness_inline_behaviour_server;
behaviour_kind(gen_statem) -> witness_inline_behaviour_statem;
behaviour_kind(gen_event) -> witness_inline_behaviour_event;
behaviour_kind(supervisor) -> witness_inline_behaviour_supervisor;
behaviour_kind(supervisor_bridge) -> witness_inline_behaviour_supervisor;
behaviour_kind('Elixir.DynamicSupervisor') -> witness_inline_behaviour_supervisor;
behaviour_kind(_) -> none.
