-module(booking_sup).
-moduledoc "Supervises the booking workers: one for each HTTP request, never restarted.".

-behaviour(supervisor).

-export([start_link/0, start_worker/3]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-doc "Starts a worker that books the seat and answers the client.".
-spec start_worker(Client :: pid(), seat_server:seat(), seat_server:passenger()) -> {ok, pid()}.
start_worker(Client, Seat, Passenger) ->
    {ok, Worker} = supervisor:start_child(?MODULE, [Client, Seat, Passenger]),
    {ok, Worker}.

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Worker = #{id => booking_worker, start => {booking_worker, start_link, []}, restart => temporary},
    {ok, {#{strategy => simple_one_for_one}, [Worker]}}.
