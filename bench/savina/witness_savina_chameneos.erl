-module(witness_savina_chameneos).
-moduledoc """
`chameneos` creatures of three colours meet in pairs, `meetings` times, and take another colour each time.

The mall is the benchmark's main process. It forwards the second creature to the one that waits; that one computes
the new colour of both and sends it to the other; both come again. After enough meetings, the mall sends each creature that
comes away, and the creature reports how often it has met another.

Verified: all creatures together have met twice as often as there were meetings, each has a colour, and creatures
without a meeting have their first colour. The pairs, and the colours at the end, depend on the schedule.

Savina's and SOMns's 100 chameneos; what SOMns's code makes of its arguments, 100 meetings of 100,000 chameneos,
is the set `somns_literal`.
""".
-behaviour(witness_savina).

-export([sets/0, run/1]).
-export([chameneo/2]).

-import(witness_savina_processes, [start/3, gather/3, verify/3]).

-type colour() :: red | yellow | blue.

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{chameneos => 100, meetings => 200_000},
      somns => #{chameneos => 100, meetings => 100_000},
      somns_literal => #{chameneos => 100_000, meetings => 100},
      small => #{chameneos => 10, meetings => 60}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{chameneos := N, meetings := Meetings}) ->
    N > 1 orelse exit(nobody_to_meet),
    _ = [start(?MODULE, chameneo, [self(), first_colour(I)]) || I <- lists:seq(0, N - 1)],
    mall(Meetings, none),
    Met = gather(N, fun fade/2, 0),
    verify(met, 2 * Meetings, Met),
    #{meetings => Meetings}.

first_colour(I) -> element(I rem 3 + 1, {red, yellow, blue}).

mall(0, none) -> ok;
mall(Left, none) ->
    receive {meet, _, Chameneo} -> mall(Left, Chameneo) end;
mall(Left, Waiting) ->
    receive {meet, _, _} = Meet -> Waiting ! Meet end,
    mall(Left - 1, none).

fade({meet, _, Chameneo}, Met) ->
    Chameneo ! exit,
    Met;
fade({met, Count}, Met) ->
    Met + Count.

-doc false.
-spec chameneo(pid(), colour()) -> term().
chameneo(Mall, Colour) ->
    Mall ! {meet, Colour, self()},
    meet(Mall, Colour, Colour, 0).

meet(Mall, First, Colour, Met) ->
    receive
        {meet, Other, Chameneo} ->
            New = complement(Colour, Other),
            Chameneo ! {change, New},
            Mall ! {meet, New, self()},
            meet(Mall, First, New, Met + 1);
        {change, New} ->
            Mall ! {meet, New, self()},
            meet(Mall, First, New, Met + 1);
        exit ->
            _ = Met > 0 orelse verify(colour, First, Colour),
            verify(is_colour, true, lists:member(Colour, [red, yellow, blue])),
            Mall ! {met, Met}
    end.

complement(Same, Same) -> Same;
complement(A, B) when A =/= red, B =/= red -> red;
complement(A, B) when A =/= yellow, B =/= yellow -> yellow;
complement(_, _) -> blue.
