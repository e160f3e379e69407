-module(witness_outline_overload).
-moduledoc """
Keeps the tracers and monitors of a run within a budget of memory, if events come to mailboxes.

The VM does not bound mailboxes. So a process of maximum priority measures them: every 20 milliseconds, less often if that
takes long. If all together take more than the budget:

- If tracers take at most half of the budget, the largest monitors are ended, inconclusive with the gap `memory`. That
  includes a monitor that never returns to its mailbox. All others go on.
- Otherwise the system does more than can be traced: **all gathering is given up**. The tracers are ended, with their
  sessions and their queued events. Every undecided monitor has the gap `memory`. The system goes on unobserved.

Before that, when tracers have fallen behind, they get a higher priority than the system. So the system slows down to what
can be analysed (`is_pressed/1`).

The process ends when the pool of tracers has ended and no monitor is left.
""".

-export([start_link/1, watch/3, is_pressed/1]).
-export([init/3]).

-export_type([budget/0]).

-doc "What tracers know of the budget.".
-opaque budget() :: {New :: ets:table(), Pressure :: atomics:atomics_ref()}.

%% Milliseconds between two measurements, and the least pause after one, as a multiple of the time that it took.
-define(PERIOD_MS, 20).
-define(PAUSE_FACTOR, 20).
%% Milliseconds that one measurement may take, and how many processes it measures in turn, even if nothing calls for it.
-define(MAX_MEASURE_MS, 4).
-define(TURN_PROCESSES, 16).
%% Bytes queued for tracers before they get priority. A tracer with priority blocks the system, so this is limited.
-define(MAX_QUEUED_BYTES, 1 bsl 26).

-record(budget, {memory :: pos_integer(),
                 run :: pid(),
                 pool :: undefined | pid(),
                 new :: ets:table(),
                 pressure :: atomics:atomics_ref(),
                 usage = witness_outline_overload_policy:new() :: witness_outline_overload_policy:usage(),
                 turn = [] :: [pid()]}).

-doc "Watches the tracers of the calling process, which is the pool, and their monitors.".
-spec start_link(#{memory := pos_integer(), run := pid(), _ => _}) -> budget().
start_link(#{memory := Memory, run := Run}) ->
    Pid = spawn_opt(?MODULE, init, [self(), Run, Memory], [link, {priority, max}]),
    receive
        {Pid, Budget} -> Budget;
        {'EXIT', Pid, Reason} -> exit(Reason)
    end.

-doc "From now on the memory of this process counts.".
-spec watch(witness_outline_overload_policy:kind(), pid(), budget()) -> ok.
watch(Kind, P, {New, _}) ->
    true = ets:insert(New, {P, Kind}),
    ok.

-doc "Whether tracers have to run at a higher priority than the system.".
-spec is_pressed(budget()) -> boolean().
is_pressed({_, Pressure}) -> atomics:get(Pressure, 1) =:= 1.

-doc false.
-spec init(pid(), pid(), pos_integer()) -> ok.
init(Pool, Run, Memory) ->
    process_flag(trap_exit, true),
    link(Run),
    proc_lib:set_label(witness_overload),
    New = ets:new(witness_overload, [public, {write_concurrency, true}]),
    Pressure = atomics:new(1, []),
    Pool ! {self(), {New, Pressure}},
    loop(?PERIOD_MS, #budget{memory = Memory, run = Run, pool = Pool, new = New, pressure = Pressure}).

loop(Pause, B = #budget{pool = Pool, run = Run}) ->
    receive
        {'EXIT', Run, _} -> ok;
        {'EXIT', Pool, _} -> loop(Pause, B#budget{pool = undefined});
        {system, From, Request} -> witness_event_process:system(Request, From, fun(B1) -> loop(Pause, B1) end, B)
    after Pause ->
        Begun = erlang:monotonic_time(millisecond),
        B1 = apply_judgement(measure_turn(check_queues(add_new(B), Begun), Begun)),
        case B1#budget.pool =:= undefined andalso witness_outline_overload_policy:processes(B1#budget.usage) =:= [] of
            true -> ok;
            false -> loop(max(?PERIOD_MS, ?PAUSE_FACTOR * (erlang:monotonic_time(millisecond) - Begun)), B1)
        end
    end.

%% --- measuring -------------------------------------------------------------------

add_new(B = #budget{new = New, usage = Usage}) ->
    Joined = ets:tab2list(New),
    lists:foreach(fun({P, _}) -> ets:delete(New, P) end, Joined),
    B#budget{usage = lists:foldl(fun({P, Kind}, U) -> witness_outline_overload_policy:add(P, Kind, U) end, Usage, Joined)}.

check_queues(B = #budget{usage = Usage}, Begun) ->
    Usage1 = witness_outline_overload_policy:put_queue_lengths(fun queue_length/1, Usage),
    B#budget{usage = measure(witness_outline_overload_policy:coarse(Usage1), Begun, Usage1)}.

queue_length(P) ->
    case process_info(P, message_queue_len) of
        {message_queue_len, N} -> N;
        undefined -> undefined
    end.

%% A process without messages may have grown too, so all processes are measured in turn.
measure_turn(B = #budget{turn = [], usage = Usage}, Begun) ->
    measure_next(witness_outline_overload_policy:processes(Usage), B, Begun);
measure_turn(B = #budget{turn = Turn}, Begun) -> measure_next(Turn, B, Begun).

measure_next(Turn, B = #budget{usage = Usage}, Begun) ->
    {Now, Later} = lists:split(min(?TURN_PROCESSES, length(Turn)), Turn),
    B#budget{turn = Later, usage = measure(Now, Begun, Usage)}.

measure([], _, Usage) -> Usage;
measure([P | Ps], Begun, Usage) ->
    Usage1 = measure(P, Usage),
    case erlang:monotonic_time(millisecond) - Begun > ?MAX_MEASURE_MS of
        true -> Usage1;
        false -> measure(Ps, Begun, Usage1)
    end.

measure(P, Usage) ->
    case process_info(P, [message_queue_len, memory]) of
        [{message_queue_len, N}, {memory, Bytes}] -> witness_outline_overload_policy:put_measurement(P, N, Bytes, Usage);
        undefined -> Usage
    end.

%% --- acting ----------------------------------------------------------------------

apply_judgement(B = #budget{memory = Memory, usage = Usage}) ->
    case witness_outline_overload_policy:judge(Memory, Usage) of
        fine -> update_pressure(B);
        {end_monitors, Largest, Until} -> update_pressure(B#budget{usage = end_monitors(Largest, Until, Usage)});
        give_up ->
            %% The pool ends by its links, which notifies the run. Tracers that it starts meanwhile end with it.
            Tracers = witness_outline_overload_policy:processes(tracer, Usage),
            lists:foreach(fun(P) -> exit(P, {shutdown, {given_up, memory}}) end, Tracers),
            lists:foreach(fun erlang:is_process_alive/1, Tracers),
            B
    end.

%% A monitor is measured before it is ended: it may have caught up, or was never as large as estimated.
end_monitors([P | Ps], Until, Usage) ->
    Usage1 = measure(P, Usage),
    {Tracers, Monitors} = witness_outline_overload_policy:totals(Usage1),
    case Tracers + Monitors > Until of
        true -> end_monitors(Ps, Until, end_monitor(P, Usage1));
        false -> Usage1
    end;
end_monitors([], _, Usage) -> Usage.

%% The run notices by its link. `is_process_alive/1' waits until the signal has been handled, which is at once, not when the
%% process is scheduled. The monitor may have made its process trap exits: then it is killed.
end_monitor(P, Usage) ->
    exit(P, {shutdown, {gap, memory}}),
    _ = is_process_alive(P) andalso exit(P, kill) andalso is_process_alive(P),
    witness_outline_overload_policy:remove(P, Usage).

%% The priority is raised late, and lowered early enough that the system is not blocked for long at a time.
update_pressure(B = #budget{memory = Memory, pressure = Pressure, usage = Usage}) ->
    Behind = witness_outline_overload_policy:queued_bytes(Usage),
    Much = min(Memory div 4, ?MAX_QUEUED_BYTES),
    ok = case atomics:get(Pressure, 1) of
        0 when Behind > Much -> atomics:put(Pressure, 1, 1);
        1 when Behind < Much div 2 -> atomics:put(Pressure, 1, 0);
        _ -> ok
    end,
    B.
