-module(witness_trace).
-moduledoc """
Sources of trace events: the behaviour that connects Witness to what produces events.

A source delivers the events of processes to *tracers*. Each tracer opens one
`t:session/0`; switching a process on in that session makes the process's events
reach that tracer. What a source guarantees beyond that is data, see
`t:guarantees/0`. RIARC names these properties A1 to A4 (RIARC text, section 2.1).
The choreography (`m:witness_outline_core`) is sound for a source that offers
no more than `inheritance` together with the two orders below.

Every source keeps two orders, whatever else it offers:

- the events of one process reach one tracer in the order in which they occurred;
- the `init` event of a process is the first of its events in each session that
  it was born into.
""".

-export([switch/4, limit_size/2, is_hidden/1]).

-doc "A tracer's own connection to the source; opaque to all other modules.".
-type session() :: term().

-doc """
The position of an event in the source's strict total order. `none`: the event came
before its process was ever switched on in a second session, so that no tracer has to
compare it.
""".
-type stamp() :: integer() | none.

-doc """
An event with its stamp, or a gap: from there on events of its process are missing. `{other, P}`: the source has reported
something of `P` that is no trace event; it proves how far the source has come with `P`. No source delivers an `attached`:
the tracer makes it.
""".
-type stamped() :: {stamp(), witness_event:event() | gap() | attached() | {other, witness_event:proc()}}.

-doc "The first mark in the trace of a process that was running already.".
-type attached() :: {attached, witness_event:proc(), mfa(), witness_event:ts()}.

-doc "The mark where something that the process did is missing.".
-type gap() :: {gap, witness_event:proc(), Reason :: atom(), Missing :: non_neg_integer() | unknown,
                witness_event:ts()}.

-doc """
What a source promises:

- `sets` (A1): one tracer can gather the events of several processes;
- `inheritance` (A2): a new process is traced by the tracer of its parent;
- `single` (A3): a process has one tracer at any time;
- `fork_first` (A4): the fork reaches a tracer before the events of the child;
- `birth`: a new process has its own partition before it can act;
- `causal`: within one partition, a send comes before the receive that it causes.
""".
-type guarantees() :: #{sets := boolean(), inheritance := boolean(), single := boolean(),
                        fork_first := boolean(), birth := boolean(), causal := boolean()}.

-export_type([session/0, stamp/0, stamped/0, guarantees/0]).

-doc "Opens a session that delivers to `Tracer`, as messages that `c:decode/1` understands.".
-callback open(Tracer :: pid(), Options :: map()) -> session().

-doc "Ends the session: no process is traced in it any more.".
-callback close(session()) -> ok.

-doc "Switches a process on. `dead`: it has ended, nothing was switched on.".
-callback on(session(), witness_event:proc()) -> ok | dead.

-doc """
Switches a process on in `To` while it stays on in `From`. Events that the process
performs until some moment before the call returns have a stamp of at most `Cut` in
`From`; every later event reaches both sessions. `dead`: the process has ended, or the session `From` has, so all that is known of
the process is in `From`.
""".
-callback share(From :: session(), To :: session(), witness_event:proc()) ->
    {cut, Cut :: integer()} | dead.

-doc "Says that the stamps of a process are not compared any more (it is in one session).".
-callback settle(session(), witness_event:proc()) -> ok.

-doc """
A stamp that is greater than those of all events so far, and less than those of all events
to come.
""".
-callback now() -> integer().

-doc "Switches a process off; events on their way still arrive.".
-callback off(session(), witness_event:proc()) -> ok.

-doc "Whether a process is on in this session.".
-callback traced(session(), witness_event:proc()) -> boolean() | dead.

-doc "The processes that are switched on in any of these sessions. It costs one question a process, however many sessions there are.".
-callback observed([session()]) -> [witness_event:proc()].

-doc "A message of the source as an event; `ignore`: it has no event.".
-callback decode(term()) -> stamped() | ignore.

-callback guarantees() -> guarantees().

-doc "Switches trace flags of a process of this VM. `dead`: it has ended.".
-spec switch(trace:session(), pid(), On :: boolean(), Flags :: [atom() | tuple()]) -> ok | dead.
switch(Session, P, On, Flags) ->
    try trace:process(Session, P, On, Flags) of
        1 -> ok;
        0 -> dead
    catch
        error:badarg -> dead
    end.

-doc """
An item of a source. A gap takes the place of an event if its message, arguments or returned value take more than so many bytes.
""".
-spec limit_size(stamped() | ignore, pos_integer()) -> stamped() | ignore.
limit_size({_, {Kind, P, _, Term, Ts}} = S, Limit) when Kind =:= send; Kind =:= recv; Kind =:= return ->
    limit_size(S, P, Term, Ts, Limit);
limit_size({_, {call, P, {_, _, Args}, Ts}} = S, Limit) -> limit_size(S, P, Args, Ts, Limit);
limit_size(S, _) -> S.

limit_size({Stamp, _} = S, P, Term, Ts, Limit) ->
    case witness_event:bytes(Term) > Limit of
        true -> {Stamp, {gap, P, message_size, 1, Ts}};
        false -> S
    end.

-doc """
Whether a process of this VM has its flag `sensitive` set, so that nothing of it is reported. The VM does not return this
flag. But it shows no dictionary and no stack of such a process. A process of OTP has something in the former, and every
process has something in the latter.
""".
-spec is_hidden(pid()) -> boolean().
is_hidden(P) ->
    %% A stack may be long.
    case process_info(P, {dictionary, '$ancestors'}) of
        {_, undefined} -> process_info(P, backtrace) =:= {backtrace, <<>>};
        _ -> false
    end.
