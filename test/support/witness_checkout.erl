-module(witness_checkout).
-moduledoc "Where the checkout is, for tests that are run from somewhere in it.".

-export([root/1]).

-doc "The first folder upwards that holds `bin/witness`.".
-spec root(file:filename()) -> file:filename().
root(Folder) ->
    case filelib:is_regular(filename:join([Folder, "bin", "witness"])) of
        true -> Folder;
        false ->
            Parent = filename:dirname(Folder),
            Parent =/= Folder orelse error(no_checkout),
            root(Parent)
    end.
