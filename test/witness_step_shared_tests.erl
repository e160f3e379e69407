-module(witness_step_shared_tests).
-moduledoc "What processes have read of each other in shared memory: random runs, judged again by the definitions, each in full.".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

sources_and_lost_changes_are_those_of_the_definitions_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(?FORALL(Steps, steps(), begin
        Numbered = lists:enumerate(Steps),
        Analysis = analyse(Steps),
        Expected = #{N => Found || {N, Step} <- Numbered, Found <- [expected(N, Step, Numbered)], Found =/= #{}},
        Read = #{N => Found || {N, _} <- Numbered, Found <- [witness_step_shared:found(N, Analysis)], Found =/= #{}},
        ?WHENFAIL(io:format("~tp~nexpected ~tp~nfound ~tp~n", [Numbered, Expected, Read]),
                  Expected =:= Read andalso lists:all(fun({N, {Id, _}}) ->
                      witness_step_shared:last_news(Id, N, Analysis) =:= last_news(Id, N, Expected, Numbered)
                  end, Numbered))
    end), [{numtests, 3000}, nocolors, {to_file, user}]))}.

a_lost_change_is_found_test() ->
    Steps = [{1, read(k, 0)}, {2, change(k, 1, 2)}, {1, change(k, 3, 4)}, {3, read(all, 4)}],
    Analysis = analyse(Steps),
    ?assertEqual(#{lost => {2, 1}}, witness_step_shared:found(3, Analysis)),
    ?assertEqual(#{source => 3, sure => true}, witness_step_shared:found(4, Analysis)),
    %% What reads and changes at once loses nothing.
    ?assertEqual(#{source => 2, sure => true},
                 witness_step_shared:found(3, analyse([{1, read(k, 0)}, {2, change(k, 1, 2)}, {1, both(k, 3, 4)}]))).

calls_that_were_under_way_at_the_same_time_are_not_sure_test() ->
    ?assertEqual(#{source => 1, sure => false}, witness_step_shared:found(2, analyse([{1, change(k, 1, 2)}, {2, read(k, 1)}]))),
    %% What it has read says which was first.
    ?assertEqual(#{source => 1, sure => true},
                 witness_step_shared:found(2, analyse([{1, change(k, 1, 2, 7)}, {2, read(k, 1, 7)}]))),
    Other = analyse([{3, change(k, 1, 2, 5)}, {1, change(k, 3, 4, 7)}, {2, read(k, 3, 5)}, {2, change(k, 5, 6, 6)}]),
    ?assertEqual(#{source => 1, sure => true}, witness_step_shared:found(3, Other)),
    ?assertEqual(#{lost => {2, 3}}, witness_step_shared:found(4, Other)).

%% A table with a name has one identity, and a table says where its keys are.
tables_are_known_by_their_names_and_their_keys_test() ->
    Tid = make_ref(),
    {[{change, Table, all, _}], T1} = witness_step_shared:accesses({call, {ets, new, 2}, [t, [named_table, {keypos, 2}]], t},
                                                                witness_step_shared:new()),
    T2 = witness_step_shared:note({call, {ets, whereis, 1}, [t], Tid}, T1),
    {[{change, Table, Key, _}], T3} = witness_step_shared:accesses({call, {ets, insert, 2}, [t, {value, key}], true}, T2),
    ?assertMatch({[{change, Table, Key, _}], _},
                 witness_step_shared:accesses({call, {ets, insert, 2}, [Tid, [{other, key}]], true}, T3)),
    ?assertMatch({[{read, Table, Key, _}], _}, witness_step_shared:accesses({call, {ets, lookup, 2}, [Tid, key], []}, T3)),
    ?assertMatch({[{read, Table, all, unknown}], _}, witness_step_shared:accesses({call, {ets, select, 2}, [t, []], []}, T3)),
    {[{read, Other, Key, unknown}], _} = witness_step_shared:accesses({call, {ets, lookup, 2}, [other, key], []}, T3),
    ?assertNotEqual(Table, Other).

%% What the call was that has the place, is what the recorder has counted.
kinds_and_accesses_agree_test() ->
    Rows = [{M, F, A} || {M, F, A} <- witness_record_calls:rows(), lists:member(M, [ets, persistent_term, atomics, counters])],
    ?assert(length(Rows) > 60),
    [?assertEqual({MFA, witness_record_shared:kind(M, F)}, {MFA, kind_of(accesses(MFA), witness_record_shared:kind(M, F))})
     || {M, F, _} = MFA <- Rows],
    %% These are neither: they say what a memory is, or to which process it belongs.
    ?assertEqual([{atomics, info}, {atomics, new}, {counters, info}, {counters, new}, {ets, give_away}, {ets, info},
                  {ets, internal_request_all}, {ets, is_compiled_ms}, {ets, match_spec_compile}, {ets, rename},
                  {ets, safe_fixtable}, {ets, setopts}, {ets, whereis}, {persistent_term, info}],
                 lists:usort([{M, F} || {M, F, _} <- Rows, witness_record_shared:kind(M, F) =:= none])).

accesses({ets, Function, 1} = MFA) when Function =/= delete, Function =/= first, Function =/= first_lookup, Function =/= last,
                                       Function =/= last_lookup -> accesses(MFA, [t], []);
accesses({ets, _, Arity} = MFA) ->
    accesses(MFA, lists:sublist([t, {k, v}, 1, 2], Arity), true);
accesses({_, _, Arity} = MFA) -> accesses(MFA, lists:sublist([a, 1, 2, 3], Arity), ok).

accesses(MFA, Args, Value) -> witness_record_shared:accesses(MFA, Args, Value, fun(_) -> {1, true} end).

kind_of([{read, _, _, _}], _) -> read;
kind_of([{Kind, _, _, _}], _) when Kind =:= change; Kind =:= both -> change;
kind_of([], Kind) -> Kind.

%% --- runs ------------------------------------------------------------------------

analyse(Steps) ->
    witness_step_shared:analyse(fun(Add, Acc) ->
        lists:foldl(fun({N, {Id, Brief}}, A) -> Add(N, Id, Brief, A) end, Acc, lists:enumerate(Steps))
    end).

read(Key, Now) -> read(Key, Now, unknown).
read(Key, Now, Value) -> {access, [{read, 1, Key, Value}], Now, Now}.
change(Key, Begin, End) -> change(Key, Begin, End, unknown).
change(Key, Begin, End, Value) -> {access, [{change, 1, Key, Value}], Begin, End}.
both(Key, Begin, End) -> {access, [{both, 1, Key, unknown}], Begin, End}.

%% One call after the other.
steps() ->
    ?LET(Drawn, list({range(1, 3), oneof([read, read, change, change, both, new]), oneof([k1, k2, all])}), begin
        {Steps, _} = lists:mapfoldl(fun({Id, Kind, Key}, N) ->
            case {Kind, Key} of
                {read, _} -> {{Id, read(Key, N)}, N};
                {new, _} -> {{Id, change(all, N + 1, N + 2)}, N + 2};
                {_, all} -> {{Id, read(all, N)}, N};
                {change, _} -> {{Id, change(Key, N + 1, N + 2)}, N + 2};
                {both, _} -> {{Id, both(Key, N + 1, N + 2)}, N + 2}
            end
        end, 0, Drawn),
        Steps
    end).

%% --- the definitions -------------------------------------------------------------

expected(N, {Id, {access, [{Kind, 1, Key, _}], _, _}}, Steps) ->
    Before = [Step || {M, _} = Step <- Steps, M < N],
    case Kind of
        change when Key =/= all -> lost(Id, Key, Before);
        change -> #{};
        _ -> source(Id, Key, Before)
    end.

source(Id, all, Before) ->
    Since = since_new(Before),
    Lost = [N || {N, {Of, {access, [{change, 1, Key, _}], _, _}}} <- Since, Key =/= all,
                 lost(Of, Key, [Step || {M, _} = Step <- Before, M < N]) =/= #{}],
    Others = [N || {N, {Of, {access, [{Kind, 1, _, _}], _, _}}} <- Before, Kind =/= read, Of =/= Id],
    case {Lost, Others} of
        {[_ | _], _} -> #{source => lists:last(Lost), sure => true};
        {[], [_ | _]} -> #{source => lists:last(Others), sure => true};
        {[], []} -> #{}
    end;
source(Id, Key, Before) ->
    case [{N, Of} || {N, {Of, {access, [{Kind, 1, Of2, _}], _, _}}} <- Before, Kind =/= read, Of2 =:= Key orelse Of2 =:= all] of
        [] -> #{};
        Changes ->
            case lists:last(Changes) of
                {_, Id} -> #{};
                {N, _} -> #{source => N, sure => true}
            end
    end.

%% The steps since the memory was made last.
since_new(Steps) ->
    lists:reverse(lists:takewhile(fun({_, {_, {access, [{Kind, 1, Key, _}], _, _}}}) -> Kind =:= read orelse Key =/= all end,
                                  lists:reverse(Steps))).

lost(Id, Key, Before) ->
    Own = [{N, Kind} || {N, {Of, {access, [{Kind, 1, At, _}], _, _}}} <- since_new(Before), Of =:= Id,
                         At =:= Key orelse At =:= all andalso Kind =:= read],
    Unread = case lists:reverse(Own) of [{N, read} | _] -> N; _ -> none end,
    Changes = [N || {N, {Of, {access, [{Kind, 1, At, _}], _, _}}} <- since_new(Before), Unread =/= none, N > Unread,
                    Of =/= Id, At =:= Key, Kind =/= read],
    case Changes of
        [] -> #{};
        _ -> #{lost => {lists:last(Changes), Unread}}
    end.

last_news(Id, N, Expected, Steps) ->
    lists:max([0 | [M || {M, {Of, _}} <- Steps, M < N, Of =:= Id, #{M := #{source := _}} <- [Expected]]]).
