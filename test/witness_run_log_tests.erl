-module(witness_run_log_tests).
-moduledoc "What the hidden monitor of a run writes to its log.".
-include_lib("eunit/include/eunit.hrl").

-define(INIT, {init, self(), undefined, {m, f, []}, 1}).
-define(CALL, {call, self(), {ets, insert, [t, {1}]}, 2}).
-define(LOADED, witness_run_log_loaded).
-define(RETURN, {return, self(), {ets, insert, 2}, true, 3}).

calls_of_the_functions_that_are_traced_are_lines_test_() ->
    [{Name, fun() ->
        ?assertEqual([{receives, delivered}, {functions, [{ets, insert, 2}, {ets, new, 2}]}, ?INIT, ?CALL, ?RETURN],
                     written(Name, {[{ets, insert, 2}, {ets, new, 2}], none}, [?INIT, ?CALL, ?RETURN]))
     end} || Name <- ["run.log", "run.jsonl"]].

a_run_without_functions_has_a_log_without_them_test_() ->
    ?_assertEqual([{receives, delivered}, ?INIT], written("run.log", {[], none}, [?INIT])).

%% The first event that is written then has the head in front.
a_log_that_has_lost_its_functions_does_not_name_them_any_more_test_() ->
    {timeout, 60, fun() ->
        ok = load(),
        {ok, Watch} = witness_trace_functions:open([{?LOADED, one, 0}]),
        Return = {return, self(), {?LOADED, one, 0}, one, 2},
        ?assertEqual([{receives, delivered}, {functions, [{?LOADED, one, 0}]}, ?INIT, Return, {receives, delivered}, Return, ?INIT],
                     written("run.log", {[{?LOADED, one, 0}], Watch}, [?INIT, Return, fun load/0, Return, ?INIT])),
        %% The time of the stop is about calls, too.
        {ok, Next} = witness_trace_functions:open([{?LOADED, one, 0}]),
        StopTime = witness_monitor_stop_time:new(),
        ok = witness_monitor_stop_time:note(7, StopTime),
        [begin
             {Head, [{clock, _} | Rest]} = lists:split(2, written("run.log", {[{?LOADED, one, 0}], Next}, [?INIT | Events], StopTime)),
             ?assertEqual([{receives, delivered}, {functions, [{?LOADED, one, 0}]}, ?INIT | End], Head ++ Rest)
         end || {Events, End} <- [{[], [{clock, 7}]}, {[fun load/0], [{receives, delivered}, {clock, 7}]}]],
        [ok = witness_trace_functions:close(Of) || Of <- [Watch, Next]],
        _ = code:purge(?LOADED),
        _ = code:delete(?LOADED)
    end}.

load() ->
    {ok, ?LOADED, Code} = compile:forms([{attribute, 1, module, ?LOADED}, {attribute, 1, export, [{one, 0}]},
                                         {function, 1, one, 0, [{clause, 1, [], [], [{atom, 1, one}]}]}], []),
    _ = code:purge(?LOADED),
    {module, ?LOADED} = code:load_binary(?LOADED, "", Code),
    ok.

the_hidden_monitor_reads_the_calls_of_these_functions_only_test_() ->
    Alphabet = fun(Functions) -> witness_monitor_alphabet:of_monitor({witness_monitor_log, {Functions, fun(_, _) -> ok end}}) end,
    Wanted = fun(Functions) ->
        [element(1, E) || E <- [?INIT, ?CALL, ?RETURN, {send, self(), self(), hello, 4}, {call, self(), {ets, new, [t, []]}, 5}],
                          witness_monitor_alphabet:slice(E, witness_monitor_alphabet:compile(Alphabet(Functions))) =/= skip]
    end,
    [?_assertEqual([], witness_monitor_alphabet:functions({witness_monitor_log, {[], fun(_, _) -> ok end}})),
     ?_assertEqual([init, send], Wanted([])),
     ?_assertEqual([init, call, return, send], Wanted([{ets, insert, 2}])),
     ?_assertEqual([init, send, call], Wanted([{ets, new, 2}]))].

%% The items in a log to which the hidden monitor was given these events.
written(Name, Functions, Events) -> written(Name, Functions, Events, witness_monitor_stop_time:none()).

written(Name, Functions, Events, StopTime) ->
    Dir = string:trim(os:cmd("mktemp -d")),
    File = filename:join(Dir, Name),
    try
        {ok, Logging} = witness_run_log:open(#{log_file => File, log_size => infinity, scope => tree}, Functions, StopTime),
        ok = witness_run_log:start(Logging),
        [{_, {Monitor, Arg}}] = witness_run_log:monitors(Logging),
        {ok, State} = Monitor:init({m, f, []}, self(), Arg),
        lists:foldl(fun
            (Load, S) when is_function(Load) -> ok = Load(), S;
            (E, S) -> {ok, S1} = Monitor:handle_event(E, S), S1
        end, State, Events),
        ok = witness_run_log:close(Logging),
        {ok, Text} = file:read_file(File),
        {ok, Format} = witness_log:format_of(File),
        #{items := Items, malformed := []} = witness_log:parse(Text, witness_log:parser(#{format => Format})),
        [Item || {_, Item} <- Items]
    after
        file:del_dir_r(Dir)
    end.
