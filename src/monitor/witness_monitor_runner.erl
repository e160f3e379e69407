-module(witness_monitor_runner).
-moduledoc """
Runs one monitor in a process of its own and reports its verdict.

A runner reads batches of events from the tracer that owns its partition. It reports
exactly one `{verdict, Runner, Outcome}` to its run and ends; a runner that ends without
a report has crashed or was killed, which the run sees by its link. Runners are started
without a link to the tracer, so a monitor can do nothing to it, and they have low
priority: the system under scrutiny comes first, and batches grow when it is busy.

The last steps are kept as pairs of an event and the state after it, in constant space;
formulas and bindings are only asked for (`c:witness_monitor:describe/1`) when a verdict
is explained.
""".

-export([start/1, events/2, clock/2, complete/1, stop/1, gap/2]).
-export([init/1]).

-export_type([spec/0, outcome/0]).

-doc """
What to run: the monitor, the process that it was started for, the run to report to, how
many steps of the explanation are kept, and whether several processes are put in order.
""".
-type spec() :: #{monitor := {module(), Arg :: term()},
                  process := witness_event:proc(),
                  signature := witness_event:signature(),
                  run := pid(),
                  explain := pos_integer(),
                  ordered := boolean()}.

-doc "One step of an explanation.".
-type step() :: #{index := pos_integer(), event := witness_event:event(),
                  formula := binary() | undefined, bindings := [{binary(), term()}]}.

-doc """
A verdict with its explanation. `reason` says why it is inconclusive; `ignored` is the
outcome of a monitor that refused its process.
""".
-type outcome() ::
    ignored
  | #{verdict := witness_monitor:verdict(),
      reason := undefined | stopped | {gap, term()} | {crashed, term()},
      info := witness_monitor:info(), vacuous := boolean(),
      event := undefined | #{index := pos_integer(), event := witness_event:event()},
      steps := [step()], skipped := non_neg_integer()}.

%% In words: batches come in whole.
-define(HEAP, 2000).

-record(runner, {module :: module(),
                 state :: term(),
                 run :: pid(),
                 order :: undefined | witness_monitor_order:order(),
                 explain :: pos_integer(),
                 index = 0 :: non_neg_integer(),
                 kept = 0 :: non_neg_integer(),
                 steps = [] :: [{pos_integer(), witness_event:event(), State :: term()}]}).

-doc "Starts a monitor.".
-spec start(spec()) -> pid().
start(Spec) ->
    Pid = spawn_opt(?MODULE, init, [Spec], 
                    [{priority, low}, {message_queue_data, off_heap}, {min_heap_size, ?HEAP}]),
    true = is_pid(Pid),
    Pid.

-doc "The next events of the partition.".
-spec events(pid(), [{Stamp :: integer() | none, witness_event:event()}]) -> ok.
events(Runner, Events) -> Runner ! {events, Events}, ok.

-doc "No event before this time, in nanoseconds, is on its way any more.".
-spec clock(pid(), integer()) -> ok.
clock(Runner, Time) -> Runner ! {clock, Time}, ok.

-doc "Every process of the partition has ended, and all events were given.".
-spec complete(pid()) -> ok.
complete(Runner) -> Runner ! {ended, complete}, ok.

-doc "Watching ends.".
-spec stop(pid()) -> ok.
stop(Runner) -> Runner ! {ended, stopped}, ok.

-doc "Events are missing from here on.".
-spec gap(pid(), term()) -> ok.
gap(Runner, Reason) -> Runner ! {gap, Reason}, ok.

-doc false.
-spec init(spec()) -> ok.
init(#{monitor := {Module, Arg}, process := P, signature := Signature, run := Run,
       explain := Explain, ordered := Ordered}) ->
    link(Run),
    proc_lib:set_label({witness_monitor, Module, P}),
    R = #runner{module = Module, run = Run, explain = Explain,
                order = case Ordered of true -> witness_monitor_order:new(); false -> undefined end},
    try Module:init(Signature, P, Arg) of
        {ok, State} -> loop(R#runner{state = State});
        ignore -> report(ignored, R);
        Other -> bad_return(init, Other, R)
    catch
        Class:Reason:Stack -> crashed({Class, Reason, Stack}, R)
    end.

loop(R = #runner{order = Order}) ->
    receive
        {events, Events} when Order =:= undefined -> run([E || {_, E} <- Events], R);
        {events, Events} -> hold(Events, R);
        {clock, Time} ->
            {Events, Order1} = witness_monitor_order:release(Time, Order),
            run(Events, R#runner{order = Order1});
        {ended, How} when Order =:= undefined -> ended(How, R);
        {ended, How} ->
            Rest = witness_monitor_order:release_all(Order),
            self() ! {ended, How},
            run(Rest, R#runner{order = undefined});
        {gap, Reason} -> inconclusive({gap, Reason}, R)
    end.

hold([], R) -> loop(R);
hold([S | Events], R = #runner{order = Order}) ->
    case witness_monitor_order:add(S, Order) of
        {ok, Order1} -> hold(Events, R#runner{order = Order1});
        late -> inconclusive({gap, late}, R)
    end.

%% The state of the monitor and what is kept travel as arguments while a batch is worked off.
run(Events, R = #runner{state = State, index = I, kept = Kept, steps = Steps}) ->
    run(Events, State, I, Kept, Steps, R).

run([], State, I, Kept, Steps, R) ->
    loop(R#runner{state = State, index = I, kept = Kept, steps = Steps});
run([E | Events], State, I0, Kept, Steps0, R = #runner{module = Module, explain = N}) ->
    I = I0 + 1,
    try Module:handle_event(E, State) of
        {ok, State1} when Kept < 2 * N ->
            run(Events, State1, I, Kept + 1, [{I, E, State1} | Steps0], R);
        {ok, State1} ->
            %% Twice as many steps as are shown are kept before the older half goes: constant
            %% space at a constant cost for each event.
            run(Events, State1, I, N + 1, [{I, E, State1} | lists:sublist(Steps0, N)], R);
        {verdict, Verdict, Info} when Verdict =:= no; Verdict =:= yes; Verdict =:= inconclusive ->
            decided(Verdict, Info, undefined, at(E, State, I, Steps0, R), #{index => I, event => E});
        Other -> bad_return(handle_event, Other, at(E, State, I, Steps0, R))
    catch
        Class:Reason:Stack -> crashed({Class, Reason, Stack}, at(E, State, I, Steps0, R))
    end.

at(E, State, I, Steps, R) ->
    R#runner{state = State, index = I, steps = [{I, E, State} | Steps]}.

ended(How, R = #runner{module = Module, state = State}) ->
    Reason = case How of stopped -> stopped; complete -> undefined end,
    case erlang:function_exported(Module, handle_end, 2) of
        false -> decided(inconclusive, undefined, Reason, R, undefined);
        true ->
            try Module:handle_end(How, State) of
                {Verdict, Info} when Verdict =:= no; Verdict =:= yes ->
                    decided(Verdict, Info, undefined, R, undefined);
                {inconclusive, Info} -> decided(inconclusive, Info, Reason, R, undefined);
                Other -> bad_return(handle_end, Other, R)
            catch
                Class:Why:Stack -> crashed({Class, Why, Stack}, R)
            end
    end.

crashed(Crash, R) -> inconclusive({crashed, Crash}, R).

bad_return(Callback, Value, R) -> crashed({bad_return, Callback, Value}, R).

inconclusive(Reason, R) -> decided(inconclusive, undefined, Reason, R, undefined).

decided(Verdict, Info, Reason, R = #runner{steps = Steps, explain = N, index = Index}, Event) ->
    Shown = lists:reverse(lists:sublist(Steps, N)),
    report(#{verdict => Verdict, reason => Reason, info => Info, event => Event,
             vacuous => is_map(Info) andalso maps:get(vacuous, Info, false),
             steps => [step(S, Event, R) || S <- Shown],
             skipped => Index - length(Shown)}, R).

%% After the deciding event nothing is left to satisfy.
step({I, E, _}, #{index := I}, _) -> #{index => I, event => E, formula => undefined, bindings => []};
step({I, E, State}, _, #runner{module = Module}) ->
    Said = try Module:describe(State) catch _:_ -> #{} end,
    #{index => I, event => E, formula => maps:get(formula, Said, undefined),
      bindings => maps:get(bindings, Said, [])}.

report(Outcome, #runner{run = Run}) ->
    Run ! {verdict, self(), Outcome},
    ok.
