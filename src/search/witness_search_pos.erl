-module(witness_search_pos).
-moduledoc """
Partial order sampling (Yuan, Yang, Gu: Partial Order Aware Concurrency Sampling, CAV 2018, section 4).

Each step that is possible has a random priority, and the one with the highest is taken. Then every other one that depends on it gets a
new priority. So each partial order of dependent steps has a probability with a lower bound, which does not depend on how many steps
there are that nothing depends on.
""".
-behaviour(witness_search_strategy).

-export([new/2, choose/3]).

%% From so many steps on, it is faster to look up the highest priority, and those that touch a thing.
-define(MANY, 16).

%% known: the possible steps, with what each of them touches, as long as nothing that depends on it is done; index: the same by
%% their priorities, and by what they touch, if they are many; new: those that get a new priority if they are still possible; times:
%% those that are times.
-record(pos, {random :: rand:state(),
              known = #{} :: #{witness_search_world:step() => {Priority :: float(), [witness_search_conflict:touch()]}},
              index = none :: none | {witness_search_tree:tree({Priority :: float(), witness_search_world:step()}),
                                      #{Thing :: term() => #{witness_search_world:step() => changes | reads}}},
              new = [] :: [witness_search_world:step()],
              times = [] :: [witness_search_world:step()]}).

-doc false.
new(Seed, _) -> #pos{random = rand:seed_s(exsss, Seed)}.

-doc false.
choose(Possible, #{touches := Touches}, #pos{times = Before, new = New} = S0) ->
    {Added, Removed, Times} = witness_search_possible:news(Before, Possible),
    Left = lists:foldl(fun drop/2, S0#pos{times = Times, new = []}, Removed),
    Unknown = witness_search_possible:sort(Added ++ (New -- Removed), Possible),
    S = lists:foldl(fun(Step, Acc) -> admit(Step, Touches(Step), Acc) end, Left, Unknown),
    {_, Taken} = highest(S),
    Again = [Taken | dependent(Taken, S)],
    {Taken, lists:foldl(fun drop/2, S#pos{new = Again}, Again)}.

highest(#pos{known = Known, index = none}) -> lists:max([{Priority, Step} || Step := {Priority, _} <- Known]);
highest(#pos{index = {Queue, _}}) -> witness_search_tree:largest(Queue).

admit(Step, Touches, #pos{known = Known, random = Random, index = Index} = S) ->
    {Priority, Next} = rand:uniform_s(Random),
    All = Known#{Step => {Priority, Touches}},
    S#pos{random = Next, known = All,
          index = case Index of
              none when map_size(All) > ?MANY ->
                  maps:fold(fun(Of, {At, Some}, Acc) -> add(Of, At, Some, Acc) end, {witness_search_tree:new(), #{}}, All);
              none -> none;
              _ -> add(Step, Priority, Touches, Index)
          end}.

add(Step, Priority, Touches, {Queue, Touching}) ->
    {witness_search_tree:insert({Priority, Step}, Queue), touch(Step, Touches, Touching)}.

touch(Step, Touches, Touching) ->
    lists:foldl(fun({How, What}, Acc) ->
        case Acc of
            #{What := #{Step := changes}} -> Acc;
            #{What := Steps} -> Acc#{What := Steps#{Step => How}};
            #{} -> Acc#{What => #{Step => How}}
        end
    end, Touching, Touches).

drop(Step, #pos{known = Known, index = Index} = S) ->
    case Known of
        #{Step := {Priority, Touches}} -> S#pos{known = maps:remove(Step, Known), index = remove(Step, Priority, Touches, Index)};
        #{} -> S
    end.

remove(_, _, _, none) -> none;
remove(Step, Priority, Touches, {Queue, Touching}) ->
    {witness_search_tree:delete({Priority, Step}, Queue),
     lists:foldl(fun({_, What}, Acc) -> untouch(What, Step, Acc) end, Touching, Touches)}.

untouch(What, Step, Touching) ->
    case Touching of
        #{What := #{Step := _} = Steps} when map_size(Steps) =:= 1 -> maps:remove(What, Touching);
        #{What := Steps} -> Touching#{What := maps:remove(Step, Steps)};
        #{} -> Touching
    end.

%% The other steps that depend on this one. What a step touches is the same as when it got its priority: only a step on which it
%% depends can change that.
dependent(Taken, #pos{known = Known, index = Index}) ->
    #{Taken := {_, Own}} = Known,
    case Index of
        none -> [Step || Step := {_, Touches} <- Known, Step =/= Taken, witness_search_conflict:meet(Own, Touches)];
        {_, Touching} ->
            lists:usort([Step || {How, What} <- Own, Step := Other <- maps:get(What, Touching, #{}), Step =/= Taken,
                                 How =:= changes orelse Other =:= changes])
    end.
