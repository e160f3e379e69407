-module(witness_replay_process).
-moduledoc """
What a process that is replayed has in hand: the next entries of its log, and messages that were sent to it and that it
has not taken, one queue for each sender. Of what it has taken it remembers the last, for a report.

A message that was sent to an alias is there only if the alias was active. Whether it still was when the message came is
not in the log, but only matters when the alias is not active any more: then a `receive` that names it, and would not take the
same message with another reference, waits for what came before; to any other the message is one that never came.
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

%% Entries after which it waits for who traces it.
-define(TRACED, 1024).

-doc "A process before its first entry.".
-spec new(pos_integer(), pid(), witness_replay_flow:flow(), Plain :: boolean()) -> process().
new(Id, Pid, Flow, Plain) -> #process{id = Id, pid = Pid, flow = Flow, plain = Plain}.

-doc "The next entry, `done` if there is none.".
-spec peek(process()) -> {witness_log_recording:run() | done, process()} | {error, witness_log_recording:error()}.
peek(#process{entries = [Entry | _]} = P) -> {Entry, P};
peek(#process{more = false} = P) -> {done, P};
peek(#process{id = Id} = P) ->
    case witness_replay_log:next(Id) of
        {ok, {Entries, More}} -> peek(last(P#process{entries = Entries, more = More}));
        {error, _} = Error -> Error
    end.

-doc "Behind the entry that `peek/1` has given.".
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

%% From here on it takes nothing: who sends to it need not wait for that. If it may go on for ever, its heap has a bound.
last(#process{entries = [Entry, _ | _]} = P) when Entry =/= waited -> P;
last(#process{flow = Flow} = P) ->
    _ = [witness_replay_flow:last(Flow) || ended(P)],
    _ = [ok = witness_replay_heap:bound(P) || may_be_killed(P)],
    P.

left({from, _, 1}, Entries) -> Entries;
left({from, Id, N}, Entries) -> [{from, Id, N - 1} | Entries];
left({timeout, 1}, Entries) -> Entries;
left({timeout, N}, Entries) -> [{timeout, N - 1} | Entries];
left(_, Entries) -> Entries.

-doc "The last entries that it has passed, the latest one at the end, each as it stood then.".
-spec recent(process()) -> [witness_log_recording:run()].
recent(#process{recent = Recent}) -> lists:reverse(lists:sublist(Recent, ?RECENT)).

-doc "Whether all that is left to do is to end.".
-spec ended(process()) -> boolean().
ended(#process{entries = [], more = false}) -> true;
ended(#process{entries = [{exit, _}]}) -> true;
ended(#process{entries = [waited, {exit, _}]}) -> true;
ended(#process{}) -> false.

-doc """
Whether it may already have been, or may not be any more, as far as its log says. One that waited when it was ended comes to that `receive`
first.
""".
-spec may_be_killed(process()) -> boolean().
may_be_killed(#process{entries = [_, _ | _]}) -> false;
may_be_killed(#process{entries = [{exit, normal}]}) -> false;
may_be_killed(P) -> ended(P).

-doc "How one ends that is ended from outside, with nothing left but that, and how many entries it has passed then.".
-spec ends(process()) -> {pos_integer(), killed | cut, non_neg_integer()}.
ends(#process{id = Id, at = At, entries = []}) -> {Id, cut, At};
ends(#process{id = Id, at = At}) -> {Id, killed, At + 1}.

-doc "Which entry comes next, from 1.".
-spec position(process()) -> pos_integer().
position(#process{at = At}) -> At + 1.

-doc "Whether nothing is there of this sender.".
-spec has_none(pos_integer(), process()) -> boolean().
has_none(From, #process{channels = Channels}) -> not is_map_key(From, Channels).

-doc "A message has come from a sender; `Via`: the alias it was sent to.".
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

-doc "Whether a message that comes now would be taken, and the process then; `never`: it was sent to an alias that was not active any more.".
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

%% Whether one that matches was there.
is_one(Alias, _, _, #process{aliases = Aliases}) when is_map_key(Alias, Aliases) -> true;
is_one(Alias, Msg, Match, _) -> case Match(renamed(Msg, Alias, make_ref())) of true -> never; false -> true end.

renamed(Alias, Alias, Other) -> Other;
renamed([Head | Tail], Alias, Other) -> [renamed(Head, Alias, Other) | renamed(Tail, Alias, Other)];
renamed(Term, Alias, Other) when is_tuple(Term) -> list_to_tuple(renamed(tuple_to_list(Term), Alias, Other));
renamed(Term, Alias, Other) when is_map(Term) -> maps:from_list(renamed(maps:to_list(Term), Alias, Other));
renamed(Term, _, _) -> Term.

-doc """
An alias is active: until it is said not to be (`explicit`), also until its monitor has gone (`monitor`), or until a message
has come (`once`).
""".
-spec alias(reference(), explicit | monitor | once, process()) -> process().
alias(Alias, How, #process{aliases = Aliases} = P) -> P#process{aliases = Aliases#{Alias => How}}.

-doc "An alias is not active any more. `monitor`: if it is one of a monitor.".
-spec unalias({any | monitor, reference()}, process()) -> process().
unalias({Which, Alias}, #process{aliases = Aliases} = P) ->
    case Aliases of
        #{Alias := explicit} when Which =:= monitor -> P;
        #{Alias := _} -> P#process{aliases = maps:remove(Alias, Aliases)};
        #{} -> P
    end.

-doc """
What all aliases of a process have in common, and no other reference has: the VM makes them with the process in the last two of their five
words. Any other reference is its own.
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
