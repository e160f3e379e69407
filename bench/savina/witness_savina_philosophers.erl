-module(witness_savina_philosophers).
-moduledoc """
`philosophers` ask an arbiter, a `gen_server`, for the forks on both sides until each has eaten `meals` meals.
A philosopher that is denied asks again at once.

Verified: every philosopher has had `meals` meals, and the arbiter has counted as many meals and denials as they
have; a philosopher that returns forks has them; at the end, all forks are there. The number of denials depends
on the schedule.
""".
-behaviour(witness_savina).
-behaviour(gen_server).

-export([sets/0, run/1]).
-export([philosopher/4]).
-export([init/1, handle_call/3, handle_cast/2]).

-import(witness_savina_processes, [start/3, start_server/2, gather/3, await/1, verify/3]).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{philosophers => 20, meals => 10_000},
      somns => #{philosophers => 20, meals => 5_000},
      small => #{philosophers => 5, meals => 10}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{philosophers := N, meals := Meals}) ->
    Arbiter = start_server(?MODULE, N),
    _ = [start(?MODULE, philosopher, [self(), Arbiter, Place, Meals]) || Place <- lists:seq(0, N - 1)],
    {Eaten, Denied} = gather(N, fun({eaten, Count, Retries}, {All, Refused}) ->
        verify(meals, Meals, Count),
        {All + Count, Refused + Retries}
    end, {0, 0}),
    Seen = gen_server:call(Arbiter, close, infinity),
    await(1),
    verify(arbiter, {#{}, N * Meals, Denied}, Seen),
    #{meals => Eaten, denied => Denied}.

-doc false.
philosopher(Main, Arbiter, Place, Meals) ->
    eat(Main, Arbiter, Place, Meals, 0, 0).

eat(Main, Arbiter, _, Meals, Meals, Denied) ->
    %% The answer means that the arbiter has got back all forks.
    ok = gen_server:call(Arbiter, leave, infinity),
    Main ! {eaten, Meals, Denied};
eat(Main, Arbiter, Place, Meals, Eaten, Denied) ->
    case gen_server:call(Arbiter, {hungry, Place}, infinity) of
        eat ->
            gen_server:cast(Arbiter, {done, Place}),
            eat(Main, Arbiter, Place, Meals, Eaten + 1, Denied);
        denied ->
            eat(Main, Arbiter, Place, Meals, Eaten, Denied + 1)
    end.

%% Forks: each fork that is taken, with the philosopher that has it.
-doc false.
init(N) -> {ok, {N, #{}, 0, 0}}.

-doc false.
handle_call({hungry, Place}, _, {N, Forks, Served, Denied}) ->
    Right = (Place + 1) rem N,
    case Forks of
        #{Place := _} -> {reply, denied, {N, Forks, Served, Denied + 1}};
        #{Right := _} -> {reply, denied, {N, Forks, Served, Denied + 1}};
        #{} -> {reply, eat, {N, Forks#{Place => Place, Right => Place}, Served + 1, Denied}}
    end;
handle_call(leave, _, State) ->
    {reply, ok, State};
handle_call(close, _, State = {_, Forks, Served, Denied}) ->
    {stop, normal, {Forks, Served, Denied}, State}.

-doc false.
handle_cast({done, Place}, {N, Forks, Served, Denied}) ->
    Right = (Place + 1) rem N,
    verify({forks, Place}, [Place, Place], [maps:get(Fork, Forks, none) || Fork <- [Place, Right]]),
    {noreply, {N, maps:without([Place, Right], Forks), Served, Denied}}.
