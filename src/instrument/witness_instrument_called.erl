-module(witness_instrument_called).
-moduledoc """
What processes are called: the module that each was spawned with, and its registered name. The run asks for processes that have ended
by the time a violation is reported.

A table of bounded size, in which a later process takes the place of an earlier one. Names have places of their own, so that a registered
process is not forgotten after many births of other processes. The native source has such a table in C (`c_src/witness_native_called.h`).
""".

-export([new/0, add_birth/3, add_name/3, find/2]).

-export_type([called/0]).

-opaque called() :: ets:table().

-define(MODULES, 16_384).
-define(REGISTERED, 4_096).

-doc "A table of the calling process. Any process may add to it and read it.".
-spec new() -> called().
new() -> ets:new(?MODULE, [public, {write_concurrency, true}]).

-doc "A process was spawned. A table that is gone with its owner takes nothing.".
-spec add_birth(witness_event:proc(), witness_event:signature() | undefined, called()) -> ok.
add_birth(_, undefined, _) -> ok;
add_birth(P, {Module, _, _}, Called) -> add({module, place(P, ?MODULES)}, P, Module, Called).

-doc "A process was registered.".
-spec add_name(pid(), atom(), called()) -> ok.
add_name(P, Name, Called) -> add({name, place(P, ?REGISTERED)}, P, Name, Called).

add(Place, P, Atom, Called) ->
    try ets:insert(Called, {Place, P, Atom}) of
        true -> ok
    catch
        error:badarg -> ok
    end.

-doc """
The registered name of a process, or else the module that it was spawned with; none if neither is known any more. A table that is gone
with its owner knows nothing.
""".
-spec find(witness_event:proc(), called()) -> [atom()].
find(P, Called) ->
    case look_up({name, place(P, ?REGISTERED)}, P, Called) of
        [] -> look_up({module, place(P, ?MODULES)}, P, Called);
        Named -> Named
    end.

look_up(Place, P, Called) ->
    try
        [Atom || {_, Q, Atom} <- ets:lookup(Called, Place), Q =:= P]
    catch
        error:badarg -> []
    end.

%% The VM numbers processes one after the other. So the last ones have places of their own, which hashes would not give them. In the
%% external format the number is before the serial and the creation.
place(P, Places) when is_pid(P) ->
    External = term_to_binary(P),
    <<Number:32>> = binary:part(External, byte_size(External) - 12, 4),
    Number rem Places;
place(P, Places) -> erlang:phash2(P, Places).
