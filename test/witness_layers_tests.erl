-module(witness_layers_tests).
-moduledoc """
A layer uses only what its row in the table allows. The table is that of `docs/internals/README.md`: folders under `src/`, from
the command line at the top to events and options at the bottom. No modules of a folder call each other in a circle, but for
those listed with a reason.
""".
-include_lib("eunit/include/eunit.hrl").

%% Folder (`""': the application's own) => the layers that it may use.
table() ->
    #{"event" => [],
      "option" => [],
      "text" => ["event"],
      "log" => ["event"],
      "log/recording" => ["log", "event"],
      "weave" => ["event"],
      "spec" => ["event"],
      "monitor" => ["spec", "event"],
      "check" => ["monitor", "event"],
      "trace" => ["log/recording", "log", "event"],
      "instrument" => ["trace", "monitor", "spec", "event"],
      "instrument/central" => ["instrument", "trace", "monitor", "spec", "event"],
      "instrument/outline" => ["instrument/central", "instrument", "trace", "monitor", "spec", "event"],
      "instrument/offline" => ["instrument/outline", "instrument", "trace", "monitor", "spec", "event"],
      "instrument/inline" => ["instrument", "trace", "monitor", "spec", "weave", "option", "event"],
      "record" => ["trace", "weave", "log/recording", "log", "option", "event"],
      "replay" => ["record", "trace", "weave", "log/recording", "log", "option", "event"],
      "step" => ["replay", "record", "check", "log/recording", "log", "event"],
      "search" => ["run", "replay", "record", "log/recording", "log", "trace", "weave", "spec", "monitor", "text", "option", "event"
                   | instruments()],
      "explore" => ["instrument/outline", "instrument", "event"],
      "run" => ["replay", "log/recording", "trace", "check", "monitor", "spec", "weave", "log", "text", "event" | instruments()],
      "" => ["run", "record", "spec", "check", "monitor", "trace", "weave", "text", "search", "option", "event" | instruments()],
      "elixir" => ["", "run", "text", "option", "event"],
      "remote" => ["", "run", "check", "spec", "weave", "event"],
      "bench" => ["", "event"],
      "web" => ["", "run", "bench", "text", "event"],
      "task" => ["cli", "text", "event"],
      "cli" => all}.

instruments() -> ["instrument" | ["instrument/" ++ Kind || Kind <- ["outline", "central", "inline", "offline"]]].

%% Prefixes of the modules of a folder; every other `witness' module is the application's own.
prefixes() ->
    #{"event" => ["witness_event"], "option" => ["witness_option"], "text" => ["witness_text"], "log" => ["witness_log"],
      "weave" => ["witness_weave"],
      "log/recording" => ["witness_log_recording"],
      "spec" => ["witness_spec"], "monitor" => ["witness_monitor"], "check" => ["witness_check"], "trace" => ["witness_trace"],
      "instrument" => ["witness_instrument"], "instrument/outline" => ["witness_outline"],
      "instrument/central" => ["witness_central"],
      "instrument/offline" => ["witness_offline"], "instrument/inline" => ["witness_inline"],
      "record" => ["witness_record"], "replay" => ["witness_replay"], "step" => ["witness_step"],
      "search" => ["witness_search"], "explore" => ["witness_explore"],
      "bench" => ["witness_bench"], "remote" => ["witness_remote"], "web" => ["witness_web"],
      "task" => ["witness_task", "Elixir.Mix.Tasks.Witness"],
      "elixir" => ["witness_elixir", "Elixir.Witness"],
      "run" => ["witness_run"], "cli" => ["witness_cli"]}.

layers_use_only_what_their_row_allows_test_() ->
    {timeout, 60, fun() ->
        Folders = folders(),
        ?assert(map_size(Folders) > 30),
        ?assertEqual([], forbidden(calls(), Folders))
    end}.

the_table_is_that_of_the_documentation_test() ->
    ?assertEqual(maps:map(fun(_, all) -> all; (_, Layers) -> lists:sort(Layers) end, table()), documented()).

%% The rows of `docs/internals/README.md' for folders of `src'.
documented() ->
    {ok, Page} =
        file:read_file(filename:join([witness_checkout:root(filename:dirname(code:which(?MODULE))), "docs", "internals",
                                      "README.md"])),
    {match, Rows} = re:run(Page, "^\\| `src/(.*?)/?` \\|.*\\| ([^|]*) \\|$", [global, multiline, {capture, all_but_first, list}]),
    #{Folder => documented(Uses) || [Folder, Uses] <- Rows}.

documented("all") -> all;
documented("nothing") -> [];
documented(Uses) ->
    lists:sort([case Use of "the interface" -> ""; _ -> string:trim(Use, both, "`") end || Use <- string:split(Uses, ", ", all)]).

modules_carry_the_prefix_of_their_folder_test() ->
    maps:foreach(fun(Module, Folder) ->
        ?assertEqual({Module, Folder}, {Module, by_prefix(atom_to_list(Module))})
    end, folders()).

%% Modules that call each other in a circle. Each is an algorithm in several modules.
circles() ->
    [{[witness_spec_action, witness_spec_machine_core, witness_spec_otp, witness_spec_parse],
      "recursive descent: an action may have properties inside, and properties have actions, also those of machines"},
     {[witness_inline_behaviour, witness_inline_behaviour_client, witness_inline_end, witness_inline_monitors,
       witness_inline_process,
       witness_inline_spawn],
      "what woven code calls, and what it does in the process; a spawned process calls it again"},
     {[witness_outline_pool, witness_outline_tracer],
      "the pool starts tracers, and a tracer asks its pool"},
     {[witness_trace_native, witness_trace_timer],
      "the timer calls the native code of the module that starts it"}].

only_listed_modules_call_each_other_in_a_circle_test_() ->
    {timeout, 60, fun() ->
        ?assertEqual(lists:sort([lists:sort(Modules) || {Modules, _Reason} <- circles()]), circles(calls(), maps:keys(folders())))
    end}.

a_circle_is_found_test() ->
    ?assertEqual([[a, b, c]], circles([{a, b}, {b, c}, {c, a}, {c, d}, {d, d}], [a, b, c, d])).

%% The circles of calls between modules, each sorted.
circles(Calls, Modules) ->
    Graph = digraph:new(),
    try
        _ = [digraph:add_vertex(Graph, M) || M <- Modules],
        _ = [digraph:add_edge(Graph, From, To)
             || {From, To} <- Calls, From =/= To, lists:member(From, Modules), lists:member(To, Modules)],
        lists:sort([lists:sort(Circle) || Circle = [_, _ | _] <- digraph_utils:strong_components(Graph)])
    after
        digraph:delete(Graph)
    end.

a_call_from_below_is_found_test() ->
    Folders = #{witness_event => "event", witness_spec => "spec"},
    ?assertEqual([{witness_event, witness_spec}], forbidden([{witness_event, witness_spec}], Folders)).

forbidden(Calls, Folders) ->
    lists:usort([{From, To} || {From, To} <- Calls, From =/= To,
                               is_map_key(From, Folders), is_map_key(To, Folders),
                               not allowed(maps:get(From, Folders), maps:get(To, Folders))]).

allowed(Same, Same) -> true;
allowed(From, To) ->
    case maps:get(From, table()) of
        all -> true;
        Layers -> lists:member(To, Layers)
    end.

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

%% The path of a module's folder below `src'.
folder(M) ->
    Above = tl(lists:reverse(filename:split(source(M)))),
    lists:flatten(lists:join("/", lists:reverse(lists:takewhile(fun(F) -> F =/= "src" end, Above)))).

by_prefix(Module) ->
    Matching = [{length(Prefix), Folder} || Folder := Prefixes <- prefixes(), Prefix <- Prefixes,
                                            Module =:= Prefix orelse lists:prefix(Prefix ++ "_", Module)
                                                                               orelse lists:prefix(Prefix ++ ".", Module)],
    case Matching of [] -> ""; _ -> element(2, lists:max(Matching)) end.
