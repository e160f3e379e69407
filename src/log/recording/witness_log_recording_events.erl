-module(witness_log_recording_events).
-moduledoc """
The events of a recording that has the contents of messages (`m:witness_event`), in an order that is possible for
the run.

| Entry | Event |
|---|---|
| birth, `spawn` | `fork`, followed at once by the `init` of the child |
| `sent` | `send` |
| `from` with its `contents`, `content` | `recv`: when a `receive` has taken the message, not when it arrived |
| `exit` | `exit` |

Events of one process are in the order of the process. Between processes the order respects causality: a child follows its
`fork`, and a `recv` follows its `send`, if the recording has both. Concurrent events have some order, always
the same one for the same files.

In a recording with times each event has the time of its entry, and the order is that of the times. What comes later by cause and effect
is never earlier in time, so this order respects causality too. No time goes back: if a `recv` has no `send` in the recording, all events
that are not later come first. Only events with one and the same time are put in order by cause and effect.

If something is missing, the process that misses it has a `gap`:

- `cut`: the recording ended before the process did, and was not ended with the program;
- `contents`: a message without its contents;
- `arguments`: the arguments that the process, or its child, was spawned with were too large to be recorded; the child has
  `attached` in place of its `init`, and its parent no `fork`;
- `unwoven`: modules that were not woven ran in that VM, and it is not known which processes took messages there. So the gap
  follows the birth of each process.

In a recording that begins late, processes that were born before have `attached` in place of `init`, and no monitors of
their own.

In memory are: the births of all processes, the cursors of live processes, and a hash of each message between them that was
not taken yet.
""".

-export([check/1, fold/3, birth/2]).

-export_type([place/0]).

-doc "The origin of an event: the process, and its entry, from 1; 0 is its birth.".
-type place() :: {Id :: pos_integer(), Index :: non_neg_integer()}.

%% index, time: of the entry that was read last. held: an entry that was read too early. named: the process that had the registered
%% name to which the next message is sent.
-record(process, {id :: pos_integer(),
                  pid :: witness_event:proc(),
                  cursor :: witness_log_recording_cursor:cursor() | none,
                  time = undefined :: undefined | non_neg_integer(),
                  index = 0 :: non_neg_integer(),
                  held = none :: none | witness_log_recording:run(),
                  named = none :: none | non_neg_integer(),
                  exited = false :: boolean()}).

%% ready: what can go on, the least key first; turn: the number of the next key.
%% waiting: processes that take a message that its sender has not sent yet, by the sender. With times there are none.
%% unborn: processes with a spawn that was not read yet. done: processes without further entries.
%% sent: hashes of messages that were sent to a process, or to `any', and not taken yet, by sender.
%% ends: the gaps at the end of a process that has not ended.
-record(merge, {open = fun(_) -> {ok, none} end
                    :: fun((pos_integer()) -> {ok, witness_log_recording_cursor:cursor() | none} | {error, term()}),
                births :: #{pos_integer() => witness_log_recording:process()},
                ids :: #{pid() => pos_integer()},
                late :: boolean(),
                begins :: [atom()],
                ends :: [atom()],
                times :: boolean(),
                turn = 0 :: non_neg_integer(),
                ready = gb_trees:empty() :: gb_trees:tree(key(), turn()),
                waiting = #{} :: #{pos_integer() => #{pos_integer() => #process{}}},
                unborn :: gb_sets:set(pos_integer()),
                done = #{} :: #{pos_integer() => []},
                sent = #{} :: #{any | pos_integer() => #{pos_integer() => #{non_neg_integer() => pos_integer()}}},
                told :: fun((witness_event:item(), place(), term()) -> term()),
                acc :: term()}).

%% Of equal times: first entries, then messages that are taken although their sending was not read, then births that no entry tells.
-type key() :: {undefined | non_neg_integer(), Rank :: 0..2, Turn :: non_neg_integer()}.
-type turn() :: {entries | forced, #process{}} | {birth, pos_integer()}.

%% Entries of a process that are handled in one turn, without times. With times it is one.
-define(TURN_ENTRIES, 500).

-doc """
Folds over the events, with the place of each. An error is text for people; the result of the events before it remains.
""".
-spec fold(fun((witness_event:item(), place(), Acc) -> Acc), Acc, witness_log_recording:recording()) ->
    {ok, Acc} | {error, unicode:chardata(), Acc}.
fold(Fun, Acc, R) ->
    case prepare(Fun, Acc, R) of
        {ok, M, Roots} ->
            Folded = witness_log_recording:with_cursors(fun(Open) -> start_roots(Roots, M#merge{open = Open}) end, R),
            case Folded of
                {error, {Module, Reason}} -> {error, Module:format_error(Reason), Acc};
                _ -> Folded
            end;
        {error, {Module, Reason}} -> {error, Module:format_error(Reason), Acc};
        {error, Text} -> {error, Text, Acc}
    end.

prepare(Fun, Acc, R) ->
    maybe
        ok ?= check_contents(witness_log_recording:header(R)),
        {ok, Processes} ?= witness_log_recording:processes(R),
        {ok, Unwoven} ?= witness_log_recording:unwoven(R),
        M = #merge{births = #{Id => Process || #{id := Id} = Process <- Processes},
                   ids = #{Pid => Id || #{id := Id, pid := Pid} <- Processes},
                   unborn = gb_sets:from_list([Id || #{id := Id} <- Processes]),
                   late = maps:get(late, witness_log_recording:header(R), false) =:= true,
                   begins = [unwoven || Unwoven =/= []],
                   ends = [cut || not is_whole(R)],
                   times = witness_log_recording:has_times(R), told = Fun, acc = Acc},
        case M of
            #merge{times = true} -> {ok, lists:foldl(fun enqueue_birth/2, M, Processes), []};
            #merge{times = false} ->
                {ok, M, [Id || #{id := Id, parent := Parent} = Process <- Processes, Parent =:= 0 orelse is_early(Process)]}
        end
    end.

-doc "Whether a recording can give events: an error for people says what is missing.".
-spec check(witness_log_recording:recording()) -> ok | {error, unicode:chardata()}.
check(R) -> check_contents(witness_log_recording:header(R)).

check_contents(#{options := #{contents := true}}) -> ok;
check_contents(_) -> {error, no_contents()}.

no_contents() ->
    [~"the recording does not have the contents of messages, and only a replay, which runs the code of the program, finds them again: ",
     ~"add --replay (in a program {log, {replay, #{dir => Dir}}}), or record the program with --contents"].

is_whole(R) ->
    #{complete := Complete, ended := Ended} = witness_log_recording:info(R),
    Complete andalso Ended =:= finished.

%% --- births ----------------------------------------------------------------------

%% Processes without a recorded parent.
start_roots([Id | Ids], M) ->
    Birth = map_get(Id, M#merge.births),
    case report_birth(Birth, undefined, {Id, 0}, M) of
        {ok, M1} -> start_roots(Ids, M1);
        Error -> Error
    end;
start_roots([], M) -> next_turn(M).

%% Time: of the birth.
report_birth(Birth, Parent, Place, M) -> report_birth(Birth, Parent, maps:get(time, Birth, undefined), Place, M).

report_birth(#{id := Id, pid := Pid} = Birth, Parent, Time, Place, #merge{open = Open} = M0) ->
    case is_pid(Pid) andalso Open(Id) of
        false -> fail([~"process ", integer_to_binary(Id), ~" has no pid"], M0);
        {error, {Module, Reason}} -> fail(Module:format_error(Reason), M0);
        {ok, Cursor} ->
            Unwoven = [{gap, Pid, Why, unknown, Time} || Why <- M0#merge.begins],
            M = report(birth(Birth, Parent, Time) ++ Unwoven, Place, M0),
            {ok, enqueue(#process{id = Id, pid = Pid, cursor = Cursor, time = Time},
                         M#merge{unborn = gb_sets:delete_any(Id, M#merge.unborn)})}
    end.

-doc "The first events of a process, without a time. `Parent` is the pid of its parent, if known.".
-spec birth(#{pid := witness_event:proc(), called := witness_log_recording:called(), _ => _}, Parent :: pid() | undefined) ->
    [witness_event:item(), ...].
birth(Birth, Parent) -> birth(Birth, Parent, undefined).

birth(#{called := undefined} = Birth, Parent, Time) -> birth(Birth#{called := {undefined, undefined, 0}}, Parent, Time);
birth(#{pid := Pid, called := Called} = Birth, Parent, Time) ->
    case {Called, Parent} of
        {Known, _} when is_map_key(early, Birth) -> [{attached, Pid, function(Known), Time}];
        {{_, _, Args} = Signature, undefined} when is_list(Args) -> [{init, Pid, undefined, Signature, Time}];
        {{_, _, Args} = Signature, _} when is_list(Args) ->
            [{fork, Parent, Pid, Signature, Time}, {init, Pid, Parent, Signature, Time}];
        {Function, _} ->
            [{gap, Parent, arguments, 1, Time} || Parent =/= undefined]
                ++ [{attached, Pid, Function, Time}, {gap, Pid, arguments, 1, Time}]
    end.

is_early(Process) -> is_map_key(early, Process).

function({Module, Function, Args}) when is_list(Args) -> {Module, Function, length(Args)};
function(Function) -> Function.

report([], _, M) -> M;
report([Item | Items], Place, #merge{told = Told, acc = Acc} = M) ->
    report(Items, Place, M#merge{acc = Told(Item, Place, Acc)}).

fail(Text, #merge{acc = Acc}) -> {error, Text, Acc}.

%% --- turns -----------------------------------------------------------------------

next_turn(#merge{ready = Ready} = M) ->
    case gb_trees:is_empty(Ready) of
        true -> force(M);
        false ->
            {_, Turn, Rest} = gb_trees:take_smallest(Ready),
            take_turn(Turn, M#merge{ready = Rest})
    end.

take_turn({entries, Process}, M) -> step(Process, entries_of_turn(M), M);
take_turn({forced, Process}, M) -> step(Process, entries_of_turn(M), true, M);
%% If a process has an entry about the birth, the time of that entry is the same, and its turn was before.
take_turn({birth, Id}, #merge{unborn = Unborn, births = Births} = M) ->
    case gb_sets:is_element(Id, Unborn) of
        true -> report_orphan(map_get(Id, Births), M);
        false -> next_turn(M)
    end.

entries_of_turn(#merge{times = true}) -> 1;
entries_of_turn(#merge{times = false}) -> ?TURN_ENTRIES.

%% With times the turn of a process comes at the time of its next entry.
enqueue(P, #merge{times = false} = M) -> enqueue(undefined, 0, {entries, P}, M);
enqueue(P0, #merge{times = true} = M) ->
    P = peek(P0),
    enqueue(P#process.time, 0, {entries, P}, M).

enqueue(Time, Rank, What, #merge{turn = Turn, ready = Ready} = M) ->
    M#merge{turn = Turn + 1, ready = gb_trees:insert({Time, Rank, Turn}, What, Ready)}.

enqueue_birth(#{id := Id} = Birth, M) -> enqueue(maps:get(time, Birth, undefined), 2, {birth, Id}, M).

%% Where there is no further entry, what follows is the end of what is known of the process.
peek(#process{held = none} = P0) ->
    case next(P0) of
        {ok, Entry, P} -> P#process{held = Entry};
        _ -> P0
    end;
peek(P) -> P.

%% First, processes with a spawn that was cut away: only their own birth is recorded. Then one of the processes that wait for a
%% message that was sent in an unrecorded way.
force(#merge{unborn = Unborn, waiting = Waiting, births = Births, done = Done} = M) ->
    Orphans = [Id || not gb_sets:is_empty(Unborn), Id <- gb_sets:to_list(Unborn), is_orphan(map_get(Id, Births), Done, Births)],
    case {Orphans, lists:sort(maps:keys(Waiting))} of
        {[Id | _], _} -> report_orphan(map_get(Id, Births), M);
        {[], [Sender | _]} ->
            {First, M1} = first_waiting(Sender, M),
            step(First, entries_of_turn(M1), true, M1);
        {[], []} ->
            case gb_sets:is_empty(Unborn) of
                true -> {ok, M#merge.acc};
                false -> fail([~"process ", integer_to_binary(gb_sets:smallest(Unborn)), ~" is its own ancestor"], M)
            end
    end.

first_waiting(Sender, #merge{waiting = Waiting} = M) ->
    #{Sender := Waiters} = Waiting,
    [{Id, First} | _] = lists:sort(maps:to_list(Waiters)),
    {First, M#merge{waiting = remove_waiter(Id, Sender, Waiters, Waiting)}}.

is_orphan(#{parent := Parent}, Done, Births) -> is_map_key(Parent, Done) orelse not is_map_key(Parent, Births).

%% No entry has told its birth.
report_orphan(#{id := Id, parent := Parent} = Birth, #merge{births = Births, late = Late} = M0) ->
    Born = case Births of
        _ when Parent =:= 0 -> report_birth(Birth, undefined, {Id, 0}, M0);
        _ when Late -> report_birth(Birth#{early => true}, undefined, {Id, 0}, M0);
        #{Parent := #{pid := Pid}} ->
            Gap = {gap, Pid, cut, unknown, maps:get(time, Birth, undefined)},
            report_birth(Birth, Pid, {Id, 0}, report([Gap], {Id, 0}, M0));
        #{} -> report_birth(Birth, undefined, {Id, 0}, M0)
    end,
    case Born of
        {ok, M} -> next_turn(M);
        Error -> Error
    end.

step(Process, Turns, M) -> step(Process, Turns, false, M).

%% Forced: a message is taken although its sending is not recorded.
step(Process, 0, _, M) -> next_turn(enqueue(Process, M));
step(#process{id = Id, pid = Pid} = P0, Turns, Forced, M) ->
    case next(P0) of
        {ok, {from, From, 1}, P} -> apply_receive(From, P, P0, Turns, Forced, M);
        {ok, {from, _, N}, P} -> step(P, Turns - 1, report_one({gap, Pid, contents, N, P#process.time}, P, M));
        {ok, {content, Msg}, P} -> step(P, Turns - 1, report_one({recv, Pid, undefined, Msg, P#process.time}, P, M));
        {ok, {named, To}, P} -> step(P#process{named = To}, Turns - 1, M);
        {ok, {sent, To, Msg}, P} ->
            case is_destination(To) of
                true -> apply_send(To, Msg, P, Turns, report_one({send, Pid, To, Msg, P#process.time}, P, M));
                false -> fail([~"process ", integer_to_binary(Id), ~" has sent to a term that is no destination"], M)
            end;
        {ok, {spawn, Child}, P} -> apply_spawn(Child, P, Turns, M);
        {ok, {exit, Reason}, P} ->
            step(P#process{exited = true}, Turns - 1, report_one({exit, Pid, Reason, P#process.time}, P, M));
        {ok, _, P} -> step(P, Turns - 1, M);
        {done, P} -> finish(P, M);
        {error, {Module, Reason}} -> fail(Module:format_error(Reason), M)
    end.

next(#process{cursor = none} = P) -> {done, P};
next(#process{held = none, cursor = Cursor, index = Index, time = Before} = P) ->
    case witness_log_recording_cursor:next(Cursor) of
        {ok, Entry, Cursor1} ->
            %% A recording that begins late may begin behind the time of an entry.
            Time = case witness_log_recording_cursor:time(Cursor1) of undefined -> Before; At -> At end,
            {ok, Entry, P#process{cursor = Cursor1, index = Index + witness_log_recording_cursor:count(Entry), time = Time}};
        done -> {done, P};
        {error, _} = Error -> Error
    end;
next(#process{held = Entry} = P) -> {ok, Entry, P#process{held = none}}.

report_one(Item, #process{id = Id, index = Index}, M) -> report([Item], {Id, Index}, M).

is_destination({Name, Node}) -> is_atom(Name) andalso is_atom(Node);
is_destination(To) -> is_pid(To) orelse is_atom(To) orelse is_port(To) orelse is_reference(To).

apply_spawn(Child, #process{id = Id, pid = Pid, index = Index} = P, Turns, #merge{births = Births, unborn = Unborn} = M) ->
    case {Births, gb_sets:is_element(Child, Unborn)} of
        {#{Child := #{parent := Id} = Birth}, true} ->
            case report_birth(Birth, Pid, P#process.time, {Id, Index}, M) of
                {ok, M1} -> step(P, Turns - 1, M1);
                Error -> Error
            end;
        {#{Child := #{early := true}}, _} -> step(P, Turns - 1, M);
        {#{Child := _}, _} ->
            fail([~"process ", integer_to_binary(Child), ~" was spawned by ", integer_to_binary(Id), ~" and by another one"], M);
        %% The birth of the child was cut away.
        _ -> step(P, Turns - 1, report_one({gap, Pid, cut, 1, P#process.time}, P, M))
    end.

finish(#process{id = Id, pid = Pid, exited = Exited} = P, #merge{done = Done, ends = Ends, sent = Sent} = M0) ->
    M = case Exited of
        true -> M0;
        false -> lists:foldl(fun(Why, A) -> report_one({gap, Pid, Why, unknown, P#process.time}, P, A) end, M0, Ends)
    end,
    next_turn(wake(Id, any, M#merge{done = Done#{Id => []}, sent = maps:remove(Id, Sent)})).

%% --- messages --------------------------------------------------------------------

%% The contents are the following entry. P0 precedes both.
apply_receive(From, #process{pid = Pid} = P, P0, Turns, Forced, M) ->
    case next(P) of
        {ok, {contents, Msg}, P1} ->
            case find_sent(From, P#process.id, Msg, M) of
                false when not Forced -> next_turn(wait(From, P0, M));
                Taken ->
                    M1 = case Taken of #{} -> M#merge{sent = Taken}; _ -> M end,
                    Sender = case M#merge.births of #{From := #{pid := Known}} -> Known; #{} -> undefined end,
                    step(P1, Turns - 1, report_one({recv, Pid, Sender, Msg, P#process.time}, P, M1))
            end;
        {ok, Other, P1} ->
            step(P1#process{held = Other}, Turns - 1, report_one({gap, Pid, contents, 1, P#process.time}, P, M));
        {done, P1} -> finish(P1, M);
        {error, {Module, Reason}} -> fail(Module:format_error(Reason), M)
    end.

%% The untaken messages without this one. If it is not among them: whether its sender is done, so that waiting is useless.
find_sent(From, Id, Msg, #merge{sent = Sent, done = Done}) ->
    Hash = erlang:phash2(Msg),
    case Sent of
        #{Id := #{From := #{Hash := N}}} -> remove_sent(Id, From, Hash, N, Sent);
        #{any := #{From := #{Hash := N}}} -> remove_sent(any, From, Hash, N, Sent);
        #{} -> is_map_key(From, Done)
    end.

remove_sent(To, From, Hash, N, Sent) ->
    #{To := #{From := Hashes} = Senders} = Sent,
    Left = case N of 1 -> maps:remove(Hash, Hashes); _ -> Hashes#{Hash := N - 1} end,
    Sent#{To := Senders#{From := Left}}.

apply_send(To, Msg, #process{id = Id, named = Named} = P0, Turns, #merge{sent = Sent, ids = Ids, done = Done} = M) ->
    P = P0#process{named = none},
    Receiver = case To of
        _ when is_pid(To) -> maps:get(To, Ids, 0);
        _ when is_reference(To) -> any;
        _ when Named =:= none; is_port(To) -> 0;
        _ -> Named
    end,
    case Receiver =:= 0 orelse is_map_key(Receiver, Done) of
        true -> step(P, Turns - 1, M);
        false ->
            Senders = maps:get(Receiver, Sent, #{}),
            Hashes = maps:get(Id, Senders, #{}),
            More = maps:update_with(erlang:phash2(Msg), fun(N) -> N + 1 end, 1, Hashes),
            step(P, Turns - 1, wake(Id, Receiver, M#merge{sent = Sent#{Receiver => Senders#{Id => More}}}))
    end.

%% With times the message was sent before its time, or its sending is not recorded.
wait(_, P, #merge{times = true} = M) -> enqueue(P#process.time, 1, {forced, P}, M);
wait(From, #process{id = Id} = P, #merge{waiting = Waiting} = M) ->
    M#merge{waiting = Waiting#{From => (maps:get(From, Waiting, #{}))#{Id => P}}}.

%% Wakes the processes that wait for this sender: the receiver, or all of them if the receiver is `any'.
wake(Sender, Receiver, #merge{waiting = Waiting} = M) ->
    case Waiting of
        #{Sender := Waiters} when Receiver =:= any ->
            lists:foldl(fun({_, P}, A) -> enqueue(P, A) end, M#merge{waiting = maps:remove(Sender, Waiting)},
                        lists:sort(maps:to_list(Waiters)));
        #{Sender := #{Receiver := P} = Waiters} ->
            enqueue(P, M#merge{waiting = remove_waiter(Receiver, Sender, Waiters, Waiting)});
        #{} -> M
    end.

remove_waiter(Id, Sender, Waiters, Waiting) when map_size(Waiters) =:= 1, is_map_key(Id, Waiters) -> maps:remove(Sender, Waiting);
remove_waiter(Id, Sender, Waiters, Waiting) -> Waiting#{Sender := maps:remove(Id, Waiters)}.
