-module(witness_monitor_instance).
-moduledoc """
One state machine of a monitor: the events that it has seen, up to its verdict.

The last steps are kept as pairs of an event and the state after it, in constant space; formulas and bindings are only
asked for (`c:witness_monitor:describe/1`) when a verdict is explained. Whatever a callback does, the result is an
outcome: a crash is `inconclusive`.
""".

-export([config/2, new/1, run/3, chosen/2, ended/3, inconclusive/3, crash/2, crash/3]).
-export_type([config/0, choice/0, instance/0, outcome/0, step/0, reason/0]).

-doc """
The callback module, how many steps an explanation has, and `handle_event/2` as a fun: to call that costs half as much
as to call a function of a module that is only known at run time.
""".
-opaque config() :: {module(), Explain :: pos_integer(), fun((witness_event:event(), State :: term()) -> term())}.

-doc "What says of an event whether a monitor without slices is to see it (`c:witness_monitor:slice/2`).".
-type choice() :: {fun((witness_event:event(), term()) -> term()), Filter :: term()}.

-doc "The state, how many events were seen, how many steps are kept, and these, the last one first.".
-opaque instance() :: {State :: term(), Index :: non_neg_integer(), Kept :: non_neg_integer(),
                       [{pos_integer(), witness_event:event(), State :: term()}]}.

-doc "One step of an explanation. `index` counts the events that this machine has seen.".
-type step() :: #{index := pos_integer(), event := witness_event:event(),
                  formula := binary() | undefined, bindings := [{binary(), term()}]}.

-doc "Why a verdict is inconclusive; `undefined` where the monitor itself has said so.".
-type reason() :: undefined | stopped | max_slices | {gap, term()} | {crashed, term()}.

-doc "A verdict with its explanation. `skipped` events were seen before the steps that are shown.".
-type outcome() :: #{verdict := witness_monitor:verdict(), reason := reason(),
                     info := witness_monitor:info(), vacuous := boolean(),
                     event := undefined | #{index := pos_integer(), event := witness_event:event()},
                     steps := [step()], skipped := non_neg_integer()}.

%% Events after which it is seen to which steps are kept.
-define(CHUNK, 64).

-doc "For machines with these callbacks, whose explanations have so many steps.".
-spec config(module(), Explain :: pos_integer()) -> config().
config(Module, Explain) -> {Module, Explain, fun Module:handle_event/2}.

-doc "A machine in its first state.".
-spec new(State :: term()) -> instance().
new(State) -> {State, 0, 0, []}.

-doc "Takes events, up to a verdict.".
-spec run([witness_event:event()], config(), instance()) -> {ok, instance()} | {decided, outcome()}.
run([], _, Instance) -> {ok, Instance};
run(Events, {_, _, Handle} = Config, {State, _, _, _} = Instance) ->
    run(Events, State, [], ?CHUNK, Handle, {Events, Config, Instance}).

%% States: after each event so far of those in Since, the last one first. Which steps are kept is only seen to once for
%% many events; what is not kept must not stay for long either.
run(Events, State, States, Left, _, Since = {_, Config, _}) when Events =:= []; Left =:= 0 ->
    run(Events, Config, remember(State, States, Since));
run([E | Events], State, States, Left, Handle, Since) ->
    try Handle(E, State) of
        {ok, State1} -> run(Events, State1, [State1 | States], Left - 1, Handle, Since);
        {verdict, Verdict, Info} when Verdict =:= no; Verdict =:= yes; Verdict =:= inconclusive ->
            {Instance, I, Config} = at(E, State, States, Since),
            {decided, outcome(Verdict, Info, undefined, Config, Instance, #{index => I, event => E})};
        Other ->
            crashed(crash(handle_event, Other), at(E, State, States, Since))
    catch
        Class:Reason:Stack ->
            crashed(crash(Class, Reason, Stack), at(E, State, States, Since))
    end.

crashed(Crash, {Instance, _, Config}) -> {decided, inconclusive(Crash, Config, Instance)}.

%% The instance at the event that decides, whose step is always shown.
at(E, State, States, Since = {_, Config, _}) ->
    {_, Index, _, Steps} = remember(State, States, Since),
    {{State, Index + 1, 0, [{Index + 1, E, State} | Steps]}, Index + 1, Config}.

%% As many steps as are shown, and up to twice as many where that costs nothing.
remember(State, States, {Events, {_, N, _}, {_, Index, Kept, Steps}}) ->
    Count = length(States),
    Last = Index + Count,
    if
        Count >= N ->
            New = lists:reverse(lists:sublist(States, N)),
            {State, Last, N, steps(lists:nthtail(Count - N, Events), New, Last - N + 1, [])};
        Kept + Count =< 2 * N ->
            {State, Last, Kept + Count, steps(Events, lists:reverse(States), Index + 1, Steps)};
        true ->
            {State, Last, N, steps(Events, lists:reverse(States), Index + 1, lists:sublist(Steps, N - Count))}
    end.

steps([E | Events], [State | States], I, Steps) -> steps(Events, States, I + 1, [{I, E, State} | Steps]);
steps(_, [], _, Steps) -> Steps.

-doc "Those of the events that a monitor without slices is to see, up to the one where its choice went wrong.".
-spec chosen([witness_event:event()], choice()) -> {[witness_event:event()], ok | reason()}.
chosen(Events, {Slice, Filter}) -> chosen(Events, Slice, Filter, []).

chosen([], _, _, Chosen) ->
    {lists:reverse(Chosen), ok};
chosen([E | Events], Slice, Filter, Chosen) ->
    try Slice(E, Filter) of
        skip -> chosen(Events, Slice, Filter, Chosen);
        all -> chosen(Events, Slice, Filter, [E | Chosen]);
        Other -> {lists:reverse(Chosen), crash(slice, Other)}
    catch
        Class:Reason:Stack -> {lists:reverse(Chosen), crash(Class, Reason, Stack)}
    end.

-doc "No further event comes (see `c:witness_monitor:handle_end/2`).".
-spec ended(complete | stopped, config(), instance()) -> outcome().
ended(How, {Module, _, _} = Config, {State, _, _, _} = Instance) ->
    Reason = case How of stopped -> stopped; complete -> undefined end,
    case erlang:function_exported(Module, handle_end, 2) of
        false -> inconclusive(Reason, Config, Instance);
        true ->
            try Module:handle_end(How, State) of
                {Verdict, Info} when Verdict =:= no; Verdict =:= yes ->
                    outcome(Verdict, Info, undefined, Config, Instance, undefined);
                {inconclusive, Info} -> outcome(inconclusive, Info, Reason, Config, Instance, undefined);
                Other -> inconclusive(crash(handle_end, Other), Config, Instance)
            catch
                Class:Why:Stack -> inconclusive(crash(Class, Why, Stack), Config, Instance)
            end
    end.

-doc "Watching ends here without a verdict.".
-spec inconclusive(reason(), config(), instance()) -> outcome().
inconclusive(Reason, Config, Instance) -> outcome(inconclusive, undefined, Reason, Config, Instance, undefined).

-doc "The reason that stands for an exception.".
-spec crash(error | exit | throw, term(), erlang:stacktrace()) -> {crashed, term()}.
crash(Class, Reason, Stack) -> {crashed, {Class, Reason, Stack}}.

-doc "The reason that stands for a wrong result of a callback.".
-spec crash(Callback :: atom(), Result :: term()) -> {crashed, term()}.
crash(Callback, Result) -> {crashed, {bad_return, Callback, Result}}.

outcome(Verdict, Info, Reason, {Module, Explain, _}, {_, Index, _, Steps}, Event) ->
    Shown = lists:reverse(lists:sublist(Steps, Explain)),
    #{verdict => Verdict, reason => Reason, info => Info, event => Event,
      vacuous => is_map(Info) andalso maps:get(vacuous, Info, false),
      steps => [step(Step, Event, Module) || Step <- Shown],
      skipped => Index - length(Shown)}.

%% After the deciding event nothing is left to satisfy.
step({I, E, _}, #{index := I}, _) -> #{index => I, event => E, formula => undefined, bindings => []};
step({I, E, State}, _, Module) ->
    %% To call what is not there would have the code server look for it, for each step.
    Said = try erlang:function_exported(Module, describe, 1) andalso Module:describe(State) of
        false -> #{};
        Description -> Description
    catch _:_ -> #{}
    end,
    #{index => I, event => E, formula => maps:get(formula, Said, undefined),
      bindings => maps:get(bindings, Said, [])}.
