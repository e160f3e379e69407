-module(witness_outline_shard).
-moduledoc """
Runs the monitors of very many processes in one process: a *shard* of the native source (`m:witness_trace_native`, where it is
called a shard).

If only bounded monitors may read a process (`m:witness_monitor_safety`), it is born into a partition of a shard. It has no
tracer, no runner and no message of its own. The shard takes what its partitions have, many at a time. By the first event of
a process it decides which monitors read it (Algorithm 2, as in `m:witness_outline_dispatcher`). It holds these monitors as data
(`m:witness_monitor_machine`). Each time that it has taken something, it sends the run one message, `reports`. The run knows
a monitor of a shard as `{Shard, Number}`, with the process of the shard.

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
%% reports: for the run, newest first
%% marks: the property that has its marks in the process dictionary; covered: the marks of all others
%% grown: partitions with monitors that have to move out
%% moved: the processes of monitors that have moved out
-record(shard, {shard :: witness_trace_native:shard(),
               dispatcher :: pid(),
               config :: witness_outline_dispatcher:config(),
               monitors = #{} :: #{property() => {witness_monitor_machine:prepared(), all | [witness_event:kind()]}},
               live = #{} :: #{witness_trace_native:place() => [member()]},
               count = 0 :: non_neg_integer(),
               reports = [] :: [term()],
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
-define(MIN_HEAP_WORDS, 100_000).
%% Batches after which the size of a monitor is checked, and the words that it may have.
-define(CHECK_BATCHES, 32).
-define(LARGE_WORDS, 8_000).

-doc "Starts the process that takes from a shard; the caller is the `m:witness_outline_dispatcher` of its run.".
-spec start_link(witness_trace_native:shard(), witness_outline_dispatcher:config()) -> pid().
start_link(Shard, Config) ->
    Pid = spawn_opt(?MODULE, init, [Shard, Config, self()],
                    [link, {priority, high}, {message_queue_data, off_heap}, {min_heap_size, ?MIN_HEAP_WORDS},
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
-spec init(witness_trace_native:shard(), witness_outline_dispatcher:config(), pid()) -> no_return().
init(Shard, Config = #{run := Run}, Dispatcher) ->
    process_flag(trap_exit, true),
    link(Run),
    proc_lib:set_label(witness_shard),
    take(#shard{shard = Shard, dispatcher = Dispatcher, config = Config}).

loop(S = #shard{config = Config}) ->
    receive
        witness_data -> take(S);
        {replace, From, Tag, Maps} ->
            From ! {replaced, self(), Tag},
            loop(S#shard{config = Config#{maps := Maps}, monitors = #{}});
        {finish, From, Tag} ->
            S1 = drain(S),
            From ! {finished, self(), Tag},
            await_moved(S1);
        {'DOWN', _, process, Runner, Reason} -> loop(handle_runner_exit(Runner, Reason, S));
        {'EXIT', Pid, _} -> give_up(Pid, S);
        {system, From, Request} -> witness_event_process:system(Request, From, fun loop/1, S)
    end.

%% Other messages may be queued, so the next pieces are not taken at once.
take(S = #shard{shard = Shard}) ->
    case witness_trace_native:take_shard(Shard) of
        [] -> loop(S);
        Pieces ->
            self() ! witness_data,
            loop(work(Pieces, S))
    end.

drain(S = #shard{shard = Shard}) ->
    case witness_trace_native:take_shard(Shard) of
        [] when map_size(S#shard.live) =:= 0 -> S;
        Pieces -> drain(work(Pieces, S))
    end.

await_moved(#shard{moved = Moved}) when map_size(Moved) =:= 0 -> exit(normal);
await_moved(S) ->
    receive
        {'DOWN', _, process, Runner, Reason} -> await_moved(handle_runner_exit(Runner, Reason, S));
        {'EXIT', _, normal} -> await_moved(S);
        {'EXIT', _, _} -> exit(shutdown)
    end.

-spec give_up(pid(), #shard{}) -> no_return().
%% From now on no process takes what comes. The run has to know which monitors that concerns, and why.
give_up(Dispatcher, S = #shard{dispatcher = Dispatcher, shard = Shard}) ->
    _ = work(witness_trace_native:take_shard(Shard), S),
    exit({shutdown, {gap, tracer_lost}});
give_up(_, _) -> exit(shutdown).

work(Pieces, S) -> report(move_out(lists:foldl(fun handle_piece/2, S, Pieces))).

report(S = #shard{reports = []}) -> S;
report(S = #shard{reports = Reports, config = #{run := Run}}) ->
    Run ! {reports, lists:reverse(Reports)},
    S#shard{reports = []}.

%% --- pieces ----------------------------------------------------------------------

handle_piece({Place, Births, Events, Status}, S = #shard{live = Live}) ->
    case Live of
        #{Place := [Member]} -> run_one(Member, Place, resolve_all(Births, Events, S), Status, S);
        #{Place := Members} -> run_members(Members, Place, resolve_all(Births, Events, S), Status, S);
        #{} -> S
    end;
handle_piece({Place, {init, P, Parent, Raw, Ts}, Births, Events, Status}, S = #shard{config = #{maps := Maps} = Config}) ->
    Signature = witness_event_signature:resolve(Raw, witness_event_wrapper:of_config(Config)),
    case witness_instrument_map:starts(witness_instrument_map:new(Maps, #{held => false, signature => Signature})) of
        [] -> drop(Place, Status, S);
        Starts ->
            {Members, S1} = start_monitors([Entry || {_, Entry} <- Starts], P, Signature, S),
            run_members(Members, Place, [{init, P, Parent, Signature, Ts} | resolve_all(Births, Events, S)], Status,
                        narrow(Members, Place, S1))
    end.

resolve_all(false, Events, _) -> Events;
resolve_all(true, Events, #shard{config = Config}) ->
    Table = witness_event_wrapper:of_config(Config),
    [resolve(E, Table) || E <- Events].

resolve({fork, P, Child, Raw, Ts}, Table) -> {fork, P, Child, witness_event_signature:resolve(Raw, Table), Ts};
resolve(E, _) -> E.

drop(Place, open, S = #shard{shard = Shard}) ->
    ok = witness_trace_native:unread(Shard, Place),
    S;
drop(_, _, S) -> S.

%% --- births ----------------------------------------------------------------------

start_monitors([], _, _, S) -> {[], S};
start_monitors([Entry = #{monitor := Monitor} | Entries], P, Signature, S0) ->
    Property = {Monitor, maps:get(version, Entry, 1)},
    S = #shard{count = N, reports = Reports} = switch_marks(Property, prepare_property(Property, S0)),
    #shard{monitors = #{Property := {Prepared, _}}} = S,
    S1 = S#shard{count = N + 1,
                 reports = [{monitor, {self(), N + 1}, witness_instrument_monitors:meta(P, Signature, Entry)} | Reports]},
    case witness_monitor_machine:new(Prepared#{process => P, signature => Signature}) of
        {ok, Machine} ->
            {Members, S2} = start_monitors(Entries, P, Signature, S1),
            {[{N + 1, Property, P, Signature, ?CHECK_BATCHES, Machine} | Members], S2};
        {decided, Final} ->
            start_monitors(Entries, P, Signature, add_verdict(N + 1, Property, Final, S1))
    end.

prepare_property(Property, S = #shard{monitors = Monitors}) when is_map_key(Property, Monitors) -> S;
prepare_property({Monitor, _} = Property, S = #shard{monitors = Monitors, config = Config}) ->
    Prepared = witness_monitor_machine:prepare((maps:with([explain, max_slices, slice_idle], Config))#{monitor => Monitor}),
    S#shard{monitors = Monitors#{Property => {Prepared, witness_monitor_alphabet:kinds(Monitor)}}}.

%% The source leaves out the events that the only reader would skip.
narrow([{_, Property, _, _, _, _}], Place, S = #shard{shard = Shard, monitors = Monitors}) ->
    case Monitors of
        #{Property := {_, all}} -> S;
        #{Property := {_, Kinds}} -> ok = witness_trace_native:narrow(Shard, Place, Kinds), S
    end;
narrow(_, _, S) -> S.

%% --- monitors --------------------------------------------------------------------

%% The most frequent case: one monitor reads the partition.
run_one({N, Property, P, Signature, Look, Machine}, Place, Events, open, S0) ->
    S = #shard{live = Live} = switch_marks(Property, S0),
    case witness_monitor_machine:run(Events, Machine) of
        {[], {ok, Next}} when Look > 1 ->
            S#shard{live = Live#{Place := [{N, Property, P, Signature, Look - 1, Next}]}};
        {Slices, {ok, Next}} ->
            keep([{N, Property, P, Signature, Look - 1, Next}], Place, add_slices(Slices, N, S));
        {Slices, {decided, Final}} ->
            drop(Place, open, remove(Place, add_verdict(N, Property, Final, add_slices(Slices, N, S))))
    end;
run_one(Member, Place, Events, Status, S) ->
    run_members([Member], Place, Events, Status, S).

run_members(Members, Place, Events, Status, S) ->
    case run_all(Members, Events, S) of
        {[], S1} -> drop(Place, Status, remove(Place, S1));
        {Left, S1} when Status =:= open -> keep(Left, Place, S1);
        {Left, S1} -> remove(Place, lists:foldl(fun(Member, A) -> end_member(Status, Member, A) end, S1, Left))
    end.

run_all([], _, S) -> {[], S};
run_all([{N, Property, P, Signature, Look, Machine} | Members], Events, S0) ->
    S = switch_marks(Property, S0),
    case witness_monitor_machine:run(Events, Machine) of
        {Slices, {ok, Next}} ->
            {Left, S1} = run_all(Members, Events, add_slices(Slices, N, S)),
            {[{N, Property, P, Signature, Look - 1, Next} | Left], S1};
        {Slices, {decided, Final}} ->
            run_all(Members, Events, add_verdict(N, Property, Final, add_slices(Slices, N, S)))
    end.

keep(Members, Place, S = #shard{live = Live, grown = Grown}) ->
    Looked = [check_size(Member) || Member <- Members],
    S1 = S#shard{live = Live#{Place => [Member || {_, Member} <- Looked]}},
    case lists:keymember(true, 1, Looked) of
        true -> S1#shard{grown = [Place | Grown]};
        false -> S1
    end.

check_size({N, Property, P, Signature, Look, Machine}) when Look < 1 ->
    {witness_monitor_machine:is_large(?LARGE_WORDS, Machine), {N, Property, P, Signature, ?CHECK_BATCHES, Machine}};
check_size(Member) ->
    {witness_monitor_machine:has_slices(element(6, Member)), Member}.

remove(Place, S = #shard{live = Live}) -> S#shard{live = maps:remove(Place, Live)}.

end_member(How, {N, Property, _, _, _, Machine}, S0) ->
    S = switch_marks(Property, S0),
    {Slices, Final} = case How of
        {gap, Reason, _} -> witness_monitor_machine:inconclusive({gap, Reason}, Machine);
        _ -> witness_monitor_machine:finish(How, Machine)
    end,
    add_verdict(N, Property, Final, add_slices(Slices, N, S)).

add_slices([], _, S) -> S;
add_slices(Outcomes, N, S = #shard{reports = Reports}) ->
    S#shard{reports = lists:foldl(fun(Outcome, Acc) -> [{slice, {self(), N}, Outcome} | Acc] end, Reports, Outcomes)}.

add_verdict(N, Property, Final, S = #shard{reports = Reports}) ->
    Outcome = case Final of
        ignored -> ignored;
        _ -> Final#{covered => coverage(Property, S)}
    end,
    S#shard{reports = [{verdict, {self(), N}, Outcome} | Reports]}.

%% --- marks -----------------------------------------------------------------------

%% Monitors mark their actions in the process dictionary, without naming their property. So the dictionary has the marks of
%% one property at a time.
switch_marks(Property, S = #shard{marks = Property}) -> S;
switch_marks(Property, S = #shard{marks = none}) -> S#shard{marks = Property};
switch_marks(Property, S = #shard{marks = Other, covered = Covered}) ->
    S#shard{marks = Property, covered = Covered#{Other => coverage(Other, S) bor witness_monitor_machine:take_marks()}}.

coverage(Property, #shard{marks = Property, covered = Covered}) ->
    maps:get(Property, Covered, 0) bor witness_monitor_machine:read_marks();
coverage(Property, #shard{covered = Covered}) -> maps:get(Property, Covered, 0).

%% --- moving out ------------------------------------------------------------------

%% Between two takes, when this process has no event of their partitions.
move_out(S = #shard{grown = []}) -> S;
move_out(S = #shard{grown = Grown}) ->
    lists:foldl(fun move_out/2, S#shard{grown = []}, lists:usort(Grown)).

move_out(Place, S = #shard{shard = Shard, live = Live}) ->
    case Live of
        #{Place := [Member]} ->
            Partition = witness_trace_native:detach(Shard, Place),
            start_runner(Member, witness_instrument_monitors:take_fun(Partition), remove(Place, S));
        %% Monitors that read a partition together stay together.
        #{} -> S
    end.

start_runner({N, Property, P, Signature, _, Machine}, Take, S = #shard{config = Config, moved = Moved}) ->
    {Monitor, _} = Property,
    Given = maps:with([run, explain, max_slices, slice_idle, memory, turns, signatures], Config),
    Runner = witness_monitor_runner:start(
               Given#{process => P, signature => Signature, monitor => Monitor, ordered => false, take => Take,
                      machine => Machine, reader => {self(), N}, covered => coverage(Property, S)}),
    monitor(process, Runner),
    S#shard{moved = Moved#{Runner => {self(), N}}}.

handle_runner_exit(Runner, Reason, S = #shard{moved = Moved, reports = Reports}) ->
    {Reader, Left} = maps:take(Runner, Moved),
    case Reason of
        normal -> S#shard{moved = Left};
        _ ->
            Outcome = witness_monitor_machine:failure_outcome({crashed, Reason}),
            report(S#shard{moved = Left, reports = [{verdict, Reader, Outcome} | Reports]})
    end.
