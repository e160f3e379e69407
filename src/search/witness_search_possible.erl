-module(witness_search_possible).
-moduledoc """
The steps that are possible, in the order in which `witness_search_world:steps/1` has them: processes, the oldest first; signals; times, the
earliest first. Pure. It is kept up to date with what has changed in the world (`change/2`), so a step costs as much as the logarithm of
the number of possible steps.

If times come late, they are possible only when nothing else is: those of the earliest moment.
""".

-compile({no_auto_import, [size/1]}).
-export([new/1, change/2, seen/1, kind/1, size/1, nth/2, is_member/2, find/2, to_list/1, news/2, sort/2]).

-export_type([possible/0, change/0]).

%% late: whether times come late; steps: what needs no time; times, due: of each timeout and timer, when it is due; added, removed:
%% what the strategy has not seen.
-record(possible, {late :: boolean(),
                   steps = witness_search_tree:new() :: witness_search_tree:tree(place()),
                   times = witness_search_tree:new() :: witness_search_tree:tree({At :: integer(), witness_search_world:step()}),
                   due = #{} :: #{witness_search_world:step() => At :: integer()},
                   added = [] :: [witness_search_world:step()],
                   removed = [] :: [witness_search_world:step()]}).

-opaque possible() :: #possible{}.

%% In the order of terms, numbers are before tuples.
-type place() :: witness_search_world:id() | {From :: witness_search_world:id(), To :: witness_search_world:id()}.

-doc "A process, signals from one to another, or a timer may do something now, at a time, or not at all.".
-type change() :: {place() | reference(), now | no | (At :: integer())}.

-spec new(witness_search_world:timeouts()) -> possible().
new(Timeouts) -> #possible{late = Timeouts =:= late}.

-doc "What has changed in a step of the world. The same may be named again.".
-spec change([change()], possible()) -> possible().
change([{Id, When} | Changes], P) when is_integer(Id) ->
    Changed = change_step(Id, When, P),
    case When of
        _ when is_integer(When); map_size(P#possible.due) > 0 ->
            change(Changes, change_time({timeout, Id}, case When of now -> no; _ -> When end, Changed));
        _ -> change(Changes, Changed)
    end;
change([{{_, _} = Place, When} | Changes], P) -> change(Changes, change_step(Place, When, P));
change([{Ref, When} | Changes], P) -> change(Changes, change_time({timer, Ref}, When, P));
change([], P) -> P.

change_step(Place, When, #possible{steps = Steps} = P) ->
    case witness_search_tree:is_member(Place, Steps) of
        true when When =:= now -> P;
        false when When =/= now -> P;
        true -> remove(step(Place), P#possible{steps = witness_search_tree:delete(Place, Steps)});
        false -> add(step(Place), P#possible{steps = witness_search_tree:insert(Place, Steps)})
    end.

add(Step, #possible{added = Added} = P) -> P#possible{added = [Step | Added]}.

%% What a strategy has not seen needs not be removed.
remove(Step, #possible{added = Added, removed = Removed} = P) ->
    case lists:member(Step, Added) of
        true -> P#possible{added = lists:delete(Step, Added)};
        false -> P#possible{removed = [Step | Removed]}
    end.

-doc "The strategy has seen what is possible: `news/2` begins again.".
-spec seen(possible()) -> possible().
seen(#possible{added = [], removed = []} = P) -> P;
seen(P) -> P#possible{added = [], removed = []}.

place({process, Id}) -> Id;
place({signal, From, To}) -> {From, To}.

step(Id) when is_integer(Id) -> {process, Id};
step({From, To}) -> {signal, From, To}.

change_time(Step, When, #possible{times = Times, due = Due, late = Late} = P) ->
    case Due of
        #{Step := When} -> P;
        #{Step := At} ->
            Gone = P#possible{times = witness_search_tree:delete({At, Step}, Times), due = maps:remove(Step, Due)},
            change_time(Step, When, case Late of true -> Gone; false -> remove(Step, Gone) end);
        #{} when When =:= no -> P;
        #{} ->
            Known = P#possible{times = witness_search_tree:insert({When, Step}, Times), due = Due#{Step => When}},
            case Late of true -> Known; false -> add(Step, Known) end
    end.

-doc "Whether only times are possible, or also something else, or nothing.".
-spec kind(possible()) -> steps | times | none.
kind(#possible{steps = Steps, times = Times}) ->
    case {witness_search_tree:size(Steps), witness_search_tree:size(Times)} of
        {0, 0} -> none;
        {0, _} -> times;
        {_, _} -> steps
    end.

-spec size(possible()) -> non_neg_integer().
size(#possible{steps = Steps} = P) ->
    Size = witness_search_tree:size(Steps),
    case P of
        #possible{late = true} when Size > 0 -> Size;
        _ -> Size + count_times(P)
    end.

%% Those that are possible if nothing else is, or always.
count_times(#possible{late = false, times = Times}) -> witness_search_tree:size(Times);
count_times(#possible{times = Times}) ->
    case witness_search_tree:size(Times) of
        Size when Size < 2 -> Size;
        _ ->
            {First, _} = witness_search_tree:nth(1, Times),
            witness_search_tree:count(fun({At, _}) -> At =< First end, Times)
    end.

-doc "The step with this place.".
-spec nth(pos_integer(), possible()) -> witness_search_world:step().
nth(Place, #possible{steps = Steps, times = Times}) ->
    case Place - witness_search_tree:size(Steps) of
        Later when Later > 0 -> element(2, witness_search_tree:nth(Later, Times));
        _ -> step(witness_search_tree:nth(Place, Steps))
    end.

-spec is_member(witness_search_world:step(), possible()) -> boolean().
is_member({Kind, _} = Step, #possible{steps = Steps, times = Times, due = Due, late = Late})
  when Kind =:= timeout; Kind =:= timer ->
    case Due of
        #{} when not is_map_key(Step, Due) -> false;
        #{Step := At} when Late ->
            witness_search_tree:size(Steps) =:= 0 andalso element(1, witness_search_tree:nth(1, Times)) =:= At;
        #{} -> true
    end;
is_member(Step, #possible{steps = Steps}) -> witness_search_tree:is_member(place(Step), Steps).

-doc "The first step for which this holds.".
-spec find(fun((witness_search_world:step()) -> boolean()), possible()) -> {found, witness_search_world:step()} | none.
find(Holds, #possible{steps = Steps} = P) ->
    case witness_search_tree:find(fun(Place) -> Holds(step(Place)) end, Steps) of
        {found, Place} -> {found, step(Place)};
        none -> find_time(Holds, witness_search_tree:size(Steps) + 1, size(P), P)
    end.

find_time(_, Place, Size, _) when Place > Size -> none;
find_time(Holds, Place, Size, P) ->
    Step = nth(Place, P),
    case Holds(Step) of
        true -> {found, Step};
        false -> find_time(Holds, Place + 1, Size, P)
    end.

-spec to_list(possible()) -> [witness_search_world:step()].
to_list(P) -> [nth(Place, P) || Place <- lists:seq(1, size(P))].

-doc """
Which steps are new, in their order, and which ones are not possible any more, since `seen/1`. The caller keeps for the next call which
times were possible; at first none.
""".
-spec news([witness_search_world:step()], possible()) ->
    {Added :: [witness_search_world:step()], Removed :: [witness_search_world:step()], Times :: [witness_search_world:step()]}.
news(_, #possible{late = false, added = Added, removed = Removed} = P) -> {sort(Added, P), Removed, []};
news(Before, #possible{steps = Steps, added = Added, removed = Removed} = P) ->
    case witness_search_tree:size(Steps) of
        0 ->
            Times = to_list(P),
            {Times -- Before, (Before -- Times) ++ Removed, Times};
        _ -> {sort(Added, P), Before ++ Removed, []}
    end.

-doc "Possible steps in their order.".
-spec sort([witness_search_world:step()], possible()) -> [witness_search_world:step()].
sort([], _) -> [];
sort([_] = Steps, _) -> Steps;
sort(Steps, P) -> [Step || {_, Step} <- lists:sort([{rank(Step, P), Step} || Step <- Steps])].

%% A tuple with three elements is after those with two.
rank({Kind, _} = Step, #possible{due = Due}) when Kind =:= timeout; Kind =:= timer -> {time, map_get(Step, Due), Step};
rank(Step, _) -> place(Step).
