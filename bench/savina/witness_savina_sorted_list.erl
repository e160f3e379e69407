-module(witness_savina_sorted_list).
-moduledoc """
ConcurrentSortedLinkedList: `workers` ask one `gen_server` with a sorted list, empty at first, `requests` times
each. A worker is seeded with the sum of its place, `requests` and both percentages. It draws numbers below 100: those
below `size_percent` ask for the size, the next `write_percent` insert another number that
it draws, all others ask whether such a number is there. Equal numbers are side by side, as in Savina.

Since one number of Savina's generator determines the next, a number that is searched for is never one that is
inserted, there or here: such a search goes through the whole list.

Verified: the list at the end has all numbers that the workers drew to insert, in order; a worker finds
what it has inserted, and nothing that no worker inserts; the sizes that it gets do not shrink.
""".
-behaviour(witness_savina).
-behaviour(gen_server).

-export([sets/0, run/1]).
-export([worker/3]).
-export([init/1, handle_call/3, handle_cast/2]).

-import(witness_savina_processes, [start/3, start_server/2, gather/3, await/1, verify/3]).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{workers => 20, requests => 8_000, write_percent => 10, size_percent => 1},
      somns => #{workers => 10, requests => 1_500, write_percent => 10, size_percent => 1},
      small => #{workers => 4, requests => 40, write_percent => 30, size_percent => 5}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(Parameters = #{workers := Workers, requests := Requests, write_percent := Write, size_percent := Size}) ->
    List = start_server(?MODULE, []),
    Seeds = [I + Requests + Write + Size || I <- lists:seq(0, Workers - 1)],
    _ = [start(?MODULE, worker, [self(), List, {Parameters, Seed}]) || Seed <- Seeds],
    Found = gather(Workers, fun({found, Some}, All) -> Some ++ All end, []),
    Sorted = gen_server:call(List, close, infinity),
    await(1),
    Inserted = lists:sort([N || Seed <- Seeds, N <- inserts(Requests, Parameters, Seed)]),
    verify(sorted, Inserted, Sorted),
    Known = #{N => true || N <- Inserted},
    verify(found, [], [N || N <- Found, not is_map_key(N, Known)]),
    #{size => length(Sorted), found => length(Found)}.

%% A worker asks what it draws, in this order.
draw(#{size_percent := Size, write_percent := Write}, R0) ->
    R1 = witness_savina_random:next(R0),
    case R1 rem 100 of
        Below when Below < Size -> {size, R1};
        Below ->
            R2 = witness_savina_random:next(R1),
            {{if Below < Size + Write -> insert; true -> contains end, R2}, R2}
    end.

inserts(0, _, _) -> [];
inserts(Left, Parameters, R0) ->
    case draw(Parameters, R0) of
        {{insert, N}, R} -> [N | inserts(Left - 1, Parameters, R)];
        {_, R} -> inserts(Left - 1, Parameters, R)
    end.

-doc false.
worker(Main, List, {Parameters = #{requests := Requests}, Seed}) ->
    Main ! {found, requests(Requests, List, Parameters, Seed, {0, #{}, []})}.

%% Own: what this worker has inserted; Found: what is there according to the list, and this worker has not inserted.
requests(0, _, _, _, {_, _, Found}) -> Found;
requests(Left, List, Parameters, R0, {Before, Own, Found}) ->
    {Request, R} = draw(Parameters, R0),
    Next = case {Request, gen_server:call(List, Request, infinity)} of
        {size, Size} ->
            verify(size_shrinks, max(Before, Size), Size),
            {Size, Own, Found};
        {{insert, N}, Answer} ->
            verify(inserted, N, Answer),
            {Before, Own#{N => true}, Found};
        {{contains, N}, true} when not is_map_key(N, Own) ->
            {Before, Own, [N | Found]};
        {{contains, N}, Answer} ->
            verify({contains, N}, is_map_key(N, Own), Answer),
            {Before, Own, Found}
    end,
    requests(Left - 1, List, Parameters, R, Next).

-doc false.
init(List) -> {ok, List}.

-doc false.
handle_call(size, _, List) -> {reply, length(List), List};
handle_call({contains, N}, _, List) -> {reply, contains(N, List), List};
handle_call({insert, N}, _, List) -> {reply, N, insert(N, List)};
handle_call(close, _, List) -> {stop, normal, List, []}.

-doc false.
handle_cast(_, List) -> {noreply, List}.

%% Savina's goes to the end of the list where the number is not there.
contains(N, [N | _]) -> true;
contains(N, [_ | List]) -> contains(N, List);
contains(_, []) -> false.

insert(N, [M | List]) when M =< N -> [M | insert(N, List)];
insert(N, List) -> [N | List].
