-module(witness_replay_events).
-moduledoc """
Makes the events of a replay from what its processes report (`m:witness_replay_emitter`). Pure.

The events are those that `m:witness_log_recording_events` makes of a recording that has the contents of messages: the same
kinds and the same places. Their order agrees with each process, and with cause and effect.

*Invariant:* an event that may not have happened is a gap. A process that was killed may have been killed before any of the
messages that it sends after its last entry, and before any call or return. Its reports of these are `unsure`, and they are kept back,
with its end. If it ends by itself, all that has happened. If another process has taken one of the messages, that one was sent, and what
comes before it has happened. For what is not known to have happened when the replay ends, there is a gap, `killed`.

A process that has not ended at the end of the replay gets the gap `cut`, because the recording does not contain its end. If the
recording has ended as planned (`witness_log_recording:waiting/1`), that process was stopped, and none of its events are
missing. What it sends after its last entry has happened if it was waiting at the end. Otherwise that is not known, and it gets
the gap `cut`.

A call of a module that is not woven and may call an observed function (`m:witness_replay_functions`) is a gap, `hidden_calls`.
""".

-export([new/2, handle_report/2, finish/1]).

-export_type([events/0, placed/0]).

-doc "An event with its place.".
-type placed() :: {witness_event:item(), witness_log_recording_events:place()}.

%% alive: processes that have started and not ended. kept: their unsure events, the latest first. lost: processes that have not
%% reported all of these. ended: the ends of killed processes with kept events. waiting: the processes that waited when the
%% recording ended as planned.
-record(events, {births :: #{pos_integer() => witness_log_recording:process()},
                 ids :: #{pid() => pos_integer()},
                 alive = #{} :: #{pos_integer() => Entry :: non_neg_integer()},
                 kept = #{} :: #{pos_integer() => [placed()]},
                 lost = #{} :: #{pos_integer() => []},
                 ended = #{} :: #{pos_integer() => placed()},
                 waiting :: none | #{pos_integer() => []}}).

-opaque events() :: #events{}.

-doc "The state before any event. If the recording has ended as planned, `Waiting` has the processes that waited then.".
-spec new([witness_log_recording:process()], none | #{pos_integer() => []}) -> events().
new(Processes, Waiting) ->
    #events{waiting = Waiting,
            births = #{Id => Process || #{id := Id} = Process <- Processes},
            ids = #{Pid => Id || #{id := Id, pid := Pid} <- Processes}}.

-doc "The events of one report.".
-spec handle_report(witness_replay_emitter:report(), events()) -> {[placed()], events()}.
handle_report({Id, Entry, {born, Called}}, E) -> add_birth(Id, Called, undefined, {Id, Entry}, E);
handle_report({Id, Entry, What}, #events{alive = Alive} = E) when is_map_key(Id, Alive) ->
    handle(What, Id, {Id, Entry}, E#events{alive = Alive#{Id := Entry}});
%% The process was ended from outside, and had gone on meanwhile.
handle_report(_, E) -> {[], E}.

handle({spawn, Child, Called}, Id, Place, E) -> add_birth(Child, Called, pid(Id, E), Place, E);
handle({send, To, Msg, Sure}, Id, Place, E) -> keep(Sure, {send, pid(Id, E), To, Msg, undefined}, Id, Place, E);
handle({called, Call, Sure}, Id, Place, E) -> keep(Sure, {call, pid(Id, E), Call, undefined}, Id, Place, E);
handle({returned, MFA, Value, Sure}, Id, Place, E) -> keep(Sure, {return, pid(Id, E), MFA, Value, undefined}, Id, Place, E);
handle({hidden, Sure}, Id, Place, E) -> keep(Sure, {gap, pid(Id, E), hidden_calls, unknown, undefined}, Id, Place, E);
handle(lost, Id, _, #events{lost = Lost} = E) -> {[], E#events{lost = Lost#{Id => []}}};
handle({recv, outside, Msg}, Id, Place, E) -> {[{{recv, pid(Id, E), undefined, Msg, undefined}, Place}], E};
handle({recv, From, Msg}, Id, Place, E) ->
    {Sent, E1} = release(From, Id, Msg, E),
    {Sent ++ [{{recv, pid(Id, E), pid(From, E), Msg, undefined}, Place}], E1};
handle({exit, How, Reason}, Id, Place, #events{alive = Alive, kept = Kept, ended = Ended} = E0) ->
    E = E0#events{alive = maps:remove(Id, Alive)},
    Exit = {{exit, pid(Id, E), Reason, undefined}, Place},
    case Kept of
        #{Id := _} when How =:= killed -> {[], E#events{ended = Ended#{Id => Exit}}};
        #{} ->
            {Unknown, E1} = forget(Id, Place, E),
            {lists:reverse(maps:get(Id, Kept, [])) ++ Unknown ++ [Exit], E1}
    end.

%% What may not have happened is kept back.
keep(sure, Item, _, Place, E) -> {[{Item, Place}], E};
keep(unsure, Item, Id, Place, #events{kept = Kept} = E) ->
    {[], E#events{kept = maps:update_with(Id, fun(Before) -> [{Item, Place} | Before] end, [{Item, Place}], Kept)}}.

%% Keeps nothing of the process any more. If it has not reported all that it sent, there is a gap.
forget(Id, Place, #events{kept = Kept, lost = Lost} = E) ->
    {[gap(Id, killed, Place, E) || is_map_key(Id, Lost)], E#events{kept = maps:remove(Id, Kept), lost = maps:remove(Id, Lost)}}.

add_birth(Id, Called, Parent, {_, Entry} = Place, #events{births = Births, alive = Alive} = E) ->
    #{Id := Birth} = Births,
    Begun = case Parent of undefined -> Entry; _ -> 0 end,
    {[{Item, Place} || Item <- witness_log_recording_events:birth(Birth#{called => Called}, Parent)],
     E#events{alive = Alive#{Id => Begun}}}.

%% A message that was taken proves that it was sent, and those before it.
release(From, To, Msg, #events{kept = Kept, lost = Lost} = E) ->
    Items = lists:reverse(maps:get(From, Kept, [])),
    case lists:splitwith(fun(Item) -> not is_to(To, Msg, Item, E) end, Items) of
        {[{_, Place} | _], []} when is_map_key(From, Lost) ->
            {Unknown, E1} = forget(From, Place, E),
            append_exit(From, Items ++ Unknown, E1);
        {_, []} -> {[], E};
        {Before, [Item]} when not is_map_key(From, Lost) ->
            append_exit(From, Before ++ [Item], E#events{kept = maps:remove(From, Kept)});
        {Before, [Item | Behind]} -> {Before ++ [Item], E#events{kept = Kept#{From := lists:reverse(Behind)}}}
    end.

append_exit(Id, Items, #events{ended = Ended} = E) ->
    case maps:take(Id, Ended) of
        {Exit, Left} -> {Items ++ [Exit], E#events{ended = Left}};
        error -> {Items, E}
    end.

%% The report does not say which process a name or an alias leads to; the message is enough.
is_to(To, Msg, {{send, _, Destination, Sent, _}, _}, #events{ids = Ids}) ->
    Sent =:= Msg andalso (not is_pid(Destination) orelse maps:get(Destination, Ids, 0) =:= To);
is_to(_, _, _, _) -> false.

-doc "The events at the end of the replay.".
-spec finish(events()) -> [placed()].
finish(#events{alive = Alive, ended = Ended} = E) ->
    lists:append([[gap(Id, killed, Place, E), Exit] || {Id, {_, Place} = Exit} <- lists:sort(maps:to_list(Ended))])
        ++ lists:append([end_events(Id, {Id, Entry}, E) || {Id, Entry} <- lists:sort(maps:to_list(Alive))]).

end_events(Id, Place, #events{waiting = none} = E) -> [gap(Id, cut, Place, E)];
end_events(Id, Place, #events{waiting = Waiting, kept = Kept, lost = Lost} = E) ->
    case Kept of
        #{Id := Sent} when is_map_key(Id, Waiting) -> lists:reverse(Sent) ++ [gap(Id, cut, Place, E) || is_map_key(Id, Lost)];
        #{Id := _} -> [gap(Id, cut, Place, E)];
        #{} when is_map_key(Id, Lost) -> [gap(Id, cut, Place, E)];
        #{} -> []
    end.

gap(Id, Why, Place, E) -> {{gap, pid(Id, E), Why, unknown, undefined}, Place}.

pid(Id, #events{births = Births}) ->
    #{Id := #{pid := Pid}} = Births,
    Pid.
