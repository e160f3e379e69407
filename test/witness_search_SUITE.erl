-module(witness_search_SUITE).
-moduledoc """
Searches of small programs: planted faults are found, and nothing is found in their repaired twins; the same schedule is the same run,
alone and after others; each recording replays identically; what cannot be controlled is refused or named.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

%% How many schedules a fault may take, and how many the twin runs.
-define(SCHEDULES, 200).
-define(SEEDS, [1, 2]).

suite() -> [{timetrap, {minutes, 15}}].

all() -> [faults_are_found, surw_finds_faults, twins_pass, faults_in_elixir_are_found, twins_in_elixir_pass,
          the_last_seat_is_sold_twice, a_schedule_is_a_run, recordings_replay_identically, savina_is_the_same,
          names_have_the_same_order_in_each_vm, what_differs_is_noticed, what_cannot_be_controlled_is_refused,
          runs_have_bounds, hard_programs_have_a_bound, what_changes_the_vm_is_refused, nothing_is_left_for_the_next_run,
          failures_are_those_that_are_asked_for, a_failure_that_is_not_repeated_says_what_is_not_controlled,
          servers_that_wait_for_each_other_are_a_deadlock, what_the_vm_has_is_as_in_a_plain_run,
          first_operations_come_in_both_orders, late_ends_and_failed_spawns_replay_identically,
          the_first_schedule_is_the_default_order, races_in_applications_are_found, a_schedule_of_an_application_is_a_run,
          nothing_is_left_of_an_application, races_in_the_use_of_servers_of_otp_are_found,
          aliases_outside_are_answered_as_they_say, nothing_is_left_of_servers_of_otp, applications_are_stopped,
          processes_of_applications_are_not_left, an_application_that_does_not_start_is_a_failure,
          an_application_may_end_the_vm, all_failures_are_those_of_their_schedules, an_early_failure_does_not_hide_a_later_one,
          a_search_ends_when_it_is_told, wrong_folders_are_named].

init_per_suite(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = witness_record_programs:compile(Out),
    [{ok, _} = compile:file(filename:join(witness_checkout:root(filename:dirname(code:which(?MODULE))), File),
                            [return_errors, debug_info, {outdir, Out}])
     || File <- ["test/searched/witness_searched.erl", "test/searched/witness_searched_hard.erl", "test/searched/witness_searched_shop.erl",
                 "test/searched/witness_searched_kernel.erl",
                 "examples/last_seat/last_seat.erl", "examples/last_seat/last_seat_hall.erl",
                 "examples/last_seat/last_seat_cashier.erl"]],
    {module, Shop} = code:load_abs(filename:join(Out, "witness_searched_shop")),
    [ok = file:write_file(filename:join(Out, atom_to_list(App) ++ ".app"), io_lib:format("~tp.~n", [Resource]))
     || Which <- [shop, street, closed], {application, App, _} = Resource <- [Shop:app(Which)]],
    [{pa, [Out]} | Config].

end_per_suite(_) -> ok.

init_per_testcase(Case, Config) when Case =:= faults_in_elixir_are_found; Case =:= twins_in_elixir_pass ->
    case os:find_executable("elixirc") of
        false -> {skip, "there is no elixirc on the path"};
        _ ->
            Out = filename:join(proplists:get_value(priv_dir, Config), "elixir"),
            ok = witness_record_programs:compile_elixir("test/searched/searched.ex", Out),
            ok = witness_cli_setup:load_elixir('Elixir.Searched', [Out]),
            [{pa, [Out]} | proplists:delete(pa, Config)]
    end;
init_per_testcase(_, Config) -> Config.

end_per_testcase(_, _) -> ok.

faults() -> [register, update, deadlock, call, restart, notify, name, links, machine, event, acknowledge].

faults_in_elixir() ->
    [server, task, shutdown, task_supervisor, agent, registry, via, subscribe, dynamic, restart].

search(MFA, Options, Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), integer_to_list(erlang:unique_integer([positive])) ++ ".rec"),
    witness_search:search(Options#{run => MFA, pa => proplists:get_value(pa, Config), dir => Dir}).

identical(Dir) ->
    {ok, Report} = witness_replay:replay(#{dir => Dir}),
    ?assertMatch(#{outcome := identical}, Report).

faults_are_found(Config) -> are_found(witness_searched, faults(), Config).

faults_in_elixir_are_found(Config) -> are_found('Elixir.Searched', faults_in_elixir(), Config).

%% The first one that fails does not change the others: each schedule is the same alone.
all_failures_are_those_of_their_schedules(Config) ->
    Options = #{schedules => 40, step_digests => true},
    {ok, #{outcome := failed, ended := schedules, schedules := 40, omitted := 0, failures := Failures, digests := Digests}} =
        search({witness_searched, ways, []}, Options#{all => true}, Config),
    ?assertMatch([#{outcome := {crashed, 1, {one, _}}, number := 1}, #{outcome := {crashed, 1, {two, _}}}], Failures),
    ?assertEqual(40, lists:sum([Count || #{count := Count} <- Failures])),
    [begin
         {ok, #{outcome := Outcome, digests := [Digest | _]}} =
             search({witness_searched, ways, []}, Options#{schedule => Number}, Config),
         ?assertEqual(lists:nth(Number, lists:reverse(Digests)), Digest),
         ?assertEqual(kind(Failed), kind(Outcome)),
         identical(Dir)
     end || #{number := Number, outcome := Failed, recorded := Dir} <- Failures],
    {ok, Passed} = search({witness_searched, update, [false]}, #{schedules => 5, all => true}, Config),
    ?assertMatch(#{outcome := passed, failures := []}, Passed).

kind({crashed, 1, {Kind, _}}) -> Kind.

%% The strategies expect a run that is longer than the first one.
an_early_failure_does_not_hide_a_later_one(Config) ->
    {ok, #{failures := Failures}} =
        search({witness_searched, early, []}, #{schedules => 1000, all => true, strategies => [pct]}, Config),
    ?assertMatch([#{outcome := {crashed, 2, {early, _}}, number := 1}, #{outcome := {crashed, 1, {{badmatch, [{count, 1}]}, _}}}],
                 Failures).

%% By the function that it tells of its schedules. Among the first forty are both failures, however long they take.
a_search_ends_when_it_is_told(Config) ->
    Options = fun(Least) ->
        #{schedules => 1_000_000_000, on_schedules => fun(Number) -> Number >= Least andalso stop end}
    end,
    {ok, #{outcome := interrupted, schedules := Schedules}} = search({witness_searched, update, [false]}, Options(1), Config),
    ?assert(Schedules > 0),
    {ok, #{outcome := failed, ended := interrupted, failures := [#{recorded := Dir}, _]}} =
        search({witness_searched, ways, []}, (Options(40))#{all => true}, Config),
    identical(Dir).

are_found(Module, Faults, Config) ->
    Missed = [{Fault, Seed} || Fault <- Faults, Seed <- ?SEEDS, not is_found(Module, Fault, Seed, Config)],
    ?assertEqual([], Missed).

is_found(Module, Fault, Seed, Config) ->
    {ok, Report} = search({Module, Fault, [true]}, #{schedules => ?SCHEDULES, seed => Seed}, Config),
    case Report of
        #{outcome := passed} -> false;
        #{outcome := {Kind, _}, unfaithful := [], recorded := Dir} when Kind =:= deadlock -> identical(Dir), true;
        #{outcome := {Kind, _, _}, unfaithful := [], recorded := Dir} when Kind =:= crashed ->
            identical(Dir),
            true
    end.

surw_finds_faults(Config) ->
    Spec = filename:join(witness_checkout:root(filename:dirname(code:which(?MODULE))), "examples/last_seat/sold_once.hml"),
    Options = #{schedules => ?SCHEDULES, strategies => [surw], step_digests => true},
    [begin
         {ok, #{outcome := Outcome, strategy := surw, recorded := Dir, digests := Digests} = Report} = search(MFA, Given, Config),
         ?assertNotEqual(passed, Outcome),
         identical(Dir),
         {ok, Same} = search(MFA, Given, Config),
         ?assertEqual({Digests, maps:get(reversed, Report)}, {maps:get(digests, Same), maps:get(reversed, Same)})
     end || {MFA, Given} <- [{{witness_searched, update, [true]}, Options}, {{witness_searched, machine, [true]}, Options},
                             {{last_seat, main, [1]}, Options#{specs => [Spec]}}]].

twins_pass(Config) -> pass(witness_searched, faults() ++ [stale, late], Config).

twins_in_elixir_pass(Config) -> pass('Elixir.Searched', faults_in_elixir(), Config).

pass(Module, Twins, Config) ->
    Wrong = [{Twin, Seed, Report} || Twin <- Twins, Seed <- ?SEEDS,
             {ok, #{outcome := Outcome, unfaithful := Unfaithful} = Report} <-
                 [search({Module, Twin, [false]}, #{schedules => ?SCHEDULES, seed => Seed}, Config)],
             {Outcome, Unfaithful} =/= {passed, []}],
    ?assertEqual([], Wrong).

the_last_seat_is_sold_twice(Config) ->
    Spec = filename:join(witness_checkout:root(filename:dirname(code:which(?MODULE))), "examples/last_seat/sold_once.hml"),
    lists:foreach(fun(Seed) ->
        {ok, Report} = search({last_seat, main, [1]}, #{seed => Seed, schedules => 20, specs => [Spec]}, Config),
        #{outcome := {violated, _, ~"sold_once"}, recorded := Dir, reversed := Reversed, switches := Switches} = Report,
        %% The hall is told that the first visitor has left before it is told that the seat is sold.
        ?assertMatch([#{first := #{kind := signal, what := {down, _, _, _}},
                        second := #{kind := process, what := {send, _, {'$gen_cast', {sold, 1, _}}, _}}}], Reversed),
        ?assertEqual(1, Switches),
        identical(Dir)
    end, lists:seq(1, 10)).

%% --- applications ------------------------------------------------------------------

-define(SHOP, witness_searched_shop).

-define(KERNEL, witness_searched_kernel).

%% Started for the function, and by the program.
shops() -> [{buys, #{applications => [?SHOP]}}, {visits, #{}}].

races_in_applications_are_found(Config) ->
    lists:foreach(fun({{Function, Options}, Seed}) ->
        {ok, #{outcome := {crashed, 1, {{badmatch, 0}, _}}, unfaithful := [], schedules := Schedules, recorded := Dir}} =
            search({?SHOP, Function, [true]}, Options#{schedules => ?SCHEDULES, seed => Seed}, Config),
        ?assert(Schedules > 1),
        identical(Dir),
        ?assertMatch({ok, #{outcome := passed, unfaithful := []}},
                     search({?SHOP, Function, [false]}, Options#{schedules => ?SCHEDULES, seed => Seed}, Config))
    end, [{Shop, Seed} || Shop <- shops(), Seed <- [1, 2, 3]]).

a_schedule_of_an_application_is_a_run(Config) ->
    lists:foreach(fun({Function, Options}) ->
        Run = {?SHOP, Function, [false]},
        {ok, #{outcome := passed, digests := All}} = search(Run, Options#{schedules => 20, step_digests => true}, Config),
        ?assert(length(lists:usort(All)) > 10),
        lists:foreach(fun(Number) ->
            {ok, #{digests := [Alone | _], recorded := Dir}} =
                search(Run, Options#{schedule => Number, step_digests => true}, Config),
            ?assertEqual({Run, Number, lists:nth(Number, lists:reverse(All))}, {Run, Number, Alone}),
            identical(Dir)
        end, [1, 2, 3, 20])
    end, shops()).

nothing_is_left_of_an_application(Config) ->
    {ok, #{outcome := Outcome, unfaithful := Unfaithful}} = search({?SHOP, changes, []}, #{schedules => 30}, Config),
    ?assertEqual({passed, []}, {Outcome, Unfaithful}).

races_in_the_use_of_servers_of_otp_are_found(Config) ->
    lists:foreach(fun({Function, Expected}) ->
        {ok, #{outcome := {crashed, 1, _}, unfaithful := Unfaithful, recorded := Dir}} =
            search({?KERNEL, Function, [true]}, #{schedules => ?SCHEDULES}, Config),
        ?assertEqual({Function, Expected}, {Function, Unfaithful}),
        identical(Dir),
        ?assertMatch({ok, #{outcome := passed, unfaithful := Expected}},
                     search({?KERNEL, Function, [false]}, #{schedules => ?SCHEDULES}, Config))
    end, [{locks, []}, {transactions, []}, {names, []}, {mnesia, [{outside, file_server_2}]}]).

aliases_outside_are_answered_as_they_say(Config) ->
    lists:foreach(fun(Function) ->
        {ok, Report} = search({?KERNEL, Function, []}, #{schedules => 20}, Config),
        ?assertMatch({Function, #{outcome := passed, unfaithful := [{outside, file_server_2}]}}, {Function, Report})
    end, [aliases, requested, echo]).

%% A schedule with a server is the same alone and after others.
nothing_is_left_of_servers_of_otp(Config) ->
    lists:foreach(fun({Function, Args}) ->
        Run = {?KERNEL, Function, Args},
        {ok, #{outcome := passed, digests := All, unfaithful := []}} =
            search(Run, #{schedules => 20, step_digests => true}, Config),
        lists:foreach(fun(Number) ->
            {ok, #{digests := [Alone | _], recorded := Dir}} =
                search(Run, #{schedule => Number, step_digests => true}, Config),
            ?assertEqual({Run, Number, lists:nth(Number, lists:reverse(All))}, {Run, Number, Alone}),
            identical(Dir)
        end, [1, 2, 20])
    end, [{locks, [false]}, {names, [false]}, {successors, []}, {timers, []}]).

%% Its `stop/1` is called, if no process is left that may need the application.
applications_are_stopped(Config) ->
    Options = #{applications => [witness_searched_street], crashes => any, schedules => 30,
                environment => [{?SHOP, [{tells_stop, true}]}]},
    {ok, #{outcome := {crashed, _, was_stopped}, recorded := Dir}} = search({?SHOP, buys, [false]}, Options, Config),
    identical(Dir),
    {ok, #{outcome := passed}} = search({?SHOP, buys, [false]}, Options#{environment => []}, Config),
    {ok, #{outcome := passed}} = search({?SHOP, leaves, []}, Options#{environment => []}, Config).

%% Their processes are not left: they are stopped. Others are, and so is a message that one of them has.
processes_of_applications_are_not_left(Config) ->
    Search = fun(Function, Args, Options) ->
        {ok, #{outcome := Outcome}} =
            search({?SHOP, Function, Args}, Options#{applications => [witness_searched_street], schedules => 30}, Config),
        Outcome
    end,
    Both = #{left => true, mailboxes => true},
    passed = Search(buys, [false], Both),
    {left, [Left]} = Search(keeps, [], Both),
    passed = Search(keeps, [], #{mailboxes => true}),
    {not_taken, [Door]} = Search(rings, [], Both),
    ?assert(is_integer(Left) andalso is_integer(Door)).

an_application_that_does_not_start_is_a_failure(Config) ->
    {ok, #{outcome := {crashed, 1, {application_not_started, witness_searched_closed, Reason}}, schedules := 1, recorded := Dir}} =
        search({?SHOP, buys, [false]}, #{applications => [witness_searched_closed]}, Config),
    ?assertMatch({witness_searched_closed, {on_sundays, {?SHOP, start, _}}}, Reason),
    identical(Dir),
    {error, Error} = search({?SHOP, buys, [false]}, #{applications => [witness_searched_nowhere]}, Config),
    ?assertEqual({witness_record, {application, witness_searched_nowhere, not_found}}, Error).

an_application_may_end_the_vm(Config) ->
    {ok, #{outcome := {halted, Id, {application_controller, _}}, recorded := Dir}} =
        search({?SHOP, ends, [permanent]}, #{schedules => 30}, Config),
    ?assert(is_integer(Id)),
    identical(Dir),
    {ok, #{outcome := passed}} = search({?SHOP, ends, [temporary]}, #{schedules => 30}, Config).

%% --- the same run --------------------------------------------------------------------

programs() ->
    [{witness_recorded_mailbox, selective}, {witness_recorded_mailbox, names}, {witness_recorded_mailbox, aliases},
     {witness_recorded_forward, forwarded}, {witness_recorded_mailbox, asleep}, {witness_recorded_mailbox, requested},
     {witness_recorded_mailbox, tasks}, {witness_recorded_server, calls}, {witness_recorded_machine, events},
     {witness_recorded_tree, restarts}, {witness_recorded_signals, deaths}, {witness_recorded_signals, timers},
     {witness_recorded_outside, tables}, {witness_recorded_outside, calls}].

a_schedule_is_a_run(Config) ->
    lists:foreach(fun({Module, Function}) ->
        Run = {witness_searched, run, [Module, Function]},
        {ok, #{outcome := passed, digests := All, unfaithful := []}} =
            search(Run, #{schedules => 20, step_digests => true}, Config),
        ?assertEqual(20, length(All)),
        lists:foreach(fun(Number) ->
            {ok, #{digests := [Alone | _]}} = search(Run, #{schedule => Number, step_digests => true}, Config),
            ?assertEqual({Run, Number, lists:nth(Number, lists:reverse(All))}, {Run, Number, Alone})
        end, [2, 20])
    end, programs()).

recordings_replay_identically(Config) ->
    lists:foreach(fun({{Module, Function}, Number}) ->
        {ok, #{outcome := returned, recorded := Dir}} =
            search({witness_searched, run, [Module, Function]}, #{schedule => Number}, Config),
        identical(Dir)
    end, [{Program, Number} || Program <- programs(), Number <- [1, 2]]).

savina_is_the_same(Config) ->
    lists:foreach(fun(Name) ->
        Options = #{schedules => 3, steps => 100_000, step_digests => true},
        {ok, #{outcome := One, digests := First}} = search({witness_searched, savina, [Name]}, Options, Config),
        {ok, #{outcome := Two, digests := Second}} = search({witness_searched, savina, [Name]}, Options, Config),
        ?assertEqual({Name, One, First}, {Name, Two, Second}),
        ?assert(lists:member(One, [passed, steps]))
    end, witness_savina:names()).

%% That of the alphabet. Without the boot script it would be the order in the module.
names_have_the_same_order_in_each_vm(Config) ->
    Expected = ["ape_of_a_search", "hare_of_a_search", "zebra_of_a_search"],
    {ok, #{outcome := passed}} = search({witness_searched, names, []}, #{schedules => 2, expect => Expected}, Config).

%% What is not controlled is named, and the digests tell that the runs were different.
what_differs_is_noticed(Config) ->
    {ok, #{unfaithful := Named, digests := First}} =
        search({witness_searched, outside, []}, #{schedules => 5, step_digests => true}, Config),
    {ok, #{digests := Second}} = search({witness_searched, outside, []}, #{schedules => 5, step_digests => true}, Config),
    ?assertEqual([{differs, {erlang, statistics, 1}}], Named),
    ?assertNotEqual(First, Second).

what_cannot_be_controlled_is_refused(Config) ->
    {ok, #{outcome := {refused, 1, {{erlang, open_port, 2}, [_ | _]}}}} = search({witness_searched, ports, []}, #{}, Config),
    {ok, #{outcome := {refused, 1, {{_, open, _}, [_ | _]}}}} = search({witness_searched, sockets, []}, #{}, Config).

runs_have_bounds(Config) ->
    {ok, #{outcome := steps, length := 500}} = search({witness_searched, crowd, []}, #{steps => 500}, Config),
    {ok, #{outcome := {busy, 1, [_ | _]}}} = search({witness_searched, computes, []}, #{busy_ms => 200}, Config).

hard_programs_have_a_bound(Config) ->
    Search = fun(Function, Args, Options) ->
        Given = maps:merge(#{steps => 2_000, busy_ms => 60_000, memory => 200 bsl 20, schedules => 2}, Options),
        search({witness_searched_hard, Function, Args}, Given, Config)
    end,
    Outcome = fun(Function, Args, Options) ->
        {ok, #{outcome := Found} = Report} = Search(Function, Args, Options),
        ?assertEqual({Function, is_recorded(Found)}, {Function, is_map_key(recorded, Report)}),
        Found
    end,
    [?assertMatch({_, steps}, {Function, Outcome(Function, [], #{})}) || Function <- [spawns, messages]],
    [?assertMatch({_, {busy, 1, [{witness_searched_hard, _, _, _} | _]}}, {Function, Outcome(Function, [], #{busy_ms => 200})})
     || Function <- [clock, references, urgent]],
    %% A table takes a step for each of its entries.
    [?assertMatch({_, {exceeded, 1, {memory, [_ | _]}}}, {What, Outcome(large, [What], #{steps => 1_000_000})})
     || What <- [list, binaries, queue, table, tables]],
    ?assertMatch({exceeded, 1, {atoms, [_ | _]}}, Outcome(atoms, [], #{})),
    %% Without a pause in which Witness can look, the VM may be full first: then it ends.
    [case Search(Function, [], #{steps => 1_000_000}) of
         {ok, #{outcome := Found}} -> ?assertMatch({_, {exceeded, 1, {memory, [_ | _]}}}, {Function, Found});
         {error, Reason} -> ?assertMatch({_, {witness_search, {vm, {exit_status, _}}}}, {Function, Reason})
     end || Function <- [list, binaries, queue, table, tables]],
    {error, {witness_search, {vm, {exit_status, _}}}} = Search(at_once, [], #{}).

is_recorded({How, _, _}) -> not lists:member(How, [busy, exceeded, refused, lost]);
is_recorded(_) -> true.

what_changes_the_vm_is_refused(Config) ->
    lists:foreach(fun({Function, Args, Refused}) ->
        {ok, #{outcome := Outcome}} = search({witness_searched_hard, Function, Args}, #{schedules => 2}, Config),
        ?assertMatch({Function, {refused, 1, {Refused, _}}}, {Function, Outcome})
    end, [{kills, [code_server], {erlang, exit, 2}}, {kills, [init], {erlang, exit, 2}}, {kills, [user], {erlang, exit, 2}},
          {unregisters, [], {erlang, unregister, 1}}, {links, [], {erlang, link, 1}}, {deletes, [], {ets, delete, 1}},
          {tells, [], {erlang, send, 2}}, {flags, [], {erlang, system_flag, 2}}, {blocks, [], {erlang, system_flag, 2}},
          {traces, [], {erlang, trace, 3}}, {session, [], {erts_internal, trace_session_create, 3}},
          {monitors, [], {erlang, system_monitor, 2}}, {restarts, [], {init, restart, 0}}, {command, [], {erlang, open_port, 2}},
          {elsewhere, [], {erlang, spawn, 2}}, {remote_call, [], {erlang, spawn_request, 5}},
          {node_monitor, [], {erlang, monitor_node, 2}},
          {distributes, [], {erlang, send, 2}}, {replaces, [], {code, load_binary, 3}}, {purges, [], {code, purge, 1}}]).

nothing_is_left_for_the_next_run(Config) ->
    lists:foreach(fun({Function, Args, Unfaithful}) ->
        {ok, Report} = search({witness_searched_hard, Function, Args}, #{schedules => 30}, Config),
        ?assertMatch({_, #{outcome := passed}}, {Function, Report}),
        ?assertEqual({Function, Unfaithful}, {Function, lists:sublist(maps:get(unfaithful, Report), length(Unfaithful))}),
        ?assert(Unfaithful =/= [] orelse maps:get(unfaithful, Report) =:= [])
    end, [{leaves, [], []},
          {starts, [], [{outside, file_server_2}]}, {tables_are_named, [], []}, {logs, [], []}, {tagged, [], []},
          {nested, [20], []}, {stops, [[]], []}, {stops, [[0]], []}, {alone, [], []},
          {groups, [], []}, {informed, [], []}, {counted, [], [{differs, {erlang, system_info, 1}}]},
          {numbered, [], [{differs, {os, getpid, 0}}]}, {upgrades, [], [{outside, code_server}]},
          {limited, [], [{differs, {erlang, process_flag, 2}}]}]),
    {ok, #{outcome := {halted, 1, 3}}} = search({witness_searched_hard, stops, [[3]]}, #{}, Config).

failures_are_those_that_are_asked_for(Config) ->
    Outcome = fun(Function, Args, Options) ->
        {ok, #{outcome := Found}} = search({witness_searched, Function, Args}, Options#{schedules => 100}, Config),
        Found
    end,
    passed = Outcome(left, [], #{}),
    {left, [2]} = Outcome(left, [], #{left => true}),
    passed = Outcome(left, [], #{mailboxes => true}),
    passed = Outcome(globals, [], #{left => true, mailboxes => true}),
    passed = Outcome(wakes, [], #{}),
    {left, [2, 3]} = Outcome(wakes, [], #{left => true, steps => 200}),
    steps = Outcome(wakes, [], #{mailboxes => true, steps => 200}),
    passed = Outcome(not_taken, [], #{}),
    {not_taken, [2]} = Outcome(not_taken, [], #{mailboxes => true}),
    {left, [2]} = Outcome(not_taken, [], #{mailboxes => true, left => true}),
    passed = Outcome(ends, [wrong], #{}),
    {crashed, 2, wrong} = Outcome(ends, [wrong], #{crashes => any}),
    {crashed, 2, {shutdown, late}} = Outcome(ends, [{shutdown, late}], #{crashes => any}),
    passed = Outcome(ends, [{shutdown, late}], #{crashes => any, normal => [shutdown]}),
    passed = Outcome(ends, [wrong], #{crashes => assertions}),
    {crashed, 2, {{assert, _}, _}} = Outcome(asserts, [], #{crashes => assertions}),
    passed = Outcome(slow, [], #{}),
    {crashed, 1, {late, _}} = Outcome(slow, [], #{timeouts => any}),
    passed = Outcome(slow, [], #{timeouts => any, crashes => none}),
    passed = Outcome(triangle, [], #{}),
    {crashed, 1, {overtaken, _}} = Outcome(triangle, [], #{delivery => pairwise}),
    passed = Outcome(halts, [0], #{}),
    {halted, 1, 3} = Outcome(halts, [3], #{}),
    {halted, 1, 0} = Outcome(halts, [0], #{expect => ok}),
    {crashed, 1, shutdown} = Outcome(gives_up, [], #{}),
    passed = Outcome(ends, [shutdown], #{}).

servers_that_wait_for_each_other_are_a_deadlock(Config) ->
    Outcome = fun(Fault, Then, Options) ->
        {ok, #{outcome := Found} = Report} =
            search({witness_searched, background, [Fault, Then]}, Options#{schedules => 100, steps => 500}, Config),
        _ = [identical(Dir) || #{recorded := Dir} <- [Report]],
        Found
    end,
    {circle, [2, 3]} = Outcome(true, returns, #{}),
    passed = Outcome(false, returns, #{}),
    passed = Outcome(true, returns, #{deadlocks => false}),
    Outcomes = fun(Fault, Options) ->
        {ok, #{failures := Failures}} = search({witness_searched, background, [Fault, polls]},
                                               Options#{schedules => 50, steps => 500, all => true}, Config),
        lists:sort([Found || #{outcome := Found} <- Failures])
    end,
    [steps, {circle, [2, 3]}] = Outcomes(true, #{}),
    [steps] = Outcomes(true, #{deadlocks => false}),
    [steps] = Outcomes(false, #{}).

a_failure_that_is_not_repeated_says_what_is_not_controlled(Config) ->
    {error, {witness_search, {not_repeated, 1, [{differs, {os, putenv, 2}}]} = Reason}} =
        search({witness_searched, ends_first, []}, #{}, Config),
    witness_command:contains(unicode:characters_to_binary(witness_search:format_error(Reason)),
                             [~"schedule 1 has failed, and not when it ran again", ~"; unfaithful: os:putenv/2: "]).

what_the_vm_has_is_as_in_a_plain_run(Config) ->
    lists:foreach(fun(Function) ->
        {ok, Report} = search({witness_searched, Function, []}, #{schedules => 50}, Config),
        ?assertMatch({_, #{outcome := passed, unfaithful := []}}, {Function, Report})
    end, [inherits, environment, leader, place]),
    {ok, #{outcome := returned, recorded := Dir}} = search({witness_searched, inherits, []}, #{schedule => 7}, Config),
    identical(Dir).

first_operations_come_in_both_orders(Config) ->
    lists:foreach(fun({Function, Wrong}) ->
        {ok, Report} = search({witness_searched, Function, [Wrong]}, #{schedules => 100}, Config),
        ?assertMatch({_, #{outcome := {crashed, 1, {wrong, _}}}}, {{Function, Wrong}, Report})
    end, [{table, true}, {table, false}, {term, none}, {term, some}, {queue, 0}, {queue, 1}]).

late_ends_and_failed_spawns_replay_identically(Config) ->
    {ok, #{outcome := {crashed, 1, noproc}, recorded := Linked}} = search({witness_searched, linked, []}, #{}, Config),
    identical(Linked),
    {ok, #{outcome := {crashed, 1, {badarg, [{erlang, spawn, [2], _} | _]}}, recorded := Misspelt}} =
        search({witness_searched, misspelt, []}, #{}, Config),
    identical(Misspelt),
    lists:foreach(fun(Number) ->
        {ok, #{outcome := returned, unfaithful := [], recorded := Asleep}} =
            search({witness_searched, asleep, []}, #{schedule => Number}, Config),
        identical(Asleep)
    end, [1, 2, 3, 4]).

%% The process that has acted goes on if it can, and a time is over when nothing else is possible.
the_first_schedule_is_the_default_order(Config) ->
    {ok, #{outcome := passed}} = search({witness_searched, slow, []}, #{schedules => 1, timeouts => any}, Config),
    {ok, #{outcome := passed}} = search({witness_searched, acknowledge, [true]}, #{schedules => 1}, Config),
    lists:foreach(fun({Module, Function}) ->
        {ok, Report} = search({witness_searched, run, [Module, Function]}, #{schedule => 1}, Config),
        ?assertMatch({_, _, #{switches := 0}}, {Module, Function, Report})
    end, programs()).

wrong_folders_are_named(Config) ->
    Dir = proplists:get_value(priv_dir, Config),
    {error, {witness_search, {exists, Dir}} = Reason} =
        witness_search:search(#{run => {witness_searched, clock, []}, dir => Dir, pa => proplists:get_value(pa, Config)}),
    ?assertEqual(iolist_to_binary([Dir, ~": it exists; name a folder that does not"]),
                 unicode:characters_to_binary(witness_search:format_error(element(2, Reason)))).
