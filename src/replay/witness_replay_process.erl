-module(witness_replay_process).
-moduledoc """
The state of a replayed process: the next entries of its log; the messages that were sent to it and that it has not taken, one
queue for each sender; its active aliases; and its last entries, for a report.

*Invariant:* the messages of each sender are first in, first out. The functions are pure, except that `peek/1` fetches entries
(`m:witness_replay_log`). When only the end is left, `peek/1` and `pop/1` release the senders to this process
(`m:witness_replay_backpressure`), and bound its heap (`m:witness_replay_heap`). `m:witness_replay_interpreter` keeps the state in the
dictionary of the process.

*Aliases.* A message that was sent to an alias is there only if the alias was active when it came. The log does not say that. It
matters only if the alias is not active any more. Then there are two cases. If a `receive` names the alias, so that it would not
take the same message with another reference, the message came while the alias was active. For any other `receive`, it never
came.
""".

-export([new/4, peek/1, pop/1, recent/1, ended/1, ends/1, may_be_killed/1, position/1, has_none/2]).
-export([arrived/4, queued/3, would_take/4, alias/3, unalias/2, owner/1]).

-export_type([process/0, match/0]).

-include("src/replay/witness_replay_process.hrl").

-type process() :: #process{}.

-doc "Whether a `receive` would take a message.".
-type match() :: fun((term()) -> boolean()).

%% How many of the last entries are kept, at least.
-define(RECENT, 10).

%% Entries after which a process waits for the tracer.
-define(TRACED, 1024).

-doc "A process before its first entry.".
-spec new(pos_integer(), pid(), witness_replay_backpressure:flow(), Plain :: boolean()) -> process().
new(Id, Pid, Flow, Plain) -> #process{id = Id, pid = Pid, flow = Flow, plain = Plain}.

-doc "The next entry; `done` if there is none.".
-spec peek(process()) -> {witness_log_recording:run() | done, process()} | {error, witness_log_recording:error()}.
peek(#process{entries = [Entry | _]} = P) -> {Entry, P};
peek(#process{more = false} = P) -> {done, P};
peek(#process{id = Id} = P) ->
    case witness_replay_log:next(Id) of
        {ok, {Entries, More}} -> peek(last(P#process{entries = Entries, more = More}));
        {error, _} = Error -> Error
    end.

-doc "The process after the entry that `peek/1` has returned.".
-spec pop(process()) -> process().
pop(#process{entries = [Entry | Entries], at = At, recent = Recent} = P) ->
    ok = case At rem ?TRACED of ?TRACED - 1 -> witness_replay_traced:caught_up(); _ -> ok end,
    Passed = P#process{entries = left(Entry, Entries), at = At + 1, recent = case At rem ?RECENT of
        0 -> [Entry | lists:sublist(Recent, ?RECENT)];
        _ -> [Entry | Recent]
    end},
    case Entry of
        {exit, _} -> Passed;
        _ -> last(Passed)
    end.

%% If only the end is left, the process takes no message any more: senders need not wait for that. If it may go on forever, its
%% heap gets a bound.
last(#process{entries = [Entry, _ | _]} = P) when Entry =/= waited -> P;
last(#process{flow = Flow} = P) ->
    _ = [witness_replay_backpressure:last(Flow) || ended(P)],
    _ = [ok = witness_replay_heap:bound(P) || may_be_killed(P)],
    P.

left({from, _, 1}, Entries) -> Entries;
left({from, Id, N}, Entries) -> [{from, Id, N - 1} | Entries];
left({timeout, 1}, Entries) -> Entries;
left({timeout, N}, Entries) -> [{timeout, N - 1} | Entries];
left(_, Entries) -> Entries.

-doc "The last entries that it has passed, the latest one at the end, each as it was then.".
-spec recent(process()) -> [witness_log_recording:run()].
recent(#process{recent = Recent}) -> lists:reverse(lists:sublist(Recent, ?RECENT)).

-doc "Whether only its end is left.".
-spec ended(process()) -> boolean().
ended(#process{entries = [], more = false}) -> true;
ended(#process{entries = [{exit, _}]}) -> true;
ended(#process{entries = [waited, {exit, _}]}) -> true;
ended(#process{}) -> false.

-doc """
Whether the process may have ended already, by a signal or where the recording was cut, as far as its log says. One that waited
when it was ended comes to that `receive` first.
""".
-spec may_be_killed(process()) -> boolean().
may_be_killed(#process{entries = [_, _ | _]}) -> false;
may_be_killed(#process{entries = [{exit, normal}]}) -> false;
may_be_killed(P) -> ended(P).

-doc "How a process ends that is ended from outside with only its end left, and how many entries it has passed then.".
-spec ends(process()) -> {pos_integer(), killed | cut, non_neg_integer()}.
ends(#process{id = Id, at = At, entries = []}) -> {Id, cut, At};
ends(#process{id = Id, at = At}) -> {Id, killed, At + 1}.

-doc "The number of the next entry, from 1.".
-spec position(process()) -> pos_integer().
position(#process{at = At}) -> At + 1.

-doc "Whether no message of this sender is queued.".
-spec has_none(pos_integer(), process()) -> boolean().
has_none(From, #process{channels = Channels}) -> not is_map_key(From, Channels).

-doc "A message has come from a sender; `Via`: the alias that it was sent to.".
-spec arrived(pos_integer(), none | reference(), term(), process()) -> process().
arrived(From, Via, Msg, #process{channels = Channels} = P) ->
    {Out, In} = maps:get(From, Channels, {[], []}),
    P#process{channels = Channels#{From => {Out, [{Via, Msg} | In]}}}.

-doc "The earliest message of a sender that matches.".
-spec queued(pos_integer(), match(), process()) -> {ok, term(), process()} | {none, process()}.
queued(From, Match, #process{channels = Channels} = P) ->
    case Channels of
        #{From := {Out, In}} ->
            case scan(Out, In, Match, P, []) of
                {ok, Via, Msg, {[], []}} -> {ok, Msg, used(Via, P#process{channels = maps:remove(From, Channels)})};
                {ok, Via, Msg, Left} -> {ok, Msg, used(Via, P#process{channels = Channels#{From := Left}})};
                {none, Left} -> {none, P#process{channels = Channels#{From := {Left, []}}}}
            end;
        #{} -> {none, P}
    end.

scan([], [], _, _, Passed) -> {none, lists:reverse(Passed)};
scan([], In, Match, P, Passed) -> scan(lists:reverse(In), [], Match, P, Passed);
scan([{Via, Msg} = Item | Out], In, Match, P, Passed) ->
    case Match(Msg) of
        true when Via =/= none ->
            case is_one(Via, Msg, Match, P) of
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
            case is_one(Via, Msg, Match, P) of
                true -> {true, used(Via, P)};
                never -> never
            end
    end.

%% Whether a message that matches, and was sent to an alias, was there.
is_one(Alias, _, _, #process{aliases = Aliases}) when is_map_key(Alias, Aliases) -> true;
is_one(Alias, Msg, Match, _) -> case Match(renamed(Msg, Alias, make_ref())) of true -> never; false -> true end.

renamed(Alias, Alias, Other) -> Other;
renamed([Head | Tail], Alias, Other) -> [renamed(Head, Alias, Other) | renamed(Tail, Alias, Other)];
renamed(Term, Alias, Other) when is_tuple(Term) -> list_to_tuple(renamed(tuple_to_list(Term), Alias, Other));
renamed(Term, Alias, Other) when is_map(Term) -> maps:from_list(renamed(maps:to_list(Term), Alias, Other));
renamed(Term, _, _) -> Term.

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

-doc """
The part that all aliases of a process have in common, and no other reference has: the VM puts the process into the last two of
their five words. For any other reference the result is the reference itself.
""".
-spec owner(reference()) -> binary() | reference().
owner(Ref) ->
    case term_to_binary(Ref) of
        <<131, 90, 5:16, Rest/binary>> -> binary:part(Rest, byte_size(Rest), -8);
        _ -> Ref
    end.

used(none, P) -> P;
used(Alias, #process{aliases = Aliases} = P) ->
    case Aliases of
        #{Alias := once} -> P#process{aliases = maps:remove(Alias, Aliases)};
        #{} -> P
    end.
