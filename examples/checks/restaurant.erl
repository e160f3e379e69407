-module(restaurant).
-moduledoc """
Two servers, a waiter and a cook, that ask each other. No specification says what can go wrong: a table orders what is not on the menu, and nothing
takes care of the crash; the waiter forgets an order, or comes with it too late; the waiter asks whether a dish is ready, while the cook asks the waiter; a guest
stays, and takes no bill; an oven is switched on again and again.
""".
-behaviour(gen_server).

-export([main/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2]).

-doc "An evening: each has a fault, but the one that is `quiet`.".
-spec main(quiet | unknown_dish | forgotten | slow | impatient | late | hot) -> ok.
main(late) ->
    Guest = spawn(fun guest/0),
    Guest ! {bill, 480},
    main(quiet);
main(hot) ->
    process_flag(trap_exit, true),
    {ok, Kitchen} = supervisor:start_link(?MODULE, kitchen),
    receive {'EXIT', Kitchen, _} -> main(quiet) end;
main(Evening) ->
    {ok, Cook} = gen_server:start_link(?MODULE, cook, []),
    {ok, Waiter} = gen_server:start_link(?MODULE, {waiter, Cook}, []),
    Table = spawn(fun() -> table(Waiter, Evening) end),
    wait_for(Table),
    ok = gen_server:stop(Waiter),
    gen_server:stop(Cook).

table(Waiter, unknown_dish) ->
    receive after 10 -> ok end,
    price(gen_server:call(Waiter, {order, pizza}));
table(Waiter, forgotten) ->
    try gen_server:call(Waiter, {order, coffee}, 100) catch exit:{timeout, _} -> leaves end;
table(Waiter, slow) ->
    try gen_server:call(Waiter, {order, tea}, 100) catch exit:{timeout, _} -> leaves end;
table(Waiter, impatient) ->
    gen_server:call(Waiter, {ready, soup}, infinity);
table(Waiter, quiet) ->
    price(gen_server:call(Waiter, {order, soup})).

price({ok, Cents}) -> Cents.

guest() -> receive {dessert, _} -> guest() end.

wait_for(Table) ->
    case is_process_alive(Table) of
        true -> receive after 10 -> wait_for(Table) end;
        false -> ok
    end.

-doc false.
init(kitchen) -> {ok, {#{}, [#{id => oven, start => {gen_server, start_link, [?MODULE, oven, []]}}]}};
init(oven) -> {ok, oven, {continue, heat}};
init(cook) -> {ok, cook};
init({waiter, _} = Waiter) -> {ok, Waiter}.

-doc false.
handle_continue(heat, oven) -> error(too_hot).

-doc false.
handle_call({order, soup}, _, {waiter, _} = Waiter) -> {reply, {ok, 480}, Waiter};
handle_call({order, coffee}, _, {waiter, _} = Waiter) -> {noreply, Waiter};
handle_call({order, tea}, _, {waiter, _} = Waiter) ->
    receive after 300 -> {reply, {ok, 250}, Waiter} end;
handle_call({order, _}, _, {waiter, _} = Waiter) -> {reply, sold_out, Waiter};
handle_call({ready, Dish}, _, {waiter, Cook} = Waiter) -> {reply, gen_server:call(Cook, {ready, Dish, self()}, infinity), Waiter};
handle_call({ready, Dish, Waiter}, _, cook) -> {reply, gen_server:call(Waiter, {order, Dish}, infinity), cook}.

-doc false.
handle_cast(_, State) -> {noreply, State}.
