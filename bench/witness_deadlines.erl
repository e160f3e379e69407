-module(witness_deadlines).
-moduledoc """
Deadlines that pass while nothing happens, with default settings.

Requests come at a constant rate, and none is answered. All are open before the first deadline passes, and deadlines pass at the same
rate. The system does nothing meanwhile.

- `4 processes`: requests to four servers, with a slice for each request;
- `a process each`: each request to a process of its own, with a monitor of one instance.

The function that is called with the verdict (`on_verdict`) reads the clock. A verdict is late by the time from its deadline to then. A
verdict is *early* if it is told before its deadline, or if that is less than the time of the property after the request was sent. A
deadline without a verdict, and an early verdict, end the measurement with an error.

Memory is that of the node (`erlang:memory(total)`) when all requests are open: of the system alone, with the same property without
`within`, and with it.

Then the cost of an event: a timed property and the same one without `within`, through runners, over the same events, interleaved.

- `loop`: one instance, which goes on after each answer;
- `slices`: a slice for each request, ten are open at a time;
- `many slices`: the same, while 100,000 others are open.

Usage: `witness_deadlines:main([Deadlines, Seconds, Repetitions])`: so many deadlines, requested and passed during so many seconds. With 0 deadlines there
is only the cost of an event.
""".

-export([main/1, system/4, worker/1]).

%% From the last request to the first deadline.
-define(QUIET_MS, 5_000).
%% From the last request to the measurement of memory.
-define(SETTLE_MS, 3_000).
%% The longest wait for a verdict after the last one.
-define(GIVE_UP_MS, 60_000).
-define(SERVERS, 4).
-define(EVENTS, 20_000).
-define(MANY, 100_000).

-spec main([string()]) -> no_return().
main(Args) ->
    [Deadlines, Seconds, Repetitions] = [list_to_integer(A) || A <- Args],
    {ok, _} = application:ensure_all_started(witness),
    Faults = case Deadlines of
        0 -> [];
        _ -> rows(Deadlines, Seconds)
    end,
    costs(Repetitions),
    lists:foreach(fun(Fault) -> io:format(standard_error, "~ts~n", [Fault]) end, Faults),
    halt(case Faults of [] -> 0; _ -> 1 end).

rows(Deadlines, Seconds) ->
    Limit = 1000 * Seconds + ?QUIET_MS,
    io:format("OTP ~s, ~w scheduler(s): ~w deadlines open at a time, passing during ~w s~n~n~-24s ~8s ~8s ~8s ~8s ~7s  ~-8s ~8s ~8s~n",
              [erlang:system_info(otp_release), erlang:system_info(schedulers_online), Deadlines, Seconds,
               "", "p50 ms", "p90 ms", "p99 ms", "max ms", "early", "MB alone", "untimed", "timed"]),
    [Fault || Shape <- [servers, each], Source <- sources(),
              Fault <- row(Source, Shape, Deadlines, 1000 * Seconds, Limit)].

sources() -> [native || witness_trace_native:available() =:= ok] ++ [evm].

row(Source, Shape, Deadlines, Spread, Limit) ->
    Load = [Shape, Deadlines, Spread],
    Alone = alone(Load),
    Untimed = run(Source, Load, none),
    {Timed, Times, Early, Missing} = run(Source, Load, Limit),
    Name = [atom_to_list(Source), case Shape of servers -> io_lib:format(", ~w processes", [?SERVERS]); each -> ", a process each" end],
    Sorted = lists:sort(Times),
    io:format("~-24s ~s ~7w  ~8.1f ~8.1f ~8.1f~n",
              [Name, lists:join($\s, [io_lib:format("~8.2f", [percentile(P, Sorted) / 1.0e6]) || P <- [50, 90, 99, 100]]), Early,
               mega(Alone), mega(Untimed), mega(Timed)]),
    [[Name, io_lib:format(": ~w verdicts were told before their deadline", [Early])] || Early > 0]
        ++ [[Name, io_lib:format(": ~w deadlines have no verdict", [Missing])] || Missing > 0].

percentile(_, []) -> 0;
percentile(P, Sorted) -> lists:nth(max(1, (P * length(Sorted) + 99) div 100), Sorted).

mega(Bytes) -> Bytes / 1.0e6.

%% --- runs ------------------------------------------------------------------------

alone(Load) ->
    clean(),
    {_, Ref} = spawn_monitor(?MODULE, system, [self() | Load]),
    Memory = settled(),
    receive {system, System} -> System ! finish end,
    receive {'DOWN', Ref, process, _, normal} -> Memory end.

%% With a limit also by how many nanoseconds each verdict is late, how many are early, and how many are missing.
run(Source, [Shape, Deadlines | _] = Load, Limit) ->
    clean(),
    Self = self(),
    {ok, Run} = witness:start(#{system => {?MODULE, system, [Self | Load]}, source => Source, log => false, max_verdicts => 0,
                                max_slices => Deadlines, on_verdict => fun(V) -> told(V, Limit, Self) end,
                                monitors => [{{?MODULE, worker, 1}, monitor_of(property(Shape, Limit))}]}),
    Memory = settled(),
    Result = case Limit of
        none -> Memory;
        _ ->
            {Times, Early, Missing} = verdicts(Deadlines, #{}, [], 0),
            {Memory, Times, Early, Missing}
    end,
    receive {system, System} -> System ! finish end,
    {ok, _} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run),
    drop_verdicts(),
    Result.

clean() -> lists:foreach(fun erlang:garbage_collect/1, processes()).

%% The memory of the node when all requests are open.
settled() ->
    receive requested -> ok end,
    receive after ?SETTLE_MS -> erlang:memory(total) end.

told(#{verdict := no, event := undefined, steps := Steps, info := #{deadline := At}}, Limit, Collector) ->
    Now = erlang:monotonic_time(nanosecond),
    #{event := {recv, _, _, {ask, {N, Sent}}, _}} = lists:last(Steps),
    Collector ! {told, N, Now - At, Now < At orelse At < Sent + 1_000_000 * Limit};
told(_, _, _) -> ok.

verdicts(0, _, Times, Early) -> {Times, Early, 0};
verdicts(Left, Seen, Times, Early) ->
    receive
        {told, N, Late, IsEarly} when not is_map_key(N, Seen) ->
            verdicts(Left - 1, Seen#{N => []}, [Late | Times], Early + case IsEarly of true -> 1; false -> 0 end)
    after ?GIVE_UP_MS -> {Times, Early, Left}
    end.

drop_verdicts() -> receive {told, _, _, _} -> drop_verdicts() after 0 -> ok end.

property(servers, Limit) ->
    ["p: with witness_deadlines:worker(_) per N over _ ? {ask, N}, _ : _ ! {answer, N} check [_ ? {ask, N}] ", within(Limit),
     "<_ : _ ! {answer, N}> tt."];
property(each, Limit) ->
    ["p: with witness_deadlines:worker(_) over _ ? {ask, _}, _ : _ ! {answer, _} check [_ ? {ask, N}] ", within(Limit),
     "<_ : _ ! {answer, N}> tt."];
property(loop, Limit) ->
    ["p: with witness_deadlines:worker(_) over _ ? {ask, _}, _ : _ ! {answer, _} check max X. [_ ? {ask, N}] (", within(Limit),
     "<_ : _ ! {answer, N}> tt and [_ : _ ! {answer, _}] X)."].

within(none) -> "";
within(Milliseconds) -> ["within ", integer_to_list(Milliseconds), " ms "].

monitor_of(Text) ->
    Name = iolist_to_binary(["deadlines", integer_to_list(erlang:unique_integer([positive])), ".hml"]),
    {ok, #{module := Module, entries := [#{index := Index}]}, _} = witness_spec:compile_string(Name, iolist_to_binary(Text)),
    {Module, Index}.

%% --- the system ------------------------------------------------------------------

-doc false.
-spec system(pid(), servers | each, pos_integer(), pos_integer()) -> ok.
system(Collector, Shape, Deadlines, Spread) ->
    Collector ! {system, self()},
    Servers = case Shape of
        servers -> [start() || _ <- lists:seq(1, ?SERVERS)];
        each -> []
    end,
    Begin = erlang:monotonic_time(millisecond),
    Workers = request(0, Deadlines, list_to_tuple(Servers), Servers, {Begin, Spread}),
    Collector ! requested,
    receive finish -> ok end,
    Refs = [{monitor(process, Worker), Worker} || Worker <- Workers],
    _ = [Worker ! stop || Worker <- Workers],
    lists:foreach(fun({Ref, _}) -> receive {'DOWN', Ref, process, _, _} -> ok end end, Refs).

request(Deadlines, Deadlines, _, Workers, _) -> Workers;
request(N, Deadlines, Servers, Workers, {Begin, Spread} = Time) ->
    Due = N * Spread div Deadlines,
    receive after max(0, Begin + Due - erlang:monotonic_time(millisecond)) -> ok end,
    %% All that are due in this millisecond.
    Until = min(Deadlines, max(N + 1, (Due + 1) * Deadlines div Spread)),
    request(Until, Deadlines, Servers, ask(N, Until, Servers, Workers), Time).

ask(Until, Until, _, Workers) -> Workers;
ask(N, Until, {}, Workers) -> ask(N + 1, Until, {}, [ask(N, start()) | Workers]);
ask(N, Until, Servers, Workers) ->
    _ = ask(N, element(N rem ?SERVERS + 1, Servers)),
    ask(N + 1, Until, Servers, Workers).

ask(N, Worker) ->
    Worker ! {ask, {N, erlang:monotonic_time(nanosecond)}},
    Worker.

start() -> spawn(?MODULE, worker, [none]).

-doc false.
-spec worker(none) -> ok.
worker(none) ->
    receive
        {ask, _} -> worker(none);
        stop -> ok
    end.

%% --- the cost of an event ---------------------------------------------------------

costs(Repetitions) ->
    io:format("~nnanoseconds an event through a runner, medians of ~w~n~-28s ~8s ~8s ~8s~n",
              [Repetitions, "", "untimed", "timed", "ratio"]),
    Cases = [{Name, Batch, monitor_of(property(Shape, none)), monitor_of(property(Shape, 3_600_000)), Open}
             || {Name, Shape, Open} <- [{"loop", loop, {1, 0}}, {"slices", servers, {10, 0}}, {"many slices", servers, {10, ?MANY}}],
                Batch <- [100, 1]],
    Measured = [{{Name, Batch}, cost(Untimed, Batch, Open), cost(Timed, Batch, Open)}
                || _ <- lists:seq(1, Repetitions), {Name, Batch, Untimed, Timed, Open} <- Cases],
    [begin
         Pairs = [{Untimed, Timed} || {Key, Untimed, Timed} <- Measured, Key =:= {Name, Batch}],
         io:format("~-28s ~8.1f ~8.1f ~8.2f~n",
                   [[Name, case Batch of 1 -> ", one by one"; _ -> io_lib:format(", ~w at a time", [Batch]) end],
                    median([U || {U, _} <- Pairs]), median([T || {_, T} <- Pairs]), median([T / U || {U, T} <- Pairs])])
     end || {Name, Batch, _, _, _} <- Cases],
    ok.

median(List) -> lists:nth((length(List) + 1) div 2, lists:sort(List)).

%% The run and the tracer are processes that take no part: all deadlines are an hour away.
cost(Monitor, Batch, {AtATime, Open}) ->
    Run = spawn_link(fun Forget() -> receive _ -> Forget() end end),
    Runner = witness_monitor_runner:start(#{monitor => Monitor, process => self(), signature => {?MODULE, worker, [none]},
                                            run => Run, explain => 12, ordered => false, max_slices => 2 * ?MANY,
                                            clock => {tracer, self()}}),
    feed([recv(-N) || N <- lists:seq(1, Open)], 100, Runner),
    Batches = batches(lists:append([round(First, AtATime) || First <- lists:seq(1, ?EVENTS div 2, AtATime)]), Batch),
    feed(batches([recv(0), send(0)], Batch), Runner),
    Begin = erlang:monotonic_time(nanosecond),
    feed(Batches, Runner),
    Time = erlang:monotonic_time(nanosecond) - Begin,
    Ref = monitor(process, Runner),
    exit(Runner, kill),
    unlink(Run),
    exit(Run, kill),
    receive {'DOWN', Ref, process, _, killed} -> Time / ?EVENTS end.

feed(Events, Batch, Runner) -> feed(batches(Events, Batch), Runner).

feed(Batches, Runner) ->
    lists:foreach(fun({Size, Events}) ->
        ok = witness_monitor_runner:send_batch(Runner, Events, Size, self())
    end, Batches),
    lists:foreach(fun({Size, _}) -> receive {read, Runner, Size} -> ok end end, Batches).

batches([], _) -> [];
batches(Events, Batch) when length(Events) =< Batch -> [{length(Events), Events}];
batches(Events, Batch) ->
    {Now, Later} = lists:split(Batch, Events),
    [{Batch, Now} | batches(Later, Batch)].

%% Requests that are open at a time, and their answers.
round(First, AtATime) ->
    Numbers = lists:seq(First, First + AtATime - 1),
    [recv(N) || N <- Numbers] ++ [send(N) || N <- Numbers].

recv(N) -> {recv, self(), undefined, {ask, N}, erlang:monotonic_time(nanosecond)}.
send(N) -> {send, self(), self(), {answer, N}, erlang:monotonic_time(nanosecond)}.
