-module(witness_weave_own).
-moduledoc """
What is Witness's own, wherever it lies.

A project that depends on Witness has a copy of it among its dependencies (`_build/test/lib/witness/ebin`), which may be another version of it.
That copy is no part of the project's program: it is neither woven nor recorded, and what this node or one that it starts runs is always
the Witness that was called.
""".

-export([is_folder/1, others/1]).

-doc "Whether a folder holds the object code of Witness.".
-spec is_folder(file:filename()) -> boolean().
is_folder(Dir) ->
    lists:all(fun(Name) -> filelib:is_regular(filename:join(Dir, Name)) end, ["witness.app", "witness_sup.beam"]).

-doc "The other folders.".
-spec others([file:filename()]) -> [file:filename()].
others(Dirs) -> [Dir || Dir <- Dirs, not is_folder(Dir)].
