-module(witness_record_native).
-moduledoc """
The recorder in native code. It gathers what recorded processes do, in few nanoseconds and few bytes, until a writer takes
it. There is one in a VM.

A recorded process has an *id*, a small number, from before it starts until it has ended. Its parent asks for the id first
(`child/0`). Before the child can run, the VM reports the birth to this module, which is the tracer of a session
(`tracer/0`). Then the process records what happens to it, under its id (`took/2` and the functions below it).

```
1> witness_record_native:start(#{}).
ok
2> Session = trace:session_create(recorder, witness_record_native:tracer(), []),
   trace:process(Session, new, true, [procs]).
3> Id = witness_record_native:child(), Pid = spawn(fun() -> receive stop -> ok end end).
4> witness_record_native:identify(Pid) =:= Id.
true
```

A process has a small buffer of its own for what it records. Full buffers, and those of processes that end, go to one of three
streams as *sub-traces*: `order` has the entries, `data` the terms that they refer to, and `processes` births and ends. The
writer polls `take/1`, and calls `flush/0` now and then, to get what idle processes have buffered. `flush/0`, then `take/1`
until it returns nothing, gives everything up to now.

`docs/internals/record-native.md` has the formats, and says why nothing is lost, and what an entry costs.

## The end

`stop/0` ends a recording. It also ends if the data that was not taken exceeds the `budget`, if there is no memory, if a
sender's id is invalid, or if all ids are used. Then nothing is appended any more, the system goes on, and `take/1` reports
the end. What was recorded before can still be taken.
""".

-export([available/0, start/1, stop/0, seal/1, tracer/0, traced/4, verify/1]).
-export([identify/0, identify/1, child/0, unborn/0, ended/2]).
-export([took/2, from/2, content/2, timeout/1, waits/1, result/3, raise/3, named/2, sent/3, contents/2, hash/2, reads/1,
         changes/0, changed/2]).
-export([take/1, flush/0, info/0]).
-export([enabled/3, enabled_procs/3, trace/5, trace_procs/5, trace_receive/5, trace_send/5]).
-export_type([id/0, stream/0, state/0, options/0]).
-nifs([took/2, from/2, content/2, timeout/1, waits/1, result/3, raise/3, named/2, sent/3, contents/2, hash/2, reads/1,
       changes/0, changed/2,
       identify/0, identify/1, child/0, unborn/0, ended/2, enabled/3, enabled_procs/3, trace/5, trace_procs/5,
       trace_receive/5, trace_send/5, traced/4, open/5, close/0, clear/0, verify/1, take/1, flush/0, info/0]).
-on_load(load/0).

-doc "The id of a recorded process: 1, 2, .. in about the order of birth. 0: any other process.".
-type id() :: non_neg_integer().

-type stream() :: processes | data | order.

-doc """
Why a recording has ended: the writer was too slow for the `budget`; there is no `memory`; there are no more `ids`;
the id of a `sender` was invalid; or it was stopped.
""".
-type state() :: running | {ended, budget | memory | ids | sender | stopped}.

-doc """
`budget`: bytes that may wait until they are taken and handled, at least a megabyte; `order`: bytes of entries that a process
buffers at most (64 to 65,536); `full_ids`: ids take eight bytes, to measure what small ones save; `times`: births and entries have times.
""".
-type options() :: #{budget => pos_integer(), order => pos_integer(), full_ids => boolean(), times => boolean()}.

-define(MIN_BUDGET_BYTES, 1_000_000).

%% --- start and end -----------------------------------------------------------------

-doc "Whether the native code could be loaded; if not, why.".
-spec available() -> ok | {error, unicode:chardata()}.
available() ->
    witness_trace_library:available(?MODULE, "the native recorder").

-doc "Starts a recording. What was not taken of an earlier one is dropped. Processes that are alive already are outside.".
-spec start(options()) -> ok | {error, running | memory}.
start(Options) ->
    #{budget := Budget, order := Order, full_ids := Full, times := Times} =
        maps:merge(#{budget => 1 bsl 26, order => 256, full_ids => false, times => false}, Options),
    true = is_integer(Budget) andalso Budget >= ?MIN_BUDGET_BYTES,
    true = is_boolean(Full) andalso is_boolean(Times),
    Slots = witness_trace_library:slots(erlang:system_info(process_limit), 1 bsl 17),
    case alone(fun() -> open(Budget, Order, Full, Times, Slots) end) of
        ok -> ok;
        Reason -> {error, Reason}
    end.

-doc """
Ends the recording, and frees its memory of processes. What they had buffered can still be taken.
""".
-spec stop() -> ok.
stop() ->
    _ = close(),
    ok = flush(),
    alone(fun clear/0).

-doc """
Ends the recording as planned: nothing is appended any more, and what processes have buffered can be taken.

What was recorded is a consistent cut: if an entry is in it, so is everything that caused it. A process records what it does
before any other process can notice it. If a process finds the recording closed, so does each process that notices what it does
next.

`Times`: entries have times. Then the result is the time of the end: all entries that were made until then are recorded.
""".
-spec seal(Times :: boolean()) -> none | non_neg_integer().
seal(Times) ->
    %% A process that has read the clock must not be suspended by its scheduler before the entry is there.
    Ended = case Times of true -> alone(fun close/0); false -> close() end,
    ok = flush(),
    Ended.

%% No other process can be in native code meanwhile: no other scheduler runs, and this one runs only the fun's only call.
alone(Fun) ->
    _ = erlang:system_flag(multi_scheduling, block_normal),
    try Fun() after erlang:system_flag(multi_scheduling, unblock_normal) end.

-doc """
For `trace:session_create/3`. A session for recording sets the flag `procs` of processes that are `new`, so that the VM reports
every birth, from any parent.
""".
-spec tracer() -> {module(), term()}.
tracer() -> {?MODULE, []}.

-doc """
Sets what a session that reports messages too (`m:witness_record_traced`) records of them besides the senders: the contents of
messages that arrive and of those that are sent; a hash of those that arrive. `Adopting`: a process that is not recorded, though
its children are. Must be called before any process is traced.
""".
-spec traced(Contents :: boolean(), Hash :: boolean(), Adopting :: pid() | none, Node :: node()) -> ok | memory.
traced(_, _, _, _) -> erlang:nif_error(not_loaded).

-doc """
From now on the label of a message may not be its sender's, and `took/2` returns `verify`. If the caller then finds the
sender, it reports it by `from/2`.
""".
-spec verify(on) -> ok.
verify(_) -> erlang:nif_error(not_loaded).

%% --- identity ------------------------------------------------------------------------

-doc "The caller's id.".
-spec identify() -> id().
identify() -> erlang:nif_error(not_loaded).

-doc "0 for a process that has ended, and for any term that is not a process of this node.".
-spec identify(term()) -> id().
identify(_) -> erlang:nif_error(not_loaded).

-doc """
The id of the process that the caller spawns next, recorded or not; 0: nothing is recorded any more. If the spawn fails, a
later child gets the id. `raise/3`, `result/3` or `unborn/0` say that no spawn is under way any more, so that a process that
unwoven code spawns is not taken for the child.

If a recorded process spawns without asking for an id, its child is recorded, too. Messages of the child have the label of its
parent, so this turns `verify/1` on.
""".
-spec child() -> id().
child() -> erlang:nif_error(not_loaded).

-doc "The caller has not spawned the process for which it asked for an id.".
-spec unborn() -> ok.
unborn() -> erlang:nif_error(not_loaded).

-doc """
A process has ended that the VM does not report, since it has no trace flags any more. Must be called when the process does not
run any more. If its end was reported before, nothing is recorded again.
""".
-spec ended(pid(), Reason :: term()) -> ok.
ended(_, _) -> erlang:nif_error(not_loaded).

%% --- what processes do -----------------------------------------------------------------

-doc """
The caller, with the id `Me`, took a message of the recorded process `From`.

- `verify`: nothing was recorded, since the label may not be the sender's;
- `look`: it was recorded, and the caller should check its heap, after each 256 messages;
- `calm`: it was recorded. Returned once, after 64 messages: the caller should have its end reported by `ended/2`.

This function and those below do nothing if `Me` is not the caller's id.
""".
-spec took(Me :: id(), From :: id()) -> ok | calm | look | verify.
took(_, _) -> erlang:nif_error(not_loaded).

-doc "As `took/2`, where the sender is certain.".
-spec from(Me :: id(), From :: id()) -> ok.
from(_, _) -> erlang:nif_error(not_loaded).

-doc "Took a message of a sender that is not recorded.".
-spec content(Me :: id(), term()) -> ok.
content(_, _) -> erlang:nif_error(not_loaded).

-doc "A `receive` timed out.".
-spec timeout(Me :: id()) -> ok.
timeout(_) -> erlang:nif_error(not_loaded).

-doc """
The caller is about to start a `receive`, which ends with an entry. If the caller ends without one, the entry before its end says
that it waited.
""".
-spec waits(Me :: id()) -> ok.
waits(_) -> erlang:nif_error(not_loaded).

-doc "A recorded call returned.".
-spec result(Me :: id(), Call :: non_neg_integer(), term()) -> ok.
result(_, _, _) -> erlang:nif_error(not_loaded).

-doc "A recorded call raised an exception.".
-spec raise(Me :: id(), Call :: non_neg_integer(), {Class :: error | exit | throw, Reason :: term()}) -> ok.
raise(_, _, _) -> erlang:nif_error(not_loaded).

-doc "Sent to a name. `To`: the process that has the name, or its id; any other term if no recorded process has it.".
-spec named(Me :: id(), To :: pid() | id() | term()) -> ok.
named(_, _) -> erlang:nif_error(not_loaded).

-doc "Sent a message, with its contents.".
-spec sent(Me :: id(), To :: term(), Message :: term()) -> ok.
sent(_, _, _) -> erlang:nif_error(not_loaded).

-doc "The contents of the message that was taken last.".
-spec contents(Me :: id(), Message :: term()) -> ok.
contents(_, _) -> erlang:nif_error(not_loaded).

-doc "A hash of the message that was taken last: `erlang:phash2(M) bor (erlang:phash2([M]) bsl 32)`.".
-spec hash(Me :: id(), Message :: term()) -> ok.
hash(_, _) -> erlang:nif_error(not_loaded).

-doc """
The caller is about to call a function that reads memory that processes share. The result, or what it raises, is the next entry. Its
place is that of the changes that have begun, and those that have ended: each counts one.
""".
-spec reads(Me :: id()) -> ok.
reads(_) -> erlang:nif_error(not_loaded).

-doc "The caller is about to call a function that may change such memory. The result is for `changed/2`.".
-spec changes() -> Begin :: non_neg_integer().
changes() -> erlang:nif_error(not_loaded).

-doc """
That call has ended; its result, or what it raised, is the next entry. If one call ends before another begins, its end is not greater
than the beginning of the other one.
""".
-spec changed(Me :: id(), Begin :: non_neg_integer()) -> ok.
changed(_, _) -> erlang:nif_error(not_loaded).

%% --- the writer ------------------------------------------------------------------------

-doc """
Takes at most `Max` pieces of about 64 KB. Each has whole sub-traces or records, in the order of their stream; births and data
precede the entries that refer to them. What the last call took then counts as handled, and is not charged to the budget any
more. Only one process takes.
""".
-spec take(Max :: non_neg_integer()) -> {[{stream(), binary()}], state()}.
take(_) -> erlang:nif_error(not_loaded).

-doc "What processes have buffered now can be taken. They go on meanwhile.".
-spec flush() -> ok.
flush() -> erlang:nif_error(not_loaded).

-doc """
`state`; `verify`; `budget`, and how much of it is `used`; `born` and `ended`: how many recorded processes; `bytes` of each
stream until now.
""".
-spec info() -> #{state := state(), verify := boolean(), budget := non_neg_integer(), used := non_neg_integer(),
                  born := non_neg_integer(), ended := non_neg_integer(), bytes := #{stream() => non_neg_integer()}}.
info() -> erlang:nif_error(not_loaded).

%% --- native code -------------------------------------------------------------------------

load() -> witness_trace_library:loaded(?MODULE, erlang:load_nif(witness_trace_library:file("witness_record"), 0)).

-doc false.
enabled(_, _, _) -> discard.
-doc false.
enabled_procs(_, _, _) -> discard.
-doc false.
trace(_, _, _, _, _) -> ok.
-doc false.
trace_procs(_, _, _, _, _) -> ok.
-doc false.
trace_receive(_, _, _, _, _) -> ok.
-doc false.
trace_send(_, _, _, _, _) -> ok.

open(_, _, _, _, _) -> erlang:nif_error(not_loaded).
close() -> erlang:nif_error(not_loaded).
clear() -> erlang:nif_error(not_loaded).
