-module(witness_run_maps_tests).
-moduledoc "The names of processes that a source gets from specifications and monitors.".
-include_lib("eunit/include/eunit.hrl").

names_say_what_can_be_told_of_a_pattern_test() ->
    {ok, Map, _} = witness_spec:compile_string(~"names", ~"""
        with m:f(A, {x, _}) when A > 0, m:g() group monitor [_ ? a] ff.
        with My.Server.init(_) check [_ ? b] ff.
        with M:F(x), m:G(_, _, _) check [_ ? c] ff.
        with n:f([_ | _]) none.
        """),
    try
        ?assertEqual(lists:sort([{m, f, 2, true, false}, {m, g, 0, true, false}, {'Elixir.My.Server', init, 1, false, false},
                                 {'_', '_', 1, false, false}, {m, '_', 3, false, false}, {n, f, 1, false, false}]),
                     witness_run_maps:names([Map], [])),
        %% Nothing is known of this monitor, and much of the other one.
        ?assertEqual(lists:sort([{a, b, 3, false, true}, {'_', '_', '_', false, false} | witness_run_maps:names([Map], [])]),
                     witness_run_maps:names([Map, Map], [{{a, b, 3}, {monitor, x}},
                                                                {{'_', '_', '_'}, {witness_bounded_monitor, x}}]))
    after
        witness_spec:unload(Map)
    end.

%% The names of a specification allow every signature that it matches, so a source leaves out only what no specification matches.
whatever_matches_has_a_name_test_() -> {timeout, 60, fun whatever_matches_has_a_name/0}.

whatever_matches_has_a_name() ->
    Files = filelib:wildcard(filename:join([code:lib_dir(witness), "test", "systems", "*.hml"])),
    Maps = [begin {ok, Map, _} = witness_spec:compile_file(File), Map end || File <- Files],
    ?assert(length(Maps) > 30),
    Signatures = [{M, F, lists:duplicate(A, x)} || {M, F, A, _, _} <- witness_run_maps:names(Maps, []),
                                                   is_atom(M), is_atom(F), is_integer(A)],
    try
        [?assert(named(Signature, witness_run_maps:names([Map], [])))
         || #{module := Module} = Map <- Maps, Signature <- Signatures, Module:match(Signature) =/= []]
    after
        lists:foreach(fun witness_spec:unload/1, Maps)
    end.

named({M, F, Args}, Names) ->
    lists:any(fun({M1, F1, A, _, _}) ->
        (M1 =:= M orelse M1 =:= '_') andalso (F1 =:= F orelse F1 =:= '_') andalso (A =:= length(Args) orelse A =:= '_')
    end, Names).
