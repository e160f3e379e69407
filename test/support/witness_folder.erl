-module(witness_folder).
-moduledoc "Temporary folders, for tests.".

-export([with/1]).

-doc "Calls the function with a new, empty folder, and removes the folder when the function has returned or raised.".
-spec with(fun((file:filename()) -> Result)) -> Result.
with(Fun) ->
    Name = lists:concat(["witness-test-", os:getpid(), "-", erlang:unique_integer([positive])]),
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), Name),
    ok = file:make_dir(Folder),
    try Fun(Folder) after ok = file:del_dir_r(Folder) end.
