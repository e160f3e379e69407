-module(witness_sys_counter).
-moduledoc """
A `gen_server` that counts: calls `{add, N}` and `value` are answered with the new value, casts `{add, N}` and
messages `{add, N}` are not answered. It is asked by one client (`one/1`) or by several at the same time
(`many/2`). A `forgetful` counter drops what a cast adds; a `backwards` counter answers the call `{add, 8}` with
0.
""".
-behaviour(gen_server).

-export([one/1, many/2, client/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-type bug() :: none | forgetful | backwards.

-spec one(bug()) -> ok.
one(Bug) ->
    {ok, Server} = gen_server:start_link(?MODULE, Bug, []),
    _ = [gen_server:call(Server, {add, N}) || N <- lists:seq(1, 9)],
    ok = gen_server:cast(Server, {add, 50}),
    _ = gen_server:call(Server, value),
    Server ! {add, 5},
    _ = gen_server:call(Server, value),
    gen_server:stop(Server).

-spec many(pos_integer(), bug()) -> ok.
many(Clients, Bug) ->
    {ok, Server} = gen_server:start_link({local, ?MODULE}, ?MODULE, Bug, []),
    Pids = [spawn_monitor(?MODULE, client, [Id, Server, Bug]) || Id <- lists:seq(1, Clients)],
    _ = [receive {'DOWN', Ref, process, Pid, _} -> ok end || {Pid, Ref} <- Pids],
    gen_server:stop(?MODULE).

-doc "Adds 1 to 10, every second time by the server's name.".
-spec client(pos_integer(), pid(), bug()) -> ok.
client(_, Server, _) ->
    _ = [gen_server:call(if N rem 2 =:= 0 -> Server; true -> ?MODULE end, {add, N}) || N <- lists:seq(1, 10)],
    ok.

-spec init(bug()) -> {ok, {bug(), integer()}}.
init(Bug) -> {ok, {Bug, 0}}.

-spec handle_call(term(), gen_server:from(), {bug(), integer()}) -> {reply, integer(), {bug(), integer()}}.
handle_call({add, 8}, _, {backwards, V}) -> {reply, 0, {backwards, V + 8}};
handle_call({add, N}, _, {Bug, V}) -> {reply, V + N, {Bug, V + N}};
handle_call(value, _, {_, V} = State) -> {reply, V, State}.

-spec handle_cast(term(), {bug(), integer()}) -> {noreply, {bug(), integer()}}.
handle_cast({add, _}, {forgetful, _} = State) -> {noreply, State};
handle_cast({add, N}, {Bug, V}) -> {noreply, {Bug, V + N}}.

-spec handle_info(term(), {bug(), integer()}) -> {noreply, {bug(), integer()}}.
handle_info({add, N}, {Bug, V}) -> {noreply, {Bug, V + N}}.

-spec terminate(term(), term()) -> ok.
terminate(_, _) -> ok.
