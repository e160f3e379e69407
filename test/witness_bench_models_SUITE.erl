-module(witness_bench_models_SUITE).
-moduledoc """
Every model of the benchmarks runs to its end, is sound to the monitors that verify benchmarks in every mode, and these
monitors find what is wrong with a trace. About 20 seconds.
""".
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

all() ->
    [{group, native}, {group, evm}, {group, central}, {group, inline},
     every_model_does_what_it_says, a_busy_master_stays_efficient, missed_turns_are_made_up, requests_are_sent_by_turn,
     dropped_events_are_found, missing_conversations_are_found, doubled_events_are_found, reordered_events_are_found,
     a_fresh_node_is_sound, two_nodes_are_sound].

groups() ->
    Modes = [every_model_is_sound, every_mode_has_the_same_workload, a_share_is_monitored],
    [{Mode, [], Modes} || Mode <- [native, evm, central, inline]].

suite() -> [{timetrap, {minutes, 3}}].

init_per_group(native, Config) -> [{mode, native} | witness_source:init(native, Config)];
init_per_group(Mode, Config) -> [{mode, Mode} | Config].

end_per_group(_, _) -> ok.

%% --- models ----------------------------------------------------------------------

models() ->
    [model(Given) || Given <- [#{}, #{~"shape" => ~"pulse", ~"work_us" => 2, ~"payload_bytes" => 100},
                               #{~"kind" => ~"tasks", ~"shape" => ~"burst"}, #{~"kind" => ~"pipeline", ~"stages" => 3},
                               #{~"kind" => ~"tree", ~"depth" => 2, ~"n" => 40}, #{~"kind" => ~"peers", ~"group" => 4, ~"n" => 50}]]
        ++ failing().

failing() ->
    [model(Given) || Given <- [#{~"crash" => 0.3}, #{~"loss" => 0.1}, #{~"crash" => 0.2, ~"loss" => 0.1}]].

model(Given) ->
    Small = #{~"n" => 150, ~"w" => 20, ~"deviation" => 0.2, ~"t" => 3, ~"period_ms" => 10},
    {ok, Parsed} = witness_bench_model:parse(maps:merge(Small, Given)),
    {ok, Model} = witness_bench_model:prepare(Parsed),
    Model.

measures() -> witness_bench_response:new(#{sample => 1.0}).

run(Model) ->
    Measures = measures(),
    {M, F, Args} = witness_bench_model:system(Model, Measures),
    {_, Ref} = spawn_monitor(M, F, Args),
    receive {'DOWN', Ref, process, _, Reason} -> ?assertEqual(normal, Reason) end,
    Measures.

requests(Model) -> lists:sum([Requests || Unit <- witness_bench_model:plan(Model), {_, Requests} <- Unit]).

%% Members that are created and end, a response to each request, as many messages as the protocol has.
every_model_does_what_it_says(_) ->
    lists:foreach(fun(Model = #{kind := Kind, n := N, crash := Crash, loss := Loss}) ->
        Measures = run(Model),
        #{members := Members, messages := Messages, response := #{count := Count, unclosed := 0}, lag := #{max := Lag}} =
            witness_bench_response:summary(Measures),
        ?assertEqual({Kind, witness_bench_model:processes(Model) - 1}, {Kind, Members}),
        ?assertEqual(0, witness_bench_response:live(Measures)),
        ?assert(Lag > 0),
        Requests = requests(Model),
        case Kind of
            _ when Crash > 0; Loss > 0 -> ?assert(Count < Requests andalso Count > Requests div 2);
            master_worker -> ?assertEqual({Requests, 2 * Requests + N}, {Count, Messages});
            pipeline -> ?assertEqual({Requests, 4 * Requests}, {Count, Messages});
            tree -> ?assertEqual({Requests, 2 * 7 * Requests}, {Count, Messages});
            tasks -> ?assertEqual({N, 2 * N}, {Count, Messages});
            peers -> ?assertEqual({4 * Requests, 2 * 4 * Requests + 2 * 4 * N}, {Count, Messages})
        end
    end, models()).

%% --- soundness -------------------------------------------------------------------

every_model_is_sound(Config) ->
    lists:foreach(fun(Model) ->
        Counter = counters:new(1, []),
        {Summary, Verdicts} = watched(Model, witness_bench_sequence, Counter, Config),
        Expected = witness_bench_model:processes(Model),
        ?assertEqual([], [maps:with([verdict, process, signature, info], V) || V = #{verdict := Said} <- Verdicts, Said =/= yes]),
        ?assertMatch(#{monitored := Expected, processes := Expected, outcome := ok, gaps := 0}, Summary),
        ?assertEqual(maps:get(events, Summary), counters:get(Counter, 1)),
        Costly = {Counter, witness_bench_work:cost(1)},
        #{crash := Crash} = Model,
        Crash == 0 orelse ?assertMatch({#{monitored := Expected, outcome := ok, gaps := 0}, _},
                                       watched(Model, witness_bench_sequence, Costly, Config))
    end, models()),
    Model = hd(models()),
    Counter = counters:new(1, []),
    {#{events := Events, verdicts := #{yes := 151}}, _} = watched(Model, witness_bench_count, Counter, Config),
    ?assertEqual(Events, counters:get(Counter, 1)).

watched(Model, Monitor, Argument, Config) ->
    {ok, Run} = witness:start((mode(proplists:get_value(mode, Config), Model))#{
        system => witness_bench_model:system(Model, measures()), log => false,
        monitors => [{Signature, {Monitor, Argument}} || #{signature := Signature} <- witness_bench_model:signatures(Model)]}),
    {ok, Summary} = witness:await(Run, infinity),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    {Summary, Verdicts}.

mode(inline, Model) -> #{instrument => inline, weave => witness_bench_model:modules(Model)};
mode(central, _) -> #{instrument => central};
mode(Source, _) -> #{source => Source}.

%% The workers that the master creates, and the requests that it sends to each, are those of the plan, in every mode.
every_mode_has_the_same_workload(Config) ->
    Model = model(#{~"shape" => ~"burst"}),
    {_, Verdicts} = watched(Model, witness_bench_recorder, none, Config),
    [Master] = [Events || #{info := {{witness_bench_master, _, _}, _, Events}} <- Verdicts],
    Planned = [Requests || Unit <- witness_bench_model:plan(Model), {_, Requests} <- Unit],
    ?assertEqual(lists:enumerate(Planned), [{Id, Requests} || {fork, _, _, {_, _, [_, Id, Requests | _]}, _} <- Master]),
    Asked = [Triple || {send, _, _, {_, {chunk, Triple, _, _}}, _} <- Master],
    ?assertEqual([{Id, Number, Requests} || {Id, Requests} <- lists:enumerate(Planned), Number <- lists:seq(1, Requests)],
                 lists:sort(Asked)).

a_share_is_monitored(Config) ->
    lists:foreach(fun(Kind) ->
        Model = model(#{~"kind" => Kind, ~"share" => 0.4, ~"n" => 40, ~"w" => 3}),
        {#{monitored := Monitored, verdicts := #{yes := Monitored}}, Verdicts} =
            watched(Model, witness_bench_recorder, none, Config),
        Ids = [Args || #{signature := {M, start, Args}} <- Verdicts, M =/= witness_bench_master],
        Processes = witness_bench_model:processes(Model) - 1,
        ?assert(length(Ids) > 0.2 * Processes andalso length(Ids) < 0.6 * Processes),
        ?assertEqual(Monitored, length(Ids) + 1),
        %% The same ones in every mode.
        Kind =:= ~"master_worker" andalso
            ?assertEqual([Id || Id <- lists:seq(1, 40), witness_bench_random:chance({share, Id}, 1, 0.4)],
                         lists:sort([Id || [_, Id | _] <- Ids]))
    end, [~"master_worker", ~"tree", ~"pipeline", ~"peers", ~"tasks"]).

%% --- the master ------------------------------------------------------------------

%% However many members there are at a time, what one message costs stays the same.
a_busy_master_stays_efficient(_) ->
    [Few, Many] = [reductions(model(#{~"n" => N, ~"t" => 1, ~"period_ms" => 1, ~"w" => 30})) || N <- [200, 20_000]],
    ct:pal("reductions for each request: ~.1f with 200 workers, ~.1f with 20000", [Few, Many]),
    ?assert(Many < 2 * Few).

reductions(Model) ->
    {M, F, Args} = witness_bench_model:system(Model, measures()),
    {_, Ref} = spawn_monitor(fun() ->
        ok = apply(M, F, Args),
        exit(process_info(self(), reductions))
    end),
    receive {'DOWN', Ref, process, _, {reductions, All}} -> All / requests(Model) end.

%% With the least of probabilities everything is still sent and taken.
missed_turns_are_made_up(_) ->
    [begin
        #{response := #{count := Count}} = witness_bench_response:summary(run(Model)),
        ?assertEqual(requests(Model), Count)
     end || {Send, Receive} <- [{0.001, 0.9}, {0.9, 0.001}, {0.001, 0.001}, {1, 1}],
            Model <- [model(#{~"n" => 10, ~"w" => 10, ~"pr_send" => Send, ~"pr_recv" => Receive})]].

%% If no trial fails and all members are there, each is sent its whole batch in its turn.
requests_are_sent_by_turn(_) ->
    Model = model(#{~"pr_send" => 1, ~"creation_deviation" => 0, ~"n" => 50, ~"t" => 1, ~"period_ms" => 1}),
    {_, Verdicts} = watched(Model, witness_bench_recorder, none, [{mode, evm}]),
    [Master] = [Events || #{info := {{witness_bench_master, _, _}, _, Events}} <- Verdicts],
    [Planned] = witness_bench_model:plan(Model),
    ?assertEqual([{Id, Number, Requests} || {Id, {_, Requests}} <- lists:enumerate(Planned), Number <- lists:seq(1, Requests)],
                 [Triple || {send, _, _, {_, {chunk, Triple, _, _}}, _} <- Master]).

%% --- traces with faults ----------------------------------------------------------

%% One trace of each role of each model, of those in which every event counts.
traces() ->
    lists:append([begin
        {_, Verdicts} = watched(Model#{n := 8, w := 5, shape := {counts, [3, 5]}, t := 2}, witness_bench_recorder, none,
                                [{mode, evm}]),
        Traces = [Info || #{info := Info} <- Verdicts],
        ?assertEqual([], [V || Trace <- Traces, V <- [verdict(Trace)], V =/= yes]),
        [hd([Trace || Trace <- Traces, role(Trace) =:= Role]) || Role <- lists:usort([role(Trace) || Trace <- Traces])]
    end || Model <- models(), maps:get(loss, Model) == 0]).

role({{M, _, Args}, _, Events}) -> {M, length(Args), element(3, lists:last(Events)), length(Events)}.

verdict({Signature, P, Events}) -> verdict(Signature, P, Events).

verdict(Signature, P, Events) ->
    {ok, S} = witness_bench_sequence:init(Signature, P, undefined),
    judge(Events, S).

judge([], S) -> element(1, witness_bench_sequence:handle_end(complete, S));
judge([E | Events], S) ->
    case witness_bench_sequence:handle_event(E, S) of
        {ok, Next} -> judge(Events, Next);
        {verdict, Verdict, _} -> Verdict
    end.

dropped_events_are_found(_) ->
    Traces = traces(),
    ?assert(length(Traces) > 12),
    [?assertEqual({no, Signature, lists:nth(I, Events)},
                  {verdict(Signature, P, without(I, Events)), Signature, lists:nth(I, Events)})
     || {Signature, P, Events} <- Traces, I <- lists:seq(1, length(Events)), not of_a_crash(lists:nth(I, Events), Events)].

%% If a worker crashes, no event tells how far the master got with it, nor how far the worker got.
of_a_crash({send, _, Worker, {_, {chunk, _, _, _}}, _}, Events) -> crashed(Worker, Events);
of_a_crash({recv, _, _, {Worker, {ack, _, _, _}}, _}, Events) -> crashed(Worker, Events);
of_a_crash({recv, _, _, {_, {chunk, _, _, _}}, _}, Events) -> element(3, lists:last(Events)) =:= crash;
of_a_crash({send, _, _, {_, {ack, _, _, _}}, _}, Events) -> element(3, lists:last(Events)) =:= crash;
of_a_crash(_, _) -> false.

crashed(Worker, Events) -> [] =/= [E || {recv, _, _, {'DOWN', _, process, P, crash}, _} = E <- Events, P =:= Worker].

without(I, List) ->
    {Before, [_ | After]} = lists:split(I - 1, List),
    Before ++ After.

%% A whole conversation with another process.
missing_conversations_are_found(_) ->
    Missing = [{Signature, P, [E || E <- Events, with(E) =/= Other]}
               || {Signature, P, Events} <- traces(), Other <- lists:usort([with(E) || E <- Events]), is_pid(Other),
                  [] =:= [E || {recv, _, _, {'DOWN', _, process, Q, crash}, _} = E <- Events, Q =:= Other]],
    ?assert(length(Missing) > 50),
    [?assertEqual({no, Trace}, {verdict(Trace), Trace}) || Trace <- Missing].

with({send, _, To, _, _}) -> To;
with({recv, _, _, {From, _}, _}) -> From;
with(_) -> undefined.

%% The last one decides, and nothing comes after it.
doubled_events_are_found(_) ->
    [?assertEqual({no, Signature, lists:nth(I, Events)}, {verdict(Signature, P, twice(I, Events)), Signature, lists:nth(I, Events)})
     || {Signature, P, Events} <- traces(), I <- lists:seq(1, length(Events) - 1)].

twice(I, List) ->
    {Before, [E | After]} = lists:split(I - 1, List),
    Before ++ [E, E | After].

%% Messages between the same two processes, one way; and what cannot come before something else.
reordered_events_are_found(_) ->
    Swapped = [{Signature, P, swapped(I, J, Events)}
               || {Signature, P, Events} <- traces(), I <- lists:seq(1, length(Events)), J <- lists:seq(I + 1, length(Events)),
                  same_way(lists:nth(I, Events), lists:nth(J, Events))],
    ?assert(length(Swapped) > 200),
    [?assertEqual(no, verdict(Trace)) || Trace <- Swapped],
    %% Nothing is before the birth, and the end not before what it needs.
    [begin
        ?assertEqual(no, verdict(Signature, P, swapped(1, 2, Events))),
        of_a_crash(lists:nth(length(Events) - 1, Events), Events) orelse
            ?assertEqual(no, verdict(Signature, P, swapped(length(Events) - 1, length(Events), Events)))
     end || {Signature, P, Events} <- traces()].

swapped(I, J, List) ->
    Tuple = list_to_tuple(List),
    tuple_to_list(setelement(I, setelement(J, Tuple, element(I, Tuple)), element(J, Tuple))).

%% Peers ask and answer each other, and requests are not numbered together with responses.
same_way({send, P, To, {_, A}, _}, {send, P, To, {_, B}, _}) -> is_request(A) =:= is_request(B);
same_way({recv, P, _, {From, A}, _}, {recv, P, _, {From, B}, _}) -> is_request(A) =:= is_request(B);
same_way(_, _) -> false.

is_request(Content) -> element(1, Content) =:= chunk.

%% --- two nodes -------------------------------------------------------------------

%% In VMs of their own; the first one becomes a distributed one.
two_nodes_are_sound(_) -> fresh(two_nodes).

%% Code that is loaded on the way would be in the traces.
a_fresh_node_is_sound(_) -> fresh(fresh_node).

fresh(Function) ->
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, args => ["-pa" | code:get_path()]}),
    try
        ok = peer:call(Peer, ?MODULE, Function, [], infinity)
    after
        peer:stop(Peer)
    end.

fresh_node() ->
    [?assertMatch({#{outcome := ok}, _}, watched(Model, witness_bench_sequence, undefined, [{mode, evm}]))
     || Model <- lists:reverse(models())],
    ok.

two_nodes() ->
    {ok, _} = application:ensure_all_started(witness),
    {ok, Parsed} = witness_bench_model:parse(#{~"nodes" => 2, ~"n" => 30, ~"w" => 20, ~"t" => 2, ~"period_ms" => 10}),
    {ok, Model} = witness_bench_model:prepare(Parsed),
    #{members := 30, response := #{count := Count}} = witness_bench_response:summary(run(Model)),
    ?assertEqual(requests(Model), Count),
    [begin
        {#{monitored := 1, verdicts := #{yes := 1}, outcome := ok}, _} =
            watched(Model, witness_bench_sequence, undefined, [{mode, Mode}])
     end || Mode <- [evm, central, inline] ++ [native || witness_trace_native:available() =:= ok]],
    ok.
