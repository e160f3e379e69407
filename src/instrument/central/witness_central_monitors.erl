-module(witness_central_monitors).
-moduledoc """
The monitors of a run as data in one process: mode `central` (RIARC text, appendix C.5.2).

The one tracer of the run has a map from processes to their monitors (the labels of `m:witness_instrument_map`). Here these are
state machines (`m:witness_monitor_machine`), not processes. What happens to a monitor is an *operation*: it starts, reads
events, ends, has a gap. Operations are added as events come, and performed together, property by property. So the
dictionary of the process has the marks of taken actions of one property at a time.
A monitor is made when its process is spawned and goes with its verdict; operations for one that has gone are dropped.

Some monitors read *all* processes: those of properties without `with`. They exist from the start, and get every event.

The state is pure except for these marks, and for one timer for all deadlines (`fired/2`). `work/2` hands out the reports for the run.

## Order

Events come in an order that agrees with that of each process. If the source is not causal (`ordered`) and a
monitor reads several processes, a group or all, its events wait and are sorted by their strict time stamps
(`m:witness_monitor_reorder`). The events for all monitors that read all processes are kept once, under the name `all`.
""".

-export([new/1, renew/1, start/4, add_events/3, complete/2, add_gap/3, add_clock/3, clocks/2, pending/1, work/2, fired/2,
         pass/2, stop/1, add_gap_for_all/2]).
-export_type([config/0, monitors/0, reader/0, clock/0, report/0]).

-doc """
`host`: the process that answers for the monitors to the run; `all`: properties over all processes; `ordered`: whether
events have stamps, which put those of several processes in order.
""".
-type config() :: #{host := pid(), all := [witness_instrument_map:entry()], ordered := boolean(),
                    explain := pos_integer(), max_slices => pos_integer(), slice_idle => pos_integer() | infinity,
                    atom() => term()}.

-doc "A monitor: the number of its property, and its number in the run.".
-type reader() :: {Property :: pos_integer(), Id :: pos_integer()}.

-doc "The monitors that have events held back: that of a group, or all that read all processes.".
-type clock() :: reader() | all.

-doc "A report to the run: a monitor was started, a slice was decided, a monitor has ended.".
-type report() :: {monitor, {Host :: pid(), Id :: pos_integer()}, Meta :: map()}
                | {slice, {Host :: pid(), Id :: pos_integer()}, witness_monitor_sliced:outcome()}
                | {verdict, {Host :: pid(), Id :: pos_integer()}, witness_monitor_runner:outcome()}.

-type stamped() :: {Stamp :: integer() | none, witness_event:item()}.
-type held() :: witness_monitor_reorder:order().
-type operation() :: {start, Of :: #{process := _, signature := _, atom() => term()}, Ordered :: boolean()}
                   | {events, [stamped()]} | {clock, integer()} | {passed, integer()} | complete | stopped | {gap, term()}.

%% covered: marks of this property that are not in the dictionary
%% operations: newest first
-record(property, {spec :: witness_monitor_machine:prepared(),
                   covered = 0 :: non_neg_integer(),
                   machines = #{} :: #{Id :: pos_integer() => {held() | none, witness_monitor_machine:machine()}},
                   operations = [] :: [{Id :: pos_integer(), operation()}]}).

%% numbers: of properties that start monitors; property: the last number
%% marked: the property that has its marks in the dictionary
%% all: the monitors that read all processes; held: their events that wait; undefined: none any more, after a gap
%% reports: newest first
%% pending: events that were added since the last work
%% deadlines: the first one of each monitor that has some
%% asked: the time that the events have reached is on its way (`pass/2`)
-record(monitors, {config :: config(),
                   numbers = #{} :: #{Monitor :: {module(), term()} => pos_integer()},
                   property = 0 :: non_neg_integer(),
                   properties = #{} :: #{pos_integer() => #property{}},
                   marked = none :: none | pos_integer(),
                   id = 0 :: non_neg_integer(),
                   all = [] :: [reader()],
                   held = witness_monitor_reorder:new() :: held() | undefined,
                   reports = [] :: [report()],
                   pending = 0 :: non_neg_integer(),
                   deadlines = witness_monitor_expiry:new(0) :: witness_monitor_expiry:idle(),
                   watch = witness_monitor_watch:new() :: witness_monitor_watch:watch(),
                   asked = false :: boolean()}).

-opaque monitors() :: #monitors{}.

-doc "No process was spawned yet. The monitors that read all processes are started here.".
-spec new(config()) -> monitors().
new(#{all := Entries} = Config) ->
    lists:foldl(fun(Entry = #{spec := Spec, name := Name}, M) ->
        Meta = maps:merge(#{spec => Spec, name => Name}, maps:with([version], Entry)),
        {Reader, M1} = start_one(Entry, #{process => all, signature => all}, false, Meta, M),
        M1#monitors{all = M1#monitors.all ++ [Reader]}
    end, #monitors{config = Config}, Entries).

-doc """
Other specifications replace those before. Their modules reuse names, so nothing that is keyed by such a name stays, except
for monitors that go on.
""".
-spec renew(monitors()) -> monitors().
renew(M = #monitors{properties = Properties, marked = Marked}) ->
    Kept = #{N => P || N := P = #property{machines = Machines, operations = Operations} <- Properties,
                       map_size(Machines) > 0 orelse Operations =/= [] orelse N =:= Marked},
    M#monitors{numbers = #{}, properties = Kept}.

-doc """
Starts the monitors that the label of a process names, and lets them read it. `More`: what a monitor has to know besides
(`attached`).
""".
-spec start(witness_event:proc(), {witness_event:signature(), More :: map()},
            {witness_instrument_map:label(), witness_instrument_monitors:alive()}, monitors()) ->
    {{witness_instrument_map:label(), witness_instrument_monitors:alive()}, monitors()}.
start(P, {Signature, More}, {Label, Alive}, M0) ->
    {Started, M} = lists:mapfoldl(fun({Map, Entry = #{group := Group, spec := Spec, name := Name}}, A) ->
        Of = #{process => P, signature => Signature},
        Meta = maps:merge(Of#{spec => Spec, name => Name}, maps:with([version], Entry)),
        {Reader, A1} = start_one(Entry, maps:merge(More, Of), Group, Meta, A),
        {{Map, Reader, Group}, A1}
    end, M0, witness_instrument_map:starts(Label)),
    {witness_instrument_monitors:add_started(Started, Label, Alive), M}.

start_one(#{monitor := Monitor}, Of, Group, Meta, M0) ->
    #monitors{config = #{host := Host, ordered := Ordered}, id = Last, reports = Reports} = M0,
    {Number, M} = property_number(Monitor, M0),
    Reader = {Number, Last + 1},
    {Reader, add(Reader, {start, Of, Group andalso Ordered},
                 M#monitors{id = Last + 1, reports = [{monitor, {Host, Last + 1}, Meta} | Reports]})}.

property_number(Monitor, M = #monitors{numbers = Numbers, property = Last, properties = Properties, config = Config}) ->
    case Numbers of
        #{Monitor := Number} -> {Number, M};
        #{} ->
            Number = Last + 1,
            Given = maps:with([explain, max_slices, slice_idle, stop_time], Config),
            Property = #property{spec = witness_monitor_machine:prepare(Given#{monitor => Monitor})},
            {Number, M#monitors{numbers = Numbers#{Monitor => Number}, property = Number,
                                properties = Properties#{Number => Property}}}
    end.

-doc "Events of processes that have these readers, in order. They go to these, and to the monitors that read all processes.".
-spec add_events([reader()], [stamped()], monitors()) -> monitors().
add_events([], _, M = #monitors{all = []}) -> M;
add_events(Readers, Stamped, M = #monitors{pending = Pending}) ->
    M1 = add_to_each(Readers, {events, Stamped}, M#monitors{pending = Pending + length(Stamped)}),
    case M1 of
        #monitors{all = []} -> M1;
        #monitors{config = #{ordered := false}, all = All} -> add_to_each(All, {events, Stamped}, M1);
        #monitors{held = undefined} -> M1;
        #monitors{held = Held} -> hold_back(Stamped, Held, M1)
    end.

hold_back([], Held, M) -> M#monitors{held = Held};
hold_back([S | Stamped], Held, M = #monitors{all = All}) ->
    case witness_monitor_reorder:add(S, Held) of
        {ok, Held1} -> hold_back(Stamped, Held1, M);
        late -> add_to_each(All, {gap, late}, M#monitors{held = undefined})
    end.

-doc "All processes that these monitors read have ended, and all their events were added.".
-spec complete([reader()], monitors()) -> monitors().
complete(Readers, M) -> add_to_each(Readers, complete, M).

-doc "Events of a process with these readers are missing from here on.".
-spec add_gap([reader()], Reason :: term(), monitors()) -> monitors().
add_gap(Readers, Reason, M = #monitors{all = All}) -> add_to_each(Readers ++ All, {gap, Reason}, M#monitors{held = undefined}).

-doc "No event for these monitors from before this time, in nanoseconds, is on its way any more.".
-spec add_clock(clock(), integer(), monitors()) -> monitors().
add_clock(all, _, M = #monitors{held = undefined}) -> M;
add_clock(all, Time, M = #monitors{held = Held, all = All}) ->
    {Events, Held1} = witness_monitor_reorder:release(Time, Held),
    add_to_each(All, {events, unstamped(Events)}, M#monitors{held = Held1});
add_clock(Reader, Time, M) -> add(Reader, {clock, Time}, M).

-doc "The clocks of these readers, which were given events. The caller knows which of them are groups.".
-spec clocks([reader()], monitors()) -> [clock()].
clocks(Readers, #monitors{all = []}) -> Readers;
clocks(Readers, #monitors{}) -> [all | Readers].

-doc "How many events are pending.".
-spec pending(monitors()) -> non_neg_integer().
pending(#monitors{pending = Pending}) -> Pending.

-doc """
Performs the operations that were added. `Tell` is called with the reports for the run, in order: first which monitors were
started, then what these and others have found. So the run knows of a monitor even if it does not come to an end.
""".
-spec work(fun(([report(), ...]) -> term()), monitors()) -> monitors().
work(Tell, M) -> send_reports(Tell, watch(perform_pending(send_reports(Tell, M)))).

watch(M = #monitors{asked = true}) -> M;
watch(M = #monitors{watch = Watch, deadlines = Deadlines}) ->
    M#monitors{watch = witness_monitor_watch:set(witness_monitor_expiry:next(Deadlines), Watch)}.

-doc """
The message `{timeout, Timer, deadline}` has come. `ask`: the caller finds out up to which time all events were added, and calls `pass/2`.
""".
-spec fired(Timer :: reference(), monitors()) -> {ask | wait, monitors()}.
fired(Timer, M = #monitors{watch = Watch, deadlines = Deadlines}) ->
    case witness_monitor_watch:fired(Timer, Watch) of
        replaced -> {wait, M};
        {ok, Watch1} ->
            case witness_monitor_expiry:next(Deadlines) < erlang:monotonic_time(nanosecond) of
                true -> {ask, M#monitors{watch = Watch1, asked = true}};
                false -> {wait, watch(M#monitors{watch = Watch1})}
            end
    end.

-doc "All events up to this time, in nanoseconds, were added: deadlines before it have passed.".
-spec pass(Time :: integer(), monitors()) -> monitors().
pass(Time, M0) ->
    M = #monitors{deadlines = Deadlines} = perform_pending(add_clock(all, Time, M0#monitors{asked = false})),
    {Readers, Left} = witness_monitor_expiry:due(Time, Deadlines),
    add_to_each(Readers, {passed, Time}, M#monitors{deadlines = Left}).

send_reports(_, M = #monitors{reports = []}) -> M;
send_reports(Tell, M = #monitors{reports = Reports}) ->
    _ = Tell(lists:reverse(Reports)),
    M#monitors{reports = []}.

perform_pending(M = #monitors{properties = Properties}) ->
    Numbers = [Number || Number := #property{operations = [_ | _]} <- Properties],
    (lists:foldl(fun perform_property/2, M, Numbers))#monitors{pending = 0}.

perform_property(Number, M0 = #monitors{config = #{host := Host}}) ->
    M = #monitors{properties = Properties = #{Number := P}, reports = Reports0} = switch_marks(Number, M0),
    #property{operations = Operations, machines = Machines0} = P,
    {Machines, Reports} = perform(lists:reverse(Operations), Machines0, Reports0, {Host, P}),
    note_deadlines(Number, Operations, M#monitors{reports = Reports,
                                                  properties = Properties#{Number := P#property{machines = Machines,
                                                                                                operations = []}}}).

note_deadlines(Number, Operations, M = #monitors{properties = Properties, deadlines = Deadlines}) ->
    #{Number := #property{spec = Spec, machines = Machines}} = Properties,
    case witness_monitor_machine:has_deadlines(Spec) of
        true ->
            %% A deadline that has passed and decided nothing is not waited for again.
            Times = maps:from_list([{Id, case Operation of {passed, Time} -> Time; _ -> witness_monitor_expiry:before_all() end}
                                    || {Id, Operation} <- lists:reverse(Operations)]),
            M#monitors{deadlines = maps:fold(fun(Id, From, A) ->
                note_deadline({Number, Id}, From, maps:get(Id, Machines, none), A)
            end, Deadlines, Times)};
        false -> M
    end.

note_deadline(Reader, _, none, Deadlines) -> witness_monitor_expiry:forget(Reader, Deadlines);
note_deadline(Reader, From, {_, Machine}, Deadlines) ->
    witness_monitor_expiry:set(Reader, witness_monitor_machine:next_deadline(From, Machine), Deadlines).

%% The dictionary has the marks of one property at a time.
switch_marks(Number, M = #monitors{marked = Number}) -> M;
switch_marks(Number, M = #monitors{marked = none}) -> M#monitors{marked = Number};
switch_marks(Number, M = #monitors{marked = Other, properties = Properties}) ->
    #{Other := P = #property{covered = Covered}} = Properties,
    Marked = P#property{covered = Covered bor witness_monitor_machine:take_marks()},
    M#monitors{marked = Number, properties = Properties#{Other := Marked}}.

perform([], Machines, Reports, _) -> {Machines, Reports};
perform([{Id, {start, Of, Ordered}} | Operations], Machines, Reports, Of0 = {_, #property{spec = Spec}}) ->
    Held = case Ordered of true -> witness_monitor_reorder:new(); false -> none end,
    case witness_monitor_machine:new(maps:merge(spec_for(Of, Spec), Of)) of
        {ok, Machine} -> perform(Operations, Machines#{Id => {Held, Machine}}, Reports, Of0);
        {decided, Final} -> perform(Operations, Machines, add_verdict(Id, Final, Reports, Of0), Of0)
    end;
perform([{Id, Operation} | Operations], Machines, Reports, Of) ->
    case Machines of
        #{Id := {Held, Machine}} ->
            case step(Operation, Held, Machine) of
                {Slices, {ok, Held1, Next}} ->
                    perform(Operations, Machines#{Id := {Held1, Next}}, add_slices(Slices, Id, Reports, Of), Of);
                {Slices, {decided, Final}} ->
                    Reports1 = add_verdict(Id, Final, add_slices(Slices, Id, Reports, Of), Of),
                    perform(Operations, maps:remove(Id, Machines), Reports1, Of)
            end;
        #{} -> perform(Operations, Machines, Reports, Of)
    end.

%% `config' and `choice' were prepared for processes that are seen from their births.
spec_for(#{attached := _}, Spec) -> maps:without([config, choice], Spec);
spec_for(_, Spec) -> Spec.

step({events, Stamped}, none, Machine) -> run([E || {_, E} <- Stamped], none, Machine);
step({events, Stamped}, Held, Machine) -> hold_back_all(Stamped, Held, Machine);
step({clock, _}, none, Machine) -> {[], {ok, none, Machine}};
step({clock, Time}, Held, Machine) ->
    {Events, Held1} = witness_monitor_reorder:release(Time, Held),
    run(Events, Held1, Machine);
step({passed, Time}, none, Machine) -> pass(Time, none, Machine);
step({passed, Time}, Held, Machine) ->
    case step({clock, Time}, Held, Machine) of
        {Slices, {ok, Held1, Next}} ->
            {More, Result} = pass(Time, Held1, Next),
            {Slices ++ More, Result};
        Decided -> Decided
    end;
step({gap, _} = Gap, _, Machine) -> decide(witness_monitor_machine:inconclusive(Gap, Machine));
step(How, none, Machine) -> decide(witness_monitor_machine:finish(How, Machine));
step(How, Held, Machine) ->
    case run(witness_monitor_reorder:release_all(Held), none, Machine) of
        {Slices, {ok, none, Next}} ->
            {Last, Final} = witness_monitor_machine:finish(How, Next),
            {Slices ++ Last, {decided, Final}};
        Decided -> Decided
    end.

hold_back_all([], Held, Machine) -> {[], {ok, Held, Machine}};
hold_back_all([S | Stamped], Held, Machine) ->
    case witness_monitor_reorder:add(S, Held) of
        {ok, Held1} -> hold_back_all(Stamped, Held1, Machine);
        late -> decide(witness_monitor_machine:inconclusive({gap, late}, Machine))
    end.

run([], Held, Machine) -> {[], {ok, Held, Machine}};
run(Events, Held, Machine) ->
    case witness_monitor_machine:run(Events, Machine) of
        {Slices, {ok, Next}} -> {Slices, {ok, Held, Next}};
        Decided -> Decided
    end.

pass(Time, Held, Machine) ->
    case witness_monitor_machine:pass(Time, Machine) of
        {Slices, {ok, Next}} -> {Slices, {ok, Held, Next}};
        Decided -> Decided
    end.

decide({Slices, Final}) -> {Slices, {decided, Final}}.

add_slices(Slices, Id, Reports, {Host, _}) ->
    lists:foldl(fun(Outcome, A) -> [{slice, {Host, Id}, Outcome} | A] end, Reports, Slices).

add_verdict(Id, ignored, Reports, {Host, _}) -> [{verdict, {Host, Id}, ignored} | Reports];
add_verdict(Id, Final, Reports, {Host, #property{covered = Covered}}) ->
    [{verdict, {Host, Id}, Final#{covered => Covered bor witness_monitor_machine:read_marks()}} | Reports].

-doc "Watching has ended, and all events were added: undecided monitors are notified.".
-spec stop(monitors()) -> monitors().
stop(M = #monitors{all = All, held = Held}) ->
    Rest = case Held of undefined -> []; _ -> witness_monitor_reorder:release_all(Held) end,
    add_to_all(stopped, add_to_each(All, {events, unstamped(Rest)}, M#monitors{held = undefined})).

-doc "From here on events of unknown processes are missing: no undecided monitor can be judged.".
-spec add_gap_for_all(Reason :: term(), monitors()) -> monitors().
add_gap_for_all(Reason, M) -> add_to_all({gap, Reason}, M).

%% Pending operations are performed first, since monitors that start with them are in no map yet.
add_to_all(Operation, M0) ->
    M = #monitors{properties = Properties} = perform_pending(M0),
    add_to_each([{Number, Id} || Number := #property{machines = Machines} <- Properties, Id := _ <- Machines], Operation, M).

unstamped(Events) -> [{none, E} || E <- Events].

add_to_each(Readers, Operation, M) -> lists:foldl(fun(Reader, A) -> add(Reader, Operation, A) end, M, Readers).

%% A property that is gone has no monitor any more.
add({Number, Id}, Operation, M = #monitors{properties = Properties}) ->
    case Properties of
        #{Number := P = #property{operations = Operations}} ->
            M#monitors{properties = Properties#{Number := P#property{operations = [{Id, Operation} | Operations]}}};
        #{} -> M
    end.
