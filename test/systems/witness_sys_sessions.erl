-module(witness_sys_sessions).
-moduledoc """
A table of sessions and connections that use them. A session is granted to one connection, which says when it needs it
no longer, or just ends; the others wait.

A `hasty` table grants the session `shared` to a second connection while a first one has it: these two wait for each
other before either lets go of it, so it happens for sure.
""".
-export([main/2, table/3, connection/4, pair/3]).

-type how() :: correct | hasty.

-spec main(Connections :: pos_integer(), how()) -> ok.
main(Connections, How) ->
    Table = spawn(?MODULE, table, [#{}, [], How]),
    Store = spawn(fun store/0),
    Pids = [spawn_monitor(?MODULE, connection, [C, 8, Table, Store]) || C <- lists:seq(1, Connections)],
    _ = [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Pids],
    {Pair, Ref} = spawn_monitor(?MODULE, pair, [How, Table, Store]),
    receive {'DOWN', Ref, process, Pair, normal} -> ok end,
    Table ! stop,
    Store ! stop,
    ok.

%% held: the connection that has each session; waiting: the connections that want one, in order
-spec table(#{term() => pid()}, [{term(), pid()}], how()) -> ok.
table(Held, Waiting, How) ->
    receive
        {want, S, C} when is_map_key(S, Held), not (How =:= hasty andalso S =:= shared) ->
            table(Held, Waiting ++ [{S, C}], How);
        {want, S, C} -> grant(S, C, Held, Waiting, How);
        {released, S, C} -> free(S, C, Held, Waiting, How);
        {'DOWN', _, process, C, _} ->
            case [S || S := D <- Held, C =:= D] of
                [S] -> free(S, C, Held, Waiting, How);
                [] -> table(Held, Waiting, How)
            end;
        stop -> ok
    end.

grant(S, C, Held, Waiting, How) ->
    _ = monitor(process, C),
    C ! {granted, S},
    table(Held#{S => C}, Waiting, How).

free(S, C, Held, Waiting, How) when map_get(S, Held) =:= C ->
    case lists:keytake(S, 1, Waiting) of
        {value, {S, Next}, Others} -> grant(S, Next, Held, Others, How);
        false -> table(maps:remove(S, Held), Waiting, How)
    end;
free(_, _, Held, Waiting, How) -> table(Held, Waiting, How).

store() ->
    receive
        {use, _, _} -> store();
        stop -> ok
    end.

%% With its last session it ends without a word.
-spec connection(pos_integer(), non_neg_integer(), pid(), pid()) -> ok.
connection(_, 0, _, _) -> ok;
connection(C, N, Table, Store) ->
    S = (C + N) rem 3,
    Table ! {want, S, self()},
    receive {granted, S} -> ok end,
    Store ! {use, S, N},
    Store ! {use, S, N},
    _ = N > 1 andalso (Table ! {released, S, self()}),
    connection(C, N - 1, Table, Store).

%% Two connections. If the second one gets the session only after the first, neither waits for the other.
-spec pair(how(), pid(), pid()) -> ok.
pair(How, Table, Store) ->
    Pair = self(),
    {First, A} = spawn_monitor(fun() -> one_of_two(Pair, Table, Store) end),
    receive {has, First} -> ok end,
    {Second, B} = spawn_monitor(fun() -> one_of_two(Pair, Table, Store) end),
    _ = How =:= hasty andalso receive {has, Second} -> ok end,
    First ! go,
    receive {'DOWN', A, process, First, normal} -> ok end,
    _ = How =:= hasty orelse receive {has, Second} -> ok end,
    Second ! go,
    receive {'DOWN', B, process, Second, normal} -> ok end.

one_of_two(Pair, Table, Store) ->
    Table ! {want, shared, self()},
    receive {granted, shared} -> Pair ! {has, self()} end,
    receive go -> Store ! {use, shared, 1} end,
    Table ! {released, shared, self()},
    ok.
