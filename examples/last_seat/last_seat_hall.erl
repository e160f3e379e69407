-module(last_seat_hall).
%% The seats of a hall. A seat is free, or reserved for somebody who has not paid yet, or sold. Who leaves without having paid gives
%% it back; who comes while nothing is free waits.
-behaviour(gen_server).
-export([start_link/1, reserve/1, sold/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

start_link(Seats) -> gen_server:start_link(?MODULE, Seats, []).

reserve(Hall) -> gen_server:call(Hall, reserve, infinity).

%% The cashier has the money.
-ifdef(FIXED).
sold(Hall, Seat, Person) -> gen_server:call(Hall, {sold, Seat, Person}, infinity).
-else.
sold(Hall, Seat, Person) -> gen_server:cast(Hall, {sold, Seat, Person}).
-endif.

init(Seats) -> {ok, #{free => Seats, reserved => #{}, waiting => []}}.

handle_call(reserve, From, State) -> {noreply, serve(wait(From, State))};
handle_call({sold, Seat, _}, _, State) -> {reply, ok, serve(sell(Seat, State))}.

handle_cast({sold, Seat, _}, State) -> {noreply, serve(sell(Seat, State))}.

handle_info({'DOWN', Ref, process, _, _}, #{free := Free, reserved := Reserved} = State) ->
    {Seat, Others} = maps:take(Ref, Reserved),
    {noreply, serve(State#{free := [Seat | Free], reserved := Others})}.

wait(From, #{waiting := Waiting} = State) -> State#{waiting := Waiting ++ [From]}.

sell(Seat, #{reserved := Reserved} = State) ->
    State#{reserved := maps:filter(fun(Ref, S) -> S =/= Seat orelse not demonitor(Ref, [flush]) end, Reserved)}.

serve(#{free := [Seat | Free], reserved := Reserved, waiting := [{Person, _} = From | Waiting]} = State) ->
    gen_server:reply(From, {ok, Seat}),
    serve(State#{free := Free, reserved := Reserved#{monitor(process, Person) => Seat}, waiting := Waiting});
serve(#{free := [], reserved := Reserved, waiting := Waiting} = State) when Reserved =:= #{} ->
    [gen_server:reply(From, sold_out) || From <- Waiting],
    State#{waiting := []};
serve(State) -> State.
