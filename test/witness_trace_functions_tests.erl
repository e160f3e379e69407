-module(witness_trace_functions_tests).
-include_lib("eunit/include/eunit.hrl").

-export([missed/0]).

-define(F, witness_trace_functions).
-define(MODULE_UNDER_WATCH, witness_trace_functions_sample).

%% --- open ----------------------------------------------------------------------------

no_functions_need_no_session_test() ->
    ?assertEqual({ok, none}, ?F:open([])),
    ?assertEqual(none, ?F:replaced(none)),
    ?assertEqual(ok, ?F:close(none)).

what_cannot_be_observed_is_named_with_its_reason_test() ->
    ?assertEqual({error, [{{witness_no_such_module, f, 0}, no_module}, {{lists, no_such_function, 1}, no_function},
                          {{erlang, self, 0}, invisible}, {{lists, seq, 9}, no_function}]},
                 ?F:open([{witness_no_such_module, f, 0}, {lists, no_such_function, 1}, {ets, insert, 2}, {erlang, self, 0},
                          {lists, seq, 9}])),
    ?assertEqual([], ours()).

functions_that_are_not_exported_can_be_observed_test() ->
    load(sample([])),
    {ok, Watch} = ?F:open([{?MODULE_UNDER_WATCH, local, 1}]),
    ?assertEqual(none, ?F:replaced(Watch)),
    ?F:close(Watch),
    unload().

a_module_is_loaded_to_be_watched_test() ->
    _ = code:purge(calendar), _ = code:delete(calendar), _ = code:purge(calendar),
    {ok, Watch} = ?F:open([{calendar, date_to_gregorian_days, 1}]),
    ?assert(erlang:module_loaded(calendar)),
    ?F:close(Watch).

a_watch_that_is_closed_leaves_nothing_test() ->
    {ok, Watch} = ?F:open([{ets, insert, 2}]),
    ?assertMatch([_], ours()),
    ?F:close(Watch),
    ?assertEqual([], ours()).

%% A watch traces no process, and disturbs no session of others.
a_watch_traces_nothing_test() ->
    {ok, Watch} = ?F:open([{ets, insert, 2}]),
    Table = ets:new(table, []),
    ets:insert(Table, {1}),
    ?assertEqual([], trace:session_info(self())),
    ?F:close(Watch),
    ets:delete(Table).

ours() -> [S || {S, ?F} <- [{S, name(S)} || S <- trace:session_info(all)]].

name({Name, _}) -> Name;
name(Session) -> element(2, Session).

%% --- replaced --------------------------------------------------------------------------

code_that_is_loaded_anew_is_found_test_() ->
    Beam = sample([]),
    Other = sample([{b, 0}]),
    [{Name, fun() ->
        load(Beam),
        {ok, Watch} = ?F:open([{ets, insert, 2}, {?MODULE_UNDER_WATCH, local, 1}, {?MODULE_UNDER_WATCH, a, 0}]),
        ?assertEqual(none, ?F:replaced(Watch)),
        Replace(),
        ?assertMatch({replaced, {?MODULE_UNDER_WATCH, local, 1}}, ?F:replaced(Watch)),
        ?assertMatch({replaced, {?MODULE_UNDER_WATCH, local, 1}}, ?F:replaced(Watch)),
        ?F:close(Watch),
        unload()
     end} || {Name, Replace} <- [
        {"the same code", fun() -> load(Beam) end},
        {"other code", fun() -> load(Other) end},
        {"deleted", fun() -> true = code:delete(?MODULE_UNDER_WATCH) end},
        {"deleted and purged", fun() -> true = code:delete(?MODULE_UNDER_WATCH), code:purge(?MODULE_UNDER_WATCH) end},
        {"away and back", fun() -> true = code:delete(?MODULE_UNDER_WATCH), code:purge(?MODULE_UNDER_WATCH), load(Beam) end},
        {"other code and back", fun() -> load(Other), load(Beam) end}]].

%% Why a run has to know: no other session says so.
code_that_is_loaded_anew_is_traced_no_more_test() ->
    Beam = sample([]),
    load(Beam),
    {ok, Watch} = ?F:open([{?MODULE_UNDER_WATCH, a, 0}]),
    Session = trace:session_create(other, self(), []),
    1 = trace:function(Session, {?MODULE_UNDER_WATCH, a, 0}, [{'_', [], []}], [local]),
    P = spawn(fun Call() -> receive {call, From} -> ?MODULE_UNDER_WATCH:a(), From ! called, Call(); stop -> ok end end),
    1 = trace:process(Session, P, true, [call]),
    ?assertEqual(1, calls(Session, P)),
    load(Beam),
    ?assertEqual(0, calls(Session, P)),
    ?assertEqual({replaced, {?MODULE_UNDER_WATCH, a, 0}}, ?F:replaced(Watch)),
    trace:session_destroy(Session),
    ?F:close(Watch),
    P ! stop,
    unload().

calls(Session, P) ->
    P ! {call, self()},
    receive called -> ok end,
    Ref = trace:delivered(Session, P),
    receive {trace_delivered, P, Ref} -> ok end,
    count(0).

count(N) -> receive {trace, _, call, _} -> count(N + 1) after 0 -> N end.

%% Exports `a/0', which calls `local/1', and more functions.
sample(More) -> sample(More, []).

sample(More, Attributes) ->
    Forms = [{attribute, 1, module, ?MODULE_UNDER_WATCH}, {attribute, 1, export, [{a, 0} | More]}] ++ Attributes ++
        [function(F, 0, [{call, 1, {atom, 1, local}, [{call, 1, {remote, 1, {atom, 1, erlang}, {atom, 1, node}}, []}]}])
         || {F, 0} <- [{a, 0} | More]] ++
        [{function, 1, local, 1, [{clause, 1, [{var, 1, 'X'}], [], [{tuple, 1, [{var, 1, 'X'}]}]}]}],
    {ok, ?MODULE_UNDER_WATCH, Beam} = compile:forms(Forms, [debug_info]),
    Beam.

function(F, 0, Body) -> {function, 1, F, 0, [{clause, 1, [], [], Body}]}.

load(Beam) ->
    _ = code:purge(?MODULE_UNDER_WATCH),
    {module, _} = code:load_binary(?MODULE_UNDER_WATCH, "in memory", Beam).

unload() ->
    _ = code:purge(?MODULE_UNDER_WATCH),
    _ = code:delete(?MODULE_UNDER_WATCH),
    _ = code:purge(?MODULE_UNDER_WATCH).

%% --- is_visible ------------------------------------------------------------------------

functions_of_which_calls_are_seen_are_visible_test_() ->
    [{with, Function, [fun(Known) -> ?assert(?F:is_visible(Known)) end]}
     || Function <- [{ets, insert, 2}, {ets, lookup, 2}, {persistent_term, put, 2}, {erlang, monitor, 2}, {erlang, demonitor, 2},
                     {erlang, link, 1}, {erlang, unlink, 1}, {erlang, register, 2}, {erlang, unregister, 1},
                     {erlang, send_after, 3}, {erlang, put, 2}, {erlang, spawn, 3}, {erlang, send, 2}, {gen_server, call, 2},
                     {lists, member, 2}, {witness_no_such_module, f, 1}, {?MODULE, no_such_function, 1},
                     {erlang, process_flag, 3}]].

functions_of_which_the_compiler_knows_more_are_not_visible_test_() ->
    [{with, Function, [fun(Known) -> ?assertNot(?F:is_visible(Known)) end]}
     || Function <- [{erlang, self, 0}, {erlang, element, 2}, {erlang, get, 1}, {erlang, '+', 2}, {erlang, '!', 2},
                     {erlang, 'not', 1}, {maps, get, 2}, {maps, get, 3}, {maps, put, 3}, {erlang, map_size, 1}, {erlang, node, 1},
                     {erlang, apply, 2}, {erlang, apply, 3}, {erlang, yield, 0}, {erlang, error, 1}, {erlang, throw, 1},
                     {erlang, atom_to_list, 1}, {math, sqrt, 1}, {os, perf_counter, 0},
                     {erlang, binary_to_existing_atom, 2}, {lists, foldl, 3}]].

%% The compiler of Elixir puts `erlang:link/1' in the place of `Process.link/1'. Without Elixir there is no such compiler.
functions_that_elixir_replaces_are_not_visible_test() ->
    Replaced = {'Elixir.Process', link, 1},
    Own = {'Elixir.Process', monitor, 1},
    case code:ensure_loaded(elixir_rewrite) of
        {module, _} -> ?assertEqual([false, true], [?F:is_visible(Function) || Function <- [Replaced, Own]]);
        {error, _} ->
            ?assert(?F:is_visible(Replaced)),
            {M, F, A} = Replaced,
            Any = {var, 1, '_'},
            Other = {tuple, 1, [{atom, 1, erlang}, {atom, 1, F}]},
            Clauses = [{clause, 1, [{atom, 1, M}, {atom, 1, F}, {integer, 1, A}], [], [Other]},
                       {clause, 1, [Any, Any, Any], [], [{atom, 1, false}]}],
            Forms = [{attribute, 1, module, elixir_rewrite}, {attribute, 1, export, [{inline, 3}]},
                     {function, 1, inline, 3, Clauses}],
            {ok, elixir_rewrite, Beam} = compile:forms(Forms),
            {module, _} = code:load_binary(elixir_rewrite, "in memory", Beam),
            ?assertEqual([false, true], [?F:is_visible(Function) || Function <- [Replaced, Own]]),
            true = code:delete(elixir_rewrite),
            _ = code:purge(elixir_rewrite)
    end.

functions_with_breakpoints_of_witness_are_not_visible_test_() ->
    [?_assertNot(?F:is_visible(Function))
     || Function <- [{erlang, process_flag, 2}, {gen_server, handle_msg, 3}, {gen_server, handle_msg, 7}]].

functions_that_are_compiled_into_their_callers_are_not_visible_test_() ->
    Local = {?MODULE_UNDER_WATCH, local, 1},
    Visible = fun(Attributes) ->
        Dir = filename:join(filename:dirname(code:which(?MODULE)), "inlined"),
        File = filename:join(Dir, atom_to_list(?MODULE_UNDER_WATCH) ++ ".beam"),
        ok = filelib:ensure_dir(File),
        ok = file:write_file(File, sample([], [{attribute, 1, compile, A} || A <- Attributes])),
        true = code:add_patha(Dir),
        try ?F:is_visible(Local)
        after
            true = code:del_path(Dir),
            unload(),
            ok = file:del_dir_r(Dir)
        end
    end,
    [?_assert(Visible([])), ?_assert(Visible([{inline, [{a, 0}]}])), ?_assertNot(Visible([{inline, [{local, 1}, {a, 0}]}])),
     ?_assertNot(Visible([{inline, {local, 1}}])), ?_assertNot(Visible([inline])), ?_assertNot(Visible([[nowarn_unused, inline]]))].

%% Whatever is called visible has to be seen. Each function of these modules that is written in C is called once by each code that
%% uses its value in another way, and is reported as often. The arguments make no sense to most of them: a node of its own calls.
visible_functions_of_the_vm_are_reported_test_() ->
    {timeout, 120, fun() ->
        {ok, Peer, _} = peer:start_link(#{connection => standard_io, args => ["-pa" | code:get_path()]}),
        ?assertEqual([], peer:call(Peer, ?MODULE, missed, [], 100_000)),
        peer:stop(Peer)
    end}.

missed() ->
    logger:set_primary_config(level, none),
    [{{M, F, A}, Counts}
     || M <- [erlang, ets, persistent_term, lists, maps, os, binary, re, unicode, atomics, counters],
        {module, _} <- [code:ensure_loaded(M)], {F, A} <- M:module_info(exports), erlang:is_builtin(M, F, A),
        not lists:member(F, [halt, crasher, display, display_string]), ?F:is_visible({M, F, A}),
        Counts <- [[called({M, F, A}, Use) || Use <- used({M, F, A})]], lists:any(fun(Count) -> Count =/= 1 end, Counts)].

%% Functions of a module that is loaded, which use a value as the last thing, not at all, in a term, and where it may raise.
used({M, F, A}) ->
    Args = [{var, 1, list_to_atom("A" ++ integer_to_list(N))} || N <- lists:seq(1, A)],
    Call = {call, 1, {remote, 1, {atom, 1, M}, {atom, 1, F}}, Args},
    Any = {var, 1, '_'},
    Uses = [{last, [Call]}, {ignored, [Call, {atom, 1, ok}]}, {in_term, [{tuple, 1, [Call, {atom, 1, ok}]}]},
            {tried, [{'try', 1, [Call], [], [{clause, 1, [{tuple, 1, [Any, Any, Any]}], [], [{atom, 1, ok}]}], []}]}],
    Forms = [{attribute, 1, module, ?MODULE_UNDER_WATCH}, {attribute, 1, export, [{Use, A} || {Use, _} <- Uses]} |
             [{function, 1, Use, A, [{clause, 1, Args, [], Body}]} || {Use, Body} <- Uses]],
    {ok, ?MODULE_UNDER_WATCH, Beam} = compile:forms(Forms, []),
    load(Beam),
    [Use || {Use, _} <- Uses].

called({_, F, A} = Function, Use) ->
    Session = trace:session_create(called, self(), []),
    1 = trace:function(Session, Function, [{'_', [], []}], [local]),
    {P, Ref} = spawn_monitor(fun() ->
        receive go -> ok end,
        try apply(?MODULE_UNDER_WATCH, Use, lists:duplicate(A, x)) catch _:_ -> ok end
    end),
    1 = trace:process(Session, P, true, [call]),
    P ! go,
    receive {'DOWN', Ref, _, _, _} -> ok
    after 1000 -> exit(P, kill), receive {'DOWN', Ref, _, _, _} -> ok end
    end,
    Delivered = trace:delivered(Session, all),
    receive {trace_delivered, all, Delivered} -> ok end,
    trace:session_destroy(Session),
    length([x || {F1, A1} <- reported(), F1 =:= F, A1 =:= A]).

reported() -> receive {trace, _, call, {_, F, Args}} -> [{F, length(Args)} | reported()] after 0 -> [] end.
