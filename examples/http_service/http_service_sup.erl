-module(http_service_sup).
-moduledoc "The supervisor of the booking service: the seats, the ledger, the workers, and the HTTP server last.".

-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => one_for_all}, [
        #{id => seat_server, start => {seat_server, start_link, []}},
        #{id => ledger_server, start => {ledger_server, start_link, []}},
        #{id => booking_sup, start => {booking_sup, start_link, []}, type => supervisor},
        #{id => http_service_web, start => {http_service_web, start_link, []}}
    ]}}.
