-module(ledger_server).
-moduledoc """
The money: one entry for each charge, numbered from 1.

Charges are written in groups, as databases do it: the first charge of a group waits a moment for others to join,
and then all of them are written and answered.
""".

-behaviour(gen_server).

-export([start_link/0, charge/2, charges/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([receipt/0]).

-define(GROUP_MS, 5).

-type receipt() :: pos_integer().
-type entry() :: {receipt(), seat_server:seat(), seat_server:passenger()}.
%% Both lists have the latest first.
-type state() :: #{written := [entry()], group := [{gen_server:from(), seat_server:seat(), seat_server:passenger()}]}.

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "Charges the passenger for the seat.".
-spec charge(seat_server:seat(), seat_server:passenger()) -> {charged, receipt()}.
charge(Seat, Passenger) ->
    gen_server:call(?MODULE, {charge, Seat, Passenger}).

-doc "How many times the seat has been paid for.".
-spec charges(seat_server:seat()) -> non_neg_integer().
charges(Seat) ->
    gen_server:call(?MODULE, {charges, Seat}).

-spec init([]) -> {ok, state()}.
init([]) ->
    {ok, #{written => [], group => []}}.

-spec handle_call(Request, gen_server:from(), state()) -> {noreply, state()} | {reply, non_neg_integer(), state()} when
    Request :: {charge, seat_server:seat(), seat_server:passenger()} | {charges, seat_server:seat()}.
handle_call({charge, Seat, Passenger}, From, #{group := Group} = State) ->
    _ = [erlang:send_after(?GROUP_MS, self(), write) || Group =:= []],
    {noreply, State#{group := [{From, Seat, Passenger} | Group]}};
handle_call({charges, Seat}, _From, #{written := Written} = State) ->
    {reply, length([Receipt || {Receipt, Paid, _} <- Written, Paid =:= Seat]), State}.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_Unknown, State) ->
    {noreply, State}.

-spec handle_info(write, state()) -> {noreply, state()}.
handle_info(write, #{written := Written, group := Group}) ->
    {noreply, #{written => lists:foldr(fun write/2, Written, Group), group => []}}.

-spec write({gen_server:from(), seat_server:seat(), seat_server:passenger()}, [entry()]) -> [entry()].
write({From, Seat, Passenger}, Written) ->
    Receipt = length(Written) + 1,
    gen_server:reply(From, {charged, Receipt}),
    [{Receipt, Seat, Passenger} | Written].
