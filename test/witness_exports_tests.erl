-module(witness_exports_tests).
-moduledoc """
Each function that a module of Witness exports is used by another module: called, or named by an atom there, as a callback, in a
table, or by woven code. Tests and benchmarks count. What a module exports only to start its own processes is listed.
""".
-include_lib("eunit/include/eunit.hrl").

%% What is named to the VM or to OTP.
by_name() ->
    %% A module calls this on another node.
    [{witness_bench_nodes, distribute, 1}] ++
    %% Generated monitors call it.
    [{witness_spec_formula, at_stop, 3}] ++
    %% Processes begin there: one that is only spawned, and those that woven code spawns.
    [{witness_search_scheduler, tell_place, 1}, {witness_inline_spawn, run_wrapped, 2}, {witness_inline_spawn, run_wrapped, 3}] ++
    %% Callbacks of `sys' and of the compiler, which have no behaviour, and optional ones of tracers.
    [{witness_event_process, system_code_change, 4}, {witness_event_process, system_get_state, 1},
     {witness_event_process, system_replace_state, 2}, {witness_event_process, system_terminate, 4},
     {witness_trace_native, enabled_call, 3}, {witness_trace_native, enabled_receive, 3}, {witness_trace_native, enabled_send, 3},
     {witness_weave_blocks, core_transform, 2}].

exports_are_used_by_another_module_test_() ->
    {timeout, 60, fun() ->
        Beams = beams(),
        Own = own(),
        Atoms = maps:from_list([atoms(Beam) || Beam <- Beams]),
        Called = maps:from_keys(calls(Beams), []),
        Unused = [{M, F, A} || M <- Own, {F, A} <- M:module_info(exports), not is_known(F),
                               not is_callback(M, F, A), not is_map_key({M, F, A}, Called),
                               not lists:any(fun({Other, Names}) -> Other =/= M andalso is_map_key(F, Names) end,
                                             maps:to_list(Atoms))],
        ?assertEqual([], lists:sort(Unused) -- by_name()),
        ?assertEqual([], by_name() -- Unused)
    end}.

%% Tests and benchmarks are not checked by xref, and a benchmark that is seldom run would break unseen.
calls_of_tests_and_benchmarks_exist_test_() ->
    {timeout, 60, fun() ->
        Beams = beams(),
        Exports = maps:from_list([{M, maps:from_keys(E, [])} || Beam <- Beams,
                                                                {ok, {M, [{exports, E}]}} <- [beam_lib:chunks(Beam, [exports])]]),
        ?assertEqual([], [{Caller, {M, F, A}}
                          || Beam <- Beams, {ok, {Caller, [{imports, Imports}]}} <- [beam_lib:chunks(Beam, [imports])],
                                                 {M, F, A} <- Imports, #{M := Own} <- [Exports], Caller =/= M,
                                                 not is_map_key({F, A}, Own)])
    end}.

%% Those of the compilers.
is_known(F) -> lists:member(F, [module_info, behaviour_info, '__info__']).

is_callback(M, F, A) ->
    Behaviours = lists:append([Value || {Key, Value} <- M:module_info(attributes), Key =:= behaviour orelse Key =:= behavior]),
    lists:any(fun(B) -> {module, B} =:= code:ensure_loaded(B) andalso lists:member({F, A}, B:behaviour_info(callbacks)) end,
              Behaviours).

own() ->
    _ = application:load(witness),
    {ok, Modules} = application:get_key(witness, modules),
    [M || M <- Modules, Source <- [proplists:get_value(source, M:module_info(compile), "")],
          lists:member("src", filename:split(Source)), not lists:prefix("Elixir.", atom_to_list(M))].

%% All compiled modules of the checkout, those of the tests included.
beams() ->
    Folder = filename:dirname(filename:dirname(code:which(?MODULE))),
    [filename:join(Folder, Beam) || Beam <- filelib:wildcard("**/*.beam", Folder)].

%% Funs of other modules are literals, in which names are no atoms of the file.
calls(Beams) ->
    [{M, F, A}
     || Beam <- Beams, {ok, {Module, [{debug_info, {debug_info_v1, Backend, Info}}]}} <- [beam_lib:chunks(Beam, [debug_info])],
                  {ok, Forms} <- [Backend:debug_info(erlang_v1, Module, Info, [])],
                  {M, F, A} <- funs(Forms), M =/= Module].

funs({'fun', _, {function, {atom, _, M}, {atom, _, F}, {integer, _, A}}}) -> [{M, F, A}];
funs(Form) when is_tuple(Form) -> funs(tuple_to_list(Form));
funs([Form | Forms]) -> funs(Form) ++ funs(Forms);
funs(_) -> [].

atoms(Beam) ->
    {ok, {Module, [{atoms, Atoms}]}} = beam_lib:chunks(Beam, [atoms]),
    {Module, maps:from_list([{Atom, []} || {_, Atom} <- Atoms])}.
