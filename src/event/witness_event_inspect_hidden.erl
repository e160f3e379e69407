-module(witness_event_inspect_hidden).
-moduledoc """
Whether the author of a struct of Elixir has written how `inspect/2` shows it, by an implementation of the protocol `Inspect` or by
`@derive {Inspect, only: [...]}`. Such a struct may have secret fields, so none of its fields is shown.

The implementation is a module, `Inspect.Shop.User` for `Shop.User`. It is neither loaded nor called, and no atom is made. The code of
a recording, or of another node, is not on the code path, so `add/1` names its modules.
""".

-export([is_hidden/1, add/1]).

-doc "Whether there is an implementation: a loaded module, a file on the code path, or a module that `add/1` names.".
-spec is_hidden(module()) -> boolean().
is_hidden(Struct) ->
    case {atom_to_binary(Struct), witness_event_inspect_struct:has_own_form(Struct)} of
        {<<"Elixir.", Name/binary>>, false} ->
            Implementation = <<"Elixir.Inspect.", Name/binary>>,
            is_map_key(Implementation, persistent_term:get(?MODULE, #{})) orelse is_loaded(Implementation)
                orelse is_on_path(Implementation);
        _ -> false
    end.

-doc "Adds the names of modules of a recording or a node, of which those of implementations count.".
-spec add([binary()]) -> ok.
add(Modules) ->
    case [Name || <<"Elixir.Inspect.", _/binary>> = Name <- Modules] of
        [] -> ok;
        Names -> persistent_term:put(?MODULE, maps:merge(persistent_term:get(?MODULE, #{}), #{Name => [] || Name <- Names}))
    end.

is_loaded(Name) ->
    try
        erlang:module_loaded(binary_to_existing_atom(Name))
    catch
        error:_ -> false
    end.

is_on_path(Name) -> code:where_is_file(unicode:characters_to_list([Name, ~".beam"])) =/= non_existing.
