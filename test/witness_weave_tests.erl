-module(witness_weave_tests).
-moduledoc """
What is woven and what is not, case by case; what is refused, with its reason; and what the compiler makes of woven code.
That programs go on to do what they did is in `witness_weave_props_tests`.
""".
-include_lib("eunit/include/eunit.hrl").

-export([id/1, sent/2, received/1, entry/3, send/3, spawn/3, dictionary/3, apply/3, function/3, hibernate/3]).

-compile({no_auto_import, [apply/3, spawn/3]}).

-define(M, witness_weave_case).

%% --- what is woven ---------------------------------------------------------------

%% Each call by what it becomes: `none' is left as it is.
calls_test_() ->
    [{Text, ?_assertEqual(Becomes, becomes(Text))} || {Becomes, Texts} <- [
        {sent, ["P ! M", "erlang:send(P, M)", "erlang:'!'(P, M)", "apply(erlang, send, [P, M])", "sent_by_import(P, M)"]},
        {send, ["erlang:send(P, M, [])", "erlang:send_nosuspend(P, M)", "erlang:send_nosuspend(P, M, [])",
                "send_nosuspend(P, M)"]},
        {spawn, ["spawn(M)", "spawn(P, M)", "spawn(a, b, [])", "erlang:spawn(n, a, b, [])", "spawn_link(M)",
                 "spawn_monitor(M)", "erlang:spawn_monitor(n, a, b, [])", "spawn_opt(M, [])", "spawn_opt(n, a, b, [], [])",
                 "proc_lib:spawn(M)", "proc_lib:spawn_link(n, a, b, [])", "proc_lib:spawn_opt(M, [])",
                 "erlang:apply(erlang, spawn, [M])"]},
        {spawn_request, ["spawn_request(M)", "erlang:spawn_request(n, a, b, [], [])"]},
        {start, ["proc_lib:start_link(a, b, [])", "gen_server:start_link(a, b, [])", "gen_statem:start({local, a}, a, b, [])",
                 "supervisor:start_link(a, b)"]},
        {call, ["gen_server:call(P, M)", "gen_statem:call(P, M, 5)"]},
        {cast, ["gen_server:cast(P, M)"]},
        {reply, ["gen_server:reply(P, M)", "gen_statem:reply(P, M)"]},
        {dictionary, ["get()", "erlang:get_keys()", "erase()"]},
        {hibernate, ["erlang:hibernate(a, b, [])", "proc_lib:hibernate(a, b, [])"]},
        {apply, ["M:send(a, b)", "erlang:M(a, b)", "P:M(a)", "apply(P, M, [])", "apply(P, M, P)", "erlang:apply(erlang, M, P)",
                 "M:spawn(a)"]},
        {function, ["fun erlang:send/2", "fun spawn/1", "fun erlang:M/2", "fun M:spawn/1", "fun M:P/1", "fun sent_by_import/2"]},
        {none, ["spawn(a, b, c, d, e, f)", "get(M)", "erase(M)", "M:nothing_like_it(a)", "erlang:M(a, b, c, d, e, f, g)",
                "m:send(P, M)", "M(P)", "fun lists:M/2", "fun own/1", "own(M)", "?MODULE:own(M)", "apply(M, P)",
                "apply(lists, M, P)", "element(1, M)", "?MODULE:spawn(M)"]}],
        Text <- Texts].

%% If a module has a function with the name of an auto-imported one, a local call means the module's own.
own_functions_test_() ->
    Own = "-compile({no_auto_import, [spawn/1, send/2, get/0, hibernate/3]}).\nspawn(X) -> X.\nget() -> 0.\nhibernate(_, _, X) -> X.\n",
    [?_assertEqual(none, becomes(Own, Text)) || Text <- ["spawn(M)", "get()", "fun spawn/1", "hibernate(M, P, 1)"]]
        ++ [?_assertEqual(spawn, becomes(Own, "erlang:spawn(M)")), ?_assertEqual(spawn, becomes(Own, "spawn(P, M)"))].

becomes(Text) -> becomes("", Text).

becomes(Own, Text) ->
    Forms = witness_weave_source:forms([
        "-module(", atom_to_list(?M), ").\n-export([f/2]).\n-import(erlang, [send_nosuspend/2]).\n"
        "-import(erlang, [sent_by_import/2]).\n", Own, "own(X) -> X.\nf(P, M) ->\n    ",
        string:replace(Text, "?MODULE", atom_to_list(?M), all), ".\n"]),
    Imported = [case Form of
                    {attribute, A, import, {erlang, [{sent_by_import, 2}]}} -> {attribute, A, import, {erlang, [{send, 2}]}};
                    _ -> Form
                end || Form <- rename(Forms)],
    Original = function(f, Imported),
    case function(f, witness_weave:weave(Imported, plan())) of
        Original -> none;
        Woven -> runtime(Woven)
    end.

rename({atom, A, sent_by_import}) -> {atom, A, send};
rename({function, sent_by_import, 2}) -> {function, send, 2};
rename(Term) when is_tuple(Term) -> list_to_tuple(rename(tuple_to_list(Term)));
rename([Head | Tail]) -> [rename(Head) | rename(Tail)];
rename(Term) -> Term.

function(Name, Forms) -> hd([Form || {function, _, F, _, _} = Form <- Forms, F =:= Name]).

runtime(Woven) ->
    [Function] = [F || {remote, _, {atom, _, ?MODULE}, {atom, _, F}} <- subterms(Woven, [])],
    Function.

subterms(Node, Found) when is_tuple(Node) -> [Node | subterms(tuple_to_list(Node), Found)];
subterms([Head | Tail], Found) -> subterms(Head, subterms(Tail, Found));
subterms(_, Found) -> Found.

plan() -> #{runtime => ?MODULE}.

%% By a plan for recording: sends and times, and calls of the plan's table with their numbers.
replaced_test_() ->
    Plan = (witness_record_calls:plan())#{runtime => ?MODULE, natives => #{{no_such, f, 1} => 1000}},
    Number = witness_record_calls:number(ets, lookup, 2),
    [{Text, ?_assertEqual(Expected, woven_as(Text, Plan))}
     || {Text, Expected} <- [
            {"P ! M", [{send, "erlang, send, [@1, @2]"}]},
            {"erlang:send(P, M)", [{send, "erlang, send, [@1, @2]"}]},
            {"erlang:send(P, M, [])", [{send, "erlang, send, [P, M, []]"}]},
            {"receive M -> a after 1 -> b end", [{received, "@1"}, {waits, "1"}, {timeout, ""}]},
            {"receive after P -> b end", [{waits, "P"}, {timeout, ""}]},
            {"receive M -> a after 0 -> b end", [{received, "@1"}, {timeout, ""}]},
            {"receive M -> a after infinity -> b end", [{received, "@1"}, {waits, "infinity"}]},
            {"ets:lookup(P, M)", [{result, integer_to_list(Number) ++ ", ets, lookup, [P, M]"}]},
            {"fun ets:lookup/2", [{function, "ets, lookup, 2"}]},
            {"apply(ets, M, P)", [{apply, "ets, M, P"}]},
            {"P:lookup(M, 1)", [{apply, "P, lookup, [M, 1]"}]},
            {"no_such:f(M)", [{foreign, "1000, no_such, f, [M]"}]},
            {"P:f(M)", [{apply, "P, f, [M]"}]},
            {"no_such:f(M, P)", []},
            {"gen_server:call(P, M)", []},
            {"P(M)", []},
            {"P:handle_call(M, a, b)", []},
            {"spawn(M)", [{spawn, "erlang, spawn, [M]"}]},
            {"get()", [{dictionary, "erlang, get, []"}]},
            {"process_info(P)", [{information, "erlang, process_info, [P]"}]},
            {"init:stop()", [{foreign, integer_to_list(witness_record_calls:number(init, stop, 0)) ++ ", init, stop, []"}]}]].

%% What the module of a function calls is the function of the VM, too.
functions_of_the_module_itself_test() ->
    Forms = witness_weave_source:forms("-module(ets).\n-export([lookup/2, f/2]).\nlookup(_, _) -> ok.\n"
                                       "f(P, M) -> {lookup(P, M), fun lookup/2, fun f/2, f(M, P)}.\n"),
    Woven = witness_weave:weave(Forms, (witness_record_calls:plan())#{runtime => ?MODULE}),
    ?assertMatch([{function, "ets, lookup, 2"}, {result, _}], lists:sort(told(function(f, Woven)))).

%% The code that makes the record calls them.
defaults_of_records_test() ->
    Forms = witness_weave_source:forms("-module(a).\n-export([f/0]).\n-record(r, {a = make_ref(), b = make_ref() :: reference()}).\n"
                                       "f() -> #r{}.\n"),
    [Record] = [Form || {attribute, _, record, _} = Form <-
                    witness_weave:weave(Forms, (witness_record_calls:plan())#{runtime => ?MODULE})],
    ?assertMatch([{result, _}, {result, _}], told(Record)).

%% To another process of this node the code sends by itself. For any other destination it calls the run-time module.
announced_sends_test_() ->
    Plan = #{runtime => ?MODULE, sends => announced},
    [?_assertEqual([{sent, "@1, @2"}, {send, "erlang, send, [@1, @2]"}], woven_as(Text, Plan))
     || Text <- ["P ! M", "erlang:send(P, M)"]].

replaced_sends_test() ->
    load(witness_weave:weave(witness_weave_source:forms(
        "-module(witness_weave_case).\n-export([f/2, g/2]).\nf(P, M) -> P ! M.\ng(P, M) -> erlang:send(P, M).\n"),
        #{runtime => ?MODULE, sends => replaced})),
    register(witness_weave_case, self()),
    Test = self(),
    Relay = spawn_link(fun Relay() -> receive hello -> Test ! hello, Relay(); stop -> ok end end),
    try
        [begin
             ?assertEqual({F, To, hello}, {F, To, ?M:F(To, hello)}),
             receive hello -> ok end,
             ?assertEqual(Told, erase(sent))
         end || F <- [f, g], {To, Told} <- [{Relay, undefined}, {self(), self()}, {witness_weave_case, witness_weave_case},
                                            {{witness_weave_case, node()}, {witness_weave_case, node()}}]],
        ?assertError(badarg, ?M:f(witness_weave_nobody, hello)),
        ?assertError(badarg, ?M:f(1.5, hello))
    after
        Relay ! stop,
        erase(sent),
        unregister(witness_weave_case),
        forget()
    end.

%% A `receive` that may wait is announced with its timeout.
announced_waits_test_() ->
    Plan = #{runtime => ?MODULE, sends => announced, waits => true},
    [?_assertEqual({Text, Waits}, {Text, [Told || {F, _} = Told <- woven_as(Text, Plan), F =/= received, F =/= send]})
     || {Text, Waits} <- [{"receive M -> P end", [{waits, "infinity"}]},
                          {"receive M -> P after 0 -> M end", []},
                          {"receive M -> P after 100 -> M end", [{waits, "100"}]},
                          {"receive M -> P after M -> M end", [{waits, "M"}]},
                          {"receive after infinity -> M end", [{waits, "infinity"}]},
                          {"receive M -> P after f(P, M) -> M end", [{waits, "f(P, M)"}]},
                          {"receive 1 -> receive M -> P end end", [{waits, "infinity"}, {waits, "infinity"}]}]].

woven_as(Text, Plan) ->
    Forms = witness_weave_source:forms(["-module(witness_weave_case).\n-export([f/2]).\nf(P, M) -> ", Text, ".\n"]),
    told(function(f, witness_weave:weave(Forms, Plan))).

%% The calls of the run time, in the order of the text.
told(Function) ->
    lists:reverse([{F, lists:flatten(lists:join(", ", [erl_pp:expr(Arg) || Arg <- Args]))}
                   || {call, _, {remote, _, {atom, _, ?MODULE}, {atom, _, F}}, Args} <- lists:reverse(subterms(Function, []))]).

%% A module of which nothing is woven is left as it is, but for its mark.
nothing_to_weave_test() ->
    Forms = witness_weave_source:forms("-module(a).\n-export([f/1]).\n-record(r, {a = 1 :: integer()}).\n-spec f(any()) -> any().\n"
                                       "f(#r{a = A}) when A > 1 -> [B || B <- [A], B] ++ << <<1>> || _ <- [] >>.\n"),
    ?assertEqual(Forms, [Form || Form <- witness_weave:weave(Forms, plan()), element(3, Form) =/= witness_weave]).

%% --- what the compiler makes of it -----------------------------------------------

%% Code of which the compiler does not warn, with all that it could warn of after weaving.
no_warnings_test() ->
    Text = ["""
        -module(witness_weave_case).
        -export([go/1, loop/2, m/1]).
        -record(r, {a = self(), b}).
        go(P) ->
            P ! one,
            _ = P ! two,
            {X, Y} = {P ! 3, case P ! four of four -> 4; _ -> 5 end},
            F = fun(Z) -> (Z ! P) ! #r{b = X} end,
            ok = receive ok -> ok; #r{a = A} when A > 1 -> A; "abc" ++ _ -> b; Q = [_ | _] -> Q after P ! 0 -> ok end,
            try (F(Y)) ! x of P -> P ! none; _ -> erlang:send(P, 1) catch C:R:S -> P ! {C, R, S} after P ! after_all end,
            [Q ! P || Q <- [P], true =:= (Q ! true)],
            loop(P, 1).
        loop(_, 0) -> done;
        loop({_, _} = P, N) when N > 0 -> receive _ -> loop(P, N - 1) end;
        loop(P, N) -> spawn(fun() -> loop(P, N) end), P ! N, loop(P, N - 1).
        m(_) -> receive _X -> ok after 0 -> receive {_, b} -> self() ! 1; c -> 2 end end.

        """],
    Forms = witness_weave_source:forms(Text),
    Options = [binary, return, warn_export_vars, warn_unused_vars, warn_shadow_vars, warn_unused_import, warn_obsolete_guard,
               warn_missing_spec_all, warn_keywords, nowarn_missing_spec_all],
    ?assertMatch({ok, _, _, []}, compile:noenv_forms(Forms, Options)),
    [?assertMatch({ok, _, _, []}, compile:noenv_forms(witness_weave:weave(Forms, (plan())#{entries => Entries}), Options))
     || Entries <- [[], all]].

%% The compiler says which receives skip what was in the queue before the reference was made.
selective_receive_test() ->
    Text = """
        -module(witness_weave_case).
        -export([call/2, nested/1]).
        call(P, Request) ->
            Ref = erlang:monitor(process, P),
            P ! {self(), Ref, Request},
            receive
                {Ref, Reply} -> erlang:demonitor(Ref, [flush]), Reply;
                {'DOWN', Ref, process, _, Reason} -> exit(Reason)
            after 5000 -> exit(timeout)
            end.
        nested(P) ->
            Ref = make_ref(),
            P ! Ref,
            receive {Ref, X} when X > 1 -> X; {error, Ref} -> P ! error end.

        """,
    Forms = witness_weave_source:forms(Text),
    Options = [binary, return, recv_opt_info],
    {ok, _, _, [{_, Original}]} = compile:noenv_forms(Forms, Options),
    {ok, _, _, [{_, Woven}]} = compile:noenv_forms(witness_weave:weave(Forms, (plan())#{entries => all}), Options),
    ?assertEqual(4, length(Original)),
    ?assertEqual(Original, Woven),
    {ok, _, _, [{_, Recorded}]} =
        compile:noenv_forms(witness_weave:weave(Forms, (witness_record_calls:plan())#{runtime => ?MODULE}), Options),
    Markers = fun(All) -> [case Told of {Kind, _} -> Kind; Kind -> Kind end || {_, _, Told} <- All] end,
    ?assertEqual([reserved_receive_marker, used_receive_marker, reserved_receive_marker, used_receive_marker],
                 Markers(Recorded)).

%% Ten million turns need no more stack than ten.
tail_calls_test_() ->
    {timeout, 300, fun() ->
        load(witness_weave:weave(loop(), (plan())#{entries => all})),
        ?assertEqual(turns(10), turns(10_000_000)),
        forget()
    end}.

%% A fault that the test above would find.
a_call_that_is_no_tail_call_any_more_is_found_test_() -> {timeout, 60, fun a_call_that_is_no_tail_call_any_more_is_found/0}.

a_call_that_is_no_tail_call_any_more_is_found() ->
    Weaver = witness_weave_mutant:load(witness_weave_entry, "[{clause, G, [{atom, G, go}], [], Body},",
                                       "[{clause, G, [{atom, G, go}], [], [{'catch', G, {block, G, Body}}]},"),
    load(Weaver:weave(loop(), (plan())#{entries => all})),
    ?assert(turns(1000) > turns(10) + 1000),
    witness_weave_mutant:forget(),
    forget().

loop() ->
    witness_weave_source:forms("""
        -module(witness_weave_case).
        -export([loop/2, even/2]).
        loop(P, 0) -> P ! {self(), element(2, erlang:process_info(self(), stack_size))};
        loop(P, N) when N rem 4 =:= 0 ->
            self() ! turn,
            receive turn when N > 0 -> loop(P, N - 1) after 0 -> even(P, N) end;
        loop(P, N) when N rem 4 =:= 1 ->
            try N of _ -> even(P, N - 1) catch _:_ -> none end;
        loop(P, N) ->
            maybe
                true ?= N > 0,
                apply(witness_weave_case, even, [P, N - 1])
            end.
        even(P, N) when N rem 2 =:= 0 -> witness_weave_case:loop(P, N);
        even(P, N) -> (witness_weave_tests:id(witness_weave_case)):(witness_weave_tests:id(loop))(P, N).

        """).

turns(N) ->
    Parent = self(),
    P = spawn_link(fun() -> ?M:loop(Parent, N) end),
    receive {P, Size} -> Size end.

id(Term) -> Term.

%% The compiler duplicates the last part of a `try' if it is small. If it is large, it becomes a function, which takes one of the
%% numbers that name funs. Whatever the size of that part, and of one within it, funs keep their names.
names_of_funs_test_() ->
    {timeout, 120, fun() ->
        Inner = [inner(Size) || Size <- lists:seq(0, 12)],
        Cases = [witness_weave_source:forms(in_module(Text))
                 || Text <- Inner ++ [outer(Text, Size) || Text <- Inner, Size <- [0, 3, 6, 9, 12]]],
        _ = [?assertEqual(names(Forms), names(witness_weave:weave(Forms, plan()))) || Forms <- Cases],
        [?assert(lists:any(fun(Forms) -> not keeps_names(Weaver, Forms) end, Cases))
         || {Module, Find, Replace} <- [
                {witness_weave_expr, "witness_weave_after:body(After, After1, maps:get(records, Context))", "After1"},
                {witness_weave_after, "fun smaller/1, fun larger/1]", "fun smaller/1]"},
                {witness_weave_after, "fun smaller/1, fun larger/1]", "fun larger/1]"}],
            Weaver <- [witness_weave_mutant:load(Module, Find, Replace)]],
        witness_weave_mutant:forget()
    end}.

%% Funs are numbered from the last argument to the first.
names_of_funs_in_arguments_test_() -> {timeout, 60, fun names_of_funs_in_arguments/0}.

names_of_funs_in_arguments() ->
    Cases = [witness_weave_source:forms(["-module(witness_weave_case).\n-export([f/0]).\nf() ->\nP = self(),\n_ = ", Text, ",\n",
                                         "receive F when is_function(F) -> [A, F, fun() -> 3 end] end.\n"])
             || Text <- ["begin A = fun() -> 1 end, P end ! fun() -> 2 end",
                         "erlang:send(begin A = fun() -> 1 end, P end, fun() -> 2 end, [])",
                         "(begin A = fun() -> 1 end, witness_weave_tests:id(erlang) end):send(P, fun() -> 2 end)",
                         "apply(witness_weave_tests:id(erlang), send, [begin A = fun() -> 1 end, P end, fun() -> 2 end])",
                         "begin A = fun() -> 1 end, (fun spawn_link/1)(fun() -> ok end), P end ! fun() -> 2 end"]],
    [?assertEqual(names(Forms), names(witness_weave:weave(Forms, plan()))) || Forms <- Cases],
    Weaver = witness_weave_mutant:load(witness_weave_expr, "{match, G, {tuple, G, [ToVar, MsgVar]}, {tuple, G, [To, Msg]}}",
                                       "{match, G, ToVar, To}, {match, G, MsgVar, Msg}"),
    ?assertNotEqual(names(hd(Cases)), names(Weaver:weave(hd(Cases), plan()))),
    witness_weave_mutant:forget().

in_module(Try) ->
    ["-module(witness_weave_case).\n-export([f/0]).\n-record(r, {a}).\nf() ->\n", Try,
     ",\n[fun() -> 1 end, fun(Z) -> Z end].\ng(X) -> X.\n"].

inner(Size) ->
    ["try g(1) catch exit:R -> g(R) after self() ! {s, 1},\n"
     "receive {s, #r{a = A}} -> A; {s, 1} -> 1; {s, 2} -> self() ! 3; {s, X} -> [X || X > 0] after 0 -> none end",
     lists:duplicate(Size, ", g(2)"), " end"].

outer(Inner, Size) -> ["try ok after ", Inner, lists:duplicate(Size, ", g(3)"), " end"].

keeps_names(Weaver, Forms) ->
    try
        names(Forms) =:= names(Weaver:weave(Forms, plan()))
    catch
        error:{badmatch, []} -> false
    end.

names(Code) ->
    load(Code),
    Found = [proplists:get_value(name, erlang:fun_info(Fun)) || Fun <- ?M:f()],
    forget(),
    Found.

load(Forms) ->
    {ok, ?M, Code} = compile:noenv_forms(Forms, [binary]),
    {module, ?M} = code:load_binary(?M, "case", Code).

forget() ->
    code:purge(?M),
    code:delete(?M),
    code:purge(?M).

%% --- sources of code -------------------------------------------------------------

refused_test_() ->
    Code = fun(Options) -> witness_weave_source:code("-module(witness_weave_case).\n-export([f/0]).\nf() -> 1.\n", Options) end,
    Text = fun(Attribute) ->
        witness_weave_source:code(["-module(witness_weave_case).\n", Attribute, "\n-export([f/0]).\nf() -> ok.\n"], [])
    end,
    [{lists:flatten(io_lib:format("~0p", [Expected])),
      fun() ->
          {error, Reason} = witness_weave:prepare(Object, plan()),
          ?assertEqual(Expected, Reason),
          ?assertNotEqual(nomatch, string:find(witness_weave:format_error(Reason), Said))
      end} || {Object, Expected, Said} <- [
        {no_such_module, {unknown, no_such_module}, "no such module"},
        {erlang, {preloaded, erlang}, "part of the virtual machine"},
        {lists, {sticky, lists}, "sticky"},
        {crypto, {nif, crypto}, "native functions"},
        {{?M, "", Text("-nifs([f/0]).")}, {nif, ?M}, "native functions"},
        {{?M, "", Text("-on_load(f/0).")}, {on_load, ?M}, "on_load"},
        {{?M, "", Text("-witness_weave(other).")}, {woven, ?M, other}, "woven already"},
        {{?M, "", Code([no_debug_info])}, {no_debug_info, ?M}, "debug_info"},
        {{?M, "", stripped(Code([]))}, {no_debug_info, ?M}, "debug_info"},
        {{?M, "", Code([{debug_info_key, "secret"}])}, {encrypted, ?M}, "encrypted"},
        {{?M, "", ~"nothing"}, {not_object_code, ?M, {not_a_beam_file, ~"nothing"}}, "as object code"},
        {{other, "", Code([])}, {not_object_code, other, {object_code_of, ?M}}, "as object code"},
        {{?M, "", Code([{debug_info, {no_such_backend, nothing}}])}, {no_backend, ?M, no_such_backend}, "not on the code path"}]].

stripped(Code) ->
    {ok, {_, Stripped}} = beam_lib:strip(Code),
    Stripped.

cover_compiled_test() ->
    Dir = "/tmp/witness_weave_" ++ os:getpid(),
    File = filename:join(Dir, "witness_weave_case.beam"),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, witness_weave_source:code("-module(witness_weave_case).\n-export([f/0]).\nf() -> 1.\n", [])),
    true = code:add_patha(Dir),
    try
        {ok, ?M} = cover:compile_beam(File),
        ?assertEqual({error, {cover_compiled, ?M}}, witness_weave:prepare(?M, plan())),
        ok = cover:reset(),
        cover:stop(),
        {ok, _} = witness_weave:prepare(?M, plan()),
        ?assertMatch({ok, [_ | _], _}, witness_weave:forms(?M)),
        %% What is loaded is no longer what is on the path.
        {module, ?M} = code:load_binary(?M, "case",
                                        witness_weave_source:code("-module(witness_weave_case).\n-export([f/0]).\nf() -> 2.\n",
                                                                  [])),
        ?assertEqual({error, {differs, ?M}}, witness_weave:prepare(?M, plan())),
        true = code:del_path(Dir),
        ?assertEqual({error, {no_object_code, ?M}}, witness_weave:prepare(?M, plan()))
    after
        forget(),
        code:del_path(Dir),
        file:del_dir_r(Dir)
    end.

a_receive_in_a_record_is_refused_test() ->
    Code = witness_weave_source:code("-module(witness_weave_case).\n-record(r, {a, b = receive x -> 1 end}).\n-export([f/0]).\n"
                                     "f() -> #r{a = 1}.\n", []),
    {error, Reason} = witness_weave:prepare({?M, "", Code}, plan()),
    ?assertMatch({receive_in_record, ?M, {2, _}}, Reason),
    ?assertNotEqual(nomatch, string:find(witness_weave:format_error(Reason), "line 2")).

%% Options that change code stay; those about files, reports and macros of the compilation go.
options_test() ->
    Code = witness_weave_source:code("-module(witness_weave_case).\n-compile([warnings_as_errors, {inline, [{g, 1}]}, inline_list_funcs]).\n"
                                     "-export([f/0]).\nf() -> g(1).\ng(X) -> X.\n",
                                     [no_auto_import, no_line_info, {outdir, "nowhere"}, report, {d, x}, nowarn_export_all]),
    {ok, Forms, Options} = witness_weave:forms({?M, "", Code}),
    ?assertEqual([no_auto_import, no_line_info, nowarn_export_all], Options -- [O || {source, _} = O <- Options]),
    ?assertEqual([[{inline, [{g, 1}]}, inline_list_funcs]], [O || {attribute, _, compile, O} <- Forms]),
    {ok, #{woven := Woven}} = witness_weave:prepare({?M, "", Code}, plan()),
    {module, ?M} = code:load_binary(?M, "case", Woven),
    ?assertEqual({1, {ok, ?MODULE}}, {?M:f(), witness_weave:woven(?M)}),
    forget().

%% Modules none of us wrote, of OTP and of Elixir, with each of their functions as an entry.
modules_of_others_test_() ->
    {timeout, 120, fun() ->
        Elixir = [Ebin || Path <- [os:find_executable("elixir")], is_list(Path),
                          Ebin <- [filename:join(filename:dirname(filename:dirname(Path)), "lib/elixir/lib/elixir/ebin")],
                          filelib:is_dir(Ebin)],
        _ = [code:add_pathz(Ebin) || Ebin <- Elixir],
        Modules = [mnesia_locker, httpc_handler, tls_gen_connection, ssh_sftp, eunit_proc]
            ++ [Module || _ <- Elixir, Module <- ['Elixir.Registry', 'Elixir.Task.Supervised', 'Elixir.IO.ANSI']],
        _ = [?assertMatch({ok, #{module := Module}}, witness_weave:prepare(Module, (plan())#{entries => all}))
             || Module <- Modules],
        [code:del_path(Ebin) || Ebin <- Elixir]
    end}.

%% --- a run-time module -----------------------------------------------------------

sent(_, _) -> ok.

received(_) -> ok.

entry(_, _, _) -> go.

send(M, F, [To | _] = Args) ->
    put(sent, To),
    erlang:apply(M, F, Args).

spawn(M, F, Args) -> erlang:apply(M, F, Args).

dictionary(M, F, Args) -> erlang:apply(M, F, Args).

hibernate(M, F, Args) -> erlang:apply(M, F, Args).

apply(M, F, Args) -> erlang:apply(M, F, Args).

function(M, F, Arity) -> fun M:F/Arity.
