-module(witness_search_limit).
-moduledoc """
The bounds of the VM of a search: how much memory it takes, and how many atoms it has. A process of high priority looks every few
milliseconds, and tells the scheduler of the run that goes on (`m:witness_search_scheduler`), which ends the run.

What a run takes at once, between two looks, is bounded by the VM itself: it has an allocator of fixed size, and ends if that is full
(`arguments/1`).

That process has the only timer of the VM that matters: it also says that the VM lives, and makes the run look at the clock. *Invariant:*
a native function that blocks a scheduler of the VM stops both or none. Each scheduler has its own timers, so with a timer for each a VM
might say for ever that it lives while its run waits for ever for the time.
""".

-export([arguments/1, start/1, watch/0, end_watch/0]).
-export([look/3]).

-define(LOOK_MS, 10).
-define(LIVES_MS, 250).
%% A collection of garbage needs the old heap and the new one, and the next heap may be larger by half.
-define(AT_ONCE, 8).
-define(SPARE_MB, 256).
%% The VM ends when it has as many atoms as it may have.
-define(ATOMS, 0.9).

-doc "The arguments of a VM that ends when it needs far more than so many bytes.".
-spec arguments(pos_integer()) -> [string()].
arguments(Bytes) ->
    ["+MMscs", integer_to_list(?AT_ONCE * (Bytes bsr 20) + ?SPARE_MB), "+MMsco", "true", "+MMscrpm", "false", "+Musac", "false"].

-doc "Starts the process that looks. The caller is linked to it, and gets `lives` again and again.".
-spec start(Bytes :: pos_integer()) -> ok.
start(Bytes) ->
    _ = spawn_opt(?MODULE, look, [Bytes, self(), now_ms()], [link, {priority, max}]),
    ok.

-doc """
The caller gets `{exceeds, memory | atoms}` while there is too much, and now and then `looks`: it is to look at the clock. It gets nothing
if nothing looks.
""".
-spec watch() -> ok.
watch() ->
    true = register(?MODULE, self()),
    ok.

-doc "The caller gets nothing more after this, apart from what has been sent to it.".
-spec end_watch() -> ok.
end_watch() ->
    true = unregister(?MODULE),
    ok.

-doc false.
-spec look(pos_integer(), pid(), Due :: integer()) -> no_return().
look(Bytes, To, Due) ->
    Watched = whereis(?MODULE),
    _ = [Watched ! {exceeds, What} || is_pid(Watched), What <- exceeded(Bytes)],
    Now = now_ms(),
    Next = case Now >= Due of
        true ->
            To ! lives,
            _ = [Watched ! looks || is_pid(Watched)],
            Now + ?LIVES_MS;
        false -> Due
    end,
    receive after ?LOOK_MS -> look(Bytes, To, Next) end.

exceeded(Bytes) ->
    [memory || erlang:memory(total) > Bytes]
        ++ [atoms || erlang:system_info(atom_count) > ?ATOMS * erlang:system_info(atom_limit)].

now_ms() -> erlang:monotonic_time(millisecond).
