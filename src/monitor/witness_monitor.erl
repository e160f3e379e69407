-module(witness_monitor).
-moduledoc """
Monitors: state machines that read the events of one partition, or of one process, and
reach an irrevocable verdict.

A monitor is a callback module. Compiled specifications are such modules, and a team may
write its own:

```erlang
-module(no_crash).
-behaviour(witness_monitor).
-export([init/3, handle_event/2]).

init(_Signature, _Process, _Arg) -> {ok, undefined}.

handle_event({exit, _, normal, _}, _) -> {verdict, yes, normal};
handle_event({exit, _, Reason, _}, _) -> {verdict, no, Reason};
handle_event(_, S) -> {ok, S}.
```

Each monitor runs in a process of its own (`m:witness_monitor_runner`). Monitors with code that only computes, for a
bounded time, may share a process
(`m:witness_monitor_safety`). A monitor that crashes, loops or grows harms neither the
system nor another monitor; a crash is an `inconclusive` verdict with the crash as its
explanation. Callbacks never see a gap: a
monitor that would meet one ends `inconclusive` before it.
""".

-export([check/1, is_timed/1, is_unsure/2, format_error/1]).

-export_type([verdict/0, info/0, begun/0, reason/0, error/0]).

-doc "Irrevocable: violated, satisfied, or undecided.".
-type verdict() :: no | yes | inconclusive.

-doc "The information that the monitor gives with its verdict; for people and `t:witness:verdict/0`.".
-type info() :: term().

-doc "The first state of a monitor, or what chooses its events.".
-type begun() :: {ok, State :: term()} | {ok, State :: term(), Filter :: term()} | {slices, Filter :: term()}.

-doc """
Called at the start. `ignore`: this process is not to be monitored after all. If a monitor gives a `Filter`, `slice/2` is
called for each event and says whether the monitor sees it. `slices`: each value that `slice/2` returns has a state machine
of its own, with its own verdict. `{requests, Begun}` is the same for a monitor that needs the requests of replies: each send that it
is given has one element more (`t:witness_monitor_requests:send/0`).
""".
-callback init(witness_event:signature(), witness_event:proc(), Arg :: term()) -> begun() | {requests, begun()} | ignore.

-doc """
The same for a process that was running already when it was attached to, in this function: its past is not known, and no
`init` event comes. Monitors that do not export it cannot be attached.
""".
-callback attached(mfa(), witness_event:proc(), Arg :: term()) -> begun() | {requests, begun()} | ignore.

-doc "The next event. The first of a process is its `init`, the last its `exit`.".
-callback handle_event(witness_event:event() | witness_monitor_requests:send(), State :: term()) ->
    {ok, State :: term()} | {verdict, verdict(), info()}.

-doc """
Whether the monitor has deadlines, which pass without events. If it is not exported, a monitor that exports `handle_time/2` has
some.
""".
-callback is_timed(Arg :: term()) -> boolean().

-doc """
The next event, or the end, comes at this time or later, in nanoseconds of the times of events. It is called before each event that has a
time, and whenever a source tells the time. The state stays the same unless a deadline decides.
""".
-callback handle_time(Time :: integer(), State :: term()) -> open | {verdict, verdict(), info()}.

-doc "The first deadline that is at this time or later. `handle_time/2` is called when a time after it is known.".
-callback next_deadline(From :: integer(), State :: term()) -> integer() | none.

-doc """
No further event comes. `complete`: every process of the partition has ended and all their
events were seen; `stopped`: observation ended before. If it is not exported, the verdict is `inconclusive`. Where `stopped` is
`inconclusive` with `#{reason => pending}`, the trace so far would be a violation.
""".
-callback handle_end(complete | stopped, State :: term()) -> {verdict(), info()}.

-doc """
The addressees of an event: none, the slice with this key, this slice only if it is alive, or all live slices. A
monitor without slices answers `skip` or `all`.

A slice begins with the first `{slice, Key}` that has its key and ends with its verdict. If the key comes again, a new slice
begins, unless the verdict was `inconclusive`: then it is not known where the new one would begin. A `Key` is a tuple of values, which are
compared exactly.
""".
-callback slice(witness_event:event() | witness_monitor_requests:send(), Filter :: term()) ->
    skip | all | {slice | live, Key :: tuple()}.

-doc "The first state of a new slice. The slice is then given its first event.".
-callback instance(Key :: tuple(), Filter :: term()) -> State :: term().

-doc "The names of the values in a key, one for each value.".
-callback slice_names(Filter :: term()) -> [binary()].

-doc """
The events that the monitor wants. If no monitor of the run wants an event, it is not even gathered. A monitor without
`slice/2` is given nothing else; for one with `slice/2`, this may be an over-approximation. The head of a match specification
is a list, `[To, Message]` for `send`, `[From, Message]` for `recv`. If it is not exported, every event is delivered.
""".
-callback alphabet(Arg :: term()) ->
    all | [Kind :: atom() | {Kind :: atom(), ets:match_spec()}].

-doc """
The actions of the monitor with their places in its source, and what their occurrence decides. The monitor marks the
action with the `id` 7 by `put('$witness_7', 7)`; the run reports which of them were ever taken.
""".
-callback coverage(Arg :: term()) ->
    [#{id := pos_integer(), line := pos_integer(), column := pos_integer(), text := binary(),
       decides := yes | no | undefined}].

-doc "What remains to be satisfied, for explanations.".
-callback describe(State :: term()) ->
    #{formula := binary(), bindings := [{Name :: binary(), Value :: term()}]}.

-optional_callbacks([attached/3, is_timed/1, handle_time/2, next_deadline/2, handle_end/2, slice/2, instance/2, slice_names/1,
                     alphabet/1, coverage/1, describe/1]).

-doc """
Why a module is no monitor.

- `{monitor_not_found, Module, Reason}`: it cannot be loaded;
- `{monitor_callbacks, Module, [{Function, Arity}]}`: these callbacks are missing.
""".
-type reason() :: {monitor_not_found, module(), Reason :: term()} | {monitor_callbacks, module(), [{atom(), arity()}, ...]}.

-type error() :: {?MODULE, reason()}.

-doc "Whether a module is a monitor: it can be loaded and exports the mandatory callbacks.".
-spec check(module()) -> ok | {error, error()}.
check(Module) ->
    case code:ensure_loaded(Module) of
        {module, Module} ->
            Missing = [FA || FA = {F, A} <- [{init, 3}, {handle_event, 2}],
                             not erlang:function_exported(Module, F, A)],
            case Missing of
                [] -> ok;
                _ -> {error, {?MODULE, {monitor_callbacks, Module, Missing}}}
            end;
        {error, Reason} ->
            {error, {?MODULE, {monitor_not_found, Module, Reason}}}
    end.

-doc "Whether a monitor has deadlines (`c:is_timed/1`).".
-spec is_timed({module(), Arg :: term()}) -> boolean().
is_timed({Module, Arg}) ->
    erlang:function_exported(Module, handle_time, 2)
        andalso (not erlang:function_exported(Module, is_timed, 1) orelse Module:is_timed(Arg)).

-doc """
Whether a monitor depends on what is not known of a process: of one that was `attached`, or of one with unknown arguments
(`witness_event_signature:known/1`). Only compiled properties say so (`witness_spec_attach:unsure/1`).
""".
-spec is_unsure({module(), Arg :: term()}, {attached | unknown, module(), atom(), arity()}) -> boolean().
is_unsure({Module, Arg}, Known) -> erlang:function_exported(Module, unsure, 2) andalso Module:unsure(Arg, Known).

-doc "A reason as text.".
-spec format_error(reason()) -> unicode:chardata().
format_error({monitor_not_found, Module, Reason}) ->
    io_lib:format("the monitor module ~ts cannot be loaded (~tp); is its folder on the code path (--pa)?",
                  [name(Module), Reason]);
format_error({monitor_callbacks, Module, Missing}) ->
    io_lib:format("the module ~ts is no monitor: it does not export ~ts (see ~ts)",
                  [name(Module), lists:join(", ", [io_lib:format("~ts/~w", [F, A]) || {F, A} <- Missing]),
                   name(case witness_event:syntax([Module]) of elixir -> 'Elixir.Witness.Monitor'; erlang -> ?MODULE end)]).

name(Module) -> witness_event:format_term(Module, 200, witness_event:syntax([Module])).
