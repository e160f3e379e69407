-module(pool).
-moduledoc """
Lends connections, each to one user at a time.

With `POOL=buggy` in the environment a connection that is given back twice is there twice, and then lent to two users.
""".
-behaviour(gen_server).

-export([start_link/1, stop/1, checkout/1, checkin/2]).
-export([init/1, handle_call/3, handle_cast/2]).

start_link(Connections) -> gen_server:start_link(?MODULE, Connections, []).

stop(Pool) -> gen_server:stop(Pool).

checkout(Pool) -> gen_server:call(Pool, checkout).

checkin(Pool, Connection) -> gen_server:cast(Pool, {checkin, Connection}).

init(Connections) -> {ok, {os:getenv("POOL", "correct"), Connections, Connections}}.

handle_call(checkout, _, {_, [], _} = Pool) -> {reply, empty, Pool};
handle_call(checkout, _, {Variant, [Connection | Free], All}) -> {reply, {lent, Connection}, {Variant, Free, All}}.

handle_cast({checkin, Connection}, {Variant, Free, All}) ->
    case Variant =/= "buggy" andalso lists:member(Connection, Free) of
        true -> {noreply, {Variant, Free, All}};
        false -> {noreply, {Variant, [Connection | Free], All}}
    end.
