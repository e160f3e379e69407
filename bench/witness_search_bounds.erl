-module(witness_search_bounds).
-moduledoc """
How likely strategies of a search find a fault, beside the published bound: programs of so many threads, each of which does so many steps,
all dependent. The fault shows if some of these steps come in a certain order.

| Depth | The fault |
|---|---|
| 1 | the last step of the first thread comes after the first one of the last thread |
| 2 | a step of another thread comes between two certain steps of the first one |
| 3 | the same, and the second of these two comes between two steps of the other one |

`main([Runs])` prints a table.
""".

-export([main/1, measure/5, bound/3]).

-export_type([program/0]).

-type program() :: {Threads :: pos_integer(), Steps :: pos_integer()}.

-spec main([string()]) -> ok.
main([Runs]) ->
    io:format("| depth | threads | steps of each | bound of pct | ~s |~n|---|---|---|---|---|---|---|---|~n",
              [lists:join(" | ", [atom_to_binary(Name) || Name <- names()])]),
    [begin
         Found = [io_lib:format("~.4f", [measure(Name, Depth, Program, list_to_integer(Runs), 1)]) || Name <- names()],
         io:format("| ~b | ~b | ~b | ~.6f | ~s |~n", [Depth, Threads, Steps, bound(Depth, Threads, Threads * Steps), lists:join(" | ", Found)])
     end || Depth <- [1, 2, 3], {Threads, Steps} = Program <- [{2, 5}, {2, 20}, {5, 5}, {5, 20}, {10, 20}]],
    ok.

names() -> [pct, pos, random, surw].

-doc "The probability of PCT with this depth, for so many threads and steps of all threads.".
-spec bound(pos_integer(), Threads :: pos_integer(), AllSteps :: pos_integer()) -> float().
bound(Depth, Threads, Steps) -> 1 / (Threads * math:pow(Steps, Depth - 1)).

-doc "The share of so many runs that find the fault.".
-spec measure(witness_search_strategy:name(), Depth :: 1..3, program(), Runs :: pos_integer(), Seed :: integer()) -> float().
measure(Name, Depth, {Threads, Steps}, Runs, Seed) ->
    View = #{actor => fun({process, Id}) -> [Id] end, touches => fun(_) -> [{changes, all}] end,
             interesting => fun(_) -> true end},
    Left = maps:from_list([{Id, Steps} || Id <- lists:seq(1, Threads)]),
    Possible = witness_search_possible:change([{Id, now} || Id := _ <- Left], witness_search_possible:new(late)),
    Options = #{depth => Depth, length => Threads * Steps,
                profile => #{counts => #{[Id] => Steps || Id <- lists:seq(1, Threads)}, parents => #{}}},
    Found = [Run || Run <- lists:seq(1, Runs),
             is_found(Depth, Threads, Steps,
                      order(witness_search_strategy:new(Name, Options#{seed => erlang:phash2({Seed, Run})}), View, Possible, Left,
                            #{}, 1))],
    length(Found) / Runs.

%% The place of each step in the run.
order(_, _, _, Left, Places, _) when map_size(Left) =:= 0 -> Places;
order(Strategy, View, Possible, Left, Places, Place) ->
    {{process, Id}, Next} = witness_search_strategy:choose(Possible, View, Strategy),
    N = map_get(Id, Left),
    {Others, Change} = case N of 1 -> {maps:remove(Id, Left), no}; _ -> {Left#{Id := N - 1}, now} end,
    %% Steps of a thread are numbered from the last one, which is 1.
    Changed = witness_search_possible:change([{Id, Change}], witness_search_possible:seen(Possible)),
    order(Next, View, Changed, Others, Places#{{Id, N} => Place}, Place + 1).

is_found(1, Threads, Steps, Places) -> map_get({1, 1}, Places) > map_get({Threads, Steps}, Places);
is_found(2, Threads, Steps, Places) ->
    {Before, After} = middle(1, Steps, Places),
    {Other, _} = middle(Threads, Steps, Places),
    Before < Other andalso Other < After;
is_found(3, Threads, Steps, Places) ->
    {Before, After} = middle(1, Steps, Places),
    {First, Second} = middle(Threads, Steps, Places),
    Before < First andalso First < After andalso After < Second.

middle(Id, Steps, Places) ->
    Middle = (Steps + 1) div 2,
    {map_get({Id, Middle + 1}, Places), map_get({Id, Middle}, Places)}.
