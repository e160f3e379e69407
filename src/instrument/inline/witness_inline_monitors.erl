-module(witness_inline_monitors).
-moduledoc """
The monitors of a process, which run in the process itself.

All that they need is one term, which the process keeps in its dictionary (`m:witness_inline_process`). Each event gives the
next term. A note of the process records that they have begun (`m:witness_inline_birth_table`). If the only monitor is satisfied, and
that verdict need not be delivered by itself, the note records that too. The process sends to the host of the run:

- `{told, Pid, Told}` (`t:told/0`): what they report, with the verdict of each monitor last;
- `{lost, Pid}` if it notices that the state is gone: monitors without a verdict are then unknown.

A monitor with a verdict is removed, and a process without monitors is not observed any more. No exception of a monitor leaves
this module.

## Marks of actions

Monitors mark actions in the process dictionary (`c:witness_monitor:coverage/1`), here in that of the system's process. If
only one monitor runs, its marks stay until its verdict. Several monitors may use the same marks, so those of each are removed
after each of its steps.
""".

-export([prepare/1, start/5, event/2, waits/1, runs/1, finish/2, stopped/2, wants/2, host/1, stamp/1, lost/2, keys/1]).
-export([died/3, swept/1]).
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
-record(run, {host :: pid(), switch :: atomics:atomics_ref(), events :: counters:counters_ref(),
              notes :: witness_inline_birth_table:notes(), kept :: witness_inline_kept:table(), cell :: witness_inline_kept:cell()}).

%% What the process has stored (`m:witness_inline_kept') of one monitor. state: the last one stored, with its number; known: all
%% that were stored, with their numbers; missed: how many other states came since one of these.
-record(left, {state :: term(), number = 0 :: witness_inline_kept:state_number(), known = [] :: [{term(), witness_inline_kept:state_number()}],
               missed = 0 :: non_neg_integer(), rows = false :: boolean()}).

%% The same of several. last: the number of the last row of events that the stored state includes; words: the size of that state;
%% later: how many events were stored since.
-record(journal, {state :: term(), last = 0 :: non_neg_integer(), words = 0 :: non_neg_integer(), later = 0 :: non_neg_integer(),
                  rows = false :: boolean()}).

%% What changes rarely in a process with one monitor. look: events until the process checks the run again; seen: how many events the
%% monitor had seen when `left' was last set to `chunk'.
%% If a monitor only computes, its steps have no states: an explanation computes them again. It starts from the state before
%% the `older' steps, which are the last `chunk', and from `first', the state before the other steps.
-record(rare, {run :: #run{}, n :: pos_integer(), process :: pid(), marks :: [mark()], does :: does(), config :: witness_monitor_instance:config(),
               chunk :: pos_integer(), look :: integer(), seen = 0 :: non_neg_integer(), left :: #left{}, states :: pos_integer(),
               first :: term(), older :: {First :: term(), [short()]}}).

%% A step before it is explained. With a thousand processes that take turns, the memory that each keeps determines the cost of an event.
%% So a step is a message that was taken; or a receiver with its message; or, after `[]', any event.
-type short() :: term() | nonempty_improper_list(To :: term(), Message :: term()).

%% One monitor without a filter or slices is by far the most common case. Its events make next to no garbage: each one makes this
%% tuple and one step, and reads nothing else. wants: the kinds of events that are read, as bits; left: events until the code decides
%% which steps stay, and `rare' changes.
-record(one, {wants :: non_neg_integer(), left :: non_neg_integer(), rare :: #rare{},
              handle :: fun((witness_event:event(), term()) -> term()), state :: term(),
              steps = [] :: [short() | {witness_event:event(), term()}]}).
%% seen: events when `left' was last at its maximum; later: events that are not stored yet, the last one first.
-record(many, {wants :: non_neg_integer(), left :: non_neg_integer(), run :: #run{}, seen = 0 :: non_neg_integer(), journal = #journal{} :: #journal{},
               later = [] :: [witness_event:event()] | too_many, does :: does(), monitors :: [{N :: pos_integer(), Kinds :: non_neg_integer(), [mark()],
                                                 Covered :: non_neg_integer(), witness_monitor_machine:machine()}]}).

-doc "Other modules read only the second element: the kinds of events that are wanted, as bits.".
-type state() :: #one{} | #many{}.

%% Events between two checks of the run. A check costs as much as half an event.
-define(LOOK, 64).
%% The fewest events between two decisions which steps stay.
-define(CHUNK, 12).
%% The entry of the dictionary. While a monitor runs that does more than compute, it is the time when that began: a small number.
-define(KEY, '$witness_inline').
%% The index in the switch of the number that the host increments four times a second.
-define(CLOCK, 3).

-define(STAMPED, 32).
%% A bit among the kinds: the monitor only computes.
-define(COMPUTES, 64).
%% The same, and with the same result in any process: the host can continue the monitor when the process is dead.
-define(SURVIVES, 128).
%% The monitors declare that they read exits, and the process has not waited yet.
-define(ENDS, 256).
%% The kinds of events that are actions of the process.
-define(ACTS, (1 bor 8 bor 16)).
-define(EXIT, 4).

%% The most states of a specification that a process stores. After twice as many others in a row it gives up. A monitor that is
%% written by hand mostly counts something, and has a new state each time.
-define(STATES, 8).
-define(STATES_BY_HAND, 3).
%% Up to this many events are stored instead of a state, also if the state is small.
-define(LATER, 64).
%% How many milliseconds a process waits for the host, once.
-define(WATCHED_MS, 1000).
%% No monitor has this state.
-define(NO_STATE, '$witness_no_state').
%% A new mark is in the dictionary (`m:witness_spec_code').
-define(MARKED, '$witness_marked').

-doc "What all monitors of this kind in a run have in common.".
-spec prepare(witness_monitor_machine:prepared()) -> prepared().
prepare(#{monitor := {Module, _} = Monitor, explain := Explain} = Spec) ->
    Prepared = witness_monitor_machine:prepare(Spec),
    #{spec => case by_kind(witness_monitor_alphabet:of_monitor(Monitor)) of
          true -> Prepared#{choice => all};
          false -> Prepared
      end,
      explain => Explain, kinds => kinds(witness_monitor_alphabet:kinds(Monitor)), marks => coverage(Monitor),
      does => does(Module), specification => is_specification(Module), survives => survives(Module),
      exits => exits(Monitor), ends => ends(Monitor)}.

%% Whether the reason of an exit may matter. For a monitor that is written by hand that is not known.
exits({Module, Arg}) ->
    not is_specification(Module) orelse
        lists:member(Arg, lists:append([Reading || {witness_exits, Reading} <- Module:module_info(attributes)])).

%% For a monitor that is written by hand, a process waits for the host only if the monitor declares that it reads exits.
ends({Module, _} = Monitor) ->
    case witness_monitor_alphabet:kinds(Monitor) of
        all -> is_specification(Module) andalso exits(Monitor);
        Kinds -> lists:member(exit, Kinds) andalso exits(Monitor)
    end.

%% If an alphabet names only kinds, the caller of `event/2' filters by it.
by_kind(all) -> true;
by_kind(Alphabet) -> lists:all(fun is_atom/1, Alphabet).

kinds(all) -> 31;
kinds(Kinds) -> lists:foldl(fun(Kind, Bits) -> Bits bor bit(Kind) end, 0, Kinds).

bit(fork) -> 1;
bit(init) -> 2;
bit(exit) -> 4;
bit(send) -> 8;
bit(recv) -> 16.

%% These atoms exist in the monitor's own code.
coverage({Module, Arg}) ->
    try
        true = erlang:function_exported(Module, coverage, 1),
        [{binary_to_atom(<<"$witness_", (integer_to_binary(Id))/binary>>), Id}
         || #{id := Id} <- Module:coverage(Arg), is_integer(Id), Id > 0]
    catch
        _:_ -> []
    end.

does(Module) ->
    case is_specification(Module) orelse witness_monitor_safety:only_computes(Module) of
        true -> compute;
        false -> case calls_out(Module) of true -> outer; false -> inner end
    end.

survives(Module) ->
    case is_specification(Module) of
        true -> not lists:keymember(witness_self, 1, Module:module_info(attributes));
        false -> witness_monitor_safety:computes_anywhere(Module)
    end.

%% Compiled specifications are in memory only.
is_specification(Module) -> lists:prefix("witness_spec_code_", atom_to_list(Module)).

%% Whether a monitor calls code that may be woven. Actions of OTP's own modules are not events here.
calls_out(Module) ->
    try
        {Module, Code, _} = code:get_object_code(Module),
        {beam_file, Module, _, _, _, Functions} = beam_disasm:file(Code),
        Calls = [called(I) || {function, _, _, _, Instructions} <- Functions, I <- Instructions],
        lists:any(fun(Called) -> Called =:= any orelse Called =/= none andalso Called =/= Module
                                     andalso not of_otp(code:which(Called)) end, lists:usort(Calls))
    catch
        error:_ -> true
    end.

called(Instruction) when is_tuple(Instruction) ->
    case element(1, Instruction) of
        Name when Name =:= call_fun; Name =:= call_fun2; Name =:= apply; Name =:= apply_last -> any;
        _ -> case [M || {extfunc, M, _, _} <- tuple_to_list(Instruction)] of
            [M] -> M;
            [] -> none
        end
    end;
called(_) -> none.

of_otp(preloaded) -> true;
of_otp(File) when is_list(File) -> lists:prefix(code:lib_dir(), File);
of_otp(_) -> false.

-doc """
Starts monitors for the calling process, which has a note of them, and gives them its birth. `none`: all of them have their
verdicts by then.
""".
-spec start(witness_event:signature(), Parent :: pid() | undefined, [entry(), ...], witness_inline_kept:cell(),
            witness_inline_registry:births()) -> state() | none.
start(Signature, Parent, Entries, Cell, Births) ->
    #{host := Host, switch := Switch, events := Events, notes := Notes, kept := Kept, stamped := Stamped,
      prepared := Prepared} = Births,
    Run = #run{host = Host, switch = Switch, events = Events, notes = Notes, kept = Kept, cell = Cell},
    {Monitors, Told} = lists:foldr(fun({N, #{monitor := Monitor}}, {Started, Refused}) ->
        #{Monitor := #{spec := Spec, marks := Marks} = Of} = Prepared,
        put(?KEY, time(Run)),
        case witness_monitor_machine:new(Spec#{process => self(), signature => Signature}) of
            {ok, Machine} -> {[{N, Of, taken(Marks, 0), Machine} | Started], Refused};
            {decided, ignored} -> {Started, [{verdict, N, ignored} | Refused]};
            {decided, Final} -> {Started, [{verdict, N, covered(Final, Marks, 0)} | Refused]}
        end
    end, {[], []}, Entries),
    ok = tell(Told, Run),
    case state(Monitors, case Stamped of true -> ?STAMPED; false -> 0 end, Run) of
        none -> none;
        State when element(2, State) band 2 =:= 0 -> begun(State);
        State ->
            put(?KEY, State),
            case event({init, self(), Parent, Signature, stamp(State)}, State) of
                none -> none;
                Next -> begun(Next)
            end
    end.

%% A reader can compute the birth again up to this state, but not its time.
begun(S) when element(2, S) band ?SURVIVES =:= 0 -> S;
begun(S) ->
    _ = erase(?MARKED),
    Again = element(2, S) band ?STAMPED =:= 0,
    case S of
        #one{rare = Rare} when Again -> S#one{rare = Rare#rare{left = #left{state = S#one.state, known = [{S#one.state, 0}]}}};
        #one{rare = Rare} -> S#one{rare = Rare#rare{left = #left{state = ?NO_STATE}}};
        #many{} when Again -> S#many{journal = #journal{state = shown(S)}, later = []};
        #many{} -> S#many{journal = #journal{state = ?NO_STATE}, later = too_many}
    end.

state([], _, _) -> none;
state([{N, #{kinds := Kinds, marks := Marks, does := Does, explain := Explain} = Of, 0, Machine}] = Monitors, Stamped, Run) ->
    case witness_monitor_machine:instance(Machine) of
        none -> many(Monitors, Stamped, Run);
        {Config, Instance} ->
            Chunk = max(?CHUNK, Explain),
            {First, 0, []} = witness_monitor_instance:save(Instance),
            Computes = case Does of compute -> ?COMPUTES; _ -> 0 end,
            #one{wants = Kinds bor Stamped bor Computes bor after_death([Of]), left = Chunk, state = First,
                 handle = witness_monitor_instance:callback(Config),
                 rare = #rare{run = Run, n = N, process = self(), marks = Marks, does = Does, config = Config, chunk = Chunk,
                              look = ?LOOK, left = #left{},
                              states = case Of of #{specification := true} -> ?STATES; #{} -> ?STATES_BY_HAND end, first = First, older = {First, []}}}
    end;
state(Monitors, Stamped, Run) -> many(Monitors, Stamped, Run).

many(Monitors, Stamped, Run) ->
    Ms = [{N, Kinds, Marks, Covered, Machine} || {N, #{kinds := Kinds, marks := Marks}, Covered, Machine} <- Monitors],
    #many{wants = wanted(Ms) bor Stamped bor after_death([Of || {_, Of, _, _} <- Monitors]), left = ?LOOK, run = Run,
          does = lists:max([Does || {_, #{does := Does}, _, _} <- Monitors]), monitors = Ms}.

after_death(Monitors) ->
    case lists:all(fun(#{survives := Survives}) -> Survives end, Monitors) of
        false -> 0;
        true -> ?SURVIVES bor case lists:any(fun(#{ends := Ends}) -> Ends end, Monitors) of true -> ?ENDS; false -> 0 end
    end.

wanted(Monitors) -> lists:foldl(fun({_, Kinds, _, _, _}, Bits) -> Bits bor Kinds end, 0, Monitors).

-doc "Whether some monitor reads events of this kind.".
-spec wants(witness_event:kind(), state()) -> boolean().
wants(Kind, State) -> element(2, State) band bit(Kind) =/= 0.

-doc "The process that gets the reports of these monitors.".
-spec host(state()) -> pid().
host(#one{rare = #rare{run = #run{host = Host}}}) -> Host;
host(#many{run = #run{host = Host}}) -> Host.

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
        {ok, Next} -> S#one{left = Left - 1, state = Next, steps = [short(E) | Steps]};
        Result -> decided(Result, E, S)
    catch
        Class:Reason:Stack -> decided(witness_monitor_instance:crash(Class, Reason, Stack), E, S)
    end;
event(E, #one{left = Left, handle = Handle, rare = #rare{does = Does, run = Run}, state = State, steps = Steps} = S) when Left > 0 ->
    Expected = expected(Does, Run),
    Result = try Handle(E, State)
             catch Class:Reason:Stack -> witness_monitor_instance:crash(Class, Reason, Stack)
             end,
    ok = resumed(Does),
    case get(?KEY) of
        Expected ->
            case Result of
                {ok, Next} -> S#one{left = Left - 1, state = Next, steps = [{E, Next} | Steps]};
                _ -> decided(Result, E, S)
            end;
        _ -> reentered(S)
    end;
event(E, #one{rare = #rare{look = Look, chunk = Chunk, seen = Seen, run = Run}} = S) ->
    {Before, Steps} = kept(S),
    Rare = Before#rare{seen = Seen + Chunk},
    Kept = S#one{left = Chunk, steps = Steps},
    case Look > Chunk of
        true -> again(E, Kept#one{rare = Rare#rare{look = Look - Chunk}});
        false ->
            Looked = Kept#one{rare = Rare#rare{look = ?LOOK}},
            ok = witness_inline_kept:counted(Run#run.cell, Seen + Chunk),
            case looked(uncounted(S), Run) of
                true -> again(E, Looked);
                false -> finish(stopped, Looked), none
            end
    end;
event(E, #many{left = 0, seen = Before, later = Later} = S0) ->
    Seen = Before + ?LOOK,
    %% A process that does not wait stops keeping events for that.
    S = S0#many{seen = Seen, later = case is_list(Later) andalso length(Later) > ?LATER of true -> too_many; false -> Later end},
    ok = witness_inline_kept:counted(S#many.run#run.cell, Seen),
    case looked(?LOOK, S#many.run) of
        true -> event(E, S#many{left = ?LOOK});
        false -> finish(stopped, S#many{left = ?LOOK}), none
    end;
event(E, #many{left = Left, run = Run, does = Does, monitors = Monitors} = S0) ->
    S = S0#many{later = case S0 of
        %% The reader of what is stored computes the birth again.
        #many{later = Later} when element(1, E) =:= init -> Later;
        #many{wants = Wants, later = Later} when Wants band ?SURVIVES =/= 0, is_list(Later) -> [E | Later];
        #many{later = Later} -> Later
    end},
    Expected = expected(Does, Run),
    {Next, Told} = steps(Monitors, bit(element(1, E)), E, [], []),
    ok = resumed(Does),
    case get(?KEY) of
        Expected ->
            %% A slice must not be reported twice: the state is stored without it before it is reported.
            S1 = case Told =/= [] andalso Next =/= [] andalso S#many.wants band ?SURVIVES =/= 0 of
                true -> element(2, left_by(S#many{left = Left - 1, monitors = Next}, false));
                false -> S#many{left = Left - 1, monitors = Next}
            end,
            ok = tell(Told, Run),
            case Next of
                [] ->
                    _ = erase(?MARKED),
                    ok = counted(uncounted(S) + 1, Run),
                    none;
                _ when Told =:= [] -> S1;
                _ -> S1#many{wants = wanted(Next) bor (S#many.wants band (?STAMPED bor ?SURVIVES bor ?ENDS))}
            end;
        _ ->
            finish({crashed, reentered}, S),
            none
    end.

%% A message takes one cell, without a tuple around it.
-dialyzer({no_improper_lists, short/1}).
short({recv, _, undefined, Message, undefined}) when not is_list(Message); Message =:= [] -> Message;
short({send, _, To, Message, undefined}) -> [To | Message];
short(E) -> [[] | E].

long([[] | E], _) -> E;
long([To | Message], P) -> {send, P, To, Message, undefined};
long(Message, P) -> {recv, P, undefined, Message, undefined}.

%% The entry that must be in the dictionary after the step of the monitors. It shows that a monitor that may take long is running.
expected(compute, _) -> get(?KEY);
expected(Does, Run) ->
    ok = case Does of outer -> witness_inline_outside:pause(); inner -> ok end,
    Time = time(Run),
    put(?KEY, Time),
    Time.

time(#run{switch = Switch}) -> atomics:get(Switch, ?CLOCK).

resumed(outer) -> witness_inline_outside:resume();
resumed(_) -> ok.

%% The steps that stay. Earlier steps are at most one chunk.
kept(#one{rare = #rare{does = compute, first = First} = Rare, state = State, steps = Steps}) ->
    {Rare#rare{first = State, older = {First, Steps}}, []};
kept(#one{rare = #rare{chunk = Chunk} = Rare, steps = Steps}) ->
    {Rare, lists:sublist(Steps, Chunk)}.

%% `event/2' requires that the dictionary has the current state.
again(E, S) ->
    put(?KEY, S),
    event(E, S).

reentered(S) ->
    finish({crashed, reentered}, S),
    none.

decided(Result, E, #one{rare = #rare{config = Config}} = S) ->
    Told = case Result of {verdict, yes, Info} -> satisfied(Info, S); _ -> false end,
    Told orelse begin
        {decided, Outcome} = witness_monitor_instance:result(Result, E, Config, instance(S)),
        one_ended(Outcome, S)
    end,
    ok = counted(uncounted(S) + 1, S#one.rare#rare.run),
    none.

one_ended(Outcome, #one{rare = #rare{run = Run, n = N, marks = Marks}}) ->
    tell([{verdict, N, covered(witness_monitor_machine:final(Outcome), Marks, 0)}], Run).

%% Records the verdict in the note if it need not be delivered by itself, and returns whether it did. The system may load telemetry
%% at any time.
satisfied(Info, #one{rare = #rare{run = #run{switch = Switch, notes = Notes}, n = N, marks = Marks}}) ->
    atomics:get(Switch, 2) =:= 0 andalso not erlang:function_exported(telemetry, execute, 3)
        andalso witness_inline_birth_table:satisfied(N, witness_monitor_instance:is_vacuous(Info), marked(Marks), Notes)
        andalso begin
            _ = erase(?MARKED),
            _ = taken(Marks, 0),
            true
        end.

instance(#one{left = Left, rare = #rare{chunk = Chunk, seen = Seen}, state = State} = S) ->
    {ok, Instance} = witness_monitor_instance:load({State, Seen + Chunk - Left, with_states(S)}),
    Instance.

with_states(#one{rare = #rare{does = compute, process = P, first = First, older = {Before, Older}}, handle = Handle,
                 steps = Steps}) ->
    replayed(lists:reverse(Steps), P, Handle, First, replayed(lists:reverse(Older), P, Handle, Before, []));
with_states(#one{steps = Steps}) -> Steps.

%% A monitor that only computes goes through the same states again, except one that uses the pid of its own process. So these
%% states are for explanations only.
replayed([], _, _, _, Steps) -> Steps;
replayed([Short | Shorts], P, Handle, State, Steps) ->
    E = long(Short, P),
    Next = try Handle(E, State) of
        {ok, Same} -> Same;
        _ -> State
    catch _:_ -> State
    end,
    replayed(Shorts, P, Handle, Next, [{E, Next} | Steps]).

steps([], _, _, Next, Told) ->
    {lists:reverse(Next), lists:append(lists:reverse(Told))};
steps([{_, Kinds, _, _, _} = Monitor | Monitors], Bit, E, Next, Told) when Kinds band Bit =:= 0 ->
    steps(Monitors, Bit, E, [Monitor | Next], Told);
steps([{N, Kinds, Marks, Before, Machine} | Monitors], Bit, E, Next, Told) ->
    {Slices, Result} = witness_monitor_machine:run([E], Machine),
    Covered = taken(Marks, Before),
    case Result of
        {ok, Machine1} when Slices =:= [] ->
            steps(Monitors, Bit, E, [{N, Kinds, Marks, Covered, Machine1} | Next], Told);
        {ok, Machine1} ->
            steps(Monitors, Bit, E, [{N, Kinds, Marks, Covered, Machine1} | Next], [slices(N, Slices) | Told]);
        {decided, Final} ->
            steps(Monitors, Bit, E, Next, [slices(N, Slices) ++ [{verdict, N, Final#{covered => Covered}}] | Told])
    end.

slices(N, Slices) -> [{slice, N, Outcome} || Outcome <- Slices].

-doc """
The process waits next, so this stores the state of its monitors for the time when it is dead. Only the calling process can do that,
and only while all that it has done is reported.

The result has the cell that says that the process waits, or `none` if it does not say so. If its monitors read its end, the process
waits at this point, once, until the host monitors it: the host could not learn the reason later.
""".
-spec waits(state()) -> {witness_inline_kept:cell() | none, state()}.
waits(S) when element(2, S) band ?ENDS =/= 0 ->
    Result = waits(setelement(2, S, element(2, S) bxor ?ENDS)),
    %% The mark is set before this, so a signal during it ends a process that waits.
    ok = watched(host(S)),
    Result;
waits(#one{left = Left, state = State, rare = #rare{chunk = Chunk, seen = Seen, left = #left{state = State, number = Number},
                                                      run = #run{cell = Cell}}} = S) ->
    case get(?MARKED) of
        undefined ->
            ok = witness_inline_kept:waits(Cell, Seen + Chunk - Left, Number),
            {Cell, S};
        _ -> leaves(S)
    end;
waits(S) -> leaves(S).

leaves(S) ->
    #run{cell = Cell} = run(S),
    {Number, Next} = left_by(S, erase(?MARKED) =/= undefined),
    case witness_inline_spawn:is_pending() of
        %% The birth of a child is not reported yet.
        true -> put(?MARKED, true), {none, Next};
        false when Number =:= unknown -> {none, Next};
        false ->
            ok = witness_inline_kept:waits(Cell, total(S), Number),
            {Cell, Next}
    end.

left_by(#one{state = State, rare = #rare{left = Left, states = Most, n = N, run = #run{kept = Kept, cell = Cell}, marks = Marks} = Rare} = S,
        Marked) ->
    _ = Marked andalso witness_inline_kept:covered(Kept, marked(Marks)),
    #left{known = Known, missed = Missed} = Left,
    Now = fun(L) -> S#one{rare = Rare#rare{left = L#left{rows = L#left.rows orelse Marked}}} end,
    case lists:keyfind(State, 1, Known) of
        {Same, Number} when Same =:= State -> {Number, Now(Left#left{state = State, number = Number, missed = 0})};
        _ when length(Known) < Most ->
            Number = length(Known),
            ok = witness_inline_kept:state(Kept, Number, {N, State}),
            {Number, Now(Left#left{state = State, number = Number, known = [{State, Number} | Known], rows = true})};
        %% To store each state would cost several times what the event does.
        _ when Missed < 2 * Most -> {unknown, Now(Left#left{missed = Missed + 1})};
        _ ->
            ok = witness_inline_kept:gives_up(Cell, total(S)),
            {unknown, (Now(Left))#one{wants = S#one.wants band bnot ?SURVIVES}}
    end;
left_by(#many{run = #run{kept = Kept, cell = Cell}, journal = Journal, later = Events, monitors = Monitors} = S, _) ->
    #journal{last = Last, words = Words, later = Later} = Journal,
    Next = case shown(S) of
        Same when Same =:= Journal#journal.state -> Journal;
        Shown when is_list(Events), Later + length(Events) =< max(?LATER, Words div 8) ->
            ok = witness_inline_kept:events(Kept, Cell, lists:reverse(Events)),
            Journal#journal{state = Shown, later = Later + length(Events), rows = true};
        Shown ->
            #journal{state = Shown, words = erts_debug:flat_size(Monitors), rows = true,
                     last = witness_inline_kept:states(Kept, Cell, Last, Monitors)}
    end,
    {0, S#many{journal = Next, later = []}}.

%% Terms that are equal if the monitors are in the same states.
shown(#many{monitors = Monitors}) ->
    [{N, Covered, witness_monitor_machine:shown(Machine)} || {N, _, _, Covered, Machine} <- Monitors].

total(#one{left = Left, rare = #rare{chunk = Chunk, seen = Seen}}) -> Seen + Chunk - Left;
total(#many{left = Left, seen = Seen}) -> Seen + ?LOOK - Left.

run(#one{rare = #rare{run = Run}}) -> Run;
run(#many{run = Run}) -> Run.

%% No message stays in the mailbox, whether the host answers or is dead.
watched(Host) ->
    Ref = monitor(process, Host, [{alias, reply_demonitor}]),
    Host ! {watch, self(), Ref},
    receive
        {watched, Ref} -> ok;
        {'DOWN', Ref, process, Host, _} -> ok
    %% If the process goes on before the host monitors it, the reason may be missing. A later answer is not delivered.
    after ?WATCHED_MS ->
        _ = demonitor(Ref, [flush]),
        receive {watched, Ref} -> ok after 0 -> ok end
    end.

-doc "The monitors have ended: deletes what the process has stored of them.".
-spec swept(state()) -> ok.
swept(#one{rare = #rare{left = #left{rows = true, known = Known}, run = #run{kept = Kept}}}) -> witness_inline_kept:forget(Kept, length(Known));
swept(#many{journal = #journal{rows = true}, run = #run{cell = Cell, kept = Kept}}) -> witness_inline_kept:delete({self(), Cell}, Kept);
swept(_) -> ok.

-doc "The process does something next, or has taken a message.".
-spec runs(state()) -> ok.
runs(#one{left = Left, rare = #rare{chunk = Chunk, seen = Seen, run = #run{cell = Cell}}}) ->
    witness_inline_kept:runs(Cell, Seen + Chunk - Left);
runs(#many{run = #run{cell = Cell}} = S) ->
    witness_inline_kept:runs(Cell, total(S)).

-doc """
What the monitors of a dead process report of its end, and the number of events that were not counted. If the process waited, or if its
monitors read nothing that it could have done, it ends as it would have by itself, with the event `exit`. Otherwise events
may be missing.
""".
-spec died(dead(), Stamped :: boolean(), witness_inline_kept:table()) -> {told(), Events :: non_neg_integer()}.
died(#{process := P, life := {_, Cell}, entries := Entries, reason := Reason} = Dead, Stamped, Kept) ->
    #{waits := Waits, gave_up := GaveUp, uncounted := Uncounted} = Found = witness_inline_kept:read({P, Cell}, Kept),
    Kinds = lists:foldl(fun({_, #{kinds := Read, exits := Exits}}, Bits) -> matters(Read, Exits) bor Bits end, 0, Entries),
    Ts = case Stamped of true -> erlang:monotonic_time(nanosecond); false -> undefined end,
    {How, Exit} = case Reason of
        _ when GaveUp, Kinds band ?ACTS =/= 0 -> {{gap, signal_state}, []};
        _ when not Waits, Kinds band ?ACTS =/= 0 -> {{gap, signal}, []};
        unknown when Kinds band ?EXIT =/= 0 -> {{gap, signal_reason}, []};
        unknown -> {complete, []};
        {ok, Why} -> {complete, [{exit, P, Why, Ts}]}
    end,
    Told = case restored(Dead, Found, Stamped, How) of
        {ok, Monitors} ->
            {Left, Last} = lists:foldl(fun given/2, {Monitors, []}, Exit),
            Last ++ all_ended(How, Left);
        unknown ->
            #{events := Total, covered := Covered} = Found,
            Gap = case How of complete -> {gap, signal_state}; _ -> How end,
            [{verdict, N, (witness_monitor_machine:failed(Gap))#{skipped := Total, covered := Covered}} || {{N, _}, _} <- Entries]
    end,
    _ = erase(?MARKED),
    {Told, Uncounted}.

matters(Kinds, true) -> Kinds;
matters(Kinds, false) -> Kinds band bnot ?EXIT.

given(E, {Monitors, _}) -> steps(Monitors, bit(element(1, E)), E, [], []).

%% What these monitors report on the way to the last state of the process, it has reported itself.
restored(#{entries := Entries} = Dead, #{state := State, later := Later} = Found, Stamped, How) ->
    case lists:all(fun({_, #{survives := Survives}}) -> Survives end, Entries) andalso State of
        false -> unknown;
        unknown -> unknown;
        {one, Is} -> {ok, [single(Is, Entries, Found)]};
        {several, Several} -> {ok, replayed(Later, Several)};
        none when Stamped -> unknown;
        none ->
            Born = birth(Dead),
            case Born of
                [{N, _, _, AtBirth, Machine}] when Later =:= [] ->
                    case witness_monitor_machine:instance(Machine) of
                        none -> {ok, Born};
                        _ when How =/= complete -> unknown;
                        {_, Instance} ->
                            {Is, _, _} = witness_monitor_instance:save(Instance),
                            {ok, [single({N, Is}, Entries, Found#{covered := map_get(covered, Found) bor AtBirth})]}
                    end;
                _ -> {ok, replayed(Later, Born)}
            end
    end.

birth(#{process := P, signature := Signature, entries := Entries, life := {Parent, _}}) ->
    New = [{N, Kinds, Marks, taken(Marks, 0), Machine}
           || {{N, _}, #{spec := Spec, kinds := Kinds, marks := Marks}} <- Entries,
              {ok, Machine} <- [witness_monitor_machine:new(Spec#{process => P, signature => Signature})]],
    {Born, _} = given({init, P, Parent, Signature, undefined}, {New, []}),
    Born.

%% The only monitor that has not refused the process.
single({N, State}, Entries, #{events := Events, covered := Covered}) ->
    [#{spec := #{config := Config}, kinds := Kinds, marks := Marks}] = [Of || {{M, _}, Of} <- Entries, M =:= N],
    {ok, Instance} = witness_monitor_instance:load({State, Events, []}),
    {N, Kinds, Marks, Covered, witness_monitor_machine:of_instance(Config, Instance)}.

replayed(Later, Monitors) ->
    {Now, _} = lists:foldl(fun given/2, {Monitors, []}, lists:append(Later)),
    Now.

-doc "All monitors end, because nothing more comes, or inconclusive for a reason.".
-spec finish(complete | stopped | witness_monitor_instance:reason(), state()) -> ok.
finish(complete, #one{rare = #rare{run = Run, config = Config}, state = State} = S) ->
    ok = counted(uncounted(S), Run),
    Judged = witness_monitor_instance:judge(complete, Config, State),
    Told = case Judged of {yes, Info} -> satisfied(Info, S); _ -> false end,
    case Told of
        true -> ok;
        false -> one_ended(witness_monitor_instance:judged(Judged, complete, Config, instance(S)), S)
    end;
finish(How, S) ->
    {Run, Monitors} = parts(S),
    ok = counted(uncounted(S), Run),
    tell(all_ended(How, Monitors), Run).

-doc """
The same when the run stops, for the state and the marks that the caller has read from another process; and the number of events that
were not counted. The marks are in the caller's dictionary meanwhile.
""".
-spec stopped([{Key :: atom(), Id :: pos_integer()}], state()) -> {told(), Events :: non_neg_integer()}.
stopped(Taken, S) ->
    lists:foreach(fun({Key, Id}) -> put(Key, Id) end, Taken),
    {_, Monitors} = parts(S),
    Told = all_ended(stopped, Monitors),
    lists:foreach(fun({Key, _}) -> erase(Key) end, Taken),
    {Told, uncounted(S)}.

parts(#one{rare = #rare{run = Run, n = N, marks = Marks, config = Config}} = S) ->
    {Run, [{N, 31, Marks, 0, witness_monitor_machine:of_instance(Config, instance(S))}]};
parts(#many{run = Run, monitors = Monitors}) ->
    {Run, Monitors}.

%% Events since the last check of the run.
uncounted(#one{left = Left, rare = #rare{look = Look, chunk = Chunk}}) -> ?LOOK - Look + Chunk - Left;
uncounted(#many{left = Left}) -> ?LOOK - Left.

all_ended(How, Monitors) -> lists:append([ended(How, Monitor) || Monitor <- Monitors]).

ended(How, {N, _, Marks, Before, Machine}) ->
    {Slices, Final} = case How of
        _ when How =:= complete; How =:= stopped -> witness_monitor_machine:ended(How, Machine);
        Reason -> witness_monitor_machine:inconclusive(Reason, Machine)
    end,
    slices(N, Slices) ++ [{verdict, N, covered(Final, Marks, Before)}].

covered(Final, Marks, Before) ->
    _ = erase(?MARKED),
    Final#{covered => taken(Marks, Before)}.

marked(Marks) -> lists:foldl(fun({_, Id}, Mask) -> Mask bor (1 bsl Id) end, 0,
                             [Mark || {Key, _} = Mark <- Marks, get(Key) =/= undefined]).

%% The mask of `Before' and the marks in the dictionary, which are removed.
taken(Marks, Before) ->
    lists:foldl(fun({Key, Id}, Mask) ->
        case get(Key) of
            undefined -> Mask;
            _ -> erase(Key), Mask bor (1 bsl Id)
        end
    end, Before, Marks).

-doc "The keys of marks that processes with these monitors may have besides their state.".
-spec keys([prepared()]) -> [atom()].
keys(Prepared) -> lists:usort([Key || #{marks := Marks} <- Prepared, {Key, _} <- Marks]).

-doc "The state is gone: other code has deleted the dictionary.".
-spec lost(pid(), Host :: pid()) -> ok.
lost(P, Host) ->
    Host ! {lost, P},
    ok.

-spec tell(told(), #run{}) -> ok.
tell([], _) -> ok;
tell(Told, #run{host = Host}) ->
    Host ! {told, self(), Told},
    ok.

counted(0, _) -> ok;
counted(Count, #run{events = Events}) -> counters:add(Events, 1, Count).

%% Whether the run goes on. Counts the events since the last check.
looked(Count, #run{switch = Switch, events = Events}) ->
    ok = counters:add(Events, 1, Count),
    atomics:get(Switch, 1) =:= 1.
