-module(witness_exports_tests).
-include_lib("eunit/include/eunit.hrl").

a_loaded_module_has_its_local_functions_too_test() ->
    Functions = witness_exports:of_module(?MODULE),
    ?assert(lists:member({local, 1}, Functions)),
    ?assert(lists:member({a_loaded_module_has_its_local_functions_too_test, 0}, Functions)),
    ?assertNot(lists:member({local, 2}, Functions)),
    ok = local(ok).

local(X) -> X.

a_module_that_is_not_loaded_stays_so_test() ->
    in_folder([debug_info], fun(Module) ->
        ?assertEqual([{here, 1}, {inside, 2}, {module_info, 0}, {module_info, 1}],
                     lists:sort(witness_exports:of_module(Module))),
        ?assertNot(erlang:module_loaded(Module))
    end).

a_module_that_does_not_tell_its_local_functions_tells_none_test() ->
    in_folder([strip], fun(Module) -> ?assertEqual([], witness_exports:of_module(Module)) end).

what_is_no_module_is_unknown_test_() ->
    [?_assertEqual(unknown, witness_exports:of_module(Module))
     || Module <- [no_such_module, '', '../no', 'no/such', '\x{1F600}']].

%% The file holds another module than its name says.
a_file_of_another_module_tells_nothing_test() ->
    in_folder([debug_info], fun(Module) ->
        Folder = filename:dirname(code:which(Module)),
        {ok, _} = file:copy(code:which(Module), filename:join(Folder, "other_name.beam")),
        ?assertEqual([], witness_exports:of_module(other_name))
    end).

in_folder(Options, Check) ->
    Module = witness_exports_sample,
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), "witness_exports_" ++ os:getpid()),
    ok = filelib:ensure_path(Folder),
    {ok, Forms} = forms(["-module(witness_exports_sample).", "-export([here/1]).", "here(X) -> {fun inside/2, X}.",
                         "inside(A, B) -> [A, B]."]),
    {ok, Module, Object} = compile:forms(Forms, [debug_info]),
    Written = case Options of
        [strip] -> {ok, {Module, Stripped}} = beam_lib:strip(Object), Stripped;
        _ -> Object
    end,
    ok = file:write_file(filename:join(Folder, "witness_exports_sample.beam"), Written),
    true = code:add_patha(Folder),
    try Check(Module) after
        true = code:del_path(Folder),
        ok = file:del_dir_r(Folder)
    end.

forms(Lines) ->
    {ok, [begin
              {ok, Tokens, _} = erl_scan:string(Line),
              {ok, Form} = erl_parse:parse_form(Tokens),
              Form
          end || Line <- Lines]}.
