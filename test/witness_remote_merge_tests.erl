-module(witness_remote_merge_tests).
-moduledoc "Modules that were merged into one do what they did apart, and are all in that one.".
-include_lib("eunit/include/eunit.hrl").

%% Each way to call, name or spawn a function of a module of the bundle, and of another one.
-define(FIRST, ~"""
-module(merge_first).
-behaviour(gen_server).
-export([all/1, double/1, spawned/2, hello/0, init/1, handle_call/3, handle_cast/2, handle_info/2, handle_continue/2]).
-import(merge_second, [imported/1]).
-import(lists, [reverse/1]).
-compile({no_auto_import, [length/1]}).
-record(state, {n = 0, with = merge_first}).

all(M) ->
    Apply = fun(F) -> F(4) end,
    Self = self(),
    S1 = spawn(merge_first, spawned, [Self, 1]),
    {S2, Ref} = spawn_monitor(merge_second, spawned, [Self, 2]),
    S3 = proc_lib:spawn_link(merge_second, spawned, [Self, 3]),
    Received = [receive {P, Said} -> Said end || P <- [S1, S2, S3]],
    receive {'DOWN', Ref, process, _, Reason} -> Reason end,
    {ok, Server} = gen_server:start_link(merge_first, 5, []),
    {ok, Other} = gen_server:start(merge_second, six, []),
    Answers = {gen_server:call(Server, get), gen_server:call(Other, get), gen_server:call(Other, {add, 2}), gen_server:call(Server, get)},
    Stopped = {gen_server:stop(Server), gen_server:stop(Other)},
    [double(2), merge_first:double(3), merge_second:triple(2), imported(1), reverse([1, 2]), length([a, b]), erlang:length([a]),
     M:triple(5), M:missing(), lists:map(fun double/1, [1]), lists:map(fun merge_second:triple/1, [1]), Apply(fun M:triple/1),
     apply(merge_second, triple, [7]), Received, Reason, Answers, Stopped,
     [X || X <- [1, a, 2], is_integer(X)], try merge_second:crash() catch error:Why -> Why end,
     #state{n = 3} =:= (#state{})#state{n = 3}, (#state{})#state.with].

double(X) -> X * 2.
length(L) -> {mine, erlang:length(L)}.
spawned(To, N) -> To ! {self(), {first, N}}.
hello() -> first.
init(N) -> {ok, #state{n = N}, {continue, add}}.
handle_continue(add, S = #state{n = N}) -> {noreply, S#state{n = N + 1}}.
handle_call(get, _, S) -> {reply, S#state.n, S}.
handle_cast(_, S) -> {noreply, S}.
handle_info(_, S) -> {noreply, S}.
""").

-define(SECOND, ~"""
-module(merge_second).
-behaviour(gen_server).
-export([triple/1, imported/1, spawned/2, missing/0, crash/0, init/1, handle_call/3, handle_cast/2, terminate/2]).
-record(state, {word, added = 0}).

triple(X) when X > 0 -> mine(X) * 3.
mine(X) -> X.
imported(X) -> {imported, X}.
spawned(To, N) -> To ! {self(), {second, N}}.
missing() -> try merge_absent:f() catch error:undef -> undef end.
crash() -> #state{word = W} = hd([#state{word = x}]), error({crashed, W}).
init(W) -> {ok, #state{word = W}}.
handle_call(get, _, S = #state{word = W}) -> {reply, W, S};
handle_call({add, N}, _, S = #state{added = A}) -> {reply, {N + A, merge_first:hello()}, S#state{added = N + A}}.
handle_cast(_, S) -> {noreply, S}.
terminate(_, #state{}) -> ok.
""").

merged_modules_do_what_they_did_test() ->
    Objects = [object(?FIRST), object(?SECOND)],
    Load = fun(All) -> [{module, M} = code:load_binary(M, "", Object) || {M, Object} <- All] end,
    Unload = fun(All) -> [begin code:purge(M), code:delete(M), code:purge(M) end || {M, _} <- All] end,
    Load(Objects),
    Apart = [merge_first:all(M) || M <- [merge_second]],
    Unload(Objects),
    {ok, {merge_first, _} = Merged} = witness_remote_merge:merge(merge_first, [{all, 1}], Objects),
    Load([Merged]),
    %% The other module is not there.
    ?assertNot(code:is_loaded(merge_second) =/= false),
    ?assertEqual(Apart, [merge_first:all(M) || M <- [merge_second]]),
    %% Purging it ends no process of this test.
    Unload([Merged]).

a_module_without_debug_information_is_told_test() ->
    {M, Object} = object(?SECOND),
    {ok, {M, Stripped}} = beam_lib:strip(Object),
    ?assertEqual({error, {no_debug_info, M}}, witness_remote_merge:merge(M, [], [{M, Stripped}])).

%% What a target has to purge does not grow with Witness: the merged module, and what specifications call.
all_of_witness_is_one_module_test_() ->
    {timeout, 300, fun() ->
        {ok, Objects} = witness_remote:objects([]),
        ?assert(length(Objects) > 30),
        {ok, {witness_remote_guard, Object}} = witness_remote_merge:merge(witness_remote_guard, [{init, 3}], Objects),
        Names = [M || {M, _} <- Objects],
        ?assertEqual([], [I || {M, _, _} = I <- witness_remote_bundle:imports(Object), lists:member(M, Names)])
    end}.

object(Text) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text)),
    Forms = [Form || Form <- forms(Tokens, [])],
    {ok, M, Object} = compile:forms(Forms, [debug_info, report_errors]),
    {M, Object}.

forms([], []) -> [];
forms([{dot, _} = Dot | Tokens], Form) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse(Form, [Dot])),
    [Parsed | forms(Tokens, [])];
forms([Token | Tokens], Form) -> forms(Tokens, [Token | Form]).
