-module(last_seat_cashier).
%% Takes the money for a seat.
-behaviour(gen_server).
-export([start_link/1, pay/2]).
-export([init/1, handle_call/3, handle_cast/2]).

start_link(Hall) -> gen_server:start_link(?MODULE, Hall, []).

pay(Cashier, Seat) -> gen_server:call(Cashier, {pay, Seat, rand:uniform(100_000)}, infinity).

init(Hall) ->
    {ok, #{hall => Hall, receipts => [], stolen => [rand:uniform(100_000) + 100_000 || _ <- lists:seq(1, rand:uniform(4000))]}}.

-ifdef(FIXED).
handle_call({pay, Seat, Card}, {Person, _} = From, #{hall := Hall} = State) ->
    valid = check(Card, State),
    ok = last_seat_hall:sold(Hall, Seat, Person),
    gen_server:reply(From, paid),
    {noreply, receipt(Seat, Card, State)}.
-else.
handle_call({pay, Seat, Card}, {Person, _} = From, #{hall := Hall} = State) ->
    valid = check(Card, State),
    gen_server:reply(From, paid),                 % nobody waits longer than necessary
    Written = receipt(Seat, Card, State),
    ok = last_seat_hall:sold(Hall, Seat, Person),
    {noreply, Written}.
-endif.

handle_cast(_, State) -> {noreply, State}.

check(Card, #{stolen := Stolen}) ->
    case lists:any(fun(Other) -> Other =:= Card end, Stolen) of
        true -> stolen;
        false -> valid
    end.

receipt(Seat, Card, #{receipts := Receipts} = State) ->
    State#{receipts := [{Seat, Card} | Receipts]}.
