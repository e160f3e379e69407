-module(witness_run_attach_SUITE).
-moduledoc """
Attaching to a running system: no later event is missed, no process is observed twice, nothing is left behind, and another
trace session of the node sees all of its own events.

`make attach-races` attaches 10,000 times (`WITNESS_ATTACH_CYCLES`).
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 5 + witness_setting:number("WITNESS_ATTACH_CYCLES", 100) div 100}}].

all() ->
    [a_process_is_observed_from_the_mark_on, messages_of_the_past_are_no_events, a_name, an_application, the_whole_node,
     a_group_gathers_what_is_there_and_what_is_spawned_later, a_group_has_the_workers_that_a_supervisor_has_started,
     a_group_has_every_descendant_that_runs, a_group_has_every_child_of_a_busy_descendant,
     an_orphan_makes_groups_inconclusive, a_specification_is_checked, what_needs_the_past_is_refused,
     a_process_that_is_not_there_is_refused, options_that_do_not_fit_are_refused, the_run_ends_with_the_last_process,
     checks_that_only_look_gather_no_events, what_hides_itself_is_told_without_events,
     a_tracer_that_is_behind_does_not_prolong_observation, a_tracer_that_is_far_behind_is_given_up,
     a_process_that_ends_meanwhile, a_killed_owner_leaves_nothing, children_of_a_busy_process_are_not_missed, races].

%% The group leader of a case is its own: processes without a known parent belong to no group that has another leader.
init_per_testcase(_, Config) ->
    {ok, _} = application:ensure_all_started(witness),
    Outer = group_leader(),
    true = group_leader(spawn_link(fun() -> forward(Outer) end), self()),
    Config.

forward(Outer) -> receive Request -> Outer ! Request, forward(Outer) end.

%% What a case leaves waiting, or ending: also processes that are linked to the case.
end_per_testcase(_, _) ->
    Left = [P || P <- processes(), P =/= self(), {?MODULE, _, _} <- [witness_event_signature:of_process(P)]],
    [begin unlink(P), exit(P, kill) end || P <- Left],
    lists:foreach(fun witness_await:down/1, Left),
    application:stop(witness).

%% --- what is observed --------------------------------------------------------------

a_process_is_observed_from_the_mark_on(_) ->
    P = spawn_link(?MODULE, echo, []),
    Run = attach([P]),
    ask(P, 1),
    Child = ask(P, spawn),
    P ! stop,
    #{outcome := ok, system := normal, gaps := 0, processes := 2} = await(Run),
    Self = self(),
    ?assertMatch([{attached, P, {?MODULE, echo, 0}, _}, {recv, P, Self, {Self, 1}, _}, {send, P, Self, {P, 1}, _},
                  {recv, P, Self, {Self, spawn}, _}, {fork, P, Child, {?MODULE, child, []}, _},
                  {send, P, Self, {P, Child}, _}, {recv, P, Self, stop, _}, {exit, P, normal, _}], trace(P)),
    ?assertMatch([{init, Child, P, {?MODULE, child, []}, _}, {exit, Child, normal, _}], trace(Child)).

%% A message that was delivered before the process is attached to is no event, even if the process takes it later.
messages_of_the_past_are_no_events(_) ->
    P = spawn_link(?MODULE, late, []),
    P ! {self(), 1},
    P ! {self(), 2},
    %% The signal makes the process fetch what was sent to it before.
    {message_queue_len, 2} = process_info(P, message_queue_len),
    Run = attach([P]),
    P ! begin_now,
    [receive {P, N} -> ok end || N <- [1, 2]],
    P ! stop,
    #{outcome := ok} = await(Run),
    ?assertMatch([{attached, P, _, _}, {recv, P, _, begin_now, _}, {send, P, _, {P, 1}, _}, {send, P, _, {P, 2}, _},
                  {recv, P, _, stop, _}, {exit, P, normal, _}], trace(P)).

a_name(_) ->
    P = spawn_link(?MODULE, echo, []),
    register(?MODULE, P),
    Run = attach([?MODULE]),
    P ! stop,
    #{monitored := 1} = await(Run),
    ?assertMatch([{attached, P, _, _}, {recv, P, _, stop, _}, {exit, P, normal, _}], trace(P)).

%% The application master and the supervisors belong to it; what other processes have started does not.
an_application(_) ->
    Table = witness_attach_system:start(),
    Run = attach([{application, witness_attach_system}]),
    {ok, New} = supervisor:start_child(witness_attach_pool, []),
    Old = witness_attach_system:workers(Table) -- [New],
    {ok, #{outcome := ok, gaps := 0}} = witness:stop(Run),
    All = observed(),
    [?assertMatch([{attached, P, {witness_attach_worker, init, 1}, _} | _], trace(P)) || P <- Old],
    [?assertMatch([{attached, P, _, _} | _], trace(P)) || P <- [whereis(witness_attach_top), whereis(witness_attach_pool)]],
    ?assertMatch([{init, New, _, {witness_attach_worker, init, [Table]}, _} | _], trace(New)),
    %% And the two processes of the application's master.
    ?assertEqual(8 + 1 + 2 + 2, length(All)),
    witness_attach_system:finish(Table).

the_whole_node(_) ->
    P = spawn_link(?MODULE, echo, []),
    Run = observe(#{system => node}, recorder()),
    Child = ask(P, spawn),
    New = spawn(?MODULE, child, []),
    [begin M = monitor(process, C), receive {'DOWN', M, process, _, _} -> ok end end || C <- [Child, New]],
    {ok, #{outcome := ok, system := undefined}} = witness:stop(Run),
    ?assertMatch([{attached, P, _, _} | _], trace(P)),
    Self = self(),
    ?assertMatch([{attached, Self, _, _} | _], trace(self())),
    ?assertMatch([{init, Child, P, _, _} | _], trace(Child)),
    ?assertMatch([{init, New, Self, _, _} | _], trace(New)),
    ?assertEqual([], [Q || Q <- observed(), Q =/= P, is_witness(Q)]),
    P ! stop.

is_witness(P) ->
    case proc_lib:get_label(P) of
        {witness_monitor, _, _} -> true;
        Label -> is_atom(Label) andalso lists:prefix("witness", atom_to_list(Label))
    end.

a_group_gathers_what_is_there_and_what_is_spawned_later(Config) ->
    P = spawn_link(?MODULE, echo, []),
    Lingering = ask(P, linger),
    %% The child may end before P answers.
    Run = specified("with witness_run_attach_SUITE:echo() group check [_ <- _, _:_()] [_ <- _, _:linger()] max X.("
                    "[_ -> _, _:child()] [_ <- _, _:_()] max Y.([C ** normal] max Z.([_ ? stop] ff and [_ : _ ! _] Z) "
                    "and [_ : _ ! _] Y) and [_ ? _] X and [_ : _ ! _] X).", P, Config),
    Child = ask(P, spawn),
    witness_await:down(Child),
    P ! stop,
    Lingering ! stop,
    #{verdicts := #{no := 1}, outcome := violated} = await(Run),
    [#{steps := Steps}] = witness:verdicts(Run),
    ?assertMatch([attached, attached, recv, fork | _], [witness_event:kind(E) || #{event := E} <- Steps]).

%% Without being asked: they are attached to, and the whole tree is about one order.
a_group_has_the_workers_that_a_supervisor_has_started(Config) ->
    [begin
         Table = witness_attach_system:start(),
         Run = specified("with witness_attach_system:init(_) group over _ ? crash check [_ ? crash] ff.", Target, Config),
         lists:last(witness_attach_system:workers(Table)) ! crash,
         witness_await:until(fun() -> maps:get(no, maps:get(verdicts, witness:info(Run))) =:= 1 end),
         {ok, #{outcome := violated}} = witness:stop(Run),
         witness_attach_system:finish(Table)
     end || Target <- [witness_attach_top, witness_attach_pool]].

%% Random trees; their processes are spawned in every way. The second specification takes the processes that it names out of
%% its groups; they are in the groups of the first. Each process sends one mark, which violates each group that reads it.
a_group_has_every_descendant_that_runs(Config) ->
    Group = "with witness_run_attach_SUITE:root() group per P over P : _ ! mark monitor [P : _ ! mark] ff. ",
    Texts = [Group, Group
             ++ "with witness_run_attach_SUITE:cut() none. with witness_run_attach_SUITE:named() check [_ ? never] ff."],
    [begin
         _ = rand:seed(exsss, Seed),
         Tree = grown(rand:uniform(15), #{member(root) => {root, none, age()}}),
         [Root] = [P || P := {root, _, _} <- Tree],
         Some = [P || P <- by_age(Tree), rand:uniform(4) =:= 1],
         Dead = case rand:uniform(4) of 1 -> [some(Tree)] -- [Root]; _ -> [] end,
         lists:foreach(fun ended/1, Dead),
         System = case rand:uniform(5) of 1 -> node; _ -> {attach, [Root | (Some -- Dead) -- [Root]]} end,
         {ok, Run} = start(Texts, System, Config, #{instrument => lists:nth(rand:uniform(2), [outline, central])}),
         All = grown(2, maps:without(Dead, Tree)),
         [mark(P) || P := _ <- All],
         {ok, #{gaps := Gaps}} = witness:stop(Run),
         Told = told(),
         Incomplete = [Map || Map <- [1, 2], is_incomplete(Map, Dead, System, Tree)],
         Members = [case lists:member(Map, Incomplete) of
                        true -> [];
                        false -> lists:sort([P || P := _ <- All, is_member(P, Map, All)])
                    end || Map <- [1, 2]],
         ?assertEqual({Seed, length(Incomplete), Members}, {Seed, Gaps, [members(Map, Told) || Map <- [1, 2]]}),
         [ended(P) || P := _ <- All]
     end || Seed <- lists:seq(1, 300)].

%% An orphan may be a member, unless it is observed and the specification names it.
is_incomplete(Map, Dead, System, Tree) ->
    [] =/= [P || P := {Kind, Parent, _} <- Tree, lists:member(Parent, Dead), not lists:member(P, Dead),
                 Map =:= 1 orelse Kind =/= named orelse not is_observed(P, System)].

is_observed(_, node) -> true;
is_observed(P, {attach, Targets}) -> lists:member(P, Targets).

%% The parent of each new process is any process of the tree.
grown(0, Tree) -> Tree;
grown(N, Tree) ->
    Parent = some(Tree),
    Kind = lists:nth(rand:uniform(6), [plain, plain, plain, plain, cut, named]),
    P = born(Parent, Kind, lists:nth(rand:uniform(3), [spawn, spawn_link, proc_lib])),
    grown(N - 1, Tree#{P => {Kind, Parent, age()}}).

some(Tree) -> lists:nth(rand:uniform(map_size(Tree)), by_age(Tree)).

%% Not by their pids, which do not tell it on a node that runs for long.
by_age(Tree) -> [P || {_, P} <- lists:sort([{Age, P} || P := {_, _, Age} <- Tree])].

age() -> erlang:unique_integer([monotonic]).

is_member(P, Map, Tree) ->
    case Tree of
        #{P := {root, _, _}} -> true;
        #{P := {plain, Parent, _}} -> is_member(Parent, Map, Tree);
        #{P := {_, Parent, _}} -> Map =:= 1 andalso is_member(Parent, Map, Tree)
    end.

%% The slices of the violations are the processes that were read.
members(Map, Told) ->
    Name = integer_to_binary(Map),
    lists:sort([P || #{verdict := no, slice := [{_, P}], spec := Spec} <- Told,
                     filename:rootname(filename:basename(hd(binary:split(Spec, ~":")))) =:= <<"attach", Name/binary>>]).

%% The spawner is not a target: what it has spawned before it is on is found as its child.
a_group_has_every_child_of_a_busy_descendant(Config) ->
    Root = member(root),
    Idle = [born(Root, plain, spawn) || _ <- lists:seq(1, 300)],
    Spawner = born(Root, busy, spawn),
    receive {child, Spawner, _} = First -> self() ! First end,
    {ok, Run} = start(["with witness_run_attach_SUITE:root() group per P over P : _ ! mark monitor [P : _ ! mark] ff."],
                      {attach, [Root]}, Config, #{}),
    Spawner ! {stop, self()},
    receive {stopped, Spawner} -> ok end,
    Born = children(Spawner),
    Marked = [Root | Idle] ++ Born,
    lists:foreach(fun mark/1, Marked),
    {ok, #{gaps := 0}} = witness:stop(Run),
    ?assertEqual(lists:sort(Marked), members(1, told())),
    [ended(P) || P <- Marked].

%% The parent of the orphan has ended, and nothing tells which process had spawned that parent.
an_orphan_makes_groups_inconclusive(Config) ->
    Text = "with witness_run_attach_SUITE:root() group over _ : _ ! mark check [_ : _ ! mark] ff.",
    Root = member(root),
    Between = born(Root, plain, spawn),
    Orphan = born(Between, plain, proc_lib),
    ended(Between),
    {ok, Run} = start([Text], {attach, [Root]}, Config, #{}),
    mark(Root),
    {ok, #{outcome := untrusted, verdicts := #{no := 0, inconclusive := 1}, gaps := 1, warnings := Warnings}} = witness:stop(Run),
    [Warning] = [W || #{code := orphan, text := W} <- Warnings],
    ?assertMatch({_, _}, binary:match(Warning, list_to_binary(pid_to_list(Orphan)))),
    ?assertMatch([{inconclusive, {gap, orphan}}], [{V, Why} || #{verdict := V, reason := Why} <- told()]),
    %% A specification for single processes does not depend on it.
    Single = specified("with witness_run_attach_SUITE:root() over _ : _ ! mark check [_ : _ ! mark] ff.", Root, Config),
    mark(Root),
    {ok, #{outcome := violated}} = witness:stop(Single),
    ended(Orphan),
    %% An ancestor outside of every group shows that the orphan does not belong to the group.
    Stranger = member(plain),
    Gone = born(Stranger, plain, proc_lib),
    _ = born(Gone, plain, proc_lib),
    ended(Gone),
    %% So does another group leader.
    Leader = member(plain),
    Between2 = born(Stranger, plain, spawn),
    true = group_leader(Leader, Between2),
    _ = born(Between2, plain, spawn),
    ended(Between2),
    Group = specified(Text, Root, Config),
    mark(Root),
    {ok, #{outcome := violated, gaps := 0}} = witness:stop(Group).

mark(P) ->
    P ! {mark, self()},
    receive {marked, P} -> ok end.

a_specification_is_checked(Config) ->
    [begin
         P = spawn_link(?MODULE, echo, []),
         Run = specified(Text, P, Config),
         ask(P, 1),
         P ! {self(), stray},
         receive {P, stray} -> ok end,
         P ! stop,
         #{verdicts := #{no := No, yes := Yes}} = await(Run),
         ?assertEqual({Text, No, Yes}, {Text, Expected, 1 - Expected})
     end || {Text, Expected} <- [
        {"with witness_run_attach_SUITE:echo() check [_ <- _, witness_run_attach_SUITE:echo()] [_ ? {_, 1}] [_ : _ ! {_, 1}] "
         "[_ ? {_, stray}] ff.", 1},
        {"with M:echo() when M =:= m check [_ ? _] ff. with _:_() check [_ <- _, _:_(Unused)] ff.", 0},
        {"with witness_run_attach_SUITE:F() when F =:= echo over _ ? {_, _} check [_ ? {_, 1}] [_ ? {_, stray}] ff.", 1},
        {"with witness_run_attach_SUITE:echo() over C <- _, _, _ : _ ! {_, stray} check [C <- _, _] [P : _ ! _ when P =:= C] ff.",
         1}]].

%% --- refused --------------------------------------------------------------------------

what_needs_the_past_is_refused(Config) ->
    [begin
         {error, {witness_spec, Found}} = start(Text, [self()], Config),
         [#{code := Code, line := 1, column := Column}] = [D || #{severity := error} = D <- Found],
         ?assertEqual({Text, needs_arguments, At}, {Text, Code, Column})
     end || {Text, At} <- [
        {"with lists:seq(1, _) check [_ <- _, _] ff.", 6},
        {"with lists:seq(A, A) check [_ <- _, _] ff.", 6},
        {"with lists:seq(A, _) when A > 1 check [_ <- _, _] ff.", 6},
        {"with lists:seq(A, _) check [_ <- _, _] [_ ? A] ff.", 6},
        {"with lists:seq(A, _) over _ ? _ let Is = once {_ ? A} check [_ ? _ when Is] ff.", 6},
        {"with lists:seq(_, _) check [_ <- _, lists:seq(A, _)] [_ ? A] ff.", 29},
        {"with lists:seq(_, _) check [_ <- P, _] [P ? _] ff.", 29},
        {"with lists:seq(_, _) check [_ ? _] max X. [_ <- _, lists:seq([], _)] ff.", 44},
        {"with lists:seq(_, _) none. with lists:max([_ | _]) none. with lists:min(_) check [_ ? _] ff.", 33}]],
    ?assertMatch({error, {witness_monitor, {monitor_callbacks, witness_load_monitor, [{attached, 3}]}}},
                 witness:start(#{system => node, monitors => [{{'_', '_', '_'}, {witness_load_monitor, check}}]})),
    ?assertEqual([], [P || P <- processes(), sessions(P) =/= []]).

a_process_that_is_not_there_is_refused(_) ->
    {Gone, M} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', M, process, Gone, _} -> ok end,
    [begin
         {error, {witness_run_attach, _} = Error} =
             witness:start(#{system => {attach, [self(), Target]}, monitors => [recorder()]}),
         ?assertNotEqual(nomatch, string:find(witness:format_error(Error), Part))
     end || {Target, Part} <- [{Gone, "there is no process"}, {nobody_has_this_name, "registered as nobody_has_this_name"},
                               {{application, stdlib}, "the application stdlib is not running, or has no processes"},
                               {{application, no_such}, "the application no_such is not running"},
                               {witness_sup, "a process of Witness"}]].

options_that_do_not_fit_are_refused(_) ->
    [?assertMatch({error, {Module, {Kind, Key}}}, case witness:start(maps:merge(#{system => {attach, [self()]}}, Options)) of
                                            {error, {M, {bad_option, K, _}}} -> {error, {M, {bad_option, K}}};
                                            Other -> Other
                                        end)
     || {Module, Kind, Given} <- [{witness_options, not_attached, [{scope, #{scope => tree}}, {roots, #{roots => auto}}]},
                                  {witness_option, bad_option,
                                   [{source, #{source => native}}, {system, #{system => {attach, []}}},
                                    {system, #{system => {attach, ["p"]}}},
                                    {system, #{system => {attach, [{application, "p"}]}}}]}],
        {Key, Options} <- Given].

%% --- ends -----------------------------------------------------------------------------

the_run_ends_with_the_last_process(_) ->
    [P, Q] = [spawn_link(?MODULE, echo, []) || _ <- [1, 2]],
    Run = attach([P, Q]),
    Child = ask(Q, linger),
    P ! stop,
    Q ! stop,
    witness_await:until(fun() -> maps:get(waiting_for, witness:info(Run)) =:= 1 end),
    #{phase := running} = witness:info(Run),
    Child ! stop,
    #{processes := 3, monitored := 3} = await(Run).

%% The run has all that the processes spawn, and ends with the last one.
checks_that_only_look_gather_no_events(_) ->
    [begin
         P = spawn_link(?MODULE, echo, []),
         {ok, Run} = witness:start(#{system => {Kind, [P]}, checks => [deadlock, mailboxes, leaks], rate => 1, log => false}),
         Child = ask(P, linger),
         [witness_await:down(ask(P, spawn)) || _ <- lists:seq(1, 100)],
         ?assertEqual(lists:sort([P, Child]), lists:sort(witness_run:awaited(Run))),
         P ! stop,
         witness_await:until(fun() -> maps:get(waiting_for, witness:info(Run)) =:= 1 end),
         Child ! stop,
         #{outcome := ok, events := 0, system := normal, verdicts := #{yes := 3}} = await(Run)
     end || Kind <- [attach, children]].

what_hides_itself_is_told_without_events(_) ->
    P = spawn_link(?MODULE, echo, []),
    {ok, Run} = witness:start(#{system => {attach, [P]}, checks => [deadlock], log => false}),
    ok = ask(P, hide),
    P ! stop,
    #{outcome := untrusted, events := 0, warnings := Warnings} = await(Run),
    ?assertEqual([sensitive], [Code || #{code := Code} <- Warnings]).

%% What was gathered until the end is analysed, also what processes without a tracer of their own have done.
a_tracer_that_is_behind_does_not_prolong_observation(_) ->
    P = spawn_link(?MODULE, echo, []),
    Run = attach([P]),
    Tracer = suspended_tracer(),
    [Brief, Lingering] = [ask(P, Kind) || Kind <- [spawn, linger]],
    ok = witness_await:until(fun() -> not is_process_alive(Brief) end),
    Stopping = stopping(Run),
    ok = witness_await:until(fun() -> sessions(P) =:= [] andalso sessions(Lingering) =:= [] end),
    1 = ask(P, 1),
    [stop = Q ! stop || Q <- [P, Lingering]],
    [witness_await:down(Q) || Q <- [P, Lingering]],
    true = erlang:resume_process(Tracer),
    #{outcome := ok, gaps := 0, monitored := 3, processes := 3} = summary(Stopping),
    ?assertMatch([{attached, P, _, _}, {recv, P, _, {_, spawn}, _}, {fork, P, Brief, _, _}, {send, P, _, {P, Brief}, _},
                  {recv, P, _, {_, linger}, _}, {fork, P, Lingering, _, _}, {send, P, _, {P, Lingering}, _}], trace(P)),
    ?assertMatch([{init, Brief, P, _, _}, {exit, Brief, normal, _}], trace(Brief)),
    ?assertMatch([{init, Lingering, P, _, _}], trace(Lingering)).

a_tracer_that_is_far_behind_is_given_up(Config) ->
    P = spawn_link(?MODULE, echo, []),
    Group = "with witness_run_attach_SUITE:echo() group check [_ ? {_, 1}] ff.",
    [begin
         {ok, Run} = Start(#{drain => 500}),
         _ = suspended_tracer(),
         1 = ask(P, 1),
         #{outcome := untrusted, gaps := 1, verdicts := Verdicts, warnings := Warnings} = summary(stopping(Run)),
         ?assertEqual(#{no => 0, yes => 0, inconclusive => 1}, Verdicts),
         ?assert(lists:member(overdue, [Code || #{code := Code} <- Warnings])),
         clean([P])
     end || Start <- [fun(Options) -> {ok, observe(Options#{system => {attach, [P]}}, recorder())} end,
                      fun(Options) -> start([Group], {attach, [P]}, Config, Options) end]],
    P ! stop.

suspended_tracer() ->
    [Tracer] = [P || P <- processes(), proc_lib:get_label(P) =:= witness_tracer],
    true = erlang:suspend_process(Tracer),
    Tracer.

stopping(Run) ->
    Self = self(),
    spawn_link(fun() -> Self ! {stopped, self(), witness:stop(Run)} end).

summary(Stopping) -> receive {stopped, Stopping, {ok, Summary}} -> Summary end.

a_process_that_ends_meanwhile(_) ->
    [begin
         P = spawn(?MODULE, echo, []),
         P ! stop,
         case witness:start(#{system => {attach, [P]}, monitors => [recorder()], log => false}) of
             {ok, Run} -> await(Run);
             {error, {witness_run_attach, _}} -> ok
         end
     end || _ <- lists:seq(1, 200)].

a_killed_owner_leaves_nothing(_) ->
    P = spawn_link(?MODULE, echo, []),
    Self = self(),
    {Owner, M} = spawn_monitor(fun() -> attach([P]), Self ! attached, receive never -> ok end end),
    receive attached -> ok end,
    ?assertMatch([_], sessions(P)),
    exit(Owner, kill),
    receive {'DOWN', M, process, Owner, _} -> ok end,
    clean([P]),
    1 = ask(P, 1),
    P ! stop.

%% --- races ----------------------------------------------------------------------------

%% Many processes are switched on before the spawner, which has the last number and spawns all the time.
children_of_a_busy_process_are_not_missed(_) ->
    Table = witness_attach_system:start(),
    Master = application_controller:get_master(witness_attach_system),
    Idle = [spawn(?MODULE, idle, [Master]) || _ <- lists:seq(1, 300)],
    Spawner = spawn_link(?MODULE, spawner, [Master, self()]),
    receive {child, Spawner, _} -> ok end,
    Run = observe(#{system => {attach, [{application, witness_attach_system}]}}, {{?MODULE, linger, 0}, {?MODULE, record}}),
    Spawner ! {stop, self()},
    receive {stopped, Spawner} -> ok end,
    Children = children(Spawner),
    {ok, #{outcome := ok, gaps := 0, monitored := Count}} = witness:stop(Run),
    Observed = observed(),
    ?assertEqual({Count, []}, {length(Observed), Observed -- lists:uniq(Observed)}),
    ?assertEqual([], Children -- Observed),
    [exit(P, kill) || P <- Idle ++ Children],
    witness_attach_system:finish(Table).

idle(Leader) ->
    group_leader(Leader, self()),
    receive never -> ok end.

spawner(Leader, Tester) ->
    group_leader(Leader, self()),
    spawning(Tester).

%% Slowly enough for the node to hold them all.
spawning(Tester) -> spawning(Tester, linger).

spawning(Tester, Kind) ->
    Tester ! {child, self(), spawn(?MODULE, Kind, [])},
    receive {stop, From} -> From ! {stopped, self()} after 1 -> spawning(Tester, Kind) end.

children(Spawner) -> receive {child, Spawner, P} -> [P | children(Spawner)] after 0 -> [] end.

%% A tree of supervisors with busy workers, which crash and are started again, while runs attach to it and end. A second
%% session traces the workers all the time.
races(_) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    Table = witness_attach_system:start(),
    Beside = beside([whereis(witness_attach_pool), whereis(witness_attach_top) | witness_attach_system:workers(Table)]),
    Driver = driver(Table),
    Cycles = witness_setting:number("WITNESS_ATTACH_CYCLES", 100),
    cycles(20, Driver, Table),
    leave_nothing(Cycles, Driver, Table, 3),
    [handled(W) || W <- witness_attach_system:workers(Table)],
    clean([whereis(witness_attach_pool), whereis(witness_attach_top) | witness_attach_system:workers(Table)]),
    Beside ! {stop, self()},
    {Restarts, Wrong} = receive {seen, Beside, Seen} -> Seen end,
    ?assertEqual([], Wrong),
    ?assert(Restarts > 0),
    ok = logger:set_primary_config(level, Level),
    witness_attach_system:finish(Table).

%% A module may be loaded in any cycle, when it is first called. What each cycle leaves, it leaves again.
leave_nothing(Cycles, Driver, Table, Rounds) ->
    Before = left(),
    cycles(Cycles, Driver, Table),
    case left() of
        Before -> ok;
        _ when Rounds > 1 -> leave_nothing(Cycles, Driver, Table, Rounds - 1);
        After -> ?assertEqual(Before, After)
    end.

%% What stays for ever.
left() ->
    {erlang:system_info(atom_count), lists:sort([M || {M, _} <- code:all_loaded(), lists:prefix("witness", atom_to_list(M))])}.

cycles(0, _, _) -> ok;
cycles(N, Driver, Table) ->
    Old = witness_attach_system:workers(Table),
    %% The application, or the workers that one of its supervisors starts from now on.
    Whole = N rem 3 =/= 0,
    Target = case Whole of true -> {application, witness_attach_system}; false -> witness_attach_pool end,
    Driver ! {drive, self(), 10},
    Run = attach([Target], {witness_attach_monitor, none}),
    From = erlang:unique_integer([monotonic]),
    Still = [P || P <- Old, is_process_alive(P)],
    0 = some(N rem 7, Driver),
    To = erlang:unique_integer([monotonic]),
    {ok, #{outcome := Outcome, gaps := 0, monitored := Count}} = witness:stop(Run),
    %% Perhaps the supervisor has started none meanwhile.
    ?assertEqual(case {Count, Whole} of {0, false} -> untrusted; _ -> ok end, Outcome),
    Told = told(),
    ?assertEqual([], [V || #{verdict := no} = V <- Told]),
    Watched = [P || #{process := P} <- Told],
    ?assertEqual(Count, length(Watched)),
    ?assertEqual([], Watched -- lists:uniq(Watched)),
    _ = Whole andalso ?assertEqual([], (Still ++ witness_attach_system:began({From, To}, Table)) -- Watched),
    witness_attach_system:forget(From, Table),
    0 = some(10 - N rem 7, Driver),
    cycles(N - 1, Driver, Table).

%% A worker may still have to take what makes it crash.
handled(Worker) -> try gen_server:call(Worker, last) catch exit:_ -> ok end.

%% Waits for so many rounds; the others go on while the run ends.
some(0, _) -> 0;
some(N, Driver) -> receive {driven, Driver} -> some(N - 1, Driver) end.

driver(Table) -> spawn_link(fun() -> driven(Table, #{}) end).

driven(Table, Last) ->
    receive
        {drive, From, Rounds} ->
            driven(Table, lists:foldl(fun(_, L) ->
                Next = witness_attach_system:drive(Table, L),
                From ! {driven, self()},
                Next
            end, Last, lists:seq(1, Rounds)))
    end.

%% The other session checks the numbers of each worker's answers: none is missing, up to the one at which the worker crashes.
beside(Roots) ->
    Self = self(),
    Tracer = spawn_link(fun() ->
        process_flag(message_queue_data, off_heap),
        Session = trace:session_create(beside, self(), []),
        [_ = trace:process(Session, P, true, [send, procs, set_on_spawn]) || P <- Roots],
        Self ! {ready, self()},
        seen(Session, #{}, {0, []})
    end),
    receive {ready, Tracer} -> Tracer end.

seen(Session, Last, {Crashed, Wrong} = Seen) ->
    receive
        {trace, P, send, {done, N}, _} ->
            case Last of
                #{P := Before} when N =/= Before + 1 -> seen(Session, Last#{P => N}, {Crashed, [{P, Before, N} | Wrong]});
                #{} -> seen(Session, Last#{P => N}, Seen)
            end;
        {trace, P, exit, {crash, N}} ->
            case maps:get(P, Last, N) of
                N -> seen(Session, maps:remove(P, Last), {Crashed + 1, Wrong});
                Other -> seen(Session, maps:remove(P, Last), {Crashed, [{P, Other, crash, N} | Wrong]})
            end;
        {stop, From} ->
            trace:session_destroy(Session),
            From ! {seen, self(), Seen};
        _ -> seen(Session, Last, Seen)
    end.

%% --- what is attached to ----------------------------------------------------------------

echo() ->
    receive
        {From, spawn} -> From ! {self(), spawn(?MODULE, child, [])}, echo();
        {From, linger} -> From ! {self(), spawn(?MODULE, linger, [])}, echo();
        {From, hide} -> false = process_flag(sensitive, true), From ! {self(), ok}, echo();
        {From, Message} -> From ! {self(), Message}, echo();
        stop -> ok
    end.

%% A process of this kind, spawned by the calling one or by another.
member(Kind) -> spawn(?MODULE, Kind, []).

born(Parent, Kind, How) -> ask(Parent, {How, Kind}).

root() -> lives().
plain() -> lives().
cut() -> lives().
named() -> lives().

lives() ->
    receive
        stop -> ok;
        {mark, From} -> From ! mark, From ! {marked, self()}, lives();
        {From, {spawn, busy}} -> From ! {self(), spawn(?MODULE, spawning, [From, plain])}, lives();
        {From, {spawn, Kind}} -> From ! {self(), spawn(?MODULE, Kind, [])}, lives();
        {From, {spawn_link, Kind}} -> From ! {self(), spawn_link(?MODULE, Kind, [])}, lives();
        {From, {proc_lib, Kind}} -> From ! {self(), proc_lib:spawn(?MODULE, Kind, [])}, lives()
    end.

%% Linked processes stay.
ended(P) ->
    Ref = monitor(process, P),
    P ! stop,
    receive {'DOWN', Ref, process, P, _} -> ok end.

late() -> receive begin_now -> echo() end.

child() -> ok.

linger() -> receive stop -> ok end.

ask(P, Message) ->
    P ! {self(), Message},
    receive {P, Answer} -> Answer end.

%% --- runs -------------------------------------------------------------------------------

attach(Targets) -> attach(Targets, {?MODULE, record}).

attach(Targets, Monitor) ->
    Pattern = case Monitor of {witness_attach_monitor, _} -> {witness_attach_worker, init, 1}; _ -> {'_', '_', '_'} end,
    observe(#{system => {attach, Targets}}, {Pattern, Monitor}).

observe(Options, Monitor) ->
    Self = self(),
    {ok, Run} = witness:start(Options#{monitors => [Monitor], log => false, on_verdict => fun(V) -> Self ! {verdict, V} end}),
    Run.

specified(Text, P, Config) ->
    {ok, Run} = start(Text, [P], Config),
    Run.

start(Text, Targets, Config) -> start([Text], {attach, Targets}, Config, #{}).

start(Texts, System, Config, Options) ->
    Files = [begin
                 File = filename:join(proplists:get_value(priv_dir, Config), "attach" ++ integer_to_list(N) ++ ".hml"),
                 ok = file:write_file(File, Text),
                 File
             end || {N, Text} <- lists:enumerate(Texts)],
    Self = self(),
    witness:start(Options#{system => System, specs => Files, log => false, on_verdict => fun(V) -> Self ! {verdict, V} end}).

await(Run) ->
    {ok, Summary} = witness:await(Run, 60_000),
    Summary.

told() -> receive {verdict, V} -> [V | told()] after 0 -> [] end.

sessions(P) ->
    case trace:session_info(P) of
        undefined -> [];
        Sessions -> [S || S = {Name, _} <- Sessions, Name =:= witness_trace_evm]
    end.

clean(Observed) ->
    witness_await:until(fun() -> [P || P <- processes(), is_witness_run(P)] =:= [] end),
    witness_await:until(fun() -> [P || P <- Observed, sessions(P) =/= []] =:= [] end).

is_witness_run(P) -> is_witness(P) andalso not lists:member(P, standing()).

%% What is there without a run.
standing() -> [whereis(witness_sup) | [P || {_, P, _, _} <- supervisor:which_children(witness_sup)]].

%% --- a monitor that records ---------------------------------------------------------------

recorder() -> {{'_', '_', '_'}, {?MODULE, record}}.

%% Messages of the run that were not taken yet.
observed() ->
    {messages, Messages} = process_info(self(), messages),
    [P || {verdict, #{process := P}} <- Messages].

trace(P) -> receive {verdict, #{process := P, info := Trace}} -> Trace after 0 -> error({unobserved, P, self(), observed()}) end.

init(_, _, record) -> {ok, []}.

attached(Function, P, record) -> {ok, [{attached, P, Function, undefined}]}.

handle_event({exit, _, _, _} = E, Events) -> {verdict, yes, lists:reverse([E | Events])};
handle_event(E, Events) -> {ok, [E | Events]}.

handle_end(_, Events) -> {yes, lists:reverse(Events)}.
