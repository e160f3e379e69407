-module(witness_monitor_runner).
-moduledoc """
Runs one monitor in a process of its own and reports its verdicts.

A runner reads batches of events from the tracer that owns its partition. To its run it reports

- `{slice, Runner, Outcome}` for each slice, if the monitor has slices;
- exactly one `{verdict, Runner, Outcome}`, with which it ends (see `t:outcome/0`).

A runner that ends without it has crashed or was killed, which the run sees by its link. Runners are started without a
link to the tracer, so a monitor can do nothing to it, and they have low priority: the system under scrutiny comes
first, and batches grow when it is busy.
""".

-export([start/1, events/2, clock/2, complete/1, stop/1, gap/2]).
-export([init/1]).

-export_type([spec/0, outcome/0]).

-doc """
What to run: the monitor, the process that it was started for, the run to report to, how many steps of the explanation
are kept, whether several processes are put in order, and how many slices may be alive (100,000 without it).
""".
-type spec() :: #{monitor := {module(), Arg :: term()},
                  process := witness_event:proc(),
                  signature := witness_event:signature(),
                  run := pid(),
                  explain := pos_integer(),
                  ordered := boolean(),
                  max_slices => pos_integer()}.

-doc """
What ends a monitor. `ignored`: it refused its process. With slices, which have reported their own outcomes before: how
many there were; if there was none, the outcome is an ordinary one, whose `yes` at a complete end is vacuous.

`covered` are the actions that were taken: bit 7 stands for the `id` 7 (see `c:witness_monitor:coverage/1`). To the
outcome of a slice the same applies as to any other, but for `covered`.
""".
-type outcome() ::
    ignored
  | #{slices := pos_integer(), covered := non_neg_integer()}
  | #{slice := undefined, covered := non_neg_integer(),
      verdict := witness_monitor:verdict(), reason := witness_monitor_instance:reason(),
      info := witness_monitor:info(), vacuous := boolean(),
      event := undefined | #{index := pos_integer(), event := witness_event:event()},
      steps := [witness_monitor_instance:step()], skipped := non_neg_integer()}.

%% In words: batches come in whole.
-define(HEAP, 2000).
-define(MAX_SLICES, 100_000).
%% Marks of actions beyond this are nobody's.
-define(MAX_ID, 1_000_000).

-record(runner, {config :: witness_monitor_instance:config(),
                 run :: pid(),
                 order :: undefined | witness_monitor_order:order(),
                 monitor :: undefined | monitor()}).

-type monitor() :: {single, witness_monitor_instance:instance()}
                 | {chosen, witness_monitor_instance:choice(), witness_monitor_instance:instance()}
                 | {sliced, witness_monitor_sliced:sliced()}.

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
       explain := Explain, ordered := Ordered} = Spec) ->
    link(Run),
    proc_lib:set_label({witness_monitor, Module, P}),
    R = #runner{config = witness_monitor_instance:config(Module, Explain), run = Run,
                order = case Ordered of true -> witness_monitor_order:new(); false -> undefined end},
    try started(Module:init(Signature, P, Arg), Module, Spec) of
        ignore -> report(ignored, R);
        {crashed, _} = Crash -> alone(Crash, R);
        Monitor -> loop(R#runner{monitor = Monitor})
    catch
        Class:Reason:Stack -> alone(witness_monitor_instance:crash(Class, Reason, Stack), R)
    end.

started({ok, State}, _, #{monitor := Monitor}) ->
    Instance = witness_monitor_instance:new(State),
    case witness_monitor_alphabet:of_monitor(Monitor) of
        all -> {single, Instance};
        Alphabet ->
            Choice = {fun witness_monitor_alphabet:slice/2, witness_monitor_alphabet:compile(Alphabet)},
            {chosen, Choice, Instance}
    end;
started({ok, State, Filter}, Module, _) ->
    {chosen, {fun Module:slice/2, Filter}, witness_monitor_instance:new(State)};
started({slices, Filter}, Module, #{explain := Explain} = Spec) ->
    Max = maps:get(max_slices, Spec, ?MAX_SLICES),
    {sliced, witness_monitor_sliced:new(Module, Explain, Filter, Module:slice_names(Filter), Max)};
started(ignore, _, _) -> ignore;
started(Other, _, _) -> witness_monitor_instance:crash(init, Other).

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

run(Events, R = #runner{monitor = {single, Instance}, config = Config}) ->
    case witness_monitor_instance:run(Events, Config, Instance) of
        {ok, Next} -> loop(R#runner{monitor = {single, Next}});
        {decided, Outcome} -> decided(Outcome, R)
    end;
run(Events, R = #runner{monitor = {chosen, Choice, Instance}, config = Config}) ->
    {Chosen, Result} = witness_monitor_instance:chosen(Events, Choice),
    case witness_monitor_instance:run(Chosen, Config, Instance) of
        {ok, Next} -> proceed(Result, R#runner{monitor = {chosen, Choice, Next}});
        {decided, Outcome} -> decided(Outcome, R)
    end;
run(Events, R = #runner{monitor = {sliced, Sliced}}) ->
    {Result, Outcomes, Next} = witness_monitor_sliced:run(Events, Sliced),
    slices(Outcomes, R),
    proceed(Result, R#runner{monitor = {sliced, Next}}).

proceed(ok, R) -> loop(R);
proceed(Crash, R) -> inconclusive(Crash, R).

ended(How, R = #runner{monitor = {sliced, Sliced}}) ->
    slices(witness_monitor_sliced:ended(How, Sliced), R),
    case How of
        complete -> last(yes, undefined, R);
        stopped -> last(inconclusive, stopped, R)
    end;
ended(How, R = #runner{config = Config}) ->
    decided(witness_monitor_instance:ended(How, Config, instance(R)), R).

inconclusive(Reason, R = #runner{monitor = {sliced, Sliced}}) ->
    slices(witness_monitor_sliced:inconclusive(Reason, Sliced), R),
    last(inconclusive, Reason, R);
inconclusive(Reason, R = #runner{config = Config}) ->
    decided(witness_monitor_instance:inconclusive(Reason, Config, instance(R)), R).

instance(#runner{monitor = {single, Instance}}) -> Instance;
instance(#runner{monitor = {chosen, _, Instance}}) -> Instance.

%% A monitor that has not begun.
alone(Crash, R = #runner{config = Config}) ->
    decided(witness_monitor_instance:inconclusive(Crash, Config, witness_monitor_instance:new(none)), R).

slices(Outcomes, #runner{run = Run}) ->
    lists:foreach(fun(Outcome) -> Run ! {slice, self(), Outcome} end, Outcomes).

last(Verdict, Reason, R = #runner{monitor = {sliced, Sliced}, config = Config}) ->
    case witness_monitor_sliced:count(Sliced) of
        0 ->
            Nothing = witness_monitor_instance:inconclusive(Reason, Config, witness_monitor_instance:new(none)),
            decided(Nothing#{verdict := Verdict, vacuous := Verdict =:= yes}, R);
        Count ->
            report(#{slices => Count, covered => covered()}, R)
    end.

decided(Outcome, R) -> report(Outcome#{slice => undefined, covered => covered()}, R).

covered() ->
    lists:foldl(fun(Id, Mask) -> Mask bor (1 bsl Id) end, 0,
                [Id || {Key, Id} <- get(), is_atom(Key), is_integer(Id), Id > 0, Id =< ?MAX_ID,
                       string:prefix(atom_to_list(Key), "$witness_") =/= nomatch]).

report(Outcome, #runner{run = Run}) ->
    Run ! {verdict, self(), Outcome},
    ok.
