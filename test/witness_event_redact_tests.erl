-module(witness_event_redact_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

shapes_test_() ->
    Pid = self(),
    Ref = make_ref(),
    [?_assertEqual(Shape, witness_event_redact:term(Term)) || {Term, Shape} <-
        [{ok, ok},
         {{ok, 3}, {ok, 'integer()'}},
         {1.5, 'float()'},
         {~"secret", {'binary()', 6}},
         {<<1:3>>, {'bitstring()', 3}},
         {"secret", {'string()', 6}},
         {[], []},
         {{'$gen_call', {Pid, [alias | Ref]}, {add, 1, ~"x"}},
          {'$gen_call', {Pid, [alias | Ref]}, {add, 'integer()', {'binary()', 1}}}},
         {[{name, "Ada"}, {age, 36}], [{name, {'string()', 3}}, {age, 'integer()'}]},
         {lists:duplicate(9, ~"x"), {'list()', 9, lists:duplicate(8, {'binary()', 1})}},
         {[~"x" | 4], [{'binary()', 1} | 'integer()']},
         {#{user => ~"Ada", ~"pin" => 1234, 5 => 6}, #{user => {'binary()', 3}, 'other keys()' => 2}},
         {list_to_tuple(lists:seq(1, 17)), {'tuple()', 17, lists:duplicate(16, 'integer()')}},
         {fun() -> Pid end, 'fun()'}]].

events_keep_their_processes_and_times_test_() ->
    P = self(),
    [?_assertEqual(Shape, witness_event_redact:item(E)) || {E, Shape} <-
        [{{send, P, server, {pin, 1234}, 7}, {send, P, server, {pin, 'integer()'}, 7}},
         {{recv, P, undefined, "pin", undefined}, {recv, P, undefined, {'string()', 3}, undefined}},
         {{init, P, undefined, {m, f, [1]}, 7}, {init, P, undefined, {m, f, ['integer()']}, 7}},
         {{fork, P, P, {m, f, 1}, 7}, {fork, P, P, {m, f, 'integer()'}, 7}},
         {{exit, P, {bad, ~"x"}, 7}, {exit, P, {bad, {'binary()', 1}}, 7}},
         {{call, P, {m, f, [1, pin, "1234"]}, 7}, {call, P, {m, f, ['integer()', pin, {'string()', 4}]}, 7}},
         {{return, P, {m, f, 1}, {ok, 1234}, 7}, {return, P, {m, f, 1}, {ok, 'integer()'}, 7}},
         {{gap, P, overflow, 3, 7}, {gap, P, overflow, 3, 7}}]].

a_stack_keeps_its_places_and_no_arguments_test() ->
    Stack = try lists:reverse(secret) catch error:function_clause:S -> S end,
    [{lists, reverse, 1, []} | _] = Short = witness_event_redact:stack([{lists, reverse, [secret], []} | tl(Stack)]),
    ?assertMatch([_ | _], [Line || {?MODULE, _, _, [{line, Line}]} <- Short]),
    ?assertEqual([], witness_event_redact:stack([{nobody, f, 1234, []}, {4711, f, 1, []}, 5 | 6])).

%% Numbers, texts and floats of the input, which are too long to be sizes, are nowhere in what is shown.
nothing_of_the_input_is_shown_test_() ->
    {timeout, 60, fun() ->
        ?assert(proper:quickcheck(?FORALL(Term, secret(), hides(Term, witness_event_redact:term(Term))),
                                  [{numtests, 1000}, {to_file, user}]))
    end}.

%% However large or deep a term is, only a bounded part of it is read.
the_work_is_bounded_test() ->
    Deep = lists:foldl(fun(_, T) -> {T, T} end, ~"x", lists:seq(1, 200)),
    Wide = list_to_tuple(lists:duplicate(16, [list_to_tuple(lists:duplicate(16, ~"x")) || _ <- lists:seq(1, 8)])),
    [?assert(parts(witness_event_redact:term(T)) < 2000)
     || T <- [Deep, Wide, maps:from_keys([list_to_atom([C]) || C <- "abcdef"], Wide)]].

parts(T) when is_tuple(T) -> 1 + lists:sum([parts(E) || E <- tuple_to_list(T)]);
parts([H | T]) -> 1 + parts(H) + parts(T);
parts(T) when is_map(T) -> 1 + parts(maps:to_list(T));
parts(_) -> 1.

hides(Term, Shape) ->
    Shown = unicode:characters_to_binary(io_lib:format("~0tp ~0w", [Shape, Shape])),
    lists:all(fun(Secret) -> binary:match(Shown, Secret) =:= nomatch end, secrets(Term)).

secrets(T) when is_integer(T) -> [integer_to_binary(T)];
secrets(T) when is_float(T) -> [float_to_binary(T, [short])];
secrets(T) when is_binary(T) -> [T];
secrets(T) when is_tuple(T) -> secrets(tuple_to_list(T));
secrets(T) when is_map(T) -> secrets(maps:to_list(T));
secrets([C | _] = T) when is_integer(C), C < 256 -> [unicode:characters_to_binary(T), code(T)];
secrets([H | T]) -> secrets(H) ++ secrets(T);
secrets(_) -> [].

code(T) -> iolist_to_binary(lists:join(",", [integer_to_list(C) || C <- T])).

secret() -> ?SIZED(Size, secret(min(Size, 30))).

secret(0) -> oneof([digits(), text(), ?LET(T, text(), unicode:characters_to_list(T)), ok, fraction(), []]);
secret(Size) ->
    Less = ?LAZY(secret(Size div 3)),
    frequency([{1, secret(0)},
               {2, ?LET(L, few(Less), list_to_tuple(L))},
               {2, few(Less)},
               {1, [Less | Less]},
               {2, ?LET(L, few({oneof([a, b, digits(), text()]), Less}), maps:from_list(L))}]).

few(Type) -> ?LET(N, range(0, 5), vector(N, Type)).
digits() -> integer(1_000_000_000_000, 9_000_000_000_000).
fraction() -> ?LET(N, digits(), N / 7).
text() -> ?LET(N, digits(), <<"s3cret", (integer_to_binary(N))/binary>>).
