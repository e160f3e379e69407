-module(witness_monitor_safety_tests).
-moduledoc "What a monitor may do that shares its process: each case is a module with one callback.".
-include_lib("eunit/include/eunit.hrl").

-define(MODULE_NAME, witness_bounded_example).

known_modules_test_() ->
    [?_assert(witness_monitor_safety:is_bounded(witness_load_monitor)),
     ?_assert(witness_monitor_safety:is_bounded(witness_bench_sequence)),
     ?_assert(witness_monitor_safety:is_bounded(witness_bench_count)),
     ?_assert(witness_monitor_safety:is_bounded(witness_overhead_tenth)),
     ?_assertNot(witness_monitor_safety:is_bounded(witness_load_busy)),
     ?_assertNot(witness_monitor_safety:is_bounded(witness_monitor_log)),
     ?_assertNot(witness_monitor_safety:is_bounded(there_is_no_such_module))].

%% A counter is seen by others.
effects_test_() ->
    [?_assert(witness_monitor_safety:only_computes(witness_load_monitor)),
     ?_assertNot(witness_monitor_safety:only_computes(witness_bench_count)),
     ?_assertNot(witness_monitor_safety:only_computes(witness_load_busy))].

bounded_test_() -> [{Body, ?_assert(is_bounded(Body))} || Body <- bounded()].

unbounded_test_() -> [{Body, ?_assertNot(is_bounded(Body))} || Body <- unbounded()].

bounded() ->
    ["handle_event(_, S) -> {ok, S}.",
     "handle_event({send, _, _, M, _}, S) -> {ok, S#{M => maps:get(M, S, 0) + 1}}.",
     "handle_event({send, _, _, N, _}, {A, B}) when is_integer(N), N > A; is_atom(N) -> {ok, {N, [N | B]}}.",
     "handle_event(E, S) -> try {ok, change(element(1, E), S)} catch error:_ -> {verdict, no, lists:member(E, S)} end.\n"
     "change(K, S) when is_map_key(K, S) -> maps:remove(K, S);\n"
     "change(_, S) -> other(S).\n"
     "other(#{a := #{b := X}}) -> X * 2 rem 7;\n"
     "other(X) -> error({bad, X}).",
     "-record(s, {a, b = 0}).\n"
     "handle_event(_, S = #s{b = B}) -> {ok, S#s{b = B + 1}}.",
     "handle_event({recv, _, _, <<N:8, Rest/binary>>, _}, S) -> case Rest of <<\"x\", _/binary>> -> {ok, N}; _ -> {ok, S} end.",
     "handle_event({exit, _, _, _}, {N, C}) -> counters:add(C, 1, N), {verdict, yes, N};\n"
     "handle_event(_, {N, C}) -> {ok, {N + 1, C}}.",
     %% What is never called is not looked at.
     "handle_event(_, S) -> {ok, S}.\nidle() -> idle()."].

unbounded() ->
    ["handle_event(E, S) -> handle_event(E, [S]).",
     "handle_event(E, S) -> even(E, S).\neven(E, S) -> odd(E, S).\nodd(E, S) -> case S of 0 -> {ok, S}; _ -> even(E, S) end.",
     "handle_event(_, S) -> {ok, [X || X <- S]}.",
     "handle_event(_, S) -> self() ! S, {ok, S}.",
     "handle_event(_, S) -> receive X -> {ok, {S, X}} end.",
     "handle_event(_, S) -> receive after 1000 -> {ok, S} end.",
     "handle_event(_, S) -> {ok, spawn(fun() -> S end)}.",
     "handle_event(_, S) -> {ok, S()}.",
     "handle_event(_, {M, F}) -> {ok, M:F()}.",
     "handle_event(_, {M, F, As}) -> {ok, apply(M, F, As)}.",
     "handle_event(_, S) -> link(S), {ok, S}.",
     "handle_event(_, S) -> exit(S, kill), {ok, S}.",
     "handle_event(_, S) -> halt(S).",
     "handle_event(_, S) -> put(key, S), {ok, S}.",
     "handle_event(_, S) -> {ok, {S, get(key)}}.",
     "handle_event(_, S) -> {ok, {S, erase(key)}}.",
     "handle_event(_, S) -> {ok, {S, process_flag(trap_exit, true)}}.",
     "handle_event(_, S) -> {ok, ets:insert(S, {a, b})}.",
     "handle_event(_, S) -> {ok, counters:put(S, 1, 0)}.",
     "handle_event(_, S) -> {ok, io:format(\"~p\", [S])}.",
     "handle_event(_, S) -> {ok, lists:sort(S)}.",
     "handle_event(_, S) -> {ok, 1 bsl S}.",
     "handle_event(_, S) -> {ok, <<0:S>>}.",
     "handle_event(_, S) -> {ok, list_to_atom(S)}.",
     %% In any callback, and in what it calls.
     "handle_event(_, S) -> {ok, S}.\nhandle_end(_, S) -> handle_end(a, S).",
     "handle_event(_, S) -> {ok, S}.\ndescribe(S) -> inner(S).\ninner(S) -> inner(S)."].

%% As it is loaded from a file.
is_bounded(Body) ->
    {Module, Code} = compiled(Body),
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"), "witness_bounded_" ++ os:getpid()),
    File = filename:join(Dir, atom_to_list(Module) ++ ".beam"),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Code),
    true = code:add_patha(Dir),
    try
        {module, Module} = code:load_file(Module),
        Bounded = witness_monitor_safety:is_bounded(Module),
        %% What is loaded may be something else.
        {_, Other} = compiled("handle_event(_, S) -> {ok, {other, S}}."),
        {module, Module} = code:load_binary(Module, File, Other),
        false = witness_monitor_safety:is_bounded(Module),
        Bounded
    after
        code:purge(Module), code:delete(Module), code:purge(Module),
        code:del_path(Dir),
        ok = file:del_dir_r(Dir)
    end.

compiled(Body) ->
    Text = ["-module(witness_bounded_example).\n-compile(export_all).\ninit(_, _, _) -> {ok, none}.\n"],
    {[Module, Compile], Init} = lists:split(2, forms(Text)),
    {Attributes, Functions} = lists:partition(fun(Form) -> element(1, Form) =:= attribute end, forms(Body)),
    {ok, ?MODULE_NAME, Code} = compile:forms([Module, Compile] ++ Attributes ++ Init ++ Functions, [nowarn_export_all]),
    {?MODULE_NAME, Code}.

forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(lists:flatten(Text)),
    [begin {ok, Form} = erl_parse:parse_form(Of), Form end || Of <- split(Tokens, [])].

split([], _) -> [];
split([{dot, _} = Dot | Tokens], Form) -> [lists:reverse([Dot | Form]) | split(Tokens, [])];
split([Token | Tokens], Form) -> split(Tokens, [Token | Form]).
