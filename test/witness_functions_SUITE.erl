-module(witness_functions_SUITE).
-moduledoc """
Calls and returns of functions as events of properties, in systems that run: all of them come, in order, to the monitors that name the
function, and to no others. What cannot be seen is refused, and what is not seen any more is not judged.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(SYSTEM, witness_functions_system).
-define(RELOADED, witness_functions_reloaded).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [{group, native_outline}, {group, native_central}, {group, evm_central}, {group, native_inline}, {group, evm_inline},
     what_cannot_be_seen_is_refused,
     what_cannot_be_observed_is_refused, a_log_says_which_functions_it_has, monitors_written_by_hand_are_refused_too].

groups() ->
    Each = [every_call_and_return_comes_in_order, an_exception_is_no_return, who_names_no_function_sees_none,
            new_code_ends_in_doubt, a_run_and_its_log_agree, other_functions_are_not_added_later],
    Inline = [every_call_and_return_comes_in_order, an_exception_is_no_return, who_names_no_function_sees_none],
    [{native_outline, [], Each}, {native_central, [], Each}, {evm_central, [], Each}, {native_inline, [], Inline},
     {evm_inline, [], Inline}].

init_per_group(Group, Config) ->
    {Source, Instrument} = case Group of
        native_outline -> {native, outline};
        native_central -> {native, central};
        evm_central -> {evm, central};
        native_inline -> {native, inline};
        evm_inline -> {evm, inline}
    end,
    case witness_source:init(Source, Config) of
        {skip, _} = Skip -> Skip;
        %% Other modules need not be woven.
        Ready when Instrument =:= inline -> [{options, #{instrument => inline, weave => [?SYSTEM]}} | Ready];
        Ready -> [{options, #{instrument => Instrument}} | Ready]
    end.

end_per_group(_, _) -> ok.

init_per_suite(Config) ->
    ok = code:ensure_modules_loaded([?MODULE, ?SYSTEM]),
    Config.

end_per_suite(_) -> ok.

init_per_testcase(_, Config) ->
    {ok, _} = application:ensure_all_started(witness),
    Config.

end_per_testcase(_, _) -> application:stop(witness).

%% Each worker calls with 1, 2, 3..., sends the number, and returns it.
-define(IN_ORDER, """
in_order: with witness_functions_system:worker(_, _, _)
over _ calls witness_functions_system:step(_, _), _ returns witness_functions_system:step/2 -> _, _ : _ ! {done, _, _}
monitor
  max Next(N = 1).(
    [_ calls witness_functions_system:step(M, _)] (
      [_ : _ ! {done, _, M}] (
        [_ returns witness_functions_system:step/2 -> {ok, M} when M =:= N] Next(N + 1)
        and [_ returns witness_functions_system:step/2 -> R when R =/= {ok, M}; M =/= N] ff
        and [else] ff)
      and [else] ff)
    and [else] ff).
""").

every_call_and_return_comes_in_order(Config) ->
    File = write(?IN_ORDER, Config),
    ?assertMatch(#{outcome := ok, verdicts := #{yes := 4}}, run({?SYSTEM, workers, [4, 2_000, none]}, [File], #{}, Config)),
    ?assertMatch(#{outcome := violated, verdicts := #{no := 1, yes := 3}},
                 run({?SYSTEM, workers, [4, 50, 20]}, [File], #{}, Config)).

an_exception_is_no_return(Config) ->
    File = write("""
        odd: with witness_functions_system:raise(_) over _ calls witness_functions_system:fail(_), _ returns witness_functions_system:fail/1 -> _ check
          max X.([_ calls witness_functions_system:fail(N)] (
            [_ returns witness_functions_system:fail/1 -> M when M =/= N orelse M rem 2 =:= 0] ff
            and [_ returns witness_functions_system:fail/1 -> M when M =:= N andalso M rem 2 =:= 1] X
            and [_ calls witness_functions_system:fail(_) when N rem 2 =:= 1] ff
            and [_ calls witness_functions_system:fail(_) when N rem 2 =:= 0] [_ returns witness_functions_system:fail/1 -> _] X)).
        count: with witness_functions_system:raise(_) over _ calls witness_functions_system:fail(_), _ returns witness_functions_system:fail/1 -> _, _ ** _
          let Calls = count {_ calls witness_functions_system:fail(_)}
          let Returns = count {_ returns witness_functions_system:fail/1 -> _}
          check max X.([_ ** _ when Calls =/= 100; Returns =/= 50] ff and [else] X).
        """, Config),
    ?assertMatch(#{outcome := ok, verdicts := #{yes := 2}, vacuous := 0}, run({?SYSTEM, raises, [100]}, [File], #{}, Config)).

%% `over` of the first names a function; the others have no `over`, or another function.
who_names_no_function_sees_none(Config) ->
    File = write(["""
        all: with witness_functions_system:worker(_, _, _) check
          [_ <- _, _] max X.([_ : _ ! {done, _, _}] X and [_ ** _] tt and [else] ff).
        other: with witness_functions_system:worker(_, _, _) over _ calls witness_functions_system:waits(_), _ : _ ! _ check
          max X.([_ : _ ! {done, _, _}] X and [else] ff).

        """, ?IN_ORDER], Config),
    ?assertMatch(#{outcome := ok, verdicts := #{yes := 6}}, run({?SYSTEM, workers, [2, 100, none]}, [File], #{}, Config)).

%% The second call is not seen. What is not about functions is judged as before.
new_code_ends_in_doubt(Config) ->
    ok = load(),
    File = write(["""
        twice: with witness_functions_system:between(_, _) over _ calls witness_functions_reloaded:one(), _ ** _ check
          [_ calls witness_functions_reloaded:one()] <_ calls witness_functions_reloaded:one()> tt.
        sees: with witness_functions_system:between(_, _) over _ ? seen, _ ** _ check <_ ? seen> tt.
        """], Config),
    [begin
         Log = filename:join(proplists:get_value(priv_dir, Config), lists:concat([log, erlang:unique_integer([positive]), ".log"])),
         #{outcome := Outcome, verdicts := Verdicts, warnings := Warnings} = Summary =
             run({?SYSTEM, reloads, [?RELOADED, Reload]}, [File], #{log_file => Log}, Config),
         %% The log names the functions until the first event that may miss a call.
         #{refused := Refused, verdicts := InLog} = check(Log, File),
         ?assertEqual({Expected, 0}, {case Refused of undefined -> ok; _ -> untrusted end, map_get(no, InLog)}),
         ?assertEqual({Expected, Counts}, {Outcome, Verdicts}, Summary),
         ?assertEqual([replaced || Expected =:= untrusted], [Code || #{code := replaced = Code} <- Warnings])
     end || {Reload, Expected, Counts} <- [{fun() -> ok end, ok, #{yes => 2, no => 0, inconclusive => 0}},
                                           {fun load/0, untrusted, #{yes => 1, no => 0, inconclusive => 1}}]].

a_run_and_its_log_agree(Config) ->
    File = write(?IN_ORDER, Config),
    [begin
         Log = filename:join(proplists:get_value(priv_dir, Config), lists:concat([log, erlang:unique_integer([positive]), Format])),
         #{outcome := Outcome, verdicts := Verdicts} = run({?SYSTEM, workers, [3, 40, Skip]}, [File], #{log_file => Log}, Config),
         ?assertMatch(#{outcome := Outcome, verdicts := Verdicts}, check(Log, File))
     end || Format <- [".log", ".jsonl"], Skip <- [none, 7]].

other_functions_are_not_added_later(Config) ->
    File = write(?IN_ORDER, Config),
    Others = write("a: with m:f(_) over _ calls lists:keymember(_, _, _) check ff.", Config),
    Fewer = write("a: with m:f(_) over _ calls witness_functions_system:step(_, _) check ff.", Config),
    {ok, Run} = witness:start(options({?SYSTEM, waits, [self()]}, [File], #{replaceable => true}, Config)),
    #{instrument := Instrument} = proplists:get_value(options, Config),
    [begin
         ?assertMatch({error, {witness_run, {not_replaced, functions}}}, witness:replace(Run, [Others])),
         ?assertMatch({ok, _}, witness:replace(Run, [Fewer]))
     end || Instrument =:= outline],
    receive {waits, P} -> P ! stop end,
    {ok, _} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run).

%% --- refused ---------------------------------------------------------------------

what_cannot_be_seen_is_refused(Config) ->
    File = write(?IN_ORDER, Config),
    System = {?SYSTEM, workers, [1, 1, none]},
    {error, {witness_spec, [#{code := needs_functions, line := 2}]} = Error} =
        witness:start((options(System, [File], #{}, Config))#{source => evm, instrument => outline}),
    ?assertMatch({match, _}, re:run(witness:format_error(Error), "cannot be seen here")).

what_cannot_be_observed_is_refused(Config) ->
    [begin
         File = write(["a: with m:f(_) over _ calls ", Called, " check [_ calls ", Called, "] ff."], Config),
         {error, {witness_run_start, {functions, Text}} = Error} =
             witness:start((options({?SYSTEM, workers, [1, 1, none]}, [File], #{}, Config))#{instrument => central}),
         ?assertEqual(Text, witness:format_error(Error)),
         ?assertMatch({match, _}, re:run(Text, [File, ":1: the calls of .* cannot be observed: .*", Why]))
     end || {Called, Why} <- [{"no_such_module:f()", "no such module"}, {"lists:no_such_function(_)", "no such function"},
                              {"lists:keymember(_)", "no such function"}, {"erlang:length(_)", "not all of them are calls"},
                              {"erlang:self()", "not all of them are calls"}]].

monitors_written_by_hand_are_refused_too(Config) ->
    Monitor = {witness_monitor_alphabet_tests, [{call, {?SYSTEM, step, 2}}]},
    {error, {witness_run_start, {functions, Text}}} =
        witness:start(options({?SYSTEM, workers, [1, 1, none]}, [],
                              #{source => evm, monitors => [{{?SYSTEM, worker, 3}, Monitor}]}, Config)),
    ?assertMatch({match, _}, re:run(Text, "cannot be seen here")).

%% A log without the line, one with it, and one with a line for another function.
a_log_says_which_functions_it_has(Config) ->
    File = write("a: with m:f(_) over _ calls m:g(_) check [_ calls m:g(1)] ff.", Config),
    Lines = "init(\"p\",_,{m,f,[1]})\ncall(\"p\",{m,g,[1]})\nexit(\"p\",normal)\n",
    [begin
         Log = filename:join(proplists:get_value(priv_dir, Config), "said.log"),
         ok = file:write_file(Log, [Head, Lines]),
         ?assertMatch({Head, #{outcome := Outcome}}, {Head, check(Log, File)})
     end || {Head, Outcome} <- [{"", refused}, {"functions([{m,g,1}])\n", violated}, {"functions([{m,h,1},{m,g,1}])\n", violated},
                                {"functions([{m,g,2}])\n", refused}]].

%% --- helpers ---------------------------------------------------------------------

options(System, Specs, More, Config) ->
    Source = case proplists:get_value(source, Config) of undefined -> #{}; Named -> #{source => Named} end,
    lists:foldl(fun maps:merge/2, #{system => System, specs => Specs, log => false},
                [Source, proplists:get_value(options, Config, #{}), More]).

run(System, Specs, More, Config) ->
    {ok, Run} = witness:start(options(System, Specs, More, Config)),
    {ok, Summary} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run),
    Summary.

check(Log, File) ->
    {ok, Run} = witness:start(#{system => {log, {file, Log}}, specs => [File], log => false}),
    {ok, Summary} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run),
    Summary.

write(Text, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), lists:concat([functions, erlang:unique_integer([positive]), ".hml"])),
    ok = file:write_file(File, Text),
    File.

load() ->
    Forms = [{attribute, 1, module, ?RELOADED}, {attribute, 1, export, [{one, 0}]},
             {function, 1, one, 0, [{clause, 1, [], [], [{atom, 1, one}]}]}],
    {ok, ?RELOADED, Code} = compile:forms(Forms, []),
    _ = code:purge(?RELOADED),
    {module, ?RELOADED} = code:load_binary(?RELOADED, "", Code),
    ok.
