-module(witness_weave_blocks_tests).
-moduledoc "Receives that say when they block: the same code, woven and not, is given the same messages.".
-include_lib("eunit/include/eunit.hrl").

-export([blocks/1, wakes/1]).

-define(MODULE_NAME, witness_weave_blocks_example).

%% The run time.
blocks(Time) ->
    put(blocked, [Time | noted()]),
    blocked.

wakes(blocked) ->
    put(woken, woken() + 1).

noted() -> case get(blocked) of undefined -> []; Times -> Times end.
woken() -> case get(woken) of undefined -> 0; N -> N end.

-define(SOURCE, """
f(1, A, T) -> receive {A, X} when X > 1 -> {first, X}; {other, Y} -> {second, Y, A} after T -> {none, A} end;
f(2, A, T) -> receive <<N, B:N/binary, _/binary>> -> {N, B}; #{A := V} -> V after T -> none end;
f(3, A, _) -> receive A -> A end;
f(4, A, _) -> X = receive {A, Y} -> Z = Y; {b, Y} -> Z = {A, Y} end, {X, Y, Z};
f(5, A, T) -> receive {A, X} -> receive {X, Y} -> {X, Y} after T -> {inner, X} end after T -> outer end;
f(6, A, T) -> receive M -> (fun(K) -> {K, M, A} end)(2) after T -> fun() -> A end() end;
f(7, A, T) -> receive after T -> A end;
f(8, A, _) -> receive {A, X} -> X after 0 -> receive {b, X} -> X end end;
f(9, A, T) -> R = make_ref(), self() ! {A, R}, receive {A, R} -> same after T -> none end;
f(10, A, T) -> try receive {A, X} -> error(X) after T -> exit(A) end catch C:E -> {C, E} end;
f(11, A, _) -> [receive {A, X} -> X end || _ <- [1, 2]];
f(12, A, _) -> named(A).

%% The compiler numbers these functions in the order of its tests, which is not that of the clauses.
named(A) ->
    F = receive {A, X} -> fun First() -> {X, First} end; {A, Y} -> Y; {A, 1} -> fun Third() -> {A, Third} end end,
    erlang:fun_info(F, name).
""").

example(Weaves) ->
    Runtime = ["-witness_weave(" ?MODULE_STRING ").\n" || Weaves],
    Source = lists:flatten(["-module(", atom_to_list(?MODULE_NAME), ").\n-export([f/3]).\n", Runtime, ?SOURCE]),
    {ok, Tokens, _} = erl_scan:string(Source),
    {ok, ?MODULE_NAME, Code} = compile:forms([form(Form) || Form <- forms(Tokens, [])],
                                             [clint, ssalint,
                                              nowarn_export_vars | [{core_transform, witness_weave_blocks} || Weaves]]),
    {module, ?MODULE_NAME} = code:load_binary(?MODULE_NAME, "", Code),
    ok.

form(Tokens) ->
    {ok, Form} = erl_parse:parse_form(Tokens),
    Form.

forms([], []) -> [];
forms([{dot, _} = Dot | Tokens], Form) -> [lists:reverse(Form, [Dot]) | forms(Tokens, [])];
forms([Token | Tokens], Form) -> forms(Tokens, [Token | Form]).

%% What a process makes of these messages: the later ones come when it waits.
does(N, T, Now, Later) ->
    Self = self(),
    {P, Ref} = spawn_monitor(fun() ->
        lists:foreach(fun(M) -> self() ! M end, Now),
        Result = ?MODULE_NAME:f(N, a, T),
        {messages, Left} = process_info(self(), messages),
        Self ! {done, self(), case is_function(Result) of true -> Result(); false -> Result end, Left, noted(), woken()},
        receive never -> ok end
    end),
    Waits = fun() -> witness_await:until(fun() -> lists:member(process_info(P, status), [{status, waiting}, undefined]) end) end,
    Later =:= [] orelse Waits(),
    lists:foreach(fun(M) -> P ! M, Waits() end, Later),
    Done = receive
        {done, P, Result, Left, Blocked, Woken} -> {Result, Left, Blocked, Woken};
        {'DOWN', Ref, process, P, {Why, [{Module, Function, Arity, _} | _]}} -> {Why, {Module, Function, Arity}, [], 0}
    end,
    exit(P, kill),
    demonitor(Ref, [flush]),
    Done.

cases() ->
    [{1, 0, [], []}, {1, 0, [{a, 1}, {a, 2}], []}, {1, infinity, [], [x, {a, 1}, {a, 3}]}, {1, infinity, [{other, 1}], []},
     {1, 1, [{a, 1}], []},
     {1, wrong, [], []}, {1, -1, [], []}, {1, wrong, [{a, 2}], []},
     {2, infinity, [<<1>>, #{b => 1}], [<<2, 1, 2, 3>>]}, {2, infinity, [], [#{a => 7}]}, {2, 1, [<<3, 1>>], []},
     {3, infinity, [b, a], []}, {3, infinity, [b], [c, a]},
     {4, infinity, [], [{b, 1}]}, {4, infinity, [{a, 1}], []},
     {5, infinity, [], [{a, b}, {b, c}]}, {5, infinity, [{b, c}, {a, b}], []}, {5, 1, [{a, b}], []}, {5, 1, [], []},
     {6, infinity, [], [x]}, {6, 1, [], []}, {6, 1, [x], []},
     {7, 0, [], []}, {7, 1, [x], []}, {7, wrong, [], []},
     {8, infinity, [{a, 1}], []}, {8, infinity, [], [{b, 1}]},
     {9, infinity, [x, y], []}, {9, 0, [x], []},
     {10, infinity, [], [{a, b}]}, {10, 1, [], []}, {10, wrong, [], []},
     {12, infinity, [{a, 1}], []}, {12, infinity, [{a, 2}], []}, {12, infinity, [], [{a, 2}]},
     {11, infinity, [{a, 1}, {b, 1}, {a, 2}], []}, {11, infinity, [{a, 1}], [{b, 1}, {a, 2}]}].

a_receive_takes_what_it_took_test_() ->
    {timeout, 60, fun() ->
        ok = example(false),
        Before = [{Case, does(N, T, Now, Later)} || {N, T, Now, Later} = Case <- cases()],
        ok = example(true),
        [begin
             {Result, Left, _, _} = does(N, T, Now, Later),
             ?assertEqual({Case, Was, WasLeft}, {Case, Result, Left})
         end || {{N, T, Now, Later} = Case, {Was, WasLeft, _, _}} <- Before]
    end}.

only_one_that_blocks_says_so_test() ->
    ok = example(true),
    [?assertMatch({Case, {_, _, Blocked, Woken}}, {Case, does(N, T, Now, Later)})
     || {{N, T, Now, Later} = Case, Blocked, Woken} <-
            [{{1, infinity, [{a, 2}], []}, [], 0}, {{1, infinity, [], [{a, 2}]}, [infinity], 1}, {{1, 1, [], []}, [1], 1},
             {{1, infinity, [{a, 1}], [x, {a, 2}]}, [infinity], 1},
             {{8, infinity, [], [{b, 1}]}, [infinity], 1}, {{8, infinity, [{b, 1}], []}, [], 0},
             {{9, infinity, [x, y], []}, [], 0}, {{7, 1, [], []}, [1], 1},
             {{5, infinity, [{a, b}], [{b, c}]}, [infinity], 1}, {{11, infinity, [{a, 1}, {a, 2}], []}, [], 0}]].

%% The compiler takes what it is given: modules with every kind of receive, and the marks of references stay.
modules_of_otp_are_compiled_test_() ->
    {timeout, 300, fun() ->
        Plan = witness_inline_plan:new([], #{}),
        [begin
             {ok, Forms, Options} = witness_weave:forms({Module, File, Object}),
             ?assertMatch({Module, {ok, Module, _}},
                          {Module, compile:noenv_forms(witness_weave:weave(Forms, Plan),
                                                       [binary, clint, ssalint, return_errors | Options])})
         end || Module <- [epp, rpc, erpc, code_server, application_master, file_io_server, user_drv, ssh_connection_handler, shell,
                           group],
                {_, Object, File} <- [code:get_object_code(Module)]]
    end}.
