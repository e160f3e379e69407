%% The programs of `examples/logs' log themselves, causally, and their specification finds a mistake. A program is left out
%% if its language is not installed.
-module(witness_log_examples_tests).
-include_lib("eunit/include/eunit.hrl").

programs_log_themselves_test_() ->
    {setup, fun folder/0, fun(Folder) -> ok = file:del_dir_r(Folder) end, fun(Folder) ->
        [[{timeout, 300, {Program, fun() -> right(run(Command, Program, Folder, [])) end}},
          {timeout, 300, {Program ++ " --wrong", fun() -> wrong(run(Command, Program, Folder, ["--wrong"])) end}}]
         || {Command, Program} <- [{["python3"], "counter.py"}, {["node"], "counter.js"},
             {["go", "run"], "counter.go"}],
            os:find_executable(hd(Command)) =/= false]
    end}.

right(Items) ->
    92 = length(Items),
    causal(Items),
    ?assertEqual([{~"master", [], true}, {~"worker 1", [yes], true}, {~"worker 2", [yes], true}], verdicts(Items)).

wrong(Items) ->
    causal(Items),
    ?assertEqual([{~"master", [], true}, {~"worker 1", [yes], true}, {~"worker 2", [no], true}], verdicts(Items)).

folder() ->
    Folder = filename:join(filename:basedir(user_cache, "witness_test"), "logs-" ++ os:getpid()),
    ok = filelib:ensure_path(Folder),
    Folder.

run([Command | Before], Program, Folder, Options) ->
    Log = filename:join(Folder, Program ++ ".jsonl"),
    Port = open_port({spawn_executable, os:find_executable(Command)},
                     [{args, Before ++ [filename:join("examples/logs", Program), Log | Options]}, exit_status,
                      stderr_to_stdout]),
    {0, _} = finished(Port, []),
    {ok, Block} = file:read_file(Log),
    {ok, json} = witness_log:format_of(Log),
    json = witness_log:guess(Block),
    #{items := Items, malformed := []} = witness_log:parse(Block, witness_log:parser(#{format => json})),
    [Item || {_, Item} <- Items].

finished(Port, Output) ->
    receive
        {Port, {data, Data}} -> finished(Port, [Output | Data]);
        {Port, {exit_status, Status}} -> {Status, Output}
    end.

%% Each event stands behind what caused it.
causal(Items) ->
    {Alive, Sent} = lists:foldl(fun cause/2, {#{undefined => forked}, []}, Items),
    ?assertEqual([ended], lists:usort(maps:values(maps:remove(undefined, Alive)))),
    ?assertEqual([], Sent),
    Times = [witness_event:ts(Item) || Item <- Items],
    ?assert(lists:all(fun is_integer/1, Times)).

cause({fork, P, Child, _, _}, {Alive, Sent}) when map_get(P, Alive) =:= begun, not is_map_key(Child, Alive) ->
    {Alive#{Child => {forked, P}}, Sent};
cause({init, P, undefined, _, _}, {Alive, Sent}) when not is_map_key(P, Alive) -> {Alive#{P => begun}, Sent};
cause({init, P, Parent, _, _}, {Alive, Sent}) when map_get(P, Alive) =:= {forked, Parent} -> {Alive#{P := begun}, Sent};
cause({send, P, To, Msg, _}, {Alive, Sent}) when map_get(P, Alive) =:= begun -> {Alive, [{P, To, Msg} | Sent]};
cause({recv, P, From, Msg, _}, {Alive, Sent}) when map_get(P, Alive) =:= begun ->
    true = lists:member({From, P, Msg}, Sent),
    {Alive, lists:delete({From, P, Msg}, Sent)};
cause({exit, P, ~"normal", _}, {Alive, Sent}) when map_get(P, Alive) =:= begun -> {Alive#{P := ended}, Sent}.

%% Of each process its name, the verdicts of the first property on it, and whether any property is about it.
verdicts(Items) ->
    {ok, #{module := Module} = Map, []} = witness_spec:compile_file("examples/logs/counter.hml"),
    Verdicts = lists:sort([{Name, verdicts(Module, Signature, [Item || Item <- Items, witness_event:proc(Item) =:= P]),
                            Module:match(Signature) =/= []} || {init, {external, Name} = P, _, Signature, _} <- Items]),
    ok = witness_spec:unload(Map),
    Verdicts.

verdicts(Module, Signature, Events) ->
    [verdict(Module, Events, State) || Index <- Module:match(Signature),
     {ok, State} <- [Module:init(Signature, self(), Index)]].

verdict(Module, [Event | Events], State) ->
    case Module:handle_event(Event, State) of
        {ok, Next} -> verdict(Module, Events, Next);
        {verdict, Verdict, _} -> Verdict
    end;
verdict(Module, [], State) -> element(1, Module:handle_end(complete, State)).
