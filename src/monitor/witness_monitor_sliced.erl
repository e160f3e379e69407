-module(witness_monitor_sliced).
-moduledoc """
A monitor with slices: one machine (`m:witness_monitor_instance`) for each value that is alive.

A machine begins with the first event of its value. It ends with its verdict, or when no event of its value has come for
too long. Machines do not affect each other. The monitor ends only if it cannot be determined to which slice an event
belongs.

A slice may end undecided because no more events come, because too many slices are alive, or because events are missing. Then
it has no information of its own. There may be as many such outcomes as slices, and an outcome with its explanation is several
times as large as a slice. So for each reason the first ones are explained, and the others are counted (`t:undecided/0`).
""".

-export([new/6, run/2, finish/2, inconclusive/2, count/1, save/1, load/2]).
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
last event of each, if idle time is limited, and how many undecided ones of each reason were explained.
""".
-type saved() :: {Count :: non_neg_integer(), Born :: non_neg_integer(),
                  [{witness_monitor_slices:birth(), witness_monitor_slices:key(), witness_monitor_instance:saved()}],
                  witness_monitor_slice_expiry:saved(), explained()}.

-type explained() :: #{stopped | pending | undefined | max_slices | slice_idle | gap | crashed => pos_integer()}.

-record(sliced, {config :: witness_monitor_instance:config(),
                 slice :: fun((witness_event:event(), Filter :: term()) -> term()),
                 instance :: fun((Key :: tuple(), Filter :: term()) -> State :: term()),
                 filter :: term(),
                 names :: [binary()],
                 slices :: witness_monitor_slices:slices(witness_monitor_instance:instance()),
                 idle :: none | witness_monitor_slice_expiry:idle(),
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
    #sliced{config = Config, slice = Slice, instance = fun Module:instance/2, filter = Filter, names = Names,
            slices = witness_monitor_slices:new(Max),
            idle = case Idle of infinity -> none; _ -> witness_monitor_slice_expiry:new(Idle) end}.

-doc "The number of slices so far.".
-spec count(sliced()) -> non_neg_integer().
count(#sliced{count = Count}) -> Count.

-doc "Takes events; the outcomes are in the order in which they were reached. After a crash the monitor cannot go on.".
-spec run([witness_event:event()], sliced()) ->
    {ok | witness_monitor_instance:reason(), [outcome() | satisfied() | undecided()], sliced()}.
run(Events, S0) ->
    {Result, Outcomes, S} = case S0 of
        #sliced{idle = none, slices = Slices, count = Count} -> run(Events, Slices, Count, [], S0);
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
    {Idle, S1 = #sliced{slices = Slices, count = Count}} = expire(witness_event:ts(E), S0),
    {Result, Decided, S2} = run([E], Slices, Count, [], S1),
    S = touch_slices(E, Decided, S2),
    case Result of
        ok -> run_timed(Events, [Decided, Idle | Outcomes], S);
        _ -> {Result, lists:append(lists:reverse([Decided, Idle | Outcomes])), S}
    end.

expire(Now, S = #sliced{idle = Idle, slices = Slices}) ->
    {Ids, Idle1} = witness_monitor_slice_expiry:due(Now, Idle),
    lists:mapfoldl(fun(Id, A = #sliced{slices = Alive}) ->
        {_, Instance} = witness_monitor_slices:find(Id, Alive),
        end_slice({Id, Instance}, slice_idle, A#sliced{slices = witness_monitor_slices:remove(Id, Alive)})
    end, S#sliced{idle = Idle1, slices = Slices}, Ids).

%% Keeps the invariant that each slice in `idle` is alive.
touch_slices(E, Decided, S = #sliced{slice = Slice, filter = Filter, slices = Slices, idle = Idle}) ->
    Left = lists:foldl(fun({undecided, _, {id, Id}}, A) -> witness_monitor_slice_expiry:forget(Id, A);
                          ({satisfied, _, Id}, A) -> witness_monitor_slice_expiry:forget(Id, A);
                          (#{slice := Values}, A) ->
                               witness_monitor_slice_expiry:forget(id(list_to_tuple([Value || {_, Value} <- Values])), A)
    end, Idle, Decided),
    S#sliced{idle = try Slice(E, Filter) of
        {_, Key} ->
            Id = id(Key),
            case witness_monitor_slices:find(Id, Slices) of
                none -> Left;
                _ -> witness_monitor_slice_expiry:touch(Id, witness_event:ts(E), Left)
            end;
        _ -> Left
    catch
        %% The monitor has ended with this error.
        _:_ -> Left
    end}.

%% Changing values are arguments while a batch is handled.
run([E | Events], Slices, Count, Outcomes, S = #sliced{slice = Slice, filter = Filter, names = Names}) ->
    try Slice(E, Filter) of
        skip ->
            run(Events, Slices, Count, Outcomes, S);
        {Whom, Key} when Whom =:= slice orelse Whom =:= live, tuple_size(Key) =:= length(Names) ->
            Id = id(Key),
            case witness_monitor_slices:find(Id, Slices) of
                {Born, Instance} ->
                    {Slices1, Outcomes1} = step({Born, Id, Instance}, E, Slices, Outcomes, S),
                    run(Events, Slices1, Count, Outcomes1, S);
                none when Whom =:= live ->
                    run(Events, Slices, Count, Outcomes, S);
                none ->
                    {Slices1, Outcomes1, S1} = start_slice(Key, E, Slices, Outcomes, S),
                    run(Events, Slices1, Count + 1, Outcomes1, S1)
            end;
        all ->
            {Slices1, Outcomes1} = lists:foldl(fun(One, {Alive, Decided}) ->
                step(One, E, Alive, Decided, S)
            end, {Slices, Outcomes}, witness_monitor_slices:to_list(Slices)),
            run(Events, Slices1, Count, Outcomes1, S);
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

step({Born, Id, Instance}, E, Slices, Outcomes, S = #sliced{config = Config}) ->
    case witness_monitor_instance:run([E], Config, Instance) of
        {ok, Next} -> {witness_monitor_slices:update(Id, Born, Next, Slices), Outcomes};
        {decided, Outcome} -> {witness_monitor_slices:remove(Id, Slices), [put_name(Id, Outcome, S) | Outcomes]}
    end.

start_slice(Key, E, Slices, Outcomes, S = #sliced{config = Config, instance = Make, filter = Filter}) ->
    try witness_monitor_instance:new(Make(Key, Filter)) of
        First ->
            case witness_monitor_instance:run([E], Config, First) of
                {ok, Instance} ->
                    case witness_monitor_slices:add(id(Key), Instance, Slices) of
                        {[], Slices1} -> {Slices1, Outcomes, S};
                        {[Oldest], Slices1} ->
                            {Outcome, S1} = end_slice(Oldest, max_slices, S),
                            {Slices1, [Outcome | Outcomes], S1}
                    end;
                {decided, Outcome} ->
                    {Slices, [put_name(id(Key), Outcome, S) | Outcomes], S}
            end
    catch
        Class:Reason:Stack ->
            %% The crash belongs to this slice.
            Crash = witness_monitor_instance:crash(Class, Reason, Stack),
            {Slices, [inconclusive(id(Key), witness_monitor_instance:new(none), Crash, S) | Outcomes], S}
    end.

-doc "No further event comes: the outcomes of the slices that are alive, the oldest one first.".
-spec finish(complete | stopped, sliced()) -> [outcome() | satisfied() | undecided()].
finish(How, S = #sliced{config = Config}) ->
    end_each(fun(Id, Instance, S1) ->
        {Undecided, Judged} = witness_monitor_instance:judge_undecided(How, Config, Instance),
        Outcome = fun() -> put_name(Id, witness_monitor_instance:conclude(Judged, How, Config, Instance), S1) end,
        case Undecided of
            {true, Reason} -> undecided(Id, Reason, Outcome, S1);
            false -> {Outcome(), S1}
        end
    end, S).

end_each(Outcome, S = #sliced{slices = Slices}) ->
    {Outcomes, _} = lists:mapfoldl(fun({_, Id, Instance}, S1) -> Outcome(Id, Instance, S1) end, S,
                                   witness_monitor_slices:to_list(Slices)),
    merge_outcomes(Outcomes).

-doc "The same, if the slices are inconclusive for this reason.".
-spec inconclusive(witness_monitor_instance:reason(), sliced()) -> [outcome() | undecided()].
inconclusive(Reason, S) -> end_each(fun(Id, Instance, S1) -> end_slice({Id, Instance}, Reason, S1) end, S).

-spec end_slice({witness_monitor_slices:key(), witness_monitor_instance:instance()}, witness_monitor_instance:reason(), sliced()) ->
    {one(), sliced()}.
end_slice({Id, Instance}, Reason, S) -> undecided(Id, Reason, fun() -> inconclusive(Id, Instance, Reason, S) end, S).

undecided(Id, Reason, Outcome, S = #sliced{explained = Explained}) ->
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
save(#sliced{filter = Filter, slices = Slices, count = Count, idle = Idle, explained = Explained}) ->
    {Filter, {Count, witness_monitor_slices:youngest(Slices),
              [{Born, Id, witness_monitor_instance:save(Instance)} ||
               {Born, Id, Instance} <- witness_monitor_slices:to_list(Slices)],
              case Idle of none -> []; _ -> witness_monitor_slice_expiry:save(Idle) end, Explained}}.

-doc "Loads saved data into a new one; `error` for malformed data, or for other names.".
-spec load(saved() | term(), sliced()) -> {ok, sliced()} | error.
%% Data that were saved before undecided slices were counted.
load({Count, Born, Saved, Idle}, S) ->
    load({Count, Born, Saved, Idle, #{}}, S);
load({Count, Born, Saved, Idle, Explained}, S = #sliced{slices = None, names = Names, idle = Fresh})
  when is_integer(Count), Count >= 0, is_integer(Born), Born >= 0, is_map(Explained) ->
    try {[slice(Slice, Born, length(Names)) || Slice <- Saved], load_expiry(Idle, Fresh)} of
        {Alive, Times} ->
            {ok, S#sliced{count = Count, explained = Explained, slices = witness_monitor_slices:from_list(Born, Alive, None),
                          idle = Times}}
    catch
        error:_ -> error
    end;
load(_, _) -> error.

load_expiry([], none) -> none;
load_expiry(Saved, Fresh) when Fresh =/= none -> witness_monitor_slice_expiry:load(Saved, Fresh).

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
