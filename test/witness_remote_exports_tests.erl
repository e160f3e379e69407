-module(witness_remote_exports_tests).
-include_lib("eunit/include/eunit.hrl").

a_loaded_module_has_its_local_functions_too_test() ->
    Functions = witness_remote_exports:of_module(?MODULE),
    ?assert(lists:member({local, 1}, Functions)),
    ?assert(lists:member({a_loaded_module_has_its_local_functions_too_test, 0}, Functions)),
    ?assertNot(lists:member({local, 2}, Functions)),
    ok = local(ok).

local(X) -> X.

a_module_that_is_not_loaded_stays_so_test() ->
    in_folder([debug_info], fun(Module) ->
        ?assertEqual([{here, 1}, {inside, 2}, {module_info, 0}, {module_info, 1}],
                     lists:sort(witness_remote_exports:of_module(Module))),
        ?assertNot(erlang:module_loaded(Module))
    end).

a_module_that_does_not_tell_its_local_functions_tells_none_test() ->
    in_folder([strip], fun(Module) -> ?assertEqual([], witness_remote_exports:of_module(Module)) end).

what_is_no_module_is_unknown_test_() ->
    [?_assertEqual(unknown, witness_remote_exports:of_module(Module))
     || Module <- [no_such_module, '', '../no', 'no/such', '\x{1F600}']].

%% The last one has a name that is no text: so OTP 27 sees the names that a later release has written.
%% A file is written for each of its bytes: a slow disk takes its time.
a_damaged_module_is_unreadable_test_() -> {timeout, 120, fun a_damaged_module_is_unreadable/0}.

a_damaged_module_is_unreadable() ->
    in_folder([debug_info], fun(Module) ->
        File = code:which(Module),
        {ok, Object} = file:read_file(File),
        {Names, _} = binary:match(Object, ~"AtU8"),
        Damaged = [~"", ~"FOR1", ~"no object code", binary:part(Object, 0, Names + 20),
                   put_bytes(Object, Names, ~"Name"), put_bytes(Object, Names + 14, <<255, 254, 253, 252, 251>>)],
        [begin
             ok = file:write_file(File, Bytes),
             ?assertEqual({Bytes, unreadable}, {Bytes, witness_remote_exports:of_module(Module)})
         end || Bytes <- Damaged],
        %% Wherever it is, it is no crash.
        [begin
             ok = file:write_file(File, put_bytes(Object, At, <<255>>)),
             Functions = witness_remote_exports:of_module(Module),
             ?assert(is_list(Functions) orelse Functions =:= unreadable)
         end || At <- lists:seq(0, byte_size(Object) - 1)]
    end).

put_bytes(Object, At, Bytes) ->
    Size = byte_size(Bytes),
    <<Before:At/binary, _:Size/binary, After/binary>> = Object,
    <<Before/binary, Bytes/binary, After/binary>>.

%% The file holds another module than its name says.
a_file_of_another_module_tells_nothing_test() ->
    in_folder([debug_info], fun(Module) ->
        Folder = filename:dirname(code:which(Module)),
        {ok, _} = file:copy(code:which(Module), filename:join(Folder, "other_name.beam")),
        ?assertEqual([], witness_remote_exports:of_module(other_name))
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
