%% Processes of which functions are called in all ways, and a server of which they are called by OTP.
-module(witness_inline_functions_system).
-behaviour(gen_server).

-export([main/1, plain/3, woken/2, exported/1, client/0, crashing_client/0, init/1, handle_call/3, handle_cast/2, handle_info/2,
         terminate/2, waiter/2, spinning/2, idle/1]).

%% One process after the other.
main(Starts) ->
    lists:foreach(fun({F, Args}) ->
        {_, Ref} = spawn_monitor(?MODULE, F, Args),
        receive {'DOWN', Ref, process, _, _} -> ok end
    end, Starts).

plain(Sink, N, How) ->
    Sink ! {sum, sum(lists:seq(1, N))},
    done = loop(N, Sink),
    [Two | _] = lists:map(fun twice/1, [1, 2]),
    F = fun ?MODULE:exported/1,
    {M, Name} = {?MODULE, exported},
    [{Two}, {a}, {b}, {c}] = [F(Two), apply(M, Name, [a]), M:exported(b), (fun exported/1)(c)],
    [caught, caught, caught] = [try fails(Why) catch _:_ -> caught end || Why <- [exit, error, throw]],
    caught = try positive(-N) catch error:function_clause -> caught end,
    [4] = [twice(X) || X <- [Two], even(X)],
    self() ! wake,
    erlang:hibernate(?MODULE, woken, [Sink, How]).

woken(Sink, How) ->
    receive wake -> ok end,
    Sink ! woken,
    Child = spawn(fun() -> Sink ! exported(child) end),
    Sink ! {child, Child},
    fails(How).

sum([]) -> 0;
sum([N | Ns]) -> N + sum(Ns).

loop(0, _) -> done;
loop(N, Sink) ->
    Sink ! {turn, N},
    loop(N - 1, Sink).

twice(N) -> 2 * N.

exported(X) -> {X}.

fails(exit) -> exit(reason);
fails(error) -> error(reason);
fails(throw) -> throw(reason);
fails(How) -> How.

positive(N) when N > 0 -> N.

even(0) -> true;
even(N) -> odd(N - 1).

odd(0) -> false;
odd(N) -> even(N - 1).

%% --- a server --------------------------------------------------------------------

client() ->
    {ok, P} = gen_server:start(?MODULE, [start], []),
    1 = gen_server:call(P, {add, 1}),
    ok = gen_server:cast(P, {add, 2}),
    P ! {add, 3},
    6 = gen_server:call(P, {throws, 0}),
    7 = sys:replace_state(P, fun(N) -> add(N, 1) end),
    ok = gen_server:stop(P).

crashing_client() ->
    {ok, P} = gen_server:start(?MODULE, [start], []),
    1 = gen_server:call(P, {add, 1}),
    try gen_server:call(P, nonsense) catch exit:_ -> ok end.

init([start]) -> {ok, 0}.

handle_call({add, N}, _, Sum) -> {reply, add(Sum, N), add(Sum, N)};
handle_call({throws, N}, _, Sum) -> throw({reply, add(Sum, N), Sum}).

handle_cast({add, N}, Sum) -> {noreply, add(Sum, N)}.

handle_info({add, N}, Sum) -> {noreply, add(Sum, N)}.

terminate(_, _) -> ok.

add(A, B) -> A + B.

%% --- processes that are ended ----------------------------------------------------

waiter(Test, Times) ->
    lists:foreach(fun twice/1, lists:seq(1, Times)),
    Test ! {waits, self()},
    receive stop -> ok end.

%% The server is in the code of OTP, which calls the function between two callbacks.
spinning(Test, Flag) ->
    {ok, P} = gen_server:start(?MODULE, [start], []),
    1 = gen_server:call(P, {add, 1}),
    Test ! {spins, P},
    try sys:replace_state(P, fun(_) -> spin(Flag) end) catch exit:_ -> ok end.

%% Runs until it is ended, without any other event.
spin(Flag) ->
    ok = atomics:put(Flag, 1, 1),
    turn().

turn() -> turn().

idle(Test) ->
    _ = twice(1),
    Test ! {idle, self()},
    receive go -> twice(2) end.
