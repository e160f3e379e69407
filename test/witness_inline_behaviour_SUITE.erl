-module(witness_inline_behaviour_SUITE).
-moduledoc """
Systems of OTP's behaviours, inline and outline over the native tracer: the same verdicts, but for the differences that
`docs/inline.md` lists, each of which has a test that shows it.
""".

-export([all/0, suite/0, groups/0, init_per_suite/1, end_per_suite/1]).
-export([clients/1, late/1, cluster/1, machines/1, managers/1, supervisors/1, elixir/1,
         the_down_of_a_call_is_seen/1, agents_and_tasks/1]).
-export([taken_is_later_than_delivered/1, a_signal_that_ends_a_waiting_process_is_seen/1,
         other_modules_send_unseen/1, what_starts_a_process_sends_unseen/1, no_callback_no_event/1,
         a_timeout_hides_a_message_like_it/1, a_supervisor_only_begins/1, a_manager_begins_with_its_first_handler/1,
         the_end_of_a_manager_is_seen/1, a_sync_notify_is_a_notify/1, the_caller_of_a_handler_is_not_known/1,
         callbacks_that_are_not_woven_are_a_gap/1, another_behaviour_only_begins/1, messages_of_the_system_are_not_seen/1,
         the_stack_of_a_wrong_result_is_not_known/1, a_start_that_fails_gives_no_fork/1,
         what_is_sensitive_is_seen_inline/1, what_is_never_taken_is_not_seen_inline/1]).
-export([run/5, shop/2, elixir/2]).

-include_lib("stdlib/include/assert.hrl").

-define(SYSTEMS, witness_behaviour_systems).
-define(WOVEN, [witness_behaviour_systems, witness_behaviour_machine, witness_behaviour_listener, witness_behaviour_tree]).
-define(TIMES, 10).
-define(WAIT_MS, 60_000).

suite() -> [{timetrap, {minutes, 4}}].

all() -> [{group, same}, {group, different}].

groups() ->
    [{same, [], [clients, late, cluster, machines, managers, supervisors, elixir, the_down_of_a_call_is_seen, agents_and_tasks]},
     {different, [], [taken_is_later_than_delivered, a_signal_that_ends_a_waiting_process_is_seen,
                      other_modules_send_unseen, what_starts_a_process_sends_unseen, no_callback_no_event,
                      a_timeout_hides_a_message_like_it, a_supervisor_only_begins, a_manager_begins_with_its_first_handler,
                      the_end_of_a_manager_is_seen, a_sync_notify_is_a_notify, the_caller_of_a_handler_is_not_known,
                      callbacks_that_are_not_woven_are_a_gap, another_behaviour_only_begins, messages_of_the_system_are_not_seen,
                      the_stack_of_a_wrong_result_is_not_known, a_start_that_fails_gives_no_fork,
                      what_is_sensitive_is_seen_inline, what_is_never_taken_is_not_seen_inline]}].

init_per_suite(Config) ->
    Root = witness_checkout:root(proplists:get_value(data_dir, Config)),
    [{applications, filename:join([Root, "test", "applications"])} | Config].

end_per_suite(_) -> ok.

%%% The same verdicts

clients(Config) ->
    same(Config, clients, all, ~"""
        asked: with witness_behaviour_systems:clients(_)
        per From over _ : _ ! call(From, _), _ ? reply(From, _)
        check [_ : _ ! call(From, {echo, N})] <_ ? reply(From, N)> tt.

        starts: with witness_behaviour_systems:clients(_)
        over _ -> _, witness_behaviour_systems:init(server), _ : _ ! {'$gen_cast', _}
        check <_ -> _, witness_behaviour_systems:init(server)> <_ : _ ! cast({five, _})> tt.

        answers: with witness_behaviour_systems:init(server)
        per From over _ ? call(From, _), _ : _ ! reply(From, _)
        check [_ ? call(From, {echo, N})] <_ : _ ! reply(From, N)> tt.

        later: with witness_behaviour_systems:init(server)
        over _ ? info(_), _ : _ ! {now, _, _}, _ : _ ! reply(_, 4)
        check <_ : _ ! {now, From, 4}> <_ ? info({now, F, 4}) when F =:= From> <_ : _ ! reply(From, 4)> tt.

        whole: with witness_behaviour_systems:init(server)
        over _ <- _, _, _ ? call(_, _), _ : _ ! reply(_, _), _ ? cast(_), _ : _ ! {five, _}, _ ** _
        check [_ <- _, witness_behaviour_systems:init(server)]
            max Open.([_ ? call(_, {echo, _})] [_ : _ ! reply(_, _)] Open
                and [_ ? call(_, {later, _})] [_ : _ ! reply(_, _)] Open
                and [_ ? cast(_)] [_ : _ ! {five, 5}] Open
                and [_ ? call(_, {stop, R})] [_ : _ ! reply(_, ok)] <_ ** R> tt
                and [_ ** _] ff).
        """).

late(Config) ->
    same(Config, late, all, ~"""
        asked: with witness_behaviour_systems:late(_)
        per From over _ : _ ! call(From, _), _ ? reply(From, _)
        check [_ : _ ! call(From, {echo, N})] <_ ? reply(From, N)> tt.
        """).

cluster(Config) ->
    same(Config, cluster, all, ~"""
        asked: with witness_behaviour_systems:cluster(_)
        over _ : _ ! call(_, _), _ ? reply(_, _), _ : _ ! cast(_)
        check <_ : {witness_behaviour_systems, _} ! call(From, {echo, 1})> <_ ? reply(From, 1)>
            <_ : {witness_behaviour_systems, _} ! call(Again, {echo, 2})> <_ ? reply(Again, 2)>
            <_ : {witness_behaviour_systems, _} ! cast({five, _})> tt.

        ends: with witness_behaviour_systems:init(server)
        over _ ** _, _ ? call(_, _)
        check <_ ? call(_, _)> <_ ? call(_, _)> <_ ? call(_, {stop, Reason})> <_ ** Reason> tt.
        """).

machines(Config) ->
    [same(Config, machine, Mode, ~"""
        answers: with witness_behaviour_machine:init(_)
        per From over _ ? call(From, _), _ : _ ! reply(From, _), _ ** _
        check [_ ? call(From, _)] <_ : _ ! reply(From, yes)> [_ ? call(From, _)] ff.

        each_once: with witness_behaviour_machine:init(_)
        over _ ? call(_, _), _ ? cast(_), _ ? info(_), _ ** _
        check <_ ? call(_, {1, _, _})> <_ ? call(_, {2, _, _})> <_ ? cast({3, _, _})> <_ ? cast({5, _, _})>
            <_ ? call(_, stop)> <_ ** normal> tt.
        """) || Mode <- [state_functions, handle_event_function, [state_functions, state_enter],
                         [handle_event_function, state_enter]]].

managers(Config) ->
    same(Config, manager, all, ~"""
        each_once: with gen_event:init(_)
        over _ ? notify(_), _ ? information, _ ? call(_, _, _), _ : _ ! reply(_, yes)
        check <_ ? notify(tick)> <_ ? notify(tick)> <_ ? notify(tick)> <_ ? information>
            <_ ? call(From, _, ask)> <_ : _ ! reply(From, yes)>
            <_ ? notify(tick)> <_ ? call(Again, _, ask)> <_ : _ ! reply(Again, yes)> tt.

        asks: with witness_behaviour_systems:manager(_)
        over _ : _ ! notify(_), _ : _ ! call(_, _, _), _ ? reply(_, yes), _ -> _, gen_event:init(_)
        check <_ -> _, gen_event:init({local, witness_behaviour_systems})>
            <_ : _ ! notify(tick)> <_ : _ ! notify(tick)> <_ : _ ! notify(tick)>
            <_ : _ ! call(From, {witness_behaviour_listener, one}, ask)> <_ ? reply(From, yes)>
            <_ : _ ! notify(tick)> <_ : _ ! call(Again, {witness_behaviour_listener, two}, ask)> <_ ? reply(Again, yes)> tt.
        """).

supervisors(Config) ->
    same(Config, supervised, all, ~"""
        asks: with witness_behaviour_systems:supervised(_)
        over _ : _ ! call(_, {start_child, _}), _ ? reply(_, {ok, _}), _ -> _, _
        check <_ -> _, witness_behaviour_tree:init(supervisor)> <_ : _ ! call(From, _)> <_ ? reply(From, _)> tt.

        child: with witness_behaviour_systems:init(server)
        over _ ? call(_, _), _ ** _
        check <_ ? call(_, {stop, normal})> <_ ** normal> tt.
        """).

the_down_of_a_call_is_seen(Config) ->
    same(Config, refused, all, ~"""
        with witness_behaviour_systems:refused(_) over _ : _ ! call(_, _), _ ? {'DOWN', _, _, _, _}, _ ** _
        check <_ : _ ! call({_, Tag}, {echo, 1})> <_ ? {'DOWN', M, process, P, noproc}
            when is_pid(P), M =:= Tag orelse M =:= tl(Tag)> <_ ** normal> tt.
        """).

%% The shop of `witness_applications_SUITE': customers are tasks, and carts break. The tasks run a fun of that module.
elixir(Config) ->
    case os:find_executable("elixir") of
        false -> {skip, "there is no elixir on the path"};
        _ ->
            Data = proplists:get_value(applications, Config),
            Weave = ['Elixir.Shop', 'Elixir.Shop.Cart', 'Elixir.Task', 'Elixir.Task.Supervised', 'Elixir.DynamicSupervisor',
                     'Elixir.GenServer', witness_applications_SUITE],
            Traffic = {shop, {4, [1, 2, 3, 4], 3}},
            {Inline, Outline} = in_peer(fun(Peer) ->
                ok = peer:call(Peer, ?MODULE, shop, [filename:join(Data, "shop.ex"), proplists:get_value(priv_dir, Config)],
                               ?WAIT_MS),
                Run = fun(Options) ->
                    peer:call(Peer, ?MODULE, run, [Options, {application, shop}, [filename:join(Data, "shop.hml")], [],
                                                   {witness_applications_SUITE, Traffic}], ?WAIT_MS)
                end,
                {Run(#{instrument => inline, weave => Weave}), Run(#{source => native})}
            end),
            ?assertMatch(#{{~"each_call_is_answered", no} := 3, {~"a_cart_is_paid", no} := 3,
                           {~"a_customer_opens_one_cart", yes} := 4}, Inline),
            ?assertEqual(Outline, Inline)
    end.

%% The modules that run their functions are woven without being named.
agents_and_tasks(Config) ->
    case os:find_executable("elixir") of
        false -> {skip, "there is no elixir on the path"};
        _ ->
            Data = proplists:get_value(applications, Config),
            {Inline, Outline} = in_peer(fun(Peer) ->
                ok = peer:call(Peer, ?MODULE, elixir, [filename:join(Data, "agents.ex"), proplists:get_value(priv_dir, Config)],
                               ?WAIT_MS),
                Run = fun(Options) ->
                    peer:call(Peer, ?MODULE, run, [Options, {'Elixir.Agents', main, [all]},
                                                   [filename:join(Data, "agents.hml")], [], none], ?WAIT_MS)
                end,
                {Run(#{instrument => inline}), Run(#{source => native})}
            end),
            ?assertEqual(#{{~"agent", yes} => 1, {~"task", yes} => 1, {~"client", yes} => 1}, Inline),
            ?assertEqual(Outline, Inline)
    end.

same(Config, System, Argument, Specification) ->
    Spec = written(Config, Specification),
    in_peer(fun(Peer) ->
        Run = fun(Options) ->
            peer:call(Peer, ?MODULE, run, [Options, {?SYSTEMS, System, [Argument]}, [Spec], [], none], ?WAIT_MS)
        end,
        Outline = Run(#{source => native}),
        ct:pal("~p ~p: ~p", [System, Argument, Outline]),
        ?assertEqual([], [Undecided || {_, inconclusive} = Undecided <- maps:keys(Outline)]),
        [?assertEqual(Outline, Run(#{instrument => inline, weave => ?WOVEN})) || _ <- lists:seq(1, ?TIMES)]
    end).

%%% What differs

taken_is_later_than_delivered(Config) ->
    different(Config, queued, all, no, yes, ~"""
        with witness_behaviour_systems:init(_) over _ ? call(_, _), _ : _ ! reply(_, _), _ ** _
        check max X.([_ ? call(_, _)] ([_ ? call(_, _)] ff and [_ : _ ! reply(_, _)] X) and [_ ** _] tt).
        """).

a_signal_that_ends_a_waiting_process_is_seen(Config) ->
    different(Config, killed, all, yes, yes,
              ~"with witness_behaviour_systems:init(_) over _ ** _ check <_ ** killed> tt.").

other_modules_send_unseen(Config) ->
    different(Config, printing, all, yes, no, ~"""
        with witness_behaviour_systems:init(_) over _ : _ ! {io_request, _, _, _}, _ ** _
        check <_ : _ ! {io_request, _, _, _}> tt.
        """).

what_starts_a_process_sends_unseen(Config) ->
    different(Config, killed, all, yes, no,
              ~"with witness_behaviour_systems:killed(_) over _ ? {ack, _, _}, _ ** _ check <_ ? {ack, _, {ok, _}}> tt.").

no_callback_no_event(Config) ->
    different(Config, ignoring, witness_behaviour_deaf, [witness_behaviour_deaf], yes, no,
              ~"with witness_behaviour_deaf:init(_) over _ ? info(_), _ ** _ check <_ ? noise> tt.").

a_timeout_hides_a_message_like_it(Config) ->
    different(Config, timing, all, yes, no,
              ~"with witness_behaviour_systems:init(_) over _ ? info(_), _ ** _ check <_ ? timeout> tt.").

a_supervisor_only_begins(Config) ->
    different(Config, supervised, all, yes, {inconclusive, {gap, no_callbacks}},
              ~"with witness_behaviour_tree:init(supervisor) over _ ? call(_, _), _ ** _ check <_ ? call(_, {start_child, _})> tt.").

a_manager_begins_with_its_first_handler(Config) ->
    different(Config, silent, all, yes, none,
              ~"with gen_event:init(_) over _ ? notify(_), _ ** _ check <_ ? notify(tick)> tt.").

the_end_of_a_manager_is_seen(Config) ->
    different(Config, manager, all, yes, yes,
              ~"with gen_event:init(_) over _ ** _ check <_ ** normal> tt.").

a_sync_notify_is_a_notify(Config) ->
    different(Config, synced, all, yes, no, ~"""
        with gen_event:init(_) over _ ? sync_notify(_, _), _ ? notify(_) check <_ ? sync_notify(_, tick)> tt.
        """).

the_caller_of_a_handler_is_not_known(Config) ->
    different(Config, manager, all, yes, no, ~"""
        with gen_event:init(_) over _ ? call(_, _, ask) check <M ? call({P, _}, {_, one}, ask) when P =/= M> tt.
        """).

callbacks_that_are_not_woven_are_a_gap(Config) ->
    different(Config, leaving, witness_behaviour_deaf, yes, {inconclusive, {gap, callback_module_not_woven}},
              ~"with witness_behaviour_machine:init(_) over _ ** _ check <_ ** normal> tt.").

another_behaviour_only_begins(Config) ->
    different(Config, custom, all, yes, {inconclusive, {gap, no_callbacks}},
              ~"with witness_behaviour_systems:init(_) over _ ? timeout, _ ** _ check <_ ? timeout> <_ ** normal> tt.").

messages_of_the_system_are_not_seen(Config) ->
    different(Config, asked, all, yes, no,
              ~"with witness_behaviour_systems:init(_) over _ ? {system, _, _}, _ ** _ check <_ ? {system, _, get_state}> tt.").

the_stack_of_a_wrong_result_is_not_known(Config) ->
    different(Config, erring, all, yes, no, ~"""
        with witness_behaviour_machine:init(_) over _ ** _
        check <_ ** {{bad_return_from_state_function, nonsense}, Stack} when Stack =/= []> tt.
        """).

a_start_that_fails_gives_no_fork(Config) ->
    different(Config, failing, all, yes, no, ~"""
        with witness_behaviour_systems:failing(_) over _ -> _, _, _ ** _ check <_ -> _, witness_behaviour_systems:init(_)> tt.
        """).

what_is_sensitive_is_seen_inline(Config) ->
    different(Config, hiding, all, {inconclusive, {gap, sensitive}}, yes, ~"""
        with witness_behaviour_systems:init(_) over _ ? call(_, _), _ ** _
        check <_ ? call(_, hide)> <_ ? call(_, {echo, 1})> <_ ** normal> tt.
        """).

what_is_never_taken_is_not_seen_inline(Config) ->
    different(Config, unread, all, yes, no,
              ~"with witness_behaviour_systems:init(_) over _ ? never_taken, _ ** _ check <_ ? never_taken> tt.").

different(Config, System, Argument, Outline, Inline, Specification) ->
    different(Config, System, Argument, ?WOVEN, Outline, Inline, Specification).

different(Config, System, Argument, Weave, Outline, Inline, Specification) ->
    Spec = written(Config, ["difference: ", Specification]),
    in_peer(fun(Peer) ->
        Run = fun(Options) ->
            peer:call(Peer, ?MODULE, run, [Options, {?SYSTEMS, System, [Argument]}, [Spec], [], why], ?WAIT_MS)
        end,
        ?assertEqual(expected(Outline), Run(#{source => native})),
        ?assertEqual(expected(Inline), Run(#{instrument => inline, weave => Weave}))
    end).

expected(none) -> #{};
expected(Verdict) -> #{{~"difference", Verdict} => 1}.

%%% Running

written(Config, Specification) ->
    File = filename:join(proplists:get_value(priv_dir, Config), integer_to_list(erlang:unique_integer([positive])) ++ ".hml"),
    ok = file:write_file(File, Specification),
    File.

in_peer(Fun) ->
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, args => ["-pa" | code:get_path()]}),
    try
        ok = peer:call(Peer, logger, set_primary_config, [level, none]),
        %% A process that loads code gets messages from the code server.
        ok = peer:call(Peer, code, ensure_modules_loaded, [[witness_behaviour_deaf | ?WOVEN]]),
        Fun(Peer)
    after
        peer:stop(Peer)
    end.

-doc "Compiles the shop into a folder, and loads the application.".
shop(File, Folder) ->
    ok = elixir(File, Folder),
    application:load({application, shop, [{applications, [kernel, stdlib, elixir]}, {mod, {'Elixir.Shop.Application', []}}]}).

-doc "Compiles a file of Elixir into a folder.".
elixir(File, Folder) ->
    ok = witness_cli_setup:load_elixir('Elixir.Witness', []),
    {ok, _, _} = 'Elixir.Kernel.ParallelCompiler':compile_to_path([list_to_binary(File)], list_to_binary(Folder),
                                                                  [{return_diagnostics, true}]),
    true = code:add_patha(Folder),
    ok.

-doc "How often each property has got each verdict; with `why`, undecided ones say why.".
run(Options, System, Specs, Monitors, How) ->
    {ok, Run} = witness:start(Options#{system => System, specs => Specs, monitors => Monitors, log => false,
                                       max_verdicts => 100_000}),
    case {System, How} of
        {{application, App}, {Module, {Scenario, Argument}}} ->
            ok = witness:await_started(Run, ?WAIT_MS),
            _ = Module:Scenario(Argument),
            ok = application:stop(App);
        _ -> ok
    end,
    {ok, _} = witness:await(Run, ?WAIT_MS),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    lists:foldl(fun(Verdict, Counted) -> maps:update_with(Verdict, fun(N) -> N + 1 end, 1, Counted) end, #{},
                [{Name, verdict(V, How)} || #{name := Name, vacuous := false} = V <- Verdicts]).

verdict(#{verdict := inconclusive, reason := Reason}, why) -> {inconclusive, Reason};
verdict(#{verdict := Verdict}, _) -> Verdict.
