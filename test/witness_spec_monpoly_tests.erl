%% Formulas of MonPoly as properties of Witness: each operator, asked at each time point.
-module(witness_spec_monpoly_tests).
-include_lib("eunit/include/eunit.hrl").

-define(SIGNATURE, ~"asked(n:int) answered(n:int) sold(shop:string, price:int) closed()").

operators_test_() ->
    Log = ~"""
    @10 asked(1)
    @12 asked(2) answered(1)
    @15 closed
    @15 answered(2)
    @30 asked(1) closed()
    """,
    [{binary_to_list(Formula), fun() -> ?assertEqual(Expected, yes(Formula, Log)) end}
     || {Formula, Expected} <- [
         %% The present.
         {~"asked(n)", [{0, [1]}, {1, [2]}, {4, [1]}]},
         {~"asked(n) AND NOT n = 2", [{0, [1]}, {4, [1]}]},
         {~"EXISTS n. asked(n) AND n > 1", [{1, []}]},
         {~"closed() AND NOT EXISTS n. answered(n)", [{2, []}, {4, []}]},
         {~"LET new(m) = asked(m) AND m < 2 IN new(n)", [{0, [1]}, {4, [1]}]},
         %% The past. Bounds are exact, and two time points may have the same time.
         {~"answered(n) AND ONCE[0,3] asked(n)", [{1, [1]}, {3, [2]}]},
         {~"answered(n) AND ONCE[0,2] asked(n)", [{1, [1]}]},
         {~"closed() AND ONCE[3,4] asked(n)", [{2, [2]}]},
         {~"answered(n) AND ONCE[2,*) asked(n)", [{1, [1]}, {3, [2]}]},
         {~"PREVIOUS closed()", [{3, []}]},
         {~"PREVIOUS[1,2] asked(n)", [{1, [1]}]},
         {~"PREVIOUS[3,5] asked(n)", [{2, [2]}]},
         {~"(NOT closed()) SINCE asked(n)", [{0, [1]}, {1, [1]}, {1, [2]}, {4, [1]}]},
         {~"(NOT closed()) SINCE[2,3] asked(n)", [{1, [1]}]},
         {~"PAST_ALWAYS[0,3] NOT closed()", [{0, []}, {1, []}]},
         %% The future. What the log leaves open is no answer.
         {~"NEXT[0,2] answered(n)", [{0, [1]}, {2, [2]}]},
         {~"asked(n) AND EVENTUALLY[0,3] answered(n)", [{0, [1]}, {1, [2]}]},
         {~"asked(n) AND NOT EVENTUALLY[0,2] answered(n)", [{1, [2]}]},
         {~"EVENTUALLY[4,5] closed()", [{0, []}]},
         {~"(NOT closed()) UNTIL[0,10] answered(n)", [{0, [1]}, {1, [1]}, {3, [2]}]},
         {~"(NOT closed()) UNTIL[0,10] (answered(n) AND NEXT closed())", [{0, [1]}, {1, [1]}, {3, [2]}]},
         {~"ALWAYS[0,2] NOT closed()", [{0, []}, {1, []}, {3, []}]},
         %% Both.
         {~"PREVIOUS NEXT closed()", [{2, []}, {4, []}]},
         {~"PREVIOUS EVENTUALLY[0,3] closed()", [{2, []}, {3, []}]},
         {~"(NEXT closed()) SINCE[0,0] answered(n)", [{1, [1]}, {3, [2]}]},
         {~"NEXT PREVIOUS asked(n)", [{0, [1]}, {1, [2]}]}]].

%% Random formulas over random logs, against the definition of each operator.
agrees_with_the_definition_test_() ->
    {timeout, 120, fun() ->
        rand:seed(exsss, 7),
        Results = [definition(iolist_to_binary(formula(rand:uniform(3))), iolist_to_binary(log(rand:uniform(6), 1)))
                   || _ <- lists:seq(1, 60)],
        %% Few have what is not translated.
        ?assert(length([ok || ok <- Results]) > 45)
    end}.

definition(Formula, Log) ->
    try witness_spec_monpoly:holds(Formula, ?SIGNATURE, Log, []) of
        {Variables, Answers} ->
            F = witness_spec_monpoly_parse:formula(Formula),
            Points = list_to_tuple(witness_spec_monpoly_parse:log(Log, witness_spec_monpoly_parse:signature(?SIGNATURE))),
            [begin
                 Wanted = holds(F, N, maps:from_list(lists:zip(Variables, Values)), Points),
                 %% Witness may know more than the definition of a single operator says.
                 ?assert(Answer =:= Wanted orelse Wanted =:= undecided, {Formula, Log, N, Values, Answer, Wanted})
             end || {N, Values, Answer} <- Answers],
            ok
    catch
        throw:{outside, _} -> outside
    end.

formula(0) -> one_of(["asked(n)", "answered(n)", "closed()", "TRUE", "n = 1", "(EXISTS m. asked(m) AND NOT answered(m))"]);
formula(Depth) ->
    F = formula(Depth - 1),
    G = formula(rand:uniform(Depth) - 1),
    Least = one_of([0, 0, 1, 2]),
    Most = Least + rand:uniform(4) - 1,
    I = io_lib:format("[~b,~b]", [Least, Most]),
    Past = one_of([I, io_lib:format("[~b,*)", [Least])]),
    ["(", one_of([["NOT ", F], [F, " AND ", G], [F, " OR ", G], ["PREVIOUS", Past, " ", F], ["NEXT", I, " ", F], ["ONCE", Past, " ", F],
                  ["EVENTUALLY", I, " ", F], ["ALWAYS", I, " ", F], ["PAST_ALWAYS", Past, " ", F], [F, " SINCE", Past, " ", G],
                  [F, " UNTIL", I, " ", G]]), ")"].

log(0, _) -> [];
log(N, Time) ->
    Facts = [Fact || Fact <- ["asked(1)", "asked(2)", "answered(1)", "answered(2)", "closed()"], rand:uniform(3) =:= 1],
    [["@", integer_to_list(Time), [[" ", Fact] || Fact <- Facts], "\n"] | log(N - 1, Time + one_of([0, 0, 1, 1, 2, 3]))].

one_of(All) -> lists:nth(rand:uniform(length(All)), All).

%% Behind the end of the log nothing is known.
holds(F, _, _, _) when is_boolean(F) -> answer(F);
holds(_, N, _, Points) when N >= tuple_size(Points) -> undecided;
holds({event, Name, Arguments}, N, Values, Points) ->
    answer(lists:member({Name, [value(Argument, Values) || Argument <- Arguments]}, element(2, element(N + 1, Points))));
holds({compare, "=", A, B}, _, Values, _) -> answer(value(A, Values) =:= value(B, Values));
holds({'not', F}, N, Values, Points) -> opposite(holds(F, N, Values, Points));
holds({'and', F, G}, N, Values, Points) -> both(holds(F, N, Values, Points), holds(G, N, Values, Points));
holds({'or', F, G}, N, Values, Points) -> either(holds(F, N, Values, Points), holds(G, N, Values, Points));
holds({exists, Variable, F}, N, Values, Points) ->
    lists:foldl(fun(Value, Before) -> either(Before, holds(F, N, Values#{Variable => Value}, Points)) end, no, [1, 2, 3]);
holds({previous, _, _}, 0, _, _) -> no;
holds({previous, Interval, F}, N, Values, Points) -> both(in(N - 1, N, Interval, Points), holds(F, N - 1, Values, Points));
holds({next, Interval, F}, N, Values, Points) -> both(in(N, N + 1, Interval, Points), holds(F, N + 1, Values, Points));
holds({since, Interval, F, G}, N, Values, Points) -> since(Interval, F, G, N, N, Values, Points);
holds({until, Interval, F, G}, N, Values, Points) -> until(Interval, F, G, N, N, Values, Points).

since(_, _, _, _, -1, _, _) -> no;
since(Interval, F, G, N, K, Values, Points) ->
    either(both(in(K, N, Interval, Points), holds(G, K, Values, Points)),
           both(holds(F, K, Values, Points), since(Interval, F, G, N, K - 1, Values, Points))).

until(_, _, _, _, K, _, Points) when K >= tuple_size(Points) -> undecided;
until({_, Most} = Interval, F, G, N, K, Values, Points) ->
    case in(N, K, {0, Most}, Points) of
        no -> no;
        yes -> either(both(in(N, K, Interval, Points), holds(G, K, Values, Points)),
                      both(holds(F, K, Values, Points), until(Interval, F, G, N, K + 1, Values, Points)))
    end.

in(_, K, _, Points) when K >= tuple_size(Points) -> undecided;
in(N, K, {Least, Most}, Points) ->
    [From, To] = [element(1, element(I + 1, Points)) || I <- [N, K]],
    answer(To - From >= Least andalso To - From =< Most).

value({var, Variable}, Values) -> maps:get(Variable, Values);
value({value, Value}, _) -> Value.

answer(true) -> yes;
answer(false) -> no.

opposite(yes) -> no;
opposite(no) -> yes;
opposite(undecided) -> undecided.

both(no, _) -> no;
both(_, no) -> no;
both(yes, Other) -> Other;
both(Other, yes) -> Other;
both(undecided, undecided) -> undecided.

either(A, B) -> opposite(both(opposite(A), opposite(B))).

what_is_open_is_undecided_test() ->
    {["n"], Answers} = witness_spec_monpoly:holds(~"asked(n) AND NOT EVENTUALLY[0,5] answered(n)", ?SIGNATURE,
                                                  ~"@1 asked(7) @6 closed", []),
    ?assertEqual([undecided], [Answer || {0, [7], Answer} <- Answers]),
    ?assertEqual([no], [Answer || {1, [7], Answer} <- Answers]).

aggregations_test_() ->
    Log = ~"""
    @1 sold("a", 3) sold("a", 4) sold("b", 9)
    @1 sold("a", 3) sold("b", 5) sold("b", 7)
    @2
    """,
    [{binary_to_list(Formula), fun() -> ?assertEqual(Expected, yes(Formula, Log, [Given || {_, Given} <- Expected])) end}
     || {Formula, Expected} <- [
         {~"r <- CNT p; s sold(s, p)", [{0, [1, ~"b"]}, {0, [2, ~"a"]}, {1, [1, ~"a"]}, {1, [2, ~"b"]}]},
         {~"r <- SUM p; s sold(s, p)", [{0, [7, ~"a"]}, {0, [9, ~"b"]}, {1, [3, ~"a"]}, {1, [12, ~"b"]}]},
         {~"r <- MAX p sold(s, p)", [{0, [9]}, {1, [7]}, {2, [0]}]},
         {~"r <- MIN s sold(s, p)", [{0, [~"a"]}, {1, [~"a"]}, {2, [~""]}]},
         {~"r <- AVG p; s sold(s, p)", [{0, [3.5, ~"a"]}, {0, [9, ~"b"]}, {1, [3, ~"a"]}, {1, [6, ~"b"]}]},
         {~"r <- MED p sold(s, p)", [{0, [4]}, {1, [5]}, {2, [0]}]},
         %% The same tuple counts once.
         {~"r <- SUM p ONCE sold(s, p)", [{0, [16]}, {1, [28]}, {2, [28]}]},
         {~"r <- MED p; s ONCE sold(s, p)", [{0, [3.5, ~"a"]}, {0, [9, ~"b"]}, {1, [3.5, ~"a"]}, {1, [7, ~"b"]},
                                            {2, [3.5, ~"a"]}, {2, [7, ~"b"]}]}]].

what_is_not_translated_has_a_reason_test() ->
    [?assertThrow({outside, _}, witness_spec_monpoly:holds(Formula, ?SIGNATURE, ~"@1 sold(\"a\", 3)", []))
     || Formula <- [~"sold(s, p) AND s MATCHES r\"a\"", ~"NEXT ((NEXT asked(n)) SINCE answered(n))",
                    ~"r <- SUM p (sold(s, p) OR sold(s, p))",
                    ~"(r <- SUM p sold(s, p)) AND r > 3", ~"ONCE (r <- SUM p sold(s, p))", ~"r <- MAX c c <- CNT p sold(s, p)"]].

%% With the values of the formula, but for those that may be anything.
yes(Formula, Log) -> yes(Formula, Log, []).

yes(Formula, Log, Given) ->
    {_, Answers} = witness_spec_monpoly:holds(Formula, ?SIGNATURE, Log, Given),
    [{N, Values} || {N, Values, yes} <- Answers, not lists:member(any, Values)].
