-module(witness_savina_bounded_buffer).
-moduledoc """
ProducerConsumerBoundedBuffer: `producers` make `items` items each, `consumers` take them, through a manager,
the benchmark's main process, that keeps at most `buffer` items. SOMns's numbers are read as a buffer of 40, 10
producers, 10 consumers and 60 items, with Savina's costs.

The manager passes an item to a consumer that is free, or keeps it. It does not ask a producer for its next item
while it keeps `buffer - producers` or more (each other producer may be about to send one); when a consumer
takes one of those, a producer is asked again. Making or taking an item is 100 logarithms for each unit of
`producer_cost` or `consumer_cost`.

Verified: the items taken are those made, each exactly once (every producer makes the same, in the same order);
never more than `buffer` were kept.
""".
-behaviour(witness_savina).

-export([sets/0, run/1]).
-export([producer/3, consumer/2]).

-import(witness_savina_processes, [start/3, gather/3, verify/3]).

%% free: consumers that wait for an item; kept: items that are kept, with their number (size) and its maximum (most);
%% parked: producers that wait to be asked; running: producers that have not made all.
-record(s, {consumers, limit, free, kept = queue:new(), size = 0, most = 0, parked = queue:new(), running}).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    Costs = #{producer_cost => 25, consumer_cost => 25},
    #{savina => Costs#{buffer => 50, producers => 40, consumers => 40, items => 1_000},
      somns => Costs#{buffer => 40, producers => 10, consumers => 10, items => 60},
      small => #{producer_cost => 1, consumer_cost => 2, buffer => 6, producers => 5, consumers => 3, items => 12}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{buffer := Buffer, producers := Producers, consumers := Consumers, items := Items,
      producer_cost := Make, consumer_cost := Take}) ->
    Buffer > Producers orelse exit(buffer_too_small),
    Free = [start(?MODULE, consumer, [self(), Take]) || _ <- lists:seq(1, Consumers)],
    Makers = [start(?MODULE, producer, [self(), Items, Make]) || _ <- lists:seq(1, Producers)],
    _ = [Maker ! produce || Maker <- Makers],
    Most = manager(#s{consumers = Consumers, limit = Buffer - Producers, free = queue:from_list(Free),
                      running = Producers}),
    _ = [Consumer ! exit || Consumer <- Free],
    Taken = gather(Consumers, fun({taken, Counts}, All) ->
        maps:merge_with(fun(_, A, B) -> A + B end, Counts, All)
    end, #{}),
    verify(items, expected(Items, Make, Producers, 0.0, #{}), Taken),
    verify(buffer, min(Buffer, Most), Most),
    #{items => lists:sum(maps:values(Taken)), kept => Most}.

%% The same numbers may occur again.
expected(0, _, _, _, Made) -> Made;
expected(Left, Cost, Producers, Last, Made) ->
    Item = process(Last, Cost),
    expected(Left - 1, Cost, Producers, Item, Made#{Item => maps:get(Item, Made, 0) + Producers}).

%% Ends when all producers have, and all consumers are free. Returns the most items that were kept.
manager(#s{running = 0, size = 0, consumers = N, free = Free, most = Most} = S) ->
    case queue:len(Free) of
        N -> Most;
        _ -> manager_receive(S)
    end;
manager(S) -> manager_receive(S).

manager_receive(S = #s{running = Running}) ->
    receive
        {item, Item, Producer} -> manager(item(Item, Producer, S));
        {available, Consumer} -> manager(available(Consumer, S));
        {'DOWN', _, process, _, normal} -> manager(S#s{running = Running - 1});
        {'DOWN', _, process, _, Reason} -> exit(Reason)
    end.

item(Item, Producer, S) ->
    #s{size = Size, limit = Limit, parked = Parked} = Next = deliver(Item, S),
    if
        Size >= Limit -> Next#s{parked = queue:in(Producer, Parked)};
        true -> ask(Producer, Next)
    end.

deliver(Item, S = #s{free = Free, kept = Kept, size = Size, most = Most}) ->
    case queue:out(Free) of
        {empty, _} ->
            S#s{kept = queue:in(Item, Kept), size = Size + 1, most = max(Most, Size + 1)};
        {{value, Consumer}, Others} ->
            Consumer ! {item, Item},
            S#s{free = Others}
    end.

available(Consumer, S = #s{free = Free, kept = Kept, size = Size, parked = Parked}) ->
    case queue:out(Kept) of
        {empty, _} -> S#s{free = queue:in(Consumer, Free)};
        {{value, Item}, Others} ->
            Consumer ! {item, Item},
            Next = S#s{kept = Others, size = Size - 1},
            case queue:out(Parked) of
                {empty, _} -> Next;
                {{value, Producer}, Still} -> ask(Producer, Next#s{parked = Still})
            end
    end.

ask(Producer, S) ->
    Producer ! produce,
    S.

-doc false.
producer(Manager, Items, Cost) -> produce(Manager, Items, Cost, 0.0).

produce(Manager, Left, Cost, Last) ->
    receive
        produce when Left > 0 ->
            Item = process(Last, Cost),
            Manager ! {item, Item, self()},
            produce(Manager, Left - 1, Cost, Item);
        produce ->
            ok
    end.

-doc false.
consumer(Manager, Cost) -> consume(Manager, Cost, 0.0, #{}).

consume(Manager, Cost, Last, Taken) ->
    receive
        {item, Item} ->
            Result = process(Last + Item, Cost),
            Manager ! {available, self()},
            consume(Manager, Cost, Result, Taken#{Item => maps:get(Item, Taken, 0) + 1});
        exit ->
            Manager ! {taken, Taken}
    end.

%% Savina's processItem; the seed is the cost.
process(Item, Cost) -> logarithms(Cost * 100, Cost, Item).

logarithms(0, _, Sum) -> Sum;
logarithms(Left, R0, Sum) ->
    R = witness_savina_random:next(R0),
    logarithms(Left - 1, R, Sum + math:log(1 / (R + 1) + 0.01)).
