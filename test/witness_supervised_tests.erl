-module(witness_supervised_tests).
-moduledoc """
A run in a supervision tree, as an application of Erlang has it. In Elixir `witness_elixir_api_SUITE` has more.
""".
-include_lib("eunit/include/eunit.hrl").

-behaviour(supervisor).
-behaviour(witness_monitor).
-export([init/1, init/3, attached/3, handle_event/2, handle_end/2]).

init(Children) -> {ok, {#{}, Children}}.

%% A monitor that decides nothing.
init(_, _, _) -> ignore.
attached(_, _, _) -> {ok, []}.
handle_event(_, S) -> {ok, S}.
handle_end(How, _) -> {inconclusive, How}.

a_run_watches_until_its_supervisor_ends_test_() ->
    {timeout, 60, fun() ->
        {ok, _} = application:ensure_all_started(witness),
        Test = self(),
        Echo = spawn_link(fun Loop() -> receive {Text, From} -> From ! Text, Loop(); stop -> ok end end),
        Options = #{system => {attach, [Echo]}, monitors => [{{'_', '_', '_'}, {?MODULE, []}}],
                    on_verdict => fun(V) -> Test ! {verdict, V} end},
        {ok, Supervisor} = supervisor:start_link(?MODULE, [witness_supervised:child_spec({echo_watch, Options})]),
        Watch = whereis(echo_watch),
        ?assertMatch(#{phase := running}, witness:info(echo_watch)),
        ?assertMatch(#{phase := running}, witness:info(Watch)),
        ?assertEqual([], witness:verdicts(echo_watch)),
        stop(Supervisor),
        %% It was not killed: its monitor was asked for its verdict.
        receive {verdict, #{verdict := inconclusive, info := stopped}} -> ok end,
        ?assertNot(is_process_alive(Watch)),
        Echo ! stop
    end}.

stop(Supervisor) ->
    unlink(Supervisor),
    Monitor = monitor(process, Supervisor),
    exit(Supervisor, shutdown),
    receive {'DOWN', Monitor, process, _, shutdown} -> ok end.

%% Stopping a run must not end the process that started it.
a_run_that_is_stopped_ends_normally_test() ->
    {ok, _} = application:ensure_all_started(witness),
    Echo = spawn_link(fun() -> receive stop -> ok end end),
    {ok, Watch} = witness_supervised:start_link(#{system => {attach, [Echo]}, checks => [calls]}),
    Monitor = monitor(process, Watch),
    ?assertMatch({ok, #{}}, witness:stop(Watch)),
    receive {'DOWN', Monitor, process, _, Reason} -> ?assertEqual(normal, Reason) end,
    Echo ! stop.

wrong_options_are_errors_test() ->
    process_flag(trap_exit, true),
    ?assertEqual({error, {witness_option, {unknown_option, tracers}}},
                 witness_supervised:start_link(#{system => node, tracers => 1})),
    ?assertEqual({error, {witness_option, {bad_option, options, "a map"}}}, witness_supervised:start_link([])),
    process_flag(trap_exit, false).

a_supervisor_waits_as_long_as_monitors_may_need_test() ->
    Shutdown = fun(Options) -> maps:get(shutdown, witness_supervised:child_spec(Options)) end,
    ?assertEqual(infinity, Shutdown(#{system => node, drain => infinity})),
    ?assert(Shutdown(#{system => node, drain => 70_000}) > 70_000),
    ?assert(Shutdown(#{system => node}) > 30_000),
    ?assert(is_integer(Shutdown(#{system => node, drain => wrong}))),
    ?assertMatch(#{id := witness, restart := temporary, start := {witness_supervised, start_link, [#{}]}},
                 witness_supervised:child_spec(#{})),
    ?assertMatch(#{id := w, start := {witness_supervised, start_link, [w, #{}]}}, witness_supervised:child_spec({w, #{}})).
