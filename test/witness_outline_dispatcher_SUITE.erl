-module(witness_outline_dispatcher_SUITE).
-moduledoc """
Outline instrumentation over the native source: which monitor reads which partition, what a group sees and in which order,
and the end of monitors with events that do not fit into memory. The monitor of these tests is this module: it collects
events.
""".
-include_lib("stdlib/include/assert.hrl").

-behaviour(witness_monitor).
-compile(export_all).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [a_monitor_reads_its_process_and_nothing_else, children_have_partitions_of_their_own,
     a_process_that_no_monitor_names_is_not_gathered, processes_of_otp_are_resolved, several_monitors_see_the_same,
     a_monitor_that_refuses_is_no_fault, a_group_reads_descendants_in_causal_order, none_cuts_a_subtree_out_of_a_group,
     a_monitor_inside_of_a_group_has_its_own_process, a_group_ends_with_its_last_process,
     an_event_may_have_a_time, the_node_is_watched, stopping_a_run_ends_every_monitor,
     a_partition_that_overflows_is_a_gap, all_partitions_together_overflow, a_group_that_overflows_makes_the_run_doubtful,
     a_slow_monitor_overflows_alone, events_that_no_monitor_reads_any_more_are_dropped,
     every_birth_has_its_monitor_when_the_run_is_stopped, a_function_that_fails_at_once_is_watched, nothing_is_left].

init_per_suite(Config) ->
    case witness_trace_native:available() of
        ok -> Config;
        {error, Reason} -> {skip, unicode:characters_to_list(Reason)}
    end.

end_per_suite(_) -> application:stop(witness).

%% --- which monitor reads what ----------------------------------------------------

a_monitor_reads_its_process_and_nothing_else(_) ->
    {Summary, [{Root, [{init, Root, _, {?MODULE, pair, []}, _}, {fork, Root, Child, {?MODULE, echo, [Root]}, _},
                       {send, Root, Child, ping, _}, {recv, Root, Child, pong, _}, {exit, Root, normal, _}]}]} =
        seen(pair, [], [{{?MODULE, pair, 0}, {?MODULE, collect}}]),
    ?assertMatch(#{monitored := 1, processes := 2, events := 5, gaps := 0, outcome := ok, tracers := 1, warnings := []},
                 Summary).

children_have_partitions_of_their_own(_) ->
    {#{monitored := 11, tracers := Tracers, outcome := ok}, Seen} =
        seen(parent, [10], [{{?MODULE, '_', '_'}, {?MODULE, collect}}]),
    ?assert(Tracers >= 2 andalso Tracers =< 11),
    %% The order of verdicts is not defined.
    [{Child, Leaf} | _] = [S || S = {_, [{init, _, _, {?MODULE, leaf, [_]}, _} | _]} <- Seen],
    [{init, Child, Root, _, _}, {exit, Child, normal, _}] = Leaf,
    {Root, Events} = lists:keyfind(Root, 1, Seen),
    ?assertEqual(10, length([Forked || {fork, _, Forked, _, _} <- Events, lists:keymember(Forked, 1, Seen)])).

a_process_that_no_monitor_names_is_not_gathered(_) ->
    {#{monitored := 100, processes := 101, events := 200, outcome := ok}, _} =
        seen(parent, [100], [{{?MODULE, leaf, 1}, {?MODULE, collect}}]),
    {#{monitored := 0, processes := 101, events := 0, outcome := untrusted}, []} =
        seen(parent, [100], [{{nobody, '_', '_'}, {?MODULE, collect}}]).

%% The VM's data does not name what OTP spawns: it is gathered, and dropped if no signature applies.
processes_of_otp_are_resolved(_) ->
    {#{monitored := 1, outcome := ok}, [{P, [{init, P, _, {?MODULE, init, [state]}, _} | _]}]} =
        seen(server, [], [{{?MODULE, init, 1}, {?MODULE, collect}}]),
    {#{monitored := 1}, [{P1, [{init, P1, _, {?MODULE, '-a_fun/0-fun-0-', []}, _}, {exit, P1, _, _}]}]} =
        seen(a_fun, [], [{{?MODULE, '-a_fun/0-fun-0-', 0}, {?MODULE, collect}}]),
    {#{monitored := 0}, []} = seen(a_fun, [], [{{?MODULE, another_fun, 0}, {?MODULE, collect}}]).

several_monitors_see_the_same(_) ->
    {#{monitored := 6, outcome := ok, tracers := Tracers}, Seen} =
        seen(pair, [], [{{?MODULE, '_', '_'}, {?MODULE, collect}} || _ <- [1, 2, 3]]),
    ?assert(Tracers =< 2),
    %% A child's identifier may be before its parent's.
    {[{Child, B}, {Child, B}, {Child, B}], [{Root, A}, {Root, A}, {Root, A}]} =
        lists:partition(fun({_, [{init, _, _, {_, F, _}, _} | _]}) -> F =:= echo end, Seen),
    ?assertMatch([{init, Root, _, _, _}, {fork, Root, Child, {?MODULE, echo, [Root]}, _} | _], A),
    ?assertMatch([{init, Child, Root, {?MODULE, echo, [Root]}, _} | _], B).

a_monitor_that_refuses_is_no_fault(_) ->
    [?assertMatch({#{monitored := 2, outcome := ok}, [{_, [_ | _]}]},
                  seen(leaf, [1], [{{?MODULE, leaf, 1}, {?MODULE, Arg}} || Arg <- Args]))
     || Args <- [[collect, refuse], [refuse, collect]]],
    ?assertMatch({#{monitored := 1}, []}, seen(leaf, [1], [{{?MODULE, leaf, 1}, {?MODULE, refuse}}])).

%% --- groups ----------------------------------------------------------------------

-define(ALL, "[_ ? never] ff").

a_group_reads_descendants_in_causal_order(_) ->
    %% A token goes around a ring of processes: each send is followed by the receive that it causes.
    [?assertMatch({#{verdicts := #{yes := 1, no := 0, inconclusive := 0}, monitored := 1, gaps := 0, outcome := ok,
                     tracers := 1}, _}, spec("with " ?MODULE_STRING ":ring(_, _) group check "
                                             "max X.([_ : _ ! {token, N}] [_ ? {token, M} when M =/= N] ff "
                                             "and [_ ? {token, _}] ff and [_ : _ ! {token, _}] [_ ? {token, _}] X "
                                             "and [_ -> _, _] X and [_ <- _, _] X and [_ ** _] X "
                                             "and [_ ? {next, _}] X and [_ : _ ! {next, _}] X).\n", ring, [5, 200]))
     || _ <- lists:seq(1, 10)].

none_cuts_a_subtree_out_of_a_group(_) ->
    Count = fun(Rest) ->
        {_, Verdicts} = spec("with " ?MODULE_STRING ":parent(_) group check [_ <- _, _] " ++ Rest, parent, [3]),
        [V || #{verdict := V} <- Verdicts]
    end,
    %% The parent forks three leaves: without these the group has nothing but the forks and the end of the parent.
    Forks = "[_ -> _, _] [_ -> _, _] [_ -> _, _] ",
    ?assertEqual([no], Count("max X.([_ <- _, _] ff and [_ -> _, _] X and [_ ** _] X).")),
    ?assertEqual([yes], Count("max X.([_ <- _, _] ff and [_ -> _, _] X and [_ ** _] X).\n"
                              "with " ?MODULE_STRING ":leaf(_) none.")),
    ?assertEqual([no], Count(Forks ++ "[_ ** _] ff.\nwith " ?MODULE_STRING ":leaf(_) none.")).

a_monitor_inside_of_a_group_has_its_own_process(_) ->
    {#{monitored := 4, outcome := ok, verdicts := #{yes := 4}, tracers := 1}, Verdicts} =
        spec("whole: with " ?MODULE_STRING ":parent(_) group check [_ <- _, _] max X.([_ <- _, _] ff and [_ -> _, _] X).\n"
             "each: with " ?MODULE_STRING ":leaf(_) check [_ <- _, _] [_ ** R when R =/= normal] ff.\n", parent, [3]),
    ?assertEqual([{~"each", 3}, {~"whole", 1}], count([N || #{name := N} <- Verdicts])).

a_group_ends_with_its_last_process(_) ->
    {#{verdicts := #{yes := 1}}, [#{steps := Steps}]} =
        spec("with " ?MODULE_STRING ":orphans(_) group check max X.([_ ? never] ff and [_ ** _] X and [_ <- _, _] X and "
             "[_ -> _, _] X and [_ : _ ! _] X and [_ ? go] X).\n", orphans, [3]),
    ?assertEqual(4, length([E || #{event := {exit, _, _, _} = E} <- Steps])).

count(Values) -> [{V, length([W || W <- Values, W =:= V])} || V <- lists:usort(Values)].

%% --- options ---------------------------------------------------------------------

an_event_may_have_a_time(_) ->
    Times = fun(Options) ->
        {_, Seen} = seen(pair, [], [{{?MODULE, pair, 0}, {?MODULE, collect}}], Options),
        [witness_event:ts(E) || {_, Events} <- Seen, E <- Events]
    end,
    ?assertEqual([undefined], lists:usort(Times(#{timestamps => false}))),
    Stamped = Times(#{}),
    ?assert(lists:all(fun is_integer/1, Stamped)),
    ?assertEqual(lists:sort(Stamped), Stamped).

%% A process that runs before the run begins has no trace of its own, but its children have.
the_node_is_watched(_) ->
    Old = spawn(fun Wait() -> receive {spawn, Leaf} -> spawn(?MODULE, leaf, [Leaf]), Wait(); stop -> ok end end),
    Self = self(),
    {ok, Run} = witness:start(#{source => native, scope => node, log => false, system => {?MODULE, waits, [Self]},
                                monitors => [{{?MODULE, leaf, 1}, {?MODULE, collect}}, {{?MODULE, waits, 1}, {?MODULE, collect}}],
                                on_verdict => fun(V) -> Self ! {verdict, V} end}),
    Root = receive {waits, P} -> P end,
    Old ! {spawn, old},
    receive {verdict, #{signature := {?MODULE, leaf, [old]}, verdict := yes}} -> ok end,
    Old ! stop,
    Root ! go,
    ?assertMatch({ok, #{monitored := 2, outcome := ok}}, witness:await(Run, infinity)),
    {ok, _} = witness:stop(Run).

stopping_a_run_ends_every_monitor(_) ->
    [begin
         Self = self(),
         {ok, Run} = witness:start(#{source => native, log => false, system => {?MODULE, waits, [Self]},
                                     monitors => [{{?MODULE, waits, 1}, {?MODULE, collect}} || _ <- lists:seq(1, N)]}),
         Root = receive {waits, P} -> P end,
         {ok, Summary} = witness:stop(Run),
         Root ! go,
         ?assertMatch(#{verdicts := #{inconclusive := N, yes := 0, no := 0}, gaps := 0, outcome := ok}, Summary)
     end || N <- [1, 2]].

every_birth_has_its_monitor_when_the_run_is_stopped(_) ->
    [begin
         Self = self(),
         {ok, Run} = witness:start(#{source => native, log => false, system => {?MODULE, spawns, [Self]},
                                     monitors => [{{?MODULE, spawned, 0}, {?MODULE, collect}} || _ <- lists:seq(1, N)]}),
         Root = receive {spawns, P} -> P end,
         {ok, #{monitored := Monitored, verdicts := Verdicts, processes := Processes, gaps := 0}} = witness:stop(Run),
         exit(Root, kill),
         ?assertEqual(Monitored, lists:sum(maps:values(Verdicts))),
         ?assertEqual(Monitored, (Processes - 1) * N)
     end || N <- [1, 2], _ <- lists:seq(1, 10)].

a_function_that_fails_at_once_is_watched(_) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    try
        ?assertMatch({#{monitored := 1, system := {crashed, {undef, _}}, outcome := untrusted},
                      [{_, [{init, _, _, _, _}, {exit, _, {undef, _}, _}]}]},
                     seen(fails, [], [{{?MODULE, fails, 0}, {?MODULE, collect}}]))
    after
        ok = logger:set_primary_config(level, Level)
    end.

fails() -> ?MODULE:missing().

%% --- overload --------------------------------------------------------------------

%% A monitor that blocks, and a process that sends more meanwhile than fits into memory.
a_partition_that_overflows_is_a_gap(_) ->
    {Summary, Verdicts} = flooded([held_up], #{partition_memory => 100_000}),
    ?assertMatch(#{gaps := 1, outcome := untrusted, verdicts := #{inconclusive := 1}, warnings := [#{code := gap}]}, Summary),
    ?assertMatch([#{reason := {gap, overflow}}], Verdicts).

all_partitions_together_overflow(_) ->
    {Summary, Verdicts} = flooded([held_up], #{memory => 100_000, partition_memory => 100_000_000}),
    ?assertMatch(#{gaps := 1, outcome := untrusted}, Summary),
    ?assertMatch([#{reason := {gap, memory}}], Verdicts).

%% Monitors of a partition that share a tracer do not block each other.
a_slow_monitor_overflows_alone(_) ->
    {Summary, Verdicts} = flooded([held_up, quick], #{partition_memory => 4_000_000, system => {?MODULE, wave, [self()]}}),
    ?assertMatch(#{gaps := 1, outcome := untrusted, verdicts := #{inconclusive := 1, yes := 1}}, Summary),
    ?assertMatch([#{reason := {gap, overflow}}, #{verdict := yes}],
                 lists:sort(fun(#{verdict := A}, #{verdict := B}) -> A =< B end, Verdicts)).

%% A process that had a monitor of its own may have been born into it.
a_group_that_overflows_makes_the_run_doubtful(Config) ->
    File = write(Config, "with " ?MODULE_STRING ":flood(_) group check max X.([_ : _ ! never] ff and [_ <- _, _] X and [_ : _ ! _] X)."),
    {ok, Run} = witness:start(#{source => native, log => false, partition_memory => 3_000, memory => 6_000, specs => [File],
                                system => {?MODULE, flood, [self()]}}),
    Root = receive {floods, P} -> P end,
    Root ! go,
    receive {flooded, Root} -> ok end,
    {ok, Summary} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run),
    ?assertMatch(#{gaps := 1, outcome := untrusted, warnings := [#{code := unwatched}, #{code := gap}]}, Summary).

flooded(Args, Options) ->
    Self = self(),
    Given = maps:merge(#{source => native, log => false, system => {?MODULE, flood, [Self]},
                         monitors => [{{?MODULE, '_', 1}, {?MODULE, {Arg, Self}}} || Arg <- Args]}, Options),
    {ok, Run} = witness:start(Given),
    Root = receive {floods, P} -> P end,
    Held = [receive {held_up, Runner} -> Runner end || held_up <- Args],
    Root ! go,
    receive {flooded, Root} -> ok end,
    %% A tracer has to see that its runner is behind before the runner goes on.
    _ = [receive {ended, quick} -> ok end || quick <- Args],
    [Runner ! go_on || Runner <- Held],
    {ok, Summary} = witness:await(Run, infinity),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    {Summary, Verdicts}.

%% --- the end ---------------------------------------------------------------------

%% The monitor decides at the first event: later events are not kept.
events_that_no_monitor_reads_any_more_are_dropped(_) ->
    [begin
         Self = self(),
         {ok, Run} = witness:start(#{source => native, log => false, system => {?MODULE, flood, [Self]}, memory => 100_000,
                                     on_verdict => fun(_) -> Self ! decided end,
                                     monitors => [{{?MODULE, flood, 1}, {?MODULE, at_once}} || _ <- lists:seq(1, N)]}),
         Root = receive {floods, P} -> P end,
         [receive decided -> ok end || _ <- lists:seq(1, N)],
         witness_await:until(fun() -> maps:get(busy, witness_outline_dispatcher:info(coordinator())) =:= 0 end),
         Root ! go,
         receive {flooded, Root} -> ok end,
         ?assertMatch({ok, #{gaps := 0, outcome := ok, verdicts := #{yes := N}}}, witness:await(Run, infinity)),
         {ok, #{events := Events}} = witness:stop(Run),
         ?assert(Events < 100)
     end || N <- [1, 2]].

%% The one of the run before may just end.
coordinator() ->
    Found = fun() -> [P || P <- processes(), proc_lib:get_label(P) =:= witness_dispatcher] end,
    ok = witness_await:until(fun() -> case Found() of [_] -> true; Others -> Others end end),
    hd(Found()).

nothing_is_left(_) ->
    witness_await:until(fun() ->
        lists:foreach(fun erlang:garbage_collect/1, processes()),
        lists:all(fun(N) -> N =:= 0 end, maps:values(witness_trace_native:resources()))
    end).

%% --- the monitor -----------------------------------------------------------------

init(_, _, refuse) -> ignore;
init(_, _, Arg) -> {ok, {Arg, []}}.

handle_event(E, {{held_up, Test}, []}) ->
    Test ! {held_up, self()},
    receive go_on -> ok end,
    {ok, {collect, [E]}};
handle_event(E, {at_once, _}) -> {verdict, yes, E};
handle_event({recv, P, _, batch, _} = E, {{quick, _} = Arg, Events}) ->
    P ! taken,
    {ok, {Arg, [E | Events]}};
handle_event(E, {Arg, Events}) -> {ok, {Arg, [E | Events]}}.

handle_end(complete, {{quick, Test}, Events}) ->
    Test ! {ended, quick},
    {yes, length(Events)};
handle_end(complete, {_, Events}) -> {yes, lists:reverse(Events)};
handle_end(stopped, _) -> {inconclusive, stopped}.

%% --- systems ---------------------------------------------------------------------

pair() ->
    Child = spawn(?MODULE, echo, [self()]),
    Child ! ping,
    receive pong -> ok end.

echo(Parent) -> receive ping -> Parent ! pong end.

parent(N) -> lists:foreach(fun(I) -> spawn(?MODULE, leaf, [I]) end, lists:seq(1, N)).

leaf(_) -> ok.

orphans(N) ->
    Children = [spawn(?MODULE, waits_for_go, []) || _ <- lists:seq(1, N)],
    lists:foreach(fun(Child) -> Child ! go end, Children).

waits_for_go() -> receive go -> ok end.

waits(Test) ->
    Test ! {waits, self()},
    receive go -> ok end.

spawns(Test) ->
    lists:foreach(fun(_) -> spawn(?MODULE, spawned, []) end, lists:seq(1, 100)),
    Test ! {spawns, self()},
    spawn_on(100).

%% Where the run stands still meanwhile, they become no more than it can take in a moment.
spawn_on(0) -> receive never -> ok end;
spawn_on(N) ->
    lists:foreach(fun(_) -> spawn(?MODULE, spawned, []) end, lists:seq(1, 20)),
    receive after 1 -> spawn_on(N - 1) end.

spawned() -> ok.

server() ->
    {ok, P} = gen_server:start(?MODULE, state, []),
    gen_server:stop(P).

init(state) -> {ok, state}.
handle_call(_, _, S) -> {reply, ok, S}.
handle_cast(_, S) -> {noreply, S}.

a_fun() ->
    {_, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, _, _} -> ok end.

flood(Test) ->
    Test ! {floods, self()},
    receive go -> ok end,
    lists:foreach(fun message/1, lists:seq(1, 20_000)),
    Test ! {flooded, self()}.

%% As many, but no faster than the quick monitor takes them: it answers each batch.
wave(Test) ->
    Test ! {floods, self()},
    receive go -> ok end,
    lists:foreach(fun(_) ->
        lists:foreach(fun message/1, lists:seq(1, 400)),
        self() ! batch,
        receive batch -> ok end,
        receive taken -> ok end
    end, lists:seq(1, 50)),
    Test ! {flooded, self()}.

message(N) ->
    self() ! {N, lists:seq(1, 20)},
    receive {N, _} -> ok end.

%% The first of a ring passes the token on Rounds times, the others as it comes.
ring(Size, Rounds) ->
    First = self(),
    Next = lists:foldl(fun(_, To) -> spawn(?MODULE, passes, [To]) end, First, lists:seq(2, Size)),
    lists:foreach(fun(N) -> Next ! {token, N}, receive {token, N} -> ok end end, lists:seq(1, Rounds)),
    Next ! {next, stop},
    receive {next, stop} -> ok end.

passes(Next) ->
    receive
        {token, N} -> Next ! {token, N}, passes(Next);
        {next, stop} -> Next ! {next, stop}
    end.

%% --- runs ------------------------------------------------------------------------

%% The summary, and what each monitor has collected.
seen(Function, Args, Monitors) -> seen(Function, Args, Monitors, #{}).

seen(Function, Args, Monitors, Options) ->
    {Summary, Verdicts} = run(Options#{system => {?MODULE, Function, Args}, monitors => Monitors}),
    {Summary, [{P, Events} || #{process := P, info := Events} <- Verdicts]}.

spec(Text, Function, Args) ->
    Name = lists:concat(["/tmp/witness_births_", os:getpid(), ".hml"]),
    ok = file:write_file(Name, Text),
    try
        run(#{system => {?MODULE, Function, Args}, specs => [Name], explain => 100})
    after
        file:delete(Name)
    end.

write(Config, Text) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "spec.hml"),
    ok = file:write_file(File, Text),
    File.

run(Options) ->
    {ok, Run} = witness:start(Options#{source => native, log => false}),
    {ok, Summary} = witness:await(Run, infinity),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    {Summary, Verdicts}.
