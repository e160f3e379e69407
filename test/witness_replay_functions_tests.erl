-module(witness_replay_functions_tests).
-moduledoc "Of a function that is not refused, no other code makes a call: neither the VM's, nor Witness's in processes of the program.".
-include_lib("eunit/include/eunit.hrl").

%% Modules of the VM that are not woven, and do not stand for a server or for native functions.
-define(VM, [erlang, erts_internal, atomics, counters, persistent_term, prim_eval]).

what_names_no_functions_is_an_error_test() ->
    [?assertEqual(ok, witness_replay_functions:check_option(Named)) || Named <- [#{}, #{{m, f, 1} => [call]}]],
    [?assertMatch({error, {witness_option, {bad_option, functions, _}}},
                  witness_replay:replay(#{dir => "none.rec", functions => Wrong}))
     || Wrong <- [all, [{m, f, 1}], #{{m, f, 1} => []}, #{{m, f, 1} => [calls]}, #{m => [call]}]].

%% The compiler adds functions, and leaves debug information out.
what_is_not_in_woven_source_is_refused_test() ->
    Forms = [{attribute, 1, module, witness_replay_functions_code}, {attribute, 1, export, [{f, 0}]},
             {attribute, 1, callback, {{c, 0}, [{type, 1, 'fun', [{type, 1, product, []}, {type, 1, atom, []}]}]}},
             {function, 1, f, 0, [{clause, 1, [], [], [{call, 1, {atom, 1, g}, []}]}]},
             {function, 1, g, 0, [{clause, 1, [], [], [{atom, 1, ok}]}]}],
    Why = fun(F, A, Options) ->
        {ok, Module, Code} = compile:forms(Forms, Options),
        Folder = #{dir => "ebin", objects => [{Module, {"file", Code}}], contents => "", natives => [], digests => []},
        case witness_replay_functions:refused(#{{Module, F, A} => [call]}, [Folder], ["ebin"]) of
            [] -> ok;
            [{_, Reason}] -> Reason
        end
    end,
    ?assertEqual([ok, ok, no_function, no_function, no_function, not_woven],
                 [Why(F, A, [debug_info]) || {F, A} <- [{f, 0}, {g, 0}, {module_info, 1}, {behaviour_info, 1}, {h, 0}]]
                     ++ [Why(f, 0, [])]).

no_other_code_calls_a_function_that_is_observed_test_() -> {timeout, 120, fun no_other_code/0}.

no_other_code() ->
    {ok, _} = xref:start(?MODULE),
    ok = xref:set_default(?MODULE, [{warnings, false}, {verbose, false}]),
    Otp = [filename:join(code:lib_dir(App), "ebin") || App <- [kernel, stdlib]],
    [{ok, _} = xref:add_directory(?MODULE, Dir, [{builtins, true}])
     || Dir <- [filename:join(code:lib_dir(erts), "ebin"), filename:dirname(code:which(witness_replay_runtime)) | Otp]],
    {ok, Edges} = xref:q(?MODULE, "E"),
    stopped = xref:stop(?MODULE),
    {ok, Folders} = witness_weave_objects:read(Otp, witness_weave_cache:default_dir()),
    Seen = fun(Functions) ->
        [Function || Function <- lists:usort(Functions),
                     witness_replay_functions:refused(#{Function => [call]}, Folders, []) =:= []]
    end,
    %% They are called for net_kernel.
    ?assertEqual([{persistent_term, erase, 1}, {persistent_term, get, 2}, {persistent_term, put, 2}],
                 Seen([To || {{M, _, _}, To} <- Edges, lists:member(M, ?VM)])),
    %% A call that Witness makes itself is reported if the function is woven.
    Calls = maps:groups_from_list(fun({From, _}) -> From end, fun({_, To}) -> To end, Edges),
    [begin
         Reached = reached([{Runtime, F, A} || {F, A} <- Runtime:module_info(exports)], Calls, #{}),
         ?assert(is_map_key({lists, member, 2}, Reached)),
         ?assertEqual({Runtime, []}, {Runtime, [F || F <- Seen(maps:keys(Reached)), not witness_replay_functions:is_performed(F)]})
     end || Runtime <- [witness_replay_runtime, witness_search_runtime]].

reached([], _, Reached) -> Reached;
reached([Function | More], Calls, Reached) when is_map_key(Function, Reached) -> reached(More, Calls, Reached);
reached([Function | More], Calls, Reached) -> reached(maps:get(Function, Calls, []) ++ More, Calls, Reached#{Function => []}).
