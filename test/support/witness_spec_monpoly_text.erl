-module(witness_spec_monpoly_text).
-moduledoc """
Writes formulas of MonPoly as properties of Witness.

A time point is a group of events: `{in, N, start}`, an event `{in, N, {Predicate, Values...}}` for each of its tuples, and
`{point, N}`. All of them have the time of the time point. The property asks whether the formula holds at the time point `At`, with
these values of its free variables. Its signature has all of them. `yes` and `no` are the answers, and `inconclusive` means that what
was read does not decide.

- What is about the present and the past becomes a `let`, and is asked at `{point, At}`.
- An operator of the future becomes a fixpoint that reads on from `{in, At, start}`.
- A past operator over the future, or `SINCE` with a lower bound, becomes a fixpoint that reads from the beginning.

A variable is *determined* if it is the result of an aggregation or of a computation. With the value `any` it may be anything.
""".

-export([translate/3, domains/2]).
-export_type([part/0]).

-type part() :: #{determined := [string()], free := [string()], text := iodata()}.

-doc """
The property for a formula. `Domains` has the values of its variables. `spread`: each time point of the log has a nanosecond more than the
one before, since several have the same second.
""".
-spec translate(witness_spec_monpoly_parse:formula(), #{string() => list()}, #{spread := boolean()}) -> part().
translate(Formula, Domains, #{spread := Spread}) ->
    Free = witness_spec_monpoly_parse:free(Formula),
    Quantified = by_quantifier(Formula, Domains),
    Determined = determined(conjuncts(Quantified)),
    Plain = normalise(eliminate(Quantified, Domains)),
    Floats = [Variable || Variable := Values <- Domains, lists:any(fun is_float/1, Values)],
    Writing = #{lets => [], known => #{}, number => 1, place => elsewhere, distinct => none, spread => Spread,
                determined => Determined, floats => Floats},
    {Question, #{lets := Lets}} = question(Plain, Writing),
    #{determined => Determined, free => Free,
      text => ["holds: with monpoly:log(", lists:join(", ", ["At" | [name(Variable) || Variable <- Free]]), ")\nover _ ? _\n",
               [["let ", Let, " = ", Text, "\n"] || {Let, Text} <- lists:reverse(Lets)],
               "check\n  ", hml(Question), ".\n"]}.

%% Variables: the values that events have in their columns, those that they are compared with, and one that is in no event.

-doc "The values of each variable, also of the bound ones.".
-spec domains(witness_spec_monpoly_parse:formula(), witness_spec_monpoly_parse:log()) -> #{string() => list()}.
domains(Formula, Log) ->
    Facts = lists:usort(lists:append([Events || {_, Events} <- Log])),
    Columns = lists:usort(lists:append([[{Variable, {Name, length(Arguments), I}}
                                         || {I, {var, Variable}} <- lists:enumerate(Arguments)]
                                        || {event, Name, Arguments} <- parts(Formula)])),
    Given = [{Variable, lists:nth(Column, Values)}
             || {Variable, {Name, Arity, Column}} <- Columns, {Event, Values} <- Facts, Event =:= Name, length(Values) =:= Arity],
    Constants = lists:append([case {A, B} of
                                  {{var, Variable}, {value, Value}} -> [{Variable, Value}];
                                  {{value, Value}, {var, Variable}} -> [{Variable, Value}];
                                  _ -> []
                              end || {compare, _, A, B} <- parts(Formula)]),
    Equal = [{A, B} || {compare, "=", {var, A}, {var, B}} <- parts(Formula)]
        ++ lists:append([[{A, B} || {aggregate, {var, A}, Operator, {var, B}, _, _} <- parts(Formula),
                                    Operator =:= "min" orelse Operator =:= "max"]]),
    All = lists:usort(lists:append([witness_spec_monpoly_parse:free(Part) || Part <- parts(Formula)])),
    Direct = maps:from_list([{Variable, lists:usort([Value || {Other, Value} <- Given ++ Constants, Other =:= Variable])}
                             || Variable <- All]),
    maps:map(fun(_, Values) -> lists:usort(Values) ++ [unseen(Values)] end, close(Equal, Direct)).

close(Equal, Domains) ->
    Next = lists:foldl(fun({A, B}, Now) ->
                               Both = lists:usort(maps:get(A, Now) ++ maps:get(B, Now)),
                               Now#{A := Both, B := Both}
                       end, Domains, Equal),
    case Next of
        Domains -> Domains;
        _ -> close(Equal, Next)
    end.

unseen([Value | _]) when is_binary(Value) -> ~"unseen";
unseen(Values) ->
    Unseen = lists:max([0 | [abs(trunc(Value)) || Value <- Values]]) + 1013,
    case Values of
        [Value | _] when is_float(Value) -> float(Unseen);
        _ -> Unseen
    end.

%% All subformulas.
parts({aggregate, _, _, _, _, G} = F) -> [F | parts(G)];
parts({compare, _, _, _} = F) -> [F];
parts({event, _, _} = F) -> [F];
parts({exists, _, G} = F) -> [F | parts(G)];
parts({Operator, _, G} = F) when Operator =:= previous; Operator =:= next -> [F | parts(G)];
parts({'not', G} = F) -> [F | parts(G)];
parts({_, _, G, H} = F) -> [F | parts(G) ++ parts(H)];
parts({_, G, H} = F) -> [F | parts(G) ++ parts(H)];
parts(F) -> [F].

conjuncts({'and', F, G}) -> conjuncts(F) ++ conjuncts(G);
conjuncts(F) -> [F].

%% The least value is one that has the formula, and there is no smaller one with it. So texts are compared, and what is no event.
by_quantifier({'and', F, G}, Domains) -> {'and', by_quantifier(F, Domains), by_quantifier(G, Domains)};
by_quantifier({aggregate, Result, Operator, Of, Groups, F} = Aggregate, Domains) when Operator =:= "min"; Operator =:= "max" ->
    IsText = case Of of {var, Name} -> lists:any(fun is_binary/1, maps:get(Name, Domains)); _ -> false end,
    [throw({outside, "an aggregation over a formula that is no event"}) || {aggregate, _, _, _, _, _} <- parts(F)],
    case IsText orelse not is_simple(F) of
        true ->
            Locals = witness_spec_monpoly_parse:free(F) -- witness_spec_monpoly_parse:free(Groups),
            {One, Others} = case Of of
                {var, Variable} ->
                    case lists:member(Variable, Locals) of
                        true -> {substitute(F, Variable, Result), Locals -- [Variable]};
                        false -> {{'and', F, {compare, "=", Result, Of}}, Locals}
                    end
            end,
            Better = case Operator of
                "min" -> {compare, "<", Of, Result};
                "max" -> {compare, "<", Result, Of}
            end,
            Extreme = {'and', exist(Others, One), {'not', exist(Locals, {'and', F, Better})}},
            case Groups of
                [] -> {'or', Extreme, {'and', {'not', exist(Locals, F)},
                                       {compare, "=", Result, {value, case IsText of true -> ~""; false -> 0 end}}}};
                _ -> Extreme
            end;
        false -> Aggregate
    end;
by_quantifier(F, _) -> F.

exist(Variables, F) -> lists:foldr(fun(Variable, G) -> {exists, Variable, G} end, F, Variables).

is_simple({event, _, _}) -> true;
is_simple({since, {0, infinity}, true, {event, _, _}}) -> true;
is_simple(_) -> false.

determined(Members) ->
    Defined = [{Variable, Member} || {aggregate, {var, Variable}, _, _, _, _} = Member <- Members]
        ++ [{Variable, Member} || {compare, "=", {var, Variable}, {operation, _, _} = Term} = Member <- Members,
                                  not lists:member(Variable, witness_spec_monpoly_parse:free(Term)),
                                  [Other || Other <- Members -- [Member], not is_definition(Other),
                                            lists:member(Variable, witness_spec_monpoly_parse:free(Other))] =:= []],
    Definitions = [Member || {_, Member} <- Defined],
    [throw({outside, "a condition on the result of an aggregation"})
     || {Variable, {aggregate, _, _, _, _, _}} <- Defined, Member <- Members -- Definitions,
        lists:member(Variable, witness_spec_monpoly_parse:free(Member))],
    [Variable || {Variable, _} <- Defined].

is_definition({compare, "=", {var, _}, {operation, _, _}}) -> true;
is_definition({aggregate, _, _, _, _, _}) -> true;
is_definition(_) -> false.

substitute(F, Variable, Term) when is_tuple(F) ->
    case F of
        {var, Variable} -> Term;
        {value, _} -> F;
        {exists, Variable, _} -> F;
        _ -> list_to_tuple([substitute(Part, Variable, Term) || Part <- tuple_to_list(F)])
    end;
substitute([Head | _] = Parts, Variable, Term) when is_tuple(Head) -> [substitute(Part, Variable, Term) || Part <- Parts];
substitute(Other, _, _) -> Other.

%% Quantifiers: a variable that one event binds goes into this event. All others become their values.
%% `{event, Name, Arguments, Locals, Compared}`: the locals are bound by this event, and its comparisons may use them.

eliminate({event, Name, Arguments}, _) -> {event, Name, Arguments, [], []};
eliminate({exists, Variable, F}, Domains) ->
    Inner = eliminate(F, Domains),
    case bind(Variable, Inner) of
        {ok, Bound} -> Bound;
        none ->
            %% Only what events have is among the values.
            [throw({outside, "a quantifier over the result of a computation"})
             || {compare, "=", A, B} <- parts(F), {{var, Result}, {operation, _, _}} <- [{A, B}, {B, A}], Result =:= Variable,
                not lists:member(Variable, witness_spec_monpoly_parse:free([Event || {event, _, _} = Event <- parts(F)]))],
            disjunction([fold(substitute(Inner, Variable, {value, Value})) || Value <- maps:get(Variable, Domains)])
    end;
eliminate({aggregate, _, _, _, _, F} = Aggregate, Domains) -> setelement(6, Aggregate, eliminate(F, Domains));
eliminate(F, Domains) -> map(fun(G) -> eliminate(G, Domains) end, F).

map(Fun, {'not', F}) -> {'not', Fun(F)};
map(Fun, {Operator, F, G}) when Operator =:= 'and'; Operator =:= 'or' -> {Operator, Fun(F), Fun(G)};
map(Fun, {Operator, Interval, F}) when Operator =:= previous; Operator =:= next -> {Operator, Interval, Fun(F)};
map(Fun, {Operator, Interval, F, G}) when Operator =:= since; Operator =:= until -> {Operator, Interval, Fun(F), Fun(G)};
map(_, F) -> F.

fold({compare, Operator, {value, A}, {value, B}}) ->
    case Operator of
        "=" -> A == B;
        "<" -> A < B;
        "<=" -> A =< B
    end;
fold(F) -> map(fun fold/1, F).

bind(Variable, F) ->
    witness_spec_translated:bind(Variable, F, #{free => fun free/1, conjuncts => fun conjuncts/1, inside => fun binding/2}).

%% The part of a formula that may bind a variable.
binding(_, {Operator, Interval, F}) when Operator =:= previous; Operator =:= next -> {fun(G) -> {Operator, Interval, G} end, F};
binding(Variable, {Operator, Interval, F, G}) when Operator =:= since; Operator =:= until ->
    case lists:member(Variable, free(F)) of
        true -> none;
        false -> {fun(Bound) -> {Operator, Interval, F, Bound} end, G}
    end;
binding(_, _) -> none.

free(Several) when is_list(Several) -> lists:append([free(One) || One <- Several]);
free({event, _, Arguments, Locals, Compared}) ->
    [Variable || Variable <- witness_spec_monpoly_parse:free(Arguments) ++ free(Compared), not lists:member(Variable, Locals)];
free({compare, _, _, _} = F) -> witness_spec_monpoly_parse:free(F);
free({aggregate, Result, _, _, Groups, F}) ->
    %% What it binds is in no other place.
    witness_spec_monpoly_parse:free([Result | Groups]) ++ free(F);
free({'not', F}) -> free(F);
free({Operator, _, F}) when Operator =:= previous; Operator =:= next -> free(F);
free({_, _, F, G}) -> free([F, G]);
free({_, F, G}) -> free([F, G]);
free(_) -> [].

disjunction([]) -> false;
disjunction([F]) -> F;
disjunction([F | Members]) -> {'or', F, disjunction(Members)}.

%% One step forward and one back, or back and forward, is the same place.
normalise(F) -> step_back(map(fun normalise/1, F)).

step_back({next, I, {previous, J, F}}) -> {'and', F, {next, both(I, J), true}};
step_back({previous, I, {next, J, F}}) -> {'and', F, {previous, both(I, J), true}};
step_back({previous, I, F} = Previous) ->
    case {is_value(F), F} of
        {false, {Operator, G, H}} when Operator =:= 'and'; Operator =:= 'or' ->
            {Operator, step_back({previous, I, G}), step_back({previous, I, H})};
        {false, {'not', G}} -> {'and', {previous, I, true}, {'not', step_back({previous, I, G})}};
        _ -> Previous
    end;
step_back({next, I, {Operator, G, H}} = Next) when Operator =:= 'and'; Operator =:= 'or' ->
    case lists:any(fun({previous, _, _}) -> true; (_) -> false end, [G, H]) of
        true when Operator =:= 'and' -> {'and', step_back({next, I, G}), step_back({next, I, H})};
        _ -> Next
    end;
step_back(F) -> F.

both({A, B}, {C, D}) -> {max(A, C), min(B, D)}.  % an atom is greater than any number

%% Whether the formula can be a value of `let`s at its time point.
is_value({Operator, _, _}) when Operator =:= next -> false;
is_value({until, _, _, _}) -> false;
is_value({since, {0, _}, F, G}) -> is_value(F) andalso is_value(G);
is_value({since, _, F, G}) -> F =:= true andalso is_value(G);
is_value({previous, _, F}) -> is_value(F);
is_value({'not', F}) -> is_value(F);
is_value({Operator, F, G}) when Operator =:= 'and'; Operator =:= 'or' -> is_value(F) andalso is_value(G);
is_value(_) -> true.

%% The question, read from the beginning.

question(F, Writing) ->
    case is_value(F) of
        true -> at_point(F, Writing);
        false -> read(fun question/2, fun start/2, F, Writing)
    end.

%% `and`, `or` and `not` of questions; what `let`s can say remains together.
read(Read, _, {'not', F}, Writing) ->
    {Question, More} = Read(F, Writing),
    {dual(Question), More};
read(Read, _, {Operator, _, _} = F, Writing) when Operator =:= 'and'; Operator =:= 'or' ->
    Members = case Operator of 'and' -> conjuncts(F); 'or' -> disjuncts(F) end,
    {Values, Others} = lists:partition(fun is_value/1, Members),
    Together = [case Operator of
                    'and' -> witness_spec_translated:conjunction(Values);
                    'or' -> disjunction(Values)
                end || Values =/= []],
    {Questions, More} = lists:mapfoldl(Read, Writing, Together ++ Others),
    {{Operator, Questions}, More};
read(_, Other, F, Writing) -> Other(F, Writing).

disjuncts({'or', F, G}) -> disjuncts(F) ++ disjuncts(G);
disjuncts(F) -> [F].

%% At the end of the time point, with the values of the `let`s, and what was counted on the way.
at_point(F, Writing) ->
    {Guard, Writing1} = expression(F, Writing#{place := point}),
    {[R, N, M], #{distinct := Distinct} = Writing2} = numbers(["R", "N", "N"], Writing1#{place := elsewhere}),
    {Parameters, Facts, Same} = counting(R, Distinct),
    {{min, R, Parameters, {'or', [{some, point(N), none, [[N, " =:= At"], Guard], true},
                                  {some, point(M), none, [[M, " =:= At"]], false}
                                  | Facts ++ [{some, "else", none, [], Same}]]}},
     Writing2#{distinct := none}}.

counting(R, none) -> {[], [], {again, R, []}};
counting(R, #{action := Action, key := Key, guards := Guards, counted := Counted, cases := Cases}) ->
    {[["Seen = #{}"] | [[Counter, " = 0"] || {Counter, _} <- Counted]],
     [{some, Action, none, Guards ++ Case ++ [["not is_map_key(", Key, ", Seen)"]],
       {again, R, [["Seen#{", Key, " => true}"] | [case lists:member(Counter, Counters) of
                                                       true -> [Counter, " + ", Amount];
                                                       false -> Counter
                                                   end || {Counter, Amount} <- Counted]]}}
      || {Case, Counters} <- Cases],
     {again, R, ["Seen" | [Counter || {Counter, _} <- Counted]]}}.

point(N) -> ["_ ? {point, ", N, "}"].
inside(N, What) -> ["_ ? {in, ", N, ", ", What, "}"].

%% From the start of the time point, or of another one.
start({previous, Interval, F}, Writing) ->
    {Then, Writing1} = forward(F, Writing),
    {[T, U], Writing2} = numbers(["T", "T"], Writing1),
    {InTime, Writing3} = step(U, between(T, U, Interval, Writing2), true, Writing2),
    {Next, Writing4} = step(T, [], InTime, Writing3),
    from("At - 1", {'and', [Then, Next]}, Writing4);
start({since, {Least, _} = Interval, F, G}, Writing) ->
    {Right, Writing1} = forward(G, Writing),
    {Left, Writing2} = forward(F, Writing1),
    {[R, N, M, K], Writing3} = numbers(["R", "N", "N", "N"], Writing2),
    {[Here, P, Q, T], Writing4} = numbers(["R", "N", "N", "T"], Writing3),
    {[Again, Later, V, W, U], Writing5} = numbers(["R", "R", "N", "N", "T"], Writing4),
    Skip = fun(Loop) -> {some, inside("_", "_"), none, [], {again, Loop, []}} end,
    %% `G` is true at the chosen time point, and `F` from there to `At`.
    InTime = between(T, U, Interval, Writing5),
    Until = {min, Again, [],
             {'and', [Left, {min, Later, [], {'or', [{some, point(V), U, [[V, " =:= At"] | InTime], true},
                                                     {some, point(W), none, [[W, " < At"]], {again, Again, []}},
                                                     Skip(Later)]}}]}},
    Chosen = {min, Here, [], {'or', [{some, point(P), none, [[P, " =:= At"]], true} || Least =:= 0]
                              ++ [{some, point(Q), T, [[Q, " < At"]], Until}, Skip(Here)]}},
    {{min, R, [], {'or', [{some, inside(N, "start"), none, [[N, " =< At"]], {'and', [Right, Chosen]}},
                          {some, inside(M, "_"), none, [[M, " =< At"]], {again, R, []}},
                          {some, point(K), none, [[K, " < At"]], {again, R, []}}]}},
     Writing5};
start(F, Writing) ->
    {Then, Writing1} = forward(F, Writing),
    from("At", Then, Writing1).

from(Place, Then, Writing) ->
    {[R, N, M, K], Writing1} = numbers(["R", "N", "N", "N"], Writing),
    {{min, R, [], {'or', [{some, inside(N, "start"), none, [[N, " =:= ", Place]], Then},
                          {some, inside(M, "_"), none, [[M, " < ", Place]], {again, R, []}},
                          {some, point(K), none, [[K, " < ", Place]], {again, R, []}}]}},
     Writing1}.

%% The formula at the next `{point, _}`, from somewhere behind the one before it.
forward(F, Writing) ->
    case is_value(F) of
        true ->
            {Guard, Writing1} = expression(F, Writing),
            step(none, [Guard], true, Writing1);
        false -> read(fun forward/2, fun later/2, F, Writing)
    end.

later({next, Interval, F}, Writing) -> stepped(Interval, F, Writing);
later({until, {Least, Greatest} = Interval, F, G}, Writing) ->
    {Now, Writing1} = case Least of
        0 -> forward(G, Writing);
        _ -> {false, Writing}
    end,
    {Left, Writing2} = forward(F, Writing1),
    {[T, U, R], Writing3} = numbers(["T", "T", "R"], Writing2),
    {Loop, Writing4} = case is_value(F) andalso is_value(G) andalso Greatest =/= infinity of
        true ->
            %% The deadline holds for all of its formula, so that none of it may go beyond.
            {Ends, Writing3a} = expression(G, Writing3),
            {Goes, Writing3b} = expression(F, Writing3a),
            {{within, seconds(Greatest, Writing3b),
              {min, R, [], {'or', [{some, point("_"), U, between(T, U, {Least, infinity}, Writing3b) ++ [Ends], true},
                                   {some, point("_"), none, [Goes], {again, R, []}},
                                   {some, inside("_", "_"), none, [], {again, R, []}}]}}}, Writing3b};
        false ->
            {Ends, Writing3a} = forward(G, Writing3),
            {InTime, Writing3b} = step(U, between(T, U, Interval, Writing3a), true, Writing3a),
            {[V], Writing3c} = numbers(["T"], Writing3b),
            {On, Writing3d} = step(V, between(T, V, {0, Greatest}, Writing3c), {again, R, []}, Writing3c),
            {{min, R, [], {'or', [{'and', [Ends, InTime]}, {'and', [Left, On]}]}}, Writing3d}
    end,
    {Later, Writing5} = step(T, [], Loop, Writing4),
    {{'or', [Now, {'and', [Left, Later]}]}, Writing5};
later(_, _) -> throw({outside, "a past operator over a future one (or `SINCE` with a lower bound) inside of another operator"}).

%% The formula a time point later, in time.
stepped(Interval, F, Writing) ->
    {[T, U], Writing1} = numbers(["T", "T"], Writing),
    {Then, Writing2} = forward(F, Writing1),
    case Interval of
        {0, infinity} -> step(none, [], Then, Writing2);
        _ ->
            {InTime, Writing3} = step(U, between(T, U, Interval, Writing2), true, Writing2),
            step(T, [], {'and', [Then, InTime]}, Writing3)
    end.

step(Time, Guards, Then, Writing) ->
    {[R], Writing1} = numbers(["R"], Writing),
    {{min, R, [], {'or', [{some, point("_"), Time, Guards, Then}, {some, inside("_", "_"), none, [], {again, R, []}}]}}, Writing1}.

between(T, U, {Least, Greatest}, Writing) ->
    [[U, " - ", T, " >= ", integer_to_list(Least), " s"] || Least > 0]
        ++ [[U, " - ", T, " =< ", seconds(Greatest, Writing)] || Greatest =/= infinity].

%% So long at most.
seconds(Seconds, #{spread := false}) -> [integer_to_list(Seconds), " s"];
seconds(Seconds, #{spread := true}) -> [integer_to_list(Seconds * 1_000_000_000 + 999_999_999), " ns"].

window(infinity, _) -> "";
window(Greatest, Writing) -> ["within ", seconds(Greatest, Writing), " "].

%% Less than this.
window_below(Least) -> ["within ", integer_to_list(Least * 1_000_000_000 - 1), " ns "].

numbers(Prefixes, #{number := Number} = Writing) ->
    {[Prefix ++ integer_to_list(I) || {I, Prefix} <- lists:enumerate(Number, Prefixes)],
     Writing#{number := Number + length(Prefixes)}}.

dual(F) when is_boolean(F) -> not F;
dual({some, Action, Time, Guards, F}) -> {all, Action, Time, Guards, dual(F)};
dual({all, Action, Time, Guards, F}) -> {some, Action, Time, Guards, dual(F)};
dual({'and', Members}) -> {'or', [dual(F) || F <- Members]};
dual({'or', Members}) -> {'and', [dual(F) || F <- Members]};
dual({min, R, Parameters, F}) -> {max, R, Parameters, dual(F)};
dual({max, R, Parameters, F}) -> {min, R, Parameters, dual(F)};
dual({within, Time, F}) -> {during, Time, dual(F)};
dual({during, Time, F}) -> {within, Time, dual(F)};
dual({again, _, _} = Again) -> Again.

hml(true) -> "tt";
hml(false) -> "ff";
hml({some, Action, Time, Guards, F}) -> ["<", action(Action, Time, Guards), "> ", hml(F)];
hml({all, Action, Time, Guards, F}) -> ["[", action(Action, Time, Guards), "] ", hml(F)];
hml({Operator, Members}) when Operator =:= 'and'; Operator =:= 'or' ->
    ["(", lists:join([" ", atom_to_list(Operator), " "], [hml(F) || F <- Members]), ")"];
hml({Fixpoint, R, Parameters, F}) when Fixpoint =:= min; Fixpoint =:= max ->
    [atom_to_list(Fixpoint), " ", R, list(Parameters), ".", hml(F)];
hml({within, Time, F}) -> ["within ", Time, " ", hml(F)];
hml({during, Time, F}) -> ["during ", Time, " ", hml(F)];
hml({again, R, Values}) -> [R, list(Values)].

action("else", none, []) -> "else";
action(Action, Time, Guards) ->
    At = case Time of none -> ""; _ -> [" at ", Time] end,
    case [Guard || Guard <- Guards, Guard =/= "true"] of
        [] -> [Action, At];
        Needed -> ["{", Action, At, " when ", lists:join(", ", Needed), "}"]
    end.

list([]) -> "";
list(Values) -> ["(", lists:join(", ", Values), ")"].

name(Variable) -> [$X | Variable].

%% Values of the present and the past, by `let`s.

expression(F, Writing) when is_boolean(F); element(1, F) =:= 'not'; element(1, F) =:= 'and'; element(1, F) =:= 'or' ->
    witness_spec_translated:connective(F, Writing, fun expression/2);
expression({compare, "=", {var, Variable} = A, {operation, _, _} = B}, #{determined := Determined} = Writing) ->
    case lists:member(Variable, Determined) of
        true -> {equal(A, operand(B, Writing), Writing), Writing};
        false -> {comparison({compare, "=", A, B}, Writing), Writing}
    end;
expression({compare, _, _, _} = F, Writing) -> {comparison(F, Writing), Writing};
expression({aggregate, Result, Operator, Of, Groups, F}, Writing) -> aggregation(Result, Operator, Of, Groups, F, Writing);
expression(F, #{known := Known} = Writing) ->
    case Known of
        #{F := Text} -> {Text, Writing};
        #{} ->
            {Text, #{known := Now} = More} = temporal(F, Writing),
            {Text, More#{known := Now#{F => Text}}}
    end.

%% The tuples of a time point come before its end.
temporal({event, _, _, _, _} = Event, Writing) ->
    {Start, Writing1} = expression(start, Writing),
    add(["(not ", Start, ") since ", fact(Event, Writing1)], Writing1);
temporal(start, Writing) -> add(["once within 1 event {", inside("_", "start"), "}"], Writing);
temporal(here, Writing) -> add("once within 1 event {_ ? {point, _}}", Writing);
temporal({held, F}, Writing) ->
    {Here, Writing1} = expression(here, Writing),
    {Condition, Writing2} = at_points(F, Writing1),
    add(["(not ", Here, ") since ", Condition], Writing2);
temporal({previous, {Least, Greatest}, F}, Writing) ->
    {Held, Writing1} = expression({held, F}, Writing),
    {Before, Writing2} = add(["previously (", Held, ")"], Writing1),
    {Late, Writing3} = case Least of
        0 -> {[], Writing2};
        _ ->
            {Near, Writing2a} = add(["count ", window_below(Least), "{_ ? {point, _}}"], Writing2),
            {[[Near, " =:= 1"]], Writing2a}
    end,
    {Soon, Writing4} = case Greatest of
        infinity -> {[], Writing3};
        _ ->
            {Far, Writing3a} = add(["count ", window(Greatest, Writing3), "{_ ? {point, _}}"], Writing3),
            {[[Far, " > 1"]], Writing3a}
    end,
    {["(", lists:join(" andalso ", [Before | Late ++ Soon]), ")"], Writing4};
temporal({since, {0, Greatest}, true, F}, Writing) ->
    {Condition, More} = facts_or_points(F, Writing),
    add(["once ", window(Greatest, More), Condition], More);
temporal({since, {Least, Greatest}, true, F}, Writing) ->
    {Condition, Writing1} = facts_or_points(F, Writing),
    {All, Writing2} = add(["count ", window(Greatest, Writing1), Condition], Writing1),
    {Near, Writing3} = add(["count ", window_below(Least), Condition], Writing2),
    {["(", All, " > ", Near, ")"], Writing3};
temporal({since, {0, Greatest}, F, G}, Writing) ->
    {Here, Writing1} = expression(here, Writing),
    {Left, Writing2} = expression(F, Writing1#{place := elsewhere}),
    {Right, Writing3} = at_points(G, Writing2),
    restore(Writing, add(["(not ", Here, " orelse ", Left, ") since ", window(Greatest, Writing3), Right], Writing3)).

restore(#{place := Place}, {Text, More}) -> {Text, More#{place := Place}}.

%% A tuple has the time of its time point.
facts_or_points({event, _, _, _, _} = Event, Writing) -> {fact(Event, Writing), Writing};
facts_or_points(F, Writing) -> at_points(F, Writing).

at_points(F, Writing) ->
    {Here, Writing1} = expression(here, Writing),
    {Text, Writing2} = expression(F, Writing1#{place := elsewhere}),
    restore(Writing, {["(", Here, " andalso ", Text, ")"], Writing2}).

fact(Event, Writing) -> fact(Event, [], Writing).

%% With these guards, and all variables that they use.
fact({event, Name, Arguments, Locals, Compared}, {More, Used}, Writing) ->
    Needed = free(Compared) ++ Used,
    Texts = [case A of
                 {value, Value} -> literal(Value);
                 {var, Variable} ->
                     Once = [One || {var, Other} = One <- Arguments, Other =:= Variable],
                     case lists:member(Variable, Locals) andalso not lists:member(Variable, Needed) andalso length(Once) =:= 1 of
                         true -> "_";
                         false -> name(Variable)
                     end;
                 {operation, _, _} -> throw({outside, "a computation inside an event"})
             end || A <- Arguments],
    Guards = [comparison(C, Writing) || C <- Compared] ++ More,
    ["{", inside("_", ["{", lists:join(", ", [literal(Name) | Texts]), "}"]),
     [[" when ", lists:join(", ", Guards)] || Guards =/= []], "}"];
fact(Event, [], Writing) -> fact(Event, {[], []}, Writing).

literal(Value) when is_binary(Value) -> ["~\"", Value, "\""];
literal(Value) when is_float(Value) -> float_to_list(Value, [short]);
literal(Value) -> integer_to_list(Value).

comparison({'not', F}, Writing) -> ["not ", comparison(F, Writing)];
comparison({compare, Operator, A, B}, Writing) ->
    Erlang = case Operator of "=" -> "=="; "<=" -> "=<"; _ -> Operator end,
    ["(", operand(A, Writing), " ", Erlang, " ", operand(B, Writing), ")"].

operand({var, Variable}, _) -> name(Variable);
operand({value, Value}, _) -> literal(Value);
operand({operation, "f2i", [A]}, Writing) -> ["trunc(", operand(A, Writing), ")"];
operand({operation, "i2f", [A]}, Writing) -> ["float(", operand(A, Writing), ")"];
operand({operation, "-", [A]}, Writing) -> ["(- ", operand(A, Writing), ")"];
operand({operation, Operator, [A, B]}, #{floats := Floats} = Writing) ->
    IsFloat = [Variable || Variable <- witness_spec_monpoly_parse:free([A, B]), lists:member(Variable, Floats)] =/= [],
    Erlang = case Operator of
        "/" when not IsFloat -> "div";
        "MOD" -> "rem";
        _ -> Operator
    end,
    ["(", operand(A, Writing), " ", Erlang, " ", operand(B, Writing), ")"].

%% MonPoly prints six digits.
equal({var, Variable} = Result, Text, #{determined := Determined} = Writing) ->
    case lists:member(Variable, Determined) of
        true -> ["(", name(Variable), " =:= any orelse abs(", name(Variable), " - ", Text, ") =< 1.0e-5 * abs(", Text, "))"];
        false -> ["(", operand(Result, Writing), " == ", Text, ")"]
    end;
equal({value, _} = Result, Text, Writing) -> ["(", operand(Result, Writing), " == ", Text, ")"].

%% Aggregations over the tuples of a time point, or over all different tuples so far.

aggregation(Result, Operator, Of, Groups, F, #{place := Place, determined := Determined} = Writing) ->
    [throw({outside, "the result of an aggregation inside of another operator"})
     || {var, Variable} <- [Result], not lists:member(Variable, Determined)],
    case F of
        {event, _, _, _, _} = Event -> aggregated(Result, Operator, Of, Groups, local(Event, Groups), ["within 0 s "], Writing);
        {since, {0, infinity}, true, {event, _, _, _, _} = Event} when Operator =:= "min"; Operator =:= "max" ->
            aggregated(Result, Operator, Of, Groups, local(Event, Groups), "", Writing);
        {since, {0, infinity}, true, {event, _, _, _, _} = Event} when Place =:= point ->
            distinct(Result, Operator, Of, Groups, local(Event, Groups), Writing);
        {since, {0, infinity}, true, {event, _, _, _, _}} -> throw({outside, "different tuples, counted inside of another operator"});
        _ -> throw({outside, "an aggregation over a formula that is no event"})
    end.

%% All variables but the groups are bound by the event. A variable of a quantifier would make one of several tuples.
local({event, _, _, [_ | _], _}, _) -> throw({outside, "an aggregation over a quantifier"});
local({event, Name, Arguments, [], Compared} = Event, Groups) ->
    {event, Name, Arguments, lists:usort(free(Event)) -- witness_spec_monpoly_parse:free(Groups), Compared}.

aggregated(Result, "cnt", _, Groups, Event, Window, Writing) ->
    {Count, Writing1} = add(["count ", Window, fact(Event, Writing)], Writing),
    {["(", [[Count, " > 0 andalso "] || Groups =/= []], equal(Result, Count, Writing1), ")"], Writing1};
aggregated(Result, "sum", Of, Groups, Event, Window, Writing) ->
    {Sum, Writing1} = add(over("sum", Of, Event, [], Window, Writing), Writing),
    {Some, Writing2} = case Groups of
        [] -> {[], Writing1};
        _ ->
            {Count, Writing1a} = add(["count ", Window, fact(Event, Writing1)], Writing1),
            {[Count, " > 0 andalso "], Writing1a}
    end,
    {["(", Some, equal(Result, Sum, Writing2), ")"], Writing2};
aggregated(Result, "med", Of, Groups, Event, Window, Writing) ->
    Count = fun(Guards, W) -> add(["count ", Window, fact(Event, {Guards, witness_spec_monpoly_parse:free(Of)}, W)], W) end,
    {[All, Less, More], Writing1} =
        lists:mapfoldl(Count, Writing, [[], compared(Of, "<", Result, Writing), compared(Of, ">", Result, Writing)]),
    median(Result, Of, Groups, Event, {All, Less, More}, Window, Writing1);
aggregated(Result, Operator, Of, Groups, Event, Window, Writing) ->
    Word = case Operator of "avg" -> "mean"; _ -> Operator end,
    {Value, Writing1} = add(over(Word, Of, Event, [], Window, Writing), Writing),
    IsSome = ["(is_number(", Value, ") andalso ", equal(Result, Value, Writing1), ")"],
    {case Groups of
         [] -> ["(", IsSome, " orelse (", Value, " =:= none andalso ", equal(Result, "0", Writing1), "))"];
         _ -> IsSome
     end, Writing1}.

over(Word, Of, Event, Guards, Window, Writing) ->
    [Word, " ", Window, operand(Of, Writing), " of ", fact(Event, {Guards, witness_spec_monpoly_parse:free(Of)}, Writing)].

compared(Of, Operator, Result, Writing) -> [[operand(Of, Writing), " ", Operator, " ", operand(Result, Writing)]].

%% Half of them are less, and half are more; or it is in the middle.
median(Result, Of, Groups, Event, {All, Less, More}, Window, Writing) ->
    {Low, Writing1} = add(over("max", Of, Event, compared(Of, "<", Result, Writing), Window, Writing), Writing),
    {High, Writing2} = add(over("min", Of, Event, compared(Of, ">", Result, Writing), Window, Writing1), Writing1),
    R = operand(Result, Writing),
    Any = case Result of {var, _} -> [R, " =:= any orelse "]; _ -> "" end,
    {["((", All, " > 0 andalso (", Any, "2 * ", Less, " < ", All, " andalso 2 * ", More, " < ", All, " orelse 2 * ", Less, " =:= ", All,
      " andalso 2 * ", More, " =:= ", All, " andalso ", Low, " + ", High, " == 2 * ", R, "))",
      [[" orelse ", All, " =:= 0 andalso ", equal(Result, "0", Writing)] || Groups =:= []], ")"], Writing2}.

%% A loop has the set of tuples, and counts those that are new.
distinct(_, _, _, _, _, #{distinct := #{}}) -> throw({outside, "two aggregations over different tuples"});
distinct(Result, Operator, Of, Groups, {event, Name, Arguments, Locals, Compared} = Event, Writing) ->
    Texts = [case A of {value, Value} -> literal(Value); {var, Variable} -> name(Variable) end || A <- Arguments],
    Value = operand(Of, Writing),
    Cases = case Operator of
        "med" -> [{compared(Of, "<", Result, Writing), ["All", "Less"]},
                  {compared(Of, ">", Result, Writing), ["All", "More"]},
                  {compared(Of, "==", Result, Writing), ["All"]}];
        _ -> [{[], ["All", "Sum"]}]
    end,
    Counted = case Operator of
        "med" -> [{"All", "1"}, {"Less", "1"}, {"More", "1"}];
        "cnt" -> [{"All", "1"}];
        _ -> [{"All", "1"}, {"Sum", Value}]
    end,
    Writing1 = Writing#{distinct := #{action => inside("_", ["{", lists:join(", ", [literal(Name) | Texts]), "}"]),
                                      key => ["{", lists:join(", ", [name(Variable) || Variable <- Locals]), "}"],
                                      guards => [comparison(C, Writing) || C <- Compared],
                                      counted => Counted, cases => Cases}},
    case Operator of
        "med" -> median(Result, Of, Groups, Event, {"All", "Less", "More"}, "", Writing1);
        _ ->
            Is = case Operator of
                "cnt" -> equal(Result, "All", Writing);
                "sum" -> equal(Result, "Sum", Writing);
                "avg" -> ["(All > 0 andalso ", equal(Result, "(Sum / All)", Writing), ")",
                          [[" orelse All =:= 0 andalso ", equal(Result, "0", Writing)] || Groups =:= []]]
            end,
            {["(", [["All > 0 andalso "] || Groups =/= []], Is, ")"], Writing1}
    end.

add(Text, #{lets := Lets} = Writing) ->
    Let = ["V", integer_to_list(length(Lets) + 1)],
    {Let, Writing#{lets := [{Let, Text} | Lets]}}.
