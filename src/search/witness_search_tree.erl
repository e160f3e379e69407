-module(witness_search_tree).
-moduledoc """
An ordered set that knows the place of each element. Pure: a tree balanced by the sizes of its parts (Adams: Efficient sets, a balancing
act, Journal of Functional Programming 3(4), 1993), with the parameters of Hirai and Yamamoto (Balancing weight-balanced trees, Journal of
Functional Programming 21(3), 2011). All functions but `to_list/1` take time that grows with the logarithm of the size.
""".

-compile({no_auto_import, [size/1]}).
-export([new/0, size/1, is_member/2, insert/2, delete/2, nth/2, largest/1, count/2, find/2, to_list/1]).

-export_type([tree/1]).

-opaque tree(Element) :: nil | {Element, Size :: pos_integer(), tree(Element), tree(Element)}.

%% How many times larger than its sibling a part may be; and how much larger an inner grandchild may be than an outer one.
-define(DELTA, 3).
-define(RATIO, 2).

-spec new() -> tree(_).
new() -> nil.

-spec size(tree(_)) -> non_neg_integer().
size(nil) -> 0;
size({_, Size, _, _}) -> Size.

-spec is_member(Element, tree(Element)) -> boolean().
is_member(Element, {Root, _, Left, Right}) ->
    if
        Element < Root -> is_member(Element, Left);
        Element > Root -> is_member(Element, Right);
        true -> true
    end;
is_member(_, nil) -> false.

-doc "Inserts an element, if it is not there.".
-spec insert(Element, tree(Element)) -> tree(Element).
insert(Element, {Root, _, Left, Right} = Tree) ->
    if
        Element < Root -> balance(Root, insert(Element, Left), Right);
        Element > Root -> balance(Root, Left, insert(Element, Right));
        true -> Tree
    end;
insert(Element, nil) -> {Element, 1, nil, nil}.

-doc "Deletes an element, if it is there.".
-spec delete(Element, tree(Element)) -> tree(Element).
delete(Element, {Root, _, Left, Right}) ->
    if
        Element < Root -> balance(Root, delete(Element, Left), Right);
        Element > Root -> balance(Root, Left, delete(Element, Right));
        true -> join(Left, Right)
    end;
delete(_, nil) -> nil.

join(nil, Right) -> Right;
join(Left, nil) -> Left;
join(Left, Right) ->
    case size(Left) > size(Right) of
        true -> balance(largest(Left), without_largest(Left), Right);
        false -> balance(smallest(Right), Left, without_smallest(Right))
    end.

smallest({Root, _, nil, _}) -> Root;
smallest({_, _, Left, _}) -> smallest(Left).

without_smallest({_, _, nil, Right}) -> Right;
without_smallest({Root, _, Left, Right}) -> balance(Root, without_smallest(Left), Right).

-doc "The largest element of a tree that is not empty.".
-spec largest(tree(Element)) -> Element.
largest({Root, _, _, nil}) -> Root;
largest({_, _, _, Right}) -> largest(Right).

without_largest({_, _, Left, nil}) -> Left;
without_largest({Root, _, Left, Right}) -> balance(Root, Left, without_largest(Right)).

-doc "The element with this place, the smallest one being the first.".
-spec nth(pos_integer(), tree(Element)) -> Element.
nth(Place, {Root, _, Left, Right}) ->
    case Place - size(Left) of
        1 -> Root;
        Later when Later > 1 -> nth(Later - 1, Right);
        _ -> nth(Place, Left)
    end.

-doc "How many elements are at the beginning for which this holds. If it holds for an element, it does for all smaller ones.".
-spec count(fun((Element) -> boolean()), tree(Element)) -> non_neg_integer().
count(Holds, {Root, _, Left, Right}) ->
    case Holds(Root) of
        true -> size(Left) + 1 + count(Holds, Right);
        false -> count(Holds, Left)
    end;
count(_, nil) -> 0.

-doc "The smallest element for which this holds; it is asked of each smaller one before.".
-spec find(fun((Element) -> boolean()), tree(Element)) -> {found, Element} | none.
find(Holds, {Root, _, Left, Right}) ->
    case find(Holds, Left) of
        none ->
            case Holds(Root) of
                true -> {found, Root};
                false -> find(Holds, Right)
            end;
        Found -> Found
    end;
find(_, nil) -> none.

-spec to_list(tree(Element)) -> [Element].
to_list(Tree) -> to_list(Tree, []).

to_list({Root, _, Left, Right}, After) -> to_list(Left, [Root | to_list(Right, After)]);
to_list(nil, After) -> After.

%% --- balance ---------------------------------------------------------------------

%% One part has one element more or less than when the tree was balanced.
balance(Root, Left, Right) ->
    {L, R} = {size(Left), size(Right)},
    if
        L + R < 2 -> {Root, L + R + 1, Left, Right};
        R > ?DELTA * L -> rotate_left(Root, Left, Right);
        L > ?DELTA * R -> rotate_right(Root, Left, Right);
        true -> {Root, L + R + 1, Left, Right}
    end.

rotate_left(Root, Left, {Other, _, Inner, Outer}) ->
    case size(Inner) < ?RATIO * size(Outer) of
        true -> join_parts(Other, join_parts(Root, Left, Inner), Outer);
        false ->
            {Middle, _, One, Two} = Inner,
            join_parts(Middle, join_parts(Root, Left, One), join_parts(Other, Two, Outer))
    end.

rotate_right(Root, {Other, _, Outer, Inner}, Right) ->
    case size(Inner) < ?RATIO * size(Outer) of
        true -> join_parts(Other, Outer, join_parts(Root, Inner, Right));
        false ->
            {Middle, _, One, Two} = Inner,
            join_parts(Middle, join_parts(Other, Outer, One), join_parts(Root, Two, Right))
    end.

join_parts(Root, Left, Right) -> {Root, size(Left) + size(Right) + 1, Left, Right}.
