-module(seats).
-moduledoc """
Sells seats, each once.

With `SEATS=buggy` in the environment a seat that is asked for while it is held is sold to whoever asks.
""".
-behaviour(gen_server).

-export([start_link/1, hold/2, sell/2]).
-export([init/1, handle_call/3, handle_cast/2]).

start_link(Free) -> gen_server:start_link(?MODULE, Free, []).

hold(Seats, Seat) -> gen_server:cast(Seats, {hold, Seat}).

sell(Seats, Seat) -> gen_server:call(Seats, {sell, Seat}).

init(Free) -> {ok, {os:getenv("SEATS", "correct"), Free, []}}.

handle_call({sell, Seat}, _, {Variant, Free, Held}) ->
    case {lists:member(Seat, Held), lists:member(Seat, Free)} of
        {true, _} when Variant =:= "buggy" -> {reply, {sold, Seat}, {Variant, Free, Held}};
        {true, _} -> {reply, {sold, Seat}, {Variant, Free, lists:delete(Seat, Held)}};
        {false, true} -> {reply, {sold, Seat}, {Variant, lists:delete(Seat, Free), Held}};
        {false, false} -> {reply, taken, {Variant, Free, Held}}
    end.

handle_cast({hold, Seat}, {Variant, Free, Held}) -> {noreply, {Variant, lists:delete(Seat, Free), [Seat | Held]}}.
