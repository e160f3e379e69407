-module(witness_inline_reach_tests).

-include_lib("eunit/include/eunit.hrl").

%% Nothing names the callback of an application, but for the application itself.
the_callback_of_an_application_is_reached_test() ->
    Dir = filename:join(witness_test_folder(), "ebin"),
    ok = filelib:ensure_path(Dir),
    [ok = file:write_file(filename:join(Dir, atom_to_list(M) ++ ".beam"), beam(M, Names))
     || {M, Names} <- [{witness_reach_lib, []}, {witness_reach_app, [witness_reach_sup]}, {witness_reach_sup, []},
                       {witness_reach_not, []}]],
    ok = file:write_file(filename:join(Dir, "witness_reach.app"),
                         "{application, witness_reach, [{mod, {witness_reach_app, []}}]}.\n"),
    true = code:add_pathz(Dir),
    try
        Path = maps:with([witness_reach_lib, witness_reach_app, witness_reach_sup, witness_reach_not],
                         witness_inline_reach:on_path(witness_inline_reach:not_foreign())),
        ?assertEqual(4, map_size(Path)),
        ?assertEqual([witness_reach_app, witness_reach_lib, witness_reach_sup],
                     lists:sort(maps:keys(witness_inline_reach:reachable([witness_reach_lib], Path, #{})))),
        %% A file that is none names nothing.
        ok = file:write_file(filename:join(Dir, "witness_reach.app"), "{application, witness_reach, [{mod, "),
        ?assertEqual([witness_reach_lib], maps:keys(witness_inline_reach:reachable([witness_reach_lib], Path, #{})))
    after
        true = code:del_path(Dir),
        ok = file:del_dir_r(filename:dirname(Dir))
    end.

beam(M, Names) ->
    {ok, M, Code} = compile:forms([{attribute, 1, module, M}, {attribute, 1, export, [{names, 0}]},
                                   {function, 1, names, 0, [{clause, 1, [], [], [erl_parse:abstract(Names)]}]}]),
    Code.

witness_test_folder() ->
    filename:join(filename:basedir(user_cache, "witness_tests"), integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()).
