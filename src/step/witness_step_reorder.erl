-module(witness_step_reorder).
-moduledoc """
Brings the reports of a replay into an order that also agrees with the order of calls on shared memory. Pure.

A replay answers such calls from the recording, and no process waits for a table. So its reports agree with what each process did and
with messages, but not with tables. The recording has a place for each call (`t:witness_log_recording:ordered/0`). This module holds a
report back until all that was before it has passed:

- a call, until all changes that began before it have passed;
- whatever else the process does after it;
- taking a message, while the send of that message is kept back; the first action of a child, while its birth is; the message about
  an end, while that end is.

*Invariant:* each process's reports stay in their order, and a message is not taken before it is sent.

*Numbers that are missing.* A process may have been killed in a call, or the recording may have ended, before its place was recorded.
So if too much is kept back, or at the end, the numbers that the first call waits for count as passed. Calls may then be in another
order than they were.
""".

-export([new/1, add/2, finish/1]).

-export_type([order/0]).

%% Reports that are kept back at most.
-define(MAX_HELD, 200_000).

%% next: the first number that has not passed; passed: those beyond it that have. held: the reports of each process that waits, the
%% first one ahead. needs: the numbers that the first ones wait for. waits: processes that wait for reports of another one.
%% sends, births, ends: how many of them are kept back.
-record(order, {ids :: #{pid() => pos_integer()},
                next = 1 :: pos_integer(),
                passed = #{} :: #{pos_integer() => []},
                held = #{} :: #{pos_integer() => queue:queue({Number :: pos_integer(), report()})},
                size = 0 :: non_neg_integer(),
                number = 0 :: non_neg_integer(),
                needs = gb_sets:new() :: gb_sets:set({non_neg_integer(), pos_integer()}),
                waits = #{} :: #{pos_integer() => [pos_integer()]},
                sends = #{} :: #{{pos_integer(), non_neg_integer()} => pos_integer()},
                births = #{} :: #{pos_integer() => pos_integer()},
                ends = #{} :: #{pos_integer() => []}}).

-opaque order() :: #order{}.

-type report() :: witness_replay_emitter:report().

-doc "Before the first report. The pids are those of the recorded processes.".
-spec new(#{pid() => pos_integer()}) -> order().
new(Ids) -> #order{ids = Ids}.

-doc "A report has come: those that may pass now, in their order.".
-spec add(report(), order()) -> {[report()], order()}.
add({Id, _, _} = Report, #order{held = Held, number = N} = O) when is_map_key(Id, Held) ->
    #{Id := Queue} = Held,
    Added = note_held(Report, O#order{held = Held#{Id := queue:in({N, Report}, Queue)}, number = N + 1}),
    case Added#order.size > ?MAX_HELD of
        true -> done(force(Added));
        false -> {[], Added}
    end;
add({Id, _, _} = Report, O) ->
    case blocked(Report, O) of
        none -> done(run(pass(Report, {[], [], O})));
        On ->
            #order{held = Held, number = N} = O,
            {[], wait(Id, On, note_held(Report, O#order{held = Held#{Id => queue:from_list([{N, Report}])}, number = N + 1}))}
    end.

done({Passed, O}) -> {lists:reverse(Passed), O}.

-doc "No further report comes: all that is kept back passes.".
-spec finish(order()) -> [report()].
finish(#order{held = Held}) when map_size(Held) =:= 0 -> [];
finish(O) ->
    {Passed, O1} = force(O),
    lists:reverse(Passed) ++ finish(O1).

%% --- what a report waits for -----------------------------------------------------

blocked({Id, _, _}, #order{births = Births}) when is_map_key(Id, Births) -> {report, map_get(Id, Births)};
blocked({Id, _, What}, O) -> blocked_by(action(What), Id, O).

blocked_by({ordered, Begin, _, _} = Call, _, #order{next = Next}) ->
    Need = case changes(Call) of true -> Begin - 1; false -> Begin end,
    case Need < Next of
        true -> none;
        false -> {number, Need}
    end;
blocked_by(_, _, #order{size = 0}) -> none;
blocked_by({recv, From, Msg}, Id, #order{sends = Sends}) when is_integer(From), From =/= Id, map_size(Sends) > 0 ->
    case is_map_key({From, erlang:phash2(Msg)}, Sends) of
        true -> {report, From};
        false -> none
    end;
blocked_by({recv, outside, Msg}, _, O) -> blocked_by_end(Msg, O);
blocked_by(_, _, _) -> none.

blocked_by_end({'DOWN', _, process, Pid, _}, O) -> ended(Pid, O);
blocked_by_end({'EXIT', Pid, _}, O) -> ended(Pid, O);
blocked_by_end(_, _) -> none.

ended(Pid, #order{ids = Ids, ends = Ends}) ->
    case Ids of
        #{Pid := Id} when is_map_key(Id, Ends) -> {report, Id};
        #{} -> none
    end.

action({at, _, What}) -> What;
action(What) -> What.

changes({ordered, _, _, Call}) ->
    {Module, Function, _} = element(2, Call),
    witness_record_shared:kind(Module, Function) =:= change.

wait(Id, {number, N}, #order{needs = Needs} = O) -> O#order{needs = gb_sets:add({N, Id}, Needs)};
wait(Id, {report, On}, #order{waits = Waits} = O) -> O#order{waits = Waits#{On => [Id | maps:get(On, Waits, [])]}}.

%% --- passing ---------------------------------------------------------------------

%% Passed: the latest first. Ready: processes of which the first report may pass now.
pass({Id, Entry, What}, {Passed, Ready, O}) ->
    {Ready1, O1} = number(action(What), O),
    {Ready2, O2} = woken(Id, O1),
    {[{Id, Entry, What} | Passed], Ready2 ++ Ready1 ++ Ready, O2}.

number({ordered, Begin, End, _} = Call, O) ->
    case changes(Call) of
        true -> advance(numbered(End, numbered(Begin, O)));
        false -> {[], O}
    end;
number(_, O) -> {[], O}.

numbered(N, #order{next = Next, passed = Passed} = O) when N >= Next -> O#order{passed = Passed#{N => []}};
numbered(_, O) -> O.

advance(#order{next = Next, passed = Passed, needs = Needs} = O) ->
    case Passed of
        #{Next := _} -> advance(O#order{next = Next + 1, passed = maps:remove(Next, Passed)});
        #{} ->
            {Ready, Left} = take_ready(Next, Needs, []),
            {Ready, O#order{needs = Left}}
    end.

take_ready(Next, Needs, Ready) ->
    case gb_sets:is_empty(Needs) orelse gb_sets:smallest(Needs) of
        {Need, Id} when Need < Next -> take_ready(Next, gb_sets:delete({Need, Id}, Needs), [Id | Ready]);
        _ -> {Ready, Needs}
    end.

woken(Id, #order{waits = Waits} = O) ->
    case maps:take(Id, Waits) of
        {Ready, Left} -> {Ready, O#order{waits = Left}};
        error -> {[], O}
    end.

run({Passed, [], O}) -> {Passed, O};
run({Passed, [Id | Ready], #order{held = Held} = O}) ->
    case Held of
        #{Id := Queue} ->
            {value, {_, Report}} = queue:peek(Queue),
            case blocked(Report, O) of
                none -> run(pass(Report, {Passed, [Id | Ready], drop(Id, Report, Queue, O)}));
                On -> run({Passed, Ready, wait(Id, On, O)})
            end;
        #{} -> run({Passed, Ready, O})
    end.

drop(Id, Report, Queue, #order{held = Held} = O) ->
    Left = queue:drop(Queue),
    note_passed(Report, O#order{held = case queue:is_empty(Left) of
        true -> maps:remove(Id, Held);
        false -> Held#{Id := Left}
    end}).

%% The numbers that the first call waits for count as passed. If no process waits for one, the oldest report passes.
force(#order{needs = Needs, held = Held} = O) ->
    case gb_sets:is_empty(Needs) of
        false ->
            {Need, _} = gb_sets:smallest(Needs),
            {Ready, O1} = advance(O#order{next = Need + 1, passed = maps:filter(fun(N, _) -> N > Need end, O#order.passed)}),
            run({[], Ready, O1});
        true ->
            {_, Id} = lists:min([{N, Id} || Id := Queue <- Held, {value, {N, _}} <- [queue:peek(Queue)]]),
            #{Id := Queue} = Held,
            {value, {_, Report}} = queue:peek(Queue),
            run(pass(Report, {[], [Id], drop(Id, Report, Queue, O)}))
    end.

%% --- what is kept back -----------------------------------------------------------

note_held({Id, _, What}, #order{size = Size} = O) -> count(action(What), Id, 1, O#order{size = Size + 1}).
note_passed({Id, _, What}, #order{size = Size} = O) -> count(action(What), Id, -1, O#order{size = Size - 1}).

count({send, _, Msg, _}, Id, By, #order{sends = Sends} = O) ->
    Key = {Id, erlang:phash2(Msg)},
    case maps:get(Key, Sends, 0) + By of
        0 -> O#order{sends = maps:remove(Key, Sends)};
        N -> O#order{sends = Sends#{Key => N}}
    end;
count({spawn, Child, _}, Id, 1, #order{births = Births} = O) -> O#order{births = Births#{Child => Id}};
count({spawn, Child, _}, _, -1, #order{births = Births} = O) -> O#order{births = maps:remove(Child, Births)};
count({exit, _, _}, Id, 1, #order{ends = Ends} = O) -> O#order{ends = Ends#{Id => []}};
count({exit, _, _}, Id, -1, #order{ends = Ends} = O) -> O#order{ends = maps:remove(Id, Ends)};
count(_, _, _, O) -> O.
