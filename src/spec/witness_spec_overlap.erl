-module(witness_spec_overlap).
-moduledoc """
Whether two actions can match the same event, as far as simple means can decide.

An answer `true` is certain. With `disjoint/3` the code generator puts actions into one `case`, where
the first match is the only one; `overlapping/3` causes a warning. For many pairs both answer `false`.
""".

-export([disjoint/3, own/2, overlapping/3, exclusive/2, covers/3, covers_pattern/3, anything/2]).

%% All sides of an alias are compared with all of the other's, and all tests of a guard: above this limit, nothing is known.
-define(MAX_ALIASES, 16).
-define(MAX_TESTS, 50).

%% The parts of an action that `disjoint/3` reads; a signature has them too, with a kind.
-type matched() :: #{kind := atom(), pattern := witness_spec_pattern:expr(), guard := witness_spec_pattern:guard(),
                     term() => term()}.

-type action() :: witness_spec_action:action().

-doc "No event matches both. `Scope` are the variables that are bound before.".
-spec disjoint(matched(), matched(), Scope :: ordsets:ordset(atom())) -> boolean().
disjoint(#{kind := Left}, #{kind := Right}, _) when Left =:= 'else'; Right =:= 'else' ->
    false;
disjoint(#{kind := Left}, #{kind := Right}, _) when Left =/= Right ->
    true;
disjoint(#{pattern := Left, guard := LeftGuard}, #{pattern := Right, guard := RightGuard}, Scope) ->
    case aliases(Left, 0) + aliases(Right, 0) =< ?MAX_ALIASES andalso compare(Left, Right, []) of
        false ->
            false;
        disjoint ->
            true;
        Pairs ->
            length(lists:append(LeftGuard)) =< ?MAX_TESTS andalso length(lists:append(RightGuard)) =< ?MAX_TESTS andalso
                begin
                    {LeftNames, RightNames} = names(Pairs, Scope),
                    contradictory(canonical(LeftGuard, left, LeftNames), canonical(RightGuard, right, RightNames))
                end
    end.

-doc """
An action of `over`, or a signature, with names of its own for what it binds. The formula may have the same names for other variables.
""".
-spec own(Matched, Scope :: ordsets:ordset(atom())) -> Matched when Matched :: matched().
own(#{pattern := Pattern, guard := Guard} = Matched, Scope) ->
    Rename = fun({var, Anno, Name}) when Name =/= '_' ->
                    {done, {var, Anno, case ordsets:is_element(Name, Scope) of true -> Name; false -> {own, Name} end}};
                (_) -> inside
             end,
    Matched#{pattern := witness_spec_abstract:rewrite(Rename, Pattern), guard := witness_spec_abstract:rewrite(Rename, Guard)}.

aliases(Tuple, Count) when is_tuple(Tuple) ->
    aliases(tuple_to_list(Tuple), case Tuple of {match, _, _, _} -> Count + 1; _ -> Count end);
aliases([Head | Tail], Count) -> aliases(Tail, aliases(Head, Count));
aliases(_, Count) -> Count.

%% The pairs of variables at the same place, or `disjoint`.
compare(_, _, disjoint) -> disjoint;
compare({var, _, '_'}, _, Pairs) -> Pairs;
compare(_, {var, _, '_'}, Pairs) -> Pairs;
compare({var, _, Left}, {var, _, Right}, Pairs) -> [{Left, Right} | Pairs];
compare({match, _, One, Other}, Right, Pairs) -> compare(One, Right, compare(Other, Right, Pairs));
compare(Left, {match, _, One, Other}, Pairs) -> compare(Left, One, compare(Left, Other, Pairs));
compare({tuple, _, Left}, {tuple, _, Right}, Pairs) when length(Left) =:= length(Right) -> zip(Left, Right, Pairs);
compare({tuple, _, _}, {tuple, _, _}, _) -> disjoint;
compare({cons, _, LeftHead, LeftTail}, {cons, _, RightHead, RightTail}, Pairs) ->
    compare(LeftTail, RightTail, compare(LeftHead, RightHead, Pairs));
compare({cons, _, _, _}, {nil, _}, _) -> disjoint;
compare({nil, _}, {cons, _, _, _}, _) -> disjoint;
compare({Kind, _, Left}, {Other, _, Right}, Pairs) when
        Kind =:= atom; Kind =:= integer; Kind =:= char; Kind =:= float; Kind =:= string ->
    case category({Kind, 0, Left}) =:= category({Other, 0, Right}) of
        true when is_list(Left), not is_list(Right) -> Pairs;
        true when Left == Right -> Pairs;
        true -> disjoint;
        false -> categories({Kind, 0, Left}, {Other, 0, Right}, Pairs)
    end;
compare(Left, Right, Pairs) -> categories(Left, Right, Pairs).

zip([Left | LeftRest], [Right | RightRest], Pairs) -> zip(LeftRest, RightRest, compare(Left, Right, Pairs));
zip([], [], Pairs) -> Pairs.

categories(Left, Right, Pairs) ->
    case {category(Left), category(Right)} of
        {unknown, _} -> Pairs;
        {_, unknown} -> Pairs;
        {Same, Same} -> Pairs;
        _ -> disjoint
    end.

category({atom, _, _}) -> atom;
category({Number, _, _}) when Number =:= integer; Number =:= char; Number =:= float -> number;
category({List, _, _}) when List =:= string -> list;
category({nil, _}) -> list;
category({cons, _, _, _}) -> list;
category({tuple, _, _}) -> tuple;
category({map, _, _}) -> map;
category({bin, _, _}) -> bin;
category(_) -> unknown.

%% If one event matches both, variables of a pair have the same value: they get the same name. A variable of the scope
%% keeps its own name, and gives it to the other variable of its pair.
names(Pairs, Scope) ->
    lists:foldl(fun({Left, Right}, {Lefts, Rights}) ->
        Name = case {ordsets:is_element(Left, Scope), ordsets:is_element(Right, Scope)} of
            {true, _} -> {scope, Left};
            {_, true} -> {scope, Right};
            _ -> {both, Left}
        end,
        {maps:merge(#{Left => Name}, Lefts), maps:merge(#{Right => Name}, Rights)}
    end, {#{Name => {scope, Name} || Name <- Scope}, #{Name => {scope, Name} || Name <- Scope}}, Pairs).

-doc "No values make both tests of a guard true.".
-spec exclusive(witness_spec_pattern:expr(), witness_spec_pattern:expr()) -> boolean().
exclusive(Test, Other) -> excludes(canonical(Test, same, #{}), canonical(Other, same, #{})).

%% A guard without positions, variables renamed, comparisons turned to one of their two forms.
canonical({var, _, Name}, Side, Names) -> {var, maps:get(Name, Names, {Side, Name})};
canonical({op, _, Op, Left, Right}, Side, Names) ->
    turn({op, Op, canonical(Left, Side, Names), canonical(Right, Side, Names)});
canonical([Head | Tail], Side, Names) -> [canonical(Head, Side, Names) | canonical(Tail, Side, Names)];
canonical(Expr, Side, Names) when is_tuple(Expr), tuple_size(Expr) > 1 ->
    [Kind, _ | Parts] = tuple_to_list(Expr),
    list_to_tuple([Kind | [canonical(Part, Side, Names) || Part <- Parts]]);
canonical(Part, _, _) -> Part.

turn({op, Op, Left, Right} = Expr) ->
    case {mirror(Op), constant(Left), constant(Right)} of
        {none, _, _} -> Expr;
        {Other, {value, _}, none} -> {op, Other, Right, Left};
        {Other, none, none} when Left > Right -> {op, Other, Right, Left};
        _ -> Expr
    end.

mirror('<') -> '>';
mirror('>') -> '<';
mirror('=<') -> '>=';
mirror('>=') -> '=<';
mirror(Op) when Op =:= '=:='; Op =:= '=/='; Op =:= '=='; Op =:= '/=' -> Op;
mirror(_) -> none.

constant({Kind, Value}) when Kind =:= atom; Kind =:= integer; Kind =:= char; Kind =:= float -> {value, Value};
constant({op, '-', {Kind, Value}}) when Kind =:= integer; Kind =:= float -> {value, -Value};
constant(_) -> none.

contradictory([], _) -> false;
contradictory(_, []) -> false;
contradictory(Left, Right) ->
    lists:all(fun(Tests) ->
        lists:all(fun(Others) ->
            lists:any(fun(Test) -> lists:any(fun(Other) -> excludes(Test, Other) end, Others) end, Tests)
        end, Right)
    end, Left).

excludes({op, 'not', Test}, Test) -> true;
excludes(Test, {op, 'not', Test}) -> true;
excludes({op, Left, A, B}, {op, Right, A, B}) ->
    lists:member(Right, opposites(Left));
excludes({op, Left, A, B}, {op, Right, A, C}) ->
    case {constant(B), constant(C)} of
        {{value, One}, {value, Other}} -> are_apart(Left, One, Right, Other) orelse are_apart(Right, Other, Left, One);
        _ -> false
    end;
excludes(_, _) -> false.

%% No term is in the first relation to the first constant, and in the second relation to the second one.
are_apart('=:=', One, '=:=', Other) -> One =/= Other;
are_apart(Equal, One, Same, Other) when
        (Equal =:= '=:=' orelse Equal =:= '=='), (Same =:= '=:=' orelse Same =:= '==') -> One /= Other;
are_apart(Equal, One, Order, Other) when
        (Equal =:= '=:=' orelse Equal =:= '=='),
        (Order =:= '<' orelse Order =:= '=<' orelse Order =:= '>' orelse Order =:= '>=') ->
    not erlang:Order(One, Other);
are_apart('>=', One, '=<', Other) -> One > Other;
are_apart(Above, One, Below, Other) when
        (Above =:= '>' orelse Above =:= '>='), (Below =:= '<' orelse Below =:= '=<') -> One >= Other;
are_apart(_, _, _, _) -> false.

opposites('=:=') -> ['=/=', '/=', '<', '>'];
opposites('=/=') -> ['=:='];
opposites('==') -> ['/=', '<', '>'];
opposites('/=') -> ['==', '=:='];
opposites('<') -> ['>=', '>', '==', '=:='];
opposites('>') -> ['=<', '<', '==', '=:='];
opposites('>=') -> ['<'];
opposites('=<') -> ['>'];
opposites(_) -> [].

-doc "The first action certainly matches every event that the second one matches.".
-spec covers(action(), action(), Scope :: ordsets:ordset(atom())) -> boolean().
covers(#{kind := use, name := Name} = One, #{kind := use, name := Name} = Other, _) -> is_same(One, Other);
covers(#{kind := Kind, pattern := Left, guard := Guard} = One, #{kind := Kind, pattern := Right} = Other, Scope)
  when Kind =/= use ->
    is_same(One, Other) orelse Guard =:= [] andalso covers_pattern(Left, Right, free(Left, Scope));
covers(_, _, _) -> false.

is_same(#{pattern := Left, guard := LeftGuard}, #{pattern := Right, guard := RightGuard}) ->
    canonical([Left | LeftGuard], same, #{}) =:= canonical([Right | RightGuard], same, #{}).

-doc "The first pattern matches everything that the second one matches. `Free` are the variables of the first one that can take any value.".
-spec covers_pattern(witness_spec_pattern:expr(), witness_spec_pattern:expr(), Free :: ordsets:ordset(atom())) -> boolean().
covers_pattern({tuple, _, General}, {tuple, _, Special}, Free) when length(General) =:= length(Special) ->
    lists:all(fun({One, Other}) -> covers_pattern(One, Other, Free) end, lists:zip(General, Special));
covers_pattern({cons, _, GeneralHead, GeneralTail}, {cons, _, Head, Tail}, Free) ->
    covers_pattern(GeneralHead, Head, Free) andalso covers_pattern(GeneralTail, Tail, Free);
covers_pattern({nil, _}, {nil, _}, _) -> true;
covers_pattern({Kind, _, Value}, {Kind, _, Value}, _) when
        Value =/= '_', (Kind =:= atom orelse Kind =:= integer orelse Kind =:= char orelse Kind =:= string
                        orelse Kind =:= var) -> true;
covers_pattern(General, _, Free) -> anything(General, Free).

-doc "Whether a pattern matches everything.".
-spec anything(witness_spec_pattern:expr(), Free :: ordsets:ordset(atom())) -> boolean().
anything({var, _, '_'}, _) -> true;
anything({var, _, Name}, Free) -> ordsets:is_element(Name, Free);
anything(_, _) -> false.

-doc """
Some event matches both, if the patterns can be unified and there are no guards; or it is the same action twice.
""".
-spec overlapping(action(), action(), Scope :: ordsets:ordset(atom())) -> boolean().
overlapping(#{kind := Kind, pattern := Left, guard := []}, #{kind := Kind, pattern := Right, guard := []}, Scope) ->
    unify(Left, Right, free(Left, Scope), free(Right, Scope));
overlapping(#{kind := Kind} = One, #{kind := Kind} = Other, _) -> is_same(One, Other);
overlapping(_, _, _) ->
    false.

%% The variables that can take any value: they are bound here, and occur once.
free(Pattern, Scope) ->
    Names = [Name || {Name, _} <- witness_spec_pattern:occurrences(Pattern)],
    ordsets:subtract(ordsets:from_list(Names -- (Names -- lists:usort(Names))), ordsets:union(Scope, repeated_names(Names))).

repeated_names(Names) -> ordsets:from_list(Names -- lists:usort(Names)).

unify({var, _, '_'}, Right, _, Free) -> satisfiable(Right, Free);
unify(Left, {var, _, '_'}, Free, _) -> satisfiable(Left, Free);
unify({var, _, Left}, {var, _, Right}, LeftFree, RightFree) ->
    Left =:= Right orelse ordsets:is_element(Left, LeftFree) orelse ordsets:is_element(Right, RightFree);
unify({var, _, Left}, Right, LeftFree, RightFree) ->
    ordsets:is_element(Left, LeftFree) andalso satisfiable(Right, RightFree);
unify(Left, {var, _, Right}, LeftFree, RightFree) ->
    ordsets:is_element(Right, RightFree) andalso satisfiable(Left, LeftFree);
unify({tuple, _, Left}, {tuple, _, Right}, LeftFree, RightFree) ->
    length(Left) =:= length(Right) andalso
        lists:all(fun({One, Other}) -> unify(One, Other, LeftFree, RightFree) end, lists:zip(Left, Right));
unify({cons, _, LeftHead, LeftTail}, {cons, _, RightHead, RightTail}, LeftFree, RightFree) ->
    unify(LeftHead, RightHead, LeftFree, RightFree) andalso unify(LeftTail, RightTail, LeftFree, RightFree);
unify({nil, _}, {nil, _}, _, _) -> true;
unify({Kind, _, Value}, {Kind, _, Value}, _, _) -> lists:member(Kind, [atom, integer, float, char, string]);
unify(_, _, _, _) -> false.

%% Whether some term certainly matches the pattern.
satisfiable({var, _, '_'}, _) -> true;
satisfiable({var, _, Name}, Free) -> ordsets:is_element(Name, Free);
satisfiable({tuple, _, Elements}, Free) -> lists:all(fun(Element) -> satisfiable(Element, Free) end, Elements);
satisfiable({cons, _, Head, Tail}, Free) -> satisfiable(Head, Free) andalso satisfiable(Tail, Free);
satisfiable({nil, _}, _) -> true;
satisfiable({Kind, _, _}, _) -> lists:member(Kind, [atom, integer, float, char, string]);
satisfiable(_, _) -> false.
