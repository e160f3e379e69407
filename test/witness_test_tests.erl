-module(witness_test_tests).
-moduledoc "Parts of tests that run under observation: what they are for the fun, and what fails the test.".
-include_lib("eunit/include/eunit.hrl").

-behaviour(witness_monitor).
-export([init/3, handle_event/2, handle_end/2]).
-export([served/1]).

-define(SUMS, "test/systems/calc_server.hml").
-define(AT_ONCE, 40).

%% Satisfied by a process that was seen to its end.
init(_, _, crash) -> {ok, crash};
init(_, _, whole) -> {ok, whole}.
handle_event({recv, _, _, _, _}, crash) -> error(crashed);
handle_event(_, State) -> {ok, State}.
handle_end(complete, whole) -> {no, whole};
handle_end(_, State) -> {inconclusive, State}.

served(Tester) ->
    receive
        {Tester, large} -> served(Tester);
        Other -> Other
    end.

sources() ->
    [evm | [native || witness_trace_native:available() =:= ok]].

over_all_sources(Tests) ->
    [{atom_to_list(Source), [{timeout, 60, {Title, fun() -> Test(#{source => Source}) end}} || {Title, Test} <- Tests]}
     || Source <- sources()].

%% --- the fun -----------------------------------------------------------------------------------

the_fun_has_the_surroundings_of_the_test_test() ->
    put(key, value),
    put('$callers', [before]),
    Trap = process_flag(trap_exit, true),
    Test = self(),
    {Self, Leader, Dictionary, Trapping, Messages} = checked(fun() ->
        {self(), group_leader(), get(), process_info(self(), trap_exit), process_info(self(), messages)}
    end),
    process_flag(trap_exit, Trap),
    ?assertNotEqual(Test, Self),
    ?assertEqual(group_leader(), Leader),
    ?assertEqual(value, proplists:get_value(key, Dictionary)),
    ?assertEqual([Test, before], proplists:get_value('$callers', Dictionary)),
    ?assertMatch([Test | _], proplists:get_value('$ancestors', Dictionary)),
    ?assertEqual({trap_exit, true}, Trapping),
    ?assertEqual({messages, []}, Messages).

messages_of_the_test_stay_test() ->
    {messages, Before} = process_info(self(), messages),
    self() ! first,
    checked(fun() -> ok end),
    ?assertEqual({messages, Before ++ [first]}, process_info(self(), messages)),
    receive first -> ok end.

what_the_fun_raises_is_raised_test_() ->
    over_all_sources([{atom_to_list(Class), fun(Source) ->
        ?assertMatch({Class, mine, [{?MODULE, raise, 1, _} | _]},
                     try witness_test:check(?SUMS, fun() -> _ = witness_sys_calc:one(none), raise(Class) end, Source)
                     catch C:R:S -> {C, R, S} end)
    end} || Class <- [error, exit, throw]]).

raise(Class) -> erlang:raise(Class, mine, [{?MODULE, raise, 1, []}]).

what_kills_the_fun_is_raised_test() ->
    ?assertExit(boom, checked(fun() ->
        spawn_link(fun() -> exit(boom) end),
        receive after infinity -> ok end
    end)).

a_violation_is_told_beside_what_the_fun_raises_test() ->
    Wrong = fun() -> _ = witness_sys_calc:one(big_sums), error(mine) end,
    {Returned, Outcome} = witness_test:observe(?SUMS, Wrong, #{}),
    ?assertMatch({raised, error, mine, _}, Returned),
    ?assertMatch({failed, violation, [_ | _]}, Outcome).

the_fun_dies_with_its_test_test_() ->
    over_all_sources([{"killed", fun(Source) ->
        Self = self(),
        {Test, _} = spawn_monitor(fun() ->
            witness_test:check(?SUMS, fun() -> Self ! {self(), begun}, receive after infinity -> ok end end, Source)
        end),
        Fun = receive {Process, begun} -> Process end,
        Ref = monitor(process, Fun),
        exit(Test, kill),
        %% It may be dead before it has heard of the monitor, and then says `noproc'.
        receive {'DOWN', Ref, process, Fun, _} -> ok end
    end}]).

what_is_linked_to_the_fun_ends_with_it_test_() ->
    over_all_sources([{"linked", fun(Source) ->
        Server = witness_test:check(served(), fun() -> spawn_link(?MODULE, served, [self()]) end,
                                    Source#{unmonitored => ignore}),
        ?assertNot(is_process_alive(Server))
    end}, {"and was seen to its end", fun(Source) ->
        ?assertError({violation, _},
                     witness_test:check([{{?MODULE, served, 1}, {?MODULE, whole}}],
                                        fun() -> spawn_link(?MODULE, served, [self()]) end, Source))
    end}]).

%% --- what fails the test -----------------------------------------------------------------------

what_is_right_passes_test_() ->
    over_all_sources([{"right", fun(Source) ->
        ?assertEqual(stop, witness_test:check(?SUMS, fun() -> witness_sys_calc:one(none) end, Source))
    end}]).

a_violation_fails_with_the_explanation_test_() ->
    over_all_sources([{"violated", fun(Source) ->
        {violation, Lines} = failure(?SUMS, fun() -> witness_sys_calc:one(big_sums) end, Source),
        ?assertEqual("VIOLATION of reply_is_result (test/systems/calc_server.hml:2)", hd(Lines)),
        has("=> ", Lines),
        has("test/systems/calc_server.hml:6:23: this must not happen: _:_ ! {ok, R} when R =/= A + B", Lines),
        has("^^^^^^", Lines),
        has("with A = 10, B = 11, R = 22", Lines),
        ?assert(lists:all(fun(Line) -> io_lib:printable_latin1_list(Line) andalso Line =/= "" end, Lines))
    end}]).

a_failure_says_where_the_test_stands_test() ->
    try checked(fun() -> witness_sys_calc:one(big_sums) end) of
        Result -> error({passed, Result})
    catch
        error:{violation, _}:Stack ->
            [{Module, _, _, [{file, File}, {line, _}]} | _] = Stack,
            ?assertEqual({?MODULE, "witness_test_tests.erl"}, {Module, filename:basename(File)})
    end.

characters_beyond_latin_1_stay_readable_test() ->
    {violation, Lines} = failure([{{?MODULE, served, 1}, {?MODULE, whole}}],
                                 fun() -> spawn_link(?MODULE, served, ['\x{2713}']) end, #{}),
    ?assert(lists:all(fun io_lib:printable_latin1_list/1, Lines)).

processes_that_run_on_are_named_test_() ->
    over_all_sources([{"running", fun(Source) ->
        Self = self(),
        {still_running, Lines} = failure(served(), fun() ->
            Started = proc_lib:spawn(?MODULE, served, [Self]),
            witness_await:waits(Started),
            Self ! {server, Started}
        end, Source#{timeout => 50, unmonitored => ignore}),
        Server = receive {server, P} -> P end,
        has(pid_to_list(Server) ++ " witness_test_tests:served/1: waits for a message in witness_test_tests:served/1", Lines),
        has(", spawned by the test", Lines),
        has("wait => false", Lines),
        ?assert(is_process_alive(Server)),
        Server ! stop
    end}, {"by what they were spawned", fun(Source) ->
        Self = self(),
        {still_running, Lines} = failure(served(), fun() ->
            {Parent, Ref} = spawn_monitor(fun() ->
                Started = spawn(fun() -> timer:sleep(infinity) end),
                witness_await:waits(Started),
                Self ! {sleeper, Started}
            end),
            Self ! {parent, Parent},
            receive {'DOWN', Ref, process, Parent, normal} -> ok end
        end, Source#{timeout => 50, unmonitored => ignore}),
        Parent = receive {parent, P} -> P end,
        Sleeper = receive {sleeper, S} -> S end,
        exit(Sleeper, kill),
        has(pid_to_list(Sleeper) ++ " a fun: sleeps in timer:sleep/1", Lines),
        has(", spawned with a function of witness_test_tests by " ++ pid_to_list(Parent) ++ " (witness_test_tests), which has "
            "ended", Lines)
    end}, {"a violation goes before", fun(Source) ->
        Self = self(),
        {violation, Lines} = failure(?SUMS, fun() ->
            Self ! {server, spawn(?MODULE, served, [Self])},
            witness_sys_calc:one(big_sums)
        end, Source#{timeout => 50}),
        receive {server, Server} -> Server ! stop end,
        has("still runs 50 ms after its end", Lines)
    end}, {"or nobody waits for them", fun(Source) ->
        {Fun, Server} = witness_test:check(served(), fun() -> {self(), spawn(?MODULE, served, [self()])} end,
                                           Source#{wait => false, unmonitored => ignore}),
        Ref = monitor(process, Fun),
        receive {'DOWN', Ref, process, Fun, _} -> ok end,
        ?assert(is_process_alive(Server)),
        Server ! stop
    end}]).

nothing_monitored_fails_unless_it_may_test_() ->
    Nothing = fun() -> nothing end,
    over_all_sources([{"fails", fun(Source) ->
        {nothing_monitored, Lines} = failure(?SUMS, Nothing, Source),
        has("no process had a signature that matches witness_sys_calc:loop(_)", Lines)
    end} | [{atom_to_list(Rule), fun(Source) ->
        ?assertEqual(nothing, witness_test:check(?SUMS, Nothing, Source#{unmonitored => Rule}))
    end} || Rule <- [warn, ignore]]]).

a_vacuous_verdict_fails_where_it_is_to_test_() ->
    Born = fun() -> spawn(witness_sys_calc, loop, [none]) ! stop end,
    over_all_sources([{atom_to_list(Rule), fun(Source) ->
        Given = Source#{vacuous => Rule},
        case Rule of
            fail -> ?assertMatch({vacuous, [_]}, failure(?SUMS, Born, Given));
            _ -> ?assertEqual(stop, witness_test:check(?SUMS, Born, Given))
        end
    end} || Rule <- [fail, warn, ignore]]).

a_monitor_that_crashes_fails_test_() ->
    over_all_sources([{"crashed", fun(Source) ->
        {no_result, Lines} = failure({{?MODULE, served, 1}, {?MODULE, crash}}, fun() ->
            spawn(?MODULE, served, [self()]) ! stop
        end, Source),
        has("the monitor crashed", Lines)
    end}]).

a_gap_fails_test() ->
    [begin
         {no_result, Lines} = failure(served(), fun() ->
             Server = spawn(?MODULE, served, [self()]),
             Server ! {self(), large, lists:seq(1, 10_000)}
         end, #{source => native, message_size => 1000}),
         has("message_size", Lines)
     end || native <- sources()].

a_run_that_dies_fails_test_() ->
    over_all_sources([{"died", fun(Source) ->
        Before = runs(),
        #{level := Level} = logger:get_primary_config(),
        ok = logger:set_primary_config(level, none),
        {no_result, Lines} = failure(?SUMS, fun() ->
            [exit(Run, kill) || Run <- runs() -- Before],
            receive after infinity -> ok end
        end, Source),
        ok = logger:set_primary_config(level, Level),
        has("the run has died", Lines)
    end}]).

runs() -> [Run || {_, Run, _, _} <- supervisor:which_children(witness_run_sup)].

mistakes_are_told_test_() ->
    [{lists:flatten(Expected), fun() ->
        {not_started, Lines} = failure(Specs, fun() -> error(called) end, Options),
        has(Expected, Lines)
    end} || {Specs, Options, Expected} <- [
        {"nowhere/to_be.hml", #{}, "there is no file nowhere/to_be.hml; it was looked for in"},
        {[], #{wait => maybe_not}, "option wait: expected true or false"},
        {[], #{timeout => -1}, "option timeout: expected milliseconds, or infinity"},
        {[], #{vacuous => no}, "option vacuous: expected fail, warn or ignore"},
        {[], #{base => 1}, "option base: expected the name of a folder"},
        {[], #{system => {a, b, []}}, "option system"},
        {[], #{tineout => 1}, "unknown option tineout"},
        {"test/cli_data/malformed.hml", #{}, "malformed.hml:"},
        {{{a, b, 1}, {no_such_monitor, []}}, #{}, "no_such_monitor"}
    ]].

what_others_start_for_the_fun_is_seen_with_scope_node_test_() ->
    over_all_sources([{atom_to_list(Scope), fun(Source) ->
        Other = spawn(fun() -> receive {start, From} -> From ! {started, witness_sys_calc:one(big_sums)} end end),
        {Problem, Lines} = failure(?SUMS, fun() ->
            Other ! {start, self()},
            receive {started, stop} -> ok end
        end, Source#{scope => Scope}),
        ?assertEqual(Expected, Problem),
        %% What was left out is said, with the option that watches it.
        ?assertEqual(Scope =:= tree, string:find(lists:join($\n, Lines), "scope => node") =/= nomatch)
    end} || {Scope, Expected} <- [{tree, nothing_monitored}, {node, violation}]]).

%% The worker lives on: the test does not wait for it.
what_a_server_starts_on_behalf_of_the_fun_is_seen_test_() ->
    [{setup, fun witness_servers_system:start/0, fun witness_servers_system:stop/1, fun(Servers) ->
        Started = fun() -> {ok, Worker} = witness_servers_system:start_child(continue, started, Servers), Worker end,
        Specs = [{{witness_servers_system, init, 1}, {?MODULE, whole}}],
        [?_assert(is_pid(witness_test:check(Specs, Started, #{}))),
         ?_assertMatch({nothing_monitored, _}, failure(Specs, Started, #{on_behalf => false})),
         ?_assertMatch({nothing_monitored, _}, failure(Specs, Started, #{source => evm}))]
    end} || lists:member(native, sources())].

%% --- specifications ----------------------------------------------------------------------------

files_are_found_above_the_source_test_() ->
    {ok, Here} = file:get_cwd(),
    Source = filename:dirname(proplists:get_value(source, ?MODULE:module_info(compile))),
    [?_assertEqual({ok, ["test/systems/calc_server.hml"]}, witness_test_files:find([?SUMS], undefined)),
     ?_assertMatch({ok, [_]}, witness_test_files:find(["bin/witness"], filename:join(Here, "test/nowhere"))),
     ?_assertEqual({ok, ["test/systems/calc_server.hml"]},
                   witness_test_files:find(["calc_server.hml"], filename:join(Here, "test/systems"))),
     ?_assertEqual({ok, [filename:join(Here, "rebar.config")]},
                   witness_test_files:find([filename:join(Here, "rebar.config")], undefined)),
     ?_assertMatch({error, {witness_test_files, {no_file, "nowhere.hml", [Here | _]}}},
                   witness_test_files:find(["nowhere.hml"], Source)),
     ?_assertEqual(Source, witness_test_files:source_folder(fun() -> ok end))].

%% --- several at once ---------------------------------------------------------------------------

each_sees_its_own_test_() ->
    [{atom_to_list(Source), {inparallel, [{timeout, 60, fun() -> alone(N, Source) end} || N <- lists:seq(1, ?AT_ONCE)]}}
     || Source <- sources()].

%% Every other one is wrong, in its own way.
alone(N, Source) when N rem 2 =:= 0 ->
    ?assertEqual(stop, witness_test:check(?SUMS, fun() -> witness_sys_calc:one(none) end, #{source => Source}));
alone(N, Source) ->
    Operand = 1 + N rem 15,
    {violation, Lines} = failure(?SUMS, fun() -> witness_sys_calc:one({operand, Operand}) end, #{source => Source}),
    has(lists:flatten(io_lib:format("with A = ~w, B = ~w, R = ~w", [Operand, Operand + 1, 2 * Operand + 2])), Lines),
    ?assertEqual(1, length([Line || Line = "VIOLATION" ++ _ <- Lines])).

%% --- a test that runs by itself ----------------------------------------------------------------

children_are_seen_from_their_births_test_() ->
    over_all_sources([{"right", fun(Source) -> ?assertEqual(ok, by_itself(none, Source)) end},
                      {"wrong", fun(Source) -> ?assertMatch({failed, violation, _}, by_itself(big_sums, Source)) end}]).

%% The parent is there before, spawns, and ends; what it has spawned is waited for.
by_itself(Bug, Source) ->
    Self = self(),
    {Parent, Ref} = spawn_monitor(fun() ->
        receive go -> ok end,
        spawn(fun() -> receive go -> witness_sys_calc:one(Bug), Self ! asked end end) ! go
    end),
    {ok, Watch} = witness_test:watch(?SUMS, [Parent, Parent], Source),
    Parent ! go,
    receive {'DOWN', Ref, process, Parent, normal} -> ok end,
    {Outcome, _} = witness_test:finish(Watch),
    receive asked -> Outcome after 0 -> not_awaited end.

children_are_logged_test_() ->
    over_all_sources([{"logged", fun(Source) ->
        File = filename:join("/tmp", ["witness_test_", os:getpid(), $_, atom_to_list(maps:get(source, Source))]),
        try
            {failed, violation, _} = by_itself(big_sums, Source#{log_file => File}),
            {ok, Run} = witness:start(#{system => {log, {file, File}}, specs => [?SUMS], log => false}),
            ?assertMatch({ok, #{outcome := violated, monitored := 1, warnings := []}}, witness:await(Run, 60_000)),
            {ok, _} = witness:stop(Run)
        after
            file:delete(File)
        end
    end}]).

parents_that_are_dead_have_no_children_test_() ->
    over_all_sources([{"dead", fun(Source) ->
        {Parent, Ref} = spawn_monitor(fun() -> ok end),
        receive {'DOWN', Ref, process, Parent, normal} -> ok end,
        {ok, Watch} = witness_test:watch(?SUMS, [Parent], Source#{timeout => infinity}),
        ?assertMatch({{failed, nothing_monitored, _}, #{monitored := 0}}, witness_test:finish(Watch))
    end}]).

what_runs_on_was_spawned_by_the_test_test_() ->
    over_all_sources([{"spawned", fun(Source) ->
        Self = self(),
        {Parent, Ref} = spawn_monitor(fun() -> receive go -> Self ! {server, spawn(?MODULE, served, [Self])} end end),
        {ok, Watch} = witness_test:watch(served(), [Parent], Source#{timeout => 50, unmonitored => ignore}),
        Parent ! go,
        receive {'DOWN', Ref, process, Parent, normal} -> ok end,
        {{failed, still_running, Lines}, _} = witness_test:finish(Watch),
        receive {server, Server} -> Server ! stop end,
        has(", spawned by the test", [unicode:characters_to_list(Line) || Line <- Lines])
    end}]).

%% --- helpers -----------------------------------------------------------------------------------

checked(Fun) -> witness_test:check(?SUMS, Fun, #{unmonitored => ignore}).

served() -> [{{?MODULE, served, 1}, {?MODULE, crash}}].

failure(Specs, Fun, Options) ->
    try witness_test:check(Specs, Fun, Options) of
        Result -> error({passed, Result})
    catch
        error:{Problem, [_ | _] = Lines} -> {Problem, Lines}
    end.

has(Text, Lines) ->
    ?assert(lists:any(fun(Line) -> string:find(Line, Text) =/= nomatch end, Lines), lists:join("\n", Lines)).
