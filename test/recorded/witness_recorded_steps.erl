-module(witness_recorded_steps).
-moduledoc "What one may want to see when one steps: a server, a process without a behaviour, names, links, a kill.".
-behaviour(gen_server).

-export([main/1, counter/2, large/2]).
-export([init/1, handle_call/3, handle_cast/2]).

main(Rounds) ->
    process_flag(trap_exit, true),
    {ok, Shop} = gen_server:start_link({local, steps_shop}, ?MODULE, [], []),
    Counter = spawn_link(?MODULE, counter, [0, none]),
    true = register(steps_counter, Counter),
    lists:foreach(fun(N) ->
        steps_counter ! {add, N},
        gen_server:cast(steps_shop, {put, apples, N})
    end, lists:seq(1, Rounds)),
    _ = Counter ! {get, self()},
    Sum = receive {sum, Counted} -> Counted end,
    Rounds = gen_server:call(steps_shop, {how_many, apples}),
    _ = Counter ! never_taken,
    true = exit(Counter, kill),
    receive {'EXIT', Counter, killed} -> ok end,
    ok = gen_server:stop(Shop),
    receive {'EXIT', Shop, normal} -> Sum end.

%% So many messages that are so many words, and taken at once.
large(Messages, Words) ->
    Self = self(),
    Payload = lists:seq(1, Words),
    Sender = spawn_link(fun() -> [begin Self ! {N, Payload}, receive {more, N} -> ok end end || N <- lists:seq(1, Messages)] end),
    [receive {N, [_ | _]} -> Sender ! {more, N} end || N <- lists:seq(1, Messages)],
    receive never -> ok after 0 -> ok end.

counter(Sum, Last) ->
    receive
        {add, N} -> counter(Sum + N, {added, N});
        {get, From} ->
            _ = From ! {sum, Sum},
            counter(Sum, Last)
    end.

init([]) -> {ok, #{}}.

handle_call({how_many, What}, _, Shop) -> {reply, maps:get(What, Shop), Shop}.

handle_cast({put, What, N}, Shop) -> {noreply, put_in(What, N, Shop)}.

put_in(What, N, Shop) -> Shop#{What => N}.
