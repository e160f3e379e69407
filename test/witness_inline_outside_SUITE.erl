-module(witness_inline_outside_SUITE).
-moduledoc """
What a monitored process does in a module that is not woven: no verdict is given on a trace in which that is missing.

Each way into such a module is tried with each thing that it can do there. The system, a library that acts and one that does
not are compiled into folders of their own.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(M, witness_inline_monitor).
-define(SYSTEM, witness_outside_system).
-define(LIBRARY, witness_outside_library).
-define(PLAIN, witness_outside_plain).

all() ->
    [dependencies_are_woven, a_library_that_is_not_woven_is_a_gap, a_library_without_debug_information_is_a_gap,
     a_module_that_is_loaded_later_is_a_gap, what_does_not_act_and_calls_of_others_are_no_gap,
     a_verdict_before_the_call_stands, a_process_whose_run_is_stopped_after_the_call_is_not_judged,
     acting_is_known_from_object_code].

suite() -> [{timetrap, {minutes, 5}}].

init_per_suite(Config) ->
    #{level := Before} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    {ok, _} = application:ensure_all_started(witness),
    [{level, Before} | Config].

end_per_suite(Config) -> ok = logger:set_primary_config(level, proplists:get_value(level, Config)).

init_per_testcase(Case, Config) ->
    Folders = [filename:join([proplists:get_value(priv_dir, Config), Case, Part]) || Part <- ["system", "library"]],
    [ok = filelib:ensure_path(Folder) || Folder <- Folders],
    ok = code:add_pathsa(Folders),
    [{folders, Folders} | Config].

end_per_testcase(_, Config) ->
    ok = code:del_paths(proplists:get_value(folders, Config)),
    [begin code:purge(M), code:delete(M), code:purge(M) end || M <- [?SYSTEM, ?LIBRARY, ?PLAIN]],
    ?assertEqual(#{}, witness_weave_loader:status()).

%% --- the modules -----------------------------------------------------------------

compiled(Config, Options) ->
    [System, Library] = proplists:get_value(folders, Config),
    [object(Folder, Module, Text, With)
     || {Folder, Module, Text, With} <- [{System, ?SYSTEM, system(), [debug_info]}, {Library, ?LIBRARY, library(), Options},
                                         {Library, ?PLAIN, plain(), Options}]],
    ok.

object(Folder, Module, Text, Options) ->
    File = filename:join(Folder, atom_to_list(Module) ++ ".erl"),
    ok = file:write_file(File, ["-module(", atom_to_list(Module), ").\n", Text]),
    {ok, Module} = compile:file(File, [{outdir, Folder}, report | Options]).

%% The first process hands out the function of the library, so that a fun of it is called which the process did not make.
system() ->
    "-export([main/2, worker/3, done/1]).\n"
    "main(Collector, Pairs) ->\n"
    "    Refs = [begin\n"
    "                {P, Ref} = spawn_monitor(?MODULE, worker, [Collector, Way, Act]),\n"
    "                P ! {handed, witness_outside_library:made()},\n"
    "                Ref\n"
    "            end || {Way, Act} <- Pairs],\n"
    "    [receive {'DOWN', Ref, process, _, _} -> ok end || Ref <- Refs].\n"
    "worker(Collector, Way, Act) ->\n"
    "    receive {handed, Fun} -> ok end,\n"
    "    self() ! {told, 1},\n"
    "    went(Way, Act, Fun),\n"
    "    done(Collector).\n"
    "done(Collector) -> Collector ! {done, self()}, receive _ -> done(Collector) after 0 -> ok end.\n"
    "went(name, Act, _) -> witness_outside_library:act(Act);\n"
    "went(variable, Act, _) -> M = list_to_atom(\"witness_outside_library\"), M:act(Act);\n"
    "went(apply, Act, _) -> apply(witness_outside_library, act, [Act]);\n"
    "went(function, Act, _) -> F = fun witness_outside_library:act/1, F(Act);\n"
    "went(otp, Act, _) -> lists:foreach(fun witness_outside_library:act/1, [Act]);\n"
    "went(plain, Act, _) -> witness_outside_plain:call(fun witness_outside_library:act/1, Act);\n"
    "went(handed, Act, Fun) -> Fun(Act);\n"
    "went(nowhere, _, _) -> witness_outside_plain:call(fun(X) -> X end, 1).\n".

library() ->
    "-export([act/1, made/0]).\n"
    "made() -> fun(Act) -> act(Act) end.\n"
    "act('receive') -> receive {told, N} -> N end;\n"
    "act(timeout) -> receive {told, N} -> N after 1000 -> ok end;\n"
    "act(send) -> self() ! sent;\n"
    "act(send_nosuspend) -> erlang:send_nosuspend(self(), sent);\n"
    "act(function) -> F = fun erlang:send/2, F(self(), sent);\n"
    "act(dynamic) -> M = list_to_atom(\"erlang\"), M:send(self(), sent);\n"
    "act(cast) -> gen_server:cast(self(), sent);\n"
    "act(spawn) -> spawn(lists, seq, [1, 2]).\n".

plain() ->
    "-export([call/2]).\n"
    "call(F, X) -> [Y] = lists:map(F, [X]), {Y, F(X) =:= Y}.\n".

ways() -> [name, variable, apply, function, otp, handed].
acts() -> ['receive', timeout, send, send_nosuspend, function, dynamic, cast, spawn].

%% --- runs ------------------------------------------------------------------------

%% The summary, and the verdict on the worker of each pair.
run(Weave, Pairs) ->
    Options = #{instrument => inline, log => false, system => {?SYSTEM, main, [self(), Pairs]},
                monitors => [{{?SYSTEM, worker, 3}, {?M, events}}]},
    {ok, Run} = witness:start(case Weave of default -> Options; _ -> Options#{weave => Weave} end),
    {ok, Summary} = witness:await(Run, 60_000),
    Verdicts = #{{Way, Act} => V || #{signature := {_, _, [_, Way, Act]}} = V <- witness:verdicts(Run)},
    {ok, _} = witness:stop(Run),
    [receive {done, _} -> ok after 0 -> error(not_done) end || _ <- Pairs],
    ?assertEqual(lists:sort(Pairs), lists:sort(maps:keys(Verdicts))),
    {Summary, Verdicts}.

every() -> [{Way, Act} || Way <- ways(), Act <- acts()].

%% What the worker does in the library, as its monitor is to see it.
dependencies_are_woven(Config) ->
    ok = compiled(Config, [debug_info]),
    {#{outcome := ok}, Verdicts} = run(default, every()),
    [begin
         #{verdict := yes, info := Events, process := P} = V,
         [{init, P, _, _, _}, {recv, P, _, {handed, _}, _}, {send, P, P, {told, 1}, _}, Done | _] = Events,
         ?assertEqual({Way, Act, true}, {Way, Act, is_act(Act, Done)})
     end || {Way, Act} := V <- Verdicts].

is_act(Act, Event) when Act =:= 'receive'; Act =:= timeout -> element(1, Event) =:= recv andalso element(4, Event) =:= {told, 1};
is_act(cast, Event) -> element(1, Event) =:= send andalso element(4, Event) =:= {'$gen_cast', sent};
is_act(spawn, Event) -> element(1, Event) =:= fork;
is_act(_, Event) -> element(1, Event) =:= send andalso element(4, Event) =:= sent.

%% One worker calls the library through the module that does not act; the others do not call that module.
a_library_that_is_not_woven_is_a_gap(Config) ->
    ok = compiled(Config, [debug_info]),
    unseen([?SYSTEM], [{plain, send} | every()]).

a_library_without_debug_information_is_a_gap(Config) ->
    ok = compiled(Config, []),
    unseen(default, every()).

unseen(Weave, Pairs) ->
    {#{outcome := untrusted, warnings := Warnings}, Verdicts} = run(Weave, [{nowhere, none} | Pairs]),
    {#{verdict := yes}, Unseen} = maps:take({nowhere, none}, Verdicts),
    [?assertMatch({Pair, #{verdict := inconclusive, reason := {gap, {not_woven, ?LIBRARY}}}}, {Pair, V}) || Pair := V <- Unseen],
    ?assertMatch([_ | _], [T || #{text := T} <- Warnings, string:find(T, atom_to_list(?LIBRARY)) =/= nomatch]).

%% It is neither on the code path nor loaded when the run begins.
a_module_that_is_loaded_later_is_a_gap(Config) ->
    ok = compiled(Config, [debug_info]),
    [_, Library] = proplists:get_value(folders, Config),
    {ok, ?LIBRARY, Code} = compile:file(filename:join(Library, atom_to_list(?LIBRARY) ++ ".erl"), [binary]),
    ok = file:delete(filename:join(Library, atom_to_list(?LIBRARY) ++ ".beam")),
    {ok, Run} = witness:start(#{instrument => inline, log => false, weave => [?SYSTEM],
                                system => {?SYSTEM, worker, [self(), variable, send]},
                                monitors => [{{?SYSTEM, worker, 3}, {?M, events}}]}),
    #{root := P} = witness:info(Run),
    {module, ?LIBRARY} = code:load_binary(?LIBRARY, "nowhere", Code),
    P ! {handed, none},
    {ok, #{outcome := untrusted}} = witness:await(Run, 60_000),
    ?assertMatch([#{verdict := inconclusive, reason := {gap, {not_woven, ?LIBRARY}}}], witness:verdicts(Run)),
    {ok, _} = witness:stop(Run).

%% The first process, which has no monitor, calls the library, which makes the fun.
what_does_not_act_and_calls_of_others_are_no_gap(Config) ->
    [begin
         ok = compiled(Config, Options),
         ?assertMatch({#{outcome := ok}, #{{nowhere, none} := #{verdict := yes}}}, run(Weave, [{nowhere, none}])),
         [begin code:purge(M), code:delete(M), code:purge(M) end || M <- [?SYSTEM, ?LIBRARY, ?PLAIN]]
     end || {Options, Weave} <- [{[debug_info], [?SYSTEM]}, {[], default}]].

a_verdict_before_the_call_stands(Config) ->
    ok = compiled(Config, [debug_info]),
    Spec = filename:join(proplists:get_value(priv_dir, Config), "told.hml"),
    ok = file:write_file(Spec, "with witness_outside_system:worker(_, _, _)\n"
                               "monitor [_ <- _, _] [_ ? {handed, _}] [_:_ ! {told, 1}] ff."),
    {ok, Run} = witness:start(#{instrument => inline, log => false, weave => [?SYSTEM], specs => [Spec],
                                system => {?SYSTEM, main, [self(), [{name, send}]]}}),
    {ok, #{outcome := violated, gaps := 0}} = witness:await(Run, 60_000),
    ?assertMatch([#{verdict := no}], witness:verdicts(Run)),
    {ok, _} = witness:stop(Run).

a_process_whose_run_is_stopped_after_the_call_is_not_judged(Config) ->
    ok = compiled(Config, [debug_info]),
    Self = self(),
    {ok, Run} = witness:start(#{instrument => inline, log => false, weave => [?SYSTEM],
                                system => {?SYSTEM, worker, [Self, handed, none]},
                                monitors => [{{?SYSTEM, worker, 3}, {?M, events}}]}),
    #{root := P} = witness:info(Run),
    Made = ?LIBRARY:made(),
    P ! {handed, fun(_) -> (?PLAIN):call(fun(F) -> F(send) end, Made), Self ! {there, self()}, receive go -> ok end end},
    receive {there, P} -> ok end,
    {ok, #{outcome := untrusted}} = witness:stop(Run),
    P ! go.

%% --- object code -----------------------------------------------------------------

acting_is_known_from_object_code(_) ->
    [begin
         {ok, Module, Code} = compile:forms(forms("-module(witness_outside_facts).\n-export([f/2]).\n" ++ Text),
                                            [binary | Options]),
         #{acts := Is} = witness_inline_reach:facts_of_code(Code),
         ?assertEqual({Text, Options, Acts}, {Text, Options, Is}),
         Module = witness_outside_facts
     end || Options <- [[], [no_ssa_opt], [debug_info]],
            {Acts, Text} <- [{true, "f(P, M) -> P ! M.\n"}, {true, "f(P, M) -> receive {P, M} -> ok end.\n"},
                             {true, "f(P, _) -> receive after P -> ok end.\n"}, {true, "f(P, M) -> P:M(1).\n"},
                             {true, "f(P, M) -> erlang:send(P, M, []).\n"}, {true, "f(P, M) -> apply(P, M, []).\n"},
                             {true, "f(_, _) -> [#{a => {fun erlang:send/2, 1}}].\n"},
                             {true, "f(P, _) -> spawn(P).\n"}, {true, "f(P, M) -> gen_server:call(P, M).\n"},
                             {true, "f(P, _) -> fun() -> proc_lib:spawn(P) end.\n"},
                             {false, "f(P, M) -> lists:map(P, M).\n"}, {false, "f(P, M) -> P(M).\n"},
                             {false, "f(P, M) -> [#{a => {fun lists:map/2, send, P, M}}].\n"},
                             {false, "f(P, _) -> get(P).\n"}]].

forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    forms(Tokens, [], []).

forms([], [], Forms) -> lists:reverse(Forms);
forms([{dot, _} = Dot | Tokens], Form, Forms) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse([Dot | Form])),
    forms(Tokens, [], [Parsed | Forms]);
forms([Token | Tokens], Form, Forms) -> forms(Tokens, [Token | Form], Forms).
