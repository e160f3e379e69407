-module(witness_savina_SUITE).
-moduledoc """
The benchmarks of `m:witness_savina` with small parameters: they verify themselves and leave nothing, find their
planted faults, and are watched soundly.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

%% Milliseconds for what takes some hundred.
-define(TIMEOUT, 120_000).

all() ->
    [{group, one_scheduler}, {group, two_schedulers}, {group, native}, {group, evm},
     the_generator_is_savinas, what_cannot_be_run_is_an_error, all_sets_have_the_same_parameters].

groups() ->
    [{one_scheduler, [], [all_verify_themselves_and_end, planted_faults_are_found]},
     {two_schedulers, [], [all_verify_themselves_and_end]},
     {native, [], [all_are_watched_soundly]},
     {evm, [], [all_are_watched_soundly]}].

suite() -> [{timetrap, {minutes, 5}}].

init_per_suite(Config) ->
    %% A process that first has to load code sends and receives messages for it.
    ok = code:ensure_modules_loaded([witness_savina, witness_savina_processes, witness_savina_random,
                                     witness_savina_monitor, gen_server, gen, proc_lib, queue, maps, lists, math
                                     | [witness_savina:module(Name) || Name <- witness_savina:names()]]),
    {ok, _} = application:ensure_all_started(witness),
    Config.

end_per_suite(_) -> ok.

init_per_group(one_scheduler, Config) -> [{peer, peer(1)} | Config];
init_per_group(two_schedulers, Config) -> [{peer, peer(2)} | Config];
init_per_group(Source, Config) -> witness_source:init(Source, Config).

end_per_group(_, Config) ->
    case proplists:get_value(peer, Config) of
        undefined -> ok;
        Peer -> peer:stop(Peer)
    end.

%% It outlives the process that sets the group up.
peer(Schedulers) ->
    Number = integer_to_list(Schedulers),
    {ok, Peer, _} = peer:start(#{connection => standard_io,
                                 args => ["+S", Number ++ ":" ++ Number, "-pa" | code:get_path()]}),
    Schedulers = peer:call(Peer, erlang, system_info, [schedulers_online]),
    ok = peer:call(Peer, logger, set_primary_config, [level, none]),
    Peer.

%% --- they verify themselves ---------------------------------------------------------

all_verify_themselves_and_end(Config) ->
    Peer = proplists:get_value(peer, Config),
    First = peer:call(Peer, ?MODULE, all_small, [], ?TIMEOUT),
    ?assertEqual(witness_savina:names(), [Name || {Name, _, _} <- First]),
    ?assertEqual([], [{Name, Left} || {Name, _, Left} <- First, Left =/= []]),
    %% The work is the same in every run.
    Again = peer:call(Peer, ?MODULE, all_small, [], ?TIMEOUT),
    ?assertEqual([without_schedule(R) || R <- First], [without_schedule(R) || R <- Again]).

without_schedule({Name, {ok, Result}, _}) ->
    {Name, maps:without([denied, returned, waiting, kept, height, found], Result)}.

%% In the peer: results, and what is left. Whatever a benchmark starts has its group leader.
all_small() ->
    Leader = spawn_link(fun() -> receive never -> ok end end),
    group_leader(Leader, self()),
    Results = [{Name, witness_savina:run(Name, small), [P || P <- processes(), P =/= self(), led(P, Leader)]}
               || Name <- witness_savina:names()],
    unlink(Leader),
    exit(Leader, kill),
    Results.

led(Process, Leader) -> process_info(Process, group_leader) =:= {group_leader, Leader}.

%% --- and find what is wrong ---------------------------------------------------------

planted_faults_are_found(Config) ->
    Peer = proplists:get_value(peer, Config),
    ?assertEqual(witness_savina:names(), [Name || {Name, _, _, _} <- faults()]),
    ?assertEqual([], [{Name, What, Result}
                      || {Name, What, Find, Replace} <- faults(),
                         Result <- [with_fault(Peer, Name, Find, Replace, Config)],
                         not is_tuple(Result) orelse element(1, Result) =/= wrong orelse element(2, Result) =/= What]).

with_fault(Peer, Name, Find, Replace, Config) ->
    Module = witness_savina:module(Name),
    {module, Module} = peer:call(Peer, code, load_binary, [Module, "", faulty(Module, Find, Replace, Config)]),
    try peer:call(Peer, witness_savina, run, [Name, small], ?TIMEOUT)
    catch error:{exception, {failed, Name, Reason}, _} -> Reason;
          error:{failed, Name, Reason} -> Reason
    end.

%% The text to find must stand in the source exactly once.
faulty(Module, Find, Replace, Config) ->
    {ok, Source} = file:read_file(proplists:get_value(source, Module:module_info(compile))),
    [Before, After] = string:split(Source, Find, all),
    File = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Module) ++ ".erl"),
    ok = file:write_file(File, [Before, Replace, After]),
    {ok, Module, Binary} = compile:file(File, [binary]),
    Binary.

%% {Benchmark, what is found to be wrong, Find, Replace}
faults() ->
    [{ping_pong, pings, "ping(Main, Pong, Left, Answers + 1)", "ping(Main, Pong, Left, Answers + 2)"},
     {counting, count, "increment(Counter, N - 1)", "increment(Counter, max(0, N - 3))"},
     {fork_join_throughput, sum, "worker(Main, Left - 1, Sum + square(Angle))", "worker(Main, Left - 1, Sum)"},
     {fork_join_creation, computed, "exit({computed, square(Angle)})", "exit({computed, Angle})"},
     {thread_ring, passed, "Next ! {pass, Left - 1}", "Next ! {pass, max(0, Left - 2)}"},
     {chameneos, met, "Met + 1);\n        exit", "Met);\n        exit"},
     {big_contention, answered, "Asked, R0, Answered + 1)", "Asked, R0, Answered)"},
     {dictionary, lost, "Map#{Key => Value}", "Map"},
     {sorted_list, sorted, "when M =< N", "when M >= N"},
     {bounded_buffer, items, "Consumer ! {item, Item},\n            S#s{free",
      "Consumer ! {item, Item + 1},\n            S#s{free"},
     {philosophers, arbiter, "Served + 1, Denied", "Served, Denied"},
     {sleeping_barber, barber, "Haircut, R, Cut + 1", "Haircut, R, Cut"},
     {cigarette_smokers, smoked, "Times + 1, Sum + Steps", "Times + 1, Sum"},
     {logistic_map, terms, "{reply, term(Rate, X), Rate}", "{reply, term(Rate, X) + 1.0e-12, Rate}"},
     {bank_transaction, money, "{reply, ok, {Balance + Amount,", "{reply, ok, {Balance,"},
     {radix_sort, order, "Value band Bit =:= 0", "Value band Bit =/= 0"},
     {trapezoidal, area, "0.5 * (f(X)", "0.49 * (f(X)"},
     {cobwebbed_tree, traversed, "_ = [Child ! traverse || Child <- Children],", ""}].

%% --- watched -------------------------------------------------------------------------

all_are_watched_soundly(Config) ->
    Source = proplists:get_value(source, Config),
    ?assertEqual([], [{Name, Wrong} || Name <- witness_savina:names(), Wrong <- watched(Name, Source)]).

watched(Name, Source) ->
    {ok, Run} = witness:start(#{system => {witness_savina, run, [Name, small]}, source => Source, log => false,
                                monitors => [{{'_', '_', '_'}, {witness_savina_monitor, []}}]}),
    {ok, Summary = #{outcome := Outcome, processes := Processes, gaps := Gaps,
                     verdicts := #{yes := Ended}}} = witness:await(Run, ?TIMEOUT),
    Infos = [Info || #{verdict := yes, info := Info} <- witness:verdicts(Run)],
    {ok, _} = witness:stop(Run),
    {Sent, Received} = lists:foldl(fun({S, R}, {AllSent, AllReceived}) ->
        {witness_savina_monitor:add(S, AllSent), witness_savina_monitor:add(R, AllReceived)}
    end, {{0, 0}, {0, 0}}, Infos),
    case {Outcome, Gaps, Ended, Received} of
        {ok, 0, Processes, Sent} when length(Infos) =:= Processes, Processes > 2, element(1, Sent) > 0 -> [];
        _ -> [{Summary, Sent, Received}]
    end.

%% --- the rest -------------------------------------------------------------------------

the_generator_is_savinas(_) ->
    {Numbers, _} = lists:mapfoldl(fun(_, R0) ->
        R = witness_savina_random:next(R0),
        {R, R}
    end, witness_savina_random:seed(), lists:seq(1, 65536)),
    ?assertEqual([22896, 34761, 34014, 39231, 52540, 41445, 1546, 5947, 65224], lists:sublist(Numbers, 9)),
    ?assertEqual(lists:seq(0, 65535), lists:sort(Numbers)).

what_cannot_be_run_is_an_error(_) ->
    ?assertError({unknown_benchmark, nothing}, witness_savina:run(nothing, small)),
    ?assertError({unknown_parameter_set, counting, large}, witness_savina:run(counting, large)),
    ?assertError({bad_parameters, counting, [extra, messages]},
                 witness_savina:run(counting, #{messages => 0, extra => 1})),
    ?assertError({bad_parameters, thread_ring, [hops]}, witness_savina:run(thread_ring, #{processes => 3})),
    ?assertError({failed, chameneos, nobody_to_meet}, witness_savina:run(chameneos, #{chameneos => 1, meetings => 1})).

all_sets_have_the_same_parameters(_) ->
    lists:foreach(fun(Name) ->
        Sets = witness_savina:sets(Name),
        ?assertEqual([], [small, somns, savina] -- Sets),
        ?assertMatch([_], lists:usort([maps:keys(witness_savina:parameters(Name, Set)) || Set <- Sets]))
    end, witness_savina:names()).
