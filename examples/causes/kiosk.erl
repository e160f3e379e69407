-module(kiosk).
-moduledoc """
A kiosk that sells tickets. Each evening ends with an error, whose cause is in another process, or earlier: two clerks count their sales
in one table; a timer closes the kiosk that was given more time; a bank does not answer; a ticket is returned before it was sold.
""".
-behaviour(gen_server).

-export([main/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-doc "An evening.".
-spec main(two_clerks | more_time | bank | returned) -> term().
main(two_clerks) ->
    Sales = ets:new(sales, [public]),
    true = ets:insert(Sales, {tickets, 0}),
    Kiosk = self(),
    Clerks = [spawn(fun() -> sell(Sales, Kiosk) end) || _ <- [anna, ben]],
    _ = [receive {price, Clerk} -> ok end || Clerk <- Clerks],
    _ = [begin Clerk ! money, receive {ticket, Clerk} -> ok end end || Clerk <- Clerks],
    [{tickets, 2}] = ets:lookup(Sales, tickets);
main(more_time) ->
    Closing = erlang:start_timer(20, self(), close),
    receive after 40 -> ok end,
    _ = erlang:cancel_timer(Closing),
    open(erlang:start_timer(60_000, self(), close));
main(bank) ->
    {ok, Bank} = gen_server:start_link(?MODULE, bank, []),
    {ok, Cashier} = gen_server:start_link(?MODULE, {asks, Bank}, []),
    {ok, Kiosk} = gen_server:start_link(?MODULE, {asks, Cashier}, []),
    paid = gen_server:call(Kiosk, {pay, 480}, 200);
main(returned) ->
    Kiosk = self(),
    _ = spawn(fun() -> receive after 200 -> Kiosk ! {ticket, 7, sold} end end),
    _ = spawn(fun() -> Kiosk ! {ticket, 7, returned} end),
    account(#{}).

%% What was read may be out of date when it is written.
sell(Sales, Kiosk) ->
    [{tickets, N}] = ets:lookup(Sales, tickets),
    Kiosk ! {price, self()},
    receive money -> ok end,
    true = ets:insert(Sales, {tickets, N + 1}),
    Kiosk ! {ticket, self()}.

%% The message of a timer may be there when it is cancelled.
open(Closing) ->
    receive {timeout, Timer, close} -> Timer = Closing end.

account(Sold) ->
    receive
        {ticket, Ticket, sold} -> account(Sold#{Ticket => []});
        {ticket, Ticket, returned} when is_map_key(Ticket, Sold) -> account(maps:remove(Ticket, Sold));
        {ticket, Ticket, returned} -> receive after 400 -> error({not_sold, Ticket}) end
    after 2_000 -> Sold
    end.

-doc false.
init(Server) -> {ok, Server}.

-doc false.
handle_call(Payment, _, {asks, Next} = Server) -> {reply, gen_server:call(Next, Payment, infinity), Server};
handle_call({pay, _}, _, bank) ->
    receive transferred -> {reply, paid, bank} end.

-doc false.
handle_cast(_, Server) -> {noreply, Server}.
