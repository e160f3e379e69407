-module(witness_monitor_throttle).
-moduledoc """
Turns of monitors that need much time, so that the system goes on at its own speed, however many such monitors there are.

The VM gives a process of low priority a turn after eight others have had one. If a thousand such processes are runnable, that
is no protection: most of the runnable processes are monitors. So if a runner's monitor is not known to be quick, the runner waits
for a *turn* before it reads a batch. There are as many turns as schedulers. If other processes are runnable when a turn ends,
the turn rests for as long as it took. Monitors get turns in rotation, however many runners of each wait. So no monitor keeps
others from showing that they are quick. If a runner keeps a turn for very long, or forever, the others do not wait for it.

The first batches of a monitor's runners show whether it is quick. All its runners in the run share that knowledge.
""".

-export([start_link/1, start_link/2, is_quick/2, report_pace/3, request_turn/3, end_turn/2]).
-export([init/3]).

-export_type([turns/0, turn/0]).

-type monitor() :: {module(), Arg :: term()}.
-opaque turns() :: {pid(), ets:table()}.
-type turn() :: reference().
-type state() :: unknown | slow | uncounted | {since, integer(), Long :: reference() | none}.

%% Milliseconds after which others do not wait for a turn any more, and the longest rest of a turn in milliseconds.
-define(LONG_TURN_MS, 1000).
-define(MAX_REST_MS, 200).

%% free: the number of free turns. waiting: the requests of each monitor, the first one first. order: the monitors with
%% requests, each of them once. asked: the state of each request. A turn that was given without need, or kept too long, is
%% `uncounted'.
-record(turns, {run :: reference(),
                long :: timeout(),
                table :: ets:table(),
                free :: non_neg_integer(),
                order = queue:new() :: queue:queue(monitor()),
                waiting = #{} :: #{monitor() => queue:queue(turn())},
                asked = #{} :: #{turn() => {pid(), Died :: reference(), monitor(), state()}},
                died = #{} :: #{reference() => turn()}}).

-doc "Turns for the monitors of this run; they end with the run.".
-spec start_link(Run :: pid()) -> turns().
start_link(Run) -> start_link(Run, ?LONG_TURN_MS).

-doc "The same, with the milliseconds after which others do not wait for a turn any more.".
-spec start_link(Run :: pid(), timeout()) -> turns().
start_link(Run, Long) ->
    Tag = make_ref(),
    {Pid, Monitor} = spawn_opt(?MODULE, init, [Run, Long, {self(), Tag}], [link, monitor, {priority, high}]),
    receive
        {Tag, Table} ->
            true = demonitor(Monitor, [flush]),
            {Pid, Table};
        {'DOWN', Monitor, process, Pid, Reason} -> exit(Reason)
    end.

-doc "Whether this monitor is known to need little time.".
-spec is_quick(monitor(), turns()) -> boolean().
is_quick(Monitor, {_, Table}) ->
    try ets:lookup_element(Table, Monitor, 2, false) catch error:badarg -> false end.

-doc "Reports what the first batch of a runner has shown.".
-spec report_pace(Quick :: boolean(), monitor(), turns()) -> ok.
report_pace(Quick, Monitor, {Pid, _} = Turns) ->
    _ = is_quick(Monitor, Turns) =:= Quick orelse (Pid ! {is_quick, Monitor, Quick}),
    ok.

-doc """
Asks for a turn. The message `{Turn, turn}` grants it; a `DOWN` message of that monitor means that no process gives turns any
more. A runner with a pace that is not known yet (`unknown`) needs no turn if the monitor turns out to be quick.
""".
-spec request_turn(unknown | slow, monitor(), turns()) -> turn().
request_turn(Pace, Monitor, {Pid, _}) ->
    Turn = monitor(process, Pid),
    Pid ! {ask, Turn, self(), Pace, Monitor},
    Turn.

-doc "The turn has ended.".
-spec end_turn(turn(), turns()) -> ok.
end_turn(Turn, {Pid, _}) ->
    true = demonitor(Turn, [flush]),
    Pid ! {given, Turn},
    ok.

-doc false.
-spec init(pid(), timeout(), {pid(), reference()}) -> ok.
init(Run, Long, {Caller, Tag}) ->
    proc_lib:set_label(witness_throttle),
    Table = ets:new(?MODULE, [{read_concurrency, true}]),
    Caller ! {Tag, Table},
    loop(#turns{run = monitor(process, Run), long = Long, table = Table, free = erlang:system_info(schedulers_online)}).

loop(T = #turns{run = Run, table = Table, asked = Asked, died = Died, free = Free}) ->
    receive
        {ask, Turn, Pid, Pace, Monitor} ->
            Death = monitor(process, Pid),
            T1 = T#turns{died = Died#{Death => Turn}},
            %% The request may arrive after the monitor was found to be quick.
            case Pace =:= unknown andalso ets:lookup_element(Table, Monitor, 2, false) of
                true ->
                    Pid ! {Turn, turn},
                    loop(T1#turns{asked = Asked#{Turn => {Pid, Death, Monitor, uncounted}}});
                false ->
                    loop(grant_turns(enqueue(Turn, Monitor, T1#turns{asked = Asked#{Turn => {Pid, Death, Monitor, Pace}}})))
            end;
        {given, Turn} -> loop(handle_turn_end(Turn, T));
        {is_quick, Monitor, Quick} ->
            true = ets:insert(Table, {Monitor, Quick}),
            loop(case Quick of true -> release_waiting(Monitor, T); false -> T end);
        {timeout, Long, {long, Turn}} ->
            case Asked of
                #{Turn := {Pid, Death, Monitor, {since, _, Long}}} ->
                    loop(grant_turns(T#turns{asked = Asked#{Turn := {Pid, Death, Monitor, uncounted}}, free = Free + 1}));
                #{} -> loop(T)
            end;
        {timeout, _, rested} -> loop(grant_turns(T#turns{free = Free + 1}));
        {'DOWN', Run, process, _, _} -> ok;
        {'DOWN', Death, process, _, _} when is_map_key(Death, Died) -> loop(handle_turn_end(map_get(Death, Died), T));
        {system, From, Request} -> witness_event_process:system(Request, From, fun loop/1, T);
        _ -> loop(T)
    end.

enqueue(Turn, Monitor, T = #turns{order = Order, waiting = Waiting}) ->
    case Waiting of
        #{Monitor := Turns} -> T#turns{waiting = Waiting#{Monitor := queue:in(Turn, Turns)}};
        #{} -> T#turns{order = queue:in(Monitor, Order), waiting = Waiting#{Monitor => queue:from_list([Turn])}}
    end.

%% Gives turns to the next requests, as long as there are free turns.
grant_turns(T = #turns{free = Free, order = Order, waiting = Waiting, asked = Asked}) when Free > 0 ->
    case queue:out(Order) of
        {empty, _} -> T;
        {{value, Monitor}, Others} ->
            {{value, Turn}, Left} = queue:out(map_get(Monitor, Waiting)),
            case Asked of
                #{Turn := {Pid, Death, Monitor, Pace}} when Pace =:= unknown; Pace =:= slow ->
                    Pid ! {Turn, turn},
                    Since = {since, erlang:monotonic_time(millisecond), start_limit(Turn, T)},
                    grant_turns(put_requests(Left, Monitor, queue:in(Monitor, Others),
                                             T#turns{order = Others, free = Free - 1,
                                                     asked = Asked#{Turn := {Pid, Death, Monitor, Since}}}));
                %% The runner has died, or does not wait any more: the next request of the same monitor.
                #{} -> grant_turns(put_requests(Left, Monitor, Order, T#turns{order = Others}))
            end
    end;
grant_turns(T) -> T.

put_requests(Left, Monitor, Order, T = #turns{waiting = Waiting}) ->
    case queue:is_empty(Left) of
        true -> T#turns{waiting = maps:remove(Monitor, Waiting)};
        false -> T#turns{order = Order, waiting = Waiting#{Monitor := Left}}
    end.

start_limit(_, #turns{long = infinity}) -> none;
start_limit(Turn, #turns{long = Long}) -> erlang:start_timer(Long, self(), {long, Turn}).

handle_turn_end(Turn, T = #turns{asked = Asked, died = Died, free = Free}) ->
    case Asked of
        #{Turn := {_, Death, _, State}} ->
            true = demonitor(Death, [flush]),
            T1 = T#turns{asked = maps:remove(Turn, Asked), died = maps:remove(Death, Died)},
            case State of
                {since, Begin, Long} ->
                    _ = is_reference(Long) andalso erlang:cancel_timer(Long),
                    Took = erlang:monotonic_time(millisecond) - Begin,
                    case Took > 0 andalso erlang:statistics(total_run_queue_lengths) > 0 of
                        true ->
                            _ = erlang:start_timer(min(Took, ?MAX_REST_MS), self(), rested),
                            T1;
                        false -> grant_turns(T1#turns{free = Free + 1})
                    end;
                _ -> T1
            end;
        #{} -> T
    end.

%% Releases the waiting runners of a monitor that turned out to be quick, if they only waited to learn its pace.
release_waiting(Monitor, T = #turns{asked = Asked}) ->
    T#turns{asked = maps:map(fun
        (Turn, {Pid, Death, Of, unknown}) when Of =:= Monitor ->
            Pid ! {Turn, turn},
            {Pid, Death, Of, uncounted};
        (_, Asking) -> Asking
    end, Asked)}.
