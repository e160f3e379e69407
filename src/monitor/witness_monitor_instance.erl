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

-doc "For machines with these callbacks, whose explanations have so many steps.".
-spec config(module(), Explain :: pos_integer()) -> config().
config(Module, Explain) -> {Module, Explain, fun Module:handle_event/2}.

-doc "A machine in its first state.".
-spec new(State :: term()) -> instance().
new(State) -> {State, 0, 0, []}.

-doc "Takes events, up to a verdict.".
-spec run([witness_event:event()], config(), instance()) -> {ok, instance()} | {decided, outcome()}.
run(Events, {_, Explain, Handle} = Config, {State, Index, Kept, Steps}) ->
    run(Events, State, Index, Kept, Steps, Handle, Explain, Config).

run([], State, I, Kept, Steps, _, _, _) ->
    {ok, {State, I, Kept, Steps}};
run([E | Events], State, I0, Kept, Steps0, Handle, N, Config) ->
    I = I0 + 1,
    try Handle(E, State) of
        {ok, State1} when Kept < 2 * N ->
            run(Events, State1, I, Kept + 1, [{I, E, State1} | Steps0], Handle, N, Config);
        {ok, State1} ->
            %% Twice as many steps as are shown are kept before the older half goes: constant
            %% space at a constant cost for each event.
            run(Events, State1, I, N + 1, [{I, E, State1} | lists:sublist(Steps0, N)], Handle, N, Config);
        {verdict, Verdict, Info} when Verdict =:= no; Verdict =:= yes; Verdict =:= inconclusive ->
            {decided, outcome(Verdict, Info, undefined, Config, at(E, State, I, Steps0), #{index => I, event => E})};
        Other ->
            {decided, inconclusive(crash(handle_event, Other), Config, at(E, State, I, Steps0))}
    catch
        Class:Reason:Stack ->
            {decided, inconclusive(crash(Class, Reason, Stack), Config, at(E, State, I, Steps0))}
    end.

at(E, State, I, Steps) -> {State, I, 0, [{I, E, State} | Steps]}.

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
