-module(witness_replay_ends_SUITE).
-moduledoc """
Every way in which the VM ends a process, or refuses what one asks for, recorded and replayed: the outcome is the same each
time, and a replayed process takes no more than the recorded one. Also, what monitors are told of a process that was ended by
a signal.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

%% The system gives each VM no more memory than this. Most of that is reserved, and never used.
-define(MOST_KIB, "4000000").

suite() -> [{timetrap, {minutes, 10}}].

all() -> [{group, Group} || {Group, _, _} <- groups()].

groups() ->
    [{outcomes, [], [no_memory_is_told_and_replayed_to_there | [Case || {Case, _} <- programs()]]},
     {heaps, [], [a_process_that_was_killed_takes_no_gigabytes, a_limit_of_the_replayed_vm_is_named]},
     {gaps, [], [a_process_that_waited_has_a_complete_trace, a_process_that_hibernated_has_a_complete_trace,
                 a_process_that_has_woken_has_done_what_comes_then, a_process_that_computed_has_a_gap_of_its_own,
                 gaps_of_others_change_no_verdict,
                 a_gap_is_told_by_process_signature_and_reason, what_the_replay_itself_ends_may_have_sent_more,
                 a_long_computation_before_the_end_is_waited_for, hibernation_that_fails_is_replayed]}].

programs() ->
    [{a_limit_that_a_process_sets, {flag, []}},
     {a_limit_from_birth, {option, []}},
     {a_limit_that_a_replay_does_not_reach, {brief, []}},
     {a_limit_of_a_request, {request, []}},
     {a_limit_of_the_system, {by_default, []}},
     {a_limit_of_the_whole_vm, {brief, ["+hmax", "60000"]}},
     {a_limit_of_binaries, {binaries, []}},
     {a_limit_that_kills_no_process, {unlimited, []}},
     {what_the_flag_returns, {values, []}},
     {a_list_without_end, {endless, []}},
     {binaries_without_end, {endless_binaries, []}},
     {a_signal_while_it_waits, {waiting, []}},
     {too_many_processes, {processes, ["+P", "1024"]}},
     {ports_that_are_refused, {ports, []}},
     {too_many_ports, {open_ports, ["+Q", "1024"]}},
     {tables_that_are_refused, {tables, []}},
     {names_that_cannot_be, {atoms, []}},
     {terms_that_are_too_large, {sizes, []}}].

init_per_suite(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = filelib:ensure_path(Out),
    Root = witness_checkout:root(filename:dirname(code:which(?MODULE))),
    [{ok, _} = compile:file(filename:join([Root, "test", "recorded", Name]), [{outdir, Out}, debug_info])
     || Name <- ["witness_recorded_limits", "witness_recorded_root", "witness_recorded_gaps"]],
    {ok, Started} = application:ensure_all_started(witness),
    [{pa, [Out]}, {root, Root}, {started, Started} | Config].

end_per_suite(Config) -> [ok = application:stop(App) || App <- lists:reverse(proplists:get_value(started, Config))].

init_per_group(_, Config) -> Config.

end_per_group(_, _) -> ok.

%% --- outcomes --------------------------------------------------------------------

a_limit_that_a_process_sets(Config) -> program(?FUNCTION_NAME, Config).
a_limit_from_birth(Config) -> program(?FUNCTION_NAME, Config).
a_limit_that_a_replay_does_not_reach(Config) -> program(?FUNCTION_NAME, Config).
a_limit_of_a_request(Config) -> program(?FUNCTION_NAME, Config).
a_limit_of_the_system(Config) -> program(?FUNCTION_NAME, Config).
a_limit_of_binaries(Config) -> program(?FUNCTION_NAME, Config).
a_limit_that_kills_no_process(Config) -> program(?FUNCTION_NAME, Config).
what_the_flag_returns(Config) -> program(?FUNCTION_NAME, Config).
a_list_without_end(Config) -> program(?FUNCTION_NAME, Config).
binaries_without_end(Config) -> program(?FUNCTION_NAME, Config).
a_signal_while_it_waits(Config) -> program(?FUNCTION_NAME, Config).
too_many_processes(Config) -> program(?FUNCTION_NAME, Config).
ports_that_are_refused(Config) -> program(?FUNCTION_NAME, Config).
too_many_ports(Config) -> program(?FUNCTION_NAME, Config).
tables_that_are_refused(Config) -> program(?FUNCTION_NAME, Config).
names_that_cannot_be(Config) -> program(?FUNCTION_NAME, Config).
terms_that_are_too_large(Config) -> program(?FUNCTION_NAME, Config).

%% The VM ends when it has no memory. What was written until then is there.
no_memory_is_told_and_replayed_to_there(Config) ->
    {Dir, Options} = options(witness_recorded_limits, no_memory, [], #{}, Config),
    ?assertMatch({ok, #{outcome := {ended, {vm, _}}}}, witness_record:record(Options)),
    case witness_replay:replay(#{dir => Dir}) of
        {ok, Report} -> ?assertMatch(#{outcome := identical, complete := false}, Report);
        %% Nothing was written yet.
        {error, Reason} -> ?assertEqual({witness_replay, no_processes}, Reason)
    end.

%% The recorder's own processes have this limit, too.
a_limit_of_the_whole_vm(Config) ->
    Dir = recorded(witness_recorded_limits, option, ["+hmax", "5000000"], #{}, Config),
    replayed(Dir).

%% The result is the exit reason of the first process, which is compared.
program(Case, Config) ->
    {Case, {Function, Arguments}} = lists:keyfind(Case, 1, programs()),
    Dir = recorded(witness_recorded_limits, Function, Arguments, #{}, Config),
    ct:pal("~p", [result(Dir)]),
    replayed(Dir),
    replayed(Dir).

result(Dir) ->
    {ok, Recording} = witness_log_recording:open(Dir),
    {ok, {result, Result}} = witness_log_recording:fold(fun({exit, Reason}, _) -> Reason; (_, Found) -> Found end, none, 1,
                                                        Recording),
    Result.

recorded(Module, Function, Arguments, More, Config) ->
    {Dir, Options} = options(Module, Function, Arguments, More, Config),
    {ok, #{outcome := recorded}} = witness_record:record(Options),
    Dir.

options(Module, Function, Arguments, More, Config) ->
    Name = io_lib:format("~b", [erlang:unique_integer([positive])]),
    Dir = lists:flatten(filename:join(proplists:get_value(priv_dir, Config), Name)),
    {Dir, More#{run => {witness_recorded_root, run, [Module, Function]}, dir => Dir, pa => proplists:get_value(pa, Config),
                vm_args => ["-kernel", "logger_level", "none" | Arguments]}}.

replayed(Dir) ->
    {ok, Report} = witness_replay:replay(#{dir => Dir}),
    ?assertMatch(#{outcome := identical, complete := true, cut := 0}, Report),
    Report.

%% --- heaps -----------------------------------------------------------------------

a_process_that_was_killed_takes_no_gigabytes(Config) ->
    Witness = filename:join([proplists:get_value(root, Config), "bin", "witness"]),
    [begin
         Dir = recorded(witness_recorded_limits, Function, [], #{}, Config),
         Port = open_port({spawn_executable, "/bin/sh"},
                          [{args, ["-c", "ulimit -v " ?MOST_KIB "; exec \"$0\" \"$@\"", Witness, "replay", Dir]},
                          exit_status, stderr_to_stdout, binary]),
         {Status, Text} = output(Port, []),
         ?assertMatch({Function, 0, {_, _}}, {Function, Status, binary:match(Text, ~"IDENTICAL")})
     end || Function <- [flag, option, endless, endless_binaries]].

output(Port, Gathered) ->
    receive
        {Port, {data, Data}} -> output(Port, [Gathered | Data]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Gathered)}
    end.

%% The replay does not let a limit of its VM end a process unnoticed.
a_limit_of_the_replayed_vm_is_named(Config) ->
    Dir = recorded(witness_recorded_gaps, large, [], #{}, Config),
    ?assertMatch({ok, #{outcome := identical}}, witness_replay:replay(#{dir => Dir})),
    {error, Reason} = witness_replay:replay(#{dir => Dir, vm_args => ["+hmax", "1000000"]}),
    ct:pal("~ts", [witness:format_error(Reason)]).

%% --- gaps ------------------------------------------------------------------------

judged(Dir, Specs, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), io_lib:format("~b.hml", [erlang:unique_integer([positive])])),
    ok = file:write_file(File, Specs),
    {ok, Run} = witness:start(#{system => {log, {replay, #{dir => Dir}}}, specs => [lists:flatten(File)]}),
    {ok, Summary} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run),
    Summary.

%% `specs/0` is about the process that is ended, `other/0` about one that is not.
specs() ->
    "ended: with witness_recorded_gaps:worker(_, _) over _ : _ ! _ monitor max X.([_ : _ ! bad] ff and [_ : _ ! Msg when Msg =/= bad] X).\n".

other() -> "other: with witness_recorded_gaps:listener(_) over _ ? one, _ : _ ! done check [_ ? one] <_ : _ ! done> tt.\n".

a_process_that_waited_has_a_complete_trace(Config) ->
    Dir = recorded(witness_recorded_gaps, waits, [], #{}, Config),
    ?assertMatch(#{outcome := ok, gaps := 0, missing := [], verdicts := #{no := 0}}, judged(Dir, specs(), Config)).

%% The process never wakes, neither in the program nor in a replay: if it woke, it would send what is wrong.
a_process_that_hibernated_has_a_complete_trace(Config) ->
    [begin
         Dir = recorded(witness_recorded_gaps, {hibernates, [How]}, [], #{}, Config),
         ?assertMatch({How, {ok, #{outcome := identical, killed := Killed}}} when Killed > 0,
                      {How, witness_replay:replay(#{dir => Dir})}),
         ?assertMatch({How, #{outcome := ok, gaps := 0, missing := [], verdicts := #{no := 0, inconclusive := 0}}},
                      {How, judged(Dir, specs(), Config)})
     end || How <- [erlang, proc_lib, value, call, server, server_after] ++ [How || How <- [bare, bare_value], has_bare()]].

has_bare() -> erlang:function_exported(erlang, hibernate, 0).

a_process_that_has_woken_has_done_what_comes_then(Config) ->
    Waits = recorded(witness_recorded_gaps, wakes_and_waits, [], #{}, Config),
    ?assertMatch(#{outcome := violated, gaps := 0}, judged(Waits, specs(), Config)),
    Computes = recorded(witness_recorded_gaps, wakes_and_computes, [], #{}, Config),
    ?assertMatch(#{gaps := 1, verdicts := #{no := 0, inconclusive := 1}}, judged(Computes, specs(), Config)).

%% A failed hibernation has no entry, recorded or replayed.
hibernation_that_fails_is_replayed(Config) ->
    Dir = recorded(witness_recorded_gaps, refused, [], #{}, Config),
    ?assertMatch({ok, #{outcome := identical, complete := true}}, witness_replay:replay(#{dir => Dir})).

a_process_that_computed_has_a_gap_of_its_own(Config) ->
    Dir = recorded(witness_recorded_gaps, computes, [], #{}, Config),
    ?assertMatch(#{outcome := untrusted, gaps := 1, verdicts := #{inconclusive := 1, no := 0}}, judged(Dir, specs(), Config)).

gaps_of_others_change_no_verdict(Config) ->
    [begin
         Dir = recorded(witness_recorded_gaps, Function, [], #{}, Config),
         ?assertMatch({Function, #{outcome := ok, verdicts := #{yes := 1, inconclusive := 0}}},
                      {Function, judged(Dir, other(), Config)})
     end || Function <- [waits, computes]].

a_gap_is_told_by_process_signature_and_reason(Config) ->
    Dir = recorded(witness_recorded_gaps, computes, [], #{}, Config),
    #{missing := [#{process := P, signature := {witness_recorded_gaps, worker, _}, reason := killed}],
      warnings := [#{code := gaps, text := Text}]} =
        judged(Dir, other(), Config),
    [?assertMatch({_, _}, binary:match(Text, Part))
     || Part <- [witness_event:format_proc(P), ~"witness_recorded_gaps:worker/2", ~"1 gap", ~"ended by a signal"]].

%% The process would have computed for minutes, and then have sent something: it is not known how far it came.
what_the_replay_itself_ends_may_have_sent_more(Config) ->
    Dir = recorded(witness_recorded_gaps, silent, [], #{}, Config),
    ?assertMatch(#{outcome := untrusted, missing := [#{reason := killed}], verdicts := #{inconclusive := 1}},
                 judged(Dir, specs(), Config)).

%% No process can have ended it before it waits, or before it ends by itself.
a_long_computation_before_the_end_is_waited_for(Config) ->
    [begin
         Dir = recorded(witness_recorded_gaps, Function, [], #{}, Config),
         ?assertMatch({Function, #{outcome := violated}}, {Function, judged(Dir, specs(), Config)})
     end || Function <- [computes_and_ends, computes_and_waits]].
