-module(witness_run_history_tests).
-moduledoc "The history of a run: what is kept of its processes, and that it is that of the real ones, whatever gathers events.".

-include_lib("eunit/include/eunit.hrl").

-export([main/0, parent/1, child/1, use_library/0, library/1]).

-define(SPEC, "examples/calculator/sum.hml").

%% --- what is kept ----------------------------------------------------------------

p(N) -> {external, integer_to_binary(N)}.

at(Ns) -> {Ns, undefined}.

births_come_in_any_order_test() ->
    T = lists:foldl(fun({Child, Parent}, A) ->
                            witness_run_history_tree:add_birth(p(Child), p(Parent), {m, f, Child}, at(Child), A) end,
                    witness_run_history_tree:add_running(p(1), undefined, undefined, witness_run_history_tree:new(10)),
                    [{3, 2}, {2, 1}, {3, 2}, {4, 2}]),
    #{processes := Processes, groups := []} =
        witness_run_history_tree:to_map(witness_run_history_tree:add_exit(p(3), normal, at(9), T)),
    ?assertEqual([{p(1), undefined, undefined, undefined}, {p(3), 3, at(3), at(9)}, {p(2), 1, at(2), undefined},
                  {p(4), 3, at(4), undefined}],
                 [{P, Parent, Born, Ended} || #{process := P, parent := Parent, born := Born, ended := Ended} <- Processes]).

later_ones_are_counted_below_the_nearest_that_is_kept_test() ->
    Born = fun(Child, Parent, A) -> witness_run_history_tree:add_birth(p(Child), p(Parent), {m, f, 0}, at(Child), A) end,
    T = Born(5, 3, Born(4, 3, Born(3, 2, Born(2, 1, Born(1, 0, witness_run_history_tree:new(2)))))),
    #{processes := [_, _], groups := Groups} =
        witness_run_history_tree:to_map(witness_run_history_tree:add_exit(p(4), normal, at(9), T)),
    ?assertEqual([#{parent => 2, function => {m, f, 0}, count => 3, ended => 1}], Groups),
    %% What has ended takes nothing.
    ?assertNot(witness_run_history_tree:is_known(p(4), witness_run_history_tree:add_exit(p(4), normal, at(9), T))).

functions_of_later_ones_are_bounded_test() ->
    T = lists:foldl(fun(N, A) -> witness_run_history_tree:add_birth(p(N), undefined, {m, f, N}, at(N), A) end,
                    witness_run_history_tree:new(1), lists:seq(1, 2000)),
    #{groups := Groups} = witness_run_history_tree:to_map(T),
    ?assertEqual(501, length(Groups)),
    ?assertEqual(1999, lists:sum([N || #{count := N} <- Groups])),
    ?assertMatch([_], [others || #{function := others} <- Groups]).

monitors_are_told_with_their_processes_test() ->
    Meta = fun(P) -> #{process => P, spec => ~"s", name => undefined} end,
    T0 = witness_run_history_tree:add_birth(p(1), undefined, {m, f, 0}, at(1), witness_run_history_tree:new(1)),
    T1 = lists:foldl(fun(P, A) -> witness_run_history_tree:add_monitor(Meta(P), self(), at(2), A) end, T0, [p(1), p(2), p(3)]),
    T2 = lists:foldl(fun({P, Verdict}, A) -> witness_run_history_tree:add_verdict(Meta(P), Verdict, at(3), A) end, T1,
                     [{p(1), {slice, no}}, {p(1), {slice, no}}, {p(1), {verdict, yes}}, {p(2), {verdict, no}},
                      {p(3), {verdict, no}}]),
    Self = self(),
    ?assertMatch(#{monitors := [#{process := 1, reader := Self, began := {2, _}, ended := {3, _}, verdict := yes, violations := 2}],
                   violations := 2},
                 witness_run_history_tree:to_map(T2)).

%% --- real runs -------------------------------------------------------------------

%% Ten children below two, of which one is killed.
main() ->
    Parents = [spawn_monitor(?MODULE, parent, [N]) || N <- [1, 2]],
    [receive {'DOWN', Ref, process, Pid, _} -> ok end || {Pid, Ref} <- Parents],
    ok.

parent(N) ->
    [begin
         {Pid, Ref} = spawn_monitor(?MODULE, child, [I]),
         N =:= 1 andalso I =:= 1 andalso exit(Pid, {shutdown, <<"secret">>}),
         N =:= 1 andalso I =:= 1 orelse (Pid ! go),
         receive {'DOWN', Ref, process, Pid, _} -> ok end
     end || I <- lists:seq(1, 5)].

child(_) -> receive go -> ok end.

use_library() ->
    {Pid, Ref} = spawn_monitor(?MODULE, library, [{author, 3}]),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

library(_) -> ok.

history(More) ->
    Monitor = {witness_monitor_log, {[], fun(_, _) -> ok end}},
    {ok, Run} = witness:start(maps:merge(#{system => {?MODULE, main, []}, specs => [?SPEC], log => false, history => true,
                                           monitors => [{{?MODULE, child, 1}, Monitor}]}, More)),
    {ok, #{history := History}} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run),
    History.

%% Name and parent's name of each process that was born in the run, with how it ended.
born(#{tree := #{processes := Processes}}) ->
    Called = maps:from_list([{I, Function} || {I, #{function := Function}} <- lists:enumerate(Processes)]),
    lists:sort([{Function, case maps:get(Parent, Called, none) of {?MODULE, F, A} -> {F, A}; _ -> none end,
                 Ended =/= undefined, Reason}
                || #{function := {?MODULE, Function, _}, parent := Parent, born := Born, ended := Ended,
                     reason := Reason} <- Processes,
                   Born =/= undefined]).

expected(Reason) ->
    lists:sort([{main, none, true, normal}] ++ lists:duplicate(2, {parent, {main, 0}, true, normal})
                   ++ lists:duplicate(9, {child, {parent, 1}, true, normal}) ++ [{child, {parent, 1}, true, Reason}]).

modes() -> [#{source => native}, #{source => evm}, #{source => evm, scope => node}, #{source => native, scope => node},
            #{instrument => central, source => native}, #{instrument => central, source => evm}].

the_tree_is_the_real_one_test_() ->
    [{lists:flatten(io_lib:format("~p", [Mode])), {timeout, 60, fun() ->
         #{tree := #{monitors := Monitors}} = History = history(Mode),
         ?assertEqual(expected(<<"{shutdown,<<\"secret\">>}">>), born(History)),
         ?assertEqual(10, length(Monitors)),
         #{began := Began, ended := Ended, lost := undefined, log := false} = History,
         #{tree := #{processes := Processes}} = History,
         [?assert(Began =< B andalso B =< E andalso E =< Ended)
          || #{born := {B, _}, ended := {E, _}, function := {?MODULE, _, _}} <- Processes]
     end}} || Mode <- modes()].

inline_too_test_() ->
    {timeout, 60, fun() ->
        ?assertEqual(expected(<<"{shutdown,<<\"secret\">>}">>),
                     born(history(#{instrument => inline, monitors => [], weave => [?MODULE]})))
    end}.

rows_give_functions_test_() ->
    [{lists:flatten(io_lib:format("~p", [Mode])), {timeout, 60, fun() ->
         #{tree := #{processes := Processes}} = history(Mode#{signatures => [{?MODULE, library, [{module, args}]}],
                                                              system => {?MODULE, use_library, []}}),
         ?assertMatch([_], [F || #{function := {author, library, 1} = F} <- Processes])
     end}} || Mode <- modes()].

reasons_are_redacted_test_() ->
    {timeout, 60, fun() ->
        History = history(#{redact => true}),
        ?assertEqual(expected(~"{shutdown,{'binary()',6}}"), born(History)),
        ?assertEqual(nomatch, binary:match(term_to_binary(History), ~"secret"))
    end}.

no_history_unless_asked_for_test_() ->
    {timeout, 60, fun() ->
        {ok, Run} = witness:start(#{system => {?MODULE, main, []}, specs => [?SPEC], log => false}),
        {ok, Summary} = witness:stop(Run),
        ?assertNot(is_map_key(history, Summary))
    end}.

%% What the run watches goes on without it.
a_history_that_dies_takes_nothing_with_it_test_() ->
    {timeout, 60, fun() ->
        {ok, Run} = witness:start(#{system => {timer, sleep, [infinity]}, specs => [?SPEC], log => false, history => true}),
        %% That of the run before may just end.
        Historians = fun() -> [P || P <- processes(), proc_lib:get_label(P) =:= witness_run_history] end,
        ok = witness_await:until(fun() -> case Historians() of [_] -> true; Others -> Others end end),
        [Historian] = Historians(),
        Ref = monitor(process, Historian),
        exit(Historian, kill),
        receive {'DOWN', Ref, process, Historian, _} -> ok end,
        {ok, Summary} = witness:stop(Run),
        ?assertNot(is_map_key(history, Summary))
    end}.

%% --- a log -----------------------------------------------------------------------

a_log_tells_its_own_test_() ->
    [{Name, ?_test(?assertEqual({[{~"<0.1.0>", none}, {~"<0.2.0>", 1}], [{1, 4}, {2, 3}]}, of_log(Lines)))}
     || {Name, Lines} <- [{"places", ["init(<0.1.0>,_,{demo,main,[]})", "fork(<0.1.0>,<0.2.0>,{calc_server,loop,[x]})",
                                      "exit(<0.2.0>,normal)", "exit(<0.1.0>,normal)"]}]].

of_log(Lines) ->
    File = string:trim(os:cmd("mktemp")),
    ok = file:write_file(File, [[Line, $\n] || Line <- Lines]),
    {ok, Run} = witness:start(#{system => {log, {file, File}}, format => text, specs => [?SPEC], log => false, history => true}),
    {ok, #{history := #{log := true, tree := #{processes := Processes}}}} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run),
    ok = file:delete(File),
    {[{witness_event:format_proc(P), case Parent of undefined -> none; _ -> Parent end}
      || #{process := P, parent := Parent} <- Processes],
     [{Born, Ended} || #{born := {_, Born}, ended := {_, Ended}} <- Processes]}.
