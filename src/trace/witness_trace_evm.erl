-module(witness_trace_evm).
-moduledoc """
The source of events that is the VM's own tracing, in pure Erlang: one OTP trace
session and one process tracer for each partition.

Sessions keep Witness apart from every other tracer in the node. A session ends when
its last handle is garbage-collected, so it ends with the tracer process that owns it,
however that process dies; handles that other tracers were sent only delay this until
they are collected or end themselves.

What the VM guarantees, and what it does not (measured, see `docs/internals/outline.md`):

- a child inherits the sessions of its parent at birth (`set_on_spawn`): A2;
- A4 does **not** hold: if the tracer's queue is locked, a trace message waits at the
  tracee, so the parent's `spawn` may arrive after events of the child;
- strict monotonic time stamps order all events of the node.

## Cost

A strict time stamp costs about a sixth of the whole event. It is only needed to cut the
streams of two sessions. `#{stamps => handover}` switches it on for a process just before the
process is switched on in a second session, and off when the process is settled.
Events without a stamp carry no time. With `#{stamps => always}` each event has one, which
partitions of several processes need.

## Hidden processes

If a process sets its flag `sensitive`, the VM does not report it any more, not even its exit. The call that sets the flag
is reported, as a gap: it is traced like a message, so it has its place among the events of the process.

## Calls

Calls and returns of the functions of the filter are traced like messages, by one session. Each session has its own breakpoints, and a
function returns to the session in which it was called. So a process must not be handed over to another session during a call.

## Filter

`#{filter => Filter}` (`m:witness_trace_filter`) keeps messages that no monitor reads from being traced at all. A kind that
no monitor reads is not switched on. For the other kinds the VM tests the messages against match specifications.

`#{births => false}` keeps births and exits from being traced, too. A process is in the session then, and so are those that it spawns,
but the only event is that a process hides itself.
""".
-behaviour(witness_trace).

-export([open/2, close/1, on/2, share/3, now/0, settle/2, off/2, traced/2, observed/1, decode/1, guarantees/0]).
-export([on_new/2, delivered/1, reached/2]).

-export_type([session/0]).
-compile({no_auto_import, [now/0]}).

-doc "The trace session, whether every event is stamped, and what is traced of a process.".
-type session() :: {trace:session(), always | handover, Flags :: [atom()]}.

-define(STAMP, strict_monotonic_timestamp).

-spec open(pid(), #{stamps := always | handover, filter => witness_trace_filter:filter(), births => boolean()}) -> session().
open(Tracer, Options = #{stamps := Stamps}) ->
    %% The name shows which module owns the session, even if this module has another name.
    Session = trace:session_create(?MODULE, Tracer, []),
    Flags = witness_trace_filter:apply(Session, maps:get(filter, Options, witness_trace_filter:none())),
    {Session, Stamps, case Options of #{births := false} -> Flags -- [procs]; #{} -> Flags end}.

-spec close(session()) -> ok.
close({Session, _, _}) ->
    _ = trace:session_destroy(Session),
    ok.

-spec on(session(), pid()) -> ok | dead.
on({Session, always, Flags}, P) -> witness_trace:switch(Session, P, true, [?STAMP | Flags]);
on({Session, handover, Flags}, P) -> witness_trace:switch(Session, P, true, Flags).

-doc "Switches tracing on or off for the processes that the node spawns from now on, Witness's own too.".
-spec on_new(session(), boolean()) -> ok.
on_new({Session, always, Flags}, On) ->
    _ = trace:process(Session, new, On, [?STAMP | Flags]),
    ok.

-doc "The caller gets `{trace_delivered, all, Ref}` when all that has happened until now is reported.".
-spec delivered(session()) -> reference().
delivered({Session, _, _}) -> trace:delivered(Session, all).

-doc """
The caller gets `{reached, Ref}` when all that these processes have done until now was sent to the tracers of the sessions. Its message may
overtake the last of these events. Nothing comes if a session has ended.

If the queue of the tracer is locked, events wait at the process that they are about, until a system task of it sends them.
`trace:delivered/2` alone does not wait for that. A later system task, of the least priority, comes behind it.
""".
-spec reached([session()], [pid()]) -> reference().
reached(Sessions, Processes) ->
    Caller = self(),
    Ref = make_ref(),
    _ = spawn_opt(fun() ->
        %% The caller may trap exits.
        All = try [trace:delivered(Session, all) || {Session, _, _} <- Sessions]
              catch error:badarg -> unlink(Caller), exit(normal)
              end,
        lists:foreach(fun(Delivered) -> receive {trace_delivered, all, Delivered} -> ok end end, All),
        Tasks = [begin
            Task = make_ref(),
            _ = erlang:check_process_code(P, ?MODULE, [{async, Task}]),
            Task
        end || P <- Processes],
        lists:foreach(fun(Task) -> receive {check_process_code, Task, _} -> ok end end, Tasks),
        unlink(Caller),
        Caller ! {reached, Ref}
    end, [link, {priority, low}, {message_queue_data, off_heap}]),
    Ref.

-spec share(session(), session(), pid()) -> {cut, integer()} | dead.
share({From, Stamps, _}, {To, _, Flags}, P) ->
    %% Stamps are on in both streams before the second begins: an event without one
    %% precedes every cut.
    _ = Stamps =:= handover andalso witness_trace:switch(From, P, true, [?STAMP]),
    case witness_trace:switch(To, P, true, [?STAMP | Flags]) of
        ok ->
            Cut = now(),
            %% If the session was ended meanwhile (`close/1'), it may lack events before the cut.
            case is_open(From) of
                true -> {cut, Cut};
                false ->
                    _ = witness_trace:switch(To, P, false, [?STAMP | Flags]),
                    dead
            end;
        dead -> dead
    end.

is_open(Session) ->
    try trace:info(Session, new, flags) of _ -> true catch error:badarg -> false end.

-spec now() -> integer().
now() -> erlang:unique_integer([monotonic]).

-spec settle(session(), pid()) -> ok.
settle({_, always, _}, _) -> ok;
settle({Session, handover, _}, P) ->
    _ = witness_trace:switch(Session, P, false, [?STAMP]),
    ok.

-spec off(session(), pid()) -> ok.
off({Session, _, Flags}, P) ->
    _ = witness_trace:switch(Session, P, false, [?STAMP | Flags]),
    ok.

-spec traced(session(), pid()) -> boolean() | dead.
traced({Session, _, _}, P) ->
    try trace:info(Session, P, flags) of
        {flags, []} -> false;
        {flags, _} -> true;
        undefined -> dead
    catch
        error:badarg -> dead
    end.

-spec observed([session()]) -> [pid()].
observed(Sessions) ->
    Ours = #{weak(Session) => [] || {Session, _, _} <- Sessions},
    [P || P <- processes(), is_in(Ours, trace:session_info(P))].

weak({_, Weak}) -> Weak;
weak(Weak) -> Weak.

%% The process may have ended.
is_in(_, undefined) -> false;
is_in(Ours, Sessions) -> lists:any(fun(Session) -> is_map_key(Session, Ours) end, Sessions).

-spec decode(term()) -> witness_trace:stamped() | ignore.
decode({trace, P, 'receive', Msg, From}) -> {none, {recv, P, From, Msg, undefined}};
decode({trace, P, send, Msg, To}) -> {none, {send, P, To, Msg, undefined}};
decode({trace_ts, P, 'receive', Msg, From, {T, U}}) -> {U, {recv, P, From, Msg, to_ns(T)}};
decode({trace_ts, P, send, Msg, To, {T, U}}) -> {U, {send, P, To, Msg, to_ns(T)}};
decode(Msg) when element(1, Msg) =:= trace; element(1, Msg) =:= trace_ts -> decode_rare(Msg);
decode(_) -> ignore.

decode_rare({trace, P, Tag, A}) -> decode_rare(Tag, P, A, undefined, none, undefined);
decode_rare({trace, P, Tag, A, B}) -> decode_rare(Tag, P, A, B, none, undefined);
decode_rare({trace_ts, P, Tag, A, {T, U}}) -> decode_rare(Tag, P, A, undefined, U, to_ns(T));
decode_rare({trace_ts, P, Tag, A, B, {T, U}}) -> decode_rare(Tag, P, A, B, U, to_ns(T));
decode_rare(_) -> ignore.

decode_rare(spawn, P, Child, MFA, U, Ts) ->
    {U, {fork, P, Child, witness_event_signature:resolve(MFA), Ts}};
decode_rare(spawned, P, Parent, MFA, U, Ts) ->
    {U, {init, P, Parent, witness_event_signature:resolve(MFA), Ts}};
decode_rare(exit, P, Reason, _, U, Ts) -> {U, {exit, P, Reason, Ts}};
decode_rare(send_to_non_existing_process, P, Msg, To, U, Ts) -> {U, {send, P, To, Msg, Ts}};
decode_rare(call, P, {erlang, process_flag, [sensitive, true]}, _, U, Ts) -> {U, {gap, P, sensitive, unknown, Ts}};
decode_rare(call, P, Call, _, U, Ts) -> {U, {call, P, Call, Ts}};
decode_rare(return_from, P, MFA, Value, U, Ts) -> {U, {return, P, MFA, Value, Ts}};
decode_rare(_, P, _, _, U, _) -> {U, {other, P}}.

to_ns(Native) -> erlang:convert_time_unit(Native, native, nanosecond).

-spec guarantees() -> witness_trace:guarantees().
guarantees() ->
    #{sets => true, inheritance => true, single => false,
      fork_first => false, birth => false, causal => false}.
