-module(witness_offline_shard).
-moduledoc """
A shard: runs the monitors of one property for very many processes, as data in one process.

Shards are for logs, which are read faster than processes can be spawned and sent to. A shard is given *operations*, each
with its line of the log and with an id that its sender has chosen for the monitor: that monitor
starts, sees an event, or sees its end. The shard performs operations one by one in their order, so the outcomes and their
lines do not depend on how the work was divided. Its state is the live monitors and nothing else.

Messages to a shard, and its answers:

- `{work, Seq, From, [Op]}` (`t:op/0`), answered with `{worked, Seq, Shard, [Told], Counted, Covered}` (`t:told/0`,
  `t:counted/0`): the outcomes in the order of the operations, what is only counted, and the actions that any monitor of the
  shard has ever taken (see `witness_monitor_machine:read_marks/0`);
- `{save, From, Ref}`, answered with `{saved, Ref, Shard, Data}` (`t:saved/0`);
- `{load, From, Ref, Data}`, answered with `{loaded, Ref, Shard}`: from now on the shard has these monitors in place of
  its own; or with `{load_failed, Ref, Shard, Reason}`, and nothing has changed.

If a monitor in a shard crashes, it is `inconclusive`, and the others go on. A shard gives no further protection.
A callback that never returns stops all monitors of its property. A callback that links its process, ends it, or needs more
than `memory`, ends the shard. Messages that callbacks have sent to their own process are discarded.

The shard ends when the process that started it ends. If the shard ends for a reason other than `normal`, so does that
process.
""".

-export([start_link/1, work/4, save/1, load/2, none/1, perform/3]).
-export([init/2]).
-export_type([spec/0, on_read/0, line/0, id/0, op/0, told/0, counted/0, monitors/0, saved/0]).

-doc """
The property: its monitor, how many steps an explanation has, how many slices of one monitor may be alive, and how long idle;
the bytes that all of them may take. `counted` is called at each verdict `yes`: whether it is only counted. Without it none is.
`on_read` is called with each event for a monitor, also after its verdict.
""".
-type spec() :: #{monitor := {module(), Arg :: term()},
                  explain := pos_integer(),
                  counted => fun(() -> boolean()),
                  on_read => on_read(),
                  max_slices => pos_integer(),
                  slice_idle => pos_integer() | infinity,
                  memory => pos_integer()}.

-doc "A function of a place, the event there, and the actions that the monitor took with it (`witness_monitor_machine:read_marks/0`).".
-type on_read() :: fun((line(), witness_event:event(), Taken :: non_neg_integer()) -> term()).

-doc "The place in the log; the shard only passes it on.".
-type line() :: pos_integer().

-doc "A monitor. Once its verdict is reported, the id is free for another monitor.".
-type id() :: term().

-doc """
`start` is for an id that is not in use; otherwise the shard ends with the reason `started_twice`. Operations for an id
without a monitor are ignored: that monitor has reached its verdict. With a function, the process was running already in it, and its first
item, `attached`, follows. `gap`: events are missing here. `time`: no event comes before this
time any more; that is for the monitors of the shard that wait for deadlines before it.
""".
-type op() :: {line(), id(), {start, witness_event:proc() | all, witness_event:signature() | all}
                           | {start, witness_event:proc(), witness_event:signature(), mfa()}
                           | witness_event:event()
                           | complete | stopped
                           | {gap, Reason :: term()}}
            | {line(), all, {time, integer()}}.

-doc "The outcome of a slice, or of a monitor that has ended, with the line and the id of the deciding operation.".
-type told() :: {line(), id(), slice, witness_monitor_sliced:outcome()}
              | {line(), id(), verdict, witness_monitor_machine:final()}.

-doc """
What ended without being reported: the monitors that have ended, how many of these were satisfied, how many slices were
satisfied, how many of both vacuously, and how many slices were left undecided for each reason.
""".
-type counted() :: {Gone :: [id()], Monitors :: non_neg_integer(), Slices :: non_neg_integer(), Vacuous :: non_neg_integer(),
                    Undecided :: #{witness_monitor_instance:reason() => pos_integer()}}.

-doc "The live monitors, as data.".
-type saved() :: {Covered :: non_neg_integer(), [{id(), witness_monitor_machine:saved()}]}.

-define(IS_EVENT(What), (element(1, What) =:= send orelse element(1, What) =:= recv orelse element(1, What) =:= call
                         orelse element(1, What) =:= return orelse element(1, What) =:= init orelse element(1, What) =:= fork
                         orelse element(1, What) =:= exit)).

%% In words: a message with work arrives whole, and makes as much garbage again.
-define(MIN_HEAP_WORDS, 50_000).

%% `covered`: actions that are not in the process dictionary, since they were loaded.
-record(shard, {spec :: witness_monitor_machine:prepared(),
               owner :: reference(),
               covered = 0 :: non_neg_integer(),
               monitors :: monitors()}).

-type machines() :: #{id() => witness_monitor_machine:machine()}.

-doc "The live monitors, and the first deadline of each if the property has some.".
-opaque monitors() :: {machines(), none | witness_monitor_expiry:idle()}.

-doc "Starts a shard without monitors.".
-spec start_link(spec()) -> pid().
start_link(Spec) ->
    Pid = spawn_opt(?MODULE, init, [Spec, self()],
                    [link, {message_queue_data, off_heap}, {min_heap_size, ?MIN_HEAP_WORDS},
                     {fullsweep_after, 10} | witness_monitor_runner:heap_limit(Spec)]),
    true = is_pid(Pid),
    Pid.

-doc "Sends operations; the answer `{worked, Number, Shard, [Told], Counted, Covered}` is sent to `Caller`.".
-spec work(pid(), Number :: term(), [op()], Caller :: pid()) -> ok.
work(Shard, Number, Operations, Caller) ->
    Shard ! {work, Number, Caller, Operations},
    ok.

-doc "The live monitors.".
-spec save(pid()) -> saved().
save(Shard) -> call(Shard, fun(Ref) -> {save, self(), Ref} end).

-doc "Replaces the monitors of the shard.".
-spec load(pid(), saved()) -> ok | {error, term()}.
load(Shard, Saved) -> call(Shard, fun(Ref) -> {load, self(), Ref, Saved} end).

call(Shard, Request) ->
    Ref = monitor(process, Shard),
    Shard ! Request(Ref),
    receive
        {saved, Ref, Shard, Saved} -> demonitor(Ref, [flush]), Saved;
        {loaded, Ref, Shard} -> demonitor(Ref, [flush]), ok;
        {load_failed, Ref, Shard, Reason} -> demonitor(Ref, [flush]), {error, Reason};
        {'DOWN', Ref, process, Shard, Reason} -> exit(Reason)
    end.

-doc false.
-spec init(spec(), pid()) -> ok.
init(#{monitor := {Module, Arg}} = Spec, Owner) ->
    proc_lib:set_label({witness_offline_shard, Module, Arg}),
    Prepared = witness_monitor_machine:prepare(Spec),
    loop(#shard{spec = Prepared, owner = monitor(process, Owner), monitors = none(Prepared)}).

loop(S = #shard{spec = Spec, owner = Owner, monitors = Monitors}) ->
    receive
        {work, Seq, From, Ops} ->
            {Told, Counted, Monitors1} = perform(Ops, Monitors, Spec),
            From ! {worked, Seq, self(), Told, Counted, coverage(S)},
            loop(S#shard{monitors = Monitors1});
        {save, From, Ref} ->
            From ! {saved, Ref, self(), saved_state(S)},
            loop(S);
        {load, From, Ref, Data} ->
            case load_state(Data, S) of
                {ok, Loaded} ->
                    From ! {loaded, Ref, self()},
                    loop(Loaded);
                {error, Reason} ->
                    From ! {load_failed, Ref, self(), Reason},
                    loop(S)
            end;
        {'DOWN', Owner, process, _, _} ->
            ok;
        {system, From, Request} ->
            witness_event_process:system(Request, From, fun loop/1, S);
        _ ->
            loop(S)
    end.

coverage(#shard{covered = Covered}) -> Covered bor noted() bor witness_monitor_machine:read_marks().

%% The marks of each event are taken, and kept in the dictionary, too.
note_read(Line, What, #{on_read := OnRead}) when ?IS_EVENT(What) ->
    Taken = witness_monitor_machine:take_marks(),
    _ = put(?MODULE, noted() bor Taken),
    OnRead(Line, What, Taken);
note_read(_, _, #{}) -> none.

noted() ->
    case get(?MODULE) of
        undefined -> 0;
        Noted -> Noted
    end.

-doc "No monitor lives.".
-spec none(witness_monitor_machine:prepared()) -> monitors().
none(Spec) ->
    {#{}, case witness_monitor_machine:has_deadlines(Spec) of true -> witness_monitor_expiry:new(0); false -> none end}.

-doc "Performs operations with these live monitors, in the calling process.".
-spec perform([op()], monitors(), witness_monitor_machine:prepared()) -> {[told()], counted(), monitors()}.
perform(Ops, {Machines, none}, Spec) ->
    {Told, Counted, Machines1} = perform(Ops, Machines, [], {[], 0, 0, 0, #{}}, Spec),
    {lists:reverse(Told), Counted, {Machines1, none}};
perform(Ops, Monitors, Spec) ->
    {Told, Counted, Monitors1} = lists:foldl(fun(Op, Acc) -> perform_timed(Op, Spec, Acc) end,
                                             {[], {[], 0, 0, 0, #{}}, Monitors}, Ops),
    {lists:reverse(Told), Counted, Monitors1}.

perform_timed({Line, all, {time, Time}}, Spec, {Told, Counted, {Machines, Deadlines}}) ->
    {Ids, Left} = witness_monitor_expiry:due(Time, Deadlines),
    lists:foldl(fun(Id, Acc) -> perform_timed({Line, Id, {time, Time}}, Spec, Acc) end, {Told, Counted, {Machines, Left}}, Ids);
perform_timed({_, Id, What} = Op, Spec, {Told, Counted, {Machines, Deadlines}}) ->
    {Told1, Counted1, Machines1} = perform([Op], Machines, Told, Counted, Spec),
    {Told1, Counted1, {Machines1, note_deadline(Id, from(What), Machines1, Deadlines)}}.

%% Deadlines before this time have passed.
from({time, Time}) -> Time;
from(_) -> witness_monitor_expiry:before_all().

note_deadline(Id, From, Machines, Deadlines) ->
    witness_monitor_expiry:set(Id, case Machines of
        #{Id := Machine} -> witness_monitor_machine:next_deadline(From, Machine);
        #{} -> none
    end, Deadlines).

%% Outcomes are collected in reverse.
perform([{Line, Id, What} | Ops], Machines, Told, Counted, Spec) ->
    case Machines of
        #{Id := Machine} ->
            Stepped = step(What, Machine),
            _ = note_read(Line, What, Spec),
            case Stepped of
                {[], {ok, Next}} ->
                    perform(Ops, Machines#{Id := Next}, Told, Counted, Spec);
                {Slices, {ok, Next}} ->
                    {Told1, Counted1} = add_slices(Slices, Line, Id, Told, Counted),
                    perform(Ops, Machines#{Id := Next}, Told1, Counted1, Spec);
                {Slices, {decided, Final}} ->
                    {Told1, Counted1} = add_slices(Slices, Line, Id, Told, Counted),
                    {Told2, Counted2} = add_final(Final, Line, Id, Told1, Counted1),
                    perform(Ops, maps:remove(Id, Machines), Told2, Counted2, Spec)
            end;
        #{} when element(1, What) =:= start ->
            case witness_monitor_machine:new(started(What, Spec)) of
                {ok, Machine} ->
                    perform(Ops, Machines#{Id => Machine}, Told, Counted, Spec);
                {decided, Final} ->
                    {Told1, Counted1} = add_final(Final, Line, Id, Told, Counted),
                    perform(Ops, Machines, Told1, Counted1, Spec)
            end;
        #{} ->
            _ = note_read(Line, What, Spec),
            perform(Ops, Machines, Told, Counted, Spec)
    end;
perform([], Machines, Told, Counted, _) ->
    {Told, Counted, Machines}.

started({start, P, Signature}, Spec) -> Spec#{process => P, signature => Signature};
%% What was prepared is for processes that are seen from their births. A saved position needs no more: the `attached` has come.
started({start, P, Signature, Function}, Spec) ->
    (maps:without([config, choice], Spec))#{process => P, signature => Signature, attached => Function}.

step(How, Machine) when How =:= complete; How =:= stopped -> decide(witness_monitor_machine:finish(How, Machine));
step({time, Time}, Machine) -> witness_monitor_machine:pass(Time, Machine);
step({gap, _} = Gap, Machine) -> decide(witness_monitor_machine:inconclusive(Gap, Machine));
step(Start, _) when element(1, Start) =:= start -> exit(started_twice);
step(Event, Machine) -> witness_monitor_machine:run([Event], Machine).

decide({Slices, Final}) -> {Slices, {decided, Final}}.

add_final({satisfied, Vacuous}, _, Id, Told, {Gone, Monitors, Slices, VacuousOnes, Undecided}) ->
    {Told, {[Id | Gone], Monitors + 1, Slices, VacuousOnes + to_integer(Vacuous), Undecided}};
add_final(Final, Line, Id, Told, Counted) ->
    {[{Line, Id, verdict, Final} | Told], Counted}.

add_slices([], _, _, Told, Counted) -> {Told, Counted};
add_slices([{satisfied, Vacuous, _} | Outcomes], Line, Id, Told, {Gone, Monitors, Slices, VacuousOnes, Undecided}) ->
    add_slices(Outcomes, Line, Id, Told, {Gone, Monitors, Slices + 1, VacuousOnes + to_integer(Vacuous), Undecided});
add_slices([{undecided, Reason, N} | Outcomes], Line, Id, Told, {Gone, Monitors, Slices, Vacuous, Undecided}) ->
    More = maps:update_with(Reason, fun(Before) -> Before + N end, N, Undecided),
    add_slices(Outcomes, Line, Id, Told, {Gone, Monitors, Slices, Vacuous, More});
add_slices([Outcome | Outcomes], Line, Id, Told, Counted) ->
    add_slices(Outcomes, Line, Id, [{Line, Id, slice, Outcome} | Told], Counted).

to_integer(true) -> 1;
to_integer(false) -> 0.

saved_state(S = #shard{monitors = {Machines, _}}) ->
    {coverage(S), [{Id, witness_monitor_machine:save(Machine)} || Id := Machine <- Machines]}.

load_state({Covered, Saved}, S) when is_integer(Covered), Covered >= 0, is_list(Saved) ->
    case machines(Saved, #{}, S#shard.spec) of
        {ok, Machines} -> {ok, S#shard{covered = Covered bor S#shard.covered, monitors = monitors(Machines, S#shard.spec)}};
        Error -> Error
    end;
load_state(_, _) -> {error, damaged}.

machines([{Id, Saved} | Others], Machines, Spec) ->
    case witness_monitor_machine:load(Saved, Spec) of
        {ok, Machine} -> machines(Others, Machines#{Id => Machine}, Spec);
        Error -> Error
    end;
machines([], Machines, _) -> {ok, Machines};
machines(_, _, _) -> {error, damaged}.

monitors(Machines, Spec) ->
    case none(Spec) of
        {_, none} -> {Machines, none};
        {_, Deadlines} ->
            Note = fun(Id, _, A) -> note_deadline(Id, witness_monitor_expiry:before_all(), Machines, A) end,
            {Machines, maps:fold(Note, Deadlines, Machines)}
    end.
