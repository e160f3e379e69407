-module(witness_monitor_deadlines_tests).
-moduledoc """
Deadlines that pass without events. Whatever times a source tells, and when: a machine has the same outcomes as without them, some earlier;
a deadline passes as soon as a time after it is told, and never at a time that is not after it.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SPEC, ~"""
answered: with shop:init(_) over _ ? {ask, _, _}, _ : _ ! {answer, _, _} check
  min X. (<_ ? {ask, _, N}> within 10 ns (min Y. (<_ : _ ! {answer, _, M} when M =:= N> tt or <_ ? {ask, _, _}> Y
                                                  or <_ : _ ! {answer, _, M} when M =/= N> Y))
          or <_ : _ ! {answer, _, _}> X).

each: with shop:init(_) per Id over _ ? {ask, Id, _}, _ : _ ! {answer, Id, _} check
  max X. [_ ? {ask, Id, N}] and([_ ? {ask, Id, _}] X,
                                within 10 ns <_ : _ ! {answer, Id, _}> tt,
                                during 15 ns [_ : _ ! {answer, Id, M} when M =/= N] ff).
""").

told_times_change_nothing_test_() ->
    {setup, fun compile/0, fun witness_spec:unload/1, fun(#{module := Module}) ->
        [{Name, {timeout, 120, fun() ->
             ?assert(proper:quickcheck(prop_told(Module, Index), [quiet, {numtests, 3000}, {to_file, user}]))
         end}} || {Name, Index} <- [{"a formula", 1}, {"slices", 2}]]
    end}.

compile() ->
    {ok, Map, _} = witness_spec:compile_string(~"deadlines", ?SPEC, #{}),
    Map.

%% Events with times that do not go back, each with times that are told before it, and whether the machine is saved then.
trace() ->
    list({oneof([ask, answer]), integer(1, 3), integer(1, 2), integer(0, 8), list(integer(0, 8)), oneof([true, false, false])}).

%% With the last time both know which deadlines have passed at the end. Where watching stops,
%% one knows the last time by `stop_time`.
prop_told(Module, Index) ->
    ?FORALL({Trace, Idle, End}, {trace(), oneof([infinity, 1]), oneof([complete, stopped])},
            begin
                Given = #{monitor => {Module, Index}, explain => 3, max_slices => 1000,
                          slice_idle => Idle, process => self(), signature => {shop, init, [x]}},
                Spec = witness_monitor_machine:prepare(Given),
                {ok, Machine} = witness_monitor_machine:new(Spec),
                {Timed, {none, [LastTime]} = Last} = timed(Trace),
                StopTime = witness_monitor_stop_time:new(),
                ok = witness_monitor_stop_time:note(LastTime, StopTime),
                Ends = witness_monitor_machine:prepare(Given#{stop_time => StopTime}),
                {ok, Stopping} = witness_monitor_machine:new(Ends),
                Plain = case {[{E, []} || {E, _, _} <- Timed], End} of
                    {Events, stopped} -> outcomes(feed(Events, stopped, Ends, Stopping));
                    {Events, complete} -> outcomes(feed(Events ++ [Last], complete, Spec, Machine))
                end,
                Told = outcomes(feed([case Saved of true -> {E, [save | Times]}; false -> {E, Times} end
                                      || {E, Times, Saved} <- Timed] ++ [Last], End, Spec, Machine)),
                ?WHENFAIL(io:format("~p~n~p~n", [Plain, Told]), Plain =:= Told)
            end).

timed(Trace) ->
    {Timed, Last} = lists:mapfoldl(fun({Kind, Id, N, After, Before, Saved}, Last) ->
        Time = Last + After,
        {{event(Kind, Id, N, Time), lists:sort([min(Last + T, Time) || T <- Before]), Saved}, Time}
    end, -20, Trace),
    {Timed, {none, [Last]}}.

event(ask, Id, N, Time) -> {recv, self(), undefined, {ask, Id, N}, Time};
event(answer, Id, N, Time) -> {send, self(), self(), {answer, Id, N}, Time}.

%% Before each time that is told, no deadline has passed that was not told; behind it none is left.
feed(Trace, End, Spec, Machine) -> feed(Trace, End, Spec, Machine, []).

feed([{E, [save | Times]} | Trace], End, Spec, Machine, Outcomes) ->
    {ok, Loaded} = witness_monitor_machine:load(witness_monitor_machine:save(Machine), Spec),
    feed([{E, Times} | Trace], End, Spec, Loaded, Outcomes);
feed([{E, [Time | Times]} | Trace], End, Spec, Machine, Outcomes) ->
    Next = witness_monitor_machine:next_deadline(Time - 1000, Machine),
    case witness_monitor_machine:pass(Time, Machine) of
        {Decided, {ok, Same}} ->
            [] = [early || Decided =/= [], not (Next < Time)],
            After = witness_monitor_machine:next_deadline(Time, Same),
            true = After =:= none orelse After >= Time,
            feed([{E, Times} | Trace], End, Spec, Same, Outcomes ++ Decided);
        {Decided, {decided, Final}} ->
            true = Next < Time,
            Outcomes ++ Decided ++ [Final]
    end;
feed([{none, []}], End, Spec, Machine, Outcomes) -> feed([], End, Spec, Machine, Outcomes);
feed([{E, []} | Trace], End, Spec, Machine, Outcomes) ->
    case witness_monitor_machine:run([E], Machine) of
        {Decided, {ok, Next}} -> feed(Trace, End, Spec, Next, Outcomes ++ Decided);
        {Decided, {decided, Final}} -> Outcomes ++ Decided ++ [Final]
    end;
feed([], End, _, Machine, Outcomes) ->
    {Decided, Final} = witness_monitor_machine:finish(End, Machine),
    Outcomes ++ Decided ++ [Final].

%% In one order.
outcomes(Outcomes) -> lists:sort(Outcomes).
