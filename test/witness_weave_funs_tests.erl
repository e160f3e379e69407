-module(witness_weave_funs_tests).
-moduledoc "Funs of woven object code have the index and the number of the original's, and what shows digests shows the original's.".
-include_lib("eunit/include/eunit.hrl").

-define(W, witness_weave_funs).
-define(M, witness_weave_funs_sample).

%% Two modules with the same funs, and different code; as many funs as are wanted, in another order in the second.
object(Other, Funs) -> object(Other, lists:seq(1, Funs), []).

object(Other, Order, Options) ->
    Bodies = [io_lib:format("f(~b, X) -> fun(Y) -> fun() -> {~b, X, Y} end end", [N, N]) || N <- Order],
    Source = ["-module(", atom_to_list(?M), "). -export([f/2, other/0]).\n", lists:join(";\n", Bodies), ".\nother() -> ", Other,
              ".\n"],
    {ok, Tokens, _} = erl_scan:string(lists:flatten(Source)),
    {ok, ?M, Object} = compile:forms(forms(Tokens), [binary, return_errors | Options]),
    Object.

forms([]) -> [];
forms(Tokens) ->
    {Form, [Dot | Rest]} = lists:splitwith(fun(Token) -> element(1, Token) =/= dot end, Tokens),
    {ok, Parsed} = erl_parse:parse_form(Form ++ [Dot]),
    [Parsed | forms(Rest)].

loaded(Object, Fun) ->
    {module, ?M} = code:load_binary(?M, "sample.beam", Object),
    try Fun() after
        true = code:delete(?M),
        _ = code:purge(?M)
    end.

%% What a program can see, but for digests.
shown(Funs) ->
    [{erlang:phash2(Fun), erlang:fun_to_list(Fun),
      [erlang:fun_info(Fun, Item) || Item <- [module, name, arity, index, uniq, new_index]]}
     || N <- lists:seq(1, Funs), Outer <- [?M:f(N, N)], Fun <- [Outer, Outer(a)]].

they_are_shown_as_those_of_the_original_test_() ->
    [{timeout, 60, fun() ->
        Original = object("one", Funs),
        Woven = object("{two, get(two)}", Funs),
        Plain = loaded(Original, fun() -> shown(Funs) end),
        %% The VM keeps what it knows of a fun by the digest of its code, so that code is not loaded as it is, but another one.
        ?assertNotEqual(Plain, loaded(object("{three, get(three)}", Funs), fun() -> shown(Funs) end)),
        Kept = ?W:keep(Original, Woven),
        ?assertEqual(Plain, loaded(Kept, fun() -> shown(Funs) end)),
        %% The digest is that of the woven code: what stands in the chunk is no part of it.
        ?assertEqual(code:module_md5(Woven), code:module_md5(Kept))
    end} || Funs <- [1, 2, 7, 40]].

a_module_without_funs_is_kept_test() ->
    {ok, _, Object} = compile:forms([{attribute, 1, module, ?M}], [binary]),
    ?assertEqual(code:module_md5(Object), code:module_md5(?W:keep(Object, Object))),
    ?assertEqual(code:module_md5(object("two", 2)), code:module_md5(?W:keep(Object, object("two", 2)))).

%% One that the original does not have.
no_two_have_the_same_index_test() ->
    Kept = ?W:keep(object("one", 3), object("two", 5)),
    Indexes = loaded(Kept, fun() -> [Index || {_, _, [_, _, _, _, _, {new_index, Index}]} <- shown(5)] end),
    ?assertEqual(lists:usort(Indexes), lists:sort(Indexes)).

digests_are_those_of_the_original_test_() ->
    {timeout, 60, fun() ->
        Original = object("one", 3),
        Woven = ?W:keep(Original, object("two", 3)),
        Forms = [[], [[compressed]], [[{compressed, 9}]], [[deterministic]], [[{minor_version, 2}]]],
        %% Bytes that only look like the beginning of a fun are among them.
        Terms = fun() ->
            Fun = ?M:f(2, <<"p", 0:32, "ppp">>),
            [Fun, {Fun, [Fun(<<112, 0, 0, 0, 70, 1>>)]}, #{Fun => lists:duplicate(30, Fun)}, ?M:f(1, Fun(?M:f(3, x))), ~"ppp",
             lists:map(fun(_) -> $p end, lists:seq(1, 500))]
        end,
        Seen = fun(Call) ->
            [[Call(term_to_binary, [Term | Options]) || Term <- Terms(), Options <- Forms],
             [iolist_to_binary(Call(term_to_iovec, [Term])) || Term <- Terms()],
             [Call(fun_info, [Fun, new_uniq]) || Fun <- Terms(), is_function(Fun)],
             [lists:sort(lists:keydelete(env, 1, Call(fun_info, [Fun]))) || Fun <- Terms(), is_function(Fun)]]
        end,
        Plain = loaded(Original, fun() -> Seen(fun(Function, Args) -> apply(erlang, Function, Args) end) end),
        loaded(Woven, fun() ->
            [?assertEqual({I, J, P}, {I, J, W}) || {I, Ps, Ws} <- lists:zip3(lists:seq(1, 4), Plain, Seen(fun ?W:call/2)),
                                                   {J, P, W} <- lists:zip3(lists:seq(1, length(Ps)), Ps, Ws)],
            [?assertEqual({Term, {Term, byte_size(Bytes)}},
                          {?W:call(binary_to_term, [Bytes]), ?W:call(binary_to_term, [Bytes, [used]])})
             || Term <- Terms(), Options <- Forms, Bytes <- [?W:call(term_to_binary, [Term | Options])]],
            %% It can be called, as it is one of this code.
            Fun = ?W:call(binary_to_term, [?W:call(term_to_binary, [?M:f(1, x)])]),
            ?assertEqual({1, x, y}, (Fun(y))())
        end)
    end}.

what_fails_fails_as_it_does_test() ->
    [?assertError(badarg, ?W:call(Function, Args))
     || {Function, Args} <- [{term_to_binary, [x, [nonsense]]}, {binary_to_term, [x]}, {binary_to_term, [<<131, 112, 0>>]},
                             {binary_to_term, [<<131, 80, 0>>]},
                             {fun_info, [x]}, {fun_info, [fun lists:map/2, nonsense]}, {term_to_iovec, [x, y]},
                             {binary_to_term, [<<131, 106>>, x]}]].
