-module(witness_replay_functions_SUITE).
-moduledoc """
Calls and returns of functions in replays. A process has the same ones in the same order as when the program runs over the native
source; what may not have happened, or cannot be seen, decides nothing.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(SYSTEM, witness_recorded_functions).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [a_replay_has_the_calls_of_a_run, calls_of_a_killed_process_may_not_have_happened, only_kinds_that_are_named_are_reported,
     what_is_replayed_is_the_same_log, native_functions_hide_calls,
     a_search_sees_calls_and_a_replay_of_what_it_found_too, a_search_judges_calls_before_a_halt, what_cannot_be_seen_is_refused,
     a_recording_without_a_replay_is_refused, a_recorded_run_is_refused].

init_per_suite(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = witness_record_programs:compile(["witness_recorded_functions", "witness_recorded_monitor"], Out),
    true = code:add_patha(Out),
    {ok, Started} = application:ensure_all_started(witness),
    [{programs, Out}, {started, Started} | Config].

end_per_suite(Config) ->
    true = code:del_path(proplists:get_value(programs, Config)),
    [ok = application:stop(App) || App <- lists:reverse(proplists:get_value(started, Config))].

functions() ->
    [{?SYSTEM, F, A} || {F, A} <- [{factorial, 1}, {down, 1}, {wrap, 1}, {first, 1}, {odd, 1}]]
        ++ [{ets, F, A} || {F, A} <- [{new, 2}, {insert, 2}, {lookup, 2}, {delete, 1}, {tab2list, 1}]]
        ++ [{persistent_term, F, A} || {F, A} <- [{put, 2}, {get, 1}, {erase, 1}]]
        ++ [{erlang, F, A} || {F, A} <- [{link, 1}, {unlink, 1}, {monitor, 2}, {register, 2}, {exit, 2}, {send_after, 3},
                                         {cancel_timer, 1}]]
        ++ [{os, putenv, 2}, {proplists, get_value, 2}, {proplists, get_value, 3}, {gen_event, rpc, 2},
            {gen_event, sync_notify, 2}].

%% The order between processes differs between runs, as do pids.
a_replay_has_the_calls_of_a_run(Config) ->
    case witness_source:init(native, Config) of
        {skip, _} = Skip -> Skip;
        _ ->
            Dir = record(all, [], Config),
            %% What is called to load a module is not part of a recording.
            ok = ?SYSTEM:all(),
            {Run, #{outcome := ok, gaps := 0}} = judged({?SYSTEM, all, []}, functions()),
            {Replay, #{outcome := ok, gaps := 0}} = judged({log, {replay, replay(Dir)}}, functions()),
            receive {report, Report} -> ?assertMatch({ok, #{outcome := identical}}, Report) end,
            Live = traces(Run),
            ?assert(length([call || {_, Trace} <- Live, {call, _} <- Trace]) > 50),
            ?assertEqual([], functions() -- [{M, F, length(Args)} || {_, Trace} <- Live, {call, {M, F, Args}} <- Trace]),
            ?assertEqual(Live, traces(Replay))
    end.

calls_of_a_killed_process_may_not_have_happened(Config) ->
    [begin
         Dir = record(killed, [Who], Config),
         {Verdicts, Summary} = judged({log, {replay, replay(Dir)}}, [{?SYSTEM, odd, 1}]),
         receive {report, Report} -> ?assertMatch({ok, #{outcome := identical}}, Report) end,
         ct:pal("~p~n~p", [Verdicts, Summary]),
         [Found] = [V || #{signature := {?SYSTEM, Name, []}} = V <- Verdicts, Name =:= Who],
         ?assertEqual({Who, Expected}, {Who, {map_get(verdict, Found), map_get(reason, Found)}}),
         ?assertEqual({Who, Calls}, {Who, [kind(Event) || #{event := Event} <- map_get(steps, Found),
                                                          lists:member(element(1, Event), [call, return])]}),
         ?assertMatch([#{verdict := yes}], [V || #{signature := {?SYSTEM, killed, _}} = V <- Verdicts])
     end || {Who, Expected, Calls} <- [{waits, {yes, undefined}, both(1) ++ both(3)},
                                       {sends, {inconclusive, {gap, killed}}, both(1)},
                                       {spins, {inconclusive, {gap, killed}}, []}, {calls, {inconclusive, {gap, killed}}, []}]].

both(N) -> [{call, [N]}, {return, N}].

kind({call, _, {?SYSTEM, odd, Args}, _}) -> {call, Args};
kind({return, _, {?SYSTEM, odd, 1}, Value, _}) -> {return, Value}.

only_kinds_that_are_named_are_reported(Config) ->
    Dir = record(all, [], Config),
    [?assertEqual({Functions, Expected}, {Functions, counted(Dir, Functions)})
     || {Functions, Expected} <- [{#{}, {0, 0}}, {#{{?SYSTEM, odd, 1} => [call]}, {4, 0}},
                                 {#{{?SYSTEM, odd, 1} => [return]}, {0, 2}},
                                  {#{{ets, insert, 2} => [call]}, {10, 0}}, {#{{ets, insert, 2} => [return]}, {0, 9}},
                                  {#{{erlang, exit, 2} => [call]}, {2, 0}}, {#{{erlang, exit, 2} => [return]}, {0, 1}}]].

counted(Dir, Functions) ->
    {ok, #{outcome := identical}, Counts} = witness_replay:fold(fun
        ({call, _, _, _}, _, {Calls, Returns}) -> {Calls + 1, Returns};
        ({return, _, _, _, _}, _, {Calls, Returns}) -> {Calls, Returns + 1};
        (_, _, Counts) -> Counts
    end, {0, 0}, #{dir => Dir, functions => Functions}),
    Counts.

what_is_replayed_is_the_same_log(Config) ->
    Dir = record(all, [], Config),
    [begin
         Log = file(Extension, Config),
         {Replayed, #{outcome := ok}} = judged({log, {replay, (replay(Dir))#{events => Log}}}, functions()),
         {Written, #{outcome := ok}} = judged({log, {file, Log}}, functions()),
         ?assertEqual(traces(Replayed), traces(Written))
     end || Extension <- [".log", ".jsonl"]].

native_functions_hide_calls(Config) ->
    Dir = record(hidden, [], Config),
    [begin
         {Verdicts, _} = judged({log, {replay, replay(Dir)}}, Functions),
         ?assertEqual(Expected, [{Name, Verdict, Reason}
                                 || Name <- [hides, own],
                                    #{signature := {?SYSTEM, Of, []}, verdict := Verdict, reason := Reason} <- Verdicts,
                                    Of =:= Name])
     end || {Functions, Expected} <- [{[{erlang, link, 1}], [{hides, inconclusive, {gap, hidden_calls}}, {own, yes, undefined}]},
                                      {[{erlang, register, 2}], [{hides, yes, undefined}, {own, yes, undefined}]}]].

%% Two processes take the same number in some order. What they do afterwards is not decisive.
a_search_sees_calls_and_a_replay_of_what_it_found_too(Config) ->
    File = file(".hml", Config),
    ok = file:write_file(File, """
        once: per N over _ returns witness_recorded_functions:take/1 -> N
          check [_ returns witness_recorded_functions:take/1 -> _] [_ returns witness_recorded_functions:take/1 -> _] ff.
        first: with witness_recorded_functions:taker(_, _) over _ calls ets:insert(_, _)
          check [_ calls ets:insert(_, {free, 4})] ff.
        """),
    [begin
         Dir = file(".rec", Config),
         {ok, #{outcome := {violated, _, ~"once"}}} = search(takes, [Then], [File], Dir, Config),
         #{outcome := violated, verdicts := #{no := 1}} = summary(#{system => {log, {replay, replay(Dir)}}, specs => [File],
                                                                    instrument => central})
     end || Then <- [ends, waits]],
    {ok, #{outcome := passed}} = search(own, [], [File], file(".rec", Config), Config),
    Refused = file(".hml", Config),
    ok = file:write_file(Refused, "a: with m:f(_) over _ calls lists:keymember(_, _, _) check ff."),
    {error, {witness_search, {functions, [{{lists, keymember, 3}, built_in}]}} = Error} =
        search(own, [], [Refused], file(".rec", Config), Config),
    ?assertMatch({match, _}, re:run(witness:format_error(Error), "cannot be observed")).

a_search_judges_calls_before_a_halt(Config) ->
    File = file(".hml", Config),
    ok = file:write_file(File, """
        one: with witness_recorded_functions:halts() over _ calls witness_recorded_functions:odd(_)
          check [_ calls witness_recorded_functions:odd(1)] ff.
        """),
    {ok, #{outcome := {violated, _, ~"one"}}} = search(halts, [], [File], file(".rec", Config), Config).

search(Function, Args, Specs, Dir, Config) ->
    witness_search:search((options(Dir, Function, Args, Config))#{specs => Specs, schedules => 100}).

%% --- refused ---------------------------------------------------------------------

what_cannot_be_seen_is_refused(Config) ->
    Dir = record(own, [], Config),
    [begin
         File = file(".hml", Config),
         ok = file:write_file(File, ["a: with m:f(_) over _ calls ", Called, " check [_ calls ", Called, "] ff."]),
         #{outcome := refused, refused := Text} = summary(#{system => {log, {replay, replay(Dir)}}, specs => [File]}),
         receive {report, {error, {witness_replay, {functions, [_]}}}} -> ok end,
         ?assertMatch({_, {match, _}}, {Text, re:run(Text, ["the calls of .* cannot be observed: .*", Why])})
     end || {Called, Why} <- [{"no_such_module:f()", "no such module"}, {"witness_recorded_functions:no()", "no such function"},
                              {"erlang:no_such_function()", "no such function"},
                              {"ssl:connect(_, _)", "its module ssl is not woven"},
                              {"lists:keymember(_, _, _)", "function of the VM"}, {"erlang:length(_)", "function of the VM"},
                              {"erlang:self()", "function of the VM"}, {"erlang:spawn(_)", "function of the VM"},
                              {"erlang:put(_, _)", "function of the VM"}, {"lists:sublist(_, _)", "Witness or the VM calls"},
                              {"code:ensure_loaded(_)", "Witness or the VM calls"},
                              {"code_server:call(_)", "Witness or the VM calls"},
                              {"atomics:add(_, _, _)", "other functions of the VM"},
                              {"erlang:process_flag(_, _)", "not all of them"}]].

a_recording_without_a_replay_is_refused(Config) ->
    Dir = record(own, [], Config),
    Monitor = {{'_', '_', '_'}, {witness_recorded_monitor, [{?SYSTEM, down, 1}]}},
    {error, {witness_run_start, {functions, Text}}} = witness:start(#{system => {log, {recording, Dir}}, monitors => [Monitor]}),
    ?assertMatch({match, _}, re:run(Text, "cannot be seen here.*replay --spec")),
    File = file(".hml", Config),
    ok = file:write_file(File, "a: with m:f(_) over _ calls m:g(_) check [_ calls m:g(_)] ff."),
    {error, {witness_spec, [#{code := needs_functions}]}} = witness:start(#{system => {log, {recording, Dir}}, specs => [File]}).

%% Where a program is recorded, monitors that are written by hand see as little as others.
a_recorded_run_is_refused(Config) ->
    Monitor = {{'_', '_', '_'}, {witness_recorded_monitor, [{?SYSTEM, down, 1}]}},
    Dir = file(".rec", Config),
    {error, {witness_run_start, {functions, Text}}} =
        witness_recorded_run:start(options(Dir, own, [], Config), #{monitors => [Monitor], log => false}, fun(_) -> ok end),
    ?assertMatch({match, _}, re:run(Text, "cannot be seen here.*replay --spec")),
    ?assertNot(filelib:is_file(Dir)).

%% --- helpers ---------------------------------------------------------------------

%% What a process does that does not depend on when messages come.
traces(Verdicts) ->
    lists:sort([{plain(Signature), [Event || Event <- Trace, lists:member(element(1, Event), [init, call, return, exit])]}
                || #{signature := Signature, info := Trace} <- Verdicts]).

plain({M, F, Args}) when is_list(Args) -> {M, F, length(Args)};
plain({M, F, Args}) -> {M, F, Args};
plain(Other) -> element(1, Other).

judged(System, Functions) ->
    Monitor = {{'_', '_', '_'}, {witness_recorded_monitor, Functions}},
    {ok, Run} = witness:start(#{system => System, monitors => [Monitor], log => false}),
    {ok, Summary} = witness:await(Run, 600_000),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    {Verdicts, Summary}.

summary(Options) ->
    {ok, Run} = witness:start(Options#{log => false}),
    {ok, Summary} = witness:await(Run, 600_000),
    {ok, _} = witness:stop(Run),
    Summary.

replay(Dir) ->
    Self = self(),
    #{dir => Dir, on_report => fun(Report) -> Self ! {report, Report} end}.

record(Function, Args, Config) ->
    Dir = file(".rec", Config),
    {ok, #{outcome := recorded}} = witness_record:record(options(Dir, Function, Args, Config)),
    Dir.

options(Dir, Function, Args, Config) ->
    #{run => {?SYSTEM, Function, Args}, dir => Dir, pa => [proplists:get_value(programs, Config)]}.

file(Extension, Config) ->
    filename:join(proplists:get_value(priv_dir, Config), "f-" ++ integer_to_list(erlang:unique_integer([positive])) ++ Extension).
