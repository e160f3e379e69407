-module(witness_hidden_SUITE).
-moduledoc """
Processes that hide themselves (their flag `sensitive`), over both sources: the VM reports nothing of them, so there is a
gap and no verdict on what is left; everything else goes on, and the run ends.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [{group, native}, {group, evm}].

groups() ->
    Cases = [what_was_seen_before_counts, a_hole_is_never_judged, it_ends_hidden, it_ends_after_it_was_seen_again,
             children_of_the_hidden_are_told_of, a_group_has_the_gap_as_a_whole, others_are_whole,
             hidden_while_it_is_handed_over, other_flags_are_nothing, a_process_that_is_not_monitored_may_hide],
    [{native, [], Cases}, {evm, [], Cases ++ [a_process_that_has_hidden_before_it_is_attached_has_a_gap,
                                 a_process_that_has_hidden_in_the_node_is_reported]}].

init_per_group(Source, Config) -> witness_source:init(Source, Config).

end_per_group(_, _) -> ok.

%% --- cases -----------------------------------------------------------------------

what_was_seen_before_counts(Config) ->
    {[{worker, no, undefined}], Summary} = run(Config, fun() -> work(fun() -> self() ! wrong, hide(), ok end) end),
    ?assertMatch(#{outcome := violated, gaps := 0}, Summary),
    told(1, Summary).

a_hole_is_never_judged(Config) ->
    %% The monitor of a worker counts what it sends.
    {Verdicts, Summary} = run(Config, fun() ->
        work(fun() -> self() ! 1, hide(), self() ! 2, show(), self() ! 3 end)
    end),
    ?assertEqual([{worker, inconclusive, {gap, sensitive}}], Verdicts),
    untrusted(1, Summary).

it_ends_hidden(Config) ->
    {Verdicts, Summary} = run(Config, fun() -> work(fun() -> hide(), receive after 0 -> ok end end) end),
    ?assertEqual([{worker, inconclusive, {gap, sensitive}}], Verdicts),
    untrusted(1, Summary).

it_ends_after_it_was_seen_again(Config) ->
    {Verdicts, Summary} = run(Config, fun() ->
        work(fun() -> apply(erlang, list_to_atom("process_flag"), [sensitive, true]), show(), hide(), show() end)
    end),
    ?assertEqual([{worker, inconclusive, {gap, sensitive}}], Verdicts),
    ?assertMatch(#{outcome := untrusted, gaps := 1}, Summary).

%% The root has no monitor, but its children would have had.
children_of_the_hidden_are_told_of(Config) ->
    {[], Summary} = run(Config, fun() -> hide(), work(fun() -> ok end) end),
    untrusted(1, Summary).

a_group_has_the_gap_as_a_whole(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "group.hml"),
    ok = file:write_file(File, "with witness_hidden_SUITE:leader(_) group over _ : _ ! _\n"
                               "check max X. ([{_ : _ ! wrong}] ff and [{_ : _ ! M when M =/= wrong}] X).\n"),
    {Verdicts, Summary} = run(Config, fun() ->
        {P, Ref} = spawn_monitor(?MODULE, leader, [fun() ->
            {C, CRef} = spawn_monitor(fun() -> hide(), show() end),
            receive {'DOWN', CRef, process, C, _} -> self() ! wrong end
        end]),
        receive {'DOWN', Ref, process, P, _} -> ok end
    end, #{specs => [File]}),
    ?assertEqual([{leader, inconclusive, {gap, sensitive}}], Verdicts),
    untrusted(1, Summary).

others_are_whole(Config) ->
    {Verdicts, Summary} = run(Config, fun() ->
        work(fun() -> self() ! 1 end), work(fun hide/0), work(fun() -> self() ! 1, self() ! 2 end)
    end),
    ?assertEqual([{worker, inconclusive, {gap, sensitive}}, {worker, yes, undefined}, {worker, yes, undefined}],
                 lists:sort(Verdicts)),
    untrusted(1, Summary).

%% Over evm a process may hide before its tracer has it, or between two tracers.
hidden_while_it_is_handed_over(Config) ->
    N = 300,
    {Verdicts, Summary} = run(Config, fun() ->
        Workers = [spawn_monitor(?MODULE, worker, [fun() ->
            [self() ! I || I <- lists:seq(1, K rem 20)], hide(), self() ! 0, K rem 3 =:= 0 andalso show()
        end]) || K <- lists:seq(1, N)],
        [receive {'DOWN', Ref, process, P, _} -> ok end || {P, Ref} <- Workers]
    end),
    ?assertEqual(lists:duplicate(N, {worker, inconclusive, {gap, sensitive}}), Verdicts),
    untrusted(N, Summary).

other_flags_are_nothing(Config) ->
    {Verdicts, Summary} = run(Config, fun() ->
        work(fun() -> process_flag(trap_exit, true), show(), self() ! 1 end)
    end),
    ?assertEqual([{worker, yes, undefined}], Verdicts),
    ?assertMatch(#{outcome := ok, warnings := []}, Summary).

%% A process of the node that no monitor watches.
a_process_that_is_not_monitored_may_hide(Config) ->
    Server = spawn_link(fun Loop() -> receive {From, hide} -> hide(), From ! hidden, Loop(); stop -> ok end end),
    {Verdicts, Summary} = run(Config, fun() ->
        Server ! {self(), hide},
        receive hidden -> work(fun() -> self() ! 1 end) end
    end, #{scope => node}),
    unlink(Server),
    Server ! stop,
    %% Another case counts the hidden processes of the node.
    _ = witness_await:down(Server),
    ?assertEqual([{worker, yes, undefined}], Verdicts),
    ?assertMatch(#{outcome := ok, warnings := []}, Summary).

%% An attached process of the same signature that does not hide is not taken for hidden.
a_process_that_has_hidden_before_it_is_attached_has_a_gap(_) ->
    Self = self(),
    Attached = [spawn(?MODULE, worker, [fun() -> Flag(), Self ! {self(), ready}, receive stop -> ok end end])
                || Flag <- [fun hide/0, fun show/0]],
    [receive {P, ready} -> ok end || P <- Attached],
    {ok, Run} = witness:start(#{system => {attach, Attached}, monitors => [{{?MODULE, worker, 1}, {?MODULE, worker}}],
                                log => false}),
    [P ! stop || P <- Attached],
    {ok, Summary} = witness:await(Run, infinity),
    Verdicts = [{P, V, Reason} || #{verdict := V, reason := Reason, process := P} <- witness:verdicts(Run)],
    {ok, _} = witness:stop(Run),
    [Hidden, Shown] = Attached,
    ?assertEqual(lists:sort([{Hidden, inconclusive, {gap, sensitive}}, {Shown, yes, undefined}]), lists:sort(Verdicts)),
    ?assertMatch(#{outcome := untrusted}, Summary),
    told(1, Summary).

%% The VM does not even report the signature of a hidden process of OTP: it is unknown whether it should have a monitor.
a_process_that_has_hidden_in_the_node_is_reported(_) ->
    Self = self(),
    P = proc_lib:spawn(fun() -> hide(), Self ! {self(), ready}, receive stop -> ok end end),
    receive {P, ready} -> ok end,
    {ok, Run} = witness:start(#{system => node, monitors => [{{?MODULE, worker, 1}, {?MODULE, worker}}], log => false}),
    {ok, Summary} = witness:stop(Run),
    P ! stop,
    ?assertMatch(#{outcome := untrusted}, Summary),
    told(1, Summary).

%% --- runs ------------------------------------------------------------------------

run(Config, Fun) -> run(Config, Fun, #{}).

run(Config, Fun, More) ->
    {ok, Run} = witness:start(maps:merge(#{system => {erlang, apply, [Fun, []]}, source => proplists:get_value(source, Config),
                                           monitors => [{{?MODULE, worker, 1}, {?MODULE, worker}}], log => false}, More)),
    {ok, Summary} = witness:await(Run, infinity),
    Verdicts = [{F, V, Reason} || #{verdict := V, reason := Reason, signature := {_, F, _}} <- witness:verdicts(Run)],
    {ok, _} = witness:stop(Run),
    {Verdicts, Summary}.

untrusted(N, Summary) ->
    ?assertMatch(#{outcome := untrusted, system := normal}, Summary),
    told(N, Summary).

told(N, #{warnings := Warnings}) ->
    Number = case N of 1 -> "^a process has "; _ -> ["^", integer_to_list(N), " processes have "] end,
    ?assertMatch([_], [Text || #{code := sensitive, text := Text} <- Warnings, re:run(Text, Number) =/= nomatch]).

hide() -> process_flag(sensitive, true).
show() -> process_flag(sensitive, false).

work(Fun) ->
    {P, Ref} = spawn_monitor(?MODULE, worker, [Fun]),
    receive {'DOWN', Ref, process, P, _} -> ok end.

worker(Fun) -> Fun().
leader(Fun) -> Fun().

%% The monitor: numbers come one after the other, until the end.
init(_, _, worker) -> {ok, 1}.
attached(_, _, worker) -> {ok, 1}.


handle_event({send, P, P, N, _}, N) -> {ok, N + 1};
handle_event({send, P, P, Other, _}, N) -> {verdict, no, {Other, N}};
handle_event({exit, _, _, _}, _) -> {verdict, yes, complete};
handle_event(_, N) -> {ok, N}.
