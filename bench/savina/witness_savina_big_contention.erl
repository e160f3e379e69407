-module(witness_savina_big_contention).
-moduledoc """
Big: each of `processes` sends `pings` pings, each to a process that it draws (the seed is its place) when the ping
before is answered. A process that has sent all of its pings notifies the sink, the benchmark's main process. The sink stops
all processes when all have notified it. SOMns's two numbers are read as 2,000 processes and 120 pings.

Verified: each answer comes from the process that was asked; all pings were answered; their sum, each weighted
with the place of the process that answered it, is that of what was drawn.
""".
-behaviour(witness_savina).

-export([sets/0, run/1]).
-export([member/3]).

-import(witness_savina_processes, [start/3, gather/3, verify/3]).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{processes => 120, pings => 20_000},
      somns => #{processes => 2_000, pings => 120},
      small => #{processes => 8, pings => 10}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{processes := N, pings := Pings}) ->
    Members = [start(?MODULE, member, [self(), Place, Pings]) || Place <- lists:seq(0, N - 1)],
    Neighbours = list_to_tuple(Members),
    _ = [Member ! {neighbours, Neighbours} || Member <- Members],
    _ = [Member ! {pong, none} || Member <- Members],
    finished(N),
    _ = [Member ! exit || Member <- Members],
    {Answered, Weighted} = gather(N, fun({answered, Place, Count}, {All, Sum}) ->
        {All + Count, Sum + Place * Count}
    end, {0, 0}),
    verify(answered, N * Pings, Answered),
    verify(weighted, lists:sum([drawn(Pings, N, Place, 0) || Place <- lists:seq(0, N - 1)]), Weighted),
    #{pings => Answered}.

finished(0) -> ok;
finished(N) -> receive finished -> finished(N - 1) end.

drawn(0, _, _, Sum) -> Sum;
drawn(Pings, N, R0, Sum) ->
    R = witness_savina_random:next(R0),
    drawn(Pings - 1, N, R, Sum + R rem N).

-doc false.
member(Sink, Place, Pings) ->
    receive {neighbours, Neighbours} -> member(Sink, Place, Neighbours, Pings, none, Place, 0) end.

member(Sink, Place, Neighbours, Left, Asked, R0, Answered) ->
    receive
        {ping, From} ->
            element(From + 1, Neighbours) ! {pong, Place},
            member(Sink, Place, Neighbours, Left, Asked, R0, Answered + 1);
        {pong, From} when Left > 0 ->
            verify(pong, Asked, From),
            R = witness_savina_random:next(R0),
            Next = R rem tuple_size(Neighbours),
            element(Next + 1, Neighbours) ! {ping, Place},
            member(Sink, Place, Neighbours, Left - 1, Next, R, Answered);
        {pong, From} ->
            verify(pong, Asked, From),
            Sink ! finished,
            member(Sink, Place, Neighbours, Left, none, R0, Answered);
        exit ->
            Sink ! {answered, Place, Answered}
    end.
