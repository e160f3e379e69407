-module(witness_instrument_called).
-moduledoc """
What processes are called: the module that each was spawned with, and its registered name. The run asks for processes that have ended
by the time a violation is reported. And how many processes there were with each signature.

A table of bounded size, in which a later process takes the place of an earlier one. Names have places of their own, so that a registered
process is not forgotten after many births of other processes. Signatures are counted if they are among the first ones. The native source has such a table in C (`c_src/witness_native_called.h`).
""".

-export([new/0, add_birth/3, add_running/2, add_name/3, find/2, seen/1]).

-export_type([called/0]).

-opaque called() :: ets:table().

-define(MODULES, 16_384).
-define(REGISTERED, 4_096).
-define(SIGNATURES, 1_024).

-doc "A table of the calling process. Any process may add to it and read it.".
-spec new() -> called().
new() -> ets:new(?MODULE, [public, {write_concurrency, true}]).

-doc "A process was spawned. A table that is gone with its owner takes nothing.".
-spec add_birth(witness_event:proc(), witness_event:signature() | undefined, called()) -> ok.
add_birth(_, undefined, _) -> ok;
add_birth(P, {Module, Function, Args}, Called) ->
    ok = count({Module, Function, arity(Args)}, Called),
    add({module, place(P, ?MODULES)}, P, Module, Called).

-doc "A process runs already that was spawned with this function.".
-spec add_running(mfa(), called()) -> ok.
add_running(Function, Called) -> count(Function, Called).

arity(Args) when length(Args) >= 0 -> length(Args);
arity(_) -> '_'.

%% A new signature is counted if there is a place for it.
count(Signature, Called) ->
    try ets:update_counter(Called, {signature, Signature}, 1, {{signature, Signature}, 0}) of
        1 ->
            _ = ets:update_counter(Called, signatures, 1, {signatures, 0}) > ?SIGNATURES
                andalso ets:delete(Called, {signature, Signature}),
            ok;
        _ -> ok
    catch
        error:badarg -> ok
    end.

-doc "How many processes were born with each signature. A table that is gone with its owner knows nothing.".
-spec seen(called()) -> [witness_instrument:sight()].
seen(Called) ->
    try
        [{M, F, A, Count} || {{M, F, A}, Count} <- ets:select(Called, [{{{signature, '$1'}, '$2'}, [], [{{'$1', '$2'}}]}])]
    catch
        error:badarg -> []
    end.

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
