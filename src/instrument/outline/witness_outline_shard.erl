-module(witness_outline_shard).
-moduledoc """
Runs the monitors of very many processes in one process: a *shard* of the native source (`m:witness_trace_native`, where it is
called a lane).

If only bounded monitors may read a process (`m:witness_monitor_safety`), it is born into a partition of a shard. It has no
tracer, no runner and no message of its own. The shard takes what its partitions have, many at a time. By the first event of
a process it decides which monitors read it (Algorithm 2, as in `m:witness_outline_dispatcher`). It holds these monitors as data
(`m:witness_monitor_machine`). Each time that it has taken something, it sends the run one message, `reports`. The run knows
a monitor of a shard as `{Lane, Number}`, with the process of the shard.

## Why a monitor does not harm the others of its shard

A monitor that loops, waits, ends its process or keeps it busy for long would block all others of the shard. So a shard runs
a monitor only if its code shows that it cannot: a step ends after a bounded time, and only computes. If a monitor crashes,
it alone is `inconclusive`. What remains is size: the garbage collector moves all that a shard holds. So a monitor that is
larger than most, or has slices, moves to a process of its own (`m:witness_monitor_runner`), which goes on from its state.
The shard still answers for it, and reports it if that process dies.

## When a shard dies

Its monitors are inconclusive, since the run is linked to it. Partitions that it has not been given wait for its successor.
""".

-export([start_link/2, replace/3, finish/2]).
-export([init/3]).

%% monitors: what all machines of a monitor share, and the kinds of events that it reads; for the present maps
%% live: the monitors of the partitions that are still read
%% count: of the monitors so far
%% told: reports for the run, newest first
%% marks: the property that has its marks in the process dictionary; covered: the marks of all others
%% grown: partitions with monitors that have to move out
%% moved: the processes of monitors that have moved out
-record(lane, {lane :: witness_trace_native:lane(),
               births :: pid(),
               config :: witness_outline_dispatcher:config(),
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

%% Its number, its property, the process that it reads and its signature, the batches until its size is checked, its state.
-type member() :: {pos_integer(), property(), witness_event:proc(), witness_event:signature(), pos_integer(),
                   witness_monitor_machine:machine()}.

%% Words: several times what is taken at once.
-define(HEAP, 100_000).
%% Batches after which the size of a monitor is checked, and the words that it may have.
-define(LOOK, 32).
-define(LARGE, 8_000).

-doc "Starts the process that takes from a shard; the caller is the `m:witness_outline_dispatcher` of its run.".
-spec start_link(witness_trace_native:lane(), witness_outline_dispatcher:config()) -> pid().
start_link(Lane, Config) ->
    Pid = spawn_opt(?MODULE, init, [Lane, Config, self()], [link, {priority, high}, {message_queue_data, off_heap}, {min_heap_size, ?HEAP},
                                                    {fullsweep_after, 10}]),
    true = is_pid(Pid),
    Pid.

-doc "From now on new processes have these maps. The answer is `{replaced, Pid, Tag}`; then the run knows of all monitors before.".
-spec replace(pid(), [witness_instrument_map:instrumentation()], Tag :: reference()) -> ok.
replace(Pid, Maps, Tag) -> Pid ! {replace, self(), Tag, Maps}, ok.

-doc """
The source was closed. The answer is `{finished, Pid, Tag}`, when everything that was gathered has been reported to the run;
monitors that have moved out go on.
""".
-spec finish(pid(), Tag :: reference()) -> ok.
finish(Pid, Tag) -> Pid ! {finish, self(), Tag}, ok.

-doc false.
-spec init(witness_trace_native:lane(), witness_outline_dispatcher:config(), pid()) -> no_return().
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

%% Other messages may be queued, so the next pieces are not taken at once.
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
%% From now on no process takes what comes. The run has to know which monitors that concerns, and why.
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
    case witness_instrument_map:starts(witness_instrument_map:new(Maps, #{held => false, signature => Signature})) of
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
    L1 = L#lane{count = N + 1, told = [{monitor, {self(), N + 1}, witness_instrument_monitors:meta(P, Signature, Entry)} | Told]},
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

%% The source leaves out the events that the only reader would skip.
narrowed([{_, Property, _, _, _, _}], Place, L = #lane{lane = Lane, monitors = Monitors}) ->
    case Monitors of
        #{Property := {_, all}} -> L;
        #{Property := {_, Kinds}} -> ok = witness_trace_native:narrow(Lane, Place, Kinds), L
    end;
narrowed(_, _, L) -> L.

%% --- monitors --------------------------------------------------------------------

%% The most frequent case: one monitor reads the partition.
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

%% Monitors mark their actions in the process dictionary, without naming their property. So the dictionary has the marks of
%% one property at a time.
marked(Property, L = #lane{marks = Property}) -> L;
marked(Property, L = #lane{marks = none}) -> L#lane{marks = Property};
marked(Property, L = #lane{marks = Other, covered = Covered}) ->
    L#lane{marks = Property, covered = Covered#{Other => covered(Other, L) bor witness_monitor_machine:uncover()}}.

covered(Property, #lane{marks = Property, covered = Covered}) ->
    maps:get(Property, Covered, 0) bor witness_monitor_machine:covered();
covered(Property, #lane{covered = Covered}) -> maps:get(Property, Covered, 0).

%% --- moving out ------------------------------------------------------------------

%% Between two takes, when this process has no event of their partitions.
move_out(L = #lane{grown = []}) -> L;
move_out(L = #lane{grown = Grown}) ->
    lists:foldl(fun move_out/2, L#lane{grown = []}, lists:usort(Grown)).

move_out(Place, L = #lane{lane = Lane, live = Live}) ->
    case Live of
        #{Place := [Member]} ->
            Partition = witness_trace_native:detach(Lane, Place),
            moved(Member, witness_instrument_monitors:taking(Partition), dropped(Place, L));
        %% Monitors that read a partition together stay together.
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
