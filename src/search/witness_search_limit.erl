-module(witness_search_limit).
-moduledoc """
The bounds of the VM of a search: how much memory it takes, and how many atoms it has. A process of high priority looks every few
milliseconds, and tells the scheduler of the run that goes on (`m:witness_search_scheduler`), which ends the run.

What a run takes at once, between two looks, is bounded by the VM itself: it has an allocator of fixed size, and ends if that is full
(`arguments/1`).
""".

-export([arguments/1, start/1, watch/0, end_watch/0]).
-export([look/2]).

-define(LOOK_MS, 10).
%% A collection of garbage needs the old heap and the new one, and the next heap may be larger by half.
-define(AT_ONCE, 8).
-define(SPARE_MB, 256).
%% The VM ends when it has as many atoms as it may have.
-define(ATOMS, 0.9).

-doc "The arguments of a VM that ends when it needs far more than so many bytes.".
-spec arguments(pos_integer()) -> [string()].
arguments(Bytes) ->
    ["+MMscs", integer_to_list(?AT_ONCE * (Bytes bsr 20) + ?SPARE_MB), "+MMsco", "true", "+MMscrpm", "false", "+Musac", "false"].

-doc "Starts the process that looks. The caller is linked to it.".
-spec start(Bytes :: pos_integer()) -> ok.
start(Bytes) ->
    true = register(?MODULE, spawn_opt(?MODULE, look, [none, Bytes], [link, {priority, max}])),
    ok.

-doc "The caller gets `{exceeds, memory | atoms}` once if there is too much from now on. Nothing happens if nothing looks.".
-spec watch() -> ok.
watch() -> tell({watch, self()}).

-doc "The caller gets nothing more after this, apart from what is in its mailbox.".
-spec end_watch() -> ok.
end_watch() -> tell({watch, none}).

tell(What) ->
    case whereis(?MODULE) of
        undefined -> ok;
        Pid -> Pid ! What, ok
    end.

-doc false.
-spec look(pid() | none, pos_integer()) -> no_return().
look(Watched, Bytes) ->
    receive
        {watch, Next} -> look(Next, Bytes)
    after case Watched of none -> infinity; _ -> ?LOOK_MS end ->
        case exceeded(Bytes) of
            none -> look(Watched, Bytes);
            What ->
                Watched ! {exceeds, What},
                look(none, Bytes)
        end
    end.

exceeded(Bytes) ->
    case {erlang:memory(total) > Bytes, erlang:system_info(atom_count) > ?ATOMS * erlang:system_info(atom_limit)} of
        {true, _} -> memory;
        {_, true} -> atoms;
        {false, false} -> none
    end.
