-module(witness_monitor_turns).
-moduledoc """
Turns of monitors that need much time, so that the system goes on at its own speed however many of them there are.

The VM gives a process of low priority a turn after eight others have had one. Where a thousand of them want to run, that is
no protection: most of what runs is theirs. So a runner whose monitor is not known to be quick waits for a *turn* before it
reads a batch. There are as many turns as schedulers; where others want to run when a turn ends, it rests for as long as it
took. Monitors have them one after the other, however many runners of each wait, so that none keeps the others from showing
that they are quick. Whoever keeps a turn for very long, or for ever, is not waited for.

What is known of a monitor, which its runners find out with their first batches, is known to all of its runners in the run.
""".

-export([start_link/1, start_link/2, is_quick/2, says/3, ask/3, give/2]).
-export([init/3]).

-export_type([turns/0, turn/0]).

-type monitor() :: {module(), Arg :: term()}.
-opaque turns() :: {pid(), ets:table()}.
-type turn() :: reference().
-type state() :: unknown | slow | uncounted | {since, integer(), Long :: reference() | none}.

%% Milliseconds after which a turn is not waited for, and that it rests at most.
-define(LONG, 1000).
-define(REST, 200).

%% free: turns that nobody has; waiting: of each monitor, who asked first comes first; order: of those that have any, and
%% each of them once; asked: a turn that was given too late is not counted any more
-record(turns, {run :: reference(),
                long :: timeout(),
                table :: ets:table(),
                free :: non_neg_integer(),
                order = queue:new() :: queue:queue(monitor()),
                waiting = #{} :: #{monitor() => queue:queue(turn())},
                asked = #{} :: #{turn() => {pid(), Died :: reference(), monitor(), state()}},
                died = #{} :: #{reference() => turn()}}).

-doc "For the monitors of this run; it ends with that.".
-spec start_link(Run :: pid()) -> turns().
start_link(Run) -> start_link(Run, ?LONG).

-doc "The same, with the milliseconds after which a turn is not waited for.".
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

-doc "What the first batch of a runner has shown.".
-spec says(Quick :: boolean(), monitor(), turns()) -> ok.
says(Quick, Monitor, {Pid, _} = Turns) ->
    _ = is_quick(Monitor, Turns) =:= Quick orelse (Pid ! {is_quick, Monitor, Quick}),
    ok.

-doc """
Asks for a turn. It has come with the message `{Turn, turn}`, or if that monitor says that nobody gives any. A runner that
does not know yet how slow it is (`unknown`) needs none if the monitor turns out to be quick.
""".
-spec ask(unknown | slow, monitor(), turns()) -> turn().
ask(Pace, Monitor, {Pid, _}) ->
    Turn = monitor(process, Pid),
    Pid ! {ask, Turn, self(), Pace, Monitor},
    Turn.

-doc "The turn has ended.".
-spec give(turn(), turns()) -> ok.
give(Turn, {Pid, _}) ->
    true = demonitor(Turn, [flush]),
    Pid ! {given, Turn},
    ok.

-doc false.
-spec init(pid(), timeout(), {pid(), reference()}) -> ok.
init(Run, Long, {Caller, Tag}) ->
    proc_lib:set_label(witness_turns),
    Table = ets:new(?MODULE, [{read_concurrency, true}]),
    Caller ! {Tag, Table},
    loop(#turns{run = monitor(process, Run), long = Long, table = Table, free = erlang:system_info(schedulers_online)}).

loop(T = #turns{run = Run, table = Table, asked = Asked, died = Died, free = Free}) ->
    receive
        {ask, Turn, Pid, Pace, Monitor} ->
            Death = monitor(process, Pid),
            T1 = T#turns{died = Died#{Death => Turn}},
            %% It may have asked before, and be heard after, the monitor was known to be quick.
            case Pace =:= unknown andalso ets:lookup_element(Table, Monitor, 2, false) of
                true ->
                    Pid ! {Turn, turn},
                    loop(T1#turns{asked = Asked#{Turn => {Pid, Death, Monitor, uncounted}}});
                false ->
                    loop(next(waits(Turn, Monitor, T1#turns{asked = Asked#{Turn => {Pid, Death, Monitor, Pace}}})))
            end;
        {given, Turn} -> loop(ended(Turn, T));
        {is_quick, Monitor, Quick} ->
            true = ets:insert(Table, {Monitor, Quick}),
            loop(case Quick of true -> released(Monitor, T); false -> T end);
        {timeout, Long, {long, Turn}} ->
            case Asked of
                #{Turn := {Pid, Death, Monitor, {since, _, Long}}} ->
                    loop(next(T#turns{asked = Asked#{Turn := {Pid, Death, Monitor, uncounted}}, free = Free + 1}));
                #{} -> loop(T)
            end;
        {timeout, _, rested} -> loop(next(T#turns{free = Free + 1}));
        {'DOWN', Run, process, _, _} -> ok;
        {'DOWN', Death, process, _, _} when is_map_key(Death, Died) -> loop(ended(map_get(Death, Died), T));
        {system, From, Request} -> witness_event_process:system(Request, From, fun loop/1, T);
        _ -> loop(T)
    end.

waits(Turn, Monitor, T = #turns{order = Order, waiting = Waiting}) ->
    case Waiting of
        #{Monitor := Turns} -> T#turns{waiting = Waiting#{Monitor := queue:in(Turn, Turns)}};
        #{} -> T#turns{order = queue:in(Monitor, Order), waiting = Waiting#{Monitor => queue:from_list([Turn])}}
    end.

%% The next ones that wait, as long as there are turns.
next(T = #turns{free = Free, order = Order, waiting = Waiting, asked = Asked}) when Free > 0 ->
    case queue:out(Order) of
        {empty, _} -> T;
        {{value, Monitor}, Others} ->
            {{value, Turn}, Left} = queue:out(map_get(Monitor, Waiting)),
            case Asked of
                #{Turn := {Pid, Death, Monitor, Pace}} when Pace =:= unknown; Pace =:= slow ->
                    Pid ! {Turn, turn},
                    Since = {since, erlang:monotonic_time(millisecond), long(Turn, T)},
                    next(left(Left, Monitor, queue:in(Monitor, Others),
                              T#turns{order = Others, free = Free - 1, asked = Asked#{Turn := {Pid, Death, Monitor, Since}}}));
                %% It has died, or waits no more: another one of its monitor.
                #{} -> next(left(Left, Monitor, Order, T#turns{order = Others}))
            end
    end;
next(T) -> T.

left(Left, Monitor, Order, T = #turns{waiting = Waiting}) ->
    case queue:is_empty(Left) of
        true -> T#turns{waiting = maps:remove(Monitor, Waiting)};
        false -> T#turns{order = Order, waiting = Waiting#{Monitor := Left}}
    end.

long(_, #turns{long = infinity}) -> none;
long(Turn, #turns{long = Long}) -> erlang:start_timer(Long, self(), {long, Turn}).

ended(Turn, T = #turns{asked = Asked, died = Died, free = Free}) ->
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
                            _ = erlang:start_timer(min(Took, ?REST), self(), rested),
                            T1;
                        false -> next(T1#turns{free = Free + 1})
                    end;
                _ -> T1
            end;
        #{} -> T
    end.

%% Those need no turn who wait without knowing more than that the monitor turns out to be quick.
released(Monitor, T = #turns{asked = Asked}) ->
    T#turns{asked = maps:map(fun
        (Turn, {Pid, Death, Of, unknown}) when Of =:= Monitor ->
            Pid ! {Turn, turn},
            {Pid, Death, Of, uncounted};
        (_, Asking) -> Asking
    end, Asked)}.
