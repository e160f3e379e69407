-module(witness_step_reorder).
-moduledoc """
Brings the reports of a replay into an order that also agrees with the order of calls on shared memory. Pure.

A replay answers such calls from the recording, and no process waits for a table. So its reports agree with what each process did and
with messages, but not with tables. The recording has a place for each call (`t:witness_log_recording:ordered/0`), and the calls of
each process are known beforehand. This module keeps a report back until all that was before it has passed:

- a call, until all calls have passed that began before it;
- whatever else the process does after it;
- taking a message, while the send of that message is kept back; the first action of a child, while its birth is; the message about
  an end, while that end is.

*Invariant:* each process's reports stay in their order, and a message is not taken before it is sent. *Why no process waits for ever:*
the order in which calls began agrees with messages. If a replay does not come to a call that was recorded, as one that has diverged,
that call is given up when too much is kept back, or at the end.
""".

-export([new/2, place/1, add/2, finish/1]).

-export_type([order/0, place/0]).

%% Reports that are kept back at most.
-define(MAX_HELD, 200_000).

-doc "Where a call began. What changes memory counts, so a call that reads with this number began after it.".
-type place() :: {Begin :: non_neg_integer(), change | read}.

%% places: of each process the calls that have not passed; due: the first one of each. held: the reports of each process that waits,
%% the first one ahead. waits: processes that wait for reports of another one. sends, births, ends: how many of them are kept back.
-record(order, {ids :: #{pid() => pos_integer()},
                places :: #{pos_integer() => [place()]},
                due :: gb_sets:set({place(), pos_integer()}),
                held = #{} :: #{pos_integer() => queue:queue({Number :: pos_integer(), report()})},
                size = 0 :: non_neg_integer(),
                number = 0 :: non_neg_integer(),
                waits = #{} :: #{pos_integer() => [pos_integer()]},
                sends = #{} :: #{{pos_integer(), non_neg_integer()} => pos_integer()},
                births = #{} :: #{pos_integer() => pos_integer()},
                ends = #{} :: #{pos_integer() => []}}).

-opaque order() :: #order{}.

-type report() :: witness_replay_emitter:report().

-doc "Before the first report. The pids of the recorded processes, and the places of the calls of each, in their order.".
-spec new(#{pid() => pos_integer()}, #{pos_integer() => [place()]}) -> order().
new(Ids, Places) ->
    #order{ids = Ids, places = Places, due = gb_sets:from_list([{First, Id} || Id := [First | _] <- Places])}.

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

blocked_by({ordered, _, _, _} = Call, Id, #order{due = Due}) ->
    Place = place(Call),
    case gb_sets:is_empty(Due) orelse gb_sets:smallest(Due) of
        {First, Other} when First < Place, Other =/= Id -> call;
        _ -> none
    end;
blocked_by(_, _, #order{size = 0}) -> none;
blocked_by({recv, From, Msg}, Id, #order{sends = Sends}) when is_integer(From), From =/= Id, map_size(Sends) > 0 ->
    case is_map_key({From, erlang:phash2(Msg)}, Sends) of
        true -> {report, From};
        false -> none
    end;
blocked_by({recv, outside, Msg}, _, #order{ids = Ids, ends = Ends}) ->
    case maps:find(witness_step_state:ended(Msg), Ids) of
        {ok, Id} when is_map_key(Id, Ends) -> {report, Id};
        _ -> none
    end;
blocked_by(_, _, _) -> none.

action({at, _, What}) -> What;
action(What) -> What.

-doc "The place of a call in the order of all, as in a recording or a report.".
-spec place({ordered, Begin :: non_neg_integer(), End :: non_neg_integer(), Call :: tuple()}) -> place().
place({ordered, Begin, _, Call}) ->
    {Module, Function, _} = element(2, Call),
    {Begin, witness_record_shared:kind(Module, Function)}.

wait(_, call, O) -> O;
wait(Id, {report, On}, #order{waits = Waits} = O) -> O#order{waits = Waits#{On => [Id | maps:get(On, Waits, [])]}}.

%% --- passing ---------------------------------------------------------------------

%% Passed: the latest first. Ready: processes of which the first report may pass now.
pass({Id, Entry, What}, {Passed, Ready, O}) ->
    {Due, O1} = case action(What) of
        {ordered, _, _, _} = Call -> next_due(pass_call(Id, place(Call), O));
        {exit, _, _} -> next_due(drop_calls(Id, O));
        _ -> {[], O}
    end,
    {Woken, O2} = woken(Id, O1),
    {[{Id, Entry, What} | Passed], Due ++ Woken ++ Ready, O2}.

pass_call(Id, Place, #order{places = Places, due = Due} = O) ->
    case Places of
        #{Id := [Place | Left]} ->
            Rest = gb_sets:del_element({Place, Id}, Due),
            O#order{places = Places#{Id := Left}, due = case Left of [] -> Rest; [Next | _] -> gb_sets:add({Next, Id}, Rest) end};
        %% It was given up.
        #{} -> O
    end.

%% The process has ended before it came to them.
drop_calls(Id, #order{places = Places, due = Due} = O) ->
    case Places of
        #{Id := [First | _]} -> O#order{places = Places#{Id := []}, due = gb_sets:del_element({First, Id}, Due)};
        #{} -> O
    end.

next_due(#order{due = Due} = O) ->
    case gb_sets:is_empty(Due) of
        true -> {[], O};
        false -> {[element(2, gb_sets:smallest(Due))], O}
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

%% The first call that has not come is given up. If no call is waited for, the oldest report passes.
force(#order{due = Due, held = Held} = O) ->
    case gb_sets:is_empty(Due) of
        false ->
            {{Place, Id}, _} = gb_sets:take_smallest(Due),
            case run({[], maps:keys(Held), pass_call(Id, Place, O)}) of
                {[], O2} -> force(O2);
                Forced -> Forced
            end;
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
