-module(witness_overload).
-moduledoc """
What happens when monitors cannot keep up: the saturated load of `m:witness_load`, every
worker with a slow monitor.

- `prompt`: the monitor needs no time; the unit of the ratios;
- `busy`: it computes for a millisecond at each event;
- `sleeping`: it waits for ten at each event (one is about what a worker itself has);
- `never`: it never returns from its first event.

The buffers must stay within their budget (over `evm` the budget is sampled, and the excess is
shown), the system must go on, and missing events must be reported: the monitors that miss events are
inconclusive with a gap, and the run is untrusted, which is exit code 3 on the command line.

Usage: `witness_overload:main([Source, Workers, Alive, Requests, Megabytes])`, with a small budget of so
many megabytes and with the default one. The table has the most that the buffers took, and the most that the
whole node took (`erlang:memory(total)`). Over `evm` buffers are all that the tracers and monitors have.
""".
-behaviour(witness_monitor).

-export([main/1, run/1, busy/0, system/4]).
-export([init/3, handle_event/2]).
-export_type([options/0, result/0, pace/0]).

-doc "What the monitors do at each event.".
-type pace() :: prompt | never | {busy, Iterations :: pos_integer()} | {sleeping, Milliseconds :: pos_integer()}.

-doc """
`memory` is the budget in bytes, without it the default. Monitors that are undecided `drain` milliseconds after the end of the load
stay so.
""".
-type options() :: #{source => native | evm,
                     load := {Workers :: pos_integer(), Alive :: pos_integer(), Requests :: pos_integer()},
                     pace := pace(),
                     memory => pos_integer(), partition_memory => pos_integer(), drain => timeout()}.

-doc """
`microseconds`: of the system, by itself; `bytes`: the most that the buffers took in any of the `samples` and when the load ended; `node`: the most
that the node took; `reasons`: why verdicts are inconclusive.
""".
-type result() :: #{source := native | evm, microseconds := non_neg_integer(), budget := pos_integer(),
                    samples := non_neg_integer(),
                    bytes := non_neg_integer(), node := non_neg_integer(),
                    summary := witness:summary(), reasons := #{term() => pos_integer()}}.

%% Milliseconds between two samples.
-define(EVERY, 2).

-spec main([string()]) -> no_return().
main(Args) ->
    [Workers, Alive, Requests, Megabytes] = [list_to_integer(A) || A <- tl(Args)],
    Source = list_to_existing_atom(hd(Args)),
    io:format("~w, OTP ~s, ~w scheduler(s): ~w workers, ~w alive, ~w requests each~n",
              [Source, erlang:system_info(otp_release), erlang:system_info(schedulers_online), Workers, Alive, Requests]),
    io:format("~-9s ~10s ~9s ~9s ~11s ~8s ~9s ~7s ~10s~n",
              ["monitors", "budget MB", "system s", "x prompt", "buffers MB", "node MB", "started", "gaps", "outcome"]),
    Load = #{source => Source, load => {Workers, Alive, Requests}, drain => 2_000},
    Small = Load#{memory => Megabytes bsl 20},
    Faults = compared(Small, fun no_gap/1) ++ compared(Load, fun(_) -> [] end),
    lists:foreach(fun(Fault) -> io:format(standard_error, "~ts~n", [Fault]) end, Faults),
    halt(case Faults of [] -> 0; _ -> 1 end).

compared(Options, Demand) ->
    Prompt = run(Options#{pace => prompt}),
    show(prompt, Prompt, Prompt),
    lists:append([begin
                      R = run(Options#{pace => Pace}),
                      show(Name, R, Prompt),
                      Demand(R) ++ faults(R)
                  end || {Name, Pace} <- [{busy, busy()}, {sleeping, {sleeping, 10}}, {never, never}]]).

show(Name, #{microseconds := T, budget := Budget, bytes := Bytes, node := Node, summary := Summary}, #{microseconds := Unit}) ->
    #{monitored := Monitored, gaps := Gaps, outcome := Outcome} = Summary,
    io:format("~-9s ~10.1f ~9.2f ~9.2f ~11.1f ~8.1f ~9w ~7w ~10w~n",
              [Name, mega(Budget), T / 1.0e6, T / Unit, mega(Bytes), mega(Node), Monitored, Gaps, Outcome]).

mega(Bytes) -> Bytes / (1 bsl 20).

no_gap(#{budget := Budget, summary := #{gaps := Gaps}}) ->
    [io_lib:format("no gap was told with a budget of ~w bytes", [Budget]) || Gaps =:= 0].

faults(#{source := Source, budget := Budget, bytes := Bytes, summary := Summary}) ->
    #{outcome := Outcome, verdicts := #{no := No, inconclusive := Inconclusive}} = Summary,
    [io_lib:format("the buffers took ~w bytes of ~w", [Bytes, Budget]) || Source =:= native, Bytes > Budget]
        ++ [io_lib:format("~w verdicts are wrong", [No]) || No > 0]
        ++ [io_lib:format("~w monitors are undecided, and the outcome is ~w", [Inconclusive, Outcome])
            || Inconclusive > 0, Outcome =/= untrusted].

-doc "A monitor that computes for about a millisecond on this machine.".
-spec busy() -> pace().
busy() ->
    N = 1_000_000,
    Best = lists:min([element(1, timer:tc(fun() -> compute(N) end)) || _ <- lists:seq(1, 5)]),
    {busy, max(1, N * 1000 div max(1, Best))}.

-spec run(options()) -> result().
run(Options = #{load := {Workers, Alive, Requests}, pace := Pace}) ->
    lists:foreach(fun erlang:garbage_collect/1, processes()),
    Self = self(),
    Source = maps:get(source, Options, native),
    Given = maps:with([memory, partition_memory, drain], Options),
    {ok, Run} = witness:start(Given#{system => {?MODULE, system, [Self, Workers, Alive, Requests]}, source => Source,
                                     monitors => [{{witness_load, node, '_'}, {?MODULE, {Pace, Requests}}}],
                                     on_verdict => fun(V) -> undecided(V, Self) end, max_verdicts => 0, log => false}),
    System = receive {system, P} -> P end,
    Look = buffers(Source, Run),
    Sampler = sampler(Look),
    System ! go,
    {Messages, Microseconds} = receive {done, _, M, T} -> {M, T} end,
    Messages = Workers * (Requests + 1),
    Last = Look(),
    {ok, Summary} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run),
    Sampled = #{bytes := Most} = samples(Sampler),
    maps:merge(Sampled,
               #{source => Source, bytes => max(Most, Last), microseconds => Microseconds,
                 budget => maps:get(memory, Given, witness_options_memory:available_bytes() div 4),
                 summary => Summary, reasons => reasons(#{})}).

-doc "The load, once the sampler has started.".
-spec system(pid(), pos_integer(), pos_integer(), pos_integer()) -> ok.
system(Collector, Workers, Alive, Requests) ->
    Collector ! {system, self()},
    receive go -> ok end,
    witness_load:flat(Collector, Workers, Alive, Requests).

births(Run) ->
    {links, Links} = process_info(Run, links),
    [Births] = [P || P <- Links, is_pid(P), proc_lib:get_label(P) =:= witness_dispatcher],
    Births.

undecided(#{verdict := inconclusive, reason := Reason}, Collector) -> Collector ! {undecided, Reason};
undecided(_, _) -> ok.

%% The run has ended, and everything was reported before.
reasons(Counts) ->
    receive
        {undecided, Reason} -> reasons(maps:update_with(Reason, fun(N) -> N + 1 end, 1, Counts))
    after 0 -> Counts
    end.

%% --- samples ---------------------------------------------------------------------

%% The memory of the buffers now.
buffers(native, Run) ->
    Session = witness_outline_dispatcher:session(births(Run)),
    fun() -> maps:get(bytes, witness_trace_native:counts(Session)) end;
buffers(evm, _) ->
    fun() -> lists:sum([Bytes || P <- processes(), is_buffer(P), {memory, Bytes} <- [process_info(P, memory)]]) end.

is_buffer(P) ->
    case process_info(P, initial_call) of
        {initial_call, {Module, init, _}} -> Module =:= witness_outline_tracer orelse Module =:= witness_monitor_runner;
        _ -> false
    end.

%% It samples whatever the load of the node.
sampler(Look) ->
    spawn_opt(fun() -> sample(Look, 0, 0, 0) end, [link, {priority, high}]).

sample(Look, N, Bytes, Node) ->
    receive
        {stop, Caller} -> Caller ! {self(), #{samples => N, bytes => Bytes, node => Node}}
    after ?EVERY ->
        sample(Look, N + 1, max(Bytes, Look()), node(N, Node))
    end.

%% Reading it waits until each scheduler is done with the process that it runs.
node(N, Node) when N rem 8 =:= 0 -> max(Node, erlang:memory(total));
node(_, Node) -> Node.

samples(Sampler) ->
    Sampler ! {stop, self()},
    receive {Sampler, Samples} -> Samples end.

%% --- the monitor -----------------------------------------------------------------

%% A worker's monitor counts what it reads, so it would notice a gap.
-doc false.
-spec init(witness_event:signature(), pid(), {pace(), non_neg_integer()}) -> {ok, {pace(), non_neg_integer()}}.
init(_, _, {Pace, Requests}) -> {ok, {Pace, 2 * (Requests + 1) + 2}}.

-doc false.
-spec handle_event(witness_event:event(), {pace(), integer()}) -> {ok, {pace(), integer()}} | {verdict, yes | no, term()}.
handle_event(E, {Pace, Left}) ->
    work(Pace),
    case {E, Left} of
        {{exit, _, normal, _}, 1} -> {verdict, yes, complete};
        {{exit, _, _, _}, _} -> {verdict, no, {missing, Left - 1}};
        {_, _} -> {ok, {Pace, Left - 1}}
    end.

work(prompt) -> ok;
work(never) -> work(never);
work({busy, N}) -> compute(N);
work({sleeping, Milliseconds}) -> receive after Milliseconds -> ok end.

compute(0) -> ok;
compute(N) -> compute(N - 1).
