-module(witness_spec_props_tests).
-moduledoc """
Properties of the compiler on random input: generated monitors agree with the oracle (`m:witness_spec_oracle_run`),
actions that are said to exclude each other do, and combinations of obligations keep their meaning and have the normal form
of the oracle.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% `make oracle` compares millions.
-define(PAIRS, 50_000).
-define(CALLS, 5_000).
-define(LEAVING, 5_000).
-define(CLOCKS, 3_000).
-define(FAMILIES, 6_000).
-define(GENERATED, 5_000).

%% A draw that the generator fails at once in thousands ends a comparison, or a planted fault, that has nothing to do with it.
the_generator_has_a_property_for_each_seed_test_() ->
    [{timeout, 300, {atom_to_list(Focus), fun() -> [generated(Focus, Seed) || Seed <- lists:seq(1, ?GENERATED)] end}}
     || Focus <- [mixed, loose, alike, timed, asking, remaining, calls, values, leaving, clocks]].

generated(Focus, Seed) ->
    _ = rand:seed(exsss, Seed),
    try
        Property = witness_spec_oracle_gen:among(witness_spec_oracle_gen:property(Focus)),
        Valued = [witness_spec_oracle_gen:with_values(Property#{name := undefined})
                  || is_map_key(formula, Property), Focus =:= mixed],
        ?assertNotEqual([], witness_spec_oracle_text:file([Property | Valued], Seed))
    catch
        error:Reason:Stack -> error({Focus, {seed, Seed}, Reason, Stack})
    end.

%% A comparison of trivial verdicts would be none.
monitors_agree_with_the_oracle_test_() ->
    {timeout, 900, fun() -> agree(#{pairs => ?PAIRS, traces => 250}, [yes, no, undecided, sliced, several, replayed]) end}.

monitors_agree_about_calls_test_() ->
    {timeout, 300, fun() ->
        agree(#{pairs => ?CALLS, focus => calls, traces => 40}, [yes, no, undecided, sliced, several, replayed])
    end}.

monitors_agree_about_values_without_slices_test_() ->
    {timeout, 300, fun() ->
        %% Many properties: what one in ten has is in each run.
        agree(#{pairs => ?LEAVING, focus => leaving, traces => 20}, [yes, no, inconclusive, undecided, sliced, replayed])
    end}.

monitors_agree_where_clocks_differ_test_() ->
    {timeout, 300, fun() ->
        agree(#{pairs => ?CLOCKS, focus => clocks, traces => 40}, [yes, no, inconclusive, undecided, sliced, several, replayed])
    end}.

agree(Options, Frequent) ->
    case witness_spec_oracle_run:pairs(Options) of
        {ok, #{pairs := Pairs} = Statistics} -> [?assert(maps:get(What, Statistics) > Pairs div 200) || What <- Frequent];
        {disagreement, #{seed := Seed} = Case} ->
            %% Summaries of failed tests show the beginning of the reason: the seed brings the rest back.
            io:put_chars(user, witness_spec_oracle_run:format(Case)),
            error({disagreement, {seed, Seed}, Options, Case})
    end.

combinations_are_normal_and_keep_their_meaning_test_() ->
    {timeout, 300, ?_assert(check(combinations_keep_their_meaning(), 2000))}.

normal_forms_are_those_of_the_oracle_test_() ->
    {timeout, 300, ?_assert(check(normal_forms_agree(), 20000))}.

certain_answers_about_overlapping_are_right_test_() ->
    {timeout, 300, ?_assert(check(overlaps_are_right(), 5000))}.

actions_that_are_disjoint_have_no_event_in_common_test_() ->
    {timeout, 300, fun disjoint_ones_have_no_event_in_common/0}.

check(Property, Cases) ->
    proper:quickcheck(Property, [quiet, long_result, {numtests, Cases}, {to_file, user}]) =:= true.

%% 1. Overlapping. Actions that are alike, and events for each of them.

disjoint_ones_have_no_event_in_common() ->
    Scope = ['A', 'S'],
    _ = rand:seed(exsss),
    lists:foreach(fun(N) ->
        Named = case N rem 3 of 0 -> [{call, {m, f, 1}}, {call, {m, f, 2}}, {return, {m, f, 1}}]; _ -> [] end,
        [One, Other] = witness_spec_oracle_gen:family(2, {Scope, #{tags => [], otp => false, focus => plain, named => Named}}),
        case witness_spec_overlap:disjoint(parsed(One), parsed(Other), Scope) of
            true ->
                [?assertNot(both(One, Other, Event, Env), {One, Other, Event, Env}) ||
                    _ <- lists:seq(1, 10),
                    Env <- [#{X => witness_spec_oracle_gen:value() || X <- Scope}],
                    Action <- [One, Other],
                    Event <- [witness_spec_oracle_gen:event_for(Action, Env)]];
            false ->
                ok
        end
    end, lists:seq(1, ?FAMILIES)).

both(One, Other, Event, Env) ->
    witness_spec_oracle:match(One, Event, Env) =/= no andalso witness_spec_oracle:match(Other, Event, Env) =/= no.

parsed(Action) ->
    Text = unicode:characters_to_binary(witness_spec_oracle_text:action(Action, 0)),
    {ok, Tokens} = witness_spec_scan:string(Text),
    witness_spec_action:action(lists:droplast(Tokens), {1, 1000}).

%% Small actions, for which all events can be tried: what is said to be certain, that one matches both or none, is so.

overlaps_are_right() ->
    ?FORALL({Left, Right, Start}, {small_action(), small_action(), small_value()},
        begin
            Values = [-1, 0, 1, 1.0, a, b],
            Terms = Values ++ [{L, R} || L <- Values, R <- Values],
            Events = [{init, p, undefined, {m, f, [Term]}, 0} || Term <- Terms] ++ [{exit, p, Term, 0} || Term <- Terms]
                ++ [{Kind, p, q, Term, 0} || Kind <- [send, recv], Term <- Terms]
                ++ [{call, p, {m, F, [Term]}, 0} || F <- [f, g], Term <- Terms]
                ++ [{return, p, {m, F, 1}, Term, 0} || F <- [f, g], Term <- Terms],
            Common = fun(Own, Signed) ->
                lists:any(fun(Event) -> both(Left, Right, Event, #{'S' => Signed, 'A' => Own}) end, Events)
            end,
            Scope = ['A', 'S'],
            {One, Other} = {parsed(Left), parsed(Right)},
            %% What is disjoint has no event in common, whatever the variables around are; what overlaps has one for some.
            (not lists:any(fun(Own) -> Common(Own, Start) end, Values)
                orelse not witness_spec_overlap:disjoint(One, Other, Scope))
                andalso (Left =:= Right orelse not witness_spec_overlap:overlapping(One, Other, Scope)
                    orelse lists:any(fun(Signed) -> lists:any(fun(Own) -> Common(Own, Signed) end, Values) end, Values))
        end).

small_action() ->
    ?LET({Kind, Pattern}, {frequency([{6, recv}, {3, send}, {1, exit}, {1, init}, {3, call}, {2, return}]), small_pattern()},
        ?LET(Guard, small_guard(lists:usort(['A', 'S' | witness_spec_oracle:variables(Pattern)])),
            case Kind of
                recv -> {recv, ['_', Pattern], Guard};
                send -> {send, ['_', '_', Pattern], Guard};
                exit -> {exit, ['_', Pattern], Guard};
                call -> {call, ['_', {tuple, [{lit, m}, {lit, small_function(Pattern)}, {list, [Pattern], nil}]}], Guard};
                return -> {return, ['_', {lit, {m, small_function(Pattern), 1}}, Pattern], Guard};
                init -> {init, ['_', '_', {tuple, [{lit, m}, {lit, f}, {list, [Pattern], nil}]}], Guard}
            end)).

small_function(Pattern) -> case erlang:phash2(Pattern, 5) of 0 -> g; _ -> f end.

small_pattern() -> frequency([{2, '_'}, {3, simple()}, {4, ?LET(Parts, vector(2, simple()), {tuple, Parts})}]).
simple() -> frequency([{1, '_'}, {3, {var, oneof(['A', 'B', 'C', 'S'])}}, {2, {lit, small_value()}}]).

small_guard(Names) ->
    frequency([{2, []}, {3, ?LET({Op, X, Y}, {oneof(['=:=', '=/=', '<', '>', '>=', '=<', '==']), {var, oneof(Names)},
                                              oneof([{var, oneof(Names)}, {lit, small_value()}])},
                                 [[{op, Op, [X, Y]}]])}]).

small_value() -> frequency([{8, oneof([0, 1, a])}, {1, 1.0}]).

%% 2. The algebra of combinations: random results are combined; under every valuation of the leaves the combination has
%% the value that the operators give, and it is normal.

combinations_keep_their_meaning() ->
    ?FORALL(Expr, ?SIZED(Size, expr(Size)),
        begin
            Result = combined(Expr),
            normal(Result) andalso
                lists:all(fun(Bits) -> value(Result, Bits) =:= value(Expr, Bits) end, lists:seq(0, 31))
        end).

%% Which obligations are left decides what is vacuous, so the form is compared, not only its value.
normal_forms_agree() ->
    ?FORALL(Expr, ?SIZED(Size, expr(Size)),
            compiled_form(combined(Expr)) =:= oracle_form(witness_spec_oracle:normal(residual(Expr)))).

residual({verdict, yes, _}) -> tt;
residual({verdict, no, _}) -> ff;
residual({ok, Leaf}) -> {ob, Leaf, #{}, #{}};
residual({Operator, Left, Right}) ->
    {case Operator of conj -> 'and'; disj -> 'or' end, [residual(Left), residual(Right)]}.

compiled_form({verdict, Verdict, _}) -> Verdict;
compiled_form({ok, State}) -> state_form(State).

%% As sets, not sorted lists: `1` and `1.0` are different data.
state_form({Operator, Members}) when Operator =:= 'and'; Operator =:= 'or' ->
    {Operator, #{state_form(Member) => [] || Member <- members(Members)}};
state_form(Leaf) -> Leaf.

oracle_form(tt) -> yes;
oracle_form(ff) -> no;
oracle_form({ob, Leaf, _, _}) -> Leaf;
oracle_form({Operator, Members}) -> {Operator, #{oracle_form(Member) => [] || Member <- Members}}.

expr(Size) when Size < 2 ->
    frequency([{1, {verdict, yes, #{}}}, {1, {verdict, no, #{}}} | [{3, {ok, leaf(N)}} || N <- lists:seq(1, 5)]]);
expr(Size) -> frequency([{1, expr(0)}, {6, {oneof([conj, disj]), expr(Size div 2), expr(Size div 2)}}]).

leaf(3) -> {3, 1};
leaf(4) -> {3, 1.0};
leaf(5) -> {5, [1]};
leaf(N) -> N.

combined({Operator, Left, Right}) when Operator =:= conj; Operator =:= disj ->
    witness_spec_formula:Operator(1000, combined(Left), combined(Right));
combined(Result) ->
    Result.

value({conj, Left, Right}, Bits) -> value(Left, Bits) andalso value(Right, Bits);
value({disj, Left, Right}, Bits) -> value(Left, Bits) orelse value(Right, Bits);
value({verdict, Verdict, _}, _) -> Verdict =:= yes;
value({ok, State}, Bits) -> value(State, Bits);
value({'and', Members}, Bits) -> lists:all(fun(Member) -> value(Member, Bits) end, members(Members));
value({'or', Members}, Bits) -> lists:any(fun(Member) -> value(Member, Bits) end, members(Members));
value(Leaf, Bits) -> [N] = [N || N <- lists:seq(1, 5), leaf(N) =:= Leaf], Bits band (1 bsl (N - 1)) =/= 0.

normal({verdict, _, _}) -> true;
normal({ok, State}) -> normal(State, none, #{}).

%% A combination has several members, none of its own kind, and no leaf that stands above it.
normal({Operator, List}, none, Leaves) when is_list(List) ->
    %% Leaves only, each of them once.
    Members = maps:from_keys(List, []),
    map_size(Members) =:= length(List) andalso not lists:any(fun is_combination/1, List)
        andalso normal({Operator, Members}, none, Leaves);
normal({Operator, Members}, Above, Leaves) when Operator =:= 'and'; Operator =:= 'or' ->
    Own = maps:filter(fun(Member, []) -> not is_combination(Member) end, Members),
    Operator =/= Above andalso map_size(Members) > 1 andalso map_size(maps:intersect(Own, Leaves)) =:= 0 andalso
        lists:all(fun(Member) -> normal(Member, Operator, maps:merge(Leaves, Own)) end,
                  [Member || Member <- maps:keys(Members), is_combination(Member)]);
normal(_, _, _) ->
    true.

members(Members) when is_list(Members) -> Members;
members(Members) -> maps:keys(Members).

is_combination({Operator, _}) -> Operator =:= 'and' orelse Operator =:= 'or';
is_combination(_) -> false.
