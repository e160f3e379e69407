-module(witness_sys_crashed).
-moduledoc "A system in which the first process crashes while its children still work.".
-export([main/1, child/2]).

-spec main(pos_integer()) -> no_return().
main(Children) ->
    Pids = [spawn(?MODULE, child, [I, self()]) || I <- lists:seq(1, Children)],
    _ = [Pid ! go || Pid <- Pids],
    error(gave_up).

-spec child(pos_integer(), pid()) -> {too_late, pos_integer()}.
child(I, Root) ->
    Ref = monitor(process, Root),
    receive go -> ok end,
    receive {'DOWN', Ref, process, Root, _} -> Root ! {too_late, I} end.
