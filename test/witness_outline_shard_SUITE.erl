-module(witness_outline_shard_SUITE).
-moduledoc """
Monitors that share a process judge like those that have one of their own. No monitor harms another one, whatever happens to
it, to its shard, or to the memory.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(BOUNDED, witness_bounded_monitor).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [monitors_share_shards, a_specification_shares_shards, what_is_not_bounded_has_its_own_process,
     several_monitors_of_a_process, a_crash_is_one_verdict, a_monitor_that_grows_moves_out,
     a_monitor_that_has_moved_out_and_dies, slices_move_out, marks_do_not_mix, a_partition_that_no_monitor_reads_is_released,
     a_prompt_verdict, a_shard_that_dies_has_a_successor, stopping_a_run_ends_every_monitor, other_specifications,
     short_memory_is_a_gap, nothing_is_left].

init_per_suite(Config) ->
    case witness_trace_native:available() of
        ok -> Config;
        {error, Reason} -> {skip, unicode:characters_to_list(Reason)}
    end.

end_per_suite(_) -> application:stop(witness).

%% What waits for ever would be an orphan to the suites that attach to processes.
end_per_testcase(_, _) ->
    [exit(P, kill) || P <- waiting()],
    witness_await:until(fun() -> waiting() =:= [] end).

waiting() ->
    [P || P <- processes(), {current_function, {?MODULE, F, _}} <- [process_info(P, current_function)],
     F =:= leaf orelse F =:= serve].

%% --- monitors that share a shard -------------------------------------------------

monitors_share_shards(_) ->
    {Run, Root} = started([{{?MODULE, leaf, '_'}, {?BOUNDED, count}}], #{}),
    Leaves = leaves(Root, 100),
    witness_await:until(fun() -> monitors(Run) =:= 100 end),
    ?assertEqual([], runners()),
    %% Those of a run before may still be about to end.
    witness_await:until(fun() -> length(shards()) =:= erlang:system_info(schedulers_online) end),
    [Leaf ! N || Leaf <- Leaves, N <- lists:seq(1, 200)],
    end_all(Root, Leaves),
    {ok, #{monitored := 100, gaps := 0, outcome := ok, verdicts := #{yes := 100}}} = witness:await(Run, 60_000),
    ?assertEqual(lists:duplicate(100, {count, 201, []}), [Info || #{info := Info} <- witness:verdicts(Run)]),
    {ok, _} = witness:stop(Run).

a_specification_shares_shards(Config) ->
    File = spec(Config, "with witness_outline_shard_SUITE:leaf(_)\n"
                        "check max X.([{_ ? {bad, N} when N > 5}]ff and [{_ ? {bad, N} when N =< 5}]X and [{_ ? ok}]X\n"
                        "  and [{_ <- _, witness_outline_shard_SUITE:leaf(_)}]X)."),
    {Run, Root} = started([], #{specs => [File]}),
    [A, B, C] = Leaves = leaves(Root, 3),
    witness_await:until(fun() -> monitors(Run) =:= 3 end),
    ?assertEqual([], runners()),
    A ! ok, A ! {bad, 6}, B ! {bad, 5}, B ! ok, C ! {bad, 7},
    witness_await:until(fun() -> length(witness:verdicts(Run)) =:= 2 end),
    end_all(Root, Leaves),
    {ok, #{verdicts := #{no := 2}, outcome := violated, gaps := 0}} = witness:await(Run, 60_000),
    ?assertEqual(lists:sort([A, C]), lists:sort([P || #{verdict := no, process := P} <- witness:verdicts(Run)])),
    {ok, _} = witness:stop(Run).

%% A monitor that never returns delays no other one.
what_is_not_bounded_has_its_own_process(_) ->
    {Run, Root} = started([{{?MODULE, leaf, '_'}, {?MODULE, loop}}, {{?MODULE, quiet, '_'}, {?BOUNDED, count}}], #{drain => 1}),
    [Leaf] = leaves(Root, 1),
    Leaf ! for_ever,
    witness_await:until(fun() -> length(runners()) =:= 1 end),
    [end_all(Root, [Quiet]) || _ <- lists:seq(1, 20), Quiet <- [quiet(Root)]],
    witness_await:until(fun() -> length(witness:verdicts(Run)) =:= 20 end),
    {ok, #{verdicts := #{yes := 20, inconclusive := 1}}} = witness:stop(Run).

several_monitors_of_a_process(_) ->
    {Run, Root} = started([{{?MODULE, leaf, '_'}, {?BOUNDED, Arg}} || Arg <- [count, keep, crash, other]], #{}),
    [A, B] = Leaves = leaves(Root, 2),
    [P ! M || M <- [1, 2], P <- Leaves],
    A ! crash,
    [P ! 3 || P <- Leaves],
    end_all(Root, Leaves),
    {ok, #{monitored := 8, verdicts := #{yes := 7, inconclusive := 1}}} = witness:await(Run, 60_000),
    ?assertEqual([], runners()),
    Of = fun(P) ->
        lists:sort([{Arg, N} || #{process := Q, verdict := yes, info := {Arg, N, _}} <- witness:verdicts(Run), Q =:= P])
    end,
    ?assertEqual([{count, 5}, {keep, 5}, {other, 5}], Of(A)),
    ?assertEqual([{count, 4}, {crash, 4}, {keep, 4}, {other, 4}], Of(B)),
    {ok, _} = witness:stop(Run).

a_crash_is_one_verdict(_) ->
    {Run, Root} = started([{{?MODULE, leaf, '_'}, {?BOUNDED, crash}}], #{}),
    [A | Others] = Leaves = leaves(Root, 10),
    A ! crash,
    witness_await:until(fun() -> [P || #{process := P, reason := {crashed, _}} <- witness:verdicts(Run)] =:= [A] end),
    end_all(Root, Leaves),
    {ok, #{verdicts := #{yes := 9, inconclusive := 1}, gaps := 0}} = witness:await(Run, 60_000),
    ?assertEqual(lists:sort(Others), lists:sort([P || #{process := P, verdict := yes} <- witness:verdicts(Run)])),
    {ok, _} = witness:stop(Run).

%% --- moving out ------------------------------------------------------------------

a_monitor_that_grows_moves_out(_) ->
    {Run, Root} = started([{{?MODULE, leaf, '_'}, {?BOUNDED, keep}}], #{batch => 8}),
    [A, B] = Leaves = leaves(Root, 2),
    grow(A),
    B ! 1,
    [A ! {more, N} || N <- lists:seq(1, 500)],
    end_all(Root, Leaves),
    {ok, #{monitored := 2, verdicts := #{yes := 2}, gaps := 0, outcome := ok}} = witness:await(Run, 60_000),
    Grown = [recv_of(Kept) || #{process := P, info := {keep, _, Kept}} <- witness:verdicts(Run), P =:= A],
    [[stop | Read]] = Grown,
    ?assertEqual(lists:seq(1, 500), lists:reverse([N || {more, N} <- Read])),
    {ok, _} = witness:stop(Run).

recv_of(Events) -> [case M of {stop, _} -> stop; _ -> M end || {recv, _, _, M, _} <- Events].

%% Sends events until the monitor has a process of its own.
grow(P) ->
    [P ! lists:seq(1, 100) || _ <- lists:seq(1, 50)],
    case runners() of
        [] -> erlang:yield(), grow(P);
        [_] -> ok
    end.

a_monitor_that_has_moved_out_and_dies(_) ->
    {Run, Root} = started([{{?MODULE, leaf, '_'}, {?BOUNDED, keep}}], #{batch => 8}),
    [A, B] = Leaves = leaves(Root, 2),
    grow(A),
    [exit(Runner, kill) || Runner <- runners()],
    witness_await:until(fun() -> [P || #{process := P, reason := {crashed, killed}} <- witness:verdicts(Run)] =:= [A] end),
    end_all(Root, Leaves),
    {ok, #{verdicts := #{yes := 1, inconclusive := 1}}} = witness:await(Run, 60_000),
    ?assertMatch([_], [B || #{process := P, verdict := yes} <- witness:verdicts(Run), P =:= B]),
    {ok, _} = witness:stop(Run).

slices_move_out(Config) ->
    File = spec(Config, "with witness_outline_shard_SUITE:leaf(_)\n"
                        "per K over _ ? {k, K, _}\n"
                        "check max X.([{_ ? {k, K, no}}]ff and [{_ ? {k, K, yes}}]X)."),
    {Run, Root} = started([], #{specs => [File]}),
    Leaves = leaves(Root, 5),
    [P ! {k, K, yes} || P <- Leaves, K <- [1, 2, 3]],
    witness_await:until(fun() -> length(runners()) =:= 5 end),
    [P ! {k, 2, no} || P <- Leaves],
    end_all(Root, Leaves),
    {ok, #{monitored := 5, verdicts := #{no := 5}, gaps := 0}} = witness:await(Run, 60_000),
    ?assertEqual(lists:duplicate(5, [{~"K", 2}]), [S || #{verdict := no, slice := S} <- witness:verdicts(Run)]),
    {ok, _} = witness:stop(Run).

%% --- marks, filters, verdicts ----------------------------------------------------

%% The actions of both monitors have the same numbers, and each monitor sees one of them taken.
marks_do_not_mix(Config) ->
    Text = fun(F) -> ["with witness_outline_shard_SUITE:", F, "(_)\n",
                      "check max X.([{_ ? first}]X and [{_ ? second}]X and [{_ <- _, witness_outline_shard_SUITE:", F,
                      "(_)}]X)."] end,
    Files = [spec(Config, F ++ ".hml", Text(F)) || F <- ["leaf", "quiet"]],
    {Run, Root} = started([], #{specs => Files}),
    Leaves = leaves(Root, 3),
    Quiets = [born(quiet, Root) || _ <- Leaves],
    [begin
         [P ! M || {Ps, M} <- [{Leaves, first}, {Quiets, second}], P <- Ps],
         receive after 3 -> ok end
     end || _ <- lists:seq(1, 5)],
    end_all(Root, Leaves ++ Quiets),
    {ok, #{monitored := 6, coverage := Coverage}} = witness:await(Run, 60_000),
    ?assertEqual([{~"leaf", [~"_ ? first"]}, {~"quiet", [~"_ ? second"]}],
                 lists:sort([{hd(binary:split(filename:basename(Spec), ~".")),
                              [T || #{text := T, taken := true} <- Actions, binary:part(T, 0, 3) =:= ~"_ ?"]}
                             || #{spec := Spec, actions := Actions} <- Coverage])),
    {ok, _} = witness:stop(Run).

%% The names of native code do not distinguish arguments.
a_partition_that_no_monitor_reads_is_released(Config) ->
    File = spec(Config, "with witness_outline_shard_SUITE:leaf(nobody)\ncheck [{_ <- _, witness_outline_shard_SUITE:leaf(_)}]ff."),
    {Run, Root} = started([], #{specs => [File]}),
    Leaves = leaves(Root, 50),
    end_all(Root, Leaves),
    {ok, #{monitored := 0, gaps := 0}} = witness:await(Run, 60_000),
    {ok, _} = witness:stop(Run).

%% Only the timer reports a single event.
a_prompt_verdict(Config) ->
    File = spec(Config, "with witness_outline_shard_SUITE:leaf(_)\n"
                        "check [{_ <- _, witness_outline_shard_SUITE:leaf(_)}][{_ ? bad}]ff."),
    {Run, Root} = started([], #{specs => [File], batch => 1_000_000}),
    [A] = leaves(Root, 1),
    A ! bad,
    witness_await:until(fun() -> length(witness:verdicts(Run)) =:= 1 end),
    end_all(Root, [A]),
    {ok, _} = witness:stop(Run).

%% --- the end ---------------------------------------------------------------------

a_shard_that_dies_has_a_successor(_) ->
    {Run, Root} = started([{{?MODULE, leaf, '_'}, {?BOUNDED, count}}], #{}),
    Before = leaves(Root, 20),
    witness_await:until(fun() -> monitors(Run) =:= 20 end),
    Shards = shards(),
    [exit(Shard, kill) || Shard <- Shards],
    witness_await:until(fun() -> length(witness:verdicts(Run)) =:= 20 end),
    ?assertEqual([{gap, tracer_lost}], lists:usort([Reason || #{reason := Reason} <- witness:verdicts(Run)])),
    After = leaves(Root, 20),
    witness_await:until(fun() -> monitors(Run) =:= 20 end),
    ?assertEqual(Shards -- shards(), Shards),
    [P ! 1 || P <- Before ++ After],
    end_all(Root, Before ++ After),
    {ok, #{verdicts := #{yes := 20, inconclusive := 20}, outcome := untrusted}} = witness:await(Run, 60_000),
    ?assertEqual(lists:duplicate(20, {count, 2, []}), [Info || #{verdict := yes, info := Info} <- witness:verdicts(Run)]),
    {ok, _} = witness:stop(Run).

stopping_a_run_ends_every_monitor(_) ->
    {Run, Root} = started([{{?MODULE, leaf, '_'}, {?BOUNDED, keep}}], #{flush => 60_000}),
    Leaves = leaves(Root, 100),
    {ok, #{monitored := 100, verdicts := #{inconclusive := 100}, gaps := 0}} = witness:stop(Run),
    end_all(Root, Leaves).

%% A monitor ends with the specification that it began with.
other_specifications(Config) ->
    Of = fun(Bad) -> spec(Config, Bad ++ ".hml", ["with witness_outline_shard_SUITE:leaf(_)\n"
                          "check [{_ <- _, witness_outline_shard_SUITE:leaf(_)}][{_ ? ", Bad, "}]ff."]) end,
    {Run, Root} = started([], #{specs => [Of("old")], replaceable => true}),
    [A] = leaves(Root, 1),
    witness_await:until(fun() -> monitors(Run) =:= 1 end),
    {ok, []} = witness:replace(Run, [Of("new")]),
    [B] = leaves(Root, 1),
    A ! old,
    B ! new,
    witness_await:until(fun() -> length(witness:verdicts(Run)) =:= 2 end),
    ?assertEqual([], runners()),
    end_all(Root, [A, B]),
    {ok, #{verdicts := #{no := 2}}} = witness:stop(Run).

%% A process with events that do not fit into memory has a gap under its pid; the others are whole.
short_memory_is_a_gap(_) ->
    {Run, Root} = started([{{?MODULE, leaf, '_'}, {?BOUNDED, count}}], #{partition_memory => 100_000}),
    [A | _] = Leaves = leaves(Root, 10),
    witness_await:until(fun() -> monitors(Run) =:= 10 end),
    A ! lists:seq(1, 100_000),
    end_all(Root, Leaves),
    {ok, #{monitored := 10, gaps := 1, verdicts := #{yes := 9, inconclusive := 1}, outcome := untrusted}} =
        witness:await(Run, 60_000),
    ?assertEqual([A], [P || #{process := P, reason := {gap, overflow}} <- witness:verdicts(Run)]),
    {ok, _} = witness:stop(Run).

nothing_is_left(_) ->
    witness_await:until(fun() -> shards() ++ runners() =:= [] end),
    witness_await:until(fun() ->
        erlang:garbage_collect(),
        [garbage_collect(P) || P <- processes()],
        maps:filter(fun(_, N) -> N =/= 0 end, witness_trace_native:resources()) =:= #{}
    end).

%% --- the system ------------------------------------------------------------------

started(Monitors, Options) ->
    Self = self(),
    {ok, Run} = witness:start(Options#{system => {?MODULE, root, [Self]}, source => native, monitors => Monitors, log => false}),
    {Run, receive {root, Root} -> Root end}.

root(Test) ->
    Test ! {root, self()},
    serve().

serve() ->
    receive
        {spawn, F, Caller} -> Caller ! {self(), spawn(?MODULE, F, [{}])}, serve();
        stop -> ok
    after 60_000 -> ok
    end.

leaf(X) ->
    receive
        {stop, Caller} -> Caller ! {stopped, self()};
        _ -> leaf(X)
    end.

quiet(X) when is_tuple(X) -> leaf(X);
quiet(Root) -> born(quiet, Root).

leaves(Root, N) -> [born(leaf, Root) || _ <- lists:seq(1, N)].

born(F, Root) ->
    Root ! {spawn, F, self()},
    receive {Root, P} -> P end.

%% Ends the leaves. If there are several, it ends the root too, so that the run waits for no other process.
end_all(Root, Leaves) ->
    [P ! {stop, self()} || P <- Leaves],
    [receive {stopped, P} -> ok end || P <- Leaves],
    length(Leaves) > 1 andalso (Root ! stop),
    ok.

%% --- a monitor that is not bounded -----------------------------------------------

init(_, _, loop) -> {ok, loop}.

handle_event({recv, _, _, for_ever, _}, loop) -> for_ever();
handle_event(_, loop) -> {ok, loop}.

for_ever() -> for_ever().

%% --- looking ---------------------------------------------------------------------

monitors(Run) -> maps:get(monitors, witness:info(Run)).

shards() -> [P || P <- processes(), proc_lib:get_label(P) =:= witness_shard].

runners() -> [P || P <- processes(), {witness_monitor, _, _} <- [proc_lib:get_label(P)]].

spec(Config, Text) -> spec(Config, "shard.hml", Text).

spec(Config, Name, Text) ->
    File = filename:join(proplists:get_value(priv_dir, Config), Name),
    ok = file:write_file(File, Text),
    File.
