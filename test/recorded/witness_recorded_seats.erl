-module(witness_recorded_seats).
-moduledoc "A seat is sold by as many processes as there are given: properties over several processes are about that.".

-export([sell/1]).

-spec sell(pos_integer()) -> ok.
sell(Sellers) ->
    Hall = self(),
    _ = [spawn(fun() -> Hall ! {seat, 7, sold} end) || _ <- lists:seq(1, Sellers)],
    _ = [receive {seat, 7, sold} -> ok end || _ <- lists:seq(1, Sellers)],
    ok.
