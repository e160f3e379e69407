-module(witness_inline_monitors).
-moduledoc """
The monitors of a process, which run in the process itself.

All that they need is one term, which the process keeps in its dictionary (`m:witness_inline_process`). Each event gives the
next term. A note of the process records that they have begun (`m:witness_inline_birth_table`). If the only monitor is
satisfied, and that verdict need not be delivered by itself, the note records that too. The process sends to the coordinator of
the run, as the reasons of exit signals:

- `{told, Pid, Told}` (`t:told/0`): what they report, with the verdict of each monitor last;
- `{lost, Pid}` if it notices that the state is gone: monitors without a verdict are then unknown.

A monitor with a verdict is removed, and a process without monitors is not observed any more. No exception of a monitor leaves
this module.

## Marks of actions

Monitors mark actions in the process dictionary (`c:witness_monitor:coverage/1`), here in that of the system's process. If
only one monitor runs, its marks stay until its verdict. Several monitors may use the same marks, so those of each are removed
after each of its steps.
""".

-export([prepare/2, start/5, event/2, mark_waiting/1, mark_running/1, finish/2, stop/2, wants/2, coordinator/1, signatures/1,
         stamp/1, report_lost/2, mark_keys/1]).
-export([finish_dead/3, delete_stored/1]).
-export_type([prepared/0, state/0, entry/0, told/0, dead/0]).

-doc "What a monitor needs apart from its process, prepared once for a run.".
-type prepared() :: #{spec := witness_monitor_machine:prepared(), explain := pos_integer(), kinds := non_neg_integer(),
                      marks := [mark()], does := does(), specification := boolean(), survives := boolean(),
                      exits := boolean(), ends := boolean()}.

-doc """
What is known of a dead process: its signature and monitors, what it has stored, and the reason of its exit if that is known.
""".
-type dead() :: #{process := pid(), signature := witness_event:signature(), entries := [{entry(), prepared()}, ...],
                  life := witness_inline_birth_table:life(), reason := unknown | {ok, term()}}.

-doc """
What a monitor may do in a step. `compute`: only compute and mark actions; `inner`: also what OTP's own modules do; `outer`: also
what is an event.
""".
-type does() :: compute | inner | outer.

-type mark() :: {Key :: atom(), Id :: pos_integer()}.

-doc "A monitor to be started.".
-type entry() :: {N :: pos_integer(), witness_instrument_map:entry()}.

-doc "What monitors report: the verdicts of slices, and the end of each monitor.".
-type told() :: [{slice, N :: pos_integer(), witness_monitor_sliced:outcome() | witness_monitor_sliced:undecided()}
                 | {verdict, N :: pos_integer(), witness_monitor_runner:outcome()}].

%% Where to report, and whether the run goes on.
-record(run, {coordinator :: pid(), switch :: atomics:atomics_ref(), events :: counters:counters_ref(),
              birth_table :: witness_inline_birth_table:table(), kept :: witness_inline_kept:table(),
              cell :: witness_inline_kept:cell(), signatures :: witness_event_wrapper:table()}).

%% What the process has stored (`m:witness_inline_kept') of one monitor. state: the last one stored, with its number; known: all
%% that were stored, with their numbers; missed: how many other states came since one of these.
-record(stored, {state :: term(), number = 0 :: witness_inline_kept:state_number(),
                 known = [] :: [{term(), witness_inline_kept:state_number()}],
                 missed = 0 :: non_neg_integer(), rows = false :: boolean()}).

%% The same of several. last: the number of the last row of events that the stored state includes; words: the size of that state;
%% later: how many events were stored since.
-record(journal, {state :: term(), last = 0 :: non_neg_integer(), words = 0 :: non_neg_integer(), later = 0 :: non_neg_integer(),
                  rows = false :: boolean()}).

%% What changes rarely in a process with one monitor. look: events until the process checks the run again; seen: how many events the
%% monitor had seen when `left' was last set to `chunk'.
%% If a monitor only computes, its steps have no states: an explanation computes them again. It starts from the state before
%% the `older' steps, which are the last `chunk', and from `first', the state before the other steps.
-record(rare, {run :: #run{}, n :: pos_integer(), process :: pid(), marks :: [mark()], does :: does(),
               config :: witness_monitor_instance:config(),
               chunk :: pos_integer(), look :: integer(), seen = 0 :: non_neg_integer(), stored :: #stored{},
               states :: pos_integer(), first :: term(), older :: {First :: term(), [short()]}}).

%% A step before it is explained. With a thousand processes that take turns, the memory that each keeps determines the cost of
%% an event. So a step is a message that was taken; or a receiver with its message; or, after `[]', any event.
-type short() :: term() | nonempty_improper_list(To :: term(), Message :: term()).

%% One monitor without a filter or slices is by far the most common case. Its events make next to no garbage: each one makes
%% this tuple and one step, and reads nothing else. wants: the kinds of events that are read, as bits; left: events until the
%% code decides which steps stay, and `rare' changes.
-record(one, {wants :: non_neg_integer(), left :: non_neg_integer(), rare :: #rare{},
              handle :: fun((witness_event:event(), term()) -> term()), state :: term(),
              steps = [] :: [short() | {witness_event:event(), term()}]}).
%% seen: events when `left' was last at its maximum; later: events that are not stored yet, the last one first.
-record(many, {wants :: non_neg_integer(), left :: non_neg_integer(), run :: #run{}, seen = 0 :: non_neg_integer(),
               journal = #journal{} :: #journal{},
               later = [] :: [witness_event:event()] | too_many, does :: does(),
               monitors :: [{N :: pos_integer(), Kinds :: non_neg_integer(), [mark()],
                                                 Covered :: non_neg_integer(), witness_monitor_machine:machine()}]}).

-doc "Other modules read only the second element: the kinds of events that are wanted, as bits.".
-type state() :: #one{} | #many{}.

%% Events between two checks of the run. A check costs as much as half an event.
-define(CHECK_EVENTS, 64).
%% The fewest events between two decisions which steps stay.
-define(MIN_CHUNK_EVENTS, 12).
%% The entry of the dictionary. While a monitor runs that does more than compute, it is the time when that began: a small number.
-define(KEY, '$witness_inline').
%% The index in the switch of the number that the coordinator increments four times a second.
-define(CLOCK_INDEX, 3).

-define(STAMPED, 32).
%% A bit among the kinds: the monitor only computes.
-define(COMPUTES, 64).
%% The same, and with the same result in any process: the coordinator can continue the monitor when the process is dead.
-define(SURVIVES, 128).
%% The monitors declare that they read exits, and the process has not waited yet.
-define(ENDS, 256).
%% The kinds of events that are actions of the process.
-define(ACTS, (1 bor 8 bor 16 bor 512 bor 1024)).
-define(EXIT, 4).

%% The most states of a specification that a process stores. After twice as many others in a row it gives up. A monitor that is
%% written by hand mostly counts something, and has a new state each time.
-define(MAX_STATES, 8).
-define(MAX_STATES_BY_HAND, 3).
%% Up to this many events are stored instead of a state, also if the state is small.
-define(MAX_LATER_EVENTS, 64).
%% How many milliseconds a process waits for the coordinator, once.
-define(WATCHED_MS, 1000).
%% No monitor has this state.
-define(NO_STATE, '$witness_no_state').
%% A new mark is in the dictionary (`m:witness_spec_code').
-define(MARKED, '$witness_marked').

-doc "What all monitors of this kind in a run have in common, with the traits of their module.".
-spec prepare(witness_monitor_machine:prepared(), witness_inline_traits:traits()) -> prepared().
prepare(#{monitor := Monitor, explain := Explain} = Spec, Traits) ->
    Prepared = witness_monitor_machine:prepare(Spec),
    Traits#{spec => case is_by_kind(witness_monitor_alphabet:of_monitor(Monitor)) of
                true -> Prepared#{choice => all};
                false -> Prepared
            end,
            explain => Explain, kinds => kind_bits(witness_monitor_alphabet:kinds(Monitor)), marks => coverage(Monitor),
            exits => reads_exit_reason(Monitor, Traits), ends => needs_exit_reason(Monitor, Traits)}.

%% Whether the reason of an exit may matter. For a monitor that is written by hand that is not known.
reads_exit_reason({Module, Arg}, #{specification := true}) ->
    lists:member(Arg, lists:append([Reading || {witness_exits, Reading} <- Module:module_info(attributes)]));
reads_exit_reason(_, #{specification := false}) -> true.

%% For a monitor that is written by hand, a process waits for the coordinator only if the monitor declares that it reads exits.
needs_exit_reason(Monitor, #{specification := Specification} = Traits) ->
    case witness_monitor_alphabet:kinds(Monitor) of
        all -> Specification andalso reads_exit_reason(Monitor, Traits);
        Kinds -> lists:member(exit, Kinds) andalso reads_exit_reason(Monitor, Traits)
    end.

%% If an alphabet names only kinds, the caller of `event/2' filters by it.
is_by_kind(all) -> true;
is_by_kind(Alphabet) -> lists:all(fun is_atom/1, Alphabet).

%% Calls and returns are events only for monitors that name the functions. These have an alphabet that chooses by more than the
%% kind, so their machine leaves out the calls that other monitors name.
kind_bits(all) -> 31;
kind_bits(Kinds) -> lists:foldl(fun(Kind, Bits) -> Bits bor bit(Kind) end, 0, Kinds).

bit(fork) -> 1;
bit(init) -> 2;
bit(exit) -> 4;
bit(send) -> 8;
bit(recv) -> 16;
bit(call) -> 512;
bit(return) -> 1024.

%% These atoms exist in the monitor's own code.
coverage({Module, Arg}) ->
    try
        true = erlang:function_exported(Module, coverage, 1),
        [{binary_to_atom(<<"$witness_", (integer_to_binary(Id))/binary>>), Id}
         || #{id := Id} <- Module:coverage(Arg), is_integer(Id), Id > 0]
    catch
        _:_ -> []
    end.

-doc """
Starts monitors for the calling process, which has a note of them, and gives them its birth. `none`: all of them have their
verdicts by then.
""".
-spec start(witness_event:signature(), Parent :: pid() | undefined, [entry(), ...], witness_inline_kept:cell(),
            witness_inline_registry:observer()) -> state() | none.
start(Signature, Parent, Entries, Cell, Observer) ->
    #{coordinator := Coordinator, switch := Switch, events := Events, birth_table := BirthTable, kept := Kept, stamped := Stamped,
      prepared := Prepared} = Observer,
    Run = #run{coordinator = Coordinator, switch = Switch, events = Events, birth_table = BirthTable, kept = Kept, cell = Cell,
               signatures = witness_event_wrapper:of_config(Observer)},
    {Monitors, Told} = lists:foldr(fun({N, #{monitor := Monitor}}, {Started, Refused}) ->
        #{Monitor := #{spec := Spec, marks := Marks} = Of} = Prepared,
        put(?KEY, clock(Run)),
        case witness_monitor_machine:new(Spec#{process => self(), signature => Signature}) of
            {ok, Machine} -> {[{N, Of, take_marks(Marks, 0), Machine} | Started], Refused};
            {decided, ignored} -> {Started, [{verdict, N, ignored} | Refused]};
            {decided, Final} -> {Started, [{verdict, N, put_coverage(Final, Marks, 0)} | Refused]}
        end
    end, {[], []}, Entries),
    ok = report(Told, Run),
    case new_state(Monitors, case Stamped of true -> ?STAMPED; false -> 0 end, Run) of
        none -> none;
        State when element(2, State) band 2 =:= 0 -> put_birth(State);
        State ->
            put(?KEY, State),
            case event({init, self(), Parent, Signature, stamp(State)}, State) of
                none -> none;
                Next -> put_birth(Next)
            end
    end.

%% A reader can compute the birth again up to this state, but not its time.
put_birth(S) when element(2, S) band ?SURVIVES =:= 0 -> S;
put_birth(S) ->
    _ = erase(?MARKED),
    Again = element(2, S) band ?STAMPED =:= 0,
    case S of
        #one{rare = Rare} when Again -> S#one{rare = Rare#rare{stored = #stored{state = S#one.state, known = [{S#one.state, 0}]}}};
        #one{rare = Rare} -> S#one{rare = Rare#rare{stored = #stored{state = ?NO_STATE}}};
        #many{} when Again -> S#many{journal = #journal{state = state_keys(S)}, later = []};
        #many{} -> S#many{journal = #journal{state = ?NO_STATE}, later = too_many}
    end.

new_state([], _, _) -> none;
new_state([{N, #{kinds := Kinds, marks := Marks, does := Does, explain := Explain} = Of, 0, Machine}] = Monitors, Stamped, Run) ->
    case witness_monitor_machine:instance(Machine) of
        none -> new_many(Monitors, Stamped, Run);
        {Config, Instance} ->
            Chunk = max(?MIN_CHUNK_EVENTS, Explain),
            {First, 0, []} = witness_monitor_instance:save(Instance),
            Computes = case Does of compute -> ?COMPUTES; _ -> 0 end,
            #one{wants = Kinds bor Stamped bor Computes bor survival_bits([Of]), left = Chunk, state = First,
                 handle = witness_monitor_instance:callback(Config),
                 rare = #rare{run = Run, n = N, process = self(), marks = Marks, does = Does, config = Config, chunk = Chunk,
                              look = ?CHECK_EVENTS, stored = #stored{},
                              states = case Of of #{specification := true} -> ?MAX_STATES; #{} -> ?MAX_STATES_BY_HAND end,
                              first = First, older = {First, []}}}
    end;
new_state(Monitors, Stamped, Run) -> new_many(Monitors, Stamped, Run).

new_many(Monitors, Stamped, Run) ->
    Ms = [{N, Kinds, Marks, Covered, Machine} || {N, #{kinds := Kinds, marks := Marks}, Covered, Machine} <- Monitors],
    #many{wants = wanted_kinds(Ms) bor Stamped bor survival_bits([Of || {_, Of, _, _} <- Monitors]), left = ?CHECK_EVENTS,
          run = Run, does = lists:max([Does || {_, #{does := Does}, _, _} <- Monitors]), monitors = Ms}.

survival_bits(Monitors) ->
    case lists:all(fun(#{survives := Survives}) -> Survives end, Monitors) of
        false -> 0;
        true -> ?SURVIVES bor case lists:any(fun(#{ends := Ends}) -> Ends end, Monitors) of true -> ?ENDS; false -> 0 end
    end.

wanted_kinds(Monitors) -> lists:foldl(fun({_, Kinds, _, _, _}, Bits) -> Bits bor Kinds end, 0, Monitors).

-doc "Whether some monitor reads events of this kind.".
-spec wants(witness_event:kind(), state()) -> boolean().
wants(Kind, State) -> element(2, State) band bit(Kind) =/= 0.

-doc "The process that gets the reports of these monitors.".
-spec coordinator(state()) -> pid().
coordinator(#one{rare = #rare{run = #run{coordinator = Coordinator}}}) -> Coordinator;
coordinator(#many{run = #run{coordinator = Coordinator}}) -> Coordinator.

-doc "The rows of the project for signatures.".
-spec signatures(state()) -> witness_event_wrapper:table().
signatures(#one{rare = #rare{run = #run{signatures = Table}}}) -> Table;
signatures(#many{run = #run{signatures = Table}}) -> Table.

-doc "The time for an event, if events have times.".
-spec stamp(state()) -> witness_event:ts().
stamp(State) when element(2, State) band ?STAMPED =:= 0 -> undefined;
stamp(_) -> erlang:monotonic_time(nanosecond).

-doc """
An event of a kind that is wanted. `none`: no monitor is left that reads more.

While a monitor runs that does more than compute, the dictionary has another entry. If that entry has changed afterwards, the
monitor has done something that is an event itself. Such a monitor cannot go on.
""".
-spec event(witness_event:event(), state()) -> state() | none.
event(E, #one{wants = Wants, left = Left, handle = Handle, state = State, steps = Steps} = S)
  when Left > 0, Wants band ?COMPUTES =/= 0 ->
    try Handle(E, State) of
        {ok, Next} -> S#one{left = Left - 1, state = Next, steps = [shorten(E) | Steps]};
        Result -> decide(Result, E, S)
    catch
        Class:Reason:Stack -> decide(witness_monitor_instance:crash(Class, Reason, Stack), E, S)
    end;
event(E, #one{left = Left, handle = Handle, rare = #rare{does = Does, run = Run}, state = State, steps = Steps} = S)
  when Left > 0 ->
    Expected = expected_entry(Does, Run),
    Result = try Handle(E, State)
             catch Class:Reason:Stack -> witness_monitor_instance:crash(Class, Reason, Stack)
             end,
    ok = resume(Does),
    case get(?KEY) of
        Expected ->
            case Result of
                {ok, Next} -> S#one{left = Left - 1, state = Next, steps = [{E, Next} | Steps]};
                _ -> decide(Result, E, S)
            end;
        _ -> crash_reentered(S)
    end;
event(E, #one{rare = #rare{look = Look, chunk = Chunk, seen = Seen, run = Run}} = S) ->
    {Before, Steps} = keep_steps(S),
    Rare = Before#rare{seen = Seen + Chunk},
    Kept = S#one{left = Chunk, steps = Steps},
    case Look > Chunk of
        true -> retry(E, Kept#one{rare = Rare#rare{look = Look - Chunk}});
        false ->
            Looked = Kept#one{rare = Rare#rare{look = ?CHECK_EVENTS}},
            ok = witness_inline_kept:put_count(Run#run.cell, Seen + Chunk),
            case check_run(uncounted_events(S), Run) of
                true -> retry(E, Looked);
                false -> finish(stopped, Looked), none
            end
    end;
event(E, #many{left = 0, seen = Before, later = Later} = S0) ->
    Seen = Before + ?CHECK_EVENTS,
    %% A process that does not wait stops keeping events for that.
    S = S0#many{seen = Seen, later = case is_list(Later) andalso length(Later) > ?MAX_LATER_EVENTS of
        true -> too_many;
        false -> Later
    end},
    ok = witness_inline_kept:put_count(S#many.run#run.cell, Seen),
    case check_run(?CHECK_EVENTS, S#many.run) of
        true -> event(E, S#many{left = ?CHECK_EVENTS});
        false -> finish(stopped, S#many{left = ?CHECK_EVENTS}), none
    end;
event(E, #many{left = Left, run = Run, does = Does, monitors = Monitors} = S0) ->
    S = S0#many{later = case S0 of
        %% The reader of what is stored computes the birth again.
        #many{later = Later} when element(1, E) =:= init -> Later;
        #many{wants = Wants, later = Later} when Wants band ?SURVIVES =/= 0, is_list(Later) -> [E | Later];
        #many{later = Later} -> Later
    end},
    Expected = expected_entry(Does, Run),
    {Next, Told} = run_all(Monitors, bit(element(1, E)), E, [], []),
    ok = resume(Does),
    case get(?KEY) of
        Expected ->
            %% A slice must not be reported twice: the state is stored without it before it is reported.
            S1 = case Told =/= [] andalso Next =/= [] andalso S#many.wants band ?SURVIVES =/= 0 of
                true -> element(2, store(S#many{left = Left - 1, monitors = Next}, false));
                false -> S#many{left = Left - 1, monitors = Next}
            end,
            ok = report(Told, Run),
            case Next of
                [] ->
                    _ = erase(?MARKED),
                    ok = count(uncounted_events(S) + 1, Run),
                    none;
                _ when Told =:= [] -> S1;
                _ -> S1#many{wants = wanted_kinds(Next) bor (S#many.wants band (?STAMPED bor ?SURVIVES bor ?ENDS))}
            end;
        _ ->
            finish({crashed, reentered}, S),
            none
    end.

%% A message takes one cell, without a tuple around it.
-dialyzer({no_improper_lists, shorten/1}).
shorten({recv, _, undefined, Message, undefined}) when not is_list(Message); Message =:= [] -> Message;
shorten({send, _, To, Message, undefined}) -> [To | Message];
shorten(E) -> [[] | E].

lengthen([[] | E], _) -> E;
lengthen([To | Message], P) -> {send, P, To, Message, undefined};
lengthen(Message, P) -> {recv, P, undefined, Message, undefined}.

%% The entry that must be in the dictionary after the step of the monitors. It shows that a monitor that may take long is running.
expected_entry(compute, _) -> get(?KEY);
expected_entry(Does, Run) ->
    ok = case Does of outer -> witness_inline_outside:pause(); inner -> ok end,
    Time = clock(Run),
    put(?KEY, Time),
    Time.

clock(#run{switch = Switch}) -> atomics:get(Switch, ?CLOCK_INDEX).

resume(outer) -> witness_inline_outside:resume();
resume(_) -> ok.

%% The steps that stay. Earlier steps are at most one chunk.
keep_steps(#one{rare = #rare{does = compute, first = First} = Rare, state = State, steps = Steps}) ->
    {Rare#rare{first = State, older = {First, Steps}}, []};
keep_steps(#one{rare = #rare{chunk = Chunk} = Rare, steps = Steps}) ->
    {Rare, lists:sublist(Steps, Chunk)}.

%% `event/2' requires that the dictionary has the current state.
retry(E, S) ->
    put(?KEY, S),
    event(E, S).

crash_reentered(S) ->
    finish({crashed, reentered}, S),
    none.

decide(Result, E, #one{rare = #rare{config = Config}} = S) ->
    Told = case Result of {verdict, yes, Info} -> note_satisfied(Info, S); _ -> false end,
    Told orelse begin
        {decided, Outcome} = witness_monitor_instance:result(Result, E, Config, instance(S)),
        report_end(Outcome, S)
    end,
    ok = count(uncounted_events(S) + 1, S#one.rare#rare.run),
    none.

report_end(Outcome, #one{rare = #rare{run = Run, n = N, marks = Marks}}) ->
    report([{verdict, N, put_coverage(witness_monitor_machine:final(Outcome), Marks, 0)}], Run).

%% Records the verdict in the note if it need not be delivered by itself, and returns whether it did. The system may load telemetry
%% at any time.
note_satisfied(Info, #one{rare = #rare{run = #run{switch = Switch, birth_table = BirthTable}, n = N, marks = Marks}}) ->
    atomics:get(Switch, 2) =:= 0 andalso not erlang:function_exported(telemetry, execute, 3)
        andalso witness_inline_birth_table:put_verdict(N, witness_monitor_instance:is_vacuous(Info), read_marks(Marks), BirthTable)
        andalso begin
            _ = erase(?MARKED),
            _ = take_marks(Marks, 0),
            true
        end.

instance(#one{left = Left, rare = #rare{chunk = Chunk, seen = Seen}, state = State} = S) ->
    {ok, Instance} = witness_monitor_instance:load({State, Seen + Chunk - Left, steps_with_states(S)}),
    Instance.

steps_with_states(#one{rare = #rare{does = compute, process = P, first = First, older = {Before, Older}}, handle = Handle,
                       steps = Steps}) ->
    replay_steps(lists:reverse(Steps), P, Handle, First, replay_steps(lists:reverse(Older), P, Handle, Before, []));
steps_with_states(#one{steps = Steps}) -> Steps.

%% A monitor that only computes goes through the same states again, except one that uses the pid of its own process. So these
%% states are for explanations only.
replay_steps([], _, _, _, Steps) -> Steps;
replay_steps([Short | Shorts], P, Handle, State, Steps) ->
    E = lengthen(Short, P),
    Next = try Handle(E, State) of
        {ok, Same} -> Same;
        _ -> State
    catch _:_ -> State
    end,
    replay_steps(Shorts, P, Handle, Next, [{E, Next} | Steps]).

run_all([], _, _, Next, Told) ->
    {lists:reverse(Next), lists:append(lists:reverse(Told))};
run_all([{_, Kinds, _, _, _} = Monitor | Monitors], Bit, E, Next, Told) when Kinds band Bit =:= 0 ->
    run_all(Monitors, Bit, E, [Monitor | Next], Told);
run_all([{N, Kinds, Marks, Before, Machine} | Monitors], Bit, E, Next, Told) ->
    {Slices, Result} = witness_monitor_machine:run([E], Machine),
    Covered = take_marks(Marks, Before),
    case Result of
        {ok, Machine1} when Slices =:= [] ->
            run_all(Monitors, Bit, E, [{N, Kinds, Marks, Covered, Machine1} | Next], Told);
        {ok, Machine1} ->
            run_all(Monitors, Bit, E, [{N, Kinds, Marks, Covered, Machine1} | Next], [slice_reports(N, Slices) | Told]);
        {decided, Final} ->
            run_all(Monitors, Bit, E, Next, [slice_reports(N, Slices) ++ [{verdict, N, Final#{covered => Covered}}] | Told])
    end.

slice_reports(N, Slices) -> [{slice, N, Outcome} || Outcome <- Slices].

-doc """
The process waits next, so this stores the state of its monitors for the time when it is dead. Only the calling process can do that,
and only while all that it has done is reported.

The result has the cell that says that the process waits, or `none` if it does not say so. If its monitors read its end, the process
waits at this point, once, until the coordinator monitors it: the coordinator could not learn the reason later.
""".
-spec mark_waiting(state()) -> {witness_inline_kept:cell() | none, state()}.
mark_waiting(S) when element(2, S) band ?ENDS =/= 0 ->
    Result = mark_waiting(setelement(2, S, element(2, S) bxor ?ENDS)),
    %% The mark is set before this, so a signal during it ends a process that waits.
    ok = wait_until_watched(coordinator(S)),
    Result;
mark_waiting(#one{left = Left, state = State,
                  rare = #rare{chunk = Chunk, seen = Seen, stored = #stored{state = State, number = Number},
                               run = #run{cell = Cell}}} = S) ->
    case get(?MARKED) of
        undefined ->
            ok = witness_inline_kept:mark_waiting(Cell, Seen + Chunk - Left, Number),
            {Cell, S};
        _ -> store_and_mark(S)
    end;
mark_waiting(S) -> store_and_mark(S).

store_and_mark(S) ->
    #run{cell = Cell} = run_of(S),
    {Number, Next} = store(S, erase(?MARKED) =/= undefined),
    case witness_inline_spawn:is_pending() of
        %% The birth of a child is not reported yet.
        true -> put(?MARKED, true), {none, Next};
        false when Number =:= unknown -> {none, Next};
        false ->
            ok = witness_inline_kept:mark_waiting(Cell, event_count(S), Number),
            {Cell, Next}
    end.

store(#one{state = State, rare = #rare{stored = Left, states = Most, n = N, run = #run{kept = Kept, cell = Cell},
                                       marks = Marks} = Rare} = S, Marked) ->
    _ = Marked andalso witness_inline_kept:put_coverage(Kept, read_marks(Marks)),
    #stored{known = Known, missed = Missed} = Left,
    Now = fun(L) -> S#one{rare = Rare#rare{stored = L#stored{rows = L#stored.rows orelse Marked}}} end,
    case lists:keyfind(State, 1, Known) of
        {Same, Number} when Same =:= State -> {Number, Now(Left#stored{state = State, number = Number, missed = 0})};
        _ when length(Known) < Most ->
            Number = length(Known),
            ok = witness_inline_kept:put_state(Kept, Number, {N, State}),
            {Number, Now(Left#stored{state = State, number = Number, known = [{State, Number} | Known], rows = true})};
        %% To store each state would cost several times what the event does.
        _ when Missed < 2 * Most -> {unknown, Now(Left#stored{missed = Missed + 1})};
        _ ->
            ok = witness_inline_kept:mark_unknown(Cell, event_count(S)),
            {unknown, (Now(Left))#one{wants = S#one.wants band bnot ?SURVIVES}}
    end;
store(#many{run = #run{kept = Kept, cell = Cell}, journal = Journal, later = Events, monitors = Monitors} = S, _) ->
    #journal{last = Last, words = Words, later = Later} = Journal,
    Next = case state_keys(S) of
        Same when Same =:= Journal#journal.state -> Journal;
        Shown when is_list(Events), Later + length(Events) =< max(?MAX_LATER_EVENTS, Words div 8) ->
            ok = witness_inline_kept:add_events(Kept, Cell, lists:reverse(Events)),
            Journal#journal{state = Shown, later = Later + length(Events), rows = true};
        Shown ->
            #journal{state = Shown, words = erts_debug:flat_size(Monitors), rows = true,
                     last = witness_inline_kept:put_states(Kept, Cell, Last, Monitors)}
    end,
    {0, S#many{journal = Next, later = []}}.

%% Terms that are equal if the monitors are in the same states.
state_keys(#many{monitors = Monitors}) ->
    [{N, Covered, witness_monitor_machine:state_key(Machine)} || {N, _, _, Covered, Machine} <- Monitors].

event_count(#one{left = Left, rare = #rare{chunk = Chunk, seen = Seen}}) -> Seen + Chunk - Left;
event_count(#many{left = Left, seen = Seen}) -> Seen + ?CHECK_EVENTS - Left.

run_of(#one{rare = #rare{run = Run}}) -> Run;
run_of(#many{run = Run}) -> Run.

%% No message stays in the mailbox, whether the coordinator answers or is dead.
wait_until_watched(Coordinator) ->
    Ref = monitor(process, Coordinator, [{alias, reply_demonitor}]),
    ok = signal({watch, self(), Ref}, Coordinator),
    receive
        {watched, Ref} -> ok;
        {'DOWN', Ref, process, Coordinator, _} -> ok
    %% If the process goes on before the coordinator monitors it, the reason may be missing. A later answer is not delivered.
    after ?WATCHED_MS ->
        _ = demonitor(Ref, [flush]),
        receive {watched, Ref} -> ok after 0 -> ok end
    end.

-doc "The monitors have ended: deletes what the process has stored of them.".
-spec delete_stored(state()) -> ok.
delete_stored(#one{rare = #rare{stored = #stored{rows = true, known = Known}, run = #run{kept = Kept}}}) ->
    witness_inline_kept:delete_states(Kept, length(Known));
delete_stored(#many{journal = #journal{rows = true}, run = #run{cell = Cell, kept = Kept}}) ->
    witness_inline_kept:delete({self(), Cell}, Kept);
delete_stored(_) -> ok.

-doc "The process does something next, or has taken a message.".
-spec mark_running(state()) -> ok.
mark_running(#one{left = Left, rare = #rare{chunk = Chunk, seen = Seen, run = #run{cell = Cell}}}) ->
    witness_inline_kept:mark_running(Cell, Seen + Chunk - Left);
mark_running(#many{run = #run{cell = Cell}} = S) ->
    witness_inline_kept:mark_running(Cell, event_count(S)).

-doc """
What the monitors of a dead process report of its end, and the number of events that were not counted. If the process waited, or
if its monitors read nothing that it could have done, it ends as it would have by itself, with the event `exit`. Otherwise
events may be missing.
""".
-spec finish_dead(dead(), Stamped :: boolean(), witness_inline_kept:table()) -> {told(), Events :: non_neg_integer()}.
finish_dead(#{process := P, life := {_, Cell}, entries := Entries, reason := Reason} = Dead, Stamped, Kept) ->
    #{waits := Waits, gave_up := GaveUp, uncounted := Uncounted} = Found = witness_inline_kept:read({P, Cell}, Kept),
    Kinds = lists:foldl(fun({_, #{kinds := Read, exits := Exits}}, Bits) -> kinds_that_matter(Read, Exits) bor Bits end, 0,
                        Entries),
    Ts = case Stamped of true -> erlang:monotonic_time(nanosecond); false -> undefined end,
    {How, Exit} = case Reason of
        _ when GaveUp, Kinds band ?ACTS =/= 0 -> {{gap, signal_state}, []};
        _ when not Waits, Kinds band ?ACTS =/= 0 -> {{gap, signal}, []};
        unknown when Kinds band ?EXIT =/= 0 -> {{gap, signal_reason}, []};
        unknown -> {complete, []};
        {ok, Why} -> {complete, [{exit, P, Why, Ts}]}
    end,
    Told = case restore(Dead, Found, Stamped, How) of
        {ok, Monitors} ->
            {Left, Last} = lists:foldl(fun run_event/2, {Monitors, []}, Exit),
            Last ++ end_all(How, Left);
        unknown ->
            #{events := Total, covered := Covered} = Found,
            Gap = case How of complete -> {gap, signal_state}; _ -> How end,
            [{verdict, N, (witness_monitor_machine:failure_outcome(Gap))#{skipped := Total, covered := Covered}} ||
             {{N, _}, _} <- Entries]
    end,
    _ = erase(?MARKED),
    {Told, Uncounted}.

kinds_that_matter(Kinds, true) -> Kinds;
kinds_that_matter(Kinds, false) -> Kinds band bnot ?EXIT.

run_event(E, {Monitors, _}) -> run_all(Monitors, bit(element(1, E)), E, [], []).

%% What these monitors report on the way to the last state of the process, it has reported itself.
restore(#{entries := Entries} = Dead, #{state := State, later := Later} = Found, Stamped, How) ->
    case lists:all(fun({_, #{survives := Survives}}) -> Survives end, Entries) andalso State of
        false -> unknown;
        unknown -> unknown;
        {one, Is} -> {ok, [restore_single(Is, Entries, Found)]};
        {several, Several} -> {ok, replay_rows(Later, Several)};
        none when Stamped -> unknown;
        none ->
            Born = replay_birth(Dead),
            case Born of
                [{N, _, _, AtBirth, Machine}] when Later =:= [] ->
                    case witness_monitor_machine:instance(Machine) of
                        none -> {ok, Born};
                        _ when How =/= complete -> unknown;
                        {_, Instance} ->
                            {Is, _, _} = witness_monitor_instance:save(Instance),
                            {ok, [restore_single({N, Is}, Entries, Found#{covered := map_get(covered, Found) bor AtBirth})]}
                    end;
                _ -> {ok, replay_rows(Later, Born)}
            end
    end.

replay_birth(#{process := P, signature := Signature, entries := Entries, life := {Parent, _}}) ->
    New = [{N, Kinds, Marks, take_marks(Marks, 0), Machine}
           || {{N, _}, #{spec := Spec, kinds := Kinds, marks := Marks}} <- Entries,
              {ok, Machine} <- [witness_monitor_machine:new(Spec#{process => P, signature => Signature})]],
    {Born, _} = run_event({init, P, Parent, Signature, undefined}, {New, []}),
    Born.

%% The only monitor that has not refused the process.
restore_single({N, State}, Entries, #{events := Events, covered := Covered}) ->
    [#{spec := #{config := Config}, kinds := Kinds, marks := Marks}] = [Of || {{M, _}, Of} <- Entries, M =:= N],
    {ok, Instance} = witness_monitor_instance:load({State, Events, []}),
    {N, Kinds, Marks, Covered, witness_monitor_machine:of_instance(Config, Instance)}.

replay_rows(Later, Monitors) ->
    {Now, _} = lists:foldl(fun run_event/2, {Monitors, []}, lists:append(Later)),
    Now.

-doc "All monitors end, because nothing more comes, or inconclusive for a reason.".
-spec finish(complete | stopped | witness_monitor_instance:reason(), state()) -> ok.
finish(complete, #one{rare = #rare{run = Run, config = Config}, state = State} = S) ->
    ok = count(uncounted_events(S), Run),
    Judged = witness_monitor_instance:judge(complete, Config, State),
    Told = case Judged of {yes, Info} -> note_satisfied(Info, S); _ -> false end,
    case Told of
        true -> ok;
        false -> report_end(witness_monitor_instance:conclude(Judged, complete, Config, instance(S)), S)
    end;
finish(How, S) ->
    {Run, Monitors} = parts(S),
    ok = count(uncounted_events(S), Run),
    report(end_all(How, Monitors), Run).

-doc """
The same when the run stops, for the state and the marks that the caller has read from another process; and the number of events
that were not counted. The marks are in the caller's dictionary meanwhile.
""".
-spec stop([{Key :: atom(), Id :: pos_integer()}], state()) -> {told(), Events :: non_neg_integer()}.
stop(Taken, S) ->
    lists:foreach(fun({Key, Id}) -> put(Key, Id) end, Taken),
    {_, Monitors} = parts(S),
    Told = end_all(stopped, Monitors),
    lists:foreach(fun({Key, _}) -> erase(Key) end, Taken),
    {Told, uncounted_events(S)}.

parts(#one{rare = #rare{run = Run, n = N, marks = Marks, config = Config}} = S) ->
    {Run, [{N, 31, Marks, 0, witness_monitor_machine:of_instance(Config, instance(S))}]};
parts(#many{run = Run, monitors = Monitors}) ->
    {Run, Monitors}.

%% Events since the last check of the run.
uncounted_events(#one{left = Left, rare = #rare{look = Look, chunk = Chunk}}) -> ?CHECK_EVENTS - Look + Chunk - Left;
uncounted_events(#many{left = Left}) -> ?CHECK_EVENTS - Left.

end_all(How, Monitors) -> lists:append([end_one(How, Monitor) || Monitor <- Monitors]).

end_one(How, {N, _, Marks, Before, Machine}) ->
    {Slices, Final} = case How of
        _ when How =:= complete; How =:= stopped -> witness_monitor_machine:finish(How, Machine);
        Reason -> witness_monitor_machine:inconclusive(Reason, Machine)
    end,
    slice_reports(N, Slices) ++ [{verdict, N, put_coverage(Final, Marks, Before)}].

put_coverage(Final, Marks, Before) ->
    _ = erase(?MARKED),
    Final#{covered => take_marks(Marks, Before)}.

read_marks(Marks) -> lists:foldl(fun({_, Id}, Mask) -> Mask bor (1 bsl Id) end, 0,
                                 [Mark || {Key, _} = Mark <- Marks, get(Key) =/= undefined]).

%% The mask of `Before' and the marks in the dictionary, which are removed.
take_marks(Marks, Before) ->
    lists:foldl(fun({Key, Id}, Mask) ->
        case get(Key) of
            undefined -> Mask;
            _ -> erase(Key), Mask bor (1 bsl Id)
        end
    end, Before, Marks).

-doc "The keys of marks that processes with these monitors may have besides their state.".
-spec mark_keys([prepared()]) -> [atom()].
mark_keys(Prepared) -> lists:usort([Key || #{marks := Marks} <- Prepared, {Key, _} <- Marks]).

-doc "The state is gone: other code has deleted the dictionary.".
-spec report_lost(pid(), Coordinator :: pid()) -> ok.
report_lost(P, Coordinator) ->
    signal({lost, P}, Coordinator).

-spec report(told(), #run{}) -> ok.
report([], _) -> ok;
report(Told, #run{coordinator = Coordinator}) ->
    signal({told, self(), Told}, Coordinator).

%% The coordinator traps exits. Tracing reports each message of the process, also to another run that observes it; it does not
%% report exit signals, which arrive in the order of the messages.
signal(Report, Coordinator) ->
    true = exit(Coordinator, Report),
    ok.

count(0, _) -> ok;
count(Count, #run{events = Events}) -> counters:add(Events, 1, Count).

%% Whether the run goes on. Counts the events since the last check.
check_run(Count, #run{switch = Switch, events = Events}) ->
    ok = counters:add(Events, 1, Count),
    atomics:get(Switch, 1) =:= 1.
