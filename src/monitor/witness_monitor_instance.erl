-module(witness_monitor_instance).
-moduledoc """
One state machine of a monitor: the events that it has seen, up to its verdict.

The last steps are kept as pairs of an event and the state after it, in constant space. Formulas and bindings are
computed (`c:witness_monitor:describe/1`) only when a verdict is explained. Whatever a callback does, the result is an
outcome: a crash is `inconclusive`.
""".

-export([config/2, config/3, set_counting/2, set_timed/2, is_timed/1, stopped_at/1, set_functions/2, reads_functions/1, callback/1,
         new/1, state/1, put_state/2, run/3, result/4, choose/2,
         pass/3, next_deadline/3, finish/3, judge_undecided/3, judge/3, conclude/4, inconclusive/3, is_vacuous/1,
         crash/2, crash/3, save/1, load/1]).
-export_type([config/0, choice/0, instance/0, outcome/0, satisfied/0, step/0, reason/0, saved/0]).

-doc """
The callback module, how many steps an explanation has, and `handle_event/2` as a fun: calling the fun costs half as much
as calling a function of a module that is known only at run time. Then whether a verdict `yes` is only counted (`set_counting/2`),
whether it has deadlines (`set_timed/2`), and whether calls and returns of functions are events for it (`set_functions/2`).
""".
-opaque config() :: {module(), Explain :: pos_integer(), fun((witness_event:event(), State :: term()) -> term()),
                     never | fun(() -> boolean()), Timed :: false | witness_monitor_stop_time:stop_time(),
                     Functions :: never | fun(() -> boolean())}.

-doc "Decides whether a monitor without slices sees an event (`c:witness_monitor:slice/2`).".
-type choice() :: {fun((witness_event:event(), term()) -> term()), Filter :: term()}.

-doc """
The state, how many events were seen, how many steps are kept, and these, the last one first: the index of the last one is
the number of events.
""".
-opaque instance() :: {State :: term(), Index :: non_neg_integer(), Kept :: non_neg_integer(), [kept()]}.

-type kept() :: {witness_event:event(), State :: term()}.

-doc "An instance as data: its state, how many events it has seen, and its steps.".
-type saved() :: {State :: term(), Index :: non_neg_integer(), [kept()]}.

-doc "One step of an explanation. `index` counts the events that this machine has seen.".
-type step() :: #{index := pos_integer(), event := witness_event:event(),
                  formula := binary() | undefined, bindings := [{binary(), term()}]}.

-doc "Why a verdict is inconclusive; `undefined` if the monitor itself gave that verdict.".
-type reason() :: undefined | stopped | pending | max_slices | slice_idle | unknown_past | too_many_requests | {gap, term()}
                | {crashed, term()}.

-doc "A verdict with its explanation. `skipped` events were seen before the steps that are shown.".
-type outcome() :: #{verdict := witness_monitor:verdict(), reason := reason(),
                     info := witness_monitor:info(), vacuous := boolean(),
                     event := undefined | #{index := pos_integer(), event := witness_event:event()},
                     steps := [step()], skipped := non_neg_integer()}.

-doc "A verdict `yes` that is not shown: explaining it costs more than many events.".
-type satisfied() :: {satisfied, Vacuous :: boolean()}.

%% Events after which kept steps are pruned.
-define(CHUNK_EVENTS, 64).

-doc "The configuration of machines with these callbacks, and with so many steps in an explanation.".
-spec config(module(), Explain :: pos_integer()) -> config().
config(Module, Explain) -> config(Module, Explain, fun Module:handle_event/2).

-doc "The same with another function in place of `handle_event/2`.".
-spec config(module(), Explain :: pos_integer(), fun((witness_event:item(), State :: term()) -> term())) -> config().
config(Module, Explain, Handle) -> {Module, Explain, Handle, never, false, never}.

-doc "The same for machines with a verdict `yes` that is a `t:satisfied/0` whenever this function returns true.".
-spec set_counting(fun(() -> boolean()), config()) -> config().
set_counting(IsCounted, Config) -> setelement(4, Config, IsCounted).

-doc """
The same for monitors with deadlines: those that the time of an event passes come before the event. Where watching stops, those before the
stop time have passed.
""".
-spec set_timed(witness_monitor_stop_time:stop_time(), config()) -> config().
set_timed(StopTime, {Module, Explain, Handle, IsCounted, false, Functions}) ->
    InTime = fun(E, State) ->
        case witness_event:ts(E) of
            undefined -> Handle(E, State);
            Time ->
                case Module:handle_time(Time, State) of
                    open -> Handle(E, State);
                    Passed -> {passed, Passed}
                end
        end
    end,
    {Module, Explain, InTime, IsCounted, StopTime, Functions}.

-doc "Whether its monitors have deadlines.".
-spec is_timed(config()) -> boolean().
is_timed({_, _, _, _, Timed, _}) -> Timed =/= false.

-doc "When watching has stopped, of monitors with deadlines.".
-spec stopped_at(config()) -> integer() | unknown.
stopped_at({_, _, _, _, false, _}) -> unknown;
stopped_at({_, _, _, _, StopTime, _}) -> witness_monitor_stop_time:read(StopTime).

-doc "The same for monitors of which this function says whether they read calls or returns of functions.".
-spec set_functions(fun(() -> boolean()), config()) -> config().
set_functions(Reads, Config) -> setelement(6, Config, Reads).

-doc "Whether calls or returns of functions are events for its monitors.".
-spec reads_functions(config()) -> boolean().
reads_functions({_, _, _, _, _, Reads}) -> Reads =/= never andalso Reads().

-doc "`handle_event/2`, for callers that call it directly and pass its result to `result/4`.".
-spec callback(config()) -> fun((witness_event:event(), State :: term()) -> term()).
callback({_, _, Handle, _, _, _}) -> Handle.

-doc "A machine in its first state.".
-spec new(State :: term()) -> instance().
new(State) -> {State, 0, 0, []}.

-spec state(instance()) -> State :: term().
state({State, _, _, _}) -> State.

-doc "The same machine in another state.".
-spec put_state(State :: term(), instance()) -> instance().
put_state(State, Instance) -> setelement(1, Instance, State).

-doc "Takes events, up to a verdict.".
-spec run([witness_event:event()], config(), instance()) -> {ok, instance()} | {decided, outcome() | satisfied()}.
run([], _, Instance) -> {ok, Instance};
run([E], {_, N, Handle, _, _, _} = Config, {State, Index, Kept, Steps} = Instance) ->
    %% With many machines that take turns, one event at a time is the rule. The kept steps are most of a machine's cost, so
    %% only a few more stay than are shown: enough that not every event builds the list again.
    try Handle(E, State) of
        {ok, State1} when Kept < N + N div 4 + 1 ->
            {ok, {State1, Index + 1, Kept + 1, [{E, State1} | Steps]}};
        {ok, State1} ->
            {ok, {State1, Index + 1, N, [{E, State1} | lists:sublist(Steps, N - 1)]}};
        Other ->
            decide(Other, E, Config, Instance)
    catch
        Class:Reason:Stack -> conclude_crash(crash(Class, Reason, Stack), E, Config, Instance)
    end;
run(Events, {_, _, Handle, _, _, _} = Config, {State, _, _, _} = Instance) ->
    run(Events, State, [], ?CHUNK_EVENTS, Handle, {Events, Config, Instance}).

%% States: after each event so far of those in Since, the last one first. Pruning happens once for many events, but often
%% enough that dropped steps do not stay in memory for long.
run(Events, State, States, Left, _, Since = {_, Config, _}) when Events =:= []; Left =:= 0 ->
    run(Events, Config, remember(State, States, Since));
run([E | Events], State, States, Left, Handle, Since) ->
    try Handle(E, State) of
        {ok, State1} -> run(Events, State1, [State1 | States], Left - 1, Handle, Since);
        Other -> decide(Other, E, element(2, Since), remember(State, States, Since))
    catch
        Class:Reason:Stack -> conclude_crash(crash(Class, Reason, Stack), E, element(2, Since), remember(State, States, Since))
    end.

-doc "Takes the result of the callback for the last event, or its exception (`crash/3`).".
-spec result(Result :: term() | {crashed, term()}, witness_event:event(), config(), instance()) ->
    {decided, outcome() | satisfied()}.
result({crashed, _} = Crash, E, Config, Instance) -> conclude_crash(Crash, E, Config, Instance);
result(Other, E, Config, Instance) -> decide(Other, E, Config, Instance).

decide({passed, Passed}, _, Config, Instance) -> conclude_time(Passed, Config, Instance);
decide({verdict, yes, Info} = Verdict, E, {_, _, _, IsCounted, _, _} = Config, Instance) when IsCounted =/= never ->
    case IsCounted() of
        true -> {decided, {satisfied, is_vacuous(Info)}};
        false -> explain(Verdict, E, Config, Instance)
    end;
decide(Verdict, E, Config, Instance) ->
    explain(Verdict, E, Config, Instance).

explain({verdict, Verdict, Info}, E, Config, Instance) when Verdict =:= no; Verdict =:= yes; Verdict =:= inconclusive ->
    {_, Index, _, _} = Last = deciding_instance(E, Instance),
    {decided, outcome(Verdict, Info, undefined, Config, Last, #{index => Index, event => E})};
explain(Other, E, Config, Instance) ->
    conclude_crash(crash(handle_event, Other), E, Config, Instance).

conclude_crash(Crash, E, Config, Instance) -> {decided, inconclusive(Crash, Config, deciding_instance(E, Instance))}.

%% The instance at the deciding event. The step of that event is always shown.
deciding_instance(E, {State, Index, _, Steps}) -> {State, Index + 1, 0, [{E, State} | Steps]}.

%% Keeps as many steps as are shown, and up to twice as many if that needs no copy.
remember(State, States, {Events, {_, N, _, _, _, _}, {_, Index, Kept, Steps}}) ->
    Count = length(States),
    Last = Index + Count,
    if
        Count >= N ->
            New = lists:reverse(lists:sublist(States, N)),
            {State, Last, N, steps(lists:nthtail(Count - N, Events), New, [])};
        Kept + Count =< 2 * N ->
            {State, Last, Kept + Count, steps(Events, lists:reverse(States), Steps)};
        true ->
            {State, Last, N, steps(Events, lists:reverse(States), lists:sublist(Steps, N - Count))}
    end.

steps([E | Events], [State | States], Steps) -> steps(Events, States, [{E, State} | Steps]);
steps(_, [], Steps) -> Steps.

-doc "The events that a monitor without slices sees, up to the one for which its choice failed.".
-spec choose([witness_event:event()], choice()) -> {[witness_event:event()], ok | reason()}.
choose(Events, {Slice, Filter}) -> choose(Events, Slice, Filter, []).

choose([], _, _, Chosen) ->
    {lists:reverse(Chosen), ok};
choose([E | Events], Slice, Filter, Chosen) ->
    try Slice(E, Filter) of
        skip -> choose(Events, Slice, Filter, Chosen);
        all -> choose(Events, Slice, Filter, [E | Chosen]);
        Other -> {lists:reverse(Chosen), crash(slice, Other)}
    catch
        Class:Reason:Stack -> {lists:reverse(Chosen), crash(Class, Reason, Stack)}
    end.

-doc "No event comes before this time any more (see `c:witness_monitor:handle_time/2`).".
-spec pass(Time :: integer(), config(), instance()) -> open | {decided, outcome() | satisfied()}.
pass(Time, {Module, _, _, _, Timed, _} = Config, {State, _, _, _} = Instance) when Timed =/= false ->
    try Module:handle_time(Time, State) of
        open -> open;
        Passed -> conclude_time(Passed, Config, Instance)
    catch
        Class:Reason:Stack -> {decided, inconclusive(crash(Class, Reason, Stack), Config, Instance)}
    end;
pass(_, _, _) -> open.

%% No event has decided.
conclude_time({verdict, Verdict, Info}, Config, Instance) when Verdict =:= no; Verdict =:= yes; Verdict =:= inconclusive ->
    {decided, conclude({Verdict, Info}, complete, Config, Instance)};
conclude_time(Other, Config, Instance) ->
    {decided, inconclusive(crash(handle_time, Other), Config, Instance)}.

-doc "See `c:witness_monitor:next_deadline/2`.".
-spec next_deadline(From :: integer(), config(), instance()) -> integer() | none.
next_deadline(From, {Module, _, _, _, Timed, _}, {State, _, _, _}) when Timed =/= false ->
    %% A monitor that cannot say it is asked with its next event.
    try Module:next_deadline(From, State) of
        At when is_integer(At), At >= From -> At;
        _ -> none
    catch
        _:_ -> none
    end;
next_deadline(_, _, _) -> none.

-doc "No further event comes (see `c:witness_monitor:handle_end/2`).".
-spec finish(complete | stopped, config(), instance()) -> outcome() | satisfied().
finish(How, Config, {State, _, _, _} = Instance) -> conclude(judge(How, Config, State), How, Config, Instance).

-doc "The monitor's judgement at its end. `conclude/4` makes the outcome of it, which costs more: callers that need none skip it.".
-spec judge(complete | stopped, config(), State :: term()) -> none | {witness_monitor:verdict() | crashed, term()}.
judge(How, {Module, _, _, _, _, _}, State) ->
    case erlang:function_exported(Module, handle_end, 2) of
        false -> none;
        true ->
            try Module:handle_end(How, State) of
                {Verdict, _} = Judged when Verdict =:= no; Verdict =:= yes; Verdict =:= inconclusive -> Judged;
                Other -> crash(handle_end, Other)
            catch
                Class:Why:Stack -> crash(Class, Why, Stack)
            end
    end.

-doc """
The judgement for `conclude/4` at the end, and the reason if it is undecided, unless the monitor has a reason of its own.
""".
-spec judge_undecided(complete | stopped, config(), instance()) ->
    {false | {true, reason()}, none | {witness_monitor:verdict() | crashed, term()}}.
judge_undecided(How, Config, {State, _, _, _}) ->
    Judged = judge(How, Config, State),
    {case Judged of
         none -> {true, stop_reason(How, #{})};
         {inconclusive, Info} when Info =:= undefined; Info =:= #{}; map_get(reason, Info) =:= pending ->
             {true, stop_reason(How, Info)};
         _ -> false
     end, Judged}.

-spec conclude(none | {witness_monitor:verdict() | crashed, term()}, complete | stopped, config(), instance()) ->
    outcome() | satisfied().
conclude({crashed, _} = Crash, _, Config, Instance) -> inconclusive(Crash, Config, Instance);
conclude({inconclusive, Info}, How, Config, Instance) ->
    outcome(inconclusive, Info, stop_reason(How, Info), Config, Instance, undefined);
conclude({yes, Info}, _, {_, _, _, IsCounted, _, _} = Config, Instance) when IsCounted =/= never ->
    case IsCounted() of
        true -> {satisfied, is_vacuous(Info)};
        false -> outcome(yes, Info, undefined, Config, Instance, undefined)
    end;
conclude({Verdict, Info}, _, Config, Instance) -> outcome(Verdict, Info, undefined, Config, Instance, undefined);
conclude(none, How, Config, Instance) -> inconclusive(stop_reason(How, #{}), Config, Instance).

%% `pending': the trace so far would be a violation, so what is missing may matter.
stop_reason(stopped, #{reason := pending}) -> pending;
stop_reason(stopped, _) -> stopped;
stop_reason(complete, _) -> undefined.

-doc "Observation ends here without a verdict.".
-spec inconclusive(reason(), config(), instance()) -> outcome().
inconclusive(Reason, Config, Instance) -> outcome(inconclusive, undefined, Reason, Config, Instance, undefined).

-doc "Data for `load/1`, perhaps in another node: if states have funs or references, the monitor is responsible.".
-spec save(instance()) -> saved().
save({State, Index, _, Steps}) -> {State, Index, Steps}.

-doc "The instance that was saved; `error` for malformed data.".
-spec load(saved() | term()) -> {ok, instance()} | error.
load({State, Index, Steps}) when is_integer(Index), Index >= 0, length(Steps) =< Index ->
    case lists:all(fun is_step/1, Steps) of
        true -> {ok, {State, Index, length(Steps), Steps}};
        false -> error
    end;
load(_) -> error.

is_step({Event, _}) -> is_tuple(Event);
is_step(_) -> false.

-doc "The reason that represents an exception.".
-spec crash(error | exit | throw, term(), erlang:stacktrace()) -> {crashed, term()}.
crash(Class, Reason, Stack) -> {crashed, {Class, Reason, Stack}}.

-doc "The reason that represents a wrong result of a callback.".
-spec crash(Callback :: atom(), Result :: term()) -> {crashed, term()}.
crash(Callback, Result) -> {crashed, {bad_return, Callback, Result}}.

outcome(Verdict, Info, Reason, {Module, Explain, _, _, _, _}, {_, Index, _, Steps}, Event) ->
    Shown = lists:reverse(lists:sublist(Steps, Explain)),
    Skipped = Index - length(Shown),
    #{verdict => Verdict, reason => Reason, info => Info, event => Event,
      vacuous => is_vacuous(Info),
      steps => [step(I, Step, Event, Module) || {I, Step} <- lists:enumerate(Skipped + 1, Shown)],
      skipped => Skipped}.

-doc "Whether the birth of the process is the only reason of a verdict with this information.".
-spec is_vacuous(witness_monitor:info()) -> boolean().
is_vacuous(Info) -> is_map(Info) andalso maps:get(vacuous, Info, false).

%% After the deciding event nothing remains to be satisfied.
step(I, {E, _}, #{index := I}, _) -> #{index => I, event => E, formula => undefined, bindings => []};
step(I, {E, State}, _, Module) ->
    %% A call of a missing function would make the code server search for the module, for each step.
    Said = try erlang:function_exported(Module, describe, 1) andalso Module:describe(State) of
        false -> #{};
        Description -> Description
    catch _:_ -> #{}
    end,
    #{index => I, event => E, formula => maps:get(formula, Said, undefined),
      bindings => maps:get(bindings, Said, [])}.
