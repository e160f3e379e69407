-module(witness_tables).
-moduledoc "Processes that do nothing but write and read a table that they share. What recording them costs: `bench/tables`.".

-export([main/2, loop/4]).

-doc "So many pairs of calls by each of so many processes. Prints the microseconds.".
main(Calls, Processes) ->
    Table = ets:new(?MODULE, [public, {write_concurrency, true}, {read_concurrency, true}]),
    Begin = erlang:monotonic_time(microsecond),
    Workers = [spawn_monitor(?MODULE, loop, [Table, Calls, I, 0]) || I <- lists:seq(1, Processes)],
    _ = [receive {'DOWN', Ref, process, _, normal} -> ok end || {_, Ref} <- Workers],
    io:format("~b~n", [erlang:monotonic_time(microsecond) - Begin]).

loop(_, 0, _, Sum) -> Sum;
loop(Table, N, I, Sum) ->
    Key = {I, N rem 100},
    true = ets:insert(Table, {Key, N}),
    [{_, Value}] = ets:lookup(Table, Key),
    loop(Table, N - 1, I, Sum + Value).
