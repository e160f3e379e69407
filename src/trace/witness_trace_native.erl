-module(witness_trace_native).
-moduledoc """
The source of events that is a tracer in native code: sound by construction, and several times cheaper than
`m:witness_trace_evm`.

The VM calls a tracer that is a module (`m:erl_tracer`) in the context of the traced process, at the moment of the event.
So no event is on its way: a process is given its *partition* while it is being spawned, before it can act, and each event
is in its partition before the process goes on. Nothing is routed, handed over, reordered or suspended. See
`docs/internals/native.md`.

A partition is a buffer with one consumer, the process that takes batches from it. A new process belongs to

- the partition of its parent, if that is grouped: a signature that reads descendants may have matched;
- a partition of its own, if a signature may match (`t:pattern/0`): native code compares modules, functions and arities.
  What it cannot compare (arguments, funs, what OTP starts by other means) counts as a match. Then the consumer of the
  *births* decides, while the events wait in the partition;
- none, otherwise.

Within a partition the order is causal, and `init` and `fork` carry what the VM knows, `{Module, Function, Args}`, for
`witness_event_signature:resolve/1`.

## Batches

A consumer gets `witness_data` once when there is something to take, and takes all there is (`take/1`). It gets it again
only when more has come: after `batch` events, at the exit of a process, or after about `flush` milliseconds. On a busy node
this time is a tenth of a second, so that batches stay large where they are many.

## Memory

All buffers together stay within `memory` bytes, each partition within `partition_memory`. If an event does not fit, its
partition gets a gap: what it holds is dropped, its memory is free for others, and the consumer is notified of what is
missing. Births, which wait for their consumer too, stay within `memory` of their own. The sizes are estimates of what the
VM takes, rather too large than too small. A message of more than `message_size` bytes is a gap; so are the arguments of a call, and the
value of a return.

## Watching

A session that only watches (`watch`) reads no process. It knows which processes there are below those that it is given, and
when all of them have ended. A traced process costs the VM time whenever it is scheduled, so such a session traces only
processes that spawn: the match specification of a spawning call switches the trace of the caller on, before the call takes
effect. What else they do is not reported. `sweep/2` finds the dead processes.

## Servers

A session with `servers` also knows processes that ran before and are not of the run (`server/3`). What such a process spawns
while it handles a call of a process of the run belongs to the run: it is read from its birth, but the run does not wait for it.
What it spawns at any other time does not. A `gen_server` handles a call until it handles another message, so that
`c:gen_server:handle_continue/2` counts, too. If it restarts a process of the run, the new one belongs to the run.
""".

-export([available/0, delivered/1, open/1, births/1, central/2, take/1, take_gap/1, unread/1, narrow/2, launcher/2, parent/2,
         adopt/3, server/3, on/2, off/2, traced/2, awaited/2, sweep/2, close/1, counts/1, called/1, seen/1, resources/0,
         guarantees/0]).
-export([shards/1, take_shard/1, unread/2, narrow/3, detach/2, reset/1]).
-export([enabled/3, enabled_call/3, enabled_send/3, enabled_receive/3, enabled_procs/3,
         trace/5, trace_send/5, trace_receive/5, trace_procs/5]).
-export([tick/2]).
-compile({no_auto_import, [size/1]}).
-export_type([session/0, partition/0, pattern/0, options/0, birth/0, status/0, shard/0, place/0, piece/0]).
-nifs([enabled/3, enabled_call/3, enabled_send/3, enabled_receive/3, enabled_procs/3,
       trace/5, trace_send/5, trace_receive/5, trace_procs/5,
       new_run/10, central_of/2, narrow_to/2, take/1, take_gap/1, unread/1,
       shard_take/2, shard_unread/3, shard_narrow/4, shard_detach/3, shard_reset/2, add_launcher/2, add_parent/2, watch/1,
       serve/1, add_server/3, member_of/2, adopt_process/4, is_held/2, sweep_run/2, forget/2, close_run/1, tick/2,
       counts_of/1, called_of/2, seen_of/1, resources/0]).
-on_load(load/0).

-doc "A trace session; it ends when the last process that has it is gone.".
-opaque session() :: {trace:session(), {Run :: reference(), Shards :: non_neg_integer()}, Flags :: [atom()] | watch,
                      Births :: partition(), Timer :: pid()}.

-doc "A buffer of events. When the last process that has it is gone, it is unread.".
-opaque partition() :: reference().

-doc """
Signatures that monitors may read. `Group`: a monitor may also read the descendants of a process with such a signature;
`Apart`: a monitor that must not be in a shard may read it.
""".
-type pattern() :: {module() | '_', Function :: atom() | '_', arity() | '_', Group :: boolean()}
                 | {module() | '_', Function :: atom() | '_', arity() | '_', Group :: boolean(), Apart :: boolean()}.

-doc "A shard: one consumer for very many partitions.".
-opaque shard() :: {Run :: reference(), non_neg_integer()}.

-doc "Names a partition of a shard, from its first piece to its last one, until the shard releases it.".
-type place() :: non_neg_integer().

-doc """
What a partition of a shard has. Its first piece has the `init` of its process. `Births`: whether there are forks among the
events, with signatures that are to be resolved. A status other than `open` is the last piece of the partition.
""".
-type piece() :: {place(), Births :: boolean(), [witness_event:event()], status()}
               | {place(), Init :: witness_event:event(), Births :: boolean(), [witness_event:event()], status()}.

-doc """
`shards`: the number of shards, by default 0; `watch`: the session only watches; `servers`: there may be servers; `memory`, `partition_memory`, `message_size`:
bytes; `batch`: events; `flush`: milliseconds; `timestamps`: whether events carry a time.
""".
-type options() :: #{names := [pattern()],
                     signatures => witness_event_wrapper:table(),
                     filter => witness_trace_filter:filter(),
                     shards => non_neg_integer(),
                     watch => boolean(),
                     servers => boolean(),
                     timestamps => boolean(),
                     memory => pos_integer(),
                     partition_memory => pos_integer(),
                     message_size => pos_integer() | infinity,
                     batch => pos_integer(),
                     flush => pos_integer()}.

-doc """
What the births partition holds: a process with a partition of its own, and whether the run waits for its end; that the last
process that the run waits for has ended; or that one that a monitor reads, or that the run waits for, has hidden itself.
""".
-type birth() :: {birth, partition(), Grouped :: boolean(), Held :: boolean(), Child :: pid(), Spawned :: mfargs()}
               | ended | {hidden, pid()}.
-type mfargs() :: {module(), atom(), [term()]}.

-doc """
What comes after a batch: more; nothing, since all processes of the partition have ended, or watching has; or nothing,
since events are missing (`overflow`: the partition's bound; `memory`: that of all; `message_size`: a message was too
large; `sensitive`: a process has hidden itself, and what is missing is not known; `lost`: the VM has not
reported an exit).
""".
-type status() :: open | complete | stopped
                | {gap, overflow | memory | message_size | sensitive | lost, Missing :: non_neg_integer()}.

%% --- sessions --------------------------------------------------------------------

-doc "Whether the native code could be loaded; if not, why.".
-spec available() -> ok | {error, unicode:chardata()}.
available() ->
    maybe
        ok ?= witness_trace_library:available(?MODULE, "the native tracer"),
        _ = resources(),
        ok
    end.

-doc "Opens a session. The caller consumes its births. Nothing is traced yet.".
-spec open(options()) -> session().
open(Options = #{names := Names}) ->
    #{timestamps := Stamps, memory := Memory, partition_memory := Partition, message_size := Size, batch := Batch, flush := Flush,
      filter := Filter, shards := Shards, watch := Watch, servers := Servers, signatures := Table} =
        maps:merge(defaults(), Options),
    Timer = witness_trace_timer:start(self(), Flush),
    {Run, Births} = new_run([name(N) || N <- Names], witness_event_wrapper:rows(Table), Memory, Partition, size(Size), Batch,
                            Stamps,
                            witness_trace_library:slots(case Watch of true -> 0; false -> erlang:system_info(process_limit) end,
                                                        1 bsl 18), Timer, Shards),
    Timer ! {run, Run},
    empty = take(Births),
    Session = trace:session_create(?MODULE, {?MODULE, Run}, []),
    _ = Servers andalso begin ok = serve(Run), witness_trace_filter:trace_servers(Session) end,
    Flags = case Watch of
        true ->
            ok = watch(Run),
            ok = witness_trace_filter:trace_spawns(Session),
            watch;
        false -> witness_trace_filter:apply(Session, Filter)
    end,
    {Session, {Run, Shards}, Flags, Births, Timer}.

defaults() ->
    #{signatures => witness_event_wrapper:none(), shards => 0, watch => false, servers => false,
      filter => witness_trace_filter:none(), timestamps => false, memory => 1 bsl 30,
      partition_memory => 1 bsl 29,
      message_size => 1 bsl 26, batch => 64, flush => 2}.

size(infinity) -> 1 bsl 64 - 1;
size(Bytes) -> Bytes.

name({M, F, A, Group}) -> name({M, F, A, Group, false});
name({M, F, A, Group, Apart}) ->
    {any(M), any(F), case A of '_' -> -1; _ -> A end, flag(Group), flag(Apart)}.

flag(true) -> 1;
flag(false) -> 0.

any('_') -> 0;
any(Atom) -> Atom.

-doc """
The caller gets `{trace_delivered, all, Ref}` when all that has happened until now is in its partition. Raises an error if the session
has ended.
""".
-spec delivered(session()) -> reference().
delivered({Session, _, _, _, _}) -> trace:delivered(Session, all).

-doc "The partition of births. The process that takes from it is its consumer.".
-spec births(session()) -> partition().
births({_, _, _, Births, _}) -> Births.

-doc """
From now on every process that a pattern names is born into this one partition, and with `Grouped` its descendants too;
none is reported as a birth. To be called once, before anything is traced. The partition ends when the session is closed.
Events of one process may be missing: it has hidden itself, a message was too large, or the VM has not reported its exit.
Then the item `{gap, P, Reason, unknown, Ts}` says so, and the partition goes on.
""".
-spec central(session(), Grouped :: boolean()) -> partition().
central({_, {Run, _}, _, _, _}, Grouped) -> central_of(Run, Grouped).

-doc """
Makes the caller the consumer. `ok`: the message `{witness_batch, Items, Status}` is in its mailbox; it takes again when it has
handled it, unless the status says that nothing comes any more. `empty`: it will get `witness_data` when there is something.
`witness_data` may also come for what was taken already.
""".
-spec take(partition()) -> ok | empty.
take(_) -> erlang:nif_error(not_loaded).

-doc """
The same for a consumer that can handle nothing now but a gap with nothing before it. It gets no `witness_data` for other
items that are there now; it has to take these by itself. For a gap it does get `witness_data`.
""".
-spec take_gap(partition()) -> ok | empty.
take_gap(_) -> erlang:nif_error(not_loaded).

-doc "The partition is not read any more: what it holds is dropped, and nothing is added.".
-spec unread(partition()) -> ok.
unread(_) -> erlang:nif_error(not_loaded).

-doc "The consumer needs only events of these kinds. Others may still come, and the end of the partition always does.".
-spec narrow(partition(), [witness_event:kind()]) -> ok.
narrow(Partition, Kinds) ->
    narrow_to(Partition, mask(Kinds)).

mask(Kinds) -> lists:sum([kind(Kind) || Kind <- lists:usort(Kinds)]).

kind(send) -> 1;
kind(recv) -> 2;
kind(fork) -> 4;
kind(init) -> 8;
kind(exit) -> 16;
kind(call) -> 32;
kind(return) -> 64.

-doc "The shards of a session.".
-spec shards(session()) -> [shard()].
shards({_, {Run, Shards}, _, _, _}) -> [{Run, N} || N <- lists:seq(0, Shards - 1)].

-doc """
What partitions of the shard have, in the order in which each of them had it. The caller is the consumer of the shard: the
one process that takes from it. After `[]` it will get `witness_data` when there is something. What it was given counts as
buffered until it takes again.
""".
-spec take_shard(shard()) -> [piece()].
take_shard({Run, Shard}) -> shard_take(Run, Shard).

-doc "As `unread/1`; the place is free. Does nothing if the last piece of the partition was given.".
-spec unread(shard(), place()) -> ok.
unread({Run, Shard}, Place) -> shard_unread(Run, Shard, Place).

-doc "As `narrow/2`. Does nothing if the last piece of the partition was given.".
-spec narrow(shard(), place(), [witness_event:kind()]) -> ok.
narrow({Run, Shard}, Place, Kinds) -> shard_narrow(Run, Shard, Place, mask(Kinds)).

-doc """
The partition leaves the shard, and goes on behind what was given. The process that takes from it next is its consumer. The
place is free. The last piece of the partition must not have been given.
""".
-spec detach(shard(), place()) -> partition().
detach({Run, Shard}, Place) -> shard_detach(Run, Shard, Place).

-doc """
The consumer has died. Partitions that it knew of are unread. If it has not been given the first piece of a partition, that
partition waits for the next consumer.
""".
-spec reset(shard()) -> ok.
reset({Run, Shard}) -> shard_reset(Run, Shard).

-doc "Traces a process of Witness itself so that its children are traced: those that the run waits for.".
-spec launcher(session(), pid()) -> ok | dead.
launcher(Session = {_, {Run, _}, _, _, _}, P) ->
    ok = add_launcher(Run, P),
    on(Session, P).

-doc """
Traces a process so that its children are traced; the run waits for it and for them. No monitor reads the process itself.
""".
-spec parent(session(), pid()) -> ok | dead.
parent(Session = {_, {Run, _}, _, _, _}, P) ->
    ok = add_parent(Run, P),
    case on(Session, P) of
        ok -> ok;
        dead -> ok = forget(Run, P), dead
    end.

-doc """
Traces a process that runs already, as if it had been spawned now, with this signature. The run waits for it. To be called while the
process does nothing: what it does meanwhile may be missing.
""".
-spec adopt(session(), pid(), witness_event:signature()) -> ok | dead.
adopt(Session = {_, {Run, _}, _, _, _}, P, Signature) ->
    case process_info(P, parent) of
        {parent, Parent} ->
            ok = adopt_process(Run, P, case Parent of undefined -> P; _ -> Parent end, Signature),
            case on(Session, P) of
                ok -> ok;
                dead -> ok = forget(Run, P), dead
            end;
        undefined -> dead
    end.

-doc """
A process that is not of the run: what it spawns for a process of the run belongs to the run, or, with `Always`, whatever it spawns
from now on. Only for a session with `servers`.
""".
-spec server(session(), pid(), Always :: boolean()) -> ok | dead.
server(Session = {_, {Run, _}, _, _, _}, P, Always) ->
    %% A process of the run has its flags.
    case add_server(Run, P, Always) andalso on(Session, P) of
        dead -> ok = forget(Run, P), dead;
        _ -> ok
    end.

-doc """
Whether a process is traced; if the session only watches, whether it waits for the process; if there may be servers, whether the
process belongs to the run.
""".
-spec traced(session(), pid()) -> boolean().
traced({_, {Run, _}, watch, _, _}, P) -> is_held(Run, P);
traced({Session, {Run, _}, _, _, _}, P) ->
    case member_of(Run, P) of
        undefined -> has_flags(Session, P);
        IsMember -> IsMember
    end.

-doc "Whether the run waits for the end of a process.".
-spec awaited(session(), pid()) -> boolean().
awaited({_, {Run, _}, _, _, _}, P) -> is_held(Run, P).

has_flags(Session, P) ->
    try trace:info(Session, P, flags) of
        {flags, [_ | _]} -> true;
        _ -> false
    catch
        error:badarg -> false
    end.

-doc "Traces a process without a partition of its own, and its future children.".
-spec on(session(), pid()) -> ok | dead.
on({_, _, watch, _, _}, P) ->
    case is_process_alive(P) of
        true -> ok;
        false -> dead
    end;
on({Session, _, Flags, _, _}, P) -> witness_trace:switch(Session, P, true, Flags).

-doc """
For a session that only watches: forgets the dead among the processes that it waits for. Returns at most so many of the
others, none if all have ended. What is known of the others, and that all have ended, is reported among the births.
""".
-spec sweep(session(), Most :: non_neg_integer()) -> [pid()].
sweep({_, {Run, _}, watch, _, _}, Most) -> sweep_run(Run, Most).

-doc "Ends the tracing of a process. What it has done until now is in its partition.".
-spec off(session(), pid()) -> ok.
off({Session, {Run, _}, Flags, _, _}, P) ->
    _ = witness_trace:switch(Session, P, false, Flags),
    forget(Run, P).

-doc """
Ends tracing. Then every partition has its last status, and the partition of births has every birth and the status `stopped`.
""".
-spec close(session()) -> ok.
close({Session, {Run, _}, _, _, Timer}) ->
    _ = trace:session_destroy(Session),
    ok = close_run(Run),
    Timer ! stop,
    ok.

-doc """
How many processes were spawned, and how many of those that the run waits for are alive; how many events were taken, and how
many bytes the buffers take now; how many partitions of shards are read now, and how many at most.
""".
-spec counts(session()) -> #{processes := non_neg_integer(), held := non_neg_integer(), events := non_neg_integer(),
                             bytes := non_neg_integer(), read := non_neg_integer(), most_read := non_neg_integer()}.
counts({_, {Run, _}, _, _, _}) -> counts_of(Run).

-doc """
A function that gives the registered name of a process that was seen, or else the module that it was spawned with; none if neither
is known. Both are remembered for some thousand processes, the last ones. The function does not keep the session open.
""".
-spec called(session()) -> fun((pid()) -> [atom()]).
called({_, {Run, _}, _, _, _}) ->
    fun(P) ->
        case called_of(Run, P) of
            {undefined, undefined} -> [];
            {undefined, Module} -> [Module];
            {Name, _} -> [Name]
        end
    end.

-doc """
A function that gives how many processes were spawned with each signature: its module, function and arity, `'_'` for the function and arity
of funs. Some hundred signatures are counted, the first ones. The function does not keep the session open.
""".
-spec seen(session()) -> fun(() -> [{module(), Function :: atom(), arity() | '_', pos_integer()}]).
seen({_, {Run, _}, _, _, _}) -> fun() -> seen_of(Run) end.

-doc "How many things of each kind the native code has allocated, in all runs: for tests.".
-spec resources() -> #{runs | hubs | partitions | tracees | batches := non_neg_integer()}.
resources() -> erlang:nif_error(not_loaded).

-spec guarantees() -> witness_trace:guarantees().
guarantees() ->
    #{sets => true, inheritance => true, single => true, fork_first => true, birth => true, causal => true}.

%% --- native code -----------------------------------------------------------------

load() -> witness_trace_library:loaded(?MODULE, erlang:load_nif(witness_trace_library:file("witness_native"), 0)).

-doc false.
enabled(_, _, _) -> discard.
-doc false.
enabled_call(_, _, _) -> discard.
-doc false.
enabled_send(_, _, _) -> discard.
-doc false.
enabled_receive(_, _, _) -> discard.
-doc false.
enabled_procs(_, _, _) -> discard.
-doc false.
trace(_, _, _, _, _) -> ok.
-doc false.
trace_send(_, _, _, _, _) -> ok.
-doc false.
trace_receive(_, _, _, _, _) -> ok.
-doc false.
trace_procs(_, _, _, _, _) -> ok.

narrow_to(_, _) -> erlang:nif_error(not_loaded).
new_run(_, _, _, _, _, _, _, _, _, _) -> erlang:nif_error(not_loaded).
central_of(_, _) -> erlang:nif_error(not_loaded).
shard_take(_, _) -> erlang:nif_error(not_loaded).
shard_unread(_, _, _) -> erlang:nif_error(not_loaded).
shard_narrow(_, _, _, _) -> erlang:nif_error(not_loaded).
shard_detach(_, _, _) -> erlang:nif_error(not_loaded).
shard_reset(_, _) -> erlang:nif_error(not_loaded).
add_launcher(_, _) -> erlang:nif_error(not_loaded).
add_parent(_, _) -> erlang:nif_error(not_loaded).
watch(_) -> erlang:nif_error(not_loaded).
serve(_) -> erlang:nif_error(not_loaded).
add_server(_, _, _) -> erlang:nif_error(not_loaded).
member_of(_, _) -> erlang:nif_error(not_loaded).
adopt_process(_, _, _, _) -> erlang:nif_error(not_loaded).
is_held(_, _) -> erlang:nif_error(not_loaded).
sweep_run(_, _) -> erlang:nif_error(not_loaded).
forget(_, _) -> erlang:nif_error(not_loaded).
close_run(_) -> erlang:nif_error(not_loaded).
-doc false.
-spec tick(reference(), Age :: pos_integer()) -> boolean().
tick(_, _) -> erlang:nif_error(not_loaded).
counts_of(_) -> erlang:nif_error(not_loaded).
called_of(_, _) -> erlang:nif_error(not_loaded).
seen_of(_) -> erlang:nif_error(not_loaded).
