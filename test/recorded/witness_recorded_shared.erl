-module(witness_recorded_shared).
-moduledoc "Memory that processes share without messages: tables of both kinds, atomics, counters and persistent terms.".

-import(witness_recorded, [content/1, monitored/1, result/2, ended/2]).

-export([memory/0]).

-define(OPERATIONS, 150).

memory() ->
    Shared = {ets:new(ordered, [public, ordered_set]), ets:new(set, [public, {write_concurrency, true}]),
              atomics:new(2, []), counters:new(1, [write_concurrency])},
    Pids = [monitored(fun() ->
        _ = rand:seed(exsss, {I, 2, 3}),
        [step(rand:uniform(10), rand:uniform(30), Shared, I) || _ <- lists:seq(1, ?OPERATIONS)]
    end) || I <- [1, 2, 3, 4]],
    [receive {'DOWN', Ref, process, Pid, Reason} = Down -> content(Down), ended(Pid, Reason) end || {Pid, Ref} <- Pids],
    {Ordered, Set, Atomics, Counters} = Shared,
    Keys = ets:foldl(fun({Key, _}, Keys) -> [Key | Keys] end, [], Ordered),
    {Keys, ets:tab2list(Set), result({atomics, get, 2}, atomics:get(Atomics, 1)),
     result({counters, get, 2}, counters:get(Counters, 1))}.

step(1, X, {Ordered, _, _, _}, I) -> result({ets, insert_new, 2}, ets:insert_new(Ordered, {X, I}));
step(2, X, {Ordered, _, _, _}, _) -> result({ets, lookup, 2}, ets:lookup(Ordered, X));
step(3, X, {Ordered, _, _, _}, _) -> result({ets, take, 2}, ets:take(Ordered, X));
step(4, _, {Ordered, Set, _, _}, I) ->
    First = result({ets, first, 1}, ets:first(Ordered)),
    result({ets, insert_new, 2}, ets:insert_new(Set, {{self(), First}, I}));
step(5, X, {Ordered, _, _, _}, _) ->
    try result({ets, update_counter, 3}, ets:update_counter(Ordered, X, 1)) catch error:badarg -> none end;
step(6, X, {Ordered, _, _, _}, _) ->
    result({ets, select, 2}, ets:select(Ordered, [{{'$1', '$2'}, [{'>', '$1', X}], ['$_']}]));
step(7, X, {_, _, Atomics, Counters}, _) ->
    _ = result({atomics, add, 3}, atomics:add(Atomics, 1, X)),
    result({counters, add, 3}, counters:add(Counters, 1, 1));
step(8, X, {_, Set, Atomics, _}, _) ->
    _ = result({atomics, add_get, 3}, atomics:add_get(Atomics, 1, X)),
    result({ets, info, 2}, ets:info(Set, size));
step(9, X, {_, _, Atomics, _}, _) ->
    result({atomics, compare_exchange, 4}, atomics:compare_exchange(Atomics, 2, X, X + 1));
step(10, X, _, I) ->
    Before = result({persistent_term, get, 2}, persistent_term:get({?MODULE, X}, none)),
    _ = result({persistent_term, put, 2}, persistent_term:put({?MODULE, X}, I)),
    Before.
