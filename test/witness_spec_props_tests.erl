%% Compiled monitors against two evaluators that know nothing of the compiler: one of the meaning of formulas over complete
%% finite traces, one that rewrites formulas event by event. Random formulas with data, random traces.
-module(witness_spec_props_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(FORMULAS, 10).  % a case: so many formulas in one file ...
-define(TRACES, 20).    % ... each with so many traces

verdicts_agree_with_the_semantics_test_() ->
    {timeout, 300, ?_assert(check(verdicts_agree(), 40))}.

combinations_are_normal_and_keep_their_meaning_test_() ->
    {timeout, 300, ?_assert(check(combinations_keep_their_meaning(), 2000))}.

certain_answers_about_overlapping_are_right_test_() ->
    {timeout, 300, ?_assert(check(overlaps_are_right(), 5000))}.

check(Property, Cases) -> proper:quickcheck(Property, [quiet, long_result, {numtests, Cases}, {to_file, user}]) =:= true.

%% 1. Verdicts.

verdicts_agree() ->
    ?FORALL({Formulas, Traces, Style}, {vector(?FORMULAS, formula()), vector(?TRACES, trace()), range(0, 1 bsl 30)},
        begin
            Source = [[<<"with m:f(S) check ">>, text(Formula, {Style, N}), <<".\n">>] ||
                      {N, Formula} <- lists:enumerate(Formulas)],
            {ok, #{module := Module} = Map, _} = witness_spec:compile_string(<<"random">>, iolist_to_binary(Source)),
            try
                lists:all(fun({N, Formula}) ->
                    lists:all(fun({Start, Trace}) ->
                        {ok, State} = Module:init({m, f, [Start]}, self(), N),
                        agrees(Module, State, Formula, #{'S' => Start}, Trace, Traces)
                            orelse begin io:format(user, "~ts~nformula ~p~ntrace ~p~n", [Source, N, {Start, Trace}]), false end
                    end, Traces)
                end, lists:enumerate(Formulas))
            after
                witness_spec:unload(Map)
            end
        end).

agrees(Module, State, Formula, Env, Trace, Others) ->
    {Verdict, Seen, Info, Last} = run(Module, State, Trace, []),
    {Expected, Count, Engaged} = rewrite(residual(Formula, Env, #{}), Trace, 0, false),
    %% The verdict falls at the same event as by rewriting, and is vacuous by the same account.
    Same = {Verdict, length(Seen)} =:= {Expected, Count}
        andalso (Verdict =/= yes orelse maps:get(vacuous, Info) =:= not Engaged),
    Same andalso case Verdict of
        undecided ->
            %% The end rule says what the meaning over the finite trace is.
            {End, EndInfo} = Module:handle_end(complete, Last),
            {stopped, {inconclusive, _}} = {stopped, Module:handle_end(stopped, Last)},
            #{formula := Text} = Module:describe(Last),
            (End =:= yes) =:= holds(Formula, Seen, Env) andalso byte_size(Text) > 0
                andalso (End =:= no orelse is_boolean(maps:get(vacuous, EndInfo)));
        _ ->
            %% No way in which the trace could go on contradicts it.
            lists:all(fun({_, Other}) -> holds(Formula, Seen ++ Other, Env) =:= (Verdict =:= yes) end, [{0, []} | Others])
    end.

run(Module, State, [Event | Trace], Seen) ->
    case Module:handle_event(Event, State) of
        {ok, Next} -> run(Module, Next, Trace, [Event | Seen]);
        {verdict, Verdict, Info} -> {Verdict, lists:reverse(Seen, [Event]), Info, none}
    end;
run(_, State, [], Seen) ->
    {undecided, lists:reverse(Seen), #{}, State}.

%% The meaning of a formula over a complete finite trace.
holds(Formula, Trace, Env) ->
    _ = [erase(Place) || {{holds, _, _, _, _} = Place, _} <- get()],
    holds(Formula, Trace, Env, #{}).

holds(tt, _, _, _) -> true;
holds(ff, _, _, _) -> false;
holds({var, X}, Trace, _, Loops) ->
    #{X := {Formula, Env, Outer}} = Loops,
    %% Branches that meet again at the same place of the trace are not followed twice.
    Place = {holds, Formula, Env, Outer, length(Trace)},
    case get(Place) of
        undefined ->
            Holds = holds({max, X, Formula}, Trace, Env, Outer),
            put(Place, Holds),
            Holds;
        Known ->
            Known
    end;
holds({Fix, X, Formula}, Trace, Env, Loops) when Fix =:= max; Fix =:= min ->
    holds(Formula, Trace, Env, Loops#{X => {Formula, Env, Loops}});
holds({'and', Formulas}, Trace, Env, Loops) -> lists:all(fun(F) -> holds(F, Trace, Env, Loops) end, Formulas);
holds({'or', Formulas}, Trace, Env, Loops) -> lists:any(fun(F) -> holds(F, Trace, Env, Loops) end, Formulas);
holds({box, _, _}, [], _, _) -> true;
holds({dia, _, _}, [], _, _) -> false;
holds({Modality, Action, Formula}, [Event | Trace], Env, Loops) ->
    case matches(Action, Event, Env) of
        {true, Inner} -> holds(Formula, Trace, Inner, Loops);
        false -> Modality =:= box
    end.

%% Rewriting: a residual is a constant, a modality with what its names mean, or a list that is joined.
residual(tt, _, _) -> true;
residual(ff, _, _) -> false;
residual({var, X}, _, Loops) ->
    #{X := {Formula, Env, Outer}} = Loops,
    residual({max, X, Formula}, Env, Outer);
residual({Fix, X, Formula}, Env, Loops) when Fix =:= max; Fix =:= min ->
    residual(Formula, Env, Loops#{X => {Formula, Env, Loops}});
residual({Operator, Formulas}, Env, Loops) -> joined(Operator, [residual(F, Env, Loops) || F <- Formulas]);
residual(Modality, Env, Loops) -> {leaf, Modality, Env, Loops}.

joined(Operator, Residuals) ->
    {Unit, Zero} = case Operator of 'and' -> {true, false}; 'or' -> {false, true} end,
    case lists:member(Zero, Residuals) of
        true -> Zero;
        false ->
            case lists:usort(Residuals) -- [Unit] of
                [] -> Unit;
                [Only] -> Only;
                Several -> {joined, Operator, Several}
            end
    end.

%% (With what is still to be satisfied, events seen, and whether an action other than init has matched.)
rewrite(true, [], 0, Engaged) -> {undecided, 0, Engaged};
rewrite(false, [], 0, Engaged) -> {undecided, 0, Engaged};
rewrite(true, [_ | _], 0, _) -> {yes, 1, false};
rewrite(false, [_ | _], 0, _) -> {no, 1, false};
rewrite(true, _, N, Engaged) -> {yes, N, Engaged};
rewrite(false, _, N, Engaged) -> {no, N, Engaged};
rewrite(_, [], N, Engaged) -> {undecided, N, Engaged};
rewrite(Residual, [Event | Trace], N, Engaged) ->
    {Next, Now} = after_event(Residual, Event),
    rewrite(Next, Trace, N + 1, Engaged orelse Now).

after_event({joined, Operator, Residuals}, Event) ->
    {Next, Engaged} = lists:unzip([after_event(Residual, Event) || Residual <- Residuals]),
    {joined(Operator, Next), lists:member(true, Engaged)};
after_event({leaf, {Modality, Action, Formula}, Env, Loops}, Event) ->
    case matches(Action, Event, Env) of
        {true, Inner} -> {residual(Formula, Inner, Loops), element(1, Event) =/= init};
        false -> {Modality =:= box, false}
    end.

%% An action is {Kind, Pattern, Guard}; its pattern is for the message, the exit reason or the one argument of the
%% signature.
matches({Kind, Pattern, Guard}, Event, Env) when Kind =:= element(1, Event) ->
    Term = case Event of
        {exit, _, Reason, _} -> Reason;
        {init, _, _, {m, f, [Argument]}, _} -> Argument;
        {_, _, _, Message, _} -> Message
    end,
    case bind(Pattern, Term, Env) of
        false -> false;
        Inner -> case guard(Guard, Inner) of true -> {true, Inner}; false -> false end
    end;
matches(_, _, _) ->
    false.

bind(_, _, false) -> false;
bind(any, _, Env) -> Env;
bind({name, X}, Term, Env) when is_map_key(X, Env) -> case map_get(X, Env) =:= Term of true -> Env; false -> false end;
bind({name, X}, Term, Env) -> Env#{X => Term};
bind({pair, Left, Right}, {L, R}, Env) -> bind(Right, R, bind(Left, L, Env));
bind({value, Term}, Term, Env) -> Env;
bind(_, _, _) -> false.

guard(none, _) -> true;
guard({compare, Op, X, Y}, Env) -> erlang:Op(operand(X, Env), operand(Y, Env)).

operand({name, X}, Env) -> map_get(X, Env);
operand({value, Term}, _) -> Term.

%% Generators.

formula() ->
    ?SIZED(Size, formula(min(Size + 10, 40), #{loops => [], open => [], names => ['S']})).

%% `loops` are the recursion variables that an action guards, `open` those that are not yet guarded.
formula(Size, Context) when Size < 3 -> atom(Context);
formula(Size, #{open := Open} = Context) ->
    frequency([{1, atom(Context)},
               {8, ?LET({Modality, {Action, Names}}, {oneof([box, box, dia]), action(Context)},
                        ?LET(Formula, formula(Size - 1, guarded(Context#{names := Names})), {Modality, Action, Formula}))},
               {6, ?LET({Operator, N}, {oneof(['and', 'or']), range(2, 3)},
                        {Operator, vector(N, formula((Size + 3) div N, Context))})},
               {5, ?LET({Fix, X}, {oneof([max, min]), oneof(['X', 'Y', 'Z'])},
                        ?LET(Formula, formula(Size - 1, Context#{open := [X | Open]}), {Fix, X, Formula}))}]).

guarded(#{loops := Loops, open := Open} = Context) -> Context#{loops := lists:usort(Open ++ Loops), open := []}.

atom(#{loops := Loops, open := Open}) ->
    frequency([{1, oneof([tt, ff])} | [{6, {var, oneof(Usable)}} || [_ | _] = Usable <- [Loops -- Open]]]).

action(#{names := Names}) ->
    ?LET({Kind, Pattern}, {frequency([{6, recv}, {3, send}, {1, exit}, {1, init}]), pattern()},
        begin
            Bound = lists:usort(Names ++ names(Pattern)),
            ?LET(Guard, guard(Bound), {{Kind, Pattern, Guard}, Bound})
        end).

pattern() ->
    frequency([{2, any}, {3, simple()}, {4, {pair, simple(), simple()}}]).

simple() -> frequency([{1, any}, {3, {name, oneof(['A', 'B', 'C', 'S'])}}, {2, {value, value()}}]).

names({name, X}) -> [X];
names({pair, Left, Right}) -> names(Left) ++ names(Right);
names(_) -> [].

guard(Names) ->
    frequency([{2, none}, {3, {compare, oneof(['=:=', '=/=', '<', '>', '>=', '=<', '==']), {name, oneof(Names)},
                               oneof([{name, oneof(Names)}, {value, value()}])}}]).

value() -> frequency([{8, oneof([0, 1, a])}, {1, 1.0}]).

trace() ->
    ?LET({Start, WithInit, Events, Ends}, {value(), frequency([{3, true}, {1, false}]), list(event()), boolean()},
         {Start, [{init, p, undefined, {m, f, [Start]}, 0} || WithInit] ++ Events ++ [{exit, p, normal, 9} || Ends]}).

event() ->
    ?LET({Kind, Message}, {frequency([{2, recv}, {1, send}]), frequency([{1, value()}, {3, {value(), value()}}])},
         {Kind, p, q, Message, 1}).

%% Formulas as text, in a notation that the style chooses at each place.

text(Formula, Style) -> text(Formula, Style, 0).

%% Level 2 takes modalities and atoms only, 1 conjunctions too, 0 everything.
text(tt, _, _) -> "tt";
text(ff, _, _) -> "ff";
text({var, X}, _, _) -> atom_to_list(X);
text({Fix, X, Formula} = Whole, Style, Level) when Fix =:= max; Fix =:= min ->
    Name = [atom_to_list(Fix), choose(Style, Whole, [" ", "  "]), atom_to_list(X)],
    case choose(Style, Formula, [prefix, bracketed, bare]) of
        prefix -> [atom_to_list(Fix), "(", atom_to_list(X), ". ", text(Formula, Style, 0), ")"];
        bare when Level =:= 0, element(1, Formula) =/= 'and', element(1, Formula) =/= 'or' ->
            [Name, ". ", text(Formula, Style, 2)];
        _ -> [Name, ".(", text(Formula, Style, 0), ")"]
    end;
text({Operator, Formulas} = Whole, Style, Level) ->
    Own = case Operator of 'and' -> 1; 'or' -> 0 end,
    case choose(Style, Whole, [prefix, infix]) of
        prefix -> [atom_to_list(Operator), "(", lists:join(", ", [text(F, Style, 0) || F <- Formulas]), ")"];
        infix when Level =< Own -> infix(Operator, Formulas, Style, Own + 1);
        infix -> ["(", infix(Operator, Formulas, Style, Own + 1), ")"]
    end;
text({Modality, Action, Formula}, Style, _) ->
    {Open, Close} = case {Modality, choose(Style, Action, [braces, none])} of
        {box, braces} -> {"[{", "}]"};
        {box, none} -> {"[", "]"};
        {dia, _} -> {"<{", "}> "}
    end,
    [Open, action_text(Action), Close, text(Formula, Style, 2)].

infix(Operator, Formulas, Style, Level) ->
    lists:join([" ", atom_to_list(Operator), " "], [text(F, Style, Level) || F <- Formulas]).

choose(Style, Place, Options) -> lists:nth(erlang:phash2({Style, Place}, length(Options)) + 1, Options).

action_text({Kind, Pattern, Guard}) ->
    Written = pattern_text(Pattern),
    [case Kind of
         recv -> ["_ ? ", Written];
         send -> ["_ : _ ! ", Written];
         exit -> ["_ ** ", Written];
         init -> ["_ <- _, m:f(", Written, ")"]
     end,
     case Guard of
         none -> "";
         {compare, Op, X, Y} -> [" when ", operand_text(X), " ", atom_to_list(Op), " ", operand_text(Y)]
     end].

pattern_text(any) -> "_";
pattern_text({pair, Left, Right}) -> ["{", pattern_text(Left), ", ", pattern_text(Right), "}"];
pattern_text(Simple) -> operand_text(Simple).

operand_text({name, X}) -> atom_to_list(X);
operand_text({value, Term}) -> io_lib:format("~p", [Term]).

%% 2. Overlapping: what is said to be certain is.

overlaps_are_right() ->
    Action = action(#{names => ['S', 'A']}),
    ?FORALL({{Left, _}, {Right, _}, Start}, {Action, Action, value()},
        begin
            Values = [0, 1, 1.0, a, b],
            Terms = Values ++ [{L, R} || L <- Values, R <- Values],
            Events = [{init, p, undefined, {m, f, [Term]}, 0} || Term <- Terms] ++ [{exit, p, Term, 0} || Term <- Terms]
                ++ [{Kind, p, q, Term, 0} || Kind <- [send, recv], Term <- Terms],
            Both = [Event || Event <- Events, Env <- [#{'S' => Start, 'A' => Own} || Own <- Values],
                             matches(Left, Event, Env) =/= false, matches(Right, Event, Env) =/= false],
            Scope = ['A', 'S'],
            {One, Other} = {parsed(Left), parsed(Right)},
            (Both =:= [] orelse not witness_spec_overlap:disjoint(One, Other, Scope))
                andalso (Both =/= [] orelse Left =:= Right orelse not witness_spec_overlap:overlapping(One, Other, Scope))
        end).

parsed(Action) ->
    {ok, Tokens} = witness_spec_scan:string(unicode:characters_to_binary(action_text(Action))),
    witness_spec_action:action(lists:droplast(Tokens), {1, 1000}).

%% 3. The algebra of combinations: random results are combined; under every valuation of the leaves the combination has
%% the value that the operators give, and it is normal.

combinations_keep_their_meaning() ->
    ?FORALL(Expr, ?SIZED(Size, expr(Size)),
        begin
            Result = combined(Expr),
            normal(Result) andalso
                lists:all(fun(Bits) -> value(Result, Bits) =:= value(Expr, Bits) end, lists:seq(0, 31))
        end).

expr(Size) when Size < 2 ->
    frequency([{1, {verdict, yes, #{}}}, {1, {verdict, no, #{}}} | [{3, {ok, leaf(N)}} || N <- lists:seq(1, 5)]]);
expr(Size) -> frequency([{1, expr(0)}, {6, {oneof([conj, disj]), expr(Size div 2), expr(Size div 2)}}]).

leaf(3) -> {3, 1};
leaf(4) -> {3, 1.0};
leaf(N) -> N.

combined({Operator, Left, Right}) when Operator =:= conj; Operator =:= disj ->
    witness_spec_formula:Operator(combined(Left), combined(Right));
combined(Result) ->
    Result.

value({conj, Left, Right}, Bits) -> value(Left, Bits) andalso value(Right, Bits);
value({disj, Left, Right}, Bits) -> value(Left, Bits) orelse value(Right, Bits);
value({verdict, Verdict, _}, _) -> Verdict =:= yes;
value({ok, State}, Bits) -> value(State, Bits);
value({'and', Members}, Bits) -> lists:all(fun(Member) -> value(Member, Bits) end, maps:keys(Members));
value({'or', Members}, Bits) -> lists:any(fun(Member) -> value(Member, Bits) end, maps:keys(Members));
value(Leaf, Bits) -> [N] = [N || N <- lists:seq(1, 5), leaf(N) =:= Leaf], Bits band (1 bsl (N - 1)) =/= 0.

normal({verdict, _, _}) -> true;
normal({ok, State}) -> normal(State, none, #{}).

%% A combination has several members, none of its own kind, and no leaf that stands above it.
normal({Operator, Members}, Above, Leaves) when Operator =:= 'and'; Operator =:= 'or' ->
    Own = maps:filter(fun(Member, []) -> not is_combination(Member) end, Members),
    Operator =/= Above andalso map_size(Members) > 1 andalso map_size(maps:intersect(Own, Leaves)) =:= 0 andalso
        lists:all(fun(Member) -> normal(Member, Operator, maps:merge(Leaves, Own)) end,
                  [Member || Member <- maps:keys(Members), is_combination(Member)]);
normal(_, _, _) ->
    true.

is_combination({Operator, _}) -> Operator =:= 'and' orelse Operator =:= 'or';
is_combination(_) -> false.
