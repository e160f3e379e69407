-module(witness_replay_process).
-moduledoc """
The state of a replayed process: the next entries of its log; the messages that were sent to it and that it has not taken, one
queue for each sender; its active aliases; and its last entries, for a report.

*Invariant:* the messages of each sender are first in, first out. The functions are pure. `pop/1` and `add_entries/3` return what
is due with the new state, and `m:witness_replay_interpreter` does it. That module also fetches the entries, and keeps the state in
the dictionary of the process.

*Aliases.* A message that was sent to an alias is there only if the alias was active when it came. The log does not say that. It
matters only if the alias is not active any more. Then there are two cases. If a `receive` names the alias, so that it would not
take the same message with another reference, the message came while the alias was active. For any other `receive`, it never
came.
""".

-export([new/5, id/1, pid/1, flow/1, is_plain/1, heap/1, set_heap/2, peer/1, set_peer/2, owners/1, add_owners/2]).
-export([compact/1, fields/0]).
-export([set_limit/2, has_reached_limit/1, next/1, peek/1, add_entries/3, pop/1, passed/1, position/1, recent/1, passed_exit/1,
         forced_end/1, may_be_killed/1, order/1]).
-export([has_none/2, enqueue/4, dequeue/3, would_take/4, alias/3, unalias/2]).

-export_type([process/0, due/0, peer/0, match/0]).

%% entries: the fetched ones, calls on shared memory with their places in the order of all; more: whether there may be others.
%% at: how many the process has passed; limit: how many it may pass.
%% channels: for each sender the messages that were not taken, the earliest first, and behind them the latest first. recent: the
%% latest first, each as it was then. plain: no process but the receiver needs its messages. owners: the rows of its aliases to
%% delete. heap: the limit that the program has set.
-record(process, {id :: pos_integer(),
                  pid :: pid(),
                  entries = [] :: [fetched()],
                  more = true :: boolean(),
                  at = 0 :: non_neg_integer(),
                  limit = infinity :: non_neg_integer() | infinity,
                  channels = #{} :: #{pos_integer() => {[{none | reference(), term()}], [{none | reference(), term()}]}},
                  peer = none :: peer() | none,
                  flow :: witness_replay_proxies:flow(),
                  plain :: boolean(),
                  heap :: witness_replay_heap:limit(),
                  aliases = #{} :: #{reference() => explicit | monitor | once},
                  owners = [] :: [term()],
                  recent = [] :: [witness_log_recording:run()]}).

-opaque process() :: #process{}.

-type fetched() :: witness_log_recording:run() | witness_log_recording:ordered().

-doc "A receiver: its recorded pid, its identifier, and its proxy.".
-type peer() :: {pid(), pos_integer(), witness_replay_proxies:proxy()}.

-doc """
What the process has to do before it goes on:

- `sync_tracer`: wait for the tracer of calls, if there is one;
- `release_senders`: only its end is left, so it takes no message any more, and senders need not wait for that;
- `bound_heap`: it may go on forever, since only an end is left that may come from outside.
""".
-type due() :: sync_tracer | release_senders | bound_heap.

-doc "Whether a `receive` would take a message.".
-type match() :: fun((term()) -> boolean()).

%% How many of the last entries are kept, at least.
-define(MIN_RECENT, 10).

%% Entries after which a process waits for the tracer.
-define(TRACER_SYNC_ENTRIES, 1024).

-doc "A process before its first entry. `Plain`: no process but the receiver needs its messages.".
-spec new(pos_integer(), pid(), witness_replay_proxies:flow(), Plain :: boolean(), witness_replay_heap:limit()) -> process().
new(Id, Pid, Flow, Plain, Heap) -> #process{id = Id, pid = Pid, flow = Flow, plain = Plain, heap = Heap}.

-spec id(process()) -> pos_integer().
id(#process{id = Id}) -> Id.

-doc "Its pid in the recording.".
-spec pid(process()) -> pid().
pid(#process{pid = Pid}) -> Pid.

-doc "Its numbers (`m:witness_replay_backpressure`).".
-spec flow(process()) -> witness_replay_proxies:flow().
flow(#process{flow = Flow}) -> Flow.

-spec is_plain(process()) -> boolean().
is_plain(#process{plain = Plain}) -> Plain.

-doc "The heap limit that the program has set.".
-spec heap(process()) -> witness_replay_heap:limit().
heap(#process{heap = Limit}) -> Limit.

-spec set_heap(witness_replay_heap:limit(), process()) -> process().
set_heap(Limit, P) -> P#process{heap = Limit}.

-doc "The process that it has sent to last, if it is plain.".
-spec peer(process()) -> peer() | none.
peer(#process{peer = Peer}) -> Peer.

-spec set_peer(peer(), process()) -> process().
set_peer(Peer, #process{plain = true} = P) -> P#process{peer = Peer};
set_peer(_, P) -> P.

-doc "The rows of its aliases (`witness_replay_proxies:forget/1`).".
-spec owners(process()) -> [term()].
owners(#process{owners = Owners}) -> Owners.

-spec add_owners([term()], process()) -> process().
add_owners(New, #process{owners = Owners} = P) -> P#process{owners = New ++ Owners}.

-doc "The process without messages, aliases and passed entries: what a copy of it needs, to say how it ends.".
-spec compact(process()) -> process().
compact(P) -> P#process{channels = #{}, recent = [], aliases = #{}}.

-doc "A process is a tuple. Where match specifications find its identifier in it, and how many entries it has passed.".
-spec fields() -> {Id :: pos_integer(), Passed :: pos_integer()}.
fields() -> {#process.id, #process.at}.

-doc "The process may pass so many entries.".
-spec set_limit(non_neg_integer() | infinity, process()) -> process().
set_limit(Limit, P) -> P#process{limit = Limit}.

%% A number is less than `infinity'.
-spec has_reached_limit(process()) -> boolean().
has_reached_limit(#process{at = At, limit = Limit}) -> At >= Limit.

-doc "The next entry, as `peek/1` returns it. `limit`: the process has reached its limit.".
-spec next(process()) -> witness_log_recording:run() | done | fetch | limit.
next(#process{at = At, limit = Limit}) when At >= Limit -> limit;
next(P) -> peek(P).

-doc "The next entry. `done`: there is none. `fetch`: those that were fetched are used up.".
-spec peek(process()) -> witness_log_recording:run() | done | fetch.
peek(#process{entries = [Entry | _]}) -> bare(Entry);
peek(#process{more = false}) -> done;
peek(#process{}) -> fetch.

bare({ordered, _, _, Entry}) -> Entry;
bare(Entry) -> Entry.

-doc "The place of the next entry in the order of calls on shared memory, if it has one.".
-spec order(process()) -> {Begin :: non_neg_integer(), End :: non_neg_integer()} | none.
order(#process{entries = [{ordered, Begin, End, _} | _]}) -> {Begin, End};
order(#process{}) -> none.

-doc "The entries that were fetched, and whether there may be more.".
-spec add_entries([fetched()], More :: boolean(), process()) -> {[due()], process()}.
add_entries(Entries, More, #process{entries = []} = P) ->
    Fetched = P#process{entries = Entries, more = More},
    {due_at_end(Fetched), Fetched}.

-doc "The process after the entry that `peek/1` has returned.".
-spec pop(process()) -> {[due()], process()}.
pop(#process{entries = [Next | Entries], at = At, recent = Recent} = P) ->
    Entry = bare(Next),
    Passed = P#process{entries = rest(Entry, Entries), at = At + 1, recent = case At rem ?MIN_RECENT of
        0 -> [Entry | lists:sublist(Recent, ?MIN_RECENT)];
        _ -> [Entry | Recent]
    end},
    Due = case Entry of {exit, _} -> []; _ -> due_at_end(Passed) end,
    case At rem ?TRACER_SYNC_ENTRIES of
        ?TRACER_SYNC_ENTRIES - 1 -> {[sync_tracer | Due], Passed};
        _ -> {Due, Passed}
    end.

due_at_end(#process{entries = [Entry, _ | _]}) when Entry =/= waited -> [];
due_at_end(P) -> [release_senders || is_at_end(P)] ++ [bound_heap || may_be_killed(P)].

rest({from, _, 1}, Entries) -> Entries;
rest({from, Id, N}, Entries) -> [{from, Id, N - 1} | Entries];
rest({timeout, 1}, Entries) -> Entries;
rest({timeout, N}, Entries) -> [{timeout, N - 1} | Entries];
rest(_, Entries) -> Entries.

-doc "The last entries that it has passed, the latest one at the end, each as it was then.".
-spec recent(process()) -> [witness_log_recording:run()].
recent(#process{recent = Recent}) -> lists:reverse(lists:sublist(Recent, ?MIN_RECENT)).

-doc "Whether only its end is left.".
-spec is_at_end(process()) -> boolean().
is_at_end(#process{entries = [], more = false}) -> true;
is_at_end(#process{entries = [{exit, _}]}) -> true;
is_at_end(#process{entries = [waited, {exit, _}]}) -> true;
is_at_end(#process{}) -> false.

-doc """
Whether the process may have ended already, by a signal or where the recording was cut, as far as its log says. One that waited
when it was ended comes to that `receive` first.
""".
-spec may_be_killed(process()) -> boolean().
may_be_killed(#process{entries = [_, _ | _]}) -> false;
may_be_killed(#process{entries = [{exit, normal}]}) -> false;
may_be_killed(P) -> is_at_end(P).

-doc "The exit that it has passed, its last entry.".
-spec passed_exit(process()) -> {exit, term()} | none.
passed_exit(#process{recent = [{exit, _} = Exit | _]}) -> Exit;
passed_exit(#process{}) -> none.

-doc "How a process ends that is ended from outside with only its end left, and how many entries it has passed then.".
-spec forced_end(process()) -> {pos_integer(), killed | cut, non_neg_integer()}.
forced_end(#process{id = Id, at = At, entries = []}) -> {Id, cut, At};
forced_end(#process{id = Id, at = At}) -> {Id, killed, At + 1}.

-doc "How many entries it has passed.".
-spec passed(process()) -> non_neg_integer().
passed(#process{at = At}) -> At.

-doc "The number of the next entry, from 1.".
-spec position(process()) -> pos_integer().
position(#process{at = At}) -> At + 1.

-doc "Whether no message of this sender is queued.".
-spec has_none(pos_integer(), process()) -> boolean().
has_none(From, #process{channels = Channels}) -> not is_map_key(From, Channels).

-doc "A message has come from a sender; `Via`: the alias that it was sent to.".
-spec enqueue(pos_integer(), none | reference(), term(), process()) -> process().
enqueue(From, Via, Msg, #process{channels = Channels} = P) ->
    {Out, In} = maps:get(From, Channels, {[], []}),
    P#process{channels = Channels#{From => {Out, [{Via, Msg} | In]}}}.

-doc "The earliest message of a sender that matches.".
-spec dequeue(pos_integer(), match(), process()) -> {ok, term(), process()} | {none, process()}.
dequeue(From, Match, #process{channels = Channels} = P) ->
    case Channels of
        #{From := {Out, In}} ->
            case scan(Out, In, Match, P, []) of
                {ok, Via, Msg, {[], []}} -> {ok, Msg, use_alias(Via, P#process{channels = maps:remove(From, Channels)})};
                {ok, Via, Msg, Left} -> {ok, Msg, use_alias(Via, P#process{channels = Channels#{From := Left}})};
                {none, Left} -> {none, P#process{channels = Channels#{From := {Left, []}}}}
            end;
        #{} -> {none, P}
    end.

scan([], [], _, _, Passed) -> {none, lists:reverse(Passed)};
scan([], In, Match, P, Passed) -> scan(lists:reverse(In), [], Match, P, Passed);
scan([{Via, Msg} = Item | Out], In, Match, P, Passed) ->
    case Match(Msg) of
        true when Via =/= none ->
            case was_active(Via, Msg, Match, P) of
                true -> {ok, Via, Msg, {lists:reverse(Passed, Out), In}};
                never -> scan(Out, In, Match, P, Passed)
            end;
        true -> {ok, Via, Msg, {lists:reverse(Passed, Out), In}};
        false -> scan(Out, In, Match, P, [Item | Passed])
    end.

-doc """
Whether a `receive` takes a message that comes now, and the process then; `never`: the alias that it was sent to was not active
any more.
""".
-spec would_take(none | reference(), term(), match(), process()) -> {true, process()} | false | never.
would_take(Via, Msg, Match, P) ->
    case Match(Msg) of
        false -> false;
        true when Via =:= none -> {true, P};
        true ->
            case was_active(Via, Msg, Match, P) of
                true -> {true, use_alias(Via, P)};
                never -> never
            end
    end.

%% Whether a message that matches, and was sent to an alias, was there.
was_active(Alias, _, _, #process{aliases = Aliases}) when is_map_key(Alias, Aliases) -> true;
was_active(Alias, Msg, Match, _) -> case Match(rename(Msg, Alias, make_ref())) of true -> never; false -> true end.

rename(Alias, Alias, Other) -> Other;
rename([Head | Tail], Alias, Other) -> [rename(Head, Alias, Other) | rename(Tail, Alias, Other)];
rename(Term, Alias, Other) when is_tuple(Term) -> list_to_tuple(rename(tuple_to_list(Term), Alias, Other));
rename(Term, Alias, Other) when is_map(Term) -> maps:from_list(rename(maps:to_list(Term), Alias, Other));
rename(Term, _, _) -> Term.

-doc """
An alias is active: until the process deactivates it (`explicit`), also until its monitor has gone (`monitor`), or also until a
message has come (`once`).
""".
-spec alias(reference(), explicit | monitor | once, process()) -> process().
alias(Alias, How, #process{aliases = Aliases} = P) -> P#process{aliases = Aliases#{Alias => How}}.

-doc "An alias is not active any more. `monitor`: its monitor has gone, which an explicit alias survives.".
-spec unalias({any | monitor, reference()}, process()) -> process().
unalias({Which, Alias}, #process{aliases = Aliases} = P) ->
    case Aliases of
        #{Alias := explicit} when Which =:= monitor -> P;
        #{Alias := _} -> P#process{aliases = maps:remove(Alias, Aliases)};
        #{} -> P
    end.

use_alias(none, P) -> P;
use_alias(Alias, #process{aliases = Aliases} = P) ->
    case Aliases of
        #{Alias := once} -> P#process{aliases = maps:remove(Alias, Aliases)};
        #{} -> P
    end.
