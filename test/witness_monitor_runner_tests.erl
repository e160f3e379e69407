-module(witness_monitor_runner_tests).
-moduledoc """
One monitor in its process: what it reports, whatever it does. The monitor is this module;
its argument holds a function for each callback.
""".
-include_lib("eunit/include/eunit.hrl").

-export([init/3, handle_event/2, handle_end/2, describe/1]).

%% --- the monitor -----------------------------------------------------------------

init(Signature, Process, #{init := Init} = Arg) ->
    case Init(Signature, Process) of
        ok -> {ok, Arg#{seen => []}};
        Other -> Other
    end;
init(_, _, Arg) -> {ok, Arg#{seen => []}}.

handle_event(E, State = #{seen := Seen}) ->
    case maps:get(event, State, fun(_) -> ok end) of
        Event ->
            case Event(E) of
                ok -> {ok, State#{seen := [E | Seen]}};
                Other -> Other
            end
    end.

handle_end(How, State = #{seen := Seen}) ->
    End = maps:get(ended, State, fun(_, _) -> {inconclusive, undecided} end),
    End(How, lists:reverse(Seen)).

describe(#{describe := Describe} = State) -> Describe(State);
describe(#{seen := Seen}) -> #{formula => integer_to_binary(length(Seen)), bindings => [{~"N", length(Seen)}]}.

%% --- verdicts --------------------------------------------------------------------

a_verdict_ends_the_monitor_test() ->
    [begin
         {Runner, Ref} = start(#{event => fun({exit, _, R, _}) -> {verdict, Verdict, R}; (_) -> ok end}),
         feed(Runner, [a, {exit, self(), why, 3}, b]),
         ?assertMatch(#{verdict := Verdict, reason := undefined, info := why, vacuous := false,
                        event := #{index := 2, event := {exit, _, why, 3}}, skipped := 0,
                        steps := [#{index := 1, formula := ~"1", bindings := [{~"N", 1}]},
                                  #{index := 2, formula := undefined, bindings := []}]},
                      outcome(Runner)),
         ?assertEqual(normal, down(Ref))
     end || Verdict <- [no, yes, inconclusive]].

a_monitor_gets_its_process_and_signature_test() ->
    Self = self(),
    {Runner, _} = start(#{init => fun({m, f, [1]}, P) when P =:= Self -> ignore end}),
    ?assertEqual(ignored, outcome(Runner)).

a_monitor_that_refuses_ends_without_a_verdict_test() ->
    {Runner, Ref} = start(#{init => fun(_, _) -> ignore end}),
    ?assertEqual(ignored, outcome(Runner)),
    ?assertEqual(normal, down(Ref)).

a_vacuous_yes_is_marked_test() ->
    {Runner, _} = start(#{event => fun(_) -> {verdict, yes, #{vacuous => true}} end}),
    feed(Runner, [a]),
    ?assertMatch(#{verdict := yes, vacuous := true}, outcome(Runner)).

what_the_end_decides_test() ->
    [begin
         {Runner, _} = start(#{ended => fun(E, Seen) -> {Verdict, {E, length(Seen)}} end}),
         feed(Runner, [a, b]),
         ok = witness_monitor_runner:How(Runner),
         Ended = case How of complete -> complete; stop -> stopped end,
         ?assertMatch(#{verdict := Verdict, reason := Reason, info := {Ended, 2}, event := undefined,
                        steps := [#{index := 1}, #{index := 2}]}, outcome(Runner))
     end || {How, Verdict, Reason} <- [{complete, yes, undefined}, {complete, no, undefined},
                                       {complete, inconclusive, undefined},
                                       {stop, no, undefined}, {stop, inconclusive, stopped}]].

without_handle_end_the_end_is_inconclusive_test() ->
    {Runner, _} = start(#{}, bare()),
    ok = witness_monitor_runner:complete(Runner),
    ?assertMatch(#{verdict := inconclusive, reason := undefined}, outcome(Runner)),
    {Stopped, _} = start(#{}, bare()),
    feed(Stopped, [a]),
    ok = witness_monitor_runner:stop(Stopped),
    ?assertMatch(#{verdict := inconclusive, reason := stopped, steps := [#{formula := undefined, bindings := []}]},
                 outcome(Stopped)).

%% --- monitors that misbehave -----------------------------------------------------

a_crash_anywhere_is_inconclusive_with_the_crash_test() ->
    Crash = fun(_) -> error(oops) end,
    Crash2 = fun(_, _) -> error(oops) end,
    [begin
         {Runner, Ref} = start(Arg),
         feed(Runner, [a]),
         ok = witness_monitor_runner:complete(Runner),
         ?assertMatch(#{verdict := inconclusive, reason := {crashed, {error, oops, [_ | _]}}, event := undefined},
                      outcome(Runner)),
         ?assertEqual(normal, down(Ref))
     end || Arg <- [#{init => Crash2}, #{event => Crash}, #{ended => Crash2}]].

throws_and_exits_are_crashes_too_test() ->
    [begin
         {Runner, _} = start(#{event => F}),
         feed(Runner, [a]),
         ?assertMatch(#{verdict := inconclusive, reason := {crashed, {Class, oops, _}}}, outcome(Runner))
     end || {Class, F} <- [{throw, fun(_) -> throw(oops) end}, {exit, fun(_) -> exit(oops) end}]].

the_event_at_which_a_monitor_crashed_is_the_last_step_test() ->
    {Runner, _} = start(#{event => fun({recv, _, _, bad, _}) -> error(oops); (_) -> ok end}),
    feed(Runner, [good, bad]),
    ?assertMatch(#{steps := [#{index := 1}, #{index := 2, event := {recv, _, _, bad, _}}]}, outcome(Runner)).

a_wrong_return_value_is_a_crash_test() ->
    [begin
         {Runner, _} = start(Arg),
         feed(Runner, [a]),
         ok = witness_monitor_runner:complete(Runner),
         ?assertMatch(#{verdict := inconclusive, reason := {crashed, {bad_return, Callback, Value}}}, outcome(Runner))
     end || {Callback, Value, Arg} <- [{init, nonsense, #{init => fun(_, _) -> nonsense end}},
                                       {handle_event, nonsense, #{event => fun(_) -> nonsense end}},
                                       {handle_event, {verdict, maybe_so, x}, #{event => fun(_) -> {verdict, maybe_so, x} end}},
                                       {handle_end, nonsense, #{ended => fun(_, _) -> nonsense end}}]].

a_description_that_crashes_leaves_the_verdict_test() ->
    {Runner, _} = start(#{describe => fun(_) -> error(oops) end}),
    feed(Runner, [a]),
    ok = witness_monitor_runner:stop(Runner),
    ?assertMatch(#{verdict := inconclusive, reason := stopped, steps := [#{formula := undefined, bindings := []}]},
                 outcome(Runner)).

a_runner_that_is_killed_is_seen_by_its_run_test() ->
    process_flag(trap_exit, true),
    {Runner, Ref} = start(#{}),
    ok = linked(Runner),
    exit(Runner, kill),
    ?assertEqual(killed, down(Ref)),
    receive {'EXIT', Runner, killed} -> ok end,
    process_flag(trap_exit, false).

a_runner_ends_with_its_run_test() ->
    Self = self(),
    {Run, RunRef} = spawn_monitor(fun() -> receive stop -> ok end end),
    Runner = witness_monitor_runner:start(spec(#{init => fun(_, _) -> Self ! started, ok end}, #{run => Run})),
    Ref = monitor(process, Runner),
    receive started -> ok end,
    exit(Run, kill),
    ?assertEqual(killed, down(RunRef)),
    ?assertEqual(killed, down(Ref)).

%% --- gaps ------------------------------------------------------------------------

at_a_gap_a_monitor_ends_inconclusive_and_sees_nothing_of_it_test() ->
    {Runner, _} = start(#{ended => fun(_, _) -> {yes, wrong} end}),
    feed(Runner, [a]),
    ok = witness_monitor_runner:gap(Runner, lost),
    feed(Runner, [b]),
    ok = witness_monitor_runner:complete(Runner),
    ?assertMatch(#{verdict := inconclusive, reason := {gap, lost}, steps := [#{index := 1}]}, outcome(Runner)).

what_was_decided_before_a_gap_stands_test() ->
    {Runner, _} = start(#{event => fun(_) -> {verdict, no, x} end}),
    feed(Runner, [a]),
    ok = witness_monitor_runner:gap(Runner, lost),
    ?assertMatch(#{verdict := no}, outcome(Runner)).

%% --- explanations ----------------------------------------------------------------

an_explanation_has_the_last_steps_and_says_how_many_are_left_out_test() ->
    [begin
         {Runner, _} = start(#{event => fun({recv, _, _, last, _}) -> {verdict, no, x}; (_) -> ok end}),
         feed(Runner, lists:duplicate(N - 1, a) ++ [last]),
         #{steps := Steps, skipped := Skipped, event := #{index := N}} = outcome(Runner),
         Kept = min(N, 12),
         ?assertEqual({N - Kept, lists:seq(N - Kept + 1, N)}, {Skipped, [I || #{index := I} <- Steps]})
     end || N <- [1, 11, 12, 13, 23, 24, 25, 26, 1000]].

%% A hundred thousand events with states of their own leave no more behind than a hundred.
the_space_for_explanations_is_constant_test() ->
    {Runner, _} = start(#{}, maps:merge(bare(), #{explain => 5})),
    Memory = fun(N) ->
        feed(Runner, lists:seq(1, N)),
        sync(Runner),
        garbage_collect(Runner),
        {memory, M} = process_info(Runner, memory),
        M
    end,
    Small = Memory(100),
    Large = Memory(100_000),
    ?assert(Large < Small + 20_000),
    ok = witness_monitor_runner:stop(Runner),
    ?assertMatch(#{steps := [_, _, _, _, _], skipped := 100_097}, outcome(Runner)).

%% --- several processes -----------------------------------------------------------

events_of_several_processes_are_put_in_order_test() ->
    {Runner, _} = start(#{ended => fun(complete, Seen) -> {yes, [M || {recv, _, _, M, _} <- Seen]} end}, #{ordered => true}),
    ok = witness_monitor_runner:events(Runner, [stamped(3, c), stamped(1, a)]),
    ok = witness_monitor_runner:clock(Runner, 1),
    ok = witness_monitor_runner:events(Runner, [stamped(2, b), stamped(5, e)]),
    ok = witness_monitor_runner:clock(Runner, 3),
    ok = witness_monitor_runner:events(Runner, [stamped(4, d)]),
    ok = witness_monitor_runner:complete(Runner),
    ?assertMatch(#{verdict := yes, info := [a, b, c, d, e]}, outcome(Runner)).

a_verdict_falls_while_the_rest_is_released_test() ->
    {Runner, Ref} = start(#{event => fun({recv, _, _, b, _}) -> {verdict, no, b}; (_) -> ok end}, #{ordered => true}),
    ok = witness_monitor_runner:events(Runner, [stamped(3, c), stamped(2, b), stamped(1, a)]),
    ok = witness_monitor_runner:stop(Runner),
    ?assertMatch(#{verdict := no, event := #{index := 2}}, outcome(Runner)),
    ?assertEqual(normal, down(Ref)),
    none_left(Runner).

an_event_that_comes_too_late_is_a_gap_test() ->
    {Runner, _} = start(#{}, #{ordered => true}),
    ok = witness_monitor_runner:events(Runner, [stamped(3, c)]),
    ok = witness_monitor_runner:clock(Runner, 10),
    ok = witness_monitor_runner:events(Runner, [stamped(2, b)]),
    ?assertMatch(#{verdict := inconclusive, reason := {gap, late}, steps := [#{event := {recv, _, _, c, _}}]}, outcome(Runner)).

%% --- helpers ---------------------------------------------------------------------

start(Arg) -> start(Arg, #{}).

start(Arg, More) ->
    Runner = witness_monitor_runner:start(spec(Arg, More)),
    {Runner, monitor(process, Runner)}.

spec(Arg, More) ->
    maps:merge(#{monitor => {?MODULE, Arg}, process => self(), signature => {m, f, [1]}, run => self(),
                 explain => 12, ordered => false}, More).

feed(Runner, Events) ->
    ok = witness_monitor_runner:events(Runner, [{none, case E of
                                                           {exit, _, _, _} -> E;
                                                           M -> {recv, self(), undefined, M, undefined}
                                                       end} || E <- Events]).

stamped(U, Message) -> {U, {recv, self(), undefined, Message, U}}.

outcome(Runner) -> receive {verdict, Runner, Outcome} -> Outcome end.

none_left(Runner) -> receive {verdict, Runner, Other} -> error({two_verdicts, Other}) after 0 -> ok end.

down(Ref) -> receive {'DOWN', Ref, process, _, Reason} -> Reason end.

%% The bare monitor answers.
sync(Runner) ->
    Ref = make_ref(),
    feed(Runner, [{sync, self(), Ref}]),
    receive Ref -> ok end.

linked(Runner) ->
    {links, Links} = process_info(self(), links),
    case lists:member(Runner, Links) of
        true -> ok;
        false -> erlang:yield(), linked(Runner)
    end.

%% A monitor with the mandatory callbacks only.
bare() ->
    Forms = [{attribute, 1, module, witness_monitor_runner_bare},
             {attribute, 1, export, [{init, 3}, {handle_event, 2}]}
             | [begin {ok, Ts, _} = erl_scan:string(F), {ok, Form} = erl_parse:parse_form(Ts), Form end
                || F <- ["init(_, _, _) -> {ok, 0}.",
                         "handle_event({recv, _, _, {sync, P, R}, _}, S) -> P ! R, {ok, S};"
                         "handle_event(_, S) -> {ok, S + 1}."]]],
    {ok, M, Code} = compile:forms(Forms, []),
    {module, M} = code:load_binary(M, "bare", Code),
    #{monitor => {M, x}}.
