-module(witness_savina_sleeping_barber).
-moduledoc """
A factory, the benchmark's main process, makes `haircuts` customers, with a busy wait after each, and sends them
into a waiting room with `room` places. A customer that finds it full returns to the factory and is sent in again at
once. The barber sleeps while the room is empty, and keeps busy with each customer.

A busy wait is `rnd(production) + 10` or `rnd(haircut) + 10` steps (`witness_savina_random:busy_wait/1`).

Verified: every customer was served, once; the barber has served as many; the room has let in as many, turned
away as many as returned, and held at most `room`. How many returned depends on the schedule.
""".
-behaviour(witness_savina).

-export([sets/0, run/1]).
-export([customer/1, room/3, barber/3]).

-import(witness_savina_processes, [start/3, await/1, verify/3]).

%% waiting: customers, with their number (size) and its maximum (most); asleep: whether the barber is; entered, full: numbers of
%% customers that were let in, and turned away.
-record(room, {barber, capacity, waiting = queue:new(), size = 0, asleep = true, entered = 0, full = 0, most = 0}).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{haircuts => 5_000, room => 1_000, production => 1_000, haircut => 1_000},
      somns => #{haircuts => 2_500, room => 1_000, production => 1_000, haircut => 1_000},
      small => #{haircuts => 40, room => 5, production => 100, haircut => 200}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{haircuts := N, room := Capacity, production := Production, haircut := Haircut}) ->
    Barber = start(?MODULE, barber, [self(), Haircut, witness_savina_random:seed()]),
    Room = start(?MODULE, room, [self(), Barber, Capacity]),
    produce(N, Room, Production, witness_savina_random:seed()),
    {Served, Returned} = serve(N, Room, {0, 0}),
    Room ! exit,
    Most = receive
        {room, Entered, Full, AtOnce} ->
            verify(room, {N, Returned, min(AtOnce, Capacity)}, {Entered, Full, AtOnce}),
            AtOnce
    end,
    receive {barber, Cut} -> verify(barber, N, Cut) end,
    await(2),
    verify(served, N, Served),
    #{haircuts => Served, returned => Returned, waiting => Most}.

produce(0, _, _, _) -> ok;
produce(Left, Room, Production, R0) ->
    Room ! {enter, start(?MODULE, customer, [self()])},
    R = witness_savina_random:next(R0),
    _ = witness_savina_random:busy_wait(R rem Production + 10),
    produce(Left - 1, Room, Production, R).

%% Until all customers have ended.
serve(0, _, Counts) -> Counts;
serve(Alive, Room, {Served, Returned}) ->
    receive
        {returned, Customer} ->
            Room ! {enter, Customer},
            serve(Alive, Room, {Served, Returned + 1});
        done ->
            serve(Alive, Room, {Served + 1, Returned});
        {'DOWN', _, process, _, normal} ->
            serve(Alive - 1, Room, {Served, Returned});
        {'DOWN', _, process, _, Reason} ->
            exit(Reason)
    end.

-doc false.
customer(Factory) ->
    receive
        full ->
            Factory ! {returned, self()},
            customer(Factory);
        wait ->
            customer(Factory);
        start ->
            receive done -> Factory ! done end
    end.

-doc false.
room(Factory, Barber, Capacity) -> room(Factory, #room{barber = Barber, capacity = Capacity}).

%% The barber's last `next` may come after the factory's `exit`.
room(Factory, S = #room{waiting = Waiting, size = Size, capacity = Capacity}) ->
    receive
        {enter, Customer} when Size =:= Capacity ->
            Customer ! full,
            room(Factory, S#room{full = S#room.full + 1});
        {enter, Customer} ->
            _ = case S#room.asleep of
                true -> self() ! next;
                false -> Customer ! wait
            end,
            room(Factory, S#room{waiting = queue:in(Customer, Waiting), size = Size + 1, asleep = false,
                                 entered = S#room.entered + 1, most = max(S#room.most, Size + 1)});
        next when Size > 0 ->
            {{value, Customer}, Others} = queue:out(Waiting),
            S#room.barber ! {enter, Customer, self()},
            room(Factory, S#room{waiting = Others, size = Size - 1});
        next ->
            S#room.barber ! wait,
            room(Factory, S#room{asleep = true});
        exit when S#room.asleep ->
            S#room.barber ! exit,
            Factory ! {room, S#room.entered, S#room.full, S#room.most}
    end.

-doc false.
barber(Factory, Haircut, R) -> barber(Factory, Haircut, R, 0).

barber(Factory, Haircut, R0, Cut) ->
    receive
        {enter, Customer, Room} ->
            Customer ! start,
            R = witness_savina_random:next(R0),
            _ = witness_savina_random:busy_wait(R rem Haircut + 10),
            Customer ! done,
            Room ! next,
            barber(Factory, Haircut, R, Cut + 1);
        wait ->
            barber(Factory, Haircut, R0, Cut);
        exit ->
            Factory ! {barber, Cut}
    end.
