-module(witness_weave_own).
-moduledoc """
Witness's own modules, wherever they are.

A project that depends on Witness has a copy of it among its dependencies (`_build/test/lib/witness/ebin`), maybe in another
version. That copy is not part of the project's program: it is neither woven nor recorded. This node, and each node that it
starts, always runs the Witness that was called.
""".

-export([is_folder/1, others/1]).

-doc "Whether a folder contains the object code of Witness.".
-spec is_folder(file:filename()) -> boolean().
is_folder(Dir) ->
    lists:all(fun(Name) -> filelib:is_regular(filename:join(Dir, Name)) end, ["witness.app", "witness_sup.beam"]).

-doc "The folders that do not contain it.".
-spec others([file:filename()]) -> [file:filename()].
others(Dirs) -> [Dir || Dir <- Dirs, not is_folder(Dir)].
