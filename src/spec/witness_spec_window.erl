-module(witness_spec_window).
-moduledoc """
The combination of what was put into a sliding window, in constant time for each element on average.

What leaves first was put in first. The combination need be associative only: nothing is ever taken out of it, so that it works for the
greatest element as well as for a sum. The window is two lists: `Old`, the first element first, each with the combination of it and all
behind it in the list, and `New`, the last one first, with their combination. When `Old` is empty, `New` becomes `Old`: each element moves
once (K. Tangwongsan, M. Hirzel, S. Schneider, *Low-latency sliding-window aggregation in worst-case constant time*, DEBS 2017, section 3).
""".

-export([new/0, put/4, drop/3, combined/2, ends/2, size/1, last/1]).
-export_type([window/0]).

-doc "The elements with the places at which they were put in, which never go back.".
-type window() :: {Size :: non_neg_integer(), Old :: [{Place :: integer(), Combined :: term()}],
                     New :: [{Place :: integer(), Element :: term()}], Combined :: none | {some, term()}}.

-type combine() :: fun((Earlier :: term(), Later :: term()) -> term()).

-spec new() -> window().
new() -> {0, [], [], none}.

-doc "The window with one more element at its end.".
-spec put(Place :: integer(), Element :: term(), combine(), window()) -> window().
put(Place, Element, Combine, {Size, Old, New, Combined}) ->
    {Size + 1, Old, [{Place, Element} | New], case Combined of
        none -> {some, Element};
        {some, Before} -> {some, Combine(Before, Element)}
    end}.

-doc "The window without the elements that are in front of this place.".
-spec drop(Before :: integer(), combine(), window()) -> window().
drop(Before, Combine, {Size, [{Place, _} | Old], New, Combined}) when Place < Before ->
    drop(Before, Combine, {Size - 1, Old, New, Combined});
drop(_, _, {_, [_ | _], _, _} = Window) -> Window;
drop(_, _, {_, [], [], _}) -> new();
drop(Before, Combine, {_, [], New, _}) ->
    %% What has left already is not combined.
    case [Kept || {Place, _} = Kept <- New, Place >= Before] of
        [] -> new();
        Kept -> {length(Kept), turned(Combine, Kept), [], none}
    end.

%% The last one is the first of the list.
turned(_, []) -> [];
turned(Combine, [Last | Others]) ->
    lists:foldl(fun({At, Element}, [{_, Behind} | _] = Done) -> [{At, Combine(Element, Behind)} | Done] end, [Last], Others).

-doc "What the elements give together, `none` if there are none.".
-spec combined(combine(), window()) -> none | {some, term()}.
combined(Combine, {_, [{_, Older} | _], _, {some, Newer}}) -> {some, Combine(Older, Newer)};
combined(_, {_, [{_, Older} | _], _, none}) -> {some, Older};
combined(_, {_, [], _, Combined}) -> Combined.

-doc "Each element combined with all behind it, the first one first: the same for all windows of the same elements.".
-spec ends(combine(), window()) -> [{Place :: integer(), Combined :: term()}].
ends(Combine, {_, Old, New, Newer}) ->
    [case Newer of
         none -> End;
         {some, Behind} -> {Place, Combine(Older, Behind)}
     end || {Place, Older} = End <- Old] ++ turned(Combine, New).

-doc "The number of elements.".
-spec size(window()) -> non_neg_integer().
size({Size, _, _, _}) -> Size.

-doc "The place of the last element.".
-spec last(window()) -> integer() | none.
last({_, _, [{Place, _} | _], _}) -> Place;
last({_, [], [], _}) -> none;
last({_, Old, [], _}) ->
    {Place, _} = lists:last(Old),
    Place.
