-module(seat_server).
-moduledoc """
Who sits where on the ferry.

The server answers one request at a time, so nothing can go wrong inside it. The two questions that a booking
asks it, `check/1` and `book/2`, are two requests, though, and `book/2` trusts that its caller has checked.
""".

-behaviour(gen_server).

-export([start_link/0, check/1, book/2, passengers/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-export_type([seat/0, passenger/0]).

-doc "The name of a seat: row and letter, as in `~\"3B\"`.".
-type seat() :: binary().
-type passenger() :: binary().
%% All passengers who hold a ticket for a seat, the latest first: more than one is the bug.
-type state() :: #{seat() => [passenger(), ...]}.

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "Is the seat free at this moment?".
-spec check(seat()) -> {free, seat()} | {taken, seat()}.
check(Seat) ->
    gen_server:call(?MODULE, {check, Seat}).

-doc "Gives the seat to the passenger.".
-spec book(seat(), passenger()) -> {booked, seat(), passenger()}.
book(Seat, Passenger) ->
    gen_server:call(?MODULE, {book, Seat, Passenger}).

-doc "Everybody who holds a ticket for the seat, the latest first.".
-spec passengers(seat()) -> [passenger()].
passengers(Seat) ->
    gen_server:call(?MODULE, {passengers, Seat}).

-spec init([]) -> {ok, state()}.
init([]) ->
    {ok, #{}}.

-spec handle_call(Request, gen_server:from(), state()) -> {reply, Reply, state()} when
    Request :: {check, seat()} | {book, seat(), passenger()} | {passengers, seat()},
    Reply :: {free | taken, seat()} | {booked, seat(), passenger()} | [passenger()].
handle_call({check, Seat}, _From, Taken) when is_map_key(Seat, Taken) ->
    {reply, {taken, Seat}, Taken};
handle_call({check, Seat}, _From, Taken) ->
    {reply, {free, Seat}, Taken};
handle_call({book, Seat, Passenger}, _From, Taken) ->
    Holders = [Passenger | maps:get(Seat, Taken, [])],
    {reply, {booked, Seat, Passenger}, Taken#{Seat => Holders}};
handle_call({passengers, Seat}, _From, Taken) ->
    {reply, maps:get(Seat, Taken, []), Taken}.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_Unknown, Taken) ->
    {noreply, Taken}.
