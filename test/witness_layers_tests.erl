-module(witness_layers_tests).
-moduledoc """
A layer uses only what its row in the table allows. The table is that of `docs/internals/README.md`:
folders under `src/`, from the command line at the top to events at the bottom.
""".
-include_lib("eunit/include/eunit.hrl").

%% Folder (`""': the application's own) => the layers that it may use.
table() ->
    #{"event" => [],
      "text" => ["event"],
      "log" => ["event"],
      "weave" => ["event"],
      "spec" => ["event"],
      "monitor" => ["spec", "event"],
      "trace" => ["log", "event"],
      "instrument" => ["trace", "monitor", "spec", "weave", "event"],
      "record" => ["trace", "weave", "log", "event"],
      "replay" => ["record", "trace", "weave", "log", "event"],
      "step" => ["replay", "record", "log", "event"],
      "explore" => ["instrument", "event"],
      "remote" => ["", "spec", "event"],
      "bench" => ["", "event"],
      "web" => ["", "bench", "text", "event"],
      "" => ["bench", "explore", "step", "replay", "record", "instrument", "trace", "monitor", "spec",
             "weave", "log", "text", "event"],
      "cli" => ["", "web", "remote", "bench", "explore", "step", "replay", "record", "instrument", "trace", "monitor",
                "spec", "weave", "log", "text", "event"]}.

%% Prefixes of the modules of a folder; every other `witness' module is the application's own.
prefixes() ->
    #{"event" => ["witness_event"], "text" => ["witness_text"], "log" => ["witness_log"], "weave" => ["witness_weave"],
      "spec" => ["witness_spec"], "monitor" => ["witness_monitor"], "trace" => ["witness_trace"],
      "instrument" => ["witness_outline_pool", "witness_central", "witness_inline"],
      "record" => ["witness_record"], "replay" => ["witness_replay"], "step" => ["witness_step"],
      "explore" => ["witness_explore"], "bench" => ["witness_bench"], "remote" => ["witness_remote"], "web" => ["witness_web"],
      "cli" => ["witness_cli"]}.

layers_use_only_what_their_row_allows_test_() ->
    {timeout, 60, fun() ->
        Folders = folders(),
        ?assert(map_size(Folders) > 30),
        ?assertEqual([], forbidden(calls(), Folders))
    end}.

modules_carry_the_prefix_of_their_folder_test() ->
    maps:foreach(fun(Module, Folder) ->
        ?assertEqual({Module, Folder}, {Module, by_prefix(atom_to_list(Module))})
    end, folders()).

a_call_from_below_is_found_test() ->
    Folders = #{witness_event => "event", witness_spec => "spec"},
    ?assertEqual([{witness_event, witness_spec}], forbidden([{witness_event, witness_spec}], Folders)).

forbidden(Calls, Folders) ->
    lists:usort([{From, To} || {From, To} <- Calls, From =/= To,
                               is_map_key(From, Folders), is_map_key(To, Folders),
                               not allowed(maps:get(From, Folders), maps:get(To, Folders))]).

allowed(Same, Same) -> true;
allowed(From, To) -> lists:member(To, maps:get(From, table())).

calls() ->
    {ok, Xref} = xref:start([{xref_mode, modules}]),
    try
        ok = xref:set_default(Xref, [{verbose, false}, {warnings, false}]),
        [{ok, _} = xref:add_module(Xref, code:which(M)) || M <- maps:keys(folders())],
        {ok, Calls} = xref:q(Xref, "ME"),
        Calls
    after
        xref:stop(Xref)
    end.

folders() ->
    _ = application:load(witness),
    {ok, Modules} = application:get_key(witness, modules),
    #{M => folder(M) || M <- Modules, in_src(source(M))}.

source(M) -> proplists:get_value(source, M:module_info(compile)).

%% The test profile compiles tests and loads into the application too.
in_src(Source) -> lists:member("src", filename:split(Source)).

folder(M) ->
    case lists:reverse(filename:split(source(M))) of
        [_, "src" | _] -> "";
        [_, Folder | _] -> Folder
    end.

by_prefix(Module) ->
    Matching = [Folder || Folder := Prefixes <- prefixes(), Prefix <- Prefixes,
                          Module =:= Prefix orelse lists:prefix(Prefix ++ "_", Module)],
    case Matching of [Folder] -> Folder; [] -> "" end.
