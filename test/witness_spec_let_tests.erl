%% `let`s: their values at each event, and what monitors do with them.
-module(witness_spec_let_tests).
-include_lib("eunit/include/eunit.hrl").

%% The values of `V` after each of these events, as the argument of a loop.
values_test_() ->
    [{Let, ?_assertEqual(Expected, values(Let, Events))}
     || {Let, Events, Expected} <- [
            {"let V = once {_ ? a}", [b, a, b, b], [false, true, true, true]},
            {"let V = once within 2 events {_ ? a}", [b, a, b, b, a], [false, true, true, false, true]},
            {"let V = once within 1 event {_ ? a}", [a, b, a], [true, false, true]},
            {"let V = once within 5 ns {_ ? a}", [{0, a}, {5, b}, {6, b}], [true, true, false]},
            {"let V = once within 0 ns {_ ? a}", [{3, a}, {3, b}, {4, b}], [true, true, false]},
            {"let V = previously {_ ? a}", [a, b, a, a], [false, true, false, true]},
            {"let V = {_ ? b} since {_ ? a}", [b, a, b, b, c, b], [false, true, true, true, false, false]},
            {"let V = {_ ? b} since within 2 events {_ ? a}", [a, b, b, a], [true, true, false, true]},
            {"let V = {_ ? b} since within 3 ns {_ ? a} or {_ ? d}", [{0, d}, {3, b}, {4, b}, {4, a}], [true, true, false, true]},
            {"let V = count {_ ? a} or {_ ? b}", [a, c, b, a], [1, 1, 2, 3]},
            {"let V = count within 3 events {_ ? a}", [a, a, b, b, a, a], [1, 2, 2, 1, 1, 2]},
            {"let V = count within 10 ns {_ ? a}", [{0, a}, {10, a}, {11, a}, {100, b}], [1, 2, 2, 0]},
            {"let V = sum N of {_ ? {n, N}}", [a, {n, 3}, {n, -1}, {n, 0.5}], [0, 3, 2, 2.5]},
            {"let V = sum N * N of {_ ? {n, N} when N > 0} or {_ ? {m, N, _}}", [{n, -3}, {n, 2}, {m, 1, 1}], [0, 4, 5]},
            {"let V = min within 2 events N of {_ ? {n, N}}", [a, {n, 3}, {n, 1}, {n, 2}, a, a], [none, 3, 1, 1, 2, none]},
            {"let V = max within 4 ns N of {_ ? {n, N}}", [{0, {n, 9}}, {1, {n, 2}}, {5, a}, {6, a}], [9, 9, 2, none]},
            {"let V = max N of {_ ? {n, N}}", [{n, 1}, {n, 1.0}, {n, 2}], [1, 1, 2]},
            {"let V = mean within 3 events N of {_ ? {n, N}}", [a, {n, 1}, {n, 4}, a, a, a], [none, 1.0, 2.5, 2.5, 4.0, none]},
            {"let A = {_ ? _} since {_ ? a} let B = previously A let V = count A andalso not B", [b, a, b], [0, 1, 1]},
            {"let A = count {_ ? a} let V = sum A of A > 1", [a, a, b], [0, 2, 4]},
            {"let A = count {_ ? a} let V = once {_ ? {is, A}}", [{is, 1}, a, {is, 1}], [false, false, true]},
            {"let V = once within 5 ns {_ ? a}", [{9, a}, {1, b}, {14, b}, {15, b}], [true, true, true, false]}]].

values(Let, Events) ->
    Source = ["with m:f(_) ", Let, " check max X(Was = nothing).([_ ? {never, Was}] ff and [_ ? _] X(V))."],
    with_spec(Source, fun(#{module := Module}) ->
        {ok, First} = Module:init({m, f, [0]}, self(), 1),
        {Values, _} = lists:mapfoldl(fun(Event, State) ->
            {ok, Next} = Module:handle_event(recv(Event), State),
            %% The loop shows what it was given last.
            #{bindings := Bindings} = Module:describe(Next),
            {proplists:get_value(~"Was", Bindings), Next}
        end, First, Events),
        Values
    end).

recv({Time, Message}) when is_integer(Time) -> {recv, self(), undefined, Message, Time};
recv(Message) -> {recv, self(), undefined, Message, undefined}.

an_action_binds_the_value_at_its_event_test_() ->
    [{Let ++ " " ++ Formula, ?_assertEqual(Expected, verdict([Let, " check ", Formula], Events))}
     || {Let, Formula, Events, Expected} <- [
            {"let N = count {_ ? a}", "max X.([_ ? a when N > 2] ff and [else] X)", [a, b, a, a], {no, 4}},
            %% The value of an outer action stays in a parameter, and each action has its own.
            {"let N = count {_ ? a}", "[_ ? a] [_ ? a when N =:= 2] [_ ? a when N =:= 3] ff", [a, a, a], {no, 3}},
            {"let N = count {_ ? a}", "[_ ? a] max X(M = N).([_ ? a when N > M + 1] ff and [_ ? _] X(M))", [a, b, a, a], {no, 4}},
            {"let N = count {_ ? a}", "[_ ? a] ([_ ? a when N =:= 1] ff and max X(M = N).([_ ? b when M =:= 1, N =:= 2] ff and [_ ? _] X(M)))",
             [a, a, b], {no, 3}},
            {"let N = count {_ ? a}", "max X(M = 0).([_ ? b when M =:= 2] ff and [else] X(N))", [a, a, b], {no, 3}},
            %% In a pattern it is a value to be equal to.
            {"let N = count {_ ? a}", "max X.([_ ? {said, N}] ff and [else] X)", [a, {said, 0}, {said, 1}], {no, 3}},
            {"let A = once {_ ? a}", "[else] [else] <_ ? c when A> tt", [a, b, c], {yes, 3}},
            {"let A = previously {_ ? a}", "max X.([_ ? b when not A] ff and [_ ? _] X)", [a, b, b], {no, 3}}]].

verdict(Rest, Events) ->
    with_spec(["with m:f(_) ", Rest, "."], fun(#{module := Module}) ->
        {ok, First} = Module:init({m, f, [0]}, self(), 1),
        run(Module, [recv(Event) || Event <- Events], 1, First)
    end).

run(Module, [Event | Events], N, State) ->
    case Module:handle_event(Event, State) of
        {ok, Next} -> run(Module, Events, N + 1, Next);
        {verdict, inconclusive, Info} -> {inconclusive, N, Info};
        {verdict, Verdict, _} -> {Verdict, N}
    end;
run(Module, [], _, State) -> {at_end, element(1, Module:handle_end(complete, State))}.

what_cannot_be_computed_is_inconclusive_with_its_place_test_() ->
    [{Let, ?_assertEqual(Expected, verdict([Let, " check max X.([_ ? bad when V =:= 1] ff and [_ ? _] X)"], Events))}
     || {Let, Events, Expected} <- [
            {"let V = sum N of {_ ? {n, N}}", [{n, 1}, {n, a}], {inconclusive, 2, #{reason => argument, line => 1, column => 25}}},
            {"let V = sum N + 1 of {_ ? {n, N}}", [{n, a}], {inconclusive, 1, #{reason => argument, line => 1, column => 25}}},
            {"let V = sum N of {_ ? {n, N}}", [{n, 1.0e308}, {n, 1.0e308}], {inconclusive, 2, #{reason => argument, line => 1, column => 25}}},
            {"let V = once within 5 s {_ ? a}", [{1, a}, b], {inconclusive, 2, #{reason => no_time, line => 1, column => 17}}},
            {"let V = count within 10000 events {_ ? a}", lists:duplicate(2000, a), {inconclusive, 1251, #{reason => state_too_large}}},
            {"let V = count {_ ? a}", lists:duplicate(2000, a), {at_end, yes}},
            {"let V = once within 10000 events {_ ? a}", lists:duplicate(2000, a), {at_end, yes}}]].

%% The values of `V` for 1, {2, 3} and 4 after each of these events.
values_for_variables_test_() ->
    [{Let, ?_assertEqual(Expected, values_for(Let, Events))}
     || {Let, Events, Expected} <- [
            {"let V(X) = once {_ ? {a, X}}", [b, {a, 1}, {a, 2}, {a, 4}, {a, 1.0}],
             [{false, false}, {true, false}, {true, false}, {true, true}, {true, true}]},
            {"let V(X) = previously {_ ? {a, X}}", [{a, 1}, b, {a, 4}, {a, 1}, b],
             [{false, false}, {true, false}, {false, false}, {false, true}, {true, false}]},
            %% What is about all.
            {"let V(X) = once within 2 events {_ ? {a, X}} or {_ ? all}", [{a, 1}, b, b, all, {a, 4}, b],
             [{true, false}, {true, false}, {false, false}, {true, true}, {true, true}, {false, true}]},
            {"let V(X) = count within 3 ns {_ ? {a, X}} or {_ ? all}", [{0, {a, 1}}, {1, all}, {3, {a, 1}}, {4, b}, {7, all}, {90, b}],
             [{1, 0}, {2, 1}, {3, 1}, {2, 1}, {1, 1}, {0, 0}]},
            {"let Out(X) = once within 1 event {_ ? {out, X}} let V(X) = not Out(X) since {_ ? {in, X}}",
             [{in, 1}, {in, 4}, {out, 1}, b, {in, 1}], [{true, false}, {true, true}, {false, true}, {false, true}, {true, true}]},
            {"let V(X) = {_ ? {go, X}} since {_ ? {in, X}} or {_ ? all}", [{in, 1}, {go, 1}, all, {go, 4}, b],
             [{true, false}, {true, false}, {true, true}, {false, true}, {false, false}]},
            {"let V(X) = sum N of {_ ? {a, X, N}}", [{a, 1, 2}, {a, 4, 5}, {a, 1, 0.5}], [{2, 0}, {2, 5}, {2.5, 5}]},
            {"let V(X) = max N of {_ ? {a, X, N}} or {_ ? {b, N, X}}", [{a, 1, 2}, {b, 7, 1}, {a, 1, 3}], [{2, none}, {7, none}, {7, none}]},
            %% Others in front: for the same terms in another order, and for other terms.
            {"let A(X, Y) = once {_ ? {a, X, Y}} let B(Y, X) = count A(X, Y) let V(X) = once {_ ? {b, X, Y} when B(X, Y) > 0}",
             [{a, 9, 1}, {b, 9, 1}, {b, 1, 9}, {b, 4, 4}], [{false, false}, {false, false}, {true, false}, {true, false}]},
            {"let A(X) = once {_ ? {a, X}} let V(X) = count A(X)", [{a, 1}, {a, 1.0}, b], [{1, 0}, {2, 0}, {3, 0}]},
            {"let A(X) = once {_ ? {a, X}} let V(X) = count A(X)", [{a, 4.0}, {a, 4}, b], [{0, 0}, {0, 1}, {0, 2}]},
            {"let A(X) = count {_ ? {a, X}} let V(X) = mean A(X) of A(X) > 0", [{a, 1}, {a, 1}, b], [{1.0, none}, {1.5, none}, {5 / 3, none}]}]].

values_for(Let, Events) ->
    Source = ["with m:f(_) ", Let, " check max X(Was = nothing).([_ ? {never, Was}] ff and [{_ ? _}] X({V(1), V(4)}))."],
    with_spec(Source, fun(#{module := Module}) ->
        {ok, First} = Module:init({m, f, [0]}, self(), 1),
        {Values, _} = lists:mapfoldl(fun(Event, State) ->
            {ok, Next} = Module:handle_event(recv(Event), State),
            #{bindings := Bindings} = Module:describe(Next),
            {proplists:get_value(~"Was", Bindings), Next}
        end, First, Events),
        Values
    end).

%% What is as if no event had been about it takes no memory.
valuations_are_forgotten_test_() ->
    [{Let, ?_assertEqual(Kept, length(kept(Let, Events)))}
     || {Let, Events, Kept} <- [
            {"let V(X) = once within 10 ns {_ ? {a, X}}", [{N, {a, N}} || N <- lists:seq(1, 100)], 11},
            {"let V(X) = count within 3 events {_ ? {a, X}} or {_ ? all}", [{a, 1}, all, {a, 2}, all, all, all], 0},
            {"let V(X) = sum within 4 events X of {_ ? {a, X}}", [{a, N} || N <- lists:seq(1, 100)], 4},
            {"let V(X) = previously {_ ? {a, X}}", [{a, N} || N <- lists:seq(1, 100)], 1},
            {"let V(X) = {_ ? {a, X}} since {_ ? {b, X}}", [{b, N} || N <- lists:seq(1, 100)], 1},
            {"let V(X) = once {_ ? {a, X}}", [{a, N} || N <- lists:seq(1, 100)], 100},
            {"let V(X) = once {_ ? {a, X}} or {_ ? all}", [{a, N} || N <- lists:seq(1, 100)] ++ [all], 0}]].

kept(Let, Events) ->
    with_spec(["with m:f(_) ", Let, " check max X.([_ ? {never, N} when N =:= V(N)] ff and [else] X)."], fun(#{module := Module}) ->
        {ok, First} = Module:init({m, f, [0]}, self(), 1),
        {values, _, {_, _, [{_, Kept, _}], _}, _} =
            lists:foldl(fun(Event, State) -> {ok, Next} = Module:handle_event(recv(Event), State), Next end, First, Events),
        maps:keys(Kept)
    end).

valuations_are_bounded_test_() ->
    Events = fun(Kind, Count) -> [{Kind, N} || N <- lists:seq(1, Count)] end,
    Rest = " check max X.([_ ? {never, N} when V(N)] ff and [else] X)",
    [?_assertEqual({inconclusive, 1251, #{reason => state_too_large}}, verdict(["let V(X) = once {_ ? {a, X}}" ++ Rest], Events(a, 1500))),
     ?_assertEqual({at_end, yes}, verdict(["let V(X) = once within 100 events {_ ? {a, X}}" ++ Rest], Events(a, 1500))),
     %% Each has a place, and each of its window.
     ?_assertEqual({inconclusive, 626, #{reason => state_too_large}},
                   verdict(["let V(X) = max within 2000 events X of {_ ? {a, X}}" ++ Rest], Events(a, 1500)))].

a_value_that_fails_for_one_valuation_ends_the_instance_test() ->
    Rest = " check max X.([_ ? {never, N} when V(N) > 3] ff and [else] X)",
    ?assertEqual({inconclusive, 2, #{reason => argument, line => 1, column => 28}},
                 verdict(["let V(X) = sum N of {_ ? {a, X, N}}" ++ Rest], [{a, 1, 2}, {a, 3, x}])).

the_explanation_names_what_was_asked_test() ->
    Source = "with m:f(_) let In(User) = once {_ ? {in, User}} check max X.([_ ? {read, U} when not In(U)] ff and [else] X).",
    with_spec(Source, fun(#{module := Module}) ->
        {ok, First} = Module:init({m, f, [0]}, self(), 1),
        {ok, Next} = Module:handle_event(recv({in, bob}), First),
        ?assertMatch({verdict, no, #{bindings := [{~"U", alice}, {~"In(U)", false}]}}, Module:handle_event(recv({read, alice}), Next)),
        ?assertMatch(#{bindings := []}, Module:describe(Next))
    end).

values_for_variables_belong_to_their_slice_test() ->
    Source = "with m:f(_) per Id over _ ? {_, Id, _} let In(User) = once {_ ? {in, Id, User}} "
        "check max X.([_ ? {read, _, U} when not In(U)] ff and [else] X).",
    with_spec(Source, fun(#{module := Module}) ->
        {slices, Filter} = Module:init({m, f, [0]}, self(), 1),
        Instance = Module:instance({1}, Filter),
        ?assertEqual({no, 2}, run(Module, [recv(E) || E <- [{in, 2, bob}, {read, 1, bob}]], 1, Instance)),
        ?assertEqual({at_end, yes}, run(Module, [recv(E) || E <- [{in, 1, bob}, {read, 1, bob}]], 1, Instance))
    end).

%% A value belongs to the instance, and begins with it.
values_belong_to_their_slice_test() ->
    Source = "with m:f(_) per Id over _ ? {a, Id}, _ ? {b, Id} let N = count {_ ? {a, Id}} "
        "check [_ ? {a, _}] max X.([_ ? {b, _} when N > 2] ff and [else] X).",
    with_spec(Source, fun(#{module := Module}) ->
        {slices, Filter} = Module:init({m, f, [0]}, self(), 1),
        [{slice, {One}}, {slice, {Other}}] = [Module:slice(recv({a, Id}), Filter) || Id <- [1, 2]],
        ?assertEqual({1, 2}, {One, Other}),
        Instance = Module:instance({1}, Filter),
        ?assertEqual({no, 4}, run(Module, [recv({Kind, 1}) || Kind <- [a, a, a, b]], 1, Instance)),
        %% What is of another value does not count.
        ?assertEqual({at_end, yes}, run(Module, [recv(E) || E <- [{a, 1}, {a, 2}, {a, 2}, {b, 1}]], 1, Instance))
    end).

the_explanation_names_the_value_test() ->
    with_spec("with m:f(_) let Late = once {_ ? a} check max X.([_ ? b when Late] ff and [else] X).", fun(#{module := Module}) ->
        {ok, First} = Module:init({m, f, [0]}, self(), 1),
        {ok, Next} = Module:handle_event(recv(a), First),
        ?assertMatch({verdict, no, #{bindings := [{~"Late", true}]}}, Module:handle_event(recv(b), Next)),
        ?assertMatch(#{bindings := []}, Module:describe(First)),
        ?assertMatch(#{bindings := [{~"Late", true}]}, Module:describe(Next))
    end).

definitions_records_and_messages_of_otp_stand_in_conditions_test() ->
    Source = "-record(job, {id, size}).\naction Job(Size) = _ ? call(_, #job{size = Size}).\n"
        "with m:f(_) let Sum = sum Size of {Job(Size)} "
        "check max X.([_ ? call(_, #job{}) when Sum > 5] ff and [_ ? _] X).",
    Job = fun(Size) -> recv({'$gen_call', {self(), make_ref()}, {job, 1, Size}}) end,
    with_spec(Source, fun(#{module := Module}) ->
        {ok, First} = Module:init({m, f, [0]}, self(), 1),
        ?assertEqual({no, 3}, run(Module, [Job(2), Job(3), Job(1)], 1, First))
    end).

%% The reason of an exit may be what a condition is about.
exits_in_conditions_are_read_test() ->
    Source = "with m:f(_) group let Bad = once {_ ** R when R =/= normal} check max X.([_ ? a when Bad] ff and [else] X).",
    with_spec(Source, fun(#{module := Module}) ->
        ?assertEqual([[1]], [Indexes || {witness_exits, Indexes} <- Module:module_info(attributes)])
    end).

with_spec(Source, Fun) ->
    case witness_spec:compile_string(~"test.hml", unicode:characters_to_binary(Source)) of
        {ok, Map, _} -> try Fun(Map) after witness_spec:unload(Map) end;
        {error, {witness_spec, Diagnostics}} ->
            error({rejected, [witness_spec:format_diagnostic(D) || D <- Diagnostics]})
    end.
