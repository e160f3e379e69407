-module(witness_recorded_funs).
-moduledoc """
Terms with funs, made from a number: closures in closures, in maps and lists, external funs, funs of OTP's modules and of the
evaluator. They are sent around, and what a program can learn of them is the result: order, hashes, text, digests.
""".

-export([shown/1, stand_ins/0, sent/1, local/2]).

-doc "What of funs depends on nothing but the program.".
-spec shown(integer()) -> term().
shown(Number) ->
    Terms = sent(terms(Number)),
    #{order => [erlang:phash2(Term) || Term <- lists:sort(Terms)],
      hashes => [{erlang:phash2(Term), erlang:phash2(Term, 17), (old()):phash(Term, 1 bsl 32)} || Term <- Terms],
      text => unicode:characters_to_binary(io_lib:format("~p ~w ~tp", [Terms, Terms, Terms])),
      information => [lists:sort(erlang:fun_info(Fun)) || Fun <- lists:flatmap(fun funs/1, Terms)],
      digests => [{element(2, erlang:fun_info(Fun, new_uniq)), element(2, erlang:fun_info(Fun, uniq)), erlang:fun_to_list(Fun)}
                  || Fun <- lists:flatmap(fun funs/1, Terms), erlang:fun_info(Fun, type) =:= {type, local}],
      external => [erlang:md5(Bytes) || Term <- Terms, Bytes <- [term_to_binary(Term), term_to_binary(Term, [compressed]),
                                                                 term_to_binary(lists:duplicate(20, Term), [{compressed, 9}]),
                                                                 iolist_to_binary(term_to_iovec(Term)),
                                                                 erlang:apply(binary_to_atom(~"erlang"), term_to_binary, [Term])]],
      again => [Term =:= binary_to_term(Bytes)
                || Term <- Terms, Bytes <- [term_to_binary(Term), term_to_binary(Term, [compressed])]],
      called => [Fun() || Fun <- lists:flatmap(fun funs/1, binary_to_term(term_to_binary(Terms))), is_function(Fun, 0)],
      small_map => maps:to_list(maps:from_list([{{Term}, N} || {N, Term} <- lists:enumerate(lists:sublist(Terms, 20))])),
      large_map => large(Terms)}.

%% Where the VM hashes funs for large maps by their address, only maps of others are the same in two VMs. So are those without
%% external funs.
large(Terms) ->
    Keys = case list_to_integer(erlang:system_info(otp_release)) >= 29 of
        true -> [{Term, N} || Term <- Terms, not has_external(Term), N <- lists:seq(1, 50)];
        false -> [{witness_recorded_funs, N} || N <- lists:seq(1, 100)]
    end,
    [erlang:phash2(Key) || Key <- maps:keys(maps:from_keys(Keys, []))].

-doc "Funs that a recording has to make in the place of others.".
-spec stand_ins() -> term().
stand_ins() ->
    Funs = sent([fun erlang:send/2, fun erlang:self/0, fun erlang:make_ref/0, fun ets:lookup/2, fun erlang:exit/2,
                 fun erlang:exit/1,
                 fun erlang:spawn/1, fun erlang:hibernate/3, fun erlang:demonitor/1, erlang:make_fun(erlang, unlink, 1)]),
    [Send, Self | _] = Funs,
    Send(Self(), {sent, [{Fun, erlang:phash2(Fun), io_lib:format("~p", [Fun])} || Fun <- lists:sort(Funs)]}),
    receive {sent, Of} -> [{erlang:phash2(One), erlang:phash2(term_to_binary(One))} || One <- Of] end.

-doc "Through two processes, and by a name.".
-spec sent(Term) -> Term.
sent(Term) ->
    Self = self(),
    Last = spawn(fun() -> receive {Fun, Sent} -> Self ! {back, Fun(Sent)} end end),
    true = register(?MODULE, Last),
    _ = spawn(fun() -> ?MODULE ! {fun(Sent) -> Sent end, Term} end),
    receive {back, Back} -> Back end.

%% --- terms -----------------------------------------------------------------------

terms(Number) ->
    {Terms, _} = lists:mapfoldl(fun(_, State) -> term(3, State) end, rand:seed_s(exsss, Number), lists:seq(1, 20)),
    Terms.

term(0, State) ->
    {N, Next} = rand:uniform_s(1_000, State),
    {case N rem 4 of 0 -> N; 1 -> integer_to_binary(N); 2 -> atom; 3 -> float(N) end, Next};
term(Depth, State) ->
    {Kind, State1} = rand:uniform_s(9, State),
    {Value, State2} = term(Depth - 1, State1),
    {Other, State3} = term(Depth - 1, State2),
    {made(Kind, Value, Other), State3}.

made(1, Value, _) -> fun() -> Value end;
made(2, Value, Other) -> fun() -> {Other, Value} end;
made(3, Value, Other) -> fun(X) -> fun(Y) -> {X, Y, Value, Other} end end;
made(4, Value, Other) -> [Value, fun local/2, Other | fun lists:map/2];
made(5, Value, Other) -> #{Value => Other, fun(X) -> X end => fun ?MODULE:sent/1};
made(6, Value, Other) -> {[fun() -> Value end, fun() -> Value end], (fun(X) -> fun() -> {X, Other} end end)(Value)};
made(7, Value, Other) -> {element(1, rand:seed_s(exsss, 1)), Value, Other};
made(8, Value, Other) ->
    {ok, Tokens, _} = erl_scan:string("fun(X) -> {X, A} end."),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    {value, Fun, _} = erl_eval:exprs(Exprs, #{'A' => Value}),
    {Fun, Other};
made(9, Value, Other) -> [fun() -> [Fun() || Fun <- [fun() -> Value end]] end | Other].

local(A, B) -> {A, B}.

%% `phash/2` is deprecated.
old() -> binary_to_atom(~"erlang").

has_external(Term) ->
    lists:any(fun(Fun) ->
        erlang:fun_info(Fun, type) =:= {type, external} orelse has_external(element(2, erlang:fun_info(Fun, env)))
    end, funs(Term)).

%% Those in a term, outermost ones only.
funs(Fun) when is_function(Fun) -> [Fun];
funs([Head | Tail]) -> funs(Head) ++ funs(Tail);
funs(Tuple) when is_tuple(Tuple) -> funs(tuple_to_list(Tuple));
funs(Map) when is_map(Map) -> funs(lists:sort(maps:to_list(Map)));
funs(_) -> [].
