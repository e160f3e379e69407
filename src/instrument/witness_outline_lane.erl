-module(witness_outline_lane).
-moduledoc """
Runs the monitors of very many processes in one: a *lane* of the native source (`m:witness_trace_native`).

A process that only bounded monitors may read (`m:witness_monitor_bounded`) is born into a partition of a lane. It has no
tracer, no runner and no message of its own: the lane takes what any of its partitions have, many at a time, decides by the
first event of a process who reads it (Algorithm 2, as `m:witness_outline_births`), and holds its monitors as data
(`m:witness_monitor_machine`). To the run it speaks in `reports`, one message for each time that it has taken something. A
monitor of a lane is known there as `{Lane, Number}`.

## Why no monitor of a lane harms another one

A monitor that loops, waits, ends its process or keeps it busy for long would hold up all others of the lane, so only those
are let in of which their code says that they cannot: a step ends after a bounded time, and does nothing but to compute.
One that crashes is `inconclusive`, and no one else. What remains is size: the garbage collector moves all that a lane
holds. So a monitor that has grown beyond what most of them have, or that has slices, moves out, to a process of its
own (`m:witness_monitor_runner`), which goes on from its state. The lane answers for it still, and says so when that dies.

## When a lane dies

Its monitors are inconclusive, since the run is linked to it. What the source had not told it of waits for the next one.
""".

-export([start_link/2, replace/3, finish/2]).
-export([init/3]).

%% monitors: what all machines of one have in common, and the kinds of events that it reads; for the present maps
%% live: who reads the partitions that are not undone
%% count: of the monitors so far
%% told: for the run, the last one first
%% marks: the property whose marks are in the process dictionary; covered: those of all others
%% grown: partitions whose monitors have to move out
%% moved: monitors that have
-record(lane, {lane :: witness_trace_native:lane(),
               births :: pid(),
               config :: witness_outline_births:config(),
               monitors = #{} :: #{property() => {witness_monitor_machine:prepared(), all | [witness_event:kind()]}},
               live = #{} :: #{witness_trace_native:place() => [member()]},
               count = 0 :: non_neg_integer(),
               told = [] :: [term()],
               marks = none :: none | property(),
               covered = #{} :: #{property() => non_neg_integer()},
               grown = [] :: [witness_trace_native:place()],
               moved = #{} :: #{pid() => reader()}}).

-type reader() :: {pid(), pos_integer()}.
-type property() :: {Monitor :: {module(), term()}, Version :: pos_integer()}.

%% Its number, what it is, its process, and after how many batches its size is looked at again.
-type member() :: {pos_integer(), property(), witness_event:proc(), witness_event:signature(), pos_integer(),
                   witness_monitor_machine:machine()}.

%% In words: what comes in at a time, several times.
-define(HEAP, 100_000).
%% Batches after which the size of a monitor is looked at, and the words that it may have.
-define(LOOK, 32).
-define(LARGE, 8_000).

-doc "Starts the process that takes from a lane; the caller is its run's `m:witness_outline_births`.".
-spec start_link(witness_trace_native:lane(), witness_outline_births:config()) -> pid().
start_link(Lane, Config) ->
    Pid = spawn_opt(?MODULE, init, [Lane, Config, self()], [link, {priority, high}, {message_queue_data, off_heap}, {min_heap_size, ?HEAP},
                                                    {fullsweep_after, 10}]),
    true = is_pid(Pid),
    Pid.

-doc "From now on new processes have these maps. `{replaced, Pid, Tag}` says when; then the run knows of all before.".
-spec replace(pid(), [witness_outline_map:instrumentation()], Tag :: reference()) -> ok.
replace(Pid, Maps, Tag) -> Pid ! {replace, self(), Tag, Maps}, ok.

-doc """
The source was closed. `{finished, Pid, Tag}` says that the run was told of everything that was gathered; monitors that
have moved out go on.
""".
-spec finish(pid(), Tag :: reference()) -> ok.
finish(Pid, Tag) -> Pid ! {finish, self(), Tag}, ok.

-doc false.
-spec init(witness_trace_native:lane(), witness_outline_births:config(), pid()) -> no_return().
init(Lane, Config = #{run := Run}, Births) ->
    process_flag(trap_exit, true),
    link(Run),
    proc_lib:set_label(witness_lane),
    take(#lane{lane = Lane, births = Births, config = Config}).

loop(L = #lane{config = Config}) ->
    receive
        witness_data -> take(L);
        {replace, From, Tag, Maps} ->
            From ! {replaced, self(), Tag},
            loop(L#lane{config = Config#{maps := Maps}, monitors = #{}});
        {finish, From, Tag} ->
            L1 = work_off(L),
            From ! {finished, self(), Tag},
            await_moved(L1);
        {'DOWN', _, process, Runner, Reason} -> loop(gone(Runner, Reason, L));
        {'EXIT', Pid, _} -> lost(Pid, L);
        {system, From, Request} -> witness_event_process:system(Request, From, fun loop/1, L)
    end.

%% Others may have sent something meanwhile, so what there is next is not taken at once.
take(L = #lane{lane = Lane}) ->
    case witness_trace_native:take_lane(Lane) of
        [] -> loop(L);
        Pieces ->
            self() ! witness_data,
            loop(worked(Pieces, L))
    end.

work_off(L = #lane{lane = Lane}) ->
    case witness_trace_native:take_lane(Lane) of
        [] when map_size(L#lane.live) =:= 0 -> L;
        Pieces -> work_off(worked(Pieces, L))
    end.

await_moved(#lane{moved = Moved}) when map_size(Moved) =:= 0 -> exit(normal);
await_moved(L) ->
    receive
        {'DOWN', _, process, Runner, Reason} -> await_moved(gone(Runner, Reason, L));
        {'EXIT', _, normal} -> await_moved(L);
        {'EXIT', _, _} -> exit(shutdown)
    end.

-spec lost(pid(), #lane{}) -> no_return().
%% Nobody adopts what comes now. The run is to know whom that concerns, and why.
lost(Births, L = #lane{births = Births, lane = Lane}) ->
    _ = worked(witness_trace_native:take_lane(Lane), L),
    exit({shutdown, {gap, tracer_lost}});
lost(_, _) -> exit(shutdown).

worked(Pieces, L) -> tell(move_out(lists:foldl(fun piece/2, L, Pieces))).

tell(L = #lane{told = []}) -> L;
tell(L = #lane{told = Told, config = #{run := Run}}) ->
    Run ! {reports, lists:reverse(Told)},
    L#lane{told = []}.

%% --- pieces ----------------------------------------------------------------------

piece({Place, Births, Events, Status}, L = #lane{live = Live}) ->
    case Live of
        #{Place := [Member]} -> read(Member, Place, resolved(Births, Events), Status, L);
        #{Place := Members} -> feed(Members, Place, resolved(Births, Events), Status, L);
        #{} -> L
    end;
piece({Place, {init, P, Parent, Raw, Ts}, Births, Events, Status}, L = #lane{config = #{maps := Maps}}) ->
    Signature = witness_event_signature:resolve(Raw),
    case witness_outline_map:starts(witness_outline_map:new(Maps, #{held => false, signature => Signature})) of
        [] -> unread(Place, Status, L);
        Starts ->
            {Members, L1} = started([Entry || {_, Entry} <- Starts], P, Signature, L),
            feed(Members, Place, [{init, P, Parent, Signature, Ts} | resolved(Births, Events)], Status,
                 narrowed(Members, Place, L1))
    end.

resolved(false, Events) -> Events;
resolved(true, Events) -> [resolve(E) || E <- Events].

resolve({fork, P, Child, Raw, Ts}) -> {fork, P, Child, witness_event_signature:resolve(Raw), Ts};
resolve(E) -> E.

unread(Place, open, L = #lane{lane = Lane}) ->
    ok = witness_trace_native:unread(Lane, Place),
    L;
unread(_, _, L) -> L.

%% --- births ----------------------------------------------------------------------

started([], _, _, L) -> {[], L};
started([Entry = #{monitor := Monitor} | Entries], P, Signature, L0) ->
    Property = {Monitor, maps:get(version, Entry, 1)},
    L = #lane{count = N, told = Told} = marked(Property, known(Property, L0)),
    #lane{monitors = #{Property := {Prepared, _}}} = L,
    L1 = L#lane{count = N + 1, told = [{monitor, {self(), N + 1}, witness_outline_readers:meta(P, Signature, Entry)} | Told]},
    case witness_monitor_machine:new(Prepared#{process => P, signature => Signature}) of
        {ok, Machine} ->
            {Members, L2} = started(Entries, P, Signature, L1),
            {[{N + 1, Property, P, Signature, ?LOOK, Machine} | Members], L2};
        {decided, Final} ->
            started(Entries, P, Signature, verdict(N + 1, Property, Final, L1))
    end.

known(Property, L = #lane{monitors = Monitors}) when is_map_key(Property, Monitors) -> L;
known({Monitor, _} = Property, L = #lane{monitors = Monitors, config = Config}) ->
    Prepared = witness_monitor_machine:prepare((maps:with([explain, max_slices, slice_idle], Config))#{monitor => Monitor}),
    L#lane{monitors = Monitors#{Property => {Prepared, witness_monitor_alphabet:kinds(Monitor)}}}.

%% The source leaves out what the only reader would skip.
narrowed([{_, Property, _, _, _, _}], Place, L = #lane{lane = Lane, monitors = Monitors}) ->
    case Monitors of
        #{Property := {_, all}} -> L;
        #{Property := {_, Kinds}} -> ok = witness_trace_native:narrow(Lane, Place, Kinds), L
    end;
narrowed(_, _, L) -> L.

%% --- monitors --------------------------------------------------------------------

%% Where one monitor reads a partition, as most often.
read({N, Property, P, Signature, Look, Machine}, Place, Events, open, L0) ->
    L = #lane{live = Live} = marked(Property, L0),
    case witness_monitor_machine:run(Events, Machine) of
        {[], {ok, Next}} when Look > 1 ->
            L#lane{live = Live#{Place := [{N, Property, P, Signature, Look - 1, Next}]}};
        {Slices, {ok, Next}} ->
            kept([{N, Property, P, Signature, Look - 1, Next}], Place, slices(Slices, N, L));
        {Slices, {decided, Final}} ->
            unread(Place, open, dropped(Place, verdict(N, Property, Final, slices(Slices, N, L))))
    end;
read(Member, Place, Events, Status, L) ->
    feed([Member], Place, Events, Status, L).

feed(Members, Place, Events, Status, L) ->
    case fed(Members, Events, L) of
        {[], L1} -> unread(Place, Status, dropped(Place, L1));
        {Left, L1} when Status =:= open -> kept(Left, Place, L1);
        {Left, L1} -> dropped(Place, lists:foldl(fun(Member, A) -> ended(Status, Member, A) end, L1, Left))
    end.

fed([], _, L) -> {[], L};
fed([{N, Property, P, Signature, Look, Machine} | Members], Events, L0) ->
    L = marked(Property, L0),
    case witness_monitor_machine:run(Events, Machine) of
        {Slices, {ok, Next}} ->
            {Left, L1} = fed(Members, Events, slices(Slices, N, L)),
            {[{N, Property, P, Signature, Look - 1, Next} | Left], L1};
        {Slices, {decided, Final}} ->
            fed(Members, Events, verdict(N, Property, Final, slices(Slices, N, L)))
    end.

kept(Members, Place, L = #lane{live = Live, grown = Grown}) ->
    Looked = [looked(Member) || Member <- Members],
    L1 = L#lane{live = Live#{Place => [Member || {_, Member} <- Looked]}},
    case lists:keymember(true, 1, Looked) of
        true -> L1#lane{grown = [Place | Grown]};
        false -> L1
    end.

looked({N, Property, P, Signature, Look, Machine}) when Look < 1 ->
    {witness_monitor_machine:is_large(?LARGE, Machine), {N, Property, P, Signature, ?LOOK, Machine}};
looked(Member) ->
    {witness_monitor_machine:has_slices(element(6, Member)), Member}.

dropped(Place, L = #lane{live = Live}) -> L#lane{live = maps:remove(Place, Live)}.

ended(How, {N, Property, _, _, _, Machine}, L0) ->
    L = marked(Property, L0),
    {Slices, Final} = case How of
        {gap, Reason, _} -> witness_monitor_machine:inconclusive({gap, Reason}, Machine);
        _ -> witness_monitor_machine:ended(How, Machine)
    end,
    verdict(N, Property, Final, slices(Slices, N, L)).

slices([], _, L) -> L;
slices(Outcomes, N, L = #lane{told = Told}) ->
    L#lane{told = lists:foldl(fun(Outcome, Acc) -> [{slice, {self(), N}, Outcome} | Acc] end, Told, Outcomes)}.

verdict(N, Property, Final, L = #lane{told = Told}) ->
    Outcome = case Final of
        ignored -> ignored;
        _ -> Final#{covered => covered(Property, L)}
    end,
    L#lane{told = [{verdict, {self(), N}, Outcome} | Told]}.

%% --- marks -----------------------------------------------------------------------

%% Monitors mark their actions in the process dictionary, without saying whose they are. So whose turn it is has the
%% dictionary for itself.
marked(Property, L = #lane{marks = Property}) -> L;
marked(Property, L = #lane{marks = none}) -> L#lane{marks = Property};
marked(Property, L = #lane{marks = Other, covered = Covered}) ->
    L#lane{marks = Property, covered = Covered#{Other => covered(Other, L) bor witness_monitor_machine:uncover()}}.

covered(Property, #lane{marks = Property, covered = Covered}) ->
    maps:get(Property, Covered, 0) bor witness_monitor_machine:covered();
covered(Property, #lane{covered = Covered}) -> maps:get(Property, Covered, 0).

%% --- moving out ------------------------------------------------------------------

%% Between two takes, so that nothing of their partitions is in hand.
move_out(L = #lane{grown = []}) -> L;
move_out(L = #lane{grown = Grown}) ->
    lists:foldl(fun move_out/2, L#lane{grown = []}, lists:usort(Grown)).

move_out(Place, L = #lane{lane = Lane, live = Live}) ->
    case Live of
        #{Place := [Member]} ->
            Partition = witness_trace_native:detach(Lane, Place),
            moved(Member, witness_outline_readers:taking(Partition), dropped(Place, L));
        %% Those that read a partition together stay together.
        #{} -> L
    end.

moved({N, Property, P, Signature, _, Machine}, Take, L = #lane{config = Config, moved = Moved}) ->
    {Monitor, _} = Property,
    Given = maps:with([run, explain, max_slices, slice_idle, memory, turns], Config),
    Runner = witness_monitor_runner:start(
               Given#{process => P, signature => Signature, monitor => Monitor, ordered => false, take => Take,
                      machine => Machine, reader => {self(), N}, covered => covered(Property, L)}),
    monitor(process, Runner),
    L#lane{moved = Moved#{Runner => {self(), N}}}.

gone(Runner, Reason, L = #lane{moved = Moved, told = Told}) ->
    {Reader, Left} = maps:take(Runner, Moved),
    case Reason of
        normal -> L#lane{moved = Left};
        _ ->
            Outcome = witness_monitor_machine:failed({crashed, Reason}),
            tell(L#lane{moved = Left, told = [{verdict, Reader, Outcome} | Told]})
    end.
