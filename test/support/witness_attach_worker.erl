-module(witness_attach_worker).
-moduledoc """
A server that numbers what it does: it answers `{hit, From, N}` with `{done, N}`, and ends with `{crash, N}` when it is told
to, N being the last number. In a table it leaves when it began.
""".
-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

start_link(Table) -> gen_server:start_link(?MODULE, Table, []).

init(Table) ->
    true = ets:insert(Table, {erlang:unique_integer([monotonic]), self()}),
    {ok, 0}.

handle_call(last, _, Last) -> {reply, Last, Last}.

handle_cast(_, Last) -> {noreply, Last}.

handle_info({hit, From, N}, Last) when N =:= Last + 1 ->
    From ! {done, N},
    {noreply, N};
handle_info(crash, Last) -> exit({crash, Last}).
