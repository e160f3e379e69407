-module(witness_inline_functions_SUITE).
-moduledoc """
Calls and returns as events of inline monitors: they are those of the VM's tracing, in the same order among the other events. What
does not report its calls is refused before anything runs, and what reports them no longer is not judged.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(S, witness_inline_functions_system).
-define(M, witness_inline_functions_monitor).

all() ->
    [events_are_those_of_tracing, each_monitor_is_given_what_it_names, a_monitor_calls_without_events,
     a_process_that_is_ended_while_it_waits_is_judged, a_call_between_callbacks_is_not_missing_when_the_process_is_killed,
     events_before_the_stop_are_judged, events_carry_their_time, functions_that_do_not_report_are_refused,
     modules_of_functions_are_woven_by_default, a_replaced_module_ends_in_doubt].

suite() -> [{timetrap, {minutes, 3}}].

init_per_suite(Config) ->
    #{level := Before} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    {ok, _} = application:ensure_all_started(witness),
    ok = code:ensure_modules_loaded([?S, ?M, witness_await]),
    [{level, Before} | Config].

end_per_suite(Config) -> ok = logger:set_primary_config(level, proplists:get_value(level, Config)).

end_per_testcase(_, _) -> ?assertEqual(no, witness_weave:woven(?S)).

%% --- the same events as by tracing ------------------------------------------------

events_are_those_of_tracing(_) ->
    Sink = spawn_link(fun Loop() -> receive stop -> ok; _ -> Loop() end end),
    Plain = [{plain, 3}, {sum, 1}, {loop, 2}, {twice, 1}, {exported, 1}, {fails, 1}, {positive, 1}, {even, 1}, {odd, 1},
             {woken, 2}],
    Server = [{init, 1}, {handle_call, 3}, {handle_cast, 2}, {handle_info, 2}, {terminate, 2}, {add, 2}],
    [begin
         System = {?S, main, [[{F, Args}]]},
         Monitors = [{{?S, Name, '_'}, {?M, Alphabet}} || Name <- Names],
         [{yes, _} | _] = Traced = gathered(#{system => System, monitors => Monitors, instrument => outline}),
         ?assertEqual(Traced, gathered(#{system => System, monitors => Monitors, instrument => inline, weave => [?S]}))
     end || {F, Args, Names, Functions, Others} <-
                [{plain, [Sink, 5, How], [plain, '-woken/2-fun-0-'], Plain, [init, fork, send, exit]}
                 || How <- [normal, exit, error, throw]]
                ++ [{Client, [], [init], Server, [init, exit]} || Client <- [client, crashing_client]],
            Alphabet <- [Others ++ alphabet(Reports, Functions) || Reports <- [[call, return], [call], [return]]]
                ++ [alphabet([call, return], [One]) || One <- Functions]],
    Sink ! stop.

alphabet(Reports, Functions) -> [{Report, {?S, F, A}} || {F, A} <- Functions, Report <- Reports].

%% Verdicts and their events, without what differs between two runs.
gathered(Options) ->
    {#{warnings := []}, Verdicts} = finished(Options),
    lists:sort([{Verdict, plain(Events)} || #{verdict := Verdict, info := Events} <- Verdicts]).

plain({exit, P, {Reason, Stack}, _}) when is_list(Stack) -> plain({exit, P, Reason, none});
%% Stack traces have more frames.
plain([{_, _, _, [_ | _]} | _]) -> stack;
plain(Event) when is_tuple(Event) -> list_to_tuple(plain(tuple_to_list(Event)));
plain([Head | Tail]) -> [plain(Head) | plain(Tail)];
plain(P) when is_pid(P) -> process;
plain(Ref) when is_reference(Ref) -> reference;
plain(Time) when is_integer(Time), abs(Time) > 1_000_000 -> undefined;
plain(Term) -> Term.

each_monitor_is_given_what_it_names(_) ->
    Alphabets = [all, [call_of(twice)], [{return, {?S, twice, 1}}], [call_of(exported), exit], [send]],
    {_, Verdicts} = finished(#{system => {?S, waiter, [self(), 3]}, monitors => [{{?S, waiter, 2}, {?M, A}} || A <- Alphabets],
                               weave => [?S]}, fun ended/0),
    ?assertMatch([[init, send, recv, exit], [call, call, call], [return, return, return], [exit], [send]],
                 [[element(1, E) || E <- Events] || #{info := Events} <- Verdicts]),
    ?assertMatch([{call, _, {?S, twice, [1]}, _} | _], maps:get(info, lists:nth(2, Verdicts))),
    ?assertMatch([{return, _, {?S, twice, 1}, 2, _} | _], maps:get(info, lists:nth(3, Verdicts))).

call_of(F) -> {call, {?S, F, 1}}.

%% The monitor calls the function that it names.
a_monitor_calls_without_events(_) ->
    {_, [#{verdict := yes, info := Events}]} =
        finished(#{system => {?S, waiter, [self(), 2]}, weave => [?S],
                   monitors => [{{?S, waiter, 2}, {?M, {[call_of(twice), call_of(exported)], {?S, exported, [1]}}}}]},
                 fun ended/0),
    ?assertMatch([{call, _, {?S, twice, [1]}, _}, {call, _, {?S, twice, [2]}, _}], Events).

events_carry_their_time(_) ->
    {_, [#{info := [{call, _, _, Called}, {return, _, _, _, Returned} | _]}]} =
        finished(#{system => {?S, waiter, [self(), 1]}, weave => [?S], timestamps => true,
                   monitors => [{{?S, waiter, 2}, {?M, alphabet([call, return], [{twice, 1}])}}]}, fun ended/0),
    ?assert(is_integer(Called) andalso Called =< Returned).

%% --- ends ------------------------------------------------------------------------

%% The number of calls is in the state that the process stores before it waits.
a_process_that_is_ended_while_it_waits_is_judged(Config) ->
    Spec = spec(Config, "with witness_inline_functions_system:waiter(_, _) over _ calls witness_inline_functions_system:twice(_), "
                        "_ ** _ check [_ calls witness_inline_functions_system:twice(1)] "
                        "[_ calls witness_inline_functions_system:twice(2)] <_ ** killed> tt."),
    [?assertMatch({Times, {_, [#{verdict := Verdict}]}},
                  {Times, finished(#{system => {?S, waiter, [self(), Times]}, specs => [Spec], weave => [?S]}, fun killed/0)})
     || {Times, Verdict} <- [{2, yes}, {3, no}]].

ended() -> receive {waits, P} -> P ! stop end.

killed() ->
    P = receive {waits, Waiter} -> Waiter end,
    %% In front of its own first wait it may wait for the run, which does not know the reason of an end before.
    ok = witness_await:until(fun() ->
        case process_info(P, [status, current_function]) of
            [{status, waiting}, {current_function, {?S, waiter, 2}}] -> true;
            Other -> Other
        end
    end),
    exit(P, kill).

%% Its mark would say that it waits, and the monitor would be judged without the call.
a_call_between_callbacks_is_not_missing_when_the_process_is_killed(Config) ->
    Spec = spec(Config, "with witness_inline_functions_system:init(_) over _ calls witness_inline_functions_system:spin(_) "
                        "check <_ calls witness_inline_functions_system:spin(_)> <_ calls witness_inline_functions_system:spin(_)> tt."),
    Flag = atomics:new(1, []),
    {_, [V]} = finished(#{system => {?S, spinning, [self(), Flag]}, specs => [Spec], weave => [?S]}, fun() ->
        receive {spins, P} -> wait_for(Flag), exit(P, kill) end
    end),
    ?assertMatch(#{verdict := inconclusive, reason := {gap, signal}}, V).

wait_for(Flag) -> atomics:get(Flag, 1) =:= 1 orelse wait_for(Flag).

events_before_the_stop_are_judged(_) ->
    Test = self(),
    {ok, Run} = witness:start(options(#{system => {?S, idle, [self()]}, weave => [?S],
                                        on_verdict => fun(V) -> Test ! {verdict, V} end,
                                        monitors => [{{?S, idle, 1}, {?M, [call_of(twice)]}}]})),
    P = receive {idle, Idle} -> Idle end,
    Ref = monitor(process, P),
    {ok, _} = witness:stop(Run),
    receive {verdict, V} -> ?assertMatch(#{info := [{call, P, {?S, twice, [1]}, _}]}, V) end,
    %% The process goes on in woven code.
    P ! go,
    receive {'DOWN', Ref, process, P, normal} -> ok end,
    witness_await:until(fun() -> witness_weave:woven(?S) =:= no end).

%% --- refused ---------------------------------------------------------------------

functions_that_do_not_report_are_refused(Config) ->
    Dir = proplists:get_value(priv_dir, Config),
    ok = module(Dir, witness_functions_compiled, "f(X) -> X.", [{parse_transform, witness_inline}]),
    ok = module(Dir, witness_functions_other, "f(X) -> X.", [debug_info]),
    ok = module(Dir, witness_functions_no_code, "f(X) -> X.", []),
    true = code:add_patha(Dir),
    try
        [begin
             Spec = spec(Config, ["\na: with witness_inline_functions_system:waiter(_, _) over _ calls ", Called, " check ff."]),
             {error, Error} = witness:start(options(#{system => {?S, waiter, [self(), 1]}, specs => [Spec], weave => Weave})),
             ?assertMatch({Called, _, {match, _}}, {Called, Error, re:run(witness:format_error(Error), Text, [dotall])}),
             ?assertMatch({Called, {match, _}},
                          {Called, re:run(witness:format_error(Error), [case Text of [$^ | _] -> ""; _ -> Spec end])})
         end || {Called, Weave, Text} <- [
             {"witness_functions_none:f(_)", default, ":2: the calls of witness_functions_none:f/1 .* no such module"},
             {"witness_inline_functions_system:twice(_, _)", [?S], ":2: .*:twice/2 cannot be observed: .* no such function"},
             {"witness_inline_functions_system:module_info(_)", [?S], ":module_info/1 cannot be observed: .* no such function"},
             {"witness_functions_other:f(_)", [?S], ":f/1 cannot be observed: .* is not woven.*option weave"},
             {"lists:foldl(_, _, _)", default, "lists:foldl/3 cannot be observed"},
             {"witness_functions_compiled:f(_)", default, "was woven when it was compiled"},
             {"witness_functions_compiled:f(_)", [?S, witness_functions_compiled], "was woven when it was compiled"},
             {"witness_functions_no_code:f(_)", default, "^.*witness_functions_no_code.*debug_info"}]],
        %% All of them are named.
        Both = spec(Config, ["a: with m:f(_) over _ calls witness_functions_none:f(_), _ calls witness_functions_none:g(_) check ff."]),
        {error, Two} = witness:start(options(#{system => {?S, waiter, [self(), 1]}, specs => [Both], weave => [?S]})),
        ?assertMatch([_, _], string:split(witness:format_error(Two), "\n", all)),
        receive {waits, _} -> error(started) after 0 -> ok end
    after
        code:del_path(Dir),
        [forget(M) || M <- [witness_functions_compiled, witness_functions_other, witness_functions_no_code]]
    end.

%% In a folder that neither the specification nor the system names otherwise.
modules_of_functions_are_woven_by_default(Config) ->
    Dirs = [filename:join(proplists:get_value(priv_dir, Config), Name) || Name <- ["system", "library"]],
    [ok = filelib:ensure_path(Dir) || Dir <- Dirs],
    ok = module(hd(Dirs), witness_functions_main, "f(M) -> M:f(1), M:f(2).", [debug_info]),
    ok = module(lists:last(Dirs), witness_functions_library, "f(X) -> X.", [debug_info]),
    ok = code:add_pathsa(Dirs),
    try
        Spec = spec(Config, "with witness_functions_main:f(_) over _ calls witness_functions_library:f(_), _ ** _ "
                            "check [_ calls witness_functions_library:f(1)] [_ calls witness_functions_library:f(2)] [_ ** _] ff."),
        ?assertMatch({_, [#{verdict := no}]},
                     finished(#{system => {witness_functions_main, f, [witness_functions_library]}, specs => [Spec]}))
    after
        [code:del_path(Dir) || Dir <- Dirs],
        [forget(M) || M <- [witness_functions_main, witness_functions_library]]
    end.

%% A version that its compiler has woven reports what it sends, but no calls.
a_replaced_module_ends_in_doubt(Config) ->
    Dir = proplists:get_value(priv_dir, Config),
    true = code:add_patha(Dir),
    M = witness_functions_replaced,
    try
        [begin
             ok = module(Dir, M, "f(X) -> X.\nmain({Code}) -> ?MODULE:f(1), code:load_binary(?MODULE, \"\", Code), ?MODULE:f(2).",
                         [debug_info]),
             {module, M} = code:load_file(M),
             {ok, M, Code} = compile:file(filename:join(Dir, atom_to_list(M)), [binary | Options]),
             {#{outcome := Outcome}, [#{reason := Reason}]} =
                 finished(#{system => {M, main, [{Code}]}, monitors => [{{M, main, 1}, {?M, Alphabet}}], weave => [M]}),
             ?assertEqual({Options, Expected, Alphabet}, {Options, {Outcome, Reason}, Alphabet}),
             forget(M)
         end || {Options, Alphabet, Expected} <-
                    [{[debug_info], [{call, {M, f, 1}}], {untrusted, {gap, replaced}}},
                     {[{parse_transform, witness_inline}], [{call, {M, f, 1}}], {untrusted, {gap, replaced}}},
                     {[{parse_transform, witness_inline}], [send], {ok, undefined}}]]
    after
        code:del_path(Dir)
    end.

%% --- helpers ---------------------------------------------------------------------

options(Options) -> maps:merge(#{instrument => inline, log => false}, Options).

finished(Options) -> finished(Options, fun() -> ok end).

finished(Options, Meanwhile) ->
    {ok, Run} = witness:start(options(Options)),
    _ = Meanwhile(),
    {ok, Summary} = witness:await(Run, 60_000),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    {Summary, Verdicts}.

spec(Config, Text) ->
    File = filename:join(proplists:get_value(priv_dir, Config), lists:concat([spec, erlang:unique_integer([positive]), ".hml"])),
    ok = file:write_file(File, Text),
    File.

module(Dir, Module, Text, Options) ->
    File = filename:join(Dir, atom_to_list(Module)),
    ok = file:write_file(File ++ ".erl", ["-module(", atom_to_list(Module), ").\n-compile([export_all, nowarn_export_all]).\n", Text]),
    {ok, Module} = compile:file(File, [{outdir, Dir} | Options]),
    ok.

forget(Module) ->
    _ = code:purge(Module),
    _ = code:delete(Module),
    code:purge(Module).
