-module(witness_sys_mailbox).
-moduledoc """
What a mailbox does: messages taken in another order than they came in, `after` that runs out (no event), a message
that is the atom `timeout` (an event), timers, messages of the VM, large messages, a process that hibernates.
""".
-export([main/0, picky/1, impatient/1, timed/1, told_by_vm/1, reader/1, sleeper/1, woken/1]).

-spec main() -> ok.
main() ->
    Pids = [spawn_monitor(?MODULE, F, [self()]) || F <- [picky, impatient, timed, told_by_vm, reader, sleeper]],
    [Picky, Impatient, _, _, Reader, Sleeper] = [P || {P, _} <- Pids],
    _ = [Picky ! {N, lists:nth(N, [c, a, b])} || N <- [1, 2, 3]],
    Impatient ! timeout,
    Reader ! binary:copy(<<1, 2, 3, 4>>, 300_000),
    Reader ! lists:seq(1, 20_000),
    Reader ! list_to_tuple(lists:seq(1, 20_000)),
    Reader ! maps:from_list([{N, <<N:64>>} || N <- lists:seq(1, 5_000)]),
    Sleeper ! wake,
    _ = [receive {'DOWN', Ref, process, Pid, _} -> ok end || {Pid, Ref} <- Pids],
    ok.

-doc "Takes the messages in the order a, b, c, which is not that of their delivery.".
-spec picky(pid()) -> {took, [integer()]}.
picky(Root) ->
    Root ! {took, [receive {N, Letter} -> N end || Letter <- [a, b, c]]}.

-doc "Waits in vain three times, then for the atom `timeout`.".
-spec impatient(pid()) -> no_return().
impatient(_) ->
    vain(0),
    vain(1),
    self() ! check,
    receive never -> ok after 0 -> ok end,
    receive check -> ok end,
    receive timeout -> ok end,
    exit(waited).

vain(T) -> receive never -> ok after T -> ok end.

-spec timed(pid()) -> ok.
timed(_) ->
    _ = erlang:send_after(0, self(), tick),
    receive tick -> ok end,
    Ref = erlang:start_timer(1, self(), tock),
    receive {timeout, Ref, tock} -> ok end,
    Late = erlang:send_after(60_000, self(), late),
    _ = erlang:cancel_timer(Late),
    ok.

-doc "Gets an ETS table, the end of a process and the end of a linked one.".
-spec told_by_vm(pid()) -> ok.
told_by_vm(_) ->
    process_flag(trap_exit, true),
    Self = self(),
    {Giver, Ref} = spawn_monitor(fun() ->
        Table = ets:new(?MODULE, []),
        true = ets:give_away(Table, Self, gift)
    end),
    receive {'ETS-TRANSFER', _, Giver, gift} -> ok end,
    receive {'DOWN', Ref, process, Giver, normal} -> ok end,
    Linked = spawn_link(fun() -> exit(over) end),
    receive {'EXIT', Linked, over} -> ok end.

-spec reader(pid()) -> {read, [non_neg_integer()]}.
reader(Root) ->
    Root ! {read, [receive
                       B when is_binary(B) -> byte_size(B);
                       L when is_list(L) -> length(L);
                       T when is_tuple(T) -> tuple_size(T);
                       M when is_map(M) -> map_size(M)
                   end || _ <- [1, 2, 3, 4]]}.

-spec sleeper(pid()) -> no_return().
sleeper(Root) -> erlang:hibernate(?MODULE, woken, [Root]).

-spec woken(pid()) -> {woken_by, term()}.
woken(Root) -> receive Msg -> Root ! {woken_by, Msg} end.
