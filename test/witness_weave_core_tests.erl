-module(witness_weave_core_tests).
-moduledoc """
Receives that are replaced: what they take, and everything around them, is as before in a process that is not replayed. The
run-time module is that of a replay.
""".
-include_lib("eunit/include/eunit.hrl").

-define(SOURCE, """
-module(witness_weave_core_sample).
-export([bound/2, guards/1, exported/1, timed/1, only_time/1, nested/1, looping/2, in_fun/1, caught/0, trace/0, funs/1,
         binaries/1, sized/1, maps/2, external/0, whole/1]).

bound(X, Y) -> receive {X, Z} -> {taken, Z}; [Y | Rest] when Rest =/= X -> Rest after 0 -> none end.
guards(P) -> receive {P, M} when P =:= self(), M > 3 -> M; self when P =/= self() -> other after 0 -> none end.
exported(X) ->
    receive {a, V} -> W = {X, V}; {b, V, W} -> ok after 0 -> V = 0, W = 1 end,
    {V, W}.
timed(T) -> receive never -> never after T -> T end.
only_time(T) -> receive after T -> over end.
nested(A) ->
    receive {A, B} ->
        receive {A, B, C} -> receive C -> {B, C} after 0 -> inner end after 0 -> middle end
    after 0 -> outer end.
looping(0, Sum) -> Sum;
looping(N, Sum) -> receive {n, M} -> looping(N - 1, Sum + M) end.
in_fun(X) -> F = fun(Y) -> receive {X, Y, Z} when self() =/= Z -> Z after 0 -> none end end, [F(1), F(2)].
caught() -> [(catch receive M -> error({got, M}) after 0 -> exit(none) end), try throw(x) catch throw:V -> V end].
trace() -> try receive M -> error(M) after 0 -> error(none) end catch error:_:S -> {element(1, hd(S)), element(2, hd(S))} end.
funs(X) ->
    A = fun() -> receive {X, _} -> 1 after 0 -> 2 end end,
    B = fun(Y) -> Y + X end,
    [element(2, erlang:fun_info(F, name)) || F <- [A, B]].
binaries(N) -> receive <<N, Size, Bin:Size/binary, _/binary>> -> Bin after 0 -> none end.
sized(S) -> receive <<_, Bin:S/binary, Rest/binary>> when S =:= 1 -> {Bin, Rest} after 0 -> none end.
maps(K, V) -> receive #{K := V, other := O} -> O after 0 -> none end.
external() -> F = fun erlang:self/0, F() =:= self() andalso apply(erlang, self, []) =:= self().
whole(X) -> receive {X, _} = Whole -> Whole; Other when Other =:= X -> {other, Other} after 0 -> none end.
""").

same_as_before_test_() ->
    {setup, fun load/0, fun(_) -> unload() end, {timeout, 60, fun() ->
        [?assertEqual({Call, messages(Call, Messages, plain())}, {Call, messages(Call, Messages, woven())})
         || Call <- calls(), Messages <- mailboxes()]
    end}}.

it_takes_from_the_run_time_test() ->
    {ok, Module, Core} = compile:forms(forms(plain()), [to_core0, binary]),
    Woven = witness_weave_core:module(Core, #{runtime => some_runtime}),
    Text = unicode:characters_to_binary(core_pp:format(Woven)),
    ?assertEqual(nomatch, binary:match(Text, [~"recv_peek_message", ~"remove_message", ~"call 'erlang':'self'"])),
    ?assertMatch({_, _}, binary:match(Text, ~"call 'some_runtime':'take'")),
    ?assertEqual(witness_weave_core_plain, Module).

what_is_not_known_is_an_error_test() ->
    {ok, _, Core} = compile:forms(forms(plain()), [to_core0, binary]),
    Stray = cerl:c_primop(cerl:c_atom(remove_message), []),
    Defs = [{Name, cerl:c_fun(cerl:fun_vars(Fun), Stray)} || {Name, Fun} <- cerl:module_defs(Core)],
    Broken = cerl:update_c_module(Core, cerl:module_name(Core), cerl:module_exports(Core), cerl:module_attrs(Core), Defs),
    ?assertError({unknown_receive, witness_weave_core_plain}, witness_weave_core:module(Broken, #{runtime => some_runtime})).

calls() ->
    [{bound, [a, b]}, {bound, [1, 2]}, {guards, [self()]}, {guards, [a]}, {exported, [x]}, {timed, [0]}, {timed, [1]},
     {timed, [bad]}, {only_time, [0]}, {nested, [a]}, {looping, [2, 0]}, {in_fun, [a]}, {caught, []}, {trace, []}, {funs, [1]},
     {binaries, [1]}, {sized, [1]}, {maps, [k, 1]}, {external, []}, {whole, [a]}].

mailboxes() ->
    [[{n, 1}, {n, 2}],
     [{n, 2}, {a, 1}, self, {a, b}, {b, 1, 2}, [b | c], [b], {n, 7}, a, b],
     [{n, 2}, {a, 1}, {a, 1, 2}, 2, {a, 2, z}, {n, 7}, #{k => 1, other => o}, #{k => 2, other => p}, <<1, 2, 3, 4, 5>>],
     [{n, 2}, {n, 7}, <<2, 2, 3, 4>>, <<1, 1, 9>>, {1, a}, [2, a]]].

%% The result of a call, and what is left in the mailbox.
messages({Function, Args}, Messages, Module) ->
    {_, Ref} = spawn_monitor(fun() ->
        Given = [case Arg of _ when is_pid(Arg) -> self(); _ -> Arg end || Arg <- Args],
        [self() ! Message || Message <- Messages ++ [{self(), 9}]],
        Result = try apply(Module, Function, Given) catch Class:Reason -> {Class, Reason} end,
        {messages, Left} = process_info(self(), messages),
        exit(plainly({Result, Left}, self()))
    end),
    receive {'DOWN', Ref, process, _, Outcome} -> Outcome after 25_000 -> hangs end.

%% Modules have different names, and processes different pids.
plainly(Pid, Pid) -> self;
plainly(witness_weave_core_woven, _) -> module;
plainly(witness_weave_core_plain, _) -> module;
plainly([{M, F, A, L} | _], _) when is_atom(M), is_list(L) -> {stack, plainly(M, none), F, A};
plainly([Head | Tail], Pid) -> [plainly(Head, Pid) | plainly(Tail, Pid)];
plainly(Tuple, Pid) when is_tuple(Tuple) -> list_to_tuple(plainly(tuple_to_list(Tuple), Pid));
plainly(Term, _) -> Term.

plain() -> witness_weave_core_plain.
woven() -> witness_weave_core_woven.

load() ->
    {ok, Plain, Binary} = compile:forms(forms(plain()), [debug_info]),
    {module, Plain} = code:load_binary(Plain, "plain", Binary),
    {ok, Woven, Original} = compile:forms(forms(woven()), [debug_info]),
    {ok, #{woven := Object}} = witness_weave:prepare({Woven, "woven", Original}, witness_replay_calls:plan([])),
    {module, Woven} = code:load_binary(Woven, "woven", Object).

unload() -> [{code:purge(Module), code:delete(Module)} || Module <- [plain(), woven()]].

forms(Name) ->
    {ok, Tokens, _} = erl_scan:string(?SOURCE),
    [case Form of {attribute, Anno, module, _} -> {attribute, Anno, module, Name}; _ -> Form end || Form <- split(Tokens, [])].

split([], []) -> [];
split([{dot, _} = Dot | Tokens], Form) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse(Form, [Dot])),
    [Parsed | split(Tokens, [])];
split([Token | Tokens], Form) -> split(Tokens, [Token | Form]).
