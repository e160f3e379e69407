-module(witness_inline_monitors).
-moduledoc """
The monitors of a process that run in the process itself.

All that they need is one term, which the process keeps in its dictionary (`m:witness_inline_process`); each event gives the
next one. That they begin is in a note of the process (`m:witness_inline_notes`), and so is that its only monitor was
satisfied, where nobody has to be shown that by itself. The process sends to the host of the run:

- `{told, Pid, Told}` (`t:told/0`): what they say, of each monitor its verdict last;
- `{lost, Pid}` where it notices that the state is gone: nothing is known of who is not decided.

A monitor that has its verdict is gone, and a process without monitors is not observed any more. Nothing that a monitor
raises leaves this module.

## Marks of actions

Monitors mark actions in the process dictionary (`c:witness_monitor:coverage/1`), here in that of the system. Where one
monitor runs the marks stay until its verdict. Where there are several, which may use the same ones, the marks of each are
taken away after each of its steps.
""".

-export([prepare/1, start/4, event/2, finish/2, stopped/2, wants/2, host/1, stamp/1, lost/2, keys/1]).
-export_type([prepared/0, state/0, entry/0, told/0]).

-doc "What a monitor needs besides its process, made once for a run.".
-type prepared() :: #{spec := witness_monitor_machine:prepared(), explain := pos_integer(), kinds := non_neg_integer(),
                      marks := [mark()], does := does()}.

-doc """
What a monitor may do in a step: nothing but to compute and to mark actions; whatever OTP's own modules do; or also what is an
event.
""".
-type does() :: compute | inner | outer.

-type mark() :: {Key :: atom(), Id :: pos_integer()}.

-doc "A monitor to be started.".
-type entry() :: {N :: pos_integer(), witness_outline_map:entry()}.

-doc "What monitors say: the verdicts of slices, and how each has ended itself.".
-type told() :: [{slice, N :: pos_integer(), witness_monitor_sliced:outcome()}
                 | {verdict, N :: pos_integer(), witness_monitor_runner:outcome()}].

%% Whom to tell, and whether there is somebody.
-record(run, {host :: pid(), switch :: atomics:atomics_ref(), events :: counters:counters_ref(),
              notes :: witness_inline_notes:notes()}).

%% What changes only now and then in a process with one monitor: events until the run is looked at again, and how many the
%% monitor has seen when `left' was `chunk' the last time.
%% A monitor that only computes has no states among its steps: they are computed again where somebody is to see them, from
%% that before the `older' steps, the last `chunk', and `first', that before the others.
-record(rare, {run :: #run{}, n :: pos_integer(), process :: pid(), marks :: [mark()], does :: does(), config :: witness_monitor_instance:config(),
               chunk :: pos_integer(), look :: integer(), seen = 0 :: non_neg_integer(),
               first :: term(), older :: {First :: term(), [short()]}}).

%% A step as long as nobody is to see it: where a thousand processes take turns, what each of them keeps is what an event costs.
%% A message that was taken, a receiver with the message that was sent to it, or, behind what is none, any event.
-type short() :: term() | nonempty_improper_list(To :: term(), Message :: term()).

%% One monitor without a filter or slices is by far the most common, and an event of it makes next to no garbage, and looks at
%% nothing else: what is new is this tuple and one step. wants: the kinds of events that are read, as bits; left: events until
%% it is seen to which steps are kept, that is until `rare' changes.
-record(one, {wants :: non_neg_integer(), left :: non_neg_integer(), rare :: #rare{},
              handle :: fun((witness_event:event(), term()) -> term()), state :: term(),
              steps = [] :: [short() | {witness_event:event(), term()}]}).
-record(many, {wants :: non_neg_integer(), left :: non_neg_integer(), run :: #run{},
               does :: does(), monitors :: [{N :: pos_integer(), Kinds :: non_neg_integer(), [mark()],
                                                 Covered :: non_neg_integer(), witness_monitor_machine:machine()}]}).

-doc "Others look at nothing but the second element, the kinds of events that are wanted, as bits.".
-type state() :: #one{} | #many{}.

%% Events between two looks at the run, which cost as much as half an event.
-define(LOOK, 64).
%% The fewest events between two looks at the steps.
-define(CHUNK, 12).
%% The entry of the dictionary while a monitor runs that could do what is an event.
-define(KEY, '$witness_inline').
-define(BUSY, busy).

-define(STAMPED, 32).
%% Among the kinds: the monitor only computes.
-define(COMPUTES, 64).

-doc "What all monitors of this kind in a run have in common.".
-spec prepare(witness_monitor_machine:prepared()) -> prepared().
prepare(#{monitor := {Module, _} = Monitor, explain := Explain} = Spec) ->
    Prepared = witness_monitor_machine:prepare(Spec),
    #{spec => case by_kind(witness_monitor_alphabet:of_monitor(Monitor)) of
          true -> Prepared#{choice => all};
          false -> Prepared
      end,
      explain => Explain, kinds => kinds(witness_monitor_alphabet:kinds(Monitor)), marks => coverage(Monitor),
      does => does(Module)}.

%% An alphabet that names kinds only is kept by whom the events are given to.
by_kind(all) -> true;
by_kind(Alphabet) -> lists:all(fun is_atom/1, Alphabet).

kinds(all) -> 31;
kinds(Kinds) -> lists:foldl(fun(Kind, Bits) -> Bits bor bit(Kind) end, 0, Kinds).

bit(fork) -> 1;
bit(init) -> 2;
bit(exit) -> 4;
bit(send) -> 8;
bit(recv) -> 16.

%% These atoms are those of the monitor's own code.
coverage({Module, Arg}) ->
    try
        true = erlang:function_exported(Module, coverage, 1),
        [{binary_to_atom(<<"$witness_", (integer_to_binary(Id))/binary>>), Id}
         || #{id := Id} <- Module:coverage(Arg), is_integer(Id), Id > 0]
    catch
        _:_ -> []
    end.

does(Module) ->
    case is_specification(Module) orelse witness_monitor_bounded:only_computes(Module) of
        true -> compute;
        false -> case calls_out(Module) of true -> outer; false -> inner end
    end.

%% These are in memory only.
is_specification(Module) -> lists:prefix("witness_spec_code_", atom_to_list(Module)).

%% Whether a monitor calls what may be woven: what OTP's own modules do is no event here.
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
Starts monitors for the calling process, which has a note of them, and gives them its birth. Nothing is left if they have
their verdicts by then.
""".
-spec start(witness_event:signature(), Parent :: pid() | undefined, [entry(), ...], witness_inline_registry:births()) ->
    state() | none.
start(Signature, Parent, Entries, Births) ->
    #{host := Host, switch := Switch, events := Events, notes := Notes, stamped := Stamped, prepared := Prepared} = Births,
    Run = #run{host = Host, switch = Switch, events = Events, notes = Notes},
    {Monitors, Told} = lists:foldr(fun({N, #{monitor := Monitor}}, {Started, Refused}) ->
        #{Monitor := #{spec := Spec, marks := Marks} = Of} = Prepared,
        put(?KEY, ?BUSY),
        case witness_monitor_machine:new(Spec#{process => self(), signature => Signature}) of
            {ok, Machine} -> {[{N, Of, taken(Marks, 0), Machine} | Started], Refused};
            {decided, ignored} -> {Started, [{verdict, N, ignored} | Refused]};
            {decided, Final} -> {Started, [{verdict, N, covered(Final, Marks, 0)} | Refused]}
        end
    end, {[], []}, Entries),
    ok = tell(Told, Run),
    case state(Monitors, case Stamped of true -> ?STAMPED; false -> 0 end, Run) of
        none -> none;
        State when element(2, State) band 2 =:= 0 -> State;
        State ->
            put(?KEY, State),
            event({init, self(), Parent, Signature, stamp(State)}, State)
    end.

state([], _, _) -> none;
state([{N, #{kinds := Kinds, marks := Marks, does := Does, explain := Explain}, 0, Machine}] = Monitors, Stamped, Run) ->
    case witness_monitor_machine:instance(Machine) of
        none -> many(Monitors, Stamped, Run);
        {Config, Instance} ->
            Chunk = max(?CHUNK, Explain),
            {First, 0, []} = witness_monitor_instance:save(Instance),
            Computes = case Does of compute -> ?COMPUTES; _ -> 0 end,
            #one{wants = Kinds bor Stamped bor Computes, left = Chunk, state = First,
                 handle = witness_monitor_instance:callback(Config),
                 rare = #rare{run = Run, n = N, process = self(), marks = Marks, does = Does, config = Config, chunk = Chunk,
                              look = ?LOOK, first = First, older = {First, []}}}
    end;
state(Monitors, Stamped, Run) -> many(Monitors, Stamped, Run).

many(Monitors, Stamped, Run) ->
    Ms = [{N, Kinds, Marks, Covered, Machine} || {N, #{kinds := Kinds, marks := Marks}, Covered, Machine} <- Monitors],
    #many{wants = wanted(Ms) bor Stamped, left = ?LOOK, run = Run,
          does = lists:max([Does || {_, #{does := Does}, _, _} <- Monitors]), monitors = Ms}.

wanted(Monitors) -> lists:foldl(fun({_, Kinds, _, _, _}, Bits) -> Bits bor Kinds end, 0, Monitors).

-doc "Whether some monitor reads events of this kind.".
-spec wants(witness_event:kind(), state()) -> boolean().
wants(Kind, State) -> element(2, State) band bit(Kind) =/= 0.

-doc "Who is told of what the monitors find.".
-spec host(state()) -> pid().
host(#one{rare = #rare{run = #run{host = Host}}}) -> Host;
host(#many{run = #run{host = Host}}) -> Host.

-doc "The time of an event, where events are to have it.".
-spec stamp(state()) -> witness_event:ts().
stamp(State) when element(2, State) band ?STAMPED =:= 0 -> undefined;
stamp(_) -> erlang:monotonic_time(nanosecond).

-doc """
An event of a kind that is wanted. `none`: nobody is left to read more.

While a monitor runs the dictionary holds another entry, or the same one, which shows whether something was done meanwhile
that is an event itself: such a monitor cannot go on.
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
event(E, #one{left = Left, handle = Handle, rare = #rare{does = Does}, state = State, steps = Steps} = S) when Left > 0 ->
    Expected = expected(Does),
    Result = try Handle(E, State)
             catch Class:Reason:Stack -> witness_monitor_instance:crash(Class, Reason, Stack)
             end,
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
            case looked(uncounted(S), Run) of
                true -> again(E, Looked);
                false -> finish(stopped, Looked), none
            end
    end;
event(E, #many{left = 0} = S) ->
    case looked(?LOOK, S#many.run) of
        true -> event(E, S#many{left = ?LOOK});
        false -> finish(stopped, S#many{left = ?LOOK}), none
    end;
event(E, #many{left = Left, run = Run, does = Does, monitors = Monitors} = S) ->
    Expected = expected(Does),
    {Next, Told} = steps(Monitors, bit(element(1, E)), E, [], []),
    case get(?KEY) of
        Expected ->
            ok = tell(Told, Run),
            case Next of
                [] -> ok = counted(uncounted(S) + 1, Run), none;
                _ when Told =:= [] -> S#many{left = Left - 1, monitors = Next};
                _ -> S#many{left = Left - 1, monitors = Next, wants = wanted(Next) bor (S#many.wants band ?STAMPED)}
            end;
        _ ->
            finish({crashed, reentered}, S),
            none
    end.

%% One cell, and no tuple around it.
-dialyzer({no_improper_lists, short/1}).
short({recv, _, undefined, Message, undefined}) when not is_list(Message); Message =:= [] -> Message;
short({send, _, To, Message, undefined}) -> [To | Message];
short(E) -> [[] | E].

long([[] | E], _) -> E;
long([To | Message], P) -> {send, P, To, Message, undefined};
long(Message, P) -> {recv, P, undefined, Message, undefined}.

%% What is to be in the dictionary when the monitors have done their step.
expected(outer) -> put(?KEY, ?BUSY), ?BUSY;
expected(_) -> get(?KEY).

%% The steps that stay. Those of before are no more than a chunk.
kept(#one{rare = #rare{does = compute, first = First} = Rare, state = State, steps = Steps}) ->
    {Rare#rare{first = State, older = {First, Steps}}, []};
kept(#one{rare = #rare{chunk = Chunk} = Rare, steps = Steps}) ->
    {Rare, lists:sublist(Steps, Chunk)}.

%% What is in the dictionary is what is taken for granted below.
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

%% Whether the verdict is in the note: where nobody is to see it by itself. The telemetry of a system may be loaded at any time.
satisfied(Info, #one{rare = #rare{run = #run{switch = Switch, notes = Notes}, n = N, marks = Marks}}) ->
    atomics:get(Switch, 2) =:= 0 andalso not erlang:function_exported(telemetry, execute, 3)
        andalso witness_inline_notes:satisfied(N, witness_monitor_instance:is_vacuous(Info), marked(Marks), Notes)
        andalso begin
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

%% What only computes goes through the same states again. All but one: it may know in whose process it computes. So these states
%% are for explanations only.
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

-doc "All monitors end: nothing more comes, or a reason makes them inconclusive.".
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
The same for a state that another process has asked a process for, with its marks, when the run stops; and the events that
were not counted. The marks come into the dictionary of the caller, and go.
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

%% Events since the last look at the run.
uncounted(#one{left = Left, rare = #rare{look = Look, chunk = Chunk}}) -> ?LOOK - Look + Chunk - Left;
uncounted(#many{left = Left}) -> ?LOOK - Left.

all_ended(How, Monitors) -> lists:append([ended(How, Monitor) || Monitor <- Monitors]).

ended(How, {N, _, Marks, Before, Machine}) ->
    {Slices, Final} = case How of
        _ when How =:= complete; How =:= stopped -> witness_monitor_machine:ended(How, Machine);
        Reason -> witness_monitor_machine:inconclusive(Reason, Machine)
    end,
    slices(N, Slices) ++ [{verdict, N, covered(Final, Marks, Before)}].

covered(Final, Marks, Before) -> Final#{covered => taken(Marks, Before)}.

marked(Marks) -> lists:foldl(fun({_, Id}, Mask) -> Mask bor (1 bsl Id) end, 0,
                             [Mark || {Key, _} = Mark <- Marks, get(Key) =/= undefined]).

%% The marks that are in the dictionary, which are taken away.
taken(Marks, Before) ->
    lists:foldl(fun({Key, Id}, Mask) ->
        case get(Key) of
            undefined -> Mask;
            _ -> erase(Key), Mask bor (1 bsl Id)
        end
    end, Before, Marks).

-doc "The keys of marks that processes with these monitors may hold besides their state.".
-spec keys([prepared()]) -> [atom()].
keys(Prepared) -> lists:usort([Key || #{marks := Marks} <- Prepared, {Key, _} <- Marks]).

-doc "The state is gone: others have deleted the dictionary.".
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

%% Whether the run goes on. The events since the last look are counted.
looked(Count, #run{switch = Switch, events = Events}) ->
    ok = counters:add(Events, 1, Count),
    atomics:get(Switch, 1) =:= 1.
