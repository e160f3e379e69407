-module(witness_inline_SUITE).
-moduledoc """
Inline monitoring as runs have it: the promises that a system which is monitored from within behaves as before, and that no
monitor judges a trace with a hole.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(S, witness_inline_system).
-define(M, witness_inline_monitor).

all() ->
    [{group, native}, {group, evm}, {group, once}].

groups() ->
    Each = [a_process_is_seen_from_birth_to_end, every_message_is_a_send, every_spawn_is_a_fork,
            a_fun_is_an_entry, events_carry_their_time,
            processes_outside_of_the_tree_are_not_observed, what_was_born_before_is_not_observed,
            a_process_that_is_killed_is_a_gap, a_process_that_is_ended_while_it_waits_is_judged_to_its_end,
            no_process_is_judged_by_less_than_it_did, servers_that_their_supervisor_ends_are_judged,
            a_dictionary_that_is_deleted_between_callbacks_is_a_gap, a_process_that_is_killed_among_many_is_found,
            the_tree_ends_with_its_last_process, what_a_run_weaves_is_restored, two_runs_with_modules_of_their_own,
            undecided_monitors_end_with_what_they_have_seen, a_verdict_before_the_stop_is_not_lost, load_is_sound,
            the_death_of_the_owner_restores_the_code, the_death_of_the_host_is_a_gap],
    [{native, [], Each}, {evm, [], Each},
     {once, [], [crashes_of_monitors_stay_theirs, a_monitor_cannot_do_what_is_an_event, exceptions_are_as_before,
                 a_dictionary_is_the_process_s_own, a_dictionary_that_is_deleted_elsewhere_is_a_gap,
                 ends_after_hibernation_are_seen, a_child_that_its_parent_does_not_know_is_a_gap, ten_million_calls_take_no_space,
                 marks_of_several_properties_stay_apart, explanations_are_those_of_outline_mode, shapes_instead_of_contents,
                 a_module_belongs_to_one_run, two_runs_of_what_was_compiled_so, beside_an_outline_run, the_registry_comes_back,
                 parts_of_a_test, what_a_signal_ends_does_not_fail_a_test,
                 original_code_in_use_does_not_fail_a_test, a_module_of_an_earlier_run_is_woven_again,
                 wrong_options_are_refused,
                 groups_are_refused_with_their_place, a_module_that_is_named_has_to_be_woven, specifications_are_not_replaced,
                 what_a_replaced_module_does_is_not_judged, a_version_that_is_woven_too_goes_on,
                 the_parse_transform_weaves_for_later_runs, entries_that_were_not_woven_are_named,
                 wrong_options_are_errors_of_the_compiler]}].

suite() -> [{timetrap, {minutes, 3}}].

init_per_suite(Config) ->
    #{level := Before} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    {ok, _} = application:ensure_all_started(witness),
    ok = code:ensure_modules_loaded([?S, ?M, witness_inline_elsewhere, witness_load, witness_load_monitor, witness_await]),
    [{level, Before} | Config].

end_per_suite(Config) -> ok = logger:set_primary_config(level, proplists:get_value(level, Config)).

init_per_group(once, Config) -> [{source, evm} | Config];
init_per_group(Source, Config) -> witness_source:init(Source, Config).

end_per_group(_, _) -> ok.

%% Nothing stays of any run.
end_per_testcase(_, _) ->
    ?assertEqual(#{}, witness_weave_loader:status()),
    ?assertEqual([], claims()),
    ?assertEqual(no, witness_weave:woven(?S)).

claims() -> [Key || {{witness_inline_registry, _} = Key, _} <- persistent_term:get()].

%% --- a run -----------------------------------------------------------------------

options(Config, More) ->
    maps:merge(#{instrument => inline, weave => [?S], log => false, source => proplists:get_value(source, Config)}, More).

%% A function as the first process; its events are gathered.
observing(Config, Function, Args) ->
    options(Config, #{system => {?S, Function, Args}, monitors => [{{?S, Function, length(Args)}, {?M, events}}]}).

started(Options) ->
    {ok, Run} = witness:start(Options),
    Run.

%% The summary, and the verdicts, of one function as the first process.
finished(Options) ->
    Run = started(Options),
    {ok, Summary} = witness:await(Run, 60_000),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    {Summary, Verdicts}.

%% The verdict of a monitor that gathers the events of its process.
watched(Config, Function, Args) -> watched(Config, Function, Args, events).

watched(Config, Function, Args, Arg) ->
    {_, [V]} = finished(options(Config, #{system => {?S, Function, Args},
                                          monitors => [{{?S, Function, length(Args)}, {?M, Arg}}]})),
    V.

told() -> receive Message -> Message after 30_000 -> error(nothing_was_told) end.

%% --- what is seen ----------------------------------------------------------------

a_process_is_seen_from_birth_to_end(Config) ->
    [begin
         #{verdict := yes, info := Events, process := P, signature := Signature} = watched(Config, worker, [2, How]),
         ?assertEqual({?S, worker, [2, How]}, Signature),
         [{init, P, Parent, Signature, undefined} | Rest] = Events,
         ?assert(is_pid(Parent)),
         {Messages, [{exit, P, Reason, undefined}]} = lists:split(4, Rest),
         ?assertEqual(lists:append([[{send, P, P, {n, N}, undefined}, {recv, P, undefined, {n, N}, undefined}]
                                    || N <- [1, 2]]), Messages),
         ?assert(Ended(Reason))
     end || {How, Ended} <- [{normal, fun(R) -> R =:= normal end}, {{exit, bye}, fun(R) -> R =:= bye end},
                             {{throw, ball}, fun({{nocatch, ball}, [{?S, worker, 3, _} | _]}) -> true end},
                             {divide, fun({badarith, [{?S, worker, 3, _} | _]}) -> true end}]].

every_message_is_a_send(Config) ->
    #{verdict := yes, info := [_ | Events], process := P} = watched(Config, words, [erlang]),
    Words = lists:append(lists:duplicate(5, [nosuspend, noconnect, false, ok])),
    ?assertEqual(lists:append([[{send, P, P, Word, undefined}, {recv, P, undefined, Word, undefined}] || Word <- Words]),
                 lists:droplast(Events)).

every_spawn_is_a_fork(Config) ->
    lists:foreach(fun(How) ->
        #{verdict := yes, info := Events, process := P} = watched(Config, spawner, [self(), How]),
        {spawned, How, Child} = told(),
        [_, {fork, P, Child, Signature, undefined} | _] = Events,
        case Signature of
            {?S, sends, Args} -> ?assertEqual([P, How], Args);
            {?S, Fun, []} -> ?assertMatch("-spawner/2-fun-" ++ _, atom_to_list(Fun))
        end,
        ?assertMatch({exit, P, normal, _}, lists:last(Events))
    end, [function, link, 'fun', proc_lib, monitor, node, applied, request]).

a_child_that_its_parent_does_not_know_is_a_gap(Config) ->
    ?assertMatch(#{verdict := inconclusive, reason := {gap, spawn_request}},
                 watched(Config, spawner, [self(), untold])),
    ?assertMatch({spawned, untold, _}, told()).

%% A fun is monitored, too, if a monitor names its signature.
a_fun_is_an_entry(Config) ->
    #{info := [_, {fork, _, _, {?S, Name, []}, _} | _]} = watched(Config, spawner, [self(), 'fun']),
    {spawned, _, _} = told(),
    {_, [V]} = finished(options(Config, #{system => {?S, spawner, [self(), 'fun']},
                                          monitors => [{{?S, Name, 0}, {?M, events}}]})),
    {spawned, _, Child} = told(),
    ?assertMatch(#{verdict := yes, process := Child, info := [{init, Child, _, {?S, Name, []}, _}, {send, Child, _, _, _},
                                                             {exit, Child, normal, _}]}, V).

events_carry_their_time(Config) ->
    Before = erlang:monotonic_time(nanosecond),
    {_, [#{info := Events}]} = finished(options(Config, #{system => {?S, worker, [2, normal]}, timestamps => true,
                                                          monitors => [{{?S, worker, 2}, {?M, events}}]})),
    Times = [witness_event:ts(E) || E <- Events],
    ?assertEqual(6, length(Times)),
    ?assertEqual(lists:sort(Times), Times),
    ?assert(hd(Times) >= Before andalso lists:last(Times) =< erlang:monotonic_time(nanosecond)).

processes_outside_of_the_tree_are_not_observed(Config) ->
    Monitors = [{{?S, echo, 1}, {?M, events}}, {{?S, sleeper, 1}, {?M, events}}],
    Verdicts = [begin
        Run = started(options(Config, #{system => {?S, sleeper, [self()]}, scope => Scope, monitors => Monitors})),
        {sleeping, First} = told(),
        Outside = spawn(?S, echo, [1]),
        Outside ! stop,
        normal = case witness_await:down(Outside) of noproc -> normal; R -> R end,
        First ! wake,
        {ok, _} = witness:await(Run, 60_000),
        Vs = witness:verdicts(Run),
        {ok, _} = witness:stop(Run),
        lists:sort([F || #{signature := {_, F, _}, verdict := yes} <- Vs])
    end || Scope <- [tree, node]],
    ?assertEqual([[sleeper], [echo, sleeper]], Verdicts).

%% A process that runs when woven code is loaded goes on in that code, but it was not born in it.
what_was_born_before_is_not_observed(Config) ->
    Old = spawn(?S, echo, [1]),
    Ask = fun(P, N) -> P ! {ask, self(), what}, ?assertEqual({answer, what, N}, told()) end,
    Ask(Old, 1),
    Run = started(options(Config, #{system => {?S, sleeper, [self()]}, scope => node,
                                    monitors => [{{?S, echo, 1}, {?M, events}}]})),
    {sleeping, First} = told(),
    New = spawn(?S, echo, [7]),
    Ask(Old, 2),
    Ask(New, 7),
    Old ! stop,
    New ! stop,
    [_, _] = [witness_await:down(P) || P <- [Old, New]],
    First ! wake,
    {ok, #{monitored := 1}} = witness:await(Run, 60_000),
    ?assertMatch([#{process := New, verdict := yes}], witness:verdicts(Run)),
    {ok, _} = witness:stop(Run),
    restored().

%% The old process has kept the original code in use for a while.
restored() -> witness_await:until(fun() -> witness_weave_loader:status() =:= #{} end).

a_process_that_is_killed_is_a_gap(Config) ->
    Run = started(observing(Config, worker, [3, {wait, self()}])),
    {waiting, P} = told(),
    exit(P, kill),
    {ok, #{gaps := 1, outcome := untrusted, warnings := Warnings}} = witness:await(Run, 60_000),
    ?assertMatch([#{verdict := inconclusive, reason := {gap, signal}, process := P}], witness:verdicts(Run)),
    ?assert(lists:any(fun(#{text := T}) -> string:find(T, "what it did last before that is not known") =/= nomatch end, Warnings)),
    {ok, _} = witness:stop(Run).

a_process_that_is_ended_while_it_waits_is_judged_to_its_end(Config) ->
    Spec = spec(Config, "waits.hml", "good: with witness_inline_system:answers() over _ : _ ! _\n"
                                     "monitor max X.([_ : _ ! {answer, bad}] ff and [_ : _ ! {answer, N} when is_integer(N)] X).\n"
                                     "alive: with witness_inline_system:answers() over _ ** _ monitor [_ ** killed] ff.\n"),
    {#{outcome := Outcome, gaps := Gaps, coverage := Coverage}, Verdicts} =
        finished(options(Config, #{system => {?S, ended_while_it_waits, []}, specs => [Spec]})),
    ?assertMatch({violated, 0, [#{name := ~"alive", verdict := no, event := #{event := {exit, _, killed, _}}},
                                #{name := ~"good", verdict := yes}]},
                 {Outcome, Gaps, lists:sort(fun(#{name := A}, #{name := B}) -> A =< B end, Verdicts)}),
    ?assertEqual([{~"alive", [true]}, {~"good", [false, true]}],
                 lists:sort([{Name, [Taken || #{taken := Taken} <- Actions]} || #{name := Name, actions := Actions} <- Coverage])),
    Alone = spec(Config, "waits_alone.hml", "with witness_inline_system:answers() over _ : _ ! _\n"
                                            "monitor max X.([_ : _ ! {answer, bad}] ff and [_ : _ ! {answer, N} when is_integer(N)] X).\n"),
    {Summary, [V]} = finished(options(Config, #{system => {?S, ended_while_it_waits, []}, specs => [Alone]})),
    ?assertMatch({#{outcome := ok, gaps := 0, events := 3, coverage := [#{actions := [#{taken := false}, #{taken := true}]}]},
                  #{verdict := yes}}, {Summary, V}).

%% If a verdict says that a process has not sent a number, it has not, wherever a signal ended it. One that waited is judged.
no_process_is_judged_by_less_than_it_did(Config) ->
    Property = fun(N) -> io_lib:format("n~w: with witness_inline_system:numbers(_) over _ : _ ! _ monitor max X.([_ : _ ! {number, _, ~w}] ff "
                                       "and [_ : _ ! {number, _, M} when M =/= ~w] X).\n", [N, N, N]) end,
    [begin
         Spec = spec(Config, lists:concat(["numbers_", length(Ns), ".hml"]), lists:map(Property, Ns)),
         {#{monitored := Monitored}, Verdicts} =
             finished(options(Config, #{system => {?S, killing, [self(), 1000]}, specs => [Spec], max_verdicts => 10_000})),
         Told = [receive {sent, P, Last, Waited} -> {P, Last, Waited} end || _ <- lists:seq(1, 1000)],
         Sent = #{P => Last || {P, Last, _} <- Told},
         ?assertEqual(Monitored, length(Verdicts)),
         %% A process that waited misses no event.
         Waiting = #{P => [] || {P, _, true} <- Told},
         ?assertEqual([], [V || #{verdict := inconclusive, process := P} = V <- Verdicts, is_map_key(P, Waiting)]),
         ?assertEqual(500, length([P || #{verdict := yes, name := ~"n9", process := P} <- Verdicts, is_map_key(P, Waiting)])),
         Seen = [{Verdict, maps:get(reason, V), N, map_get(P, Sent)}
                 || #{verdict := Verdict, process := P, name := <<"n", Number/binary>>} = V <- Verdicts,
                 N <- [binary_to_integer(Number)]],
         ?assertEqual([], [One || {yes, _, N, Last} = One <- Seen, Last >= N]),
         ?assertEqual([], [One || {no, _, N, Last} = One <- Seen, Last < N]),
         ?assertEqual([], [One || {inconclusive, Why, _, _} = One <- Seen, Why =/= {gap, signal}]),
         ct:pal("~p", [[{K, length([x || {V, _, _, _} <- Seen, V =:= K])} || K <- [yes, no, inconclusive]]])
     end || Ns <- [[9], [3, 9], [1, 2, 3, 4, 9]]].

servers_that_their_supervisor_ends_are_judged(Config) ->
    [begin
         Spec = spec(Config, lists:concat(["supervised_", How, ".hml"]),
                     "with witness_inline_supervised:init({server, _}) over _ ? call(_, _), _ : _ ! reply(_, _), _ ** _\n"
                     "monitor max X.([_ ? call(_, _)] [_ : _ ! reply(_, _)] X and [_ ** Why when Why =/= shutdown] ff)."),
         {#{outcome := Outcome, gaps := Gaps}, Verdicts} =
             finished((options(Config, #{system => {witness_inline_supervised, run, [How]},
                                         specs => [Spec]}))#{weave := [witness_inline_supervised]}),
         ?assertMatch({How, ok, 0, [_]}, {How, Outcome, Gaps, [V || #{verdict := yes} = V <- Verdicts]})
     end || How <- [waits, hibernates]].

%% The process has said that it waits, and goes on unseen.
a_dictionary_that_is_deleted_between_callbacks_is_a_gap(Config) ->
    Spec = spec(Config, "forgets.hml", "with witness_inline_supervised:init({server, _}) over _ ? call(_, _)\n"
                                       "monitor [_ ? call(_, _)] [_ ? call(_, _)] ff."),
    {#{outcome := Outcome, gaps := Gaps}, Verdicts} =
        finished((options(Config, #{system => {witness_inline_supervised, forgets, []},
                                    specs => [Spec]}))#{weave := [witness_inline_supervised]}),
    ?assertMatch({untrusted, 1, [#{verdict := inconclusive, reason := {gap, dictionary}}]}, {Outcome, Gaps, Verdicts}).

%% The verdicts on the others are counted and not kept (`max_verdicts').
a_process_that_is_killed_among_many_is_found(Config) ->
    Run = started(options(Config, #{system => {?S, crowd, [self(), 2000]}, max_verdicts => 0,
                                    monitors => [{{?S, worker, 2}, {?M, events}}]})),
    Killed = fun() -> {waiting, P} = told(), exit(P, kill) end,
    Killed(),
    witness_await:until(fun() -> #{verdicts := #{inconclusive := Found}} = witness:info(Run), Found =:= 1 end),
    [Killed() || _ <- lists:seq(2, 200)],
    {ok, Summary} = witness:await(Run, 60_000),
    ?assertMatch(#{monitored := 2000, verdicts := #{yes := 1800, inconclusive := 200, no := 0}, gaps := 200, outcome := untrusted,
                   processes := 2001}, Summary),
    {ok, _} = witness:stop(Run).

%% The processes between the first and the last have ended, and none of them is woven.
the_tree_ends_with_its_last_process(Config) ->
    [begin
         Run = started(options(Config, #{system => {?MODULE, lineage, [self(), How]},
                                         monitors => [{{?S, worker, 2}, {?M, events}}]})),
         {last, P} = told(),
         witness_await:until(fun() ->
             #{system := System, waiting_for := N} = witness:info(Run),
             {System, N} =:= {{ended, normal}, 1}
         end),
         ?assertMatch({How, #{phase := running}}, {How, witness:info(Run)}),
         P ! go,
         ?assertMatch({How, {ok, #{processes := 3}}}, {How, witness:await(Run, 60_000)}),
         {ok, _} = witness:stop(Run)
     end || How <- [function, 'fun', link, monitor, opt, request, node, proc_lib, applied]].

lineage(Collector, How) ->
    Middle = begun(How, fun() -> begun(How, fun() -> Collector ! {last, self()}, receive go -> ok end end) end),
    Ref = monitor(process, Middle),
    receive {'DOWN', Ref, process, Middle, _} -> ok end.

begun(function, F) -> spawn(erlang, apply, [F, []]);
begun('fun', F) -> spawn(F);
begun(link, F) -> spawn_link(F);
begun(monitor, F) -> element(1, spawn_monitor(F));
begun(opt, F) -> spawn_opt(F, [{priority, normal}]);
begun(request, F) ->
    Request = spawn_request(F),
    receive {spawn_reply, Request, ok, P} -> P end;
begun(node, F) -> spawn(node(), F);
begun(proc_lib, F) -> proc_lib:spawn(F);
begun(applied, F) -> apply(list_to_existing_atom("erlang"), spawn_link, [F]).

%% --- the code --------------------------------------------------------------------

what_a_run_weaves_is_restored(Config) ->
    Original = ?S:module_info(md5),
    Run = started(observing(Config, sleeper, [self()])),
    {sleeping, P} = told(),
    ?assertEqual({ok, witness_inline_process}, witness_weave:woven(?S)),
    ?assertNotEqual(Original, ?S:module_info(md5)),
    {ok, _} = witness:stop(Run),
    ?assertEqual(Original, ?S:module_info(md5)),
    ?assert(is_process_alive(P)),
    P ! wake,
    _ = witness_await:down(P).

the_death_of_the_owner_restores_the_code(Config) ->
    Original = ?S:module_info(md5),
    Self = self(),
    {Owner, Ref} = spawn_monitor(fun() ->
        Self ! {run, started(observing(Config, sleeper, [Self]))},
        receive never -> ok end
    end),
    {sleeping, P} = receive {sleeping, _} = Sleeping -> Sleeping end,
    {run, Run} = told(),
    exit(Owner, kill),
    receive {'DOWN', Ref, process, Owner, killed} -> ok end,
    _ = witness_await:down(Run),
    witness_await:until(fun() -> ?S:module_info(md5) =:= Original andalso claims() =:= [] end),
    %% Its monitor has no run to report to, and is gone.
    ?assert(is_process_alive(P)),
    P ! wake,
    normal = case witness_await:down(P) of noproc -> normal; Reason -> Reason end.

the_death_of_the_host_is_a_gap(Config) ->
    Original = ?S:module_info(md5),
    Run = started(observing(Config, worker, [3, {wait, self()}])),
    {waiting, P} = told(),
    {links, Links} = process_info(Run, links),
    [Host] = [Q || Q <- Links, is_pid(Q), proc_lib:get_label(Q) =:= witness_inline_coordinator],
    exit(Host, kill),
    {ok, #{outcome := untrusted}} = witness:await(Run, 60_000),
    ?assertMatch([#{verdict := inconclusive, reason := {gap, tracer_lost}}], witness:verdicts(Run)),
    ?assert(is_process_alive(P)),
    P ! {n, go},
    normal = case witness_await:down(P) of noproc -> normal; Reason -> Reason end,
    {ok, _} = witness:stop(Run),
    witness_await:until(fun() -> ?S:module_info(md5) =:= Original andalso claims() =:= [] end).

a_module_belongs_to_one_run(Config) ->
    Options = observing(Config, sleeper, [self()]),
    Run = started(Options),
    {sleeping, P} = told(),
    {error, Reason} = witness:start(Options),
    ?assert(string:find(witness:format_error(Reason), "witness_inline_system is woven for another run already") =/= nomatch),
    P ! wake,
    {ok, #{outcome := ok}} = witness:await(Run, 60_000),
    {ok, _} = witness:stop(Run).

two_runs_with_modules_of_their_own(Config) ->
    First = started(observing(Config, sleeper, [self()])),
    {sleeping, P} = told(),
    Second = started(options(Config, #{system => {witness_load, flat, [self(), 50, 10, 5]}, weave => [witness_load],
                                       monitors => [{{witness_load, '_', '_'}, {witness_load_monitor, check}}]})),
    {done, _, _, _} = told(),
    {ok, #{verdicts := #{yes := 51}, outcome := ok}} = witness:await(Second, 60_000),
    P ! wake,
    {ok, #{verdicts := #{yes := 1}, outcome := ok, monitored := 1}} = witness:await(First, 60_000),
    [{ok, _} = witness:stop(Run) || Run <- [First, Second]].

%% A module that was woven when it was compiled, and is not loaded again, has one run at a time, too.
two_runs_of_what_was_compiled_so(Config) ->
    with_module(Config, witness_inline_compiled, [], fun() ->
        ?assertEqual(all, witness_inline_plan:compiled_entries(witness_inline_compiled)),
        Options = (options(Config, #{system => {witness_inline_compiled, sleeper, [self()]},
                                     monitors => [{{witness_inline_compiled, sleeper, 1}, {?M, events}}]}))
                  #{weave := [witness_inline_compiled]},
        Run = started(Options),
        {sleeping, P} = told(),
        {error, Reason} = witness:start(Options),
        ?assert(string:find(witness:format_error(Reason), "witness_inline_compiled is observed by another run") =/= nomatch),
        P ! wake,
        {ok, #{outcome := ok}} = witness:await(Run, 60_000),
        {_, [#{verdict := yes}]} = begin
            Again = started(Options),
            {sleeping, Q} = told(),
            Q ! wake,
            {ok, _} = witness:await(Again, 60_000),
            Vs = witness:verdicts(Again),
            [{ok, _} = witness:stop(R) || R <- [Run, Again]],
            {again, Vs}
        end
    end).

%% The modules that a run has claimed stay claimed until it ends, also if the registry dies.
the_registry_comes_back(Config) ->
    Run = started((observing(Config, sleeper, [self()]))#{scope => node}),
    {sleeping, P} = told(),
    Before = whereis(witness_inline_registry),
    exit(Before, kill),
    witness_await:until(fun() -> is_pid(whereis(witness_inline_registry)) andalso whereis(witness_inline_registry) =/= Before end),
    ?assertMatch([_], claims()),
    Q = spawn(?S, sleeper, [self()]),
    {sleeping, Q} = told(),
    %% The run ends with the system's first process.
    Q ! wake,
    _ = witness_await:down(Q),
    P ! wake,
    {ok, #{verdicts := #{yes := 2}, outcome := ok}} = witness:await(Run, 60_000),
    {ok, _} = witness:stop(Run),
    ?assertEqual([], claims()).

%% Options of a run are those of a test.
%% It has not passed either: a warning says so, without the process, since each test has another one.
what_a_signal_ends_does_not_fail_a_test(Config) ->
    Spec = spec(Config, "small.hml", "small: with witness_inline_system:endless(_) over _ : _ ! _\n"
                "monitor max X.([_ : _ ! {number, _, N} when N > 1] ff and [_ : _ ! {number, _, N} when N =< 1] X)."),
    Test = fun(N) ->
        {Parent, Ref} = spawn_monitor(fun() ->
            receive go -> ok end,
            {P, Ended} = spawn_monitor(?S, endless, [self()]),
            P ! N,
            receive {number, P, N} -> ok end,
            witness_await:until(fun() -> process_info(P, current_function) =:= {current_function, {?S, spin, 0}} end),
            exit(P, kill),
            receive {'DOWN', Ended, process, P, killed} -> ok end
        end),
        {ok, Watch} = witness_test:watch([Spec], [Parent], #{instrument => inline, weave => [?S],
                                                             source => proplists:get_value(source, Config)}),
        Parent ! go,
        receive {'DOWN', Ref, process, Parent, normal} -> ok end,
        witness_test:finish(Watch)
    end,
    {ok, #{monitored := 1, warnings := [Warning]}} = Test(1),
    Expected = "^small \\(.*small.hml:1\\) has no verdict on witness_inline_system:endless/1: .*signal",
    ?assertMatch({match, _}, re:run(Warning, Expected)),
    ?assertMatch({ok, #{warnings := [Warning]}}, Test(1)),
    ?assertMatch({{failed, violation, _}, _}, Test(2)).

%% As that of tasks is while ExUnit runs tests. It does what it did before, and the test monitors nothing.
original_code_in_use_does_not_fail_a_test(Config) ->
    Old = spawn(?S, sleeper, [self()]),
    receive {sleeping, Old} -> ok end,
    {Parent, Ref} = spawn_monitor(fun() -> receive go -> ok end end),
    {ok, Watch} = witness_test:watch([{{?S, sleeper, 1}, {?M, self()}}], [Parent],
                                     #{instrument => inline, weave => [?S], unmonitored => ignore,
                                       source => proplists:get_value(source, Config)}),
    Parent ! go,
    receive {'DOWN', Ref, process, Parent, normal} -> ok end,
    ?assertMatch({ok, #{monitored := 0, warnings := []}}, witness_test:finish(Watch)),
    ?assertMatch(#{?S := {_, waiting}}, witness_weave_loader:status()),
    Old ! wake,
    restored().

parts_of_a_test(Config) ->
    Spec = spec(Config, "echo.hml", "never_bad: with witness_inline_system:echo(_)\n"
                "check [_ <- _, _] max X.([_ ? {ask, _, bad}] ff and [_ ? {ask, _, good}] X "
                "and [_:_ ! _] X and [_ ? stop] X)."),
    Talk = fun(What) ->
        fun() ->
            Echo = spawn(?S, echo, [1]),
            Echo ! {ask, self(), What},
            receive {answer, What, 1} -> Echo ! stop, answered end
        end
    end,
    Options = #{instrument => inline, weave => [?S], source => proplists:get_value(source, Config)},
    ?assertEqual({{returned, answered}, ok}, witness_test:observe([Spec], Talk(good), Options)),
    {_, {failed, Why, Lines}} = witness_test:observe([Spec], Talk(bad), Options),
    ?assertEqual(violation, Why),
    ?assertNotEqual(nomatch, string:find(Lines, "never_bad")).

%% Each run observes all processes that the other one observes.
beside_an_outline_run(Config) ->
    Monitors = [{{witness_load, '_', '_'}, {witness_load_monitor, check}}],
    Inline = started(options(Config, #{system => {?S, sleeper, [self()]}, scope => node, monitors => Monitors,
                                       weave => [witness_load]})),
    {sleeping, First} = told(),
    Outline = started(#{system => {witness_load, flat, [self(), 50, 10, 5]}, scope => tree, monitors => Monitors, log => false}),
    {done, _, _, _} = told(),
    %% What monitors in the processes report is no event of the processes.
    {ok, #{verdicts := Seen}} = witness:await(Outline, 60_000),
    First ! wake,
    {ok, #{verdicts := Own}} = witness:await(Inline, 60_000),
    [{ok, _} = witness:stop(Run) || Run <- [Inline, Outline]],
    Sound = #{yes => 51, no => 0, inconclusive => 0},
    ?assertEqual({Sound, Sound}, {Seen, Own}).

%% --- the end of a run ------------------------------------------------------------

undecided_monitors_end_with_what_they_have_seen(Config) ->
    Run = started(observing(Config, worker, [100, {wait, self()}])),
    {waiting, P} = told(),
    %% The message may be there before the monitor has its event.
    witness_await:waits(P),
    {ok, #{events := Events}} = witness_run:finish(Run),
    [#{verdict := inconclusive, reason := stopped, info := Seen, steps := Steps, skipped := Skipped}] = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    %% Birth, a hundred times two messages, and that it waits.
    ?assertEqual({202, 202, 12, 190}, {length(Seen), Events, length(Steps), Skipped}),
    P ! {n, go},
    _ = witness_await:down(P).

a_verdict_before_the_stop_is_not_lost(Config) ->
    Workers = 200,
    Run = started(options(Config, #{system => {?S, main, [self(), [{?S, worker, [70, normal]} || _ <- lists:seq(1, Workers)]]},
                                    monitors => [{{?S, worker, 2}, {?M, events}}]})),
    %% A process that has ended has had its verdict.
    Ended = 50,
    [receive {ended, worker, _, normal} -> ok end || _ <- lists:seq(1, Ended)],
    {ok, #{verdicts := #{yes := Yes, no := 0, inconclusive := Stopped},
           monitored := Monitored, gaps := 0}} = witness:stop(Run),
    ?assert(Yes >= Ended),
    ?assertEqual(Monitored, Yes + Stopped),
    [receive {ended, worker, _, normal} -> ok end || _ <- lists:seq(Ended + 1, Workers)],
    flush().

flush() -> receive _ -> flush() after 0 -> ok end.

%% WITNESS_INLINE_WORKERS says how many there are; `make soak-inline'.
load_is_sound(Config) ->
    Workers = list_to_integer(os:getenv("WITNESS_INLINE_WORKERS", "3000")),
    Tree = max(1, Workers div 375),
    Load = #{monitors => [{{witness_load, '_', '_'}, {witness_load_monitor, check}}], weave => [witness_load],
             max_verdicts => 10, drain => infinity},
    [begin
         Run = started(options(Config, Load#{system => System})),
         {done, _, _, _} = receive Done -> Done end,
         {ok, Summary} = witness:await(Run, infinity),
         ?assertEqual({System, #{yes => Processes, no => 0, inconclusive => 0}, []},
                      {System, maps:get(verdicts, Summary), [V || #{verdict := no} = V <- witness:verdicts(Run)]}),
         {ok, _} = witness:stop(Run)
     end || {System, Processes} <- [{{witness_load, flat, [self(), Workers, 500, 20]}, Workers + 1},
                                    {{witness_load, tree, [self(), Tree, 2, 5, 3]}, Tree * 5 * (1 + 5 + 25) + 1},
                                    {{witness_load, chains, [self(), 20, Workers div 20, 5]}, 20 * (Workers div 20 + 1) + 1}]].

%% --- harmless --------------------------------------------------------------------

crashes_of_monitors_stay_theirs(Config) ->
    Crashing = [{does, recv, fun() -> error(wrong) end}, {does, recv, fun() -> exit(gone) end},
                {does, init, fun() -> throw(it) end},
                {does, exit, fun() -> error(late) end}, {init, fun() -> error(early) end}, {init, fun() -> nonsense end},
                {does, recv, fun() -> erase() end}, {does, recv, fun() -> put('$witness_inline', nonsense) end}],
    [begin
         {#{system := normal}, Verdicts} =
             finished(options(Config, #{system => {?S, worker, [3, normal]},
                                        monitors => [{{?S, worker, 2}, {?M, Arg}}
                                                     || Arg <- [events, Crash, events] -- Alone]})),
         {Bad, Good} = lists:partition(fun(#{verdict := V}) -> V =:= inconclusive end, Verdicts),
         [?assertMatch(#{reason := {crashed, _}}, V) || V <- Bad],
         ?assert(length(Bad) >= 1),
         %% A monitor that changes the dictionary may crash the other monitors of its process.
         [?assertMatch(#{verdict := yes, info := [_, _, _, _, _, _, _, _]}, V) || V <- Good],
         ?assertEqual(length([events, Crash, events] -- Alone), length(Verdicts))
     end || Crash <- Crashing, Alone <- [[], [events, events]]].

%% What a monitor sends is not an event of its process.
a_monitor_cannot_do_what_is_an_event(Config) ->
    Self = self(),
    V = watched(Config, worker, [2, normal], {does, recv, fun() -> ?S:sends(Self, from_the_monitor) end}),
    %% While the monitor runs, what it does is not an event of the process.
    ?assertMatch(#{verdict := yes, info := [_, _, _, _, _, _]}, V),
    [?assertMatch({sent, _, from_the_monitor}, told()) || _ <- [1, 2]].

%% The module stays for as long as a process is in its original code. The next run is the first to see that it has ended.
a_module_of_an_earlier_run_is_woven_again(Config) ->
    Old = spawn(?S, sleeper, [self()]),
    receive {sleeping, Old} -> ok end,
    Options = options(Config, #{system => {?S, worker, [1, normal]}, monitors => [{{?S, worker, 2}, {?M, events}}]}),
    First = started(Options),
    {ok, #{outcome := ok}} = witness:await(First, 60_000),
    {ok, _} = witness:stop(First),
    Old ! wake,
    _ = witness_await:down(Old),
    Second = started(Options),
    {ok, #{outcome := ok}} = witness:await(Second, 60_000),
    {ok, _} = witness:stop(Second).

exceptions_are_as_before(Config) ->
    [begin
         Spawns = [{?S, raising, [Class, Value]}],
         Unwatched = spawn(?S, main, [self(), Spawns]),
         Before = ended(),
         %% Until it has ended, the original code is in use.
         _ = witness_await:down(Unwatched),
         Run = started(options(Config, #{system => {?S, main, [self(), Spawns]}, monitors => [{{?S, raising, 2}, {?M, events}}]})),
         Watched = ended(),
         {ok, _} = witness:await(Run, 60_000),
         [#{verdict := yes, info := [_, {exit, _, Told, _}]}] = witness:verdicts(Run),
         {ok, _} = witness:stop(Run),
         ?assertEqual(Before, Watched),
         ?assertEqual(Watched, Told)
     end || {Class, Value} <- [{error, reason}, {error, badmatch}, {exit, reason}, {throw, ball}, {clause, none}]].

ended() ->
    receive {ended, raising, _, Reason} -> receive {started, raising, _} -> Reason end end.

a_dictionary_is_the_process_s_own(Config) ->
    #{verdict := yes, info := Events} = watched(Config, dictionary, [self(), woven]),
    {dictionary, Seen, Keys, Of, Erased, Left} = told(),
    ?assertEqual({[{mine, 1}], [mine], [mine], [{mine, 1}], []}, {Seen, Keys, Of, Erased, Left}),
    ?assertEqual(7, length(Events)).

a_dictionary_that_is_deleted_elsewhere_is_a_gap(Config) ->
    V = watched(Config, dictionary, [self(), elsewhere]),
    ?assertMatch(#{verdict := inconclusive, reason := {gap, dictionary}}, V),
    ?assertMatch({dictionary, _, _, _, _, []}, told()).

ends_after_hibernation_are_seen(Config) ->
    Run = started(observing(Config, hibernating, [self()])),
    {hibernating, P} = told(),
    P ! {n, awake},
    {awake, P} = told(),
    {ok, _} = witness:await(Run, 60_000),
    [#{verdict := yes, info := Events}] = witness:verdicts(Run),
    ?assertMatch([{init, P, _, _, _}, {send, P, _, _, _}, {recv, P, _, {n, awake}, _}, {send, P, _, _, _},
                  {exit, P, slept_well, _}], Events),
    {ok, _} = witness:stop(Run).

%% The space is that after few calls: only what the monitor keeps.
ten_million_calls_take_no_space(Config) ->
    [Few, Many] = [begin
        {_, [#{verdict := yes}]} =
            finished(options(Config, #{system => {?S, counting, [self(), N]},
                                       monitors => [{{?S, counting, 2}, {witness_sys_counting, none}}]})),
        {counted, Taken} = told(),
        Taken
    end || N <- [200_000, 10_000_000]],
    ?assertEqual(proplists:get_value(stack_size, Few), proplists:get_value(stack_size, Many)),
    ?assertEqual(0, proplists:get_value(message_queue_len, Many)),
    ?assert(proplists:get_value(total_heap_size, Many) < 20_000).

marks_of_several_properties_stay_apart(Config) ->
    Specs = [spec(Config, "first.hml", "first: with witness_inline_system:worker(_, _)\n"
                  "check [_ <- _, _] max X.([_:_ ! {n, 1}] X and [_ ? never] ff and [_ ? {n, _}] X)."),
             spec(Config, "second.hml", "second: with witness_inline_system:worker(_, _)\n"
                  "check [_ <- _, _] max X.([_:_ ! never] ff and [_:_ ! {n, _}] X and [_ ? {n, 3}] X "
                  "and [_ ? {n, I} when I < 3] X).")],
    Taken = fun(Given) ->
        {#{coverage := Coverage}, _} = finished(options(Config, Given#{system => {?S, worker, [2, normal]}, specs => Specs})),
        [{Name, [T || #{taken := T} <- Actions]} || #{name := Name, actions := Actions} <- Coverage]
    end,
    Inline = Taken(#{}),
    ?assertEqual([{~"first", [true, true, false, true]}, {~"second", [true, false, true, false, true]}], Inline).

spec(Config, Name, Text) ->
    File = filename:join(proplists:get_value(priv_dir, Config), Name),
    ok = file:write_file(File, Text),
    File.

explanations_are_those_of_outline_mode(Config) ->
    Spec = spec(Config, "never_three.hml", "never_three: with witness_inline_system:worker(N, _)\n"
                "check [_ <- _, _] max X.([_:_ ! {n, I} when I =:= 3] ff and [_:_ ! {n, I} when I < 3] X "
                "and [_ ? {n, _}] X)."),
    [Inline, Outline] = [begin
        {#{outcome := violated}, [V]} = finished(Options#{system => {?S, worker, [5, normal]}, specs => [Spec]}),
        anonymous(V)
    end || Options <- [options(Config, #{}), #{log => false}]],
    ?assertMatch(#{verdict := no, name := ~"never_three", steps := [_, _, _, _, _, _], source := #{line := 2}}, Inline),
    ?assertEqual(Outline, Inline).

%% Without what differs: the process and its name, the times, and the sender of a message, which the process does not know.
anonymous(#{process := P, steps := Steps} = V) ->
    Event = fun({recv, _, _, M, _}) -> {recv, p, undefined, M, untimed};
               ({init, _, _, S, _}) -> {init, p, undefined, S, untimed};
               (E) -> list_to_tuple([case X of P -> p; _ -> X end || X <- lists:droplast(tuple_to_list(E))])
            end,
    #{event := Decisive = #{event := E}} = V,
    (maps:remove(names, V))#{process := p, steps := [S#{event := Event(Of)} || S = #{event := Of} <- Steps],
                             event := Decisive#{event := Event(E)}}.

shapes_instead_of_contents(Config) ->
    Spec = spec(Config, "redacted.hml", "with witness_inline_system:echo(_) check [_ <- _, _] [_ ? {ask, _, _}] ff."),
    Self = self(),
    Run = started(options(Config, #{system => {?S, echo, [1]}, specs => [Spec], redact => true,
                                    on_verdict => fun(V) -> Self ! {verdict, V} end})),
    #{root := P} = witness:info(Run),
    P ! {ask, self(), "the secret"},
    {verdict, V} = receive {verdict, _} = Verdict -> Verdict end,
    ?assertEqual(nomatch, string:find(io_lib:format("~tp", [V]), "the secret")),
    P ! stop,
    {ok, #{outcome := violated}} = witness:await(Run, 60_000),
    {ok, _} = witness:stop(Run),
    flush().

%% --- what is refused -------------------------------------------------------------

wrong_options_are_refused(Config) ->
    Options = observing(Config, worker, [1, normal]),
    [begin
         {error, Reason} = witness:start(Given),
         Text = unicode:characters_to_list(witness:format_error(Reason)),
         ?assertEqual({Text, true}, {Text, string:find(Text, Words) =/= nomatch})
     end || {Given, Words} <- [{Options#{instrument := sideways}, "outline, central or inline"},
                               {(maps:remove(instrument, Options)), "option weave: only where the instrument is inline"},
                               {Options#{weave := []}, "option weave: expected a list of modules"},
                               {Options#{weave := ["a"]}, "option weave: expected a list of modules"},
                               {Options#{weave := [{application, no_such}]}, "there is no application no_such"},
                               {Options#{weave := [?S, lists]}, "lists cannot be woven: it is in a sticky directory"},
                               {Options#{weave := [?S, no_such_module]}, "no_such_module cannot be woven: there is no"},
                               {Options#{system := node, monitors := []}, "option instrument: expected outline"},
                               {Options#{system := {attach, [init]}, monitors := []}, "option instrument: expected outline"},
                               {Options#{log_file => "x"}, "option log_file: not where the instrument is inline"},
                               {Options#{replaceable => true}, "option replaceable: not where"},
                               {(maps:remove(weave, Options))#{system := {timer, sleep, [1]}, monitors := []},
                                "there is no module to be woven"},
                               {Options#{specs => [spec(Config, "all.hml", "per A over _ ? {A} monitor [_ ? {A}] ff.")]},
                                "all.hml:1:"}]].

groups_are_refused_with_their_place(Config) ->
    Spec = spec(Config, "grouped.hml", "\nwith witness_inline_system:worker(_, _) group\nmonitor [_ <- _, _] ff."),
    {error, Reason} = witness:start(options(Config, #{system => {?S, worker, [1, normal]}, specs => [Spec]})),
    Text = unicode:characters_to_binary(witness:format_error(Reason)),
    ?assertMatch({_, _}, binary:match(Text, ~"grouped.hml:2: a group reads several")).

%% Its processes would not be monitored, without a warning.
a_module_that_is_named_has_to_be_woven(Config) ->
    Both = [{{M, worker, 2}, {?M, events}} || M <- [?S, witness_inline_elsewhere]],
    {error, Reason} = witness:start(options(Config, #{system => {?S, worker, [1, normal]}, monitors => Both})),
    ?assertMatch({match, _}, re:run(witness:format_error(Reason), "^witness_inline_elsewhere is named .* but is not woven")).

specifications_are_not_replaced(Config) ->
    Spec = spec(Config, "other.hml", "with witness_inline_system:sleeper(_) check [_ <- _, _] tt."),
    Run = started(observing(Config, sleeper, [self()])),
    {sleeping, P} = told(),
    {error, Reason} = witness:replace(Run, [Spec]),
    ?assert(string:find(witness:format_error(Reason), "instrumented inline") =/= nomatch),
    P ! wake,
    {ok, #{outcome := ok}} = witness:await(Run, 60_000),
    {ok, _} = witness:stop(Run).

%% --- the parse transform ---------------------------------------------------------

%% Two versions of a module that says which one it is; the first one is what the code server finds.
versions(Config, Module, Options) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Module)),
    Source = filename:join(Dir, atom_to_list(Module) ++ ".erl"),
    ok = filelib:ensure_dir(Source),
    ok = file:write_file(Source, io_lib:format(
        "-module(~s).~n-export([loop/0]).~n"
        "loop() -> receive {which, P} -> P ! {version, ?VERSION}, loop(); go_on -> ?MODULE:loop(); stop -> ok end.~n", [Module])),
    [First, Second] = [begin
                           {ok, Module, Code} = compile:file(Source, [binary, debug_info, {d, 'VERSION', N} | Options]),
                           Code
                       end || N <- [1, 2]],
    ok = file:write_file(filename:join(Dir, atom_to_list(Module) ++ ".beam"), First),
    true = code:add_pathz(Dir),
    {Dir, Second}.

%% The verdict on a process that goes on in the new version when its module is upgraded.
upgraded(Config, Module, Options) ->
    {Dir, Second} = versions(Config, Module, Options),
    Run = started((options(Config, #{system => {Module, loop, []}, monitors => [{{Module, loop, 0}, {?M, events}}]}))
                  #{weave := [Module]}),
    #{root := P} = witness:info(Run),
    Which = fun() -> P ! {which, self()}, receive {version, N} -> N after 30_000 -> error(no_answer) end end,
    1 = Which(),
    true = code:soft_purge(Module),
    {module, Module} = code:load_binary(Module, "second", Second),
    P ! go_on,
    2 = Which(),
    P ! stop,
    {ok, Summary} = witness:await(Run, 60_000),
    [Verdict] = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    ?assertEqual(code:module_md5(Second), Module:module_info(md5)),
    true = code:del_path(Dir),
    _ = code:purge(Module),
    true = code:delete(Module),
    _ = code:purge(Module),
    {Summary, Verdict}.

what_a_replaced_module_does_is_not_judged(Config) ->
    {Summary, Verdict} = upgraded(Config, witness_inline_replaced, []),
    ?assertMatch(#{verdict := inconclusive, reason := {gap, replaced}}, Verdict),
    ?assertMatch(#{outcome := untrusted, warnings := [_ | _]}, Summary),
    ?assert(lists:any(fun(#{code := Code}) -> Code =:= replaced end, maps:get(warnings, Summary))).

a_version_that_is_woven_too_goes_on(Config) ->
    {Summary, Verdict} = upgraded(Config, witness_inline_rewoven, [{parse_transform, witness_inline},
                                                                  {witness_inline, #{entries => [{loop, 0}]}}]),
    #{verdict := yes, info := Events} = Verdict,
    ?assertMatch([{init, _, _, _, _}, {recv, _, _, {which, _}, _}, {send, _, _, {version, 1}, _}, {recv, _, _, go_on, _},
                  {recv, _, _, {which, _}, _}, {send, _, _, {version, 2}, _}, {recv, _, _, stop, _}, {exit, _, normal, _}],
                 Events),
    ?assertMatch(#{outcome := ok}, Summary).

%% The system's source under another name.
compiled(Config, Module, Options) ->
    Source = proplists:get_value(source, ?S:module_info(compile)),
    {ok, Text} = file:read_file(Source),
    File = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Module) ++ ".erl"),
    ok = file:write_file(File, string:replace(Text, "-module(witness_inline_system)", io_lib:format("-module(~s)", [Module]))),
    compile:file(File, [binary, return, {parse_transform, witness_inline} | Options]).

with_module(Config, Module, Options, Test) ->
    {ok, Module, Code, []} = compiled(Config, Module, Options),
    {module, Module} = code:load_binary(Module, "nowhere", Code),
    try Test()
    after
        code:purge(Module),
        code:delete(Module),
        code:purge(Module)
    end.

the_parse_transform_weaves_for_later_runs(Config) ->
    Spec = spec(Config, "compiled.hml", "with witness_inline_compiled:worker(_, _)\n"
                "check [_ <- _, _] max X.([_ ** bye] ff and [_ ? _] X and [_:_ ! _] X)."),
    with_module(Config, witness_inline_compiled, [{witness_inline, #{specs => [Spec]}}], fun() ->
        ?assertEqual([{worker, 2}], witness_inline_plan:compiled_entries(witness_inline_compiled)),
        %% There is no run, and nothing of one.
        {P, Ref} = spawn_monitor(fun() -> {normal, []} = {witness_inline_compiled:worker(3, normal), get()}, exit(done) end),
        receive {'DOWN', Ref, process, P, Reason} -> ?assertMatch({{badmatch, {ok, []}}, _}, Reason) end,
        %% Without debug information, and without the modules being loaded again.
        Loaded = witness_inline_compiled:module_info(md5),
        {Summary, [V]} = finished((options(Config, #{system => {witness_inline_compiled, worker, [3, {exit, bye}]},
                                                      specs => [Spec]}))#{weave := [witness_inline_compiled]}),
        ?assertMatch(#{outcome := violated}, Summary#{system := normal}),
        ?assertMatch(#{verdict := no, event := #{event := {exit, _, bye, _}, index := 8}}, V),
        ?assertEqual(Loaded, witness_inline_compiled:module_info(md5))
    end).

entries_that_were_not_woven_are_named(Config) ->
    with_module(Config, witness_inline_compiled, [{witness_inline, #{entries => [{worker, 2}]}}], fun() ->
        {error, Reason} = witness:start((options(Config, #{system => {witness_inline_compiled, echo, [1]},
                                                           monitors => [{{witness_inline_compiled, echo, 1}, {?M, events}}]}))
                                        #{weave := [witness_inline_compiled]}),
        ?assert(string:find(witness:format_error(Reason),
                            "not for processes that begin with witness_inline_compiled:echo/1") =/= nomatch)
    end).

wrong_options_are_errors_of_the_compiler(Config) ->
    Nameless = filename:join(proplists:get_value(priv_dir, Config), "nameless.erl"),
    ok = file:write_file(Nameless, "f() -> ok.\n"),
    {error, [{_, [{_, erl_lint, undefined_module} | _]} | _], _} =
        compile:file(Nameless, [binary, return, {parse_transform, witness_inline}]),
    Wrong = spec(Config, "wrong.hml", "with m:f(_)\nmonitor [_ ? X when Y > 1] ff."),
    [begin
         {error, Errors, _} = compiled(Config, witness_inline_compiled, [{witness_inline, Given}]),
         ?assertMatch([{_, [{_, witness_inline, _} | _]} | _], Errors),
         [{File, [{Place, Module, Error} | _]} | _] = Errors,
         Text = unicode:characters_to_list([filename:basename(File), io_lib:format(":~p: ", [Place]),
                                            Module:format_error(Error)]),
         ?assertEqual({Text, true}, {Text, string:find(Text, Words) =/= nomatch})
     end || {Given, Words} <- [{nonsense, "witness_inline_compiled.erl"}, {#{spec => []}, "unknown option spec"},
                               {#{specs => [1]}, "option specs: expected a list of file names"},
                               {#{entries => [worker]}, "option entries: expected all"},
                               {#{specs => [Wrong]}, "wrong.hml:{2,"},
                               {#{specs => ["no_such.hml"]}, "no_such.hml"}]].
