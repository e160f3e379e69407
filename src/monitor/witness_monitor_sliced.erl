-module(witness_monitor_sliced).
-moduledoc """
A monitor with slices: one machine (`m:witness_monitor_instance`) for each value that is alive.

A machine begins with the first event of its value. It ends with its verdict, or when no event of its value has come for
too long. Machines do not affect each other. The monitor ends only if it cannot be determined to which slice an event
belongs.

What matters of a value without a live machine is remembered (`m:witness_monitor_past`). A machine that has ended `inconclusive` is the last
one of its value. `let`s go on: a *keeper* (`t:witness_spec_value:keeper/0`) handles the events that no machine reads, and the next machine
begins with what they say.

A slice may end undecided because no more events come, because too many slices are alive, or because events are missing. Then
it has no information of its own. There may be as many such outcomes as slices, and an outcome with its explanation is several
times as large as a slice. So for each reason the first ones are explained, and the others are counted (`t:undecided/0`).
""".

-export([new/6, run/2, pass/2, next_deadline/1, finish/2, inconclusive/2, count/1, save/1, load/2]).
-export_type([sliced/0, outcome/0, satisfied/0, undecided/0, saved/0]).

-doc "An outcome that also has, as `slice`, the values of the slice with their names.".
-type outcome() :: #{slice := [{Name :: binary(), Value :: term()}], atom() => term()}.

-doc "A slice with a verdict `yes` that is only counted (`witness_monitor_instance:set_counting/2`).".
-type satisfied() :: {satisfied, Vacuous :: boolean(), witness_monitor_slices:key()}.

-doc "The number of `inconclusive` slices of this reason, without those that are explained.".
-type undecided() :: {undecided, witness_monitor_instance:reason(), Count :: pos_integer()}.

%% The end of one slice, before those of the same reason are counted together.
-type one() :: outcome() | satisfied() | {undecided, witness_monitor_instance:reason(), {id, witness_monitor_slices:key()}}.

-doc """
The number of slices so far, the number of the youngest, the live slices, the oldest one first, the time of the
last event of each, if idle time is limited, and how many undecided ones of each reason were explained. Then what is remembered without
live slices: of keys that had events, of all others, and the time of the trace.
""".
-type saved() :: {Count :: non_neg_integer(), Born :: non_neg_integer(),
                  [{witness_monitor_slices:birth(), witness_monitor_slices:key(), witness_monitor_instance:saved()}],
                  witness_monitor_expiry:saved(), explained(),
                  {witness_monitor_past:saved(), unkeyed(), Now :: integer() | none}}.

%% The values of a key that has had no event yet.
-type unkeyed() :: none | witness_spec_value:past() | witness_spec_value:unknown().

-type explained() :: #{stopped | pending | undefined | max_slices | slice_idle | unknown_past | too_many_requests | gap | crashed =>
                          pos_integer()}.

-record(sliced, {config :: witness_monitor_instance:config(),
                 slice :: fun((witness_event:event(), Filter :: term()) -> term()),
                 instance :: fun((Key :: tuple(), Filter :: term()) -> State :: term()),
                 filter :: term(),
                 names :: [binary()],
                 slices :: witness_monitor_slices:slices(witness_monitor_instance:instance()),
                 idle :: none | witness_monitor_expiry:idle(),
                 deadlines :: none | witness_monitor_expiry:idle(),
                 past :: witness_monitor_past:past(),
                 keeper :: none | witness_spec_value:keeper(),
                 unkeyed :: unkeyed(),
                 %% The times behind which values need not be remembered, and the greatest time so far: if a `let` has a time.
                 fading :: none | witness_monitor_expiry:idle(),
                 now = none :: none | integer(),
                 count = 0 :: non_neg_integer(),
                 explained = #{} :: explained()}).

%% Undecided slices of one reason that are explained.
-define(MAX_EXPLAINED, 100).

-opaque sliced() :: #sliced{}.

-doc """
`Choice` says to which slice an event belongs. `Names` are those of the values in a key. When `Max` slices are alive,
a new one ends the oldest. A slice that has had no event for so many milliseconds of the trace's
own time ends before the next event is handled.
""".
-spec new(module(), witness_monitor_instance:config(), witness_monitor_instance:choice(), Names :: [binary()],
          Max :: pos_integer(), Idle :: pos_integer() | infinity) -> sliced().
new(Module, Config, {Slice, Filter}, Names, Max, Idle) ->
    %% Compiled specifications with values export it.
    Keeper = case erlang:function_exported(Module, keeper, 1) of
        true -> Module:keeper(Filter);
        false -> none
    end,
    #sliced{config = Config, slice = Slice, instance = fun Module:instance/2, filter = Filter, names = Names,
            slices = witness_monitor_slices:new(Max),
            idle = case Idle of infinity -> none; _ -> witness_monitor_expiry:new(Idle) end,
            deadlines = case witness_monitor_instance:is_timed(Config) of
                true -> witness_monitor_expiry:new(0);
                false -> none
            end,
            past = witness_monitor_past:new(Max, Idle), keeper = Keeper,
            unkeyed = case Keeper of none -> none; #{unkeyed := Unkeyed} -> Unkeyed end,
            fading = case Keeper =/= none andalso witness_spec_value:is_timed(Keeper) of
                true -> witness_monitor_expiry:new(0);
                false -> none
            end}.

-doc "The number of slices so far.".
-spec count(sliced()) -> non_neg_integer().
count(#sliced{count = Count}) -> Count.

-doc "Takes events; the outcomes are in the order in which they were reached. After a crash the monitor cannot go on.".
-spec run([witness_event:event()], sliced()) ->
    {ok | witness_monitor_instance:reason(), [outcome() | satisfied() | undecided()], sliced()}.
run(Events, S0) ->
    {Result, Outcomes, S} = case S0 of
        #sliced{idle = none, deadlines = none, fading = none, slices = Slices, count = Count} ->
            run(Events, Slices, Count, [], S0);
        _ -> run_timed(Events, [], S0)
    end,
    {Result, merge_outcomes(Outcomes), S}.

%% The counts come last, by their reasons.
merge_outcomes([]) -> [];
merge_outcomes(Outcomes) ->
    Others = [Outcome || Outcome <- Outcomes, not is_tuple(Outcome) orelse element(1, Outcome) =/= undecided],
    Reasons = lists:foldl(fun({undecided, Reason, _}, A) -> maps:update_with(Reason, fun(N) -> N + 1 end, 1, A);
                             (_, A) -> A
                          end, #{}, Outcomes),
    Others ++ [{undecided, Reason, N} || Reason := N <- maps:iterator(Reasons, ordered)].

%% Events with times are handled one by one, so that the result does not depend on how the events are divided.
run_timed([], Outcomes, S) -> {ok, lists:append(lists:reverse(Outcomes)), S};
run_timed([E | Events], Outcomes, S0) ->
    Whom = whom(E, S0),
    Time = witness_event:ts(E),
    {Idle, S1} = expire(Time, S0),
    {Passed, S2} = pass_before(Whom, Time, S1),
    S3 = #sliced{slices = Slices, count = Count} = put_time(Whom, Time, S2),
    {Result, Decided, S4} = run([E], Slices, Count, [], S3),
    S = touch_slices(Whom, Time, Decided, S4),
    case Result of
        ok -> run_timed(Events, [Decided, Passed, Idle | Outcomes], S);
        _ -> {Result, lists:append(lists:reverse([Decided, Passed, Idle | Outcomes])), S}
    end.

%% The slices that read the event, if they are alive.
whom(E, #sliced{slice = Slice, filter = Filter}) ->
    try Slice(E, Filter) of
        all -> all;
        {_, Key} when is_tuple(Key) -> {id, id(Key)};
        _ -> none
    catch
        %% The monitor will end with this error.
        _:_ -> none
    end.

%% Deadlines before an event that a slice is to read: it may be the first one of the next slice with this key. Other slices wait
%% for what their source tells, since the times of events that are none of theirs may go back.
pass_before(Whom, Time, S = #sliced{deadlines = Deadlines}) when Whom =:= none; Time =:= undefined; Deadlines =:= none -> {[], S};
pass_before(all, Time, S) -> pass(Time, S);
pass_before({id, Id}, Time, S = #sliced{slices = Slices}) ->
    case witness_monitor_slices:find(Id, Slices) of
        none -> {[], S};
        _ -> pass_slice(Time, Id, S)
    end.

expire(Now, S = #sliced{idle = Idle}) when Idle =:= none; Now =:= undefined -> {[], S};
expire(Now, S = #sliced{idle = Idle}) ->
    {Ids, Left} = witness_monitor_expiry:due(Now, Idle),
    {Ended, S1 = #sliced{past = Past}} = lists:mapfoldl(fun expire_key/2, S#sliced{idle = Left}, Ids),
    {lists:append(Ended), S1#sliced{past = witness_monitor_past:pass(Now, Past)}}.

expire_key(Id, S = #sliced{slices = Slices, deadlines = Deadlines}) ->
    case witness_monitor_slices:find(Id, Slices) of
        {_, Instance} ->
            {Outcome, S1} = undecided(Id, Instance, slice_idle, S#sliced{slices = witness_monitor_slices:remove(Id, Slices),
                                                                          deadlines = forget(Id, Deadlines)}),
            {[Outcome], S1};
        none -> {[], remove_past(Id, S)}
    end.

%% Of a key with values that have faded, nothing is remembered.
put_time(Whom, Time, S = #sliced{fading = Fading}) when Whom =:= none; Time =:= undefined; Fading =:= none -> S;
put_time(_, Time, S = #sliced{now = Now}) when is_integer(Now), Time =< Now -> S;
put_time(_, Time, S = #sliced{fading = Fading, past = Past}) ->
    {Ids, Left} = witness_monitor_expiry:due(Time, Fading),
    lists:foldl(fun(Id, A) ->
        case witness_monitor_past:find(Id, Past) of
            {values, _, _, _} = Values -> keep(Id, Values, A);
            _ -> A
        end
    end, S#sliced{now = Time, fading = Left}, Ids).

forget(_, none) -> none;
forget(Id, Times) -> witness_monitor_expiry:forget(Id, Times).

%% Keeps the invariant that each slice in `deadlines` is alive, and that each in `idle` is alive or remembered.
touch_slices(Whom, Time, Decided, S0 = #sliced{slices = Slices, deadlines = Deadlines}) ->
    Gone = [ended_id(Outcome) || Outcome <- Decided],
    S = lists:foldl(fun forget_idle/2, S0#sliced{deadlines = lists:foldl(fun forget/2, Deadlines, Gone)}, Gone),
    case Whom of
        {id, Id} ->
            case witness_monitor_slices:find(Id, Slices) of
                none -> case is_remembered(Id, S) of true -> touch(Id, Time, S); false -> S end;
                {_, Instance} -> touch(Id, Time, put_deadline(Id, Instance, Time, S))
            end;
        all -> lists:foldl(fun({_, Id, Instance}, A) -> put_deadline(Id, Instance, Time, A) end, S, alive(S));
        none -> S
    end.

forget_idle(Id, S = #sliced{idle = Idle}) ->
    case Idle =:= none orelse is_remembered(Id, S) of
        true -> S;
        false -> S#sliced{idle = witness_monitor_expiry:forget(Id, Idle)}
    end.

ended_id({undecided, _, {id, Id}}) -> Id;
ended_id({satisfied, _, Id}) -> Id;
ended_id(#{slice := Values}) -> id(list_to_tuple([Value || {_, Value} <- Values])).

touch(_, _, S = #sliced{idle = none}) -> S;
touch(Id, Time, S = #sliced{idle = Idle}) -> S#sliced{idle = witness_monitor_expiry:touch(Id, Time, Idle)}.

alive(#sliced{deadlines = none}) -> [];
alive(#sliced{slices = Slices}) -> witness_monitor_slices:to_list(Slices).

%% Deadlines before the event have passed.
put_deadline(_, _, Time, S = #sliced{deadlines = Deadlines}) when Deadlines =:= none; Time =:= undefined -> S;
put_deadline(Id, Instance, Time, S) -> put_next(Id, Instance, Time, S).

put_next(Id, Instance, From, S = #sliced{config = Config, deadlines = Deadlines}) ->
    S#sliced{deadlines = witness_monitor_expiry:set(Id, witness_monitor_instance:next_deadline(From, Config, Instance), Deadlines)}.

-doc "No event comes before this time any more: the outcomes of slices that deadlines before it decide, by their times.".
-spec pass(Time :: integer(), sliced()) -> {[outcome() | satisfied()], sliced()}.
pass(_, S = #sliced{deadlines = none}) -> {[], S};
pass(Time, S = #sliced{deadlines = Deadlines}) ->
    {Ids, Left} = witness_monitor_expiry:due(Time, Deadlines),
    {Outcomes, S1} = lists:mapfoldl(fun(Id, A) -> pass_slice(Time, Id, A) end, S#sliced{deadlines = Left}, Ids),
    {lists:append(Outcomes), S1}.

pass_slice(Time, Id, S = #sliced{config = Config, slices = Slices}) ->
    {_, Instance} = witness_monitor_slices:find(Id, Slices),
    case witness_monitor_instance:pass(Time, Config, Instance) of
        open -> {[], put_next(Id, Instance, Time, S)};
        {decided, Outcome} ->
            Left = S#sliced{slices = witness_monitor_slices:remove(Id, Slices), deadlines = forget(Id, S#sliced.deadlines)},
            {[put_name(Id, Outcome, S)], forget_idle(Id, leave(Id, Outcome, none, Instance, Left))}
    end.

-doc "The first deadline of a slice.".
-spec next_deadline(sliced()) -> integer() | none.
next_deadline(#sliced{deadlines = none}) -> none;
next_deadline(#sliced{deadlines = Deadlines}) -> witness_monitor_expiry:next(Deadlines).

%% Changing values are arguments while a batch is handled.
run([E | Events], Slices, Count, Outcomes, S = #sliced{slice = Slice, filter = Filter, names = Names}) ->
    try Slice(E, Filter) of
        skip ->
            run(Events, Slices, Count, Outcomes, S);
        {Whom, Key} when Whom =:= slice orelse Whom =:= live, tuple_size(Key) =:= length(Names) ->
            Id = id(Key),
            case witness_monitor_slices:find(Id, Slices) of
                {Born, Instance} ->
                    {Slices1, Outcomes1, S1} = step({Born, Id, Instance}, E, Slices, Outcomes, S),
                    run(Events, Slices1, Count, Outcomes1, S1);
                none when Whom =:= live ->
                    run(Events, Slices, Count, Outcomes, remember(Key, E, S));
                none ->
                    case entry(Id, S) of
                        over -> run(Events, Slices, Count, Outcomes, S);
                        Entry ->
                            {Slices1, Outcomes1, S1} = start_slice(Key, Entry, E, Slices, Outcomes, S),
                            run(Events, Slices1, Count + 1, Outcomes1, S1)
                    end
            end;
        all ->
            {Slices1, Outcomes1, S1} = lists:foldl(fun(One, {Alive, Decided, A}) -> step(One, E, Alive, Decided, A) end,
                                                   {Slices, Outcomes, remember_all(E, S)},
                                                   witness_monitor_slices:to_list(Slices)),
            run(Events, Slices1, Count, Outcomes1, S1);
        Other ->
            result(witness_monitor_instance:crash(slice, Other), Slices, Count, Outcomes, S)
    catch
        Class:Reason:Stack ->
            result(witness_monitor_instance:crash(Class, Reason, Stack), Slices, Count, Outcomes, S)
    end;
run([], Slices, Count, Outcomes, S) ->
    result(ok, Slices, Count, Outcomes, S).

result(Result, Slices, Count, Outcomes, S) ->
    {Result, lists:reverse(Outcomes), S#sliced{slices = Slices, count = Count}}.

step({Born, Id, Before}, E, Slices, Outcomes, S = #sliced{config = Config}) ->
    Instance = in_time(E, Before, S),
    case witness_monitor_instance:run([E], Config, Instance) of
        {ok, Next} -> {witness_monitor_slices:update(Id, Born, Next, Slices), Outcomes, S};
        {decided, Outcome} ->
            {witness_monitor_slices:remove(Id, Slices), [put_name(Id, Outcome, S) | Outcomes], leave(Id, Outcome, E, Instance, S)}
    end.

start_slice(Key, forgotten, _, Slices, Outcomes, S) ->
    {Outcome, S1} = end_slice({id(Key), witness_monitor_instance:new(none)}, unknown_past, S),
    {Slices, [Outcome | Outcomes], S1};
start_slice(Key, {verdict, inconclusive, _} = Unknown, E, Slices, Outcomes, S = #sliced{config = Config}) ->
    {decided, Outcome} = witness_monitor_instance:result(Unknown, E, Config, witness_monitor_instance:new(none)),
    {Slices, [put_name(id(Key), Outcome, S) | Outcomes], keep(id(Key), over, S)};
start_slice(Key, Past, E, Slices, Outcomes, S = #sliced{config = Config, instance = Make, filter = Filter}) ->
    Id = id(Key),
    try witness_monitor_instance:new(values_in_time(E, recall(Past, Make(Key, Filter)), S)) of
        First ->
            case witness_monitor_instance:run([E], Config, First) of
                {ok, Instance} ->
                    S1 = remove_past(Id, S),
                    case witness_monitor_slices:add(Id, Instance, Slices) of
                        {[], Slices1} -> {Slices1, Outcomes, S1};
                        {[Oldest], Slices1} ->
                            {Outcome, S2} = end_slice(Oldest, max_slices, S1),
                            {Slices1, [Outcome | Outcomes], S2}
                    end;
                {decided, Outcome} ->
                    {Slices, [put_name(Id, Outcome, S) | Outcomes], leave(Id, Outcome, E, First, S)}
            end
    catch
        Class:Reason:Stack ->
            %% The crash belongs to this slice.
            Crash = witness_monitor_instance:crash(Class, Reason, Stack),
            {Slices, [inconclusive(Id, witness_monitor_instance:new(none), Crash, S) | Outcomes], keep(Id, over, S)}
    end.

%% What is remembered.

%% What the next slice of a key begins with.
entry(Id, #sliced{past = Past, unkeyed = Unkeyed}) ->
    case witness_monitor_past:find(Id, Past) of
        none -> Unkeyed;
        Entry -> Entry
    end.

is_remembered(Id, #sliced{past = Past}) ->
    case witness_monitor_past:find(Id, Past) of
        none -> false;
        forgotten -> false;
        _ -> true
    end.

recall(none, State) -> State;
recall(Past, State) -> witness_spec_value:recall(Past, State).

%% A slice has ended with this event, or with the time in front of the next one.
leave(Id, Outcome, E, Instance, S = #sliced{keeper = Keeper}) ->
    case Outcome of
        #{verdict := inconclusive} -> keep(Id, over, S);
        _ when Keeper =:= none -> S;
        _ when E =:= none -> keep(Id, witness_spec_value:past(witness_monitor_instance:state(Instance)), S);
        _ -> keep(Id, remembered(E, witness_monitor_instance:state(Instance), S), S)
    end.

%% An event that no slice of its key reads.
remember(_, _, S = #sliced{keeper = none}) -> S;
remember(Key, E, S = #sliced{instance = Make, filter = Filter}) ->
    Id = id(Key),
    case entry(Id, S) of
        Past when Past =:= none; element(1, Past) =:= values -> keep(Id, remembered(E, recall(Past, Make(Key, Filter)), S), S);
        _ -> S
    end.

%% An event of all keys.
remember_all(_, S = #sliced{keeper = none}) -> S;
remember_all(E, S = #sliced{past = Past, unkeyed = Unkeyed}) ->
    Next = S#sliced{unkeyed = case Unkeyed of {values, _, _, _} -> remembered(E, Unkeyed, S); _ -> Unkeyed end},
    lists:foldl(fun({Id, Entry}, A) ->
        case Entry of {values, _, _, _} -> keep(Id, remembered(E, Entry, A), A); _ -> A end
    end, Next, witness_monitor_past:keys(Past)).

remembered(E, Values, S = #sliced{keeper = Keeper}) ->
    case witness_spec_value:remember(Keeper, E, values_in_time(E, Values, S)) of
        {ok, Past} -> Past;
        Unknown -> Unknown
    end.

%% The time of a trace is that of all its slices.
values_in_time(E, Values, S) ->
    case is_behind(E, S) of
        true -> witness_spec_value:put_time(S#sliced.now, Values);
        false -> Values
    end.

in_time(E, Instance, S) ->
    case is_behind(E, S) of
        true ->
            Values = witness_spec_value:put_time(S#sliced.now, witness_monitor_instance:state(Instance)),
            witness_monitor_instance:put_state(Values, Instance);
        false -> Instance
    end.

is_behind(_, #sliced{now = none}) -> false;
is_behind(E, #sliced{now = Now}) ->
    Time = witness_event:ts(E),
    is_integer(Time) andalso Time < Now.

%% Values that are those of a key without events need not be remembered.
keep(Id, {values, _, _, _} = Values, S = #sliced{keeper = Keeper, unkeyed = Unkeyed, fading = Fading, now = Now}) ->
    case witness_spec_value:fades(Keeper, Unkeyed, Now, Values) of
        already -> remove_past(Id, S);
        {behind, Time} -> put_past(Id, Values, S#sliced{fading = witness_monitor_expiry:set(Id, Time, Fading)});
        never -> put_past(Id, Values, S#sliced{fading = forget(Id, Fading)})
    end;
keep(Id, Entry, S = #sliced{fading = Fading}) -> put_past(Id, Entry, S#sliced{fading = forget(Id, Fading)}).

put_past(Id, Entry, S = #sliced{past = Past, fading = Fading, idle = Idle}) ->
    {Gone, Next} = witness_monitor_past:put(Id, Entry, Past),
    S#sliced{past = Next, fading = lists:foldl(fun forget/2, Fading, Gone), idle = lists:foldl(fun forget/2, Idle, Gone)}.

remove_past(Id, S = #sliced{past = Past, fading = Fading}) ->
    S#sliced{past = witness_monitor_past:remove(Id, Past), fading = forget(Id, Fading)}.

-doc "No further event comes: the outcomes of the slices that are alive, the oldest one first.".
-spec finish(complete | stopped, sliced()) -> [outcome() | satisfied() | undecided()].
finish(How, S = #sliced{config = Config}) ->
    end_each(fun(Id, Instance, S1) ->
        {Undecided, Judged} = witness_monitor_instance:judge_undecided(How, Config, Instance),
        Outcome = fun() -> put_name(Id, witness_monitor_instance:conclude(Judged, How, Config, Instance), S1) end,
        case Undecided of
            {true, Reason} -> undecided_as(Id, Reason, Outcome, S1);
            false -> {Outcome(), S1}
        end
    end, S).

end_each(Outcome, S = #sliced{slices = Slices}) ->
    {Outcomes, _} = lists:mapfoldl(fun({_, Id, Instance}, S1) -> Outcome(Id, Instance, S1) end, S,
                                   witness_monitor_slices:to_list(Slices)),
    merge_outcomes(Outcomes).

-doc "The same, if the slices are inconclusive for this reason.".
-spec inconclusive(witness_monitor_instance:reason(), sliced()) -> [outcome() | undecided()].
inconclusive(Reason, S) -> end_each(fun(Id, Instance, S1) -> undecided(Id, Instance, Reason, S1) end, S).

%% It is the last one of its key.
end_slice({Id, Instance}, Reason, S) -> undecided(Id, Instance, Reason, keep(Id, over, S)).

-spec undecided(witness_monitor_slices:key(), witness_monitor_instance:instance(), witness_monitor_instance:reason(), sliced()) ->
    {one(), sliced()}.
undecided(Id, Instance, Reason, S) -> undecided_as(Id, Reason, fun() -> inconclusive(Id, Instance, Reason, S) end, S).

undecided_as(Id, Reason, Outcome, S = #sliced{explained = Explained}) ->
    Kind = reason_kind(Reason),
    case maps:get(Kind, Explained, 0) of
        ?MAX_EXPLAINED -> {{undecided, Reason, {id, Id}}, S};
        Count -> {Outcome(), S#sliced{explained = Explained#{Kind => Count + 1}}}
    end.

reason_kind({gap, _}) -> gap;
reason_kind({crashed, _}) -> crashed;
reason_kind(Reason) -> Reason.

inconclusive(Id, Instance, Reason, S = #sliced{config = Config}) ->
    put_name(Id, witness_monitor_instance:inconclusive(Reason, Config, Instance), S).

-doc "The filter, and what else `load/2` needs, as data.".
-spec save(sliced()) -> {Filter :: term(), saved()}.
save(#sliced{filter = Filter, slices = Slices, count = Count, idle = Idle, explained = Explained, past = Past, unkeyed = Unkeyed,
             now = Now}) ->
    {Filter, {Count, witness_monitor_slices:youngest(Slices),
              [{Born, Id, witness_monitor_instance:save(Instance)} ||
               {Born, Id, Instance} <- witness_monitor_slices:to_list(Slices)],
              case Idle of none -> []; _ -> witness_monitor_expiry:save(Idle) end, Explained,
              {witness_monitor_past:save(Past), Unkeyed, Now}}}.

-doc "Loads saved data into a new one; `error` for malformed data, or for other names.".
-spec load(saved() | term(), sliced()) -> {ok, sliced()} | error.
%% Data that were saved before undecided slices were counted.
load({Count, Born, Saved, Idle}, S) ->
    load({Count, Born, Saved, Idle, #{}}, S);
%% Data that were saved before anything was remembered without slices.
load({Count, Born, Saved, Idle, Explained}, S = #sliced{unkeyed = Unkeyed}) ->
    load({Count, Born, Saved, Idle, Explained, {{[], none}, Unkeyed, none}}, S);
load({Count, Born, Saved, Idle, Explained, {Remembered, Unkeyed, Now}}, S = #sliced{slices = None, names = Names, idle = Fresh})
  when is_integer(Count), Count >= 0, is_integer(Born), Born >= 0, is_map(Explained), Now =:= none orelse is_integer(Now) ->
    try {[slice(Slice, Born, length(Names)) || Slice <- Saved], load_expiry(Idle, Fresh),
         load_past(Remembered, S#sliced{unkeyed = unkeyed(Unkeyed, S), now = Now})} of
        {Alive, Times, S1} ->
            Loaded = S1#sliced{count = Count, explained = Explained, slices = witness_monitor_slices:from_list(Born, Alive, None),
                               idle = Times},
            Note = fun({_, Id, Instance}, A) -> put_next(Id, Instance, witness_monitor_expiry:before_all(), A) end,
            {ok, lists:foldl(Note, Loaded, alive(Loaded))}
    catch
        error:_ -> error
    end;
load(_, _) -> error.

load_past(Saved, S = #sliced{past = None, instance = Make, filter = Filter, names = Names}) ->
    IsEntry = fun(Id, Entry) ->
        Key = case Names of [_] -> {Id}; _ -> Id end,
        witness_spec_value:is_past(Entry, Make(Key, Filter))
    end,
    Past = witness_monitor_past:load(Saved, {IsEntry, None}),
    Entries = [{Id, Values} || {Id, {values, _, _, _} = Values} <- witness_monitor_past:keys(Past)],
    lists:foldl(fun({Id, Values}, A) -> keep(Id, Values, A) end, S#sliced{past = Past}, Entries).

unkeyed(none, #sliced{unkeyed = none}) -> none;
unkeyed({verdict, inconclusive, _} = Unknown, #sliced{unkeyed = {values, _, _, _}}) -> Unknown;
unkeyed(Past, #sliced{unkeyed = {values, _, _, _} = First}) ->
    true = witness_spec_value:is_past(Past, First),
    Past.

load_expiry([], none) -> none;
load_expiry(Saved, Fresh) when Fresh =/= none -> witness_monitor_expiry:load(Saved, Fresh).

slice({Birth, Id, Saved}, Born, Values)
  when is_integer(Birth), Birth > 0, Birth =< Born, (Values =:= 1 orelse tuple_size(Id) =:= Values) ->
    {ok, Instance} = witness_monitor_instance:load(Saved),
    {Birth, Id, Instance}.

%% All keys have as many values as there are names. A single value, mostly a pid or a number, is found faster than
%% a tuple of one.
id({Value}) -> Value;
id(Key) -> Key.

put_name(Id, {satisfied, Vacuous}, _) -> {satisfied, Vacuous, Id};
put_name(Value, Outcome, #sliced{names = [Name]}) -> Outcome#{slice => [{Name, Value}]};
put_name(Key, Outcome, #sliced{names = Names}) -> Outcome#{slice => lists:zip(Names, tuple_to_list(Key))}.
