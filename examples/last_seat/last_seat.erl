-module(last_seat).
-export([main/1]).

%% So many evenings, one after the other.
main(Evenings) ->
    [evening() || _ <- lists:seq(1, Evenings)],
    ok.

%% Two people want the last seat.
evening() ->
    {ok, Hall} = last_seat_hall:start_link([1]),
    {ok, Cashier} = last_seat_cashier:start_link(Hall),
    People = [spawn_monitor(fun() -> visit(Hall, Cashier) end) || _ <- [first, second]],
    [receive {'DOWN', Ref, process, Pid, _} -> ok end || {Pid, Ref} <- People],
    ok = gen_server:stop(Cashier),
    ok = gen_server:stop(Hall).

visit(Hall, Cashier) ->
    case last_seat_hall:reserve(Hall) of
        {ok, Seat} -> paid = last_seat_cashier:pay(Cashier, Seat);
        sold_out -> ok
    end.
